"""Fastest plans by the reconfiguration time of a fabric: curves, or a map over sizes."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import sqrt
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from opticoll.outputs import break_even
from opticoll.outputs.break_even import Lead
from opticoll.outputs.layout import PICOSECONDS
from opticoll.plot import style
from opticoll.plot.output import headed, sheet

Row = Mapping[str, Any]

MIN_MAP_SIZES = 3
"""Minimum number of sizes for which a map replaces the curves."""

ZERO_TIME_S = 1e-12
"""Position in seconds of a reconfiguration time of 0 on the logarithmic axis."""

TIME_LABEL = "Reconfiguration time"


def reconfiguration(cases: Sequence[Sequence[Row]], heading: str) -> list[Figure]:
    """Returns one figure per fabric: a map for three or more sizes; otherwise a panel per size.

    Each entry of `cases` has the rows of one fabric and one size.
    """
    fabrics: dict[str, list[Sequence[Row]]] = {}
    for rows in cases:
        fabrics.setdefault(break_even.without_time(rows[0]["fabric"]), []).append(rows)
    figures = []
    for of_fabric in fabrics.values():
        of_fabric.sort(key=lambda case: int(case[0]["size_bytes"]))
        figure = _map(of_fabric) if len(of_fabric) >= MIN_MAP_SIZES else _curves(of_fabric)
        headed(figure, f"{heading}\n{break_even.fabric_words(of_fabric[0][0]['fabric'])}")
        figures.append(figure)
    return figures


def _times(leading: Sequence[Lead]) -> list[float]:
    return [max(lead.at / PICOSECONDS, ZERO_TIME_S) for lead in leading]


def _curves(cases: Sequence[Sequence[Row]]) -> Figure:
    figure = sheet(2.6 + 4.8 * len(cases), 4.2)
    panels = figure.subplots(1, len(cases), sharey=True, squeeze=False)[0]
    for axes, rows in zip(panels, cases, strict=True):
        _panel(axes, rows)
        if len(cases) > 1:
            axes.set_title(style.size_text(rows[0]["size_bytes"]))
        axes.label_outer()
    handles: dict[str, Any] = {}
    for axes in panels:
        handles |= dict(zip(*axes.get_legend_handles_labels()[::-1], strict=True))
    figure.legend(handles.values(), handles.keys(), loc="outside right center")
    return figure


def _panel(axes: Axes, rows: Sequence[Row]) -> None:
    """Draws the shortest time of each kind of plan, and marks the break-evens."""
    leading = break_even.leads(rows)
    first = {lead.kind: lead.row["chosen"] for lead in reversed(leading)}
    kinds: dict[str, dict[float, float]] = {}
    for row in rows:
        if row["verified"]:
            times = kinds.setdefault(break_even.kind(row), {})
            time_s = max(row["fabric_reconfiguration_s"], ZERO_TIME_S)
            times[time_s] = min(times.get(time_s, float("inf")), row["time_s"])
    others = "other algorithms"
    for name, fastest in kinds.items():
        if name not in first:
            axes.plot(*_points(fastest), color=style.GREY, linewidth=0.8, alpha=0.6, label=others)
            others = "_nolegend_"
    for index, name in enumerate(dict.fromkeys(lead.kind for lead in leading)):
        look = {"color": style.COLOURS[index % len(style.COLOURS)]}
        label = style.algorithm_name(name, rows[0].get("collective"))
        axes.plot(*_points(kinds[name]), label=label, **(style.thinner(index) | look))
    bound = {
        max(row["fabric_reconfiguration_s"], ZERO_TIME_S): row["bound_time_s"]
        for row in rows
        if row.get("bound_time_s") is not None
    }
    if bound:
        axes.plot(*_points(bound), color=style.GREY, linestyle="--", label="lower bound")
    for lead in break_even.break_evens(leading):
        point = (lead.at / PICOSECONDS, lead.row["time_s"])
        axes.plot(*point, marker="o", color=style.INK, zorder=4, linestyle="none")
        axes.annotate(
            style.time_text(point[0]),
            point,
            xytext=(-4, 8),
            textcoords="offset points",
            ha="right",
            fontsize=9,
        )
    axes.set_yscale("log")
    # Plans far slower than the fastest kinds would compress the scale, so they are cut off.
    slowest = max(lead.row["time_s"] for lead in leading)
    least = min([*bound.values(), *(lead.row["time_s"] for lead in leading)])
    axes.set_ylim(0.8 * least, 6 * slowest)
    axes.set_xscale("log")
    _time_axis(axes.xaxis)
    axes.set_xlabel(TIME_LABEL)
    axes.set_ylabel("Time")
    axes.yaxis.set_major_formatter(lambda value, _: style.time_text(value))
    style.label_between_decades(axes, style.time_text)


def _points(values: Mapping[float, float]) -> tuple[list[float], list[float]]:
    ordered = sorted(values.items())
    return [at for at, _ in ordered], [value for _, value in ordered]


def _time_axis(axis: Any) -> None:
    axis.set_major_formatter(lambda value, _: style.time_text(value))


def _map(cases: Sequence[Sequence[Row]]) -> Figure:
    """Draws the fastest kind by size (to the right) and by reconfiguration time (upwards)."""
    figure = sheet(8.6, 5.8)
    axes = figure.subplots()
    sizes = [float(rows[0]["size_bytes"]) for rows in cases]
    edges = _edges(sizes)
    handles: dict[str, Any] = {}
    kinds: list[str] = []
    for rows, (left, right) in zip(cases, pairwise(edges), strict=True):
        leading = break_even.leads(rows)
        starts = _times(leading)
        kinds = list(dict.fromkeys([*kinds, *(lead.kind for lead in leading)]))
        for span in _spans(leading):
            low = starts[span.start]
            high = starts[min(span.stop, len(starts) - 1)]
            lead = leading[span.start]
            colour = style.COLOURS[kinds.index(lead.kind) % len(style.COLOURS)]
            patch = axes.bar(
                left, high - low, right - left, bottom=low, align="edge",
                color=style.shaded(colour, 0.35), edgecolor="white", linewidth=0.8,
            )  # fmt: skip
            name = style.algorithm_name(lead.kind, rows[0].get("collective"))
            handles.setdefault(name, patch)
            changes = lead.row.get("reconfigurations")
            if changes is not None and high > 1.9 * low:
                axes.text(
                    sqrt(left * right), sqrt(low * high), str(changes),
                    ha="center", va="center", fontsize=8,
                )  # fmt: skip
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xlim(edges[0], edges[-1])
    times = [time for rows in cases for time in _times(break_even.leads(rows))]
    axes.set_ylim(min(times), max(times))
    axes.set_xticks(sizes, style.size_texts(sizes), rotation=30, ha="right")
    axes.set_xticks([], minor=True)
    axes.grid(visible=False)
    _time_axis(axes.yaxis)
    axes.set_xlabel(f"Size ({cases[0][0].get('size_convention', 'bytes')})")
    axes.set_ylabel(TIME_LABEL)
    figure.legend(
        handles.values(), handles.keys(), loc="outside lower center", ncols=3,
        title="the fastest plan; numbers: how often the fabric is reconfigured",
    )  # fmt: skip
    return figure


def _edges(sizes: Sequence[float]) -> list[float]:
    """Returns borders between sizes: their geometric means, and an outer border at each end."""
    between = [sqrt(low * high) for low, high in pairwise(sizes)]
    return [sizes[0] ** 2 / between[0], *between, sizes[-1] ** 2 / between[-1]]


def _spans(leading: Sequence[Lead]) -> list[range]:
    """Returns ranges of indices of plans with equal kind and number of reconfigurations."""

    pairs = enumerate(pairwise(leading), 1)
    starts = [0, *(place for place, (before, now) in pairs if before.plan != now.plan)]
    return [range(start, end) for start, end in pairwise([*starts, len(leading)])]
