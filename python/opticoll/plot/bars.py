"""Bars in panels, one panel per subject: in groups, or horizontal bars of parts that add up."""

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from opticoll.plot import style
from opticoll.plot.output import PlotError, drawn, headed, sheet
from opticoll.plot.panels import legend_below, panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class BarPanel:
    """A panel: for each series or part its values, one per place, None where there is no bar.

    Of parts that add up the values are seconds.
    """

    title: str
    series: Mapping[str, Sequence[float | None]]


def _check(shown: Sequence[BarPanel], places: Sequence[str], what: str) -> None:
    """Refuses no panels, no places, or a series that does not have one value per place."""
    if not shown or not places:
        raise PlotError(f"there is nothing to draw: no panels or no {what}")
    for panel in shown:
        for name, found in panel.series.items():
            if len(found) != len(places):
                raise PlotError(
                    f"`{panel.title}`, `{name}`: {len(found)} values for {len(places)} {what}"
                )


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
    """Draw panels (`columns` to a line) of grouped bars with one legend below.

    Labels carry the units. Bars stand on `base`, lesser values hang from it; `marks` are named
    values at which a line crosses all panels.

    Raises PlotError for no panels, or series that do not have one value per group.
    """
    _check(shown, groups, "groups")
    # Many small panels in place of few large ones.
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


@drawn
def stacked_bars(
    shown: Sequence[BarPanel],
    bars: Sequence[str],
    path: str | os.PathLike[str],
    *,
    x_label: str,
    title: str = "",
) -> "Figure":
    """Draw panels side by side, their totals written at the ends; `x_label` names no unit.

    Raises PlotError for nothing to draw, or parts that do not have one length per bar.
    """
    _check(shown, bars, "bars")
    figure = sheet(4.6 * len(shown) + 1.8, 0.34 * len(bars) + 1.9)
    grid = figure.subplots(1, len(shown), sharey=True, squeeze=False)[0]
    for axes, panel in zip(grid, shown, strict=True):
        totals = [
            sum(one or 0.0 for one in bar) for bar in zip(*panel.series.values(), strict=True)
        ]
        scale, unit = style.time_unit(max(totals))
        left = [0.0] * len(bars)
        for index, (name, lengths) in enumerate(panel.series.items()):
            widths = [(length or 0.0) / scale for length in lengths]
            colour = style.COLOURS[(5, 1, 3, 2, 4, 0)[index % 6]]
            last = axes.barh(range(len(bars)), widths, 0.72, left, color=colour, label=name)
            left = [start + width for start, width in zip(left, widths, strict=True)]
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
