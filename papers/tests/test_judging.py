"""Judging of papers: computed values do not depend on the printed values."""

from __future__ import annotations

import dataclasses
import json
import re
import shlex
from pathlib import Path

import pytest

import opticoll_papers as papers
from opticoll.cli.main import app
from opticoll_papers import common
from opticoll_papers.claims import load
from opticoll_papers.command import reproduce
from opticoll_papers.common import Results, ratio, share
from opticoll_papers.judging import (
    MEANINGS,
    AtLeast,
    AtMost,
    Between,
    Claim,
    Computed,
    Equal,
    NotDone,
    NotStated,
    Rounded,
    Used,
    Value,
    Within,
    claim_verdicts,
    judge,
    judge_all,
)
from opticoll_papers.page import answer_of, answer_page, filled
from support import Run, broad

FOLDER = Path(papers.__file__).parent
ROOT = Path(__file__).parents[2]
PAPERS = list(papers.PAPERS)


def a_claim(judge: object, printed: Value | None = None, **more: object) -> Claim:
    return Claim(id="x", where="", says="", unit="", judge=judge, printed=printed, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("criterion", "printed", "computed", "verdict"),
    [
        (Equal(), 70, 70, "reproduced"),
        (Equal(), 70, 72, "refuted"),
        (Equal(), (1, 2), (1, 2), "reproduced"),
        (Equal(), (1, 2), (2, 1), "refuted"),
        (Used(), 64, 64, "used"),
        (Used(), 64, 63, "refuted"),
        (Rounded(2), 92.76, 92.7649, "reproduced"),
        (Rounded(2), 92.76, 92.7651, "refuted"),
        (Rounded(1), (6.5, 6.6), (6.54, 6.64), "reproduced"),
        (Rounded(1), (6.5, 6.6), (6.54,), "refuted"),
        (Within(0.02, "as the paper's own spread", share=True), 2.0, 2.04, "reproduced"),
        (Within(0.02, "as the paper's own spread", share=True), 2.0, 2.05, "refuted"),
        (AtLeast(10, "less is noise"), None, 10, "claim_holds"),
        (AtLeast(10, "less is noise"), None, 9.9, "refuted"),
        (AtMost(10, "more is not low"), None, 10.1, "refuted"),
        (Between(1.7, 2.3, "twice"), None, (1.8, 2.2), "claim_holds"),
        (Between(1.7, 2.3, "twice"), None, (1.5, 2.2), "refuted"),
        (NotDone("no such machine"), 5, 5, "not_done"),
        (NotStated("the paper names no rate"), 5, 5, "not_reproducible"),
    ],
)
def test_a_criterion_gives_its_verdict(
    criterion: object, printed: Value | None, computed: Value, verdict: str
) -> None:
    judgement = judge(a_claim(criterion, printed), Computed(computed))
    assert judgement.verdict == verdict
    assert judgement.criterion


def test_what_rests_on_printed_values_or_readings_is_never_reproduced() -> None:
    assert judge(a_claim(Equal(), 5, uses=("y",)), Computed(5)).verdict == "consistent"
    assert judge(a_claim(Equal(), 5, reading="w = 256"), Computed(5)).verdict == "conditional"
    assert judge(a_claim(Equal(), 5, uses=("y",)), Computed(6)).verdict == "refuted"
    both = a_claim(Equal(), 5, uses=("y",), reading="w = 256")
    assert judge(both, Computed(5)).verdict == "conditional"


def test_what_fails_under_a_reading_or_by_chance_is_not_refuted() -> None:
    assert judge(a_claim(Equal(), 5, reading="w = 256"), Computed(6)).verdict == "undecided"
    assert judge(a_claim(Equal(), 5), Computed(5, by_chance=True)).verdict == "undecided"
    assert judge(a_claim(Equal(), 5), Computed(6, by_chance=True)).verdict == "undecided"


def test_the_page_says_where_a_printed_value_comes_from_and_who_disputes_a_verdict() -> None:
    judgement = judge(
        a_claim(Equal(), 5, evaluates="Eq. 2 at N = 4.", dispute="A referee counts 6."), Computed(5)
    )
    assert "follows from Eq. 2 at N = 4." in judgement.note
    assert "Disputed: A referee counts 6." in judgement.note
    assert judge(a_claim(Equal(), 5), None).verdict == "left_out"
    assert judge(a_claim(Equal(), 5), None).verdict == "left_out"


def test_a_study_that_was_stopped_is_judged_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(common, "load", lambda name: (a_claim(AtLeast(1, "more")),))
    parts = {"only": lambda: {"x": Computed(2, "A note.", by_chance=True)}}
    first = Results(tmp_path, "oddl").compute(parts, None)
    again = Results(tmp_path, "oddl").compute({"only": dict}, None)
    assert again.computed == first.computed
    assert again.findings == first.findings


def test_what_is_no_claim_is_not_computed() -> None:
    with pytest.raises(KeyError, match="no claim of oddl: y"):
        judge_all((a_claim(Equal(), 5),), {"y": Computed(5)}, "oddl")


def test_what_computes_sees_printed_values_through_results_only() -> None:
    for path in FOLDER.glob("*/*.py"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"import .*\b(load|Claim)\b|\.yaml|\.claims import", text), path


@pytest.mark.parametrize("paper", PAPERS)
def test_items_are_named_once_and_say_what_they_judge(paper: str) -> None:
    claims = load(paper)
    names = [claim.id for claim in claims]
    assert len(set(names)) == len(names)
    for claim in claims:
        assert claim.where, claim.id
        assert claim.says.endswith("."), claim.id
        assert set(claim.uses) <= set(names), claim.id
        compares = isinstance(claim.judge, Equal | Rounded | Within)
        assert not compares or claim.printed is not None, claim.id


@pytest.mark.parametrize("paper", PAPERS)
def test_commands_of_items_have_options_that_they_take(paper: str) -> None:
    for command in {claim.command for claim in load(paper)} - {""}:
        program, *words = shlex.split(command)
        assert program == "opticoll", command
        app.parse_args(words, exit_on_error=False, print_error=False)


@pytest.mark.parametrize(
    ("paper", "only", "count"),
    [("optree", "lemma1.ring", 2), ("oddl", "switches", 2), ("obs_grid", "mg.calls", 7)],
)
def test_only_the_claims_that_are_asked_for_are_computed(
    paper: str, only: str, count: int, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = run("reproduce", paper, "--only", only, "--json")
    findings = json.loads(done.out)["findings"]
    assert len(findings) == count
    assert all(one["id"].startswith(f"{only}.") for one in findings)
    assert all(one["computed"] is not None for one in findings)
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_claim_is_refused(run: Run) -> None:
    done = run("reproduce", "optree", "--only", "tabel1")
    assert done.code == 2
    assert "did you mean `table1`?" in done.err
    assert run("reproduce", "--only", "table1").code == 2


@broad
@pytest.mark.parametrize("paper", PAPERS)
def test_a_part_alone_computes_what_it_computes_among_all(paper: str, tmp_path: Path) -> None:
    whole = reproduce(paper, tmp_path / "whole", quick=True)
    first = {claim.part: claim.id for claim in reversed(load(paper)) if claim.id in whole.computed}
    for id in first.values():
        alone = reproduce(paper, tmp_path / id, quick=True, only=id)
        assert alone.computed[id] == whole.computed[id], id


@broad
@pytest.mark.parametrize("paper", PAPERS)
def test_a_quick_run_judges_as_the_full_one_or_leaves_out(paper: str, tmp_path: Path) -> None:
    text = (ROOT / "docs" / "papers" / f"{paper}-items.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\|.*\| (\w+) \|[^|]*\| \[([^]]+)\]\(#", text, re.MULTILINE)
    full = {id: verdict for verdict, id in rows}
    quick = reproduce(paper, tmp_path, quick=True)
    for one in quick.findings:
        assert one.verdict in (full[one.id], "left_out"), one.id


@broad
@pytest.mark.parametrize("paper", PAPERS)
def test_computed_numbers_stay_the_same_without_the_printed_ones(
    paper: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With changed printed values, only values that declare their use in `uses` may change."""
    quick = reproduce(paper, tmp_path / "quick", quick=True)
    claims = load(paper)
    used = {name for claim in claims for name in claim.uses}
    others = tuple(
        dataclasses.replace(claim, printed=_other(claim.printed, claim.id in used))
        for claim in claims
    )
    monkeypatch.setattr(common, "load", lambda name: others)
    without = reproduce(paper, tmp_path / "other", quick=True)
    resting = {claim.id for claim in claims if claim.uses}
    expected = {id: one for id, one in quick.computed.items() if id not in resting}
    assert {id: one for id, one in without.computed.items() if id not in resting} == expected
    assert expected


def _other(printed: Value | None, used: bool) -> Value | None:
    """Returns another value of the same type; close to the original value if it is used."""
    match printed:
        case tuple():
            return tuple(_other(one, used) for one in printed)  # type: ignore[misc]
        case int() | float():
            return printed * 1.01 if used else 3 * printed + 7
        case _:
            return None if printed is None else f"not {printed}"


@pytest.mark.parametrize("paper", PAPERS)
def test_the_committed_page_of_a_paper_has_its_items_as_they_are_claimed(paper: str) -> None:
    text = (ROOT / "docs" / "papers" / f"{paper}-items.md").read_text(encoding="utf-8")
    items = re.findall(r"^\|.*\| \[([^]]+)\]\(#", text, re.MULTILINE)
    assert items == [claim.id for claim in load(paper)], "run `make papers`"
    for claim in load(paper):
        judgement = judge(claim, None, paper)
        assert f": {judgement.criterion}." in text, claim.id
        assert judgement.claim.replace("|", "\\|") in text, claim.id


def test_the_page_of_papers_names_every_verdict_and_paper() -> None:
    text = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
    assert [verdict for verdict in MEANINGS if f"| `{verdict}` |" not in text] == []
    for page in (text, (ROOT / "README.md").read_text(encoding="utf-8")):
        assert [paper for paper in PAPERS if f"papers/{paper}.md" not in page] == []
        assert [paper for paper in PAPERS if answer_of(paper).question not in page] == []


@pytest.mark.parametrize("paper", PAPERS)
def test_the_page_of_a_paper_is_one_screen_with_the_values_of_its_items(paper: str) -> None:
    text = (ROOT / "docs" / "papers" / f"{paper}.md").read_text(encoding="utf-8")
    items = (ROOT / "docs" / "papers" / f"{paper}-items.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\|(?:[^|]*\|){3} ([^|]*) \|.*\[([^]]+)\]\(#", items, re.MULTILINE)
    findings = [
        dataclasses.replace(judge(a_claim(NotDone("")), None), id=id, computed=value)
        for value, id in rows
    ]
    answer = answer_of(paper)
    page_text = answer_page(
        papers.PAPERS[paper].title,
        answer,
        findings,
        figure=f"{paper}.svg",
        items=f"{paper}-items.md",
    )
    assert text == page_text, "run `make papers`"
    assert len(text.split()) <= 290
    assert len(answer.why) == 3
    assert (ROOT / "docs" / "papers" / f"{paper}.svg").exists()


def test_names_of_claims_in_an_answer_are_filled_in() -> None:
    values: dict[str, float | str | None] = {"a": 72, "b.c": "1, 2.3456", "d": 1023.0}
    assert filled("{a} slots, {b.c[1]}, {d}", values) == "72 slots, 2.35, 1,023"
    assert filled("{e}", {"e": 1.000172}) == "1.0002"
    with pytest.raises(KeyError):
        filled("{e}", values)


def test_a_claim_is_counted_once_whatever_its_readings() -> None:
    findings = [
        judge(a_claim(Equal(), 5, claim="c", reading="w = 8"), Computed(value)) for value in (6, 5)
    ]
    assert claim_verdicts(findings) == {"c": "conditional"}
    plain = judge(a_claim(Equal(), 5, claim="c"), Computed(6))
    assert claim_verdicts([*findings, plain]) == {"c": "refuted"}
    holds = judge(a_claim(Equal(), 5, claim="c"), Computed(5))
    assert claim_verdicts([*findings, holds]) == {"c": "reproduced"}
    assert claim_verdicts([holds, plain]) == {"c": "refuted"}


def test_a_paper_that_contradicts_itself_is_inconsistent() -> None:
    judgement = judge(a_claim(Equal(), 70, misses="inconsistent"), Computed(76))
    assert judgement.verdict == "inconsistent"


def test_what_agrees_because_of_an_open_choice_is_undecided() -> None:
    chosen = a_claim(Equal(), 5, undecided="the rate is chosen")
    assert judge(chosen, Computed(5)).verdict == "undecided"
    assert "Undecided: the rate is chosen." in judge(chosen, Computed(5)).note


def test_counts_of_draws_have_an_interval() -> None:
    # Wilson's 95 % interval for 61 of 100 is 0.512 to 0.700 (formula in Newcombe, 1998).
    low, high = share(61, 100).interval or (0, 0)
    assert (low, high) == pytest.approx((51.2, 70.0), abs=0.05)
    assert judge(a_claim(AtLeast(5, "some")), share(61, 100)).computed == 61.0
    same = ratio((0.50, 0.45), (100, 100))
    assert same.by_chance
    assert not ratio((1.0, 0.51), (100, 100)).by_chance


@pytest.mark.parametrize("paper", PAPERS)
def test_what_computes_takes_nothing_from_the_compiled_core(paper: str) -> None:
    files = sorted((FOLDER / paper).rglob("*.py"))
    assert files
    assert [path.name for path in files if re.search(r"\b_core\b", path.read_text("utf-8"))] == []
