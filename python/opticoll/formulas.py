"""Formulas of teletraffic theory, bandwidths of collectives, and lengths of relay trees.

| function | formula | source |
|---|---|---|
| `relay_tree_costs` | minimum total length of relay trees, in links, by depth | none: a recursion |
| `erlang_b` | blocking probability of servers, for a Poisson load in Erlang | Erlang (1917) |
| `engset` | share of calls that are blocked, for a limited number of sources | Engset (1918) |
| `bandwidths` | algbw and busbw of a collective, in GB/s | nccl-tests, PERFORMANCE.md |
| `delivered_bytes` | bytes of results that their ranks did not hold before | definition |
| `burst_fixed_point` | loss of Poisson bursts, with full conversion | Rosberg et al. (2003) |

>>> from opticoll import formulas
>>> formulas.bandwidths("all_reduce", 8, 10**9, 0.1)
(10.0, 17.5)
>>> f"{formulas.erlang_b(20.0, 28):.4f}"
'0.0188'
"""

from opticoll._core import burst_fixed_point, engset, erlang_b, relay_tree_costs

__all__ = [
    "bandwidths",
    "burst_fixed_point",
    "delivered_bytes",
    "engset",
    "erlang_b",
    "relay_tree_costs",
]


def bandwidths(
    collective: str, ranks: int, size_bytes: int, seconds: float
) -> tuple[float, float] | None:
    """Returns algbw and busbw of nccl-tests in GB/s; None if no bytes move or no time passes."""
    if collective == "barrier" or size_bytes == 0 or seconds <= 0:
        return None
    # The size of these collectives is one rank's block, but nccl-tests counts the blocks of all
    # ranks.
    blocks = ranks if collective in ("all_gather", "gather", "scatter") else 1
    algorithm = size_bytes * blocks / seconds / 1e9
    shares = {"all_reduce": 2 * (ranks - 1) / ranks, "broadcast": 1.0, "reduce": 1.0}
    return algorithm, algorithm * shares.get(collective, (ranks - 1) / ranks)


def delivered_bytes(collective: str, ranks: int, size_bytes: int) -> int:
    """Returns the bytes of the results of all ranks, without those that a rank held before.

    A sum counts once for each rank that has it in the end.

    >>> [delivered_bytes(name, 4, 100) for name in ("broadcast", "all_gather", "all_reduce")]
    [300, 1200, 400]
    """
    others = ranks - 1
    return (
        size_bytes
        * {
            "all_gather": ranks * others,
            "all_reduce": ranks,
            "all_to_all": others,
            "barrier": 0,
            "broadcast": others,
            "gather": others,
            "reduce": 1,
            "reduce_scatter": 1,
            "scatter": others,
        }[collective]
    )
