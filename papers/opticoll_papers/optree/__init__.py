"""Reproduction of the OpTree paper: table, example, theorems, figures, published reductions.

Dai et al., OpTree: An Efficient Algorithm for All-gather Operation in Optical Interconnect Systems.
Every number is a formula of the paper that is evaluated, or comes from a plan that is constructed,
verified and simulated. Printed values are only in the file of claims.
"""

from __future__ import annotations

from functools import cache

from opticoll_papers.common import Constructed, Part, Progress, Results, construct
from opticoll_papers.optree import (
    example,
    fat_tree,
    figures,
    ours,
    reductions,
    routing,
    setup,
    table_one,
    theorems,
    wrht_steps,
)
from opticoll_papers.optree.cases import QUICK_SIZES, SIZES

__all__ = ["reproduce"]


def reproduce(results: Results, progress: Progress | None = None) -> Results:
    """Reproduces the paper; writes tables (CSV) and figures (SVG, PNG) into the results' folder.

    A quick run constructs fewer trees, constructs no plans of more than 1024 ranks, and simulates
    fewer sizes. opticoll's own plans are in separate tables, in ours.csv, and as a curve of Figs 5
    and 6.

    Raises FileError if files cannot be written.
    """
    sizes = QUICK_SIZES if results.quick else SIZES

    @cache
    def constructed(ranks: int, wavelengths: int, algorithm: str) -> Constructed:
        return construct("all_gather", ranks, wavelengths, algorithm, sizes=sizes)

    parts: dict[str, Part] = {
        "sections III.A and IV.A": setup.reproduce,
        "section III.D.1": routing.reproduce,
        "steps of WRHT": lambda: wrht_steps.reproduce(results),
        "Table I": lambda: table_one.reproduce(results, constructed),
        "the example of 16 ranks": lambda: example.reproduce(results, constructed),
        "Lemmas 1 and 2": lambda: theorems.lemmas(results),
        "Theorems 1 to 3": lambda: theorems.theorems(results, constructed),
        "Fig. 4": lambda: figures.figure_four(results, constructed, quick=results.quick),
        "Fig. 5": lambda: figures.figure_five(results, constructed, quick=results.quick),
        "Fig. 6": lambda: figures.figure_six(results, constructed, quick=results.quick),
        "the published reductions": lambda: reductions.reproduce(
            results, constructed, quick=results.quick
        ),
        "fat trees": lambda: fat_tree.reproduce(results),
        "opticoll's own plans": lambda: ours.reproduce(results, quick=results.quick),
    }
    return results.compute(parts, progress, scale="quick" if results.quick else "")
