"""Trees whose groups divide evenly, for which the paper defines the partners of every node.

On N = 2^n nodes, the radices of such a tree are powers of two with the product N. A stage needs at
least as many slots as the highest load of a link divided by w, rounded up.

>>> best_tree(1024, 64, 7), least_slots(1024, 64, 7)
([4, 4, 4, 2, 2, 2, 2], 72)
>>> best_depths(2048, 64)
[5, 6, 7, 8, 9, 10]
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache


def even_trees(ranks: int, depth: int) -> Iterator[list[int]]:
    """Yields the radices of all trees of `depth` stages on a power of two of ranks.

    Stages after the first are in one order only, since their order does not change their loads.
    """
    for exponents in _partitions(ranks.bit_length() - 1, depth):
        for first in sorted(set(exponents), reverse=True):
            later = list(exponents)
            later.remove(first)
            yield [2**exponent for exponent in (first, *later)]


def _partitions(total: int, parts: int, most: int | None = None) -> Iterator[tuple[int, ...]]:
    """Yields all sums of `parts` positive whole numbers with the value `total`, largest first."""
    if parts == 0:
        if total == 0:
            yield ()
        return
    for largest in range(min(total - parts + 1, most or total), 0, -1):
        for smaller in _partitions(total - largest, parts - 1, largest):
            yield (largest, *smaller)


def stage_loads(ranks: int, radices: list[int]) -> list[int]:
    """Returns the highest load of a link in each stage, in lightpaths of one block.

    A group has m children. In each direction, floor(m/2) ceil(m/2) pairs of children communicate
    across the group's middle. Each pair needs a lightpath per rank of a child and per block of the
    rank. Stage 1 can use both directions around the ring, so its load is halved. The load is exact
    for groups that divide evenly. Otherwise it is the load of the largest group.

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
    """Returns the minimum number of slots of a tree, given the loads of links."""
    return sum(-(-load // wavelengths) for load in stage_loads(ranks, radices))


@cache
def _best(ranks: int, wavelengths: int, depth: int) -> tuple[int, list[int]] | None:
    return min(
        ((slots(ranks, wavelengths, tree), tree) for tree in even_trees(ranks, depth)),
        key=lambda candidate: (candidate[0], max(candidate[1])),
        default=None,
    )


def least_slots(ranks: int, wavelengths: int, depth: int) -> int | None:
    """Returns the minimum number of slots over all trees of a depth; None if there is no tree."""
    tree = _best(ranks, wavelengths, depth)
    return None if tree is None else tree[0]


def best_tree(ranks: int, wavelengths: int, depth: int) -> list[int]:
    """Returns the radices of the tree with the fewest slots; among equals, the smallest radices."""
    tree = _best(ranks, wavelengths, depth)
    if tree is None:
        raise ValueError(f"no tree of {depth} stages divides {ranks} ranks evenly")
    return tree[1]


def algorithm(radices: list[int]) -> str:
    """Returns the specification of the algorithm for a tree."""
    return f"optree:radices={spelled(radices)}"


def spelled(radices: list[int]) -> str:
    """Returns the radices as text, such as 4x4."""
    return "x".join(map(str, radices))


def best_depths(ranks: int, wavelengths: int) -> list[int]:
    """Returns the numbers of stages for which trees have the fewest slots."""
    by_depth = {
        depth: count
        for depth in range(1, ranks.bit_length())
        if (count := least_slots(ranks, wavelengths, depth)) is not None
    }
    return [depth for depth, count in by_depth.items() if count == min(by_depth.values())]
