"""Fabrics that functions of users return: `--fabric module:function,key=value`."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

import opticoll
from opticoll import errors
from opticoll.study import document
from opticoll.study.points import points
from support import Run, answer

POD = """
import networkx
import opticoll


def pod(hosts: int = 4, spines: int = 2, rate: str = "100Gb/s") -> networkx.Graph:
    graph = networkx.Graph(rate=rate, latency="1us")
    graph.add_nodes_from([f"gpu{host}" for host in range(hosts)])
    for spine in range(spines):
        graph.add_node(f"spine{spine}", kind="switch")
        graph.add_edges_from((f"gpu{host}", f"spine{spine}") for host in range(hosts))
    return graph


def text(ranks: int = 8) -> str:
    return f"wdm_ring:ranks={ranks},wavelengths=2"


def fabric() -> opticoll.Fabric:
    return opticoll.Fabric("wss_grid:rows=2,columns=2")


def ladder() -> str:
    return "wdm_ladder:rungs=3,hosts=2,wavelengths=4"


def pairs(ranks: int = 4) -> networkx.DiGraph:
    graph = networkx.DiGraph()
    for start in range(ranks):
        for end in range(ranks):
            if start != end:
                rate, latency = f"{start + end + 1}Gb/s", f"{10 * start + end}us"
                graph.add_edge(start, end, rate=rate, latency=latency)
    return graph


def fibres() -> networkx.Graph:
    graph = networkx.path_graph(3)
    graph.graph.update(wavelengths=2, hosts=2)
    return graph
"""

SPEC = "custom:ranks=2,switches=1,links=0-2+1-2,names=gpu0+gpu1+spine0,rate=40Gb/s,latency=1us"
"""The fabric of `pod,hosts=2,spines=1,rate=40Gb/s`, written out."""


@pytest.fixture
def pods(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    """Writes the functions to a module, and returns its name."""
    # A module of its own name for each test, as Python keeps what it has imported.
    name = f"pods_{abs(hash(request.node.name))}"
    (tmp_path / f"{name}.py").write_text(POD)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    return name


def test_a_function_returns_a_graph_a_text_or_a_fabric(pods: str) -> None:
    read = opticoll.read_fabric
    assert read(f"{pods}:pod,hosts=2,spines=1,rate=40Gb/s") == opticoll.Fabric(SPEC)
    assert read(f"{pods}:text,ranks=5") == opticoll.Fabric("wdm_ring:ranks=5,wavelengths=2")
    assert read(f"{pods}:fabric") == opticoll.Fabric("wss_grid:rows=2,columns=2")


def test_a_message_takes_the_latency_and_the_rate_of_its_pair(pods: str) -> None:
    plan = opticoll.plan("all_to_all", f"{pods}:pairs", "direct")
    # 75 KB from each rank to each rank are 600,000 bits.
    for transfer, start_ps, end_ps in plan.message_times("300KB"):
        start, end = plan.ends(transfer)
        bits_ps = 600_000 * 1000 / (start + end + 1)
        assert end_ps - start_ps == pytest.approx((10 * start + end) * 10**6 + bits_ps, abs=1)


COMMANDS = {
    "plan": "plan all_reduce --fabric POD",
    "compare": "compare all_reduce --fabric POD --algorithms ring",
    "bound": "bound all_reduce --fabric POD",
    "simulate": "simulate all_reduce --fabric POD",
    "show": "show all_reduce --fabric POD",
    "run": "run all_reduce --fabric POD --size 1KiB",
    "export": "export all_reduce --fabric POD --size 1KiB --output p.csv",
    "traffic": "traffic --fabric POD --pattern uniform --bytes 1KiB --period 1us --messages 1",
    "train": "train --model resnet50 --fabric POD --batch 32 --algorithm ring",
    "goodput": "goodput --fabric POD --unit 1 --length 1d",
    "replan": "replan all_reduce --fabric POD --failed 'gpu0 -> spine0'",
    "list": "list POD",
    "list bom": "list bom POD",
    "parts": "plan all_reduce --fabric POD --without spine0",
    "bursts": "traffic --fabric LADDER --simulator burst --bursts 1e3 --warm-up 0",
    "congestion": "congestion all_gather --fabric FIBRES --size 1KiB",
}


@pytest.mark.parametrize("name", COMMANDS)
def test_commands_take_the_function(run: Run, pods: str, name: str) -> None:
    names = {"POD": "pod,spines=2", "LADDER": "ladder", "FIBRES": "fibres"}
    words = shlex.split(COMMANDS[name])
    shown = run(*(f"{pods}:{names[word]}" if word in names else word for word in words))
    assert shown.code == 0, shown.err


def test_a_table_names_the_function_and_its_command_needs_no_function(run: Run, pods: str) -> None:
    named = f"{pods}:pod,hosts=2,spines=1,rate=40Gb/s"
    assert (
        f"on 2 ranks of {named} (1 switch, 2 cables"
        in run("compare", "all_reduce", "--fabric", named, "--algorithms", "ring").out
    )
    row = opticoll.compare("all_reduce", named, "ring").rows[0]
    assert row.fabric == SPEC
    assert pods not in str(row.command)


BROKEN = {
    "nothing": ("def f(): pass\n", "f", "returned no fabric | `None`"),
    "another function": ("def f(): return 'MODULE:f'\n", "f", "is the name of a function"),
    "a wrong text": ("def f(): return 'toruss:dims=4'\n", "f", "unknown fabric `toruss` | torus"),
    "a wrong graph": (
        "import networkx\ndef f(): return networkx.Graph({0: [], 1: []})\n",
        "f",
        "MODULE:f: there are no links",
    ),
    "raises": ("def f():\n    1 // 0\n", "f", "ZeroDivisionError | MODULE.py, line 2"),
    "no function": ("x = 1\n", "f", "cannot load fabric | no `f`"),
    "no option": ("def f(): pass\n", "f,depth=3", "TypeError | depth"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_function_is_refused_in_one_line(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    code, function, words = BROKEN[name]
    module = f"broken_fabric_{list(BROKEN).index(name)}"
    (tmp_path / f"{module}.py").write_text(code.replace("MODULE", module))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    arguments = ["plan", "all_gather", "--fabric", f"{module}:{function}"]
    shown = run(*arguments)
    assert shown.code == 2
    (line,) = shown.err.splitlines()
    for word in words.replace("MODULE", module).split(" | "):
        assert word in line


def test_a_misspelled_family_is_not_taken_for_a_module_alone() -> None:
    with pytest.raises(errors.FabricError, match=r"No module.*did you mean `wdm_ring`"):
        opticoll.read_fabric("wdm_rng:converters")


def test_a_file_of_tasks_runs_no_function(run: Run, pods: str, tmp_path: Path) -> None:
    (tmp_path / "tasks.yaml").write_text(
        f"fabric: {pods}:fabric\ntasks: [{{collective: all_reduce}}]\n"
    )
    shown = run("tasks", tmp_path / "tasks.yaml")
    assert shown.code == 2
    assert "unknown fabric" in shown.err


def test_a_sweep_computes_a_point_again_if_the_module_has_changed(
    pods: str, tmp_path: Path
) -> None:
    (tmp_path / "study.yaml").write_text(f"""
study: pods
command: simulate
options: {{collective: all_reduce, algorithm: ring, fabric: "{pods}:pod"}}
grid: {{fabric.spines: [1, 2], size: [1KiB, 1MiB]}}
""")
    study = document.read(tmp_path / "study.yaml")
    before = [point.key for point in points(study)]
    assert len(set(before)) == 4
    assert before == [point.key for point in points(study)]
    assert opticoll.sweep(tmp_path / "study.yaml", jobs=1).computed == 4
    rows = opticoll.results(tmp_path / "study.sqlite")
    assert [row["fabric.spines"] for row in rows] == [1, 1, 2, 2]
    assert opticoll.sweep(tmp_path / "study.yaml", jobs=1).computed == 0
    module = tmp_path / f"{pods}.py"
    module.write_text(module.read_text() + "\n")
    assert not {point.key for point in points(study)} & set(before)


def test_a_scenario_names_a_function(pods: str, tmp_path: Path, run: Run) -> None:
    (tmp_path / "scenario.yaml").write_text(
        f'collective: all_reduce\nfabric: "{pods}:pod,hosts=2,spines=1,rate=40Gb/s"\n'
        "algorithms: [ring]\n"
    )
    (row, _) = answer(run, "compare", tmp_path / "scenario.yaml")
    assert row["fabric"] == SPEC
