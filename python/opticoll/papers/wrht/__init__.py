"""The WRHT poster computed anew: steps, times for four networks, and what becomes of its headline.

Dai et al., POSTER: Efficient All-reduce for Distributed DNN Training in Optical Interconnect
Systems, PPoPP 2023. The optical side on the ring of light (`optical`); the electrical side, of
which the poster gives no parameters, on switches and fat trees at stated rates (`electrical`), and
what they must be for its claims to hold (`claims`).
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from opticoll.papers.kit import Finding, Part, Progress, Results
from opticoll.papers.wrht import break_even, electrical, optical
from opticoll.papers.wrht.cases import MODELS
from opticoll.papers.wrht.optical import TIME_RANKS

__all__ = ["MODELS", "TIME_RANKS", "reproduce"]


def reproduce(
    output: Path, quick: bool = False, progress: Progress | None = None, *, long: bool = False
) -> Results:
    """Recompute the poster; write tables as CSV and its Fig. 2 as SVG and PNG into `output`.

    The folder is created where it does not exist. `quick` leaves rings, whose plans are large, to
    the formula beyond 128 ranks of light and out beyond 256 electrical ones; `long` adds 4096
    electrical ranks. Raises FileError where files cannot be written.
    """
    electrical_rows: list[electrical.ElectricalRow] = []
    results = Results(output, electrical=electrical_rows)
    ranks = electrical.QUICK_RANKS if quick else electrical.LONG_RANKS if long else electrical.RANKS
    parts: dict[str, Part] = {
        "steps": lambda: optical.steps(results),
        "times of four networks": lambda: optical.times(results, quick=quick),
        "striping": lambda: optical.striping(results),
        **{
            f"electrical: {fabric} on {count} ranks": partial(_time, electrical_rows, fabric, count)
            for fabric in electrical.FABRICS
            for count in ranks
        },
        **break_even.parts(results, electrical_rows, ranks, quick=quick),
        "opticoll's own plans": lambda: optical.ours(results, quick=quick),
    }
    return results.compute(parts, progress)


def _time(rows: list[electrical.ElectricalRow], fabric: str, ranks: int) -> list[Finding]:
    rows += electrical.rows(fabric, ranks)
    return []
