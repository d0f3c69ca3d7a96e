"""Event tables in Parquet files, read by the package `pyarrow` (an extra).

The columns are those of the event table as text; a number that is missing is an empty field. What
stands there in comments is metadata of the file's schema: `ranks`, and `comm ID` for the members of
a communicator other than the world. The bytes of an Alltoallv for each member are a list in the
column `sizes`.
"""

from __future__ import annotations

import io
import re
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

MOST_ROWS = 2**26
"""Rows beyond which a file is taken for damaged or hostile: they would make 4 GB of text."""

_ROWS_AT_ONCE = 4096


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
        # In this thread alone: threads of pyarrow that outlive the reading may abort the process.
        file = parquet.ParquetFile(io.BytesIO(content), pre_buffer=False)
        return "\n".join(_lines(file)) + "\n"
    except (pyarrow.ArrowException, OSError) as error:
        said = " ".join(str(error).split())
        raise FileError(f"the trace is no intact Parquet file: {said}") from error
    except (ValueError, TypeError, LookupError, ArithmeticError) as error:
        said = " ".join(str(error).split())
        raise FileError(f"the Parquet table holds what is no event table: {said}") from error


def _lines(file: Any) -> Iterator[str]:
    rows, schema = file.metadata.num_rows, file.schema_arrow
    if rows > MOST_ROWS:
        raise FileError(
            f"the Parquet table is too large: {rows} rows, of which {MOST_ROWS} are read"
        )
    for name in COLUMNS:
        if schema.names.count(name) != 1:
            few = "no column" if name not in schema.names else "more than one column"
            needed = f"one of each of {', '.join(COLUMNS)} is needed"
            raise FileError(f"the Parquet table has {few} `{name}`; {needed}")
    metadata = schema.metadata or {}
    texts = {key.decode(): value.decode() for key, value in metadata.items()}
    for key, members in texts.items():
        if key == "ranks" or key.startswith("comm "):
            if not re.fullmatch("(ranks|comm [0-9]+)", key) or not re.fullmatch("[0-9 ]+", members):
                raise FileError(f"the metadata `{key}` of the Parquet table are no whole numbers")
            yield f"# ranks={members}" if key == "ranks" else f"# {key} = {members}"
    yield ",".join(COLUMNS)
    wanted = [*COLUMNS, *(["sizes"] if "sizes" in schema.names else [])]
    number = 0
    for batch in file.iter_batches(_ROWS_AT_ONCE, columns=wanted, use_threads=False):
        columns = [batch.column(name).to_pylist() for name in wanted]
        for cells in zip(*columns, strict=True):
            number += 1
            texts_of_row = ("" if one is None else str(one) for one in cells[: len(COLUMNS)])
            yield ",".join(
                _cell(text, number, name) for text, name in zip(texts_of_row, COLUMNS, strict=True)
            )
            sizes = cells[len(COLUMNS)] if len(cells) > len(COLUMNS) else None
            if sizes is not None:
                yield f"# v {' '.join(_cell(str(size), number, 'sizes') for size in sizes)}"


def _cell(text: str, row: int, column: str) -> str:
    """A cell that is one word of the event table, and no more."""
    if not re.fullmatch(r"[\w.+-]*", text):
        raise FileError(f"row {row} of the Parquet table, {column}: `{text}` is no word or number")
    return text
