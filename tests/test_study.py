"""The papers computed anew: findings, tables and figures against the reference's values."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from opticoll import _core
from opticoll.study import optree, wrht
from opticoll.study.constructed import construct, fabric, step_time_ps
from opticoll.study.findings import Finding, compared
from opticoll.study.optree.cases import paper_steps
from opticoll.study.optree.reductions import PUBLISHED, case_sets
from opticoll.study.optree.table_one import printed_wrht_formula
from opticoll.study.optree.theorems import equation_three_steps, theorem_three_proof_steps

VERDICTS = {"reproduced", "refuted", "conditional", "not_reproducible"}


class Reproduction:
    """The findings of a paper by id, and the folder with its files."""

    def __init__(self, findings: list[Finding], folder: Path) -> None:
        self.findings = {finding["id"]: finding for finding in findings}
        assert len(self.findings) == len(findings), "two findings have one id"
        self.folder = folder

    def rows(self, name: str) -> list[dict[str, str]]:
        with (self.folder / name).open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def of_optree(tmp_path_factory: pytest.TempPathFactory) -> Reproduction:
    folder = tmp_path_factory.mktemp("optree") / "new"
    return Reproduction(optree.reproduce(folder, quick=True), folder)


@pytest.fixture(scope="module")
def of_wrht(tmp_path_factory: pytest.TempPathFactory) -> Reproduction:
    folder = tmp_path_factory.mktemp("wrht") / "new"
    return Reproduction(wrht.reproduce(folder, quick=True), folder)


# Reference, sections 2.1 to 2.5 and 3: id, the paper's value, what is true, verdict.
OPTREE_FINDINGS = [
    ("table1.ring", 1023, 1023, "reproduced"),
    ("table1.neighbour_exchange", 512, 512, "reproduced"),
    ("table1.wrht", 259, 259, "conditional"),
    ("table1.wrht.printed_formula", 259, 16, "refuted"),
    ("table1.wrht.constructed", 259, 1041, "refuted"),
    ("table1.one_stage", 128, 2048, "refuted"),
    ("table1.optree", 70, 70, "reproduced"),
    ("table1.optree.depth", 7, 7, "reproduced"),
    ("table1.optree.constructed", 70, 72, "refuted"),
    ("example16.one_stage", 16, 16, "reproduced"),
    ("example16.two_stages", 12, 12, "reproduced"),
    ("example16.three_stages", 16, 14, "refuted"),
    ("example16.three_stages.theorem1", 16, 13, "refuted"),
    ("example16.neighbour_exchange", None, 8, "refuted"),
    ("example16.ring_bidirectional", None, 8, "refuted"),
    ("fig4.best_depth.1024", 7, "6 and 7", "reproduced"),
    ("fig4.best_depth.2048", 7, "7", "reproduced"),
    ("fig4.best_depth.4096", 8, "8", "reproduced"),
    ("fig4.shape.512", "flat, then rising", "32, 32, 33, 34, 36", "refuted"),
    ("fig4.shape.1024", "falling, flat, then rising", "72, 70, 70, 72, 74", "reproduced"),
    ("equation3.1024", 70, 76, "refuted"),
    ("theorem3.proof.1024", 70, 26, "refuted"),
    ("reductions.ranks.wrht", 56.36, 56.371, "reproduced"),
    ("reductions.ranks.ring", 92.76, 92.768, "reproduced"),
    ("reductions.ranks.neighbour_exchange", 85.54, 85.547, "reproduced"),
    ("reductions.wavelengths.wrht", 88.06, 88.070, "reproduced"),
    ("reductions.wavelengths.ring", 95.84, 95.846, "reproduced"),
    ("reductions.wavelengths.neighbour_exchange", 91.69, 91.699, "reproduced"),
    ("reductions.headline.wrht", 72.21, 72.22, "reproduced"),
    ("reductions.headline.ring", 94.30, 94.307, "reproduced"),
    ("reductions.headline.neighbour_exchange", 88.58, 88.623, "reproduced"),
    ("reductions.journal.1024.wrht", 72.97, 72.973, "reproduced"),
    ("reductions.journal.1024.ring", 93.15, 93.157, "reproduced"),
    ("reductions.journal.1024.neighbour_exchange", 86.32, 86.328, "reproduced"),
    ("reductions.journal.ranks.wrht", 42.27, 42.278, "reproduced"),
    ("reductions.journal.ranks.ring", 92.74, 92.743, "reproduced"),
    ("reductions.journal.ranks.neighbour_exchange", 85.49, 85.498, "reproduced"),
    ("reductions.ranks.case_sets", None, 1, "conditional"),
    ("reductions.wavelengths.case_sets", None, 1, "conditional"),
    ("reductions.4096.wrht", "OpTree needs far fewer steps", -31.27, "refuted"),
]
