"""Files of plans, rows and traces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING

from opticoll._core import Fabric, Plan, Program, Trace

if TYPE_CHECKING:
    from opticoll.inputs.fabric_files import FabricLike


def read_fabric(source: FabricLike) -> Fabric:
    """Reads a fabric from a YAML file, a graph in a file, or a graph of NetworkX.

    Functions that take a fabric take the same.

    Parameters
    ----------
    source
        The file, or the graph. Nodes are ranks, or switches if their attribute `kind` says so;
        edges may have `rate`, `latency`, `sharing` and `duplex`, and the graph itself the defaults
        of these.

    Raises
    ------
    ConfigError
        The file or the graph is not a fabric; the message names the place.
    FileError
        The file cannot be read.
    FabricError
        It is something else.

    Examples
    --------
    >>> import networkx, opticoll
    >>> graph = networkx.cycle_graph(4)
    >>> networkx.set_edge_attributes(graph, "40Gb/s", "rate")
    >>> fabric = opticoll.read_fabric(graph)
    >>> fabric.family, fabric.ranks, fabric.link_count, fabric.link_rates[0]
    ('custom', 4, 8, 40000000000)
    """
    from opticoll.inputs.fabric_files import to_fabric

    return to_fabric(source)


def read_plan(
    path: str | PathLike[str],
    *,
    format: str | None = None,
    fabric: FabricLike | None = None,
    ranks: int | None = None,
) -> Plan:
    """Reads a plan file, or the schedule of others, compressed with zstd or not.

    A schedule of others becomes a plan on a fabric. A program of ranks, such as MSCCL XML, is
    proved first; of a schedule of sends, `Plan.verify` says whether it is right.

    Parameters
    ----------
    path
        The file.
    format
        The format, such as `msccl` (see `opticoll list formats`; default: the format that the
        content shows).
    fabric
        The fabric of a schedule of others (default: a link between every two ranks). A plan
        file names its own fabric.
    ranks
        The number of ranks, for a file that does not say it, such as a result of TE-CCL (default:
        as its vertices show).

    Raises
    ------
    FileError
        The file cannot be read or is not text.
    PlanFileError
        The plan is malformed; the message names line and column.
    ProgramError
        The schedule of others is malformed or has no form as a plan.
    UsageError
        The schedule of others is wrong; the message has the first violation.

    Examples
    --------
    >>> import opticoll
    >>> plan = opticoll.plan("all_gather", "wdm_ring:ranks=16,wavelengths=2", "ring")
    >>> opticoll.write_plan(plan, "ring.plan")
    >>> opticoll.read_plan("ring.plan")
    <Plan of all_gather by ring on 16 ranks: 15 slots, 240 transfers>
    >>> plan.export("ring.xml")
    [PosixPath('ring.xml'), PosixPath('ring.xml.plan')]
    >>> theirs = opticoll.read_plan("ring.xml", format="msccl")
    >>> theirs.fabric.spec, len(theirs.step_slots), theirs.verify()
    ('fully_connected:ranks=16,rate=100Gb/s,latency=0s', 15, [])
    """
    from opticoll.inputs import imported

    plan, _ = imported.read_plan(path, format, fabric, ranks)
    return plan


def read_program(path: str | PathLike[str], *, format: str | None = None) -> Program:
    """Reads a file with the programs of ranks, such as MSCCL XML, compressed with zstd or not.

    Parameters
    ----------
    path
        The file.
    format
        The format, such as `msccl` (see `opticoll list formats`; default: the format that the
        content shows).

    Raises
    ------
    FileError
        The file cannot be read or is not text.
    ProgramError
        The program is malformed; the message names the line.

    Examples
    --------
    >>> import opticoll
    >>> plan = opticoll.plan("all_gather", "crossbar:ranks=4", "ring")
    >>> with open("ring.xml", "w") as file:
    ...     _ = file.write(opticoll.Program.from_plan(plan).to_msccl())
    >>> opticoll.read_program("ring.xml").verify(in_place=True).violations
    []
    """
    from opticoll.inputs import imported

    return imported.read_program(path, format)


def write_plan(plan: Plan, path: str | PathLike[str]) -> None:
    """Writes a plan file, compressed with zstd if the name ends in `.zst`.

    The file appears under its name only when it is complete.

    Parameters
    ----------
    plan
        The plan.
    path
        The file; its name ends in `.plan` or `.plan.zst`.

    Raises
    ------
    FileError
        The file cannot be written.

    Examples
    --------
    >>> import opticoll
    >>> plan = opticoll.plan("all_gather", "wdm_ring:ranks=16,wavelengths=2", "ring")
    >>> opticoll.write_plan(plan, "ring.plan.zst")
    """
    from opticoll import formats

    formats.named_format("plan", str(path)).write(plan, path)


def write_csv(rows: Sequence[Mapping[str, object]], path: str | PathLike[str]) -> None:
    """Writes rows as CSV under a heading of their keys.

    The file appears under its name only when it is complete.

    Parameters
    ----------
    rows
        Rows, or other mappings with the same keys.
    path
        The file.

    Raises
    ------
    FileError
        The file cannot be written.

    Examples
    --------
    >>> import opticoll
    >>> ring = "wdm_ring:ranks=16,wavelengths=2"
    >>> comparison = opticoll.compare("all_gather", ring, "ring,optree")
    >>> opticoll.write_csv(comparison.rows, "comparison.csv")
    """
    from opticoll.formats import table

    table.write_csv(rows, path)


def read_trace(
    source: str | PathLike[str] | bytes,
    form: str | None = None,
    *,
    operations_per_second: int | None = None,
) -> Trace:
    r"""Reads the trace of an MPI program.

    Parameters
    ----------
    source
        A file, the folder of an OTF2 archive, or the content of a file; compressed with zstd or
        not.
    form
        The format, such as `goal` (see `opticoll list formats`; default: the format that the
        content shows).
    operations_per_second
        Rate of floating-point operations, for traces that count operations instead of time.

    Raises
    ------
    FileError
        The file cannot be read or decompressed.
    TraceError
        The trace is malformed; the message names the line, the byte, or rank and event.

    Examples
    --------
    >>> import opticoll
    >>> opticoll.read_trace(
    ...     b"# app=hello ranks=2\nrank,call,peer,send_bytes,recv_bytes,tag,comm,req,compute_ns\n"
    ...     b"0,Send,1,8,0,7,0,,100\n1,Recv,0,0,8,7,0,,40\n"
    ... )
    <Trace 2 ranks, 2 events>
    """
    from opticoll import exports

    return exports.read_trace(source, form, operations_per_second)
