"""The numbers of the page on other tools are those of the files and tests that it names."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest
import test_optima

import opticoll

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "comparison.md").read_text(encoding="utf-8")


def rows(section: str) -> Iterator[list[str]]:
    """Yields the cells of the tables of a section, without headings."""
    text = PAGE.split(f"\n## {section}\n")[1].split("\n## ")[0]
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and any(character.isdigit() for character in cells[-1]):
            yield cells


def test_simgrid_compares_as_many_times_as_are_kept() -> None:
    with (ROOT / "docs" / "figures" / "validation_cases.csv").open(encoding="utf-8") as file:
        cases = list(csv.DictReader(file))
    ends = sum(int(case["ends"]) for case in cases)
    largest = max(float(case["difference"]) for case in cases)
    text = " ".join(PAGE.split())
    assert f"{len(cases)} random cases" in text
    assert f"{ends:,} times in all" in text
    assert f"of the {ends:,} times is {largest:.1e}".replace("e-0", "e-") in text


def test_codes_agrees_as_often_as_its_own_page_says() -> None:
    agreement = re.search(r"(\d+) of (\d+) values agree", PAGE)
    own = (ROOT / "docs" / "dragonfly.md").read_text(encoding="utf-8")
    assert agreement
    assert agreement[0] in own
    assert f"| {agreement[1]} of {agreement[2]} values within" in PAGE


def test_times_of_astra_sim_are_those_of_the_tests() -> None:
    tests = (ROOT / "crates/tests/it/astra.rs").read_text(encoding="utf-8").replace("_", "")
    times = [cells[-1].replace(",", "") for cells in rows("ASTRA-sim")]
    assert len(times) == 6
    assert [time for time in times if not re.search(rf"\b{time}\b", tests)] == []


@pytest.mark.parametrize("cells", list(rows("TACOS")), ids=lambda cells: cells[0])
def test_bounds_and_plans_beside_tacos_are_computed(cells: list[str]) -> None:
    (family, dims), (latency, rate) = cells[0].split(), cells[1].split(",")
    options = {"rate": rate.replace(" ", ""), "latency": latency.replace(" ", "")}
    fabric = opticoll.Fabric(family, dims=dims, **options)
    size = opticoll.parse_size(cells[2].replace(" ", "")) // fabric.ranks
    row = opticoll.measure(opticoll.plan("all_gather", fabric, "auto", size=size), size)
    assert row.verified
    test, bound, plan = (cell.replace(",", "") for cell in cells[3:])
    assert row.bound_time_s is not None
    assert f"{row.bound_time_s * 1e6:.1f}" == bound
    assert f"{row.time_s * 1e6:.1f}" == plan
    assert float(test) >= float(bound)


def test_optima_beside_forestcoll_are_those_of_the_tests() -> None:
    (mark,) = test_optima.test_the_bound_of_an_all_gather_is_its_optimum.pytestmark  # type: ignore[attr-defined]
    tested = [case.values[1] for case in mark.args[1]]
    shown = [
        (Fraction(optimum), bound)
        for *_, optima, bounds in rows("ForestColl")
        for optimum, bound in zip(
            optima.removesuffix(" s").split(", "), bounds.split(", "), strict=True
        )
    ]
    assert [optimum for optimum, _ in shown] == tested
    for optimum, bound in shown:
        digits = 10 ** len(bound.partition(".")[2])
        assert Fraction(bound) == Fraction(int(optimum * digits), digits)
