"""Studies: algorithms compared under one cost model, and the tables of papers computed anew."""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

from opticoll.errors import UsageError
from opticoll.formats.atomic import make_folder
from opticoll.registry import canonical, nearest

if TYPE_CHECKING:
    from opticoll.study.findings import Progress
    from opticoll.study.results import Results

__all__ = ["PAPERS", "paper_name", "reproduce"]

PAPERS = {
    "dragonfly": "Cherièvre and Dorier, topology-aware scatter and all-gather on dragonflies",
    "optree": "Dai et al., OpTree: all-gather on optical interconnects",
    "wrht": "Dai et al., WRHT: all-reduce on optical interconnects",
    "oddl": "Li et al., ODDL: training on a fast reconfigurable optical network",
    "obs_grid": "Matsuoka et al., MPI collective communication over an OBS grid",
}
"""Papers that can be reproduced: the module of this package, and what it is about."""

LONG = ("obs_grid", "wrht")
"""Those with cases that take many minutes."""


PARALLEL = ("dragonfly",)
"""Those that run simulations side by side."""


def paper_name(name: str) -> str:
    """The key of `PAPERS` that a name stands for, whatever its case.

    Raises
    ------
    UsageError
        There is no such paper.
    """
    found = canonical(name, PAPERS)
    if found is None:
        raise UsageError(f"nothing to reproduce is called `{name}`{nearest(name, PAPERS)}")
    return found


def reproduce(
    name: str,
    output: Path,
    quick: bool = False,
    progress: Progress | None = None,
    *,
    long: bool = False,
    jobs: int | None = None,
) -> Results:
    """Recompute what a paper prints: findings and tables, with figures and CSV in `output`.

    Parameters
    ----------
    name
        A key of `PAPERS`.
    output
        A folder; it is created where it does not exist.
    quick
        Leave out the cases that take more than a few seconds.
    long
        Add the cases that take many minutes.
    progress
        Called with what comes next, the number of parts done, and of all.
    jobs
        Simulations that run side by side; as many as there are cores if not given. Results do not
        depend on it.

    Raises
    ------
    UsageError
        There is no such paper, or long is asked for where there are no such cases or together with
        quick, or jobs are given where nothing runs side by side.
    FileError
        No files can be written to the folder.
    """
    module = paper_name(name)
    if long and quick:
        raise UsageError("quick and long are both asked for; ask for one of them")
    if long and module not in LONG:
        raise UsageError(f"{module} has no longer cases; leave --long out")
    more: dict[str, object] = {"long": True} if long else {}
    if module in PARALLEL:
        more["jobs"] = jobs or os.cpu_count() or 1
    elif jobs is not None:
        raise UsageError(f"{module} runs no simulations side by side; leave --jobs out")
    make_folder(output)
    study = importlib.import_module(f"opticoll.study.{module}")
    results: Results = study.reproduce(output, quick, progress, **more)
    return results
