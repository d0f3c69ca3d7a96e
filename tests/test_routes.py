"""Routes that a plan names: both verifiers judge them alike."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import opticoll
from opticoll import _core
from opticoll.reference import read, verify, verify_text
from support import core_kinds, wiring_of

FABRICS = [
    "custom:ranks=2,switches=2,links=0-2+1-2+0-3+1-3",
    "custom:ranks=3,switches=2,links=0~3+1~3+2-3+0>4+4>1+4>2+1-2",
    "torus:dims=3x3",
    "fat_tree:down=2x2,up=1x2",
    "gpu_servers:model=dgx1",
]


def judged(text: str) -> tuple[set[str], set[str]]:
    """Returns the kinds of problems that the core finds and that the reference finds."""
    plan = read(text)
    spec = text.split("\nfabric ")[1].split("\n")[0]
    plan.fabric.wiring = wiring_of(_core.Fabric(spec))
    return core_kinds(text), {problem.kind for problem in verify(plan)}


def walk(wiring: list[tuple[int, int, bool]], source: int, chance: random.Random) -> list[int]:
    """Returns some consecutive links from a vertex on."""
    here, links = source, []
    for _ in range(chance.randint(1, 4)):
        leaving = [
            (link, end if start == here else start)
            for link, (start, end, both) in enumerate(wiring)
            if start == here or (both and end == here)
        ]
        if not leaving:
            break
        link, here = chance.choice(leaving)
        links.append(link)
    return links


def mutated(links: list[int], count: int, chance: random.Random) -> list[int]:
    """Returns a route with a link missing, two exchanged, another link, or no change."""
    links = list(links)
    place = chance.randrange(len(links))
    kind = chance.choice(["none", "drop", "exchange", "other", "outside"])
    if kind == "drop" and len(links) > 1:
        del links[place]
    elif kind == "exchange":
        other = chance.randrange(len(links))
        links[place], links[other] = links[other], links[place]
    elif kind == "other":
        links[place] = chance.randrange(count)
    elif kind == "outside":
        links[place] = count + chance.randrange(3)
    return links


@pytest.mark.parametrize("spec", FABRICS)
def test_both_verifiers_judge_mutated_routes_alike(spec: str) -> None:
    fabric = _core.Fabric(spec)
    wiring = wiring_of(fabric)
    chance = random.Random(spec)
    head = _core.plan("broadcast", fabric, "linear").to_text().split("\nslot")[0]
    ranks = fabric.ranks
    head = head.replace(head.split("\nsteps")[1], f" {' '.join('1' * (ranks - 1))}")
    right = 0
    for _ in range(200):
        lines = []
        for step, rank in enumerate(range(1, ranks)):
            links = fabric.route(0, rank) if chance.random() < 0.5 else walk(wiring, 0, chance)
            named = ".".join(map(str, mutated(links, len(wiring), chance)))
            via = f" via {named}" if chance.random() < 0.5 else ""
            lines.append(f"slot {step}\ncopy 0 0>{rank}{via}")
        text = "\n".join([head, *lines, f"end {ranks - 1}\n"])
        core, reference = judged(text)
        assert core == reference, text
        right += not core
    assert 0 < right < 200


def test_without_the_links_no_named_route_is_proved() -> None:
    text = (
        "opticoll plan 1\ncollective broadcast ranks=2 root=0 pieces=1\n"
        f"fabric {FABRICS[0]}\nalgorithm by hand\nsteps 1\nslot 0\ncopy 0 0>1 via 4.7\nend 1\n"
    )
    assert verify_text(text) == [
        "slot 0: transfer 0 (rank 0 to 1) goes over link 4, which is not known here"
    ]
    assert verify_text(text, wiring_of(_core.Fabric(FABRICS[0]))) == []
    assert _core.Plan.from_text(text).route(0) == [4, 7]
    usual = _core.Plan.from_text(text.replace(" via 4.7", ""))
    assert usual.route(0) == usual.fabric.route(0, 1)


@pytest.mark.parametrize("name", ["named.xml", "named.csv"])
def test_what_cannot_say_routes_has_the_plan_beside_it(tmp_path: Path, name: str) -> None:
    text = (
        "opticoll plan 1\ncollective broadcast ranks=2 root=0 pieces=1\n"
        f"fabric {FABRICS[0]}\nalgorithm by hand\nsteps 1\nslot 0\ncopy 0 0>1 via 4.7\nend 1\n"
    )
    plan = _core.Plan.from_text(text)
    path = tmp_path / name
    assert plan.names_routes
    assert plan.export(path) == [path, tmp_path / f"{name}.plan"]
    assert opticoll.read_plan(tmp_path / f"{name}.plan") == plan
    usual = _core.Plan.from_text(text.replace(" via 4.7", ""))
    assert not usual.names_routes
    assert usual.export(path) == [path]


def test_a_plan_that_names_routes_runs() -> None:
    plan = opticoll.plan("all_to_all", "torus:dims=2x4", "concurrent_flow")
    assert plan.names_routes
    assert [row.wrong for row in plan.run("1KiB")] == [0]
