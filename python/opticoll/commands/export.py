"""A plan as a file that other programs read."""

# Not `from __future__ import annotations`: cyclopts reads the types of a dataclass at run time.

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from opticoll._core import Plan, Program
from opticoll.arguments import Source, check_planned, obtain
from opticoll.errors import UsageError
from opticoll.formats import FORMATS, Format
from opticoll.formats.atomic import check_writable
from opticoll.layout import plural
from opticoll.options import WavelengthOption
from opticoll.proof import PlanHead, algorithm_name, head
from opticoll.registry import canonical, nearest
from opticoll.rows import Count, hidden, means
from opticoll.runner import Command, File, Watch, on_command_line

COLUMNS = ("slot", "action", "chunk", "count", "source", "destination")
"""Columns of a table of transfers, before the fields of their light."""


def transfers(plan: Plan) -> list[dict[str, int | str]]:
    """The transfers of a plan in the order of its schedule; of relayed ones the light of hop 0.

    Raises
    ------
    UsageError
        There are none.
    """
    if not len(plan):
        raise UsageError("the plan has no transfers, hence no table of them; use --format plan")
    columns = {name: column.tolist() for name, column in plan.columns().items()}
    fields = {"action": ["copy", "reduce"], **plan.fabric.light_fields}
    for name, words in fields.items():
        columns[name] = [words[one] if one < len(words) else one for one in columns[name]]
    names = [*COLUMNS, *plan.fabric.light_fields]
    rows = zip(*(columns[name] for name in names), strict=True)
    return [
        {"transfer": transfer, **dict(zip(names, row, strict=True))}
        for transfer, row in enumerate(rows)
    ]


CONTENTS: dict[str, Callable[[Plan], Any]] = {
    "plan": lambda plan: plan,
    "program": Program.of_plan,
    "rows": transfers,
    "schedule": lambda plan: plan,
}
"""What files of each kind hold of a plan."""

KNOWN = {one.name: one for one in FORMATS if one.writes and one.holds in CONTENTS}
"""The formats that plans are written in."""


@dataclass(frozen=True, kw_only=True)
class Asked(Source):
    """What `opticoll export` takes."""

    format: Annotated[
        str | None,
        Parameter(help=f"Format: {', '.join(KNOWN)} (default: by the ending of --output)"),
    ] = None
    wavelength: WavelengthOption = None


class ExportRow(PlanHead):
    """A plan that is written to a file."""

    steps: Count = means("Number of time slots really used")
    transfers: Count = means("Number of transfers; on a ring each is one lightpath")
    format: str = means("Format of the file")
    plan: Plan = hidden(default=None)


def compute(asked: Asked, watch: Watch) -> Iterator[ExportRow]:
    """Obtain a plan for a file.

    Raises
    ------
    OpticollError
        As for `opticoll.plan`; no file, or a format that is not known.
    """
    if "output" not in watch.files:
        raise UsageError("--output is missing; give the name of a file, such as plan.csv")
    written = _format(asked.format, watch.files["output"])
    check_planned(asked.source, asked.size, asked.settings)
    plan = obtain(asked, asked.wavelength, watch)
    yield ExportRow.of(head(plan), format=written.name, plan=plan)


def _format(name: str | None, path: Path) -> Format:
    """The format with a name, or by the ending of a file."""
    if name is not None:
        found = canonical(name, KNOWN)
        if found is None:
            raise UsageError(f"--format: there is no `{name}`{nearest(name, KNOWN)}")
        return KNOWN[found]
    for one in KNOWN.values():
        if path.name.lower().endswith(one.suffixes):
            return one
    endings = " or ".join(ending for one in KNOWN.values() for ending in one.suffixes)
    raise UsageError(f"--output: `{path}` must end in {endings}; or give --format")


def _text(asked: Asked, rows: list[ExportRow]) -> str:
    (row,) = rows
    return (
        f"{algorithm_name(row.chosen, row.algorithm)}: {row.collective} on {row.ranks} ranks, "
        f"{plural(row.steps, 'slot')}, {plural(row.transfers, 'transfer')}, as {row.format}"
    )


def _write(asked: Asked, rows: list[ExportRow], path: Path) -> list[Path]:
    """Write the plan; of what has no words for light and slots, the plan file beside it."""
    (row,) = rows
    one = KNOWN[row.format]
    one.write(CONTENTS[one.holds](row.plan), path)
    if one.holds not in ("program", "schedule") or row.plan.fabric.electrical:
        return [path]
    beside = path.with_name(f"{path.name}.plan")
    KNOWN["plan"].write(row.plan, beside)
    return [path, beside]


COMMAND = Command(
    name="export",
    example="opticoll export tree.plan --output transfers.csv",
    asks=Asked,
    gives=ExportRow,
    compute=compute,
    text=_text,
    doing="planning",
    shape="row",
    files=(
        File(
            "output",
            "File for the plan (required)",
            _write,
            check_writable,
        ),
    ),
)
command_line = on_command_line(COMMAND)
