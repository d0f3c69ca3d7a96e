"""Arguments of training: the default device, checks before planning, and hints of errors."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

import opticoll
from opticoll import Fabric
from opticoll.commands.train import training_text
from opticoll.errors import FabricError
from opticoll.inputs.device import device_on
from opticoll.names import known_names
from opticoll.outputs.records import record_rows
from support import Run

SWITCH = "crossbar:ranks=4,rate=100Gb/s,latency=1us"
MODEL = "gpt:layers=2,width=256,heads=4,sequence=128"


@pytest.mark.parametrize(
    ("fabric", "device"),
    [
        ("dgx_a100", "a100"),
        ("dgx_h100:boxes=2", "h100"),
        ("dgx_b200", "b200"),
        ("nvl72", "b200"),
        ("dgx2", "v100"),
        ("dgx_a100:boxes=8,outside=wdm_ring/wavelengths=8/rate=25GB/s", "a100"),
        ("dgx_a100:members=0-3", "a100"),
        ("mi250", None),
        (SWITCH, None),
        ("wdm_ring:ranks=4,wavelengths=2", None),
    ],
)
def test_the_servers_of_a_fabric_tell_the_device(fabric: str, device: str | None) -> None:
    assert Fabric(fabric).accelerator == device
    assert device_on(Fabric(fabric), None) == (device or "h100")
    assert device_on(Fabric(fabric), "v100") == "v100"


def test_the_accelerator_of_every_preset_is_a_listed_device() -> None:
    stated = set()
    for preset in record_rows("presets"):
        with suppress(FabricError):  # a preset that needs another option is no server
            stated.add(Fabric(preset.name).accelerator)
    assert stated - {None} <= set(known_names("devices"))
    assert {"a100", "h100", "b200", "v100"} <= stated


def test_the_default_device_is_stated_and_equals_the_same_device_when_given() -> None:
    fabrics = ["dgx_a100", "crossbar:ranks=8"]
    default = [opticoll.train(MODEL, fabric, batch=1, algorithm="ring") for fabric in fabrics]
    assert [row.compute for row in default] == ["a100", "h100"]
    given = [
        opticoll.train(MODEL, fabric, batch=1, algorithm="ring", device=row.compute)
        for fabric, row in zip(fabrics, default, strict=True)
    ]
    assert [row.iteration_s for row in given] == [row.iteration_s for row in default]
    # A comparison names devices that differ.
    heading = training_text(default).split("\n\n")[-1].splitlines()[0]
    assert heading.split()[-1] == "device"
    assert "device" not in training_text([default[0], default[0]]).split("\n\n")[-1]


def test_experts_and_profile_take_the_same_default(run: Run) -> None:
    model = "moe:layers=1,width=256,experts=8,top_k=2,heads=4,sequence=128"
    assert "per rank, a100" in run("experts", model, "--fabric", "dgx_a100").out
    assert "device   h100" in run("profile", MODEL).out


def test_memory_is_checked_before_planning(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    planned = []

    def refuse(*arguments: object, **named: object) -> None:
        planned.append(arguments)
        raise opticoll.errors.UsageError("planned")

    monkeypatch.setattr(opticoll, "plan", refuse)
    common = ("train", "--model", "llama3_405b", "--batch", "1", "--device", "h100")
    # The second fabric has too little memory, too. Nothing is planned for the first one.
    fabrics = ("--fabric", SWITCH, "--fabric", "crossbar:ranks=8,latency=1us")
    finished = run(*common, *fabrics, "--tensor-parallel", "4")
    assert "does not fit the device" in finished.err
    assert not planned
    finished = run(*common, "--fabric", SWITCH)
    warning, error, *_ = finished.err.splitlines()
    assert warning.startswith("opticoll: warning: ")
    assert "does not fit the device" in warning
    assert error == "opticoll: error: planned"
    # Values of options come first.
    for option, value in (
        ("--rank-power", "3"),
        ("--grid-intensity", "3"),
        ("--algorithm", "ringg"),
        ("--epochs", "2"),
        ("--buckets", "some"),
    ):
        planned.clear()
        finished = run(*common, "--fabric", SWITCH, option, value)
        assert finished.err.startswith("opticoll: error: "), option
        assert not planned


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (f"train --model resnet5 --batch 1 --fabric {SWITCH}", "see `opticoll list models`"),
        (
            f"train --model resnet50 --batch 1 --device h10 --fabric {SWITCH}",
            "see `opticoll list devices`",
        ),
        ("profile resnet50 --device h100:colour=1", "see `opticoll list h100`"),
        ("profile gpt:layers=0,width=64", "see `opticoll list gpt`"),
        (
            f"experts mixtral_8x7b --fabric {SWITCH} --expert-skew zip",
            "see `opticoll list skews`",
        ),
        (f"experts mixtral_8x7b --fabric {SWITCH} --replicate-experts 100", None),
        (f"train --model gpt3_6_7b --batch 1 --fabric {SWITCH} --tensor-parallel 3", None),
        (f"train --model resnet50 --batch 1 --fabric {SWITCH} --throughput 3", None),
        (f"train --model resnet50 --batch 1 --fabric {SWITCH} --buckets some", None),
        ("profile gpt3_175b --tensor-parallel 7", None),
    ],
)
def test_hints_name_the_list_of_the_wrong_name(run: Run, words: str, hint: str | None) -> None:
    _, *hints = run(*words.split()).err.splitlines()
    assert hints == ([] if hint is None else [f"hint: {hint}"])


def test_a_device_whose_8_bit_products_no_model_has_is_warned_of(run: Run) -> None:
    warning = "changes no product: all products of ResNet50 are of 16-bit floats"
    narrow = ("--device", "h100:precision=fp8")
    assert warning in run("profile", "resnet50", *narrow).err
    assert not run("profile", MODEL, *narrow).err
    row = opticoll.train("resnet50", SWITCH, batch=1, device=narrow[1], algorithm="ring")
    assert [text for text in row.warnings if warning in text]
    plain = opticoll.train("resnet50", SWITCH, batch=1, device="h100", algorithm="ring")
    # Only the step of the optimizer differs: it also writes the weights in 8 bits.
    assert row.forward_s == plain.forward_s


def test_names_of_algorithms_are_checked_for_collectives_that_do_not_occur(
    run: Run, tmp_path: Path
) -> None:
    trace = tmp_path / "one.goal"
    trace.write_text("num_ranks 2\n\nrank 0 {\nl1: calc 5\n}\n\nrank 1 {\nl1: calc 5\n}\n")
    replay = ("replay", str(trace), "--fabric", SWITCH)
    finished = run(*replay, "--collective", "all_reduce=ringg")
    assert "unknown algorithm `ringg` for all_reduce; did you mean `ring`?" in finished.err
    grouped = ("train", "--model", MODEL, "--batch", "1", "--fabric", SWITCH)
    for value in ("broadcast=ringg", "all_reduce=ring<64KiB,swingg"):
        options = ("--tensor-parallel", "4", "--collective", value)
        assert "unknown algorithm" in run(*grouped, *options).err


def test_an_option_without_a_value_is_no_module_of_the_user(run: Run) -> None:
    words = ("plan", "all_reduce", "--fabric", SWITCH, "--algorithm")
    error = run(*words, "halving_doubling:halvings").err
    assert "`halving_doubling`: halvings=yes: must be a whole number" in error
    assert "no option `colour`" in run(*words, "ring:colour").err
    assert "importing `my_module` failed" in run(*words, "my_module:ring").err
