"""Algorithms for tori and for ranks in groups: both verifiers prove them."""

from __future__ import annotations

import pytest

import opticoll
from opticoll import reference

CASES = [
    ("multi_ring", "torus:dims=3x4"),
    ("multi_ring", "torus:dims=4x2x3"),
    ("rails", "dgx_a100:boxes=2"),
    ("rails:segments=3", "fat_tree:down=4x4,up=1x2"),
    (
        "rails:segments=2",
        "dragonfly:terminals_per_router=2,routers_per_group=2,global_per_router=1",
    ),
]


@pytest.mark.parametrize("collective", ["all_gather", "reduce_scatter", "all_reduce"])
@pytest.mark.parametrize(("algorithm", "fabric"), CASES)
def test_plans_are_right(algorithm: str, fabric: str, collective: str) -> None:
    plan = opticoll.plan(collective, fabric, algorithm)
    assert plan.verify() == []
    assert reference.verify_text(plan.to_text()) == []
