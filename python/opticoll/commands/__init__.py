"""Commands, one module each, with parameters, computation, rows, text and figure.

A module is imported when its command runs, so that `opticoll --help` starts quickly.
"""

from importlib import import_module
from typing import Any

__all__ = ["COMMANDS", "GROUPS", "installed"]

GROUPS = {
    "Plans": {
        "compare": "Compare algorithms on the same fabrics and sizes.",
        "plan": "Build and verify a plan; print its resources and its time.",
        "bound": "Print the optimum and lower bounds on the time of any plan.",
        "verify": "Prove a plan or a program; exit code 1 on a violation.",
        "simulate": "Time a plan: in total, by step, link or rank.",
        "show": "Show a slot of a plan as text, or a plan as a figure.",
        "import": "Prove a foreign schedule, and keep it as a plan file.",
        "export": "Write a plan for MSCCL++, or a table for NCCL or MPI.",
        "run": "Execute a plan with real bytes, in one process or by MPI.",
    },
    "Programs and shared networks": {
        "train": "Time an iteration of training.",
        "experts": "Plan and time a layer of experts with its exchanges.",
        "profile": "Time the operators of a model on a device.",
        "goodput": "Simulate failures and checkpoints of a run of training.",
        "replay": "Replay the trace of an MPI program over a network.",
        "traffic": "Simulate packets of an electrical fabric, or optical bursts.",
        "congestion": "Simulate a collective among bursts that can block it.",
        "tasks": "Run several tasks on one wss_grid, with an arbiter.",
        "replan": "Plan around failures of a fabric, and verify the new plan.",
    },
    "Studies and reference": {
        "sweep": "Compute the points of a study, and keep them in a store.",
        "results": "Show or write the results of studies in a store.",
        "report": "Make a page of studies, rows and plans to pass on.",
        "calibrate": "Fit a library or a device to measured times.",
        "list": "List algorithms, fabrics, settings and all other names.",
        "reproduce": "Recompute a paper's numbers, with a verdict on each.",
    },
}
"""Summary of each command, by group; help lists the commands in this order."""

COMMANDS = {name: summary for group in GROUPS.values() for name, summary in group.items()}
"""Summary of each command by name, which is also the name of its module."""


def installed() -> dict[str, Any]:
    """Returns the records of all installed commands by name."""
    from opticoll.errors import UsageError

    records = {}
    for name in COMMANDS:
        try:
            records[name] = import_module(f"{__name__}.{name}").COMMAND
        except UsageError:
            continue
    return records
