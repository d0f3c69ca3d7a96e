"""The parts of a program, and the rules that programs obey.

Each rank has an input buffer, an output buffer and a scratch buffer, which consist of chunks. Its
blocks run at the same time, and each block runs its steps in order. A step may wait for a step of
another block of the same rank. Messages have numbered channels. Messages from one rank to another
on one channel are received in the order in which they are sent. See ``docs/interchange.md``.

A step may also read and write buffers of another rank, and wait for a step of another rank. Nothing
orders the calls of different ranks. A step therefore accesses the memory of another rank only after
a step of this rank (which has begun its call), and before a step of this rank (whose call lasts).
If scratch is doubled, every second call uses the same scratch. An access to scratch may then come
before its owner begins, if the accessing rank ends after that. If it is not doubled, such an access
may come before if the accessing rank ends after all accesses to the same chunk.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from opticoll.reference.plan import Collective, Problem, TooLarge

MAX_CHECKED_CHUNKS = 20_000_000
"""Maximum of the work of a check, which then takes minutes.

The work is the number of chunks in all steps, plus a share of the squared number of steps.
"""


class Act(NamedTuple):
    """Effect of an instruction on chunks.

    If data arrive and the instruction also reads chunks, it adds the chunks to the data. With
    `adds_to_destination`, it also adds the former content of the destination.
    """

    arrives: bool
    reads: bool
    adds_to_destination: bool
    writes: bool
    sends: bool


ACTS = {
    "s": Act(False, True, False, False, True),
    "r": Act(True, False, False, True, False),
    "rcs": Act(True, False, False, True, True),
    "rrc": Act(True, True, False, True, False),
    "rrs": Act(True, True, False, False, True),
    "rrcs": Act(True, True, False, True, True),
    "cpy": Act(False, True, False, True, False),
    "re": Act(False, True, True, True, False),
    "nop": Act(False, False, False, False, False),
}


class Step(NamedTuple):
    """Step of a block; `source` and `destination` have a buffer (i, o, s) and a chunk's index."""

    act: str
    source: tuple[str, int]
    destination: tuple[str, int]
    chunks: int
    waits: tuple[int, int] | tuple[int, int, int] | None
    """Step that must end first: its block and number, after its rank if this is another rank."""
    tells: bool
    line: int
    from_rank: int = -1
    to_rank: int = -1
    """Ranks whose buffers are read and written; -1 for the rank of the step."""


class Block(NamedTuple):
    """Block, whose steps run in order, send to rank `to`, and receive from rank `of`."""

    to: int
    of: int
    channel: int
    steps: list[Step]


class Rank(NamedTuple):
    scratch: int
    blocks: list[Block]


@dataclass(frozen=True)
class Program:
    collective: Collective
    in_place: bool
    out_of_place: bool
    ranks: list[Rank]
    doubled_scratch: bool = False


Name = tuple[int, int, int]
"""Name of a step: rank, block, index in the block."""

Held = list[Counter[tuple[int, int]]]
"""Content of each chunk: how many times it contains each input chunk (rank, chunk)."""

Cell = tuple[str, int]
"""Chunk of memory: its buffer and its index; buffer `m` is shared by input and output."""


def verify_program(
    program: Program, *, in_place: bool, links: Iterable[tuple[int, int]] | None = None
) -> list[Problem]:
    """Returns the problems of a program; the program is proved if the list is empty.

    `links` are pairs of vertices. The first vertices are the ranks; all others are switches.

    Raises:
        TooLarge: this verifier would need minutes for the program.
    """
    return list(Check(program, in_place).problems(links))


class Check:
    """Checker of a program: its steps by name, and their effects on memory."""

    def __init__(self, program: Program, in_place: bool) -> None:
        self.program, self.in_place = program, in_place
        self.collective = program.collective
        self.steps: dict[Name, Step] = {}
        self.blocks: dict[tuple[int, int], Block] = {}
        for rank, rank_program in enumerate(program.ranks):
            for number, block in enumerate(rank_program.blocks):
                self.blocks[rank, number] = block
                self.steps |= {(rank, number, at): step for at, step in enumerate(block.steps)}
        work = sum(step.chunks for step in self.steps.values())
        if work + len(self.steps) ** 2 // 64 > MAX_CHECKED_CHUNKS:
            raise TooLarge(f"{len(self.steps)} steps are more than this verifier looks at")

    def problems(self, links: Iterable[tuple[int, int]] | None) -> Iterator[Problem]:
        if links is not None:
            yield from self.without_link(links)
        malformed = [*self.malformed(), *self.shared_connections()]
        yield from malformed
        if malformed:
            return
        yield from self.carried_out()

    # Rules of single steps.

    def malformed(self) -> Iterator[Problem]:
        ranks = self.collective.ranks
        for name, step in self.steps.items():
            rank, act, block = name[0], ACTS[step.act], self.blocks[name[:2]]
            for used, peer in ((act.sends, block.to), (act.arrives, block.of)):
                if used and (not 0 <= peer < ranks or peer == rank):
                    yield Problem("peer", f"{said(name)} has no peer but {peer}")
            owners = self.owners(name)
            places = [(owners[0], *step.source)] * act.reads
            places += [(owners[1], *step.destination)] * act.writes
            for owner, buffer, first in places:
                last = first + step.chunks - 1
                if first < 0 or last >= self.size(owner, buffer) or step.chunks < 1:
                    yield Problem("bounds", f"{said(name)} is at {buffer} {first} to {last}")
            if step.waits is not None:
                awaited = self.steps.get(self.awaited(name))
                if awaited is None or not awaited.tells:
                    yield Problem(
                        "dependency", f"{said(name)} waits for {step.waits}, which never comes"
                    )

    def owners(self, name: Name) -> tuple[int, int]:
        """Returns the ranks whose buffers a step reads and writes."""
        step = self.steps[name]
        ranks = (step.from_rank, step.to_rank)
        return tuple(name[0] if rank < 0 else rank for rank in ranks)  # type: ignore[return-value]

    def awaited(self, name: Name) -> Name:
        rank, *place = (name[0], *(self.steps[name].waits or ()))[-3:]
        return rank, place[0], place[1]

    def shared_connections(self) -> Iterator[Problem]:
        for end in ("sends", "arrives"):
            used: set[tuple[int, int, int]] = set()
            for (rank, _), block in self.blocks.items():
                if not any(getattr(ACTS[step.act], end) for step in block.steps):
                    continue
                connection = rank, block.to if end == "sends" else block.of, block.channel
                if connection in used:
                    yield Problem("connection", f"two blocks share {end} of {connection}")
                used.add(connection)

    def without_link(self, links: Iterable[tuple[int, int]]) -> Iterator[Problem]:
        ranks = range(self.collective.ranks)
        beyond: defaultdict[int, set[int]] = defaultdict(set)
        for start, end in links:
            beyond[start].add(end)
        pairs = {
            (name[0], self.blocks[name[:2]].to)
            for name, step in self.steps.items()
            if ACTS[step.act].sends
        }
        moves = [
            self.owners(name) for name, step in self.steps.items() if step.act in ("cpy", "re")
        ]
        pairs |= {(source, target) for source, target in moves if source != target}
        for rank, peer in sorted(pairs):
            near, passed = set(beyond[rank]), set[int]()
            while switches := near - passed - set(ranks):
                passed |= switches
                near |= set().union(*(beyond[switch] for switch in switches))
            if peer in ranks and peer not in near | {rank}:
                yield Problem("no_link", f"rank {rank} sends to {peer} without a link")

    # Memory.

    def size(self, rank: int, buffer: str) -> int:
        """Returns the number of chunks in a buffer of a rank.

        The program states the size of scratch buffers, and the collective all other sizes.
        """
        kind, piece = self.collective.kind, self.collective.pieces
        every = self.collective.ranks * piece
        if rank != self.collective.root and kind + buffer in ("gathero", "scatteri"):
            return 0
        if buffer == "s":
            return self.program.ranks[rank].scratch
        large = {
            "i": ("reduce_scatter", "all_to_all", "scatter"),
            "o": ("all_gather", "all_to_all", "gather"),
        }
        return every if kind in large[buffer] else piece

    def cells(self, rank: int, place: tuple[str, int], count: int) -> list[Cell]:
        buffer, first = place
        if buffer == "s" or not self.in_place:
            return [(buffer, chunk) for chunk in range(first, first + count)]
        # In place, the smaller of input and output is part of the larger: the rank's own block.
        kind, root = self.collective.kind, self.collective.root
        inside = {"all_gather": "i", "gather": "i", "reduce_scatter": "o", "scatter": "o"}
        rooted = kind in ("gather", "scatter") and rank != root
        if inside.get(kind) == buffer and not rooted:
            first += rank * self.collective.pieces
        return [("m", chunk) for chunk in range(first, first + count)]

    def at_first(self) -> dict[tuple[int, Cell], Counter[tuple[int, int]]]:
        """Returns the initial content of memory: each input cell contains its own input chunk."""
        only_root = self.collective.kind in ("broadcast", "scatter")
        ranks = [self.collective.root] if only_root else range(self.collective.ranks)
        return {
            (rank, cell): Counter([(rank, chunk)])
            for rank in ranks
            for chunk, cell in enumerate(self.cells(rank, ("i", 0), self.size(rank, "i")))
        }

    def at_last(self) -> Iterator[tuple[int, int, Counter[tuple[int, int]]]]:
        """Yields the required content of each chunk of the output buffers."""
        kind, piece = self.collective.kind, self.collective.pieces
        ranks, root = range(self.collective.ranks), self.collective.root
        for rank in [root] if kind in ("reduce", "gather") else ranks:
            for chunk in range(self.size(rank, "o")):
                block, part = divmod(chunk, piece)
                mine = rank * piece + part
                yield (
                    rank,
                    chunk,
                    Counter(
                        {
                            "all_gather": [(block, part)],
                            "gather": [(block, part)],
                            "all_to_all": [(block, mine)],
                            "scatter": [(root, mine)],
                            "broadcast": [(root, chunk)],
                            "reduce_scatter": [(contributor, mine) for contributor in ranks],
                            "all_reduce": [(contributor, chunk) for contributor in ranks],
                            "reduce": [(contributor, chunk) for contributor in ranks],
                        }[kind]
                    ),
                )

    # Executes the steps in one order. If no two steps race, every order has the same result.

    def carried_out(self) -> Iterator[Problem]:
        content = self.at_first()
        under_way: defaultdict[tuple[int, int, int], deque[tuple[Name, Held]]]
        under_way = defaultdict(deque)
        next_of = dict.fromkeys(self.blocks, 0)
        before: dict[Name, int] = {}
        """By step: the step and all steps before it, as bits in order of execution."""
        accesses: defaultdict[tuple[int, Cell], list[tuple[Name, bool]]] = defaultdict(list)
        moving = True
        while moving:
            moving = False
            for (rank, number), block in self.blocks.items():
                while next_of[rank, number] < len(block.steps):
                    name = rank, number, next_of[rank, number]
                    step, act = self.steps[name], ACTS[block.steps[name[2]].act]
                    after = [(rank, number, name[2] - 1)] if name[2] else []
                    if step.waits is not None:
                        after.append(self.awaited(name))
                    channel = under_way[block.of, rank, block.channel]
                    if any(earlier_step not in before for earlier_step in after) or (
                        act.arrives and not channel
                    ):
                        break
                    moving = True
                    next_of[rank, number] += 1
                    arrived = [Counter[tuple[int, int]]() for _ in range(step.chunks)]
                    if act.arrives:
                        sender, arrived = channel.popleft()
                        after.append(sender)
                        if len(arrived) != step.chunks:
                            sentence = f"{said(name)} takes {step.chunks} of {len(arrived)} chunks"
                            yield Problem("pairing", sentence)
                            return
                    mine = 1 << len(before)
                    for step_name in after:
                        mine |= before[step_name]
                    before[name] = mine
                    own, to = self.owners(name)
                    reads = self.cells(own, step.source, step.chunks) if act.reads else []
                    target = self.cells(to, step.destination, step.chunks)
                    overlaps = own == to and set(reads) & set(target) and reads != target
                    if act.writes and overlaps:
                        yield Problem("race", f"{said(name)} reads and writes overlapping chunks")
                    values = []
                    for index, value in enumerate(arrived):
                        parts = [value] * act.arrives
                        parts += [content.get((own, cell), Counter()) for cell in reads[index:][:1]]
                        if act.adds_to_destination:
                            parts.append(content.get((to, target[index]), Counter()))
                        if not all(parts):
                            yield Problem("not_written", f"{said(name)} reads what is not there")
                        total = sum(parts, Counter[tuple[int, int]]())
                        if len(total) < sum(map(len, parts)):
                            yield Problem("double_reduction", f"{said(name)} adds a part again")
                        values.append(total)
                    # In place, copying an input chunk onto itself changes nothing.
                    stays = step.act == "cpy" and (own, reads) == (to, target)
                    for cell in [] if stays else reads:
                        accesses[own, cell].append((name, False))
                    if act.writes and not stays:
                        for cell, value in zip(target, values, strict=True):
                            content[to, cell] = value
                            accesses[to, cell].append((name, True))
                    if act.sends:
                        under_way[rank, block.to, block.channel].append((name, values))
        unfinished = [key for key, block in self.blocks.items() if next_of[key] < len(block.steps)]
        for key in unfinished:
            yield Problem("stuck", f"{said((*key, next_of[key]))} waits for ever")
        for (source, destination, number), unread in under_way.items():
            if unread and not unfinished:
                ends = f"rank {source} to {destination} on channel {number}"
                yield Problem("pairing", f"{len(unread)} messages of {ends} never arrive")
        yield from self.races(accesses, before)
        yield from self.outside_calls(accesses, before)
        if unfinished:
            return
        for rank, chunk, wanted in self.at_last():
            (cell,) = self.cells(rank, ("o", chunk), 1)
            if content.get((rank, cell), Counter()) != wanted:
                yield Problem("wrong_result", f"rank {rank}, output chunk {chunk} is not right")

    def races(
        self, accesses: dict[tuple[int, Cell], list[tuple[Name, bool]]], before: dict[Name, int]
    ) -> Iterator[Problem]:
        place = {name: number for number, name in enumerate(before)}
        for (rank, cell), steps in accesses.items():
            for number, (later, later_writes) in enumerate(steps):
                for earlier, writes in steps[:number]:
                    ordered = before[later] >> place[earlier] & 1
                    if (writes or later_writes) and not ordered:
                        at = f"rank {rank}, chunk {cell[1]}"
                        yield Problem("race", f"{at}: {said(earlier)} and {said(later)}")

    def outside_calls(
        self, accesses: dict[tuple[int, Cell], list[tuple[Name, bool]]], before: dict[Name, int]
    ) -> Iterator[Problem]:
        of_rank: defaultdict[int, int] = defaultdict(int)
        """By rank: its steps, as bits."""
        known: defaultdict[int, int] = defaultdict(int)
        """By rank: the steps before the end of its call, as bits."""
        for number, (name, earlier) in enumerate(before.items()):
            of_rank[name[0]] |= 1 << number
            known[name[0]] |= earlier
        place = {name: 1 << number for number, name in enumerate(before)}
        far = {
            (rank, name, cell)
            for (rank, cell), steps in accesses.items()
            for name, _ in steps
            if name[0] != rank
        }
        for rank, name, cell in sorted(far):
            begun = before[name] & of_rank[rank] != 0
            if cell[0] == "s" and self.program.doubled_scratch:
                begun = known[name[0]] & of_rank[rank] != 0
            elif cell[0] == "s":
                others = (place[other] for other, _ in accesses[rank, cell])
                begun = begun or all(other & known[name[0]] for other in others)
            if not begun:
                yield Problem("outside_call", f"{said(name)}: has rank {rank} begun its call?")
            elif not known[rank] & place[name]:
                yield Problem("outside_call", f"{said(name)}: has rank {rank} ended its call?")


def said(name: Name) -> str:
    """Returns a step's name as text."""
    return f"rank {name[0]}, block {name[1]}, step {name[2]}"
