"""Formulas of papers and of teletraffic theory: steps, wavelengths and losses without a plan.

| function | formula | source |
|---|---|---|
| `optree_steps` | steps of an all_gather by a tree of a number of stages | OpTree, Theorem 1 |
| `optree_depth` | number of stages of fewest steps; None up to 7 ranks | OpTree, Eq. 2 |
| `optree_stage_loads` | greatest load of a link in each stage, in lightpaths | OpTree, Lemma 1 |
| `optree_best_radices` | children per stage of the tree of fewest steps | none: a search |
| `one_stage_wavelengths` | wavelengths of a one-stage all-to-all on a ring | OpTree, Lemma 1 |
| `wrht_all_gather_steps` | steps of WRHT as an all_gather | OpTree, section III.D |
| `wrht_all_reduce_steps` | steps of WRHT | WRHT (PPoPP 2023), section 2 |
| `relay_tree_costs` | least total length in links of relay trees, by depth | none: a recursion |
| `erlang_b` | blocking probability of servers under Poisson load in Erlang | Erlang (1917) |
| `engset` | blocking probability with sources that pause while blocked | Engset (1918) |
| `bandwidths` | algbw and busbw of a collective, in GB/s | nccl-tests, PERFORMANCE.md |
| `burst_fixed_point` | loss of Poisson bursts with full conversion | Rosberg et al. (2003) |

>>> from opticoll import formulas
>>> formulas.optree_steps(1024, 64, 7), formulas.one_stage_wavelengths(16)
(70, 32)
>>> formulas.bandwidths("all_reduce", 8, 10**9, 0.1)
(10.0, 17.5)
>>> f"{formulas.erlang_b(20.0, 28):.4f}"
'0.0188'
"""

from opticoll._core import (
    burst_fixed_point,
    engset,
    erlang_b,
    one_stage_wavelengths,
    optree_best_radices,
    optree_depth,
    optree_stage_loads,
    optree_steps,
    relay_tree_costs,
    wrht_all_gather_steps,
    wrht_all_reduce_steps,
)

__all__ = [
    "bandwidths",
    "burst_fixed_point",
    "engset",
    "erlang_b",
    "one_stage_wavelengths",
    "optree_best_radices",
    "optree_depth",
    "optree_stage_loads",
    "optree_steps",
    "relay_tree_costs",
    "wrht_all_gather_steps",
    "wrht_all_reduce_steps",
]


def bandwidths(
    collective: str, ranks: int, size_bytes: int, seconds: float
) -> tuple[float, float] | None:
    """The algbw and busbw of nccl-tests in GB/s; None where no bytes move or no time passes."""
    if collective == "barrier" or size_bytes == 0 or seconds <= 0:
        return None
    # The size of these is that of one rank's block, and the buffer has the blocks of all ranks.
    blocks = ranks if collective in ("all_gather", "gather", "scatter") else 1
    algorithm = size_bytes * blocks / seconds / 1e9
    shares = {"all_reduce": 2 * (ranks - 1) / ranks, "broadcast": 1.0, "reduce": 1.0}
    return algorithm, algorithm * shares.get(collective, (ranks - 1) / ranks)
