"""Fabrics as InfraGraph, GraphML and node-link JSON: read, written, and refused with a place."""

from __future__ import annotations

import json
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import opticoll
from opticoll.errors import ConfigError, ReadingNote
from opticoll.inputs.fabric_files import parse_fabric, read_graph
from support import Run


def link(name: str, **physical: Any) -> dict[str, Any]:
    return {"name": name, "physical": physical} if physical else {"name": name}


def infra(**changes: Any) -> dict[str, Any]:
    """Returns two servers of two XPUs on a bus, and a two-port switch that joins their NICs."""
    server = {
        "name": "server",
        "components": [
            {"name": "xpu", "count": 2, "choice": "xpu"},
            {"name": "nic", "count": 1, "choice": "nic"},
            {"name": "spare", "count": 9, "choice": "memory"},
        ],
        "links": [
            link(
                "bus",
                bandwidth={"choice": "gigabytes_per_second", "gigabytes_per_second": 50},
                latency={"choice": "ns", "ns": 250},
            )
        ],
        "edges": [
            {
                "ep1": {"component": "xpu"},
                "ep2": {"component": "nic[0]"},
                "scheme": "many2many",
                "link": "bus",
            }
        ],
    }
    switch = {"name": "switch", "components": [{"name": "port", "count": 2, "choice": "port"}]}
    ethernet = link("ethernet", bandwidth={"gigabits_per_second": 100})
    whole: dict[str, Any] = {
        "name": "pair",
        "devices": [server, switch],
        "links": [ethernet],
        "instances": [
            {"name": "host", "device": "server", "count": 2},
            {"name": "switch", "device": "switch", "count": 1},
        ],
        "edges": [
            {
                "ep1": {"instance": "host[:]", "component": "nic"},
                "ep2": {"instance": "switch[0]", "component": "port[0:2]"},
                "scheme": "one2one",
                "link": "ethernet",
            },
            {
                "ep1": {"instance": "switch", "component": "port[0]"},
                "ep2": {"instance": "switch", "component": "port[-1]"},
                "scheme": "one2one",
                "link": "ethernet",
            },
        ],
    }
    return whole | changes


NAMES = "host.0.xpu.0+host.0.xpu.1+host.1.xpu.0+host.1.xpu.1+host.0.nic.0+host.1.nic.0"
CABLES = "0-4@400Gb/s@250ns+1-4@400Gb/s@250ns+2-5@400Gb/s@250ns+3-5@400Gb/s@250ns+4-6+5-7+6-7"
PAIR = opticoll.Fabric(
    f"custom:ranks=4,switches=4,links={CABLES},names={NAMES}+switch.0.port.0+switch.0.port.1"
)
"""Four XPUs; the switch's links have 100 Gb/s, the default of custom fabrics."""


def test_infragraph_is_expanded_to_ranks_and_switches(run: Run, tmp_path: Path) -> None:
    as_json, as_yaml = tmp_path / "pair.json", tmp_path / "pair.yaml"
    as_json.write_text(json.dumps(infra()))
    # JSON is YAML.
    as_yaml.write_text(json.dumps(infra()))
    assert parse_fabric(str(as_json)) == PAIR
    assert parse_fabric(str(as_yaml)) == PAIR
    # Two blocks go from a server to the other, over 12.5 GB/s.
    finished = run("bound", "all_gather", "--fabric", as_yaml, "--json")
    assert Fraction(json.loads(finished.out)["optimum"]) == 2 / Fraction("12.5")


def test_links_without_a_bandwidth_have_the_rate_beside_the_graph(run: Run, tmp_path: Path) -> None:
    pair = infra(links=[link("ethernet", latency={"us": 1})])
    (tmp_path / "pair.yaml").write_text(json.dumps(pair))
    finished = run("bound", "all_gather", "--fabric", tmp_path / "pair.yaml")
    assert finished.code == 2
    for word in ("pair.yaml, line 1, links.0", "`ethernet` has no bandwidth", "`rate`"):
        assert word in finished.err
    path = tmp_path / "fabric.yaml"
    path.write_text("family: custom\ngraph: pair.yaml\nrate: 200Gb/s\nlatency: 5us\n")
    fabric = parse_fabric(str(path))
    assert (fabric.link_rates or [])[-1] == 200 * 10**9
    assert "5-7@200Gb/s@1us" in fabric.spec
    path.write_text("family: custom\ngraph: pair.yaml\nrate: 200\n")
    finished = run("bound", "all_gather", "--fabric", path)
    assert finished.code == 2
    assert "give the unit" in finished.err


END = {"instance": "host[:]", "component": "nic"}


def edge(**changes: Any) -> list[dict[str, Any]]:
    whole: dict[str, Any] = infra()["edges"][0]
    return [whole | changes]


def hosts(count: int, device: str = "server") -> dict[str, Any]:
    return {"instances": [{"name": "host", "device": device, "count": count}]}


def at(**end: str) -> dict[str, Any]:
    return {"edges": edge(ep1=END | end)}


def slow(**bandwidth: object) -> dict[str, Any]:
    return {"links": [link("ethernet", bandwidth=bandwidth)]}


BAD_INFRA: dict[str, tuple[dict[str, Any], str]] = {
    "no devices": ({"devices": []}, "devices | missing"),
    "not a set of fields": ({"devices": [3]}, "devices.0 | not a set of fields"),
    "another field": ({"device": 3}, "device | did you mean `devices`?"),
    "no such device": (hosts(2, "box"), "instances.0.device | no device `box`"),
    "two instances of a name": (
        {"instances": 2 * hosts(2)["instances"]},
        "instances.1.name | two of the name `host`",
    ),
    "a count that is none": (hosts(-2), "instances.0.count | not a whole number"),
    "too many components": (hosts(65536), "instances.0.count | more than 65536 components"),
    "nothing, very often": (
        {
            "devices": [
                {"name": "a", "components": [{"name": "b", "count": 65536, "choice": "device"}]},
                {"name": "b", "components": [{"name": "c", "count": 65536, "choice": "device"}]},
                {"name": "c", "components": [{"name": "xpu", "count": 0, "choice": "xpu"}]},
            ],
            **hosts(1, "a"),
        },
        "devices.1.components.0 | more than 2097152",
    ),
    "edges of many components, very often": (
        {
            **hosts(4096),
            "edges": 9 * edge(ep1=END, ep2=END, scheme="many2many"),
        },
        "edges.0 | more than 2097152",
    ),
    "no such instance": (at(instance="hst"), "edges.0.ep1.instance | did you mean `host`?"),
    "no instance": ({"edges": edge(ep1={"component": "nic"})}, "edges.0.ep1.instance | missing"),
    "no such component": (at(component="nix"), "edges.0.ep1.component | did you mean `nic`?"),
    "no device around": (
        at(component="nic.port"),
        "edges.0.ep1.component | no device around `port`",
    ),
    "no slice": (at(component="nic[0:1:2:3]"), "edges.0.ep1.component | not a name with a slice"),
    "beyond the end": (at(component="nic[1]"), "edges.0.ep1.component | there are only 1"),
    "a step of 0": (at(instance="host[::0]"), "edges.0.ep1.instance | a step is not 0"),
    "an unknown scheme": ({"edges": edge(scheme="ring")}, "edges.0.scheme | `ring` is not read"),
    "no such link": ({"edges": edge(link="bus")}, "edges.0.link | no link `bus`"),
    "a bandwidth in transfers": (
        slow(gigatransfers_per_second=16),
        "links.0 | no bandwidth in bits or bytes",
    ),
    "no number": (
        slow(gigabits_per_second="fast"),
        "links.0.physical.bandwidth.gigabits_per_second | `fast`",
    ),
    "nothing joined": ({"edges": []}, "no links lead from"),
}


@pytest.mark.parametrize("name", BAD_INFRA)
def test_bad_infragraph_is_refused_with_its_place(tmp_path: Path, name: str) -> None:
    changes, words = BAD_INFRA[name]
    path = tmp_path / "pair.json"
    path.write_text(json.dumps(infra(**changes)))
    with pytest.raises(ConfigError) as caught:
        read_graph(path)
    for word in ("pair.json", *words.split(" | ")):
        assert word in str(caught.value)


def test_one2one_of_unequal_numbers_joins_the_first_of_both_ends(tmp_path: Path) -> None:
    changed = infra(description="Two servers.\nA second line.")
    changed["edges"][0]["ep1"]["instance"] = "host[0]"
    changed["edges"].insert(
        1,
        {
            "ep1": {"instance": "host[1]", "component": "nic"},
            "ep2": {"instance": "switch[0]", "component": "port[1]"},
            "scheme": "one2one",
            "link": "ethernet",
        },
    )
    path = tmp_path / "pair.yaml"
    path.write_text("description: |-\n  Two servers.\n  A second line.\n" + yaml_of(changed))
    with pytest.warns(ReadingNote, match="1 edge of the scheme one2one with unequal numbers"):
        assert parse_fabric(str(path)) == PAIR


def yaml_of(content: dict[str, Any]) -> str:
    """Returns YAML with a line for each field except `description`; JSON is YAML."""
    lines = (f"{key}: {json.dumps(value)}\n" for key, value in content.items())
    return "".join(line for line in lines if not line.startswith("description"))


def test_devices_in_themselves_and_without_xpus_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "pair.json"
    devices = infra()["devices"]
    devices[1]["components"].append({"name": "switch", "count": 1, "choice": "device"})
    path.write_text(json.dumps(infra(devices=devices)))
    with pytest.raises(ConfigError, match="nested more than 16 deep"):
        read_graph(path)
    path.write_text(json.dumps(infra()).replace('"xpu"', '"cpu"'))
    with pytest.raises(ConfigError, match="there are no ranks"):
        read_graph(path)


def test_protobuf_of_infragraph_is_read(tmp_path: Path) -> None:
    pytest.importorskip("infragraph")
    from google.protobuf.json_format import ParseDict
    from infragraph.infragraph_pb2 import Infrastructure

    path = tmp_path / "pair.pb"
    path.write_bytes(ParseDict(infra(), Infrastructure()).SerializeToString())
    assert parse_fabric(str(path)) == PAIR
    path.write_bytes(b"\xff\xff")
    with pytest.raises(ConfigError, match="not valid protobuf of InfraGraph"):
        read_graph(path)


@pytest.mark.parametrize(
    "name", ["clos", "rack", "dgx1", "dgx_a100", "dgx_h100", "dgx_gb200", "single tier"]
)
def test_blueprints_have_the_edges_that_infragraph_itself_makes(tmp_path: Path, name: str) -> None:
    blueprints = pytest.importorskip("infragraph.blueprints.fabrics.clos_fat_tree_fabric")
    from infragraph import Api
    from infragraph.blueprints.devices.generic.generic_switch import Switch
    from infragraph.blueprints.devices.generic.server import Server
    from infragraph.blueprints.devices.ironwood_rack import IronwoodRack
    from infragraph.blueprints.devices.nvidia.cx5 import Cx5
    from infragraph.blueprints.devices.nvidia.dgx import NvidiaDGX
    from infragraph.blueprints.fabrics.single_tier_fabric import SingleTierFabric
    from infragraph.infragraph_service import InfraGraphService

    if name == "clos":
        described = blueprints.ClosFatTreeFabric(Switch(4), Server(), 3, [100, 200, 400])
    elif name == "single tier":
        described = SingleTierFabric(Server(), 3)
    else:
        nic = Cx5(variant="cx5_100g_dual")
        device = IronwoodRack() if name == "rack" else NvidiaDGX(name, nic)
        described = Api().infrastructure()
        described.devices.append(device).append(nic)
        described.instances.add(name="box", device=device.name, count=2)
    service = InfraGraphService()
    service.set_graph(described)
    theirs = service.get_networkx_graph()
    path = tmp_path / "blueprint.yaml"
    path.write_text(described.serialize("yaml"))
    if name in ("clos", "single tier"):
        fabric = read_graph(path, rate="1Gb/s")
        assert fabric.ranks == [kind for _, kind in theirs.nodes(data="type")].count("xpu")
        ours = {frozenset(ends.split(" -> ")) for ends in fabric.link_names}
        assert ours == {frozenset(ends) for ends in theirs.edges}
        return
    # Two boxes that nothing joins.
    with pytest.raises(ConfigError, match=r"no links lead from box\.0\..* to box\.1\."):
        read_graph(path, rate="1Gb/s")
    described.instances[0].count = 1
    service.set_graph(described)
    path.write_text(described.serialize("yaml"))
    ours = {frozenset(ends.split(" -> ")) for ends in read_graph(path, rate="1Gb/s").link_names}
    assert ours == {frozenset(ends) for ends in service.get_networkx_graph().edges}


FABRICS = [
    "torus:dims=2x4,rate=50GB/s,latency=300ns",
    "fat_tree:down=4x4,up=1x2,links=1x2,rate=12.5GB/s,latency=500ns",
    "dragonfly:terminals_per_router=2,routers_per_group=4,global_per_router=1",
    "crossbar:ranks=5,rate=4.7Gb/s,latency=1.5us",
    "fully_connected:ranks=4",
    "electrical_ring:ranks=5",
    "gpu_servers:model=dgx_a100,boxes=2",
    "gpu_servers:model=mi250,boxes=1,without=0>1+1>0",
    "custom:ranks=2,switches=1,links=0-2+1-2@400Gb/s@1us,names=gpu0+gpu1+leaf",
]
ODD = {
    "a broken direction": "gpu_servers:model=mi250,boxes=1,without=0>1",
    "one way": "custom:ranks=3,links=0>1+1>2@1us+2>0+0-2,names=a+b+c",
    "half duplex": "custom:ranks=2,switches=1,links=0~2+2-1@1Gb/s,names=a+b+hub",
    "a rate for each flow": "custom:ranks=2,links=0-1@per_flow,names=a+b",
    "parallel": "custom:ranks=2,links=0-1+0-1@1Gb/s,names=a+b",
}
"""Properties that some formats cannot express."""

ENDINGS = {"graphml": ".graphml", "node_link": ".json", "infragraph": ".yaml"}


def links_of(fabric: opticoll.Fabric) -> Counter[tuple[str, int]]:
    """Counts the links of a fabric by the names of their ends and by their rates."""
    names = [name.partition(" (cable")[0] for name in fabric.link_names]
    return Counter(zip(names, fabric.link_rates, strict=True))


@pytest.mark.parametrize("spec", FABRICS)
@pytest.mark.parametrize("form", ENDINGS)
def test_a_fabric_that_is_written_and_read_has_the_same_links(
    run: Run, tmp_path: Path, form: str, spec: str
) -> None:
    fabric = opticoll.Fabric(spec)
    path = tmp_path / f"fabric{ENDINGS[form]}"
    several = len({frozenset(ends) for ends in fabric.link_ends or ()}) * 2 < fabric.link_count
    finished = run("export", "--fabric", spec, "--format", form, "--output", path, "--json")
    if form == "infragraph" and several:
        assert finished.code == 2
        assert "one link between two components" in finished.err
        return
    assert finished.code == 0, finished.err
    row = json.loads(finished.out)
    assert (row["fabric"], row["ranks"]) == (fabric.spec, fabric.ranks)
    assert (row["links"], row["format"]) == (fabric.link_count, form)
    read = parse_fabric(str(path))
    assert read.ranks == fabric.ranks
    if form == "infragraph":
        assert Counter(read.link_rates) == Counter(fabric.link_rates)
        ends = Counter(map(frozenset, fabric.link_ends or ()))
        assert Counter(map(frozenset, read.link_ends or ())) == ends
    else:
        assert links_of(read) == links_of(fabric)
        assert read.as_custom() == fabric.as_custom()


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("form", ENDINGS)
def test_what_a_format_cannot_say_is_refused_or_an_attribute(
    run: Run, tmp_path: Path, form: str, name: str
) -> None:
    fabric = opticoll.Fabric(ODD[name])
    path = tmp_path / f"fabric{ENDINGS[form]}"
    finished = run("export", "--fabric", fabric.spec, "--output", path)
    if form == "infragraph":
        assert finished.code == 2
        assert "InfraGraph has" in finished.err
        assert not path.exists()
        return
    assert finished.code == 0, finished.err
    read = parse_fabric(str(path))
    assert links_of(read) == links_of(fabric)
    assert ("per_flow" in read.spec, "1us" in read.spec) == (
        "per_flow" in fabric.spec,
        "1us" in fabric.spec,
    )


def test_both_kinds_of_odd_links_need_graphml(run: Run, tmp_path: Path) -> None:
    spec = "custom:ranks=2,switches=1,links=0~2+2>1+1>2@1Gb/s,names=a+b+hub"
    finished = run("export", "--fabric", spec, "--output", tmp_path / "fabric.json")
    assert finished.code == 2
    assert "write GraphML" in finished.err
    path = tmp_path / "fabric.graphml"
    assert run("export", "--fabric", spec, "--output", path).code == 0
    assert parse_fabric(str(path)) == opticoll.Fabric(spec)


def test_choices_among_shortest_routes_are_kept(run: Run, tmp_path: Path) -> None:
    spec = "custom:ranks=2,links=0-1,names=a+b,ties=first"
    for form in ("graphml", "node_link"):
        path = tmp_path / f"fabric{ENDINGS[form]}"
        assert run("export", "--fabric", spec, "--output", path).code == 0
        assert parse_fabric(str(path)) == opticoll.Fabric(spec)


@pytest.mark.parametrize("spec", [*FABRICS, ODD["one way"], ODD["parallel"]])
@pytest.mark.parametrize("form", ["graphml", "node_link"])
def test_networkx_reads_the_same_links(run: Run, tmp_path: Path, form: str, spec: str) -> None:
    networkx = pytest.importorskip("networkx")
    fabric = opticoll.Fabric(spec)
    path = tmp_path / f"fabric{ENDINGS[form]}"
    assert run("export", "--fabric", spec, "--output", path).code == 0
    if form == "graphml":
        graph = networkx.read_graphml(path)
    else:
        graph = networkx.node_link_graph(json.loads(path.read_text()), edges="edges")
    kinds = Counter(kind for _, kind in graph.nodes(data="kind"))
    assert kinds["rank"] == fabric.ranks
    assert graph.graph["fabric"] == fabric.spec
    theirs: Counter[tuple[str, int]] = Counter()
    for one, other, attributes in graph.edges(data=True):
        rate = opticoll.Fabric("crossbar:ranks=2", rate=attributes["rate"]).link_rates[0]
        ways = [(one, other)] if graph.is_directed() else [(one, other), (other, one)]
        theirs.update((f"{start} -> {end}", rate) for start, end in ways)
        if "latency=300ns" in spec:
            assert attributes["latency"] == "300ns"
    assert theirs == links_of(fabric)


@pytest.mark.parametrize("spec", FABRICS[:1] + FABRICS[3:6])
def test_infragraph_reads_the_same_links(run: Run, tmp_path: Path, spec: str) -> None:
    service = pytest.importorskip("infragraph.infragraph_service").InfraGraphService()
    fabric = opticoll.Fabric(spec)
    path = tmp_path / "fabric.yaml"
    assert run("export", "--fabric", spec, "--output", path).code == 0
    service.set_graph(path.read_text())
    graph = service.get_networkx_graph()
    numbers = {f"fabric.0.rank.{rank}": rank for rank in range(fabric.ranks)}
    switches = graph.number_of_nodes() - fabric.ranks
    numbers |= {f"fabric.0.switch.{one}": fabric.ranks + one for one in range(switches)}
    theirs = {frozenset((numbers[one], numbers[other])) for one, other in graph.edges}
    assert theirs == set(map(frozenset, fabric.link_ends or ()))
    for _, _, attributes in graph.edges(data=True):
        rate, unit = attributes["bandwidth"].split()
        assert (float(rate) * 1e9, unit) == (fabric.link_rates[0], "Gbps")
