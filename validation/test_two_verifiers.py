"""Every algorithm on small rings, switches, dragonflies and grids: two verifiers agree."""

from __future__ import annotations

import pytest

import opticoll
from opticoll import _core, reference
from opticoll.errors import AlgorithmError

SIZED = (
    "wdm_ring:ranks={ranks},wavelengths=1",
    "wdm_ring:ranks={ranks},wavelengths=3,fibres=2",
    "wdm_ring:ranks={ranks},wavelengths=4,ports=2",
    "wdm_ring:ranks={ranks},wavelengths=2,converters=full",
    "crossbar:ranks={ranks}",
    "lightpath_grid:ranks={ranks},ports=2",
)
FABRICS = (
    *(one.format(ranks=n) for n in (1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 16, 17) for one in SIZED),
    *(
        f"dragonfly:terminals_per_router={terminals},routers_per_group={routers},"
        f"global_per_router=2,groups={groups}"
        for terminals in (1, 2, 3)
        for routers in (2, 3, 4)
        for groups in (1, 2, 3)
    ),
)
GRIDS = (
    *(f"rows={rows},columns={columns}" for rows in range(1, 5) for columns in range(1, 5)),
    "rows=2,columns=8",
    "rows=5,columns=3",
    "rows=4,columns=4,plan=cyclic",
    "rows=3,columns=3,nodes=0-7",
    "rows=3,columns=3,dead_transceivers=4.row,dead_ports=column0.2",
)
ALGORITHMS = sorted(
    {(str(record["collective"]), record["name"]) for record in _core.records("algorithms")}
)


@pytest.mark.parametrize(("collective", "algorithm"), ALGORITHMS)
def test_both_verifiers_accept_every_plan(collective: str, algorithm: str) -> None:
    accepted = 0
    for spelling in FABRICS:
        try:
            plan = opticoll.plan(collective, spelling, algorithm)
        except AlgorithmError:
            continue
        assert plan.verify() == [], spelling
        assert reference.verify_text(plan.to_text()) == [], spelling
        accepted += 1
    assert accepted >= 20, "the algorithm runs on most of these, or on all dragonflies"


@pytest.mark.parametrize(("collective", "algorithm"), ALGORITHMS)
def test_both_verifiers_accept_every_plan_on_grids(collective: str, algorithm: str) -> None:
    accepted, refused = 0, []
    for options in GRIDS:
        try:
            plan = opticoll.plan(collective, f"wss_grid:{options}", algorithm)
        except AlgorithmError as error:
            refused.append(str(error))
            continue
        assert plan.verify() == [], options
        assert reference.verify_text(plan.to_text()) == [], options
        accepted += 1
    # All algorithms run on grids except those for rings of light or for dragonflies.
    elsewhere = all("needs a wdm_ring" in reason or "dragonfly" in reason for reason in refused)
    assert accepted >= 5 or (accepted == 0 and elsewhere), refused
