"""Timelines with one row per rank, bucket or slot."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from opticoll._core import Outcome
from opticoll.plot import style
from opticoll.plot.output import PlotError, drawn, headed, sheet
from opticoll.plot.panels import legend_below, time_line

# More rows would be thinner than a printed line.
MAX_RANKS = 256

# More rows would be thinner than their labels, so more buckets share one row.
MAX_BUCKETS = 16

MAX_ROWS_INCHES = 5.0
"""Maximum height of all rows of slots together, in inches."""

# Number of distinguishable columns of a figure; narrower intervals are merged.
_COLUMNS = 2000

# Pixels of a row, and pixels of the gaps above and below it.
_ROW = 40
_GAP = 4


KINDS = ("local work", "single messages and waiting", "collectives")


@drawn
def rank_timeline(
    rank: NDArray[np.integer],
    kind: NDArray[np.integer],
    start_s: NDArray[np.floating],
    end_s: NDArray[np.floating],
    ranks: int,
    path: str | os.PathLike[str],
    *,
    title: str = "",
    kinds: Sequence[str] = KINDS,
) -> Figure:
    """Draws intervals of time, such as computing and waiting, with a row for each rank.

    The arrays `rank`, `kind`, `start_s` and `end_s` have one entry per interval; an entry of `kind`
    is an index of `kinds`. If several intervals share a pixel column, the column is divided in
    proportion to the intervals' durations. So shares of area are shares of time.

    Raises PlotError if there are no ranks, more than `MAX_RANKS` ranks, or no time passes.
    """
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
    shares: NDArray[np.floating], colours: Sequence[tuple[int, int, int]]
) -> NDArray[np.uint8]:
    """Returns the pixels of all rows; in a column, each kind has a height equal to its share."""
    ranks, columns = shares.shape[1:]
    picture = np.full((ranks, _ROW, columns, 3), 255, np.uint8)
    height = _ROW - 2 * _GAP
    # The middles of a row's pixels, from the bottom up.
    middles = ((np.arange(height) + 0.5) / height)[None, ::-1, None]
    below = np.zeros((ranks, 1, columns))
    for share, colour in zip(shares, colours, strict=True):
        above = below + share[:, None, :]
        picture[:, _GAP : _GAP + height][(middles >= below) & (middles < above)] = colour
        below = above
    return picture.reshape(ranks * _ROW, columns, 3)


def _spread(
    shares: NDArray[np.floating],
    rank: NDArray[np.integer],
    start: NDArray[np.floating],
    end: NDArray[np.floating],
) -> None:
    """Adds to `shares` the share of each pixel column that a rank's intervals cover.

    Times are from 0 to 1.
    """
    columns = shares.shape[1]
    # Covered time before each edge: the times since all starts minus the times since all ends.
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
    """Bucket of gradients: the time at which it is ready, and the start and end of its sending."""

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
) -> Figure:
    """Draws the forward and backward pass of an iteration, and below it the sending of each bucket.

    A line before a bucket lasts from the time at which the bucket is ready to the start of its
    sending. If there are more than `MAX_BUCKETS` buckets, all buckets share one row, without these
    lines. A grey background marks the time after the backward pass, in which training waits for the
    communication.

    Raises PlotError if nothing is computed or sent.
    """
    end_s = max([compute_s, *(bucket.end_s for bucket in buckets)])
    if end_s <= 0:
        raise PlotError("the iteration takes no time: there is nothing to draw")
    scale, unit = style.time_unit(end_s)
    single = len(buckets) > MAX_BUCKETS
    rows = 1 if single else len(buckets)
    backward_colour, forward_colour, sent_colour = (
        style.COLOURS[0],
        style.COLOURS[5],
        style.COLOURS[1],
    )
    height = 1.7 + 0.26 * (1 + rows)
    figure = sheet(9.0, height)
    axes = figure.subplots()
    if end_s > compute_s:
        axes.axvspan(compute_s / scale, end_s / scale, color="#EDEDED", linewidth=0, zorder=0)
    axes.barh(0, forward_s / scale, 0.7, color=forward_colour)
    axes.barh(0, (compute_s - forward_s) / scale, 0.7, forward_s / scale, color=backward_colour)
    shades = (sent_colour, style.COLOURS[4])
    for index, bucket in enumerate(buckets):
        row = 1 if single else 1 + index
        width = (bucket.end_s - bucket.start_s) / scale
        shade = shades[index % 2] if single else sent_colour
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
    colours = {"forward": forward_colour, "backward": backward_colour}
    if single:
        colours["all_reduce (shades alternate)"] = sent_colour
    elif buckets:
        colours |= {"all_reduce": sent_colour, "ready, waits for the all_reduce before": style.GREY}
    if end_s > compute_s:
        colours["exposed"] = "#EDEDED"
    legend_below(figure, len(colours), colours=colours)
    return figure


@drawn
def slots(measured: Outcome, path: str | os.PathLike[str], title: str = "") -> Figure:
    """Draws a row per slot: the time of the reconfiguration, and the time in which data are sent.

    Raises PlotError if the outcome has no slots.
    """
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


def _bars(axes: Axes, start: Any, end: Any, colour: str, wide: float, label: str) -> None:
    axes.hlines(range(len(start)), start, end, colors=colour, linewidth=wide, label=label)
