"""What each rank of a program does over time: local work, messages, collectives."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from opticoll.plot import style
from opticoll.plot.output import PlotError, drawn, headed, sheet

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

# Rows beyond these are thinner than a line.
_MOST_RANKS = 256

# Pieces narrower than a pixel are drawn as one: this many columns of a figure can be told apart.
_COLUMNS = 2000

# Pixels of a row, and of these above and below it.
_ROW = 40
_GAP = 4

# Characters of a title.

KINDS = ("local work", "single messages and waiting", "collectives")


@drawn
def rank_timeline(
    rank: "NDArray[np.integer]",
    kind: "NDArray[np.integer]",
    start_s: "NDArray[np.floating]",
    end_s: "NDArray[np.floating]",
    ranks: int,
    path: str | os.PathLike[str],
    *,
    title: str = "",
    kinds: Sequence[str] = KINDS,
) -> "Figure":
    """Draw pieces of time, each of a rank and of a kind, a row for each rank.

    Where pieces are too short to be seen, a column of a row is shared among kinds by the time that
    each takes there, so that shares of areas are shares of time.

    Raises PlotError where there are no ranks, too many, or no time passes.
    """
    import numpy as np
    from matplotlib.patches import Patch

    whole = float(end_s.max()) if len(end_s) else 0.0
    if whole <= 0:
        raise PlotError("the program takes no time: there is nothing to draw")
    if ranks > _MOST_RANKS:
        raise PlotError(f"{ranks} ranks are too many rows; at most {_MOST_RANKS} can be drawn")
    shares = np.zeros((len(kinds), ranks, _COLUMNS))
    for index in range(len(kinds)):
        mine = kind == index
        _spread(shares[index], rank[mine], start_s[mine] / whole, end_s[mine] / whole)
    colours = [style.COLOURS[5], style.COLOURS[1], style.COLOURS[0]][: len(kinds)]
    seen = [index for index in range(len(kinds)) if shares[index].any()]
    scale, unit = style.time_unit(whole)
    figure = sheet(9.0, 1.6 + min(6.0, 0.26 * ranks + 0.3))
    axes = figure.subplots()
    extent = (0.0, whole / scale, ranks - 0.5, -0.5)
    picture = _picture(shares, [style.rgb(colour) for colour in colours])
    axes.imshow(picture, aspect="auto", interpolation="nearest", extent=extent)
    axes.set_ylim(ranks - 0.4, -0.6)
    axes.set_xlim(0.0, whole / scale)
    axes.set_xlabel(f"Time ({unit})")
    axes.set_ylabel("Rank")
    step = max(1, -(-ranks // 16))
    axes.set_yticks(range(0, ranks, step))
    axes.tick_params("y", length=0)
    axes.grid(visible=False)
    headed(figure, title)
    handles = [Patch(color=colours[index], label=kinds[index]) for index in seen]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))
    return figure


def _picture(
    shares: "NDArray[np.floating]", colours: Sequence[tuple[int, int, int]]
) -> "NDArray[np.uint8]":
    """Pixels of rows of ranks: of each column, from the bottom, the kinds by their shares."""
    import numpy as np

    ranks, columns = shares.shape[1:]
    picture = np.full((ranks, _ROW, columns, 3), 255, np.uint8)
    height = _ROW - 2 * _GAP
    # The middles of the pixels of a row, from the bottom.
    middles = ((np.arange(height) + 0.5) / height)[None, ::-1, None]
    below = np.zeros((ranks, 1, columns))
    for share, colour in zip(shares, colours, strict=True):
        above = below + share[:, None, :]
        picture[:, _GAP : _GAP + height][(middles >= below) & (middles < above)] = colour
        below = above
    return picture.reshape(ranks * _ROW, columns, 3)


def _spread(
    shares: "NDArray[np.floating]",
    rank: "NDArray[np.integer]",
    start: "NDArray[np.floating]",
    end: "NDArray[np.floating]",
) -> None:
    """Add to each column of a rank the share of it that pieces cover; times are 0 to 1."""
    import numpy as np

    columns = shares.shape[1]
    # How much of the pieces of a rank lies before each edge: a difference of two ramps.
    edges = np.arange(columns + 1) / columns
    for row in range(shares.shape[0]):
        mine = rank == row
        if not mine.any():
            continue
        covered = np.zeros(columns + 1)
        for times, sign in ((np.sort(start[mine]), 1.0), (np.sort(end[mine]), -1.0)):
            sums = np.concatenate([[0.0], np.cumsum(times)])
            before = np.searchsorted(times, edges)
            covered += sign * (before * edges - sums[before])
        shares[row] += np.diff(covered) * columns
