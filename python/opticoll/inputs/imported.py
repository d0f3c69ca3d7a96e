"""Plans from files: opticoll's own plan files, and schedules in foreign formats.

A foreign schedule names no fabric. Without a fabric, every two ranks have a link.
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
from opticoll.outputs.fabric_names import fabric_text, remember, short_name
from opticoll.outputs.layout import plural
from opticoll.outputs.verification import refuse_violated, refuted, violation_row

if TYPE_CHECKING:
    from opticoll.inputs.fabric_files import FabricLike

KINDS: tuple[formats.Holds, ...] = ("plan", "program", "schedule")
"""Kinds of file contents that can be converted to plans."""

KNOWN = {form.name: form for kind in KINDS for form in formats.formats_of(kind) if form.reads}
"""Formats that can be read as plans, by name."""

SUFFIXES = tuple(suffix for form in KNOWN.values() for suffix in form.suffixes)
"""Endings of the files in the formats `KNOWN`."""


def is_plan_file(name: str) -> bool:
    """Returns whether a name ends like a file that can be read as a plan.

    >>> is_plan_file("mine.plan.zst"), is_plan_file("ring")
    (True, False)
    """
    return name.endswith(SUFFIXES)


STATED_SIZE = re.compile(rb"\s*//[^\n]*\bsize=(\d+)")
"""Pattern of the collective's size in bytes in the first comment of a GOAL file."""


def format_of(path: str | os.PathLike[str], name: str | None = None) -> formats.Format:
    """Returns the format `name`, or else the format that the content or the ending shows.

    Raises
    ------
    UsageError
        There is no such format.
    ConfigError
        The content is neither a plan nor a schedule.
    FileError
        The file cannot be read.
    """
    if name is not None:
        return KNOWN[resolve(name, KNOWN, "--format: there is no")]
    if os.path.isdir(path):
        # Among these formats, only Chakra traces are a folder, with a file for each rank.
        return KNOWN["chakra"]
    form = formats.recognized_format(beginning(path), path, "a plan or schedule", *KINDS)
    ending = Path(path).suffix.lower()
    named = [
        form
        for form in KNOWN.values()
        if ending and any(suffix.endswith(ending) for suffix in form.suffixes)
    ]
    if form is None and len(named) > 1:
        names = ", ".join(form.name for form in named)
        raise errors.ConfigError(
            f"`{path}` has the content of no format that ends in {ending} ({names}); to read it "
            "as one of them, give --format to `opticoll verify` or `opticoll import`"
        )
    return form or next(iter(named), KNOWN["plan"])


def read_program(path: str | os.PathLike[str], name: str | None = None) -> Program:
    """Reads a program of ranks from a file.

    Raises
    ------
    OpticollError
        The file cannot be read, or contains no program.
    """
    form = format_of(path, name)
    if form.holds != "program":
        raise errors.UsageError(f"`{path}` is not a program of ranks: its format is {form.name}")
    program: Program = form.read(path)
    return program


def check_ranks(count: int, fabric: Fabric | None, ranks: int | None = None) -> None:
    """Checks that a schedule has as many ranks as the fabric, and as many ranks as requested.

    Raises
    ------
    UsageError
        The numbers of ranks differ.
    """
    if fabric is not None and fabric.ranks != count:
        raise errors.UsageError(
            f"--fabric: {fabric_text(fabric.spec)} has {plural(fabric.ranks, 'rank')}, "
            f"the schedule {count}"
        )
    if ranks is not None and ranks != count:
        raise errors.UsageError(f"--ranks is {ranks}, the schedule has {plural(count, 'rank')}")


def read_plan(
    path: str | os.PathLike[str],
    name: str | None = None,
    fabric: FabricLike | None = None,
    ranks: int | None = None,
) -> tuple[Plan, list[str]]:
    """Reads a plan from a file; returns the plan and notes on its conversion.

    If the file does not state the number of ranks, the number is `ranks`, or else the fabric's
    number of ranks.

    Raises
    ------
    OpticollError
        The file cannot be read, does not fit the fabric, or cannot become a plan; or a
        foreign schedule violates a rule.
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
        if short_name(plan.fabric.spec) == plan.fabric.family:
            remember(plan.fabric.spec, Path(path).name)
        if on is not None and on.spec != plan.fabric.spec:
            notes.append(
                f"`{path}` was planned for {fabric_text(plan.fabric.spec)}; "
                f"it is used on {fabric_text(on.spec)}"
            )
            plan = moved(plan, on, f"`{path}`")
    check_ranks(plan.collective.ranks, None, ranks)
    return plan, notes


def _raised(
    program: Program, path: str, form: str, fabric: Fabric | None
) -> tuple[Plan, list[str]]:
    """Verifies a program and converts it to a plan; returns the plan and notes."""
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
    """Places a schedule on a fabric (default: a link between every two ranks)."""
    ranks = schedule.collective.ranks
    check_ranks(ranks, fabric)
    on = fabric or Fabric(f"fully_connected:ranks={ranks}")
    try:
        return make_plan(schedule, on, _spec(name))
    except errors.ScheduleError as error:
        raise errors.ScheduleError(f"{path}: {error}") from error


def moved(plan: Plan, fabric: Fabric, noun: str = "the plan") -> Plan:
    """Returns the plan on another fabric, such as a damaged one, with unchanged slots and light.

    `noun` names the plan in errors.

    Raises
    ------
    UsageError
        The plan uses a part that the fabric does not have.
    """
    check_ranks(plan.collective.ranks, fabric)
    named = {name: number for number, name in enumerate(fabric.link_names)}
    before = plan.fabric.link_names

    def renumbered(route: re.Match[str]) -> str:
        """Returns a route with the link numbers of the new fabric."""
        names = [before[int(link)] for link in route[1].split(".")]
        for name in names:
            if name not in named:
                raise errors.UsageError(
                    f"{noun} sends over {name}, which {fabric_text(fabric.spec)} does not have"
                )
        return " via " + ".".join(str(named[name]) for name in names)

    head, fabric_line, text_after = plan.to_text().partition(f"\nfabric {plan.fabric.spec}\n")
    text_after = re.sub(r" via ([0-9.]+)", renumbered, text_after)
    try:
        return (
            Plan.from_text(f"{head}\nfabric {fabric.spec}\n{text_after}") if fabric_line else plan
        )
    except errors.OpticollError as error:
        raise errors.UsageError(
            f"{noun} is a plan for {fabric_text(plan.fabric.spec)} and does not fit "
            f"{fabric_text(fabric.spec)}: {error}"
        ) from error


def read_fitting(path: Path, fabric: Fabric | None) -> tuple[Plan, list[str]]:
    """Reads a plan file and moves the plan to `fabric`, if given; returns the plan and notes.

    Raises
    ------
    UsageError
        The plan violates a rule on this fabric.
    """
    plan, _ = read_plan(path, "plan")
    note = f"`{path}` is used, which was exported as this file"
    if fabric is None or plan.fabric.spec == fabric.spec:
        return plan, [note]
    planned_for, used_on = fabric_text(plan.fabric.spec), fabric_text(fabric.spec)
    note += f"; it was planned for {planned_for}, and is used on {used_on}"
    return fitting(plan, fabric), [note]


def fitting(plan: Plan, fabric: Fabric) -> Plan:
    """Moves a plan to another fabric, and verifies it there.

    Raises
    ------
    UsageError
        The plan uses a part that the fabric does not have, or violates a rule.
    """
    moved_plan = moved(plan, fabric)
    violations = moved_plan.verify()
    if violations:
        raise errors.UsageError(violations[0].sentence)
    return moved_plan


def _check_ends(plan: Plan, fabric: Fabric | None, notes: list[str]) -> None:
    """Checks that a foreign schedule uses all ranks, and only links that the fabric has.

    Raises
    ------
    Refuted
        The check fails; the error lists the failures before the verifier's violations.
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
        violations = Program.from_plan(plan).verify(in_place=False, fabric=fabric).violations
        wrong += [
            violation_row(violation.kind, violation.sentence, violation.rank)
            for violation in violations
            if violation.kind == "no_link"
        ]
    if wrong:
        raise refuted(plan, plan.verify(), wrong, notes)


def _spec(name: str) -> str:
    """Replaces characters that plan files do not allow in the name of an algorithm."""
    return re.sub(r"[^A-Za-z0-9_.]+", "_", name)[:255]
