"""Traces of programs: event tables, GOAL, time-independent traces, OTF2, Parquet, Chakra and more.

The format is recognized by content (`recognition`); a content that no signature fits is an event
table. An OTF2 archive is a folder or tar file that contains an anchor file `.otf2`. Traces of
Chakra and liballprof have one file per rank, in one folder. Files may be compressed with zstd.

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
import re
from collections.abc import Callable
from pathlib import Path

from opticoll import formats
from opticoll._core import Trace, TraceError, take_memory
from opticoll._core import read_trace as read_in_core
from opticoll.errors import UsageError
from opticoll.formats.content import decompressed, naming, read_content

DEFAULT_OPERATIONS = 1_000_000_000
"""Default number of floating-point operations per second, for traces that count operations."""

BEGINNING = 4096
"""Number of bytes at the beginning of an event table within which the names of columns end."""

BYTES_PER_LINE = 200
"""Bytes of memory for the event of a line of text."""

_OF_RANK_0 = ("*.0.json*", "*rank-0.txt*")
"""Names of the files of rank 0 of Chakra's JSON and of liballprof."""

Source = str | os.PathLike[str]


def read(
    source: Source | bytes, form: str | None = None, operations_per_second: int | None = None
) -> Trace:
    """Reads a trace from a file, a folder, or the content of a file as bytes.

    `form` names the format; by default, the content shows the format.

    Raises
    ------
    FileError
        The source cannot be read or decompressed.
    TraceError
        The trace is malformed; the message names the file and the line, byte, or rank and event.
    UsageError
        There is no such format, or the format needs a package that is not installed.
    """
    path = "trace" if isinstance(source, bytes) else source
    by_name = {candidate.name: candidate for candidate in formats.formats_of("trace")}
    if form is not None and form not in by_name:
        raise UsageError(f"`{form}` is not a format of traces; known are {', '.join(by_name)}")
    chosen = None if form is None else by_name[form]
    with naming(path, TraceError):
        if isinstance(source, bytes):
            content = decompressed(source)
        elif os.path.isdir(path) and (first := _first_file(Path(path))) is not None:
            path, content = first, read_content(first)
        elif os.path.isdir(path):
            one_a_rank = any(Path(path).glob("*.et*"))
            content, chosen = b"", chosen or by_name["chakra" if one_a_rank else "otf2"]
        else:
            content = read_content(path)
        events = BYTES_PER_LINE * content.count(b"\n")
        take_memory(f"reading `{path}`", len(content) + events)
        chosen = chosen or formats.recognized_format(content, path, "a trace", "trace")
        if chosen is None and content.strip() and b"," not in content[:BEGINNING]:
            raise TraceError(
                "this is no trace that opticoll recognizes; see `opticoll list formats`"
            )
        chosen = chosen or by_name["table"]
        if not chosen.name.startswith("time_independent"):
            _refuse_rate(path, operations_per_second)
        trace: Trace = chosen.read(path, content, operations_per_second or DEFAULT_OPERATIONS)
        return trace


def _first_file(folder: Path) -> Path | None:
    """Returns the file of rank 0 in a folder with a text file per rank; None if there is none."""
    return next((file for form in _OF_RANK_0 for file in sorted(folder.glob(form))), None)


def _refuse_rate(path: Source, operations_per_second: int | None) -> None:
    if operations_per_second is not None:
        raise UsageError(
            f"`{path}` holds times and no numbers of operations; leave the rate of operations out"
        )


def _core_reader(form: str) -> Callable[[Source, bytes, int], Trace]:
    """Returns the compiled core's reader of a format."""
    return lambda _, content, operations: read_in_core(content, form, operations)


def time_independent_index(path: Source, content: bytes, operations: int) -> Trace:
    """Reads the time-independent traces whose file names an index lists.

    SimGrid writes one file per rank, and an index with a name on each line. Names are relative to
    the index.

    Raises
    ------
    FileError
        A file cannot be read.
    TraceError
        A trace is malformed; the message names the file and the line.
    """
    files = [Path(path).parent / name for name in content.decode("utf-8", "replace").split()]
    contents = [read_content(file) for file in files]
    lines = [one.rstrip(b"\n").count(b"\n") + 1 for one in contents]
    try:
        joined = b"\n".join(one.rstrip(b"\n") for one in contents)
        return read_in_core(joined, "time_independent", operations)
    except TraceError as error:
        if (place := re.match(r"line (\d+)", str(error))) is None:
            raise
        number = int(place[1])
        for file, count in zip(files, lines, strict=True):
            if number <= count:
                raise TraceError(f"{file}: line {number}{str(error)[place.end() :]}") from error
            number -= count
        raise


goal, table = _core_reader("goal"), _core_reader("table")
time_independent = _core_reader("time_independent")
