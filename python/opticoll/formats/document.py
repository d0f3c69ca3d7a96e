"""Text files of users: JSON, TOML, and YAML (1.2) files whose values know their lines.

Every error names the file and, if possible, the line and the field.
"""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Callable
from dataclasses import dataclass, is_dataclass
from pathlib import Path
from types import UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from opticoll import memory
from opticoll.errors import ConfigError, OpticollError
from opticoll.formats.content import MAX_TEXT_BYTES, read_text
from opticoll.names import nearest

if TYPE_CHECKING:
    from ruamel.yaml.nodes import MappingNode, Node

T = TypeVar("T")

Place = tuple[str | int, ...]
"""Position of a value in a file: the keys and list indices that lead to it from the top."""

MAX_BYTES = 8 * 2**20
"""Maximum size of a YAML file in bytes; reading takes a second per 200 kB."""

MAX_VALUES = 10**6
"""Maximum number of values of a YAML file; a value repeated by name (`*name`) counts each time."""

MAX_DEPTH = 64
"""Maximum nesting depth of lists and fields."""


def read_json(path: Path) -> Any:
    """Reads a JSON file; an object with the same field twice is an error.

    Raises
    ------
    FileError
        The file cannot be read.
    ConfigError
        The file is not valid JSON.
    MemoryLimitError
        The content needs more memory than the limit.
    """

    def fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        unique = dict(pairs)
        if len(unique) < len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for place, name in enumerate(names) if name in names[:place])
            raise ValueError(f"the field `{twice}` is given twice")
        return unique

    return parse_json(read_text(path, "JSON file", most=MAX_TEXT_BYTES), fields)


def parse_json(
    text: str, fields: Callable[[list[tuple[str, Any]]], dict[str, Any]] | None = None
) -> Any:
    """Parses JSON; `fields` converts the (name, value) pairs of an object, by default to a dict.

    Raises
    ------
    ConfigError
        The text is not valid JSON.
    MemoryLimitError
        The values need more memory than the limit.
    """
    memory.take_values("reading this JSON", text)
    try:
        return json.loads(text, object_pairs_hook=fields)
    except RecursionError as error:
        raise ConfigError("this is not valid JSON: it is nested too deeply") from error
    except ValueError as error:
        raise ConfigError(f"this is not valid JSON: {error}") from error


@dataclass(frozen=True)
class Document:
    """YAML file, with the line of each value."""

    path: Path
    content: dict[str, Any]
    root: MappingNode

    @staticmethod
    def read(path: str | os.PathLike[str]) -> Document:
        from ruamel.yaml.nodes import MappingNode

        path = Path(path)
        root = _compose(path, read_text(path, "YAML file", most=MAX_BYTES))
        if not isinstance(root, MappingNode):
            raise ConfigError(f"{path}: expected fields such as `ranks: 16`, one on a line")
        return Document(path, _Reading(path).value(root, ()), root)

    def error(self, place: Place, problem: str) -> ConfigError:
        """Returns an error on the value at `place`, with file, line and field."""
        field = ".".join(str(key) for key in place)
        return ConfigError(f"{self.path}, line {self._line(place)}, {field}: {problem}")

    def fields(self, kind: type[T]) -> T:
        """Converts the fields of the file to an object of class `kind` (see `read_fields`)."""
        return read_fields(kind, self.content, self.error)

    def _line(self, place: Place) -> int:
        """Returns the line of a value.

        If the file lacks the value, returns the line of an enclosing value.
        """
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


def is_yaml(text: str) -> bool:
    """Returns whether a file's name has an ending of YAML files."""
    return text.endswith((".yaml", ".yml"))


def whole(least: int, most: int) -> Callable[[object], int]:
    """Returns a function that checks that a value is a whole number from `least` to `most`."""

    def read(value: object) -> int:
        if type(value) is not int or not least <= value <= most:
            raise ConfigError(f"`{value}` is not a whole number from {least} on")
        return value

    return read


def text(value: object) -> str:
    """Checks that a value is a text.

    Raises
    ------
    ConfigError
        The value is a number, a list or another type.
    """
    if not isinstance(value, str):
        raise ConfigError(f"`{value}` is not text")
    return value


Text = Annotated[str, str]
"""Annotation of a text field that users may also write as a number or date."""


def read_fields(
    kind: type[T], fields: Any, refuse: Callable[[Place, str], ConfigError], place: Place = ()
) -> T:
    """Converts plain values to a dataclass or named tuple; `refuse` creates the errors.

    If the annotation of a field has functions as metadata, these functions convert the value of the
    field. The entries of a list are converted by their type.

    Raises
    ------
    ConfigError
        A value is invalid, or a field is missing or unknown.
    """
    hints = get_type_hints(kind, include_extras=True)
    if not isinstance(fields, dict):
        raise refuse(place, f"`{fields}` is not a set of fields: {', '.join(hints)}")
    for name in fields:
        if name not in hints:
            hint = nearest(str(name), hints)
            raise refuse((*place, name), f"there is no such field{hint}")
    for name, parameter in inspect.signature(kind).parameters.items():
        if parameter.default is parameter.empty and name not in fields:
            raise refuse((*place, name), f"the field `{name}` is missing")
    read = {
        name: _value(hints[name], field, refuse, (*place, name)) for name, field in fields.items()
    }
    return kind(**read)


def _value(hint: Any, value: Any, refuse: Callable[[Place, str], ConfigError], place: Place) -> Any:
    """Converts a value with the functions and the type in the annotation `hint`."""
    if get_origin(hint) is UnionType or get_origin(hint) is Union:
        if value is None:
            return None
        hint = get_args(hint)[0]
    for read in getattr(hint, "__metadata__", ()):
        try:
            value = read(value)
        except OpticollError as error:
            raise refuse(place, str(error).removeprefix(f"{place[-1]}: ")) from error
    hint = hint.__origin__ if get_origin(hint) is Annotated else hint
    if is_dataclass(hint) or hasattr(hint, "_fields"):
        return read_fields(hint, value, refuse, place)
    if get_origin(hint) is not list:
        return value
    if not isinstance(value, list) or not value:
        raise refuse(place, f"give a list of {place[-1]}, of at least one")
    (entry,) = get_args(hint)
    return [_value(entry, item, refuse, (*place, index)) for index, item in enumerate(value)]


def _compose(path: Path, text: str) -> Node | None:
    """Parses YAML to a syntax tree, without constructing objects."""
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
        raise ConfigError(f"{path}, line {line}: this is not valid YAML: {problem}") from error
    except YAMLError as error:
        raise ConfigError(
            f"{path}: this is not valid YAML: {str(error).splitlines()[0]}"
        ) from error
    except RecursionError as error:
        raise ConfigError(f"{path}: lists and fields are nested too deeply") from error
    except (ValueError, ArithmeticError, LookupError) as error:
        # The text has an escape of a character that does not exist.
        line = parser.scanner.reader.line + 1
        raise ConfigError(f"{path}, line {line}: this is not valid YAML: {error}") from error


@dataclass
class _Reading:
    """Reader of a syntax tree as plain values.

    Limits keep a small file from becoming a huge tree.
    """

    path: Path
    values: int = 0

    def value(self, node: Any, around: tuple[Node, ...]) -> Any:
        """Returns the fields, list, number or text of a node; `around` are the enclosing nodes."""
        self.values += 1
        if self.values > MAX_VALUES:
            raise self._refused(node, f"the file stands for more than {MAX_VALUES} values")
        if any(node is outer for outer in around):
            raise self._refused(node, "a list or a set of fields holds itself")
        if len(around) >= MAX_DEPTH:
            raise self._refused(node, f"nested more than {MAX_DEPTH} deep")
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
        # Only a block (`|` or `>`) means text of several lines, such as a description.
        if not (text.replace("\n", "") if node.style in ("|", ">") else text).isprintable():
            raise self._refused(node, f"`{text}` holds characters that do not print")
        try:
            return _SCALARS[kind](text)
        except (ValueError, KeyError) as error:
            problem = f"`{text}` is not a valid {_KINDS[kind]}"
            raise self._refused(node, problem) from error

    def _refused(self, node: Any, problem: str) -> ConfigError:
        return ConfigError(f"{self.path}, line {node.start_mark.line + 1}: {problem}")


def _whole_number(text: str) -> int:
    digits = text.replace("_", "")
    based = digits.lstrip("+-")[:2].lower() in ("0x", "0o", "0b")
    return int(digits, 0 if based else 10)


def _number(text: str) -> float:
    return float(text.replace("_", "").lower().replace(".inf", "inf").replace(".nan", "nan"))


_STANDARD = "tag:yaml.org,2002:"

# Readers of scalars by tag. Dates are read as text, since no field is a date.
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
