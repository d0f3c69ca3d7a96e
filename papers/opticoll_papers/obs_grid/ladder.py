"""The burst-switched ladder: assumptions under which less than 1 of 10^6 bursts is lost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

import opticoll
from opticoll import plot
from opticoll_papers.common import Results, TableRow
from opticoll_papers.judging import Computed

WAVELENGTHS = 28
BURST_BYTES = 125 * 10**6
"""Size of a burst in bytes: 100 ms at 10 Gb/s."""

BURSTS = {"offered_load": "0.9", "size": f"{BURST_BYTES}B"}
FEWER = (18, 20, 22, 24, 26)
QUICK_FEWER = (20,)

USUAL = {"bursts": "3e6"}
CLOSER = {"bursts": "1e7"}
QUICK = {"bursts": "2e5", "warm_up": "1e4"}
LONG = {"bursts": "4e8"}
LEARNED = {**USUAL, "warm_up": "3e6"}
"""Settings for wavelengths chosen by scores, which need a warm-up of millions of bursts.

The loss is 0.02 at first, and 0.012 after 3e6 bursts.
"""


@dataclass(frozen=True)
class Reading:
    """A reading of details that the paper leaves open; `swept`: also with fewer wavelengths."""

    label: str
    settings: Mapping[str, str] = field(default_factory=dict)
    swept: bool = True
    rare: bool = False
    """True if the loss is so low that its measurement needs 10^7 bursts."""


# Bursts that wait in transmitters, first fit, and whole paths are the simulator's defaults.
READINGS = {
    "whole_path": Reading("transmitter queues, first fit on the whole path", rare=True),
    "random": Reading(
        "transmitter queues, random on the whole path",
        {"assignment": "random"},
        rare=True,
    ),
    "converters": Reading("transmitter queues, full converters", {"converters": "full"}, rare=True),
    "poisson": Reading("no queues, first fit on the whole path", {"source": "poisson"}, rare=True),
    "poisson_converters": Reading(
        "no queues, full converters", {"source": "poisson", "converters": "full"}, rare=True
    ),
    "one_way_pwa": Reading("one-way, learning", {"signalling": "jet", "assignment": "pwa"}),
    "one_way_random": Reading(
        "one-way, random", {"signalling": "jet", "assignment": "random"}, swept=False
    ),
    "one_way_first_fit": Reading("one-way, first fit", {"signalling": "jet"}, swept=False),
    "busiest_link": Reading(
        "no queues, 0.9 per wavelength of the busiest link, which is 2.077 per host",
        {"source": "poisson", "offered_load": "2.077"},
        swept=False,
    ),
    "one_receiver": Reading(
        "transmitter queues, one receiver per host", {"receivers": "1"}, swept=False
    ),
}

Rows = dict[tuple[str, int], TableRow]


def _losses(results: Results, *, quick: bool, long: bool) -> Rows:
    """Returns the burst losses under the readings.

    Each case is stored as soon as it is computed.
    """
    rows: Rows = {}
    for name, reading in READINGS.items():
        fewer = QUICK_FEWER if quick else FEWER
        for wavelengths in (*(fewer if reading.swept else ()), WAVELENGTHS):
            effort = QUICK if quick else CLOSER if reading.rare else USUAL
            if long and (name, wavelengths) == ("whole_path", WAVELENGTHS):
                effort = LONG
            elif not quick and name == "one_way_pwa":
                effort = LEARNED
            case = {"reading": name, "wavelengths": wavelengths, **effort}
            (rows[name, wavelengths],) = results.rows(
                case, partial(_simulate, reading, wavelengths, effort)
            )
    return rows


def run(results: Results, *, quick: bool, long: bool) -> dict[str, Computed]:
    """Computes the losses under all readings; writes ladder.csv."""
    rows = _losses(results, quick=quick, long=long)
    results.write(
        "ladder",
        [
            {"reading": name, "assumed": READINGS[name].label, "wavelengths": wavelengths} | row
            for (name, wavelengths), row in rows.items()
        ],
    )
    results.show(
        "Bursts lost on the 2 x 5 ladder of 100 hosts at load 0.9, with 28 wavelengths; "
        "95 % confidence (ladder.csv)",
        ["assumed", "bursts", "lost", "loss", "at least", "at most"],
        [
            [
                READINGS[name].label,
                row["bursts"],
                row["lost"],
                *(f"{row[key]:.2g}" for key in ("loss", "loss_low", "loss_high")),
            ]
            for (name, wavelengths), row in rows.items()
            if wavelengths == WAVELENGTHS
        ],
    )
    computed = _parameters() | _poisson()
    # A quick run has too few bursts to distinguish losses of 1e-5 and 1e-6.
    return computed if quick else computed | _loss(rows)


def _loss(rows: Rows) -> dict[str, Computed]:
    """Computes the loss under the judged reading.

    The note lists the other readings, and fewer wavelengths.
    """

    def interval(row: TableRow) -> str:
        return f"{row['loss_low']:.2g} to {row['loss_high']:.2g}"

    judged = rows["whole_path", WAVELENGTHS]
    others = "; ".join(
        f"{READINGS[name].label}: {interval(row)}"
        for (name, wavelengths), row in rows.items()
        if wavelengths == WAVELENGTHS and name != "whole_path"
    )
    fewer = "; ".join(
        f"{wavelengths}: {interval(row)}"
        for (name, wavelengths), row in rows.items()
        if name == "whole_path" and wavelengths < WAVELENGTHS
    )
    return {
        "ladder.loss": Computed(
            (judged["loss_low"], judged["loss_high"]),
            f"{judged['lost']} of {judged['bursts']:.3g} bursts are lost. Under other readings: "
            f"{others}. Under the reading that is judged, with fewer wavelengths: {fewer}.",
        )
    }


def _poisson() -> dict[str, Computed]:
    """Computes the loss on one link, without queues."""
    link = "wdm_graph:ranks=2,links=0-1,rate=10Gb/s,hosts=10,wavelengths=10"
    settings = {"source": "poisson", "offered_load": "1", "destinations": "other_nodes"}
    row = opticoll.bursts(link, {**settings, "bursts": "2e5"})
    return {"ladder.source": Computed(row.loss)}


def _simulate(reading: Reading, wavelengths: int, effort: Mapping[str, str]) -> list[TableRow]:
    row = opticoll.bursts(_ladder(wavelengths), {**BURSTS, **effort, **reading.settings})
    return [{key: value for key, value in row.items() if not isinstance(value, list)}]


def _ladder(wavelengths: int) -> str:
    return f"wdm_ladder:rungs=5,hosts=10,wavelengths={wavelengths},rate=10Gb/s"


def _parameters() -> dict[str, Computed]:
    """Computes the properties of the simulated network and of its bursts."""
    fabric = _ladder(WAVELENGTHS)
    row = opticoll.bursts(fabric, {**BURSTS, **QUICK})
    # The network's specification has the options `rungs=5,hosts=10` and so on.
    said = dict(part.split("=") for part in row.fabric.partition(":")[2].split(","))
    nodes = len({pair["source"] for pair in row.by_pair})
    pairs = [pair["offered"] for pair in row.by_pair]
    return {
        "ladder.network": Computed(nodes),
        "ladder.computers": Computed(nodes * int(said["hosts"])),
        "ladder.wavelengths": Computed(int(said["wavelengths"])),
        "ladder.rate": Computed(row.injection_bandwidth),
        "ladder.load": Computed(row.offered_load),
        "ladder.length": Computed(8 * BURST_BYTES / row.injection_bandwidth),
        "ladder.bytes": Computed(BURST_BYTES),
        "ladder.destination": Computed(max(pairs) / (sum(pairs) / len(pairs))),
    }


def draw(results: Results, *, quick: bool, long: bool) -> None:
    """Draws the losses, with the printed loss, to ladder.svg and ladder.png."""
    rows = _losses(results, quick=quick, long=long)
    series = {
        reading.label: [
            plot.Loss(wavelengths, row["loss"], row["loss_low"], row["loss_high"])
            for (reading_name, wavelengths), row in rows.items()
            if reading_name == name
        ]
        for name, reading in READINGS.items()
        if reading.swept
    }
    results.draw(
        "ladder",
        plot.losses,
        series,
        title="2 x 5 ladder, 100 hosts, rate 10 Gb/s, offered load 0.9; dashed: the paper's claim",
        x_label="Wavelengths per link",
        mark=next(
            reading_name.printed
            for reading_name in results.claims
            if reading_name.id == "ladder.loss"
        ),
    )
