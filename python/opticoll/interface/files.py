"""Functions that read and write fabrics, plans, programs, rows and traces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING

from opticoll._core import Fabric, Plan, Program, Trace

if TYPE_CHECKING:
    from opticoll.inputs.fabric_files import FabricLike


def read_fabric(source: FabricLike) -> Fabric:
    """Reads a fabric from a YAML file, a graph file, or a NetworkX graph.

    All functions with a parameter `fabric` accept the same sources.

    Parameters
    ----------
    source
        The file or the graph. A node is a rank, unless its attribute `kind` says that it is a
        switch. Edges may have the attributes `rate`, `latency`, `sharing` and `duplex`. The graph
        may have default values for these attributes of edges.

    Raises
    ------
    ConfigError
        The file or the graph is not a valid fabric; the message names the place.
    FileError
        The file cannot be read.
    FabricError
        The source is neither a fabric, nor a file, nor a graph.

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
    """Reads a plan file or a schedule in another format; the file may be compressed with zstd.

    A schedule in another format becomes a plan on `fabric`. Programs of ranks, such as MSCCL XML,
    are verified while they are read. Files that only list sends are not verified; call
    `Plan.verify`.

    Parameters
    ----------
    path
        The file.
    format
        The format, such as `msccl` (see `opticoll list formats`; default: recognized by content).
    fabric
        The fabric for a schedule in another format (default: a link between every two ranks). A
        plan file names its own fabric.
    ranks
        The number of ranks, for formats that do not contain it, such as results of TE-CCL
        (default: derived from the vertices that send or receive data).

    Raises
    ------
    FileError
        The file cannot be read or is not text.
    PlanFileError
        The plan is malformed; the message names line and column.
    ProgramError
        The schedule is malformed, or cannot be converted to a plan.
    UsageError
        The schedule violates a rule; the message has the first violation.

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
    """Reads a program of ranks, such as MSCCL XML; the file may be compressed with zstd.

    Parameters
    ----------
    path
        The file.
    format
        The format, such as `msccl` (see `opticoll list formats`; default: recognized by content).

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

    The file appears under its name only after it is complete.

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
    """Writes rows as CSV; the first line has the column names.

    The file appears under its name only after it is complete.

    Parameters
    ----------
    rows
        Rows, or other mappings with equal keys.
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
        A file, the folder of an OTF2 archive, or the content of a file as bytes. A file may be
        compressed with zstd.
    form
        The format, such as `goal` (see `opticoll list formats`; default: recognized by content).
    operations_per_second
        Rate of floating-point operations, for traces that count operations instead of time.

    Raises
    ------
    FileError
        The file cannot be read or decompressed.
    TraceError
        The trace is malformed; the message names the line, the byte, or the rank and event.

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
