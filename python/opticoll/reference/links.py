"""Electrical fabrics: any rank may send to any other; links matter only where a plan names them.

How many ranks their options make and which links, the core must say; most options are known by name
only.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from opticoll.reference.plan import Fabric, Plan, Problem, Transfer, Transfers
from opticoll.reference.words import Check, rate, time, whole


def named(*options: str) -> dict[str, Check]:
    return dict.fromkeys(options, len)


CABLES = {"rate": rate, "latency": time, **named("duplex", "sharing")}
TERMINALS = named("terminals", "terminal_rate", "terminal_latency")
OPTIONS: dict[str, dict[str, Check]] = {
    "crossbar": named("ranks") | CABLES,
    # Here rates and latencies may be lists.
    "fat_tree": named("down", "up", "links", "arity", "levels", "taper", *CABLES),
    "dragonfly": named(
        *("terminals_per_router", "routers_per_group", "global_per_router", "groups"),
        *("arrangement", "routing", "seed", "terminal_rate", "terminal_latency"),
        *("local_rate", "local_latency", "global_rate", "global_latency"),
    )
    | CABLES,
    "torus": named("dims", *CABLES) | TERMINALS,
    "mesh": named("dims", *CABLES) | TERMINALS,
    "ladder": named("rungs", *CABLES) | TERMINALS,
    "electrical_ring": named("ranks", *CABLES),
    "ocs_torus": named("dims", "cube", "twisted", "spares", "ports") | CABLES,
    "fully_connected": named("ranks") | CABLES,
    "gpu_servers": named("model", "boxes") | {"latency": time},
    "custom": named("ranks", "switches", "links", "names", "ties", "rate", "latency", "sharing"),
}
for own in OPTIONS.values():
    own.update(named("without", "degraded", "members"))


class Links(Fabric):
    """A fabric without light."""

    def __init__(self, options: dict[str, str]) -> None:
        """Of the options none matters."""

    def read_light(self, words: list[str], over: list[str]) -> tuple[Any, list[str]]:
        """In place of light, the numbers of the links of `via 3.7.12`."""
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
        """Follow a route from link to link; what is said first stops it."""
        here = transfer.source
        for link in transfer.light:
            if link >= len(self.wiring):
                yield f"goes over link {link}, which is not known here"
                return
            start, end, both_ways = self.wiring[link]
            if here == start:
                here = end
            elif here == end and both_ways:
                here = start
            else:
                yield f"goes over link {link}, which does not leave vertex {here}"
                return
        if here != transfer.destination:
            yield f"ends at vertex {here}, not where its route should"
