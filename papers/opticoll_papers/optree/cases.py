"""The paper's cases: its algorithms, and the number of steps that its formulas give them."""

from __future__ import annotations

from typing import Literal

from opticoll_papers.common import step_time_ps
from opticoll_papers.optree import formulas, wrht_steps

Rounding = Literal["ceil", "round", "best"]
"""Rounding of Eq. 2 to whole stages; `best` is the minimum of Theorem 1 instead of Eq. 2."""

LABELS = {
    "optree": "OpTree",
    "wrht": "WRHT",
    "ring": "Ring",
    "neighbour_exchange": "NE",
}
BASELINES = ("wrht", "ring", "neighbour_exchange")

SIZES = tuple(4**power * 1024 for power in range(8))
"""Bytes of a rank's block in Figs 5 and 6; the paper does not clearly state its range."""

QUICK_SIZES = SIZES[::3]

BLOCK = SIZES[6]
"""4 MiB, the paper's message size, for which the times of constructed plans are compared."""

DEPTHS = range(1, 11)

RANKS_FOUR = (512, 1024, 2048, 4096)
CLOSE_UP = range(5, 10)
"""Numbers of stages in the inset of Fig. 4."""


def paper_steps(algorithm: str, ranks: int, wavelengths: int, rounding: Rounding = "ceil") -> int:
    """Returns the number of steps with which the paper evaluates an algorithm (section III.D)."""
    match algorithm:
        case "optree":
            return min(
                formulas.optree_steps(ranks, wavelengths, depth)
                for depth in _depths(ranks, wavelengths, rounding)
            )
        case "wrht":
            # Groups have 2w + 1 ranks. This branch of the paper's text gives the 259 steps of Table
            # I.
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
    """Returns steps times (d/B + a) in picoseconds.

    As in the paper, NE sends one block per step.
    """
    return paper_steps(algorithm, ranks, wavelengths) * step_time_ps(size_bytes)


def best_depths(ranks: int, wavelengths: int) -> list[int]:
    """Returns the numbers of stages, among 1 to 10, with the fewest steps by Theorem 1."""
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
    """Returns Theorem 1 without rounding, for a real number of stages and one wavelength."""
    return float((2 * depth - 1) * ranks ** (1 + 1 / depth) / 8)
