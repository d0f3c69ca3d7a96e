"""The drawings of the documentation, in the style of `opticoll.plot`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import opticoll
from opticoll import _core
from opticoll.plot import style
from opticoll.plot.output import check_path, save

Rows = Sequence[Mapping[str, str]]
Draw = Callable[[Path], None]

SMALL = "wdm_ring:ranks=16,wavelengths=2"
WAYS = ("clockwise", "counter-clockwise")
POLICY_NAMES = {
    "every_step": "every_step: R at every slot",
    "on_change": "on_change: R when a circuit changes",
    "per_port": "per_port: only changed ports wait R",
    "free": "free: R is never charged",
}


def all_figures(times: Rows, steps: Rows) -> dict[str, Draw]:
    """Returns the functions that draw the figures, by file name."""
    return {
        "relay_tree": relay_tree,
        "relay_tree_rotated": rotated,
        "relay_tree_cost": tree_cost,
        "relay_tree_steps": lambda path: steps_over_ranks(steps, path),
        "time_all_gather": lambda path: time_over_size(times, "all_gather", path),
        "time_all_reduce": lambda path: time_over_size(times, "all_reduce", path),
    }


def relay_tree(path: Path) -> None:
    """Draws the lightpaths that carry block 0, around the ring and slot by slot."""
    from matplotlib.figure import Figure

    plan = opticoll.plan("all_gather", SMALL, "relay_tree")
    with style.applied():
        figure = Figure(figsize=(10.4, 4.6), layout="constrained")
        left, right = figure.subplots(1, 2, width_ratios=(1.0, 1.45))
        _around(left, plan)
        _slot_by_slot(right, plan)
        figure.suptitle(
            f"One relay tree: how block 0 reaches all {plan.fabric.ranks} ranks in {plan.slots} "
            "slots",
            x=0.01,
            ha="left",
            fontsize=11,
        )
        save(figure, check_path(path))


def _tree(plan: opticoll.Plan) -> list[tuple[int, int, int, int]]:
    """Lightpaths of block 0: slot, start and length in links, signed; the owner is at 0."""
    ranks = plan.fabric.ranks
    columns = plan.columns()
    (own,) = (columns["chunk"] == 0).nonzero()
    place = {0: 0}
    tree = []
    for index in sorted(own, key=lambda index: int(columns["slot"][index])):
        source, destination = (int(columns[end][index]) for end in ("source", "destination"))
        sign = -1 if columns["direction"][index] else 1
        length = sign * (sign * (destination - source) % ranks)
        place[destination] = place[source] + length
        tree.append((int(columns["slot"][index]), place[source], length, destination))
    return tree


def _around(axes: Any, plan: opticoll.Plan) -> None:
    ranks = plan.fabric.ranks
    turn = 2 * np.pi / ranks
    circle = np.linspace(0, 2 * np.pi, 200)
    axes.plot(np.sin(circle), np.cos(circle), color=style.FAINT, linewidth=1.2, zorder=0)
    outermost = 1.17 + 0.13 * (plan.slots - 1)
    for rank in range(ranks):
        x, y = np.sin(rank * turn), np.cos(rank * turn)
        axes.plot([x, outermost * x], [y, outermost * y], color=style.FAINT, linewidth=0.7,
                  linestyle=":", zorder=0)  # fmt: skip
        axes.plot(x, y, "o", markersize=12, color=style.INK if rank == 0 else "white",
                  markeredgecolor=style.INK, markeredgewidth=0.9)  # fmt: skip
        axes.text(x, y, str(rank), ha="center", va="center_baseline", fontsize=7.5,
                  color="white" if rank == 0 else style.INK)  # fmt: skip
    for slot, start, length, _ in _tree(plan):
        radius = 1.17 + 0.13 * slot
        angles = turn * np.linspace(start + 0.06 * np.sign(length),
                                    start + length - 0.10 * np.sign(length), 40)  # fmt: skip
        x, y = radius * np.sin(angles), radius * np.cos(angles)
        axes.plot(x, y, color=style.COLOURS[slot], linewidth=2.2, solid_capstyle="butt")
        axes.annotate(
            "",
            (x[-1], y[-1]),
            xytext=(x[-6], y[-6]),
            arrowprops={"arrowstyle": "-|>", "color": style.COLOURS[slot], "shrinkA": 0,
                        "shrinkB": 0, "mutation_scale": 14, "linewidth": 0},
        )  # fmt: skip
    axes.set(aspect="equal", xlim=(-1.85, 1.85), ylim=(-1.85, 1.85))
    axes.axis("off")


def _slot_by_slot(axes: Any, plan: opticoll.Plan) -> None:
    tree = _tree(plan)
    places = [0, *(start + length for _, start, length, _ in tree)]
    since = {start + length: slot + 0.5 for slot, start, length, _ in tree} | {0: -0.35}
    for place, slot in since.items():
        axes.plot([place, place], [slot, plan.slots + 0.1], color=style.FAINT, zorder=0)
    for slot, start, length, _ in tree:
        axes.annotate(
            "",
            (start + length, slot + 0.5),
            xytext=(start, slot + 0.5),
            arrowprops={"arrowstyle": "-|>", "color": style.COLOURS[slot], "shrinkA": 0,
                        "shrinkB": 0, "mutation_scale": 12, "linewidth": 2.2},
        )  # fmt: skip
        axes.text(start + length / 2, slot + 0.36, f"{abs(length)}", ha="center", fontsize=8,
                  color=style.COLOURS[slot])  # fmt: skip
    for slot in range(plan.slots):
        loads = [
            sum(abs(length) for own, _, length, _ in tree if own == slot and length * sign > 0)
            for sign in (1, -1)
        ]
        axes.text(max(places) + 0.9, slot + 0.5, f"{loads[0]} cw, {loads[1]} ccw", fontsize=9,
                  va="center", color=style.COLOURS[slot])  # fmt: skip
    axes.text(max(places) + 0.9, -0.35, "sum of lengths", fontsize=9, va="center")
    axes.set_xlim(min(places) - 0.6, max(places) + 4.2)
    axes.set_ylim(plan.slots + 0.2, -0.6)
    ordered = sorted(places)
    axes.set_xticks(ordered, [str(place % plan.fabric.ranks) for place in ordered])
    axes.set_yticks([slot + 0.5 for slot in range(plan.slots)], range(plan.slots))
    axes.tick_params(length=0)
    axes.set_ylabel("Slot")
    axes.set_xlabel("Rank (the ring cut open opposite the owner)", x=0.4)
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)


def rotated(path: Path) -> None:
    """Draws all lightpaths of the rotated tree; each bar shows the block that it carries."""
    from matplotlib.figure import Figure

    plan = opticoll.plan("all_gather", SMALL, "relay_tree")
    columns = plan.columns()
    ranks, channels = plan.fabric.ranks, plan.fabric.option("wavelengths")
    with style.applied():
        figure = Figure(figsize=(10.4, 4.9), layout="constrained")
        grid = figure.subplots(1, 2, sharex=True, sharey=True)
        for way, axes in enumerate(grid):
            for index in (columns["direction"] == way).nonzero()[0]:
                one = {name: int(column[index]) for name, column in columns.items()}
                ends = (one["source"], one["destination"])
                near, far = ends if way == 0 else ends[::-1]
                top = one["slot"] * (channels + 0.35) + one["wavelength"]
                _bar(axes, near, (far - near) % ranks, top, one["chunk"], one["slot"], ranks)
            axes.set_title(f"{WAYS[way]}")
            axes.set_xlim(0, ranks)
            axes.set_ylim(plan.slots * (channels + 0.35), -0.2)
            axes.set_xticks(range(0, ranks + 1, 2), [*range(0, ranks, 2), 0])
            axes.set_xlabel("Rank")
            axes.grid(visible=False)
            axes.tick_params("y", length=0)
            axes.spines["left"].set_visible(False)
        middle = [slot * (channels + 0.35) + channels / 2 for slot in range(plan.slots)]
        grid[0].set_yticks(middle, [f"slot {slot}" for slot in range(plan.slots)])
        figure.suptitle(
            f"The tree rotated to all {ranks} owners: {channels} wavelengths (rows of a slot) are "
            "full; the number on a lightpath is its block",
            x=0.01,
            ha="left",
            fontsize=11,
        )
        save(figure, check_path(path))


def _bar(axes: Any, near: int, links: int, top: float, block: int, slot: int, ranks: int) -> None:
    """Draws a lightpath as a bar, in two parts if it crosses the cut; block 0 stands out."""
    own = block == 0
    parts = [(near, near + links)]
    if near + links > ranks:
        parts = [(near, ranks), (0, near + links - ranks)]
    for first, last in parts:
        axes.barh(
            top + 0.5,
            last - first - 0.1,
            0.86,
            first + 0.05,
            color=style.COLOURS[slot],
            alpha=1.0 if own else 0.22,
            linewidth=0,
        )
        axes.text((first + last) / 2, top + 0.52, str(block), ha="center", va="center_baseline",
                  fontsize=7.5, color="white" if own else style.INK,
                  fontweight="bold" if own else "normal")  # fmt: skip


def tree_cost(path: Path) -> None:
    """Draws the cost of a tree against the slots' channels, and the loads of a plan's slots."""
    from matplotlib.figure import Figure

    ranks, wavelengths = 1024, 64
    plan = opticoll.plan("all_gather", f"wdm_ring:ranks={ranks},wavelengths={wavelengths}",
                         "relay_tree")  # fmt: skip
    with style.applied():
        figure = Figure(figsize=(10.4, 4.3), layout="constrained")
        left, right = figure.subplots(1, 2)
        _crossings(left, ranks, (16, 64, 128))
        _loads(right, plan)
        save(figure, check_path(path))


def _crossings(axes: Any, ranks: int, wavelengths: Sequence[int]) -> None:
    depth = 128
    slots = np.arange(1, depth + 1)
    costs = np.array(_core.relay_tree_costs(ranks, depth))
    axes.plot(slots, costs, color=style.INK, linewidth=2.2)
    axes.annotate(f"C_S({ranks}): the fewest\nlinks that a tree needs", (1.25, costs[0] * 0.62),
                  xytext=(14, 0), textcoords="offset points", fontsize=9, va="center")  # fmt: skip
    for index, count in enumerate(wavelengths):
        colour = style.COLOURS[index]
        axes.plot(slots, 2 * count * slots, color=colour, linewidth=1.6)
        bound = int(slots[costs <= 2 * count * slots][0])
        axes.plot(bound, costs[bound - 1], "o", color=colour, markersize=7, zorder=3)
        # Above the curve where it is steep, below it where the other lines leave room.
        aside, way = ((4, -15), "left") if bound > 15 else ((-2, 8), "right")
        axes.annotate(f"S = {bound}", (bound, costs[bound - 1]), xytext=aside, ha=way, fontsize=9,
                      textcoords="offset points", color=colour, fontweight="bold")  # fmt: skip
        axes.annotate(f"w = {count}", (depth, 2 * count * depth), xytext=(5, 0), fontsize=9,
                      va="center", textcoords="offset points", color=colour)  # fmt: skip
    axes.annotate("2wS for", (depth, 2 * max(wavelengths) * depth), xytext=(5, 14), fontsize=9,
                  textcoords="offset points", va="center")  # fmt: skip
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(1, depth)
    axes.set_ylim(25, 5e5)
    axes.set_xticks([1, 2, 5, 10, 20, 50, 100], ["1", "2", "5", "10", "20", "50", "100"])
    axes.set_xticks([], minor=True)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,g}")
    axes.set_xlabel("Slots S")
    axes.set_ylabel("Links of one block's tree")
    axes.set_title(f"{ranks:,} ranks: the bound is where S slots offer a tree its links")


def _loads(axes: Any, plan: opticoll.Plan) -> None:
    """Links that the lightpaths of each slot take, per block, against the 2w on offer."""
    columns = plan.columns()
    ranks = plan.fabric.ranks
    ways = columns["direction"].astype(np.int64)
    ahead = (columns["destination"].astype(np.int64) - columns["source"]) % ranks
    links = np.where(ways == 0, ahead, ranks - ahead)
    offered = 2 * plan.fabric.option("wavelengths") * plan.fabric.option("fibres")
    base = np.zeros(plan.slots)
    for way, name in enumerate(WAYS):
        load = np.bincount(columns["slot"][ways == way], links[ways == way], plan.slots) / ranks
        axes.bar(range(plan.slots), load, 0.78, base, color=style.COLOURS[(0, 5)[way]], label=name)
        base += load
    axes.axhline(offered, color=style.INK, linestyle="--", linewidth=1.2)
    used = base.sum() / (offered * plan.slots)
    axes.annotate(f"2w = {offered}", (plan.slots - 0.5, offered), xytext=(0, 4), ha="right",
                  textcoords="offset points", fontsize=9)  # fmt: skip
    axes.set_ylim(0, 1.28 * offered)
    axes.set_xlim(-0.7, plan.slots - 0.3)
    axes.set_xticks(range(0, plan.slots, 2))
    axes.set_xlabel("Slot")
    axes.set_ylabel("Links of one block's tree")
    axes.grid(axis="x", visible=False)
    axes.legend(loc="upper left", ncols=2)
    axes.set_title(
        f"{ranks:,} ranks, {plan.fabric.option('wavelengths')} wavelengths: {plan.slots} slots, "
        f"{used:.1%} of the links used"
    )


STEP_LINES: dict[str, tuple[str, str]] = {
    "ring": ("Ring, N - 1", "-"),
    "neighbour_exchange": ("Neighbour exchange, N/2", "-"),
    "optree": ("OpTree, constructed", "-"),
    "optree_formula": ("OpTree, Theorem 1", ":"),
    "relay_tree": ("Relay tree", "-"),
    "bound": ("Lower bound", "--"),
}


def _step_colour(name: str) -> str:
    """Returns the colour of the algorithm; black for the bound."""
    own = name.removesuffix("_formula")
    return "#000000" if name == "bound" else str(style.algorithm_look(own)["color"])


def steps_over_ranks(rows: Rows, path: Path) -> None:
    """Slots against ranks for one number of wavelengths."""
    from matplotlib.figure import Figure

    with style.applied():
        figure = Figure(figsize=(8.6, 5.0), layout="constrained")
        axes = figure.subplots()
        for name, (label, line) in STEP_LINES.items():
            colour = _step_colour(name)
            points = [(int(row["ranks"]), int(row[name])) for row in rows if row[name]]
            marker = {"relay_tree": "o", "optree": "s"}.get(name)
            axes.plot(*zip(*points, strict=True), color=colour, linestyle=line,
                      marker=marker, markersize=4.5,
                      linewidth=2.4 if name == "relay_tree" else 1.5)  # fmt: skip
            lift = {"optree": -5, "optree_formula": 6, "bound": -7, "relay_tree": 7}.get(name, 0)
            axes.annotate(f"{label}: {points[-1][1]:,}", points[-1], xytext=(7, lift), va="center",
                          textcoords="offset points", fontsize=9, color=colour,
                          bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8})  # fmt: skip
        ticks = [int(row["ranks"]) for row in rows if int(row["ranks"]).bit_count() == 1]
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xticks(ticks, [str(tick) for tick in ticks])
        axes.set_xlim(ticks[0], 5.5 * ticks[-1])
        axes.spines["bottom"].set_bounds(ticks[0], ticks[-1])
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,g}")
        axes.set_xlabel("Ranks N", x=0.4)
        axes.set_ylabel("Steps (time slots)")
        axes.set_title(f"all_gather on a WDM ring, {rows[0]['wavelengths']} wavelengths")
        save(figure, check_path(path))


def time_over_size(rows: Rows, collective: str, path: Path) -> None:
    """Draws time against size under each policy, and the same in multiples of the bound."""
    from matplotlib.figure import Figure

    with style.applied():
        figure = Figure(figsize=(12.4, 6.3), layout="constrained")
        grid = figure.subplots(2, len(POLICY_NAMES), sharex=True, sharey="row",
                               height_ratios=(1.25, 1))  # fmt: skip
        for column, (policy, title) in enumerate(POLICY_NAMES.items()):
            own = [row for row in rows
                   if (row["collective"], row["policy"]) == (collective, policy)]  # fmt: skip
            _policy_panels(grid[0, column], grid[1, column], own)
            grid[0, column].set_title(title, fontsize=9.5)
        figure.get_layout_engine().set(wspace=0.05)
        sizes = sorted({int(row["size_bytes"]) for row in rows})
        for axes in grid.flat:
            axes.set_xscale("log", base=2)
            axes.set_yscale("log")
            axes.set_xticks(sizes[::5], [style.size_text(size) for size in sizes[::5]])
            axes.set_xticks([], minor=True)
        for axes in grid[1]:
            axes.set_xlabel("Block of one rank" if collective == "all_gather" else "Vector")
        grid[0, 0].yaxis.set_major_formatter(lambda value, _: style.time_text(value))
        grid[1, 0].yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        grid[1, 0].set_ylim(0.8, 2000)
        grid[0, 0].set_ylabel("Time")
        grid[1, 0].set_ylabel("Time / lower bound")
        handles, labels = grid[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=4)
        figure.suptitle(
            f"{collective}, 1,024 ranks, 64 wavelengths, rate 40 Gb/s, reconfiguration R = 25 µs; "
            "all plans verified",
            x=0.01,
            ha="left",
            fontsize=11,
        )
        save(figure, check_path(path))


def _policy_panels(above: Any, below: Any, rows: Rows) -> None:
    """Times above, times over the bound below."""
    assert all(row["verified"] == "true" for row in rows)
    bound = {int(row["size_bytes"]): float(row["bound_time_s"]) for row in rows}
    series: dict[str, dict[int, float]] = {}
    for row in rows:
        own = series.setdefault(row["algorithm"], {})
        own[int(row["size_bytes"])] = float(row["time_s"])
    chosen = series.pop("auto")
    series.pop("relay_tree", None)
    best = {size: min(times[size] for times in series.values()) for size in bound}
    for number, times in enumerate(series.values()):
        _pair(above, below, times, bound, color=style.FAINT, linewidth=1.0,
              label=None if number else "named algorithms, one line for each")  # fmt: skip
    _pair(above, below, best, bound, color=style.COLOURS[1], linewidth=1.8,
          label="the fastest named algorithm at each size")  # fmt: skip
    _pair(above, below, chosen, bound, color=style.COLOURS[0], linewidth=2.2, marker="o",
          markersize=3.6, label="opticoll, auto")  # fmt: skip
    _pair(above, below, bound, bound, color=style.INK, linewidth=1.2, linestyle="--",
          label="lower bound")  # fmt: skip


def _pair(
    above: Any, below: Any, times: Mapping[int, float], bound: Mapping[int, float], **look: Any
) -> None:
    above.plot(list(times), list(times.values()), **look)
    below.plot(list(times), [time / bound[size] for size, time in times.items()], **look)
