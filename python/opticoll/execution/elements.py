"""Types of elements, and the operators of reductions, in NumPy.

NumPy has no bfloat16: such an element is a uint16 whose bits are the upper half of a float32.

>>> numbers = TYPES["bfloat16"].of(np.array([1.0, 257.0, 259.0]))
>>> numbers.tolist(), TYPES["bfloat16"].numbers(numbers).tolist()
([16256, 17280, 17282], [1.0, 256.0, 260.0])
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Combine = Callable[[NDArray[Any], NDArray[Any]], NDArray[Any]]

OPERATORS: dict[str, Combine] = {
    "sum": np.add,
    "prod": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
    "avg": np.add,
}
"""Functions by which reductions combine elements. After `avg`, `Type.divided` divides the sums."""


@dataclass(frozen=True)
class Type:
    """Type of elements. Values that the type cannot represent are rounded to nearest, ties to even.

    The 16-bit types are computed in float32 and rounded after each operation. A float32 has more
    than twice as many bits as they have, plus 2, so this gives the correctly rounded result.
    """

    name: str
    exact_bits: int
    """Number of bits with which every whole number that is not negative is exact."""

    @property
    def floating(self) -> bool:
        """Returns whether elements are floating-point numbers."""
        return "float" in self.name

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the arrays."""
        return np.dtype("uint16" if self.name == "bfloat16" else self.name)

    def of(self, numbers: NDArray[Any]) -> NDArray[Any]:
        """Converts numbers to elements; whole numbers wrap around."""
        if self.name != "bfloat16":
            return numbers.astype(self.dtype)
        bits = numbers.astype(np.float32).view(np.uint32)
        bits = bits + (np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1)))
        return (bits >> np.uint32(16)).astype(np.uint16)

    def numbers(self, elements: NDArray[Any]) -> NDArray[Any]:
        """Converts elements to numbers of NumPy: float64, or integers of 64 bits."""
        numbers = _wider(elements) if self.name == "bfloat16" else elements
        if self.floating:
            return numbers.astype(np.float64)
        return numbers.astype(np.uint64 if self.dtype.kind == "u" else np.int64)

    def combine(self, operator: str) -> Combine:
        """Returns the function by which a reduction combines elements of this type."""
        combine = OPERATORS[operator]
        if self.name != "bfloat16":
            return combine
        return lambda first, second: self.of(combine(_wider(first), _wider(second)))

    def divided(self, elements: NDArray[Any], ranks: int) -> NDArray[Any]:
        """Divides elements, which are not negative, by the number of ranks; integers round down."""
        if not self.floating:
            numbers = self.numbers(elements)
            return self.of(numbers // numbers.dtype.type(ranks))
        if self.name == "float64":
            return elements / ranks
        single = _wider(elements) if self.name == "bfloat16" else elements.astype(np.float32)
        return self.of(single / np.float32(ranks))


def _wider(elements: NDArray[np.uint16]) -> NDArray[np.float32]:
    """Converts elements of type bfloat16 to float32."""
    return (elements.astype(np.uint32) << np.uint32(16)).view(np.float32)


TYPES = {
    one.name: one
    for one in (
        *(Type("int8", 7), Type("uint8", 8), Type("int32", 31), Type("uint32", 32)),
        *(Type("int64", 63), Type("uint64", 64)),
        *(Type("bfloat16", 8), Type("float16", 11), Type("float32", 24), Type("float64", 53)),
    )
}
"""Types by name."""
