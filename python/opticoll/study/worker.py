"""Worker process that computes points of a study: `python -m opticoll.study.worker`.

Each line of standard input is a JSON object with tasks of one command. The worker writes a line for
each finished task, and an empty line after the last task. The worker ends as soon as its standard
input ends.

>>> task = Task("k1", {"collective": "all_gather", "fabric": "wdm_ring:ranks=4,wavelengths=1"})
>>> solved = solve("simulate", task)
>>> solved.rows[0]["steps"], solved.error
(2, None)
>>> solve("simulate", Task("k2", {"collective": "nothing", "fabric": "terarack"})).error[:23]
'unknown collective `not'
"""

from __future__ import annotations

import json
import os
import platform
import queue
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from typing import IO, Any

from opticoll import _core
from opticoll.cli.command_line import Value
from opticoll.errors import MemoryLimitError, OpticollError, ReadingNote, UsageError
from opticoll.inputs.plan_cache import remembered
from opticoll.outputs.rows import plain
from opticoll.outputs.verification import Refuted
from opticoll.outputs.watch import Watch
from opticoll.study.build_digest import build
from opticoll.study.points import command_of, parameters_of
from opticoll.study.store import Result, as_text, refuted_in


@dataclass(frozen=True)
class Task:
    """Task of a study: its key in the store, and the options of the command by name."""

    key: str
    options: dict[str, Value]


@dataclass(frozen=True)
class Solved(Result):
    """Result of a task; `too_large` is True if the task failed at the memory limit."""

    too_large: bool = False


def solve(command: str, task: Task) -> Solved:
    """Computes a task with the function of its command; errors become results."""
    started = time.perf_counter()
    rows: list[dict[str, Any]] | None = None
    error, too_large = None, False
    try:
        with redirect_stdout(sys.stderr):
            record = command_of(command)
            rows = [
                plain(row) for row in record.rows_of(parameters_of(command, task.options), Watch())
            ]
    except Refuted as refuted:
        rows = [plain(refuted.row)]
    except OpticollError as failure:
        error, too_large = " ".join(str(failure).split()), isinstance(failure, MemoryLimitError)
    except MemoryError:
        error, too_large = "there is not enough memory for this", True
    except BaseException as failure:
        # A bug of opticoll must not end a study. A panic of the compiled core is no `Exception`.
        if not isinstance(failure, Exception) and type(failure).__name__ != "PanicException":
            raise
        error = f"internal error: {type(failure).__name__}: {' '.join(str(failure).split())}"
    seconds = time.perf_counter() - started
    text = None if rows is None else as_text(rows)
    return Solved(task.key, text, error, seconds, refuted_in(rows or []), too_large)


def solve_all(
    command: str, tasks: Sequence[Task], memory: int | None, wanted: str | None = None
) -> list[Solved]:
    """Computes tasks one after another, in a worker of a cluster.

    `memory` is the memory limit of a task in bytes. `wanted` is the digest of the required build.

    Raises
    ------
    UsageError
        The worker's build of opticoll differs from `wanted`.
    """
    if wanted is not None and wanted != build():
        raise UsageError(
            f"workers of the cluster, such as {platform.node()}, have another build of opticoll: "
            "install the same there"
        )
    if memory is not None:
        _core.set_memory_limit(f"{memory}B")
    with remembered():
        return [solve(command, task) for task in tasks]


def start() -> subprocess.Popen[str]:
    """Starts a worker process that reads tasks from its standard input and answers on its output.

    With `-P`, files of the current folder do not replace modules that the worker imports.
    """
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "opticoll.study.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )


def message(command: str, tasks: Iterable[Task], memory: int | None) -> str:
    """Returns the JSON line that sends tasks to a worker; `memory` is the limit in bytes."""
    content = {"command": command, "memory": memory, "tasks": [vars(task) for task in tasks]}
    return json.dumps(content) + "\n"


def main() -> None:
    """Computes the tasks that standard input lists, until the input ends."""
    # The process that starts the workers reads all fabrics first, and prints the notes on files.
    warnings.simplefilter("ignore", ReadingNote)
    # An interrupt at the terminal is meant for the sweep. The sweep ends its workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    with remembered():
        for asks in _asked(sys.stdin):
            memory = asks["memory"]
            _core.set_memory_limit(None if memory is None else f"{memory}B")
            try:
                for task in asks["tasks"]:
                    answers.write(json.dumps(vars(solve(asks["command"], Task(**task)))) + "\n")
                    answers.flush()
                answers.write("\n")
                answers.flush()
            except BrokenPipeError:
                # The sweep has ended; `_exit` leaves without printing an error.
                os._exit(0)


def _asked(source: IO[str]) -> Iterator[dict[str, Any]]:
    """Yields requests that a thread reads; this thread ends the process when the input ends."""
    lines: queue.Queue[str] = queue.Queue()

    def read() -> None:
        for line in source:
            lines.put(line)
        os._exit(0)

    threading.Thread(target=read, daemon=True).start()
    while True:
        yield json.loads(lines.get())


if __name__ == "__main__":
    main()
