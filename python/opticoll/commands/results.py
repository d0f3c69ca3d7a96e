"""Command `results`: the stored results of studies as tables."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from opticoll.cli.option_types import argument, option
from opticoll.cli.runner import Command, on_command_line, rows_file
from opticoll.errors import UsageError
from opticoll.outputs.fabric_names import fabric_labels
from opticoll.outputs.layout import align, plural
from opticoll.outputs.plan_row import bandwidth_lines
from opticoll.outputs.rows import Column, columns
from opticoll.outputs.watch import Watch
from opticoll.study.points import command_of
from opticoll.study.results import ResultRow, table_of
from opticoll.study.store import Store

MAX_WIDTH = 110
"""Maximum number of characters of a line of the table."""

POINT_COLUMNS = ("study", "point", "command", "error", "found")
"""Columns that the table omits or shows last."""

MAX_AXIS_LENGTH = 40
"""Maximum number of characters of an axis' value in the table."""

MAX_LINES = 40
"""Maximum number of lines of a table without `--all`."""


@dataclass(frozen=True, kw_only=True)
class Parameters:
    """Parameters of `opticoll results`."""

    store: Path = argument("Store that `opticoll sweep` wrote")
    also: list[str] | None = option(
        "Further store, such as that of a shard; repeat the option for several (default: none)"
    )
    study: str | None = option("Name of a study (default: all in the store)")
    where: str | None = option(
        "Condition on columns, such as 'time_s < 1ms and ranks >= 64' (default: none)"
    )
    failed: bool = option("Only points that failed, with their errors", default=False)
    unfinished: bool = option("Additional rows for points that are not computed yet", default=False)
    found: bool = option("Only points that a search found", default=False)
    every: bool = option(
        f"All rows in the table, not only the first {MAX_LINES}", default=False, name="--all"
    )
    tables: bool = option(
        "Additional columns that contain tables, such as violations", default=False
    )


def compute(parameters: Parameters, watch: Watch) -> Iterator[ResultRow]:
    """Yields the rows of all selected points, ordered by study.

    Raises
    ------
    OpticollError
        A store cannot be read, a study is unknown, or there are no rows to show.
    """
    table = table_of(
        [parameters.store, *(parameters.also or ())],
        parameters.study,
        parameters.where,
        unfinished=parameters.unfinished,
        tables=parameters.tables,
    )
    wanted = [name for name in ("failed", "found") if getattr(parameters, name)]
    of = {"failed": "error", "found": "found"}
    rows = [row for row in table if all(row[of[name]] is not None for name in wanted)]
    if table.unknown and not parameters.failed:
        watch.notes.append(
            f"--where leaves out {plural(table.unknown, 'point')} that failed and so have no such "
            "value; `--failed` without --where shows them"
        )
    if not rows:
        hint = "; 'fat_tree' in axis_fabric finds a part of a text" if parameters.where else ""
        raise UsageError(
            f"there are no such results: no point, or none that meets the conditions{hint}"
        )
    yield from rows


def _text(parameters: Parameters, rows: list[ResultRow]) -> str:
    """Returns a table per study: its axes, and as many differing columns as the width allows."""
    with Store.read(parameters.store) as store:
        commands = {study.name: study.command for study in store.studies()}
    studies: dict[str, list[ResultRow]] = {}
    for row in rows:
        studies.setdefault(row.study, []).append(row)
    tables = []
    for name, study_rows in studies.items():
        classes = command_of(commands.get(name, "simulate")).rows
        kinds = classes if isinstance(classes, tuple) else (classes,)
        columns_by_name = {column.name: column for kind in kinds for column in columns(kind)}
        head = f"study {name}\n" if len(commands) > 1 else ""
        under = plural(len(study_rows), "row")
        most = len(study_rows) if parameters.every else MAX_LINES
        if len(study_rows) > most:
            under = f"the first {most} of {under}; all with --all"
        parts = [
            head + _table(study_rows, columns_by_name, most),
            under,
            *bandwidth_lines(study_rows),
        ]
        tables.append("\n".join(parts))
    tables[-1] += "\nall columns with --json or --csv FILE"
    return "\n\n".join(tables)


def _table(rows: list[ResultRow], columns_by_name: dict[str, Column], most: int) -> str:
    """Returns a table of the axes, the times, and as many differing columns as the width allows.

    The axes, the algorithm, the first time and the injection bandwidth are always shown, because
    different points would look alike without them. An axis is left out if another axis determines
    its values.
    """
    names = sorted(
        (name for name in rows[0] if name not in POINT_COLUMNS),
        key=lambda name: _rank(name, columns_by_name),
    )
    cells = {name: _cells(name, rows, columns_by_name) for name in [*names, "error", "found"]}
    always = [name for name in names if _rank(name, columns_by_name) == 1][:1]
    required = names if len(rows) == 1 else always
    names = [name for name in names if name in required or len(set(cells[name])) > 1]
    if all(row.replication == 0 for row in rows):
        names = [name for name in names if name != "replication"]
    always += [name for name in names if _rank(name, columns_by_name) in (0, 2)]
    shown: list[str] = []
    for name in dict.fromkeys([*always, *names]):
        axes = [column for column in shown if column not in columns_by_name]
        follows = (
            any(_follows(cells[name], cells[axis]) for axis in axes) and name not in columns_by_name
        )
        twice = any(cells[name] == cells[column] for column in shown)
        width = sum(2 + max(map(len, [column, *cells[column]])) for column in [*shown, name])
        if not follows and not twice and (name in always or width <= MAX_WIDTH):
            shown.append(name)
    shown.sort(key=names.index)
    shown += [name for name in ("error", "found") if any(row[name] for row in rows)]
    right = [
        place
        for place, name in enumerate(shown)
        if name in columns_by_name and columns_by_name[name].number
    ]
    lines = zip(*(cells[name] for name in shown), strict=True)
    return align([list(line) for line in list(lines)[:most]], shown, right)


def _follows(texts: list[str], others: list[str]) -> bool:
    """Returns whether a column depends on another column.

    If two rows have equal entries in `others`, they also have equal entries in `texts`.
    """
    return len(texts) > 1 and len(set(zip(texts, others, strict=True))) == len(set(others))


def _rank(name: str, columns_by_name: dict[str, Column]) -> int:
    """Returns a column's priority; columns with lower numbers are shown first.

    The priority is 0 for axes and the algorithm, 1 for times, 2 for the injection bandwidth, and 3
    for all other columns.
    """
    if name not in columns_by_name or name == "algorithm":
        return 0
    unit = columns_by_name[name].unit
    if unit is not None and unit.name == "s" and not name.startswith("fabric_"):
        return 1
    return 2 if name == "injection_bandwidth" else 3


def _cells(name: str, rows: list[ResultRow], columns_by_name: dict[str, Column]) -> list[str]:
    """Returns the texts of a column; empty texts if the column contains tables."""
    values = [row[name] for row in rows]
    if any(isinstance(value, list | dict) for value in values):
        return [""] * len(rows)
    column = columns_by_name.get(name)
    if column is not None:
        return [column.cell(value) for value in values]
    texts = ["-" if value is None else str(value) for value in values]
    if name in ("error", "found"):
        return texts
    if name.removeprefix("axis_") == "fabric":
        labels = fabric_labels(texts)
        texts = [labels[text] for text in texts]
    short = [
        text if len(text) <= MAX_AXIS_LENGTH else f"{text[: MAX_AXIS_LENGTH - 3]}..."
        for text in texts
    ]
    return short if len(set(short)) == len(set(texts)) else texts


COMMAND = Command(
    name="results",
    example="opticoll sweep examples/study.yaml --store study.sqlite\n"
    "opticoll results study.sqlite --where 'time_s < 1ms'",
    parameters=Parameters,
    rows=ResultRow,
    compute=compute,
    text=_text,
    progress_label="reading the store",
    files=(rows_file(),),
)
command_line = on_command_line(COMMAND)
