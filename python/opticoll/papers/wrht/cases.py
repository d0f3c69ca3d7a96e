"""The WRHT poster's networks and scales, and what its two schemes take on the ring of light.

>>> from opticoll.papers.wrht.cases import SIZES, wrht_claimed_s
>>> f"{wrht_claimed_s(1024, SIZES[1]):.4f}"
'0.3313'
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from opticoll import formulas
from opticoll.papers.kit import Constructed, OwnRow, construct, own_rows, step_time_ps

MODELS = {
    "AlexNet": 62_300_000,
    "VGG16": 138_000_000,
    "ResNet50": 25_000_000,
    "GoogLeNet": 6_797_700,
}
"""Parameters of the poster's networks (section 3)."""

BYTES_PER_PARAMETER = 4  # float32
SIZES = tuple(parameters * BYTES_PER_PARAMETER for parameters in MODELS.values())

WAVELENGTHS = 64  # the poster gives none; that of the group's OpTree paper

ABSTRACT = {"electrical": 75.76, "optical": 91.86}
"""Percent, in the order of the abstract's `respectively`."""

# Reductions against single baselines in the abstract of the full paper (arXiv, version 2), percent.
FULL_PAPER = {"optical": (80.81, 64.36, 82.12), "electrical": (92.42, 91.31)}

LARGEST_OWN = 2048


@cache
def constructed(ranks: int, wavelengths: int, algorithm: str) -> Constructed:
    """A plan of all_reduce, with the times of the poster's networks where w is the study's."""
    sizes = SIZES if wavelengths == WAVELENGTHS else ()
    return construct("all_reduce", ranks, wavelengths, algorithm, sizes=sizes)


def wrht_claimed_s(ranks: int, size_bytes: int) -> float:
    """WRHT's time by the poster's formula: its steps, each with the whole vector, in seconds."""
    steps = formulas.wrht_all_reduce_steps(ranks, WAVELENGTHS)
    return steps * step_time_ps(size_bytes) / 1e12


def ring_formula_s(ranks: int, size_bytes: int) -> float:
    """O-Ring's time by its formula: 2 (N - 1) steps of the largest of N chunks, in seconds."""
    return 2 * (ranks - 1) * step_time_ps(-(-size_bytes // ranks)) / 1e12


@cache
def own_times(ranks: int) -> tuple[OwnRow, ...]:
    """What `auto` finds for each network, and WRHT's time by the poster's formula."""
    rows = own_rows("Fig. 2", "all_reduce", ranks, WAVELENGTHS, "auto", SIZES)
    steps = formulas.wrht_all_reduce_steps(ranks, WAVELENGTHS)
    return tuple(
        replace(
            row,
            paper_algorithm="wrht",
            paper_steps=steps,
            paper_time_s=wrht_claimed_s(ranks, row.size_bytes),
        )
        for row in rows
    )


def own_ranks(ranks: tuple[int, ...], *, quick: bool) -> list[int]:
    """Where opticoll plans of its own: beyond that they would take most of the study's time."""
    return [count for count in ranks if count <= (1024 if quick else LARGEST_OWN)]
