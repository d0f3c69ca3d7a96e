"""Electrical fabrics: their links do not matter, since any rank may send to any other.

How many ranks their options make, the core must say; most options are known by name only.
"""

from __future__ import annotations

from collections.abc import Iterator

from opticoll.reference.plan import Fabric, Plan, Problem, Transfers
from opticoll.reference.words import Check, rate, time


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
    "torus": named("dims") | TERMINALS | CABLES,
    "mesh": named("dims") | TERMINALS | CABLES,
    "ladder": named("rungs") | TERMINALS | CABLES,
    "electrical_ring": named("ranks") | CABLES,
    "fully_connected": named("ranks") | CABLES,
    "gpu_servers": named("model", "boxes") | {"latency": time},
    "custom": named("ranks", "switches", "links", "names", "ties", "rate", "latency", "sharing"),
}


class Links(Fabric):
    """A fabric without light."""

    def __init__(self, options: dict[str, str]) -> None:
        """Of the options none matters."""

    def wrong_slots(self, plan: Plan, transfers: Transfers) -> Iterator[Problem]:
        for step, slots in enumerate(plan.steps):
            if slots != 1:
                sentence = f"step {step} takes {slots} slots, but there is no light to wait for"
                yield Problem("step_order", sentence)
