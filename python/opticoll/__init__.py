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
    "set_memory_limit",
    "tasks",
    "traffic",
    "train",
    "write_csv",
    "write_plan",
]


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
        A name such as `all_gather`.
    fabric
        A fabric, its spelling, such as `optree_paper:ranks=512`, or the name of its YAML file.
    algorithm
        A spelling such as `optree:k=5`, a user's function or its `module:function`; `auto`, the
        fastest plan found for the size and the settings, where none is given.
    size
        The size that `auto` plans for (4 MiB where none is given), in bytes or as text with a
        unit. The plan keeps the size for later simulations.
    root
        The root rank of broadcast, reduce, gather and scatter.
    wavelength
        How wavelengths are assigned, such as `first_fit:order=longest`.
    watch
        Called by `auto` with the name of each candidate before it is made.
    settings
        How plans are timed, such as `policy="free"` or `start="step"` (see `opticoll list
        settings`); only `auto` looks at it, and at the size.

    Raises
    ------
    OpticollError
        An unknown name, an option out of range, or an algorithm that does not run on this fabric.
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
    """Read a plan file, compressed or not.

    Raises
    ------
    FileError
        The file cannot be read or is no text.
    PlanFileError
        It is malformed; the message names line and column.
    """
    from opticoll import formats

    plan: Plan = formats.named("plan", str(path)).read(path)
    return plan


def write_plan(plan: Plan, path: str | PathLike[str]) -> None:
    """Write a plan file, compressed with zstd where the name ends in `.zst`.

    The file appears under its name only when it is complete.

    Raises
    ------
    FileError
        The file cannot be written.
    """
    from opticoll import formats

    formats.named("plan", str(path)).write(plan, path)


def write_csv(rows: Sequence[Mapping[str, object]], path: str | PathLike[str]) -> None:
    """Write rows as CSV under a heading of their keys; the file appears when it is complete.

    Raises
    ------
    FileError
        The file cannot be written.
    """
    from opticoll.formats import table

    table.write_csv(rows, path)


def records(kind: str) -> list[RecordRow]:
    """Records of what has a name, such as `algorithms` or `fabrics` (see `opticoll list`).

    Raises
    ------
    UsageError
        There is no such kind.
    """
    from opticoll import registry

    return registry.records(kind)


def measure(plan: Plan, size: str | int, **settings: Unpack[Settings]) -> PlanRow:
    """Verify and simulate a plan: its row of numbers, as `compare` has one for each plan.

    Raises
    ------
    OpticollError
        A size that is none, or settings that this fabric does not know.
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

    `auto`, the fastest plan found, is among them even where others are named. Without `algorithms`
    all of the collective are compared, and those that do not run on a fabric are named in
    `Comparison.refusals`; an algorithm that is named must run. Algorithms and sizes may also be one
    text, as on the command line: `"ring,optree"`, `"1KiB..1GiB"`. There may be several fabrics.

    Raises
    ------
    OpticollError
        As for `plan`.
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
    """Plan anew on what failures leave of a `wss_grid`, verify, and compare the times.

    Parameters
    ----------
    plan
        The plan on the grid as it was.
    failed
        What fails: `dead_transceivers=5.row+9.column`, `dead_ports=row3.2`, nodes that are
        `leaving=5+8-11`; several with commas.
    algorithm
        The algorithm on what is left, such as `auto`; the same if not given.
    size
        The size to time both plans for; that of the plan if not given.

    Raises
    ------
    OpticollError
        Places that are not on the grid, a root that has left, nodes that no light reaches any more.
    """
    row: ReplanRow = _one(
        "replan", source=plan, failed=failed, instead=algorithm, size=size, settings=settings
    )
    return row


def tasks(fabric: Fabric | str, tasks: Iterable[Task]) -> list[TaskRow]:
    """Run several tasks on one `wss_grid`: an arbiter admits each when its ports are free.

    A task is an `opticoll.task_list.Task`: a collective on some nodes, again and again. All plans
    are verified, and so is that no two tasks at one time share a switch port.

    Raises
    ------
    OpticollError
        As for `plan`.
    """
    return _rows("tasks", fabric=fabric, tasks=list(tasks))


def read_trace(
    source: str | PathLike[str] | bytes,
    form: str | None = None,
    *,
    operations_per_second: int | None = None,
) -> Trace:
    """Read the trace of an MPI program.

    Parameters
    ----------
    source
        A file, the folder of an OTF2 archive, or the content of a file; compressed with zstd or
        not.
    form
        A format of traces, such as `goal` (see `opticoll.formats.FORMATS`); what the content shows
        if not given.
    operations_per_second
        Rate of floating-point operations, for traces that count them in place of time.

    Raises
    ------
    FileError
        The file cannot be read or decompressed.
    TraceError
        The trace is malformed; the message names the line, the byte, or rank and event.
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
    """Replay the trace of an MPI program over a network.

    Parameters
    ----------
    trace
        A file or folder (see `opticoll.formats.trace_file`), or a trace that was read.
    fabric
        A fabric, its specification or YAML file, or a cost model such as
        `hockney:latency=1us,rate=10Gb/s` (`zero`, `hockney`, `loggp`, `light_path_grid`).
    collectives
        The algorithm of a collective by its name, such as `{"all_reduce": "ring"}`; others have
        `auto`, the fastest plan found for their ranks and their size.
    cpu_factor
        Factor of local work, such as `0.5` or `1/3`.
    eager
        The largest message that leaves before its receive has begun: a size, `all` or `none`.
    end_overhead
        Time that a rank spends on each message sent and received, such as `500ns`.
    operations_per_second
        For traces that count operations in place of time.
    timeline
        Whether the `outcome` of the row keeps the begin and end of every call.
    bursts
        Settings of light paths and of bursts, by name, where each message asks for a light path in
        a network of bursts: `fabric` is then one as for `bursts`. `offered_load` is 0 if not given.

    Raises
    ------
    OpticollError
        A file that is no trace, an unknown network, algorithm or setting, a program that cannot go
        on.
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
    """Simulate traffic alone, packet by packet; the row has the `outcome`.

    Parameters
    ----------
    pattern
        Who sends to whom, such as `uniform`.
    size, period
        Bytes of a message and the time between two messages of a rank, as text with a unit.
    messages
        Number of messages of each rank.
    timeline
        Whether to keep what links and buffers hold over time.

    Raises
    ------
    OpticollError
        An unknown fabric, pattern or setting, or a deadlock.
    """
    asked = {"pattern": pattern, "bytes": size, "period": period, "messages": messages}
    row: TrafficRow = _one("traffic", settings, fabric=fabric, timeline=timeline, jobs=1, **asked)
    return row


def bursts(fabric: str, settings: Mapping[str, str] | None = None, *, threads: int = 1) -> BurstRow:
    """Simulate a burst-switched network; the row has the `outcome`.

    Parameters
    ----------
    fabric
        The network with its wavelengths, such as
        `ladder:rungs=5,hosts=10,wavelengths=28,rate=10Gb/s`.
    settings
        Settings by name, such as `{"offered_load": "0.9", "converters": "full"}`.
    threads
        Number of threads that share the replications; the result does not depend on it.

    Raises
    ------
    FabricError, SimulationError
        An unknown network or setting.
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
    """Run collectives over light paths that bursts may block; the row has the `outcome`.

    Parameters
    ----------
    fabric
        The network with its wavelengths, as for `bursts`.
    ranks
        Number of ranks of each collective (default: as many as there are hosts for).
    copies
        Number of collectives that run at the same time, each on its own hosts.
    placement
        Where ranks sit: `natural`, `spread` or `best`.
    offered_load
        Offered load of bursts of each host, in Erlang; 0 stands for no bursts.
    settings
        Settings of light paths and of bursts by name, such as `{"ports": "2"}`.
    threads
        Number of threads that share the replications; the result does not depend on it.

    Raises
    ------
    OpticollError
        An unknown name or setting, or ranks that do not fit the network.
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
    """Time an iteration of data-parallel training, and what of it waits for the network.

    Parameters
    ----------
    model
        A name such as `resnet50` or `gpt:layers=12,width=768` (see `opticoll list models`); None
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
        Algorithm of the all_reduce, as for `plan`; `A+B` is a reduce_scatter by A and then an
        all_gather by B. Where none is given, `auto` chooses for each size of a bucket.
    gradients
        Number format in which gradients are sent: `float32`, `float16` or `bfloat16`.
    buckets
        `tensor`, `all`, `ddp` (1 MiB, then 25 MiB) or a size such as `25MiB`.
    overlap
        Whether buckets are sent during the backward pass.
    epochs, samples
        How long to train: epochs of so many samples.

    Raises
    ------
    OpticollError
        As for `plan`; an unknown model or device, a profile that is none, arguments that do not go
        together.
    """
    row: TrainingRow = _one("train", **{**locals(), "fabric": [fabric]})
    return row
