"""Pictures of plans on grids of tunable circuits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

import opticoll
from opticoll import plot
from opticoll.plot import PlotError
from support import Run

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
