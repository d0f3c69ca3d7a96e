"""Traffic packet by packet: independent cases, which are simulated in parallel."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opticoll._core import (
    Fabric,
    Outcome,
    expected_traffic,
    format_size,
    interrupt_all,
    parse_size,
    parse_time,
    simulate_traffic,
)
from opticoll.cli.option_types import listed
from opticoll.errors import UsageError
from opticoll.inputs.settings import Settings
from opticoll.inputs.values import split_algorithms
from opticoll.names import without_defaults
from opticoll.outputs.fabric_names import fabric_text
from opticoll.outputs.layout import PICOSECONDS, align, format_rate, human_seconds
from opticoll.outputs.plan_row import FABRIC_LATENCY, INJECTION, latency_fact, latency_s
from opticoll.outputs.rows import OMITTED, Row, command_field, hidden, means, table
from opticoll.outputs.units import BitsPerSecond, Bytes, Count, Number, Seconds
from opticoll.outputs.watch import Watch


@dataclass(frozen=True)
class Case:
    """Case of traffic: a pattern, a message size and a period on a fabric."""

    fabric: Fabric
    pattern: str
    size: str
    period: str
    messages: int
    settings: Settings

    @property
    def traffic(self) -> str:
        """Specification of the traffic for the compiled core."""
        separator = "," if ":" in self.pattern else ":"
        options = f"bytes={self.size},period={self.period},messages={self.messages}"
        return f"{self.pattern}{separator}{options}"


class TrafficRow(Row, core="packets"):
    """A case simulated packet by packet.

    The latency of a message is the time from the call that sends it to the delivery of its last
    byte; the latency of a chunk starts with the creation of its packet. Percentiles are rounded up
    by at most 1/64. Stalls are summed over the virtual channels of all links of a class.
    """

    fabric: str = means("Complete specification of the fabric")
    terminals: Count = means("Number of ranks of the fabric, each of which sends")
    injection_bandwidth: BitsPerSecond = means(INJECTION)
    fabric_latency_s: Seconds = means(FABRIC_LATENCY)
    pattern: str = means("Pattern of senders and receivers, as given")
    message_bytes: Bytes = means("Bytes of a message", "bytes")
    period_s: Seconds = means("Time between two messages of a terminal", "period")
    messages: Count = means("Number of messages of each terminal")
    routing: str = means("Routing: minimal, valiant, adaptive or progressive")
    settings: str = means(
        "Settings that differ from their defaults, as name=value separated by spaces"
    )
    last_delivery_s: Seconds = means("Time at which the last message is delivered", "last delivery")
    mean_last_delivery_s: Seconds = means(
        "Mean over terminals of the time at which the last message was delivered"
    )
    messages_delivered: Count = means("Number of messages delivered to all terminals")
    bytes_delivered: Bytes
    mean_message_latency_s: Seconds = means("Mean latency of a message", "mean latency")
    p50_message_latency_s: Seconds = means("Median latency of a message")
    p90_message_latency_s: Seconds = means("Latency that 90 percent of messages do not exceed")
    p99_message_latency_s: Seconds = means(
        "Latency that 99 percent of messages do not exceed", "99 %"
    )
    p999_message_latency_s: Seconds = means("Latency that 99.9 percent of messages do not exceed")
    max_message_latency_s: Seconds = means("Longest latency of a message", "max")
    mean_chunk_latency_s: Seconds = means("Mean latency of a chunk")
    max_chunk_latency_s: Seconds = means("Longest latency of a chunk")
    mean_hops: Number = means(heading="hops")
    minimal_chunks: Count
    detoured_chunks: Count
    bottleneck: str | None = means(
        "Link that was sending for the longest time", absent="no link sent"
    )
    bottleneck_busy_s: Seconds
    injection_bytes: Bytes = means("Bytes on links from terminals")
    injection_stall_s: Seconds = means("Time for which channels from terminals waited for credits")
    local_bytes: Bytes = means(
        "Bytes on links within groups, or between routers where there are no groups"
    )
    local_stall_s: Seconds = means(
        "Time for which channels of links within groups waited for credits", "local stalls"
    )
    global_bytes: Bytes = means("Bytes on links between groups")
    global_stall_s: Seconds = means(
        "Time for which channels of links between groups waited for credits", "global stalls"
    )
    ejection_bytes: Bytes = means("Bytes on links to terminals")
    ejection_stall_s: Seconds = means(
        "Time for which channels of links to terminals waited for credits"
    )
    router_forwards: Count
    events: Count
    command: str = command_field(default=OMITTED)
    outcome: Outcome = hidden(default=None)
    case: Any = hidden(default=None)


class _StoppedError(Exception):
    """Exception that stops the simulation of a case because another case has failed."""


def cases(
    fabric: Fabric, pattern: str, size: str, period: str, messages: int, settings: Settings
) -> list[Case]:
    """Returns a case for each combination of values; commas separate the values in a text."""
    try:
        patterns = split_algorithms(pattern)
    except UsageError:
        raise UsageError(
            f"--pattern: `{pattern}` is not a list of patterns, such as uniform,nearest"
        ) from None
    combinations = []
    for name, bytes_, every, routing in itertools.product(
        patterns,
        listed("--bytes", size),
        listed("--period", period),
        listed("--routing", settings.get("routing") or "minimal"),
    ):
        case_settings: Settings = {**settings}
        if settings.get("routing") is not None:
            case_settings["routing"] = routing
        combinations.append(Case(fabric, name, bytes_, every, messages, case_settings))
    return combinations


def simulate(
    cases: Sequence[Case], jobs: int, watch: Watch, *, timeline: bool = False
) -> Iterator[TrafficRow]:
    """Simulates up to `jobs` cases at the same time, and yields their rows in the order of `cases`.

    Raises
    ------
    SimulationError
        A case is invalid, or its packets reach a deadlock.
    """
    works = [expected_traffic(a_case.fabric, a_case.traffic, **a_case.settings) for a_case in cases]
    messages, chunks, forwards = (sum(column) for column in zip(*works, strict=True))
    watch.announce(messages, chunks, forwards)
    timeline |= "figure" in watch.files and len(cases) == 1
    delivered = [0] * len(cases)
    stop = threading.Event()

    def run(place: int) -> TrafficRow:
        def progress(_events: int, so_far: int, _time_ps: int) -> None:
            if stop.is_set():
                raise _StoppedError
            delivered[place] = so_far
            watch.update("messages delivered", sum(delivered), messages)

        case = cases[place]
        packets = simulate_traffic(
            case.fabric, case.traffic, watch=progress, timeline=timeline, **case.settings
        )
        return _row(case, packets)

    if min(jobs, len(cases)) == 1:
        yield from map(run, range(len(cases)))
        return
    with ThreadPoolExecutor(max_workers=min(jobs, len(cases))) as pool:
        futures = [pool.submit(run, place) for place in range(len(cases))]
        try:
            for future in futures:
                yield future.result()
        except KeyboardInterrupt:
            interrupt_all()
            pool.shutdown(cancel_futures=True)
            raise
        except BaseException:
            stop.set()
            pool.shutdown(cancel_futures=True)
            raise


def _row(case: Case, packets: Outcome) -> TrafficRow:
    message, _, chunk = packets.latencies.rows()
    classes = {record["class"]: record for record in packets.classes}
    link = packets.bottleneck
    used: dict[str, Any] = {}
    for name in ("injection", "local", "global", "ejection"):
        class_totals = classes.get(name, {"bytes": 0, "stall_ps": 0})
        used |= {
            f"{name}_bytes": class_totals["bytes"],
            f"{name}_stall_s": class_totals["stall_ps"] / PICOSECONDS,
        }
    for name in ("mean", "p50", "p90", "p99", "p99_9", "max"):
        field = f"{name.replace('_', '')}_message_latency_s"
        used[field] = message[f"{name}_ps"] / PICOSECONDS
    other_settings = {name: value for name, value in case.settings.items() if name != "simulator"}
    settings = without_defaults("settings", other_settings)
    return TrafficRow.of(
        packets,
        fabric=case.fabric.spec,
        terminals=case.fabric.ranks,
        injection_bandwidth=case.fabric.injection_bandwidth,
        fabric_latency_s=latency_s(case.fabric),
        pattern=case.pattern,
        message_bytes=parse_size(case.size),
        period_s=parse_time(case.period) / PICOSECONDS,
        messages=case.messages,
        routing=case.settings.get("routing") or "minimal",
        settings=" ".join(f"{name}={value}" for name, value in settings.items()),
        last_delivery_s=packets.time_ps / PICOSECONDS,
        mean_last_delivery_s=packets.mean_finish_ps / PICOSECONDS,
        messages_delivered=message["count"],
        mean_chunk_latency_s=chunk["mean_ps"] / PICOSECONDS,
        max_chunk_latency_s=chunk["max_ps"] / PICOSECONDS,
        bottleneck=None if link is None else case.fabric.link_name(link),
        outcome=packets,
        case=case,
        **used,
    )


def text(rows: list[TrafficRow]) -> str:
    """Returns the facts of a single case, or a table of several cases."""
    return _summary(rows[0]) if len(rows) == 1 else _table(rows)


def _summary(row: TrafficRow) -> str:
    """Returns a summary line, and a line for each further fact."""
    time = human_seconds
    head = (
        f"last delivery {time(row.last_delivery_s)}; mean latency "
        f"{time(row.mean_message_latency_s)}, 99 % {time(row.p99_message_latency_s)}, "
        f"max {time(row.max_message_latency_s)}; {row.mean_hops:.3f} routers a chunk"
    )
    sent = f"{row.messages} of {format_size(row.message_bytes)} from each of "
    facts = [
        ["pattern", row.pattern],
        ["messages", f"{sent}{row.terminals} terminals, one every {time(row.period_s)}"],
        ["fabric", fabric_text(row.fabric)],
        ["injection", f"{format_rate(row.injection_bandwidth)} per terminal"],
        latency_fact(row.fabric_latency_s),
        ["settings", row.settings or "plain"],
        ["delivered", f"{row.messages_delivered} messages, {format_size(row.bytes_delivered)}"],
        [
            "message latency",
            f"mean {time(row.mean_message_latency_s)}, 50 % {time(row.p50_message_latency_s)}, "
            f"90 % {time(row.p90_message_latency_s)}, 99.9 % {time(row.p999_message_latency_s)}",
        ],
        [
            "chunk latency",
            f"mean {time(row.mean_chunk_latency_s)}, max {time(row.max_chunk_latency_s)}",
        ],
        [
            "ways",
            f"{row.minimal_chunks} chunks minimal, {row.detoured_chunks} by way of another group",
        ],
        ["bottleneck", f"{row.bottleneck}, sending for {time(row.bottleneck_busy_s)}"],
        [
            "stalls",
            f"local {time(row.local_stall_s)}, global {time(row.global_stall_s)}, "
            f"to terminals {time(row.ejection_stall_s)}, "
            f"from terminals {time(row.injection_stall_s)}, summed over channels",
        ],
        ["simulated", f"{row.router_forwards} forwards by routers, {row.events} events"],
    ]
    return f"{head}\n\n{align(facts)}"


TABLE_COLUMNS = (
    *("pattern", "message_bytes", "period_s", "routing", "last_delivery_s"),
    *("mean_message_latency_s", "p99_message_latency_s", "max_message_latency_s", "mean_hops"),
    *("local_stall_s", "global_stall_s"),
)


def _table(rows: list[TrafficRow]) -> str:
    """Returns a table with a line per case."""
    first = rows[0]
    head = f"{first.messages} messages from each of {first.terminals} terminals"
    return f"{head} of {fabric_text(first.fabric)}\n{table(rows, TABLE_COLUMNS)}"


def draw(rows: list[TrafficRow], path: Path) -> None:
    """Draws a single case over time, or the latencies of several cases."""
    from opticoll import plot
    from opticoll.plot.style import conditions

    if len(rows) == 1:
        (case_row,) = rows
        plot.packets(case_row.outcome, case_row.case.fabric, path, _name(case_row, rows))
        return
    named = {_name(row, rows): row.outcome for row in rows}
    first = rows[0]
    fabric = first.case.fabric
    title = f"{fabric.family}, {first.terminals} terminals, {first.messages} messages each"
    plot.latencies(named, path, f"{title}, {conditions(fabric.spec)}")


def _name(named_row: TrafficRow, rows: list[TrafficRow]) -> str:
    """Returns the options in which a case differs from the other cases."""
    parts = [
        (row.case.pattern, row.case.size, f"every {row.case.period}", row.routing) for row in rows
    ]
    named_parts = parts[[row is named_row for row in rows].index(True)]
    differing = [len(set(column)) > 1 for column in zip(*parts, strict=True)]
    if not any(differing):
        return ", ".join(named_parts)
    return ", ".join(part for part, differs in zip(named_parts, differing, strict=True) if differs)
