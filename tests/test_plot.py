"""Figures: written whole, the same every time, of what they were given; else one clear error."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.text import Text

import opticoll
from opticoll import plot
from opticoll.errors import FileError, OpticollError
from opticoll.plot.lightpaths import lightpaths, occupancy
from support import Run

SIGNATURES = {"svg": b"<?xml", "png": b"\x89PNG", "pdf": b"%PDF"}


@pytest.fixture(scope="module")
def small() -> opticoll.Plan:
    return opticoll.plan("all_gather", "wdm_ring:ranks=16,wavelengths=2", "optree:radices=4x4")


def row(algorithm: str, **changes: Any) -> dict[str, Any]:
    """Returns a row as `opticoll compare --json` prints it."""
    return {
        "collective": "all_gather",
        "algorithm": algorithm,
        "ranks": 16,
        "wavelengths": 2,
        "size_bytes": 4096,
        "size_convention": "bytes of one rank's block",
        "steps": 12,
        "claimed_steps": 12,
        "time_s": 0.0003,
        "policy": "every_step",
        "bound_time_s": None,
        "verified": True,
    } | changes


ONE_CASE = [row("optree"), row("ring", steps=15, claimed_steps=None, time_s=0.0004)]
SIZES = [
    row(name, size_bytes=size, time_s=factor * (1e-5 + size * 2e-10), bound_time_s=1e-6)
    for name, factor in (("optree", 12), ("ring", 15))
    for size in (1024, 4096, 16384)
]
WAVELENGTHS = [row("optree", wavelengths=w, steps=24 // w, time_s=0.001 / w) for w in (2, 4, 8)]
RANKS_AND_SIZES = [one | {"ranks": ranks} for ranks in (16, 32) for one in SIZES]

FIGURES: dict[str, Callable[[opticoll.Plan, Path], object]] = {
    "comparison_of_one_case": lambda _, path: plot.comparison(ONE_CASE, path),
    "comparison_over_sizes": lambda _, path: plot.comparison(SIZES, path),
    "comparison_over_wavelengths": lambda _, path: plot.comparison(WAVELENGTHS, path),
    "comparison_in_panels": lambda _, path: plot.comparison(RANKS_AND_SIZES, path),
    "ring": lambda plan, path: plot.ring(plan, 0, path),
    "space_time": plot.space_time,
}


@pytest.mark.parametrize("suffix", SIGNATURES)
@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_is_written_whole_and_the_same_every_time(
    name: str, suffix: str, small: opticoll.Plan, tmp_path: Path
) -> None:
    first, second = tmp_path / f"first.{suffix}", tmp_path / f"second.{suffix}"
    FIGURES[name](small, first)
    FIGURES[name](small, second)
    assert first.read_bytes().startswith(SIGNATURES[suffix])
    assert first.read_bytes() == second.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == [first.name, second.name]


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (ONE_CASE, ["OpTree", "Ring", "Steps (time slots)", "constructed and verified"]),
        (SIZES, ["OpTree", "Ring", "4 KiB", "lower bound", "one rank's block"]),
        ([row("optree"), row("optree:radices=4x4")], ["OpTree", "OpTree (radices=4x4)"]),
        ([row("optree", verified=False), row("ring")], ["OpTree (not verified)"]),
        ([row("mine:double_tree"), row("ring")], ["mine:double_tree"]),
    ],
)
def test_a_comparison_says_what_it_shows(
    rows: list[dict[str, Any]], words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Text in a figure is text rather than outlines, so that it can be searched.
    monkeypatch.setitem(plot.style._SETTINGS, "svg.fonttype", "none")
    plot.comparison(rows, tmp_path / "figure.svg")
    drawn = (tmp_path / "figure.svg").read_text(encoding="utf-8")
    assert [
        word for word in words if f"{word}</text>" not in drawn and f"{word})" not in drawn
    ] == []


def shown(labels: list[Text]) -> list[str]:
    return [label.get_text() for label in labels if label.get_text()]


# Claims below, at, a little above and far above the steps.
@pytest.mark.parametrize("claim", [None, 3, 6, 7, 60])
def test_no_marker_hides_the_number_beside_a_bar(
    claim: int | None, drawn: list[Figure], tmp_path: Path
) -> None:
    plot.comparison([row("optree", steps=6, claimed_steps=claim)], tmp_path / "f.png")
    axes = drawn[0].axes[0]
    (number,) = (text for text in axes.texts if text.get_text() == "6")
    left = number.get_window_extent().x0
    for value in [6, *([] if claim is None else [claim])]:
        # Half of a marker is 3 points, 4 pixels at 100 dots per inch.
        assert axes.transData.transform((value, 0))[0] + 4 <= left


@pytest.mark.parametrize(
    ("rows", "ticks"),
    [
        ([row("ring", ranks=n) for n in (4, 8, 15, 16, 32)], ["4", "8", "16", "32"]),
        ([row("ring", wavelengths=w) for w in (1, 2, 4, 8, 16)], ["1", "2", "4", "8", "16"]),
        ([row("ring", ranks=n) for n in (15, 16)], ["15", "16"]),
    ],
)
def test_numbers_below_an_axis_do_not_overprint(
    rows: list[dict[str, Any]], ticks: list[str], drawn: list[Figure], tmp_path: Path
) -> None:
    plot.comparison(rows, tmp_path / "f.png")
    assert shown(drawn[0].axes[0].get_xticklabels()) == ticks


@pytest.mark.parametrize("longest_s", [1.1e-3, 2e-3, 5e-3, 2e-2, 9e-2, 2e-1, 1e1])
def test_a_time_axis_has_several_numbers(
    longest_s: float, drawn: list[Figure], tmp_path: Path
) -> None:
    times = [row("ring", wavelengths=w, time_s=t) for w, t in ((1, longest_s), (2, 1e-3))]
    plot.comparison(times, tmp_path / "f.png")
    axes = drawn[0].axes[0]
    low, high = axes.get_ylim()
    both = [*axes.yaxis.get_major_ticks(), *axes.yaxis.get_minor_ticks()]
    visible = [tick.label1.get_text() for tick in both if low <= tick.get_loc() <= high]
    assert 2 <= len([text for text in visible if text]) <= 12


@pytest.mark.parametrize(
    ("count", "columns", "lines"), [(2, 2, 1), (3, 3, 1), (4, 2, 2), (6, 3, 2)]
)
def test_panels_fill_a_rectangle(
    count: int, columns: int, lines: int, drawn: list[Figure], tmp_path: Path
) -> None:
    rows = [one | {"ranks": 8 + n} for n in range(count) for one in SIZES]
    plot.comparison(rows, tmp_path / "f.png")
    grid = drawn[0].axes[0].get_gridspec()
    assert len(drawn[0].axes) == count
    assert grid is not None
    assert (grid.ncols, grid.nrows) == (columns, lines)


MANY = [
    row(name, size_bytes=size, time_s=(12 + place) * (1e-5 + size * 2e-10), bound_time_s=1e-5)
    for place, name in enumerate(["ring", "auto", *(f"mine:number_{n}" for n in range(18))])
    for size in (1024, 4096, 16384)
]
# One is the fastest of all but `auto`, at one size.
MANY += [row("mine:leader", size_bytes=4096, time_s=1e-5)]


def test_of_many_algorithms_six_have_a_colour_and_a_name_at_their_end(
    drawn: list[Figure], tmp_path: Path
) -> None:
    plot.comparison(MANY, tmp_path / "f.png")
    (axes,) = drawn[0].axes
    grey = [line for line in axes.get_lines() if line.get_color() == plot.style.FAINT]
    named = shown([*axes.texts])
    assert len(named) == 7
    assert {"Ring", "Auto", "mine:leader", "lower bound"} <= {*named}
    assert len([line for line in grey if np.size(line.get_xdata())]) == 21 - 6
    # Names stand apart, within the figure and beside the panel, of which they leave the most.
    # Without the lines that lead to them.
    boxes = [Text.get_window_extent(text) for text in axes.texts]
    boxes.sort(key=lambda box: box.y0)
    assert all(one.y1 <= other.y0 for one, other in pairwise(boxes))
    panel = axes.get_window_extent()
    assert panel.width > 0.7 * drawn[0].bbox.width
    assert all(panel.x1 < box.x0 and box.x1 <= drawn[0].bbox.x1 for box in boxes)


def test_a_legend_does_not_cover_the_title(drawn: list[Figure], tmp_path: Path) -> None:
    rows = [one | {"ranks": ranks} for ranks in (16, 32) for one in MANY]
    plot.comparison(rows, tmp_path / "f.png")
    (legend,) = drawn[0].legends
    assert len(shown(legend.get_texts())) == 6 + len(["other algorithms", "lower bound"])
    (title,) = (text for text in drawn[0].texts if text.get_text() == drawn[0].get_suptitle())
    assert legend.get_window_extent().y1 < drawn[0].axes[0].get_window_extent().y0
    assert title.get_window_extent().y0 > drawn[0].axes[0].get_window_extent().y1


TREE = "fat_tree:down=4x4,up=1x4,rate=100Gb/s"
FABRICS = [
    one | {"fabric": fabric, "policy": policy, "start": "step", "injection_bandwidth": bandwidth}
    for fabric, policy, bandwidth in (
        ("wdm_ring:ranks=16,wavelengths=2,rate=40Gb/s", "every_step", 160 * 10**9),
        (TREE, None, 100 * 10**9),
        ("wdm_ring:ranks=16,wavelengths=2,rate=25Gb/s", "every_step", 100 * 10**9),
    )
    for one in SIZES
]
TITLES = [
    "wdm_ring:rate=40Gb/s\npolicy every_step, 160 Gb/s per rank",
    "fat_tree\nstart step, 100 Gb/s per rank",
    "wdm_ring:rate=25Gb/s\npolicy every_step, 100 Gb/s per rank",
]


@pytest.mark.parametrize("rows", [FABRICS, [one for one in FABRICS if one["size_bytes"] == 4096]])
def test_fabrics_keep_their_order_and_say_how_they_differ(
    rows: list[dict[str, Any]], drawn: list[Figure], tmp_path: Path
) -> None:
    plot.comparison(rows, tmp_path / "f.png")
    titles = [axes.get_title(loc="left") for axes in drawn[0].axes]
    assert [title for title in titles if title] == TITLES
    assert "start step" not in drawn[0].get_suptitle()


def test_times_of_nothing_are_in_seconds(drawn: list[Figure], tmp_path: Path) -> None:
    plot.comparison([row("ring", ranks=1, steps=0, claimed_steps=0, time_s=0)], tmp_path / "f.png")
    assert drawn[0].axes[1].get_xlabel() == "Time (s)"


def test_a_ring_is_scaled_to_the_channels_that_are_lit(drawn: list[Figure], tmp_path: Path) -> None:
    # Two fibres of 64 wavelengths, of which a tree's stage of 4 x 4 on 16 ranks needs few.
    plan = opticoll.plan("all_gather", "terarack:ranks=16", "optree:radices=4x4")
    lit = np.unique(lightpaths(plan, 0).lane)
    assert 2 < len(lit) < 16
    plot.ring(plan, 0, tmp_path / "f.png")
    axes = drawn[0].axes[0]
    (arcs,) = (one for one in axes.collections if isinstance(one, LineCollection))
    radii = [float(np.hypot(*line[0])) for line in arcs.get_segments()]
    # The band is 0.42 wide, of which 0.09 is left clear for the ranks.
    assert max(radii) == pytest.approx(1.42, abs=0.33 / len(lit))
    assert len(np.unique(np.asarray(arcs.get_color()), axis=0)) == len(lit)
    assert f"slot 0 (of {plan.slots}), step 0" in axes.figure.get_suptitle()


@pytest.mark.parametrize(
    ("draw", "words"),
    [
        (lambda _, folder: plot.comparison(ONE_CASE, folder / "f.jpg"), [".jpg", ".svg", ".png"]),
        (lambda _, folder: plot.comparison(ONE_CASE, folder / "f"), ["no suffix", ".pdf"]),
        (lambda _, folder: plot.comparison([], folder / "f.svg"), ["no rows"]),
        (
            lambda _, folder: plot.comparison(
                [row("ring"), row("ring", policy="free")], folder / "f.svg"
            ),
            ["every_step", "free"],
        ),
        (
            lambda _, folder: plot.comparison([{"algorithm": "ring"}], folder / "f.svg"),
            ["row 0", "`ranks`"],
        ),
        (lambda plan, folder: plot.ring(plan, 12, folder / "f.svg"), ["slot 12", "0 to 11"]),
        (lambda plan, folder: plot.ring(plan, -1, folder / "f.svg"), ["slot -1"]),
        (lambda plan, folder: plot.ring(plan, 0, folder / "gone" / "f.svg"), ["gone"]),
    ],
)
def test_what_cannot_be_drawn_is_refused_and_nothing_written(
    draw: Callable[[opticoll.Plan, Path], None],
    words: list[str],
    small: opticoll.Plan,
    tmp_path: Path,
) -> None:
    with pytest.raises(OpticollError) as caught:
        draw(small, tmp_path)
    assert isinstance(caught.value, plot.PlotError | FileError)
    assert [word for word in words if word not in str(caught.value)] == []
    assert list(tmp_path.iterdir()) == []


def test_drawing_leaves_the_settings_of_matplotlib_alone(
    small: opticoll.Plan, tmp_path: Path
) -> None:
    import matplotlib

    with matplotlib.rc_context({"font.size": 31.0}):
        plot.space_time(small, tmp_path / "f.png")
        assert matplotlib.rcParams["font.size"] == 31.0


@pytest.mark.parametrize("algorithm", ["ring", "ring_bidirectional", "one_stage", "optree:k=2"])
def test_occupancy_counts_every_link_of_every_lightpath(algorithm: str) -> None:
    plan = opticoll.plan("all_gather", "wdm_ring:ranks=12,wavelengths=3", algorithm)
    columns = plan.columns()
    lit = np.zeros((2, plan.slots, 12))
    for source, destination, way, slot in zip(
        columns["source"],
        columns["destination"],
        columns["direction"],
        columns["slot"],
        strict=True,
    ):
        rank = int(source)
        while rank != int(destination):
            # Link i joins i and i + 1, whichever way the light goes.
            lit[way, slot, rank if way == 0 else rank - 1] += 1
            rank = (rank + (1 if way == 0 else -1)) % 12
    np.testing.assert_array_equal(occupancy(lightpaths(plan), plan.slots), lit / 3)


@pytest.mark.parametrize("ranks", [2, 3, 16, 70])
def test_plans_of_any_size_have_their_pictures(ranks: int, tmp_path: Path) -> None:
    plan = opticoll.plan("all_gather", f"wdm_ring:ranks={ranks},wavelengths=9,fibres=2", "ring")
    plot.ring(plan, 0, tmp_path / "ring.png")
    plot.space_time(plan, tmp_path / "space_time.png")


def test_lightpaths_of_converters_get_lanes_that_do_not_overlap() -> None:
    fabric = "wdm_ring:ranks=8,wavelengths=4,converters=full"
    plan = opticoll.plan("all_gather", fabric, "one_stage")
    paths = lightpaths(plan, 0)
    assert len(paths) > 0
    lit: set[tuple[int, int, int]] = set()
    for start, hops, way, lane in zip(paths.start, paths.hops, paths.way, paths.lane, strict=True):
        links = {(int(way), int(lane), int(start + hop) % 8) for hop in range(hops)}
        assert not lit & links
        lit |= links


@pytest.mark.parametrize(
    ("suffix", "files"),
    [("svg", ["f-1.svg", "f-2.svg"]), ("png", ["f-1.png", "f-2.png"]), ("pdf", ["f.pdf"])],
)
def test_many_panels_become_pages(suffix: str, files: list[str], tmp_path: Path) -> None:
    rows = [row("ring", ranks=n, wavelengths=w) for n in range(2, 20) for w in (1, 2)]
    written = plot.comparison(rows, tmp_path / f"f.{suffix}")
    assert written == [tmp_path / name for name in files]
    assert sorted(path.name for path in tmp_path.iterdir()) == files
    text = b"".join(path.read_bytes() for path in written)
    if suffix == "svg":
        # Every panel is on one of the pages.
        titles = re.findall(rb"(\d+) ranks", text)
        assert sorted(map(int, titles)) == list(range(2, 20))
    if suffix == "pdf":
        assert b"/Count 2" in text


def test_pages_share_their_axes(drawn: list[Figure], tmp_path: Path) -> None:
    rows = [
        row("ring", ranks=n, wavelengths=w, time_s=10.0**-n) for n in range(2, 20) for w in (1, 2)
    ]
    plot.comparison(rows, tmp_path / "f.svg")
    first, second = (figure.axes[0].get_ylim() for figure in drawn)
    assert first == second


@pytest.mark.parametrize(
    "asked",
    [
        ("show", "all_gather", "--algorithm", "ring"),
        ("show", "all_gather", "--algorithm", "ring", "--view", "space_time"),
        ("compare", "all_gather", "--algorithms", "ring"),
        ("compare", "all_gather", "--algorithms", "ring", "--sizes", "1KiB,1MiB"),
        ("train", "--model", "resnet50", "--batch", "8", "--device", "a100", "--algorithm", "ring"),
    ],
)
def test_titles_name_what_is_damaged_and_no_default(
    run: Run, tmp_path: Path, asked: tuple[str, ...]
) -> None:
    fabric = "wdm_ring:ranks=6,wavelengths=4,fibres=2,dead=1,broken=2-3"
    figure = tmp_path / "figure.svg"
    finished = run(*asked, "--fabric", fabric, "--figure", figure)
    assert finished.code == 0, finished.err
    words = " ".join(re.findall("<!-- (.*?) -->", figure.read_text(), re.DOTALL))
    words = " ".join(words.split())
    for option in ("fibres 2", "dead wavelengths 1", "cuts 2-3"):
        assert option in words
