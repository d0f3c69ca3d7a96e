"""Reproduction of the ODDL paper: its switches, its run on four nodes, and larger systems.

Li et al., Accelerate Distributed Deep Learning with a Fast Reconfigurable Optical Network, OFC
2024. The paper measures four nodes. Larger systems are compared under our assumptions, which are
printed with the numbers.
"""

from __future__ import annotations

from opticoll_papers.common import Part, Progress, Results
from opticoll_papers.oddl import collective, four_nodes, scaling

__all__ = ["reproduce"]


def reproduce(results: Results, progress: Progress | None = None) -> Results:
    """Reproduces the paper; writes tables (CSV) and figures (SVG, PNG) into the results' folder.

    A quick run omits plans for more than 256 nodes, and trainings on more than 64 nodes. Raises
    FileError if files cannot be written.
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
