"""Algorithms for ranks in groups: when `auto` considers them."""

from __future__ import annotations

import pytest

import opticoll


@pytest.mark.parametrize("algorithm", ["ring", "double_binary_tree"])
def test_auto_considers_channels_where_servers_have_several_interfaces(algorithm: str) -> None:
    def considered(fabric: str) -> bool:
        plan = opticoll.plan("all_reduce", fabric, size="1GiB")
        return f"{algorithm}:channels=all" in [name for name, *_ in plan.candidates]

    assert considered("dgx_a100:boxes=2")
    # There a rank has one link, and one server is left by none.
    assert not considered("crossbar:ranks=16")
    assert not considered("dgx_a100")
