"""Traces of liballprof, the tracer of LogGOPSim: the MPI calls of each rank, with their times.

    MPI_Init:100:-:-:200
    MPI_Isend:250:7104:36864:13,1,1:1:204:5641280,0,4:7000:260
    MPI_Wait:300:7000:0:310

A line has the name of the call, the time of its start, its arguments, and the time of its end, with
colons between them. Times are in microseconds. A datatype is `number,size,extent`, a communicator
is `number,rank,ranks`, a request is an address (`process_trace.cpp` of LogGOPSim). The files are
named `pmpi-trace-rank-0.txt`, `pmpi-trace-rank-1.txt` and so on; the path of one of them, or of
their folder, refers to all.

Local work is the time between the end of a call and the start of the next call. A trace does not
name the members of a communicator, so only communicators of all ranks are read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import NamedTuple

from opticoll._core import Trace, TraceError, take_memory
from opticoll._core import read_trace as read_in_core
from opticoll.errors import FileError
from opticoll.formats.content import read_content

NAME = re.compile(r"(?P<name>.*?)(?P<rank>\d{1,7})(?P<ending>\.txt(?:\.zst)?)", re.DOTALL)

BYTES_PER_LINE = 200
"""Bytes of memory for the row of a line."""

IGNORED = frozenset(
    f"MPI_{name}"
    for name in (
        *("Comm_rank", "Comm_size", "Get_count", "Iprobe", "Wtime", "Wtick", "Initialized"),
        *("Finalized", "Get_processor_name", "Type_size", "Abort", "Pcontrol", "Get_version"),
    )
)
"""Calls that exchange nothing; their time counts as local work."""

COUNTED: dict[str, tuple[int | None, int | None, int]] = {
    "Barrier": (None, None, 0),
    "Bcast": (1, 3, 4),
    "Reduce": (2, 5, 6),
    "Allreduce": (2, None, 5),
    "Gather": (1, 6, 7),
    "Scatter": (4, 6, 7),
    "Allgather": (1, None, 6),
    "Alltoall": (1, None, 6),
}
"""Positions of the count, of the root and of the communicator among the arguments of a collective.

The datatype follows the count.
"""


class Call(NamedTuple):
    """Call of a rank: name without `MPI_`, arguments, and times of start and end in ns."""

    name: str
    arguments: list[str]
    start_ns: int
    end_ns: int


def read_trace(path: str | os.PathLike[str], content: bytes, _: int) -> Trace:
    """Reads the traces of all ranks; `content` is the trace of the only rank if a name has no rank.

    Raises
    ------
    FileError
        A file is missing, or cannot be read.
    TraceError
        A trace is malformed, or has a call that is not read; the message names file and line.
    """
    files = _files(Path(path))
    contents = {file: read_content(file) for file in files} if files else {Path(path): content}
    lines = sum(one.count(b"\n") for one in contents.values())
    take_memory(f"reading `{path}`", BYTES_PER_LINE * lines)
    heading = "rank,call,peer,send_bytes,recv_bytes,tag,comm,req,compute_ns"
    rows = [f"# ranks={len(contents)}", heading]
    for rank, (file, one) in enumerate(contents.items()):
        rows += _rows(rank, len(contents), file, one.decode("utf-8", "replace"))
    return read_in_core("\n".join(rows).encode(), "table", 1)


def _files(path: Path) -> list[Path]:
    """Returns the files of all ranks, in the order of the ranks."""
    named = NAME.fullmatch(path.name)
    if named is None:
        return []
    by_rank: dict[int, Path] = {}
    try:
        for file in path.parent.iterdir():
            match = NAME.fullmatch(file.name)
            if match and (match["name"], match["ending"]) == (named["name"], named["ending"]):
                by_rank[int(match["rank"])] = file
    except OSError as error:
        raise FileError(f"cannot read `{path.parent}`: {error.strerror or error}") from error
    missing = next(rank for rank in range(len(by_rank) + 1) if rank not in by_rank)
    if missing < len(by_rank):
        absent = f"{named['name']}{missing}{named['ending']}"
        raise FileError(f"`{path}`: there is no `{absent}`, but {len(by_rank)} others")
    return [by_rank[rank] for rank in range(len(by_rank))]


def _rows(rank: int, ranks: int, file: Path, text: str) -> Iterator[str]:
    """Yields the rows of the event table of a rank."""
    opened: dict[int, int] = {}
    requests = work = 0
    ended: int | None = None
    stride = _stride(text)
    for line, written in enumerate(text.splitlines(), 1):
        if not written.strip() or written.lstrip().startswith("#"):
            continue

        def refuse(problem: str, line: int = line) -> TraceError:
            return TraceError(f"{file.name}, line {line}: {problem}")

        call = _call(written, refuse)
        if ended is None:
            # The clock of a rank begins with MPI_Init, whose own time is left out.
            ended = call.end_ns
            if call.name == "Init" or call.name == "Init_thread":
                yield f"{rank},Init,,0,0,0,,,0"
                continue
        if f"MPI_{call.name}" in IGNORED:
            continue
        work += call.start_ns - ended
        if call.start_ns < ended or call.end_ns < call.start_ns:
            raise refuse("the call starts before the previous call has ended, or ends before")
        ended = call.end_ns
        for name, fields in _events(call, ranks, opened, stride, refuse):
            if name in ("Isend", "Irecv"):
                requests += 1
                opened[fields.pop("address")] = fields["req"] = requests
            columns = ("peer", "sent", "received", "tag", "comm", "req")
            cells = [str(fields.get(column, "")) for column in columns]
            cells[1:4] = [cell or "0" for cell in cells[1:4]]
            yield f"{rank},{name},{','.join(cells)},{work}"
            work = 0


def _call(written: str, refuse: Callable[[str], TraceError]) -> Call:
    name, *words = (word.strip() for word in written.split(":"))
    if not name.startswith("MPI_") or len(words) < 2:
        raise refuse(f"`{written[:40]}` is not a call such as MPI_Wait:300:7000:0:310")
    times = []
    for word in (words[0], words[-1]):
        # MPI_Init has no start, and MPI_Finalize no end, because the clock does not run there.
        other = words[-1] if word is words[0] else words[0]
        try:
            times.append(int(Decimal(other if word == "-" else word) * 1000))
        except (InvalidOperation, ValueError, OverflowError):
            raise refuse(f"`{word}` is not a time in microseconds") from None
    return Call(name.removeprefix("MPI_"), words[1:-1], *times)


def _events(
    call: Call,
    ranks: int,
    opened: dict[int, int],
    stride: int,
    refuse: Callable[[str], TraceError],
) -> Iterator[tuple[str, dict[str, int]]]:
    """Yields the events of a call; those that open a request have its `address`."""

    def number(position: int, place: int = 0) -> int:
        try:
            return int(call.arguments[position].split(",")[place])
        except (IndexError, ValueError):
            problem = f"the argument {position + 1} of MPI_{call.name} is missing or no number"
            raise refuse(problem) from None

    def matched(what: str, position: int) -> int:
        if (value := number(position)) >= 0:
            return value
        problem = f"MPI_{call.name} has the {what} {value}, a wildcard or null rank"
        raise refuse(f"{problem}, so no message is known to match it")

    def size(position: int) -> int:
        """Returns the bytes of a count, which its datatype follows."""
        if (value := number(position) * number(position + 1, 1)) >= 0:
            return value
        raise refuse(f"the number of bytes is {value}")

    def check_members(position: int) -> None:
        if (members := number(position, 2)) != ranks:
            problem = f"a communicator of {members} of the {ranks} ranks"
            raise refuse(f"{problem}, whose members the trace does not name")

    def message(direction: str, count: int) -> dict[str, int]:
        """Returns the fields of a message; datatype, partner and tag follow its count."""
        peer, tag = matched("rank", count + 2), matched("tag", count + 3)
        return {"peer": peer, direction: size(count), "tag": tag}

    name = re.sub("^(I?)[rs]send$", r"\1send", call.name, flags=re.IGNORECASE).capitalize()
    if name in ("Send", "Isend", "Recv", "Irecv"):
        check_members(5)
        fields = message("sent" if "send" in name.lower() else "received", 1)
        yield name, fields | ({"address": number(6)} if name[0] == "I" else {})
    elif name == "Sendrecv":
        check_members(10)
        yield "Isend", message("sent", 1) | {"address": -1}
        yield "Irecv", message("received", 6) | {"address": -2}
        yield "Wait", {"req": opened.pop(-1)}
        yield "Wait", {"req": opened.pop(-2)}
    elif name in ("Wait", "Waitall"):
        count, first = (1, number(0)) if name == "Wait" else (number(0), number(1))
        for address in range(first, first + stride * count, stride):
            # A null request is no request of the trace.
            if address in opened:
                yield "Wait", {"req": opened.pop(address)}
    elif name == "Finalize":
        yield name, {}
    elif name in COUNTED:
        count_at, root_at, communicator_at = COUNTED[name]
        check_members(communicator_at)
        total = 0 if count_at is None else size(count_at)
        # The table states the blocks of an Alltoall for all members together.
        fields = {"sent": total * ranks if name == "Alltoall" else total, "received": total}
        yield name, fields | ({} if root_at is None else {"peer": matched("root", root_at)})
    else:
        known = ", ".join(
            ["Send", "Recv", "Isend", "Irecv", "Sendrecv", "Wait", "Waitall", *COUNTED]
        )
        raise refuse(f"MPI_{call.name} is not read; {known} are")


def _stride(text: str) -> int:
    """Returns the bytes of a request in an array: 4 (MPICH) if addresses show it, else 8.

    Requests of 8 bytes have addresses that are multiples of 8.
    """
    requests = re.finditer(r"^MPI_I(?:send|recv)\s*:.*:\s*(\d+)\s*:[^:]*$", text, re.MULTILINE)
    return 4 if any(int(one[1]) % 8 for one in requests) else 8
