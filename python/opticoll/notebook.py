"""Plans, outcomes, tables and comparisons in notebooks: as HTML with units, and as DataFrames.

>>> import opticoll
>>> plan = opticoll.plan("all_gather", "wdm_ring:ranks=4,wavelengths=1", "ring")
>>> "<svg" in html(plan), "75.61 us" in html(plan.simulate("1KiB"))
(True, True)
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll._core import Outcome, Plan, Table
from opticoll.errors import PlotError
from opticoll.outputs.layout import READINGS
from opticoll.outputs.rows import Row, arrow_stream, columns, dataframe

if TYPE_CHECKING:
    import pandas

MAX_ROWS = 30
"""Maximum number of table rows that a notebook shows."""

MAX_DRAWN_TRANSFERS = 4_000
"""Maximum number of transfers of a plan for which a notebook shows a drawing."""

MAX_CELL_LENGTH = 60
"""Maximum number of characters of a cell; a column with a longer cell is left out."""

ENDINGS = {"ps": "_ps", "s": "_s", "B": "_bytes"}
"""Endings of column names, by unit of the column's values."""


def html(value: Plan | Outcome | Table) -> str:
    """Returns a plan with its drawing, an outcome's totals, or a table's rows, as HTML."""
    if isinstance(value, Plan):
        return _plan(value)
    if isinstance(value, Outcome):
        return _outcome(value)
    return _table(value)


def frame(value: Plan | Outcome | Table) -> pandas.DataFrame:
    """Returns a plan's transfers, an outcome's totals as one row, or a table's rows.

    If the table has several axes, the axes are the index of the DataFrame. Raises UsageError if the
    package `pandas` is not installed.
    """
    data = dataframe(_columns_of(value))
    if isinstance(value, Table) and len(value.axes) > 1:
        data = data.set_index(list(value.axes))
    return data


def stream(value: Plan | Outcome | Table, requested_schema: object = None) -> object:
    """Returns the rows of `frame` as an Arrow stream, with axes as columns.

    Raises UsageError if the package `pyarrow` is not installed.
    """
    return arrow_stream(_columns_of(value), requested_schema)


def _columns_of(value: Plan | Outcome | Table) -> dict[str, Any]:
    """Returns columns by name; if a table has several axes, the axes are the first columns."""
    if isinstance(value, Plan):
        return value.columns()
    if isinstance(value, Outcome):
        return {name: [total] for name, total in value.totals.items()}
    columns = {name: np.ravel(column) for name, column in value.columns.items()}
    if len(value.axes) < 2:
        return columns
    places = np.unravel_index(np.arange(len(value)), value.shape)
    return dict(zip(value.axes, places, strict=True)) | columns


def rows_html(rows: Sequence[Row]) -> str:
    """Returns rows as an HTML table; the table has only columns whose values differ."""
    if not rows:
        return "<p>no rows</p>"
    plain = [
        column for column in columns(type(rows[0])) if column.shape is None and not column.spread
    ]
    plain = [column for column in plain if not _is_twin(column.name, rows[0])]
    cells = [
        (column.heading, [column.cell(row.get(column.name)) for row in rows]) for column in plain
    ]
    return _differing(cells, len(rows))


def cells_html(rows: Sequence[Mapping[str, Any]], units: Mapping[str, str]) -> str:
    """Returns rows as an HTML table with units; the table has only columns whose values differ."""
    cells = []
    for name in rows[0] if rows else ():
        values, unit = [row[name] for row in rows], units.get(name, "")
        if not _is_twin(name, rows[0]) and not any(
            isinstance(value, list | dict) for value in values
        ):
            heading = name.removesuffix(ENDINGS.get(unit, ""))
            cells.append((heading, [_reading(value, unit) for value in values]))
    return _differing(cells, len(rows))


def _is_twin(name: str, row: Mapping[str, Any]) -> bool:
    """Returns whether another column has the quantity of column `name`, in seconds or bytes."""
    return f"{name}_bytes" in row or (
        name.endswith("_ps") and f"{name.removesuffix('_ps')}_s" in row
    )


def _differing(columns: Iterable[tuple[str, list[str]]], count: int) -> str:
    """Returns an HTML table of columns that have short cells and vary; `count` counts the rows."""
    shown = [
        (heading.replace("_", " "), cells)
        for heading, cells in columns
        if max(map(len, cells)) <= MAX_CELL_LENGTH and (len(set(cells)) > 1 or count == 1)
    ]
    return _lines(
        [heading for heading, _ in shown],
        zip(*(cells_of_column for _, cells_of_column in shown), strict=True),
        count,
    )


def _plan(plan: Plan) -> str:
    """Returns the facts of a plan as HTML, with the default drawing if the plan is small enough."""
    facts = [
        ("collective", f"{plan.collective.kind} on {plan.collective.ranks} ranks"),
        ("algorithm", plan.algorithm),
        ("fabric", plan.fabric.spec),
        ("slots", str(plan.slots)),
        ("transfers", f"{len(plan):,}"),
    ]
    return _facts(facts) + _picture(plan)


def _picture(plan: Plan) -> str:
    """Returns the default drawing of a plan as SVG, or an empty text if there is none."""
    if len(plan) > MAX_DRAWN_TRANSFERS:
        return ""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "plan.svg"
        try:
            plan.plot(path)
        except PlotError:
            return ""
        text = path.read_text(encoding="utf-8")
    return text[text.index("<svg") :]


def _outcome(outcome: Outcome) -> str:
    """Returns an outcome's totals with units, and the names of its tables, as HTML."""
    descriptions = {description["name"]: description for description in outcome.describe()}
    facts = [
        (name, _reading(value, descriptions[name]["unit"] if name in descriptions else ""))
        for name, value in outcome.totals.items()
        if value is not None and not isinstance(value, list | dict)
    ]
    tables = ", ".join(f"{name} ({len(table)})" for name, table in outcome.tables.items())
    return _facts([*facts, ("tables", tables)])


def _table(table: Table) -> str:
    units = {description["name"]: description["unit"] for description in table.describe()}
    rows = table.rows()
    names = list(rows[0]) if rows else []
    lines = ([_reading(row[name], units.get(name, "")) for name in names] for row in rows)
    return _lines(names, lines, len(rows))


def _reading(value: Any, unit: str) -> str:
    if value is None:
        return "-"
    if unit in READINGS and isinstance(value, int | float):
        return READINGS[unit](value)
    text = f"{value:,.4g}" if isinstance(value, float) else str(value)
    return f"{text} {unit}" if unit not in ("", "1") else text


def _facts(facts: Iterable[tuple[str, str]]) -> str:
    cells = "".join(
        f"<tr><th style='text-align:left'>{escape(name.replace('_', ' '))}</th>"
        f"<td style='text-align:left'>{escape(value)}</td></tr>"
        for name, value in facts
    )
    return f"<table>{cells}</table>"


def _lines(heading: Sequence[str], lines: Iterable[Sequence[str]], count: int) -> str:
    """Returns the first rows as an HTML table, and then the number of rows that are not shown."""
    head = "".join(f"<th>{escape(name)}</th>" for name in heading)
    body = ""
    for number, line in enumerate(lines):
        if number == MAX_ROWS:
            break
        body += f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in line)}</tr>"
    note = f"<p>and {count - MAX_ROWS} more rows</p>" if count > MAX_ROWS else ""
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f"<div style='overflow-x:auto'>{table}</div>{note}"
