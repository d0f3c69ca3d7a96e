"""Values that users write as text: sizes, whole numbers, and lists or ranges of values.

>>> split_sizes("1KiB..20KiB,1MB")
[1024, 4096, 16384, 20480, 1000000]
>>> split_algorithms("ring,wrht:group_size=5,striping=true,optree")
['ring', 'wrht:group_size=5,striping=true', 'optree']
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from functools import partial
from itertools import cycle
from numbers import Integral
from typing import TypeGuard

from opticoll._core import (
    CollectiveError,
    Fabric,
    UnitError,
    format_time,
    parse_size,
    parse_time,
)
from opticoll.errors import UsageError

SIZE_RANGE_FACTOR = 4
"""Factor between consecutive sizes of a range `A..B`; the last size is B."""


TIME_RANGE_FACTORS = (Fraction(2), Fraction(5, 2), Fraction(2))
"""Factors between consecutive times of a range `A..B`, used in turn; the last time is B."""


def to_root(root: int, fabric: Fabric) -> int:
    """Returns the root after checking that it is a rank of the fabric.

    Raises
    ------
    CollectiveError
        The root is not a rank.
    """
    if not _is_whole(root) or not 0 <= root < fabric.ranks:
        raise CollectiveError(f"root {root} is not a rank: ranks are 0 to {fabric.ranks - 1}")
    return int(root)


def to_bytes(size: str | int) -> int:
    """Converts a size to bytes: a whole number of bytes, or a text with a unit.

    Raises
    ------
    UnitError
        The value is neither of these, or it is negative.
    """
    if isinstance(size, str):
        if size.strip().startswith("-"):
            raise UnitError(f"`{size}` is not a size: a size is not negative")
        return parse_size(size)
    if not _is_whole(size):
        raise UnitError(f"`{size!r}` is not a size; give a number of bytes or text such as `4MiB`")
    if not 0 <= size < 2**64:
        raise UnitError(f"`{size}` is not a size: a size is at least 0 and below 2**64 bytes")
    return int(size)


def _is_whole(value: object) -> TypeGuard[int]:
    """Returns whether a value is a whole number of Python or NumPy, and not a truth value."""
    return isinstance(value, Integral) and not isinstance(value, bool)


LONG_UNITS_S = {"min": 60, "h": 3600, "d": 86400}
"""Units of long times, in seconds; the core reads the shorter units."""


def to_seconds(what: str, text: str, least: float = 0.0) -> float:
    """Converts a time such as `60s`, `10min`, `3h` or `54d` to seconds; `what` names the option.

    >>> to_seconds("--repair", "1.5h"), to_seconds("--setup", "10ms")
    (5400.0, 0.01)

    Raises
    ------
    UsageError
        The text is no time, or the time is less than `least`.
    """
    long = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) ?(min|h|d)", text.strip(), re.ASCII)
    try:
        seconds = float(long[1]) * LONG_UNITS_S[long[2]] if long else parse_time(text) / 1e12
    except UnitError as error:
        raise UsageError(
            f"{what}: `{text}` is not a time; write a number and a unit: ms, s, min, h or d"
        ) from error
    if not least <= seconds <= MAX_SECONDS:
        raise UsageError(f"{what}: `{text}` is out of range: it must be {least:g} s to 36500d")
    return seconds


MAX_SECONDS = 36500 * 86400
"""Longest time that options accept: 100 years."""


def whole_number(what: str, text: str, least: int | None = None, most: int | None = None) -> int:
    """Parses a whole number; `what` names the option or field in the error.

    Raises
    ------
    UsageError
        The text is not a whole number, or the number is outside `least..=most`.
    """
    if re.fullmatch(r"[+-]?[0-9]{1,18}", text.strip()) is None:
        problem = (
            "is too large" if re.fullmatch(r"\+?[0-9]+", text.strip()) else "is not a whole number"
        )
        raise UsageError(f"{what}: `{text}` {problem}")
    number = int(text)
    if (least is not None and number < least) or (most is not None and number > most):
        bounds = f"at least {least}" if most is None else f"in {least}..{most}"
        raise UsageError(f"{what}: {number} is out of range: it must be {bounds}")
    return number


def split_algorithms(text: str) -> list[str]:
    """Splits a list of algorithms at the commas between them, not at commas within an algorithm.

    >>> split_algorithms("ring,wrht:group_size=3,striping=true,bruck<80KiB,ring")
    ['ring', 'wrht:group_size=3,striping=true', 'bruck<80KiB,ring']
    """
    algorithms: list[str] = []
    for part in text.split(","):
        key, equals, _ = part.partition("=")
        is_option = equals and ":" not in key
        if algorithms and (is_option or re.search("<[^,]*$", algorithms[-1])):
            algorithms[-1] += f",{part.strip()}"
        elif not part.strip():
            raise UsageError(f"`{text}` names no algorithm between two commas")
        elif part.strip().isdigit() and algorithms:
            raise UsageError(
                f"`{part.strip()}` is not an algorithm; write several numbers of one option as 4x4"
            )
        else:
            algorithms.append(part.strip())
    return algorithms


def split_sizes(text: str) -> list[int]:
    """Converts a list of sizes to bytes; `A..B` stands for A, 4A, 16A and so on up to B.

    Raises
    ------
    UnitError
        A size has no unit, or the list is empty.
    UsageError
        A range is empty or starts at zero.
    """
    factors = [Fraction(SIZE_RANGE_FACTOR)]
    return list(dict.fromkeys(_split(text, "sizes", to_bytes, factors)))


def split_times(text: str) -> list[str]:
    """Splits a list of times; `A..B` stands for A, 2A, 5A, 10A and so on up to B.

    >>> split_times("10ns..200ns,1us")
    ['10ns', '20ns', '50ns', '100ns', '200ns', '1us']

    Raises
    ------
    UnitError
        A time has no unit, or the list is empty.
    UsageError
        A range is empty or starts at zero.
    """
    times = _split(text, "times", parse_time, TIME_RANGE_FACTORS)
    return list(dict.fromkeys(format_time(time) for time in times))


def split_counts(option: str, text: str) -> list[int]:
    """Parses a list of whole numbers; `option` names the option in the error.

    Raises
    ------
    UsageError
        An entry is not a whole number above zero.
    """
    example = "32,64" if option == "--wavelengths" else "512,1024"
    counts: list[int] = []
    for part in text.split(","):
        try:
            counts.append(whole_number(option, part, least=1))
        except UsageError as error:
            raise UsageError(
                f"{option}: `{part.strip()}` is not a whole number above 0; "
                f"write a list such as {option} {example}"
            ) from error
    return list(dict.fromkeys(counts))


def up_to(
    first: Fraction, last: Fraction, following: Callable[[Fraction], Fraction]
) -> Iterator[Fraction]:
    """Yields `first`, `following(first)` and so on below `last`; then yields `last`."""
    while first < last:
        yield first
        first = following(first)
    yield last


def _split(
    text: str, noun: str, read: Callable[[str], int], factors: Iterable[Fraction]
) -> Iterator[int]:
    """Yields the values of a list.

    In a range `A..B`, each value is the previous value times the next factor; `factors` repeat.
    """
    for part in text.split(","):
        first, dots, last = (word.strip() for word in part.partition(".."))
        if dots and not (first and last):
            end_word = "end" if first else "start"
            raise UsageError(f"`{part}` is not a range of {noun}: its {end_word} is missing")
        start = read(first)
        if not dots:
            yield start
            continue
        end = read(last)
        if not 0 < start <= end:
            problem = "its start must be above 0, and not above its end"
            raise UsageError(f"`{part}` is not a range of {noun}: {problem}")
        growth = cycle(factors)
        values = up_to(Fraction(start), Fraction(end), partial(_grown, growth))
        yield from map(round, values)


def _grown(growth: Iterator[Fraction], value: Fraction) -> Fraction:
    return value * next(growth)
