"""Plans on graphs of fibres: the reference agrees with the core on plans and mutants."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import assume, given, settings

from fibre_plans import Drawn, cases, drawn_spec, judged
from opticoll import _core
from opticoll.reference import NotAPlan, graph, read
from opticoll.reference.families import options_of, read_fabric
from opticoll.reference.graph import Light
from opticoll.reference.ring import Ring
from support import reference_kinds, wiring_of
from test_reference_agrees import MANY, mutants, shared_light


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
    for seed in range(300):
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
        *("double_reduction", "lost_contribution", "self_transfer", "chunk_range"),
    }


def as_graph(text: str) -> str | None:
    """Returns the plan of a ring as a plan of a graph; None if the graph cannot say it alike."""
    plan = read(text)
    ring = plan.fabric
    assert isinstance(ring, Ring)
    head = text.split("\n")[2].removeprefix("fabric wdm_ring:")
    options = options_of(head)
    if ring.nodes < 3 or {"broken", "launch_power"} & options.keys():
        return None
    del options["ranks"]
    if (ports := options.pop("ports", "")) and ring.ports is not None:
        options |= {"transmitters": ports, "receivers": ports}
    cables = "+".join(f"{node}-{(node + 1) % ring.nodes}" for node in range(ring.nodes))
    words = [f"ranks={ring.nodes}", f"links={cables}"]
    words += [f"{key}={value}" for key, value in options.items()]
    transfers = []
    for transfer in plan.transfers:
        clockwise = transfer.light.way == "cw"
        nodes = ring.links(transfer)
        route = tuple(
            2 * node if clockwise else 2 * (node - 1) % (2 * ring.nodes) + 1 for node in nodes
        )
        light = Light(transfer.light.fibre, transfer.light.wavelength, route or None)
        transfers.append(replace(transfer, light=light))
    return Drawn(f"wdm_graph:{','.join(words)}", plan.collective, plan.steps, transfers).text


@settings(MANY, max_examples=60)
@given(mutants() | shared_light())
def test_a_ring_as_a_graph_has_the_verdict_of_the_ring(text: str) -> None:
    changed = as_graph(text)
    assume(changed is not None)
    # The plan of the graph claims nothing.
    assert reference_kinds(changed or "") == reference_kinds(text) - {"claim"}
