"""Figures that compare algorithms: time over size, wavelengths or ranks, or bars of one case."""

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from opticoll.outputs import break_even
from opticoll.outputs.fabric_names import fabric_labels
from opticoll.outputs.layout import format_rate
from opticoll.plot import style
from opticoll.plot.output import (
    PlotError,
    check_path,
    draw_in,
    headed,
    is_axes,
    name_at_ends,
    save_pages,
    sheet,
)
from opticoll.plot.panels import panels as panels_of
from opticoll.plot.reconfiguration import reconfiguration

Row = Mapping[str, Any]

# Columns that may vary between rows, in the order in which they become the horizontal axis.
_AXES = {"size_bytes": "Size", "wavelengths": "Wavelengths per directed fibre", "ranks": "Ranks"}
_NEEDED = ("algorithm", "ranks", "size_bytes", "steps", "time_s")
_MAX_PANELS = 12  # maximum number of panels on one page
_MIN_DISTANCE = 0.085  # minimum distance between two labels, as a share of the axis' length
_MAX_NAMED_ALGORITHMS = 6
"""Maximum number of algorithms with a colour and a name; others are grey."""
_BOUND = "lower bound"
_UNPROVED = "not verified"
_OTHERS = {"color": style.FAINT, "linewidth": 1.0, "marker": "", "zorder": 1.5}
"""Line style of algorithms without a colour."""


def comparison(rows: Sequence[Row], path: str | os.PathLike[str] | Axes | None) -> list[Path]:
    """Draws the rows of `opticoll compare --json` (seconds, bytes); returns the paths.

    Curves: if sizes, wavelengths or numbers of ranks vary, there is a curve per algorithm. The
    first of these columns that varies is the horizontal axis. The other varying columns become
    panels. More than 12 panels become several pages: one .pdf, or files such as `times-1.svg` and
    `times-2.svg`. If there are more than six algorithms, only `auto`, the first algorithm and the
    most frequent winners have a colour.

    Bars: if sizes, wavelengths and numbers of ranks do not vary, bars show the steps and times of
    the algorithms. The fastest algorithm comes first, and each fabric has its own panels. A marker
    shows the number of steps that a paper claims.

    Map: if reconfiguration times vary, `plot.reconfiguration` draws curves or a map.

    A dashed line is a lower bound on the time. If an algorithm such as `auto` chooses another one,
    the label names both. If `path` is matplotlib axes, the figure is drawn in these axes and must
    have one panel.

    Raises PlotError for no rows, for rows without a required value, and for several policies.
    """
    if is_axes(path):
        draw_in(path, lambda: _figures(rows))
        return []
    target = check_path(path)
    with style.applied():
        return save_pages(_figures(rows), target)


def _figures(rows: Sequence[Row]) -> list[Figure]:
    _check(rows)
    over_times, _ = break_even.apart(rows)
    if over_times:
        return reconfiguration(over_times, _heading(rows))
    rows = _with_machines(rows)
    varying = [key for key in _AXES if len({row[key] for row in rows if row[key] is not None}) > 1]
    if len({row["machine"] for row in rows}) > 1:
        varying = [key for key in varying if all(row[key] is not None for row in rows)]
        varying += ["machine"] if varying else []
    return _lines(rows, varying) if varying else [_bars(rows)]


def _with_machines(rows: Sequence[Row]) -> list[Row]:
    """Adds to each row the fabric's short name, which omits the options `ranks`, `wavelengths`."""
    spellings = [str(row.get("fabric", "")) for row in rows]
    labels = fabric_labels(spellings, ("ranks", "wavelengths"))
    return [
        {**row, "machine": labels[spelling]} for row, spelling in zip(rows, spellings, strict=True)
    ]


def _check(rows: Sequence[Row]) -> None:
    if not rows:
        raise PlotError("there is nothing to draw: the comparison has no rows")
    for number, row in enumerate(rows):
        missing = [key for key in _NEEDED if row.get(key) is None]
        if missing:
            raise PlotError(f"row {number} of the comparison lacks `{missing[0]}`")
    families: dict[str, set[str]] = {}
    for row in rows:
        families.setdefault(str(row.get("fabric")).partition(":")[0], set()).add(_rule(row))
    policies = sorted(next((rules for rules in families.values() if len(rules) > 1), set()))
    if policies:
        raise PlotError(
            f"times under different policies do not compare ({', '.join(policies)}): "
            "draw one figure per policy"
        )


def _rule(row: Row) -> str:
    """Returns a row's policy, or on electrical fabrics its start rule."""
    if row.get("policy") is not None:
        return f"policy {row['policy']}"
    return f"start {row.get('start')}"


def _names(rows: Sequence[Row]) -> dict[str, str]:
    """Returns the name of each algorithm in the figure: a label, then options or the choice."""
    names = {}
    for row in rows:
        requested, collective = str(row["algorithm"]), row.get("collective")
        own_label = row.get("label") if ":" not in requested else None
        names[requested] = str(own_label or style.algorithm_name(requested, collective))
    for requested in names:
        rows_of_algorithm = [row for row in rows if row["algorithm"] == requested]
        chosen = list(
            dict.fromkeys(str(row.get("chosen") or requested) for row in rows_of_algorithm)
        )
        if len(chosen) > 1:
            names[requested] += f": {len(chosen)} plans"
        elif chosen != [requested]:
            name = style.algorithm_name(chosen[0], rows_of_algorithm[0].get("collective"))
            # If only the options were chosen, the label already names the algorithm.
            same = chosen[0].partition(":")[0] == requested
            names[requested] = name if same else f"{names[requested]}: {name}"
    return names


def _value_text(key: str, value: Any) -> str:
    match key:
        case "size_bytes":
            return style.size_text(value)
        case "wavelengths":
            return style.counted(value, "wavelength")
        case "machine":
            return str(value)
        case _:
            return style.counted(value, "rank")


def _heading(rows: Sequence[Row]) -> str:
    """Returns a line with the properties that all rows share."""
    parts = [str(rows[0]["collective"])] if rows[0].get("collective") else []
    for key in ("ranks", "wavelengths", "size_bytes"):
        if len({row[key] for row in rows}) == 1 and rows[0][key] is not None:
            parts.append(_value_text(key, rows[0][key]))
            if key == "size_bytes" and rows[0].get("size_convention"):
                parts[-1] += f" ({rows[0]['size_convention']})"
    rules = dict.fromkeys(_rule(row) for row in rows)
    parts += rules if len(rules) == 1 else []
    stated = [style.stated_options(str(row.get("fabric", ""))) for row in rows]
    parts += [option for option in stated[0] if all(option in other for other in stated)]
    return ", ".join(parts)


def _machine_text(rows: Sequence[Row], machine: str) -> str:
    """Returns a fabric's name for a title, with rule and bandwidth if these differ in `rows`."""
    machine_row = next(row for row in rows if row["machine"] == machine)
    parts = []
    if len({_rule(row) for row in rows}) > 1:
        parts.append(_rule(machine_row))
    if len({row.get("injection_bandwidth") for row in rows}) > 1:
        parts.append(f"{format_rate(machine_row['injection_bandwidth'])} per rank")
    return "\n".join([machine, *([", ".join(parts)] if parts else [])])


def _few(rows: Sequence[Row], names: Iterable[str]) -> list[str]:
    """Returns the algorithms that get a colour, in the order of `names`.

    If there are too many algorithms, only `auto`, the first algorithm, and the most frequent
    winners get a colour.
    """
    names = list(names)
    fastest: dict[tuple[Any, ...], Row] = {}
    for row in rows:
        case = tuple(row[key] for key in (*_AXES, "machine"))
        if row["algorithm"] != "auto" and row.get("verified") is not False:
            fastest_row = fastest.setdefault(case, row)
            fastest[case] = row if row["time_s"] < fastest_row["time_s"] else fastest_row
    leads = Counter(row["algorithm"] for row in fastest.values())
    ranked = sorted(names, key=lambda name: (name not in ("auto", names[0]), -leads[name]))
    return [name for name in names if name in ranked[:_MAX_NAMED_ALGORITHMS]]


def _looks(spellings: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Returns colour, marker and line style by algorithm; the colour depends on the name."""
    ordered = sorted(spellings, key=len)
    return dict(zip(ordered, style.algorithm_looks(ordered), strict=True))


def _lines(rows: Sequence[Row], varying: list[str]) -> list[Figure]:
    """Returns one figure per page of panels; the panels show curves."""
    axis, *others = varying
    panels: dict[tuple[Any, ...], list[Row]] = {}
    machines = list(dict.fromkeys(row["machine"] for row in rows))
    placed = {"machine": machines.index}
    for row in sorted(rows, key=lambda row: [placed.get(key, int)(row[key]) for key in others]):
        panels.setdefault(tuple(row[key] for key in others), []).append(row)
    titled = []
    for values, panel in panels.items():
        texts = (_value_text(key, value) for key, value in zip(others, values, strict=True))
        machine = panel[0]["machine"]
        shown = {machine: _machine_text(rows, machine)}
        titled.append((", ".join(shown.get(text, text) for text in texts), panel))
    pages = [titled[start : start + _MAX_PANELS] for start in range(0, len(titled), _MAX_PANELS)]
    figures = [_page(rows, axis, page) for page in pages]
    # Panels have the same limits on all pages.
    limits = [figure.axes[0].get_ylim() for figure in figures]
    for number, figure in enumerate(figures, 1):
        figure.axes[0].set_ylim(min(low for low, _ in limits), max(high for _, high in limits))
        heading = _heading(rows)
        if len(figures) > 1:
            heading += f", page {number} of {len(figures)}"
        headed(figure, heading)
    return figures


def _page(rows: Sequence[Row], axis: str, panels: list[tuple[str, list[Row]]]) -> Figure:
    names = _names(rows)
    few = _few(rows, names)
    columns = 2 if len(panels) == 4 else min(len(panels), 3)
    ticks = sorted({row[axis] for row in rows})
    alone = len(panels) == 1
    size, around = ((10.0, 5.4), (0.0, 0.0)) if alone else ((4.4, 3.3), (0.4, 1.2))
    figure, grid = panels_of(len(panels), columns, size, around, sharex=True, sharey=True)
    for axes, (title, panel) in zip(grid, panels, strict=True):
        _line_panel(axes, panel, axis, names, few)
        _label_values(axes, axis, ticks)
        axes.set_title(title)
        axes.label_outer()
    for below in range(max(0, len(panels) - columns), len(panels)):
        grid[below].tick_params(labelbottom=True)
        convention = rows[0].get("size_convention") if axis == "size_bytes" else None
        grid[below].set_xlabel(_AXES[axis] + (f" ({convention})" if convention else ""))
    handles: dict[str, Any] = {}
    for axes in grid:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    last = [label for label in handles if label not in [names[spelled] for spelled in few]]
    for label in last:
        handles[label] = handles.pop(label)
    if alone:
        # Each coloured curve has its name at its end.
        handles = {label: handles[label] for label in last if label != _BOUND}
        name_at_ends(grid[0], [*(names[spelled] for spelled in few), _BOUND])
    if alone and handles:
        grid[0].legend(handles.values(), handles.keys(), loc="best")
    elif handles:
        figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=columns)
    return figure


def _line_panel(
    axes: Axes, rows: Sequence[Row], axis: str, names: dict[str, str], few: Sequence[str]
) -> None:
    """Draws a curve per algorithm; algorithms in `few` are coloured and above the others."""
    others = style.counted(len(names) - len(few), "other algorithm")
    ordered = {spelled: others for spelled in names if spelled not in few}
    ordered |= {spelled: names[spelled] for spelled in few}
    looks = _looks(few) | dict.fromkeys(ordered.keys() - {*few}, _OTHERS)
    for index, (spelled, label) in enumerate(ordered.items(), len(few) - len(names)):
        curve = sorted(
            (row for row in rows if row["algorithm"] == spelled), key=lambda row: float(row[axis])
        )
        if not curve:
            continue
        unproved = [row for row in curve if row.get("verified") is False]
        axes.plot(
            [row[axis] for row in curve],
            [row["time_s"] for row in curve],
            label=label,
            **(style.thinner(max(index, 0)) | looks[spelled]),
        )
        axes.plot(
            [row[axis] for row in unproved],
            [row["time_s"] for row in unproved],
            linestyle="none",
            marker="x",
            markersize=11,
            markeredgewidth=1.6,
            color=style.INK,
            label=_UNPROVED if unproved else None,
        )
    bound = _bound(rows, axis)
    if bound:
        axes.plot(*zip(*bound, strict=True), color=style.INK, linestyle="--", label=_BOUND)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_ylabel("Time")
    axes.yaxis.set_major_formatter(lambda value, _: style.time_text(value))
    style.label_between_decades(axes, style.time_text)


def _bound(rows: Sequence[Row], axis: str) -> list[tuple[Any, float]]:
    """Returns, for each value of column `axis`, the greatest lower bound for any algorithm."""
    greatest: dict[Any, float] = {}
    for row in rows:
        if row.get("bound_time_s") is not None:
            value = float(row["bound_time_s"])
            greatest[row[axis]] = max(value, greatest.get(row[axis], 0.0))
    return sorted(greatest.items())


def _label_values(axes: Axes, axis: str, values: list[Any]) -> None:
    """Labels `values` on the horizontal axis, except those too close to another label."""
    shown = [values[index] for index in style.spread(values, _MIN_DISTANCE)]
    text = style.size_texts(shown) if axis == "size_bytes" else [str(value) for value in shown]
    # Rotated labels end at their tick.
    turned: dict[str, Any] = {"rotation": 30, "ha": "right", "rotation_mode": "anchor"}
    axes.set_xticks(shown, text, **(turned if axis == "size_bytes" else {}))
    axes.set_xticks([], minor=True)


def _bars(rows: Sequence[Row]) -> Figure:
    """Draws bars of steps and times, with a row of panels for each fabric."""
    machines: dict[str, list[Row]] = {}
    for row in sorted(rows, key=lambda row: (float(row["time_s"]), str(row["algorithm"]))):
        machines.setdefault(row["machine"], []).append(row)
    # Fabrics stay in the order in which they were compared.
    machines = {row["machine"]: machines[row["machine"]] for row in rows}
    heights = [len(machine_rows) + 1 for machine_rows in machines.values()]
    figure = sheet(10.0, 1.1 + 0.42 * sum(heights))
    grid = figure.subplots(
        len(machines), 2, sharex="col", sharey="row", squeeze=False, height_ratios=heights
    )
    for panels, (machine, machine_rows) in zip(grid, machines.items(), strict=True):
        _bar_panels(panels, machine_rows, rows)
        if len(machines) > 1:
            panels[0].set_title(_machine_text(rows, machine))
    headed(figure, _heading(rows))
    figure.legend(handles=_bar_legend(rows), loc="outside lower center", ncols=4)
    return figure


def _bar_panels(panels: Sequence[Axes], ordered: Sequence[Row], rows: Sequence[Row]) -> None:
    """Draws the plans of one fabric as bars: steps on the left, times on the right."""
    left, right = panels
    places = range(len(ordered))
    looks = _looks({str(row["algorithm"]) for row in rows})
    colours = [
        style.GREY if row.get("verified") is False else looks[str(row["algorithm"])]["color"]
        for row in ordered
    ]
    hatches = ["///" if row.get("verified") is False else "" for row in ordered]
    left.barh(places, [row["steps"] for row in ordered], 0.62, color=colours, hatch=hatches)
    for place, row in zip(places, ordered, strict=True):
        # Write the number to the right of both bar and marker.
        end = max(float(row["steps"]), float(row.get("claimed_steps") or 0))
        _value(left, place, end, f"{row['steps']:,}")
    claimed = [(count, place) for place, row in enumerate(ordered) for count in _claims([row])]
    if claimed:
        left.scatter(
            [count for count, _ in claimed],
            [place for _, place in claimed],
            marker="D",
            s=34,
            facecolor="white",
            edgecolor=style.INK,
            linewidth=1.6,
            zorder=3,
            clip_on=False,
        )
    factor, unit = style.time_unit(max(float(row["time_s"]) for row in rows))
    times = [float(row["time_s"]) / factor for row in ordered]
    right.barh(places, times, 0.62, color=colours, hatch=hatches)
    for place, row in zip(places, ordered, strict=True):
        _value(right, place, times[place], style.time_text(float(row["time_s"])))
    if bounds := _bounds(ordered):
        right.axvline(max(bounds) / factor, color=style.INK, linestyle="--", linewidth=1.2)
    left.set_yticks(
        places,
        [
            _names([row])[str(row["algorithm"])]
            + (" (not verified)" if row.get("verified") is False else "")
            for row in ordered
        ],
    )
    left.set_ylim(len(ordered) - 0.4, -0.6)
    _scale(left, [float(row["steps"]) for row in rows], _claims(rows))
    _scale(
        right,
        [float(row["time_s"]) / factor for row in rows],
        [bound / factor for bound in _bounds(rows)],
    )
    left.set_xlabel("Steps (time slots)")
    right.set_xlabel(f"Time ({unit})")
    for axes in panels:
        axes.label_outer()
        axes.grid(axis="y", visible=False)
        axes.tick_params("y", length=0)


def _claims(rows: Sequence[Row]) -> list[float]:
    return [float(row["claimed_steps"]) for row in rows if row.get("claimed_steps") is not None]


def _bounds(rows: Sequence[Row]) -> list[float]:
    return [float(row["bound_time_s"]) for row in rows if row.get("bound_time_s") is not None]


def _value(axes: Axes, place: int, value: float, text: str) -> None:
    axes.annotate(
        text,
        (value, place),
        xytext=(8, 0),
        textcoords="offset points",
        va="center",
        fontsize=9,
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8},
    )


def _scale(axes: Axes, bars: list[float], marks: list[float]) -> None:
    """Makes an axis logarithmic if bars differ by over a factor of 100; leaves room for numbers."""
    positive = [value for value in bars if value > 0]
    shown = positive + [value for value in marks if value > 0]
    if positive and max(positive) > 100 * min(positive):
        axes.set_xscale("log")
        axes.set_xlim(min(shown) / 2, max(shown) * 4)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,g}")
    else:
        axes.set_xlim(0, 1.22 * max(shown, default=1.0))
        axes.locator_params("x", nbins=6)


def _bar_legend(rows: Sequence[Row]) -> list[Any]:
    handles: list[Any] = []
    if any(row.get("verified") for row in rows):
        handles.append(
            Patch(facecolor="white", edgecolor=style.INK, label="constructed and verified")
        )
    elif any(row.get("verified") is None for row in rows):
        handles.append(Patch(facecolor="white", edgecolor=style.INK, label="constructed"))
    if any(row.get("verified") is False for row in rows):
        handles.append(Patch(facecolor=style.GREY, hatch="///", label=_UNPROVED))
    if _claims(rows):
        handles.append(
            Line2D(
                [],
                [],
                marker="D",
                linestyle="none",
                markerfacecolor="white",
                markeredgecolor=style.INK,
                markeredgewidth=1.6,
                label="steps claimed in the paper",
            )
        )
    if _bounds(rows):
        handles.append(Line2D([], [], color=style.INK, linestyle="--", label=_BOUND))
    return handles
