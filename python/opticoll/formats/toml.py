"""TOML files of users.

>>> import pathlib, tempfile
>>> from typing import NamedTuple
>>> class Ring(NamedTuple):
...     ranks: int
>>> path = pathlib.Path(tempfile.mkdtemp()) / "ring.toml"
>>> _ = path.write_text("ranks = 8")
>>> read_toml(path, Ring)
Ring(ranks=8)
"""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path
from typing import Any, TypeVar

from opticoll.errors import ConfigError
from opticoll.formats.content import read_text
from opticoll.formats.document import MAX_DEPTH, Document, Place, read_fields

T = TypeVar("T")

MAX_BYTES = 2**20
"""Maximum size of a TOML file in bytes."""

_NAME = r"""(?:[A-Za-z0-9_-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')"""

LONG_KEY = re.compile(rf"(?<![A-Za-z0-9_-]){_NAME}(?:[ \t]*+\.[ \t]*+{_NAME}){{{MAX_DEPTH}}}")
"""A key of more than `MAX_DEPTH` names; tomllib needs memory for each beginning of a key."""


def read_yaml_or_toml(path: str | os.PathLike[str], kind: type[T]) -> T:
    """Converts the fields of a TOML file (ending `.toml`) or YAML file to an object of `kind`.

    Raises
    ------
    FileError
        The file cannot be read.
    ConfigError
        The file is invalid, or a field is missing, unknown or invalid; the error names file and
        field, and in YAML the line.
    """
    if is_toml(os.fspath(path)):
        return read_toml(path, kind)
    return Document.read(path).fields(kind)


def is_toml(text: str) -> bool:
    """Returns whether a file's name has the ending of TOML files."""
    return text.endswith(".toml")


def read_toml(path: str | os.PathLike[str], kind: type[T]) -> T:
    """Converts the fields of a TOML file to an object of class `kind` (see `read_fields`).

    Raises
    ------
    FileError
        The file cannot be read.
    ConfigError
        The file is not valid TOML, or a field is missing, unknown or invalid; the error names file
        and field.
    """
    path = Path(path)

    def refuse(place: Place, problem: str) -> ConfigError:
        where = [str(path), *([".".join(map(str, place))] if place else [])]
        return ConfigError(f"{', '.join(where)}: {problem}")

    text = read_text(path, "TOML file", most=MAX_BYTES)
    too_deep = f"nested more than {MAX_DEPTH} deep"
    if LONG_KEY.search(text):
        raise refuse((), too_deep)
    try:
        fields = tomllib.loads(text)
    except RecursionError as error:
        raise refuse((), too_deep) from error
    except ValueError as error:
        raise refuse((), f"this is not valid TOML: {error}") from error
    # Errors print values, so all values print, and none is too deep for that.
    inside: list[tuple[Any, int]] = [(fields, 0)]
    while inside:
        value, depth = inside.pop()
        if depth > MAX_DEPTH:
            raise refuse((), too_deep)
        if isinstance(value, dict):
            inside += [(one, depth + 1) for pair in value.items() for one in pair]
        elif isinstance(value, list):
            inside += [(one, depth + 1) for one in value]
        elif not str(value).isprintable():
            raise refuse((), f"`{value}` holds characters that do not print")
    return read_fields(kind, fields, refuse)
