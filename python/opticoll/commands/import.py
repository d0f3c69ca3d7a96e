"""Command `import`: verifies a foreign schedule and writes it as a plan file."""

from collections.abc import Iterator
from dataclasses import dataclass

from opticoll import exports
from opticoll.cli.arguments import PartOptions
from opticoll.cli.option_types import argument, option
from opticoll.cli.options import InputFormatOption, InputRanksOption
from opticoll.cli.runner import Command, on_command_line, plan_file
from opticoll.errors import UsageError
from opticoll.inputs import imported
from opticoll.inputs.fabric_files import to_fabric
from opticoll.inputs.plan_cache import verify_once
from opticoll.outputs.layout import plural
from opticoll.outputs.rows import means
from opticoll.outputs.verification import SizedHead, head, refuted
from opticoll.outputs.watch import Watch


@dataclass(frozen=True, kw_only=True)
class Import(PartOptions):
    """Parameters of `opticoll import`."""

    fabric: str | None = option(
        "Fabric of a foreign schedule: a preset, family:key=value,..., a file, or your own "
        "module:function (default: a link between every two ranks)"
    )
    file: str = argument("File of a schedule, such as theirs.xml")
    format: InputFormatOption = None
    ranks: InputRanksOption = None


class ImportRow(SizedHead):
    """A schedule that was proved on a fabric and written as a plan."""

    file: str = means("File that was read")
    format: str = means("Format of the file that was read")


def compute(parameters: Import, watch: Watch) -> Iterator[ImportRow]:
    """Reads a schedule, places it on a fabric, and verifies the plan.

    Raises
    ------
    OpticollError
        The file is no schedule, the fabric is unknown or has another number of ranks, the schedule
        violates a rule, or no file for the plan is given.
    """
    if "output" not in watch.files:
        raise UsageError("--output is missing; give the name of a file, such as theirs.plan")
    form = imported.format_of(parameters.file, parameters.format)
    fabric = None if parameters.fabric is None else to_fabric(parameters.fabric)
    plan, notes = imported.read_plan(parameters.file, form.name, fabric, parameters.ranks)
    watch.notes += [*notes, *exports.unused_plan_notes(parameters.file)]
    violations = verify_once(plan)
    if violations:
        raise refuted(plan, violations)
    yield ImportRow.of(head(plan), file=parameters.file, format=form.name)


def _text(parameters: Import, rows: list[ImportRow]) -> str:
    (row,) = rows
    return (
        f"{row.algorithm}: {row.collective} on {row.ranks} ranks, {plural(row.steps, 'slot')}, "
        f"{plural(row.transfers, 'transfer')}, from {row.format}, proved"
    )


COMMAND = Command(
    name="import",
    example="opticoll export all_reduce --fabric torus:dims=2x4 --output ours.xml\n"
    "opticoll import ours.xml --output ours.plan",
    parameters=Import,
    rows=ImportRow,
    compute=compute,
    text=_text,
    progress_label="reading",
    shape="row",
    files=(plan_file("File for the plan (required); the ending .zst compresses it"),),
)
command_line = on_command_line(COMMAND)
