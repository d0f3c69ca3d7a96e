"""A paper's tables and figures computed anew, with a verdict on each number.

>>> paper_name("OpTree")
'optree'
"""

# Not `from __future__ import annotations`: cyclopts reads the types of a dataclass at run time.

import importlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from opticoll.cli.option_types import argument, count, option
from opticoll.cli.options import FURTHER
from opticoll.cli.runner import Command
from opticoll.errors import UsageError
from opticoll.formats.atomic import make_folder, replacing
from opticoll.names import canonical, nearest
from opticoll.outputs.layout import align, wrapped
from opticoll.outputs.rows import Row, hidden, means, table
from opticoll.outputs.watch import Watch
from opticoll_papers import PAPERS
from opticoll_papers.claims import load
from opticoll_papers.common import OwnRow, Progress, Results
from opticoll_papers.judging import Finding
from opticoll_papers.page import answer_of, answer_page, page, value
from opticoll_papers.wrht.electrical import ElectricalRow

ALL = "all"


@dataclass(frozen=True, kw_only=True)
class Reproduce:
    """Parameters of `opticoll reproduce`."""

    name: str = argument("Paper: dragonfly, obs_grid, oddl, optree, wrht, or all", default=ALL)
    output: Path | None = option(
        "Folder for figures and tables; for all papers, with a subfolder for each "
        "(default: reproduced/NAME)",
        metavar="FOLDER",
    )
    only: str | None = option(
        "Claims whose names begin with this text, such as table1 (default: all)",
        metavar="CLAIM",
    )
    quick: bool = option("Short run without the largest cases", default=False)
    long: bool = option(
        "Long run: wrht also on 4096 ranks, obs_grid with 4e8 bursts", default=False
    )
    jobs: int | None = count(
        "Number of simultaneous simulations (default: number of processors)", 1024, FURTHER
    )


class ReproduceRow(Row):
    """A paper computed anew."""

    paper: str = means("Name of the paper")
    output: str | None = means(
        "Folder of figures and tables", absent="only some claims were asked for, and no folder"
    )
    findings: list[Finding] = means("Claims of the paper, each with a verdict")
    ours: list[OwnRow] = means("Plans of opticoll beside the paper's numbers")
    electrical: list[ElectricalRow] = means("Electrical fabrics beside light; empty but for wrht")
    results: Any = hidden(default=None)


def compute(asked: Reproduce, watch: Watch) -> Iterator[ReproduceRow]:
    """Computes a paper anew.

    Raises
    ------
    OpticollError
        As for `reproduce`.
    """
    if asked.long and asked.quick:
        raise UsageError("--quick and --long are both given; give one of them")
    every = canonical(asked.name, (ALL,)) is not None
    if every and asked.only is not None:
        raise UsageError("--only needs the name of one paper")
    names = [*PAPERS] if every else [paper_name(asked.name)]
    above = asked.output or Path("reproduced")
    ended = []
    with TemporaryDirectory() as nowhere:
        for name in names:
            folder = above / name if every or asked.output is None else above
            is_kept = asked.only is None or asked.output is not None
            paper = PAPERS[name]
            results = reproduce(
                name,
                folder if is_kept else Path(nowhere),
                asked.quick,
                watch.update,
                only=asked.only,
                # Only papers that have these options receive them.
                long=asked.long and (paper.long or not every),
                jobs=asked.jobs if paper.parallel or not every else None,
            )
            ended.append(results)
            if is_kept:
                watch.notes.append(f"wrote to {folder}: {', '.join(results.files)}")
            yield ReproduceRow(
                paper=name,
                output=str(folder) if is_kept else None,
                findings=results.findings,
                ours=list(results.ours),
                electrical=list(results.electrical),
                results=results,
            )
        for results in ended:
            results.unfinished.drop()


def paper_name(name: str) -> str:
    """Returns the key of `PAPERS` for a name; case, hyphens and underscores do not matter.

    Raises
    ------
    UsageError
        There is no such paper.
    """
    known = canonical(name, PAPERS)
    if known is None:
        raise UsageError(f"nothing to reproduce is called `{name}`{nearest(name, [*PAPERS, ALL])}")
    return known


def reproduce(
    name: str,
    output: Path,
    quick: bool = False,
    progress: Progress | None = None,
    *,
    only: str | None = None,
    long: bool = False,
    jobs: int | None = None,
) -> Results:
    """Recomputes a paper's numbers: findings and tables, with figures and CSV in `output`.

    Parameters
    ----------
    name
        A key of `PAPERS`.
    output
        A folder; it is created where it does not exist.
    quick
        Leave out the cases that take more than a few seconds.
    only
        The name of a claim, or the beginning of names before a dot: the others are left out.
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
        There is no such paper or claim, or long is asked for where there are no such cases or
        together with quick, or jobs are given where nothing runs side by side.
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
    results = Results(output, module, only or "", quick)
    if not results.claims:
        known = dict.fromkeys(one.id.partition(".")[0] for one in load(module))
        raise UsageError(f"no claim of {module} is called `{only}`{nearest(str(only), known)}")
    study = importlib.import_module(f"opticoll_papers.{module}")
    study.reproduce(results, progress, **more)
    if only is not None:
        return results
    answer = answer_of(module)
    pages = {
        "answer.md": answer_page(
            paper.title,
            answer,
            results.findings,
            figure=f"{answer.figure}.svg",
            items="claims.md",
        ),
        "claims.md": page(paper.title, results.findings),
    }
    for name, text in pages.items():
        with replacing(output / name) as temporary:
            temporary.write_text(text, encoding="utf-8")
    results.files += pages
    return results


def _text(asked: Reproduce, rows: list[ReproduceRow]) -> str:
    return "\n\n".join(study_text(row.results) for row in rows)


def study_text(results: Results) -> str:
    """Returns the tables and findings of a study; only the findings if `only` is given."""
    if results.only:
        return _findings(results.findings)
    tables = [f"{one.title}\n\n{align(one.rows, one.heading, one.right)}" for one in results.tables]
    return "\n\n".join([*tables, f"Findings\n\n{_findings(results.findings)}"])


def _findings(findings: Sequence[Finding]) -> str:
    """Returns the printed and the computed value of each claim, with the verdict and notes."""
    names = ("id", "paper", "computed", "unit", "verdict", "margin")
    notes = [f"{finding.id}: {finding.note}" for finding in findings if finding.note]
    shown = [replace(one, paper=value(one.paper), computed=value(one.computed)) for one in findings]
    return "\n".join([table(shown, names), "", *wrapped(notes, 0)])


COMMAND = Command(
    name="reproduce",
    example="opticoll reproduce optree",
    parameters=Reproduce,
    rows=ReproduceRow,
    compute=compute,
    text=_text,
    progress_label="reproducing",
    shape="row or rows",
    names=PAPERS,
)
