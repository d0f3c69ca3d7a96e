"""Fabrics from specifications, YAML (1.2) files, and graphs in other files.

A fabric file names a family or a preset, and its options as on the command line:

    family: wdm_ring
    ranks: 1024
    wavelengths: 64
    rate: 40Gb/s

A fabric of the family `custom` has ranks, switches and links by name (see
`opticoll.formats.network_graph`), or the name of a file in another format that contains these:

    family: custom
    ranks: [gpu0, gpu1]
    switches: [leaf]
    links: [[gpu0, leaf], {between: [gpu1, leaf], rate: 400Gb/s}]

    family: custom
    graph: server.xml
    boxes: 4

A graph with the option `wavelengths` is a graph of fibres, of the family `wdm_graph`. Options may
follow the name of a file, as in `net.gml:wavelengths=16,fibres=2`.

Errors name the file, the line and the field.

A user's function `module:function` returns a fabric, the text of a fabric, or a NetworkX graph.
Options are keyword arguments of the function, as in `mypkg.mine:pod,spines=4`.

>>> to_fabric("wdm_ring:ranks=4,wavelengths=1").ranks
4
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar, cast

from opticoll import formats
from opticoll._core import (
    Fabric,
    FabricError,
    OpticollError,
)
from opticoll.errors import ConfigError, UsageError
from opticoll.formats import network_graph, node_link
from opticoll.formats.content import beginning
from opticoll.formats.document import Document, Place, is_yaml
from opticoll.formats.recognition import recognize
from opticoll.inputs import user_function
from opticoll.names import canonical, known_names, nearest
from opticoll.outputs.fabric_names import graph_text, options_of, short_name, without_own
from opticoll.outputs.records import record_rows

if TYPE_CHECKING:
    from typing import TypeAlias

    import networkx

    FabricLike: TypeAlias = Fabric | str | os.PathLike[str] | networkx.Graph

_Made = TypeVar("_Made")

GRAPHS = formats.suffixes("fabric")
"""Endings of files that contain a graph."""


FILES = tuple(dict.fromkeys([".yaml", ".yml", *GRAPHS]))
"""Endings of files that contain a fabric."""


def to_fabric(fabric: FabricLike) -> Fabric:
    """Returns the fabric of a specification, a file, a user's function, or a NetworkX graph.

    Raises
    ------
    FabricError
        The value is of another type, or the specification is invalid.
    """
    if isinstance(fabric, Fabric):
        return fabric
    if isinstance(fabric, os.PathLike):
        fabric = _file_name(fabric)
    if isinstance(fabric, str):
        return parse_fabric(fabric)
    if node_link.is_graph(fabric):
        return _for_plans(node_link.from_networkx(fabric))
    raise FabricError(
        f"`{fabric!r}` is not a fabric; give an opticoll.Fabric, a text such as optree_paper, "
        "the name of a YAML file, or a graph of NetworkX"
    )


def _file_name(path: os.PathLike[str]) -> str:
    """Checks that a file exists or has an ending of fabrics, and returns its name."""
    name = os.fspath(path)
    if not name.endswith(FILES) and not os.path.isfile(name):
        raise FabricError(f"`{name}`: the name of a fabric's file ends in {', '.join(FILES)}")
    return name


def to_medium(fabric: FabricLike) -> str:
    """Returns the specification of a fabric, burst network or cost model.

    The specification may be in a YAML file.

    Raises
    ------
    ConfigError
        The file contains none of these.
    FabricError
        The value is of another type.
    """
    if isinstance(fabric, os.PathLike):
        fabric = _file_name(fabric)
    if not isinstance(fabric, str):
        return to_fabric(fabric).spec
    if is_user_fabric(fabric):
        return _made(fabric, to_medium)
    file, options = split_options(fabric)
    if file is None:
        return fabric
    if is_yaml(file) and _is_own(file):
        return _medium_in(file, options)
    try:
        return _with_hosts(read_graph(file, **options))
    except network_graph.MisplacedError as error:
        raise ConfigError(f"{file}: {error}") from error


def split_options(text: str) -> tuple[str | None, dict[str, Any]]:
    """Splits a file name with options, such as `net.gml:wavelengths=16`; no file gives None.

    A file without an ending of fabrics must exist, and its name must not be that of a fabric.

    >>> split_options("net.gml:wavelengths=16,rate=10Gb/s")
    ('net.gml', {'wavelengths': 16, 'rate': '10Gb/s'})
    >>> split_options("wdm_ring:ranks=4,wavelengths=1")
    (None, {})

    Raises
    ------
    FabricError
        An option is not `key=value`.
    """
    endings = "|".join(re.escape(ending) for ending in FILES)
    match = re.fullmatch(f"(.*?(?:{endings}))(?::(.*))?", text, re.DOTALL)
    if match is None or re.match("[A-Za-z0-9_-]+:[A-Za-z_-]+=", match[1]):
        match = re.fullmatch("([^:]*)(?::(.*))?", text, re.DOTALL)
        if match is None or canonical(match[1], _names()) or not os.path.isfile(match[1]):
            return None, {}
    options: dict[str, Any] = {}
    for option in match[2].split(",") if match[2] else ():
        key, equals, value = option.partition("=")
        if not equals:
            raise FabricError(f"`{option}` after `{match[1]}:` is not `key=value`")
        options[key.strip().replace("-", "_")] = int(value) if value.isdecimal() else value.strip()
    return match[1], options


def _names() -> list[str]:
    return [*known_names("fabrics"), *known_names("presets")]


def _with_hosts(fabric: Fabric) -> str:
    """Returns the specification of a graph's fabric, with the hosts that its file states."""
    return network_graph.WITH_HOSTS.get(fabric.spec, fabric.spec)


def _medium_in(path: str, options: Mapping[str, Any]) -> str:
    """Returns the specification in a YAML file, with the hosts in the file."""
    document = Document.read(path)
    fields: dict[str, Any] = {**document.content, **options}
    records = {record["name"]: record for record in record_rows("fabrics")}
    family = canonical(str(fields.get("family")), records)
    option_names = {option["name"] for option in records[family]["options"]} if family else set()
    if family in network_graph.GRAPH_FAMILIES:
        return _with_hosts(fabric_of_fields(document, fields, ()))
    hosts = fields.pop("hosts", 1) if "hosts" in option_names else 1
    spec = fabric_of_fields(document, fields, ()).spec
    return spec if hosts == 1 else f"{spec},hosts={hosts}"


def to_fabrics(
    fabric: FabricLike | Iterable[FabricLike], ranks: list[int] | None = None
) -> list[Fabric]:
    """Returns fabrics without duplicates; `ranks[0]` completes a specification without ranks.

    Raises
    ------
    FabricError
        A value is no fabric, or there are no values.
    """
    several = isinstance(fabric, Iterable) and not isinstance(fabric, str)
    is_single = not several or node_link.is_graph(fabric)
    listed = cast("Iterable[FabricLike]", [fabric] if is_single else fabric)
    fabrics = [_completed(member, ranks) for member in listed]
    if not fabrics:
        raise FabricError("there is no fabric; give at least one such as optree_paper")
    return list({member.spec: member for member in fabrics}.values())


def need_fabric(fabric: FabricLike | None) -> Fabric:
    """Returns the fabric of a required option; raises UsageError if the option is missing."""
    if fabric is None:
        raise UsageError(
            "--fabric is missing; give a preset such as optree_paper, "
            "or wdm_ring:ranks=16,wavelengths=2"
        )
    return to_fabric(fabric)


def need_fabrics(fabrics: Sequence[FabricLike] | None) -> list[Fabric]:
    """Returns the fabrics of a required option; raises UsageError if there are none."""
    return to_fabrics([need_fabric(fabric) for fabric in fabrics or ()] or need_fabric(None))


def _completed(fabric: FabricLike, ranks: list[int] | None) -> Fabric:
    """Returns a fabric; adds the first number of `ranks` to a specification without ranks."""
    try:
        return to_fabric(fabric)
    except FabricError as error:
        if not ranks or not isinstance(fabric, str) or getattr(error, "option", None) != "ranks":
            raise
        try:
            return Fabric(fabric, ranks=ranks[0])
        except FabricError:
            raise error from None


def is_user_fabric(text: str) -> bool:
    """Returns whether a text names a user's function, and neither a file nor a known fabric.

    >>> is_user_fabric("mypkg.mine:pod,spines=4"), is_user_fabric("gpu_servers:rails")
    (True, False)
    """
    if not user_function.is_named(text) or canonical(text.partition(":")[0], _names()):
        return False
    return split_options(text)[0] is None


def _made(spec: str, convert: Callable[[FabricLike], _Made]) -> _Made:
    """Calls a user's function, and returns its fabric in the form that `convert` returns.

    Raises
    ------
    ConfigError
        The function returns a graph that is no valid fabric.
    FabricError
        The function cannot be called, or returns no fabric.
    """
    try:
        function, options = user_function.load("fabric", spec, FabricError)
        made = user_function.call("fabric", spec, function, [], FabricError, options)
    except FabricError as error:
        family = spec.partition(":")[0]
        near = nearest(family, _names(), "")
        # The hint lists opticoll's fabrics, which does not help with a user's function.
        raise _without_hint(f"{error}{near}") from error
    try:
        if isinstance(made, str) and is_user_fabric(made):
            raise FabricError(f"`{made}` is the name of a function")
        if node_link.is_graph(made):
            made = _with_hosts(node_link.from_networkx(made, spec))
        return convert(cast("FabricLike", made))
    except network_graph.MisplacedError as error:
        raise ConfigError(f"{spec}: {error}") from error
    except FabricError as error:
        raise _without_hint(f"fabric `{spec}` returned no fabric: {error}") from error


def _without_hint(message: str) -> FabricError:
    """Returns an error without the hint of its class, which lists the fabrics of opticoll."""
    error = FabricError(message)
    vars(error)["hint"] = None
    return error


def parse_fabric(text: str, **parts: str) -> Fabric:
    """Returns the fabric of a command line: as `parse_specification`, or of a user's function.

    Raises
    ------
    ConfigError
        The file or the graph is no valid fabric.
    FabricError
        The specification is invalid, the function returns no fabric, or plans do not apply to the
        fabric.
    """
    if is_user_fabric(text):
        return _part(_made(text, to_fabric), parts)
    return parse_specification(text, **parts)


def parse_specification(text: str, **parts: str) -> Fabric:
    """Returns the fabric of a specification, a preset, or a file with options; runs no user code.

    `parts` are the options `without` and `members`. The part that remains must be connected, but
    the whole graph need not be.

    Raises
    ------
    ConfigError
        The file is no valid fabric.
    FabricError
        The specification is invalid, or plans do not apply to the fabric.
    """
    file, options = split_options(text)
    if file is None:
        known_parts, others = _parts_of(parts, ["members"])
        fabric = _part(Fabric(text, **known_parts), others)
        _note_unused(fabric, options_of(text))
        return fabric
    try:
        fabric = (read_fabric if is_yaml(file) else read_graph)(file, parts, **options)
    except network_graph.MisplacedError as error:
        raise ConfigError(f"{file}: {error}") from error
    _note_unused(fabric, options)
    return _for_plans(fabric)


def _for_plans(fabric: Fabric) -> Fabric:
    """Returns a graph's fabric; raises FabricError if the graph states several hosts at a rank."""
    spec = _with_hosts(fabric)
    return fabric if spec == fabric.spec else Fabric(spec)


def _note_unused(fabric: Fabric, stated: Mapping[str, Any]) -> None:
    """Issues a note on a latency for the cables of a graph that all have their own."""
    latency = stated.get("latency")
    # Complete specifications state the default.
    if latency in (None, "0s") or not graph_text(fabric.spec):
        return
    if without_own(fabric.spec, "latency") == 0:
        network_graph.note(
            short_name(fabric.spec),
            f"latency={latency} has no effect: every link has a length or a latency of its own",
        )


def _part(whole: Fabric, parts: Mapping[str, str]) -> Fabric:
    """Returns a part of a fabric; parts that an earlier `without` removed stay removed."""
    earlier = whole.option("without")
    if earlier is not None and "without" in parts:
        parts = {**parts, "without": f"{earlier}+{parts['without']}"}
    return whole.with_options(**parts) if parts else whole


def read_graph(
    path: str | os.PathLike[str], parts: Mapping[str, str] = MappingProxyType({}), **fields: Any
) -> Fabric:
    """Reads a custom fabric from a file of another program, whose content shows the format.

    `fields` are further values, such as `rate`, that the graph lacks; `parts` are as in
    `parse_fabric`.

    Raises
    ------
    ConfigError
        The file is no valid fabric; the message names the place.
    MisplacedError
        A field is invalid, or does not apply to the format.
    FileError
        The file cannot be read.
    """
    path = Path(path)
    form = formats.recognized_format(beginning(path), path, "a fabric", "fabric")
    if form is None:
        if not path.name.endswith(GRAPHS):
            raise ConfigError(
                f"`{path}` is no fabric that opticoll recognizes; `opticoll list formats` lists "
                f"the formats, and {', '.join(FILES)} are endings of fabrics"
            )
        form = formats.named_format("fabric", path.name)
    known = form.beside + (network_graph.fibre_options() if form.fibres else ())
    for key in fields:
        if key not in known:
            hint = nearest(key, known) if known else ""
            raise network_graph.MisplacedError(
                (key,), f"there is no such option beside a graph of the format {form.name}{hint}"
            )
    known_parts, others = _parts_of(parts, [key for key in form.beside if key not in fields])
    try:
        fabric: Fabric = form.read(path, **fields, **known_parts)
    except ConfigError as error:
        place = getattr(error, "place", ())
        # Readers of YAML name file and line in their errors.
        if str(error).startswith(str(path)) or (place and place[0] in fields):
            raise
        raise ConfigError(f"{path}: {error}") from error
    return _part(fabric, others)


def _parts_of(
    parts: Mapping[str, str], names: Sequence[str]
) -> tuple[dict[str, str], dict[str, str]]:
    """Splits `parts` into the parts that `names` lists, and the remaining parts."""
    known_parts = {key: value for key, value in parts.items() if key in names}
    return known_parts, {key: value for key, value in parts.items() if key not in names}


def _is_own(path: str | os.PathLike[str]) -> bool:
    """Returns whether a YAML file is opticoll's own: no signature of another file fits it."""
    kind = recognize(beginning(path))
    return kind is None or kind.name == "fabric"


def read_fabric(
    path: str | os.PathLike[str], parts: Mapping[str, str] = MappingProxyType({}), **fields: Any
) -> Fabric:
    """Reads a fabric from a YAML file; `fields` replace those of the file.

    `parts` are as in `parse_fabric`.

    Raises
    ------
    ConfigError
        The file is no valid fabric; the message names line and field.
    FileError
        The file cannot be read.
    """
    if not _is_own(path):
        return read_graph(path, parts, **fields)
    document = Document.read(path)
    return fabric_of_fields(document, {**document.content, **fields}, (), parts)


def fabric_of_fields(
    document: Document,
    fields: dict[str, Any],
    place: Place,
    parts: Mapping[str, str] = MappingProxyType({}),
) -> Fabric:
    """Returns the fabric of the field `family` or `preset` and its options, reduced to `parts`."""
    names = [key for key in ("family", "preset") if key in fields]
    if len(names) != 1:
        problem = "is given twice, as `family` and as `preset`" if names else "is missing"
        raise ConfigError(
            f"{document.path}: the kind of fabric {problem}; "
            "write one of `family: wdm_ring` or `preset: optree_paper`"
        )
    (name,) = names
    kind = "fabrics" if name == "family" else "presets"
    record_names = known_names(kind)
    chosen = canonical(str(fields[name]), record_names)
    if chosen is None:
        hint = nearest(str(fields[name]), record_names)
        raise document.error((*place, name), f"unknown {name} `{fields[name]}`{hint}")
    if chosen in network_graph.GRAPH_FAMILIES and not isinstance(fields.get("links"), str):
        return _graph(document, {**fields, name: chosen}, name, place, parts)
    for key, value in fields.items():
        if not isinstance(value, (bool, int, float, str)):
            raise document.error((*place, key), "must be one value, such as `ranks: 16`")
    options = {key: str(value) for key, value in fields.items() if key != name}
    try:
        return _part(Fabric(chosen, **options), parts)
    except OpticollError as error:
        wrong = getattr(error, "option", None)
        raise document.error((*place, wrong if wrong in options else name), str(error)) from error


def _graph(
    document: Document,
    fields: dict[str, Any],
    name: str,
    place: Place,
    parts: Mapping[str, str],
) -> Fabric:
    """Returns a fabric from ranks, switches and links, or from the file in `graph`."""
    family = fields[name]
    fields = {key: value for key, value in fields.items() if key != name}
    graph = fields.pop("graph", None)
    try:
        if graph is None:
            known_parts, others = _parts_of(parts, [key for key in parts if key not in fields])
            fabric = _part(
                network_graph.from_fields(fields | known_parts, document.path.name), others
            )
        elif not isinstance(graph, str) or not os.path.exists(document.path.parent / graph):
            raise network_graph.MisplacedError(("graph",), f"there is no file `{graph}`")
        else:
            fabric = read_graph(document.path.parent / graph, parts, **fields)
    except network_graph.MisplacedError as error:
        where = (*place, *error.place) if error.place else (*place, name)
        raise document.error(where, error.problem) from error
    if family == "wdm_graph" and fabric.family == "custom":
        problem = "fibres need wavelengths: write a field such as `wavelengths: 16`"
        raise document.error((*place, name), problem)
    return fabric
