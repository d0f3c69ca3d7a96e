"""The reference verifier and the core are of one mind about grids of tunable circuits."""

from __future__ import annotations

import random
import re

import pytest

import opticoll
from support import check_both_prove, compare_mutants, core_kinds, in_one_line, reference_kinds

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


@pytest.mark.parametrize(("collective", "options", "algorithm"), PLANS)
def test_both_prove_what_the_planner_makes(collective: str, options: str, algorithm: str) -> None:
    check_both_prove(written(collective, options, algorithm))


@in_one_line
def mutated(line: str, generator: random.Random) -> str:
    """One number of one transfer, or of the fabric, changed; or a hop on another plane."""
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


@pytest.mark.parametrize(("collective", "options", "algorithm"), PLANS)
def test_both_find_the_same_in_mutants(collective: str, options: str, algorithm: str) -> None:
    text = written(collective, options, algorithm)
    # One hop may be wrong in several ways: which of them is named must not differ either.
    found = compare_mutants(text, mutated, [1, 2, 3] * 100)
    assert len(found) > 50
    assert sum(map(bool, found)) > 30


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
