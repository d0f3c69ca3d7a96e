"""Demand of an all_to_all whose blocks differ in size: from a file, a matrix or a generator.

If all blocks have the same size, the result is as for an all_to_all without a demand.

>>> demand, size_bytes = to_demand([[0, 300, 100], [0, 0, 200], [50, 0, 0]], 3)
>>> demand, size_bytes
(<Demand of 3 ranks, 400 bytes of one rank at most>, 400)
>>> to_demand("one_hot:seed=1", 4)[1] is None
True
>>> checked_demand("all_to_all", [[0, 100, 100], [100, 0, 100], [100, 100, 0]], 3, None)
(None, 300)
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from opticoll import memory
from opticoll._core import Collective, Demand, OpticollError, generated_demand, parse_size
from opticoll.errors import CollectiveError, FileError
from opticoll.formats.content import read_text

if TYPE_CHECKING:
    import numpy

    from opticoll._core import Plan

    DemandLike: TypeAlias = (
        Demand | numpy.ndarray[Any, Any] | Sequence[Sequence[int]] | str | os.PathLike[str]
    )

HEADING = ["source", "destination", "bytes"]
"""Heading of a file with a line for each pair of ranks; a file without the heading is a matrix."""

DEFAULT_SIZE = "4MiB"

MAX_AMOUNT = 2**64 - 1
MAX_FILE_BYTES = 2**30
"""Maximum size of a file in bytes."""


def to_demand(demand: Any, ranks: int) -> tuple[Demand, int | None]:
    """Returns the demand among `ranks` ranks, and the largest number of bytes that a rank sends.

    A generated demand has only shares of a size, so the number of bytes is None.

    Raises
    ------
    CollectiveError
        The demand has another number of ranks, its matrix is invalid, or the generator is unknown.
    FileError
        The file cannot be read, or a line of it is wrong; the message names line and column.
    """
    if isinstance(demand, str) and not names_file(demand):
        return generated_demand(demand, ranks), None
    if isinstance(demand, str | os.PathLike):
        file_demand = read_csv(demand, ranks)
    elif isinstance(demand, Demand):
        file_demand = demand
    else:
        file_demand = _matrix_demand(demand)
    if file_demand.ranks != ranks:
        raise CollectiveError(
            f"the demand is among {file_demand.ranks} ranks, the fabric has {ranks}; "
            "a matrix has a row and a column for each rank"
        )
    return file_demand, file_demand.largest


def checked_demand(
    kind: str, demand: Any, ranks: int, size_bytes: int | None
) -> tuple[Demand | None, int]:
    """Returns the demand and the size in bytes; the demand is None if all blocks are equal.

    The size is `size_bytes`, or else the demand's size, or else the default.

    A rank's block for itself does not move, so its bytes are ignored. If all other blocks are
    equal, the size includes an equal block of each rank for itself, as without a demand.

    Raises
    ------
    CollectiveError
        The collective is no all_to_all; also any error that the docstring of `to_demand` lists.
    """
    full_demand, own_size = to_demand(demand, ranks)
    Collective(kind, ranks, demand=full_demand)
    if size_bytes is None:
        size_bytes = parse_size(DEFAULT_SIZE) if own_size is None else own_size
    if full_demand.even_block is None:
        return full_demand, size_bytes
    return None, size_bytes * full_demand.even_block * ranks // full_demand.largest


def names_file(demand: str) -> bool:
    """Returns whether a text is the name of a file, not of a generator."""
    return demand.lower().endswith((".csv", ".csv.zst")) or os.sep in demand


def _matrix_demand(matrix: Any) -> Demand:
    """Returns the demand of a matrix: a list of rows, or a NumPy array."""
    rows = matrix.tolist() if hasattr(matrix, "tolist") else matrix
    if not isinstance(rows, list | tuple) or not all(isinstance(row, list | tuple) for row in rows):
        raise CollectiveError("a demand is a matrix: a row for each source")
    for source, row in enumerate(rows):
        for destination, amount in enumerate(row):
            if (
                isinstance(amount, bool)
                or not isinstance(amount, int)
                or not 0 <= amount <= MAX_AMOUNT
            ):
                raise CollectiveError(
                    f"the demand from rank {source} to rank {destination} is {amount!r}: "
                    "it must be a whole number of bytes, 0 or more, below 2^64"
                )
    return Demand([list(row) for row in rows])


def read_csv(path: str | os.PathLike[str], ranks: int) -> Demand:
    """Reads a demand from a CSV file: a row of bytes per source, or a line per pair of ranks.

    Raises
    ------
    FileError
        The file cannot be read, or a line of it is wrong; the message names line and column.
    CollectiveError
        All amounts are zero.
    """
    text = read_text(path, "CSV file", MAX_FILE_BYTES)
    memory.take_values(f"reading `{path}`", text)
    lines = list(_cells(text))
    if lines and [cell.lower() for cell in lines[0][1]] == HEADING:
        amounts = _pair_amounts(path, lines[1:], ranks)
    else:
        amounts = _matrix_amounts(path, lines, ranks)
    try:
        return Demand(amounts)
    except OpticollError as error:
        raise CollectiveError(f"`{path}`: {error}") from error


def _cells(text: str) -> Iterator[tuple[int, list[str]]]:
    """Yields the line number and the cells of each line, without comments and empty lines."""
    for number, line in enumerate(text.splitlines(), 1):
        statement = line.partition("#")[0]
        if statement.strip():
            yield number, [cell.strip() for cell in statement.split(",")]


def _matrix_amounts(
    path: str | os.PathLike[str], lines: list[tuple[int, list[str]]], ranks: int
) -> list[list[int]]:
    """Returns the bytes by source and destination, from a file with a row per source."""
    if len(lines) != ranks:
        raise FileError(
            f"`{path}` has {len(lines)} rows, and the fabric {ranks} ranks: write a row for each, "
            f"or a line for each pair under the heading `{','.join(HEADING)}`"
        )
    rows = []
    for number, cells in lines:
        if len(cells) != ranks:
            raise FileError(
                f"`{path}`, line {number}: {len(cells)} amounts, and the fabric has {ranks} ranks"
            )
        rows.append([_amount(path, number, column, cell) for column, cell in enumerate(cells, 1)])
    return rows


def _pair_amounts(
    path: str | os.PathLike[str], lines: list[tuple[int, list[str]]], ranks: int
) -> list[list[int]]:
    """Returns the bytes by source and destination, from a file with a line per pair."""
    amounts = [[0] * ranks for _ in range(ranks)]
    named: dict[tuple[int, int], int] = {}
    for number, cells in lines:
        if len(cells) != len(HEADING):
            problem = f"{len(cells)} values where {','.join(HEADING)} are expected"
            raise FileError(f"`{path}`, line {number}: {problem}")
        source, destination = (
            _rank(path, number, column, cell, ranks) for column, cell in enumerate(cells[:2], 1)
        )
        earlier = named.setdefault((source, destination), number)
        if earlier != number:
            problem = f"line {earlier} has rank {source} to rank {destination} already"
            raise FileError(f"`{path}`, line {number}: {problem}")
        amounts[source][destination] = _amount(path, number, 3, cells[2])
    return amounts


def _rank(path: str | os.PathLike[str], line: int, column: int, cell: str, ranks: int) -> int:
    if not (cell.isascii() and cell.isdigit() and len(cell) < 11 and int(cell) < ranks):
        problem = f"`{cell[:40]}` is not a rank: ranks are 0 to {ranks - 1}"
        raise FileError(f"`{path}`, line {line}, column {column}: {problem}")
    return int(cell)


def _amount(path: str | os.PathLike[str], line: int, column: int, cell: str) -> int:
    """Parses the bytes in a cell: a whole number, or a size such as `4KiB`."""
    try:
        if cell.isascii() and cell.isdigit() and len(cell) < 21 and int(cell) <= MAX_AMOUNT:
            return int(cell)
        return parse_size(cell)
    except OpticollError as error:
        problem = f"`{cell[:40]}` is not a number of bytes, such as 4096 or 4KiB"
        raise FileError(f"`{path}`, line {line}, column {column}: {problem}") from error


def size_of(plan: Plan, size: str | None, demand: str | None = None) -> int:
    """Returns the size in bytes: `size`, or else the plan's size, or else the default."""
    if size is not None:
        size_bytes = parse_size(size)
        if demand is None:
            return size_bytes
        collective = plan.collective
        return checked_demand(collective.kind, demand, collective.ranks, size_bytes)[1]
    return parse_size(DEFAULT_SIZE) if plan.size_bytes is None else plan.size_bytes
