"""The poster's discussion of why all_gather is hard, and of energy, which it leaves to later work.

A bit costs energy on every link of its route: on electrical links to terminals and within groups,
and on optical links between groups. The poster has no energy model. The energies per bit here are
assumptions in the usual range for serial links and router ports. Idle links cost nothing.

>>> energy_mj(terminal_bytes=0, local_bytes=0, global_bytes=125_000_000)
20.0
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

import opticoll
from opticoll import format_size
from opticoll_papers.common import Results
from opticoll_papers.dragonfly.cases import (
    COMPARED,
    DISCUSSED,
    GATHER_CUT,
    RINGS,
    SCATTER_BYTES,
    SCATTERS,
    SLOW_GLOBAL,
    SLOW_LOCAL,
    Case,
    Scale,
    fabric,
    gather,
    scatter,
)
from opticoll_papers.dragonfly.runs import Row, Rows, delays, settings
from opticoll_papers.dragonfly.shapes import hops, messages, proven
from opticoll_papers.judging import Computed

ELECTRICAL_PJ_PER_BIT = 10
OPTICAL_PJ_PER_BIT = 20

HAND_OVER_US = 2e-3
"""Maximum error in us of the estimated time of a message in an empty network."""

DISCUSSED_BYTES = (1024, 65536)
"""Block sizes in bytes for which the rings' busiest link is determined."""

CHANNELS = {"local": (0, 1), "global": (0,)}
"""Virtual channels of links between routers on minimal routes, by class of link.

A local hop before and one after the global hop use different channels."""


def compute(results: Results, rows: Rows, scale: Scale) -> dict[str, Computed]:
    """Computes the claims of the poster's discussion, and energies, with a table of energies."""
    return {
        **_contention(rows),
        **_slowest(),
        **_balance(scale),
        **_broadcast(),
        **_energy(results, rows, scale),
    }


def energy_mj(*, terminal_bytes: int, local_bytes: int, global_bytes: int) -> float:
    """Returns the energy on links in mJ; arguments are bytes summed over the links of a class."""
    electrical = (terminal_bytes + local_bytes) * ELECTRICAL_PJ_PER_BIT
    return 8e-9 * (electrical + global_bytes * OPTICAL_PJ_PER_BIT)


def _contention(rows: Rows) -> dict[str, Computed]:
    """Computes the bytes of both collectives, and the time that messages wait for others."""
    gathers = {name: gather(DISCUSSED, name, SCATTER_BYTES) for name in COMPARED}
    scatters = {
        name: Case(DISCUSSED, "scatter", name, SCATTER_BYTES, GATHER_CUT) for name in SCATTERS
    }
    waits = {name: 1e6 * waiting_s(rows[case]) for name, case in (gathers | scatters).items()}
    injected = {name: rows[a_case]["injected_bytes"] or 0
                for name, a_case in (gathers | scatters).items()}  # fmt: skip
    error_us = HAND_OVER_US * max(rows[a_case]["messages"] for a_case in gathers.values())
    least, most = min(waits[name] for name in COMPARED), max(waits[name] for name in SCATTERS)
    fewest = min(COMPARED, key=lambda name: injected[name])
    largest = max(SCATTERS, key=lambda name: injected[name])
    return {
        "discussion.contention": Computed(
            least / most,
            "Waiting of all messages together: "
            + ", ".join(f"{name} {wait:.1f} us" for name, wait in waits.items())
            + f". The estimate is wrong by one or two nanoseconds a message. RING and TAR have "
            f"{rows[gathers['RING']]['messages']} messages each, which is {error_us:.0f} us at "
            "most.",
            by_chance=abs(least - most) < error_us,
        ),
        "discussion.data": Computed(
            injected[fewest] / injected[largest],
            f"{fabric(DISCUSSED).ranks} terminals, blocks of {SCATTER_BYTES} B: "
            + ", ".join(f"{name} {sent / 1e6:.2f} MB" for name, sent in injected.items())
            + ".",
        ),
    }


def waiting_s(row: Row) -> float:
    """Returns the seconds that a case's messages took longer than in an empty network.

    In an empty network, the first chunk needs the time of its bytes and the delay of a router on
    each link. The other chunks follow at the rate of the slowest link.
    """
    shape = fabric(DISCUSSED)
    source, destination, blocks = messages(proven(row["collective"], shape, row["algorithm"]))
    chunk = delays(row["chunk_bytes"], GATHER_CUT)
    local, between = hops(shape, source, destination)
    latency_ps = 2 * chunk.terminal_ps + local * chunk.local_ps + between * chunk.global_ps
    rate = np.where(between > 0, shape.option("global_rate"), shape.option("rate"))
    alone_s = latency_ps / 1e12 + 8.0 * blocks * row["size_bytes"] / rate
    return (row["mean_message_latency_s"] or 0) * len(blocks) - float(alone_s.sum())


def _slowest() -> dict[str, Computed]:
    """Computes a ring's extra time on slower links, divided by the busiest link's extra time."""
    computed = {}
    for size in DISCUSSED_BYTES:
        shares, notes = [], []
        for name, slowed in (("RING", SLOW_LOCAL), ("TAR", SLOW_GLOBAL)):
            case = gather(DISCUSSED, name, size)
            own, slow = (
                proven("all_gather", fabric(DISCUSSED, variant=variant), name).simulate(
                    size, **settings(case)
                )
                for variant in ("", slowed)
            )
            busiest = int(own.links["busy_ps"].argmax())
            assert own.links["class"][busiest] == slow.links["class"][busiest]
            extra_ps = int(slow.links["busy_ps"][busiest]) - int(own.links["busy_ps"][busiest])
            shares.append((slow.time_ps - own.time_ps) / extra_ps)
            notes.append(
                f"{name} {own.time_ps / 1e6:.1f} us, with {slowed} {slow.time_ps / 1e6:.1f} us, "
                f"its slowest link {extra_ps / 1e6:.1f} us more"
            )
        computed[f"discussion.slowest.{format_size(size)}"] = Computed(
            tuple(shares), "; ".join(notes) + "."
        )
    return computed


def _balance(scale: Scale) -> dict[str, Computed]:
    """Computes the percentage of buffers between routers that no chunk uses.

    Also counts the buffers that only some of a rank's messages use.
    """
    shape = fabric(min(scale.gather, 4))
    idle, most, parts = {}, {}, {}
    for name in COMPARED:
        case = gather(min(scale.gather, 4), name, 64)
        measured = proven("all_gather", shape, name).simulate(case.size_bytes, **settings(case))
        kinds = np.asarray(measured.links["class"])[measured.channels["link"]]
        of = np.asarray(measured.channels["channel"])
        usable = np.logical_or.reduce(
            [(kinds == kind) & np.isin(of, own) for kind, own in CHANNELS.items()]
        )
        chunks = np.asarray(measured.channels["chunks"])
        assert not chunks[np.isin(kinds, list(CHANNELS)) & ~usable].any()
        idle[name] = 100 * float((chunks[usable] == 0).mean())
        most[name] = float(chunks[usable].max() / chunks[usable].mean())
        # A message of a ring is one chunk, and all ranks send equally many messages.
        parts[name] = int((chunks[usable] % (shape.ranks - 1) != 0).sum())
    each = ", ".join(f"{name} {idle[name]:.1f} % and {most[name]:.1f} times" for name in COMPARED)
    return {
        "discussion.balance": Computed(
            tuple(idle[name] for name in RINGS),
            f"{shape.ranks} terminals. Buffers that no chunk comes to, and chunks through the one "
            f"most used against the mean: {each}.",
        ),
        "discussion.path": Computed(
            sum(parts[name] for name in RINGS),
            f"{shape.ranks} terminals, each of which sends {shape.ranks - 1} messages. Under BRUCK "
            f"there are {parts['BRUCK']} such links.",
        ),
    }


def _broadcast() -> dict[str, Computed]:
    """Computes the steps of a broadcast that the poster announces."""
    shape = fabric(DISCUSSED)
    plan = opticoll.plan("broadcast", shape, "scatter_all_gather:scatter=glf,all_gather=tar")
    violations = plan.verify()
    assert not violations, violations
    return {"ongoing.broadcast": Computed(plan.slots, f"{shape.ranks} terminals.")}


def _energy(results: Results, rows: Rows, scale: Scale) -> dict[str, Computed]:
    network = min(scale.gather, 4)
    gathers = {name: rows[gather(network, name, 64)] for name in COMPARED}
    scatters = {name: rows[scatter(scale.scatter, name, "pipelined")] for name in SCATTERS}
    results.show(
        "Not in the poster: energy on links in mJ, "
        f"{ELECTRICAL_PJ_PER_BIT} pJ a bit and electrical hop, {OPTICAL_PJ_PER_BIT} an optical one",
        ["collective", "algorithm", "terminals", "block", "mJ", "MB on terminal links", "local",
         "global"],
        [
            [
                row["collective"],
                row["algorithm"],
                row["terminals"],
                f"{row['size_bytes']} B",
                f"{_of(row):.3f}",
                f"{2 * (row['injected_bytes'] or 0) / 1e6:.2f}",
                f"{(row['local_bytes'] or 0) / 1e6:.2f}",
                f"{(row['global_bytes'] or 0) / 1e6:.2f}",
            ]
            for row in (*gathers.values(), *scatters.values())
        ],
        left=(0, 1),
    )  # fmt: skip
    return {
        "ongoing.energy.all_gather": _energies(gathers),
        "ongoing.energy.scatter": _energies(scatters),
    }


def _energies(rows: Mapping[str, Row]) -> Computed:
    terminals = next(iter(rows.values()))["terminals"]
    return Computed(
        tuple(_of(row) for row in rows.values()),
        f"{terminals} terminals, minimal routes: {ELECTRICAL_PJ_PER_BIT} pJ a bit and electrical "
        f"link, {OPTICAL_PJ_PER_BIT} a bit and optical link, both assumed; idle links cost "
        "nothing.",
    )


def _of(row: Row) -> float:
    injected = row["injected_bytes"] or 0
    return energy_mj(
        # Every injected byte also uses a link to a terminal.
        terminal_bytes=2 * injected,
        local_bytes=row["local_bytes"] or 0,
        global_bytes=row["global_bytes"] or 0,
    )
