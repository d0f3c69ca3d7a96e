"""Traces of programs: event tables, GOAL, time-independent traces, OTF2, Parquet, Chakra.

The content of a file shows its format: GOAL begins with `num_ranks`, Parquet with `PAR1`; an OTF2
archive is a folder or tar file with an anchor file `.otf2`; a Chakra trace has a file for each
rank, beside one another or in a folder (`.et`); the lines of a time-independent trace begin with
a rank and an action; everything else is an event table.
Files may be compressed with zstd.

>>> import pathlib, tempfile
>>> path = pathlib.Path(tempfile.mkdtemp()) / "hello.csv"
>>> _ = path.write_text("# app=hello ranks=2\\n"
...     "rank,call,peer,send_bytes,recv_bytes,tag,comm,req,compute_ns\\n"
...     "0,Send,1,8,0,7,0,,100\\n1,Recv,0,0,8,7,0,,40\\n")
>>> read(path)
<Trace 2 ranks, 2 events>
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from opticoll import formats
from opticoll._core import Trace, TraceError, take_memory
from opticoll._core import read_trace as read_in_core
from opticoll.errors import UsageError
from opticoll.formats.content import decompressed, naming, read_content

DEFAULT_OPERATIONS = 1_000_000_000
"""Floating-point operations per second for traces that count operations rather than time."""

BYTES_PER_LINE = 200
"""Bytes of a line of text in memory, as an event."""

Source = str | os.PathLike[str]


def read(
    source: Source | bytes, form: str | None = None, operations_per_second: int | None = None
) -> Trace:
    """Returns the trace in a file or folder, of a named format or of the format its content shows.

    A source may also be the content of a file.

    Raises
    ------
    FileError
        It cannot be read or decompressed.
    TraceError
        It is malformed; the message names file and line, byte, or rank and event.
    UsageError
        There is no such format, or a package is missing that reads it.
    """
    path = "trace" if isinstance(source, bytes) else source
    known = {candidate.name: candidate for candidate in formats.formats_of("trace")}
    if form is not None and form not in known:
        raise UsageError(f"`{form}` is not a format of traces; known are {', '.join(known)}")
    chosen = None if form is None else known[form]
    with naming(path, TraceError):
        if isinstance(source, bytes):
            content = decompressed(source)
        elif os.path.isdir(path):
            one_a_rank = any(Path(path).glob("*.et*"))
            content, chosen = b"", chosen or known["chakra" if one_a_rank else "otf2"]
        else:
            content = read_content(path)
        events = BYTES_PER_LINE * content.count(b"\n")
        take_memory(f"reading `{path}`", len(content) + events)
        if content.startswith(b"opticoll plan "):
            raise UsageError(f"`{path}` is a plan and no trace; `opticoll simulate` times it")
        chosen = chosen or formats.recognized_format("trace", content)
        if chosen.name != "time_independent":
            _refuse_rate(path, operations_per_second)
        trace: Trace = chosen.read(path, content, operations_per_second or DEFAULT_OPERATIONS)
        return trace


def _refuse_rate(path: Source, operations_per_second: int | None) -> None:
    if operations_per_second is not None:
        raise UsageError(
            f"`{path}` holds times and no numbers of operations; leave the rate of operations out"
        )


def _core_reader(form: str) -> Callable[[Source, bytes, int], Trace]:
    """Returns the reader of a format that the compiled core reads."""
    return lambda _, content, operations: read_in_core(content, form, operations)


goal, table = _core_reader("goal"), _core_reader("table")
time_independent = _core_reader("time_independent")
