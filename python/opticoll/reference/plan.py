"""The parts of a plan: collective, transfers, fabric."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple


class NotAPlan(ValueError):  # noqa: N818 - it is what the text is
    """Error for a text that does not have the form of a plan; the message says where."""


class TooLarge(ValueError):  # noqa: N818 - it is what the plan is
    """Error for a plan that is too large for a verifier that looks at every chunk of every rank."""


@dataclass(frozen=True)
class Collective:
    """Collective: which ranks hold each chunk at the start and at the end."""

    kind: str
    ranks: int
    root: int
    pieces: int
    """Number of chunks into which each block (or the vector) is cut."""
    demand: tuple[tuple[int, int], ...] | None = None
    """Source and destination of each chunk of an all_to_all whose blocks differ."""

    @property
    def blocks(self) -> int:
        """Number of blocks: one per rank, one per pair of ranks, or just the vector."""
        if self.kind in ("all_reduce", "broadcast", "reduce", "barrier"):
            return 1
        return self.ranks**2 if self.kind == "all_to_all" else self.ranks

    @property
    def chunks(self) -> int:
        return self.blocks * self.pieces if self.demand is None else len(self.demand)

    @property
    def combines(self) -> bool:
        """True if contributions are added up; otherwise chunks are only passed on."""
        return self.kind in ("reduce_scatter", "all_reduce", "reduce", "barrier")

    @property
    def overlaps(self) -> bool:
        """True if a contribution may arrive twice, which does no harm."""
        return self.kind == "barrier"

    def before(self, chunk: int) -> set[int]:
        """Returns the ranks that hold a chunk, or contribute to it, before the collective."""
        if self.demand is not None:
            return {self.demand[chunk][0]}
        block = chunk // self.pieces
        if self.combines:
            return set(range(self.ranks))
        if self.kind in ("broadcast", "scatter"):
            return {self.root}
        return {block // self.ranks if self.kind == "all_to_all" else block}

    def after(self, chunk: int) -> set[int]:
        """Returns the ranks that must hold a chunk with every contribution at the end."""
        if self.demand is not None:
            return {self.demand[chunk][1]}
        block = chunk // self.pieces
        if self.kind in ("all_gather", "all_reduce", "broadcast", "barrier"):
            return set(range(self.ranks))
        if self.kind in ("gather", "reduce"):
            return {self.root}
        return {block % self.ranks if self.kind == "all_to_all" else block}


@dataclass(frozen=True)
class Transfer:
    """Chunks sent from one rank to another, and the light that carries them."""

    slot: int
    action: str  # copy or reduce
    chunk: int
    count: int
    source: int
    destination: int
    light: Any = None
    """Light as the family of the fabric reads it, or None."""

    def chunks(self) -> range:
        return range(self.chunk, self.chunk + self.count)


Transfers = dict[int, Transfer]
"""Transfers by their number in the plan."""


class Problem(NamedTuple):
    """Broken rule: its kind, named as in the core, and a sentence."""

    kind: str
    sentence: str


class Fabric(ABC):
    """Base of the families of fabrics, with what a plan needs of its fabric.

    In this base class, transfers have no light.
    """

    ranks: int | None = None
    """Number of ranks, or None if the options do not determine it."""
    relays = False
    """True if a transfer may go over other ranks within its step."""
    wiring: Sequence[tuple[int, int, bool]] = ()
    """Start and end of each link, and whether it leads both ways, as the caller knows them."""
    shifted: ClassVar[Mapping[str, int]] = {}
    """Fields of light that repetitions shift, and the maximum value of each."""

    def read_light(self, words: list[str], over: list[str]) -> tuple[Any, list[str]]:
        """Returns the light of a transfer, and the remaining words, which are its repetitions.

        The words are those after the ends of the transfer; `over` are the ranks between the ends.
        """
        return None, words

    def wrong_light(self, light: Any) -> Iterator[Problem]:
        """Yields what does not exist of a transfer's light; sentences follow the transfer's
        name.
        """
        yield from ()

    @abstractmethod
    def wrong_slots(self, plan: Plan, transfers: Transfers) -> Iterator[Problem]:
        """Yields all problems of the light of a plan, slot by slot, and of its slots."""

    def lit(self, transfers: Transfers) -> Transfers:
        """Returns the transfers whose light exists."""
        return {
            index: transfer
            for index, transfer in transfers.items()
            if not any(self.wrong_light(transfer.light))
        }


@dataclass
class Plan:
    """All transfers in the order of the text, and the slots of each step of the schedule."""

    collective: Collective
    fabric: Fabric
    steps: list[int]
    claims: dict[str, int] = field(default_factory=dict)
    transfers: list[Transfer] = field(default_factory=list)

    def name(self, index: int) -> str:
        transfer = self.transfers[index]
        return f"{index} (rank {transfer.source} to {transfer.destination})"

    def step_of(self, slot: int) -> int:
        """Returns the step to which a slot belongs; steps take their slots one after the other."""
        for step, slots in enumerate(self.steps):
            if slot < slots:
                return step
            slot -= slots
        raise NotAPlan(f"the steps have no slot {slot}")

    def slots_of(self, slot: int) -> range:
        """Returns the slots of the step to which a slot belongs."""
        step = self.step_of(slot)
        first = sum(self.steps[:step])
        return range(first, first + self.steps[step])
