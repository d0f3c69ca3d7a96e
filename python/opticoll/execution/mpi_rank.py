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
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opticoll.execution.in_process import differing
from opticoll.execution.payload import OPERATORS, Payload

Buffers = list[NDArray[Any]]
"""Buffers for input, output and scratch; in place, one of input and output contains the other."""

Sent = tuple[Any, str]
"""MPI request of a sent message, and the error text if no rank receives the message."""

RECEIVING = {"r", "rcs", "rrc", "rrs", "rrcs"}
SENDING = {"s", "rcs", "rrs", "rrcs"}
REDUCING = {"rrc", "rrs", "rrcs"}
WRITING = {"r", "rcs", "rrc", "rrcs", "cpy"}

POLL_S = 0.5
"""Seconds between two checks whether the starting process still exists."""

MAX_POLLS = 200
"""Number of polls for a message before the process sleeps for a moment."""


GRACE_S = 2.0
"""Additional seconds that ranks other than 0 wait, so that rank 0 can name the missing rank."""


class StuckError(Exception):
    """Error if no thread block can continue; the message names what the first block waits for."""

    def __init__(self, message: str, missing: Sequence[int] = ()) -> None:
        super().__init__(message)
        self.missing = missing
        """Ranks that do not answer; some of them may only wait for another of these ranks."""


def buffers(payload: Payload, rank: int, scratch: int, *, in_place: bool) -> Buffers:
    """Returns the buffers of a rank, with the rank's input filled in."""
    piece = payload.collective.pieces * payload.elements
    own_input = payload.input(rank)
    sizes = payload.sizes(rank)
    if payload.collective.kind in ("broadcast", "reduce"):
        # Ranks without input or output only forward data.
        sizes = (piece, piece)
    parts = [np.zeros(size, payload.element_type) for size in sizes]
    if in_place:
        own_block = slice(rank * piece, (rank + 1) * piece)
        if sizes[0] == sizes[1]:
            parts[1] = parts[0]
        elif sizes[1] > sizes[0]:
            parts[0] = parts[1][own_block]
        elif sizes[0] > sizes[1] > 0:
            parts[1] = parts[0][own_block]
    parts[0][: own_input.size] = own_input
    return [*parts, np.zeros(scratch * payload.elements, payload.element_type)]


class Interpreter:
    """Interpreter that executes the thread blocks of a rank."""

    def __init__(
        self, comm: Any, job: dict[str, Any], payload: Payload, progress: NDArray[np.int64]
    ) -> None:
        self.comm, self.payload, self.progress = comm, payload, progress
        self.blocks, self.limit = job["blocks"], job["time_limit"]
        self.combine = OPERATORS[payload.operator]

    def carry_out(self, memory: Buffers) -> None:
        """Executes all thread blocks.

        Raises
        ------
        StuckError
            No instruction ends within the time limit.
        """
        from mpi4py import MPI

        next_of = [0] * len(self.blocks)
        sent: list[Sent] = []
        moved, idle = time.monotonic(), 0
        while True:
            moving = False
            for number, block in enumerate(self.blocks):
                while self._step(number, block, next_of, memory, sent):
                    next_of[number] += 1
                    moving = True
                    self.progress[1:4] = (self.progress[1] + 1, number, next_of[number])
            through = all(
                done == len(block[3]) for done, block in zip(next_of, self.blocks, strict=True)
            )
            if through and MPI.Request.Testall([request for request, _ in sent]):
                return
            if moving:
                moved, idle = time.monotonic(), 0
                continue
            idle += 1
            if idle > MAX_POLLS:
                time.sleep(0.0005)
                if time.monotonic() - moved > self.limit:
                    raise StuckError(self._waiting(next_of, sent))

    def _waiting(self, next_of: list[int], sent: list[Sent]) -> str:
        """Returns a text about the event for which the first unfinished thread block waits."""
        for number, (_, source, channel, instructions) in enumerate(self.blocks):
            if next_of[number] == len(instructions):
                continue
            instruction = instructions[next_of[number]]
            where = f"thread block {number}, step {next_of[number]}"
            if instruction[6] >= 0 and next_of[instruction[6]] <= instruction[7]:
                return f"{where} waits for thread block {instruction[6]}, step {instruction[7]}"
            return f"{where} waits for a message from rank {source} on channel {channel}"
        return next(where for request, where in sent if not request.Test())

    def _step(
        self, number: int, block: Any, next_of: list[int], memory: Buffers, sent: list[Sent]
    ) -> bool:
        """Executes the next instruction of a thread block; returns False if the block must wait.

        `number` is the index of the block, and `next_of` has the index of the next instruction by
        block.
        """
        to, source, channel, instructions = block
        if next_of[number] == len(instructions):
            return False
        act, from_buffer, from_, to_buffer, to_, count, waits, step = instructions[next_of[number]]
        if waits >= 0 and next_of[waits] <= step:
            return False
        elements = self.payload.elements
        value = np.empty(0, self.payload.element_type)
        if act in RECEIVING:
            if not self.comm.Iprobe(source=source, tag=channel):
                return False
            value = np.empty(count * elements, self.payload.element_type)
            self.comm.Recv(value, source=source, tag=channel)
        if act == "nop":
            return True
        read = memory[from_buffer][from_ * elements : (from_ + count) * elements]
        target = memory[to_buffer][to_ * elements : (to_ + count) * elements]
        with np.errstate(over="ignore"):
            if act in ("s", "cpy"):
                value = read.copy()
            elif act in REDUCING:
                value = self.combine(value, read)
            elif act == "re":
                value = self.combine(target, read)
        if act in WRITING or act == "re":
            target[:] = value
        if act in SENDING:
            where = f"thread block {number}, step {next_of[number]}"
            request = self.comm.Isend(value, dest=to, tag=channel)
            sent.append((request, f"{where} waits for rank {to} to receive on channel {channel}"))
        return True


def library(comm: Any, payload: Payload, limit_s: float) -> tuple[float, NDArray[Any]]:
    """Runs the collective of `payload` in the MPI library; returns seconds and the output.

    Raises
    ------
    StuckError
        The collective takes longer than the time limit.
    """
    from mpi4py import MPI

    rank, collective = comm.Get_rank(), payload.collective
    operator = getattr(MPI, payload.operator.upper())
    own_input = payload.input(rank)
    output = np.empty_like(payload.output(rank))
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
    return time.perf_counter() - start, output


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
    the watcher.

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
    interpreter = Interpreter(comm, job, payload, progress)
    progress[[0, 4]] = os.getpid(), os.getppid()
    # Programs may use any tag, so ranks wait for each other on a separate communicator.
    apart = comm.Dup()
    seconds = 0.0
    for _ in range(job["repetitions"]):
        memory = buffers(payload, rank, job["scratch"], in_place=job["in_place"])
        meet(apart, limit_s)
        start = time.perf_counter()
        interpreter.carry_out(memory)
        seconds += (time.perf_counter() - start) / job["repetitions"]
    wanted = payload.output(rank)
    output = memory[1][: wanted.size]
    library_seconds, library_output = library(apart, payload, limit_s)
    own_row = (
        seconds,
        differing(output, wanted),
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
                if identity and not lives(identity):
                    reason = died(other, block, step)
        Path(folder, f"{rank}.error").write_text(reason)
        comm.Abort(1)


if __name__ == "__main__":
    sys.exit(watched(sys.argv[1]))
