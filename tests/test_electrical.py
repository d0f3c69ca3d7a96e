"""Electrical fabrics from Python and the command line.

Expected times are those of theory: on a switch of rate B, ring all_reduce of M bytes among N ranks
takes 2 (N - 1) M / (N B), recursive doubling log2(N) M / B.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import opticoll
from opticoll import errors, reference
from opticoll.outputs.plan_row import _gap
from support import Run
from test_cli import run_json

SWITCH = "crossbar:ranks=8,rate=8Gb/s"
TREE = "fat_tree:down=4x4,up=1x2,rate=12.5GB/s"


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (("copy 0 0>1 x8 chunk+1 rank+1", "copy 0 0>1 x7 chunk+1 rank+1"), "missing"),
        (("copy 0 0>1 x8", "copy 0 0>2 x8"), "not_held"),
        (("copy 0 0>1 x8", "copy 0 0>0 x8"), "self_transfer"),
        (("copy 0 0>1 x8", "copy 0+2 0>1 x8"), "not_held"),
        (("copy 0 0>1 x8", "reduce 0 0>1 x8"), "wrong_action"),
        (("steps 1 1", "steps 1 2"), "step_order"),
        (("claim schedule_steps 7", "claim schedule_steps 6"), "claim"),
    ],
)
def test_both_verifiers_refuse_what_is_wrong(change: tuple[str, str], kind: str) -> None:
    text = opticoll.plan("all_gather", SWITCH, "ring").to_text()
    assert change[0] in text or change[0].startswith("claim"), text
    if change[0] not in text:
        text = text.replace("\nsteps ", f"\n{change[1]}\nsteps ")
    wrong = text.replace(*change, 1)
    count = 56 - ("x7" in change[1])
    wrong = wrong.replace("end 56", f"end {count}")
    core = {violation.kind for violation in opticoll.Plan.from_text(wrong).verify()}
    named = {problem.kind for problem in reference.verify(reference.read(wrong))}
    assert kind in core
    assert named == core


@pytest.mark.parametrize(
    ("time_ps", "bound_ps", "gap"),
    [
        # Rounded by the simulator, and below the bound by more than that.
        (10**15 - 600, 10**15, ", gap 0 %"),
        (10**15 + 600, 10**15, ", gap 0 %"),
        (995 * 10**12, 10**15, ", gap -0.5 %"),
        (3 * 10**15, 10**15, ", gap 200 %"),
    ],
)
def test_gaps_leave_out_what_the_simulator_rounds(time_ps: int, bound_ps: int, gap: str) -> None:
    assert _gap(time_ps, bound_ps) == gap


def test_plan_simulate_verify_and_show_print_no_light(run: Run, tmp_path: Path) -> None:
    given = ("all_reduce", "--fabric", TREE, "--algorithm", "halving_doubling")
    row = run_json(run, "plan", "plan", *given, "--size", "1MiB", "--start", "step")
    assert (row["start"], row["verified"]) == ("step", True)
    finished = run("plan", *given)
    assert finished.code == 0
    assert "wavelength" not in finished.out
    assert "bottleneck" in finished.out
    timed = run_json(run, "simulate", "simulate", *given, "--per", "link")
    links = opticoll.Fabric(TREE).link_names
    assert [one["link"] for one in timed["per_link"]] == links
    assert timed["settings"] == []
    assert timed["most_loaded_link"] in links
    assert timed["critical_path"][-1]["end_ps"] == timed["time_ps"]
    assert {one["bottleneck"] for one in timed["critical_path"]} <= {*links, None}
    for per in ("step", "rank"):
        timed = run_json(run, "simulate", "simulate", *given, "--per", per)
        assert len(timed[f"per_{per}"]) == {"step": 8, "rank": 16}[per]
        assert run("simulate", *given, "--per", per).code == 0
    text = run("simulate", *given, "--per", "link")
    assert "bounded by" in text.out
    assert "most loaded link" in text.out
    path = tmp_path / "plan.txt"
    assert run("plan", *given, "--output", path).code == 0
    proved = run_json(run, "verify", "verify", path)
    assert proved["verified"]
    assert "lightpath" not in run("verify", path).out
    shown = run_json(run, "show", "show", path, "--slot", "2")
    assert "direction" not in shown["lightpaths"][0]
    assert "slot 2: 16 transfers" in run("show", path, "--slot", "2").out


def test_a_figure_of_a_comparison_is_drawn(run: Run, tmp_path: Path) -> None:
    for sizes in ("1KiB..16KiB", "1MiB"):
        figure, table = tmp_path / f"{sizes}.svg", tmp_path / f"{sizes}.csv"
        finished = run(
            *("compare", "all_reduce", "--fabric", TREE, "--sizes", sizes),
            *("--figure", figure, "--csv", table),
        )
        assert finished.code == 0, finished.err
        assert "<svg" in figure.read_text()
        assert "wrht" not in table.read_text()


def test_where_no_algorithm_is_named_it_is_the_fastest(run: Run) -> None:
    finished = run("plan", "all_reduce", "--fabric", TREE, "--size", "64MiB")
    assert finished.code == 0
    auto = opticoll.plan("all_reduce", TREE, "auto", size="64MiB")
    assert f"{auto.algorithm} (chosen by auto)" in finished.out
    assert opticoll.plan("all_reduce", TREE, size="64MiB") == auto


def test_a_fabric_may_come_from_a_file(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "my_rack.yaml"
    path.write_text(
        "family: custom\nranks: [gpu0, gpu1]\nswitches: [leaf]\n"
        "links: [[gpu0, leaf], {between: [gpu1, leaf], rate: 8Gb/s}]\n"
    )
    row = run_json(
        run, "plan", "plan", "all_gather", "--fabric", path, "--algorithm", "ring", "--size", "1MB"
    )
    assert row["time_s"] == pytest.approx(1e-3)
    assert "gpu1" in row["bottleneck"]


def test_scenarios_may_name_a_start_rule(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "scenario.yaml"
    path.write_text(
        f"collective: all_gather\nfabric: '{SWITCH}'\nalgorithms: [ring, bruck]\nstart: sender\n"
    )
    rows = run_json(run, "compare", "compare", path)
    assert [row["start"] for row in rows] == ["sender", "sender", "sender"]
    path.write_text(path.read_text().replace("sender", "sendr"))
    refused = run("compare", path)
    assert refused.code == 2
    assert "line 4, start: unknown start rule `sendr`; did you mean `sender`?" in refused.err


def test_the_lists_name_start_rules_and_the_simulator(run: Run) -> None:
    rules = json.loads(run("list", "start_rules", "--json").out)
    assert [one["name"] for one in rules] == ["rendezvous", "sender", "step", "link"]
    assert "fluid" in run("list", "simulators").out


def test_weights_are_a_setting_that_is_named() -> None:
    plan = opticoll.plan("all_gather", f"{TREE},latency=1us", "ring")
    outcome = plan.simulate("1MiB", weights="inverse_latency")
    assert outcome.settings.rows() == [
        {"name": "weights", "value": "1/route latency", "plain": "equal"}
    ]
    assert len(plan.simulate("1MiB").settings) == 0
    with pytest.raises(errors.SimulationError, match="did you mean `equal`"):
        plan.simulate("1MiB", weights="eqal")


def test_bins_too_short_for_memory_are_made_longer_and_say_so() -> None:
    """8192 links may have 2^24 / 8192 = 2048 bins; 12 ms in bins of 1 ns would be 12 million."""
    plan = opticoll.plan("broadcast", "crossbar:ranks=4096,rate=8Gb/s,latency=1us", "binomial")
    assert plan.verify() == []
    fine = plan.simulate(10**6, link_bin="1ns")
    bin_ps, carried = fine.link_use_bin_ps, fine.link_use["bytes"]
    assert bin_ps == 1000 * 2**13  # the first doubling at which 12.024 ms are 2048 bins at most
    assert carried.shape == (8192, 1468)
    asked = plan.simulate(10**6, link_bin=f"{bin_ps}ps")
    np.testing.assert_allclose(carried, asked.link_use["bytes"], rtol=1e-12)
    np.testing.assert_allclose(carried.sum(), 4095 * 2 * 10**6, rtol=1e-12)
