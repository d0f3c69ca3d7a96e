"""Text files of users, and YAML (1.2) with the lines on which its values stand.

Every error names the file and, where it can, line and field.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opticoll import registry
from opticoll.errors import ConfigError, FileError

if TYPE_CHECKING:
    from pydantic import ValidationError

__all__ = ["Document", "Place", "read_text"]

Place = tuple[str | int, ...]
"""Where in a file a value stands: keys and list positions, from the top."""


def read_text(path: Path, encoding: str = "utf-8") -> str:
    """The text of a file.

    Raises
    ------
    FileError
        It cannot be read.
    ConfigError
        It is no text.
    """
    try:
        return path.read_text(encoding=encoding)
    except FileNotFoundError as error:
        raise FileError(f"there is no file `{path}`") from error
    except OSError as error:
        raise FileError(f"cannot read `{path}`: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: byte {error.start} is no UTF-8 text") from error


@dataclass(frozen=True)
class Document:
    """A YAML file with the lines on which its values stand."""

    path: Path
    content: dict[str, Any]
    marked: Any

    @staticmethod
    def read(path: str | os.PathLike[str]) -> Document:
        from ruamel.yaml import YAML
        from ruamel.yaml.error import MarkedYAMLError, YAMLError

        path = Path(path)
        text = read_text(path)
        try:
            marked = YAML(typ="rt").load(text)
        except MarkedYAMLError as error:
            line = error.problem_mark.line + 1 if error.problem_mark else 1
            problem = str(error.problem or "it cannot be parsed").splitlines()[0]
            raise ConfigError(f"{path}, line {line}: this is no YAML: {problem}") from error
        except YAMLError as error:
            raise ConfigError(f"{path}: this is no YAML: {str(error).splitlines()[0]}") from error
        if not isinstance(marked, dict):
            raise ConfigError(f"{path}: expected fields such as `ranks: 16`, one on a line")
        return Document(path, _plain(marked), marked)

    def error(self, place: Place, problem: str) -> ConfigError:
        """The error for a value, with file, line and field."""
        field = ".".join(str(key) for key in place)
        return ConfigError(f"{self.path}, line {self._line(place)}, {field}: {problem}")

    def explain(self, error: ValidationError, fields: list[str]) -> ConfigError:
        """The first error that pydantic found, with file, line and field."""
        first = error.errors()[0]
        place: Place = first["loc"]
        if first["type"] == "extra_forbidden":
            return self.error(
                place, f"there is no such field{registry.nearest(str(place[0]), fields)}"
            )
        if first["type"] == "missing":
            return ConfigError(f"{self.path}: the field `{place[0]}` is missing")
        if first["type"] in _EXPECTED:
            return self.error(place, f"`{first['input']}` is no {_EXPECTED[first['type']]}")
        problem = first["msg"].removeprefix("Value error, ")
        return self.error(place, problem[0].lower() + problem[1:])

    def _line(self, place: Place) -> int:
        """The line of a value, or of the nearest thing around it that the file has."""
        node: Any = self.marked
        line = 1
        for key in place:
            try:
                places = node.lc
                position = places.item(key) if isinstance(node, list) else places.key(key)
                node = node[key]
            except (AttributeError, KeyError, IndexError, TypeError):
                break
            line = position[0] + 1
        return line


# What pydantic misses, in the words of this file.
_EXPECTED = {
    "string_type": "text",
    "int_type": "whole number",
    "int_from_float": "whole number",
    "int_parsing": "whole number",
    "list_type": "list",
    "dict_type": "set of fields",
}


def _plain(node: Any) -> Any:
    """The same values as plain Python ones, for messages and for pydantic."""
    if isinstance(node, Mapping):
        return {str(key): _plain(value) for key, value in node.items()}
    if isinstance(node, list):
        return [_plain(value) for value in node]
    for kind in (bool, int, float, str):
        if isinstance(node, kind):
            return kind(node)
    return node
