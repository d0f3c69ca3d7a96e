"""Failures of parts of a fabric, as options of the fabric.

>>> joined(["rank 5", "0-1@50Gb/s", "rank 6"])
'without=rank 5+rank 6,degraded=0-1@50Gb/s'
"""

from __future__ import annotations

from collections.abc import Sequence

from opticoll.errors import UsageError


def joined(failed: Sequence[str]) -> str:
    """Returns the failures as one text, in which `+` joins the values of one option."""
    if len(failed) == 1:
        return failed[0]
    return ",".join(f"{key}={value}" for key, value in options_of(failed).items())


def options_of(failed: Sequence[str]) -> dict[str, str]:
    """Returns the fabric options that express the failures, each with its value.

    Raises
    ------
    UsageError
        The remaining ranks are given twice.
    """
    options: dict[str, str] = {}
    for part in ",".join(failed).split(","):
        key, equals, value = part.partition("=")
        if not equals:
            key, value = "degraded" if "@" in part else "without", part
        if key == "members" and key in options:
            raise UsageError("--failed: `members=` says which ranks are left; give it once")
        options[key] = f"{options[key]}+{value}" if key in options else value
    return options
