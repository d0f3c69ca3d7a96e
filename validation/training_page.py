"""Writes `docs/training-validation.md`: measured times and memory of training, and the predictions.

    python validation/training_page.py              # fills the table and draws the figure

Each set of measurements is a line of the table and a panel of the figure. The tables and their
sources are in `validation/training`.
"""

from __future__ import annotations

import argparse
import functools
import math
import re
import statistics
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import training_times

from opticoll.inputs.layer_times import read
from opticoll.plot import style
from opticoll.plot.output import check_path, save

DOCS = Path(__file__).parents[1] / "docs"
PAGE = DOCS / "training-validation.md"
FIGURE = DOCS / "figures" / "training_validation.svg"
TABLE = re.compile(r"(?<=<!-- errors -->\n).*?(?=<!-- end of errors -->)", re.DOTALL)

Point = tuple[float, float]
"""Measured and predicted value."""


@dataclass(frozen=True)
class Set:
    """Set of measurements: its name, the unit of its values, and what was fitted to it."""

    name: str
    unit: str
    fitted: str
    points: Callable[[], Iterable[Point]]


def _layers(*names: str) -> list[Point]:
    return [
        (row.time_us / 1e6, row.work.seconds("h100"))
        for name in names
        for row in read(training_times.TABLES / f"{name}.csv")
    ]


def _networks() -> list[Point]:
    sums: dict[str, Point] = {}
    for row in read(training_times.TABLES / "h100_networks.csv"):
        measured, predicted = sums.get(row.case, (0.0, 0.0))
        seconds = row.work.seconds("h100")
        sums[row.case] = measured + row.time_us / 1e6, predicted + seconds
    return list(sums.values())


def _times(rows: Iterable[training_times.Row]) -> list[Point]:
    return [row.times for row in rows]


@functools.cache
def _b200() -> list[training_times.Row]:
    return list(training_times.b200())


def _memory() -> list[Point]:
    # Iterations with other numbers of micro-batches need the same memory.
    memory = {(row.measured_gib, row.predicted_gib) for row in _b200()}
    return sorted((a, b) for a, b in memory if a is not None and b is not None)


def _figure_1() -> list[Point]:
    """Yields the activations in GiB that Korthikanti et al. computed, Figure 1."""
    printed = {"22B": (59.25, 9.56), "175B": (66.84, 12.35)}
    printed |= {"530B": (114.02, 23.08), "1T": (131.25, 26.56)}
    points = []
    for name, gibibytes in printed.items():
        for practice, gib in zip(training_times.ACTIVATIONS, gibibytes, strict=True):
            row = training_times.megatron(name, practice)
            points.append((gib, (row.memory.activations_bytes or 0) / 2**30))
    return points


SETS = (
    Set(
        "H100, transformer parts",
        "s",
        "all constants of `h100`",
        lambda: _layers("h100_blocks", "h100_output_layers"),
    ),
    Set("H100, products", "s", "all constants of `h100`", lambda: _layers("h100_products")),
    Set("H100, image networks", "s", "all constants of `h100`", _networks),
    Set(
        "A100, vTrain, one server",
        "s",
        "five constants of `a100`",
        lambda: _times(training_times.a100("single")),
    ),
    Set(
        "A100, vTrain, 64 to 512 GPUs",
        "s",
        "nothing",
        lambda: _times(training_times.a100("multi")),
    ),
    Set(
        "A100, Korthikanti et al.",
        "s",
        "nothing",
        lambda: _times(training_times.korthikanti()),
    ),
    Set(
        "B200, SimuMax",
        "s",
        "`products` of `b200`, to 12 rows",
        lambda: _times(_b200()),
    ),
    Set("Memory, Korthikanti et al.", "GiB", "nothing", _figure_1),
    Set("Memory, B200, SimuMax", "GiB", "nothing", _memory),
)


def table(sets: Mapping[Set, list[Point]]) -> str:
    """Returns the table of errors."""
    head = "| measurements | of | points | mean error | worst | within 10 % | rank correlation |"
    head += " fitted to them |\n|---|---|---|---|---|---|---|---|\n"
    return head + "".join(f"{_line(entry, points)}\n" for entry, points in sets.items())


def _line(entry: Set, points: list[Point]) -> str:
    errors = [abs(predicted / measured - 1) for measured, predicted in points]
    within = sum(error <= 0.1 for error in errors) / len(errors)
    rank = training_times.rank_correlation(points)
    what = "memory" if entry.unit == "GiB" else "time"
    name = entry.name.removeprefix("Memory, ")
    return (
        f"| {name} | {what} | {len(points)} | {statistics.fmean(errors):.1%} | "
        f"{max(errors):.1%} | {within:.0%} | {rank:.3f} | {entry.fitted} |"
    ).replace("%", " %")


def draw(sets: Mapping[Set, list[Point]], path: Path) -> None:
    """Draws predicted over measured values, a panel for each set."""
    from matplotlib.figure import Figure

    with style.applied():
        figure = Figure(figsize=(10.4, 10.4), layout="constrained")
        for panel, (entry, points) in zip(figure.subplots(3, 3).flat, sets.items(), strict=True):
            values = [value for point in points for value in point]
            ends = [min(values) / 1.3, max(values) * 1.3]
            panel.fill_between(
                ends,
                [0.9 * end for end in ends],
                [1.1 * end for end in ends],
                color=style.FAINT,
                linewidth=0,
            )
            panel.plot(ends, ends, color=style.GREY, linewidth=0.8)
            small = len(points) > 100
            panel.plot(
                *zip(*points, strict=True),
                linestyle="",
                marker="o",
                markersize=2.0 if small else 4.0,
                alpha=0.5 if small else 0.8,
                color=style.COLOURS[2 if entry.unit == "GiB" else 0],
            )
            panel.set(xscale="log", yscale="log", xlim=ends, ylim=ends, aspect="equal")
            panel.set_title(f"{entry.name} ({len(points)})")
            for axis, label in (panel.xaxis, "measured"), (panel.yaxis, "predicted"):
                axis.set_label_text(f"{label}, {entry.unit}")
                _ticks(axis, ends)
        save(figure, check_path(path))


def _ticks(axis: object, ends: list[float]) -> None:
    """Labels powers of ten or, on a short axis, 1, 2 and 5 times powers of ten."""
    from matplotlib.axis import Axis
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    assert isinstance(axis, Axis)
    short = math.log10(ends[1] / ends[0]) < 2.5
    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if short else (1,)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def main() -> None:
    """Fills the table of the page and draws the figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--page", type=Path, default=PAGE, help="page whose table is filled")
    parser.add_argument("--figure", type=Path, default=FIGURE, help="figure to draw")
    given = parser.parse_args()
    sets = {entry: list(entry.points()) for entry in SETS}
    text = given.page.read_text()
    given.page.write_text(TABLE.sub(lambda _: table(sets), text))
    draw(sets, given.figure)


if __name__ == "__main__":
    main()
