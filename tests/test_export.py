"""`opticoll export`: a plan as a program or a table, in every format that is registered."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

import opticoll
from opticoll import formats
from opticoll.exports import KNOWN
from support import RING, Run

SWITCH = ("all_gather", "--fabric", "crossbar:ranks=4", "--algorithm", "ring")


def test_a_table_has_each_transfer_of_a_ring(run: Run, tmp_path: Path) -> None:
    table = tmp_path / "ring.csv"
    finished = run("export", *SWITCH, "--output", table)
    assert (finished.code, finished.err) == (0, f"opticoll: wrote {table}\n")
    # In step s rank r hands on the block that it received last, that of rank r - s.
    sent = [
        (step, (rank - step) % 4, rank, (rank + 1) % 4) for step in range(3) for rank in range(4)
    ]
    expected = [
        f"{number},{step},copy,{block},1,{rank},{next_rank}"
        for number, (step, block, rank, next_rank) in enumerate(sent)
    ]
    heading = "transfer,slot,action,chunk,count,source,destination"
    assert table.read_text().splitlines() == [heading, *expected]


def test_a_table_names_the_light_of_a_transfer(run: Run, tmp_path: Path) -> None:
    table = tmp_path / "ring.csv"
    plan = opticoll.plan("all_reduce", RING, "wrht")
    kept = tmp_path / "wrht.plan"
    opticoll.write_plan(plan, kept)
    assert run("export", kept, "--output", table).code == 0
    rows = list(csv.DictReader(table.open()))
    columns = opticoll.read_plan(kept).columns()
    assert [int(row["wavelength"]) for row in rows] == columns["wavelength"].tolist()
    assert {row["direction"] for row in rows} <= {"cw", "ccw"}
    assert [row["action"] == "reduce" for row in rows] == [bool(one) for one in columns["action"]]


def test_a_plan_is_the_same_after_every_form_of_its_file(run: Run, tmp_path: Path) -> None:
    plan = opticoll.plan("all_gather", "wdm_ring:ranks=64,wavelengths=16", "relay_tree")
    first = tmp_path / "tree.plan"
    opticoll.write_plan(plan, first)
    compressed, text = tmp_path / "tree.plan.zst", tmp_path / "tree.text"
    assert run("import", first, "--output", compressed).code == 0
    assert run("import", compressed, "--format", "PLAN", "--output", text).code == 0
    assert text.read_text() == first.read_text()
    assert run("verify", compressed).code == 0


@pytest.mark.parametrize("name", KNOWN)
def test_every_format_is_written_and_told(run: Run, tmp_path: Path, name: str) -> None:
    path = tmp_path / f"plan{KNOWN[name].suffixes[0]}"
    finished = run("export", *SWITCH, "--format", name, "--output", path, "--json")
    assert finished.code == 0
    row = json.loads(finished.out)
    assert (row["format"], row["transfers"], row["chosen"]) == (name, 12, "ring")
    # Traces of Chakra are a file for each rank; the plan is beside every trace.
    files = [tmp_path / f"plan.{rank}.et" for rank in range(4)] if name == "chakra" else [path]
    traces = {one.name for one in formats.formats_of("trace")} - {"parquet"}
    files += [path.with_name(f"{path.name}.plan")] if name in traces else []
    assert sorted(tmp_path.iterdir()) == files


@pytest.mark.parametrize("rank", [1, 3])
def test_files_of_one_export_are_all_written_or_none(run: Run, tmp_path: Path, rank: int) -> None:
    blocked = tmp_path / f"ring.{rank}.et"
    blocked.mkdir()
    finished = run("export", *SWITCH, "--output", tmp_path / "ring.et")
    assert finished.code == 2
    assert f"cannot write `{blocked}`" in finished.err
    assert list(tmp_path.iterdir()) == [blocked]
    blocked.rmdir()
    assert run("export", *SWITCH, "--output", tmp_path / "ring.et").code == 0
    written = sorted(one.name for one in tmp_path.iterdir())
    assert written == ["ring.0.et", "ring.1.et", "ring.2.et", "ring.3.et", "ring.et.plan"]


def test_a_violated_plan_is_written_with_a_warning(run: Run, tmp_path: Path) -> None:
    plan = tmp_path / "broken.plan"
    text = opticoll.plan("all_gather", RING, "ring").to_text()
    plan.write_text(text.replace("copy 3 ", "copy 2 "), encoding="utf-8")
    written = run("export", plan, "--output", tmp_path / "t.csv")
    assert "warning: the plan is violated" in written.err
    assert (tmp_path / "t.csv").exists()
