"""Plans on other graphs of fibres than their own, and the names of sites after failures."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import opticoll
from opticoll.formats.network_graph import rank_names
from opticoll.formats.network_parts import network_parts
from opticoll.inputs.fabric_files import parse_fabric
from opticoll.inputs.imported import moved, read_plan
from opticoll.report.plan_page import content
from support import Run, drawn, proved

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["drawn"]

pytestmark = pytest.mark.filterwarnings("ignore::opticoll.errors.ReadingNote")

CABLES = """\
Alpha Beta 47
Beta Gamma 30
Gamma Delta 55
Delta Epsilon 20
Epsilon Zeta 33
Zeta Alpha 41
Alpha Delta 80
"""
SITES = ["Alpha", "Beta", "Gamma", "Delta", "Epsilon", "Zeta"]


@pytest.fixture
def graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Returns the name of an edge list of six sites."""
    monkeypatch.chdir(tmp_path)
    Path("my.edges").write_text(CABLES, encoding="utf-8")
    return "my.edges"


@pytest.fixture
def plan_file(run: Run, graph: str) -> str:
    """Returns the name of a plan file on four wavelengths, with slots and light by `direct`."""
    asked = ["--fabric", f"{graph}:wavelengths=4", "--algorithm", "direct:order=at_once"]
    assert run("plan", "all_gather", *asked, "--output", "k.plan").code == 0
    return "k.plan"


def test_links_of_a_graph_of_fibres_have_names_ends_and_rates() -> None:
    fabric = opticoll.Fabric(
        "wdm_graph:ranks=2,switches=1,links=0-2@1Gb/s+2>1+1>0,names=left+right+hub,wavelengths=2"
    )
    assert fabric.link_count == 4
    assert fabric.link_names == ["left -> hub", "hub -> left", "hub -> right", "right -> left"]
    assert fabric.link_name(2) == "hub -> right"
    assert fabric.link_ends == [(0, 2), (2, 0), (2, 1), (1, 0)]
    assert fabric.link_rates == [10**9, 10**9, 10**11, 10**11]


@pytest.mark.parametrize(
    ("options", "is_valid"),
    # With three wavelengths, the fourth one is missing.
    [("5", True), ("4,rate=10Gb/s", True), ("3", False)],
)
def test_a_plan_is_verified_on_changed_fibres(
    run: Run, graph: str, plan_file: str, options: str, is_valid: bool
) -> None:
    finished = run("verify", plan_file, "--fabric", f"{graph}:wavelengths={options}")
    assert "internal error" not in finished.err
    assert (finished.code == 0) == is_valid, finished.err
    if not is_valid:
        assert "wavelength 3" in finished.out + finished.err
    for command in ("show", "simulate"):
        finished = run(command, plan_file, "--fabric", f"{graph}:wavelengths={options}")
        assert "internal error" not in finished.err
        assert (finished.code == 0) == is_valid, finished.err


def test_a_plan_that_sends_over_a_cut_cable_is_refused_with_its_name(
    run: Run, graph: str, plan_file: str
) -> None:
    finished = run("verify", plan_file, "--fabric", f"{graph}:wavelengths=4,without=0-1")
    assert finished.code == 2
    assert "sends over Alpha -> Beta, which" in finished.err
    # Other sites: the plan of six ranks does not fit fourteen.
    finished = run("verify", plan_file, "--fabric", "nsfnet:wavelengths=4")
    assert "has 14 ranks, the schedule 6" in finished.err


def named_routes(plan: opticoll.Plan) -> dict[tuple[int, int], list[str | None]]:
    """Returns the names of the links of each transfer, by its source and destination."""
    return {
        plan.ends(transfer): [plan.fabric.link_name(link) for link in plan.route(transfer)]
        for transfer in range(len(plan))
    }


def test_links_keep_their_ends_where_a_cut_cable_changes_their_numbers(
    run: Run, graph: str
) -> None:
    # Light between Delta, Epsilon and Zeta leaves the first cable unused.
    cut = "my.edges:wavelengths=4,members=3-5"
    plan = opticoll.plan("all_gather", cut, "direct:order=at_once")
    Path("part.plan").write_text(plan.to_text(), encoding="utf-8")
    assert "via 0" not in plan.to_text()
    kept, _ = read_plan("part.plan", fabric=f"{cut},without=0-1")
    proved(kept)
    assert named_routes(kept) == named_routes(plan)


@pytest.mark.parametrize(
    ("asked", "failed"),
    [
        (["k.plan"], "0-1"),
        (["all_gather", "--fabric", "wdm_mesh:dims=3x3,wavelengths=4"], "dead=1"),
        (["all_gather", "--fabric", "my.edges:wavelengths=4"], "Beta"),
    ],
)
def test_failures_are_replanned(run: Run, plan_file: str, asked: list[str], failed: str) -> None:
    finished = run("replan", *asked, "--failed", failed, "--output", "new.plan")
    assert finished.code == 0, finished.err
    proved(opticoll.read_plan("new.plan"))


@pytest.mark.parametrize(
    ("options", "ranks", "idle"),
    [
        ("without=Alpha", SITES[1:], ["Alpha"]),
        ("members=2-5", SITES[2:], SITES[:2]),
        ("members=Gamma+Alpha+Zeta", ["Alpha", "Gamma", "Zeta"], ["Beta", "Delta", "Epsilon"]),
        ("members=2-5,without=Epsilon", ["Gamma", "Delta", "Zeta"], ["Alpha", "Beta", "Epsilon"]),
    ],
)
def test_ranks_of_a_part_have_the_names_of_their_sites(
    run: Run, graph: str, options: str, ranks: list[str], idle: list[str]
) -> None:
    spelled = f"{graph}:wavelengths=4,{options}"
    fabric = parse_fabric(spelled)
    assert rank_names(fabric) == ranks
    assert fabric.vertex_names == ranks + idle
    assert fabric.idle_ranks == len(idle)
    asked = ["--fabric", spelled, "--algorithm", "direct:order=at_once"]
    shown = run("show", "all_gather", *asked)
    senders = {line.split()[3] for line in shown.out.splitlines() if line.startswith("copy")}
    assert senders == set(ranks)


def test_a_preset_names_the_ranks_that_are_left(run: Run) -> None:
    asked = ["--fabric", "nsfnet:wavelengths=4,without=Seattle", "--algorithm", "direct"]
    shown = run("show", "broadcast", *asked)
    assert "Palo-Alto > San-Diego" in shown.out
    assert "Seattle" not in shown.out


def test_figures_and_reports_name_sites_and_failures(
    run: Run, graph: str, drawn: list[Figure], tmp_path: Path
) -> None:
    asked = ["--fabric", f"{graph}:wavelengths=4,without=Alpha", "--algorithm", "direct"]
    for view in ("fabric", "space_time"):
        finished = run("show", "all_gather", *asked, "--view", view, "--figure", tmp_path / "x.svg")
        assert finished.code == 0, finished.err
        figure = drawn[-1]
        axes = figure.axes[0]
        labels = [text.get_text() for text in (*axes.texts, *axes.get_yticklabels())]
        labels = list(filter(None, labels))
        keys = [text.get_text() for legend in figure.legends for text in legend.get_texts()]
        if view == "fabric":
            assert sorted(label for label in labels if label in SITES) == sorted(SITES)
            assert keys[:2] == ["rank", "failed rank"]
        else:
            assert labels == SITES[1:]
        assert "switch" not in keys
    page = content(
        plan := opticoll.plan("all_gather", f"{graph}:wavelengths=4,members=Beta+Zeta", "direct"),
        1024,
        plan.simulate(1024),
    )
    assert page["names"] == ["Beta", "Zeta", "Alpha", "Gamma", "Delta", "Epsilon"]
    assert (page["idle"], page["idle_noun"]) == (4, "rank that takes no part")


def test_violations_name_sites(graph: str) -> None:
    plan = opticoll.plan("all_gather", f"{graph}:wavelengths=4,without=Alpha", "direct")
    text = plan.to_text()
    line = next(line for line in text.splitlines() if " 0>1 " in line)
    # Without Alpha, rank 0 is Beta, and link 3 leads from Gamma to Beta.
    wrong = opticoll.Plan.from_text(text.replace(line, re.sub(" via .*", " via 3", line), 1))
    sentence = next(one.sentence for one in wrong.verify() if one.kind == "route")
    assert "(rank 0 to 1, Beta to Gamma) goes over link 3 (Gamma -> Beta)" in sentence
    assert "which does not leave Beta, where it starts" in sentence


def test_violations_state_decibels() -> None:
    # The light loses 110 km times 0.25 dB = 27.5 dB, 2.1 dB more than 25.4 dB.
    fabric = "wdm_graph:ranks=3,links=0-1@10km+1-2@100km,wavelengths=2,launch_power=0dBm"
    fabric += ",fibre_loss=0.25dB/km,sensitivity="
    plan = opticoll.plan("broadcast", f"{fabric}-30dBm", "direct")
    sentences = [one.sentence for one in moved(plan, opticoll.Fabric(f"{fabric}-25.4dBm")).verify()]
    assert [sentence.partition(" has ")[2] for sentence in sentences] == [
        "light of which the received power is 2.1 dB below the sensitivity"
    ]


def test_list_shows_sites_and_cables_with_the_numbers_of_plan_files(run: Run, graph: str) -> None:
    listed = run("list", f"{graph}:wavelengths=4,without=Beta", "--json")
    rows = json.loads(listed.out)
    sites = {row["name"]: (row["number"], row["role"]) for row in rows if row["kind"] == "sites"}
    assert sites["Gamma"] == (1, "rank")
    assert sites["Beta"] == (5, "idle")
    cables = {row["name"]: row for row in rows if row["kind"] == "cables"}
    # Every cable is two links, in the order of the file.
    for number, line in enumerate(CABLES.splitlines()):
        start, end, km = line.split()
        cable = cables[f"{start} - {end}"]
        assert (cable["number"], cable["length"]) == (number, f"{km}km")
        assert cable["links"] == [2 * number, 2 * number + 1]
    shown = run("list", f"{graph}:wavelengths=4,without=0-1").out.splitlines()
    # A plan file numbers the links that are left.
    assert next(line for line in shown if line.startswith("Beta - Gamma")).split()[3:] == [
        *("0", "30km", "100Gb/s", "0", "1")
    ]


@pytest.mark.parametrize(
    "spelled",
    [
        "wdm_graph:ranks=3,switches=1,links=0-1+0-1@1us+1~2+2>0+0>3+3-2,wavelengths=1",
        "wdm_torus:dims=2x3,wavelengths=2,without=0-1",
        "fat_tree:down=2x2,up=1x2",
    ],
)
def test_each_link_belongs_to_one_cable_between_its_ends(spelled: str) -> None:
    fabric = opticoll.Fabric(spelled)
    sites, cables = network_parts(fabric)
    names = [site.name for site in sites]
    assert names == fabric.vertex_names
    assert sorted(link for cable in cables for link in cable.links) == [*range(fabric.link_count)]
    for cable in cables:
        ends = {frozenset((fabric.link_ends or [])[link]) for link in cable.links}
        (pair,) = ends
        assert {names[end] for end in pair} == set(re.split(" (?:-|->|<->) ", cable.name))


def test_list_of_other_names_shows_records(run: Run) -> None:
    assert run("list", "nsfnet").out.startswith("nsfnet: preset")
    assert "algorithm of" in run("list", "ring:stripes=all").out
    assert run("list", "wdm_ring:ranks=4,wavelengths=1").out.startswith("wdm_ring")
