"""Command `export`: writes a plan, a fabric or a comparison to a file for other programs."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from opticoll import exports
from opticoll._core import Fabric, Plan
from opticoll.cli.arguments import Source, check_planned, names_file, obtain, refuse_given
from opticoll.cli.option_types import argument, option
from opticoll.cli.options import WavelengthOption
from opticoll.cli.runner import Command, File, on_command_line
from opticoll.errors import AlgorithmError, OpticollError, UsageError
from opticoll.formats import Format
from opticoll.formats.atomic import check_writable
from opticoll.formats.network_graph import has_fibre_links
from opticoll.formats.selection_dialects import DIALECTS
from opticoll.formats.selection_table import table
from opticoll.inputs.demands import DEFAULT_SIZE, size_of
from opticoll.inputs.fabric_files import to_fabric
from opticoll.inputs.plan_cache import verify_once
from opticoll.inputs.settings import set_settings
from opticoll.inputs.values import to_bytes
from opticoll.names import canonical, known_names
from opticoll.outputs.fabric_names import fabric_text
from opticoll.outputs.layout import human_time, plural
from opticoll.outputs.rows import Row, hidden, means
from opticoll.outputs.units import Bytes, Count, Positive
from opticoll.outputs.verification import SizedHead, algorithm_name, head
from opticoll.outputs.watch import Watch
from opticoll.report.rows_file import read as read_rows

MAX_PACKET_BYTES = 64 << 10
"""Size up to which a plan of MSCCL++ has packets by default, as in the core."""


@dataclass(frozen=True, kw_only=True)
class Parameters(Source):
    """Parameters of `opticoll export`."""

    source: str = argument(
        "Plan file; a collective such as all_gather; or a file of rows that `compare` or `results` "
        "wrote, for a selection table (default: only the fabric is exported)",
        default="",
        show_default=False,
    )
    format: str | None = option(
        f"Format: {', '.join(exports.KNOWN)}; of fabrics {', '.join(exports.FABRICS)}; "
        f"of selection tables {', '.join(exports.CHOICES)} (default: by the ending of --output)"
    )
    wavelength: WavelengthOption = None


class ExportRow(SizedHead):
    """A plan that is written to a file."""

    format: str = means("Format of the file")
    size_bytes: Bytes | None = means(
        "Size of the collective", absent="the format contains chunks, not bytes"
    )


class ExportedFabricRow(Row):
    """A fabric that is written to a file."""

    fabric: str = means("Complete specification of the fabric")
    ranks: Positive = means("Number of ranks of the fabric")
    links: Count = means("Number of links; a cable with two directions counts as two links")
    format: str = means("Format of the file")


class ExportedChoicesRow(Row):
    """A selection table that is written to a file."""

    rows: str = means("File of the rows from which the choices follow")
    choices: Count = means("Number of choices, one for each range of sizes")
    remarks: list[str] = means(
        "Sizes without an algorithm of the library, and faster plans that the library does not have"
    )
    format: str = means("Format of the file")
    content: Any = hidden(default=None)


AnyRow = ExportRow | ExportedFabricRow | ExportedChoicesRow


def compute(parameters: Parameters, watch: Watch) -> Iterator[AnyRow]:
    """Yields the row of the plan, fabric or table that will be written to the file.

    Raises
    ------
    OpticollError
        Any reason that `opticoll.plan` lists, no file is given, the format is unknown, or files of
        the format have another content.
    """
    if "output" not in watch.files:
        raise UsageError("--output is missing; give the name of a file, such as plan.csv")
    path = watch.files["output"]
    if not parameters.source:
        form = exports.format_of(parameters.format, path, exports.FABRICS)
        yield _fabric_row(parameters, form)
        return
    form = exports.format_of(parameters.format, path, {**exports.KNOWN, **exports.CHOICES})
    if form.holds == "choices":
        yield _choices_row(parameters, form.name)
        return
    steering = parameters.settings
    if _protocol(parameters, form) is not None:
        steering = set_settings({**steering, "protocol": None})
    check_planned(parameters.source, None if form.sized else parameters.size, steering)
    if form.name == "mscclpp" and "protocol" not in parameters.settings:
        parameters = _with_protocol(parameters)
    plan = _expressible(parameters, form, path, watch)
    if form.name == "mscclpp":
        watch.notes += _servers_of(plan.fabric)
    if verify_once(plan):
        watch.notes.append(
            "warning: the plan is violated (see `opticoll verify`); so is what is written"
        )
    size_bytes = size_of(plan, parameters.size, parameters.demand) if form.sized else None
    yield ExportRow.of(head(plan), format=form.name, size_bytes=size_bytes)


def _expressible(parameters: Parameters, form: Format, path: Path, watch: Watch) -> Plan:
    """Returns the plan to export. If `auto` plans, this is the fastest that the format can express.

    A plan file, and the plan of an algorithm that is named, are returned as they are.
    """

    def refuse(plan: Plan) -> str | None:
        """Returns why the plan cannot be written, if so."""
        with TemporaryDirectory() as folder:
            try:
                size_bytes = size_of(plan, parameters.size, parameters.demand)
                size = size_bytes if form.sized else None
                place = Path(folder, path.name)
                exports.export(plan, place, form.name, size, _protocol(parameters, form))
            except OpticollError as error:
                return str(error)
        return None

    plan = obtain(parameters, parameters.wavelength, watch)
    # What other formats cannot express does not depend on the algorithm.
    if form.holds != "program" or not plan.candidates or (reason := refuse(plan)) is None:
        return plan
    try:
        other = obtain(parameters, parameters.wavelength, watch, refuse=refuse)
    except AlgorithmError:
        # No plan fits. The file is not written, for the same reason.
        return plan
    (_, _, least_ps, _), (_, _, time_ps, _) = plan.candidates[0], other.candidates[0]
    # The second search may find a slightly faster plan that the first search did not build.
    if time_ps > least_ps:
        watch.notes.append(
            f"{other.algorithm} takes {human_time(time_ps)}; {plan.algorithm} takes "
            f"{human_time(least_ps)}, but does not fit: {reason}"
        )
    return other


def _with_protocol(parameters: Parameters) -> Parameters:
    """Returns parameters with which `auto` times the protocol that is written by default.

    Packets (LL) are written for small sizes on one server, for which NCCL also has LL.
    """
    if parameters.fabric is None or names_file(parameters.source):
        return parameters
    fabric = to_fabric(parameters.fabric)
    size_bytes = to_bytes(parameters.size or DEFAULT_SIZE)
    small = fabric.group_size == fabric.ranks and size_bytes <= MAX_PACKET_BYTES
    if small or fabric.option("library") is None:
        return parameters
    return replace(parameters, method=replace(parameters.method, protocol="simple"))


def _servers_of(fabric: Fabric) -> list[str]:
    """Returns a note if the fabric states no servers.

    Raises
    ------
    UsageError
        Servers have different numbers of GPUs.
    """
    if fabric.group_size is not None or fabric.ranks == 1:
        return []
    if fabric.family == "gpu_servers":
        raise UsageError(
            "MSCCL++ needs servers with equal numbers of GPUs; plan on whole servers, such as "
            "dgx_h100:boxes=2"
        )
    return [
        f"the {fabric.ranks} ranks are written as GPUs of one server: the fabric has no servers"
    ]


def _protocol(parameters: Parameters, form: Format) -> str | None:
    """Returns the protocol of MSCCL++ that the setting `protocol` demands, if the format has one.

    The protocol with which MSCCL++ moves packets is called LL in NCCL, too.

    Raises
    ------
    UsageError
        MSCCL++ has no such protocol.
    """
    demanded = str(parameters.settings.get("protocol", "auto")).lower()
    if form.name != "mscclpp" or demanded == "auto":
        return None
    known = {"ll": "LL", "simple": "Simple"}
    if demanded not in known:
        raise UsageError(f"--protocol: plans of MSCCL++ have ll or simple, not {demanded}")
    return known[demanded]


def _fabric_row(parameters: Parameters, form: Format) -> ExportedFabricRow:
    """Returns the row of a fabric to export."""
    _refuse(parameters, "goes with a plan: name a plan file or a collective, too")
    if parameters.fabric is None:
        raise UsageError("name a plan file or a collective, or --fabric for the fabric alone")
    fabric = to_fabric(parameters.fabric)
    if not fabric.electrical and not (form.fibres and has_fibre_links(fabric)):
        problem = f"{form.name} cannot express the circuits of {fabric.family}"
        raise UsageError(f"--format: {problem}")
    links = fabric.as_custom().link_count
    return ExportedFabricRow(fabric=fabric.spec, ranks=fabric.ranks, links=links, format=form.name)


def _choices_row(parameters: Parameters, form: str) -> ExportedChoicesRow:
    """Returns the row of a selection table, which is made from the rows of a comparison."""
    collective = canonical(parameters.source, known_names("collectives"))
    if collective is not None:
        raise UsageError(
            f"a table of {DIALECTS[form].library} is made from rows: `opticoll compare "
            f"{collective} --fabric ... --csv rows.csv` writes them, then `opticoll export "
            f"rows.csv --format {form} --output ...` makes the table"
        )
    _refuse(
        parameters, "cannot be given with rows of `compare`: they hold their own", parameters.fabric
    )
    content = table(read_rows(Path(parameters.source)), DIALECTS[form])
    return ExportedChoicesRow(
        rows=parameters.source,
        choices=len(content.choices),
        remarks=content.remarks,
        format=form,
        content=content,
    )


def _refuse(parameters: Parameters, problem: str, fabric: object = None) -> None:
    """Raises an error for options that only plans have."""
    names = ("algorithm", "size", "root", "demand", "wavelength")
    stated = {name: getattr(parameters, name) for name in names}
    refuse_given({**stated, "fabric": fabric, **parameters.settings}, problem)


def _text(parameters: Parameters, rows: list[AnyRow]) -> str:
    (row,) = rows
    if isinstance(row, ExportedFabricRow):
        of = f"{plural(row.ranks, 'rank')}, {plural(row.links, 'link')}, as {row.format}"
        return f"{fabric_text(row.fabric)}: {of}"
    if isinstance(row, ExportedChoicesRow):
        sentence = f"{plural(row.choices, 'choice')} from {row.rows}, as {row.format}"
        return "\n".join([sentence, *row.remarks])
    return (
        f"{algorithm_name(row.chosen, row.algorithm)}: {row.collective} on {row.ranks} ranks, "
        f"{plural(row.steps, 'slot')}, {plural(row.transfers, 'transfer')}, as {row.format}"
    )


def _write(parameters: Parameters, rows: list[AnyRow], path: Path) -> list[Path] | None:
    (row,) = rows
    if isinstance(row, ExportedFabricRow):
        exports.FABRICS[row.format].write(Fabric(row.fabric), path)
        return None
    if isinstance(row, ExportedChoicesRow):
        exports.CHOICES[row.format].write(row.content, path)
        return None
    protocol = _protocol(parameters, exports.KNOWN[row.format])
    return exports.export(row.plan, path, parameters.format, row.size_bytes, protocol)


COMMAND: Command[Parameters, AnyRow] = Command(
    name="export",
    example="opticoll compare all_reduce --fabric torus:dims=4x4 --sizes 1KiB,1MiB --csv rows.csv\n"
    "opticoll export rows.csv --format mpich --output tuned.json\n"
    "opticoll export all_gather --fabric torus:dims=4x4 --output transfers.csv",
    parameters=Parameters,
    rows=(ExportRow, ExportedFabricRow, ExportedChoicesRow),
    compute=compute,
    text=_text,
    progress_label="planning",
    shape="row",
    files=(
        File(
            "output",
            "File for the plan, the fabric or the choices (required)",
            _write,
            check_writable,
        ),
    ),
)
command_line = on_command_line(COMMAND)
