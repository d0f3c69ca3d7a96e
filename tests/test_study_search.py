"""Searches of studies find what computing every point would, and compute less."""

from __future__ import annotations

import itertools
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import opticoll
from opticoll.errors import ConfigError, UsageError
from opticoll.formats.document import read_fields
from opticoll.study import document
from opticoll.study.expression import Expression, Quantity
from opticoll.study.search import Candidate, Found, Optimise, ValueOf, check, renamed, rounds
from support import Run, written_study


def wanted(**fields: Any) -> Optimise:
    def refuse(place: Any, problem: str) -> ConfigError:
        return ConfigError(f"{place}: {problem}")

    return check(read_fields(Optimise, renamed(fields), refuse))


def searched(
    looked_for: Optimise, points: list[dict[str, Any]], time: Any
) -> tuple[list[tuple[dict[str, Any], str]], int]:
    """Searches where a point takes `time(point)`; returns the finds, and the points computed."""
    proposed: list[dict[str, Any]] = []

    def value_of(expression: Expression, place: int) -> Any:
        taken = time(proposed[place])
        row = {**proposed[place], "time_s": taken}
        return None if taken is None else expression.value(row.__getitem__)

    search = rounds(looked_for, [Candidate(one, one.__getitem__) for one in points])
    give: ValueOf | None = None
    while True:
        try:
            proposed += search.send(give)  # type: ignore[arg-type]
        except StopIteration as end:
            found: list[Found] = end.value
            return [
                (proposed[one.place], ": ".join([one.what, ", ".join(one.told)]).rstrip(": "))
                for one in found
            ], len(proposed)
        give = value_of


def test_the_cheapest_point_that_meets_a_time_is_found_without_computing_dearer_ones() -> None:
    points = [{"wavelengths": count, "size": size} for size in (1, 2) for count in range(64, 0, -1)]
    looked_for = wanted(cheapest="wavelengths", meets="time_s <= 1/10", for_each=["size"])
    found, computed = searched(
        looked_for, points, lambda point: Fraction(point["size"], point["wavelengths"])
    )
    assert found == [
        ({"wavelengths": 10, "size": 1}, "cheapest for size = 1: wavelengths = 10, time_s = 0.1"),
        ({"wavelengths": 20, "size": 2}, "cheapest for size = 2: wavelengths = 20, time_s = 0.1"),
    ]
    assert computed <= 10 + 20 + 2 * 8


def test_nothing_is_found_where_nothing_meets_the_time() -> None:
    points = [{"wavelengths": count} for count in range(1, 20)]
    looked_for = wanted(cheapest="wavelengths", meets="time_s < 1")
    assert searched(looked_for, points, lambda point: 2) == ([], 19)
    assert searched(looked_for, points, lambda point: None) == ([], 19)


def test_a_cost_that_depends_on_results_is_minimised_over_all() -> None:
    points = [{"wavelengths": count} for count in range(1, 9)]
    looked_for = wanted(cheapest="wavelengths * time_s", meets="time_s < 20")
    found, computed = searched(
        looked_for, points, lambda point: 16 if point["wavelengths"] == 1 else 9
    )
    assert found == [({"wavelengths": 1}, "cheapest: wavelengths * time_s = 16, time_s = 16")]
    assert computed == 8


def test_a_pareto_front_has_every_point_that_no_other_beats() -> None:
    points = [
        {"cost": cost, "number": number} for cost, number in itertools.product(range(9), range(9))
    ]

    def time(point: dict[str, Any]) -> int:
        return int(point["cost"] * 7 + point["number"] * 5) % 23

    found, computed = searched(wanted(pareto=["cost", "time_s"]), points, time)
    every = [(one["cost"], time(one)) for one in points]
    front = {
        (cost, took) for cost, took in every
        if not any(a <= cost and b <= took and (a, b) != (cost, took) for a, b in every)
    }  # fmt: skip
    assert {(one["cost"], time(one)) for one, _ in found} == front
    assert computed == 81


@pytest.mark.parametrize("crossing", [2, 3, 17, 500, 999, 1000])
def test_a_break_even_among_whole_numbers_is_exact(crossing: int) -> None:
    looked_for = wanted(
        break_even="wavelengths", of={"fabric": "ring"}, against={"fabric": "tree"},
        **{"from": 1, "to": 1000},
    )  # fmt: skip
    found, computed = searched(
        looked_for,
        [{}],
        lambda point: (
            1 if point["fabric"] == "tree" else Fraction(crossing, int(point["wavelengths"]))
        ),
    )
    (first, words), (second, _) = found
    assert first == {"fabric": "ring", "wavelengths": str(crossing)}
    assert second["fabric"] == "tree"
    ends = f"from wavelengths = {crossing}, not yet at {crossing - 1}"
    assert words == f"break-even: `of` is not worse than `against` {ends}, time_s = 1"
    assert computed <= 4 + 2 * 16


def test_a_break_even_of_a_time_is_within_its_share() -> None:
    looked_for = wanted(
        break_even="setup", of={"fabric": "ring"}, against={"fabric": "tree"}, within="0.1%",
        axis_of="of", **{"from": "1us", "to": "10ms"},
    )  # fmt: skip
    crossing = Fraction(123456, 10**9)

    def time(point: dict[str, Any]) -> Any:
        if point["fabric"] == "tree":
            assert "setup" not in point
            return crossing
        value = Expression("setup").value(point.__getitem__)
        assert isinstance(value, Quantity)
        return value.number

    ((point, _), _), _ = searched(looked_for, [{}], time)
    found = Expression("setup").value(point.__getitem__).number
    assert crossing < found <= crossing * Fraction(1002, 1000)


def test_sides_that_never_change_places_are_said() -> None:
    looked_for = wanted(
        break_even="size", of={"a": 1}, against={"a": 2}, **{"from": "1KiB", "to": "1GiB"}
    )
    ((_, words),), _ = searched(looked_for, [{}], lambda point: point["a"])
    assert words == "no break-even: `of` is not worse than `against` at both ends"


SIDES = {"break_even": "a", "of": {"b": 1}, "against": {"b": 2}}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "give one of"),
        ({"cheapest": "a", "pareto": ["a", "b"]}, "give one of"),
        ({"cheapest": "a"}, "needs a condition"),
        ({"pareto": ["a"]}, "two expressions"),
        ({"break_even": "a"}, "needs from, to, of and against"),
        ({**SIDES, "from": "1ms", "to": "1us"}, "is less"),
        ({**SIDES, "from": "0", "to": "1"}, "above 0"),
    ],
)  # fmt: skip
def test_incomplete_searches_are_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        wanted(**fields)


RECONFIGURATION = """
study: reconfiguration
command: simulate
options: {collective: all_reduce, size: 1MiB, algorithm: ring}
optimise:
  break_even: fabric.reconfiguration
  from: 1us
  to: 10ms
  of: {fabric: "wdm_ring:ranks=8,wavelengths=2", policy: every_step}
  against: {fabric: "fat_tree:down=4x2,up=1x2,rate=10Gb/s"}
  axis_of: of
"""


def test_a_break_even_is_a_verified_row_of_the_store(run: Run, tmp_path: Path) -> None:
    study = written_study(tmp_path, RECONFIGURATION)
    row = opticoll.sweep(study, jobs=1)
    assert [one.what.partition(":")[0] for one in row.found] == [
        "break-even", "the other side of the break-even",
    ]  # fmt: skip
    found = opticoll.results(tmp_path / "study.sqlite", where="found != ''")
    assert len(found) == 2
    ring, tree = found
    assert ring["verified"]
    assert tree["verified"]
    assert tree["time_s"] < ring["time_s"] <= 1.02 * tree["time_s"]
    assert opticoll.sweep(study, jobs=1).computed == 0
    shown = run("results", tmp_path / "study.sqlite", "--found")
    assert "2 rows" in shown.out
    with pytest.raises(UsageError, match="has no shards"):
        opticoll.sweep(study, shard="1/2")


def test_a_search_in_a_study_file_is_checked_with_its_line(tmp_path: Path) -> None:
    text = "study: s\ncommand: simulate\noptimise: {cheapest: wavelengths}\n"
    with pytest.raises(ConfigError, match=r"line 3, optimise: `cheapest` needs a condition"):
        document.read(written_study(tmp_path, text))
