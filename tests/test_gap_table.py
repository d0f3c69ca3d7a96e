"""The table of gaps in the documentation: its notes, and some of its rows computed anew."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

import opticoll
from opticoll import layout

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "gap-table.md"


@pytest.fixture(scope="module")
def gap_table() -> ModuleType:
    place = ROOT / "validation" / "gap_table.py"
    spec = importlib.util.spec_from_file_location("gap_table", place)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["gap_table"] = module
    spec.loader.exec_module(module)
    return module


def rows() -> list[tuple[str, dict[str, str]]]:
    """The fabric and the cells of every row."""
    listed: list[tuple[str, dict[str, str]]] = []
    fabric = ""
    heading: list[str] = []
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            fabric = line.removeprefix("## ")
        cells = [cell.strip().strip("`") for cell in line.strip("|").split("|")]
        if cells[0] == "collective":
            heading = cells
        elif line.startswith("| ") and heading and len(cells) == len(heading):
            listed.append((fabric, dict(zip(heading, cells, strict=True))))
    return listed


def test_every_gap_above_15_percent_has_its_sentence() -> None:
    notes = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line[:1].isdigit()]
    table = rows()
    assert len(table) > 41 * 8
    for fabric, row in table:
        gap = float(row["gap"].removesuffix(" %"))
        # What is printed as 15.0 % may be a little more.
        assert bool(row["note"]) == (gap > 15) or gap == 15, (fabric, row)
        assert not row["note"] or 1 <= int(row["note"]) <= len(notes)
    assert {int(row["note"]) for _, row in table if row["note"]} == set(range(1, len(notes) + 1))


@pytest.mark.parametrize("part", range(12))
def test_rows_are_what_is_computed(part: int) -> None:
    small = [one for one in rows() if "ranks=64" in one[0] or "rows=8," in one[0]]
    assert len(small) >= 41 * 10
    fabric, row = small[len(small) * part // 12]
    size = "1KiB" if row["size"] == "-" else row["size"]
    asked = (row["collective"], opticoll.Fabric(fabric), "auto:effort=full")
    plan = opticoll.plan(*asked, size=size, policy=row["policy"])
    assert plan.slots == int(row["slots"])
    assert plan.verify() == []
    outcome = plan.simulate(size, policy=row["policy"])
    assert layout.human_seconds(outcome.time_ps * 1e-12) == row["time"]


def test_a_gap_without_a_sentence_is_refused(gap_table: ModuleType) -> None:
    entry = gap_table.Entry("wdm_ring:ranks=4", "scatter", "1KiB", "free", 1, 1.2, 1.0, "direct")
    with pytest.raises(ValueError, match="20 % above its bound"):
        gap_table.page([entry], [])
    page = gap_table.page([entry], [gap_table.Reason("Why.", (), ("scatter",), (), ())])
    assert "1. Why." in page
    assert "| 20.0 % | `direct` | 1 |" in page
