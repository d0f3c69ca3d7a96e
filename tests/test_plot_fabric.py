"""Pictures of plans on electrical fabrics and grids: they show the plan and the fabric."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from matplotlib.collections import LineCollection, QuadMesh
from matplotlib.figure import Figure

import opticoll
from opticoll import Outcome, Plan, plot
from opticoll.errors import OpticollError
from opticoll.outputs.plan_row import PlanRow, measured
from opticoll.outputs.views import views_of
from opticoll.plot import PlotError
from support import Run

if TYPE_CHECKING:
    from opticoll._core import Drawing

FABRICS = [
    "crossbar:ranks=8",
    "fat_tree:down=4x4,up=1x2",
    "fat_tree:down=2x2x2,up=1x2x1,links=1x1x2,duplex=half",
    "dragonfly:terminals_per_router=2,routers_per_group=4,global_per_router=2",
    "torus:dims=6",
    "torus:dims=4x3",
    "torus:dims=3x3,terminals=2",
    "torus:dims=3x3x3",
    "torus:dims=3x2x2x2",
    "mesh:dims=4x3,terminals=1",
    "ladder:rungs=3",
    "ladder:rungs=3,terminals=2",
    "electrical_ring:ranks=6",
    "fully_connected:ranks=5",
    "custom:ranks=3,switches=2,links=0-3+1-3+2-4+3-4",
]


def drawing(machine: opticoll.Fabric) -> Drawing:
    found = machine.drawing
    assert found is not None
    return found


def lines(figure: Figure) -> list[LineCollection]:
    return [one for one in figure.axes[0].collections if isinstance(one, LineCollection)]


@pytest.mark.parametrize("spelled", FABRICS)
def test_every_vertex_has_a_place_of_its_own(spelled: str) -> None:
    machine = opticoll.Fabric(spelled)
    assert machine.link_ends is not None
    at = drawing(machine)["places"]
    vertices = 1 + max(vertex for pair in machine.link_ends for vertex in pair)
    assert at.shape == (vertices, 2)
    apart = np.sqrt(((at[:, None] - at[None]) ** 2).sum(axis=2))
    np.fill_diagonal(apart, np.inf)
    assert apart.min() > 0.05, spelled


@pytest.mark.parametrize("spelled", FABRICS)
def test_every_link_is_drawn_once_or_as_two_stubs(
    spelled: str, drawn: list[Figure], tmp_path: Path
) -> None:
    plan = opticoll.plan("all_reduce", spelled, "ring")
    assert plan.verify() == []
    for slot in (None, 0):
        plot.fabric(plan, tmp_path / "x.svg", slot=slot, size=1 << 20)
    for figure in drawn:
        segments = sum(len(one.get_segments()) for one in lines(figure))
        around = len(drawing(plan.fabric)["around"])
        assert segments == plan.fabric.link_count + around
    idle, busy = lines(drawn[1])
    # Of the ring's first step: a message from each rank to the next, over its route.
    count = np.zeros(plan.fabric.link_count)
    ranks = plan.fabric.ranks
    for rank in range(ranks):
        count[plan.fabric.route(rank, (rank + 1) % ranks)] += 1
    doubled = np.append(count, count[drawing(plan.fabric)["around"]])
    shown: Any = busy.get_array()
    assert sorted(shown) == sorted(doubled[doubled > 0])
    assert len(idle.get_segments()) == (doubled == 0).sum()


def test_links_around_a_torus_are_those_between_its_sides() -> None:
    # 4 x 3 nodes: a cable around each of 3 rows and 4 columns, each way.
    around = {
        spelled: len(drawing(opticoll.Fabric(spelled))["around"])
        for spelled in ("torus:dims=4x3", "mesh:dims=4x3", "torus:dims=6")
    }
    assert list(around.values()) == [2 * (3 + 4), 0, 0]


def test_messages_are_drawn_when_theory_has_them(drawn: list[Figure], tmp_path: Path) -> None:
    # A switch of 1 GB/s and 1 us per cable: a step of a ring all_gather of 1 MB takes 1.002 ms.
    plan = opticoll.plan("all_gather", "crossbar:ranks=4,rate=8Gb/s,latency=1us", "ring")
    times = plan.message_times(1_000_000)
    step = 1_002_000_000
    assert [(start, end) for _, start, end in times] == [
        (number * step, (number + 1) * step) for number in range(3) for _ in range(4)
    ]
    assert [transfer for transfer, _, _ in times] == list(range(12))
    plot.messages(plan, tmp_path / "x.svg", size=1_000_000)
    (collection,) = lines(drawn[0])
    for index, segment in enumerate(collection.get_segments()):
        number, rank = divmod(index, 4)
        expected = [[number * 1.002, rank], [(number + 1) * 1.002, (rank + 1) % 4]]
        assert np.allclose(segment, expected)


def test_every_rule_starts_messages_in_order() -> None:
    plan = opticoll.plan("all_reduce", "fat_tree:down=4x4,up=1x2", "halving_doubling")
    for start in ("rendezvous", "sender", "step", "link"):
        times = plan.message_times("1MiB", start)
        slots = plan.columns()["slot"]
        assert max(end for _, _, end in times) == plan.simulate("1MiB", start=start).time_ps
        if start == "step":
            ends = [
                [one[1:] for one in times if slots[one[0]] == slot] for slot in range(plan.slots)
            ]
            for before, after in pairwise(ends):
                assert max(end for _, end in before) == min(begun for begun, _ in after)
    with pytest.raises(OpticollError, match="did you mean `step`"):
        plan.message_times("1MiB", "stpe")


@pytest.mark.parametrize("options", [[], ["--slot", "1"], ["--view", "space_time"]])
def test_show_draws_electrical_plans(run: Run, options: list[str], tmp_path: Path) -> None:
    path = tmp_path / "x.svg"
    finished = run(
        *("show", "all_reduce", "--fabric", FABRICS[1], "--algorithm", "halving_doubling"),
        *("--size", "1MiB", "--figure", path, *options),
    )
    assert finished.code == 0, finished.err
    assert path.read_bytes().startswith(b"<?xml")
    assert (f"slot {options[1] if options else 0}:" in finished.out) == ("--view" not in options)


def test_pictures_of_light_are_refused_for_flows_and_the_other_way_round(tmp_path: Path) -> None:
    lit = opticoll.plan("all_gather", "wdm_ring:ranks=8,wavelengths=2", "ring")
    for draw in (plot.fabric, plot.messages):
        with pytest.raises(plot.PlotError, match="lightpaths"):
            draw(lit, tmp_path / "x.svg")
    many = opticoll.plan("all_gather", "custom:ranks=2,switches=1,links=0-2+1-2", "ring")
    with pytest.raises(plot.PlotError, match="no slot 9"):
        plot.fabric(many, tmp_path / "x.svg", slot=9)
    assert not list(tmp_path.iterdir())


def shares_of(figure: Figure) -> np.ndarray:
    """Returns the percentages of the lower panel, by link and bin."""
    meshes = [one for axes in figure.axes for one in axes.collections if isinstance(one, QuadMesh)]
    values: Any = meshes[0].get_array()
    return np.asarray(values)


def test_links_that_bound_a_plan_are_full_in_the_picture_and_none_is_over(
    drawn: list[Figure],
) -> None:
    """A rank that only sends, then only receives: each of its links is full half of the time."""
    plan = opticoll.plan("broadcast", "electrical_ring:ranks=3,rate=8Gb/s", "chain:segments=1")
    assert plan.verify() == []
    for bins in (2, 3, 4):
        outcome = plan.simulate(1_000_000, link_bin=f"{2_000_000 // bins}ns")
        assert outcome.time_ps == 2 * 10**9  # 1 MB over two links, one after the other, 1 GB/s
        plot.link_use(plan, outcome, "unused.svg")
        first, second = shares_of(drawn[-1])
        filled = np.clip(bins / 2 - np.arange(len(first)), 0, 1) * 100
        assert first == pytest.approx(filled, abs=1e-3)
        assert second == pytest.approx(100 - filled, abs=1e-3)


def test_the_busiest_links_are_drawn_under_their_names(drawn: list[Figure]) -> None:
    plan = opticoll.plan("all_to_all", "torus:dims=5x5", "pairwise")
    outcome = plan.simulate(1 << 20, link_bin="1us")
    plot.link_use(plan, outcome, "unused.svg")
    shares = shares_of(drawn[-1])
    assert shares.shape[0] == 40
    assert shares.max() <= 100 + 1e-6
    labels = [label.get_text() for label in drawn[-1].axes[1].get_yticklabels()]
    total = outcome.link_use["bytes"].sum(axis=1)
    named = [plan.fabric.link_names.index(label) for label in labels]
    # Links of the critical path are shown in any case.
    others = [link for link in named if link not in outcome.critical_path["bottleneck"]]
    assert others
    assert min(total[others]) >= max(np.delete(total, named))


def test_what_has_no_links_in_time_is_refused(tmp_path: Path) -> None:
    target = tmp_path / "use.svg"
    plan = opticoll.plan("all_gather", "crossbar:ranks=4", "ring")
    with pytest.raises(OpticollError, match="link_bin"):
        plot.link_use(plan, plan.simulate(100), target)
    assert not target.exists()


def test_flows_are_simulated_once_to_be_drawn(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:

    target = tmp_path / "use.svg"
    simulated: list[Outcome] = []
    draw = plot.link_use

    def watched(*arguments: Any, **options: Any) -> tuple[PlanRow, Outcome]:
        row, outcome = measured(*arguments, **options)
        simulated.append(outcome)
        return row, outcome

    def link_use(plan: Plan, outcome: Outcome, *where: Any) -> None:
        # Each outcome is an object of its own: what is drawn is what was simulated.
        assert [outcome] == simulated
        draw(plan, outcome, *where)

    monkeypatch.setattr("opticoll.commands.simulate.measured", watched)
    monkeypatch.setattr(plot, "link_use", link_use)
    for options in ((), ("--link-bin", "none"), ("--link-bin", "20us")):
        asked = ("all_gather", "--fabric", "crossbar:ranks=4", *options)
        done = run("simulate", *asked, "--figure", target)
        assert done.code == 0
        outcome = simulated.pop()
        bin_ps, carried = outcome.link_use_bin_ps, outcome.link_use["bytes"]
        if options[-1:] == ("20us",):
            assert bin_ps == 20_000_000
        else:
            assert 200 <= carried.shape[1] <= 400
    assert target.read_text().startswith("<?xml")


GRIDS = ["rows=3,columns=3", "rows=2,columns=5,nodes=0-8,dead_ports=row0.1", "rows=1,columns=1"]


@pytest.mark.parametrize("options", GRIDS[:2])
def test_a_slot_has_an_arc_for_each_hop_from_node_to_node(
    options: str, drawn: list[Figure], tmp_path: Path
) -> None:
    plan = opticoll.plan("all_to_all", f"wss_grid:{options}", "direct")
    assert plan.verify() == []
    columns = plan.fabric.option("columns")
    for slot in range(plan.slots):
        plot.grid(plan, slot, tmp_path / "f.png")
        axes = drawn[-1].axes[0]
        (arcs,) = (one for one in axes.collections if isinstance(one, LineCollection))
        hops = plan.hop_columns(slot)
        assert len(arcs.get_segments()) == len(hops["source"])
        for index, line in enumerate(arcs.get_segments()):
            for end, rank in ((line[0], "source"), (line[-1], "destination")):
                row, column = divmod(plan.fabric.drawing["nodes"][hops[rank][index]], columns)
                assert np.hypot(end[0] - column, end[1] - row) < 0.3
            # Light of a row bulges away from the row, of a column from the column.
            straight = line[:, 1] if hops["plane"][index] == 0 else line[:, 0]
            assert abs(straight[len(line) // 2] - round(straight[0])) > 0.15
        # One colour for each wavelength.
        colours = np.unique(np.asarray(arcs.get_color()), axis=0)
        assert len(colours) == len(np.unique(hops["wavelength"]))


def test_ports_and_slots_show_every_hop(drawn: list[Figure], tmp_path: Path) -> None:
    plan = opticoll.plan("all_reduce", "wss_grid:rows=2,columns=4", "halving_doubling")
    plot.grid_space_time(plan, tmp_path / "f.png")
    (image,) = drawn[0].axes[0].images
    shown: np.ndarray[tuple[int, ...], np.dtype[np.float64]] = np.ma.filled(
        np.ma.asarray(image.get_array()), -1
    )
    hops = plan.hop_columns()
    expected = np.full((16, plan.slots), -1.0)
    expected[hops["plane"] * 8 + hops["source"], hops["slot"]] = hops["wavelength"]
    assert np.array_equal(shown, expected)
    # Three exchanges and back, of which two in columns; the other port is dark.
    assert (expected >= 0).sum() == 8 * 6


@pytest.mark.parametrize("options", GRIDS)
@pytest.mark.parametrize("view", ["grid", "space_time"])
def test_show_draws_grids_the_same_every_time(
    run: Run, tmp_path: Path, options: str, view: str
) -> None:
    fabric = ("--fabric", f"wss_grid:{options}", "--algorithm", "direct", "--view", view)
    files = [tmp_path / "one.svg", tmp_path / "two.svg"]
    codes = [run("show", "all_gather", *fabric, "--figure", file).code for file in files]
    slots = opticoll.plan("all_gather", f"wss_grid:{options}", "direct").slots
    if slots == 0:
        assert codes == [2, 2]
        return
    assert codes == [0, 0]
    assert files[0].read_bytes() == files[1].read_bytes()


def test_grids_that_do_not_fit_on_paper_are_refused(tmp_path: Path) -> None:
    plan = opticoll.plan("all_reduce", "wss_grid:rows=64,columns=64", "halving_doubling")
    with pytest.raises(PlotError, match="8192 ports"):
        plot.grid_space_time(plan, tmp_path / "f.svg")
    with pytest.raises(PlotError, match="no slot 24"):
        plot.grid(plan, 24, tmp_path / "f.svg")
    assert list(tmp_path.iterdir()) == []


FIBRES = [
    "nsfnet:wavelengths=8",
    "wdm_torus:dims=4x3,wavelengths=4",
    "wdm_torus:dims=4x4,wavelengths=2,multicast=drop_and_continue",
    "wdm_line:ranks=6,wavelengths=4,fibres=2",
    # Two parallel cables, a cable one way, and a switch of light.
    "wdm_graph:ranks=4,switches=1,links=0-1+0-1+1>2+2-3+3-0+0-4+4-2,wavelengths=2",
]

BESIDE = 0.2
"""Maximum distance of a lane from its cable, in units of the positions."""


def near(line: np.ndarray, point: np.ndarray) -> float:
    """Returns the distance of a point from a line of several stretches."""
    start, along = line[:-1], np.diff(line, axis=0)
    share = ((point - start) * along).sum(axis=1) / np.maximum((along**2).sum(axis=1), 1e-12)
    foot = start + np.clip(share, 0, 1)[:, None] * along
    return float(np.hypot(*(foot - point).T).min())


def walked(plan: Plan, transfer: int) -> list[int]:
    """Returns the vertices of a transfer's route."""
    ends = plan.fabric.as_custom().link_ends
    assert ends is not None
    vertices = [plan.ends(transfer)[0]]
    for link in plan.route(transfer):
        (beyond,) = set(ends[link]) - {vertices[-1]}
        vertices.append(beyond)
    assert vertices[-1] == plan.ends(transfer)[1]
    return vertices


@pytest.mark.parametrize("spelled", FIBRES)
def test_each_lightpath_is_a_line_past_the_vertices_of_its_route(
    spelled: str, drawn: list[Figure], tmp_path: Path
) -> None:
    plan = opticoll.plan("all_gather", spelled, "direct:order=at_once", size=1024)
    assert plan.verify() == []
    plot.fabric(plan, tmp_path / "x.svg")
    panels = [one for one in drawn[0].axes if one.collections]
    assert len(panels) == plan.slots
    places, around = drawing(plan.fabric)["places"], set(drawing(plan.fabric)["around"].tolist())
    for slot, axes in enumerate(panels):
        _, lit = (one for one in axes.collections if isinstance(one, LineCollection))
        columns = plan.slot_columns(slot)
        transfers = columns["transfer"].tolist()
        segments = iter(lit.get_segments())
        colours = iter(np.asarray(lit.get_color()).tolist())
        channels: dict[tuple[int, int], tuple[float, ...]] = {}
        for at, transfer in enumerate(transfers):
            route, vertices = plan.route(transfer), walked(plan, transfer)
            pieces = [np.asarray(next(segments)) for _ in range(1 + len(around & set(route)))]
            shades = {tuple(next(colours)) for _ in pieces}
            for vertex in vertices:
                assert min(near(piece, places[vertex]) for piece in pieces) < BESIDE
            # The line starts and ends at the discs of its ends.
            for end, vertex in ((pieces[0][0], vertices[0]), (pieces[-1][-1], vertices[-1])):
                assert np.hypot(*(end - places[vertex])) < BESIDE
            channel = (int(columns["fibre"][at]), int(columns["wavelength"][at]))
            (shade,) = shades
            assert channels.setdefault(channel, shade) == shade
        # Every line belongs to a lightpath; each channel has a colour of its own.
        assert next(segments, None) is None
        assert len(set(channels.values())) == len(channels)


def test_lightpaths_keep_to_the_right_and_never_share_a_lane(
    drawn: list[Figure], tmp_path: Path
) -> None:
    plan = opticoll.plan("all_gather", "wdm_line:ranks=5,wavelengths=3", "direct:order=at_once")
    plot.fabric(plan, tmp_path / "x.svg", slot=0)
    _, lit = (one for one in drawn[0].axes[0].collections if isinstance(one, LineCollection))
    middles: dict[float, list[tuple[float, float]]] = {}
    for line, transfer in zip(
        map(np.asarray, lit.get_segments()),
        plan.slot_columns(0)["transfer"].tolist(),
        strict=True,
    ):
        # From the left to the right, the right side is below.
        source, destination = plan.ends(transfer)
        side = line[1:-1, 1]
        assert (np.sign(side) == np.sign(source - destination)).all()
        assert np.ptp(side) < 1e-9
        extent = (min(source, destination), max(source, destination))
        taken = middles.setdefault(round(float(side[0]), 6), [])
        assert all(extent[1] <= first or last <= extent[0] for first, last in taken)
        taken.append(extent)
    assert len(middles) == 2 * 3


@pytest.mark.parametrize(
    ("spelled", "slot", "view"),
    [
        ("nsfnet:wavelengths=8", None, "fabric"),
        ("wdm_torus:dims=4x4,wavelengths=8", None, "space_time"),  # 240 lightpaths in a slot
        ("geant:wavelengths=8", None, "space_time"),  # more than 9 slots
        ("geant:wavelengths=8", 13, "fabric"),
        ("wdm_ring:ranks=8,wavelengths=4", None, "ring"),
    ],
)
def test_lightpaths_are_drawn_on_the_graph_if_they_are_few(
    spelled: str, slot: int | None, view: str
) -> None:
    plan = opticoll.plan("all_gather", spelled, "direct:order=at_once")
    assert views_of(plan, slot)[0][0] == view


@pytest.mark.parametrize("view", [(), ("--view", "fabric"), ("--view", "space_time")])
def test_titles_of_graphs_of_fibres_are_short(
    run: Run, view: tuple[str, ...], drawn: list[Figure], tmp_path: Path
) -> None:
    asked = ("--fabric", "nsfnet:wavelengths=8", "--algorithm", "direct:order=at_once")
    done = run("show", "all_gather", *asked, *view, "--figure", tmp_path / "x.svg")
    assert done.code == 0, done.err
    (title,) = (text.get_text() for text in drawn[0].texts if "all_gather" in text.get_text())
    assert "21 cables" in title
    assert len(title.splitlines()) == 2


def test_too_many_slots_are_refused_until_one_is_chosen(tmp_path: Path) -> None:
    plan = opticoll.plan("all_gather", "geant:wavelengths=8", "direct:order=at_once")
    assert plan.slots > 9
    with pytest.raises(PlotError, match="slots are too many"):
        plot.fabric(plan, tmp_path / "x.svg")
    with pytest.raises(PlotError, match="no slot"):
        plot.fabric(plan, tmp_path / "x.svg", slot=plan.slots)
    assert not list(tmp_path.iterdir())
    plot.fabric(plan, tmp_path / "x.svg", slot=3)
