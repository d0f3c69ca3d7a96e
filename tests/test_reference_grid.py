"""The reference verifier and the core are of one mind about grids of tunable circuits."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from functools import partial
from math import prod

import pytest

import opticoll
from support import compare_mutants, core_kinds, line_mutation, reference_kinds

PLANS = [
    ("all_reduce", "rows=2,columns=4,plan=xor", "halving_doubling"),
    ("all_reduce", "rows=2,columns=2,wavelengths=2", "dual_plane_halving_doubling"),
    ("all_reduce", "rows=3,columns=3", "halving_doubling"),
    ("all_gather", "rows=2,columns=3,plan=cyclic", "ring"),
    ("all_to_all", "rows=2,columns=3", "direct"),
    ("broadcast", "rows=2,columns=4,dead_transceivers=1.row", "binomial"),
    ("all_gather", "rows=2,columns=3,nodes=0-1+3-5", "direct"),
    ("all_reduce", "rows=2,columns=3,dead_ports=row0.1+column2.1", "ring"),
]


def written(collective: str, options: str, algorithm: str) -> str:
    return opticoll.plan(collective, f"wss_grid:{options}", algorithm, size=1000).to_text()


@line_mutation
def with_other_number(line: str, generator: random.Random) -> str:
    """Changes a number of a transfer or of the fabric, or moves a hop to another plane."""
    if line.startswith("fabric"):
        lack = ["dead_transceivers=2.row", "dead_ports=column1.0", "wavelengths=1"]
        key = (chosen := generator.choice(lack)).partition("=")[0]
        if key == "wavelengths":
            before, _, rest = line.partition("wavelengths=")
            return f"{before}{chosen},{rest.partition(',')[2]}"
        return line if key in line else f"{line},{chosen}"
    if generator.random() < 0.3:
        swapped = {"row.": "column.", "column.": "row."}
        old = generator.choice([plane for plane in swapped if plane in line])
        return line.replace(old, swapped[old], 1)
    place = generator.choice(list(re.finditer(r"\d+", line)))
    value = generator.choice([*"0123456789", "65534", "65535", "*"])
    return f"{line[: place.start()]}{value}{line[place.end() :]}"


def transfers(line: str) -> int:
    return prod(int(times) for times in re.findall(r" x(\d+)", line))


def with_longer_step(text: str, generator: random.Random) -> str:
    """Adds a slot at the end of a step, and moves one of its transfers there."""
    head, words, rest = re.split(r"\nsteps (.*)\n", text)
    steps = [int(word) for word in words.split()]
    step = generator.randrange(len(steps))
    steps[step] += 1
    new = sum(steps[: step + 1]) - 1
    rest = re.sub(
        r"((?:^slot |@))(\d+)",
        lambda place: f"{place[1]}{int(place[2]) + (int(place[2]) >= new)}",
        rest,
        flags=re.MULTILINE,
    )
    before = [one for one in re.finditer(r"^slot (\d+)\n(.*)\n", rest, re.M) if int(one[1]) < new]
    moved = before[-1][2]
    at = rest.find("slot", before[-1].end())
    at = len(rest) - len(rest.splitlines()[-1]) - 1 if at < 0 else at
    rest = f"{rest[:at]}slot {new}\n{moved}\n{rest[at:]}"
    rest = rest.replace(f"{moved}\n", "", 1)
    return f"{head}\nsteps {' '.join(map(str, steps))}\n{rest}"


KINDS = [*["number"] * 4, "drop", "double", "action", "slot", "step", "relay"]


def mutated(text: str, generator: random.Random, kinds: Sequence[str] = KINDS) -> str:
    """Changes a number or step, or drops, doubles, adds or moves a transfer."""
    kind = generator.choice(kinds)
    if kind == "number":
        return with_other_number(text, generator)
    if kind == "step":
        return with_longer_step(text, generator)
    *lines, end = text.splitlines()
    at = generator.choice([n for n, line in enumerate(lines) if line[:4] in ("copy", "redu")])
    line = lines.pop(at)
    if kind == "double":
        lines += [line, line]
    elif kind == "action":
        action, _, rest = line.partition(" ")
        lines.insert(at, f"{'reduce' if action == 'copy' else 'copy'} {rest}")
    elif kind == "slot":
        slots = [n for n, other in enumerate(lines) if other.startswith("slot")]
        lines.insert(generator.choice(slots) + 1, line)
    elif kind == "relay":
        lines.insert(at, re.sub(r">\d+>(\d+ \S+) \S+@\d+", r">\1", line))
    count = int(end.split()[1]) + transfers(line) * {"drop": -1, "double": 1}.get(kind, 0)
    return "\n".join([*lines, f"end {count}"]) + "\n"


@pytest.mark.parametrize(("collective", "options", "algorithm"), PLANS)
def test_both_find_the_same_in_mutants(collective: str, options: str, algorithm: str) -> None:
    text = written(collective, options, algorithm)
    # One hop may be wrong in several ways: which of them is named must not differ either.
    found = compare_mutants(text, mutated, [1, 1, 2, 3] * 120)
    assert len(found) > 50
    assert sum(map(bool, found)) > 30
    assert set() in found


@pytest.mark.parametrize(("collective", "options", "algorithm"), PLANS)
def test_what_is_dropped_or_doubled_is_always_rejected(
    collective: str, options: str, algorithm: str
) -> None:
    text = written(collective, options, algorithm)
    found = compare_mutants(text, partial(mutated, kinds=["drop", "double"]), [1] * 120)
    assert len(found) == 120
    assert all(found)


@pytest.mark.parametrize(
    ("way", "sound"),
    [
        # On a row of four, wavelength d leads d + 1 ports up, modulo 4, and not back.
        ("1>2 row.0", True),
        ("2>1 row.0", False),
        ("3>0 row.0", True),
        ("0>3 row.0", False),
        ("2>1 row.2", True),
        ("1>2 row.2", False),
        ("1>3 row.1", True),
    ],
)
def test_cyclic_wavelengths_lead_up(way: str, sound: bool) -> None:
    source, destination = way.split()[0].split(">")
    text = (
        "opticoll plan 1\ncollective all_to_all ranks=4 root=0 pieces=1\n"
        "fabric wss_grid:rows=1,columns=4,plan=cyclic\nalgorithm by hand\nsteps 1\nslot 0\n"
        f"copy {4 * int(source) + int(destination)} {way}\nend 1\n"
    )
    for kinds in (core_kinds(text), reference_kinds(text)):
        assert ("path" in kinds) is not sound
