"""Reproduction of published papers: their tables and figures, with a verdict on each number.

Papers use only the public interface of `import opticoll`. In opticoll, only the command
`reproduce` imports this package. `common` has the parts that several papers use.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["PAPERS", "Paper"]


@dataclass(frozen=True)
class Paper:
    """A paper that the function `reproduce` in the module of its name recomputes.

    `long`: the paper has cases that take many minutes. `parallel`: simulations can run at the same
    time.
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
"""Papers that can be reproduced, by name of their module."""
