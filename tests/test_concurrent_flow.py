"""The maximum concurrent flow: optima of all_to_all, and plans that come near them."""

from __future__ import annotations

import json
import random
from fractions import Fraction
from typing import Any

import pytest

from opticoll import _core
from opticoll.outputs import linear_program
from opticoll.outputs.optimum import optimum
from opticoll.reference import read, verify
from support import Run, wiring_of

UNIT = "rate=1GB/s"
OPTIMA = {
    f"electrical_ring:ranks=8,{UNIT}": "8",
    "gpu_servers:model=dgx1": "8/75",
    f"mesh:dims=4x4,{UNIT}": "16",
    f"torus:dims=4x4,{UNIT}": "8",
    f"torus:dims=8x8,{UNIT}": "64",
    f"torus:dims=4x4x4,{UNIT}": "32",
    "gpu_servers:model=dgx_a100,boxes=2": "8/25",
    "gpu_servers:model=dgx_h100,boxes=2": "4/25",
}
"""Seconds for a block of 1 GB of each pair; of DGX-1 8/3 over 25 GB/s."""


@pytest.mark.parametrize(
    "spec", [spec for spec in OPTIMA if "8x8" not in spec and "4x4x4" not in spec]
)
def test_the_linear_program_proves_the_same(spec: str) -> None:
    pytest.importorskip("highspy")
    proved: Any = linear_program.optimum(_core.Fabric(spec), "all_to_all", 0)
    assert proved.bound == Fraction(OPTIMA[spec])
    assert proved.is_optimum


@pytest.mark.parametrize("spec", OPTIMA)
def test_plans_are_within_five_percent_of_the_optimum_and_verified(spec: str) -> None:
    fabric = _core.Fabric(spec)
    ranks = fabric.ranks
    size = 100_000_000 * ranks
    plan = _core.plan("all_to_all", fabric, "concurrent_flow", size_bytes=size)
    assert plan.verify() == []
    time_ps = plan.simulate(size).time_ps
    assert time_ps <= 1.05 * float(Fraction(OPTIMA[spec])) * 0.1 * 1e12
    if ranks < 20:
        read_back = read(plan.to_text())
        read_back.fabric.wiring = wiring_of(fabric)
        assert verify(read_back) == []


def random_graph(chance: random.Random) -> str:
    """Ranks and switches, links of unequal whole rates, some one way, some half-duplex."""
    ranks, switches = chance.randint(2, 6), chance.randint(0, 3)
    vertices = ranks + switches
    links = []
    for vertex in range(1, vertices):
        links.append(f"{chance.randrange(vertex)}-{vertex}@{chance.randint(1, 7)}GB/s")
    for _ in range(chance.randint(0, 2 * vertices)):
        one, other = chance.sample(range(vertices), 2)
        kind = chance.choice("->~")
        links.append(f"{one}{kind}{other}@{chance.randint(1, 7)}GB/s")
    switched = f"switches={switches}," if switches else ""
    return f"custom:ranks={ranks},{switched}links={'+'.join(links)}"


@pytest.mark.parametrize("seed", range(25))
def test_on_random_graphs_the_combinatorial_numbers_enclose_the_linear_program(seed: int) -> None:
    pytest.importorskip("highspy")
    fabric = _core.Fabric(random_graph(random.Random(seed)))
    proved: Any = linear_program.optimum(fabric, "all_to_all", 0)
    assert proved.is_optimum
    known: Any = _core.throughput_optimum("all_to_all", fabric)
    least, most = (Fraction(*one) * fabric.ranks for one in known if one is not None)
    assert least <= proved.bound <= most
    # The guarantee of the search on graphs of this size.
    assert most <= Fraction(3, 2) * proved.bound
    plan = _core.plan("all_to_all", fabric, "concurrent_flow:chunks=8", size_bytes=10**9)
    assert plan.verify() == []
    read_back = read(plan.to_text())
    read_back.fabric.wiring = wiring_of(fabric)
    assert verify(read_back) == []
    time_s = plan.simulate(fabric.ranks * 10**9, simulator="bulk_synchronous").time_ps / 1e12
    assert float(proved.bound) * (1 - 1e-9) <= time_s <= 1.125 * float(proved.bound)


@pytest.mark.parametrize("kind", ["scatter", "gather"])
@pytest.mark.parametrize("seed", range(10))
def test_rooted_plans_meet_the_maximum_flow_but_for_rounding(kind: str, seed: int) -> None:
    fabric = _core.Fabric(random_graph(random.Random(seed)))
    least, _ = optimum(kind, fabric)
    assert least is not None
    plan = _core.plan(kind, fabric, "concurrent_flow:chunks=16", size_bytes=10**9)
    assert plan.verify() == []
    time_s = plan.simulate(10**9, simulator="bulk_synchronous").time_ps / 1e12
    assert float(least) * (1 - 1e-9) <= time_s <= 1.25 * float(least)


def test_bound_prints_the_optimum_and_its_multipliers(run: Run) -> None:
    command = ("bound", "all_to_all", "--fabric", "dgx1", "--size", "8GB")
    finished = run(*command)
    assert "optimum: 8/75 s (106.7 ms) for a block of 1 GB" in finished.out
    row = json.loads(run(*command, "--json").out)
    assert row["optimum"] == "8/75"
    (flow,) = [bound for bound in row["bounds"] if bound["name"] == "concurrent_flow"]
    assert flow["time_s"] == pytest.approx(8 / 75)
    assert flow["witness"]["ranks"] == []
    assert len(flow["witness"]["links"]) == len(flow["witness"]["multipliers"])


def test_without_highs_an_inexact_optimum_says_what_would_help(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(linear_program, "optimum", lambda fabric, kind, root: None)
    # A triangle with a slow side: the detour is worth a part of the block that no quarter is.
    spec = "custom:ranks=3,links=0-1@7GB/s+1-2@7GB/s+0-2@3GB/s"
    out = run("bound", "all_to_all", "--fabric", spec).out
    assert "pip install 'highspy" in out or "optimum: at least" not in out


LARGE_FABRICS = {
    "torus:dims=4x4x4,latency=500ns": 64,
    "gpu_servers:model=dgx_a100,boxes=2,latency=500ns,library=none": 16,
    "gpu_servers:model=ndv2,boxes=2,latency=500ns": 16,
    "dragonfly:terminals_per_router=2,routers_per_group=4,global_per_router=2,latency=500ns": 72,
    "fat_tree:down=16x16,up=1x8,latency=500ns": 256,
}
MAX_RATIOS = {"100MB": 1.05, "1MiB": 1.6, "1KiB": 2.0}
"""The time of the plan that `auto` takes, over the bound."""


@pytest.mark.parametrize("size", MAX_RATIOS)
@pytest.mark.parametrize("spec", LARGE_FABRICS)
def test_auto_is_near_the_bound_at_all_sizes(spec: str, size: str) -> None:
    fabric = _core.Fabric(spec)
    assert fabric.ranks == LARGE_FABRICS[spec]
    size_bytes = _core.parse_size(size)
    plan = _core.plan("all_to_all", fabric, "auto", size_bytes=size_bytes)
    bound_ps, _, _ = _core.time_bound("all_to_all", fabric, size_bytes, None)
    assert bound_ps is not None
    assert plan.verify() == []
    assert plan.simulate(size).time_ps <= MAX_RATIOS[size] * bound_ps
