"""Execution of programs in this process.

>>> import opticoll
>>> from opticoll.execution.payload import payload_of
>>> program = opticoll.Program.from_plan(opticoll.plan("all_gather", "crossbar:ranks=4", "ring"))
>>> carry_out(program, payload_of(program.collective, 64, "int32", "sum"), in_place=True).wrong
0
"""

from __future__ import annotations

import time
from collections import defaultdict, deque
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opticoll._core import Program, ProgramError, take_memory
from opticoll.execution.interpreter import Interpreter, buffers
from opticoll.execution.payload import Payload, differing


@dataclass(frozen=True)
class Ended:
    """Outcome of a program that has run to its end; times are in seconds."""

    seconds: float
    """Mean time of a repetition, from its first to its last instruction."""
    wrong: int
    """Number of output elements that differ from the expected output."""
    library_seconds: float | None = None
    """Mean time of the same collective in the MPI library; None if it was not measured."""
    differing: int | None = None
    """Number of output elements that differ from the MPI library's output."""


Queues = defaultdict[tuple[int, int, int], deque[NDArray[Any]]]
"""Messages in flight by sender, receiver and channel."""


@dataclass(frozen=True)
class _Messages:
    """Messages that a rank exchanges with the other ranks in this process."""

    rank: int
    queues: Queues

    def receive(self, source: int, channel: int, like: NDArray[Any]) -> NDArray[Any] | None:
        queue = self.queues[source, self.rank, channel]
        return queue.popleft() if queue else None

    def send(self, value: NDArray[Any], to: int, channel: int, position: str) -> None:
        self.queues[self.rank, to, channel].append(value)


def carry_out(program: Program, payload: Payload, *, in_place: bool, repetitions: int = 1) -> Ended:
    """Executes a program, and compares its outputs with the definition of the collective.

    A large payload is executed in parts that fit into a cache. The compiled core executes programs
    whose instructions access buffers of other ranks.

    Raises
    ------
    ProgramError
        No instruction can continue, or an instruction accesses data outside of the buffers; the
        message names rank and step.
    """
    ranks = range(payload.collective.ranks)
    run = _by_core if program.one_sided else _by_interpreters
    seconds, differences = 0.0, 0
    for part in payload.parts():
        elements = sum(sum(part.sizes(rank)) for rank in ranks)
        # The inputs are kept beside the buffers, and the bytes of all buffers may be in messages.
        needed = 3 * elements * part.dtype.itemsize
        take_memory("the buffers of all ranks, and messages between them", needed)
        for _ in range(repetitions):
            took, outputs = run(program, part, in_place)
            seconds += took / repetitions
        found = (part.finish(output) for output in outputs)
        differences += sum(differing(one, part.output(rank)) for rank, one in enumerate(found))
    return Ended(seconds, differences)


def _by_core(
    program: Program, payload: Payload, in_place: bool
) -> tuple[float, list[NDArray[Any]]]:
    """Executes a program by the compiled core; returns the seconds and the output of each rank."""
    inputs = [payload.input(rank).tobytes() for rank in range(payload.collective.ranks)]
    start = time.perf_counter()
    outputs = program.run(
        inputs,
        elements=payload.elements,
        element_type=payload.element_type,
        operator="sum" if payload.operator == "avg" else payload.operator,
        in_place=in_place,
    )
    seconds = time.perf_counter() - start
    return seconds, [np.frombuffer(output, payload.dtype) for output in outputs]


def _by_interpreters(
    program: Program, payload: Payload, in_place: bool
) -> tuple[float, list[NDArray[Any]]]:
    """Executes a program in NumPy; returns the seconds and the output of each rank."""
    ranks = range(payload.collective.ranks)
    queues: Queues = defaultdict(deque)
    interpreters = []
    for rank in ranks:
        memory = buffers(payload, rank, program.scratch(rank), in_place=in_place)
        blocks = program.thread_blocks_of(rank)
        interpreters.append(Interpreter(blocks, payload, memory, _Messages(rank, queues)))
    start = time.perf_counter()
    _execute(interpreters)
    seconds = time.perf_counter() - start
    return seconds, [
        one.memory[1][: payload.sizes(rank)[1]] for rank, one in enumerate(interpreters)
    ]


def _execute(interpreters: list[Interpreter]) -> None:
    """Executes the programs of all ranks."""
    unfinished = dict(enumerate(interpreters))
    while unfinished:
        moved = False
        for rank, one in unfinished.items():
            try:
                moved |= one.advance()
            except ProgramError as error:
                raise ProgramError(f"rank {rank}: {error}") from None
        if not moved:
            rank, first = next(iter(unfinished.items()))
            raise ProgramError(f"rank {rank}: {first.waiting()}")
        unfinished = {rank: one for rank, one in unfinished.items() if not one.ended}
