"""Training on a circuit switch: circuits for each collective, and circuits that stay up."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import opticoll
from opticoll.errors import UsageError

GPT = "gpt:layers=2,width=1024,heads=8,context=512,vocabulary=1024"
EXPERTS = "moe:layers=2,width=1024,experts=4,top_k=1,heads=8,sequence=512,vocabulary=1024"
RATE = 400e9 / 8
SETUP = 20e-6


def switch(ranks: int, ports: int = 1, setup: str = "20us", more: str = "") -> str:
    """Returns a circuit switch."""
    return f"circuit_switch:ranks={ranks},ports={ports},rate=400Gb/s,reconfiguration={setup}{more}"


def groups_on(fabric: str, model: str = GPT, **options: Any) -> tuple[float, Any]:
    """Returns the time of an iteration, and its groups."""
    chosen: dict[str, Any] = {"batch": 4, "device": "a100"} | options
    row = opticoll.train(model, fabric, **chosen)
    assert row.verified
    assert row.groups is not None
    return row.iteration_s, row.groups


def test_circuits_are_set_up_once_between_tensor_groups_and_replicas() -> None:
    # All exchanges of tensor groups precede those of replicas, and each needs one configuration.
    options: dict[str, Any] = {"tensor_parallel": 2, "overlap": False}
    without, groups = groups_on(switch(4, setup="0s"), **options)
    assert groups.setups == 0
    time, groups = groups_on(switch(4), **options)
    assert groups.setups == 1
    assert time == pytest.approx(without + SETUP, abs=1e-9)
    for more, policy in (("", "free"), (",first_configuration=charged", None)):
        _, groups = groups_on(
            switch(4, more=more), **options, **({"policy": policy} if policy else {})
        )
        # With `charged`, the time of each collective has the setup of its first circuits.
        assert groups.setups == 0
        own = {one.reconfiguration_s for one in groups.collectives}
        assert own == {0.0 if policy else SETUP}


def test_stages_and_tensor_groups_take_turns_with_the_ports() -> None:
    # On the way: to the second stage, tensor groups there, back to the first stage, tensor groups.
    options: dict[str, Any] = {
        "tensor_parallel": 2,
        "pipeline_parallel": 2,
        "micro_batches": 1,
    }
    without, _ = groups_on(switch(4, setup="0s"), **options)
    time, groups = groups_on(switch(4), **options)
    assert groups.setups == 2
    assert time == pytest.approx(without + 4 * SETUP, abs=1e-9)


def test_two_stages_need_no_setup() -> None:
    # Each rank sends to the other only.
    options: dict[str, Any] = {"pipeline_parallel": 2, "micro_batches": 8, "batch": 8}
    _, groups = groups_on(switch(2), **options)
    assert groups.setups == 0


@pytest.mark.parametrize(("stages", "batches"), [(3, 8), (4, 8)])
def test_a_middle_stage_changes_its_output_as_one_forward_one_backward_asks(
    stages: int, batches: int
) -> None:
    options: dict[str, Any] = {
        "pipeline_parallel": stages,
        "micro_batches": batches,
        "batch": batches,
    }
    model = f"gpt:layers={stages},width=1024,heads=8,context=512,vocabulary=1024"
    setup_s = 10e-3
    time, groups = groups_on(switch(stages, setup="10ms"), model, **options)

    def changes(stage: int) -> int:
        """Returns how often the output of a stage changes between its two neighbours."""
        warm = min(stages - 1 - stage, batches)
        order = ["forward"] * warm
        for _ in range(batches - warm):
            order += ["forward", "backward"]
        order += ["backward"] * warm
        return sum(before != after for before, after in pairwise(order))

    most = max(changes(stage) for stage in range(1, stages - 1))
    assert groups.setups >= most
    assert time >= most * setup_s


@pytest.mark.parametrize("fabric", [switch(4), "passive_star:ranks=4,wavelengths=4"])
def test_a_rank_carries_out_one_collective_at_a_time(fabric: str) -> None:
    options: dict[str, Any] = {"tensor_parallel": 2, "device": None, "throughput": "1000PFLOP/s"}
    time, groups = groups_on(fabric, **options)
    busy = sum(one.count * one.time_s for one in groups.collectives) + groups.setups * SETUP
    assert busy <= time <= busy * 1.001
    alone, _ = groups_on(fabric, contention="none", **options)
    assert alone < busy


def test_groups_within_servers_have_ports_of_their_own() -> None:
    servers = "dgx_h100:boxes=2,outside=circuit_switch/rate=400Gb/s/reconfiguration=20us"
    options: dict[str, Any] = {"tensor_parallel": 8, "device": None, "throughput": "1000PFLOP/s"}
    time, groups = groups_on(servers, **options)
    times = {"tensor": 0.0, "data": 0.0}
    for one in groups.collectives:
        times[one.group] += one.count * one.time_s
    assert max(times.values()) <= time < sum(times.values())
    assert groups.setups == 0
    with pytest.raises(UsageError, match="not supported on servers"):
        groups_on(servers, reconfigure="never", **options)


def test_kinds_of_groups_hold_ports_for_the_whole_iteration() -> None:
    options: dict[str, Any] = {"tensor_parallel": 2, "pipeline_parallel": 2, "reconfigure": "never"}
    _, groups = groups_on(switch(8, ports=3), **options)
    assert groups.setups == 0
    assert {(*share.kinds, share.ports) for share in groups.ports} == {
        ("tensor", 1),
        ("pipeline", 1),
        ("data", 1),
    }
    for one in groups.collectives:
        # Two ranks exchange their vectors or activations.
        assert one.time_s == pytest.approx(one.size_bytes / RATE, rel=1e-3)
        assert one.reconfiguration_s == 0
    with pytest.raises(UsageError, match=r"a port for each kind .* and has 2; take ports=3"):
        groups_on(switch(8, ports=2), **options)


def test_the_kind_that_sends_most_gets_the_further_port() -> None:
    options: dict[str, Any] = {"tensor_parallel": 4, "reconfigure": "never", "micro_batches": 4}
    _, groups = groups_on(switch(8, ports=3), batch=64, **options)
    assert {(*share.kinds, share.ports) for share in groups.ports} == {("tensor", 2), ("data", 1)}
    for one in groups.collectives:
        # A ring in both directions: each circuit carries 3/4 of the vector, there and back.
        volume = {"tensor": 3 / 4, "data": 1}[one.group] * one.size_bytes
        assert one.time_s == pytest.approx(volume / RATE, rel=1e-3)


def test_exchanges_of_experts_have_own_or_common_or_lasting_circuits(tmp_path: Path) -> None:
    # In the first layer rank s sends all tokens to rank s + 1, in the second to rank s + 2.
    path = tmp_path / "loads.csv"
    table = [
        [layer, source, *(int((source + layer + 1) % 4 == expert) for expert in range(4))]
        for layer in range(2)
        for source in range(4)
    ]
    rows = ["layer,source,a,b,c,d", *(",".join(map(str, row)) for row in table)]
    path.write_text("\n".join(rows))
    times = {}
    for reconfigure in ("collective", "iteration", "never"):
        options: dict[str, Any] = {
            "expert_parallel": 4,
            "expert_skew": str(path),
            "reconfigure": reconfigure,
        }
        _, groups = groups_on(switch(4), EXPERTS, **options)
        assert groups.reconfigure == reconfigure
        exchanges = [one for one in groups.collectives if one.group == "expert"]
        assert len(exchanges) == 4
        times[reconfigure] = [one.time_s for one in exchanges]
        changes = {"collective": 0, "iteration": 2, "never": 0}[reconfigure]
        for one in exchanges:
            assert one.reconfiguration_s == pytest.approx(changes * SETUP)
    # One circuit for each rank is enough for a layer, and the first circuits are there.
    once = 4 * 512 * 2048 / RATE
    assert times["collective"] == pytest.approx([once] * 4, rel=1e-6)
    # There and back these are shifts by 1, 2 and 3: three configurations, of which two are changes.
    assert times["iteration"] == pytest.approx([once + 2 * SETUP] * 4, rel=1e-4)
    # On a ring, a shift of s places loads each circuit s times: 1 and 3 there and back, 2 and 2.
    assert sum(times["never"]) == pytest.approx((1 + 3 + 2 + 2) * once, rel=1e-3)
