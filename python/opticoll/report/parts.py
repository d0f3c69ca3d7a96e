"""Parts of a page; each part shows one source, such as rows, a plan or a training.

>>> part = rows_part("laps", [{"algorithm": "ring", "time_s": 0.5, "verified": True},
...     {"algorithm": "tree", "time_s": 0.25, "verified": True}])
>>> part.kind, [one["name"] for one in part.content["columns"]], part.also
('rows', ['algorithm', 'time_s'], [('Verified', True, '', '')])
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opticoll._core import Plan, format_size
from opticoll.cli.command_line import words
from opticoll.errors import UsageError
from opticoll.formats.atomic import write_file
from opticoll.inputs.values import to_bytes
from opticoll.outputs.fabric_names import remember_command
from opticoll.outputs.layout import PICOSECONDS, READINGS, describe_size, plural
from opticoll.outputs.plan_row import FABRIC_LATENCY, measured
from opticoll.outputs.rows import plain as rows_plain
from opticoll.report import figures, plan_page, rows_file
from opticoll.report import table as tables
from opticoll.report.rows_file import Rows
from opticoll.report.table import Shown, ShownTable
from opticoll.study.results import Results

if TYPE_CHECKING:
    from opticoll._core import Settings

Fact = tuple[str, Any, str, str]
"""Fact on a part: heading, value, unit and meaning."""

POINT_COLUMNS = ("study", "point", "command", "error")
"""Columns of results that the table omits; some are shown elsewhere."""

MAX_NESTED_ROWS = 10_000
"""Maximum number of rows of nested tables in a page."""

MAX_VALUES = 12
"""Maximum number of a column's values that are listed above the table."""

MAX_CASES = 6
"""Maximum number of cases for which the fastest plan is named."""

MAX_SEPARATE_BUCKETS = 40
"""Maximum number of buckets with a line per bucket; more buckets share a line."""


@dataclass(frozen=True)
class Part:
    """Part of a page; `kind` selects the section of the page that shows `content`."""

    kind: str
    title: str
    content: dict[str, Any]
    asked: list[str] = field(default_factory=list)
    """Command lines that computed the content."""
    answer: list[Fact] = field(default_factory=list)
    """Facts that a reader wants to know first."""
    facts: list[Fact] = field(default_factory=list)
    also: list[Fact] = field(default_factory=list)
    """Columns with the same value in every row, except options."""
    notes: list[str] = field(default_factory=list)
    source: str = ""
    """Text of the file that requested the part, such as a study's file."""
    figure: figures.Spec | None = None
    """Default figure of the page, which is also written as a file."""


def rows_part(
    title: str,
    rows: Rows,
    *,
    command: str | None = None,
    axes: Iterable[str] = (),
    commands: Sequence[str | None] | None = None,
    asked: Sequence[str] = (),
) -> Part:
    """Returns the part of a table and its figure.

    `command` is the command that computed the rows. By default, it is found from the names of the
    columns. `commands` has the command line of each row. `axes` and `asked` are columns that the
    user varied.
    """
    names = {name for row in rows for name in row}
    source_command = rows_file.command_of(names)
    if command is not None:
        source_command = (command, rows_file.kind_of(command, names))
    if commands is None:
        commands = [row.get("command") for row in rows]
        rows = [{key: cell for key, cell in row.items() if key != "command"} for row in rows]
    for row, line in zip(rows, commands, strict=True):
        remember_command(str(row.get("fabric")), line)
    table = tables.shown_table(rows, source_command, axes)
    choice = figures.first_choice(table)
    if choice is not None:
        table = tables.led_by(table, [choice[role] for role in ("colour", "facet", "x", "y")])
    content = {
        "columns": [
            {**tables.encoded(column), "channel": figures.channel(column)}
            for column in table.columns
        ],
        "same": [tables.encoded(column) for column in table.same],
        "count": len(rows),
        "choice": choice,
        "commands": _word_indices(commands),
        "tables": _tables(table),
    }
    return Part(
        "rows",
        title,
        content,
        asked=list(asked),
        answer=_answer(table, choice),
        facts=[
            *(_fact(column) for column in table.same if column.asked),
            *(
                _values(column)
                for column in table.columns
                if column.asked and not column.long and len(rows) > 1
            ),
        ],
        also=[_fact(column) for column in table.same if not column.asked],
        notes=_notes(rows, table),
        figure=None if choice is None else figures.specification(table, choice),
    )


def results_part(
    title: str, results: Results, command: str | None = None, asked: Sequence[str] = ()
) -> Part:
    """Returns the part of a study's computed points: a table with its figure."""
    rows = [rows_plain(row) for row in results]
    return points_part(title, rows, results.axes, command, asked)


def points_part(
    title: str,
    points: Rows,
    axes: Iterable[str],
    command: str | None = None,
    asked: Sequence[str] = (),
) -> Part:
    """Returns the part of a study's points: a table with its figure, and a note on failed points.

    Raises
    ------
    UsageError
        All points failed.
    """
    rows = [row for row in points if row["error"] is None]
    failed = [row for row in points if row["error"] is not None]
    first = f"; the first: {failed[0]['error']} ({failed[0]['command']})" if failed else ""
    if not rows:
        raise UsageError(f"`{title}`: there is no result to show{first}")
    part = rows_part(
        title,
        [{name: cell for name, cell in row.items() if _is_shown(name, row)} for row in rows],
        command=command,
        axes=axes,
        commands=[row["command"] for row in rows],
        asked=asked,
    )
    findings = [("Found", row["found"], "", row["command"]) for row in rows if row.get("found")]
    part.answer[:0] = findings
    if failed:
        part.notes.append(f"{plural(len(failed), 'point')} failed{first}")
    return part


def _is_shown(name: str, row: Mapping[str, Any]) -> bool:
    """Returns whether a column is shown; hidden columns repeat what other columns tell."""
    if name in POINT_COLUMNS or name.startswith("axis_") or f"{name}_bytes" in row:
        return False
    return not (name.startswith("fabric.") and row.get("fabric"))


def draw(results: Results, path: str | os.PathLike[str]) -> None:
    """Writes the figure of results as SVG, PNG or PDF, depending on the ending of `path`.

    Raises
    ------
    UsageError
        The package that draws is not installed, all rows have the same numbers, or `path` has
        another ending.
    FileError
        The file cannot be written.
    """
    ending = Path(path).suffix.lower()
    if ending not in figures.ENDINGS:
        endings = ", ".join(figures.ENDINGS)
        raise UsageError(f"a figure is a file that ends in one of {endings}; `{path}` does not")
    spec = results_part("", results).figure
    if spec is None:
        raise UsageError("there is nothing to draw: the rows differ in no number")
    write_file(path, figures.drawn(spec, ending))


def _answer(table: ShownTable, choice: figures.Spec | None) -> list[Fact]:
    """Returns facts on the fastest alternative, such as an algorithm, in each case of a table."""
    least, of = (table.named(choice[role]) for role in ("y", "colour")) if choice else (None, None)
    if least is None or of is None or least.unit != "s":
        return []
    rows = range(len(table))
    apart = (*tables.LAST, of.name)
    cases = [column for column in table.columns if column.asked and column.name not in apart]
    cases = [case for case in cases if not figures.follows(case, [of], rows)]
    wrong = [column.values for column in (*table.columns, *table.same) if column.name == "verified"]
    fastest_row: dict[tuple[Any, ...], int] = {}
    for row in rows:
        if least.values[row] is not None and not any(values[row] is False for values in wrong):
            current = fastest_row.setdefault(tuple(case.values[row] for case in cases), row)
            if least.values[row] < least.values[current]:
                fastest_row[tuple(case.values[row] for case in cases)] = row
    chosen = [column.values for column in (*table.columns, *table.same) if column.name == "chosen"]
    names = chosen[0] if chosen and of.name == "algorithm" else of.values
    about = f"Least {least.heading.lower()}"
    if len(fastest_row) == 1:
        (row,) = fastest_row.values()
        gap = table.named("gap")
        gap_fact = [] if gap is None else [(gap.heading, gap.values[row], gap.unit, gap.meaning)]
        return [
            (about, least.values[row], least.unit, least.meaning),
            (of.heading, names[row], "", of.meaning),
            *gap_fact,
        ]
    deciding: list[Shown] = []
    for column in sorted(cases, key=lambda column: column.name != "fabric"):
        if not figures.follows(column, deciding, rows):
            deciding.append(column)
    if len(deciding) == 1 and len(fastest_row) <= MAX_CASES:
        (column,) = deciding
        return [
            (
                f"{about}, {_reading(column, row)}",
                f"{_reading(least, row)} by {names[row]}",
                "",
                least.meaning,
            )
            for row in fastest_row.values()
        ]
    wins = Counter(_without_options(str(names[row])) for row in fastest_row.values())
    shares = [f"{name} in {count}" for name, count in wins.most_common(MAX_VALUES)]
    if not shares:
        return []
    return [(about, [f"{shares[0]} of {plural(len(fastest_row), 'case')}", *shares[1:]], "", "")]


def _reading(column: Shown, row: int) -> str:
    """Returns a column's value in a row as text, with its unit."""
    value = column.values[row]
    return (
        READINGS[column.unit](value)
        if column.unit in READINGS and value is not None
        else str(value)
    )


def _without_options(spelled: str) -> str:
    """Returns an algorithm's name without options; a user algorithm stays unchanged."""
    name, _, options = spelled.partition(":")
    return name if "=" in options else spelled


def _tables(table: ShownTable) -> list[dict[str, Any]]:
    """Returns as many nested tables as fit the page, the smallest first."""
    room, listed = MAX_NESTED_ROWS, []
    for nested in sorted(table.nested, key=lambda nested: sum(map(len, nested.rows))):
        room -= sum(map(len, nested.rows))
        if room < 0:
            break
        names = [name for name, _, _ in nested.columns]
        about = {"heading": nested.heading, "meaning": nested.meaning, "columns": nested.columns}
        rows = [[[row.get(name) for name in names] for row in rows] for rows in nested.rows]
        listed.append({**about, "rows": rows})
    return listed


def _fact(column: Shown) -> Fact:
    return column.heading, column.values[0], column.unit, column.meaning


def _values(column: Shown) -> Fact:
    """Returns a fact on a varied column: its first values and the number of further values."""
    values = [value for value in column.distinct if value is not None]
    hidden = len(values) - MAX_VALUES
    more = [f"and {hidden} more"] if hidden > 0 else []
    return column.heading, [*values[:MAX_VALUES], *more], column.unit, column.meaning


def _word_indices(commands: Sequence[str | None]) -> dict[str, Any]:
    """Returns the distinct words of command lines, and each line as indices of its words."""
    words: dict[str, int] = {}
    places = [
        None
        if command is None
        else [words.setdefault(word, len(words)) for word in command.split(" ")]
        for command in commands
    ]
    return {"words": list(words), "places": places}


def _notes(rows: Rows, table: ShownTable) -> list[str]:
    """Returns notes on unverified plans, and on differences that make times hard to compare."""
    notes = []
    wrong = sum(row.get("verified") is False for row in rows)
    if wrong:
        notes.append(f"{wrong} of {len(rows)} plans are not verified: do not trust their numbers.")
    injected = table.named("injection_bandwidth")
    if injected is not None and len(rows) > 1:
        notes.append(
            "The fabrics differ in the bandwidth that a rank can inject: the times compare "
            "machines of different capacity."
        )
    latencies = table.named("fabric_latency_s")
    if latencies is not None and len(rows) > 1:
        notes.append(
            "The fabrics differ in the latency to the farthest rank: of short messages the times "
            "compare that."
        )
    listed = [row["warnings"] for row in rows if isinstance(row.get("warnings"), list)]
    return [*notes, *dict.fromkeys(warning for warnings in listed for warning in warnings)]


def plan_part(
    title: str, plan: Plan, size: str | int, settings: Settings, source: str | None = None
) -> Part:
    """Returns the part of a plan, with its slots and its times at a size.

    `source` is the file of the plan.
    """
    size_bytes = to_bytes(size)
    row, outcome = measured(plan, plan.verify(), size_bytes, settings)
    content = plan_page.content(plan, size_bytes, outcome)
    answer: list[Fact] = [
        ("Time", row.time_ps / PICOSECONDS, "s", ""),
        ("Gap to bound", row.time_s / row.bound_time_s - 1 if row.bound_time_s else None, "%", ""),
        ("Slots", row.steps, "", ""),
        ("Verified", row.verified, "", ""),
    ]
    facts: list[Fact] = [
        ("Collective", plan.collective.kind, "", ""),
        ("Algorithm", _chosen(row.chosen, row.algorithm), "", ""),
        ("Fabric", plan.fabric.spec, "", ""),
        ("Injection", row.injection_bandwidth, "bit/s", "Bandwidth that a rank can inject"),
        ("Latency", row.fabric_latency_s, "s", FABRIC_LATENCY),
        ("Size", describe_size(size_bytes, row.size_convention), "", ""),
        ("Method", f"{row.policy or row.start}, simulator {row.simulator}", "", ""),
        ("Lower bound of slots", row.bound_steps, "", row.bound_assumption or ""),
        ("Transfers", row.transfers, "", ""),
        ("Lower bound of time", row.bound_time_s, "s", row.bound_time_assumption or ""),
    ]
    notes = [*row.warnings, *(violation.sentence for violation in row.violations[:20])]
    if content["left_out"]:
        slots_shown = len(content["slots"])
        notes.append(
            f"The page holds the first {slots_shown} of {plan.slots} slots: "
            f"{plan.slots - slots_shown} more are left out, as the page would be too large."
        )
    options = {"size": format_size(size_bytes), **settings}
    command_lines = [] if source is None else [words("simulate", [source], options)]
    answer, facts = ([fact for fact in group if fact[1] is not None] for group in (answer, facts))
    return Part(
        "plan", title, content, asked=command_lines, answer=answer, facts=facts, notes=notes
    )


def _chosen(chosen: str, requested: str) -> str:
    return chosen if chosen == requested else f"{chosen}, chosen by {requested}"


def training_part(title: str, row: Mapping[str, Any]) -> Part:
    """Returns the part of a training row: the timeline of an iteration."""
    timeline = row["timeline"]
    names = [
        f"{number + 1}: {bucket['bytes'] / 1e6:.3g} MB" for number, bucket in enumerate(timeline)
    ]
    content = {
        "forward": row["forward_s"],
        "compute": row["compute_s"],
        "many": len(timeline) > MAX_SEPARATE_BUCKETS,
        "buckets": [
            {
                "name": name,
                "about": f"all_reduce of bucket {name}, up to layer {bucket['layer']}",
                "bytes": bucket["bytes"],
                "tensors": bucket["tensors"],
                "layer": bucket["layer"],
                "ready": bucket["ready_s"],
                "start": bucket["start_s"],
                "end": bucket["end_s"],
            }
            for name, bucket in zip(names, timeline, strict=True)
        ],
    }
    answer: list[Fact] = [
        ("Iteration", row["iteration_s"], "s", ""),
        ("Exposed communication", row["exposed_communication_s"], "s", ""),
        ("Computing share", row["efficiency"], "%", ""),
        ("Verified", row["verified"], "", ""),
    ]
    facts: list[Fact] = [
        ("Model", row["label"], "", ""),
        ("Fabric", row["fabric"], "", ""),
        ("Injection", row["injection_bandwidth"], "bit/s", "Bandwidth that a rank can inject"),
        ("Latency", row["fabric_latency_s"], "s", FABRIC_LATENCY),
        ("Algorithm", f"all_reduce by {row['algorithm']}", "", ""),
        ("Batch per device", row["batch"], "", ""),
        ("Computing", row["compute_s"], "s", ""),
        ("Exposed reconfiguration", row["reconfiguration_s"], "s", ""),
        ("Exposed control", row["control_s"], "s", ""),
    ]
    command = row.get("command")
    return Part(
        "training",
        title,
        content,
        asked=[] if command is None else [command],
        answer=answer,
        facts=facts,
        notes=list(row["warnings"]),
    )


def plain(part: Part) -> dict[str, Any]:
    """Returns a part as the JSON content that the page stores."""
    stored: dict[str, Any] = {"kind": part.kind, "title": part.title, "asked": part.asked}
    stored |= {"answer": part.answer, "facts": part.facts, "also": part.also, "notes": part.notes}
    stored["source"] = part.source
    inner = part.content if part.kind == "rows" else {"content": part.content}
    content: dict[str, Any] = json.loads(json.dumps({**stored, **inner}))
    return content
