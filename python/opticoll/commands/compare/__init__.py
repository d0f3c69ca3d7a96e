"""Command `compare`: several algorithms on the same fabrics and sizes, with the same settings.

A plan is built and verified once per algorithm, number of ranks and number of wavelengths, and
simulated for every size.

>>> import opticoll
>>> rows = opticoll.compare("all_gather", "wdm_ring:ranks=16,wavelengths=2", "ring,optree:k=2").rows
>>> [(row.algorithm, row.steps, row.verified) for row in rows]
[('ring', 15, True), ('optree:k=2', 12, True), ('auto', 8, True)]
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import opticoll
from opticoll import _core
from opticoll._core import Demand, Fabric, OpticollError, Plan, format_size
from opticoll.cli.arguments import FileSource, PartOptions, obtain, settings_on
from opticoll.cli.command_line import words
from opticoll.cli.option_types import argument, option
from opticoll.cli.options import (
    FURTHER,
    METHOD,
    ComponentsOption,
    DemandOption,
    FabricsOption,
    RootOption,
    SizeOption,
    SwitchOption,
    WavelengthOption,
)
from opticoll.cli.runner import Command, bom_file, figure_file, on_command_line, rows_file
from opticoll.commands.compare.table import comparison_table, energy_table, reconfiguration_table
from opticoll.errors import (
    AlgorithmError,
    CollectiveError,
    ScheduleError,
    SimulationError,
    UsageError,
    UserAlgorithmError,
    WavelengthError,
)
from opticoll.formats.document import is_yaml
from opticoll.inputs import demands, imported, user_function
from opticoll.inputs.demands import DEFAULT_SIZE
from opticoll.inputs.fabric_files import need_fabrics
from opticoll.inputs.imported import is_plan_file
from opticoll.inputs.request import check_assignment, check_root
from opticoll.inputs.scenarios import Scenario, read_scenario, to_scenario
from opticoll.inputs.settings import Settings, set_settings
from opticoll.inputs.user_algorithm import UserAlgorithm, is_user_algorithm
from opticoll.inputs.values import split_algorithms, split_counts, split_sizes, split_times
from opticoll.names import (
    DEFAULT_ALGORITHM,
    algorithm_names,
    algorithm_spelling,
    has_root,
    plans_by_size,
    takes_all_stripes,
)
from opticoll.outputs import break_even
from opticoll.outputs.layout import human_time, plural
from opticoll.outputs.plan_row import PlanRow, measured
from opticoll.outputs.rows import arrow_stream, dataframe, plain
from opticoll.outputs.verification import Refuted
from opticoll.outputs.watch import Watch

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes

STRIPED = ":stripes=all"

NOT_OF_SCENARIO = (
    *("source", "fabric", "size", "method", "no_auto", "energy", "components", "switch"),
)
"""Options that are no fields of a scenario."""


@dataclass(frozen=True, kw_only=True)
class Compare(PartOptions):
    """Parameters of `opticoll compare`, as text; None if an option was not given."""

    source: str = argument("Collective such as all_gather, or a scenario.yaml")
    fabric: FabricsOption = None
    algorithms: str | None = option(
        "Algorithms to compare with auto, such as ring,optree:k=5, and files of plans, such as "
        "mine.plan (default: all that the fabric supports)",
        name=["--algorithms", "--algorithm"],
    )
    no_auto: bool = option(
        "Only the named algorithms, without auto", default=False, name="--no-auto"
    )
    size: SizeOption = None
    sizes: str | None = option(
        "Sizes, such as 1KiB,4MiB; 1KiB..1GiB stands for 1KiB, 4KiB, ..., 1GiB (default: --size)",
        allow_leading_hyphen=True,
    )
    ranks: str | None = option("Ranks, such as 512,1024 (default: the fabric's)")
    wavelengths: str | None = option("Wavelengths per fibre: 32,64 (default: the fabric's)")
    reconfiguration: str | None = option(
        "Reconfiguration times, such as 10ns,1us or 10ns..10ms (default: the fabric's)"
    )
    method: Any = METHOD
    wavelength: WavelengthOption = None
    root: RootOption = None
    demand: DemandOption = None
    energy: bool = option(
        "Table of the energy of each plan", default=False, name="--energy", group=FURTHER
    )
    components: ComponentsOption = None
    switch: SwitchOption = None


@dataclass(frozen=True)
class Refusal:
    """Algorithm that does not support a fabric, with the reason."""

    algorithm: str
    fabric: str
    reason: str


@dataclass(frozen=True, repr=False)
class Comparison:
    """Rows, ordered by fabric, ranks, wavelengths, algorithm and size, with the refusals."""

    rows: list[PlanRow] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)

    def plot(
        self, path: str | PathLike[str] | None = None, *, ax: "Axes | None" = None
    ) -> list[Path]:
        """Draws the times over the sizes, or over other values, to a file or matplotlib axes.

        Returns the paths of the files; many panels are divided among several files.

        Raises
        ------
        PlotError
            The suffix is unknown, the rows cannot be compared, or the figure needs several panels
            but `ax` is only one.
        """
        from opticoll import plot

        return plot.comparison(self.rows, path if ax is None else ax)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return arrow_stream([plain(row) for row in self.rows], requested_schema)

    def to_pandas(self) -> "pandas.DataFrame":
        """Returns the rows as a pandas DataFrame with a column per field.

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


def compute(parameters: Compare, watch: Watch) -> Iterator[PlanRow]:
    """Compares the algorithms that a command line or a scenario file names.

    Raises
    ------
    OpticollError
        Any reason that `opticoll.compare` lists. An error in a scenario file contains the file, the
        line and the field.
    """
    scenario = _scenario(parameters)
    refusals: list[Refusal] = []
    try:
        yield from compare(scenario, refusals, watch)
    except OpticollError as error:
        raise scenario.located(error) from error
    watch.notes += dict.fromkeys(_left_out(refusal) for refusal in refusals)


def _scenario(options: Compare) -> Scenario:
    """Returns the scenario of a file or of a collective; options replace values of the file."""
    if options.size is not None and options.sizes is not None:
        raise UsageError("--size and --sizes are both given; give one of them")
    check_assignment(
        options.wavelength, f"numbers of them are given as --wavelengths {options.wavelength}"
    )
    if is_yaml(options.source):
        scenario = read_scenario(options.source)
        if options.fabric is not None:
            scenario = replace(scenario, fabrics=need_fabrics(options.fabric))
    else:
        ranks = None
        if options.ranks is not None:
            ranks = split_counts("--ranks", options.ranks)
        stated = options.fabric or _fabrics_of_plans(options.algorithms)
        fabrics = stated if ranks and options.fabric else need_fabrics(stated)
        scenario = to_scenario(options.source, fabrics, sizes=DEFAULT_SIZE, ranks=ranks)
    convert: dict[str, Callable[[str], Any]] = {
        "algorithms": split_algorithms,
        "sizes": split_sizes,
        "ranks": lambda text: split_counts("--ranks", text),
        "wavelengths": lambda text: split_counts("--wavelengths", text),
        "reconfiguration": split_times,
    }
    named = {**vars(options), "sizes": options.sizes or options.size}
    fields = {
        key: convert[key](value) if key in convert else value
        for key, value in named.items()
        if value is not None and key not in NOT_OF_SCENARIO
    }
    if options.no_auto:
        fields["auto"] = False
    check_root(scenario.collective, options.root)
    if options.demand is not None and "sizes" not in fields:
        _, own_size = demands.to_demand(options.demand, scenario.fabrics[0].ranks)
        fields["sizes"] = scenario.sizes if own_size is None else [own_size]
    settings = set_settings(vars(options.method))
    overridden = frozenset([*fields, *settings])
    together: Settings = {**scenario.settings, **settings}
    return replace(scenario, **fields, settings=together, overridden=overridden)


def _fabrics_of_plans(algorithms: str | None) -> list[Fabric] | None:
    """Returns the fabrics of the plan files among algorithms, or None if there are no files."""
    names = [] if algorithms is None else split_algorithms(algorithms)
    return [imported.read_plan(name)[0].fabric for name in names if is_plan_file(name)] or None


def compare(scenario: Scenario, refusals: list[Refusal], watch: Watch) -> Iterator[PlanRow]:
    """Plans, verifies and simulates each algorithm for every size on every fabric.

    `auto` is added unless the scenario excludes it. A named algorithm must support the fabric; with
    several fabrics, it must support at least one of them. Without named algorithms, all algorithms
    of the collective are tried. A plan in a file is placed on the fabric. On a WDM ring, algorithms
    that leave wavelengths unused are also tried with striping over these wavelengths. Algorithms
    that do not support a fabric are appended to `refusals`. Each fabric uses only the settings that
    its simulator has.

    Raises
    ------
    OpticollError
        A name is unknown, or a named algorithm does not support the fabric. The error's attribute
        `field` is the path to the wrong field, such as `("algorithms", 2)`, or an empty path.
    UsageError
        No algorithm remains to compare.
    """
    if scenario.algorithms == [] or not scenario.sizes or not scenario.fabrics:
        raise UsageError("nothing to compare: give at least one algorithm, size and fabric")
    cases = [
        (machine, algorithm, place, together)
        for fabric in scenario.fabrics
        for machine in _machines(fabric, scenario)
        for algorithm, place in _algorithms(scenario, fabric).items()
        for together in _planned_together(algorithm, scenario.sizes)
    ]
    if not cases:
        raise UsageError(
            "nothing to compare: --no-auto removes auto, and no other algorithm is named"
        )
    rows: list[PlanRow] = []
    refused: set[tuple[str, str]] = set()
    done = 0
    while done < len(cases):
        machine, algorithm, place, sizes_bytes = cases[done]
        done += 1
        name = algorithm if isinstance(algorithm, str) else user_function.name_of(algorithm)
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
            # With several fabrics, a named algorithm must support at least one of them.
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
    if scenario.reconfiguration is not None:
        yield from break_even.refined(rows, partial(_rows_at, scenario, watch))


def _rows_at(
    scenario: Scenario, watch: Watch, fabric: str, size_bytes: int, algorithms: Sequence[str]
) -> Iterator[PlanRow]:
    """Yields the rows of `fabric`, which has a further reconfiguration time."""
    machine = Fabric(fabric)
    at = machine.options["reconfiguration"]["value"]
    label = f"break-even of {format_size(size_bytes)}: {human_time(int(at))} to reconfigure"
    for number, algorithm in enumerate(algorithms):
        watch.update(label, number, len(algorithms))
        yield from _rows(scenario, machine, algorithm, [size_bytes], watch)


def _leaves_wavelengths(scenario: Scenario, row: PlanRow) -> bool:
    """Returns whether an algorithm without options uses at most half of the wavelengths."""
    used, available = row.wavelengths_used or 0, row.wavelengths or 0
    return _may_stripe(scenario, row) and 2 * used <= available


def _may_stripe(scenario: Scenario, row: PlanRow) -> bool:
    """Returns whether an algorithm without options could be striped over further wavelengths."""
    if row.wavelengths is None or row.wavelengths_used is None:
        return False
    if not takes_all_stripes(row.algorithm):
        return False
    return scenario.wavelength == "auto" and "direction" in Fabric(row.fabric).light_fields


def _unstriped(scenario: Scenario, row: PlanRow) -> list[Refusal]:
    """Returns a list with the refusal to stripe a plan over further wavelengths.

    The list is empty unless less than half of the wavelengths are unused.
    """
    used, available = row.wavelengths_used, row.wavelengths
    if not _may_stripe(scenario, row) or used == available or row.chosen != row.algorithm:
        return []
    reason = f"the plan without stripes uses {used} of {available} wavelengths, more than half"
    return [Refusal(f"{row.algorithm}{STRIPED}", row.fabric, reason)]


def _check_ran(
    kind: str, algorithm: str | UserAlgorithm, rows: list[PlanRow], refusals: list[Refusal]
) -> None:
    """Raises an error for a named algorithm that none of several fabrics supports."""
    named = _named(kind, algorithm)
    name = named if isinstance(named, str) else user_function.name_of(named)
    reasons = [refusal for refusal in refusals if refusal.algorithm == name]
    if reasons and not any(row.algorithm == name for row in rows):
        raise AlgorithmError(f"`{name}` runs on none of these fabrics: {reasons[0].reason}")


def _rows(
    scenario: Scenario,
    ring: Fabric,
    algorithm: str | UserAlgorithm,
    sizes_bytes: list[int],
    watch: Watch,
) -> Iterator[PlanRow]:
    """Verifies one plan, simulates it for each size, and yields the rows."""
    settings = settings_on(ring, scenario.fabrics, scenario.settings)
    demand = None
    if scenario.demand is not None:
        full_demand, _ = demands.to_demand(scenario.demand, ring.ranks)
        stated = [
            demands.checked_demand(scenario.collective, full_demand, ring.ranks, size_bytes)
            for size_bytes in sizes_bytes
        ]
        demand, sizes_bytes = stated[0][0], [size_bytes for _, size_bytes in stated]
    file = algorithm if isinstance(algorithm, str) and is_plan_file(algorithm) else None
    if file is None:
        plan = opticoll.plan(
            scenario.collective,
            ring,
            algorithm,
            size=sizes_bytes[0],
            root=scenario.root,
            demand=demand,
            wavelength=scenario.wavelength if algorithm != DEFAULT_ALGORITHM else "auto",
            **settings,
        )
    else:
        plan = _plan_in(file, scenario, ring, demand, watch)
    violations = plan.verify()
    if file is not None and violations:
        raise _unfit(file, violations[0].sentence)
    for size_bytes in sizes_bytes:
        row, _ = measured(plan, violations, size_bytes, settings, watch)
        if file is not None:
            options = {"fabric": ring.spec, "size": f"{size_bytes}B", **settings}
            row = replace(row, algorithm=file, command=words("simulate", [file], options))
        elif isinstance(algorithm, str):
            row = replace(row, command=_command(scenario, plan, size_bytes, settings))
        yield row


def _plan_in(
    file: str, scenario: Scenario, fabric: Fabric, demand: Demand | None, watch: Watch
) -> Plan:
    """Reads a plan from a file as `opticoll simulate FILE --fabric` does.

    Raises
    ------
    AlgorithmError
        The plan is one of another collective, root or demand, or does not fit the fabric.
    """
    try:
        plan = obtain(FileSource(source=file, fabric=fabric.spec), None, watch)
    except Refuted:
        raise
    except UsageError as error:
        raise _unfit(file, str(error)) from error
    held, has_no_root = plan.collective, not has_root(scenario.collective)
    for what, own, asked in (
        ("the collective", held.kind, scenario.collective),
        ("the root", held.root, held.root if has_no_root else scenario.root),
        ("the demand", held.demand, demand),
    ):
        if own != asked:
            raise _unfit(file, f"{what} of the plan is {own}, not {asked}")
    return plan


def _unfit(file: str, reason: str) -> AlgorithmError:
    error = AlgorithmError(f"`{file}` does not fit: {reason}")
    # The hint lists opticoll's algorithms, which does not help with a file.
    vars(error)["hint"] = None
    return error


def _command(scenario: Scenario, plan: Plan, size_bytes: int, settings: Settings) -> str:
    """Returns the command line that computes a single row."""
    auto = plan.asked == DEFAULT_ALGORITHM
    named = plan.collective.demand is not None and isinstance(scenario.demand, str)
    demand = scenario.demand if named else None
    options = {
        "fabric": plan.fabric.spec,
        "algorithm": plan.asked,
        "size": f"{size_bytes}B",
        "root": scenario.root or None,
        "demand": demand,
        "wavelength": None if auto or scenario.wavelength == "auto" else scenario.wavelength,
    }
    return words("plan", [scenario.collective], {**options, **settings})


def _planned_together(algorithm: str | UserAlgorithm, sizes_bytes: list[int]) -> list[list[int]]:
    """Groups sizes that share a plan: all sizes, unless the algorithm plans for each size."""
    alone = isinstance(algorithm, str) and plans_by_size(algorithm)
    return [[size] for size in sizes_bytes] if alone else [sizes_bytes]


def _machines(fabric: Fabric, scenario: Scenario) -> Iterator[Fabric]:
    """Yields the fabric with each combination of ranks, wavelengths and reconfiguration times."""
    machines = [fabric]
    for name in ("ranks", "wavelengths", "reconfiguration"):
        values = getattr(scenario, name)
        if values is not None:
            machines = [
                _changed(machine, name, value, place)
                for machine in machines
                for place, value in enumerate(values)
            ]
    yield from machines


def _changed(fabric: Fabric, option: str, value: int | str, place: int) -> Fabric:
    try:
        return fabric.with_options(**{option: value})
    except OpticollError as error:
        error.field = (option, place)
        raise


def _algorithms(scenario: Scenario, fabric: Fabric) -> dict[str | UserAlgorithm, int | None]:
    """Returns the algorithms to compare, with `auto`, as keys.

    The value is the algorithm's first index in the scenario's list; None if `auto` was added.
    """
    kind, algorithms = scenario.collective, scenario.algorithms
    if algorithms is None:
        names = algorithm_names(kind, fabric.family)
        algorithms = [name for name in names if _core.plans_for(kind, name, fabric)]
    chosen: dict[str | UserAlgorithm, int | None] = {}
    for place, algorithm in enumerate(algorithms):
        try:
            chosen.setdefault(_named(kind, algorithm), place)
        except OpticollError as error:
            error.field = ("algorithms", place)
            raise
    if scenario.auto:
        chosen.setdefault(DEFAULT_ALGORITHM, None)
    else:
        chosen.pop(DEFAULT_ALGORITHM, None)
    return chosen


def _named(kind: str, algorithm: str | UserAlgorithm) -> str | UserAlgorithm:
    if not isinstance(algorithm, str) or is_user_algorithm(algorithm):
        return algorithm
    if is_plan_file(algorithm):
        return algorithm
    return algorithm_spelling(kind, algorithm)


def _is_known(kind: str, algorithm: str | UserAlgorithm) -> bool:
    """Returns whether an algorithm has a record, or is a user's function or the file of a plan."""
    if not isinstance(algorithm, str) or is_user_algorithm(algorithm):
        return True
    if "<" in algorithm or is_plan_file(algorithm):
        return True
    return algorithm.partition(":")[0] in algorithm_names(kind)


def _field_at_fault(error: OpticollError, place: int | None) -> tuple[str | int, ...]:
    """Returns the path to the scenario's field that caused an error, or an empty path."""
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


def _text(parameters: Any, rows: list[PlanRow]) -> str:
    """Returns a table per fabric and size.

    Rows with several reconfiguration times share a table.
    """
    of_times, others = break_even.apart(rows)
    tables = [reconfiguration_table(rows_of_fabric) for rows_of_fabric in of_times]
    differ = parameters.demand is not None and any("--demand" in str(row.command) for row in rows)
    demanded = f"\nblocks as demanded: {parameters.demand}" if differ else ""
    tables += [comparison_table(others)] if others else []
    tables += [energy_table(rows)] if parameters.energy else []
    return "\n\n".join(tables) + demanded


def _left_out(refusal: Refusal) -> str:
    """Returns a note on an algorithm that was left out, and the reason."""
    name = f"`{refusal.algorithm}`"
    named = refusal.reason.startswith(f"{name} ")
    return f"left out: {refusal.reason}" if named else f"left out: {name}: {refusal.reason}"


def _draw(parameters: Any, rows: list[PlanRow], path: Path) -> list[Path]:
    """Draws the rows, and returns the paths of the figures."""
    from opticoll import plot

    return plot.comparison(rows, path)


COMMAND = Command(
    name="compare",
    example="opticoll compare all_gather --fabric optree_paper",
    parameters=Compare,
    rows=PlanRow,
    compute=compute,
    text=_text,
    progress_label="comparing",
    files=(rows_file(), figure_file(_draw), bom_file()),
)
command_line = on_command_line(COMMAND)
