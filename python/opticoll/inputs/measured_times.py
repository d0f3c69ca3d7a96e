"""Measured times of collectives: CSV files, and the text of nccl-tests and of OSU's benchmarks.

A CSV file has the columns `collective`, `ranks`, `bytes` and `time_us`. It may have the column
`system`, and comments after `#`. Its bytes are those of nccl-tests: the whole buffer, which is the
output of an all_gather and the input of a reduce_scatter or an all_to_all. The text of nccl-tests
states ranks, sizes and times. Newer versions also name the program, from which the collective
follows. The text of OSU's benchmarks states the collective, but not the number of ranks.

>>> import pathlib, tempfile
>>> path = pathlib.Path(tempfile.mkdtemp()) / "times.csv"
>>> _ = path.write_text("collective,ranks,bytes,time_us\\nall_gather,8,4096,10.5\\n")
>>> read(path)
[Measured(collective='all_gather', ranks=8, buffer_bytes=4096, time_us=10.5)]
"""

from __future__ import annotations

import csv
import math
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from opticoll import memory
from opticoll.errors import FileError
from opticoll.formats.content import MAX_TEXT_BYTES, read_text
from opticoll.formats.recognition import recognize
from opticoll.names import canonical, nearest

COLLECTIVES = ("all_gather", "reduce_scatter", "all_reduce", "all_to_all")
"""Collectives whose times are read; NCCL runs the first three as rings."""

PROGRAMS = {
    "all_gather": "all_gather",
    "allgather": "all_gather",
    "reduce_scatter": "reduce_scatter",
    "reducescatter": "reduce_scatter",
    "all_reduce": "all_reduce",
    "allreduce": "all_reduce",
    "alltoall": "all_to_all",
    "all_to_all": "all_to_all",
}
"""Collectives by their names in the programs of nccl-tests and OSU."""

COLUMNS = ("collective", "ranks", "bytes", "time_us")
MAX_RANKS = 2**20
MAX_BUFFER_BYTES = 2**50


@dataclass(frozen=True)
class Measured:
    """Measured time of a collective; `buffer_bytes` counts the whole buffer, as nccl-tests does."""

    collective: str
    ranks: int
    buffer_bytes: int
    time_us: float

    @property
    def kind(self) -> str:
        """Rows of the same kind are reported together."""
        return self.collective

    @property
    def group(self) -> str:
        """Rows of the same group are left out together to judge a fit."""
        return str(self.buffer_bytes)

    @property
    def size_bytes(self) -> int:
        """Size of the collective as opticoll counts it: for an all_gather, a rank's block."""
        whole = self.collective != "all_gather"
        return self.buffer_bytes if whole else self.buffer_bytes // self.ranks


def read(
    path: str | os.PathLike[str],
    ranks: int | None = None,
    collective: str | None = None,
    system: str | None = None,
) -> list[Measured]:
    """Reads the times in a file.

    `ranks` and `collective` are those of a file that does not state them. `system` selects the
    rows of one system from a CSV file. Rows of other collectives and of no bytes are left out.

    Raises
    ------
    FileError
        The file cannot be read, has none of the three forms, or does not state the number of
        ranks or the collective; the message names file and line.
    """
    text = read_text(path, "file of measured times", MAX_TEXT_BYTES)
    memory.take_values(f"reading `{path}`", text)
    lines = text.splitlines()
    if any(re.match(r"#\s*OSU\b", line) for line in lines):
        rows = _osu(path, lines, ranks, collective)
    elif any(_heading(line) for line in lines):
        rows = _nccl_tests(path, lines, ranks, collective)
    elif set(COLUMNS) <= set(_cells(next((line for line in lines if line[:1] != "#"), ""))):
        rows = _csv(path, lines, system)
    else:
        kind = recognize(text.encode())
        what = f"is {kind.noun}, and " if kind else ""
        raise FileError(
            f"`{path}` {what}has no measured times; give a CSV file with the columns "
            f"{', '.join(COLUMNS)}, or the text of nccl-tests or of OSU's benchmarks"
        )
    found = list(rows)
    if not found:
        raise FileError(
            f"`{path}` has no row of {', '.join(COLLECTIVES)} on 2 ranks or more with bytes"
        )
    return found


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in next(csv.reader([line]), [])]


def _csv(path: str | os.PathLike[str], lines: list[str], system: str | None) -> Iterator[Measured]:
    numbered = [(number, line) for number, line in enumerate(lines, start=1) if line[:1] != "#"]
    columns = _cells(numbered[0][1])
    systems: dict[str, None] = {}
    for number, line in numbered[1:]:
        row = dict(zip(columns, _cells(line), strict=False))
        if not row:
            continue
        where = f"`{path}`, line {number}"
        name = row.get("system", "")
        systems.setdefault(name)
        if system is not None and name != system:
            continue
        if system is None and len(systems) > 1:
            first, second = list(systems)[:2]
            raise FileError(
                f"{where}: the file has times of several systems, `{first}` and `{second}`; "
                f"select one with --system {first}"
            )
        values = [row.get(column, "") for column in COLUMNS]
        yield from _measured(where, *values)
    if system is not None and system not in systems:
        raise FileError(f"`{path}` has no rows of the system `{system}`{nearest(system, systems)}")


def _measured(
    where: str, collective: str, ranks: str, size: str, time_us: str
) -> Iterator[Measured]:
    """Yields the time in a row; none for another collective, for one rank or without bytes."""
    numbers = (
        _whole(where, "ranks", ranks, MAX_RANKS),
        _whole(where, "bytes", size, MAX_BUFFER_BYTES),
    )
    time = _time(where, time_us)
    kind = canonical(collective, PROGRAMS)
    if kind is not None and numbers[0] > 1 and numbers[1] > 0:
        yield Measured(PROGRAMS[kind], *numbers, time)


def _whole(where: str, what: str, text: str, most: int) -> int:
    if not re.fullmatch(r"\d{1,16}", text, re.ASCII) or int(text) > most:
        raise FileError(f"{where}: {what} is `{text[:40]}`, not a whole number up to {most}")
    return int(text)


def _time(where: str, text: str) -> float:
    try:
        time_us = float(text)
    except ValueError:
        time_us = math.nan
    if not 0 < time_us < 1e12:
        raise FileError(f"{where}: the time is `{text[:40]}`, not a number of microseconds above 0")
    return time_us


def _heading(line: str) -> list[str]:
    """Returns the words of the heading of a table of nccl-tests; empty for other lines."""
    words = line.lstrip("# ").split()
    return words if words[:2] == ["size", "count"] and "time" in words else []


def _nccl_tests(
    path: str | os.PathLike[str], lines: list[str], ranks: int | None, collective: str | None
) -> Iterator[Measured]:
    """Yields the times out of place of all tables in a text of nccl-tests."""
    kind = PROGRAMS[collective] if collective is not None else _in_name(path)
    stated = ranks
    listed: set[int] = set()
    columns = 0
    for number, line in enumerate(lines, start=1):
        where = f"`{path}`, line {number}"
        if collective is None and (program := re.search(r"\b([a-z_]+)_perf\b", line)):
            kind = PROGRAMS.get(program[1])
        if re.match(r"#?\s*nThread\b", line):
            listed.clear()
        if rank := re.match(r"#?\s*Rank\s+(\d{1,7})\b", line):
            listed.add(int(rank[1]))
        if heading := _heading(line):
            # Some columns may be empty, so cells are counted from the right.
            columns = len(heading) - heading.index("time")
            continue
        cells = line.split()
        if not columns or not re.match(r"\s*\d+\s+\d+\s+[a-z]", line) or len(cells) <= columns:
            continue
        count = stated or len(listed)
        if not count:
            raise FileError(f"{where}: no line `# Rank 0` states the ranks; give --ranks 8")
        if kind is None:
            if "_perf" in "".join(lines):
                continue
            raise FileError(
                f"{where}: the text does not name the program; give --collective all_reduce, or a "
                "file name such as all_reduce.txt"
            )
        yield from _measured(where, kind, str(count), cells[0], cells[-columns])


def _in_name(path: str | os.PathLike[str]) -> str | None:
    """Returns the collective that the name of a file contains, if any."""
    name = Path(path).name.lower().replace("-", "_")
    return next((kind for word, kind in PROGRAMS.items() if word in name), None)


def _osu(
    path: str | os.PathLike[str], lines: list[str], ranks: int | None, collective: str | None
) -> Iterator[Measured]:
    """Yields the mean times in a text of OSU's benchmarks of collectives."""
    kind = None if collective is None else PROGRAMS[collective]
    named = False
    for number, line in enumerate(lines, start=1):
        where = f"`{path}`, line {number}"
        if title := re.match(r"#\s*OSU\b(.*)", line):
            words = re.findall(r"[a-z_]+", title[1].lower())
            known = [PROGRAMS[word] for word in words if word in PROGRAMS]
            kind = PROGRAMS[collective] if collective is not None else next(iter(known), None)
            named = True
        cells = line.split()
        if not named or not re.match(r"\s*\d+\s+[\d.]", line):
            continue
        if ranks is None:
            raise FileError(
                f"{where}: OSU's benchmarks do not print the number of ranks; give --ranks 8"
            )
        if kind is None:
            continue
        # An all_gather and an all_to_all state the bytes for each rank.
        each = kind in ("all_gather", "all_to_all")
        size = _whole(where, "the size", cells[0], MAX_BUFFER_BYTES) * (ranks if each else 1)
        yield from _measured(where, kind, str(ranks), str(size), cells[1])
