"""Rows that a command wrote as JSON, CSV or Parquet, and the command that wrote them.

>>> import pathlib, tempfile
>>> path = pathlib.Path(tempfile.mkdtemp()) / "rows.csv"
>>> _ = path.write_text("algorithm,steps,verified\\nring,3,true\\n")
>>> read(path)
[{'algorithm': 'ring', 'steps': 3, 'verified': True}]
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from opticoll import memory
from opticoll._core import take_memory
from opticoll.errors import ConfigError, FileError, needed
from opticoll.formats.content import read_text
from opticoll.formats.document import parse_json
from opticoll.formats.table import FORMULA
from opticoll.outputs.rows import Row, columns

Rows = list[dict[str, Any]]

_NUMBER = re.compile(r"-?\d+(\.\d*)?([eE][+-]?\d+)?")
_WORDS = {"": None, "true": True, "false": False}
_LARGEST_FIELD = 2**31 - 1
"""Maximum number of characters of a CSV field, since a row may hold all candidates of `auto`."""


def read(path: Path) -> Rows:
    """Returns the rows of a file.

    Raises
    ------
    FileError
        The file cannot be read, or holds no rows.
    UsageError
        A Parquet file is read without the package `pyarrow`.
    """
    if path.suffix.lower() == ".parquet":
        rows = _parquet(path)
    else:
        text = read_text(path, "text", "utf-8-sig")
        memory.take_values(f"reading `{path}`", text)
        rows = _csv(text) if path.suffix.lower() == ".csv" else _json(path, text)
    if not rows or not all(isinstance(row, dict) and row for row in rows):
        raise FileError(f"`{path}` holds no rows: a command writes them with --json or --csv")
    return rows


def _json(path: Path, text: str) -> Rows:
    try:
        held = parse_json(text)
    except ConfigError as error:
        raise FileError(f"`{path}`: {error}") from error
    return held if isinstance(held, list) else [held]


def _csv(text: str) -> Rows:
    before = csv.field_size_limit(_LARGEST_FIELD)
    try:
        return [
            {name: _typed(cell or "") for name, cell in row.items() if name}
            for row in csv.DictReader(io.StringIO(text))
        ]
    finally:
        csv.field_size_limit(before)


def _typed(cell: str) -> Any:
    if cell in _WORDS:
        return _WORDS[cell]
    if cell.startswith("'") and FORMULA.match(cell[1:]):
        return cell[1:]
    if _NUMBER.fullmatch(cell):
        return float(cell) if set(cell) & set(".eE") else int(cell)
    return cell


def _parquet(path: Path) -> Rows:
    pyarrow = needed("pyarrow", "Parquet tables are read by")
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(path) as file:
            cells = file.metadata.num_rows * file.metadata.num_columns
            take_memory(f"reading `{path}`", cells * memory.BYTES_PER_VALUE)
            rows: Rows = file.read().to_pylist()
    except (pyarrow.ArrowException, OSError) as error:
        raise FileError(f"cannot read `{path}`: {error}") from error
    return rows


@cache
def kinds() -> dict[str, tuple[type[Row], ...]]:
    """Returns the classes of rows of each command."""
    commands = import_module("opticoll.commands").installed()
    given = {name: command.rows for name, command in commands.items()}
    return {name: value if isinstance(value, tuple) else (value,) for name, value in given.items()}


def command_of(names: Iterable[str]) -> tuple[str, type[Row]] | None:
    """Returns the command whose rows have columns with some names, and the class of the rows.

    The command with the most matching columns is chosen; `plan` comes before `compare`, since both
    have rows of plans.
    """
    have = set(names)
    best: tuple[int, str, type[Row]] | None = None
    for name in sorted(kinds(), key=lambda name: name != "plan"):
        for kind in kinds()[name]:
            known_columns = columns(kind)
            needed = {
                column.name for column in known_columns if not (column.omitted or column.spread)
            }
            known = {column.name for column in known_columns}
            if needed <= have and (best is None or len(known & have) > best[0]):
                best = (len(known & have), name, kind)
    return None if best is None else best[1:]


def kind_of(command: str, names: Iterable[str]) -> type[Row]:
    """Returns the class of a command's rows with the most matching columns."""
    have = set(names)
    return max(
        kinds()[command], key=lambda kind: len(have & {column.name for column in columns(kind)})
    )


def is_training(row: Mapping[str, Any]) -> bool:
    """Returns whether a row is an iteration of training with its timeline."""
    return isinstance(row.get("timeline"), list) and "forward_s" in row and "compute_s" in row
