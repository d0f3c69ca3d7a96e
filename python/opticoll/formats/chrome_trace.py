"""Timelines of ranks for Perfetto and chrome://tracing: Chrome's trace-event format, as JSON.

Each rank is a thread. Each call, and each interval of local work between calls, is a complete event
(`ph` X). The fields `ts` and `dur` are microseconds with a resolution of 1 ps.

>>> slices = [Slice(0, "send", 500_000, 1_500_000, 3)]
>>> print(to_text("hello", 1, slices).splitlines()[3])
{"name":"send","cat":"call","ph":"X","ts":0.5,"dur":1.0,"pid":0,"tid":0,"args":{"event":3}}
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import NamedTuple

from opticoll.formats.atomic import write_file

MICROSECOND = 10**6
"""Number of picoseconds in a microsecond."""


class Slice(NamedTuple):
    """Interval of a rank's timeline, in picoseconds; `event` is None for local work."""

    rank: int
    name: str
    start_ps: int
    end_ps: int
    event: int | None


def to_text(name: str, ranks: int, slices: Iterable[Slice]) -> str:
    """Returns the JSON text, one event per line."""
    lines = [_line({"name": "process_name", "ph": "M", "pid": 0, "args": {"name": name}})]
    for rank in range(ranks):
        arguments = {"name": f"rank {rank}"}
        lines.append(
            _line({"name": "thread_name", "ph": "M", "pid": 0, "tid": rank, "args": arguments})
        )
    for interval in slices:
        event: dict[str, object] = {
            "name": interval.name,
            "cat": "compute" if interval.event is None else "call",
            "ph": "X",
            "ts": interval.start_ps / MICROSECOND,
            "dur": (interval.end_ps - interval.start_ps) / MICROSECOND,
            "pid": 0,
            "tid": interval.rank,
        }
        if interval.event is not None:
            event["args"] = {"event": interval.event}
        lines.append(_line(event))
    head = '{"displayTimeUnit":"ns","traceEvents":['
    return "\n".join([head, *(f"{line}," for line in lines[:-1]), lines[-1], "]}\n"])


def write(name: str, ranks: int, slices: Iterable[Slice], path: str | os.PathLike[str]) -> None:
    """Writes the JSON text to a file; the file is complete, or it does not appear.

    Raises
    ------
    FileError
        The file cannot be written.
    """
    text = to_text(name, ranks, slices)
    write_file(path, text)


def _line(event: dict[str, object]) -> str:
    return json.dumps(event, separators=(",", ":"))
