"""Table of a page: columns with unit and meaning; columns with one constant value are separate.

>>> rows = [{"ranks": n, "time_s": n / 4, "bound_time_s": 1 / n, "verified": True} for n in (2, 4)]
>>> table = shown_table(rows, None)
>>> [(one.name, one.unit) for one in table.columns]
[('ranks', ''), ('time_s', 's'), ('gap', '%'), ('bound_time_s', 's')]
>>> [(one.name, one.values[0]) for one in table.same]
[('verified', True)]
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Any

from opticoll._core import Fabric, OpticollError
from opticoll.outputs.fabric_names import fabric_labels
from opticoll.outputs.layout import PICOSECONDS
from opticoll.outputs.rows import Column, Row, columns
from opticoll.report.rows_file import Rows, kinds

ENDINGS = {"_s": "s", "_ps": "ps", "_bytes": "B", "bandwidth": "bit/s"}
"""Units of columns whose row class is unknown, by ending of the column's name."""

ALWAYS_ASKED = (
    *("collective", "algorithm", "fabric", "ranks", "wavelengths", "size_bytes"),
    *("injection_bandwidth", "fabric_latency_s", "simulator", "policy", "start"),
)
"""Columns that count as varied by the user even if no option of the command has their name."""

BOUNDS = {"time_s": "bound_time_s", "steps": "bound_steps"}
"""Column of the lower bound, by column of the bounded quantity."""

FIRST = ("time_s", "gap", "bound_time_s", "steps", "gap_steps", "bound_steps")
"""Columns of results that precede other results."""

LAST = ("injection_bandwidth", "fabric_latency_s", "chosen", "specification")
"""Columns that follow from other columns of the request and are shown after them."""

MAX_VISIBLE_LENGTH = 40
"""Maximum number of characters of texts in a column that is visible by default."""


@dataclass(frozen=True)
class Shown:
    """Column of a page with a value per row; `asked` is True if the user varied the column."""

    name: str
    heading: str
    unit: str
    meaning: str
    asked: bool
    values: list[Any] = field(repr=False)

    @property
    def distinct(self) -> list[Any]:
        """Distinct values in the order of first appearance."""
        return list(dict.fromkeys(self.values))

    @property
    def number(self) -> bool:
        """True if all values are numbers or None."""
        some = [value for value in self.values if value is not None]
        kinds = {type(value) for value in some}
        return bool(some) and kinds <= {int, float}

    @property
    def long(self) -> bool:
        """True if the column is too wide to be shown by default."""
        return any(
            isinstance(value, str) and len(value) > MAX_VISIBLE_LENGTH for value in self.values
        )


@dataclass(frozen=True)
class Nested:
    """Column whose cells are tables.

    `columns` has the (name, heading, unit) of the tables' columns. `rows` has the rows of each
    table.
    """

    heading: str
    meaning: str
    columns: list[tuple[str, str, str]]
    rows: list[list[dict[str, Any]]] = field(repr=False)


@dataclass(frozen=True)
class ShownTable:
    """Table of a page: columns that differ between rows, constant columns, and nested tables."""

    columns: list[Shown]
    same: list[Shown]
    nested: list[Nested]

    def __len__(self) -> int:
        return len((self.columns or self.same)[0].values)

    def named(self, name: str) -> Shown | None:
        """Returns the column `name` if its values differ between rows, or None."""
        return next((column for column in self.columns if column.name == name), None)


def shown_table(
    rows: Rows, source_command: tuple[str, type[Row]] | None, axes: Iterable[str] = ()
) -> ShownTable:
    """Returns the table of rows; `axes` are the columns that the user varied.

    `source_command` is the command that wrote the rows and the class of these rows, or None.
    """
    names = dict.fromkeys(name for row in rows for name in row)
    about = {column.name: column for column in columns(source_command[1])} if source_command else {}
    varied = {*axes, *ALWAYS_ASKED, *(_options(source_command[1]) if source_command else ())}
    every: list[Shown] = []
    nested: list[Nested] = []
    for name in names:
        values = [_scalar(row.get(name)) for row in rows]
        column = about.get(name)
        if _nested(values):
            tables = [_within(value) for value in values]
            if any(tables):
                nested.append(_as_nested(name, tables, column))
            continue
        if f"{name.removesuffix('_ps')}_s" in names:
            continue
        unit = column.unit.name if column and column.unit else "" if column else _unit(name)
        every.append(
            Shown(
                name=name,
                heading=_heading(name, unit),
                unit="%" if unit == "1" else unit,
                meaning=column.meaning if column else "",
                asked=name in varied or name.removesuffix("_bytes") in varied,
                values=values,
            )
        )
    every = _times_in_seconds(every)
    every = [
        part
        for column in every
        for part in (_fabrics(column, names) if column.name == "fabric" else [column])
    ]
    every += _gaps(every)
    differ = [column for column in every if len(column.distinct) > 1 or len(rows) == 1]
    same = [column for column in every if len(column.distinct) == 1 and len(rows) > 1]
    return ShownTable(sorted(differ, key=_place), same, nested)


def led_by(table: ShownTable, names: Iterable[str]) -> ShownTable:
    """Moves the columns in `names`, and then the gap to the lower bound, to the front."""
    order = {name: place for place, name in enumerate([*names, "gap"])}
    led = sorted(table.columns, key=lambda column: order.get(column.name, len(order)))
    return dataclasses.replace(table, columns=led)


def _place(column: Shown) -> tuple[bool, int]:
    """Returns the sort key of a column: first varied columns, then the columns in `FIRST`."""
    if column.asked:
        return False, column.name in LAST
    return True, FIRST.index(column.name) if column.name in FIRST else len(FIRST)


def _scalar(value: Any) -> Any:
    """Returns the value of a cell; a list of texts becomes one text."""
    if isinstance(value, list) and all(isinstance(text, str) for text in value):
        return "; ".join(value) or None
    return value


def _nested(values: Iterable[Any]) -> bool:
    """Returns whether some value is a list, a record, or the JSON text of either in a CSV file.

    If all values are missing, the result is also True.
    """
    return any(
        isinstance(value, list | dict)
        or (isinstance(value, str) and value.startswith(("[{", '{"')))
        for value in values
    ) or all(value is None for value in values)


def _within(value: Any) -> list[dict[str, Any]]:
    """Returns the rows of a nested table; an empty list if `value` is no table."""
    if isinstance(value, str) and value.startswith("["):
        value = json.loads(value)
    rows = value if isinstance(value, list) else [value]
    return [row for row in rows if isinstance(row, dict)]


def _as_nested(name: str, tables: list[list[dict[str, Any]]], column: Column | None) -> Nested:
    """Returns a column whose cells are tables, and removes deeper tables from these tables."""
    kind = column.kind if column else None
    row_columns = columns(kind) if isinstance(kind, type) and issubclass(kind, Row) else ()
    about = {column.name: column for column in row_columns}
    names = dict.fromkeys(key for table in tables for row in table for key in row)
    shown = []
    for key in names:
        unit = about[key].unit if key in about else None
        of = unit.name if unit else "" if key in about else _unit(key)
        twin = f"{key.removesuffix('_ps')}_s" in names
        if not twin and not any(isinstance(row.get(key), list | dict) for t in tables for row in t):
            shown.append((key, _heading(key, of), "%" if of == "1" else of))
    return Nested(_heading(name, ""), column.meaning if column else "", shown, tables)


def _unit(name: str) -> str:
    return next((unit for ending, unit in ENDINGS.items() if name.endswith(ending)), "")


def _heading(name: str, unit: str) -> str:
    """Returns a column's heading: its name in words, without the unit."""
    ending = {"s": "_s", "ps": "_ps", "B": "_bytes"}.get(unit, "")
    words = name.removesuffix(ending).replace("_", " ").replace(".", ": ") or name
    return words[0].upper() + words[1:]


def _times_in_seconds(every: list[Shown]) -> list[Shown]:
    """Converts all columns of times to seconds."""
    return [
        dataclasses.replace(
            column,
            unit="s",
            values=[None if value is None else value / PICOSECONDS for value in column.values],
        )
        if column.unit == "ps"
        else column
        for column in every
    ]


def _fabrics(column: Shown, names: Iterable[str]) -> list[Shown]:
    """Returns the columns that replace a column of fabrics.

    They are the fabrics' names, their specifications, and each option that differs.
    """
    spellings = [str(spelling) for spelling in column.values]
    options = {spelling: _spelled_options(spelling) for spelling in dict.fromkeys(spellings)}
    labels = fabric_labels(options, _numeric(options))
    parts = [
        dataclasses.replace(
            column,
            meaning="Fabric: its family, and the options in which those of a family differ",
            values=[labels[spelling] for spelling in spellings],
        ),
        Shown("specification", "Specification", "", column.meaning, True, spellings),
    ]
    options_by_fabric = {
        name: facts for fabric_options in options.values() for name, facts in fabric_options.items()
    }
    for name, (_, unit, meaning) in options_by_fabric.items():
        values = [options[spelling].get(name, (None,))[0] for spelling in spellings]
        if name not in names and len(set(values) - {None}) > 1:
            parts.append(Shown(name, _heading(name, ""), unit, meaning, True, values))
    return parts


def _numeric(options: dict[str, dict[str, tuple[Any, str, str]]]) -> set[str]:
    """Returns the options that are numbers on all fabrics of each family that has the option."""
    families: dict[str, list[dict[str, tuple[Any, str, str]]]] = {}
    for spelling, fabric_options in options.items():
        families.setdefault(spelling.partition(":")[0], []).append(fabric_options)
    return {
        name
        for fabric_options in options.values()
        for name in fabric_options
        if all(
            isinstance(member_options.get(name, ("",))[0], int | float)
            for members in families.values()
            if any(name in member for member in members)
            for member_options in members
        )
    }


def _spelled_options(spelling: str) -> dict[str, tuple[Any, str, str]]:
    """Returns each option's value, unit and meaning; empty if the text is no fabric."""
    try:
        options = Fabric(spelling).options
    except OpticollError:
        return {}
    facts = {}
    for name, told_option in options.items():
        value: Any = told_option["value"]
        unit = told_option["unit"]
        if unit == "ps" and isinstance(value, int):
            value, unit = value / PICOSECONDS, "s"
        facts[name] = (value, unit, told_option["meaning"])
    return facts


def _gaps(every: Sequence[Shown]) -> list[Shown]:
    """Returns a column of gaps for each column that has a column of lower bounds."""
    by_name = {column.name: column for column in every}
    gaps = []
    for name, bound in BOUNDS.items():
        if name not in by_name or bound not in by_name:
            continue
        pairs = zip(by_name[name].values, by_name[bound].values, strict=True)
        values = [
            value / least - 1 if value is not None and least else None for value, least in pairs
        ]
        if any(value is not None for value in values):
            gap_name = "gap" if name == "time_s" else f"gap_{name}"
            of = by_name[name].heading.lower()
            meaning = f"How far the {of} is above its lower bound, as a share of the bound"
            gaps.append(Shown(gap_name, f"Gap to bound of {of}", "%", meaning, False, values))
    return gaps


@cache
def _options(kind: type[Row]) -> frozenset[str]:
    """Returns the options of all commands with rows of class `kind`.

    Each name is also returned without a final `s`: the option `sizes` varies the column `size`.
    """
    names = {"collective"}
    for command in (name for name, row_classes in kinds().items() if kind in row_classes):
        parameters = import_module(f"opticoll.commands.{command}").COMMAND.parameters
        for declared in dataclasses.fields(parameters):
            group = declared.default if dataclasses.is_dataclass(declared.default) else None
            names |= {part.name for part in dataclasses.fields(group)} if group else {declared.name}
    return frozenset(names - {"compute"} | {name.removesuffix("s") for name in names})


def encoded(column: Shown) -> dict[str, Any]:
    """Returns a column as the page stores it: texts are replaced by indices in a list of texts."""
    about = {
        "name": column.name,
        "heading": column.heading,
        "unit": column.unit,
        "meaning": column.meaning,
        "asked": column.asked,
        "number": column.number,
        "long": column.long,
    }
    if column.number:
        return {**about, "values": [_rounded(value) for value in column.values]}
    words = column.distinct
    places = {word: place for place, word in enumerate(words)}
    return {**about, "words": words, "places": [places[value] for value in column.values]}


def _rounded(value: Any) -> Any:
    """Rounds a number to twelve digits, which saves bytes."""
    return json.loads(f"{value:.12g}") if isinstance(value, float) else value
