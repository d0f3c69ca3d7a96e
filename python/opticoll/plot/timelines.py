"""Timelines with a row for each rank, bucket or slot."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from opticoll.plot import style
from opticoll.plot.output import PlotError, drawn, headed, sheet
from opticoll.plot.panels import legend_below, time_line

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from opticoll._core import Outcome

# More rows would be thinner than a line.
MAX_RANKS = 256

# More rows would be thinner than their labels, so more buckets share one row.
MAX_BUCKETS = 16

MAX_ROWS_INCHES = 5.0
"""Maximum height of the rows of slots, in inches."""

# Number of columns of a figure that can be told apart; narrower pieces are merged.
_COLUMNS = 2000

# Pixels of a row, and pixels of the gaps above and below it.
_ROW = 40
_GAP = 4


KINDS = ("local work", "single messages and waiting", "collectives")


@drawn
def rank_timeline(
    rank: "NDArray[np.integer]",
    kind: "NDArray[np.integer]",
    start_s: "NDArray[np.floating]",
    end_s: "NDArray[np.floating]",
    ranks: int,
    path: str | os.PathLike[str],
    *,
    title: str = "",
    kinds: Sequence[str] = KINDS,
) -> "Figure":
    """Draws pieces of time, each of a rank and of a kind, a row for each rank.

    Where pieces are too short to be seen, a column of a row is shared among kinds by the time that
    each takes there, so that shares of areas are shares of time.

    Raises PlotError where there are no ranks, too many, or no time passes.
    """
    import numpy as np

    whole = float(end_s.max()) if len(end_s) else 0.0
    if whole <= 0:
        raise PlotError("the program takes no time: there is nothing to draw")
    if ranks > MAX_RANKS:
        raise PlotError(f"{ranks} ranks are too many rows; at most {MAX_RANKS} can be drawn")
    shares = np.zeros((len(kinds), ranks, _COLUMNS))
    for index in range(len(kinds)):
        mine = kind == index
        _spread(shares[index], rank[mine], start_s[mine] / whole, end_s[mine] / whole)
    colours = [style.COLOURS[5], style.COLOURS[1], style.COLOURS[0]][: len(kinds)]
    seen = [index for index in range(len(kinds)) if shares[index].any()]
    scale, unit = style.time_unit(whole)
    figure = sheet(9.0, 1.6 + min(6.0, 0.26 * ranks + 0.3))
    axes = figure.subplots()
    extent = (0.0, whole / scale, ranks - 0.5, -0.5)
    picture = _picture(shares, [style.rgb(colour) for colour in colours])
    axes.imshow(picture, aspect="auto", interpolation="nearest", extent=extent)
    ticks: dict[float, str] = {tick: str(tick) for tick in range(0, ranks, -(-ranks // 16))}
    time_line(axes, whole / scale, unit, ranks, ticks, beyond=1)
    axes.set_ylabel("Rank")
    axes.grid(visible=False)
    headed(figure, title)
    legend_below(figure, len(seen), colours={kinds[index]: colours[index] for index in seen})
    return figure


def _picture(
    shares: "NDArray[np.floating]", colours: Sequence[tuple[int, int, int]]
) -> "NDArray[np.uint8]":
    """Returns the pixels of rows of ranks; kinds are stacked by their shares in each column."""
    import numpy as np

    ranks, columns = shares.shape[1:]
    picture = np.full((ranks, _ROW, columns, 3), 255, np.uint8)
    height = _ROW - 2 * _GAP
    # The middles of the pixels of a row, from the bottom.
    middles = ((np.arange(height) + 0.5) / height)[None, ::-1, None]
    below = np.zeros((ranks, 1, columns))
    for share, colour in zip(shares, colours, strict=True):
        above = below + share[:, None, :]
        picture[:, _GAP : _GAP + height][(middles >= below) & (middles < above)] = colour
        below = above
    return picture.reshape(ranks * _ROW, columns, 3)


def _spread(
    shares: "NDArray[np.floating]",
    rank: "NDArray[np.integer]",
    start: "NDArray[np.floating]",
    end: "NDArray[np.floating]",
) -> None:
    """Adds to each column of a rank the share of it that pieces cover; times are from 0 to 1."""
    import numpy as np

    columns = shares.shape[1]
    # Time of a rank's pieces before each edge: the difference of two ramps.
    edges = np.arange(columns + 1) / columns
    for row in range(shares.shape[0]):
        mine = rank == row
        if not mine.any():
            continue
        covered = np.zeros(columns + 1)
        for times, sign in ((np.sort(start[mine]), 1.0), (np.sort(end[mine]), -1.0)):
            sums = np.concatenate([[0.0], np.cumsum(times)])
            before = np.searchsorted(times, edges)
            covered += sign * (before * edges - sums[before])
        shares[row] += np.diff(covered) * columns


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
    """Draws the forward and backward pass, and below it when each bucket waits and is sent.

    With few buckets each has a row, with a line from when it was ready; many share one row. What
    ends after the backward pass, which is the part that training waits for, stands on grey.

    Raises PlotError where nothing is computed or sent.
    """
    end_s = max([compute_s, *(bucket.end_s for bucket in buckets)])
    if end_s <= 0:
        raise PlotError("the iteration takes no time: there is nothing to draw")
    scale, unit = style.time_unit(end_s)
    single = len(buckets) > MAX_BUCKETS
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
    labels = (
        [f"{len(buckets)} buckets"] if single else [each_bucket.label for each_bucket in buckets]
    )
    ticks: dict[float, str] = dict(enumerate(["computing", *labels]))
    time_line(axes, end_s / scale, unit, 1 + rows, ticks)
    headed(figure, title)
    colours = {"forward": other, "backward": compute}
    if single:
        colours["all_reduce (shades alternate)"] = sent
    elif buckets:
        colours |= {"all_reduce": sent, "ready, waits for the all_reduce before": style.GREY}
    if end_s > compute_s:
        colours["exposed"] = "#EDEDED"
    legend_below(figure, len(colours), colours=colours)
    return figure


@drawn
def slots(measured: "Outcome", path: str | os.PathLike[str], title: str = "") -> "Figure":
    """Draws when circuits of each slot are reconfigured and when they send; a row for each slot.

    Raises PlotError where the outcome has no slots.
    """
    from matplotlib.ticker import MaxNLocator

    columns = measured.slots.columns
    count = len(measured.slots)
    if count == 0:
        raise PlotError("there is nothing to draw: the plan has no slots")
    factor, unit = style.unit_ps(measured.time_ps)
    start, end = columns["start_ps"] / factor, columns["end_ps"] / factor
    sends = start + columns["reconfiguration_ps"] / factor
    tall = min(MAX_ROWS_INCHES, 0.22 * count)
    figure = sheet(9.0, 1.6 + tall)
    axes = figure.subplots()
    wide = max(0.8, 0.7 * 72 * tall / count)
    if columns["reconfiguration_ps"].any():
        _bars(axes, start, sends, style.GREY, wide, "reconfiguration")
    _bars(axes, sends, end, style.COLOURS[0], wide, "sending")
    time_line(axes, measured.time_ps / factor, unit, count)
    axes.set_ylabel("Slot")
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2)
    headed(figure, title)
    return figure


def _bars(axes: "Axes", start: Any, end: Any, colour: str, wide: float, label: str) -> None:
    axes.hlines(range(len(start)), start, end, colors=colour, linewidth=wide, label=label)
