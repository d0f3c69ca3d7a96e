"""Horizontal bars of parts that add up, one panel per subject."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from opticoll.plot import style
from opticoll.plot.grouped_bars import check_lengths
from opticoll.plot.output import drawn, headed, sheet

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class StackedPanel:
    """A panel: for each part its lengths in seconds, one per bar, None where there is no bar."""

    title: str
    parts: Mapping[str, Sequence[float | None]]


@drawn
def stacked_bars(
    panels: Sequence[StackedPanel],
    bars: Sequence[str],
    path: str | os.PathLike[str],
    *,
    x_label: str,
    title: str = "",
) -> "Figure":
    """Draw panels side by side, their totals written at the ends; `x_label` names no unit.

    Raises PlotError for nothing to draw, or parts that do not have one length per bar.
    """
    check_lengths([(panel.title, panel.parts) for panel in panels], bars, "lengths", "bars")
    size = (4.6 * len(panels) + 1.8, 0.34 * len(bars) + 1.9)
    figure = sheet(*size)
    grid = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for axes, panel in zip(grid, panels, strict=True):
        totals = [
            sum(lengths[place] or 0.0 for lengths in panel.parts.values())
            for place in range(len(bars))
        ]
        scale, unit = style.time_unit(max(totals))
        left = [0.0] * len(bars)
        for index, (name, lengths) in enumerate(panel.parts.items()):
            widths = [(length or 0.0) / scale for length in lengths]
            colour = style.COLOURS[(5, 1, 3, 2, 4, 0)[index % 6]]
            axes.barh(range(len(bars)), widths, 0.72, left, color=colour, label=name)
            left = [start + width for start, width in zip(left, widths, strict=True)]
        for place, total in enumerate(totals):
            text = style.time_text(total) if total else "not computed"
            axes.annotate(
                text,
                (total / scale, place),
                (4, 0),
                textcoords="offset points",
                va="center",
                fontsize=8,
            )
        axes.set_title(panel.title)
        axes.set_xlim(0, 1.18 * max(totals) / scale)
        axes.set_xlabel(f"{x_label} ({unit})")
        axes.set_yticks(range(len(bars)), bars)
        axes.tick_params("y", length=0)
        axes.grid(axis="y", visible=False)
    grid[0].set_ylim(len(bars) - 0.4, -0.6)
    headed(figure, title)
    handles, labels = grid[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    return figure
