"""Plans: what has a name, and how plans are made, measured, compared and mended."""

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
    """Lists everything that has a name, such as algorithms or fabrics, as `opticoll list` does.

    Parameters
    ----------
    kind
        `algorithms`, `fabrics`, `presets`, `simulators`, `policies`, `start_rules`, `settings`,
        `collectives`, `wavelengths`, `models` or `devices`.

    Returns
    -------
    list of RecordRow
        Each with name, summary, citation of the source and options.

    Raises
    ------
    UsageError
        There is no such kind.

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
    """Builds a schedule and gives every transfer its route, wavelength and slot.

    Parameters
    ----------
    collective
        The name of a collective, such as `all_gather`.
    fabric
        A fabric, its specification, such as `optree_paper:ranks=512`, its file (YAML, GraphML and
        others) as text or `Path`, or a graph of NetworkX.
    algorithm
        A specification such as `optree:depth=5`, a user's function, or the function as
        `module:function` (default: `auto`, the fastest plan found for the size and the settings).
    size
        Size that `auto` plans for, in bytes or as text with a unit (default: 4 MiB, or what the
        rank with the largest demand in bytes sends). The plan keeps the size for later simulations.
    root
        The root rank of broadcast, reduce, gather and scatter.
    demand
        What each rank sends to each other in an all_to_all: a matrix of bytes with a row for each
        source, a CSV file, or the name of a generator such as `zipf:exponent=1.2,seed=0`
        (default: the same of all pairs, which a demand of equal blocks is, too).
    wavelength
        Assignment of wavelengths, such as `first_fit`.
    watch
        Called by `auto` with the name of each candidate before the candidate is planned.
    settings
        How plans are timed, such as `policy="free"` or `start="step"` (see `opticoll list
        settings`). Only `auto` uses the settings and the size.

    Raises
    ------
    OpticollError
        A name is unknown, an option is out of range, or the algorithm does not run on the fabric.

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
    """Verifies and simulates a plan, and returns the row that `compare` returns for each plan.

    Parameters
    ----------
    plan
        The plan.
    size
        Size of the collective, in bytes or as text with a unit.
    settings
        The simulator and its settings, as for `Plan.simulate`.

    Returns
    -------
    PlanRow
        Slots, time, bounds, violations and what they depend on; `help` lists the fields with units.

    Raises
    ------
    UnitError
        The size is not a size.
    SimulationError
        A setting is unknown or does not apply.

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

    `auto`, the fastest plan found, is compared even if other algorithms are named, unless it is
    left out.

    Parameters
    ----------
    collective
        The name of a collective, such as `all_gather`.
    fabric
        A fabric as for `plan`, or several.
    algorithms
        Specifications or users' functions in a list, or one text such as `"ring,optree"`. An
        algorithm that is named must run on every fabric. By default all algorithms of the
        collective are compared, and `Comparison.refusals` names those that do not run.
    auto
        Whether `auto` is compared, too.
    sizes
        Sizes of the collective, in bytes or as text with a unit; also one text such as
        `"1KiB..1GiB"`, where each size is four times the size before; the end is the last size
        (default: 4 MiB, or the size of a demand in bytes).
    ranks, wavelengths
        Numbers of ranks and of wavelengths per fibre, in place of those of the fabric; all
        combinations are compared.
    reconfiguration
        Times from one setting to the next, in place of that of the fabric, such as `"10ns,1us"`; in
        `"10ns..10ms"` they grow by 1, 2, 5, 10. Between two of them where the fastest kind of plan
        changes, further times are computed until the change is known within 1 %.
    root
        The root rank of broadcast, reduce, gather and scatter.
    demand
        What each rank sends to each other in an all_to_all, as for `plan`; `sizes` scale it.
    wavelength
        Assignment of wavelengths, such as `first_fit`.
    settings
        The simulator and its settings, as for `Plan.simulate`.

    Returns
    -------
    Comparison
        `rows`, a `PlanRow` per fabric, algorithm and size, and `refusals`.

    Raises
    ------
    OpticollError
        As for `plan`. The attribute `field` names the argument at fault.

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
    from opticoll.inputs.settings import given
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
        settings=given(settings),
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
    """Plans again on the fabric that failures leave, verifies the plan, and compares the times.

    Parameters
    ----------
    plan
        The plan on the fabric as it was.
    failed
        What fails: `NIC of rank 3`, `0>1+5` or `cube 3` where messages share links, or
        `members=0-11` for the ranks that are left; `broken=3-4` on a ring of wavelengths; on a
        `wss_grid`
        `dead_transceivers=5.row+9.column`, `dead_ports=row3.2` or nodes that are
        `leaving=5+8-11`; several options with commas, or a list.
    algorithm
        The algorithm on what is left (default: `auto`).
    size
        Size for which both plans are timed, in bytes or as text with a unit (default: the size of
        the plan).
    settings
        The simulator and its settings, as for `Plan.simulate`.

    Returns
    -------
    ReplanRow
        The numbers of the new plan, and the time of the old one.

    Raises
    ------
    OpticollError
        A place is not on the fabric, the root has left, or a rank cannot be reached any more.

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
    """Finds the throughput optimum of a collective, and the times that no plan goes below.

    Parameters
    ----------
    collective
        The collective, such as `all_gather`.
    fabric
        The fabric.
    size
        The size in bytes, or as text with a unit (default: 4MiB).
    root
        The root, of collectives that have one (default: 0).
    demand
        Bytes of each pair of ranks, as for `plan`.
    policy, paths
        The rules for which the bounds hold (default: those of the fabric).

    Returns
    -------
    BoundsRow
        The optimum as exact fractions in seconds for 10^9 bytes, and the bounds in seconds.

    Raises
    ------
    OpticollError
        An unknown collective or fabric, or a size that is none.

    Examples
    --------
    >>> import opticoll
    >>> row = opticoll.bound("all_gather", "crossbar:ranks=5,rate=100Gb/s", size="1MB")
    >>> row.optimum, row.bounds[0].name, row.bounds[0].time_s
    ('8/25', 'bandwidth', 0.00032)
    """
    given = {"policy": policy, "paths": paths}
    rules = {name: value for name, value in given.items() if value}
    asked = {"collective": collective, "fabric": fabric, "size": size, "root": root}
    row: BoundsRow = one("bound", rules, demand=demand, **asked)
    return row


def tasks(fabric: FabricLike, tasks: Iterable[Task]) -> list[TaskRow]:
    """Runs tasks on one `wss_grid`, where an arbiter admits each task when its ports are free.

    All plans are verified; that no two tasks share a switch port at one time is verified, too.

    Parameters
    ----------
    fabric
        The grid, its specification, or its file.
    tasks
        Tasks, each an `opticoll.inputs.task_list.Task`: a collective on some nodes, carried out
        in rounds.

    Returns
    -------
    list of TaskRow
        A row per task with the times of its request, admission, start and end.

    Raises
    ------
    OpticollError
        As for `plan`.

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
