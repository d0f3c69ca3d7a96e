"""Losses of bursts: over offered load with intervals; of a case over time, with loads of links."""

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from opticoll.plot import style
from opticoll.plot.output import PlotError, drawn, headed, sheet

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from opticoll._core import Outcome


class Loss(NamedTuple):
    """A measured loss and its interval of 95 %, as shares; of another axis x is no offered load."""

    offered_load: float
    loss: float
    low: float
    high: float


@drawn
def losses(
    series: Mapping[str, Sequence[Loss]],
    path: str | os.PathLike[str],
    title: str = "",
    *,
    x_label: str = "Offered load (Erlang per host)",
    mark: float | None = None,
) -> "Figure":
    """Draw loss over offered load; where nothing was lost, an arrow hangs from the upper bound.

    A line crosses at `mark`, if given. Raises PlotError for nothing to draw.
    """
    from matplotlib.transforms import offset_copy

    if not any(series.values()):
        raise PlotError("there is nothing to draw: no losses")
    figure = sheet(7.2, 4.6)
    axes = figure.subplots()
    for number, (name, points) in enumerate(series.items()):
        look = style.series(number)
        some = sorted(point for point in points if point.loss > 0)
        axes.plot(
            [point.offered_load for point in some],
            [point.loss for point in some],
            label=name,
            **look,
        )
        for point in some:
            # A logarithmic axis has no zero: the lower end is drawn as far as a tenth.
            ends = [max(point.low, point.loss / 10), point.high]
            axes.plot([point.offered_load] * 2, ends, color=look["color"], linewidth=1)
        # Side by side, for arrows of several series at one offered load, and intervals there.
        aside = offset_copy(axes.transData, figure, x=7.0 * (number + 1), units="points")
        for point in points:
            if point.loss == 0:
                place, below = (
                    (point.offered_load, point.high),
                    (point.offered_load, point.high / 3),
                )
                look_of_arrow = {"arrowstyle": "->", "color": look["color"], "linewidth": 1.2}
                axes.annotate(
                    "",
                    xy=below,
                    xytext=place,
                    xycoords=aside,
                    textcoords=aside,
                    arrowprops=look_of_arrow,
                )
                axes.plot(*place, color=look["color"], marker="_", markersize=6, transform=aside)
                axes.update_datalim([place, below])
    if mark is not None:
        axes.axhline(mark, color=style.GREY, linewidth=1, linestyle="--")
        axes.update_datalim([(axes.dataLim.x0, mark / 3)])
    none = any(point.loss == 0 for points in series.values() for point in points)
    if none:
        axes.margins(x=0.09)  # arrows stand beside their place
    style.logarithmic(axes)
    axes.autoscale_view()
    note = "\narrows: nothing lost, at most so much (95 %)" if none else ""
    axes.set_xlabel(f"{x_label}{note}")
    axes.set_ylabel("Burst loss ratio")
    figure.legend(loc="outside lower center", ncols=min(2, len(series)))
    headed(figure, title)
    return figure


@drawn
def one_loss(outcome: "Outcome", path: str | os.PathLike[str], title: str = "") -> "Figure":
    """Draw the loss of each round over time, and how much of each link was held."""
    moments, links, names = outcome.moments, outcome.links, outcome.links["link"]
    figure = sheet(10.5, max(3.6, 1.4 + 0.19 * len(names)))
    left, right = figure.subplots(1, 2)
    times = moments["end_ps"] / 1e12
    look = style.series(0) | {"markersize": 3.0}
    left.plot(times, moments["lost"] / moments["offered"], **look)
    left.axhline(outcome.loss, color=style.GREY, linewidth=1, linestyle="--")
    highest = float((moments["lost"] / moments["offered"]).max())
    left.set_ylim(0, 1.2 * highest or 1)
    left.set_xlim(left=0)
    left.set_title(f"Burst loss ratio of each round; dashed: all rounds, {outcome.loss:.3g}")
    left.set_xlabel("Simulated time of a replication (s)")
    left.set_ylabel("Burst loss ratio")
    held, wasted = 100 * links["utilisation"], 100 * links["wasted"]
    places = range(len(names))
    right.barh(places, held - wasted, color=style.COLOURS[0], label="used")
    right.barh(
        places,
        wasted,
        left=held - wasted,
        color=style.COLOURS[1],
        label="held by bursts that are lost",
    )
    right.set_yticks(list(places), names, fontsize=7)
    right.invert_yaxis()
    right.set_xlim(0, 100)
    right.set_title("Wavelengths in use on each link")
    right.set_xlabel("Share of the time (%)")
    right.legend(loc="lower right")
    headed(figure, title)
    return figure
