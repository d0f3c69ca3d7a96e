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
from typing import TYPE_CHECKING, TypedDict

import opticoll
from opticoll import registry, user_algorithm
from opticoll._core import (
    Fabric,
    OpticollError,
    Outcome,
    Plan,
    Violation,
    collective_kind,
    parse_size,
)
from opticoll.errors import AlgorithmError, UsageError

if TYPE_CHECKING:
    from opticoll.user_algorithm import UserAlgorithm

__all__ = ["Comparison", "Refusal", "Row", "ViolationRow", "compare", "measure"]

PICOSECONDS = 10**12


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

    `steps` counts the time slots really used, `claimed_steps` is the paper's number. Bounds are
    None: none is computed yet.
    """

    collective: str
    algorithm: str
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
    bound_time_s: float | None
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
    return Row(
        collective=plan.collective.kind,
        algorithm=plan.algorithm,
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
        bound_steps=None,
        transfers=len(plan),
        wavelengths_used=plan.wavelengths_used,
        configurations=plan.configurations,
        time_s=outcome.time_ps / PICOSECONDS,
        time_ps=outcome.time_ps,
        bound_time_s=None,
        verified=not violations,
        violations=[describe_violation(violation) for violation in violations],
    )


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
    algorithms: Iterable[str | UserAlgorithm] | None = None,
    *,
    sizes: Iterable[str | int] = ("4MiB",),
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
    among the refusals; an algorithm that is named must run. `progress` is called with the name of
    what comes next, the number of plans done, and of all.

    Raises
    ------
    OpticollError
        An unknown name, or a named algorithm that does not run.
    UsageError
        Nothing is left to compare.
    """
    kind = collective_kind(collective)
    machine = Fabric(fabric) if isinstance(fabric, str) else fabric
    machines = list(_machines(machine, ranks, wavelengths))
    sizes_bytes = [parse_size(size) if isinstance(size, str) else size for size in sizes]
    chosen: list[str | UserAlgorithm] = list(
        registry.algorithm_names(kind) if algorithms is None else algorithms
    )
    if not chosen or not sizes_bytes or not machines:
        raise UsageError("nothing to compare: give at least one algorithm, size and fabric")
    result = Comparison()
    total = len(machines) * len(chosen)
    for done, (ring, algorithm) in enumerate((ring, name) for ring in machines for name in chosen):
        name = algorithm if isinstance(algorithm, str) else user_algorithm.name_of(algorithm)
        if progress is not None:
            progress(f"{name} on {ring.ranks} ranks", done, total)
        try:
            plan = opticoll.plan(kind, ring, algorithm, root=root, wavelength=wavelength)
        except AlgorithmError as error:
            if algorithms is not None:
                raise
            result.refusals.append(Refusal(name, ring.spec, str(error)))
            continue
        violations = plan.verify()
        for size_bytes in sizes_bytes:
            try:
                outcome = plan.simulate(size_bytes, policy=policy, simulator=simulator)
            except OpticollError as error:
                if algorithms is not None:
                    raise
                result.refusals.append(Refusal(name, ring.spec, str(error)))
                continue
            result.rows.append(measure(plan, violations, outcome, size_bytes))
    if not result.rows:
        raise UsageError(f"no algorithm of {kind} runs here: {result.refusals[0].reason}")
    return result


def _machines(
    fabric: Fabric, ranks: Iterable[int] | None, wavelengths: Iterable[int] | None
) -> Iterator[Fabric]:
    """The fabric with every number of ranks and every number of wavelengths."""
    for count in [fabric.ranks] if ranks is None else ranks:
        resized = fabric.with_options(ranks=count)
        for channels in [fabric.wavelengths] if wavelengths is None else wavelengths:
            yield resized.with_options(wavelengths=channels)
