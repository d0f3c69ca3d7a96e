"""Networks of ASTRA-sim's analytical backends: a list of dimensions, in YAML or JSON.

| field | entry for each dimension |
|---|---|
| `topology` | Ring, FullyConnected or Switch |
| `npus_count` | number of NPUs |
| `bandwidth` | rate of each link in each direction, in 2^30 bytes per second |
| `latency` | latency of each link in ns |

NPUs become ranks. The first dimension counts fastest. The NPUs that differ in one dimension only
form a ring, a clique, or the ports of one switch (`congestion_aware/basic-topology` and
`MultiDimTopology.cpp` of astra-network-analytical). ASTRA-sim calls the unit of the rate GB/s and
multiplies by 2^30 (`NetworkFunction.cpp`).

>>> network = {"topology": ["Ring"], "npus_count": [3], "bandwidth": [0.5], "latency": [1.5]}
>>> fabric_of(network).spec
'custom:ranks=3,links=0-1+1-2+2-0,rate=4.294967296Gb/s,latency=1.5ns'
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from itertools import combinations, pairwise
from math import prod
from pathlib import Path
from typing import Any

from opticoll._core import Fabric
from opticoll.errors import ConfigError
from opticoll.formats.document import Document, Place, read_fields
from opticoll.formats.network_graph import Graph, MisplacedError, note

UNIT = 8 * 2**30
"""Bits per second of the unit of `bandwidth`."""

MAX_NPUS = 2**14
MAX_LINKS = 2**20
"""Maximum number of links; a short file may describe a clique of any size."""


@dataclass(frozen=True)
class _Network:
    topology: list[str]
    npus_count: list[int]
    bandwidth: list[Any]
    latency: list[Any]


def _ring(npus: list[str]) -> Iterable[tuple[str, str]]:
    # A ring of two has one link in each direction.
    return pairwise([*npus, npus[0]] if len(npus) > 2 else npus)


_LINKS: dict[str, Callable[[list[str]], Iterable[tuple[str, str]]] | None] = {
    "Ring": _ring,
    "FullyConnected": lambda npus: combinations(npus, 2),
    "Switch": None,
}
"""Links of the NPUs of a dimension; None if a switch joins all of them."""


def read(path: Path) -> Fabric:
    """Reads a fabric from a file.

    Raises
    ------
    ConfigError
        The file is no such network; the message names the line and the field.
    FileError
        The file cannot be read.
    """
    document = Document.read(path)
    try:
        fabric = fabric_of(document.content, path.name)
    except MisplacedError as error:
        raise document.error(error.place, error.problem) from error
    note(path.name, "`bandwidth` counts 2^30 bytes per second, as in ASTRA-sim")
    return fabric


def fabric_of(content: dict[str, Any], file: str = "") -> Fabric:
    """Returns the custom fabric of a network.

    Raises
    ------
    MisplacedError
        The network is invalid; the error has the place of the value.
    """

    def refuse(place: Place, problem: str) -> ConfigError:
        return MisplacedError(place, problem)

    network = read_fields(_Network, content, refuse)
    sizes = network.npus_count
    for name, listed in vars(network).items():
        if len(listed) != len(network.topology) or not listed:
            problem = f"has {len(listed)} entries, but `topology` has {len(network.topology)}"
            raise MisplacedError((name,), problem)
    for position, (kind, size) in enumerate(zip(network.topology, sizes, strict=True)):
        if kind not in _LINKS:
            problem = f"`{kind}` is not known; ASTRA-sim has {', '.join(_LINKS)}"
            raise MisplacedError(("topology", position), problem)
        if size < 2 or prod(sizes[: position + 1]) > MAX_NPUS:
            problem = f"there must be 2 or more in a dimension, and at most {MAX_NPUS} in all"
            raise MisplacedError(("npus_count", position), problem)
    count = prod(sizes)
    graph = Graph(ranks=[str(npu) for npu in range(count)], named=False, file=file)
    cables = []
    for dimension, kind in enumerate(network.topology):
        rate = _number(network.bandwidth, ("bandwidth", dimension)) * UNIT
        latency = _number(network.latency, ("latency", dimension)) * 1000
        if round(rate) < 1:
            raise MisplacedError(("bandwidth", dimension), "the rate of a link is above 0")
        options = (f"{round(rate)}b/s", f"{round(latency)}ps")
        place: Place = ("topology", dimension)
        links_of = _LINKS[kind]
        for group in _groups(sizes, dimension):
            if links_of is None:
                graph.switches.append(f"s{len(graph.switches)}")
            switched = ((npu, graph.switches[-1]) for npu in group)
            for ends in switched if links_of is None else links_of(group):
                cables.append((place, *ends, options))
                if len(cables) > MAX_LINKS:
                    raise MisplacedError(place, f"there are more than {MAX_LINKS} links")
    graph.number(("npus_count",), ("topology",))
    alike = {options for *_, options in cables}
    if len(alike) == 1:
        graph.options = dict(zip(("rate", "latency"), *alike, strict=True))
    for place, start, end, options in cables:
        graph.link(place, start, end, "-", [] if len(alike) == 1 else list(options))
    return graph.fabric()


def _groups(sizes: list[int], dimension: int) -> Iterator[list[str]]:
    """Yields the NPUs that differ in one dimension only, in the order of their positions."""
    stride, size = prod(sizes[:dimension]), sizes[dimension]
    for first in range(prod(sizes)):
        if first // stride % size == 0:
            yield [str(first + position * stride) for position in range(size)]


def _number(listed: list[Any], place: Place) -> Decimal:
    value = listed[int(place[1])]
    try:
        number = Decimal(str(value))
    except InvalidOperation:
        number = Decimal("nan")
    if isinstance(value, bool) or not number.is_finite() or not 0 <= number < 10**9:
        raise MisplacedError(place, f"`{value}` is not a number from 0 to 10^9")
    return number
