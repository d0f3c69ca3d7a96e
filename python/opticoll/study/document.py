"""Studies as users write them: a YAML file with the points that a command computes.

    study: wavelengths
    command: simulate
    options: {collective: all_reduce, policy: on_change}
    grid:
      fabric.wavelengths: [8, 16, 32, 64]
      size: {from: 1KiB, to: 1GiB, times: 4}
    points:
      - {fabric: "wdm_ring:ranks=64", algorithm: [ring, auto]}
      - {fabric: "wdm_ring:ranks=128", algorithm: auto}
    where: ranks >= 2 * wavelengths
    derive: {fabric.rate: 25.6Tb/s / (2 * wavelengths)}

The study combines each entry of `points` with each row of `zip` and each combination of values in
`grid`. Error messages name the file, the line and the field.
"""

from __future__ import annotations

import itertools
import operator
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

from opticoll import formats
from opticoll.cli.command_line import Value, options
from opticoll.errors import ConfigError
from opticoll.formats.document import Document, Place, text, whole
from opticoll.inputs.fabric_files import is_user_fabric, split_options
from opticoll.inputs.values import up_to
from opticoll.names import canonical, nearest
from opticoll.outputs.records import record_rows
from opticoll.study.expression import Expression, quantity
from opticoll.study.search import Optimise, check, renamed

MAX_POINTS = 10**6
MAX_VALUES = 10**4
MAX_REPLICATIONS = 10**5


def _fields(value: object) -> dict[str, Any]:
    """Returns options by name, with hyphens in names replaced by underscores."""
    if not isinstance(value, dict):
        raise ConfigError(f"`{value}` is not a set of options, such as {{size: 4MiB}}")
    return {name.replace("-", "_"): option_value for name, option_value in value.items()}


def _several(value: object) -> dict[str, list[Value]]:
    """Returns the axes of a study: the list of values of each option."""
    return {name: axis(axis_value) for name, axis_value in _fields(value).items()}


def axis(value: object) -> list[Value]:
    """Returns the values of an axis.

    An axis is a list, a range such as `{from: 8, to: 64, times: 2}`, or one value.

    Raises
    ------
    ConfigError
        The list is empty, or the range never ends.
    """
    if isinstance(value, dict):
        return _range(value)
    values: list[Any] = value if isinstance(value, list) else [value]
    if not values:
        raise ConfigError("give a list of values, of at least one")
    for item in values:
        if item is None or isinstance(item, dict):
            raise ConfigError(f"`{item}` is not a value of an option")
    return values


def _range(fields: dict[str, Any]) -> list[Value]:
    """Returns the values of a range, which grow by a factor (`times`) or by an amount (`plus`).

    The end of the range is always the last value, even if the last step is shorter.
    """
    ways = [name for name in ("times", "plus") if name in fields]
    if len(ways) != 1 or set(fields) != {"from", "to", *ways}:
        raise ConfigError(
            "a range is {from: 1KiB, to: 1GiB, times: 4} or {from: 0, to: 8, plus: 2}"
        )
    first, last, step = (quantity(fields[name]) for name in ("from", "to", ways[0]))
    if first is None or last is None or step is None or first.unit != last.unit:
        raise ConfigError("the ends of a range are numbers of the same unit, such as 1KiB and 1GiB")
    if ways == ["times"]:
        ends = step.unit == (0, 0) and step.number > 1 and first.number > 0
    else:
        ends = step.unit == first.unit and step.number > 0
    if not ends:
        raise ConfigError("a range grows: by times more than 1 from above 0, or by plus above 0")
    if first.number > last.number:
        raise ConfigError("the end of a range must not be below its start")
    grow, by = (operator.mul if ways == ["times"] else operator.add), step.number
    values: list[Value] = []
    for number in up_to(first.number, last.number, lambda value: grow(value, by)):
        if len(values) == MAX_VALUES:
            raise ConfigError(f"a range has at most {MAX_VALUES} values")
        text = str(replace(first, number=number))
        values.append(int(text) if text.isdigit() else text)
    return values


def _sets(value: object) -> list[dict[str, list[Value]]]:
    if not isinstance(value, list) or not value:
        raise ConfigError("give a list of sets of options, such as [{fabric: terarack}]")
    return [_several(item) for item in value]


def _zipped(value: object) -> dict[str, list[Value]]:
    axes = _several(value)
    if len({len(values) for values in axes.values()}) > 1:
        lengths = ", ".join(f"{name} has {len(values)}" for name, values in axes.items())
        raise ConfigError(f"zipped axes have the same number of values: {lengths}")
    return axes


def _conditions(value: object) -> list[Expression]:
    values = value if isinstance(value, list) else [value]
    return [Expression(text(item)) for item in values]


def _derived(value: object) -> dict[str, Expression]:
    return {name: Expression(str(text_value)) for name, text_value in _fields(value).items()}


def _replications(value: object) -> tuple[str, int]:
    """Returns the name of the option that sets the seed, and the number of replications."""
    named = value if isinstance(value, dict) else {"seed": value}
    if len(named) != 1:
        raise ConfigError("replications are a number, or one such as {routing_seed: 10}")
    ((name, number),) = named.items()
    return name.replace("-", "_"), whole(1, MAX_REPLICATIONS)(number)


def _command(value: object) -> str:
    # The module of commands imports studies, so it is imported here, by name.
    commands = import_module("opticoll.commands").COMMANDS

    name = canonical(text(value), commands)
    if name is None or name in WITHOUT_POINTS:
        with_points = [command for command in commands if command not in WITHOUT_POINTS]
        raise ConfigError(f"`{value}` is not a command with points: {', '.join(with_points)}")
    return name


WITHOUT_POINTS = ("sweep", "results", "report", "reproduce", "list")
"""Commands that compute no points."""


@dataclass(frozen=True)
class Study:
    """Study: a command, and the options of its points."""

    study: Annotated[str, text]
    command: Annotated[str, _command]
    options: Annotated[dict[str, Any], _fields] = field(default_factory=dict)
    grid: Annotated[dict[str, list[Value]], _several] = field(default_factory=dict)
    zip: Annotated[dict[str, list[Value]], _zipped] = field(default_factory=dict)
    points: Annotated[list[dict[str, list[Value]]], _sets] = field(default_factory=lambda: [{}])
    where: Annotated[list[Expression], _conditions] = field(default_factory=list)
    derive: Annotated[dict[str, Expression], _derived] = field(default_factory=dict)
    replications: Annotated[tuple[str, int] | None, _replications] = None
    optimise: Annotated[Optimise, renamed] | None = None

    @property
    def axes(self) -> list[str]:
        """Names of all options that differ between points, including derived options."""
        listed = [name for point in self.points for name in point]
        wanted = self.optimise
        searched = [] if wanted is None else [*wanted.of, *wanted.against]
        axis = [wanted.break_even] if wanted is not None and wanted.break_even else []
        every = [*listed, *self.zip, *self.grid, *searched, *axis, *self.derive]
        return list(dict.fromkeys(every))

    def settings(self) -> Iterator[tuple[dict[str, Value], int]]:
        """Yields each combination of options with the index of its replication."""
        rows = list(zip(*self.zip.values(), strict=True)) if self.zip else [()]
        seed, replications = self.replications or ("", 1)
        for listed in self.points:
            for values in itertools.product(*listed.values()):
                for row in rows:
                    for cell in itertools.product(*self.grid.values()):
                        chosen = (
                            *zip(listed, values, strict=True),
                            *zip(self.zip, row, strict=True),
                            *zip(self.grid, cell, strict=True),
                        )
                        for replication in range(replications):
                            seeded = {seed: replication} if seed else {}
                            yield {**self.options, **dict(chosen), **seeded}, replication


def read(path: str | os.PathLike[str]) -> Study:
    """Reads a study from a YAML file; its paths may be relative to the folder of the file.

    Raises
    ------
    ConfigError
        The file is not a study; the message names line and field.
    FileError
        The file cannot be read.
    """
    document = Document.read(path)
    study = document.fields(Study)
    _check_axes(study, document)
    if study.optimise is not None:
        try:
            check(study.optimise)
        except ConfigError as error:
            raise document.error(("optimise",), str(error)) from error
    folder = Path(path).parent
    options = {name: _beside(folder, value) for name, value in study.options.items()}
    study = replace(
        study,
        options=options,
        grid=_all_beside(folder, study.grid),
        zip=_all_beside(folder, study.zip),
        points=[_all_beside(folder, point) for point in study.points],
    )
    _check_names(study, document)
    return study


def _parts(study: Study) -> Iterator[tuple[Place, Mapping[str, Any]]]:
    """Yields each set of options and axes of a study, with its place in the file."""
    for part in ("options", "zip", "grid", "derive"):
        yield (part,), getattr(study, part)
    yield from ((("points", number), point) for number, point in enumerate(study.points))


def _check_names(study: Study, document: Document) -> None:
    """Raises an error for an option that no point can have, and for a file that is not there."""
    command = import_module(f"opticoll.commands.{study.command}").COMMAND
    known = options(command.parameters)
    # The options of a user's function are the arguments of the function.
    of_fabrics = None if any(map(is_user_fabric, _fabrics(study))) else _fabric_options()
    for place, named in _parts(study):
        for name, value in named.items():
            option, dot, key = name.partition(".")
            where = (*place, name)
            if option not in known:
                problem = f"`{study.command}` has no option `{option}`{nearest(option, known)}"
                raise document.error(where, problem)
            if option != "fabric":
                continue
            if dot and of_fabrics is not None and key not in of_fabrics:
                hint = nearest(key, of_fabrics, "; see `opticoll list fabrics`")
                raise document.error(where, f"no fabric has an option `{key}`{hint}")
            for fabric in [] if dot else _texts(value):
                file = split_options(fabric)[0]
                if file is not None and not os.path.exists(file):
                    raise document.error(where, f"there is no file `{file}`")


def _fabrics(study: Study) -> list[str]:
    """Returns the fabrics that the options and axes of a study name."""
    values = [named["fabric"] for _, named in _parts(study) if "fabric" in named]
    return [text for value in values for text in _texts(value)]


def _texts(value: Any) -> list[str]:
    return [str(item) for item in (value if isinstance(value, list) else [value])]


def _fabric_options() -> set[str]:
    """Returns the options of all fabrics, and the fields that files of graphs have besides."""
    of_records = {option.name for record in record_rows("fabrics") for option in record.options}
    return of_records.union(*(form.beside for form in formats.formats_of("fabric")))


def _check_axes(study: Study, document: Document) -> None:
    """Raises an error for an option that is stated twice, and for more than `MAX_POINTS` points."""
    place_of: dict[str, Place] = {}
    parts: list[tuple[str, Mapping[str, Any]]] = [
        *(("options", study.options), ("zip", study.zip), ("grid", study.grid)),
        ("derive", study.derive),
    ]
    for part, names in parts:
        for name in names:
            if name in place_of:
                raise document.error((part, name), f"`{name}` is given in {place_of[name][0]} too")
            place_of[name] = (part, name)
    seed, replications = study.replications or ("", 1)
    if seed in place_of:
        raise document.error(("replications",), f"`{seed}` is given in {place_of[seed][0]} too")
    total = replications * len(next(iter(study.zip.values()), [None]))
    total *= _product(study.grid) * sum(_product(point) for point in study.points)
    if total > MAX_POINTS:
        raise document.error(("grid",), f"there are {total} combinations, more than {MAX_POINTS}")


def _product(axes: Mapping[str, list[Value]]) -> int:
    total = 1
    for values in axes.values():
        total *= len(values)
    return total


def _all_beside(folder: Path, axes: Mapping[str, list[Value]]) -> dict[str, list[Value]]:
    return {name: [_beside(folder, value) for value in values] for name, values in axes.items()}


def _beside(folder: Path, value: Any) -> Any:
    """Returns the path of `value` in the study's folder, or only `value` if no file is there.

    Options may follow the name of a fabric's file.
    """
    if isinstance(value, list):
        return [_beside(folder, item) for item in value]
    if not isinstance(value, str):
        return value
    file = split_options(value)[0] or value
    if Path(file).suffix == "":
        return value
    try:
        in_folder = not os.path.exists(file) and (folder / file).is_file()
        return str(folder / value) if in_folder else value
    except (OSError, ValueError):
        return value
