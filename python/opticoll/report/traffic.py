"""Traffic without a plan, packet by packet, as plain text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from opticoll._core import format_size
from opticoll.report.layout import PICOSECONDS, align, format_rate, human_time

if TYPE_CHECKING:
    from opticoll.study.traffic import TrafficRow


__all__ = ["traffic_summary", "traffic_table"]


def traffic_summary(row: TrafficRow) -> str:
    """A line that says all, then one fact a line."""

    def time(seconds: float) -> str:
        return human_time(round(seconds * PICOSECONDS))

    head = (
        f"last delivery {time(row['last_delivery_s'])}; mean latency "
        f"{time(row['mean_message_latency_s'])}, 99 % {time(row['p99_message_latency_s'])}, "
        f"max {time(row['max_message_latency_s'])}; {row['mean_hops']:.3f} routers a chunk"
    )
    sent = f"{row['messages']} of {format_size(row['message_bytes'])} from each of "
    detoured, chunks = row["detoured_chunks"], row["minimal_chunks"] + row["detoured_chunks"]
    facts = [
        ["pattern", row["pattern"]],
        ["messages", f"{sent}{row['terminals']} terminals, one every {time(row['period_s'])}"],
        ["fabric", row["fabric"]],
        ["injection", f"{format_rate(row['injection_bandwidth'])} per terminal"],
        ["settings", row["settings"] or "plain"],
        [
            "delivered",
            f"{row['messages_delivered']} messages, {format_size(row['bytes_delivered'])}",
        ],
        [
            "message latency",
            f"mean {time(row['mean_message_latency_s'])}, "
            f"50 % {time(row['p50_message_latency_s'])}, "
            f"90 % {time(row['p90_message_latency_s'])}, "
            f"99.9 % {time(row['p999_message_latency_s'])}",
        ],
        [
            "chunk latency",
            f"mean {time(row['mean_chunk_latency_s'])}, max {time(row['max_chunk_latency_s'])}",
        ],
        ["ways", f"{chunks - detoured} chunks minimal, {detoured} by way of another group"],
        ["bottleneck", f"{row['bottleneck']}, sending for {time(row['bottleneck_busy_s'])}"],
        [
            "stalls",
            f"local {time(row['local_stall_s'])}, global {time(row['global_stall_s'])}, "
            f"to terminals {time(row['ejection_stall_s'])}, "
            f"from terminals {time(row['injection_stall_s'])}, summed over channels",
        ],
        ["simulated", f"{row['router_forwards']} forwards by routers, {row['events']} events"],
    ]
    return f"{head}\n\n{align(facts)}"


def traffic_table(rows: Sequence[TrafficRow]) -> str:
    """A line for each case."""

    def time(seconds: float) -> str:
        return human_time(round(seconds * PICOSECONDS))

    cells = [
        [
            row["pattern"],
            format_size(row["message_bytes"]),
            time(row["period_s"]),
            row["routing"],
            time(row["last_delivery_s"]),
            time(row["mean_message_latency_s"]),
            time(row["p99_message_latency_s"]),
            time(row["max_message_latency_s"]),
            f"{row['mean_hops']:.3f}",
            time(row["local_stall_s"] + row["global_stall_s"]),
        ]
        for row in rows
    ]
    heading = [
        "pattern",
        "bytes",
        "period",
        "routing",
        "last delivery",
        "mean latency",
        "99 %",
        "max",
        "hops",
        "stalls",
    ]
    first = rows[0]
    head = f"{first['messages']} messages from each of {first['terminals']} terminals"
    return f"{head} of {first['fabric']}\n{align(cells, heading, right=range(4, len(heading)))}"
