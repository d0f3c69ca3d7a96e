"""Reproduction of the OBS grid paper: collectives over lightpaths, MPI programs, the ladder.

Matsuoka, Takizawa, Nakada, Koga and Takada, MPI Collective Communication over OBS Grid. The paper
is a set of slides. Our assumptions for open details are printed with the numbers.
"""

from __future__ import annotations

from opticoll_papers.common import Part, Progress, Results
from opticoll_papers.obs_grid import applications, congestion, costs, ladder

__all__ = ["reproduce"]


def reproduce(results: Results, progress: Progress | None = None, *, long: bool = False) -> Results:
    """Reproduces the paper; writes tables (CSV) and figures (SVG, PNG) into the results' folder.

    A quick run draws curves through fewer points, and simulates fewer bursts. `long` simulates
    enough bursts to measure the loss of the ladder reliably. Raises FileError if files cannot be
    written.
    """
    parts: dict[str, Part] = {
        "costs": lambda: costs.run(results, quick=results.quick),
        "EP and FT": lambda: applications.run(results),
        "MG": lambda: applications.motivation(results),
        "congestion": lambda: congestion.run(results, quick=results.quick),
        "testbed": congestion.testbed,
        "ladder": lambda: ladder.run(results, quick=results.quick, long=long),
    }
    results.compute(parts, progress, scale="quick" if results.quick else "long" if long else "")
    if not results.only:
        applications.draw(results)
        ladder.draw(results, quick=results.quick, long=long)
    return results
