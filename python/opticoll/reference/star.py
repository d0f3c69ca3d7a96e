"""Passive stars: a coupler distributes the light of each rank to all ranks.

The light of a transfer is the wavelength, as in `copy 0 0>1 5`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import ClassVar, NamedTuple

from opticoll.reference import loss
from opticoll.reference.plan import Fabric, Plan, Problem, Transfers
from opticoll.reference.words import RANKS, Check, count, rate, time, whole

LOSSES = ("fixed_loss", "excess_loss")
OPTIONS: dict[str, Check] = {
    "ranks": RANKS,
    **dict.fromkeys(("wavelengths", "transmitters", "receivers"), count(2**12)),
    "rate": rate,
    **dict.fromkeys(("reconfiguration", "latency"), time),
    **loss.checks(*LOSSES),
}


class Light(NamedTuple):
    """Light of a transfer: its wavelength."""

    wavelength: int


class Star(Fabric):
    """Passive star with its numbers of transmitters and receivers per rank."""

    shifted: ClassVar = {"wavelength": 2**16 - 1}

    def __init__(self, options: dict[str, str]) -> None:
        self.ranks = whole(options["ranks"])
        self.wavelengths = whole(options["wavelengths"])
        self.transmitters = whole(options.get("transmitters", "1"))
        self.receivers = whole(options.get("receivers", "1"))
        loss.expect_arrival(options, *LOSSES, more=loss.of_splitter(self.ranks))

    def read_light(self, words: list[str], over: list[str]) -> tuple[Light, list[str]]:
        return Light(whole(words[0], self.shifted["wavelength"])), words[1:]

    def wrong_light(self, light: Light) -> Iterator[Problem]:
        if light.wavelength >= self.wavelengths:
            yield Problem("wavelength_range", f"is on wavelength {light.wavelength}: no such thing")

    def wrong_slots(self, plan: Plan, transfers: Transfers) -> Iterator[Problem]:
        """Yields wavelengths on which data collide, and ranks that use too many wavelengths.

        Transfers of the same chunks from one rank may share a wavelength. A rank cannot send on
        more wavelengths than it has transmitters, or receive on more wavelengths than it has
        receivers.
        """
        first: dict[tuple[int, int], int] = {}
        tuned: dict[tuple[int, int, str], set[int]] = defaultdict(set)
        for index, transfer in self.lit(transfers).items():
            slot, wavelength = transfer.slot, transfer.light.wavelength
            earlier = plan.transfers[first.setdefault((slot, wavelength), index)]
            sent = {(lit.source, lit.chunk, lit.count) for lit in (transfer, earlier)}
            if len(sent) > 1:
                names = f"{plan.name(first[slot, wavelength])} and {plan.name(index)}"
                says = f"transfers {names} are no one light, but both on wavelength {wavelength}"
                yield Problem("collision", f"slot {slot}: {says}")
            tuned[slot, transfer.source, "sends"].add(wavelength)
            tuned[slot, transfer.destination, "hears"].add(wavelength)
        for (slot, rank, verb), on in tuned.items():
            most = self.transmitters if verb == "sends" else self.receivers
            if len(on) > most:
                many = f"{verb} on {len(on)} wavelengths, but has {most} for that"
                yield Problem("ports", f"slot {slot}: rank {rank} {many}")
