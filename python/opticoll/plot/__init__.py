"""Figures of plans and comparisons, one file each.

Every function draws one figure and writes it to a path; the suffix (svg, png or pdf) determines the
format. matplotlib is imported with this package, and its global state stays unchanged. The same
input gives the same bytes.

>>> from opticoll.plot import formats
>>> formats()
['pdf', 'png', 'svg']
"""

from opticoll.errors import PlotError

try:
    import matplotlib.figure  # noqa: F401
except (ImportError, ValueError) as error:
    raise PlotError(f"cannot draw figures: matplotlib does not load: {error}") from error

from opticoll.plot.bars import BarPanel, stacked_bars
from opticoll.plot.comparison import comparison
from opticoll.plot.fabric import fabric
from opticoll.plot.goodput import GoodputCurve, goodput
from opticoll.plot.grid import grid, grid_space_time
from opticoll.plot.lightpath_timeline import lightpath_timeline
from opticoll.plot.link_use import link_use
from opticoll.plot.loads import Loss, MeanTime, losses, mean_times
from opticoll.plot.output import formats
from opticoll.plot.packets import latencies, one_loss, packets
from opticoll.plot.ring import ring
from opticoll.plot.space_time import messages, space_time
from opticoll.plot.timelines import Bar, iteration_timeline, rank_timeline, slots
from opticoll.plot.views import outcome, plan

__all__ = [
    "Bar",
    "BarPanel",
    "GoodputCurve",
    "Loss",
    "MeanTime",
    "PlotError",
    "comparison",
    "fabric",
    "formats",
    "goodput",
    "grid",
    "grid_space_time",
    "iteration_timeline",
    "latencies",
    "lightpath_timeline",
    "link_use",
    "losses",
    "mean_times",
    "messages",
    "one_loss",
    "outcome",
    "packets",
    "plan",
    "rank_timeline",
    "ring",
    "slots",
    "space_time",
    "stacked_bars",
]
