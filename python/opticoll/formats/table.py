"""Tables as CSV files (RFC 4180: commas, and quotes if necessary) and as Parquet files.

A Parquet file has a column for each key of the rows. Lists and records keep their types, and None
becomes null.

>>> from opticoll.formats.table import to_csv
>>> print(to_csv([{"algorithm": "ring", "steps": 3}]), end="")
algorithm,steps
ring,3
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
from collections.abc import Mapping, Sequence

from opticoll.errors import FileError, needed
from opticoll.formats.atomic import replacing, write_file
from opticoll.outputs.rows import plain

FORMULA = re.compile("[=+@\\t\\r]|-.")
"""Beginnings of texts that spreadsheets read as formulas; a single dash is no formula."""


def to_csv(rows: Sequence[Mapping[str, object]]) -> str:
    """Returns rows as CSV text; the first line has their keys, and None becomes an empty cell.

    A list of texts is joined by `; `. A list of rows becomes JSON. An empty list becomes an empty
    cell. Spreadsheets would read some texts as formulas. Such a text gets an apostrophe in front,
    which spreadsheets hide.

    Raises
    ------
    ValueError
        There are no rows, so the columns are unknown.
    """
    if not rows:
        raise ValueError("a table needs at least one row")
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]), lineterminator="\n")
    for row in ({name: name for name in rows[0]}, *rows):
        writer.writerow({key: _cell(value) for key, value in row.items()})
    return text.getvalue()


def write_csv(rows: Sequence[Mapping[str, object]], path: str | os.PathLike[str]) -> None:
    """Writes rows to a CSV file.

    Raises
    ------
    FileError
        The file cannot be written.
    """
    write_file(path, to_csv(rows))


def write_parquet(rows: Sequence[Mapping[str, object]], path: str | os.PathLike[str]) -> None:
    """Writes rows to a Parquet file, in which each column has a type.

    Raises
    ------
    UsageError
        The package `pyarrow` is not installed.
    FileError
        The file cannot be written, or Parquet has no type for a column's values.
    """
    pyarrow = needed("pyarrow", "Parquet tables are written by")
    from pyarrow import parquet

    try:
        table = pyarrow.Table.from_pylist([dict(row) for row in rows])
    except (pyarrow.ArrowException, OverflowError) as error:
        raise FileError(f"`{path}`: Parquet cannot hold the rows: {error}") from error
    with replacing(path) as temporary:
        parquet.write_table(table, temporary)


def _cell(value: object) -> object:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        texts = all(isinstance(part, str) for part in value)
        value = "; ".join(value) if texts else json.dumps(plain(value), ensure_ascii=False)
    return f"'{value}" if isinstance(value, str) and FORMULA.match(value) else value
