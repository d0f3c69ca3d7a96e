"""The WRHT poster's networks and numbers of ranks, and the times of its two optical schemes.

>>> from opticoll_papers.wrht.cases import SIZES, wrht_claimed_s
>>> f"{wrht_claimed_s(1024, SIZES[1]):.4f}"
'0.3313'
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

from opticoll.outputs.rows import plain
from opticoll_papers.common import Constructed, OwnRow, Results, construct, own_rows, step_time_ps

MODELS = {
    "AlexNet": 62_300_000,
    "VGG16": 138_000_000,
    "ResNet50": 25_000_000,
    "GoogLeNet": 6_797_700,
}
"""Numbers of parameters of the poster's networks (section 3), by name."""

BYTES_PER_PARAMETER = 4  # float32
SIZES = tuple(parameters * BYTES_PER_PARAMETER for parameters in MODELS.values())

WAVELENGTHS = 64  # not in the poster; the number in the same group's OpTree paper

LARGEST_OWN = 2048
LARGEST_OWN_QUICK = 128


@cache
def constructed(ranks: int, wavelengths: int, algorithm: str) -> Constructed:
    """Constructs an all_reduce; simulates the poster's networks if w is the study's."""
    sizes = SIZES if wavelengths == WAVELENGTHS else ()
    return construct("all_reduce", ranks, wavelengths, algorithm, sizes=sizes)


def wrht_all_reduce_steps(ranks: int, wavelengths: int) -> int:
    """Returns WRHT's steps by the poster (section 2), with L = ceil(log_m N) and m = 2w + 1.

    The number is 2L - 1 if the ceil(N / m^(L - 1)) representatives of the last level can perform an
    all-to-all, which needs ceil(n^2 / 8) wavelengths for n ranks. Otherwise it is 2L.
    """
    group = 2 * wavelengths + 1
    levels, reach = 1, 1
    while reach * group < ranks:
        levels, reach = levels + 1, reach * group
    last = -(-ranks // reach)
    return 2 * levels - (-(-(last**2) // 8) <= wavelengths)


def wrht_claimed_s(ranks: int, size_bytes: int) -> float:
    """Returns WRHT's time in seconds by the poster's formula; each step sends the whole vector."""
    steps = wrht_all_reduce_steps(ranks, WAVELENGTHS)
    return steps * step_time_ps(size_bytes) / 1e12


def striped_s(ranks: int, size_bytes: int) -> float:
    """Returns WRHT's time in seconds with groups of 3 and vectors striped over free wavelengths."""
    plan = constructed(ranks, WAVELENGTHS, "wrht:group_size=3,striping=true")
    return plan.times_ps[size_bytes] / 1e12


def ring_formula_s(ranks: int, size_bytes: int) -> float:
    """Returns O-Ring's time in seconds by formula: 2 (N - 1) steps of the largest of N chunks."""
    return 2 * (ranks - 1) * step_time_ps(-(-size_bytes // ranks)) / 1e12


def own_times(results: Results, ranks: int) -> list[OwnRow]:
    """Returns plans of `auto` for each network, and WRHT's time by the poster's formula."""
    rows = results.rows({"own": ranks}, lambda: [plain(row) for row in _own_times(ranks)])
    return [OwnRow(**row) for row in rows]


def _own_times(ranks: int) -> list[OwnRow]:
    rows = own_rows("Fig. 2", "all_reduce", ranks, WAVELENGTHS, "auto", SIZES)
    steps = wrht_all_reduce_steps(ranks, WAVELENGTHS)
    return [
        replace(
            row,
            paper_algorithm="wrht",
            paper_steps=steps,
            paper_time_s=wrht_claimed_s(ranks, row.size_bytes),
        )
        for row in rows
    ]


def own_ranks(ranks: Sequence[int], *, quick: bool) -> list[int]:
    """Returns the numbers of ranks for opticoll's own plans, without slow cases."""
    return [count for count in ranks if count <= (LARGEST_OWN_QUICK if quick else LARGEST_OWN)]
