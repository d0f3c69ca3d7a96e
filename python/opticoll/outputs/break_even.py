"""The fastest plan over the reconfiguration time or the size, and the points at which it changes.

Plans that differ only in numbers of their options, such as `shifts:shifts=1x15x11` and
`shifts:shifts=1x12`, are of one kind: the planner chose the numbers for the time at hand.

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
"""Ratio of the times on both sides of a break-even, down to which the break-even is refined."""

WORD = re.compile(r"[a-z_]+")

Row = Mapping[str, Any]
"""Row of `opticoll compare`."""

Case = tuple[str, int]
"""Fabric without its reconfiguration time, and size in bytes."""


def kind(row: Row) -> str:
    """Returns the plan of a row without the numbers in its options.

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
    """Returns the specification with a reconfiguration time of 0, if the fabric has such a time."""
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
    """Returns rows of each fabric and size with several reconfiguration times, and all others."""
    if len({row.get("fabric_reconfiguration_s") for row in rows} - {None}) < 2:
        return [], list(rows)
    cases = _cases(rows).values()
    several = [case for case in cases if len({_time_ps(row) for row in case}) > 1]
    others = [row for case in cases if case not in several for row in case]
    return several, others


@dataclass(frozen=True)
class Lead:
    """Fastest verified plan at a reconfiguration time in picoseconds, or at a size in bytes."""

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
    """Returns the fastest plan at each reconfiguration time, or other place, in increasing order.

    Among equally fast plans the previous leader is preferred, then a plan of the same kind, then
    the plan with the shortest name.
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
        best = equal[order.index(min(order))]
        leading.append(Lead(at, best))
    return leading


def refined(
    rows: Sequence[Of], compute: Callable[[str, int, list[str]], Iterable[Of]]
) -> Iterator[Of]:
    """Yields rows at further reconfiguration times until changes of the lead are known within 1 %.

    The lead changes to another kind of plan, or to another number of reconfigurations.

    `compute` makes the rows on a fabric, for a size, by the algorithms that lead at some known
    time.
    """
    for (fabric, size_bytes), case_rows in _cases(rows).items():
        known = list(case_rows)
        names = list(dict.fromkeys(lead.row["algorithm"] for lead in leads(case_rows)))
        while middle := _widest(leads(known)):
            further = Fabric(fabric).with_options(reconfiguration=format_time(middle)).spec
            for row in compute(further, size_bytes, names):
                known.append(row)
                yield row


def _widest(leading: Sequence[Lead]) -> int | None:
    """Returns the middle of the first interval that is too wide and changes the lead, or None."""
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
    """Returns runs of consecutive leads of the same kind."""
    return [list(run) for _, run in groupby(leading, key=lambda lead: lead.kind)]


def break_evens(leading: Sequence[Lead]) -> list[Lead]:
    """Returns the leads at which the kind of plan changes."""
    return [now for before, now in pairwise(leading) if now.kind != before.kind]


def fabric_words(fabric: str) -> str:
    """Returns the name of a fabric in titles, without its reconfiguration time."""
    return fabric_text(without_time(fabric)).replace(",reconfiguration=0s", "")


def spans(leading: Sequence[Lead]) -> str:
    """Returns a sentence with the kind of plan that leads in each range."""
    overtaking = break_evens(leading)
    if not overtaking:
        return f"fastest at all these times: {leading[0].kind}"
    then = [f"from {human_time(lead.at)} on {lead.kind}" for lead in overtaking]
    return "; ".join([f"fastest: {leading[0].kind}", *then])
