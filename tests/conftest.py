"""The fixtures that all tests have."""

from support import plan_file, run

__all__ = ["plan_file", "run"]
