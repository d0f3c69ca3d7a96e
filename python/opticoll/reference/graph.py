"""Graphs of fibres: light passes ranks and switches along a route that each transfer names.

The light of a transfer is a fibre, a wavelength, and the links of the route by number. In
`copy 0 0>1 0.5 via 3.7`, light of wavelength 5 passes link 3 and link 7, on fibre 0 of each.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import ClassVar, NamedTuple

from opticoll.reference import links, loss, networks
from opticoll.reference.networks import Network
from opticoll.reference.plan import Fabric, Plan, Problem, Transfer, Transfers
from opticoll.reference.ring import check_flits, items
from opticoll.reference.words import (
    LENGTHS,
    Check,
    count,
    expect,
    like,
    one_of,
    quantity,
    size,
    time,
    whole,
)

CONVERTED = None
"""Wavelength of converted light, which may change at every vertex."""


def number_or(*words: str, most: int) -> Check:
    """Returns a check of a whole number from 1 to `most`, or of one of `words`."""
    return lambda word: None if word in words else count(most)(word)


LIMIT = number_or("all", most=4096)
RATED = r"[0-9]+@[^+@]+"
OWN: dict[str, Check] = {
    "wavelengths": count(4096),
    "fibres": count(64),
    **dict.fromkeys(("reconfiguration", "conversion"), time),
    "flit": size,
    "packet": lambda word: None if word == "message" else size(word),
    **dict.fromkeys(("transmitters", "receivers"), LIMIT),
    "converters": number_or("none", "full", most=2**32 - 1),
    "multicast": one_of("none", "drop_and_continue"),
    "reach": like(rf"[0-9]+|{RATED}(\+{RATED})*"),
    # Several hosts at a rank request lightpaths on demand, so that there is no plan.
    "hosts": one_of("1"),
    "dead": like(r"[0-9]+(\.[0-9]+)?(\+[0-9]+(\.[0-9]+)?)*"),
}
LOSSES = ("fixed_loss", "link_loss", "through_loss", "drop_loss", "split_loss")
RATIO = r"[0-9]{1,3}(\.[0-9]{1,6})?dB"
OWN |= loss.checks(*LOSSES) | {
    "fibre_loss": like(rf"{RATIO}/km"),
    **dict.fromkeys(("noise_figure", "osnr"), like(RATIO)),
    "crosstalk": like(rf"-{RATIO}|0(\.0{{1,6}})?dB"),
    "span": lambda word: expect(quantity(word, LENGTHS) >= 1, "a span is too short"),
}
ELECTRICAL_ONLY = {"duplex", "sharing", "terminals", "terminal_rate", "terminal_latency"}
LINKS_OF = {
    "wdm_graph": "custom",
    **{f"wdm_{shape}": shape for shape in ("torus", "mesh", "ladder", "line", "hypercube", "tree")},
}
"""For each family, the electrical family that has the same links."""

OPTIONS: dict[str, dict[str, Check]] = {
    family: OWN
    | {key: check for key, check in links.OPTIONS[other].items() if key not in ELECTRICAL_ONLY}
    for family, other in LINKS_OF.items()
}


class Light(NamedTuple):
    """Light of a transfer: a fibre, a wavelength, and the links that the light passes."""

    fibre: int
    wavelength: int | None
    route: tuple[int, ...] | None
    """Numbers of the links, or None if the plan does not name them."""


class Passed(NamedTuple):
    """Link that light passes, and the vertex at which light enters the link."""

    link: int
    start: int


@dataclass
class Lightpath:
    """Transfers that share one light: several branches of a tree, or data one after the other."""

    transfers: Transfers
    routes: list[tuple[Passed, ...]]
    """The links that each transfer passes, without repetitions."""

    @property
    def first(self) -> Transfer:
        return next(iter(self.transfers.values()))

    @property
    def index(self) -> int:
        return next(iter(self.transfers))

    @property
    def passed(self) -> set[Passed]:
        return {passed for route in self.routes for passed in route}


class Graph(Fabric):
    """Graph of fibres of one family, given by its options."""

    # Maximum wavelength and fibre. The wavelength 2^16 - 1 is reserved for converted light.
    shifted: ClassVar = {"wavelength": 2**16 - 2, "fibre": 2**8 - 1}
    network: Network

    def __init__(self, family: str, options: dict[str, str]) -> None:
        of_links = {key: value for key, value in options.items() if key not in OWN}
        named = of_links.pop("degraded", "").split("+")
        slower_light = [part for part in named if part.startswith("w")]
        slower_links = [part for part in named if part and part not in slower_light]
        if slower_links:
            of_links["degraded"] = "+".join(slower_links)
        links.checked(LINKS_OF[family], of_links)
        whole_network = networks.NETWORKS[LINKS_OF[family]](of_links)
        self.network = networks.part_of(whole_network, of_links)
        self.ranks = self.network.ranks
        self.wavelengths = whole(options["wavelengths"])
        self.fibres = whole(options.get("fibres", "1"))
        check_flits(options)
        self.transmitters = read_limit(options.get("transmitters", "all"))
        self.receivers = read_limit(options.get("receivers", "all"))
        # Number of converters of each vertex; None: any number.
        converters = options.get("converters", "none")
        self.converters = {"none": 0, "full": None}.get(converters, -1)
        if self.converters == -1:
            self.converters = whole(converters)
        # True if a rank may receive part of the passing light while the rest continues.
        self.multicast = options.get("multicast") == "drop_and_continue"
        # Maximum number of links of a lightpath.
        self.reach = None
        if "reach" in options:
            self.reach = read_reach(options["reach"])
        self.budget = loss.GraphBudget(options, LOSSES)
        self.budget.expect_a_link([link.metres for link in self.network.links])
        # Unusable channels of all links, as pairs of fibre and wavelength.
        self.dead: set[tuple[int, int | None]] = set()
        for channel in items(options, "dead"):
            self.dead |= self.channels(channel)
        expect(len(self.dead) < self.fibres * self.wavelengths, "no wavelength is left")
        fastest = max((link.rate for link in self.network.links), default=None)
        for part in slower_light:
            name, _, slow = part.partition("@")
            self.channels(name.removeprefix("w"))
            is_slow = fastest is None or networks.rate_of(slow) < fastest
            expect(is_slow, f"`{part}` is no slower than the links")

    def channels(self, channel: str) -> set[tuple[int, int | None]]:
        """Returns the channels that a text names, each as (fibre, wavelength).

        `5` is wavelength 5 of all fibres; `1.5` is wavelength 5 of fibre 1.
        """
        fibre, _, wavelength = channel.rpartition(".")
        on = [whole(fibre, self.fibres - 1)] if fibre else range(self.fibres)
        return {(number, whole(wavelength, self.wavelengths - 1)) for number in on}

    def read_light(self, words: list[str], over: list[str]) -> tuple[Light, list[str]]:
        channel, *others = words
        fibre, _, wavelength = channel.partition(".")
        number = whole(wavelength, self.shifted["wavelength"]) if wavelength != "*" else CONVERTED
        route = None
        if others[:1] == ["via"]:
            route = tuple(whole(link) for link in others[1].split("."))
            others = others[2:]
        return Light(whole(fibre, self.shifted["fibre"]), number, route), others

    def wrong_light(self, light: Light) -> Iterator[Problem]:
        if light.fibre >= self.fibres:
            yield Problem("fibre_range", f"is on fibre {light.fibre}, which does not exist")
        if light.wavelength is CONVERTED:
            if self.converters == 0:
                lacks = "changes its wavelength, but there are no converters"
                yield Problem("conversion", lacks)
        elif light.wavelength >= self.wavelengths:
            yield Problem("wavelength_range", f"is on wavelength {light.wavelength}: no such thing")

    def wrong_slots(self, plan: Plan, transfers: Transfers) -> Iterator[Problem]:
        routes: dict[int, tuple[Passed, ...]] = {}
        for index, transfer in transfers.items():
            route = self.route(transfer)
            if isinstance(route, str):
                says = f"slot {transfer.slot}: transfer {plan.name(index)} {route}"
                yield Problem("route", says)
            else:
                routes[index] = route
        lit = {index: one for index, one in self.lit(transfers).items() if index in routes}
        lightpaths = self.lightpaths(lit, routes)
        yield from self.out_of_order(plan, lit)
        yield from self.too_weak(plan, lightpaths)
        yield from self.collisions(plan, lightpaths)
        yield from self.overloads(lightpaths)
        yield from self.crowded_converters(lightpaths)
        dark = {index: one for index, one in transfers.items() if index not in lit}
        yield from self.crowded_ranks(lightpaths, dark)

    def route(self, transfer: Transfer) -> tuple[Passed, ...] | str:
        """Returns the links of a route, or a sentence on the first reason why it is no path."""
        if transfer.light.route is None:
            return "names no links for its light"
        here, visited, route = transfer.source, {transfer.source}, []
        for link in transfer.light.route:
            if link >= len(self.network.links):
                return f"goes over link {link}, which does not exist"
            route.append(Passed(link, here))
            start, end, both_ways = self.network.links[link][:3]
            if here == end and both_ways:
                start, end = end, start
            if here != start:
                return f"goes over link {link}, which does not leave vertex {here}"
            here = end
            if here in visited:
                return f"comes back to vertex {here}"
            visited.add(here)
        if here != transfer.destination:
            return f"ends at vertex {here}, not at its destination"
        return tuple(route)

    def lightpaths(self, lit: Transfers, routes: dict[int, tuple[Passed, ...]]) -> list[Lightpath]:
        """Groups transfers that share one light.

        With `multicast`, ranks may receive part of passing light. Then transfers of the same chunks
        are a light tree if they have the same source, slot, fibre, wavelength and first link.

        Other transfers share a light if they have the same slot, route, fibre and wavelength. Their
        data are sent one after the other. Converted light is not shared in this second way, since
        converted light has no fixed wavelength.
        """
        trees: dict[object, Transfers] = defaultdict(dict)
        for index, transfer in lit.items():
            fibre, wavelength, _ = transfer.light
            light: object = index
            if self.multicast:
                place = transfer.slot, transfer.source, fibre, wavelength, routes[index][0]
                light = (*place, transfer.chunk, transfer.count)
            trees[light][index] = transfer
        together: dict[object, Transfers] = defaultdict(dict)
        for tree in trees.values():
            index, transfer = next(iter(tree.items()))
            light = index
            if len(tree) == 1 and transfer.light.wavelength is not CONVERTED:
                light = transfer.slot, transfer.source, transfer.light
            together[light] |= tree
        return [
            Lightpath(tree, list(dict.fromkeys(routes[index] for index in tree)))
            for tree in together.values()
        ]

    def out_of_order(self, plan: Plan, lit: Transfers) -> Iterator[Problem]:
        """Yields transfers on dead wavelengths, and transfers over too many links."""
        for index, transfer in lit.items():
            fibre, wavelength, route = transfer.light
            says = f"slot {transfer.slot}: transfer {plan.name(index)}"
            if (fibre, wavelength) in self.dead:
                channel = f"{fibre}.{wavelength}"
                yield Problem("dead_wavelength", f"{says} is on dead wavelength {channel}")
            if self.reach is not None and len(route) > self.reach:
                far = f"passes {len(route)} links, but light reaches over {self.reach}"
                yield Problem("reach", f"{says} {far}")

    def too_weak(self, plan: Plan, lightpaths: list[Lightpath]) -> Iterator[Problem]:
        """Yields transfers within reach whose light is too weak, or has too much noise."""
        for lightpath in lightpaths:
            # Links after each link of the light; None where a receiver takes it.
            after: dict[int, set[int | None]] = defaultdict(set)
            for route in lightpath.routes:
                numbers = [link for link, _ in route]
                for link, following in zip(numbers, [*numbers[1:], None], strict=True):
                    after[link].add(following)
            for index, transfer in lightpath.transfers.items():
                numbers = list(transfer.light.route)
                if self.reach is not None and len(numbers) > self.reach:
                    continue
                # A division into n outputs takes as many divisions into two as n - 1 has bits.
                splits = sum((len(after[link]) - 1).bit_length() for link in numbers[:-1])
                metres = [self.network.links[link].metres for link in numbers]
                if not self.budget.arrives(metres, splits):
                    says = f"slot {transfer.slot}: transfer {plan.name(index)}"
                    yield Problem("reach", f"{says} has light that is too weak or too noisy")

    def collisions(self, plan: Plan, lightpaths: list[Lightpath]) -> Iterator[Problem]:
        """Yields lights that use the same wavelength of a fibre on a link in a slot.

        The light of a tree meets itself if two of its routes reach a link over different links.
        """
        first_use: dict[object, int] = {}
        for lightpath in lightpaths:
            fibre, wavelength, _ = lightpath.first.light
            slot, name = lightpath.first.slot, plan.name(lightpath.index)
            for link in lightpath.passed if wavelength is not CONVERTED else []:
                channel = slot, fibre, wavelength, link.link
                earlier = first_use.setdefault(channel, lightpath.index)
                if earlier != lightpath.index:
                    names = f"transfers {plan.name(earlier)} and {name}"
                    on = f"wavelength {wavelength} on fibre {fibre} of link {link.link}"
                    yield Problem("collision", f"slot {slot}: {names} share {on}")
                    break
            before: dict[int, tuple[Passed, ...]] = {}
            for route in lightpath.routes:
                for place, passed in enumerate(route):
                    if before.setdefault(passed.link, route[:place]) != route[:place]:
                        twice = f"comes to link {passed.link} over different links"
                        says = f"slot {slot}: the light tree of transfer {name} {twice}"
                        yield Problem("collision", says)

    def overloads(self, lightpaths: list[Lightpath]) -> Iterator[Problem]:
        """Yields fibres of links that carry converted light, and more lights than wavelengths."""
        load: dict[tuple[int, int, int], int] = defaultdict(int)
        converted = set()
        for lightpath in lightpaths:
            fibre, wavelength, _ = lightpath.first.light
            for link in {link for link, _ in lightpath.passed}:
                place = lightpath.first.slot, link, fibre
                load[place] += 1
                if wavelength is CONVERTED:
                    converted.add(place)
        for place in sorted(converted):
            slot, link, fibre = place
            usable = sum((fibre, number) not in self.dead for number in range(self.wavelengths))
            if load[place] > usable:
                many = f"{load[place]} lightpaths on fibre {fibre} of link {link}"
                yield Problem("overload", f"slot {slot}: {many}, but {usable} wavelengths")

    def crowded_converters(self, lightpaths: list[Lightpath]) -> Iterator[Problem]:
        """Yields vertices that convert more lights in a slot than they have converters.

        A converter gives the light of one link its wavelength. The first link of a lightpath or a
        light tree needs no converter.
        """
        if self.converters is None:
            return
        used: dict[tuple[int, int], int] = defaultdict(int)
        for lightpath in lightpaths:
            if lightpath.first.light.wavelength is CONVERTED:
                for _, vertex in lightpath.passed:
                    if vertex != lightpath.first.source:
                        used[lightpath.first.slot, vertex] += 1
        for (slot, vertex), number in sorted(used.items()):
            if number > self.converters:
                many = f"needs {number} converters, but has {self.converters}"
                yield Problem("conversion", f"slot {slot}: vertex {vertex} {many}")

    def crowded_ranks(self, lightpaths: list[Lightpath], dark: Transfers) -> Iterator[Problem]:
        """Yields ranks that send, or receive, more lights in a slot than they can.

        A light needs one transmitter, and one receiver at each rank where it ends. `dark` are the
        transfers whose route or channel does not exist. They need both.
        """
        used: dict[tuple[int, int, str], set[object]] = defaultdict(set)
        for lightpath in lightpaths:
            slot, source = lightpath.first.slot, lightpath.first.source
            used[slot, source, "sends"].add(lightpath.index)
            for transfer in lightpath.transfers.values():
                used[slot, transfer.destination, "receives"].add(lightpath.index)
        for index, transfer in dark.items():
            is_converted = transfer.light.wavelength is CONVERTED
            ends = transfer.source, transfer.destination
            light = index if is_converted else (*ends, transfer.light)
            used[transfer.slot, transfer.source, "sends"].add(light)
            used[transfer.slot, transfer.destination, "receives"].add(light)
        for (slot, rank, verb), lights in used.items():
            most = self.transmitters if verb == "sends" else self.receivers
            if most is not None and len(lights) > most:
                many = f"{verb} {len(lights)} lightpaths, but at most {most}"
                yield Problem("ports", f"slot {slot}: rank {rank} {many}")


def read_limit(word: str) -> int | None:
    """Returns a maximum number of lights; None if there is no limit."""
    return None if word == "all" else whole(word, 4096)


def read_reach(text: str) -> int:
    """Returns the greatest number of links of `8`, or of `8@100Gb/s+2@200Gb/s`.

    Light that reaches farther must have a lower rate.
    """
    if text.isdigit():
        expect(whole(text) >= 1, "light reaches over no link")
        return whole(text)
    rates: dict[int, Fraction] = {}
    for item in text.split("+"):
        number, _, speed = item.partition("@")
        expect(whole(number) >= 1, "light reaches over no link")
        expect(whole(number) not in rates, f"two rates for {number} links")
        rates[whole(number)] = networks.rate_of(speed)
    falls = all(near > far for near, far in pairwise(rates[one] for one in sorted(rates)))
    expect(falls, "light that reaches farther has a lower rate")
    return max(rates)
