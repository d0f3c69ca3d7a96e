"""Loss of light on the command line: margins by hand, components with their sources."""

from __future__ import annotations

import math
from typing import Any

import pytest

from opticoll import _core
from opticoll.outputs.records import record_rows
from support import Run, answer

LEVELS = "launch_power=0dBm,sensitivity=-12dBm"


def shown(run: Run, fabric: str, collective: str = "broadcast") -> dict[str, Any]:
    row: dict[str, Any] = answer(
        run, "show", collective, "--fabric", fabric, "--algorithm", "direct"
    )
    return row


def test_show_states_the_losses_of_the_weakest_light(run: Run) -> None:
    row = shown(run, f"passive_star:ranks=10,wavelengths=2,{LEVELS},excess_loss=0.5dB")
    budget = row["loss_budget"]
    # 10 log10 10 is 10 dB.
    assert [part["loss_db"] for part in budget["losses"]] == [0, 10, 0.5]
    assert (budget["margin_db"], budget["sensitivity_dbm"], budget["osnr_db"]) == (1.5, -12, None)
    assert [path["margin_db"] for path in row["lightpaths"]] == [1.5] * 9
    assert all("osnr_db" not in path for path in row["lightpaths"])


def test_show_states_no_margin_without_a_budget(run: Run) -> None:
    row = shown(run, "passive_star:ranks=10,wavelengths=2")
    assert "loss_budget" not in row
    assert all("margin_db" not in path for path in row["lightpaths"])


def test_messages_without_light_have_no_margin(run: Run) -> None:
    fabric = f"circuit_switch:ranks=4,{LEVELS},switch_loss=palomar"
    assert {path["margin_db"] for path in shown(run, fabric)["lightpaths"]} == {10}
    plan = _core.Plan.from_text(
        f"opticoll plan 1\ncollective broadcast ranks=2 root=0 pieces=1\nfabric circuit_switch:"
        f"ranks=2,packet_rate=1Gb/s,{LEVELS}\nalgorithm by hand\nsteps 1\nslot 0\n"
        "copy 0 0>1 packet\nend 1\n"
    )
    assert len(plan.margins(0)["margin"]) == 0
    assert plan.least_margin() is None


def test_noise_of_each_lightpath_is_shown(run: Run) -> None:
    # An amplifier after each link of 20 dB with a noise figure of 5 dB: 57.953 dB - 25 dB.
    fabric = f"wdm_mesh:dims=3,wavelengths=2,{LEVELS},link_loss=20dB,noise_figure=5dB"
    row = shown(run, fabric)
    ratios = {path["destination"]: path["osnr_db"] for path in row["lightpaths"]}
    assert ratios[1] == pytest.approx(57.953 - 25, abs=0.001)
    assert ratios[2] == pytest.approx(57.953 - 25 - 10 * math.log10(2), abs=0.001)
    assert {path["margin_db"] for path in row["lightpaths"]} == {12}
    text = run("show", "broadcast", "--fabric", fabric, "--algorithm", "direct").out
    assert "OSNR 32.95 dB" in text
    assert "margin 12 dB" in text


def test_each_value_of_a_component_names_its_source(run: Run) -> None:
    text = run("list", "components").out
    flat = " ".join(text.split())
    for component in record_rows("components"):
        assert component.name in text
        for value in component.options:
            assert value.source is not None
            kind, _, source = value.source.partition(": ")
            assert kind in ("data sheet", "paper", "secondary text", "definition")
            assert source in flat
            assert f"{value.name} {value.range} {value.unit}" in flat


def test_light_that_is_too_weak_is_refused(run: Run) -> None:
    mesh = f"wdm_mesh:dims=8,wavelengths=8,{LEVELS},link_loss=3dB"
    done = run("plan", "broadcast", "--fabric", mesh, "--algorithm", "direct", "--size", "1MiB")
    assert done.code == 2
    assert "spans 5 links, but the reach of light is 4" in done.err
