"""Execution of programs in this process by the compiled core.

>>> import opticoll
>>> from opticoll.execution.payload import payload_of
>>> program = opticoll.Program.from_plan(opticoll.plan("all_gather", "crossbar:ranks=4", "ring"))
>>> carry_out(program, payload_of(program.collective, 64, "int32", "sum"), in_place=True).wrong
0
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from opticoll._core import Program
from opticoll.execution.payload import Payload


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


def carry_out(program: Program, payload: Payload, *, in_place: bool, repetitions: int = 1) -> Ended:
    """Executes a program, and compares its outputs with the definition of the collective.

    Raises
    ------
    ProgramError
        No instruction can continue, or an instruction accesses data outside of the buffers; the
        message names rank and step.
    """
    ranks = range(payload.collective.ranks)
    inputs = [payload.input(rank).tobytes() for rank in ranks]
    start = time.perf_counter()
    for _ in range(repetitions):
        outputs = program.run(
            inputs,
            elements=payload.elements,
            element_type=payload.element_type,
            operator=payload.operator,
            in_place=in_place,
        )
    seconds = (time.perf_counter() - start) / repetitions
    wrong = sum(
        differing(np.frombuffer(outputs[rank], payload.element_type), payload.output(rank))
        for rank in ranks
    )
    return Ended(seconds, wrong)


def differing(computed: np.ndarray, wanted: np.ndarray) -> int:
    """Returns the number of elements whose bytes differ between two arrays."""
    if computed.size != wanted.size:
        return max(computed.size, wanted.size)
    width = computed.dtype.itemsize
    found_bytes, wanted_bytes = (
        np.ascontiguousarray(side).view(f"V{width}") for side in (computed, wanted)
    )
    return int(np.count_nonzero(found_bytes != wanted_bytes))
