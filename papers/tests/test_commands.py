"""The commands on the pages of papers show the value of their claims."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from opticoll_papers import PAPERS
from opticoll_papers.claims import load
from opticoll_papers.judging import NotDone
from support import Run, some_of

ROOT = Path(__file__).parents[2]

PREFIXES = {"p": 1e-12, "n": 1e-9, "u": 1e-6, "m": 1e-3, "": 1.0}
TOKEN = re.compile(r"(?<![\w.])(-?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?)( ?([pnum]?)s\b)?")
NAMED = {
    "slots": r"step|slot",
    "steps": r"step|slot",
    "wavelengths": "wavelength",
    "ports": "port",
    "calls": "call",
    "nodes": "rank|node",
}
"""Words that a line must contain if its number is below 10, by unit."""


def computed(paper: str) -> dict[str, str]:
    """Returns the computed value of each claim, as its page prints it."""
    page = ROOT / "docs" / "papers" / f"{paper}-items.md"
    rows = re.findall(
        r"^\|(?:[^|]*\|){3} ([^|]*) \|.*\[([^]]+)\]\(#", page.read_text("utf-8"), re.MULTILINE
    )
    return {id: value for value, id in rows}


def shows(text: str, value: str, unit: str) -> bool:
    """Returns whether a text contains a value, or one of its parts, as a number or as words."""
    return any(_is(one, unit, line) for one in value.split(", ") for line in text.splitlines())


def _is(wanted: str, unit: str, line: str) -> bool:
    try:
        number = float(wanted)
    except ValueError:
        return wanted in line
    if abs(number) < 10 and number == int(number) and not re.search(NAMED.get(unit, "$^"), line):
        return False
    scale = PREFIXES.get(unit.removesuffix("s"), 1.0) if unit.endswith("s") else 1.0
    exact = number * scale
    # A single digit is too imprecise to identify a value.
    return any(
        abs(exact - shown) <= half and (half <= 0.02 * abs(exact) or shown == exact)
        for shown, half in _numbers(line)
    )


def _numbers(line: str) -> Iterator[tuple[float, float]]:
    """Yields the numbers of a line, with times in seconds, and half a unit of their last digit."""
    for text, is_time, prefix in TOKEN.findall(line):
        plain = text.replace(",", "")
        mantissa, _, exponent = plain.partition("e")
        decimals = len(mantissa.partition(".")[2])
        scale = PREFIXES[prefix] if is_time else 1.0
        half = 0.5 * 10 ** (int(exponent or 0) - decimals) * scale
        # The page itself rounds to six digits.
        yield float(plain) * scale, half + 5e-6 * abs(float(plain)) * scale


CASES = [
    (paper, claim.id, claim.command, claim.unit, isinstance(claim.judge, NotDone))
    for paper in PAPERS
    for claim in load(paper)
    if claim.command
]


@pytest.mark.parametrize(("paper", "id", "command", "unit", "is_beside"), some_of(CASES, 8))
def test_a_command_of_an_item_shows_its_value(
    paper: str,
    id: str,
    command: str,
    unit: str,
    is_beside: bool,
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A command of a claim that is not judged shows a related value."""
    monkeypatch.chdir(ROOT)
    done = run(*shlex.split(command)[1:])
    assert done.code == 0, done.err
    assert is_beside or shows(done.out, computed(paper)[id], unit), done.out


@pytest.mark.parametrize(
    ("line", "value", "unit", "is_shown"),
    [
        ("time             10.37 ms", "0.0103663", "s", True),
        ("time             10.37 ms", "0.01043", "s", False),
        ("steps  1023 of 1024", "1023", "slots", True),
        ("steps  4", "4", "slots", True),
        ("ranks  4", "4", "slots", False),
        ("sent by ring, then recursive_doubling", "ring, recursive_doubling", "", True),
        ("33.3 %", "33.3333", "%", True),
        ("1 of 1", "0.99993", "times", False),
        ("1,023 slots, 17 ports", "1023, 18", "", True),
        ("1,022 slots, 17 ports", "1023, 18", "", False),
    ],
)
def test_a_value_is_found_where_it_is_shown(
    line: str, value: str, unit: str, is_shown: bool
) -> None:
    assert shows(line, value, unit) is is_shown
