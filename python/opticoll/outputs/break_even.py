"""Fastest plans by reconfiguration time or size, and the values at which the fastest plan changes.

Plans that differ only in the numbers in their options, such as `shifts:shifts=1x15x11` and
`shifts:shifts=1x12`, are of the same kind. The planner adapts these numbers to the reconfiguration
time.

>>> row = {"verified": True, "fabric": "circuit_switch:ranks=4", "size_bytes": 8}
>>> at = lambda time, name, took: row | {
...     "fabric_reconfiguration_s": time, "algorithm": name, "chosen": name, "time_ps": took}
>>> rows = [at(0, "ring", 30), at(0, "swing", 20), at(1e-6, "ring", 30), at(1e-6, "swing", 50)]
>>> spans(leads(rows))
'fastest: swing; from 1.000 us on ring'
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby, pairwise
from typing import Any, TypeVar

from opticoll._core import Fabric, format_time
from opticoll.outputs.fabric_names import fabric_text
from opticoll.outputs.layout import PICOSECONDS, human_time

MAX_BREAK_EVEN_RATIO = 1.01
"""Maximum ratio of the times just above and below a break-even; larger gaps are refined."""

WORD = re.compile(r"[a-z_]+")

Row = Mapping[str, Any]
"""Row of `opticoll compare`."""

Case = tuple[str, int]
"""Fabric without its reconfiguration time, and size in bytes."""


def kind(row: Row) -> str:
    """Returns a row's kind of plan: its specification without the numbers in options.

    >>> kind({"chosen": "switch_configurations:algorithm=swing,configurations=one"})
    'switch_configurations:algorithm=swing,configurations=one'
    >>> kind({"chosen": "shifts:shifts=1x15x11"})
    'shifts'
    """
    name, _, options = row["chosen"].partition(":")
    words = [part for part in options.split(",") if WORD.fullmatch(part.partition("=")[2])]
    return f"{name}:{','.join(words)}" if words else name


@lru_cache(maxsize=4096)
def without_time(fabric: str) -> str:
    """Returns the fabric's specification with its reconfiguration time, if any, set to 0."""
    whole = Fabric(fabric)
    has_time = "reconfiguration" in whole.options
    return whole.with_options(reconfiguration="0s").spec if has_time else fabric


Of = TypeVar("Of", bound=Row)


def _cases(rows: Iterable[Of]) -> dict[Case, list[Of]]:
    cases: dict[Case, list[Of]] = {}
    for row in rows:
        cases.setdefault((without_time(row["fabric"]), row["size_bytes"]), []).append(row)
    return cases


def _time_ps(row: Row) -> int:
    """Returns the reconfiguration time of the row's fabric in picoseconds."""
    return round((row.get("fabric_reconfiguration_s") or 0.0) * PICOSECONDS)


def apart(rows: Sequence[Of]) -> tuple[list[list[Of]], list[Of]]:
    """Returns groups of rows that differ in the reconfiguration time, and a list of other rows.

    All rows of a group have the same fabric, apart from the reconfiguration time, and the same
    size.
    """
    if len({row.get("fabric_reconfiguration_s") for row in rows} - {None}) < 2:
        return [], list(rows)
    cases = _cases(rows).values()
    several = [case for case in cases if len({_time_ps(row) for row in case}) > 1]
    others = [row for case in cases if case not in several for row in case]
    return several, others


@dataclass(frozen=True)
class Lead:
    """Fastest verified plan at one value of the horizontal axis.

    The value `at` is a reconfiguration time in picoseconds, or a size in bytes.
    """

    at: int
    row: Row

    @property
    def kind(self) -> str:
        """Kind of the plan."""
        return kind(self.row)

    @property
    def plan(self) -> tuple[str, int | None]:
        """Kind of the plan, and the number of reconfigurations."""
        return _plan(self.row)


def _plan(row: Row) -> tuple[str, int | None]:
    return kind(row), row.get("reconfigurations")


def leads(rows: Sequence[Row], place: Callable[[Row], int] = _time_ps) -> list[Lead]:
    """Returns the fastest plan at each value of `place`, in ascending order of the values.

    Among equally fast plans, the plan that is fastest at the preceding value is preferred, then a
    plan of the same kind as that plan, then the plan with the shortest name.
    """
    by_place: dict[int, list[Row]] = {}
    for row in rows:
        if row["verified"]:
            by_place.setdefault(place(row), []).append(row)
    leading: list[Lead] = []
    for at, rows_at in sorted(by_place.items()):
        least = min(row["time_ps"] for row in rows_at)
        equal = [row for row in rows_at if row["time_ps"] == least]
        before = leading[-1].plan if leading else (None, None)
        order = [
            (_plan(row) != before, kind(row) != before[0], len(row["chosen"]), row["chosen"])
            for row in equal
        ]
        preferred = equal[order.index(min(order))]
        leading.append(Lead(at, preferred))
    return leading


def refined(
    rows: Sequence[Of], compute: Callable[[str, int, list[str]], Iterable[Of]]
) -> Iterator[Of]:
    """Yields rows at further reconfiguration times until each break-even is known within 1 %.

    At a break-even, the kind of the fastest plan changes, or the plan's number of reconfigurations.
    `compute` returns the rows of some algorithms for a fabric and a size. These algorithms are the
    fastest at some reconfiguration time in the given rows.
    """
    for (fabric, size_bytes), case_rows in _cases(rows).items():
        all_rows = list(case_rows)
        names = list(dict.fromkeys(lead.row["algorithm"] for lead in leads(case_rows)))
        while middle := _widest(leads(all_rows)):
            further = Fabric(fabric).with_options(reconfiguration=format_time(middle)).spec
            for row in compute(further, size_bytes, names):
                all_rows.append(row)
                yield row


def _widest(leading: Sequence[Lead]) -> int | None:
    """Returns a time within the first interval that encloses a break-even and is too wide.

    Returns None if no interval is too wide.
    """
    for low, high in pairwise(leading):
        start = max(low.at, 1)
        middle = _rounded(math.sqrt(start * high.at))
        if (
            low.plan != high.plan
            and high.at > MAX_BREAK_EVEN_RATIO * start
            and start < middle < high.at
        ):
            return middle
    return None


def _rounded(time_ps: float) -> int:
    """Returns a time rounded to four significant digits."""
    return int(float(f"{time_ps:.3e}"))


def runs(leading: Sequence[Lead]) -> list[list[Lead]]:
    """Groups consecutive fastest plans of the same kind."""
    return [list(run) for _, run in groupby(leading, key=lambda lead: lead.kind)]


def break_evens(leading: Sequence[Lead]) -> list[Lead]:
    """Returns each fastest plan whose kind differs from the kind of the plan before it."""
    return [now for before, now in pairwise(leading) if now.kind != before.kind]


def fabric_words(fabric: str) -> str:
    """Returns a fabric's name for titles, without its reconfiguration time."""
    return fabric_text(without_time(fabric)).replace(",reconfiguration=0s", "")


def spans(leading: Sequence[Lead]) -> str:
    """Returns a sentence with the fastest kind of plan in each range of times or sizes."""
    overtaking = break_evens(leading)
    if not overtaking:
        return f"fastest at all these times: {leading[0].kind}"
    then = [f"from {human_time(lead.at)} on {lead.kind}" for lead in overtaking]
    return "; ".join([f"fastest: {leading[0].kind}", *then])
