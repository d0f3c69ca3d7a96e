"""Rows of a JSON, CSV or Parquet file that a command wrote, and the name of the command.

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
"""Maximum number of characters of a CSV field, which may list all candidates of `auto`."""


def read(path: Path) -> Rows:
    """Returns the rows of a file.

    Raises
    ------
    FileError
        The file cannot be read, or contains no rows.
    UsageError
        The file is a Parquet file, and the package `pyarrow` is not installed.
    """
    if path.suffix.lower() == ".parquet":
        rows = _parquet(path)
    else:
        text = read_text(path, "text")
        memory.take_values(f"reading `{path}`", text)
        rows = _csv(text) if path.suffix.lower() == ".csv" else _json(path, text)
    if not rows or not all(isinstance(row, dict) and row for row in rows):
        raise FileError(f"`{path}` holds no rows: a command writes them with --json or --csv")
    return rows


def _json(path: Path, text: str) -> Rows:
    try:
        content = parse_json(text)
    except ConfigError as error:
        raise FileError(f"`{path}`: {error}") from error
    return content if isinstance(content, list) else [content]


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
    """Returns the row classes of all commands; the keys are the commands' names."""
    commands = import_module("opticoll.commands").installed()
    row_classes = {name: command.rows for name, command in commands.items()}
    return {
        name: value if isinstance(value, tuple) else (value,) for name, value in row_classes.items()
    }


def command_of(names: Iterable[str]) -> tuple[str, type[Row]] | None:
    """Returns the command that wrote columns with these names, and the class of its rows.

    The command with the most matching columns wins. `plan` comes before `compare`, since rows of
    both have the columns of a plan.
    """
    have = set(names)
    best_match: tuple[int, str, type[Row]] | None = None
    for name in sorted(kinds(), key=lambda name: name != "plan"):
        for kind in kinds()[name]:
            known_columns = columns(kind)
            needed = {
                column.name for column in known_columns if not (column.omitted or column.spread)
            }
            column_names = {column.name for column in known_columns}
            if needed <= have and (best_match is None or len(column_names & have) > best_match[0]):
                best_match = (len(column_names & have), name, kind)
    return None if best_match is None else best_match[1:]


def kind_of(command: str, names: Iterable[str]) -> type[Row]:
    """Returns the command's row class that has the most columns in `names`."""
    have = set(names)
    return max(
        kinds()[command], key=lambda kind: len(have & {column.name for column in columns(kind)})
    )


def is_training(row: Mapping[str, Any]) -> bool:
    """Returns whether a row is an iteration of `train` that contains its timeline."""
    return isinstance(row.get("timeline"), list) and "forward_s" in row and "compute_s" in row
