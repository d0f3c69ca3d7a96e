"""From the words of a command line to values: stricter than cyclopts, and with our own messages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, get_args

from cyclopts import Group, Parameter, Token

from opticoll import errors

MOST_SEED = 2**32 - 1

Converter = Callable[[Any, Sequence[Token]], Any]


def whole(most: int | None = None, least: int | None = None) -> Converter:
    """A converter to a whole number within bounds; `1.5` and `0x3` are none."""

    def convert(_: Any, tokens: Sequence[Token]) -> int:
        from opticoll.config import whole_number

        (token,) = tokens
        return whole_number(str(token.keyword), token.value, least, most)

    return convert


def count(help: str, most: int = 2**20, group: Group | None = None) -> Parameter:
    """An option that is a whole number above 0; in a group of help that is not the usual one."""
    # A group of None would leave the option out of all help.
    shown: dict[str, Any] = {} if group is None else {"group": group}
    return Parameter(
        help=help, converter=whole(least=1, most=most), allow_leading_hyphen=True, **shown
    )


def text(_: Any, tokens: Sequence[Token]) -> str:
    """A converter to the text as it is, for what may be something else in Python."""
    (token,) = tokens
    return token.value


def listed(option: str, values: str | None) -> list[str]:
    """The values of an option with commas between them; one empty text where it is not given."""
    parts = [part.strip() for part in (values or "").split(",")]
    if values is not None and not all(parts):
        raise errors.UsageError(f"{option}: `{values}` has nothing between two commas")
    return parts


def choice(kind: Any, tokens: Sequence[Token]) -> str:
    """A converter to one of the values of a `Literal`, whatever its case and hyphens."""
    from opticoll.registry import canonical, nearest

    (token,) = tokens
    known = literals(kind)
    found = canonical(token.value, known)
    if found is None:
        raise errors.UsageError(
            f"{token.keyword}: there is no `{token.value}`{nearest(token.value, known)}"
        )
    return found


def path(_: Any, tokens: Sequence[Token]) -> Path:
    """A converter to a path that is not empty."""
    (token,) = tokens
    if not token.value:
        raise errors.UsageError(f"{token.keyword} is empty; give the name of a file")
    return Path(token.value)


def literals(kind: Any) -> list[str]:
    """The values of a `Literal`, also where it may be None besides."""
    return [
        value
        for part in get_args(kind)
        for value in ([part] if isinstance(part, str) else literals(part))
    ]
