"""GPU servers joined by another fabric: copies of this outside fabric, and packets in servers.

With rails, the GPUs that have the same number in their servers are on one copy of the outside, a
rail, where server s is rank s. In the layout `flat`, all GPUs are on one copy. If the outside has
light, a transfer is in `packet`, between GPUs of one server, or it has light of the outside and
stays on one copy.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from opticoll.reference import circuit_switch, graph, links, ring
from opticoll.reference.plan import Fabric, Plan, Problem, Transfer, Transfers
from opticoll.reference.words import Check, expect, one_of, whole

OPTIONS: dict[str, Check] = {
    **links.OPTIONS["gpu_servers"],
    "outside": len,
    "layout": one_of("rails", "flat"),
}

PACKET = "packet"
"""Light of a message within a server."""

LIT_FABRICS = (ring.Ring, graph.Graph, circuit_switch.CircuitSwitch)
"""Fabrics whose light may join servers."""


def servers(read_fabric: Callable[[str], Fabric], options: dict[str, str]) -> Fabric:
    """Returns the fabric; `read_fabric` reads the specification of the outside."""
    if "outside" not in options:
        expect("layout" not in options, "layout goes with outside")
        return links.checked("gpu_servers", options)
    expect("network_latency" not in options, "the outside has latencies of its own")
    expect(options["model"] in links.SWITCHED, "boxes of this model have no switch")
    ranks = links.ranks_of_servers(options)
    boxes = whole(options.get("boxes", "1"))
    is_flat = options.get("layout") == "flat"
    outside = read_outside(read_fabric, options["outside"], ranks if is_flat else boxes)
    expect(boxes >= 2, "an outside joins two servers or more")
    expect(outside.ranks in (None, ranks if is_flat else boxes), "the outside has other ranks")
    if isinstance(outside, links.Links):
        return links.checked("gpu_servers", options)
    expect(isinstance(outside, LIT_FABRICS), "no light of this family joins servers")
    expect(not getattr(outside, "has_network", False), "there is a packet network already")
    for name in ("in_network", "library"):
        expect(options.get(name, "none") == "none", f"with light, {name} is none")
    expect(not links.COSTS.keys() & options.keys(), "with light, a call costs nothing")
    expect(not links.PARTS.keys() & options.keys(), "parts are those of the outside")
    return Servers(outside, ranks // boxes, ranks, is_flat=is_flat)


def read_outside(read_fabric: Callable[[str], Fabric], text: str, ranks: int) -> Fabric:
    """Returns the outside; its number of ranks need not be stated."""
    name = nested(text)
    with_ranks = f"{name}{',' if ':' in name else ':'}ranks={ranks}"
    if "ranks=" not in name:
        try:
            return read_fabric(with_ranks)
        except ValueError as error:
            if "has no option `ranks`" not in str(error):
                raise
    return read_fabric(name)


def nested(text: str) -> str:
    """Returns a specification with `:` and commas from a text with slashes in their places.

    A doubled slash, and the one of a rate such as `50GB/s`, are slashes of the specification.
    """
    kept = re.sub("//|(?<=[bB])/(?=s($|[/+@x]))", "\n", text)
    return kept.replace("/", ":", 1).replace("/", ",").replace("\n", "/")


class Servers(Fabric):
    """Servers that light joins."""

    def __init__(self, outside: Fabric, gpus: int, ranks: int, *, is_flat: bool) -> None:
        self.outside = outside
        self.gpus = gpus
        self.ranks = ranks
        self.is_flat = is_flat
        self.relays = outside.relays
        self.shifted = outside.shifted  # type: ignore[misc]

    def read_light(self, words: list[str], over: list[str]) -> tuple[Any, list[str]]:
        if words[:1] == [PACKET]:
            expect(not over, "packets are not relayed")
            return PACKET, words[1:]
        return self.outside.read_light(words, over)

    def wrong_light(self, light: Any) -> Iterator[Problem]:
        if light != PACKET:
            yield from self.outside.wrong_light(light)

    def place(self, rank: int) -> tuple[int, int]:
        """Returns the copy that a rank is on, and its number there."""
        return (0, rank) if self.is_flat else (rank % self.gpus, rank // self.gpus)

    def wrong_slots(self, plan: Plan, transfers: Transfers) -> Iterator[Problem]:
        copies: dict[int, Transfers] = {}
        for index, transfer in transfers.items():
            says = f"slot {transfer.slot}: transfer {plan.name(index)}"
            ends = (transfer.source, transfer.destination)
            if transfer.light == PACKET:
                if len({rank // self.gpus for rank in ends}) > 1:
                    yield Problem("path", f"{says} is a packet, and leaves its server")
                continue
            over = [relay.rank for relay in getattr(transfer.light, "relays", ())]
            if len({self.place(rank)[0] for rank in (*ends, *over)}) > 1:
                # On a graph of fibres, no route leads there.
                kind = "route" if isinstance(transfer.light, graph.Light) else "path"
                yield Problem(kind, f"{says} goes from one rail to another")
                continue
            copy, _ = self.place(transfer.source)
            copies.setdefault(copy, {})[index] = self.on_copy(transfer, copy)
        for on_copy in copies.values():
            # The list keeps the transfers of other copies, so that indices stay the same.
            moved = [on_copy.get(index, one) for index, one in enumerate(plan.transfers)]
            yield from self.outside.wrong_slots(replace(plan, transfers=moved), on_copy)

    def on_copy(self, transfer: Transfer, copy: int) -> Transfer:
        """Returns a transfer with the ranks and the links of the outside."""
        light = transfer.light
        if isinstance(light, graph.Light) and light.route is not None:
            first = copy * len(self.outside.network.links)  # type: ignore[attr-defined]
            # A link of another copy gets a number that the outside does not have.
            route = tuple(link - first if link >= first else 2**32 for link in light.route)
            light = light._replace(route=route)
        if isinstance(light, circuit_switch.Light):
            relays = (relay._replace(rank=self.place(relay.rank)[1]) for relay in light.relays)
            light = light._replace(relays=tuple(relays))
        source, destination = (
            self.place(rank)[1] for rank in (transfer.source, transfer.destination)
        )
        return replace(transfer, source=source, destination=destination, light=light)
