"""Figure of goodput over the interval between checkpoints."""

import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from matplotlib.figure import Figure

from opticoll.plot import style
from opticoll.plot.output import PlotError, drawn, headed, sheet


class GoodputCurve(NamedTuple):
    """Goodput of one machine over the interval in seconds: simulated, and by the formula."""

    simulated: Sequence[tuple[float, float, float, float]]
    """Interval, goodput, and the ends of its 95 % interval."""
    formula: Sequence[tuple[float, float]]
    """Interval and goodput by the formula of first order."""
    complete: Sequence[tuple[float, float]]
    """Interval and goodput by Daly's complete formula; empty if the formula does not hold."""
    optimum: tuple[float, float] | None
    """Young's optimum and its goodput, if there is one."""


@drawn
def goodput(
    curves: Mapping[str, GoodputCurve], path: str | os.PathLike[str], title: str = ""
) -> Figure:
    """Draws goodput: formulas as curves with a diamond at Young's optimum, simulations as markers.

    Raises PlotError if there is nothing to draw.
    """
    if not curves:
        raise PlotError("there is nothing to draw: no goodput")
    figure = sheet(7.2, 4.6)
    axes = figure.subplots()
    minute = 60.0
    for number, (name, curve) in enumerate(curves.items()):
        look = style.series(number)
        for formula, line in ((curve.formula, "--"), (curve.complete, "-")):
            axes.plot(
                [interval / minute for interval, _ in formula],
                [value for _, value in formula],
                **(look | {"marker": "", "linestyle": line, "linewidth": 1.4}),
            )
        axes.plot(
            [point[0] / minute for point in curve.simulated],
            [point[1] for point in curve.simulated],
            label=name,
            **(look | {"linestyle": ""}),
        )
        for interval, _, low, high in curve.simulated:
            axes.plot([interval / minute] * 2, [low, high], color=look["color"], linewidth=1)
        if curve.optimum is not None:
            interval, value = curve.optimum
            axes.plot(
                interval / minute, value, marker="D", markersize=9, color=look["color"],
                markerfacecolor="none",
            )  # fmt: skip
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,g}")
    axes.set_ylim(0, 1)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    axes.set_xlabel(
        "Work between checkpoints (min)\n"
        "marker: simulation with 95 % interval; dashed: formula of first order,\n"
        "with a diamond at Young's optimum; continuous: Daly's complete formula"
    )
    axes.set_ylabel("Goodput")
    figure.legend(loc="outside lower center", ncols=min(3, len(curves)))
    headed(figure, title)
    return figure
