"""Both verifiers prove plans of rings, lines and other graphs that are placed on fibres."""

from __future__ import annotations

import pytest

import opticoll
from support import proved

RING = "wdm_graph:ranks=6,links=0-1+1-2+2-3+3-4+4-5+5-0,wavelengths=3"
SWITCHES = "wdm_graph:ranks=4,switches=3,links=0-4+4-1+1-2+2-5+5-6+6-3+3-0,wavelengths=2"


@pytest.mark.parametrize(
    ("fabric", "collective", "algorithm"),
    [
        (RING, "all_gather", "relay_tree"),
        (RING, "all_reduce", "wrht"),
        (RING, "all_to_all", "direct"),
        (RING, "broadcast", "pipelined"),
        (RING + ",converters=full", "all_gather", "optree"),
        (RING + ",multicast=drop_and_continue", "broadcast", "auto"),
        (RING + ",dead=1,transmitters=2,receivers=2", "reduce_scatter", "ring"),
        (SWITCHES, "all_gather", "auto"),
        ("wdm_line:ranks=8,wavelengths=4", "all_reduce", "auto"),
        ("wdm_line:ranks=9,wavelengths=20", "all_to_all", "direct"),
        ("wdm_torus:dims=4x4,wavelengths=8", "all_to_all", "direct"),
        ("wdm_torus:dims=4x4,wavelengths=3,dead=1", "all_gather", "bruck"),
        ("wdm_torus:dims=3x3,wavelengths=2,converters=2", "all_to_all", "direct"),
        ("wdm_torus:dims=3x3,wavelengths=2,converters=full", "all_gather", "direct"),
        (
            "wdm_mesh:dims=3x3,wavelengths=2,multicast=drop_and_continue",
            "all_gather",
            "direct:order=at_once",
        ),
        ("wdm_mesh:dims=3x3,wavelengths=2,transmitters=1,receivers=2", "all_to_all", "direct"),
        ("nsfnet_22:wavelengths=12", "all_to_all", "direct"),
        (
            "wdm_torus:dims=4x4,wavelengths=2",
            "barrier",
            "barrier_from_plan:collective=all_reduce,plan=ring",
        ),
        ("nsfnet_22:wavelengths=12", "barrier", "auto"),
    ],
)
def test_both_verifiers_prove_plans_on_graphs_of_fibres(
    fabric: str, collective: str, algorithm: str
) -> None:
    plan = opticoll.plan(collective, fabric, algorithm, size="64KiB")
    proved(plan)


def test_a_plan_on_a_line_has_the_slots_of_the_ring_with_a_cut() -> None:
    for assignment in ("first_fit", "best_fit"):
        line, ring = (
            opticoll.plan("all_gather", fabric, "direct:order=at_once", wavelength=assignment)
            for fabric in (
                "wdm_line:ranks=8,wavelengths=4",
                "wdm_ring:ranks=8,wavelengths=4,broken=7-0",
            )
        )
        columns = [plan.columns() for plan in (line, ring)]
        for name in ("slot", "source", "destination", "wavelength"):
            assert columns[0][name].tolist() == columns[1][name].tolist()
