"""The published reductions of communication time, and the cases that give the published numbers.

A reduction is the mean over cases of 1 - OpTree/baseline, in percent. If steps are equally long,
message size, rate and delay cancel out, so only the numbers of steps matter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import get_args

from opticoll_papers.common import Construct, Constructed, Results, TableRow
from opticoll_papers.judging import Computed
from opticoll_papers.optree.cases import BASELINES, BLOCK, Rounding, paper_steps

Case = tuple[int, int]
"""Case of the paper: ranks and wavelengths."""

Cases = tuple[Case, ...]

Measure = Callable[[Case, str], int]
"""Function that returns the compared quantity, steps or picoseconds, of an algorithm in a case."""

_NODES = tuple((ranks, 64) for ranks in (1024, 2048))
_NAMED = tuple((1024, wavelengths) for wavelengths in (96, 128))
_WAVELENGTHS = tuple((1024, wavelengths) for wavelengths in (64, 96, 128, 256))

AVERAGES: dict[str, Cases] = {"nodes": _NODES, "wavelengths": _WAVELENGTHS}
BY_PLANS = ("ring", "neighbour_exchange")
"""Baselines for which the paper defines a plan."""

SEARCHED: dict[str, Cases] = {
    "nodes": tuple((ranks, 64) for ranks in (128, 256, 512, 1024, 2048, 4096)),
    "wavelengths": tuple(
        (1024, wavelengths)
        for wavelengths in (4, 8, 16, 24, 32, 48, 64, 80, 96, 112, 128, 160, 192, 256, 512)
    ),
}
"""Cases by baseline, among which sets of cases that give the printed numbers are sought."""

LARGEST_SET = 5
CUT = 0.02
"""Maximum loss in percentage points if each case and the mean are cut after two digits."""


def reproduce(results: Results, constructed: Construct, *, quick: bool) -> dict[str, Computed]:
    """Computes the reductions; writes reductions.csv and case_sets.csv."""
    values: dict[str, Computed] = {}
    rows: list[TableRow] = []
    for id, cases in AVERAGES.items():
        for baseline in BASELINES:
            computed = _mean(cases, baseline, _paper_steps)
            notes = [
                f"Steps {_told(cases, baseline, _paper_steps)}.",
                f"If digits after the second are cut off in each case and in the mean, it is "
                f"{_cut(cases, baseline):.2f} %.",
            ]
            if id == "wavelengths":
                named = _mean(_NAMED, baseline, _paper_steps)
                notes.append(f"With 96 and 128 alone it would be {named:.2f} %.")
            else:
                fewest = _mean(cases, baseline, _fewest_steps)
                notes.append(f"With k = 7 and 155 steps at 2048 nodes it would be {fewest:.2f} %.")
            time = None
            if baseline in BY_PLANS and not (quick and id == "nodes"):
                time = _by_plans(constructed, cases, baseline)
                notes.append(f"By verified plans, blocks of 4 MiB: {time:.2f} %.")
            values[f"reductions.{id}.{baseline}"] = Computed(computed, " ".join(notes))
            rows.append(
                {
                    "average": id,
                    "baseline": baseline,
                    "formula": round(computed, 4),
                    "cases": _spell(cases),
                    "constructed_time": None if time is None else round(time, 4),
                }
            )
    results.write("reductions", rows)
    return values | _from_printed(results) | _searched(results) | _overtaken()


def _by_plans(constructed: Construct, cases: Cases, baseline: str) -> float:
    plans = [_plan(constructed, case, name) for case in cases for name in ("optree", baseline)]
    assert all(plan.verified for plan in plans)
    return _mean(cases, baseline, lambda *key: _plan(constructed, *key).times_ps[BLOCK])


def _from_printed(results: Results) -> dict[str, Computed]:
    """Computes means of the printed averages, and of averages by steps."""
    computed = {}
    for baseline in BASELINES:
        printed = [results.printed(f"reductions.{id}.{baseline}") for id in AVERAGES]
        steps = [_mean(cases, baseline, _paper_steps) for cases in AVERAGES.values()]
        computed[f"reductions.headline.{baseline}"] = Computed(
            round(sum(printed) / 2, 6),
            f"Mean of {printed[0]} and {printed[1]}; by step counts {sum(steps) / 2:.3f} %.",
        )
    return computed


def case_sets(
    printed: Sequence[float], candidates: Sequence[Case], rounding: Rounding
) -> list[tuple[Case, ...]]:
    """Returns all sets of up to five candidates whose mean reductions equal the printed three."""
    reductions = {
        case: [
            100 * (1 - paper_steps("optree", *case, rounding) / paper_steps(name, *case))
            for name in BASELINES
        ]
        for case in candidates
    }
    sets = []
    for count in range(1, LARGEST_SET + 1):
        for chosen in combinations(candidates, count):
            means = (
                sum(reductions[case][index] for case in chosen) / count
                for index in range(len(BASELINES))
            )
            if all(
                0 <= mean - value + 1e-9 <= CUT for mean, value in zip(means, printed, strict=True)
            ):
                sets.append(chosen)
    return sets


def _mean(cases: Cases, baseline: str, measure: Measure) -> float:
    """Returns the mean of 1 - OpTree/baseline over cases, in percent."""
    return (
        100 * sum(1 - measure(case, "optree") / measure(case, baseline) for case in cases)
    ) / len(cases)


def _cut(cases: Cases, baseline: str) -> float:
    """Returns the mean of percentages; each percentage and the mean are cut after two digits."""
    each = [
        10_000
        * (_paper_steps(case, baseline) - _paper_steps(case, "optree"))
        // _paper_steps(case, baseline)
        for case in cases
    ]
    return sum(each) // len(cases) / 100


def _told(cases: Cases, baseline: str, measure: Measure) -> str:
    """Returns in words OpTree's value and the baseline's value in each case."""
    return ", ".join(
        f"{measure(case, 'optree')} against {measure(case, baseline)} at (N, w) = {case}"
        for case in cases
    )


def _fewest_steps(case: Case, algorithm: str) -> int:
    return paper_steps(algorithm, *case, "best")


def _paper_steps(case: Case, algorithm: str) -> int:
    return paper_steps(algorithm, *case)


def _plan(constructed: Construct, case: Case, algorithm: str) -> Constructed:
    ranks, wavelengths = case
    # The number of wavelengths does not matter for these baselines, which use one per direction.
    return constructed(
        ranks, 64 if algorithm in ("ring", "neighbour_exchange") else wavelengths, algorithm
    )


def _spell(cases: Sequence[Case]) -> str:
    return " ".join(f"({ranks},{wavelengths})" for ranks, wavelengths in cases)


def _searched(results: Results) -> dict[str, Computed]:
    """Searches for sets of cases that give the printed numbers; writes case_sets.csv."""
    rows: list[TableRow] = []
    computed = {}
    for id, candidates in SEARCHED.items():
        printed = [results.printed(f"reductions.{id}.{baseline}") for baseline in BASELINES]
        matches = {
            str(rounding): case_sets(printed, candidates, rounding)
            for rounding in get_args(Rounding)
        }
        rows += [
            {"average": id, "rounding": rounding, "cases": " | ".join(map(_spell, sets))}
            for rounding, sets in matches.items()
        ]
        sets = {cases for own in matches.values() for cases in own}
        computed[id] = Computed(
            len(sets), f"They are {' | '.join(map(_spell, sorted(sets))) or 'none'}."
        )
    results.write("case_sets", rows)
    return {"reductions.wavelengths.cases": computed["wavelengths"]}


def _overtaken() -> dict[str, Computed]:
    own, other = (_paper_steps((4096, 64), name) for name in ("optree", "wrht"))
    return {
        "intro.steps.existing.4096": Computed(other / own, f"OpTree {own} steps, WRHT {other}.")
    }
