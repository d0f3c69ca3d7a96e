"""Skew among the experts of a model: a rule of the core, or a table of weights.

The table is a CSV file with a column for the layer and a column for each expert. Further columns
before those of the experts are optional:

    micro_batch,layer,source,tokens,expert0,expert1
    0,0,0,1,30,10
    0,0,1,0.5,10,30

`micro_batch` is the number of a micro-batch; the micro-batches of the table repeat. `source` is the
rank that sends tokens. `tokens` is the share of the tokens of a micro-batch that a source sends to
experts; the others are padding. The other numbers are weights, such as counted tokens: each source
divides its tokens among the experts in proportion to the weights.
"""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from math import ceil
from pathlib import Path
from typing import TypeAlias, TypeVar

from opticoll._core import expert_weights
from opticoll.errors import ConfigError, UsageError
from opticoll.formats.atomic import write_file
from opticoll.formats.content import csv_rows

ExpertWeights: TypeAlias = tuple[list[list[list[tuple[int, list[int]]]]], list[int]]
"""Tables, and the number of the table of each micro-batch. A table has, by layer and source, the
tokens in millionths and the weight of each expert."""

MAX_WEIGHT = 2**32

MILLION = 1_000_000

KEYS = ("micro_batch", "layer", "source", "tokens")

T = TypeVar("T")


def read_skew(text: str | None, model: str, ranks: int, micro_batches: int) -> ExpertWeights | None:
    """Returns the weights that the text of an option names, for a model on expert-parallel ranks.

    Returns None if all experts are alike.

    Raises
    ------
    OpticollError
        The text is neither a rule nor the name of a table of weights; the message names the line.
    """
    if text is None:
        return None
    if text.lower().endswith(".csv"):
        return _table(Path(text))
    return expert_weights(model, text, ranks, micro_batches)


def _table(path: Path) -> ExpertWeights:
    """Reads a table of weights."""
    rows = csv_rows(path)
    _, heading = next(rows, (1, []))
    keys = [name for name in KEYS if name in heading]
    if "layer" not in keys or heading[: len(keys)] != keys or len(heading) == len(keys):
        raise ConfigError(
            f"{path}, line 1: the columns must be layer, and one for each expert; before the "
            "layer, micro_batch if micro-batches differ; after it, source and tokens if they differ"
        )
    tables: dict[int, dict[int, dict[int, tuple[int, list[int]]]]] = {}
    for line, row in rows:
        place = f"{path}, line {line}"
        if len(row) != len(heading):
            raise ConfigError(f"{place}: {len(row)} cells, not {len(heading)}")
        cells = dict(zip(keys, row, strict=False))
        tokens = _share(place, cells.pop("tokens", "1"))
        numbers = {name: _number(place, name, cell) for name, cell in cells.items()}
        micro_batch, layer = numbers.get("micro_batch", 0), numbers["layer"]
        source = numbers.get("source", 0)
        sources = tables.setdefault(micro_batch, {}).setdefault(layer, {})
        if source in sources:
            raise ConfigError(f"{place}: layer {layer}, source {source} is given twice")
        experts = zip(heading[len(keys) :], row[len(keys) :], strict=True)
        sources[source] = (tokens, [_number(place, name, cell) for name, cell in experts])
    if not tables:
        raise ConfigError(f"{path}: there are no layers")
    in_order = [
        [_in_order(path, sources, "source") for sources in _in_order(path, layers, "layer")]
        for layers in _in_order(path, tables, "micro_batch")
    ]
    # Micro-batches with equal weights share a table.
    distinct = [table for number, table in enumerate(in_order) if in_order.index(table) == number]
    return distinct, [distinct.index(table) for table in in_order]


def _in_order(path: Path, numbered: dict[int, T], name: str) -> list[T]:
    """Returns the values of the numbers from 0 on."""
    missing = [number for number in range(len(numbered)) if number not in numbered]
    if missing:
        raise ConfigError(f"{path}: there is no {name} {missing[0]}; numbers begin with 0")
    return [numbered[number] for number in range(len(numbered))]


def _number(place: str, column: str, cell: str) -> int:
    """Parses the whole number in a cell."""
    if not (cell.isascii() and cell.isdigit() and int(cell) <= MAX_WEIGHT):
        raise ConfigError(f"{place}, {column}: `{cell}` is not a whole number of at most 2^32")
    return int(cell)


def _share(place: str, cell: str) -> int:
    """Parses a share of the tokens, as millionths."""
    millionths = _millionths(cell)
    if millionths is None or millionths > MILLION:
        raise ConfigError(f"{place}, tokens: `{cell}` is not a number from 0 to 1")
    return millionths


def write_table(path: Path, weights: ExpertWeights) -> None:
    """Writes weights as a table that `read_skew` reads."""
    tables, order = weights
    experts = len(tables[0][0][0][1])
    lines = [",".join([*KEYS, *(f"expert{number}" for number in range(experts))])]
    for micro_batch, table in enumerate(order):
        for layer, sources in enumerate(tables[table]):
            for source, (tokens, row) in enumerate(sources):
                share = Decimal(tokens) / MILLION
                lines.append(",".join(map(str, [micro_batch, layer, source, share, *row])))
    write_file(path, "\n".join([*lines, ""]))


def capacity_millionths(text: str | float | None) -> int | None:
    """Converts a capacity factor to whole millionths.

    Raises
    ------
    UsageError
        The text is no number above 0.
    """
    if text is None:
        return None
    millionths = _millionths(str(text))
    if millionths is None or not 0 < millionths <= 10**12:
        raise UsageError(f"capacity-factor: `{text}` is not a number above 0, such as 1.25")
    return millionths


def _millionths(text: str) -> int | None:
    """Returns a number of at least 0 in whole millionths, rounded up; None for other texts."""
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    return ceil(number * MILLION) if number.is_finite() and number >= 0 else None
