"""Figures of collective times and burst losses over the offered load, with 95 % intervals."""

import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.transforms import Transform, offset_copy

from opticoll.plot import style
from opticoll.plot.output import PlotError, drawn, headed, sheet


class Loss(NamedTuple):
    """Measured loss and its 95 % interval, as shares; `offered_load` is the value on the x axis."""

    offered_load: float
    loss: float
    low: float
    high: float


class MeanTime(NamedTuple):
    """Mean time in seconds, and its 95 % interval; None if too many replications failed."""

    offered_load: float
    seconds: float | None
    low: float | None
    high: float | None
    failed: int


@drawn
def losses(
    series: Mapping[str, Sequence[Loss]],
    path: str | os.PathLike[str],
    title: str = "",
    *,
    x_label: str = "Offered load (Erlang per host)",
    mark: float | None = None,
) -> Figure:
    """Draws loss over offered load; a loss of 0 is an arrow that points down from the upper bound.

    A horizontal line marks the loss ratio `mark`, if given. Raises PlotError if there is nothing to
    draw.
    """
    if not any(series.values()):
        raise PlotError("there is nothing to draw: no losses")
    figure = sheet(7.2, 4.6)
    axes = figure.subplots()
    for number, (name, points) in enumerate(series.items()):
        lossy = sorted(point for point in points if point.loss > 0)
        colour = _draw(axes, number, name, lossy, axes.transData)["color"]
        # Arrows and intervals of several curves at the same offered load are drawn side by side.
        shifted = offset_copy(axes.transData, figure, x=7.0 * (number + 1), units="points")
        for point in points:
            if point.loss == 0:
                upper_bound = (point.offered_load, point.high)
                below = (point.offered_load, point.high / 3)
                axes.annotate(
                    "",
                    xy=below,
                    xytext=upper_bound,
                    xycoords=shifted,
                    textcoords=shifted,
                    arrowprops={"arrowstyle": "->", "color": colour, "linewidth": 1.2},
                )
                axes.plot(*upper_bound, color=colour, marker="_", markersize=6, transform=shifted)
                axes.update_datalim([upper_bound, below])
    if mark is not None:
        axes.axhline(mark, color=style.GREY, linewidth=1, linestyle="--")
        axes.update_datalim([(axes.dataLim.x0, mark / 3)])
    has_lossless = any(point.loss == 0 for points in series.values() for point in points)
    if has_lossless:
        axes.margins(x=0.09)  # room for the arrows of the first and the last point
    style.logarithmic(axes)
    axes.autoscale_view()
    note = "\narrows: no loss, with the 95 % upper bound" if has_lossless else ""
    axes.set_xlabel(f"{x_label}{note}")
    axes.set_ylabel("Burst loss ratio")
    figure.legend(loc="outside lower center", ncols=min(2, len(series)))
    headed(figure, title)
    return figure


@drawn
def mean_times(
    series: Mapping[str, Sequence[MeanTime]], path: str | os.PathLike[str], title: str = ""
) -> Figure:
    """Draws mean time over offered load; a hollow marker means that some replications failed.

    Raises PlotError if there is nothing to draw.
    """
    points = [point for measured_points in series.values() for point in measured_points]
    measured = [point.seconds for point in points if point.seconds is not None]
    if not measured:
        raise PlotError("there is nothing to draw: no collective ended")
    figure = sheet(7.2, 4.6)
    axes = figure.subplots()
    for number, (name, measured_points) in enumerate(series.items()):
        # Intervals of several curves at the same offered load are drawn side by side.
        apart = 3.0 * (number - (len(series) - 1) / 2)
        shifted = offset_copy(axes.transData, figure, x=apart, units="points")
        ended = [
            (point.offered_load, point.seconds, point.low, point.high)
            for point in sorted(measured_points, key=lambda point: point.offered_load)
            if point.seconds is not None
        ]
        look = _draw(axes, number, name, ended, shifted)
        look |= {"linestyle": "", "markerfacecolor": "white"}
        for point in measured_points:
            if point.failed and point.seconds is not None:
                axes.plot(point.offered_load, point.seconds, transform=shifted, **look)
    axes.autoscale_view()
    if max(measured) > 20 * min(measured):
        style.logarithmic(axes)
    else:
        axes.set_ylim(bottom=0)
    failed = any(point.failed for point in points)
    note = "\nhollow marker: mean without the replications that gave up" if failed else ""
    axes.set_xlabel(f"Offered load of the background traffic (Erlang per host){note}")
    axes.set_ylabel("Mean time (s) with 95 % interval")
    figure.legend(loc="outside lower center", ncols=min(3, len(series)))
    headed(figure, title)
    return figure


def _draw(
    axes: Axes,
    number: int,
    name: str,
    points: Sequence[tuple[float, float, float | None, float | None]],
    transform: Transform,
) -> dict[str, Any]:
    """Draws a curve through points (x, y, low, high) with intervals; returns the curve's look."""
    look = style.series(number)
    x, y = [point[0] for point in points], [point[1] for point in points]
    axes.plot(x, y, label=name, transform=transform, **look)
    axes.update_datalim(list(zip(x, y, strict=True)))
    for load, value, low, high in points:
        if low is not None and high is not None:
            # A logarithmic axis has no zero, so the interval ends at or above a tenth of the value.
            ends = [max(low, value / 10), high]
            axes.plot([load] * 2, ends, color=look["color"], linewidth=1, transform=transform)
            axes.update_datalim([(load, end) for end in ends])
    return look
