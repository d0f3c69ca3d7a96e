"""Links of networks, in the order in which a plan numbers them.

A cable in both directions is two links: the direction in which the cable is written, then the
other. A half-duplex cable (`0~1`) is one link that leads both ways. In a `custom` network, the
cables have the order of the option `links`. In a torus or mesh, cables are ordered by dimension,
then by the node from which they lead to the next coordinate. In a part of a network (`without`,
`members`), ranks, other vertices and links keep their order.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import NamedTuple

from opticoll.reference.links import reached, sides_of_cube
from opticoll.reference.words import LENGTHS, RATES, expect, quantity, whole

Options = dict[str, str]


class Link(NamedTuple):
    """Fibres from vertex `start` to vertex `end`, and back if `both_ways` is true."""

    start: int
    end: int
    both_ways: bool
    rate: Fraction
    metres: int | None = None
    """Length, if the specification states it."""


@dataclass
class Network:
    """Ranks, which are the vertices of the lowest numbers, and links."""

    ranks: int
    links: list[Link]

    @property
    def vertices(self) -> int:
        """Number of ranks and of other vertices that have links."""
        return max(self.ranks, 1 + max((max(link[:2]) for link in self.links), default=0))


def rate_of(word: str) -> Fraction:
    return quantity(word, RATES)


def cable(start: int, end: int, rate: Fraction) -> list[Link]:
    return [Link(start, end, False, rate), Link(end, start, False, rate)]


def custom(options: Options) -> Network:
    links = []
    for text in filter(None, options.get("links", "").split("+")):
        ends, *values = text.split("@")
        start, course, end = re.split("([-~>])", ends, maxsplit=1)
        rates = [rate_of(value) for value in values if value.endswith("/s")]
        rate = (rates or [rate_of(options.get("rate", "100Gb/s"))])[-1]
        lengths = [quantity(value, LENGTHS) for value in values if value.endswith("m")]
        metres = int(lengths[-1]) if lengths else None
        forth, back = (
            link._replace(metres=metres) for link in cable(whole(start), whole(end), rate)
        )
        links += {"-": [forth, back], ">": [forth], "~": [forth._replace(both_ways=True)]}[course]
    return Network(whole(options["ranks"]), links)


def grid(options: Options, sides: list[int], *, wraps: bool) -> Network:
    """Returns a torus if the links wrap around, otherwise a mesh; coordinate 0 varies fastest."""
    rates = [rate_of(rate) for rate in options.get("rate", "100Gb/s").split("x")]
    if len(rates) == 1:
        rates *= len(sides)
    links = []
    for dimension, (side, rate) in enumerate(zip(sides, rates, strict=True)):
        stride = prod(sides[:dimension])
        for node in range(prod(sides)):
            last = node // stride % side == side - 1
            if not last:
                links += cable(node, node + stride, rate)
            elif wraps and side > 2:
                links += cable(node, node - (side - 1) * stride, rate)
    return Network(prod(sides), links)


def tree(options: Options) -> Network:
    """Returns a tree in which rank r is a child of rank (r - 1) div arity."""
    ranks, arity = whole(options["ranks"]), whole(options.get("arity", "2"))
    rate = rate_of(options.get("rate", "100Gb/s"))
    cables = [cable(rank, (rank - 1) // arity, rate) for rank in range(1, ranks)]
    return Network(ranks, [link for both in cables for link in both])


def sides_of(options: Options) -> list[int]:
    return [whole(side) for side in options["dims"].split("x")]


NETWORKS: dict[str, Callable[[Options], Network]] = {
    "custom": custom,
    "torus": lambda options: grid(options, sides_of(options), wraps=True),
    "mesh": lambda options: grid(options, sides_of(options), wraps=False),
    "ladder": lambda options: grid(options, [whole(options["rungs"]), 2], wraps=False),
    "line": lambda options: grid(options, [whole(options["ranks"])], wraps=False),
    "hypercube": lambda options: grid(options, sides_of_cube(options), wraps=False),
    "tree": tree,
}
"""Functions that list the links of a family, by name of the family."""


def part_of(network: Network, options: Options) -> Network:
    """Returns the part that `without` and `members` leave, at the rates that `degraded` leaves.

    Light still passes the vertex of a rank that failed. A switch that failed is gone.
    """
    broken: set[int] = set()
    gone: set[int] = set()
    failed: set[int] = set()
    slower: dict[int, Fraction] = {}
    for item in items(options, "without"):
        if item.isdigit():
            expect(int(item) < network.vertices, f"there is no vertex {item}")
            (failed if int(item) < network.ranks else gone).add(int(item))
        else:
            broken |= named(network, item)
    for item in items(options, "degraded"):
        place, _, rate = item.rpartition("@")
        at = named(network, place)
        fastest = max(network.links[number].rate for number in at)
        expect(rate_of(rate) < fastest, f"`{item}` is no slower than {fastest} b/s")
        slower |= {number: min(rate_of(rate), slower.get(number, fastest)) for number in at}
    members = set(range(network.ranks)) - failed
    if "members" in options:
        runs = [run.partition("-") for run in items(options, "members")]
        members &= {
            rank for first, _, last in runs for rank in range(int(first), int(last or first) + 1)
        }
    left = [vertex for vertex in range(network.vertices) if vertex not in gone]
    ranks = [vertex for vertex in left if vertex < network.ranks and vertex in members]
    others = [vertex for vertex in left if vertex not in ranks]
    number = {vertex: position for position, vertex in enumerate([*ranks, *others])}
    links = [
        link._replace(
            start=number[link.start],
            end=number[link.end],
            rate=min(link.rate, slower.get(place, link.rate)),
        )
        for place, link in enumerate(network.links)
        if place not in broken and not gone & {link.start, link.end}
    ]
    part = Network(len(ranks), links)
    expect(part.ranks > 0, "no rank is left")
    expect(is_connected(part), "links lead to some rank, or from it, no more")
    return part


def items(options: Options, key: str) -> list[str]:
    return [item for item in options.get(key, "").split("+") if item]


def named(network: Network, place: str) -> set[int]:
    """Returns the numbers of the links that a text names.

    `0>1` are the links from vertex 0 to vertex 1, `0-1` those of both directions, and `0>1#2` is
    the third of several links from 0 to 1. `5` are all links of vertex 5.
    """
    match = re.fullmatch(r"(\d+)(?:([->])(\d+)(?:#(\d+))?)?", place, re.ASCII)
    expect(match is not None, f"`{place}` names no link; write vertices as numbers")
    start, course, end, cable_number = match.groups() if match is not None else ("",) * 4
    numbers = set()
    for number, link in enumerate(network.links):
        if not course:
            is_named = int(start) in link[:2]
        else:
            forth = link[:2] == (int(start), int(end))
            back = link[:2] == (int(end), int(start)) and (course == "-" or link.both_ways)
            is_named = (forth or back) and cable_number in (None, parallel(network, number))
        if is_named:
            numbers.add(number)
    expect(numbers != set(), f"the network has no `{place}`")
    return numbers


def parallel(network: Network, number: int) -> str:
    """Returns the number of a link among links of the same ends, or "" if it is the only one."""
    ends = network.links[number][:3]
    same = [other for other, link in enumerate(network.links) if link[:3] == ends]
    return str(same.index(number)) if len(same) > 1 else ""


def is_connected(network: Network) -> bool:
    """Returns whether links lead from every rank to every other rank."""
    after: list[set[int]] = [set() for _ in range(network.vertices)]
    before: list[set[int]] = [set() for _ in range(network.vertices)]
    for start, end, both_ways, *_ in network.links:
        for source, destination in [(start, end), (end, start)][: 1 + both_ways]:
            after[source].add(destination)
            before[destination].add(source)
    return all(set(range(network.ranks)) <= reached(beside) for beside in (after, before))
