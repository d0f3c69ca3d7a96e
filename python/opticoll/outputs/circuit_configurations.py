"""Configurations of a plan's circuits: sets of circuits that are up at the same time.

>>> import opticoll
>>> plan = opticoll.plan("all_gather", "circuit_switch:ranks=4", "ring", size="1KiB")
>>> [(one.first, one.last, one.peers) for one in configurations(plan)]
[(0, 2, {(0, 0): 1, (1, 0): 2, (2, 0): 3, (3, 0): 0})]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from opticoll._core import BESIDE, Plan


@dataclass(frozen=True)
class CircuitConfiguration:
    """Configuration: circuits that are up at the same time, and the first and last of its slots."""

    first: int
    last: int
    peers: dict[tuple[int, int], int]
    """Rank at the other end, by rank and port; for one-way circuits by the sending rank and
    port."""


def configurations(plan: Plan) -> list[CircuitConfiguration]:
    """Returns a plan's configurations: maximal ranges of slots without a change of circuits."""
    listed: list[CircuitConfiguration] = []
    current: dict[tuple[str, int, int], int] = {}
    for slot in range(plan.slots):
        peers, ends = circuits(plan, slot)
        if not peers:
            continue
        if listed and all(current.get(port, peer) == peer for port, peer in ends.items()):
            last = listed[-1]
            listed[-1] = CircuitConfiguration(last.first, slot, last.peers | peers)
            current |= ends
        else:
            listed.append(CircuitConfiguration(slot, slot, peers))
            current = ends
    return listed


def circuits(
    plan: Plan, slot: int
) -> tuple[dict[tuple[int, int], int], dict[tuple[str, int, int], int]]:
    """Returns the rank at the other end of each port that a slot uses.

    The first dictionary has the ports that figures show, the second has all ports.
    """
    hops = plan.hop_columns(slot)
    one_way = len(hops["transfer"]) > 0
    columns = hops if one_way else plan.slot_columns(slot)
    over_ports = columns["source_port"] != BESIDE
    columns = {name: values[over_ports] for name, values in columns.items()}
    out = dict(zip(_ends(columns, "source"), columns["destination"].tolist(), strict=True))
    into = dict(zip(_ends(columns, "destination"), columns["source"].tolist(), strict=True))
    if not one_way:
        peers = out | into
        return peers, {("both", *port): peer for port, peer in peers.items()}
    ends = {("out", *port): peer for port, peer in out.items()}
    return out, ends | {("in", *port): peer for port, peer in into.items()}


def _ends(columns: dict[str, Any], rank: str) -> list[tuple[int, int]]:
    return list(zip(columns[rank].tolist(), columns[f"{rank}_port"].tolist(), strict=True))
