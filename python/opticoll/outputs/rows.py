"""Rows of results: each field declared once, with its unit and its meaning.

A row class is the only declaration of a result. JSON, its schema, CSV, text tables and the
reference page all follow from the class. If the compiled core declares a total or a column of a
table, the class uses the core's name, unit and meaning.

>>> from opticoll.outputs.units import Count, Seconds
>>> class Lap(Row):
...     "A lap of a race."
...     runner: str = means("Name of the runner")
...     time_s: Seconds | None = means("Time of the lap", "time", absent="the runner gave up")
>>> laps = [Lap(runner="Ada", time_s=0.25), Lap(runner="Bob", time_s=None)]
>>> laps[0]["time_s"], plain(laps[1])
(0.25, {'runner': 'Bob', 'time_s': None})
>>> print(table(laps, ("runner", "time_s")))
runner      time
Ada     250.0 ms
Bob            -
>>> schema(Lap)["properties"]["time_s"]["type"]
['number', 'null']
>>> class Hops(Row, core="bursts.by_hops"):
...     "Bursts whose routes have the same number of links."
...     links: Count
...     lost: Count
>>> plain(Hops.of({"links": 2, "offered": 9, "lost": 1})), columns(Hops)[1].meaning
({'links': 2, 'lost': 1}, 'Number of lost bursts')
"""

import abc
import dataclasses
import functools
import html
import inspect
import textwrap
import types
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    Self,
    dataclass_transform,
    get_args,
    get_origin,
)

from opticoll._core import Outcome, fields_of, format_size
from opticoll.errors import UsageError, needed
from opticoll.outputs.layout import PICOSECONDS, align, size_names
from opticoll.outputs.units import Unit

if typing.TYPE_CHECKING:
    import pandas


@dataclass(frozen=True)
class Length:
    """Number of entries of a list whose length is fixed."""

    entries: int


class _Omitted:
    """Type of `OMITTED`; copies and pickles of `OMITTED` are the same object."""

    def __reduce__(self) -> str:
        return "OMITTED"


OMITTED: Any = _Omitted()
"""Value of a field that a row lacks."""


def means(
    text: str = "",
    heading: str = "",
    *,
    absent: str = "",
    omitted: str = "",
    spread: bool = False,
    default: Any = dataclasses.MISSING,
) -> Any:
    """Declares a field of a row, with its meaning and its heading in text tables.

    Without `text`, the core's meaning is used. `absent` says when the field is null. `omitted` says
    when a row lacks the field; the field's default is then `OMITTED`. If `spread` is true, the
    field is a mapping, and each entry of the mapping becomes a column of the row.
    """
    if omitted and default is dataclasses.MISSING:
        default = OMITTED
    about = {
        "meaning": text,
        "heading": heading,
        "absent": absent,
        "omitted": omitted,
        "spread": spread,
    }
    return dataclasses.field(default=default, metadata=about)


def command_field(*, default: Any) -> Any:
    """Declares the field `command`, for rows that depend on options that no other field shows."""
    return means(
        "Command line that computes the row alone",
        omitted="if the request has values that no command line can express, or if the row is a "
        "point of a study",
        default=default,
    )


def hidden(*, default: None) -> Any:
    """Declares a field that only figures and notebooks use; files and schemas omit the field."""
    return dataclasses.field(default=default, repr=False, compare=False, metadata={"meaning": None})


class _Described(abc.ABCMeta):
    """Metaclass of rows, which appends a list of the fields to the docstring."""

    @property
    def __doc__(cls) -> str | None:  # type: ignore[override]
        docstring: str | None = cls.__dict__["__doc__"]
        if docstring is None or not cls.__dict__.get("_complete"):
            return docstring
        described = columns(typing.cast("type[Row]", cls))
        fields = "\n".join(map(_attribute, described))
        return f"{inspect.cleandoc(docstring)}\n\nFields\n------\n{fields}\n"


@dataclass_transform(
    frozen_default=True, kw_only_default=True, field_specifiers=(means, hidden, command_field)
)
class Row(Mapping[str, Any], metaclass=_Described):
    """Base class of rows: frozen dataclasses with keyword arguments only, which are also mappings.

    `help` of a row class lists the fields with their units. `core` names results in the core, such
    as `bursts`, or tables in results, such as `bursts.by_hops`, separated by spaces. If the class
    gives a field no meaning, these results and tables of the core declare the field.
    """

    _core: ClassVar[tuple[str, ...]] = ()
    _complete: ClassVar[bool] = False

    def __init_subclass__(cls, core: str = "") -> None:
        cls._core = (*core.split(), *cls._core)
        dataclass(frozen=True, kw_only=True)(cls)
        cls._complete = True

    @classmethod
    def of(cls, *sources: object, **own: Any) -> Self:
        """Returns a row; a field that `own` lacks gets its value from the first source with it.

        A source is an outcome, with its totals; a mapping, such as another row; or an object, with
        its attributes. A field in seconds is converted from picoseconds. A field that may be null
        becomes null if no source has it.
        """
        for field in dataclasses.fields(cls):  # type: ignore[arg-type]
            for source in () if field.name in own else sources:
                value = _read(source, field.name)
                if value is OMITTED and field.name.endswith("_s"):
                    time_ps = _read(source, f"{field.name.removesuffix('_s')}_ps")
                    value = time_ps if time_ps in (None, OMITTED) else time_ps / PICOSECONDS
                if value is not OMITTED:
                    own[field.name] = value
                    break
            if field.default is dataclasses.MISSING and field.metadata.get("absent"):
                own.setdefault(field.name, None)
        return cls(**own)

    def __getitem__(self, name: str) -> Any:
        for cell_name, value in self._cells():
            if cell_name == name:
                return value
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return (name for name, _ in self._cells())

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _cells(self) -> Iterator[tuple[str, Any]]:
        for column in columns(type(self)):
            value = getattr(self, column.name)
            if column.spread:
                yield from value.items()
            elif value is not OMITTED:
                yield column.name, value

    def _repr_html_(self) -> str:
        cells = "".join(
            f"<tr><th>{html.escape(name)}</th><td>{html.escape(str(value))}</td></tr>"
            for name, value in self.items()
        )
        return f"<table>{cells}</table>"


def _read(source: object, name: str) -> Any:
    """Returns the value that a source has under a name, or OMITTED."""
    if isinstance(source, Outcome):
        source = source.totals
    if isinstance(source, Mapping) and not isinstance(source, Row):
        return source.get(name, OMITTED)
    return getattr(source, name, OMITTED)


@dataclass(frozen=True)
class Column:
    """Column of a row class, which is one of its fields.

    `kind` is the type of a value, or a tuple of types. If `shape` is list or dict, `kind` is the
    type of the entries.
    """

    name: str
    kind: Any
    shape: type | None
    optional: bool
    unit: Unit | None
    length: int | None
    meaning: str
    heading: str
    absent: str
    omitted: str
    spread: bool

    @property
    def number(self) -> bool:
        """True if the values are numbers."""
        return self.kind in (int, float) and self.shape is None

    def cell(self, value: Any) -> str:
        """Returns a value as text with its unit, as tables show it."""
        if value is None:
            return "-"
        return str(value) if self.unit is None else self.unit.text(value)

    def cells(self, values: Sequence[Any]) -> list[str]:
        """Returns values as texts; sizes are either all in binary or all in decimal units."""
        if self.unit is None or self.unit.text is not format_size or None in values:
            return [self.cell(value) for value in values]
        names = size_names(values)
        return [names[value] for value in values]


_COLUMNS: dict[type[Row], tuple[Column, ...]] = {}


def columns(kind: type[Row]) -> tuple[Column, ...]:
    """Returns the columns of a row class, in the order of declaration.

    Raises
    ------
    TypeError
        A field may be null but lacks the text `absent`, or has this text but cannot be null.
    """
    if kind not in _COLUMNS:
        hints = typing.get_type_hints(kind, include_extras=True)
        row_columns = []
        for field in dataclasses.fields(kind):  # type: ignore[arg-type]
            hint, about = hints[field.name], dict(field.metadata or means().metadata)
            if about["meaning"] is not None:
                about["meaning"] = about["meaning"] or _core_meaning(kind, field.name, hint)
                about["heading"] = about["heading"] or field.name
                row_columns.append(_column(field.name, hint, about))
        _COLUMNS[kind] = tuple(row_columns)
    return _COLUMNS[kind]


@functools.cache
def _core_fields(result: str) -> dict[str, tuple[str, str]]:
    """Returns the (unit, meaning) of each total and column of a result, or of one table."""
    name, _, of_table = result.partition(".")
    return {
        core_field["name"].removeprefix(f"{of_table}."): (
            core_field["unit"],
            core_field["meaning"].removesuffix("."),
        )
        for core_field in fields_of(name)
        if core_field["name"].startswith(of_table)
    }


def _core_meaning(kind: type[Row], name: str, hint: Any) -> str:
    """Returns the meaning that the core declares for a field; checks the field's unit first."""
    names = (name, f"{name.removesuffix('_s')}_ps")
    for core_fields in map(_core_fields, kind._core):
        for unit, meaning in (
            core_fields[known_name] for known_name in names if known_name in core_fields
        ):
            units = [remark.name for remark in _remarks(hint) if isinstance(remark, Unit)]
            if (
                units
                and units[0] not in (unit, "", "1", "Erlang")
                and (units[0], unit) != ("s", "ps")
            ):
                raise TypeError(f"{name}: the unit in the core is `{unit}`, not `{units[0]}`")
            return meaning
    raise TypeError(f"{name}: no meaning is given, and the core has no such field")


def _remarks(hint: Any) -> list[Any]:
    """Returns all annotations in a type."""
    remarks = list(getattr(hint, "__metadata__", ()))
    return remarks + [remark for part in get_args(hint) for remark in _remarks(part)]


def _column(name: str, hint: Any, about: Mapping[str, Any]) -> Column:
    """Returns the column of a field with the type `hint`; `about` is what `means` keeps."""
    hint, remarks = _bare(hint)
    optional = get_origin(hint) in (types.UnionType, typing.Union)
    if optional != bool(about["absent"]):
        raise TypeError(f"{name}: a field says by absent=... why it is null, if it may be")
    if optional:
        some = tuple(part for part in get_args(hint) if part is not type(None))
        hint, more = _bare(some[0]) if len(some) == 1 else (some, [])
        remarks += more
    shape = get_origin(hint) if get_origin(hint) in (list, dict) else None
    if shape is not None:
        hint, more = _bare(get_args(hint)[-1])
        remarks += more
        hint = get_args(hint) if get_origin(hint) is types.UnionType else hint
    units = [remark for remark in remarks if isinstance(remark, Unit)]
    lengths = [remark.entries for remark in remarks if isinstance(remark, Length)]
    return Column(
        name=name,
        kind=hint,
        shape=shape,
        optional=optional,
        unit=units[0] if units else None,
        length=lengths[0] if lengths else None,
        **about,
    )


def _bare(hint: Any) -> tuple[Any, list[Any]]:
    """Splits a type into the type without annotations, and the annotations."""
    if get_origin(hint) is Annotated:
        return hint.__origin__, list(hint.__metadata__)
    return hint, []


def plain(value: Any) -> Any:
    """Converts a row to dictionaries, lists, texts and numbers, for JSON."""
    if isinstance(value, Row):
        return {name: plain(cell) for name, cell in value._cells()}
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def dataframe(content: Any) -> "pandas.DataFrame":
    """Converts rows, or columns by name, to a pandas DataFrame.

    Raises
    ------
    UsageError
        The package `pandas` is not installed.
    """
    return needed("pandas", "DataFrames need").DataFrame(content)


def arrow_stream(content: Any, requested_schema: object = None) -> object:
    """Converts rows, or columns by name, to an Arrow stream (a PyCapsule).

    Raises
    ------
    UsageError
        The package `pyarrow` is not installed, or Arrow has no type for the values of a column.
    """
    pyarrow = needed("pyarrow", "Arrow streams need", "study")
    try:
        arrow_table = pyarrow.table(content) if isinstance(content, dict) else None
        arrow_table = pyarrow.Table.from_pylist(content) if arrow_table is None else arrow_table
    except (pyarrow.ArrowException, OverflowError) as error:
        raise UsageError(f"Arrow cannot hold the rows: {error}") from error
    return arrow_table.__arrow_c_stream__(requested_schema)


def table(
    rows: Sequence[Row],
    names: Iterable[str],
    left: Iterable[str] = (),
    headings: Mapping[str, str] = types.MappingProxyType({}),
) -> str:
    """Returns columns of rows as text; columns of numbers are right-aligned unless in `left`.

    `headings` replace the headings of columns by name.
    """
    columns_by_name = {column.name: column for column in columns(type(rows[0]))}
    shown = [columns_by_name[name] for name in names]
    cells = zip(
        *(column.cells([row[column.name] for row in rows]) for column in shown), strict=True
    )
    right = [at for at, column in enumerate(shown) if column.number and column.name not in left]
    return align(
        list(cells), [headings.get(column.name, column.heading) for column in shown], right
    )


_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean"}


def schema(kind: type[Row]) -> dict[str, Any]:
    """Returns the JSON schema of a row class; nested classes are under `$defs`."""
    definitions: dict[str, Any] = {}
    row_schema = _object(kind, definitions)
    return {**row_schema, "$defs": definitions} if definitions else row_schema


def _object(kind: type[Row], definitions: dict[str, Any]) -> dict[str, Any]:
    fixed = [column for column in columns(kind) if not column.spread]
    typed: dict[str, Any] = {
        "type": "object",
        "description": _about(kind),
        "properties": {column.name: _property(column, definitions) for column in fixed},
        "required": [column.name for column in fixed if not column.omitted],
    }
    for column in columns(kind):
        if column.spread:
            entry = {**_value(column, definitions), "description": _sentence(column)}
            typed["additionalProperties"] = entry
    return typed


def _property(column: Column, definitions: dict[str, Any]) -> dict[str, Any]:
    typed: dict[str, Any] = _value(column, definitions)
    if column.shape is list:
        typed = {"type": "array", "items": typed}
        if column.length is not None:
            typed |= {"minItems": column.length, "maxItems": column.length}
    elif column.shape is dict:
        typed = {"type": "object", "additionalProperties": typed}
    if column.optional:
        if "enum" in typed:
            typed = {"enum": [*typed["enum"], None]}
        elif "$ref" in typed:
            typed = {"anyOf": [typed, {"type": "null"}]}
        else:
            several = typed["type"] if isinstance(typed["type"], list) else [typed["type"]]
            typed = {**typed, "type": [*several, "null"]}
    unit = {} if column.unit is None or not column.unit.name else {"x-unit": column.unit.name}
    return {**typed, **unit, "description": _sentence(column)}


def _value(column: Column, definitions: dict[str, Any]) -> dict[str, Any]:
    kind = column.kind
    if get_origin(kind) is Literal:
        return {"enum": list(get_args(kind))}
    if _is_row(kind):
        if kind.__name__ not in definitions:
            definitions[kind.__name__] = {}
            definitions[kind.__name__] = _object(kind, definitions)
        return {"$ref": f"#/$defs/{kind.__name__}"}
    if kind is Any:
        return {}
    if isinstance(kind, tuple):
        return {"type": [_TYPES[value_type] for value_type in kind]}
    unit = column.unit or Unit(least=None)
    ends = {"minimum": unit.least, "maximum": unit.most}
    return {"type": _TYPES[kind], **{key: end for key, end in ends.items() if end is not None}}


def _about(kind: type[Row]) -> str:
    """Returns a row class's docstring without the list of fields."""
    return " ".join((kind.__dict__["__doc__"] or "").split())


def _attribute(column: Column) -> str:
    """Returns a field's entry in a docstring: name, type, unit and meaning."""
    several: tuple[Any, ...] = column.kind if isinstance(column.kind, tuple) else (column.kind,)
    names = [
        " or ".join(repr(value) for value in get_args(value_type))
        if get_origin(value_type) is Literal
        else getattr(value_type, "__name__", "any")
        for value_type in several
    ]
    kind = " or ".join(names)
    if column.shape is not None:
        kind = f"{'list' if column.shape is list else 'dict by name'} of {kind}"
    unit = "" if column.unit is None else column.unit.name
    unit = "" if unit in ("", "1") else f", in {unit}"
    null = " or None" if column.optional else ""
    about = textwrap.fill(_sentence(column).replace("; null: ", "; None: "), 92)
    return f"{column.name} : {kind}{unit}{null}\n{textwrap.indent(about, '    ')}"


def _sentence(column: Column) -> str:
    null = f"; null: {column.absent}" if column.absent else ""
    left_out = f"; left out {column.omitted}" if column.omitted else ""
    return f"{column.meaning}{null}{left_out}."


def reference(kinds: Iterable[type[Row]]) -> list[str]:
    """Returns the lines of a Markdown page on row classes and nested classes.

    The page lists every class once. A class that extends another class lists only the additional
    fields.
    """
    lines: list[str] = []
    listed: list[type[Row]] = []
    waiting = list(kinds)
    while waiting:
        kind = waiting.pop(0)
        base = kind.__bases__[0]
        if kind in listed:
            continue
        if base is not Row and base not in listed:
            waiting = [base, kind, *waiting]
            continue
        listed.append(kind)
        inherited = [] if base is Row else [column.name for column in columns(base)]
        added = [column for column in columns(kind) if column.name not in inherited]
        adds = (
            f"Everything of [{base.__name__}](#{base.__name__.lower()}), and:" if inherited else ""
        )
        lines += [f"### {kind.__name__}", "", f"{_about(kind)} {adds}".strip(), ""]
        lines += ["| key | unit | meaning |", "|---|---|---|"]
        lines += [_line(column) for column in added]
        lines.append("")
        within = [column.kind for column in added if _is_row(column.kind)]
        waiting = [*dict.fromkeys(within), *waiting]
    return lines


def _is_row(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Row)


def _line(column: Column) -> str:
    """Returns a row of a Markdown table: the key, the unit or the nested class, and the meaning."""
    unit = "" if column.unit is None else column.unit.name
    if _is_row(column.kind):
        name = column.kind.__name__
        several = "list of " if column.shape is list else "by name: " if column.shape else ""
        unit = f"{several}[{name}](#{name.lower()})"
    key = "any other" if column.spread else f"`{column.name}`"
    return f"| {key} | {unit} | {_sentence(column)} |"
