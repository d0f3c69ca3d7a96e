"""Traces of MPI programs: event tables, GOAL, time-independent traces, OTF2, Parquet.

What a file is, its content says: GOAL begins with `num_ranks`, in its binary form with a number,
Parquet with `PAR1`; an OTF2 archive is a folder or tar file with an anchor file `.otf2`; the lines
of a time-independent trace begin with a rank and an action; everything else is an event table.
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
import re
from pathlib import Path

from opticoll._core import Trace, TraceError, read_goal_file, read_trace
from opticoll.errors import UsageError
from opticoll.formats.content import begins_with, decompressed, read_content

FORMS = ("table", "goal", "goal_binary", "time_independent", "parquet", "otf2")
"""The forms of traces."""

DEFAULT_OPERATIONS = 1_000_000_000
"""Floating-point operations per second, for traces that count operations and not time."""

_GOAL_BINARY = (4223).to_bytes(8, "little")
_GOAL_SPENT = (2342).to_bytes(8, "little")
_ACTION = re.compile(rb"\s*(#[^\n]*\n\s*)*\d+\s+[a-z_]+(\s|$)")


def read(
    source: str | os.PathLike[str] | bytes,
    form: str | None = None,
    operations_per_second: int | None = None,
) -> Trace:
    """The trace in a file or folder, of a form of `FORMS` or the one that its content shows.

    A source may also be the content of a file.

    Raises
    ------
    FileError
        It cannot be read or decompressed.
    TraceError
        It is malformed; the message names file and line, byte, or rank and event.
    UsageError
        A package is missing that reads this form.
    """
    path = "trace" if isinstance(source, bytes) else source
    if isinstance(source, bytes):
        content = decompressed(source)
        found = _form(content)
    elif os.path.isdir(path):
        content, found = b"", "otf2"
    elif form in (None, "goal_binary") and begins_with(path, _GOAL_BINARY):
        content, found = b"", "goal_binary_file"
        form = None
    else:
        content = read_content(path)
        found = _form(content)
    form = found if form is None else form
    if operations_per_second is not None and form != "time_independent":
        raise UsageError(
            f"`{path}` holds times and no numbers of operations; leave the rate of operations out"
        )
    try:
        if form == "goal_binary_file":
            return read_goal_file(path)
        if form == "otf2":
            from opticoll.formats import otf2_archive

            return otf2_archive.trace(Path(path), content)
        if form == "parquet":
            from opticoll.formats import parquet_table

            return parquet_table.trace(content)
        rate = DEFAULT_OPERATIONS if operations_per_second is None else operations_per_second
        return read_trace(content, form, rate)
    except TraceError as error:
        raise TraceError(f"{path}: {error}") from error


def _form(content: bytes) -> str:
    """What a content shows."""
    if content.startswith((_GOAL_BINARY, _GOAL_SPENT)):
        return "goal_binary"
    if content.startswith(b"PAR1"):
        return "parquet"
    if content[257:262] == b"ustar" or content[1:6] == b"BOTF2":
        return "otf2"
    first = re.sub(rb"//[^\n]*|/\*.*?\*/", b"", content[:4096], flags=re.DOTALL).lstrip()
    if first.startswith((b"num_ranks", b"rank ")):
        return "goal"
    return "time_independent" if _ACTION.match(content[:4096]) else "table"
