"""The published reductions of communication time: which cases give them, and what is left of them.

A reduction is the mean over cases of 1 - OpTree/baseline, in percent. With equal time for all steps
message size, rate and delay cancel, so step counts decide.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import get_args

from opticoll.papers.judging import Computed
from opticoll.papers.kit import Construct, Constructed, Results, TableRow
from opticoll.papers.optree.cases import BASELINES, SIZES, Rounding, paper_steps

Case = tuple[int, int]
"""Ranks and wavelengths."""

Groups = tuple[tuple[Case, ...], ...]
"""Cases of which means are taken, and then the mean of these."""

Measure = Callable[[Case, str], int]
"""What is compared: steps or picoseconds of an algorithm in a case."""

BLOCK = SIZES[6]
"""4 MiB, the block for which times of constructed plans are compared: the paper's message of 4M."""

_NODES = tuple((ranks, 64) for ranks in (1024, 2048))
_WAVELENGTHS = tuple((1024, wavelengths) for wavelengths in (96, 128))
_W256 = tuple((1024, wavelengths) for wavelengths in (64, 96, 128, 256))
_JOURNAL = tuple((ranks, 64) for ranks in (512, 1024, 2048, 4096))

AVERAGES: dict[str, Groups] = {
    "nodes": (_NODES,),
    "wavelengths": (_WAVELENGTHS,),
    "wavelengths.w256": (_W256,),
    "headline": (_NODES, _W256),
    "journal.1024": (((1024, 64),),),
    "journal.nodes": (_JOURNAL,),
}
CONSTRUCTED = ("nodes", "wavelengths.w256", "headline")
QUICK_CONSTRUCTED = ("wavelengths.w256",)

SEARCHED: dict[str, tuple[tuple[Case, ...], tuple[Case, ...]]] = {
    "nodes": (_NODES, tuple((ranks, 64) for ranks in (128, 256, 512, 1024, 2048, 4096))),
    "wavelengths": (
        _W256,
        tuple(
            (1024, wavelengths)
            for wavelengths in (4, 8, 16, 24, 32, 48, 64, 80, 96, 112, 128, 160, 192, 256, 512)
        ),
    ),
}
"""The cases of an average, and those among which others are looked for."""

LARGEST_SET = 5
CUT = 0.02
"""Percentage points that are lost at most by cutting each case and their mean after two digits."""


def reproduce(results: Results, constructed: Construct, *, quick: bool) -> dict[str, Computed]:
    """Recompute the reductions; writes reductions.csv and case_sets.csv."""
    found: dict[str, Computed] = {}
    rows: list[TableRow] = []
    for id, groups in AVERAGES.items():
        for baseline in BASELINES:
            computed = _mean(groups, baseline, _paper_steps)
            found[f"reductions.{id}.{baseline}"] = Computed(
                computed, f"Steps {_told(groups, baseline, _paper_steps)}."
            )
            time = None
            if id in (QUICK_CONSTRUCTED if quick else CONSTRUCTED):
                plans = [
                    _plan(constructed, case, name)
                    for group in groups
                    for case in group
                    for name in ("optree", baseline)
                ]
                assert all(plan.verified for plan in plans)
                time = _mean(
                    groups, baseline, lambda *key: _plan(constructed, *key).times_ps[BLOCK]
                )
                slots = _told(groups, baseline, lambda *key: _plan(constructed, *key).steps)
                found[f"reductions.{id}.{baseline}.constructed"] = Computed(time, f"Slots {slots}.")
            rows.append(
                {
                    "average": id,
                    "baseline": baseline,
                    "formula": round(computed, 4),
                    "cases": _spell(groups),
                    "constructed_time": None if time is None else round(time, 4),
                }
            )
    results.write("reductions", rows)
    return found | _from_printed(results) | _searched(results) | _overtaken()


def _from_printed(results: Results) -> dict[str, Computed]:
    """Means of the printed averages."""
    found = {}
    for baseline in BASELINES:
        printed = [
            results.printed(f"reductions.{id}.{baseline}") for id in ("nodes", "wavelengths")
        ]
        found[f"reductions.headline.{baseline}.printed"] = Computed(
            sum(printed) / 2, f"Mean of {printed[0]} and {printed[1]}."
        )
    return found


def case_sets(
    printed: Sequence[float], candidates: Sequence[Case], rounding: Rounding
) -> list[tuple[Case, ...]]:
    """All sets of up to five candidates whose mean reductions are the three printed ones."""
    reductions = {
        case: [
            100 * (1 - paper_steps("optree", *case, rounding) / paper_steps(name, *case))
            for name in BASELINES
        ]
        for case in candidates
    }
    found = []
    for count in range(1, LARGEST_SET + 1):
        for chosen in combinations(candidates, count):
            means = (
                sum(reductions[case][index] for case in chosen) / count
                for index in range(len(BASELINES))
            )
            if all(
                0 <= mean - value + 1e-9 <= CUT for mean, value in zip(means, printed, strict=True)
            ):
                found.append(chosen)
    return found


def _mean(groups: Groups, baseline: str, measure: Measure) -> float:
    """The mean over groups of the mean over cases of 1 - OpTree/baseline, in percent."""
    means = [
        sum(1 - measure(case, "optree") / measure(case, baseline) for case in group) / len(group)
        for group in groups
    ]
    return 100 * sum(means) / len(means)


def _told(groups: Groups, baseline: str, measure: Measure) -> str:
    """OpTree's value and the baseline's in each case."""
    return "; ".join(
        ", ".join(
            f"{measure(case, 'optree')} against {measure(case, baseline)} at (N, w) = {case}"
            for case in group
        )
        for group in groups
    )


def _paper_steps(case: Case, algorithm: str) -> int:
    return paper_steps(algorithm, *case)


def _plan(constructed: Construct, case: Case, algorithm: str) -> Constructed:
    ranks, wavelengths = case
    # The baselines on one wavelength per direction do not depend on w.
    return constructed(
        ranks, 64 if algorithm in ("ring", "neighbour_exchange") else wavelengths, algorithm
    )


def _spell(groups: Sequence[Sequence[Case]]) -> str:
    return " | ".join(
        " ".join(f"({ranks},{wavelengths})" for ranks, wavelengths in group) for group in groups
    )


def _searched(results: Results) -> dict[str, Computed]:
    """Whether other cases give the same numbers; writes case_sets.csv."""
    rows: list[TableRow] = []
    found = {}
    for id, (expected, candidates) in SEARCHED.items():
        printed = [results.printed(f"reductions.{id}.{baseline}") for baseline in BASELINES]
        matches = {
            str(rounding): case_sets(printed, candidates, rounding)
            for rounding in get_args(Rounding)
        }
        rows += [
            {"average": id, "rounding": rounding, "cases": _spell(cases)}
            for rounding, cases in matches.items()
        ]
        sets = {frozenset(one) for cases in matches.values() for one in cases}
        readings = ", ".join(rounding for rounding, cases in matches.items() if cases)
        found[f"reductions.{id}.sets"] = Computed(
            len(sets - {frozenset(expected)}),
            f"They give all three numbers where Eq. 2 is read as {readings}."
            if frozenset(expected) in sets
            else "They do not give the numbers.",
        )
    results.write("case_sets", rows)
    return found


def _overtaken() -> dict[str, Computed]:
    own, other = (_paper_steps((4096, 64), name) for name in ("optree", "wrht"))
    return {
        "intro.steps.existing.4096": Computed(
            other / own, f"OpTree {own} steps, WRHT {other}; the journal averages over this case."
        )
    }
