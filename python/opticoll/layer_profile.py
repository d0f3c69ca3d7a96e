"""Measured times of a model's layers, from a CSV or a YAML file.

In YAML, with the model's name and the batch per device at which the times were measured:

    model: tiny
    batch: 32
    layers:
      - {name: conv, parameters: [864, 32], forward: 120us, backward: 260us}
      - {name: dense, parameters: 320000, forward: 45us, backward: 90us}

In CSV, with the same columns; several tensors of a layer are joined by a plus sign:

    name,parameters,forward,backward
    conv,864+32,120us,260us
    dense,320000,45us,90us

Layers stand in the order in which they run forward. `parameters` are those of each gradient tensor;
a layer that learns nothing has none (`[]`, or an empty cell). Errors name file, line and field.

>>> import pathlib, tempfile
>>> from opticoll import layer_profile
>>> path = pathlib.Path(tempfile.mkdtemp()) / "tiny.csv"
>>> _ = path.write_text("name,parameters,forward,backward\\nconv,864+32,120us,260us\\n")
>>> layer_profile.read(path).layers
[('conv', [864, 32], 120000000, 260000000)]
"""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opticoll._core import UnitError, parse_time
from opticoll.config import is_yaml
from opticoll.document import Document, read_text
from opticoll.errors import ConfigError, FileError

COLUMNS = ("name", "parameters", "forward", "backward")
FIELDS = ("model", "batch", "layers")
MOST_PARAMETERS = 2**53

Layer = tuple[str, list[int], int, int]
"""Name, parameters of each tensor, picoseconds forward and backward."""


@dataclass(frozen=True)
class Profile:
    """What a file says: the batch per device is None where it does not say it."""

    model: str
    batch: int | None
    layers: list[Layer]

    @property
    def parameters(self) -> int:
        """All parameters."""
        return sum(sum(tensors) for _, tensors, _, _ in self.layers)


def read(path: str | os.PathLike[str]) -> Profile:
    """The profile in a file, whose suffix says what it is: .csv, .yaml or .yml.

    Raises
    ------
    ConfigError
        The file is no profile; the message names line and field.
    FileError
        The file cannot be read, or has another suffix.
    """
    path = Path(path)
    if is_yaml(str(path)):
        return _from_yaml(path)
    if path.suffix.lower() == ".csv":
        return Profile(path.stem, None, _from_csv(path))
    raise FileError(f"`{path}` is no profile of layers by its name; it must end in .csv or .yaml")


def _from_yaml(path: Path) -> Profile:
    document = Document.read(path)
    content = document.content
    document.check_fields(content, FIELDS)
    batch = content.get("batch")
    if batch is not None and (type(batch) is not int or batch < 1):
        raise document.error(("batch",), f"`{batch}` is no whole number above 0")
    layers = []
    for index, fields in enumerate(document.filled("layers")):
        place = ("layers", index)
        if not isinstance(fields, dict):
            raise document.error(place, f"`{fields}` is no layer; it has {', '.join(COLUMNS)}")
        document.check_fields(fields, COLUMNS, place)

        def refuse(field: str, problem: str, index: int = index) -> ConfigError:
            return document.error(("layers", index, field), problem)

        layers.append(_layer(fields, refuse))
    return Profile(str(content.get("model", path.stem)), batch, layers)


def _from_csv(path: Path) -> list[Layer]:
    text = read_text(path, "utf-8-sig")  # Spreadsheets put a mark first.
    rows = _rows(path, text)
    _, heading = next(rows, (1, []))
    if sorted(heading) != sorted(COLUMNS):
        raise ConfigError(f"{path}, line 1: the columns must be {', '.join(COLUMNS)}")
    layers = []
    for line, row in rows:
        if len(row) != len(heading):
            raise ConfigError(f"{path}, line {line}: {len(row)} cells, not {len(heading)}")
        fields: dict[str, Any] = dict(zip(heading, row, strict=True))
        cells = fields["parameters"]
        fields["parameters"] = [_number(cell) for cell in cells.split("+")] if cells else []

        def refuse(field: str, problem: str, line: int = line) -> ConfigError:
            return ConfigError(f"{path}, line {line}, {field}: {problem}")

        layers.append(_layer(fields, refuse))
    if not layers:
        raise ConfigError(f"{path}: there are no layers")
    return layers


def _rows(path: Path, text: str) -> Iterator[tuple[int, list[str]]]:
    """The rows that are not empty, each with the line on which it ends."""
    rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        for row in rows:
            if row:
                yield rows.line_num, [cell.strip() for cell in row]
    except csv.Error as error:
        raise ConfigError(f"{path}, line {rows.line_num}: this is no CSV: {error}") from error


def _number(text: str) -> int | str:
    """A whole number, or the text that is none, for the message."""
    return int(text) if re.fullmatch("[0-9]{1,18}", text.strip()) else text


def _layer(fields: dict[str, Any], refuse: Callable[[str, str], ConfigError]) -> Layer:
    """A layer from its fields; `refuse` makes the error for one of them."""
    for field in COLUMNS:
        if fields.get(field) is None:
            raise refuse(field, f"a layer has {', '.join(COLUMNS)}")
    given = fields["parameters"]
    tensors = given if isinstance(given, list) else [given]
    for count in tensors:
        if type(count) is not int or not 0 < count <= MOST_PARAMETERS:
            raise refuse("parameters", f"`{count}` is no whole number above 0")
    times = []
    for field in ("forward", "backward"):
        try:
            times.append(parse_time(str(fields[field])))
        except UnitError as error:
            raise refuse(field, str(error)) from error
    name = str(fields["name"])
    if not name.isprintable():
        raise refuse("name", f"`{name}` holds characters that do not print")
    return name, tensors, times[0], times[1]
