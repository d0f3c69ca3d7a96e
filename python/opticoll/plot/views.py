"""Figure of a plan in one of its views, and the figure of a simulation's outcome."""

import os

from opticoll._core import Outcome, Plan
from opticoll.outputs.lights import joins_servers
from opticoll.outputs.views import views_of
from opticoll.plot.fabric import fabric as draw_fabric
from opticoll.plot.fabric import trees
from opticoll.plot.grid import grid, grid_space_time
from opticoll.plot.lightpath_timeline import configuration_graphs, lightpath_timeline
from opticoll.plot.link_use import link_use
from opticoll.plot.output import PlotError
from opticoll.plot.packets import one_loss, packets
from opticoll.plot.ring import ring
from opticoll.plot.space_time import messages, space_time
from opticoll.plot.timelines import slots


def plan(
    plan: Plan,
    path: str | os.PathLike[str],
    view: str | None = None,
    *,
    slot: int | None = None,
    size: int | None = None,
    rank: int | None = None,
    chunk: int | None = None,
) -> None:
    """Draws a plan in a view; without `view`, in the default view of its fabric.

    Views of one slot show `slot`, by default the first slot. The view `fabric` shows `slot`, by
    default all slots. Times are those for `size` bytes (default: the plan's size). `rank` or
    `chunk` selects the trees to draw.

    Raises PlotError if the fabric has no such view, or the view cannot show the plan.
    """
    views, about = views_of(plan, slot)
    if view not in (None, *views):
        of = f"{plan.fabric.family} {about}"
        raise PlotError(f"there is no view `{view}`: {of}; its views are {', '.join(views)}")
    size = plan.size_bytes if size is None else size
    match view or views[0]:
        case _ if joins_servers(plan.fabric):
            messages(plan, path, size=size)
        case "ports" if size is not None:
            lightpath_timeline(plan, path, size=size)
        case "ports":
            raise PlotError("the plan has no size of its own: give one")
        case "configurations":
            configuration_graphs(plan, path)
        case "ring":
            ring(plan, slot or 0, path)
        case "grid":
            grid(plan, slot or 0, path)
        case "fabric":
            draw_fabric(plan, path, slot=slot, size=size)
        case "trees":
            trees(plan, path, rank=rank, chunk=chunk)
        case _ if "plane" in plan.fabric.light_fields:
            grid_space_time(plan, path)
        case _ if "direction" in plan.fabric.light_fields:
            space_time(plan, path)
        case _:
            messages(plan, path, size=size)


def outcome(
    measured: Outcome, path: str | os.PathLike[str], plan: Plan | None = None, title: str = ""
) -> None:
    """Draws a simulated outcome over time.

    The figure shows latencies and buffers of packets, losses of bursts, or the slots of a plan. If
    the outcome has the table `link_use` and `plan` is given, the figure shows the use of links. The
    plan's fabric gives the names of the links.

    Raises PlotError if the outcome has no table over time.
    """
    tables_of_outcome = measured.tables
    if "message_latency" in tables_of_outcome:
        packets(measured, None if plan is None else plan.fabric, path, title)
    elif "link_use" in tables_of_outcome and plan is not None:
        link_use(plan, measured, path, title)
    elif "moments" in tables_of_outcome:
        one_loss(measured, path, title)
    elif "slots" in tables_of_outcome:
        slots(measured, path, title)
    else:
        tables = ", ".join(tables_of_outcome)
        raise PlotError(f"there is nothing to draw over time: the tables are {tables}")
