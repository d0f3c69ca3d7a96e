"""Figs 4 to 6 of the paper, from its own step counts and from constructed plans."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby, pairwise

from opticoll_papers import plots
from opticoll_papers.common import Construct, Constructed, OwnRow, Results
from opticoll_papers.judging import Computed
from opticoll_papers.optree import formulas, trees
from opticoll_papers.optree.cases import (
    BASELINES,
    CLOSE_UP,
    DEPTHS,
    LABELS,
    RANKS_FOUR,
    SIZES,
    best_depths,
    paper_steps,
    paper_time_ps,
)
from opticoll_papers.optree.ours import own_times

QUICK_FOUR = (512,)
ONE_STAGE = (512, 1024)
NAMED = {2048: 7, 4096: 8}  # depth of the paper by number of ranks, compared with the best depth
CASES_FIVE = ((1024, 64), (2048, 64))
CASES_SIX = ((1024, 96), (1024, 128))
SHARED = 4 * 1024**2  # bytes of all nodes' blocks together, in one reading of the message size

Row = dict[str, int | float | str | bool | None]


def figure_four(results: Results, constructed: Construct, *, quick: bool) -> dict[str, Computed]:
    """Computes the steps for each number of stages, divided by the fewest steps.

    Writes fig4.csv, .svg, .png.
    """
    rows: list[Row] = []
    computed = {"fig4.cases": Computed(RANKS_FOUR)}
    built = QUICK_FOUR if quick else RANKS_FOUR
    for ranks in RANKS_FOUR:
        formula = {depth: formulas.optree_steps(ranks, 64, depth) for depth in DEPTHS}
        plans = {
            depth: constructed(ranks, 64, trees.algorithm(trees.best_tree(ranks, 64, depth)))
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
        computed[f"fig4.shape.{ranks}"] = _course([formula[depth] for depth in CLOSE_UP], "steps")
        if plans:
            assert all(plan.verified for plan in plans.values())
            slots = [plan.steps for plan in plans.values()]
            assert slots == [trees.least_slots(ranks, 64, depth) for depth in plans]
            computed[f"fig4.shape.{ranks}.constructed"] = _course(slots, "slots")
    results.write("fig4", rows)
    panels = [_depth_panel("Theorem 1 (as the paper's Fig. 4)", rows, "paper_steps")]
    left_out = ", ".join(str(ranks) for ranks in RANKS_FOUR if ranks not in built)
    title = "Best trees of k stages with equal groups, constructed and verified"
    if left_out:
        title += f"\n(N = {left_out} left out)"
    panels.append(_depth_panel(title, rows, "constructed_steps"))

    results.draw(
        "fig4",
        plots.curves,
        panels,
        x_label="Stages k",
        y_label="Steps / fewest by Theorem 1",
        title="OpTree by depth, w = 64",
    )
    return computed | _best(constructed, quick=quick)


def _course(values: Sequence[int], unit: str) -> Computed:
    """Returns in words how the values rise and fall."""
    words = [
        "rising" if after > before else "falling" if after < before else "flat"
        for before, after in pairwise(values)
    ]
    return Computed(
        tuple(word for word, _ in groupby(words)), f"{', '.join(map(str, values))} {unit}."
    )


def _best(constructed: Construct, *, quick: bool) -> dict[str, Computed]:
    """Computes the best numbers of stages: by Theorem 1, and among trees that exist."""
    formula = {
        ranks: [formulas.optree_steps(ranks, 64, depth) for depth in CLOSE_UP]
        for ranks in RANKS_FOUR
    }
    changes = {
        "512 up": formula[512][-1] / formula[512][0] - 1,
        "1024 up": formula[1024][-1] / min(formula[1024]) - 1,
        "2048 down": 1 - min(formula[2048]) / formula[2048][0],
        "4096 down": 1 - min(formula[4096]) / formula[4096][0],
    }
    computed = {
        "fig4.normalised": Computed(
            min(formulas.optree_steps(1024, 64, depth) for depth in DEPTHS)
            / formulas.optree_steps(1024, 64, best_depths(1024, 64)[0])
        ),
        "fig4.dramatic": Computed(
            100 * min(changes.values()),
            ", ".join(f"{100 * change:.1f} % ({name})" for name, change in changes.items())
            + ", from k = 5 to the best or from there to k = 9.",
        ),
        "fig4.best.lost": Computed(
            tuple(" ".join(map(str, best_depths(ranks, 64))) for ranks in ONE_STAGE),
            "By Theorem 1, of 512 and of 1024 nodes.",
        ),
        "fig4.one_stage": Computed(
            max(
                abs(formulas.optree_steps(ranks, 64, 1) - constructed(ranks, 64, "one_stage").steps)
                for ranks in ONE_STAGE
            )
        ),
    }
    for ranks, named in NAMED.items():
        depths_of_trees = trees.best_depths(ranks, 64)
        least, own = (trees.least_slots(ranks, 64, depth) for depth in (depths_of_trees[0], named))
        assert least is not None
        assert own is not None
        computed[f"fig4.best.{ranks}.constructed"] = Computed(own - least, _by_depth(ranks))
        depths = best_depths(ranks, 64)
        computed[f"fig4.best.{ranks}"] = Computed(
            depths[0] if len(depths) == 1 else _told(depths),
            f"{formulas.optree_steps(ranks, 64, depths[0])} steps.",
        )
    depth = {ranks: formulas.optree_depth(ranks) for ranks in RANKS_FOUR}
    computed["fig4.theory"] = Computed(
        sum(depth[ranks] in trees.best_depths(ranks, 64) for ranks in RANKS_FOUR),
        "; ".join(
            f"{ranks} nodes: k* = {depth[ranks]}, fewest slots at "
            f"k = {_told(trees.best_depths(ranks, 64))}"
            for ranks in RANKS_FOUR
        )
        + ".",
    )
    if quick:
        return computed
    tree = {ranks: constructed(ranks, 64, "optree").steps for ranks in RANKS_FOUR}
    one_stage_steps = {ranks: constructed(ranks, 64, "one_stage").steps for ranks in RANKS_FOUR}
    computed["fig4.one_stage.reduction"] = Computed(
        100
        * sum(1 - tree[ranks] / one_stage_steps[ranks] for ranks in RANKS_FOUR)
        / len(RANKS_FOUR),
        ", ".join(f"{tree[ranks]} slots against {one_stage_steps[ranks]}" for ranks in RANKS_FOUR)
        + ".",
    )
    return computed


def _by_depth(ranks: int) -> str:
    each = (
        f"{trees.least_slots(ranks, 64, depth)} at k = {depth} "
        f"({trees.spelled(trees.best_tree(ranks, 64, depth))})"
        for depth in CLOSE_UP
    )
    return f"Slots: {', '.join(each)}."


def _told(depths: Sequence[int]) -> str:
    return " and ".join(map(str, depths)) if len(depths) < 3 else ", ".join(map(str, depths))


def figure_five(results: Results, constructed: Construct, *, quick: bool) -> dict[str, Computed]:
    """Computes times over sizes for 1024 and 2048 ranks; writes fig5.csv, .svg and .png."""
    _compare(results, "fig5", CASES_FIVE, constructed, quick=quick)
    small, large = CASES_FIVE
    growth = paper_time_ps("optree", *small, SIZES[-1]) / paper_time_ps("optree", *small, SIZES[0])
    shared = paper_time_ps("wrht", *large, SHARED // 2048) / paper_time_ps(
        "wrht", *small, SHARED // 1024
    )
    wrht = {case: paper_steps("wrht", *case) for case in CASES_FIVE}
    tree = {case: paper_steps("optree", *case) for case in CASES_FIVE}
    nearer = {case: wrht[case] / tree[case] for case in CASES_FIVE}
    steps = _steps(CASES_FIVE)
    computed = {
        "fig5.cases": Computed(tuple(number for case in CASES_FIVE for number in case)),
        "fig5.slow_growth": Computed(growth, "Every algorithm, since all steps take as long."),
        **_order("fig5", CASES_FIVE),
        "fig5.wrht_falls": Computed(
            nearer[large] / nearer[small],
            f"WRHT takes {wrht[small]} / {tree[small]} = {nearer[small]:.2f} of OpTree's time at "
            f"1024 nodes, {wrht[large]} / {tree[large]} = {nearer[large]:.2f} at 2048. Without "
            f"that normalisation its time stays equal, {wrht[large]} steps, or falls to "
            f"{shared:.3f} of itself if a message of 4 MiB is that of all nodes together.",
        ),
        "fig5.wrht_falls.first": Computed(wrht[large] / wrht[small]),
        "fig5.reason": Computed((tree[large] / tree[small]) / (wrht[large] / wrht[small]), steps),
    }
    if not quick:
        computed["fig5.optree_lowest.constructed"] = _lowest(CASES_FIVE, constructed)
        plans = [_plan(constructed, case, "wrht") for case in (*CASES_FIVE, *CASES_SIX)]
        assert all(plan.verified for plan in plans)
        computed["figures.wrht"] = Computed(
            tuple(plan.steps for plan in plans),
            "Beside them "
            + "; ".join(
                f"Ring {_plan(constructed, case, 'ring').steps}, NE "
                f"{_plan(constructed, case, 'neighbour_exchange').steps}, OpTree "
                f"{_plan(constructed, case, 'optree').steps} slots at (N, w) = {case}"
                for case in (*CASES_FIVE, *CASES_SIX)
            )
            + ".",
        )
    return computed


def figure_six(results: Results, constructed: Construct, *, quick: bool) -> dict[str, Computed]:
    """Computes times over sizes for two numbers of wavelengths; writes fig6.csv, .svg and .png."""
    _compare(results, "fig6", CASES_SIX, constructed, quick=quick)
    few, many = CASES_SIX

    def ratio(case: tuple[int, int], name: str, beside: tuple[int, int], other: str) -> float:
        return paper_steps(name, *case) / paper_steps(other, *beside)

    plans = [_plan(constructed, case, "optree") for case in (many, few)]
    assert all(plan.verified for plan in plans)
    tree = [paper_steps("optree", *case) for case in (many, few)]
    steps = _steps(CASES_SIX)
    return {
        "fig6.cases": Computed(tuple(number for case in CASES_SIX for number in case)),
        **_order("fig6", CASES_SIX),
        "fig6.optree_lowest.constructed": _lowest(CASES_SIX, constructed),
        "fig6.optree_falls": Computed(
            max(time / plans[1].times_ps[size] for size, time in plans[0].times_ps.items()),
            f"{plans[0].steps} slots against {plans[1].steps}, verified; by the formula "
            f"{tree[0]} steps against {tree[1]}.",
        ),
        "fig6.optree_slightly": Computed(
            100 * (1 - tree[0] / tree[1]),
            f"{tree[1]} steps become {tree[0]}. On an axis that reaches up to Ring it is "
            f"{100 * (tree[1] - tree[0]) / paper_steps('ring', *few):.1f} % of the height.",
        ),
        "fig6.wrht_rises": Computed(ratio(many, "wrht", few, "wrht"), steps),
        "fig6.wrht_ring": Computed(ratio(many, "wrht", many, "ring"), steps),
        "fig6.wrht_neighbour_exchange": Computed(
            ratio(many, "wrht", many, "neighbour_exchange"), steps
        ),
    }


def _order(id: str, cases: Sequence[tuple[int, int]]) -> dict[str, Computed]:
    """Computes by the paper's steps OpTree's smallest lead, and the ring's smallest lag."""
    steps = {case: {name: paper_steps(name, *case) for name in LABELS} for case in cases}
    lowest = min(own[name] / own["optree"] for own in steps.values() for name in BASELINES)
    highest = min(
        own["ring"] / own[name] for own in steps.values() for name in LABELS if name != "ring"
    )
    steps_text = _steps(cases)
    return {
        f"{id}.optree_lowest": Computed(lowest, steps_text),
        f"{id}.ring_highest": Computed(highest, steps_text),
    }


def _lowest(cases: Sequence[tuple[int, int]], constructed: Construct) -> Computed:
    """Computes by plans the smallest ratio of Ring's and NE's times to OpTree's time."""
    names = ("ring", "neighbour_exchange", "optree")
    plans = {case: {name: _plan(constructed, case, name) for name in names} for case in cases}
    assert all(plan.verified for own in plans.values() for plan in own.values())
    return Computed(
        min(
            time / own["optree"].times_ps[size]
            for own in plans.values()
            for name in names[:2]
            for size, time in own[name].times_ps.items()
        ),
        "Slots: "
        + "; ".join(
            ", ".join(f"{LABELS[name]} {plan.steps}" for name, plan in own.items())
            + f" at (N, w) = {case}"
            for case, own in plans.items()
        )
        + ".",
    )


def _steps(cases: Sequence[tuple[int, int]]) -> str:
    """Returns in words the steps of all algorithms in each case."""
    steps_texts = (
        ", ".join(f"{label} {paper_steps(name, *case)}" for name, label in LABELS.items())
        + f" at (N, w) = {case}"
        for case in cases
    )
    return f"Steps: {'; '.join(steps_texts)}."


def _plan(constructed: Construct, case: tuple[int, int], algorithm: str) -> Constructed:
    ranks, wavelengths = case
    # The number of wavelengths does not matter for these baselines, which use one per direction.
    narrow = algorithm in ("ring", "neighbour_exchange")
    return constructed(ranks, 64 if narrow else wavelengths, algorithm)


def _depth_panel(title: str, rows: Sequence[Row], column: str) -> plots.Panel:
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
            family.append(plots.Curve(f"N = {ranks}", points, index))
    return plots.Panel(title, family, close_up=(CLOSE_UP[0], CLOSE_UP[-1]))


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
    """Compares the four algorithms in each case, relative to OpTree's first value in the figure."""
    unit = paper_time_ps("optree", *cases[0], SIZES[0])
    rows: list[Row] = []
    for ranks, wavelengths in cases:
        for algorithm in LABELS:
            builds = not quick or (ranks == 1024 and (algorithm != "wrht" or wavelengths == 64))
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
        plots.curves,
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
) -> plots.Panel:
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
                family.append(plots.Curve(f"{label}, {suffix}", points, index, dashed))
    for label, key, dashed in (
        ("opticoll (not in the paper)", "time_s", False),
        ("lower bound", "bound_time_s", True),
    ):
        points = [(row["size_bytes"], row[key] * 1e12 / unit_ps) for row in ours]
        if points:
            family.append(plots.Curve(label, points, len(LABELS), dashed))
    return plots.Panel(f"N = {ranks}, w = {wavelengths}", family)
