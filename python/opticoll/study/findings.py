"""Findings: what a paper prints beside what was computed, with a verdict.

>>> from opticoll.study.findings import compared
>>> compared("table.ring", 1023, 1023, "steps", "N - 1 steps.")["verdict"]
'reproduced'
>>> compared("table.one_stage", 128, 2048, "steps", "The formula gives 2048.")["verdict"]
'refuted'
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypedDict

__all__ = ["Finding", "Progress", "Value", "Verdict", "compared", "finding", "judged"]

Verdict = Literal["reproduced", "refuted", "conditional", "not_reproducible"]
"""`reproduced`: the paper's value comes out. `refuted`: another value comes out. `conditional`: it
comes out under a reading that the paper does not state, or in part. `not_reproducible`: the paper
does not say enough to compute it."""

Value = int | float | str | None

Progress = Callable[[str, int, int], None]
"""Called with what comes next, the number of parts done, and of all."""


class Finding(TypedDict):
    """One claim of a paper; `paper` and `computed` are counted in `unit`."""

    id: str
    paper: Value
    computed: Value
    unit: str
    verdict: Verdict
    note: str


def finding(
    id: str, paper: Value, computed: Value, unit: str, verdict: Verdict, note: str
) -> Finding:
    """A finding with a verdict that was reasoned out elsewhere; the note says why."""
    return Finding(id=id, paper=paper, computed=computed, unit=unit, verdict=verdict, note=note)


def compared(
    id: str,
    paper: int | float,
    computed: int | float,
    unit: str,
    note: str,
    *,
    tolerance: float = 0.0,
) -> Finding:
    """A finding that is reproduced where the values differ by at most `tolerance`, else refuted."""
    return finding(id, paper, computed, unit, judged(paper, computed, tolerance), note)


def judged(paper: int | float, computed: int | float, tolerance: float = 0.0) -> Verdict:
    """`reproduced` where the values differ by at most `tolerance`, else `refuted`."""
    # Printed decimals are no binary fractions: a difference may exceed the tolerance by rounding.
    return "reproduced" if abs(computed - paper) <= tolerance + 1e-9 else "refuted"
