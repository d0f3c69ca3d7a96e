"""Grids of tunable circuits.

Nodes stand in rows and columns. Each node has a transceiver to the switch of its row and one to the
switch of its column. Light that enters a switch at one port on a wavelength leaves the switch at
one other port. This other port is the same in all slots of a plan.

The light of a transfer is a plane (row or column) and a wavelength, as in `copy 0 0>1 row.0`. Other
ranks may relay a transfer. Each hop then has its own light and slot: in `copy 0 0>4>7 row.3
column.0@2`, rank 4 relays the data in slot 2.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, NamedTuple

from opticoll.reference import loss
from opticoll.reference.plan import Fabric, Plan, Problem, Transfer, Transfers
from opticoll.reference.words import Check, count, expect, like, one_of, rate, slower, time, whole

TRANSCEIVER = r"[0-9]+\.(row|column)"
NUMBERS = r"[0-9]+(-[0-9]+)?(\+[0-9]+(-[0-9]+)?)*"
LOSSES = ("fixed_loss", "switch_loss")
OPTIONS: dict[str, Check] = {
    "rows": count(4096),
    "columns": count(4096),
    "rate": rate,
    "ports": count(2**16),
    "wavelengths": count(4096),
    **dict.fromkeys(("tuning", "lock", "control", "controller", "latency", "slow_switch"), time),
    "plan": one_of("xor", "cyclic", "edge_colouring"),
    "nodes": like(rf"all|{NUMBERS}"),
    "dead_transceivers": like(rf"{TRANSCEIVER}(\+{TRANSCEIVER})*"),
    "dead_ports": like(r"(row|column)[0-9]+\.[0-9]+(\+(row|column)[0-9]+\.[0-9]+)*"),
    "degraded": like(rf"{TRANSCEIVER}@[^+@]+(\+{TRANSCEIVER}@[^+@]+)*"),
    **loss.checks(*LOSSES),
}


class Sent(NamedTuple):
    """Light of one hop: its slot, the rank that sends the light, the plane and the wavelength."""

    slot: int
    rank: int
    plane: str
    wavelength: int


class Tuned(NamedTuple):
    """Light of a transfer: plane and wavelength of its first hop, and the hops after it."""

    plane: str
    wavelength: int
    relays: tuple[Sent, ...]


class Grid(Fabric):
    """Grid of tunable circuits, given by its options."""

    relays = True
    shifted: ClassVar = {"wavelength": 2**16 - 1}

    def __init__(self, options: dict[str, str]) -> None:
        self.rows, self.columns = int(options["rows"]), int(options["columns"])
        self.plan = options.get("plan", "edge_colouring")
        longer = max(self.rows, self.columns)
        expect(self.rows * self.columns <= 2**20, "no grid is so large")
        expect(int(options.get("ports", longer)) >= longer, "no switch is so large")
        enough = (longer - 1).bit_length() if self.plan == "xor" else longer - 1
        self.wavelengths = int(options.get("wavelengths", max(enough, 1)))
        # Node of each rank, indexed by rank.
        self.nodes = read_nodes(options.get("nodes", "all"), self.rows * self.columns)
        self.ranks = len(self.nodes)
        # Ports without light, as (plane, switch, port): a transceiver or a switch port is broken.
        self.dead: set[tuple[str, int, int]] = set()
        for part in filter(None, options.get("dead_transceivers", "").split("+")):
            node, _, plane = part.partition(".")
            self.dead.add((plane, *self.place(int(node), plane)))
        for part in filter(None, options.get("dead_ports", "").split("+")):
            switch, _, port = part.partition(".")
            plane = switch.rstrip("0123456789")
            self.dead.add((plane, int(switch.removeprefix(plane)), int(port)))
        named = set(self.dead)
        for part in slower(options.get("degraded", ""), options.get("rate", "100Gb/s")):
            node, _, plane = part.partition(".")
            named.add((plane, *self.place(int(node), plane)))
        for plane, number, of_switch in named:
            most = (self.rows, self.columns) if plane == "row" else (self.columns, self.rows)
            exists = number < most[0] and of_switch < most[1]
            expect(exists, f"no port {of_switch} of {plane} {number}")
        loss.expect_arrival(options, *LOSSES)

    def place(self, node: int, plane: str) -> tuple[int, int]:
        """Returns the switch and the port that a node uses in a plane."""
        row, column = divmod(node, self.columns)
        return (row, column) if plane == "row" else (column, row)

    def read_light(self, words: list[str], over: list[str]) -> tuple[Tuned, list[str]]:
        first, *others = words
        relays = []
        for rank, word in zip(over, others, strict=False):
            light, _, slot = word.partition("@")
            relays.append(Sent(whole(slot), whole(rank), *self.read_tuning(light)))
        expect(len(relays) == len(over), "the light of a relay is missing")
        return Tuned(*self.read_tuning(first), tuple(relays)), others[len(over) :]

    def read_tuning(self, word: str) -> tuple[str, int]:
        plane, _, wavelength = word.partition(".")
        expect(plane in ("row", "column"), "expected row or column")
        return plane, whole(wavelength, self.shifted["wavelength"])

    def wrong_light(self, light: Tuned) -> Iterator[Problem]:
        if light.wavelength >= self.wavelengths:
            yield Problem("wavelength_range", f"is on wavelength {light.wavelength}: no such thing")

    def wrong_slots(self, plan: Plan, transfers: Transfers) -> Iterator[Problem]:
        # The first light at a port fixes the use of the port for the whole plan. The first light of
        # a laser or receiver fixes its use for the slot.
        first: dict[object, int] = {}
        for index, transfer in self.lit(transfers).items():
            before = None
            for sent, receiver in hops(transfer):
                slot, sender, plane, light = sent
                says = f"slot {slot}: transfer {index}"
                wrong = self.out_of_range(sent, receiver, before, plan.slots_of(transfer.slot))
                if wrong:
                    yield Problem(wrong[0], f"{says} {wrong[1]}")
                    break
                before = slot
                switch, entry = self.place(self.nodes[sender], plane)
                receiver_switch, exit_ = self.place(self.nodes[receiver], plane)
                if switch != receiver_switch or not self.joins(plane, light, entry, exit_):
                    yield Problem("path", f"{says}: its light does not go to rank {receiver}")
                    continue
                for port in (entry, exit_):
                    if (plane, switch, port) in self.dead:
                        needs = f"needs port {port} of {plane} {switch}: dead"
                        yield Problem("dead_port", f"{says} {needs}")
                if first.setdefault(("leaves", plane, switch, entry, light), exit_) != exit_:
                    yield Problem("switch_setting", f"{says}: its wavelength leads elsewhere too")
                if first.setdefault(("enters", plane, switch, exit_, light), entry) != entry:
                    yield Problem("collision", f"{says}: its wavelength comes from elsewhere too")
                if first.setdefault(("tuned", slot, sender, plane), light) != light:
                    laser = f"the laser of rank {sender} has another wavelength"
                    yield Problem("tuning", f"{says}: {laser}")
                if first.setdefault(("hears", slot, receiver, plane), sender) != sender:
                    yield Problem("receiver", f"{says}: rank {receiver} hears another rank as well")

    def out_of_range(
        self, sent: Sent, receiver: int, before: int | None, slots: range
    ) -> tuple[str, str] | None:
        """Returns a problem of a hop's ranks, wavelength or slot as (kind, sentence), or None.

        If there is a problem, the caller skips this hop and all later hops of the transfer.
        """
        if max(sent.rank, receiver) >= len(self.nodes):
            return "rank_range", "goes over a rank that does not exist"
        if sent.rank == receiver:
            return "self_transfer", f"goes from rank {receiver} to itself"
        if sent.wavelength >= self.wavelengths:
            return "wavelength_range", f"is on wavelength {sent.wavelength}: beyond the laser"
        if before is not None and sent.slot <= before:
            return "relays", f"leaves rank {sent.rank} before it is there"
        if before is not None and sent.slot not in slots:
            return "step_order", f"leaves rank {sent.rank} after its step"
        return None

    def joins(self, plane: str, wavelength: int, entry: int, exit_: int) -> bool:
        """Returns whether a switch sends a wavelength from port `entry` to port `exit_`.

        The option `plan` assigns wavelengths to pairs of ports. `xor` and `cyclic` are formulas.
        For `edge_colouring`, which is no formula, the result is always True.
        """
        if self.plan == "xor":
            return entry ^ exit_ == 1 << wavelength
        if self.plan == "cyclic":
            ports = self.columns if plane == "row" else self.rows
            return entry != exit_ and (exit_ - entry) % ports == wavelength + 1
        return True


def read_nodes(text: str, nodes: int) -> list[int]:
    """Returns nodes in increasing order, from `all` or from numbers and ranges such as `0-3+8`."""
    if text == "all":
        return list(range(nodes))
    numbers: set[int] = set()
    for part in text.split("+"):
        first, _, last = part.partition("-")
        expect(int(first) <= int(last or first) < nodes, f"no nodes {part}")
        named = set(range(int(first), int(last or first) + 1))
        expect(not named & numbers, "a node is given twice")
        numbers |= named
    return sorted(numbers)


def hops(transfer: Transfer) -> Iterator[tuple[Sent, int]]:
    """Yields for each hop of a transfer its light, and the rank that receives this light."""
    plane, wavelength, relays = transfer.light
    sent = [Sent(transfer.slot, transfer.source, plane, wavelength), *relays]
    return zip(sent, [*(relay.rank for relay in relays), transfer.destination], strict=True)
