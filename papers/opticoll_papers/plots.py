"""Figures in the style of papers: curves, groups of bars, and the use of ports over time."""

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from opticoll.plot import BarPanel, PlotError, style
from opticoll.plot.bars import check
from opticoll.plot.grid import name_planes
from opticoll.plot.output import drawn, headed, sheet
from opticoll.plot.panels import legend_below, panels, time_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAX_PORTS = 128


@dataclass(frozen=True)
class Curve:
    """A curve: its label, its points, and the index of its colour."""

    label: str
    points: Sequence[tuple[float, float]]
    colour: int
    dashed: bool = False  # another reading of a curve with the same colour


@dataclass(frozen=True)
class Panel:
    """Curves that share axes; `close_up` is a range of x that an inset shows enlarged."""

    title: str
    curves: Sequence[Curve]
    close_up: tuple[float, float] | None = None


@drawn
def curves(
    shown: Sequence[Panel],
    path: str | os.PathLike[str],
    *,
    x_label: str,
    y_label: str,
    title: str = "",
    x_sizes: bool = False,
    log_x: bool = False,
    log_y: bool = True,
) -> "Figure":
    """Draws panels, two in a row, with shared axes and one legend below.

    `x_sizes`: x values are bytes. Labels must contain their units. Raises PlotError if there are no
    panels.
    """
    if not shown:
        raise PlotError("there is nothing to draw: no panels")
    figure, grid = panels(len(shown), 2, (4.9, 3.2), (0.4, 1.0), sharex=True, sharey=True)
    for axes, panel in zip(grid, shown, strict=True):
        axes.set_title(panel.title)
        axes.set_xlabel(x_label)
        axes.set_ylabel(y_label)
        axes.set_xscale("log", base=2) if log_x else None
        style.logarithmic(axes) if log_y else None
        _draw_curves(axes, panel.curves)
        _label_x(axes, shown, x_sizes=x_sizes)
        axes.label_outer()
        if panel.close_up:
            _close_up(axes, panel)
    headed(figure, title)
    legend_below(figure, 5, of=grid)
    return figure


def _draw_curves(axes: "Axes", family: Sequence[Curve], *, scale: float = 1.0) -> None:
    for curve in family:
        look = style.series(curve.colour)
        if curve.dashed:
            look |= {"linestyle": "--", "markerfacecolor": "white", "linewidth": 1.2}
            # Dashed curves are on top, since one may coincide with another curve.
            look |= {"markersize": 4.0, "zorder": 3}
        look["linewidth"] *= scale
        look["markersize"] *= scale
        axes.plot(*zip(*curve.points, strict=True), label=curve.label, **look)


def _label_x(axes: "Axes", every: Sequence[Panel], *, x_sizes: bool) -> None:
    """Adds ticks at the x values of all panels, which share the axis."""
    values = sorted({x for panel in every for curve in panel.curves for x, _ in curve.points})
    shown = values[:: -(-len(values) // 10)] if not x_sizes else values[:: -(-len(values) // 6)]
    axes.set_xticks(shown, style.size_texts(shown) if x_sizes else [f"{x:g}" for x in shown])
    axes.set_xticks([], minor=True)


def _close_up(axes: "Axes", panel: Panel) -> None:
    """Draws the range `close_up` on a linear scale, in the upper part of the panel."""
    from matplotlib.patches import Rectangle

    assert panel.close_up is not None
    low, high = panel.close_up
    # A white area hides the panel's grid lines behind the inset and its numbers.
    blank = Rectangle((0.28, 0.36), 0.72, 0.64, transform=axes.transAxes)
    blank.set(facecolor="white", edgecolor="none", zorder=1)
    axes.add_patch(blank)
    inset = axes.inset_axes((0.40, 0.42, 0.58, 0.55))
    near = [
        Curve(
            curve.label,
            [(x, y) for x, y in curve.points if low <= x <= high],
            curve.colour,
            curve.dashed,
        )
        for curve in panel.curves
    ]
    _draw_curves(inset, [curve for curve in near if curve.points], scale=0.7)
    inset.set_xticks(list(range(int(low), int(high) + 1)))
    inset.tick_params(labelsize=8)
    inset.margins(y=0.12)


@drawn
def grouped_bars(
    shown: Sequence[BarPanel],
    groups: Sequence[str],
    path: str | os.PathLike[str],
    *,
    x_label: str,
    y_label: str,
    title: str = "",
    log_y: bool = True,
    columns: int = 2,
    base: float = 0.0,
    marks: Mapping[str, float] | None = None,
) -> "Figure":
    """Draws panels of grouped bars, `columns` panels in a row, with one legend below.

    Labels must contain their units. Bars begin at `base`; lower values extend downwards. `marks`
    are values by name at which a line crosses all panels.

    Raises PlotError if there are no panels, or if a series does not have one value per group.
    """
    check(shown, groups, "groups")
    # With three or more columns, panels are smaller.
    size = (4.9, 2.9) if min(len(shown), columns) < 3 else (3.3, 2.2)
    figure, grid = panels(len(shown), columns, size, (0.4, 1.0), sharex=True, sharey=True)
    for axes, panel in zip(grid, shown, strict=True):
        width = 0.82 / len(panel.series)
        for index, (name, values) in enumerate(panel.series.items()):
            offset = (index - (len(panel.series) - 1) / 2) * width
            axes.bar(
                [place + offset for place in range(len(groups))],
                [math.nan if value is None else value - base for value in values],
                0.92 * width,
                base,
                color=style.COLOURS[index],
                label=name,
            )
        for number, (name, value) in enumerate((marks or {}).items()):
            line = "-" if value == base else style.LINES[1 + number % 3]
            axes.axhline(value, color=style.INK, linewidth=1.0, label=name, linestyle=line)
        axes.set_title(panel.title)
        axes.set_xlabel(x_label)
        axes.set_ylabel(y_label)
        style.logarithmic(axes) if log_y else None
        axes.minorticks_off() if size[0] < 4 else None
        axes.set_xticks(range(len(groups)), groups)
        axes.tick_params("x", length=0)
        axes.grid(axis="x", visible=False)
        axes.label_outer()
    headed(figure, title)
    legend_below(figure, 4, of=grid[:1])
    return figure


@dataclass(frozen=True)
class Flow:
    """A flow of a port, in seconds; plane 0 is the row's switch, plane 1 the column's switch."""

    source: int
    plane: int
    wavelength: int
    asked_s: float
    start_s: float
    sent_s: float


@dataclass(frozen=True)
class PortPanel:
    """Panel of a collective on a number of ranks."""

    title: str
    ranks: int
    flows: Sequence[Flow]


@drawn
def port_timeline(
    shown: Sequence[PortPanel], path: str | os.PathLike[str], *, title: str = ""
) -> "Figure":
    """Draws a row per port, first the ports to row switches, with a bar for each flow.

    Colours are wavelengths. Grey before a bar is the time for the request of the circuit and the
    tuning of the laser. Panels share the time axis.

    Raises PlotError if there is nothing to draw, or too many ports.
    """
    flows = [flow for panel in shown for flow in panel.flows]
    if not flows:
        raise PlotError("there is nothing to draw: no flows")
    rows = 2 * max(panel.ranks for panel in shown)
    if rows > MAX_PORTS:
        raise PlotError(f"{rows} ports are too many to draw: {MAX_PORTS} at most")
    end = max(flow.sent_s for flow in flows)
    scale, unit = style.time_unit(end)
    channels = 1 + max(flow.wavelength for flow in flows)
    colours = style.wavelength_colours(channels)
    height = 0.085 * rows * len(shown) + 1.6
    figure = sheet(9.6, max(4.0, height))
    grid = figure.subplots(len(shown), 1, sharex=True, squeeze=False)[:, 0]
    for axes, panel in zip(grid, shown, strict=True):
        _draw_ports(axes, panel, scale, colours)
        time_line(
            axes, end / scale, unit, 2 * panel.ranks, _port_names(panel), margin=0.5, beyond=1.01
        )
        axes.tick_params("y", labelsize=8)
        axes.label_outer()
    headed(figure, title)
    lit = {f"wavelength {channel}": colours(channel) for channel in range(channels)}
    legend_below(figure, 8, colours={**lit, "request and tuning": style.GREY})
    return figure


def _port_names(panel: PortPanel) -> dict[float, str]:
    """Returns names for some rows of ports, by the position of the row."""
    shown = range(0, panel.ranks, max(1, panel.ranks // 4))
    return {plane * panel.ranks + rank: f"rank {rank}" for plane in range(2) for rank in shown}


def _draw_ports(axes: "Axes", panel: PortPanel, scale: float, colours: object) -> None:
    for flow in panel.flows:
        row = flow.plane * panel.ranks + flow.source
        if flow.start_s > flow.asked_s:
            width = (flow.start_s - flow.asked_s) / scale
            axes.barh(row, width, 0.8, flow.asked_s / scale, color=style.GREY)
        width = (flow.sent_s - flow.start_s) / scale
        colour = colours(flow.wavelength)  # type: ignore[operator]
        axes.barh(row, width, 0.8, flow.start_s / scale, color=colour)
    axes.axhline(panel.ranks - 0.5, color=style.INK, linewidth=0.8)
    axes.set_title(panel.title)
    name_planes(axes, "port")
