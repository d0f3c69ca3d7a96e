"""Figures of a whole plan in space and time: lightpaths by slot, or messages by time."""

import os
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from opticoll._core import Plan
from opticoll.formats.network_graph import rank_names
from opticoll.outputs.lights import joins_servers
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
from opticoll.plot.panels import arrow_head

# Beyond these numbers lightpaths would be too thin, so the figure shows the occupancy of links.
_MAX_LANES = 260
_MAX_LIGHTPATHS = 6000
_MAX_BOUNDARIES = 24

MAX_MESSAGES = 6000
_MAX_ARROWS = 200


@drawn
def space_time(plan: Plan, path: str | os.PathLike[str]) -> Figure:
    """Draws every lightpath as a bar: positions on the ring to the right, slots downwards.

    The left panel shows clockwise lightpaths. The right panel shows counter-clockwise lightpaths.
    In a slot, each channel in use has its own bars, coloured by wavelength. Lines mark the ends of
    steps. If there are too many lightpaths to draw, an image shows which share of its channels each
    link uses in each slot.

    Raises PlotError for a plan without slots.
    """
    if plan.slots == 0:
        raise PlotError("the plan has no slots: there is nothing to draw")
    paths = lightpaths(plan)
    lanes = packed(paths)[0].channels * plan.slots
    fits = lanes <= _MAX_LANES and len(paths) <= _MAX_LIGHTPATHS
    as_bars = fits and not paths.converted.any()
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
    headed(
        figure,
        f"{style.heading(plan)}, {style.counted(plan.fabric.option('wavelengths'), 'wavelength')}: "
        f"{plan.slots} slots in {style.counted(len(plan.step_slots), 'step')}, "
        f"{len(paths):,} lightpaths\n"
        f"{style.conditions(plan.fabric.spec)}",
    )
    return figure


def _bars(figure: Figure, grid: Any, plan: Plan, all_paths: Lightpaths) -> None:
    paths, lit = packed(all_paths)
    colours = style.wavelength_colours(paths.channels)
    pitch = 1.0 / paths.channels
    # Gaps separate consecutive bars on a channel, and bars of neighbouring channels.
    inset = min(0.12, 0.004 * paths.ranks)
    for way, axes in enumerate(grid):
        indices = np.flatnonzero(paths.way == way)
        corners, shades = [], []
        for index in indices:
            top = paths.slot[index] + (paths.lane[index] + 0.12) * pitch
            bottom = top + 0.76 * pitch
            left, right = int(paths.start[index]), int(paths.start[index] + paths.hops[index])
            for bar_start, bar_end in _unwrapped(left, right, paths.ranks):
                # A bar is shorter by the inset at an end of the lightpath, but not at the point
                # where the ring is cut open.
                x0 = bar_start + (inset if bar_start == left else 0)
                x1 = bar_end - (inset if bar_end in (right, right - paths.ranks) else 0)
                corners.append([(x0, top), (x1, top), (x1, bottom), (x0, bottom)])
                shades.append(colours(int(paths.lane[index])))
        axes.add_collection(PolyCollection(corners, facecolors=shades, linewidths=0))
        for slot in range(1, plan.slots):
            axes.axhline(slot, color=style.FAINT, linewidth=0.5, zorder=0.5)
    colour_key(figure, grid, lit, colours, **channel_words(plan), pad=0.03)


def _unwrapped(left: int, right: int, ranks: int) -> list[tuple[int, int]]:
    """Returns the position ranges of a lightpath on a ring that is cut open at rank 0."""
    if right <= ranks:
        return [(left, right)]
    return [(left, ranks), (0, right - ranks)]


def _image(figure: Figure, grid: Any, plan: Plan, paths: Lightpaths) -> None:
    # White is a link without light; all other shades differ from white.
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


def _mark_steps(axes: Axes, plan: Plan, *, numbered: bool) -> None:
    """Draws a line at the end of each step, and the index of each step if `numbered`.

    If there are too many steps, nothing is drawn. An index that has no room is left out.
    """
    steps = plan.step_slots
    if len(steps) > _MAX_BOUNDARIES:
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


def _label_slots(axes: Axes, slots: int) -> None:
    """Labels each slot in its middle if there are at most 32; else the axis chooses the ticks."""
    if slots <= 32:
        axes.set_yticks([slot + 0.5 for slot in range(slots)], [str(slot) for slot in range(slots)])
        axes.tick_params("y", length=0)


@drawn
def messages(plan: Plan, path: str | os.PathLike[str], *, size: int | None = None) -> Figure:
    """Draws every message as a line from its source and start to its destination and arrival.

    Time runs to the right and ranks run downwards; `size` is in bytes (default: the plan's size).
    On electrical fabrics, messages start by the rule `rendezvous`, and a colour stands for a step.
    On circuits, a message lasts as long as its slot under the default policy. Its colour then
    stands for the last field of its light, such as the wavelength; on servers joined by light, for
    its slot.

    Raises PlotError for lightpaths on rings, if there are no messages, and for too many messages.
    """
    of_servers = joins_servers(plan.fabric)
    if "direction" in plan.fabric.light_fields and not of_servers:
        raise PlotError("light around a ring is drawn by `space_time`, with its lightpaths")
    if len(plan) == 0:
        raise PlotError("the plan has no messages: there is nothing to draw")
    if len(plan) > 16 * MAX_MESSAGES:
        raise _too_many(len(plan))
    times = plan.message_times(size) if plan.fabric.electrical else _slot_times(plan, size)
    if len(times) > MAX_MESSAGES:
        raise _too_many(len(times))
    ranks = plan.fabric.ranks
    columns = plan.columns()
    chosen = [transfer for transfer, _, _ in times]
    fields = list(plan.fabric.light_fields)
    hue, field_name = (fields[-1], fields[-1].replace("_", " ")) if fields else ("slot", "step")
    if of_servers:
        hue, field_name = "slot", "slot"
    source, destination, shade = (
        columns[name][chosen].astype(np.int64) for name in ("source", "destination", hue)
    )
    shades = int(columns[hue].max()) + 1
    start, end = np.array([message[1:] for message in times], dtype=np.float64).T / 1e12
    factor, unit = style.time_unit(float(end.max()))
    start, end = start / factor, end / factor
    figure = sheet(10.0, float(np.clip(1.6 + 0.16 * ranks, 3.4, 8.6)))
    axes = figure.subplots()
    colours = style.wavelength_colours(shades)
    width = float(np.clip(500 / len(times), 0.35, 1.5))
    lines = np.stack(
        [np.column_stack([start, source]), np.column_stack([end, destination])], axis=1
    )
    axes.add_collection(
        LineCollection(
            list(lines), colors=[colours(int(line_shade)) for line_shade in shade], linewidths=width
        )
    )
    if len(times) <= _MAX_ARROWS:
        for (tail, tip), arrow_shade in zip(lines, shade, strict=True):
            arrow_head(axes, tip, tail, colours(int(arrow_shade)), 8)
    last = float(end.max())
    axes.set_xlim(-0.01 * last, 1.015 * last)
    axes.set_ylim(ranks - 0.5, -0.5)
    axes.set_xlabel(f"Time ({unit})")
    axes.set_ylabel("Rank")
    if ranks <= 40:
        axes.set_yticks(range(ranks), rank_names(plan.fabric))
    axes.grid(axis="x", visible=False)
    stride = -(-shades // 12)
    look: dict[str, Any] = {
        "lines": True,
        "columns": 8,
        "stride": stride,
        "pad": 0.02,
        "aspect": 30,
    }
    colour_key(
        figure,
        axes,
        range(shades),
        colours,
        field_name.capitalize(),
        name=f"{field_name} {{}}".format,
        **look,
    )
    shown = plan.size_bytes if size is None else size
    headed(
        figure,
        f"{style.heading(plan)}, {style.named_fabric(plan.fabric.spec)}"
        + ("" if shown is None else f", {style.size_text(shown)}")
        + (", start rendezvous" if plan.fabric.electrical else "")
        + f": {len(times):,} messages in {style.time_text(last * factor)}",
    )
    return figure


def _slot_times(plan: Plan, size: int | None) -> list[tuple[int, int, int]]:
    """Returns each transfer with its slot's start and end in picoseconds."""
    slots = plan.simulate(size).tables["slots"]
    start, end = slots["start_ps"].tolist(), slots["end_ps"].tolist()
    return [
        (transfer, start[slot], end[slot])
        for transfer, slot in enumerate(plan.columns()["slot"].tolist())
    ]


def _too_many(count: int) -> PlotError:
    return PlotError(
        f"{count} messages are too many for one picture (at most {MAX_MESSAGES}): draw the "
        "fabric instead, or a plan on fewer ranks"
    )
