"""Command lines that reproduce parameters: a command, its options and their values.

>>> from dataclasses import dataclass, field
>>> @dataclass(frozen=True, kw_only=True)
... class Squares:
...     most: str = field(kw_only=False)
...     sorted: bool = True
>>> line_of("squares", Squares("3", sorted=False))
'opticoll squares 3 --no-sorted'
"""

from __future__ import annotations

import dataclasses
import os
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, get_args, get_origin

from opticoll._core import Fabric
from opticoll.errors import UsageError

Value = bool | int | float | str | list[Any]
"""Value of an option in a study, a point or a command line."""

STUDY_NAMES = {"source": "collective"}
"""Names in studies of first arguments, by field; the field `source` may also be a plan file."""

WITHOUT_EFFECT = ("jobs",)
"""Options that do not change any row."""


@dataclass(frozen=True)
class Option:
    """Option of a command, with its name in studies and its flags on the command line."""

    name: str
    field: str
    group: str | None
    flag: str
    negative: str
    hint: Any
    reads: Callable[[Any, Any], Any] | None
    unsaid: bool = False
    """True if only Python code can set the option."""

    @cached_property
    def many(self) -> bool:
        """True if the option may be given several times."""
        return any(get_origin(part) is list for part in (self.hint, *get_args(self.hint)))

    def value(self, stated: Value) -> Any:
        """Converts a value to the type that the command requires.

        Raises OpticollError if the value cannot be converted.
        """
        from cyclopts import Token

        if self.hint is bool:
            if not isinstance(stated, bool):
                raise UsageError(f"{self.name}: `{stated}` is neither true nor false")
            return stated
        if self.many:
            return [as_text(item) for item in (stated if isinstance(stated, list) else [stated])]
        if isinstance(stated, list):
            raise UsageError(f"{self.name}: `{stated}` are several values; give one")
        if self.reads is None:
            return as_text(stated)
        return self.reads(self.hint, [Token(keyword=self.flag, value=as_text(stated))])


def as_text(value: Any) -> str:
    """Returns a value as the text that the command line accepts."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.0f}" if value.is_integer() and abs(value) < 2**63 else repr(value)
    return str(value)


def options(parameters: Any) -> dict[str, Option]:
    """Returns the options of a parameter class by their names in studies."""
    if parameters not in _OPTIONS:
        _OPTIONS[parameters] = {option.name: option for option in _options(parameters, None)}
    return _OPTIONS[parameters]


_OPTIONS: dict[Any, dict[str, Option]] = {}


def _options(kind: type, group: str | None) -> Iterator[Option]:
    from opticoll.cli.option_types import hints

    annotations = hints(kind)
    for field in dataclasses.fields(kind):
        if dataclasses.is_dataclass(field.default):
            yield from _options(type(field.default), field.name)
            continue
        hint: Any = annotations[field.name]
        remarks: tuple[Any, ...] = ()
        if get_origin(hint) is Annotated:
            hint, remarks = hint.__origin__, hint.__metadata__
        positional = not field.kw_only and group is None
        named = [name for remark in remarks for name in remark.name or ()]
        flag = named[0] if named else f"--{field.name.replace('_', '-')}"
        negative = [name for remark in remarks for name in remark.negative or ()]
        reads = [remark.converter for remark in remarks if remark.converter is not None]
        yield Option(
            name=STUDY_NAMES.get(field.name, field.name)
            if positional
            else flag[2:].replace("-", "_"),
            field=field.name,
            group=group,
            flag="" if positional else flag,
            negative=negative[0] if negative else f"--no-{flag[2:]}",
            hint=hint,
            reads=reads[0] if reads else None,
            unsaid=any(remark.parse is False for remark in remarks),
        )


def line(command: str, parameters: type, values: Mapping[str, Value]) -> str:
    """Returns a command line for a shell; `values` has the options' names in studies as keys."""
    by_name = options(parameters)
    places, words = [], []
    for name, value in values.items():
        option = by_name.get(name)
        if option is None:
            continue
        if option.hint is bool:
            words += [option.flag if value else option.negative]
            continue
        for item in value if isinstance(value, list) else [value]:
            # A value that begins with a hyphen would be read as an option if it were a separate
            # word.
            text = as_text(item)
            if not option.flag:
                places.append(text)
            elif text.startswith("-"):
                words.append(f"{option.flag}={text}")
            else:
                words += [option.flag, text]
    return shlex.join(["opticoll", command, *places, *words])


def words(command: str, places: Iterable[str], values: Mapping[str, object]) -> str:
    """Returns a command line with the option names that users write.

    Options with the value None are left out.

    >>> words("plan", ["all_gather"], {"step_overhead": "1us", "root": None})
    'opticoll plan all_gather --step-overhead 1us'
    """
    texts = {name: str(value) for name, value in values.items() if value is not None}
    named = [(f"--{name.replace('_', '-')}", value) for name, value in texts.items()]
    return shlex.join(["opticoll", command, *places, *(word for pair in named for word in pair)])


def _option_text(value: object) -> Any:
    """Returns a value as the command line accepts it; None if no text expresses the value."""
    if isinstance(value, Fabric):
        return value.spec
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    return value if isinstance(value, str | int | float) else None


def line_of(command: str, parameters: Any, changes: Mapping[str, Any] | None = None) -> str | None:
    """Returns the command line of the parameters after the changes; None if a value has no text.

    Options with default values are left out, and also options that do not change the rows.
    """
    stated: dict[str, Value] = {}
    for name, option in options(type(parameters)).items():
        holder = parameters if option.group is None else getattr(parameters, option.group)
        value = getattr(holder, option.field)
        if changes is not None and name in changes:
            value = changes[name]
        (field,) = [
            declared for declared in dataclasses.fields(holder) if declared.name == option.field
        ]
        if value is None or name in WITHOUT_EFFECT or value == field.default:
            continue
        several = isinstance(value, list)
        texts = [_option_text(item) for item in (value if several else [value])]
        if None in texts or option.unsaid:
            return None
        stated[name] = texts if several else texts[0]
    return line(command, type(parameters), stated)
