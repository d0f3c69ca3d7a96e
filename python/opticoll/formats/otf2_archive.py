"""OTF2 archives as traces, read by the package `otf2` of the Score-P team (an extra).

Time between two calls whose names begin with `MPI_` is local work; times are those of
the archive's clock, rounded to nanoseconds. A call is read from the records inside it:

* a send, a receive, the begin of a request, or a collective;
* the ends of requests, inside a call that waits or tests for them: a wait for each;
* a call with both a send and a receive (`MPI_Sendrecv`) receives without blocking, sends and waits;
* a call without records, such as `MPI_Init` or `MPI_Comm_split`, is one that communicates with
  nobody.

The total bytes of an exchange of various sizes are shared evenly among the members, since archives
hold no more. Local work before the first call is left out.
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
"""Maximum number of files of a packed archive: two per location of the run, and a few more."""

LEAST_SECONDS = 60
SECONDS_PER_MEGABYTE = 20
"""Limit of computing time for reading an archive, about ten times the time that reading takes."""

# By the name of OTF2's collective operation: the call, and whether it has a root.
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
    """Returns the trace in an archive of any name."""
    return trace(Path(path), content)


def trace(path: Path, content: bytes) -> Trace:
    """Returns the trace in an archive: a folder, or the `content` of a tar file or an anchor file.

    Raises
    ------
    UsageError
        The package `otf2` is not installed.
    FileError
        The path is not an OTF2 archive, or parts of it are missing.
    TraceError
        A record that cannot be replayed; the message names rank and call.
    """
    needed("otf2", "OTF2 archives are read by", "trace")
    with unpacked(path, content) as anchor:
        try:
            return to_trace(_read_in_subprocess(anchor))
        except NotIntactError as error:
            raise FileError(f"`{path}` is not an intact OTF2 archive: {error}") from error


@contextmanager
def unpacked(path: Path, content: bytes) -> Iterator[Path]:
    """Provides the anchor file of an archive, unpacked into a temporary folder if necessary."""
    if path.is_dir():
        yield _anchor(path, path)
    elif content[1:6] == b"BOTF2":
        yield path
    else:
        with tempfile.TemporaryDirectory() as folder:
            _unpack(path, content, Path(folder))
            yield _anchor(Path(folder), path)


class NotIntactError(Exception):
    """Problem that the library found in an archive."""


def to_trace(packed: bytes) -> Trace:
    """Returns the trace from the bytes that `_Archive.packed` made."""
    head, _, columns = packed.partition(b"\n")
    header = json.loads(head)
    communicators = {int(number): members for number, members in header["communicators"].items()}
    table = EventTable(header["ranks"], communicators)
    rows = np.frombuffer(columns, np.uint64).reshape(1 + len(NUMBERS), -1)
    call = rows[0].astype(np.uint32)
    table.extend(header["names"], call, list(rows[1:]), [tuple(sizes) for sizes in header["sizes"]])
    return table.finish()


def _read_in_subprocess(anchor: Path) -> bytes:
    """Returns the calls of an archive, read in a process of its own.

    The library is in C and prints warnings on damaged archives. In its own process it can neither
    fill our standard error, nor crash this process, nor block an interrupt.
    """
    beside = [anchor.with_suffix(".def"), *anchor.with_suffix("").rglob("*")]
    size = sum(file.stat().st_size for file in beside if file.is_file())
    seconds = LEAST_SECONDS + SECONDS_PER_MEGABYTE * size // 10**6
    # Without -P, Python would search the current folder for modules.
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
    """Runs in the reading process: prints the calls, or the problem, and returns the exit code."""
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
    """Returns the calls of an archive, read here: a line of JSON, then 64-bit columns."""
    import otf2

    try:
        with otf2.reader.open(str(anchor)) as archive:
            return _Archive(archive, otf2.events).packed()
    except (TraceError, NotIntactError):
        raise
    except Exception as error:  # the package raises its own and built-in exceptions
        problem = " ".join(str(error).split()) or type(error).__name__
        if isinstance(error, LookupError):
            problem = f"it refers to {problem}, which it does not define"
        raise NotIntactError(problem) from error


def _anchor(folder: Path, path: Path) -> Path:
    found = sorted(folder.rglob("*.otf2"))
    if len(found) != 1:
        raise FileError(f"`{path}` has {len(found)} anchor files (.otf2); an OTF2 archive has one")
    return found[0]


def _unpack(path: Path, content: bytes, folder: Path) -> None:
    """Writes the files of a tar file into a folder, and nothing outside of the folder."""
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
    """Call of a rank; the bytes of an `Irecv` are known when its request ends."""

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
    """State of a rank while its events are read."""

    rows: list[_Row] = field(default_factory=list)
    inside: str | None = None
    """Name of the open call, or None."""
    since: int | None = None
    """End of the previous call, or None."""
    compute: int = 0
    new: list[_Row] = field(default_factory=list)
    """Rows of the open call."""
    open: dict[int, _Row] = field(default_factory=dict)
    """Rows of open receive requests, by number of the request."""
    own: int = 0
    """Number of requests made for calls that both send and receive; their numbers start at 2^31."""


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
            share, rest = divmod(event.size_sent, len(members))
            row.sizes = [share + (place < rest) for place in range(len(members))]
        return row

    def _close(self, number: int, rank: _Rank) -> None:
        """Ends the open call and adds its rows, the first with the local work before the call."""
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
    """Returns whether a call makes or closes a communicator, window or file (no bytes move)."""
    return any(word in _name(event) for word in ("HANDLE", "ALLOCATE"))


def _silent(region: str) -> str:
    """Returns the name of a call without communication."""
    known = {"MPI_INIT": "Init", "MPI_INIT_THREAD": "Init", "MPI_FINALIZE": "Finalize"}
    return known.get(region.upper(), "Comm_split")


if __name__ == "__main__":
    sys.exit(_read_and_print(*sys.argv[1:]))
