"""Plans of planners, algorithms and families: both verifiers prove them, texts keep them."""

from __future__ import annotations

from itertools import product

import pytest

import opticoll
from opticoll import _core, errors
from support import proved, some_of

GATHERED = ["all_gather", "reduce_scatter", "all_reduce"]
REACHED = [*GATHERED, "broadcast", "reduce"]
EVERY = [*REACHED, "all_to_all", "barrier", "gather", "scatter"]
DRAGONFLY = "dragonfly:terminals_per_router=2,routers_per_group=2,global_per_router=1"

RINGS = [
    f"wdm_ring:ranks=9,wavelengths=2,{options}"
    for options in (
        *("broken=3-4", "broken=3-4cw", "ports=2", "dead=1", "fibres=2"),
        *("multicast=drop_and_continue", "reach=2", "reach=1,broken=5-6"),
    )
]
LINKS = [
    "torus:dims=3x4,latency=500ns",
    "mesh:dims=3x3",
    "dgx1",
    "dgx_a100:boxes=2",
    "fat_tree:down=4x4,up=1x2",
    DRAGONFLY,
    "custom:ranks=3,links=0>1@2GB/s+1>2@3GB/s+2>0@2GB/s",
]
CUBES = [
    f"ocs_torus:dims={options},latency=500ns"
    for options in (
        "2x2x4,cube=2,twisted",
        "2x4x4,cube=2,twisted,spares=1,without=cube 2",
        "2x2x2,cube=2",
        "2x2x4",
        "4x4x4,without=rank 5",
    )
]
LEVELS = [
    ("multi_ring", "torus:dims=3x4"),
    ("multi_ring", "torus:dims=4x2x3"),
    ("ring:channels=all", "dgx_a100:boxes=2"),
    ("ring:channels=3", "dgx_a100:boxes=3"),
    ("rails", "dgx_a100:boxes=2"),
    ("rails:segments=3", "fat_tree:down=4x4,up=1x2"),
    ("rails:segments=2", DRAGONFLY),
]
TREES = "double_binary_tree:channels=all,segments=5"

CASES = [
    *((kind, "auto", ring, "64KiB") for kind, ring in product(EVERY, RINGS)),
    *(
        (kind, "auto", cubes, "4KiB")
        for cubes, kind in some_of(
            product(CUBES, [*GATHERED, "broadcast", "all_to_all", "scatter"]), 3
        )
    ),
    *(
        (kind, algorithm, links, None)
        for kind, algorithm, links in product(
            REACHED, ("matching:chunks=1", "matching:chunks=3", "matching:steps=fewest"), LINKS
        )
    ),
    *((kind, *level, None) for kind, level in product(GATHERED, LEVELS)),
    *(("all_reduce", TREES, f"dgx_h100:boxes={boxes}", None) for boxes in (1, 2, 3)),
]


@pytest.mark.parametrize(("collective", "algorithm", "fabric", "size"), CASES)
def test_plans_are_right(collective: str, algorithm: str, fabric: str, size: str | None) -> None:
    plan = opticoll.plan(collective, fabric, algorithm, size=size)
    proved(plan)
    assert opticoll.Plan.from_text(plan.to_text()) == plan


def test_auto_signals_from_everyone_to_everyone_where_only_the_latency_counts() -> None:
    """A signal passes two cables of 1 us and has no bytes: no plan is faster than one step."""
    plan = opticoll.plan("barrier", "crossbar:ranks=9,latency=1us")
    proved(plan)
    assert plan.simulate().time_ps == 2_000_000


@pytest.mark.parametrize(
    "fabric",
    some_of(
        [
            *("crossbar:ranks=8", "fat_tree:down=4x4,up=1x2", "torus:dims=3x3", "mesh:dims=5"),
            *("ladder:rungs=3", "electrical_ring:ranks=6", "fully_connected:ranks=7"),
            *("custom:ranks=2,switches=1,links=0-2+1-2", DRAGONFLY),
            *("crossbar:ranks=1", "crossbar:ranks=17", "lightpath_grid:ranks=6,ports=2"),
            *("lightpath_grid:ranks=16,ports=2", "wss_grid:rows=4,columns=4,plan=cyclic"),
            *("wss_grid:rows=3,columns=5", "wss_grid:rows=3,columns=3,nodes=0-7"),
            "wss_grid:rows=3,columns=3,dead_transceivers=4.row,dead_ports=column0.2",
        ],
        2,
    ),
)
def test_every_algorithm_is_right(fabric: str) -> None:
    planned = 0
    for record in _core.records("algorithms"):
        try:
            # Without latency plans would be cut into pieces of a few bytes.
            plan = opticoll.plan(
                str(record["collective"]), f"{fabric},latency=1us", record["name"], size="16KiB"
            )
        except errors.AlgorithmError:
            continue
        proved(plan)
        assert opticoll.Plan.from_text(plan.to_text()).to_text() == plan.to_text()
        planned += 1
    assert planned >= 20
