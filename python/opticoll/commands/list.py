"""The records of everything that has a name."""

# Not `from __future__ import annotations`: cyclopts reads the types of a dataclass at run time.

from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import import_module
from itertools import groupby
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from opticoll import registry
from opticoll.commands import COMMANDS
from opticoll.formats import FORMATS
from opticoll.layout import align, wrapped
from opticoll.registry import RecordRow
from opticoll.rows import Row, means
from opticoll.runner import Command, Watch, on_command_line


@dataclass(frozen=True, kw_only=True)
class List:
    """What `opticoll list` takes."""

    kind: Annotated[
        str | None,
        Parameter(
            help="algorithms, fabrics, presets, simulators, policies, start_rules, settings, "
            "collectives, wavelengths, models or devices, with options; a collective, for its "
            "algorithms; formats of files; or schemas, of what commands print with --json."
        ),
    ] = field(default=None, kw_only=False)


class SchemaRow(Row):
    """The JSON schema of what a command prints."""

    kind: Literal["schemas"] = means("Kind of the record")
    name: str = means("Name of the command")
    summary: str = means("What the command does, in one sentence")
    json_schema: dict[str, Any] = means("JSON schema")


class FormatRow(Row):
    """A format of files."""

    kind: Literal["formats"] = means("Kind of the record")
    name: str = means("Name of the format", "format")
    holds: Literal["plan", "rows", "timeline", "trace"] = means("What files hold")
    suffixes: list[str] = means("Endings of file names")
    read: bool = means("Whether commands read it")
    written: bool = means("Whether commands write it")


def compute(asked: List, watch: Watch) -> Iterator[RecordRow | FormatRow | SchemaRow]:
    """Records of all kinds, of one, or the algorithms of one collective; formats; schemas.

    Raises
    ------
    UsageError
        There is neither a kind nor a collective of that name.
    """
    own = asked.kind and registry.canonical(asked.kind, ["schemas", "formats"])
    if own == "formats":
        for one in FORMATS:
            yield FormatRow(
                kind="formats",
                name=one.name,
                holds=one.holds,
                suffixes=list(one.suffixes),
                read=bool(one.reads),
                written=bool(one.writes),
            )
        return
    if own == "schemas":
        for name, summary in COMMANDS.items():
            schema = import_module(f"opticoll.commands.{name}").COMMAND.schema()
            yield SchemaRow(kind="schemas", name=name, summary=summary, json_schema=schema)
        return
    for records in registry.listing(asked.kind).values():
        yield from records


def _text(asked: List, rows: list[RecordRow | FormatRow | SchemaRow]) -> str:
    formats = [row for row in rows if isinstance(row, FormatRow)]
    if formats:
        cells = [[row.name, row.holds, " ".join(row.suffixes), _use(row)] for row in formats]
        return align(cells, ["format", "holds", "endings", ""])
    schemas = [row for row in rows if isinstance(row, SchemaRow)]
    if schemas:
        return align([[row.name, row.summary] for row in schemas])
    parts = [
        (kind, _records(list(group), full=asked.kind is not None))
        for kind, group in groupby(
            (row for row in rows if isinstance(row, RecordRow)), lambda row: row.kind
        )
    ]
    if len(parts) == 1:
        return parts[0][1]
    return "\n\n".join(f"{kind.upper()}\n{text}" for kind, text in parts)


def _use(row: FormatRow) -> str:
    return " and ".join(["read"] * row.read + ["written"] * row.written)


def _records(records: list[RecordRow], full: bool) -> str:
    """Records of one kind: a line each and its citation, and (`full`) the options."""
    lines = []
    width = max(len(record.name) for record in records)
    collective = None
    for record in records:
        if record.collective != collective:
            collective = record.collective
            lines.append(f"{collective}:")
        indent = "  " if collective else ""
        lines.append(f"{indent}{record.name.ljust(width)}  {record.summary}")
        if full:
            details = [f"{one.name}: {one.meaning}" for one in record.options]
            lines.extend(wrapped(details, len(indent) + width + 4))
        if record.citation:
            lines.extend(wrapped([f"[{record.citation}]"], len(indent) + width + 4))
    return "\n".join(lines)


COMMAND: Command[List, RecordRow | FormatRow | SchemaRow] = Command(
    name="list",
    example="opticoll list algorithms",
    asks=List,
    gives=(RecordRow, FormatRow, SchemaRow),
    compute=compute,
    text=_text,
    doing="listing",
)
command_line = on_command_line(COMMAND)
