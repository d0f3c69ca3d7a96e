"""Command `list`: the records of everything that has a name."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import groupby
from textwrap import shorten
from typing import Any, Literal

from opticoll._core import Fabric, FabricError
from opticoll.cli.option_types import argument, option
from opticoll.cli.options import ComponentsOption, SwitchOption
from opticoll.cli.runner import Command, on_command_line
from opticoll.commands import COMMANDS
from opticoll.errors import UsageError
from opticoll.formats import FORMATS, Holds
from opticoll.formats.network_parts import CableRow, SiteRow, network_parts, network_text
from opticoll.inputs import component_values
from opticoll.inputs.fabric_files import is_user_fabric, parse_fabric, split_options
from opticoll.names import canonical
from opticoll.outputs.bill import BillRow, BillTotalRow, bill, bill_text, component_record, in_use
from opticoll.outputs.layout import align, wrapped
from opticoll.outputs.records import KINDS, OptionRow, RecordRow, listing
from opticoll.outputs.rows import Row, means
from opticoll.outputs.watch import Watch


@dataclass(frozen=True, kw_only=True)
class List:
    """Parameters of `opticoll list`."""

    kind: str | None = argument(
        f"Kind: {', '.join([*KINDS, 'formats', 'schemas'])}; or a name, for its full record; or a "
        "collective, for its algorithms; or a fabric with links, such as net.edges:wavelengths=4, "
        "for its sites and cables; or bom and a fabric, for its parts and their power (default: an "
        "overview)",
        default=None,
    )
    fabric: str | None = argument("Fabric of a bill of materials, after bom", default=None)
    components: ComponentsOption = None
    rank_power: str | None = option(
        "Power of a rank for bom, such as 200W (default: ranks are no parts)"
    )
    switch: SwitchOption = None


class SchemaRow(Row):
    """The JSON schema of the output of a command."""

    kind: Literal["schemas"] = means("Kind of the record")
    name: str = means("Name of the command")
    summary: str = means("Summary of the command, one sentence")
    json_schema: dict[str, Any] = means("JSON schema")


class FormatRow(Row):
    """A format of files."""

    kind: Literal["formats"] = means("Kind of the record")
    name: str = means("Name of the format", "format")
    holds: Holds = means("Content of the files")
    suffixes: list[str] = means("Endings of file names")
    read: bool = means("Whether commands can read the format")
    written: bool = means("Whether commands can write the format")


Listed = RecordRow | FormatRow | SchemaRow | SiteRow | CableRow | BillRow | BillTotalRow


def _network(named: str) -> Fabric | None:
    """Returns the fabric of a file or function, or of a specification with options and links."""
    if is_user_fabric(named) or split_options(named)[0] is not None:
        return parse_fabric(named)
    if ":" not in named:
        return None
    try:
        fabric = Fabric(named)
    except FabricError:
        return None
    return fabric if fabric.link_ends else None


def compute(parameters: List, watch: Watch) -> Iterator[Listed]:
    """Yields records: of all kinds, of one kind, with one name, or of a collective's algorithms.

    `formats` yields file formats instead, and `schemas` the JSON schemas of commands. A fabric
    yields its sites and its cables, and `bom` with a fabric the parts of the fabric.

    Raises
    ------
    UsageError
        No record has this name, or an option does not apply to what is listed.
    FabricError
        The file is no valid fabric, or its fabric has no links.
    """
    values = in_use().own
    if parameters.kind and canonical(parameters.kind, ["bom"]):
        yield from _bill(parameters)
        return
    for name in ("fabric", "rank_power", "switch"):
        if getattr(parameters, name) is not None:
            raise UsageError(f"{name.replace('_', '-')} belongs to `opticoll list bom FABRIC`")
    network = parameters.kind and _network(parameters.kind)
    if network:
        sites, cables = network_parts(network)
        yield from sites
        yield from cables
        return
    kind = parameters.kind and canonical(parameters.kind, ["schemas", "formats"])
    if kind == "formats":
        for form in FORMATS:
            yield FormatRow(
                kind="formats",
                name=form.name,
                holds=form.holds,
                suffixes=list(form.suffixes),
                read=bool(form.reads),
                written=bool(form.writes),
            )
        return
    if kind == "schemas":
        for name, summary in COMMANDS.items():
            schema = import_module(f"opticoll.commands.{name}").COMMAND.schema()
            yield SchemaRow(kind="schemas", name=name, summary=summary, json_schema=schema)
        return
    records = listing(parameters.kind)
    yield from (_with_values(record, values) for record in records)
    if parameters.kind and canonical(parameters.kind, ["components"]):
        listed = {record.name for record in records}
        for name, own in values.items():
            if name not in listed:
                yield component_record(name, f"Component of {parameters.components}", own)


def _bill(parameters: List) -> Iterator[BillRow | BillTotalRow]:
    """Yields the parts of a fabric, and their sums."""
    if parameters.fabric is None:
        raise UsageError("bom needs a fabric: opticoll list bom crossbar:ranks=16")
    power = parameters.rank_power
    yield from bill(
        parse_fabric(parameters.fabric),
        in_use().catalogue(),
        rank_power=None if power is None else component_values.watts(power),
        switch=parameters.switch,
    )


def _with_values(record: RecordRow, values: Mapping[str, list[OptionRow]]) -> RecordRow:
    """Returns a component with the values of a user before the listed values."""
    if record.kind != "components" or record.name not in values:
        return record
    return replace(record, options=[*values[record.name], *record.options])


def _text(parameters: List, rows: list[Listed]) -> str:
    network = [row for row in rows if isinstance(row, (SiteRow, CableRow))]
    if network:
        return network_text(network)
    parts = [row for row in rows if isinstance(row, (BillRow, BillTotalRow))]
    if parts:
        return bill_text(parts)
    formats = [row for row in rows if isinstance(row, FormatRow)]
    if formats:
        cells = [[row.name, row.holds, " ".join(row.suffixes), _use(row)] for row in formats]
        return align(cells, ["format", "holds", "endings", ""])
    schemas = [row for row in rows if isinstance(row, SchemaRow)]
    if schemas:
        return align([[row.name, row.summary] for row in schemas])
    records = [row for row in rows if isinstance(row, RecordRow)]
    if parameters.kind is None:
        return _overview(records)
    kinds = {row.kind for row in records}
    if len({row.name for row in records}) == 1 and not canonical(parameters.kind, kinds):
        return "\n\n".join(_full_text(same) for same in _grouped_by_meaning(records))
    texts = [(kind, _lines(list(own))) for kind, own in groupby(records, lambda row: row.kind)]
    shown = [text if len(texts) == 1 else f"{kind.upper()}\n{text}" for kind, text in texts]
    return "\n\n".join([*shown, f"In full: opticoll list {records[-1].name}"])


def _use(row: FormatRow) -> str:
    return " and ".join(["read"] * row.read + ["written"] * row.written)


def _overview(records: list[RecordRow]) -> str:
    """Returns a table of the kinds, and further commands.

    For each kind, the table has the number of records and the names of the first records.
    """
    cells = []
    for kind, kind_records in groupby(records, lambda row: row.kind):
        names = list(dict.fromkeys(row.name for row in kind_records))
        cells.append([kind, str(len(names)), shorten(", ".join(names), 52, placeholder=" ...")])
    return "\n".join(
        [
            align(cells, ["kind", "count", "names"], {1}),
            "",
            "opticoll list algorithms  every record of a kind, a line each",
            "opticoll list all_gather  the algorithms of a collective",
            "opticoll list relay_tree  one record in full: options, defaults, source",
            "opticoll list formats     formats of files",
            "opticoll list schemas     JSON schemas of the output of commands with --json",
            "opticoll list nsfnet:wavelengths=4  sites and cables of a fabric",
            "opticoll list bom crossbar:ranks=4  parts of a fabric, with their power",
        ]
    )


def _lines(records: list[RecordRow]) -> str:
    """Returns records of one kind as text, a paragraph each, grouped by collective if possible."""
    lines = []
    width = max(len(record.name) for record in records)
    for collective, group in groupby(records, lambda row: row.collective):
        indent = "  " if collective else ""
        lines += [f"{collective}:"] if collective else []
        for record in group:
            first, *further = wrapped([record.summary], len(indent) + width) or [""]
            lines.append(f"{indent}{record.name.ljust(width)}  {first.strip()}")
            lines += further
            if record.kind == "presets":
                lines += wrapped(_sources(record), width + 2)
            if record.kind == "components":
                lines += wrapped(_values(record), width + 2)
    return "\n".join(lines)


def _sources(record: RecordRow) -> list[str]:
    """Returns the sources of a preset's values, and the values that no source confirms."""
    unconfirmed = [option.meaning for option in record.options if option.name == "unconfirmed"]
    return [f"source: {record.citation}", *(f"unconfirmed: {text}" for text in unconfirmed)]


def _values(record: RecordRow) -> list[str]:
    """Returns the published values of a component, each with its condition and its source."""
    return [value.as_value() for value in record.options] or ["no source for a value was found"]


def _grouped_by_meaning(records: list[RecordRow]) -> list[list[RecordRow]]:
    """Groups records that differ only in their collective."""
    same: dict[str, list[RecordRow]] = {}
    for record in records:
        same.setdefault(str(replace(record, collective=None)), []).append(record)
    return list(same.values())


def _full_text(same: list[RecordRow]) -> str:
    """Returns a record as text, with its summary, its options and its source."""
    record = same[0]
    kind = record.kind.replace("_", " ").removesuffix("s")
    kind = f"{kind.removesuffix('ie')}y" if kind.endswith("ie") else kind
    of = ", ".join(row.collective for row in same if row.collective)
    lines = wrapped([f"{record.name}: {kind}{f' of {of}' if of else ''}"], 0)
    lines += wrapped([f"{record.summary}."], 2)
    if record.label != record.name:
        lines += wrapped([f"Name in figures: {record.label}"], 2)
    if record.family:
        lines += wrapped([f"Only for fabrics of the family {record.family}"], 2)
    if record.kind == "components":
        return "\n".join(lines + wrapped(_values(record), 2))
    width = max((len(entry.name) for entry in record.options), default=0)
    for entry in record.options:
        first, *further = wrapped([entry.about(record.citation)], width + 2) or [""]
        lines += [f"  {entry.name.ljust(width)}  {first.strip()}", *further]
    if record.citation:
        lines += wrapped([f"Source: {record.citation}"], 2)
    return "\n".join(lines)


COMMAND: Command[List, Listed] = Command(
    name="list",
    example="opticoll list relay_tree",
    parameters=List,
    rows=(RecordRow, FormatRow, SchemaRow, SiteRow, CableRow, BillRow, BillTotalRow),
    compute=compute,
    text=_text,
    progress_label="listing",
)
command_line = on_command_line(COMMAND)
