"""The parts of a plan: the collective, the transfers and the fabric."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple


class NotAPlan(ValueError):  # noqa: N818 - it is what the text is
    """Error of a text that does not have the form of a plan; the message names the line."""


class TooLarge(ValueError):  # noqa: N818 - it is what the plan is
    """Error of a plan that is too large for a verifier that checks every chunk of every rank."""


@dataclass(frozen=True)
class Collective:
    """Collective, which defines the ranks that have each chunk at the start and at the end."""

    kind: str
    ranks: int
    root: int
    pieces: int
    """Number of chunks into which each block (or the vector) is cut."""
    demand: tuple[tuple[int, int], ...] | None = None
    """Source and destination of each chunk, for an all_to_all whose blocks differ in size."""

    @property
    def blocks(self) -> int:
        """Number of blocks: one per rank, one per pair of ranks, or one for the vector."""
        if self.kind in ("all_reduce", "broadcast", "reduce", "barrier"):
            return 1
        return self.ranks**2 if self.kind == "all_to_all" else self.ranks

    @property
    def chunks(self) -> int:
        return self.blocks * self.pieces if self.demand is None else len(self.demand)

    @property
    def combines(self) -> bool:
        """True if ranks add contributions; False if they only copy chunks."""
        return self.kind in ("reduce_scatter", "all_reduce", "reduce", "barrier")

    @property
    def overlaps(self) -> bool:
        """True if a contribution may arrive twice without harm."""
        return self.kind == "barrier"

    def before(self, chunk: int) -> set[int]:
        """Returns the ranks that have a chunk, or contribute to the chunk, at the start."""
        if self.demand is not None:
            return {self.demand[chunk][0]}
        block = chunk // self.pieces
        if self.combines:
            return set(range(self.ranks))
        if self.kind in ("broadcast", "scatter"):
            return {self.root}
        return {block // self.ranks if self.kind == "all_to_all" else block}

    def after(self, chunk: int) -> set[int]:
        """Returns the ranks that must have a chunk, with all contributions, at the end."""
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
    """Consecutive chunks that one rank sends to another, and the light that carries them."""

    slot: int
    action: str
    """Action: copy or reduce, or multicast or aggregate if switches take part."""
    chunk: int
    count: int
    source: int
    destination: int
    light: Any = None
    """Light of the transfer, in the form that the fabric's family defines, or None."""

    @property
    def adds(self) -> bool:
        """True if the destination adds the data to its own, false if it replaces its own."""
        return self.action in ("reduce", "aggregate")

    def chunks(self) -> range:
        return range(self.chunk, self.chunk + self.count)


Transfers = dict[int, Transfer]
"""Transfers by index in the plan."""


class Problem(NamedTuple):
    """Broken rule: the rule's name, as in the core, and a sentence on the problem."""

    kind: str
    sentence: str


class Fabric(ABC):
    """Base class of fabrics, with the properties that a plan depends on.

    Transfers have no light on a fabric of the base class.
    """

    ranks: int | None = None
    """Number of ranks; None if the options do not determine it."""
    relays = False
    """True if other ranks may relay a transfer within its step."""
    wiring: Sequence[tuple[int, int, bool]] = ()
    """Links, as (start vertex, end vertex, True if the link leads both ways), from the caller."""
    routes: Mapping[tuple[int, int], Sequence[int]] = MappingProxyType({})
    """Links of the fabric's routes from rank to rank, from the caller."""
    shifted: ClassVar[Mapping[str, int]] = {}
    """Parts of a light that repetitions may increase, such as `wavelength`, and their maxima."""

    def read_light(self, words: list[str], over: list[str]) -> tuple[Any, list[str]]:
        """Returns the light of a transfer, and the remaining words, which describe repetitions.

        `words` are the words after source and destination; `over` are the ranks between them.
        """
        return None, words

    def wrong_light(self, light: Any) -> Iterator[Problem]:
        """Yields a problem for each part of a light that the fabric lacks, such as a wavelength.

        The caller puts the transfer's name before each sentence.
        """
        yield from ()

    def wrong_groups(self, plan: Plan, transfers: Transfers) -> Iterator[Problem]:
        """Yields the multicasts and aggregations that the fabric cannot carry out: here, all."""
        for index, transfer in transfers.items():
            kinds = {"multicast": "multicast", "aggregate": "aggregation"}
            if kind := kinds.get(transfer.action):
                says = f"slot {transfer.slot}: transfer {plan.name(index)}"
                yield Problem(kind, f"{says} needs switches, and the fabric has none")

    @abstractmethod
    def wrong_slots(self, plan: Plan, transfers: Transfers) -> Iterator[Problem]:
        """Yields the broken rules on light, both for single slots and for the whole plan."""

    def lit(self, transfers: Transfers) -> Transfers:
        """Returns the transfers whose light exists on the fabric."""
        return {
            index: transfer
            for index, transfer in transfers.items()
            if not any(self.wrong_light(transfer.light))
        }


@dataclass
class Plan:
    """Plan: its transfers in the order of the text, and the number of slots of each step."""

    collective: Collective
    fabric: Fabric
    steps: list[int]
    claims: dict[str, int] = field(default_factory=dict)
    transfers: list[Transfer] = field(default_factory=list)

    def name(self, index: int) -> str:
        transfer = self.transfers[index]
        return f"{index} (rank {transfer.source} to {transfer.destination})"

    def step_of(self, slot: int) -> int:
        """Returns the index of the step that contains `slot`."""
        for step, slots in enumerate(self.steps):
            if slot < slots:
                return step
            slot -= slots
        raise NotAPlan(f"the steps have no slot {slot}")

    def slots_of(self, slot: int) -> range:
        """Returns all slots of the step that contains `slot`."""
        step = self.step_of(slot)
        first = sum(self.steps[:step])
        return range(first, first + self.steps[step])
