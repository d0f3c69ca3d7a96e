"""The trees of a rank on the fabric: by which ways its chunks spread, or come together."""

import os
from typing import TYPE_CHECKING

import numpy as np

from opticoll._core import Plan
from opticoll.outputs.fabric_names import fabric_text
from opticoll.outputs.layout import plural
from opticoll.outputs.trees import Tree
from opticoll.outputs.trees import trees as trees_of
from opticoll.plot import style
from opticoll.plot.fabric import draw_links, draw_vertices, drawing_of, key, whole_numbers
from opticoll.plot.output import PlotError, drawn, headed, sheet

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_TREES = 6
"""Trees drawn, a panel each; others are counted."""


@drawn
def trees(
    plan: Plan, path: str | os.PathLike[str], *, rank: int | None = None, chunk: int | None = None
) -> "Figure":
    """Draw each tree of a rank or of a chunk on the fabric, links coloured by the step of use.

    Chunks on the same tree share a panel. A transfer colours all links of its route. Where a link
    carries chunks of a panel in several steps it has the colour of the first.

    Raises PlotError for a fabric of light, too many vertices, or a rank for which nothing moves.
    """
    from matplotlib.ticker import FuncFormatter

    if not plan.fabric.electrical:
        raise PlotError("trees are drawn on electrical fabrics; space_time shows light")
    found = trees_of(plan, rank, chunk)
    if not found:
        raise PlotError("nothing moves: there are no trees to draw")
    drawing = drawing_of(plan.fabric)
    at = drawing["places"]
    shown = found[:MOST_TREES]
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
        axes.set_title(words(tree), fontsize=9)
    key(figure, plan.fabric, len(at), is_idle=is_idle)
    bar = figure.colorbar(image, ax=panels, shrink=0.7, pad=0.02, aspect=26)
    bar.set_label("Step")
    bar.outline.set_visible(False)
    # A link that is used in step 0 is no unused link.
    bar.locator = whole_numbers()
    bar.formatter = FuncFormatter(lambda value, _: f"{value - 1:.0f}" if value >= 1 else "")
    bar.update_ticks()
    if top > 1:
        bar.ax.set_ylim(1, top)
    more = f"; {len(found) - len(shown)} more" if len(found) > len(shown) else ""
    what = f"chunk {chunk}" if chunk is not None else f"rank {found[0].root}"
    headed(
        figure,
        f"{style.heading(plan)}\n{fabric_text(plan.fabric.spec)}"
        f"\n{plural(len(found), 'tree')} of {what}{more}",
        fontsize=10.5,
    )
    return figure


def words(tree: Tree) -> str:
    """What a tree is: its chunks, what happens to them, how deep it is."""
    chunks = [str(chunk) for chunk in tree.chunks[:4]]
    more = "" if len(tree.chunks) <= len(chunks) else f" and {len(tree.chunks) - len(chunks)} more"
    kind = "chunk" if len(tree.chunks) == 1 else "chunks"
    return f"{tree.action} {kind} {', '.join(chunks)}{more}: {tree.depth} hops deep"
