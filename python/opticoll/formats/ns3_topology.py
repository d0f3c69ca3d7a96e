"""Topologies of ns-3 as HPCC, ASTRA-sim and SimAI read them.

The first line has the numbers of vertices, of switches and of links. In SimAI it has the numbers of
vertices, of GPUs in a server, of NVSwitches, of other switches and of links, and the name of the
GPU. Then come the switches, and for each link both ends, the rate, the delay and the error rate:

    5 2 4
    3 4
    0 3 400Gbps 500ns 0
    1 3 400Gbps 500ns 0
    2 4 100Gbps 0.001ms 0
    3 4 100Gbps 500ns 0

All other vertices are ranks. Names are the numbers in the file. A link has its rate in each
direction. Error rates are not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

from opticoll._core import Fabric
from opticoll.formats.content import MAX_TEXT_BYTES, read_text
from opticoll.formats.network_graph import Graph, MisplacedError, note
from opticoll.outputs.layout import plural

MAX_VERTICES = 2**20
"""Maximum number that is read; the core refuses graphs of this size."""

_RATE = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,12})?)([kKMGTP]?)(b|B)(?:ps|/s)")
_DELAY = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,12})?(?:[eE]-?[0-9]{1,2})?)(s|ms|us|ns|ps)")
_PICOSECONDS = {"s": 10**12, "ms": 10**9, "us": 10**6, "ns": 1000, "ps": 1}


def read(path: Path) -> Fabric:
    """Reads a fabric from a file.

    Raises
    ------
    ConfigError
        The file is no such topology; the message names the line.
    FileError
        The file cannot be read.
    """
    lines = read_text(path, "topology of ns-3", most=MAX_TEXT_BYTES).splitlines()
    head = lines[0].split() if lines else []
    numbers = [_number(word, "line 1") for word in head[: 3 if len(head) < 5 else 5]]
    if len(numbers) not in (3, 5):
        raise MisplacedError(("line 1",), "write the numbers of vertices, switches and links")
    vertices, links = numbers[0], numbers[-1]
    words = _words(lines[1:])

    def following(what: str) -> tuple[str, str]:
        found = next(words, None)
        if found is None:
            raise MisplacedError((), f"the file ends before {what}; the first line announces it")
        return found

    switches: dict[int, None] = {}
    for _ in range(sum(numbers[1:2] if len(numbers) == 3 else numbers[2:4])):
        line, word = following("all switches")
        switches[_vertex(word, line, vertices)] = None
    graph = Graph(file=path.name)
    for vertex in range(vertices):
        graph.vertex((), str(vertex), "switch" if vertex in switches else "rank")
    graph.number((), ())
    lossy = 0
    for _ in range(links):
        found = [following("all links") for _ in range(5)]
        line = found[0][0]
        start, end, rate, delay, error = (word for _, word in found)
        ends = [str(_vertex(word, line, vertices)) for word in (start, end)]
        graph.link((line,), ends[0], ends[1], "-", [_rate(rate, line), _latency(delay, line)])
        lossy += error.strip("0.") != ""
    surplus = next(words, None)
    if surplus is not None:
        raise MisplacedError((surplus[0],), f"the first line announces {plural(links, 'link')}")
    if lossy:
        note(path.name, f"not read: the error rates of {plural(lossy, 'link')}")
    return graph.fabric()


def _words(lines: list[str]) -> Iterator[tuple[str, str]]:
    """Yields all words, each with its line as in `line 3`."""
    for number, line in enumerate(lines, 2):
        for word in line.split():
            yield f"line {number}", word


def _number(word: str, line: str) -> int:
    if not re.fullmatch("[0-9]{1,7}", word) or int(word) > MAX_VERTICES:
        raise MisplacedError((line,), f"`{word}` is not a number up to {MAX_VERTICES}")
    return int(word)


def _vertex(word: str, line: str, vertices: int) -> int:
    vertex = _number(word, line)
    if vertex >= vertices:
        raise MisplacedError((line,), f"there is no vertex {vertex}; there are {vertices}")
    return vertex


def _rate(word: str, line: str) -> str:
    match = _RATE.fullmatch(word)
    if match is None:
        raise MisplacedError((line,), f"`{word}` is not a rate, such as 400Gbps")
    return f"{match[1]}{match[2].replace('K', 'k')}{match[3]}/s"


def _latency(word: str, line: str) -> str:
    match = _DELAY.fullmatch(word)
    if match is None:
        raise MisplacedError((line,), f"`{word}` is not a delay, such as 500ns")
    return f"{round(Decimal(match[1]) * _PICOSECONDS[match[2]])}ps"
