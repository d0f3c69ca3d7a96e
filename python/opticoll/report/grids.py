"""Plans made anew after failures, and tasks that share a grid, as plain text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opticoll.report.layout import align, human_time, plural
from opticoll.report.text import plan_summary

if TYPE_CHECKING:
    from opticoll._core import Fabric, Plan
    from opticoll.study.grids import ReplanRow, TaskRow

__all__ = ["replanned", "tasks_text"]

PICOSECONDS = 10**12


def replanned(plan: Plan, row: ReplanRow) -> str:
    """The plan, and how much longer it takes than the one that it replaces."""
    before, after = human_time(row["before_time_ps"]), human_time(row["time_ps"])
    facts = [
        ["failed", row["failed"]],
        ["before", f"{row['before_algorithm']}: {before}"],
        ["now", f"{row['chosen']}: {after}, {row['slowdown']:.4g} times as long"],
    ]
    return f"{align(facts)}\n\n{plan_summary(plan, row)}"


def tasks_text(fabric: Fabric, rows: list[TaskRow]) -> str:
    """A line for each task, and what is wrong."""

    def moment(time_s: float) -> str:
        return human_time(round(time_s * PICOSECONDS))

    heading = [
        "task",
        "algorithm",
        "nodes",
        "ports",
        "rounds",
        "a round",
        "request",
        "admitted",
        "start",
        "end",
    ]
    cells = [
        [
            row["name"],
            row["chosen"],
            str(row["ranks"]),
            str(row["ports"]),
            str(row["rounds"]),
            human_time(row["round_ps"]),
            *(moment(row[key]) for key in ("request_s", "admitted_s", "start_s", "end_s")),
        ]
        for row in rows
    ]
    messages = sum(row["arbiter_messages"] for row in rows)
    notes = [
        f"{plural(len(rows), 'task')} on {fabric.spec}",
        f"the arbiter sent {plural(messages, 'message')}; a task starts when its switches are set",
    ]
    problems = [sentence for row in rows for sentence in row["violations"]]
    verdict = "verified: every plan, and that tasks at one time share no switch port"
    notes += [f"NOT verified: {one}" for one in problems] or [verdict]
    table = align(cells, heading, right=range(2, len(heading)))
    return "\n\n".join([notes[0], table, "\n".join(notes[1:])])
