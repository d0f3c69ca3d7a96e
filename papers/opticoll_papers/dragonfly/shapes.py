"""The poster's algorithms and network, derived from verified plans and from the fabric."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import opticoll
from opticoll import Fabric, Plan
from opticoll_papers.dragonfly.cases import ALGORITHMS, FULL, SCATTER_BYTES, Scale, fabric
from opticoll_papers.judging import Computed

GIB = 8 * 2**30


def compute(scale: Scale) -> dict[str, Computed]:
    """Computes the claims that name an algorithm, or a parameter of the network."""
    return network() | _gathers(min(scale.gather, 4)) | _scatters(scale.scatter)


def network() -> dict[str, Computed]:
    """Computes the claims on the poster's network, as the full study simulates it."""
    shape = fabric(FULL.gather)
    rates: dict[str, set[int]] = {"terminal": set(), "local": set(), "global": set()}
    for name, rate in zip(shape.link_names, shape.link_rates, strict=True):
        rates[_class(name)].add(int(rate))
    computed = {
        "terminals": shape.ranks,
        "groups": shape.option("groups"),
        "routers": shape.option("routers_per_group"),
        "terminals_per_router": shape.option("terminals_per_router"),
    }
    note = f"{shape.spec.split(',rate')[0]}."
    return {f"network.{id}": Computed(value, note) for id, value in computed.items()} | {
        f"network.{name}_rate": Computed(own.pop() / GIB, "Of each link of the fabric.")
        for name, own in rates.items()
        if len(own) == 1
    }


def _class(link: str) -> str:
    """Returns the class of a link named, for example, `group 0 router 1 -> group 8 router 3`."""
    source, destination = link.split(" -> ")
    if "rank" in link:
        return "terminal"
    return "local" if source.split()[:2] == destination.split()[:2] else "global"


def hops(shape: Fabric, source: np.ndarray, destination: np.ndarray) -> tuple[Any, Any]:
    """Returns the numbers of local links, and of global links, of minimal routes between terminals.

    Port i of router r leads to group r + i a. If that is the router's own group, the port leads to
    the last group.
    """
    groups, routers = shape.option("groups"), shape.option("routers_per_group")
    terminals = shape.option("terminals_per_router")
    own, other = source // terminals, destination // terminals
    source_group, destination_group = own // routers, other // routers

    def gateway(at: np.ndarray, to: np.ndarray) -> Any:
        return np.where((to == groups - 1) & (at != groups - 1), at, to) % routers

    crosses = source_group != destination_group
    before = crosses & (own % routers != gateway(source_group, destination_group))
    after = crosses & (other % routers != gateway(destination_group, source_group))
    within = ~crosses & (own != other)
    return before.astype(int) + after + within, crosses.astype(int)


def proven(collective: str, on: Fabric, name: str) -> Plan:
    """Returns the verified plan of one of the poster's algorithms."""
    plan = opticoll.plan(collective, on, ALGORITHMS[name][0])
    violations = plan.verify()
    assert not violations, violations
    return plan


def log2_steps(ranks: int) -> int:
    return math.ceil(math.log2(ranks))


def _gathers(size: int) -> dict[str, Computed]:
    shape, group = fabric(size), 2 * size**2
    note = f"Its verified plan on {shape.ranks} terminals."
    edges = {name: _edges(proven("all_gather", shape, name)) for name in ("RING", "TAR")}
    most = {name: int(np.bincount(own[:, 0]).max()) for name, own in edges.items()}
    groups = edges["TAR"] // group
    crossing = int((groups[:, 0] != groups[:, 1]).sum())
    bruck = proven("all_gather", shape, "BRUCK")
    return {
        "ring.algorithm": Computed(most["RING"], note),
        "tar.data": Computed(most["TAR"], note),
        "tar.ring": Computed(crossing - shape.ranks // group, note),
        "bruck.algorithm": Computed(
            bruck.slots - log2_steps(shape.ranks), f"{bruck.slots} steps. {note}"
        ),
    }


def _edges(plan: Plan) -> np.ndarray:
    """Returns the pairs of ranks that exchange messages, each pair once."""
    columns, ranks = plan.columns(), plan.fabric.ranks
    pairs = np.unique(columns["source"].astype(np.int64) * ranks + columns["destination"])
    return np.stack([pairs // ranks, pairs % ranks], axis=1)


def _scatters(size: int) -> dict[str, Computed]:
    shape = fabric(size)
    note = f"Its verified plan on {shape.ranks} terminals."
    plans = {name: proven("scatter", shape, name) for name in ("TREE", "GLF", "LLF", "LIN")}
    tree = plans["TREE"]
    lin = plans["LIN"].columns()
    times = np.bincount(lin["destination"], minlength=shape.ranks)
    wrong = int((lin["source"] != 0).sum() + (times[1:] != 1).sum() + times[0])
    largest = {name: int(messages(plan)[2].max()) for name, plan in plans.items()}
    trees = [name for name in largest if name != "LIN"]
    crossing = phases(plans["GLF"], size, local_first=False)
    within = int((crossing == 1).sum())
    parts = (shape.option("groups"), 2 * size, size)

    def steps(name: str) -> str:
        return f"{plans[name].slots} steps. {note}"

    return {
        "tree.algorithm": Computed(
            tree.slots - log2_steps(shape.ranks), f"{tree.slots} steps. {note}"
        ),
        "lin.algorithm": Computed(wrong, note),
        "scatter.lin.message": Computed(int(largest["LIN"]) * SCATTER_BYTES, note),
        "scatter.trees.data": Computed(
            int(min(largest[name] for name in trees) // largest["LIN"]),
            "Largest messages: "
            + ", ".join(f"{name} {largest[name] * SCATTER_BYTES / 2**20:.2f} MiB" for name in trees)
            + f". {note}",
        ),
        "scatter.size": Computed(SCATTER_BYTES, "The block of each case."),
        "glf.phases": Computed(disordered(plans["GLF"], crossing), note),
        "glf.first_phase": Computed(
            disordered(plans["GLF"], np.minimum(crossing, 2)),
            f"{within} messages cross, one to each of the other groups. {note}",
        ),
        "glf.tree": Computed(plans["GLF"].slots - sum(map(log2_steps, parts)), steps("GLF")),
        "llf.tree": Computed(
            plans["LLF"].slots - sum(map(log2_steps, (parts[1], 1 + size, *parts[1:]))),
            steps("LLF"),
        ),
        "llf.phases": Computed(
            disordered(plans["LLF"], phases(plans["LLF"], size, local_first=True)), note
        ),
    }


def messages(plan: Plan) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns the source, the destination and the number of blocks of each message of a plan.

    A message is all data that a rank sends to another rank in one slot.
    """
    columns = plan.columns()
    ends, message = np.unique(
        np.stack([columns["source"], columns["destination"], columns["slot"]]),
        axis=1,
        return_inverse=True,
    )
    blocks = np.bincount(message.ravel(), weights=columns["count"]).astype(int)
    return ends[0].astype(int), ends[1].astype(int), blocks


def phases(plan: Plan, size: int, *, local_first: bool) -> np.ndarray:
    """Returns the phase of each transfer on a dragonfly with `size` terminals per router.

    GLF has phases 1 to 3. LLF (`local_first`) has phases 1 to 4, and its first phase is between
    routers of the root's group.
    """
    columns = plan.columns()
    source, destination = columns["source"], columns["destination"]
    group = 2 * size**2
    crosses = source // group != destination // group
    terminals = source // size == destination // size
    if not local_first:
        return np.where(crosses, 1, np.where(terminals, 3, 2))
    routers = np.where(source < group, 1, 3)
    return np.where(crosses, 2, np.where(terminals, 4, routers))


def disordered(plan: Plan, phases: np.ndarray) -> int:
    """Returns the number of terminals that send in a phase after taking part in a later one."""
    columns, ranks = plan.columns(), plan.fabric.ranks
    received = np.zeros(ranks, dtype=np.int64)
    np.maximum.at(received, columns["destination"], phases)
    wrong = np.zeros(ranks, dtype=bool)
    for phase in range(1, int(phases.max()) + 1):
        last = np.full(ranks, -1)
        first = np.full(ranks, plan.slots)
        early, later = phases == phase, phases > phase
        np.maximum.at(last, columns["source"][early], columns["slot"][early])
        np.minimum.at(first, columns["source"][later], columns["slot"][later])
        wrong |= (last > first) | ((last >= 0) & (received > phase))
    return int(wrong.sum())
