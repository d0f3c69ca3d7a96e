"""Schedules of sends as CSV, which people can write by hand.

The first line is a comment that names the collective. A heading and a line per transfer follow:

    # all_gather ranks=4 root=0 pieces=1
    step,source,destination,chunk,count,action
    0,0,1,0,1,copy

The columns `count` (default: 1) and `action` (default: copy) may be missing.
"""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Iterator

from opticoll import memory
from opticoll._core import Collective, OpticollError, Plan, Schedule
from opticoll.errors import FileError
from opticoll.formats.atomic import write_file
from opticoll.formats.content import MAX_TEXT_BYTES, read_text
from opticoll.names import ACTIONS

NEEDED = ("step", "source", "destination", "chunk")
COLUMNS = (*NEEDED, "count", "action")
MAX_NUMBER = 2**32 - 1

Line = tuple[int, int, int, int, int, str]
"""Transfer: step, source, destination, first chunk, number of chunks, action."""


def read(path: str | os.PathLike[str], _ranks: int | None = None) -> tuple[Schedule, list[str]]:
    """Reads a schedule from a file that states the number of ranks.

    The list of notes that is also returned is empty.

    Raises
    ------
    FileError
        The file cannot be read, or a line is no transfer; the message names file and line.
    OpticollError
        The collective is invalid, or a transfer does not belong to the collective.
    """
    text = read_text(path, "CSV file", MAX_TEXT_BYTES)
    memory.take_values(f"reading `{path}`", text)
    lines = text.splitlines()
    collective = _collective(lines, path)
    return schedule_of(collective, _transfers(lines, path, collective)), []


def schedule_of(collective: Collective, transfers: Iterator[Line]) -> Schedule:
    """Returns a schedule of transfers ordered by step; steps without transfers are left out."""
    steps: dict[int, list[Line]] = {}
    for line in transfers:
        steps.setdefault(line[0], []).append(line)
    schedule = Schedule(collective)
    for _, lines in sorted(steps.items()):
        _, source, destination, chunk, count, action = zip(*lines, strict=True)
        schedule.step(chunk, source, destination, count, list(action))
    return schedule


def _collective(lines: list[str], path: str | os.PathLike[str]) -> Collective:
    """Reads the collective in the first comment."""
    heads = (line.lstrip("# \t") for line in lines if line.lstrip().startswith("#"))
    head = next((head for head in heads if re.search(r"\sranks=", head)), None)
    if head is None:
        raise FileError(f"`{path}` names no collective; begin it with `# all_gather ranks=4`")
    return collective_of(head, path)


def collective_of(head: str, path: str | os.PathLike[str]) -> Collective:
    """Parses a collective such as `all_gather ranks=4 root=0 pieces=1`.

    `path` is the file that errors name.

    Raises
    ------
    FileError
        A number in the text is invalid.
    OpticollError
        The collective is invalid.
    """
    kind, *options = head.split()
    values = dict(option.split("=", 1) for option in options if "=" in option)
    ranks, root, pieces = (
        _number(values.get(name, otherwise))
        for name, otherwise in (("ranks", ""), ("root", "0"), ("pieces", "1"))
    )
    if ranks is None or root is None or pieces is None:
        raise FileError(f"`{path}`: `{head[:80]}` has an invalid number")
    return Collective(kind, ranks, root=root, pieces=pieces)


def head_of(collective: Collective) -> str:
    """Returns the text of a collective that `collective_of` can parse.

    Raises
    ------
    FileError
        The blocks of the collective differ in size.
    """
    of = collective
    if of.demand is not None:
        raise FileError("a table of sends cannot express blocks that differ; write a plan file")
    return f"{of.kind} ranks={of.ranks} root={of.root} pieces={of.pieces}"


def _number(text: str) -> int | None:
    plain = text.strip()
    if not re.fullmatch(r"\d{1,10}", plain, re.ASCII):
        return None
    return int(plain) if int(plain) <= MAX_NUMBER else None


def _transfers(
    lines: list[str], path: str | os.PathLike[str], collective: Collective
) -> Iterator[Line]:
    heading: list[str] = []
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        cells = [cell.strip() for cell in line.split(",")]
        if not heading:
            heading = cells
            lacking = [name for name in NEEDED if name not in heading]
            if lacking:
                raise FileError(f"`{path}`, line {number}: the heading lacks {', '.join(lacking)}")
            continue
        row = dict(zip(heading, cells, strict=False))
        values = [_number(row.get(name, "1")) for name in (*NEEDED, "count")]
        action = row.get("action", "copy")
        if len(cells) != len(heading) or None in values or action not in ACTIONS:
            raise FileError(f"`{path}`, line {number}: `{line[:80]}` is not a transfer")
        step, source, destination, chunk, count = (value or 0 for value in values)
        for name, end in {"source": source, "destination": destination}.items():
            if end >= collective.ranks:
                problem = f"{name} {end}: ranks are 0 to {collective.ranks - 1}"
                raise FileError(f"`{path}`, line {number}: {problem}")
        yield step, source, destination, chunk, count, action


def write(plan: Plan, path: str | os.PathLike[str]) -> None:
    """Writes the schedule of a plan to a CSV file, with steps of the schedule instead of slots.

    Raises
    ------
    FileError
        The file cannot be written.
    """
    text = io.StringIO()
    text.write(f"# {head_of(plan.collective)}\n")
    table = csv.writer(text, lineterminator="\n")
    table.writerow(COLUMNS)
    table.writerows(lines_of(plan))
    write_file(path, text.getvalue())


def lines_of(plan: Plan) -> Iterator[Line]:
    """Yields the transfers of a plan in the order of steps; the order of slots may differ."""
    columns = {name: column.tolist() for name, column in plan.columns().items()}
    step_of = [step for step, slots in enumerate(plan.step_slots) for _ in range(slots)]
    names = ("source", "destination", "chunk", "count", "slot", "action")
    for *moved, slot, action in zip(*(columns[name] for name in names), strict=True):
        source, destination, chunk, count = moved
        yield step_of[slot], source, destination, chunk, count, ACTIONS[action]


__all__ = ["OpticollError", "collective_of", "head_of", "lines_of", "read", "schedule_of", "write"]
