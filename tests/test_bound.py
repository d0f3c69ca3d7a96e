"""Lower bounds: published optima, and the command that prints bounds."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

import opticoll
from support import Run, answer

Bounds = Callable[..., dict[str, Any]]


@pytest.fixture
def bounds(run: Run) -> Bounds:
    """Runs `opticoll bound --json`."""

    def printed(collective: str, fabric: str, *options: str) -> dict[str, Any]:
        row: dict[str, Any] = answer(run, "bound", collective, "--fabric", fabric, *options)
        return row

    return printed


OPTIMA = {
    "dgx_a100": "7/300",
    "dgx_a100:boxes=2": "3/65",
    "dgx_a100:boxes=4": "3/25",
    "dgx_h100": "7/450",
    "dgx_h100:boxes=2": "3/100",
    "dgx_h100:boxes=4": "31/500",
    "mi250": "7/150",
    "mi250:boxes=2": "15/166",
    "dgx1": "7/150",
    "ndv2": "16/25",
    "dgx2": "31/125",
    "nvl72": "71/900",
    "mesh:dims=4x4,rate=1GB/s": "15/2",
    "torus:dims=5x5,rate=1GB/s": "6",
    "torus:dims=3x3x3,rate=1GB/s": "13/3",
}
"""Seconds for a block of 1 GB: ForestColl (2402.06787), SCCL, TE-CCL; grids by their degree."""


@pytest.mark.parametrize("fabric", OPTIMA)
def test_the_optimum_of_an_all_gather_is_the_published_fraction(
    bounds: Bounds, fabric: str
) -> None:
    row = bounds("all_gather", fabric)
    assert row["optimum"] == OPTIMA[fabric]
    buffer = row["ranks"] * 1e9
    assert row["algbw_bytes_per_s"] == pytest.approx(float(buffer / Fraction(OPTIMA[fabric])))


def test_racks_take_in_over_switch_and_network_at_once(bounds: Bounds) -> None:
    # A GPU takes in 143 blocks at 900 + 50 GB/s; the other rack's 72 need only 72 x 50 GB/s.
    assert bounds("all_gather", "nvl72:boxes=2")["optimum"] == "143/950"


@pytest.mark.parametrize("fabric", ["dgx_a100:boxes=2", "mi250:boxes=2", "dgx1"])
def test_reversed_collectives_have_the_same_optimum(bounds: Bounds, fabric: str) -> None:
    assert bounds("reduce_scatter", fabric)["optimum"] == OPTIMA[fabric]
    assert bounds("reduce", fabric)["optimum"] == bounds("broadcast", fabric)["optimum"]
    assert bounds("scatter", fabric)["optimum"] == bounds("gather", fabric)["optimum"]


def test_an_all_reduce_has_two_fractions_where_they_do_not_meet(bounds: Bounds) -> None:
    # Three ranks on a switch, and one behind one of them: the five links into ranks take in six
    # vectors; three quarters go into a rank on one link, twice.
    row = bounds("all_reduce", "custom:ranks=4,switches=1,rate=1GB/s,links=0-4+1-4+2-4+2-3")
    assert (row["optimum"], row["optimum_lower_bound"], row["optimum_upper_bound"]) == (
        None,
        "6/5",
        "3/2",
    )
    assert bounds("all_reduce", "dgx_a100")["optimum"] == "7/1200"


def test_the_witness_of_an_oversubscribed_network_is_a_box(bounds: Bounds) -> None:
    row = bounds("all_gather", "dgx_h100:boxes=16")
    assert row["optimum"] == "3/10"
    witness = row["bounds"][0]["witness"]
    assert len(witness["ranks"]) == len(witness["links"]) == 8
    assert witness["parts"] == 1
    assert all("NIC of rank" in link for link in witness["links"])


def test_a_bound_with_a_size_has_the_latencies_of_its_cut(bounds: Bounds) -> None:
    row = bounds("broadcast", "dgx_h100:boxes=2,latency=1us", "--size", "1B")
    # Four cables lead from one box to the other.
    assert row["bounds"][0]["time_s"] >= 4e-6


def test_the_text_names_the_bottleneck(run: Run) -> None:
    out = run("bound", "broadcast", "--fabric", "ndv2").out
    assert "optimum: 2/25 s (80.00 ms) for a vector of 1 GB" in out
    assert "rank 0 -> rank 9" in out
    out = run("bound", "all_gather", "--fabric", "optree_paper").out
    assert "relay_tree" in out


def test_the_bottleneck_is_that_of_the_greatest_bound(bounds: Bounds, run: Run) -> None:
    # All 16 ranks together take in 2 (16 - 1) vectors, over 16 (300 + 25) GB/s: 30 / 5200 s.
    asked = ("all_reduce", "dgx_a100:boxes=2,latency=0s", "--size", "1GB")
    row = bounds(*asked)
    assert row["optimum"] == str(Fraction(30, 5200))
    greatest = row["bounds"][0]
    assert greatest["time_s"] == pytest.approx(30 / 5200)
    witness = greatest["witness"]
    assert (len(witness["ranks"]), witness["parts"], len(witness["links"])) == (16, 16, 32)
    names = [one["name"] for one in row["bounds"]]
    assert len(set(names)) == len(names)
    for one in row["bounds"]:
        assert one["witness"], one["name"]
    out = run("bound", asked[0], "--fabric", *asked[1:]).out
    assert "bottleneck: all of 16 ranks (0-15) together, behind 32 links: " in out


@pytest.mark.parametrize(
    ("collective", "size"),
    [
        ("all_gather", "1GB"),
        ("all_reduce", "1GB"),
        ("broadcast", "1GB"),
        ("reduce", "1GB"),
        ("reduce_scatter", "16GB"),
    ],
)
def test_both_ways_share_a_half_duplex_cable_in_the_fraction(
    bounds: Bounds, collective: str, size: str
) -> None:
    row = bounds(collective, "mesh:dims=4x4,duplex=half", "--size", size)
    assert row["optimum"] is None
    assert float(Fraction(row["optimum_lower_bound"])) == pytest.approx(row["bounds"][0]["time_s"])


def test_what_is_no_optimum_is_at_most_the_bandwidth(run: Run) -> None:
    out = run("bound", "all_gather", "--fabric", "mesh:dims=4x4,duplex=half").out
    # A corner takes in 15 blocks and sends its own over two cables of 100 Gb/s.
    assert "optimum: at least 16/25 s (640.0 ms) for a block of 1 GB" in out
    assert "bandwidth of the buffer: at most 25.000 GB/s" in out


def test_a_fabric_of_light_has_no_fraction(bounds: Bounds) -> None:
    row = bounds("all_gather", "optree_paper")
    assert row["optimum"] is None
    assert row["bounds"][0]["name"] == "relay_tree"


@pytest.mark.parametrize("policy", ["every_step", "on_change", "per_port", "free"])
def test_bounds_on_circuits_name_their_policy_and_no_plan_under_it_is_faster(
    bounds: Bounds, run: Run, policy: str
) -> None:
    ring = "wdm_ring:ranks=16,wavelengths=4"
    row = bounds("all_gather", ring, "--policy", policy)
    plan = run("plan", "all_gather", "--fabric", ring, "--policy", policy, "--json")
    assert row["policy"] == policy
    assert row["bounds"][0]["time_s"] <= json.loads(plan.out)["time_s"]


def test_without_a_policy_bounds_hold_for_the_default_one(bounds: Bounds) -> None:
    ring = "wdm_ring:ranks=16,wavelengths=4"
    row, named = bounds("all_gather", ring), bounds("all_gather", ring, "--policy", "every_step")
    assert (row["policy"], row["bounds"]) == ("every_step", named["bounds"])
    assert bounds("all_gather", "torus:dims=3x3")["policy"] is None


@pytest.mark.parametrize(
    ("fabric", "policy"),
    [("torus:dims=3x3", "free"), ("wdm_ring:ranks=8,wavelengths=2", "two_tier")],
)
def test_a_policy_that_the_fabric_does_not_know_is_refused(
    run: Run, fabric: str, policy: str
) -> None:
    finished = run("bound", "all_gather", "--fabric", fabric, "--policy", policy)
    assert finished.code == 2
    assert "does not know the" in finished.err


def test_plans_whose_transfers_share_lightpaths_have_the_bound_of_any_number_of_chunks() -> None:
    # Rank 0 has one port and three blocks to send: two of them go on one lightpath.
    text = (
        "opticoll plan 1\ncollective scatter ranks=4 root=0 pieces=1\n"
        "fabric wdm_ring:ranks=4,wavelengths=1,ports=1\nalgorithm by hand\nsteps 1 1\n"
        "slot 0\ncopy 2 0>2 cw 0.0\ncopy 3 0>2 cw 0.0\n"
        "slot 1\ncopy 1 0>1 cw 0.0\ncopy 3 2>3 cw 0.0\nend 4\n"
    )
    plan = opticoll.Plan.from_text(text)
    assert plan.verify() == []
    assert plan.slots == 2
    assert plan.bound is not None
    assert plan.bound[0] <= 2


TWO_STARS = "custom:ranks=8,switches=2,links=" + "+".join(
    [*(f"{rank}-{8 + rank % 2}@100Gb/s" for rank in range(8)), "8-9@10Gb/s"]
)
"""Even ranks at one switch, odd ranks at the other, and a thin cable between the two."""


@pytest.mark.parametrize("command", ["plan", "simulate", "compare"])
def test_a_plan_that_meets_the_bound_of_bound_has_no_gap(
    bounds: Bounds, run: Run, command: str
) -> None:
    # 4 x 4 blocks of 1 MB cross the thin cable each way: 16 MB at 10 Gb/s.
    asked = ("all_to_all", "--fabric", TWO_STARS, "--size", "8MB")
    rows = json.loads(run(command, *asked, "--json").out)
    row = rows if isinstance(rows, dict) else rows[-1]
    assert row["bound_time_s"] == pytest.approx(12.8e-3)
    assert row["time_s"] == pytest.approx(12.8e-3)
    assert bounds("all_to_all", TWO_STARS, "--size", "8MB")["bounds"][0]["time_s"] == pytest.approx(
        12.8e-3
    )


@pytest.mark.parametrize(
    ("kind", "buffer", "share"),
    # 8 ranks; the size is 1 GB, the buffer of blocks holds 8 of them.
    [
        ("all_reduce", 1, 2 * 7 / 8),
        ("reduce_scatter", 1, 7 / 8),
        ("all_to_all", 1, 7 / 8),
        ("all_gather", 8, 7 / 8),
        ("gather", 8, 7 / 8),
        ("scatter", 8, 7 / 8),
        ("broadcast", 1, 1),
        ("reduce", 1, 1),
    ],
)
def test_bandwidths_are_those_of_nccl_tests(kind: str, buffer: int, share: float) -> None:
    plan = opticoll.plan(kind, "crossbar:ranks=8", size="1GB")
    row = opticoll.measure(plan, "1GB")
    assert row.algorithm_bandwidth == pytest.approx(buffer / row.time_s)
    assert row.bus_bandwidth == pytest.approx(buffer / row.time_s * share)


def test_where_no_bytes_move_there_is_no_bandwidth() -> None:
    row = opticoll.measure(opticoll.plan("barrier", "crossbar:ranks=8,latency=1us"), "1GB")
    assert (row.algorithm_bandwidth, row.bus_bandwidth) == (None, None)
    differ = opticoll.plan("all_to_all", "crossbar:ranks=2", "direct", demand=[[0, 1], [2, 0]])
    assert opticoll.measure(differ, 2).bus_bandwidth is None


def test_a_comparison_of_sizes_ends_with_the_sizes_at_which_each_plan_leads(run: Run) -> None:
    # At 1 us a message a tree of few steps wins for small sizes, the least traffic for large ones.
    fabric = "crossbar:ranks=8,latency=1us,rate=8Gb/s"
    asked = ("--algorithms", "recursive_doubling,ring", "--sizes", "1KiB..16MiB")
    comparison = json.loads(run("compare", "all_reduce", "--fabric", fabric, *asked, "--json").out)
    out = run("compare", "all_reduce", "--fabric", fabric, *asked).out
    table = out.partition("the fastest plan by size\n")[2].partition("\nfrom, to:")[0]
    lines = [line.split() for line in table.splitlines()[1:]]
    assert (lines[0][0], lines[-1][1]) == ("1KiB", "16MiB")
    least = min(row["time_s"] for row in comparison if row["size_bytes"] == 16 << 20)
    (winner,) = {
        row["chosen"].partition(":")[0]
        for row in comparison
        if row["size_bytes"] == 16 << 20 and row["algorithm"] == "auto"
    }
    assert lines[-1][2].partition(":")[0] == winner
    assert least > 0
