"""Whether a plan is right, and everything that is wrong with it."""

# Not `from __future__ import annotations`: cyclopts reads the types of a dataclass at run time.

from collections.abc import Iterator
from dataclasses import dataclass, replace

from opticoll.arguments import Source, check_planned, obtain, plan_key
from opticoll.once import verify_once
from opticoll.options import WavelengthOption
from opticoll.proof import ProofRow, proof_row, proof_text
from opticoll.runner import Command, Watch, on_command_line


@dataclass(frozen=True, kw_only=True)
class Asked(Source):
    """What `opticoll verify` takes."""

    wavelength: WavelengthOption = None


def compute(asked: Asked, watch: Watch) -> Iterator[ProofRow]:
    """Verify a plan.

    Raises
    ------
    OpticollError
        As for `opticoll.plan`; a file that is no plan.
    """
    check_planned(asked.source, asked.size, asked.settings)
    plan = obtain(asked, asked.wavelength, watch)
    yield replace(proof_row(plan, verify_once(plan)), plan=plan)


def _text(asked: Asked, rows: list[ProofRow]) -> str:
    return proof_text(rows[0].plan, rows[0])


COMMAND = Command(
    name="verify",
    example="opticoll verify tree.plan",
    asks=Asked,
    gives=ProofRow,
    compute=compute,
    text=_text,
    doing="verifying",
    shape="row",
    shares=lambda asked: plan_key(asked.source, asked, asked.wavelength),
)
command_line = on_command_line(COMMAND)
