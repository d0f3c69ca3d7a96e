"""Bars in groups, one panel per subject: several methods at several scales."""

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from opticoll.plot import style
from opticoll.plot.output import PlotError, drawn, headed, sheet

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class BarPanel:
    """A panel: for each series its values, one per group in the groups' order, None for no bar."""

    title: str
    series: Mapping[str, Sequence[float | None]]


def check_lengths(
    panels: Sequence[tuple[str, Mapping[str, Sequence[float | None]]]],
    places: Sequence[str],
    values: str,
    what: str,
) -> None:
    """Refuse no panels, no places, or a series that does not have one value per place."""
    if not panels or not places:
        raise PlotError(f"there is nothing to draw: no panels or no {what}")
    for title, series in panels:
        for name, found in series.items():
            if len(found) != len(places):
                raise PlotError(
                    f"`{title}`, `{name}`: {len(found)} {values} for {len(places)} {what}"
                )


@drawn
def grouped_bars(
    panels: Sequence[BarPanel],
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
    check_lengths([(panel.title, panel.series) for panel in panels], groups, "values", "groups")
    columns = min(len(panels), columns)
    lines = -(-len(panels) // columns)
    # Many small panels in place of few large ones.
    width_in, height_in = (4.9, 2.9) if columns < 3 else (3.3, 2.2)
    size = (width_in * columns + 0.4, height_in * lines + 1.0)
    figure = sheet(*size)
    grid = figure.subplots(lines, columns, sharex=True, sharey=True, squeeze=False)
    for axes, panel in zip(grid.flat, panels, strict=False):
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
            look = {"linestyle": "-" if value == base else style.LINES[1 + number % 3]}
            axes.axhline(value, color=style.INK, linewidth=1.0, label=name, **look)
        axes.set_title(panel.title)
        axes.set_xlabel(x_label)
        axes.set_ylabel(y_label)
        style.logarithmic(axes) if log_y else None
        axes.minorticks_off() if columns > 2 else None
        axes.set_xticks(range(len(groups)), groups)
        axes.tick_params("x", length=0)
        axes.grid(axis="x", visible=False)
        axes.label_outer()
    for axes in list(grid.flat)[len(panels) :]:
        axes.remove()
    headed(figure, title)
    handles, labels = grid.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(4, len(labels)))
    return figure
