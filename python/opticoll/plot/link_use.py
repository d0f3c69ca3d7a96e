"""Figure of the link utilisation of an electrical fabric over time, from the fluid simulator."""

import os
from collections import Counter

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from opticoll._core import Outcome, Plan
from opticoll.plot import style
from opticoll.plot.output import PlotError, drawn, headed, sheet

MAX_LINKS = 40


@drawn
def link_use(plan: Plan, outcome: Outcome, path: str | os.PathLike[str], title: str = "") -> Figure:
    """Draws the utilisation of links over time: in each bin, the used share of each link's rate.

    The upper panel shows the most used link of each bin, and the mean over all links in use. The
    lower panel shows up to 40 links in the order of the fabric. Links that limit the critical path
    are selected first, then links that carry the most bytes. The last bin may be shorter.

    Raises PlotError if the outcome has no bins, or no link carried data.
    """
    if "link_use" not in outcome.tables:
        raise PlotError("the outcome has no bins of time: simulate by flows, with `link_bin`")
    bin_ps, carried = outcome.link_use_bin_ps, outcome.link_use["bytes"]
    total = carried.sum(axis=1)
    used = np.flatnonzero(total)
    if len(used) == 0:
        raise PlotError("there is nothing to draw: no link carried anything")
    edges = np.minimum(np.arange(carried.shape[1] + 1) * bin_ps, outcome.time_ps)
    capacity = np.outer(np.array(plan.fabric.link_rates)[used] / 8e12, np.diff(edges))
    shares = np.divide(carried[used], capacity, out=np.zeros_like(capacity), where=capacity > 0)
    shown = _shown(used, total, outcome.critical_path["bottleneck"])
    height = 3.2 + 0.15 * len(shown)
    figure = sheet(10.0, height)
    _draw(figure, edges, shares, shown, [plan.fabric.link_name(int(link)) for link in used])
    headed(figure, title)
    return figure


def _shown(
    used: NDArray[np.int64], total: NDArray[np.int64], critical: list[int | None]
) -> NDArray[np.intp]:
    """Returns the links that are drawn, as indices into `used`.

    Links that limit flows of the critical path come first, then links that carry the most bytes.
    """
    named = Counter(link for link in critical if link is not None)
    order = sorted(
        range(len(used)),
        key=lambda place: (-named[int(used[place])], -float(total[used[place]]), place),
    )
    return np.sort(np.array(order[:MAX_LINKS], dtype=np.intp))


def _draw(
    figure: Figure,
    edges: NDArray[np.int64],
    shares: NDArray[np.float64],
    shown: NDArray[np.int64],
    names: list[str | None],
) -> None:
    factor, unit = style.unit_ps(int(edges[-1]))
    times = edges / factor
    rows = 0.15 * len(shown) + 0.6
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(1.8, rows))
    for values, label, colour in (
        (shares.max(axis=0), "busiest link", style.COLOURS[1]),
        (shares.mean(axis=0), f"mean of {len(names)} links in use", style.COLOURS[0]),
    ):
        above.stairs(100 * values, times, label=label, color=colour, baseline=None)
    above.set_ylabel("Use of the link (%)")
    above.set_ylim(0, 105)
    above.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2)
    image = below.pcolormesh(
        times,
        np.arange(len(shown) + 1),
        100 * shares[shown],
        cmap=style.load_colours(),
        vmin=0,
        vmax=100,
        rasterized=True,  # vector graphics would show seams and be large
    )
    below.set_yticks(np.arange(len(shown)) + 0.5, [names[link] for link in shown], fontsize=7)
    below.invert_yaxis()
    below.grid(visible=False)
    below.set_xlabel(f"Time ({unit})")
    if len(shown) < len(names):
        below.set_title(
            f"{len(shown)} of {len(names)} links in use: the critical path, and the links with "
            "most bytes"
        )
    figure.colorbar(image, ax=below, label="Use of the link (%)", pad=0.01)
