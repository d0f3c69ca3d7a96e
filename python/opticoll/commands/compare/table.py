"""Tables of a comparison: one per fabric and size, and one of the fastest plan on each fabric.

Rows with several reconfiguration times share a table with the fastest plan at each time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from opticoll.inputs.imported import is_plan_file
from opticoll.names import DEFAULT_ALGORITHM
from opticoll.outputs import break_even
from opticoll.outputs.break_even import Lead
from opticoll.outputs.fabric_names import fabric_labels, fabric_text
from opticoll.outputs.layout import (
    align,
    cell,
    format_rate,
    human_energy,
    human_seconds,
    human_time,
    plural,
    size_names,
    wrapped,
)
from opticoll.outputs.plan_row import PlanRow, capacity_lines, different_ranks, timing_rule
from opticoll.outputs.verification import verdict


def comparison_table(rows: Sequence[PlanRow]) -> str:
    """Returns a table per fabric and size, in which each time has its ratio to the shortest time.

    If several fabrics have the same size, a table of the fastest algorithm on each fabric follows.
    """
    tables = []
    sizes = size_names(row.size_bytes for row in rows)
    for group in _groups(rows):
        first = group[0]
        # A plan that violates a rule cannot win.
        shortest_ps = min((row.time_ps for row in group if row.verified), default=None)
        columns = {
            "algorithm": [row.algorithm for row in group],
            "steps": [str(row.steps) for row in group],
            "paper": [cell(row.claimed_steps) for row in group],
            "wavelengths": [str(row.wavelengths_used) for row in group],
            "configurations": [str(row.configurations) for row in group],
            "time": [human_time(row.time_ps) for row in group],
            "algbw": [_gigabytes(row.algorithm_bandwidth) for row in group],
            "busbw": [_gigabytes(row.bus_bandwidth) for row in group],
            "ratio": [_ratio(row, shortest_ps) for row in group],
            "verified": ["yes" if row.verified else verdict(row.violations) for row in group],
        }
        if first.wavelengths is None:
            for name in ("paper", "wavelengths", "configurations"):
                del columns[name]
            columns["bottleneck"] = [row.bottleneck or "-" for row in group]
        size = f"{sizes[first.size_bytes]} ({first.size_convention})"
        title = f"{first.collective} of {size} on {plural(first.ranks, 'rank')}"
        title += f" of {fabric_text(first.fabric)}"
        title += f", {format_rate(first.injection_bandwidth)} per rank"
        lines = list(zip(*columns.values(), strict=True))
        right = range(1, list(columns).index("verified"))
        tables.append(f"{title}\n{align(lines, list(columns), right)}")
        if first.bound_time_s is not None:
            bound = f"lower bound: {human_seconds(first.bound_time_s)}"
            tables[-1] += f"\n{bound} ({first.bound_time_name})"
        for row in group:
            if row.chosen != row.algorithm:
                verb = "is a plan of" if is_plan_file(row.algorithm) else "chose"
                tables[-1] += f"\n{row.algorithm} {verb} {row.chosen}"
                if row.algorithm == DEFAULT_ALGORITHM:
                    tables[-1] += _equals(row, group)
    tables += _fastest_by_fabric(rows)
    tables += _leads_by_size(rows)
    warned = list(dict.fromkeys(f"warning: {warning}" for row in rows for warning in row.warnings))
    tables += ["\n".join(wrapped(warned, 0))] if warned else []
    under = dict.fromkeys(line for row in rows for line in conditions(row))
    return "\n\n".join([*tables, "\n".join(under)])


def _equals(auto: PlanRow, group: Sequence[PlanRow]) -> str:
    """Returns the plans that `auto` chose, or that have the same steps and time as `auto`."""
    others = [row for row in group if row is not auto and row.verified]
    equal = [row.algorithm for row in others if row.chosen == auto.chosen]
    if auto.chosen in equal:
        return ""
    if equal:
        return f" (the plan of {', '.join(equal)})"
    numbers = (auto.steps, auto.configurations, auto.time_ps)
    same = [
        row.algorithm for row in others if (row.steps, row.configurations, row.time_ps) == numbers
    ]
    return f" (the same steps and time as {', '.join(same)})" if same else ""


def conditions(row: PlanRow) -> list[str]:
    """Returns lines on the conditions of a row's time, and on the columns of its table."""
    conditions = f"{timing_rule(row)}, simulator {row.simulator}"
    legend = "steps: time slots really used; paper: the number that the paper gives"
    if row.wavelengths is None:
        legend = "bottleneck: the link that bounds the critical path for the longest time"
        if row.simulator == "packet":
            legend = "bottleneck: the link that was sending for the longest time"
    columns = "per rank: the bandwidth that a rank can inject; ratio: the time over the least here"
    bandwidths = "algbw, busbw: GB/s, as nccl-tests defines them"
    return [conditions, legend, columns, bandwidths]


def _fastest_by_fabric(rows: Sequence[PlanRow]) -> list[str]:
    """Returns a table per size that several fabrics have: the fastest plan on each fabric."""
    labels = fabric_labels(row.fabric for row in rows)
    sizes: dict[int, dict[str, PlanRow]] = {}
    for row in rows:
        fastest_of = sizes.setdefault(row.size_bytes, {})
        fastest_so_far = fastest_of.get(row.fabric)
        if row.verified and (fastest_so_far is None or row.time_ps < fastest_so_far["time_ps"]):
            fastest_of[row.fabric] = row
    tables = []
    names = size_names(sizes)
    for size_bytes, fastest_of in sizes.items():
        group = list(fastest_of.values())
        if len(group) < 2:
            continue
        least = min(row.time_ps for row in group)
        sized = different_ranks(group)
        cells = [
            [
                labels[row.fabric],
                *([str(row.ranks)] if sized else []),
                format_rate(row.injection_bandwidth),
                row.chosen,
                human_time(row.time_ps),
                _ratio(row, least),
            ]
            for row in group
        ]
        size = f"{names[size_bytes]} ({group[0].size_convention})"
        heading = ["fabric", *(["ranks"] if sized else []), "per rank", "fastest", "time", "ratio"]
        table = align(cells, heading, right=(1, 2, 4, 5) if sized else (1, 3, 4))
        tables.append(
            f"{group[0]['collective']} of {size}, the fastest plan on each fabric\n{table}"
        )
        tables[-1] += "".join(f"\n{line}" for line in capacity_lines(group))
    return tables


def energy_table(rows: Sequence[PlanRow]) -> str:
    """Returns a table per size with the energy of each plan, and the static energy."""
    labels = fabric_labels(row.fabric for row in rows)
    names = size_names(row.size_bytes for row in rows)
    tables = []
    for size_bytes, name in names.items():
        group = [row for row in rows if row.size_bytes == size_bytes]
        columns = {
            "fabric": [labels[row.fabric] for row in group],
            "algorithm": [row.algorithm for row in group],
            "time": [human_time(row.time_ps) for row in group],
            "energy": [human_energy(row.energy_j) for row in group],
            "per bit": [
                "-" if row.energy_per_bit_j is None else human_energy(row.energy_per_bit_j)
                for row in group
            ],
            "lasers": [human_energy(row.laser_energy_j) for row in group],
            "static power": [f"{row.static_power_w:,.6g} W" for row in group],
            "static": [human_energy(row.static_energy_j) for row in group],
        }
        if len(labels) == 1:
            del columns["fabric"]
        lines = list(zip(*columns.values(), strict=True))
        right = range(len(columns) - 6, len(columns))
        title = f"energy of {rows[0].collective} of {name} ({rows[0].size_convention})"
        tables.append(f"{title}\n{align(lines, list(columns), right)}")
    legend = [
        "energy: bits in the parts that they pass, lit lasers and reconfigurations; per bit of the "
        "results; static: the power of all parts times the time"
    ]
    unknown = dict.fromkeys(
        name for row in rows for name in [*row.energy_unknown, *row.power_unknown]
    )
    legend += [f"not in it, without a listed value: {', '.join(unknown)}"] if unknown else []
    return "\n\n".join([*tables, "\n".join(wrapped(legend, 0))])


def _leads_by_size(rows: Sequence[PlanRow]) -> list[str]:
    """Returns a table per fabric with several sizes: the fastest kind of plan for each size."""
    fabrics: dict[str, list[PlanRow]] = {}
    for row in rows:
        fabrics.setdefault(row.fabric, []).append(row)
    sizes = size_names(row.size_bytes for row in rows)
    tables = []
    for fabric, fabric_rows in fabrics.items():
        leading = break_even.leads(fabric_rows, lambda row: int(row["size_bytes"]))
        if len(leading) < 2:
            continue
        cells = [
            [
                sizes[run[0].at],
                sizes[run[-1].at],
                run[0].kind,
                *(human_time(lead.row["time_ps"]) for lead in (run[0], run[-1])),
                *(_gigabytes(lead.row["bus_bandwidth"]) for lead in (run[0], run[-1])),
            ]
            for run in break_even.runs(leading)
        ]
        heading = ["from", "to", "fastest", "time at from", "at to", "busbw at from", "at to"]
        title = f"{fabric_rows[0].collective} on {plural(fabric_rows[0].ranks, 'rank')}"
        title += f" of {fabric_text(fabric)}, the fastest plan by size"
        table = align(cells, heading, right=(0, 1, 3, 4, 5, 6))
        tables.append(f"{title}\n{table}")
    if tables:
        tables[-1] += "\nfrom, to: first and last of the sizes compared at which a plan leads"
    return tables


def _gigabytes(bandwidth: float | None) -> str:
    return "-" if bandwidth is None else f"{bandwidth:.4g}"


def _ratio(row: PlanRow, shortest_ps: int | None) -> str:
    """Returns the ratio of a row's time to the shortest time; `-` if no time is valid."""
    if shortest_ps is None or not row.verified:
        return "-"
    return f"{row.time_ps / shortest_ps:.2f}" if shortest_ps else "1.00" if not row.time_ps else "-"


def _groups(rows: Sequence[PlanRow]) -> list[list[PlanRow]]:
    """Groups rows by fabric and size, in the order of first appearance."""
    groups: dict[tuple[str, int], list[PlanRow]] = {}
    for row in rows:
        groups.setdefault((row.fabric, row.size_bytes), []).append(row)
    return list(groups.values())


def reconfiguration_table(rows: Sequence[PlanRow]) -> str:
    """Returns a table of the fastest plan at each reconfiguration time, with ranges of times."""
    leading = break_even.leads(rows)
    first = rows[0]
    size = f"{size_names([first.size_bytes])[first.size_bytes]} ({first.size_convention})"
    fabric = break_even.fabric_words(first.fabric)
    title = f"{first.collective} of {size} on {plural(first.ranks, 'rank')} of {fabric}"
    title += f", {format_rate(first.injection_bandwidth)} per rank"
    if not leading:
        return f"{title}\nno plan is verified"
    cells = [
        [
            human_time(lead.at),
            lead.row["chosen"],
            "-" if lead.row["reconfigurations"] is None else str(lead.row["reconfigurations"]),
            human_time(lead.row["time_ps"]),
            _over_bound(lead.row),
        ]
        for lead in _changes(leading)
    ]
    heading = ["from", "fastest", "changes", "time", "over bound"]
    under = dict.fromkeys(line for row in rows for line in conditions(row)[:1])
    return "\n".join(
        [
            title,
            align(cells, heading, right=(0, 2, 3, 4)),
            break_even.spans(leading),
            *under,
            "from: reconfiguration time from which on a plan leads, within 1 %; last line: the "
            "longest time",
            "changes: how often the fabric is reconfigured; over bound: how far the time is above "
            "the lower bound",
        ]
    )


def _over_bound(row: Mapping[str, Any]) -> str:
    if not row["bound_time_s"]:
        return "-"
    return f"{row['time_s'] / row['bound_time_s'] - 1:.1%}"


def _changes(leading: Sequence[Lead]) -> list[Lead]:
    """Returns the first winner, the winners that differ from the winner before, and the last.

    Winners differ in the kind of plan or in the number of reconfigurations.
    """

    pairs = pairwise(leading)
    first = [leading[0], *(now for before, now in pairs if before.plan != now.plan)]
    return first if first[-1] is leading[-1] else [*first, leading[-1]]
