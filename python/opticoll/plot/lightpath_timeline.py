"""Figures of circuits between ports: ports over time, and each configuration of the circuits."""

import os
from math import cos, pi, sin
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from opticoll._core import Plan
from opticoll.outputs.circuit_configurations import CircuitConfiguration, circuits, configurations
from opticoll.plot import style
from opticoll.plot.output import PlotError, drawn, headed, sheet
from opticoll.plot.panels import legend_below, panels, time_line

_MAX_ROWS = 96
_MAX_PANELS = 12
_MAX_RANKS = 256
_MAX_NAMED_RANKS = 32
_COLUMNS = 4
_PALE = "0.78"


@drawn
def lightpath_timeline(plan: Plan, path: str | os.PathLike[str], *, size: int) -> Figure:
    """Draws a row per port: pale while a circuit is up, full colour while data use the circuit.

    A colour stands for the rank at the other end of the circuit. Grey is the time in which circuits
    are set up and torn down. Times follow from the fabric's default policy. For a circuit switch,
    each row is a sending port.

    Raises PlotError for another fabric, for a plan without transfers, and for too many ports.
    """
    fabric = plan.fabric
    ports, setup = fabric.option("ports"), fabric.option("setup")
    teardown = 0
    if setup is not None:
        teardown = fabric.option("teardown" if "teardown" in fabric.options else "setup")
    rows = fabric.ranks * ports
    if rows > _MAX_ROWS:
        raise PlotError(f"{rows} ports are too many to draw: {_MAX_ROWS} at most")
    if not len(plan):
        raise PlotError("there is nothing to draw: nothing is sent")
    outcome = plan.simulate(size)
    scale, unit = style.unit_ps(outcome.time_ps)
    colours = style.wavelength_colours(fabric.ranks)
    figure = sheet(9.6, max(3.6, 0.16 * rows + 1.9))
    axes = figure.subplots()
    for group in configurations(plan):
        waits = int(outcome.slots["reconfiguration_ps"][group.first])
        before = waits if setup is None else setup
        _draw(axes, plan, group, outcome.slots, (ports, before, teardown, scale), colours)
    for rank in range(1, fabric.ranks):
        axes.axhline(rank * ports - 0.5, color=style.INK, linewidth=0.4)
    places = [rank * ports + (ports - 1) / 2 for rank in range(fabric.ranks)]
    ticks = {place: f"rank {rank}" for rank, place in enumerate(places)}
    time_line(axes, outcome.time_ps / scale, unit, rows, ticks, margin=0.5)
    axes.tick_params("y", labelsize=8)
    headed(
        figure,
        f"{style.heading(plan)}, {style.size_text(size)}, {style.counted(ports, 'port')} per rank\n"
        f"{style.conditions(fabric.spec)}; pale: circuit up, full: data on it",
    )
    named = fabric.ranks if fabric.ranks < 33 else 0
    shades: dict[str, Any] = {f"to rank {rank}": colours(rank) for rank in range(named)}
    shades["reconfiguration" if setup is None else "setup and teardown"] = _PALE
    legend_below(figure, 6, colours=shades)
    return figure


def _draw(
    axes: Any,
    plan: Plan,
    group: CircuitConfiguration,
    slots: dict[str, Any],
    constants: tuple[int, int, int, int],
    colours: Any,
) -> None:
    """Draws a configuration of the circuits.

    `constants` are the number of ports per rank, and three times in picoseconds: the setup, the
    teardown, and one unit of the time axis.
    """
    ports, setup, teardown, scale = constants
    start, end = int(slots["start_ps"][group.first]), int(slots["end_ps"][group.last])
    up, down = start + setup, end - teardown
    for (rank, port), peer in group.peers.items():
        row = rank * ports + port
        for begin, finish in ((start, up), (down, end)):
            width = (finish - begin) / scale
            axes.barh(row, width, 0.8, begin / scale, color=_PALE, edgecolor="white", linewidth=0.6)
        width = (down - up) / scale
        axes.barh(row, width, 0.8, up / scale, color=colours(peer), alpha=0.3, linewidth=0)
    for slot in range(group.first, group.last + 1):
        begin = up if slot == group.first else int(slots["start_ps"][slot])
        finish = down if slot == group.last else int(slots["end_ps"][slot])
        for (rank, port), peer in circuits(plan, slot)[0].items():
            width = (finish - begin) / scale
            axes.barh(rank * ports + port, width, 0.8, begin / scale, color=colours(int(peer)))


@drawn
def configuration_graphs(plan: Plan, path: str | os.PathLike[str]) -> Figure:
    """Draws the circuits of the first 12 configurations, coloured by port.

    Raises PlotError for a plan without transfers, and for too many ranks to draw on a circle.
    """
    listed = configurations(plan)
    if not listed:
        raise PlotError("there is nothing to draw: nothing is sent")
    ranks = plan.fabric.ranks
    if ranks > _MAX_RANKS:
        raise PlotError(f"{ranks} ranks are too many to draw: {_MAX_RANKS} at most")
    shown = listed[:_MAX_PANELS]
    wide = max(2.9, 6.0 / len(shown))
    figure, grid = panels(len(shown), _COLUMNS, (wide, 3.0), (0.0, 0.7))
    for number, (axes, configuration) in enumerate(zip(grid, shown, strict=True)):
        _graph(axes, configuration, ranks)
        axes.set_title(f"configuration {number}: {_slots(configuration)}", fontsize=10)
    count = style.counted(len(listed), "configuration")
    more = f", the first {len(shown)} of {count}" if len(listed) > len(shown) else f", {count}"
    headed(figure, f"{style.heading(plan)}{more}\n{style.conditions(plan.fabric.spec)}")
    return figure


def _slots(configuration: CircuitConfiguration) -> str:
    if configuration.first == configuration.last:
        return f"slot {configuration.first}"
    return f"slots {configuration.first} to {configuration.last}"


def _graph(axes: Axes, configuration: CircuitConfiguration, ranks: int) -> None:
    places = [(sin(2 * pi * rank / ranks), cos(2 * pi * rank / ranks)) for rank in range(ranks)]
    ports = style.wavelength_colours(1 + max(port for _, port in configuration.peers))
    for (rank, port), peer in configuration.peers.items():
        look = {
            "arrowstyle": "-|>",
            "color": ports(port),
            "linewidth": 1.2 if ranks <= _MAX_NAMED_RANKS else 0.5,
            "mutation_scale": 10 if ranks <= _MAX_NAMED_RANKS else 4,
            "shrinkA": 3,
            "shrinkB": 3,
            # Circuits in both directions between two ranks bend in opposite directions.
            "connectionstyle": "arc3,rad=0.12",
        }
        axes.annotate("", xy=places[peer], xytext=places[rank], arrowprops=look)
    across, upwards = zip(*places, strict=True)
    size = 4 if ranks <= _MAX_NAMED_RANKS else 2
    axes.plot(across, upwards, "o", markersize=size, color=style.INK)
    if ranks <= _MAX_NAMED_RANKS:
        for rank, (right, up) in enumerate(places):
            axes.text(1.16 * right, 1.16 * up, str(rank), ha="center", va="center", fontsize=8)
    axes.set_xlim(-1.3, 1.3)
    axes.set_ylim(-1.3, 1.3)
    axes.set_aspect("equal")
    axes.axis("off")
