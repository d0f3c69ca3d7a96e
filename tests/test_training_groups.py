"""Training with groups of ranks: closed forms, contention, experts, memory, the command line."""

from __future__ import annotations

import csv
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import opticoll
from opticoll import Fabric, Plan
from opticoll.commands.train import Train, TrainingRow, training_text
from opticoll.commands.train.group_prices import (
    members_of,
    with_demand,
)
from opticoll.commands.train.groups import divide
from support import Run, proved
from test_cli import run_json

RATE = 50e9
"""Bytes per second of the fabrics here: 400 Gb/s."""

MODEL = "gpt:layers=4,width=1024,heads=8,context=512,vocabulary=1024"
EXPERTS = "moe:layers=2,width=1024,experts=8,top_k=2,heads=8,sequence=512,vocabulary=1024"
PARTS = ("compute_s", "tensor_s", "expert_s", "sending_s", "bubble_s", "replicas_s")


def crossbar(ranks: int) -> str:
    return f"crossbar:ranks={ranks},rate=400Gb/s,latency=0s"


def check(row: TrainingRow) -> Any:
    """Checks the claims that hold for every iteration with groups."""
    assert row["verified"]
    groups = row["groups"]
    for part in groups["parts"]:
        assert sum(part[name] for name in PARTS) == pytest.approx(row["iteration_s"], rel=1e-9)
    assert groups["tensor"] * groups["pipeline"] * groups["data"] == row["ranks"]
    assert groups["data"] % groups["expert"] == 0
    assert training_text([row]).startswith("iteration ")
    return groups


def timed(ranks: int, model: str = MODEL, **options: Any) -> tuple[TrainingRow, Any]:
    ring = {"all_reduce": "ring", "reduce_scatter": "ring", "all_gather": "ring"}
    chosen: dict[str, Any] = {"batch": 4, "device": "a100", "collectives": ring} | options
    row = opticoll.train(model, chosen.pop("fabric", crossbar(ranks)), **chosen)
    return row, check(row)


@pytest.mark.parametrize(("stages", "micro_batches"), [(2, 4), (4, 4), (4, 16)])
def test_a_pipeline_idles_as_its_bubble_says(stages: int, micro_batches: int) -> None:
    # Blocks are long, the output matrix is short, and activations are nothing beside them.
    model = "gpt:layers=4,width=4096,heads=8,context=64,vocabulary=1"
    fast = f"crossbar:ranks={stages},rate=100Tb/s,latency=0s"
    options = {"pipeline_parallel": stages, "micro_batches": micro_batches}
    row, groups = timed(stages, model, fabric=fast, batch=16, **options)
    *_, mean = groups["parts"]
    assert groups["bubble"] == (stages - 1) / (micro_batches + stages - 1)
    waits = mean["bubble_s"] + mean["sending_s"]
    assert waits / row["iteration_s"] == pytest.approx(groups["bubble"], rel=0.01)


@pytest.mark.parametrize("sharded", [0, 1, 2, 3])
def test_replicas_move_what_zero_says(sharded: int) -> None:
    row, groups = timed(4, sharded=sharded, data_parallel=4, micro_batches=2)
    *_, mean = groups["parts"]
    moved = 3 / 4 * row["parameters"] / RATE
    # Gradients of 4 bytes, parameters of 2; two micro-batches where gradients or parameters are
    # sharded.
    expected = {0: 2 * 4, 1: 4 + 2, 2: 2 * 4 + 2, 3: 2 * (4 + 2 + 2)}[sharded] * moved
    both = mean["replicas_s"] + mean["replicas_hidden_s"]
    assert both == pytest.approx(expected, rel=1e-3)


def test_without_groups_and_with_one_group_of_all_ranks_is_the_same() -> None:
    options: dict[str, Any] = {"batch": 4, "device": "a100", "algorithm": "ring"}
    plain = opticoll.train(MODEL, crossbar(4), **options)
    row = opticoll.train(MODEL, crossbar(4), data_parallel=4, contention="none", **options)
    check(row)
    # Options that state the defaults change nothing.
    stated: dict[str, Any] = {"tensor_parallel": 1, "data_parallel": 4, "sharded": 0}
    assert opticoll.train(MODEL, crossbar(4), **stated, **options)["timeline"] == plain["timeline"]
    assert plain["timeline"]
    assert row["iteration_s"] == pytest.approx(plain["iteration_s"], rel=1e-6)
    assert row["compute_s"] == pytest.approx(plain["compute_s"], rel=1e-9)
    assert row["memory"] == plain["memory"]


DIVISIONS: list[dict[str, int]] = [
    {"tensor_parallel": 8},
    {"pipeline_parallel": 4, "tensor_parallel": 2},
    {"tensor_parallel": 2, "sharded": 1},
    {"tensor_parallel": 4, "pipeline_parallel": 2},
]


@pytest.mark.parametrize("division", DIVISIONS)
def test_groups_apart_take_as_long_as_on_a_crossbar(division: dict[str, int]) -> None:
    # One micro-batch, gradients behind it: no two groups send at a time.
    options: dict[str, Any] = {"overlap": False, "micro_batches": 1, **division}
    together, _ = timed(8, contention="simulated", **options)
    apart, groups = timed(8, contention="none", **options)
    assert groups["alone"] == "as asked for"
    assert apart["iteration_s"] == pytest.approx(together["iteration_s"], rel=2e-3)


def test_groups_meet_on_shared_links() -> None:
    tree = "fat_tree:down=4x4,up=1x1,rate=400Gb/s,latency=0s"
    times = {
        contention: timed(16, fabric=tree, tensor_parallel=4, contention=contention)[0]
        for contention in ("simulated", "none")
    }
    # Four data-parallel groups share each link up, and each of them alone has it for itself.
    waits = [times[name]["groups"]["parts"][-1]["replicas_s"] for name in ("simulated", "none")]
    assert waits[0] > 2 * waits[1]


LIGHT = [
    "circuit_switch:ranks=8",
    "passive_star:ranks=8,wavelengths=4",
    "wss_grid:rows=2,columns=4,control=1us",
    "light_path_grid:ranks=8,ports=2",
]


@pytest.mark.parametrize("fabric", LIGHT)
def test_light_without_single_messages_times_groups_alone(fabric: str) -> None:
    options: dict[str, Any] = {"tensor_parallel": 4, "sharded": 1, "collectives": None}
    _, groups = timed(8, fabric=fabric, **options)
    assert groups["contention"] == "none"
    assert fabric.partition(":")[0] in groups["alone"]
    assert all(one["time_s"] > 0 for one in groups["collectives"])
    training = divide(Train(model=MODEL, tensor_parallel=4, sharded=1), MODEL, 4, 8, 4)
    whole = Fabric(fabric)
    for one in training.made_of():
        part = whole.part(members_of(training, one))
        assert part.ranks == one["ranks"]
        plan = opticoll.plan(one["collective"], part, size=one["size_bytes"])
        proved(plan)


def test_a_ring_of_light_carries_all_groups() -> None:
    ring = "wdm_ring:ranks=8,wavelengths=8"
    _, groups = timed(8, fabric=ring, tensor_parallel=2, pipeline_parallel=2, micro_batches=2)
    assert (groups["contention"], groups["alone"]) == ("simulated", None)


def test_more_skew_takes_longer_and_a_capacity_less() -> None:
    times = [
        timed(8, EXPERTS, expert_parallel=8, collectives=None, expert_skew=skew)[0]
        for skew in (None, "zipf:exponent=0.5,seed=3", "zipf:exponent=1.5,seed=3")
    ]
    assert all(one["iteration_s"] < other["iteration_s"] for one, other in pairwise(times))
    skew = {"expert_skew": "zipf:exponent=1.5,seed=3", "capacity_factor": "1.25"}
    limited, groups = timed(8, EXPERTS, expert_parallel=8, collectives=None, **skew)
    assert limited["iteration_s"] < times[-1]["iteration_s"]
    assert 0.1 < groups["dropped"] < 0.9


def test_a_table_names_the_weights_of_each_source(tmp_path: Path) -> None:
    path = tmp_path / "loads.csv"
    model = "moe:layers=1,width=1024,experts=2,top_k=1,heads=8,sequence=512,vocabulary=1024"
    path.write_text("layer,source,expert0,expert1\n0,0,3,1\n0,1,1,1\n")
    _, groups = timed(2, model, expert_parallel=2, expert_skew=str(path), collectives=None)
    exchanges = [one for one in groups["collectives"] if one["group"] == "expert"]
    # All tokens travel there, as many travel back.
    assert [one["size_bytes"] for one in exchanges] == [4 * 512 * 1024 * 2] * 2
    training = divide(Train(model=model, expert_parallel=2, expert_skew=str(path)), model, 4, 2, 4)
    tokens = 4 * 512
    bytes_each = [[2048 * tokens * 3 // 4, 2048 * tokens // 4], [1024 * tokens, 1024 * tokens]]
    assert training.demand(0, False) == bytes_each
    assert training.demand(0, True) == [list(column) for column in zip(*bytes_each, strict=True)]


SWITCH = "circuit_switch:ranks=4,ports=1,rate=400Gb/s,reconfiguration=10us"


def test_a_switch_is_set_for_each_layer_once_or_never(tmp_path: Path) -> None:
    # In the first layer rank s sends all tokens to rank s + 1, in the second to rank s + 2.
    path = tmp_path / "loads.csv"
    model = "moe:layers=2,width=1024,experts=4,top_k=1,heads=8,sequence=512,vocabulary=1024"
    table = [
        [layer, source, *(int((source + layer + 1) % 4 == expert) for expert in range(4))]
        for layer in range(2)
        for source in range(4)
    ]
    rows = ["layer,source,a,b,c,d", *(",".join(map(str, row)) for row in table)]
    path.write_text("\n".join(rows))
    options = {"expert_parallel": 4, "expert_skew": str(path), "collectives": None}
    times = {}
    for reconfigure in ("layer", "iteration", "never"):
        _, groups = timed(4, model, fabric=SWITCH, reconfigure=reconfigure, **options)
        assert groups["reconfigure"] == reconfigure
        exchanges = [one for one in groups["collectives"] if one["group"] == "expert"]
        assert len(exchanges) == 4
        times[reconfigure] = [one["time_s"] for one in exchanges]
        changes = {"layer": 0, "iteration": 2, "never": 0}[reconfigure]
        for one in exchanges:
            assert one["reconfiguration_s"] == pytest.approx(changes * 10e-6)
    # One circuit for each rank is enough for a layer, and the first setting is there.
    once = 4 * 512 * 2048 / RATE
    assert times["layer"] == pytest.approx([once] * 4, rel=1e-6)
    # There and back these are shifts by 1, 2 and 3: three settings, of which two are changes.
    assert times["iteration"] == pytest.approx([once + 2 * 10e-6] * 4, rel=1e-4)
    # On a cycle, a shift of s places loads each circuit s times: 1 and 3 there and back, 2 and 2.
    assert sum(times["never"]) >= (1 + 3 + 2 + 2) * once * (1 - 1e-6)


def test_plans_for_a_sum_are_proved_with_the_demand_of_a_layer() -> None:
    total, own = [[0, 6, 3], [2, 0, 0], [4, 4, 0]], [[0, 5, 0], [1, 0, 0], [0, 7, 0]]
    whole = opticoll.plan("all_to_all", "circuit_switch:ranks=3", "decomposition", demand=total)
    plan = Plan.from_text(with_demand(whole.to_text(), own))
    proved(plan)
    # A pair of the sum that a layer does not need has one byte.
    assert plan.collective.demand is not None
    assert plan.collective.demand.amounts == [[0, 5, 1], [1, 0, 0], [1, 7, 0]]
    assert plan.collective.demand.largest == 8


BAD_TABLES: dict[str, tuple[str, str]] = {
    "no column of layers": ("expert0,expert1\n1,2\n", "line 1"),
    "no number": ("layer,expert0,expert1\n0,1,x\n", "line 2, expert1: `x`"),
    "too few cells": ("layer,expert0,expert1\n0,1\n", "line 2: 2 cells"),
    "twice": ("layer,expert0,expert1\n0,1,1\n0,1,1\n", "line 3"),
    "no first layer": ("layer,expert0,expert1\n1,1,1\n", "no layer 0"),
    "too few layers": ("layer,expert0\n0,1\n", "1 layers"),
    "empty": ("", "line 1"),
}


@pytest.mark.parametrize("name", BAD_TABLES)
def test_a_bad_table_is_refused_with_its_place(name: str, run: Run, tmp_path: Path) -> None:
    text, words = BAD_TABLES[name]
    path = tmp_path / "loads.csv"
    path.write_text(text)
    options = ["--fabric", crossbar(8), "--model", EXPERTS, "--batch", "1"]
    arguments = ["train", *options, "--expert-parallel", "8", "--expert-skew", str(path)]
    finished = run(*arguments)
    assert finished.code == 2
    assert words in finished.err


def test_a_proposed_division_fits(run: Run) -> None:
    asked = ["train", "--model", "gpt3_6_7b", "--batch", "4", "--device", "a100"]
    asked += ["--fabric", crossbar(8), "--buckets", "all"]
    finished = run(*asked, "--contention", "none")
    assert finished.code == 2
    _, proposed = finished.err.split("; --")
    options = f"--{proposed.partition(' takes ')[0]}".split()
    row = run_json(run, "train", *asked, *options)
    assert row["memory"]["fits"] is True
    said = proposed.partition(" takes ")[2].partition(" GB")[0]
    assert row["memory"]["total_bytes"] / 1e9 == pytest.approx(float(said), abs=0.051)


def test_a_figure_and_a_table_have_all_stages(run: Run, tmp_path: Path) -> None:
    table, figure = tmp_path / "stages.csv", tmp_path / "stages.svg"
    asked = ["train", "--model", MODEL, "--batch", "4", "--fabric", crossbar(4)]
    more = ["--pipeline-parallel", "4", "--csv", str(table), "--figure", str(figure)]
    row = run_json(run, "train", *asked, *more)
    with table.open(encoding="utf-8") as file:
        stages = list(csv.DictReader(file))
    assert [stage["stage"] for stage in stages] == ["0", "1", "2", "3", ""]
    assert float(stages[-1]["bubble_s"]) == row["groups"]["parts"][-1]["bubble_s"]
    assert "bubble of the pipeline" in figure.read_text(encoding="utf-8")


def test_a_study_sweeps_tensor_parallelism(run: Run, tmp_path: Path) -> None:
    study, store = tmp_path / "study.yaml", tmp_path / "points.sqlite"
    study.write_text(
        "study: division\ncommand: train\n"
        f"options: {{model: '{MODEL}', batch: 4, fabric: '{crossbar(8)}'}}\n"
        "grid:\n  tensor_parallel: [1, 2, 4, 8]\n"
    )
    assert run("sweep", study, "--store", store).code == 0
    rows = json.loads(run("results", store, "--json").out)
    assert {row["tensor_parallel"] for row in rows} == {1, 2, 4, 8}
