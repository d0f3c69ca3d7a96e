"""Comparison of the fluid simulator with packets, to judge predictions without packets.

Two kinds of flows are compared. Plain flows depend only on bytes and rates. Flows with delays give
each link the time that a chunk spends there in an empty network, in the router and for its own
bytes. Their senders are free when a message has left. But the flows of several messages share links
at the same time, whereas packets would queue.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypedDict

from opticoll import format_size
from opticoll_papers import plots
from opticoll_papers.common import Results
from opticoll_papers.dragonfly.cases import COMPARED, Scale, fabric, flows, gather
from opticoll_papers.dragonfly.runs import Rows

TRUSTED = 0.05
"""Maximum relative error of a fluid time that counts as close to the packets' time."""


class Error(TypedDict):
    """Times of one all_gather by packets and by flows; errors are relative to the packets' time."""

    terminals: int
    algorithm: str
    size_bytes: int
    chunk_bytes: int
    packet_s: float
    fluid_s: float
    fluid_error: float
    delayed_s: float
    delayed_error: float
    verified: bool


def errors(rows: Rows, scale: Scale) -> Iterator[Error]:
    """Yields one entry per network, algorithm and size, in this order."""
    for network, cuts in scale.compared.items():
        for algorithm in COMPARED:
            for cut, sizes in cuts.items():
                for size in sizes.get(algorithm, ()):
                    case = gather(network, algorithm, size, cut=cut)
                    packet, plain = rows[case], rows[flows(case)]
                    delayed = rows[flows(case, delayed=True)]
                    yield Error(
                        terminals=packet["terminals"],
                        algorithm=algorithm,
                        size_bytes=size,
                        chunk_bytes=cut.chunk_bytes,
                        packet_s=packet["time_s"],
                        fluid_s=plain["time_s"],
                        fluid_error=plain["time_s"] / packet["time_s"] - 1,
                        delayed_s=delayed["time_s"],
                        delayed_error=delayed["time_s"] / packet["time_s"] - 1,
                        verified=packet["verified"] and plain["verified"] and delayed["verified"],
                    )


def conclude(results: Results, rows: Rows, scale: Scale) -> None:
    """Adds the tables of errors (fluid.csv) and predictions, on which the poster has no claims."""
    table = list(errors(rows, scale))
    results.write("fluid", table)
    results.show(
        "Not in the poster: the fluid simulator against packets, all_gather (fluid.csv); * within "
        f"{100 * TRUSTED:.0f} %",
        ["terminals", "algorithm", "block", "chunk", "packets us", "fluid", "with delays"],
        [
            [
                row["terminals"],
                row["algorithm"],
                format_size(row["size_bytes"]),
                row["chunk_bytes"],
                f"{1e6 * row['packet_s']:.1f}",
                _percent(row["fluid_error"]),
                _percent(row["delayed_error"]),
            ]
            for row in table
        ],
        left=(1,),
    )
    _show_prediction(results, rows, scale)


def _percent(share: float) -> str:
    return f"{100 * share:+.1f} %{'*' if abs(share) <= TRUSTED else ' '}"


def _show_prediction(results: Results, rows: Rows, scale: Scale) -> None:
    """Adds a table of flows on the largest network, with packets where they were simulated."""
    lines: list[list[object]] = []
    for size in scale.flows:
        for algorithm in COMPARED:
            case = gather(scale.gather, algorithm, size)
            fluid = rows[flows(case)]["time_s"]
            packet = rows.get(case)
            lines.append(
                [
                    algorithm,
                    format_size(size),
                    f"{1e6 * fluid:.1f}",
                    None if packet is None else f"{1e6 * packet['time_s']:.1f}",
                    None if packet is None else _percent(fluid / packet["time_s"] - 1),
                ]
            )
    results.show(
        f"Not in the poster: predictions by flows on {fabric(scale.gather).ranks} terminals "
        "(cases.csv)",
        ["algorithm", "block", "fluid us", "packets us", "error"],
        lines,
    )


def draw(results: Results, rows: Rows, scale: Scale) -> None:
    """Draws the errors over block sizes, with one panel per network."""
    table = list(errors(rows, scale))
    panels = []
    for network in scale.compared:
        ranks = fabric(network).ranks
        own = [row for row in table if row["terminals"] == ranks]
        family = []
        for colour, name in enumerate(COMPARED):
            rows_of = sorted(
                (row for row in own if row["algorithm"] == name), key=lambda row: row["size_bytes"]
            )
            family += [
                plots.Curve(
                    f"{name}, with delays",
                    [(row["size_bytes"], 100 * row["delayed_error"]) for row in rows_of],
                    colour,
                ),
                plots.Curve(
                    f"{name}, plain",
                    [(row["size_bytes"], 100 * row["fluid_error"]) for row in rows_of],
                    colour,
                    dashed=True,
                ),
            ]
        panels.append(plots.Panel(f"{ranks} terminals", family))

    results.draw(
        "fluid",
        plots.curves,
        panels,
        x_label="Block of one rank",
        y_label="Error against packets (%)",
        title="all_gather by the fluid simulator",
        x_sizes=True,
        log_x=True,
        log_y=False,
    )
