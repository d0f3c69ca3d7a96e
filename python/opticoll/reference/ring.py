"""Rings: each rank has fibres to both neighbours, and each fibre carries several wavelengths.

The light of a transfer is a direction, a fibre and a wavelength. In `copy 0 0>1 cw 0.5`, light of
wavelength 5 goes clockwise on fibre 0.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import ClassVar, NamedTuple

from opticoll.reference import loss
from opticoll.reference.plan import Fabric, Plan, Problem, Transfer, Transfers
from opticoll.reference.words import (
    RANKS,
    Check,
    count,
    expect,
    like,
    one_of,
    rate,
    size,
    slower,
    time,
    whole,
)

LOSSES = ("fixed_loss", "link_loss", "through_loss", "drop_loss", "split_loss")
SLOWER = r"(w[0-9]+(\.[0-9]+)?|[0-9]+[->][0-9]+)@[^+@]+"
OPTIONS: dict[str, Check] = {
    "ranks": RANKS,
    "wavelengths": count(4096),
    "fibres": count(64),
    "rate": rate,
    **dict.fromkeys(("reconfiguration", "conversion", "propagation"), time),
    "flit": size,
    "packet": lambda word: None if word == "message" else size(word),
    "ports": like(r"all|[0-9]+"),
    "converters": one_of("none", "full"),
    "multicast": one_of("none", "drop_and_continue"),
    "reach": RANKS,
    **loss.checks(*LOSSES),
    "resonators": count(2**16),
    "broken": like(r"[0-9]+-[0-9]+(c?cw)?(\+[0-9]+-[0-9]+(c?cw)?)*"),
    "dead": like(r"[0-9]+(\.[0-9]+)?(\+[0-9]+(\.[0-9]+)?)*"),
    "degraded": like(rf"{SLOWER}(\+{SLOWER})*"),
    "without": like(r"[0-9]+(\+[0-9]+)*"),
    "members": like(r"[0-9]+(-[0-9]+)?(\+[0-9]+(-[0-9]+)?)*"),
}

CONVERTED = None
"""Wavelength of converted light, which may change at every rank."""


class Channel(NamedTuple):
    """Light of a transfer: a direction, a fibre and a wavelength."""

    way: str
    """Direction: cw towards higher ranks, ccw towards lower ranks."""
    fibre: int
    wavelength: int | None


class Ring(Fabric):
    """Ring of fibres with wavelengths, given by its options."""

    # Maximum wavelength and fibre. The wavelength 2^16 - 1 is reserved for converted light.
    shifted: ClassVar = {"wavelength": 2**16 - 2, "fibre": 2**8 - 1}
    ranks: int

    def __init__(self, options: dict[str, str]) -> None:
        self.nodes = whole(options["ranks"])
        # Nodes of the ranks in increasing order. Light passes through the other nodes.
        failed = {whole(node, self.nodes - 1) for node in items(options, "without")}
        runs = [read_run(run, self.nodes) for run in items(options, "members")]
        allocated = set(range(self.nodes)) if not runs else set().union(*runs)
        self.places = sorted(allocated - failed)
        self.ranks = len(self.places)
        expect(self.ranks > 0, "no rank is left")
        self.wavelengths = whole(options["wavelengths"])
        self.fibres = whole(options.get("fibres", "1"))
        # Maximum number of simultaneous transfers that a rank sends, or receives; None: no limit.
        self.ports = None
        if options.get("ports", "all") != "all":
            self.ports = whole(options["ports"], 2 * self.fibres * self.wavelengths)
            expect(self.ports >= 1, "no such number of ports")
        self.converters = options.get("converters") == "full"
        # True if a rank may receive part of the passing light while the rest continues.
        self.multicast = options.get("multicast") == "drop_and_continue"
        check_flits(options)
        # Maximum number of links of a lightpath.
        self.reach = whole(options["reach"]) if "reach" in options else self.nodes
        self.levels = loss.read(options, LOSSES, ("through_loss",))
        expect(bool(self.levels) or "resonators" not in options, "resonators need losses")
        self.resonators = whole(options.get("resonators", str(self.wavelengths)))
        expect(self.reaches(1, 0), "light does not even reach a neighbour")
        # Broken links, as pairs of direction and node at which the link starts.
        self.broken: set[tuple[str, int]] = set()
        for cut in items(options, "broken"):
            self.broken |= read_cut(cut, self.nodes)
        # Unusable channels of all links, as pairs of fibre and wavelength.
        self.dead: set[tuple[int, int | None]] = set()
        for channel in items(options, "dead"):
            self.dead |= self.channels(channel)
        for part in slower(options.get("degraded", ""), options.get("rate", "40Gb/s")):
            self.check_slower(part)
        usable = self.fibres * self.wavelengths - len(self.dead)
        expect(usable > 0, "no wavelength is left")
        # Collisions already limit a rank that has at least as many ports as usable channels.
        if self.ports is not None and self.ports >= 2 * usable:
            self.ports = None

    def channels(self, channel: str) -> set[tuple[int, int | None]]:
        """Returns the channels that a text names, each as (fibre, wavelength).

        `5` is wavelength 5 of all fibres; `1.5` is wavelength 5 of fibre 1.
        """
        fibre, _, wavelength = channel.rpartition(".")
        on = [whole(fibre, self.fibres - 1)] if fibre else range(self.fibres)
        return {(number, whole(wavelength, self.wavelengths - 1)) for number in on}

    def check_slower(self, name: str) -> None:
        """Checks a slower part: `3-4` is a link, `3>4` one direction of it, `w5` a wavelength."""
        if name.startswith("w"):
            self.channels(name.removeprefix("w"))
        else:
            read_cut(name.replace(">", "-"), self.nodes)

    def reaches(self, links: int, shares: int) -> bool:
        """Returns whether light is strong enough at the end of a route of `links` links.

        `shares` ranks on the route receive part of the light. ``docs/model.md`` states the losses
        along the route.
        """
        if links > self.reach:
            return False
        if not self.levels:
            return True
        lost = self.levels["fixed_loss"] + links * self.levels["link_loss"]
        lost += (links - 1) * self.resonators * self.levels["through_loss"]
        lost += shares * self.levels["split_loss"] + self.levels["drop_loss"]
        return loss.arrives(self.levels, lost)

    def links(self, transfer: Transfer) -> list[int]:
        """Returns the links of a transfer's route, each as the node at which the link starts."""
        turn = 1 if transfer.light.way == "cw" else -1
        source, destination = self.places[transfer.source], self.places[transfer.destination]
        length = turn * (destination - source) % self.nodes
        return [(source + turn * passed) % self.nodes for passed in range(length)]

    def read_light(self, words: list[str], over: list[str]) -> tuple[Channel, list[str]]:
        way, channel, *others = words
        expect(way in ("cw", "ccw"), "expected cw or ccw")
        fibre, _, wavelength = channel.partition(".")
        number = whole(wavelength, self.shifted["wavelength"]) if wavelength != "*" else CONVERTED
        return Channel(way, whole(fibre, self.shifted["fibre"]), number), others

    def wrong_light(self, light: Channel) -> Iterator[Problem]:
        if light.fibre >= self.fibres:
            yield Problem("fibre_range", f"is on fibre {light.fibre}, which does not exist")
        if light.wavelength is CONVERTED:
            if not self.converters:
                lacks = "changes its wavelength, but there are no converters"
                yield Problem("conversion", lacks)
        elif light.wavelength >= self.wavelengths:
            yield Problem("wavelength_range", f"is on wavelength {light.wavelength}: no such thing")

    def wrong_slots(self, plan: Plan, transfers: Transfers) -> Iterator[Problem]:
        lit = self.lit(transfers)
        trees = self.light_trees(lit)
        yield from self.out_of_order(lit)
        yield from self.too_far(plan, trees)
        # Only the longest branch of a light tree counts, since it contains the other branches.
        length = {index: len(self.links(transfer)) for index, transfer in lit.items()}
        longest = [max(tree, key=lambda index: (length[index], index)) for tree in trees]
        shining = {index: lit[index] for index in longest}
        yield from self.collisions(plan, shining)
        yield from self.overloads(shining)
        yield from self.crowded_ports(transfers, lit.keys() - shining.keys())

    def light_trees(self, lit: Transfers) -> list[Transfers]:
        """Groups transfers that share one light.

        With `multicast`, ranks may receive part of passing light. Then transfers of the same chunks
        share a light if they have the same source, slot, direction, fibre and wavelength.

        Other transfers share a light if they have the same source, destination, slot, direction,
        fibre and wavelength. Their data are sent one after the other. Converted light is not shared
        in this second way, since converted light has no fixed wavelength.
        """
        trees: dict[object, Transfers] = defaultdict(dict)
        for index, transfer in lit.items():
            light: object = index
            if self.multicast:
                place = transfer.slot, transfer.source, *transfer.light
                light = (*place, transfer.chunk, transfer.count)
            trees[light][index] = transfer
        together: dict[object, Transfers] = defaultdict(dict)
        for tree in trees.values():
            index, transfer = next(iter(tree.items()))
            light = index
            if len(tree) == 1 and transfer.light.wavelength is not CONVERTED:
                light = transfer.slot, transfer.source, transfer.destination, *transfer.light
            together[light] |= tree
        return list(together.values())

    def out_of_order(self, lit: Transfers) -> Iterator[Problem]:
        """Yields transfers that cross a broken link or use a dead wavelength."""
        for index, transfer in lit.items():
            way, fibre, wavelength = transfer.light
            says = f"slot {transfer.slot}: transfer {index}"
            broken = [link for link in self.links(transfer) if (way, link) in self.broken]
            if broken:
                crosses = f"{says} crosses the broken {way} link from node {broken[0]}"
                yield Problem("broken_fibre", crosses)
            if (fibre, wavelength) in self.dead:
                channel = f"{fibre}.{wavelength}"
                yield Problem("dead_wavelength", f"{says} is on dead wavelength {channel}")

    def too_far(self, plan: Plan, trees: list[Transfers]) -> Iterator[Problem]:
        """Yields transfers whose light is too weak at the end of its route."""
        for tree in trees:
            lengths = {len(self.links(transfer)) for transfer in tree.values()}
            for index, transfer in tree.items():
                links = len(self.links(transfer))
                shares = sum(length < links for length in lengths)
                if not self.reaches(links, shares):
                    spans = f"spans {links} links, with {shares} shares taken along the route"
                    says = f"slot {transfer.slot}: transfer {plan.name(index)} {spans}"
                    yield Problem("reach", f"{says}, and light does not reach so far")

    def collisions(self, plan: Plan, shining: Transfers) -> Iterator[Problem]:
        """Yields pairs of lights that use the same wavelength of a fibre on a link in a slot.

        A link is identified by its direction and the node at which it starts.
        """
        first_use: dict[object, int] = {}
        for index, transfer in shining.items():
            way, fibre, wavelength = transfer.light
            for link in self.links(transfer) if wavelength is not CONVERTED else []:
                earlier = first_use.setdefault((transfer.slot, transfer.light, link), index)
                if earlier != index:
                    names = f"transfers {plan.name(earlier)} and {plan.name(index)}"
                    on = f"wavelength {wavelength} on {way} fibre {fibre} from node {link}"
                    yield Problem("collision", f"slot {transfer.slot}: {names} share {on}")
                    break

    def overloads(self, shining: Transfers) -> Iterator[Problem]:
        """Yields links that carry more lights than they have usable wavelengths.

        Only fibres with converted light are checked.
        """
        load: dict[tuple[int, str, int, int], int] = defaultdict(int)
        converted = set()
        for transfer in shining.values():
            way, fibre, wavelength = transfer.light
            if wavelength is CONVERTED:
                converted.add((transfer.slot, way, fibre))
            for link in self.links(transfer):
                load[transfer.slot, way, fibre, link] += 1
        for (slot, way, fibre, link), paths in load.items():
            usable = sum((fibre, number) not in self.dead for number in range(self.wavelengths))
            if (slot, way, fibre) in converted and paths > usable:
                place = f"{way} fibre {fibre} from node {link}, but {usable} wavelengths"
                yield Problem("overload", f"slot {slot}: {paths} lightpaths on {place}")

    def crowded_ports(self, transfers: Transfers, riding: set[int]) -> Iterator[Problem]:
        """Yields ranks that send, or receive, more lights in a slot than they have ports.

        `riding` are transfers that share the light of another transfer. They need no transmitter.
        They need a receiver only at a rank where no other transfer of that light ends.
        """
        used: dict[tuple[int, int, str], set[object]] = defaultdict(set)
        for index, transfer in transfers.items():
            channel = index if transfer.light.wavelength is CONVERTED else transfer.light
            if index not in riding:
                sent = used[transfer.slot, transfer.source, "sends"]
                sent.add((transfer.destination, channel))
            heard = used[transfer.slot, transfer.destination, "receives"]
            heard.add((transfer.source, channel))
        for (slot, rank, verb), lights in used.items():
            if self.ports is not None and len(lights) > self.ports:
                many = f"{verb} {len(lights)} lightpaths, but has {self.ports} ports"
                yield Problem("ports", f"slot {slot}: rank {rank} {many}")


def items(options: dict[str, str], key: str) -> list[str]:
    """Returns the items of an option's value, such as `a+b`; an empty list without the option."""
    return options[key].split("+") if key in options else []


def read_run(run: str, nodes: int) -> range:
    """Returns the nodes that a text names: `3` is node 3, `0-7` are nodes 0 to 7."""
    first, _, last = run.partition("-")
    numbers = range(whole(first), whole(last or first, nodes - 1) + 1)
    expect(len(numbers) > 0, f"`{run}`: the last comes before the first")
    return numbers


def read_cut(cut: str, ranks: int) -> set[tuple[str, int]]:
    """Returns the links that a text names, each as (direction, start node).

    `3-4` names the links in both directions, and `3-4cw` names only the clockwise link.
    """
    ends = cut.removesuffix("cw").removesuffix("c")
    lower, upper = (whole(end, ranks - 1) for end in ends.split("-"))
    if (lower + 1) % ranks != upper:
        lower, upper = upper, lower
    expect(ranks > 1 and (lower + 1) % ranks == upper, f"`{ends}` are not neighbours")
    links = {("cw", lower), ("ccw", upper)}
    return {link for link in links if cut == ends or cut == ends + link[0]}


def check_flits(options: dict[str, str]) -> None:
    """Checks that a flit has at least one byte, and that a packet consists of whole flits.

    The value `message` of `packet` is always valid.
    """
    expect("flit" in options or "packet" not in options, "packets are made of flits")
    flit = size(options["flit"]) if "flit" in options else 1
    expect(flit > 0, "a flit has at least one byte")
    if options.get("packet", "message") != "message":
        packet = size(options["packet"])
        expect(packet >= flit and packet % flit == 0, "a packet has whole flits")
