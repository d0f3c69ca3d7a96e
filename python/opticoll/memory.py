"""Memory limit of a computation, and the equal share of each process.

>>> _core.set_memory_limit("4GiB")
>>> share(4)
1073741824
>>> _core.set_memory_limit(None)
>>> take_values("the numbers", "1,2,3")
"""

from __future__ import annotations

from opticoll import _core

BYTES_PER_VALUE = 100
"""Estimated bytes of memory for a value in a text: the object and its entry in a list."""


def share(processes: int) -> int | None:
    """Divides the memory limit by the number of processes; returns bytes, or None."""
    whole = _core.memory_limit()
    return None if whole is None else whole // processes


def take_values(
    noun: str, text: str, marks: str = ",[{\n", value_bytes: int = BYTES_PER_VALUE
) -> None:
    """Raises an error if the values in a text would exceed the memory limit.

    `marks` are characters that precede a value, and `value_bytes` is the number of bytes per value.
    `noun` names the text in the error message.

    Raises
    ------
    MemoryLimitError
        The values need more memory than the limit.
    """
    _core.take_memory(noun, len(text) + value_bytes * sum(map(text.count, marks)))
