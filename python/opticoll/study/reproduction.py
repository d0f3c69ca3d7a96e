"""A paper's tables and figures computed anew: which papers there are, and what each can be asked.

>>> paper_name("OpTree")
'optree'
"""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

from opticoll.errors import UsageError
from opticoll.formats.atomic import make_folder
from opticoll.papers import PAPERS
from opticoll.registry import canonical, nearest

if TYPE_CHECKING:
    from opticoll.papers.kit import Progress, Results

__all__ = ["paper_name", "reproduce"]


def paper_name(name: str) -> str:
    """The key of `PAPERS` that a name stands for, whatever its case, hyphens and underscores.

    Raises
    ------
    UsageError
        There is no such paper.
    """
    known = canonical(name, PAPERS)
    if known is None:
        raise UsageError(f"nothing to reproduce is called `{name}`{nearest(name, PAPERS)}")
    return known


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
        Called with what comes next, the number of parts that have ended, and of all.
    jobs
        Number of simulations that run side by side (default: number of cores). Results do not
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
    paper = PAPERS[module]
    if long and quick:
        raise UsageError("quick and long are both asked for; ask for one of them")
    if long and not paper.long:
        raise UsageError(f"{module} has no longer cases; leave --long out")
    if jobs is not None and not paper.parallel:
        raise UsageError(f"{module} runs no simulations side by side; leave --jobs out")
    more: dict[str, object] = {"long": True} if long else {}
    if paper.parallel:
        more["jobs"] = jobs or os.cpu_count() or 1
    make_folder(output)
    study = importlib.import_module(f"opticoll.papers.{module}")
    results: Results = study.reproduce(output, quick, progress, **more)
    return results
