"""Graphs in GraphML, which `networkx.write_graphml(graph, path)` writes.

`opticoll.formats.attributes` lists the attributes of nodes, edges and the graph. Text is read as
UTF-8, whatever encoding the file names.
"""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from opticoll._core import Fabric
from opticoll.formats.atomic import write_file
from opticoll.formats.attributes import Item, content_of, fabric_of
from opticoll.formats.content import MAX_TEXT_BYTES, read_text
from opticoll.formats.network_graph import MisplacedError
from opticoll.formats.xml_tree import Element, parse

_WRITTEN = {
    "graph": ("fabric", "ties"),
    "node": ("kind", "in_network", "Latitude", "Longitude"),
    "edge": ("rate", "latency", "sharing", "duplex", "length"),
}
_STRUCTURE = ("id", "source", "target", "directed")


def read(path: Path, **beside: object) -> Fabric:
    """Reads a custom fabric from a file; `beside` are fields of the YAML file that names this file.

    Raises
    ------
    ConfigError
        The file is no such graph, or no valid fabric; the message names the node or edge.
    FileError
        The file cannot be read.
    """
    root = parse(read_text(path, "GraphML file", most=MAX_TEXT_BYTES))
    graphs = list(root.named("graph"))
    if root.tag != "graphml" or len(graphs) != 1:
        raise MisplacedError((), "this is not a GraphML file with one graph")
    (whole,) = graphs
    if any(nested.tag == "graph" for nested in whole.walk() if nested is not whole):
        raise MisplacedError((), "graphs inside nodes are not accepted")
    if any(whole.named("hyperedge")):
        problem = "a link joins two vertices; write an edge, or a switch with an edge to each end"
        raise MisplacedError(("hyperedge", 0), problem)
    keys = list(root.named("key"))
    names = {key.attributes.get("id", ""): key.attributes.get("attr.name", "") for key in keys}
    defaults: dict[str, dict[str, str]] = {"graph": {}, "node": {}, "edge": {}}
    for key in keys:
        for default in key.named("default"):
            for kind in defaults:
                if key.attributes.get("for") in (kind, "all"):
                    defaults[kind][key.attributes.get("attr.name", "")] = default.text.strip()

    def attributes(element: Element) -> dict[str, str]:
        values = dict(defaults[element.tag])
        for datum in element.named("data"):
            if name := names.get(datum.attributes.get("key", "")):
                values[name] = datum.text.strip()
        return values

    nodes, edges = [], []
    for position, node in enumerate(whole.named("node")):
        if "id" not in node.attributes:
            raise MisplacedError(("node", position), "a node needs an `id`")
        nodes.append(Item(("node", position), (node.attributes["id"],), attributes(node)))
    otherwise = str(whole.attributes.get("edgedefault") == "directed")
    for position, edge in enumerate(whole.named("edge")):
        attributes_of_edge = edge.attributes
        if not {"source", "target"} <= attributes_of_edge.keys():
            raise MisplacedError(("edge", position), "an edge needs `source` and `target`")
        one_way = attributes_of_edge.get("directed", otherwise).lower() == "true"
        ends = (attributes_of_edge["source"], attributes_of_edge["target"])
        edges.append(Item(("edge", position), ends, attributes(edge), one_way))
    return fabric_of(path.name, attributes(whole), nodes, edges, beside)


def write(fabric: Fabric, path: Path) -> None:
    """Writes the links of an electrical fabric.

    The attribute `fabric` of the graph is the specification of the fabric.

    Raises
    ------
    FabricError
        The fabric has no links that messages share.
    FileError
        The file cannot be written.
    """
    directed, content = content_of(fabric)
    root = ElementTree.Element("graphml", xmlns="http://graphml.graphdrawing.org/xmlns")
    for of, always in _WRITTEN.items():
        # Only graphs of fibres have further options.
        for name in dict.fromkeys((*always, *(content["graph"] if of == "graph" else ()))):
            key = {"id": f"{of}_{name}", "for": of, "attr.name": name, "attr.type": "string"}
            ElementTree.SubElement(root, "key", key)
    default = "directed" if directed else "undirected"
    graph = ElementTree.SubElement(root, "graph", edgedefault=default)

    every = [(of, attributes) for of in ("node", "edge") for attributes in content[f"{of}s"]]
    for of, attributes in [("graph", content["graph"]), *every]:
        structure = {name: attributes.pop(name) for name in _STRUCTURE if name in attributes}
        element = graph if of == "graph" else ElementTree.SubElement(graph, of, structure)
        for name, value in attributes.items():
            ElementTree.SubElement(element, "data", key=f"{of}_{name}").text = value
    ElementTree.indent(root)
    write_file(path, ElementTree.tostring(root, "utf-8", xml_declaration=True))
