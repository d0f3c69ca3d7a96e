"""Commands as records, and the execution of commands.

Text, JSON, files and the exit code are made from the rows of a command.

>>> from collections.abc import Iterator
>>> from dataclasses import dataclass, field
>>> from opticoll.outputs.rows import Row, means
>>> from opticoll.outputs.units import Count
>>> @dataclass(frozen=True, kw_only=True)
... class Squares:
...     "What `squares` takes."
...     most: int = field(kw_only=False)
>>> class Square(Row):
...     "A square."
...     number: Count = means("Number")
...     square: Count = means("Number times itself")
>>> def compute(parameters: Squares, watch: Watch) -> Iterator[Square]:
...     for number in range(parameters.most):
...         yield Square(number=number, square=number**2)
>>> command = Command(
...     name="squares", example="opticoll squares 3", parameters=Squares, rows=Square,
...     compute=compute, text=lambda parameters, rows: f"{len(rows)} squares",
...     progress_label="multiplying",
... )
>>> print(answer(command, Squares(2), {}, as_json=True).text)
[
  {
    "number": 0,
    "square": 0
  },
  {
    "number": 1,
    "square": 1
  }
]
"""

import dataclasses
import inspect
import json
import sys
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field, make_dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any, Generic, Literal, TypeVar

from opticoll import errors
from opticoll.cli.command_line import line_of
from opticoll.formats import Holds, named_format, suffixes
from opticoll.outputs.rows import OMITTED, Row, plain
from opticoll.outputs.verification import Refuted
from opticoll.outputs.watch import Watch

if TYPE_CHECKING:
    from opticoll.outputs.bill import Values

A = TypeVar("A")
R = TypeVar("R", bound=Row)


@dataclass(frozen=True)
class File(Generic[A, R]):
    """File that a command can write in addition to its answer.

    `write` returns the paths of the written files if they differ from the given path. If the work
    fails, a file of rows contains the rows that were computed before the failure.
    """

    option: str
    help: str
    write: Callable[[A, list[R], Path], Sequence[Path] | None]
    check: Callable[[Path], object]
    of_rows: bool = False
    further: bool = False
    """True if only `--help-all` lists the option."""


def text_file(
    option: str,
    help: str,
    holds: Holds,
    write: Callable[[A, list[R], Path], Sequence[Path] | None],
    *,
    of_rows: bool = False,
) -> File[A, R]:
    """Returns the `File` of an option for one kind of content.

    The path must have an ending of this kind; the path of a plan may have any ending.
    """
    from opticoll.formats.atomic import check_writable, is_device

    endings = suffixes(holds)

    def check(path: Path) -> None:
        if holds != "plan" and path.suffix.lower() not in endings and not is_device(path):
            raise errors.UsageError(f"--{option}: `{path}` must end in {' or '.join(endings)}")
        check_writable(path)

    return File(option, help, write, check, of_rows)


def plan_file(help: str) -> File[A, R]:
    """Returns the `File` of the option `--output`, for the plan of the only row."""

    def write(parameters: A, rows: list[R], path: Path) -> None:
        named_format("plan", str(path)).write(vars(rows[0])["plan"], path)

    return text_file("output", help, "plan", write)


def rows_file(
    rows_of: Callable[[A, list[R]], Sequence[Row | Mapping[str, object]]] | None = None,
) -> File[A, R]:
    """Returns the `File` of the option `--csv`, with the rows, or with `rows_of(rows)`."""

    def write(parameters: A, rows: list[R], path: Path) -> None:
        shown = rows if rows_of is None else rows_of(parameters, rows)
        named_format("rows", str(path)).write([plain(row) for row in shown], path)

    endings = " or ".join(suffixes("rows"))
    return text_file("csv", f"File for the rows: {endings}", "rows", write, of_rows=True)


def _component_values(parameters: object) -> "Values":
    """Returns the values of `--components` and `--switch`, or else those in use."""
    from opticoll.inputs import component_values
    from opticoll.outputs import bill

    path, switch = (getattr(parameters, name, None) for name in ("components", "switch"))
    if path is None and switch is None:
        return bill.in_use()
    return bill.Values(component_values.read(path) if path else {}, switch)


def bom_file() -> File[A, R]:
    """Returns the `File` of the option `--bom`, with the parts of the fabrics of all rows."""

    def write(parameters: A, rows: list[R], path: Path) -> None:
        from opticoll.inputs.fabric_files import parse_fabric
        from opticoll.outputs import bill

        values = _component_values(parameters)
        parts = [
            {"fabric": fabric, **plain(part)}
            for fabric in dict.fromkeys(vars(row)["fabric"] for row in rows)
            for part in bill.bill(parse_fabric(fabric), values.catalogue(), switch=values.switch)[
                :-1
            ]
        ]
        named_format("rows", str(path)).write(parts, path)

    endings = " or ".join(suffixes("rows"))
    help = f"File for the parts of the fabric, with power and price: {endings}"
    return dataclasses.replace(text_file("bom", help, "rows", write), further=True)


def figure_file(draw: Callable[[A, list[R], Path], Sequence[Path] | None]) -> File[A, R]:
    """Returns the `File` of the option `--figure`; `draw` writes the figure."""

    def check(path: Path) -> None:
        from opticoll.plot.output import check_path

        check_path(path)

    return File("figure", "File for the figure: .svg, .png or .pdf", draw, check)


@dataclass(frozen=True, kw_only=True)
class Command(Generic[A, R]):
    """Command: its parameters, computation, rows, text and files.

    `example` is a command line. `parameters` is a frozen dataclass whose annotations describe the
    command line. `rows` is the class of the rows, or several classes among which the parameters
    choose. `compute` yields rows as soon as they are computed, and `text` prints them for people.

    `progress_label` is the first label of the progress bar. `shape` says whether the JSON output is
    a list of rows, the only row (`row`), or a list only if there are several rows. `files` are
    files that the command can write. `cache_key` returns a key that contains all inputs of the
    plan; if points of a study have equal keys, they share a plan. `row_options` returns the options
    that reproduce a single row. `names` are the possible values of the first argument, if the core
    has no records of these values.
    """

    name: str
    example: str
    parameters: type[A]
    rows: type[R] | tuple[type[R], ...]
    compute: Callable[[A, Watch], Iterator[R]]
    text: Callable[[A, list[R]], str]
    progress_label: str
    shape: Literal["rows", "row", "row or rows"] = "rows"
    files: tuple[File[A, R], ...] = ()
    cache_key: Callable[[A], Hashable] | None = None
    row_options: Callable[[A, R], Mapping[str, Any]] | None = None
    names: Collection[str] = ()

    def rows_of(self, parameters: A, watch: Watch) -> Iterator[R]:
        """Yields the rows; their energy uses the values of the option `--components`."""
        from opticoll.outputs import bill

        with bill.using(_component_values(parameters)):
            yield from self.compute(parameters, watch)

    def schema(self) -> dict[str, Any]:
        """Returns the JSON schema of the command's output."""
        from opticoll.outputs.rows import schema

        classes = self.rows if isinstance(self.rows, tuple) else (self.rows,)
        shapes: list[dict[str, Any]] = []
        definitions: dict[str, Any] = {}
        for kind in classes:
            row_schema = schema(kind)
            definitions |= row_schema.pop("$defs", {})
            if self.shape != "rows":
                shapes.append(row_schema)
            if self.shape != "row":
                least = {} if self.shape == "rows" else {"minItems": 2}
                shapes.append({"type": "array", "items": row_schema, **least})
        return {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": f"What `opticoll {self.name} --json` prints",
            **(shapes[0] if len(shapes) == 1 else {"oneOf": shapes}),
            **({"$defs": definitions} if definitions else {}),
        }


@dataclass
class Answer:
    """Answer of a command: standard output, notes for standard error, and the exit code."""

    text: str
    code: int = 0
    notes: list[str] = field(default_factory=list)
    failure: BaseException | None = None
    """Exception of the first file that could not be written, or None."""

    def write(self, path: Path, write: Callable[[], Sequence[Path] | None]) -> None:
        """Writes a file.

        If the file cannot be written, stores the exception in `failure`; other files are still
        written.
        """
        from opticoll.formats.atomic import together

        try:
            with together():
                written = write()
        except (Exception, KeyboardInterrupt) as failure:
            self.failure = self.failure or failure
        else:
            self.notes.append(f"wrote {', '.join(map(str, written or [path]))}")


def run(command: Command[A, R], **values: Any) -> list[R]:
    """Runs a command from Python, and returns its rows; settings are arguments like all others."""
    return list(computed(command, _grouped(command.parameters, values), Watch()))


def computed(command: Command[A, R], parameters: A, watch: Watch) -> Iterator[R]:
    """Yields a command's rows.

    If rows have a field `command`, each row gets the command line that computes this row.
    """
    for row in command.rows_of(parameters, watch):
        if getattr(row, "command", None) is not OMITTED:
            yield row
            continue
        changes = {} if command.row_options is None else command.row_options(parameters, row)
        line = line_of(command.name, parameters, changes)
        yield row if line is None else dataclasses.replace(row, command=line)  # type: ignore[type-var]


def _grouped(kind: type[A], values: dict[str, Any]) -> A:
    """Returns the parameters with the values of `values`; settings of groups are also keys."""
    fields = dataclasses.fields(kind)  # type: ignore[arg-type]
    arguments = {
        declared.name: values.pop(declared.name) for declared in fields if declared.name in values
    }
    for declared in fields:
        if dataclasses.is_dataclass(declared.default) and declared.name not in arguments:
            group = [part.name for part in dataclasses.fields(declared.default)]
            group_values = {name: values.pop(name) for name in group if name in values}
            arguments[declared.name] = dataclasses.replace(declared.default, **group_values)  # type: ignore[type-var]
    if values:
        raise TypeError(f"there is no parameter {', '.join(values)}")
    return kind(**arguments)


def answer(
    command: Command[A, R], parameters: A, paths: Mapping[str, Path | None], *, as_json: bool
) -> Answer:
    """Runs a command: checks the files, computes the rows, and writes text and files.

    Raises
    ------
    OpticollError
        The input is invalid. Rows that were computed before the error are written to the file of
        rows, if the user asked for this file.
    """
    from opticoll.cli.progress import Waiting

    asked_for = [(file, path) for file in command.files if (path := paths.get(file.option))]
    for file, path in asked_for:
        file.check(path)
    rows: list[R] = []
    with (
        Waiting(command.progress_label) as waiting,
        # Standard output is for results only, but a user's algorithm may print.
        redirect_stdout(sys.stderr),
        _kept_on_failure(asked_for, parameters, rows),
    ):
        files = {file.option: path for file, path in asked_for}
        watch = Watch(files, waiting.update, waiting.announce_work, waiting.say)
        try:
            rows.extend(computed(command, parameters, watch))
        except Refuted as error:
            text = _json(plain(error.row)) if as_json else error.text
            return Answer(text, 1, [*watch.notes, *error.notes])
    verified = all(getattr(row, "verified", True) for row in rows)
    done = verified and not watch.failed
    result = Answer(_answer_text(command, parameters, rows, as_json), 0 if done else 1, watch.notes)
    for file, path in asked_for:
        with Waiting(f"writing {path}"):
            result.write(path, lambda file=file, path=path: file.write(parameters, rows, path))  # type: ignore[misc]
    return result


def _answer_text(command: Command[A, R], parameters: A, rows: list[R], as_json: bool) -> str:
    if not as_json:
        return command.text(parameters, rows)
    is_single = command.shape == "row" or (command.shape == "row or rows" and len(rows) == 1)
    return _json(plain(rows[0] if is_single else rows))


def _json(value: object) -> str:
    """Returns indented JSON."""
    return json.dumps(value, indent=2, ensure_ascii=False)


@contextmanager
def _kept_on_failure(
    files: Sequence[tuple[File[A, R], Path]], parameters: A, rows: list[R]
) -> Iterator[None]:
    """Writes the rows that were computed so far to the files of rows, if the work fails."""
    try:
        yield
    except BaseException as failure:
        for file, path in files:
            if not file.of_rows or not rows:
                continue
            try:
                file.write(parameters, rows, path)
                failure.add_note(f"wrote {path}, with the {len(rows)} rows computed so far")
            except (Exception, KeyboardInterrupt) as other:
                failure.add_note(f"cannot write {path} either: {other}")
        raise


NO_OPTIONS = SimpleNamespace()
"""Options of a command without options."""


def on_command_line(command: Command[A, R]) -> Callable[..., Answer]:
    """Returns a function for cyclopts with a command's parameters, its files, and `--json`.

    Fields of the parameters that are not keyword-only become positional arguments.
    """
    from cyclopts import Parameter

    from opticoll.cli import option_types
    from opticoll.cli.options import FURTHER, OUTPUT, JsonOption

    all_fields = dataclasses.fields(command.parameters)  # type: ignore[arg-type]
    hints = option_types.hints(command.parameters)
    named = [
        (declared.name, hints[declared.name], _default(declared))
        for declared in all_fields
        if declared.kw_only
    ]
    paths = [
        (
            file.option,
            Annotated[
                Path | None,
                Parameter(
                    help=file.help,
                    converter=option_types.path,
                    group=FURTHER if file.further else OUTPUT,
                ),
            ],
            field(default=None),
        )
        for file in command.files
    ]
    options = _group("Options", named)
    files = _group("Files", paths)

    def command_line(*places: Any, options: Any, files: Any, as_json: bool = False) -> Answer:
        parameters = command.parameters(*places, **vars(options))
        return answer(command, parameters, vars(files), as_json=as_json)

    declare = inspect.Parameter
    signature = [
        declare(
            declared.name,
            declare.POSITIONAL_ONLY,
            annotation=hints[declared.name],
            default=_or_empty(declared),
        )
        for declared in all_fields
        if not declared.kw_only
    ]
    for name, group in (("options", options), ("files", files)):
        if not dataclasses.fields(group):
            continue
        hint: Any = Annotated[group, Parameter(name="*")]
        needed = any(
            declared.default is dataclasses.MISSING for declared in dataclasses.fields(group)
        )
        default = declare.empty if needed else group()
        signature.append(declare(name, declare.KEYWORD_ONLY, annotation=hint, default=default))
    signature.append(declare("as_json", declare.KEYWORD_ONLY, annotation=JsonOption, default=False))
    command_line.__kwdefaults__ = {"options": NO_OPTIONS, "files": NO_OPTIONS} | {
        parameter.name: parameter.default
        for parameter in signature
        if parameter.default is not declare.empty
    }
    command_line.__signature__ = inspect.Signature(signature)  # type: ignore[attr-defined]
    command_line.__annotations__ = {parameter.name: parameter.annotation for parameter in signature}
    return command_line


def _group(name: str, fields: Sequence[tuple[str, Any, Any]]) -> Any:
    """Returns a dataclass of options that cyclopts can read."""
    group = make_dataclass(name, fields, frozen=True, kw_only=True)
    group.__module__ = __name__  # cyclopts does not recognize a dataclass of the module `types`
    return group


def _default(declared: dataclasses.Field[Any]) -> Any:
    return field() if declared.default is dataclasses.MISSING else field(default=declared.default)


def _or_empty(declared: dataclasses.Field[Any]) -> Any:
    return inspect.Parameter.empty if declared.default is dataclasses.MISSING else declared.default
