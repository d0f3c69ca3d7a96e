"""Words, numbers and columns of plain text.

>>> from opticoll.outputs.layout import align
>>> print(align([["ring", "1023"], ["optree", "72"]], ["algorithm", "steps"], right={1}))
algorithm  steps
ring        1023
optree        72
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from opticoll._core import format_size
from opticoll.outputs.terminal_text import escaped

PICOSECONDS = 10**12

KIBIBYTE = 1024
DECIMAL_UNITS = ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB"), (1, "B"))

ENERGY_UNITS = (
    *((1e9, "GJ"), (1e6, "MJ"), (1e3, "kJ")),
    *((1, "J"), (1e-3, "mJ"), (1e-6, "uJ"), (1e-9, "nJ"), (1e-12, "pJ")),
)

TIME_UNITS = ((10**12, "s"), (10**9, "ms"), (10**6, "us"), (10**3, "ns"), (1, "ps"))


def align(
    rows: Sequence[Sequence[str]], heading: Sequence[str] | None = None, right: Iterable[int] = ()
) -> str:
    """Returns rows as a table; `right` are the indices of right-aligned columns."""
    lines = [[*map(escaped, line)] for line in [*([] if heading is None else [heading]), *rows]]
    widths = [max(len(cell) for cell in column) for column in zip(*lines, strict=True)]
    rightwards = set(right)
    return "\n".join(
        "  ".join(
            cell.rjust(width) if index in rightwards else cell.ljust(width)
            for index, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def human_time(time_ps: int) -> str:
    """Returns a time with four significant digits, such as `60.47 ms`."""
    for factor, unit in TIME_UNITS:
        if time_ps >= factor:
            value = time_ps / factor
            decimals = max(0, 3 - len(str(int(value)))) + 1 if factor > 1 else 0
            return f"{value:.{min(decimals, 3)}f} {unit}"
    return "0 s"


def human_seconds(seconds: float) -> str:
    """Returns a time in seconds with four significant digits; negative times count as 0."""
    return human_time(round(max(seconds, 0.0) * PICOSECONDS))


def human_energy(joules: float) -> str:
    """Returns an energy with four significant digits.

    >>> human_energy(0.0015), human_energy(12_345.6)
    ('1.5 mJ', '12.35 kJ')
    """
    for factor, unit in ENERGY_UNITS:
        if joules >= factor:
            return f"{joules / factor:.4g} {unit}"
    return "0 J"


def duration(time_s: float) -> str:
    """Returns a time with four significant digits, in minutes, hours or days if the time is long.

    >>> duration(0.0122673), duration(7200)
    ('12.27 ms', '2.000 h')
    """
    for factor, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if time_s >= 2 * factor or (time_s >= factor and unit != "min"):
            return (
                f"{time_s / factor:.4g} {unit}"
                if time_s >= 1e4 * factor
                else (f"{time_s / factor:#.4g} {unit}")
            )
    return human_seconds(time_s)


def format_rate(bits_per_second: int) -> str:
    """Returns a rate with its unit, such as `40 Gb/s`."""
    for factor, unit in ((10**12, "Tb/s"), (10**9, "Gb/s"), (10**6, "Mb/s"), (10**3, "kb/s")):
        if bits_per_second >= factor:
            return f"{bits_per_second / factor:.6g} {unit}"
    return f"{bits_per_second} b/s"


READINGS: dict[str, Callable[[Any], str]] = {
    "ps": human_time,
    "s": human_seconds,
    "B": format_size,
    "bit/s": format_rate,
    "%": "{:.1%}".format,
}
"""Functions that convert a number to text for people, by unit of the number."""


def uses_decimal_units(sizes_bytes: Iterable[float]) -> bool:
    """Returns whether sizes are shown in kB, MB and GB rather than in KiB, MiB and GiB.

    Decimal units are used if all sizes are multiples of 1000 bytes and not all are multiples of
    1024 bytes.

    >>> uses_decimal_units([100_000, 6_400_000]), uses_decimal_units([1024, 1_024_000])
    (True, False)
    """
    large = [size for size in sizes_bytes if size >= 1000]
    return not any(size % 1000 for size in large) and any(size % KIBIBYTE for size in large)


def size_names(sizes_bytes: Iterable[int]) -> dict[int, str]:
    """Returns the exact text of each size, all in binary units or all in decimal units.

    >>> size_names([400_000, 6_400_000])
    {400000: '400kB', 6400000: '6400kB'}
    """
    sizes = list(sizes_bytes)
    if not uses_decimal_units(sizes):
        return {size: format_size(size) for size in sizes}
    whole = {size: next(unit for unit in DECIMAL_UNITS if size % unit[0] == 0) for size in sizes}
    return {size: f"{size // factor}{unit}" for size, (factor, unit) in whole.items()}


def describe_size(size_bytes: int, convention: str) -> str:
    """Returns a size with its meaning, such as `4MiB (bytes of one rank's block)`."""
    return f"{format_size(size_bytes)} ({convention})"


def labelled(label: str, lines: Sequence[str]) -> list[list[str]]:
    """Returns a row of two cells for each line; only the first row has `label` as first cell."""
    return [["" if number else label, line] for number, line in enumerate(lines)]


def plural(count: int, word: str) -> str:
    """Returns a count with its noun: `1 slot`, `2 slots`."""
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def and_more(count: int, most: int, noun: str = "") -> list[str]:
    """Returns a line with the number of items that are not printed; no line if the number is 0."""
    return [f"and {count - most} more{noun} (all of them with --json)"] if count > most else []


def wrapped(paragraphs: Sequence[str], margin: int) -> list[str]:
    """Wraps paragraphs to lines of at most 100 characters, indented by `margin` blanks."""
    first, later = " " * margin, " " * (margin + 2)
    return [
        line
        for paragraph in paragraphs
        for line in textwrap.wrap(
            paragraph,
            100,
            initial_indent=first,
            subsequent_indent=later,
            break_long_words=False,
            break_on_hyphens=False,
        )
    ]


def cell(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
