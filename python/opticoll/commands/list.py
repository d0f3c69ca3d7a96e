"""The records of everything that has a name."""

# Not `from __future__ import annotations`: cyclopts reads the types of a dataclass at run time.

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import Annotated

from cyclopts import Parameter

from opticoll import registry
from opticoll.layout import wrapped
from opticoll.registry import RecordRow
from opticoll.runner import Command, Watch, on_command_line

__all__ = ["COMMAND", "List", "compute"]


@dataclass(frozen=True, kw_only=True)
class List:
    """What `opticoll list` takes."""

    kind: Annotated[
        str | None,
        Parameter(
            help="algorithms, fabrics, presets, simulators, policies, start_rules, settings, "
            "collectives, wavelengths, models or devices, with options; or a collective, for its "
            "algorithms."
        ),
    ] = field(default=None, kw_only=False)


def compute(asked: List, watch: Watch) -> Iterator[RecordRow]:
    """Records of all kinds, of one, or the algorithms of one collective.

    Raises
    ------
    UsageError
        There is neither a kind nor a collective of that name.
    """
    for records in registry.listing(asked.kind).values():
        yield from records


def _text(asked: List, rows: list[RecordRow]) -> str:
    parts = [
        (kind, _records(list(group), full=asked.kind is not None))
        for kind, group in groupby(rows, lambda row: row.kind)
    ]
    if len(parts) == 1:
        return parts[0][1]
    return "\n\n".join(f"{kind.upper()}\n{text}" for kind, text in parts)


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


COMMAND = Command(
    name="list",
    example="opticoll list algorithms",
    asks=List,
    gives=RecordRow,
    compute=compute,
    text=_text,
    doing="listing",
)
command_line = on_command_line(COMMAND)
