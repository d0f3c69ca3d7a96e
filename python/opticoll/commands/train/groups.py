"""An iteration of training in which groups of ranks divide the model.

Groups meet in the network where its simulator carries single messages; elsewhere each collective
is planned and timed on the part of the fabric that its group has, as if the group were alone.
"""

# Not `from __future__ import annotations`: the types of rows are read at run time.

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import opticoll
from opticoll import _core, registry, user_algorithm
from opticoll._core import Fabric, GroupedTraining, Outcome, carries_messages
from opticoll.arguments import algorithms_by_collective
from opticoll.commands.train.experts import capacity_millionths, read_skew
from opticoll.errors import FabricError, TrainingError, UsageError
from opticoll.layout import PICOSECONDS
from opticoll.rows import Bytes, Count, Fraction, Positive, Row, Seconds, means

if TYPE_CHECKING:
    from opticoll._core import GroupCollectiveRecord
    from opticoll.commands.train import Train
    from opticoll.runner import Watch
    from opticoll.settings import Settings

GIVEN = (
    "tensor_parallel",
    "pipeline_parallel",
    "expert_parallel",
    "data_parallel",
    "expert_skew",
    "capacity_factor",
    "sharded",
    "micro_batches",
    "contention",
    "collectives",
)
"""Options that divide a model among groups."""


class PartRow(Row, core="groups.stages"):
    """What the devices of a stage, or all devices on average, spend an iteration on."""

    stage: Count | None = means("Stage of the pipeline", absent="the mean over all devices")
    compute_s: Seconds
    tensor_s: Seconds
    expert_s: Seconds
    sending_s: Seconds
    bubble_s: Seconds
    replicas_s: Seconds
    sending_hidden_s: Seconds
    replicas_hidden_s: Seconds


class GroupCollectiveRow(Row):
    """A collective of the groups of a kind, or a message between stages."""

    group: str = means(
        "Kind of group: tensor, pipeline, expert, data (replicas of the model) or expert_data "
        "(replicas of the same experts)"
    )
    collective: str = means("Collective, or `message` from one stage to the next")
    ranks: Positive = means("Number of ranks of a group")
    size_bytes: Bytes = means("Size of the collective; of an uneven exchange, the mean over ranks")
    layer: Count | None = means(
        "Layer of experts", absent="all layers exchange the same, or nothing to experts"
    )
    count: Positive = means(
        "Number in an iteration that one rank of each stage takes part in, summed over stages"
    )
    algorithm: str | None = means(
        "Algorithm, or what `auto` chose", absent="a message, or no algorithm of this size"
    )
    time_s: Seconds | None = means(
        "Time of one, its group alone on the fabric", absent="all groups are simulated together"
    )
    verified: bool = means("Whether its plan is proved")


class GroupsRow(Row, core="groups"):
    """How groups of ranks divide a model, and what an iteration is spent on."""

    tensor: Positive = means("Number of ranks that divide each matrix")
    pipeline: Positive = means("Number of stages of the pipeline")
    expert: Positive = means("Number of ranks that divide the experts")
    data: Positive = means("Number of replicas of the model")
    sharded: Count = means(
        "Stage of ZeRO: replicas divide nothing (0), the state of the optimizer (1), gradients too "
        "(2), parameters too (3)"
    )
    micro_batches: Positive = means("Number of micro-batches of an iteration")
    contention: Literal["simulated", "none"] = means(
        "Whether groups that share links slow each other down"
    )
    alone: str | None = means(
        "Why groups are timed one by one", absent="all groups are simulated together"
    )
    expert_skew: str | None = means("Skew of tokens among experts", absent="all experts are alike")
    dropped: Fraction | None = means(
        "Share of assignments of tokens to experts above the capacity of the experts",
        absent="the model has no experts",
    )
    bubble: Fraction = means(
        "Share of an iteration that each device idles if sending takes no time: "
        "(P - 1) / (M + P - 1) of P stages and M micro-batches"
    )
    messages: Count
    bytes: Bytes
    parts: list[PartRow] = means("Parts of the iteration by stage; then the mean over all devices")
    collectives: list[GroupCollectiveRow] = means("Distinct collectives of the groups")


@dataclass(frozen=True)
class Grouped:
    """An iteration carried out, and what was said on the way."""

    training: GroupedTraining
    iteration: Outcome
    row: GroupsRow
    simulator: str
    policy: str | None
    violations: list[str]


def is_grouped(asked: "Train") -> bool:
    """Whether options divide the model among groups."""
    return any(getattr(asked, name) is not None for name in GIVEN)


def divide(asked: "Train", model: str, batch: int, ranks: int, gradient_bytes: int) -> Any:
    """The model divided among groups."""
    pipeline = asked.pipeline_parallel or 1
    micro_batches = asked.micro_batches or (batch if pipeline > 1 else 1)
    skew = read_skew(asked.expert_skew)
    return GroupedTraining(
        model,
        ranks,
        (asked.tensor_parallel or 1, pipeline, asked.expert_parallel or 1),
        batch=batch,
        micro_batches=micro_batches,
        data=asked.data_parallel,
        sharded=asked.sharded or 0,
        device=asked.device,
        throughput=asked.throughput,
        bytes_per_parameter=gradient_bytes,
        buckets=asked.buckets,
        overlap=asked.overlap,
        zipf=skew.zipf,
        weights=skew.weights,
        capacity=capacity_millionths(asked.capacity_factor),
    )


def refuse_too_large(label: str, training: GroupedTraining, need: int, have: int | None) -> None:
    """Refuse a model that does not fit the device, with what would make it fit."""
    if have is None or need <= have:
        return
    fits = training.that_fit(have)
    cure = (
        "no division among these ranks fits; take more ranks or a smaller batch"
        if fits is None
        else f"{_options(fits)} takes {fits['total_bytes'] / 1e9:,.1f} GB"
    )
    raise TrainingError(
        f"{label} does not fit the device: a rank needs {need / 1e9:,.1f} GB, and the device has "
        f"{have / 1e9:,.1f} GB; {cure}"
    )


def _options(fits: Mapping[str, Any]) -> str:
    """Options that divide a model."""
    options = {
        "tensor-parallel": (fits["tensor"], 1),
        "pipeline-parallel": (fits["pipeline"], 1),
        "expert-parallel": (fits["expert"], 1),
        "sharded": (fits["sharded"], 0),
        "micro-batches": (fits["micro_batches"], 1),
    }
    return " ".join(
        f"--{name} {value}" for name, (value, usual) in options.items() if value != usual
    )


@dataclass(frozen=True)
class Way:
    """How collectives of groups are carried out: by which algorithms, and why each group alone."""

    algorithms: Mapping[str, str]
    alone: str | None


def way_of(asked: "Train", fabric: Fabric, settings: "Settings") -> Way:
    """The way of collectives on a fabric."""
    return Way(_algorithms(asked), _why_alone(asked, fabric, settings))


def carry_out(
    asked: "Train",
    training: GroupedTraining,
    fabric: Fabric,
    way: Way,
    settings: "Settings",
    watch: "Watch",
) -> Grouped:
    """Carry out an iteration over a fabric, or with groups timed one by one."""
    algorithms, alone = dict(way.algorithms), way.alone
    made = training.made_of()
    if alone is None:
        watch.update("iteration of all groups", 0, 1)
        iteration = training.over(fabric.spec, algorithms, **settings)
        chosen = {
            (one["collective"], one["ranks"], one["size_bytes"]): one["chosen"]
            for one in iteration.chosen.rows()
        }
        rows = [_collective(training, one, _chosen(training, one, chosen)) for one in made]
        return Grouped(
            training=training,
            iteration=iteration,
            row=_row(asked, training, iteration, rows, alone),
            simulator=iteration.simulator,
            policy=settings.get("policy"),
            violations=[],
        )
    prices = GroupPrices(fabric, training, algorithms, settings)
    for number, one in enumerate(made):
        watch.update(f"{one['collective'] or 'message'} of {one['group']}", number, len(made))
        prices.find(one)
    iteration = training.with_times(prices.times_ps)
    return Grouped(
        training=training,
        iteration=iteration,
        row=_row(asked, training, iteration, prices.rows, alone),
        simulator=prices.simulator,
        policy=prices.policy,
        violations=prices.violations,
    )


def _algorithms(asked: "Train") -> dict[str, str]:
    """The algorithm of each collective; `algorithm` is that of the all_reduce."""
    kinds = [record["name"] for record in registry.records("collectives")]
    chosen = dict.fromkeys(kinds, registry.DEFAULT_ALGORITHM)
    given = dict(algorithms_by_collective(asked.collectives))
    if asked.algorithm is not None:
        if not isinstance(asked.algorithm, str) or user_algorithm.is_user_algorithm(
            asked.algorithm
        ):
            raise UsageError("algorithm: groups run named algorithms, not your own")
        if "+" in asked.algorithm:
            raise UsageError(
                f"algorithm: `{asked.algorithm}` is a reduce_scatter and an all_gather, and groups "
                "run one algorithm for each collective; --sharded 1 sends both"
            )
        given.setdefault("all_reduce", asked.algorithm)
    for kind, algorithm in given.items():
        chosen[_core.collective_kind(kind)] = registry.algorithm_spelling(kind, algorithm)
    return chosen


def _why_alone(asked: "Train", fabric: Fabric, settings: "Settings") -> str | None:
    """Why groups are timed one by one; None where they meet in the network."""
    if asked.contention == "none":
        return "as asked for"
    if carries_messages(fabric, **settings):
        return None
    reason = f"no simulator sends single messages over {fabric.family}"
    if asked.contention == "simulated":
        raise UsageError(f"contention: {reason}; leave it out, and groups are timed one by one")
    return reason


def _row(
    asked: "Train",
    training: GroupedTraining,
    iteration: Outcome,
    collectives: list[GroupCollectiveRow],
    alone: str | None,
) -> GroupsRow:
    tensor, pipeline, expert, data = training.groups
    micro_batches = training.micro_batches
    assigned, dropped = training.assignments
    parts = [
        PartRow.of(one, stage=None if stage == pipeline else stage)
        for stage, one in enumerate(iteration.stages.rows())
    ]
    return GroupsRow.of(
        iteration,
        tensor=tensor,
        pipeline=pipeline,
        expert=expert,
        data=data,
        sharded=asked.sharded or 0,
        micro_batches=micro_batches,
        contention="simulated" if alone is None else "none",
        alone=alone,
        expert_skew=asked.expert_skew,
        dropped=dropped / assigned if assigned else None,
        bubble=(pipeline - 1) / (micro_batches + pipeline - 1),
        parts=parts,
        collectives=collectives,
    )


def _chosen(
    training: GroupedTraining,
    one: "GroupCollectiveRecord",
    chosen: Mapping[tuple[str, int, int | None], str],
) -> str | None:
    """The algorithm of a collective, which may have been chosen for the next power of two bytes."""
    if one["collective"] is None:
        return None
    size = one["size_bytes"]
    if one["layer"] is not None:
        size = _mean_size(training, one)
    rounded = 1 << max(size - 1, 0).bit_length()
    kind = (one["collective"], one["ranks"])
    return chosen.get((*kind, rounded), chosen.get((*kind, None)))


def _mean_size(training: GroupedTraining, one: "GroupCollectiveRecord") -> int:
    """Bytes that a rank has in an uneven exchange, on average."""
    demand = training.demand(one["layer"] or 0, one["back"])
    return sum(map(sum, demand)) // len(demand)


def _collective(
    training: GroupedTraining,
    one: "GroupCollectiveRecord",
    algorithm: str | None,
    time_s: float | None = None,
    verified: bool = True,
) -> GroupCollectiveRow:
    layer, size = one["layer"], one["size_bytes"]
    if layer is not None:
        size = _mean_size(training, one)
    return GroupCollectiveRow(
        group=one["group"],
        collective=one["collective"] or "message",
        ranks=one["ranks"],
        size_bytes=size,
        layer=layer,
        count=one["count"],
        algorithm=algorithm,
        time_s=time_s,
        verified=verified,
    )


class GroupPrices:
    """What collectives of groups cost, each group alone on its part of the fabric."""

    def __init__(
        self,
        fabric: Fabric,
        training: GroupedTraining,
        algorithms: Mapping[str, str],
        settings: "Settings",
    ) -> None:
        self._fabric, self._training = fabric, training
        self._algorithms, self._settings = algorithms, settings
        self.times_ps: list[int] = []
        self.rows: list[GroupCollectiveRow] = []
        self.violations: list[str] = []
        self.simulator = ""
        self.policy: str | None = None

    def find(self, one: "GroupCollectiveRecord") -> None:
        """Plan a collective, verify the plan, simulate it."""
        if one["layer"] is not None:
            raise TrainingError(
                f"experts get different numbers of tokens, and no simulator sends single messages "
                f"over {self._fabric.family}; take a fabric with links"
            )
        # A message is a broadcast to one other rank.
        kind = one["collective"] or "broadcast"
        part = part_of(self._fabric, members_of(self._training, one))
        plan = opticoll.plan(
            kind, part, self._algorithms[kind], size=one["size_bytes"], **self._settings
        )
        wrong = [violation.sentence for violation in plan.verify()]
        cost = _core.collective_cost(plan, one["size_bytes"], **self._settings)
        self.simulator, self.policy = cost["simulator"], cost["policy"]
        self.violations += [sentence for sentence in wrong if sentence not in self.violations]
        self.times_ps.append(cost["time_ps"])
        time_s = cost["time_ps"] / PICOSECONDS
        algorithm = plan.algorithm if one["collective"] else None
        self.rows.append(_collective(self._training, one, algorithm, time_s, not wrong))


def members_of(training: GroupedTraining, one: "GroupCollectiveRecord") -> list[int]:
    """The ranks of the group that rank 0 belongs to; of the pipeline, of its first two stages."""
    tensor, _, expert, data = training.groups
    steps = {
        "tensor": 1,
        "pipeline": tensor * data,
        "expert": tensor,
        "data": tensor,
        "expert_data": tensor * expert,
    }
    step = steps[one["group"]]
    return [step * number for number in range(one["ranks"])]


def part_of(fabric: Fabric, members: Sequence[int]) -> Fabric:
    """The part of a fabric that some of its ranks have for themselves.

    Of a fabric with links these ranks, and all links; of circuits a fabric of as many ranks.
    """
    ranks = len(members)
    if ranks == fabric.ranks:
        return fabric
    if fabric.electrical:
        return fabric.with_options(members="+".join(map(str, members)))
    options = fabric.options
    if "ranks" in options:
        return fabric.with_options(ranks=ranks)
    if "rows" in options and "columns" in options:
        columns = fabric.option("columns")
        if members[1] - members[0] == columns:
            return fabric.with_options(rows=ranks, columns=1)
        if ranks <= columns:
            return fabric.with_options(rows=1, columns=ranks)
        if ranks % columns == 0:
            return fabric.with_options(rows=ranks // columns, columns=columns)
    raise FabricError(f"{fabric.family} has no part of {ranks} ranks; take other groups")
