"""Collectives over light paths that other traffic may refuse: times of independent cases.

>>> from opticoll.study.congestion import Case, run
>>> case = Case(
...     fabric="ladder:columns=5,wavelengths=4,rate=10Gb/s,latency=0s",
...     collective="all_gather", algorithm="ring", size_bytes=10**6,
...     settings={"ports": "2", "replications": "1"},
... )
>>> (done,) = run([case])
>>> done.row["ranks"], done.row["verified"], done.row["time_s"]
(10, True, 0.0181)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypedDict

import opticoll
from opticoll import registry
from opticoll._core import (
    CollectiveRuns,
    OpticollError,
    Plan,
    Violation,
    burst_computers,
    burst_rate,
    burst_settings,
    congestion_settings,
    place_ranks,
    simulate_collectives,
)
from opticoll.errors import AlgorithmError, UsageError
from opticoll.registry import canonical, nearest

__all__ = ["PLACEMENTS", "Case", "CongestionRow", "Done", "ViolatedPlanError", "expected", "run"]

PICOSECONDS = 10**12


class ViolatedPlanError(UsageError):
    """A plan that must not be carried out, and what it violates."""

    def __init__(self, algorithm: str, plan: Plan, violations: list[Violation]) -> None:
        super().__init__(f"the plan of `{algorithm}` is violated: {violations[0].sentence}")
        self.plan = plan
        self.violations = violations


PLACEMENTS = {
    "natural": "rank r of the first collective at computer r, then those of the second",
    "spread": "one rank after the other at the next node",
    "best": "heavy pairs on short routes: the least bytes times hops found",
}
"""Where ranks sit."""

REPLICATIONS = 20
"""Of each case, if not given."""


@dataclass(frozen=True)
class Case:
    """A collective, its place, and the bursts beside it.

    `settings` are those of `congestion_settings` and, for the bursts, of `burst_settings`, as text.
    An intensity of 0 stands for no bursts.
    """

    fabric: str
    collective: str
    algorithm: str
    """`auto` takes the fastest of all that run, each simulated once without bursts beside it."""
    size_bytes: int
    ranks: int | None = None
    """As many as there are computers for if not given."""
    copies: int = 1
    """Collectives at once, on computers of their own."""
    root: int = 0
    placement: str = "natural"
    intensity: float = 0.0
    settings: dict[str, str] = field(default_factory=dict)

    def value(self, name: str) -> str:
        """A setting, or what holds where it is not given."""
        if name == "replications" and name not in self.settings:
            return str(REPLICATIONS)
        records = [*congestion_settings(), *burst_settings()]
        default = {one["name"]: one["options"][0][1] for one in records}
        return self.settings.get(name, default[name])


class CongestionRow(TypedDict):
    """One case. Times are those of replications in which no collective gave up.

    `time_low_s` and `time_high_s` are the ends of the mean's interval of 95 % (Student), null where
    fewer than two did not give up; sums are over the collectives of a replication.
    """

    fabric: str
    collective: str
    algorithm: str
    chosen: str
    size_bytes: int
    size_convention: str
    ranks: int
    injection_bandwidth: int
    copies: int
    congestion: str
    ports: int
    placement: str
    intensity: float
    settings: str
    replications: int
    failed: int
    time_s: float | None
    time_low_s: float | None
    time_high_s: float | None
    longest_s: float | None
    waited_s: float
    refusals: float
    phases: float
    degraded: float
    bursts: int
    burst_loss: float | None
    hop_bytes: int
    hop_bytes_bound: int
    hop_bytes_least: bool
    verified: bool
    failure: str


@dataclass(frozen=True)
class Done:
    """A case that was simulated."""

    case: Case
    runs: CollectiveRuns
    row: CongestionRow


def expected(cases: Sequence[Case]) -> int:
    """Replications of all cases."""
    return sum(int(float(case.value("replications"))) for case in cases)


@dataclass(frozen=True)
class Places:
    """Computers of each collective's ranks, and the links that its bytes go over."""

    computers: list[list[int]]
    hop_bytes: int
    bound: int
    least: bool


def run(
    cases: Sequence[Case],
    threads: int = 1,
    progress: Callable[[int], object] | None = None,
    finished: Callable[[CongestionRow], object] | None = None,
) -> list[Done]:
    """Carry out the cases one after the other; the results do not depend on the threads.

    Every replication's transfers, in the order in which they arrived, are verified anew.
    `progress` is called with the number of replications so far, in all cases; `finished` with each
    row as soon as it is there.

    Raises
    ------
    ViolatedPlanError
        The algorithm's plan is wrong.
    OpticollError
        An unknown name, ranks that do not fit the network, a setting that is none.
    """
    done: list[Done] = []
    before = 0
    placed: dict[tuple[object, ...], tuple[Plan, Places]] = {}
    for case in cases:

        def watch(replications: int, before: int = before) -> None:
            if progress is not None:
                progress(before + replications)

        # Cases that differ in bursts and policies share plan and places.
        known = (case.fabric, case.collective, case.algorithm, case.size_bytes, case.ranks)
        key: tuple[object, ...] = (*known, case.copies, case.root, case.placement)
        chooses = canonical(case.algorithm, [registry.DEFAULT_ALGORITHM]) is not None
        if chooses:
            key = (*key, *sorted(case.settings.items()))
        if key not in placed:
            placed[key] = _fastest(case, threads) if chooses else _place(case)
        plan, places = placed[key]
        settings = {**case.settings, "replications": case.value("replications")}
        if case.intensity > 0:
            settings["intensity"] = repr(case.intensity)
        runs = simulate_collectives(
            case.fabric,
            plan,
            places.computers,
            case.size_bytes,
            settings,
            external=case.intensity > 0,
            threads=threads,
            progress=watch,
        )
        before += len(runs)
        done.append(Done(case, runs, _row(case, plan, places, runs)))
        if finished is not None:
            finished(done[-1].row)
    return done


def _fastest(case: Case, threads: int) -> tuple[Plan, Places]:
    """The plan that takes the least time without bursts, of all algorithms that run; its places."""
    settings = {**case.settings, "replications": "1"}
    best: tuple[float, Plan, Places] | None = None
    refused: OpticollError | None = None
    for name in registry.algorithm_names(case.collective):
        if name == registry.DEFAULT_ALGORITHM:
            continue
        try:
            plan, places = _place(replace(case, algorithm=name))
        except AlgorithmError as error:
            refused = error
            continue
        runs = simulate_collectives(
            case.fabric,
            plan,
            places.computers,
            case.size_bytes,
            settings,
            external=False,
            threads=threads,
        )
        time_ps = next((time for time in runs.times_ps if time is not None), None)
        time = float("inf") if time_ps is None else float(time_ps)
        if best is None or time < best[0]:
            best = (time, plan, places)
    if best is None:
        raise refused or UsageError(f"no algorithm of {case.collective} runs here")
    return best[1:]


def _place(case: Case) -> tuple[Plan, Places]:
    nodes, each = burst_computers(case.fabric)
    copies = case.copies
    ranks = nodes * each // copies if case.ranks is None else case.ranks
    if copies < 1 or ranks < 1 or ranks * copies > nodes * each:
        raise UsageError(
            f"{copies} collectives of {ranks} ranks do not fit the {nodes * each} computers of "
            f"`{case.fabric}`; give fewer ranks or collectives, or computers=... at each node"
        )
    # A crossbar says nothing of routes: the plan is only what moves, proved.
    plan = opticoll.plan(
        case.collective, f"crossbar:ranks={ranks},rate=10Gb/s", case.algorithm, root=case.root
    )
    if violations := plan.verify():
        raise ViolatedPlanError(case.algorithm, plan, violations)
    natural = list(range(ranks * copies))
    spread = [rank % nodes * each + rank // nodes for rank in natural]
    name = canonical(case.placement, PLACEMENTS)
    if name is None:
        raise UsageError(
            f"there is no placement `{case.placement}`{nearest(case.placement, PLACEMENTS)}"
        )
    starts = [spread] if name == "spread" else [natural, spread]
    sites, cost, bound, least = place_ranks(
        case.fabric, plan, copies, case.size_bytes, starts, search=name == "best"
    )
    computers = [sites[first : first + ranks] for first in range(0, len(sites), ranks)]
    return plan, Places(computers, cost, bound, least)


def _row(case: Case, plan: Plan, places: Places, runs: CollectiveRuns) -> CongestionRow:
    columns, times = runs.columns, runs.times_ps
    ended = [time for time in times if time is not None]
    low, high = runs.interval_seconds or (None, None)
    verified, failures = True, []
    for number in range(len(runs)):
        for collective in range(case.copies):
            failure = runs.failure(number, collective)
            if failure is None:
                verified &= runs.executed(number, collective).verify() == []
                continue
            step, (one, other), tries, at = failure
            failures.append(
                f"step {step}: the light path between computers {one} and {other} was refused "
                f"{tries} times, the last after {at / PICOSECONDS:.3g} s"
            )
    own = ("congestion", "ports", "replications")
    others = {name: text for name, text in case.settings.items() if name not in own}
    bursts = int(columns["bursts"].sum())
    return CongestionRow(
        fabric=runs.network,
        collective=plan.collective.kind,
        algorithm=case.algorithm,
        chosen=plan.algorithm,
        size_bytes=case.size_bytes,
        size_convention=plan.collective.size_convention,
        ranks=len(places.computers[0]),
        injection_bandwidth=int(case.value("ports")) * burst_rate(case.fabric),
        copies=case.copies,
        congestion=case.value("congestion"),
        ports=int(case.value("ports")),
        placement=case.placement,
        intensity=case.intensity,
        settings=" ".join(f"{name}={text}" for name, text in others.items()),
        replications=len(runs),
        failed=runs.failed,
        time_s=runs.mean_seconds,
        time_low_s=low,
        time_high_s=high,
        longest_s=max(ended) / PICOSECONDS if ended else None,
        waited_s=float(columns["waited_ps"].mean()) / PICOSECONDS,
        refusals=float(columns["refusals"].mean()),
        phases=float(columns["phases"].mean()),
        degraded=float(columns["degraded"].mean()),
        bursts=bursts,
        burst_loss=int(columns["bursts_lost"].sum()) / bursts if bursts else None,
        hop_bytes=places.hop_bytes,
        hop_bytes_bound=places.bound,
        hop_bytes_least=places.least,
        verified=verified,
        failure=failures[0] if failures else "",
    )
