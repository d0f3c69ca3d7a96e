"""What users write: lists on the command line, and YAML (1.2) files of fabrics and scenarios.

A fabric file names a family or a preset, and its options as on the command line:

    family: wdm_ring
    ranks: 1024
    wavelengths: 64
    rate: 40Gb/s

or, of the family `custom`, ranks, switches and links by name (see `opticoll.network_graph`), or a
file of another format that holds them:

    family: custom
    ranks: [gpu0, gpu1]
    switches: [leaf]
    links: [[gpu0, leaf], {between: [gpu1, leaf], rate: 400Gb/s}]

    family: custom
    graph: server.xml
    boxes: 4

A scenario file says what `opticoll compare` shall compare; `fabric` may be a spelling, the name of
a fabric file, a fabric written in place, or a list of these:

    collective: all_gather
    fabric: optree_paper
    algorithms: [ring, "optree:radices=4x4x4x4x4"]
    sizes: 1KiB..1GiB
    wavelengths: [32, 64, 128]

Errors name the file, the line and the field.

>>> from opticoll.config import split_algorithms, split_sizes
>>> split_sizes("1KiB..20KiB,1MB")
[1024, 4096, 16384, 20480, 1000000]
>>> split_algorithms("ring,wrht:group_size=5,striping=true,optree")
['ring', 'wrht:group_size=5,striping=true', 'optree']
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, make_dataclass
from fractions import Fraction
from functools import partial
from itertools import cycle
from numbers import Integral
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, TypeGuard, cast

from opticoll import demands, formats, network_graph, registry
from opticoll._core import (
    CollectiveError,
    Fabric,
    FabricError,
    OpticollError,
    UnitError,
    check_settings,
    collective_kind,
    format_time,
    parse_size,
    parse_time,
)
from opticoll.content import read_content
from opticoll.document import Document, Place, Text, text, whole
from opticoll.errors import ConfigError, UsageError
from opticoll.formats import node_link
from opticoll.settings import NAMES, Settings, given

if TYPE_CHECKING:
    from typing import TypeAlias

    import networkx

    from opticoll.user_algorithm import UserAlgorithm

    FabricLike: TypeAlias = Fabric | str | os.PathLike[str] | networkx.Graph

GRAPHS = formats.suffixes("fabric")
"""Endings by which a fabric is taken for a graph in a file."""

FILES = tuple(dict.fromkeys([".yaml", ".yml", *GRAPHS]))
"""Endings of files of fabrics."""

SIZE_RANGE_FACTOR = 4
"""Sizes of a range `A..B` grow by this factor up to B, the last of them."""


TIME_RANGE_FACTORS = (Fraction(2), Fraction(5, 2), Fraction(2))
"""Times of a range `A..B` grow by these factors in turn up to B, the last of them."""


@dataclass(frozen=True)
class Scenario:
    """A comparison: what is compared, on what, and how; a field left out has its default."""

    collective: str
    fabrics: Sequence[Fabric]
    sizes: list[int]
    algorithms: Sequence[str | UserAlgorithm] | None = None
    ranks: Sequence[int] | None = None
    wavelengths: Sequence[int] | None = None
    reconfiguration: Sequence[str] | None = None
    """Times from one setting to the next, in place of the fabric's."""
    auto: bool = True
    settings: Settings = field(default_factory=Settings)
    wavelength: str = "auto"
    root: int = 0
    demand: Any = None
    """As `opticoll.plan` takes it."""
    origin: Document | None = None
    """The file that it was read from."""
    overridden: frozenset[str] = frozenset()
    """Fields that options have replaced, hence not those of the file."""

    def located(self, error: OpticollError) -> OpticollError:
        """An error of the comparison, with file, line and field where the file is at fault."""
        field: Place = getattr(error, "field", ())
        if self.origin is None or not field or field[0] in self.overridden:
            return error
        return self.origin.error(field, str(error).removeprefix(f"{field[0]}: "))


def to_scenario(
    collective: str,
    fabric: FabricLike | Iterable[FabricLike],
    algorithms: str | Iterable[str | UserAlgorithm] | None = None,
    *,
    sizes: str | int | Iterable[str | int] | None = None,
    ranks: Iterable[int] | None = None,
    wavelengths: Iterable[int] | None = None,
    reconfiguration: str | Iterable[str] | None = None,
    **others: Any,
) -> Scenario:
    """A comparison from the arguments of `opticoll.compare`; the others are fields as they are.

    Raises
    ------
    OpticollError
        An unknown collective, or something that is no fabric or size.
    """
    ranks = None if ranks is None else list(ranks)
    fabrics = to_fabrics(fabric, ranks)
    if isinstance(algorithms, str):
        algorithms = split_algorithms(algorithms)
    if sizes is None:
        demand = others.get("demand")
        own = None if demand is None else demands.to_demand(demand, fabrics[0].ranks)[1]
        sizes = demands.DEFAULT_SIZE if own is None else own
    if isinstance(sizes, str):
        sizes_bytes = split_sizes(sizes)
    else:
        listed = sizes if isinstance(sizes, Iterable) else [sizes]
        sizes_bytes = list(dict.fromkeys(to_bytes(size) for size in listed))
    return Scenario(
        collective=collective_kind(collective),
        fabrics=fabrics,
        sizes=sizes_bytes,
        algorithms=None if algorithms is None else list(algorithms),
        ranks=ranks,
        wavelengths=None if wavelengths is None else list(wavelengths),
        reconfiguration=None if reconfiguration is None else _read_times(reconfiguration),
        **others,
    )


def to_fabric(fabric: FabricLike) -> Fabric:
    """The fabric, from one, from a spelling, from a YAML file or a graph in a file, or a graph.

    Raises
    ------
    FabricError
        It is something else, or the spelling is none.
    """
    if isinstance(fabric, Fabric):
        return fabric
    if node_link.is_graph(fabric):
        return node_link.from_networkx(fabric)
    if isinstance(fabric, os.PathLike):
        fabric = _file_name(fabric)
    if not isinstance(fabric, str):
        raise FabricError(
            f"`{fabric!r}` is no fabric; give an opticoll.Fabric, a spelling such as optree_paper, "
            "the name of a YAML file, or a graph of NetworkX"
        )
    return parse_fabric(fabric)


def _file_name(path: os.PathLike[str]) -> str:
    """The name of a file of a fabric, which is no specification."""
    name = os.fspath(path)
    if not name.endswith(FILES):
        raise FabricError(f"`{name}` is no file of a fabric; its name ends in {', '.join(FILES)}")
    return name


def to_medium(fabric: FabricLike) -> str:
    """The specification of a fabric, a network of bursts or a cost model, or of the YAML file.

    Raises
    ------
    ConfigError
        The file is none of them.
    FabricError
        It is something else.
    """
    if isinstance(fabric, os.PathLike):
        fabric = _file_name(fabric)
    if isinstance(fabric, str) and is_yaml(fabric):
        return _medium_in(fabric)
    if isinstance(fabric, str):
        return _with_light(read_graph(fabric)) if fabric.endswith(GRAPHS) else fabric
    return to_fabric(fabric).spec


def _with_light(fabric: Fabric, own: Mapping[str, Any] = MappingProxyType({})) -> str:
    """The specification of a fabric, with the wavelengths and hosts of its graph or its own."""
    light = {**network_graph.LIGHT_OF.get(fabric.spec, {}), **own}
    return fabric.spec + "".join(f",{key}={value}" for key, value in light.items())


def _medium_in(path: str) -> str:
    """The specification in a YAML file, where links may have wavelengths and hosts."""
    document = Document.read(path)
    records = {record["name"]: record for record in registry.records("fabrics")}
    family = registry.canonical(str(document.content.get("family")), records)
    own = {option["name"] for option in records[family]["options"]} if family else set()
    fields = dict(document.content)
    shared = network_graph.LIGHT if "hosts" in own else ()
    common = {key: fields.pop(key) for key in shared if key in fields}
    return _with_light(_fabric(document, fields, ()), common)


def to_fabrics(
    fabric: FabricLike | Iterable[FabricLike], ranks: list[int] | None = None
) -> list[Fabric]:
    """One fabric or several, each once; with the first of `ranks` where one says nothing of them.

    Raises
    ------
    FabricError
        One of them is no fabric, or there is none.
    """
    several = isinstance(fabric, Iterable) and not isinstance(fabric, str)
    one = not several or node_link.is_graph(fabric)
    listed = cast("Iterable[FabricLike]", [fabric] if one else fabric)
    made = [_of_any_size(member, ranks) for member in listed]
    if not made:
        raise FabricError("there is no fabric; give at least one such as optree_paper")
    return list({one.spec: one for one in made}.values())


def _of_any_size(fabric: FabricLike, ranks: list[int] | None) -> Fabric:
    """The fabric; where it says nothing of ranks, with the first number that is compared."""
    try:
        return to_fabric(fabric)
    except FabricError as error:
        if not ranks or not isinstance(fabric, str) or getattr(error, "option", None) != "ranks":
            raise
        try:
            return Fabric(fabric, ranks=ranks[0])
        except FabricError:
            raise error from None


def to_root(root: int, fabric: Fabric) -> int:
    """The root, if it is a rank of the fabric.

    Raises
    ------
    CollectiveError
        It is none.
    """
    if not _is_whole(root) or not 0 <= root < fabric.ranks:
        raise CollectiveError(f"root {root} is no rank: ranks are 0 to {fabric.ranks - 1}")
    return int(root)


def to_bytes(size: str | int) -> int:
    """A size in bytes, from a whole number of them or from text with a unit.

    Raises
    ------
    UnitError
        It is neither, or negative.
    """
    if isinstance(size, str):
        if size.strip().startswith("-"):
            raise UnitError(f"`{size}` is no size: a size is not negative")
        return parse_size(size)
    if not _is_whole(size):
        raise UnitError(f"`{size!r}` is no size; give a whole number of bytes, or text as `4MiB`")
    if not 0 <= size < 2**64:
        raise UnitError(f"`{size}` is no size: a size is at least 0 and below 2**64 bytes")
    return int(size)


def whole_number(what: str, text: str, least: int | None = None, most: int | None = None) -> int:
    """The whole number that a text is, for an option or a field.

    Raises
    ------
    UsageError
        It is none, or outside `least..=most`.
    """
    if re.fullmatch(r"[+-]?[0-9]{1,18}", text.strip()) is None:
        problem = (
            "is too large" if re.fullmatch(r"\+?[0-9]+", text.strip()) else "is no whole number"
        )
        raise UsageError(f"{what}: `{text}` {problem}")
    number = int(text)
    if (least is not None and number < least) or (most is not None and number > most):
        bounds = f"at least {least}" if most is None else f"in {least}..{most}"
        raise UsageError(f"{what}: {number} is out of range: it must be {bounds}")
    return number


def split_algorithms(text: str) -> list[str]:
    """The algorithms in a list separated by commas, options and parts of a rule with their own.

    >>> split_algorithms("ring,wrht:group_size=3,striping=true,bruck<80KiB,ring")
    ['ring', 'wrht:group_size=3,striping=true', 'bruck<80KiB,ring']
    """
    algorithms: list[str] = []
    for part in text.split(","):
        key, equals, _ = part.partition("=")
        is_option = equals and ":" not in key
        if algorithms and (is_option or re.search("<[^,]*$", algorithms[-1])):
            algorithms[-1] += f",{part.strip()}"
        elif not part.strip():
            raise UsageError(f"`{text}` names no algorithm between two commas")
        elif part.strip().isdigit() and algorithms:
            raise UsageError(
                f"`{part.strip()}` is no algorithm; several numbers of one option are written 4x4"
            )
        else:
            algorithms.append(part.strip())
    return algorithms


def up_to(
    first: Fraction, last: Fraction, following: Callable[[Fraction], Fraction]
) -> Iterator[Fraction]:
    """The values of a range: the first, those that follow below the last, and the last."""
    while first < last:
        yield first
        first = following(first)
    yield last


def _split(
    text: str, what: str, read: Callable[[str], int], factors: Iterable[Fraction]
) -> Iterator[int]:
    """The values in a list separated by commas; a range `A..B` grows by the factors in turn."""
    for part in text.split(","):
        first, dots, last = (word.strip() for word in part.partition(".."))
        if dots and not (first and last):
            end_word = "end" if first else "start"
            raise UsageError(f"`{part}` is no range of {what}: its {end_word} is missing")
        start = read(first)
        if not dots:
            yield start
            continue
        end = read(last)
        if not 0 < start <= end:
            raise UsageError(f"`{part}` is no range of {what}: it must start above 0 and not fall")
        growth = cycle(factors)
        values = up_to(Fraction(start), Fraction(end), partial(_grown, growth))
        yield from map(round, values)


def _grown(growth: Iterator[Fraction], value: Fraction) -> Fraction:
    return value * next(growth)


def split_sizes(text: str) -> list[int]:
    """The sizes in bytes in a list separated by commas; `A..B` stands for A, 4A, 16A, ... and B.

    Raises
    ------
    UnitError
        A size without a unit, or none at all.
    UsageError
        A range that is empty or starts at zero.
    """
    factors = [Fraction(SIZE_RANGE_FACTOR)]
    return list(dict.fromkeys(_split(text, "sizes", to_bytes, factors)))


def split_times(text: str) -> list[str]:
    """The times in a list separated by commas; `A..B` stands for A, 2A, 5A, 10A, ... and B.

    >>> split_times("10ns..200ns,1us")
    ['10ns', '20ns', '50ns', '100ns', '200ns', '1us']

    Raises
    ------
    UnitError
        A time without a unit, or none at all.
    UsageError
        A range that is empty or starts at zero.
    """
    times = _split(text, "times", parse_time, TIME_RANGE_FACTORS)
    return list(dict.fromkeys(format_time(time) for time in times))


def split_counts(option: str, text: str) -> list[int]:
    """The whole numbers in a list separated by commas, given for an option.

    Raises
    ------
    UsageError
        One of them is no whole number above zero.
    """
    example = "32,64" if option == "--wavelengths" else "512,1024"
    counts: list[int] = []
    for part in text.split(","):
        try:
            counts.append(whole_number(option, part, least=1))
        except UsageError as error:
            raise UsageError(
                f"{option}: `{part.strip()}` is no whole number above 0; "
                f"write a list such as {option} {example}"
            ) from error
    return list(dict.fromkeys(counts))


def is_yaml(text: str) -> bool:
    """Whether a fabric or a scenario is given as a YAML file, judged by its name."""
    return text.endswith((".yaml", ".yml"))


def parse_fabric(text: str, **parts: str) -> Fabric:
    """The fabric of a command line: a spelling, a preset, a YAML file or a graph in a file.

    `parts` are the options `without` and `members`; a part of a graph may be connected where the
    whole is not.

    Raises
    ------
    ConfigError
        The file is no fabric.
    FabricError
        The spelling is none.
    """
    if not text.endswith((".yaml", ".yml", *GRAPHS)):
        own, others = _parts_of(parts, ["members"])
        return _part(Fabric(text, **own), others)
    fabric = read_fabric(text, **parts) if is_yaml(text) else read_graph(text, parts)
    if light := network_graph.LIGHT_OF.get(fabric.spec):
        network_graph.note(text, f"only bursts (`congestion`) use its {' and '.join(light)}")
    return fabric


def _part(whole: Fabric, parts: Mapping[str, str]) -> Fabric:
    """The part of a fabric that is used; what it is without already stays away."""
    earlier = whole.option("without")
    if earlier is not None and "without" in parts:
        parts = {**parts, "without": f"{earlier}+{parts['without']}"}
    return whole.with_options(**parts) if parts else whole


def read_graph(
    path: str | os.PathLike[str], parts: Mapping[str, str] = MappingProxyType({}), **fields: Any
) -> Fabric:
    """The custom fabric in a file of a format of fabrics other than YAML.

    `fields` say what the format leaves open; `parts` are those of `parse_fabric`.

    Raises
    ------
    ConfigError
        The file is no fabric; the message names the place.
    MisplacedError
        A field is none, or does not fit.
    FileError
        The file cannot be read.
    """
    path = Path(path)
    known = [one for one in formats.of("fabric") if path.name.endswith(one.suffixes)]
    if len(known) > 1:
        content = read_content(path)
        known = [one for one in known if one.shows is not None and one.shows(content)] or known
    form = known[0]
    for key in fields:
        if key not in form.fields():
            hint = registry.nearest(key, form.fields()) if form.fields() else ""
            raise network_graph.MisplacedError(
                (key,), f"there is no such field beside a graph of the format {form.name}{hint}"
            )
    own, others = _parts_of(parts, [key for key in form.fields() if key not in fields])
    try:
        fabric: Fabric = form.read(path, **fields, **own)
    except ConfigError as error:
        place = getattr(error, "place", ())
        # Readers of YAML name file and line themselves.
        if is_yaml(path.name) or (place and place[0] in fields):
            raise
        raise ConfigError(f"{path}: {error}") from error
    return _part(fabric, others)


def _parts_of(
    parts: Mapping[str, str], known: Sequence[str]
) -> tuple[dict[str, str], dict[str, str]]:
    """The parts that are known, and the others."""
    own = {key: value for key, value in parts.items() if key in known}
    return own, {key: value for key, value in parts.items() if key not in known}


def read_fabric(path: str | os.PathLike[str], **parts: str) -> Fabric:
    """The fabric in a YAML file; `parts` as in `parse_fabric`.

    Raises
    ------
    ConfigError
        The file is no fabric; the message names line and field.
    FileError
        The file cannot be read.
    """
    document = Document.read(path)
    if "instances" in document.content and not {"family", "preset"} & document.content.keys():
        return read_graph(path, parts)
    return _fabric(document, document.content, (), parts)


def read_scenario(path: str | os.PathLike[str]) -> Scenario:
    """The comparison in a YAML file.

    Raises
    ------
    ConfigError
        The file is no scenario; the message names line and field.
    FileError
        The file, or a fabric file that it names, cannot be read.
    """
    document = Document.read(path)
    fields: dict[str, Any] = dict(vars(document.fields(_ScenarioFile)))
    if fields["root"] is None:
        fields["root"] = 0
    elif not registry.has_root(fields["collective"]):
        raise document.error(("root",), f"{fields['collective']} has no root; leave it out")
    fabric = fields.pop("fabric")
    if isinstance(fabric, list):
        listed = enumerate(fabric)
        machines = [_machine(document, one, ("fabric", place)) for place, one in listed]
    else:
        machines = [_machine(document, fabric, ("fabric",))]
    settings = given(fields)
    fields = {key: value for key, value in fields.items() if key not in NAMES}
    fabrics = to_fabrics(machines)
    if fields["demand"] is not None:
        fields |= _demanded(document, fields["demand"], fabrics[0].ranks)
    return Scenario(fabrics=fabrics, origin=document, settings=settings, **fields)


def _demanded(document: Document, demand: str, ranks: int) -> dict[str, Any]:
    """The demand, whose file lies beside the scenario, and the size that it gives."""
    if demands.names_file(demand):
        demand = str(document.path.parent / demand)
    try:
        _, size_bytes = demands.to_demand(demand, ranks)
    except OpticollError as error:
        raise document.error(("demand",), str(error)) from error
    has_size = size_bytes is not None and "sizes" not in document.content
    return {"demand": demand, **({"sizes": [size_bytes]} if has_size else {})}


def _machine(document: Document, fabric: str | dict[str, Any], place: Place) -> Fabric:
    """A fabric that is spelled, in a file of its own, or written in place."""
    if isinstance(fabric, dict):
        return _fabric(document, fabric, place)
    if is_yaml(fabric) or fabric.endswith(GRAPHS):
        return parse_fabric(str(document.path.parent / fabric))
    try:
        return Fabric(fabric)
    except OpticollError as error:
        raise document.error(place, str(error)) from error


def _is_whole(value: object) -> TypeGuard[int]:
    """Whether a value is a whole number, of Python or of NumPy; a truth value is none."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def _fabric(
    document: Document,
    fields: dict[str, Any],
    place: Place,
    parts: Mapping[str, str] = MappingProxyType({}),
) -> Fabric:
    """The part of a fabric that `family` or `preset` and options make."""
    names = [key for key in ("family", "preset") if key in fields]
    if len(names) != 1:
        problem = "is given twice, as `family` and as `preset`" if names else "is missing"
        raise ConfigError(
            f"{document.path}: the kind of fabric {problem}; "
            "write one of `family: wdm_ring` or `preset: optree_paper`"
        )
    (name,) = names
    kind = "fabrics" if name == "family" else "presets"
    known = [record["name"] for record in registry.records(kind)]
    chosen = registry.canonical(str(fields[name]), known)
    if chosen is None:
        hint = registry.nearest(str(fields[name]), known)
        raise document.error((*place, name), f"unknown {name} `{fields[name]}`{hint}")
    if chosen == "custom":
        return _custom(document, fields, name, place, parts)
    for key, value in fields.items():
        if not isinstance(value, (bool, int, float, str)):
            raise document.error((*place, key), "must be one value, such as `ranks: 16`")
    options = {key: str(value) for key, value in fields.items() if key != name}
    try:
        return _part(Fabric(chosen, **options), parts)
    except OpticollError as error:
        wrong = getattr(error, "option", None)
        raise document.error((*place, wrong if wrong in options else name), str(error)) from error


def _custom(
    document: Document,
    fields: dict[str, Any],
    name: str,
    place: Place,
    parts: Mapping[str, str],
) -> Fabric:
    """The fabric that ranks, switches and links make, here or in the file of a `graph`."""
    fields = {key: value for key, value in fields.items() if key != name}
    graph = fields.pop("graph", None)
    light = {key: str(fields.pop(key)) for key in network_graph.LIGHT if key in fields}
    try:
        if graph is None:
            own, others = _parts_of(parts, [key for key in parts if key not in fields])
            fabric = _part(network_graph.from_fields(fields | own, document.path.name), others)
        elif isinstance(graph, str) and graph.endswith(GRAPHS):
            fabric = read_graph(document.path.parent / graph, parts, **fields)
        else:
            problem = f"must be the name of a file that ends in {' or '.join(GRAPHS)}"
            raise network_graph.MisplacedError(("graph",), problem)
    except network_graph.MisplacedError as error:
        where = (*place, *error.place) if error.place else (*place, name)
        raise document.error(where, error.problem) from error
    network_graph.LIGHT_OF[fabric.spec] = network_graph.LIGHT_OF.get(fabric.spec, {}) | light
    return fabric


def _read_fabric_field(value: Any) -> Any:
    if value == [] or not isinstance(value, (str, dict, list)):
        raise ConfigError("must be a spelling, a file name, or fields such as `family:`")
    return value


def _listed(value: Any) -> Any:
    return value if isinstance(value, list) or value is None else [value]


def _read_algorithms(value: Any) -> Any:
    return split_algorithms(value) if isinstance(value, str) else value


def _read_sizes(value: Any) -> Any:
    return [size for one in _listed(value) or () for size in split_sizes(str(one))]


def _read_times(value: Any) -> Any:
    if isinstance(value, Iterable) and not isinstance(value, str):
        return [time for one in value for time in split_times(str(one))]
    return split_times(str(value))


def _read_setting(name: str, value: Any) -> str:
    check_settings(**given({name: text(value)}))
    return str(value)


@dataclass(frozen=True)
class _ScenarioFields:
    """The fields of a scenario file, but for the settings of simulators."""

    collective: Annotated[Text, collective_kind]
    fabric: Annotated[Any, _read_fabric_field]
    algorithms: Annotated[list[Annotated[str, text]], _read_algorithms] | None = None
    sizes: Annotated[list[int], _read_sizes] = field(default_factory=lambda: [4 * 2**20])
    ranks: Annotated[list[Annotated[int, whole(1, 2**63)]], _listed] | None = None
    wavelengths: Annotated[list[Annotated[int, whole(1, 2**63)]], _listed] | None = None
    reconfiguration: Annotated[list[str], _read_times] | None = None
    wavelength: Annotated[str, text] = "auto"
    root: Annotated[int, whole(0, 2**32)] | None = None
    demand: Annotated[str, text] | None = None


_ScenarioFile = make_dataclass(
    "_ScenarioFile",
    [(name, Annotated[str, partial(_read_setting, name)] | None, None) for name in NAMES],
    bases=(_ScenarioFields,),
    frozen=True,
)
