"""Rows of training iterations in which groups of ranks divide the model."""

from typing import TYPE_CHECKING, Literal

from opticoll._core import GroupedTraining
from opticoll.outputs.rows import Row, means
from opticoll.outputs.units import Bytes, Count, Fraction, Positive, Seconds

if TYPE_CHECKING:
    from opticoll._core import GroupCollectiveRecord


EXCHANGES = ("tensor_s", "context_s", "expert_s", "sending_s", "replicas_s")
"""Times in which a device waits for exchanges; `PartRow` has the hidden times as well."""


class PartRow(Row, core="groups.stages"):
    """Parts of an iteration's time for the devices of a stage, or as the mean of all devices."""

    stage: Count | None = means("Stage of the pipeline", absent="the mean over all devices")
    compute_s: Seconds
    tensor_s: Seconds
    context_s: Seconds
    expert_s: Seconds
    sending_s: Seconds
    bubble_s: Seconds
    replicas_s: Seconds
    tensor_hidden_s: Seconds
    context_hidden_s: Seconds
    expert_hidden_s: Seconds
    sending_hidden_s: Seconds
    replicas_hidden_s: Seconds


class PortShareRow(Row):
    """Ports that the groups of one kind, or of several kinds with the same groups, hold."""

    kinds: list[str] = means("Kinds of groups, as in the table of collectives")
    ports: Positive = means("Number of ports of each rank")
    circuits: str = means(
        "Graph of the circuits: the option `topology` of `static`, with `shifts` and `parallel`"
    )


class GroupCollectiveRow(Row):
    """A collective in all groups of one kind, or a message between stages."""

    group: str = means(
        "Kind of group: tensor, context, pipeline, expert, data (ranks with the same part of the "
        "model) or expert_data (ranks with the same experts)"
    )
    collective: str = means(
        "Collective, or `message` from one stage to the next or in a ring of a context group"
    )
    ranks: Positive = means("Number of ranks of a group")
    size_bytes: Bytes = means(
        "Size of the collective; for an exchange with different sizes, the mean over ranks"
    )
    layer: Count | None = means(
        "Layer of experts",
        absent="all layers exchange the same, or the row is no exchange among experts",
    )
    micro_batch: Count | None = means(
        "First micro-batch with this exchange",
        absent="all layers exchange the same, or the row is no exchange among experts",
    )
    count: Positive = means(
        "Number of such collectives in an iteration: those in which one rank of each stage takes "
        "part, summed over stages"
    )
    algorithm: str | None = means(
        "Algorithm, or what `auto` chose",
        absent="the row is a message, or there is no algorithm for this size",
    )
    time_s: Seconds | None = means(
        "Time of one such collective: of all groups of its kind at the same time with contention "
        "`united`, of its group alone with `none`",
        absent="all groups are simulated together",
    )
    alone_s: Seconds | None = means(
        "Time of the plan that is fastest if its group is alone on the fabric",
        absent="all groups are simulated together",
    )
    reconfiguration_s: Seconds | None = means(
        "Part of this time for reconfiguration", absent="all groups are simulated together"
    )
    verified: bool = means("Whether the plan has no violations")


class GroupsRow(Row, core="groups"):
    """Division of a model among groups of ranks, and the parts of an iteration's time."""

    tensor: Positive = means("Number of ranks that divide each matrix")
    context: Positive = means("Number of ranks that divide the tokens of a sample")
    context_exchange: Literal["ring", "all_to_all"] | None = means(
        "Exchange of these ranks at attention", absent="no ranks divide the tokens of a sample"
    )
    pipeline: Positive = means("Number of stages of the pipeline")
    expert: Positive = means("Number of ranks that divide the experts")
    data: Positive = means("Number of replicas of the model")
    sharded: Count = means(
        "Stage of ZeRO: replicas divide nothing (0), the state of the optimizer (1), gradients too "
        "(2), parameters too (3)"
    )
    prefetch: Count | None = means(
        "Number of units whose sharded parameters are gathered ahead of the unit that runs",
        absent="parameters are not sharded, or are gathered after the optimizer's step",
    )
    micro_batches: Positive = means("Number of micro-batches of an iteration")
    chunks: Positive = means("Number of model chunks of a stage; more than one are interleaved")
    sequence_parallel: bool = means(
        "Whether tensor-parallel ranks divide the tokens between the matrices"
    )
    overlap_tensor: bool = means(
        "Whether exchanges of tensor-parallel ranks run beside the matrix products next to them"
    )
    overlap_experts: bool = means(
        "Whether exchanges among experts run beside the computing of another micro-batch"
    )
    recompute: Literal["none", "selective", "full"] = means(
        "Part of the forward pass that the backward pass computes again"
    )
    attention: Literal["flash", "scores"] = means("Kernels of attention; scores are stored")
    loss: Literal["float32", "fused"] = means(
        "Kernels of the loss: with copies of the logits in float32, or fused"
    )
    main_gradients: Literal["bfloat16", "float32"] = means(
        "Number format in which a device sums up gradients"
    )
    dispatch: Literal["bf16", "fp8"] = means("Number format of tokens on their way to experts")
    contention: Literal["simulated", "united", "none"] = means(
        "Which groups share the fabric: all groups (simulated), the groups of one kind (united), "
        "or none"
    )
    alone: str | None = means(
        "Reason why not all groups are simulated together",
        absent="all groups are simulated together",
    )
    transport: str = means("Transport of the groups' collectives and messages over the fabric")
    expert_skew: str | None = means("Skew of tokens among experts", absent="all experts are alike")
    replicate_experts: Count = means("Number of further copies of experts in a layer")
    expert_placement: Literal["order", "load"] = means("Rule that assigns experts to ranks")
    expert_chunks: Positive = means("Number of chunks in which tokens are sent to experts")
    dropped: Fraction | None = means(
        "Share of assignments of tokens to experts above the capacity of the experts",
        absent="the model has no experts",
    )
    reconfigure: Literal["collective", "iteration", "never"] | None = means(
        "Value of --reconfigure: how often the circuits of a circuit switch are set up",
        absent="no circuit switch joins the ranks or the servers",
    )
    setups: Count = means(
        "Maximum over ranks of the number of setups of circuits from one collective to the next"
    )
    ports: list[PortShareRow] | None = means(
        "Ports of each rank that kinds of groups hold for the whole iteration",
        absent="all collectives use all ports",
    )
    bubble: Fraction = means(
        "Share of an iteration for which a device is idle if communication takes no time: (P - "
        "1) / (v M + P - 1) for P stages of v chunks and M micro-batches"
    )
    messages: Count
    bytes: Bytes
    parts: list[PartRow] = means("Parts of the iteration by stage; then the mean over all devices")
    collectives: list[GroupCollectiveRow] = means("Distinct collectives of the groups")


def demand_of(training: GroupedTraining, record: "GroupCollectiveRecord") -> list[list[int]]:
    """Returns the bytes by source and destination of an exchange of unequal blocks."""
    return training.demand(record["layer"] or 0, record["back"], record["micro_batch"] or 0)


def mean_size(training: GroupedTraining, record: "GroupCollectiveRecord") -> int:
    """Returns the mean number of bytes of a rank in an exchange of unequal blocks."""
    demand = demand_of(training, record)
    return sum(map(sum, demand)) // len(demand)


def collective_row(
    training: GroupedTraining,
    record: "GroupCollectiveRecord",
    algorithm: str | None,
    *,
    time_s: float | None = None,
    alone_s: float | None = None,
    reconfiguration_s: float | None = None,
    verified: bool = True,
) -> GroupCollectiveRow:
    """Returns the row of a collective, from its record and its costs."""
    return GroupCollectiveRow.of(
        record,
        collective=record["collective"] or "message",
        size_bytes=record["size_bytes"] if record["layer"] is None else mean_size(training, record),
        algorithm=algorithm,
        time_s=time_s,
        alone_s=alone_s,
        reconfiguration_s=reconfiguration_s,
        verified=verified,
    )
