"""What grids of tunable circuits can do beyond a single plan: several tasks, and planning anew.

>>> import opticoll
>>> plan = opticoll.plan("all_reduce", "wss_grid:rows=4,columns=4", "halving_doubling", size="1MB")
>>> anew = opticoll.replan(plan, "dead_transceivers=5.row", "auto")
>>> anew.violations, anew.slowdown > 1
([], True)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypedDict

from opticoll._core import (
    Fabric,
    OpticollError,
    Outcome,
    Plan,
    Violation,
    parse_time,
    simulate_tasks,
    task_conflicts,
)
from opticoll._core import plan as core_plan
from opticoll._core import replan as core_replan
from opticoll.config import to_bytes, to_fabric
from opticoll.errors import UsageError
from opticoll.registry import algorithm_spelling
from opticoll.settings import Settings
from opticoll.study.comparison import PICOSECONDS, Row, measure
from opticoll.task_list import Task

__all__ = ["ReplanRow", "Replanned", "TaskRow", "replan", "replan_row", "run_tasks"]


@dataclass(frozen=True)
class Replanned:
    """A plan anew after failures, verified."""

    plan: Plan
    violations: list[Violation]
    """What the verifier says: nothing."""
    before_ps: int
    """The time on the grid as it was."""
    after_ps: int
    """The time on what is left."""

    @property
    def slowdown(self) -> float:
        """By which factor the collective takes longer."""
        return self.after_ps / self.before_ps if self.before_ps else 1.0


class ReplanRow(Row):
    """What `opticoll replan --json` prints: the row of the new plan, and what it replaces."""

    failed: str
    before_fabric: str
    before_algorithm: str
    before_time_s: float
    before_time_ps: int
    slowdown: float


class TaskRow(TypedDict):
    """One task as `opticoll tasks --json` prints it; times since the first instant of all."""

    name: str
    fabric: str
    collective: str
    algorithm: str
    chosen: str
    ranks: int
    injection_bandwidth: int
    size_bytes: int
    rounds: int
    request_s: float
    admitted_s: float
    start_s: float
    end_s: float
    end_ps: int
    round_s: float
    round_ps: int
    ports: int
    settings: int
    arbiter_messages: int
    control_messages_per_rank: int
    beside: list[str]
    verified: bool
    violations: list[str]


def replan(
    plan: Plan,
    failed: str,
    algorithm: str | None = None,
    *,
    size: str | int | None = None,
    settings: Settings,
) -> Replanned:
    """See `opticoll.replan`."""
    kind = plan.collective.kind
    spelling = None if algorithm is None else algorithm_spelling(kind, algorithm)
    bytes_ = None if size is None else to_bytes(size)
    anew, before_ps, after_ps = core_replan(plan, failed, spelling, bytes_, **settings)
    return Replanned(anew, anew.verify(), before_ps, after_ps)


def replan_row(
    before: Plan, failed: str, anew: Replanned, outcome: Outcome, size_bytes: int
) -> ReplanRow:
    """The row of a plan made anew, with its outcome."""
    row = measure(anew.plan, anew.violations, outcome, size_bytes)
    return ReplanRow(
        **row,
        failed=failed,
        before_fabric=before.fabric.spec,
        before_algorithm=before.algorithm,
        before_time_s=anew.before_ps / PICOSECONDS,
        before_time_ps=anew.before_ps,
        slowdown=anew.slowdown,
    )


def run_tasks(
    fabric: Fabric | str,
    tasks: Sequence[Task],
    progress: Callable[[str, int, int], None] | None = None,
) -> list[TaskRow]:
    """Plan, verify and run tasks on one grid; see `opticoll.tasks`."""
    machine = to_fabric(fabric)
    if machine.grid is None:
        raise UsageError(f"tasks share the switches of a wss_grid; got {machine.family}")
    if not tasks:
        raise UsageError("there are no tasks")
    plans, sizes = [], []
    for index, task in enumerate(tasks):
        if progress is not None:
            progress("tasks planned", index, len(tasks))
        try:
            # Each has its own nodes and size, and hence its own plan.
            own = Fabric(machine.spec, nodes=task.nodes)
            size = to_bytes(task.size)
            spelling = algorithm_spelling(task.collective, task.algorithm)
            made = core_plan(task.collective, own, spelling, root=task.root, size_bytes=size)
        except OpticollError as error:
            raise type(error)(f"task {index} ({_name(task)}): {error}") from error
        plans.append(made)
        sizes.append(size)
    requests = [parse_time(task.request) for task in tasks]
    rounds = [task.rounds for task in tasks]
    ran = simulate_tasks(list(zip(plans, sizes, rounds, requests, strict=True)))
    busy = [(admitted, end) for admitted, _, end, *_ in ran]
    rows = []
    for index, (task, made, found) in enumerate(zip(tasks, plans, ran, strict=True)):
        admitted, start, end, arbiter, ports, settings, outcome = found
        beside = [
            other
            for other, (begun, ended) in enumerate(busy)
            if other != index and begun < end and admitted < ended
        ]
        # The arbiter's word is not taken for it: no two tasks at one time may share a port.
        problems = made.verify()
        for other in beside:
            problems += task_conflicts([plans[min(index, other)], plans[max(index, other)]])
        rows.append(
            TaskRow(
                name=_name(task),
                fabric=made.fabric.spec,
                collective=made.collective.kind,
                algorithm=made.asked,
                chosen=made.algorithm,
                ranks=made.fabric.ranks,
                injection_bandwidth=made.fabric.injection_bandwidth,
                size_bytes=sizes[index],
                rounds=task.rounds,
                request_s=requests[index] / PICOSECONDS,
                admitted_s=admitted / PICOSECONDS,
                start_s=start / PICOSECONDS,
                end_s=end / PICOSECONDS,
                end_ps=end,
                round_s=outcome.time_ps / PICOSECONDS,
                round_ps=outcome.time_ps,
                ports=ports,
                settings=settings,
                arbiter_messages=arbiter,
                control_messages_per_rank=outcome.totals.get("control_messages_per_rank", 0),
                beside=[_name(tasks[other]) for other in beside],
                verified=not problems,
                violations=[problem.sentence for problem in problems],
            )
        )
    return rows


def _name(task: Task) -> str:
    return task.collective if task.name is None else task.name
