"""The throughput optimum by maximum flows, and by a linear program that knows nothing of cuts."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from opticoll import _core
from opticoll.outputs.optimum import optimum

highspy = pytest.importorskip("highspy")

Link = tuple[int, int, int]


def random_links(chance: random.Random) -> tuple[int, int, list[Link]]:
    """Ranks, switches, and links of unequal whole rates, each with another rate back or none."""
    ranks, switches = chance.randint(2, 5), chance.randint(0, 2)
    vertices = ranks + switches
    links = []
    for vertex in range(1, vertices):
        other = chance.randrange(vertex)
        links += [(vertex, other, chance.randint(1, 5)), (other, vertex, chance.randint(1, 5))]
    for _ in range(chance.randint(0, vertices)):
        one, other = chance.sample(range(vertices), 2)
        links.append((one, other, chance.randint(1, 5)))
    return ranks, vertices, links


def least_time(links: list[Link], vertices: int, demands: dict[int, set[int]]) -> float:
    """Seconds for a block of each root to reach all that want it, at GB/s per link.

    A link carries a byte of a root once, for however many: it is loaded by the greatest of the
    flows to those that want the block (Ahlswede et al., Network information flow, 2000; trees do
    as well by Edmonds and by edge splitting).
    """
    model = highspy.Highs()
    model.setOptionValue("output_flag", False)
    rate = model.addVariable(lb=0)
    carried: list[list[object]] = [[] for _ in links]
    for root, wanted in demands.items():
        loads = [model.addVariable(lb=0) for _ in links]
        for place, load in enumerate(loads):
            carried[place].append(load)
        for destination in wanted:
            flow = [model.addVariable(lb=0) for _ in links]
            for one, load in zip(flow, loads, strict=True):
                model.addConstr(one - load <= 0)
            for vertex in range(vertices):
                if vertex != root:
                    into = [one for one, link in zip(flow, links, strict=True) if link[1] == vertex]
                    out = [one for one, link in zip(flow, links, strict=True) if link[0] == vertex]
                    kept = rate if vertex == destination else 0 * rate
                    model.addConstr(model.qsum(into) - model.qsum(out) - kept == 0)
    for loads, link in zip(carried, links, strict=True):
        model.addConstr(model.qsum(loads) <= link[2])
    model.maximize(rate)
    return 1.0 / float(model.getInfo().objective_function_value)


def sends_more(links: list[Link], switches: range) -> bool:
    """Returns whether the links out of some switch have a larger total rate than the links in."""
    out = {switch: sum(link[2] for link in links if link[0] == switch) for switch in switches}
    into = {switch: sum(link[2] for link in links if link[1] == switch) for switch in switches}
    return any(out[switch] > into[switch] for switch in switches)


@pytest.mark.parametrize("seed", range(30))
def test_maximum_flows_and_the_linear_program_find_the_same_optimum(seed: int) -> None:
    chance = random.Random(seed)
    ranks, vertices, links = random_links(chance)
    written = "+".join(f"{start}>{end}@{rate}GB/s" for start, end, rate in links)
    switches = f"switches={vertices - ranks}," if vertices > ranks else ""
    fabric = _core.Fabric(f"custom:ranks={ranks},{switches}links={written}")
    back = [(end, start, rate) for start, end, rate in links]
    everyone = set(range(ranks))
    root = chance.randrange(ranks)
    from_all = {rank: everyone - {rank} for rank in everyone}
    from_root = {root: everyone - {root}}
    for kind, ways, demands in [
        ("all_gather", links, from_all),
        ("reduce_scatter", back, from_all),
        ("broadcast", links, from_root),
        ("reduce", back, from_root),
        ("gather", links, {rank: {root} for rank in everyone - {root}}),
        ("scatter", back, {rank: {root} for rank in everyone - {root}}),
    ]:
        least, most = optimum(
            kind, fabric, root if kind not in ("all_gather", "reduce_scatter") else 0
        )
        assert least is not None
        # No trees are known for data that a switch must send twice; single blocks go once.
        copies = kind not in ("gather", "scatter") and sends_more(ways, range(ranks, vertices))
        assert most == (None if copies else least), kind
        assert float(least) == pytest.approx(least_time(ways, vertices, demands), rel=1e-7), kind


def test_the_worked_example_has_the_same_time() -> None:
    """Two servers of two ranks: 3 GB/s within each, 1 GB/s of each rank to a switch between."""
    cables = [(0, 4, 3), (1, 4, 3), (2, 5, 3), (3, 5, 3), *((rank, 6, 1) for rank in range(4))]
    links = [
        link for one, other, rate in cables for link in ((one, other, rate), (other, one, rate))
    ]
    everyone = set(range(4))
    demands = {rank: everyone - {rank} for rank in everyone}
    assert least_time(links, 7, demands) == pytest.approx(float(Fraction(1)))
