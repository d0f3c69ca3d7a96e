"""Fabrics from InfraGraph, and what is wrong with a file."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import opticoll
from opticoll.errors import ConfigError
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


BAD_INFRA: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "no devices": ({"devices": []}, ("devices", "missing")),
    "no set of fields": ({"devices": [3]}, ("devices.0", "no set of fields")),
    "another field": ({"device": 3}, ("device", "did you mean `devices`?")),
    "no such device": (
        {"instances": [{"name": "host", "device": "box", "count": 2}]},
        ("instances.0.device", "no device `box`"),
    ),
    "two instances of a name": (
        {"instances": 2 * [{"name": "host", "device": "server", "count": 2}]},
        ("instances.1.name", "two of the name `host`"),
    ),
    "a count that is none": (
        {"instances": [{"name": "host", "device": "server", "count": -2}]},
        ("instances.0.count", "no whole number"),
    ),
    "too many components": (
        {"instances": [{"name": "host", "device": "server", "count": 65536}]},
        ("instances.0.count", "more than 65536 components"),
    ),
    "nothing, very often": (
        {
            "devices": [
                {"name": "a", "components": [{"name": "b", "count": 65536, "choice": "device"}]},
                {"name": "b", "components": [{"name": "c", "count": 65536, "choice": "device"}]},
                {"name": "c", "components": [{"name": "xpu", "count": 0, "choice": "xpu"}]},
            ],
            "instances": [{"name": "host", "device": "a", "count": 1}],
        },
        ("devices.1.components.0", "more than 2097152"),
    ),
    "edges of many components, very often": (
        {
            "instances": [{"name": "host", "device": "server", "count": 4096}],
            "edges": 9 * edge(ep1=END, ep2=END, scheme="many2many"),
        },
        ("edges.0", "more than 2097152"),
    ),
    "no such instance": (
        {"edges": edge(ep1=END | {"instance": "hst"})},
        ("edges.0.ep1.instance", "did you mean `host`?"),
    ),
    "no instance": ({"edges": edge(ep1={"component": "nic"})}, ("edges.0.ep1.instance", "missing")),
    "no such component": (
        {"edges": edge(ep1=END | {"component": "nix"})},
        ("edges.0.ep1.component", "did you mean `nic`?"),
    ),
    "no device around": (
        {"edges": edge(ep1=END | {"component": "nic.port"})},
        ("edges.0.ep1.component", "no device around `port`"),
    ),
    "no slice": (
        {"edges": edge(ep1=END | {"component": "nic[0:1:2:3]"})},
        ("edges.0.ep1.component", "no name with a slice"),
    ),
    "beyond the end": (
        {"edges": edge(ep1=END | {"component": "nic[1]"})},
        ("edges.0.ep1.component", "there are only 1"),
    ),
    "a step of 0": (
        {"edges": edge(ep1=END | {"instance": "host[::0]"})},
        ("edges.0.ep1.instance", "a step is not 0"),
    ),
    "unequal numbers": (
        {"edges": edge(ep1=END | {"instance": "host[0]"})},
        ("edges.0.scheme", "not 1 and 2"),
    ),
    "an unknown scheme": ({"edges": edge(scheme="ring")}, ("edges.0.scheme", "`ring` is not read")),
    "no such link": ({"edges": edge(link="bus")}, ("edges.0.link", "no link `bus`")),
    "a bandwidth in transfers": (
        {"links": [link("ethernet", bandwidth={"gigatransfers_per_second": 16})]},
        ("links.0", "no bandwidth in bits or bytes"),
    ),
    "no number": (
        {"links": [link("ethernet", bandwidth={"gigabits_per_second": "fast"})]},
        ("links.0.physical.bandwidth.gigabits_per_second", "`fast`"),
    ),
    "nothing joined": ({"edges": []}, ("no links lead from",)),
}


@pytest.mark.parametrize("name", BAD_INFRA)
def test_bad_infragraph_is_refused_with_its_place(tmp_path: Path, name: str) -> None:
    changes, words = BAD_INFRA[name]
    path = tmp_path / "pair.json"
    path.write_text(json.dumps(infra(**changes)))
    with pytest.raises(ConfigError) as caught:
        read_graph(path)
    for word in ("pair.json", *words):
        assert word in str(caught.value)


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
    with pytest.raises(ConfigError, match="no protobuf of InfraGraph"):
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
