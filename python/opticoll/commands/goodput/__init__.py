"""Command `goodput`: the share of time in which a run of training makes progress.

>>> from opticoll.cli.runner import run
>>> [row] = run(COMMAND, devices="16384", replications=10)
>>> round(row.between_failures_s / 3600, 3), row.largest_part
(3.093, 'gpu')
"""

# No `from __future__ import annotations`: cyclopts reads the types of a dataclass at run time.

import dataclasses
import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from opticoll.cli import option_types
from opticoll.cli.option_types import count, option, whole
from opticoll.cli.options import FURTHER
from opticoll.cli.runner import Command, figure_file, on_command_line, rows_file
from opticoll.commands.goodput import formulas
from opticoll.commands.goodput.simulation import CAUSES, Run, Totals, simulate
from opticoll.errors import UsageError
from opticoll.inputs.failure_rates import HOURS_OF_FIT, FailureRates, given
from opticoll.inputs.values import split_counts, to_seconds, whole_number
from opticoll.outputs.layout import align, duration, plural, wrapped
from opticoll.outputs.rows import (
    OMITTED,
    Count,
    Number,
    Positive,
    Row,
    Share,
    Unit,
    command_field,
    hidden,
    means,
    table,
)
from opticoll.outputs.watch import Watch

Duration = Annotated[float, Unit("s", duration)]

MIN_REPLICATIONS = 10
"""Least number of replications: the series of `formulas.student` is exact to 1e-4 from there on."""

MAX_DEVICES = 2**24
"""Largest number of devices, and of spare units: the formula has a term for each unit."""

MAX_STEPS = 200_000
"""Largest expected number of events of a replication: about half a minute on one core."""


@dataclass(frozen=True, kw_only=True)
class Parameters:
    """Parameters of `opticoll goodput`; devices, spares and intervals may be lists."""

    devices: str = option("Number of devices; several with commas", default="16384")
    rates: str = option("Failure rates: llama3, none, or a YAML or TOML file", default="llama3")
    rate: list[str] = option(
        "Failure rate of a kind of part, such as gpu=148/16384/54d (failures/parts/time), "
        "optics=2*300FIT or nic=0, with ,no_repair or ,keeps_state after it; repeat the option "
        "for several (default: those of --rates)",
        default=(),
    )
    unit: int = count("Number of devices that are replaced together", default=8)
    spares: str | None = option(
        "Number of spare units; several with commas (default: one for every failure)"
    )
    repair: str = option("Mean time of a repair", metavar="TIME", default="24h")
    degraded_speed: float = option(
        "Speed of the run without one unit and without a spare, as a share; 0: the run waits",
        metavar="SHARE",
        default=0.0,
    )
    checkpoint: str = option("Time to write a checkpoint", metavar="TIME", default="30s")
    interval: str = option(
        "Time of work between checkpoints, or young or daly; several with commas", default="young"
    )
    detection: str = option("Time from a failure to its detection", metavar="TIME", default="1min")
    restart: str = option("Time to start again from a checkpoint", metavar="TIME", default="3min")
    setup: str = option(
        "Time to set up the network anew, with a new plan", metavar="TIME", default="0s"
    )
    length: str = option("Length of the run", metavar="TIME", default="54d")
    replications: int = count("Number of simulated runs, at least 10", 10**5, FURTHER, default=100)
    seed: int = option(
        "Seed of the failures and repairs",
        default=1,
        group=FURTHER,
        converter=whole(least=0, most=option_types.MAX_SEED),
        allow_leading_hyphen=True,
    )


class CauseRow(Row):
    """Time that the run loses by one cause."""

    cause: str = means("Cause of the loss", "lost by")
    share: Share = means("Share of the time of the run", "share of time")
    of_loss: Share = means("Share of all lost time", "of the loss")


class PartRow(Row):
    """Interruptions by one kind of part, and the time that the run loses by them."""

    part: str = means("Kind of part", "part")
    rate: Number = means("Failures of a device in 10^9 hours (FIT)", "FIT per device")
    failures: Number = means("Mean number of interruptions of a run", "interruptions")
    share: Share = means("Share of the time of the run", "share of time")
    of_loss: Share = means("Share of all lost time, which includes checkpoints", "of the loss")


@dataclass(frozen=True)
class _Case:
    """A run, as given, with its rates."""

    run: Run
    devices: int
    interval: str

    @property
    def failure_rate(self) -> float:
        """Interruptions of the run per second, with all units."""
        return self.devices * sum(part.rate for part in self.run.parts)

    @property
    def state_rate(self) -> float:
        """Failures per second that lose the state."""
        return self.devices * sum(part.rate for part in self.run.parts if not part.keeps_state)


class GoodputRow(Row):
    """Goodput of a run: the share of its time in which it does work that is not lost."""

    devices: Positive = means("Number of devices of the run", "devices")
    unit: Positive = means("Number of devices that are replaced together")
    spares: Count | None = means(
        "Number of spare units", "spares", absent="there is a spare unit for every failure"
    )
    between_failures_s: Duration = means(
        "Mean time between failures that interrupt the run", "between failures"
    )
    interval: str = means("Interval, as given")
    interval_s: Duration = means("Time of work between two checkpoints", "interval")
    young_s: Duration | None = means(
        "Young's optimum of the interval", absent="no failure loses state"
    )
    daly_s: Duration | None = means(
        "Daly's optimum of the interval", absent="no failure loses state"
    )
    goodput: Share = means("Simulated goodput: mean over the runs", "goodput")
    goodput_low: Share = means("Lower end of the 95 % interval of the mean")
    goodput_high: Share = means("Upper end of the 95 % interval of the mean")
    formula: Share = means("Goodput by the formula of first order", "formula")
    complete_formula: Share | None = means(
        "Goodput by Daly's complete formula",
        "complete",
        absent="spares are limited, or a kind of part keeps the state",
    )
    available: Share = means(
        "Factor of the formula: mean speed in the long run with the units that are not in repair"
    )
    per_installed: Share | None = means(
        "Goodput times devices over devices and spares",
        "per installed",
        absent="there is a spare unit for every failure",
    )
    length_s: Duration = means("Length of the run")
    replications: Positive = means("Number of simulated runs")
    largest_cause: str = means("Cause of the largest loss", "largest loss")
    largest_part: str = means("Kind of part with the largest loss", "part")
    causes: list[CauseRow] = means("Lost time by cause")
    parts: list[PartRow] = means("Lost time by kind of part, without checkpoints")
    rates: str = means("Source of the failure rates")
    case: _Case = hidden(default=None)
    command: str = command_field(default=OMITTED)


def compute(parameters: Parameters, watch: Watch) -> Iterator[GoodputRow]:
    """Simulates a run for each number of devices, number of spares, and interval.

    Raises
    ------
    OpticollError
        A rate, a time or a number is invalid, no part fails, or the simulation would take too many
        events.
    """
    rates = given(parameters.rate, parameters.rates)
    if not rates.parts:
        raise UsageError("no part fails; give a rate such as --rate gpu=148/16384/54d")
    if parameters.replications < MIN_REPLICATIONS:
        raise UsageError(
            f"--replications: {parameters.replications} is out of range: it must be at least "
            f"{MIN_REPLICATIONS}"
        )
    cases = list(_cases(parameters, rates))
    for done, case in enumerate(cases):

        def progress(share: float, done: int = done) -> None:
            watch.update("simulating", round(100 * (done + share)), 100 * len(cases))

        totals = simulate(case.run, parameters.replications, parameters.seed, progress)
        yield _row(case, totals, rates.source)


def _cases(parameters: Parameters, rates: FailureRates) -> Iterator[_Case]:
    if not 0 <= parameters.degraded_speed < 1:
        raise UsageError(
            f"--degraded-speed: {parameters.degraded_speed:g} is out of range: it must be at least "
            "0 and below 1"
        )
    if parameters.degraded_speed > 0 and parameters.spares is None:
        raise UsageError(
            "--degraded-speed: the run has a spare unit for every failure; give --spares 0 or more"
        )
    spares: list[int | None] = [
        None if text == "" else whole_number("--spares", text, 0, MAX_DEVICES)
        for text in option_types.listed("--spares", parameters.spares)
    ]
    intervals = option_types.listed("--interval", parameters.interval)
    for devices, spare, interval in itertools.product(
        split_counts("--devices", parameters.devices), spares, intervals
    ):
        if devices > MAX_DEVICES:
            raise UsageError(
                f"--devices: {devices} is out of range: it must be in 1..{MAX_DEVICES}"
            )
        if devices % parameters.unit:
            raise UsageError(
                f"--devices: {devices} is no multiple of {parameters.unit}, the devices that are "
                "replaced together; give --unit"
            )
        yield _case(parameters, rates, devices, spare, interval)


def _case(
    parameters: Parameters, rates: FailureRates, devices: int, spares: int | None, interval: str
) -> _Case:
    checkpoint_s = to_seconds("--checkpoint", parameters.checkpoint)
    run = Run(
        units=devices // parameters.unit,
        unit=parameters.unit,
        spares=spares,
        parts=tuple(rates.parts),
        checkpoint_s=checkpoint_s,
        interval_s=math.nan,
        detection_s=to_seconds("--detection", parameters.detection),
        restart_s=to_seconds("--restart", parameters.restart),
        setup_s=to_seconds("--setup", parameters.setup),
        repair_s=to_seconds("--repair", parameters.repair, least=1.0),
        degraded_speed=parameters.degraded_speed,
        length_s=to_seconds("--length", parameters.length, least=1.0),
    )
    case = _Case(run, devices, interval)
    if interval not in formulas.OPTIMA:
        interval_s = to_seconds("--interval", interval, least=1.0)
    elif case.state_rate == 0 or checkpoint_s == 0:
        raise UsageError(
            "--interval: there is no optimum if no failure loses state or a checkpoint takes no "
            "time; give an interval such as 1h"
        )
    else:
        interval_s = formulas.OPTIMA[interval](checkpoint_s, 1 / case.state_rate)
    # A repair follows each failure, and spares fail as well.
    steps = 2 * case.failure_rate * run.length_s * (1 + (spares or 0) / run.units)
    if steps > MAX_STEPS:
        raise UsageError(
            f"--length: a run has {steps / 2:.3g} failures, which is too many to simulate; give "
            f"{duration(run.length_s * MAX_STEPS / steps)} or less"
        )
    return dataclasses.replace(case, run=dataclasses.replace(run, interval_s=interval_s))


def _available(run: Run) -> float:
    """Returns the mean speed in the long run if a run takes all units that are not in repair."""
    if run.spares is None:
        return 1.0
    repairs = run.repair_s * run.unit * sum(part.rate for part in run.parts if part.repair)
    missing = formulas.missing_units(run.units + run.spares, repairs / (1 + repairs))
    lacking = np.maximum(0, np.arange(len(missing)) - run.spares)
    return _share(float(missing @ run.speed(lacking)))


def _formula(case: _Case, interval_s: float) -> float:
    """Returns the goodput by the formula of first order."""
    run = case.run
    kept_s = run.detection_s + run.setup_s
    stopped = case.failure_rate * kept_s + case.state_rate * run.restart_s
    return _available(run) * formulas.first_order(
        run.checkpoint_s, interval_s, case.state_rate, stopped
    )


def _complete(case: _Case, interval_s: float) -> float | None:
    """Returns the goodput by Daly's complete formula, or None if it does not hold."""
    run = case.run
    if run.spares is not None or case.state_rate < case.failure_rate:
        return None
    restart_s = run.detection_s + run.restart_s + run.setup_s
    return formulas.complete(run.checkpoint_s, interval_s, 1 / case.failure_rate, restart_s)


def _row(case: _Case, totals: Totals, source: str) -> GoodputRow:
    run = case.run
    shares = totals.useful_s / run.length_s
    mean = float(shares.mean())
    half = formulas.student(len(shares)) * float(shares.std(ddof=1)) / math.sqrt(len(shares))
    causes = totals.lost_s.mean(axis=0) / run.length_s
    parts = totals.parts_s.mean(axis=0) / run.length_s
    interruptions = totals.failures.mean(axis=0)
    loss = max(float(causes.sum()), math.ulp(1.0))
    optima = {
        name: optimum(run.checkpoint_s, 1 / case.state_rate) if case.state_rate else None
        for name, optimum in formulas.OPTIMA.items()
    }
    installed = None if run.spares is None else run.units / (run.units + run.spares)
    return GoodputRow(
        devices=case.devices,
        unit=run.unit,
        spares=run.spares,
        between_failures_s=1 / case.failure_rate,
        interval=case.interval,
        interval_s=run.interval_s,
        young_s=optima["young"],
        daly_s=optima["daly"],
        goodput=_share(mean),
        goodput_low=_share(mean - half),
        goodput_high=_share(mean + half),
        formula=_formula(case, run.interval_s),
        complete_formula=_complete(case, run.interval_s),
        available=_available(run),
        per_installed=None if installed is None else _share(mean * installed),
        length_s=run.length_s,
        replications=len(shares),
        largest_cause=CAUSES[int(causes.argmax())],
        largest_part=run.parts[int(parts.argmax())].part,
        causes=[
            CauseRow(cause=name, share=_share(lost), of_loss=_share(lost / loss))
            for name, lost in zip(CAUSES, causes, strict=True)
        ],
        parts=[
            PartRow(
                part=part.part,
                rate=part.rate * 3600 * HOURS_OF_FIT,
                failures=float(number),
                share=_share(lost),
                of_loss=_share(lost / loss),
            )
            for part, number, lost in zip(run.parts, interruptions, parts, strict=True)
        ],
        rates=source,
        case=case,
    )


def _share(value: float) -> float:
    """Returns a share without the errors of rounding below 0 and above 1."""
    return min(1.0, max(0.0, float(value)))


def _text(parameters: Parameters, rows: list[GoodputRow]) -> str:
    """Returns a table of all cases, or the losses of the only case."""
    first = rows[0]
    lines = [
        f"mean of {first.replications} runs of {duration(first.length_s)}",
        *wrapped([f"failure rates: {first.rates}"], 0),
        "",
    ]
    if len(rows) > 1:
        limited = all(row.spares is not None for row in rows)
        holds = all(row.complete_formula is not None for row in rows)
        names = [
            "devices",
            *(["spares"] if limited else []),
            *("between_failures_s", "interval_s", "goodput"),
            *(["per_installed"] if limited else []),
            "formula",
            *(["complete_formula"] if holds else []),
            *("largest_cause", "largest_part"),
        ]
        return "\n".join([*lines, table(rows, names)])
    spares = "a spare for every failure" if first.spares is None else plural(first.spares, "spare")
    known = (
        ""
        if first.young_s is None or first.daly_s is None
        else f" (optimum by Young {duration(first.young_s)}, by Daly {duration(first.daly_s)})"
    )
    complete = (
        "" if first.complete_formula is None else f"; complete formula {first.complete_formula:.2%}"
    )
    facts = [
        ["devices", f"{first.devices:,} in units of {first.unit:,}, {spares}"],
        ["failures", f"one in {duration(first.between_failures_s)}"],
        [
            "checkpoint",
            f"{parameters.checkpoint} after {duration(first.interval_s)} of work{known}",
        ],
        [
            "goodput",
            f"{first.goodput:.2%} (95 % interval {first.goodput_low:.2%} to "
            f"{first.goodput_high:.2%}); formula {first.formula:.2%}{complete}",
        ],
        ["largest loss", f"{first.largest_cause}; by parts: {first.largest_part}"],
    ]
    causes = [cause for cause in first.causes if cause.share > 0]
    parts = sorted(first.parts, key=lambda part: -part.share)
    lines += [align(facts), "", table(causes, ("cause", "share", "of_loss"))]
    lines += ["", table(parts, ("part", "rate", "failures", "share", "of_loss"))]
    return "\n".join(lines)


def _draw(parameters: Any, rows: list[GoodputRow], path: Path) -> None:
    from opticoll import plot

    series: dict[str, list[GoodputRow]] = {}
    for row in rows:
        spares = "" if row.spares is None else f", {plural(row.spares, 'spare')}"
        series.setdefault(f"{row.devices:,} devices{spares}", []).append(row)
    curves = {}
    for name, points in series.items():
        case, young_s = points[0].case, points[0].young_s
        ends = [point.interval_s for point in points] + ([young_s] if young_s else [])
        intervals = [float(end) for end in np.geomspace(min(ends) / 4, max(ends) * 4, 200)]
        complete = [(interval, _complete(case, interval)) for interval in intervals]
        curves[name] = plot.GoodputCurve(
            [
                (point.interval_s, point.goodput, point.goodput_low, point.goodput_high)
                for point in points
            ],
            [(interval, _formula(case, interval)) for interval in intervals],
            [(interval, value) for interval, value in complete if value is not None],
            (young_s, _formula(case, young_s)) if young_s else None,
        )
    title = (
        f"Goodput, checkpoints of {parameters.checkpoint}, "
        f"{rows[0].replications} runs of {duration(rows[0].length_s)}"
    )
    plot.goodput(curves, path, title)


def _alone(parameters: Parameters, row: GoodputRow) -> dict[str, Any]:
    """Returns the options that reproduce the case of a single row."""
    return {
        "devices": str(row.devices),
        "spares": None if row.spares is None else str(row.spares),
        "interval": row.interval,
    }


COMMAND = Command(
    name="goodput",
    example="opticoll goodput --devices 256,4096,65536 --checkpoint 30s --repair 24h",
    parameters=Parameters,
    rows=GoodputRow,
    compute=compute,
    text=_text,
    progress_label="simulating",
    files=(rows_file(), figure_file(_draw)),
    row_options=_alone,
)
command_line = on_command_line(COMMAND)
