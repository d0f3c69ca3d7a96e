"""Families of curves in panels, as the evaluation sections of papers have them."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from opticoll.plot import style
from opticoll.plot.output import PlotError, drawn, headed, sheet

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Curve:
    """One series: its label, its points, its place in the common order of colours."""

    label: str
    points: Sequence[tuple[float, float]]
    colour: int
    dashed: bool = False  # a second reading of the series that has the same colour


@dataclass(frozen=True)
class Panel:
    """Curves that share axes; `close_up` is a range of x that an inset shows larger."""

    title: str
    curves: Sequence[Curve]
    close_up: tuple[float, float] | None = None


@drawn
def curves(
    panels: Sequence[Panel],
    path: str | os.PathLike[str],
    *,
    x_label: str,
    y_label: str,
    title: str = "",
    x_sizes: bool = False,
    log_x: bool = False,
    log_y: bool = True,
) -> "Figure":
    """Draw panels side by side (two to a line), sharing axes, with one legend below.

    `x_sizes`: x counts bytes. Labels carry the units. Raises PlotError for no panels.
    """
    if not panels:
        raise PlotError("there is nothing to draw: no panels")
    columns = min(len(panels), 2)
    lines = -(-len(panels) // columns)
    figure = sheet(4.9 * columns + 0.4, 3.2 * lines + 1.0)
    grid = figure.subplots(lines, columns, sharex=True, sharey=True, squeeze=False)
    handles: dict[str, Any] = {}
    for axes, panel in zip(grid.flat, panels, strict=False):
        axes.set_title(panel.title)
        axes.set_xlabel(x_label)
        axes.set_ylabel(y_label)
        axes.set_xscale("log", base=2) if log_x else None
        style.logarithmic(axes) if log_y else None
        _draw(axes, panel.curves)
        _label_x(axes, panels, x_sizes=x_sizes)
        axes.label_outer()
        if panel.close_up:
            _close_up(axes, panel)
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    for axes in list(grid.flat)[len(panels) :]:
        axes.remove()
    headed(figure, title)
    figure.legend(
        handles.values(), handles.keys(), loc="outside lower center", ncols=min(5, len(handles))
    )
    return figure


def _draw(axes: "Axes", family: Sequence[Curve], *, scale: float = 1.0) -> None:
    for curve in family:
        look = style.series(curve.colour)
        if curve.dashed:
            look |= {"linestyle": "--", "markerfacecolor": "white", "linewidth": 1.2}
            # On top of all full curves: it may coincide with that of another series.
            look |= {"markersize": 4.0, "zorder": 3}
        look["linewidth"] *= scale
        look["markersize"] *= scale
        axes.plot(*zip(*curve.points, strict=True), label=curve.label, **look)


def _label_x(axes: "Axes", panels: Sequence[Panel], *, x_sizes: bool) -> None:
    """Ticks at the values of all panels, which share the axis."""
    values = sorted({x for panel in panels for curve in panel.curves for x, _ in curve.points})
    shown = values[:: -(-len(values) // 10)] if not x_sizes else values[:: -(-len(values) // 6)]
    axes.set_xticks(shown, style.size_texts(shown) if x_sizes else [f"{x:g}" for x in shown])
    axes.set_xticks([], minor=True)


def _close_up(axes: "Axes", panel: Panel) -> None:
    """The range of interest on a linear scale, in the upper part of the panel."""
    from matplotlib.patches import Rectangle

    assert panel.close_up is not None
    low, high = panel.close_up
    # No grid lines of the panel behind the inset and the numbers at its left.
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
    _draw(inset, [curve for curve in near if curve.points], scale=0.7)
    inset.set_xticks(list(range(int(low), int(high) + 1)))
    inset.tick_params(labelsize=8)
    inset.margins(y=0.12)
