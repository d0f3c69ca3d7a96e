"""Measured times of layers on a device, from CSV files with one of four headings:

| columns | each row |
|---|---|
| type,m,n,k,flops_per_s | a product of an m x k by a k x n matrix, with its rate |
| model,part,tensor_parallel,sequence,micro_batch,forward_s,backward_s | a transformer block |
| model,tensor_parallel,sequence,micro_batch,forward_s,backward_s | an output layer with its loss |
| model,precision,batch,forward_s,backward_s | a whole image network |

A block is its `part` (`attention` or `mlp`) on one of `tensor_parallel` ranks: the normalization,
the products, attention and activation, without the residual sum and without rotary positions. The
times are those of one device without communication. Rows of other number formats than 16 bits
(`bfloat16`, `float16`, `bf16`, `fp16`) are left out.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from opticoll._core import DeviceWork, TrainingModel
from opticoll.errors import FileError
from opticoll.formats.content import csv_rows

FORMATS = ("bfloat16", "float16", "bf16", "fp16")
"""Number formats of 16 bits."""

MOST = 2**31
"""Greatest number in a cell that counts."""

PARTS = {
    "attention": ("norm1", "query_key_value", "query", "key", "value", "attention", "projection"),
    "mlp": ("norm2", "expand", "gate", "contract", "experts", "router"),
}
"""Layers of each part of a block."""

NOT_MEASURED = ["residual", "rotary"]
"""Operators that the times of blocks leave out."""


@dataclass(frozen=True)
class LayerTime:
    """A measured time: the kind and the case of its row, and the work of the device.

    Rows of the same group, such as a model, are left out together to judge a fit.
    """

    kind: str
    group: str
    case: str
    ranks: int
    time_us: float
    work: DeviceWork


Row = Mapping[str, str]


def read(path: str | os.PathLike[str]) -> list[LayerTime]:
    """Reads the times in a file.

    Raises
    ------
    FileError
        The file cannot be read, or has none of the headings, or a cell is invalid; the message
        names file and line.
    TrainingError
        A model is unknown.
    """
    rows = csv_rows(path)
    _, heading = next(rows, (1, []))
    readers = [read_row for columns, read_row in TABLES.items() if set(columns) <= set(heading)]
    if not readers:
        known = "; ".join(",".join(columns) for columns in TABLES)
        raise FileError(f"`{path}` has no measured times of layers; the columns are one of {known}")
    found: list[LayerTime] = []
    for line, cells in rows:
        row = dict(zip(heading, cells, strict=False))
        found += readers[0](f"`{path}`, line {line}", row)
    if not found:
        raise FileError(f"`{path}` has no row with times of 16-bit numbers")
    return found


def _product(where: str, row: Row) -> Iterator[LayerTime]:
    if row["type"] in FORMATS:
        m, n, k = (_whole(where, row, name) for name in "mnk")
        seconds = 2 * m * n * k / _number(where, row, "flops_per_s")
        work = DeviceWork.product(m, n, k)
        yield LayerTime("products", "products", f"{m} x {n} x {k}", 1, seconds * 1e6, work)


def _block(where: str, row: Row) -> Iterator[LayerTime]:
    if row["part"] not in PARTS:
        raise FileError(f"{where}: part is `{row['part'][:40]}`, not {' or '.join(PARTS)}")
    layers = [f"block0.{name}" for name in PARTS[row["part"]]]
    yield from _passes(where, row, f"blocks: {row['part']}", layers)


def _output(where: str, row: Row) -> Iterator[LayerTime]:
    yield from _passes(where, row, "output layers", ["norm", "output"])


def _passes(where: str, row: Row, table: str, layers: list[str]) -> Iterator[LayerTime]:
    """Yields both passes of layers of a transformer."""
    tensor, sequence, samples = (
        _whole(where, row, name) for name in ("tensor_parallel", "sequence", "micro_batch")
    )
    name = row["model"]
    model = TrainingModel(name, sequence)
    case = f"{name} T={tensor} {samples} x {sequence}"
    for place, pass_name in enumerate(("forward", "backward")):
        work = model.work(samples, tensor, layers, NOT_MEASURED, bool(place))
        time_us = _number(where, row, f"{pass_name}_s") * 1e6
        yield LayerTime(f"{table}, {pass_name}", name, case, tensor, time_us, work)


def _network(where: str, row: Row) -> Iterator[LayerTime]:
    if row["precision"] not in FORMATS:
        return
    batch, name = _whole(where, row, "batch"), row["model"]
    model = TrainingModel(name)
    for place, pass_name in enumerate(("forward", "backward")):
        work = model.work(batch, 1, None, [], bool(place))
        time_us = _number(where, row, f"{pass_name}_s") * 1e6
        yield LayerTime(f"networks, {pass_name}", name, f"{name} of {batch}", 1, time_us, work)


TABLES: dict[tuple[str, ...], Callable[[str, Row], Iterator[LayerTime]]] = {
    ("type", "m", "n", "k", "flops_per_s"): _product,
    ("model", "part", "tensor_parallel", "sequence", "micro_batch", "forward_s", "backward_s"): (
        _block
    ),
    ("model", "tensor_parallel", "sequence", "micro_batch", "forward_s", "backward_s"): _output,
    ("model", "precision", "batch", "forward_s", "backward_s"): _network,
}
"""Readers of a row by the columns of the table; the first that fits is used."""


def _whole(where: str, row: Row, name: str) -> int:
    text = row.get(name, "")
    if not (text.isascii() and text.isdigit() and 0 < int(text) <= MOST):
        raise FileError(f"{where}: {name} is `{text[:40]}`, not a whole number above 0")
    return int(text)


def _number(where: str, row: Row, name: str) -> float:
    try:
        value = float(row.get(name, ""))
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise FileError(f"{where}: {name} is `{row.get(name, '')[:40]}`, not a number above 0")
    return value
