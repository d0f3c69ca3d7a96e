"""Packed trees: right, and as fast as the optimum allows, also on random graphs."""

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

FABRICS = [
    "dgx_a100",
    "dgx_h100:boxes=2",
    "dgx_a100:boxes=4",
    "mi250",
    "dgx1",
    "ndv2",
    "torus:dims=4x4,rate=1GB/s",
    "mesh:dims=3x3,rate=1GB/s",
    "torus:dims=3x3x3,rate=1GB/s",
    "fat_tree:down=4x4,up=1x2,rate=1GB/s",
    "dragonfly:terminals_per_router=2,routers_per_group=2,global_per_router=1",
    # One way round, with a slow link; and with a rank that only a switch joins.
    "custom:ranks=3,links=0>1@2GB/s+1>2@3GB/s+2>0@2GB/s",
    "custom:ranks=4,switches=1,links=0-1@3GB/s+1-2@1GB/s+2-4@2GB/s+3-4@2GB/s+0-4@1GB/s",
]
COLLECTIVES = ["all_gather", "reduce_scatter", "all_reduce", "broadcast", "reduce"]


def above(plan: Plan, size: str) -> float:
    """Returns the simulated time, divided by the bound."""
    size_bytes = _core.parse_size(size)
    _, bounds = _core.time_bounds(plan.collective.kind, plan.fabric, size_bytes)
    best = max(time_ps for time_ps, *_ in bounds)
    time_ps: int = plan.simulate(size_bytes).time_ps
    return time_ps / best


@pytest.mark.parametrize("fabric", FABRICS)
@pytest.mark.parametrize("collective", COLLECTIVES)
def test_plans_of_a_few_trees_of_each_root_are_right(collective: str, fabric: str) -> None:
    proved(opticoll.plan(collective, fabric, "tree_packing:trees=1,chunks=1"))
    proved(opticoll.plan(collective, fabric, "tree_packing:trees=2,chunks=3"))


EXACT = {
    "dgx_a100:latency=0s,library=none": "tree_packing:trees=1,chunks=1",
    "nvl72:latency=0s,library=none": "tree_packing:trees=1,chunks=1",
    "torus:dims=4x4,rate=1GB/s": "tree_packing:trees=4,chunks=1",
    "mesh:dims=4x4,rate=1GB/s": "tree_packing:trees=2,chunks=1",
    "torus:dims=8x8,rate=1GB/s": "tree_packing:trees=4,chunks=1",
    "torus:dims=3x3x3,rate=1GB/s": "tree_packing:trees=3,chunks=1",
}


@pytest.mark.parametrize("fabric", EXACT)
@pytest.mark.parametrize("collective", ["all_gather", "reduce_scatter"])
def test_the_time_of_a_large_message_is_the_optimum(collective: str, fabric: str) -> None:
    ranks = Fabric(fabric).ranks
    size = f"{ranks * 120}MB" if collective == "reduce_scatter" else "120MB"
    plan = opticoll.plan(collective, fabric, EXACT[fabric], size=size)
    proved(plan)
    assert above(plan, size) == pytest.approx(1, abs=1e-3)


def test_the_number_of_trees_and_chunks_is_chosen_by_the_size() -> None:
    fabric = "torus:dims=4x4,rate=1GB/s,latency=1us"
    large = opticoll.plan("broadcast", fabric, "tree_packing", size="100MB")
    small = opticoll.plan("broadcast", fabric, "tree_packing", size="1KB")
    proved(large)
    proved(small)
    assert above(large, "100MB") < 1.1
    assert large.collective.pieces > small.collective.pieces


UNEQUAL = {
    # Rows of 2 GB/s, columns of 3 GB/s: these carry one and a half pieces while those carry one.
    "mesh": "custom:ranks=9,latency=0s,links=0-1@2GB/s+1-2@2GB/s+3-4@2GB/s+4-5@2GB/s+6-7@2GB/s"
    "+7-8@2GB/s+0-3@3GB/s+3-6@3GB/s+1-4@3GB/s+4-7@3GB/s+2-5@3GB/s+5-8@3GB/s",
    "switch": "custom:ranks=4,switches=1,latency=0s,"
    "links=0-4@5GB/s+1-4@5GB/s+2-4@3GB/s+3-4@3GB/s+0-1@2GB/s+2-3@2GB/s",
}


@pytest.mark.parametrize("fabric", UNEQUAL)
@pytest.mark.parametrize("collective", ["all_gather", "reduce_scatter"])
def test_links_of_unequal_rates_are_busy(collective: str, fabric: str) -> None:
    plan = opticoll.plan(collective, UNEQUAL[fabric], "tree_packing", size="360MB")
    proved(plan)
    assert above(plan, "360MB") < 1.05


RELAYS = {
    "crossbar:ranks=7": "tree_packing:trees=6,chunks=8",
    "fat_tree:down=4x4,up=1x2": "tree_packing:trees=15,chunks=8",
    "dragonfly:terminals_per_router=1,routers_per_group=2,global_per_router=1": (
        "tree_packing:trees=5,chunks=8"
    ),
}


@pytest.mark.parametrize("fabric", RELAYS)
@pytest.mark.parametrize("collective", ["broadcast", "reduce"])
def test_a_relay_for_each_tree_makes_it_low(collective: str, fabric: str) -> None:
    plan = opticoll.plan(collective, fabric, RELAYS[fabric], size="100MB")
    proved(plan)
    # Eight chunks, at most three edges deep.
    assert plan.slots <= 10
    assert above(plan, "100MB") < 1.3


def test_several_trees_of_each_root_even_out_the_steps_of_three_servers() -> None:
    # With one tree of each root, which is the optimum, it takes 7 % more than the bound.
    plan = opticoll.plan("all_gather", "dgx_a100:boxes=3,library=none", size="1GiB")
    proved(plan)
    assert above(plan, "1GiB") <= 1.02


@pytest.mark.parametrize("fabric", ["crossbar:ranks=8,latency=1us", "mesh:dims=3x3,latency=1us"])
@pytest.mark.parametrize("collective", COLLECTIVES)
def test_full_effort_finds_a_hundredth_at_most(collective: str, fabric: str) -> None:
    found = opticoll.plan(collective, fabric, size="64KiB")
    full = opticoll.plan(collective, fabric, "auto:effort=full", size="64KiB")
    proved(full)
    times = [plan.simulate("64KiB").time_ps for plan in (found, full)]
    assert times[1] <= times[0] <= 1.01 * times[1]
    with pytest.raises(opticoll.OpticollError, match="enough or full"):
        opticoll.plan(collective, fabric, "auto:effort=most", size="64KiB")


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
    fabric = "dgx_a100:boxes=2,latency=500ns,library=none"
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
    with pytest.raises(_core.OpticollError, match="connected directly"):
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
