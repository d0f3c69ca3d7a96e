"""Points of a study, and the parameters with which each point calls the study's command.

A point is a dictionary of options. cyclopts reads the values of these options exactly as on the
command line, from the annotations of the command's parameter class. Therefore any option of any
command may be an axis. `fabric.ranks` is the option `ranks` in the specification of the `fabric`.

>>> options = {"collective": "all_gather", "fabric": "wdm_ring:ranks=8", "fabric.wavelengths": 2}
>>> whole = composed(options)
>>> whole["fabric"]
'wdm_ring:ranks=8,wavelengths=2'
>>> command_line("simulate", whole)
'opticoll simulate all_gather --fabric wdm_ring:ranks=8,wavelengths=2'
>>> parameters_of("simulate", whole).source
'all_gather'
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import sys
import typing
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache
from importlib import import_module
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

from opticoll.cli.command_line import (
    STUDY_NAMES,
    WITHOUT_EFFECT,
    Option,
    Value,
    as_text,
    line,
    options,
)
from opticoll.cli.runner import Command
from opticoll.errors import OpticollError, UsageError
from opticoll.formats.document import is_yaml
from opticoll.inputs import user_function
from opticoll.inputs.fabric_files import is_user_fabric, parse_fabric, to_medium
from opticoll.inputs.values import split_algorithms
from opticoll.names import nearest
from opticoll.study.build_digest import build
from opticoll.study.document import Study
from opticoll.study.expression import RATE, SIZE, TIME, Expression, Quantity


@dataclass(frozen=True)
class Point:
    """Point of a study: its index, its options, and the key of its result in the store."""

    number: int
    replication: int
    axes: dict[str, Value]
    options: dict[str, Value]
    key: str
    shares: str
    """Key of the point's plan; all points with this key share the plan."""
    given: dict[str, Value]
    """Options in which keys such as `fabric.ranks` are still separate from `fabric`."""


def command_of(name: str) -> Command[Any, Any]:
    """Returns the record of a command, and imports its module on first use."""
    record: Command[Any, Any] = import_module(f"opticoll.commands.{name}").COMMAND
    return record


def options_of(command: str) -> dict[str, Option]:
    """Returns the options of a command by their names in studies."""
    return options(command_of(command).parameters)


def parameters_of(command: str, options: Mapping[str, Value]) -> Any:
    """Converts options to the parameters of a command.

    Raises
    ------
    OpticollError
        An option is unknown or missing, or a value is invalid.
    """
    options_by_name, kind = options_of(command), command_of(command).parameters
    ungrouped: dict[str, Any] = {}
    grouped: dict[str, dict[str, Any]] = {}
    for name, value in options.items():
        if name not in options_by_name:
            near = nearest(name, options_by_name)
            raise UsageError(f"`{command}` has no option `{name}`{near}")
        option = options_by_name[name]
        place = ungrouped if option.group is None else grouped.setdefault(option.group, {})
        place[option.field] = option.value(value)
    for field in dataclasses.fields(kind):
        if field.name in grouped:
            group = typing.cast("Any", field.default)
            ungrouped[field.name] = dataclasses.replace(group, **grouped[field.name])
        no_default = field.default is dataclasses.MISSING
        if (
            field.name not in ungrouped
            and no_default
            and field.default_factory is dataclasses.MISSING
        ):
            raise UsageError(
                f"`{command}` needs the option `{STUDY_NAMES.get(field.name, field.name)}`"
            )
    return kind(**ungrouped)


def composed(options: Mapping[str, Value]) -> dict[str, Value]:
    """Returns the options; moves keys such as `fabric.ranks` into the specifications."""
    whole = {name: value for name, value in options.items() if "." not in name}
    for name, value in options.items():
        place, dot, key = name.partition(".")
        if not dot:
            continue
        if not isinstance(base := whole.get(place), str):
            raise UsageError(f"`{name}` needs a `{place}`, such as `{place}: name`")
        whole[place] = with_option(base, key, as_text(value))
    return whole


def with_option(specification: str, key: str, value: str) -> str:
    """Returns a specification `name:key=value,...` with an option added or replaced."""
    if is_yaml(specification):
        specification = to_medium(specification)
    name, _, stated = specification.partition(":")
    parts: list[str] = []
    for part in stated.split(",") if stated else []:
        if "=" in part or not parts:
            parts.append(part)
        else:
            parts[-1] += f",{part}"
    names = [part.partition("=")[0].strip().replace("-", "_") for part in parts]
    if key in names:
        parts[names.index(key)] = f"{key}={value}"
    else:
        parts.append(f"{key}={value}")
    return f"{name}:{','.join(parts)}"


def command_line(command: str, options: Mapping[str, Value]) -> str:
    """Returns a point's command line, quoted for a shell."""
    return line(command, command_of(command).parameters, options)


def points(study: Study) -> list[Point]:
    """Returns the points of a study in order.

    A condition does not exclude a point that lacks one of the condition's names. A derived option
    is not added to a point that lacks one of the names in the option's expression.

    Raises
    ------
    UsageError
        A condition or a derived value uses a name that no point has, or no point is left.
    """
    for cached in (_digest, _with_content, _spelled, _module_digest):
        cached.cache_clear()
    all_points: list[Point] = []
    used_names: set[str] = set()
    for stated, replication in study.settings():
        point = finished(study, stated, len(all_points), replication, used_names)
        if point is not None:
            all_points.append(point)
    if study.optimise is None or study.optimise.break_even is None:
        for expression in [*study.where, *study.derive.values()]:
            for name in expression.names:
                if name not in used_names:
                    raise UsageError(f"`{expression.text}`: no point has a `{name}`")
    if not all_points:
        raise UsageError("the conditions of the study leave no point")
    return all_points


def finished(
    study: Study, stated: dict[str, Value], number: int, replication: int, used_names: set[str]
) -> Point | None:
    """Adds derived options, and returns the point; None if a condition excludes the point.

    `used_names` collects the names that have a value in an expression.
    """
    scope = Scope(stated, used_names)
    for name, expression in study.derive.items():
        with suppress(KeyError):
            stated[name] = as_text(expression.value(scope))
    if not all(_concerns(condition, scope) for condition in study.where):
        return None
    options = composed(stated)
    key, shares = key_of(study.command, options), _shares(study.command, options)
    shown = {name: stated[name] for name in study.axes if name in stated}
    return Point(number, replication, shown, options, key, shares, stated)


def _concerns(condition: Expression, scope: Scope) -> bool:
    """Returns whether a point satisfies a condition; True if the condition does not apply."""
    try:
        return condition.holds(scope)
    except KeyError:
        return True


class Scope:
    """Values of names in expressions: options, options in specifications, and facts of the fabric.

    `used_names` collects the names that have a value.
    """

    def __init__(self, options: dict[str, Value], used_names: set[str]) -> None:
        self._options, self._known = options, used_names

    def __call__(self, name: str) -> Any:
        value = self._value(name)
        self._known.add(name)
        return value

    def _value(self, name: str) -> Any:
        if name in self._options:
            return self._options[name]
        short = [
            option_name for option_name in self._options if option_name.partition(".")[2] == name
        ]
        if len(short) == 1:
            return self._options[short[0]]
        fabric = composed(self._options).get("fabric", "")
        return _fabric_values(as_text(fabric))[name.removeprefix("fabric.")]


@lru_cache(maxsize=4096)
def _fabric_values(specification: str) -> dict[str, Any]:
    """Returns a fabric's options, ranks and family; for an incomplete fabric, only the options."""
    try:
        fabric = parse_fabric(specification)
    except OpticollError:
        stated = specification.partition(":")[2]
        pairs = (part.partition("=") for part in stated.split(","))
        return {key: value for key, equals, value in pairs if equals}
    options = {
        name: Quantity(option["value"] * _UNITS[option["unit"]][0], _UNITS[option["unit"]][1])
        if option["unit"] in _UNITS and isinstance(option["value"], int)
        else option["value"]
        for name, option in fabric.options.items()
    }
    return {**options, "ranks": fabric.ranks, "family": fabric.family}


_UNITS = {
    "bit/s": (Fraction(1, 8), RATE),
    "ps": (Fraction(1, 10**12), TIME),
    "B": (Fraction(1), SIZE),
}
"""Units of fabric options: their values in bytes and seconds, and the exponents of both."""


def key_of(command: str, options: Mapping[str, Value]) -> str:
    """Returns the key of a task: a digest of all inputs that can change its result.

    Fabrics are written with all options. The digest covers the content of files and user
    algorithms.
    """
    task = {
        name: [_complete(name, item) for item in (value if isinstance(value, list) else [value])]
        for name, value in options.items()
        if name not in WITHOUT_EFFECT
    }
    text = json.dumps([build(), command, task], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _complete(name: str, value: Any) -> str:
    text = as_text(value)
    if name == "fabric":
        return _spelled(text)
    if name in ("algorithm", "algorithms"):
        with suppress(UsageError):
            return ",".join(map(_algorithm, split_algorithms(text)))
    return _algorithm(text) if name == "cost" else _with_content(text)


def _algorithm(text: str) -> str:
    """Appends a digest to a value that is a user's function or a file, such as that of a plan."""
    if user_function.is_named(text):
        return f"{text} {_module_digest(text.partition(':')[0])}"
    return _with_content(text)


@lru_cache(maxsize=4096)
def _with_content(text: str) -> str:
    """Appends a digest of the file's content to a value that may be the name of a file."""
    return f"{text} {_digest(text)}" if os.sep in text or Path(text).suffix else text


@lru_cache(maxsize=4096)
def _spelled(text: str) -> str:
    """Returns the complete specification of a fabric, or the text and a digest of its file.

    For a user's function, the digest of its module is added: Python may still hold the module as it
    was before the user changed it, but worker processes import the new one.
    """
    try:
        spec = parse_fabric(text).spec
        return f"{spec} {_module_digest(text.partition(':')[0])}" if is_user_fabric(text) else spec
    except OpticollError:
        return f"{text} {_digest(text)}"


@cache
def _module_digest(module: str) -> str:
    """Returns a digest of a module's source, or an empty text if the module is not found.

    Neither the module nor its packages are imported; only their folders are searched.
    """
    places, origin = [os.getcwd(), *sys.path], None
    for part in module.split("."):
        spec = PathFinder.find_spec(part, places)
        if spec is None:
            return ""
        places, origin = list(spec.submodule_search_locations or ()), spec.origin
    return "" if origin is None else _digest(origin)


@cache
def _digest(path: str) -> str:
    """Returns a digest of a file, or an empty text if the file cannot be read."""
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()[:32]
    except (OSError, ValueError):
        return ""


def _shares(command: str, options: Mapping[str, Value]) -> str:
    """Returns the key of a point's plan; all points with this key share the plan.

    The key is empty if points of the command share no plans, or if the options are invalid.
    """
    record = command_of(command)
    if record.cache_key is None:
        return ""
    try:
        return repr(record.cache_key(parameters_of(command, options)))
    except OpticollError:
        return ""
