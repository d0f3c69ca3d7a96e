"""Graphs as edge lists: a line `a b` or `a b km` for each cable.

`#` begins a comment. Words are separated by spaces or tabs, or by commas. The third word is the
length of a graph of fibres in km, or a length with its unit (`500m`). In place of the length,
`networkx.write_edgelist` writes attributes in braces; `opticoll.formats.attributes` lists them.
Lines with a single number at the beginning, as papers publish them, state the number of vertices
and the number of cables. All vertices are ranks. If all names are whole numbers, ranks are in the
order of these numbers, and otherwise in the order of the file.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

from opticoll._core import Fabric
from opticoll.formats.attributes import Item, fabric_of
from opticoll.formats.content import MAX_TEXT_BYTES, read_text
from opticoll.formats.document import Place
from opticoll.formats.network_graph import MisplacedError
from opticoll.outputs.layout import plural


def read(path: Path, **beside: object) -> Fabric:
    """Reads a fabric from a file; `beside` are options that are given with the file.

    Raises
    ------
    ConfigError
        The file is no such list, or no valid fabric; the message names the line.
    FileError
        The file cannot be read.
    """
    edges: list[Item] = []
    counts: list[tuple[int, int]] = []
    text = read_text(path, "edge list", MAX_TEXT_BYTES)
    for number, line in enumerate(text.splitlines(), 1):
        place = (f"line {number}",)
        line, attributes = _attributes(line.partition("#")[0].strip(), place)
        words = re.split(r"\s*,\s*|\s+", line)
        if words == [""]:
            continue
        if len(words) == 1 and not edges and len(counts) < 2 and words[0].isdecimal():
            counts.append((number, int(words[0])))
            continue
        if len(words) not in (2, 3) or not all(words) or (attributes and len(words) > 2):
            problem = "a line names two ranks and the length of their cable, such as `a b 80`"
            raise MisplacedError(place, problem)
        attributes |= dict(zip(["length"], words[2:], strict=False))
        edges.append(Item(place, (words[0], words[1]), attributes))
    names = list(dict.fromkeys(end for edge in edges for end in edge.ends))
    if all(name.isdecimal() for name in names):
        names.sort(key=int)
    for (number, stated), (count, of) in zip(
        counts, [(len(names), "rank"), (len(edges), "cable")], strict=False
    ):
        if stated != count:
            problem = f"states {stated}, but the list has {plural(count, of)}"
            raise MisplacedError((f"line {number}",), problem)
    nodes = [Item((), (name,), {}) for name in names]
    return fabric_of(path.name, {}, nodes, edges, beside)


def _attributes(line: str, place: Place) -> tuple[str, dict[str, object]]:
    """Returns a line without the attributes in braces at its end, and these attributes."""
    before, brace, braced = line.partition("{")
    if not brace:
        return line, {}
    try:
        attributes = ast.literal_eval(f"{{{braced}")
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        attributes = None
    if not isinstance(attributes, dict) or not all(isinstance(key, str) for key in attributes):
        problem = "attributes are written as {'length': 80}"
        raise MisplacedError(place, problem)
    return before.strip(), attributes
