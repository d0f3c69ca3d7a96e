"""Measured times of a model's layers, from a CSV or YAML file.

A YAML file also has the model's name, and the batch per device with which times were measured:

    model: tiny
    batch: 32
    layers:
      - {name: conv, parameters: [864, 32], forward: 120us, backward: 260us}
      - {name: dense, parameters: 320000, forward: 45us, backward: 90us}

A CSV file has a column for each field of a layer; a plus sign joins several tensors of a layer:

    name,parameters,forward,backward
    conv,864+32,120us,260us
    dense,320000,45us,90us

Layers are listed in the order of the forward pass. `parameters` are the numbers of parameters of
the layer's gradient tensors. For a layer without parameters, they are `[]` or an empty cell. Errors
name file, line and field.

>>> import pathlib, tempfile
>>> from opticoll.inputs import layer_profile
>>> path = pathlib.Path(tempfile.mkdtemp()) / "tiny.csv"
>>> _ = path.write_text("name,parameters,forward,backward\\nconv,864+32,120us,260us\\n")
>>> layer_profile.read(path).layers
[Layer(name='conv', parameters=[864, 32], forward=120000000, backward=260000000)]
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from opticoll._core import parse_time
from opticoll.errors import ConfigError, FileError
from opticoll.formats.content import csv_rows
from opticoll.formats.document import Document, Place, Text, is_yaml, read_fields, whole

MAX_PARAMETERS = 2**53


def _tensors(value: Any) -> list[int]:
    tensors = value if isinstance(value, list) else [value]
    for count in tensors:
        if type(count) is not int or not 0 < count <= MAX_PARAMETERS:
            raise ConfigError(f"`{count}` is not a whole number above 0")
    return tensors


def _name(value: Any) -> str:
    if not str(value).isprintable():
        raise ConfigError(f"`{value}` holds characters that do not print")
    return str(value)


class Layer(NamedTuple):
    """Layer: the number of parameters of each gradient tensor, and the times of both passes.

    Times are in picoseconds.
    """

    name: Annotated[str, _name]
    parameters: Annotated[Sequence[int], _tensors]
    forward: Annotated[int, str, parse_time]
    backward: Annotated[int, str, parse_time]


@dataclass(frozen=True, kw_only=True)
class Profile:
    """Content of a profile; `batch` (samples per device) is None if the file does not state it."""

    model: Text = ""
    batch: Annotated[int, whole(1, 2**63 - 1)] | None = None
    layers: list[Layer]

    @property
    def parameters(self) -> int:
        """Number of parameters of all layers together."""
        return sum(sum(layer.parameters) for layer in self.layers)


def read(path: str | os.PathLike[str]) -> Profile:
    """Reads a profile from a file whose name ends in .csv, .yaml or .yml.

    Raises
    ------
    ConfigError
        The file is no valid profile; the message names line and field.
    FileError
        The file cannot be read, or its name has another ending.
    """
    path = Path(path)
    if is_yaml(str(path)):
        profile = Document.read(path).fields(Profile)
        return replace(profile, model=profile.model or path.stem)
    if path.suffix.lower() == ".csv":
        return Profile(model=path.stem, layers=_from_csv(path))
    raise FileError(f"`{path}`: the name of a profile of layers ends in .csv or .yaml")


def _from_csv(path: Path) -> list[Layer]:
    rows = csv_rows(path)
    _, heading = next(rows, (1, []))
    if sorted(heading) != sorted(Layer._fields):
        raise ConfigError(f"{path}, line 1: the columns must be {', '.join(Layer._fields)}")
    layers, lines = [], []
    for line, row in rows:
        if len(row) != len(heading):
            raise ConfigError(f"{path}, line {line}: {len(row)} cells, not {len(heading)}")
        fields: dict[str, Any] = dict(zip(heading, row, strict=True))
        cells = fields["parameters"]
        fields["parameters"] = [_number(cell) for cell in cells.split("+")] if cells else []
        layers.append(fields)
        lines.append(line)
    if not layers:
        raise ConfigError(f"{path}: there are no layers")

    def refuse(place: Place, problem: str) -> ConfigError:
        index, field = place[:2]
        return ConfigError(f"{path}, line {lines[int(index)]}, {field}: {problem}")

    return [read_fields(Layer, layer, refuse, (index,)) for index, layer in enumerate(layers)]


def _number(text: str) -> int | str:
    """Parses a whole number; returns any other text unchanged, so that the error can quote it."""
    return int(text) if re.fullmatch("[0-9]{1,18}", text.strip()) else text
