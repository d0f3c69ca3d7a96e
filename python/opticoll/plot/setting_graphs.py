"""The graph of each setting of a plan: ranks around a circle, and the circuits that are up."""

import os
from math import cos, pi, sin
from typing import TYPE_CHECKING

from opticoll.outputs.circuit_settings import CircuitSetting, settings
from opticoll.plot import style
from opticoll.plot.output import PlotError, drawn, headed, sheet

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from opticoll._core import Plan

_MOST_PANELS = 12
_MOST_RANKS = 256
_MOST_NAMED = 32
_COLUMNS = 4


@drawn
def setting_graphs(plan: "Plan", path: str | os.PathLike[str]) -> "Figure":
    """Draw the circuits of each setting, the first 12 of them, in the colours of their ports.

    Raises PlotError for nothing to draw, or more ranks than a circle has place for.
    """
    listed = settings(plan)
    if not listed:
        raise PlotError("there is nothing to draw: nothing is sent")
    ranks = plan.fabric.ranks
    if ranks > _MOST_RANKS:
        raise PlotError(f"{ranks} ranks are too many to draw: {_MOST_RANKS} at most")
    shown = listed[:_MOST_PANELS]
    columns = min(_COLUMNS, len(shown))
    lines = -(-len(shown) // columns)
    figure = sheet(max(6.0, 2.9 * columns), 0.7 + 3.0 * lines)
    grid = list(figure.subplots(lines, columns, squeeze=False).flat)
    for axes, setting, number in zip(grid, shown, range(len(shown)), strict=False):
        _graph(axes, setting, ranks)
        axes.set_title(f"setting {number}: {_slots(setting)}", fontsize=10)
    for axes in grid[len(shown) :]:
        axes.remove()
    count = style.counted(len(listed), "setting")
    more = f", the first {len(shown)} of {count}" if len(listed) > len(shown) else f", {count}"
    headed(figure, f"{style.heading(plan)}{more}\n{style.conditions(plan.fabric.spec)}")
    return figure


def _slots(setting: CircuitSetting) -> str:
    if setting.first == setting.last:
        return f"slot {setting.first}"
    return f"slots {setting.first} to {setting.last}"


def _graph(axes: "Axes", setting: CircuitSetting, ranks: int) -> None:
    places = [(sin(2 * pi * rank / ranks), cos(2 * pi * rank / ranks)) for rank in range(ranks)]
    ports = style.wavelength_colours(1 + max(port for _, port in setting.peers))
    for (rank, port), peer in setting.peers.items():
        look = {
            "arrowstyle": "-|>",
            "color": ports(port),
            "linewidth": 1.2 if ranks <= _MOST_NAMED else 0.5,
            "mutation_scale": 10 if ranks <= _MOST_NAMED else 4,
            "shrinkA": 3,
            "shrinkB": 3,
            # Both directions between two ranks show, each on its side.
            "connectionstyle": "arc3,rad=0.12",
        }
        axes.annotate("", xy=places[peer], xytext=places[rank], arrowprops=look)
    across, upwards = zip(*places, strict=True)
    size = 4 if ranks <= _MOST_NAMED else 2
    axes.plot(across, upwards, "o", markersize=size, color=style.INK)
    if ranks <= _MOST_NAMED:
        for rank, (right, up) in enumerate(places):
            axes.text(1.16 * right, 1.16 * up, str(rank), ha="center", va="center", fontsize=8)
    axes.set_xlim(-1.3, 1.3)
    axes.set_ylim(-1.3, 1.3)
    axes.set_aspect("equal")
    axes.axis("off")
