"""Graphs in GML, the format of the Internet Topology Zoo, which `networkx.write_gml` writes too.

A file is a list of keys with values: numbers, texts in quotation marks, and lists in brackets. The
attributes of nested lists get a name with a dot, such as `graphics.x`. The attributes of nodes,
edges and the graph are those of `opticoll.formats.attributes`.

>>> content = parse('graph [ directed 0 node [ id 1 label "A &amp; B" ] ]')
>>> [(name, value) for _, name, value in content[0].value[1].value]
[('id', '1'), ('label', 'A & B')]
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, TypeAlias

from opticoll._core import Fabric
from opticoll.formats.attributes import Item, fabric_of
from opticoll.formats.content import MAX_TEXT_BYTES, read_text
from opticoll.formats.network_graph import MisplacedError

MAX_DEPTH = 16
"""Maximum nesting depth of lists."""

_TOKEN = re.compile(
    r"""[ \t\r\n]+|\#[^\n]*|(?P<open>\[)|(?P<close>\])|"(?P<text>[^"]*)"
    |(?P<number>[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)(?![A-Za-z0-9_])
    |(?P<key>[A-Za-z_][A-Za-z0-9_]*)""",
    re.VERBOSE,
)


class Entry(NamedTuple):
    """Key of a list with its value, a text or a list, and the line of the key."""

    line: int
    name: str
    value: Value


Value: TypeAlias = "str | list[Entry]"


def read(path: Path, **beside: object) -> Fabric:
    """Reads a fabric from a file; `beside` are options that are given with the file.

    Raises
    ------
    ConfigError
        The file is no such graph, or no valid fabric; the message names the node or edge.
    FileError
        The file cannot be read.
    """
    content = parse(read_text(path, "GML file", most=MAX_TEXT_BYTES))
    graphs = [one.value for one in content if one.name == "graph" and isinstance(one.value, list)]
    if len(graphs) != 1:
        raise MisplacedError((), "this is not a GML file with one `graph [ ... ]`")
    (graph,) = graphs
    whole = _attributes([one for one in graph if one.name not in ("node", "edge")])
    one_way = whole.pop("directed", "0") == "1"
    whole.pop("multigraph", None)
    nodes: list[Item] = []
    edges: list[Item] = []
    for entry in graph:
        if entry.name not in ("node", "edge"):
            continue
        place = (f"{entry.name} in line {entry.line}",)
        values = _attributes(entry.value) if isinstance(entry.value, list) else {}
        ends = ("id",) if entry.name == "node" else ("source", "target")
        if not values.keys() >= {*ends}:
            needs = " and ".join(f"`{end}`" for end in ends)
            raise MisplacedError(
                place, f"{'a' if ends == ('id',) else 'an'} {entry.name} needs {needs}"
            )
        item = Item(place, tuple(values[end] for end in ends), values, one_way and len(ends) > 1)
        (nodes if entry.name == "node" else edges).append(item)
    return fabric_of(path.name, whole, nodes, edges, beside)


def parse(text: str) -> list[Entry]:
    """Returns the keys and values of a GML file.

    Raises
    ------
    MisplacedError
        The text is not GML; the place is the line.
    """
    outermost: list[Entry] = []
    open_lists = [outermost]
    key: tuple[int, str] | None = None
    for line, kind, word in _tokens(text):
        if kind == "key" and key is None:
            key = line, word
        elif kind == "close" and key is None and len(open_lists) > 1:
            open_lists.pop()
        elif kind in ("open", "text", "number") and key is not None:
            value: Value = [] if kind == "open" else word
            open_lists[-1].append(Entry(*key, value))
            key = None
            if isinstance(value, list):
                open_lists.append(value)
            if len(open_lists) > MAX_DEPTH:
                problem = f"lists are nested more than {MAX_DEPTH} deep"
                raise MisplacedError((f"line {line}",), problem)
        else:
            expected = "a key" if key is None else f"a value of `{key[1]}`"
            raise MisplacedError((f"line {line}",), f"expected {expected}, not `{word[:40]}`")
    if key is not None or len(open_lists) > 1:
        raise MisplacedError((), "the file ends within a list or after a key; is it complete?")
    return outermost


def _tokens(text: str) -> Iterator[tuple[int, str, str]]:
    """Yields the line, the kind and the text of each token."""
    position, line = 0, 1
    while position < len(text):
        token = _TOKEN.match(text, position)
        if token is None:
            word = text[position : position + 20].split("\n")[0]
            raise MisplacedError((f"line {line}",), f"`{word}` is no key and no value of GML")
        kind = token.lastgroup
        if kind is not None:
            word = token[kind]
            yield line, kind, html.unescape(word) if kind == "text" else word
        line += token[0].count("\n")
        position = token.end()


def _attributes(entries: list[Entry], prefix: str = "") -> dict[str, str]:
    """Returns the values of a list by name; names in nested lists get a dot."""
    values: dict[str, str] = {}
    for entry in entries:
        if isinstance(entry.value, list):
            values |= _attributes(entry.value, f"{prefix}{entry.name}.")
        else:
            values[prefix + entry.name] = entry.value
    return values
