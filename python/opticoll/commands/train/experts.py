"""Skew among the experts of a model: Zipf's law, or a table of weights.

The table is a CSV file with a column for the layer and a column for each expert. If the weights
depend on the source (the rank that sends tokens), the table also has a column for the source:

    layer,source,expert0,expert1
    0,0,30,10
    0,1,10,30

The numbers are weights, such as counted tokens: each source divides its tokens among the experts in
proportion to the weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path

from opticoll.cli.arguments import key_values
from opticoll.errors import ConfigError, UsageError
from opticoll.formats.content import csv_rows

MAX_WEIGHT = 2**32 - 1

EXAMPLE = "zipf:exponent=1.2,seed=1"


@dataclass(frozen=True)
class Skew:
    """Skew: the exponent and seed of Zipf's law, or weights by layer, source and expert."""

    zipf: tuple[float, int] | None = None
    weights: list[list[list[int]]] | None = None


def read_skew(text: str | None) -> Skew:
    """Reads the skew in the text of an option.

    Raises
    ------
    UsageError
        The text is neither a Zipf's law nor the name of a CSV file.
    ConfigError
        The file is no table of weights; the message names the line.
    """
    if text is None:
        return Skew()
    name, _, options = text.partition(":")
    if name.strip() == "zipf":
        return Skew(zipf=_zipf(options))
    if not text.lower().endswith(".csv"):
        raise UsageError(
            f"expert-skew: `{text}` is neither Zipf's law, such as {EXAMPLE}, nor a .csv file"
        )
    return Skew(weights=_table(Path(text)))


def _zipf(options: str) -> tuple[float, int]:
    """Returns the exponent and the seed of a Zipf's law."""
    values = key_values("expert-skew", options, EXAMPLE) if options else {}
    unknown = values.keys() - {"exponent", "seed"}
    if unknown:
        raise UsageError(
            f"expert-skew: zipf has no option `{min(unknown)}`; it has exponent and seed"
        )
    exponent, seed = values.get("exponent", "1"), values.get("seed", "0")
    try:
        number = float(exponent)
    except ValueError:
        number = -1.0
    if not 0 <= number <= 64:
        raise UsageError(f"expert-skew: the exponent is `{exponent}`, not a number from 0 to 64")
    if not (seed.isascii() and seed.isdigit() and int(seed) < 2**63):
        raise UsageError(f"expert-skew: the seed is `{seed}`, not a whole number")
    return number, int(seed)


def _table(path: Path) -> list[list[list[int]]]:
    """Reads a table of weights, by layer, source and expert."""
    rows = csv_rows(path)
    layers: dict[int, dict[int, list[int]]] = {}
    _, heading = next(rows, (1, []))
    sourced = heading[1:2] == ["source"]
    first = 2 if sourced else 1
    if heading[:1] != ["layer"] or len(heading) <= first:
        raise ConfigError(
            f"{path}, line 1: the columns must be layer, source if sources differ, and one for "
            "each expert"
        )
    for line, row in rows:
        place = f"{path}, line {line}"
        if len(row) != len(heading):
            raise ConfigError(f"{place}: {len(row)} cells, not {len(heading)}")
        numbers = [_number(place, name, cell) for name, cell in zip(heading, row, strict=True)]
        layer, source = numbers[0], numbers[1] if sourced else 0
        if source in layers.setdefault(layer, {}):
            raise ConfigError(f"{place}: layer {layer}, source {source} is given twice")
        layers[layer][source] = numbers[first:]
    if not layers:
        raise ConfigError(f"{path}: there are no layers")
    return [_row(path, layers, layer) for layer in range(len(layers))]


def _row(path: Path, layers: dict[int, dict[int, list[int]]], layer: int) -> list[list[int]]:
    """Returns the weights of a layer by source, or one list if a row holds for all sources."""
    if layer not in layers:
        raise ConfigError(f"{path}: there is no layer {layer}; layers are numbered from 0")
    sources = layers[layer]
    missing = [source for source in range(len(sources)) if source not in sources]
    if missing:
        raise ConfigError(
            f"{path}: layer {layer} has no source {missing[0]}; sources are numbered from 0"
        )
    return [sources[source] for source in range(len(sources))]


def _number(place: str, column: str, cell: str) -> int:
    """Parses the whole number in a cell."""
    if not (cell.isascii() and cell.isdigit() and int(cell) <= MAX_WEIGHT):
        raise ConfigError(f"{place}, {column}: `{cell}` is not a whole number below 2^32")
    return int(cell)


def capacity_millionths(text: str | float | None) -> int | None:
    """Converts a capacity factor to whole millionths.

    Raises
    ------
    UsageError
        The text is no number above 0.
    """
    if text is None:
        return None
    try:
        factor = Decimal(str(text)) * 1_000_000
        if factor.is_finite() and 0 < factor <= 10**12:
            return max(1, int(factor))
    except InvalidOperation:
        pass
    raise UsageError(f"capacity-factor: `{text}` is not a number above 0, such as 1.25")
