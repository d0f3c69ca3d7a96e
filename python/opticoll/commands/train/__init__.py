"""An iteration of training by data parallelism: its parts, and the time to train.

The gradients of a bucket are all_reduced by a plan. Each plan is verified once and simulated once
for each distinct size of a bucket.

>>> import opticoll
>>> row = opticoll.train("resnet50", "crossbar:ranks=4,rate=100Gb/s,latency=0s", batch=256,
...     algorithm="halving_doubling", buckets="all", overlap=False)
>>> round(row.exposed_communication_s * 1e3, 2), row.reconfiguration_s, row.verified
(12.27, 0.0, True)
"""

# Not `from __future__ import annotations`: cyclopts reads the types of a dataclass at run time.

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from opticoll import registry, words
from opticoll._core import Fabric, Outcome, TimedModel, check_buckets, format_size
from opticoll.arguments import need_fabrics, settings_on
from opticoll.commands.train.prices import GRADIENTS, MemoryRow, Model, Prices, timed
from opticoll.errors import UsageError
from opticoll.layout import PICOSECONDS, align, duration, format_rate, plural, size_names
from opticoll.options import FURTHER, NO_METHOD, FabricsOption, MethodOption, WavelengthOption
from opticoll.plan_row import capacity_lines, different_ranks
from opticoll.rows import (
    OMITTED,
    BitsPerSecond,
    Bytes,
    Count,
    Fraction,
    Number,
    Positive,
    Row,
    Seconds,
    command_field,
    means,
    plain,
)
from opticoll.runner import Command, Watch, figure_file, on_command_line, rows_file
from opticoll.settings import given

__all__ = ["COMMAND", "AllReduceRow", "BucketRow", "Train", "TrainingRow", "compute"]

MOST = 2**40

MOST_SIZES = 12
"""Sizes of all_reduces printed for people."""


@dataclass(frozen=True, kw_only=True)
class Train:
    """What `opticoll train` takes."""

    fabric: FabricsOption = None
    model: Annotated[
        str | None,
        Parameter(
            help="Model, such as resnet50 or gpt:layers=12,width=768; see `opticoll list models` "
            "(required without --profile)"
        ),
    ] = None
    batch: Annotated[
        int | None,
        words.count("Samples per device and iteration (required without --profile)", MOST),
    ] = None
    device: Annotated[
        str | None,
        Parameter(
            help="Accelerator, such as a100:efficiency=0.4; see `opticoll list devices` "
            f"(default: {registry.records('devices')[0]['name']})"
        ),
    ] = None
    throughput: Annotated[
        str | None,
        Parameter(
            help="Measured rate of one device in place of --device, such as 50TFLOP/s or "
            "1100images/s (default: none)",
            group=FURTHER,
            allow_leading_hyphen=True,
        ),
    ] = None
    profile: Annotated[
        Path | None,
        Parameter(
            help="Profile of the layers with their times, .csv or .yaml, in place of model and "
            "device (default: none)",
            converter=words.path,
        ),
    ] = None
    device_memory: Annotated[
        str | None,
        Parameter(
            help="Memory of the device, such as 80GB (default: that of `opticoll list devices`)",
            group=FURTHER,
        ),
    ] = None
    gradients: Annotated[
        Literal["float32", "float16", "bfloat16"],
        Parameter(
            help="Number format of the gradients: float32, float16 or bfloat16",
            converter=words.choice,
            group=FURTHER,
        ),
    ] = "float32"
    buckets: Annotated[
        str,
        Parameter(
            help="Size of a bucket of gradients: tensor, all, ddp (1MiB, then 25MiB) or a size"
        ),
    ] = "ddp"
    overlap: Annotated[
        bool, Parameter(help="Overlap of sending with the backward pass", negative="--no-overlap")
    ] = True
    epochs: Annotated[
        int | None,
        words.count("Number of epochs whose time is printed (default: none)", MOST, FURTHER),
    ] = None
    samples: Annotated[
        int | None,
        words.count(
            "Number of samples of an epoch (default: that of ImageNet for models of images)",
            MOST,
            FURTHER,
        ),
    ] = None
    algorithm: Annotated[
        str | None,
        Parameter(
            help="Algorithm of the all_reduce, or A+B: reduce_scatter by A, all_gather by B "
            "(default: auto)"
        ),
    ] = None
    method: MethodOption = NO_METHOD
    wavelength: WavelengthOption = None


class AllReduceRow(Row):
    """All buckets of one size, and what the all_reduce of one of them costs."""

    size_bytes: Bytes = means("Size of the all_reduce")
    count: Positive = means("Number of buckets of this size")
    algorithm: str = means("Algorithm, or what `auto` chose")
    steps: Count = means("Number of time slots of the plan")
    time_s: Seconds = means("Time of one all_reduce")
    reconfiguration_s: Seconds = means("Part of that time that is reconfiguration")
    control_s: Seconds = means("Part of that time that is control")
    verified: bool = means("Whether its plans are proved")


class BucketRow(Row, core="iteration.buckets"):
    """A bucket in the course of the iteration."""

    bytes: Bytes
    tensors: Positive
    layer: str
    ready_s: Seconds
    start_s: Seconds
    end_s: Seconds


class TrainingRow(Row, core="iteration"):
    """An iteration of training on a fabric."""

    model: str = means("Complete specification of the model, or its name in the profile")
    label: str = means("Name as printed in figures")
    warnings: list[str] = means(
        "What to check before the times are trusted, such as a model that does not fit the device"
    )
    parameters: Count = means("Number of parameters of the model")
    tensors: Count = means("Number of gradient tensors")
    gradients: Literal["float32", "float16", "bfloat16"] = means(
        "Number format in which gradients are sent"
    )
    gradient_bytes: Bytes = means("Number of bytes of all gradients")
    fabric: str = means("Complete specification of the fabric")
    ranks: Positive = means("Number of devices")
    injection_bandwidth: BitsPerSecond = means(
        "Bandwidth that a rank can inject; of ranks that differ, the least"
    )
    algorithm: str = means("Algorithm of the all_reduce as asked for")
    batch: Positive = means("Number of samples per device and iteration")
    compute: str = means(
        "Where the time of computing comes from: a device, a throughput or a profile"
    )
    memory: MemoryRow = means("Memory that the model takes on a device")
    buckets: str = means("Rule by which gradients share an all_reduce")
    overlap: bool = means("Whether buckets are sent during the backward pass")
    simulator: str = means("Simulator of the all_reduces; empty where nothing is sent")
    policy: str | None = means(
        "Policy: when reconfiguration is charged", absent="nothing is sent, or electrical fabrics"
    )
    start: str | None = means(
        "Start rule of messages on electrical fabrics", absent="nothing is sent, or circuits"
    )
    iteration_s: Seconds = means(
        "Time of an iteration: the sum of computing and of the three exposed parts"
    )
    compute_s: Seconds
    forward_s: Seconds
    exposed_communication_s: Seconds = means("Time in which data move after the backward pass")
    reconfiguration_s: Seconds = means(
        "Time of reconfiguration after the backward pass: circuits set up, lasers tuned, receivers"
        " locked"
    )
    control_s: Seconds = means(
        "Time of control after the backward pass: requests and grants, and waiting in queues"
    )
    communication_s: Seconds = means(
        "Time of all sending with its reconfiguration and control, hidden or not"
    )
    samples_per_s: Number = means("Samples per second of all devices together")
    efficiency: Fraction = means("Share of the iteration that is computing")
    setup_s: Seconds = means("Time to set slow switches, once for a training")
    epochs: Positive | None = means("Number of epochs", absent="no epochs are asked for")
    samples: Positive | None = means(
        "Number of samples of an epoch", absent="the samples of an epoch are not known"
    )
    iterations: Positive | None = means(
        "Number of iterations of all epochs", absent="no epochs are asked for"
    )
    training_s: Seconds | None = means(
        "Time of the setup and all iterations", absent="no epochs are asked for"
    )
    verified: bool = means("Whether all plans are proved")
    violations: list[str] = means("What is wrong with plans, one sentence each")
    collectives: list[AllReduceRow] = means("Distinct sizes of buckets, in increasing order")
    timeline: list[BucketRow] = means("Buckets in the order in which they are sent")
    command: str = command_field(default=OMITTED)


def compute(asked: Train, watch: Watch) -> Iterator[TrainingRow]:
    """Time one iteration on each fabric, and from it the training.

    Raises
    ------
    OpticollError
        An unknown name, arguments that do not go together, a profile or an algorithm that fails.
    """
    fabrics = need_fabrics(asked.fabric)
    settings = given(vars(asked.method))
    if asked.gradients not in GRADIENTS:
        raise UsageError(f"there are no gradients in `{asked.gradients}`; {', '.join(GRADIENTS)}")
    warnings: dict[str, None] = {}
    for fabric in fabrics:
        model, named, batch = timed(asked)
        rule = check_buckets(asked.buckets)
        prices = Prices(asked, fabric, settings_on(fabric, fabrics, settings))
        distinct = sorted(set(model.buckets(rule)))
        for done, size in enumerate(distinct):
            watch.update(f"all_reduce of {format_size(size)}", done, len(distinct))
            prices.find(size)
        costs = {
            size: (cost["time_ps"], cost["reconfiguration_ps"], cost["control_ps"])
            for size, cost in prices.costs.items()
        }
        iteration = model.iterate(rule, asked.overlap, costs)
        row = _row(asked, fabric, batch, named, rule, model, prices, iteration)
        warnings |= dict.fromkeys(row.warnings)
        yield row
    watch.notes += [f"warning: {warning}" for warning in warnings]


def _warnings(named: Model, batch: int) -> list[str]:
    """What to check before the times are trusted."""
    memory = named.memory
    if memory.fits is not False:
        return []
    have, need = memory.device_bytes or 0, memory.total_bytes
    states = need - (memory.activations_bytes or 0)
    cure = (
        "a smaller batch fits"
        if states < have
        else "no batch fits: divide the model among devices, which data parallelism does not"
    )
    return [
        f"{named.label} does not fit the device: it takes {need / 1e9:,.1f} GB at a batch of "
        f"{batch}, {states / 1e9:,.1f} GB of that whatever the batch, and the device has "
        f"{have / 1e9:,.1f} GB; {cure}"
    ]


def _row(
    asked: Train,
    fabric: Fabric,
    batch: int,
    named: Model,
    rule: str,
    model: TimedModel,
    prices: Prices,
    iteration: Outcome,
) -> TrainingRow:
    layers = model.layers
    buckets = iteration.buckets.rows()
    sizes: list[int] = [one["bytes"] for one in buckets]
    samples = asked.samples if asked.samples is not None else named.epoch_samples
    if asked.epochs is not None and samples is None:
        raise UsageError("an epoch has no known number of samples here; give samples")
    iterations = training_s = None
    setup_ps = fabric.option("slow_switch") or 0
    if asked.epochs is not None and samples is not None:
        iterations = asked.epochs * -(-samples // (batch * fabric.ranks))
        training_s = (setup_ps + iterations * iteration.time_ps) / PICOSECONDS
    any_cost = next(iter(prices.costs.values()), None)
    violations = dict.fromkeys(one for found in prices.violations.values() for one in found)
    return TrainingRow.of(
        iteration,
        any_cost or {"simulator": "", "policy": None, "start": None},
        model=named.name,
        label=named.label,
        warnings=_warnings(named, batch),
        parameters=named.parameters,
        tensors=sum(len(tensors) for _, tensors, _, _ in layers),
        gradients=asked.gradients,
        gradient_bytes=sum(sizes),
        fabric=fabric.spec,
        ranks=fabric.ranks,
        injection_bandwidth=fabric.injection_bandwidth,
        algorithm=prices.algorithm,
        batch=batch,
        compute=named.compute,
        memory=named.memory,
        buckets=rule,
        overlap=asked.overlap,
        iteration_s=iteration.time_ps / PICOSECONDS,
        exposed_communication_s=iteration.exposed_ps / PICOSECONDS,
        communication_s=iteration.sending_ps / PICOSECONDS,
        samples_per_s=batch * fabric.ranks * PICOSECONDS / max(iteration.time_ps, 1),
        efficiency=iteration.compute_ps / max(iteration.time_ps, 1),
        setup_s=setup_ps / PICOSECONDS,
        epochs=asked.epochs,
        samples=samples,
        iterations=iterations,
        training_s=training_s,
        verified=not violations,
        violations=list(violations),
        collectives=[_collective(prices, size, sizes.count(size)) for size in sorted(prices.costs)],
        timeline=[BucketRow.of(one, layer=layers[one["layer"]][0]) for one in buckets],
    )


def _collective(prices: Prices, size: int, count: int) -> AllReduceRow:
    cost, (algorithm, steps) = prices.costs[size], prices.rows[size]
    return AllReduceRow.of(
        cost,
        size_bytes=size,
        count=count,
        algorithm=algorithm,
        steps=steps,
        verified=not prices.violations[size],
    )


PARTS = {
    "computing": "compute_s",
    "communication, exposed": "exposed_communication_s",
    "reconfiguration, exposed": "reconfiguration_s",
    "control, exposed": "control_s",
}
"""What an iteration consists of, and the columns of its times."""


def _text(asked: Any, rows: list[TrainingRow]) -> str:
    return training_text(rows)


def training_text(rows: Sequence[TrainingRow]) -> str:
    """An iteration on each fabric, and, of several, a table of them."""
    blocks = [_iteration(row) for row in rows]
    if len(rows) > 1:
        blocks.append("\n".join([_fabrics(rows), *capacity_lines(rows)]))
    return "\n\n".join(blocks)


def _fabrics(rows: Sequence[TrainingRow]) -> str:
    """A line for each fabric, the ratio to the shortest iteration beside each."""
    labels = registry.fabric_labels(row.fabric for row in rows)
    least = min(row.iteration_s for row in rows)
    sized = different_ranks(rows)
    lines = [
        [
            labels[row.fabric],
            *([str(row.ranks)] if sized else []),
            format_rate(row.injection_bandwidth),
            duration(row.iteration_s),
            f"{row.iteration_s / least:.2f}" if least else "-",
            f"{row.efficiency:.1%}",
        ]
        for row in rows
    ]
    heading = ["fabric", "per rank", "iteration", "ratio", "computing"]
    if sized:
        heading.insert(1, "ranks")
    return align(lines, heading, right=range(1, len(heading)))


def _memory(row: TrainingRow) -> str:
    """What the model takes on a device, and whether it fits."""
    memory = row.memory
    gigabytes = f"{memory.total_bytes / 1e9:,.1f} GB"
    states = f"weights {memory.weights_bytes / 1e9:,.1f}"
    states += f", gradients {memory.gradients_bytes / 1e9:,.1f}"
    states += f", optimizer {memory.optimizer_bytes / 1e9:,.1f}"
    activations = memory.activations_bytes
    known = "" if activations is None else f", activations {activations / 1e9:,.1f}"
    least = "at least " if activations is None else ""
    total = f"{least}{gigabytes} in mixed precision"
    if memory.device_bytes is None:
        return f"{total}: {states}{known}"
    fits = "fits" if memory.fits else "does NOT fit"
    return f"{total}: {states}{known}; {fits} {memory.device_bytes / 1e9:,.1f} GB"


def _iteration(row: TrainingRow) -> str:
    """A line that says all, where an iteration spends its time, and what all_reduces cost."""
    whole = row.iteration_s
    rule = row.policy or row.start or ""
    head = (
        f"iteration {duration(whole)}: {row.efficiency:.1%} computing; "
        f"{row.samples_per_s:.6g} samples/s; "
        f"{'verified' if row.verified else 'NOT verified'}"
    )
    facts = [
        ["model", f"{row.label}: {row.parameters:,} parameters in {row.tensors} tensors"],
        ["gradients", f"{row.gradients}, {row.gradient_bytes / 1e6:,.1f} MB"],
        ["fabric", f"{plural(row.ranks, 'rank')}: {registry.fabric_text(row.fabric)}"],
        ["injection", f"{format_rate(row.injection_bandwidth)} per rank"],
        ["algorithm", f"all_reduce by {row.algorithm}"],
        ["computing", f"a batch of {row.batch} per device, {row.compute}"],
        ["memory", _memory(row)],
        ["buckets", f"{row.buckets}: {plural(len(row.timeline), 'all_reduce')}"],
        ["overlap", "sent during the backward pass" if row.overlap else "none"],
        ["simulator", f"{row.simulator or 'none'}{', ' if rule else ''}{rule}"],
        ["verified", "yes" if row.verified else f"NO: {row.violations[0]}"],
    ]
    parts = [
        ("computing", row.compute_s),
        ("communication, exposed", row.exposed_communication_s),
        ("reconfiguration, exposed", row.reconfiguration_s),
        ("control, exposed", row.control_s),
        ("iteration", whole),
    ]
    shares = [
        [name, duration(time_s), f"{time_s / whole:.1%}" if whole else "-"]
        for name, time_s in parts
    ]
    hidden = row.communication_s - (whole - row.compute_s)
    shares.append(["communication, hidden", duration(max(hidden, 0.0)), ""])
    blocks = [head, align(facts), align(shares, ["part", "time", "share"], right=(1, 2))]
    if row.collectives:
        blocks.append(_sizes(row))
    if row.training_s is not None:
        blocks.append(
            f"training: {plural(row.epochs or 0, 'epoch')} of {row.samples:,} samples are "
            f"{row.iterations:,} iterations: {duration(row.training_s)}"
        )
    return "\n\n".join(blocks)


def _sizes(row: TrainingRow) -> str:
    """What all_reduces cost: those that take longest in all."""
    ordered = sorted(row.collectives, key=lambda one: -one.count * one.time_s)
    names = size_names(one.size_bytes for one in ordered)
    lines = [
        [
            names[one.size_bytes],
            str(one.count),
            one.algorithm,
            str(one.steps),
            duration(one.time_s),
            duration(one.reconfiguration_s),
            duration(one.control_s),
        ]
        for one in ordered[:MOST_SIZES]
    ]
    heading = ["all_reduce of", "times", "algorithm", "steps", "each", "reconfiguration", "control"]
    table = align(lines, heading, right=(1, 3, 4, 5, 6))
    rest = len(ordered) - MOST_SIZES
    return f"{table}\nand {rest} sizes more (all of them with --json)" if rest > 0 else table


def _buckets(asked: Any, rows: list[TrainingRow]) -> list[dict[str, object]]:
    """The buckets of iterations, each with the fabric that carries it."""
    return [
        {"fabric": row.fabric, "injection_bandwidth": row.injection_bandwidth, **plain(bucket)}
        for row in rows
        for bucket in row.timeline
    ]


def _draw(asked: Any, rows: list[TrainingRow], path: Path) -> None:
    """Draw the course of an iteration; of several fabrics, what their iterations consist of."""
    from opticoll.plot import style
    from opticoll.plot.stacked_bars import StackedPanel, stacked_bars
    from opticoll.plot.training import Bar, iteration_timeline

    row = rows[0]
    title = f"{row.label}, batch {row.batch}"
    if len(rows) > 1:
        labels = registry.fabric_labels(one.fabric for one in rows)
        parts = {name: [one[key] for one in rows] for name, key in PARTS.items()}
        names = [f"{labels[one.fabric]}\n{style.conditions(one.fabric)}" for one in rows]
        stacked_bars([StackedPanel("", parts)], names, path, x_label="Iteration", title=title)
        return
    names = style.size_texts([one.bytes for one in row.timeline])
    bars = [
        Bar(name, one.ready_s, one.start_s, one.end_s)
        for name, one in zip(names, row.timeline, strict=True)
    ]
    time = style.time_text(row.iteration_s)
    title = f"{title}, {row.ranks} ranks: iteration {time}"
    iteration_timeline(row.forward_s, row.compute_s, bars, path, title=title)


def _alone(asked: Any, row: TrainingRow) -> dict[str, Any]:
    """Of several fabrics that of a row, with the settings that its simulator knows."""
    fabrics = need_fabrics(asked.fabric)
    if len(fabrics) == 1:
        return {}
    settings = given(vars(asked.method))
    known = settings_on(Fabric(row.fabric), fabrics, settings)
    return {"fabric": row.fabric, **{name: known.get(name) for name in settings}}


COMMAND = Command(
    name="train",
    example="opticoll train --model resnet50 --batch 32 --fabric optree_paper",
    asks=Train,
    gives=TrainingRow,
    compute=compute,
    text=_text,
    doing="training",
    shape="row or rows",
    files=(rows_file(_buckets), figure_file(_draw)),
    alone=_alone,
)
command_line = on_command_line(COMMAND)
