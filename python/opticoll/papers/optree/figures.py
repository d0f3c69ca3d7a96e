"""Figs 4 to 6, from the paper's step counts and from constructed plans."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby, pairwise

from opticoll import formulas, plot
from opticoll.papers.judging import Computed, Value
from opticoll.papers.kit import Construct, Constructed, OwnRow, Results
from opticoll.papers.optree.cases import (
    BASELINES,
    DEPTHS,
    LABELS,
    SIZES,
    best_depths,
    paper_steps,
    paper_time_ps,
)
from opticoll.papers.optree.ours import own_times

RANKS_FOUR = (512, 1024, 2048, 4096)
QUICK_FOUR = (512, 1024)
CLOSE_UP = range(5, 10)
CASES_FIVE = ((1024, 64), (2048, 64))
CASES_SIX = ((1024, 96), (1024, 128))
SHARED = 4 * 1024**2  # the message of all nodes together, in one reading

Row = dict[str, int | float | str | bool | None]
Ratio = Callable[[tuple[int, int], str, tuple[int, int], str], list[float]]
"""Times of an algorithm in a case over those of another in another: a number for each size."""


def figure_four(results: Results, constructed: Construct, *, quick: bool) -> dict[str, Computed]:
    """Steps against the number of stages, normalised to the fewest; writes fig4.csv, .svg, .png."""
    rows: list[Row] = []
    found = {"fig4.cases": Computed(RANKS_FOUR)}
    built = QUICK_FOUR if quick else RANKS_FOUR
    for ranks in RANKS_FOUR:
        formula = {depth: formulas.optree_steps(ranks, 64, depth) for depth in DEPTHS}
        plans = {
            depth: constructed(ranks, 64, f"optree:k={depth}")
            for depth in (CLOSE_UP if ranks in built else ())
        }
        for depth, steps in formula.items():
            plan = plans.get(depth)
            rows.append(
                {
                    "ranks": ranks,
                    "wavelengths": 64,
                    "k": depth,
                    "paper_steps": steps,
                    "paper_normalised": round(steps / min(formula.values()), 6),
                    "constructed_steps": plan.steps if plan else None,
                    "verified": plan.verified if plan else None,
                }
            )
        found[f"fig4.shape.{ranks}"] = _course([formula[depth] for depth in CLOSE_UP])
        if plans:
            assert all(plan.verified for plan in plans.values())
            slots = [plan.steps for plan in plans.values()]
            found[f"fig4.shape.{ranks}.constructed"] = _course(slots)
    results.write("fig4", rows)
    panels = [_depth_panel("Theorem 1 (as the paper's Fig. 4)", rows, "paper_steps")]
    left_out = ", ".join(str(ranks) for ranks in RANKS_FOUR if ranks not in built)
    title = "Trees of k nearly equal stages, constructed and verified"
    if left_out:
        title += f"\n(N = {left_out} left out)"
    panels.append(_depth_panel(title, rows, "constructed_steps"))

    results.draw(
        "fig4",
        plot.curves,
        panels,
        x_label="Stages k",
        y_label="Steps / fewest by Theorem 1",
        title="OpTree by depth, w = 64",
    )
    return found | _best(constructed, quick=quick)


def _course(values: Sequence[int]) -> Computed:
    """How values go on, in words."""
    words = [
        "rising" if after > before else "falling" if after < before else "flat"
        for before, after in pairwise(values)
    ]
    return Computed(
        tuple(word for word, _ in groupby(words)), f"{', '.join(map(str, values))} steps."
    )


def _best(constructed: Construct, *, quick: bool) -> dict[str, Computed]:
    """The best numbers of stages by Theorem 1, and of trees that exist."""
    found = {
        "fig4.best.lost": Computed(
            "; ".join(f"{ranks}: {_told(best_depths(ranks, 64))}" for ranks in QUICK_FOUR)
        ),
        "fig4.one_stage": Computed(
            tuple(
                formulas.optree_steps(ranks, 64, 1) - constructed(ranks, 64, "one_stage").steps
                for ranks in QUICK_FOUR
            )
        ),
    }
    for ranks in (2048, 4096):
        depths = best_depths(ranks, 64)
        found[f"fig4.best.{ranks}"] = Computed(
            depths[0] if len(depths) == 1 else _told(depths),
            f"{formulas.optree_steps(ranks, 64, depths[0])} steps.",
        )
    if quick:
        return found
    trees = {ranks: constructed(ranks, 64, "optree") for ranks in RANKS_FOUR}
    assert all(tree.verified for tree in trees.values())
    stages = {ranks: len(tree.step_slots) for ranks, tree in trees.items()}
    radices = {
        ranks: "x".join(map(str, formulas.optree_best_radices(ranks, 64))) for ranks in RANKS_FOUR
    }
    for ranks in (2048, 4096):
        found[f"fig4.best.{ranks}.constructed"] = Computed(
            stages[ranks], f"{radices[ranks]}, {trees[ranks].steps} slots, verified."
        )
    depth = {ranks: formulas.optree_depth(ranks) for ranks in RANKS_FOUR}
    found["fig4.theory"] = Computed(
        sum(stages[ranks] == depth[ranks] for ranks in RANKS_FOUR),
        "; ".join(
            f"at {ranks} k* = {depth[ranks]}, the best tree {radices[ranks]}"
            for ranks in RANKS_FOUR
        )
        + ".",
    )
    one = {ranks: constructed(ranks, 64, "one_stage").steps for ranks in RANKS_FOUR}
    found["fig4.one_stage.reduction"] = Computed(
        100 * sum(1 - trees[ranks].steps / one[ranks] for ranks in RANKS_FOUR) / len(RANKS_FOUR)
    )
    return found


def _told(depths: Sequence[int]) -> str:
    return " and ".join(map(str, depths))


def figure_five(results: Results, constructed: Construct, *, quick: bool) -> dict[str, Computed]:
    """Time against size at 1024 and 2048 ranks; writes fig5.csv, .svg, .png."""
    _compare(results, "fig5", CASES_FIVE, constructed, quick=quick)
    growth = paper_time_ps("optree", 1024, 64, SIZES[-1]) / paper_time_ps(
        "optree", 1024, 64, SIZES[0]
    )
    shared = paper_time_ps("wrht", 2048, 64, SHARED // 2048) / paper_time_ps(
        "wrht", 1024, 64, SHARED // 1024
    )
    found = {
        "fig5.cases": Computed(tuple(one for case in CASES_FIVE for one in case)),
        "fig5.slow_growth": Computed(growth, "Every algorithm, since all steps take as long."),
        "fig5.wrht_falls.shared": Computed(
            shared, f"{paper_steps('wrht', 1024, 64)} steps at both; d/B falls, a does not."
        ),
    }
    small, large = CASES_FIVE
    for suffix, ratio in _ways(constructed, built=not quick):
        ours = ratio(large, "wrht", large, "optree")
        before = ratio(small, "wrht", small, "optree")
        tree = ratio(large, "optree", small, "optree")
        wrht = ratio(large, "wrht", small, "wrht")
        values = {
            **_order("fig5", CASES_FIVE, ratio),
            "fig5.wrht_falls": max(wrht),
            "fig5.wrht_approaches": max(
                after / first for after, first in zip(ours, before, strict=True)
            ),
            "fig5.reason": min(one / other for one, other in zip(tree, wrht, strict=True)),
        }
        steps = _steps(CASES_FIVE, constructed if suffix else None)
        found |= {f"{id}{suffix}": Computed(value, steps) for id, value in values.items()}
    return found


def figure_six(results: Results, constructed: Construct, *, quick: bool) -> dict[str, Computed]:
    """Time against size at two numbers of wavelengths; writes fig6.csv, .svg, .png."""
    _compare(results, "fig6", CASES_SIX, constructed, quick=quick)
    found = {"fig6.cases": Computed(tuple(one for case in CASES_SIX for one in case))}
    few, many = CASES_SIX
    for suffix, ratio in _ways(constructed, built=True):
        tree = ratio(many, "optree", few, "optree")
        beside = ratio(many, "wrht", many, "neighbour_exchange")
        values: dict[str, Value] = {
            **_order("fig6", CASES_SIX, ratio),
            "fig6.optree_falls": max(tree),
            "fig6.optree_slightly": (min(tree), max(tree)),
            "fig6.wrht_rises": min(ratio(many, "wrht", few, "wrht")),
            "fig6.wrht_ring": max(ratio(many, "wrht", many, "ring")),
            "fig6.wrht_neighbour_exchange": (min(beside), max(beside)),
        }
        steps = _steps(CASES_SIX, constructed if suffix else None)
        found |= {f"{id}{suffix}": Computed(value, steps) for id, value in values.items()}
    return found


def _ways(constructed: Construct, *, built: bool) -> Sequence[tuple[str, Ratio]]:
    """By the paper's step counts, and by plans where they are to be built."""

    def counted(
        case: tuple[int, int], name: str, beside: tuple[int, int], other: str
    ) -> list[float]:
        return [paper_steps(name, *case) / paper_steps(other, *beside)]

    def simulated(
        case: tuple[int, int], name: str, beside: tuple[int, int], other: str
    ) -> list[float]:
        own = _plan(constructed, case, name).times_ps
        theirs = _plan(constructed, beside, other).times_ps
        return [time / theirs[size] for size, time in own.items()]

    return [("", counted), (".constructed", simulated)][: 2 if built else 1]


def _order(id: str, cases: Sequence[tuple[int, int]], ratio: Ratio) -> dict[str, float]:
    """Whether OpTree is lowest and the ring highest, by how much at least."""
    return {
        f"{id}.optree_lowest": min(
            one for case in cases for name in BASELINES for one in ratio(case, name, case, "optree")
        ),
        f"{id}.ring_highest": min(
            one
            for case in cases
            for name in LABELS
            if name != "ring"
            for one in ratio(case, "ring", case, name)
        ),
    }


def _steps(cases: Sequence[tuple[int, int]], constructed: Construct | None) -> str:
    """Steps, or slots of plans, of all algorithms in each case."""
    told = []
    for case in cases:
        plans = constructed and {name: _plan(constructed, case, name) for name in LABELS}
        assert plans is None or all(plan.verified for plan in plans.values())
        each = (
            f"{label} {plans[name].steps if plans else paper_steps(name, *case)}"
            for name, label in LABELS.items()
        )
        told.append(f"(N, w) = {case}: {', '.join(each)}")
    return f"{'Slots of verified plans' if constructed else 'Steps'} at {'; '.join(told)}."


def _plan(constructed: Construct, case: tuple[int, int], algorithm: str) -> Constructed:
    ranks, wavelengths = case
    # The baselines on one wavelength per direction do not depend on w.
    narrow = algorithm in ("ring", "neighbour_exchange")
    return constructed(ranks, 64 if narrow else wavelengths, algorithm)


def _depth_panel(title: str, rows: Sequence[Row], column: str) -> plot.Panel:
    family = []
    for index, ranks in enumerate(RANKS_FOUR):
        own = [row for row in rows if row["ranks"] == ranks]
        fewest = min(_number(row["paper_steps"]) for row in own)
        points = [
            (_number(row["k"]), _number(row[column]) / fewest)
            for row in own
            if row[column] is not None
        ]
        if points:
            family.append(plot.Curve(f"N = {ranks}", points, index))
    return plot.Panel(title, family, close_up=(CLOSE_UP[0], CLOSE_UP[-1]))


def _number(value: int | float | str | bool | None) -> float:
    assert isinstance(value, int | float)
    return float(value)


def _compare(
    results: Results,
    name: str,
    cases: Sequence[tuple[int, int]],
    constructed: Construct,
    *,
    quick: bool,
) -> None:
    """The four algorithms in each case, normalised to OpTree's first value of the figure."""
    unit = paper_time_ps("optree", *cases[0], SIZES[0])
    rows: list[Row] = []
    for ranks, wavelengths in cases:
        for algorithm in LABELS:
            builds = not quick or ranks == 1024
            plan = _plan(constructed, (ranks, wavelengths), algorithm) if builds else None
            for size in SIZES:
                paper = paper_time_ps(algorithm, ranks, wavelengths, size)
                real = plan.times_ps.get(size) if plan else None
                rows.append(
                    {
                        "ranks": ranks,
                        "wavelengths": wavelengths,
                        "algorithm": algorithm,
                        "size_bytes": size,
                        "paper_steps": paper_steps(algorithm, ranks, wavelengths),
                        "paper_time_s": paper / 1e12,
                        "paper_normalised": round(paper / unit, 6),
                        "constructed_steps": plan.steps if plan else None,
                        "constructed_time_s": real / 1e12 if real else None,
                        "constructed_normalised": round(real / unit, 6) if real else None,
                        "verified": plan.verified if plan else None,
                    }
                )
    results.write(name, rows)
    ours = {case: own_times(*case, quick) for case in cases if not quick or case == (1024, 64)}
    ranks, wavelengths = cases[0]

    results.draw(
        name,
        plot.curves,
        [_time_panel(rows, ours.get(case, ()), unit, case) for case in cases],
        x_label="Block of one rank",
        y_label="Time relative to OpTree's at the\nsmallest block (its first point)",
        title="all_gather, policy every_step; 1 is OpTree's first point at "
        f"N = {ranks}, w = {wavelengths}",
        x_sizes=True,
        log_x=True,
    )


def _time_panel(
    rows: Sequence[Row], ours: Sequence[OwnRow], unit_ps: int, case: tuple[int, int]
) -> plot.Panel:
    ranks, wavelengths = case
    family = []
    for index, (algorithm, label) in enumerate(LABELS.items()):
        own = [
            row
            for row in rows
            if (row["ranks"], row["wavelengths"], row["algorithm"])
            == (ranks, wavelengths, algorithm)
        ]
        for column, suffix, dashed in (
            ("paper_normalised", "paper's steps", False),
            ("constructed_normalised", "constructed", True),
        ):
            points = [
                (_number(row["size_bytes"]), _number(row[column]))
                for row in own
                if row[column] is not None
            ]
            if points:
                family.append(plot.Curve(f"{label}, {suffix}", points, index, dashed))
    for label, key, dashed in (
        ("opticoll (not in the paper)", "time_s", False),
        ("lower bound", "bound_time_s", True),
    ):
        points = [(row["size_bytes"], row[key] * 1e12 / unit_ps) for row in ours]
        if points:
            family.append(plot.Curve(label, points, len(LABELS), dashed))
    return plot.Panel(f"N = {ranks}, w = {wavelengths}", family)
