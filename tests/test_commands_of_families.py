"""Every command that times plans takes each family of circuits, and its plan from a file."""

from __future__ import annotations

from pathlib import Path

import pytest

import opticoll
from support import Run
from test_cli import run_json


@pytest.mark.parametrize(
    ("fabric", "links", "words", "views"),
    [
        # Each rank has a link for each port or transceiver, a star one for each wavelength.
        ("passive_star:ranks=6,wavelengths=3", 3, "> 1 2 3 4 5  wavelength 0", ["space_time"]),
        ("lightpath_grid:ranks=8,ports=2", 16, "port 0 > port 0", ["ports"]),
        ("circuit_switch:ranks=6,ports=2,planes=2", 12, "port 0", ["ports", "configurations"]),
        ("wss_grid:rows=2,columns=3,dead_transceivers=1.row,nodes=0-4", 10, "column", ["grid"]),
    ],
)
def test_commands_take_each_family(
    run: Run, tmp_path: Path, fabric: str, links: int, words: str, views: list[str]
) -> None:
    path, figure = tmp_path / "a.plan", tmp_path / "a.svg"
    asked = ("all_gather", "--fabric", fabric, "--size", "64KiB")
    ranks = opticoll.Fabric(fabric).ranks
    rows = run_json(run, "compare", "compare", *asked, "--figure", figure)
    assert all(row["verified"] and row["bound_time_s"] <= row["time_s"] for row in rows)
    auto = run_json(run, "plan", "plan", *asked)
    assert auto["time_ps"] == min(row["time_ps"] for row in rows)
    made = (*asked, "--algorithm", "direct:order=at_once", "--output", path)
    planned = run_json(run, "plan", "plan", *made)
    assert run_json(run, "verify", "verify", path)["verified"]
    timed = run_json(run, "simulate", "simulate", path)
    assert timed["time_ps"] == planned["time_ps"]
    assert words in run("show", path).out
    for per, count in (("link", links), ("rank", ranks), ("step", planned["steps"])):
        assert len(run_json(run, "simulate", "simulate", path, "--per", per)[f"per_{per}"]) == count
        assert run("simulate", path, "--per", per).code == 0
    for view in views:
        drawn = run("show", path, "--view", view, "--figure", figure)
        assert drawn.code == 0, drawn.err
    for policy in opticoll.records("policies"):
        done = run("simulate", path, "--policy", policy["name"])
        assert done.code == 0 or "does not know" in done.err, done.err
    trained = run("train", "--model", "resnet50", "--batch", "64", "--fabric", fabric)
    assert trained.code == 0, trained.err
