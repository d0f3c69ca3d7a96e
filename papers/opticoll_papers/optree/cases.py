"""The paper's cases: which algorithms, how many steps its formulas give them."""

from __future__ import annotations

from typing import Literal

from opticoll_papers.common import step_time_ps
from opticoll_papers.optree import formulas, wrht_steps

Rounding = Literal["ceil", "round", "best"]
"""Rounding of Eq. 2 to whole stages; `best`: the minimum of Theorem 1 instead of Eq. 2."""

LABELS = {
    "optree": "OpTree",
    "wrht": "WRHT",
    "ring": "Ring",
    "neighbour_exchange": "NE",
}
BASELINES = ("wrht", "ring", "neighbour_exchange")

SIZES = tuple(4**power * 1024 for power in range(8))
"""Bytes of one rank's block in Figs 5 and 6. The paper's own range is lost in its text."""

QUICK_SIZES = SIZES[::3]

BLOCK = SIZES[6]
"""4 MiB, the block for which times of constructed plans are compared: the paper's message of 4M."""

DEPTHS = range(1, 11)

RANKS_FOUR = (512, 1024, 2048, 4096)
CLOSE_UP = range(5, 10)
"""The numbers of nodes of Fig. 4, and the depths of its inset."""


def paper_steps(algorithm: str, ranks: int, wavelengths: int, rounding: Rounding = "ceil") -> int:
    """Returns the steps that the paper's evaluation charges an algorithm with (section III.D)."""
    match algorithm:
        case "optree":
            return min(
                formulas.optree_steps(ranks, wavelengths, depth)
                for depth in _depths(ranks, wavelengths, rounding)
            )
        case "wrht":
            # Groups of 2w + 1; the branch of the text that gives Table I's 259.
            group = 2 * wavelengths + 1
            theta = wrht_steps.levels(ranks, group)
            collected = wrht_steps.collecting(group, theta)
            return collected + wrht_steps.handing_out(group, theta)[0]
        case "ring":
            return ranks - 1
        case "neighbour_exchange":
            return ranks // 2
        case _:
            raise ValueError(f"the paper does not evaluate `{algorithm}`")


def paper_time_ps(algorithm: str, ranks: int, wavelengths: int, size_bytes: int) -> int:
    """Steps times (d/B + a), in picoseconds; NE is charged one block per step as in the paper."""
    return paper_steps(algorithm, ranks, wavelengths) * step_time_ps(size_bytes)


def best_depths(ranks: int, wavelengths: int) -> list[int]:
    """Returns the numbers of stages, from 1 to 10, with the fewest steps by Theorem 1."""
    steps = {depth: formulas.optree_steps(ranks, wavelengths, depth) for depth in DEPTHS}
    return [depth for depth in DEPTHS if steps[depth] == min(steps.values())]


def _depths(ranks: int, wavelengths: int, rounding: Rounding) -> list[int]:
    if rounding == "best":
        return best_depths(ranks, wavelengths)
    depth = formulas.optree_depth(ranks, rounding)
    if depth is None:
        raise ValueError(f"Eq. 2 is undefined for {ranks} ranks")
    return [depth]


def continuous_steps(ranks: int, depth: float) -> float:
    """Returns Theorem 1 for a real number of stages and one wavelength, not rounded."""
    return float((2 * depth - 1) * ranks ** (1 + 1 / depth) / 8)
