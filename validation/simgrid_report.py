"""The report on both simulators: tables in Markdown, figures, numbers as CSV."""

from __future__ import annotations

import platform as machine
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from simgrid_cases import TOPOLOGIES
from simgrid_peers import Ran
from simgrid_speed import SpeedRow

import opticoll
from opticoll.formats.table import write_csv
from opticoll.plot import style
from opticoll.plot.output import check_path, save

__all__ = ["CaseRow", "write"]

MIN_DRAWN = 1e-13  # differences below are drawn here: equal to all printed digits


@dataclass(frozen=True)
class CaseRow:
    """A case in both programs: ends in seconds, largest difference of any end, seconds to run."""

    name: str
    topology: str
    weights: str
    flows: int
    ends: int
    ours_s: float
    simgrid_s: float
    difference: float
    ours_run_s: float
    simgrid_run_s: float


def write(
    folder: Path,
    cases: Sequence[CaseRow],
    speed: Sequence[SpeedRow],
    *,
    seed: int,
    versions: Sequence[str],
) -> None:
    """Writes validation.md, and figures and CSV below `figures`, into an existing folder."""
    figures = folder / "figures"
    figures.mkdir(exist_ok=True)
    write_csv([vars(row) for row in cases], figures / "validation_cases.csv")
    _draw_agreement(cases, figures / "validation_agreement.svg")
    parts = [_head(cases, seed, versions), _agreement_table(cases)]
    if speed:
        write_csv([_flat(row) for row in speed], figures / "validation_speed.csv")
        _draw_speed(speed, figures / "validation_speed.svg")
        parts.append(_speed_part(speed))
    parts.append(NOTES)
    (folder / "validation.md").write_text("\n".join(parts), encoding="utf-8")


def _head(cases: Sequence[CaseRow], seed: int, versions: Sequence[str]) -> str:
    worst = max(row.difference for row in cases)
    ends = sum(row.ends for row in cases)
    return f"""# Validation against SimGrid

Times of opticoll's simulator `fluid` agree with those of SimGrid's plain fluid model to within a
relative difference of {worst:.1e}. Both programs ran {len(cases)} random cases (seed {seed}). The
comparison covers {ends:,} times: the end of every flow, or, for a collective that runs step by
step, the end of every rank.

To repeat the comparison, install SimGrid and run `python validation/simgrid.py --out docs --long`,
which writes this page. `make validate` repeats a part of it.

{chr(10).join(f"* {line}" for line in versions)}
* processor: {_processor()}; one thread each

![Ours against SimGrid's: times and relative differences](figures/validation_agreement.svg)
"""


def _processor() -> str:
    told = Path("/proc/cpuinfo")
    lines = told.read_text().splitlines() if told.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else machine.processor() or "unknown"


def _agreement_table(cases: Sequence[CaseRow]) -> str:
    lines = [
        "| topology | cases | with latency | flows | largest difference | in ps | SimGrid, s "
        "| opticoll, s | ratio |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for topology in TOPOLOGIES:
        own = [row for row in cases if row.topology == topology]
        if not own:
            continue
        worst = max(own, key=lambda row: row.difference)
        ours, theirs = (
            sum(getattr(row, key) for row in own) for key in ("ours_run_s", "simgrid_run_s")
        )
        lines.append(
            f"| {topology} | {len(own)} | {sum(bool(row.weights) for row in own)} "
            f"| {sum(row.flows for row in own):,} | {worst.difference:.1e} "
            f"| {1e12 * max(abs(row.ours_s - row.simgrid_s) for row in own):.1f} "
            f"| {theirs:.3f} | {ours:.3f} | {theirs / ours:.1f} |"
        )
    return "\n".join(
        [
            *lines,
            "",
            "`in ps` is the largest difference between the ends of a whole case in both programs,",
            "in picoseconds.",
            "",
        ]
    )


def _speed_part(speed: Sequence[SpeedRow]) -> str:
    lines = [
        "## Speed",
        "",
        "The table has processor times in seconds on one machine, which also ran tests at the same",
        "time. A dash means that the work was not run.",
        "",
        "| column | meaning |",
        "|---|---|",
        "| SimGrid | one actor per rank or chain, and a mailbox looked up by name for each pair of "
        "ranks; in parentheses the time to build its platform from XML |",
        "| SimGrid 4.1 | measured once with another such program on an idle machine of the same "
        "type |",
        "| engine | `simulate_steps` or `simulate_flows`; in parentheses the time to build the "
        "fabric from its specification |",
        "| whole command | `opticoll simulate`, with the start of Python, the plan and its proof |",
        "| goal | goal of the command, or of the engine if there is no command |",
        "",
        "| work | flows | SimGrid | SimGrid 4.1 | engine | ratio | whole command | goal |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in speed:
        lines.append(
            f"| {row.work.name} | {row.work.flows:,} | {_ran(row.simgrid)} "
            f"| {row.work.idle_s:g} s | {_ran(row.engine)} "
            f"| {_ratio(row)} | {_command(row)} | {row.work.goal_s:g} s{_goal_mb(row)} |"
        )
    return "\n".join([*lines, "", "![How many times as fast](figures/validation_speed.svg)", ""])


def _ran(ran: Ran | None) -> str:
    if ran is None:
        return "-"
    return f"{ran.run_s:.3g} s ({ran.build_s:.2g} s), {ran.peak_mb:.0f} MB"


def _ratio(row: SpeedRow) -> str:
    return "-" if row.simgrid is None else f"{row.simgrid.run_s / row.engine.run_s:,.0f}"


def _command(row: SpeedRow) -> str:
    return "-" if row.command_s is None else f"{row.command_s:.2f} s, {row.command_mb:.0f} MB"


def _goal_mb(row: SpeedRow) -> str:
    return "" if row.work.goal_mb is None else f", {row.work.goal_mb:g} MB"


def _flat(row: SpeedRow) -> dict[str, object]:
    theirs = row.simgrid
    return {
        "work": row.work.name,
        "flows": row.work.flows,
        "simgrid_run_s": None if theirs is None else theirs.run_s,
        "simgrid_build_s": None if theirs is None else theirs.build_s,
        "simgrid_peak_mb": None if theirs is None else theirs.peak_mb,
        "engine_run_s": row.engine.run_s,
        "engine_build_s": row.engine.build_s,
        "engine_peak_mb": row.engine.peak_mb,
        "command_s": row.command_s,
        "command_mb": row.command_mb,
        "goal_s": row.work.goal_s,
        "goal_mb": row.work.goal_mb,
    }


NOTES = """## How the comparison is made

SimGrid runs `validation/simgrid_peer.cpp` with `network/model:CM02`, `network/bandwidth-factor:1`,
`network/latency-factor:1`, `network/weight-S:0`, `network/TCP-gamma:0`, `network/crosstraffic:0`
and a precision of 1e-12 s. Its clusters (star, fat tree, dragonfly of one chassis per group, torus)
route by themselves, so these cases compare topology and routing too. For custom graphs, a separate
implementation of the rule in [fabrics.md](fabrics.md#routing) computes the routes. If links have
latencies, SimGrid divides the rate of a link among flows in proportion to 1 / (latency of the
flow's route). opticoll simulated the cases with latencies with `weights=inverse_latency`, which is
the same rule. Collectives are opticoll's verified plans. One actor per rank sends and receives
their messages, and waits for a step's messages before it starts the next step (start rule
`rendezvous`).

The comparison leaves out three topologies on which SimGrid 3.32 does not follow its routing rule:

* tori with an even number of nodes in a dimension: both directions to the opposite node are equally
  long. opticoll takes the direction of increasing numbers. SimGrid takes the same direction, except
  from the middle node to node 0.
* fat trees with parallel cables below the top level: above these cables, SimGrid also divides the
  index of the destination by the number of cables. The published rule D-mod-k does not do this.
* dragonflies of several chassis per group: SimGrid ignores the chassis after some hops.
"""


def _draw_agreement(cases: Sequence[CaseRow], path: Path) -> None:
    """Times against times, and relative differences against times."""
    from matplotlib.figure import Figure

    with style.applied():
        figure = Figure(figsize=(10.0, 4.4), layout="constrained")
        left, right = figure.subplots(1, 2)
        for index, topology in enumerate(TOPOLOGIES):
            own = [row for row in cases if row.topology == topology]
            look = {
                "linestyle": "none",
                "marker": style.MARKERS[index],
                "color": style.COLOURS[index],
                "markersize": 5.0,
                "markerfacecolor": "none",
                "label": topology,
            }
            times = [row.simgrid_s for row in own]
            left.plot(times, [row.ours_s for row in own], **look)
            right.plot(times, [max(row.difference, MIN_DRAWN) for row in own], **look)
        ends = [row.simgrid_s for row in cases]
        span = (0.7 * min(ends), 1.4 * max(ends))
        left.plot(span, span, color=style.GREY, linewidth=0.9, zorder=0)
        left.set_yscale("log")
        left.set_ylabel("opticoll, end of the last flow")
        left.yaxis.set_major_formatter(lambda value, _: style.time_text(value))
        right.set_yscale("log")
        right.set_ylim(MIN_DRAWN / 2, 1e-5)
        right.set_ylabel("Largest relative difference of any end")
        right.axhline(1e-6, color=style.INK, linestyle="--", linewidth=1.0)
        right.annotate(
            "the goal, 1e-6", (span[1], 1e-6), xytext=(0, 4), textcoords="offset points",
            ha="right", fontsize=9,
        )  # fmt: skip
        right.annotate(
            "equal in all digits", (span[1], MIN_DRAWN), xytext=(0, 5), textcoords="offset points",
            ha="right", fontsize=9, color=style.GREY,
        )  # fmt: skip
        for axes in (left, right):
            axes.set_xscale("log")
            axes.set_xlim(span)
            axes.set_xlabel("SimGrid, end of the last flow")
            axes.xaxis.set_major_formatter(lambda value, _: style.time_text(value))
            axes.minorticks_off()
        handles, labels = left.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
        figure.suptitle(
            f"{len(cases)} random cases under SimGrid's plain fluid model and under opticoll's",
            x=0.01,
            ha="left",
            fontsize=11,
        )
        save(figure, check_path(path))


def _draw_speed(speed: Sequence[SpeedRow], path: Path) -> None:
    """Draws how many times as fast the engine is, if both programs ran."""
    from matplotlib.figure import Figure

    both = [(row, row.simgrid) for row in speed if row.simgrid is not None]
    with style.applied():
        figure = Figure(figsize=(9.0, 1.2 + 0.42 * len(both)), layout="constrained")
        axes = figure.subplots()
        places = range(len(both))
        ratios = [theirs.run_s / row.engine.run_s for row, theirs in both]
        axes.barh(places, ratios, 0.62, color=style.COLOURS[0])
        for place, ratio, (row, theirs) in zip(places, ratios, both, strict=True):
            axes.annotate(
                f"{ratio:,.0f} times: {style.time_text(theirs.run_s)} and "
                f"{style.time_text(row.engine.run_s)}",
                (ratio, place), xytext=(5, 0), textcoords="offset points", va="center", fontsize=9,
            )  # fmt: skip
        axes.set_yticks(places, [row.work.name for row, _ in both])
        axes.invert_yaxis()
        axes.set_xscale("log")
        axes.set_xlim(1, 60 * max(ratios))
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,g}")
        axes.set_xlabel("SimGrid's time / that of opticoll's engine")
        axes.grid(axis="y", visible=False)
        axes.tick_params("y", length=0)
        save(figure, check_path(path))


def versions(simgrid: str) -> list[str]:
    """Returns the versions of the compared programs, a line each."""
    return [f"opticoll {opticoll.__version__}", f"SimGrid {simgrid}, its C++ interface S4U"]
