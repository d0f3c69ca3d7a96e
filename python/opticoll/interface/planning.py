"""Functions that make, measure, compare and repair plans, and that list names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from opticoll._core import Plan
from opticoll.interface.command import one, rows

if TYPE_CHECKING:
    from typing import Unpack

    from opticoll.commands.bound import BoundsRow
    from opticoll.commands.compare import Comparison
    from opticoll.commands.replan import ReplanRow
    from opticoll.commands.tasks import TaskRow
    from opticoll.inputs.demands import DemandLike
    from opticoll.inputs.fabric_files import FabricLike
    from opticoll.inputs.settings import Settings
    from opticoll.inputs.task_list import Task
    from opticoll.inputs.user_algorithm import UserAlgorithm
    from opticoll.outputs.plan_row import PlanRow
    from opticoll.outputs.records import RecordRow


def records(kind: str) -> list[RecordRow]:
    """Lists the records of a kind, such as algorithms or fabrics, as `opticoll list` does.

    Parameters
    ----------
    kind
        `algorithms`, `fabrics`, `presets`, `simulators`, `policies`, `start_rules`, `settings`,
        `collectives`, `wavelengths`, `models` or `devices`.

    Returns
    -------
    list of RecordRow
        One row per record, with its name, summary, source and options.

    Raises
    ------
    UsageError
        The kind is unknown.

    Examples
    --------
    >>> import opticoll
    >>> [record.name for record in opticoll.records("policies")][:4]
    ['every_step', 'on_change', 'per_port', 'free']
    """
    from opticoll.outputs.records import record_rows

    return record_rows(kind)


def plan(
    collective: str,
    fabric: FabricLike,
    algorithm: str | UserAlgorithm | None = None,
    *,
    size: str | int | None = None,
    root: int = 0,
    demand: DemandLike | None = None,
    wavelength: str = "auto",
    watch: Callable[[str], object] | None = None,
    **settings: Unpack[Settings],
) -> Plan:
    """Builds a schedule, and assigns each transfer a route, a wavelength and a slot.

    Parameters
    ----------
    collective
        The name of a collective, such as `all_gather`.
    fabric
        A fabric, its specification, such as `optree_paper:ranks=512`, its file (YAML, GraphML and
        others) as text or `Path`, or a NetworkX graph.
    algorithm
        A specification such as `optree:depth=5`, a user's Python function, or the text
        `module:function` (default: `auto`, the fastest plan found for the size and the settings).
    size
        Size for which `auto` makes the plan, in bytes or as text with a unit. The default is 4 MiB.
        With a demand in bytes, the default is the largest number of bytes that any rank sends. The
        plan stores the size for later simulations.
    root
        The root rank of a broadcast, reduce, gather or scatter.
    demand
        Bytes that each rank sends to each other rank in an all_to_all: a matrix with a row for each
        source, a CSV file, or the name of a generator such as `zipf:exponent=1.2,seed=0` (default:
        blocks of equal size for all pairs).
    wavelength
        Algorithm that assigns wavelengths, such as `first_fit`.
    watch
        Function that `auto` calls with each candidate's name before it plans the candidate.
    settings
        Options of the simulation, such as `policy="free"` or `start="step"` (see `opticoll list
        settings`). Only `auto` uses the settings and the size.

    Raises
    ------
    OpticollError
        A name is unknown, an option is out of range, or the fabric does not support the algorithm.

    Examples
    --------
    >>> import opticoll
    >>> ring = opticoll.Fabric("wdm_ring:ranks=16,wavelengths=2")
    >>> opticoll.plan("all_gather", ring, "optree:radices=4x4")
    <Plan of all_gather by optree:radices=4x4 on 16 ranks: 12 slots, 240 transfers>
    >>> opticoll.plan("all_gather", ring, size="1MiB").algorithm
    'ring_bidirectional:stripes=2'
    """
    from opticoll.inputs import request

    return request.read(
        collective,
        fabric,
        algorithm,
        size=size,
        root=root,
        demand=demand,
        wavelength=wavelength,
        settings=settings,
    ).plan(watch)


def measure(plan: Plan, size: str | int, **settings: Unpack[Settings]) -> PlanRow:
    """Verifies and simulates a plan; returns a row of the same kind as the rows of `compare`.

    Parameters
    ----------
    plan
        The plan to measure.
    size
        Size of the collective, in bytes or as text with a unit.
    settings
        The simulator and its settings, as for `Plan.simulate`.

    Returns
    -------
    PlanRow
        Slots, time, bounds, violations and the conditions; `help` lists the fields with units.

    Raises
    ------
    UnitError
        `size` is not a valid size.
    SimulationError
        A setting is unknown or does not apply to the plan.

    Examples
    --------
    >>> import opticoll
    >>> plan = opticoll.plan("all_gather", "wdm_ring:ranks=16,wavelengths=2", "ring")
    >>> row = opticoll.measure(plan, "4MiB", policy="free")
    >>> row.steps, row.time_s, row.bound_time_s, row.verified
    (15, 0.012582912, 0.003145728, True)
    """
    from opticoll.inputs.values import to_bytes
    from opticoll.outputs import plan_row

    size_bytes = to_bytes(size)
    return plan_row.measured(plan, plan.verify(), size_bytes, settings)[0]


def compare(
    collective: str,
    fabric: FabricLike | Iterable[FabricLike],
    algorithms: str | Iterable[str | UserAlgorithm] | None = None,
    *,
    auto: bool = True,
    sizes: str | int | Iterable[str | int] | None = None,
    ranks: Iterable[int] | None = None,
    wavelengths: Iterable[int] | None = None,
    reconfiguration: str | Iterable[str] | None = None,
    root: int = 0,
    demand: DemandLike | None = None,
    wavelength: str = "auto",
    **settings: Unpack[Settings],
) -> Comparison:
    """Plans, verifies and simulates several algorithms on the same fabrics, sizes and settings.

    `auto`, the fastest plan found, is always compared unless `auto=False`.

    Parameters
    ----------
    collective
        The name of a collective, such as `all_gather`.
    fabric
        A fabric as for `plan`, or a list of fabrics.
    algorithms
        A list of specifications, users' functions or names of files of plans, or one text such as
        `"ring,optree,mine.plan"`. A plan from a file is placed on the fabric and verified. A named
        algorithm must support every fabric. By default all algorithms of the collective are
        compared, and `Comparison.refusals` lists the algorithms that do not support a fabric.
    auto
        Whether to compare `auto` as well.
    sizes
        Sizes of the collective, in bytes or as text with a unit. In a text such as `"1KiB..1GiB"`,
        each size is four times the previous size, and the end is the last size (default: 4 MiB, or
        the size of a demand in bytes).
    ranks, wavelengths
        Numbers of ranks, and numbers of wavelengths per fibre, which replace the fabric's numbers.
        All combinations are compared.
    reconfiguration
        Reconfiguration times, such as `"10ns,1us"`, which replace the fabric's own time. In
        `"10ns..10ms"`, the times are 1, 2 and 5 times each power of ten. If the fastest kind of
        plan changes between two times, plans are also timed at times between these two, until the
        time of the change is known within 1 %.
    root
        The root rank of a broadcast, reduce, gather or scatter.
    demand
        Bytes from each rank to each other rank in an all_to_all, as for `plan`. Each size in
        `sizes` scales the demand.
    wavelength
        Algorithm that assigns wavelengths, such as `first_fit`.
    settings
        The simulator and its settings, as for `Plan.simulate`.

    Returns
    -------
    Comparison
        `rows` has a `PlanRow` per fabric, algorithm and size. `refusals` lists unsupported
        algorithms.

    Raises
    ------
    OpticollError
        Any reason that `plan` lists. The attribute `field` names the wrong argument.

    Examples
    --------
    >>> import opticoll
    >>> ring = "wdm_ring:ranks=16,wavelengths=2"
    >>> comparison = opticoll.compare("all_gather", ring, "ring,optree", sizes="1MiB,4MiB")
    >>> for row in comparison.rows:
    ...     print(row.algorithm, row.size_bytes, row.steps, row.time_s)
    ring 1048576 15 0.003520728
    ring 4194304 15 0.012957912
    optree 1048576 12 0.0028165824
    optree 4194304 12 0.0103663296
    auto 1048576 8 0.0010388608
    auto 4194304 8 0.0035554432
    """
    from opticoll.commands import compare
    from opticoll.inputs.scenarios import to_scenario
    from opticoll.inputs.settings import set_settings
    from opticoll.outputs.watch import Watch

    scenario = to_scenario(
        collective,
        fabric,
        algorithms,
        auto=auto,
        sizes=sizes,
        ranks=ranks,
        wavelengths=wavelengths,
        reconfiguration=reconfiguration,
        root=root,
        demand=demand,
        wavelength=wavelength,
        settings=set_settings(settings),
    )
    result = compare.Comparison()
    result.rows.extend(compare.compare(scenario, result.refusals, Watch()))
    return result


def replan(
    plan: Plan,
    failed: str | Sequence[str],
    algorithm: str = "auto",
    *,
    size: str | int | None = None,
    **settings: Unpack[Settings],
) -> ReplanRow:
    """Plans a collective again after failures, verifies the new plan, and compares the times.

    Parameters
    ----------
    plan
        The plan on the fabric before the failures.
    failed
        Failures, as one text or a list; commas separate several options. On electrical fabrics, a
        failure is a part such as `NIC of rank 3`, `0>1+5` or `cube 3`; or `members=0-11` names the
        ranks that remain. On a WDM ring: `broken=3-4`. On a `wss_grid`:
        `dead_transceivers=5.row+9.column`, `dead_ports=row3.2`, or `leaving=5+8-11` for nodes that
        leave.
    algorithm
        The algorithm on the damaged fabric (default: `auto`).
    size
        Size for which both plans are timed, in bytes or as text with a unit (default: the plan's
        size).
    settings
        The simulator and its settings, as for `Plan.simulate`.

    Returns
    -------
    ReplanRow
        The numbers of the new plan, and the time of the old plan.

    Raises
    ------
    OpticollError
        The fabric has no such part, the root has failed, or a rank cannot be reached any more.

    Examples
    --------
    >>> import opticoll
    >>> plan = opticoll.plan("all_reduce", "wss_grid:rows=4,columns=4", "auto", size="1MiB")
    >>> row = opticoll.replan(plan, "leaving=5", algorithm="auto")
    >>> row.ranks, row.verified
    (15, True)
    """
    row: ReplanRow = one(
        "replan", source=plan, failed=failed, instead=algorithm, size=size, settings=settings
    )
    return row


def bound(
    collective: str,
    fabric: FabricLike,
    *,
    size: str | int | None = None,
    root: int | None = None,
    demand: DemandLike | None = None,
    policy: str | None = None,
    paths: str | None = None,
) -> BoundsRow:
    """Computes the throughput optimum of a collective, and lower bounds on the time of any plan.

    Parameters
    ----------
    collective
        The collective, such as `all_gather`.
    fabric
        The fabric.
    size
        The size in bytes, or as text with a unit (default: 4 MiB).
    root
        The root rank, for collectives that have a root (default: 0).
    demand
        Bytes from each rank to each other rank, as for `plan`.
    policy, paths
        Policy, and kind of routes, for which the bounds hold (default: those of the fabric).

    Returns
    -------
    BoundsRow
        The optimum as exact fractions (seconds for 10^9 bytes), and the bounds in seconds.

    Raises
    ------
    OpticollError
        The collective or the fabric is unknown, or the size is invalid.

    Examples
    --------
    >>> import opticoll
    >>> row = opticoll.bound("all_gather", "crossbar:ranks=5,rate=100Gb/s", size="1MB")
    >>> row.optimum, row.bounds[0].name, row.bounds[0].time_s
    ('8/25', 'bandwidth', 0.00032)
    """
    stated_rules = {"policy": policy, "paths": paths}
    rules = {name: value for name, value in stated_rules.items() if value}
    values = {"collective": collective, "fabric": fabric, "size": size, "root": root}
    row: BoundsRow = one("bound", rules, demand=demand, **values)
    return row


def tasks(fabric: FabricLike, tasks: Iterable[Task]) -> list[TaskRow]:
    """Runs tasks on one `wss_grid`; an arbiter admits a task once the task's ports are free.

    All plans are verified. The function also verifies that no two tasks use a switch port at the
    same time.

    Parameters
    ----------
    fabric
        The grid, its specification or its file.
    tasks
        Tasks of the class `opticoll.inputs.task_list.Task`. A task runs a collective on some nodes
        and repeats it for a number of rounds.

    Returns
    -------
    list of TaskRow
        One row per task, with the times of its request, admission, start and end.

    Raises
    ------
    OpticollError
        Any reason that `plan` lists.

    Examples
    --------
    >>> import opticoll
    >>> from opticoll.inputs.task_list import Task
    >>> rows = opticoll.tasks(
    ...     "wss_grid:rows=2,columns=4",
    ...     [
    ...         Task("all_reduce", nodes="0-1+4-5", size="100MB", rounds=10),
    ...         Task("all_reduce", nodes="2-3+6-7", size="100MB", request="2ms"),
    ...     ],
    ... )
    >>> [(row.name, row.verified) for row in rows]
    [('all_reduce', True), ('all_reduce', True)]
    """
    return rows("tasks", fabric=fabric, tasks=list(tasks))
