"""Algorithms compared on the same fabrics and sizes, under one policy and one simulator.

A plan is built and verified once for each algorithm, number of ranks and number of wavelengths,
and simulated for every size.

>>> import opticoll
>>> rows = opticoll.compare("all_gather", "wdm_ring:ranks=16,wavelengths=2", "ring,optree:k=2").rows
>>> [(row.algorithm, row.steps, row.verified) for row in rows]
[('ring', 15, True), ('optree:k=2', 12, True), ('auto', 8, True)]
"""

# Not `from __future__ import annotations`: cyclopts reads the types of a dataclass at run time.

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

import opticoll
from opticoll import _core, config, registry, user_algorithm
from opticoll._core import Fabric, OpticollError, Plan, format_size
from opticoll.arguments import (
    DEFAULT_SIZE,
    PartOptions,
    check_root,
    check_rule,
    need_fabrics,
    settings_on,
)
from opticoll.command_line import words
from opticoll.config import Scenario
from opticoll.errors import (
    AlgorithmError,
    CollectiveError,
    ScheduleError,
    SimulationError,
    UsageError,
    UserAlgorithmError,
    WavelengthError,
)
from opticoll.layout import (
    PICOSECONDS,
    align,
    format_rate,
    human_time,
    plural,
    size_names,
)
from opticoll.options import (
    NO_METHOD,
    FabricsOption,
    MethodOption,
    RootOption,
    SizeOption,
    WavelengthOption,
)
from opticoll.plan_row import PlanRow, capacity_lines, different_ranks, plan_row, rule
from opticoll.proof import verdict
from opticoll.rows import dataframe, plain
from opticoll.runner import Command, Watch, figure_file, on_command_line, rows_file
from opticoll.settings import Settings, given
from opticoll.user_algorithm import UserAlgorithm

if TYPE_CHECKING:
    import pandas

STRIPED = ":stripes=all"


@dataclass(frozen=True, kw_only=True)
class Compare(PartOptions):
    """What `opticoll compare` takes, as text; None where it was not given."""

    source: Annotated[str, Parameter(help="Collective such as all_gather, or a scenario.yaml")] = (
        field(kw_only=False)
    )
    fabric: FabricsOption = None
    algorithms: Annotated[
        str | None,
        Parameter(
            name=["--algorithms", "--algorithm"],
            help="Algorithms compared with auto, such as ring,optree:k=5 (default: all that run "
            "on the fabric)",
        ),
    ] = None
    size: SizeOption = None
    sizes: Annotated[
        str | None,
        Parameter(
            help="Sizes, such as 1KiB,4MiB, or 1KiB..1GiB in steps of four, with the end "
            "(default: --size)",
            allow_leading_hyphen=True,
        ),
    ] = None
    ranks: Annotated[
        str | None, Parameter(help="Numbers of ranks, such as 512,1024 (default: the fabric's)")
    ] = None
    wavelengths: Annotated[
        str | None,
        Parameter(
            help="Numbers of wavelengths per fibre, such as 32,64,128 (default: the fabric's)"
        ),
    ] = None
    method: MethodOption = NO_METHOD
    wavelength: WavelengthOption = None
    root: RootOption = None


@dataclass(frozen=True)
class Refusal:
    """An algorithm that does not run on a fabric, and why."""

    algorithm: str
    fabric: str
    reason: str


@dataclass(frozen=True, repr=False)
class Comparison:
    """Rows in the order: fabric, ranks, wavelengths, algorithm, size; and who refused."""

    rows: list[PlanRow] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)

    def plot(self, path: str | PathLike[str]) -> list[Path]:
        """Draw the times over what varies; returns the files, several where there are many panels.

        Raises
        ------
        PlotError
            The suffix is unknown, or the rows do not compare.
        """
        from opticoll import plot

        return plot.comparison(self.rows, path)

    def to_pandas(self) -> "pandas.DataFrame":
        """The rows as a DataFrame of pandas, with a column for each field.

        Raises
        ------
        UsageError
            The package `pandas` is not installed.
        """
        return dataframe([plain(row) for row in self.rows])

    def __repr__(self) -> str:
        return f"<Comparison of {plural(len(self.rows), 'row')}>"

    def _repr_html_(self) -> str:
        from opticoll.notebook import rows_html

        return rows_html(self.rows)


def compute(asked: Compare, watch: Watch) -> Iterator[PlanRow]:
    """Compare what the command line asks for.

    Raises
    ------
    OpticollError
        As for `compare`; errors of a scenario name file, line and field.
    """
    scenario = _scenario(asked)
    refusals: list[Refusal] = []
    try:
        yield from compare(scenario, refusals, watch)
    except OpticollError as error:
        raise scenario.located(error) from error
    watch.notes += dict.fromkeys(_left_out(one) for one in refusals)


def _scenario(options: Compare) -> Scenario:
    """The comparison that a scenario file or a collective asks for; options win over the file."""
    if options.size is not None and options.sizes is not None:
        raise UsageError("--size and --sizes are both given; give one of them")
    check_rule(
        options.wavelength, f"numbers of them are given as --wavelengths {options.wavelength}"
    )
    if config.is_yaml(options.source):
        scenario = config.read_scenario(options.source)
        if options.fabric is not None:
            scenario = replace(scenario, fabrics=need_fabrics(options.fabric))
    else:
        ranks = None
        if options.ranks is not None:
            ranks = config.split_counts("--ranks", options.ranks)
        fabrics = options.fabric if ranks and options.fabric else need_fabrics(options.fabric)
        scenario = config.to_scenario(options.source, fabrics, sizes=DEFAULT_SIZE, ranks=ranks)
    convert: dict[str, Callable[[str], Any]] = {
        "algorithms": config.split_algorithms,
        "sizes": config.split_sizes,
        "ranks": lambda text: config.split_counts("--ranks", text),
        "wavelengths": lambda text: config.split_counts("--wavelengths", text),
    }
    named = {**vars(options), "sizes": options.sizes or options.size}
    fields = {
        key: convert[key](value) if key in convert else value
        for key, value in named.items()
        if value is not None and key not in ("source", "fabric", "size", "method")
    }
    check_root(scenario.collective, options.root)
    settings = given(vars(options.method))
    overridden = frozenset([*fields, *settings])
    together: Settings = {**scenario.settings, **settings}
    return replace(scenario, **fields, settings=together, overridden=overridden)


def compare(scenario: Scenario, refusals: list[Refusal], watch: Watch) -> Iterator[PlanRow]:
    """Plan, verify and simulate each algorithm for every size on every fabric.

    `auto` is always taken. Without `algorithms` so are all of the collective, on a ring of
    wavelengths also striped over the wavelengths that they leave unused, and those that do not run
    on a fabric are added to the refusals; an algorithm that is named must run, and runs once if it
    is named twice. Of several fabrics each has the settings that its simulator knows.

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
            scenario.collective, scenario.algorithms, fabric
        ).items()
        for together in _planned_together(algorithm, scenario.sizes)
    ]
    rows: list[PlanRow] = []
    refused: set[tuple[str, str]] = set()
    done = 0
    while done < len(cases):
        machine, algorithm, place, sizes_bytes = cases[done]
        done += 1
        name = algorithm if isinstance(algorithm, str) else user_algorithm.name_of(algorithm)
        if (name, machine.spec) in refused:
            continue
        sized = "" if len(sizes_bytes) > 1 else f", {format_size(sizes_bytes[0])}"
        watch.update(f"{name} on {machine.ranks} ranks{sized}", done - 1, len(cases))
        try:
            for row in _rows(scenario, machine, algorithm, sizes_bytes, watch):
                rows.append(row)
                yield row
            if scenario.algorithms is None and _leaves_wavelengths(scenario, rows[-1]):
                cases.insert(done, (machine, f"{name}{STRIPED}", None, sizes_bytes))
            elif scenario.algorithms is None and place is not None:
                refusals += _unstriped(scenario, rows[-1])
        except OpticollError as error:
            # Of several fabrics a named algorithm must run on one.
            several = len(scenario.fabrics) > 1 and _is_known(scenario.collective, algorithm)
            optional = scenario.algorithms is None or place is None or several
            if optional and isinstance(error, AlgorithmError | SimulationError):
                refusals.append(Refusal(name, machine.spec, str(error)))
                refused.add((name, machine.spec))
                continue
            error.field = _field_at_fault(error, place)
            raise
    for algorithm in scenario.algorithms or ():
        _check_ran(scenario.collective, algorithm, rows, refusals)
    if not rows:
        raise UsageError(f"no algorithm of {scenario.collective} runs here: {refusals[0].reason}")


def _leaves_wavelengths(scenario: Scenario, row: PlanRow) -> bool:
    """Whether a plan by default options leaves half of a ring's wavelengths or more."""
    used, known = row.wavelengths_used or 0, row.wavelengths or 0
    return _may_stripe(scenario, row) and 2 * used <= known


def _may_stripe(scenario: Scenario, row: PlanRow) -> bool:
    """Whether a plan is by default options, on a ring whose wavelengths are chosen freely."""
    if row.wavelengths is None or row.wavelengths_used is None:
        return False
    if not registry.takes_all_stripes(row.algorithm):
        return False
    return scenario.wavelength == "auto" and "direction" in Fabric(row.fabric).light_fields


def _unstriped(scenario: Scenario, row: PlanRow) -> list[Refusal]:
    """The refusal of a tree that leaves wavelengths, but too few to be striped over them."""
    used, known = row.wavelengths_used, row.wavelengths
    if not _may_stripe(scenario, row) or used == known or row.chosen != row.algorithm:
        return []
    reason = f"the plan without stripes uses {used} of {known} wavelengths, more than half"
    return [Refusal(f"{row.algorithm}{STRIPED}", row.fabric, reason)]


def _check_ran(
    kind: str, algorithm: str | UserAlgorithm, rows: list[PlanRow], refusals: list[Refusal]
) -> None:
    """Refuse an algorithm that was named and ran on none of several fabrics."""
    named = _named(kind, algorithm)
    name = named if isinstance(named, str) else user_algorithm.name_of(named)
    own = [one for one in refusals if one.algorithm == name]
    if own and not any(row.algorithm == name for row in rows):
        raise AlgorithmError(f"`{name}` runs on none of these fabrics: {own[0].reason}")


def _rows(
    scenario: Scenario,
    ring: Fabric,
    algorithm: str | UserAlgorithm,
    sizes_bytes: list[int],
    watch: Watch,
) -> Iterator[PlanRow]:
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
        progress = _progress(plan, settings, size_bytes, watch)
        outcome = plan.simulate(size_bytes, watch=progress, **settings)
        row = plan_row(plan, violations, outcome, size_bytes)
        if isinstance(algorithm, str):
            row = replace(row, command=_command(scenario, plan, size_bytes, settings))
        yield row


def _command(scenario: Scenario, plan: Plan, size_bytes: int, settings: Settings) -> str:
    """The command line that computes a row alone."""
    auto = plan.asked == registry.DEFAULT_ALGORITHM
    options = {
        "fabric": plan.fabric.spec,
        "algorithm": plan.asked,
        "size": f"{size_bytes}B",
        "root": scenario.root or None,
        "wavelength": None if auto or scenario.wavelength == "auto" else scenario.wavelength,
    }
    return words("plan", [scenario.collective], {**options, **settings})


def _progress(
    plan: Plan, settings: Settings, size_bytes: int, watch: Watch
) -> Callable[[int, int, int], None] | None:
    """Says how many messages a packet simulation has delivered; None for other simulators."""
    if registry.canonical(settings.get("simulator") or "", ["packet"]) is None:
        return None
    messages, _, _ = plan.expected_packets(size_bytes, **settings)
    label = f"{plan.algorithm}, {format_size(size_bytes)}: messages delivered"
    return lambda _events, delivered, _time_ps: watch.update(label, delivered, messages)


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
    kind: str, algorithms: Iterable[str | UserAlgorithm] | None, fabric: Fabric
) -> dict[str | UserAlgorithm, int | None]:
    """The algorithms and `auto`, each once, with the place at which they were first given."""
    if algorithms is None:
        names = registry.algorithm_names(kind, fabric.family)
        algorithms = [name for name in names if _core.plans_for(kind, name, fabric)]
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


def _text(asked: Any, rows: list[PlanRow]) -> str:
    return comparison_table(rows)


def comparison_table(rows: Sequence[PlanRow]) -> str:
    """A table for each fabric and size, the ratio to its fastest algorithm beside each time.

    Where a size is compared on several fabrics, a table of the fastest algorithm of each follows.
    """
    tables = []
    sizes = size_names(row.size_bytes for row in rows)
    for group in _groups(rows):
        first = group[0]
        # A plan that is wrong wins nothing.
        best = min((row.time_ps for row in group if row.verified), default=None)
        cells = [
            [
                row.algorithm,
                str(row.steps),
                "-" if row.claimed_steps is None else str(row.claimed_steps),
                str(row.wavelengths_used),
                str(row.configurations),
                human_time(row.time_ps),
                _ratio(row, best),
                "yes" if row.verified else verdict(row.violations),
            ]
            for row in group
        ]
        heading = [
            "algorithm",
            "steps",
            "paper",
            "wavelengths",
            "configurations",
            "time",
            "ratio",
            "verified",
        ]
        size = f"{sizes[first.size_bytes]} ({first.size_convention})"
        title = f"{first.collective} of {size} on {plural(first.ranks, 'rank')}"
        injected = f", {format_rate(first.injection_bandwidth)} per rank"
        if first.wavelengths is None:
            title += f" of {registry.fabric_text(first.fabric)}{injected}"
            kept = [0, 1, 5, 6, 7]
            cells = [
                [*(cell[index] for index in kept), row.bottleneck or "-"]
                for cell, row in zip(cells, group, strict=True)
            ]
            heading = [*(heading[index] for index in kept), "bottleneck"]
            tables.append(f"{title}\n{align(cells, heading, right=range(1, 4))}")
        else:
            title += f", {plural(first.wavelengths, 'wavelength')}{injected}"
            tables.append(f"{title}\n{align(cells, heading, right=range(1, 7))}")
        if first.bound_time_s is not None:
            bound = f"lower bound: {human_time(round(first.bound_time_s * PICOSECONDS))}"
            tables[-1] += f"\n{bound} ({registry.bound_words(first.bound_time_name)})"
        elif first.simulator == "closed_form":
            tables[-1] += f"\nlower bound: {first.bound_time_assumption}"
        for row in group:
            if row.chosen != row.algorithm:
                tables[-1] += f"\n{row.algorithm} chose {row.chosen}"
                if row.algorithm == registry.DEFAULT_ALGORITHM:
                    tables[-1] += _equals(row, group)
    tables += _fastest_by_fabric(rows)
    under = dict.fromkeys(line for row in rows for line in _conditions(row))
    return "\n\n".join([*tables, "\n".join(under)])


def _equals(auto: PlanRow, group: Sequence[PlanRow]) -> str:
    """Which rows hold the plan that `auto` chose, or one with its steps and its time."""
    others = [row for row in group if row is not auto and row.verified]
    own = [row.algorithm for row in others if row.chosen == auto.chosen]
    if auto.chosen in own:
        return ""
    if own:
        return f" (the plan of {', '.join(own)})"
    numbers = (auto.steps, auto.configurations, auto.time_ps)
    same = [
        row.algorithm for row in others if (row.steps, row.configurations, row.time_ps) == numbers
    ]
    return f" (the same steps and time as {', '.join(same)})" if same else ""


def _conditions(row: PlanRow) -> list[str]:
    """Under what a row was timed, and what the columns of its table mean."""
    conditions = f"{rule(row)}, simulator {row.simulator}"
    legend = "steps: time slots really used; paper: the number that the paper gives"
    if row.wavelengths is None:
        legend = "bottleneck: the link that bounds the critical path for the longest time"
        if row.simulator == "packet":
            legend = "bottleneck: the link that was sending for the longest time"
    columns = "per rank: the bandwidth that a rank can inject; ratio: the time over the least here"
    return [conditions, legend, columns]


def _fastest_by_fabric(rows: Sequence[PlanRow]) -> list[str]:
    """For each size that is compared on several fabrics, the fastest plan on each of them."""
    labels = registry.fabric_labels(row.fabric for row in rows)
    sizes: dict[int, dict[str, PlanRow]] = {}
    for row in rows:
        best = sizes.setdefault(row.size_bytes, {})
        known = best.get(row.fabric)
        if row.verified and (known is None or row.time_ps < known["time_ps"]):
            best[row.fabric] = row
    tables = []
    names = size_names(sizes)
    for size_bytes, best in sizes.items():
        group = list(best.values())
        if len(group) < 2:
            continue
        least = min(row.time_ps for row in group)
        sized = different_ranks(group)
        cells = [
            [
                labels[row.fabric],
                *([str(row.ranks)] if sized else []),
                format_rate(row.injection_bandwidth),
                row.chosen,
                human_time(row.time_ps),
                _ratio(row, least),
            ]
            for row in group
        ]
        size = f"{names[size_bytes]} ({group[0].size_convention})"
        heading = ["fabric", *(["ranks"] if sized else []), "per rank", "fastest", "time", "ratio"]
        table = align(cells, heading, right=(1, 2, 4, 5) if sized else (1, 3, 4))
        tables.append(
            f"{group[0]['collective']} of {size}, the fastest plan on each fabric\n{table}"
        )
        tables[-1] += "".join(f"\n{line}" for line in capacity_lines(group))
    return tables


def _ratio(row: PlanRow, best: int | None) -> str:
    """The time in multiples of the best, or `-` where there is no time to trust."""
    if best is None or not row.verified:
        return "-"
    return f"{row.time_ps / best:.2f}" if best else "1.00" if not row.time_ps else "-"


def _groups(rows: Sequence[PlanRow]) -> list[list[PlanRow]]:
    """Rows on the same fabric at the same size, in the order of first appearance."""
    groups: dict[tuple[str, int], list[PlanRow]] = {}
    for row in rows:
        groups.setdefault((row.fabric, row.size_bytes), []).append(row)
    return list(groups.values())


def _left_out(refusal: Refusal) -> str:
    """Why an algorithm is not among those compared; it is named once."""
    name = f"`{refusal.algorithm}`"
    named = refusal.reason.startswith(f"{name} ")
    return f"left out: {refusal.reason}" if named else f"left out: {name}: {refusal.reason}"


def _draw(asked: Any, rows: list[PlanRow], path: Path) -> list[Path]:
    """Draw rows; returns the files, of which there are several where there are many panels."""
    from opticoll import plot

    return plot.comparison(rows, path)


COMMAND = Command(
    name="compare",
    example="opticoll compare all_gather --fabric optree_paper",
    asks=Compare,
    gives=PlanRow,
    compute=compute,
    text=_text,
    doing="comparing",
    files=(rows_file(), figure_file(_draw)),
)
command_line = on_command_line(COMMAND)
