"""Plans on graphs of fibres, drawn at random: many are sound, many break a rule or two."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from opticoll import _core
from opticoll.reference import Collective, NotAPlan, Transfer, read, verify
from opticoll.reference.families import read_fabric
from opticoll.reference.graph import CONVERTED, Graph, Light

KINDS = (
    *("all_gather", "broadcast", "scatter", "gather", "all_to_all"),
    *("reduce", "reduce_scatter", "all_reduce", "barrier"),
)
SPREAD = {
    "reduce": "broadcast",
    "reduce_scatter": "all_gather",
    "all_reduce": "broadcast",
    "barrier": "broadcast",
}
"""The collective whose plan, from its end to its start, sums what another collective demands."""


SHAPES = {
    "wdm_line": ["ranks=2", "ranks=4", "ranks=6"],
    "wdm_ladder": ["rungs=2", "rungs=3"],
    "wdm_hypercube": ["ranks=2", "ranks=4", "ranks=8"],
    "wdm_tree": ["ranks=4", "ranks=6", "ranks=5,arity=4", "ranks=7,arity=3"],
}
"""Sizes of fabrics of the families whose size is one number."""


@dataclass
class Drawn:
    """A drawn plan: lines of its text before the steps, slots of each step, and transfers."""

    fabric: str
    collective: Collective
    steps: list[int]
    transfers: list[Transfer]

    @property
    def text(self) -> str:
        one = self.collective
        lines = [
            "opticoll plan 1",
            f"collective {one.kind} ranks={one.ranks} root={one.root} pieces={one.pieces}",
            f"fabric {self.fabric}",
            "algorithm by hand",
            f"steps {' '.join(map(str, self.steps))}",
        ]
        slot = None
        for transfer in sorted(self.transfers, key=lambda transfer: transfer.slot):
            if transfer.slot != slot:
                slot = transfer.slot
                lines.append(f"slot {slot}")
            fibre, wavelength, route = transfer.light
            channel = f"{fibre}.{'*' if wavelength is CONVERTED else wavelength}"
            via = "" if route is None else f" via {'.'.join(map(str, route))}"
            ends = f"{transfer.source}>{transfer.destination}"
            lines.append(
                f"{transfer.action} {transfer.chunk}+{transfer.count} {ends} {channel}{via}"
            )
        return "\n".join([*lines, f"end {len(self.transfers)}\n"])


def drawn_fabric(chance: random.Random) -> tuple[str, Graph]:
    """Draws the specification of a graph of fibres whose ranks can all reach each other."""
    while True:
        spec = drawn_spec(chance)
        with suppress(NotAPlan):
            fabric = read_fabric(spec)
            assert isinstance(fabric, Graph)
            return spec, fabric


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


def paths(graph: Graph, source: int) -> dict[int, list[tuple[int, ...]]]:
    """Returns the routes from a vertex to each other one, in the order of their lengths."""
    found: dict[int, list[tuple[int, ...]]] = {}
    waiting: list[tuple[tuple[int, ...], list[int]]] = [((), [source])]
    for route, visited in waiting:
        if route:
            found.setdefault(visited[-1], []).append(route)
        for number, (start, end, both_ways, *_) in enumerate(graph.network.links):
            for one, other in [(start, end), (end, start)][: 1 + both_ways]:
                if one == visited[-1] and other not in visited and len(waiting) < 500:
                    waiting.append(((*route, number), [*visited, other]))
    return found


def drawn_plan(chance: random.Random) -> Drawn:
    """Draws a plan whose data arrive, on routes and channels that are mostly right."""
    spec, graph = drawn_fabric(chance)
    assert graph.ranks is not None
    root = chance.randrange(graph.ranks)
    kind = chance.choice(KINDS)
    collective = Collective(kind, graph.ranks, root, chance.choice([1, 1, 2, 3]))
    steps = spread(chance, replace(collective, kind=SPREAD.get(kind, kind)))
    if kind in SPREAD:
        sums = [
            [
                replace(one, action="reduce", source=one.destination, destination=one.source)
                for one in step
            ]
            for step in reversed(steps)
        ]
        steps = [*sums, *(steps if kind in ("all_reduce", "barrier") else [])]
    return placed(chance, graph, Drawn(spec, collective, [], []), steps)


def spread(chance: random.Random, collective: Collective) -> list[list[Transfer]]:
    """Draws steps in which every chunk comes to the ranks that need it, over relays or not."""
    pieces, ranks = collective.pieces, range(collective.ranks)
    whole_blocks = chance.random() < 0.5
    units = range(0, collective.chunks, pieces if whole_blocks else 1)
    held = {chunk: collective.before(chunk) for chunk in units}
    often, relays = chance.choice([1.0, 0.5, 0.3]), chance.choice([0.0, 0.0, 0.2])
    steps = []
    while any(collective.after(chunk) - held[chunk] for chunk in units):
        step = []
        for chunk in units:
            needed = collective.after(chunk) - held[chunk]
            holders = sorted(held[chunk])
            new = {rank for rank in sorted(needed) if chance.random() < often}
            if needed:
                new |= {rank for rank in ranks if chance.random() < relays} - held[chunk]
            sender = chance.choice(holders)
            for rank in sorted(new):
                source = sender if chance.random() < 0.7 else chance.choice(holders)
                count = pieces if whole_blocks else 1
                step.append(Transfer(0, "copy", chunk, count, source, rank))
            held[chunk] |= new
        steps.append(step)
    return [step for step in steps if step]


def placed(chance: random.Random, graph: Graph, plan: Drawn, steps: list[list[Transfer]]) -> Drawn:
    """Gives transfers a slot, a route and the first free channel, or sometimes another one."""
    routes = {rank: paths(graph, rank) for rank in range(plan.collective.ranks)}
    sharing = chance.choice(["none", "route", "tree" if graph.multicast else "none"])
    converts = 0.7 if graph.converters != 0 and chance.random() < 0.6 else 0.0
    detours, odd = chance.choice([0.0, 0.2]), chance.choice([0.0, 0.05])
    channels = [
        (fibre, wavelength)
        for fibre in range(graph.fibres)
        for wavelength in range(graph.wavelengths)
        if (fibre, wavelength) not in graph.dead
    ]
    first = 0
    for step in steps:
        used: dict[tuple[int, int, int, int], object] = {}
        last = first
        for index, one in enumerate(step):
            few = routes[one.source][one.destination]
            route = chance.choice(few) if chance.random() < detours else few[0]
            owner: object = {
                "none": index,
                "route": route,
                "tree": (one.source, one.chunk, one.count),
            }[sharing]
            if chance.random() < converts:
                slot, light = chance.randint(first, last), Light(0, CONVERTED, route)
            else:
                slot, fibre, wavelength = next(
                    (slot, *channel)
                    for slot in range(first, last + 2)
                    for channel in channels
                    if all(used.get((slot, link, *channel), owner) == owner for link in route)
                )
                light = Light(fibre, wavelength, route)
                used |= {(slot, link, fibre, wavelength): owner for link in route}
            if chance.random() < odd:
                light = light._replace(wavelength=chance.randrange(graph.wavelengths + 1))
            last = max(last, slot)
            plan.transfers.append(replace(one, slot=slot, light=light))
        plan.steps.append(last + 1 - first)
        first = last + 1
    return plan


FIELDS = ("slot", "action", "chunk", "count", "source", "destination")


def mutated(chance: random.Random, plan: Drawn, changes: int) -> Drawn:
    """Returns a plan with some changes of transfers, steps or options of the fabric."""
    plan = replace(plan, steps=list(plan.steps), transfers=list(plan.transfers))
    for _ in range(changes):
        if chance.random() < 0.1:
            plan.fabric = chance.choice([with_another_number, with_option])(chance, plan.fabric)
            continue
        if not plan.transfers:
            break
        at = chance.randrange(len(plan.transfers))
        one, other = plan.transfers[at], chance.choice(plan.transfers)
        what = chance.choice(["drop", "double", "later", "split", *FIELDS, *Light._fields * 2])
        if what == "drop":
            del plan.transfers[at]
        elif what == "double":
            plan.transfers.append(one)
        elif what == "later":
            plan.steps.append(1)
            plan.transfers[at] = replace(one, slot=sum(plan.steps) - 1)
        elif what == "split":
            where = chance.randrange(len(plan.steps))
            early = chance.randint(0, plan.steps[where])
            plan.steps[where : where + 1] = [early, plan.steps[where] - early]
        elif what in FIELDS:
            choices: list[Any] = [getattr(other, what)] * 3
            choices += {"action": ["copy", "reduce"]}.get(what, [chance.randrange(4)])
            plan.transfers[at] = replace(one, **{what: chance.choice(choices)})
        else:
            plan.transfers[at] = replace(
                one, light=other_light(chance, one.light, other.light, what)
            )
    return plan


def other_light(chance: random.Random, light: Light, other: Light, part: str) -> Light:
    """Returns a light with another fibre, wavelength or route, sometimes that of another light."""
    if chance.random() < 0.3:
        return light._replace(**{part: getattr(other, part)})
    if part == "fibre":
        return light._replace(fibre=chance.choice([0, 1, 1, 2]))
    if part == "wavelength":
        return light._replace(wavelength=chance.choice([0, 1, 2, 3, CONVERTED]))
    route = list(light.route or (other.route or (0,)))
    place = chance.randrange(len(route))
    change = chance.choice(["none", "drop", "exchange", "other", "twice", "longer"])
    if change == "none":
        return light._replace(route=None)
    if change == "drop" and len(route) > 1:
        del route[place]
    elif change == "exchange":
        where = chance.randrange(len(route))
        route[place], route[where] = route[where], route[place]
    elif change == "twice":
        # Links of opposite directions mostly have neighbouring numbers: there and back again.
        route[place:place] = [route[place] ^ 1, route[place]]
    elif change == "longer":
        route += list(other.route or ())
    else:
        route[place] = chance.randrange(max(route) + 3)
    return light._replace(route=tuple(route))


def with_another_number(chance: random.Random, spec: str) -> str:
    places = list(re.finditer(r"(?<!ranks=)\b\d\b", spec))
    if not places:
        return spec
    place = chance.choice(places)
    return f"{spec[: place.start()]}{chance.randrange(5)}{spec[place.end() :]}"


def with_option(chance: random.Random, spec: str) -> str:
    """Returns a specification with one option left out, or one of another specification."""
    family, _, text = spec.partition(":")
    options = dict(option.split("=", 1) for option in text.split(","))
    key = chance.choice(sorted(options))
    others = drawn_spec(chance).partition(":")[2]
    other = dict(option.split("=", 1) for option in others.split(","))
    if chance.random() < 0.3:
        del options[key]
    else:
        key = chance.choice(sorted(other.keys() - {"ranks", "switches", "links", "dims"}))
        options[key] = other[key]
    return f"{family}:{','.join(f'{key}={value}' for key, value in options.items())}"


def judged(text: str) -> tuple[set[str] | None, set[str] | None]:
    """Returns the kinds of problems that the core and the reference find; None if one refuses."""
    core = reference = None
    with suppress(_core.PlanFileError):
        core = {violation.kind for violation in _core.Plan.from_text(text).verify()}
    with suppress(NotAPlan):
        reference = {problem.kind for problem in verify(read(text))}
    return core, reference


def cases(seed: int) -> Iterator[str]:
    """Yields the text of a drawn plan, and of four of its mutants."""
    chance = random.Random(seed)
    plan = drawn_plan(chance)
    yield plan.text
    for changes in (1, 1, 2, 3):
        yield mutated(chance, plan, changes).text
