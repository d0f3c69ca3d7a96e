"""Plans as files for other programs.

>>> import pathlib, tempfile, opticoll
>>> plan = opticoll.plan("all_gather", "wdm_ring:ranks=3,wavelengths=1", "ring")
>>> path = pathlib.Path(tempfile.mkdtemp()) / "ring.xml"
>>> [file.name for file in export(plan, path)]
['ring.xml', 'ring.xml.plan']
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from filecmp import cmp
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from opticoll._core import Fabric, Plan, Program, Trace
from opticoll.errors import FabricError, OpticollError, UsageError
from opticoll.formats import FORMATS, Format, formats_of, trace_file
from opticoll.formats.atomic import together
from opticoll.inputs.demands import size_of
from opticoll.inputs.imported import fitting
from opticoll.names import ACTIONS, resolve

COLUMNS = ("slot", "action", "chunk", "count", "source", "destination")
"""First columns of a table of transfers; the fields of the transfer's light follow."""


def transfers(plan: Plan) -> list[dict[str, int | str]]:
    """Returns the transfers of a plan as rows, in the order of the schedule.

    A row also describes the light of the transfer, such as its wavelength. If a transfer is
    relayed, this is the light of the first hop.

    Raises
    ------
    UsageError
        The plan has no transfers.
    """
    if not len(plan):
        raise UsageError("the plan has no transfers, hence no table of them")
    columns = {name: column.tolist() for name, column in plan.columns().items()}
    actions: list[str] = list(ACTIONS)
    fields = {"action": actions, **plan.fabric.light_fields}
    for name, words in fields.items():
        columns[name] = [words[code] if code < len(words) else code for code in columns[name]]
    names = [*COLUMNS, *plan.fabric.light_fields]
    rows = zip(*(columns[name] for name in names), strict=True)
    return [
        {"transfer": transfer, **dict(zip(names, row, strict=True))}
        for transfer, row in enumerate(rows)
    ]


CONTENTS: dict[str, Callable[[Plan], Any]] = {
    "program": Program.from_plan,
    "rows": transfers,
    "schedule": lambda plan: plan,
    "trace": lambda plan: plan,
}
"""Functions that convert a plan to the content of a file, by kind of content."""

KNOWN = {form.name: form for form in FORMATS if form.writes and form.holds in CONTENTS}
"""Formats in which plans can be written, by name."""

TRACES = {form.name for form in formats_of("trace")} - {form.name for form in formats_of("rows")}
"""Names of the trace formats that `replay` reads."""

FABRICS = {form.name: form for form in formats_of("fabric") if form.writes}
"""Formats in which fabrics can be written, by name."""

CHOICES = {form.name: form for form in formats_of("choices")}
"""Formats of selection tables with the fastest algorithms of a comparison, by name."""


def format_of(name: str | None, path: Path, formats: Mapping[str, Format] = KNOWN) -> Format:
    """Returns the format called `name`, or the format to which the file's ending belongs.

    Raises
    ------
    UsageError
        There is no such format.
    """
    if name is not None:
        return formats[resolve(name, formats, "--format: there is no")]
    for form in formats.values():
        if path.name.lower().endswith(form.suffixes):
            return form
    endings = dict.fromkeys(ending for form in formats.values() for ending in form.suffixes)
    others = ", ".join(form.name for form in formats.values() if not form.suffixes)
    named = f", such as one of those without an ending of their own: {others}" if others else ""
    raise UsageError(
        f"--output: `{path}` must end in {' or '.join(endings)}; or give --format{named}"
    )


def check_protocol(form: Format) -> None:
    """Raises an error if files of the format state no protocol.

    Raises
    ------
    UsageError
        The format is not `mscclpp`.
    """
    if form.name != "mscclpp":
        raise UsageError(f"--protocol: only plans of MSCCL++ have one; {form.name} has none")


def export(
    plan: Plan,
    path: str | os.PathLike[str],
    format: str | None = None,
    size: str | int | None = None,
    protocol: str | None = None,
) -> list[Path]:
    """Writes a plan as a file for other programs.

    A plan file is written as well if the format is a trace, or cannot contain light or routes.

    Parameters
    ----------
    plan
        The plan to write.
    path
        The file.
    format
        The format, such as `msccl` (default: the format of the file's ending).
    size
        Size of the collective, for formats that contain bytes (default: the plan's size, or 4 MiB).
    protocol
        Protocol of a plan of MSCCL++: `Simple`, or `LL` for packets (default: `LL` up to 64 KiB
        if the plan allows it).

    Returns
    -------
    list of Path
        The files that were written.

    Raises
    ------
    OpticollError
        A file cannot be written, or the format cannot express the plan.
    """
    form, place = format_of(format, Path(path)), Path(path)
    if size is not None and not form.sized:
        raise UsageError(f"size: {form.name} states chunks and no bytes")
    size_bytes = size if isinstance(size, int) else size_of(plan, size)
    sizes = [size_bytes] if form.sized else []
    options = {}
    if protocol is not None:
        check_protocol(form)
        options["protocol"] = protocol
    with_plan = form.name in TRACES if plan.fabric.electrical else form.holds != "rows"
    with together(), _naming_guess(None if format else form, place):
        if not with_plan and not plan.names_routes:
            return form.write(CONTENTS[form.holds](plan), *sizes, place, **options) or [place]
        beside = place.with_name(f"{place.name}.plan")
        formats_of("plan")[0].write(plan.with_size(size_bytes) if form.sized else plan, beside)
        if form.name in TRACES:
            # A plan that is read back from its plan file has the transfers in another order.
            plan = Plan.from_text(plan.to_text())
        written = form.write(CONTENTS[form.holds](plan), *sizes, place, **options) or [place]
        return [*written, beside]


@contextmanager
def _naming_guess(guess: Format | None, place: Path) -> Iterator[None]:
    """Adds to an error that the ending of the file decided the format, if other formats end so."""
    try:
        yield
    except OpticollError as error:
        if guess is None or place.suffix not in guess.suffixes:
            raise
        others = [
            form.name
            for form in KNOWN.values()
            if form is not guess and any(end.endswith(place.suffix) for end in form.suffixes)
        ]
        if not others:
            raise
        raise UsageError(
            f"{error}; the ending {place.suffix} stands for {guess.name}; --format names another "
            f"format, such as {others[0]}"
        ) from error


def plan_beside(path: str | os.PathLike[str]) -> Path | None:
    """Returns the plan file that belongs to an exported file; None if there is no plan file.

    The export of this plan must give exactly the file at `path`.

    Raises
    ------
    FileError, PlanFileError
        The plan file cannot be read, or is malformed.
    UsageError
        The export of the plan gives another file.
    """
    place = Path(path)
    # The plan file has the name of the trace of all ranks, without the number of a rank.
    place = place.with_name(re.sub(r"\.\d+\.et$", ".et", place.name))
    beside = place.with_name(f"{place.name}.plan")
    if not beside.is_file():
        return None
    plan: Plan = formats_of("plan")[0].read(beside)
    mismatch = UsageError(f"`{beside}` is not exported as `{place}`")
    with TemporaryDirectory() as folder:
        try:
            written = export(plan, Path(folder, place.name))
        except OpticollError as error:
            raise mismatch from error
        pairs = [(file, place.with_name(file.name)) for file in written if file.name != beside.name]
        if not all(
            existing.is_file() and cmp(file, existing, shallow=False) for file, existing in pairs
        ):
            raise mismatch
    return beside


def unused_plan_notes(path: str | os.PathLike[str]) -> list[str]:
    """Returns a note that a file itself was read, if the plan file beside it belongs to the file.

    The export of this plan gives exactly the file. Without such a plan file, there is no note.
    """
    with suppress(OpticollError):
        if (beside := plan_beside(path)) is not None:
            return [f"`{path}` itself was read; `{beside}` has the plan that it was exported from"]
    return []


def read_trace(
    source: trace_file.Source | bytes,
    form: str | None = None,
    operations_per_second: int | None = None,
) -> Trace:
    """Reads a trace; also reads the plan file if the trace was exported from a plan.

    Raises
    ------
    OpticollError
        Any error that the docstring of `trace_file.read` or `plan_beside` lists.
    """
    trace = trace_file.read(source, form, operations_per_second)
    if isinstance(source, bytes):
        return trace
    try:
        beside = plan_beside(source)
    except UsageError:
        return trace
    if beside is None:
        return trace
    plan: Plan = formats_of("plan")[0].read(beside)
    return trace.exported_from(plan.with_size(size_of(plan, None)))


def carried_out_on(trace: Trace, network: str) -> tuple[Trace, list[str]]:
    """Moves the plan of an exported trace to another fabric; returns the trace and notes.

    If the plan does not fit the fabric, the trace is returned without the plan, and each message is
    simulated alone.
    """
    plan = trace.plan
    if plan is None:
        return trace, []
    try:
        fabric = Fabric(network)
    except FabricError:
        return trace.exported_from(None), [f"the plan beside the trace is not for {network}"]
    if plan.fabric.spec == fabric.spec:
        return trace, []
    before = f"the plan beside the trace was planned for {plan.fabric.spec}"
    try:
        plan = fitting(plan, fabric)
    except UsageError as error:
        return trace.exported_from(None), [f"{before}; each message goes by itself: {error}"]
    return trace.exported_from(plan), [f"{before}; it is used on {fabric.spec}"]
