"""Ranks of custom fabrics are shown by their names, with the loads of their links."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from opticoll import Fabric
from opticoll.formats.network_graph import rank_names
from opticoll.outputs.fabric_names import fabric_labels
from support import Run

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


def test_titles_name_the_file_of_a_custom_fabric_and_what_it_leaves_to_defaults(
    run: Run, tmp_path: Path
) -> None:
    file = tmp_path / "hub.json"
    nodes = [{"id": "a"}, {"id": "b"}, {"id": "hub", "kind": "switch"}]
    links = [{"source": "a", "target": "hub"}, {"source": "b", "target": "hub", "rate": "50Gb/s"}]
    file.write_text(json.dumps({"nodes": nodes, "links": links}))
    words = "hub.json (1 switch, 2 cables; default rate 100Gb/s for 1 cable, default latency 0s)"
    asked = ["all_gather", "--fabric", str(file), "--size", "1MiB"]
    for command in ("plan", "compare", "bound", "show", "simulate"):
        more = ["--algorithm", "ring"] if command != "bound" else []
        assert words in run(command, *asked, *more).out, command
    path = run("simulate", *asked, "--algorithm", "ring").out.partition("critical path")[2]
    assert re.search("b > a|a > b", path)
    whole = json.loads(run("compare", *asked, "--algorithm", "ring", "--json").out)
    assert Fabric(whole[0]["fabric"]).ranks == 2


def test_custom_fabrics_have_labels_that_tell_them_apart() -> None:
    rack, other, alike = (
        Fabric(RACK.replace(*change)).spec
        for change in (("", ""), ("2-3", "2-3@1Gb/s"), ("right", "last"))
    )
    labels = fabric_labels([rack, other, "torus:dims=2x2"])
    assert labels[rack] == "custom (1 switch, 3 cables; rate 100Gb/s, latency 0s)"
    assert len({*labels.values()}) == 3
    assert fabric_labels([rack, alike])[alike] == alike


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
