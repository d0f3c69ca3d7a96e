"""The table of the planner in the documentation is what its command computes."""

from __future__ import annotations

from pathlib import Path

import planner_table

TABLE = Path(__file__).parents[1] / "docs" / "planner-table.md"


def test_the_committed_table_is_what_is_computed() -> None:
    committed = TABLE.read_text(encoding="utf-8")
    parts = list(planner_table.sections(quick=False))
    assert planner_table.differences(committed, parts) == []
    listed = {
        (str(case.ranks), str(case.wavelengths), str(case.fibres))
        for rings in planner_table.cases().values()
        for case in rings
    }
    assert set(planner_table.comparable(committed)) == listed


def test_every_plan_of_the_table_is_verified_and_within_its_named_algorithms() -> None:
    for ring, cells in planner_table.comparable(TABLE.read_text(encoding="utf-8")).items():
        named = dict(zip(planner_table.HEADING[3:-1], cells, strict=True))
        ours = int(named["relay tree"].strip("*"))
        others = [
            named[name]
            for name in ("OpTree, constructed", "one stage", "neighbour exchange", "ring")
        ]
        assert named["verified"] == ("both" if int(ring[0]) <= 256 else "Rust"), ring
        assert int(named["lower bound"]) <= ours, ring
        assert all(ours <= int(other) for other in others if other != "-"), ring
