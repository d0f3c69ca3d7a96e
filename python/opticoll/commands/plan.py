"""A plan, verified and timed."""

# Not `from __future__ import annotations`: cyclopts reads the types of a dataclass at run time.

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

import opticoll
from opticoll.arguments import PlanOptions, build, plan_key, simulate, size_of
from opticoll.once import verify_once
from opticoll.options import WavelengthOption
from opticoll.plan_row import PlanRow, plan_row, plan_summary
from opticoll.runner import Command, Watch, on_command_line, text_file


@dataclass(frozen=True, kw_only=True)
class Asked(PlanOptions):
    """What `opticoll plan` takes."""

    collective: Annotated[str, Parameter(help="Collective, such as all_gather")] = field(
        kw_only=False
    )
    wavelength: WavelengthOption = None


def compute(asked: Asked, watch: Watch) -> Iterator[PlanRow]:
    """Build a plan, verify and simulate it.

    Raises
    ------
    OpticollError
        As for `opticoll.plan`.
    """
    plan = build(asked.collective, asked, asked.wavelength, watch)
    size_bytes = size_of(plan, asked.size, asked.demand)
    violations = verify_once(plan)
    outcome = simulate(plan, size_bytes, asked.settings, watch)
    yield replace(plan_row(plan, violations, outcome, size_bytes), plan=plan)


def _text(asked: Asked, rows: list[PlanRow]) -> str:
    return plan_summary(rows[0].plan, rows[0])


def _write(asked: Asked, rows: list[PlanRow], path: Path) -> None:
    opticoll.write_plan(rows[0].plan, path)


COMMAND = Command(
    name="plan",
    example="opticoll plan all_gather --fabric optree_paper",
    asks=Asked,
    gives=PlanRow,
    compute=compute,
    text=_text,
    doing="planning",
    shape="row",
    files=(
        text_file("output", "File for the plan; the ending .zst compresses it", "plan", _write),
    ),
    shares=lambda asked: plan_key(asked.collective, asked, asked.wavelength),
)
command_line = on_command_line(COMMAND)
