"""Compares predicted with measured times of NCCL, and fills the tables of docs/machines.md.

    python validation/machines.py           # prints the tables
    python validation/machines.py --write   # writes them to the page, and the figures beside it

The times are those of `examples/nccl.csv`. For each system, `calibrate` fits the costs of its
library to all times, and once more without each size; a further fit predicts the times on 8 ranks
from those on 2 and 4. The fits need SciPy.
"""

from __future__ import annotations

import math
import re
import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib import rc_context
from matplotlib.figure import Figure
from scipy.optimize import least_squares

import opticoll
from opticoll._core import library_times
from opticoll.cli.runner import run
from opticoll.commands.calibrate import COMMAND, CalibrateRow, TimeRow
from opticoll.commands.calibrate.fitting import LibraryModel, fit, starts_of
from opticoll.inputs.fabric_files import to_fabric
from opticoll.inputs.measured_times import COLLECTIVES, read

ROOT = Path(__file__).parents[1]
TIMES = ROOT / "examples/nccl.csv"
PAGE = ROOT / "docs/machines.md"
FIGURES = ROOT / "docs/figures"
SYSTEMS = {
    "a100_sxm": "dgx_a100",
    "h100_sxm": "dgx_h100",
    "b200_sxm": "dgx_b200",
    "gb200": "nvl72",
    "l40s": "l40s",
}
"""Models of the systems."""

OF_NCCL = ("ring", "double_binary_tree", "nvls")
"""Algorithms of NCCL for an all_reduce in one server."""

KINK = 0.1
"""Relative amount by which a time is below the straight line through the two times before it."""

ODD = 1.1
"""A time is odd if it exceeds the time of four times the bytes by this factor."""


def calibrated(system: str) -> CalibrateRow:
    """Returns the fit of a system's costs."""
    (row,) = run(COMMAND, sources=[str(TIMES)], system=system, family=family(system))
    return row


def family(system: str) -> str:
    return f"gpu_servers:model={SYSTEMS[system]}"


def eight_from_fewer(system: str) -> list[float]:
    """Returns the errors of times on 8 ranks by a fit of the times on 2 and 4 ranks."""
    rows = read(TIMES, system=system)
    eight = [row for row in rows if row.ranks == 8]
    model = LibraryModel(to_fabric(family(system)), rows)
    fewer = [row for row in rows if row.ranks < 8]
    costs = fit(model, fewer, starts_of(model.numbers), least_squares).costs
    predicted = model.predict(costs, eight)
    return [abs(time.time_us / row.time_us - 1) for time, row in zip(predicted, eight, strict=True)]


def odd(times: Sequence[TimeRow]) -> list[TimeRow]:
    """Returns the times that exceed the time of four times the bytes."""
    measured = {(time.collective, time.ranks, time.bytes): time.measured_s for time in times}
    return [
        time
        for time in times
        if time.measured_s
        > ODD * measured.get((time.collective, time.ranks, 4 * time.bytes), float("inf"))
    ]


def words(errors: Sequence[float]) -> str:
    """Returns the mean and the worst of errors in per cent."""
    if not errors:
        return "-"
    absolute = [abs(error) for error in errors]
    return f"{100 * statistics.fmean(absolute):.1f} / {100 * max(absolute):.0f}"


def table(heading: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Returns a table in Markdown."""
    rows = [heading, ["---"] * len(heading), *lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def error_table(rows: dict[str, CalibrateRow], eight: dict[str, list[float]]) -> str:
    """Returns the table of errors by system."""
    lines = []
    for system, row in rows.items():
        strange = odd(row.times)
        usual = [time for time in row.times if time not in strange]
        lines.append(
            [
                f"`{system}`",
                str(len(row.times)),
                str(sum(cost.determined for cost in row.costs)),
                words([time.fitted_s / time.measured_s - 1 for time in row.times]),
                words([time.error for time in row.times]),
                words([time.error for time in usual]),
                words(eight[system]),
                str(sum(abs(time.error) > 0.2 for time in row.times)),
            ]
        )
    heading = "system, times, costs, fit, size left out, without odd times, 8 ranks from 2 and 4"
    return table([*heading.split(", "), "above 20 %"], lines)


def collective_table(rows: dict[str, CalibrateRow]) -> str:
    """Returns the table of errors by system and collective, with each size left out."""
    lines = [
        [
            f"`{system}`",
            *(
                words([time.error for time in row.times if time.collective == kind])
                for kind in COLLECTIVES
            ),
        ]
        for system, row in rows.items()
    ]
    return table(["system", *COLLECTIVES], lines)


def choice_table(rows: dict[str, CalibrateRow]) -> str:
    """Returns how often the measured time is nearest to the time of the selected protocol."""
    lines = []
    for system, row in rows.items():
        differing = nearest = 0
        for (kind, ranks), times in grouped(row.times):
            fabric = to_fabric(row.fabric)
            if ranks < fabric.ranks:
                fabric = fabric.with_options(members=f"0-{ranks - 1}")
            plan = opticoll.plan(kind, fabric, "direct" if kind == "all_to_all" else "ring")
            for time in times:
                size = time.bytes // (ranks if kind == "all_gather" else 1)
                by = {time.protocol: time.fitted_s}
                for protocol in protocols(kind, system):
                    by.setdefault(protocol, plan.simulate(size, protocol=protocol).time_ps / 1e12)
                chosen = by[time.protocol]
                if any(abs(other / chosen - 1) > 0.1 for other in by.values()):
                    differing += 1
                    measured = time.measured_s
                    best = min(by, key=lambda name, by=by, t=measured: abs(math.log(by[name] / t)))
                    nearest += best == time.protocol
        lines.append([f"`{system}`", str(differing), f"{100 * nearest / differing:.0f} %"])
    return table(["system", "times", "nearest"], lines)


def is_kink(sizes: Sequence[int], times: Sequence[float]) -> bool:
    """Returns whether a time is far below the line through the two times before it.

    Latency and bytes of one protocol add up, or at most overlap, on a fixed number of channels. The
    time is then a convex function of the size, and never below such a line. A kink therefore shows
    that between the first and the last size the protocol, the algorithm or the number of channels
    changes to a faster one.
    """
    slope = (times[1] - times[0]) / (sizes[1] - sizes[0])
    return times[2] < (1 - KINK) * (times[1] + slope * (sizes[2] - sizes[1]))


@dataclass(frozen=True)
class Kinks:
    """Kinks of an all_reduce, for the middle size of each three neighbouring sizes."""

    measured: list[bool]
    winners: list[bool]
    """Kinks of the fastest predicted time."""

    tuned: list[bool]
    """Kinks of the time by the protocol and algorithm that NCCL's tuner selects."""

    clear: list[bool]
    """Whether the fastest alternative is more than 10 % faster than each other alternative."""


def kinks(system: str, ranks: int) -> Kinks:
    """Returns the kinks of an all_reduce, with the costs of the record."""
    rows = [row for row in read(TIMES, system=system) if row.collective == "all_reduce"]
    rows = sorted((row for row in rows if row.ranks == ranks), key=lambda row: row.buffer_bytes)
    sizes = [row.buffer_bytes for row in rows]
    fabric = to_fabric(family(system))
    if ranks < fabric.ranks:
        fabric = fabric.with_options(members=f"0-{ranks - 1}")
    has_nvls = system in ("h100_sxm", "b200_sxm", "gb200") and ranks > 2
    plans = {
        name: opticoll.plan("all_reduce", fabric, name)
        for name in OF_NCCL
        if name != "nvls" or has_nvls
    }
    alternatives = [
        sorted(
            plan.simulate(size, protocol=protocol).time_ps
            for name, plan in plans.items()
            for protocol in (["auto"] if name == "nvls" else protocols("all_reduce", system))
        )
        for size in sizes
    ]
    tuned = library_times(plans["ring"], sizes, f"costs:library={fabric.option('library')}")
    curves = [
        [row.time_us for row in rows],
        [times[0] for times in alternatives],
        [time_ps for time_ps, _ in tuned],
    ]
    middles = range(1, len(sizes) - 1)
    found = [
        [is_kink(sizes[at - 1 : at + 2], curve[at - 1 : at + 2]) for at in middles]
        for curve in curves
    ]
    clear = [alternatives[at][1] > 1.1 * alternatives[at][0] for at in middles]
    return Kinks(*found, clear)


def agreement(found: Sequence[Kinks], name: str, *, clear: bool = True) -> tuple[int, int]:
    """Returns the number of sizes with the measured answer, and the number of all sizes.

    If `clear`, only sizes count at which one alternative is clearly the fastest.
    """
    pairs = [
        (measured, predicted)
        for one in found
        for measured, predicted, is_clear in zip(
            one.measured, getattr(one, name), one.clear, strict=True
        )
        if is_clear or not clear
    ]
    return sum(measured == predicted for measured, predicted in pairs), len(pairs)


RANKS = {system: (2, 4) if system == "gb200" else (2, 4, 8) for system in SYSTEMS}
"""Numbers of ranks that were measured."""


def kink_table() -> str:
    """Returns how many sizes have a kink, or have none, as predicted."""
    lines = []
    boxes = [system for system in SYSTEMS if 8 in RANKS[system]]
    groups = {f"`{system}`, 8 ranks": [(system, 8)] for system in boxes}
    groups["all boxes, 8 ranks"] = [(system, 8) for system in boxes]
    groups["all systems, 2 to 8 ranks"] = [(one, ranks) for one in SYSTEMS for ranks in RANKS[one]]
    for label, members in groups.items():
        found = [kinks(*member) for member in members]
        cells = [label, str(sum(sum(one.measured) for one in found))]
        for name, clear in (("winners", True), ("tuned", True), ("winners", False)):
            same, count = agreement(found, name, clear=clear)
            cells.append(f"{same} of {count}, {100 * same / count:.0f} %")
        lines.append(cells)
    heading = ["all_reduce", "kinks", "fastest alternative", "NCCL's tuner", "at all sizes"]
    return table(heading, lines)


def one_step_table() -> str:
    """Returns predicted times of an all_gather in one step, over measured times of all_to_all.

    Both send a message of the same size from each of 8 ranks to each other rank.
    """
    lines = []
    for system in (system for system in SYSTEMS if 8 in RANKS[system] and system != "l40s"):
        plan = opticoll.plan("all_gather", to_fabric(family(system)), "direct:order=at_once")
        rows = [row for row in read(TIMES, system=system) if row.ranks == 8]
        times = {row.buffer_bytes: row.time_us for row in rows if row.collective == "all_to_all"}
        ratios = {
            size: plan.simulate(size // 8).time_ps / 1e6 / time_us
            for size, time_us in times.items()
        }
        # Several measured times of smaller sizes are odd.
        large = [ratio for size, ratio in ratios.items() if size >= FROM_BYTES]
        least, most = min(large), max(large)
        mean = statistics.geometric_mean(large)
        lines.append([f"`{system}`", str(len(large)), f"{mean:.2f}", f"{least:.2f} to {most:.2f}"])
    return table(["system", "sizes from 512 KiB", "mean", "range"], lines)


FROM_BYTES = 512 << 10
"""Least size of the all_to_alls with which an all_gather in one step is compared."""


def protocols(kind: str, system: str) -> list[str]:
    """Returns the protocols that NCCL has for a collective on a system, except NVLS."""
    return (
        ["ll", "simple"] if kind == "all_to_all" or system == "l40s" else ["ll", "ll128", "simple"]
    )


def grouped(times: Sequence[TimeRow]) -> Iterator[tuple[tuple[str, int], list[TimeRow]]]:
    """Yields the times of each collective and number of ranks."""
    for key in dict.fromkeys((time.collective, time.ranks) for time in times):
        yield key, [time for time in times if (time.collective, time.ranks) == key]


def cost_table(rows: dict[str, CalibrateRow]) -> str:
    """Returns the table of costs, with their ranges over the fits without one size."""
    names = list(dict.fromkeys(cost.name for row in rows.values() for cost in row.costs))
    lines = []
    for name in names:
        cells = [f"`{name}`"]
        for row in rows.values():
            found = [cost for cost in row.costs if cost.name == name]
            cells += [
                f"{cost.value} ({cost.least} to {cost.most})" if cost.determined else cost.value
                for cost in found
            ] or ["-"]
        lines.append(cells)
    return table(["cost", *(f"`{system}`" for system in rows)], lines)


def worst_table(rows: dict[str, CalibrateRow]) -> str:
    """Returns the times of NVLink systems whose error exceeds 20 %."""
    lines = [
        [
            f"`{system}`",
            time.collective,
            str(time.ranks),
            f"{time.bytes:,}",
            f"{time.measured_s * 1e6:.1f}",
            f"{time.predicted_s * 1e6:.1f}",
            f"{100 * time.error:+.0f} %",
            "odd" if time in odd(row.times) else "",
        ]
        for system, row in rows.items()
        if system != "l40s"
        for time in row.times
        if abs(time.error) > 0.2
    ]
    heading = ["system", "collective", "ranks", "bytes", "measured, us", "predicted, us"]
    return table([*heading, "error", ""], lines)


def draw(system: str, row: CalibrateRow) -> None:
    """Draws measured and predicted times over bytes, a panel for each collective."""
    figure = Figure(figsize=(10, 2.9), layout="constrained")
    for panel, kind in zip(figure.subplots(1, 4, sharey=True), COLLECTIVES, strict=True):
        for place, ranks in enumerate(sorted({time.ranks for time in row.times})):
            times = [time for time in row.times if (time.collective, time.ranks) == (kind, ranks)]
            sizes = [time.bytes for time in times]
            colour = f"C{place}"
            panel.plot(sizes, [time.measured_s * 1e6 for time in times], "o", ms=3.5, color=colour)
            panel.plot(
                *(sizes, [time.predicted_s * 1e6 for time in times], "-"),
                lw=1,
                color=colour,
                label=f"{ranks} ranks",
            )
        panel.set(xscale="log", yscale="log", title=kind, xlabel="bytes")
        panel.title.set_fontsize(9)
    figure.axes[0].set_ylabel("microseconds")
    figure.axes[0].legend(fontsize=7, title=f"{system}: dots measured", title_fontsize=7)
    path = FIGURES / f"machines_{system}.svg"
    with rc_context({"svg.hashsalt": system}):
        figure.savefig(path, metadata={"Date": None})


def filled(text: str, tables: Iterator[tuple[str, str]]) -> str:
    """Returns the page with its tables replaced; a comment before each table names it."""
    for name, lines in tables:
        mark = f"<!-- table: {name} -->\n"
        assert mark in text, name
        text = re.sub(
            f"({re.escape(mark)})(\\|[^\n]*\n)*",
            lambda found, new=lines: f"{found[1]}{new}\n",
            text,
        )
    return text


def main(write: bool) -> None:
    rows = {system: calibrated(system) for system in SYSTEMS}
    eight = {system: eight_from_fewer(system) for system in SYSTEMS}
    tables = {
        "errors": error_table(rows, eight),
        "collectives": collective_table(rows),
        "costs": cost_table(rows),
        "choices": choice_table(rows),
        "kinks": kink_table(),
        "one step": one_step_table(),
        "worst": worst_table(rows),
    }
    if not write:
        print("\n\n".join(tables.values()))
        return
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), iter(tables.items())))
    for system, row in rows.items():
        draw(system, row)


if __name__ == "__main__":
    main("--write" in sys.argv[1:])
