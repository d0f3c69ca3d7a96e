"""What no plan of a collective can beat on a fabric."""

# Not `from __future__ import annotations`: cyclopts reads the types of a dataclass at run time.

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Annotated

from cyclopts import Parameter

from opticoll import _core, config, registry
from opticoll.arguments import DEFAULT_SIZE, check_root, need_fabric
from opticoll.layout import PICOSECONDS, align, format_rate, human_seconds, plural
from opticoll.options import NO_BOUNDED, BoundedOption, FabricOption, RootOption, SizeOption
from opticoll.rows import (
    OMITTED,
    Bytes,
    Count,
    Positive,
    Row,
    Seconds,
    command_field,
    means,
)
from opticoll.runner import Command, Watch, on_command_line

GIGABYTE = 10**9


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What `opticoll bound` takes."""

    collective: Annotated[str, Parameter(help="Collective, such as all_gather")] = field(
        kw_only=False
    )
    fabric: FabricOption = None
    size: SizeOption = None
    root: RootOption = None
    method: BoundedOption = NO_BOUNDED


class WitnessRow(Row):
    """A cut: ranks on one side, and the links between them and the others."""

    ranks: list[Count] = means("Ranks on one side of the cut")
    links: list[str] = means("Links into that side, or out of it")


class BoundRow(Row):
    """A time that no plan goes below."""

    name: str = means("Name of the bound", "bound")
    assumption: str = means("Conditions under which the bound holds")
    time_s: Seconds = means("Time that no plan goes below", "time")
    witness: WitnessRow | None = means(
        "Cut that shows the bound", absent="the bound is not that of one cut"
    )


class BoundsRow(Row):
    """What no plan of a collective can beat."""

    collective: str = means("Collective, such as `all_gather`")
    fabric: str = means("Complete specification of the fabric")
    ranks: Positive = means("Number of ranks of the fabric")
    root: Count = means("Root; 0 where the collective has none")
    size_bytes: Bytes = means("Size of the collective")
    size_convention: str = means("What the size counts")
    policy: str | None = means(
        "Policy for which the bounds hold", absent="electrical fabrics have no policy"
    )
    optimum: str | None = means(
        "Throughput optimum: seconds for a block of 10^9 bytes (of broadcast, reduce and "
        "all_reduce: for a vector), as an exact fraction",
        absent="it is not known exactly",
    )
    at_least: str | None = means(
        "Fraction that the optimum is not below, in the unit of `optimum`", absent="none is known"
    )
    at_most: str | None = means(
        "Fraction that the optimum is not above, in the unit of `optimum`", absent="none is known"
    )
    algbw_bytes_per_s: float | None = means(
        "Bytes per second of the whole buffer at `at_least`: no plan has more",
        absent="no fraction is known",
    )
    bounds: list[BoundRow] = means(
        "Bounds on the time for the size that are above zero, the greatest first"
    )
    command: str = command_field(default=OMITTED)


def compute(asked: Asked, watch: Watch) -> Iterator[BoundsRow]:
    """Find the throughput optimum and all bounds on time.

    Raises
    ------
    OpticollError
        An unknown collective or fabric, or a size that is none.
    """
    kind = _core.collective_kind(asked.collective)
    check_root(kind, asked.root)
    fabric = need_fabric(asked.fabric)
    root = asked.root or 0
    size_bytes = config.to_bytes(DEFAULT_SIZE if asked.size is None else asked.size)
    collective = _core.Collective(kind, fabric.ranks, root=root)
    known = _core.throughput_optimum(kind, fabric, root)
    # A rank's whole input holds a block for each rank.
    blocks = fabric.ranks if kind == "reduce_scatter" else 1
    least, most = (None, None) if known is None else known
    at_least = None if least is None else Fraction(*least) * blocks
    at_most = None if most is None else Fraction(*most) * blocks
    # The buffer holds the blocks of all ranks.
    gathered = kind in ("all_gather", "reduce_scatter", "gather", "scatter")
    buffer = GIGABYTE * (fabric.ranks if gathered else 1)
    policy, found = _core.time_bounds(
        kind, fabric, size_bytes, root, asked.method.policy, asked.method.paths
    )
    bounds = [
        BoundRow(
            name=name,
            assumption=assumption,
            time_s=time_ps / PICOSECONDS,
            witness=None if cut is None else WitnessRow(ranks=cut[0], links=cut[1]),
        )
        for time_ps, name, assumption, cut in found
    ]
    yield BoundsRow(
        collective=kind,
        fabric=fabric.spec,
        ranks=fabric.ranks,
        root=root,
        size_bytes=size_bytes,
        size_convention=collective.size_convention,
        policy=policy,
        optimum=str(at_least) if at_least is not None and at_least == at_most else None,
        at_least=None if at_least is None else str(at_least),
        at_most=None if at_most is None else str(at_most),
        algbw_bytes_per_s=float(buffer / at_least) if at_least else None,
        bounds=sorted(filter(lambda bound: bound.time_s > 0, bounds), key=lambda one: -one.time_s),
    )


MOST_NAMED = 4
"""Links of a cut that the text names."""


def _text(asked: Asked, rows: list[BoundsRow]) -> str:
    (row,) = rows
    fabric = registry.fabric_text(row.fabric)
    lines = [f"{row.collective} on {plural(row.ranks, 'rank')} of {fabric}"]
    what = "vector" if row.collective in ("all_reduce", "broadcast", "reduce") else "block"
    if row.optimum is not None:
        lines.append(f"optimum: {row.optimum} s for a {what} of 1 GB")
    elif row.at_least is not None:
        most = "" if row.at_most is None else f", at most {row.at_most} s"
        lines.append(f"optimum: at least {row.at_least} s{most}, for a {what} of 1 GB")
    elif row.policy is not None:
        lines.append("optimum: known on electrical fabrics only; circuits take time to change")
    if row.algbw_bytes_per_s is not None:
        rate = format_rate(round(8 * row.algbw_bytes_per_s))
        lines.append(
            f"bandwidth of the buffer: {row.algbw_bytes_per_s / GIGABYTE:.3f} GB/s ({rate})"
        )
    size = _core.format_size(row.size_bytes)
    if not row.bounds:
        return "\n".join([*lines, f"no bound on the time is known for {fabric}"])
    under = "" if row.policy is None else f" under policy {row.policy}"
    lines += ["", f"no plan for {size} ({row.size_convention}){under} takes less than:"]
    cells = [[bound.name, human_seconds(bound.time_s), bound.assumption] for bound in row.bounds]
    lines.append(align(cells, ["bound", "time", "assumption"], {1}))
    witness = next((bound.witness for bound in row.bounds if bound.witness), None)
    if witness is not None:
        names = witness.links[:MOST_NAMED]
        more = len(witness.links) - len(names)
        lines += [
            "",
            f"bottleneck: {plural(len(witness.ranks), 'rank')} ({_ranges(witness.ranks)}) behind "
            f"{plural(len(witness.links), 'link')}: {'; '.join(names)}"
            + f"; {more} more"
            * (more > 0),
        ]
    return "\n".join(lines)


def _ranges(ranks: list[int]) -> str:
    """Ranks in ascending order, those that follow one another as `first-last`.

    >>> _ranges([0, 1, 2, 5, 7, 8])
    '0-2, 5, 7-8'
    """
    runs: list[list[int]] = []
    for rank in ranks:
        if runs and runs[-1][1] == rank - 1:
            runs[-1][1] = rank
        else:
            runs.append([rank, rank])
    return ", ".join(str(one) if one == last else f"{one}-{last}" for one, last in runs)


COMMAND = Command(
    name="bound",
    example="opticoll bound all_gather --fabric dgx_a100:boxes=2",
    asks=Asked,
    gives=BoundsRow,
    compute=compute,
    text=_text,
    doing="looking for bounds",
    shape="row",
)
command_line = on_command_line(COMMAND)
