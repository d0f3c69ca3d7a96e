"""Changes of plans as text, for tests in which both verifiers judge the same changed plans."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from math import prod

from test_reference import CASES

TRANSFERS = ("copy", "reduce", "multicast", "aggregate")
OTHER_ACTION = {"copy": "reduce", "reduce": "copy", "multicast": "copy", "aggregate": "reduce"}

Lines = list[str]


def family_of(fabric: str) -> str:
    """Returns the family of a specification; of all graphs of fibres `wdm_graph`."""
    family = fabric.partition(":")[0]
    return "wdm_graph" if family.startswith("wdm_") and family != "wdm_ring" else family


def options_by_family() -> dict[str, dict[str, list[str]]]:
    """Returns the values of each option in the fabrics of the plans made by hand."""
    found: dict[str, dict[str, list[str]]] = {}
    for text, _ in CASES.values():
        fabric = text.split("\n")[2].removeprefix("fabric ")
        for option in fabric.partition(":")[2].split(","):
            key, _, value = option.partition("=")
            if key not in ("ranks", "links"):
                found.setdefault(family_of(fabric), {}).setdefault(key, []).append(value)
    return found


OPTIONS = options_by_family()


def changed_number(line: str, chance: random.Random) -> str:
    """Draws a number of a line anew: a chunk, count, rank, link, channel, port or option."""
    places = list(re.finditer(r"(?<!ranks=)\b\d+\b", line))
    if not places:
        return line
    place = chance.choice(places)
    number = chance.choice([chance.randrange(int(place[0][:4]) + 3), chance.randrange(4), "*"])
    return f"{line[: place.start()]}{number}{line[place.end() :]}"


def changed_option(line: str, chance: random.Random) -> str:
    """Leaves out an option of a fabric, or adds one of a plan by hand on the same family."""
    family, _, text = line.removeprefix("fabric ").partition(":")
    options = dict(one.partition("=")[::2] for one in text.split(","))
    known = OPTIONS.get(family_of(family), {})
    if chance.random() < 0.4 or not known:
        del options[chance.choice(list(options))]
    else:
        key = chance.choice(list(known))
        options[key] = chance.choice(known[key])
    words = ",".join(f"{key}={value}" for key, value in options.items())
    return f"fabric {family}:{words}"


def changed_light(line: str, other: str, chance: random.Random) -> str:
    """Gives a transfer a word of another one, or a part of its route twice or not at all."""
    words, others = line.split(), other.split()
    place = chance.randrange(2, len(words))
    if place >= len(others):
        return " ".join(words[:place])
    words[place] = others[place]
    if chance.random() < 0.3:
        words[place:] = others[place:]
    elif "via" in words and chance.random() < 0.6:
        links = words[-1].split(".")
        at = chance.randrange(len(links))
        links[at : at + 1] = chance.choice([[], [links[at]] * 2, [links[at], links[-1 - at]]])
        words[-1] = ".".join(links)
    return " ".join(words)


def split_step(line: str, chance: random.Random) -> str:
    """Divides a step into two, of which one may be empty."""
    steps = [int(word) for word in line.split()[1:]]
    place = chance.randrange(len(steps))
    early = chance.randint(0, steps[place])
    steps[place : place + 1] = [early, steps[place] - early]
    return " ".join(["steps", *map(str, steps)])


def moved(lines: Lines, at: int, chance: random.Random) -> Lines:
    """Moves a transfer to another slot: one of the plan, or one after its end in a step or not."""
    line = lines.pop(at)
    slots = [n for n, other in enumerate(lines) if other.startswith("slot")]
    if chance.random() < 0.5:
        place = chance.choice(slots)
        return [*lines[: place + 1], line, *lines[place + 1 :]]
    head = next(n for n, other in enumerate(lines) if other.startswith("steps"))
    steps = [int(word) for word in lines[head].split()[1:]]
    last = sum(steps)
    if chance.random() < 0.5:
        steps.append(1)
    else:
        steps[-1] += 1
    lines[head] = " ".join(["steps", *map(str, steps)])
    return [*lines, f"slot {last}", line]


KINDS = [
    *["number"] * 6,
    *["light"] * 3,
    *["option"] * 2,
    *("drop", "double", "single", "action", "slot", "slot", "relay", "steps"),
]


def mutated(text: str, chance: random.Random, kinds: Sequence[str] = KINDS) -> str:
    """Returns the text of a plan with one change; the count at its end is that of its transfers."""
    *lines, end = text.splitlines()
    places = [n for n, line in enumerate(lines) if line.startswith(TRANSFERS)]
    kind = chance.choice(kinds)
    if kind == "option" or not places:
        lines[2] = changed_option(lines[2], chance)
    elif kind == "steps":
        at = next(n for n, line in enumerate(lines) if line.startswith("steps"))
        lines[at] = split_step(lines[at], chance)
    elif kind == "number" and chance.random() < 0.1:
        numbered = [n for n, line in enumerate(lines) if line.startswith(("fabric", "demand"))]
        at = chance.choice(numbered)
        lines[at] = changed_number(lines[at], chance)
    else:
        at = chance.choice(places)
        line = lines[at]
        action, _, rest = line.partition(" ")
        if kind == "slot":
            lines = moved(lines, at, chance)
        else:
            lines[at : at + 1] = {
                "drop": [],
                "double": [line, line],
                "single": [line, changed_number(line.partition(" x")[0], chance)],
                "action": [f"{OTHER_ACTION[action]} {rest}"],
                "relay": [re.sub(r">\d+>(\d+ \S+) \S+@\d+", r">\1", line)],
                "light": [changed_light(line, lines[chance.choice(places)], chance)],
                "number": [changed_number(line, chance)],
            }[kind]
    count = sum(
        prod(int(times) for times in re.findall(r" x(\d+)", line))
        for line in lines
        if line.startswith(TRANSFERS)
    )
    return "\n".join([*lines, end if kind == "number" and count > 10**4 else f"end {count}"]) + "\n"
