"""The memory that work may take, and what each of several processes may take of it.

>>> set_limit("4GiB")
>>> share(4)
1073741824
>>> set_limit(None)
>>> take_values("the numbers", "1,2,3")
"""

from __future__ import annotations

from pathlib import Path

from opticoll import _core

BYTES_PER_VALUE = 100
"""What a value takes that was read from text: its object, and its place in a list or table."""

_given: int | None = None


def set_limit(limit: str | None) -> None:
    """Limit the memory that the compiled core may need; None for what the machine has available.

    Raises
    ------
    UnitError
        The text is no size.
    """
    global _given
    _core.set_memory_limit(limit)
    _given = None if limit is None else _core.parse_size(limit)


def share(processes: int) -> int | None:
    """The bytes for each of so many processes; None where nothing is known of the machine."""
    whole = available() if _given is None else _given
    return None if whole is None else whole // processes


def take_values(what: str, text: str, marks: str = ",[{\n", each: int = BYTES_PER_VALUE) -> None:
    """Refuse a text whose values need more memory than the limit; marks begin or part values.

    Raises
    ------
    MemoryLimitError
        They need more.
    """
    _core.take_memory(what, len(text) + each * sum(map(text.count, marks)))


def available() -> int | None:
    """The bytes that Linux says are available without swapping, and the control group leaves."""
    found = []
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        (line,) = [line for line in lines if line.startswith("MemAvailable:")]
        found.append(int(line.split()[1]) * 1024)
    except (OSError, ValueError):
        pass
    try:
        most, used = (Path(f"/sys/fs/cgroup/memory.{name}") for name in ("max", "current"))
        found.append(max(0, int(most.read_text()) - int(used.read_text())))
    except (OSError, ValueError):
        pass
    return min(found, default=None)
