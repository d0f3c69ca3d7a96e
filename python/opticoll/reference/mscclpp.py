"""Reader of MSCCL++'s execution plans (JSON), whose operations access the memory of other ranks.

Each block becomes a block of steps that copy (`cpy`), add (`re`) or wait (`nop`). A chunk is cut
into pieces, so that a block's part of an operation (`tbg_info`) and a repetition of a pipeline move
whole pieces. An operation that adds several chunks adds them in scratch that only its block uses.

The threads of a block meet only at a `nop` or a barrier. Whatever needs such a meeting before it is
refused without one: data after a wait, data that an earlier operation of the block accesses, and a
signal after data.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, chain, pairwise
from math import lcm
from typing import Any, NamedTuple

from opticoll.reference.msccl import KINDS, plain
from opticoll.reference.plan import Collective, NotAPlan, TooLarge
from opticoll.reference.program import Block, Program, Rank, Step
from opticoll.reference.words import expect

MAX_CHARACTERS = 64 * 2**20
MAX_NUMBER = 2**20
OPERATIONS, CHANNELS, OF_OPERATION, SEMAPHORES = 64, 16, 8, 16
"""Room of the runtime: operations, channels of a block; channels, semaphores of an operation."""
REUSED = 2**26
"""Bytes of scratch that is reused."""
MOST_REPETITIONS = 65

PACKETS = {
    "ppkt": (False, True),
    "cpkt": (False, True),
    "rppkt": (True, True),
    "gstorepkt": (True, True),
    "upkt": (True, False),
}
"""Whether sources and destinations are packets; those of sums are, except the first of each."""
SUMS = ("re", "res", "rre", "rres", "repkt", "respkt", "recpkt", "recspkt", "glres")
PAIRS = ("put", "pws", "pwsf", "ppkt", "get")
STORES = ("copy", "cpkt", "upkt", "rppkt", "gstore", "gstorepkt")


@dataclass(frozen=True)
class Place:
    """Pieces `first` to `first + count - 1` of a buffer of a rank."""

    rank: int
    buffer: str
    first: int
    count: int
    packets: bool


class Item:
    """A step that has no number yet, and the items that must end before it."""

    def __init__(self, act: str, source: Place | None, target: Place | None) -> None:
        self.act, self.source, self.target = act, source, target
        self.after: list[Item] = []
        self.previous: Item | None = None
        self.name = (0, 0, 0)


class Touch(NamedTuple):
    """Access of memory by the threads of a block since they met."""

    rank: int
    buffer: str
    first: int
    end: int
    writes: bool
    by_proxy: bool
    by_packet: bool
    """The k-th thread accesses the k-th part of the size of a packet."""
    begin: int = 0
    """Where the part of the first thread begins."""
    packets: int | None = None
    """First piece of own scratch to which the operation writes packets, each after the access."""


def value(table: Any, key: str, kind: type, otherwise: Any = None) -> Any:
    expect(isinstance(table, dict), f"`{key}` belongs to a table")
    found = table.get(key)
    if found is None:
        expect(otherwise is not None, f"`{key}` is missing")
        return otherwise
    expect(type(found) is kind, f"`{key}` is {str(found)[:50]}")
    return found


def whole(table: Any, key: str, most: int = MAX_NUMBER, otherwise: int | None = None) -> int:
    number: int = value(table, key, int, otherwise)
    expect(0 <= number <= most, f"`{key}` is {number}")
    return number


def wholes(table: Any, key: str, below: int) -> list[int]:
    numbers: list[int] = value(table, key, list)
    for number in numbers:
        expect(type(number) is int and 0 <= number < below, f"`{key}` is {str(number)[:50]}")
    return numbers


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    expect(len(pairs) == len(dict(pairs)), "a key occurs twice")
    return dict(pairs)


def read_mscclpp(text: str) -> Program:
    """Reads a program from MSCCL++'s JSON.

    Raises:
        NotAPlan: the text describes no program, or one that the runtime cannot execute.
        TooLarge: the text is longer than any program.
    """
    if len(text) > MAX_CHARACTERS:
        raise TooLarge(f"{len(text)} characters are more than {MAX_CHARACTERS} to look at")
    try:
        data = json.loads(text, object_pairs_hook=unique)
    except (ValueError, RecursionError) as error:
        if isinstance(error, NotAPlan):
            raise
        raise NotAPlan(f"no JSON: {error}") from error
    return PlanReader(data).program()


class PlanReader:
    """The plan, and everything that orders its items."""

    def __init__(self, data: Any) -> None:
        self.data = data
        self.gpus: list[Any] = value(data, "gpus", list)
        self.ranks = len(self.gpus)
        expect(0 < self.ranks <= MAX_NUMBER, f"{self.ranks} gpus")
        self.protocol = value(data, "protocol", str)
        expect(self.protocol in ("Simple", "LL"), f"protocol {self.protocol[:50]}")
        value(data, "name", str)
        self.in_place: bool = value(data, "inplace", bool)
        self.doubled: bool = value(data, "use_double_scratch_buffer", bool, False)
        self.scratch = [whole(gpu, "scratch_chunks") for gpu in self.gpus]
        self.cut()
        self.signals: defaultdict[tuple[Any, ...], list[tuple[int, Item]]] = defaultdict(list)
        self.awaited: defaultdict[tuple[Any, ...], list[tuple[int, Item]]] = defaultdict(list)
        self.released: defaultdict[tuple[int, int], list[tuple[int, Item]]] = defaultdict(list)
        self.acquired: defaultdict[tuple[int, int], list[tuple[int, int, Item]]] = defaultdict(list)
        self.met: defaultdict[tuple[int, int], list[tuple[int, int, Item, Item]]]
        self.met = defaultdict(list)
        self.written: dict[tuple[int, int], Item] = {}
        self.read: list[tuple[Item, int, int]] = []
        self.values: list[list[int]] = []
        self.items = 0

    def operations(self) -> Iterator[Any]:
        for gpu in self.gpus:
            for block in value(gpu, "threadblocks", list):
                for operation in value(block, "ops", list, []):
                    yield operation
                    yield from value(operation, "ops", list, [])

    def cut(self) -> None:
        """Determines how many pieces a chunk has, and a repetition of a pipeline moves."""
        parts, units = 1, set[int]()
        for operation in self.operations():
            if operation.get("tbg_info") is not None:
                size = max(1, whole(operation["tbg_info"], "tbg_size"))
                parts = lcm(parts, size)
                expect(parts <= MAX_NUMBER, "too many parts")
            if operation.get("iter_context") is not None:
                unit = whole(operation["iter_context"], "unit_size", 2**32 - 1)
                units.add(max(1, unit))
        expect(len(units) <= 1, "pipelines have different units")
        self.slots: int | None = None
        if value(self.data, "reuse_resources", bool, False) and units and max(self.scratch) > 0:
            slots = max(1, REUSED // (1 + self.doubled) // max(self.scratch) // max(units))
            self.slots = slots if slots < MOST_REPETITIONS else None
        self.moved = parts
        repetitions = 1 if not units else 2 if self.slots is None else self.slots + 1
        self.cuts = parts * repetitions

    def collective(self) -> Collective:
        name = value(self.data, "collective", str)
        kinds = [kind for kind in KINDS if kind.replace("_", "") == plain(name)]
        expect(kinds != [], f"collective {name[:50]} is not known")
        sizes = {(whole(gpu, "input_chunks"), whole(gpu, "output_chunks")) for gpu in self.gpus}
        expect(len(sizes) == 1, "the gpus have different numbers of chunks")
        ((inputs, outputs),) = sizes
        # The second half of doubled scratch begins at the same place in all gpus.
        equal = len(set(self.scratch)) == 1
        expect(equal or not self.doubled, "the gpus have different numbers of chunks of scratch")
        chunks = outputs if kinds[0] in ("reduce_scatter", "scatter") else inputs
        parts = self.ranks if kinds[0] == "all_to_all" else 1
        expect(chunks > 0 and chunks % parts == 0, f"{chunks} chunks")
        largest = max(inputs, outputs, *self.scratch) * self.cuts
        expect(largest <= MAX_NUMBER, "too many chunks")
        root = whole(self.data, "root", MAX_NUMBER, 0)
        expect(root < self.ranks, f"root {root}")
        return Collective(kinds[0], self.ranks, root, chunks // parts * self.cuts)

    def program(self) -> Program:
        collective = self.collective()
        gpus = [Gpu(self, collective, rank, gpu) for rank, gpu in enumerate(self.gpus)]
        for gpu in gpus:
            for _, members in gpu.groups:
                # The members of a switch channel make it together.
                lists = [
                    [one for one in gpus[rank].groups if one[1] == members] for rank in members
                ]
                expect(gpu.rank in members, f"rank {gpu.rank} has a switch channel of others")
                expect(all(one == lists[0] for one in lists), f"switch channels of {members}")
        self.values = [gpu.values for gpu in gpus]
        number, blocks = 0, list[list[list[Item]]]()
        used = [count * self.cuts for count in self.scratch]
        for gpu in gpus:
            blocks.append([])
            for index, described in enumerate(value(gpu.data, "threadblocks", list)):
                expect(whole(described, "id") == index, f"thread block {index}")
                block = BlockReader(gpu, described, number, used[gpu.rank])
                blocks[-1].append(block.items())
                used[gpu.rank] += block.temporary
                number += 1
        self.order()
        ranks = []
        for rank, of_rank in enumerate(blocks):
            for index, items in enumerate(of_rank):
                ends = accumulate(max(1, len(item.after)) for item in items)
                for item, end in zip(items, ends, strict=True):
                    item.name = rank, index, end - 1
        for rank, of_rank in enumerate(blocks):
            own = [Block(-1, -1, 0, [*steps_of(items, rank)]) for items in of_rank]
            ranks.append(Rank(used[rank], own))
        in_place = self.in_place
        return Program(collective, in_place, not in_place, ranks, self.doubled)

    def order(self) -> None:
        """Adds to each item the items that must end before it."""
        for semaphore in {*self.released, *self.acquired}:
            releases, acquires = self.released[semaphore], self.acquired[semaphore]
            initial = self.values[semaphore[0]][semaphore[1]]
            expect(len(releases) == len(acquires), f"semaphore {semaphore} changes its value")
            expect(len({block for block, _, _ in acquires}) == 1, f"semaphore {semaphore}: blocks")
            if len({block for block, _ in releases}) == 1:
                for (_, _, acquire), (_, release) in zip(
                    acquires[initial:], releases, strict=False
                ):
                    acquire.after.append(release)
                continue
            for place, (_, run, acquire) in enumerate(acquires):
                if acquires[place + 1 : place + 2] and acquires[place + 1][1] == run:
                    continue
                if initial == 0 and place + 1 == len(releases):
                    acquire.after += [release for _, release in releases]
                else:
                    expect(place < initial, f"semaphore {semaphore}: which release?")
        for barrier, arrivals in self.met.items():
            by_block: defaultdict[int, list[tuple[Item, Item]]] = defaultdict(list)
            for block, _, *both in arrivals:
                by_block[block].append((both[0], both[1]))
            expect({meeting for _, meeting, *_ in arrivals} == {len(by_block)}, f"{barrier}")
            rounds = {len(items) for items in by_block.values()}
            expect(len(rounds) == 1, f"barrier {barrier} is met a different number of times")
            for block, items in by_block.items():
                others = [rows for other, rows in by_block.items() if other != block]
                for turn, (_, leave) in enumerate(items):
                    leave.after += [rows[turn][0] for rows in others]
        found: list[tuple[tuple[int, Item], tuple[int, Item]]] = []
        for channel in {*self.signals, *self.awaited}:
            signals, waits = self.signals[channel], self.awaited[channel]
            expect(len(signals) == len(waits), f"{channel}: a signal or a wait is left over")
            for ends in (signals, waits):
                for (block, item), (other, later) in pairwise(ends):
                    ordered = block == other or precedes(item, later)
                    expect(ordered, f"{channel}: two blocks use it in no order")
            found += zip(signals, waits, strict=True)
        for (_, signal), (_, wait) in found:
            wait.after.append(signal)
        for item, rank, piece in self.read:
            writer = self.written.get((rank, piece))
            expect(writer is not None, f"packets of rank {rank} are never written")
            if writer is not None and writer not in item.after:
                item.after.append(writer)


def precedes(first: Item, then: Item) -> bool:
    """Returns whether blocks, semaphores and barriers of the rank order two items."""
    seen, waiting = set[int](), [then]
    while waiting:
        item = waiting.pop()
        if item is first:
            return True
        if id(item) not in seen:
            seen.add(id(item))
            waiting += [*item.after, *([item.previous] if item.previous else [])]
    return False


def steps_of(items: list[Item], rank: int) -> Iterator[Step]:
    nowhere = ("i", 0)
    for item in items:
        for other in item.after[:-1]:
            yield Step("nop", nowhere, nowhere, 0, other.name, True, 0)
        last = item.after[-1].name if item.after else None
        if item.source is None or item.target is None:
            yield Step("nop", nowhere, nowhere, 0, last, True, 0)
            continue
        at = [(place.buffer, place.first) for place in (item.source, item.target)]
        owners = item.source.rank, item.target.rank
        yield Step(item.act, at[0], at[1], item.source.count, last, True, 0, *owners)


class Gpu:
    """The channels, remote buffers and semaphores of a rank."""

    def __init__(self, plan: PlanReader, collective: Collective, rank: int, data: Any) -> None:
        self.plan, self.collective, self.rank, self.data = plan, collective, rank, data
        expect(whole(data, "id") == rank, f"gpu {rank}")
        self.peers: dict[str, list[int]] = {"memory": [], "port": []}
        self.groups: list[tuple[str, list[int]]] = []
        for channel in value(data, "channels", list, []):
            kind = value(channel, "channel_type", str)
            if kind == "switch":
                key = "buffer_type" if channel.get("buffer_type") is not None else "buff"
                buffer = self.buffer(channel, key)
                for group in value(channel, "rank_groups", list):
                    self.groups.append((buffer, wholes(group, "ranks", plan.ranks)))
                continue
            expect(kind in self.peers, f"channel_type {kind[:50]}")
            peers = wholes(channel, "connected_to", plan.ranks)
            expect(rank not in peers, f"rank {rank} has a channel to itself")
            self.peers[kind] += peers
        self.remote = []
        for remote in value(data, "remote_buffers", list, []):
            owner = whole(remote, "rank", plan.ranks - 1)
            self.remote.append((owner, self.buffer(remote, "type")))
        semaphores = value(data, "semaphores", list, [])
        self.values = [whole(semaphore, "init_value") for semaphore in semaphores]

    @staticmethod
    def buffer(table: Any, key: str) -> str:
        buffer: str = value(table, key, str)
        expect(buffer in ("i", "o", "s"), f"buffer {buffer[:50]}")
        return buffer


class BlockReader:
    """The items of a block."""

    def __init__(self, gpu: Gpu, data: Any, number: int, scratch: int) -> None:
        self.gpu, self.plan, self.data, self.number = gpu, gpu.plan, data, number
        self.scratch, self.temporary = scratch, 0
        self.channels: dict[str, list[int]] = {"memory": [], "port": [], "switch": []}
        self.remote: dict[str, list[int]] = {"memory": [], "port": []}
        room = {kind: len(peers) for kind, peers in gpu.peers.items()}
        room["switch"] = len(gpu.groups)
        for channel in value(data, "channels", list, []):
            kind = value(channel, "channel_type", str)
            expect(kind in self.channels, f"channel_type {kind[:50]}")
            self.channels[kind] += wholes(channel, "channel_ids", room[kind])
        for remote in value(data, "remote_buffer_refs", list, []):
            kind = value(remote, "access_channel_type", str)
            expect(kind in self.remote, f"access_channel_type {kind[:50]}")
            self.remote[kind] += wholes(remote, "remote_buffer_ids", len(gpu.remote))
        for used in (*self.channels.values(), *self.remote.values()):
            expect(len(used) <= CHANNELS, f"{len(used)} channels or remote buffers")
        self.found: list[Item] = []
        self.touched: list[Touch] = []
        self.waited, self.run = False, 0

    def items(self) -> list[Item]:
        operations = value(self.data, "ops", list, [])
        inner = [value(operation, "ops", list, []) for operation in operations]
        expect(len(operations) + sum(map(len, inner)) <= OPERATIONS, "too many operations")
        for operation, repeated in zip(operations, inner, strict=True):
            if value(operation, "name", str) != "pipeline":
                self.operation(operation, None)
                continue
            chunks = whole(value(operation, "iter_context", dict), "num_chunks")
            times = chunks * self.plan.cuts // self.plan.moved
            for turn in range(times):
                for each in repeated:
                    self.operation(each, (turn, times))
        return self.found

    def operation(self, operation: Any, turn: tuple[int, int] | None) -> None:
        name = value(operation, "name", str)
        expect(len(value(operation, "channel_ids", list, [])) <= OF_OPERATION, f"{name}: channels")
        if name not in ("nop", "sem_acquire"):
            self.run += 1
        if name == "nop":
            self.meet()
        elif name == "barrier":
            barrier = whole(operation, "barrier_id", SEMAPHORES - 1)
            meeting = whole(operation, "num_threadblocks")
            arrives, leaves = self.nothing(), self.nothing()
            row = self.number, meeting, arrives, leaves
            self.plan.met[self.gpu.rank, barrier].append(row)
            self.meet()
        elif name in ("signal", "rlxsignal"):
            expect(not self.waited and not self.touched, f"{name} without a nop before it")
            self.signal(operation)
        elif name in ("wait", "rlxwait"):
            item = self.nothing()
            for peer, channel in self.channels_of(operation):
                key = (peer, self.gpu.rank, *channel)
                self.plan.awaited[key].append((self.number, item))
            self.waited = True
        elif name in ("sem_acquire", "sem_release"):
            self.semaphores(operation, name)
        elif name != "flush":
            self.data_operation(operation, name, turn)

    def meet(self) -> None:
        self.touched, self.waited = [], False

    def nothing(self) -> Item:
        return self.append(Item("nop", None, None))

    def append(self, item: Item) -> Item:
        self.plan.items += 1
        expect(self.plan.items <= MAX_NUMBER + OPERATIONS, "too many instructions")
        item.previous = self.found[-1] if self.found else None
        self.found.append(item)
        return item

    def channels_of(self, operation: Any) -> Iterator[tuple[int, tuple[str, int]]]:
        """Yields the peer of each channel, with the type and how many such channels precede it."""
        kind = value(operation, "channel_type", str)
        expect(kind in self.gpu.peers, f"channel_type {kind[:50]}")
        for place in wholes(operation, "channel_ids", len(self.channels[kind])):
            index = self.channels[kind][place]
            peers = self.gpu.peers[kind]
            yield peers[index], (kind, peers[:index].count(peers[index]))

    def signal(self, operation: Any) -> None:
        item = self.nothing()
        for peer, channel in self.channels_of(operation):
            self.plan.signals[self.gpu.rank, peer, *channel].append((self.number, item))

    def semaphores(self, operation: Any, name: str) -> None:
        if name == "sem_release":
            expect(not self.waited and not self.touched, f"{name} without a nop before it")
        semaphores = wholes(operation, "semaphore_ids", len(self.gpu.values))
        expect(len(semaphores) <= SEMAPHORES, f"{len(semaphores)} semaphores")
        for semaphore in semaphores:
            item, key = self.nothing(), (self.gpu.rank, semaphore)
            if name == "sem_release":
                self.plan.released[key].append((self.number, item))
            else:
                self.plan.acquired[key].append((self.number, self.run, item))
        self.waited = self.waited or name == "sem_acquire"

    def data_operation(self, operation: Any, name: str, turn: tuple[int, int] | None) -> None:
        expect(name in (*SUMS, *PAIRS, *STORES), f"operation {name[:50]} is not known")
        by_proxy = operation.get("channel_type") == "port"
        packed = PACKETS.get(name, (False, False))
        if name == "ppkt" and by_proxy:
            packed = True, True
        later = name in ("repkt", "respkt", "recpkt", "recspkt")
        sources, targets = (
            [
                self.places(operation, one, packets or (later and place > 0), turn)
                for place, one in enumerate(self.listed(operation, key))
            ]
            for key, packets in zip(("src_buff", "dst_buff"), packed, strict=True)
        )
        counts = {place.count for places in (*sources, *targets) for place in places}
        expect(len(counts) == 1, f"{name}: sizes {counts}")
        if name in SUMS:
            expect(len(targets) > name.startswith("rec"), f"{name}: {len(targets)} destinations")
            expect(value(operation, "reduce_op", str, "sum") == "sum", f"{name}: only sums")
            rows = [([*chain(*sources)], [*chain(*targets)])]
        elif name in STORES:
            rows = [(sources[0], [*chain(*targets)])]
        else:
            expect(len(sources) == len(targets), f"{name}: as many sources as destinations")
            if name == "get":
                same = all(a[0].first == b[0].first for a, b in zip(sources, targets, strict=True))
                expect(same, "get: MSCCL++ reads and writes the same index only")
            else:
                expect(len({a[0].buffer for a in sources}) == 1, f"{name}: one source buffer")
            rows = list(zip(sources, targets, strict=True))
        for source, target in rows:
            self.combine(source, target, by_proxy)
        if name in ("pws", "pwsf"):
            unmet = any(touch.writes and not touch.by_proxy for touch in self.touched)
            expect(not unmet, f"{name} without a nop before it")
            self.signal(operation)

    @staticmethod
    def listed(operation: Any, key: str) -> list[Any]:
        listed: list[Any] = value(operation, key, list)
        expect(1 <= len(listed) <= 2 + OF_OPERATION, f"{len(listed)} buffers in {key}")
        return listed

    def places(
        self, operation: Any, buffer: Any, packets: bool, turn: tuple[int, int] | None
    ) -> list[Place]:
        first = whole(buffer, "index") * self.plan.cuts
        count = whole(buffer, "size") * self.plan.cuts
        expect(count > 0, "an operation without chunks")
        if operation.get("tbg_info") is not None:
            parts = max(1, whole(operation["tbg_info"], "tbg_size"))
            count //= parts
            first += count * whole(operation["tbg_info"], "tb_id", parts - 1)
        shift = 0
        if turn is not None:
            expect(count >= turn[1] * self.plan.moved, "a pipeline longer than its operation")
            count = self.plan.moved
            shift = turn[0] * count
        if buffer.get("type") is not None:
            owners = [(self.gpu.rank, self.gpu.buffer(buffer, "type"))]
        elif buffer.get("switch_channel_id") is not None:
            own = self.channels["switch"]
            index = own[whole(buffer, "switch_channel_id", len(own) - 1)]
            kind, ranks = self.gpu.groups[index]
            owners = [(rank, kind) for rank in ranks]
        else:
            channel_type = value(operation, "channel_type", str)
            expect(channel_type in self.remote, f"channel_type {channel_type[:50]}")
            refs = self.remote[channel_type]
            owners = [self.gpu.remote[refs[whole(buffer, "buffer_id", len(refs) - 1)]]]
        found = []
        for rank, kind in owners:
            over = shift
            if kind == "s" and self.plan.slots is not None:
                over = shift % (self.plan.slots * self.plan.moved)
            in_packets = kind == "s" and self.plan.protocol == "LL"
            expect(packets == in_packets, "packets are all of scratch in LL, and nothing else is")
            found.append(Place(rank, kind, first + over, count, packets))
        expect(found != [], "a switch without ranks")
        return found

    def combine(self, sources: list[Place], targets: list[Place], by_proxy: bool) -> None:
        """Adds items that write the sum of the sources to each target."""
        rank = self.gpu.rank
        far = any(place.rank != rank for place in sources[1:])
        expect(not (by_proxy and far), "a port reads no remote buffer")
        by_packet = not by_proxy and any(place.packets for place in (*sources, *targets))
        own = [
            [place for place in places if by_packet and place.packets and place.rank == rank]
            for places in (sources, targets)
        ]
        for place in own[0]:
            self.read_packets(place)
        written = own[1][0].first if own[1] else None
        touches = [
            self.touch(place, writes, by_proxy)._replace(by_packet=by_packet, packets=written)
            for places, writes in ((sources, False), (targets, True))
            for place in places
            if not place.packets
        ]
        expect(not self.waited, "data after a wait without a nop")
        for touch in touches:
            for other in self.touched:
                apart = touch.end <= other.first or other.end <= touch.first
                same = (touch.rank, touch.buffer) == (other.rank, other.buffer)
                reads = not touch.writes and not other.writes
                threads = touch.by_packet and other.by_packet and touch.begin == other.begin
                expect(apart or not same or reads or threads, "dependent operations without a nop")
        self.touched += touches
        if len(sources) == 1:
            for target in targets:
                # Packets that are stored where they came from stay as they are.
                if not target.packets or target != sources[0]:
                    self.add("cpy", sources[0], target)
            return
        total = sources[0]
        if targets != sources[:1]:
            count = total.count
            self.temporary = max(self.temporary, count)
            total = Place(self.gpu.rank, "s", self.scratch, count, packets=False)
            self.add("cpy", sources[0], total)
        for source in sources[1:]:
            self.add("re", source, total)
        for target in targets if total != sources[0] else []:
            self.add("cpy", total, target)

    def touch(self, place: Place, writes: bool, by_proxy: bool) -> Touch:
        buffer, first = place.buffer, place.first
        if self.plan.in_place and buffer != "s":
            kind, own = self.gpu.collective.kind, place.rank * self.gpu.collective.pieces
            root = place.rank == self.gpu.collective.root
            part = {"all_gather": "i", "reduce_scatter": "o"}
            part |= {"gather": "i", "scatter": "o"} if root else {}
            first += own if part.get(kind) == buffer else 0
            buffer = "m"
        return Touch(place.rank, buffer, first, first + place.count, writes, by_proxy, False, first)

    def read_packets(self, place: Place) -> None:
        """Notes that threads have packets, and are past what their writers did before."""
        touched: list[Touch] = []
        for touch in self.touched:
            if touch.packets is None:
                touched.append(touch)
                continue
            shift = touch.begin - touch.packets
            start, end = place.first + shift, place.first + place.count + shift
            inside = max(start, touch.first), min(end, touch.end)
            if inside[0] >= inside[1]:
                touched.append(touch)
                continue
            parts = (
                touch._replace(end=inside[0]),
                touch._replace(first=inside[1]),
                touch._replace(
                    first=inside[0],
                    end=inside[1],
                    begin=start,
                    packets=touch.packets if start == touch.begin else None,
                ),
            )
            touched += [part for part in parts if part.first < part.end]
        self.touched = touched

    def add(self, act: str, source: Place, target: Place) -> None:
        item = self.append(Item(act, source, target))
        for piece in range(source.first, source.first + source.count) if source.packets else ():
            self.plan.read.append((item, source.rank, piece))
        for piece in range(target.first, target.first + target.count) if target.packets else ():
            other = self.plan.written.setdefault((target.rank, piece), item)
            expect(other is item, f"packets of rank {target.rank} are written twice")
