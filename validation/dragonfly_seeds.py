"""Fills the table of draws in docs/dragonfly.md: opticoll over seeds beside CODES's one draw.

    python validation/dragonfly_seeds.py --seeds 20

CODES draws its small delays and random groups; each of its values is one draw. Here each seed
draws both, and a row says in which interval ours lie. CODES's values are those of the workloads
that `cargo run --release --example dragonfly_peer` runs without draws.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from statistics import fmean

from dragonfly_page import PAGE, fill, markdown

import opticoll
from opticoll import Plan
from opticoll_papers.dragonfly.cases import ALGORITHMS, fabric, gather
from opticoll_papers.dragonfly.runs import settings


@dataclass(frozen=True)
class Draws:
    """A quantity in microseconds over seeds, beside CODES's value."""

    workload: str
    quantity: str
    codes: float
    ours: tuple[float, ...]

    @property
    def mean(self) -> float:
        """The mean of ours."""
        return fmean(self.ours)

    @property
    def within(self) -> bool:
        """True if CODES's value lies between our least and our greatest value."""
        return min(self.ours) <= self.codes <= max(self.ours)


@dataclass(frozen=True)
class Workload:
    """A workload whose quantities a seed gives; `codes` are CODES's values by quantity."""

    name: str
    codes: dict[str, float]
    run: Callable[[int], dict[str, float]]


FINISH = "finish"
LAST, MEAN, LONGEST = "last delivery", "mean message", "longest message"


@lru_cache
def proven(network: int, name: str) -> Plan:
    """Returns the verified plan of an all_gather."""
    plan = opticoll.plan("all_gather", fabric(network), ALGORITHMS[name][0])
    violations = plan.verify()
    assert not violations, violations
    return plan


def gathering(network: int, name: str, size: int, codes: float) -> Workload:
    """Returns the workload of an all_gather."""

    def run(seed: int) -> dict[str, float]:
        drawn = settings(gather(network, name, size)) | {"jitter": str(seed)}
        return {FINISH: proven(network, name).simulate(size, **drawn).time_ps / 1e6}

    ranks = fabric(network).ranks
    return Workload(f"{name}, {opticoll.format_size(size)} on {ranks}", {FINISH: codes}, run)


def driving(
    name: str, network: int, pattern: str, messages: int, routing: str, codes: dict[str, float]
) -> Workload:
    """Returns the workload of 2 KiB a microsecond from each terminal."""

    def run(seed: int) -> dict[str, float]:
        # Minimal routes have no groups to draw.
        routes = {} if routing == "minimal" else {"routing_seed": str(seed)}
        row = opticoll.traffic(
            fabric(network),
            pattern,
            size="2KiB",
            period="1us",
            messages=messages,
            routing=routing,
            jitter=str(seed),
            **routes,
        )
        latency = row.outcome.latencies.rows()[0]
        return {
            LAST: row.outcome.time_ps / 1e6,
            MEAN: latency["mean_ps"] / 1e6,
            LONGEST: latency["max_ps"] / 1e6,
        }

    return Workload(f"{name}, {routing}, {fabric(network).ranks}", codes, run)


SMALL_WORKLOADS = (gathering(2, "RING", 4096, 111.9),)

WORKLOADS = (
    *SMALL_WORKLOADS,
    gathering(2, "RING", 65536, 1676.8),
    gathering(4, "RING", 4096, 1677.9),
    gathering(4, "BRUCK shuffled", 64, 51.2),
    gathering(4, "BRUCK shuffled", 1024, 795.3),
    driving("W1", 2, "uniform", 100, "adaptive", {MEAN: 1.3324, LONGEST: 3.0214}),
    driving("W1", 4, "uniform", 100, "minimal", {MEAN: 1.4012, LONGEST: 5.2871}),
    driving("W1", 4, "uniform", 100, "adaptive", {MEAN: 1.4871, LONGEST: 3.8386}),
    driving("W1", 4, "uniform", 100, "valiant", {MEAN: 2.0078, LONGEST: 7.8019}),
    driving("W4", 4, "shift:by=32", 50, "valiant", {LAST: 99.2, MEAN: 28.5, LONGEST: 87.9}),
    driving("W4", 4, "shift:by=32", 50, "adaptive", {LAST: 143.2}),
    driving("W4", 4, "shift:by=32", 50, "progressive", {LAST: 143.2}),
)


def draws(workloads: Sequence[Workload], seeds: int, jobs: int = 1) -> Iterator[Draws]:
    """Yields each quantity of each workload over the seeds from 1 on."""
    with ThreadPoolExecutor(jobs) as pool:
        for workload in workloads:
            found = list(pool.map(workload.run, range(1, seeds + 1)))
            for quantity, codes in workload.codes.items():
                ours = tuple(one[quantity] for one in found)
                yield Draws(workload.name, quantity, codes, ours)


def table(rows: Sequence[Draws]) -> str:
    """Returns the rows as Markdown."""
    inside = sum(row.within for row in rows)
    lines = [
        [
            row.workload,
            row.quantity,
            f"{row.codes:g}",
            f"{row.mean:.5g}",
            f"{min(row.ours):.5g} to {max(row.ours):.5g}",
            f"{100 * (row.mean / row.codes - 1):+.1f} %",
            "yes" if row.within else "no",
        ]
        for row in rows
    ]
    heading = ["workload", "us", "CODES", "mean", "range", "mean to CODES", "CODES in the range"]
    head = (
        f"{len(rows[0].ours)} seeds; CODES's value lies in the range for {inside} of {len(rows)}."
    )
    return f"{head}\n\n{markdown(heading, lines, {2, 3, 4, 5})}"


def main() -> int:
    """Fills the table; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    rows = []
    for row in draws(WORKLOADS, arguments.seeds, arguments.jobs):
        rows.append(row)
        print(row.workload, row.quantity, row.codes, row.mean, sorted(row.ours), file=sys.stderr)
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(fill(page, {"seeds": table(rows)}), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
