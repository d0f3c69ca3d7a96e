"""Multicasts and aggregations: both verifiers judge plans alike, and formats refuse them."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

import opticoll
from opticoll import _core
from opticoll.formats import graphml, infragraph_file, node_link
from opticoll.reference import read, verify
from support import Run, core_kinds, proved, routes_of, wiring_of

BOTH = "in_network=reduce+multicast"
FABRICS = [
    f"crossbar:ranks=4,{BOTH}",
    "crossbar:ranks=4,in_network=multicast",
    "crossbar:ranks=5,in_network=reduce,without=3",
    "crossbar:ranks=4",
    f"fat_tree:down=2x2,up=1x2,{BOTH}",
    f"fat_tree:down=2x2,up=1x2,without=6,members=0-2,{BOTH}",
    f"fat_tree:arity=2,levels=3,taper=2,{BOTH}",
    "gpu_servers:model=dgx_h100,boxes=2,members=0-2+8",
    "gpu_servers:model=dgx_h100,boxes=2,without=16",
    "gpu_servers:model=dgx_a100,boxes=2,members=0-2+8,in_network=reduce+multicast",
    f"custom:ranks=4,switches=2,links=0-4+1-4+2-5+3-5+4-5+0-5+2>3,{BOTH}",
    f"custom:ranks=4,switches=2,links=0-4+1-4+2-5+3-5+4-5,{BOTH}@4",
    f"custom:ranks=4,switches=3,links=0-4+1-4+2-6+3-6+4-5+5-6+6-4,without=5,{BOTH}@4+6",
    f"custom:ranks=3,switches=1,links=0>3+3-1+3-2+1>0,{BOTH}",
    f"custom:ranks=3,switches=1,links=0-3+1-3+1-2,{BOTH}",
    "torus:dims=2x2",
]
FABRIC_FORMATS = {"graphml": graphml.write, "node_link": node_link.write}
KINDS = ["broadcast", "reduce", "all_reduce", "all_gather", "reduce_scatter"]


def judged(text: str) -> tuple[set[str], set[str]]:
    """Returns the kinds of problems that the core finds and that the reference finds."""
    plan = read(text)
    fabric = _core.Fabric(text.split("\nfabric ")[1].split("\n")[0])
    plan.fabric.wiring = wiring_of(fabric)
    ends = {(one.source, one.destination) for one in plan.transfers}
    plan.fabric.routes = {
        pair: fabric.route(*pair) for pair in ends if max(pair) < fabric.ranks and len({*pair}) > 1
    }
    return core_kinds(text), {problem.kind for problem in verify(plan)}


def drawn(kind: str, fabric: str, chance: random.Random) -> str:
    """Returns the text of a plan of random groups and messages."""
    ranks = _core.Fabric(fabric).ranks
    chunks = ranks if kind in ("all_gather", "reduce_scatter") else 2
    lines = []
    steps = chance.randint(1, 3)
    for step in range(steps):
        lines.append(f"slot {step}")
        for _ in range(chance.randint(1, 3)):
            hub = chance.randrange(ranks)
            others = [rank for rank in range(ranks) if rank != hub]
            members = chance.sample(others, chance.randint(1, len(others)))
            chunk = chance.randrange(chunks)
            action = chance.choice(["copy", "reduce", "multicast", "aggregate"])
            into = action in ("reduce", "aggregate")
            ends = [f"{rank}>{hub}" if into else f"{hub}>{rank}" for rank in members]
            lines += [f"{action} {chunk} {pair}" for pair in ends]
    count = sum(not line.startswith("slot") for line in lines)
    pieces = 1 if kind in ("all_gather", "reduce_scatter") else chunks
    collective = f"{kind} ranks={ranks} root=0 pieces={pieces}"
    head = f"opticoll plan 1\ncollective {collective}\nfabric {fabric}\n"
    head += f"algorithm drawn\nsteps {' '.join(['1'] * steps)}\n"
    return head + "\n".join(lines) + f"\nend {count}\n"


@pytest.mark.parametrize("fabric", FABRICS)
def test_verifiers_agree_on_random_groups(fabric: str) -> None:
    chance = random.Random(fabric)
    fabric = _core.Fabric(fabric).spec
    found = set()
    for _ in range(60):
        text = drawn(chance.choice(KINDS), fabric, chance)
        core, reference = judged(text)
        assert core == reference, text
        found |= core & {"multicast", "aggregation"}
    if fabric.startswith("crossbar"):
        work = _core.Fabric(fabric).option("in_network") or "none"
        unable = {"multicast": "multicast", "reduce": "aggregation"}
        assert found == {kind for word, kind in unable.items() if word not in work}


@pytest.mark.parametrize("fabric", FABRICS)
def test_verifiers_agree_on_mutants(fabric: str) -> None:
    """Copies become multicasts, members are missing, and sums go elsewhere."""
    chance = random.Random(fabric)
    for kind in KINDS:
        for algorithm in ("nvls", "direct"):
            if algorithm not in {
                record["name"]
                for record in _core.records("algorithms")
                if record["collective"] == _core.collective_kind(kind)
            }:
                continue
            try:
                plan = opticoll.plan(kind, fabric, algorithm, size="1KiB")
            except opticoll.OpticollError:
                continue
            text, chunks = plan.to_text(), plan.collective.chunks
            for _ in range(10):
                lines = text.split("\n")
                places = [
                    place
                    for place, line in enumerate(lines)
                    if line.split(" ")[0] in ("copy", "reduce", "multicast", "aggregate")
                ]
                place = chance.choice(places)
                word, *rest = lines[place].split(" ")
                other = {"copy": "multicast", "reduce": "aggregate"}
                other |= {new: old for old, new in other.items()}
                if chance.random() < 0.5:
                    lines[place] = " ".join([other[word], *rest])
                else:
                    rest[0] = str((int(rest[0].split("+")[0]) + 1) % chunks)
                    lines[place] = " ".join([word, *rest])
                core, reference = judged("\n".join(lines))
                assert core == reference, "\n".join(lines)


@pytest.mark.parametrize("kind", KINDS)
def test_nvls_is_proved_by_both(kind: str) -> None:
    for fabric in (f"crossbar:ranks=5,{BOTH}", "dgx_h100", f"fat_tree:down=2x3,up=1x2,{BOTH}"):
        plan = opticoll.plan(kind, fabric, "nvls", size="1MB")
        assert routes_of(plan)
        proved(plan)
        assert opticoll.Plan.from_text(plan.to_text()) == plan


def test_servers_are_proved_by_both() -> None:
    for algorithm in ("nvls_rails", "nvls_tree"):
        spec = f"{algorithm}:segments=2"
        proved(opticoll.plan("all_reduce", "dgx_h100:boxes=3", spec, size="1MB"))


@pytest.mark.parametrize("form", ["graphml", "node_link"])
@pytest.mark.parametrize(
    "fabric",
    [
        "dgx_h100",
        "dgx_h100:boxes=2,members=0-7+9-15",
        "dgx_h100:boxes=2,in_network=multicast",
        f"fat_tree:down=2x2,up=1x2,{BOTH}",
        "custom:ranks=2,switches=3,links=0-2+2-3+3-4+4-1,in_network=reduce@2+4",
        "dgx_a100",
    ],
)
def test_graphs_keep_the_work_of_each_switch(form: str, fabric: str, tmp_path: Path) -> None:
    source = opticoll.read_fabric(fabric)
    file = tmp_path / {"graphml": "fabric.graphml", "node_link": "fabric.json"}[form]
    FABRIC_FORMATS[form](source, file)
    back = opticoll.read_fabric(file)
    assert back.switch_work == source.as_custom().switch_work == source.switch_work
    assert _core.Fabric(back.spec).switch_work == back.switch_work
    assert ("multicast" in file.read_text()) == any("multicast" in one for one in back.switch_work)


def test_infragraph_cannot_say_that_switches_work(tmp_path: Path) -> None:
    with pytest.raises(opticoll.OpticollError, match="in_network=none"):
        infragraph_file.write(opticoll.read_fabric("dgx_h100"), tmp_path / "fabric.yaml")
    infragraph_file.write(
        opticoll.read_fabric("dgx_h100:in_network=none"), tmp_path / "fabric.yaml"
    )


NODES = [
    {"id": "a"},
    {"id": "b"},
    {"id": "s", "kind": "switch", "in_network": "reduce"},
    {"id": "t", "kind": "switch", "in_network": "none"},
]


@pytest.mark.parametrize(
    ("nodes", "graph", "problem"),
    [
        ({0: "reduce"}, {}, "the rank `a` only sends and receives"),
        ({3: "multicast"}, {}, "`multicast` differs from `reduce` of another switch"),
        ({2: "sum"}, {}, "must be none or multicast or reduce"),
        ({}, {"in_network": "reduce"}, "write it for the graph, or for switches"),
    ],
)
def test_contradicting_works_of_switches_are_refused(
    nodes: dict[int, str], graph: dict[str, str], problem: str
) -> None:
    changed = [
        {**node, "in_network": nodes[number]} if number in nodes else node
        for number, node in enumerate(NODES)
    ]
    links = [{"source": a, "target": b} for a, b in ("as", "st", "tb")]
    with pytest.raises(opticoll.OpticollError, match=problem):
        node_link.fabric_of({"graph": graph, "nodes": changed, "links": links})


def test_switches_of_a_file_work_as_the_file_says() -> None:
    links = [{"source": a, "target": b} for a, b in ("as", "st", "tb")]
    of_nodes = node_link.fabric_of({"nodes": NODES, "links": links})
    assert of_nodes.switch_work == ["reduce", "none"]
    plain = [{key: node[key] for key in node if key != "in_network"} for node in NODES]
    whole = {"graph": {"in_network": BOTH.partition("=")[2]}, "nodes": plain, "links": links}
    assert node_link.fabric_of(whole).switch_work == ["reduce+multicast"] * 2


def test_groups_need_routes() -> None:
    plan = opticoll.plan("broadcast", f"crossbar:ranks=3,{BOTH}", "nvls", size="1MB")
    text = read(plan.to_text())
    text.fabric.wiring = wiring_of(plan.fabric)
    assert [problem.kind for problem in verify(text)] == ["multicast"]


@pytest.mark.parametrize(
    ("kind", "fabric", "algorithm"),
    [
        *((kind, "dgx_h100", "nvls") for kind in KINDS),
        ("all_reduce", "dgx_h100:boxes=3", "nvls_rails"),
        ("all_reduce", "dgx_h100:boxes=3", "nvls_tree"),
    ],
)
def test_programs_compute_sums_and_copies_of_switches(
    run: Run, kind: str, fabric: str, algorithm: str
) -> None:
    words = ("--fabric", fabric, "--algorithm", algorithm, "--size", "96KiB")
    rows = json.loads(run("run", kind, *words, "--json").out)
    found = {(row["in_network"], row["wrong"], row["verified"]) for row in rows}
    assert found == {(True, 0, True)}
    assert "Switches add and multicast in this plan" in run("run", kind, *words).out
    plain = run("run", kind, "--ranks", 8, "--size", "1KiB")
    assert "Switches" not in plain.out


def test_replay_and_groups_of_training_say_that_switches_only_forward(run: Run) -> None:
    said = "switches neither add nor multicast"
    trace = Path(__file__).parent.parent / "examples" / "hello.csv"
    for work, expected in ((BOTH, True), ("in_network=none", False)):
        replayed = run("replay", trace, "--fabric", f"crossbar:ranks=4,{work}").out
        assert (said in " ".join(replayed.split())) == expected
        model = "gpt:layers=2,width=256,heads=4"
        words = ("--model", model, "--batch", 2, "--tensor-parallel", 2)
        trained = run("train", "--fabric", f"dgx_h100:{work}", *words).out
        assert (said in " ".join(trained.split())) == expected


@pytest.mark.parametrize("form", ["msccl", "chakra", "goal"])
def test_formats_without_groups_refuse(form: str, tmp_path: Path) -> None:
    plan = opticoll.plan("all_reduce", f"crossbar:ranks=4,{BOTH}", "nvls", size="1MB")
    with pytest.raises(opticoll.OpticollError, match="in_network=none"):
        plan.export(tmp_path / "out", form)


def test_sends_keep_groups(tmp_path: Path) -> None:
    plan = opticoll.plan("broadcast", f"crossbar:ranks=3,{BOTH}", "nvls", size="1MB")
    plan.export(tmp_path / "sends.csv", "sends")
    assert (tmp_path / "sends.csv").read_text().splitlines()[-1] == "0,0,2,0,1,multicast"
