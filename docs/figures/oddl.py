"""The figures of docs/oddl.md: those of `opticoll reproduce oddl`, and pictures of plans.

What is quick to compute is computed; iterations of larger systems take minutes and are kept in
`oddl_scaling.csv`.
"""

from __future__ import annotations

import csv
import shutil
import tempfile
from pathlib import Path
from typing import get_type_hints

import opticoll
from opticoll import plot
from opticoll.formats.table import write_csv
from opticoll.study.oddl import collective, four_nodes, scaling
from opticoll.study.results import Results

SCALING = Path(__file__).parent / "oddl_scaling.csv"
SHARED = "wss_grid:rows=4,columns=4,dead_transceivers=6.row,nodes=0-14"


def compute() -> None:
    """Compute the iterations of larger systems anew."""
    write_csv(list(scaling.compute(scaling.NODES[-1]).values()), SCALING)


def draw(folder: Path, suffix: str) -> None:
    """Draw all figures into a folder, as `oddl_*` of a suffix."""
    with tempfile.TemporaryDirectory() as name:
        results = Results(Path(name))
        collective.timeline(results)
        four_nodes.run(results)
        scaling.draw(results, kept())
        for file in results.files:
            if file.endswith(f".{suffix}"):
                shutil.copyfile(Path(name) / file, folder / f"oddl_{file}")
    plan = opticoll.plan("all_reduce", SHARED, "halving_doubling")
    assert plan.verify() == []
    plot.grid(plan, 0, folder / f"oddl_slot.{suffix}")
    plot.grid_space_time(plan, folder / f"oddl_space_time.{suffix}")


def kept() -> scaling.Rows:
    """The iterations that were computed."""
    kinds = get_type_hints(scaling.Row)
    rows: scaling.Rows = {}
    with SCALING.open(encoding="utf-8", newline="") as file:
        for texts in csv.DictReader(file):
            values = {
                key: text == "true" if kinds[key] is bool else kinds[key](text)
                for key, text in texts.items()
            }
            row = scaling.Row(**values)  # type: ignore[typeddict-item]
            rows[row["model"], row["nodes"], row["network"]] = row
    return rows
