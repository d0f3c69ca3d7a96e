"""Writing of complete and reproducible files of figures, in the format of the file's suffix."""

import functools
import inspect
import itertools
import math
import os
import re
import textwrap
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import Any, ParamSpec, TypeGuard, cast

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import BoundaryNorm
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.text import Text
from numpy.typing import NDArray

from opticoll.errors import PlotError as PlotError
from opticoll.formats.atomic import check_writable, replacing
from opticoll.outputs.terminal_text import escaped_lines, shortened
from opticoll.plot import style

POINTS_PER_INCH = 72
LETTER_WIDTH = 0.53
"""Mean width of a letter of DejaVu Sans, as a multiple of the font size."""

# Metadata that would differ between two files of the same figure: date and library version.
_METADATA: dict[str, dict[str, Any]] = {
    "pdf": {"CreationDate": None},
    "png": {"Software": None},
    "svg": {"Date": None},
}


def formats() -> list[str]:
    """Returns the supported file formats, as suffixes without the dot."""
    return sorted(_METADATA)


def check_path(path: object) -> Path:
    """Checks, before a figure is drawn, that it can be written to `path`; returns the path.

    Raises PlotError for an unknown suffix, and FileError if the path cannot be written.
    """
    if not isinstance(path, str | os.PathLike):
        raise PlotError(f"`{path!r}` is neither the name of a file nor axes of matplotlib")
    target = Path(path)
    if _suffix(target) not in _METADATA:
        suffixes = ", ".join(f".{name}" for name in formats())
        problem = (
            f"`{target.suffix}` is not a known format" if target.suffix else "it has no suffix"
        )
        raise PlotError(f"cannot write the figure `{target}`: {problem}; use one of {suffixes}")
    return check_writable(target)


P = ParamSpec("P")


def drawn(draw: Callable[P, Figure]) -> Callable[P, None]:
    """Turns a function that returns a figure into a function that writes it to the argument `path`.

    The path is checked before the figure is drawn. If `path` is matplotlib axes, the figure is
    drawn in these axes.
    """
    signature = inspect.signature(draw)

    @functools.wraps(draw)
    def written(*arguments: P.args, **options: P.kwargs) -> None:
        path = signature.bind(*arguments, **options).arguments["path"]
        if is_axes(path):
            draw_in(path, lambda: draw(*arguments, **options))
            return
        target = check_path(path)
        with style.applied():
            save(draw(*arguments, **options), target)

    return written


def is_axes(target: object) -> TypeGuard[Axes]:
    """Returns whether `target` is matplotlib axes rather than a path."""
    return hasattr(target, "get_subplotspec")


_AXES: ContextVar[Axes | None] = ContextVar("axes", default=None)
"""Axes of the user in which a function draws, instead of a new figure; None for a new figure."""


def draw_in(axes: Axes, draw: Callable[[], object]) -> None:
    """Draws a figure in a user's axes; raises PlotError if the figure has several panels."""
    before = _AXES.set(axes)
    try:
        with style.applied():
            draw()
    finally:
        _AXES.reset(before)
    _show_as_text(axes, [axes])


class _Part:
    """Replacement for a figure: it draws in a user's axes and has the methods that are called."""

    def __init__(self, axes: Axes) -> None:
        self.axes = [axes]

    def subplots(self, *counts: int, squeeze: bool = True, **_: object) -> Any:
        if any(count > 1 for count in counts):
            raise PlotError(
                "the figure has several panels and does not fit into axes: give the name of a file"
            )
        return self.axes[0] if squeeze else np.array([self.axes])

    def subfigures(self, *counts: int, **_: object) -> Any:
        return self.subplots(*counts)

    def get_figwidth(self) -> float:
        (axes,) = self.axes
        return float(axes.get_window_extent().width / axes.figure.dpi)

    def suptitle(self, title: str, **_: object) -> None:
        self.axes[0].set_title(title, loc="left")

    def legend(self, *what: Any, loc: str, ncols: int = 1, **options: Any) -> None:
        self.axes[0].legend(*what, **options)

    def colorbar(self, image: Any, **options: Any) -> Any:
        return self.axes[0].figure.colorbar(image, **options)


def sheet(width: float, height: float) -> Figure:
    """Returns an empty figure, `width` by `height` inches, whose layout avoids overlaps."""
    if (axes := _AXES.get()) is not None:
        return cast("Figure", _Part(axes))
    return Figure(figsize=(width, height), layout="constrained")


def headed(figure: Figure, title: str, fontsize: float = 11) -> None:
    """Writes a title at the upper left, wrapped to the width; an empty title is skipped."""
    longest = int(figure.get_figwidth() * POINTS_PER_INCH / (LETTER_WIDTH * fontsize))
    # Keep a number and its unit on one line.
    parts = re.sub(r"(?<=\d) (?=\w)", "\N{NO-BREAK SPACE}", title).splitlines()
    lines = [line for part in parts for line in textwrap.wrap(part, longest)]
    lines = [line.replace("\N{NO-BREAK SPACE}", " ") for line in lines]
    if lines:
        figure.suptitle("\n".join(lines), x=0.01, ha="left", fontsize=fontsize)


def name_at_ends(axes: Axes, labels: Sequence[str]) -> None:
    """Writes the name of each curve beside its last point, without overlaps.

    The vertical axis must be logarithmic and have limits.
    """
    by_label = {str(line.get_label()): line for line in axes.get_lines()}
    lines = [by_label[label] for label in labels if label in by_label]
    ends = [(float(line.get_xdata()[-1]), float(line.get_ydata()[-1])) for line in lines]  # type: ignore[index, arg-type]
    low, high = (math.log(limit) for limit in axes.get_ylim())
    order = sorted(range(len(lines)), key=lambda place: ends[place][1])
    wanted = [(math.log(ends[place][1]) - low) / (high - low) for place in order]
    # Use the mean of two arrangements: names only moved up, and names only moved down.
    up = itertools.accumulate(wanted, lambda below, height: max(height, below + MIN_NAME_DISTANCE))
    down = itertools.accumulate(
        wanted[::-1], lambda above, height: min(height, above - MIN_NAME_DISTANCE)
    )
    heights = [
        (pushed_up + pushed_down) / 2
        for pushed_up, pushed_down in zip(up, [*down][::-1], strict=True)
    ]
    for place, height in zip(order, heights, strict=True):
        axes.annotate(
            str(lines[place].get_label()),
            ends[place],
            xytext=(1.04, height),
            textcoords="axes fraction",
            va="center",
            fontsize=9,
            color=lines[place].get_color(),
            annotation_clip=False,
            arrowprops={
                "arrowstyle": "-", "color": lines[place].get_color(), "linewidth": 0.6,
                "relpos": (0.0, 0.5), "shrinkA": 1, "shrinkB": 4,
            },
        )  # fmt: skip


MIN_NAME_DISTANCE = 0.05
"""Minimum distance of two names beside a panel, as a share of the panel's height."""


def colour_key(
    figure: Figure,
    axes: Any,
    numbers: Sequence[int] | NDArray[np.int64],
    colours: Any,
    label: str,
    *,
    name: Callable[[int], str],
    lines: bool = False,
    stride: int | None = None,
    columns: int = 4,
    **bar_options: Any,
) -> None:
    """Adds a legend of the colours of up to `MAX_NAMED` numbers, or a colour bar for more numbers.

    A legend shows `name(number)`. A colour bar has the title `label` and a tick every `stride`
    numbers.
    """
    count = len(numbers)
    if count <= MAX_NAMED:
        handles = colour_handles(numbers, colours, name, lines=lines)
        figure.legend(handles=handles, loc="outside lower center", ncols=columns)
        return
    scale = ScalarMappable(
        BoundaryNorm([place - 0.5 for place in range(count + 1)], count), colours
    )
    bar = figure.colorbar(scale, ax=axes, **bar_options)
    places = range(0, count, stride or -(-count // 16))
    bar.set_ticks(list(places), labels=[str(numbers[place]) for place in places])
    bar.minorticks_off()
    bar.set_label(label)


MAX_NAMED = len(style.CHANNEL_COLOURS)
"""Maximum number of colours with a legend; more colours get a colour bar."""


def colour_handles(
    numbers: Sequence[int] | NDArray[np.int64],
    colours: Any,
    name: Callable[[int], str],
    *,
    lines: bool,
) -> list[Any]:
    """Returns the entries of a legend of colours: lines, or patches."""
    looks = [
        {"color": colours(place), "label": name(int(number))}
        for place, number in enumerate(numbers)
    ]
    return [Line2D([], [], linewidth=2.2, **look) if lines else Patch(**look) for look in looks]


def save(figure: Figure, path: Path) -> None:
    """Writes a figure in the format of the path's suffix; raises FileError if that fails."""
    suffix = _suffix(path)
    _show_as_text(figure, figure.axes)
    with replacing(path) as temporary:
        figure.savefig(temporary, format=suffix, metadata=_METADATA[suffix])


def _show_as_text(figure: Figure | Axes, panels: Sequence[Axes]) -> None:
    """Shows all texts literally: no formulas, and no characters that a file cannot contain."""
    # Only powers of ten on logarithmic axes are formulas.
    axes = [axis for pair in panels for axis in (pair.xaxis, pair.yaxis)]
    ticks = [
        tick
        for axis in axes
        if axis.get_scale() == "log"
        for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks())
    ]
    powers = {id(label) for tick in ticks for label in (tick.label1, tick.label2)}
    for text in figure.findobj(Text):
        if isinstance(text, Text) and id(text) not in powers:
            text.set_parse_math(False)
            text.set_text(shortened(escaped_lines(text.get_text()), MAX_WORD_LENGTH))


MAX_WORD_LENGTH = 200
"""Maximum number of characters of a word in a figure."""


def save_pages(figures: Sequence[Figure], path: Path) -> list[Path]:
    """Writes the pages of a figure, and returns the paths of the files.

    A .pdf contains all pages. An .svg or .png contains one page, so the files are `times-1.svg`,
    `times-2.svg` and so on for `times.svg`. A single page keeps the name.

    Raises FileError if a file cannot be written.
    """
    if len(figures) == 1:
        save(figures[0], path)
        return [path]
    if _suffix(path) == "pdf":
        from matplotlib.backends.backend_pdf import PdfPages

        with replacing(path) as temporary, PdfPages(temporary, metadata=_METADATA["pdf"]) as pages:
            for figure in figures:
                pages.savefig(figure)
        return [path]
    paths = [path.with_stem(f"{path.stem}-{page}") for page in range(1, len(figures) + 1)]
    for figure, file in zip(figures, paths, strict=True):
        save(figure, file)
    return paths


def _suffix(path: Path) -> str:
    return path.suffix.removeprefix(".").lower()
