"""Iteration of training in which groups of ranks divide the model.

If the simulator can time single messages, groups compete for the network. Otherwise the plans of
all groups of one kind are united, or each collective is timed as if its group were alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from opticoll._core import Fabric, GroupedTraining, Outcome, carries_messages
from opticoll.cli.arguments import algorithms_by_collective, describe_transport
from opticoll.commands.train.energy import Spent
from opticoll.commands.train.group_prices import GroupPrices
from opticoll.commands.train.group_rows import (
    GroupCollectiveRow,
    GroupsRow,
    PartRow,
    PortShareRow,
    collective_row,
    mean_size,
)
from opticoll.commands.train.port_shares import PortShare
from opticoll.errors import TrainingError, UsageError
from opticoll.inputs.expert_skew import capacity_millionths, read_skew
from opticoll.inputs.user_algorithm import is_user_algorithm
from opticoll.names import DEFAULT_ALGORITHM, known_names
from opticoll.outputs.plan_row import library_of

if TYPE_CHECKING:
    from opticoll._core import GroupCollectiveRecord
    from opticoll.commands.train import Train
    from opticoll.commands.train.prices import Model
    from opticoll.inputs.settings import Settings
    from opticoll.outputs.device_memory import MemoryRow
    from opticoll.outputs.watch import Watch

GROUP_OPTIONS = (
    "tensor_parallel",
    "context_parallel",
    "context_exchange",
    "pipeline_parallel",
    "expert_parallel",
    "data_parallel",
    "expert_skew",
    "capacity_factor",
    "replicate_experts",
    "expert_placement",
    "expert_chunks",
    "sharded",
    "prefetch",
    "micro_batches",
    "chunks",
    "sequence_parallel",
    "overlap_tensor",
    "overlap_experts",
    "recompute",
    "attention",
    "loss",
    "main_gradients",
    "dispatch",
    "contention",
    "collectives",
    "reconfigure",
)
"""Options that divide a model among groups."""


@dataclass(frozen=True)
class Grouped:
    """Simulated iteration of groups, with its row and the violations of its plans."""

    iteration: Outcome
    row: GroupsRow
    simulator: str
    policy: str | None
    violations: list[str]
    spent: list[Spent] | None
    """Energy of the collectives; None if all groups are simulated together."""


UNDIVIDED = {
    "tensor_parallel": 1,
    "context_parallel": 1,
    "context_exchange": "ring",
    "pipeline_parallel": 1,
    "expert_parallel": 1,
    "replicate_experts": 0,
    "expert_placement": "order",
    "expert_chunks": 1,
    "sharded": 0,
    "micro_batches": 1,
    "chunks": 1,
    "sequence_parallel": False,
    "overlap_tensor": False,
    "overlap_experts": False,
    "recompute": "none",
    "attention": "flash",
    "loss": "float32",
    "main_gradients": "bfloat16",
    "dispatch": "bf16",
}
"""Values of `GROUP_OPTIONS` with which the model is not divided."""


def is_grouped(parameters: Train, fabrics: Sequence[Fabric]) -> bool:
    """Returns whether options divide the model among groups of ranks."""
    stated = {name: getattr(parameters, name) for name in GROUP_OPTIONS}
    if {fabric.ranks for fabric in fabrics} == {parameters.data_parallel}:
        stated["data_parallel"] = None
    return any(value not in (None, UNDIVIDED.get(name)) for name, value in stated.items())


def divide(parameters: Train, model: str, batch: int, ranks: int, gradient_bytes: int) -> Any:
    """Returns the model divided among groups; `batch` is the number of samples per replica."""
    pipeline = parameters.pipeline_parallel or 1
    micro_batches = parameters.micro_batches or (batch if pipeline > 1 else 1)
    expert = parameters.expert_parallel or 1
    weights = read_skew(parameters.expert_skew, model, expert, micro_batches)
    return GroupedTraining(
        model,
        ranks,
        (parameters.tensor_parallel or 1, pipeline, expert),
        batch=batch,
        micro_batches=micro_batches,
        data=parameters.data_parallel,
        sharded=parameters.sharded or 0,
        device=parameters.device,
        throughput=parameters.throughput,
        bytes_per_parameter=gradient_bytes,
        buckets=parameters.buckets,
        overlap=parameters.overlap,
        weights=weights,
        capacity=capacity_millionths(parameters.capacity_factor),
        expert_copies=parameters.replicate_experts or 0,
        placement=parameters.expert_placement or "order",
        expert_chunks=parameters.expert_chunks or 1,
        recompute=parameters.recompute or "none",
        sequence_parallel=bool(parameters.sequence_parallel),
        flash=parameters.attention != "scores",
        fused_loss=parameters.loss == "fused",
        chunks=parameters.chunks or 1,
        wide_gradients=parameters.main_gradients == "float32",
        context=parameters.context_parallel or 1,
        context_exchange=parameters.context_exchange or "ring",
        narrow_dispatch=parameters.dispatch == "fp8",
        overlap_tensor=bool(parameters.overlap_tensor),
        overlap_experts=bool(parameters.overlap_experts),
        prefetch=prefetch_of(parameters),
    )


def prefetch_of(parameters: Train) -> int | None:
    """Returns the number of units gathered ahead; None if no parameters are gathered ahead."""
    sharded = parameters.sharded or 0
    if parameters.prefetch is not None and not sharded:
        raise UsageError(
            f"prefetch {parameters.prefetch}: only with --sharded 1, 2 or 3 parameters are gathered"
        )
    return 1 if sharded == 3 and parameters.prefetch is None else parameters.prefetch


def refuse_too_large(
    parameters: Train, named: Model, training: GroupedTraining, memory: MemoryRow
) -> None:
    """Raises an error if a device lacks memory for the model; suggests a division that fits."""
    if memory.fits is not False:
        return
    have = memory.device_bytes or 0
    raise TrainingError(
        f"{named.label} does not fit the device: a rank needs {memory.total_bytes / 1e9:,.1f} GB, "
        f"and the device has {have / 1e9:,.1f} GB; {activations(named, memory, parameters)}, of "
        f"all micro-batches in flight; {cure_of(training, have)}"
    )


def activations(named: Model, memory: MemoryRow, parameters: Train) -> str:
    """Returns a sentence on the expected memory of activations, with the assumptions."""
    count = (memory.activations_bytes or 0) / 1e9
    said = f"{count:,.1f} GB of that are activations"
    if named.sample == "image":
        return said
    attention = "scores" if parameters.attention == "scores" else "FlashAttention"
    recompute = f"recomputation {parameters.recompute or 'none'}"
    return f"{said}, with {attention}, {recompute}"


def cure_of(training: GroupedTraining, have: int) -> str:
    """Returns the division closest to the present one for which a device has enough memory."""
    fits = training.that_fit(have)
    if fits is None:
        return "no division among these ranks fits: take more ranks or a smaller batch"
    return f"{_options(fits)} takes {fits['total_bytes'] / 1e9:,.1f} GB"


def _options(fits: Mapping[str, Any]) -> str:
    """Returns a division as command-line options."""
    options = {
        "tensor-parallel": (fits["tensor"], 1),
        "context-parallel": (fits["context"], 1),
        "pipeline-parallel": (fits["pipeline"], 1),
        "expert-parallel": (fits["expert"], 1),
        "sharded": (fits["sharded"], 0),
        "micro-batches": (fits["micro_batches"], 1),
    }
    return " ".join(
        f"--{name} {value}" for name, (value, usual) in options.items() if value != usual
    )


@dataclass(frozen=True)
class Method:
    """Method of planning and timing the groups' collectives.

    `algorithms` are algorithms by collective. `contention` tells which groups share the fabric:
    all (`simulated`), those of one kind (`united`), or `none`. `alone` is the reason why not all
    groups are simulated together, or None. `reconfigure` tells how often circuits of a circuit
    switch are set up: for each `collective`, the same for all exchanges of an `iteration`, or
    `never`.
    """

    algorithms: Mapping[str, str]
    contention: Literal["simulated", "united", "none"]
    alone: str | None
    reconfigure: str | None


def method_of(parameters: Train, fabric: Fabric, alone: str | None) -> Method:
    """Returns the method of planning and timing the groups' collectives on a fabric.

    `alone` is the reason why not all groups are simulated together, or None.
    """
    switch = fabric.circuit_ports is not None
    if parameters.reconfigure is not None and not switch:
        raise UsageError(
            f"reconfigure: there is no circuit_switch in {fabric.family}; leave it out"
        )
    if parameters.reconfigure == "never" and fabric.family == "gpu_servers":
        raise UsageError(
            "reconfigure never: is not supported on servers joined by a circuit_switch; choose "
            "collective or iteration"
        )
    reconfigure = parameters.reconfigure or "collective" if switch else None
    contention = "simulated" if alone is None else parameters.contention or "united"
    if contention == "united" and library_of(fabric) is not None:
        alone = f"{alone}; the costs of a library are known for one group alone"
        contention = "none"
    return Method(_algorithms(parameters), contention, alone, reconfigure)


def carry_out(
    parameters: Train,
    training: GroupedTraining,
    fabric: Fabric,
    method: Method,
    settings: Settings,
    watch: Watch,
) -> Grouped:
    """Simulates an iteration on a fabric, with the contention of the method."""
    algorithms = dict(method.algorithms)
    records = training.made_of()
    if method.contention == "simulated":
        watch.update("iteration of all groups", 0, 1)
        iteration = training.over(fabric.spec, algorithms, **settings)
        chosen: dict[tuple[str, str, int | None], list[str]] = {}
        for choice in iteration.chosen.rows():
            key = (choice["group"], choice["collective"], choice["size_bytes"])
            chosen.setdefault(key, []).append(choice["chosen"])
        rows = [
            collective_row(training, record, _chosen(training, record, chosen))
            for record in records
        ]
        row = _row(parameters, training, fabric, iteration, rows, method)
        policy = settings.get("policy", fabric.policy)
        return Grouped(iteration, row, iteration.simulator, policy, [], None)
    united = method.contention == "united"
    prices = GroupPrices(
        *(fabric, training, algorithms, settings, method.reconfigure),
        united=united,
        interleaved=(parameters.chunks or 1) > 1,
    )
    for number, record in enumerate(records):
        watch.update(
            f"{record['collective'] or 'message'} of {record['group']}", number, len(records)
        )
        prices.find(record)
    iteration = prices.iterate()
    row = _row(parameters, training, fabric, iteration, prices.rows, method, prices.shares)
    return Grouped(iteration, row, prices.simulator, prices.policy, prices.violations, prices.spent)


def _algorithms(parameters: Train) -> dict[str, str]:
    """Returns algorithms by collective; the option `algorithm` applies to the all_reduce."""
    kinds = known_names("collectives")
    chosen = dict.fromkeys(kinds, DEFAULT_ALGORITHM)
    if parameters.algorithm is not None:
        if not isinstance(parameters.algorithm, str) or is_user_algorithm(parameters.algorithm):
            raise UsageError("algorithm: groups run named algorithms, not your own")
        if "+" in parameters.algorithm:
            raise UsageError(
                f"algorithm: `{parameters.algorithm}` is a reduce_scatter and an all_gather, and "
                "groups run one algorithm for each collective; --sharded 1 sends both"
            )
        chosen |= algorithms_by_collective({"all_reduce": parameters.algorithm})
    return chosen | dict(algorithms_by_collective(parameters.collectives))


def why_alone(parameters: Train, fabrics: Sequence[tuple[Fabric, Settings]]) -> str | None:
    """Returns the reason why not all groups are simulated together; None if they are.

    A reason on one fabric applies to all fabrics of a comparison.
    """
    if parameters.contention in ("none", "united"):
        return "as asked for"
    without = [
        fabric.family for fabric, settings in fabrics if not carries_messages(fabric, **settings)
    ]
    if not without:
        return None
    families = ", ".join(dict.fromkeys(without))
    named = next(
        (settings["simulator"] for _, settings in fabrics if "simulator" in settings), None
    )
    if named:
        reason = f"{named} sends no single messages over {families}"
        advice = "leave --simulator out"
    else:
        reason = f"no simulator sends single messages over {families}"
        advice = "leave it out, and groups of one kind are timed together"
    if parameters.contention == "simulated":
        raise UsageError(f"contention: {reason}; {advice}")
    if len(without) < len(fabrics):
        reason += ", and all fabrics of a comparison are judged alike"
    return reason


def _row(
    parameters: Train,
    training: GroupedTraining,
    fabric: Fabric,
    iteration: Outcome,
    collectives: list[GroupCollectiveRow],
    method: Method,
    shares: Sequence[PortShare] = (),
) -> GroupsRow:
    tensor, pipeline, expert, data = training.groups
    batches, chunks = training.micro_batches, parameters.chunks or 1
    assigned, dropped = training.assignments
    parts = [
        PartRow.of(row, stage=None if stage == pipeline else stage)
        for stage, row in enumerate(iteration.stages.rows())
    ]
    return GroupsRow.of(
        *(iteration, method, training, parameters),
        tensor=tensor,
        context=training.context,
        context_exchange=(parameters.context_exchange or "ring") if training.context > 1 else None,
        pipeline=pipeline,
        expert=expert,
        data=data,
        sharded=parameters.sharded or 0,
        transport=describe_transport(fabric)
        if method.contention == "simulated"
        else "each collective by its plan",
        dropped=dropped / assigned if assigned else None,
        replicate_experts=parameters.replicate_experts or 0,
        expert_placement=parameters.expert_placement or "order",
        expert_chunks=parameters.expert_chunks or 1,
        ports=[PortShareRow.of(share, kinds=list(share.kinds)) for share in shares] or None,
        bubble=(pipeline - 1) / (chunks * batches + pipeline - 1),
        prefetch=prefetch_of(parameters),
        chunks=chunks,
        overlap_tensor=bool(parameters.overlap_tensor),
        overlap_experts=bool(parameters.overlap_experts),
        sequence_parallel=bool(parameters.sequence_parallel),
        recompute=parameters.recompute or "none",
        attention=parameters.attention or "flash",
        loss=parameters.loss or "float32",
        main_gradients=parameters.main_gradients or "bfloat16",
        dispatch=parameters.dispatch or "bf16",
        parts=parts,
        collectives=collectives,
    )


def _chosen(
    training: GroupedTraining,
    record: GroupCollectiveRecord,
    chosen: Mapping[tuple[str, str, int | None], list[str]],
) -> str | None:
    """Returns the algorithms that the groups of one kind ran for a collective.

    The choice for the exact size comes first, then the choice for the next power of two, in bytes,
    and then the choice for all sizes. Groups of different shapes may run different algorithms.
    """
    if record["collective"] is None:
        return None
    size = record["size_bytes"]
    if record["layer"] is not None:
        size = mean_size(training, record)
    rounded = 1 << max(size - 1, 0).bit_length()
    kind = (record["group"], record["collective"])
    candidates = (chosen.get((*kind, bytes_)) for bytes_ in (size, rounded, None))
    names = next((names for names in candidates if names is not None), [])
    return ", ".join(names) or None
