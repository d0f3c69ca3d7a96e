"""The course of one iteration of training: what computes when, and which bucket is sent when."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from opticoll.plot import style
from opticoll.plot.output import PlotError, drawn, headed, sheet

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Beyond these, rows are thinner than their labels: all buckets share one row.
_MOST_ROWS = 16


@dataclass(frozen=True)
class Bar:
    """A bucket: a label, when it is ready, and from when to when it is sent, in seconds."""

    label: str
    ready_s: float
    start_s: float
    end_s: float


@drawn
def iteration_timeline(
    forward_s: float,
    compute_s: float,
    buckets: Sequence[Bar],
    path: str | os.PathLike[str],
    *,
    title: str = "",
) -> "Figure":
    """Draw the forward and backward pass, and below it when each bucket waits and is sent.

    With few buckets each has a row, with a line from when it was ready; many share one row. What
    ends after the backward pass, which is the part that training waits for, stands on grey.

    Raises PlotError where nothing is computed or sent.
    """
    from matplotlib.patches import Patch

    end_s = max([compute_s, *(bucket.end_s for bucket in buckets)])
    if end_s <= 0:
        raise PlotError("the iteration takes no time: there is nothing to draw")
    scale, unit = style.time_unit(end_s)
    single = len(buckets) > _MOST_ROWS
    rows = 1 if single else len(buckets)
    compute, other, sent = style.COLOURS[0], style.COLOURS[5], style.COLOURS[1]
    height = 1.7 + 0.26 * (1 + rows)
    figure = sheet(9.0, height)
    axes = figure.subplots()
    if end_s > compute_s:
        axes.axvspan(compute_s / scale, end_s / scale, color="#EDEDED", linewidth=0, zorder=0)
    axes.barh(0, forward_s / scale, 0.7, color=other)
    axes.barh(0, (compute_s - forward_s) / scale, 0.7, forward_s / scale, color=compute)
    shades = (sent, style.COLOURS[4])
    for index, bucket in enumerate(buckets):
        row = 1 if single else 1 + index
        width = (bucket.end_s - bucket.start_s) / scale
        shade = shades[index % 2] if single else sent
        axes.barh(row, width, 0.7, bucket.start_s / scale, color=shade)
        if not single and bucket.start_s > bucket.ready_s:
            ends = [bucket.ready_s / scale, bucket.start_s / scale]
            axes.plot(ends, [row, row], color=style.GREY, linewidth=1.2, solid_capstyle="butt")
    labels = [f"{len(buckets)} buckets"] if single else [one.label for one in buckets]
    axes.set_yticks(range(1 + rows), ["computing", *labels][: 1 + rows])
    axes.set_ylim(rows + 0.6, -0.6)
    axes.set_xlim(0, end_s / scale * 1.005)
    axes.set_xlabel(f"Time ({unit})")
    axes.tick_params("y", length=0)
    axes.grid(axis="y", visible=False)
    headed(figure, title)
    handles = [Patch(color=other, label="forward"), Patch(color=compute, label="backward")]
    if single:
        handles.append(Patch(color=sent, label="all_reduce (shades alternate)"))
    elif buckets:
        handles.append(Patch(color=sent, label="all_reduce"))
        handles.append(Patch(color=style.GREY, label="ready, waits for the all_reduce before"))
    if end_s > compute_s:
        handles.append(Patch(color="#EDEDED", label="exposed"))
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))
    return figure
