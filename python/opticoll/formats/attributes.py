"""Graphs whose nodes and edges have attributes, with the names that other programs use.

If a name implies a unit, values are read in that unit. Notes name the attributes that were read
and the attributes that were ignored.

| item | attribute | meaning |
|---|---|---|
| node | `kind`, else `type` | a rank: rank (default), host, gpu, server; a switch: switch, router |
| node | `label` | the name of the rank or switch |
| node | `in_network` | work of a switch: none, multicast, reduce or reduce+multicast |
| edge | `rate`, `latency`, `sharing`, `duplex` | texts, such as `40Gb/s` for the rate |
| edge | `LinkSpeedRaw` | rate in b/s (Topology Zoo) |
| edge | `LinkSpeed` | rate in b/s times `LinkSpeedUnits`, one of K, M, G and T (Topology Zoo) |
| edge | `capacity`, `bandwidth` | rate in b/s, or in Gb/s if all values are below a million |
| edge | `delay` | latency: a number of seconds, or a text with a unit |
| graph | `rate`, `latency`, `sharing`, `ties`, `members`, `without` | options of the fabric |
| graph | `in_network` | work of all switches |
| graph | `wavelengths`, `hosts` | options of a graph of fibres, see below |

If edges have several attributes for the rate, only the first of them in the table is read. The
option `rate_from` names another attribute with the rate, and the option `unit` is the unit of the
rates. An edge from a node to itself is ignored. With the option `directed=no`, edges lead in both
directions, whatever the file says.

A graph with `wavelengths` is a graph of fibres. Such a graph may have all options of `wdm_graph`,
and the following attributes (see `opticoll.formats.fibre_lengths`):

| item | attribute | meaning |
|---|---|---|
| edge | `length`, `length_km`, `distance`, `distance_km`, `dist` | a number of km, or a text |
| node | `Latitude`, `Longitude`; `lat`, `lon` | position in degrees |

The option `length_from` names another attribute with the length. If the option `rate` is given
beside the file, rates are read only from the attribute `rate` or from the attribute that
`rate_from` names, because other attributes are rates of electrical links.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from typing import Any

from opticoll._core import Fabric
from opticoll.formats import fibre_lengths
from opticoll.formats.document import Place
from opticoll.formats.network_graph import (
    FABRIC_OPTIONS,
    GRAPH_FAMILIES,
    LIGHT,
    LINK_OPTIONS,
    WORK,
    Graph,
    MisplacedError,
    check_rate,
    edges_of,
    fibre_options,
    is_kind,
    listing,
    note,
    texts,
)
from opticoll.names import nearest
from opticoll.outputs.layout import format_rate, plural

RATES = ("rate", "LinkSpeedRaw", "LinkSpeed", "capacity", "bandwidth")
"""Attributes with the rate of a link, in order of preference."""

SPEED_UNITS = {"K": "kb/s", "M": "Mb/s", "G": "Gb/s", "T": "Tb/s"}
"""Unit of the attribute `LinkSpeed`, by value of the attribute `LinkSpeedUnits`."""

MIN_BITS_PER_SECOND = 10**6
"""Smallest rate without a unit that counts as b/s; smaller rates count as Gb/s."""

STRUCTURE = ("id", "key", "source", "target", "name", "fabric")
"""Attributes that identify a node, an edge or the graph."""


_OWN = (*LINK_OPTIONS, "duplex")
"""Attributes of an edge that are options of its link."""


@dataclass(frozen=True)
class Item:
    """Node or edge of a graph, with its place in the file."""

    place: Place
    ends: tuple[str, ...]
    """Name of the node, or names of both ends of the edge."""
    attributes: Mapping[str, object]
    one_way: bool = False


def fabric_of(
    file: str,
    whole: Mapping[str, object],
    nodes: Sequence[Item],
    edges: Sequence[Item],
    beside: Mapping[str, object],
    place: Place = (),
) -> Fabric:
    """Returns the fabric of a graph: a graph of fibres if it has wavelengths, else a custom fabric.

    `whole` are the attributes of the graph, at `place` in the file; `beside` are further fields of
    the YAML file that names the graph.

    Raises
    ------
    MisplacedError
        The graph is no valid fabric; the error names the node or edge.
    """
    stated = {key: value for key, value in beside.items() if value is not None}
    if (directed := str(stated.pop("directed", "as stated"))) == "no":
        edges = [replace(edge, one_way=False) for edge in edges]
    elif directed != "as stated":
        raise MisplacedError(("directed",), f"`{directed}` must be `no`, or be left out")
    option_names = [*FABRIC_OPTIONS, *LIGHT]
    if "wavelengths" in {*stated, *whole}:
        option_names += fibre_options()
    unstated = [key for key in option_names if key not in stated]
    options = texts(place, whole, unstated) | texts((), stated, (*option_names, *fibre_options()))
    graph = Graph(options=options, file=file)
    read = {"node": {*STRUCTURE, "kind", WORK}, "edge": {*STRUCTURE, *_OWN}}
    names = _add_nodes(graph, nodes, read["node"])
    ends = [[_end(end, names, edge.place) for end in edge.ends] for edge in edges]
    loops = [edge for edge, (start, end) in zip(edges, ends, strict=True) if start == end]
    if loops:
        where = (f"{'.'.join(map(str, loop.place))} at {names[loop.ends[0]]}" for loop in loops)
        note(file, f"left out: links of a node to itself ({listing(where)})")
        edges = [edge for edge in edges if edge.ends[0] != edge.ends[1]]
    _note_parallel(file, edges, names)
    name, rates = _rates(edges, stated, graph.has_fibres, read["edge"])
    unrated = rates.count(None)
    if unrated and "rate" not in options and any(name in edge.attributes for edge in edges):
        some = f"{unrated} of {plural(len(edges), 'link')} without a rate of their own"
        hint = f"{file}:rate=40Gb/s sets another one"
        note(file, f"{some}: they take 100Gb/s; {hint}")
    delays = [_latency(edge, read["edge"]) for edge in edges]
    lengths = _lengths(graph, nodes, edges, names, stated, read) if graph.has_fibres else {}
    for number, (edge, rate, latency) in enumerate(zip(edges, rates, delays, strict=True)):
        link_options = {key: edge.attributes[key] for key in _OWN if key in edge.attributes}
        link_options |= {} if rate is None else {"rate": rate}
        link_options |= {} if latency is None else {"latency": latency}
        link_options |= {"length": lengths[number]} if number in lengths else {}
        graph.edge(
            edge.place, (names[edge.ends[0]], names[edge.ends[1]]), edge.one_way, link_options
        )
    read["graph"] = {*STRUCTURE, *option_names}
    if not graph.has_fibres:
        read["edge"] |= _note_electrical(file, edges)
    _note_meanings(file, edges, read, name, rates, delays)
    listed = {"node": nodes, "edge": edges, "graph": [Item((), (), whole)]}
    _note_unread(file, listed, read, any(rates) or (graph.has_fibres and "rate" in stated))
    try:
        return graph.fabric()
    except MisplacedError as error:
        if not any(edge.one_way for edge in edges) or "no links lead" not in error.problem:
            raise
        # yEd writes all graphs as directed.
        hint = f"edges lead one way; {file}:directed=no makes them lead both ways"
        raise MisplacedError(error.place, f"{error.problem}; {hint}") from error


def content_of(fabric: Fabric) -> tuple[bool, dict[str, Any]]:
    """Returns whether edges are directed, and the attributes of graph, nodes and edges.

    A NetworkX graph cannot have both directed and undirected edges. If some links lead in one
    direction and no link is half duplex, all edges are directed. If there are half-duplex links,
    the edges are undirected, and each one-way edge has the attribute `directed`.

    Raises
    ------
    FabricError
        The fabric has neither links that messages share nor a graph of fibres.
    """
    ranks, switches, links = edges_of(fabric)
    kinds = {link.kind for link in links}
    directed = ">" in kinds and "~" not in kinds
    option_texts = dict(
        option.partition("=")[::2] for option in fabric.spec.partition(":")[2].split(",")
    )
    of_graph = ("ties", *fibre_options()) if fabric.family in GRAPH_FAMILIES else fibre_options()
    whole = {key: option_texts[key] for key in of_graph if key in option_texts}
    edges: list[dict[str, str]] = []
    for link in links:
        options = {**link.options, **({"duplex": "half"} if link.kind == "~" else {})}
        options |= {"directed": "true"} if link.kind == ">" and not directed else {}
        is_doubled = link.kind == "-" and directed
        for source, target in [(link.start, link.end), (link.end, link.start)][: 1 + is_doubled]:
            edges.append({"source": source, "target": target, **options})
    nodes = [
        *({"id": name, "kind": "rank"} for name in ranks),
        *({"id": name, "kind": "switch"} for name in switches),
    ]
    for node, work in zip(nodes[len(ranks) :], fabric.switch_work, strict=False):
        if work != "none":
            node[WORK] = work
    positions = [place.split("/") for place in option_texts.get("positions", "").split("+")]
    if len(positions) == len(nodes):
        for node, position in zip(nodes, positions, strict=True):
            if len(position) == 2:
                node["Latitude"], node["Longitude"] = position
    return directed, {"graph": {"fabric": fabric.spec, **whole}, "nodes": nodes, "edges": edges}


def _add_nodes(graph: Graph, nodes: Sequence[Item], read: set[str]) -> dict[str, str]:
    """Adds ranks and switches to `graph`; returns the name of each, by the identity of its node."""
    stated_labels = [node.attributes.get("label") for node in nodes]
    labels = ["" if label is None else str(label).strip() for label in stated_labels]
    count = Counter(labels)
    if any(labels):
        read.add("label")
    if any(is_kind(node.attributes.get("type")) for node in nodes):
        read.add("type")
    names: dict[str, str] = {}
    for node, label in zip(nodes, labels, strict=True):
        (identity,) = node.ends
        if identity in names:
            raise MisplacedError(node.place[:1], f"there are two ranks or switches `{identity}`")
        name = label if count[label] == 1 else f"{label} ({identity})"
        names[identity] = name if label else identity
        kind = node.attributes.get("kind")
        if kind is None and is_kind(node.attributes.get("type")):
            kind = node.attributes["type"]
        graph.vertex(node.place, names[identity], kind, node.attributes.get(WORK))
    place = nodes[0].place[:1] if nodes else ()
    graph.number(place, place)
    return names


def _end(identity: str, names: Mapping[str, str], place: Place) -> str:
    if identity not in names:
        near = nearest(identity, names) if names else ""
        hint = near if "did you mean" in near else ""
        raise MisplacedError(place, f"there is no rank or switch `{identity}`{hint}")
    return names[identity]


def _cable(edge: Item, names: Mapping[str, str]) -> str:
    """Returns the ends of an edge, and its place in the file."""
    ends = " - ".join(names[end] for end in edge.ends)
    return f"{ends} ({'.'.join(map(str, edge.place))})"


def _note_parallel(file: str, edges: Sequence[Item], names: Mapping[str, str]) -> None:
    """Issues a note on edges of a file that join the same two nodes in the same direction."""
    same: dict[object, list[Item]] = {}
    for edge in edges:
        ends = edge.ends if edge.one_way else tuple(sorted(edge.ends))
        same.setdefault((edge.one_way, *ends), []).append(edge)
    repeated = [edges for edges in same.values() if len(edges) > 1]
    if repeated and file:
        places = (", ".join(".".join(map(str, edge.place)) for edge in edges) for edges in repeated)
        listed = listing(
            (
                f"{' - '.join(names[end] for end in edges[0].ends)} ({places_of})"
                for edges, places_of in zip(repeated, places, strict=True)
            ),
            3,
        )
        note(file, f"parallel links between the same two nodes: {listed}")


def _lengths(
    graph: Graph,
    nodes: Sequence[Item],
    edges: Sequence[Item],
    names: Mapping[str, str],
    stated: Mapping[str, object],
    read: Mapping[str, set[str]],
) -> dict[int, str]:
    """Returns the lengths of edges as texts, by number of the edge; sets `positions` of `graph`."""
    present = {key for edge in edges for key in edge.attributes}
    own = next((key for key in fibre_lengths.LENGTHS if key in present), "length")
    name = str(stated.get("length_from", own))
    if "length_from" in stated and name not in present:
        hint = nearest(name, sorted(present)) if present else ""
        raise MisplacedError(("length_from",), f"no edge has an attribute `{name}`{hint}")
    read["edge"].add(name)
    at = {
        name_of: fibre_lengths.position_of(node.place, name_of, node.attributes, read["node"])
        for node in nodes
        for name_of in [names[node.ends[0]]]
    }
    if any(at.values()) and "positions" not in graph.options:
        texts_of_vertices = [
            fibre_lengths.position_text(at[vertex]) for vertex in [*graph.ranks, *graph.switches]
        ]
        graph.options["positions"] = "+".join(texts_of_vertices)
    lengths, measured = {}, 0
    for number, edge in enumerate(edges):
        at_length = (*edge.place, name)
        text = fibre_lengths.length_text(at_length, _number(at_length, edge.attributes.get(name)))
        start, end = (at[names[vertex]] for vertex in edge.ends)
        if text is None and start is not None and end is not None:
            text = f"{fibre_lengths.great_circle_metres(start, end)}m"
            measured += 1
        if text is not None:
            lengths[number] = text
    of_links = f"of {plural(len(edges), 'link')}"
    timed = ("latency", "delay")
    unknown = [
        _cable(edge, names)
        for number, edge in enumerate(edges)
        if number not in lengths and not any(key in edge.attributes for key in timed)
    ]
    stands = []
    if len(lengths) > measured:
        stands.append(f"`{name}` is the length in km")
    if measured:
        stands.append(f"the length of {measured} {of_links} is the great-circle distance")
    if unknown and "latency" not in graph.options:
        hint = f"{graph.file}:latency=1ms sets another one"
        listed = listing(unknown, 3)
        stands.append(
            f"{len(unknown)} {of_links} have no length: {listed}; they take the latency 0s; {hint}"
        )
    if stands:
        note(graph.file, "; ".join(stands))
    return lengths


def _rates(
    edges: Sequence[Item], stated: Mapping[str, object], has_fibres: bool, read: set[str]
) -> tuple[str, list[str | None]]:
    """Returns the name of the attribute with rates, and the rate of each edge as text or None."""
    present = {key for edge in edges for key in edge.attributes}
    # The capacity of an electrical link is not the rate of a wavelength, if that rate is given.
    candidates = RATES[:1] if has_fibres and "rate" in stated else RATES
    name = str(stated.get("rate_from", next((key for key in candidates if key in present), "rate")))
    if "rate_from" in stated and name not in present:
        hint = nearest(name, sorted(present)) if present else ""
        raise MisplacedError(("rate_from",), f"no edge has an attribute `{name}`{hint}")
    read.add(name)
    if name == "rate" and "unit" not in stated:
        for edge in edges:
            place = (*edge.place, name)
            if isinstance(number := _number(place, edge.attributes.get(name)), Decimal):
                problem = f"`{number}` is not a rate; give the unit, such as 40Gb/s"
                raise MisplacedError(place, f"{problem}, or `unit=b/s` beside the file for all")
        given_as = [edge.attributes.get(name) for edge in edges]
        return name, [None if rate is None else str(rate) for rate in given_as]
    if "unit" in stated:
        unit: str | None = str(stated["unit"])
        check_rate(("unit",), f"1{unit}")
    else:
        places = [(*edge.place, name) for edge in edges]
        read_as = [
            _number(place, edge.attributes.get(name))
            for place, edge in zip(places, edges, strict=True)
        ]
        numbers = [number for number in read_as if isinstance(number, Decimal) and number] or [
            Decimal(0)
        ]
        smallest, largest = min(numbers), max(numbers)
        if not name.startswith("LinkSpeed") and 0 < smallest < MIN_BITS_PER_SECOND <= largest:
            problem = f"`{largest}` would be b/s, `{smallest}` of another link Gb/s"
            hint = "`unit` beside `graph` in a fabric file, such as `unit: b/s`, names one for all"
            raise MisplacedError(places[read_as.index(largest)], f"{problem}; {hint}")
        unit = "b/s" if name == "LinkSpeedRaw" or smallest >= MIN_BITS_PER_SECOND else "Gb/s"
    if name == "LinkSpeed" and "unit" not in stated:
        read.add("LinkSpeedUnits")
        unit = None
    return name, [_rate(edge, name, unit) for edge in edges]


def _rate(edge: Item, name: str, unit: str | None) -> str | None:
    place = (*edge.place, name)
    number = _number(place, edge.attributes.get(name))
    if not isinstance(number, Decimal):
        return number if number is None else check_rate(place, number)
    if unit is None:
        letter = str(edge.attributes.get("LinkSpeedUnits", "")).strip()[:1].upper()
        if letter not in SPEED_UNITS:
            problem = f"`{letter}` is not a unit of LinkSpeed; known are {', '.join(SPEED_UNITS)}"
            raise MisplacedError((*edge.place, "LinkSpeedUnits"), problem)
        unit = SPEED_UNITS[letter]
    if not number:
        raise MisplacedError(place, "a link whose rate is 0 carries nothing; leave it out")
    return check_rate(place, f"{number:f}{unit}")


def _latency(edge: Item, read: set[str]) -> str | None:
    """Returns the latency of an edge from its attribute `delay`; None if `latency` is present."""
    if "delay" not in edge.attributes or "latency" in edge.attributes:
        return None
    delay = _number((*edge.place, "delay"), edge.attributes["delay"])
    if delay is not None:
        read.add("delay")
    return f"{delay * 10**12:.0f}ps" if isinstance(delay, Decimal) else delay


def _number(place: Place, value: object) -> Decimal | str | None:
    """Returns a number that is not negative, a text with a unit, or None for an empty value."""
    text = str(value).strip()
    if value is None or text.lower() in ("", "none", "nan"):
        return None
    try:
        number = Decimal(text)
    except InvalidOperation:
        return text
    if isinstance(value, bool) or not number.is_finite() or not 0 <= number < 10**24:
        raise MisplacedError(place, f"`{text}` is not a number of 0 or more")
    return number


def _note_meanings(
    file: str,
    edges: Sequence[Item],
    read: Mapping[str, set[str]],
    name: str,
    rates: Sequence[str | None],
    delays: Sequence[str | None],
) -> None:
    """Issues notes on the attributes that were read as rate, latency, name or kind."""
    stands = []
    rated = [(edge, rate) for edge, rate in zip(edges, rates, strict=True) if rate is not None]
    if rated and name != "rate":
        edge, rate = rated[0]
        shown = format_rate(int(Fabric("crossbar", ranks=2, rate=rate).option("rate")))
        stands.append(f"`{name}` is the rate ({edge.attributes[name]} is {shown})")
    delayed = [
        (edge, latency) for edge, latency in zip(edges, delays, strict=True) if latency is not None
    ]
    if delayed:
        edge, delay = delayed[0]
        value = str(edge.attributes["delay"]).strip()
        stands.append(f"`delay` is the latency ({value if value == delay else f'{value} s'})")
    if "label" in read["node"]:
        stands.append("`label` is the name of a rank or switch")
    if "type" in read["node"]:
        stands.append("`type` says which nodes are switches")
    if stands:
        note(file, "; ".join(stands))


def _note_electrical(file: str, edges: Sequence[Item]) -> set[str]:
    """Issues a note on lengths of links that are not fibres; returns the attributes' names."""
    present = {key for edge in edges for key in edge.attributes}
    lengths = [key for key in fibre_lengths.LENGTHS if key in present]
    if lengths:
        named = " and ".join(f"`{key}`" for key in lengths)
        fibres = f"{file}:wavelengths=16 makes them fibres with 16 wavelengths"
        note(file, f"the cables are electrical, so {named} is not read; {fibres}")
    return set(lengths)


def _note_unread(
    file: str, items: Mapping[str, Sequence[Item]], read: Mapping[str, set[str]], is_rated: bool
) -> None:
    """Issues notes on ignored attributes; `is_rated` is True if some edge has a rate."""
    left_out = []
    may_rate = False
    for of, listed in items.items():
        names = dict.fromkeys(key for item in listed for key in item.attributes)
        unread = [key for key in names if key not in read[of]]
        may_rate |= of == "edge" and bool(unread)
        if unread:
            left_out.append(f"{listing(unread)} of {of}s".replace("of graphs", "of the graph"))
    if left_out:
        hint = f"; {file}:rate_from=NAME names the attribute with the rate"
        hint = hint if may_rate and not is_rated else ""
        note(file, f"not read: {'; '.join(left_out)}{hint}")
