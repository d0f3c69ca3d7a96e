"""Command `verify`: checks a plan or a program, and lists all violations."""

from collections.abc import Iterator
from dataclasses import dataclass

from opticoll.cli.arguments import FileSource, check_planned, names_file, obtain, plan_key
from opticoll.cli.options import WavelengthOption
from opticoll.cli.runner import Command, on_command_line
from opticoll.inputs import imported
from opticoll.inputs.fabric_files import to_fabric
from opticoll.inputs.plan_cache import verify_once
from opticoll.outputs.rows import Row
from opticoll.outputs.verification import (
    ProgramProofRow,
    ProofRow,
    program_proof_rows,
    program_text,
    proof_row,
    proof_text,
)
from opticoll.outputs.watch import Watch


@dataclass(frozen=True, kw_only=True)
class Parameters(FileSource):
    """Parameters of `opticoll verify`."""

    wavelength: WavelengthOption = None


def compute(parameters: Parameters, watch: Watch) -> Iterator[ProofRow | ProgramProofRow]:
    """Verifies a plan, or a program in each of its modes.

    Raises
    ------
    OpticollError
        The file is no plan or program; also any error that the docstring of `opticoll.plan` lists.
    """
    check_planned(parameters.source, parameters.size, parameters.settings)
    if names_file(parameters.source):
        form = imported.format_of(parameters.source, parameters.format)
        if form.holds == "program":
            fabric = None if parameters.fabric is None else to_fabric(parameters.fabric)
            program = imported.read_program(parameters.source, form.name)
            imported.check_ranks(program.collective.ranks, fabric, parameters.ranks)
            yield from program_proof_rows(program, parameters.source, form.name, fabric)
            return
    plan = obtain(parameters, parameters.wavelength, watch, as_exported=False)
    yield proof_row(plan, verify_once(plan))


def _text(parameters: Parameters, rows: list[Row]) -> str:
    programs = [row for row in rows if isinstance(row, ProgramProofRow)]
    plans = [proof_text(row.plan, row) for row in rows if isinstance(row, ProofRow)]
    return "\n".join(plans) if plans else program_text(programs)


COMMAND = Command(
    name="verify",
    example="opticoll plan all_gather --fabric optree_paper:ranks=64 --output tree.plan\n"
    "opticoll verify tree.plan",
    parameters=Parameters,
    rows=(ProofRow, ProgramProofRow),
    compute=compute,
    text=_text,
    progress_label="verifying",
    shape="row or rows",
    cache_key=lambda parameters: plan_key(parameters.source, parameters, parameters.wavelength),
)
command_line = on_command_line(COMMAND)
