"""The ODDL paper computed anew: its switches, its four-node run, and what becomes of it at scale.

Li et al., Accelerate Distributed Deep Learning with a Fast Reconfigurable Optical Network, OFC
2024. The paper measures four nodes; larger systems are compared under assumptions that are printed
with the numbers, since it states none.
"""

from __future__ import annotations

from opticoll_papers.common import Part, Progress, Results
from opticoll_papers.oddl import collective, four_nodes, scaling

__all__ = ["reproduce"]


def reproduce(results: Results, progress: Progress | None = None) -> Results:
    """Recomputes the paper; writes tables (CSV) and figures (SVG, PNG) into the results' folder.

    A quick run leaves out plans for more than
    256 nodes and trainings on more than 64. Raises FileError where files cannot be written.
    """
    parts: dict[str, Part] = {
        "switches": lambda: collective.switches(results, quick=results.quick),
        "rings": collective.rings,
        "fat trees": collective.fat_trees,
        "dimensions": collective.dimensions,
        "partners": collective.partners,
        "one all_reduce": lambda: collective.timeline(results),
        "control": collective.control,
        "four nodes": lambda: four_nodes.run(results, quick=results.quick),
        "larger systems": lambda: scaling.run(results, quick=results.quick),
    }
    return results.compute(parts, progress, scale="quick" if results.quick else "")
