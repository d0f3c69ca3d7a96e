"""Simulations of the study, several at the same time; every plan is verified.

>>> from opticoll_papers.dragonfly.cases import gather
>>> from opticoll_papers.dragonfly.runs import run
>>> rows = run([gather(2, "TAR", 64), gather(2, "RING", 64)], jobs=2)
>>> [(case.algorithm, row["verified"]) for case, row in rows.items()]
[('TAR', True), ('RING', True)]
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, TypedDict, cast

import opticoll
from opticoll import Fabric, Outcome, Plan
from opticoll_papers.dragonfly.cases import (
    ALGORITHMS,
    BACKGROUND,
    FLUID,
    FLUID_DELAYED,
    PACKETS,
    Case,
    Cut,
    Delays,
    fabric,
)

if TYPE_CHECKING:
    from opticoll_papers.common import Progress, Unfinished


class Row(TypedDict):
    """A case and its outcome; values that only packets have are None for flows.

    Bytes and stalls are sums over the links of a class, with background traffic. `full_channels` is
    the number of virtual channels of routers whose buffer was full at some time.
    """

    collective: str
    algorithm: str
    terminals: int
    variant: str
    size_bytes: int
    simulator: str
    rule: str
    background: str
    packet_bytes: int
    chunk_bytes: int
    buffers: str
    time_s: float
    messages: int
    mean_message_latency_s: float | None
    mean_hops: float | None
    injected_bytes: int | None
    local_bytes: int | None
    global_bytes: int | None
    injection_stall_s: float | None
    router_stall_s: float | None
    full_channels: int | None
    verified: bool


Rows = Mapping[Case, Row]


class OnDemand(dict[Case, Row]):
    """Rows by case; a missing case is simulated when it is first accessed."""

    def __missing__(self, case: Case) -> Row:
        self[case] = row = run([case])[case]
        return row


def run(
    cases: Iterable[Case],
    jobs: int = 1,
    progress: Progress | None = None,
    store: Unfinished | None = None,
) -> dict[Case, Row]:
    """Simulates cases, `jobs` at a time, longest first; returns rows in the order of cases.

    The simulators release the interpreter's lock, so threads are enough. Results do not depend on
    `jobs`. `progress` is called with the case that begins, and with the number of completed cases.
    Rows in `store` are reused, and new rows are added to `store`.

    Raises
    ------
    OpticollError
        A case cannot be simulated, or its row cannot be stored. No further cases begin.
    """
    cases = list(cases)
    rows: dict[Case, Row] = {}
    if store is not None:
        stored = {case: store.find(asdict(case)) for case in cases}
        rows = {case: cast(Row, row) for case, row in stored.items() if row is not None}
    missing = [case for case in cases if case not in rows]
    missing.sort(key=_work, reverse=True)
    plans = _Plans(missing)
    ended = len(rows)
    lock = threading.Lock()

    def one(case: Case) -> Row:
        nonlocal ended
        if progress is not None:
            with lock:
                progress(case.words, ended, len(cases))
        row = plans.measure(case)
        if store is not None:
            store.add(asdict(case), row)
        with lock:
            ended += 1
        return row

    with ThreadPoolExecutor(max(1, jobs)) as pool:
        pending = {
            pool.submit(one, case): case for case in sorted(missing, key=_work, reverse=True)
        }
        try:
            for future in as_completed(pending):
                rows[pending[future]] = future.result()
        except BaseException as error:
            plans.stop()
            pool.shutdown(wait=False, cancel_futures=True)
            if isinstance(error, KeyboardInterrupt):
                opticoll.interrupt_all()
            raise
    return {case: rows[case] for case in cases}


def _work(case: Case) -> float:
    """Estimates the work of a case in chunks, to sort cases; congested chunks weigh more."""
    ranks = fabric(case.network).ranks
    if case.simulator != PACKETS:
        return 0.0
    if case.collective == "scatter":
        return 5e3 * ranks if case.background else 0.0
    chunks = ranks**2 * max(1.0, case.size_bytes / case.cut.chunk_bytes)
    if "BRUCK" in case.algorithm:
        chunks = 3 * ranks**2 * case.size_bytes / case.cut.chunk_bytes
    return chunks + (5e3 * ranks if case.background else 0.0)


class _Plans:
    """Plans and their violations, computed at first use, dropped after the last case."""

    def __init__(self, cases: Iterable[Case]) -> None:
        self._left = Counter(_key(case) for case in cases)
        self._made: dict[object, tuple[Plan, bool]] = {}
        self._locks = {key: threading.Lock() for key in self._left}
        self._stopped = threading.Event()

    def stop(self) -> None:
        """Stops packet simulations at their next check, without a result."""
        self._stopped.set()

    def measure(self, case: Case) -> Row:
        """Builds, verifies and simulates the plan of a case."""
        key = _key(case)
        with self._locks[key]:
            if key not in self._made:
                plan = _plan(case)
                self._made[key] = plan, not plan.verify()
            plan, verified = self._made[key]
        outcome = plan.simulate(case.size_bytes, watch=self._watch, **settings(case))
        with self._locks[key]:
            self._left[key] -= 1
            if not self._left[key]:
                del self._made[key]
        return _row(case, plan, outcome, verified)

    def _watch(self, _events: int, _messages: int, _time_ps: int) -> None:
        if self._stopped.is_set():
            raise KeyboardInterrupt


def _key(case: Case) -> tuple[object, ...]:
    """Returns all facts that a plan depends on; for flows with delays also the size and the cut."""
    name, _ = ALGORITHMS[case.algorithm]
    key = (case.network, case.variant, case.collective, name)
    if case.simulator != FLUID_DELAYED:
        return key
    return (*key, case.size_bytes, case.cut)


def _plan(case: Case) -> Plan:
    name, _ = ALGORITHMS[case.algorithm]
    plan = opticoll.plan(case.collective, fabric(case.network, variant=case.variant), name)
    if case.simulator != FLUID_DELAYED:
        return plan
    # Size of a chunk of a message of mean length; each step delivers one chunk to every rank.
    ranks = plan.fabric.ranks
    chunk = min(case.cut.chunk_bytes, (ranks - 1) * case.size_bytes // plan.slots)
    return opticoll.plan(case.collective, fabric(case.network, delays(chunk, case.cut)), name)


def settings(case: Case) -> Any:
    """Returns the simulator's settings for a case, with texts as values."""
    if case.simulator != PACKETS:
        flows = {"simulator": FLUID, "start": "sender"}
        return flows | ({"endpoint": "loggp"} if case.simulator == FLUID_DELAYED else {})
    _, placement = ALGORITHMS[case.algorithm]
    packets = _cut_settings(case.cut) | {"router_delay_rule": case.rule}
    if placement is not None:
        packets["placement"] = placement
    if case.background:
        packets["background"] = BACKGROUND
    return packets


def _cut_settings(cut: Cut) -> dict[str, str]:
    return {
        "simulator": PACKETS,
        "packet": f"{cut.packet_bytes}B",
        "chunk": f"{cut.chunk_bytes}B",
        "buffers": cut.buffers,
    }


@lru_cache
def delays(chunk_bytes: int, cut: Cut) -> Delays:
    """Returns latencies of links with which a flow takes as long as a chunk in an empty network.

    A flow needs the time of its bytes once, at its slowest link. A chunk needs the time of its
    bytes on every link, and the delay of every router. The differences are measured between two
    ranks on one router, on two routers, and in two groups.
    """
    rate = "rate=5.25GiB/s,global_rate=40372692582b/s,latency=0ns"
    whole: dict[str, int] = {}
    for name, shape in {
        "router": "terminals_per_router=2,routers_per_group=1,global_per_router=1,groups=1",
        "local": "terminals_per_router=1,routers_per_group=2,global_per_router=1,groups=1",
        "global": "terminals_per_router=1,routers_per_group=1,global_per_router=1,groups=2",
    }.items():
        plan = opticoll.plan("scatter", Fabric(f"dragonfly:{shape},{rate}"), "lin")
        assert not plan.verify()
        alone: Any = _cut_settings(cut)
        chunk = plan.simulate(chunk_bytes, **alone).time_ps
        whole[name] = chunk - plan.simulate(chunk_bytes, simulator=FLUID).time_ps
    terminal = whole["router"] // 2
    return Delays(terminal, whole["local"] - 2 * terminal, whole["global"] - 2 * terminal)


def _row(case: Case, plan: Plan, outcome: Outcome, verified: bool) -> Row:
    row = Row(
        collective=case.collective,
        algorithm=case.algorithm,
        terminals=plan.fabric.ranks,
        variant=case.variant,
        size_bytes=case.size_bytes,
        simulator=case.simulator,
        rule=case.rule,
        background=BACKGROUND if case.background else "",
        packet_bytes=case.cut.packet_bytes,
        chunk_bytes=case.cut.chunk_bytes,
        buffers=case.cut.buffers,
        time_s=outcome.time_ps / 1e12,
        messages=len(plan),
        mean_message_latency_s=None,
        mean_hops=None,
        injected_bytes=None,
        local_bytes=None,
        global_bytes=None,
        injection_stall_s=None,
        router_stall_s=None,
        full_channels=None,
        verified=verified,
    )
    if "latencies" not in outcome.tables:
        return row
    classes = {row_of_class["class"]: row_of_class for row_of_class in outcome.classes}

    def total(what: Literal["bytes", "stall_ps"], *names: str) -> int:
        return sum(classes[name][what] for name in names if name in classes)

    channels = outcome.channels
    full = channels["peak_chunks"] >= channels["capacity_chunks"]
    of_routers = [name != "injection" for name in outcome.links["class"]]
    row["mean_message_latency_s"] = outcome.latencies.rows()[0]["mean_ps"] / 1e12
    row["mean_hops"] = outcome.mean_hops
    row["injected_bytes"] = total("bytes", "injection")
    row["local_bytes"] = total("bytes", "local")
    row["global_bytes"] = total("bytes", "global")
    row["injection_stall_s"] = total("stall_ps", "injection") / 1e12
    row["router_stall_s"] = total("stall_ps", "ejection", "local", "global") / 1e12
    row["full_channels"] = sum(
        of_routers[link] for link, is_full in zip(channels["link"], full, strict=True) if is_full
    )
    return row
