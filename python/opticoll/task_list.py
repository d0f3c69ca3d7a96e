"""Tasks that share a grid of tunable circuits, from a YAML file.

    fabric: wss_grid:rows=4,columns=4,rate=100Gb/s
    tasks:
      - {name: left, nodes: 0-1+4-5, collective: all_reduce, size: 100MB, rounds: 500}
      - {name: right, nodes: 2-3+6-7, collective: all_reduce, algorithm: ring, request: 2ms}

A task is a collective, carried out `rounds` times (once if not given) on the nodes allocated to it
(all if not given), by an algorithm (`auto` if not given) for a size (4MiB if not given); it asks
for the switches at the time of its `request` (0s if not given). Errors name file, line and field.

>>> import pathlib, tempfile
>>> from opticoll import task_list
>>> path = pathlib.Path(tempfile.mkdtemp()) / "tasks.yaml"
>>> _ = path.write_text('''fabric: wss_grid:rows=2,columns=2
... tasks: [{collective: all_reduce, nodes: 0-1, size: 1MB}]''')
>>> fabric, [task] = task_list.read(path)
>>> fabric.ranks, task.nodes, task.size
(4, '0-1', 1000000)
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

from opticoll._core import Fabric, OpticollError, collective_kind, parse_time
from opticoll.config import parse_fabric, to_bytes
from opticoll.document import Document

MOST_ROUNDS = 2**40


@dataclass(frozen=True)
class Task:
    """A collective on some nodes of a grid, again and again."""

    collective: str
    """Such as `all_reduce`."""
    name: str | None = None
    """What it is called; the collective if not given."""
    nodes: str = "all"
    """Nodes allocated to it, such as `0-7+12`."""
    algorithm: str = "auto"
    """A spelling such as `halving_doubling`."""
    size: str | int = "4MiB"
    """The size of the collective."""
    rounds: int = 1
    """How often it is carried out."""
    request: str = "0s"
    """When it asks the arbiter."""
    root: int = 0
    """The root rank, counted among its nodes."""


FIELDS = tuple(one.name for one in fields(Task))


def read(path: str | os.PathLike[str]) -> tuple[Fabric, list[Task]]:
    """The grid, and the tasks in the order of the file.

    Raises
    ------
    ConfigError
        The file is no list of tasks; the message names line and field.
    FileError
        The file cannot be read.
    """
    document = Document.read(path)
    content = document.content
    document.check_fields(content, ("fabric", "tasks"))
    spelling = content.get("fabric")
    if not isinstance(spelling, str):
        raise document.error(("fabric",), "give a grid such as wss_grid:rows=4,columns=4")
    try:
        fabric = parse_fabric(spelling)
    except OpticollError as error:
        raise document.error(("fabric",), str(error)) from error
    tasks = enumerate(document.filled("tasks"))
    return fabric, [_task(document, index, one) for index, one in tasks]


def _task(document: Document, index: int, given: Any) -> Task:
    place = ("tasks", index)
    if not isinstance(given, dict) or "collective" not in given:
        raise document.error(place, "a task has at least a collective, such as all_reduce")
    document.check_fields(given, FIELDS, place)
    for field, least, most in (("rounds", 1, MOST_ROUNDS), ("root", 0, 2**32)):
        value = given.get(field, least)
        if type(value) is not int or not least <= value <= most:
            raise document.error((*place, field), f"`{value}` is no whole number from {least} on")
    checked: dict[str, Callable[[str], object]] = {
        "collective": collective_kind,
        "size": to_bytes,
        "request": parse_time,
    }
    values: dict[str, Any] = {}
    for field, value in given.items():
        values[field] = value if field in ("rounds", "root") else str(value)
        try:
            found = checked[field](values[field]) if field in checked else None
        except OpticollError as error:
            raise document.error((*place, field), str(error)) from error
        if field in ("collective", "size"):
            values[field] = found
    return Task(**values)
