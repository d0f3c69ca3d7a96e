"""Training, also with groups of ranks: parts add up, closed forms, contention, bad input."""

from __future__ import annotations

import csv
import json
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import opticoll
from opticoll import Fabric, Plan, errors
from opticoll.commands.train import Train, TrainingRow, training_text
from opticoll.commands.train.group_prices import groups_of, with_demand
from opticoll.commands.train.groups import divide
from opticoll.inputs import layer_profile
from support import Run, proved
from test_cli import run_json

RESNET50 = 25_557_032
SWITCH = "crossbar:ranks=4,rate=100Gb/s,latency=0s"

FABRICS: dict[str, tuple[str, str | None]] = {
    "one switch": (SWITCH, None),
    "fat tree": ("fat_tree:arity=2,levels=2", "ring"),
    "ring of light": ("wdm_ring:ranks=4,wavelengths=4", "wrht"),
    "ring of light, planned for each size": ("wdm_ring:ranks=4,wavelengths=4", "auto"),
    "ring of light, two collectives": ("wdm_ring:ranks=4,wavelengths=4", "optree+ring"),
    "grid of tunable circuits": ("wss_grid:rows=2,columns=2,control=1us", "halving_doubling"),
    "grid, both planes": ("wss_grid:rows=2,columns=2", "dual_plane_halving_doubling"),
    "torus": ("torus:dims=2x2", "halving_doubling"),
}


def check(row: TrainingRow) -> None:
    """Checks the claims that hold for every iteration."""
    parts = ("compute_s", "exposed_communication_s", "reconfiguration_s", "control_s")
    assert row["verified"]
    assert sum(row[part] for part in parts) == pytest.approx(row["iteration_s"], abs=1e-12)
    buckets = row["timeline"]
    assert sum(bucket["bytes"] for bucket in buckets) == row["gradient_bytes"]
    assert sum(bucket["tensors"] for bucket in buckets) == row["tensors"]
    assert sum(one["count"] for one in row["collectives"]) == len(buckets)
    durations = {one["size_bytes"]: one["time_s"] for one in row["collectives"]}
    free = 0.0
    for bucket in buckets:
        # One stream, in order; each all_reduce takes what one of its size takes.
        start = max(bucket["ready_s"], free)
        assert bucket["start_s"] == pytest.approx(start, abs=1e-12)
        free = bucket["end_s"]
        assert free - start == pytest.approx(durations[bucket["bytes"]], abs=1e-12)
    before = max(row["compute_s"] - row["optimizer_s"], free)
    assert row["iteration_s"] == pytest.approx(before + row["optimizer_s"], abs=1e-12)


@pytest.mark.parametrize("name", FABRICS)
@pytest.mark.parametrize("overlap", [True, False])
def test_an_iteration_adds_up_on(name: str, overlap: bool) -> None:
    fabric, algorithm = FABRICS[name]
    row = opticoll.train(
        "resnet50", fabric, batch=8, algorithm=algorithm, overlap=overlap, throughput="5TFLOP/s"
    )
    check(row)
    assert row["ranks"] == 4
    assert training_text([row]).startswith("iteration ")


@pytest.mark.parametrize(("buckets", "count"), [("tensor", 161), ("all", 1), ("1GB", 1)])
def test_resnet50_is_sent_in_buckets(buckets: str, count: int) -> None:
    row = opticoll.train("resnet50", SWITCH, batch=1, algorithm="ring", buckets=buckets)
    check(row)
    assert len(row["timeline"]) == count


def test_four_nodes_without_overlap_wait_for_12_27_ms() -> None:
    row = opticoll.train(
        "resnet50",
        SWITCH,
        batch=256,
        throughput="1100images/s",
        algorithm="halving_doubling",
        buckets="all",
        overlap=False,
        epochs=20,
    )
    check(row)
    # 2 (N - 1) / N M / B, and a batch over the throughput.
    assert row["exposed_communication_s"] == pytest.approx(1.5 * RESNET50 * 32 / 100e9, abs=1e-8)
    assert row["compute_s"] == pytest.approx(256 / 1100, abs=1e-11)
    # ImageNet: 1 281 167 images over 4 x 256 at a time.
    assert row["iterations"] == 20 * 1252
    assert row["training_s"] == pytest.approx(20 * 1252 * row["iteration_s"])


def test_half_the_bytes_take_half_the_time() -> None:
    times = [
        opticoll.train(
            "vgg16",
            SWITCH,
            batch=1,
            algorithm="halving_doubling",
            overlap=False,
            gradients=gradients,
        )["exposed_communication_s"]
        for gradients in ("float32", "float16")
    ]
    assert times[0] == pytest.approx(2 * times[1], rel=1e-6)


def test_two_collectives_cost_what_each_costs() -> None:
    fabric, size = "wdm_ring:ranks=8,wavelengths=2", 4 * RESNET50
    row = opticoll.train("resnet50", fabric, batch=1, buckets="all", algorithm="ring+optree")
    halves = [
        opticoll.plan("reduce_scatter", fabric, "ring").simulate(size),
        opticoll.plan("all_gather", fabric, "optree").simulate(size // 8),
    ]
    (one,) = row["collectives"]
    assert one["time_s"] == pytest.approx(sum(half.time_ps for half in halves) / 1e12)
    charged = sum(half.reconfigurations for half in halves) * 25e-6
    assert one["reconfiguration_s"] == pytest.approx(charged)


def test_a_rule_by_size_names_the_algorithm_of_each_bucket() -> None:
    fabric = "crossbar:ranks=8,rate=100Gb/s,latency=1us"

    def times(algorithm: str) -> dict[int, float]:
        row = opticoll.train("resnet50", fabric, batch=1, algorithm=algorithm)
        return {one["size_bytes"]: one["time_s"] for one in row["collectives"]}

    doubling, ring = times("recursive_doubling"), times("ring")
    assert min(ring) < 16 << 20 < max(ring)
    expected = {size: doubling[size] if size < 16 << 20 else ring[size] for size in ring}
    assert times("recursive_doubling<16MiB,ring") == expected not in (doubling, ring)


def test_slow_switches_are_set_once_for_a_training() -> None:
    fabric = "wss_grid:rows=2,columns=2,slow_switch=2s"
    row = opticoll.train("resnet50", fabric, batch=256, epochs=1, algorithm="halving_doubling")
    assert row["training_s"] == pytest.approx(2 + 1252 * row["iteration_s"])


def test_a_thousand_nodes_send_161_tensors_within_ten_seconds() -> None:
    begun = time.process_time()
    row = opticoll.train(
        "resnet50",
        "wss_grid:rows=32,columns=32,control=500ns",
        batch=32,
        buckets="tensor",
        algorithm="halving_doubling",
    )
    assert time.process_time() - begun < 10
    check(row)
    # 19 circuits, a request and a grant for each.
    assert all(one["control_s"] == pytest.approx(19e-6) for one in row["collectives"])
    assert all(
        one["reconfiguration_s"] == pytest.approx(19 * 10.5e-9) for one in row["collectives"]
    )


TINY = """\
model: tiny
batch: 4
layers:
  - {name: conv, parameters: [10, 5], forward: 1us, backward: 3us}
  - {name: pool, parameters: [], forward: 2us, backward: 0s}
  - name: dense
    parameters: 1000
    forward: 4us
    backward: 5us
"""

SAME = """\
name,parameters,forward,backward
conv,10+5,1us,3us
pool,,2us,0s
dense,1000,4us,5us
"""


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_profile_gives_times_and_gradients(tmp_path: Path) -> None:
    yaml = layer_profile.read(written(tmp_path, "tiny.yaml", TINY))
    table = layer_profile.read(written(tmp_path, "tiny.csv", SAME))
    assert yaml.layers == table.layers
    assert (yaml.model, yaml.batch, table.model, table.batch) == ("tiny", 4, "tiny", None)
    row = opticoll.train(None, SWITCH, profile=tmp_path / "tiny.yaml", buckets="tensor")
    check(row)
    assert row["compute_s"] == pytest.approx(15e-6)
    assert row["forward_s"] == pytest.approx(7e-6)
    assert (row["parameters"], row["tensors"], row["batch"]) == (1015, 3, 4)
    assert [bucket["bytes"] for bucket in row["timeline"]] == [4000, 20, 40]
    assert row["timeline"][0]["ready_s"] == pytest.approx(12e-6)


def test_a_model_that_learns_nothing_sends_nothing(tmp_path: Path) -> None:
    table = "name,parameters,forward,backward\npool,,2us,1us\n"
    row = opticoll.train(None, SWITCH, profile=written(tmp_path, "pool.csv", table), batch=1)
    check(row)
    assert (row["timeline"], row["collectives"], row["simulator"]) == ([], [], "")
    assert "all_reduce of" not in training_text([row])


BAD_YAML: dict[str, tuple[str, str, str]] = {
    "misspelt field": ("batch: 4", "batches: 4", "line 2, batches: there is no such field"),
    "no batch": ("batch: 4", "batch: none", "line 2, batch"),
    "misspelt column": ("name: conv, param", "name: conv, params: 1, param", "did you mean"),
    "no unit": ("forward: 1us", "forward: 1", "line 4, layers.0.forward"),
    "negative": ("1000", "-1000", "line 7, layers.2.parameters"),
    "fraction": ("1000", "1.5", "line 7, layers.2.parameters"),
    "missing": ("    backward: 5us\n", "", "line 6, layers.2.backward"),
    "no layers": (TINY[TINY.index("layers") :], "layers: []\n", "line 3, layers"),
}


@pytest.mark.parametrize("name", BAD_YAML)
def test_a_profile_is_refused_with_its_place(name: str, tmp_path: Path) -> None:
    old, new, words = BAD_YAML[name]
    assert old in TINY
    path = written(tmp_path, "bad.yaml", TINY.replace(old, new))
    with pytest.raises(errors.ConfigError) as caught:
        layer_profile.read(path)
    assert str(path) in str(caught.value)
    assert words in str(caught.value)


BAD_CSV: dict[str, tuple[str, str, str]] = {
    "other columns": ("name,", "layer,", "line 1"),
    "too few cells": ("conv,10+5,1us,3us", "conv,10+5,1us", "line 2"),
    "no number": ("10+5", "10+x", "line 2, parameters: `x`"),
    "no unit": ("4us", "4", "line 4, forward"),
}


@pytest.mark.parametrize("name", BAD_CSV)
def test_a_table_of_layers_is_refused_with_its_place(name: str, tmp_path: Path) -> None:
    old, new, words = BAD_CSV[name]
    path = written(tmp_path, "bad.csv", SAME.replace(old, new))
    with pytest.raises(errors.ConfigError, match=words):
        layer_profile.read(path)


TRAIN = ["train", "--model", "resnet50", "--fabric", SWITCH, "--batch", "32"]


def test_train_prints_what_its_schema_says(run: Run, tmp_path: Path) -> None:
    table, figure = tmp_path / "buckets.csv", tmp_path / "buckets.png"
    more = ["--algorithm", "ring", "--epochs", "2", "--csv", str(table), "--figure", str(figure)]
    row: Any = run_json(run, "train", *TRAIN, *more)
    check(row)
    with table.open(encoding="utf-8") as file:
        assert len(list(csv.DictReader(file))) == len(row["timeline"])
    assert figure.read_bytes().startswith(b"\x89PNG")
    plain = run(*TRAIN, "--algorithm", "ring")
    assert plain.code == 0
    assert "ResNet50: 25,557,032 parameters in 161 tensors" in plain.out


def test_no_overlap_waits_longer(run: Run) -> None:
    rows = [
        run_json(run, "train", *TRAIN, "--algorithm", "ring", *more)
        for more in ([], ["--no-overlap"])
    ]
    assert rows[0]["iteration_s"] < rows[1]["iteration_s"]
    assert rows[0]["communication_s"] == rows[1]["communication_s"]


def test_models_and_devices_are_listed(run: Run) -> None:
    for kind, name in (("models", "gpt3_175b"), ("devices", "a100")):
        listed = run_json(run, "list", "list", kind)
        assert name in {record["name"] for record in listed}


RATE = 50e9
"""Bytes per second of the fabrics here: 400 Gb/s."""

MODEL = "gpt:layers=4,width=1024,heads=8,context=512,vocabulary=1024"
EXPERTS = "moe:layers=2,width=1024,experts=8,top_k=2,heads=8,sequence=512,vocabulary=1024"
PARTS = ("compute_s", "tensor_s", "expert_s", "sending_s", "bubble_s", "replicas_s")


def crossbar(ranks: int) -> str:
    return f"crossbar:ranks={ranks},rate=400Gb/s,latency=0s"


def check_groups(row: TrainingRow) -> Any:
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
    return row, check_groups(row)


@pytest.mark.parametrize(("stages", "micro_batches"), [(2, 4), (4, 4), (4, 16)])
def test_a_pipeline_idles_as_its_bubble_says(stages: int, micro_batches: int) -> None:
    # Blocks are long, the output matrix is short, and activations are nothing beside them.
    model = "gpt:layers=4,width=4096,heads=8,context=64,vocabulary=1"
    fast = f"crossbar:ranks={stages},rate=100Tb/s,latency=0s"
    options = {"pipeline_parallel": stages, "micro_batches": micro_batches, "device": None}
    row, groups = timed(stages, model, fabric=fast, batch=16, throughput="100TFLOP/s", **options)
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
    check_groups(row)
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
    "lightpath_grid:ranks=8,ports=2",
]


@pytest.mark.parametrize("fabric", LIGHT)
def test_light_without_single_messages_times_groups_of_a_kind_together(fabric: str) -> None:
    options: dict[str, Any] = {"tensor_parallel": 4, "sharded": 1, "collectives": None}
    _, groups = timed(8, fabric=fabric, **options)
    assert groups["contention"] == "united"
    assert fabric.partition(":")[0] in groups["alone"]
    assert all(one["time_s"] >= one["alone_s"] > 0 for one in groups["collectives"])
    training = divide(Train(model=MODEL, tensor_parallel=4, sharded=1), MODEL, 4, 8, 4)
    whole = Fabric(fabric)
    for one in training.made_of():
        part = whole.part(groups_of(training, one)[0])
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


def test_practices_change_what_is_computed_sent_and_stored() -> None:
    model = "gpt:layers=4,width=1024,heads=8,sequence=512,context=512,vocabulary=1024"
    options: dict[str, Any] = {"tensor_parallel": 2, "pipeline_parallel": 2, "micro_batches": 4}
    plain, _ = timed(4, model, **options)
    full, groups = timed(4, model, recompute="full", **options)
    assert groups["recompute"] == "full"
    assert full["compute_s"] > plain["compute_s"]
    assert full["memory"]["activations_bytes"] < plain["memory"]["activations_bytes"]
    stored, _ = timed(4, model, attention="scores", **options)
    selective, _ = timed(4, model, attention="scores", recompute="selective", **options)
    # 5 a s^2 b bytes of scores in each of 2 blocks, divided by 2 ranks, of 2 micro-batches.
    scores = 5 * 8 * 512**2 * 1 * 2 // 2 * 2
    differ = stored["memory"]["activations_bytes"] - selective["memory"]["activations_bytes"]
    assert differ == scores
    wide, _ = timed(4, model, main_gradients="float32", **options)
    assert wide["memory"]["gradients_bytes"] == 2 * plain["memory"]["gradients_bytes"]
    _, sequence = timed(4, model, sequence_parallel=True, chunks=2, **options)
    sent = {row["collective"]: row for row in sequence["collectives"] if row["group"] == "tensor"}
    assert set(sent) == {"all_gather", "reduce_scatter"}
    assert sequence["bubble"] == (2 - 1) / (2 * 4 + 2 - 1)
    with pytest.raises(errors.TrainingError, match="chunks x pipeline-parallel 8 leaves a chunk"):
        timed(4, model, chunks=4, **options)
