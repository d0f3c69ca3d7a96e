"""Custom fabrics from YAML, node-link JSON and GraphML, and what is wrong with a file."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import opticoll
from opticoll.errors import ConfigError, ReadingNote
from opticoll.formats import network_graph, node_link
from opticoll.inputs.fabric_files import parse_fabric, to_medium
from opticoll.inputs.scenarios import read_scenario
from opticoll.outputs.records import record_rows
from support import Run, answer

RACK = "custom:ranks=2,switches=1,links=0-2+1-2@400Gb/s@1us,names=gpu0+gpu1+leaf,rate=100Gb/s"
"""Two ranks on a switch, one by a faster and longer cable."""

YAML = """\
family: custom
rate: 100Gb/s
ranks: [gpu0, gpu1]
switches: [leaf]
links:
  - [gpu0, leaf]
  - {between: [gpu1, leaf], rate: 400Gb/s, latency: 1us}
"""

# As networkx.node_link_data writes an undirected graph with attributes.
NODE_LINK = {
    "directed": False,
    "multigraph": False,
    "graph": {"rate": "100Gb/s"},
    "nodes": [
        {"kind": "rank", "id": "gpu0"},
        {"kind": "switch", "id": "leaf"},
        {"kind": "rank", "id": "gpu1"},
    ],
    "edges": [
        {"source": "gpu0", "target": "leaf"},
        {"rate": "400Gb/s", "latency": "1us", "source": "gpu1", "target": "leaf"},
    ],
}

# As networkx.write_graphml writes it.
GRAPHML = """\
<?xml version='1.0' encoding='utf-8'?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns"
 xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"
 xsi:schemaLocation="http://graphml.graphdrawing.org/xmlns
 http://graphml.graphdrawing.org/xmlns/1.0/graphml.xsd">
  <key id="d3" for="edge" attr.name="latency" attr.type="string" />
  <key id="d2" for="edge" attr.name="rate" attr.type="string" />
  <key id="d1" for="graph" attr.name="rate" attr.type="string" />
  <key id="d0" for="node" attr.name="kind" attr.type="string">
    <default>rank</default>
  </key>
  <graph edgedefault="undirected">
    <node id="gpu0" />
    <node id="leaf">
      <data key="d0">switch</data>
    </node>
    <node id="gpu1" />
    <edge source="gpu0" target="leaf" />
    <edge source="gpu1" target="leaf">
      <data key="d2">400Gb/s</data>
      <data key="d3">1us</data>
    </edge>
    <data key="d1">100Gb/s</data>
  </graph>
</graphml>
"""


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("rack.yaml", YAML),
        ("rack.json", json.dumps(NODE_LINK)),
        ("rack.json", json.dumps(NODE_LINK).replace('"edges"', '"links"')),
        ("rack.graphml", GRAPHML),
    ],
)
def test_one_rack_in_every_format_is_one_fabric(tmp_path: Path, name: str, content: str) -> None:
    path = tmp_path / name
    path.write_text(content)
    expected = opticoll.Fabric(RACK)
    assert parse_fabric(str(path)) == expected
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text(f"collective: all_gather\nfabric: {name}\n")
    assert read_scenario(scenario).fabrics == [expected]
    if name != "rack.yaml":
        (tmp_path / "file.yaml").write_text(f"family: custom\ngraph: {name}\n")
        assert parse_fabric(str(tmp_path / "file.yaml")) == expected


@pytest.mark.parametrize(
    ("fields", "spelling"),
    [
        ({"ranks": 2, "links": [[0, 1]]}, "custom:ranks=2,links=0-1"),
        (
            {"ranks": 2, "switches": 1, "links": [["0", "s0"], ["s0", "1"]], "ties": "first"},
            "custom:ranks=2,switches=1,links=0-2+2-1,ties=first",
        ),
        (
            {
                "ranks": ["a b", "\u00e9+"],
                "links": [
                    {"from": "a b", "to": "\u00e9+", "sharing": "per_flow"},
                    {"from": "\u00e9+", "to": "a b", "latency": "5ns"},
                    {"between": ["a b", "\u00e9+"], "duplex": "half"},
                ],
            },
            "custom:ranks=2,links=0>1@per_flow+1>0@5ns+0~1,names=a%20b+%C3%A9%2B",
        ),
    ],
)
def test_links_are_spelled_by_the_numbers_of_their_ends(
    fields: dict[str, object], spelling: str
) -> None:
    assert network_graph.from_fields(fields) == opticoll.Fabric(spelling)


def test_directed_graphs_and_grids_are_read() -> None:
    nodes = [{"id": [0, 0]}, {"id": [0, 1]}]
    edges = [
        {"source": [0, 0], "target": [0, 1], "key": 0},
        {"source": [0, 1], "target": [0, 0], "key": 0},
    ]
    graph = {"directed": True, "multigraph": True, "graph": {}, "nodes": nodes, "links": edges}
    expected = opticoll.Fabric("custom:ranks=2,links=0>1+1>0,names=0.0+0.1")
    assert node_link.fabric_of(graph) == expected
    assert opticoll.Fabric(expected.spec) == expected


def yaml(links: str, ranks: str = "[a, b]", more: str = "") -> str:
    return f"family: custom\nranks: {ranks}\n{more}links:\n  - [a, b]\n{links}"


def test_a_graph_that_does_not_exist_is_named(tmp_path: Path) -> None:
    (tmp_path / "f.yaml").write_text("family: custom\ngraph: g.json\n")
    with pytest.raises(ConfigError, match=r"f\.yaml, line 2, graph: there is no file `g\.json`"):
        parse_fabric(str(tmp_path / "f.yaml"))


def changed(**changes: object) -> str:
    return json.dumps(NODE_LINK | changes)


def one_edge(**attributes: object) -> str:
    return changed(edges=[{"source": "gpu0", "target": "leaf", **attributes}])


NESTED = GRAPHML.replace('<node id="gpu0" />', '<node id="gpu0"><graph/></node>')
BAD_GRAPHS: dict[str, tuple[str, str]] = {
    "not valid JSON": ("{", "not valid JSON"),
    "a number": ("1", "no list `nodes`"),
    "no edges": ('{"nodes": []}', "`links` or `edges`"),
    "no nodes": (changed(nodes=[], edges=[]), "no ranks"),
    "node without id": (changed(nodes=[{}]), "nodes.0 | `id`"),
    "a cat": (changed(nodes=[{"id": 1, "kind": "cat"}]), "nodes.0.kind | `cat` | rank or switch"),
    "duplicate node": (changed(nodes=[{"id": 1}, {"id": "1"}]), "two ranks"),
    "edge to nothing": (one_edge(target="leef"), "edges.0 | did you mean `leaf`?"),
    "edge without target": (changed(edges=[{"source": 1}]), "edges.0 | `target`"),
    "number for a rate": (one_edge(rate=100), "edges.0 | give the unit"),
    "unconnected": (one_edge(), "no links lead from gpu0 to gpu1"),
    "not valid XML": ("<graphml>", "not valid XML"),
    "another XML": ("<svg/>", "not a GraphML file"),
    "document type": ("<!DOCTYPE graphml [<!ELEMENT a ANY>]>" + GRAPHML, "document type"),
    "nested graph": (NESTED, "graphs inside nodes"),
    "edge to no node": (GRAPHML.replace('t="leaf"', 't="leave"'), "edge.0 | did you mean `leaf`?"),
}


@pytest.mark.parametrize("name", BAD_GRAPHS)
def test_bad_graph_is_refused_with_its_place(tmp_path: Path, name: str) -> None:
    content, words = BAD_GRAPHS[name]
    path = tmp_path / ("g.graphml" if content.startswith("<") else "g.json")
    path.write_text(content)
    with pytest.raises(ConfigError) as caught:
        parse_fabric(str(path))
    for word in (path.name, *words.split(" | ")):
        assert word in str(caught.value)


def test_every_family_has_an_example_in_the_documentation_that_is_one() -> None:
    page = Path(__file__).parent.parent / "docs" / "fabrics.md"
    text = page.read_text(encoding="utf-8")
    examples = re.findall(r"(?:`|--fabric )([a-z_]+:(?!key=|option=)[^`\s]+=[^`\s]+)", text)
    families = {opticoll.Fabric(example).family for example in examples}
    records = record_rows("fabrics")
    machines = {record.name for record in records if "Cost model" not in record.summary}
    assert families == machines
    assert len(records) == len(machines) + 3


def test_electrical_fabrics_are_pickled_and_have_no_wavelengths() -> None:
    import pickle

    fabric = opticoll.Fabric(RACK)
    assert pickle.loads(pickle.dumps(fabric)) == fabric
    assert (fabric.family, fabric.ranks) == ("custom", 2)
    assert fabric.option("wavelengths") is None


def drawn(edge: dict[str, object], **more: object) -> str:
    """Returns a file of three nodes in a row, whose edges have attributes."""
    edges = [{"source": one, "target": one + 1, **edge} for one in range(2)]
    return json.dumps({"nodes": [{"id": one} for one in range(3)], "edges": edges, **more})


CONVENTIONS: dict[str, tuple[dict[str, object], str]] = {
    "Topology Zoo": ({"LinkSpeedRaw": "2500000000.0", "LinkSpeed": "9"}, "rate=2.5Gb/s"),
    "Topology Zoo by units": ({"LinkSpeed": "155", "LinkSpeedUnits": "M"}, "rate=155Mb/s"),
    "capacity in bits": ({"capacity": 1e9}, "rate=1Gb/s"),
    "capacity in gigabits": ({"capacity": 10}, "rate=10Gb/s"),
    "bandwidth with its unit": ({"bandwidth": "40Gb/s"}, "rate=40Gb/s"),
    "rate before others": ({"capacity": 10, "rate": "25Gb/s"}, "rate=25Gb/s"),
    "delay": ({"rate": "1Gb/s", "delay": 0.001}, "rate=1Gb/s,latency=1ms"),
    "delay with its unit": ({"rate": "1Gb/s", "delay": "5ms"}, "rate=1Gb/s,latency=5ms"),
}


@pytest.mark.parametrize("name", CONVENTIONS)
@pytest.mark.filterwarnings("ignore::opticoll.errors.ReadingNote")
def test_attributes_have_the_units_of_their_conventions(tmp_path: Path, name: str) -> None:
    edge, options = CONVENTIONS[name]
    path = tmp_path / "g.json"
    path.write_text(drawn(edge))
    networkx_form = tmp_path / "g.graphml"
    keys = "".join(f'<key id="{key}" for="edge" attr.name="{key}"/>' for key in edge)
    own = "".join(f'<data key="{key}">{value}</data>' for key, value in edge.items())
    links = "".join(f'<edge source="{one}" target="{one + 1}">{own}</edge>' for one in range(2))
    nodes = "".join(f'<node id="{one}"/>' for one in range(3))
    networkx_form.write_text(f"<graphml>{keys}<graph>{nodes}{links}</graph></graphml>")
    expected = opticoll.Fabric(f"custom:ranks=3,links=0-1+1-2,names=0+1+2,{options}")
    for file in (path, networkx_form):
        assert parse_fabric(str(file)).link_rates == expected.link_rates
        plans = [opticoll.plan("broadcast", one, "direct") for one in (str(file), expected)]
        assert len({plan.simulate("1MiB").time_ps for plan in plans}) == 1


def test_notes_say_what_stands_for_what_and_what_is_not_read(run: Run, tmp_path: Path) -> None:
    nodes = [
        {"id": 0, "label": "Oslo", "Latitude": 59.9},
        {"id": 1, "label": "Bern"},
        {"id": 2, "label": "Bern", "type": "switch"},
    ]
    edges: list[dict[str, object]] = [
        {"source": 0, "target": 2, "capacity": 10, "weight": 1},
        {"source": 1, "target": 2},
        {"source": 1, "target": 1},
    ]
    path = tmp_path / "g.json"
    path.write_text(json.dumps({"nodes": nodes, "edges": edges, "graph": {"Creator": "me"}}))
    finished = run("show", "broadcast", "--fabric", path, "--algorithm", "direct")
    assert finished.code == 0
    for words in (
        "`capacity` is the rate (10 is 10 Gb/s)",
        "`label` is the name",
        "`type` says which nodes are switches",
        "not read: Latitude of nodes; weight of edges; Creator of the graph",
        "1 of 2 links without a rate of their own: they take 100Gb/s",
        "links of a node to itself (edges.2 at Bern (1))",
    ):
        assert words in finished.err
    with pytest.warns(ReadingNote):
        fabric = parse_fabric(str(path))
    assert (fabric.ranks, fabric.link_names[0]) == (2, "Oslo -> Bern (2)")


@pytest.mark.parametrize(
    ("edge", "said"),
    [
        ({"capacity": float("nan")}, "2 of 2 links without a rate of their own"),
        ({"delay": "5us"}, "`delay` is the latency (5us)"),
        ({"delay": 0.001}, "`delay` is the latency (0.001 s)"),
    ],
)
def test_notes_say_which_values_were_read(
    tmp_path: Path, edge: dict[str, object], said: str
) -> None:
    path = tmp_path / "g.json"
    path.write_text(drawn(edge))
    with pytest.warns(ReadingNote, match=re.escape(said)):
        parse_fabric(str(path))


def test_rates_on_both_sides_of_a_million_need_a_unit(tmp_path: Path) -> None:
    rates = [1e10, 5e5]
    edges = [{"source": one, "target": one + 1, "capacity": rates[one]} for one in range(2)]
    path = tmp_path / "g.json"
    path.write_text(json.dumps({"nodes": [{"id": one} for one in range(3)], "edges": edges}))
    with pytest.raises(ConfigError, match=r"edges\.0\.capacity: `1.*E?.*` would be b/s.*`unit:"):
        parse_fabric(str(path))
    named = tmp_path / "f.yaml"
    named.write_text("family: custom\ngraph: g.json\nunit: b/s\n")
    with pytest.warns(ReadingNote):
        assert parse_fabric(str(named)).link_rates[0] == 10**10


def test_a_kind_may_begin_with_a_capital(tmp_path: Path) -> None:
    nodes = [{"id": 0}, {"id": 1}, {"id": 2, "kind": "Switch"}]
    edges = [{"source": one, "target": 2, "rate": "1Gb/s"} for one in range(2)]
    path = tmp_path / "g.json"
    path.write_text(json.dumps({"nodes": nodes, "edges": edges}))
    assert parse_fabric(str(path)).ranks == 2


@pytest.mark.filterwarnings("ignore::opticoll.errors.ReadingNote")
def test_fields_beside_a_graph_give_defaults_and_name_the_attribute_of_rates(
    run: Run, tmp_path: Path
) -> None:
    (tmp_path / "g.json").write_text(drawn({"speed": 3, "rate": "1Gb/s"}))
    path = tmp_path / "f.yaml"
    head = "family: custom\ngraph: g.json\n"
    path.write_text(f"{head}rate_from: speed\nunit: GB/s\nlatency: 2us\n")
    expected = "ranks=3,links=0-1+1-2,names=0+1+2,rate=24Gb/s,latency=2us"
    assert parse_fabric(str(path)).link_rates == opticoll.Fabric(f"custom:{expected}").link_rates
    path.write_text(f"{head}rate_from: speed\nunit: GB/s\nlatency: 2us\nwavelengths: 4\n")
    links = parse_fabric(str(path)).as_custom().link_rates
    assert links == opticoll.Fabric(f"custom:{expected}").link_rates
    medium = to_medium(str(path))
    assert medium.startswith("wdm_graph:")
    assert "latency=2us,wavelengths=4" in medium
    path.write_text(f"{head}rate_from: sped\n")
    finished = run("plan", "broadcast", "--fabric", path)
    assert finished.code == 2
    assert "line 3, rate_from" in finished.err
    assert "did you mean `speed`?" in finished.err


@pytest.mark.filterwarnings("ignore::opticoll.errors.ReadingNote")
def test_a_graph_that_falls_apart_is_planned_on_the_members_of_a_part(
    run: Run, tmp_path: Path
) -> None:
    nodes = [{"id": one, "label": label} for one, label in enumerate(["a", "x", "b", "c", "y"])]
    edges = [{"source": one, "target": two} for one, two in [(0, 2), (2, 3), (1, 4)]]
    path = tmp_path / "g.json"
    path.write_text(json.dumps({"nodes": nodes, "edges": edges}))
    refused = run("plan", "all_gather", "--fabric", path)
    assert refused.code == 2
    assert "2 parts" in refused.err
    assert "a, b, c; x, y" in refused.err
    assert "members=0+2-3" in refused.err
    planned = answer(run, "plan", "all_gather", "--fabric", path, "--members", "0+2-3")
    assert planned["ranks"] == 3
    spelled = "custom:ranks=5,links=0-2+2-3+1-4"
    assert run("plan", "all_gather", "--fabric", spelled, "--members", "0+2-3").code == 0
    still = run("plan", "all_gather", "--fabric", path, "--members", "0-2")
    assert still.code == 2
    assert "no links lead from" in still.err


@pytest.mark.parametrize(
    ("rate", "hint"),
    [("50Gbps", "write 50Gb/s"), ("1.5e9", "give the unit, such as 40Gb/s")],
)
def test_a_rate_gets_the_hint_of_a_specification(
    run: Run, tmp_path: Path, rate: str, hint: str
) -> None:
    path = tmp_path / "f.yaml"
    path.write_text(yaml(f"  - {{between: [a, b], rate: '{rate}'}}\n"))
    assert hint in run("plan", "broadcast", "--fabric", path).err
    if "bps" in rate:
        spelled = f"custom:ranks=2,links=0-1@{rate}"
        assert hint in run("plan", "broadcast", "--fabric", spelled).err


def test_directed_graphs_lead_both_ways_on_demand(tmp_path: Path) -> None:
    path = tmp_path / "drawn.graphml"
    edges = '<edge source="a" target="b"/><edge source="c" target="b"/>'
    nodes = "".join(f'<node id="{name}"/>' for name in "abc")
    path.write_text(f'<graphml><graph edgedefault="directed">{nodes}{edges}</graph></graphml>')
    with pytest.raises(ConfigError) as caught:
        parse_fabric(str(path))
    assert "edges lead one way; drawn.graphml:directed=no makes them" in str(caught.value)
    assert "members=" not in str(caught.value)
    expected = "custom:ranks=3,links=0-1+2-1,names=a+b+c"
    assert parse_fabric(f"{path}:directed=no") == opticoll.Fabric(expected)
    with pytest.raises(ConfigError, match="`yes` must be `no`"):
        parse_fabric(f"{path}:directed=yes")


def test_a_rate_without_a_unit_gets_one_for_all(tmp_path: Path) -> None:
    path = tmp_path / "g.json"
    edge = {"source": 0, "target": 1, "rate": 1e10}
    path.write_text(json.dumps({"nodes": [{"id": 0}, {"id": 1}], "links": [edge]}))
    with pytest.raises(ConfigError, match=r"links\.0\.rate: .*such as 40Gb/s, or `unit=b/s`"):
        parse_fabric(str(path))
    assert parse_fabric(f"{path}:unit=b/s").link_rates == [10**10, 10**10]
