"""Command `train`: the parts of a training iteration's time, and the time of the training.

With data parallelism alone, a plan adds the gradients of each bucket in an all_reduce. Each plan is
verified once, and simulated once for each distinct bucket size. If groups of ranks divide the
model, the module `groups` simulates the iteration.

>>> import opticoll
>>> row = opticoll.train("resnet50", "crossbar:ranks=4,rate=100Gb/s,latency=0s", batch=256,
...     algorithm="halving_doubling", buckets="all", overlap=False)
>>> round(row.exposed_communication_s * 1e3, 2), row.reconfiguration_s, row.verified
(12.27, 0.0, True)
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from opticoll._core import Fabric, Outcome, TimedModel, TrainingModel, check_buckets, format_size
from opticoll.cli.arguments import settings_on
from opticoll.cli.option_types import count, option, whole
from opticoll.cli.options import (
    CAPACITY_FACTOR,
    EXPERT_CHUNKS,
    EXPERT_COPIES,
    EXPERT_PLACEMENT,
    EXPERT_SKEW,
    FURTHER,
    GROUPS,
    METHOD,
    ComponentsOption,
    FabricsOption,
    WavelengthOption,
)
from opticoll.cli.runner import Command, figure_file, on_command_line, rows_file
from opticoll.commands.train.energy import EnergyRow, Spent, check_energy, energy_row
from opticoll.commands.train.figure import draw
from opticoll.commands.train.group_rows import EXCHANGES, GroupsRow
from opticoll.commands.train.groups import (
    Method,
    activations,
    carry_out,
    cure_of,
    divide,
    is_grouped,
    method_of,
    refuse_too_large,
    why_alone,
)
from opticoll.commands.train.prices import (
    GRADIENTS,
    Model,
    Prices,
    check_names,
    memory_of,
    timed,
)
from opticoll.commands.train.text import training_text
from opticoll.errors import UsageError
from opticoll.inputs import user_function
from opticoll.inputs.device import (
    OF_FABRIC,
    device_on,
    device_warnings,
    unlisted_accelerator,
)
from opticoll.inputs.fabric_files import need_fabrics
from opticoll.inputs.settings import Settings, set_settings
from opticoll.names import DEFAULT_ALGORITHM
from opticoll.outputs.device_memory import MemoryRow, memory_row
from opticoll.outputs.layout import PICOSECONDS
from opticoll.outputs.plan_row import (
    FABRIC_LATENCY,
    INJECTION,
    latency_s,
    latency_warnings,
    library_warnings,
)
from opticoll.outputs.rows import OMITTED, Row, command_field, means, plain
from opticoll.outputs.units import BitsPerSecond, Bytes, Count, Fraction, Number, Positive, Seconds
from opticoll.outputs.watch import Watch

__all__ = [
    "COMMAND",
    "AllReduceRow",
    "BucketRow",
    "Train",
    "TrainingRow",
    "compute",
    "training_text",
]

MAX_BATCH = 2**40

MAX_RANKS = 2**20


@dataclass(frozen=True, kw_only=True)
class Train:
    """Parameters of `opticoll train`."""

    fabric: FabricsOption = None
    model: str | None = option(
        "Model, such as resnet50 or gpt:layers=12,width=768; see `opticoll list models` "
        "(required without --profile)"
    )
    batch: int | None = count(
        "Samples per replica and iteration (required without --profile)", MAX_BATCH
    )
    device: str | None = option(
        "Accelerator, such as a100:efficiency=0.4; see `opticoll list devices` "
        f"(default: {OF_FABRIC})"
    )
    throughput: str | None = option(
        "Measured rate of one device in place of --device, such as 50TFLOP/s or "
        "1100images/s (default: none)",
        group=FURTHER,
        allow_leading_hyphen=True,
    )
    profile: Path | None = option(
        "Profile of the layers with their times, .csv or .yaml, in place of model and "
        "device (default: none)"
    )
    device_memory: str | None = option(
        "Memory of the device, such as 80GB (default: as in `opticoll list devices`)",
        group=FURTHER,
    )
    gradients: Literal["float32", "float16", "bfloat16"] = option(
        "Number format of the gradients: float32, float16 or bfloat16",
        default="float32",
        group=FURTHER,
    )
    buckets: str = option(
        "Buckets of gradients: tensor, all, ddp (1MiB, then 25MiB) or a size",
        default="ddp",
    )
    overlap: bool = option(
        "Overlap of communication with the backward pass", default=True, negative="--no-overlap"
    )
    epochs: int | None = count(
        "Number of epochs whose time is printed (default: none)", MAX_BATCH, FURTHER
    )
    samples: int | None = count(
        "Number of samples per epoch (default: the size of ImageNet for models of images)",
        MAX_BATCH,
        FURTHER,
    )
    algorithm: str | None = option(
        "Algorithm of the all_reduce, or A+B: reduce_scatter by A, all_gather by B (default: auto)"
    )
    tensor_parallel: int | None = count(
        "Number of ranks that divide each matrix (default: 1)", MAX_RANKS, GROUPS
    )
    context_parallel: int | None = count(
        "Number of ranks that divide the tokens of a sample (default: 1)", MAX_RANKS, GROUPS
    )
    context_exchange: Literal["ring", "all_to_all"] | None = option(
        "Exchange of these ranks at attention: keys and values in a ring, or all_to_all of heads "
        "(default: ring)",
        group=GROUPS,
    )
    pipeline_parallel: int | None = count(
        "Number of stages of the pipeline (default: 1)", MAX_RANKS, GROUPS
    )
    data_parallel: int | None = count(
        "Number of replicas of the model (default: all ranks divided by the ranks of a replica)",
        MAX_RANKS,
        GROUPS,
    )
    expert_parallel: int | None = count(
        "Number of ranks with the same part of the model that divide the experts (default: 1)",
        MAX_RANKS,
        GROUPS,
    )
    expert_skew: str | None = option(
        EXPERT_SKEW,
        group=GROUPS,
    )
    capacity_factor: str | None = option(
        CAPACITY_FACTOR,
        group=GROUPS,
        allow_leading_hyphen=True,
    )
    replicate_experts: int | None = option(
        f"{EXPERT_COPIES} (default: 0)",
        converter=whole(least=0, most=MAX_RANKS),
        group=GROUPS,
    )
    expert_placement: Literal["order", "load"] | None = option(
        EXPERT_PLACEMENT,
        group=GROUPS,
    )
    expert_chunks: int | None = count(
        f"{EXPERT_CHUNKS} (default: 1)",
        MAX_RANKS,
        GROUPS,
    )
    sharded: int | None = option(
        "Stage of ZeRO: replicas divide the optimizer's state (1), also gradients (2), also "
        "parameters as in FSDP (3) (default: 0, nothing)",
        converter=whole(least=0, most=3),
        group=GROUPS,
    )
    prefetch: int | None = option(
        "Number of units (blocks) whose sharded parameters are gathered ahead; with --sharded 1 or "
        "2 during the next forward pass (default: 1 with --sharded 3; else after the optimizer's "
        "step)",
        converter=whole(least=0, most=2**12),
        group=GROUPS,
    )
    micro_batches: int | None = count(
        "Number of micro-batches per iteration (default: 1; in a pipeline one per sample)",
        2**20,
        GROUPS,
    )
    chunks: int | None = count(
        "Number of model chunks of a stage, which interleave the stages (default: 1)",
        2**12,
        GROUPS,
    )
    sequence_parallel: bool | None = option(
        "Division of the tokens between matrices among the tensor-parallel ranks (default: no)",
        group=GROUPS,
    )
    overlap_tensor: bool | None = option(
        "Overlap of exchanges of tensor-parallel ranks with the matrix products next to them "
        "(default: no)",
        group=GROUPS,
    )
    overlap_experts: bool | None = option(
        "Overlap of exchanges among experts with the computing of another micro-batch "
        "(default: no)",
        group=GROUPS,
    )
    recompute: Literal["none", "selective", "full"] | None = option(
        "Part of the forward pass that the backward pass computes again: none, selective (scores "
        "of attention) or full (blocks) (default: none)",
        group=GROUPS,
    )
    attention: Literal["flash", "scores"] | None = option(
        "Kernels of attention: flash, or scores, which are stored (default: flash)",
        group=GROUPS,
    )
    loss: Literal["float32", "fused"] | None = option(
        "Kernels of the loss: float32 (copies of the logits), or fused (default: float32)",
        group=GROUPS,
    )
    main_gradients: Literal["bfloat16", "float32"] | None = option(
        "Number format in which a device sums up gradients (default: bfloat16)",
        group=GROUPS,
    )
    dispatch: Literal["bf16", "fp8"] | None = option(
        "Number format of tokens on their way to experts: bf16 or fp8 (default: bf16)",
        group=GROUPS,
    )
    collectives: list[str] | None = option(
        "Algorithm of a collective of groups, such as all_gather=ring; repeat the option for "
        "several (default: auto)",
        name="--collective",
        group=GROUPS,
    )
    contention: Literal["simulated", "united", "none"] | None = option(
        "Groups that share the fabric: all (simulated), those of one kind (united) or none "
        "(default: simulated if the simulator can time single messages, else united)",
        group=GROUPS,
    )
    reconfigure: Literal["collective", "iteration", "never"] | None = option(
        "Plan for circuits of a circuit_switch: for each collective, the same for all exchanges of "
        "experts in an iteration, or never reconfigured (default: collective)",
        group=GROUPS,
    )
    method: Any = METHOD
    wavelength: WavelengthOption = None
    rank_power: str | None = option(
        "Power of a device, such as 700W (default: as in the bill of the fabric, or none)",
        group=FURTHER,
    )
    grid_intensity: str | None = option(
        "Emissions of the power grid, such as 400g/kWh of CO2 equivalent (default: none)",
        group=FURTHER,
    )
    components: ComponentsOption = None


class AllReduceRow(Row):
    """Buckets of one size, with the cost of one all_reduce."""

    size_bytes: Bytes = means("Size of the all_reduce", "all_reduce of")
    count: Positive = means("Number of buckets of this size", "times")
    algorithm: str = means("Algorithm, or the choice of `auto`")
    steps: Count = means("Number of time slots of the plan")
    time_s: Seconds = means("Time of one all_reduce", "each")
    reconfiguration_s: Seconds = means("Part of this time for reconfiguration", "reconfiguration")
    control_s: Seconds = means("Part of this time for control messages", "control")
    verified: bool = means("Whether the plans have no violations")


class BucketRow(Row, core="iteration.buckets"):
    """A bucket in the course of the iteration."""

    bytes: Bytes
    tensors: Positive
    layer: str
    ready_s: Seconds
    start_s: Seconds
    end_s: Seconds


class TrainingRow(EnergyRow, core="iteration"):
    """An iteration of training on a fabric."""

    model: str = means("Complete specification of the model, or its name in the profile")
    label: str = means("Name as printed in figures")
    warnings: list[str] = means("Warnings, such as a model that does not fit the device")
    parameters: Count = means("Number of parameters of the model")
    tensors: Count = means("Number of gradient tensors")
    gradients: Literal["float32", "float16", "bfloat16"] = means(
        "Number format in which gradients are sent"
    )
    gradient_bytes: Bytes = means("Number of bytes of all gradients")
    fabric: str = means("Complete specification of the fabric")
    ranks: Positive = means("Number of devices")
    injection_bandwidth: BitsPerSecond = means(INJECTION)
    fabric_latency_s: Seconds = means(FABRIC_LATENCY)
    algorithm: str = means("Algorithm of the all_reduce as requested")
    batch: Positive = means("Number of samples per replica of the model and iteration")
    compute: str = means("Source of the computing times: a device, a throughput or a profile")
    memory: MemoryRow = means("Memory that the model takes on a device")
    buckets: str = means("Rule by which gradients share an all_reduce")
    overlap: bool = means("Whether buckets are sent during the backward pass")
    simulator: str = means("Simulator of the all_reduces; empty if nothing is sent")
    policy: str | None = means(
        "Policy: when reconfiguration is charged",
        absent="nothing is sent, or the fabric is electrical",
    )
    start: str | None = means(
        "Start rule of messages on electrical fabrics",
        absent="nothing is sent, the fabric has circuits, or groups of ranks divide the model",
    )
    iteration_s: Seconds = means(
        "Time of an iteration: the sum of the compute time and the three exposed times; with "
        "groups of ranks, the sum of the parts in `groups`"
    )
    compute_s: Seconds
    forward_s: Seconds
    optimizer_s: Seconds
    exposed_communication_s: Seconds = means(
        "Time in which data move after the backward pass; with groups, mean time in which a "
        "device waits for data"
    )
    reconfiguration_s: Seconds = means(
        "Time of reconfiguration after the backward pass: setup of circuits, tuning of lasers, "
        "locking of receivers; zero with groups, whose parts contain this time"
    )
    control_s: Seconds = means(
        "Time of control messages after the backward pass, including queueing; zero with groups, "
        "whose parts contain this time"
    )
    communication_s: Seconds = means(
        "Time of all communication with reconfiguration and control, hidden or exposed"
    )
    samples_per_s: Number = means("Samples per second of all devices together")
    efficiency: Fraction = means("Share of the iteration that is computing")
    setup_s: Seconds = means("Time to set slow switches, once for a training")
    epochs: Positive | None = means("Number of epochs", absent="no number of epochs was given")
    samples: Positive | None = means(
        "Number of samples of an epoch", absent="the samples of an epoch are not known"
    )
    iterations: Positive | None = means(
        "Number of iterations of all epochs", absent="no number of epochs was given"
    )
    training_s: Seconds | None = means(
        "Time of the setup and all iterations", absent="no number of epochs was given"
    )
    verified: bool = means("Whether all plans are proved")
    violations: list[str] = means("Violations of the plans, one sentence each")
    collectives: list[AllReduceRow] = means(
        "Distinct sizes of buckets, in increasing order; none with groups"
    )
    timeline: list[BucketRow] = means(
        "Buckets in the order in which they are sent; none with groups"
    )
    groups: GroupsRow | None = means(
        "Groups of ranks that divide the model", absent="every device has the whole model"
    )
    command: str = command_field(default=OMITTED)


def compute(parameters: Train, watch: Watch) -> Iterator[TrainingRow]:
    """Times an iteration on each fabric, and derives the time of the whole training.

    Raises
    ------
    OpticollError
        A name is unknown, arguments contradict each other, or the profile or the algorithm is
        invalid.
    """
    fabrics = need_fabrics(parameters.fabric)
    settings = set_settings(vars(parameters.method))
    if parameters.gradients not in GRADIENTS:
        raise UsageError(
            f"there are no gradients in `{parameters.gradients}`; {', '.join(GRADIENTS)}"
        )
    methods = [(fabric, settings_on(fabric, fabrics, settings)) for fabric in fabrics]
    divided = is_grouped(parameters, fabrics)
    alone = why_alone(parameters, methods) if divided else None
    # Planning takes longest. All arguments, and the memory on all fabrics, are checked before.
    requests = [
        _checked(parameters, fabric, method, alone, divided=divided) for fabric, method in methods
    ]
    said = {warning: None for request in requests for warning in request.warnings}
    for warning in said:
        watch.note(f"warning: {warning}")
    for request in requests:
        row = _replicated(request, watch) if request.divided is None else _grouped(request, watch)
        for warning in row.warnings:
            if warning not in said:
                said[warning] = None
                watch.notes.append(f"warning: {warning}")
        yield row


@dataclass(frozen=True)
class _Request:
    """Iteration on a fabric whose arguments are checked, and which may lack memory."""

    parameters: Train
    fabric: Fabric
    settings: Settings
    model: TimedModel
    named: Model
    batch: int
    bucket_rule: str
    warnings: list[str]
    divided: tuple[Any, Method] | None
    """Training of groups, and the method of timing them; None if devices have the whole model."""


def _checked(
    parameters: Train, fabric: Fabric, settings: Settings, alone: str | None, *, divided: bool
) -> _Request:
    """Checks the arguments and the memory of an iteration on a fabric."""
    unlisted: list[str] = []
    if parameters.profile is None and parameters.throughput is None:
        unlisted = unlisted_accelerator(fabric, parameters.device)
        parameters = replace(parameters, device=device_on(fabric, parameters.device))
    if divided and (parameters.profile is not None or parameters.model is None):
        raise UsageError(
            "groups of ranks divide a model, such as --model gpt3_6_7b; a profile does not say how"
        )
    model, named, batch = timed(parameters)
    bucket_rule = check_buckets(parameters.buckets)
    check_energy(fabric, parameters.rank_power, parameters.grid_intensity)
    if parameters.epochs is not None and (parameters.samples or named.epoch_samples) is None:
        raise UsageError("an epoch has no known number of samples here; give samples")
    groups = None
    if divided:
        method = method_of(parameters, fabric, alone)
        wide = GRADIENTS[parameters.gradients]
        training = divide(parameters, named.name, batch, fabric.ranks, wide)
        memory = memory_row(
            training.memory_of_device(),
            memory_of(parameters, device=parameters.throughput is None),
        )
        refuse_too_large(parameters, named, training, memory)
        named, groups = replace(named, memory=memory), (training, method)
    else:
        check_names(parameters.algorithm, fabric.ranks)
    warnings = [] if divided else _warnings(parameters, named, batch, fabric.ranks)
    warnings += unlisted
    if parameters.model is not None and parameters.device is not None:
        warnings += device_warnings(TrainingModel(parameters.model), parameters.device)
    return _Request(
        parameters, fabric, settings, model, named, batch, bucket_rule, warnings, groups
    )


def _replicated(request: _Request, watch: Watch) -> TrainingRow:
    """Returns the row of an iteration in which every device has the whole model."""
    model, bucket_rule = request.model, request.bucket_rule
    prices = Prices(request.parameters, request.fabric, request.settings)
    distinct = sorted(set(model.buckets(bucket_rule)))
    for done, size in enumerate(distinct):
        watch.update(f"all_reduce of {format_size(size)}", done, len(distinct))
        prices.find(size)
    costs = {
        size: (cost["time_ps"], cost["reconfiguration_ps"], cost["control_ps"])
        for size, cost in prices.costs.items()
    }
    iteration = model.iterate(bucket_rule, request.parameters.overlap, costs)
    return _row(request, prices, iteration)


def _grouped(request: _Request, watch: Watch) -> TrainingRow:
    """Returns the row of an iteration in which groups of ranks divide the model."""
    assert request.divided is not None
    training, method = request.divided
    parameters, fabric, named = request.parameters, request.fabric, request.named
    grouped = carry_out(parameters, training, fabric, method, request.settings, watch)
    *_, mean = grouped.row.parts
    exposed = sum(getattr(mean, name) for name in EXCHANGES)
    hidden = sum(getattr(mean, name.replace("_s", "_hidden_s")) for name in EXCHANGES)
    common = _common(request, grouped.iteration.time_ps)
    return TrainingRow.of(
        common,
        _energy(request, common, grouped.iteration.time_ps, grouped.spent),
        {"simulator": grouped.simulator, "policy": grouped.policy, "start": None},
        *(named, fabric, parameters),
        warnings=[*request.warnings, *_network_warnings(fabric, grouped.simulator)],
        algorithm=_algorithm_name(parameters),
        gradient_bytes=named.parameters * GRADIENTS[parameters.gradients],
        compute_s=mean.compute_s,
        efficiency=mean.compute_s * PICOSECONDS / max(grouped.iteration.time_ps, 1),
        forward_s=grouped.iteration.forward_ps / PICOSECONDS,
        optimizer_s=grouped.iteration.optimizer_ps / PICOSECONDS,
        exposed_communication_s=exposed,
        reconfiguration_s=0.0,
        control_s=0.0,
        communication_s=exposed + hidden,
        verified=not grouped.violations,
        violations=grouped.violations,
        collectives=[],
        timeline=[],
        groups=grouped.row,
    )


def _energy(
    request: _Request,
    common: Mapping[str, Any],
    iteration_ps: int,
    spent: Iterable[Spent] | None,
) -> EnergyRow:
    return energy_row(
        request.fabric,
        spent,
        iteration_ps=iteration_ps,
        samples=round(common["samples_per_s"] * common["iteration_s"]),
        training_s=common["training_s"],
        rank_power=request.parameters.rank_power,
        intensity=request.parameters.grid_intensity,
    )


def _algorithm_name(parameters: Train) -> str:
    chosen = DEFAULT_ALGORITHM if parameters.algorithm is None else parameters.algorithm
    return chosen if isinstance(chosen, str) else user_function.name_of(chosen)


def _warnings(parameters: Train, named: Model, batch: int, ranks: int) -> list[str]:
    """Returns warnings on assumptions that a user should check before trusting the times."""
    memory = named.memory
    if memory.fits is not False:
        return []
    have, need = memory.device_bytes or 0, memory.total_bytes
    states = need - (memory.activations_bytes or 0) - (memory.working_bytes or 0)
    cure = "divide the model among devices"  # a profile does not say how to divide it
    if parameters.profile is None:
        wide = GRADIENTS[parameters.gradients]
        cure = cure_of(divide(parameters, named.name, batch, ranks, wide), have)
        cure = f"{activations(named, memory, parameters)}; {cure}"
    size = "a smaller batch fits" if states < have else "no batch fits"
    return [
        f"{named.label} does not fit the device: it takes {need / 1e9:,.1f} GB at a batch of "
        f"{batch}, {states / 1e9:,.1f} GB of that whatever the batch, and the device has "
        f"{have / 1e9:,.1f} GB; {size}; {cure}"
    ]


def _row(request: _Request, prices: Prices, iteration: Outcome) -> TrainingRow:
    layers, fabric = request.model.layers, request.fabric
    buckets = iteration.buckets.rows()
    sizes: list[int] = [bucket["bytes"] for bucket in buckets]
    no_cost = {"simulator": "", "policy": None, "start": None}
    any_cost = next(iter(prices.costs.values()), no_cost)
    violations = dict.fromkeys(
        problem for problems in prices.violations.values() for problem in problems
    )
    common = _common(request, iteration.time_ps)
    return TrainingRow.of(
        common,
        _energy(request, common, iteration.time_ps, prices.spent(sizes)),
        iteration,
        any_cost,
        *(request.named, fabric, request.parameters),
        warnings=[*request.warnings, *_network_warnings(fabric, any_cost["simulator"])],
        gradient_bytes=sum(sizes),
        algorithm=prices.algorithm,
        efficiency=iteration.compute_ps / max(iteration.time_ps, 1),
        exposed_communication_s=iteration.exposed_ps / PICOSECONDS,
        communication_s=iteration.sending_ps / PICOSECONDS,
        verified=not violations,
        violations=list(violations),
        collectives=[_collective(prices, size, sizes.count(size)) for size in sorted(prices.costs)],
        timeline=[BucketRow.of(bucket, layer=layers[bucket["layer"]][0]) for bucket in buckets],
        groups=None,
    )


def _network_warnings(fabric: Fabric, simulator: str | None) -> list[str]:
    """Returns warnings if links have no latency, or if the simulator omits costs of a library.

    Circuits have a setup time instead of a latency.
    """
    latency = latency_warnings(fabric, fabric.ranks) if fabric.electrical else []
    return [*latency, *library_warnings(fabric, simulator)]


def _common(request: _Request, time_ps: int) -> dict[str, Any]:
    """Returns the fields that all rows of iterations have."""
    parameters, fabric, named = request.parameters, request.fabric, request.named
    replica = (parameters.tensor_parallel or 1) * (parameters.context_parallel or 1)
    replica *= parameters.pipeline_parallel or 1
    together = request.batch * (fabric.ranks // replica)
    samples = parameters.samples if parameters.samples is not None else named.epoch_samples
    iterations = training_s = None
    setup_ps = fabric.option("slow_switch") or 0
    if parameters.epochs is not None and samples is not None:
        iterations = parameters.epochs * -(-samples // together)
        training_s = (setup_ps + iterations * time_ps) / PICOSECONDS
    return {
        "model": named.name,
        "tensors": sum(len(tensors) for _, tensors, _, _ in request.model.layers),
        "fabric": fabric.spec,
        "fabric_latency_s": latency_s(fabric),
        "batch": request.batch,
        "buckets": request.bucket_rule,
        "iteration_s": time_ps / PICOSECONDS,
        "samples_per_s": together * PICOSECONDS / max(time_ps, 1),
        "setup_s": setup_ps / PICOSECONDS,
        "samples": samples,
        "iterations": iterations,
        "training_s": training_s,
    }


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


def _text(parameters: Any, rows: list[TrainingRow]) -> str:
    return training_text(rows)


def _table(parameters: Any, rows: list[TrainingRow]) -> list[dict[str, object]]:
    """Returns the rows of all buckets, or of all stages of a divided model, with their fabrics."""
    return [
        {"fabric": row.fabric, "injection_bandwidth": row.injection_bandwidth, **plain(bucket)}
        for row in rows
        for bucket in (row.timeline if row.groups is None else row.groups.parts)
    ]


def _alone(parameters: Any, row: TrainingRow) -> dict[str, Any]:
    """Returns the options that reproduce a single row: its fabric, and the settings that apply."""
    fabrics = need_fabrics(parameters.fabric)
    if len(fabrics) == 1:
        return {}
    settings = set_settings(vars(parameters.method))
    applicable = settings_on(Fabric(row.fabric), fabrics, settings)
    return {"fabric": row.fabric, **{name: applicable.get(name) for name in settings}}


COMMAND = Command(
    name="train",
    example="opticoll train --model resnet50 --batch 32 --fabric optree_paper",
    parameters=Train,
    rows=TrainingRow,
    compute=compute,
    text=_text,
    progress_label="training",
    shape="row or rows",
    files=(rows_file(_table), figure_file(draw)),
    row_options=_alone,
)
command_line = on_command_line(COMMAND)
