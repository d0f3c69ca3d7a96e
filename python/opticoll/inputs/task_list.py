"""Tasks that share a grid of tunable circuits, read from a YAML file.

    fabric: wss_grid:rows=4,columns=4,rate=100Gb/s
    tasks:
      - {name: left, nodes: 0-1+4-5, collective: all_reduce, size: 100MB, rounds: 500}
      - {name: right, nodes: 2-3+6-7, collective: all_reduce, algorithm: ring, request: 2ms}

A task runs a collective `rounds` times (default: 1) on its `nodes` (default: all), with an
`algorithm` (default: `auto`) and a `size` (default: 4 MiB). The task requests the switches at the
time `request` (default: 0 s). Errors name file, line and field.

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
from opticoll.inputs.fabric_files import parse_specification
from opticoll.inputs.values import to_bytes

MAX_ROUNDS = 2**40


def _time(value: Any) -> str:
    """Checks that a value is a time, and returns its text."""
    parse_time(str(value))
    return str(value)


@dataclass(frozen=True)
class Task:
    """Task of an arbiter: a collective that some nodes of a grid repeat for several rounds."""

    collective: Annotated[Text, collective_kind]
    """Name of the collective, such as `all_reduce`."""
    name: Text | None = None
    """Name of the task (default: the name of the collective)."""
    nodes: Text = "all"
    """Nodes that take part, such as `0-7+12`."""
    algorithm: Text = "auto"
    """Specification of the algorithm, such as `halving_doubling`."""
    size: Annotated[str | int, str, to_bytes] = "4MiB"
    """Size of the collective, in bytes or as text with a unit."""
    rounds: Annotated[int, whole(1, MAX_ROUNDS)] = 1
    """Number of repetitions."""
    request: Annotated[str, _time] = "0s"
    """Time of the request to the arbiter."""
    root: Annotated[int, whole(0, 2**32)] = 0
    """Root rank, as an index into the task's nodes."""


@dataclass(frozen=True)
class TaskList:
    """A grid of tunable circuits, and the tasks on it."""

    fabric: Annotated[Fabric, text, parse_specification]
    tasks: list[Task]


def read(path: str | os.PathLike[str]) -> tuple[Fabric, list[Task]]:
    """Reads the grid, and the tasks in the order of the file.

    Raises
    ------
    ConfigError
        The file is no valid list of tasks; the message names line and field.
    FileError
        The file cannot be read.
    """
    task_list = Document.read(path).fields(TaskList)
    return task_list.fabric, task_list.tasks
