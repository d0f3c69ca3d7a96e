"""An all_reduce on ODDL's grid: switches, partners, wavelengths and control messages."""

from __future__ import annotations

import math
from functools import cache
from itertools import pairwise

import opticoll
from opticoll import Fabric, Outcome, Plan
from opticoll.plot import style
from opticoll_papers import plots
from opticoll_papers.common import Results, TableRow
from opticoll_papers.judging import Computed

ALGORITHM = "halving_doubling"
BOTH_PLANES = "dual_plane_halving_doubling"

SIZES = (4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)
LARGEST_PLANNED = 4096
LARGEST_QUICK = 256

FIG_1 = (1024, 4096)
"""Numbers of nodes in the paper's Fig. 1."""

BUCKET = 25 * 2**20
SHOWN_BYTES = 256 * 1024


def sides(nodes: int) -> tuple[int, int]:
    """Returns the numbers of rows and columns: powers of two, as equal as possible."""
    rows = 2 ** (int(math.log2(nodes)) // 2)
    return rows, nodes // rows


def grid(nodes: int, options: str = "") -> str:
    """Returns the specification of the grid, with further `options`."""
    rows, columns = sides(nodes)
    return f"wss_grid:rows={rows},columns={columns}{options}"


PROVED = "Constructed and verified."
DELAYS = ",control=500ns,lock=100ns,latency=500ns"


@cache
def proved(fabric: str, algorithm: str = ALGORITHM) -> Plan:
    """Returns a verified plan of an all_reduce."""
    plan = opticoll.plan("all_reduce", fabric, algorithm)
    violations = plan.verify()
    assert not violations, violations
    return plan


def switches(results: Results, *, quick: bool) -> dict[str, Computed]:
    """Counts switches, ports and the resources of an all_reduce; writes switches.csv."""
    rows: list[TableRow] = []
    for nodes in SIZES:
        row_count, columns = sides(nodes)
        fabric = Fabric(grid(nodes, ",plan=xor"))
        assert (fabric.option("rows"), fabric.option("columns")) == (row_count, columns)
        row: TableRow = {
            "nodes": nodes,
            "rows": row_count,
            "columns": columns,
            # Each row has a switch, and each column has a switch.
            "switches": row_count + columns,
            "ports": max(row_count, columns),
            "any_pair_wavelengths": max(row_count, columns) - 1,
            "steps": None,
            "retunes": None,
            "wavelengths": None,
        }
        if nodes <= (LARGEST_QUICK if quick else LARGEST_PLANNED):
            plan = proved(fabric.spec)
            outcome = plan.simulate(SHOWN_BYTES)
            row |= {
                "steps": plan.slots,
                "retunes": outcome.reconfigurations // nodes,
                "wavelengths": plan.wavelengths_used,
            }
        rows.append(row)
    results.write("switches", rows)
    results.show(
        "Switches of a grid of N nodes, and what halving and doubling needs there (switches.csv); "
        "retunes: of each node; -: not planned",
        ["N", "grid", "switches", "ports", "steps", "retunes", "wavelengths"],
        [
            [
                row["nodes"],
                f"{row['rows']} x {row['columns']}",
                row["switches"],
                row["ports"],
                row["steps"],
                row["retunes"],
                row["wavelengths"],
            ]
            for row in rows
        ],
        left=(1,),
    )
    by_nodes = {row["nodes"]: row for row in rows}
    counts = {nodes: (by_nodes[nodes]["switches"], by_nodes[nodes]["ports"]) for nodes in FIG_1}
    steps = {nodes: row["steps"] for nodes, row in by_nodes.items() if row["steps"] is not None}
    computed = {f"switches.{nodes}": Computed(count) for nodes, count in counts.items()}
    computed |= {
        "grid.scalability": Computed(FIG_1[0] / counts[FIG_1[0]][1]),
        "hd.steps": Computed(
            tuple(count for nodes, count in steps.items() if nodes <= LARGEST_QUICK), PROVED
        ),
    }
    large = tuple(steps[nodes] for nodes in steps if nodes > LARGEST_QUICK)
    return computed | ({"hd.steps_large": Computed(large, PROVED)} if large else {})


def rings() -> dict[str, Computed]:
    """Compares ring with halving and doubling, in steps, and in time on many ranks."""
    ratios = []
    for nodes in (16, 64, 256, 1024):
        switch = f"crossbar:ranks={nodes},rate=100Gb/s,latency=250ns"
        ring, halving = (
            proved(switch, name).simulate(BUCKET).time_ps for name in ("ring", ALGORITHM)
        )
        ratios.append(ring / halving)
    steps = {
        nodes: tuple(proved(grid(nodes), name).slots for name in ("ring", ALGORITHM))
        for nodes in (4, 16, 64, 256)
    }
    shown = ", ".join(f"{ratio:.4g}" for ratio in ratios)
    return {
        "ring.steps": Computed(tuple(ring for ring, _ in steps.values()), PROVED),
        "hd.efficient.time": Computed(
            min(ratios), f"On 16, 64, 256 and 1024 nodes it is {shown} times as fast."
        ),
        "hd.efficient": Computed(
            min(ring / halving for ring, halving in steps.values()),
            "N = 4, 16, 64, 256: " + ", ".join(f"{a} and {b}" for a, b in steps.values()) + ".",
        ),
        "ring.efficiency": Computed(
            min(after / before for before, after in pairwise(ratios)),
            f"On 16, 64, 256 and 1024 nodes it takes {shown} times as long.",
        ),
    }


def fat_trees() -> dict[str, Computed]:
    """Compares the slowest exchange on fat trees with an exchange over a single switch."""

    def exchanges(fabric: str) -> list[int]:
        plan = proved(fabric, f"{ALGORITHM}:order=far")
        slots = plan.simulate(BUCKET).slots
        return [slot["end_ps"] - slot["start_ps"] for slot in slots]

    behind = exchanges("crossbar:ranks=256,rate=100Gb/s,latency=250ns")
    ratio_by_uplinks = {}
    for up in (4, 16):
        times = exchanges(f"fat_tree:down=16x16,up=1x{up},rate=100Gb/s,latency=250ns")
        ratios = [own / ideal for own, ideal in zip(times, behind, strict=True)]
        # The time of small exchanges is the latency of cables; a tree has twice as many on a route.
        ratio_by_uplinks[up] = max(
            ratio for ratio, ideal in zip(ratios, behind, strict=True) if ideal > 10**8
        )
    return {
        "fat_tree.contention": Computed(
            ratio_by_uplinks[4],
            f"With an uplink for each node: {ratio_by_uplinks[16]:.4g} times as long.",
        )
    }


def dimensions() -> dict[str, Computed]:
    """Computes the gain of two dimensions, and whether all exchanges need one hop only."""
    one_dimension_ps = proved(f"wss_grid:rows=1,columns=16{DELAYS}").simulate(BUCKET).time_ps
    two = proved(grid(16, DELAYS)).simulate(BUCKET).time_ps
    both = proved(grid(16, DELAYS), BOTH_PLANES).simulate(BUCKET).time_ps
    powers = ((1, 8), (2, 8), (8, 2), (4, 4), (4, 16), (16, 16))
    hops = [_direct(f"wss_grid:rows={n},columns={m},plan=xor", m) for n, m in powers]
    direct, total = (sum(count) for count in zip(*hops, strict=True))
    others = [_direct(f"wss_grid:rows=3,columns={m}", m) for m in (4, 5)]
    planes = set(proved(grid(256)).columns()["plane"].tolist())
    return {
        "grid.ports": Computed(len(planes)),
        "grid.performance": Computed(
            one_dimension_ps / two,
            "With both dimensions at once, an algorithm of opticoll and not of the paper, it is "
            f"{one_dimension_ps / both:.3g} times as fast.",
        ),
        "grid.powers": Computed(
            sum(n & (n - 1) == 0 and m & (m - 1) == 0 for n, m in powers) / len(powers),
            "On 3 x 4 and 3 x 5 nodes "
            + " and ".join(f"{one_dimension_ps} of {of}" for one_dimension_ps, of in others)
            + " transfers of opticoll's plan take one hop.",
        ),
        "one_hop": Computed(direct / total, f"{total} transfers. {PROVED}"),
    }


def _direct(fabric: str, columns: int) -> tuple[int, int]:
    """Returns the number of transfers within a row or column, and the number of all transfers."""
    ends = proved(fabric).columns()
    pairs = list(zip(ends["source"].tolist(), ends["destination"].tolist(), strict=True))
    staying = sum(
        source // columns == destination // columns or source % columns == destination % columns
        for source, destination in pairs
    )
    return staying, len(pairs)


def partners() -> dict[str, Computed]:
    """Computes Fig. 2: the partners of node 1 of 8, with their wavelengths."""
    plan = proved("wss_grid:rows=1,columns=8,plan=xor", f"{ALGORITHM}:order=far")
    columns = plan.columns()
    met: list[int] = []
    lit: list[int] = []
    for source, destination, wavelength in zip(
        columns["source"].tolist(),
        columns["destination"].tolist(),
        columns["wavelength"].tolist(),
        strict=True,
    ):
        if source == 0 and (not met or met[-1] != destination + 1):
            met.append(destination + 1)
            lit.append(wavelength + 1)
    first = list(dict.fromkeys(lit))
    circuits = plan.simulate(SHOWN_BYTES).reconfigurations // 8
    return {
        "fig2.partners": Computed(
            tuple(met), f"The simulation of the protocol counts {circuits} circuits. {PROVED}"
        ),
        "fig2.wavelengths": Computed(
            tuple(first.index(number) + 1 for number in lit),
            f"The plan uses {plan.wavelengths_used} wavelengths. {PROVED}",
        ),
        "fig2.names": Computed(tuple(lit)),
    }


def timeline(results: Results) -> dict[str, Computed]:
    """Draws the wavelength of each port over time; writes timeline.csv, .svg and .png."""
    fabric = grid(16, f",plan=xor{DELAYS}")
    names = {ALGORITHM: "one plane at a time", BOTH_PLANES: "both planes at once"}
    rows: list[TableRow] = []
    panels = []
    for algorithm, words in names.items():
        outcome = proved(fabric, algorithm).simulate(SHOWN_BYTES)
        flows = _flows(outcome)
        panels.append(plots.PortPanel(f"{style.algorithm_name(algorithm)}: {words}", 16, flows))
        rows += [{"algorithm": algorithm, **vars(flow)} for flow in flows]
    results.write("timeline", rows)
    title = "all_reduce, 256 KiB, 4 x 4 nodes, rate 100 Gb/s, 500 ns per control message"
    results.draw("timeline", plots.port_timeline, panels, title=title)
    return {}


def _flows(outcome: Outcome) -> list[plots.Flow]:
    return [
        plots.Flow(
            source=flow["source"],
            plane=flow["plane"],
            wavelength=flow["wavelength"],
            asked_s=flow["begin_ps"] / 1e12,
            start_s=flow["start_ps"] / 1e12,
            sent_s=flow["sent_ps"] / 1e12,
        )
        for flow in outcome.flows
    ]


def control() -> dict[str, Computed]:
    """Computes the growth of control messages and latency with the size of the system."""
    small, large = 16, 256
    runs = {nodes: proved(grid(nodes, DELAYS)).simulate(0) for nodes in (small, large)}
    each = {nodes: run.control_messages_per_rank for nodes, run in runs.items()}
    total = {nodes: run.control_messages for nodes, run in runs.items()}
    waits = {
        nodes: run.time_ps / len(proved(grid(nodes)).step_slots) for nodes, run in runs.items()
    }
    switch = proved(f"crossbar:ranks={large},rate=100Gb/s,latency=250ns")
    behind = switch.simulate(0).time_ps / switch.slots

    def exponent(overhead: dict[int, int]) -> float:
        return math.log(overhead[large] / overhead[small]) / math.log(large / small)

    def waiting(options: str) -> str:
        times = {
            nodes: proved(grid(nodes, DELAYS + options)).simulate(0) for nodes in (small, large)
        }
        spent = {nodes: run.path_control_ps + run.path_waiting_ps for nodes, run in times.items()}
        return (
            f"{spent[small] / 1e6:.4g} to {spent[large] / 1e6:.4g} us "
            f"(exponent {exponent(spent):.3f})"
        )

    return {
        "control.ends": Computed(
            total[small] / runs[small].reconfigurations,
            "Messages of a circuit.",
        ),
        "control.growth": Computed(
            exponent(each),
            f"A node sends {each[small]} to {each[large]} messages. An all_reduce spends "
            f"{waiting('')} on requests and grants; with one central controller that takes 100 ns "
            f"for each message, {waiting(',controller=100ns')}.",
        ),
        "latency.low": Computed(waits[large] / behind),
        "latency.constant": Computed(
            waits[large] / waits[small],
            f"{waits[small] / 1e6:.3g} and {waits[large] / 1e6:.3g} us: of 2 log2 N exchanges the "
            "one in the middle needs no new circuit, and its share falls as N grows.",
        ),
    }
