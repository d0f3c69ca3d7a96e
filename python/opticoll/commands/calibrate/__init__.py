"""Command `calibrate`: fits the costs of a library, or the constants of a device, to times."""

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from opticoll._core import Fabric, FabricError
from opticoll.cli.option_types import argument, count, option
from opticoll.cli.runner import Command, File, on_command_line, rows_file
from opticoll.commands.calibrate.fitting import (
    Costs,
    DeviceModel,
    Fitted,
    LibraryModel,
    Model,
    Number,
    Timed,
    fit,
    rounded,
    starts_of,
)
from opticoll.errors import UsageError, needed
from opticoll.formats.atomic import check_writable, write_file
from opticoll.inputs import layer_times, measured_times
from opticoll.inputs.fabric_files import need_fabric
from opticoll.inputs.measured_times import MAX_RANKS
from opticoll.outputs.layout import align, human_seconds, plural
from opticoll.outputs.plan_row import library_of
from opticoll.outputs.rows import Row, columns, means, table
from opticoll.outputs.units import Bytes, Count, Positive, Seconds, Unit
from opticoll.outputs.watch import Watch

Error = Annotated[float, Unit("1", "{:.1%}".format, least=None)]
"""Relative error: predicted over measured time, minus 1."""

MIN_ROWS = 8
"""Least number of rows of a fit: the costs of a library are about as many."""

MIN_GROUPS = 3
"""Least number of sizes or models, each of which is left out in turn."""


@dataclass(frozen=True, kw_only=True)
class Parameters:
    """Parameters of `opticoll calibrate`."""

    sources: list[str] = argument(
        "Files of measured times: of collectives, as CSV with collective, ranks, bytes, time_us or "
        "as text of nccl-tests or OSU's benchmarks; or, with --device, of layers as CSV",
        name="SOURCES",
    )
    family: str | None = option(
        "Machine that was measured, such as gpu_servers:model=dgx_h100 (required without --device)",
        name="--family",
    )
    device: str | None = option(
        "Device whose layers were measured, such as h100, in place of --family (default: none)"
    )
    system: str | None = option("System whose rows of a CSV file are read (default: the only one)")
    ranks: int | None = count(
        "Number of ranks of a text that does not state it, as of OSU (default: that of the text)",
        MAX_RANKS,
    )
    collective: Literal["all_gather", "reduce_scatter", "all_reduce", "all_to_all"] | None = option(
        "Collective of a text that does not state it (default: that of the text)"
    )
    predict: bool = option(
        "Also print each time as predicted by a fit without its size", default=False
    )


class CostRow(Row):
    """A cost of the library."""

    name: str = means("Name of the cost, which is also an option of the fabric", "cost")
    value: str = means("Fitted value", "value")
    least: str = means("Least value of the fits without one size", "least")
    most: str = means("Greatest value of the fits without one size", "most")
    record: str = means("Value in the record of the library", "record")
    determined: bool = means(
        "Whether the times determine the cost; otherwise it stays near the value of the record"
    )
    meaning: str = means("Meaning of the cost", "meaning")


class ResidualRow(Row):
    """Errors of some of the times."""

    name: str = means("Collective, layer, size, model or `all`", "of")
    rows: Count = means("Number of measured times", "times")
    mean: Error = means("Mean of the errors without their signs", "mean error")
    worst: Error = means("Greatest error without its sign", "worst")
    mean_left_out: Error = means(
        "The mean, of times that a fit without their size or model predicts", "left out: mean"
    )
    worst_left_out: Error = means("The greatest error, of the same predictions", "worst")


class TimeRow(Row):
    """A measured time, and the times that fits predict for it."""

    collective: str = means("Collective, or kind of layer and pass", "collective")
    ranks: Positive = means("Number of ranks", "ranks")
    bytes: Bytes | None = means(
        "Bytes of the whole buffer, as nccl-tests counts them", absent="the time is that of layers"
    )
    case: str | None = means("Model and shape", absent="the time is that of a collective")
    measured_s: Seconds = means("Measured time", "measured")
    fitted_s: Seconds = means("Time that the fit of all times predicts", "fitted")
    predicted_s: Seconds = means("Time that a fit without this size or model predicts", "predicted")
    error: Error = means("Predicted over measured time, minus 1", "error")
    protocol: str | None = means("Protocol that NCCL selects", absent="the time is that of layers")


class CalibrateRow(Row):
    """A fit of the costs of a library, or of the constants of a device."""

    fabric: str | None = means(
        "Complete specification of the fabric with the fitted costs", absent="a device was fitted"
    )
    device: str | None = means(
        "Specification of the device with the fitted constants", absent="a library was fitted"
    )
    library: str | None = means(
        "Record whose constants and choice of protocols the fit uses", absent="a device was fitted"
    )
    costs: list[CostRow] = means(
        "Costs or constants, with their ranges over the fits without one size or model"
    )
    collectives: list[ResidualRow] = means("Errors by collective or layer, and of all times")
    sizes: list[ResidualRow] = means("Errors by size or by model")
    times: list[TimeRow] = means("All times")


def compute(parameters: Parameters, watch: Watch) -> Iterator[CalibrateRow]:
    """Fits the costs to all times, and once more without each size or model.

    Raises
    ------
    OpticollError
        A file has no measured times, the fabric has no record of a library, there are too few
        times, or SciPy is not installed.
    """
    if not parameters.sources:
        raise UsageError("no file of measured times is given; give one such as all_reduce.txt")
    least_squares = needed("scipy.optimize", "costs are fitted by", "calibrate").least_squares
    fabric, rows = _measured(parameters)
    groups = list(dict.fromkeys(row.group for row in rows))
    if len(rows) < MIN_ROWS or len(groups) < MIN_GROUPS:
        what, advice = ("size", "from less than 1 KiB to 100 MiB or more")
        if fabric is None:
            what, advice = ("model", "such as products, blocks and output layers")
        raise UsageError(
            f"{plural(len(rows), 'time')} of {plural(len(groups), what)} are too few for a fit; "
            f"give at least {MIN_ROWS} times and {MIN_GROUPS} {what}s, {advice}"
        )
    model = _model(parameters, fabric, rows)
    watch.update("fitting all times", 0, len(groups) + 1)
    whole = fit(model, rows, starts_of(model.numbers), least_squares)
    costs = rounded(model.numbers, whole.costs)
    left_out: dict[str, Fitted] = {}
    for done, group in enumerate(groups, start=1):
        watch.update(f"fitting without {group}", done, len(groups) + 1)
        others = [row for row in rows if row.group != group]
        left_out[group] = fit(model, others, starts_of(model.numbers, 1), least_squares)
    times = _times(model, rows, costs, left_out)
    by_group = dict(zip(rows, times, strict=True))
    yield CalibrateRow(
        fabric=None if fabric is None else fabric.with_options(**model.options(costs)).spec,
        device=model.spec(costs) if isinstance(model, DeviceModel) else None,
        library=model.library if isinstance(model, LibraryModel) else None,
        costs=[_cost(number, costs, whole, list(left_out.values())) for number in model.numbers],
        collectives=[
            *(
                _residual(kind, [time for time in times if time.collective == kind])
                for kind in dict.fromkeys(time.collective for time in times)
            ),
            _residual("all", times),
        ],
        sizes=[
            _residual(group, [time for row, time in by_group.items() if row.group == group])
            for group in groups
        ],
        times=times,
    )


def _measured(parameters: Parameters) -> tuple[Fabric | None, list[Timed]]:
    """Returns the fabric, if a library is fitted, and the measured times."""
    rows: list[Timed] = []
    if parameters.device is not None:
        if parameters.family is not None:
            raise UsageError("family and device are both given; give one of them")
        for source in parameters.sources:
            rows += layer_times.read(source)
        return None, rows
    fabric = _machine(parameters.family)
    measured = [
        row
        for source in parameters.sources
        for row in measured_times.read(
            source, parameters.ranks, parameters.collective, parameters.system
        )
    ]
    measured.sort(key=lambda row: row.buffer_bytes)
    return fabric, [*measured]


def _model(parameters: Parameters, fabric: Fabric | None, rows: Sequence[Any]) -> Model:
    """Returns the model of a device or, if there is a fabric, of its library."""
    if fabric is None:
        return DeviceModel(parameters.device or "")
    return LibraryModel(fabric, rows)


def _machine(family: str | None) -> Fabric:
    """Returns the fabric with a library: the one that it names, or that of its model."""
    if family is None:
        raise UsageError(
            "--family is missing; give the machine that was measured, such as "
            "gpu_servers:model=dgx_h100"
        )
    fabric = need_fabric(family)
    if fabric.family != "gpu_servers":
        raise FabricError(
            f"--family: {fabric.family} has no library of collectives; give gpu_servers, such as "
            "gpu_servers:model=dgx_h100"
        )
    if library_of(fabric) is None:
        raise FabricError(
            "--family: the fabric has no library of collectives, whose constants the fit uses; "
            "name one, such as library=h100_sxm (opticoll list libraries)"
        )
    return fabric


def _cost(number: Number, costs: Costs, whole: Fitted, fits: Sequence[Fitted]) -> CostRow:
    values = [rounded([number], found.costs)[number.name] for found in fits]
    return CostRow(
        name=number.name,
        value=number.text(costs[number.name]),
        least=number.text(min(values)),
        most=number.text(max(values)),
        record=number.text(number.value),
        determined=whole.determined.get(number.name, True),
        meaning=number.meaning,
    )


def _times(
    model: Model, rows: Sequence[Timed], costs: Costs, left_out: dict[str, Fitted]
) -> list[TimeRow]:
    fitted = model.predict(costs, rows)
    predicted = {
        group: dict(zip(rows, model.predict(found.costs, rows), strict=True))
        for group, found in left_out.items()
    }
    return [
        TimeRow(
            collective=row.kind,
            ranks=row.ranks,
            bytes=getattr(row, "buffer_bytes", None),
            case=getattr(row, "case", None),
            measured_s=row.time_us / 1e6,
            fitted_s=time.time_us / 1e6,
            predicted_s=predicted[row.group][row].time_us / 1e6,
            error=predicted[row.group][row].time_us / row.time_us - 1,
            protocol=time.protocol or None,
        )
        for row, time in zip(rows, fitted, strict=True)
    ]


def _residual(name: str, times: Sequence[TimeRow]) -> ResidualRow:
    fitted = [abs(time.fitted_s / time.measured_s - 1) for time in times]
    predicted = [abs(time.error) for time in times]
    return ResidualRow(
        name=name,
        rows=len(times),
        mean=statistics.fmean(fitted),
        worst=max(fitted),
        mean_left_out=statistics.fmean(predicted),
        worst_left_out=max(predicted),
    )


def _fitted(row: CalibrateRow) -> str:
    """Returns what was fitted."""
    return f"library {row.library}" if row.device is None else f"device {row.device.split(':')[0]}"


def _group(row: CalibrateRow) -> str:
    """Returns the noun of what is left out in turn."""
    return "size" if row.device is None else "model"


def _text(parameters: Parameters, rows: list[CalibrateRow]) -> str:
    (row,) = rows
    total = row.collectives[-1]
    lines = [
        f"{plural(total.rows, 'time')}; {_fitted(row)}; mean error {total.mean:.1%}, worst "
        f"{total.worst:.1%}; with each {_group(row)} left out {total.mean_left_out:.1%}, worst "
        f"{total.worst_left_out:.1%}",
        "",
    ]
    cells = [
        [
            cost.name,
            cost.value,
            f"{cost.least} to {cost.most}",
            cost.record,
            cost.meaning if cost.determined else f"{cost.meaning} (not determined by the times)",
        ]
        for cost in row.costs
    ]
    headings = ["cost", "value", f"without a {_group(row)}", "record", "meaning"]
    lines += [align(cells, headings, {1, 2, 3}), ""]
    for heading, residuals in (
        ("collective" if row.device is None else "layer", row.collectives),
        ("bytes" if row.device is None else "model", row.sizes),
    ):
        names = [column.name for column in columns(ResidualRow)]
        lines += [table(residuals, names, headings={"name": heading}), ""]
    if parameters.predict:
        cells = [
            [
                time.collective,
                str(time.ranks),
                str(time.bytes) if time.case is None else time.case,
                human_seconds(time.measured_s),
                human_seconds(time.predicted_s),
                f"{time.error:+.1%}",
                time.protocol or "-",
            ]
            for time in row.times
        ]
        headings = ["collective", "ranks", "bytes", "measured", "predicted", "error", "protocol"]
        lines += [align(cells, headings, {1, 2, 3, 4, 5}), ""]
    lines.append(f"fabric: {row.fabric}" if row.device is None else f"device: {row.device}")
    return "\n".join(lines)


def _check_preset(path: Path) -> None:
    if path.suffix.lower() not in (".yaml", ".yml"):
        raise UsageError(f"--output: `{path}` must end in .yaml or .yml")
    check_writable(path)


def _write_preset(parameters: Parameters, rows: list[CalibrateRow], path: Path) -> None:
    (row,) = rows
    if row.fabric is None:
        raise UsageError("--output: a device has no file; copy the line `device` of the output")
    total = row.collectives[-1]
    family, _, options = row.fabric.partition(":")
    values = [option.partition("=") for option in options.split(",")]
    lines = [
        f"# Fitted by `opticoll calibrate` to {plural(total.rows, 'time')} of "
        f"{', '.join(Path(source).name for source in parameters.sources)}: mean error "
        f"{total.mean:.1%},",
        f"# worst {total.worst:.1%}; with each size left out {total.mean_left_out:.1%}, worst "
        f"{total.worst_left_out:.1%}.",
        f"family: {family}",
        *(f'{name}: "{value}"' for name, _, value in values),
    ]
    write_file(path, "\n".join(lines) + "\n")


COMMAND = Command(
    name="calibrate",
    example="opticoll calibrate nccl.csv --system h100_sxm --family gpu_servers:model=dgx_h100",
    parameters=Parameters,
    rows=CalibrateRow,
    compute=compute,
    text=_text,
    progress_label="fitting",
    shape="row",
    files=(
        File(
            "output",
            "File for the fabric with the fitted costs: .yaml",
            _write_preset,
            _check_preset,
        ),
        rows_file(lambda _, rows: rows[0].times),
    ),
)
command_line = on_command_line(COMMAND)
