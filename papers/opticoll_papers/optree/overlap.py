"""A tree whose two stages overlap, which needs fewer slots than consecutive stages.

With N = 16, w = 3 and a tree of 4x4, stage 1 needs 8 wavelengths and stage 2 needs 16, which are
eight slots. Stage 1 leaves a wavelength of its third slot free. On this wavelength, nodes
send their own blocks as the first lightpaths of stage 2, since these do not wait for stage 1.

>>> plan = overlapping()
>>> plan.slots, len(plan), plan.verify()
(8, 240, [])
"""

from __future__ import annotations

import opticoll
from opticoll import Plan

RANKS, RADIX, WAVELENGTHS = 16, 4, 3

Path = tuple[int, int, int, str]
"""Path of a block: block, source, destination, direction."""

Light = tuple[int, int]
"""Light of a path: slot and wavelength."""


def overlapping() -> Plan:
    """Builds the plan of eight slots, which the verifier then checks."""
    lights = [(slot, colour) for slot in range(8) for colour in range(WAVELENGTHS)]
    first = [paths for position in range(RADIX) for paths in _ring(position)]
    used: list[tuple[Light, Path]] = [
        (light, path) for light, paths in zip(lights, first, strict=False) for path in paths
    ]
    free = lights[len(first) :]
    for base in range(0, RANKS, RADIX):
        for direction in ("cw", "ccw"):
            used += _segment(base, direction, free)
    lines = [
        "opticoll plan 1",
        f"collective all_gather ranks={RANKS} root=0 pieces=1",
        f"fabric {opticoll.Fabric(f'optree_paper:ranks={RANKS},wavelengths={WAVELENGTHS}').spec}",
        "algorithm optree:radices=4x4",
        "steps 3 5",
    ]
    for slot in range(8):
        lines.append(f"slot {slot}")
        lines += [
            f"copy {block} {source}>{destination} {direction} 0.{colour}"
            for (own, colour), (block, source, destination, direction) in used
            if own == slot
        ]
    return Plan.from_text("\n".join([*lines, f"end {len(used)}", ""]))


def _ring(position: int) -> tuple[list[Path], list[Path]]:
    """Returns stage 1 of the four nodes at one position of their groups, on two wavelengths."""
    one, two, three, four = nodes = [position + RADIX * group for group in range(RADIX)]
    around = list(zip(nodes, (two, three, four, one), strict=True))
    return (
        [(a, a, b, "cw") for a, b in around] + [(b, b, a, "ccw") for a, b in around],
        [
            (one, one, three, "cw"),
            (three, three, one, "cw"),
            (two, two, four, "ccw"),
            (four, four, two, "ccw"),
        ],
    )


def _segment(base: int, direction: str, free: list[Light]) -> list[tuple[Light, Path]]:
    """Returns stage 2 of a group in one direction: own blocks on the first light, and intervals."""
    inner = (base + 1, base + 2)
    source, destination = inner if direction == "cw" else inner[::-1]
    early = (source, source, destination, direction)
    group = range(base, base + RADIX)
    paths = [
        (block, a, b, direction)
        for a in group
        for b in group
        if (a < b if direction == "cw" else a > b)
        for block in range(a % RADIX, RANKS, RADIX)
    ]
    paths.remove(early)
    placed, ends = [(free[0], early)], dict.fromkeys(free[1:], base)
    for path in sorted(paths, key=lambda path: min(path[1:3])):
        light = next(light for light, end in ends.items() if end <= min(path[1], path[2]))
        ends[light] = max(path[1], path[2])
        placed.append((light, path))
    return placed
