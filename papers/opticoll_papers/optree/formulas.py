"""The OpTree paper's formulas for steps: Theorem 1, and Eq. 2 for the number of stages.

>>> optree_steps(1024, 64, 7), optree_depth(1024), optree_depth(1024, "round")
(70, 7, 6)
"""

from __future__ import annotations

import math
from bisect import bisect_left


def optree_steps(ranks: int, wavelengths: int, depth: int) -> int:
    """Returns the steps of a tree of k stages by Theorem 1: ceil((2k - 1) N^(1 + 1/k) / (8w)).

    The result is computed in whole numbers: the least S with (8 w S)^k >= (2k - 1)^k N^(k + 1).
    """
    power = (2 * depth - 1) ** depth * ranks ** (depth + 1)
    enough = range((2 * depth - 1) * ranks**2 + 1)
    return bisect_left(enough, power, key=lambda steps: (8 * wavelengths * steps) ** depth)


def optree_depth(ranks: int, rounding: str = "ceil") -> int | None:
    """Returns the whole number of stages by Eq. 2 (Theorem 2); None for up to 7 ranks.

    `ceil` rounds up, as the paper's Table I and averages do. `round` rounds to the nearest, as the
    paper's text and Fig. 4 do.
    """
    if ranks < 8:
        return None
    stages = equation_two(ranks)
    return math.ceil(stages) if rounding == "ceil" else round(stages)


def equation_two(ranks: int) -> float:
    """Returns Eq. 2 for at least 8 ranks: k* = (ln N + sqrt(ln N (ln N - 2))) / 2."""
    log = math.log(ranks)
    return (log + math.sqrt(log * (log - 2))) / 2
