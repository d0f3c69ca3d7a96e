"""Algorithms compared on the same fabrics and sizes, under one policy and one simulator.

A plan is built and verified once for each algorithm, number of ranks and number of wavelengths,
and simulated for every size.

>>> from opticoll.study.comparison import compare
>>> comparison = compare("all_gather", "wdm_ring:ranks=16,wavelengths=2", ["ring", "optree:k=2"])
>>> [(row["algorithm"], row["steps"], row["verified"]) for row in comparison.rows]
[('ring', 15, True), ('optree:k=2', 12, True)]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, TypedDict

import opticoll
from opticoll import config, registry, user_algorithm
from opticoll._core import (
    Fabric,
    OpticollError,
    Outcome,
    Plan,
    Violation,
    collective_kind,
    time_bound,
)
from opticoll.errors import (
    AlgorithmError,
    CollectiveError,
    ScheduleError,
    SimulationError,
    UsageError,
    UserAlgorithmError,
    WavelengthError,
)

if TYPE_CHECKING:
    from opticoll.user_algorithm import UserAlgorithm

__all__ = ["Comparison", "Refusal", "Row", "ViolationRow", "compare", "measure"]

PICOSECONDS = 10**12
AUTO = "auto"


class LinkRow(TypedDict):
    """A directed fibre between two neighbours."""

    rank: int
    direction: str
    fibre: int


class ViolationRow(TypedDict):
    """A violation as it is printed for machines."""

    kind: str
    sentence: str
    transfers: list[int]
    slot: int | None
    rank: int | None
    chunk: int | None
    link: LinkRow | None
    wavelength: int | None


class Row(TypedDict):
    """One algorithm on one fabric at one size; what `opticoll plan --json` prints.

    `steps` counts the time slots really used, `claimed_steps` is the paper's number. Bounds hold
    for any plan; `bound_steps` for one chunk per lightpath, None where lightpaths carry more.
    """

    collective: str
    algorithm: str
    chosen: str
    fabric: str
    ranks: int
    wavelengths: int
    root: int
    size_bytes: int
    size_convention: str
    policy: str
    simulator: str
    seed: int
    steps: int
    claimed_steps: int | None
    bound_steps: int | None
    transfers: int
    wavelengths_used: int
    configurations: int
    time_s: float
    time_ps: int
    bound_time_s: float
    verified: bool
    violations: list[ViolationRow]


@dataclass(frozen=True)
class Refusal:
    """An algorithm that does not run on a fabric, and why."""

    algorithm: str
    fabric: str
    reason: str


@dataclass(frozen=True)
class Comparison:
    """Rows in the order: ranks, wavelengths, algorithm, size; and who refused."""

    rows: list[Row] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)


def measure(
    plan: Plan, violations: list[Violation], outcome: Outcome, size_bytes: int, seed: int = 0
) -> Row:
    """The row of a plan that was verified and simulated."""
    bound = plan.bound
    bound_ps = _time_bound(plan.collective.kind, plan.fabric.spec, size_bytes, outcome.policy)
    return Row(
        collective=plan.collective.kind,
        algorithm=plan.algorithm,
        chosen=plan.algorithm,
        fabric=plan.fabric.spec,
        ranks=plan.fabric.ranks,
        wavelengths=plan.fabric.wavelengths,
        root=plan.collective.root,
        size_bytes=size_bytes,
        size_convention=plan.collective.size_convention,
        policy=outcome.policy,
        simulator=outcome.simulator,
        seed=seed,
        steps=plan.slots,
        claimed_steps=plan.claimed_steps,
        bound_steps=None if bound is None else bound[0],
        transfers=len(plan),
        wavelengths_used=plan.wavelengths_used,
        configurations=plan.configurations,
        time_s=outcome.time_ps / PICOSECONDS,
        time_ps=outcome.time_ps,
        bound_time_s=bound_ps / PICOSECONDS,
        verified=not violations,
        violations=[describe_violation(violation) for violation in violations],
    )


@lru_cache(maxsize=1024)
def _time_bound(kind: str, fabric: str, size_bytes: int, policy: str) -> int:
    """The lower bound on time in picoseconds, found once for all algorithms."""
    return time_bound(kind, Fabric(fabric), size_bytes, policy)[0]


def describe_violation(violation: Violation) -> ViolationRow:
    """A violation as plain values."""
    link = violation.link
    return ViolationRow(
        kind=violation.kind,
        sentence=violation.sentence,
        transfers=violation.transfers,
        slot=violation.slot,
        rank=violation.rank,
        chunk=violation.chunk,
        link=None if link is None else LinkRow(rank=link[0], direction=link[1], fibre=link[2]),
        wavelength=violation.wavelength,
    )


def compare(
    collective: str,
    fabric: Fabric | str,
    algorithms: str | Iterable[str | UserAlgorithm] | None = None,
    *,
    sizes: str | int | Iterable[str | int] = "4MiB",
    ranks: Iterable[int] | None = None,
    wavelengths: Iterable[int] | None = None,
    policy: str = "every_step",
    simulator: str = "circuit",
    root: int = 0,
    wavelength: str = "auto",
    progress: Callable[[str, int, int], None] | None = None,
) -> Comparison:
    """Plan, verify and simulate each algorithm for every size on every fabric.

    Without `algorithms` all of the collective are taken, and those that do not run on a fabric are
    among the refusals; an algorithm that is named must run, and runs once if it is named twice.
    `progress` is called with the name of what comes next, the number of plans done, and of all.

    Raises
    ------
    OpticollError
        An unknown name, or a named algorithm that does not run. Its attribute `field` says which
        argument is at fault, such as `("algorithms", 2)`, where that is known.
    UsageError
        Nothing is left to compare.
    """
    kind = collective_kind(collective)
    machines = list(_machines(config.to_fabric(fabric), ranks, wavelengths))
    sizes_bytes = _sizes(sizes)
    chosen = _algorithms(kind, algorithms)
    if not chosen or not sizes_bytes or not machines:
        raise UsageError("nothing to compare: give at least one algorithm, size and fabric")
    result = Comparison()
    total = len(machines) * len(chosen)
    for done, (ring, algorithm) in enumerate((ring, name) for ring in machines for name in chosen):
        name = algorithm if isinstance(algorithm, str) else user_algorithm.name_of(algorithm)
        if progress is not None:
            progress(f"{name} on {ring.ranks} ranks", done, total)
        try:
            for together in _planned_together(name, sizes_bytes):
                plan = opticoll.plan(
                    kind,
                    ring,
                    algorithm,
                    size=together[0],
                    root=root,
                    wavelength=wavelength,
                    policy=policy,
                )
                violations = plan.verify()
                for size_bytes in together:
                    outcome = plan.simulate(size_bytes, policy=policy, simulator=simulator)
                    row = measure(plan, violations, outcome, size_bytes)
                    # What is compared is the name asked for; `auto` may choose another each time.
                    if _base(name) == AUTO:
                        row["algorithm"] = name
                    result.rows.append(row)
        except OpticollError as error:
            if algorithms is None and isinstance(error, AlgorithmError | SimulationError):
                result.refusals.append(Refusal(name, ring.spec, str(error)))
                continue
            error.field = _field_at_fault(error, chosen[algorithm])
            raise
    if not result.rows:
        raise UsageError(f"no algorithm of {kind} runs here: {result.refusals[0].reason}")
    return result


def _base(algorithm: str) -> str:
    return algorithm.partition(":")[0]


def _planned_together(algorithm: str, sizes_bytes: list[int]) -> list[list[int]]:
    """Sizes that share a plan: all, but for `auto`, which plans for each."""
    return [[size] for size in sizes_bytes] if _base(algorithm) == AUTO else [sizes_bytes]


def _machines(
    fabric: Fabric, ranks: Iterable[int] | None, wavelengths: Iterable[int] | None
) -> Iterator[Fabric]:
    """The fabric with every number of ranks and every number of wavelengths."""
    for place, count in enumerate([fabric.ranks] if ranks is None else ranks):
        resized = _changed(fabric, "ranks", count, place)
        counts = [fabric.wavelengths] if wavelengths is None else wavelengths
        for column, channels in enumerate(counts):
            yield _changed(resized, "wavelengths", channels, column)


def _changed(fabric: Fabric, option: str, count: int, place: int) -> Fabric:
    try:
        return fabric.with_options(**{option: count})
    except OpticollError as error:
        error.field = (option, place)
        raise


def _sizes(sizes: str | int | Iterable[str | int]) -> list[int]:
    """Sizes in bytes, each once."""
    if isinstance(sizes, str):
        return config.split_sizes(sizes)
    listed = sizes if isinstance(sizes, Iterable) else [sizes]
    return list(dict.fromkeys(config.to_bytes(size) for size in listed))


def _algorithms(
    kind: str, algorithms: str | Iterable[str | UserAlgorithm] | None
) -> dict[str | UserAlgorithm, int]:
    """The algorithms, each once, with the place at which they were first given."""
    if algorithms is None:
        # What `auto` chooses is among the others, and takes longer to find than they all.
        algorithms = [name for name in registry.algorithm_names(kind) if name != AUTO]
    elif isinstance(algorithms, str):
        algorithms = config.split_algorithms(algorithms)
    chosen: dict[str | UserAlgorithm, int] = {}
    for place, algorithm in enumerate(algorithms):
        try:
            chosen.setdefault(_named(kind, algorithm), place)
        except OpticollError as error:
            error.field = ("algorithms", place)
            raise
    return chosen


def _named(kind: str, algorithm: str | UserAlgorithm) -> str | UserAlgorithm:
    if not isinstance(algorithm, str) or user_algorithm.is_user_algorithm(algorithm):
        return algorithm
    return registry.algorithm_spelling(kind, algorithm)


def _field_at_fault(error: OpticollError, place: int) -> tuple[str | int, ...]:
    """The argument of `compare` that an error of planning or simulating is about, if it is one."""
    kinds: list[tuple[type[OpticollError], tuple[str | int, ...]]] = [
        (WavelengthError, ("wavelength",)),
        (CollectiveError, ("root",)),
        (SimulationError, ("simulator",)),
        (AlgorithmError, ("algorithms", place)),
        (UserAlgorithmError, ("algorithms", place)),
        (ScheduleError, ("algorithms", place)),
    ]
    return next((field for kind, field in kinds if isinstance(error, kind)), ())
