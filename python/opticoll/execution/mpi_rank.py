"""A rank of a program that MPI processes execute; `mpiexec` runs this module with `python -m`.

One process executes the thread blocks of the rank in turn, each block until the block has to wait.
If no block can continue within the time limit, the process reports the cause and ends all other
processes.
"""

from __future__ import annotations

import json
import os
import pickle
import signal
import sys
import threading
import time
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opticoll.execution.elements import TYPES
from opticoll.execution.interpreter import Interpreter, StuckError, buffers
from opticoll.execution.payload import Payload, differing

POLL_S = 0.5
"""Seconds between two checks whether the starting process still exists."""

MAX_POLLS = 200
"""Number of polls for a message before the process sleeps for a moment."""


GRACE_S = 2.0
"""Additional seconds that ranks other than 0 wait, so that rank 0 can name the missing rank."""


class Messages:
    """Messages of a rank as MPI messages of bytes, since MPI has no types of 16-bit numbers."""

    def __init__(self, comm: Any) -> None:
        self.comm = comm
        self.sent: list[tuple[Any, str]] = []
        """MPI request of each message on its way, and the error text if no rank receives it."""

    def receive(self, source: int, channel: int, like: NDArray[Any]) -> NDArray[Any] | None:
        """Returns the next message as an array like `like`, or None if it has not arrived."""
        if not self.comm.Iprobe(source=source, tag=channel):
            return None
        value = np.empty_like(like)
        self.comm.Recv(value.view(np.uint8), source=source, tag=channel)
        return value

    def send(self, value: NDArray[Any], to: int, channel: int, position: str) -> None:
        """Sends a message, which must not change until it has arrived."""
        request = self.comm.Isend(value.view(np.uint8), dest=to, tag=channel)
        problem = f"{position} waits for rank {to} to receive on channel {channel}"
        self.sent.append((request, problem))


def carry_out(
    interpreter: Interpreter, messages: Messages, limit_s: float, progress: NDArray[np.int64]
) -> None:
    """Executes all thread blocks of a rank, and updates `progress`.

    Raises
    ------
    StuckError
        No instruction ends within the time limit.
    """

    def note(block: int, step: int) -> None:
        progress[1:4] = (progress[1] + 1, block, step)

    moved, idle = time.monotonic(), 0
    while True:
        moving = interpreter.advance(note)
        messages.sent = [one for one in messages.sent if not one[0].Test()]
        if interpreter.ended and not messages.sent:
            return
        if moving:
            moved, idle = time.monotonic(), 0
            continue
        idle += 1
        if idle > MAX_POLLS:
            time.sleep(0.0005)
            if time.monotonic() - moved > limit_s:
                raise StuckError(interpreter.waiting() or messages.sent[0][1])


def library(comm: Any, payload: Payload, limit_s: float) -> tuple[float, NDArray[Any]]:
    """Runs the collective of `payload` in the MPI library; returns seconds and the output.

    Raises
    ------
    StuckError
        The collective takes longer than the time limit.
    """
    from mpi4py import MPI

    rank, collective = comm.Get_rank(), payload.collective
    own_input = payload.input(rank)
    output = np.empty(payload.sizes(rank)[1], payload.dtype)
    kind = TYPES[payload.element_type]
    operator = getattr(MPI, "SUM" if payload.operator == "avg" else payload.operator.upper())
    if own := kind.dtype.itemsize == 2:
        # MPI has no 16-bit numbers: integers with the same bits, and an operator of our own.
        combine, dtype = kind.combine(payload.operator), kind.dtype

        def into(first: Any, second: Any, _: Any) -> None:
            result = np.frombuffer(second, dtype)
            result[:] = combine(np.frombuffer(first, dtype), result)

        operator = MPI.Op.Create(into, commute=True)
        own_input, output = own_input.view(np.uint16), output.view(np.uint16)
    root = collective.root
    meet(comm, limit_s)
    start = time.perf_counter()
    match collective.kind:
        case "all_gather":
            request = comm.Iallgather(own_input, output)
        case "reduce_scatter":
            request = comm.Ireduce_scatter_block(own_input, output, op=operator)
        case "all_reduce":
            request = comm.Iallreduce(own_input, output, op=operator)
        case "all_to_all":
            request = comm.Ialltoall(own_input, output)
        case "broadcast":
            output[: own_input.size] = own_input
            request = comm.Ibcast(output, root=root)
        case "reduce":
            request = comm.Ireduce(
                own_input, output if rank == root else None, op=operator, root=root
            )
        case "gather":
            request = comm.Igather(own_input, output if rank == root else None, root=root)
        case _:
            request = comm.Iscatter(own_input if rank == root else None, output, root=root)
    end(request, limit_s, f"the MPI library's own {collective.kind} does not end")
    output = payload.finish(output.view(payload.dtype))
    seconds = time.perf_counter() - start
    if own:
        operator.Free()
    return seconds, output


def wrong(comm: Any, payload: Payload, output: NDArray[Any], limit_s: float) -> int:
    """Returns the number of wrong elements in the parts of the payload that this rank checks.

    A rank checks its parts of the outputs of all ranks, so that each input is computed once.

    Raises
    ------
    StuckError
        The output of another rank does not arrive within the time limit.
    """
    own_rank, ranks = comm.Get_rank(), comm.Get_size()
    problem = "does not get the output of another rank"
    # The arrays must not change until they have arrived.
    sent = [
        (part.of(output).ravel(), number % ranks)
        for number, part in enumerate(payload.parts())
        if number % ranks != own_rank
    ]
    requests = [comm.Isend(own.view(np.uint8), dest=checker) for own, checker in sent]
    differences = 0
    for part in islice(payload.parts(), own_rank, None, ranks):
        for rank in range(ranks):
            found = part.of(output).ravel()
            if rank != own_rank:
                found = np.empty(part.sizes(rank)[1], part.dtype)
                end(comm.Irecv(found.view(np.uint8), source=rank), limit_s, problem)
            differences += differing(found, part.output(rank))
    for request in requests:
        end(request, limit_s, problem)
    return differences


def end(request: Any, limit_s: float, problem: str) -> None:
    """Waits for an MPI request to end.

    Raises
    ------
    StuckError
        The request takes longer than the time limit.
    """
    start = time.monotonic()
    while not request.Test():
        if time.monotonic() - start > limit_s:
            raise StuckError(problem)
        time.sleep(0)


def meet(comm: Any, limit_s: float) -> None:
    """Waits until all ranks have called this function: each rank tells rank 0, which then answers.

    Raises
    ------
    StuckError
        A rank does not call the function within the time limit.
    """
    rank, nothing = comm.Get_rank(), np.empty(0, np.int8)
    if rank > 0:
        comm.Isend(nothing, dest=0).Free()
        awaited = {0: comm.Irecv(nothing, source=0)}
        limit_s += GRACE_S
    else:
        awaited = {peer: comm.Irecv(nothing, source=peer) for peer in range(1, comm.Get_size())}
    start = time.monotonic()
    while awaited := {peer: request for peer, request in awaited.items() if not request.Test()}:
        if time.monotonic() - start > limit_s:
            raise StuckError("waits for others to begin with it", tuple(awaited))
        time.sleep(0)
    if rank == 0:
        for source in range(1, comm.Get_size()):
            comm.Isend(nothing, dest=source).Free()


def state(identity: int) -> str:
    """Returns Linux's letter for the state of a process; X if there is no such process."""
    try:
        return Path(f"/proc/{identity}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "X"


def lives(identity: int) -> bool:
    """Returns whether a process exists and is not a zombie."""
    return state(identity) not in "ZX"


def died(rank: int, block: int, step: int) -> str:
    """Returns the message about a rank that died at a step of a thread block."""
    return f"rank {rank} died at thread block {block}, step {step}"


def silent(rank: int, block: int, step: int) -> str:
    """Returns the message about a rank that does not answer at a step of a thread block."""
    return f"rank {rank} does not answer; it was last seen at thread block {block}, step {step}"


def leave_with(folder: str, watcher: int, starter: int) -> None:
    """Ends this process if its watcher or the starting process ends.

    If the watcher ends first, this process creates a file `.left` in `folder`.
    """
    while lives(watcher) and lives(starter):
        time.sleep(POLL_S)
    if lives(starter):
        Path(folder, f"{os.getpid()}.left").touch()
    os._exit(1)


def leave_after(watcher: int) -> None:
    """Ends this process if its watcher ends."""
    while lives(watcher):
        time.sleep(POLL_S)
    os._exit(1)


def watched(folder: str) -> int:
    """Executes the jobs in a folder in a child process; creates a file `.died` if the child dies.

    Returns the exit code of the child.
    """
    # MPICH's launcher sends this signal if another rank has ended.
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    watcher, rank = os.getpid(), os.fork()
    if rank == 0:
        main(folder, watcher)
        return 0
    code = os.waitstatus_to_exitcode(os.waitpid(rank, 0)[1])
    if code < 0:
        Path(folder, f"{rank}.died").touch()
    return int(code != 0)


def progress(folder: str, ranks: int) -> NDArray[np.int64]:
    """Returns the progress of all ranks as an array with a row per rank.

    The columns are the process, the number of executed instructions, the thread block, the step and
    the watcher. The number of a process that has done all jobs is negative.

    The array is mapped to a file, which the starting process reads.
    """
    return np.memmap(Path(folder, "progress"), np.int64, "r+", shape=(ranks, 5))


def run(
    comm: Any, job: dict[str, Any], payload: Payload, progress: NDArray[np.int64]
) -> dict[str, Any]:
    """Executes a job as one of its ranks, and updates `progress`; returns the outcome of all ranks.

    Raises
    ------
    StuckError
        No instruction ends within the time limit.
    """
    rank, limit_s = comm.Get_rank(), job["time_limit"]
    progress[[0, 4]] = os.getpid(), os.getppid()
    # Programs may use any tag, so ranks wait for each other on a separate communicator.
    apart = comm.Dup()
    seconds = 0.0
    for _ in range(job["repetitions"]):
        memory = buffers(payload, rank, job["scratch"], in_place=job["in_place"])
        messages = Messages(comm)
        interpreter = Interpreter(job["blocks"], payload, memory, messages)
        meet(apart, limit_s)
        start = time.perf_counter()
        carry_out(interpreter, messages, limit_s, progress)
        output = payload.finish(memory[1][: payload.sizes(rank)[1]])
        seconds += (time.perf_counter() - start) / job["repetitions"]
    library_seconds, library_output = library(apart, payload, limit_s)
    own_row = (
        seconds,
        wrong(apart, payload, output, limit_s),
        library_seconds,
        differing(output, library_output),
    )
    rows = np.empty((comm.Get_size(), len(own_row)))
    end(apart.Iallgather(np.array(own_row, float), rows), limit_s, "gets no outcome of others")
    apart.Free()
    return {
        "seconds": float(rows[:, 0].max()),
        "wrong": int(rows[:, 1].sum()),
        "library_seconds": float(rows[:, 2].max()),
        "differing": int(rows[:, 3].sum()),
    }


def main(folder: str, watcher: int) -> None:
    """Executes the jobs in a folder, and writes the outcomes or the error to the folder."""
    from mpi4py import MPI

    from opticoll._core import Collective

    comm = MPI.COMM_WORLD
    rank = comm.Get_rank()
    all_progress = progress(folder, comm.Get_size())
    # The starting process wrote this file into its own folder.
    with open(Path(folder, f"{rank}.job"), "rb") as file:
        jobs = pickle.load(file)
    threading.Thread(
        target=leave_with, args=(folder, watcher, jobs[0]["starter"]), daemon=True
    ).start()
    try:
        outcomes = []
        for job in jobs:
            kind, ranks, root, pieces = job["collective"]
            collective = Collective(kind, ranks, root=root, pieces=pieces)
            payload = Payload(collective, job["elements"], job["element_type"], job["operator"])
            outcomes.append(run(comm, job, payload, all_progress[rank]))
        if rank == 0:
            Path(folder, "outcome").write_text(json.dumps(outcomes))
        # This process may take longer to leave than others; it has not died.
        all_progress[rank, 0] *= -1
    except BaseException as error:
        reason = f"rank {rank}: {error or type(error).__name__}"
        ranks = all_progress.tolist()
        if isinstance(error, StuckError) and error.missing:
            stopped = [peer for peer in error.missing if state(ranks[peer][0]) in "Tt"]
            missing = (stopped or error.missing)[0]
            _, _, block, step, _ = ranks[missing]
            reason = silent(missing, block, step)
        elif not isinstance(error, StuckError):
            # Messages fail a moment before the system reports the death of their sender.
            time.sleep(POLL_S)
            ranks = all_progress.tolist()
            _, _, block, step, _ = ranks[rank]
            words = str(error).splitlines() or [type(error).__name__]
            reason = f"rank {rank}: thread block {block}, step {step}: {words[0]} {words[-1]}"
            rows = enumerate(ranks)
            for other, (identity, _, block, step, _) in rows:
                if identity > 0 and not lives(identity):
                    reason = died(other, block, step)
        Path(folder, f"{rank}.error").write_text(reason)
        comm.Abort(1)


if __name__ == "__main__":
    sys.exit(watched(sys.argv[1]))
