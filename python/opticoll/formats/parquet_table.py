"""Event tables in Parquet files, read by the package `pyarrow` (an extra).

The columns are those of the event table as text; a number that is missing is an empty field. What
stands there in comments is metadata of the file's schema: `ranks`, and `comm ID` for the members of
a communicator other than the world. The bytes of an Alltoallv for each member are a list in the
column `sizes`.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

from opticoll.errors import FileError, UsageError

__all__ = ["COLUMNS", "table"]

COLUMNS = (
    "rank",
    "call",
    "peer",
    "send_bytes",
    "recv_bytes",
    "tag",
    "comm",
    "req",
    "compute_ns",
)
"""The columns that a table has."""


def table(content: bytes) -> str:
    """The event table as text.

    Raises
    ------
    UsageError
        The package `pyarrow` is not installed.
    FileError
        It is no intact Parquet file, or a column is missing.
    """
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise UsageError(
            "Parquet tables are read by the package `pyarrow`, which is not installed; "
            "`pip install pyarrow` does it"
        ) from error
    try:
        read = parquet.read_table(io.BytesIO(content))
    except (pyarrow.ArrowException, OSError) as error:
        said = " ".join(str(error).split())
        raise FileError(f"the trace is no intact Parquet file: {said}") from error
    try:
        for name in COLUMNS:
            if name not in read.column_names:
                raise FileError(
                    f"the Parquet table has no column `{name}`; {', '.join(COLUMNS)} are needed"
                )
        return "\n".join(_lines(read)) + "\n"
    except (pyarrow.ArrowException, ValueError, TypeError) as error:
        said = " ".join(str(error).split())
        raise FileError(f"the Parquet table holds what is no event table: {said}") from error


def _lines(read: Any) -> Iterator[str]:
    metadata = read.schema.metadata or {}
    texts = {key.decode(): value.decode() for key, value in metadata.items()}
    if "ranks" in texts:
        yield f"# app={texts.get('app', 'parquet')} ranks={texts['ranks']}"
    for key, members in texts.items():
        if key.startswith("comm "):
            yield f"# {key} = {members}"
    yield ",".join(COLUMNS)
    columns = [read.column(name).to_pylist() for name in COLUMNS]
    nothing = [None] * read.num_rows
    various = read.column("sizes").to_pylist() if "sizes" in read.column_names else nothing
    for sizes, *fields in zip(various, *columns, strict=True):
        yield ",".join("" if one is None else str(one) for one in fields)
        if sizes is not None:
            yield f"# v {' '.join(map(str, sizes))}"
