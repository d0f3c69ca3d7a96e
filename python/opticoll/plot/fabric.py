"""Figures of a network: load of links, lightpaths on fibres, or the trees that plans use."""

import os
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator
from numpy.typing import NDArray

from opticoll._core import Fabric, Plan
from opticoll.outputs.fabric_names import fabric_text
from opticoll.outputs.layout import plural
from opticoll.outputs.trees import Tree
from opticoll.outputs.trees import trees as trees_of
from opticoll.outputs.views import MAX_MARKED, has_fibres
from opticoll.plot import style
from opticoll.plot.fibres import lightpaths_figure
from opticoll.plot.output import PlotError, drawn, headed, sheet
from opticoll.plot.vertices import draw_vertices, drawing_of, key

if TYPE_CHECKING:
    from opticoll._core import Drawing

_MAX_ARROWS = 200

MAX_TREES = 6
"""Maximum number of trees in a figure, with a panel per tree; further trees are only counted."""


@drawn
def fabric(
    plan: Plan, path: str | os.PathLike[str], *, slot: int | None = None, size: int | None = None
) -> Figure:
    """Draws a plan's fabric: electrical links coloured by load, or fibres with lightpaths.

    With `slot`, the load of a link is the number of messages of this step that share the link.
    Without `slot`, the load is the link's utilisation over the whole plan at `size` bytes (default:
    the plan's size). The two directions of a cable are drawn side by side, as in traffic on the
    right; unused links are grey.

    On fibres, each lightpath is a line along its route, coloured by wavelength. Without `slot`,
    there is a panel for each slot.

    Raises PlotError for any other optical fabric, for a slot that the plan does not have, and for
    too many vertices, slots or lightpaths.
    """
    if not plan.fabric.electrical and not has_fibres(plan.fabric):
        raise PlotError("a ring of wavelengths is drawn by `ring`, with its lightpaths")
    if slot is not None and not 0 <= slot < plan.slots:
        raise PlotError(f"the plan has no slot {slot}: it has slots 0 to {plan.slots - 1}")
    if has_fibres(plan.fabric):
        return lightpaths_figure(plan, slot)
    drawing = drawing_of(plan.fabric)
    if slot is None:
        load, label, facts = _use(plan, size)
    else:
        load, label, facts = _messages(plan, slot)
    return _figure(plan, drawing, load, label, facts)


def _use(plan: Plan, size: int | None) -> tuple[NDArray[np.float64], str, str]:
    """Returns each link's utilisation in %, the colour bar's label, and facts for the title."""
    outcome = plan.simulate(size)
    share = outcome.links["utilisation"].astype(np.float64)
    most = outcome.most_loaded_link
    size_bytes = plan.size_bytes if size is None else size
    more = "" if size_bytes is None else f"{style.size_text(size_bytes)}: "
    more += style.time_text(outcome.time_ps / 1e12)
    if most is not None:
        most_bytes = style.size_text(float(outcome.links["bytes"][most]))
        more += f"; busiest link {plan.fabric.link_name(most)}: {most_bytes}, {share[most]:.0%}"
    return 100 * share, "Use of the link over the whole time (%)", more


def _messages(plan: Plan, slot: int) -> tuple[NDArray[np.float64], str, str]:
    """Returns each link's number of messages, the colour bar's label, and facts for the title."""
    columns = plan.slot_columns(slot)
    ends = zip(columns["source"].tolist(), columns["destination"].tolist(), strict=True)
    routes = (tuple(plan.route(transfer)) for transfer in columns["transfer"].tolist())
    messages = set(zip(ends, routes, strict=True))
    count = np.zeros(plan.fabric.link_count)
    for _, route in messages:
        count[list(route)] += 1
    more = f"step {slot} (of {plan.slots}): {len(messages):,} messages"
    return count, "Messages that share the link", more


def _figure(
    plan: Plan, drawing: "Drawing", load: NDArray[np.float64], label: str, facts: str
) -> Figure:
    at = drawing["places"]
    span = at.max(axis=0) - at.min(axis=0) + 0.8
    wide = float(np.clip(9.0 * (span[0] / span[1]) ** 0.5, 6.5, 13.0))
    tall = float(np.clip(0.88 * wide * span[1] / span[0], 2.2, 9.0))
    figure = sheet(wide, tall + 0.9)
    axes = figure.subplots()
    axes.set_aspect("equal")
    axes.axis("off")
    # All figures of utilisation have the same scale.
    top = 100.0 if "%" in label else max(float(load.max(initial=0)), 1.0)
    image = draw_links(axes, plan.fabric, drawing, load, top, style.load_colours())
    draw_vertices(axes, plan.fabric, at)
    key(figure, plan.fabric, len(at))
    bar = _bar(figure, image, axes, label, whole="Messages" in label)
    bar.update_ticks()
    title = f"{style.heading(plan)}, {style.named_fabric(plan.fabric.spec)}"
    headed(figure, f"{title}\n{facts}", fontsize=10.5)
    return figure


def _bar(figure: Figure, image: Any, axes: Any, label: str, *, whole: bool) -> Any:
    """Adds a colour bar; if `whole`, its ticks are whole numbers."""
    bar = figure.colorbar(image, ax=axes, shrink=0.7, pad=0.02, aspect=26)
    bar.set_label(label)
    bar.outline.set_visible(False)
    if whole:
        bar.locator = MaxNLocator(nbins=6, integer=True)
    return bar


def draw_links(
    axes: Axes,
    machine: Fabric,
    drawing: "Drawing",
    load: NDArray[np.float64],
    top: float,
    shades: Any,
) -> Any:
    """Draws links as arcs that bend to their right, coloured by load from 0 to `top`.

    A link around the edge of a grid is drawn as two stubs. If there are many vertices, unused links
    are left out. Then all links from a switch to its ranks are drawn as one arc with the load of
    the most loaded link; so are all links back.
    """
    ends = np.array(machine.link_ends or [], dtype=np.int64).reshape(-1, 2)
    many = len(drawing["places"]) > MAX_MARKED
    if many and len(drawing["places"]) > machine.ranks:
        ends, load = _bundled(ends, load, machine.ranks)
    curves, link = _curves(ends, drawing)
    drawn = load[link]
    crowd = float(np.clip(600 / max(len(ends), 1), 0.25, 1.0))
    idle = np.flatnonzero(drawn <= 0)
    axes.add_collection(
        LineCollection(
            [] if many else [curves[place] for place in idle],
            colors=style.FAINT,
            linewidths=0.8 * crowd,
            zorder=1,
        )
    )
    # Draw the most loaded links last.
    order = np.argsort(drawn, kind="stable")
    order = order[drawn[order] > 0]
    busy = LineCollection(
        [curves[place] for place in order],
        cmap=shades,
        norm=Normalize(0, top),
        capstyle="round",
        zorder=2,
    )
    busy.set_array(drawn[order])
    busy.set_linewidth(list(crowd * (1.0 + 2.2 * drawn[order] / top)))
    axes.add_collection(busy)
    if len(order) <= _MAX_ARROWS:
        for index in order:
            _arrow(axes, curves[index], shades(drawn[index] / top))
    return busy


def _bundled(
    ends: NDArray[np.int64], load: NDArray[np.float64], ranks: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Merges all links from a switch to its ranks into one link, and all links back into another.

    A merged link leads to or from the middle rank. Its load is the highest load of these links.
    """
    groups: dict[tuple[int, bool], list[int]] = {}
    unbundled = []
    for index, (a, b) in enumerate(ends.tolist()):
        if (a < ranks) == (b < ranks):
            unbundled.append(index)
        else:
            groups.setdefault((max(a, b), a < ranks), []).append(index)
    new = [ends[index].tolist() for index in unbundled]
    loads = [float(load[index]) for index in unbundled]
    for (switch, up), link_indices in groups.items():
        below = sorted(int(ends[index].min()) for index in link_indices)
        middle = below[len(below) // 2]
        new.append([middle, switch] if up else [switch, middle])
        loads.append(float(load[link_indices].max()))
    return np.array(new, dtype=np.int64).reshape(-1, 2), np.array(loads)


def _arrow(axes: Axes, curve: NDArray[np.float64], shade: Any) -> None:
    """Draws an arrow head on the line `curve` of a link, beyond the middle of the line."""
    place = max(1, int(0.62 * (len(curve) - 1)))
    look = {
        "arrowstyle": "-|>",
        "facecolor": shade,
        "edgecolor": "white",
        "linewidth": 0.6,
        "mutation_scale": 13,
        "shrinkA": 0,
        "shrinkB": 0,
    }
    axes.annotate("", xy=curve[place], xytext=curve[place - 1], arrowprops=look)


def _curves(
    ends: NDArray[np.int64], drawing: "Drawing"
) -> tuple[list[NDArray[np.float64]], NDArray[np.int64]]:
    """Returns the lines of links, and for each line the index of its link."""
    at, around = drawing["places"], set(drawing["around"].tolist())
    start, end = at[ends[:, 0]], at[ends[:, 1]]
    along = end - start
    length = np.maximum(np.sqrt((along**2).sum(axis=1)), 1e-9)[:, None]
    right = np.column_stack([along[:, 1], -along[:, 0]]) / length
    bow = np.minimum(0.045, 0.06 * length)
    # Parallel cables fan out.
    seen: dict[tuple[int, int], int] = {}
    for index, (a, b) in enumerate(ends.tolist()):
        place = seen.get((a, b), 0)
        seen[a, b] = place + 1
        bow[index] *= 1 + 1.6 * place
    t = np.linspace(0, 1, 17)[None, :, None]
    arcs = start[:, None] + t * along[:, None] + 4 * t * (1 - t) * (right * bow)[:, None]
    curves, link = [], []
    for index in range(len(ends)):
        if index not in around:
            curves.append(arcs[index])
            link.append(index)
            continue
        away, side = -0.42 * along[index] / length[index], right[index] * 0.045
        start_point, end_point = start[index], end[index]
        curves += [
            np.array([start_point, start_point + away + side]),
            np.array([end_point - away + side, end_point]),
        ]
        link += [index, index]
    return curves, np.array(link, dtype=np.int64)


@drawn
def trees(
    plan: Plan, path: str | os.PathLike[str], *, rank: int | None = None, chunk: int | None = None
) -> Figure:
    """Draws each tree of a rank or a chunk on the fabric; the colour of a link is its step.

    Chunks on the same tree share a panel. A transfer gives the colour of its step to all links of
    its route. If a link carries chunks of a panel in several steps, it has the colour of the first
    of these steps.

    Raises PlotError for an optical fabric, for too many vertices, and if there is no such tree.
    """
    if not plan.fabric.electrical:
        raise PlotError("trees are drawn on electrical fabrics; space_time shows light")
    drawn_trees = trees_of(plan, rank, chunk)
    if not drawn_trees:
        raise PlotError("nothing moves: there are no trees to draw")
    drawing = drawing_of(plan.fabric)
    at = drawing["places"]
    shown = drawn_trees[:MAX_TREES]
    columns = min(len(shown), 2 if len(shown) == 4 else 3)
    rows = -(-len(shown) // columns)
    span = at.max(axis=0) - at.min(axis=0) + 0.8
    wide = float(np.clip(7.0 * (span[0] / span[1]) ** 0.5, 6.0, 13.0)) / columns**0.5
    tall = float(np.clip(wide * span[1] / span[0], 1.8, 8.0))
    figure = sheet(wide * columns + 1.0, rows * (tall + 0.35) + 1.3)
    panels = figure.subplots(rows, columns, squeeze=False)
    top = float(max(plan.slots, 1))
    for axes in panels.flat:
        axes.set_aspect("equal")
        axes.axis("off")
    is_idle = False
    for axes, tree in zip(panels.flat, shown, strict=False):
        steps = np.zeros(plan.fabric.link_count)
        for edge in reversed(tree.edges):
            steps[plan.route(edge.transfer)] = edge.slot + 1
        is_idle |= bool((steps == 0).any())
        image = draw_links(axes, plan.fabric, drawing, steps, top, style.step_colours())
        draw_vertices(axes, plan.fabric, at)
        axes.set_title(tree_title(tree), fontsize=9)
    key(figure, plan.fabric, len(at), is_idle=is_idle)
    bar = _bar(figure, image, panels, "Step", whole=True)
    # Step 0 has the value 1, since 0 marks unused links.
    bar.formatter = FuncFormatter(lambda value, _: f"{value - 1:.0f}" if value >= 1 else "")
    bar.update_ticks()
    if top > 1:
        bar.ax.set_ylim(1, top)
    more = f"; {len(drawn_trees) - len(shown)} more" if len(drawn_trees) > len(shown) else ""
    subject = f"chunk {chunk}" if chunk is not None else f"rank {drawn_trees[0].root}"
    headed(
        figure,
        f"{style.heading(plan)}\n{fabric_text(plan.fabric.spec)}"
        f"\n{plural(len(drawn_trees), 'tree')} of {subject}{more}",
        fontsize=10.5,
    )
    return figure


def tree_title(tree: Tree) -> str:
    """Returns the title of a tree: its action, chunks and depth."""
    chunks = [str(chunk) for chunk in tree.chunks[:4]]
    more = "" if len(tree.chunks) <= len(chunks) else f" and {len(tree.chunks) - len(chunks)} more"
    kind = "chunk" if len(tree.chunks) == 1 else "chunks"
    return f"{tree.action} {kind} {', '.join(chunks)}{more}: {tree.depth} hops deep"
