"""Plans by matching and in the fewest steps: both verifiers prove them."""

from __future__ import annotations

import pytest

import opticoll
from opticoll import reference

FABRICS = [
    "torus:dims=3x4,latency=500ns",
    "mesh:dims=3x3",
    "dgx1",
    "dgx_a100:boxes=2",
    "fat_tree:down=4x4,up=1x2",
    "dragonfly:terminals_per_router=2,routers_per_group=2,global_per_router=1",
    "custom:ranks=3,links=0>1@2GB/s+1>2@3GB/s+2>0@2GB/s",
]
COLLECTIVES = ["all_gather", "reduce_scatter", "all_reduce", "broadcast", "reduce"]


@pytest.mark.parametrize("fabric", FABRICS)
@pytest.mark.parametrize("collective", COLLECTIVES)
@pytest.mark.parametrize("algorithm", ["matching:chunks=1", "matching:chunks=3", "fewest_steps"])
def test_plans_are_right(algorithm: str, collective: str, fabric: str) -> None:
    plan = opticoll.plan(collective, fabric, algorithm)
    assert plan.verify() == []
    assert reference.verify_text(plan.to_text()) == []
