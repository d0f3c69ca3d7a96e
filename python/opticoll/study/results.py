"""Results of studies as one table, with the axes of each point and the columns of its rows.

>>> import pathlib, tempfile
>>> from opticoll.study.store import Result
>>> path = pathlib.Path(tempfile.mkdtemp()) / "studies.sqlite"
>>> with Store.open(path) as store:
...     store.define(StudyRecord("rings", "simulate", ["size"], False),
...                  [(0, "ab12", 0, {"size": "1KiB"}, "opticoll simulate ...")])
...     store.keep([Result.of("ab12", [{"steps": 3, "time_s": 0.5}])])
>>> table = table_of(path, where="time_s < 1s")
>>> table[0]["size"], table[0]["steps"]
('1KiB', 3)
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from opticoll import _core
from opticoll.errors import UsageError, needed
from opticoll.names import nearest
from opticoll.outputs.layout import plural
from opticoll.outputs.rows import Column, Row, arrow_stream, columns, dataframe, means, plain
from opticoll.outputs.units import Count
from opticoll.study.expression import UNITS, Expression, quantity
from opticoll.study.points import command_of
from opticoll.study.store import Store, StoredPoint, StudyRecord

if TYPE_CHECKING:
    import pandas
    import xarray


class ResultRow(Row):
    """Row of a study's table: the axes of a point and the columns that its command printed.

    If the command prints several rows, the point has several rows; a failed point has one row with
    the error.
    """

    study: str = means("Name of the study")
    point: Count = means("Number of the point in the study, from 0")
    replication: Count = means("Number of the replication, from 0")
    command: str = means("Command line that computes the point alone")
    error: str | None = means("Error of the point, if it failed", absent="the point was computed")
    found: str | None = means(
        "Description of the point if a search found it",
        absent="the search did not select the point",
    )
    cells: dict[str, Any] = means(
        "Value of an axis, by name, or column of the command's row; an axis with the name of a "
        "column is called `axis_NAME`",
        spread=True,
    )


class Results(Sequence[ResultRow]):
    """Rows of studies, all with the same columns."""

    def __init__(
        self,
        rows: Sequence[ResultRow],
        axes: Sequence[str],
        units: dict[str, str],
        unknown: int = 0,
        names: Sequence[str] = (),
    ) -> None:
        self._rows, self.axes, self.units, self._names = rows, list(axes), units, list(names)
        self.unknown = unknown
        """Number of rows that are left out because they lack a value that the condition uses."""

    def __repr__(self) -> str:
        studies = ", ".join(dict.fromkeys(row.study for row in self._rows))
        return f"Results({plural(len(self), 'row')} of {studies or 'no study'})"

    def __eq__(self, other: object) -> bool:
        return vars(self) == vars(other) if isinstance(other, Results) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, place: Any) -> Any:
        return self._rows[place]

    def to_pandas(self) -> pandas.DataFrame:
        """Returns the rows as a pandas DataFrame.

        Raises
        ------
        UsageError
            The package `pandas` is not installed.
        """
        return dataframe({name: [row[name] for row in self._rows] for name in self._names})

    def to_xarray(self, dimensions: Sequence[str] | None = None) -> xarray.Dataset:
        """Returns the rows as an xarray Dataset: an array for each column over the axes.

        The coordinates of a dimension are the values of its column, in the order of the rows. The
        attribute `units` of an array is the unit of its column. Where there is no row, or where the
        row has no value, the value is missing (`Dataset.isnull`); such whole numbers become floats.

        Parameters
        ----------
        dimensions
            The columns that become dimensions (default: the axes, and `replication` if there are
            several). Of zipped axes, name only one. If a point has several rows, add the column
            that tells them apart, such as `algorithm`.

        Raises
        ------
        UsageError
            The package `xarray` is not installed, there is no such column, or two rows have the
            same place in the Dataset.
        MemoryLimitError
            The arrays would need more memory than the limit.
        """
        package = needed("xarray", "Datasets need")
        if dimensions is None:
            several = len({row["replication"] for row in self._rows}) > 1
            dimensions = [*self.axes, *(["replication"] if several else [])]
        for name in dimensions:
            if name not in self._names:
                raise UsageError(f"there is no column `{name}`{nearest(name, self._names)}")
            if any(isinstance(row[name], list | dict) for row in self._rows):
                raise UsageError(f"the column `{name}` holds tables, which cannot be a dimension")
        coordinates = {
            name: list(dict.fromkeys(row[name] for row in self._rows)) for name in dimensions
        }
        shape = tuple(map(len, coordinates.values()))
        others = [name for name in self._names if name not in coordinates]
        _core.take_memory("the Dataset", prod(shape) * len(others) * BYTES_PER_CELL)
        places = {
            name: {value: number for number, value in enumerate(values)}
            for name, values in coordinates.items()
        }
        rows_at: dict[tuple[int, ...], ResultRow] = {}
        for row in self._rows:
            place = tuple(places[name][row[name]] for name in dimensions)
            if place in rows_at:
                where = ", ".join(f"{name} {row[name]}" for name in dimensions) or "no dimension"
                raise UsageError(f"two rows have {where}; name further columns in `dimensions`")
            rows_at[place] = row
        arrays = {}
        for name in others:
            cells = {place: row[name] for place, row in rows_at.items()}
            unit = {"units": self.units[name]} if name in self.units else {}
            arrays[name] = (dimensions, _array(cells, shape), unit)
        indexes = {
            name: _array({(at,): value for at, value in enumerate(values)}, (len(values),))
            for name, values in coordinates.items()
        }
        dataset: xarray.Dataset = package.Dataset(arrays, indexes)
        return dataset

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return arrow_stream([plain(row) for row in self._rows], requested_schema)

    def plot(self, path: str | os.PathLike[str]) -> None:
        """Draws the rows as a page of `opticoll report` shows them, and writes the figure.

        The name of the file ends in `.svg`, `.png` or `.pdf`.

        Raises
        ------
        UsageError
            The package that draws is not installed, the rows differ in no number, or the name of
            the file has another ending.
        FileError
            The file cannot be written.
        """
        import_module("opticoll.report.parts").draw(self, path)

    def _repr_html_(self) -> str:
        from opticoll.notebook import cells_html

        return cells_html(self._rows, self.units)


BYTES_PER_CELL = 16
"""Bytes of a cell while its array is made: a pointer to the value, and the number."""


def _array(cells: Mapping[tuple[int, ...], Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """Returns values as an array of numbers, or else of objects; the other cells are missing."""
    flat = np.full(prod(shape), None, dtype=object)
    for place, value in cells.items():
        number = 0
        for index, length in zip(place, shape, strict=True):
            number = number * length + index
        flat[number] = value
    array = flat.reshape(shape)
    kinds = {type(value) for value in cells.values()} - {type(None)}
    is_whole = len(cells) == array.size and None not in cells.values()
    if kinds == {bool} and is_whole:
        return array.astype(bool)
    if not kinds or not kinds <= {int, float}:
        return array
    if kinds == {int} and is_whole:
        try:
            return array.astype(np.int64)
        except OverflowError:
            return array
    return array.astype(float)


Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


def table_of(
    stores: Paths,
    study: str | None = None,
    where: str | None = None,
    *,
    unfinished: bool = False,
    tables: bool = False,
) -> Results:
    """Returns the rows of studies from one store, or from several stores such as those of shards.

    If several stores have the same point, its result is read from the first store. Points without a
    result are included only with `unfinished`. Columns that contain tables are included only with
    `tables`.

    Raises
    ------
    OpticollError
        A store cannot be read, a study is unknown, or `where` is not a condition on columns.
    """
    paths = [stores] if isinstance(stores, str | os.PathLike) else list(stores)
    condition = None if where is None else Expression(where)
    first_points: dict[tuple[str, int], StoredPoint] = {}
    records: dict[str, StudyRecord] = {}
    for path in paths:
        with Store.read(path) as store:
            store_studies = {record.name: record for record in store.studies()}
            records |= store_studies
            for point in store.results(study if study is None or study in store_studies else ""):
                place = (point.study, point.number)
                if place not in first_points or first_points[place].result is None:
                    first_points[place] = point
    if study is not None and study not in records:
        raise UsageError(f"there is no study `{study}`; there are {', '.join(records)}")
    places = list(records)
    points = [value for value in first_points.values() if value.result is not None or unfinished]
    points.sort(key=lambda point: (places.index(point.study), point.number))
    return _table(points, records, condition, tables)


def _table(
    points: Sequence[StoredPoint],
    records: dict[str, StudyRecord],
    condition: Expression | None,
    tables: bool,
) -> Results:
    """Returns the rows of points; every row has all columns, in the same order."""
    raw = [
        (point, row)
        for point in points
        for row in ((point.result and point.result.rows) or [None])  # type: ignore[list-item]
    ]
    within = () if tables else _tables(records)
    in_rows = list(dict.fromkeys(name for _, row in raw for name in row or ()))
    in_rows = [name for name in in_rows if name not in within and name != "command"]
    # The order of the columns is the order in which the commands declare them.
    declared = dict.fromkeys(
        column.name for record in records.values() for column in _columns(record.command)
    )
    order = {name: place for place, name in enumerate(declared)}
    in_rows.sort(key=lambda name: order.get(name.partition(".")[0], len(order)))
    axes = list(dict.fromkeys(name for point in points for name in records[point.study].axes))
    fixed = {column.name for column in columns(ResultRow)}
    named = {name: f"axis_{name}" if name in {*in_rows, *fixed} else name for name in axes}
    shown = {name: f"row_{name}" if name in fixed else name for name in in_rows}
    names = [column.name for column in columns(ResultRow) if not column.spread]
    names += [*named.values(), *shown.values()]
    rows = []
    for point, row in raw:
        cells = {named[name]: point.axes.get(name) for name in axes}
        cells |= {shown[name]: (row or {}).get(name) for name in in_rows}
        result_row = ResultRow(
            study=point.study,
            point=point.number,
            replication=point.replication,
            command=point.command,
            error=_error(point),
            found=point.found,
            cells=cells,
        )
        rows.append(result_row)
    units: dict[str, str] = {}
    for record in records.values():
        own = units_of(record.command).items()
        units |= {shown[name]: unit for name, unit in own if name in shown}
    unknown = 0
    if condition is not None:
        judged = [(row, *_holds(condition, row, units)) for row in rows]
        rows = [row for row, holds, _ in judged if holds]
        unknown = sum(
            row.error is not None and not (holds or all_known) for row, holds, all_known in judged
        )
    return Results(rows, list(named.values()), units, unknown, names)


def _error(point: StoredPoint) -> str | None:
    return "not computed yet" if point.result is None else point.result.error


def _tables(records: dict[str, StudyRecord]) -> set[str]:
    """Returns the names of the columns that contain tables."""
    every = [column for record in records.values() for column in _columns(record.command)]
    rows = [
        column for column in every if isinstance(column.kind, type) and issubclass(column.kind, Row)
    ]
    return {column.name for column in rows}


def _columns(command: str) -> Iterator[Column]:
    classes = command_of(command).rows
    for kind in classes if isinstance(classes, tuple) else (classes,):
        yield from columns(kind)


def with_unit(value: Any, unit: str) -> Any:
    """Adds the unit to a number, so that it compares with `1ms`, `4MiB` or `40Gb/s`."""
    unit = unit.replace("bit", "b")
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return quantity(f"{value!r}{unit}") if unit in UNITS and number else value


def units_of(command: str) -> dict[str, str]:
    """Returns the units of a command's columns, by name of the column."""
    pairs = ((column.name, column.unit) for column in _columns(command))
    return {name: unit.name for name, unit in pairs if unit is not None and unit.name}


def _holds(condition: Expression, row: ResultRow, units: dict[str, str]) -> tuple[bool, bool]:
    """Returns whether a condition on columns holds, and whether all of its names have values.

    A condition with a missing value does not hold.
    """
    missing: list[str] = []

    def value(name: str) -> Any:
        cells = dict(row)
        if name not in cells:
            matching = [cell for cell in cells if cell.rpartition(".")[2] == name]
            if len(matching) != 1:
                text = "" if matching else f"; a text stands in quotation marks: '{name}'"
                raise UsageError(
                    f"--where: there is no column `{name}`{nearest(name, cells, text)}"
                )
            name = matching[0]
        if cells[name] is None:
            missing.append(name)
        return with_unit(cells[name], units.get(name, ""))

    return condition.holds(value), not missing
