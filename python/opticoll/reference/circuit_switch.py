"""Circuit switches: a switch connects sending ports of ranks to receiving ports, in pairs.

The light of a transfer is the two ports of its circuit, as in `copy 5 0>4 0.1`. If other ranks
relay the transfer, the ports and the slot of each further circuit follow, as in
`copy 5 0>1>4 0.0 0.1@3`. A message that does not use the switch has `packet` in place of ports.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from opticoll.reference import loss
from opticoll.reference.plan import Fabric, Plan, Problem, Transfer, Transfers
from opticoll.reference.words import RANKS, Check, count, expect, one_of, rate, slower, time, whole


def _parts(text: str) -> None:
    parts = text.split("+")
    expect(len(parts) <= 3, "a reconfiguration has three parts at most")
    for part in parts:
        time(part)


def _ports_of_ranks(text: str) -> list[tuple[int, int]]:
    """Returns (rank, port) pairs: `3.0+5.1` is port 0 of rank 3 and port 1 of rank 5."""
    ports = []
    for part in text.split("+"):
        rank, _, port = part.partition(".")
        ports.append((whole(rank), whole(port)))
    return ports


LOSSES = ("fixed_loss", "switch_loss")
OPTIONS: dict[str, Check] = {
    "ranks": RANKS,
    "ports": count(2**8),
    "planes": count(2**8),
    "switch_ports": count(2**28),
    "dead_ports": _ports_of_ranks,
    "degraded": len,
    "rate": rate,
    "reconfiguration": _parts,
    "first_configuration": one_of("free", "charged"),
    "forwarding": one_of("store", "cut_through"),
    "packet_rate": rate,
    **dict.fromkeys(("startup", "latency", "packet_latency"), time),
    **loss.checks(*LOSSES),
}


BESIDE = (2**9 - 1, 2**9 - 1)
"""Values of the ports which mean that a message does not use the switch."""


class Circuit(NamedTuple):
    """Second or later circuit of a relayed transfer."""

    slot: int
    rank: int
    ports: tuple[int, int]


class Light(NamedTuple):
    """Ports of the first circuit, and the further circuits of a relayed transfer."""

    ports: tuple[int, int]
    relays: tuple[Circuit, ...]


class CircuitSwitch(Fabric):
    """Ranks that one or several circuit switches connect."""

    relays = True

    def __init__(self, options: dict[str, str]) -> None:
        self.ranks = self.switched_ranks = whole(options["ranks"])
        self.ports = whole(options.get("ports", "1"))
        planes = whole(options.get("planes", "1"))
        expect(self.ports % planes == 0, "the planes must share the ports evenly")
        self.ports_of_plane = self.ports // planes
        self.has_network = "packet_rate" in options
        expect(self.has_network or "packet_latency" not in options, "there is no network")
        self.stores = options.get("forwarding", "store") == "store"
        ports = options.get("switch_ports")
        joined = self.ranks if ports is None else whole(ports) // self.ports_of_plane
        self.digits = _digits(self.ranks, joined, planes)
        self.joined = joined
        self.dead = set(_ports_of_ranks(options["dead_ports"]) if "dead_ports" in options else [])
        named = set(self.dead)
        for port in slower(options.get("degraded", ""), options.get("rate", "800Gb/s")):
            named.update(_ports_of_ranks(port))
        fits = all(rank < self.ranks and port < self.ports for rank, port in named)
        expect(fits, "a dead or slower port does not exist")
        expect(not self.dead or self.reaches_all(), "dead ports part the ranks")
        loss.expect_arrival(options, *LOSSES)

    def read_light(self, words: list[str], over: list[str]) -> tuple[Light, list[str]]:
        first, *others = words
        relays = []
        for rank, word in zip(over, others, strict=False):
            light, _, slot = word.partition("@")
            relays.append(Circuit(whole(slot), whole(rank), _ports(light)))
        expect(len(relays) == len(over), "the light of a relay is missing")
        return Light(_ports(first), tuple(relays)), others[len(over) :]

    def wrong_light(self, light: Light) -> Iterator[Problem]:
        yield from self.wrong_ports(light.ports)

    def wrong_ports(self, ports: tuple[int, int]) -> Iterator[Problem]:
        """Yields a problem if a port does not exist, or the ports belong to different switches."""
        if ports == BESIDE:
            if not self.has_network:
                yield Problem("path", "goes beside the switch, where there is no network")
        elif max(ports) >= self.ports:
            yield Problem("ports", f"uses port {max(ports)}: no such thing")
        elif len({port // self.ports_of_plane for port in ports}) > 1:
            yield Problem("path", f"joins ports {ports} of two switches")

    def wrong_ends(self, circuit: Circuit, receiver: int) -> Iterator[Problem]:
        """Yields a problem for each broken port, and if the ranks are on different switches."""
        if circuit.ports == BESIDE:
            return
        out, into = circuit.ports
        for end in ((circuit.rank, out), (receiver, into)):
            if end in self.dead:
                yield Problem("dead_port", f"uses port {end[1]} of rank {end[0]}, which is dead")
        plane = out // self.ports_of_plane
        if self.switch_of(circuit.rank, plane) != self.switch_of(receiver, plane):
            yield Problem("path", f"joins ranks {circuit.rank} and {receiver} of two switches")

    def numeral(self, rank: int) -> list[int]:
        """Returns the digits of a rank in the base `joined`, lowest digit first."""
        digits = []
        for _ in range(self.digits):
            rank, digit = divmod(rank, self.joined)
            digits.append(digit)
        return digits

    def switch_of(self, rank: int, plane: int) -> tuple[int, ...]:
        """Returns the switch of a rank on a plane: the plane, and all digits except the plane's."""
        digits = self.numeral(rank)
        del digits[plane % self.digits]
        return (plane, *digits)

    def reaches_all(self) -> bool:
        """Returns whether working ports connect all ranks, directly or over other ranks."""
        switches = {
            rank: {
                self.switch_of(rank, port // self.ports_of_plane)
                for port in range(self.ports)
                if (rank, port) not in self.dead
            }
            for rank in range(self.switched_ranks)
        }
        joined = switches.pop(0)
        more = True
        while more:
            near = [rank for rank, rank_switches in switches.items() if rank_switches & joined]
            more = bool(near)
            for rank in near:
                joined |= switches.pop(rank)
        return not switches

    def wrong_slots(self, plan: Plan, transfers: Transfers) -> Iterator[Problem]:
        """Yields ports with several circuits in a slot, and data relayed before they arrive.

        With cut-through, data may be relayed in the slot of their arrival. In one slot, data must
        not visit a rank twice.
        """
        led: dict[tuple[int, str, int, int], tuple[int, int]] = {}
        for index, transfer in self.lit(transfers).items():
            before: int | None = None
            slots = plan.slots_of(transfer.slot)
            passed: list[tuple[int, int]] = []
            for circuit, receiver in circuits(transfer):
                says = f"slot {circuit.slot}: transfer {plan.name(index)}"
                wrong = self.out_of_range(circuit, receiver, before, slots)
                if wrong is not None:
                    yield Problem(wrong.kind, f"{says} {wrong.sentence}")
                    break
                if circuit.slot != before:
                    passed.append((circuit.slot, circuit.rank))
                if (circuit.slot, receiver) in passed:
                    yield Problem("relays", f"{says} comes back to rank {receiver} in its slot")
                    break
                passed.append((circuit.slot, receiver))
                before = circuit.slot
                if circuit.ports == BESIDE:
                    continue
                out, into = (circuit.rank, circuit.ports[0]), (receiver, circuit.ports[1])
                for course, end, opposite in (("out", out, into), ("in", into, out)):
                    if led.setdefault((circuit.slot, course, *end), opposite) != opposite:
                        needs = (
                            f"needs port {end[1]} {course} of rank {end[0]}, which is in a circuit"
                        )
                        yield Problem("ports", f"{says} {needs}")

    def out_of_range(
        self, circuit: Circuit, receiver: int, before: int | None, slots: range
    ) -> Problem | None:
        """Returns the problem of a circuit that cannot exist, or None.

        Other rules skip the circuit and the later circuits of its transfer.
        """
        if max(circuit.rank, receiver) >= self.switched_ranks:
            return Problem("rank_range", "goes over a rank that does not exist")
        if circuit.rank == receiver:
            return Problem("self_transfer", f"goes from rank {receiver} to itself")
        for problem in self.wrong_ports(circuit.ports):
            return problem
        for problem in self.wrong_ends(circuit, receiver):
            return problem
        if before is not None and circuit.slot < before + self.stores:
            return Problem("relays", f"leaves rank {circuit.rank} before it is there")
        if before is not None and circuit.slot not in slots:
            return Problem("step_order", f"leaves rank {circuit.rank} after its step")
        return None


def circuits(transfer: Transfer) -> Iterator[tuple[Circuit, int]]:
    """Yields the circuits of a transfer; with each circuit, the rank at which the circuit ends."""
    first, relays = transfer.light
    sent = [Circuit(transfer.slot, transfer.source, first), *relays]
    return zip(sent, [*(relay.rank for relay in relays), transfer.destination], strict=True)


def _digits(ranks: int, joined: int, planes: int) -> int:
    """Returns the number of digits of rank numbers in the base `joined`, the ranks per switch.

    There must be at least as many planes as digits.
    """
    if ranks == 1:
        return 1
    expect(joined >= 2, "a switch joins two ranks at least")
    digits = 1
    while joined**digits < ranks:
        digits += 1
    expect(digits <= planes, "each digit needs a plane")
    return digits


def _ports(word: str) -> tuple[int, int]:
    if word == "packet":
        return BESIDE
    source, _, destination = word.partition(".")
    return whole(source, 2**9 - 1), whole(destination, 2**9 - 1)
