"""Collectives whose lightpaths bursts may block: the value of retries and placements."""

from __future__ import annotations

import os
from functools import partial

import opticoll
from opticoll_papers.common import Results, TableRow, ratio, share
from opticoll_papers.judging import Computed

LOADED = "wdm_ladder:rungs=5,hosts=10,wavelengths=10,rate=10Gb/s"
OWN = "wdm_ladder:rungs=5,hosts=10,wavelengths=28,rate=10Gb/s"
TESTBED = (
    "wdm_graph:ranks=6,switches=4,links=0-6+1-6+2-7+3-7+4-8+5-9+6-7+7-8+8-9+9-6,rate=10Gb/s,"
    "wavelengths=4"
)
"""Network of six hosts on four nodes, which are vertices 6 to 9, in a ring."""

INTENSITY, OWN_INTENSITY = 0.6, 0.9
SIZE = 10**5
REPLICATIONS, QUICK_REPLICATIONS = 100, 10
RETRIES = 20

CASES = {
    "ring": ("all_gather", "ring", 2, RETRIES, "natural", INTENSITY),
    "ring, no bursts": ("all_gather", "ring", 2, RETRIES, "natural", 0.0),
    "ring, no retries": ("all_gather", "ring", 2, 0, "natural", INTENSITY),
    "tree": ("broadcast", "binomial", 2, RETRIES, "natural", INTENSITY),
    "tree, no retries": ("broadcast", "binomial", 2, 0, "natural", INTENSITY),
    "tree, least loaded, no retries": ("broadcast", "binomial", 2, 0, "natural", INTENSITY),
    "ring, own ladder, no retries": ("all_gather", "ring", 2, 0, "natural", OWN_INTENSITY),
    "tree, own ladder, no retries": ("broadcast", "binomial", 2, 0, "natural", OWN_INTENSITY),
    "ring, one port, no retries": ("all_gather", "ring", 1, 0, "natural", INTENSITY),
    "linear, no retries": ("broadcast", "linear", 1, 0, "natural", INTENSITY),
    "linear, two ports, no retries": ("broadcast", "linear", 2, 0, "natural", INTENSITY),
    "tree, natural": ("broadcast", "binomial", 2, RETRIES, "natural", INTENSITY),
    "tree, spread": ("broadcast", "binomial", 2, RETRIES, "spread", INTENSITY),
    "tree, best": ("broadcast", "binomial", 2, RETRIES, "best", INTENSITY),
}
"""Cases by name: collective, algorithm, ports, retries, placement and offered load of bursts.

Placements are compared with the policy `degrade`, which waits least. `least loaded` has the
placement of the case with the shortest routes."""


def run(results: Results, *, quick: bool) -> dict[str, Computed]:
    """Simulates collectives with background bursts; writes congestion.csv.

    A quick run has fewer replications, and omits claims that need more.
    """
    replications = QUICK_REPLICATIONS if quick else REPLICATIONS
    rows = {
        name: results.rows(
            {"congestion": name, "replications": replications},
            partial(_carried_out, name, replications),
        )[0]
        for name in CASES
    }
    results.write("congestion", list(rows.values()))
    results.show(
        f"100 ranks on a ladder of 100 hosts, 10 wavelengths, bursts at {INTENSITY} beside; "
        f"{replications} replications (congestion.csv)",
        ["case", "failed", "blocked", "time (ms)", "longest (ms)"],
        [
            [
                name,
                row["failed"],
                f"{row['blocked']:.3g}",
                *(
                    None if row[key] is None else f"{1000 * row[key]:.4g}"
                    for key in ("time_s", "longest_s")
                ),
            ]
            for name, row in rows.items()
        ],
    )
    ring, tree = (rows[f"{name}, no retries"] for name in ("ring", "tree"))
    own = [rows[f"{name}, own ladder, no retries"] for name in ("ring", "tree")]
    # Without retries, the first blocked setup ends the replication.
    met, own_met = (
        [round(row["blocked"] * replications) for row in pair] for pair in ((ring, tree), own)
    )
    failed = [row["failed"] for row in (ring, tree)]
    linear = rows["linear, no retries"]
    # Every setup that was performed had been granted before.
    blocked_share = [row["blocked"] / (row["phases"] + row["blocked"]) for row in (ring, linear)]
    requests = [round(replications * (row["phases"] + row["blocked"])) for row in (ring, linear)]
    best_placement_s = rows["tree, best"]["time_s"]
    computed = {
        "congestion.blocked": share(
            sum(met),
            2 * replications,
            f"Of {replications} each, {met[0]} rings and {met[1]} trees.",
        ),
        "congestion.blocked_own": share(
            sum(own_met),
            2 * replications,
            f"Of {replications} each, {own_met[0]} rings and {own_met[1]} trees.",
        ),
        "congestion.fails": Computed(100 * sum(failed) / sum(met)),
        "congestion.multiple_request": ratio(
            (blocked_share[0], blocked_share[1]),
            (requests[0], requests[1]),
            f"{blocked_share[0]:.1%} and {blocked_share[1]:.2%} of requests.",
        ),
        "congestion.retry": share(
            sum(rows[name]["failed"] for name in ("ring", "tree")),
            2 * replications,
            f"{RETRIES} retries; without, {sum(failed)} of {2 * replications} fail.",
        ),
    }
    if quick:
        return computed
    pairs = {
        "congestion.multiple": (rows["ring, one port, no retries"], linear),
        "congestion.multiple.two_ports": (ring, rows["linear, two ports, no retries"]),
        "congestion.allocation": (tree, rows["tree, least loaded, no retries"]),
    }
    placed = tuple(
        rows[f"tree, {name}"]["time_s"] / best_placement_s for name in ("natural", "spread")
    )
    return (
        computed
        | {id: _times_failures(*pair, replications) for id, pair in pairs.items()}
        | {"congestion.allocation.placement": Computed(placed)}
    )


def _times_failures(first: TableRow, second: TableRow, replications: int) -> Computed:
    """Returns how many times as often the first case fails as the second case."""
    return ratio(
        (first["failed"] / replications, second["failed"] / replications),
        (replications, replications),
        f"{first['failed']} and {second['failed']} of {replications} each fail.",
    )


def _carried_out(name: str, replications: int) -> list[TableRow]:
    """Simulates a case, and checks that every replication is verified."""
    collective, algorithm, ports, retries, placement, intensity = CASES[name]
    row = opticoll.congestion(
        collective,
        OWN if "own ladder" in name else LOADED,
        algorithm=algorithm,
        size=SIZE,
        placement=placement,
        offered_load=intensity,
        settings={
            "ports": str(ports),
            "retries": str(retries),
            "congestion": "degrade" if name.startswith("tree, ") and retries else "all_or_nothing",
            "replications": str(replications),
            **({"routing": "least_loaded"} if "least loaded" in name else {}),
        },
        threads=os.cpu_count() or 1,
    )
    assert row.verified, name
    keys = ("algorithm", "ports", "placement", "offered_load", "congestion", "failed", "blocked")
    shown = {key: row[key] for key in (*keys, "time_s", "longest_s", "phases", "burst_loss")}
    return [{"case": name, "retries": retries, **shown}]


def testbed() -> dict[str, Computed]:
    """Computes four nodes like the paper's testbed, under the claims' reading."""
    ring = opticoll.congestion(
        "all_gather", TESTBED, algorithm="ring", size=SIZE, settings={"ports": "2"}
    )
    assert ring.verified
    assert ring.time_s is not None
    effort = {"offered_load": "0.9", "bursts": "2e5", "warm_up": "1e4"}
    assigned = opticoll.bursts(TESTBED, effort)
    blind = opticoll.bursts(TESTBED, {**effort, "signalling": "jet", "assignment": "random"})
    vertices = len({end for link in assigned.links for end in link["link"].split(" -> ")})
    return {
        "testbed.nodes": Computed((vertices - ring.ranks, ring.ranks)),
        "testbed.assignment": Computed(
            blind.loss_low / assigned.loss_high,
            f"{blind.lost} and {assigned.lost} of {assigned.bursts} bursts; shares of at least "
            f"{blind.loss_low:.3g} and at most {assigned.loss_high:.3g}.",
        ),
        "goal.testbed": Computed(ring.time_s),
    }
