"""Graph of ranks, switches and links that readers of files build for a fabric.

A graph with the option `wavelengths` is a graph of fibres (`wdm_graph`). Other graphs are
electrical (`custom`).

>>> graph = Graph(ranks=["a", "b"], switches=["hub"])
>>> graph.number(("nodes",), ("nodes",))
>>> graph.edge(("links", 0), ("a", "hub"), False, {})
>>> graph.edge(("links", 1), ("hub", "b"), False, {"rate": "1Gb/s"})
>>> graph.fabric().spec
'custom:ranks=2,switches=1,links=0-2+2-1@1Gb/s,names=a+b+hub,rate=100Gb/s,latency=0s'
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from urllib.parse import quote, unquote

from opticoll import _core
from opticoll._core import Fabric, FabricError
from opticoll.errors import ConfigError, ReadingNote, UnitError
from opticoll.formats.document import Place
from opticoll.names import nearest
from opticoll.outputs import fabric_names
from opticoll.outputs.records import record_rows

LINK_OPTIONS = ("rate", "latency", "sharing")
"""Options that a single link may have."""

WORK = "in_network"
"""Option, and attribute of a switch, that says whether switches add and multicast."""

FABRIC_OPTIONS = (*LINK_OPTIONS, "ties", "members", "without", "degraded", "positions", WORK)
"""Options for all links of a fabric, and options that select parts of the fabric."""

GRAPH_FAMILIES = ("custom", "wdm_graph")
"""Families whose ranks, switches and links may be in a file."""

LIGHT = ("wavelengths", "hosts")
"""Options of a graph of fibres."""


WITH_HOSTS: dict[str, str] = {}
"""Specifications of the last graphs that state `hosts`, by specification without hosts."""


@cache
def fibre_options() -> tuple[str, ...]:
    """Returns the options that a graph of fibres has and an electrical graph lacks."""
    options = {
        record.name: {option.name for option in record.options} for record in record_rows("fabrics")
    }
    return tuple(sorted(options["wdm_graph"] - options["custom"] | {"wavelengths"}))


_KINDS = {"rank": False, "host": False, "gpu": False, "server": False}
_KINDS |= {"switch": True, "router": True}


def is_kind(value: object) -> bool:
    """Returns whether a word names a kind of vertex, such as rank or switch."""
    return isinstance(value, str) and value.lower() in _KINDS


class MisplacedError(ConfigError):
    """Error at a place in a file; `place` is the path of keys and indices to the wrong value."""

    def __init__(self, place: Place, problem: str) -> None:
        super().__init__(f"{'.'.join(map(str, place))}: {problem}" if place else problem)
        self.place = place
        self.problem = problem


@dataclass
class Graph:
    """Graph that a reader builds, with vertices and links in the order of the file."""

    ranks: list[str] = field(default_factory=list)
    switches: list[str] = field(default_factory=list)
    works: dict[str, str] = field(default_factory=dict)
    """Work of the switches that add or multicast, by name of the switch."""
    named: bool = True
    links: list[str] = field(default_factory=list)
    places: list[Place] = field(default_factory=list)
    options: dict[str, str] = field(default_factory=dict)
    file: str = ""
    _numbers: dict[str, int] = field(default_factory=dict)

    @property
    def has_fibres(self) -> bool:
        """Returns whether the links of the graph are fibres with wavelengths."""
        return "wavelengths" in self.options

    def vertex(self, place: Place, name: str, kind: object, work: object = None) -> None:
        """Adds a vertex: a switch if `kind` says so, otherwise a rank; `work` is what it does."""
        if kind is not None and not is_kind(kind):
            raise MisplacedError((*place, "kind"), f"`{kind}` is not a kind; write rank or switch")
        if not name:
            raise MisplacedError(place, "a name is not empty")
        is_switch = kind is not None and _KINDS[str(kind).lower()]
        (self.switches if is_switch else self.ranks).append(name)
        if work not in (None, "", "none"):
            if not is_switch:
                raise MisplacedError((*place, WORK), f"the rank `{name}` only sends and receives")
            if WORK in self.options:
                problem = f"the graph has `{WORK}`, too; write it for the graph, or for switches"
                raise MisplacedError((*place, WORK), problem)
            if (other := next(iter(self.works.values()), work)) != work:
                problem = f"`{work}` differs from `{other}` of another switch"
                raise MisplacedError((*place, WORK), problem)
            self.works[name] = str(work)

    def number(self, ranks: Place, switches: Place) -> None:
        """Numbers the vertices, ranks first.

        `ranks` and `switches` are the places of the ranks' and switches' names in the file.
        """
        named = [(ranks, name) for name in self.ranks]
        for place, name in [*named, *((switches, name) for name in self.switches)]:
            if not name.isprintable():
                raise MisplacedError(place, f"the name `{name}` holds characters that do not print")
            if name in self._numbers:
                raise MisplacedError(place, f"there are two ranks or switches `{name}`")
            self._numbers[name] = len(self._numbers)

    def link(self, place: Place, start: str, end: str, letter: str, options: list[str]) -> None:
        """Adds a link.

        `letter` is `-` for both directions, `~` for half duplex, `>` for one direction.
        """
        for name in (start, end):
            if name not in self._numbers:
                near = nearest(name, self._numbers) if self._numbers else ""
                hint = near if "did you mean" in near else ""
                raise MisplacedError(place, f"there is no rank or switch `{name}`{hint}")
        if start == end:
            raise MisplacedError(place, f"a link joins two vertices, this one `{start}` to itself")
        ends = f"{self._numbers[start]}{letter}{self._numbers[end]}"
        self.links.append("@".join([ends, *options]))
        self.places.append(place)

    def edge(
        self, place: Place, ends: tuple[str, str], one_way: bool, attributes: Mapping[str, object]
    ) -> None:
        """Adds a link; `attributes` are texts by name: `LINK_OPTIONS`, `length` or `duplex`."""
        options = texts(place, attributes, (*LINK_OPTIONS, "length"))
        if self.has_fibres and "sharing" in options:
            problem = "a channel of a fibre carries one lightpath at a time; leave `sharing` out"
            raise MisplacedError((*place, "sharing"), problem)
        duplex = attributes.get("duplex", "full")
        if duplex not in ("full", "half"):
            raise MisplacedError((*place, "duplex"), f"`{duplex}` must be `full` or `half`")
        if one_way and "duplex" in attributes:
            raise MisplacedError((*place, "duplex"), "a link that leads one way has none")
        letter = ">" if one_way else {"full": "-", "half": "~"}[str(duplex)]
        self.link(place, *ends, letter, list(options.values()))

    def fabric(self) -> Fabric:
        """Builds the fabric: a graph of fibres if there are wavelengths, else a custom fabric.

        Raises
        ------
        MisplacedError
            The graph is no valid fabric; `place` locates the wrong link or option.
        """
        if not self.ranks:
            raise MisplacedError((), "there are no ranks")
        if not self.links and len(self.ranks) > 1:
            raise MisplacedError((), f"there are no links between {len(self.ranks)} ranks")
        spelled: dict[str, Any] = {"ranks": len(self.ranks), "switches": len(self.switches)}
        if self.links:
            spelled["links"] = "+".join(self.links)
        if self.named:
            names = [*self.ranks, *self.switches]
            spelled["names"] = "+".join(quote(name, safe="/") for name in names)
        options = {key: value for key, value in self.options.items() if key != "hosts"}
        if self.works:
            (work,) = set(self.works.values())
            switches = "+".join(str(self._numbers[name]) for name in self.works)
            options[WORK] = f"{work}@{switches}"
        alone = [key for key in self.options if key in fibre_options() and not self.has_fibres]
        if alone:
            problem = "goes with the wavelengths of fibres: give `wavelengths`, too, such as 16"
            raise MisplacedError((alone[0],), problem)
        try:
            fabric = Fabric("wdm_graph" if self.has_fibres else "custom", **spelled, **options)
        except FabricError as error:
            link = getattr(error, "link", None)
            option = getattr(error, "option", None)
            place: Place = () if option is None else (option,)
            if link is not None:
                place = self.places[link]
            raise MisplacedError(place, f"{error}{self._parts()}") from error
        if self.file:
            fabric_names.remember(fabric.spec, self.file, self.options)
        WITH_HOSTS.pop(fabric.spec, None)
        if "hosts" in self.options:
            WITH_HOSTS[fabric.spec] = f"{fabric.spec},hosts={self.options['hosts']}"
        return fabric

    def _parts(self) -> str:
        """Returns a hint with the connected parts of a graph; empty if the graph is connected.

        Links in one direction have no hint, because ranks may then reach others and not be reached.
        """
        if any(">" in link for link in self.links):
            return ""
        names = [*self.ranks, *self.switches]
        part = list(range(len(names)))

        def first(vertex: int) -> int:
            while part[vertex] != vertex:
                part[vertex] = vertex = part[part[vertex]]
            return vertex

        for link in self.links:
            start, end = re.findall("[0-9]+", link.partition("@")[0])
            low, high = sorted((first(int(start)), first(int(end))))
            part[high] = low
        parts: dict[int, list[int]] = {}
        for rank in range(len(self.ranks)):
            parts.setdefault(first(rank), []).append(rank)
        if len(parts) < 2 or "members" in self.options:
            return ""
        listed = [listing([names[rank] for rank in ranks]) for ranks in parts.values()]
        largest = max(parts.values(), key=len)
        starts = [rank for rank in largest if rank - 1 not in largest]
        ends = [rank for rank in largest if rank + 1 not in largest]
        runs = [f"{a}-{b}" if a < b else str(a) for a, b in zip(starts, ends, strict=True)]
        return (
            f"; it has {len(parts)} parts that no links join, with the ranks {'; '.join(listed)}: "
            f"members={'+'.join(runs)} picks the largest"
        )


def has_fibre_links(fabric: Fabric) -> bool:
    """Returns whether the links of a fabric are fibres in any arrangement."""
    if fabric.electrical:
        return False
    try:
        fabric.as_custom()
    except FabricError:
        return False
    return True


@dataclass(frozen=True)
class Edge:
    """Link of a fabric, in the form in which writers of files need it."""

    start: str
    end: str
    kind: str
    """Direction: `-` for both, `~` for half duplex, `>` for one."""
    options: dict[str, str]
    """Rate and latency; `length` if it is known; `sharing` if flows do not share the link."""


def edges_of(fabric: Fabric) -> tuple[list[str], list[str], list[Edge]]:
    """Returns the names of a fabric's ranks, the names of its switches, and its links.

    >>> edges_of(Fabric("custom:ranks=2,links=0~1@1us"))[2][0].options
    {'rate': '100Gb/s', 'latency': '1us'}

    Raises
    ------
    FabricError
        The fabric has no links that messages share.
    """
    custom = fabric.as_custom()
    option_texts = dict(
        option.partition("=")[::2] for option in custom.spec.split(":", 1)[1].split(",")
    )
    names = [unquote(name) for name in option_texts["names"].split("+")]
    edges = []
    for cable in filter(None, option_texts.get("links", "").split("+")):
        ends, *texts_of_link = cable.split("@")
        kind = next(letter for letter in "-~>" if letter in ends)
        start, end = (names[int(vertex)] for vertex in ends.split(kind))
        options = {"rate": option_texts["rate"]}
        for text in texts_of_link:
            if text in ("shared", "per_flow"):
                options["sharing"] = text
            elif text.endswith("m"):
                options["length"] = text
            else:
                options["rate" if text.endswith("/s") else "latency"] = text
        # A length sets the latency unless the cable states another latency.
        if "length" not in options:
            options.setdefault("latency", option_texts["latency"])
        edges.append(Edge(start, end, kind, options))
    return names[: custom.ranks], names[custom.ranks :], edges


def rank_names(fabric: Fabric) -> list[str]:
    """Returns the names that a graph gives to its ranks, or their numbers if there are no names.

    >>> rank_names(Fabric("custom:ranks=3,links=0-1+1-2,names=left+a+right,members=1-2"))
    ['a', 'right']
    """
    if not fabric.option("names"):
        return [str(rank) for rank in range(fabric.ranks)]
    return fabric.vertex_names[: fabric.ranks]


def from_fields(fields: Mapping[str, Any], file: str = "") -> Fabric:
    """Returns the fabric of the fields `ranks`, `switches`, `links` and of options.

    Raises
    ------
    MisplacedError
        A field is invalid or does not apply; the error has its place.
    """
    graph = Graph(file=file)
    option_names = [*FABRIC_OPTIONS, *LIGHT]
    if "wavelengths" in fields:
        option_names += fibre_options()
    for key, value in fields.items():
        if key in option_names:
            graph.options[key] = _text((key,), value)
        elif key not in ("ranks", "switches", "links"):
            field_names = ("ranks", "switches", "links", *FABRIC_OPTIONS, *fibre_options())
            raise MisplacedError((key,), f"there is no such field{nearest(key, field_names)}")
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


def _field_link(graph: Graph, place: Place, link: object) -> None:
    """Adds the link `[a, b]`, `{between: [a, b], ...}` or `{from: a, to: b, ...}`."""
    fields: dict[str, object] = dict(link) if isinstance(link, dict) else {"between": link}
    field_names = ("between", "from", "to", "duplex", *LINK_OPTIONS, "length")
    for key in fields:
        if key not in field_names:
            hint = nearest(str(key), field_names)
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
    graph.edge(place, (str(ends[0]), str(ends[1])), one_way, fields)


def _names(key: str, value: object, prefix: str) -> list[str]:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MAX_VERTICES:
        return [f"{prefix}{number}" for number in range(value)]
    if isinstance(value, list) and all(_is_name(name) for name in value):
        return [str(name) for name in value]
    if value is None:
        raise MisplacedError((key,), f"the field `{key}` is missing")
    problem = f"must be a list of names, or their number up to {_MAX_VERTICES}"
    raise MisplacedError((key,), problem)


_MAX_VERTICES = 2**14


def _is_name(value: object) -> bool:
    return isinstance(value, (str, int)) and not isinstance(value, bool) and str(value) != ""


def texts(place: Place, values: Mapping[str, object], names: Sequence[str]) -> dict[str, str]:
    """Returns the entries of `values` that `names` lists, as texts."""
    return {key: _text((*place, key), values[key]) for key in names if key in values}


def _text(place: Place, value: object) -> str:
    """Returns the text of an option; refuses characters that separate options."""
    text = str(value)
    separators = ",+@=:" if place[-1] in (*LINK_OPTIONS, "length") else ","
    apart = any(letter in text for letter in separators) or not text.isprintable()
    if not text or apart or not isinstance(value, (str, int)):
        example = {
            "rate": " as text with its unit, such as 40Gb/s",
            "latency": " as text with its unit, such as 1us",
            "length": " as text with its unit, such as 80km",
        }
        hint = f"; write it{example[key]}" if (key := str(place[-1])) in example else ""
        raise MisplacedError(place, f"`{text}` is not a value{hint}")
    if place[-1] == "rate":
        check_rate(place, text)
    return text


def check_rate(place: Place, text: str) -> str:
    """Returns the text of a rate after checking that it has a unit.

    Raises
    ------
    MisplacedError
        The text is not a rate.
    """
    try:
        _core.rounded_rate(text)
    except UnitError as error:
        has_hint = re.search("such as|write", str(error)) or not re.fullmatch("[0-9.eE+-]+", text)
        hint = "" if has_hint else "; give the unit, such as 40Gb/s"
        raise MisplacedError(place, f"{error}{hint}") from error
    return text


def bits_per_second(name: str, value: object) -> int:
    """Returns the rate that the option `name` states, in b/s.

    >>> bits_per_second("pci_rate", "24GB/s")
    192000000000

    Raises
    ------
    MisplacedError
        The value is not a rate.
    """
    text = check_rate((name,), str(value))
    return int(Fabric("crossbar:ranks=2", rate=text).option("rate"))


def listing(names: Iterable[str], most: int = 8) -> str:
    """Returns up to `most` names separated by commas, and the number of further names.

    >>> listing("abcdef", 4)
    'a, b, c, d and 2 more'
    """
    every = list(names)
    more = f" and {len(every) - most} more" if len(every) > most else ""
    return ", ".join(every[:most]) + more


def note(file: str, sentence: str) -> None:
    """Issues a note on an assumption that a reader made about a file."""
    warnings.warn(f"{file}: {sentence}", ReadingNote, stacklevel=2)
