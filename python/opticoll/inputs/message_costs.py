"""Times of messages from a user's function, in place of the links of a fabric.

The function has the parameters size in bytes, source, destination and hops, and returns seconds:

    def cost(size, source, destination, hops):
        return 2e-6 + 300e-9 * hops + size / 12.5e9

Hops are the links of the route on the fabric. The function is called for every two ranks at the
sizes 0 and 1, 4, 16, ... bytes, up to 1 GiB. Its values become a fabric of links, on which plans
are made, bounded and simulated as on every other fabric:

* A link leads from each rank to each other rank. Its latency and its rate are those for which
  latency + bytes / rate has the least squares of the relative differences from the function.
* The messages that a rank sends share a port, with the rate of the fastest of these links, and so
  do the messages that it receives. A function of single messages states no other contention.

A message that shares no port takes the function's time, if this time is a latency plus bytes over
a rate. Otherwise a note states the largest difference.

>>> def cost(size, source, destination, hops):
...     return 1e-6 * hops + size / 1e9
>>> with_costs(Fabric("crossbar:ranks=2"), cost).spec
'custom:ranks=2,switches=2,links=0-2@8Gb/s+1-3@8Gb/s+2-3@8Gb/s@2us,rate=100Gb/s,latency=0s'
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from opticoll._core import Fabric
from opticoll.errors import UsageError
from opticoll.formats.network_graph import Graph, note
from opticoll.inputs import user_function
from opticoll.outputs.fabric_names import short_name

Cost = Callable[..., float]

SIZES = (0, *(4**power for power in range(16)))
"""Sizes at which a function is called, in bytes; the largest is 1 GiB."""

MAX_RANKS = 128
"""Maximum number of ranks; every two ranks have a link and are sampled."""

SHORTEST = 1e-12
"""Seconds of a picosecond, the unit of the core's times; relative differences divide by no less."""

TOLERANCE = 1e-3
"""Relative difference of a time above which a note states the difference. An assumption."""


def with_costs(fabric: Fabric, cost: str | Cost) -> Fabric:
    """Returns a fabric whose messages take the times of a function, named or given.

    Raises
    ------
    UsageError
        The function cannot be called or returns no time, or the fabric has circuits or too many
        ranks.
    """
    if not fabric.electrical:
        raise UsageError(
            f"--cost replaces the links of a fabric, and {short_name(fabric.spec)} has circuits, "
            "whose times are options of the fabric"
        )
    ranks = range(fabric.ranks)
    if len(ranks) > MAX_RANKS:
        raise UsageError(f"--cost is for up to {MAX_RANKS} ranks, and there are {len(ranks)}")
    options: Mapping[str, user_function.Option] = {}
    name = cost if isinstance(cost, str) else user_function.name_of(cost)
    if isinstance(cost, str):
        cost, options = user_function.load("cost", cost, UsageError)

    def seconds(size: int, source: int, destination: int, hops: int) -> float:
        arguments = (size, source, destination, hops)
        value = user_function.call("cost", name, cost, arguments, UsageError, options)
        return _checked(value, name, size, source, destination)

    links: dict[tuple[int, int], tuple[int, int]] = {}
    worst = (0.0, "")
    for start in ranks:
        for end in ranks:
            if start == end:
                continue
            hops = len(fabric.route(start, end))
            times = [seconds(size, start, end, hops) for size in SIZES]
            latency, byte = _line(times)
            # At 8 seconds a byte, the rate is 1 b/s.
            if times[-1] <= times[0] or not 0 < byte <= 8:
                raise UsageError(
                    f"cost `{name}`: from rank {start} to rank {end} the time does not grow with "
                    "the size, or by more than 8 seconds a byte"
                )
            links[start, end] = round(latency * 1e12), round(8 / byte)
            for size, time in zip(SIZES, times, strict=True):
                difference = abs(latency + byte * size - time) / max(time, SHORTEST)
                worst = max(worst, (difference, f"{size} bytes, rank {start} to rank {end}"))
    if worst[0] > TOLERANCE:
        note(name, f"latency + bytes / rate differs by up to {worst[0]:.1%} ({worst[1]})")
    return _fabric(links, len(ranks), f"{name} on {short_name(fabric.spec)}")


def _line(times: Sequence[float]) -> tuple[float, float]:
    """Returns the latency and the seconds of a byte that fit the times at `SIZES`."""
    import numpy as np

    weights = 1 / np.maximum(times, SHORTEST)
    columns = np.stack([weights, weights * SIZES], axis=1)
    weighted = weights * np.asarray(times)
    latency, byte = np.linalg.lstsq(columns, weighted, rcond=None)[0]
    if latency < 0:
        latency, byte = 0, np.linalg.lstsq(columns[:, 1:], weighted, rcond=None)[0][0]
    return float(latency), float(byte)


def _checked(value: Any, name: str, size: int, source: int, destination: int) -> float:
    """Returns a time in seconds, at most a million seconds."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    number = float(value) if is_number or hasattr(value, "dtype") else math.nan
    if not 0 <= number <= 1e6:
        raise UsageError(
            f"cost `{name}` returned `{value!r}` for {size} bytes from rank {source} to rank "
            f"{destination}; a time is a number of seconds from 0 to 1e6"
        )
    return number


def _fabric(links: Mapping[tuple[int, int], tuple[int, int]], ranks: int, name: str) -> Fabric:
    """Returns the fabric of links, each with its latency in ps and its rate in b/s."""
    graph = Graph(named=False, file=name)
    graph.ranks = [str(rank) for rank in range(ranks)]
    graph.switches = [f"port {rank}" for rank in range(ranks)]
    graph.number((), ())

    def add(pair: tuple[str, str], there: tuple[int, int], back: tuple[int, int]) -> None:
        """Adds a cable if both directions are equal, else a link in each direction."""
        ways = [(pair, there)] if there == back else [(pair, there), (pair[::-1], back)]
        for (start, end), (latency, rate) in ways:
            letter = "-" if there == back else ">"
            graph.link(("cost",), start, end, letter, [f"{rate}b/s", f"{latency}ps"])

    for rank, port in zip(graph.ranks, graph.switches, strict=True):
        number = int(rank)
        sent = max(rate for (start, _), (_, rate) in links.items() if start == number)
        received = max(rate for (_, end), (_, rate) in links.items() if end == number)
        add((rank, port), (0, sent), (0, received))
    for (start, end), there in links.items():
        if start < end:
            add((f"port {start}", f"port {end}"), there, links[end, start])
    return graph.fabric()
