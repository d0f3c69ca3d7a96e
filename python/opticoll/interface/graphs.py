"""Methods of `Fabric` and `Plan` that convert from and to graphs of NetworkX.

`METHODS` lists the methods of compiled classes whose code is Python. `import opticoll` adds these
methods to the classes, and `crates/py/stub.py` adds their signatures to the stub.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from opticoll._core import Fabric, Plan
from opticoll.errors import needed

if TYPE_CHECKING:
    import networkx


def from_networkx(graph: networkx.Graph) -> Fabric:
    """Returns the fabric of a NetworkX graph, which `to_networkx` or another program made.

    Functions with a parameter `fabric` also accept the graph itself.

    Parameters
    ----------
    graph : networkx.Graph
        The graph. A node is a rank, unless its attribute `kind` is `switch`. Edges may have the
        attributes `rate`, `latency`, `sharing` and `duplex`; the graph may have their defaults. An
        edge of a directed graph leads in one direction only. A graph with the attribute
        `wavelengths` is a graph of fibres.

    Raises
    ------
    ConfigError
        The graph is no valid fabric; the message names the node or edge.
    FabricError
        The value is no graph, or plans do not apply to its fabric.

    Examples
    --------
    >>> import networkx, opticoll
    >>> graph = networkx.star_graph(["switch", "left", "right"])
    >>> graph.nodes["switch"]["kind"] = "switch"
    >>> graph.edges["switch", "right"]["rate"] = "40Gb/s"
    >>> fabric = opticoll.Fabric.from_networkx(graph)
    >>> fabric.ranks, fabric.link_rates
    (2, [100000000000, 100000000000, 40000000000, 40000000000])
    """
    from opticoll._core import FabricError
    from opticoll.formats.node_link import is_graph
    from opticoll.inputs.fabric_files import to_fabric

    if not is_graph(graph):
        raise FabricError(f"`{graph!r}` is not a graph of NetworkX")
    return to_fabric(graph)


def to_networkx(self: Plan, slot: int | None = None) -> networkx.MultiDiGraph:
    """Returns the transfers of a slot, or of the whole plan, as a directed NetworkX graph.

    The first nodes are the ranks, in order. Other nodes are the switches of the fabric. Nodes have
    the names and the attribute `kind` of `Fabric.to_networkx`; if ranks have no names, rank 5 is
    `rank 5`.

    Each transfer is an edge. Its key is the index of the transfer in the plan. Its attributes are
    the columns of `columns`. If the plan or the fabric determines the links that the transfer
    passes, the attribute `links` is a list of (start, end) with the names of nodes.

    Parameters
    ----------
    slot : int, optional
        The slot, from 0 (default: all slots).

    Raises
    ------
    IndexError
        The plan has no such slot.
    UsageError
        The package `networkx` is not installed.

    Examples
    --------
    >>> import opticoll
    >>> ring = "wdm_ring:ranks=4,wavelengths=2"
    >>> graph = opticoll.plan("all_gather", ring, "ring").to_networkx(slot=0)
    >>> graph.number_of_nodes(), graph.number_of_edges()
    (4, 4)
    >>> graph.edges["rank 0", "rank 1", 0]["wavelength"]
    0
    """
    networkx = needed("networkx", "graphs are made by")
    if slot is not None and not 0 <= slot < self.slots:
        raise IndexError(f"the plan has no slot {slot}: it has slots 0 to {self.slots - 1}")
    fabric = self.fabric
    names = fabric.vertex_names or [f"rank {rank}" for rank in range(fabric.ranks)]
    graph = networkx.MultiDiGraph(fabric=fabric.spec)
    for vertex, name in enumerate(names):
        graph.add_node(name, kind="rank" if vertex < fabric.ranks else "switch")
    ends = fabric.link_ends
    hops = _hops(self, slot)
    for number in range(self.slots) if slot is None else [slot]:
        columns = self.slot_columns(number)
        rows = zip(*(column.tolist() for column in columns.values()), strict=True)
        for values in rows:
            row = dict(zip(columns, values, strict=True))
            transfer, start, end = (row.pop(name) for name in ("transfer", "source", "destination"))
            route = [] if ends is None else [ends[link] for link in self.route(transfer)]
            links = [(names[a], names[b]) for a, b in route or hops.get(transfer, [])]
            known = {"links": links} if links else {}
            graph.add_edge(names[start], names[end], transfer, **row, **known)
    return graph


def _hops(plan: Plan, slot: int | None) -> dict[int, list[tuple[int, int]]]:
    """Returns the ends of the circuits that each transfer uses, on grids of tunable circuits."""
    columns = plan.hop_columns(slot)
    hops: dict[int, list[tuple[int, int]]] = {}
    for transfer, start, end in zip(
        *(columns[name].tolist() for name in ("transfer", "source", "destination")), strict=True
    ):
        hops.setdefault(transfer, []).append((start, end))
    return hops


METHODS: dict[type, list[Callable[..., Any] | staticmethod[..., Any]]] = {
    Fabric: [staticmethod(from_networkx)],
    Plan: [to_networkx],
}
"""Methods that are written in Python, by their class."""
