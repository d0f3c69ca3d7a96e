"""Losses of bursts as readable text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from opticoll.report.layout import align, human_time

if TYPE_CHECKING:
    from opticoll.study.bursts import BurstRow, Details

__all__ = ["burst_summary", "burst_table"]

PICOSECONDS = 10**12


def burst_summary(row: BurstRow, details: Details) -> str:
    """A line that says all, then one fact a line."""
    hops = [
        f"{share['links']}: {_loss(share['lost'] / share['offered'])}"
        for share in details["by_hops"]
        if share["offered"]
    ]
    causes = [
        f"{row['lost_at_links']} at links",
        f"{row['lost_at_converters']} at converters",
        f"{row['lost_at_receivers']} at receivers",
    ]
    facts = [
        ["network", row["fabric"]],
        ["source", f"{row['source']}, {row['intensity']:g} Erlang from each computer"],
        [
            "wavelengths",
            f"{row['signalling']}, {row['assignment']}, converters {row['converters']}, "
            f"routing {row['routing']}",
        ],
        ["settings", row["settings"] or "plain"],
        ["lost", ", ".join(causes)],
        ["loss by links", ", ".join(hops)],
        ["wait", f"{human_time(round(row['mean_wait_s'] * PICOSECONDS))} for the transmitter"],
        [
            "links",
            f"{row['busiest_utilisation']:.1%} of the busiest, {row['busiest_link']}; "
            f"mean {row['mean_utilisation']:.1%}, {row['wasted_utilisation']:.1%} in vain",
        ],
    ]
    return f"{_head(row)}\n{align(facts)}"


def burst_table(rows: Sequence[BurstRow]) -> str:
    """A line for each case."""
    heading = ["source", "intensity", "signalling", "assignment", "converters", "routing"]
    heading += ["bursts", "lost", "loss", "from", "to", "busiest link"]
    cells = [
        [
            row["source"],
            f"{row['intensity']:g}",
            row["signalling"],
            row["assignment"],
            row["converters"],
            row["routing"],
            str(row["bursts"]),
            str(row["lost"]),
            _loss(row["loss"]),
            _loss(row["loss_low"]),
            _loss(row["loss_high"]),
            f"{row['busiest_utilisation']:.1%}",
        ]
        for row in rows
    ]
    head = f"losses, with intervals of 95 %, of {rows[0]['fabric']}"
    return f"{head}\n{align(cells, heading, right=range(6, len(heading)))}"


def _head(row: BurstRow) -> str:
    return (
        f"loss {_loss(row['loss'])}, {_loss(row['loss_low'])} to {_loss(row['loss_high'])} "
        f"(95 %): {row['lost']} of {row['bursts']} bursts"
    )


def _loss(loss: float) -> str:
    return f"{loss:.3g}"
