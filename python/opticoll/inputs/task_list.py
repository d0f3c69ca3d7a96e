"""Tasks that share a grid of tunable circuits, from a YAML file.

    fabric: wss_grid:rows=4,columns=4,rate=100Gb/s
    tasks:
      - {name: left, nodes: 0-1+4-5, collective: all_reduce, size: 100MB, rounds: 500}
      - {name: right, nodes: 2-3+6-7, collective: all_reduce, algorithm: ring, request: 2ms}

A task is a collective, carried out `rounds` times (once if not given) on the nodes allocated to it
(all if not given), by an algorithm (`auto` if not given) for a size (4MiB if not given); it asks
for the switches at the time of its `request` (0s if not given). Errors name file, line and field.

>>> import pathlib, tempfile
>>> from opticoll.inputs import task_list
>>> path = pathlib.Path(tempfile.mkdtemp()) / "tasks.yaml"
>>> _ = path.write_text('''fabric: wss_grid:rows=2,columns=2
... tasks: [{collective: all_reduce, nodes: 0-1, size: 1MB}]''')
>>> fabric, [task] = task_list.read(path)
>>> fabric.ranks, task.nodes, task.size
(4, '0-1', 1000000)
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Annotated, Any

from opticoll._core import Fabric, collective_kind, parse_time
from opticoll.formats.document import Document, Text, text, whole
from opticoll.inputs.fabric_files import parse_fabric
from opticoll.inputs.values import to_bytes

MAX_ROUNDS = 2**40


def _time(value: Any) -> str:
    """Returns a time as text, checked."""
    parse_time(str(value))
    return str(value)


@dataclass(frozen=True)
class Task:
    """A collective on some nodes of a grid, again and again."""

    collective: Annotated[Text, collective_kind]
    """Such as `all_reduce`."""
    name: Text | None = None
    """What it is called; the collective if not given."""
    nodes: Text = "all"
    """Nodes allocated to it, such as `0-7+12`."""
    algorithm: Text = "auto"
    """A spelling such as `halving_doubling`."""
    size: Annotated[str | int, str, to_bytes] = "4MiB"
    """The size of the collective."""
    rounds: Annotated[int, whole(1, MAX_ROUNDS)] = 1
    """How often it is carried out."""
    request: Annotated[str, _time] = "0s"
    """When it asks the arbiter."""
    root: Annotated[int, whole(0, 2**32)] = 0
    """The root rank, counted among its nodes."""


@dataclass(frozen=True)
class TaskList:
    """Grid, and the tasks on it."""

    fabric: Annotated[Fabric, text, parse_fabric]
    tasks: list[Task]


def read(path: str | os.PathLike[str]) -> tuple[Fabric, list[Task]]:
    """Returns the grid, and the tasks in the order of the file.

    Raises
    ------
    ConfigError
        The file is not a list of tasks; the message names line and field.
    FileError
        The file cannot be read.
    """
    asked = Document.read(path).fields(TaskList)
    return asked.fabric, asked.tasks
