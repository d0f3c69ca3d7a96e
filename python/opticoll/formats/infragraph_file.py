"""InfraGraph: devices made of components, instances of devices, and edges between components.

Files are YAML or JSON, as `infrastructure.serialize()` of the package `infragraph` writes them, or
protobuf, which requires that package (extra `infragraph`). Components of the kind `xpu` become
ranks; other components with edges become switches. Each edge becomes a link in both directions.
Each direction has the bandwidth of the InfraGraph link that the edge names.

>>> xpus = {"name": "xpu", "count": 4, "choice": "xpu"}
>>> ends = {"ep1": {"component": "xpu[0:3]"}, "ep2": {"component": "xpu[1:]"}}
>>> chain = {**ends, "scheme": "one2one", "link": "bus"}
>>> bus = {"name": "bus", "physical": {"bandwidth": {"gigabits_per_second": 40}}}
>>> box = {"name": "box", "components": [xpus], "links": [bus], "edges": [chain]}
>>> instance = {"name": "box", "device": "box", "count": 1}
>>> fabric_of({"devices": [box], "instances": [instance]}).option("links")
'0-1@40Gb/s+1-2@40Gb/s+2-3@40Gb/s'
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from itertools import product
from pathlib import Path
from typing import Annotated, Any, TypeVar

from opticoll._core import Fabric
from opticoll.errors import ConfigError, FabricError, UsageError, installing
from opticoll.formats.atomic import write_file
from opticoll.formats.content import read_content
from opticoll.formats.document import Document, Place, read_fields, read_json, text, whole
from opticoll.formats.network_graph import Graph, MisplacedError, edges_of, note, texts
from opticoll.names import nearest
from opticoll.outputs.layout import plural

UNITS = {"gigabits_per_second": "Gb/s", "gigabytes_per_second": "GB/s"}
UNITS |= {"ms": "ms", "us": "us", "ns": "ns"}

MAX_COMPONENTS = 2**16
"""Maximum number of components of all instances."""

MAX_STEPS = 2**21
"""Maximum number of components, devices and edges in an expansion, including duplicates."""

MAX_DEPTH = 16
"""Maximum nesting depth of devices."""

Name = Annotated[str, text]
Count = Annotated[int, whole(0, MAX_COMPONENTS)]


@dataclass(frozen=True)
class _Component:
    name: Name
    count: Count
    choice: Name | None = None
    description: Any = None
    custom: Any = None
    device: Any = None
    cpu: Any = None
    xpu: Any = None
    nic: Any = None
    memory: Any = None
    port: Any = None
    switch: Any = None

    @property
    def kind(self) -> str | None:
        """Returns the kind of a component.

        The kind is the value of the field `choice`. Without this field, the component has only one
        field, whose name is the kind.
        """
        kinds = ("custom", "device", "cpu", "xpu", "nic", "memory", "port", "switch")
        named = (kind for kind in kinds if getattr(self, kind) is not None)
        return self.choice or next(named, None)


@dataclass(frozen=True)
class _Physical:
    bandwidth: Any = None
    latency: Any = None


@dataclass(frozen=True)
class _Link:
    name: Name
    description: Any = None
    physical: _Physical | None = None


@dataclass(frozen=True)
class _End:
    component: Name
    device: Name | None = None
    instance: Name | None = None


@dataclass(frozen=True)
class _Edge:
    ep1: _End
    ep2: _End
    link: Name
    scheme: Name


@dataclass(frozen=True)
class _Device:
    name: Name
    components: list[_Component]
    description: Any = None
    links: list[_Link] | None = None
    edges: list[_Edge] | None = None


@dataclass(frozen=True)
class _Instance:
    name: Name
    device: Name
    count: Count
    description: Any = None


@dataclass(frozen=True)
class _Infrastructure:
    devices: list[_Device]
    instances: list[_Instance]
    name: Any = None
    description: Any = None
    links: list[_Link] | None = None
    edges: list[_Edge] | None = None


def read(path: Path, **beside: object) -> Fabric:
    """Reads a custom fabric from a file; `beside` are defaults such as `rate` and `latency`.

    Raises
    ------
    ConfigError
        The file is no such description, or no valid fabric; the message names the place.
    UsageError
        The file is protobuf, and the package `infragraph` is not installed.
    FileError
        The file cannot be read.
    """
    options = texts((), beside, list(beside))
    if path.suffix == ".json":
        return fabric_of(read_json(path), path.name, options)
    if path.suffix == ".pb":
        return fabric_of(_protobuf(path), path.name, options)
    document = Document.read(path)
    try:
        return fabric_of(document.content, path.name, options)
    except MisplacedError as error:
        if not error.place:
            raise ConfigError(f"{path}: {error.problem}") from error
        if error.place[0] in options:
            raise
        raise document.error(error.place, error.problem) from error


def _protobuf(path: Path) -> Any:
    try:
        from google.protobuf.json_format import MessageToDict
        from google.protobuf.message import DecodeError
        from infragraph.infragraph_pb2 import Infrastructure
    except ImportError as error:
        hint = f"{installing('infragraph')}, or write the file as YAML"
        raise UsageError(f"`{path}`: protobuf needs the package infragraph; {hint}") from error
    content = read_content(path)
    try:
        message = Infrastructure.FromString(content)
        return MessageToDict(message, preserving_proto_field_name=True)
    except (DecodeError, ValueError, RecursionError) as error:
        raise ConfigError(f"this is not valid protobuf of InfraGraph: {error}") from error


def fabric_of(content: object, file: str = "", options: dict[str, str] | None = None) -> Fabric:
    """Returns the custom fabric of a description; `options` are defaults such as `rate`.

    Raises
    ------
    MisplacedError
        The content is no such description, or no valid fabric; the error has the place.
    """
    whole_file = read_fields(_Infrastructure, _without_empty(content), MisplacedError)
    return _Expansion(whole_file, options or {}).fabric(file)


def _without_empty(content: Any) -> Any:
    """Removes empty lists, which programs write for missing fields, from the content."""
    if isinstance(content, dict):
        return {
            key: _without_empty(value) for key, value in content.items() if value not in ([], None)
        }
    return [_without_empty(item) for item in content] if isinstance(content, list) else content


@dataclass
class _Cable:
    """Cable between two components, with the places of its edge and of its link in the file."""

    place: Place
    link: _Link
    at: Place


class _Expansion:
    """Expansion of a description: the components and edges of all instances, by name."""

    def __init__(self, described: _Infrastructure, options: dict[str, str]) -> None:
        self.options = options
        self.devices = _indexed_by_name(described.devices, ("devices",), "device")
        self.instances = _indexed_by_name(described.instances, ("instances",), "instance")
        self.steps = 0
        self.unequal = 0
        self.kinds: dict[str, str | None] = {}
        self.cables: dict[frozenset[str], _Cable] = {}
        for place, instance in self.instances.values():
            _found(self.devices, instance.device, (*place, "device"), "device")
            for index in range(instance.count):
                self.device(instance.device, f"{instance.name}.{index}", place)
        links = _indexed_by_name(described.links, ("links",), "link")
        for position, edge in enumerate(described.edges or ()):
            self.join(("edges", position), edge, "", links, self.across)

    def make(self, several: int, place: Place) -> None:
        """Counts `several` more items, and raises an error if the graph becomes too large.

        A small file can expand to a huge graph.
        """
        self.steps += several
        if self.steps > MAX_STEPS:
            raise MisplacedError(place, f"there are more than {MAX_STEPS} components and edges")

    def device(self, name: str, prefix: str, at: Place, depth: int = 0) -> None:
        """Adds the components and edges of a device, and of all devices inside it."""
        place, device = self.devices[name]
        if depth > MAX_DEPTH:
            raise MisplacedError(place, f"devices are nested more than {MAX_DEPTH} deep")
        _indexed_by_name(device.components, (*place, "components"), "component")
        for position, component in enumerate(device.components):
            self.make(1 + component.count, (*place, "components", position))
            for index in range(component.count):
                inside = f"{prefix}.{component.name}.{index}"
                if component.kind == "device":
                    name_place = (*place, "components", position, "name")
                    _found(self.devices, component.name, name_place, "device")
                    self.device(component.name, inside, at, depth + 1)
                    continue
                self.kinds[inside] = component.kind
                if len(self.kinds) > MAX_COMPONENTS:
                    problem = f"there are more than {MAX_COMPONENTS} components"
                    raise MisplacedError((*at, "count"), problem)
        links = _indexed_by_name(device.links, (*place, "links"), "link")
        for position, edge in enumerate(device.edges or ()):

            def ends(end: _End, where: Place) -> list[str]:
                path = end.component if end.device is None else f"{end.device}.{end.component}"
                return self.below(name, path, (*where, "component"))

            self.join((*place, "edges", position), edge, f"{prefix}.", links, ends)

    def across(self, end: _End, where: Place) -> list[str]:
        """Returns the components at one end of an edge between instances."""
        if end.instance is None:
            raise MisplacedError((*where, "instance"), "the field `instance` is missing")
        name, choose = _slice(end.instance, (*where, "instance"))
        _, instance = _found(self.instances, name, (*where, "instance"), "instance")
        inner_names = self.below(instance.device, end.component, (*where, "component"))
        indexes = choose(instance.count)
        self.make(len(indexes) * len(inner_names), where)
        return [f"{name}.{index}.{inner_name}" for index in indexes for inner_name in inner_names]

    def below(self, device: str, path: str, where: Place) -> list[str]:
        """Returns the components in a device that a path such as `cx5[0:2].port[0]` names."""
        names = [""]
        inside: str | None = device
        for part in path.split("."):
            if inside is None:
                raise MisplacedError(where, f"`{path}`: there is no device around `{part}`")
            name, choose = _slice(part, where)
            components = {
                component.name: component for component in self.devices[inside][1].components
            }
            if name not in components:
                hint = nearest(name, components)
                problem = f"the device `{inside}` has no component `{name}`{hint}"
                raise MisplacedError(where, problem)
            indexes = choose(components[name].count)
            self.make(len(names) * len(indexes), where)
            names = [f"{prefix}.{name}.{index}" for prefix in names for index in indexes]
            inside = name if components[name].kind == "device" else None
        if inside is not None:
            raise MisplacedError(where, f"`{path}` is a device; name a component of it")
        return [prefix.removeprefix(".") for prefix in names]

    def join(
        self,
        place: Place,
        edge: _Edge,
        prefix: str,
        links: dict[str, tuple[Place, _Link]],
        ends: Callable[[_End, Place], list[str]],
    ) -> None:
        """Adds the cables of an edge.

        If two cables have the same ends, the later cable replaces the earlier cable.
        """
        starts, targets = ends(edge.ep1, (*place, "ep1")), ends(edge.ep2, (*place, "ep2"))
        at, link = _found(links, edge.link, (*place, "link"), "link")
        if edge.scheme == "one2one":
            # As InfraGraph itself does, the first of both ends are joined if the numbers differ.
            self.unequal += len(starts) != len(targets)
            pairs: Iterator[tuple[str, str]] = zip(starts, targets, strict=False)
        elif edge.scheme == "many2many":
            pairs = product(starts, targets)
        else:
            problem = f"`{edge.scheme}` is not read; write one2one or many2many"
            raise MisplacedError((*place, "scheme"), problem)
        self.make(len(starts) * (len(targets) if edge.scheme == "many2many" else 1), place)
        for first, second in pairs:
            if first != second:
                ends_of = frozenset((prefix + first, prefix + second))
                self.cables.pop(ends_of, None)
                self.cables[ends_of] = _Cable(place, link, at)

    def fabric(self, file: str) -> Fabric:
        """Returns the fabric of all cables; components without cables are left out."""
        joined = frozenset().union(*self.cables) if self.cables else frozenset()
        graph = Graph(file=file)
        for name, kind in self.kinds.items():
            if kind == "xpu":
                graph.ranks.append(name)
            elif name in joined:
                graph.switches.append(name)
        if not graph.ranks:
            problem = "there is no component that is an xpu, hence there are no ranks"
            raise MisplacedError((), problem)
        graph.number((), ())
        if self.unequal:
            note(
                file,
                f"{plural(self.unequal, 'edge')} of the scheme one2one with unequal numbers of "
                "components: the first of both ends are joined",
            )
        order = {name: place for place, name in enumerate(self.kinds)}
        for ends, cable in self.cables.items():
            start, end = sorted(ends, key=order.__getitem__)
            graph.link(cable.place, start, end, "-", self.link_options(cable))
        return graph.fabric()

    def link_options(self, cable: _Cable) -> list[str]:
        """Returns the rate and the latency of a cable as options of a link."""
        physical = cable.link.physical or _Physical()
        place = (*cable.at, "physical")
        rate = _quantity(physical.bandwidth, (*place, "bandwidth")) or self.options.get("rate")
        latency = _quantity(physical.latency, (*place, "latency")) or self.options.get("latency")
        if rate is None:
            problem = (
                f"the link `{cable.link.name}` has no bandwidth in bits or bytes; name one, or "
                "give all such links a `rate` beside `graph` in a fabric file"
            )
            raise MisplacedError(cable.at, problem)
        return [rate] if latency is None else [rate, latency]


def _quantity(quantity: Any, place: Place) -> str | None:
    """Returns a bandwidth or latency with its unit; None if the quantity is missing.

    A bandwidth in transfers per second also gives None, since the bits per transfer are unknown.
    """
    if quantity is None:
        return None
    if not isinstance(quantity, dict):
        raise MisplacedError(place, f"`{quantity}` is not a set of fields")
    choice = quantity.get("choice") or next((key for key in quantity if key in UNITS), None)
    value = quantity.get(str(choice))
    if choice not in UNITS or value is None:
        return None
    try:
        number = Decimal(str(value))
    except InvalidOperation:
        number = Decimal("nan")
    if isinstance(value, bool) or not number.is_finite() or not 0 <= number < 10**9:
        raise MisplacedError((*place, str(choice)), f"`{value}` is not a number from 0 to 10^9")
    return f"{number:f}{UNITS[str(choice)]}"


def write(fabric: Fabric, path: Path) -> None:
    """Writes an electrical fabric as one device with an `xpu` per rank and a `switch` per switch.

    The fields `description` contain the specification of the fabric, and the names of its parts.

    Raises
    ------
    FabricError
        The fabric has no links that messages share, or has links that InfraGraph cannot express.
    FileError
        The file cannot be written.
    """
    if not fabric.electrical:
        raise FabricError("infragraph cannot express wavelengths; write GraphML or node_link")
    if any(work != "none" for work in fabric.switch_work):
        raise FabricError(
            "infragraph cannot express switches that add or multicast; write GraphML or "
            "node_link, or give the fabric in_network=none"
        )
    ranks, switches, edges = edges_of(fabric)
    names = {name: f"rank[{number}]" for number, name in enumerate(ranks)}
    names |= {name: f"switch[{number}]" for number, name in enumerate(switches)}
    links: dict[tuple[str, str], str] = {}
    joined: set[frozenset[str]] = set()
    lines = []
    for edge in edges:
        between = f"{edge.start} and {edge.end}"
        if edge.kind != "-" or "sharing" in edge.options:
            kinds = {">": "that lead one way", "~": "of half duplex"}
            kind = kinds.get(edge.kind, "whose rate each flow has for itself")
            raise FabricError(f"InfraGraph has no links {kind}, as between {between}; use GraphML")
        if frozenset((edge.start, edge.end)) in joined:
            raise FabricError(
                f"InfraGraph has one link between two components, not several as between {between}"
            )
        joined.add(frozenset((edge.start, edge.end)))
        numbers = (edge.options["rate"], edge.options["latency"])
        link = links.setdefault(numbers, f"link{len(links)}")
        ends = [f"{{component: '{names[end]}'}}" for end in (edge.start, edge.end)]
        lines.append(f"  - {{ep1: {ends[0]}, ep2: {ends[1]}, scheme: one2one, link: {link}}}")
    text = ["name: opticoll", f"description: {json.dumps(fabric.spec)}", "devices:"]
    text += ["- name: fabric", "  components:"]
    for name, choice, listed in (("rank", "xpu", ranks), ("switch", "switch", switches)):
        if listed:
            described = json.dumps(", ".join(listed))
            fields = f"name: {name}, count: {len(listed)}, choice: {choice}"
            text.append(f"  - {{{fields}, description: {described}}}")
    text += (
        ["  links:", *(_link(name, *numbers) for numbers, name in links.items())] if links else []
    )
    text += ["  edges:", *lines] if lines else []
    text += ["instances:", "- {name: fabric, device: fabric, count: 1}", ""]
    write_file(path, "\n".join(text))


def _link(name: str, rate: str, latency: str) -> str:
    """Returns the YAML line of a link with its rate and latency, in units of InfraGraph."""
    bits = Fabric("crossbar:ranks=2", rate=rate).option("rate")
    picoseconds = Fabric("crossbar:ranks=2", latency=latency).option("latency")
    gigabits = f"{Decimal(bits) / 10**9:f}"
    nanoseconds = f"{Decimal(picoseconds) / 10**3:f}"
    return (
        f"  - {{name: {name}, physical: {{"
        f"bandwidth: {{choice: gigabits_per_second, gigabits_per_second: {gigabits}}}, "
        f"latency: {{choice: ns, ns: {nanoseconds}}}}}}}"
    )


T = TypeVar("T", _Device, _Component, _Instance, _Link)


def _indexed_by_name(listed: list[T] | None, place: Place, noun: str) -> dict[str, tuple[Place, T]]:
    """Returns the items of a list by name, each with its place in the file."""
    named: dict[str, tuple[Place, T]] = {}
    for position, item in enumerate(listed or ()):
        if item.name in named or re.search(r"[\[\].]", item.name):
            problem = f"there are two of the name `{item.name}`"
            if item.name not in named:
                problem = f"the name of a {noun} holds no brackets or dots, as `{item.name}` does"
            raise MisplacedError((*place, position, "name"), problem)
        named[item.name] = ((*place, position), item)
    return named


def _found(
    named: dict[str, tuple[Place, T]], name: str, place: Place, noun: str
) -> tuple[Place, T]:
    if name not in named:
        hint = nearest(name, named) if named else ""
        raise MisplacedError(place, f"there is no {noun} `{name}`{hint}")
    return named[name]


def _slice(text: str, place: Place) -> tuple[str, Callable[[int], list[int]]]:
    """Splits `name`, `name[3]` or `name[start:stop:step]` into a name and a function.

    Given the number of items, the function returns the indices that the brackets select.
    """
    number = r"(-?[0-9]{1,6})?"
    read = re.fullmatch(rf"([^\[\]]+)(?:\[{number}(:{number}(?::{number})?)?\])?", text)
    if read is None:
        raise MisplacedError(place, f"`{text}` is not a name with a slice, such as xpu[0:4]")
    name, start, colon, stop, step = read.groups()
    ends = [None if end is None else int(end) for end in (start, stop, step)]

    def indexes(count: int) -> list[int]:
        if start is not None and colon is None:
            index = int(start) + (count if int(start) < 0 else 0)
            if not 0 <= index < count:
                raise MisplacedError(place, f"`{text}`: there are only {count}")
            return [index]
        if ends[2] == 0:
            raise MisplacedError(place, f"`{text}`: a step is not 0")
        return list(range(*slice(*ends).indices(count)))

    return name, indexes
