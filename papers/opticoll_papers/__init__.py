"""Published papers computed anew: their tables and figures, with a verdict on each number.

Papers are users of opticoll: they take what `import opticoll` offers to everybody, and nothing else
of the package imports them but the command `reproduce`. What they share is in `common`.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["PAPERS", "Paper"]


@dataclass(frozen=True)
class Paper:
    """A paper that is computed anew in the module of its name, by the function `reproduce` there.

    `long`: with cases that take many minutes. `parallel`: simulations run side by side.
    """

    title: str
    long: bool = False
    parallel: bool = False


PAPERS = {
    "dragonfly": Paper(
        "Cherièvre and Dorier: scatter and all_gather on dragonflies", parallel=True
    ),
    "optree": Paper("Dai et al., OpTree: all_gather on optical rings"),
    "wrht": Paper("Dai et al., WRHT: all_reduce on optical rings", long=True),
    "oddl": Paper("Li et al., ODDL: training on a fast reconfigurable grid"),
    "obs_grid": Paper("Matsuoka et al., OBS grid: MPI over burst-switched light", long=True),
}
"""Papers that can be reproduced, by the names of their modules."""
