"""Graphs as node-link JSON, which `json.dump(networkx.node_link_data(graph), file)` writes.

`opticoll.formats.attributes` lists the attributes of nodes, edges and the graph. An edge of a
directed graph leads in one direction only.

>>> nodes = [{"id": "a"}, {"id": "b"}, {"id": "hub", "kind": "switch"}]
>>> links = [{"source": "a", "target": "hub"}, {"source": "hub", "target": "b", "rate": "1Gb/s"}]
>>> fabric_of({"directed": False, "nodes": nodes, "links": links}).spec
'custom:ranks=2,switches=1,links=0-2+2-1@1Gb/s,names=a+b+hub,rate=100Gb/s,latency=0s'
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeGuard

from opticoll._core import Fabric
from opticoll.errors import FabricError, needed
from opticoll.formats import attributes
from opticoll.formats.atomic import write_file
from opticoll.formats.attributes import Item
from opticoll.formats.document import Place, read_json
from opticoll.formats.network_graph import MisplacedError

if TYPE_CHECKING:
    import networkx


def read(path: Path, **beside: object) -> Fabric:
    """Reads a custom fabric from a file; `beside` are fields of the YAML file that names this file.

    Raises
    ------
    ConfigError
        The file is no node-link graph, or no valid fabric; the message names the node or link.
    FileError
        The file cannot be read.
    """
    return fabric_of(read_json(path), path.name, beside)


def fabric_of(
    content: object, file: str = "", beside: Mapping[str, object] = MappingProxyType({})
) -> Fabric:
    """Returns the custom fabric of a node-link graph.

    `beside` are fields of the YAML file that names the file of the graph.

    Raises
    ------
    MisplacedError
        The content is no node-link graph, or no valid fabric; the error names the node or link.
    """
    if not isinstance(content, dict) or not isinstance(content.get("nodes"), list):
        raise MisplacedError((), "this is not a node-link graph: it has no list `nodes`")
    key = "edges" if "edges" in content else "links"
    if not isinstance(content.get(key), list):
        raise MisplacedError((), "this is not a node-link graph: it has no list `links` or `edges`")
    whole, directed = content.get("graph", {}), content.get("directed", False)
    if not isinstance(whole, dict):
        raise MisplacedError(("graph",), "the attributes of the graph are a set of fields")
    if not isinstance(directed, bool):
        raise MisplacedError(("directed",), "must be true or false")
    nodes, edges = [], []
    for position, node in enumerate(content["nodes"]):
        place: Place = ("nodes", position)
        if not isinstance(node, dict) or "id" not in node:
            raise MisplacedError(place, "a node needs an `id`")
        nodes.append(Item(place, (_identity(node["id"]),), node))
    for position, edge in enumerate(content[key]):
        place = (key, position)
        if not isinstance(edge, dict) or not {"source", "target"} <= edge.keys():
            raise MisplacedError(place, "an edge needs `source` and `target`")
        ends = (_identity(edge["source"]), _identity(edge["target"]))
        edges.append(Item(place, ends, edge, directed))
    return attributes.fabric_of(file, whole, nodes, edges, beside, ("graph",))


def _identity(value: object) -> str:
    """Returns the name of a node as text.

    If the name is a tuple in NetworkX, it is a list in JSON.
    """
    return ".".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def is_graph(value: object) -> TypeGuard[networkx.Graph]:
    """Returns whether a value is a NetworkX graph, without importing NetworkX."""
    return hasattr(value, "is_directed") and hasattr(value, "nodes")


def from_networkx(graph: networkx.Graph, name: str = "") -> Fabric:
    """Returns the custom fabric of a NetworkX graph; notes and titles call the graph `name`.

    Raises
    ------
    MisplacedError
        The graph is no valid fabric; the error names the node or edge.
    """
    nodes = [{**attributes, "id": name} for name, attributes in graph.nodes(data=True)]
    edges = [
        {**attributes, "source": source, "target": target}
        for source, target, attributes in graph.edges(data=True)
    ]
    directed, whole = graph.is_directed(), graph.graph
    content = {"directed": directed, "graph": whole, "nodes": nodes, "edges": edges}
    return fabric_of(content, name)


def to_networkx(fabric: Fabric) -> networkx.Graph:
    """Converts an electrical fabric to a NetworkX graph with the attributes that `write` writes.

    Raises
    ------
    FabricError
        Any error that the docstring of `write` lists.
    UsageError
        The package `networkx` is not installed.
    """
    networkx = needed("networkx", "graphs are made by")
    content = _content(fabric)
    kind = "Multi" * content["multigraph"] + ("DiGraph" if content["directed"] else "Graph")
    graph = getattr(networkx, kind)(**content["graph"])
    for node in content["nodes"]:
        graph.add_node(node.pop("id"), **node)
    for edge in content["edges"]:
        graph.add_edge(edge.pop("source"), edge.pop("target"), **edge)
    return graph


def write(fabric: Fabric, path: Path) -> None:
    """Writes the links of an electrical fabric.

    The attribute `fabric` of the graph is the specification of the fabric.

    If some links lead in one direction only, all edges are directed.

    Raises
    ------
    FabricError
        The fabric has no links that messages share, or has both half-duplex and one-way links.
    FileError
        The file cannot be written.
    """
    write_file(path, json.dumps(_content(fabric), indent=1) + "\n")


def _content(fabric: Fabric) -> dict[str, Any]:
    """Returns the JSON content for `write`."""
    directed, content = attributes.content_of(fabric)
    edges = content["edges"]
    if any("directed" in edge for edge in edges):
        raise FabricError(
            "node_link has no graphs with both half-duplex links and links that lead one way; "
            "write GraphML"
        )
    ways = [(edge["source"], edge["target"]) for edge in edges]
    multiple = len({way if directed else frozenset(way) for way in ways}) < len(ways)
    if multiple:
        content["edges"] = [{**edge, "key": number} for number, edge in enumerate(edges)]
    return {"directed": directed, "multigraph": multiple, **content}
