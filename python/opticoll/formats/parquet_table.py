"""Event tables in Parquet files, read by the package `pyarrow` (an extra).

The file has the columns of an event table. A number may be null if an event table may leave its
field empty. Instead of comments, the file's schema has metadata: `ranks`, and `comm ID` for the
members of a communicator other than the world. In a row of an Alltoallv, the column `sizes` has a
list with the number of bytes for each member. Columns are passed to the core in batches of rows,
without conversion to text.
"""

from __future__ import annotations

import io
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opticoll._core import EventTable, Trace, take_memory
from opticoll.errors import FileError, OpticollError, needed

NUMBERS = {
    "rank": "a rank",
    "peer": "a rank",
    "send_bytes": "a number of bytes",
    "recv_bytes": "a number of bytes",
    "tag": "a tag",
    "comm": "a communicator",
    "req": "a request",
    "compute_ns": "a number of nanoseconds",
}
"""Meanings of the columns of numbers, in the order in which the core expects the columns."""

COLUMNS = ("rank", "call", *list(NUMBERS)[1:])
"""Required columns of a table."""

ABSENT = 2**64 - 1
"""Number that represents a missing number, as in the core."""

MAX_ROWS = 2**26
"""Maximum number of rows; a larger file is probably damaged or hostile."""

BYTES_PER_ROW = 48
"""Bytes of memory for the event of a row."""

_ROWS_AT_ONCE = 2**16


def read(_: object, content: bytes, __: object = None) -> Trace:
    """Reads the trace in the content of a file; other arguments are ignored."""
    return trace(content)


def trace(content: bytes) -> Trace:
    """Reads the trace in the content of a Parquet file.

    Raises
    ------
    UsageError
        The package `pyarrow` is not installed.
    FileError
        The content is no intact Parquet file, or a column is missing.
    TraceError
        A row is not valid in an event table; the message names the row.
    """
    pyarrow = needed("pyarrow", "Parquet tables are read by", "trace")
    from pyarrow import parquet

    try:
        # Use this thread only, since threads of pyarrow that outlive the call may abort the
        # process.
        return _read(parquet.ParquetFile(io.BytesIO(content), pre_buffer=False))
    except OpticollError:
        raise
    except (pyarrow.ArrowException, OSError) as error:
        problem = " ".join(str(error).split())
        raise FileError(f"the trace is not an intact Parquet file: {problem}") from error
    except (ValueError, TypeError, LookupError, ArithmeticError) as error:
        problem = " ".join(str(error).split())
        raise FileError(f"the Parquet table is not an event table: {problem}") from error


def _read(file: Any) -> Trace:
    rows, schema = file.metadata.num_rows, file.schema_arrow
    if rows > MAX_ROWS:
        raise FileError(
            f"the Parquet table is too large: {rows} rows, of which {MAX_ROWS} are read"
        )
    groups = (file.metadata.row_group(place) for place in range(file.metadata.num_row_groups))
    decompressed = max((group.total_byte_size for group in groups), default=0)
    take_memory("reading this Parquet table", rows * BYTES_PER_ROW + decompressed)
    for name in COLUMNS:
        if schema.names.count(name) != 1:
            few = "no column" if name not in schema.names else "more than one column"
            needed = f"one of each of {', '.join(COLUMNS)} is needed"
            raise FileError(f"the Parquet table has {few} `{name}`; {needed}")
    table = EventTable(*_members(schema.metadata or {}))
    wanted = [*COLUMNS, *(["sizes"] if "sizes" in schema.names else [])]
    before = 0
    for batch in file.iter_batches(_ROWS_AT_ONCE, columns=wanted, use_threads=False):
        names, call = _calls(batch.column("call"))
        numbers = [_numbers(batch.column(name), name, before) for name in NUMBERS]
        sizes = _sizes(batch.column("sizes"), before) if "sizes" in wanted else []
        table.extend(names, call, numbers, sizes)
        before += batch.num_rows
    return table.finish()


def _members(metadata: dict[bytes, bytes]) -> tuple[int | None, dict[int, list[int]]]:
    """Returns the number of ranks (or None), and the members of each communicator by its number."""
    ranks, communicators = None, {}
    for key, members in ((key.decode(), value.decode()) for key, value in metadata.items()):
        if key != "ranks" and not key.startswith("comm "):
            continue
        if not re.fullmatch("(ranks|comm [0-9]+)", key) or not re.fullmatch("[0-9 ]+", members):
            raise FileError(f"the metadata `{key}` of the Parquet table are not whole numbers")
        numbers = [int(member) for member in members.split()]
        if key == "ranks":
            (ranks,) = numbers
        else:
            communicators[int(key[5:])] = numbers
    return ranks, communicators


def _calls(column: Any) -> tuple[list[str], NDArray[np.uint32]]:
    """Returns the distinct names in a column, and for each row the index of its name."""
    import pyarrow

    coded = _text(column).fill_null("").dictionary_encode()
    return coded.dictionary.to_pylist(), coded.indices.cast(pyarrow.uint32()).to_numpy()


def _numbers(column: Any, name: str, before: int) -> NDArray[np.uint64]:
    """Converts a column to whole numbers, with `ABSENT` for missing numbers.

    `before` is the number of rows in earlier batches, which error messages need.
    """
    import pyarrow
    from pyarrow import compute

    if not (pyarrow.types.is_integer(column.type) or pyarrow.types.is_null(column.type)):
        text = _text(column)
        column = compute.if_else(compute.equal(text, ""), None, text)
    try:
        whole = column.cast(pyarrow.uint64())
    except pyarrow.ArrowInvalid as error:
        texts = enumerate(_text(column).to_pylist(), before + 1)
        row, text = next((row, text) for row, text in texts if not _is_whole(text))
        raise FileError(
            f"row {row} of the Parquet table, {name}: `{text}` is not {NUMBERS[name]}: a whole "
            "number that is not negative"
        ) from error
    return whole.fill_null(ABSENT).to_numpy()  # type: ignore[no-any-return]


def _is_whole(text: str | None) -> bool:
    return text is None or (text.isascii() and text.isdecimal() and int(text) <= ABSENT)


def _text(column: Any) -> Any:
    """Converts a column of any type to text."""
    import pyarrow

    if pyarrow.types.is_string(column.type):
        return column
    texts = [None if cell is None else str(cell) for cell in column.to_pylist()]
    return pyarrow.array(texts, pyarrow.string())


def _sizes(column: Any, before: int) -> list[tuple[int, list[int]]]:
    """Returns the index and the list of sizes of each row that has such a list.

    `before` is the number of rows in earlier batches, which error messages need.
    """
    rows_with_sizes = []
    for index in np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False)).tolist():
        texts = [str(size) for size in column[index].as_py()]
        if not all(re.fullmatch("[0-9]+", text) for text in texts):
            raise FileError(
                f"row {before + index + 1} of the Parquet table, sizes: `{' '.join(texts)}` are no "
                "whole numbers"
            )
        rows_with_sizes.append((index, [int(text) for text in texts]))
    return rows_with_sizes
