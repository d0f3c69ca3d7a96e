"""Common parts of figures: a grid of panels, a legend below the panels, and timelines."""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from opticoll.plot.output import sheet


def panels(
    count: int, columns: int, size: tuple[float, float], around: tuple[float, float], **shared: Any
) -> tuple[Figure, list[Axes]]:
    """Returns a figure with `count` panels, `columns` of them in a row.

    `size` is the width and height of a panel in inches, and `around` is the width and height of the
    margins. `shared` are options of matplotlib's `subplots`.
    """
    columns = min(count, columns)
    lines = -(-count // columns)
    figure = sheet(size[0] * columns + around[0], size[1] * lines + around[1])
    grid = list(figure.subplots(lines, columns, squeeze=False, **shared).flat)
    for axes in grid[count:]:
        axes.remove()
    return figure, grid[:count]


def legend_below(
    figure: Figure,
    columns: int,
    *,
    of: Sequence[Axes] = (),
    colours: Mapping[str, Any] | None = None,
) -> None:
    """Adds a legend below all panels: labels from the panels in `of`, or a patch per colour."""
    handles: dict[str, Any] = {
        label: Patch(color=colour) for label, colour in (colours or {}).items()
    }
    for axes in of:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    columns = min(columns, len(handles))
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=columns)


def arrow_head(axes: Axes, tip: Any, before: Any, colour: Any, size: float, **options: Any) -> None:
    """Draws an arrow head at `tip` that points away from `before`."""
    look = {"arrowstyle": "-|>", "color": colour, "linewidth": 0, "mutation_scale": size}
    look |= {"shrinkA": 0, "shrinkB": 0}
    axes.annotate("", xy=tip, xytext=before, arrowprops=look, **options)


def time_line(
    axes: Axes,
    end: float,
    unit: str,
    rows: int,
    ticks: Mapping[float, str] | None = None,
    *,
    margin: float = 0.6,
    beyond: float = 1.005,
) -> None:
    """Turns axes into a timeline: time to the right up to `end` units, rows downwards from 0.

    `ticks` are labels by row. `margin` is the room above the first row and below the last row, as a
    number of rows.
    """
    axes.set_xlim(0, beyond * end or 1)
    axes.set_ylim(rows - 1 + margin, -margin)
    axes.set_xlabel(f"Time ({unit})")
    if ticks is not None:
        axes.set_yticks(list(ticks), list(ticks.values()))
        axes.tick_params("y", length=0)
        axes.grid(axis="y", visible=False)
