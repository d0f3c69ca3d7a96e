"""Text output of `opticoll train`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from opticoll.commands.train.energy import energy_facts, training_energy
from opticoll.outputs.fabric_names import fabric_labels, fabric_text
from opticoll.outputs.layout import align, and_more, duration, format_rate, plural, size_names
from opticoll.outputs.plan_row import capacity_lines, different_ranks, latency_fact
from opticoll.outputs.rows import table

if TYPE_CHECKING:
    from opticoll.commands.train import TrainingRow
    from opticoll.commands.train.group_rows import GroupsRow

MAX_SIZES = 12
"""Maximum number of sizes of all_reduces in the text output."""


def training_text(rows: Sequence[TrainingRow]) -> str:
    """Returns a text about the iteration on each fabric.

    For several fabrics, adds a table that compares the fabrics.
    """
    blocks = [_iteration(row) for row in rows]
    if len(rows) > 1:
        blocks.append("\n".join([_fabrics(rows), *capacity_lines(rows)]))
    return "\n\n".join(blocks)


def _fabrics(rows: Sequence[TrainingRow]) -> str:
    """Returns a table with a line per fabric.

    The ratio in a line is the time of the fabric's iteration divided by the shortest time.
    """
    labels = fabric_labels(row.fabric for row in rows)
    least = min(row.iteration_s for row in rows)
    sized = different_ranks(rows)
    devices = len({row.compute for row in rows}) > 1
    lines = [
        [
            labels[row.fabric],
            *([str(row.ranks)] if sized else []),
            format_rate(row.injection_bandwidth),
            duration(row.iteration_s),
            f"{row.iteration_s / least:.2f}" if least else "-",
            f"{row.efficiency:.1%}",
            *([row.compute] if devices else []),
        ]
        for row in rows
    ]
    heading = ["fabric", "per rank", "iteration", "ratio", "computing"]
    if sized:
        heading.insert(1, "ranks")
    right = range(1, len(heading))
    return align(lines, [*heading, *(["device"] if devices else [])], right=right)


def _memory(row: TrainingRow) -> str:
    """Returns a text about the memory that the model needs, and about the memory of the device."""
    memory = row.memory
    gigabytes = f"{memory.total_bytes / 1e9:,.1f} GB"
    states = f"weights {memory.weights_bytes / 1e9:,.1f}"
    states += f", gradients {memory.gradients_bytes / 1e9:,.1f}"
    states += f", optimizer {memory.optimizer_bytes / 1e9:,.1f}"
    activations, working = memory.activations_bytes, memory.working_bytes
    activations_text = "" if activations is None else f", activations {activations / 1e9:,.1f}"
    activations_text += f", working {working / 1e9:,.1f}" if working else ""
    least = "at least " if activations is None else ""
    total = f"{least}{gigabytes} in mixed precision"
    if memory.device_bytes is None:
        return f"{total}: {states}{activations_text}"
    fits = "fits" if memory.fits else "does NOT fit"
    return f"{total}: {states}{activations_text}; {fits} {memory.device_bytes / 1e9:,.1f} GB"


def _iteration(row: TrainingRow) -> str:
    """Returns a summary line, the parts of the iteration's time, and the collectives' costs."""
    whole = row.iteration_s
    head = (
        f"iteration {duration(whole)}: {row.efficiency:.1%} computing; "
        f"{row.samples_per_s:.6g} samples/s; "
        f"{'verified' if row.verified else 'NOT verified'}"
    )
    blocks = [head, align(_facts(row)), _shares(row)]
    if row.collectives:
        blocks.append(_sizes(row))
    if row.groups is not None:
        if len(row.groups.parts) > 2:
            blocks.append(_stages(row.groups))
        blocks.append(_group_collectives(row.groups))
    if row.training_s is not None:
        time_and_energy = f"{duration(row.training_s)}{training_energy(row)}"
        blocks.append(
            f"training: {plural(row.epochs or 0, 'epoch')} of {row.samples:,} samples are "
            f"{row.iterations:,} iterations: {time_and_energy}"
        )
    return "\n\n".join(blocks)


def _facts(row: TrainingRow) -> list[list[str]]:
    """Returns facts on the model, the fabric and the simulation."""
    timing_rule = row.policy or row.start or ""
    groups = row.groups
    sender = "device" if groups is None else "replica"
    facts = [
        ["model", f"{row.label}: {row.parameters:,} parameters in {row.tensors} tensors"],
        ["gradients", f"{row.gradients}, {row.gradient_bytes / 1e6:,.1f} MB"],
        ["fabric", f"{plural(row.ranks, 'rank')}: {fabric_text(row.fabric)}"],
        ["injection", f"{format_rate(row.injection_bandwidth)} per rank"],
        latency_fact(row.fabric_latency_s),
        *([] if groups is None else _group_facts(groups)),
        ["algorithm", f"all_reduce by {row.algorithm}"],
        ["computing", f"a batch of {row.batch} per {sender}, {row.compute}"],
        ["memory", _memory(row)],
    ]
    number = "" if groups is not None else f": {plural(len(row.timeline), 'all_reduce')}"
    when = "during" if row.overlap else "after"
    return [
        *facts,
        ["buckets", f"{row.buckets}{number}, sent {when} the backward pass"],
        ["simulator", f"{row.simulator or 'none'}{', ' if timing_rule else ''}{timing_rule}"],
        *energy_facts(row),
        ["verified", "yes" if row.verified else f"NO: {row.violations[0]}"],
    ]


SHARDED = (
    "nothing",
    "state of the optimizer",
    "state of the optimizer, gradients",
    "state of the optimizer, gradients, parameters",
)
"""Data that replicas divide among themselves, by stage of ZeRO."""


RECONFIGURE = {
    "collective": "for each collective",
    "iteration": "for each collective; one plan for all exchanges among experts",
    "never": "once, before training",
}
"""Text that says how often circuits of a circuit switch are planned, by `reconfigure`."""


def _circuits(groups: GroupsRow) -> str:
    """Returns how often circuits are set up, and the ports of kinds of groups."""
    text = RECONFIGURE[groups.reconfigure or "collective"]
    if groups.ports is not None:
        held = [
            f"{plural(share.ports, 'port')} for {' and '.join(share.kinds)} ({share.circuits})"
            for share in groups.ports
        ]
        return f"{text}: {', '.join(held)}"
    setups = f"at most {plural(groups.setups, 'setup')}" if groups.setups else "no setup"
    return f"{text}; {setups} between the collectives of a rank"


def _group_facts(groups: GroupsRow) -> list[list[str]]:
    """Returns facts on the groups of ranks that divide the model."""
    context = f" x context {groups.context}" if groups.context > 1 else ""
    text = f"tensor {groups.tensor}{context} x pipeline {groups.pipeline} x data {groups.data}"
    if groups.expert > 1:
        sharing = f"{groups.data} replicas"
        if groups.context > 1:
            sharing = f"{groups.context * groups.data} ranks with the same part of the model"
        text += f"; expert {groups.expert} of the {sharing}"
    batches = f"{groups.micro_batches} micro-batch{'es' if groups.micro_batches > 1 else ''}"
    if groups.chunks > 1:
        batches += f", interleaved stages of {groups.chunks} chunks"
    if groups.pipeline > 1:
        batches += f"; bubble {groups.bubble:.1%} of an iteration if sending takes no time"
    experts = []
    if groups.dropped is not None:
        skew = groups.expert_skew or "none, all alike"
        experts = [["expert skew", f"{skew}; {groups.dropped:.1%} of assignments dropped"]]
    arrangement = [
        *([f"{groups.replicate_experts} further copies"] if groups.replicate_experts else []),
        *(["placed by load"] if groups.expert_placement == "load" else []),
        *([f"tokens in {groups.expert_chunks} chunks"] if groups.expert_chunks > 1 else []),
    ]
    if arrangement:
        experts.append(["experts", ", ".join(arrangement)])
    if groups.reconfigure is not None:
        experts.append(["circuits", _circuits(groups)])
    contention = "simulated"
    if groups.contention == "united":
        contention = f"united, the groups of a kind share the fabric: {groups.alone}"
    elif groups.contention == "none":
        contention = f"none, each group is timed as if alone: {groups.alone}"
    return [
        ["groups", text],
        ["sharded", SHARDED[groups.sharded] + _ahead(groups)],
        ["batches", batches],
        ["layers", _practice(groups)],
        *experts,
        ["contention", contention],
        ["transport", groups.transport],
    ]


def _practice(groups: GroupsRow) -> str:
    """Returns a phrase on how ranks compute and store layers."""
    attention = "FlashAttention" if groups.attention == "flash" else "attention with stored scores"
    parts = [attention, f"recomputation {groups.recompute}"]
    if groups.sequence_parallel:
        parts.append("sequence parallelism")
    if groups.context_exchange is not None:
        exchange = {"ring": "keys and values in a ring", "all_to_all": "all_to_all of heads"}
        parts.append(f"context parallelism by {exchange[groups.context_exchange]}")
    if groups.loss == "fused":
        parts.append("fused loss")
    if groups.main_gradients == "float32":
        parts.append("gradients summed in float32")
    if groups.dispatch == "fp8":
        parts.append("tokens in fp8 to experts")
    if groups.overlap_tensor:
        parts.append("tensor exchanges beside products")
    if groups.overlap_experts:
        parts.append("expert exchanges beside another micro-batch")
    return ", ".join(parts)


def _ahead(groups: GroupsRow) -> str:
    """Returns a phrase on the units whose parameters are gathered ahead, unless one as usual."""
    if groups.prefetch is None or (groups.sharded, groups.prefetch) == (3, 1):
        return ""
    when = "" if groups.sharded == 3 else " in the next forward pass"
    return f"; parameters gathered {plural(groups.prefetch, 'unit')} ahead{when}"


def _shares(row: TrainingRow) -> str:
    """Returns a table of the parts of an iteration's time."""
    whole = row.iteration_s
    if row.groups is None:
        parts = [
            ("computing", row.compute_s),
            ("communication, exposed", row.exposed_communication_s),
            ("reconfiguration, exposed", row.reconfiguration_s),
            ("control, exposed", row.control_s),
        ]
        hidden = [
            ("communication, hidden", max(row.communication_s - (whole - row.compute_s), 0.0))
        ]
    else:
        *_, mean = row.groups.parts
        parts = [(name, mean[key]) for name, key in group_parts(row.groups).items()]
        hidden = [
            ("tensor parallelism, hidden", mean.tensor_hidden_s),
            ("context parallelism, hidden", mean.context_hidden_s),
            ("expert parallelism, hidden", mean.expert_hidden_s),
        ]
        hidden = [
            *((name, time_s) for name, time_s in hidden if time_s > 0),
            ("between stages, hidden", mean.sending_hidden_s),
            ("between replicas, hidden", mean.replicas_hidden_s),
        ]
    lines = [
        [name, duration(time_s), f"{time_s / whole:.1%}" if whole else "-"]
        for name, time_s in [*parts, ("iteration", whole)]
    ]
    lines += [[name, duration(time_s), ""] for name, time_s in hidden]
    return align(lines, ["part", "time", "share"], right=(1, 2))


GROUP_PARTS = {
    "computing": "compute_s",
    "tensor parallelism, exposed": "tensor_s",
    "context parallelism, exposed": "context_s",
    "expert parallelism, exposed": "expert_s",
    "between stages, exposed": "sending_s",
    "bubble of the pipeline": "bubble_s",
    "between replicas, exposed": "replicas_s",
}
"""Name of the field with the time of each part of an iteration, for a model in groups of ranks."""


def group_parts(groups: GroupsRow) -> dict[str, str]:
    """Returns those of `GROUP_PARTS` that an iteration with these groups can have."""
    left_out = () if groups.context > 1 else ("context_s",)
    return {name: key for name, key in GROUP_PARTS.items() if key not in left_out}


def _stages(groups: GroupsRow) -> str:
    """Returns a table of the parts of each pipeline stage's time."""
    keys = group_parts(groups).values()
    lines = [
        [str(part.stage), *(duration(part[key]) for key in keys)]
        for part in groups.parts[:-1][:MAX_SIZES]
    ]
    names = ["computing", *(key.removesuffix("_s") for key in keys if key != "compute_s")]
    heading = ["stage", *names]
    lines_text = align(lines, heading, right=range(1, len(heading)))
    return "\n".join([lines_text, *and_more(len(groups.parts) - 1, MAX_SIZES, " stages")])


def _group_collectives(groups: GroupsRow) -> str:
    """Returns a table of the groups' collectives, with the most bytes first."""
    counts: dict[tuple[str, ...], int] = {}
    sent: dict[tuple[str, ...], int] = {}
    names = size_names(member.size_bytes for member in groups.collectives)
    timed = any(member.time_s is not None for member in groups.collectives)
    shared = any(member.time_s != member.alone_s for member in groups.collectives)
    for collective in groups.collectives:
        seconds = [collective.time_s, *([collective.alone_s] if shared else [])]
        times = [duration(time or 0.0) for time in (*seconds, collective.reconfiguration_s)]
        group, size = collective.group.replace("_", " "), names[collective.size_bytes]
        kind = (
            group,
            collective.collective,
            str(collective.ranks),
            size,
            collective.algorithm or "-",
            *times,
        )
        counts[kind] = counts.get(kind, 0) + collective.count
        sent[kind] = sent.get(kind, 0) + collective.count * collective.size_bytes
    ordered = sorted(counts, key=lambda kind: -sent[kind])
    lines = [
        [*kind[:4], str(counts[kind]), kind[4], *(kind[5:] if timed else ())]
        for kind in ordered[:MAX_SIZES]
    ]
    heading = ["group", "collective", "ranks", "size", "times", "algorithm"]
    if timed:
        heading += ["each", *(["alone"] if shared else []), "reconfiguration"]
    lines_text = align(lines, heading, right=(2, 3, 4, *range(6, len(heading))))
    return "\n".join([lines_text, *and_more(len(ordered), MAX_SIZES)])


TABLE_COLUMNS = (
    "size_bytes",
    "count",
    "algorithm",
    "steps",
    "time_s",
    "reconfiguration_s",
    "control_s",
)


def _sizes(row: TrainingRow) -> str:
    """Returns a table of all_reduces by size, with the longest total time first."""
    ordered = sorted(row.collectives, key=lambda collective: -collective.count * collective.time_s)
    return "\n".join(
        [table(ordered[:MAX_SIZES], TABLE_COLUMNS), *and_more(len(ordered), MAX_SIZES)]
    )
