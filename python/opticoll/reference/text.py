"""Reader of a plan's text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from opticoll.reference.families import read_fabric
from opticoll.reference.plan import Collective, NotAPlan, Plan, Transfer
from opticoll.reference.words import expect, plain, size, whole

KINDS = (
    *("all_gather", "reduce_scatter", "all_reduce", "broadcast"),
    *("reduce", "gather", "scatter", "all_to_all", "barrier"),
)
SHIFTS = ("chunk", "rank", "source", "destination", "slot", "turn")
"""Numbers of a transfer that repetitions may increase on every fabric."""


def read(text: str) -> Plan:
    """Reads a plan from its text.

    Raises:
        NotAPlan: the text does not have the form of a plan; `verify` finds all other problems.
    """
    number = 1
    try:
        lines = list(lines_of(text))
        first = text.split("\n")[lines[0][0] - 1]
        expect(first.split("#")[0].rstrip() == "opticoll plan 1", "expected `opticoll plan 1`")
        expect(lines[-1][1][0] == "end" and len(lines[-1][1]) == 2, "the end is missing")
        declared = whole(lines[-1][1][1], 2**27)
        plan = read_head(lines)
        slot = None
        for number, (keyword, *words) in lines[head_length(lines) :]:
            if keyword == "slot":
                (word,) = words
                expect(slot is None or whole(word) > slot, "slots must increase")
                slot = whole(word)
                expect(slot < sum(plan.steps), "the steps have no such slot")
            elif keyword in ("copy", "reduce", "multicast", "aggregate"):
                expect(slot is not None, "a transfer needs a slot")
                room = declared - len(plan.transfers)
                plan.transfers += read_transfers(plan, slot or 0, keyword, words, room)
            else:
                expect(keyword == "end", "expected slot, copy, reduce, multicast, aggregate or end")
                expect(declared == len(plan.transfers), "transfers are missing")
                expect(number == lines[-1][0], "nothing may follow the end")
    except (ValueError, IndexError, KeyError) as error:
        raise NotAPlan(f"line {number}: {error}") from error
    return plan


def lines_of(text: str) -> Iterator[tuple[int, list[str]]]:
    """Yields the number and the words of each line, without comments and empty lines.

    Only a line feed ends a line; a carriage return may precede it. Blanks and tabs separate words.
    Other control characters are refused.
    """
    *lines, last = text.split("\n")
    for number, line in enumerate([*(line.removesuffix("\r") for line in lines), last], start=1):
        statement = line.split("#")[0]
        odd = [
            character
            for character in statement
            if character not in " \t" and (character.isspace() or is_control(character))
        ]
        if odd:
            raise NotAPlan(f"line {number}: the character {odd[0]!r}")
        words = statement.replace("\t", " ").split(" ")
        if any(words):
            yield number, [word for word in words if word]


def is_control(character: str) -> bool:
    return character < " " or "\x7f" <= character < "\xa0"


def head_length(lines: list[tuple[int, list[str]]]) -> int:
    """Returns the number of lines before the first slot; the last of them is the line `steps`."""
    keywords = [words[0] for _, words in lines]
    return keywords.index("steps") + 1


def read_head(lines: list[tuple[int, list[str]]]) -> Plan:
    collective, *others = (words for _, words in lines[1 : head_length(lines)])
    demand = [words for words in others if words[0] == "demand"]
    expect(others[: len(demand)] == demand, "demands stand after the collective")
    fabric, algorithm, *options = others[len(demand) :]
    *options, steps = options
    expect(collective[0] == "collective", "expected collective")
    expect(fabric[0] == "fabric" and len(fabric) == 2, "expected a fabric")
    expect(algorithm[0] == "algorithm", "expected algorithm")
    plan = Plan(
        collective=read_demand(read_collective(collective[1:]), demand),
        fabric=read_fabric(fabric[1]),
        steps=[whole(word) for word in steps[1:]],
    )
    ranks = plan.fabric.ranks
    expect(ranks in (None, plan.collective.ranks), "fabric and collective differ in ranks")
    expect(sum(plan.steps) <= 2**24, "a plan has 2^24 slots at most")
    for place, (keyword, *words) in enumerate(options):
        expect(keyword in ("size", "claim"), "expected size, claim or steps")
        match keyword, *words:
            case "size", word:
                expect(place == 0, "one size, before the claims")
                size(word)
            case "claim", name, *_ if name in plan.claims:
                raise NotAPlan("claimed twice")
            case "claim", "neighbours_only":
                plan.claims["neighbours_only"] = 1
            case "claim", "paper_steps" | "schedule_steps" | "chunks_sent_per_rank" as name, number:
                plan.claims[name] = whole(number, 2 ** (32 if name == "schedule_steps" else 64) - 1)
            case _:
                raise NotAPlan("no such line")
    return plan


def read_collective(words: list[str]) -> Collective:
    kind, *options = words
    kinds = {plain(kind_name): kind_name for kind_name in KINDS}
    expect(plain(kind) in kinds, f"no collective is called {kind}")
    named = [option.split("=") for option in options]
    expect([key for key, _ in named] == ["ranks", "root", "pieces"], "expected ranks, root, pieces")
    ranks, root, pieces = (whole(value) for _, value in named)
    expect(ranks >= 1 and pieces >= 1, "ranks and pieces start at 1")
    expect(root < ranks, "the root is not a rank")
    collective = Collective(kinds[plain(kind)], ranks, root, pieces)
    expect(collective.chunks < 2**32, "the collective has 2^32 chunks or more")
    return collective


def read_demand(collective: Collective, lines: list[list[str]]) -> Collective:
    """Returns a collective with its demand.

    `demand 0 1=4096+1024` lists the bytes of the two pieces that rank 0 sends to rank 1.
    """
    if not lines:
        return collective
    expect(collective.kind == "all_to_all", "only all_to_all has a demand")
    expect(collective.pieces == 1, "the demand says the pieces")
    chunks: list[tuple[int, int]] = []
    total = 0
    for _, source, *blocks in lines:
        expect(len(blocks) > 0, "the rank sends nothing: leave the line out")
        for block in blocks:
            destination, equals, amounts = block.partition("=")
            ends = whole(source), whole(destination)
            expect(max(ends) < collective.ranks, "no such rank")
            expect(equals == "=", "expected DESTINATION=BYTES")
            expect(not chunks or ends > chunks[-1], "pairs of ranks increase")
            for amount in amounts.split("+"):
                expect(whole(amount, 2**64 - 1) > 0, "a chunk of no bytes")
                total += int(amount)
                chunks.append(ends)
    expect(total < 2**64, "the demand has 2^64 bytes or more")
    return replace(collective, demand=tuple(chunks))


def read_transfers(
    plan: Plan, slot: int, action: str, words: list[str], room: int
) -> Iterator[Transfer]:
    """Yields the transfer of a line and its repetitions; at most `room` transfers are allowed."""
    chunks, ends, *others = words
    chunk, plus, count = chunks.partition("+")
    source, _, receivers = ends.partition(">")
    *over, destination = receivers.split(">")
    expect(plan.fabric.relays or not over, "no rank relays anything")
    light, repetitions = plan.fabric.read_light(others, over)
    expect(not (over and repetitions), "what is relayed is not repeated")
    transfer = Transfer(
        slot=slot,
        action=action,
        chunk=whole(chunk),
        count=whole(count) if plus else 1,
        source=whole(source),
        destination=whole(destination),
        light=light,
    )
    ranks = range(plan.collective.ranks)
    expect(transfer.source in ranks and transfer.destination in ranks, "no such rank")
    expect(transfer.chunk < plan.collective.chunks, "no such chunk")
    blocks: list[tuple[int, Counter[str]]] = []
    for word in repetitions:
        if word.startswith("x"):
            room //= max(whole(word[1:]), 1)
            expect(whole(word[1:]) >= 1 and room >= 1, "a repetition of nothing, or of too much")
            expect(len(blocks) < 32, "at most 32 repetitions to a transfer")
            blocks.append((whole(word[1:]), Counter()))
        else:
            name, _, by = word.partition("+")
            is_shift = name in (*SHIFTS, *plan.fabric.shifted)
            expect(bool(blocks) and is_shift, "expected a repetition")
            blocks[-1][1][name] = whole(by)
            expect(name != "turn" or int(by) < len(ranks), "a turn by all ranks or more")
    return repeat(plan, transfer, blocks)


def repeat(
    plan: Plan, transfer: Transfer, blocks: list[tuple[int, Counter[str]]]
) -> Iterator[Transfer]:
    """Yields a transfer and its repetitions.

    Each block is a count of repetitions, and the amounts by which each repetition shifts numbers.
    The last block is the outermost loop.
    """
    if not blocks:
        yield transfer
        return
    *inner, (count, by) = blocks
    ranks, chunks = plan.collective.ranks, plan.collective.chunks
    for copy in range(count):
        light = transfer.light
        for name, most in plan.fabric.shifted.items():
            if by[name] > 0:
                number = getattr(light, name)
                expect(number is not None, f"a converted lightpath has no {name} to shift")
                light = light._replace(**{name: whole(str(number + copy * by[name]), most)})
        slot = transfer.slot + copy * by["slot"]
        expect(slot < sum(plan.steps), "the repetition leaves the slots of the plan")
        turn = copy * by["turn"]
        shifted = replace(
            transfer,
            slot=slot,
            chunk=(turned(plan.collective, transfer.chunk, turn) + copy * by["chunk"]) % chunks,
            source=(transfer.source + turn + copy * (by["rank"] + by["source"])) % ranks,
            destination=(transfer.destination + turn + copy * (by["rank"] + by["destination"]))
            % ranks,
            light=light,
        )
        yield from repeat(plan, shifted, inner)


def turned(collective: Collective, chunk: int, by: int) -> int:
    """Returns the chunk that replaces `chunk` if every rank r is replaced by rank r + `by`.

    If the collective does not look the same from every rank, `chunk` is returned unchanged.
    """
    ranks, pieces = collective.ranks, collective.pieces
    block, piece = divmod(chunk, pieces)
    if collective.kind == "all_to_all" and collective.demand is None:
        source, destination = divmod(block, ranks)
        return ((source + by) % ranks * ranks + (destination + by) % ranks) * pieces + piece
    if collective.kind == "all_reduce" and pieces % ranks == 0:
        pieces //= ranks
    elif collective.kind not in ("all_gather", "reduce_scatter"):
        return chunk
    return (chunk + by * pieces) % collective.chunks
