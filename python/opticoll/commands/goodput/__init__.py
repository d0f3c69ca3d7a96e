"""Command `goodput`: the share of time in which a run of training makes progress.

>>> from opticoll.cli.runner import run
>>> [row] = run(COMMAND, devices="16384", replications=10)
>>> round(row.between_failures_s / 3600, 3), row.largest_part
(3.093, 'gpu')
"""

import dataclasses
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from opticoll._core import Fabric
from opticoll.cli import option_types
from opticoll.cli.arguments import refuse_given
from opticoll.cli.option_types import count, option, whole
from opticoll.cli.options import FURTHER, ComponentsOption, SwitchOption
from opticoll.cli.runner import Command, figure_file, on_command_line, rows_file
from opticoll.commands.goodput import formulas
from opticoll.commands.goodput.network import (
    UNIT,
    Network,
    network,
    spares_of,
    unit_of,
    with_spares,
)
from opticoll.commands.goodput.replanned import Duration, ReplannedRow, replanned
from opticoll.commands.goodput.simulation import CAUSES, Run, Totals, simulate
from opticoll.commands.goodput.text import goodput_text, labels
from opticoll.errors import UsageError
from opticoll.inputs.fabric_files import to_fabrics
from opticoll.inputs.failure_rates import HOURS_OF_FIT, FailureRates, given
from opticoll.inputs.values import split_counts, to_seconds, whole_number
from opticoll.outputs.bill import in_use
from opticoll.outputs.layout import duration, plural
from opticoll.outputs.rows import OMITTED, Row, command_field, hidden, means
from opticoll.outputs.units import Count, Number, Positive, Share
from opticoll.outputs.watch import Watch

MIN_REPLICATIONS = 10
"""Least number of replications: the series of `formulas.student` is exact to 1e-4 from there on."""

MAX_DEVICES = 2**24
"""Largest number of devices, and of spare units: the formula has a term for each unit."""

DEVICES = 16384
"""Devices of a run without a fabric: those of the built-in table of rates."""

MAX_STEPS = 200_000
"""Largest expected number of events of a replication: about half a minute on one core."""


@dataclass(frozen=True, kw_only=True)
class Parameters:
    """Parameters of `opticoll goodput`; devices, spares and intervals may be lists."""

    devices: str | None = option(
        f"Number of devices; several with commas (default: {DEVICES}, or ranks of --fabric)"
    )
    fabric: list[str] | None = option(
        "Fabric of the devices, whose parts fail too; repeat the option for several (default: no "
        "fabric)"
    )
    components: ComponentsOption = None
    switch: SwitchOption = None
    rates: str = option("Failure rates: llama3, none, or a YAML or TOML file", default="llama3")
    rate: list[str] = option(
        "Failure rate of a kind of part, such as gpu=148/16384/54d (failures/parts/time), "
        "optics=2*300FIT or nic=0, with ,no_repair or ,keeps_state after it; repeat the option "
        "for several (default: those of --rates)",
        default=(),
    )
    unit: int | None = count(
        "Number of devices that are replaced together (default: server or cube of --fabric, or "
        f"{UNIT})"
    )
    spares: str | None = option(
        "Number of spare units; several with commas (default: those of --fabric, or one for every "
        "failure)"
    )
    repair: str = option("Mean time of a repair", metavar="TIME", default="24h")
    degraded_speed: float | None = option(
        "Speed without one unit and a spare, as a share (default: that of --replan, or 0: the run "
        "waits)",
        metavar="SHARE",
    )
    replan: str | None = option(
        "Collective, or collective=algorithm, whose new plan without one unit of --fabric gives "
        "--degraded-speed and --setup (default: none)",
        metavar="COLLECTIVE",
        group=FURTHER,
    )
    size: str | None = option(
        "Size of the collective of --replan (default: 4MiB)", metavar="SIZE", group=FURTHER
    )
    share: float | None = option(
        "Share of an iteration in which devices wait for the network, which opticoll train prints "
        "(required with --replan)",
        metavar="SHARE",
        group=FURTHER,
    )
    failed: list[str] | None = option(
        "Failure for --replan, such as 'rank 5' or 0>1; repeat the option for several (default: "
        "loss of a unit)",
        group=FURTHER,
    )
    checkpoint: str = option("Time to write a checkpoint", metavar="TIME", default="30s")
    interval: str = option(
        "Time of work between checkpoints, or young or daly; several with commas", default="young"
    )
    detection: str = option("Time from a failure to its detection", metavar="TIME", default="1min")
    restart: str = option("Time to start again from a checkpoint", metavar="TIME", default="3min")
    setup: str | None = option(
        "Time to set up the network anew, with a new plan (default: measured by --replan, or 0s)",
        metavar="TIME",
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
    source: str
    network: Network | None = None
    replanned: ReplannedRow | None = None

    @property
    def failure_rate(self) -> float:
        """Interruptions of the run per second, with all units."""
        return self.devices * sum(part.rate for part in self.run.parts)

    @property
    def state_rate(self) -> float:
        """Failures per second that lose the state."""
        return self.devices * sum(part.rate for part in self.run.parts if not part.keeps_state)


NO_FABRIC = "without --fabric"


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
    setup_s: Duration = means("Time after each failure to set up the network anew")
    degraded_speed: Share = means("Speed without one unit and without a spare; 0: the run waits")
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
    fabric: str = means("Fabric", "fabric", omitted=NO_FABRIC)
    network: list[str] = means("Parts of the fabric that have a failure rate", omitted=NO_FABRIC)
    replaced: list[str] = means(
        "Kinds of --rates that the parts of the fabric replace", omitted=NO_FABRIC
    )
    left_out: list[str] = means("Parts of the fabric that have no failure rate", omitted=NO_FABRIC)
    network_rates: list[str] = means(
        "Failure rates of parts of the fabric, each with its source", omitted=NO_FABRIC
    )
    replanned: ReplannedRow = means("New plan without a unit", omitted="without --replan")
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
    if parameters.replications < MIN_REPLICATIONS:
        raise UsageError(
            f"--replications: {parameters.replications} is out of range: it must be at least "
            f"{MIN_REPLICATIONS}"
        )
    cases = list(_cases(parameters, watch))
    for done, case in enumerate(cases):

        def progress(share: float, done: int = done) -> None:
            watch.update("simulating", round(100 * (done + share)), 100 * len(cases))

        totals = simulate(case.run, parameters.replications, parameters.seed, progress)
        yield _row(case, totals)


def _check(parameters: Parameters) -> None:
    """Raises an error for options that do not go together, or that are out of range."""
    of_fabric = {name: getattr(parameters, name) for name in ("components", "switch", "replan")}
    if parameters.fabric is None:
        refuse_given(of_fabric, "needs --fabric")
    elif parameters.devices is not None:
        raise UsageError("--devices: --fabric states the devices; leave out --devices")
    of_replan = {name: getattr(parameters, name) for name in ("size", "share", "failed")}
    if parameters.replan is None:
        refuse_given(of_replan, "needs --replan")
    elif parameters.share is None:
        raise UsageError(
            "--replan: the speed depends on the share of an iteration in which devices wait for "
            "the network; give --share, such as 0.3"
        )
    speed, share = parameters.degraded_speed, parameters.share
    if speed is not None and not 0 <= speed < 1:
        raise UsageError(
            f"--degraded-speed: {speed:g} is out of range: it must be at least 0 and below 1"
        )
    if share is not None and not 0 <= share <= 1:
        raise UsageError(f"--share: {share:g} is out of range: it must be at least 0 and at most 1")


def _cases(parameters: Parameters, watch: Watch) -> Iterator[_Case]:
    _check(parameters)
    stated = [
        None if text == "" else whole_number("--spares", text, 0, MAX_DEVICES)
        for text in option_types.listed("--spares", parameters.spares)
    ]
    if parameters.fabric is not None:
        for fabric in to_fabrics(parameters.fabric):
            yield from _on(parameters, fabric, stated, watch)
        return
    rates = given(parameters.rate, parameters.rates)
    unit = parameters.unit or UNIT
    for devices in split_counts("--devices", parameters.devices or str(DEVICES)):
        for spares in stated:
            start = _Case(_run(parameters, rates, devices, unit, spares), devices, "", rates.source)
            yield from _with_intervals(parameters, start)


def _on(
    parameters: Parameters, fabric: Fabric, stated: Sequence[int | None], watch: Watch
) -> Iterator[_Case]:
    """Yields the cases of a fabric."""
    unit = parameters.unit or unit_of(fabric)
    values = in_use().catalogue()
    anew = None
    if parameters.replan is not None and parameters.share is not None:
        anew = replanned(
            fabric,
            unit,
            parameters.replan,
            size=parameters.size,
            failed=parameters.failed or (),
            share=parameters.share,
            measure=parameters.setup is None,
            watch=watch,
        )
    for spares in stated if parameters.spares is not None else [spares_of(fabric)]:
        whole = with_spares(fabric, spares, unit)
        parts = network(whole, unit, values, parameters.rates, parameters.rate, parameters.switch)
        run = _run(parameters, parts.rates, fabric.ranks, unit, spares)
        if anew is not None:
            run = dataclasses.replace(
                run,
                setup_s=anew.setup_s if parameters.setup is None else run.setup_s,
                degraded_speed=anew.speed
                if parameters.degraded_speed is None
                else run.degraded_speed,
            )
        start = _Case(run, fabric.ranks, "", parts.rates.source, parts, anew)
        yield from _with_intervals(parameters, start)


def _run(
    parameters: Parameters, rates: FailureRates, devices: int, unit: int, spares: int | None
) -> Run:
    """Returns a run without its interval."""
    if not rates.parts:
        raise UsageError("no part fails; give a rate such as --rate gpu=148/16384/54d")
    if parameters.degraded_speed and spares is None:
        raise UsageError(
            "--degraded-speed: the run has a spare unit for every failure; give --spares 0 or more"
        )
    if devices > MAX_DEVICES:
        raise UsageError(f"--devices: {devices} is out of range: it must be in 1..{MAX_DEVICES}")
    if devices % unit:
        raise UsageError(
            f"--devices: {devices} is no multiple of {unit}, the devices that are replaced "
            "together; give --unit"
        )
    return Run(
        units=devices // unit,
        unit=unit,
        spares=spares,
        parts=tuple(rates.parts),
        checkpoint_s=to_seconds("--checkpoint", parameters.checkpoint),
        interval_s=math.nan,
        detection_s=to_seconds("--detection", parameters.detection),
        restart_s=to_seconds("--restart", parameters.restart),
        setup_s=to_seconds("--setup", parameters.setup or "0s"),
        repair_s=to_seconds("--repair", parameters.repair, least=1.0),
        degraded_speed=parameters.degraded_speed or 0.0,
        length_s=to_seconds("--length", parameters.length, least=1.0),
    )


def _with_intervals(parameters: Parameters, start: _Case) -> Iterator[_Case]:
    for interval in option_types.listed("--interval", parameters.interval):
        yield _with_interval(dataclasses.replace(start, interval=interval))


def _with_interval(case: _Case) -> _Case:
    """Returns the case with the time of its interval."""
    run, interval = case.run, case.interval
    if interval not in formulas.OPTIMA:
        interval_s = to_seconds("--interval", interval, least=1.0)
    elif case.state_rate == 0 or run.checkpoint_s == 0:
        raise UsageError(
            "--interval: there is no optimum if no failure loses state or a checkpoint takes no "
            "time; give an interval such as 1h"
        )
    else:
        interval_s = formulas.OPTIMA[interval](run.checkpoint_s, 1 / case.state_rate)
    # A repair follows each failure, and spares fail as well.
    steps = 2 * case.failure_rate * run.length_s * (1 + (run.spares or 0) / run.units)
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


def _row(case: _Case, totals: Totals) -> GoodputRow:
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
    return GoodputRow.of(
        run,
        devices=case.devices,
        between_failures_s=1 / case.failure_rate,
        interval=case.interval,
        young_s=optima["young"],
        daly_s=optima["daly"],
        goodput=_share(mean),
        goodput_low=_share(mean - half),
        goodput_high=_share(mean + half),
        formula=_formula(case, run.interval_s),
        complete_formula=_complete(case, run.interval_s),
        available=_available(run),
        per_installed=None if installed is None else _share(mean * installed),
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
        rates=case.source,
        case=case,
        **_of_network(case),
    )


def _of_network(case: _Case) -> dict[str, Any]:
    """Returns the fields of a row on the fabric and on the new plan."""
    fields: dict[str, Any] = {}
    if case.network is not None:
        fields = {
            "fabric": case.network.fabric.spec,
            "network": case.network.parts,
            "replaced": case.network.replaced,
            "left_out": case.network.left_out,
            "network_rates": case.network.sources,
        }
    if case.replanned is not None:
        fields["replanned"] = case.replanned
    return fields


def _share(value: float) -> float:
    """Returns a share without the errors of rounding below 0 and above 1."""
    return min(1.0, max(0.0, float(value)))


def _draw(parameters: Any, rows: list[GoodputRow], path: Path) -> None:
    from opticoll import plot

    names = labels(rows)
    series: dict[str, list[GoodputRow]] = {}
    for row in rows:
        spares = "" if row.spares is None else f", {plural(row.spares, 'spare')}"
        fabric = "" if len(set(names.values())) < 2 else f" of {names[row.fabric]}"
        series.setdefault(f"{row.devices:,} devices{fabric}{spares}", []).append(row)
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
    options = {"spares": None if row.spares is None else str(row.spares), "interval": row.interval}
    if row.case.network is None:
        return {"devices": str(row.devices), **options}
    if row.case.replanned is not None and parameters.setup is None:
        # A measured time is another one each time.
        options["setup"] = f"{row.case.run.setup_s:.12f}s"
    return {"fabric": [row.fabric], **options}


COMMAND = Command(
    name="goodput",
    example="opticoll goodput --devices 256,4096,65536 --checkpoint 30s --repair 24h",
    parameters=Parameters,
    rows=GoodputRow,
    compute=compute,
    text=goodput_text,
    progress_label="simulating",
    files=(rows_file(), figure_file(_draw)),
    row_options=_alone,
)
command_line = on_command_line(COMMAND)
