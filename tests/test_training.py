"""Training: parts that add up, plans of all fabrics, profiles, the command line, bad input."""

from __future__ import annotations

import csv
import time
from pathlib import Path
from typing import Any

import pytest

import opticoll
from opticoll import errors
from opticoll.commands.train import TrainingRow, training_text
from opticoll.inputs import layer_profile
from support import Run
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
    assert row["iteration_s"] == pytest.approx(max(row["compute_s"], free), abs=1e-12)


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
