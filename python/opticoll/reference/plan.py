"""What a plan is."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal

from opticoll.reference.grid import Grid, Hop


class NotAPlan(ValueError):  # noqa: N818 - it is what the text is
    """The text is not of the form of a plan; the message says where."""


class TooLarge(ValueError):  # noqa: N818 - it is what the plan is
    """The plan is too large for a verifier that looks at every chunk of every rank."""


@dataclass(frozen=True)
class Collective:
    """What must be true at the end, chunk by chunk."""

    kind: str
    ranks: int
    root: int
    pieces: int
    """Chunks into which each block (or the vector) is cut."""

    @property
    def blocks(self) -> int:
        """One block per rank, one per pair of ranks, or just the vector."""
        if self.kind in ("all_reduce", "broadcast", "reduce", "barrier"):
            return 1
        return self.ranks**2 if self.kind == "all_to_all" else self.ranks

    @property
    def chunks(self) -> int:
        return self.blocks * self.pieces

    @property
    def combines(self) -> bool:
        """Whether contributions are added up; otherwise chunks are only passed on."""
        return self.kind in ("reduce_scatter", "all_reduce", "reduce", "barrier")

    @property
    def overlaps(self) -> bool:
        """Whether a contribution may arrive twice: hearing twice from a rank does no harm."""
        return self.kind == "barrier"

    def before(self, chunk: int) -> set[int]:
        """The ranks that hold a chunk, or contribute to it, before the collective."""
        block = chunk // self.pieces
        if self.combines:
            return set(range(self.ranks))
        if self.kind in ("broadcast", "scatter"):
            return {self.root}
        return {block // self.ranks if self.kind == "all_to_all" else block}

    def after(self, chunk: int) -> set[int]:
        """The ranks that must hold a chunk, with every contribution, after the collective."""
        block = chunk // self.pieces
        if self.kind in ("all_gather", "all_reduce", "broadcast", "barrier"):
            return set(range(self.ranks))
        if self.kind in ("gather", "reduce"):
            return {self.root}
        return {block % self.ranks if self.kind == "all_to_all" else block}


@dataclass(frozen=True)
class Fabric:
    """A ring: each rank has fibres to both neighbours, and each fibre has wavelengths.

    An electrical fabric has no light, and its links do not matter: any rank may send to any other.
    """

    ranks: int
    wavelengths: int
    fibres: int = 1
    electrical: bool = False
    grid: Grid | None = None
    """A grid of tunable circuits, no ring: its rules are in `opticoll.reference.grid`."""
    path_ports: int | None = None
    """Ports of a rank on a grid of light paths, which is no ring: each holds one path at a time."""
    ports: int | None = None
    """Lightpaths that a rank may send, and receive, at once; None: no limit of its own."""
    converters: bool = False
    multicast: bool = False
    """Whether a rank may take a share of passing light and let the rest go on."""
    reach: int | None = None
    """The most links that a lightpath may span."""
    budget: Budget | None = None
    broken: frozenset[tuple[str, int]] = frozenset()
    """Links that nothing crosses: the way that they go and the rank at which they start."""
    dead: frozenset[tuple[int, int]] = frozenset()
    """Fibres with wavelengths on them that cannot be used, on the whole ring, either way."""


@dataclass(frozen=True)
class Budget:
    """What light loses on its way; see ``docs/model.md``."""

    launch_power: Decimal
    sensitivity: Decimal
    through_loss: Decimal
    drop_loss: Decimal
    split_loss: Decimal
    resonators: int

    def arrives(self, links: int, shares: int) -> Decimal:
        """The power that is received over so many links, of which so many ranks took a share."""
        passed = (links - 1) * self.resonators
        lost = passed * self.through_loss + shares * self.split_loss + self.drop_loss
        return self.launch_power - lost


CONVERTED = None
"""The wavelength of a lightpath that converters may change at every rank."""


@dataclass(frozen=True)
class Lightpath:
    """Chunks sent from one rank to another, and the light that carries them."""

    slot: int
    action: str  # copy or reduce
    chunk: int
    count: int
    source: int
    destination: int
    way: str  # cw: towards higher ranks; ccw: towards lower; on a grid row or column; or nothing
    fibre: int
    wavelength: int | None
    ports: tuple[int, int] = (0, 0)
    """On a grid of light paths: those of source and destination."""
    relays: tuple[tuple[int, str, int, int], ...] = ()
    """On a grid: ranks that receive and send on, each with plane, wavelength and slot."""

    def hops(self) -> list[Hop]:
        """The way of the transfer on a grid."""
        ends = [self.source, *(rank for rank, *_ in self.relays), self.destination]
        light = [(self.way, self.wavelength or 0, self.slot), *(one[1:] for one in self.relays)]
        return [
            Hop(slot, ends[place], ends[place + 1], plane, wavelength)
            for place, (plane, wavelength, slot) in enumerate(light)
        ]

    def chunks(self) -> range:
        return range(self.chunk, self.chunk + self.count)

    def links(self, ranks: int) -> list[int]:
        """The ranks at which the links of the path start."""
        turn = 1 if self.way == "cw" else -1
        links = []
        here = self.source
        while here != self.destination:
            links.append(here)
            here = (here + turn) % ranks
        return links


@dataclass
class Plan:
    """All lightpaths, in the order of the text, and the slots of each step of the schedule."""

    collective: Collective
    fabric: Fabric
    steps: list[int]
    claims: dict[str, int] = field(default_factory=dict)
    lightpaths: list[Lightpath] = field(default_factory=list)

    def step_of(self, slot: int) -> int:
        """The step to which a slot belongs: steps take their slots one after the other."""
        for step, slots in enumerate(self.steps):
            if slot < slots:
                return step
            slot -= slots
        raise NotAPlan(f"the steps have no slot {slot}")

    def slots_of(self, slot: int) -> range:
        """The slots of the step to which a slot belongs."""
        step = self.step_of(slot)
        first = sum(self.steps[:step])
        return range(first, first + self.steps[step])
