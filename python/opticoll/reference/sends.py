"""Reader of schedules that only list sends: CSV files, results of TE-CCL, algorithms of SCCL.

Such a schedule becomes a plan on a fabric on which any rank may send to any other. Therefore
`verify` judges only the transfers. Each line is a transfer. All lines of a step (in TE-CCL: an
epoch) happen together.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace

from opticoll.reference.links import Links
from opticoll.reference.plan import Collective, NotAPlan, Plan, Transfer
from opticoll.reference.text import read_collective
from opticoll.reference.words import expect, whole

NUMBERS = ("ranks", "root", "pieces")
ACTIONS = ("copy", "reduce", "multicast", "aggregate")
HEADING = ["step", "source", "destination", "chunk", "count", "action"]
LIKE_FLOW = (
    r"Chunk (\d+) from (\d+) traveled over (\d+)->(\d+)(?: with volume 1(?:\.0)?)? "
    r"in epoch (\d+)(?: via switches [\d, >-]*)?"
)
LIKE_DEMAND = r"Demand at (\d+) for chunk (\d+) from (\d+) met by epoch \d+"


def read_sends(text: str) -> Plan:
    """Reads a CSV of sends.

    Raises:
        NotAPlan: the text is no valid CSV of sends.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    comments = [line.lstrip("# \t").split() for line in lines if line.startswith("#")]
    heads = [words for words in comments if any(word.startswith("ranks=") for word in words)]
    rows = [[cell.strip() for cell in line.split(",")] for line in lines if line[0] != "#"]
    expect(bool(heads), "no comment names the collective")
    expect(bool(rows), "the heading is missing")
    (kind, *options), (heading, *rows) = heads[0], rows
    expect(set(HEADING[:4]) <= set(heading), "the heading lacks a column")
    values = {"root": "0", "pieces": "1"} | dict(
        option.split("=", 1) for option in options if "=" in option
    )
    collective = read_collective([kind, *(f"{name}={values[name]}" for name in NUMBERS)])
    sent = []
    for row in rows:
        expect(len(row) == len(heading), "a line has too few or too many cells")
        cells = {"count": "1", "action": "copy"} | dict(zip(heading, row, strict=True))
        expect(cells["action"] in ACTIONS, f"no action is called {cells['action']}")
        step, source, destination, chunk, count = (whole(cells[name]) for name in HEADING[:5])
        sent.append(Transfer(step, cells["action"], chunk, count, source, destination))
    return plan_of(collective, sent)


def read_te_ccl(text: str, ranks: int) -> Plan:
    """Reads a result of TE-CCL for `ranks` ranks.

    If the result has more vertices than ranks, the vertices at which no flow starts or ends are
    switches.

    Raises:
        NotAPlan: the text is no valid result.
    """
    try:
        content = json.loads(text)
        flows, paths = content["7-Flows"], content["8-Chunk paths"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise NotAPlan(f"no result of TE-CCL: {error}") from error
    expect("0-Collective" not in content, "results that name their collective are not read here")
    moved = [numbers(LIKE_FLOW, flow) for flow in flows]
    demands = [numbers(LIKE_DEMAND, path) for path in paths]
    expect(bool(moved and demands), "no flows or no demands")
    ends = {vertex for _, *vertices, _ in moved for vertex in vertices}
    ends |= {vertex for at, _, source in demands for vertex in (at, source)}
    vertices = list(range(ranks)) if max(ends) < ranks else sorted(ends)
    expect(len(vertices) == ranks, "the flows are of another number of ranks")
    rank = {vertex: number for number, vertex in enumerate(vertices)}
    wanted: dict[tuple[int, int], set[int]] = {}
    for at, chunk, source in demands:
        wanted.setdefault((rank[source], chunk), set()).add(rank[at])
    if all(len(destinations) == 1 for destinations in wanted.values()):
        kind, number_of = "all_to_all", dict[tuple[int, int], int]()
        blocks: dict[int, list[tuple[int, int]]] = {}
        for (source, chunk), (destination,) in sorted(wanted.items()):
            blocks.setdefault(source * ranks + destination, []).append((source, chunk))
        pieces = max(map(len, blocks.values()))
        for block, chunks in blocks.items():
            number_of |= {name: block * pieces + piece for piece, name in enumerate(chunks)}
    else:
        kind, pieces = "all_gather", 1 + max(chunk for _, chunk in wanted)
        number_of = {
            (source, chunk): source * pieces + chunk
            for chunk, source in ((chunk_number, rank[of]) for chunk_number, of, *_ in moved)
        }
    sent = [
        Transfer(epoch, "copy", number_of[rank[source], chunk], 1, rank[start], rank[end])
        for chunk, source, start, end, epoch in moved
        if (rank[source], chunk) in number_of
    ]
    return plan_of(Collective(kind, ranks, 0, pieces), sent)


def read_sccl(text: str) -> Plan:
    """Reads an algorithm of SCCL, whose chunks state who has them before and who needs them.

    Raises:
        NotAPlan: the text is no valid algorithm, or of no collective that is known here.
    """
    try:
        content = json.loads(text)
        collective, parts = content["collective"], content["instance"]["chunks"]
        ranks, chunks = collective["nodes"], collective["chunks"]
        sends = [
            (step, *send) for step, each in enumerate(content["steps"]) for send in each["sends"]
        ]
        rows = [(one["addr"], (*one["pre"],), (*sorted(one["post"]),)) for one in chunks]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise NotAPlan(f"no algorithm of SCCL: {error}") from error
    for number in _flat([ranks, parts, sends, rows]):
        expect(type(number) is int and 0 <= number <= 2**20, f"{str(number)[:50]} is no number")
    expect(ranks > 0 and parts > 0 and all(len(send) == 4 for send in sends), "no algorithm")
    ends: dict[int, Ends] = {}
    for address, before, after in rows:
        summands, wanted = ends.get(address, ((), after))
        expect(len(before) == 1 and wanted == after, f"the chunks of address {address}")
        expect(not {*before} & {*summands}, f"two chunks of one rank have address {address}")
        ends[address] = (*sorted((*summands, *before)),), after
    kind, root, blocks = _blocks(ends, ranks)
    (each_block,) = {len(block) for block in blocks}
    number_of = {
        address: index * each_block + place
        for index, block in enumerate(blocks)
        for place, address in enumerate(block)
    }
    held = {
        (rank, address * parts + part): {rank}
        for address, (owners, _) in ends.items()
        for part in range(parts)
        for rank in owners
    }
    sent, last, then = [], -1, held
    for step, place, source, target in sends:
        then = {key: {*summands} for key, summands in held.items()} if step > last else then
        last, address = step, place // parts
        expect(max(source, target) < ranks and address in ends, "an address or a rank")
        brought = then.get((source, place), set[int]())
        there = held.get((target, place), set[int]())
        held[target, place] = there | brought
        action = "copy" if there <= brought else "reduce"
        chunk = number_of[address] * parts + place % parts
        sent.append(Transfer(step, action, chunk, 1, source, target))
    return plan_of(Collective(kind, ranks, root, each_block * parts), sent)


Ends = tuple[tuple[int, ...], tuple[int, ...]]
"""Ranks that have the chunks of an address before, and ranks that need their sum."""


def _flat(value: object) -> list[object]:
    """Returns all values in nested lists and tuples."""
    if not isinstance(value, list | tuple):
        return [value]
    return [inner for part in value for inner in _flat(part)]


def _blocks(ends: dict[int, Ends], ranks: int) -> tuple[str, int, list[list[int]]]:
    """Returns the kind of collective, its root, and the addresses of its blocks.

    Raises:
        NotAPlan: the addresses are those of no collective.
    """
    for kind, before, after in FORMS:
        if not ends or not (_fits(before, ends, 0, ranks) and _fits(after, ends, 1, ranks)):
            continue
        source, target = next(iter(ends.values()))
        root = source[0] if before == "root" else target[0] if after == "root" else 0
        blocks: dict[tuple[int, ...], list[int]] = {}
        for address, (source, target) in sorted(ends.items()):
            key = (source if before == "one" else ()) + (target if after == "one" else ())
            blocks.setdefault(key, []).append(address)
        expect(len(blocks) == ranks ** [before, after].count("one"), f"{kind}: a block is missing")
        expect(len({len(block) for block in blocks.values()}) == 1, f"{kind}: unequal blocks")
        return kind, root, [blocks[key] for key in sorted(blocks)]
    raise NotAPlan("the chunks are those of no collective")


FORMS = (
    *(("all_reduce", "all", "all"), ("reduce", "all", "root"), ("reduce_scatter", "all", "one")),
    *(("broadcast", "root", "all"), ("all_gather", "one", "all"), ("scatter", "root", "one")),
    *(("gather", "one", "root"), ("all_to_all", "one", "one")),
)
"""Collectives by who has an address before and who needs it: all ranks, the root, or one rank."""


def _fits(form: str, ends: dict[int, Ends], side: int, ranks: int) -> bool:
    sets = {end[side] for end in ends.values()}
    if form == "all":
        return sets == {(*range(ranks),)}
    return all(len(one) == 1 for one in sets) and (form == "one" or len(sets) == 1)


def numbers(pattern: str, text: object) -> list[int]:
    """Returns the numbers that a pattern finds in a sentence."""
    match = re.fullmatch(pattern, text, re.ASCII) if isinstance(text, str) else None
    if match is None:
        raise NotAPlan(f"`{text}` is not of the form")
    return [whole(word) for word in match.groups()]


def plan_of(collective: Collective, sent: list[Transfer]) -> Plan:
    """Returns a plan of sends; steps are renumbered without gaps, and each step is one slot."""
    sent = sorted(sent, key=lambda transfer: transfer.slot)
    steps = dict.fromkeys(transfer.slot for transfer in sent)
    slots = {step: slot for slot, step in enumerate(steps)}
    for transfer in sent:
        highest = max(transfer.source, transfer.destination)
        expect(highest < collective.ranks, "an end is not a rank")
    transfers = [replace(transfer, slot=slots[transfer.slot]) for transfer in sent]
    return Plan(collective, Links("custom", {}, collective.ranks), [1] * len(slots), {}, transfers)
