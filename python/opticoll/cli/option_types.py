"""Declarations of options, and the conversion of command-line words to values.

The conversion is stricter than cyclopts' own, and has clearer messages.

>>> from dataclasses import dataclass
>>> @dataclass(frozen=True, kw_only=True)
... class Squares:
...     most: int = argument("Greatest number")
...     order: Literal["up", "down"] = option("Order: up or down", default="up")
>>> list(hints(Squares)), Squares(9).order
(['most', 'order'], 'up')
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import MISSING, field, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from cyclopts import Group, Parameter, Token

from opticoll import errors

MAX_SEED = 2**32 - 1

Converter = Callable[[Any, Sequence[Token]], Any]


def whole(most: int | None = None, least: int | None = None) -> Converter:
    """Returns a converter to whole numbers from `least` to `most`; it refuses `1.5` and `0x3`."""

    def convert(_: Any, tokens: Sequence[Token]) -> int:
        from opticoll.inputs.values import whole_number

        (token,) = tokens
        return whole_number(str(token.keyword), token.value, least, most)

    return convert


def option(help: str | None = None, *, default: Any = None, **about: Any) -> Any:
    """Declares an option, as a field of a parameter class.

    `about` are further arguments of cyclopts' `Parameter`, such as `group` or `converter`.
    """
    return field(default=default, metadata={"option": Parameter(help=help, **about)})


def argument(help: str, *, default: Any = MISSING, **about: Any) -> Any:
    """Declares a positional argument, as a field of a parameter class."""
    return field(default=default, kw_only=False, metadata={"option": Parameter(help=help, **about)})


def count(
    help: str, most: int = 2**20, group: Group | None = None, *, default: Any = None, **about: Any
) -> Any:
    """Declares an option whose value is a whole number from 1 to `most`."""
    if group is not None:  # cyclopts would hide an option whose group is None
        about["group"] = group
    reads = whole(least=1, most=most)
    return option(help, default=default, converter=reads, allow_leading_hyphen=True, **about)


def hints(kind: type) -> dict[str, Any]:
    """Returns the types of a parameter class's fields, with annotations for cyclopts."""
    types = get_type_hints(kind, include_extras=True)
    for declared in fields(kind):
        if is_dataclass(declared.default):
            types[declared.name] = Annotated[type(declared.default), Parameter(name="*")]
        elif parameter := declared.metadata.get("option"):
            types[declared.name] = Annotated[
                types[declared.name], _type_conversion(types[declared.name]), parameter
            ]
    return types


def _type_conversion(kind: Any) -> Parameter:
    """Returns the parameter that converts words to a type.

    Options such as `--no-name` exist only if a declaration adds them.
    """
    parts = [kind, *get_args(kind)]
    if any(get_origin(part) is Literal for part in parts):
        return Parameter(converter=choice)
    if Path in parts:
        return Parameter(converter=path)
    return Parameter(negative=())


def text(_: Any, tokens: Sequence[Token]) -> str:
    """Returns a word unchanged, for options that accept other objects in Python."""
    (token,) = tokens
    return token.value


def listed(option: str, values: str | None) -> list[str]:
    """Splits the values of an option at commas; returns one empty text if the option is missing."""
    parts = [part.strip() for part in (values or "").split(",")]
    if values is not None and not all(parts):
        raise errors.UsageError(f"{option}: `{values}` has nothing between two commas")
    return parts


def choice(kind: Any, tokens: Sequence[Token]) -> str:
    """Converts a word to a value of a `Literal`, ignoring case and hyphens."""
    from opticoll.names import resolve

    (token,) = tokens
    return resolve(token.value, literals(kind), f"{token.keyword}: there is no")


def path(_: Any, tokens: Sequence[Token]) -> Path:
    """Converts a word to a path; an empty word is an error."""
    (token,) = tokens
    if not token.value:
        raise errors.UsageError(f"{token.keyword} is empty; give the name of a file")
    return Path(token.value)


def literals(kind: Any) -> list[str]:
    """Returns the values of a `Literal`, or of `Literal[...] | None`."""
    return [
        value
        for part in get_args(kind)
        for value in ([part] if isinstance(part, str) else literals(part))
    ]
