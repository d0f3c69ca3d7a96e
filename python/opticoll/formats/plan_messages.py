"""Plans as messages for simulators of others, and the schedules that GOAL states.

Ranks send and receive step by step; the compiled core writes the files.

>>> import pathlib, tempfile, opticoll
>>> plan = opticoll.plan("all_gather", "crossbar:ranks=2", "ring")
>>> path = pathlib.Path(tempfile.mkdtemp()) / "ring.goal"
>>> write_goal(plan, 10, path)
>>> print(*path.read_text().splitlines()[:5], sep="\\n")
// all_gather ranks=2 root=0 pieces=1 size=10
num_ranks 2
rank 0 {
// step 0 copy 0
l0: send 10b to 1 tag 0
>>> read_goal(path)
(<Schedule of all_gather: 1 steps, 2 transfers>, [])
"""

from __future__ import annotations

import os
from collections.abc import Callable

from opticoll._core import Plan, Schedule, TraceError, read_goal_schedule, write_messages
from opticoll.formats.atomic import replacing
from opticoll.formats.content import MOST_OF_A_SCHEDULE, read_text

Path = str | os.PathLike[str]


def read_goal(path: Path, _ranks: int | None = None) -> tuple[Schedule, list[str]]:
    """The schedule that a GOAL file states in its comments; there is nothing to note.

    Raises
    ------
    FileError
        The file cannot be read.
    TraceError
        The file states no schedule, or its messages do something else; the message names the line.
    """
    text = read_text(path, "GOAL file", most=MOST_OF_A_SCHEDULE)
    try:
        return read_goal_schedule(text), []
    except TraceError as error:
        raise TraceError(f"{path}: {error}") from error


def _writer(form: str) -> Callable[[Plan, int, Path], None]:
    """The writer of a form that the compiled core knows."""

    def write(plan: Plan, size_bytes: int, path: Path) -> None:
        with replacing(path) as temporary:
            write_messages(plan, temporary, form, size_bytes)

    return write


write_goal = _writer("goal")
write_time_independent = _writer("time_independent")
