"""opticoll's own all_gathers, for comparison with Table I and Figs 4 to 6."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from opticoll_papers.common import OwnRow, Results, own_rows, show_times
from opticoll_papers.judging import Computed
from opticoll_papers.optree.cases import QUICK_SIZES, SIZES, paper_steps, paper_time_ps

TABLE = (1024, 64)
RANKS_FOUR = (512, 1024, 2048)
CASES = {
    "Fig. 5": ((1024, 64), (2048, 64)),
    "Fig. 6": ((1024, 96), (1024, 128)),
}
MARK = "Not in the paper: opticoll's own plans"


@cache
def own_times(ranks: int, wavelengths: int, quick: bool) -> tuple[OwnRow, ...]:
    """Returns plans of `auto` for the figures' sizes, and OpTree's times by the paper's formula."""
    sizes = QUICK_SIZES[:1] if quick else SIZES
    rows = own_rows("Figs 5 and 6", "all_gather", ranks, wavelengths, "auto", sizes)
    return tuple(map(_with_paper, rows))


def reproduce(results: Results, *, quick: bool) -> dict[str, Computed]:
    """Adds tables of opticoll's plans, and writes ours.csv; no claim of the paper depends on it."""
    steps = [_fewest("Table I", *TABLE)]
    steps += [_fewest("Fig. 4", ranks, 64) for ranks in RANKS_FOUR if not quick or ranks <= 1024]
    _show_steps(results, steps)
    times = {
        beside: [
            replace(row, printed_in=beside)
            for case in cases
            if not quick or case == TABLE
            for row in own_times(*case, quick)
        ]
        for beside, cases in CASES.items()
    }
    for beside, rows in times.items():
        if not (quick and beside == "Fig. 6"):
            show_times(
                results,
                f"{MARK} beside {beside}: time of all_gather in ms; paper: OpTree by its formula "
                "(ours.csv)",
                rows,
            )
    results.write_ours([*steps, *(row for rows in times.values() for row in rows)])
    return {}


def _fewest(beside: str, ranks: int, wavelengths: int) -> OwnRow:
    """Returns the plan with the fewest slots, and its time at the smallest size."""
    (row,) = own_rows(beside, "all_gather", ranks, wavelengths, "relay_tree", SIZES[:1])
    return _with_paper(row)


def _with_paper(row: OwnRow) -> OwnRow:
    case = (row.ranks, row.wavelengths)
    return replace(
        row,
        paper_algorithm="optree",
        paper_steps=paper_steps("optree", *case),
        paper_time_s=paper_time_ps("optree", *case, row.size_bytes) / 1e12,
    )


def _show_steps(results: Results, rows: list[OwnRow]) -> None:
    results.show(
        f"{MARK}: steps of all_gather by relay_tree; paper: OpTree by its formula (ours.csv)",
        ["beside", "N", "w", "steps", "lower bound", "bound by", "paper", "verified"],
        [
            [
                row["beside"],
                row["ranks"],
                row["wavelengths"],
                row["steps"],
                row["bound_steps"],
                "" if row["bound_name"] is None else row["bound_name"],
                row["paper_steps"],
                row["verified"],
            ]
            for row in rows
        ],
        left=(0, 5, 7),
    )
