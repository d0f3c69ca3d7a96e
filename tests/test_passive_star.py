"""Passive stars: both verifiers judge alike, and every command that times plans takes one."""

from pathlib import Path

import pytest

import opticoll
from support import Run, compare_mutants, with_another_number
from test_cli import run_json

STAR = "passive_star:ranks=6,wavelengths=3,transmitters=2,receivers=2"
ALGORITHMS = [
    ("all_gather", "direct:order=at_once"),
    ("all_to_all", "direct"),
    ("all_reduce", "direct"),
    ("reduce", "binomial"),
    ("scatter", "binomial"),
]


@pytest.mark.parametrize(("collective", "algorithm"), ALGORITHMS)
def test_both_verifiers_judge_changed_plans_alike(collective: str, algorithm: str) -> None:
    text = opticoll.plan(collective, STAR, algorithm).to_text()
    found = compare_mutants(text, with_another_number, [1, 2, 3] * 60)
    assert len(found) > 90
    assert {"collision", "ports", "wavelength_range"} & set().union(*found)


def test_commands_take_a_star(run: Run, tmp_path: Path) -> None:
    row = run_json(run, "plan", "plan", "all_gather", "--fabric", STAR, "--size", "64KiB")
    # Six blocks, of which a rank hears two at once.
    assert (row["steps"], row["bound_steps"], row["verified"]) == (3, 3, True)
    assert row["chosen"] == "direct:order=at_once"
    rows = run("compare", "all_reduce", "--fabric", STAR, "--size", "64KiB", "--figure",
               tmp_path / "compare.svg")  # fmt: skip
    assert rows.code == 0, rows.err
    shown = run("show", "all_gather", "--fabric", STAR, "--slot", "2")
    assert "4 > 0 1 2 3 5  wavelength 0" in shown.out
    drawn = run("show", "all_gather", "--fabric", STAR, "--view", "space_time", "--figure",
                tmp_path / "star.svg")  # fmt: skip
    assert drawn.code == 0, drawn.err
    by_link = run("simulate", "all_gather", "--fabric", STAR, "--per", "link")
    assert "wavelength 1" in by_link.out
    trained = run("train", "--model", "resnet50", "--batch", "64", "--fabric", STAR)
    assert trained.code == 0, trained.err
