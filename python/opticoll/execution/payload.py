"""Payloads: input bytes that depend on rank, chunk and element, and the expected outputs.

Each collective is defined in NumPy on whole buffers, independently of programs. The values of
elements are so small that sums are exact in any order.

>>> from opticoll import Collective
>>> job = Payload(Collective("all_reduce", 3), 2, "float32", "sum")
>>> inputs = [job.input(rank) for rank in range(3)]
>>> bool((job.output(1) == inputs[0] + inputs[1] + inputs[2]).all())
True
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opticoll._core import Collective, parse_size
from opticoll.errors import UsageError

TYPES = ("int8", "uint8", "int32", "uint32", "int64", "uint64", "float32", "float64")
"""Types that the elements of a payload may have."""

OPERATORS: dict[str, Any] = {
    "sum": np.add,
    "prod": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
}
"""Functions by which reductions combine elements."""

EXACT_BITS = {"float32": 24, "float64": 53}
"""Maximum number of bits with which whole numbers of a floating-point type are exact."""

BLOCK_COLLECTIVES = ("all_gather", "gather", "scatter")
VECTOR_COLLECTIVES = ("all_reduce", "reduce", "broadcast")


@dataclass
class Payload:
    """Contents of the input and output buffers of a collective; a chunk has `elements` elements."""

    collective: Collective
    elements: int
    element_type: str
    operator: str
    _reduced: NDArray[Any] | None = field(default=None, repr=False)

    def sizes(self, rank: int) -> tuple[int, int]:
        """Returns the numbers of elements in the input and in the output of a rank."""
        collective = self.collective
        piece = collective.pieces * self.elements
        whole = piece * collective.ranks
        root = rank == collective.root
        return {
            "all_gather": (piece, whole),
            "reduce_scatter": (whole, piece),
            "all_to_all": (whole, whole),
            "gather": (piece, whole if root else 0),
            "scatter": (whole if root else 0, piece),
            "broadcast": (piece if root else 0, piece),
            "reduce": (piece, piece if root else 0),
            "all_reduce": (piece, piece),
        }[collective.kind]

    def input(self, rank: int) -> NDArray[Any]:
        """Returns the input of a rank."""
        length, _ = self.sizes(rank)
        places = np.arange(length, dtype=np.uint64)
        with np.errstate(over="ignore"):
            mixed = places * np.uint64(0x9E3779B97F4A7C15) + np.uint64(rank + 1) * np.uint64(
                0xC2B2AE3D27D4EB4F
            )
            mixed ^= mixed >> np.uint64(29)
            mixed *= np.uint64(0xBF58476D1CE4E5B9)
            mixed ^= mixed >> np.uint64(32)
        bits = EXACT_BITS.get(self.element_type)
        if bits is None:
            return mixed.astype(self.element_type)
        if self.operator == "prod":
            # Products stay exact, since at most one factor of each element differs from 1.
            factor = (mixed % np.uint64(5)) + np.uint64(2)
            mine = places % np.uint64(self.collective.ranks) == np.uint64(rank)
            return np.where(mine, factor, np.uint64(1)).astype(self.element_type)
        most = max(2, (1 << bits) // self.collective.ranks)
        return (mixed % np.uint64(most)).astype(self.element_type)

    def _combined(self) -> NDArray[Any]:
        """Combines the inputs of all ranks with the operator."""
        if self._reduced is None:
            combine = OPERATORS[self.operator]
            total = self.input(0)
            with np.errstate(over="ignore"):
                for rank in range(1, self.collective.ranks):
                    total = combine(total, self.input(rank))
            self._reduced = total
        return self._reduced

    def _gathered(self) -> NDArray[Any]:
        """Concatenates the inputs of all ranks."""
        if self._reduced is None:
            inputs = [self.input(rank) for rank in range(self.collective.ranks)]
            self._reduced = np.concatenate(inputs)
        return self._reduced

    def output(self, rank: int) -> NDArray[Any]:
        """Returns the expected output of a rank."""
        collective = self.collective
        kind, root, ranks = collective.kind, collective.root, collective.ranks
        piece = collective.pieces * self.elements
        _, length = self.sizes(rank)
        own_block = slice(rank * piece, (rank + 1) * piece)
        if length == 0:
            return np.empty(0, self.element_type)
        if kind in ("all_gather", "gather"):
            return self._gathered()
        if kind in ("all_reduce", "reduce"):
            return self._combined()
        if kind == "reduce_scatter":
            return self._combined()[own_block]
        if kind == "broadcast":
            return self.input(root)
        if kind == "scatter":
            return self.input(root)[own_block]
        return self._gathered().reshape(ranks, -1)[:, own_block].ravel()

    @property
    def size_bytes(self) -> int:
        """Size of the collective in bytes; the kind of collective defines what the size counts."""
        collective = self.collective
        chunk = self.elements * np.dtype(self.element_type).itemsize
        return chunk * _parts(collective)


def _parts(collective: Collective) -> int:
    """Returns the number of chunks that together have the size of a collective."""
    pieces = collective.pieces
    return (
        pieces
        if collective.kind in BLOCK_COLLECTIVES + VECTOR_COLLECTIVES
        else pieces * collective.ranks
    )


def payload_of(
    collective: Collective, size: str | int, element_type: str, operator: str
) -> Payload:
    """Returns a payload of at least `size` bytes, whose chunks have a whole number of elements.

    Raises
    ------
    UsageError
        The type or the operator is unknown, or the collective has no bytes.
    """
    if element_type not in TYPES:
        raise UsageError(f"--type: `{element_type}` is none of {', '.join(TYPES)}")
    if operator not in OPERATORS:
        raise UsageError(f"--operator: `{operator}` is none of {', '.join(OPERATORS)}")
    if collective.kind == "barrier":
        raise UsageError("a barrier moves no bytes, so there is nothing to compare")
    size_bytes = parse_size(size) if isinstance(size, str) else size
    width = np.dtype(element_type).itemsize * _parts(collective)
    return Payload(collective, max(1, -(-size_bytes // width)), element_type, operator)
