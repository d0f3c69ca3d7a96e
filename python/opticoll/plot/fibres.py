"""Figure of a graph of fibres with the lightpaths of its slots."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from opticoll._core import CONVERTED, Fabric, Plan
from opticoll.outputs.layout import plural
from opticoll.outputs.lights import counted, lights_of
from opticoll.outputs.views import MAX_SLOTS
from opticoll.plot import style
from opticoll.plot.lightpaths import channel_words, lay_out
from opticoll.plot.output import (
    MAX_NAMED,
    POINTS_PER_INCH,
    PlotError,
    colour_handles,
    colour_key,
    headed,
)
from opticoll.plot.panels import panels
from opticoll.plot.vertices import Places, disc_points, draw_vertices, drawing_of, key

_MAX_LIGHTPATHS = 6000
_MAX_ARROWS = 600  # above this number, arrow heads would cover the lines
_STUB = 0.42  # length of a stub of a link around the edge of a grid
_BAND_POINTS = 15  # width of the lines of a direction, and of the gaps between them


@dataclass(frozen=True)
class Lit:
    """Lightpaths of a slot, with one entry per lightpath.

    `lane` is the number of the channel, as in `Lightpaths`. `of` is the lightpath of each transfer
    of the slot. A light tree has an entry for each of its destinations; `is_tree` says so, and
    `lights` counts lightpaths and trees.
    """

    sources: list[int]
    routes: list[list[int]]
    lane: NDArray[np.int64]
    converted: NDArray[np.bool_]
    of: list[int]
    is_tree: list[bool]
    lights: int

    def __len__(self) -> int:
        return len(self.routes)


def lit(plan: Plan, slot: int) -> Lit:
    """Returns the lightpaths of a slot: transfers with the same route and light share one.

    Where converters choose the wavelength, every transfer outside of light trees has a lightpath of
    its own.
    """
    columns = plan.slot_columns(slot)
    lights = lights_of(plan, slot)
    names = ("transfer", "source", "fibre", "wavelength")
    wavelengths = plan.fabric.option("wavelengths")
    paths: dict[tuple[int, tuple[int, ...]], tuple[int, bool]] = {}
    # A light has one lane on all of its links, those of all routes if it is a tree.
    lane, converted = np.zeros(len(lights), np.int64), np.zeros(len(lights), np.bool_)
    links: list[list[int]] = [[] for _ in range(len(lights))]
    keys = []
    for light, transfer, source, fibre, wavelength in zip(
        lights.of, *(columns[name].tolist() for name in names), strict=True
    ):
        route = plan.route(transfer)
        keys.append((light, tuple(route)))
        paths.setdefault(keys[-1], (source, light in lights.trees))
        converted[light] = wavelength == CONVERTED
        lane[light] = fibre * wavelengths + (0 if converted[light] else wavelength)
        links[light] += route
    if converted.any():
        lay_out(links, lane, converted)
    of_path = [light for light, _ in paths]
    number = {key: place for place, key in enumerate(paths)}
    return Lit(
        sources=[source for source, _ in paths.values()],
        routes=[list(route) for _, route in paths],
        lane=lane[of_path],
        converted=converted[of_path],
        of=[number[key] for key in keys],
        is_tree=[is_tree for _, is_tree in paths.values()],
        lights=len(lights),
    )


def lightpaths_figure(plan: Plan, slot: int | None) -> Figure:
    """Draws the graph of fibres with the lightpaths of a slot, or with a panel for each slot.

    A lightpath is a line along the links of its route, to the right of its direction. Its colour
    and its distance from the cable stand for its channel. A link around the edge of a grid is drawn
    as two stubs, so a lightpath over such a link has several lines.

    Raises PlotError for a slot that the plan does not have, for too many slots or lightpaths, and
    for a plan without slots.
    """
    slots = _slots(plan, slot)
    drawing = drawing_of(plan.fabric)
    at = drawing["places"]
    shown = [lit(plan, one) for one in slots]
    if (most := max(map(len, shown))) > _MAX_LIGHTPATHS:
        raise PlotError(
            f"{most} lightpaths are too many for one picture (at most {_MAX_LIGHTPATHS})"
        )
    lanes = np.unique(np.concatenate([one.lane for one in shown]))
    shown = [replace(one, lane=np.searchsorted(lanes, one.lane)) for one in shown]
    extent = at.max(axis=0) - at.min(axis=0)
    # Stubs, or labels and the outermost lines, need room around the vertices.
    margin = 0.5 if len(drawing["around"]) else min(0.5, 0.07 * float(extent.max()) or 0.5)
    span = extent + 2 * margin
    columns = _columns(len(slots), float(span[0] / span[1]))
    wide = float(np.clip(9.0 * (span[0] / span[1]) ** 0.5, 6.5, 12.0)) / columns**0.5
    tall = float(np.clip(wide * span[1] / span[0], 1.0, 9.0))
    figure, grid = panels(len(slots), columns, (wide, tall + 0.3), (0.4, 1.5))
    unit = POINTS_PER_INCH * min(wide / span[0], tall / span[1])  # points per unit of positions
    colours = style.wavelength_colours(max(len(lanes), 1))
    beside = Lanes.of(plan.fabric, len(lanes), disc_points(len(at)) + 0.8, unit)
    for axes, one, number in zip(grid, shown, slots, strict=True):
        axes.set_aspect("equal")
        axes.axis("off")
        _draw_lightpaths(axes, one, beside, colours, unit)
        draw_vertices(axes, plan.fabric, at, lines=beside.width * unit)
        low, high = at.min(axis=0) - margin, at.max(axis=0) + margin
        axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
        if len(slots) > 1:
            step = int(np.searchsorted(np.cumsum(plan.step_slots), number, side="right"))
            axes.set_title(f"slot {number}, step {step}: {_counted([one])}")
    _heading(figure, plan, slots, shown, lanes)
    _key(figure, grid, plan, shown, lanes, colours)
    return figure


def _slots(plan: Plan, slot: int | None) -> list[int]:
    """Returns the slots to draw; raises PlotError if there are none or too many."""
    if plan.slots == 0:
        raise PlotError("the plan has no slots: there is nothing to draw")
    if slot is not None:
        return [slot]
    if plan.slots > MAX_SLOTS:
        raise PlotError(
            f"{plan.slots} slots are too many for one picture (at most {MAX_SLOTS}): choose a slot"
        )
    return list(range(plan.slots))


def _columns(count: int, shape: float) -> int:
    """Returns the number of panels in a row that brings the figure closest to 3:2.

    `shape` is the width of a panel divided by its height.
    """

    def distance(columns: int) -> float:
        return abs(float(np.log(shape * columns / -(-count // columns) * 2 / 3)))

    return min(range(1, count + 1), key=distance)


def _pieces(
    stretches: Iterable[tuple[NDArray[np.float64], NDArray[np.float64], bool, float]],
) -> list[tuple[NDArray[np.float64], list[float]]]:
    """Joins links to lines; a line ends where a link leaves the picture, and the next one starts.

    A stretch is a start, an end, whether the link leads around the edge, and the offset of its
    lane. The result are the points of each line, with the offset between each two of them.
    """
    lines: list[tuple[list[NDArray[np.float64]], list[float]]] = [([], [])]
    for start, end, is_around, offset in stretches:
        if not lines[-1][0]:
            lines[-1][0].append(start)
        if is_around:
            away = _STUB * (start - end) / max(float(np.hypot(*(start - end))), 1e-9)
            lines[-1][0].append(start + away)
            lines[-1][1].append(offset)
            lines.append(([end - away], []))
        lines[-1][0].append(end)
        lines[-1][1].append(offset)
    return [(np.array(points), offsets) for points, offsets in lines]


@dataclass(frozen=True)
class Lanes:
    """Lanes beside the cables of a graph of fibres; all lengths are in units of the positions.

    `radius` is the distance from a vertex at which lines end, and `pitch` is the distance between
    two lanes.
    """

    places: Places
    around: set[int]
    ends: list[tuple[int, int]]
    channels: int
    radius: float
    pitch: float

    @classmethod
    def of(cls, machine: Fabric, channels: int, radius: float, unit: float) -> "Lanes":
        """Returns the lanes for `channels` channels; `radius` and a length of `unit` are points."""
        drawing = machine.drawing
        return cls(
            places=drawing["places"],
            around=set(drawing["around"].tolist()),
            ends=machine.link_ends or [],
            channels=channels,
            radius=radius / unit,
            pitch=float(np.clip(_BAND_POINTS / max(channels, 1), 0.4, 2.8)) / unit,
        )

    @property
    def width(self) -> float:
        """Width of all lanes of one direction of a cable."""
        return (self.channels + 1) * self.pitch

    @cached_property
    def beside(self) -> list[int]:
        """Returns for each link how many earlier links lead from its source to its end."""
        seen: Counter[tuple[int, int]] = Counter()
        before = []
        for pair in self.ends:
            before.append(seen[pair])
            seen[pair] += 1
        return before

    def cables(self) -> list[NDArray[np.float64]]:
        """Returns the lines of the cables; the two directions of a cable are one line."""
        cables = {tuple(sorted(pair)): link for link, pair in enumerate(self.ends)}
        return [
            piece
            for link in cables.values()
            for piece, _ in _pieces([(*self.places[list(self.ends[link])], link in self.around, 0)])
        ]

    def lines(self, source: int, route: Sequence[int], lane: int) -> list[NDArray[np.float64]]:
        """Returns the lines of a lightpath from the rank `source` on a lane.

        There is one line, and another for each link around the edge of a grid.
        """
        stretches, vertex = [], source
        for link in route:
            first, last = self.ends[link]
            beyond = last if vertex == first else first
            offset = (lane + 1.0 + self.channels * self.beside[link]) * self.pitch
            ends = (self.places[vertex], self.places[beyond])
            stretches.append((*ends, link in self.around, offset))
            vertex = beyond
        shifted = [_shifted(points, offsets) for points, offsets in _pieces(stretches)]
        first_offset, last_offset = stretches[0][-1], stretches[-1][-1]
        shifted[0] = _begun(shifted[0], self.places[source], self.radius, first_offset)
        back = shifted[-1][::-1]
        shifted[-1] = _begun(back, self.places[vertex], self.radius, -last_offset)[::-1]
        return shifted


def _draw_lightpaths(axes: Axes, paths: Lit, lanes: Lanes, colours: Any, unit: float) -> None:
    """Draws the lines of lightpaths, with a dot at the source and an arrow at the destination."""
    axes.add_collection(
        LineCollection(lanes.cables(), colors=style.FAINT, linewidths=1.0, zorder=1)
    )
    lines, shades, heads, dots, tips = [], [], [], [], []
    size = 1.4 * max(lanes.pitch, 1 / unit)
    for source, route, lane, converted in zip(
        paths.sources, paths.routes, paths.lane.tolist(), paths.converted.tolist(), strict=True
    ):
        shade = style.GREY if converted else colours(lane)
        pieces = lanes.lines(source, route, lane)
        lines += pieces
        shades += [shade] * len(pieces)
        # Where a line enters its lane, its dot does not cover the dots of its neighbours.
        dots.append(pieces[0][min(1, len(pieces[0]) - 2)])
        tips.append(shade)
        heads.append(_head(pieces[-1], size))
    width = 0.62 * lanes.pitch * unit
    axes.add_collection(
        LineCollection(lines, colors=shades, linewidths=width, capstyle="butt", zorder=2)
    )
    if len(paths) <= _MAX_ARROWS:
        axes.add_collection(PolyCollection(heads, facecolors=tips, linewidths=0, zorder=2.5))
        x, y = np.array(dots).reshape(-1, 2).T
        for is_tree, marker, scale in ((False, "o", 1.0), (True, "D", 1.5)):
            of = [place for place, tree in enumerate(paths.is_tree) if tree == is_tree]
            axes.scatter(
                x[of], y[of], s=(scale * size * unit) ** 2, c=[tips[place] for place in of],
                marker=marker, linewidths=0, zorder=2.5,
            )  # fmt: skip


def _shifted(points: NDArray[np.float64], offsets: Sequence[float]) -> NDArray[np.float64]:
    """Returns a line to the right of another line, at a distance for each stretch."""
    along = np.diff(points, axis=0)
    length = np.maximum(np.hypot(*along.T), 1e-9)
    along = along / length[:, None]
    right = np.column_stack([along[:, 1], -along[:, 0]])
    shifted = [points[0] + offsets[0] * right[0]]
    for index in range(1, len(points) - 1):
        (before, after), (offset, following) = right[index - 1 :][:2], offsets[index - 1 :][:2]
        # The corner lies where the two shifted stretches meet, unless the turn is too sharp.
        corner = offset * (before + after) / max(1 + float(before @ after), 1e-9)
        back = abs(float(corner @ along[index]))
        longest = min(0.45 * float(length[index - 1 : index + 1].min()), 1.5 * offset)
        if offset == following and back <= longest:
            shifted.append(points[index] + corner)
        else:
            shifted += [points[index] + offset * before, points[index] + following * after]
    return np.array([*shifted, points[-1] + offsets[-1] * right[-1]])


def _begun(
    points: NDArray[np.float64], vertex: NDArray[np.float64], radius: float, offset: float
) -> NDArray[np.float64]:
    """Returns a line that starts at the rim of the disc of `vertex`, then turns into its lane.

    `points` is the line in its lane. The lane passes the vertex at the distance `offset`, positive
    if the lane is to the right of the vertex.
    """
    along = points[1] - points[0]
    length = max(float(np.hypot(*along)), 1e-9)
    along = along / length
    right = np.array([along[1], -along[0]])
    # Inner lanes lead straight to the disc; outer lanes bend towards it.
    share = float(np.tanh(offset / radius))
    rim = vertex + radius * (float(np.sqrt(1 - share**2)) * along + share * right)
    lane = points[0] + min(radius + 1.2 * abs(offset), 0.4 * length) * along
    return np.array([rim, lane, *points[1:]])


def _head(line: NDArray[np.float64], size: float) -> NDArray[np.float64]:
    """Returns the triangle of an arrow head at the end of a line."""
    along = line[-1] - line[-2]
    along = along / max(float(np.hypot(*along)), 1e-9)
    side = 0.5 * size * np.array([along[1], -along[0]])
    base = line[-1] - 1.6 * size * along
    return np.array([line[-1], base + side, base - side])


def _heading(
    figure: Figure, plan: Plan, slots: list[int], shown: list[Lit], lanes: NDArray[np.int64]
) -> None:
    wavelengths = plan.fabric.option("wavelengths")
    facts = f" on {len(set((lanes % wavelengths).tolist()))} of {wavelengths} wavelengths"
    if any(one.converted.any() for one in shown):
        facts = ""
    if len(slots) == 1:
        step = int(np.searchsorted(np.cumsum(plan.step_slots), slots[0], side="right"))
        where = f"slot {slots[0]} (of {plan.slots}), step {step}"
    else:
        where = plural(len(slots), "slot")
    title = f"{style.heading(plan)}, {style.named_fabric(plan.fabric.spec)}"
    headed(figure, f"{title}\n{where}: {_counted(shown)}{facts}", fontsize=10.5)


def _counted(shown: list[Lit]) -> str:
    """Returns the number of light trees and lightpaths as text."""
    lights = sum(one.lights for one in shown)
    return counted(lights, lights - sum(one.is_tree.count(False) for one in shown))


def _key(
    figure: Figure,
    grid: list[Axes],
    plan: Plan,
    shown: list[Lit],
    lanes: NDArray[np.int64],
    colours: Any,
) -> None:
    """Adds keys to vertices and to the colours of wavelengths, unless converters choose these."""
    words = channel_words(plan)
    handles: list[Any] = []
    if all(one.converted.all() for one in shown):
        handles = [Line2D([], [], color=style.GREY, linewidth=2, label="converters choose")]
    elif len(lanes) <= MAX_NAMED:
        handles = colour_handles(lanes, colours, words["name"], lines=True)
    else:
        colour_key(figure, grid, lanes, colours, **words, shrink=0.6, pad=0.02)
    if any(any(one.is_tree) for one in shown):
        look: dict[str, Any] = {"linestyle": "none", "marker": "D", "color": style.INK}
        handles.append(Line2D([], [], **look, label="source of a light tree"))
    vertices = len(plan.fabric.drawing["places"])
    key(figure, plan.fabric, vertices, is_idle=False, lit=handles)
