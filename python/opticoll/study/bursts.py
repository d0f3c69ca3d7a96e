"""Burst-switched networks: losses of independent cases.

>>> from opticoll.study.bursts import Case, run
>>> fabric = "ladder:columns=5,computers=10,wavelengths=28,rate=10Gb/s"
>>> (done,) = run([Case(fabric, {"bursts": "1e4", "warm_up": "0"})])
>>> done.row["bursts"], done.row["lost"]
(10000, 0)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypedDict

from opticoll._core import BurstOutcome, burst_rate, burst_settings, check_bursts, simulate_bursts

__all__ = ["NAMED", "BurstRow", "Case", "Details", "Done", "details", "expected", "run"]

PICOSECONDS = 10**12

NAMED = ("source", "intensity", "signalling", "assignment", "converters", "routing")
"""Settings with a column of their own; each may have several values."""


@dataclass(frozen=True)
class Case:
    """Settings, as text, of a burst-switched network."""

    fabric: str
    settings: dict[str, str]

    def value(self, name: str) -> str:
        """A setting, or what holds where it is not given."""
        default = {one["name"]: one["options"][0][1] for one in burst_settings()}
        return self.settings.get(name, default[name])


class BurstRow(TypedDict):
    """One case. The loss is between loss_low and loss_high with a confidence of 95 %."""

    fabric: str
    injection_bandwidth: int
    source: str
    intensity: float
    signalling: str
    assignment: str
    converters: str
    routing: str
    settings: str
    bursts: int
    lost: int
    loss: float
    loss_low: float
    loss_high: float
    lost_at_links: int
    lost_at_converters: int
    lost_at_receivers: int
    mean_wait_s: float
    busiest_link: str
    busiest_utilisation: float
    mean_utilisation: float
    wasted_utilisation: float
    simulated_s: float


class Share(TypedDict):
    """Bursts whose end is known, and those of them that were lost."""

    offered: int
    lost: int


class HopShare(Share):
    """Of bursts with so many links on their way."""

    links: int


class PairShare(Share):
    """Of bursts from the computers of one node to those of another, or of the same."""

    source: int
    destination: int


class Moment(Share):
    """Of a round of all replications, which ended then on average."""

    end_s: float


class LinkRow(TypedDict):
    """How much of a link's wavelengths was held, and how much of that in vain."""

    link: str
    utilisation: float
    wasted: float
    refused: int


class Details(TypedDict):
    """What JSON says of a case beyond its row."""

    by_hops: list[HopShare]
    by_pair: list[PairShare]
    links: list[LinkRow]
    over_time: list[Moment]


@dataclass(frozen=True)
class Done:
    """A case that was simulated."""

    case: Case
    outcome: BurstOutcome
    row: BurstRow


def expected(cases: Sequence[Case]) -> int:
    """Bursts of all cases, at most; raises what `run` would raise."""
    for case in cases:
        check_bursts(case.fabric, case.settings)
    return sum(int(float(case.value("bursts"))) for case in cases)


def run(
    cases: Sequence[Case],
    threads: int = 1,
    progress: Callable[[int], object] | None = None,
    finished: Callable[[BurstRow], object] | None = None,
) -> list[Done]:
    """Simulate the cases one after the other; the results do not depend on the threads.

    `progress` is called with the number of bursts measured so far, in all cases; `finished` with
    each row as soon as it is there.

    Raises
    ------
    FabricError, SimulationError
        A network or setting that is none.
    """
    done: list[Done] = []
    before = 0
    for case in cases:

        def watch(bursts: int, _target: int, before: int = before) -> None:
            if progress is not None:
                progress(before + bursts)

        outcome = simulate_bursts(case.fabric, case.settings, threads=threads, progress=watch)
        before += int(float(case.value("bursts")))
        done.append(Done(case, outcome, _row(case, outcome)))
        if finished is not None:
            finished(done[-1].row)
    return done


def details(outcome: BurstOutcome) -> Details:
    """Losses by links on the way, by pair of nodes and over time; links."""
    hops, pairs, moments = outcome.by_hops, outcome.by_pair, outcome.moments
    links, nodes = outcome.links, len(pairs["offered"])
    return Details(
        by_hops=[
            HopShare(links=number, offered=int(offered), lost=int(lost))
            for number, (offered, lost) in enumerate(
                zip(hops["offered"], hops["lost"], strict=True)
            )
        ],
        by_pair=[
            PairShare(
                source=source,
                destination=destination,
                offered=int(pairs["offered"][source, destination]),
                lost=int(pairs["lost"][source, destination]),
            )
            for source in range(nodes)
            for destination in range(nodes)
        ],
        links=[
            LinkRow(
                link=name,
                utilisation=float(links["utilisation"][number]),
                wasted=float(links["wasted"][number]),
                refused=int(links["refused"][number]),
            )
            for number, name in enumerate(outcome.link_names)
        ],
        over_time=[
            Moment(end_s=int(end) / PICOSECONDS, offered=int(offered), lost=int(lost))
            for end, offered, lost in zip(
                moments["end_ps"], moments["offered"], moments["lost"], strict=True
            )
        ],
    )


def _row(case: Case, outcome: BurstOutcome) -> BurstRow:
    utilisation = outcome.links["utilisation"]
    busiest = int(utilisation.argmax())
    others = {name: text for name, text in case.settings.items() if name not in NAMED}
    return BurstRow(
        fabric=outcome.network,
        injection_bandwidth=burst_rate(case.fabric),
        source=case.value("source"),
        intensity=float(case.value("intensity")),
        signalling=case.value("signalling"),
        assignment=case.value("assignment"),
        converters=case.value("converters"),
        routing=case.value("routing"),
        settings=" ".join(f"{name}={text}" for name, text in others.items()),
        bursts=outcome.bursts,
        lost=outcome.lost,
        loss=outcome.loss,
        loss_low=outcome.loss_low,
        loss_high=outcome.loss_high,
        lost_at_links=outcome.lost_at["links"],
        lost_at_converters=outcome.lost_at["converters"],
        lost_at_receivers=outcome.lost_at["receivers"],
        mean_wait_s=outcome.mean_wait_ps / PICOSECONDS,
        busiest_link=outcome.link_names[busiest],
        busiest_utilisation=float(utilisation[busiest]),
        mean_utilisation=float(utilisation.mean()),
        wasted_utilisation=float(outcome.links["wasted"].mean()),
        simulated_s=outcome.simulated_seconds,
    )
