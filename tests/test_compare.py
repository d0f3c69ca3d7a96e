"""The comparison of two revisions: cases, kinds of differences, and what is accepted."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import compare
import sides
from opticoll import _core
from opticoll.commands import COMMANDS

if TYPE_CHECKING:
    from collections.abc import Mapping

FOLDER = Path(__file__).parents[1] / "validation" / "compare"
CASES = compare.cases((FOLDER / "cases.txt").read_text(encoding="utf-8"))
CASE = "plan all_gather --fabric torus:dims=4x4"


def result(rows: Any = None, code: int = 0, files: Mapping[str, Any] | None = None) -> Any:
    return compare.Result([code], rows, "", files or {})


def one(before: Any, now: Any) -> Any:
    """Returns the only difference between two results."""
    (found,) = compare.differences(CASE, before, now)
    return found


def test_braces_stand_for_a_line_with_each() -> None:
    text = "# comment\n\na {b|c} {d|e f}\n"
    assert compare.cases(text) == ["a b d", "a b e f", "a c d", "a c e f"]


def test_no_case_stands_twice() -> None:
    assert len(CASES) == len(set(CASES))


@pytest.mark.parametrize(
    "kind",
    ["algorithms", "collectives", "fabrics", "policies", "simulators", "start_rules"],
)
def test_every_name_has_a_case(kind: str) -> None:
    names = {record["name"] for record in _core.records(kind)}
    assert names - {word for case in CASES for word in re.split(r"[ :=,+]", case)} == set()


def test_every_command_has_a_case() -> None:
    assert {step.split()[0] for case in CASES for step in case.split(" && ")} == set(COMMANDS)


@pytest.mark.parametrize(
    ("before", "now", "kind", "field"),
    [
        ({"verified": True}, {"verified": False}, "verdict", "verified"),
        ({"violations": []}, {"violations": [{"kind": "race"}]}, "verdict", "violations.0"),
        ([{"time_ps": 1000}], [{"time_ps": 1006}], "slower", "0.time_ps"),
        ([{"time_ps": 1000}], [{"time_ps": 1004}], "data", "0.time_ps"),
        ([{"time_ps": 1000}], [{"time_ps": 999}], "faster", "0.time_ps"),
        ({"steps": 3}, {"steps": 4}, "data", "steps"),
        ({"steps": 3}, {"steps": None}, "data", "steps"),
        ({"a": {"b": [1, 2]}}, {"a": {"b": [1]}}, "data", "a.b.1"),
        ({"x": 1.0}, {"x": 1.0 + 1e-6}, "data", "x"),
        ({"x": True}, {"x": 1}, "data", "x"),
    ],
)
def test_differences_are_of_a_kind_and_name_the_field(
    before: Any, now: Any, kind: str, field: str
) -> None:
    found = one(result(before), result(now))
    assert (found.kind, found.field) == (kind, field)


def test_rows_with_names_are_compared_by_name_and_rounding_is_no_difference() -> None:
    ring, tree = {"name": "ring", "x": 0.1 + 0.2}, {"name": "tree", "x": 1}
    found = one(result([ring]), result([tree, {"name": "ring", "x": 0.3}]))
    assert (found.field, found.before) == ("tree", compare.ABSENT)


def test_rows_of_studies_are_compared_by_point() -> None:
    before, now = {"point": 26, "time_ps": 1}, {"point": 44, "time_ps": 9}
    kinds = [each.kind for each in compare.differences(CASE, result([before]), result([now]))]
    assert kinds == ["data", "data"]


def test_exit_codes_are_compared_first() -> None:
    assert one(result({"steps": 3}), result(None, code=2)).kind == "exit code"
    # A case that the harness could not finish is never equal.
    assert one(result(code=-14), result(code=-14)).kind == "exit code"


def test_long_texts_are_shown_from_where_they_differ() -> None:
    before, now = "a" * 50 + " slow " + "c" * 50, "a" * 50 + " fast " + "c" * 50
    assert compare.shown(before, now) == [
        f"...aaaaaaaaa {word} " + "c" * 39 + "..." for word in ("slow", "fast")
    ]


def test_files_are_compared_by_content() -> None:
    found = one(result(files={"a.plan": "x\ny\n"}), result(files={"a.plan": "x\nz\n"}))
    assert str(found) == "file a.plan: line 2 `y` -> `z`"
    assert one(result(files={"a": "x\n"}), result(files={"a": "x"})).kind == "data"
    assert one(result(files={"a": "x"}), result()).now == compare.ABSENT
    page = one(result(files={"p": {"parts": [1]}}), result(files={"p": {"parts": [2]}}))
    assert page.field == "file p.parts.0"


@pytest.mark.parametrize(
    ("before", "now", "kinds"),
    [
        ((1.0, 0), (1.3, 0), ["work"]),
        ((1.0, 0), (1.1, 0), []),
        ((0.1, 0), (0.19, 0), []),
        ((0.0, 10**8), (0.0, 2 * 10**8), ["memory"]),
        ((0.0, 10**7), (0.0, 5 * 10**7), []),
    ],
)
def test_work_and_memory_count_above_a_floor(
    before: tuple[float, int], now: tuple[float, int], kinds: list[str]
) -> None:
    found = compare.measured(CASE, sides.Measured(0, *before), sides.Measured(0, *now))
    assert [each.kind for each in found] == kinds


def test_patterns_accept_data_but_nothing_worse() -> None:
    found = compare.differences(
        CASE, result({"time_ps": 100, "steps": 3}), result({"time_ps": 200, "steps": 4})
    )
    wide = compare.Accepted("plan *", "*", "wanted")
    known, unused = compare.accept(found, [wide])
    assert {each.field: each.fails for each in known} == {"time_ps": True, "steps": False}
    exact = compare.Accepted("plan *", "time_ps", "wanted, too")
    never = compare.Accepted("bound *", "*", "of a change that has landed")
    known, unused = compare.accept(found, [wide, exact, never])
    assert not any(each.fails for each in known)
    assert unused == [never]
    assert compare.summary(3, known) == (
        "3 cases: 2 equal, 1 differ (slower 1, data 1), of which 1 are accepted"
    )


def test_faster_plans_do_not_fail() -> None:
    assert not one(result({"time_ps": 2}), result({"time_ps": 1})).fails


def test_table_begins_with_what_matters_most() -> None:
    kinds = ["memory", "data", "slower", "exit code", "verdict", "work", "faster"]
    found = [compare.Difference(f"case {kind}", kind, "field", 1, 2) for kind in kinds]
    lines = compare.table(found).splitlines()[::2]
    assert [line.partition("  ")[0] for line in lines] == list(compare.KINDS)


def test_old_names_of_cases_stand_in_the_list_of_what_is_accepted(tmp_path: Path) -> None:
    path = tmp_path / "accepted.yaml"
    path.write_text("renamed:\n  - {now: packed_trees, before: tree_packing}\n")
    accepted, renamed = compare.entries_of(path)
    assert accepted == []
    assert compare.lines_before({"0": "plan packed_trees"}, renamed) == {"0": "plan tree_packing"}
    path.write_text("accepted:\n  - {case: '*', field: steps}\n")
    with pytest.raises(sides.CompareError, match="reason"):
        compare.entries_of(path)


def test_the_list_of_what_is_accepted_is_read() -> None:
    compare.entries_of(FOLDER / "accepted.yaml")


@pytest.mark.parametrize(("now", "code"), [(100, 0), (101, 1), (99, 0)])
def test_exit_code_says_whether_all_is_equal_or_accepted(
    now: int, code: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    used = [{"000": sides.Measured(0, 1.0, 0)}] * 2
    found = compare.differences(CASE, result({"time_ps": 100}), result({"time_ps": now}))
    monkeypatch.setattr(compare, "compare", lambda *_: ({"000": CASE}, found, [], used))
    table = tmp_path / "table.json"
    monkeypatch.setattr(sys, "argv", ["compare.py", "HEAD", "--json", str(table)])
    assert compare.main() == code
    assert len(json.loads(table.read_text())["differences"]) == (now != 100)


def test_an_unknown_revision_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["compare.py", "no-such-revision"])
    assert compare.main() == 2
    assert "there is no revision `no-such-revision`" in capsys.readouterr().err
