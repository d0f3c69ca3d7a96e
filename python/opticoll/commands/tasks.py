"""Command `tasks`: several tasks on one grid of tunable circuits.

>>> from opticoll.commands.tasks import Tasks, compute
>>> from opticoll.outputs.watch import Watch
>>> from opticoll.inputs.task_list import Task
>>> parameters = Tasks(fabric="wss_grid:rows=2,columns=2", tasks=[Task("all_reduce", size="1MB")])
>>> [(row.name, row.ranks, row.verified) for row in compute(parameters, Watch())]
[('all_reduce', 4, True)]
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from opticoll._core import Fabric, OpticollError, parse_time, simulate_tasks, task_conflicts
from opticoll._core import plan as core_plan
from opticoll.cli.option_types import argument, option
from opticoll.cli.runner import Command, on_command_line, rows_file
from opticoll.errors import UsageError
from opticoll.inputs import task_list
from opticoll.inputs.fabric_files import to_fabric
from opticoll.inputs.task_list import Task
from opticoll.inputs.values import to_bytes
from opticoll.names import algorithm_spelling
from opticoll.outputs.layout import PICOSECONDS, plural
from opticoll.outputs.plan_row import FABRIC_LATENCY, INJECTION, latency_s
from opticoll.outputs.rows import OMITTED, Row, command_field, means, table
from opticoll.outputs.units import BitsPerSecond, Bytes, Count, Picoseconds, Positive, Seconds
from opticoll.outputs.verification import head
from opticoll.outputs.watch import Watch


@dataclass(frozen=True, kw_only=True)
class Tasks:
    """Parameters of `opticoll tasks`: a file, or in Python a grid and tasks."""

    file: Path | None = argument("File of tasks that share a wss_grid, in YAML", default=None)
    fabric: Fabric | str | None = option(parse=False)
    tasks: Sequence[Task] = option(default=(), parse=False)


class TaskRow(Row):
    """A task; its times count from the first request of all tasks."""

    name: str = means("Name of the task; its collective if the task has no name", "task")
    fabric: str = means("Complete specification of the grid with the task's nodes")
    collective: str = means("Collective")
    algorithm: str = means("Algorithm as requested")
    chosen: str = means(
        "Algorithm of the plan: the requested one, or the choice of `auto`", "algorithm"
    )
    ranks: Positive = means("Number of nodes allocated to the task", "nodes")
    injection_bandwidth: BitsPerSecond = means(INJECTION)
    fabric_latency_s: Seconds = means(FABRIC_LATENCY)
    size_bytes: Bytes = means("Size of the collective")
    rounds: Positive = means("Number of times that the collective runs")
    request_s: Seconds = means("Time of the request to the arbiter", "request")
    admitted_s: Seconds = means("Time at which the arbiter grants the request", "admitted")
    start_s: Seconds = means("Time at which the switches are set", "start")
    end_s: Seconds = means("Time at which the last round ends", "end")
    end_ps: Picoseconds = means("Exact value of the time, in picoseconds")
    round_s: Seconds = means("Duration of one round")
    round_ps: Picoseconds = means("Exact length of one round, in picoseconds", "a round")
    ports: Count = means("Number of switch ports used")
    connections: Count = means(
        "Number of connections set in switches; each leads an input port and "
        "a wavelength to an output port"
    )
    arbiter_messages: Count = means("Messages of the arbiter: an answer, and one to each switch")
    control_messages_per_rank: Count = means(
        "Maximum number of control messages of a rank in one round"
    )
    concurrent_tasks: list[str] = means("Names of the tasks that run at the same time as this task")
    verified: bool = means("Whether the plan is correct and shares no port with a task in `beside`")
    violations: list[str] = means("Violations, one sentence each")
    command: str = command_field(default=OMITTED)


def compute(parameters: Tasks, watch: Watch) -> Iterator[TaskRow]:
    """Plans and verifies the tasks, and simulates them on one grid.

    Raises
    ------
    OpticollError
        The fabric is no grid, there are no tasks, or a task cannot be planned.
    """
    if parameters.file is not None:
        fabric, tasks = task_list.read(parameters.file)
    elif parameters.fabric is not None:
        fabric, tasks = to_fabric(parameters.fabric), list(parameters.tasks)
    else:
        raise UsageError("the file of tasks is missing; give one such as tasks.yaml")
    if "slow_switch" not in fabric.options:
        raise UsageError(f"tasks share the switches of a wss_grid; got {fabric.family}")
    if not tasks:
        raise UsageError("there are no tasks")
    plans, sizes = [], []
    for index, task in enumerate(tasks):
        watch.update("tasks planned", index, len(tasks))
        try:
            # Each task has its own nodes and size, and therefore its own plan.
            part = Fabric(fabric.spec, nodes=task.nodes)
            size = to_bytes(task.size)
            spelling = algorithm_spelling(task.collective, task.algorithm)
            plan = core_plan(task.collective, part, spelling, root=task.root, size_bytes=size)
        except OpticollError as error:
            raise type(error)(f"task {index} ({_name(task)}): {error}") from error
        plans.append(plan)
        sizes.append(size)
    requests = [parse_time(task.request) for task in tasks]
    rounds = [task.rounds for task in tasks]
    ran = simulate_tasks(list(zip(plans, sizes, rounds, requests, strict=True)))
    busy = [(admitted, end) for admitted, _, end, *_ in ran]
    for index, (task, plan, task_outcome) in enumerate(zip(tasks, plans, ran, strict=True)):
        admitted, start, end, arbiter, ports, settings, outcome = task_outcome
        beside = [
            other
            for other, (begun, ended) in enumerate(busy)
            if other != index and begun < end and admitted < ended
        ]
        # Check, independently of the arbiter, that no two tasks use a port at the same time.
        problems = plan.verify()
        for other in beside:
            problems += task_conflicts([plans[min(index, other)], plans[max(index, other)]])
        yield TaskRow.of(
            head(plan),
            plan.fabric,
            task,
            name=_name(task),
            fabric_latency_s=latency_s(plan.fabric),
            size_bytes=sizes[index],
            request_s=requests[index] / PICOSECONDS,
            admitted_s=admitted / PICOSECONDS,
            start_s=start / PICOSECONDS,
            end_s=end / PICOSECONDS,
            end_ps=end,
            round_s=outcome.time_ps / PICOSECONDS,
            round_ps=outcome.time_ps,
            ports=ports,
            connections=settings,
            arbiter_messages=arbiter,
            control_messages_per_rank=outcome.totals.get("control_messages_per_rank", 0),
            concurrent_tasks=[_name(tasks[other]) for other in beside],
            verified=not problems,
            violations=[problem.sentence for problem in problems],
        )


def _name(task: Task) -> str:
    return task.collective if task.name is None else task.name


TABLE_COLUMNS = (
    *("name", "chosen", "ranks", "ports", "rounds", "round_ps", "request_s", "admitted_s"),
    *("start_s", "end_s"),
)


def _text(parameters: Tasks, rows: list[TaskRow]) -> str:
    """Returns a line per task, and the violations."""
    grid = Fabric(rows[0].fabric, nodes="all").spec
    messages = sum(row.arbiter_messages for row in rows)
    notes = [
        f"the arbiter sent {plural(messages, 'message')}; a task starts when its switches are set"
    ]
    problems = [sentence for row in rows for sentence in row.violations]
    verdict = "verified: every plan, and that tasks at one time share no switch port"
    notes += [f"NOT verified: {problem}" for problem in problems] or [verdict]
    head = f"{plural(len(rows), 'task')} on {grid}"
    return "\n\n".join([head, table(rows, TABLE_COLUMNS), "\n".join(notes)])


COMMAND = Command(
    name="tasks",
    example="opticoll tasks examples/tasks.yaml",
    parameters=Tasks,
    rows=TaskRow,
    compute=compute,
    text=_text,
    progress_label="running tasks",
    files=(rows_file(),),
)
command_line = on_command_line(COMMAND)
