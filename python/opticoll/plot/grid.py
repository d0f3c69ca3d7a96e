"""Figures of a grid of tunable circuits: one slot among its nodes, and all slots by port."""

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from numpy.typing import NDArray

from opticoll._core import Plan
from opticoll.plot import style
from opticoll.plot.output import PlotError, colour_key, drawn, headed, sheet
from opticoll.plot.panels import arrow_head

PLANES = ("row", "column")

_MAX_ARROWS = 600  # above this number, arrow heads would cover the arcs
_MAX_LABELS = 144
_MAX_PORTS = 4096
_MAX_SLOTS = 4096
_MAX_BOUNDARIES = 24


@dataclass(frozen=True)
class _Hops:
    """Hops of a plan, or of one slot of a plan, as columns with one entry per hop."""

    source: NDArray[np.int64]
    destination: NDArray[np.int64]
    plane: NDArray[np.int64]
    wavelength: NDArray[np.int64]
    slot: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.source)


def _hops(plan: Plan, slot: int | None = None) -> _Hops:
    columns = plan.hop_columns(slot)
    names = ("source", "destination", "plane", "wavelength", "slot")
    return _Hops(*(columns[name].astype(np.int64) for name in names))


def _sides(plan: Plan) -> tuple[int, int]:
    """Returns the numbers of rows and columns of the grid of nodes."""
    return plan.fabric.option("rows"), plan.fabric.option("columns")


@drawn
def grid(plan: Plan, slot: int, path: str | os.PathLike[str]) -> Figure:
    """Draws the nodes in rows and columns, and the light of `slot` as arcs coloured by wavelength.

    Light over a row's switch is above the row if it goes right, and below the row if it goes left.
    Light over a column's switch is right of the column if it goes down, and left of the column if
    it goes up. An empty circle is a node without a rank. A cross beside a node is a broken
    transceiver or switch port: to the right of the node for the row's switch, and below the node
    for the column's switch.

    Raises PlotError if the plan has no such slot.
    """
    if not 0 <= slot < plan.slots:
        raise PlotError(f"the plan has no slot {slot}: it has slots 0 to {plan.slots - 1}")
    return _grid_figure(plan, slot)


def _grid_figure(plan: Plan, slot: int) -> Figure:
    rows, columns = _sides(plan)
    hops = _hops(plan, slot)
    nodes = np.array(plan.fabric.drawing["nodes"], dtype=np.int64)
    wide = float(np.clip(0.75 * columns, 4.4, 11.0))
    high = float(np.clip(0.75 * rows, 1.2, 10.0))
    figure = sheet(wide + 1.0, high + 1.7)
    axes = figure.subplots()
    axes.set_aspect("equal")
    axes.axis("off")
    axes.set(xlim=(-0.75, columns - 0.25), ylim=(rows - 0.25, -0.75))
    for row in range(rows):
        axes.axhline(row, color=style.FAINT, linewidth=0.8, zorder=0)
    for column in range(columns):
        axes.axvline(column, color=style.FAINT, linewidth=0.8, zorder=0)
    if rows * columns <= _MAX_LABELS:
        _name_switches(axes, rows, columns)
    lit, lanes = np.unique(hops.wavelength, return_inverse=True)
    colours = style.wavelength_colours(max(len(lit), 1))
    _draw_hops(axes, plan, hops, nodes, [colours(int(lane)) for lane in lanes])
    _draw_nodes(axes, plan, nodes)
    step = int(np.searchsorted(np.cumsum(plan.step_slots), slot, side="right"))
    headed(
        figure,
        f"{style.heading(plan)}, {rows} x {columns} nodes:\n"
        f"slot {slot} (of {plan.slots}), step {step}, {len(hops):,} hops\n"
        f"{style.conditions(plan.fabric.spec)}",
        fontsize=9.5,
    )
    _wavelength_key(figure, axes, lit, colours)
    return figure


def _name_switches(axes: Axes, rows: int, columns: int) -> None:
    """Writes each switch's name at the end of its row or column."""
    look: dict[str, Any] = {"fontsize": 7, "color": style.GREY}
    for row in range(rows):
        axes.text(-0.78, row, f"row {row}", ha="right", va="center", clip_on=False, **look)
    for column in range(columns):
        axes.text(column, rows - 0.22, f"column {column}", ha="center", va="top", **look)


def _draw_hops(
    axes: Axes, plan: Plan, hops: _Hops, nodes: NDArray[np.int64], shades: list[Any]
) -> None:
    rows, columns = _sides(plan)
    turn = np.linspace(0, np.pi, 97)
    # Arcs end at the circles of nodes.
    clear = 0.19 if rows * columns <= _MAX_LABELS else 0.13
    lines = []
    for source, destination in zip(nodes[hops.source], nodes[hops.destination], strict=True):
        row, column = divmod(source, columns)
        last_row, last_column = divmod(destination, columns)
        across, down = last_column - column, last_row - row
        along = (1 - np.cos(turn)) / 2
        # Longer arcs bend more, so arcs of a row enclose shorter arcs without touching them. All
        # arcs bend by less than half the distance between two rows.
        bulge = (0.16 + 0.26 * (abs(across + down) - 1) / max(columns, 2)) * np.sin(turn)
        sign = 1 if across + down > 0 else -1
        x = column + across * along + (sign * bulge if down else 0)
        y = row + down * along - (sign * bulge if across else 0)
        line = np.column_stack([x, y])
        outside = [np.hypot(*(line - end).T) > clear for end in (line[0], line[-1])]
        lines.append(line[outside[0] & outside[1]])
    axes.add_collection(LineCollection(lines, colors=shades, linewidths=1.5, zorder=2))
    if len(lines) > _MAX_ARROWS:
        return
    for line, shade in zip(lines, shades, strict=True):
        arrow_head(axes, line[-1], line[-6], shade, 10, zorder=3)


def _draw_nodes(axes: Axes, plan: Plan, nodes: NDArray[np.int64]) -> None:
    rows, columns = _sides(plan)
    everywhere = np.arange(rows * columns)
    free = np.setdiff1d(everywhere, nodes)
    few = rows * columns <= _MAX_LABELS
    size = 190 if few else float(np.clip(40000 / (rows * columns), 3, 60))
    axes.scatter(
        nodes % columns, nodes // columns, s=size, facecolor="white", edgecolor=style.INK, zorder=4
    )
    if len(free):
        axes.scatter(
            free % columns,
            free // columns,
            s=size / 3,
            facecolor="white",
            edgecolor=style.GREY,
            linestyle=":",
            zorder=4,
        )
    if few:
        for rank, node in enumerate(nodes):
            row, column = divmod(int(node), columns)
            axes.text(column, row, str(rank), ha="center", va="center", fontsize=7.5, zorder=5)
    dark = plan.fabric.drawing["dark"]
    notes = ["circle: node with its rank; lines: switches"]
    notes += ["dotted: node not in the task"] if len(free) else []
    notes += ["cross: transceiver or port out of order"] if len(dark) else []
    axes.text(-0.75, rows + 0.1, "\n".join(notes), fontsize=7.5, va="top", clip_on=False)
    for rank, plane in dark:
        row, column = divmod(int(nodes[rank]), columns)
        x, y = (column + 0.3, row) if PLANES[plane] == "row" else (column, row + 0.3)
        axes.plot(x, y, marker="x", color=style.INK, markersize=6, markeredgewidth=1.6, zorder=6)


def _wavelength_key(figure: Figure, axes: Axes, lit: NDArray[np.int64], colours: Any) -> None:
    """Adds a legend or a colour bar for the colours of wavelengths."""
    look: dict[str, Any] = {"columns": min(4, len(lit) or 1), "shrink": 0.7, "pad": 0.02}
    look["name"] = "wavelength {}".format
    colour_key(figure, axes, lit, colours, "Wavelength (number)", **look)


@drawn
def grid_space_time(plan: Plan, path: str | os.PathLike[str]) -> Figure:
    """Draws the wavelength that each port sends in each slot: ports downwards, slots to the right.

    The upper half shows the ports to the switches of rows, in the order of the ranks. The lower
    half shows the ports to the switches of columns, in the same order. White means no light.

    Raises PlotError for a plan without slots, and for too many ports or slots to draw.
    """
    ports = 2 * plan.fabric.ranks
    if plan.slots == 0:
        raise PlotError("the plan has no slots: there is nothing to draw")
    for count, noun, most in ((ports, "ports", _MAX_PORTS), (plan.slots, "slots", _MAX_SLOTS)):
        if count > most:
            raise PlotError(f"{count} {noun} are too many to draw: {most} at most")
    hops, ranks = _hops(plan), plan.fabric.ranks
    lit, lanes = np.unique(hops.wavelength, return_inverse=True)
    colours = style.wavelength_colours(max(len(lit), 1))
    sent = np.full((2 * ranks, plan.slots), np.nan)
    sent[hops.plane * ranks + hops.source, hops.slot] = lanes
    wide = float(np.clip(0.32 * plan.slots, 5.0, 10.0))
    high = float(np.clip(0.16 * 2 * ranks, 2.2, 7.0))
    figure = sheet(wide + 1.6, high + 1.5)
    axes = figure.subplots()
    axes.imshow(
        np.ma.masked_invalid(sent),
        cmap=colours,
        vmin=-0.5,
        vmax=max(len(lit), 1) - 0.5,
        aspect="auto",
        interpolation="nearest",
        extent=(0, plan.slots, 2 * ranks, 0),
    )
    axes.grid(visible=False)
    axes.axhline(ranks, color=style.INK, linewidth=0.9, zorder=3)
    if 2 * ranks <= 64:
        for port in range(1, 2 * ranks):
            axes.axhline(port, color="white", linewidth=0.8)
    if plan.slots <= 64:
        for slot in range(1, plan.slots):
            axes.axvline(slot, color="white", linewidth=0.8)
    ends = np.cumsum(plan.step_slots)
    if len(ends) <= _MAX_BOUNDARIES:
        for end in ends[:-1]:
            axes.axvline(end, color=style.INK, linewidth=0.6, zorder=3)
    stride = max(1, -(-ranks // 8))
    shown = range(0, ranks, stride)
    places = [plane * ranks + rank + 0.5 for plane in range(2) for rank in shown]
    axes.set_yticks(places, [str(rank) for _ in range(2) for rank in shown])
    if plan.slots <= 32:
        axes.set_xticks([slot + 0.5 for slot in range(plan.slots)], map(str, range(plan.slots)))
        axes.tick_params("x", length=0)
    axes.tick_params("y", length=0)
    axes.set_xlabel("Time (slot)")
    axes.set_ylabel("Port (rank that sends)")
    name_planes(axes, "ports")
    rows, columns = _sides(plan)
    headed(
        figure,
        f"{style.heading(plan)}, {rows} x {columns} nodes:\n{plan.slots} "
        f"slots in {style.counted(len(plan.step_slots), 'step')}, {len(hops):,} hops\n"
        f"{style.conditions(plan.fabric.spec)}",
        fontsize=9.5,
    )
    _wavelength_key(figure, axes, lit, colours)
    return figure


def name_planes(axes: Axes, what: str) -> None:
    """Writes `row` and `column`, each followed by `what`, to the right of the two halves of axes.

    The upper half is for switches of rows, the lower half for switches of columns.
    """
    for plane, name in enumerate(PLANES):
        axes.annotate(
            f"{name} {what}",
            (1.0, 1 - (plane + 0.5) / 2),
            (4, 0),
            xycoords="axes fraction",
            textcoords="offset points",
            rotation=270,
            va="center",
            fontsize=8.5,
        )
