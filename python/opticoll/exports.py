"""Plans as files that other programs read.

>>> import pathlib, tempfile, opticoll
>>> plan = opticoll.plan("all_gather", "wdm_ring:ranks=3,wavelengths=1", "ring")
>>> path = pathlib.Path(tempfile.mkdtemp()) / "ring.xml"
>>> [one.name for one in export(plan, path)]
['ring.xml', 'ring.xml.plan']
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from opticoll._core import Plan, Program
from opticoll.arguments import size_of
from opticoll.errors import UsageError
from opticoll.formats import FORMATS, Format, of
from opticoll.formats.atomic import together
from opticoll.registry import canonical, nearest

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
        raise UsageError("the plan has no transfers, hence no table of them")
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
    "program": Program.of_plan,
    "rows": transfers,
    "schedule": lambda plan: plan,
    "trace": lambda plan: plan,
}
"""What files of each kind hold of a plan."""

KNOWN = {one.name: one for one in FORMATS if one.writes and one.holds in CONTENTS}
"""The formats that plans are written in."""

FABRICS = {one.name: one for one in of("fabric") if one.writes}
"""The formats that fabrics are written in."""

CHOICES = {one.name: one for one in of("choices")}
"""The formats of what comparisons say which algorithm to take."""


def format_of(name: str | None, path: Path, known: Mapping[str, Format] = KNOWN) -> Format:
    """The format with a name, or by the ending of a file.

    Raises
    ------
    UsageError
        There is no such format.
    """
    if name is not None:
        found = canonical(name, known)
        if found is None:
            raise UsageError(f"--format: there is no `{name}`{nearest(name, known)}")
        return known[found]
    for one in known.values():
        if path.name.lower().endswith(one.suffixes):
            return one
    endings = dict.fromkeys(ending for one in known.values() for ending in one.suffixes)
    raise UsageError(f"--output: `{path}` must end in {' or '.join(endings)}; or give --format")


def export(
    plan: Plan,
    path: str | os.PathLike[str],
    format: str | None = None,
    size: str | int | None = None,
) -> list[Path]:
    """Write a plan; of what has no words for light, slots and routes, the plan file beside it.

    Parameters
    ----------
    plan
        The plan.
    path
        The file.
    format
        The format, such as `msccl` (default: by the ending of the file).
    size
        Size of the collective, for formats that state bytes (default: the size of the plan, or
        4MiB).

    Returns
    -------
    list of Path
        The files that are written.

    Raises
    ------
    OpticollError
        A file cannot be written, or the format cannot hold the plan.
    """
    form, place = format_of(format, Path(path)), Path(path)
    if size is not None and not form.sized:
        raise UsageError(f"size: {form.name} states chunks and no bytes")
    size_bytes = size if isinstance(size, int) else size_of(plan, size)
    sizes = [size_bytes] if form.sized else []
    with together():
        written = form.write(CONTENTS[form.holds](plan), *sizes, place) or [place]
        if not plan.names_routes and (form.holds == "rows" or plan.fabric.electrical):
            return written
        beside = place.with_name(f"{place.name}.plan")
        of("plan")[0].write(plan, beside)
        return [*written, beside]
