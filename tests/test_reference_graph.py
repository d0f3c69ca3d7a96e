"""Plans on graphs of fibres: the reference agrees with the core on plans and mutants."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from fibre_plans import cases, drawn_spec, judged
from opticoll import _core
from opticoll.reference import NotAPlan, graph
from opticoll.reference.families import read_fabric
from support import ALL_CASES, wiring_of


def test_links_are_numbered_as_by_the_core() -> None:
    chance, connected = random.Random(5), 0
    for _ in range(400):
        family, _, text = drawn_spec(chance).partition(":")
        options = [option for option in text.split(",") if option.split("=")[0] not in graph.OWN]
        # Light passes a rank that failed, but a message on an electrical link does not.
        if "without=1" in options:
            continue
        shape = ",".join(option for option in options if not option.startswith("degraded=w"))
        electrical = f"{graph.LINKS_OF[family]}:{shape}"
        try:
            fabric = read_fabric(f"{family}:wavelengths=1,{shape}")
        except NotAPlan:
            with pytest.raises(_core.FabricError):
                _core.Fabric(electrical)
            continue
        assert isinstance(fabric, graph.Graph)
        core = _core.Fabric(electrical)
        assert fabric.ranks == core.ranks, electrical
        assert [link[:3] for link in fabric.network.links] == wiring_of(core), electrical
        connected += 1
    assert connected > 200


def test_both_judge_drawn_plans_and_mutants_alike() -> None:
    fates: Counter[str] = Counter()
    kinds: set[str] = set()
    for seed in range(2000 if ALL_CASES else 400):
        for text in cases(seed):
            core, reference = judged(text)
            assert core == reference, text
            fates["refused" if core is None else "broken" if core else "sound"] += 1
            kinds |= core or set()
    # Each of the rules is broken now and then, and some plans break none.
    assert min(fates[fate] for fate in ("refused", "broken", "sound")) > 50, fates
    assert kinds >= {
        *("route", "collision", "overload", "conversion", "ports", "reach", "dead_wavelength"),
        *("fibre_range", "wavelength_range", "missing", "duplicate", "not_held"),
        *("double_reduction", "lost_contribution", "self_transfer"),
    }
