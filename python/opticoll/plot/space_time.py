"""A whole plan in space and time: where on the ring which wavelength is lit, slot by slot."""

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll._core import Plan
from opticoll.plot import style
from opticoll.plot.lightpaths import (
    WAY_NAMES,
    Lightpaths,
    channel_words,
    lightpaths,
    occupancy,
    packed,
)
from opticoll.plot.output import PlotError, colour_key, drawn, headed, sheet

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Beyond these, single lightpaths are thinner than a line on paper: draw the occupancy instead.
_MOST_LANES = 260
_MOST_LIGHTPATHS = 6000
_MOST_BOUNDARIES = 24


@drawn
def space_time(plan: Plan, path: str | os.PathLike[str]) -> "Figure":
    """Draw every lightpath as a bar: position on the ring across, slots downwards.

    The left panel holds clockwise lightpaths, the right one counter-clockwise ones; within a slot
    each channel that the plan lights has its own line, coloured by wavelength; boundaries of steps
    are marked. A plan with too many lightpaths for that is drawn as an image of the fraction of a
    link's channels that is lit in each slot.

    Raises PlotError for a plan without slots.
    """
    if plan.slots == 0:
        raise PlotError("the plan has no slots: there is nothing to draw")
    paths = lightpaths(plan)
    lanes = packed(paths)[0].channels * plan.slots
    fits = lanes <= _MOST_LANES and len(paths) <= _MOST_LIGHTPATHS and not paths.converted.any()
    return _figure(plan, paths, as_bars=fits)


def _figure(plan: Plan, paths: Lightpaths, *, as_bars: bool) -> "Figure":
    lanes = packed(paths)[0].channels * plan.slots
    height = float(np.clip(0.11 * lanes, 3.2, 8.0)) if as_bars else 5.6
    figure = sheet(10.0, height + 1.2)
    grid = figure.subplots(1, 2, sharex=True, sharey=True)
    if as_bars:
        _bars(figure, grid, plan, paths)
    else:
        _image(figure, grid, plan, paths)
    for way, axes in enumerate(grid):
        axes.set_title(WAY_NAMES[way])
        axes.set_xlabel("Position on the ring (rank)")
        axes.set_xlim(0, paths.ranks)
        axes.set_ylim(plan.slots, 0)
        axes.set_axisbelow(False)
        axes.grid(visible=False)
        _mark_steps(axes, plan, numbered=way == 1)
    grid[0].set_ylabel("Time (slot)")
    _label_slots(grid[0], plan.slots)
    steps = len(plan.step_slots)
    headed(
        figure,
        f"{style.heading(plan)}, {style.counted(plan.fabric.option('wavelengths'), 'wavelength')}: "
        f"{plan.slots} slots in {steps} "
        f"step{'s' if steps != 1 else ''}, {len(paths):,} lightpaths\n"
        f"{style.conditions(plan.fabric.spec)}",
    )
    return figure


def _bars(figure: "Figure", grid: Any, plan: Plan, given: Lightpaths) -> None:
    from matplotlib.collections import PolyCollection

    paths, lit = packed(given)
    colours = style.wavelength_colours(paths.channels)
    pitch = 1.0 / paths.channels
    # Bars that follow one another on a channel stay apart, as do those of neighbouring channels.
    inset = min(0.12, 0.004 * paths.ranks)
    for way, axes in enumerate(grid):
        own = np.flatnonzero(paths.way == way)
        corners, shades = [], []
        for index in own:
            top = paths.slot[index] + (paths.lane[index] + 0.12) * pitch
            bottom = top + 0.76 * pitch
            left, right = int(paths.start[index]), int(paths.start[index] + paths.hops[index])
            for near, far in _unwrapped(left, right, paths.ranks):
                # The inset marks an end of the lightpath, so there is none where it goes on
                # around the ring.
                x0 = near + (inset if near == left else 0)
                x1 = far - (inset if far in (right, right - paths.ranks) else 0)
                corners.append([(x0, top), (x1, top), (x1, bottom), (x0, bottom)])
                shades.append(colours(int(paths.lane[index])))
        axes.add_collection(PolyCollection(corners, facecolors=shades, linewidths=0))
        for slot in range(1, plan.slots):
            axes.axhline(slot, color=style.FAINT, linewidth=0.5, zorder=0.5)
    colour_key(figure, grid, lit, colours, **channel_words(plan), pad=0.03)


def _unwrapped(left: int, right: int, ranks: int) -> list[tuple[int, int]]:
    """The parts of a lightpath on a ring that is cut open at rank 0."""
    if right <= ranks:
        return [(left, right)]
    return [(left, ranks), (0, right - ranks)]


def _image(figure: "Figure", grid: Any, plan: Plan, paths: Lightpaths) -> None:
    from matplotlib.colors import LinearSegmentedColormap

    # White for dark fibre, then light to dark: an unlit link differs from any lit one.
    shades = LinearSegmentedColormap.from_list(
        "lit", ["#FFFFFF", "#CFE3F2", "#7DB5DC", "#2A7AB8", "#0B3C68"]
    )
    fraction = occupancy(paths, plan.slots)
    for way, axes in enumerate(grid):
        image = axes.imshow(
            fraction[way],
            cmap=shades,
            vmin=0,
            vmax=max(1.0, float(fraction.max())),
            aspect="auto",
            interpolation="nearest",
            extent=(0, paths.ranks, plan.slots, 0),
        )
    bar = figure.colorbar(image, ax=grid, pad=0.03, shrink=0.85)
    bar.set_label(f"Share of the {paths.channels} channels of a link that is lit")


def _mark_steps(axes: "Axes", plan: Plan, *, numbered: bool) -> None:
    """A line where a step ends and, if `numbered`, its number in the margin; not for many steps."""
    steps = plan.step_slots
    if len(steps) > _MOST_BOUNDARIES:
        return
    ends = np.cumsum(steps)
    for step, (end, slots) in enumerate(zip(ends, steps, strict=True)):
        if step < len(steps) - 1:
            axes.axhline(end, color=style.INK, linewidth=0.9, zorder=3)
        if numbered and slots / plan.slots > 0.02:
            axes.annotate(
                f"step {step}" if slots / plan.slots > 0.03 or len(steps) < 12 else str(step),
                (1.0, end - slots / 2),
                xycoords=("axes fraction", "data"),
                xytext=(4, 0),
                textcoords="offset points",
                va="center",
                fontsize=8,
                color=style.GREY,
            )


def _label_slots(axes: "Axes", slots: int) -> None:
    """Number the slots in their middle where they are few, else leave it to the axis."""
    if slots <= 32:
        axes.set_yticks([slot + 0.5 for slot in range(slots)], [str(slot) for slot in range(slots)])
        axes.tick_params("y", length=0)
