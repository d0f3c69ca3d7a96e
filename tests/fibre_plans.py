"""Plans on graphs of fibres, drawn at random, and mutants of these plans."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import suppress
from functools import reduce

from opticoll import _core
from opticoll.names import has_root
from opticoll.reference import NotAPlan, read, verify
from plan_mutants import mutated

RECORDS = [one for one in _core.records("algorithms") if one["collective"] and not one["family"]]

SHAPES = {
    "wdm_line": ["ranks=2", "ranks=4", "ranks=6"],
    "wdm_ladder": ["rungs=2", "rungs=3"],
    "wdm_hypercube": ["ranks=2", "ranks=4", "ranks=8"],
    "wdm_tree": ["ranks=4", "ranks=6", "ranks=5,arity=4", "ranks=7,arity=3"],
}
"""Sizes of fabrics of the families whose size is one number."""


def drawn_spec(chance: random.Random) -> str:
    family = chance.choice(["wdm_graph"] * 8 + ["wdm_torus", "wdm_mesh", *SHAPES])
    if family == "wdm_graph":
        vertices = chance.randint(2, 6)
        ranks = chance.randint(2, vertices) if chance.random() < 0.4 else vertices
        has_lengths = chance.random() < 0.2
        shape, options = drawn_links(chance, vertices, has_lengths), [f"ranks={ranks}"]
        if vertices > ranks:
            options.append(f"switches={vertices - ranks}")
        options.append(f"links={'+'.join(shape)}")
    elif family in SHAPES:
        shape, options = ["0-1"], [chance.choice(SHAPES[family])]
    else:
        shape = ["0-1"]
        options = [f"dims={chance.choice(['2', '3', '5', '2x2', '2x3', '3x2', '2x1x2', '3x3'])}"]
    wavelengths, fibres = chance.randint(1, 3), chance.choice([1, 1, 1, 2])
    options.append(f"wavelengths={wavelengths}")
    if fibres > 1:
        options.append(f"fibres={fibres}")
    cut = chance.choice(shape).split("@")[0].replace("~", "-")
    channel = f"{chance.randrange(fibres)}.{chance.randrange(wavelengths)}"
    others = [
        f"transmitters={chance.choice(['all', 1, 2])}",
        f"receivers={chance.choice(['all', 1, 2])}",
        f"converters={chance.choice(['full', 'full', 1, 2])}",
        "multicast=drop_and_continue",
        f"reach={chance.choice([1, 2, 3, '1@100Gb/s+2@40Gb/s', '2@50Gb/s'])}",
        f"dead={chance.choice([channel, chance.randrange(wavelengths)])}",
        f"degraded={chance.choice([f'w{channel}', f'w{wavelengths - 1}', cut])}@10Gb/s",
        f"without={chance.choice([cut, cut.replace('-', '>'), '1'])}",
        f"members={chance.choice(['0-1', '1', '0+2', '1-2'])}",
    ]
    likely = [0.15, 0.15, 0.3, 0.3, 0.15, 0.1, 0.05, 0.07, 0.05]
    options += [word for word, often in zip(others, likely, strict=True) if chance.random() < often]
    if chance.random() < 0.25:
        options.append(drawn_budget(chance, "km" in shape[0]))
    return f"{family}:{','.join(options)}"


def drawn_budget(chance: random.Random, has_lengths: bool) -> str:
    """Draws a loss budget that some lightpaths of two or three links meet, with noise or not."""
    words = [
        f"launch_power={chance.choice([0, 0.5])}dBm",
        f"sensitivity=-{chance.choice([3, 5, 7])}dBm",
        *chance.sample(
            [
                f"through_loss={chance.choice([0.5, 1])}dB",
                f"split_loss={chance.choice([1, 2.000001])}dB",
                "drop_loss=0.5dB",
                "fixed_loss=0.5dB",
            ],
            chance.randint(0, 4),
        ),
    ]
    if has_lengths:
        words.append("fibre_loss=0.200001dB/km")
    if chance.random() < 0.4:
        # Amplifiers have an OSNR of about 33 dB after one link, 30 dB after two, 28 dB after three.
        words += ["link_loss=20dB", "noise_figure=5dB", f"osnr={chance.choice([27, 29, 31])}dB"]
        words += chance.sample(["crosstalk=-33dB", "span=2km"], chance.randint(0, 2))
    else:
        words.append(f"link_loss={chance.choice([1, 1.5])}dB")
    return ",".join(words)


def drawn_links(chance: random.Random, vertices: int, has_lengths: bool) -> list[str]:
    """Draws cables: a line, ring or tree, with further cables, some of them one-way or parallel."""
    shape = chance.choice(["line", "ring", "tree", "tree"])
    pairs = [
        (chance.randrange(end) if shape == "tree" else end - 1, end) for end in range(1, vertices)
    ]
    if shape == "ring":
        pairs.append((0, vertices - 1))
    more = [chance.sample(range(vertices), 2) for _ in range(chance.choice([0, 0, 1, 3]))]
    pairs += [(start, end) for start, end in more]
    courses = "-" * 8 + chance.choice(["-", "~>", ">"])
    return [
        f"{start}{chance.choice(courses)}{end}{chance.choice([''] * 9 + ['@40Gb/s'])}"
        f"{f'@{chance.choice([1, 2.5, 5])}km' if has_lengths else ''}"
        for start, end in pairs
    ]


def drawn_plan(chance: random.Random) -> str:
    """Draws a plan of some algorithm on a graph of fibres whose ranks can all reach each other."""
    while True:
        with suppress(_core.OpticollError):
            fabric = _core.Fabric(drawn_spec(chance))
            record = chance.choice(RECORDS)
            kind = str(record["collective"])
            root = chance.randrange(fabric.ranks) if has_root(kind) else 0
            plan = _core.plan(kind, fabric, record["name"], root=root, size_bytes=1 << 20)
            if len(plan) < 100:
                return plan.to_text()


def judged(text: str) -> tuple[set[str] | None, set[str] | None]:
    """Returns the kinds of problems that the core and the reference find; None if one refuses."""
    core = reference = None
    with suppress(_core.PlanFileError):
        core = {violation.kind for violation in _core.Plan.from_text(text).verify()}
    with suppress(NotAPlan):
        reference = {problem.kind for problem in verify(read(text))}
    return core, reference


def cases(seed: int) -> Iterator[str]:
    """Yields the text of a drawn plan and of its mutants, of which two have another option."""
    chance = random.Random(seed)
    plan = drawn_plan(chance)
    yield plan
    for changes in (0, 0, 1, 2, 3):
        start = plan if changes else mutated(plan, chance, ["option"])
        yield reduce(lambda text, _: mutated(text, chance), range(changes), start)
