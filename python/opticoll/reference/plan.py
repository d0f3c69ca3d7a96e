"""What a plan is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple


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
    demand: tuple[tuple[int, int], ...] | None = None
    """Where the blocks of an all_to_all differ: the source and the destination of each chunk."""

    @property
    def blocks(self) -> int:
        """One block per rank, one per pair of ranks, or just the vector."""
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
        """True if a contribution may arrive twice: hearing twice from a rank does no harm."""
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
        """Returns the ranks that must hold a chunk, with every contribution, after the
        collective.
        """
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
    """What the family of the fabric reads as light; None where there is none."""

    def chunks(self) -> range:
        return range(self.chunk, self.chunk + self.count)


Transfers = dict[int, Transfer]
"""Transfers by their number in the plan."""


class Problem(NamedTuple):
    """A rule that is broken: the kind, named as the core names it, and a sentence."""

    kind: str
    sentence: str


class Fabric(ABC):
    """What a plan needs of its fabric. Each family has a class of its own, which says what differs.

    As it stands here no transfer has light.
    """

    ranks: int | None = None
    """None: its options do not say it alone."""
    relays = False
    """True if a transfer may go over other ranks within its step."""
    wiring: Sequence[tuple[int, int, bool]] = ()
    """Where its links start and end, and whether each leads both ways, as the caller knows."""
    shifted: ClassVar[Mapping[str, int]] = {}
    """What repetitions shift of its light: fields of it by name, and the most that each may say."""

    def read_light(self, words: list[str], over: list[str]) -> tuple[Any, list[str]]:
        """Returns the light of a transfer, and the words left over: its repetitions.

        The words are those after the ends of the transfer; `over` are the ranks between the ends.
        """
        return None, words

    def wrong_light(self, light: Any) -> Iterator[Problem]:
        """What of the light of a transfer does not exist: what to say of the transfer."""
        yield from ()

    @abstractmethod
    def wrong_slots(self, plan: Plan, transfers: Transfers) -> Iterator[Problem]:
        """What is wrong with all light of a plan, slot by slot, and with the slots."""

    def lit(self, transfers: Transfers) -> Transfers:
        """Returns the transfers whose light exists."""
        return {
            index: transfer
            for index, transfer in transfers.items()
            if not any(self.wrong_light(transfer.light))
        }


@dataclass
class Plan:
    """All transfers, in the order of the text, and the slots of each step of the schedule."""

    collective: Collective
    fabric: Fabric
    steps: list[int]
    claims: dict[str, int] = field(default_factory=dict)
    transfers: list[Transfer] = field(default_factory=list)

    def name(self, index: int) -> str:
        transfer = self.transfers[index]
        return f"{index} (rank {transfer.source} to {transfer.destination})"

    def step_of(self, slot: int) -> int:
        """Returns the step to which a slot belongs: steps take their slots one after the other."""
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
