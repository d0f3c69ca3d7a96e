"""Trees along which a plan copies chunks from a rank, or reduces chunks into a rank.

>>> import opticoll
>>> plan = opticoll.plan("broadcast", "torus:dims=2x2", "binomial", size="1KiB")
>>> (tree,) = trees(plan, rank=0)
>>> tree.root, tree.chunks, tree.action, tree.depth
(0, [0], 'copy', 2)
>>> [(edge.slot, edge.source, edge.destination) for edge in tree.edges]
[(0, 0, 2), (1, 0, 1), (1, 2, 3)]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from opticoll.errors import UsageError
from opticoll.names import ADDS

if TYPE_CHECKING:
    from opticoll._core import Plan

MAX_CHUNKS = 512
"""Maximum number of chunks of a rank whose trees are computed."""

EFFECTS: tuple[Literal["copy"], Literal["reduce"]] = ("copy", "reduce")
"""Effects of a transfer on its destination, whether switches take part or not."""


@dataclass(frozen=True, order=True)
class Edge:
    """Transfer of a tree: its slot (on electrical fabrics: step), its ranks, and its index."""

    slot: int
    source: int
    destination: int
    transfer: int


@dataclass(frozen=True)
class Tree:
    """Transfers that copy some chunks from a root to other ranks, or reduce them into the root."""

    root: int
    chunks: list[int]
    action: Literal["copy", "reduce"]
    edges: list[Edge]

    @property
    def depth(self) -> int:
        """Maximum number of transfers between the root and a rank."""
        level = {self.root: 0}
        forth = self.action == "copy"
        for edge in self.edges if forth else reversed(self.edges):
            sender, receiver = (
                (edge.source, edge.destination) if forth else (edge.destination, edge.source)
            )
            if sender in level:
                level.setdefault(receiver, level[sender] + 1)
        return max(level.values())


def trees(plan: Plan, rank: int | None = None, chunk: int | None = None) -> list[Tree]:
    """Returns the trees of `chunk`, or of the first `MAX_CHUNKS` chunks of `rank`.

    Chunks along the same edges share a tree. The chunks of a rank are the chunks that the rank has
    at the start. If there are none, they are the chunks that the rank needs at the end. If there
    are none either, they are all chunks. The default rank is the root, or rank 0 without a root.

    Raises
    ------
    UsageError
        The plan has no such rank or chunk.
    """
    collective = plan.collective
    if rank is not None and not 0 <= rank < collective.ranks:
        raise UsageError(f"there is no rank {rank}: ranks are 0 to {collective.ranks - 1}")
    if chunk is not None and not 0 <= chunk < collective.chunks:
        raise UsageError(f"there is no chunk {chunk}: chunks are 0 to {collective.chunks - 1}")
    wanted = [chunk] if chunk is not None else _chunks_of(plan, rank)
    of_all = collective.before(wanted[0]) is None and collective.after(wanted[0]) is None
    columns = plan.columns()
    first, last = columns["chunk"], columns["chunk"] + columns["count"]
    slots, sources, destinations = (columns[name] for name in ("slot", "source", "destination"))
    trees_by_edges: dict[tuple[str, tuple[tuple[int, int], ...]], Tree] = {}
    for wanted_chunk in wanted[:MAX_CHUNKS]:
        moves = np.flatnonzero((first <= wanted_chunk) & (wanted_chunk < last))
        for action in EFFECTS:
            numbers = [number for number, adds in enumerate(ADDS) if adds == (action == "reduce")]
            moves_of_action = moves[np.isin(columns["action"][moves], numbers)]
            edges = sorted(
                Edge(int(slots[at]), int(sources[at]), int(destinations[at]), int(at))
                for at in moves_of_action
            )
            if not edges:
                continue
            key = (action, tuple(sorted((edge.source, edge.destination) for edge in edges)))
            if key in trees_by_edges:
                trees_by_edges[key].chunks.append(wanted_chunk)
            else:
                root = edges[0].source if action == "copy" else edges[-1].destination
                trees_by_edges[key] = Tree(root, [wanted_chunk], action, edges)
    # A plan reduces data before it copies the sum.
    ordered = sorted(trees_by_edges.values(), key=lambda tree: tree.action == "copy")
    return [tree for tree in ordered if rank in (None, tree.root) or not of_all]


def _chunks_of(plan: Plan, rank: int | None) -> list[int]:
    """Returns a rank's chunks at the start, else its chunks at the end, else all chunks."""
    collective = plan.collective
    rank = collective.root if rank is None else rank
    for end in (collective.before, collective.after):
        chunks = [chunk for chunk in range(collective.chunks) if end(chunk) == rank]
        if chunks:
            return chunks
    return list(range(collective.chunks))
