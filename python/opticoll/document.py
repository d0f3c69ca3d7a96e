"""Text files of users, and YAML (1.2) with the lines on which its values stand.

Every error names the file and, where it can, line and field.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opticoll import registry
from opticoll.errors import ConfigError, FileError

if TYPE_CHECKING:
    from pydantic import ValidationError
    from ruamel.yaml.nodes import MappingNode, Node

Place = tuple[str | int, ...]
"""Where in a file a value stands: keys and list positions, from the top."""

MOST_BYTES = 8 * 2**20
"""Bytes of a YAML file: it is read at some 200 kB a second."""

MOST_VALUES = 10**6
"""Values that a YAML file stands for, those that it repeats by name (`*name`) counted each time."""

MOST_DEPTH = 64
"""Lists and sets of fields inside one another."""


def read_text(path: Path, encoding: str = "utf-8", most: int | None = None) -> str:
    """The text of a file of at most so many bytes.

    Raises
    ------
    FileError
        It cannot be read, or is larger.
    ConfigError
        It is no text.
    """
    try:
        with path.open("rb") as file:
            content = file.read(-1 if most is None else most + 1)
        if most is not None and len(content) > most:
            raise FileError(f"`{path}` is too large: it holds more than {most} bytes")
        return content.decode(encoding)
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
    root: MappingNode

    @staticmethod
    def read(path: str | os.PathLike[str]) -> Document:
        from ruamel.yaml.nodes import MappingNode

        path = Path(path)
        root = _compose(path, read_text(path, most=MOST_BYTES))
        if not isinstance(root, MappingNode):
            raise ConfigError(f"{path}: expected fields such as `ranks: 16`, one on a line")
        return Document(path, _Reading(path).value(root, ()), root)

    def error(self, place: Place, problem: str) -> ConfigError:
        """The error for a value, with file, line and field."""
        field = ".".join(str(key) for key in place)
        return ConfigError(f"{self.path}, line {self._line(place)}, {field}: {problem}")

    def check_fields(self, fields: Iterable[str], known: Sequence[str], place: Place = ()) -> None:
        """Refuse a field that there is not."""
        for field in fields:
            if field not in known:
                hint = registry.nearest(str(field), known)
                raise self.error((*place, field), f"there is no such field{hint}")

    def filled(self, field: str) -> list[Any]:
        """The list in a field, of which there is at least one entry."""
        listed = self.content.get(field)
        if not isinstance(listed, list) or not listed:
            raise self.error((field,), f"give a list of {field}")
        return listed

    def explain(self, error: ValidationError, fields: list[str]) -> ConfigError:
        """The first error that pydantic found, with file, line and field."""
        first = error.errors()[0]
        place: Place = first["loc"]
        if first["type"] == "extra_forbidden":
            hint = registry.nearest(str(place[0]), fields)
            return self.error(place, f"there is no such field{hint}")
        if first["type"] == "missing":
            return ConfigError(f"{self.path}: the field `{place[0]}` is missing")
        if first["type"] in _EXPECTED:
            return self.error(place, f"`{first['input']}` is no {_EXPECTED[first['type']]}")
        problem = first["msg"].removeprefix("Value error, ")
        return self.error(place, problem[0].lower() + problem[1:])

    def _line(self, place: Place) -> int:
        """The line of a value, or of the nearest thing around it that the file has."""
        node: Any = self.root
        line = 1
        for key in place:
            beside = node.value if isinstance(node.value, list) else []
            if isinstance(key, int):
                values = [(value, value) for value in beside[key : key + 1]]
            else:
                values = [pair for pair in beside if isinstance(pair, tuple)]
                values = [pair for pair in values if pair[0].value == key]
            if not values:
                break
            name, node = values[0]
            line = name.start_mark.line + 1
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


def _compose(path: Path, text: str) -> Node | None:
    """The tree that a text describes: nothing in it is made or computed."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    parser = YAML(typ="safe", pure=True)
    parser.composer.warn_double_anchors = False
    try:
        root: Node | None = parser.compose(text)
        return root
    except MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        problem = str(error.problem or "it cannot be parsed").splitlines()[0]
        raise ConfigError(f"{path}, line {line}: this is no YAML: {problem}") from error
    except YAMLError as error:
        raise ConfigError(f"{path}: this is no YAML: {str(error).splitlines()[0]}") from error
    except RecursionError as error:
        raise ConfigError(f"{path}: lists and fields are nested too deeply") from error
    except (ValueError, ArithmeticError, LookupError) as error:
        # Numbers of characters that do not exist.
        line = parser.scanner.reader.line + 1
        raise ConfigError(f"{path}, line {line}: this is no YAML: {error}") from error


@dataclass
class _Reading:
    """Reads a tree as plain values: a small file can stand for a very large tree."""

    path: Path
    values: int = 0

    def value(self, node: Any, around: tuple[Node, ...]) -> Any:
        """The fields, list, number or text of a node inside others."""
        self.values += 1
        if self.values > MOST_VALUES:
            raise self._refused(node, f"the file stands for more than {MOST_VALUES} values")
        if any(node is one for one in around):
            raise self._refused(node, "a list or a set of fields holds itself")
        if len(around) >= MOST_DEPTH:
            raise self._refused(node, f"nested more than {MOST_DEPTH} deep")
        inside = (*around, node)
        match node.id, str(node.tag).removeprefix(_STANDARD):
            case "mapping", "map":
                fields: dict[str, Any] = {}
                for key, value in node.value:
                    name = self._name(key)
                    if name in fields:
                        raise self._refused(key, f"the field `{name}` is given twice")
                    fields[name] = self.value(value, inside)
                return fields
            case "sequence", "seq":
                return [self.value(value, inside) for value in node.value]
            case "scalar", kind if kind in _SCALARS:
                return self._scalar(node, kind)
            case _:
                raise self._refused(node, f"the tag `{node.tag}` has no meaning here; leave it out")

    def _name(self, key: Any) -> str:
        if not isinstance(key.value, str):
            raise self._refused(key, "the name of a field is a word")
        if str(key.tag) == f"{_STANDARD}merge":
            raise self._refused(key, "fields are not merged by `<<`; write them out")
        return str(self._scalar(key, "str"))

    def _scalar(self, node: Any, kind: str) -> bool | int | float | str | None:
        text: str = node.value
        if not text.isprintable():
            raise self._refused(node, f"`{text}` holds characters that do not print")
        try:
            return _SCALARS[kind](text)
        except (ValueError, KeyError) as error:
            raise self._refused(node, f"`{text}` is no {_KINDS[kind]} that can be read") from error

    def _refused(self, node: Any, problem: str) -> ConfigError:
        return ConfigError(f"{self.path}, line {node.start_mark.line + 1}: {problem}")


def _whole_number(text: str) -> int:
    digits = text.replace("_", "")
    based = digits.lstrip("+-")[:2].lower() in ("0x", "0o", "0b")
    return int(digits, 0 if based else 10)


def _number(text: str) -> float:
    return float(text.replace("_", "").lower().replace(".inf", "inf").replace(".nan", "nan"))


_STANDARD = "tag:yaml.org,2002:"

# By the tag of a scalar. A date is a text, as no field is one.
_SCALARS: dict[str, Callable[[str], bool | int | float | str | None]] = {
    "null": lambda text: {"": None, "~": None, "null": None}[text.lower()],
    "bool": lambda text: {"true": True, "false": False}[text.lower()],
    "int": _whole_number,
    "float": _number,
    "str": str,
    "timestamp": str,
    "value": str,
    "merge": str,
}

_KINDS = {"null": "null", "bool": "true or false", "int": "whole number", "float": "number"}
