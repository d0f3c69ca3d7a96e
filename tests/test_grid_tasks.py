"""Failures on grids of tunable circuits, and several tasks on one, by theory."""

from __future__ import annotations

from pathlib import Path

import pytest

import opticoll
from opticoll.inputs.task_list import Task
from support import Run
from test_cli import run_json

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
    assert (upper["beside"], everyone["name"]) == ([], "all_reduce")
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
        assert (first["beside"], second["beside"]) == (["all_reduce"], ["all_reduce"])
        assert second["verified"]


@pytest.mark.parametrize(
    ("old", "new", "hint"),
    [
        ("rounds: 3", "rounds: 0", "line 4, tasks.0.rounds: `0` is no whole number"),
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
