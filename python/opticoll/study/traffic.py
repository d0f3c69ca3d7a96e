"""Traffic alone, packet by packet: independent cases side by side.

>>> from opticoll._core import Fabric
>>> from opticoll.study.traffic import Case, run
>>> fabric = Fabric("dragonfly:terminals_per_router=2,routers_per_group=4,global_per_router=2")
>>> (done,) = run([Case(fabric, "uniform", "2KiB", "1us", 10)])
>>> done.row["messages_delivered"], done.row["bytes_delivered"]
(720, 1474560)
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypedDict

from opticoll._core import (
    Fabric,
    Outcome,
    expected_traffic,
    interrupt_all,
    parse_size,
    parse_time,
    simulate_traffic,
)
from opticoll.settings import Settings

__all__ = ["Case", "Done", "TrafficRow", "expected", "run"]

PICOSECONDS = 10**12
CLASSES = ("injection", "local", "global", "ejection")


@dataclass(frozen=True)
class Case:
    """A pattern of messages of a size and period on a fabric, so many from each terminal."""

    fabric: Fabric
    pattern: str
    size: str
    period: str
    messages: int
    settings: Settings = field(default_factory=Settings)

    @property
    def traffic(self) -> str:
        """As the core spells it."""
        separator = "," if ":" in self.pattern else ":"
        options = f"bytes={self.size},period={self.period},messages={self.messages}"
        return f"{self.pattern}{separator}{options}"


class TrafficRow(TypedDict):
    """One case; what `opticoll traffic --json` prints.

    Latencies run from the call that sends a message to the delivery of its last byte, those of
    chunks from the making of their packet. Percentiles are rounded up by at most 1/64. Stalls are
    summed over the virtual channels of all links of a class.
    """

    fabric: str
    terminals: int
    injection_bandwidth: int
    pattern: str
    message_bytes: int
    period_s: float
    messages: int
    routing: str
    settings: str
    last_delivery_s: float
    mean_last_delivery_s: float
    messages_delivered: int
    bytes_delivered: int
    mean_message_latency_s: float
    p50_message_latency_s: float
    p90_message_latency_s: float
    p99_message_latency_s: float
    p999_message_latency_s: float
    max_message_latency_s: float
    mean_chunk_latency_s: float
    max_chunk_latency_s: float
    mean_hops: float
    minimal_chunks: int
    detoured_chunks: int
    bottleneck: str | None
    bottleneck_busy_s: float
    injection_bytes: int
    injection_stall_s: float
    local_bytes: int
    local_stall_s: float
    global_bytes: int
    global_stall_s: float
    ejection_bytes: int
    ejection_stall_s: float
    router_forwards: int
    events: int


@dataclass(frozen=True)
class Done:
    """A case that was simulated."""

    case: Case
    packets: Outcome
    row: TrafficRow


class _StoppedError(Exception):
    """Another case has failed."""


def expected(cases: Sequence[Case]) -> tuple[int, int, int]:
    """The work of all cases: messages, chunks, about how many forwards by routers.

    Raises
    ------
    SimulationError
        A pattern or setting that is none.
    """
    works = [expected_traffic(one.fabric, one.traffic, **one.settings) for one in cases]
    messages, chunks, forwards = (sum(column) for column in zip(*works, strict=True))
    return messages, chunks, forwards


def run(
    cases: Sequence[Case],
    jobs: int = 1,
    progress: Callable[[int], None] | None = None,
    finished: Callable[[TrafficRow], object] | None = None,
    *,
    timeline: bool = False,
) -> list[Done]:
    """Simulate the cases, `jobs` of them at a time; the results do not depend on that.

    `progress` is called now and then with the number of messages delivered in all cases, `finished`
    with each row as soon as it is there.

    Raises
    ------
    SimulationError
        A case that does not run, or a deadlock.
    """
    delivered = [0] * len(cases)
    stop = threading.Event()

    def simulate(place: int) -> Done:
        def watch(_events: int, messages: int, _time_ps: int) -> None:
            if stop.is_set():
                raise _StoppedError
            delivered[place] = messages
            if progress is not None:
                progress(sum(delivered))

        case = cases[place]
        packets = simulate_traffic(
            case.fabric, case.traffic, watch=watch, timeline=timeline, **case.settings
        )
        done = Done(case, packets, _row(case, packets))
        if finished is not None:
            finished(done.row)
        return done

    if jobs == 1:
        return [simulate(place) for place in range(len(cases))]
    with ThreadPoolExecutor(max_workers=jobs) as pool:
        futures = [pool.submit(simulate, place) for place in range(len(cases))]
        try:
            return [future.result() for future in futures]
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
    classes = {one["class"]: one for one in packets.classes}
    link = packets.bottleneck
    none = {"bytes": 0, "stall_ps": 0}

    def bytes_of(name: str) -> int:
        return int(classes.get(name, none)["bytes"])

    def stall_of(name: str) -> float:
        return int(classes.get(name, none)["stall_ps"]) / PICOSECONDS

    settings = {name: value for name, value in case.settings.items() if name != "simulator"}
    return TrafficRow(
        fabric=case.fabric.spec,
        terminals=case.fabric.ranks,
        injection_bandwidth=case.fabric.injection_bandwidth,
        pattern=case.pattern,
        message_bytes=parse_size(case.size),
        period_s=parse_time(case.period) / PICOSECONDS,
        messages=case.messages,
        routing=case.settings.get("routing") or "minimal",
        settings=" ".join(f"{name}={value}" for name, value in settings.items()),
        last_delivery_s=packets.time_ps / PICOSECONDS,
        mean_last_delivery_s=packets.mean_finish_ps / PICOSECONDS,
        messages_delivered=message["count"],
        bytes_delivered=packets.bytes_delivered,
        mean_message_latency_s=message["mean_ps"] / PICOSECONDS,
        p50_message_latency_s=message["p50_ps"] / PICOSECONDS,
        p90_message_latency_s=message["p90_ps"] / PICOSECONDS,
        p99_message_latency_s=message["p99_ps"] / PICOSECONDS,
        p999_message_latency_s=message["p99_9_ps"] / PICOSECONDS,
        max_message_latency_s=message["max_ps"] / PICOSECONDS,
        mean_chunk_latency_s=chunk["mean_ps"] / PICOSECONDS,
        max_chunk_latency_s=chunk["max_ps"] / PICOSECONDS,
        mean_hops=packets.mean_hops,
        minimal_chunks=packets.minimal_chunks,
        detoured_chunks=packets.detoured_chunks,
        bottleneck=None if link is None else case.fabric.link_name(link),
        bottleneck_busy_s=packets.bottleneck_busy_ps / PICOSECONDS,
        injection_bytes=bytes_of("injection"),
        injection_stall_s=stall_of("injection"),
        local_bytes=bytes_of("local"),
        local_stall_s=stall_of("local"),
        global_bytes=bytes_of("global"),
        global_stall_s=stall_of("global"),
        ejection_bytes=bytes_of("ejection"),
        ejection_stall_s=stall_of("ejection"),
        router_forwards=packets.router_forwards,
        events=packets.events,
    )
