"""Grids of tunable circuits by theory: plans, failures, and several tasks on one grid."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import opticoll
from opticoll.inputs.task_list import Task
from support import Run, answer
from test_cli import run_json

FOUR = "wss_grid:rows=2,columns=2,rate=100Gb/s"


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


SIXTEEN = "wss_grid:rows=4,columns=4,rate=8Gb/s,tuning=0s"
HALVING = ("--fabric", SIXTEEN, "--algorithm", "halving_doubling", "--size", "16KiB")


@pytest.mark.parametrize(
    "failed", ["leaving=15", "dead_transceivers=5.row", "dead_ports=column2.1"]
)
def test_a_node_less_doubles_the_time_of_halving_and_doubling(run: Run, failed: str) -> None:
    # A core of eight, to which the others hand over the vector and get it back: 2 + 2 (7 / 8) in
    # place of 2 (15 / 16) vectors, at a byte a nanosecond.
    arguments = ("replan", "all_reduce", *HALVING, "--failed", failed)
    row = run_json(run, "replan", *arguments)
    assert row["before_time_ps"] == 2 * 15 * 1024 * 1000
    assert (row["slowdown"], row["time_ps"]) == (2, 2 * row["before_time_ps"])
    assert (row["verified"], row["failed"]) == (True, failed)
    assert row["before_fabric"] != row["fabric"]
    shown = run(*arguments)
    assert shown.code == 0
    assert "2 times as long" in shown.out


def test_auto_plans_anew_where_no_algorithm_is_named(run: Run, tmp_path: Path) -> None:
    file, anew = tmp_path / "before.plan", tmp_path / "anew.plan"
    assert run("plan", "all_reduce", *HALVING, "--output", file).code == 0
    arguments = ("replan", file, "--failed", "leaving=15", "--output", anew)
    row = run_json(run, "replan", *arguments)
    assert row["slowdown"] < 2
    assert row["before_algorithm"] == "halving_doubling"
    assert row["candidates"][0]["name"] == row["chosen"]
    made = opticoll.read_plan(anew)
    assert (made.fabric.ranks, made.verify()) == (15, [])
    again = opticoll.replan(opticoll.read_plan(file), "leaving=15")
    assert (again.plan.to_text(), again.slowdown) == (made.to_text(), row["slowdown"])


def test_a_plan_made_anew_for_one_policy_is_timed_under_any() -> None:
    before = opticoll.plan("all_reduce", "wss_grid:rows=4,columns=4", size="1MiB")
    anew = opticoll.replan(before, "leaving=15", size="1MiB", policy="free").plan
    read = opticoll.Plan.from_text(anew.to_text())
    assert anew.simulate("1MiB").time_ps == read.simulate("1MiB").time_ps
    free, stepwise = (
        (anew.simulate("1MiB", policy=policy).time_ps, read.simulate("1MiB", policy=policy).time_ps)
        for policy in ("free", "every_step")
    )
    assert free[0] == free[1] < stepwise[0] == stepwise[1]


def test_a_root_that_has_left_and_other_fabrics_are_refused(run: Run) -> None:
    arguments = ("--fabric", SIXTEEN, "--algorithm", "binomial", "--root", "3", "--failed")
    assert "the root, node 3, has left" in run("replan", "broadcast", *arguments, "leaving=3").err
    row = run_json(run, "replan", "replan", "broadcast", *arguments, "leaving=1")
    assert row["root"] == 2
    ring = ("--fabric", "wdm_ring:ranks=4,wavelengths=1", "--failed", "leaving=3")
    assert (
        "`wdm_ring` has no option `leaving`; known are broken, dead"
        in run("replan", "all_gather", *ring).err
    )


TASKS = """fabric: wss_grid:rows=4,columns=4,rate=8Gb/s,tuning=0s,slow_switch=1ms
tasks:
  - {name: upper, collective: all_reduce, algorithm: halving_doubling, nodes: 0-7, size: 8KiB,
     rounds: 3}
  - {name: lower, collective: all_reduce, algorithm: halving_doubling, nodes: 8-15, size: 8KiB,
     request: 2us}
  - {collective: all_reduce, algorithm: halving_doubling, size: 16KiB, request: 1us}
"""


def test_a_task_waits_for_its_ports_and_for_those_that_asked_before(
    run: Run, tmp_path: Path
) -> None:
    file = tmp_path / "tasks.yaml"
    file.write_text(TASKS)
    upper, lower, everyone = run_json(run, "tasks", "tasks", file)
    # 2 (7 / 8) of 8 KiB at a byte a nanosecond, after a millisecond in which switches are set.
    slow, one = 10**9, 2 * 7 * 1024 * 1000
    assert (upper["round_ps"], upper["end_ps"]) == (one, slow + 3 * one)
    # The third task requests before the second task, which must wait.
    assert everyone["end_ps"] == upper["end_ps"] + slow + 2 * 15 * 1024 * 1000
    assert lower["end_ps"] == everyone["end_ps"] + slow + one
    assert (upper["concurrent_tasks"], everyone["name"]) == ([], "all_reduce")
    # Two rows of four ports, and four columns of which the upper half uses two ports each.
    assert (upper["ports"], upper["arbiter_messages"]) == (16, 1 + 2 + 4)
    assert all(row["verified"] for row in (upper, lower, everyone))
    table = tmp_path / "tasks.csv"
    shown = run("tasks", file, "--csv", table)
    assert "tasks at one time share no switch port" in shown.out
    assert len(table.read_text().splitlines()) == 4


def test_tasks_on_other_ports_run_side_by_side() -> None:
    # Halves of the grid; and one node, 0, that serves one task by its row, the other by its column.
    for nodes in (("0-7", "8-15"), ("0-3", "0+4+8+12")):
        asked = [Task("all_reduce", nodes=one, algorithm="ring", size=1000) for one in nodes]
        first, second = opticoll.tasks(SIXTEEN, asked)
        assert (first["admitted_s"], second["admitted_s"]) == (0, 0)
        assert (first["concurrent_tasks"], second["concurrent_tasks"]) == (
            ["all_reduce"],
            ["all_reduce"],
        )
        assert second["verified"]


@pytest.mark.parametrize(
    ("old", "new", "hint"),
    [
        ("rounds: 3", "rounds: 0", "line 4, tasks.0.rounds: `0` is not a whole number"),
        ("nodes: 0-7", "nodes: 0-17", "task 0 (upper)"),
        ("size: 16KiB", "size: 16K", "line 7, tasks.2.size"),
        ("request: 2us", "requests: 2us", "did you mean `request`"),
        ("request: 2us", "request: soon", "tasks.1.request"),
        (
            "- {collective: all_reduce,",
            "- {",
            "line 7, tasks.2.collective: the field `collective` is missing",
        ),
        ("tasks:", "task:", "did you mean `tasks`"),
        ("wss_grid:rows=4", "wss_grid:row=4", "line 1, fabric"),
        ("wss_grid:rows=4,columns=4,rate=8Gb/s,tuning=0s,slow_switch=1ms", "hypercube", "line 1"),
        ("wss_grid:rows=4,columns=4,rate=8Gb/s,tuning=0s,slow_switch=1ms", "optree_paper", "wss_g"),
    ],
)
def test_files_of_tasks_with_mistakes_are_refused_with_their_place(
    run: Run, tmp_path: Path, old: str, new: str, hint: str
) -> None:
    assert old in TASKS
    file = tmp_path / "tasks.yaml"
    file.write_text(TASKS.replace(old, new, 1))
    refused = run("tasks", file)
    assert refused.code == 2
    assert hint in refused.err, refused.err
