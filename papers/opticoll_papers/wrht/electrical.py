"""All_reduces of the poster's networks on electrical fabrics, compared with optical schemes.

The poster simulates Ring and Recursive Doubling on an electrical network, but states no rate,
latency or topology. The fabrics here are one switch, and a fat tree with 16 ranks and 8 cables
upwards per leaf. Cables have 500 ns, ports 10 to 400 Gb/s. Halving and doubling, which sends the
minimum of an all_reduce in 2 log2 N steps, is added for comparison.

>>> from opticoll_papers.wrht.electrical import fabric_specification, time_s
>>> fabric_specification("crossbar", 128, 10_000_000_000, 0)
'crossbar:ranks=128,rate=10Gb/s,latency=0s'
>>> time_s("crossbar", 128, "recursive_doubling", 10_000_000_000, 0, 10_000_000)  # 7 S / B
0.056
"""

from __future__ import annotations

from functools import cache, lru_cache

import opticoll
from opticoll import Fabric, Plan, format_time
from opticoll.outputs.rows import Row, means, plain
from opticoll.outputs.units import Bytes, Picoseconds, Positive, Seconds
from opticoll_papers.common import Results
from opticoll_papers.wrht.cases import (
    MODELS,
    SIZES,
    WAVELENGTHS,
    constructed,
    own_ranks,
    own_times,
    ring_formula_s,
    wrht_claimed_s,
)

ALGORITHMS = {"ring": "E-Ring", "recursive_doubling": "E-RD", "halving_doubling": "E-HD"}
"""Names of the curves, by algorithm; the third algorithm is not in the poster."""

FABRICS = {"crossbar": "single switch", "fat_tree": "fat tree (2:1 at its leaves)"}
RATES = (10 * 10**9, 40 * 10**9, 100 * 10**9, 400 * 10**9)
"""Rates per port in each direction, in bit/s."""

LATENCY_PS = 500_000
"""Latency of a cable with its switch, in picoseconds; a fast Ethernet switch takes 0.3 to 1 us."""

# Switches per level above the 16 ranks of a leaf; only leaves have fewer cables up than down.
_TREES = {
    128: ("16x8", "1x8"),
    256: ("16x16", "1x8"),
    512: ("16x8x4", "1x8x8"),
    1024: ("16x8x8", "1x8x8"),
    4096: ("16x16x16", "1x8x16"),
}

RANKS = (128, 256, 512, 1024)
QUICK_RANKS = (128, 256)
LONG_RANKS = (*RANKS, 4096)


class ElectricalRow(Row):
    """Times on an electrical fabric and on an optical ring."""

    fabric: str = means("Electrical fabric: crossbar or fat_tree")
    specification: str = means("Complete specification of the electrical fabric")
    model: str = means("Model whose gradient is reduced")
    ranks: Positive = means("Number of ranks of each fabric")
    size_bytes: Bytes = means("Size of the gradient")
    rate_bits_per_second: Positive = means("Rate of an electrical port in each direction")
    latency_ps: Picoseconds = means("Latency of a cable")
    start: str = means("Start rule of electrical flows")
    e_ring_s: Seconds = means("Time of ring on the electrical fabric")
    e_rd_s: Seconds = means("Time of recursive doubling on the electrical fabric")
    e_hd_s: Seconds = means("Time of halving and doubling on the electrical fabric")
    o_ring_formula_s: Seconds = means("Time of ring on light by its formula")
    wrht_claimed_s: Seconds = means("Time of WRHT on light by the poster's formula")
    wrht_constructed_s: Seconds = means("Time of WRHT on light, constructed and simulated")
    auto_s: Seconds | None = means(
        "Time of opticoll's own plan on light", absent="opticoll's own plan is not compared"
    )
    auto_chosen: str | None = means(
        "Algorithm of opticoll's own plan", absent="opticoll's own plan is not compared"
    )
    verified: bool = means("Whether all plans of the row have no violations")


def fabric_specification(fabric: str, ranks: int, rate: int, latency_ps: int) -> str:
    """Returns the specification of one of `FABRICS`.

    `rate` is the rate of a port in bit/s, and `latency_ps` the latency of a cable.
    """
    cables = f"rate={_rate_text(rate)},latency={format_time(latency_ps).replace(' ', '')}"
    if fabric == "crossbar":
        return f"crossbar:ranks={ranks},{cables}"
    down, up = _TREES[ranks]
    return f"fat_tree:down={down},up={up},{cables}"


def _rate_text(rate: int) -> str:
    whole = rate % 10**9 == 0
    return f"{rate // 10**9}Gb/s" if whole else f"{rate}b/s"


@cache
def is_verified(fabric: str, ranks: int, algorithm: str) -> bool:
    """Returns whether a plan is valid, which depends on neither rate nor latency."""
    return not _plan(fabric, ranks, algorithm, RATES[0], LATENCY_PS).verify()


# Consecutive cases with the same rate and different sizes share a plan.
@lru_cache(maxsize=len(ALGORITHMS))
def _plan(fabric: str, ranks: int, algorithm: str, rate: int, latency_ps: int) -> Plan:
    machine = Fabric(fabric_specification(fabric, ranks, rate, latency_ps))
    return opticoll.plan("all_reduce", machine, algorithm)


@cache
def time_s(
    fabric: str, ranks: int, algorithm: str, rate: int, latency_ps: int, size_bytes: int
) -> float:
    """Returns the seconds of an electrical all_reduce, simulated as flows with rendezvous."""
    plan = _plan(fabric, ranks, algorithm, rate, latency_ps)
    return float(plan.simulate(size_bytes, start="rendezvous").time_ps / 1e12)


def rows(results: Results, fabric: str, ranks: int, *, quick: bool) -> list[ElectricalRow]:
    """Returns the rows of every network and rate on a fabric, stored until the study ends."""
    case = {"electrical": fabric, "ranks": ranks, "quick": quick}
    stored = results.rows(
        case, lambda: [plain(row) for row in _rows(results, fabric, ranks, quick=quick)]
    )
    return [ElectricalRow(**row) for row in stored]


def _rows(results: Results, fabric: str, ranks: int, *, quick: bool) -> list[ElectricalRow]:
    verified = all(is_verified(fabric, ranks, algorithm) for algorithm in ALGORITHMS)
    own_rows = own_times(results, ranks) if own_ranks((ranks,), quick=quick) else None
    # The sizes at one rate share a plan, so rates are the outer loop.
    times = {
        (rate, size): [
            time_s(fabric, ranks, algorithm, rate, LATENCY_PS, size) for algorithm in ALGORITHMS
        ]
        for rate in RATES
        for size in SIZES
    }
    all_rows = []
    for index, (model, size) in enumerate(zip(MODELS, SIZES, strict=True)):
        wrht = constructed(ranks, WAVELENGTHS, "wrht")
        own = None if own_rows is None else own_rows[index]
        for rate in RATES:
            ring, doubling, halving = times[rate, size]
            all_rows.append(
                ElectricalRow(
                    fabric=fabric,
                    specification=fabric_specification(fabric, ranks, rate, LATENCY_PS),
                    model=model,
                    ranks=ranks,
                    size_bytes=size,
                    rate_bits_per_second=rate,
                    latency_ps=LATENCY_PS,
                    start="rendezvous",
                    e_ring_s=ring,
                    e_rd_s=doubling,
                    e_hd_s=halving,
                    o_ring_formula_s=ring_formula_s(ranks, size),
                    wrht_claimed_s=wrht_claimed_s(ranks, size),
                    wrht_constructed_s=wrht.times_ps[size] / 1e12,
                    auto_s=None if own is None else own["time_s"],
                    auto_chosen=None if own is None else own["chosen"],
                    verified=verified and wrht.verified and (own is None or own["verified"]),
                )
            )
    return all_rows
