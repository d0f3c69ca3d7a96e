"""Custom fabrics from files: ranks, switches and links as YAML fields, node-link JSON or GraphML.

A graph as NetworkX writes it, by `json.dump(networkx.node_link_data(graph), file)` or by
`networkx.write_graphml(graph, path)`, becomes a `custom` fabric: a node is a switch where its
attribute `kind` says so, otherwise a rank; edges may have the attributes `rate`, `latency`,
`sharing` and `duplex`, and the graph itself the options of the fabric. An edge of a directed graph
leads one way only.

>>> from opticoll.network_graph import from_node_link
>>> nodes = [{"id": "a"}, {"id": "b"}, {"id": "hub", "kind": "switch"}]
>>> links = [{"source": "a", "target": "hub"}, {"source": "hub", "target": "b", "rate": "1Gb/s"}]
>>> from_node_link({"directed": False, "nodes": nodes, "links": links}).spec
'custom:ranks=2,switches=1,links=0-2+2-1@1Gb/s,names=a+b+hub,rate=100Gb/s,latency=0s'
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote
from xml.etree import ElementTree

from opticoll import registry
from opticoll._core import Fabric, FabricError
from opticoll.document import read_text
from opticoll.errors import ConfigError

Place = tuple[str | int, ...]
"""Where something stands: keys and list positions, from the top."""

SUFFIXES = (".json", ".graphml")
"""Endings by which a fabric is taken for a graph in a file."""

_LINK_OPTIONS = ("rate", "latency", "sharing")
_FABRIC_OPTIONS = (*_LINK_OPTIONS, "ties")
_ATTRIBUTES = (*_FABRIC_OPTIONS, "kind", "duplex")
_KINDS = {"rank": False, "host": False, "switch": True, "router": True}


class MisplacedError(ConfigError):
    """Something that is wrong at a place in a file."""

    def __init__(self, place: Place, problem: str) -> None:
        super().__init__(f"{'.'.join(map(str, place))}: {problem}" if place else problem)
        self.place = place
        self.problem = problem


@dataclass
class _Graph:
    """What a file gives, in its order."""

    ranks: list[str] = field(default_factory=list)
    switches: list[str] = field(default_factory=list)
    named: bool = True
    links: list[str] = field(default_factory=list)
    places: list[Place] = field(default_factory=list)
    options: dict[str, str] = field(default_factory=dict)
    file: str = ""
    _numbers: dict[str, int] = field(default_factory=dict)

    def number(self, ranks: Place, switches: Place) -> None:
        """Number the vertices, ranks first; the places are those of their names."""
        named = [(ranks, name) for name in self.ranks]
        for place, name in [*named, *((switches, name) for name in self.switches)]:
            if not name.isprintable():
                raise MisplacedError(place, f"the name `{name}` holds characters that do not print")
            if name in self._numbers:
                raise MisplacedError(place, f"there are two ranks or switches `{name}`")
            self._numbers[name] = len(self._numbers)

    def link(self, place: Place, one: str, other: str, letter: str, options: list[str]) -> None:
        """Add a link; `letter` is `-` both ways, `~` half duplex, `>` one way."""
        for name in (one, other):
            if name not in self._numbers:
                near = registry.nearest(name, self._numbers) if self._numbers else ""
                hint = near if "did you mean" in near else ""
                raise MisplacedError(place, f"there is no rank or switch `{name}`{hint}")
        if one == other:
            raise MisplacedError(place, f"a link joins two vertices, this one `{one}` to itself")
        ends = f"{self._numbers[one]}{letter}{self._numbers[other]}"
        self.links.append("@".join([ends, *options]))
        self.places.append(place)

    def fabric(self) -> Fabric:
        if not self.ranks:
            raise MisplacedError((), "there are no ranks")
        spelled: dict[str, Any] = {"ranks": len(self.ranks), "switches": len(self.switches)}
        if self.links:
            spelled["links"] = "+".join(self.links)
        if self.named:
            names = [*self.ranks, *self.switches]
            spelled["names"] = "+".join(quote(name, safe="/") for name in names)
        try:
            fabric = Fabric("custom", **spelled, **self.options)
        except FabricError as error:
            link = getattr(error, "link", None)
            option = getattr(error, "option", None)
            place: Place = () if option is None else (option,)
            if link is not None:
                place = self.places[link]
            raise MisplacedError(place, str(error)) from error
        if self.file:
            registry.CUSTOM_FILES[fabric.spec] = (self.file, set(self.options))
        return fabric


def rank_names(fabric: Fabric) -> list[str]:
    """The names that a custom fabric gives its ranks; of other fabrics their numbers.

    >>> rank_names(Fabric("custom:ranks=2,links=0-1,names=left+right"))
    ['left', 'right']
    """
    names = fabric.option("names") if "names" in fabric.options else None
    if not names:
        return [str(rank) for rank in range(fabric.ranks)]
    return [unquote(name) for name in str(names).split("+")[: fabric.ranks]]


def is_graph(text: str) -> bool:
    """Whether a fabric is given as a graph in a file, judged by its name."""
    return text.endswith(SUFFIXES)


def read(path: str | os.PathLike[str]) -> Fabric:
    """The custom fabric in a node-link JSON or GraphML file.

    Raises
    ------
    ConfigError
        The file is no such graph; the message names node or edge.
    FileError
        The file cannot be read.
    """
    path = Path(path)
    text = read_text(path)
    try:
        if path.suffix == ".graphml":
            return from_graphml(text, path.name)
        try:
            content = json.loads(text, object_pairs_hook=_fields)
        except RecursionError as error:
            raise ConfigError("this is no JSON: it is nested too deeply") from error
        except ValueError as error:
            raise ConfigError(f"this is no JSON: {error}") from error
        return from_node_link(content, path.name)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from error


def _fields(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """The fields of an object, each of them given once."""
    fields: dict[str, object] = {}
    for name, value in pairs:
        if name in fields:
            raise ValueError(f"the field `{name}` is given twice")
        fields[name] = value
    return fields


def from_fields(fields: Mapping[str, Any], file: str = "") -> Fabric:
    """The custom fabric of the fields `ranks`, `switches`, `links` and options of a YAML file.

    Raises
    ------
    MisplacedError
        A field is none, or does not fit; with its place.
    """
    graph = _Graph(file=file)
    for key, value in fields.items():
        if key in _FABRIC_OPTIONS:
            graph.options[key] = _text((key,), value)
        elif key not in ("ranks", "switches", "links"):
            known = ("ranks", "switches", "links", *_FABRIC_OPTIONS)
            raise MisplacedError((key,), f"there is no such field{registry.nearest(key, known)}")
    graph.ranks = _names("ranks", fields.get("ranks"), "")
    graph.switches = _names("switches", fields.get("switches", 0), "s")
    graph.named = not (
        isinstance(fields.get("ranks"), int) and isinstance(fields.get("switches", 0), int)
    )
    graph.number(("ranks",), ("switches",))
    links = fields.get("links", [])
    if not isinstance(links, list):
        raise MisplacedError(("links",), "must be a list of links such as [rank, switch]")
    for position, link in enumerate(links):
        _field_link(graph, ("links", position), link)
    return graph.fabric()


def from_node_link(content: object, file: str = "") -> Fabric:
    """The custom fabric of a graph in NetworkX's node-link form.

    Raises
    ------
    MisplacedError
        It is no such graph, or no fabric; with node or link.
    """
    if not isinstance(content, dict) or not isinstance(content.get("nodes"), list):
        raise MisplacedError((), "this is no graph in node-link form: there is no list `nodes`")
    key = "edges" if "edges" in content else "links"
    if not isinstance(content.get(key), list):
        raise MisplacedError((), "this is no graph in node-link form: no list `links` or `edges`")
    graph = _Graph(file=file)
    whole, directed = content.get("graph", {}), content.get("directed", False)
    if not isinstance(whole, dict):
        raise MisplacedError(("graph",), "the attributes of the graph are a set of fields")
    if not isinstance(directed, bool):
        raise MisplacedError(("directed",), "must be true or false")
    graph.options = _options(("graph",), whole, _FABRIC_OPTIONS)
    for position, node in enumerate(content["nodes"]):
        place = ("nodes", position)
        if not isinstance(node, dict) or "id" not in node:
            raise MisplacedError(place, "a node needs an `id`")
        _node(graph, place, _identity(node["id"]), node.get("kind"))
    graph.number(("nodes",), ("nodes",))
    for position, edge in enumerate(content[key]):
        place = (key, position)
        if not isinstance(edge, dict) or not {"source", "target"} <= edge.keys():
            raise MisplacedError(place, "an edge needs `source` and `target`")
        ends = (_identity(edge["source"]), _identity(edge["target"]))
        _edge(graph, place, ends, directed, edge)
    return graph.fabric()


def from_graphml(text: str, file: str = "") -> Fabric:
    """The custom fabric of a graph in GraphML.

    Raises
    ------
    MisplacedError
        It is no such graph, or no fabric; with node or edge.
    """
    # Entities are all that makes a small XML file large.
    if "<!DOCTYPE" in text:
        raise MisplacedError((), "a document type is not accepted in GraphML; leave it out")
    try:
        # As text, so that no encoding that the file names counts: all of it is UTF-8.
        root = ElementTree.fromstring(text)
    except (ElementTree.ParseError, ValueError) as error:
        raise MisplacedError((), f"this is no XML: {error}") from error
    for element in root.iter():
        element.tag = str(element.tag).rpartition("}")[2]
    graphs = root.findall("graph")
    if root.tag != "graphml" or len(graphs) != 1:
        raise MisplacedError((), "this is no GraphML file with one graph")
    if next(graphs[0].iterfind(".//graph"), None) is not None:
        raise MisplacedError((), "graphs inside nodes are not accepted")
    if next(graphs[0].iterfind("hyperedge"), None) is not None:
        problem = "a link joins two vertices; write an edge, or a switch with an edge to each end"
        raise MisplacedError(("hyperedge", 0), problem)
    names: dict[str, str] = {}
    defaults: dict[str, dict[str, str]] = {"graph": {}, "node": {}, "edge": {}}
    for key in root.iterfind("key"):
        name, default = str(key.get("attr.name")), key.find("default")
        if name in _ATTRIBUTES:
            names[str(key.get("id"))] = name
            for kind in defaults:
                if default is not None and key.get("for") in (kind, "all"):
                    defaults[kind][name] = (default.text or "").strip()

    def attributes(element: ElementTree.Element, kind: str) -> dict[str, str]:
        given = dict(defaults[kind])
        for one in element.iterfind("data"):
            named = names.get(str(one.get("key")))
            if named is not None:
                given[named] = (one.text or "").strip()
        return given

    options = _options((), attributes(graphs[0], "graph"), _FABRIC_OPTIONS)
    graph = _Graph(options=options, file=file)
    for position, node in enumerate(graphs[0].iterfind("node")):
        place = ("node", position)
        if node.get("id") is None:
            raise MisplacedError(place, "a node needs an `id`")
        _node(graph, place, str(node.get("id")), attributes(node, "node").get("kind"))
    graph.number(("node",), ("node",))
    for position, edge in enumerate(graphs[0].iterfind("edge")):
        place = ("edge", position)
        if edge.get("source") is None or edge.get("target") is None:
            raise MisplacedError(place, "an edge needs `source` and `target`")
        directed = edge.get("directed", str(graphs[0].get("edgedefault") == "directed"))
        ends = (str(edge.get("source")), str(edge.get("target")))
        _edge(graph, place, ends, directed.lower() == "true", attributes(edge, "edge"))
    return graph.fabric()


def _node(graph: _Graph, place: Place, name: str, kind: object) -> None:
    if kind is not None and not (isinstance(kind, str) and kind in _KINDS):
        raise MisplacedError((*place, "kind"), f"`{kind}` is no kind; write rank or switch")
    if not name:
        raise MisplacedError(place, "a name is not empty")
    (graph.switches if kind is not None and _KINDS[kind] else graph.ranks).append(name)


def _edge(
    graph: _Graph,
    place: Place,
    ends: tuple[str, str],
    one_way: bool,
    attributes: Mapping[str, object],
) -> None:
    options = _options(place, attributes, _LINK_OPTIONS)
    duplex = attributes.get("duplex", "full")
    if duplex not in ("full", "half"):
        raise MisplacedError((*place, "duplex"), f"`{duplex}` must be `full` or `half`")
    if one_way and "duplex" in attributes:
        raise MisplacedError((*place, "duplex"), "a link that leads one way has none")
    letter = ">" if one_way else {"full": "-", "half": "~"}[str(duplex)]
    graph.link(place, *ends, letter, list(options.values()))


def _field_link(graph: _Graph, place: Place, link: object) -> None:
    """A link as `[a, b]`, `{between: [a, b], ...}` or `{from: a, to: b, ...}`."""
    fields: dict[str, object] = dict(link) if isinstance(link, dict) else {"between": link}
    known = ("between", "from", "to", "duplex", *_LINK_OPTIONS)
    for key in fields:
        if key not in known:
            hint = registry.nearest(str(key), known)
            raise MisplacedError((*place, str(key)), f"a link has no such field{hint}")
    one_way = "between" not in fields
    ends = [fields.get("from"), fields.get("to")] if one_way else fields["between"]
    if (
        not isinstance(ends, Sequence)
        or isinstance(ends, str)
        or len(ends) != 2
        or not all(_is_name(end) for end in ends)
        or (not one_way and {"from", "to"} & fields.keys())
    ):
        raise MisplacedError(place, "write a link as [a, b], {between: [a, b]} or {from: a, to: b}")
    _edge(graph, place, (str(ends[0]), str(ends[1])), one_way, fields)


def _names(key: str, value: object, prefix: str) -> list[str]:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST_VERTICES:
        return [f"{prefix}{number}" for number in range(value)]
    if isinstance(value, list) and all(_is_name(name) for name in value):
        return [str(name) for name in value]
    if value is None:
        raise MisplacedError((key,), f"the field `{key}` is missing")
    problem = f"must be a list of names, or their number up to {_MOST_VERTICES}"
    raise MisplacedError((key,), problem)


_MOST_VERTICES = 2**14


def _is_name(value: object) -> bool:
    return isinstance(value, (str, int)) and not isinstance(value, bool) and str(value) != ""


def _identity(value: object) -> str:
    """A node's name; NetworkX numbers the nodes of grids by tuples, which JSON holds as lists."""
    return ".".join(map(str, value)) if isinstance(value, list) else str(value)


def _options(place: Place, given: Mapping[str, object], known: Sequence[str]) -> dict[str, str]:
    return {key: _text((*place, key), given[key]) for key in known if key in given}


def _text(place: Place, value: object) -> str:
    """The text of an option, which holds nothing that would separate it from others."""
    text = str(value)
    apart = any(letter in text for letter in ",+@=:") or not text.isprintable()
    if not text or apart or not isinstance(value, (str, int)):
        example = {
            "rate": " as text with its unit, such as 40Gb/s",
            "latency": " as text with its unit, such as 1us",
        }
        hint = f"; write it{example[key]}" if (key := str(place[-1])) in example else ""
        raise MisplacedError(place, f"`{text}` is no value{hint}")
    return text
