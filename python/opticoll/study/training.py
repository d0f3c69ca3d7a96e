"""Training by data parallelism on a fabric: one iteration, its parts, and the time to train.

The gradients of a bucket are all_reduced by a plan. Each plan is verified once and simulated once
for each distinct size of a bucket.

>>> from opticoll.study.training import Job, train
>>> row = train(Job("resnet50", "crossbar:ranks=4,rate=100Gb/s,latency=0s", batch=256,
...     algorithm="halving_doubling", buckets="all", overlap=False))
>>> round(row["exposed_communication_s"] * 1e3, 2), row["reconfiguration_s"], row["verified"]
(12.27, 0.0, True)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypedDict

import opticoll
from opticoll import config, layer_profile, registry, user_algorithm
from opticoll._core import (
    Fabric,
    Iteration,
    Plan,
    TimedModel,
    TrainingModel,
    check_buckets,
    collective_cost,
    device_memory,
    format_size,
    parameter_memory,
)
from opticoll.errors import UsageError
from opticoll.settings import Settings

if TYPE_CHECKING:
    from os import PathLike

    from opticoll._core import CollectiveCost
    from opticoll.layer_profile import Profile
    from opticoll.user_algorithm import UserAlgorithm

__all__ = ["GRADIENTS", "BucketRow", "CollectiveRow", "Job", "MemoryRow", "TrainingRow", "train"]

GRADIENTS = {"float32": 4, "float16": 2, "bfloat16": 2}
"""Number formats in which gradients are sent, with their bytes per parameter."""

PICOSECONDS = 10**12


@dataclass(frozen=True)
class Job:
    """What is trained on what.

    model
        A name such as `resnet50` or `gpt:layers=12,width=768` (see `opticoll list models`); not
        with a profile.
    fabric
        Its ranks are the devices.
    batch
        Samples per device and iteration; a profile may say it.
    device, throughput
        What computes: `a100:efficiency=0.4`, or a measured `50TFLOP/s` or `1100images/s` of one
        device; where neither is given, the first device that is listed.
    profile
        A file of measured layers in place of both (see `opticoll.layer_profile`).
    device_memory
        Bytes that a device has, such as `80GB`; those of the device if not given.
    algorithm
        Of the all_reduce, as for `opticoll.plan`; `A+B` is a reduce_scatter by A and then an
        all_gather by B. Where none is given, `auto` chooses for each size of a bucket.
    gradients
        A key of `GRADIENTS`.
    buckets
        `tensor`, `all`, `ddp` (1 MiB, then 25 MiB) or a size such as `25MiB`.
    overlap
        Whether buckets are sent during the backward pass.
    epochs, samples
        How long to train: epochs of so many samples.
    settings
        How plans are timed.
    """

    model: str | None
    fabric: Fabric | str
    batch: int | None = None
    device: str | None = None
    throughput: str | None = None
    profile: str | PathLike[str] | None = None
    device_memory: str | int | None = None
    algorithm: str | UserAlgorithm | None = None
    gradients: str = "float32"
    buckets: str = "ddp"
    overlap: bool = True
    epochs: int | None = None
    samples: int | None = None
    wavelength: str = "auto"
    settings: Settings = field(default_factory=Settings)


class CollectiveRow(TypedDict):
    """All buckets of one size, and what the all_reduce of one of them costs."""

    size_bytes: int
    count: int
    algorithm: str
    steps: int
    time_s: float
    reconfiguration_s: float
    control_s: float
    verified: bool


class BucketRow(TypedDict):
    """A bucket in the course of the iteration; its gradients end with those of `layer`."""

    bytes: int
    tensors: int
    layer: str
    ready_s: float
    start_s: float
    end_s: float


class MemoryRow(TypedDict):
    """The memory that the model takes on a device, in bytes; see `workload/training/memory.rs`.

    Of a profile the activations are not known, and of a measured throughput the device's memory.
    """

    weights_bytes: int
    gradients_bytes: int
    optimizer_bytes: int
    activations_bytes: int | None
    total_bytes: int
    device_bytes: int | None
    fits: bool | None


class TrainingRow(TypedDict):
    """What `opticoll train --json` prints.

    `algorithm` is what was asked for; `collectives` say what each size was planned by.
    `injection_bandwidth` is what a rank can send, in bits per second. `iteration_s` is the sum of
    `compute_s`, `exposed_communication_s`, `reconfiguration_s` and `control_s`; `communication_s`
    is all sending, hidden or not. `setup_s` is charged once.
    """

    model: str
    label: str
    warnings: list[str]
    parameters: int
    tensors: int
    gradients: str
    gradient_bytes: int
    fabric: str
    ranks: int
    injection_bandwidth: int
    algorithm: str
    batch: int
    compute: str
    memory: MemoryRow
    buckets: str
    overlap: bool
    simulator: str
    policy: str | None
    start: str | None
    iteration_s: float
    compute_s: float
    forward_s: float
    exposed_communication_s: float
    reconfiguration_s: float
    control_s: float
    communication_s: float
    samples_per_s: float
    efficiency: float
    setup_s: float
    epochs: int | None
    samples: int | None
    iterations: int | None
    training_s: float | None
    verified: bool
    violations: list[str]
    collectives: list[CollectiveRow]
    timeline: list[BucketRow]


def train(job: Job, progress: Callable[[str, int, int], None] | None = None) -> TrainingRow:
    """Time one iteration, and from it the training.

    `progress` is called with what comes next, the number of sizes done, and of all.

    Raises
    ------
    OpticollError
        An unknown name, arguments that do not go together, a profile or an algorithm that fails.
    """
    if job.gradients not in GRADIENTS:
        raise UsageError(f"there are no gradients in `{job.gradients}`; {', '.join(GRADIENTS)}")
    fabric = config.to_fabric(job.fabric)
    timed, named, batch = _timed(job)
    rule = check_buckets(job.buckets)
    sizes = timed.buckets(rule)
    prices = _Prices(job, fabric)
    distinct = sorted(set(sizes))
    for done, size in enumerate(distinct):
        if progress is not None:
            progress(f"all_reduce of {format_size(size)}", done, len(distinct))
        prices.find(size)
    costs = {
        size: (cost["time_ps"], cost["reconfiguration_ps"], cost["control_ps"])
        for size, cost in prices.costs.items()
    }
    iteration = timed.iterate(rule, job.overlap, costs)
    return _row(job, fabric, batch, named, rule, timed, prices, iteration)


class _Named(TypedDict):
    """What is said of the model."""

    name: str
    label: str
    parameters: int
    compute: str
    epoch_samples: int | None
    memory: MemoryRow


def _memory(job: Job, parts: tuple[int, ...], *, device: bool) -> MemoryRow:
    """The memory of weights, gradients, optimizer and, where known, activations."""
    memory = None
    if job.device_memory is not None:
        memory = config.to_bytes(job.device_memory)
    elif device:
        memory = device_memory(job.device)
    return MemoryRow(
        weights_bytes=parts[0],
        gradients_bytes=parts[1],
        optimizer_bytes=parts[2],
        activations_bytes=parts[3] if len(parts) > 3 else None,
        total_bytes=sum(parts),
        device_bytes=memory,
        fits=None if memory is None else sum(parts) <= memory,
    )


def _warnings(named: _Named, batch: int) -> list[str]:
    """What to check before the times are trusted."""
    memory = named["memory"]
    if memory["fits"] is not False:
        return []
    have, need = memory["device_bytes"] or 0, memory["total_bytes"]
    states = need - (memory["activations_bytes"] or 0)
    cure = (
        "a smaller batch fits"
        if states < have
        else "no batch fits: divide the model among devices, which data parallelism does not"
    )
    return [
        f"{named['label']} does not fit the device: it takes {need / 1e9:,.1f} GB at a batch of "
        f"{batch}, {states / 1e9:,.1f} GB of that whatever the batch, and the device has "
        f"{have / 1e9:,.1f} GB; {cure}"
    ]


def _timed(job: Job) -> tuple[TimedModel, _Named, int]:
    """The layers with their times, the model in words, and the batch."""
    if job.profile is not None:
        for name in ("model", "device", "throughput"):
            if getattr(job, name) is not None:
                raise UsageError(f"{name} and profile are both given; the profile says it all")
        return _profiled(job, layer_profile.read(job.profile))
    if job.model is None:
        raise UsageError("the model is missing; give one such as resnet50, or a profile")
    if job.device is not None and job.throughput is not None:
        raise UsageError("device and throughput are both given; give one of them")
    if job.batch is None:
        raise UsageError("the batch is missing; give samples per device and iteration, such as 256")
    model = TrainingModel(job.model)
    timed = model.timed(job.batch, job.device, job.throughput, GRADIENTS[job.gradients])
    compute = job.throughput or job.device or registry.records("devices")[0]["name"]
    named = _Named(
        name=model.name,
        label=model.label,
        parameters=model.parameters,
        compute=compute,
        epoch_samples=model.epoch_samples,
        memory=_memory(job, model.memory(job.batch), device=job.throughput is None),
    )
    return timed, named, job.batch


def _profiled(job: Job, profile: Profile) -> tuple[TimedModel, _Named, int]:
    batch = job.batch if job.batch is not None else profile.batch
    if batch is None:
        raise UsageError("the batch at which the profile was measured is missing; give it")
    if profile.batch not in (None, batch):
        raise UsageError(
            f"the profile was measured at a batch of {profile.batch}, not {batch}; leave it out"
        )
    wide = GRADIENTS[job.gradients]
    timed = TimedModel(
        [
            (name, [count * wide for count in tensors], forward, backward)
            for name, tensors, forward, backward in profile.layers
        ]
    )
    named = _Named(
        name=profile.model,
        label=profile.model,
        parameters=profile.parameters,
        compute=f"profile {job.profile}",
        epoch_samples=None,
        memory=_memory(job, parameter_memory(profile.parameters), device=False),
    )
    return timed, named, batch


@dataclass(frozen=True)
class _Part:
    """A collective that an all_reduce is made of, and which part of its size it has."""

    kind: str
    algorithm: str | UserAlgorithm
    divisor: int = 1

    @property
    def by_size(self) -> bool:
        """Whether each size has a plan of its own."""
        return isinstance(self.algorithm, str) and registry.plans_by_size(self.algorithm)


class _Prices:
    """What all_reduces cost, by size; plans are kept unless they are made for a size."""

    def __init__(self, job: Job, fabric: Fabric) -> None:
        self._job, self._fabric = job, fabric
        chosen = registry.DEFAULT_ALGORITHM if job.algorithm is None else job.algorithm
        self.algorithm = chosen if isinstance(chosen, str) else user_algorithm.name_of(chosen)
        self._parts = _parts(chosen, fabric.ranks)
        self._kept: dict[str, tuple[Plan, list[str]]] = {}
        self.costs: dict[int, CollectiveCost] = {}
        self.rows: dict[int, tuple[str, int]] = {}  # the plans' algorithms, their steps
        self.violations: dict[int, list[str]] = {}

    def find(self, size: int) -> None:
        """Plan where needed, verify what is new, simulate."""
        costs, plans, self.violations[size] = [], [], []
        for part in self._parts:
            # The blocks of an all_gather: the largest where the size does not divide evenly.
            part_size = -(-size // part.divisor)
            plan, found = self._planned(part, part_size)
            costs.append(collective_cost(plan, part_size, **self._job.settings))
            plans.append(plan)
            self.violations[size] += found
        first = costs[0]
        first["time_ps"] = sum(cost["time_ps"] for cost in costs)
        first["reconfiguration_ps"] = sum(cost["reconfiguration_ps"] for cost in costs)
        first["control_ps"] = sum(cost["control_ps"] for cost in costs)
        self.costs[size] = first
        name = "+".join(plan.algorithm for plan in plans)
        self.rows[size] = (name, sum(plan.slots for plan in plans))

    def _planned(self, part: _Part, size: int) -> tuple[Plan, list[str]]:
        """A plan, and what is wrong with it."""
        if part.kind not in self._kept or part.by_size:
            plan = opticoll.plan(
                part.kind,
                self._fabric,
                part.algorithm,
                size=size,
                wavelength=self._job.wavelength,
                **self._job.settings,
            )
            found = [violation.sentence for violation in plan.verify()]
            self._kept[part.kind] = (plan, found)
        return self._kept[part.kind]


def _parts(algorithm: str | UserAlgorithm, ranks: int) -> list[_Part]:
    """The collectives that an algorithm stands for; a plus sign within options joins none."""
    if isinstance(algorithm, str) and not user_algorithm.is_user_algorithm(algorithm):
        scatter, plus, gather = algorithm.partition("+")
        if plus:
            if not (scatter.strip() and gather.strip()) or "+" in gather:
                raise UsageError(
                    f"algorithm: `{algorithm}` is no reduce_scatter and all_gather; "
                    "write two algorithms, such as ring+ring"
                )
            return [
                _Part("reduce_scatter", scatter),
                _Part("all_gather", gather, divisor=ranks),
            ]
    return [_Part("all_reduce", algorithm)]


def _row(
    job: Job,
    fabric: Fabric,
    batch: int,
    named: _Named,
    rule: str,
    timed: TimedModel,
    prices: _Prices,
    iteration: Iteration,
) -> TrainingRow:
    layers = timed.layers
    columns = {name: column.tolist() for name, column in iteration.buckets.items()}
    sizes: list[int] = columns["bytes"]
    samples = job.samples if job.samples is not None else named["epoch_samples"]
    if job.epochs is not None and samples is None:
        raise UsageError("an epoch has no known number of samples here; give samples")
    iterations = training_s = None
    setup_ps = fabric.slow_switch_ps or 0
    if job.epochs is not None and samples is not None:
        iterations = job.epochs * -(-samples // (batch * fabric.ranks))
        training_s = (setup_ps + iterations * iteration.time_ps) / PICOSECONDS
    any_cost = next(iter(prices.costs.values()), None)
    violations = dict.fromkeys(one for found in prices.violations.values() for one in found)
    return TrainingRow(
        model=named["name"],
        label=named["label"],
        warnings=_warnings(named, batch),
        parameters=named["parameters"],
        tensors=sum(len(tensors) for _, tensors, _, _ in layers),
        gradients=job.gradients,
        gradient_bytes=sum(sizes),
        fabric=fabric.spec,
        ranks=fabric.ranks,
        injection_bandwidth=fabric.injection_bandwidth,
        algorithm=prices.algorithm,
        batch=batch,
        compute=named["compute"],
        memory=named["memory"],
        buckets=rule,
        overlap=job.overlap,
        simulator=any_cost["simulator"] if any_cost else "",
        policy=any_cost["policy"] if any_cost else None,
        start=any_cost["start"] if any_cost else None,
        iteration_s=iteration.time_ps / PICOSECONDS,
        compute_s=iteration.compute_ps / PICOSECONDS,
        forward_s=iteration.forward_ps / PICOSECONDS,
        exposed_communication_s=iteration.exposed_ps / PICOSECONDS,
        reconfiguration_s=iteration.reconfiguration_ps / PICOSECONDS,
        control_s=iteration.control_ps / PICOSECONDS,
        communication_s=iteration.sending_ps[0] / PICOSECONDS,
        samples_per_s=batch * fabric.ranks * PICOSECONDS / max(iteration.time_ps, 1),
        efficiency=iteration.compute_ps / max(iteration.time_ps, 1),
        setup_s=setup_ps / PICOSECONDS,
        epochs=job.epochs,
        samples=samples,
        iterations=iterations,
        training_s=training_s,
        verified=not violations,
        violations=list(violations),
        collectives=[_collective(prices, size, sizes.count(size)) for size in sorted(prices.costs)],
        timeline=[
            BucketRow(
                bytes=size,
                tensors=columns["tensors"][index],
                layer=layers[columns["layer"][index]][0],
                ready_s=columns["ready_ps"][index] / PICOSECONDS,
                start_s=columns["start_ps"][index] / PICOSECONDS,
                end_s=columns["end_ps"][index] / PICOSECONDS,
            )
            for index, size in enumerate(sizes)
        ],
    )


def _collective(prices: _Prices, size: int, count: int) -> CollectiveRow:
    cost, (algorithm, steps) = prices.costs[size], prices.rows[size]
    return CollectiveRow(
        size_bytes=size,
        count=count,
        algorithm=algorithm,
        steps=steps,
        time_s=cost["time_ps"] / PICOSECONDS,
        reconfiguration_s=cost["reconfiguration_ps"] / PICOSECONDS,
        control_s=cost["control_ps"] / PICOSECONDS,
        verified=not prices.violations[size],
    )
