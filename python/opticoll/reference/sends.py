"""Reader of schedules that only list sends: CSV files, and results of TE-CCL.

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
