"""Values of the package in Python: copies, pickles, graphs, Arrow, Parquet, exceptions."""

from __future__ import annotations

import copy
import json
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx
import pyarrow
import pytest
from matplotlib.figure import Figure
from pyarrow import parquet

import opticoll
from opticoll import Fabric, errors, plot
from opticoll.formats import named_format
from support import RING, Run

TORUS = "torus:dims=4x4"
TRACE = (
    b"# app=hello ranks=2\nrank,call,peer,send_bytes,recv_bytes,tag,comm,req,compute_ns\n"
    b"0,Send,1,8,0,7,0,,100\n1,Recv,0,0,8,7,0,,40\n"
)
LADDER = "wdm_ladder:rungs=5,hosts=10,wavelengths=28,rate=10Gb/s"

VALUES: dict[str, Callable[[], Any]] = {
    "fabric": lambda: Fabric(RING, conversion="1ns"),
    "plan": lambda: opticoll.plan("all_gather", RING, size="1MiB"),
    "folded plan": lambda: opticoll.plan("all_gather", "optree_paper:ranks=64", "ring"),
    "plan of messages": lambda: opticoll.plan("all_reduce", TORUS, "ring", size="1MiB"),
    "collective": lambda: opticoll.Collective("reduce", 8, root=3, pieces=2),
    "demand": lambda: opticoll.Demand([[0, 3], [1, 0]]),
    "slots": lambda: opticoll.plan("all_gather", RING, "ring").simulate("1MiB"),
    "flows": lambda: opticoll.plan("all_gather", TORUS, "ring").simulate("1MiB"),
    "packets": lambda: opticoll.plan("all_gather", TORUS, "ring").simulate(
        "1KiB", simulator="packet", timeline=True
    ),
    "traffic": lambda: (
        opticoll.traffic(TORUS, "uniform", size="2KiB", period="1us", messages=3).outcome
    ),
    "bursts": lambda: opticoll.bursts(LADDER, {"bursts": "1e4", "warm_up": "0"}).outcome,
    "replay": lambda: opticoll.replay(opticoll.read_trace(TRACE), timeline=True).outcome,
    "rows": lambda: opticoll.compare("all_gather", RING, "ring").rows,
    "row without a command": lambda: opticoll.measure(
        opticoll.plan("all_gather", RING, "ring"), "1MiB"
    ),
}


@pytest.mark.parametrize("name", VALUES)
def test_a_pickle_is_read_back_as_it_was(name: str) -> None:
    value = VALUES[name]()
    again = pickle.loads(pickle.dumps(value))
    assert again is not value
    assert again == value
    assert repr(again) == repr(value)


@pytest.mark.parametrize("name", VALUES)
def test_copies_are_equal(name: str) -> None:
    value = VALUES[name]()
    assert copy.copy(value) == value
    assert copy.deepcopy(value) == value


@pytest.mark.parametrize("name", VALUES)
def test_what_is_computed_again_is_equal(name: str) -> None:
    assert VALUES[name]() == VALUES[name]()


@pytest.mark.parametrize(
    "name", [name for name in VALUES if name != "collective" and "row" not in name]
)
def test_equal_values_have_one_hash(name: str) -> None:
    value = VALUES[name]()
    assert {value: 1}[pickle.loads(pickle.dumps(value))] == 1


def test_different_outcomes_are_not_equal() -> None:
    plan = opticoll.plan("all_gather", RING, "ring")
    assert plan.simulate("1MiB") != plan.simulate("2MiB")
    assert plan.simulate("1MiB") != plan.simulate("1MiB", policy="free")
    assert plan.simulate("1MiB") != plan


def test_a_pickled_plan_says_what_it_was_chosen_from() -> None:
    plan = opticoll.plan("all_gather", RING, size="1MiB")
    again = pickle.loads(pickle.dumps(plan))
    assert again.asked == "auto"
    assert len(again.candidates) > 1
    assert (again.candidates, again.reasons) == (plan.candidates, plan.reasons)
    assert again.simulate() == plan.simulate()


def test_a_pickled_outcome_describes_itself_as_before() -> None:
    outcome = opticoll.plan("all_gather", RING, "ring").simulate("1MiB")
    again = pickle.loads(pickle.dumps(outcome))
    assert again.describe() == outcome.describe()
    assert {name: table.describe() for name, table in again.tables.items()} == {
        name: table.describe() for name, table in outcome.tables.items()
    }
    assert again.links["bytes"].dtype == outcome.links["bytes"].dtype
    assert again.links.axes == ("direction", "rank")
    assert pickle.loads(pickle.dumps(outcome.links)).rows() == outcome.links.rows()


def diamond() -> networkx.Graph:
    """Returns a fabric of two ranks that are joined by way of two switches."""
    graph = networkx.Graph(latency="1us")
    graph.add_nodes_from(["a", "b"])
    graph.add_nodes_from([(0, 1), (1, 0)], kind="switch")
    graph.add_edges_from([("a", (0, 1)), ((0, 1), "b")], rate="40Gb/s")
    graph.add_edges_from([("a", (1, 0)), ((1, 0), "b")], rate="10Gb/s")
    return graph


DIAMOND = Fabric(
    "custom:ranks=2,switches=2,links=0-2@40Gb/s+0-3@10Gb/s+1-2@40Gb/s+1-3@10Gb/s,"
    "names=a+b+0.1+1.0,latency=1us"
)


def test_a_graph_of_networkx_is_a_fabric() -> None:
    assert opticoll.read_fabric(diamond()) == DIAMOND
    one_way = networkx.DiGraph([(0, 1), (1, 2), (2, 0)])
    assert opticoll.read_fabric(one_way).link_ends == [(0, 1), (1, 2), (2, 0)]


def test_a_fabric_is_made_of_a_graph_only() -> None:
    assert Fabric.from_networkx(diamond()) == DIAMOND
    with pytest.raises(errors.FabricError, match="not a graph of NetworkX"):
        Fabric.from_networkx("crossbar:ranks=2")


def test_a_graph_that_is_no_fabric_names_the_place() -> None:
    graph = diamond()
    graph.nodes["b"]["kind"] = "swich"
    with pytest.raises(errors.ConfigError, match=r"nodes\.1\.kind: `swich`"):
        opticoll.plan("all_gather", graph)


@pytest.mark.parametrize(
    "spec",
    [
        "fat_tree:down=2x2,up=1x2",
        "custom:ranks=3,links=0>1+1>2+2>0+0-1@1Gb/s",
        "custom:ranks=2,links=0-1+0-1@5us",
        "custom:ranks=2,links=0~1",
    ],
)
def test_a_fabric_becomes_a_graph_and_is_read_again(spec: str) -> None:
    fabric = Fabric(spec)
    again = opticoll.read_fabric(fabric.to_networkx())
    assert again.ranks == fabric.ranks

    def links(one: Fabric) -> list[tuple[tuple[int, int], int]]:
        return sorted(zip(one.link_ends or [], one.link_rates, strict=True))

    assert links(again) == links(fabric)


def test_a_ring_of_light_has_no_graph() -> None:
    with pytest.raises(errors.FabricError, match="circuits"):
        Fabric(RING).to_networkx()


def test_a_slot_of_a_ring_is_a_graph_of_its_transfers() -> None:
    plan = opticoll.plan("all_gather", "wdm_ring:ranks=5,wavelengths=1", "ring")
    for slot in range(plan.slots):
        graph = plan.to_networkx(slot)
        assert list(graph) == [f"rank {rank}" for rank in range(5)]
        chunks = {(start, end): row["chunk"] for start, end, row in graph.edges(data=True)}
        # In step s of a ring, rank r passes on the block of rank r - s.
        assert chunks == {
            (f"rank {rank}", f"rank {(rank + 1) % 5}"): (rank - slot) % 5 for rank in range(5)
        }
        assert {row["slot"] for *_, row in graph.edges(data=True)} == {slot}


@pytest.mark.parametrize(
    "fabric",
    [
        "torus:dims=3x3",
        "fat_tree:down=2x2,up=1x2",
        "torus:dims=3x2,members=1-3+5",
        "wdm_graph:ranks=4,links=0-1@1km+1-2@1km+2-3@1km,names=a+b+c+d,wavelengths=2",
        "wss_grid:rows=2,columns=3",
    ],
)
def test_links_of_a_transfer_lead_from_its_source_to_its_destination(fabric: str) -> None:
    plan = opticoll.plan("all_to_all", fabric, "direct")
    whole = plan.to_networkx()
    assert len(whole.edges) == len(plan) == plan.fabric.ranks * (plan.fabric.ranks - 1)
    has_links = plan.fabric.link_ends is not None
    parts = networkx.DiGraph(plan.fabric.to_networkx()) if has_links else whole
    for source, destination, row in whole.edges(data=True):
        links = networkx.DiGraph(row["links"])
        assert networkx.shortest_path_length(links, source, destination) == len(row["links"])
        assert {*links} <= {*parts}
        assert not has_links or all(parts.has_edge(*link) for link in row["links"])
    of_slots = [plan.to_networkx(slot) for slot in range(plan.slots)]
    assert sum(len(graph.edges) for graph in of_slots) == len(whole.edges)


def test_a_broadcast_reaches_every_rank_in_its_graph() -> None:
    graph = opticoll.plan("broadcast", "dgx_h100", root=3).to_networkx()
    ranks = {name for name, kind in graph.nodes(data="kind") if kind == "rank"}
    assert networkx.descendants(graph, "rank 3") == ranks - {"rank 3"}


def test_a_plan_has_no_graph_of_a_slot_that_it_lacks() -> None:
    plan = opticoll.plan("all_gather", RING, "ring")
    for slot in (-1, plan.slots):
        with pytest.raises(IndexError, match=f"no slot {slot}: it has slots 0 to"):
            plan.to_networkx(slot)


def test_a_graph_without_its_package_names_the_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(errors.UsageError, match="pip install networkx"):
        opticoll.plan("all_gather", RING, "ring").to_networkx()


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "plan": lambda fabric: opticoll.plan("all_reduce", fabric, "ring").fabric.spec,
    "compare": lambda fabric: opticoll.compare("all_reduce", fabric, "ring").rows[0].fabric,
    "compare several": lambda fabric: (
        opticoll.compare("all_reduce", [fabric], "ring").rows[0].fabric
    ),
    "replay": lambda fabric: opticoll.replay(opticoll.read_trace(TRACE), fabric).fabric,
    "train": lambda fabric: (
        opticoll.train("resnet50", fabric, batch=32, algorithm="ring", buckets="all").fabric
    ),
    "traffic": lambda fabric: (
        opticoll.traffic(fabric, "uniform", size="2KiB", period="1us", messages=1).fabric
    ),
    "read_fabric": lambda fabric: opticoll.read_fabric(fabric).spec,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_take_graphs_and_files(name: str, tmp_path: Path) -> None:
    graph = networkx.Graph([("left", "hub"), ("hub", "right")])
    graph.nodes["hub"]["kind"] = "switch"
    networkx.write_graphml(graph, tmp_path / "pair.graphml")
    links = "[[left, hub], [hub, right]]"
    text = f"family: custom\nranks: [left, right]\nswitches: [hub]\nlinks: {links}\n"
    (tmp_path / "pair.yaml").write_text(text)
    files = [tmp_path / "pair.graphml", tmp_path / "pair.yaml"]
    given = [graph, opticoll.read_fabric(graph), *files, *map(str, files)]
    names = "names=left+right+hub"
    expected = f"custom:ranks=2,switches=1,links=0-2+2-1,{names},rate=100Gb/s,latency=0s"
    assert {FUNCTIONS[name](one) for one in given} == {expected}


def test_a_network_of_bursts_is_a_file_too(tmp_path: Path) -> None:
    family, _, options = LADDER.partition(":")
    fields = [f"family: {family}", *(one.replace("=", ": ") for one in options.split(","))]
    (tmp_path / "ladder.yaml").write_text("\n".join(fields))
    settings = {"bursts": "1e4", "warm_up": "0"}
    row = opticoll.bursts(tmp_path / "ladder.yaml", settings)
    assert row.outcome == opticoll.bursts(LADDER, settings).outcome


def test_a_path_of_another_file_is_refused() -> None:
    with pytest.raises(
        errors.FabricError, match=r"`ring.doc`: the name of a fabric's file.*\.yaml"
    ):
        opticoll.plan("all_gather", Path("ring.doc"))


@pytest.mark.parametrize("name", sorted({*errors.__all__} - {"ReadingNote"}))
def test_errors_are_value_errors(name: str) -> None:
    assert issubclass(getattr(errors, name), ValueError)


def test_studies_are_among_the_names() -> None:
    assert {*opticoll.__all__} <= {*dir(opticoll)}


def test_figures_are_drawn_in_axes() -> None:
    figure = Figure()
    left, right = figure.subplots(1, 2)
    plan = opticoll.plan("all_gather", RING, "ring")
    plan.plot(ax=left, slot=1)
    plan.simulate("1MiB").plot(ax=right, title="Slots of $ring$")
    assert left.has_data()
    assert left.get_legend() is not None
    assert right.get_ylabel() == "Slot"
    assert right.get_title(loc="left") == "Slots of $ring$"
    assert figure.axes[:2] == [left, right]


def test_a_comparison_is_drawn_in_axes() -> None:
    axes = Figure().subplots()
    assert opticoll.compare("all_gather", RING, "ring", sizes="1KiB..1MiB").plot(ax=axes) == []
    # ring, auto and the bound
    assert len(axes.get_lines()) >= 3


def test_a_figure_of_several_panels_needs_a_file() -> None:
    plan = opticoll.plan("all_gather", RING, "ring")
    with pytest.raises(plot.PlotError, match="several panels"):
        plan.plot(ax=Figure().subplots(), view="space_time")
    with pytest.raises(plot.PlotError, match="neither the name of a file nor axes"):
        plan.plot()


def test_tables_are_streams_of_arrow() -> None:
    plan = opticoll.plan("all_gather", RING, "ring", size="1MiB")
    links = pyarrow.table(plan.simulate().links)
    assert links.column_names == ["direction", "rank", "busy_ps", "bytes"]
    assert links.num_rows == 32
    assert pyarrow.table(plan.simulate())["time_ps"].to_pylist() == [plan.simulate().time_ps]
    assert pyarrow.table(plan).num_rows == len(plan)
    comparison = opticoll.compare("all_gather", RING, "ring")
    times = [row.time_s for row in comparison.rows]
    assert pyarrow.table(comparison)["time_s"].to_pylist() == times


def test_arrow_without_its_package_names_the_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(errors.UsageError, match=r"pip install .*pyarrow"):
        opticoll.plan("all_gather", RING, "ring").__arrow_c_stream__()


def test_a_table_of_a_command_holds_what_its_json_says(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    arguments = ("--fabric", RING, "--algorithms", "ring,optree", "--sizes", "1KiB,1MiB")
    finished = run("compare", "all_gather", *arguments, "--csv", path, "--json")
    assert finished.code == 0
    table = parquet.read_table(path)
    assert table.to_pylist() == json.loads(finished.out)
    types = {field.name: str(field.type) for field in table.schema}
    assert (types["algorithm"], types["time_s"], types["time_ps"]) == ("string", "double", "int64")
    assert (types["verified"], types["bound_steps"]) == ("bool", "int64")
    assert types["candidates"].startswith("list<element: struct<name: string, steps: int64")


def test_transfers_are_numbers_and_words(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "ring.parquet"
    options = ("--fabric", "wdm_ring:ranks=3,wavelengths=1", "--algorithm", "ring")
    assert run("export", "all_gather", *options, "--output", path).code == 0
    table = parquet.read_table(path)
    # Two steps: everyone's own block, then the one received, to the next rank clockwise.
    assert table.column("source").to_pylist() == [0, 1, 2, 0, 1, 2]
    assert table.column("chunk").to_pylist() == [0, 1, 2, 2, 0, 1]
    assert table.column("slot").to_pylist() == [0, 0, 0, 1, 1, 1]
    assert table.column("direction").to_pylist() == ["cw"] * 6


def test_what_parquet_cannot_hold_leaves_no_file(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    written = named_format("rows", str(path))
    assert written.name == "parquet"
    for value in (2**70, object()):
        with pytest.raises(errors.FileError, match="Parquet cannot hold"):
            written.write([{"number": value}], path)
    with pytest.raises(errors.FileError, match="Parquet cannot hold"):
        written.write([{"number": 1}, {"number": "one"}], path)
    assert list(tmp_path.iterdir()) == []
