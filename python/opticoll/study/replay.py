"""Replays of traced MPI programs over networks: times of calls, ranks and light paths.

>>> import pathlib, tempfile
>>> path = pathlib.Path(tempfile.mkdtemp()) / "hello.csv"
>>> _ = path.write_text("# app=hello ranks=2\\n"
...     "rank,call,peer,send_bytes,recv_bytes,tag,comm,req,compute_ns\\n"
...     "0,Send,1,1000,0,7,0,,500\\n1,Recv,0,0,1000,7,0,,40\\n")
>>> done = replay(Job(path, "crossbar:ranks=2,rate=8Gb/s,latency=0s"))
>>> done.row["time_s"], done.row["messages"]
(1.5e-06, 1)
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypedDict

from opticoll import _core, config, registry
from opticoll._core import Fabric, Replay, Trace, check_network, replay_trace
from opticoll.errors import TraceError, UsageError
from opticoll.formats import trace_file
from opticoll.settings import Settings

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "MODELS",
    "CallRow",
    "CollectiveRow",
    "Done",
    "Job",
    "LightPathRow",
    "RankRow",
    "ReplayRow",
    "draw",
    "replay",
    "slices",
    "write_timeline",
]

MODELS = ("zero", "hockney", "loggp", "light_path_grid")
"""Networks that are formulas for each message, beside the fabrics."""

PICOSECONDS = 10**12

_MOST = 2**32 - 1


@dataclass(frozen=True)
class Job:
    """What is replayed over what.

    trace
        A file or folder (see `opticoll.formats.trace_file`), or one that was read.
    fabric
        A fabric, its spelling, the name of its YAML file, or one of `MODELS` with its options, such
        as `hockney:latency=1us,rate=10Gb/s`.
    collectives
        The algorithm of a collective by its name, such as `{"all_reduce": "ring"}`; others have
        `auto`, the fastest plan found for their ranks and their size.
    cpu_factor
        By what local work is multiplied, such as `0.5` or `1/3`.
    eager
        The largest message that leaves before its receive has begun: a size, `all` or `none`.
    end_overhead
        What a rank spends on each message sent and received, such as `500ns`.
    operations_per_second
        For traces that count operations in place of time.
    timeline
        Whether to keep the begin and end of every call.
    settings
        The simulator of a fabric and its settings.
    bursts
        Settings of light paths and of bursts, by name, where each message asks for a light path in
        a network of bursts: `fabric` is then one of `study.bursts`, such as
        `ladder:columns=5,computers=4,wavelengths=8,rate=10Gb/s`. `intensity` is 0 if not given.
    """

    trace: Trace | str | os.PathLike[str]
    fabric: Fabric | str = "zero"
    collectives: Mapping[str, str] = field(default_factory=dict)
    cpu_factor: str | float = 1
    eager: str | int | None = None
    end_overhead: str | None = None
    operations_per_second: int | None = None
    timeline: bool = False
    settings: Settings = field(default_factory=Settings)
    bursts: Mapping[str, str] | None = None


class CallRow(TypedDict):
    """A kind of call: how often, the time inside summed over ranks and the longest of one rank."""

    call: str
    calls: int
    messages: int
    bytes: int
    total_s: float
    longest_s: float


class RankRow(TypedDict):
    """A rank: when it ended, its local work, its time in calls and in setting up light paths."""

    rank: int
    finish_s: float
    compute_s: float
    calls_s: float
    setting_up_s: float
    messages: int
    bytes: int


class LightPathRow(TypedDict):
    """What light paths cost; None where waiting is not simulated.

    The last three, None but in a network of bursts: requests that were refused, bursts beside
    them, and the share of those that was lost.
    """

    set_ups: int
    setting_up_s: float
    waited: int | None
    waiting_s: float | None
    most_at_once: int | None
    refusals: int | None
    bursts: int | None
    burst_loss: float | None


class CollectiveRow(TypedDict):
    """A collective among so many ranks: what was asked for and what its plan was made by.

    `size_bytes` is the size that it was chosen for, None where the algorithm does not depend on it.
    """

    collective: str
    ranks: int
    size_bytes: int | None
    algorithm: str
    chosen: str


class ReplayRow(TypedDict):
    """A replay."""

    trace: str | None
    fabric: str
    simulator: str
    settings: dict[str, str]
    injection_bandwidth: int | None
    collectives: list[CollectiveRow]
    cpu_factor: str
    eager: str
    overhead_s: float
    ranks: int
    trace_events: int
    time_s: float
    time_ps: int
    compute_s: float
    messages: int
    bytes: int
    events: int
    busiest_link: str | None
    busiest_link_utilisation: float | None
    light_paths: LightPathRow | None
    per_call: list[CallRow]
    per_rank: list[RankRow]


@dataclass(frozen=True)
class Done:
    """A replay with the numbers drawn from it; whether its ranks make one call after another."""

    replay: Replay
    row: ReplayRow
    in_order: bool


def replay(job: Job) -> Done:
    """Replay a trace.

    Raises
    ------
    OpticollError
        A file that is no trace, an unknown network or setting, a program that cannot go on.
    """
    network = _network(job.fabric) if job.bursts is None else _over_bursts(job)
    numerator, denominator = _factor(job.cpu_factor)
    eager_bytes, rendezvous = _eager(job.eager)
    overhead_ps = 0 if job.end_overhead is None else _core.parse_time(job.end_overhead)
    kinds = [record["name"] for record in registry.records("collectives")]
    algorithms = dict.fromkeys(kinds, registry.DEFAULT_ALGORITHM)
    algorithms |= {
        _core.collective_kind(kind): registry.algorithm_spelling(kind, algorithm)
        for kind, algorithm in job.collectives.items()
    }
    trace = job.trace
    if not isinstance(trace, Trace):
        trace = trace_file.read(trace, None, job.operations_per_second)
    try:
        done = replay_trace(
            trace,
            network,
            algorithms,
            compute_factor=(numerator, denominator),
            overhead_ps=overhead_ps,
            eager_bytes=eager_bytes,
            rendezvous=rendezvous,
            timeline=job.timeline,
            bursts=None if job.bursts is None else dict(job.bursts),
            **job.settings,
        )
    except TraceError as error:
        if isinstance(job.trace, Trace):
            raise
        raise TraceError(f"{os.fspath(job.trace)}: {error}") from error
    light = done.network.startswith("light_path_grid")
    row = _row(done, trace)
    row["trace"] = None if isinstance(job.trace, Trace) else os.fspath(job.trace)
    row["settings"] = {
        name: str(value) for name, value in job.settings.items() if name != "simulator"
    }
    row["settings"] |= job.bursts or {}
    if job.bursts is None and not registry.canonical(network.split(":", 1)[0], MODELS):
        row["injection_bandwidth"] = Fabric(network).injection_bandwidth
    factor = Fraction(numerator, denominator)
    row["cpu_factor"] = str(factor)
    row["eager"] = _spell_eager(eager_bytes, none=rendezvous or light)
    row["overhead_s"] = overhead_ps / PICOSECONDS
    return Done(done, row, trace.has_calls)


def _network(fabric: Fabric | str) -> str:
    """The spelling of a network in full."""
    if isinstance(fabric, str) and registry.canonical(fabric.split(":", 1)[0], MODELS):
        return check_network(fabric)
    return config.to_fabric(fabric).spec


def _over_bursts(job: Job) -> str:
    """The spelling of a network of bursts."""
    given = [name for name, value in job.settings.items() if value is not None]
    if given:
        raise UsageError(f"over a network of bursts there is no {given[0]}; leave it out")
    if not isinstance(job.fabric, str):
        raise UsageError("a network of bursts is spelled out, with wavelengths=... of its links")
    return job.fabric


def _factor(factor: str | float) -> tuple[int, int]:
    """A factor as a fraction of 32-bit numbers."""
    problem = f"the factor of local work is a number such as 0.5 or 1/3, not `{factor}`"
    try:
        exact = Fraction(str(factor))
    except (ValueError, ZeroDivisionError):
        raise UsageError(problem) from None
    if exact < 0 or exact.numerator > _MOST or exact.denominator > _MOST:
        raise UsageError(f"{problem}: from 0 to {_MOST}, with a denominator of at most that")
    return exact.numerator, exact.denominator


def _eager(eager: str | int | None) -> tuple[int | None, bool]:
    """The largest eager message, and whether there is none."""
    if eager is None or eager == "all":
        return None, False
    if eager == "none":
        return None, True
    return config.to_bytes(eager), False


def _spell_eager(limit: int | None, *, none: bool) -> str:
    if none:
        return "none"
    return "all" if limit is None else _core.format_size(limit)


def _row(done: Replay, trace: Trace) -> ReplayRow:
    columns = done.ranks_columns
    compute_ps, finish_ps = columns["compute_ps"], columns["finish_ps"]
    calls = done.calls
    inside = sum((call["time_ps"] for call in calls.values()), start=0 * compute_ps)

    def seconds(column: NDArray[Any], rank: int) -> float:
        return int(column[rank]) / PICOSECONDS

    ranks: list[RankRow] = [
        {
            "rank": rank,
            "finish_s": seconds(finish_ps, rank),
            "compute_s": seconds(compute_ps, rank),
            "calls_s": seconds(inside, rank),
            "setting_up_s": seconds(columns["setting_up_ps"], rank),
            "messages": int(columns["messages"][rank]),
            "bytes": int(columns["bytes"][rank]),
        }
        for rank in range(trace.ranks)
    ]
    kinds: list[CallRow] = [
        {
            "call": name,
            "calls": int(call["calls"].sum()),
            "messages": call["messages"],
            "bytes": call["bytes"],
            "total_s": int(call["time_ps"].sum()) / PICOSECONDS,
            "longest_s": int(call["time_ps"].max()) / PICOSECONDS,
        }
        for name, call in calls.items()
    ]
    busiest = done.busiest_link
    return {
        "trace": None,
        "fabric": done.network,
        "injection_bandwidth": None,
        "simulator": done.simulator,
        "settings": {},
        "collectives": [
            CollectiveRow(
                collective=kind, ranks=ranks, size_bytes=size, algorithm=asked, chosen=chosen
            )
            for kind, ranks, size, asked, chosen in done.chosen
        ],
        "cpu_factor": "1",
        "eager": "all",
        "overhead_s": 0.0,
        "ranks": trace.ranks,
        "trace_events": trace.events,
        "time_s": done.time_ps / PICOSECONDS,
        "time_ps": done.time_ps,
        "compute_s": int(compute_ps.max()) / PICOSECONDS,
        "messages": done.messages,
        "bytes": done.bytes,
        "events": done.events,
        "busiest_link": None if busiest is None else busiest[0],
        "busiest_link_utilisation": None if busiest is None else busiest[1],
        "light_paths": _light_paths(done),
        "per_call": kinds,
        "per_rank": ranks,
    }


def _light_paths(done: Replay) -> LightPathRow | None:
    used = done.light_paths
    if used is None:
        return None
    waiting = used.get("waiting_ps")
    return {
        "set_ups": used["set_ups"],
        "setting_up_s": used["setting_up_ps"] / PICOSECONDS,
        "waited": used.get("waited"),
        "waiting_s": None if waiting is None else waiting / PICOSECONDS,
        "most_at_once": used.get("most_at_once"),
        "refusals": used.get("refusals"),
        "bursts": used.get("bursts"),
        "burst_loss": used["bursts_lost"] / used["bursts"] if used.get("bursts") else None,
    }


def slices(done: Done) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]:
    """The time-line of all ranks without gaps: rank, start and end (ps), and index of the call.

    Local work, which lies between calls, has the index -1. They are in order of rank and start.
    What overlaps, as operations of GOAL do, has no gaps to be filled.
    """
    import numpy as np

    columns = done.replay.timeline
    order = np.lexsort((columns["event"], columns["rank"]))
    rank, call = columns["rank"][order], order.astype(np.int64)
    start, end = columns["start_ps"][order], columns["end_ps"][order]
    # A rank works from the end of its last call to the begin of the next.
    before = np.zeros_like(end)
    before[1:] = np.where(rank[1:] == rank[:-1], end[:-1], 0)
    works = (start > before) & done.in_order
    ranks = np.concatenate([rank, rank[works]])
    starts = np.concatenate([start, before[works]])
    ends = np.concatenate([end, start[works]])
    calls = np.concatenate([call, np.full(int(works.sum()), -1)])
    sequence = np.lexsort((starts, ranks))
    return ranks[sequence], starts[sequence], ends[sequence], calls[sequence]


def write_timeline(done: Done, path: str | os.PathLike[str]) -> None:
    """Write a time-line for Perfetto.

    Raises
    ------
    FileError
        The file cannot be written.
    """
    from opticoll.formats import chrome_trace

    names, columns = _core.call_names(), done.replay.timeline
    rows = zip(*(column.tolist() for column in slices(done)), strict=True)
    pieces = (
        chrome_trace.Slice(rank, "compute", start, end, None)
        if call < 0
        else chrome_trace.Slice(
            rank, names[columns["call"][call]], start, end, int(columns["event"][call])
        )
        for rank, start, end, call in rows
    )
    name = f"{done.row['trace']} over {done.row['fabric']}"
    chrome_trace.write(name, done.row["ranks"], pieces, path)


def draw(done: Done, path: str | os.PathLike[str]) -> None:
    """Draw what each rank does over time.

    Raises
    ------
    PlotError
        Too many ranks, or no time passes.
    FileError
        The file cannot be written.
    """
    import numpy as np

    from opticoll import plot

    names = _core.call_names()
    # 0 local work, 1 single messages and waiting, 2 collectives: by the number of the call.
    first = names.index("barrier")
    kinds = np.array([0 if name == "local" else 1 + (at >= first) for at, name in enumerate(names)])
    rank, start, end, call = slices(done)
    called = done.replay.timeline["call"]
    kind = np.where(call < 0, 0, kinds[called[np.maximum(call, 0)]]) if len(called) else call
    row = done.row
    name = "" if row["trace"] is None else f"{os.path.basename(row['trace'])}, "
    title = f"{name}{row['fabric']}"
    plot.rank_timeline(
        rank, kind, start / PICOSECONDS, end / PICOSECONDS, row["ranks"], path, title=title
    )
