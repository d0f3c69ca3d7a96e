"""The fixture that the tests of the papers share with those of opticoll."""

from support import run

__all__ = ["run"]
