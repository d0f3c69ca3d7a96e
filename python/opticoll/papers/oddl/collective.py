"""One all_reduce on ODDL's grid: switches, partners, wavelengths, control."""

from __future__ import annotations

import math
from functools import cache

import opticoll
from opticoll import Fabric, Outcome, Plan, plot
from opticoll.papers.kit import Finding, Results, TableRow, finding

ALGORITHM = "halving_doubling"
BOTH_PLANES = "dual_plane_halving_doubling"

PRINTED_SWITCHES = {1024: (64, 32), 4096: (128, 64)}
"""Nodes to the number of switches and their ports, section 2."""

SIZES = (4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)
LARGEST_PLANNED = 4096
LARGEST_QUICK = 256

SHOWN_BYTES = 256 * 1024


def sides(nodes: int) -> tuple[int, int]:
    """Rows and columns, both powers of two, as equal as they can be."""
    rows = 2 ** (int(math.log2(nodes)) // 2)
    return rows, nodes // rows


def grid(nodes: int, options: str = "") -> str:
    """The spelling of the fabric."""
    rows, columns = sides(nodes)
    return f"wss_grid:rows={rows},columns={columns}{options}"


@cache
def proved(fabric: str, algorithm: str = ALGORITHM) -> tuple[Plan, bool]:
    """A plan, and whether it is verified."""
    plan = opticoll.plan("all_reduce", fabric, algorithm)
    return plan, not plan.verify()


def switches(results: Results, *, quick: bool) -> list[Finding]:
    """How many switches of how many ports, and what an all_reduce needs; writes switches.csv."""
    rows: list[TableRow] = []
    for nodes in SIZES:
        row_count, columns = sides(nodes)
        fabric = Fabric(grid(nodes, ",plan=xor"))
        assert (fabric.option("rows"), fabric.option("columns")) == (row_count, columns)
        row: TableRow = {
            "nodes": nodes,
            "rows": row_count,
            "columns": columns,
            # A switch for each row and one for each column.
            "switches": row_count + columns,
            "ports": max(row_count, columns),
            "any_pair_wavelengths": max(row_count, columns) - 1,
            "steps": None,
            "retunes": None,
            "wavelengths": None,
            "verified": None,
        }
        if nodes <= (LARGEST_QUICK if quick else LARGEST_PLANNED):
            plan, verified = proved(fabric.spec)
            outcome = plan.simulate(SHOWN_BYTES)
            row |= {
                "steps": plan.slots,
                "retunes": outcome.reconfigurations // nodes,
                "wavelengths": plan.wavelengths_used,
                "verified": verified,
            }
        rows.append(row)
    results.write("switches", rows)
    results.show(
        "Switches of a grid of N nodes, and what halving and doubling needs there (switches.csv); "
        "retunes: of each node; -: not planned",
        ["N", "grid", "switches", "ports", "steps", "retunes", "wavelengths", "verified"],
        [
            [
                row["nodes"],
                f"{row['rows']} x {row['columns']}",
                row["switches"],
                row["ports"],
                row["steps"],
                row["retunes"],
                row["wavelengths"],
                row["verified"],
            ]
            for row in rows
        ],
        left=(1, 7),
    )
    return [*_printed_switches(rows), *_steps(rows)]


def _printed_switches(rows: list[TableRow]) -> list[Finding]:
    findings = []
    by_nodes = {row["nodes"]: row for row in rows}
    for nodes, (count, ports) in PRINTED_SWITCHES.items():
        row = by_nodes[nodes]
        same = (row["switches"], row["ports"]) == (count, ports)
        findings.append(
            finding(
                f"switches.{nodes}",
                f"{count} of {ports} ports",
                f"{row['switches']} of {row['ports']} ports",
                "switches",
                same,
                f"A grid of {row['rows']} x {row['columns']}: a switch for each row and one for "
                "each column.",
            )
        )
    return findings


def _steps(rows: list[TableRow]) -> list[Finding]:
    planned = [row for row in rows if row["steps"] is not None]
    proved_steps = [
        row for row in planned if row["verified"] and row["steps"] == 2 * math.log2(row["nodes"])
    ]
    retuned = [row for row in proved_steps if row["retunes"] == row["steps"] - 1]
    return [
        finding(
            "one_hop",
            "2 log2 N steps, one hop each",
            f"{len(proved_steps)} of {len(planned)} sizes",
            "sizes",
            len(proved_steps) == len(planned),
            f"Halving and doubling for N = {planned[0]['nodes']} to {planned[-1]['nodes']}, "
            "constructed and verified: each exchange is one light path through one switch.",
        ),
        finding(
            "retunes",
            None,
            f"{len(retuned)} of {len(planned)} sizes",
            "sizes with 2 log2 N - 1 retunes",
            len(retuned) == len(planned),
            "The last exchange of reduce_scatter and the first of all_gather have the same "
            "partner: the paper's example changes the wavelength that way too.",
        ),
    ]


def partners() -> list[Finding]:
    """Fig. 2: whom node 1 of 8 meets, and on which wavelength."""
    plan, verified = proved("wss_grid:rows=1,columns=8,plan=xor", f"{ALGORITHM}:order=far")
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
            lit.append(wavelength)
    proof = "constructed and verified" if verified else "constructed, but fails verification"
    found = ", ".join(str(node) for node in met)
    # The paper's numbers of wavelengths, by the distance that they span.
    named = {4: 2, 2: 3, 1: 1}
    printed = [2, 3, 1, 3, 2]
    by_distance = {wavelength: node - 1 for node, wavelength in zip(met, lit, strict=True)}
    renamed = [named.get(by_distance[wavelength]) for wavelength in lit]
    return [
        finding(
            "partners",
            "5, 3, 2, 3, 5",
            found,
            "partners of node 1 of 8",
            found == "5, 3, 2, 3, 5" and verified,
            f"Section 2 and Fig. 2: halving and doubling, far partners first; {proof}.",
        ),
        finding(
            "wavelengths",
            "2, 3, 1, 3, 2",
            ", ".join(str(number) for number in renamed),
            "wavelengths of node 1 of 8",
            renamed == printed and len(by_distance) == 3,
            "A wavelength for each distance, under the paper's names: all nodes at once are paired "
            "by one wavelength, so that log2 N of them do.",
        ),
    ]


def timeline(results: Results) -> list[Finding]:
    """Which port is on which wavelength when; writes timeline.csv, .svg, .png."""
    fabric = grid(16, ",plan=xor,control=500ns,lock=100ns,latency=500ns")
    names = {ALGORITHM: "one plane at a time", BOTH_PLANES: "both planes at once"}
    rows: list[TableRow] = []
    panels = []
    for algorithm, words in names.items():
        plan, verified = proved(fabric, algorithm)
        assert verified, algorithm
        outcome = plan.simulate(SHOWN_BYTES)
        flows = _flows(outcome)
        panels.append(plot.PortPanel(f"{algorithm}: {words}", 16, flows))
        rows += [{"algorithm": algorithm, **vars(flow)} for flow in flows]
    results.write("timeline", rows)
    title = "all_reduce of 256 KiB on 4 x 4 nodes, 100 Gb/s, control 500 ns a message"
    results.draw("timeline", plot.port_timeline, panels, title=title)
    return []


def _flows(outcome: Outcome) -> list[plot.Flow]:
    return [
        plot.Flow(
            source=flow["source"],
            plane=flow["plane"],
            wavelength=flow["wavelength"],
            asked_s=flow["begin_ps"] / 1e12,
            start_s=flow["start_ps"] / 1e12,
            sent_s=flow["sent_ps"] / 1e12,
        )
        for flow in outcome.flows
    ]


def control(*, quick: bool) -> list[Finding]:
    """How control messages and latency grow with the system."""
    small, large = 16, LARGEST_QUICK if quick else LARGEST_PLANNED
    messages, waits = {}, {}
    for nodes in (small, large):
        plan, _ = proved(grid(nodes, ",control=500ns,lock=100ns,latency=500ns"))
        outcome = plan.simulate(0)
        messages[nodes] = outcome.control_messages_per_rank
        waits[nodes] = outcome.time_ps / plan.slots / 1e6
    growth = messages[large] / messages[small]
    return [
        finding(
            "control.messages",
            "slower than linearly",
            f"{messages[small]} to {messages[large]}",
            "control messages of a node",
            growth < large / small,
            f"One all_reduce on {small} and on {large} nodes: {large // small} times the nodes, "
            f"{growth:.3g} times the messages of each, as 2 log2 N - 1 circuits need.",
        ),
        finding(
            "latency",
            "consistently low",
            f"{waits[small]:.3g} to {waits[large]:.3g}",
            "us for an exchange without data",
            waits[large] < 1.1 * waits[small],
            f"On {small} and on {large} nodes, at 500 ns a control message and 500 ns a hop: one "
            "hop through one switch, whatever the size. The number of exchanges grows with log N.",
        ),
    ]
