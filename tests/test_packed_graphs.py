"""Packed trees on random graphs: links of unequal rates in one direction or both, switches."""

from __future__ import annotations

import math
import random
from collections import Counter
from fractions import Fraction
from typing import Any

import pytest

import opticoll
from opticoll import _core
from opticoll._core import Fabric, FabricError, OpticollError, Plan
from support import proved

SIZE = "240MB"
"""Large, and divisible by the number of ranks, trees and chunks."""

CHUNKS = 40


def graph(seed: int) -> tuple[str, int]:
    """Draws a connected graph as a fabric, and the rate in GB/s of its slowest link."""
    draw = random.Random(seed)
    ranks = draw.randint(3, 6)
    switches = draw.randint(0, 2)
    rates: list[int] = []

    def rate() -> str:
        rates.append(draw.choice([1, 1, 2, 3, 5, 8]))
        return f"@{rates[-1]}GB/s"

    order = draw.sample(range(ranks), ranks)
    links = [f"{one}>{two}{rate()}" for one, two in zip(order, order[1:] + order[:1], strict=True)]
    for _ in range(draw.randint(0, 5)):
        one, two = draw.sample(range(ranks), 2)
        if not any(
            link.startswith((f"{one}>{two}@", f"{two}-{one}@", f"{one}-{two}@")) for link in links
        ):
            links.append(f"{one}>{two}{rate()}")
    # The rates into a switch equal the rates out of it.
    for switch in range(ranks, ranks + switches):
        ends = draw.sample(range(ranks), draw.randint(2, ranks))
        links += [f"{rank}-{switch}{rate()}" for rank in ends]
    if switches > 1:
        links.append(f"{ranks}-{ranks + 1}{rate()}")
    switched = f",switches={switches}" if switches else ""
    return f"custom:ranks={ranks}{switched},latency=0s,links={'+'.join(links)}", min(rates)


def bound_and_time(plan: Plan) -> tuple[Fraction, Fraction]:
    """Returns the greatest bound and the simulated time, in seconds."""
    size = _core.parse_size(SIZE)
    _, bounds = _core.time_bounds(plan.collective.kind, plan.fabric, size)
    best = max(time_ps for time_ps, *_ in bounds)
    return Fraction(best, 10**12), Fraction(plan.simulate(size).time_ps, 10**12)


@pytest.mark.parametrize("collective", ["all_gather", "reduce_scatter", "broadcast", "reduce"])
@pytest.mark.parametrize("trees", [1, 2, 5])
@pytest.mark.parametrize("seed", range(8))
def test_few_trees_cost_at_most_one_part_over_the_slowest_link(
    seed: int, trees: int, collective: str
) -> None:
    fabric, slowest = graph(seed)
    plan = opticoll.plan(
        collective, fabric, f"tree_packing:trees={trees},chunks={CHUNKS}", size=SIZE
    )
    proved(plan)
    bound, time = bound_and_time(plan)
    ranks = Fabric(fabric).ranks
    block = Fraction(240, 1000) / (ranks if collective == "reduce_scatter" else 1)
    part = block / trees / slowest
    # Links wait for the first chunks as long as these are on their way, and then for one another.
    waiting = (ranks + 1) * part / CHUNKS + part
    rounding = Fraction(1, 10**9)
    assert bound * (1 - rounding) <= time <= bound + part + waiting


@pytest.mark.parametrize("collective", ["all_gather", "reduce_scatter", "broadcast", "reduce"])
@pytest.mark.parametrize("seed", range(24))
def test_with_enough_trees_the_busiest_link_is_busy_for_the_optimum(
    seed: int, collective: str
) -> None:
    fabric = Fabric(graph(seed)[0])
    known: Any = _core.throughput_optimum(collective, fabric)
    optimum = Fraction(*known[0])
    if collective == "reduce_scatter":
        # The size is that of a vector with a block for each rank.
        optimum *= fabric.ranks
    # The optimum is p / q seconds for 1 bit. With g the greatest divisor of all rates, all
    # capacities are whole for q / gcd(q, g) trees of each root (ForestColl, arXiv 2402.06787).
    rates = [int(rate) for rate in fabric.link_rates]
    per_bit = optimum / 8 * Fraction(1, 10**9)
    divisor = math.gcd(*rates)
    trees = per_bit.denominator // math.gcd(per_bit.denominator, divisor)
    plan = opticoll.plan(collective, fabric, f"tree_packing:trees={trees},chunks=1", size=SIZE)
    proved(plan)
    pieces: Counter[int] = Counter()
    for transfer in range(len(plan.columns()["chunk"])):
        pieces.update(plan.route(transfer))
    busy = [Fraction(8 * 10**9 * count, trees * rates[link]) for link, count in pieces.items()]
    assert max(busy) == optimum


def test_a_switch_that_would_have_to_copy_has_no_optimum_but_a_bound() -> None:
    # What leaves rank 0 crosses one link, and ranks 1 and 2 reach each other over rank 0 only: a
    # broadcast crosses that link twice, where the cut counts it once.
    links = "0>3@1GB/s+3>1@1GB/s+3>2@1GB/s+1>0@1GB/s+2>0@1GB/s"
    fabric = Fabric(f"custom:ranks=3,switches=1,latency=0s,links={links}")
    assert _core.throughput_optimum("broadcast", fabric) == ((1, 1), None)
    assert _core.throughput_optimum("all_gather", fabric) == ((2, 1), None)
    known: Any = _core.throughput_optimum("all_reduce", fabric)
    assert known[1] is None
    assert _core.throughput_optimum("reduce", fabric) == ((1, 1), (1, 1))
    assert _core.throughput_optimum("scatter", fabric) == ((2, 1), (2, 1))


def test_as_few_pieces_as_asked_for_are_tried_at_any_size() -> None:
    for size in ("0B", "1B", "3B"):
        for algorithm in ("tree_packing:trees=4", "tree_packing:chunks=1+2+1", "tree_packing"):
            proved(opticoll.plan("broadcast", "dgx_a100", algorithm, size=size))


def test_chunks_of_a_broadcast_may_have_several_sizes() -> None:
    fabric = "dgx_a100:boxes=2,latency=500ns"
    for collective in ("broadcast", "reduce"):
        plan = opticoll.plan(collective, fabric, "tree_packing:trees=8,chunks=1+3+2", size="1MiB")
        proved(plan)
        assert plan.algorithm == "tree_packing:trees=8,chunks=1+3+2"
        assert plan.collective.pieces == 8 * 6
    # Chunks that grow and shrink keep the links between the servers busy with fewer steps.
    chosen = opticoll.plan("broadcast", fabric, "tree_packing:trees=8", size="100MB")
    equal = [
        opticoll.plan("broadcast", fabric, f"tree_packing:trees=8,chunks={chunks}", size="100MB")
        for chunks in (8, 12, 16, 24, 32)
    ]
    assert bound_and_time(chosen)[1] < min(bound_and_time(plan)[1] for plan in equal)


@pytest.mark.parametrize("chunks", ["1+", "0+1", "1+x", "4096+1", "+", "-1"])
def test_sizes_of_chunks_are_whole_numbers(chunks: str) -> None:
    with pytest.raises(_core.AlgorithmError, match="must be a whole number"):
        opticoll.plan("broadcast", "dgx_a100", f"tree_packing:chunks={chunks}")


def test_only_trees_of_one_root_take_chunks_of_several_sizes() -> None:
    with pytest.raises(_core.AlgorithmError, match="only trees of one root"):
        opticoll.plan("all_gather", "dgx_a100", "tree_packing:chunks=1+2")
    with pytest.raises(_core.AlgorithmError, match="for an all_reduce only"):
        opticoll.plan("broadcast", "mesh:dims=3x3", "tree_packing:roots=one")
    with pytest.raises(_core.OpticollError, match="joined directly"):
        opticoll.plan("all_reduce", "dgx_a100", "tree_packing:roots=one")


def one_way(seed: int) -> str:
    """Draws a connected graph of mostly one-way links, with switches that lead nowhere."""
    draw = random.Random(seed)
    while True:
        ranks, switches = draw.randint(2, 6), draw.randint(1, 4)
        vertices = ranks + switches
        links = []
        for _ in range(draw.randint(vertices, 4 * vertices)):
            one, two = draw.sample(range(vertices), 2)
            letter, rate = draw.choice(">>>>-~"), draw.choice(["", "@25Gb/s", "@1Gb/s"])
            links.append(f"{one}{letter}{two}{rate}")
        fabric = f"custom:ranks={ranks},switches={switches},latency=1us,links={'+'.join(links)}"
        try:
            return Fabric(fabric).spec
        except FabricError:
            continue


DEAD_ENDS = [
    "custom:ranks=2,switches=1,links=1-0+0>2,latency=1us",
    "fat_tree:down=2x2,up=1x2,without=leaf 0 -> spine 1+leaf 1 -> spine 1",
    *map(one_way, range(20)),
]


@pytest.mark.parametrize("fabric", DEAD_ENDS)
def test_every_collective_is_planned_where_links_lead_one_way(fabric: str) -> None:
    for record in opticoll.records("collectives"):
        proved(opticoll.plan(record["name"], fabric, size="1KiB"))


@pytest.mark.parametrize(
    "fabric", ["crossbar:ranks=4,rate=1kb/s", "wdm_ring:ranks=4,wavelengths=1,rate=1kb/s"]
)
def test_a_candidate_whose_time_does_not_fit_into_64_bits_is_left_out(fabric: str) -> None:
    size = 1_200_000_000
    # One transfer after another of the whole vector takes longer than 2^64 ps, a pipeline does not.
    sending = Fraction(8 * size, 1000) * 10**12
    assert sending < 2**64 < 2 * sending
    with pytest.raises(OpticollError, match="64 bits"):
        opticoll.plan("broadcast", fabric, "binomial").simulate(size)
    planned = opticoll.plan("broadcast", fabric, size=size)
    assert planned.verify() == []
    # A rank has at most two links.
    assert sending // 2 <= planned.simulate(size).time_ps
