"""Mean times of collectives over the load of other traffic, with intervals."""

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from opticoll.plot import style
from opticoll.plot.output import PlotError, drawn, headed, sheet

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class MeanTime(NamedTuple):
    """A mean time and its interval of 95 %, in seconds; None where all or too many failed."""

    offered_load: float
    seconds: float | None
    low: float | None
    high: float | None
    failed: int


@drawn
def mean_times(
    series: Mapping[str, Sequence[MeanTime]], path: str | os.PathLike[str], title: str = ""
) -> "Figure":
    """Draw time over offered load; a hollow marker is a mean without the replications that failed.

    Raises PlotError for nothing to draw.
    """
    from matplotlib.transforms import offset_copy

    points = [point for of_series in series.values() for point in of_series]
    known = [point.seconds for point in points if point.seconds is not None]
    if not known:
        raise PlotError("there is nothing to draw: no collective ended")
    figure = sheet(7.2, 4.6)
    axes = figure.subplots()
    for number, (name, of_series) in enumerate(series.items()):
        look = style.series(number)
        # Side by side, so that intervals at one offered load can be told apart.
        apart = 3.0 * (number - (len(series) - 1) / 2)
        aside = offset_copy(axes.transData, figure, x=apart, units="points")
        drawn = [
            (point.offered_load, point.seconds, point)
            for point in sorted(of_series, key=lambda point: point.offered_load)
            if point.seconds is not None
        ]
        axes.plot(
            [offered_load for offered_load, _, _ in drawn],
            [seconds for _, seconds, _ in drawn],
            label=name,
            transform=aside,
            **look,
        )
        for offered_load, seconds, point in drawn:
            if point.low is not None and point.high is not None:
                # A logarithmic axis has no zero: the lower end is drawn as far as a tenth.
                ends = [max(point.low, seconds / 10), point.high]
                axes.plot(
                    [offered_load] * 2,
                    ends,
                    color=look["color"],
                    linewidth=1,
                    transform=aside,
                )
                axes.update_datalim([(offered_load, end) for end in ends])
            if point.failed:
                axes.plot(
                    offered_load,
                    seconds,
                    color=look["color"],
                    marker=look["marker"],
                    markersize=look["markersize"],
                    markerfacecolor="white",
                    transform=aside,
                )
            axes.update_datalim([(offered_load, seconds)])
    axes.autoscale_view()
    if max(known) > 20 * min(known):
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
