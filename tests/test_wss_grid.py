"""Grids of tunable circuits on the command line and in Python, by theory."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import opticoll
from support import Run

FOUR = "wss_grid:rows=2,columns=2,rate=100Gb/s"


def answer(run: Run, *arguments: str) -> Any:
    finished = run(*arguments, "--json")
    assert finished.code == 0, finished.err
    return json.loads(finished.out)


def test_control_is_what_requests_and_grants_take(run: Run) -> None:
    fabric = f"{FOUR},control=1us,lock=100ns,latency=10ns"
    arguments = ("--fabric", fabric, "--size", "4000B", "--algorithm", "halving_doubling")
    outcome = answer(run, "simulate", "all_reduce", *arguments)
    assert outcome["path_control_ps"] == 3 * 2_000_000
    assert outcome["path_tuning_ps"] == 3 * 110_500
    assert outcome["path_latency_ps"] == 4 * 10_000
    parts = [outcome[key] for key in outcome if key.startswith("path_")]
    assert sum(parts) == outcome["time_ps"]
    # Slot by slot it is as long, and `every_step` pays for the exchange in the middle too.
    slots = answer(run, "simulate", "all_reduce", *arguments, "--simulator", "circuit")
    assert slots["time_ps"] == outcome["time_ps"]
    every = answer(run, "simulate", "all_reduce", *arguments, "--policy", "every_step")
    assert every["time_ps"] == outcome["time_ps"] + 2_110_500
    assert every["simulator"] == "circuit"


def test_requests_wait_for_a_central_controller(run: Run) -> None:
    fabric = "wss_grid:rows=1,columns=2,rate=8Gb/s,tuning=0s,control=1us,controller=300ns"
    arguments = ("all_gather", "--fabric", fabric, "--size", "1000B", "--algorithm", "ring")
    outcome = answer(run, "simulate", *arguments)
    # Of two requests at once the second waits 300 ns; then 1 ns a byte.
    assert outcome["path_control_ps"] == 2_300_000
    assert outcome["path_waiting_ps"] == 300_000
    assert outcome["time_ps"] == 2_600_000 + 1_000_000
    # A request and a release of each rank, and two grants of the controller.
    messages = ("control_messages", "control_messages_per_rank", "controller_messages")
    assert [outcome[key] for key in messages] == [6, 2, 2]
    assert "2 of the central controller" in run("simulate", *arguments).out
    bound = answer(run, "bound", "all_gather", "--fabric", fabric, "--size", "1000B")
    assert bound["bounds"][0]["time_s"] == pytest.approx(3.3e-6)
    finished = run("simulate", *arguments, "--simulator", "circuit")
    assert finished.code == 2
    assert "queue of a central controller; use control" in finished.err


@pytest.mark.parametrize("per", ["step", "link", "rank"])
def test_tables_have_a_row_for_each(run: Run, per: str) -> None:
    arguments = ("all_reduce", "--fabric", FOUR, "--algorithm", "halving_doubling", "--per", per)
    rows = answer(run, "simulate", *arguments)[f"per_{per}"]
    assert len(rows) == {"step": 4, "link": 8, "rank": 4}[per]
    shown = run("simulate", *arguments)
    assert shown.code == 0, shown.err


def test_compare_takes_everything_that_needs_no_ring(run: Run) -> None:
    rows = answer(run, "compare", "all_reduce", "--fabric", FOUR, "--sizes", "1KiB,1MiB")
    for row in rows:
        # Two slots, for a rank has two partners; 2 (3 / 4) of the vector over two transceivers.
        assert (row["bound_steps"], row["bound_name"]) == (2, "growth")
        assert round(row["bound_time_s"] * 1e12) == 10_500 + row["size_bytes"] * 60
        assert row["bound_time_s"] <= row["time_s"]
    shown = run("plan", "all_reduce", "--fabric", FOUR, "--algorithm", "ring").out
    assert re.search(r"steps 6, lower bound 2 \(growth\), gap 200 %; time .* gap ", shown), shown
    names = {row["algorithm"] for row in rows}
    assert {"ring", "halving_doubling", "dual_plane_halving_doubling", "direct"} <= names
    assert all(row["verified"] for row in rows)
    assert not names & {"wrht", "relay_tree"}


def test_a_plan_file_goes_there_and_back(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "exchange.plan"
    fabric = "wss_grid:rows=2,columns=3,dead_transceivers=1.row,nodes=0-4"
    made = run("plan", "all_to_all", "--fabric", fabric, "--algorithm", "direct", "--output", file)
    assert made.code == 0, made.err
    assert re.search(r"verified +yes", made.out)
    assert "column." in file.read_text()
    assert answer(run, "verify", str(file))["verified"]
    shown = run("show", str(file))
    assert "wavelength" in shown.out
    assert "column" in shown.out


def test_auto_is_the_default_and_takes_both_planes(run: Run) -> None:
    fabric = "wss_grid:rows=4,columns=4"
    row = answer(run, "plan", "all_reduce", "--fabric", fabric, "--size", "100MB")
    assert row["chosen"] == "dual_plane_halving_doubling"
    plan = opticoll.plan("all_reduce", fabric, size="100MB")
    assert (plan.fabric.option("rows"), plan.fabric.option("columns")) == (4, 4)
    assert (list(plan.fabric.light_fields), plan.fabric.electrical) == (
        ["plane", "wavelength"],
        False,
    )
    outcome = plan.simulate()
    flows = outcome.flows
    assert flows["end_ps"].max() == outcome.time_ps
    assert (flows["begin_ps"] <= flows["start_ps"]).all()
    assert (flows["start_ps"] <= flows["sent_ps"]).all()
