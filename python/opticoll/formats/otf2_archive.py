"""OTF2 archives as traces, read by the package `otf2` of the Score-P team (an extra).

Calls have names that begin with `MPI_`, and the time between two calls is local work. Times come
from the archive's clock, rounded to nanoseconds. The records inside a call determine the calls of
the trace:

* A send, a receive, a collective, or the begin of a request becomes a call of the same kind.
* The end of a request becomes a wait for this request.
* A send and a receive in one call (`MPI_Sendrecv`) become a nonblocking receive, a send and a wait.
* A call without records, such as `MPI_Init` or `MPI_Comm_split`, becomes a call that does not
  communicate.

Archives contain only the total bytes of an exchange whose sizes vary, so the bytes are divided
evenly among the members. Local work before the first call is left out.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
from array import array
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from opticoll._core import EventTable, Trace, TraceError
from opticoll.errors import FileError, needed
from opticoll.formats.content import MAX_BYTES
from opticoll.formats.parquet_table import ABSENT, NUMBERS

MAX_FILES = 2**20
"""Maximum number of files of a packed archive; a program writes two per thread, and a few more."""

LEAST_SECONDS = 60
SECONDS_PER_MEGABYTE = 20
"""Time limit for reading an archive, about ten times the usual time."""

# Name of the call, and whether the call has a root, by OTF2's name of the collective operation.
_COLLECTIVES = {
    "BARRIER": ("Barrier", False),
    "BCAST": ("Bcast", True),
    "GATHER": ("Gather", True),
    "SCATTER": ("Scatter", True),
    "REDUCE": ("Reduce", True),
    "ALLREDUCE": ("Allreduce", False),
    "ALLGATHER": ("Allgather", False),
    "REDUCE_SCATTER": ("Reduce_scatter", False),
    "REDUCE_SCATTER_BLOCK": ("Reduce_scatter", False),
    "ALLTOALL": ("Alltoall", False),
    "ALLTOALLV": ("Alltoallv", False),
}


def read_trace(path: str | os.PathLike[str], content: bytes, _: object = None) -> Trace:
    """Reads the trace in an archive; archives are recognized by content, not by name."""
    return trace(Path(path), content)


def trace(path: Path, content: bytes) -> Trace:
    """Reads the trace in an archive: a folder, or the `content` of a tar file or an anchor file.

    Raises
    ------
    UsageError
        The package `otf2` is not installed.
    FileError
        The path is no OTF2 archive, or parts of the archive are missing.
    TraceError
        A record cannot be replayed; the message names rank and call.
    """
    needed("otf2", "OTF2 archives are read by", "trace")
    with unpacked(path, content) as anchor:
        try:
            return to_trace(_read_in_subprocess(anchor))
        except NotIntactError as error:
            raise FileError(f"`{path}` is not an intact OTF2 archive: {error}") from error


@contextmanager
def unpacked(path: Path, content: bytes) -> Iterator[Path]:
    """Yields the path of an archive's anchor file; a tar file is unpacked to a temporary folder."""
    if path.is_dir():
        yield _anchor(path, path)
    elif content[1:6] == b"BOTF2":
        yield path
    else:
        with tempfile.TemporaryDirectory() as folder:
            _unpack(path, content, Path(folder))
            yield _anchor(Path(folder), path)


class NotIntactError(Exception):
    """Problem that the package `otf2` reports in an archive."""


def to_trace(packed: bytes) -> Trace:
    """Returns the trace of the calls in `packed`, which the reading process printed."""
    head, _, columns = packed.partition(b"\n")
    header = json.loads(head)
    communicators = {int(number): members for number, members in header["communicators"].items()}
    table = EventTable(header["ranks"], communicators)
    rows = np.frombuffer(columns, np.uint64).reshape(1 + len(NUMBERS), -1)
    call = rows[0].astype(np.uint32)
    table.extend(header["names"], call, list(rows[1:]), [tuple(sizes) for sizes in header["sizes"]])
    return table.finish()


def _read_in_subprocess(anchor: Path) -> bytes:
    """Reads the calls of an archive in a process of its own, and returns them as bytes.

    The package is written in C and prints warnings on damaged archives. In its own process, it can
    neither fill our standard error, nor crash our process, nor block an interrupt.
    """
    beside = [anchor.with_suffix(".def"), *anchor.with_suffix("").rglob("*")]
    size = sum(file.stat().st_size for file in beside if file.is_file())
    seconds = LEAST_SECONDS + SECONDS_PER_MEGABYTE * size // 10**6
    # With -P, Python does not search the current folder for modules.
    command = [sys.executable, "-P", "-m", __name__, str(anchor), str(seconds)]
    finished = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    if finished.returncode == 0:
        return finished.stdout
    output = finished.stdout.decode("utf-8", "replace")
    match finished.returncode:
        case code if code == _REFUSED:
            raise TraceError(output)
        case code if code == _NOT_INTACT:
            raise NotIntactError(output)
        case code if code == -signal.SIGXCPU:
            raise NotIntactError(f"reading {size} bytes takes more than {seconds} s of computing")
        case code:
            raise NotIntactError(f"the library that reads it ended with {code}")


def _read_and_print(anchor: str, seconds: str) -> int:
    """Reads an archive in the reading process; prints the calls or the problem.

    Returns the exit code of the process.
    """
    with suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds) + 1))
    try:
        output, code = read(Path(anchor)), 0
    except TraceError as error:
        output, code = str(error).encode("utf-8", "replace"), _REFUSED
    except NotIntactError as error:
        output, code = str(error).encode("utf-8", "replace"), _NOT_INTACT
    sys.stdout.buffer.write(output)
    return code


_REFUSED, _NOT_INTACT = 3, 4


def read(anchor: Path) -> bytes:
    """Reads the calls of an archive in this process.

    Returns bytes: a line of JSON, followed by columns of 64-bit numbers.
    """
    import otf2

    try:
        with otf2.reader.open(str(anchor)) as archive:
            return _Archive(archive, otf2.events).packed()
    except (TraceError, NotIntactError):
        raise
    except Exception as error:  # the package raises built-in exceptions too
        problem = " ".join(str(error).split()) or type(error).__name__
        if isinstance(error, LookupError):
            problem = f"it refers to {problem}, which it does not define"
        raise NotIntactError(problem) from error


def _anchor(folder: Path, path: Path) -> Path:
    anchors = sorted(folder.rglob("*.otf2"))
    if len(anchors) != 1:
        raise FileError(
            f"`{path}` has {len(anchors)} anchor files (.otf2); an OTF2 archive has one"
        )
    return anchors[0]


def _unpack(path: Path, content: bytes, folder: Path) -> None:
    """Unpacks a tar file into `folder`, and never writes outside of it."""
    size = 0
    try:
        with tarfile.open(fileobj=io.BytesIO(content), mode="r:") as packed:
            for count, member in enumerate(packed):
                size += member.size
                if count >= MAX_FILES or size > MAX_BYTES:
                    raise FileError(
                        f"`{path}` is too large: more than {MAX_FILES} files or {MAX_BYTES} bytes"
                    )
                _unpack_member(path, packed, member, folder)
    except FileError:
        raise
    except (tarfile.TarError, EOFError, ValueError, ArithmeticError, OSError) as error:
        problem = getattr(error, "strerror", None) or error
        raise FileError(f"`{path}` is not an intact tar file: {problem}") from error


def _unpack_member(
    path: Path, packed: tarfile.TarFile, member: tarfile.TarInfo, folder: Path
) -> None:
    if not (member.isdir() or member.isreg()) or member.issparse():
        raise FileError(
            f"`{path}` holds `{member.name}`, which is neither a file nor a folder; "
            "links and devices are not unpacked"
        )
    name = PurePosixPath(member.name)
    if name.is_absolute() or ".." in name.parts or not member.name.isprintable():
        raise FileError(f"`{path}` holds `{member.name}`, which is not a name below its own folder")
    target = folder / name
    if member.isdir():
        target.mkdir(parents=True, exist_ok=True)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    unpacked = packed.extractfile(member)
    if unpacked is not None:
        with target.open("xb") as file:
            shutil.copyfileobj(unpacked, file)


@dataclass
class _Row:
    """Call of a rank; the number of bytes of an `Irecv` is set when its request ends."""

    call: str
    peer: int | None = None
    sent: int = 0
    received: int = 0
    tag: int | None = None
    communicator: int = 0
    request: int | None = None
    sizes: list[int] | None = None
    compute: int = 0


@dataclass
class _Rank:
    """State of a rank while its events are read in order."""

    rows: list[_Row] = field(default_factory=list)
    inside: str | None = None
    """Name of the current call; None between calls."""
    since: int | None = None
    """Time at which the previous call ended; None before the first call."""
    compute: int = 0
    new: list[_Row] = field(default_factory=list)
    """Rows of the current call."""
    open: dict[int, _Row] = field(default_factory=dict)
    """Rows of pending receive requests, by number of the request."""
    own: int = 0
    """Number of requests that were added for send-receive calls; their numbers start at 2^31."""


class _Archive:
    def __init__(self, archive: Any, events: Any) -> None:
        self.events = events
        self.source = archive.events
        self.nanoseconds = 10**9 / archive.timer_resolution
        definitions = archive.definitions
        self.rank_of: dict[Any, int] = {}
        self.members: dict[Any, list[int]] = {}
        self.numbers: dict[Any, int] = {}
        communicators = list(definitions.comms)
        largest = max(communicators, key=lambda comm: len(comm.group.members), default=None)
        if largest is None:
            raise NotIntactError("it has no communicators: no MPI program was traced")
        for rank, location in enumerate(largest.group.members):
            self.rank_of[location] = rank
        self.numbers[largest] = 0
        for comm in communicators:
            self.numbers.setdefault(comm, len(self.numbers))
            self.members[comm] = [self.rank_of[member] for member in comm.group.members]
        self.ranks = defaultdict[int, _Rank](_Rank)

    def packed(self) -> bytes:
        for location, event in self.source:
            rank = self.rank_of.get(location)
            if rank is not None:
                self._take(rank, self.ranks[rank], event)
        return self._packed()

    def _take(self, number: int, rank: _Rank, event: Any) -> None:
        events = self.events
        if isinstance(event, events.Enter):
            if rank.inside is None and event.region.name.upper().startswith("MPI_"):
                rank.inside = event.region.name
                if rank.since is not None:
                    rank.compute += event.time - rank.since
            return
        if isinstance(event, events.Leave):
            if rank.inside is not None and event.region.name == rank.inside:
                self._close(number, rank)
                rank.since = event.time
            return
        if rank.inside is not None:
            self._record(number, rank, event)

    def _record(self, number: int, rank: _Rank, event: Any) -> None:
        events, new = self.events, rank.new
        if isinstance(event, events.MpiSend):
            new.append(self._send("Send", event))
        elif isinstance(event, events.MpiIsend):
            row = self._send("Isend", event)
            row.request = event.request_id
            new.append(row)
        elif isinstance(event, events.MpiRecv):
            new.append(self._receive(_Row("Recv"), event))
        elif isinstance(event, events.MpiIrecvRequest):
            row = _Row("Irecv", request=event.request_id)
            rank.open[event.request_id] = row
            new.append(row)
        elif isinstance(event, events.MpiIrecv):
            opened = rank.open.pop(event.request_id, None)
            if opened is None:
                raise TraceError(
                    f"rank {number}, event {len(rank.rows)}: request {event.request_id} ends and "
                    "was not opened"
                )
            self._receive(opened, event)
            new.append(_Row("Wait", request=event.request_id))
        elif isinstance(event, events.MpiIsendComplete):
            new.append(_Row("Wait", request=event.request_id))
        elif isinstance(event, events.MpiCollectiveEnd) and not _makes(event):
            new.append(self._collective(number, rank, event))

    def _send(self, call: str, event: Any) -> _Row:
        comm = event.communicator
        peer = self.members[comm][event.receiver]
        number = self.numbers[comm]
        return _Row(call, peer, event.msg_length, 0, event.msg_tag, number)

    def _receive(self, row: _Row, event: Any) -> _Row:
        comm = event.communicator
        row.peer = self.members[comm][event.sender]
        row.received, row.tag = event.msg_length, event.msg_tag
        row.communicator = self.numbers[comm]
        return row

    def _collective(self, number: int, rank: _Rank, event: Any) -> _Row:
        name = _name(event)
        if name not in _COLLECTIVES:
            raise TraceError(
                f"rank {number}, event {len(rank.rows)}: the collective {name} cannot be replayed; "
                f"known are {', '.join(_COLLECTIVES)}"
            )
        call, rooted = _COLLECTIVES[name]
        comm = event.communicator
        members = self.members[comm]
        row = _Row(call, None, event.size_sent, event.size_received)
        row.communicator = self.numbers[comm]
        if rooted:
            row.peer = members[event.root]
        if call == "Alltoallv":
            share, remainder = divmod(event.size_sent, len(members))
            row.sizes = [share + (place < remainder) for place in range(len(members))]
        return row

    def _close(self, number: int, rank: _Rank) -> None:
        """Ends the current call; the first row of the call gets the local work before the call."""
        new = rank.new or [_Row(_silent(rank.inside or ""))]
        kinds = [row.call for row in new]
        if "Send" in kinds and "Recv" in kinds:
            send = next(row for row in new if row.call == "Send")
            receive = next(row for row in new if row.call == "Recv")
            rank.own += 1
            receive.call, receive.request = "Irecv", 2**31 + rank.own
            new = [receive, send, _Row("Wait", request=receive.request)]
        new[0].compute = rank.compute
        rank.rows += new
        rank.inside, rank.new, rank.compute = None, [], 0

    def _packed(self) -> bytes:
        columns = [array("Q") for _ in range(1 + len(NUMBERS))]
        names: dict[str, int] = {}
        sizes = []
        for number in range(len(self.rank_of)):
            for index, row in enumerate(self.ranks[number].rows):
                if row.call == "Irecv" and row.peer is None:
                    raise TraceError(
                        f"rank {number}, event {index}: request {row.request} never ends, so that "
                        "the archive does not say what it receives"
                    )
                if row.sizes is not None:
                    sizes.append((len(columns[0]), row.sizes))
                call = names.setdefault(row.call, len(names))
                compute = round(row.compute * self.nanoseconds)
                bytes_ = (row.sent, row.received)
                numbers = (row.peer, *bytes_, row.tag, row.communicator, row.request, compute)
                for column, cell in zip(columns, (call, number, *numbers), strict=True):
                    column.append(ABSENT if cell is None else cell)
        head = {
            "ranks": len(self.rank_of),
            "communicators": {
                self.numbers[comm]: members for comm, members in self.members.items()
            },
            "names": list(names),
            "sizes": sizes,
        }
        return json.dumps(head).encode() + b"\n" + b"".join(map(bytes, columns))


def _name(event: Any) -> str:
    return str(event.collective_op).rsplit(".", 1)[-1]


def _makes(event: Any) -> bool:
    """Returns whether a call creates or closes a communicator, window or file.

    Such a call moves no bytes.
    """
    return any(word in _name(event) for word in ("HANDLE", "ALLOCATE"))


def _silent(region: str) -> str:
    """Returns the name for a call that does not communicate."""
    call_names = {"MPI_INIT": "Init", "MPI_INIT_THREAD": "Init", "MPI_FINALIZE": "Finalize"}
    return call_names.get(region.upper(), "Comm_split")


if __name__ == "__main__":
    sys.exit(_read_and_print(*sys.argv[1:]))
