"""The OpTree paper computed anew: its table, example, theorems, figures and published reductions.

Dai et al., OpTree: An Efficient Algorithm for All-gather Operation in Optical Interconnect Systems.
Every number comes from the core: a formula of the paper evaluated, or a plan constructed, verified
and simulated. Only the column `paper` holds what the paper prints.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from opticoll.papers.kit import Constructed, Part, Progress, Results, construct
from opticoll.papers.optree import example, figures, ours, reductions, table_one, theorems
from opticoll.papers.optree.cases import SIZES

__all__ = ["reproduce"]


def reproduce(output: Path, quick: bool = False, progress: Progress | None = None) -> Results:
    """Recompute the paper; write tables as CSV and figures as SVG and PNG into the folder `output`.

    The folder is created where it does not exist. `quick` constructs plans only for the example and
    for the table's 1024 ranks and 64 wavelengths. opticoll's own plans stand in tables of their
    own, in ours.csv, and as a series of Figs 5 and 6. Raises FileError where files cannot be
    written.
    """
    results = Results(output)

    @cache
    def constructed(ranks: int, wavelengths: int, algorithm: str) -> Constructed:
        return construct("all_gather", ranks, wavelengths, algorithm, sizes=SIZES)

    parts: dict[str, Part] = {
        "Table I": lambda: table_one.reproduce(results, constructed),
        "the example of 16 ranks": lambda: example.reproduce(results, constructed),
        "Lemma 1": lambda: theorems.lemma_one(results, constructed),
        "Theorems 1 to 3": lambda: theorems.theorems(results),
        "Fig. 4": lambda: figures.figure_four(results, constructed, quick=quick),
        "Fig. 5": lambda: figures.figure_five(results, constructed, quick=quick),
        "Fig. 6": lambda: figures.figure_six(results, constructed, quick=quick),
        "the published reductions": lambda: reductions.reproduce(results, constructed, quick=quick),
        "opticoll's own plans": lambda: ours.reproduce(results, quick=quick),
    }
    return results.compute(parts, progress)
