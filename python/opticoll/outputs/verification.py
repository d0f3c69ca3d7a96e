"""Results of the verifier for a plan or program, as rows and as text.

>>> import opticoll
>>> plan = opticoll.plan("all_gather", "wdm_ring:ranks=3,wavelengths=1", "ring")
>>> print(proof_text(plan, proof_row(plan, plan.verify())))
ring: all_gather on 3 ranks, 2 slots, 6 transfers
verified: yes: the data arrive, no transfer comes too early, no lightpaths collide
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

from opticoll import errors
from opticoll._core import Fabric, Plan, Program, Violation
from opticoll.outputs.layout import and_more, plural
from opticoll.outputs.rows import OMITTED, Row, command_field, hidden, means
from opticoll.outputs.units import Count, Positive

MAX_VIOLATIONS = 20
"""Maximum number of violations in the text output; JSON contains all violations."""


Mode = Literal["in place", "out of place"]

Form = Literal["full", "rotation_symmetric", "pipelined"]

FORM = (
    "Form in which the plan is stored: `full`, every transfer; `rotation_symmetric`, the "
    "transfers of rank 0, which stand for their rotations; `pipelined`, the transfers of the "
    "first chunks"
)
ON_WAVELENGTHS = "Number of wavelengths on which each transfer of a pipelined plan repeats"
PIPELINE_PIECES = (
    "Number of chunks on each wavelength for which a transfer of a pipelined plan stands"
)
NOT_PIPELINED = "the plan is not pipelined"


class FibreRow(Row):
    """A directed fibre between two neighbours."""

    rank: Count = means("Rank at which the fibre starts")
    direction: Literal["cw", "ccw"] = means("Direction: clockwise or counterclockwise")
    fibre: Count = means("Index of the fibre among those in this direction")


class ViolationRow(Row):
    """A broken rule, and the place at which it is broken."""

    kind: str = means("Rule that is broken, such as `collision`, `broken_fibre` or `missing`")
    sentence: str = means("Description of the violation, one sentence")
    transfers: list[Count] = means("Transfers concerned, as indices into the plan")
    slot: Count | None = means(
        "Slot in which the violation happens", absent="the violation concerns no particular slot"
    )
    rank: Count | None = means("Rank concerned", absent="the violation concerns no particular rank")
    chunk: Count | None = means(
        "Chunk concerned", absent="the violation concerns no particular chunk"
    )
    link: FibreRow | None = means(
        "Directed fibre on which lightpaths collide, or that is broken",
        absent="the violation concerns no fibre",
    )
    wavelength: Count | None = means(
        "Wavelength concerned", absent="the violation concerns no wavelength"
    )


class PlanHead(Row):
    """Collective, algorithm and fabric of a plan."""

    collective: str = means("Collective, such as `all_gather`")
    algorithm: str = means("Algorithm as requested")
    chosen: str = means("Algorithm of the plan: the requested one, or the choice of `auto`")
    fabric: str = means("Complete specification of the fabric")
    ranks: Positive = means("Number of ranks of the fabric")
    wavelengths: Positive | None = means(
        "Number of wavelengths of each directed fibre", absent="the fabric has no wavelengths"
    )
    plan: Plan = hidden(default=None)


class SizedHead(PlanHead):
    """Collective, algorithm and fabric of a plan, with its slots and transfers."""

    steps: Count = means("Number of slots of the plan")
    transfers: Count = means("Number of transfers; on a ring each is one lightpath")


def head(plan: Plan) -> dict[str, Any]:
    """Returns the fields that all rows of plans have, and the numbers of slots and of transfers."""
    wavelengths, pieces = plan.pipeline or (None, None)
    return {
        "collective": plan.collective.kind,
        "algorithm": plan.asked,
        "chosen": plan.algorithm,
        "fabric": plan.fabric.spec,
        "ranks": plan.fabric.ranks,
        "wavelengths": plan.fabric.option("wavelengths"),
        "steps": plan.slots,
        "transfers": len(plan),
        "form": "rotation_symmetric"
        if plan.rotation_symmetric
        else "pipelined"
        if plan.pipelined
        else "full",
        "pipeline_wavelengths": wavelengths,
        "pipeline_pieces": pieces,
        "plan": plan,
    }


class ProofRow(SizedHead):
    """Proof of a plan: the verdict and all violations."""

    form: Form = means(FORM)
    pipeline_wavelengths: Count | None = means(ON_WAVELENGTHS, absent=NOT_PIPELINED)
    pipeline_pieces: Count | None = means(PIPELINE_PIECES, absent=NOT_PIPELINED)
    verified: bool = means("Whether there are no violations")
    violations: list[ViolationRow] = means("All violations of the plan")
    command: str = command_field(default=OMITTED)


class ProgramViolationRow(Row):
    """A broken rule of a program and its place, or a remark."""

    kind: str = means("Rule that is broken, such as `race`, `deadlock` or `wrong_result`")
    sentence: str = means("Description of the violation, one sentence")
    rank: Count | None = means("Rank concerned", absent="the violation concerns no particular rank")
    thread_block: Count | None = means(
        "Thread block of the rank", absent="the violation concerns no particular one"
    )
    step: Count | None = means(
        "Instruction of the thread block", absent="the violation concerns no particular one"
    )
    line: Positive | None = means(
        "Line of the file", absent="the violation concerns no particular line"
    )


class ProgramProofRow(Row):
    """Proof of a program in one mode: the verdict, all violations and remarks."""

    file: str = means("File of the program")
    format: str = means("Format of the file")
    name: str = means("Name of the program")
    collective: str = means("Collective, such as `all_gather`")
    mode: Mode = means("Whether input and output share memory")
    fabric: str | None = means(
        "Complete specification of the fabric whose links were checked",
        absent="no fabric was given",
    )
    ranks: Positive = means("Number of ranks")
    chunks: Positive = means("Number of chunks into which the collective is cut")
    thread_blocks: Count = means("Number of thread blocks of all ranks")
    instructions: Count = means("Number of instructions of all ranks")
    messages: Count = means("Number of messages between ranks; 0 if none can be executed")
    chunks_sent: Count = means("Number of chunks that the messages carry")
    verified: bool = means("Whether there are no violations")
    violations: list[ProgramViolationRow] = means("All violations of the program")
    remarks: list[ProgramViolationRow] = means("Remarks that are not violations")


class Refuted(errors.UsageError):
    """Error for a plan or program that violates a rule and therefore must not be executed.

    The verifier's row is the result of the command.
    """

    def __init__(self, message: str, row: Row, text: str, notes: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.row, self.text, self.notes = row, text, notes


def violation_rows(violations: Sequence[Violation]) -> list[ViolationRow]:
    """Returns violations as rows."""
    return [
        ViolationRow.of(violation, link=None if violation.link is None else _fibre(*violation.link))
        for violation in violations
    ]


def violation_row(kind: str, sentence: str, rank: int | None) -> ViolationRow:
    """Returns the row of a violation; `kind` is the name of the violated rule."""
    nowhere = dict.fromkeys(("slot", "chunk", "link", "wavelength"))
    return ViolationRow(kind=kind, sentence=sentence, transfers=[], rank=rank, **nowhere)


def _fibre(rank: int, direction: Any, fibre: int) -> FibreRow:
    return FibreRow(rank=rank, direction=direction, fibre=fibre)


def proof_row(
    plan: Plan, violations: Sequence[Violation], others: Sequence[ViolationRow] = ()
) -> ProofRow:
    """Returns the verdict on a plan; the list of violations has `others` first."""
    rows = [*others, *violation_rows(violations)]
    return ProofRow.of(head(plan), verified=not rows, violations=rows)


def proof_text(plan: Plan, row: ProofRow) -> str:
    """Returns the verdict on a plan, and its violations, as text."""
    head = (
        f"{algorithm_name(row.chosen, row.algorithm)}: {row.collective} on {row.ranks} ranks, "
        f"{plural(row.steps, 'slot')}, {plural(row.transfers, 'transfer')}"
    )
    proved = verdict(row.violations, electrical=plan.fabric.electrical)
    return "\n".join([head, f"verified: {proved}", *violation_lines(row.violations)])


def refuted(
    plan: Plan,
    violations: Sequence[Violation],
    others: Sequence[ViolationRow] = (),
    notes: Sequence[str] = (),
) -> Refuted:
    """Returns the error for a plan that violates a rule and therefore must not be executed."""
    row = proof_row(plan, violations, others)
    message = f"the plan of `{plan.asked}` is violated: {row.violations[0].sentence}"
    return Refuted(message, row, proof_text(plan, row), notes)


def program_proof_rows(
    program: Program, file: str, form: str, fabric: Fabric | None = None
) -> Iterator[ProgramProofRow]:
    """Verifies a program in each mode that the program supports, and yields a row per mode."""
    modes: tuple[tuple[Mode, bool], ...] = (
        ("in place", program.in_place),
        ("out of place", program.out_of_place),
    )
    for mode, used in modes:
        if not used:
            continue
        proof = program.verify(in_place=mode == "in place", fabric=fabric)
        yield ProgramProofRow.of(
            proof,
            program,
            program.collective,
            file=file,
            format=form,
            collective=program.collective.kind,
            mode=mode,
            fabric=None if fabric is None else fabric.spec,
            instructions=len(program),
            verified=not proof.violations,
            violations=[ProgramViolationRow.of(violation) for violation in proof.violations],
            remarks=[ProgramViolationRow.of(remark) for remark in proof.remarks],
        )


def program_text(rows: Sequence[ProgramProofRow]) -> str:
    """Returns the verdict on a program in each mode, and the violations, as text."""
    first = rows[0]
    lines = [
        f"{first.name or first.file}: {first.collective} on {first.ranks} ranks, "
        f"{plural(first.thread_blocks, 'thread block')}, "
        f"{plural(first.instructions, 'instruction')}, {plural(first.messages, 'message')}"
    ]
    for row in rows:
        proved = (
            f"NO: {plural(len(row.violations), 'violation')}"
            if row.violations
            else "yes: the data arrive, nothing waits for ever, no accesses race"
        )
        lines += [f"verified {row.mode}: {proved}", *violation_lines(row.violations)]
        if row.remarks:
            lines += [plural(len(row.remarks), "remark"), *violation_lines(row.remarks)]
    return "\n".join(lines)


def refuse_violated(program: Program, file: str, form: str, fabric: Fabric | None = None) -> None:
    """Raises Refuted if the program violates a rule in some mode."""
    for row in program_proof_rows(program, file, form, fabric):
        if row.violations:
            message = f"`{row.file}` is violated: {row.violations[0].sentence}"
            raise Refuted(message, row, program_text([row]))


def algorithm_name(chosen: str, requested: str) -> str:
    """Returns the name of a plan's algorithm; if a planner chose the algorithm, names the planner.

    >>> algorithm_name("ring", "auto"), algorithm_name("ring", "ring")
    ('ring (chosen by auto)', 'ring')
    """
    return chosen if chosen == requested else f"{chosen} (chosen by {requested})"


def verdict(violations: Sequence[ViolationRow], *, electrical: bool = False) -> str:
    """Returns the verdict on a plan with these violations, as text."""
    if violations:
        return f"NO: {plural(len(violations), 'violation')}"
    light = "" if electrical else ", no lightpaths collide"
    return f"yes: the data arrive, no transfer comes too early{light}"


def violation_lines(
    violations: Sequence[ViolationRow] | Sequence[ProgramViolationRow],
) -> list[str]:
    """Returns one sentence per violation, up to a limit, and the number of further violations."""
    lines = [
        f"  {violation.kind}: {violation.sentence}"
        + (f" (line {line})" if (line := violation.get("line")) else "")
        for violation in violations[:MAX_VIOLATIONS]
    ]
    return [*lines, *(f"  {more}" for more in and_more(len(violations), MAX_VIOLATIONS))]
