"""Which ports hold which circuits over time, on a grid of lightpaths or a circuit switch."""

import os
from typing import TYPE_CHECKING, Any

from opticoll.outputs.circuit_settings import CircuitSetting, circuits, settings
from opticoll.plot import style
from opticoll.plot.output import PlotError, drawn, headed, sheet

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from opticoll._core import Plan

_MOST_ROWS = 96
_PALE = "0.78"


@drawn
def light_paths(plan: "Plan", path: str | os.PathLike[str], *, size: int) -> "Figure":
    """Draw a row for each port: pale while it holds a circuit, full while data moves over it.

    Colours are the ranks at the other end, grey the time in which circuits are set up and released.
    The times are those of the fabric's usual policy. Of a circuit switch the ports out are drawn.

    Raises PlotError for another fabric, nothing to draw, or more ports than lines on paper.
    """
    from matplotlib.patches import Patch

    fabric = plan.fabric
    ports, establish = fabric.option("ports"), fabric.option("establish")
    release = 0
    if establish is not None:
        release = fabric.option("release" if "release" in fabric.options else "establish")
    rows = fabric.ranks * ports
    if rows > _MOST_ROWS:
        raise PlotError(f"{rows} ports are too many to draw: {_MOST_ROWS} at most")
    if not len(plan):
        raise PlotError("there is nothing to draw: nothing is sent")
    outcome = plan.simulate(size)
    scale, unit = style.time_unit(outcome.time_ps / 1e12)
    scale *= 1e12
    colours = style.wavelength_colours(fabric.ranks)
    figure = sheet(9.6, max(3.6, 0.16 * rows + 1.9))
    axes = figure.subplots()
    for group in settings(plan):
        waits = int(outcome.slots["reconfiguration_ps"][group.first])
        before = waits if establish is None else establish
        _draw(axes, plan, group, outcome.slots, (ports, before, release, scale), colours)
    axes.set_ylim(rows - 0.5, -0.5)
    for rank in range(1, fabric.ranks):
        axes.axhline(rank * ports - 0.5, color=style.INK, linewidth=0.4)
    places = [rank * ports + (ports - 1) / 2 for rank in range(fabric.ranks)]
    axes.set_yticks(places, [f"rank {rank}" for rank in range(fabric.ranks)])
    axes.tick_params("y", length=0, labelsize=8)
    axes.grid(axis="y", visible=False)
    axes.set_xlim(0, 1.005 * outcome.time_ps / scale)
    axes.set_xlabel(f"Time ({unit})")
    headed(
        figure,
        f"{style.heading(plan)}, {style.size_text(size)}, {style.counted(ports, 'port')} per rank\n"
        f"{style.conditions(fabric.spec)}; pale: circuit up, full: data on it",
    )
    handles = [Patch(color=colours(rank), label=f"to rank {rank}") for rank in range(fabric.ranks)]
    setting = "reconfiguration" if establish is None else "setup and teardown"
    handles.append(Patch(color=_PALE, label=setting))
    figure.legend(
        handles=handles if len(handles) <= 33 else handles[-1:],
        loc="outside lower center",
        ncols=min(6, len(handles)),
    )
    return figure


def _draw(
    axes: Any,
    plan: "Plan",
    group: CircuitSetting,
    slots: dict[str, Any],
    constants: tuple[int, int, int, float],
    colours: Any,
) -> None:
    """Draw a group; the constants are ports of a rank, setup, release, picoseconds of a unit."""
    ports, establish, release, scale = constants
    start, end = int(slots["start_ps"][group.first]), int(slots["end_ps"][group.last])
    up, down = start + establish, end - release
    for (rank, port), peer in group.peers.items():
        row = rank * ports + port
        for begin, finish in ((start, up), (down, end)):
            width = (finish - begin) / scale
            axes.barh(row, width, 0.8, begin / scale, color=_PALE, edgecolor="white", linewidth=0.6)
        width = (down - up) / scale
        axes.barh(row, width, 0.8, up / scale, color=colours(peer), alpha=0.3, linewidth=0)
    for slot in range(group.first, group.last + 1):
        begin = up if slot == group.first else int(slots["start_ps"][slot])
        finish = down if slot == group.last else int(slots["end_ps"][slot])
        for (rank, port), peer in circuits(plan, slot)[0].items():
            width = (finish - begin) / scale
            axes.barh(rank * ports + port, width, 0.8, begin / scale, color=colours(int(peer)))
