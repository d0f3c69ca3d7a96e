"""Rows of `opticoll list`: the records of everything that has a name."""

from __future__ import annotations

from typing import Literal, get_args

from opticoll import _core
from opticoll.errors import CollectiveError, UsageError
from opticoll.names import canonical, nearest
from opticoll.outputs.rows import Row, means

Kind = Literal[
    "algorithms",
    "fabrics",
    "presets",
    "simulators",
    "policies",
    "start_rules",
    "settings",
    "burst_settings",
    "congestion_settings",
    "congestion_policies",
    "collectives",
    "wavelengths",
    "models",
    "devices",
]
"""Kinds of records that can be listed."""


KINDS: tuple[str, ...] = get_args(Kind)


class OptionRow(Row):
    """An option or setting of a record."""

    name: str = means("Name of the option")
    meaning: str = means("What the option is")
    unit: str | None = means("Unit of its values", absent="its values have no unit")
    range: str | None = means("Values that the option takes", absent="its meaning says it")
    default: str | None = means(
        "Value if the option is not given", absent="it is required, or its meaning says it"
    )
    required: bool = means("Whether the option must be given")
    source: str | None = means(
        "Source of the option and of its default", absent="the source is that of the record"
    )

    def about(self, citation: str) -> str:
        """Returns the option as text, with its source if that differs from the record's."""
        unit = f", in {self.unit}" if self.unit and self.unit not in (self.range or "") else ""
        default = f"default {self.default}" if self.default else ""
        parts = [f"{self.range or ''}{unit}", "required" if self.required else default]
        values = "; ".join(filter(None, parts))
        source = f"; source: {self.source}" if self.source not in (None, citation) else ""
        return f"{self.meaning}{f' ({values})' if values else ''}{source}"


class RecordRow(Row):
    """A record of something that has a name."""

    kind: Kind = means("Kind of the record")
    name: str = means("Name as typed")
    label: str = means("Name as printed in figures")
    summary: str = means("What it is, in one sentence")
    citation: str = means("Source")
    options: list[OptionRow] = means("Options with their meaning")
    collective: str | None = means(
        "Collective of an algorithm", absent="the record is not an algorithm"
    )
    family: str | None = means(
        "Families of fabrics that an algorithm is made for, joined by commas",
        absent="the record is for all families, or is not an algorithm",
    )


def record_rows(kind: str) -> list[RecordRow]:
    """Returns the records of one kind, in the order of their declaration.

    Raises
    ------
    UsageError
        The kind is not in `KINDS`.
    """
    if kind not in KINDS:
        raise UsageError(f"nothing is listed as `{kind}`{nearest(kind, KINDS)}")
    return [
        RecordRow.of(
            record, kind=kind, options=[OptionRow(**option) for option in record["options"]]
        )
        for record in _core.records(kind)
    ]


def record_row(kind: str, name: str) -> RecordRow:
    """Returns the record of a kind with a name."""
    return next(record for record in record_rows(kind) if record.name == name)


def listing(what: str | None) -> list[RecordRow]:
    """Returns records: all, those of a kind, the algorithms of a collective, or those with a name.

    Options after the name, as in `ring:stripes=all`, are ignored.

    Raises
    ------
    UsageError
        Nothing has that name.
    """
    kind = what and canonical(what, KINDS)
    if what is None or kind:
        kinds = ("fabrics", "presets") if kind == "fabrics" else (kind,) if kind else KINDS
        return [record for listed_kind in kinds for record in record_rows(listed_kind)]
    try:
        collective = _core.collective_kind(what)
    except CollectiveError as error:
        every = [record for kind in KINDS for record in record_rows(kind)]
        name = canonical(what.partition(":")[0], [record.name for record in every])
        if name is None:
            known = [*KINDS, *dict.fromkeys(record.name for record in every)]
            near = nearest(what, known, "; `opticoll list` shows what there is")
            raise UsageError(f"nothing is listed as `{what}`{near}") from error
        return [record for record in every if record.name == name]
    return [record for record in record_rows("algorithms") if record.collective == collective]
