"""Command `report`: one HTML page on studies, rows of commands, and plans."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import opticoll
from opticoll._core import Fabric
from opticoll.cli.arguments import settings_on
from opticoll.cli.option_types import argument, option
from opticoll.cli.options import METHOD, SizeOption
from opticoll.cli.runner import Command, File, on_command_line
from opticoll.errors import FileError, UsageError
from opticoll.formats import suffixes
from opticoll.formats.atomic import check_writable
from opticoll.formats.content import begins_with
from opticoll.inputs.demands import size_of
from opticoll.inputs.settings import set_settings
from opticoll.outputs.fabric_names import fabric_labels
from opticoll.outputs.layout import align, plural
from opticoll.outputs.rows import Row, columns, hidden, means
from opticoll.outputs.units import Count
from opticoll.outputs.watch import Watch

SQLITE = b"SQLite format 3\0"
"""First bytes of every store, which is an SQLite file."""

MAX_TRAININGS = 8
"""Maximum number of trainings with a timeline; the table has all trainings of a file."""


@dataclass(frozen=True, kw_only=True)
class Report:
    """Parameters of `opticoll report`."""

    sources: list[str] = argument(
        "Stores of `opticoll sweep`, plan files, and rows of commands as .json, .csv or .parquet",
        name="SOURCES",
    )
    title: str | None = option("Title of the page (default: the name of the first source)")
    size: SizeOption = None
    method: Any = METHOD


class PartRow(Row):
    """A part of a page."""

    source: str = means("File that the part shows")
    title: str = means("Title of the part")
    kind: str = means("Content of the part: rows, plan or training")
    rows: Count = means(
        "Number of rows; for a plan, number of slots; for a training, number of buckets"
    )
    part: Any = hidden(default=None)


def compute(parameters: Report, watch: Watch) -> Iterator[PartRow]:
    """Yields the parts of a page in the order of the sources.

    Raises
    ------
    OpticollError
        No file for the page is given, or a source cannot be read.
    """
    if not parameters.sources:
        raise UsageError("no source is given; give a plan file or rows such as times.json")
    if "output" not in watch.files:
        raise UsageError("--output is missing; give the name of a file, such as report.html")
    plans = [source for source in parameters.sources if source.endswith(suffixes("plan"))]
    settled = set_settings(vars(parameters.method)) and len(plans) > 1
    fabrics = [opticoll.read_plan(source).fabric for source in plans] if settled else []
    for done, source in enumerate(parameters.sources):
        watch.update(f"reading {source}", done, len(parameters.sources))
        for kind, count, part in _parts(parameters, source, fabrics):
            yield PartRow(source=source, title=part.title, kind=kind, rows=count, part=part)


def _parts(
    parameters: Report, source: str, fabrics: list[Fabric]
) -> Iterator[tuple[str, int, Any]]:
    """Yields the parts of a source as tuples: kind, number of rows or slots, content."""
    from opticoll.report import parts, rows_file
    from opticoll.study.results import ResultRow

    path = Path(source)
    if begins_with(path, SQLITE):
        yield from _studies(path)
        return
    if source.endswith(suffixes("plan")) or begins_with(path, b"opticoll plan "):
        plan = opticoll.read_plan(source)
        settings = settings_on(plan.fabric, fabrics, set_settings(vars(parameters.method)))
        part = parts.plan_part(path.name, plan, size_of(plan, parameters.size), settings, source)
        yield "plan", plan.slots, part
        return
    rows = rows_file.read(path)
    if {column.name for column in columns(ResultRow) if not column.spread} <= rows[0].keys():
        yield from _points(rows)
        return
    trainings = [row for row in rows if rows_file.is_training(row)]
    if len(rows) > 1 or not trainings:
        yield "rows", len(rows), parts.rows_part(path.stem, rows)
    labels = fabric_labels(str(row["fabric"]) for row in trainings)
    for row in trainings[:MAX_TRAININGS]:
        title = f"{row['label']} on {labels[str(row['fabric'])]}"
        yield "training", len(row["timeline"]), parts.training_part(title, row)


def _studies(path: Path) -> Iterator[tuple[str, int, Any]]:
    """Yields a part for each study in a store."""
    from opticoll.report import parts
    from opticoll.study.results import table_of
    from opticoll.study.store import Store

    with Store.read(path) as store:
        studies, runs = store.studies(), store.runs()
    for study in studies:
        study_runs = [run for run in runs if run["study"] == study.name]
        command_lines = list(
            dict.fromkeys(_without_place(str(run["command"])) for run in study_runs)
        )
        part = parts.results_part(
            study.name, table_of(path, study.name), study.command, command_lines
        )
        study_facts: list[parts.Fact] = [
            ("Study", f"{study.name}, of `opticoll {study.command}`", "", ""),
            ("Computed by", _run_origins(study_runs), "", ""),
        ]
        facts = [fact for fact in study_facts if fact[1]]
        yield (
            "rows",
            part.content["count"],
            replace(part, facts=[*facts, *part.facts], source=study.text),
        )


def _points(rows: list[dict[str, Any]]) -> Iterator[tuple[str, int, Any]]:
    """Yields a part for each study in rows that `opticoll results` wrote."""
    from opticoll.report import parts, rows_file
    from opticoll.study.results import ResultRow

    for study in dict.fromkeys(row["study"] for row in rows):
        study_rows = [row for row in rows if row["study"] == study]
        command = str(study_rows[0]["command"]).partition(" ")[2].partition(" ")[0]
        if command not in rows_file.kinds():
            raise FileError(f"`{study}`: `{study_rows[0]['command']}` is not a command with rows")
        kind = rows_file.kind_of(command, study_rows[0])
        command_columns = {column.name for column in (*columns(ResultRow), *columns(kind))}
        axes = [name for name in study_rows[0] if name not in command_columns]
        part = parts.points_part(str(study), study_rows, axes, command)
        yield "rows", part.content["count"], part


def _without_place(command: str) -> str:
    """Returns a command line with the program's name instead of its path."""
    program, _, arguments = command.partition(" ")
    return f"{Path(program).name} {arguments}"


def _run_origins(runs: list[dict[str, Any]]) -> list[str]:
    """Returns the distinct versions, machines and days of the runs of a study."""
    days = (time.strftime("%Y-%m-%d", time.gmtime(run["started"])) for run in runs)
    builds = zip(
        (f"opticoll {run['version']} on {run['machine']}" for run in runs), days, strict=True
    )
    return list(dict.fromkeys(f"{builder}, {day}" for builder, day in builds))


def _text(parameters: Report, rows: list[PartRow]) -> str:
    units = {"plan": "slot", "training": "bucket", "rows": "row"}
    lines = [[Path(row.source).name, row.kind, plural(row.rows, units[row.kind])] for row in rows]
    return align(lines, ["source", "part", "holds"])


def _write(parameters: Report, rows: list[PartRow], path: Path) -> None:
    from opticoll.report import document

    title = parameters.title or Path(parameters.sources[0]).stem
    document.write(title, [row.part for row in rows], path)


def _write_figures(parameters: Report, rows: list[PartRow], path: Path) -> list[Path]:
    from opticoll.report import document

    return document.write_figures([row.part for row in rows], path)


def _check_page(path: Path) -> None:
    """Raises an error, before any source is read, if a page cannot be made or written."""
    from opticoll.report import figures

    figures.library()
    check_writable(path)


def _check_folder(path: Path) -> None:
    """Raises an error if the path for figures is a file; a missing folder is created later."""
    if path.exists() and not path.is_dir():
        raise FileError(f"`{path}` is not a folder")


COMMAND = Command(
    name="report",
    example="opticoll plan all_gather --fabric optree_paper:ranks=64 --output tree.plan\n"
    "opticoll report tree.plan --output report.html",
    parameters=Report,
    rows=PartRow,
    compute=compute,
    text=_text,
    progress_label="reading",
    files=(
        File("output", "File for the page: .html (required)", _write, _check_page),
        File("figures", "Folder for the figures of the page as SVG", _write_figures, _check_folder),
    ),
)
command_line = on_command_line(COMMAND)
