"""A plan in space and time: every message from rank to rank."""

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll._core import Plan
from opticoll.plot import style
from opticoll.plot.output import PlotError, colour_key, drawn, headed, sheet

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_MESSAGES = 6000
_MOST_ARROWS = 200


@drawn
def messages(plan: Plan, path: str | os.PathLike[str], *, size: int | None = None) -> "Figure":
    """Draw every message as a line from when and where it starts to when and where it has arrived.

    Time runs to the right, ranks downwards, at `size` bytes (the plan's own if none is given). On
    an electrical fabric the start rule is rendezvous and colours are steps; where circuits are
    placed in slots, a message takes its slot under the default policy, and colours are the last
    field of its light, such as the wavelength.

    Raises PlotError for light around a ring, no messages, or too many to be told apart.
    """
    if "direction" in plan.fabric.light_fields:
        raise PlotError("light around a ring is drawn by `space_time`, with its lightpaths")
    if len(plan) == 0:
        raise PlotError("the plan has no messages: there is nothing to draw")
    if len(plan) > 16 * MOST_MESSAGES:
        raise _too_many(len(plan))
    times = plan.message_times(size) if plan.fabric.electrical else _by_slots(plan, size)
    if len(times) > MOST_MESSAGES:
        raise _too_many(len(times))
    ranks = plan.fabric.ranks
    figure = sheet(10.0, float(np.clip(1.6 + 0.16 * ranks, 3.4, 8.6)))
    _draw(figure, plan, times, size)
    return figure


def _by_slots(plan: Plan, size: int | None) -> list[tuple[int, int, int]]:
    """Every transfer, and the begin and the end of its slot in picoseconds."""
    slots = plan.simulate(size).tables["slots"]
    start, end = slots["start_ps"].tolist(), slots["end_ps"].tolist()
    return [
        (transfer, start[slot], end[slot])
        for transfer, slot in enumerate(plan.columns()["slot"].tolist())
    ]


def _too_many(count: int) -> PlotError:
    return PlotError(
        f"{count} messages are too many for one picture (at most {MOST_MESSAGES}): draw the "
        "fabric instead, or a plan on fewer ranks"
    )


def _draw(
    figure: "Figure", plan: Plan, times: list[tuple[int, int, int]], size: int | None
) -> None:
    from matplotlib.collections import LineCollection

    columns = plan.columns()
    chosen = [transfer for transfer, _, _ in times]
    fields = list(plan.fabric.light_fields)
    hue, what = (fields[-1], fields[-1].replace("_", " ")) if fields else ("slot", "step")
    source, destination, shade = (
        columns[name][chosen].astype(np.int64) for name in ("source", "destination", hue)
    )
    shades = int(columns[hue].max()) + 1
    start, end = np.array([one[1:] for one in times], dtype=np.float64).T / 1e12
    factor, unit = style.time_unit(float(end.max()))
    start, end = start / factor, end / factor
    axes = figure.subplots()
    colours = style.wavelength_colours(shades)
    width = float(np.clip(500 / len(times), 0.35, 1.5))
    lines = np.stack(
        [np.column_stack([start, source]), np.column_stack([end, destination])], axis=1
    )
    axes.add_collection(
        LineCollection(list(lines), colors=[colours(int(one)) for one in shade], linewidths=width)
    )
    if len(times) <= _MOST_ARROWS:
        for (tail, tip), one in zip(lines, shade, strict=True):
            axes.annotate(
                "", xy=tip, xytext=tail,
                arrowprops={
                    "arrowstyle": "-|>", "color": colours(int(one)), "linewidth": 0,
                    "mutation_scale": 8, "shrinkA": 0, "shrinkB": 0,
                },
            )  # fmt: skip
    last = float(end.max())
    ranks = plan.fabric.ranks
    axes.set_xlim(-0.01 * last, 1.015 * last)
    axes.set_ylim(ranks - 0.5, -0.5)
    axes.set_xlabel(f"Time ({unit})")
    axes.set_ylabel("Rank")
    if ranks <= 40:
        axes.set_yticks(range(ranks))
    axes.grid(axis="x", visible=False)
    stride = -(-shades // 12)
    look: dict[str, Any] = {
        "lines": True,
        "columns": 8,
        "stride": stride,
        "pad": 0.02,
        "aspect": 30,
    }
    colour_key(
        figure, axes, range(shades), colours, what.capitalize(), name=f"{what} {{}}".format, **look
    )
    shown = plan.size_bytes if size is None else size
    headed(
        figure,
        f"{style.heading(plan)}, {plan.fabric.family}"
        + ("" if shown is None else f", {style.size_text(shown)}")
        + (", start rendezvous" if plan.fabric.electrical else "")
        + f", {style.conditions(plan.fabric.spec)}"
        + f": {len(times):,} messages in {style.time_text(last * factor)}",
    )
