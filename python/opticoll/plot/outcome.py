"""The picture of an outcome: what its simulator measured over time."""

import os
from typing import TYPE_CHECKING, Any

from opticoll.plot import style
from opticoll.plot.bursts import one_loss
from opticoll.plot.link_use import TIME_UNITS, link_use
from opticoll.plot.output import PlotError, drawn, headed, sheet
from opticoll.plot.packets import packets

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from opticoll._core import Outcome, Plan

TALLEST = 5.0
"""Inches that the rows of slots may take."""


def outcome(
    measured: "Outcome", path: str | os.PathLike[str], plan: "Plan | None" = None, title: str = ""
) -> None:
    """Draw what an outcome measured over time; a plan names the links, whose use is then drawn.

    Of packets these are latencies and buffers, of bursts losses, and of plans the slots, or with
    the plan and a `link_bin` the use of links. Raises PlotError where there is nothing of these.
    """
    known = measured.tables
    if "message_latency" in known:
        packets(measured, None if plan is None else plan.fabric, path, title)
    elif "link_use" in known and plan is not None:
        link_use(plan, measured, path, title)
    elif "moments" in known:
        one_loss(measured, path, title)
    elif "slots" in known:
        slots(measured, path, title)
    else:
        tables = ", ".join(known)
        raise PlotError(f"there is nothing to draw over time: the tables are {tables}")


@drawn
def slots(measured: "Outcome", path: str | os.PathLike[str], title: str = "") -> "Figure":
    """Draw when circuits of each slot are reconfigured and when they send; a row for each slot.

    Raises PlotError where the outcome has no slots.
    """
    from matplotlib.ticker import MaxNLocator

    columns = measured.slots.columns
    count = len(measured.slots)
    if count == 0:
        raise PlotError("there is nothing to draw: the plan has no slots")
    factor, unit = next((one for one in TIME_UNITS if measured.time_ps >= one[0]), TIME_UNITS[-1])
    start, end = columns["start_ps"] / factor, columns["end_ps"] / factor
    sends = start + columns["reconfiguration_ps"] / factor
    tall = min(TALLEST, 0.22 * count)
    figure = sheet(9.0, 1.6 + tall)
    axes = figure.subplots()
    wide = max(0.8, 0.7 * 72 * tall / count)
    if columns["reconfiguration_ps"].any():
        _bars(axes, start, sends, style.GREY, wide, "reconfiguration")
    _bars(axes, sends, end, style.COLOURS[0], wide, "sending")
    axes.set_ylim(count - 0.4, -0.6)
    axes.set_xlim(0, measured.time_ps / factor * 1.005 or 1)
    axes.set_xlabel(f"Time ({unit})")
    axes.set_ylabel("Slot")
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2)
    headed(figure, title)
    return figure


def _bars(axes: "Axes", start: Any, end: Any, colour: str, wide: float, label: str) -> None:
    axes.hlines(range(len(start)), start, end, colors=colour, linewidth=wide, label=label)
