"""Ranks of custom fabrics are shown by their names, with the loads of their links."""

from __future__ import annotations

from pathlib import Path

import pytest

from conftest import Run
from opticoll import Fabric
from opticoll.network_graph import rank_names

RACK = "custom:ranks=3,switches=1,links=0-3+1-3+2-3,names=left+a%2Bb+right+hub"


def test_ranks_have_the_names_of_their_graph() -> None:
    assert rank_names(Fabric(RACK)) == ["left", "a+b", "right"]
    assert rank_names(Fabric("torus:dims=2x2")) == ["0", "1", "2", "3"]


def test_show_prints_names_and_beside_a_figure_the_loads(run: Run, tmp_path: Path) -> None:
    asked = ["show", "all_gather", "--fabric", RACK, "--algorithm", "ring", "--size", "1MiB"]
    plain = run(*asked).out
    assert "left > a+b" in plain
    assert "loads of links" not in plain
    drawn = run(*asked, "--figure", str(tmp_path / "rack.svg")).out
    links = drawn.partition("loads of links")[2].splitlines()[2:]
    # Every rank sends both other blocks, and receives both, over its only cable.
    assert [line.split()[-2] for line in links] == [str(2 * 2**20)] * 6


def test_hints_about_records_are_not_given_for_an_algorithm_of_the_user(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "never_runs.py").write_text(
        "from opticoll.errors import AlgorithmError\n\n\n"
        "def never(collective, fabric):\n    raise AlgorithmError('not today')\n"
    )
    finished = run("plan", "all_gather", "--fabric", RACK, "--algorithm", "never_runs:never")
    assert "not today" in finished.err
    assert "hint: see `opticoll list" not in finished.err
