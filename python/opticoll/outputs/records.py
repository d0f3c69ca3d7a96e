"""Rows of `opticoll list`: one row for everything that has a name."""

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
    "skews",
    "components",
    "libraries",
]
"""Kinds of records that can be listed."""


KINDS: tuple[str, ...] = get_args(Kind)


class OptionRow(Row):
    """An option or setting of a record."""

    name: str = means("Name of the option")
    meaning: str = means("What the option is")
    unit: str | None = means("Unit of its values", absent="its values have no unit")
    range: str | None = means("Values that the option accepts", absent="the meaning states it")
    default: str | None = means(
        "Value if the option is not given", absent="it is required, or the meaning states it"
    )
    required: bool = means("Whether the option must be given")
    source: str | None = means(
        "Source of the option and of its default", absent="the source is that of the record"
    )

    def about(self, citation: str) -> str:
        """Returns the option as text, with its source if the source differs from `citation`."""
        unit = f", in {self.unit}" if self.unit and self.unit not in (self.range or "") else ""
        default = f"default {self.default}" if self.default else ""
        parts = [f"{self.range or ''}{unit}", "required" if self.required else default]
        values = "; ".join(filter(None, parts))
        source = f"; source: {self.source}" if self.source not in (None, citation) else ""
        return f"{self.meaning}{f' ({values})' if values else ''}{source}"

    def as_value(self) -> str:
        """Returns the value of a component as text, with its condition and its source."""
        condition = f", {self.meaning}" if self.meaning else ""
        return f"{self.name} {self.range} {self.unit}{condition}; {self.source}"


class RecordRow(Row):
    """A record of something that has a name."""

    kind: Kind = means("Kind of the record")
    name: str = means("Name as typed")
    label: str = means("Name as printed in figures")
    summary: str = means("Summary in one sentence")
    citation: str = means("Source")
    options: list[OptionRow] = means("Options with their meaning")
    collective: str | None = means(
        "Collective of an algorithm", absent="the record is not an algorithm"
    )
    family: str | None = means(
        "Families of fabrics that an algorithm supports, joined by commas",
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
    """Returns the record that has the given kind and name."""
    return next(record for record in record_rows(kind) if record.name == name)


def listing(selection: str | None) -> list[RecordRow]:
    """Returns all records, or the records that `selection` names.

    `selection` is a kind, a collective (for its algorithms), or the name of a record. Options after
    a name, as in `ring:stripes=all`, are ignored.

    Raises
    ------
    UsageError
        No record has this name.
    """
    kind = selection and canonical(selection, KINDS)
    if selection is None or kind:
        kinds = ("fabrics", "presets") if kind == "fabrics" else (kind,) if kind else KINDS
        return [record for listed_kind in kinds for record in record_rows(listed_kind)]
    try:
        collective = _core.collective_kind(selection)
    except CollectiveError as error:
        every = [record for kind in KINDS for record in record_rows(kind)]
        name = canonical(selection.partition(":")[0], [record.name for record in every])
        if name is None:
            all_names = [*KINDS, *dict.fromkeys(record.name for record in every)]
            near = nearest(selection, all_names, "; `opticoll list` shows what there is")
            raise UsageError(f"nothing is listed as `{selection}`{near}") from error
        return [record for record in every if record.name == name]
    return [record for record in record_rows("algorithms") if record.collective == collective]
