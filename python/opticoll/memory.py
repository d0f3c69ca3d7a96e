"""Memory limit of the work, and the share of each of several processes.

>>> _core.set_memory_limit("4GiB")
>>> share(4)
1073741824
>>> _core.set_memory_limit(None)
>>> take_values("the numbers", "1,2,3")
"""

from __future__ import annotations

from opticoll import _core

BYTES_PER_VALUE = 100
"""Bytes of a value read from text: the object and its place in a list or table (estimate)."""


def share(processes: int) -> int | None:
    """Returns the bytes for each of `processes` processes, or None without a memory limit."""
    whole = _core.memory_limit()
    return None if whole is None else whole // processes


def take_values(what: str, text: str, marks: str = ",[{\n", each: int = BYTES_PER_VALUE) -> None:
    """Refuses a text whose values exceed the memory limit; `marks` begin or separate values.

    Raises
    ------
    MemoryLimitError
        They need more.
    """
    _core.take_memory(what, len(text) + each * sum(map(text.count, marks)))
