"""Servers of GPUs joined by other fabrics: their parts have the plans of these fabrics."""

import re

import pytest

import opticoll
from opticoll import errors
from support import Run, answer


def test_the_group_of_a_rail_has_the_plan_of_the_outside(run: Run) -> None:
    outside = "circuit_switch:ranks=4,ports=2,rate=400Gb/s,reconfiguration=10us"
    servers = f"dgx_h100:boxes=4,outside={re.sub('[:,]', '/', outside)}"
    part = opticoll.Fabric(servers).part([1, 9, 17, 25])
    assert part == opticoll.Fabric(outside)
    model = ("--model", "gpt:layers=2,width=1024", "--batch", "1", "--tensor-parallel", "8")
    row = answer(run, "train", *model, "--device", "h100", "--fabric", servers)
    priced = {one["group"]: one for one in row["groups"]["collectives"]}
    assert (priced["tensor"]["ranks"], priced["data"]["ranks"]) == (8, 4)
    size = f"{priced['data']['size_bytes']}B"
    alone = answer(run, "plan", "all_reduce", "--fabric", outside, "--size", size)
    assert priced["data"]["time_s"] == alone["time_s"]
    server = answer(
        *(run, "plan", "all_reduce", "--fabric", "dgx_h100:in_network=none,library=none"),
        *("--size", f"{priced['tensor']['size_bytes']}B"),
    )
    assert priced["tensor"]["alone_s"] == server["time_s"]
    # Packets of all servers together are rounded anew: by at most 1 ps in each step.
    rounding = round((priced["tensor"]["time_s"] - server["time_s"]) * 1e12)
    assert 0 <= rounding <= server["steps"]


def test_a_ring_among_some_servers_leaves_each_of_them_at_every_rank() -> None:
    def time(ranks: str, boxes: int, algorithm: str) -> int:
        fabric = f"dgx_a100:boxes={boxes},library=none,outside=crossbar/rate=12.5GB/s{ranks}"
        plan = opticoll.plan("all_reduce", fabric, algorithm, size="64MB")
        return int(plan.simulate().time_ps)

    ring = "ring:channels=all"
    for ranks in ("0-15", "8-15+24-31"):
        assert time(f",members={ranks}", 4, ring) == time("", 2, ring)
    # Two ranks of each server: two channels, each with half of the data.
    some = ",members=0-1+8-9+16-17+24-25"
    assert time(some, 4, ring) == time(some, 4, "ring:channels=2") < time(some, 4, "ring")
    with pytest.raises(errors.AlgorithmError, match="at most 2"):
        time(some, 4, "ring:channels=3")
    with pytest.raises(errors.AlgorithmError, match="no groups of ranks"):
        time(",members=0-2+8", 4, "ring:channels=2")
