"""opticoll plans, proves and simulates collective communication on optical interconnects.

>>> import opticoll
>>> fabric = opticoll.Fabric("wdm_ring:ranks=16,wavelengths=2,rate=40Gb/s,reconfiguration=25us")
>>> plan = opticoll.plan("all_gather", fabric, "optree:radices=4x4")
>>> plan.slots, plan.verify()
(12, [])
>>> opticoll.format_time(plan.simulate(opticoll.parse_size("4MiB"), policy="every_step").time_ps)
'10.3663296ms'

Sizes are written with their unit (`4MiB`) or given as whole bytes. Everything here and in the
command line has the same name. Importing this package loads the compiled core and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from os import PathLike
from typing import TYPE_CHECKING, Any

from opticoll import _core, errors
from opticoll._core import (
    Collective,
    Fabric,
    OpticollError,
    Outcome,
    Plan,
    Schedule,
    Table,
    Trace,
    TrainingModel,
    Violation,
    format_size,
    format_time,
    interrupt_all,
    parse_size,
    parse_time,
    set_memory_limit,
)

if TYPE_CHECKING:
    from typing import Unpack

    from opticoll.commands.compare import Comparison
    from opticoll.commands.congestion import CongestionRow
    from opticoll.commands.replan import ReplanRow
    from opticoll.commands.replay import ReplayRow
    from opticoll.commands.tasks import TaskRow
    from opticoll.commands.traffic import BurstRow, TrafficRow
    from opticoll.commands.train import TrainingRow
    from opticoll.plan_row import PlanRow
    from opticoll.registry import RecordRow
    from opticoll.settings import Settings
    from opticoll.study.interface import results, sweep
    from opticoll.task_list import Task
    from opticoll.user_algorithm import UserAlgorithm

__version__: str = _core.__version__

__all__ = [
    "Collective",
    "Fabric",
    "OpticollError",
    "Outcome",
    "Plan",
    "Schedule",
    "Table",
    "Trace",
    "TrainingModel",
    "Violation",
    "__version__",
    "bursts",
    "compare",
    "congestion",
    "errors",
    "format_size",
    "format_time",
    "interrupt_all",
    "measure",
    "parse_size",
    "parse_time",
    "plan",
    "read_plan",
    "read_trace",
    "records",
    "replan",
    "replay",
    "results",
    "set_memory_limit",
    "sweep",
    "tasks",
    "traffic",
    "train",
    "write_csv",
    "write_plan",
]


def __getattr__(name: str) -> Any:
    """Functions of studies, whose module is loaded when they are asked for."""
    if name not in ("results", "sweep"):
        raise AttributeError(f"module `opticoll` has no attribute `{name}`")
    return getattr(import_module("opticoll.study.interface"), name)


def _html(value: Plan | Outcome | Table) -> str:
    """How notebooks show what the core made."""
    from opticoll import notebook

    return notebook.html(value)


for _kind in (Plan, Outcome, Table):
    _kind._repr_html_ = _html  # type: ignore[union-attr]


def _rows(command: str, settings: Mapping[str, Any] | None = None, **values: Any) -> list[Any]:
    """The rows of a command, which is loaded now."""
    from opticoll.runner import run

    command_record = import_module(f"opticoll.commands.{command}").COMMAND
    return run(command_record, **values, **(settings or {}))


def _one(command: str, settings: Mapping[str, Any] | None = None, **values: Any) -> Any:
    """The only row of a command."""
    (row,) = _rows(command, settings, **values)
    return row


def plan(
    collective: str,
    fabric: Fabric | str,
    algorithm: str | UserAlgorithm | None = None,
    *,
    size: str | int | None = None,
    root: int = 0,
    wavelength: str = "auto",
    watch: Callable[[str], object] | None = None,
    **settings: Unpack[Settings],
) -> Plan:
    """Build a schedule and give every transfer its route, wavelength and slot.

    Parameters
    ----------
    collective
        The name of a collective, such as `all_gather`.
    fabric
        A fabric, its specification, such as `optree_paper:ranks=512`, or the name of its YAML file.
    algorithm
        A specification such as `optree:depth=5`, a user's function, or the function as
        `module:function` (default: `auto`, the fastest plan found for the size and the settings).
    size
        Size that `auto` plans for, in bytes or as text with a unit (default: 4 MiB). The plan keeps
        the size for later simulations.
    root
        The root rank of broadcast, reduce, gather and scatter.
    wavelength
        Assignment of wavelengths, such as `first_fit:order=longest`.
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
    from opticoll import config, registry, user_algorithm

    fabric = config.to_fabric(fabric)
    root = config.to_root(root, fabric)
    size_bytes = None if size is None else config.to_bytes(size)
    if algorithm is None:
        algorithm = registry.DEFAULT_ALGORITHM
    if isinstance(algorithm, str) and not user_algorithm.is_user_algorithm(algorithm):
        spelling = registry.algorithm_spelling(collective, algorithm)
        return _core.plan(
            collective,
            fabric,
            spelling,
            root=root,
            wavelength=wavelength,
            size_bytes=size_bytes,
            watch=watch,
            **settings,
        )
    if isinstance(algorithm, str):
        name, (function, options) = algorithm.strip(), user_algorithm.load(algorithm)
    else:
        name, function, options = user_algorithm.name_of(algorithm), algorithm, {}
    demanded = Collective(collective, fabric.ranks, root=root)
    schedule = user_algorithm.call(function, demanded, fabric, options)
    try:
        return _core.make_plan(schedule, fabric, name, wavelength, size_bytes)
    except errors.ScheduleError as error:
        raise errors.UserAlgorithmError(
            f"algorithm `{name}` returned a schedule that cannot be planned: {error}"
        ) from error


def read_plan(path: str | PathLike[str]) -> Plan:
    """Read a plan file, compressed with zstd or not.

    Parameters
    ----------
    path
        The file; its name ends in `.plan` or `.plan.zst`.

    Raises
    ------
    FileError
        The file cannot be read or is no text.
    PlanFileError
        The plan is malformed; the message names line and column.

    Examples
    --------
    >>> import opticoll
    >>> plan = opticoll.plan("all_gather", "wdm_ring:ranks=16,wavelengths=2", "ring")
    >>> opticoll.write_plan(plan, "ring.plan")
    >>> opticoll.read_plan("ring.plan")
    <Plan of all_gather by ring on 16 ranks: 15 slots, 240 transfers>
    """
    from opticoll import formats

    plan: Plan = formats.named("plan", str(path)).read(path)
    return plan


def write_plan(plan: Plan, path: str | PathLike[str]) -> None:
    """Write a plan file, compressed with zstd if the name ends in `.zst`.

    The file appears under its name only when it is complete.

    Parameters
    ----------
    plan
        The plan.
    path
        The file; its name ends in `.plan` or `.plan.zst`.

    Raises
    ------
    FileError
        The file cannot be written.

    Examples
    --------
    >>> import opticoll
    >>> plan = opticoll.plan("all_gather", "wdm_ring:ranks=16,wavelengths=2", "ring")
    >>> opticoll.write_plan(plan, "ring.plan.zst")
    """
    from opticoll import formats

    formats.named("plan", str(path)).write(plan, path)


def write_csv(rows: Sequence[Mapping[str, object]], path: str | PathLike[str]) -> None:
    """Write rows as CSV under a heading of their keys.

    The file appears under its name only when it is complete.

    Parameters
    ----------
    rows
        Rows, or other mappings with the same keys.
    path
        The file.

    Raises
    ------
    FileError
        The file cannot be written.

    Examples
    --------
    >>> import opticoll
    >>> ring = "wdm_ring:ranks=16,wavelengths=2"
    >>> comparison = opticoll.compare("all_gather", ring, "ring,optree")
    >>> opticoll.write_csv(comparison.rows, "comparison.csv")
    """
    from opticoll.formats import table

    table.write_csv(rows, path)


def records(kind: str) -> list[RecordRow]:
    """List everything that has a name, such as algorithms or fabrics, as `opticoll list` does.

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
    >>> [record.name for record in opticoll.records("policies")]
    ['every_step', 'on_change', 'per_port', 'free', 'two_tier', 'establish_release']
    """
    from opticoll import registry

    return registry.records(kind)


def measure(plan: Plan, size: str | int, **settings: Unpack[Settings]) -> PlanRow:
    """Verify and simulate a plan, and return what `compare` returns for each plan.

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
        The size is no size.
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
    from opticoll import config, plan_row

    size_bytes = config.to_bytes(size)
    outcome = plan.simulate(size_bytes, **settings)
    return plan_row.plan_row(plan, plan.verify(), outcome, size_bytes)


def compare(
    collective: str,
    fabric: Fabric | str | Iterable[Fabric | str],
    algorithms: str | Iterable[str | UserAlgorithm] | None = None,
    *,
    sizes: str | int | Iterable[str | int] = "4MiB",
    ranks: Iterable[int] | None = None,
    wavelengths: Iterable[int] | None = None,
    root: int = 0,
    wavelength: str = "auto",
    **settings: Unpack[Settings],
) -> Comparison:
    """Plan, verify and simulate several algorithms on the same fabrics, sizes and settings.

    `auto`, the fastest plan found, is compared even if other algorithms are named.

    Parameters
    ----------
    collective
        The name of a collective, such as `all_gather`.
    fabric
        A fabric, its specification, the name of its YAML file, or several of these.
    algorithms
        Specifications or users' functions in a list, or one text such as `"ring,optree"`. An
        algorithm that is named must run on every fabric. By default all algorithms of the
        collective are compared, and `Comparison.refusals` names those that do not run.
    sizes
        Sizes of the collective, in bytes or as text with a unit; also one text such as
        `"1KiB..1GiB"`, where each size is four times the size before.
    ranks, wavelengths
        Numbers of ranks and of wavelengths per fibre, in place of those of the fabric; all
        combinations are compared.
    root
        The root rank of broadcast, reduce, gather and scatter.
    wavelength
        Assignment of wavelengths, such as `first_fit:order=longest`.
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
    from opticoll import config
    from opticoll.commands import compare
    from opticoll.runner import Watch
    from opticoll.settings import given

    scenario = config.to_scenario(
        collective,
        fabric,
        algorithms,
        sizes=sizes,
        ranks=ranks,
        wavelengths=wavelengths,
        root=root,
        wavelength=wavelength,
        settings=given(settings),
    )
    result = compare.Comparison()
    result.rows.extend(compare.compare(scenario, result.refusals, Watch()))
    return result


def replan(
    plan: Plan,
    failed: str,
    algorithm: str | None = None,
    *,
    size: str | int | None = None,
    **settings: Unpack[Settings],
) -> ReplanRow:
    """Plan again on what failures leave of a `wss_grid`, verify, and compare the times.

    Parameters
    ----------
    plan
        The plan on the whole grid.
    failed
        What fails: `dead_transceivers=5.row+9.column`, `dead_ports=row3.2` or nodes that are
        `leaving=5+8-11`; several with commas.
    algorithm
        The algorithm on what is left, such as `auto` (default: the algorithm of the plan).
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
        A place is not on the grid, the root has left, or no light reaches a node any more.

    Examples
    --------
    >>> import opticoll
    >>> plan = opticoll.plan("all_reduce", "wss_grid:rows=4,columns=4", "auto", size="1MiB")
    >>> row = opticoll.replan(plan, "leaving=5", algorithm="auto")
    >>> row.ranks, row.verified
    (15, True)
    """
    row: ReplanRow = _one(
        "replan", source=plan, failed=failed, instead=algorithm, size=size, settings=settings
    )
    return row


def tasks(fabric: Fabric | str, tasks: Iterable[Task]) -> list[TaskRow]:
    """Run tasks on one `wss_grid`, where an arbiter admits each task when its ports are free.

    All plans are verified; that no two tasks share a switch port at one time is verified, too.

    Parameters
    ----------
    fabric
        The grid, its specification, or the name of its YAML file.
    tasks
        Tasks, each an `opticoll.task_list.Task`: a collective on some nodes, carried out in rounds.

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
    >>> from opticoll.task_list import Task
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
    return _rows("tasks", fabric=fabric, tasks=list(tasks))


def read_trace(
    source: str | PathLike[str] | bytes,
    form: str | None = None,
    *,
    operations_per_second: int | None = None,
) -> Trace:
    r"""Read the trace of an MPI program.

    Parameters
    ----------
    source
        A file, the folder of an OTF2 archive, or the content of a file; compressed with zstd or
        not.
    form
        The format, such as `goal` (see `opticoll list formats`; default: the format that the
        content shows).
    operations_per_second
        Rate of floating-point operations, for traces that count operations instead of time.

    Raises
    ------
    FileError
        The file cannot be read or decompressed.
    TraceError
        The trace is malformed; the message names the line, the byte, or rank and event.

    Examples
    --------
    >>> import opticoll
    >>> opticoll.read_trace(
    ...     b"# app=hello ranks=2\nrank,call,peer,send_bytes,recv_bytes,tag,comm,req,compute_ns\n"
    ...     b"0,Send,1,8,0,7,0,,100\n1,Recv,0,0,8,7,0,,40\n"
    ... )
    <Trace 2 ranks, 2 events>
    """
    from opticoll.formats import trace_file

    return trace_file.read(source, form, operations_per_second)


def replay(
    trace: str | PathLike[str] | Trace,
    fabric: Fabric | str = "zero",
    *,
    collectives: Mapping[str, str] | None = None,
    cpu_factor: str | float = 1,
    eager: str | int | None = None,
    end_overhead: str | None = None,
    operations_per_second: int | None = None,
    timeline: bool = False,
    bursts: Mapping[str, str] | None = None,
    **settings: Unpack[Settings],
) -> ReplayRow:
    r"""Replay the trace of an MPI program over a network.

    Parameters
    ----------
    trace
        A trace that `read_trace` has read, or its file or folder.
    fabric
        A fabric, its specification or YAML file, or a cost model such as
        `hockney:latency=1us,rate=10Gb/s` (`zero`, `hockney`, `loggp`, `light_path_grid`).
    collectives
        The algorithm of each collective by its name, such as `{"all_reduce": "ring"}`; the other
        collectives have `auto`, the fastest plan found for their ranks and their size.
    cpu_factor
        Factor of local work, such as `0.5` or `1/3`.
    eager
        Largest message that leaves before its receive has begun: a size, `all` or `none`.
    end_overhead
        Time that a rank spends on each message sent and received, such as `500ns`.
    operations_per_second
        Rate of floating-point operations, for traces that count operations instead of time.
    timeline
        Whether the `outcome` of the row has the begin and the end of every call.
    bursts
        Settings of circuits and of bursts by name, for a network of bursts in which each message
        asks for a circuit. `fabric` is then a network as for the function `bursts`; `offered_load`
        is 0 by default.
    settings
        The simulator and its settings, as for `Plan.simulate`.

    Returns
    -------
    ReplayRow
        The time of the program and its parts, in seconds, with the `outcome`.

    Raises
    ------
    OpticollError
        The file is no trace; a network, an algorithm or a setting is unknown; or the program cannot
        continue, such as a receive without a send.

    Examples
    --------
    >>> import opticoll
    >>> trace = opticoll.read_trace(
    ...     b"# app=hello ranks=2\nrank,call,peer,send_bytes,recv_bytes,tag,comm,req,compute_ns\n"
    ...     b"0,Send,1,8,0,7,0,,100\n1,Recv,0,0,8,7,0,,40\n"
    ... )
    >>> opticoll.replay(trace, "hockney:latency=1us,rate=10Gb/s").time_s
    1.1064e-06
    """
    row: ReplayRow = _one("replay", **locals())
    return row


def traffic(
    fabric: Fabric | str,
    pattern: str,
    *,
    size: str,
    period: str,
    messages: int,
    timeline: bool = False,
    **settings: Unpack[Settings],
) -> TrafficRow:
    """Simulate synthetic traffic, packet by packet.

    Parameters
    ----------
    fabric
        An electrical fabric, its specification, or the name of its YAML file.
    pattern
        Who sends to whom, such as `uniform`.
    size, period
        Size of a message, and the time between two messages of a rank, as text with a unit.
    messages
        Number of messages of each rank.
    timeline
        Whether to record the load of links and buffers over time.
    settings
        Settings of the packet simulator, as for `Plan.simulate`.

    Returns
    -------
    TrafficRow
        Delivered bytes, latencies and link use, with the `outcome`.

    Raises
    ------
    OpticollError
        The fabric, the pattern or a setting is unknown, or packets are in a deadlock.

    Examples
    --------
    >>> import opticoll
    >>> row = opticoll.traffic("torus:dims=4x4", "uniform", size="2KiB", period="1us", messages=10)
    >>> row.bytes_delivered, row.outcome.time_ps
    (327680, 10441830)
    """
    asked = {"pattern": pattern, "bytes": size, "period": period, "messages": messages}
    row: TrafficRow = _one("traffic", settings, fabric=fabric, timeline=timeline, jobs=1, **asked)
    return row


def bursts(fabric: str, settings: Mapping[str, str] | None = None, *, threads: int = 1) -> BurstRow:
    """Simulate a burst-switched network (OBS), in which random bursts may be blocked.

    Parameters
    ----------
    fabric
        The network with its wavelengths, such as
        `ladder:rungs=5,hosts=10,wavelengths=28,rate=10Gb/s`.
    settings
        Settings by name, as text, such as `{"offered_load": "0.9", "converters": "full"}`.
    threads
        Number of threads that share the replications; the result does not depend on it.

    Returns
    -------
    BurstRow
        The number of bursts and the share that is lost, with confidence intervals and the
        `outcome`.

    Raises
    ------
    FabricError
        The network is unknown or has no wavelengths.
    SimulationError
        A setting is unknown or out of range.

    Examples
    --------
    >>> import opticoll
    >>> ladder = "ladder:rungs=5,hosts=10,wavelengths=28,rate=10Gb/s"
    >>> row = opticoll.bursts(ladder, {"bursts": "1e4", "warm_up": "0"})
    >>> row.bursts, row.lost
    (10000, 0)
    """
    row: BurstRow = _one("traffic", settings, fabric=fabric, simulator="burst", jobs=threads)
    return row


def congestion(
    collective: str,
    fabric: str,
    algorithm: str | None = None,
    *,
    size: str | int,
    ranks: int | None = None,
    copies: int = 1,
    root: int = 0,
    placement: str = "natural",
    offered_load: float = 0.0,
    settings: Mapping[str, str] | None = None,
    threads: int = 1,
) -> CongestionRow:
    """Run collectives over circuits that random bursts may block.

    Parameters
    ----------
    collective
        The name of a collective, such as `all_gather`.
    fabric
        The network with its wavelengths, as for `bursts`.
    algorithm
        A specification of an algorithm (default: the usual algorithm of the collective).
    size
        Size of the collective, in bytes or as text with a unit.
    ranks
        Number of ranks of each collective (default: as many as there are hosts for).
    copies
        Number of collectives that run at the same time, each on its own hosts.
    root
        The root rank of broadcast, reduce, gather and scatter.
    placement
        Placement of ranks on hosts: `natural`, `spread` or `best`.
    offered_load
        Offered load of bursts of each host, in Erlang; 0 for no bursts.
    settings
        Settings of circuits and of bursts by name, as text, such as `{"ports": "2"}`.
    threads
        Number of threads that share the replications; the result does not depend on it.

    Returns
    -------
    CongestionRow
        The mean time in seconds with its confidence interval, and the `outcome`.

    Raises
    ------
    OpticollError
        A name or a setting is unknown, or the ranks do not fit the network.

    Examples
    --------
    >>> import opticoll
    >>> row = opticoll.congestion(
    ...     "all_gather",
    ...     "ladder:rungs=5,wavelengths=4,rate=10Gb/s,latency=0s",
    ...     "ring",
    ...     size="1MB",
    ...     settings={"ports": "2", "replications": "1"},
    ... )
    >>> row.verified, row.time_s
    (True, 0.0181)
    """
    row: CongestionRow = _one(
        "congestion",
        collective=collective,
        fabric=fabric,
        algorithm=algorithm,
        size=size,
        ranks=ranks,
        collectives=copies,
        root=root or None,
        placement=placement,
        offered_load=offered_load,
        bursts=settings,
        jobs=threads,
    )
    return row


def train(
    model: str | None,
    fabric: Fabric | str,
    *,
    batch: int | None = None,
    device: str | None = None,
    throughput: str | None = None,
    profile: str | PathLike[str] | None = None,
    device_memory: str | int | None = None,
    algorithm: str | UserAlgorithm | None = None,
    gradients: str = "float32",
    buckets: str = "ddp",
    overlap: bool = True,
    epochs: int | None = None,
    samples: int | None = None,
    wavelength: str = "auto",
    **settings: Unpack[Settings],
) -> TrainingRow:
    """Time an iteration of data-parallel training, and the part of it that waits for the network.

    Parameters
    ----------
    model
        A model such as `resnet50` or `gpt:layers=12,width=768` (see `opticoll list models`); None
        with a profile.
    fabric
        The fabric, its specification, or the name of its YAML file; its ranks are the devices.
    batch
        Samples per device and iteration; a profile may contain it.
    device, throughput
        The device, such as `a100:efficiency=0.4`, or a measured throughput of one device, such as
        `50TFLOP/s` or `1100images/s` (default: the first device of `opticoll list devices`).
    profile
        A file of measured layers, in place of model and device (see `opticoll.layer_profile`).
    device_memory
        Memory of a device, such as `80GB` (default: the memory of the device).
    algorithm
        Algorithm of the all_reduce, as for `plan`; `A+B` is a reduce_scatter by A and then an
        all_gather by B (default: `auto` for each size of a bucket).
    gradients
        Number format of gradients on the network: `float32`, `float16` or `bfloat16`.
    buckets
        How gradients are grouped: `tensor`, `all`, `ddp` (1 MiB, then 25 MiB) or a size such as
        `25MiB`.
    overlap
        Whether buckets are sent during the backward pass.
    epochs, samples
        Length of the training: number of epochs, and samples of an epoch.
    wavelength
        Assignment of wavelengths, such as `first_fit:order=longest`.
    settings
        The simulator and its settings, as for `Plan.simulate`.

    Returns
    -------
    TrainingRow
        Times of the iteration and its parts in seconds, and a row for each bucket.

    Raises
    ------
    OpticollError
        As for `plan`; the model or the device is unknown, the file is no profile, or arguments do
        not go together.

    Examples
    --------
    >>> import opticoll
    >>> ring = "wdm_ring:ranks=16,wavelengths=8"
    >>> row = opticoll.train("resnet50", ring, batch=32, algorithm="ring")
    >>> round(row.iteration_s, 6), round(row.exposed_communication_s, 6), len(row.buckets)
    (0.047202, 0.029388, 3)
    """
    row: TrainingRow = _one("train", **{**locals(), "fabric": [fabric]})
    return row
