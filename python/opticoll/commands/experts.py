"""Command `experts`: dispatch, experts and combine of a layer with experts, as one problem.

The ranks of the fabric divide the experts. The tokens of a micro-batch are sent to the ranks of
their experts (dispatch), the experts compute, and the results return (combine). The command plans
both exchanges for the bytes of each pair of ranks, and times the forward pass of the layer. With
several chunks, the experts compute for a chunk while the network sends the next chunks.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Literal, TypeAlias

from opticoll import _core
from opticoll._core import Fabric, GroupedTraining, TrainingModel
from opticoll.cli.arguments import settings_on
from opticoll.cli.option_types import argument, count, option, whole
from opticoll.cli.options import (
    CAPACITY_FACTOR,
    EXPERT_CHUNKS,
    EXPERT_COPIES,
    EXPERT_PLACEMENT,
    EXPERT_SKEW,
    FURTHER,
    FURTHER_METHOD,
    FabricOption,
)
from opticoll.cli.runner import Command, on_command_line
from opticoll.errors import UsageError
from opticoll.inputs.device import OF_FABRIC, device_on
from opticoll.inputs.expert_skew import capacity_millionths, read_skew, write_table
from opticoll.inputs.fabric_files import need_fabric
from opticoll.inputs.settings import Settings, set_settings
from opticoll.names import DEFAULT_ALGORITHM, algorithm_spelling
from opticoll.outputs.device_memory import MemoryRow, memory_row
from opticoll.outputs.fabric_names import fabric_text
from opticoll.outputs.layout import PICOSECONDS, align, duration, plural
from opticoll.outputs.rows import OMITTED, Row, command_field, means
from opticoll.outputs.units import Bytes, Count, Number, Positive, Seconds
from opticoll.outputs.watch import Watch

MAX_BATCH = 2**31

MAX_NUMBER = 2**20

AUTO = "auto"

Placement: TypeAlias = Literal["order", "load"]

NAMES: tuple[Literal["dispatch", "combine"], ...] = ("dispatch", "combine")

MAX_COPIES_PER_RANK = 3
"""Maximum number of further copies per rank that `auto` tries. An assumption: DeepSeek-V3 has 1 for
prefill (arXiv:2412.19437, section 3.4.1)."""

CHUNKS = (1, 2, 4, 8, 16)
"""Numbers of chunks that `auto` tries, if they divide the tokens. An assumption: more chunks than
16 are left to those who ask for them."""


@dataclass(frozen=True, kw_only=True)
class Parameters:
    """Parameters of `opticoll experts`."""

    fabric: FabricOption = None
    model: str | None = argument(
        "Model with experts, such as mixtral_8x7b; see `opticoll list models` (required)",
        default=None,
    )
    batch: int | None = count("Samples of a micro-batch on each rank (default: 1)", MAX_BATCH)
    device: str | None = option(
        f"Accelerator, such as h100; see `opticoll list devices` (default: {OF_FABRIC})"
    )
    expert_skew: str | None = option(EXPERT_SKEW)
    layer: int | None = option(
        "Layer with experts, from 0 on (default: 0)",
        converter=whole(least=0, most=MAX_NUMBER),
        group=FURTHER,
    )
    micro_batch: int | None = option(
        "Micro-batch of the skew, from 0 on (default: 0)",
        converter=whole(least=0, most=MAX_NUMBER),
        group=FURTHER,
    )
    capacity_factor: str | None = option(
        CAPACITY_FACTOR,
        group=FURTHER,
        allow_leading_hyphen=True,
    )
    replicate_experts: str | None = option(f"{EXPERT_COPIES}, or auto (default: 0)")
    expert_placement: Literal["order", "load"] | None = option(EXPERT_PLACEMENT)
    expert_chunks: str | None = option(f"{EXPERT_CHUNKS}, or auto (default: 1)")
    algorithm: str | None = option("Algorithm of both exchanges (default: auto)")
    weights: Path | None = option(
        "File to write with the weights of the skew, .csv, as --expert-skew reads it "
        "(default: none)",
        group=FURTHER,
    )
    method: Any = FURTHER_METHOD


class ExchangeRow(Row):
    """Exchange of the tokens of a chunk among all ranks."""

    name: Literal["dispatch", "combine"] = means("Tokens to experts, or results back", "exchange")
    algorithm: str | None = means(
        "Algorithm, or what `auto` chose", "algorithm", absent="no rank sends to another rank"
    )
    time_s: Seconds = means("Time of the exchange of a chunk", "time")
    bound_s: Seconds = means("Lower bound on this time", "bound")


class RankRow(Row):
    """Rank with experts."""

    rank: Count = means("Rank")
    experts: list[Count] = means("Experts of the rank")
    received: Count = means("Assignments of tokens of a chunk to these experts")
    experts_s: Seconds = means("Time of these experts for a chunk")
    dispatch_bytes: list[Bytes] = means(
        "Bytes of a chunk from this rank to the experts of each rank; the combine returns them"
    )


class ExpertsRow(Row):
    """Forward pass of a layer with experts: dispatch, experts and combine."""

    model: str = means("Complete specification of the model")
    label: str = means("Name as printed in figures")
    fabric: str = means("Complete specification of the fabric")
    ranks: Positive = means("Number of ranks, which divide the experts")
    device: str = means("Device")
    batch: Positive = means("Number of samples of a micro-batch on each rank")
    expert_skew: str | None = means("Skew of tokens among experts", absent="all experts are alike")
    layer: Count = means("Layer with experts")
    micro_batch: Count = means("Micro-batch")
    replicate_experts: Count = means("Number of further copies of experts")
    expert_placement: Literal["order", "load"] = means("Rule that assigns experts to ranks")
    expert_chunks: Positive = means("Number of chunks in which tokens are sent to experts")
    dropped: Number = means("Share of assignments of tokens to experts above their capacity")
    least_received: Count = means(
        "Lower bound on the most assignments of a rank, whatever the placement of these copies"
    )
    copies_bytes: Bytes = means(
        "Memory of a rank for weights, gradients and optimizer of the further copies of all layers"
    )
    memory: MemoryRow = means("Forecast of a device's memory for the whole model with these copies")
    exchanges: list[ExchangeRow] = means("Dispatch and combine of a chunk")
    experts: list[RankRow] = means("Experts and tokens of each rank")
    time_s: Seconds = means("Time of the layer")
    bound_s: Seconds = means(
        "Lower bound on this time, for the same demand, placement and chunks and any plans"
    )
    unchanged_s: Seconds = means("Time of the layer without copies, in order, and in one chunk")
    gain: Number = means("Ratio of `unchanged_s` to `time_s`")
    tried: Positive = means("Number of combinations of copies and chunks that were timed")
    simulator: str = means("Simulator of the exchanges; empty if no rank sends")
    policy: str | None = means(
        "Policy: when reconfiguration is charged",
        absent="nothing is sent, or the fabric is electrical",
    )
    verified: bool = means("Whether all plans are proved")
    violations: list[str] = means("Violations of the plans, one sentence each")
    command: str = command_field(default=OMITTED)


@dataclass(frozen=True)
class Exchange:
    """Planned exchange of a chunk."""

    algorithm: str | None
    time_ps: int
    bound_ps: int
    simulator: str
    policy: str | None
    violations: tuple[str, ...]


@dataclass(frozen=True)
class Layer:
    """Layer with its copies and chunks, and the time of its forward pass."""

    training: GroupedTraining
    copies: int
    placement: Placement
    chunks: int
    exchanges: tuple[Exchange, Exchange]
    demand: list[list[int]]
    experts: Any
    time_ps: int
    bound_ps: int


def pipelined(chunks: int, dispatch: int, experts: int, combine: int) -> int:
    """Returns the time of a layer whose chunks take these times each.

    The network sends one exchange at a time, and a device computes for one chunk at a time. All
    dispatches come first. Each term is a lower bound for every order of the exchanges: the network
    is busy; the devices are busy between the first dispatch and the last combine; all combines
    follow the first chunk; the last chunk follows all dispatches.
    """
    return max(
        chunks * (dispatch + combine),
        dispatch + chunks * experts + combine,
        dispatch + experts + chunks * combine,
        chunks * dispatch + experts + combine,
    )


class Layers:
    """Times of a layer with different copies, placements and chunks."""

    def __init__(self, parameters: Parameters, model: str, fabric: Fabric) -> None:
        self._parameters, self._model, self._fabric = parameters, model, fabric
        settings = set_settings(vars(parameters.method))
        self._settings: Settings = settings_on(fabric, [fabric], settings)
        self.device = device_on(fabric, parameters.device)
        self._planned: dict[tuple[tuple[int, ...], ...], Exchange] = {}
        self.micro_batch = parameters.micro_batch or 0
        self.weights = read_skew(parameters.expert_skew, model, fabric.ranks, self.micro_batch + 1)

    def divided(self, copies: int, placement: str = "order", chunks: int = 1) -> GroupedTraining:
        """Returns the model, whose experts all ranks divide."""
        parameters, ranks = self._parameters, self._fabric.ranks
        return GroupedTraining(
            self._model,
            ranks,
            (1, 1, ranks),
            batch=parameters.batch or 1,
            device=self.device,
            weights=self.weights,
            capacity=capacity_millionths(parameters.capacity_factor),
            expert_copies=copies,
            placement=placement,
            expert_chunks=chunks,
        )

    def fit(self, copies: int) -> bool:
        """Returns whether a device has memory for the model with further copies of experts."""
        memory = sum(self.divided(copies).memory_of_device())
        return memory <= _core.device_memory(self.device)

    def find(self, copies: int, placement: Placement, chunks: int) -> Layer:
        """Plans both exchanges of a layer, and times the layer."""
        training = self.divided(copies, placement, chunks)
        layer = self._parameters.layer or 0
        experts = training.expert_layer(layer, self.micro_batch)
        demands = [training.demand(layer, back, self.micro_batch) for back in (False, True)]
        dispatch, combine = (self._exchange(demand) for demand in demands)
        slowest = max(experts["forward_ps"])
        return Layer(
            training,
            copies,
            placement,
            chunks,
            (dispatch, combine),
            demands[0],
            experts,
            pipelined(chunks, dispatch.time_ps, slowest, combine.time_ps),
            pipelined(chunks, dispatch.bound_ps, slowest, combine.bound_ps),
        )

    def _exchange(self, demand: list[list[int]]) -> Exchange:
        """Plans an exchange, verifies the plan, and simulates it."""
        sent = tuple(
            tuple(0 if source == target else size for target, size in enumerate(row))
            for source, row in enumerate(demand)
        )
        if sent not in self._planned:
            self._planned[sent] = self._plan([list(row) for row in sent])
        return self._planned[sent]

    def _plan(self, sent: list[list[int]]) -> Exchange:
        if not any(map(any, sent)):
            return Exchange(None, 0, 0, "", None, ())
        # Equal blocks are an all_to_all, for which more algorithms exist than for a demand.
        blocks = {size for source, row in enumerate(sent) for size in _others(row, source)}
        demand = None if len(blocks) == 1 else _core.Demand(sent)
        size = max(blocks) * len(sent) if demand is None else demand.largest
        plan = _core.plan(
            "all_to_all",
            self._fabric,
            algorithm_spelling("all_to_all", self._parameters.algorithm or DEFAULT_ALGORITHM),
            size_bytes=size,
            demand=demand,
            **self._settings,
        )
        cost = _core.collective_cost(plan, size, **self._settings)
        bound = _core.time_bound("all_to_all", self._fabric, size, cost["policy"], demand=demand)
        violations = tuple(violation.sentence for violation in plan.verify())
        algorithm = plan.algorithm
        return Exchange(
            algorithm, cost["time_ps"], bound[0] or 0, cost["simulator"], cost["policy"], violations
        )


def compute(parameters: Parameters, watch: Watch) -> Iterator[ExpertsRow]:
    """Plans and times a layer with experts.

    Raises
    ------
    OpticollError
        The model has no experts, a name is unknown, or arguments contradict each other.
    """
    if parameters.model is None:
        raise UsageError("the model is missing; give one with experts, such as mixtral_8x7b")
    fabric = need_fabric(parameters.fabric)
    model = TrainingModel(parameters.model)
    layers = Layers(parameters, model.name, fabric)
    placement: Placement = parameters.expert_placement or "order"
    unchanged = layers.find(0, "order", 1)
    if parameters.weights is not None:
        even = _core.expert_weights(model.name, "balanced", fabric.ranks)
        write_table(parameters.weights, layers.weights or even)
    most = len(unchanged.experts["hosts"]) * (fabric.ranks - 1)
    rounds = [fabric.ranks * number for number in range(MAX_COPIES_PER_RANK + 1)]
    if parameters.replicate_experts == AUTO:
        rounds = [one for one in rounds if one == 0 or (one <= most and layers.fit(one))]
    divisors = [number for number in CHUNKS if unchanged.training.tokens % number == 0]
    copies = _values("replicate-experts", parameters.replicate_experts, 0, rounds)
    chunks = _values("expert-chunks", parameters.expert_chunks, 1, divisors)
    combinations = [(further, number) for further in copies for number in chunks]
    found = []
    for done, (further, number) in enumerate(combinations):
        watch.update("copies and chunks", done, len(combinations))
        found.append(layers.find(further, placement, number))
    # Among equal times, fewer copies and chunks come first.
    best = min(found, key=lambda one: (one.time_ps, one.copies, one.chunks))
    yield _row(parameters, layers, model, fabric, best, unchanged, len(found))


def _others(row: list[int], source: int) -> list[int]:
    """Returns the sizes from a rank to the other ranks."""
    return [*row[:source], *row[source + 1 :]]


def _values(name: str, text: str | None, least: int, tried: Sequence[int]) -> Sequence[int]:
    """Returns the numbers to try for an option: those of `auto`, or a single number."""
    if text is None:
        return [least]
    if text == AUTO:
        return tried
    if not (text.isascii() and text.isdigit() and least <= int(text) <= MAX_NUMBER):
        raise UsageError(
            f"{name}: `{text}` is neither auto nor a whole number from {least} to {MAX_NUMBER}"
        )
    return [int(text)]


def _states(training: GroupedTraining) -> int:
    """Returns the bytes of a rank for weights, gradients and optimizer."""
    weights, gradients, optimizer, *_ = training.memory_of_device()
    return weights + gradients + optimizer


def _row(
    parameters: Parameters,
    layers: Layers,
    model: TrainingModel,
    fabric: Fabric,
    best: Layer,
    unchanged: Layer,
    tried: int,
) -> ExpertsRow:
    assigned, dropped = best.training.assignments
    exchanges = [
        ExchangeRow(
            name=name,
            algorithm=exchange.algorithm,
            time_s=exchange.time_ps / PICOSECONDS,
            bound_s=exchange.bound_ps / PICOSECONDS,
        )
        for name, exchange in zip(NAMES, best.exchanges, strict=True)
    ]
    hosts = enumerate(best.experts["hosts"])
    of_rank: list[list[int]] = [[] for _ in range(fabric.ranks)]
    for expert, rank in ((expert, rank) for expert, ranks in hosts for rank in ranks):
        of_rank[rank].append(expert)
    ranks = [
        RankRow(
            rank=rank,
            experts=of_rank[rank],
            received=best.experts["received"][rank],
            experts_s=best.experts["forward_ps"][rank] / PICOSECONDS,
            dispatch_bytes=best.demand[rank],
        )
        for rank in range(fabric.ranks)
    ]
    violations = list(dict.fromkeys(chain(*(one.violations for one in best.exchanges))))
    dispatch, combine = best.exchanges
    return ExpertsRow(
        model=model.name,
        label=model.label,
        fabric=fabric.spec,
        ranks=fabric.ranks,
        device=layers.device,
        batch=parameters.batch or 1,
        expert_skew=parameters.expert_skew,
        layer=parameters.layer or 0,
        micro_batch=layers.micro_batch,
        replicate_experts=best.copies,
        expert_placement=best.placement,
        expert_chunks=best.chunks,
        dropped=dropped / assigned if assigned else 0.0,
        least_received=best.experts["least_received"],
        copies_bytes=_states(best.training) - _states(unchanged.training),
        memory=memory_row(best.training.memory_of_device(), _core.device_memory(layers.device)),
        exchanges=exchanges,
        experts=ranks,
        time_s=best.time_ps / PICOSECONDS,
        bound_s=best.bound_ps / PICOSECONDS,
        unchanged_s=unchanged.time_ps / PICOSECONDS,
        gain=unchanged.time_ps / best.time_ps if best.time_ps else 1.0,
        tried=tried,
        simulator=dispatch.simulator or combine.simulator,
        policy=dispatch.policy or combine.policy,
        verified=not violations,
        violations=violations,
    )


def _text(parameters: Parameters, rows: list[ExpertsRow]) -> str:
    (row,) = rows
    received = [one.received for one in row.experts]
    mean, most = sum(received) / row.ranks, max(received)
    chunks = plural(row.expert_chunks, "chunk")
    above = f"; {row.time_s / row.bound_s - 1:.1%} above its bound" if row.bound_s else ""
    head = (
        f"layer {duration(row.time_s)} in {chunks}{above}; "
        f"{'verified' if row.verified else 'NOT verified'}"
    )
    busiest = f"{most:,} assignments of a chunk"
    if mean:
        busiest += f", {most / mean:.3f} times the mean; bound {row.least_received / mean:.3f}"
    copies = f"{row.replicate_experts}"
    if row.replicate_experts:
        counts = Counter(chain(*(one.experts for one in row.experts))).values()
        copies += (
            f", of {plural(sum(count > 1 for count in counts), 'expert')}; "
            f"{row.copies_bytes / 1e9:,.1f} GB per rank in all layers"
        )
    memory = f"{row.memory.total_bytes / 1e9:,.1f} GB for the whole model"
    if row.memory.device_bytes is not None:
        memory += f"; {'fits' if row.memory.fits else 'does NOT fit'}"
        memory += f" {row.memory.device_bytes / 1e9:,.1f} GB"
        if parameters.replicate_experts == AUTO and not row.memory.fits:
            memory += ", so that auto tries no copies"
    facts = [
        ["model", f"{row.label}, layer {row.layer}, micro-batch {row.micro_batch}"],
        ["fabric", f"{plural(row.ranks, 'rank')}: {fabric_text(row.fabric)}"],
        ["computing", f"a batch of {row.batch} per rank, {row.device}"],
        ["skew", f"{row.expert_skew or 'none'}; {row.dropped:.1%} of assignments dropped"],
        ["copies", copies],
        ["memory", memory],
        ["placement", f"by {row.expert_placement}"],
        ["busiest rank", busiest],
        ["simulator", f"{row.simulator or 'none'}{', ' if row.policy else ''}{row.policy or ''}"],
        [
            "without",
            f"copies, in order, in 1 chunk: {duration(row.unchanged_s)}, "
            f"{row.gain:.3f} times as long",
        ],
        *(
            [["tried", f"{plural(row.tried, 'combination')} of copies and chunks"]]
            if row.tried > 1
            else []
        ),
        ["verified", "yes" if row.verified else f"NO: {row.violations[0]}"],
    ]
    dispatch, combine = (
        [
            one.name,
            one.algorithm or "-",
            duration(one.time_s),
            duration(one.bound_s) if one.bound_s else "-",
        ]
        for one in row.exchanges
    )
    slowest = duration(max(one.experts_s for one in row.experts))
    parts = [dispatch, ["experts", "-", slowest, slowest], combine]
    return "\n\n".join(
        [head, align(facts), align(parts, ["chunk", "algorithm", "time", "bound"], right=(2, 3))]
    )


COMMAND = Command(
    name="experts",
    example="opticoll experts mixtral_8x7b --fabric crossbar:ranks=8,rate=400Gb/s --device h100 "
    "--expert-skew hot_rank --replicate-experts auto --expert-chunks auto",
    parameters=Parameters,
    rows=ExpertsRow,
    compute=compute,
    text=_text,
    progress_label="layer",
    shape="row",
)
command_line = on_command_line(COMMAND)
