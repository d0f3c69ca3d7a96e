"""Helpers of several test files: the command line run in this process, and small fabrics."""

from __future__ import annotations

import json
import os
import random
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from opticoll import _core, errors, reference
from opticoll.cli import progress
from opticoll.cli.main import main

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ALL_CASES = os.environ.get("OPTICOLL_CASES") == "all"
"""True if tests run every case: `make validate` sets the variable."""

BROAD = "slow and broad: `make validate` runs it"
broad = pytest.mark.skipif(not ALL_CASES, reason=BROAD)
"""Reason to skip a test whose claim other tests of `make test` cover on fewer cases."""

T = TypeVar("T")


def some_of(cases: Iterable[T], step: int) -> list[T]:
    """Returns each `step`-th of many cases, from the first on; all cases in `make validate`."""
    return list(cases)[:: 1 if ALL_CASES else step]


RING = "wdm_ring:ranks=16,wavelengths=2"
"""The example of the OpTree paper."""


def wiring_of(fabric: _core.Fabric) -> list[tuple[int, int, bool]]:
    """Returns the links of a fabric for the reference verifier."""
    ends = fabric.link_ends or []
    return [(*own, "<->" in name) for own, name in zip(ends, fabric.link_names, strict=True)]


def routes_of(plan: _core.Plan) -> dict[tuple[int, int], list[int]]:
    """Returns the fabric's routes of all multicasts and aggregations, for the verifier."""
    names = ("source", "destination", "action")
    columns = zip(*(plan.columns()[name].tolist() for name in names), strict=True)
    ends = {(source, destination) for source, destination, action in columns if action > 1}
    return {pair: plan.fabric.route(*pair) for pair in ends}


def proved(plan: _core.Plan) -> None:
    """Checks that both verifiers find nothing wrong."""
    assert plan.verify() == []
    wiring, routes = wiring_of(plan.fabric), routes_of(plan)
    assert reference.verify_text(plan.to_text(), wiring, routes) == []


@dataclass(frozen=True)
class Finished:
    """A command that has run."""

    code: int
    out: str
    err: str


Run = Callable[..., Finished]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs `opticoll` with arguments in this process."""
    # Progress that a slow machine prints to standard error is not part of an answer.
    monkeypatch.setattr(progress, "LINE_S", threading.TIMEOUT_MAX)

    def run_in_process(*arguments: str | Path) -> Finished:
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Finished(code, captured.out, captured.err)

    return run_in_process


def answer(run: Run, *arguments: str | Path) -> Any:
    """Returns the JSON of a command."""
    finished = run(*arguments, "--json")
    assert finished.code == 0, finished.err
    return json.loads(finished.out)


@pytest.fixture
def plan_file(tmp_path: Path) -> Path:
    """Writes a plan of `optree:radices=4x4` on 16 ranks with 2 wavelengths."""
    import opticoll

    path = tmp_path / "tree.plan"
    opticoll.write_plan(opticoll.plan("all_gather", RING, "optree:radices=4x4"), path)
    return path


def core_kinds(text: str) -> set[str]:
    """Returns the kinds of violations that the compiled core finds in a plan's text."""
    return {violation.kind for violation in _core.Plan.from_text(text).verify()}


def reference_kinds(text: str) -> set[str]:
    """Returns the kinds of violations that the reference verifier finds in a plan's text."""
    return {problem.kind for problem in reference.verify(reference.read(text))}


def check_both_prove(text: str) -> None:
    """Checks that neither verifier finds a violation in a plan's text."""
    assert core_kinds(text) == set()
    assert reference_kinds(text) == set()


def compare_mutants(
    text: str,
    mutate: Callable[[str, random.Random], str],
    changes: Iterable[int],
    *,
    sound: bool = True,
) -> list[set[str]]:
    """Returns the violations of a plan's mutants, which both verifiers find alike.

    Both verifiers prove the plan itself if it is `sound`. `mutate` changes each mutant `changes`
    times; both readers refuse the same mutants.
    """
    if sound:
        check_both_prove(text)
    generator = random.Random(7)
    found = []
    for count in changes:
        mutant = text
        for _ in range(count):
            mutant = mutate(mutant, generator)
        try:
            expected = reference_kinds(mutant)
        except reference.NotAPlan:
            with pytest.raises(errors.OpticollError):
                _core.Plan.from_text(mutant)
            continue
        assert core_kinds(mutant) == expected, mutant
        found.append(expected)
    return found


def written_study(folder: Path, text: str, name: str = "study.yaml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """Collects the figures that are drawn, laid out, in place of files."""
    from opticoll.plot import output

    figures: list[Figure] = []

    def keep(figure: Figure, _: Path) -> None:
        figure.draw_without_rendering()
        figures.append(figure)

    monkeypatch.setattr(output, "save", keep)
    return figures
