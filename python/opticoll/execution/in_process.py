"""Programs carried out within this process, in the compiled core.

>>> import opticoll
>>> from opticoll.execution.payload import payload_of
>>> program = opticoll.Program.of_plan(opticoll.plan("all_gather", "crossbar:ranks=4", "ring"))
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
    """A run that came to its end."""

    seconds: float
    """From the first instruction to the last; the mean of all repetitions."""
    wrong: int
    """Elements of outputs that are not those of the definition."""
    library_seconds: float | None = None
    """The same for the MPI library's own collective."""
    differing: int | None = None
    """Elements of outputs that are not those of the MPI library's own collective."""


def carry_out(program: Program, payload: Payload, *, in_place: bool, repetitions: int = 1) -> Ended:
    """Carries a program out, and compares its outputs with the definition.

    Raises
    ------
    ProgramError
        The program stands still or leaves its buffers; the message names rank and step.
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


def differing(found: np.ndarray, wanted: np.ndarray) -> int:
    """Returns elements whose bytes differ."""
    if found.size != wanted.size:
        return max(found.size, wanted.size)
    width = found.dtype.itemsize
    one, other = (np.ascontiguousarray(side).view(f"V{width}") for side in (found, wanted))
    return int(np.count_nonzero(one != other))
