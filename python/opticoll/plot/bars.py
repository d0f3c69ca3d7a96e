"""Horizontal bars whose parts add up, in panels."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure

from opticoll.plot import style
from opticoll.plot.output import PlotError, drawn, headed, sheet
from opticoll.plot.panels import legend_below


@dataclass(frozen=True)
class BarPanel:
    """Panel of bars: lists of values by the name of the series, with one value per bar.

    None as a value omits the bar. If the series are parts of bars, the values are in seconds.
    """

    title: str
    series: Mapping[str, Sequence[float | None]]


def check(shown: Sequence[BarPanel], places: Sequence[str], noun: str) -> None:
    """Raises PlotError if there are no panels or bars, or a series is not as long as the bars."""
    if not shown or not places:
        raise PlotError(f"there is nothing to draw: no panels or no {noun}")
    for panel in shown:
        for name, values in panel.series.items():
            if len(values) != len(places):
                raise PlotError(
                    f"`{panel.title}`, `{name}`: {len(values)} values for {len(places)} {noun}"
                )


@drawn
def stacked_bars(
    shown: Sequence[BarPanel],
    bars: Sequence[str],
    path: str | os.PathLike[str],
    *,
    x_label: str,
    title: str = "",
) -> Figure:
    """Draws panels side by side, with the total of each bar at its end; `x_label` has no unit.

    Raises PlotError if there is nothing to draw, or a part does not have one value per bar.
    """
    check(shown, bars, "bars")
    figure = sheet(4.6 * len(shown) + 1.8, 0.34 * len(bars) + 1.9)
    grid = figure.subplots(1, len(shown), sharey=True, squeeze=False)[0]
    for axes, panel in zip(grid, shown, strict=True):
        totals = [
            sum(part_s or 0.0 for part_s in bar) for bar in zip(*panel.series.values(), strict=True)
        ]
        scale, unit = style.time_unit(max(totals))
        starts = [0.0] * len(bars)
        for index, (name, lengths) in enumerate(panel.series.items()):
            widths = [(length or 0.0) / scale for length in lengths]
            colour = style.COLOURS[(5, 1, 3, 2, 4, 0)[index % 6]]
            last = axes.barh(range(len(bars)), widths, 0.72, starts, color=colour, label=name)
            starts = [start + width for start, width in zip(starts, widths, strict=True)]
        texts = [style.time_text(total) if total else "not computed" for total in totals]
        axes.bar_label(last, texts, padding=4, fontsize=8)
        axes.set_title(panel.title)
        axes.set_xlim(0, 1.18 * max(totals) / scale)
        axes.set_xlabel(f"{x_label} ({unit})")
        axes.set_yticks(range(len(bars)), bars)
        axes.tick_params("y", length=0)
        axes.grid(axis="y", visible=False)
    grid[0].set_ylim(len(bars) - 0.4, -0.6)
    headed(figure, title)
    legend_below(figure, len(shown[0].series), of=grid[:1])
    return figure
