"""The least number of slots of collectives on small graphs of fibres, by CP-SAT of OR-Tools.

    python -m venv /tmp/solver && /tmp/solver/bin/pip install ortools
    /tmp/solver/bin/python validation/graph_optima.py --write crates/tests/data/wdm_graph_optima.txt

The model is that of `ring_optima.py`, with the simple paths of a graph in place of the arcs of a
ring: a lightpath carries one block in a slot, delivers at its end, takes one channel on every link,
and a rank sends only what it held before the slot. The graphs are all connected graphs of up to
four ranks, and the line, star, ring, bull and complete graph of five. The root is rank 0; a graph
occurs once for each place that its root may have.
"""

import argparse
import itertools
import sys
from dataclasses import dataclass

from ring_optima import optimum

ROOTED = ["broadcast", "scatter", "gather", "reduce"]
KINDS = ["all_gather", "reduce_scatter", "all_reduce", "all_to_all", *ROOTED]
OF_FIVE = {
    "line": [(0, 1), (1, 2), (2, 3), (3, 4)],
    "star": [(0, 1), (0, 2), (0, 3), (0, 4)],
    "ring": [(0, 1), (1, 2), (2, 3), (3, 4), (0, 4)],
    "bull": [(0, 1), (0, 2), (1, 2), (1, 3), (2, 4)],
    "complete": list(itertools.combinations(range(5), 2)),
}


@dataclass(frozen=True)
class Path:
    """A lightpath: the vertices that it passes, both ends included."""

    vertices: tuple

    @property
    def source(self):
        return self.vertices[0]

    def passes(self, _):
        """Returns the links, each as its start and its end."""
        return itertools.pairwise(self.vertices)

    def drops(self, _):
        return [self.vertices[-1]]


@dataclass(frozen=True)
class Graph:
    """A graph of ranks, with a fibre of `channels` wavelengths in each direction of an edge."""

    ranks: int
    edges: tuple
    channels: int

    @property
    def text(self):
        links = "+".join(f"{start}-{end}" for start, end in self.edges)
        return f"wdm_graph:ranks={self.ranks},links={links},wavelengths={self.channels}"

    @property
    def ports(self):
        """A limit that no rank can pass: the channels of all links."""
        return len(self.edges) * self.channels

    def paths(self):
        """Yields every lightpath that light can take: every path that visits no vertex twice."""
        beside = {*self.edges, *((end, start) for start, end in self.edges)}
        longer = [(rank,) for rank in range(self.ranks)]
        while longer:
            longer = [
                (*path, rank)
                for path in longer
                for rank in range(self.ranks)
                if (path[-1], rank) in beside and rank not in path
            ]
            yield from map(Path, longer)


def smallest(ranks, edges, root):
    """Returns the least list of edges of all numberings of the ranks that give `root` number 0."""
    others = [rank for rank in range(ranks) if rank != root]
    numberings = (
        dict(zip((root, *order), range(ranks), strict=True))
        for order in itertools.permutations(others)
    )
    return min(
        tuple(sorted(tuple(sorted((number[a], number[b]))) for a, b in edges))
        for number in numberings
    )


def is_connected(ranks, edges):
    joined = {0}
    for _ in range(ranks):
        joined |= {end for edge in edges if joined & {*edge} for end in edge}
    return len(joined) == ranks


def graphs():
    """Yields the graphs, each as its number of ranks and the edges for each place of the root."""
    named = [(5, edges) for edges in OF_FIVE.values()]
    for ranks in (2, 3, 4):
        pairs = list(itertools.combinations(range(ranks), 2))
        for count in range(ranks - 1, len(pairs) + 1):
            named += [(ranks, edges) for edges in itertools.combinations(pairs, count)]
    seen = set()
    for ranks, edges in sorted(named, key=lambda graph: graph[0]):
        places = {smallest(ranks, edges, root) for root in range(ranks)}
        if is_connected(ranks, edges) and not seen & {(ranks, place) for place in places}:
            seen |= {(ranks, place) for place in places}
            yield ranks, sorted(places)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--write", help="file for the table (default: standard output)")
    parser.add_argument("--seconds", type=float, default=120, help="time a question")
    given = parser.parse_args()
    table = "# collective, fabric, least number of slots; by validation/graph_optima.py\n"
    for (ranks, places), channels, kind in itertools.product(list(graphs()), (1, 2), KINDS):
        for edges in places if kind in ROOTED else places[:1]:
            graph = Graph(ranks, edges, channels)
            least, reached = optimum(graph, kind, given.seconds)
            row = f"{kind}\t{graph.text}\t{least}"
            print(row, "" if least == reached else f"to {reached}", file=sys.stderr, flush=True)
            # A question that the time does not decide is left out.
            table += f"{row}\n" if least == reached else ""
    if given.write:
        with open(given.write, "w", encoding="utf-8") as file:
            file.write(table)
    else:
        print(table, end="")


if __name__ == "__main__":
    main()
