"""Gaps of `auto` to the bound on graphs: torus, servers of GPUs, fat tree, dragonfly.

    python validation/any_graph_table.py                         the table in Markdown
    python validation/any_graph_table.py --json rows.json        its rows as well
    python validation/any_graph_table.py --fabrics dgx_a100 --collectives broadcast --sizes 1MiB

Each plan is verified. Exit code 1 where a gap is above its goal.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import opticoll

FABRICS = {
    "torus 4x4x4": "torus:dims=4x4x4,latency=500ns",
    "2 x DGX-1": "ndv2:boxes=2,latency=500ns",
    "2 x DGX A100": "dgx_a100:boxes=2,latency=500ns,library=none",
    "fat tree 256, 2:1": "fat_tree:down=16x16,up=1x8,latency=500ns",
    "dragonfly 72": "dragonfly:terminals_per_router=2,routers_per_group=4,global_per_router=2,"
    "latency=500ns",
}
"""Every link with 500 ns; the names stand in the table."""

COLLECTIVES = ("all_gather", "reduce_scatter", "all_reduce", "broadcast", "reduce", "all_to_all")
SIZES = ("1KiB", "1MiB", "100MB")

GOALS = {"1KiB": 100.0, "1MiB": 60.0, "100MB": 5.0}
"""Goals in percent above the bound, by size."""

ALL_REDUCE_GOAL = 10.0
"""Goal in percent above the bound for an all_reduce of 100 MB."""


@dataclass(frozen=True)
class Row:
    """A plan of `auto` beside its bound."""

    fabric: str
    collective: str
    size: str
    time_s: float
    bound_s: float
    bound: str
    gap_percent: float
    goal_percent: float
    steps: int
    algorithm: str
    planned_s: float

    @property
    def is_met(self) -> bool:
        """True if the gap is within its goal."""
        return self.gap_percent <= self.goal_percent


def row(fabric: str, collective: str, size: str) -> Row:
    """Plans, verifies and times a collective."""
    begun = time.perf_counter()
    plan = opticoll.plan(collective, FABRICS[fabric], "auto", size=size)
    planned = time.perf_counter() - begun
    assert plan.verify() == [], f"{fabric}, {collective}, {size}: violated"
    measured = opticoll.measure(plan, size)
    time_s, bound_s = float(measured.time_s), float(measured.bound_time_s)
    large_all_reduce = collective == "all_reduce" and size == "100MB"
    return Row(
        fabric=fabric,
        collective=collective,
        size=size,
        time_s=time_s,
        bound_s=bound_s,
        bound=measured.bound_time_name,
        gap_percent=100 * (time_s / bound_s - 1),
        goal_percent=ALL_REDUCE_GOAL if large_all_reduce else GOALS[size],
        steps=plan.slots,
        algorithm=plan.algorithm,
        planned_s=planned,
    )


def rows(fabrics: Iterable[str], collectives: Iterable[str], sizes: Iterable[str]) -> Iterator[Row]:
    """Yields a row for each fabric, collective and size."""
    collectives, sizes = list(collectives), list(sizes)
    for fabric in fabrics:
        for collective in collectives:
            for size in sizes:
                print(f"{fabric}, {collective}, {size}", file=sys.stderr)
                yield row(fabric, collective, size)


def table(made: Iterable[Row]) -> str:
    """Returns the rows in Markdown; a gap above its goal is bold."""
    lines = [
        "| fabric | collective | size | time | bound | gap | algorithm |",
        "|---|---|---|--:|--:|--:|---|",
    ]
    for one in made:
        gap = f"{one.gap_percent:.1f} %"
        lines.append(
            f"| {one.fabric} | {one.collective} | {one.size} | {1e6 * one.time_s:.4g} us "
            f"| {1e6 * one.bound_s:.4g} us | {gap if one.is_met else f'**{gap}**'} "
            f"| {one.algorithm} |"
        )
    return "\n".join(lines)


def main() -> int:
    """Prints the table; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fabrics", nargs="*", default=list(FABRICS), choices=list(FABRICS))
    parser.add_argument("--collectives", nargs="*", default=list(COLLECTIVES))
    parser.add_argument("--sizes", nargs="*", default=list(SIZES), choices=list(SIZES))
    parser.add_argument("--json", type=Path, help="write the rows here, too")
    arguments = parser.parse_args()
    made = list(rows(arguments.fabrics, arguments.collectives, arguments.sizes))
    print(table(made))
    if arguments.json is not None:
        text = json.dumps([asdict(one) for one in made], indent=2)
        arguments.json.write_text(f"{text}\n", encoding="utf-8")
    above = [one for one in made if not one.is_met]
    print(f"{len(made)} plans, {len(above)} above their goals", file=sys.stderr)
    return 1 if above else 0


if __name__ == "__main__":
    sys.exit(main())
