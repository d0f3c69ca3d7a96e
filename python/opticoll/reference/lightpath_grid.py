"""Grids of lightpaths: a lightpath connects a port of one rank to a port of another rank.

The light of a transfer names both ports: `copy 5 0>4 0.1` uses port 0 of rank 0 and port 1 of
rank 4.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from opticoll.reference import loss
from opticoll.reference.plan import Fabric, Plan, Problem, Transfers
from opticoll.reference.words import RANKS, Check, count, rate, time, whole

LOSSES = ("fixed_loss",)
OPTIONS: dict[str, Check] = {
    "ranks": RANKS,
    "ports": count(2**8),
    "rate": rate,
    **dict.fromkeys(("latency", "setup", "teardown"), time),
    **loss.checks(*LOSSES),
}


class LightpathGrid(Fabric):
    """Grid of lightpaths; all ranks have the same number of ports."""

    def __init__(self, options: dict[str, str]) -> None:
        self.ranks = whole(options["ranks"])
        self.ports = whole(options.get("ports", "1"))
        loss.expect_arrival(options, *LOSSES)

    def read_light(self, words: list[str], over: list[str]) -> tuple[tuple[int, int], list[str]]:
        source, _, destination = words[0].partition(".")
        return (whole(source, 2**8 - 1), whole(destination, 2**16 - 1)), words[1:]

    def wrong_slots(self, plan: Plan, transfers: Transfers) -> Iterator[Problem]:
        """Yields a problem for each port that does not exist or has several lightpaths in a slot.

        A lightpath serves both directions. In a slot, a rank needs a port for each partner.
        """
        others: dict[tuple[int, int, int], set[tuple[int, int]]] = defaultdict(set)
        for transfer in transfers.values():
            ends = transfer.source, transfer.destination
            source, destination = zip(ends, transfer.light, strict=True)
            others[transfer.slot, *source].add(destination)
            others[transfer.slot, *destination].add(source)
        for (slot, rank, port), led in sorted(others.items()):
            place = f"slot {slot}: port {port} of rank {rank}"
            if port >= self.ports:
                yield Problem("ports", f"{place} does not exist: there are {self.ports}")
            if len(led) > 1:
                to = ", ".join(
                    f"port {peer_port} of rank {peer}" for peer, peer_port in sorted(led)
                )
                yield Problem("ports", f"{place} has paths to {to} at once")
