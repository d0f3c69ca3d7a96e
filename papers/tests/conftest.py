"""The fixture that tests of the papers and tests of opticoll share."""

from support import run

__all__ = ["run"]
