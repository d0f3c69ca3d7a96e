"""Vertices of a network in figures: their positions, discs, names and legend."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from opticoll._core import Fabric
from opticoll.formats.network_graph import rank_names
from opticoll.outputs.views import MAX_MARKED
from opticoll.plot import style
from opticoll.plot.output import LETTER_WIDTH, POINTS_PER_INCH, PlotError

if TYPE_CHECKING:
    from opticoll._core import Drawing

Places = NDArray[np.float64]
"""Positions of vertices, one row each, ranks first: x to the right, y upwards."""

_MAX_VERTICES = 6000
_MAX_LABELS = 72
_LABEL_POINTS = 7
_GREY = "#E8E8E8"
_IDLE_GREY = "#A8A8A8"


def drawing_of(machine: Fabric) -> "Drawing":
    """Returns the positions of a fabric's vertices; raises PlotError if there are too many."""
    vertices = max(machine.ranks, *(1 + max(pair) for pair in machine.link_ends or [(0, 0)]))
    if vertices > _MAX_VERTICES:
        raise PlotError(
            f"{vertices} ranks and switches are too many for one picture (at most {_MAX_VERTICES})"
        )
    drawing = machine.drawing
    if not len(drawing["places"]):
        raise PlotError(
            f"{vertices} ranks and switches of a {machine.family} are too many to be laid out by "
            "their links"
        )
    return drawing


def idle_noun(machine: Fabric) -> str:
    """Returns the noun for the vertices that are ranks of the whole fabric only."""
    return "rank that takes no part" if machine.option("members") else "failed rank"


def disc_points(vertices: int) -> float:
    """Returns the radius in points of the disc of a rank, if there are so many vertices."""
    return 0.5 * float(np.sqrt(_disc(vertices)))


def _disc(vertices: int) -> float:
    """Returns the size of the marker of a rank, in square points."""
    return float(np.clip(4200 / vertices, 1.5, 150))


def draw_vertices(axes: Axes, machine: Fabric, at: Places, lines: float | None = None) -> None:
    """Draws ranks as discs and switches as squares, with names, and fits the axes to them.

    Ranks of the whole fabric that failed or take no part are grey discs. Names are above the
    vertices. If `lines` is the width in points of the lines beside a cable, each name stands
    between the cables of its vertex, where the angle between two is greatest.
    """
    low, high = at.min(axis=0), at.max(axis=0)
    axes.set(xlim=(low[0] - 0.5, high[0] + 0.5), ylim=(low[1] - 0.5, high[1] + 0.5))
    ranks = machine.ranks
    crowd = len(at)
    size = _disc(crowd)
    switch = ranks + machine.idle_ranks
    for first, end, marker, colour, scale in (
        (switch, crowd, "s", _GREY, 1.1), (ranks, switch, "o", _IDLE_GREY, 1.0),
        (0, ranks, "o", "white", 1.0),
    ):  # fmt: skip
        axes.scatter(
            at[first:end, 0], at[first:end, 1], s=scale * size, marker=marker, facecolor=colour,
            edgecolor=style.INK, linewidth=0.8 if crowd <= MAX_MARKED else 0.3,
            zorder=3 if first else 4,
        )  # fmt: skip
    names = rank_names(machine)
    numbered = names == [str(rank) for rank in range(ranks)]
    if ranks <= _MAX_LABELS and numbered:
        for rank, (x, y) in enumerate(at[:ranks]):
            axes.text(
                x, y, str(rank), ha="center", va="center", zorder=5,
                fontsize=float(np.clip(0.66 * size**0.5, 4.0, 8.0)),
            )  # fmt: skip
    switches = dict(enumerate(machine.vertex_names[ranks:crowd], ranks))
    if len(switches) > _MAX_LABELS:
        # If there are too many switches, name only the first and the last of each level.
        levels: dict[float, list[int]] = {}
        for switch in sorted(switches):
            levels.setdefault(float(at[switch, 1]), []).append(switch)
        ends = {place for level in levels.values() for place in (level[0], level[-1])}
        switches = {switch: switches[switch] for switch in ends} if len(levels) < 8 else {}
    labels = switches
    if ranks <= _MAX_LABELS and not numbered:
        labels |= dict(enumerate(names))
    if labels:
        for vertex, name in _apart(axes, labels, at):
            place: dict[str, Any] = {"xytext": (0, 8), "ha": "center"}
            if lines is not None:
                place = _between(machine, at, vertex, lines, 0.5 * size**0.5)
            axes.annotate(
                name, at[vertex], **place, textcoords="offset points",
                fontsize=_LABEL_POINTS, zorder=6,
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.4, "alpha": 0.8},
            )  # fmt: skip


def _between(
    machine: Fabric, at: Places, vertex: int, lines: float, radius: float
) -> dict[str, Any]:
    """Returns the place of a name in the greatest angle between two cables of a vertex.

    There the name keeps off the lines of both cables, which are `lines` points wide.
    """
    pairs = [pair for pair in machine.link_ends or [] if vertex in pair]
    others = sorted({end for pair in pairs for end in pair} - {vertex})
    towards = at[others] - at[vertex]
    angles = np.sort(np.arctan2(towards[:, 1], towards[:, 0]))
    if not len(angles):
        return {"xytext": (0, 8), "ha": "center"}
    gaps = np.diff([*angles, angles[0] + 2 * np.pi])
    widest = int(gaps.argmax())
    half = gaps[widest] / 2
    away = (lines + _LABEL_POINTS / 2) / float(np.sin(min(half, np.pi / 2)))
    # A name far from its vertex would seem to belong to another one.
    away = float(np.clip(away if len(angles) > 1 else 0, radius + 2, 3 * _LABEL_POINTS))
    x, y = np.cos(angles[widest] + half), np.sin(angles[widest] + half)
    # The side of the name that faces the vertex is at this distance.
    across = "center" if abs(x) < 0.4 else "left" if x > 0 else "right"
    along = "center" if abs(y) < 0.4 else "bottom" if y > 0 else "top"
    return {"xytext": (away * x, away * y), "ha": across, "va": along}


def _apart(axes: Axes, labels: dict[int, str], at: Places) -> Iterator[tuple[int, str]]:
    """Yields a vertex and its label, except labels that overlap a label at the same height."""
    pixels = axes.get_window_extent().width
    unit = pixels * POINTS_PER_INCH / axes.figure.dpi / float(np.ptp(at[:, 0]) + 1.0)
    ends: dict[float, float] = {}
    for vertex in sorted(labels, key=lambda vertex: float(at[vertex, 0])):
        height, middle = round(float(at[vertex, 1]), 3), float(at[vertex, 0]) * unit
        half = len(labels[vertex]) * LETTER_WIDTH * _LABEL_POINTS / 2
        if middle - half >= ends.get(height, -np.inf):
            ends[height] = middle + half
            yield vertex, labels[vertex]


def key(
    figure: Figure,
    machine: Fabric,
    vertices: int,
    *,
    is_idle: bool = True,
    lit: Sequence[Line2D] | None = None,
) -> None:
    """Adds a legend below all panels: kinds of vertices and, if `is_idle`, unused link.

    On fibres, `lit` are the further entries of the legend, for the lightpaths.
    """
    look: dict[str, Any] = {"linestyle": "none", "markeredgecolor": style.INK}
    ranks = machine.ranks
    handles = [Line2D([], [], marker="o", markerfacecolor="white", label="rank", **look)]
    if machine.idle_ranks:
        idle = idle_noun(machine)
        handles.append(Line2D([], [], marker="o", markerfacecolor=_IDLE_GREY, label=idle, **look))
    if vertices > ranks + machine.idle_ranks:
        handles.append(Line2D([], [], marker="s", markerfacecolor=_GREY, label="switch", **look))
    if vertices <= MAX_MARKED:
        if is_idle:
            handles.append(Line2D([], [], color=style.FAINT, linewidth=1.2, label="unused link"))
        title = "two lines are the two directions of a cable; traffic keeps to the right"
    else:
        title = (
            "unused links left out; the links of a switch to its ranks drawn as one, in the colour "
            "of the busiest"
        )
    title = title if vertices > ranks or vertices <= MAX_MARKED else "unused links left out"
    if lit is not None:
        title = "lightpaths keep to the right of their cables, in the order of their channels"
    handles += lit or ()
    figure.legend(
        handles=handles, loc="outside lower center", ncols=min(5, len(handles)), title=title
    )
