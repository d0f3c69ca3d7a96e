"""Cases that both opticoll and SimGrid can run: a fabric spelled for one, a platform for the other.

Random ones are drawn from a seed: half are flows (chains, each flow after the one before, from
random instants on), half are collectives step by step, taken from opticoll's own verified plans. A
third of all may have links with latency; SimGrid then shares in proportion to 1 / route latency,
and opticoll is told to do the same (weights inverse_latency).
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass

import opticoll
from opticoll import errors
from opticoll.names import algorithm_names

__all__ = ["TOPOLOGIES", "Case", "chains_text", "closed_loop", "platform", "random_cases"]

TOPOLOGIES = ("star", "fat tree", "dragonfly", "torus", "custom")
COLLECTIVES = ("all_gather", "all_reduce", "all_to_all", "reduce_scatter", "broadcast")

Chain = tuple[int, int, list[tuple[int, int]]]
"""Source, start in picoseconds, and (destination, bytes) of flows one after another."""


@dataclass(frozen=True)
class Case:
    """A fabric, what is sent on it, and the same for SimGrid.

    `lines` are what `simgrid_peer.cpp` reads; `plan` is the collective, algorithm and size in bytes
    of a case that is a plan, None for chains of flows. Without `weights` shares are equal.
    """

    name: str
    topology: str
    fabric: str
    platform: str
    lines: str
    flows: int
    plan: tuple[str, str, int] | None = None
    weights: str | None = None


@dataclass(frozen=True)
class Machine:
    """A drawn fabric: its spelling and its platform, the number of ranks, latency in ns."""

    topology: str
    fabric: str
    platform: str
    ranks: int
    latency_ns: int


def platform(topology: str, ranks: int, parameters: str, gbps: int, latency_ns: int) -> str:
    """Returns a platform file with hosts h0, h1, ...;

    `parameters` are those of SimGrid's clusters.
    """
    shape = "" if topology == "star" else f'topology="{_CLUSTERS[topology]}" '
    given = "" if topology == "star" else f'topo_parameters="{parameters}" '
    return _wrapped(
        f'<cluster id="c" prefix="h" suffix="" radical="0-{ranks - 1}" speed="1Gf" {shape}{given}'
        f'bw="{gbps * 125_000_000}Bps" lat="{latency_ns}ns" sharing_policy="SPLITDUPLEX"/>'
    )


_CLUSTERS = {"fat tree": "FAT_TREE", "dragonfly": "DRAGONFLY", "torus": "TORUS"}


def _wrapped(body: str) -> str:
    return (
        "<?xml version='1.0'?>\n"
        '<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">\n'
        f'<platform version="4.1">\n{body}\n</platform>\n'
    )


def random_cases(seed: int, each: int) -> Iterable[Case]:
    """Draws `each` cases on every topology; the same seed gives the same cases."""
    for topology in TOPOLOGIES:
        for number in range(each):
            draw = random.Random(f"{seed} {topology} {number}")
            machine = _machine(draw, topology, 1000 * draw.randint(0, 4) if number % 3 == 2 else 0)
            name = f"{topology} {number}"
            yield (_flows(draw, name, machine) if number % 2 == 0 else _steps(draw, name, machine))


def _machine(draw: random.Random, topology: str, latency_ns: int) -> Machine:
    gbps = draw.choice((10, 25, 40, 100, 400))
    cables = f"rate={gbps}Gb/s,latency={latency_ns}ns"
    match topology:
        case "star":
            ranks = draw.randint(3, 48)
            parameters = ""
            fabric = f"crossbar:ranks={ranks},{cables}"
        case "fat tree":
            levels = draw.randint(1, 3)
            down = [draw.randint(2, 4) for _ in range(levels)]
            up = [1, *(draw.randint(1, 3) for _ in range(levels - 1))]
            # Parallel cables at the top only: above such cables SimGrid 3.32 divides the
            # destination by their number too, where D-mod-k as published and here does not.
            links = [1] * levels
            links[-1] = draw.randint(1, 2) if levels > 1 else 1
            ranks = 1
            for radix in down:
                ranks *= radix
            lists = [",".join(map(str, numbers)) for numbers in (down, up, links)]
            parameters = ";".join([str(levels), *lists])
            crossed = [one.replace(",", "x") for one in lists]
            fabric = f"fat_tree:down={crossed[0]},up={crossed[1]},links={crossed[2]},{cables}"
        case "dragonfly":
            routers, hosts = draw.randint(2, 5), draw.randint(1, 3)
            groups = draw.randint(2, routers)
            blue, green = draw.randint(1, 2), draw.randint(1, 2)
            ranks = groups * routers * hosts
            parameters = f"{groups},{blue};1,1;{routers},{green};{hosts}"
            fabric = (
                f"dragonfly:terminals_per_router={hosts},routers_per_group={routers},"
                f"groups={groups},arrangement=simgrid,{cables},local_rate={green * gbps}Gb/s,"
                f"global_rate={blue * gbps}Gb/s"
            )
        case "torus":
            # Odd numbers only: halfway around an even one both ways are equally long, and SimGrid
            # 3.32 goes down from the middle to 0 but up from everywhere else. Two nodes around are
            # joined by one cable here, by two in SimGrid.
            dims = [draw.choice((3, 5, 7)) for _ in range(draw.randint(1, 2))]
            ranks = 1
            for dim in dims:
                ranks *= dim
            parameters = ",".join(map(str, dims))
            fabric = f"torus:dims={parameters.replace(',', 'x')},{cables}"
        case _:
            return _custom(draw, latency_ns)
    written = platform(topology, ranks, parameters, gbps, latency_ns)
    return Machine(topology, fabric, written, ranks, latency_ns)


def _custom(draw: random.Random, latency_ns: int) -> Machine:
    """Switches joined at random, ranks on random switches, every cable with its own rate."""
    ranks, switches = draw.randint(3, 20), draw.randint(2, 8)
    first = ranks
    pairs = {(first + draw.randrange(at), first + at) for at in range(1, switches)}
    for _ in range(switches):
        ends = sorted(draw.sample(range(first, first + switches), 2)) if switches > 1 else []
        pairs.add((ends[0], ends[1]))
    cables = [(rank, first + draw.randrange(switches)) for rank in range(ranks)] + sorted(pairs)
    rates = [draw.choice((10, 25, 40, 100)) for _ in cables]
    latencies = [latency_ns and draw.randint(1, 5000) for _ in cables]
    links = "+".join(
        f"{a}-{b}@{rate}Gb/s@{latency}ns"
        for (a, b), rate, latency in zip(cables, rates, latencies, strict=True)
    )
    fabric = f"custom:ranks={ranks},switches={switches},links={links}"
    elements = ['<zone id="world" routing="Full">']
    elements += [f'<host id="h{rank}" speed="1Gf"/>' for rank in range(ranks)]
    for number, (rate, latency) in enumerate(zip(rates, latencies, strict=True)):
        elements.append(
            f'<link id="l{number}" bandwidth="{rate * 125_000_000}Bps" latency="{latency}ns" '
            'sharing_policy="SPLITDUPLEX"/>'
        )
    routes = _routes(ranks, ranks + switches, cables)
    for (source, destination), route in routes.items():
        hops = "".join(
            f'<link_ctn id="l{cable}" direction="{"UP" if upwards else "DOWN"}"/>'
            for cable, upwards in route
        )
        elements.append(
            f'<route src="h{source}" dst="h{destination}" symmetrical="NO">{hops}</route>'
        )
    return Machine("custom", fabric, _wrapped("\n".join([*elements, "</zone>"])), ranks, latency_ns)


def _routes(
    ranks: int, vertices: int, cables: list[tuple[int, int]]
) -> dict[tuple[int, int], list[tuple[int, bool]]]:
    """Routes of a custom fabric as its documentation has them, worked out anew.

    Over the fewest links; of several links that lead nearer, in the order given, number
    (destination mod how many). Cables with the way they are crossed.
    """
    leaving: list[list[tuple[int, int, bool]]] = [[] for _ in range(vertices)]
    for number, (a, b) in enumerate(cables):
        leaving[a].append((b, number, True))
        leaving[b].append((a, number, False))
    routes = {}
    for destination in range(ranks):
        far = {destination: 0}
        front = [destination]
        for vertex in front:
            for other, _, _ in leaving[vertex]:
                if other not in far:
                    far[other] = far[vertex] + 1
                    front.append(other)
        for source in range(ranks):
            if source == destination:
                continue
            at, route = source, []
            while at != destination:
                nearer = [hop for hop in leaving[at] if far[hop[0]] == far[at] - 1]
                at, cable, upwards = nearer[destination % len(nearer)]
                route.append((cable, upwards))
            routes[source, destination] = route
    return routes


def _flows(draw: random.Random, name: str, machine: Machine) -> Case:
    """Draws one to four chains per rank, each of one to four flows of 10 kB to 10 MB."""
    chains: list[Chain] = []
    for _ in range(machine.ranks * draw.randint(1, 4)):
        source = draw.randrange(machine.ranks)
        others = [rank for rank in range(machine.ranks) if rank != source]
        start_ps = 1000 * draw.randrange(2_000_000)
        sent = [
            (draw.choice(others), draw.randint(10_000, 10_000_000))
            for _ in range(draw.randint(1, 4))
        ]
        chains.append((source, start_ps, sent))
    return Case(
        name=name,
        topology=machine.topology,
        fabric=machine.fabric,
        platform=machine.platform,
        lines=chains_text(chains),
        flows=sum(len(sent) for _, _, sent in chains),
        weights="inverse_latency" if machine.latency_ns else None,
    )


def chains_text(chains: Iterable[Chain]) -> str:
    """Chains as both programs read them."""
    lines = []
    for source, start_ps, sent in chains:
        lines.append(f"chain {source} {start_ps}")
        lines += [f"flow {destination} {size}" for destination, size in sent]
    return "\n".join(lines) + "\n"


def _steps(draw: random.Random, name: str, machine: Machine) -> Case:
    """Draws a collective by an algorithm that runs there, at a size that cuts into whole bytes."""
    collective = draw.choice(COLLECTIVES)
    names = [one for one in algorithm_names(collective) if one not in ("auto", "relay_tree")]
    draw.shuffle(names)
    plan = None
    for algorithm in names:
        try:
            plan = opticoll.plan(collective, machine.fabric, algorithm)
        except errors.AlgorithmError:
            continue
        break
    assert plan is not None, f"no algorithm of {collective} on {machine.fabric}"
    chunk_bytes = draw.randint(1000, 200_000)
    chunks, ranks = plan.collective.chunks, machine.ranks
    size = {
        "all_gather": chunk_bytes * chunks // ranks,
        "all_to_all": chunk_bytes * chunks // ranks,
    }.get(collective, chunk_bytes * chunks)
    messages: dict[tuple[int, int, int, int], int] = {}
    columns = plan.columns()
    for slot, source, destination, action, count in zip(
        *(columns[key].tolist() for key in ("slot", "source", "destination", "action", "count")),
        strict=True,
    ):
        key = (slot, source, destination, action)
        messages[key] = messages.get(key, 0) + count * chunk_bytes
    lines = [
        f"message {slot} {source} {destination} {size_bytes}"
        for (slot, source, destination, _), size_bytes in messages.items()
    ]
    return Case(
        name=f"{name}, {collective} {plan.algorithm}",
        topology=machine.topology,
        fabric=machine.fabric,
        platform=machine.platform,
        lines="\n".join(lines) + "\n",
        flows=len(messages),
        plan=(collective, plan.algorithm, size),
        weights="inverse_latency" if machine.latency_ns else None,
    )


def closed_loop(ranks: int, chains: int, flows: int, seed: int) -> str:
    """Chains from every rank to random others, 0.1 to 2 MB each, all from the start.

    The numbers are drawn by a congruential generator of 64 bits that any language has at hand.
    """
    whole = 2**64
    drawn: list[Chain] = []
    for chain in range(ranks * chains):
        state = (seed * 0x9E3779B97F4A7C15 + chain * 0xD1B54A32D192ED03 + 1) % whole
        sent = []
        for _ in range(flows):
            pair = []
            for _ in range(2):
                state = (state * 6364136223846793005 + 1442695040888963407) % whole
                pair.append(state >> 33)
            destination = (chain // chains + 1 + pair[0] % (ranks - 1)) % ranks
            sent.append((destination, 100_000 + pair[1] % 1_900_001))
        drawn.append((chain // chains, 0, sent))
    return chains_text(drawn)
