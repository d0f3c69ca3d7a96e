"""Figure of a ring with the lightpaths of one slot."""

import os
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from opticoll._core import Plan
from opticoll.plot import style
from opticoll.plot.lightpaths import Lightpaths, channel_words, lightpaths, packed
from opticoll.plot.output import PlotError, colour_key, drawn, headed, sheet
from opticoll.plot.panels import arrow_head

_RING = 1.0  # radius of the circle of ranks, the unit of all other lengths
_BAND = 0.42  # width of each of two bands of lightpaths: inside and outside the circle
_MAX_ARROWS = 160  # above this number, arrow heads would cover the arcs
_MAX_LABELS = 64


@drawn
def ring(plan: Plan, slot: int, path: str | os.PathLike[str]) -> Figure:
    """Draws the ranks on a circle, and the lightpaths of `slot` as arcs coloured by wavelength.

    Rank 0 is at the top, and rank numbers increase clockwise. Clockwise lightpaths are outside the
    circle; counter-clockwise lightpaths are inside. Each channel in use has its own radius; the
    lowest wavelength is nearest to the ranks.

    Raises PlotError if the plan has no such slot.
    """
    if not 0 <= slot < plan.slots:
        raise PlotError(f"the plan has no slot {slot}: it has slots 0 to {plan.slots - 1}")
    figure = sheet(7.6, 7.0)
    axes = figure.subplots()
    axes.set_aspect("equal")
    axes.axis("off")
    paths, lit = packed(lightpaths(plan, slot))
    reach = _RING + _BAND + 0.04
    axes.set(xlim=(-reach, reach), ylim=(-reach, reach))
    _draw_ranks(axes, paths.ranks, crowded=paths.channels > 8)
    colours = style.wavelength_colours(paths.channels)
    _draw_arcs(axes, paths, colours)
    step = int(np.searchsorted(np.cumsum(plan.step_slots), slot, side="right"))
    headed(
        figure,
        f"{style.heading(plan)}, {style.counted(plan.fabric.option('wavelengths'), 'wavelength')}: "
        f"slot {slot} (of {plan.slots}), step {step}\n"
        f"{len(paths):,} lightpaths; clockwise outside, counter-clockwise inside; "
        f"{style.conditions(plan.fabric.spec)}",
    )
    _key(figure, axes, paths, lit, plan, colours)
    return figure


def _angles(ranks: int, position: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns the angle in radians of each position on the ring, clockwise from the top."""
    angles: NDArray[np.float64] = np.pi / 2 - 2 * np.pi * position / ranks
    return angles


def _draw_ranks(axes: Axes, ranks: int, *, crowded: bool) -> None:
    """Draws the ranks as labelled dots if there is room, else as ticks at round numbers."""
    turn = np.linspace(0, 2 * np.pi, 721)
    axes.plot(_RING * np.cos(turn), _RING * np.sin(turn), color=style.FAINT, linewidth=1.0)
    if ranks <= _MAX_LABELS:
        angles = _angles(ranks, np.arange(ranks, dtype=np.float64))
        inner, outer = _RING - _BAND, _RING + _BAND
        for x, y in zip(np.cos(angles), np.sin(angles), strict=True):
            axes.plot(
                [inner * x, outer * x],
                [inner * y, outer * y],
                color=style.FAINT,
                linewidth=0.5,
                zorder=0,
            )
        size = float(np.clip(420 / ranks, 7, 15))
        axes.scatter(
            np.cos(angles),
            np.sin(angles),
            s=size**2,
            facecolor="white",
            edgecolor=style.INK,
            linewidth=0.8,
            zorder=4,
        )
        for rank, angle in enumerate(angles):
            axes.text(
                np.cos(angle),
                np.sin(angle),
                str(rank),
                ha="center",
                va="center",
                fontsize=0.55 * size if ranks > 9 else 9,
                zorder=5,
            )
        return
    stride = _round_stride(ranks)
    centre = _RING - _BAND - 0.115
    for rank in range(0, ranks, stride):
        (angle,) = _angles(ranks, np.array([float(rank)]))
        x, y = np.cos(angle), np.sin(angle)
        axes.plot(
            [0.972 * x, 1.028 * x], [0.972 * y, 1.028 * y], color=style.INK, linewidth=1.0, zorder=4
        )
        axes.plot(
            [(_RING - _BAND - 0.035) * x, (_RING - _BAND) * x],
            [(_RING - _BAND - 0.035) * y, (_RING - _BAND) * y],
            color=style.GREY,
            linewidth=0.7,
        )
        axes.text(centre * x, centre * y, str(rank), ha="center", va="center", fontsize=8)
    if crowded:
        axes.text(0, 0, "rank", ha="center", va="center", fontsize=9, color=style.GREY)


def _round_stride(ranks: int) -> int:
    """Returns the smallest stride that gives at most 16 ticks: 2^k, or 1, 2 or 5 times 10^k."""
    base = 2 if ranks & (ranks - 1) == 0 else 10
    candidates: list[int] = (
        [2**power for power in range(21)]
        if base == 2
        else [factor * 10**power for power in range(7) for factor in (1, 2, 5)]
    )
    return next(stride for stride in candidates if ranks <= 16 * stride)


def _draw_arcs(axes: Axes, paths: Lightpaths, colours: Any) -> None:
    few = len(paths) <= _MAX_ARROWS
    # The first radius is outside of the discs of labelled ranks.
    clear = 0.09 if paths.ranks <= _MAX_LABELS else 0.045
    pitch = (_BAND - clear) / max(paths.channels, 2)
    side = np.where(paths.way == 0, 1.0, -1.0)
    radius = _RING + side * (clear + (paths.lane + 0.5) * pitch)
    lines = []
    for start, hops, distance in zip(paths.start, paths.hops, radius, strict=True):
        # Leave a visible gap between consecutive arcs on one channel, for any number of ranks.
        gap = min(0.25 * hops, 0.004 * paths.ranks)
        points = max(2, int(np.ceil(hops / paths.ranks * 240)) + 1)
        position = np.linspace(start + gap, start + hops - gap, points)
        angles = _angles(paths.ranks, position)
        lines.append(np.column_stack([distance * np.cos(angles), distance * np.sin(angles)]))
    colour = [
        style.GREY if converted else colours(int(lane))
        for lane, converted in zip(paths.lane, paths.converted, strict=True)
    ]
    # The band is about 100 points wide on paper. The lines of all radii and the white gaps between
    # them share this width.
    width = float(np.clip(0.62 * 175 * pitch, 0.5, 2.2))
    axes.add_collection(LineCollection(lines, colors=colour, linewidths=width, capstyle="butt"))
    if not few:
        return
    for line, way, shade in zip(lines, paths.way, colour, strict=True):
        tip, before = (line[-1], line[-2]) if way == 0 else (line[0], line[1])
        arrow_head(axes, tip, before, shade, 7 + 2 * width)
        tail = line[0] if way == 0 else line[-1]
        axes.plot(*tail, marker="o", markersize=1.2 + width, color=shade)


def _key(
    figure: Figure, axes: Axes, paths: Lightpaths, lit: NDArray[np.int64], plan: Plan, colours: Any
) -> None:
    """Adds a key to the colours of wavelengths, unless converters choose the wavelengths."""
    if paths.converted.all() and len(paths):
        handles = [Line2D([], [], color=style.GREY, linewidth=2, label="converters choose")]
        figure.legend(handles=handles, loc="outside lower center")
        return
    stride = 2 * _round_stride(paths.channels)
    look: dict[str, Any] = {"lines": True, "stride": stride, "shrink": 0.6, "pad": 0.02}
    colour_key(figure, axes, lit, colours, **channel_words(plan), **look)
