"""Operators of models and their times on devices: `profile`, and fits of devices."""

from __future__ import annotations

import csv
import json
import statistics
from pathlib import Path

import pytest

from opticoll._core import DeviceWork, device_constants
from opticoll.errors import FileError
from opticoll.inputs.layer_times import LayerTime, read
from support import Run

TABLES = Path(__file__).parents[1] / "validation/training"


def errors(times: list[LayerTime]) -> list[float]:
    return [abs(row.work.seconds("h100") * 1e6 / row.time_us - 1) for row in times]


def test_layers_take_the_measured_times_of_an_h100() -> None:
    layers = errors([*read(TABLES / "h100_blocks.csv"), *read(TABLES / "h100_output_layers.csv")])
    assert len(layers) == 2 * (150 + 24)
    assert statistics.fmean(layers) <= 0.04
    assert max(layers) <= 0.25
    assert statistics.fmean(errors(read(TABLES / "h100_products.csv"))) <= 0.1


def test_whole_image_networks_take_the_measured_times_of_an_h100() -> None:
    predicted: dict[str, float] = {}
    measured: dict[str, float] = {}
    for row in read(TABLES / "h100_networks.csv"):
        predicted[row.case] = predicted.get(row.case, 0) + row.work.seconds("h100") * 1e6
        measured[row.case] = measured.get(row.case, 0) + row.time_us
    whole = [abs(predicted[case] / measured[case] - 1) for case in measured]
    assert len(whole) == 15
    assert statistics.fmean(whole) <= 0.06
    assert max(whole) <= 0.16


@pytest.mark.parametrize("tensor", [1, 8])
def test_a_block_of_gpt_has_the_operations_of_megatron(run: Run, tensor: int) -> None:
    # Narayanan et al., arXiv:2104.04473, appendix: 24 b s h^2 (1 + s / 6 h) forward and twice as
    # many backward. A causal mask halves the operations of attention, 4 b s^2 h of these 24. The
    # backward pass of flash attention computes the scores again: 5 products in place of 4.
    s, h, b = 2048, 12288, 4
    options = ["--batch", str(b), "--tensor-parallel", str(tensor), "--json"]
    row = json.loads(run("profile", "gpt3_175b", "--device", "h100", *options).out)
    forward = 24 * b * s * h**2 + 2 * b * s**2 * h
    backward = 2 * 24 * b * s * h**2 + 5 * b * s**2 * h
    blocks = [part for part in row["operators"] if part["layer"].startswith("block.")]
    assert all(part["count"] == 96 for part in blocks)
    assert sum(part["operations"] for part in blocks) == (forward + backward) // tensor


def test_a_product_takes_the_longer_of_computing_and_memory() -> None:
    constants = dict(device_constants("h100"))
    exact = "h100:products=0.5,depth=0.000001,memory=0.5,launch=10"
    m = n = k = 8192
    computing = 2 * m * n * k / (989e12 * 0.5)
    assert DeviceWork.product(m, n, k).seconds(exact) == pytest.approx(computing + 10e-6)
    traffic = 2 * (8 * n + n * k + 8 * k) / (3350e9 * 0.5)
    assert DeviceWork.product(8, n, k).seconds(exact) == pytest.approx(traffic + 10e-6)
    odd = constants["odd_output"]
    unaligned = DeviceWork.product(m, n - 1, k).seconds(exact) - 10e-6
    assert unaligned == pytest.approx(computing * (n - 1) / n / odd, rel=1e-9)


def test_a_fit_finds_the_constants_that_made_the_times(tmp_path: Path, run: Run) -> None:
    pytest.importorskip("scipy")
    truth = "a100:products=0.8,depth=300,attention=0.6,head=50,keys=1000,memory=0.8,launch=7"
    source = list(csv.DictReader((TABLES / "h100_blocks.csv").open()))
    times = [row.work.seconds(truth) for row in read(TABLES / "h100_blocks.csv")]
    for place, row in enumerate(source):
        row["forward_s"], row["backward_s"] = (str(time) for time in times[2 * place :][:2])
    with (path := tmp_path / "blocks.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(source[0]))
        writer.writeheader()
        writer.writerows(source)
    done = run("calibrate", str(path), "--device", "a100", "--json")
    fitted = json.loads(done.out)
    assert fitted["collectives"][-1]["worst"] < 0.01
    values = {cost["name"]: cost for cost in fitted["costs"]}
    assert float(values["products"]["value"]) == pytest.approx(0.8, rel=0.01)
    assert float(values["launch"]["value"]) == pytest.approx(7, rel=0.03)
    assert not values["channels"]["determined"]
    assert values["channels"]["value"] == values["channels"]["record"]


def test_tables_that_cannot_be_read_are_refused_with_their_line(tmp_path: Path) -> None:
    for text, said in (
        ("a,b\n1,2\n", "has no measured times of layers; the columns are one of"),
        ("type,m,n,k,flops_per_s\nbf16,0,1,1,1\n", "line 2: m is `0`, not a whole number above 0"),
        ("type,m,n,k,flops_per_s\nbf16,1,1,1,nan\n", "line 2: flops_per_s is `nan`, not a number"),
        ("type,m,n,k,flops_per_s\nfp64,1,1,1,1\n", "has no row with times of 16-bit numbers"),
    ):
        path = tmp_path / "times.csv"
        path.write_text(text)
        with pytest.raises(FileError, match=said):
            read(path)


def test_an_efficiency_has_no_operators(run: Run) -> None:
    done = run("profile", "resnet50", "--device", "h100:efficiency=0.4")
    assert done.code == 2
    assert "efficiency=0.4: replaces the times of operators" in done.err
