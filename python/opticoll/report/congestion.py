"""Collectives over light paths that may be refused, as readable text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from opticoll.report.layout import (
    PICOSECONDS,
    align,
    describe_size,
    format_rate,
    human_time,
    plural,
)

if TYPE_CHECKING:
    from opticoll.study.congestion import CongestionRow

__all__ = ["congestion_text"]


def congestion_text(rows: Sequence[CongestionRow]) -> str:
    """What was carried out where, a line for each case, and why collectives gave up."""
    first = rows[0]
    at_once = f"{first['copies']} at once, " if first["copies"] > 1 else ""
    size = describe_size(first["size_bytes"], first["size_convention"])
    head = (
        f"{first['collective']} by {first['algorithm']}: {at_once}{first['ranks']} ranks, {size}, "
        f"{plural(first['ports'], 'port')} each, "
        f"{format_rate(first['injection_bandwidth'])} per rank, on {first['fabric']}\n"
        f"mean time of {plural(first['replications'], 'replication')}, with intervals of 95 %; "
        f"{_proved(rows)}"
    )
    chosen = any(row["chosen"] != row["algorithm"] for row in rows)
    if chosen:
        head += (
            f"\n{first['algorithm']}: the fastest of all algorithms that run here, each carried "
            "out once without bursts"
        )
    heading = ["congestion", "placement", "intensity", "time", "from", "to", "failed"]
    heading += ["refusals", "waited", "phases", "cut", "burst loss"]
    heading += ["algorithm"] if chosen else []
    cells = [
        [
            row["congestion"],
            row["placement"],
            f"{row['intensity']:g}",
            _time(row["time_s"]),
            _time(row["time_low_s"]),
            _time(row["time_high_s"]),
            str(row["failed"]),
            f"{row['refusals']:.4g}",
            _time(row["waited_s"]),
            f"{row['phases']:.4g}",
            f"{row['degraded']:.4g}",
            "-" if row["burst_loss"] is None else f"{row['burst_loss']:.3g}",
            *([row["chosen"]] if chosen else []),
        ]
        for row in rows
    ]
    lines = [head, align(cells, heading, right=range(2, 12)), *_placements(rows)]
    failures = [
        f"gave up ({row['congestion']}, {row['placement']}, {row['intensity']:g}): {row['failure']}"
        for row in rows
        if row["failure"]
    ]
    return "\n".join([*lines, *failures])


def _proved(rows: Sequence[CongestionRow]) -> str:
    if all(row["verified"] for row in rows):
        return "what arrived is verified in every one that ended"
    return "VIOLATED: what arrived is not what the collective demands"


def _placements(rows: Sequence[CongestionRow]) -> list[str]:
    """A line for each placement: bytes times hops against the bound."""
    told: dict[str, str] = {}
    for row in rows:
        bound = f"no placement has less than {_megabytes(row['hop_bytes_bound'])}"
        least = "the least there is" if row["hop_bytes_least"] else bound
        told[row["placement"]] = (
            f"placement {row['placement']}: {_megabytes(row['hop_bytes'])} times hops; {least}"
        )
    return list(told.values())


def _megabytes(size_bytes: int) -> str:
    return f"{size_bytes / 1e6:.4g} MB"


def _time(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    return human_time(round(max(seconds, 0.0) * PICOSECONDS))
