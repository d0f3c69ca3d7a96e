"""Reader of a collective's Chakra traces: one file per rank, with a header and nodes.

In a file, the header and each node are preceded by their length in bytes. The nodes that send to
the same rank with the same tag form a block, and so do the nodes that receive from the same rank
with the same tag. Dependencies must order the nodes of a block. If a node does not depend on the
block's last node, it starts another block with the same connection. `verify_program` reports such
blocks. Each node on a cycle becomes a block of its own, which waits forever.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from opticoll.reference.msccl import KINDS, MAX_NUMBER, plain, read_msccl
from opticoll.reference.plan import Collective, TooLarge
from opticoll.reference.program import ACTS, Block, Program, Rank, Step
from opticoll.reference.words import expect

Value = int | str | None
SEND, RECEIVE, COMPUTE, COLLECTIVE = 5, 6, 4, 7
MAX_BYTES = 64 * 2**20
ONE_BLOCK = ("all_reduce", "broadcast", "reduce")


@dataclass
class Node:
    number: int
    """Position of the node in the file, counted from 1."""
    id: int = 0
    name: str = ""
    kind: int = 0
    after: list[int] = field(default_factory=list)
    given: dict[str, Value] = field(default_factory=dict)

    def whole(self, name: str) -> int | None:
        value = self.given.get(name)
        expect(name not in self.given or isinstance(value, int), f"{name} is not a whole number")
        return value if isinstance(value, int) else None


@dataclass(frozen=True)
class Moved:
    """Effect of a node on chunks: the action, two places, and the number of chunks."""

    act: str
    source: tuple[str, int]
    destination: tuple[str, int]
    chunks: int


# Decoding of bytes.


def varint(text: bytes, at: int) -> tuple[int, int]:
    """Returns the number at position `at`, and the position after it."""
    for end in range(at, at + 10):
        expect(end < len(text), f"byte {at}: the file ends within a number")
        if text[end] < 0x80:
            number = sum(
                (byte & 0x7F) << 7 * place for place, byte in enumerate(text[at : end + 1])
            )
            expect(number < 2**64, f"byte {at}: a number has more than 64 bits")
            return number, end + 1
    expect(False, f"byte {at}: a number has more than 64 bits")
    raise AssertionError


def sized(text: bytes, at: int) -> tuple[bytes, int]:
    """Returns the bytes that follow their length at position `at`, and the position after them."""
    length, start = varint(text, at)
    expect(start + length <= len(text), f"byte {at}: {length} bytes should follow")
    return text[start : start + length], start + length


def fields(text: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yields the fields of a protobuf message: each field's number, and its value."""
    at = 0
    while at < len(text):
        key, at = varint(text, at)
        number, kind = divmod(key, 8)
        expect(number > 0 and kind in (0, 1, 2, 5), f"a field {number} of the kind {kind}")
        value: int | bytes
        if kind == 0:
            value, at = varint(text, at)
        elif kind == 2:
            value, at = sized(text, at)
        else:
            length = 8 if kind == 1 else 4
            expect(at + length <= len(text), "the file ends within a field")
            value, at = int.from_bytes(text[at : at + length], "little"), at + length
        yield number, value


def words(value: int | bytes) -> str:
    expect(isinstance(value, bytes), "a text is a number")
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else ""


def attribute(text: int | bytes) -> tuple[str, Value]:
    """Returns the name and the value of an attribute; whole numbers of all types are read."""
    expect(isinstance(text, bytes), "an attribute is a number")
    name = ""
    value: Value = None
    for number, content in fields(text if isinstance(text, bytes) else b""):
        if number == 1:
            name = words(content)
        elif number == 29:
            value = words(content)
        elif number != 2:
            value = None
            if number in (7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27):
                expect(isinstance(content, int), f"{name} is not a whole number")
                value = signed(number, content) if isinstance(content, int) else None
    return name, value


def signed(number: int, value: int) -> int:
    """Decodes a whole number; the field number `number` determines the integer type."""
    if number in (15, 17):
        return value >> 1 ^ -(value & 1)
    bits = {7: 64, 9: 64, 23: 32, 25: 64}.get(number)
    if number == 27:
        return min(value, 1)
    return value - (1 << bits) if bits and value >> (bits - 1) else value


def node_of(text: bytes, number: int) -> Node:
    node = Node(number)
    for name, value in fields(text):
        if name in (1, 3):
            expect(isinstance(value, int), "a number is none")
            if isinstance(value, int):
                node.id, node.kind = (value, node.kind) if name == 1 else (node.id, value)
        elif name == 2:
            node.name = words(value)
        elif name in (4, 5):
            node.after += [value] if isinstance(value, int) else numbers(value)
        elif name == 10:
            node.given.update([attribute(value)])
    expect(node.kind <= COLLECTIVE, f"node {node.id}: there is no type {node.kind}")
    return node


def numbers(text: bytes) -> list[int]:
    values, at = [], 0
    while at < len(text):
        number, at = varint(text, at)
        values.append(number)
    return values


def file_of(text: bytes) -> tuple[dict[str, Value], list[Node]]:
    """Returns the header and the nodes of a file."""
    expect(text != b"", "the file is empty")
    header, at = sized(text, 0)
    header_values = dict(attribute(value) for number, value in fields(header) if number == 2)
    nodes: list[Node] = []
    while at < len(text):
        message, at = sized(text, at)
        nodes.append(node_of(message, len(nodes) + 1))
    expect(len({node.id for node in nodes}) == len(nodes), "two nodes have one number")
    return header_values, nodes


# Conversion to a program.


def read_chakra(files: list[bytes]) -> Program:
    """Returns the program that the files of all ranks describe.

    Raises:
        NotAPlan: the files describe no program.
        TooLarge: the files have more than `MAX_BYTES` bytes.
    """
    if sum(map(len, files)) > MAX_BYTES:
        raise TooLarge(f"more than {MAX_BYTES} bytes to look at")
    expect(files != [], "there are no files")
    read = [file_of(text) for text in files]
    header = read[0][0]
    alike = ("collective", "input_file", "ranks", "root", "pieces", "size", "inplace", "outofplace")
    for name in alike:
        expect(
            all(other_header.get(name) == header.get(name) for other_header, _ in read),
            f"{name} differs",
        )
    return Reader(header, read).program()


class Reader:
    """Converter from the headers and nodes of all files to a program."""

    def __init__(
        self, header: dict[str, Value], read: list[tuple[dict[str, Value], list[Node]]]
    ) -> None:
        self.header, self.read = header, read
        ranks = len(read)
        embedded = header.get("input_file")
        inside = isinstance(embedded, str) and "<algo" in embedded
        self.inner = read_msccl(str(embedded)) if inside else None
        named = header.get("collective")
        if named is None and self.inner is not None:
            named = self.inner.collective.kind
        kinds = [kind for kind in KINDS if plain(kind) == plain(str(named))]
        expect(len(kinds) == 1, "the header names no collective")
        expect(self.whole("ranks", ranks) == ranks, f"there are {ranks} files")
        self.parts = 1 if kinds[0] in ONE_BLOCK else ranks
        totals = [node.whole("total_chunk_cnt") or 0 for _, nodes in read for node in nodes]
        total = next((total_bytes for total_bytes in totals if total_bytes > 0), 0)
        if self.inner is not None:
            pieces, total = self.inner.collective.pieces, 0
        else:
            pieces = max(1, total // self.parts)
        pieces = self.whole("pieces", pieces)
        expect(1 <= pieces * self.parts <= MAX_NUMBER, f"{pieces} pieces are too few or too many")
        self.scale = (total or pieces * self.parts) // (pieces * self.parts)
        whole = not total or total == self.scale * pieces * self.parts
        expect(
            whole and 1 <= self.scale <= MAX_NUMBER, f"{total} chunks are no {self.parts} blocks"
        )
        root = self.whole("root", 0)
        expect(0 <= root < ranks, f"root {root} is not a rank")
        self.collective = Collective(kinds[0], ranks, root, pieces)
        if self.inner is not None:
            expect(self.inner.collective == self.collective, "the header has another program")
        self.bytes_of_chunk: int | None = None
        if "size" in header:
            cut = ranks if kinds[0] in ("reduce_scatter", "all_to_all", "scatter") else 1
            size, cut = self.whole("size", 0), pieces * cut
            if kinds[0] == "scatter":
                cut = pieces
            expect(size % cut == 0, f"{size} bytes are no {cut} equal chunks")
            self.bytes_of_chunk = size // cut

    def whole(self, name: str, otherwise: int) -> int:
        value = self.header.get(name, otherwise)
        expect(isinstance(value, int), f"{name} is not a whole number")
        return value if isinstance(value, int) else otherwise

    def program(self) -> Program:
        inner = self.inner
        in_place = self.whole("inplace", inner.in_place if inner else 1) != 0
        out_of_place = self.whole("outofplace", inner.out_of_place if inner else 0) != 0
        expect(in_place or out_of_place, "neither in place nor out of place")
        ranks = [self.rank(rank, nodes) for rank, (_, nodes) in enumerate(self.read)]
        return Program(self.collective, in_place, out_of_place, ranks)

    def rank(self, rank: int, nodes: list[Node]) -> Rank:
        moves = {node.id: self.moved(rank, node) for node in nodes}
        blocks = [*blocks_of(nodes, moves)]
        ends = [
            first + step.chunks
            for block in blocks
            for step in block.steps
            for buffer, first in (step.source, step.destination)
            if buffer == "s"
        ]
        return Rank(max([0, *ends]), blocks)

    def moved(self, rank: int, node: Node) -> Moved | None:
        """Returns the effect of a node on chunks; None if the node only takes time."""
        inner = self.inner_step(rank, node)
        expect(node.kind != COLLECTIVE, f"node {node.id} is a whole collective")
        adds = node.whole("is_rrc")
        if adds is None:
            adds = inner is not None and inner.act in ("rrc", "rrcs")
        act = {SEND: "s", RECEIVE: "rrc" if adds else "r"}.get(node.kind)
        if node.kind == COMPUTE:
            operation = node.given.get("operation", inner.act if inner else None)
            act = operation if operation in ("cpy", "re") else None
        if act is None:
            return None
        for kind, used in ((SEND, "sends"), (RECEIVE, "arrives")):
            if node.kind == kind and inner is not None:
                fits = getattr(ACTS[inner.act], used) and not (
                    kind == RECEIVE and inner.act == "rrs"
                )
                expect(fits, f"node {node.id}: the program in the header has {inner.act}")
        count = node.whole("msg_chunk_cnt")
        count = None if count is None or count < 0 else count
        own_buffers = "srcbuf" in node.given or "dstbuf" in node.given
        if inner is not None and not own_buffers:
            expect(count in (None, inner.chunks), f"node {node.id} has {count} chunks")
            fused = act == "s" and inner.act != "s"
            source = inner.destination if fused else inner.source
            result = Moved(act, source, inner.destination, inner.chunks)
        else:
            expect(count is not None, f"node {node.id} does not say which chunks it carries")
            result = self.by_itself(node, act, count or 0)
        if node.kind in (SEND, RECEIVE):
            self.check_bytes(node, result.chunks)
        return result

    def by_itself(self, node: Node, act: str, count: int) -> Moved:
        first, second = node.whole("msg_chunk_idx"), node.whole("chunk_offset")
        if first is None or (act == "s" and second is not None):
            first = second
        second = first if second is None else second
        kind = self.collective.kind
        total = self.parts * self.collective.pieces * self.scale
        stated = node.whole("total_chunk_cnt") or 0
        expect(stated <= 0 or stated == total, f"node {node.id} has {stated} chunks in all")
        usual = {"all_gather": "oo", "gather": "oo", "all_to_all": "io"}.get(kind, "ii")
        places = []
        for name, offset, otherwise in zip(
            ("srcbuf", "dstbuf"), (first, second), usual, strict=True
        ):
            buffer = node.given.get(name, otherwise)
            expect(buffer in ("i", "o", "s"), f"node {node.id}: the buffers are i, o and s")
            places.append((str(buffer), self.scaled(node, offset)))
        return Moved(act, places[0], places[1], self.scaled(node, count))

    def scaled(self, node: Node, number: int | None) -> int:
        expect(number is not None, f"node {node.id} has no msg_chunk_idx")
        number = number or 0
        expect(-1 <= number <= MAX_NUMBER * self.scale, f"node {node.id} has a chunk {number}")
        expect(number < 0 or number % self.scale == 0, f"node {node.id} has parts of chunks")
        return -1 if number < 0 else number // self.scale

    def inner_step(self, rank: int, node: Node) -> Step | None:
        place = re.fullmatch(r".*_tb(\d{1,9})_step(\d{1,9})", node.name, re.DOTALL | re.ASCII)
        if place is None or self.inner is None:
            return None
        block, step = int(place[1]), int(place[2])
        blocks = self.inner.ranks[rank].blocks
        exists = block < len(blocks) and step < len(blocks[block].steps)
        return blocks[block].steps[step] if exists else None

    def check_bytes(self, node: Node, chunks: int) -> None:
        stated = node.whole("comm_size")
        if stated is None or chunks < 1:
            return
        if self.bytes_of_chunk is None:
            self.bytes_of_chunk = stated // chunks
        wanted = self.bytes_of_chunk * chunks
        expect(stated == wanted, f"node {node.id} has {stated} bytes, not {wanted}")


def blocks_of(nodes: list[Node], moves: dict[int, Moved | None]) -> Iterator[Block]:
    """Yields the blocks of a rank: one or more per connection, one per node without connection."""
    node_ids = {node.id for node in nodes}
    after = {node.id: {other for other in node.after if other in node_ids} for node in nodes}
    ids = topological_order(after)
    on_cycles = [node.id for node in nodes if node.id not in set(ids)]
    by_id = {node.id: node for node in nodes}
    before: dict[int, int] = {}
    """By node: the set of the node and all nodes before it, as bits in topological order."""
    for place, node_id in enumerate(ids):
        before[node_id] = 1 << place
        for earlier in after[node_id]:
            before[node_id] |= before[earlier]
    blocks: list[list[int]] = []
    of_connection: dict[tuple[int, int, int], int] = {}
    place_of = {node_id: place for place, node_id in enumerate(ids)}
    for node_id in [*ids, *on_cycles]:
        connection = connection_of(by_id[node_id], moves[node_id])
        last = of_connection.get(connection) if connection else None
        joins = last is not None and node_id in before
        if joins and last is not None:
            tail = blocks[last][-1]
            joins = tail in before and before[node_id] >> place_of[tail] & 1 == 1
        if joins and last is not None:
            blocks[last].append(node_id)
        else:
            blocks.append([node_id])
            if connection:
                of_connection[connection] = len(blocks) - 1
    waits: dict[int, list[int]] = {}
    for block in blocks:
        for place, node_id in enumerate(block):
            direct = after[node_id]
            known_before = [*direct, *block[max(place - 1, 0) : place]]
            waits[node_id] = [
                other
                for other in sorted(direct)
                if not any(
                    other != later and before.get(later, 0) >> place_of.get(other, 0) & 1
                    for later in known_before
                )
                and other not in block[:place]
            ]
    places: dict[int, tuple[int, int]] = {}
    for number, block in enumerate(blocks):
        step = 0
        for node_id in block:
            step += len(waits[node_id])
            places[node_id] = number, step
            step += 1
    nowhere = ("i", 0)
    for block in blocks:
        first = connection_of(by_id[block[0]], moves[block[0]])
        steps = []
        for node_id in block:
            line = by_id[node_id].number
            for other in waits[node_id]:
                steps.append(Step("nop", nowhere, nowhere, 0, places[other], True, line))
            move = moves[node_id] or Moved("nop", nowhere, nowhere, 0)
            effect = move.act, move.source, move.destination, move.chunks
            steps.append(Step(*effect, None, True, line))
        kind, peer, tag = first or (0, -1, 0)
        to, of = (peer if kind == SEND else -1), (peer if kind == RECEIVE else -1)
        yield Block(to, of, tag, steps)


def connection_of(node: Node, move: Moved | None) -> tuple[int, int, int] | None:
    """Returns (send or receive, the other rank, tag) for a node that sends or receives chunks.

    Returns None for any other node.
    """
    if move is None or node.kind not in (SEND, RECEIVE):
        return None
    name = "comm_dst" if node.kind == SEND else "comm_src"
    peer, tag = node.whole(name), node.whole("comm_tag") or 0
    expect(peer is not None and 0 <= peer < MAX_NUMBER, f"node {node.id}: {name} is {peer}")
    expect(0 <= tag < 2**32, f"node {node.id}: comm_tag is {tag}")
    return node.kind, peer or 0, tag


def topological_order(after: dict[int, set[int]]) -> list[int]:
    """Returns nodes in topological order, without nodes on cycles or after cycles.

    `after[n]` are the nodes that must end before node n begins.
    """
    waits = {node_id: len(earlier) for node_id, earlier in after.items()}
    dependents = defaultdict(list)
    for node_id, earlier in after.items():
        for other in earlier:
            dependents[other].append(node_id)
    order = [node_id for node_id, number in waits.items() if number == 0]
    for node_id in order:
        for dependent in dependents[node_id]:
            waits[dependent] -= 1
            if waits[dependent] == 0:
                order.append(dependent)
    return order
