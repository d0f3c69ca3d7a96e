"""Every algorithm on many small rings and switches: two verifiers that share no code must agree."""

from __future__ import annotations

import pytest

import opticoll
from opticoll import _core, reference
from opticoll.errors import AlgorithmError

FABRICS = (
    "wdm_ring:ranks={ranks},wavelengths=1",
    "wdm_ring:ranks={ranks},wavelengths=3,fibres=2",
    "wdm_ring:ranks={ranks},wavelengths=4,ports=2",
    "wdm_ring:ranks={ranks},wavelengths=2,converters=full",
    "crossbar:ranks={ranks}",
)
ALGORITHMS = sorted({(str(record["collective"]), record["name"]) for record in _core.algorithms()})


@pytest.mark.parametrize(("collective", "algorithm"), ALGORITHMS)
def test_both_verifiers_accept_every_plan(collective: str, algorithm: str) -> None:
    accepted = 0
    for ranks in (1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 16, 17):
        for spelling in FABRICS:
            fabric = opticoll.Fabric(spelling.format(ranks=ranks))
            try:
                plan = opticoll.plan(collective, fabric, algorithm)
            except AlgorithmError:
                continue
            assert plan.verify() == [], (ranks, spelling)
            assert reference.verify_text(plan.to_text()) == [], (ranks, spelling)
            accepted += 1
    assert accepted >= 20, "the algorithm runs on most of these rings"
