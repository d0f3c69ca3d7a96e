"""Nodes of Chakra traces from other formats, in the binary form that the core reads.

`chakra_jsonizer` of MLCommons prints the messages of a binary trace as JSON: one object after
another, fields in camel case, 64-bit numbers as texts, types by name. ASTRA-sim reads an object
with the list `workload_graph`, whose nodes have `Id`, `NodeType` and `runtime`. Both forms have one
file per rank.

>>> content = binary_of(b'{"version": "0.0.4"}{"name": "work", "type": "COMP_NODE"}')
>>> from opticoll._core import read_chakra
>>> read_chakra([content])
<Trace 1 ranks, 1 events>
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from opticoll import memory
from opticoll.errors import ConfigError
from opticoll.formats.recognition import BYTE_ORDER_MARK

KINDS = (
    *("INVALID_NODE", "METADATA_NODE", "MEM_LOAD_NODE", "MEM_STORE_NODE"),
    *("COMP_NODE", "COMM_SEND_NODE", "COMM_RECV_NODE", "COMM_COLL_NODE"),
)
"""Types of nodes by number (`NodeType` of `et_def.proto`)."""

COLLECTIVES = (
    *("ALL_REDUCE", "REDUCE", "ALL_GATHER", "GATHER", "SCATTER"),
    *("BROADCAST", "ALL_TO_ALL", "REDUCE_SCATTER", "REDUCE_SCATTER_BLOCK", "BARRIER"),
)
"""Types of collectives by number (`CollectiveCommType` of `et_def.proto`)."""

_STRUCTURE = {
    *("id", "name", "type", "node_type", "ctrl_deps", "data_deps", "duration_micros", "runtime"),
    *("attr", "inputs", "outputs", "start_time_micros"),
}

_VALUES = (
    *("int32_val", "int64_val", "uint32_val", "uint64_val", "sint32_val", "sint64_val"),
    *("fixed32_val", "fixed64_val", "sfixed32_val", "sfixed64_val"),
)
"""Fields of an attribute that contain an integer."""

Value = int | bool | str


class Node(NamedTuple):
    """Node of a trace: its type by number, the nodes for which it waits, and its attributes."""

    id: int
    kind: int
    name: str = ""
    control: tuple[int, ...] = ()
    data: tuple[int, ...] = ()
    duration_us: int = 0
    inputs: str = ""
    attributes: Mapping[str, Value] = {}


def encoded(nodes: Iterable[Node], header: Mapping[str, Value] | None = None) -> bytes:
    """Returns the binary trace of a rank, with the field numbers of `et_def.proto`."""
    parts = [_sized(b"".join(_attribute(2, *pair) for pair in (header or {}).items()))]
    for node in nodes:
        message = _whole(1, node.id) + _text(2, node.name) + _whole(3, node.kind)
        message += _packed(4, node.control) + _packed(5, node.data) + _whole(7, node.duration_us)
        if node.inputs:
            message += _bytes(8, _text(1, node.inputs))
        message += b"".join(_attribute(10, *pair) for pair in node.attributes.items())
        parts.append(_sized(message))
    return b"".join(parts)


def _number(number: int) -> bytes:
    """Returns a number in groups of seven bits, the lowest first; the last byte is below 128."""
    number %= 2**64
    digits = bytearray()
    while number > 0x7F:
        digits.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*digits, number))


def _sized(content: bytes) -> bytes:
    return _number(len(content)) + content


def _whole(field: int, value: int) -> bytes:
    return _number(field << 3) + _number(value)


def _bytes(field: int, content: bytes) -> bytes:
    return _number(field << 3 | 2) + _sized(content)


def _packed(field: int, values: Iterable[int]) -> bytes:
    content = b"".join(map(_number, values))
    return _bytes(field, content) if content else b""


def _text(field: int, text: str) -> bytes:
    return _bytes(field, text.encode("utf-8", "replace"))


def _attribute(field: int, name: str, value: Value) -> bytes:
    if isinstance(value, str):
        coded = _text(29, value)
    else:
        coded = _whole(27 if isinstance(value, bool) else 9, value)
    return _bytes(field, _text(1, name) + coded)


def is_json(content: bytes) -> bool:
    """Returns whether a content begins like JSON; a binary trace begins with a length."""
    text = content.removeprefix(BYTE_ORDER_MARK).lstrip()
    return text[:1] in (b"{", b"[") and b'"' in text[:256]


def binary_of(content: bytes) -> bytes:
    """Returns the binary trace of a rank from its JSON.

    Raises
    ------
    ConfigError
        The content is not JSON of a trace; the message names the node.
    MemoryLimitError
        The values need more memory than the limit.
    """
    try:
        text = content.removeprefix(BYTE_ORDER_MARK).decode()
    except UnicodeDecodeError as error:
        raise ConfigError(f"this is not JSON: byte {error.start} is not UTF-8") from error
    memory.take_values("reading this JSON", text)
    objects = list(_objects(text))
    if len(objects) == 1:
        (whole,) = objects
        listed = whole.get("workload_graph") if isinstance(whole, dict) else whole
        objects = listed if isinstance(listed, list) else objects
    nodes, header = [], {}
    for position, item in enumerate(objects):
        place = f"object {position + 1}"
        if not isinstance(item, dict):
            raise ConfigError(f"{place} is not a node, an object with fields such as `id`")
        fields = {_snake(name): value for name, value in item.items()}
        if position == 0 and not fields.keys() & {"id", "name", "type", "node_type"}:
            header = _attributes(fields.get("attr", []), place)
            continue
        nodes.append(_node(fields, place))
    if not nodes:
        raise ConfigError("there are no nodes in this JSON")
    return encoded(nodes, header)


def _objects(text: str) -> Iterator[Any]:
    """Yields the values of JSON that follow one another, with or without white space."""
    decoder = json.JSONDecoder()
    position = 0
    while position < len(text):
        if text[position].isspace():
            position += 1
            continue
        try:
            value, position = decoder.raw_decode(text, position)
        except RecursionError as error:
            raise ConfigError("this is not valid JSON: it is nested too deeply") from error
        except ValueError as error:
            raise ConfigError(f"this is not valid JSON: {error}") from error
        yield value


def _snake(name: str) -> str:
    """Returns a name in lower case, with `_` before what was an upper-case letter within it."""
    return "".join(
        f"_{letter.lower()}" if letter.isupper() and place else letter.lower()
        for place, letter in enumerate(name)
    )


def _node(fields: dict[str, Any], place: str) -> Node:
    number = _integer(fields.get("id", 0), f"{place}: `id`")
    place = f"node {number}"
    kind = fields.get("type", fields.get("node_type", 0))
    if kind in KINDS:
        kind = KINDS.index(kind)
    kind = _integer(kind, f"{place}: the type")
    duration = fields.get("duration_micros", fields.get("runtime", 0))
    inputs = fields.get("inputs", "")
    values = inputs.get("values", "") if isinstance(inputs, dict) else inputs
    attributes = _attributes(fields.get("attr", []), place)
    for name, value in fields.items():
        if name not in _STRUCTURE and isinstance(value, (int, str)):
            is_number = type(value) is int
            attributes[name] = _integer(value, f"{place}: `{name}`") if is_number else value
    if attributes.get("comm_type") in COLLECTIVES:
        attributes["comm_type"] = COLLECTIVES.index(str(attributes["comm_type"]))
    return Node(
        id=number,
        kind=kind,
        name=str(fields.get("name", "")),
        control=_numbers(fields.get("ctrl_deps", []), f"{place}: the control dependencies"),
        data=_numbers(fields.get("data_deps", []), f"{place}: the data dependencies"),
        duration_us=_integer(duration, f"{place}: the duration"),
        inputs=values if isinstance(values, str) else json.dumps(values),
        attributes=attributes,
    )


def _attributes(listed: object, place: str) -> dict[str, Value]:
    """Returns the attributes `{"name": ..., "int64Val": ...}` with integers, texts and booleans.

    Lists and real numbers are left out, because no reader uses them.
    """
    attributes: dict[str, Value] = {}
    if not isinstance(listed, list):
        raise ConfigError(f"{place}: `attr` is not a list")
    for item in listed:
        if not isinstance(item, dict) or not isinstance(item.get("name"), str):
            raise ConfigError(f"{place}: an attribute has no `name`")
        for name, value in item.items():
            field = _snake(name)
            if field in _VALUES:
                attributes[item["name"]] = _integer(value, f"{place}: `{item['name']}`")
            elif field == "bool_val":
                attributes[item["name"]] = bool(value)
            elif field == "string_val":
                attributes[item["name"]] = str(value)
    return attributes


def _numbers(values: object, what: str) -> tuple[int, ...]:
    if not isinstance(values, list):
        raise ConfigError(f"{what} are not a list")
    return tuple(_integer(value, what) for value in values)


def _integer(value: object, what: str) -> int:
    """Returns an integer of 64 bits, which JSON of Protocol Buffers writes as a text."""
    if isinstance(value, str) and value.lstrip("-").isdecimal() and len(value) < 21:
        value = int(value)
    if type(value) is not int or not -(2**63) <= value < 2**64:
        raise ConfigError(f"{what}: `{value}` is not a whole number of 64 bits")
    return value
