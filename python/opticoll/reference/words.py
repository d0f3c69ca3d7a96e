"""Parser of single words: numbers, quantities, and the values of options of fabrics.

Every option has a pattern, or a range of whole numbers. Other values are refused, even if no rule
uses the option, because a plan whose fabric is misspelled must not be proved.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction

from opticoll.reference.plan import NotAPlan

Check = Callable[[str], object]


def whole(word: str, most: int = 2**32 - 1) -> int:
    """Parses a whole number without sign; raises NotAPlan if it exceeds `most`."""
    expect(word.isascii() and word.isdigit(), f"`{word}` is not a whole number")
    number = int(word)
    expect(number <= most, f"`{word}` is more than {most}")
    return number


def expect(condition: bool, problem: str) -> None:
    if not condition:
        raise NotAPlan(problem)


def plain(name: str) -> str:
    """Returns a name in lower case, without underscores and hyphens."""
    return name.lower().replace("_", "").replace("-", "")


def count(most: int) -> Check:
    """Returns a check that a word is a whole number from 1 to `most`."""

    def check(word: str) -> None:
        expect(whole(word, most) >= 1, f"`{word}` is less than 1")

    return check


def one_of(*words: str) -> Check:
    return lambda word: expect(word in words, f"`{word}` is none of {', '.join(words)}")


def like(pattern: str) -> Check:
    return lambda word: expect(bool(re.fullmatch(pattern, word)), f"`{word}` is not of the form")


TIMES = {"s": 10**12, "ms": 10**9, "us": 10**6, "ns": 10**3, "ps": 1}
LENGTHS = {"km": 1000, "m": 1}
BYTES = {"B": 1} | {
    prefix + unit: base**power
    for unit, base, first in (("iB", 1024, "K"), ("B", 1000, "k"))
    for power, prefix in enumerate((first, "M", "G", "T"), start=1)
}
RATES = {f"{unit}/s": 8 * size for unit, size in BYTES.items()} | {
    f"{unit[:-1]}b/s": size for unit, size in BYTES.items() if "i" not in unit
}


def quantity(word: str, units: dict[str, int]) -> Fraction:
    """Parses a number with a unit, such as `2.5us`, into the smallest unit (below 2^64)."""
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)(.+)", word, re.ASCII)
    if match is None or match[2] not in units:
        raise NotAPlan(f"`{word}` has no number or no unit; known units are {', '.join(units)}")
    amount = Fraction(match[1]) * units[match[2]]
    expect(amount < 2**64, f"`{word}` is too much")
    return amount


def time(word: str) -> None:
    expect(quantity(word, TIMES) % 1 == 0, f"`{word}` is not a whole number of ps")


def time_until(most: str) -> Check:
    """Returns a check that a word is a time of at most `most`."""

    def check(word: str) -> None:
        time(word)
        expect(quantity(word, TIMES) <= quantity(most, TIMES), f"`{word}` is more than {most}")

    return check


def decimal(least: str, most: str) -> Check:
    """Returns a check that a word is a number in a range, with at most six decimals."""

    def check(word: str) -> None:
        like(r"[0-9]+(\.[0-9]{0,6})?")(word)
        expect(Fraction(least) <= Fraction(word) <= Fraction(most), f"`{word}` is out of range")

    return check


def length(word: str) -> None:
    expect(quantity(word, LENGTHS) % 1 == 0, f"`{word}` is not a whole number of metres")


def size(word: str) -> int:
    amount = quantity(word, BYTES | {"KB": 1000})
    expect(amount % 1 == 0, f"`{word}` is not a whole number of bytes")
    return int(amount)


def rate(word: str) -> None:
    expect(quantity(word, RATES) >= 1, f"`{word}` is less than 1 b/s")


RANKS = count(2**20)


def slower(listed: str, full: str) -> list[str]:
    """Returns the parts in a list such as `3.0@100Gb/s+5.1@50Gb/s`.

    Each rate in the list must be lower than the rate `full`.
    """
    parts = []
    for item in filter(None, listed.split("+")):
        part, _, speed = item.rpartition("@")
        rate(speed)
        expect(part != "", f"`{item}` has no rate")
        expect(quantity(speed, RATES) < quantity(full, RATES), f"`{item}` is no slower than {full}")
        parts.append(part)
    return parts
