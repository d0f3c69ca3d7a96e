"""Files with graphs of fibres: every reader, lengths, positions, notes, and what is refused."""

from __future__ import annotations

import json
from fractions import Fraction
from math import acos, cos, radians, sin
from pathlib import Path
from typing import Any

import pytest

import opticoll
from opticoll.errors import ConfigError, ReadingNote
from opticoll.formats.fibre_lengths import great_circle_metres
from opticoll.inputs.fabric_files import parse_fabric, to_medium
from opticoll.outputs import linear_program
from support import Run

FILES = Path(__file__).parent / "data" / "fibres"
pytestmark = pytest.mark.filterwarnings("ignore::opticoll.errors.ReadingNote")


def cables(fabric: opticoll.Fabric) -> dict[str, list[str]]:
    """Returns the properties of each cable, by the names of its ends."""
    options = dict(part.partition("=")[::2] for part in fabric.spec.partition(":")[2].split(","))
    names = options["names"].split("+")
    listed = {}
    for cable in options["links"].split("+"):
        ends, *properties = cable.split("@")
        listed["-".join(names[int(end)] for end in ends.split("-"))] = properties
    return listed


OSLO, BERN, WIEN = (59.91, 10.75), (46.95, 7.45), (48.21, 16.37)


def cosine_distance(start: tuple[float, float], end: tuple[float, float]) -> float:
    """Returns the great-circle distance in metres by the spherical law of cosines."""
    (south, west), (north, east) = [tuple(map(radians, place)) for place in (start, end)]
    angle = sin(south) * sin(north) + cos(south) * cos(north) * cos(east - west)
    return 6_371_008.8 * acos(angle)


@pytest.mark.parametrize(("start", "end"), [(OSLO, BERN), (BERN, WIEN), ((0, 179), (0, -179))])
def test_great_circles_have_the_length_of_the_law_of_cosines(
    start: tuple[float, float], end: tuple[float, float]
) -> None:
    assert great_circle_metres(start, end) == pytest.approx(cosine_distance(start, end), abs=501)


def test_short_great_circles_are_whole_metres() -> None:
    # A thousandth of a degree of a meridian.
    metres = 6_371_008.8 * radians(0.001)
    assert great_circle_metres((50, 8), (50.001, 8)) == round(metres)


def test_gml_has_lengths_positions_and_switches() -> None:
    fabric = parse_fabric(f"{FILES / 'capitals.gml'}:wavelengths=8,rate=50Gb/s,fibres=2")
    assert (fabric.family, fabric.ranks, fabric.option("fibres")) == ("wdm_graph", 4, 2)
    oslo_bern = round(cosine_distance(OSLO, BERN) / 1000)
    assert cables(fabric) == {
        "Oslo-Bern": [f"{oslo_bern}km"],
        "Bern-Wien": ["1000km"],
        "Wien-Atlantis": ["5ms"],
        "Atlantis-hub": [],
        "hub-Oslo": ["12.5km"],
    }
    assert "positions=59.91/10.75+46.95/7.45+48.21/16.37+unknown+unknown," in fabric.spec
    assert "rate=50Gb/s" in fabric.spec


def test_rates_of_electrical_links_are_read_only_without_a_rate_of_wavelengths() -> None:
    path = FILES / "capitals.gml"
    of_links = parse_fabric(f"{path}:wavelengths=8")
    assert cables(of_links)["Oslo-Bern"][0] == "2.5Gb/s"
    named = parse_fabric(f"{path}:wavelengths=8,rate=50Gb/s,rate_from=LinkSpeedRaw")
    assert cables(named)["Oslo-Bern"][0] == "2.5Gb/s"


def test_notes_name_everything_that_was_read_or_not(run: Run) -> None:
    path = FILES / "capitals.gml"
    finished = run("bound", "all_gather", "--fabric", f"{path}:wavelengths=8,rate=1Gb/s")
    assert finished.code == 0
    for words in (
        "`length` is the length in km",
        "the length of 1 of 5 links is the great-circle distance",
        "1 of 5 links have no length: Atlantis - hub (edge in line 19); they take the latency 0s",
        "`label` is the name",
        "not read: graphics.x, graphics.y of nodes; LinkSpeedRaw of edges; Network of the graph",
    ):
        assert words in finished.err
    delayed = run("bound", "all_gather", "--fabric", f"{path}:wavelengths=8,latency=1ms")
    assert "have no length" not in delayed.err


def test_sndlib_has_positions_and_names_what_is_not_read() -> None:
    path = FILES / "capitals.xml"
    with pytest.warns(ReadingNote) as notes:
        fabric = parse_fabric(f"{path}:wavelengths=8")
    said = " ".join(str(note.message) for note in notes)
    assert "demands of the graph" in said
    assert "additionalModules.addModule.capacity" in said
    assert cables(fabric) == {
        "Oslo-Bern": [f"{round(cosine_distance(OSLO, BERN) / 1000)}km"],
        "Bern-Wien": [f"{round(cosine_distance(BERN, WIEN) / 1000)}km"],
    }
    plane = path.read_text().replace("geographical", "pixel")
    assert "positions" not in parse_text(plane, ".xml", "wavelengths=8").spec


def parse_text(content: str, ending: str, options: str = "") -> opticoll.Fabric:
    """Returns the fabric of a file with this content."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"file{ending}"
        path.write_text(content)
        return parse_fabric(f"{path}:{options}" if options else str(path))


def test_edge_lists_have_lengths_and_numbers_in_order() -> None:
    fabric = parse_fabric(f"{FILES / 'ring.edges'}:wavelengths=4")
    links = "0-1@100km+1-2@100.5km+2-3@250m+3-4@80km+4-5@80km+5-0@80km"
    names = "0+1+2+3+4+5"
    assert fabric == opticoll.Fabric(f"wdm_graph:ranks=6,links={links},names={names},wavelengths=4")
    # The order of first appearance would be 0, 7, 2.
    assert "names=0+2+7," in parse_text("0 7\n7 2\n", ".txt", "wavelengths=1").spec
    assert "names=b+a+c," in parse_text("b,a,2\na , c,3\n", ".edgelist", "wavelengths=1").spec
    of_networkx = "a b {'weight': 7, 'length': 2}\nb c {}\n"
    assert cables(parse_text(of_networkx, ".txt", "wavelengths=1")) == {"a-b": ["2km"], "b-c": []}
    electrical = parse_fabric(str(FILES / "ring.edges"))
    assert (electrical.family, electrical.option("latency")) == ("custom", 0)


def test_options_of_a_file_are_those_of_a_yaml_file_beside_it(tmp_path: Path) -> None:
    (tmp_path / "ring.edges").write_text((FILES / "ring.edges").read_text())
    expected = parse_fabric(f"{tmp_path / 'ring.edges'}:wavelengths=4,reach=2,members=0-3")
    path = tmp_path / "fibres.yaml"
    for family in ("wdm_graph", "custom"):
        fields = f"family: {family}\ngraph: ring.edges\nwavelengths: 4\nreach: 2\nmembers: 0-3\n"
        path.write_text(fields)
        assert parse_fabric(str(path)) == expected
    path.write_text("family: wdm_graph\ngraph: ring.edges\nmembers: 0-3\n")
    with pytest.raises(ConfigError, match=r"fibres\.yaml, line 1, family: .*wavelengths: 16"):
        parse_fabric(str(path))
    path.write_text("family: wdm_graph\ngraph: ring.edges\nreach: 2\nmembers: 0-3\n")
    with pytest.raises(ConfigError, match=r"fibres\.yaml, line 3, reach: .*give `wavelengths`"):
        parse_fabric(str(path))
    assert parse_fabric(f"{path}:wavelengths=4") == expected
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text("collective: all_gather\nfabric: 'ring.edges:wavelengths=2'\n")
    from opticoll.inputs.scenarios import read_scenario

    assert read_scenario(scenario).fabrics[0].option("wavelengths") == 2


def test_lists_of_yaml_have_lengths(tmp_path: Path) -> None:
    path = tmp_path / "three.yaml"
    links = "[{between: [a, s], length: 80km}, {from: s, to: b, length: 20km}, [b, a]]"
    head = f"family: wdm_graph\nranks: [a, b]\nswitches: [s]\nlinks: {links}\n"
    path.write_text(f"{head}wavelengths: 2\nconverters: full\n")
    spec = "wdm_graph:ranks=2,switches=1,links=0-2@80km+2>1@20km+1-0,names=a+b+s"
    assert parse_fabric(str(path)) == opticoll.Fabric(f"{spec},wavelengths=2,converters=full")


def test_attributes_of_a_graph_make_it_a_graph_of_fibres(tmp_path: Path) -> None:
    nodes = [{"id": number, "lat": 0.0, "lon": 1.0 * number} for number in range(3)]
    edges: list[dict[str, object]] = [
        {"source": 0, "target": 1, "weight": 12.3456},
        {"source": 1, "target": 2},
    ]
    content = {"graph": {"wavelengths": 4, "converters": "full"}, "nodes": nodes, "edges": edges}
    fabric = parse_text(json.dumps(content), ".json")
    degree = round(6_371.0088 * radians(1))
    assert (fabric.family, fabric.option("converters")) == ("wdm_graph", "full")
    assert cables(fabric) == {"0-1": [f"{degree}km"], "1-2": [f"{degree}km"]}
    weighted = parse_text(json.dumps(content), ".json", "length_from=weight")
    assert cables(weighted) == {"0-1": ["12.346km"], "1-2": [f"{degree}km"]}


@pytest.mark.parametrize("ending", [".graphml", ".json"])
@pytest.mark.parametrize(
    "spec",
    [
        "wdm_graph:ranks=3,switches=1,links=0-3@80km+1-3@5km@2us+2>3+3>2@1Gb/s,names=a+b+c+s,"
        "positions=1/2+unknown+3.5/-4+0/0,wavelengths=4,fibres=2,converters=full,reach=3",
        "nsfnet:wavelengths=16",
        "wdm_torus:dims=3x3,wavelengths=2,transmitters=2",
    ],
)
def test_a_graph_of_fibres_that_is_written_and_read_is_the_same(
    run: Run, tmp_path: Path, ending: str, spec: str
) -> None:
    fabric = opticoll.Fabric(spec)
    path = tmp_path / f"written{ending}"
    assert run("export", "--fabric", spec, "--output", path).code == 0
    again = parse_fabric(str(path))
    assert (again.family, again.ranks) == ("wdm_graph", fabric.ranks)
    plans = [opticoll.plan("broadcast", one, "direct") for one in (fabric, again)]
    assert len({plan.simulate("1MiB").time_ps for plan in plans}) == 1
    if "torus" not in spec:
        options = [
            dict(one.partition("=")[::2] for one in whole.spec.split(","))
            for whole in (fabric, again)
        ]
        for key in ("names", "positions", "wavelengths", "fibres"):
            assert options[0][key] == options[1][key]


BAD: dict[str, tuple[str, str, str, str]] = {
    "open list": (".gml", "graph [ node [ id 1 ]", "", "complete?"),
    "no graph": (".gml", "Creator 1", "", "one `graph [ ... ]`"),
    "key without value": (".gml", "graph [\n node ]", "", "line 2 | a value of `node`, not `]`"),
    "no GML": (".gml", "graph [\n ? ]", "", "line 2 | `? ]`"),
    "node without id": (".gml", "graph [ node [ a 1 ] ]", "", "node in line 1 | needs `id`"),
    "edge without end": (".gml", "graph [\nedge [ source 1 ] ]", "", "edge in line 2 | `target`"),
    "deep lists": (".gml", "a [ " * 20, "", "nested more than 16"),
    "no such end": (
        *(".gml", 'graph [ node [ id 1 label "a" ] edge [ source 1 target 2 ] ]', ""),
        "no rank or switch `2`",
    ),
    "four words": (".edges", "a b 1 2", "", "line 1 | such as `a b 80`"),
    "no attributes": (".edges", "a b {'length'}", "", "line 1 | {'length': 80}"),
    "open brace": (".edges", "a b {'length': 1", "", "line 1 | {'length': 80}"),
    "one word": (".edges", "a b\nc", "", "line 2"),
    "too few vertices": (".edges", "3\n1\na b", "", "line 1 | states 3 | 2 ranks"),
    "too few cables": (".edges", "2\n2\na b", "", "line 2 | states 2 | 1 cable"),
    "no length": (".edges", "a b far", "wavelengths=1", "line 1 | `far`"),
    "a negative length": (".edges", "a b -5", "wavelengths=1", "line 1.length | 0 or more"),
    "not SNDlib": (".xml", "<a><networkStructure/></a>", "", "network of SNDlib"),
    "link without end": (
        *(".xml", "<network><networkStructure><nodes><node id='a'/></nodes>\n<links><link>", ""),
        "not valid XML",
    ),
    "no wavelengths": (".edges", "a b", "wavelengths=0", "wavelengths"),
    "unknown option": (".edges", "a b", "wavelenths=4", "did you mean `wavelengths`"),
    "no value": (".edges", "a b", "wavelengths", "not `key=value`"),
    "no such attribute": (".edges", "a b 5", "wavelengths=1,length_from=km", "length_from | `km`"),
    "fibres without wavelengths": (".edges", "a b", "fibres=2", "fibres | give `wavelengths`"),
    "per flow": (
        ".json",
        json.dumps(
            {
                "nodes": [{"id": 0}, {"id": 1}],
                "edges": [{"source": 0, "target": 1, "sharing": "per_flow"}],
            }
        ),
        "wavelengths=1",
        "edges.0.sharing | one lightpath at a time",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_files_are_refused_with_their_place(run: Run, tmp_path: Path, name: str) -> None:
    ending, content, options, words = BAD[name]
    path = tmp_path / f"bad{ending}"
    path.write_text(content)
    finished = run("bound", "all_gather", "--fabric", f"{path}:{options}" if options else path)
    assert finished.code == 2
    for word in words.split(" | "):
        assert word in finished.err, finished.err


def test_bursts_take_the_wavelengths_of_a_file() -> None:
    medium = to_medium(f"{FILES / 'ring.edges'}:wavelengths=4,hosts=2")
    assert "links=0-1@100km+" in medium
    assert medium.endswith(",hosts=2") or "hosts=2," in medium


@pytest.mark.parametrize(
    ("preset", "ranks", "fibres", "kilometres"),
    [
        # Sums of the lengths of the sources.
        (
            "nsfnet",
            14,
            42,
            1100
            + 1600
            + 2800
            + 600
            + 1000
            + 2000
            + 600
            + 2400
            + 1100
            + 800
            + 1200
            + 2000
            + 700
            + 700
            + 900
            + 500
            + 500
            + 800
            + 800
            + 300
            + 300,
        ),
        (
            "nsfnet_22",
            14,
            44,
            1050
            + 1500
            + 2400
            + 600
            + 750
            + 1800
            + 600
            + 1950
            + 1200
            + 600
            + 1050
            + 1800
            + 750
            + 1350
            + 750
            + 750
            + 300
            + 300
            + 600
            + 750
            + 300
            + 150,
        ),
        ("geant", 40, 122, None),
    ],
)
def test_presets_are_the_networks_of_their_sources(
    preset: str, ranks: int, fibres: int, kilometres: int | None
) -> None:
    fabric = opticoll.Fabric(preset, wavelengths=4)
    assert (fabric.family, fabric.ranks) == ("wdm_graph", ranks)
    custom = fabric.as_custom()
    assert len(custom.link_names) == fibres
    lengths = [float(part.split("km")[0]) for part in custom.spec.split("@") if "km" in part]
    assert len(lengths) == fibres / 2
    assert kilometres is None or sum(lengths) == kilometres


def test_lengths_of_geant_are_great_circles_of_its_positions() -> None:
    spec = opticoll.Fabric("geant", wavelengths=1).spec
    options = dict(part.partition("=")[::2] for part in spec.split(","))
    at = [tuple(map(float, place.split("/"))) for place in options["positions"].split("+")]
    for cable in options["links"].split("+"):
        ends, length = cable.split("@")
        start, end = (at[int(vertex)] for vertex in ends.split("-"))
        # Positions have two decimals, at most 0.005 degrees or 0.6 km off, at both ends.
        expected = cosine_distance((start[0], start[1]), (end[0], end[1])) / 1000
        assert float(length.removesuffix("km")) == pytest.approx(expected, abs=2)


@pytest.mark.parametrize(
    ("preset", "load"),
    [
        # No assignment has fewer than 13 wavelengths, as the literature of NSFNET states; the
        # fractions are those of a linear program with one flow for each source, solved apart.
        ("nsfnet", Fraction(49, 4)),
        ("nsfnet_22", Fraction(45, 4)),
    ],
)
def test_cables_of_nsfnet_carry_the_known_load_of_all_pairs(preset: str, load: Fraction) -> None:
    pytest.importorskip("highspy")
    links = opticoll.Fabric(preset, wavelengths=1, rate="1GB/s").as_custom()
    proved: Any = linear_program.optimum(links, "all_to_all", 0)
    assert proved.is_optimum
    assert proved.bound == load


def test_networkx_writes_files_of_the_same_fibres(tmp_path: Path) -> None:
    networkx = pytest.importorskip("networkx")
    fabric = opticoll.Fabric("nsfnet:wavelengths=4")
    graph = fabric.to_networkx()
    assert opticoll.read_fabric(graph) == fabric
    networkx.write_gml(graph, tmp_path / "n.gml")
    networkx.write_graphml(graph, tmp_path / "n.graphml")
    for name in ("n.gml", "n.graphml"):
        assert parse_fabric(str(tmp_path / name)) == fabric
    networkx.write_edgelist(graph, tmp_path / "n.txt")
    listed = cables(parse_fabric(f"{tmp_path / 'n.txt'}:wavelengths=4"))
    assert sorted(length for (length,) in listed.values()) == sorted(
        length for (length,) in cables(fabric).values()
    )


def test_every_option_of_the_family_may_follow_a_file(tmp_path: Path) -> None:
    ring = f"{FILES / 'ring.edges'}:wavelengths=4"
    slower = parse_fabric(f"{ring},degraded=w1@10Gb/s+2-3@50Gb/s")
    assert "degraded=2-3@50Gb/s+w0.1@10Gb/s" in slower.spec
    assert slower.link_rates[4:6] == [50 * 10**9] * 2
    named = parse_fabric(f"{FILES / 'capitals.gml'}:wavelengths=4,degraded=Oslo-Bern@1Gb/s")
    assert "degraded=0-1@1Gb/s" in named.spec
    part = parse_fabric(f"{FILES / 'capitals.gml'}:wavelengths=4,members=Wien+Oslo")
    assert part.vertex_names == ["Oslo", "Wien", "Bern", "Atlantis", "hub"]
    written = tmp_path / "graph.json"
    nodes = [{"id": 0}, {"id": 1}]
    edges = [{"source": 0, "target": 1}]
    content = {"graph": {"degraded": "0-1@1Gb/s"}, "nodes": nodes, "edges": edges}
    written.write_text(json.dumps(content), encoding="utf-8")
    assert "degraded=0-1@1Gb/s" in parse_fabric(f"{written}:wavelengths=4").spec


def test_several_hosts_at_a_rank_are_refused_by_plans_only() -> None:
    ring = f"{FILES / 'ring.edges'}:wavelengths=4"
    with pytest.raises(opticoll.errors.FabricError, match="plans need hosts=1"):
        parse_fabric(f"{ring},hosts=2")
    assert to_medium(f"{ring},hosts=2") == f"{parse_fabric(f'{ring},hosts=1').spec},hosts=2"
    # Hosts of an earlier reading of the same file are forgotten.
    assert to_medium(ring) == parse_fabric(ring).spec


def notes_of(content: str, ending: str, options: str = "wavelengths=4") -> str:
    """Returns the notes on a file."""
    with pytest.warns(ReadingNote) as notes:
        parse_text(content, ending, options)
    return "\n".join(str(note.message) for note in notes)


def test_notes_name_links_without_length_and_parallel_links() -> None:
    said = notes_of("A B 12\nB C\nC A 30\nA B 12\nC D\n", ".edges")
    assert "2 of 5 links have no length: B - C (line 2), C - D (line 5); they take" in said
    assert "parallel links between the same two nodes: A - B (line 1, line 4)" in said
    assert "parallel" not in notes_of("A B 12\nB C 12\nC A 30\n", ".edges")


@pytest.mark.parametrize(
    ("latitude", "problem"),
    [
        ("161.5", "latitude; write degrees from -90 to 90"),
        ("north", "latitude; write degrees"),
        ("45", None),
        ("", None),
    ],
)
def test_impossible_coordinates_are_refused_with_the_name(
    latitude: str, problem: str | None
) -> None:
    nodes = [
        {"id": 0, "label": "Oslo", "Latitude": latitude, "Longitude": 10},
        {"id": 1, "label": "Bern", "Latitude": "46.95", "Longitude": 7.45},
    ]
    edges = [{"source": 0, "target": 1}]
    content = json.dumps({"nodes": nodes, "edges": edges})
    if problem is None:
        parse_text(content, ".json", "wavelengths=4")
        return
    with pytest.raises(ConfigError, match=f"`{latitude}` of Oslo is not a {problem}"):
        parse_text(content, ".json", "wavelengths=4")


def test_a_word_in_place_of_km_is_not_a_length() -> None:
    with pytest.raises(ConfigError, match=r"line 2.*`ten` is not a length; write a number of km"):
        parse_text("A B 3\nB C ten\n", ".edges", "wavelengths=4")


def test_cables_without_wavelengths_are_said_to_be_electrical() -> None:
    said = notes_of("A B 12\nB C 12\n", ".edges", "rate=10Gb/s")
    assert "the cables are electrical, so `length` is not read" in said
    assert "wavelengths=16 makes them fibres" in said
    assert "rate_from" not in said
    edges = [{"source": 0, "target": 1, "length": 3, "speed": 40}]
    content = json.dumps({"nodes": [{"id": 0}, {"id": 1}], "edges": edges})
    said = notes_of(content, ".json", "latency=0s")
    assert "not read: speed of edges" in said
    assert "rate_from=NAME" in said
