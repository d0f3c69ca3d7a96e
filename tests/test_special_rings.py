"""Rings with cuts, few ports, light trees and limits of reach: both verifiers prove every plan."""

from __future__ import annotations

import pytest

import opticoll
from support import proved

COLLECTIVES = (
    "all_gather",
    "all_reduce",
    "all_to_all",
    "barrier",
    "broadcast",
    "gather",
    "reduce",
    "reduce_scatter",
    "scatter",
)


@pytest.mark.parametrize("collective", COLLECTIVES)
@pytest.mark.parametrize(
    "options",
    [
        "broken=3-4",
        "broken=3-4cw",
        "ports=2",
        "dead=1",
        "fibres=2",
        "multicast=drop_and_continue",
        "reach=2",
        "reach=1,broken=5-6",
    ],
)
def test_every_collective_is_planned_and_proved_twice(collective: str, options: str) -> None:
    fabric = f"wdm_ring:ranks=9,wavelengths=2,{options}"
    plan = opticoll.plan(collective, fabric, size="64KiB")
    proved(plan)


def test_auto_signals_from_everyone_to_everyone_where_only_the_latency_counts() -> None:
    """A signal passes two cables of 1 us and has no bytes: no plan is faster than one step."""
    plan = opticoll.plan("barrier", "crossbar:ranks=9,latency=1us")
    proved(plan)
    assert plan.simulate().time_ps == 2_000_000
