"""Files of plans, programs and messages whose texts the compiled core reads and writes.

The documentation describes the formats: plan files; MSCCL XML, which runtimes derived from NCCL and
RCCL execute; and messages that ranks send step by step, for other simulators. A plan file is
compressed with zstd if its name ends in `.zst`. Files to read may always be compressed.

>>> import pathlib, tempfile, opticoll
>>> plan = opticoll.plan("all_gather", "crossbar:ranks=2", "ring")
>>> folder = pathlib.Path(tempfile.mkdtemp())
>>> opticoll.write_plan(plan, folder / "ring.plan.zst")
>>> opticoll.read_plan(folder / "ring.plan.zst").to_text() == plan.to_text()
True
>>> write_goal(plan, 10, folder / "ring.goal")
>>> print(*(folder / "ring.goal").read_text().splitlines()[:5], sep="\\n")
// all_gather ranks=2 root=0 pieces=1 size=10
num_ranks 2
rank 0 {
// step 0 copy 0
l0: send 10b to 1 tag 0
>>> read_goal(folder / "ring.goal")
(<Schedule of all_gather: 1 steps, 2 transfers>, [])
"""

from __future__ import annotations

import os
from collections.abc import Callable

from opticoll._core import (
    Plan,
    PlanFileError,
    Program,
    ProgramError,
    Schedule,
    TraceError,
    read_goal_schedule,
    write_messages,
)
from opticoll.formats.atomic import replacing, write_file
from opticoll.formats.content import MAX_TEXT_BYTES, naming, read_text

Path = str | os.PathLike[str]


def read_plan(path: Path) -> Plan:
    """Reads a plan from a file; compression is recognized by content, not by name.

    Raises
    ------
    FileError
        The file cannot be read, decompressed, or decoded as UTF-8.
    PlanFileError
        The plan is malformed; the message names file, line and column.
    """
    text = read_text(path, "plan file")
    with naming(path, PlanFileError):
        return Plan.from_text(text)


def write_plan(plan: Plan, path: Path) -> None:
    """Writes a plan; if the writing fails, no incomplete file appears.

    Raises
    ------
    FileError
        The file cannot be written.
    """
    content = plan.to_text().encode("utf-8")
    if str(path).endswith(".zst"):
        import zstandard

        content = zstandard.ZstdCompressor(level=9, write_checksum=True).compress(content)
    write_file(path, content)


def read_msccl(path: Path) -> Program:
    """Reads a program from an XML file.

    Raises
    ------
    FileError
        The file cannot be read, decompressed, or decoded as UTF-8.
    ProgramError
        The program is malformed; the message names file and line.
    """
    text = read_text(path, "XML file", MAX_TEXT_BYTES)
    with naming(path, ProgramError):
        return Program.from_msccl(text)


def write_msccl(program: Program, path: Path) -> None:
    """Writes a program; the file is complete, or it does not appear.

    Raises
    ------
    FileError
        The file cannot be written.
    ProgramError
        Runtimes would refuse the program; the message names the limit that it exceeds.
    """
    write_file(path, program.to_msccl())


def read_goal(path: Path, _ranks: int | None = None) -> tuple[Schedule, list[str]]:
    """Reads the schedule that a GOAL file states in its comments.

    The list of notes that is also returned is empty.

    Raises
    ------
    FileError
        The file cannot be read.
    TraceError
        The file states no schedule, or its messages differ from the stated schedule; the message
        names the line.
    """
    text = read_text(path, "GOAL file", most=MAX_TEXT_BYTES)
    with naming(path, TraceError):
        return read_goal_schedule(text), []


def _writer(form: str) -> Callable[[Plan, int, Path], None]:
    """Returns a function that writes messages in a format of the compiled core."""

    def write_form(plan: Plan, size_bytes: int, path: Path) -> None:
        with replacing(path) as temporary:
            write_messages(plan, temporary, form, size_bytes)

    return write_form


write_goal = _writer("goal")
write_time_independent = _writer("time_independent")
