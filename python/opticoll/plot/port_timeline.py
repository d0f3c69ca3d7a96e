"""Which port sends on which wavelength when, on a grid of tunable circuits."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from opticoll.plot import style
from opticoll.plot.output import PlotError, drawn, headed, sheet

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST_ROWS = 128
PLANES = ("row", "column")


@dataclass(frozen=True)
class Flow:
    """What a port sends; plane 0 is the row's switch, 1 the column's; times in seconds."""

    source: int
    plane: int
    wavelength: int
    asked_s: float
    start_s: float
    sent_s: float


@dataclass(frozen=True)
class PortPanel:
    """A panel: one collective on so many ranks."""

    title: str
    ranks: int
    flows: Sequence[Flow]


@drawn
def port_timeline(
    panels: Sequence[PortPanel], path: str | os.PathLike[str], *, title: str = ""
) -> "Figure":
    """Draw a row for each port, those to rows above those to columns, and a bar for each flow.

    Bars are coloured by wavelength; grey before a bar is the time in which its circuit is asked
    for and its laser tuned. Panels share the axis of time.

    Raises PlotError for nothing to draw, or more ports than lines on paper.
    """
    from matplotlib.patches import Patch

    flows = [flow for panel in panels for flow in panel.flows]
    if not flows:
        raise PlotError("there is nothing to draw: no flows")
    rows = 2 * max(panel.ranks for panel in panels)
    if rows > _MOST_ROWS:
        raise PlotError(f"{rows} ports are too many to draw: {_MOST_ROWS} at most")
    scale, unit = style.time_unit(max(flow.sent_s for flow in flows))
    channels = 1 + max(flow.wavelength for flow in flows)
    colours = style.wavelength_colours(channels)
    height = 0.085 * rows * len(panels) + 1.6
    figure = sheet(9.6, max(4.0, height))
    grid = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
    for axes, panel in zip(grid, panels, strict=True):
        _draw(axes, panel, scale, colours)
    grid[-1].set_xlabel(f"Time ({unit})")
    grid[-1].set_xlim(0, 1.01 * max(flow.sent_s for flow in flows) / scale)
    headed(figure, title)
    handles = [
        Patch(color=colours(channel), label=f"wavelength {channel}") for channel in range(channels)
    ]
    handles.append(Patch(color=style.GREY, label="request and tuning"))
    figure.legend(handles=handles, loc="outside lower center", ncols=min(8, len(handles)))
    return figure


def _draw(axes: "Axes", panel: PortPanel, scale: float, colours: object) -> None:
    for flow in panel.flows:
        row = flow.plane * panel.ranks + flow.source
        if flow.start_s > flow.asked_s:
            width = (flow.start_s - flow.asked_s) / scale
            axes.barh(row, width, 0.8, flow.asked_s / scale, color=style.GREY)
        width = (flow.sent_s - flow.start_s) / scale
        colour = colours(flow.wavelength)  # type: ignore[operator]
        axes.barh(row, width, 0.8, flow.start_s / scale, color=colour)
    axes.axhline(panel.ranks - 0.5, color=style.INK, linewidth=0.8)
    axes.set_ylim(2 * panel.ranks - 0.5, -0.5)
    stride = max(1, panel.ranks // 4)
    shown = range(0, panel.ranks, stride)
    places = [plane * panel.ranks + rank for plane in range(2) for rank in shown]
    axes.set_yticks(places, [f"rank {rank}" for _ in range(2) for rank in shown])
    axes.tick_params("y", length=0, labelsize=8)
    axes.grid(axis="y", visible=False)
    axes.set_title(panel.title)
    name_planes(axes, "port")


def name_planes(axes: "Axes", what: str) -> None:
    """Write at the right which half of the rows are row ports and which are column ports."""
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
