"""Networks of SNDlib, the library of test instances for the design of networks, in its XML.

Nodes become ranks. Their coordinates are positions if the file calls them geographical. A link has
no length and no rate; its capacities and costs are choices of a design. Demands are not read
(Orlowski et al., SNDlib 1.0, Networks 55, 2010; https://sndlib.put.poznan.pl).
"""

from __future__ import annotations

from pathlib import Path

from opticoll._core import Fabric
from opticoll.formats.attributes import Item, fabric_of
from opticoll.formats.content import read_text
from opticoll.formats.network_graph import MisplacedError
from opticoll.formats.xml_tree import MAX_BYTES, Element, parse


def read(path: Path, **beside: object) -> Fabric:
    """Reads a fabric from a file; `beside` are options that are given with the file.

    Raises
    ------
    ConfigError
        The file is no such network, or no valid fabric; the message names the node or link.
    FileError
        The file cannot be read.
    """
    root = parse(read_text(path, "XML file", most=MAX_BYTES))
    structures = list(root.named("networkStructure"))
    if root.tag != "network" or len(structures) != 1:
        raise MisplacedError((), "this is not a network of SNDlib with one <networkStructure>")
    (structure,) = structures
    nodes, links = [], []
    for listed in structure.named("nodes"):
        is_geographical = listed.attributes.get("coordinatesType") == "geographical"
        for node in listed.named("node"):
            place = (f"node in line {node.line}",)
            if "id" not in node.attributes:
                raise MisplacedError(place, "a node needs an `id`")
            values = _attributes(node)
            if is_geographical:
                renamed = {"coordinates.x": "Longitude", "coordinates.y": "Latitude"}
                values = {renamed.get(key, key): value for key, value in values.items()}
            nodes.append(Item(place, (node.attributes["id"],), values))
    for listed in structure.named("links"):
        for link in listed.named("link"):
            place = (f"link in line {link.line}",)
            values = _attributes(link)
            if not {"source", "target"} <= values.keys():
                raise MisplacedError(place, "a link needs <source> and <target>")
            links.append(Item(place, (values["source"], values["target"]), values))
    whole = dict.fromkeys((child.tag for child in root.children if child is not structure), "")
    return fabric_of(path.name, whole, nodes, links, beside)


def _attributes(element: Element, prefix: str = "") -> dict[str, str]:
    """Returns the texts of all elements inside an element, by tags joined by dots."""
    values: dict[str, str] = {}
    for child in element.children:
        if child.children:
            values |= _attributes(child, f"{prefix}{child.tag}.")
        else:
            values[prefix + child.tag] = child.text.strip()
    return values
