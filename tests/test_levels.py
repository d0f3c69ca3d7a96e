"""Algorithms for tori and for ranks in groups: both verifiers prove them."""

from __future__ import annotations

import pytest

import opticoll
from opticoll import reference

CASES = [
    ("multi_ring", "torus:dims=3x4"),
    ("multi_ring", "torus:dims=4x2x3"),
    ("ring:channels=all", "dgx_a100:boxes=2"),
    ("ring:channels=3", "dgx_a100:boxes=3"),
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


@pytest.mark.parametrize("boxes", [1, 2, 3])
def test_trees_of_channels_are_right(boxes: int) -> None:
    plan = opticoll.plan(
        "all_reduce", f"dgx_h100:boxes={boxes}", "double_binary_tree:channels=all,segments=5"
    )
    assert plan.verify() == []
    assert reference.verify_text(plan.to_text()) == []


@pytest.mark.parametrize("algorithm", ["ring", "double_binary_tree"])
def test_auto_considers_channels_where_servers_have_several_interfaces(algorithm: str) -> None:
    def considered(fabric: str) -> bool:
        plan = opticoll.plan("all_reduce", fabric, size="1GiB")
        return f"{algorithm}:channels=all" in [name for name, *_ in plan.candidates]

    assert considered("dgx_a100:boxes=2")
    # There a rank has one link, and one server is left by none.
    assert not considered("crossbar:ranks=16")
    assert not considered("dgx_a100")
