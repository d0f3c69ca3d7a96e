"""Traffic of bursts: losses in a burst-switched network, in independent cases."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opticoll._core import Outcome, burst_rate, check_bursts, simulate_bursts
from opticoll.cli.option_types import listed
from opticoll.errors import UsageError
from opticoll.inputs.fabric_files import to_medium
from opticoll.names import defaults, without_defaults
from opticoll.outputs.fabric_names import fabric_text
from opticoll.outputs.layout import align, human_seconds
from opticoll.outputs.rows import OMITTED, Row, command_field, hidden, means, table
from opticoll.outputs.units import BitsPerSecond, Count, Fraction, Load, Seconds, Share
from opticoll.outputs.watch import Watch

if TYPE_CHECKING:
    from opticoll.inputs.fabric_files import FabricLike

NAMED = ("source", "offered_load", "signalling", "assignment", "converters", "routing")
"""Settings that have a column of their own and may have several values."""

DETAILS = ("by_hops", "by_pair", "links", "over_time")
"""Tables in a row, which CSV files omit."""


@dataclass(frozen=True)
class Case:
    """Case of traffic: a burst-switched network and its settings, as texts."""

    fabric: str
    settings: dict[str, str]

    def value(self, name: str) -> str:
        """Returns the value of a setting, or the default if the user set no value."""
        return self.settings.get(name, defaults("burst_settings")[name])


class HopShare(Row, core="bursts.by_hops"):
    """Bursts whose routes have the same number of links."""

    links: Count
    offered: Count
    lost: Count


class PairShare(Row, core="bursts.by_pair"):
    """Bursts from the hosts of one node to the hosts of another node, or of the same node."""

    source: Count
    destination: Count
    offered: Count
    lost: Count


class LinkShare(Row, core="bursts.links"):
    """Share of a link's wavelengths that bursts occupy, and the part that lost bursts occupy."""

    link: str
    utilisation: Fraction
    wasted: Fraction
    blocked: Count


class Moment(Row, core="bursts.moments"):
    """A round of bursts, summed over all replications."""

    end_s: Seconds
    offered: Count
    lost: Count


class BurstRow(Row, core="bursts"):
    """A simulated case of bursts, with 95 % confidence intervals."""

    fabric: str = means("Complete specification of the network, its hosts and wavelengths")
    injection_bandwidth: BitsPerSecond = means(
        "Bandwidth that a host can inject: its transmitter sends one burst at a time, on one "
        "wavelength"
    )
    source: str = means("Source of bursts: transmitter, poisson or on_off")
    offered_load: Load = means("Offered load of each host", "offered load")
    signalling: str = means("Signalling: two_way, jet or jit")
    assignment: str = means(
        "Assignment of wavelengths: first_fit, random, horizon, lauc_vf, pwa or source_offset"
    )
    converters: str = means("Wavelength converters: none, full or a number for each node")
    routing: str = means("Routing: fixed or least_loaded")
    settings: str = means(
        "Other settings that differ from their defaults, as name=value separated by spaces"
    )
    bursts: Count
    lost: Count
    loss: Fraction
    loss_low: Fraction = means(heading="from")
    loss_high: Fraction = means(heading="to")
    lost_at_links: Count
    lost_at_converters: Count
    lost_at_receivers: Count
    mean_wait_s: Seconds
    busiest_link: str = means("Link whose wavelengths were occupied for the longest time")
    busiest_utilisation: Share = means(
        "Share of the wavelength-time of the busiest link that was occupied", "busiest link"
    )
    mean_utilisation: Fraction = means(
        "Mean share of the wavelength-time of all links that was occupied"
    )
    wasted_utilisation: Fraction = means(
        "Share of the wavelength-time of all links that was occupied by bursts that were lost on "
        "a later link"
    )
    simulated_s: Seconds = means("Simulated time of the measurements, summed over all replications")
    by_hops: list[HopShare] = means("Losses by number of links on the route")
    by_pair: list[PairShare] = means("Losses by pair of nodes")
    links: list[LinkShare] = means("Use of each link")
    over_time: list[Moment] = means("Losses by round of all replications")
    command: str = command_field(default=OMITTED)
    outcome: Outcome = hidden(default=None)
    case: Any = hidden(default=None)


def cases(
    fabric: FabricLike | None, settings: dict[str, str], of_packets: Mapping[str, str]
) -> list[Case]:
    """Returns a case for each combination of values; commas separate the values in a text."""
    if fabric is None:
        raise UsageError(
            "--fabric is missing; give wdm_ladder:rungs=5,hosts=10,wavelengths=28,rate=10Gb/s "
            "or the like"
        )
    network = to_medium(fabric)
    if "routing" in of_packets:
        settings = {**settings, "routing": of_packets["routing"]}
    for name in of_packets:
        if name != "routing":
            raise UsageError(f"--{name.replace('_', '-')} is for packets; leave it out")
    values = [listed(f"--{name}".replace("_", "-"), settings.get(name)) for name in NAMED]
    cases_of_fabric = []
    for combination in itertools.product(*values):
        chosen = dict(zip(NAMED, combination, strict=True))
        cases_of_fabric.append(
            Case(network, {**settings, **{name: chosen[name] for name in chosen if chosen[name]}})
        )
    return cases_of_fabric


def simulate(cases: Sequence[Case], threads: int, watch: Watch) -> Iterator[BurstRow]:
    """Simulates the cases one after another, with `threads` threads for the replications.

    Raises
    ------
    FabricError, SimulationError
        A network or a setting is invalid.
    """
    for case in cases:
        check_bursts(case.fabric, case.settings)
    bursts = [int(float(case.value("bursts"))) for case in cases]
    for number, case in enumerate(cases):

        def progress(measured: int, _target: int, before: int = sum(bursts[:number])) -> None:
            watch.update("bursts measured", before + measured, sum(bursts))

        outcome = simulate_bursts(case.fabric, case.settings, threads=threads, progress=progress)
        yield _row(case, outcome)


def _row(case: Case, outcome: Outcome) -> BurstRow:
    utilisation = outcome.links["utilisation"]
    busiest = int(utilisation.argmax())
    other_settings = {name: text for name, text in case.settings.items() if name not in NAMED}
    others = without_defaults("burst_settings", other_settings)
    return BurstRow.of(
        outcome,
        fabric=outcome.network,
        injection_bandwidth=burst_rate(case.fabric),
        offered_load=float(case.value("offered_load")),
        **{name: case.value(name) for name in NAMED if name != "offered_load"},
        settings=" ".join(f"{name}={text}" for name, text in others.items()),
        busiest_link=outcome.links["link"][busiest],
        busiest_utilisation=float(utilisation[busiest]),
        mean_utilisation=float(utilisation.mean()),
        wasted_utilisation=float(outcome.links["wasted"].mean()),
        simulated_s=outcome.simulated_seconds,
        by_hops=[HopShare.of(record) for record in outcome.by_hops],
        by_pair=[PairShare.of(record) for record in outcome.by_pair],
        links=[LinkShare.of(link) for link in outcome.links],
        over_time=[Moment.of(record) for record in outcome.moments],
        outcome=outcome,
        case=case,
    )


TABLE_COLUMNS = (*NAMED, "bursts", "lost", "loss", "loss_low", "loss_high", "busiest_utilisation")


def text(rows: list[BurstRow]) -> str:
    """Returns the facts of a single case, or a table of several cases."""
    if len(rows) == 1:
        return _summary(rows[0])
    head = f"losses, with intervals of 95 %, of the burst network {fabric_text(rows[0].fabric)}"
    return f"{head}\n{table(rows, TABLE_COLUMNS, left=('offered_load',))}"


def _summary(row: BurstRow) -> str:
    """Returns a summary line, and a line for each further fact."""
    hops = [
        f"{share.links}: {_loss(share.lost / share.offered)}"
        for share in row.by_hops
        if share.offered
    ]
    causes = [
        f"{row.lost_at_links} at links",
        f"{row.lost_at_converters} at converters",
        f"{row.lost_at_receivers} at receivers",
    ]
    facts = [
        ["burst network", fabric_text(row.fabric)],
        ["source", f"{row.source}, {row.offered_load:g} Erlang from each host"],
        [
            "wavelengths",
            f"{row.signalling}, {row.assignment}, converters {row.converters}, "
            f"routing {row.routing}",
        ],
        ["settings", row.settings or "plain"],
        ["lost", ", ".join(causes)],
        ["loss by links", ", ".join(hops)],
        ["wait", f"{human_seconds(row.mean_wait_s)} for the transmitter"],
        [
            "links",
            f"{row.busiest_utilisation:.1%} of the busiest, {row.busiest_link}; "
            f"mean {row.mean_utilisation:.1%}, {row.wasted_utilisation:.1%} by lost bursts",
        ],
    ]
    head = (
        f"loss {_loss(row.loss)}, {_loss(row.loss_low)} to {_loss(row.loss_high)} (95 %): "
        f"{row.lost} of {row.bursts} bursts"
    )
    return f"{head}\n{align(facts)}"


def _loss(loss: float) -> str:
    return f"{loss:.3g}"


def draw(rows: list[BurstRow], path: Path) -> None:
    """Draws a single case's losses over time, or all cases' losses over the offered load."""
    from opticoll import plot

    first = rows[0]
    if len(rows) == 1:
        title = f"{first.source}, {first.signalling}, {first.assignment}"
        plot.one_loss(first.outcome, path, f"{title}, {first.offered_load:g} Erlang")
        return
    names = [name for name in NAMED if name != "offered_load"]
    differing = [name for name in names if len({row.case.value(name) for row in rows}) > 1]
    series: dict[str, list[plot.Loss]] = {}
    for row in rows:
        label = ", ".join(row.case.value(name) for name in differing or ["assignment"])
        point = plot.Loss(row.offered_load, row.loss, row.loss_low, row.loss_high)
        series.setdefault(label, []).append(point)
    plot.losses(series, path, fabric_text(first.fabric))
