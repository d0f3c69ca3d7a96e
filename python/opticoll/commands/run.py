"""Command `run`: executes a plan or program with real bytes, in this process or by MPI."""

import shlex
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

from opticoll._core import Program, parse_time
from opticoll.cli.arguments import FileSource, names_file, obtain
from opticoll.cli.option_types import option, whole
from opticoll.cli.options import FURTHER_METHOD, WavelengthOption
from opticoll.cli.runner import Command, on_command_line, rows_file
from opticoll.errors import UsageError
from opticoll.execution import in_process, mpi
from opticoll.execution.elements import OPERATORS, TYPES
from opticoll.execution.payload import payload_of
from opticoll.formulas import bandwidths
from opticoll.inputs import imported
from opticoll.inputs.demands import DEFAULT_SIZE
from opticoll.inputs.plan_cache import verify_once
from opticoll.outputs.layout import PICOSECONDS, plural
from opticoll.outputs.rows import Row, means, table
from opticoll.outputs.units import Bytes, Count, GigabytesPerSecond, Positive, Seconds
from opticoll.outputs.verification import refuse_violated, refuted
from opticoll.outputs.watch import Watch


@dataclass(frozen=True, kw_only=True)
class Run(FileSource):
    """Parameters of `opticoll run`."""

    fabric: str | None = option(
        "Fabric: a preset, family:key=value,..., a file, or your own module:function (default: a "
        "link between every two ranks)"
    )
    size: str | None = option(
        "Size of the collective, such as 4MiB or 4MB; several with commas (default: 4MiB)",
        metavar="SIZE",
        allow_leading_hyphen=True,
    )
    on: Literal["process", "mpi"] = option(
        "Executor of the plan: process (one process for all ranks) or mpi (default: process)",
        default="process",
    )
    ranks: int | None = option(
        "Number of ranks of a collective without --fabric, or of a file that does not state the "
        "number (default: from the file)",
        converter=whole(least=1),
    )
    type: str = option(
        f"Type of the elements: {', '.join(TYPES)} (default: int32)", default="int32"
    )
    operator: str = option(
        f"Operator of reductions: {', '.join(OPERATORS)} (default: sum)",
        default="sum",
        name=("--operator", "--op"),
    )
    repetitions: int = option(
        "Number of repetitions; their mean is printed (default: 1)",
        default=1,
        converter=whole(least=1),
    )
    time_limit: str = option(
        "Time without any progress after which MPI processes are ended (default: 30s)",
        default="30s",
        metavar="TIME",
    )
    mpi_args: str | None = option(
        "Further words for the mpiexec of --on mpi, such as '--bind-to core' (default: none)",
        metavar="WORDS",
        allow_leading_hyphen=True,
    )
    wavelength: WavelengthOption = None
    method: Any = FURTHER_METHOD


class RunRow(Row):
    """Execution at one size in one mode; times are measured on this machine, not on a fabric."""

    collective: str = means("Collective, such as `all_gather`")
    schedule: str = means("Algorithm of the plan, or name of the program")
    on: Literal["process", "mpi"] = means("Executor: `process` or `mpi`")
    ranks: Positive = means("Number of ranks")
    mode: Literal["in place", "out of place"] = means("Whether input and output share memory")
    size_bytes: Bytes = means("Size of the collective", "size")
    chunks: Positive = means("Number of chunks of the collective", "chunks")
    elements: Positive = means("Number of elements of a chunk", "elements")
    type: str = means("Type of the elements", "type")
    operator: str = means(
        "Operator of reductions; after `avg`, sums are divided by the number of ranks", "operator"
    )
    root: Count = means("Root; 0 if the collective has none", "root")
    time_s: Seconds = means("Time of one execution on this machine", "time")
    algorithm_bandwidth: GigabytesPerSecond = means(
        "Bytes of the buffer divided by the time: algbw in nccl-tests", "algbw"
    )
    bus_bandwidth: GigabytesPerSecond = means("Bus bandwidth: busbw in nccl-tests", "busbw")
    wrong: Count = means(
        "Number of output elements that differ from the definition of the collective", "wrong"
    )
    library_time_s: Seconds | None = means(
        "Time of the MPI library's own collective", "library", absent="no MPI library ran"
    )
    differing: Count | None = means(
        "Number of output elements that differ from the MPI library's own collective",
        "differing",
        absent="no MPI library ran",
    )
    in_network: bool = means(
        "Whether switches add or multicast in the plan; here, each of these transfers runs as "
        "messages between pairs of ranks"
    )
    verified: bool = means("Whether all elements are correct")


def compute(parameters: Run, watch: Watch) -> Iterator[RunRow]:
    """Executes a schedule in each of its modes, once per size.

    Raises
    ------
    OpticollError
        Any reason that `opticoll.plan` lists, the schedule violates a rule, MPI is missing, or a
        rank dies or waits for a message that never arrives.
    """
    sizes = (parameters.size or DEFAULT_SIZE).split(",")
    time_limit_s = parse_time(parameters.time_limit) / PICOSECONDS
    if parameters.on == "mpi":
        mpi.check()
    words = _mpi_words(parameters)
    if parameters.ranks is not None and not names_file(parameters.source):
        if parameters.fabric is not None:
            raise UsageError("--ranks is for a file, or a collective without --fabric")
        parameters = replace(
            parameters, fabric=f"fully_connected:ranks={parameters.ranks}", ranks=None
        )
    jobs = []
    for size in sizes:
        program, name = _program(parameters, size, watch)
        payload = payload_of(program.collective, size.strip(), parameters.type, parameters.operator)
        for in_place, used in ((False, program.out_of_place), (True, program.in_place)):
            if used:
                jobs.append((mpi.Job(program, payload, in_place, parameters.repetitions), name))
    if parameters.on == "process":
        for job, name in jobs:
            watch.update(f"carrying out {name}", 0, 0)
            ended = in_process.carry_out(
                job.program, job.payload, in_place=job.in_place, repetitions=job.repetitions
            )
            yield _row(parameters, job, name, ended)
        return
    alone = [job for job, _ in jobs]
    if mpi.launched():
        all_ended = mpi.as_rank(alone, time_limit_s)
    else:
        all_ended = mpi.carry_out(alone, time_limit_s, words=words)
    for (job, name), ended in zip(jobs, all_ended, strict=True):
        yield _row(parameters, job, name, ended)


def _mpi_words(parameters: Run) -> list[str]:
    """Returns the words of `--mpi-args`."""
    if parameters.mpi_args is None:
        return []
    if parameters.on != "mpi":
        raise UsageError("--mpi-args is for --on mpi")
    if mpi.launched():
        raise UsageError("--mpi-args: the processes run already; give the words to their launcher")
    try:
        return shlex.split(parameters.mpi_args)
    except ValueError as error:
        raise UsageError(f"--mpi-args: `{parameters.mpi_args}`: {error}") from None


def _program(parameters: Run, size: str, watch: Watch) -> tuple[Program, str]:
    """Returns the verified program to execute, and the name of its schedule."""
    if isinstance(parameters.source, str) and names_file(parameters.source):
        form = imported.format_of(parameters.source, parameters.format)
        if form.holds == "program":
            program = imported.read_program(parameters.source, form.name)
            imported.check_ranks(program.collective.ranks, None, parameters.ranks)
            refuse_violated(program, parameters.source, form.name)
            return program, program.name or parameters.source
        plan = obtain(parameters, parameters.wavelength, watch)
    else:
        plan = obtain(replace(parameters, size=size.strip()), parameters.wavelength, watch)
    violations = verify_once(plan)
    if violations:
        raise refuted(plan, violations)
    program = Program.from_plan(plan)
    refuse_violated(program, plan.algorithm, "plan")
    return program, plan.algorithm


def _row(parameters: Run, job: mpi.Job, name: str, ended: in_process.Ended) -> RunRow:
    payload = job.payload
    collective = payload.collective
    rates = bandwidths(collective.kind, collective.ranks, payload.size_bytes, ended.seconds)
    algorithm, bus = rates or (0.0, 0.0)
    return RunRow.of(
        payload,
        collective,
        ended,
        collective=collective.kind,
        schedule=name,
        on=parameters.on,
        mode="in place" if job.in_place else "out of place",
        type=payload.element_type,
        time_s=ended.seconds,
        algorithm_bandwidth=algorithm,
        bus_bandwidth=bus,
        library_time_s=ended.library_seconds,
        in_network=job.program.in_network,
        verified=ended.wrong == 0 and not ended.differing,
    )


TABLE_COLUMNS = (
    *("size_bytes", "chunks", "elements", "type", "operator", "root", "mode", "time_s"),
    *("algorithm_bandwidth", "bus_bandwidth", "wrong"),
)
LIBRARY_COLUMNS = ("library_time_s", "differing")


_WITHOUT_SWITCHES = (
    "Switches add and multicast in this plan. Here, each of these transfers ran as messages "
    "between pairs of ranks."
)


def _text(parameters: Run, rows: list[RunRow]) -> str:
    first = rows[0]
    who = "one process" if first.on == "process" else "MPI processes"
    with_library = first.library_time_s is not None
    names = dict.fromkeys(row.schedule for row in rows)
    right = all(row.verified for row in rows)
    against = "the definition" + (" and the MPI library's own collective" if with_library else "")
    verdict = f"every byte equals {against}" if right else f"BYTES DIFFER from {against}"
    return "\n".join(
        [
            f"{', '.join(names)}: {first.collective} by {plural(first.ranks, 'rank')}, by {who}",
            table(rows, TABLE_COLUMNS + LIBRARY_COLUMNS if with_library else TABLE_COLUMNS),
            verdict,
            *([_WITHOUT_SWITCHES] if first.in_network else []),
            "Times are of processes on this machine; they say nothing of a fabric.",
        ]
    )


COMMAND = Command(
    name="run",
    example="opticoll run all_reduce --ranks 8 --type bfloat16 --op avg",
    parameters=Run,
    rows=RunRow,
    compute=compute,
    text=_text,
    progress_label="carrying out",
    files=(rows_file(),),
)
command_line = on_command_line(COMMAND)
