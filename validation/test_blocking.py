"""Blocking of requests on NSFNET: `opticoll traffic` against a slow simulation in plain Python.

Requests arrive as a Poisson process between uniformly distributed pairs of nodes, and hold a
lightpath for an exponential time. A request tries the five shortest paths, one after another, and
takes the lowest wavelength that is free on all links of a path.
"""

from __future__ import annotations

import heapq
import random
import statistics
from collections import defaultdict

import pytest

import opticoll

CABLES = (
    "0-1 0-2 0-7 1-2 1-3 2-5 3-4 3-10 4-5 4-6 5-9 5-13 6-7 6-9 7-8 8-9 8-11 8-12 10-11 10-12 "
    "11-13 12-13"
)
NODES, WAVELENGTHS, ROUTES = 14, 16, 5
LINKS = [
    ends
    for cable in CABLES.split()
    for ends in (tuple(map(int, cable.split("-"))), tuple(map(int, reversed(cable.split("-")))))
]
"""Start and end of each link: both directions of the first cable, then of the second, and so on."""

BATCHES = 40
STUDENT = 2.02
"""97.5 % quantile of Student's distribution with 39 degrees of freedom."""


def simple_paths(source: int, destination: int) -> list[tuple[int, ...]]:
    """Returns all paths without repeated nodes, as link numbers, sorted by length and numbers."""
    paths = []

    def extend(node: int, visited: frozenset[int], path: tuple[int, ...]) -> None:
        if node == destination:
            paths.append(path)
            return
        for number, (start, end) in enumerate(LINKS):
            if start == node and end not in visited:
                extend(end, visited | {end}, (*path, number))

    extend(source, frozenset([source]), ())
    return sorted(paths, key=lambda path: (len(path), path))


def blocking(erlang: float, requests: int, seed: int, routes: int) -> tuple[float, float]:
    """Returns the share of blocked requests, and half its confidence interval of 95 %."""
    pairs = [(one, two) for one in range(NODES) for two in range(NODES) if one != two]
    paths = {pair: simple_paths(*pair)[:routes] for pair in pairs}
    draw = random.Random(seed)
    used: dict[int, set[int]] = defaultdict(set)
    ends: list[tuple[float, tuple[int, ...], int]] = []
    now, shares = 0.0, []
    per_batch = requests // BATCHES
    for batch in range(-1, BATCHES):  # The first batch is the warm-up.
        blocked = 0
        for _ in range(per_batch):
            now += draw.expovariate(erlang)
            while ends and ends[0][0] <= now:
                _, path, wavelength = heapq.heappop(ends)
                for link in path:
                    used[link].remove(wavelength)
            for path in paths[draw.choice(pairs)]:
                taken = set().union(*(used[link] for link in path))
                free = min(set(range(WAVELENGTHS)) - taken, default=None)
                if free is not None:
                    for link in path:
                        used[link].add(free)
                    heapq.heappush(ends, (now + draw.expovariate(1), path, free))
                    break
            else:
                blocked += 1
        if batch >= 0:
            shares.append(blocked / per_batch)
    half = STUDENT * statistics.stdev(shares) / BATCHES**0.5
    return statistics.mean(shares), half


def test_the_preset_has_these_links() -> None:
    names = opticoll.Fabric("nsfnet_22:wavelengths=16").option("links").split("+")
    assert [name.partition("@")[0] for name in names] == CABLES.split()


@pytest.mark.parametrize("erlang", [100, 150, 200, 250])
@pytest.mark.parametrize("routes", [1, ROUTES])
def test_blocking_agrees_with_a_slow_simulation(erlang: int, routes: int) -> None:
    slow, slow_half = blocking(erlang, 400_000, 1, routes)
    row = opticoll.bursts(
        f"nsfnet_22:wavelengths={WAVELENGTHS},ties=first",
        {
            "source": "poisson",
            "offered_load": repr(erlang / NODES),
            "length": "exponential",
            "size": "1.25TB",
            "routes": str(routes),
            "bursts": "1e6",
        },
    )
    half = (row.loss_high - row.loss_low) / 2
    print(f"{erlang} erlang, {routes}: {slow:.3g} +- {slow_half:.2g}, {row.loss:.3g} +- {half:.2g}")
    # Both intervals hold the truth in 19 of 20 cases; their difference has the root of the sum.
    assert abs(row.loss - slow) <= 1.5 * (slow_half**2 + half**2) ** 0.5
