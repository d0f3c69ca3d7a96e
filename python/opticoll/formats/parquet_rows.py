"""Tables as Parquet files, with the types of their columns, by the package `pyarrow` (an extra).

Columns have the names of the rows' keys; lists and records stay what they are, and None is null.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from opticoll.errors import FileError, UsageError
from opticoll.formats.atomic import replacing


def write(rows: Sequence[Mapping[str, object]], path: str | os.PathLike[str]) -> None:
    """Write the rows to a file.

    Raises
    ------
    UsageError
        The package `pyarrow` is not installed.
    FileError
        The file cannot be written, or Parquet has no type for the values of a column.
    """
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise UsageError(
            "Parquet tables are written by the package `pyarrow`, which is not installed; "
            "`pip install pyarrow` does it"
        ) from error
    try:
        table = pyarrow.Table.from_pylist([dict(row) for row in rows])
    except (pyarrow.ArrowException, OverflowError) as error:
        raise FileError(f"`{path}`: Parquet cannot hold the rows: {error}") from error
    with replacing(path) as temporary:
        parquet.write_table(table, temporary)
