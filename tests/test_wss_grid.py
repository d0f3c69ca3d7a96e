"""Grids of tunable circuits by theory: plans, failures, and several tasks on one grid."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import opticoll
from support import Run, answer
from test_cli import run_json

FOUR = "wss_grid:rows=2,columns=2,rate=100Gb/s"


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
