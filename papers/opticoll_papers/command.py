"""Command `reproduce`: recomputes a paper's tables and figures, with a verdict on each number.

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
    """A recomputed paper."""

    paper: str = means("Name of the paper")
    output: str | None = means(
        "Folder of figures and tables", absent="--only was given without --output"
    )
    findings: list[Finding] = means("Claims of the paper, each with a verdict")
    ours: list[OwnRow] = means("Plans of opticoll for comparison with the paper's numbers")
    electrical: list[ElectricalRow] = means(
        "Times on electrical fabrics, compared with optical ones; only wrht has some"
    )
    results: Any = hidden(default=None)


def compute(parameters: Reproduce, watch: Watch) -> Iterator[ReproduceRow]:
    """Reproduces one paper, or all papers.

    Raises
    ------
    OpticollError
        Any reason that `reproduce` lists.
    """
    if parameters.long and parameters.quick:
        raise UsageError("--quick and --long are both given; give one of them")
    every = canonical(parameters.name, (ALL,)) is not None
    if every and parameters.only is not None:
        raise UsageError("--only needs the name of one paper")
    names = [*PAPERS] if every else [paper_name(parameters.name)]
    above = parameters.output or Path("reproduced")
    ended = []
    with TemporaryDirectory() as nowhere:
        for name in names:
            folder = above / name if every or parameters.output is None else above
            is_kept = parameters.only is None or parameters.output is not None
            paper = PAPERS[name]
            results = reproduce(
                name,
                folder if is_kept else Path(nowhere),
                parameters.quick,
                watch.update,
                only=parameters.only,
                # The options apply only to papers that have them.
                long=parameters.long and (paper.long or not every),
                jobs=parameters.jobs if paper.parallel or not every else None,
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
    """Returns the key of `PAPERS` for a name, ignoring case, hyphens and underscores.

    Raises
    ------
    UsageError
        No paper has this name.
    """
    module = canonical(name, PAPERS)
    if module is None:
        raise UsageError(f"nothing to reproduce is called `{name}`{nearest(name, [*PAPERS, ALL])}")
    return module


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
        A folder, which is created if necessary.
    quick
        Whether to omit cases that take more than a few seconds.
    only
        The name of a claim, or the beginning of names before a dot. Other claims are omitted.
    long
        Whether to add cases that take many minutes.
    progress
        Called with the next part, the number of completed parts, and the number of all parts.
    jobs
        Number of simultaneous simulations (default: number of cores). Results do not depend on the
        number.

    Raises
    ------
    UsageError
        There is no such paper or claim. Or `long` is given for a paper without long cases, or
        together with `quick`. Or `jobs` is given for a paper without parallel simulations.
    FileError
        Files cannot be written to the folder.
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
        claim_names = dict.fromkeys(claim.id.partition(".")[0] for claim in load(module))
        raise UsageError(
            f"no claim of {module} is called `{only}`{nearest(str(only), claim_names)}"
        )
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


def _text(parameters: Reproduce, rows: list[ReproduceRow]) -> str:
    return "\n\n".join(study_text(row.results) for row in rows)


def study_text(results: Results) -> str:
    """Returns the tables and findings of a study; without tables if `only` was given."""
    if results.only:
        return _findings(results.findings)
    tables = [
        f"{table.title}\n\n{align(table.rows, table.heading, table.right)}"
        for table in results.tables
    ]
    return "\n\n".join([*tables, f"Findings\n\n{_findings(results.findings)}"])


def _findings(findings: Sequence[Finding]) -> str:
    """Returns the printed and the computed value of each claim, with its verdict and notes."""
    names = ("id", "paper", "computed", "unit", "verdict", "margin")
    notes = [f"{finding.id}: {finding.note}" for finding in findings if finding.note]
    shown = [
        replace(item, paper=value(item.paper), computed=value(item.computed)) for item in findings
    ]
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
