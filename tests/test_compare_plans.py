"""Plans from files as rows of `opticoll compare`."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

import opticoll
from opticoll import errors
from opticoll.study import document
from opticoll.study.points import points
from support import RING, Run, answer


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Writes a plan of OpTree and a program of another tool."""
    monkeypatch.chdir(tmp_path)
    opticoll.write_plan(opticoll.plan("all_gather", RING, "optree:radices=4x4"), "tree.plan")
    opticoll.plan("all_gather", "fully_connected:ranks=4", "ring").export("theirs.csv", "sends")
    return tmp_path


def test_a_plan_is_a_row_on_its_own_fabric(run: Run, files: Path) -> None:
    rows = answer(run, "compare", "all_gather", "--algorithms", "tree.plan,ring", "--no-auto")
    assert [row["algorithm"] for row in rows] == ["tree.plan", "ring"]
    plan = opticoll.read_plan("tree.plan")
    assert {row["fabric"] for row in rows} == {plan.fabric.spec}
    of_file = rows[0]
    # The paper gives as many steps as the plan has.
    assert of_file["steps"] == of_file["claimed_steps"] == plan.claimed_steps
    assert of_file["chosen"] == "optree:radices=4x4"
    assert of_file["verified"]
    assert of_file["time_ps"] == plan.simulate("4MiB").time_ps
    alone = answer(run, *shlex.split(of_file["command"])[1:])
    assert alone["time_ps"] == of_file["time_ps"]
    text = run("compare", "all_gather", "--algorithms", "tree.plan").out
    assert "tree.plan is a plan of optree:radices=4x4" in text


def test_a_schedule_of_another_tool_is_placed_on_the_fabric(run: Run, files: Path) -> None:
    switch = "crossbar:ranks=4,rate=8Gb/s"
    rows = opticoll.compare("all_gather", switch, "theirs.csv", sizes="1MB").rows
    # Three steps, each with 8 Mbit over the links of a rank.
    assert rows[0].algorithm == "theirs.csv"
    assert rows[0].time_s == pytest.approx(3e-3)
    assert rows[0].fabric == opticoll.Fabric(switch).spec


UNFIT = {
    "ranks": ("all_gather", "wdm_ring:ranks=8,wavelengths=2", "has 8 ranks, the schedule 16"),
    "collective": ("all_reduce", RING, "the collective of the plan is all_gather"),
    "wavelengths": ("all_gather", "wdm_ring:ranks=16,wavelengths=1", "wavelength 1"),
}


@pytest.mark.parametrize("name", UNFIT)
def test_a_plan_that_does_not_fit_is_refused(run: Run, files: Path, name: str) -> None:
    collective, fabric, words = UNFIT[name]
    arguments = ["compare", collective, "--fabric", fabric, "--algorithms", "tree.plan,ring"]
    shown = run(*arguments)
    assert shown.code == 2
    (line,) = shown.err.splitlines()
    assert "`tree.plan` does not fit: " in line
    assert words in line
    if collective == "all_gather":
        shown = run(*arguments, "--fabric", RING)
        assert shown.code == 0
        assert "left out: `tree.plan` does not fit" in shown.err


def test_a_plan_with_another_root_is_refused(files: Path) -> None:
    opticoll.write_plan(opticoll.plan("broadcast", RING, root=3), "from3.plan")
    assert opticoll.compare("broadcast", RING, "from3.plan", root=3).rows[0].verified
    with pytest.raises(errors.AlgorithmError, match="the root of the plan is 3, not 0"):
        opticoll.compare("broadcast", RING, "from3.plan")


def test_a_scenario_names_plans_of_its_folder(
    run: Run, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (files / "s.yaml").write_text(
        f"collective: all_gather\nfabric: {RING}\nalgorithms: [tree.plan]\nsizes: 1KiB..1MiB\n"
    )
    (files / "below").mkdir()
    monkeypatch.chdir(files / "below")
    rows = json.loads(run("compare", "../s.yaml", "--json").out)
    assert [row["size_bytes"] for row in rows if row["algorithm"] == "../tree.plan"] == [
        4**power * 1024 for power in range(6)
    ]


def test_a_point_depends_on_the_content_of_each_plan(files: Path) -> None:
    (files / "study.yaml").write_text(
        "study: plans\ncommand: compare\n"
        f"options: {{collective: all_gather, fabric: '{RING}', algorithms: 'ring,tree.plan'}}\n"
        "grid: {size: [1KiB]}\n"
    )
    study = document.read(files / "study.yaml")
    (before,) = points(study)
    opticoll.write_plan(opticoll.plan("all_gather", RING, "ring"), "tree.plan")
    (after,) = points(study)
    assert before.key != after.key
