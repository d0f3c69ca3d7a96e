"""Plans, comparisons, records and findings as plain text.

Nothing in this package prints; every function returns text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from opticoll import registry
from opticoll._core import CONVERTED, format_time
from opticoll.report.layout import (
    PICOSECONDS,
    align,
    cell,
    describe_size,
    format_rate,
    human_time,
    labelled,
    plural,
    wrapped,
)

if TYPE_CHECKING:
    from opticoll._core import Fabric, Plan
    from opticoll.papers.kit import Finding, Results
    from opticoll.registry import ListedRecord
    from opticoll.study.comparison import CandidateRow, Refusal, Row, ViolationRow

__all__ = [
    "algorithm_name",
    "candidate_table",
    "comparison_table",
    "describe_fabric",
    "findings_table",
    "injection_lines",
    "left_out",
    "lightpath_lines",
    "plan_head",
    "plan_line",
    "plan_summary",
    "record_list",
    "study_text",
    "verdict",
    "violation_lines",
]

MOST_VIOLATIONS = 20
"""Violations printed for people; machines get all of them."""

MOST_LIGHTPATHS = 40
"""Lightpaths of a slot printed for people."""


MOST_STEPS = 24
"""Steps of a schedule whose slots are printed for people."""

ROUNDING = 1e-12
"""Share of a time by which the fluid simulator may round it down."""

MOST_CANDIDATES = 12
"""Candidates of `auto` printed for people."""


def describe_fabric(fabric: Fabric) -> list[str]:
    """The fabric in words, and as spelled; three lines."""
    (record,) = [one for one in registry.records("fabrics") if one["name"] == fabric.family]
    if fabric.electrical:
        links = plural(fabric.link_count, "link")
        return [
            f"{record['summary'][0].lower()}{record['summary'][1:]}",
            f"{plural(fabric.ranks, 'rank')}, {links}",
            fabric.spec,
        ]
    if fabric.grid is not None:
        rows, columns = fabric.grid
        return [
            f"{record['summary'][0].lower()}{record['summary'][1:]}",
            f"{plural(fabric.ranks, 'rank')} on {rows} x {columns} nodes, "
            f"{plural(fabric.wavelengths, 'wavelength')} per laser, "
            f"{format_rate(fabric.rate_bits_per_second)} per transceiver, "
            f"{format_time(fabric.reconfiguration_ps)} to tune",
            fabric.spec,
        ]
    if fabric.path_ports is not None and fabric.path_times_ps is not None:
        latency, establish, release = (format_time(time) for time in fabric.path_times_ps)
        return [
            f"{record['summary'][0].lower()}{record['summary'][1:]}",
            f"{plural(fabric.ranks, 'rank')}, {plural(fabric.path_ports, 'port')} each, "
            f"{format_rate(fabric.rate_bits_per_second)} per path, latency {latency}, "
            f"{establish} to set up, {release} to release",
            fabric.spec,
        ]
    return [
        f"{record['summary'][0].lower()}{record['summary'][1:]}",
        f"{plural(fabric.ranks, 'rank')}, {plural(fabric.fibres, 'fibre')} per direction, "
        f"{plural(fabric.wavelengths, 'wavelength')} per fibre, "
        f"{format_rate(fabric.rate_bits_per_second)} per wavelength, "
        f"{format_time(fabric.reconfiguration_ps)} to reconfigure",
        fabric.spec,
    ]


def plan_line(row: Row) -> str:
    """What a plan needs, the least that any plan needs, and whether it is proved, in one line."""
    steps = f"steps {row['steps']}"
    if row["bound_steps"] is not None:
        steps += f", lower bound {row['bound_steps']} ({registry.bound_words(row['bound_name'])})"
        steps += _gap(row["steps"], row["bound_steps"])
    time = f"time {human_time(row['time_ps'])}"
    if row["bound_time_s"] is not None:
        least_ps = round(row["bound_time_s"] * PICOSECONDS)
        time += f", bound {human_time(least_ps)}"
        time += f" ({registry.bound_words(row['bound_time_name'])})"
        time += _gap(row["time_ps"], least_ps)
    proof = "verified" if row["verified"] else "NOT verified"
    return f"{steps}; {time}; {_rule(row)}; {proof}"


def _rule(row: Row) -> str:
    """The policy, or where there is none the start rule."""
    return f"policy {row['policy']}" if row["start"] is None else f"start {row['start']}"


def _gap(value: int, bound: int) -> str:
    """How far a value is above its bound; nothing where both are zero."""
    if bound <= 0:
        return ""
    if value >= 10 * bound:
        return f", {value / bound:.0f} times the bound"
    gap = value / bound - 1
    # The fluid simulator rounds: a plan that meets its bound may seem to be faster by that.
    return f", gap {100 * gap if abs(gap) > ROUNDING else 0:.3g} %"


def algorithm_name(chosen: str, asked: str) -> str:
    """The algorithm of a plan, and who chose the algorithm where it was chosen.

    >>> algorithm_name("ring", "auto"), algorithm_name("ring", "ring")
    ('ring (chosen by auto)', 'ring')
    """
    return chosen if chosen == asked else f"{chosen} (chosen by {asked})"


def plan_summary(plan: Plan, row: Row) -> str:
    """A line that says all, then what the plan is and what it needs, one fact a line."""
    rooted = registry.has_root(plan.collective.kind)
    root = f", root {row['root']}" if rooted else ""
    claimed = row["claimed_steps"]
    paper = "" if claimed is None else f"; the paper says {claimed}"
    cut = plan.collective.pieces
    pieces = "" if cut == 1 else f", each for a piece: {cut} pieces to a block or vector"
    assumed = {"steps": row["bound_assumption"], "time": row["bound_time_assumption"]}
    bounds = [f"{what}: {words}" for what, words in assumed.items() if words is not None]
    electrical, lit = plan.fabric.electrical, plan.fabric.has_wavelengths
    light = [
        ["wavelengths", f"{row['wavelengths_used']} used of {row['wavelengths']}"],
        ["configurations", f"{row['configurations']} different circuit settings"],
    ]
    slots = "steps, one after the other" if electrical else "time slots really used"
    facts = [
        ["collective", f"{row['collective']} on {plural(row['ranks'], 'rank')}{root}"],
        ["algorithm", algorithm_name(row["chosen"], row["algorithm"])],
        *labelled("fabric", describe_fabric(plan.fabric)),
        ["injection", f"{format_rate(row['injection_bandwidth'])} per rank"],
        ["size", describe_size(row["size_bytes"], row["size_convention"])],
        ["steps", f"{row['steps']} {slots}{pieces}{paper}"],
        ["transfers", str(row["transfers"])],
        *(light if lit else []),
        ["time", f"{human_time(row['time_ps'])}{_under(row)}"],
        *([] if row["bottleneck"] is None else [["bottleneck", row["bottleneck"]]]),
        *labelled("bounds hold for", [line for bound in bounds for line in wrapped([bound], 0)]),
        ["verified", verdict(row["violations"], electrical=electrical)],
    ]
    parts = [plan_line(row), "", align(facts), *violation_lines(row["violations"])]
    if row["candidates"]:
        parts += ["", *wrapped(row["reasons"], 0), "", candidate_table(row["candidates"])]
    return "\n".join(parts)


def candidate_table(candidates: Sequence[CandidateRow]) -> str:
    """What `auto` compared: what was simulated first, then what was left out and why."""
    shown = candidates[:MOST_CANDIDATES]
    rows = [
        [
            one["name"],
            _at_least(str(one["steps"]), one, one["steps"]),
            _at_least(human_time(round(one["time_s"] * PICOSECONDS)), one, one["time_s"]),
            one["left_out"] or "simulated",
        ]
        for one in shown
    ]
    table = align(rows, ["candidate", "steps", "time", ""], right={1, 2})
    rest = len(candidates) - len(shown)
    return f"{table}\nand {rest} more (all of them with --json)" if rest else table


def _at_least(said: str, candidate: CandidateRow, number: float) -> str:
    """A number of a candidate; where it was not simulated, the least that it may be, if known."""
    if candidate["simulated"]:
        return said
    return f">= {said}" if number else "-"


def verdict(violations: Sequence[ViolationRow], *, electrical: bool = False) -> str:
    """Whether the plan is proved, in words."""
    if violations:
        return f"NO: {plural(len(violations), 'violation')}"
    light = "" if electrical else ", no lightpaths collide"
    return f"yes: the data arrive, no transfer comes too early{light}"


def violation_lines(violations: Sequence[ViolationRow]) -> list[str]:
    """A sentence each for the first violations, and how many more there are."""
    lines = [f"  {one['kind']}: {one['sentence']}" for one in violations[:MOST_VIOLATIONS]]
    rest = len(violations) - MOST_VIOLATIONS
    return [*lines, f"  and {rest} more (all of them with --json)"] if rest > 0 else lines


def comparison_table(rows: Sequence[Row]) -> str:
    """A table for each fabric and size, the ratio to its fastest algorithm beside each time.

    Where a size is compared on several fabrics, a table of the fastest algorithm of each follows.
    """
    tables = []
    for group in _groups(rows):
        first = group[0]
        # A plan that is wrong wins nothing.
        best = min((row["time_ps"] for row in group if row["verified"]), default=None)
        cells = [
            [
                row["algorithm"],
                str(row["steps"]),
                "-" if row["claimed_steps"] is None else str(row["claimed_steps"]),
                str(row["wavelengths_used"]),
                str(row["configurations"]),
                human_time(row["time_ps"]),
                _ratio(row, best),
                "yes" if row["verified"] else verdict(row["violations"]),
            ]
            for row in group
        ]
        heading = [
            "algorithm",
            "steps",
            "paper",
            "wavelengths",
            "configurations",
            "time",
            "ratio",
            "verified",
        ]
        size = describe_size(first["size_bytes"], first["size_convention"])
        title = f"{first['collective']} of {size} on {plural(first['ranks'], 'rank')}"
        injected = f", {format_rate(first['injection_bandwidth'])} per rank"
        if first["wavelengths"] is None:
            title += f" of {first['fabric']}{injected}"
            kept = [0, 1, 5, 6, 7]
            cells = [
                [*(cell[index] for index in kept), row["bottleneck"] or "-"]
                for cell, row in zip(cells, group, strict=True)
            ]
            heading = [*(heading[index] for index in kept), "bottleneck"]
            tables.append(f"{title}\n{align(cells, heading, right=range(1, 4))}")
        else:
            title += f", {plural(first['wavelengths'], 'wavelength')}{injected}"
            tables.append(f"{title}\n{align(cells, heading, right=range(1, 7))}")
        if first["bound_time_s"] is not None:
            bound = f"lower bound: {human_time(round(first['bound_time_s'] * PICOSECONDS))}"
            tables[-1] += f"\n{bound} ({registry.bound_words(first['bound_time_name'])})"
        elif first["simulator"] == "closed_form":
            tables[-1] += f"\nlower bound: {first['bound_time_assumption']}"
        for row in group:
            if row["chosen"] != row["algorithm"]:
                tables[-1] += f"\n{row['algorithm']} chose {row['chosen']}"
    tables += _fastest_by_fabric(rows)
    under = dict.fromkeys(line for row in rows for line in _conditions(row))
    return "\n\n".join([*tables, "\n".join(under)])


def _conditions(row: Row) -> list[str]:
    """Under what a row was timed, and what the columns of its table mean."""
    conditions = f"{_rule(row)}, simulator {row['simulator']}"
    legend = "steps: time slots really used; paper: the number that the paper gives"
    if row["wavelengths"] is None:
        legend = "bottleneck: the link that bounds the critical path for the longest time"
        if row["simulator"] == "packet":
            legend = "bottleneck: the link that was sending for the longest time"
    return [conditions, legend, "per rank: the bandwidth that a rank can inject"]


def _fastest_by_fabric(rows: Sequence[Row]) -> list[str]:
    """For each size that is compared on several fabrics, the fastest plan on each of them."""
    labels = registry.fabric_labels(row["fabric"] for row in rows)
    sizes: dict[int, dict[str, Row]] = {}
    for row in rows:
        best = sizes.setdefault(row["size_bytes"], {})
        known = best.get(row["fabric"])
        if row["verified"] and (known is None or row["time_ps"] < known["time_ps"]):
            best[row["fabric"]] = row
    tables = []
    for best in sizes.values():
        group = list(best.values())
        if len(group) < 2:
            continue
        least = min(row["time_ps"] for row in group)
        cells = [
            [
                labels[row["fabric"]],
                format_rate(row["injection_bandwidth"]),
                row["chosen"],
                human_time(row["time_ps"]),
                _ratio(row, least),
            ]
            for row in group
        ]
        size = describe_size(group[0]["size_bytes"], group[0]["size_convention"])
        heading = ["fabric", "per rank", "fastest", "time", "ratio"]
        table = align(cells, heading, right=(1, 3, 4))
        tables.append(
            f"{group[0]['collective']} of {size}, the fastest plan on each fabric\n{table}"
        )
        tables[-1] += "".join(f"\n{line}" for line in injection_lines(group))
    return tables


def injection_lines(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """A sentence where rows differ in the bandwidth that a rank can inject; otherwise nothing."""
    rates = [row["injection_bandwidth"] for row in rows if row["injection_bandwidth"] is not None]
    if len(set(rates)) < 2:
        return []
    least, most = format_rate(min(rates)), format_rate(max(rates))
    return [
        f"These fabrics differ in the bandwidth that a rank can inject, from {least} to {most}: "
        "the times compare machines of different capacity."
    ]


def left_out(refusal: Refusal) -> str:
    """Why an algorithm is not among those compared; it is named once."""
    name = f"`{refusal.algorithm}`"
    named = refusal.reason.startswith(f"{name} ")
    return f"left out: {refusal.reason}" if named else f"left out: {name}: {refusal.reason}"


def plan_head(plan: Plan) -> str:
    """What a plan is for and what it needs, without proof or time."""
    slots = " ".join(str(count) for count in plan.step_slots[:MOST_STEPS])
    more = " ..." if len(plan.step_slots) > MOST_STEPS else ""
    facts = [
        ["collective", f"{plan.collective.kind} on {plural(plan.collective.ranks, 'rank')}"],
        ["algorithm", algorithm_name(plan.algorithm, plan.asked)],
        *labelled("fabric", describe_fabric(plan.fabric)),
        ["slots", f"{plan.slots}, by steps of the schedule: {slots}{more}"],
        ["transfers", str(len(plan))],
    ]
    if plan.fabric.has_wavelengths:
        used = f"{plan.wavelengths_used} used of {plan.fabric.wavelengths}"
        facts.append(["wavelengths", used])
    return align(facts)


def wavelength_name(wavelength: int) -> str:
    """The wavelength as plan files write it: `*` where converters choose it link by link."""
    return "*" if wavelength == CONVERTED else str(wavelength)


def lightpath_lines(plan: Plan, slot: int) -> str:
    """The lightpaths of a slot in words, the first of them where they are many."""
    if not plan.slots:
        return "no slots: nothing needs to be sent"
    columns = plan.slot_columns(slot)
    here = len(columns["transfer"])
    rows = []
    for index in range(min(here, MOST_LIGHTPATHS)):
        chunk, count = int(columns["chunk"][index]), int(columns["count"][index])
        rows.append(
            [
                "reduce" if columns["action"][index] else "copy",
                f"chunk {chunk}" if count == 1 else f"chunks {chunk}..{chunk + count - 1}",
                f"{columns['source'][index]} > {columns['destination'][index]}",
            ]
        )
        if plan.fabric.ring:
            rows[-1] += [
                "ccw" if columns["direction"][index] else "cw",
                f"fibre {columns['fibre'][index]}",
                f"wavelength {wavelength_name(int(columns['wavelength'][index]))}",
            ]
    if plan.fabric.grid is not None:
        hops = plan.hop_columns(slot)
        here = len(hops["transfer"])
        rows = [
            [
                f"transfer {hops['transfer'][index]}",
                f"{hops['source'][index]} > {hops['destination'][index]}",
                ("row", "column")[hops["plane"][index]],
                f"wavelength {hops['wavelength'][index]}",
            ]
            for index in range(min(here, MOST_LIGHTPATHS))
        ]
    if plan.fabric.path_ports is not None:
        for index, row in enumerate(rows):
            row.append(
                f"port {columns['source_port'][index]} > port {columns['destination_port'][index]}"
            )
    what = "transfer" if plan.fabric.electrical else "lightpath"
    lines = [f"slot {slot}: {plural(here, what)}"]
    if rows:
        lines.append(align(rows))
    if here > MOST_LIGHTPATHS:
        lines.append(f"and {here - MOST_LIGHTPATHS} more (all of them with --json)")
    return "\n".join(lines)


def record_list(records: Sequence[ListedRecord], full: bool) -> str:
    """Records of one kind: a line each and its citation, and (`full`) the options."""
    lines = []
    width = max(len(record["name"]) for record in records)
    collective = None
    for record in records:
        if record["collective"] != collective:
            collective = record["collective"]
            lines.append(f"{collective}:")
        indent = "  " if collective else ""
        lines.append(f"{indent}{record['name'].ljust(width)}  {record['summary']}")
        if full:
            details = [f"{one['name']}: {one['meaning']}" for one in record["options"]]
            lines.extend(wrapped(details, len(indent) + width + 4))
        if record["citation"]:
            lines.extend(wrapped([f"[{record['citation']}]"], len(indent) + width + 4))
    return "\n".join(lines)


def study_text(results: Results) -> str:
    """The tables of a study, then its findings."""
    tables = [
        f"{table.title}\n\n{align(table.rows, table.heading, table.right)}"
        for table in results.tables
    ]
    return "\n\n".join([*tables, f"Findings\n\n{findings_table(results.findings)}"])


def findings_table(findings: Sequence[Finding]) -> str:
    """What a paper prints beside what was computed, with the verdict."""
    rows = [
        [
            finding["id"],
            cell(finding["paper"]),
            cell(finding["computed"]),
            finding["unit"],
            finding["verdict"],
        ]
        for finding in findings
    ]
    table = align(rows, ["finding", "paper", "computed", "unit", "verdict"], right={1, 2})
    notes = [f"{finding['id']}: {finding['note']}" for finding in findings if finding["note"]]
    return "\n".join([table, "", *wrapped(notes, 0)]) if notes else table


def _ratio(row: Row, best: int | None) -> str:
    """The time in multiples of the best, or `-` where there is no time to trust."""
    if best is None or not row["verified"]:
        return "-"
    return f"{row['time_ps'] / best:.2f}" if best else "1.00" if not row["time_ps"] else "-"


def _under(row: Row) -> str:
    return f" ({_rule(row)}, simulator {row['simulator']})"


def _groups(rows: Sequence[Row]) -> list[list[Row]]:
    """Rows on the same fabric at the same size, in the order of first appearance."""
    groups: dict[tuple[str, int], list[Row]] = {}
    for row in rows:
        groups.setdefault((row["fabric"], row["size_bytes"]), []).append(row)
    return list(groups.values())
