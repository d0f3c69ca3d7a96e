"""Payloads: input bytes that depend on rank, chunk and element, and the expected outputs.

Each collective is defined in NumPy on whole buffers, independently of programs. Floating-point
elements are whole numbers, so small that sums are exact in any order. An average is the sum,
divided by the number of ranks and rounded once. So every output has exactly one right value.

>>> from opticoll import Collective
>>> job = Payload(Collective("all_reduce", 3), 2, "float32", "sum")
>>> inputs = [job.input(rank) for rank in range(3)]
>>> bool((job.output(1) == inputs[0] + inputs[1] + inputs[2]).all())
True
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opticoll._core import Collective, parse_size
from opticoll.errors import UsageError
from opticoll.execution.elements import OPERATORS, TYPES

BLOCK_COLLECTIVES = ("all_gather", "gather", "scatter")
VECTOR_COLLECTIVES = ("all_reduce", "reduce", "broadcast")
REDUCING_COLLECTIVES = ("all_reduce", "reduce", "reduce_scatter")

PART_BYTES = 2**24
"""Bytes of the inputs of all ranks in a part of a payload, so that parts remain in a cache.

An all_reduce of 64 MiB on 16 ranks takes 3.4, 2.1, 1.9, 2.3 and 5.3 s of processor time with parts
of 2**20, 2**22, 2**24, 2**26 and 2**28 bytes.
"""

LEAST_ELEMENTS = 256
"""Minimum number of elements of a chunk in a part, so that instructions process vectors."""


@dataclass
class Payload:
    """Contents of the input and output buffers of a collective; a chunk has `elements` elements.

    A part of a payload has the elements from `first` of each chunk of `whole` elements.
    """

    collective: Collective
    elements: int
    element_type: str
    operator: str
    first: int = 0
    whole: int = 0
    _places: dict[int, NDArray[np.uint64]] = field(default_factory=dict, repr=False)
    _inputs: dict[int, NDArray[Any]] = field(default_factory=dict, repr=False)
    _reduced: NDArray[Any] | None = field(default=None, repr=False)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the arrays; those of bfloat16 are uint16, with the bits of the elements."""
        return TYPES[self.element_type].dtype

    def parts(self) -> Iterator[Payload]:
        """Divides the payload: each part has some elements of every chunk.

        Reductions treat each element alike, so a program may be executed on one part at a time.
        """
        ranks = range(self.collective.ranks)
        largest = max(max(self.sizes(rank)) for rank in ranks) // self.elements
        row = largest * len(ranks) * self.dtype.itemsize
        step = max(LEAST_ELEMENTS, PART_BYTES // row)
        for first in range(0, self.elements, step):
            count = min(step, self.elements - first)
            yield Payload(
                *(self.collective, count, self.element_type, self.operator),
                first=self.first + first,
                whole=self.whole or self.elements,
            )

    def of(self, buffer: NDArray[Any]) -> NDArray[Any]:
        """Returns the elements of this part in a buffer of the whole payload: a row per chunk."""
        whole = self.whole or self.elements
        return buffer.reshape(-1, whole)[:, self.first : self.first + self.elements]

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
        """Returns the input of a rank, which is kept and must not be changed."""
        if rank not in self._inputs:
            self._inputs[rank] = self._new_input(rank)
        return self._inputs[rank]

    def _new_input(self, rank: int) -> NDArray[Any]:
        """Computes the input of a rank; a whole payload part by part."""
        if self.whole:
            return self._elements_of(rank)
        new = np.empty(self.sizes(rank)[0], self.dtype)
        for part in self.parts():
            part.of(new)[:] = part._elements_of(rank).reshape(-1, part.elements)
        return new

    def _elements_of(self, rank: int) -> NDArray[Any]:
        length, _ = self.sizes(rank)
        kind = TYPES[self.element_type]
        places = self._places_of(length)
        mixed = places * np.uint64(0x9E3779B97F4A7C15)
        mixed += np.uint64((rank + 1) * 0xC2B2AE3D27D4EB4F % 2**64)
        mixed ^= mixed >> np.uint64(29)
        mixed *= np.uint64(0xBF58476D1CE4E5B9)
        mixed ^= mixed >> np.uint64(32)
        ranks = self.collective.ranks
        if self.operator == "prod" and kind.floating:
            # Products stay exact, since at most one factor of each element differs from 1.
            factor = (mixed % np.uint64(5)) + np.uint64(2)
            mine = places % np.uint64(ranks) == np.uint64(rank)
            return kind.of(np.where(mine, factor, np.uint64(1)))
        if not kind.floating and self.operator != "avg":
            return kind.of(mixed)
        adds = self.operator in ("sum", "avg") and self.collective.kind in REDUCING_COLLECTIVES
        # At each place, only every `stride`-th rank has an element that may differ from 0, so that
        # two values remain for each of these elements. No sum then exceeds 2**bits.
        stride = -(-ranks // 2 ** (kind.exact_bits - 1)) if adds else 1
        addends = -(-ranks // stride) if adds else 1
        values = 2 ** ((2**kind.exact_bits // addends).bit_length() - 1)
        mixed &= np.uint64(values - 1)
        if stride > 1:
            mixed *= (places + np.uint64(rank)) % np.uint64(stride) == 0
        return kind.of(mixed)

    def _places_of(self, length: int) -> NDArray[np.uint64]:
        """Returns the places that the first `length` elements have in a whole buffer."""
        if length not in self._places:
            chunks = np.arange(length // self.elements, dtype=np.uint64)
            rows = chunks * np.uint64(self.whole or self.elements) + np.uint64(self.first)
            inside = np.arange(self.elements, dtype=np.uint64)
            self._places[length] = np.add.outer(rows, inside).ravel()
        return self._places[length]

    def _combined(self) -> NDArray[Any]:
        """Combines the inputs of all ranks with the operator.

        Numbers are float64, in which all results here are exact, or integers of 64 bits.
        """
        if self._reduced is None:
            kind, ranks = TYPES[self.element_type], self.collective.ranks
            combine = OPERATORS[self.operator]
            total = kind.numbers(self.input(0))
            for rank in range(1, ranks):
                total = combine(total, kind.numbers(self.input(rank)))
            if self.operator == "avg":
                total = total / ranks if kind.floating else total // total.dtype.type(ranks)
            self._reduced = kind.of(total)
        return self._reduced

    def finish(self, output: NDArray[Any]) -> NDArray[Any]:
        """Returns the output of the collective, from the output of a program: divides averages."""
        if self.operator != "avg" or self.collective.kind not in REDUCING_COLLECTIVES:
            return output
        return TYPES[self.element_type].divided(output, self.collective.ranks)

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
            return np.empty(0, self.dtype)
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
        chunk = self.elements * self.dtype.itemsize
        return chunk * _counted(collective)


def _counted(collective: Collective) -> int:
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
    width = TYPES[element_type].dtype.itemsize * _counted(collective)
    return Payload(collective, max(1, -(-size_bytes // width)), element_type, operator)


def differing(computed: np.ndarray, wanted: np.ndarray) -> int:
    """Returns the number of elements whose bytes differ between two arrays."""
    if computed.size != wanted.size:
        return max(computed.size, wanted.size)
    width = computed.dtype.itemsize
    found_bytes, wanted_bytes = (
        np.ascontiguousarray(side).view(f"u{width}") for side in (computed, wanted)
    )
    return int(np.count_nonzero(found_bytes != wanted_bytes))
