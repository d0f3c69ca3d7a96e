"""The fixtures that all tests have."""

from support import drawn, plan_file, run

__all__ = ["drawn", "plan_file", "run"]
