"""Electrical fabrics: any rank may send to any other; only routes that name links are checked.

Only the compiled core knows the links of a fabric. Therefore this module does not check the names
in the option `without`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from math import prod
from typing import Any
from urllib.parse import unquote

from opticoll.reference.plan import Fabric, Plan, Problem, Transfer, Transfers
from opticoll.reference.words import (
    RANKS,
    Check,
    count,
    decimal,
    expect,
    length,
    like,
    one_of,
    rate,
    time,
    time_until,
    whole,
)


def each(check: Check, between: str = "x") -> Check:
    """Returns a check that applies `check` to each value of a list such as `4x4`."""

    def check_each(word: str) -> None:
        for part in word.split(between):
            check(part)

    return check_each


def number(least: int, most: int) -> Check:
    return lambda word: expect(least <= whole(word, most), f"`{word}` is less than {least}")


def slower(word: str) -> None:
    """Checks a text that gives a part of the fabric a lower rate, such as `0-1@50Gb/s`."""
    part, _, speed = word.rpartition("@")
    expect(part != "", f"`{word}` has no rate")
    rate(speed)


def degrees(most: int) -> Check:
    """Returns a check of a number of degrees, of either sign, with at most five decimals."""

    def check(word: str) -> None:
        like(r"-?[0-9]+(\.[0-9]{1,5})?")(word)
        expect(abs(Fraction(word)) <= most, f"`{word}` is more than {most} degrees")

    return check


def position(word: str) -> None:
    """Checks a latitude and a longitude, such as `40.71/-74.01`."""
    latitude, _, longitude = word.partition("/")
    if word != "unknown":
        degrees(90)(latitude)
        degrees(180)(longitude)


RUNS = like(r"[0-9]+(-[0-9]+)?(\+[0-9]+(-[0-9]+)?)*")
PARTS: dict[str, Check] = {"without": len, "degraded": each(slower, "+"), "members": RUNS}
KIND: dict[str, Check] = {
    "duplex": one_of("full", "half"),
    "sharing": one_of("shared", "per_flow"),
    **PARTS,
}
LIBRARIES = ("a100_sxm", "h100_sxm", "b200_sxm", "gb200", "l40s")
LIBRARY_OF_MODEL = dict(
    zip(("dgx_a100", "dgx_h100", "dgx_b200", "nvl72", "l40s"), LIBRARIES, strict=True)
)
"""Library of a model of boxes, unless the specification says otherwise."""

COSTS: dict[str, Check] = {
    **dict.fromkeys(
        ("launch", "ll_step", "ll_fan", "simple_setup", "simple_step", "nvls_chunk", "post"),
        time_until("1ms"),
    ),
    **dict.fromkeys(("ll_rate", "simple_rate"), decimal("0.001", "1")),
    "crowd": decimal("0", "4"),
    "overlap": one_of("1", "2"),
}
"""Costs of a library of collectives."""

COSTS_OF_SOME = {
    "nvls_chunk": ("h100_sxm", "b200_sxm", "gb200"),
    "ll_fan": LIBRARIES[:-1],
    "crowd": LIBRARIES[-1:],
}
"""Libraries with a cost that others lack."""

IN_NETWORK = one_of("none", "multicast", "reduce", "reduce+multicast")
CABLES: dict[str, Check] = {"rate": rate, "latency": time, **KIND}
BY_DIMENSION: dict[str, Check] = {"rate": each(rate), "latency": each(time), **KIND}
TERMINALS: dict[str, Check] = {"terminals": RANKS, "terminal_rate": rate, "terminal_latency": time}
OPTIONS: dict[str, dict[str, Check]] = {
    "crossbar": {"ranks": RANKS, "in_network": IN_NETWORK, **CABLES},
    "fat_tree": {
        **dict.fromkeys(("down", "up", "links"), each(RANKS)),
        "arity": RANKS,
        "levels": count(16),
        "taper": RANKS,
        **BY_DIMENSION,
        "latency": time,
        "in_network": IN_NETWORK,
    },
    "dragonfly": {
        **dict.fromkeys(("terminals_per_router", "routers_per_group"), RANKS),
        **dict.fromkeys(("global_per_router", "groups"), RANKS),
        "arrangement": one_of("absolute", "simgrid"),
        "routing": one_of("minimal", "valiant"),
        "seed": number(0, 2**64 - 1),
        **dict.fromkeys(("terminal_rate", "local_rate", "global_rate"), rate),
        **dict.fromkeys(("terminal_latency", "local_latency", "global_latency"), time),
        **CABLES,
    },
    "torus": {"dims": each(RANKS), **BY_DIMENSION, **TERMINALS},
    "mesh": {"dims": each(RANKS), **BY_DIMENSION, **TERMINALS},
    "ladder": {"rungs": RANKS, **BY_DIMENSION, **TERMINALS},
    "electrical_ring": {"ranks": RANKS, **BY_DIMENSION},
    "line": {"ranks": RANKS, **BY_DIMENSION},
    "hypercube": {"ranks": RANKS, **BY_DIMENSION},
    "tree": {"ranks": RANKS, "arity": RANKS, **CABLES},
    "ocs_torus": {
        "dims": each(RANKS),
        "cube": count(64),
        "twisted": one_of("no", "yes"),
        "spares": number(0, 2**20),
        "ports": like("any|[0-9]+"),
        **CABLES,
    },
    "fully_connected": {"ranks": RANKS, **CABLES},
    "gpu_servers": {
        "model": one_of(
            "dgx_a100", "dgx_h100", "dgx1", "ndv2", "dgx2", "mi250", "nvl72", "dgx_b200", "l40s"
        ),
        "boxes": RANKS,
        "latency": time,
        "network_latency": time,
        "in_network": IN_NETWORK,
        "library": one_of("none", *LIBRARIES),
        **COSTS,
        **PARTS,
    },
    "custom": {
        "ranks": count(2**14),
        "switches": number(0, 2**14),
        "links": len,
        "names": len,
        "positions": each(position, "+"),
        "ties": one_of("spread", "first"),
        "rate": rate,
        "latency": time,
        "sharing": KIND["sharing"],
        "in_network": lambda text: IN_NETWORK(text.partition("@")[0]),
        **PARTS,
    },
}
MAX_RANKS = 2**20
MAX_LINKS = 2**24
GPUS = {"dgx2": 16, "mi250": 16, "nvl72": 72}
"""Number of GPUs of a box, by model of the box; other models have 8."""

ADDING = ("dgx_h100", "dgx_b200", "nvl72")
"""Models of boxes whose switches add and multicast by default."""

SWITCHED = ("dgx_a100", "dgx_h100", "dgx_b200", "dgx2", "nvl72")
"""Models of boxes with a switch."""

MAX_BOXES = {"dgx1": 1, "l40s": 1, "dgx2": 2, "ndv2": 2, "dgx_a100": 512, "dgx_h100": 512}
"""Maximum number of boxes, by model of the box; other models have no limit."""


def required(options: dict[str, str], name: str) -> str:
    expect(name in options, f"option {name} is missing")
    return options[name]


def sides(word: str) -> list[int]:
    return [whole(part) for part in word.split("x")]


def sides_of_cube(options: dict[str, str]) -> list[int]:
    """Returns the sides of a hypercube: 2 in each dimension."""
    ranks = whole(required(options, "ranks"))
    expect(ranks.bit_count() == 1, "a hypercube has 1, 2, 4 or 8 ranks, and so on")
    return [2] * (ranks.bit_length() - 1) or [1]


def check_values(options: dict[str, str], dimensions: int, *names: str) -> None:
    """Checks that options have one value for all dimensions, or one value per dimension."""
    for name in names:
        values = len(options.get(name, "").split("x"))
        expect(values in (1, dimensions), f"{name} has {values} values for {dimensions} dimensions")


def ranks_of_grid(options: dict[str, str], dims: list[int]) -> int:
    check_values(options, len(dims), "rate", "latency")
    terminal_options = {"terminal_rate", "terminal_latency"} & options.keys()
    expect(not terminal_options or "terminals" in options, "cables to ranks are for terminals")
    return prod(dims) * whole(options.get("terminals", "1"))


def ranks_of_fat_tree(options: dict[str, str]) -> int:
    if "arity" not in options:
        expect(not {"levels", "taper"} & options.keys(), "levels and taper go with arity")
        down, up = (sides(required(options, name)) for name in ("down", "up"))
        links = sides(options["links"]) if "links" in options else up
        expect(len(down) == len(up) == len(links), "levels differ in down, up and links")
        check_values(options, len(down), "rate")
        return prod(down)
    expect(not {"down", "up", "links"} & options.keys(), "either arity or down and up")
    arity, levels = whole(options["arity"]), whole(options.get("levels", "2"))
    expect(arity % whole(options.get("taper", "1")) == 0, "taper divides arity")
    check_values(options, levels, "rate")
    return int(arity**levels)


def ranks_of_dragonfly(options: dict[str, str]) -> int:
    names = ("terminals_per_router", "routers_per_group", "global_per_router")
    terminals, routers, cables = (whole(required(options, name)) for name in names)
    most = routers * cables + 1
    if options.get("arrangement") == "simgrid":
        expect(cables == 1, "the arrangement has one global cable a router")
        most = routers
    groups = whole(options.get("groups", str(most)))
    expect(groups <= most, f"there are {most} groups at most")
    drawn = options.get("routing") == "valiant"
    expect(drawn or "seed" not in options, "seed goes with routing=valiant")
    links = groups * (routers * (routers - 1 + 2 * terminals) + groups - 1)
    expect(links <= MAX_LINKS, f"more than {MAX_LINKS} links")
    return terminals * routers * groups


def ranks_of_cubes(options: dict[str, str]) -> int:
    dims, cube = sides(required(options, "dims")), whole(options.get("cube", "4"))
    expect(len(dims) == 3, "there are three sides")
    expect(cube >= 2, "a cube has two ranks along a side")
    within = max(dims) <= cube
    expect(within or all(side % cube == 0 for side in dims), "sides are whole cubes")
    if options.get("twisted") == "yes":
        expect(sorted({*dims}) == [min(dims), 2 * min(dims)], "twisted sides are n and 2n")
    cubes = whole(options.get("spares", "0")) + (1 if within else prod(dims) // cube**3)
    if options.get("ports", "any") != "any":
        expect(2 * cubes <= whole(options["ports"], MAX_RANKS), "the switches have fewer ports")
    return prod(dims)


def ranks_of_servers(options: dict[str, str]) -> int:
    model = required(options, "model")
    boxes = whole(options.get("boxes", "1"))
    expect(boxes <= MAX_BOXES.get(model, MAX_RANKS), f"{model} has fewer boxes")
    library = options.get("library", LIBRARY_OF_MODEL.get(model, "none"))
    for name in options.keys() & COSTS.keys():
        expect(library in COSTS_OF_SOME.get(name, LIBRARIES), f"library {library} has no {name}")
    return boxes * GPUS.get(model, 8)


def ranks_of_all_pairs(options: dict[str, str]) -> int:
    ranks = whole(required(options, "ranks"))
    expect(ranks * (ranks - 1) <= MAX_LINKS, f"more than {MAX_LINKS} links")
    return ranks


def ranks_of_graph(options: dict[str, str]) -> int:
    ranks, switches = whole(required(options, "ranks")), whole(options.get("switches", "0"))
    vertices = ranks + switches
    expect(vertices <= 2**14, "there are too many ranks and switches")
    expect(ranks == 1 or "links" in options, "option links is missing")
    after: list[set[int]] = [set() for _ in range(vertices)]
    before: list[set[int]] = [set() for _ in range(vertices)]
    for cable in filter(None, options.get("links", "").split("+")):
        ends, *texts = cable.split("@")
        expect(re.search("[-~>]", ends) is not None, f"`{ends}` joins no two vertices")
        start, course, end = re.split("([-~>])", ends, maxsplit=1)
        source, destination = whole(start, vertices - 1), whole(end, vertices - 1)
        expect(source != destination, f"`{ends}` joins a vertex to itself")
        for from_vertex, to_vertex in [(source, destination), (destination, source)][
            : 1 + (course != ">")
        ]:
            after[from_vertex].add(to_vertex)
            before[to_vertex].add(from_vertex)
        for value in texts:
            if value not in ("shared", "per_flow"):
                other = length if value.endswith("m") else time
                (rate if re.search("/s|[bB]", value) else other)(value)
    if "names" in options:
        names = [unquote(name, errors="strict") for name in options["names"].split("+")]
        expect(len(names) == len(set(names)) == vertices, "each vertex has a name of its own")
        expect(all(name and name.isprintable() for name in names), "names are printed")
        bad = re.search("%(?![0-9A-Fa-f]{2})", options["names"])
        expect(bad is None, "a name has % without two digits")
    if "positions" in options:
        positions = options["positions"].split("+")
        expect(len(positions) == vertices, "each vertex has a position, or `unknown`")
    # With `members` or `without`, only some parts of the graph are used. These parts may be
    # connected even if the whole graph is not. Only the core knows the links between these parts.
    if not {"members", "without"} & options.keys():
        for beside in (after, before):
            expect(set(range(ranks)) <= reached(beside), "no links lead to some rank, or from it")
    return ranks


def reached(beside: list[set[int]]) -> set[int]:
    """Returns the vertices reachable from rank 0; `beside[v]` is the set of v's neighbours."""
    visited, waiting = {0}, [0]
    while waiting:
        new = beside[waiting.pop()] - visited
        visited |= new
        waiting += new
    return visited


RANKS_OF: dict[str, Callable[[dict[str, str]], int]] = {
    "fat_tree": ranks_of_fat_tree,
    "dragonfly": ranks_of_dragonfly,
    **dict.fromkeys(
        ("torus", "mesh"), lambda options: ranks_of_grid(options, sides(required(options, "dims")))
    ),
    "ladder": lambda options: ranks_of_grid(options, [whole(required(options, "rungs")), 2]),
    **dict.fromkeys(
        ("electrical_ring", "line"),
        lambda options: ranks_of_grid(options, [whole(required(options, "ranks"))]),
    ),
    "hypercube": lambda options: ranks_of_grid(options, sides_of_cube(options)),
    "ocs_torus": ranks_of_cubes,
    "gpu_servers": ranks_of_servers,
    "fully_connected": ranks_of_all_pairs,
    "custom": ranks_of_graph,
}
"""Functions that compute a family's number of ranks from its options.

They refuse options that contradict each other.

Other families have the option `ranks`.
"""


def work_of_switches(family: str, options: dict[str, str]) -> str:
    """Returns what switches do on data that pass them, after checking that it is possible."""
    default = "reduce+multicast" if options.get("model") in ADDING else "none"
    work = options.get("in_network", default).partition("@")[0]
    if work != "none":
        half = options.get("duplex") == "half" or "~" in options.get("links", "")
        expect(not half, "switches add and multicast over full-duplex cables")
        has_switch = family != "gpu_servers" or options["model"] in SWITCHED
        expect(has_switch, "boxes of this model have no switch")
    return work


class Links(Fabric):
    """Electrical fabric, whose transfers have no light."""

    def __init__(self, family: str, options: dict[str, str], ranks: int) -> None:
        """Keeps what says which switches add and multicast; `ranks` counts all of the fabric."""
        self.work = work_of_switches(family, options)
        broken = {int(part) for part in options.get("without", "").split("+") if part.isdigit()}
        # Switches come after the ranks, those that take part and the others. Broken ones are gone.
        self.first_switch = ranks - sum(vertex < ranks for vertex in broken)
        self.broken_switches = sorted(vertex - ranks for vertex in broken if vertex >= ranks)
        # Switches that do the work, counted from 0; None for all of them. The switches within boxes
        # come before all other switches of GPU servers.
        self.workers: set[int] | None = None
        if family == "gpu_servers":
            self.workers = set(range(whole(options.get("boxes", "1"))))
        elif listed := options.get("in_network", "").partition("@")[2]:
            switches = whole(options.get("switches", "0"))
            self.workers = set()
            for run in listed.split("+"):
                first, _, last = run.partition("-")
                numbers = range(whole(first) - ranks, whole(last or first) - ranks + 1)
                expect(0 <= numbers.start < numbers.stop <= switches, f"no switches {run}")
                self.workers |= set(numbers)

    def able(self, vertex: int, action: str) -> bool:
        """Returns whether a vertex does what the action needs: multicast, or add."""
        needed = {"multicast": "multicast", "aggregate": "reduce"}[action]
        if vertex < self.first_switch or needed not in self.work.split("+"):
            return False
        switch = vertex - self.first_switch
        for broken in self.broken_switches:
            switch += broken <= switch
        return self.workers is None or switch in self.workers

    def wrong_groups(self, plan: Plan, transfers: Transfers) -> Iterator[Problem]:
        groups: dict[tuple[Any, ...], list[int]] = {}
        for index, transfer in transfers.items():
            if transfer.action in ("multicast", "aggregate"):
                hub = transfer.destination if transfer.adds else transfer.source
                step = plan.step_of(transfer.slot)
                key = (step, transfer.action, hub, transfer.chunk, transfer.count)
                groups.setdefault(key, []).append(index)
        for (_, action, hub, *_), group in groups.items():
            if sentence := self.wrong_group(plan, action, hub, group):
                slot = plan.transfers[group[0]].slot
                kind = "aggregation" if action == "aggregate" else "multicast"
                says = f"slot {slot}: the {kind} with transfer {plan.name(group[0])}"
                yield Problem(kind, f"{says} {sentence}")

    def wrong_group(self, plan: Plan, action: str, hub: int, group: list[int]) -> str | None:
        """Returns the first problem of a multicast, or of an aggregation with all links reversed.

        A multicast starts at its hub. Its routes must form a tree. The first switch, and each
        vertex at which the tree branches, multicasts. The first switch sends a copy to the hub.
        No route passes a rank at which another route ends.
        """
        reversed_links = action == "aggregate"
        parent: dict[int, int | None] = {}
        last: set[int | None] = set()
        far = 0 if reversed_links else 1
        for index in group:
            transfer = plan.transfers[index]
            ends = (transfer.source, transfer.destination)
            links = transfer.light if transfer.light is not None else self.routes.get(ends)
            if links is None or any(link >= len(self.wiring) for link in links):
                return f"is not proved: the links from rank {ends[0]} to {ends[1]} are not known"
            before = None
            for link in reversed(links) if reversed_links else links:
                if parent.setdefault(link, before) != before:
                    return f"carries its data twice to link {link}"
                before = link
            last.add(before)
        passed = [link for link in parent.values() if link in last and link is not None]
        if passed:
            return f"passes vertex {self.wiring[min(passed)][far]}, at which a route ends"
        first = [link for link, before in parent.items() if before is None]
        if len(first) != 1:
            return f"uses {len(first)} links at rank {hub}, which only sends and receives"
        switch = self.wiring[first[0]][far]
        if not self.able(switch, action):
            return f"needs vertex {switch}, which does not {action}"
        if not any(link[far] == hub and link[1 - far] == switch for link in self.wiring):
            return f"has no link for the data of rank {hub} itself"
        branches = Counter(parent.values())
        for before, ways in branches.items():
            if before is not None and ways > 1 and not self.able(self.wiring[before][far], action):
                return f"needs vertex {self.wiring[before][far]}, which does not {action}"
        return None

    def read_light(self, words: list[str], over: list[str]) -> tuple[Any, list[str]]:
        """Returns the indices of the links in words such as `via 3.7.12`, and the other words.

        Other fabrics return the light of a transfer in place of the indices.
        """
        if words[:1] != ["via"]:
            return None, words
        return tuple(whole(link) for link in words[1].split(".")), words[2:]

    def wrong_slots(self, plan: Plan, transfers: Transfers) -> Iterator[Problem]:
        for step, slots in enumerate(plan.steps):
            if slots != 1:
                sentence = f"step {step} takes {slots} slots, but there is no light to wait for"
                yield Problem("step_order", sentence)
        for index, transfer in transfers.items():
            if transfer.light is not None:
                for sentence in self.wrong_ways(transfer):
                    says = f"slot {transfer.slot}: transfer {plan.name(index)}"
                    yield Problem("route", f"{says} {sentence}")

    def wrong_ways(self, transfer: Transfer) -> Iterator[str]:
        """Follows the route of a transfer link by link, and yields the first problem."""
        vertex = transfer.source
        for link in transfer.light:
            if link >= len(self.wiring):
                yield f"goes over link {link}, which is not known here"
                return
            start, end, both_ways = self.wiring[link]
            if vertex == start:
                vertex = end
            elif vertex == end and both_ways:
                vertex = start
            else:
                yield f"goes over link {link}, which does not leave vertex {vertex}"
                return
        if vertex != transfer.destination:
            yield f"ends at vertex {vertex}, not where its route should"


def checked(family: str, options: dict[str, str]) -> Links:
    """Returns a fabric of a family if its options are valid together."""
    ranks_of = RANKS_OF.get(family)
    ranks = whole(required(options, "ranks")) if ranks_of is None else ranks_of(options)
    expect(ranks <= MAX_RANKS, f"more than {MAX_RANKS} ranks")
    for run in filter(None, options.get("members", "").split("+")):
        first, _, last = run.partition("-")
        expect(whole(first) <= whole(last or first) < ranks, f"there are no ranks {run}")
    return Links(family, options, ranks)
