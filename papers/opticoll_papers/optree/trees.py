"""Trees whose groups divide evenly, so that the paper says who the partner of each node is.

On N = 2^n nodes these are the trees whose radices are powers of two with the product N. The slots
of a stage are at least the greatest load of a link over w, rounded up.

>>> best_tree(1024, 64, 7), least_slots(1024, 64, 7)
([4, 4, 4, 2, 2, 2, 2], 72)
>>> best_depths(2048, 64)
[5, 6, 7, 8, 9, 10]
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache


def even_trees(ranks: int, depth: int) -> Iterator[list[int]]:
    """Yields all trees of `depth` stages on a power of two of ranks, each by its radices.

    Stages after the first come in one order: their order does not change their loads.
    """
    for exponents in _partitions(ranks.bit_length() - 1, depth):
        for first in sorted(set(exponents), reverse=True):
            later = list(exponents)
            later.remove(first)
            yield [2**one for one in (first, *later)]


def _partitions(total: int, parts: int, most: int | None = None) -> Iterator[tuple[int, ...]]:
    """Sums of `parts` positive whole numbers, the largest first."""
    if parts == 0:
        if total == 0:
            yield ()
        return
    for one in range(min(total - parts + 1, most or total), 0, -1):
        for rest in _partitions(total - one, parts - 1, one):
            yield (one, *rest)


def stage_loads(ranks: int, radices: list[int]) -> list[int]:
    """Returns the greatest load of a link in each stage, in lightpaths of one block.

    Between the m children of a group, floor(m/2) ceil(m/2) pairs cross its middle in each
    direction, with a lightpath for each rank of a child and each block that it holds. Stage 1 has
    both ways around the ring, and so half the load. It is exact for groups that divide evenly; for
    others it is that of the largest group.

    >>> stage_loads(16, [4, 4]), stage_loads(16, [2, 3, 3])
    ([8, 16], [4, 12, 12])
    """
    loads, group, blocks = [], ranks, 1
    for radix in radices:
        group = -(-group // radix)
        loads.append(group * blocks * (radix**2 // 4))
        blocks *= radix
    return [-(-loads[0] // 2), *loads[1:]]


def slots(ranks: int, wavelengths: int, radices: list[int]) -> int:
    """Returns the fewest slots that the loads of the links allow a tree."""
    return sum(-(-load // wavelengths) for load in stage_loads(ranks, radices))


@cache
def _best(ranks: int, wavelengths: int, depth: int) -> tuple[int, list[int]] | None:
    return min(
        ((slots(ranks, wavelengths, tree), tree) for tree in even_trees(ranks, depth)),
        key=lambda one: (one[0], max(one[1])),
        default=None,
    )


def least_slots(ranks: int, wavelengths: int, depth: int) -> int | None:
    """Returns the fewest slots of all trees of a depth; None if there is no such tree."""
    best = _best(ranks, wavelengths, depth)
    return None if best is None else best[0]


def best_tree(ranks: int, wavelengths: int, depth: int) -> list[int]:
    """Returns the radices of a tree of a depth with the fewest slots, the smallest of several."""
    best = _best(ranks, wavelengths, depth)
    if best is None:
        raise ValueError(f"no tree of {depth} stages divides {ranks} ranks evenly")
    return best[1]


def algorithm(radices: list[int]) -> str:
    """Returns the specification of the algorithm for a tree."""
    return f"optree:radices={spelled(radices)}"


def spelled(radices: list[int]) -> str:
    """Radices as text, such as 4x4."""
    return "x".join(map(str, radices))


def best_depths(ranks: int, wavelengths: int) -> list[int]:
    """Returns the numbers of stages at which trees reach the fewest slots."""
    by_depth = {
        depth: count
        for depth in range(1, ranks.bit_length())
        if (count := least_slots(ranks, wavelengths, depth)) is not None
    }
    return [depth for depth, count in by_depth.items() if count == min(by_depth.values())]
