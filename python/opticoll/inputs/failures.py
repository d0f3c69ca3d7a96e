"""Failures of parts of a fabric, as options of the fabric.

>>> joined(["rank 5", "0-1@50Gb/s", "rank 6"])
'without=rank 5+rank 6,degraded=0-1@50Gb/s'
"""

from __future__ import annotations

from collections.abc import Sequence

from opticoll.errors import UsageError
from opticoll.outputs.records import record_row

STATES = ("without", "dead_ports", "dead_transceivers", "dead", "degraded")
"""Options of fabrics that state failures, the most frequent ones first."""


def ways(family: str) -> str:
    """Returns how the failures of a family are stated, with an example of each option.

    >>> ways("circuit_switch")
    'dead_ports=3.0 or degraded=3.0@100Gb/s'
    """
    options = record_row("fabrics", family).options
    examples = {option.name: (option.range or "").split("+")[0] for option in options}
    return " or ".join(f"{name}={examples[name]}" for name in STATES if name in examples)


def check_form(failed: Sequence[str], family: str) -> None:
    """Raises an error if a part is named without an option, and the family needs the option.

    Raises
    ------
    UsageError
        The family has no ranks, links or switches that can fail.
    """
    names = {option.name for option in record_row("fabrics", family).options}
    for part in ",".join(failed).split(",") if failed else ():
        if "=" not in part and ("degraded" if "@" in part else "without") not in names:
            known = ways(family)
            advice = f"give {known}" if known else f"the failures of a {family} are not modelled"
            raise UsageError(
                f"--failed: `{part}` is not a part of a {family} that can fail; {advice}"
            )


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
