"""Plans from files: opticoll's own, and foreign schedules, proved and placed on a fabric.

A schedule of others names no fabric. Without one, each rank has a link to each other.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from opticoll import errors, formats
from opticoll._core import Fabric, Plan, Program, Schedule, make_plan
from opticoll.formats.content import beginning
from opticoll.inputs.fabric_files import to_fabric
from opticoll.names import resolve
from opticoll.outputs.layout import plural
from opticoll.outputs.verification import refuse_violated, refuted, violation_row

if TYPE_CHECKING:
    from opticoll.inputs.fabric_files import FabricLike

KINDS: tuple[formats.Holds, ...] = ("plan", "program", "schedule")
"""Kinds of file contents from which plans are made."""

KNOWN = {form.name: form for kind in KINDS for form in formats.formats_of(kind) if form.reads}
"""Formats from which plans are read, by name."""

SUFFIXES = tuple(suffix for form in KNOWN.values() for suffix in form.suffixes)
"""Endings of files of these formats."""


STATED_SIZE = re.compile(rb"\s*//[^\n]*\bsize=(\d+)")
"""Size of the collective in bytes, as the first comment of a GOAL file states it."""


def format_of(path: str | os.PathLike[str], name: str | None = None) -> formats.Format:
    """Returns the format with a name, else the format of the content, else that of the ending.

    Raises
    ------
    UsageError
        There is no such format, or the content is the trace of a program.
    FileError
        The file cannot be read.
    """
    if name is not None:
        return KNOWN[resolve(name, KNOWN, "--format: there is no")]
    if os.path.isdir(path):
        # Among these formats, only a Chakra trace is a folder with a file for each rank.
        return KNOWN["chakra"]
    content = beginning(path)
    for form in (*KNOWN.values(), *formats.formats_of("trace")):
        if form.shows is not None and form.shows(content):
            if form.holds == "trace":
                problem = f"`{path}` is a trace ({form.name}) and states no schedule"
                raise errors.UsageError(f"{problem}; `opticoll replay` takes it")
            return form
    named = (form for form in KNOWN.values() if Path(path).suffix.lower() in form.suffixes)
    return next(named, KNOWN["plan"])


def read_program(path: str | os.PathLike[str], name: str | None = None) -> Program:
    """Returns the program in a file.

    Raises
    ------
    OpticollError
        The file cannot be read, or is not a program.
    """
    form = format_of(path, name)
    if form.holds != "program":
        raise errors.UsageError(f"`{path}` is not a program of ranks: its format is {form.name}")
    program: Program = form.read(path)
    return program


def check_ranks(found: int, fabric: Fabric | None, ranks: int | None = None) -> None:
    """Refuses a schedule whose number of ranks differs from the fabric's or from the given number.

    Raises
    ------
    UsageError
        The numbers differ.
    """
    if fabric is not None and fabric.ranks != found:
        raise errors.UsageError(
            f"--fabric: {fabric.spec} has {plural(fabric.ranks, 'rank')}, the schedule {found}"
        )
    if ranks is not None and ranks != found:
        raise errors.UsageError(f"--ranks is {ranks}, the schedule has {plural(found, 'rank')}")


def read_plan(
    path: str | os.PathLike[str],
    name: str | None = None,
    fabric: FabricLike | None = None,
    ranks: int | None = None,
) -> tuple[Plan, list[str]]:
    """Returns the plan in a file, and notes on how it was made.

    If a file does not state the number of ranks, it is that of the fabric, or `ranks`.

    Raises
    ------
    OpticollError
        The file cannot be read, does not fit the fabric, or does not become a plan; a violation of
        a schedule of others.
    """
    form = format_of(path, name)
    on = None if fabric is None else to_fabric(fabric)
    if form.holds == "program":
        plan, notes = _raised(form.read(path), str(path), form.name, on)
    elif form.holds == "schedule":
        schedule, notes = form.read(path, ranks if ranks is not None or on is None else on.ranks)
        plan = _placed(schedule, path, form.name, on)
        stated = STATED_SIZE.match(beginning(path)) if form.name == "goal" else None
        plan = plan if stated is None else plan.with_size(int(stated[1]))
        _check_ends(plan, on if form.on_links else None, notes)
    else:
        plan, notes = form.read(path), []
        if on is not None and on.spec != plan.fabric.spec:
            notes.append(f"`{path}` was planned for {plan.fabric.spec}; it is used on {on.spec}")
            plan = moved(plan, on, f"`{path}`")
    check_ranks(plan.collective.ranks, None, ranks)
    return plan, notes


def _raised(
    program: Program, path: str, form: str, fabric: Fabric | None
) -> tuple[Plan, list[str]]:
    """Proves a program and returns its plan, with notes."""
    refuse_violated(program, path, form, fabric)
    schedule, in_vain = program.schedule(in_place=not program.out_of_place)
    plan = _placed(schedule, path, program.name or form, fabric)
    notes = []
    if in_vain:
        notes.append(
            f"{plural(in_vain, 'chunk')} skipped, because the rank that gets them has them already"
        )
    return plan, notes


def _placed(
    schedule: Schedule, path: str | os.PathLike[str], name: str, fabric: Fabric | None
) -> Plan:
    """Returns the plan of a schedule on a fabric; by default each rank has a link to each other."""
    ranks = schedule.collective.ranks
    check_ranks(ranks, fabric)
    on = fabric or Fabric(f"fully_connected:ranks={ranks}")
    try:
        return make_plan(schedule, on, _spec(name))
    except errors.ScheduleError as error:
        raise errors.ScheduleError(f"{path}: {error}") from error


def moved(plan: Plan, fabric: Fabric, what: str = "the plan") -> Plan:
    """Returns a plan moved to another fabric, such as a degraded one, with its slots and light.

    `what` names the plan in errors.

    Raises
    ------
    UsageError
        The plan states what the fabric does not have.
    """
    check_ranks(plan.collective.ranks, fabric)
    named = {name: number for number, name in enumerate(fabric.link_names)}
    before = plan.fabric.link_names

    def renumbered(route: re.Match[str]) -> str:
        """Returns a route with its links renumbered for the new fabric."""
        names = [before[int(link)] for link in route[1].split(".")]
        for name in names:
            if name not in named:
                raise errors.UsageError(
                    f"{what} sends over {name}, which {fabric.spec} does not have"
                )
        return " via " + ".".join(str(named[name]) for name in names)

    head, given, rest = plan.to_text().partition(f"\nfabric {plan.fabric.spec}\n")
    rest = re.sub(r" via ([0-9.]+)", renumbered, rest)
    try:
        return Plan.from_text(f"{head}\nfabric {fabric.spec}\n{rest}") if given else plan
    except errors.OpticollError as error:
        raise errors.UsageError(
            f"{what} is a plan for {plan.fabric.spec} and does not fit {fabric.spec}: {error}"
        ) from error


def read_fitting(path: Path, fabric: Fabric | None) -> tuple[Plan, list[str]]:
    """Returns the plan in a plan file, moved to a fabric if one is given, and notes on the move.

    Raises
    ------
    UsageError
        It is not right there.
    """
    plan, _ = read_plan(path, "plan")
    note = f"`{path}` is used, which was exported as this file"
    if fabric is None or plan.fabric.spec == fabric.spec:
        return plan, [note]
    note += f"; it was planned for {plan.fabric.spec}, and is used on {fabric.spec}"
    return fitting(plan, fabric), [note]


def fitting(plan: Plan, fabric: Fabric) -> Plan:
    """Moves a plan to another fabric and verifies it there.

    Raises
    ------
    UsageError
        The plan states what the fabric does not have, or breaks one of its rules.
    """
    moved_plan = moved(plan, fabric)
    violations = moved_plan.verify()
    if violations:
        raise errors.UsageError(violations[0].sentence)
    return moved_plan


def _check_ends(plan: Plan, fabric: Fabric | None, notes: list[str]) -> None:
    """Refuses a schedule that leaves out ranks or uses links that the fabric does not have.

    Raises
    ------
    Refuted
        Some are; these problems come first, then the violations of the verifier.
    """
    columns = plan.columns()
    busy = {int(rank) for name in ("source", "destination") for rank in columns[name]}
    collective = plan.collective
    alone = set(range(collective.ranks)) - busy if collective.ranks > 1 else set[int]()
    part = f"so it has no part in the {collective.kind}"
    wrong = [
        violation_row("left_out", f"rank {rank} neither sends nor receives, {part}", rank)
        for rank in sorted(alone)
    ]
    if fabric is not None:
        found = Program.from_plan(plan).verify(in_place=False, fabric=fabric).violations
        wrong += [
            violation_row(violation.kind, violation.sentence, violation.rank)
            for violation in found
            if violation.kind == "no_link"
        ]
    if wrong:
        raise refuted(plan, plan.verify(), wrong, notes)


def _spec(name: str) -> str:
    """Returns a name in the form that plan files allow for names of algorithms."""
    return re.sub(r"[^A-Za-z0-9_.]+", "_", name)[:255]
