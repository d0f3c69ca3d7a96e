"""The table of gaps in the documentation: its notes, and some of its rows computed anew."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

import opticoll
from opticoll.outputs import layout

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


def test_rows_of_the_page_are_what_is_computed() -> None:
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    start = lines.index("## wdm_ring:ranks=64,wavelengths=8")
    rows = [[one.strip() for one in line.strip("|").split("|")] for line in lines[start + 2 :][:11]]
    for collective, cells in {row[0]: row for row in rows[2::3]}.items():
        for size, cell in list(zip(rows[0], cells, strict=True))[1:4:2]:
            plan = opticoll.plan(collective, "wdm_ring:ranks=64,wavelengths=8", size=size)
            assert plan.verify() == []
            time_s = plan.simulate(size).time_ps * 1e-12
            assert cell.startswith(f"{layout.human_seconds(time_s)}, "), (collective, size)


def test_a_worst_row_without_a_sentence_is_refused(gap_table: ModuleType) -> None:
    entry = gap_table.Entry("crossbar:ranks=4", "scatter", "1MiB", 1.2, 1.0, "direct", 0.3, 60.0)
    assert not entry.is_near
    with pytest.raises(ValueError, match="has no sentence"):
        gap_table.page([entry], [])
    reason = {"fabrics": ["crossbar"], "collectives": ["scatter"], "sentence": "Why."}
    page = gap_table.page([entry], [reason])
    assert "scatter, 1MiB: 1.200 s, 20.0 %, 0.3 s. Why." in page
