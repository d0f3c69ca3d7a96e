"""Algorithms compared on the same fabrics and sizes, under one policy and one simulator.

A plan is built and verified once for each algorithm, number of ranks and number of wavelengths,
and simulated for every size.

>>> from opticoll.config import to_scenario
>>> from opticoll.study.comparison import compare
>>> scenario = to_scenario("all_gather", "wdm_ring:ranks=16,wavelengths=2", "ring,optree:k=2")
>>> [(row["algorithm"], row["steps"], row["verified"]) for row in compare(scenario).rows]
[('ring', 15, True), ('optree:k=2', 12, True), ('auto', 8, True)]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypedDict

import opticoll
from opticoll import registry, user_algorithm
from opticoll._core import (
    Fabric,
    OpticollError,
    Outcome,
    Plan,
    Violation,
    format_size,
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
from opticoll.settings import Settings, given

if TYPE_CHECKING:
    from opticoll.config import Scenario
    from opticoll.user_algorithm import UserAlgorithm

__all__ = [
    "CandidateRow",
    "Comparison",
    "Refusal",
    "Row",
    "ViolationRow",
    "compare",
    "measure",
    "settings_on",
]

PICOSECONDS = 10**12

Progress = Callable[[str, int, int], None]
"""Called with what is being done, and how much of it is done, of how much."""


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


class CandidateRow(TypedDict):
    """A plan that `auto` compared: simulated, or left out, with the least that it may take."""

    name: str
    steps: int
    time_s: float
    simulated: bool
    left_out: str  # why; empty where it was simulated


class SettingRow(TypedDict):
    """A setting that differs from the plain model of its simulator."""

    name: str
    value: str
    plain: str


class Row(TypedDict):
    """One algorithm on one fabric at one size; what `opticoll plan --json` prints.

    `steps` counts the time slots really used, `claimed_steps` is the paper's number. Bounds hold
    for any plan; `bound_steps` for one chunk per lightpath, or any number where the plan has more.
    Each bound has a name and the assumption under which it holds; where there is none on time, the
    assumption says why. `injection_bandwidth` is what a rank can send, in bits per second.
    `algorithm` is what was asked for, `chosen` what the plan was made by: they differ where
    `algorithm` chooses, such as `auto`. `candidates` and `reasons` are empty but for `auto`. On
    electrical fabrics there are no wavelengths, circuits, policies and bounds on steps; on rings no
    start rule and no bottleneck, a link in words.
    """

    collective: str
    algorithm: str
    chosen: str
    fabric: str
    ranks: int
    wavelengths: int | None
    injection_bandwidth: int
    root: int
    size_bytes: int
    size_convention: str
    policy: str | None
    simulator: str
    start: str | None
    settings: list[SettingRow]
    steps: int
    claimed_steps: int | None
    bound_steps: int | None
    bound_name: str | None
    bound_assumption: str | None
    transfers: int
    wavelengths_used: int | None
    configurations: int | None
    time_s: float
    time_ps: int
    bottleneck: str | None
    bound_time_s: float | None
    bound_time_name: str | None
    bound_time_assumption: str | None
    verified: bool
    violations: list[ViolationRow]
    candidates: list[CandidateRow]
    reasons: list[str]


@dataclass(frozen=True)
class Refusal:
    """An algorithm that does not run on a fabric, and why."""

    algorithm: str
    fabric: str
    reason: str


@dataclass(frozen=True)
class Comparison:
    """Rows in the order: fabric, ranks, wavelengths, algorithm, size; and who refused."""

    rows: list[Row] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)


def measure(plan: Plan, violations: list[Violation], outcome: Outcome, size_bytes: int) -> Row:
    """The row of a plan that was verified and simulated."""
    steps, name, assumption = plan.bound or (None, None, None)
    kind, root = plan.collective.kind, plan.collective.root
    settings = outcome.settings.rows()
    given = {one["name"]: one["value"] for one in settings}
    least_ps, time_name, time_assumption = _time_bound(
        kind,
        plan.fabric.spec,
        size_bytes,
        outcome.policy,
        root,
        given.get("paths"),
        outcome.simulator,
        given.get("placement"),
    )
    fabric = plan.fabric
    lit = fabric.has_wavelengths
    link = outcome.totals.get("bottleneck")
    return Row(
        collective=plan.collective.kind,
        algorithm=plan.asked,
        chosen=plan.algorithm,
        fabric=fabric.spec,
        ranks=fabric.ranks,
        wavelengths=fabric.wavelengths if lit else None,
        injection_bandwidth=fabric.injection_bandwidth,
        root=plan.collective.root,
        size_bytes=size_bytes,
        size_convention=plan.collective.size_convention,
        policy=outcome.policy,
        simulator=outcome.simulator,
        start=outcome.start,
        settings=[
            SettingRow(name=one["name"], value=one["value"], plain=one["plain"]) for one in settings
        ],
        steps=plan.slots,
        claimed_steps=plan.claimed_steps,
        bound_steps=steps,
        bound_name=name,
        bound_assumption=assumption,
        transfers=len(plan),
        wavelengths_used=plan.wavelengths_used if lit else None,
        configurations=plan.configurations if lit else None,
        time_s=outcome.time_ps / PICOSECONDS,
        time_ps=outcome.time_ps,
        bottleneck=None if link is None else fabric.link_name(link),
        bound_time_s=None if least_ps is None else least_ps / PICOSECONDS,
        bound_time_name=time_name,
        bound_time_assumption=time_assumption,
        verified=not violations,
        violations=[describe_violation(violation) for violation in violations],
        candidates=[
            CandidateRow(
                name=name,
                steps=slots,
                time_s=time_ps / PICOSECONDS,
                simulated=not left_out,
                left_out=left_out,
            )
            for name, slots, time_ps, left_out in plan.candidates
        ],
        reasons=plan.reasons,
    )


@lru_cache(maxsize=1024)
def _time_bound(
    kind: str, fabric: str, size_bytes: int, *method: Any
) -> tuple[int | None, str | None, str]:
    """The lower bound on time (picoseconds, name, assumption), found once for all algorithms."""
    return time_bound(kind, Fabric(fabric), size_bytes, *method)


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
    scenario: Scenario,
    progress: Progress | None = None,
    finished: Callable[[Row], object] | None = None,
) -> Comparison:
    """Plan, verify and simulate each algorithm for every size on every fabric.

    `auto` is always taken. Without `algorithms` so are all of the collective, on a ring of
    wavelengths also striped over the wavelengths that they leave unused, and those that do not run
    on a fabric are among the refusals; an algorithm that is named must run, and runs once if it is
    named twice. Of several fabrics each has the settings that its simulator knows.
    `progress` is called with the name of what comes next, the number of plans done, and of all;
    while packets are simulated, with the messages delivered, and of all. `finished` is called with
    each row as soon as it is there.

    Raises
    ------
    OpticollError
        An unknown name, or a named algorithm that does not run. Its attribute `field` says which
        field is at fault, such as `("algorithms", 2)`, where that is known.
    UsageError
        Nothing is left to compare.
    """
    if scenario.algorithms == [] or not scenario.sizes or not scenario.fabrics:
        raise UsageError("nothing to compare: give at least one algorithm, size and fabric")
    cases = [
        (machine, algorithm, place, together)
        for fabric in scenario.fabrics
        for machine in _machines(fabric, scenario.ranks, scenario.wavelengths)
        for algorithm, place in _algorithms(
            scenario.collective, scenario.algorithms, fabric.family
        ).items()
        for together in _planned_together(algorithm, scenario.sizes)
    ]
    result = Comparison()
    refused: set[tuple[str, str]] = set()
    done = 0
    while done < len(cases):
        machine, algorithm, place, sizes_bytes = cases[done]
        done += 1
        name = algorithm if isinstance(algorithm, str) else user_algorithm.name_of(algorithm)
        if (name, machine.spec) in refused:
            continue
        if progress is not None:
            sized = "" if len(sizes_bytes) > 1 else f", {format_size(sizes_bytes[0])}"
            progress(f"{name} on {machine.ranks} ranks{sized}", done - 1, len(cases))
        try:
            for row in _rows(scenario, machine, algorithm, sizes_bytes, progress):
                result.rows.append(row)
                if finished is not None:
                    finished(row)
            if scenario.algorithms is None and _leaves_wavelengths(scenario, result.rows[-1]):
                cases.insert(done, (machine, f"{name}{STRIPED}", None, sizes_bytes))
        except OpticollError as error:
            # Of several fabrics a named algorithm must run on one.
            several = len(scenario.fabrics) > 1 and _is_known(scenario.collective, algorithm)
            optional = scenario.algorithms is None or place is None or several
            if optional and isinstance(error, AlgorithmError | SimulationError):
                if name.endswith(STRIPED):
                    continue
                result.refusals.append(Refusal(name, machine.spec, str(error)))
                refused.add((name, machine.spec))
                continue
            error.field = _field_at_fault(error, place)
            raise
    for algorithm in scenario.algorithms or ():
        _check_ran(scenario.collective, algorithm, result)
    if not result.rows:
        raise UsageError(
            f"no algorithm of {scenario.collective} runs here: {result.refusals[0].reason}"
        )
    return result


STRIPED = ":stripes=all"


def _leaves_wavelengths(scenario: Scenario, row: Row) -> bool:
    """Whether a plan by default options leaves half of a ring's wavelengths or more."""
    if row["wavelengths"] is None or row["wavelengths_used"] is None or ":" in row["algorithm"]:
        return False
    free = 2 * row["wavelengths_used"] <= row["wavelengths"]
    return free and scenario.wavelength == "auto" and Fabric(row["fabric"]).ring


def _check_ran(kind: str, algorithm: str | UserAlgorithm, result: Comparison) -> None:
    """Refuse an algorithm that was named and ran on none of several fabrics."""
    named = _named(kind, algorithm)
    name = named if isinstance(named, str) else user_algorithm.name_of(named)
    refusals = [one for one in result.refusals if one.algorithm == name]
    if refusals and not any(row["algorithm"] == name for row in result.rows):
        raise AlgorithmError(f"`{name}` runs on none of these fabrics: {refusals[0].reason}")


def settings_on(fabric: Fabric, fabrics: Sequence[Fabric], settings: Settings) -> Settings:
    """The settings for one of several fabrics: without those that only others' simulators know.

    >>> ring, switch = Fabric("wdm_ring:ranks=4,wavelengths=1"), Fabric("crossbar:ranks=4")
    >>> settings_on(switch, [ring, switch], {"policy": "free", "start": "step"})
    {'start': 'step'}
    """
    if settings.get("simulator") is not None:
        return settings
    known = {
        record["name"]: [one["meaning"] for one in record["options"] if one["name"] == "simulator"]
        for record in registry.records("settings")
    }
    others = {one.simulator for one in fabrics if one.simulator != fabric.simulator}
    return given(
        {
            name: value
            for name, value in settings.items()
            if fabric.simulator in known[name] or others.isdisjoint(known[name])
        }
    )


def _rows(
    scenario: Scenario,
    ring: Fabric,
    algorithm: str | UserAlgorithm,
    sizes_bytes: list[int],
    progress: Progress | None,
) -> Iterator[Row]:
    """One plan, verified once and simulated for each size."""
    settings = settings_on(ring, scenario.fabrics, scenario.settings)
    plan = opticoll.plan(
        scenario.collective,
        ring,
        algorithm,
        size=sizes_bytes[0],
        root=scenario.root,
        wavelength=scenario.wavelength if algorithm != registry.DEFAULT_ALGORITHM else "auto",
        **settings,
    )
    violations = plan.verify()
    for size_bytes in sizes_bytes:
        watch = None if progress is None else _watch(plan, settings, size_bytes, progress)
        outcome = plan.simulate(size_bytes, watch=watch, **settings)
        yield measure(plan, violations, outcome, size_bytes)


def _watch(
    plan: Plan, settings: Settings, size_bytes: int, progress: Progress
) -> Callable[[int, int, int], None] | None:
    """Says how many messages a packet simulation has delivered; None for other simulators."""
    if registry.canonical(settings.get("simulator") or "", ["packet"]) is None:
        return None
    messages, _, _ = plan.expected_packets(size_bytes, **settings)
    label = f"{plan.algorithm}, {format_size(size_bytes)}: messages delivered"
    return lambda _events, delivered, _time_ps: progress(label, delivered, messages)


def _planned_together(algorithm: str | UserAlgorithm, sizes_bytes: list[int]) -> list[list[int]]:
    """Sizes that share a plan: all, but for what plans by size."""
    alone = isinstance(algorithm, str) and registry.plans_by_size(algorithm)
    return [[size] for size in sizes_bytes] if alone else [sizes_bytes]


def _machines(
    fabric: Fabric, ranks: Iterable[int] | None, wavelengths: Iterable[int] | None
) -> Iterator[Fabric]:
    """The fabric with every number of ranks and every number of wavelengths."""
    for place, count in enumerate([None] if ranks is None else ranks):
        resized = fabric if count is None else _changed(fabric, "ranks", count, place)
        if wavelengths is None:
            yield resized
            continue
        for column, channels in enumerate(wavelengths):
            yield _changed(resized, "wavelengths", channels, column)


def _changed(fabric: Fabric, option: str, count: int, place: int) -> Fabric:
    try:
        return fabric.with_options(**{option: count})
    except OpticollError as error:
        error.field = (option, place)
        raise


def _algorithms(
    kind: str, algorithms: Iterable[str | UserAlgorithm] | None, family: str
) -> dict[str | UserAlgorithm, int | None]:
    """The algorithms and `auto`, each once, with the place at which they were first given."""
    if algorithms is None:
        algorithms = registry.algorithm_names(kind, family)
    chosen: dict[str | UserAlgorithm, int | None] = {}
    for place, algorithm in enumerate(algorithms):
        try:
            chosen.setdefault(_named(kind, algorithm), place)
        except OpticollError as error:
            error.field = ("algorithms", place)
            raise
    chosen.setdefault(registry.DEFAULT_ALGORITHM, None)
    return chosen


def _named(kind: str, algorithm: str | UserAlgorithm) -> str | UserAlgorithm:
    if not isinstance(algorithm, str) or user_algorithm.is_user_algorithm(algorithm):
        return algorithm
    return registry.algorithm_spelling(kind, algorithm)


def _is_known(kind: str, algorithm: str | UserAlgorithm) -> bool:
    """Whether an algorithm is a user's own or has a record."""
    if not isinstance(algorithm, str) or user_algorithm.is_user_algorithm(algorithm):
        return True
    return algorithm.partition(":")[0] in registry.algorithm_names(kind)


def _field_at_fault(error: OpticollError, place: int | None) -> tuple[str | int, ...]:
    """The field of a scenario that an error of planning or simulating is about, if it is one."""
    setting = getattr(error, "setting", None)
    if setting is not None:
        return (setting,)
    kinds: list[tuple[type[OpticollError], tuple[str | int, ...]]] = [
        (WavelengthError, ("wavelength",)),
        (CollectiveError, ("root",)),
        *(
            (kind, ("algorithms", place))
            for kind in (AlgorithmError, UserAlgorithmError, ScheduleError)
            if place is not None
        ),
    ]
    return next((field for kind, field in kinds if isinstance(error, kind)), ())
