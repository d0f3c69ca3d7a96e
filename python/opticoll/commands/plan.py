"""Command `plan`: builds, verifies and simulates a plan."""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from opticoll._core import OpticollError, Plan
from opticoll.cli.arguments import PlanOptions, plan_key
from opticoll.cli.option_types import argument
from opticoll.cli.options import WavelengthOption
from opticoll.cli.runner import Command, bom_file, on_command_line, plan_file
from opticoll.inputs.request import Request, read_options
from opticoll.inputs.settings import Settings
from opticoll.names import DEFAULT_ALGORITHM
from opticoll.outputs.layout import PICOSECONDS, human_seconds, wrapped
from opticoll.outputs.plan_row import PlanRow, measured, plan_summary
from opticoll.outputs.rows import means
from opticoll.outputs.units import Seconds
from opticoll.outputs.watch import Watch


@dataclass(frozen=True, kw_only=True)
class Parameters(PlanOptions):
    """Parameters of `opticoll plan`."""

    collective: str = argument("Collective, such as all_gather")
    wavelength: WavelengthOption = None


HELD_POLICY = "on_change"
"""Policy with which circuits stay up until other circuits are needed."""

PAPER_POLICY = "every_step"
"""Policy that papers assume, and the default on rings."""

BOUNDED_ALGORITHM = "auto:budget=10s"
"""Algorithm for `HELD_POLICY`: `auto`, with a time limit of 10 s because of the largest rings."""

MIN_NOTED_RATIO = 1.1
"""Ratio of times above which the text also mentions the time with `HELD_POLICY`."""

UNHELD = (
    f"the policy is not `{PAPER_POLICY}`, or the circuits of the fabric have no `{HELD_POLICY}`"
)


class PlannedRow(PlanRow):
    """A plan, and its time if circuits stay up between slots."""

    on_change_time_s: Seconds | None = means(
        f"Time under the policy `{HELD_POLICY}`, under which circuits stay up until others are "
        "needed. It is the time of the same plan, or, if `auto` chose the plan, of the plan that "
        f"`auto` chooses for `{HELD_POLICY}` within a budget of 10 s",
        absent=UNHELD,
    )
    on_change_algorithm: str | None = means(
        "Algorithm of the plan that takes `on_change_time_s`", absent=UNHELD
    )


def _key(parameters: Parameters) -> Hashable:
    """Returns the key under which the plan is cached."""
    return plan_key(parameters.collective, parameters, parameters.wavelength)


def compute(parameters: Parameters, watch: Watch) -> Iterator[PlannedRow]:
    """Builds a plan, verifies the plan, and simulates it.

    Raises
    ------
    OpticollError
        Any reason that `opticoll.plan` lists.
    """
    request = read_options(parameters.collective, parameters, parameters.wavelength)
    plan, violations = request.proved(partial(_key, parameters), watch.try_candidate)
    size_bytes = request.size_bytes
    assert size_bytes is not None
    row, outcome = measured(plan, violations, size_bytes, request.settings, watch)
    with_circuits_up = (
        _held(plan, size_bytes, request, watch) if outcome.policy == PAPER_POLICY else {}
    )
    yield PlannedRow.of(row, **with_circuits_up)


def _held(plan: Plan, size_bytes: int, request: Request, watch: Watch) -> dict[str, Any]:
    """Returns the time and the algorithm if circuits stay up between slots.

    The result is empty if there is no valid plan for this policy.
    """
    settings: Settings = {**request.settings, "policy": HELD_POLICY}
    try:
        if plan.asked == DEFAULT_ALGORITHM:
            plan = replace(request, algorithm=BOUNDED_ALGORITHM, settings=settings).plan(
                watch.try_candidate
            )
        outcome = plan.simulate(size_bytes, **settings)
    except OpticollError:
        return {}
    if plan.verify():
        return {}
    return {
        "on_change_time_s": outcome.time_ps / PICOSECONDS,
        "on_change_algorithm": plan.algorithm,
    }


def _text(parameters: Parameters, rows: list[PlannedRow]) -> str:
    (row,) = rows
    text = plan_summary(row.plan, row)
    if row.on_change_time_s is None or row.time_s <= MIN_NOTED_RATIO * row.on_change_time_s:
        return text
    sentence = (
        f"{PAPER_POLICY}, the rule of papers, sets up all circuits anew for every slot. If "
        f"circuits stay up (--policy {HELD_POLICY}), {row.on_change_algorithm} takes "
        f"{human_seconds(row.on_change_time_s)}"
    )
    if row.on_change_time_s:
        sentence += f": {PAPER_POLICY} takes {row.time_s / row.on_change_time_s:.3g} times as long"
    return "\n".join([text, "", *wrapped([sentence], 0)])


COMMAND = Command(
    name="plan",
    example="opticoll plan all_gather --fabric optree_paper",
    parameters=Parameters,
    rows=PlannedRow,
    compute=compute,
    text=_text,
    progress_label="planning",
    shape="row",
    files=(plan_file("File for the plan; the ending .zst compresses it"), bom_file()),
    cache_key=_key,
)
command_line = on_command_line(COMMAND)
