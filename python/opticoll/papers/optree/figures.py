"""Figs 4 to 6, from the paper's step counts and from constructed plans."""

from __future__ import annotations

from collections.abc import Sequence

from opticoll import formulas, plot
from opticoll.papers.kit import Construct, Finding, OwnRow, Results, finding
from opticoll.papers.optree.cases import DEPTHS, LABELS, SIZES, paper_steps, paper_time_ps
from opticoll.papers.optree.ours import own_times

RANKS_FOUR = (512, 1024, 2048, 4096)
LARGEST_BUILT = 2048  # ten plans of 4096 ranks would take most of the study's time
CLOSE_UP = range(5, 10)
CASES_FIVE = ((1024, 64), (2048, 64))
CASES_SIX = ((1024, 64), (1024, 96), (1024, 128), (1024, 256))

Row = dict[str, int | float | str | bool | None]


def figure_four(results: Results, constructed: Construct, *, quick: bool) -> list[Finding]:
    """Steps against the number of stages, normalised to the fewest; writes fig4.csv, .svg, .png."""
    rows: list[Row] = []
    for ranks in RANKS_FOUR:
        formula = {depth: formulas.optree_steps(ranks, 64, depth) for depth in DEPTHS}
        for depth, steps in formula.items():
            builds = not quick and ranks <= LARGEST_BUILT and 2 ** (depth - 1) < ranks
            plan = constructed(ranks, 64, f"optree:k={depth}") if builds else None
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
    results.write("fig4", rows)
    panels = [_depth_panel("Theorem 1 (as the paper's Fig. 4)", rows, "paper_steps")]
    if not quick:
        verified = all(row["verified"] is not False for row in rows)
        left_out = ", ".join(str(ranks) for ranks in RANKS_FOUR if ranks > LARGEST_BUILT)
        title = (
            f"Trees of k equal stages, constructed and {'verified' if verified else 'NOT verified'}"
            f"\n(N = {left_out} left out: plans too large)"
        )
        panels.append(_depth_panel(title, rows, "constructed_steps"))

    results.draw(
        "fig4",
        plot.curves,
        panels,
        x_label="Stages k",
        y_label="Steps / fewest by Theorem 1",
        title="OpTree by depth, w = 64",
    )
    return []


def figure_five(results: Results, constructed: Construct, *, quick: bool) -> list[Finding]:
    """Time against size at 1024 and 2048 ranks; writes fig5.csv, .svg, .png."""
    _compare(results, "fig5", CASES_FIVE, constructed, quick=quick)
    small, large = (_lead(ranks) for ranks, _ in CASES_FIVE)
    return [
        finding(
            "fig5.wrht_approaches",
            "closer at 2048",
            f"{small:.2f}, then {large:.2f}",
            "steps of WRHT / steps of OpTree",
            "conditional" if large < small else "refuted",
            f"By the formulas WRHT has {paper_steps('wrht', 1024, 64)} steps at both while OpTree "
            f"grows from {paper_steps('optree', 1024, 64)} to {paper_steps('optree', 2048, 64)}.",
        )
    ]


def figure_six(results: Results, constructed: Construct, *, quick: bool) -> list[Finding]:
    """Time against size at four numbers of wavelengths; writes fig6.csv, .svg, .png."""
    _compare(results, "fig6", CASES_SIX, constructed, quick=quick)
    wrht, exchange = paper_steps("wrht", 1024, 128), paper_steps("neighbour_exchange", 1024, 128)
    between = exchange < wrht < paper_steps("ring", 1024, 128)
    return [
        finding(
            "fig6.wrht_128",
            "slightly above NE",
            f"{wrht} against {exchange}",
            "steps",
            "conditional" if between else "refuted",
            "This order at w = 128 follows from the same reading of the WRHT formula that gives "
            "the 259 of Table I; more wavelengths make WRHT slower in it.",
        )
    ]


def _lead(ranks: int) -> float:
    return paper_steps("wrht", ranks, 64) / paper_steps("optree", ranks, 64)


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
            # In quick runs only what Table I has constructed already.
            builds = not quick or (ranks, wavelengths) == (1024, 64)
            # The baselines on one wavelength per direction do not depend on w.
            channels = 64 if algorithm in ("ring", "neighbour_exchange") else wavelengths
            plan = constructed(ranks, channels, algorithm) if builds else None
            for size in SIZES:
                paper = paper_time_ps(algorithm, ranks, wavelengths, size)
                real = plan.times_ps[size] if plan else None
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
    ours = {case: own_times(*case) for case in cases if not quick or case == (1024, 64)}
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
