"""Command `bound`: lower bounds on the time of any plan of a collective on a fabric."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from opticoll import _core
from opticoll.cli.arguments import PartOptions
from opticoll.cli.option_types import argument
from opticoll.cli.options import BOUNDED, DemandOption, FabricOption, RootOption, SizeOption
from opticoll.cli.runner import Command, on_command_line
from opticoll.errors import installing
from opticoll.inputs import demands
from opticoll.inputs.demands import DEFAULT_SIZE
from opticoll.inputs.fabric_files import need_fabric
from opticoll.inputs.request import check_root
from opticoll.inputs.values import to_bytes
from opticoll.outputs.fabric_names import fabric_text
from opticoll.outputs.layout import PICOSECONDS, format_rate, plural
from opticoll.outputs.optimum import (
    ALL_AT_ONCE,
    GIGABYTE,
    LINEAR,
    exact,
    optimum,
    proved_time,
    seconds,
    unit,
)
from opticoll.outputs.rows import OMITTED, Row, command_field, means, table
from opticoll.outputs.units import Bytes, Count, Positive, Seconds
from opticoll.outputs.watch import Watch


@dataclass(frozen=True, kw_only=True)
class Parameters(PartOptions):
    """Parameters of `opticoll bound`."""

    collective: str = argument("Collective, such as all_gather")
    size: SizeOption = None
    fabric: FabricOption = None
    root: RootOption = None
    demand: DemandOption = None
    method: Any = BOUNDED


class WitnessRow(Row):
    """Proof of a bound: a cut (ranks and links), multipliers of links, or trees of lightpaths."""

    ranks: list[Count] = means("Ranks on one side of the cut; empty if multipliers prove the bound")
    parts: Count = means(
        "Number of parts that these ranks form: 1 for a simple cut; several if the data for all "
        "parts cross the links together; 0 for multipliers"
    )
    links: list[str] = means(
        "Links that lead into or out of these ranks; or links with multipliers"
    )
    multipliers: list[Count] = means(
        "Multipliers of the links in a linear program, as multiples of one unit; empty for a cut"
    )
    slots: Count | None = means(
        "Number of slots of the trees of lightpaths that prove the bound",
        absent="no trees prove the bound",
    )
    tree_links: float | None = means(
        "Lower bound on the mean number of links of these trees", absent="no trees prove the bound"
    )


class BoundRow(Row):
    """Lower bound on the time of any plan; `direct` holds only for plans without relays."""

    name: str = means("Name of the bound", "bound")
    assumption: str = means("Conditions under which the bound holds")
    time_s: Seconds = means(
        "Lower bound on the time of any plan; `direct` holds only for plans without relays", "time"
    )
    witness: WitnessRow | None = means(
        "Cut or multipliers that prove the bound", absent="the bound has no such proof"
    )


class BoundsRow(Row):
    """Throughput optimum and lower bounds on the time of a collective."""

    collective: str = means("Collective, such as `all_gather`")
    fabric: str = means("Complete specification of the fabric")
    ranks: Positive = means("Number of ranks of the fabric")
    root: Count = means("Root; 0 if the collective has none")
    size_bytes: Bytes = means("Size of the collective")
    size_convention: str = means("Meaning of the size")
    policy: str | None = means(
        "Policy for which the bounds hold", absent="electrical fabrics have no policy"
    )
    optimum: str | None = means(
        "Throughput optimum: seconds for a block (in broadcast, reduce and all_reduce, a vector) "
        "of 10^9 bytes, as an exact fraction",
        absent="it is not known exactly",
    )
    optimum_lower_bound: str | None = means(
        "Lower bound on the optimum as a fraction, in the unit of `optimum`", absent="none is known"
    )
    optimum_upper_bound: str | None = means(
        "Upper bound on the optimum as a fraction, in the unit of `optimum`", absent="none is known"
    )
    intact_lower_bound: str | None = means(
        "Value of `optimum_lower_bound` for the same fabric without broken parts",
        absent="nothing is broken, or no such fraction is known",
    )
    algbw_bytes_per_s: float | None = means(
        "Upper bound on the algorithm bandwidth in bytes per second, from `optimum_lower_bound`; a "
        "plan reaches it if `optimum` is known",
        absent="no fraction is known",
    )
    bounds: list[BoundRow] = means(
        "Lower bounds above zero on the time at this size, the greatest first; `direct`, which "
        "holds only for plans without relays, is last"
    )
    command: str = command_field(default=OMITTED)


def compute(parameters: Parameters, watch: Watch) -> Iterator[BoundsRow]:
    """Computes the throughput optimum and all lower bounds on the time.

    Raises
    ------
    OpticollError
        The collective or the fabric is unknown, or the size is invalid.
    """
    kind = _core.collective_kind(parameters.collective)
    check_root(kind, parameters.root)
    fabric = need_fabric(parameters.fabric)
    root = parameters.root or 0
    demand, size_bytes = None, to_bytes(parameters.size or DEFAULT_SIZE)
    if parameters.demand is not None:
        given_bytes = None if parameters.size is None else size_bytes
        demand, size_bytes = demands.checked_demand(
            kind, parameters.demand, fabric.ranks, given_bytes
        )
    collective = _core.Collective(kind, fabric.ranks, root=root, demand=demand)
    lower, upper = (None, None) if demand else optimum(kind, fabric, root)
    broken = fabric.intact != fabric and demand is None
    before, _ = optimum(kind, fabric.intact, root) if broken else (None, None)
    # The buffer contains the blocks of all ranks.
    gathered = kind in ("all_gather", "reduce_scatter", "gather", "scatter", "all_to_all")
    buffer = GIGABYTE * (fabric.ranks if gathered else 1)
    policy, time_bounds = _core.time_bounds(
        kind, fabric, size_bytes, root, parameters.method.policy, parameters.method.paths, demand
    )
    bounds = [
        BoundRow(
            name=name,
            assumption=assumption,
            time_s=time_ps / PICOSECONDS,
            witness=None if shown is None else _witness(*shown),
        )
        for time_ps, name, assumption, shown in time_bounds
    ]
    if demand is None:
        bounds += _linear_program_bound(kind, fabric, size_bytes)
    yield BoundsRow.of(
        collective,
        collective=kind,
        fabric=fabric.spec,
        size_bytes=size_bytes,
        policy=policy,
        optimum=str(lower) if lower is not None and lower == upper else None,
        intact_lower_bound=None if before is None else str(before),
        optimum_lower_bound=None if lower is None else str(lower),
        optimum_upper_bound=None if upper is None else str(upper),
        algbw_bytes_per_s=float(buffer / lower) if lower else None,
        # Bounds on all plans precede bounds on direct plans.
        bounds=sorted(
            filter(lambda bound: bound.time_s > 0, bounds),
            key=lambda bound: (bound.name == "direct", -bound.time_s),
        ),
    )


def _witness(
    ranks: list[int],
    parts: int,
    links: list[str],
    multipliers: list[int],
    trees: tuple[int, int, int] | None,
) -> WitnessRow:
    proof = {"ranks": ranks, "parts": parts, "links": links, "multipliers": multipliers}
    if trees is None:
        return WitnessRow.of(proof)
    return WitnessRow.of(proof, slots=trees[0], tree_links=trees[1] / trees[2])


def _linear_program_bound(kind: str, fabric: _core.Fabric, size_bytes: int) -> Iterator[BoundRow]:
    """Yields the linear program's bound on an all_to_all if it exceeds the core's bounds."""
    proved = proved_time(kind, fabric, size_bytes)
    if proved is None:
        return
    weighted = [
        (link, multiplier) for link, multiplier in enumerate(proved.multipliers) if multiplier > 0
    ]
    yield BoundRow(
        name=LINEAR,
        assumption=ALL_AT_ONCE,
        time_s=proved.time_ps / PICOSECONDS,
        witness=WitnessRow.of(
            ranks=[],
            parts=0,
            links=[fabric.link_name(link) or "" for link, _ in weighted],
            multipliers=[weight for _, weight in weighted],
        ),
    )


MAX_NAMED_LINKS = 4
"""Maximum number of links of a cut that the text names."""


def _text(parameters: Parameters, rows: list[BoundsRow]) -> str:
    (row,) = rows
    fabric = fabric_text(row.fabric)
    lines = [f"{row.collective} on {plural(row.ranks, 'rank')} of {fabric}"]
    least, most, before = (
        None if text is None else Fraction(text)
        for text in (row.optimum_lower_bound, row.optimum_upper_bound, row.intact_lower_bound)
    )
    if least is not None:
        optimum_text = f"optimum: {seconds(least, most)} {unit(row.collective)}"
        lines.append(
            optimum_text + ("" if before is None else f"; {exact(before)} with nothing broken")
        )
    elif row.policy is not None:
        lines.append("optimum: computed on electrical fabrics only, whose links are always up")
    if row.algbw_bytes_per_s is not None:
        rate = format_rate(round(8 * row.algbw_bytes_per_s))
        number = f"{row.algbw_bytes_per_s / GIGABYTE:.3f} GB/s ({rate})"
        at_most = "" if row.optimum is not None else "at most "
        lines.append(f"bandwidth of the buffer: {at_most}{number}")
    size = f" for {_core.format_size(row.size_bytes)} ({row.size_convention})"
    if row.collective == "barrier":
        size = ""
    if not row.bounds:
        return "\n".join([*lines, f"no bound on the time is known for {fabric}"])
    under = "" if row.policy is None else f" under policy {row.policy}"
    lines += ["", f"no plan{size}{under} takes less than:"]
    lines.append(table(row.bounds, ("name", "time_s", "assumption")))
    if any(bound.name == "direct" for bound in row.bounds):
        lines += [
            "",
            "direct holds for plans without relays only: a plan that relays may take less",
        ]
    shown = next((bound for bound in row.bounds if bound.witness), None)
    if shown is not None and shown.witness is not None:
        # If the greatest bound has no witness, the text shows the witness of a smaller bound.
        whose = "" if shown.time_s == row.bounds[0].time_s else f" of {shown.name}"
        lines += ["", f"bottleneck{whose}: {_bottleneck(shown.witness)}"]
    if row.collective == "all_to_all" and row.optimum is None and least is not None:
        lines += ["", f"the exact optimum is that of a linear program: {installing('lp')}"]
    return "\n".join(lines)


def _bottleneck(witness: WitnessRow) -> str:
    """Returns the ranks and links, or the trees, that prove a bound, as text."""
    if witness.slots is not None:
        within = f"trees of lightpaths over at most {plural(witness.slots, 'slot')}"
        return f"{within} have at least {witness.tree_links:.4g} links each on average"
    names = witness.links[:MAX_NAMED_LINKS]
    more = len(witness.links) - len(names)
    links = f"{plural(len(witness.links), 'link')}: {'; '.join(names)}"
    if more > 0:
        links += f"; {more} more"
    if not witness.ranks:
        return links
    ranks = f"{plural(len(witness.ranks), 'rank')} ({_ranges(witness.ranks)})"
    if witness.parts == 1:
        return f"{ranks} behind {links}"
    if witness.parts == len(witness.ranks):
        return f"all of {ranks} together, behind {links}"
    return f"{ranks} in {witness.parts} parts, all parts together behind {links}"


def _ranges(ranks: list[int]) -> str:
    """Returns ranks in ascending order, with consecutive ranks written as `first-last`.

    >>> _ranges([0, 1, 2, 5, 7, 8])
    '0-2, 5, 7-8'
    """
    runs: list[list[int]] = []
    for rank in ranks:
        if runs and runs[-1][1] == rank - 1:
            runs[-1][1] = rank
        else:
            runs.append([rank, rank])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


COMMAND = Command(
    name="bound",
    example="opticoll bound all_gather --fabric dgx_a100:boxes=2",
    parameters=Parameters,
    rows=BoundsRow,
    compute=compute,
    text=_text,
    progress_label="looking for bounds",
    shape="row",
)
command_line = on_command_line(COMMAND)
