"""The poster's discussion of why all_gather is hard, and the energy that it leaves to later work.

A bit costs energy on every link that it passes: electrical ones to terminals and within groups,
optical ones between groups. The poster has no model of it; the energies per bit are assumptions of
the order in use for serial links with the ports of their routers, and idle links cost nothing.

>>> energy_mj(terminal_bytes=0, local_bytes=0, global_bytes=125_000_000)
20.0
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from opticoll import format_size
from opticoll.papers.dragonfly.cases import (
    COMPARED,
    DISCUSSED,
    GATHER_CUT,
    RINGS,
    SCATTER_BYTES,
    SCATTERS,
    Case,
    Scale,
    fabric,
    gather,
    scatter,
)
from opticoll.papers.dragonfly.runs import Row, Rows, settings
from opticoll.papers.dragonfly.shapes import proven
from opticoll.papers.judging import Computed
from opticoll.papers.kit import Results

ELECTRICAL_PJ_PER_BIT = 10
OPTICAL_PJ_PER_BIT = 20

DISCUSSED_BYTES = (1024, 65536)
"""Blocks of rings whose busiest link is looked for."""

CHANNELS = {"local": (0, 1), "global": (0,)}
"""Virtual channels of links between routers that minimal routes may use: a local hop before and one
after the global hop."""


def compute(results: Results, rows: Rows, scale: Scale) -> dict[str, Computed]:
    """What the poster's discussion comes to, and energies, with a table of those."""
    return _contention(rows) | _slowest() | _balance(scale) | _energy(results, rows, scale)


def energy_mj(*, terminal_bytes: int, local_bytes: int, global_bytes: int) -> float:
    """Energy on links in millijoules, from bytes summed over the links of each class."""
    electrical = (terminal_bytes + local_bytes) * ELECTRICAL_PJ_PER_BIT
    return 8e-9 * (electrical + global_bytes * OPTICAL_PJ_PER_BIT)


def _contention(rows: Rows) -> dict[str, Computed]:
    gathers = {name: rows[gather(DISCUSSED, name, SCATTER_BYTES)] for name in COMPARED}
    scatters = {
        name: rows[Case(DISCUSSED, "scatter", name, SCATTER_BYTES, GATHER_CUT)] for name in SCATTERS
    }
    stalls = {
        name: 1e6 * ((row["router_stall_s"] or 0) + (row["injection_stall_s"] or 0))
        for name, row in (gathers | scatters).items()
    }
    most = max(stalls[name] for name in SCATTERS)
    each = ", ".join(f"{name} {stall:.1f} us" for name, stall in stalls.items())
    injected = {name: row["injected_bytes"] or 0 for name, row in (gathers | scatters).items()}
    return {
        f"discussion.contention.{name}": Computed(
            stalls[name] - most,
            f"Stalls of all ports: {each}. Waiting in buffers that do not fill is not counted.",
        )
        for name in COMPARED
    } | {
        "discussion.data": Computed(
            injected["RING"] / injected["LIN"],
            f"{fabric(DISCUSSED).ranks} terminals, blocks of {SCATTER_BYTES} B: "
            f"{injected['RING'] / 1e6:.2f} and {injected['LIN'] / 1e6:.2f} MB.",
        )
    }


def _slowest() -> dict[str, Computed]:
    """Times of rings in multiples of what their busiest link needs."""
    found = {}
    for size in DISCUSSED_BYTES:
        for name in RINGS:
            case = gather(DISCUSSED, name, size)
            plan = proven("all_gather", fabric(DISCUSSED), name)
            measured = plan.simulate(size, **settings(case))
            busy_ps = int(measured.links["busy_ps"].max())
            found[f"discussion.slowest.{name}.{format_size(size)}"] = Computed(
                measured.time_ps / busy_ps,
                f"{measured.time_ps / 1e6:.1f} us; its busiest link is busy for "
                f"{busy_ps / 1e6:.1f} us.",
            )
    return found


def _balance(scale: Scale) -> dict[str, Computed]:
    """How many buffers between routers no chunk comes to."""
    shape = fabric(min(scale.gather, 4))
    idle, most = {}, {}
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
    each = ", ".join(f"{name} {idle[name]:.1f} % and {most[name]:.1f} times" for name in COMPARED)
    return {
        f"discussion.balance.{name}": Computed(
            idle[name],
            f"{shape.ranks} terminals. Buffers that no chunk comes to, and chunks through the one "
            f"most used against the mean: {each}.",
        )
        for name in RINGS
    }


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
        # Whatever is injected goes to a terminal, too.
        terminal_bytes=2 * injected,
        local_bytes=row["local_bytes"] or 0,
        global_bytes=row["global_bytes"] or 0,
    )
