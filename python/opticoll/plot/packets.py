"""Figures of simulated packets and bursts: latencies, losses, buffers, loads of links.

The load map shows groups as blocks on a circle, and the cable between two groups as an arc. The
colour of an arc is the load of the cable's more loaded direction. The colour of a block is the
load of the group's most loaded local link.
"""

import math
import os
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch, Wedge
from matplotlib.path import Path

from opticoll._core import Fabric, Outcome
from opticoll.plot import style
from opticoll.plot.output import PlotError, drawn, headed, sheet

CLASS_COLOURS = {"injection": 0, "local": 2, "global": 1, "ejection": 4}
"""Colour of each class of links, as an index of `style.COLOURS`."""
LEGEND_BESIDE: Any = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0), "fontsize": 8}
"""Position of a legend beside the axes, so that it hides no line."""

PERCENTILES = {"50": "p50_ps", "99": "p99_ps", "99.9": "p99_9_ps"}


@drawn
def packets(
    measured: Outcome, fabric: Fabric | None, path: str | os.PathLike[str], title: str = ""
) -> Figure:
    """Draws message latencies, buffers and stalls over time, and the loads of a dragonfly's links.

    The map of loads requires `fabric`. Raises PlotError if no message was delivered.
    """
    if len(measured.message_latency) == 0:
        raise PlotError("there is nothing to draw: no message was delivered")
    mapped = fabric
    if fabric is None or "routers_per_group" not in fabric.options or fabric.link_ends is None:
        mapped = None
    lines = 1 if measured.timeline_bin_ps is None else 3
    width, height = (12.5 if mapped else 8.0), 1.2 + 2.6 * max(lines, 2 if mapped else 1)
    figure = sheet(width, height)
    right: Any = figure
    if mapped:
        left, right = figure.subfigures(1, 2, width_ratios=(1, 1.05), squeeze=False).flat
        _load_map(left, measured, mapped)
    panels = right.subplots(lines, 1, squeeze=False)
    _histogram(panels[0, 0], measured)
    if measured.timeline_bin_ps is not None:
        _over_time(panels[1, 0], panels[2, 0], measured)
    headed(figure, title)
    return figure


@drawn
def latencies(
    measured: Mapping[str, Outcome], path: str | os.PathLike[str], title: str = ""
) -> Figure:
    """Draws, for each named outcome, the share of messages that take longer than a given time.

    Raises PlotError without outcomes, or if an outcome has no messages.
    """
    if not measured or any(len(outcome.message_latency) == 0 for outcome in measured.values()):
        raise PlotError("there is nothing to draw: a case delivered no message")
    factor, unit = style.unit_ps(max(_messages(outcome)["max_ps"] for outcome in measured.values()))
    figure = sheet(7.5, 4.6)
    axes = figure.subplots()
    for number, (name, case) in enumerate(measured.items()):
        whole, bins = _messages(case), case.message_latency.rows()
        times, shares = [bins[0]["first_ps"] / factor], [100.0]
        above = whole["count"]
        for row in bins:
            above -= row["count"]
            if above > 0:
                times.append(min(row["last_ps"], whole["max_ps"]) / factor)
                shares.append(100 * above / whole["count"])
        look = style.series(number) | {"marker": "", "linewidth": 1.6}
        axes.plot(times, shares, label=name, drawstyle="steps-post", **look)
    axes.set_xlabel(f"Latency of a message ({unit})")
    axes.set_ylabel("Messages that take longer (%)")
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    style.logarithmic(axes)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=min(len(measured), 3))
    headed(figure, title)
    return figure


@drawn
def one_loss(outcome: Outcome, path: str | os.PathLike[str], title: str = "") -> Figure:
    """Draws the burst loss ratio of each round over time, and the utilisation of each link."""
    moments, links, names = outcome.moments, outcome.links, outcome.links["link"]
    figure = sheet(10.5, max(3.6, 1.4 + 0.19 * len(names)))
    left, right = figure.subplots(1, 2)
    times = moments["end_ps"] / 1e12
    look = style.series(0) | {"markersize": 3.0}
    left.plot(times, moments["lost"] / moments["offered"], **look)
    left.axhline(outcome.loss, color=style.GREY, linewidth=1, linestyle="--")
    highest = float((moments["lost"] / moments["offered"]).max())
    left.set_ylim(0, 1.2 * highest or 1)
    left.set_xlim(left=0)
    left.set_title(f"Burst loss ratio of each round; dashed: all rounds, {outcome.loss:.3g}")
    left.set_xlabel("Simulated time of a replication (s)")
    left.set_ylabel("Burst loss ratio")
    occupied, wasted = 100 * links["utilisation"], 100 * links["wasted"]
    places = range(len(names))
    right.barh(places, occupied - wasted, color=style.COLOURS[0], label="used")
    right.barh(
        places,
        wasted,
        left=occupied - wasted,
        color=style.COLOURS[1],
        label="held by bursts that are lost",
    )
    right.set_yticks(list(places), names, fontsize=7)
    right.invert_yaxis()
    right.set_xlim(0, 100)
    right.set_title("Wavelengths in use on each link")
    right.set_xlabel("Share of the time (%)")
    right.legend(loc="lower right")
    headed(figure, title)
    return figure


def _messages(measured: Outcome) -> dict[str, Any]:
    """Returns a summary of the messages' latencies."""
    return next(row for row in measured.latencies if row["of"] == "message")


def _histogram(axes: Axes, measured: Outcome) -> None:
    """Draws a histogram whose bins are equally wide on a logarithmic axis."""
    latency, bins = _messages(measured), measured.message_latency.rows()
    factor, unit = style.unit_ps(latency["max_ps"])
    low, high = max(bins[0]["first_ps"], 1), latency["max_ps"] + 1
    count = 60
    edges = [low * (high / low) ** (place / count) for place in range(count + 1)]
    heights = [0.0] * count
    for row in bins:
        first = max(row["first_ps"], low)
        ratio = math.log(first / low) / math.log(high / low) if high > low else 0
        heights[min(int(ratio * count), count - 1)] += 100 * row["count"] / latency["count"]
    scaled = [edge / factor for edge in edges]
    widths = [right - left for left, right in pairwise(scaled)]
    axes.bar(scaled[:-1], heights, widths, align="edge", color=style.COLOURS[0], linewidth=0)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.xaxis.set_minor_formatter(lambda value, _: f"{value:g}" if f"{value:e}"[0] in "25" else "")
    axes.tick_params("x", which="minor", labelsize=8)
    axes.set_xlabel(f"Latency of a message ({unit})")
    axes.set_ylabel("Messages (%)")
    axes.set_title("Latency of messages")
    marks = {
        "mean": latency["mean_ps"],
        **{f"{percent} %": latency[name] for percent, name in PERCENTILES.items()},
        "max": latency["max_ps"],
    }
    for number, (name, time) in enumerate(marks.items()):
        colour, line = style.COLOURS[(number + 1) % 6], style.LINES[number % 4]
        label = f"{name}: {time / factor:.4g} {unit}"
        place = time / factor
        axes.axvline(place, linewidth=1.2, label=label, color=colour, linestyle=line)
    axes.legend(**LEGEND_BESIDE)


def _over_time(occupied: Axes, stalled: Axes, measured: Outcome) -> None:
    time_ps, bin_ps = measured.time_ps, measured.timeline_bin_ps
    factor, unit = style.unit_ps(time_ps)
    names = ("injection", "ejection", "local", "global")
    in_buffers = dict(zip(names, measured.timeline["mean_bytes"], strict=True))
    standing = dict(zip(names, measured.timeline["stalled_ps"], strict=True))
    most = int(measured.timeline["mean_bytes"].max(initial=0))
    size, size_unit = next(
        (size_step for size_step in ((2**20, "MiB"), (2**10, "KiB")) if most >= size_step[0]),
        (1, "B"),
    )
    bins = -(-time_ps // bin_ps)
    merged = max(1, bins // 300)
    # A torus has no groups, so it has no links between groups.
    used = [name for name in CLASS_COLOURS if any(in_buffers[name])]
    for name in used:
        colour = style.COLOURS[CLASS_COLOURS[name]]
        times, means = _merged(in_buffers[name], merged, bins)
        shown = [time * bin_ps / factor for time in times]
        occupied.plot(
            shown, [mean / size for mean in means], color=colour, label=name, linewidth=1.2
        )
        times, means = _merged(standing[name], merged, bins)
        channels = [mean / bin_ps for mean in means]
        stalled.plot(shown, channels, color=colour, label=name, linewidth=1.2)
    occupied.set_title("Bytes in buffers, by class of link")
    occupied.set_ylabel(f"Buffers ({size_unit})")
    occupied.legend(**LEGEND_BESIDE)
    stalled.set_title("Channels that wait for credits")
    stalled.set_ylabel("Stalled channels")
    for axes in (occupied, stalled):
        axes.set_xlim(0, time_ps / factor)
        axes.set_ylim(bottom=0)
        axes.set_xlabel(f"Time ({unit})")


def _merged(column: Any, together: int, bins: int) -> tuple[list[float], list[float]]:
    """Returns the middle and the mean value of each group of `together` consecutive bins."""
    values = [int(value) for value in column[:bins]]
    values += [0] * (bins - len(values))
    groups = [values[first : first + together] for first in range(0, bins, together)]
    middles = [place * together + len(group) / 2 for place, group in enumerate(groups)]
    return middles, [sum(group) / len(group) for group in groups]


def _load_map(figure: Any, measured: Outcome, fabric: Fabric) -> None:
    """Draws groups as blocks on a circle and their cables as arcs, coloured by utilisation."""
    groups = fabric.option("groups")
    between, within = _loads(measured, fabric)
    most = max([*between.values(), *within, 1e-9])
    colours, scale = style.load_colours(), Normalize(0, 100)
    axes = figure.subplots()
    axes.set_aspect("equal")
    axes.set_axis_off()
    for (group, peer), load in sorted(between.items(), key=lambda item: item[1]):
        colour = colours(scale(100 * load)) if load > 0 else style.FAINT
        _arc(axes, group, peer, groups, colour, load / most)
    gap = min(0.2 * 360 / groups, 6)
    for group, load in enumerate(within):
        middle = 90 - 360 * group / groups
        half = (360 / groups - gap) / 2
        face = colours(scale(100 * load)) if load > 0 else style.FAINT
        block = Wedge((0, 0), 1.12, middle - half, middle + half, width=0.1, facecolor=face)
        block.set(edgecolor=style.INK, linewidth=0.4)
        axes.add_patch(block)
        if group % max(1, groups // 24) == 0:
            angle = math.radians(middle)
            place = (1.2 * math.cos(angle), 1.2 * math.sin(angle))
            axes.text(*place, str(group), ha="center", va="center", fontsize=8)
    axes.set_xlim(-1.3, 1.3)
    axes.set_ylim(-1.3, 1.3)
    axes.set_title(
        "Use of links: arcs are cables between groups (the busier direction),\n"
        "blocks are groups, by their busiest local link"
    )
    bar = figure.colorbar(ScalarMappable(scale, colours), ax=axes, shrink=0.7, location="bottom")
    bar.set_label("Use of the link over the whole time (%)")


def _loads(measured: Outcome, fabric: Fabric) -> tuple[dict[tuple[int, int], float], list[float]]:
    """Returns the highest utilisation of links between each pair of groups, and in each group."""
    assert fabric.link_ends is not None
    groups, routers = fabric.option("groups"), fabric.option("routers_per_group")
    ranks, whole = fabric.ranks, max(measured.time_ps, 1)
    between: dict[tuple[int, int], float] = {}
    within = [0.0] * groups
    columns = measured.links
    for (start, end), kind, busy in zip(
        fabric.link_ends, columns["class"], columns["busy_ps"], strict=True
    ):
        load = int(busy) / whole
        if kind in ("injection", "ejection"):
            continue
        first, last = (start - ranks) // routers, (end - ranks) // routers
        if kind == "local":
            within[first] = max(within[first], load)
        else:
            pair = (min(first, last), max(first, last))
            between[pair] = max(between.get(pair, 0.0), load)
    return between, within


def _arc(axes: Axes, group: int, peer: int, groups: int, colour: Any, share: float) -> None:
    """Draws a curve between two blocks, bent towards the centre."""
    ends = []
    for place in (group, peer):
        angle = math.radians(90 - 360 * place / groups)
        ends.append((math.cos(angle), math.sin(angle)))
    (x, y), (u, v) = ends
    middle = (0.2 * (x + u) / 2, 0.2 * (y + v) / 2)
    way = Path([(x, y), middle, (u, v)], [Path.MOVETO, Path.CURVE3, Path.CURVE3])
    # If cables join all pairs of groups, thin arcs keep loaded cables visible.
    thickness = (0.3 + 1.9 * share) * min(1.0, 20 / groups)
    patch = PathPatch(way, facecolor="none", edgecolor=colour, linewidth=max(thickness, 0.25))
    axes.add_patch(patch)
