"""A paper's tables and figures computed anew, with a verdict on each number.

>>> paper_name("OpTree")
'optree'
"""

# Not `from __future__ import annotations`: cyclopts reads the types of a dataclass at run time.

import importlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from opticoll import words
from opticoll.errors import UsageError
from opticoll.formats.atomic import make_folder
from opticoll.layout import align, cell, wrapped
from opticoll.papers import PAPERS
from opticoll.registry import canonical, nearest
from opticoll.rows import Bytes, Count, Picoseconds, Positive, Row, Seconds, hidden, means
from opticoll.runner import Command, Watch, on_command_line

if TYPE_CHECKING:
    from opticoll.papers.kit import Progress, Results


@dataclass(frozen=True, kw_only=True)
class Reproduce:
    """What `opticoll reproduce` takes."""

    name: Annotated[
        str, Parameter(help="The paper: dragonfly, obs_grid, oddl, optree or wrht.")
    ] = field(kw_only=False)
    output: Annotated[
        Path | None,
        Parameter(
            help="Folder for figures and tables; reproduced/NAME if not given.",
            converter=words.path,
        ),
    ] = None
    quick: Annotated[bool, Parameter(negative=(), help="Leave out the largest cases.")] = False
    long: Annotated[
        bool,
        Parameter(
            negative=(),
            help="Add cases that take minutes: wrht on 4096 ranks; obs_grid, 4e8 bursts.",
        ),
    ] = False
    jobs: Annotated[
        int | None,
        words.count("Simulations side by side; as many as there are cores if not given.", 1024),
    ] = None


class FindingRow(Row):
    """One claim of a paper."""

    id: str = means("Claim")
    paper: float | str | None = means("Value that the paper prints", absent="it prints none")
    computed: float | str | None = means("Value that was computed", absent="none was computed")
    unit: str = means("Unit of both")
    verdict: Literal["reproduced", "refuted", "conditional", "not_reproducible"] = means("Verdict")
    note: str = means("Why")


class OwnRow(Row):
    """A plan of opticoll beside the paper's numbers; nothing of it is in the paper."""

    source: str = means("Source of the row: opticoll, not the paper")
    beside: str = means("Table or figure of the paper that the row stands beside")
    collective: str = means("Collective")
    algorithm: str = means("Algorithm as asked for")
    chosen: str = means("Algorithm of the plan")
    ranks: Positive = means("Number of ranks of the ring")
    wavelengths: Positive = means("Number of wavelengths of each directed fibre")
    size_bytes: Bytes = means("Size of the collective")
    steps: Count = means("Number of time slots really used")
    bound_steps: Count | None = means("Lower bound on the slots", absent="there is no such bound")
    bound_name: str | None = means(
        "Name of the bound on the slots", absent="there is no such bound"
    )
    time_s: Seconds = means("Simulated time, policy every_step")
    bound_time_s: Seconds = means("Lower bound on the time of any plan")
    bound_time_name: str = means("Name of the bound on the time")
    paper_algorithm: str = means("Algorithm of the paper that the row is compared with")
    paper_steps: Count | None = means(
        "Number of its steps by the paper's formula", absent="nothing is compared"
    )
    paper_time_s: Seconds | None = means(
        "Its time by the paper's formula", absent="nothing is compared"
    )
    verified: bool = means("Whether the plan has no violations")


class ElectricalRow(Row):
    """Times on an electrical fabric beside those on light."""

    fabric: str = means("Electrical fabric: crossbar or fat_tree")
    spelling: str = means("Complete specification of the electrical fabric")
    model: str = means("Model whose gradient is reduced")
    ranks: Positive = means("Number of ranks of each fabric")
    size_bytes: Bytes = means("Size of the gradient")
    rate_bits_per_second: Positive = means("Rate of an electrical port, each way")
    latency_ps: Picoseconds = means("Latency of a cable")
    start: str = means("Start rule of electrical flows")
    e_ring_s: Seconds = means("Time of ring on the electrical fabric")
    e_rd_s: Seconds = means("Time of recursive doubling on the electrical fabric")
    e_hd_s: Seconds = means("Time of halving and doubling on the electrical fabric")
    o_ring_formula_s: Seconds = means("Time of ring on light by its formula")
    wrht_claimed_s: Seconds = means("Time of WRHT on light by the poster's formula")
    wrht_constructed_s: Seconds = means("Time of WRHT on light, constructed and simulated")
    auto_s: Seconds | None = means(
        "Time of what opticoll finds on light", absent="no plan of it is compared"
    )
    auto_chosen: str | None = means("Algorithm of that plan", absent="no plan of it is compared")
    verified: bool = means("Whether all plans of the row have no violations")


class ReproduceRow(Row):
    """A paper computed anew."""

    paper: str = means("Name of the paper")
    output: str = means("Folder of figures and tables")
    findings: list[FindingRow] = means("Claims of the paper, each with a verdict")
    ours: list[OwnRow] = means("Plans of opticoll beside the paper's numbers")
    electrical: list[ElectricalRow] = means("Electrical fabrics beside light; empty but for wrht")
    results: Any = hidden(default=None)


def compute(asked: Reproduce, watch: Watch) -> Iterator[ReproduceRow]:
    """Compute a paper anew.

    Raises
    ------
    OpticollError
        As for `reproduce`.
    """
    name = paper_name(asked.name)
    folder = Path("reproduced", name) if asked.output is None else asked.output
    if asked.long and asked.quick:
        raise UsageError("--quick and --long are both given; give one of them")
    results = reproduce(name, folder, asked.quick, watch.update, long=asked.long, jobs=asked.jobs)
    watch.notes.append(f"wrote to {folder}: {', '.join(results.files)}")
    yield ReproduceRow(
        paper=name,
        output=str(folder),
        findings=[FindingRow(**finding) for finding in results.findings],
        ours=[OwnRow(**row) for row in results.ours],
        electrical=[ElectricalRow(**row) for row in results.electrical],
        results=results,
    )


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
    progress: "Progress | None" = None,
    *,
    long: bool = False,
    jobs: int | None = None,
) -> "Results":
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


def _text(asked: Reproduce, rows: list[ReproduceRow]) -> str:
    return study_text(rows[0].results)


def study_text(results: "Results") -> str:
    """The tables of a study, then its findings."""
    tables = [
        f"{table.title}\n\n{align(table.rows, table.heading, table.right)}"
        for table in results.tables
    ]
    findings = [FindingRow(**finding) for finding in results.findings]
    return "\n\n".join([*tables, f"Findings\n\n{_findings(findings)}"])


def _findings(findings: Sequence[FindingRow]) -> str:
    """What a paper prints beside what was computed, with the verdict."""
    rows = [
        [
            finding.id,
            cell(finding.paper),
            cell(finding.computed),
            finding.unit,
            finding.verdict,
        ]
        for finding in findings
    ]
    table = align(rows, ["finding", "paper", "computed", "unit", "verdict"], right={1, 2})
    notes = [f"{finding.id}: {finding.note}" for finding in findings if finding.note]
    return "\n".join([table, "", *wrapped(notes, 0)]) if notes else table


COMMAND = Command(
    name="reproduce",
    example="opticoll reproduce optree",
    asks=Reproduce,
    gives=ReproduceRow,
    compute=compute,
    text=_text,
    doing="reproducing",
    shape="row",
)
command_line = on_command_line(COMMAND)
