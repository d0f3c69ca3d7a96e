"""Inputs of a training iteration: the times of a model's layers, and the costs of all_reduces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import opticoll
from opticoll._core import (
    Fabric,
    Plan,
    TimedModel,
    TrainingModel,
    collective_cost,
    device_memory,
    parameter_memory,
)
from opticoll.cli.arguments import algorithms_by_collective
from opticoll.commands.train.energy import Spent, spent_by
from opticoll.errors import UsageError
from opticoll.inputs import layer_profile, user_function
from opticoll.inputs.device import DEFAULT_DEVICE
from opticoll.inputs.settings import Settings
from opticoll.inputs.user_algorithm import is_user_algorithm
from opticoll.inputs.values import to_bytes
from opticoll.names import DEFAULT_ALGORITHM, plans_by_size
from opticoll.outputs.device_memory import MemoryRow, memory_row

if TYPE_CHECKING:
    from opticoll._core import CollectiveCost
    from opticoll.commands.train import Train
    from opticoll.inputs.layer_profile import Profile
    from opticoll.inputs.user_algorithm import UserAlgorithm

GRADIENTS = {"float32": 4, "float16": 2, "bfloat16": 2}
"""Bytes per parameter, by number format of gradients on the network."""


@dataclass(frozen=True)
class Model:
    """Model that is trained: its names, its number of parameters, and the memory that it needs."""

    name: str
    label: str
    parameters: int
    compute: str
    epoch_samples: int | None
    memory: MemoryRow
    sample: str = "sample"


def timed(parameters: Train) -> tuple[TimedModel, Model, int]:
    """Returns three values: the layers with their times, the model, and the batch of a replica."""
    if parameters.profile is not None:
        for name in ("model", "device", "throughput"):
            if getattr(parameters, name) is not None:
                raise UsageError(f"{name} and profile are both given; the profile says it all")
        return _profiled(parameters, layer_profile.read(parameters.profile))
    if parameters.model is None:
        raise UsageError("the model is missing; give one such as --model resnet50, or a profile")
    if parameters.device is not None and parameters.throughput is not None:
        raise UsageError("device and throughput are both given; give one of them")
    if parameters.batch is None:
        raise UsageError("--batch is missing; give samples per device and iteration, such as 256")
    model = TrainingModel(parameters.model)
    layers = model.timed(
        parameters.batch, parameters.device, parameters.throughput, GRADIENTS[parameters.gradients]
    )
    compute = parameters.throughput or parameters.device or DEFAULT_DEVICE
    named = Model(
        name=model.name,
        label=model.label,
        parameters=model.parameters,
        compute=compute,
        epoch_samples=model.epoch_samples,
        memory=memory_row(
            model.memory(parameters.batch),
            memory_of(parameters, device=parameters.throughput is None),
        ),
        sample=model.sample,
    )
    return layers, named, parameters.batch


def _profiled(parameters: Train, profile: Profile) -> tuple[TimedModel, Model, int]:
    batch = parameters.batch if parameters.batch is not None else profile.batch
    if batch is None:
        raise UsageError("the batch at which the profile was measured is missing; give it")
    if profile.batch not in (None, batch):
        raise UsageError(
            f"the profile was measured at a batch of {profile.batch}, not {batch}; leave it out"
        )
    wide = GRADIENTS[parameters.gradients]
    layers = TimedModel(
        [
            (name, [count * wide for count in tensors], forward, backward)
            for name, tensors, forward, backward in profile.layers
        ]
    )
    named = Model(
        name=profile.model,
        label=profile.model,
        parameters=profile.parameters,
        compute=f"profile {parameters.profile}",
        epoch_samples=None,
        memory=memory_row(
            parameter_memory(profile.parameters), memory_of(parameters, device=False)
        ),
    )
    return layers, named, batch


def memory_of(parameters: Train, *, device: bool) -> int | None:
    """Returns the memory of a device in bytes, or None if the memory is unknown.

    The option `device_memory` states the memory. Without this option, the name of the device tells
    the memory if `device` is True; otherwise the memory is unknown.
    """
    if parameters.device_memory is not None:
        return to_bytes(parameters.device_memory)
    return device_memory(parameters.device) if device else None


@dataclass(frozen=True)
class _Part:
    """Collective that performs an all_reduce or one half of an all_reduce.

    The size of the collective is the size of the all_reduce divided by `divisor`.
    """

    kind: str
    algorithm: str | UserAlgorithm
    divisor: int = 1

    @property
    def is_size_specific(self) -> bool:
        """True if the planner makes a different plan for each size."""
        return isinstance(self.algorithm, str) and plans_by_size(self.algorithm)


class Prices:
    """Costs of all_reduces by size in bytes; plans that do not depend on the size are cached."""

    def __init__(self, parameters: Train, fabric: Fabric, settings: Settings) -> None:
        self._fabric, self._settings = fabric, settings
        self._wavelength = parameters.wavelength or "auto"
        chosen = DEFAULT_ALGORITHM if parameters.algorithm is None else parameters.algorithm
        self.algorithm = chosen if isinstance(chosen, str) else user_function.name_of(chosen)
        self._parts = _parts(chosen, fabric.ranks)
        self._kept: dict[str, tuple[Plan, list[str]]] = {}
        self.costs: dict[int, CollectiveCost] = {}
        self.rows: dict[int, tuple[str, int]] = {}  # algorithms and number of steps, by size
        self.violations: dict[int, list[str]] = {}
        self.energies: dict[int, list[Spent]] = {}

    def spent(self, sizes: Sequence[int]) -> list[Spent]:
        """Returns the energy of all_reduces of these sizes."""
        return [one for size in sizes for one in self.energies[size]]

    def find(self, size: int) -> None:
        """Simulates an all_reduce of `size` bytes, and stores its cost.

        Plans that are not cached are made and verified first.
        """
        costs, plans, self.violations[size] = [], [], []
        for part in self._parts:
            # The block of an all_gather is rounded up if `divisor` does not divide the size.
            part_size = -(-size // part.divisor)
            plan, problems = self._planned(part, part_size)
            costs.append(collective_cost(plan, part_size, **self._settings))
            plans.append(plan)
            self.violations[size] += problems
        self.energies[size] = [spent_by(self._fabric, cost) for cost in costs]
        first = costs[0]
        first["time_ps"] = sum(cost["time_ps"] for cost in costs)
        first["reconfiguration_ps"] = sum(cost["reconfiguration_ps"] for cost in costs)
        first["control_ps"] = sum(cost["control_ps"] for cost in costs)
        self.costs[size] = first
        name = "+".join(plan.algorithm for plan in plans)
        self.rows[size] = (name, sum(plan.slots for plan in plans))

    def _planned(self, part: _Part, size: int) -> tuple[Plan, list[str]]:
        """Returns the plan of a collective, and the plan's violations."""
        if part.kind not in self._kept or part.is_size_specific:
            plan = opticoll.plan(
                part.kind,
                self._fabric,
                part.algorithm,
                size=size,
                wavelength=self._wavelength,
                **self._settings,
            )
            problems = [violation.sentence for violation in plan.verify()]
            self._kept[part.kind] = (plan, problems)
        return self._kept[part.kind]


def check_names(algorithm: str | UserAlgorithm | None, ranks: int) -> None:
    """Raises an error if the algorithm of an all_reduce, or of one of its halves, has no record."""
    for part in _parts(algorithm or DEFAULT_ALGORITHM, ranks):
        if isinstance(part.algorithm, str) and not is_user_algorithm(part.algorithm):
            algorithms_by_collective({part.kind: part.algorithm})


def _parts(algorithm: str | UserAlgorithm, ranks: int) -> list[_Part]:
    """Returns the collectives that perform an all_reduce.

    The algorithm `A+B` performs a reduce_scatter by `A` and then an all_gather by `B`. Any other
    algorithm performs the whole all_reduce.
    """
    if isinstance(algorithm, str) and not is_user_algorithm(algorithm):
        scatter, plus, gather = algorithm.partition("+")
        if plus:
            if not (scatter.strip() and gather.strip()) or "+" in gather:
                raise UsageError(
                    f"algorithm: `{algorithm}` is not a reduce_scatter and all_gather; "
                    "write two algorithms, such as ring+ring"
                )
            return [
                _Part("reduce_scatter", scatter),
                _Part("all_gather", gather, divisor=ranks),
            ]
    return [_Part("all_reduce", algorithm)]
