"""Plans of packed trees: right, and as fast as the optimum allows."""

from __future__ import annotations

import pytest

import opticoll
from opticoll import _core
from opticoll._core import Fabric, Plan
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
    "dgx_a100:latency=0s": "tree_packing:trees=1,chunks=1",
    "nvl72:latency=0s": "tree_packing:trees=1,chunks=1",
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
    plan = opticoll.plan("all_gather", "dgx_a100:boxes=3", size="1GiB")
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
