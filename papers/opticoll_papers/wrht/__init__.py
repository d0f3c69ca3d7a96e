"""Reproduction of the WRHT poster: steps, times for four networks, and its headline.

Dai et al., POSTER: Efficient All-reduce for Distributed DNN Training in Optical Interconnect
Systems, PPoPP 2023. The optical side is a WDM ring (`optical`). The poster states no parameters of
the electrical side, so it is simulated on switches and fat trees at several rates (`electrical`).
`break_even` computes the parameters with which the poster's claims hold.
"""

from __future__ import annotations

from functools import partial

from opticoll_papers.common import Part, Progress, Results
from opticoll_papers.judging import Computed
from opticoll_papers.wrht import break_even, electrical, networks, optical, scheme
from opticoll_papers.wrht.cases import MODELS, own_ranks, own_times
from opticoll_papers.wrht.optical import TIME_RANKS

__all__ = ["MODELS", "TIME_RANKS", "reproduce"]


def reproduce(results: Results, progress: Progress | None = None, *, long: bool = False) -> Results:
    """Reproduces the poster; writes tables (CSV) and Fig. 2 (SVG, PNG) into the results' folder.

    Plans of rings are large. Therefore a quick run uses the formula for optical rings beyond 128
    ranks, and omits electrical rings beyond 256 ranks. `long` adds 4096 electrical ranks.

    Raises FileError if files cannot be written.
    """
    ranks = (
        electrical.QUICK_RANKS
        if results.quick
        else electrical.LONG_RANKS
        if long
        else electrical.RANKS
    )

    def rows() -> list[electrical.ElectricalRow]:
        return [
            row
            for fabric in electrical.FABRICS
            for count in ranks
            for row in electrical.rows(results, fabric, count, quick=results.quick)
        ]

    parts: dict[str, Part] = {
        "mechanism": scheme.mechanism,
        "steps": lambda: optical.steps(results),
        "networks": networks.parameters,
        "share of an iteration": networks.shares,
        **{
            f"opticoll's own plans on {count} ranks": partial(_own, results, count)
            for count in own_ranks(TIME_RANKS, quick=results.quick)
        },
        "times of four networks": lambda: optical.times(results, quick=results.quick),
        "striping": lambda: optical.striping(results),
        **{
            f"electrical: {fabric} on {count} ranks": partial(_time, results, fabric, count)
            for fabric in electrical.FABRICS
            for count in ranks
        },
        **break_even.parts(results, rows, ranks, quick=results.quick),
        "opticoll's own plans": lambda: optical.ours(results, quick=results.quick),
    }
    results.compute(parts, progress, scale="quick" if results.quick else "long" if long else "")
    if not results.only:
        results.electrical = rows()
    return results


def _own(results: Results, ranks: int) -> dict[str, Computed]:
    own_times(results, ranks)
    return {}


def _time(results: Results, fabric: str, ranks: int) -> dict[str, Computed]:
    electrical.rows(results, fabric, ranks, quick=results.quick)
    return {}
