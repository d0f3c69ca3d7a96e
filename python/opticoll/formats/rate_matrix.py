"""Square matrices of rates, as planners of collectives take them: CSV, JSON or NumPy's npy.

The entry in row i and column j is the rate of the link from vertex i to vertex j, 0 where there is
none; rates of a vertex to itself are left out. `unit` is that of all rates, `switches` are the
vertices that are not ranks, and `latency` is that of all links. A CSV file has no headings and
names these in a comment, a JSON file as fields beside `rates`; of all files a fabric file may name
them beside `graph`. Without `switches` all vertices are ranks.

    # unit=GB/s switches=2 latency=500ns
    0,0,25
    0,0,25
    25,25,0
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

import numpy as np

from opticoll import memory
from opticoll._core import Fabric
from opticoll.errors import ConfigError, FileError
from opticoll.formats.content import read_text
from opticoll.formats.document import read_json
from opticoll.formats.network_graph import Graph, MisplacedError, listing, note, texts

MOST_BYTES = 64 * 2**20
MOST_VERTICES = 2048
OPTIONS = ("unit", "switches", "latency")
HEADINGS = "; write rows without headings, in pandas `to_csv(file, header=False, index=False)`"


def read(
    path: Path, *, unit: object = None, switches: object = None, latency: object = None
) -> Fabric:
    """The custom fabric of the matrix in a file.

    Raises
    ------
    ConfigError
        It is no square matrix of rates; with row and column.
    FileError
        The file cannot be read.
    """
    beside = {"unit": unit, "switches": switches, "latency": latency}
    beside = {name: value for name, value in beside.items() if value is not None}
    if path.suffix == ".npy":
        own: dict[str, object] = {}
        rows = _npy(path)
    elif path.suffix == ".json":
        rows, own = _json(path)
    else:
        rows, own = _csv(path)
    for name in beside:
        if name in own:
            raise MisplacedError((name,), f"{path.name} names it, too; leave it out here")
    return _fabric(rows, {**own, **beside}, path.name)


def _fabric(rows: list[list[str]], given: Mapping[str, Any], file: str) -> Fabric:
    vertices = len(rows)
    if not 1 <= vertices <= MOST_VERTICES:
        raise MisplacedError((), f"there are {vertices} rows; a matrix has 1 to {MOST_VERTICES}")
    matrix = [
        [_rate(text, row, column) for column, text in enumerate(entries)]
        for row, entries in enumerate(rows)
    ]
    for number, entries in enumerate(matrix):
        if len(entries) != vertices:
            problem = (
                f"{len(entries)} entries; a square matrix of {vertices} rows has {vertices} in each"
            )
            raise MisplacedError((f"row {number}",), problem)
    options = texts((), given, ("unit", "latency"))
    if "unit" not in options:
        problem = "the rates have no unit; name it, as `unit=GB/s` in a comment of CSV"
        raise MisplacedError((), f"{problem}, as `unit` in JSON or beside `graph` in a fabric file")
    switches = _numbers(given.get("switches", []), vertices)
    graph = Graph(file=file, options={key: options[key] for key in options if key == "latency"})
    names = [str(vertex) for vertex in range(vertices)]
    graph.ranks = [name for vertex, name in enumerate(names) if vertex not in switches]
    graph.switches = [names[vertex] for vertex in sorted(switches)]
    # Where ranks come first, vertices have the numbers of their rows without names.
    graph.named = [*graph.ranks, *graph.switches] != names
    graph.number((), ())
    loops = [vertex for vertex in range(vertices) if matrix[vertex][vertex]]
    if loops:
        note(file, f"left out: links of a vertex to itself ({listing(map(str, loops))})")
    rates = {
        (row, column): rate
        for row, line in enumerate(matrix)
        for column, rate in enumerate(line)
        if rate and row != column
    }
    for (row, column), rate in rates.items():
        both = rates.get((column, row)) == rate
        if not (both and column < row):
            ends = (names[row], names[column])
            place = (f"row {row}", f"column {column}")
            graph.link(place, *ends, "-" if both else ">", [f"{rate:f}{options['unit']}"])
    return graph.fabric()


def _rate(text: str, row: int, column: int) -> Decimal:
    place = (f"row {row}", f"column {column}")
    try:
        rate = Decimal(text.strip())
    except InvalidOperation:
        rate = Decimal("nan")
    if not rate.is_finite() or not 0 <= rate < 10**15:
        problem = f"`{text}` is no number of a rate, 0 or more, without a unit"
        raise MisplacedError(place, f"{problem}{'' if row else HEADINGS}")
    return rate


def _numbers(given: object, vertices: int) -> set[int]:
    """The vertices of a list such as [8, 9], or of a text such as `8-9+12`."""
    parts = given if isinstance(given, list) else str(given).split("+")
    numbers: set[int] = set()
    for part in parts:
        read = re.fullmatch(r"([0-9]{1,6})(?:-([0-9]{1,6}))?", str(part).strip())
        last = int(read[2] or read[1]) if read else -1
        if read is None or not int(read[1]) <= last < vertices:
            problem = f"`{part}` is no vertex; write numbers of rows from 0, such as 8-9+12"
            raise MisplacedError(("switches",), problem)
        numbers.update(range(int(read[1]), last + 1))
    return numbers


def _csv(path: Path) -> tuple[list[list[str]], dict[str, object]]:
    own: dict[str, object] = {}
    rows = []
    text = read_text(path, "CSV file", "utf-8-sig", MOST_BYTES)
    memory.take_values(f"reading `{path}`", text)
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("#"):
            for word in line.lstrip("# \t").split():
                name, equals, value = word.partition("=")
                if equals and name in own:
                    raise MisplacedError((f"line {number}", name), "is given twice")
                if equals and name not in OPTIONS:
                    problem = f"there is no such option; known are {', '.join(OPTIONS)}"
                    raise MisplacedError((f"line {number}", name), problem)
                if equals:
                    own[name] = value
        elif line.strip():
            rows.append(line.split(","))
    return rows, own


def _json(path: Path) -> tuple[list[list[str]], dict[str, object]]:
    content = read_json(path)
    fields = dict(content) if isinstance(content, dict) else {"rates": content}
    rows = fields.pop("rates", None)
    for name in fields:
        if name not in OPTIONS:
            problem = f"there is no such field; known are {', '.join(['rates', *OPTIONS])}"
            raise MisplacedError((name,), problem)
    if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
        raise MisplacedError(("rates",), "must be a list of rows, each a list of numbers")
    return [[str(one) for one in row] for row in rows], fields


def _npy(path: Path) -> list[list[str]]:
    headers = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    try:
        with path.open("rb") as file:
            header = headers.get(np.lib.format.read_magic(file))
            shape, _, kind = ((), False, np.dtype("O")) if header is None else header(file)
            if len(shape) != 2 or kind.kind not in "uif":
                raise ConfigError("this is no npy file of a matrix of numbers")
            if max(shape) > MOST_VERTICES:
                raise ConfigError(
                    f"a matrix of {' times '.join(map(str, shape))} is too large: at most "
                    f"{MOST_VERTICES} rows"
                )
            file.seek(0)
            matrix = np.load(file, allow_pickle=False)
    except FileNotFoundError as error:
        raise FileError(f"there is no file `{path}`") from error
    except OSError as error:
        raise FileError(f"cannot read `{path}`: {error.strerror or error}") from error
    except ConfigError:
        raise
    except Exception as error:  # numpy evaluates the header as Python, and raises what that does
        raise ConfigError(f"this is no npy file of numbers: {error}") from error
    return [[str(one) for one in row] for row in matrix]
