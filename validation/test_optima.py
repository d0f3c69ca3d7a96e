"""Lower bounds of all_gather on published topologies against their exact optima.

The optimum of an all_gather of a block per rank is known (Zhao et al., ForestColl, 2024). It is
the greatest ratio, over all sets of ranks and switches that leave a rank out, of the ranks in the
set to the rate of the links that leave the set. The values below are these ratios, in seconds for
blocks of 1 GB. No bound may be above them; on these topologies the bound is equal to them.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import floor

import pytest

import opticoll

Link = tuple[str, str, int]
"""Two vertices and the rate in GB/s in each direction."""

MI250 = """0 1:4 4:2 8:1; 1 5:1 9:1 10:1; 2 3:4 6:1 9:1 10:1; 3 7:2 11:1; 4 5:4 6:1; 5 6:1 7:1;
6 7:4; 8 9:4 12:2; 9 13:1; 10 11:4 14:1; 11 15:2; 12 13:4 14:1; 13 14:1 15:1; 14 15:4"""
"""Dies of a box: each die with its neighbours of higher number and the numbers of links."""

DGX_1 = "0-1x2 0-4x2 1-3x2 2-3x2 2-6x2 4-5x2 5-7x2 6-7x2 0-2 0-3 1-2 1-5 3-7 4-6 4-7 5-6"


def dgx(boxes: int, inside: int, outside: int, switches: int) -> Iterator[Link]:
    """Boxes of 8 GPUs at one switch, whose network cards lead to switches of the cluster."""
    for box in range(boxes):
        for gpu in range(8):
            yield f"rank{box}.{gpu}", f"box{box}", inside
            if boxes > 1:
                yield f"rank{box}.{gpu}", f"card{box}.{gpu}", outside
                yield f"card{box}.{gpu}", f"cluster{gpu % switches}", outside


def mi250(boxes: int) -> Iterator[Link]:
    """Boxes of 16 dies with links of 50 GB/s, each die with 16 GB/s to the cluster's switch."""
    for box in range(boxes):
        for row in MI250.split(";"):
            die, *ends = row.split()
            for other, links in (end.split(":") for end in ends):
                yield f"rank{box}.{die}", f"rank{box}.{other}", 50 * int(links)
        if boxes > 1:
            yield from ((f"rank{box}.{die}", "cluster", 16) for die in range(16))


def dgx_1() -> Iterator[Link]:
    """Returns 8 GPUs with single and double links of 25 GB/s."""
    for link in DGX_1.split():
        ends, _, number = link.partition("x")
        left, right = ends.split("-")
        yield f"rank{left}", f"rank{right}", 25 * int(number or 1)


def fabric(links: list[Link]) -> opticoll.Fabric:
    """Returns a custom fabric of these links, without latency."""
    names = dict.fromkeys(name for left, right, _ in links for name in (left, right))
    ranks = [name for name in names if name.startswith("rank")]
    number = {name: at for at, name in enumerate(sorted(names, key=lambda one: one not in ranks))}
    shown = "+".join(f"{number[left]}-{number[right]}@{rate}GB/s" for left, right, rate in links)
    switches = len(names) - len(ranks)
    return opticoll.Fabric(f"custom:ranks={len(ranks)},switches={switches},links={shown}")


@pytest.mark.parametrize(
    ("links", "optimum"),
    [
        pytest.param(list(dgx(1, 300, 25, 2)), Fraction(7, 300), id="DGX A100"),
        pytest.param(list(dgx(2, 300, 25, 2)), Fraction(3, 65), id="2 DGX A100"),
        pytest.param(list(dgx(4, 300, 25, 2)), Fraction(3, 25), id="4 DGX A100"),
        pytest.param(list(dgx(1, 450, 50, 1)), Fraction(7, 450), id="DGX H100"),
        pytest.param(list(dgx(2, 450, 50, 1)), Fraction(3, 100), id="2 DGX H100"),
        pytest.param(list(dgx(4, 450, 50, 1)), Fraction(31, 500), id="4 DGX H100"),
        pytest.param(list(mi250(1)), Fraction(7, 150), id="MI250"),
        pytest.param(list(mi250(2)), Fraction(15, 166), id="2 MI250"),
        pytest.param(list(dgx_1()), Fraction(7, 150), id="DGX-1"),
    ],
)
def test_the_bound_of_an_all_gather_is_its_optimum(links: list[Link], optimum: Fraction) -> None:
    plan = opticoll.plan("all_gather", fabric(links), "ring")
    assert plan.verify() == []
    bound_ps = floor(opticoll.measure(plan, "1GB").bound_time_s * 10**12 + Fraction(1, 2))
    assert bound_ps == floor(optimum * 10**12)
