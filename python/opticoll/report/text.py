"""Plans, outcomes and comparisons as plain text.

Nothing here prints; every function returns text.

>>> from opticoll.report.text import align
>>> print(align([["ring", "1023"], ["optree", "72"]], ["algorithm", "steps"], right={1}))
algorithm  steps
ring        1023
optree        72
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from opticoll import registry
from opticoll._core import CONVERTED, format_size, format_time
from opticoll.report.link_use import link_use_rows

if TYPE_CHECKING:
    from opticoll._core import Fabric, Outcome, Packets, Plan
    from opticoll.registry import ListedRecord
    from opticoll.study.comparison import CandidateRow, Refusal, Row, ViolationRow
    from opticoll.study.findings import Finding
    from opticoll.study.results import Results
    from opticoll.study.traffic import TrafficRow

__all__ = [
    "align",
    "candidate_table",
    "comparison_table",
    "describe_fabric",
    "describe_size",
    "findings_table",
    "human_time",
    "left_out",
    "lightpath_lines",
    "outcome_summary",
    "outcome_table",
    "plan_head",
    "plan_line",
    "plan_summary",
    "plural",
    "record_list",
    "study_text",
    "traffic_summary",
    "traffic_table",
    "verdict",
    "violation_lines",
]

MOST_VIOLATIONS = 20
"""Violations printed for people; machines get all of them."""

MOST_LIGHTPATHS = 40
"""Lightpaths of a slot printed for people."""

MOST_STEPS = 24
"""Steps of a schedule whose slots are printed for people."""

MOST_PATH = 8
"""Transfers of a critical path printed for people."""

MOST_CANDIDATES = 12
"""Candidates of `auto` printed for people."""

PICOSECONDS = 10**12

TIME_UNITS = ((10**12, "s"), (10**9, "ms"), (10**6, "us"), (10**3, "ns"), (1, "ps"))


def align(
    rows: Sequence[Sequence[str]], heading: Sequence[str] | None = None, right: Iterable[int] = ()
) -> str:
    """A table with its columns aligned; those with an index in `right` to the right."""
    lines = [*([] if heading is None else [heading]), *rows]
    widths = [max(len(cell) for cell in column) for column in zip(*lines, strict=True)]
    rightwards = set(right)
    return "\n".join(
        "  ".join(
            cell.rjust(width) if index in rightwards else cell.ljust(width)
            for index, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def human_time(time_ps: int) -> str:
    """A time with four significant digits, such as `60.47 ms`."""
    for factor, unit in TIME_UNITS:
        if time_ps >= factor:
            value = time_ps / factor
            decimals = max(0, 3 - len(str(int(value)))) + 1 if factor > 1 else 0
            return f"{value:.{min(decimals, 3)}f} {unit}"
    return "0 s"


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
    return [
        f"{record['summary'][0].lower()}{record['summary'][1:]}",
        f"{plural(fabric.ranks, 'rank')}, {plural(fabric.fibres, 'fibre')} per direction, "
        f"{plural(fabric.wavelengths, 'wavelength')} per fibre, "
        f"{format_rate(fabric.rate_bits_per_second)} per wavelength, "
        f"{format_time(fabric.reconfiguration_ps)} to reconfigure",
        fabric.spec,
    ]


def format_rate(bits_per_second: int) -> str:
    """A rate with its unit, such as `40 Gb/s`."""
    for factor, unit in ((10**12, "Tb/s"), (10**9, "Gb/s"), (10**6, "Mb/s"), (10**3, "kb/s")):
        if bits_per_second >= factor:
            return f"{bits_per_second / factor:.6g} {unit}"
    return f"{bits_per_second} b/s"


def describe_size(size_bytes: int, convention: str) -> str:
    """A size with what it means, such as `4MiB: bytes of one rank's block`."""
    return f"{format_size(size_bytes)} ({convention})"


def labelled(label: str, lines: Sequence[str]) -> list[list[str]]:
    """Lines beside a label that stands before the first of them."""
    return [["" if number else label, line] for number, line in enumerate(lines)]


def plural(count: int, word: str) -> str:
    """`1 slot`, `2 slots`."""
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


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
        # The closed forms of the papers are no times in the bounds' model of cost.
        if row["simulator"] != "closed_form":
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
    return f", gap {100 * (value / bound - 1):.3g} %"


def plan_summary(plan: Plan, row: Row, note: str = "") -> str:
    """A line that says all, then what the plan is and what it needs, one fact a line.

    `note` follows the name of the algorithm.
    """
    rooted = registry.has_root(plan.collective.kind)
    root = f", root {row['root']}" if rooted else ""
    claimed = row["claimed_steps"]
    paper = "" if claimed is None else f"; the paper says {claimed}"
    cut = plan.collective.pieces
    pieces = "" if cut == 1 else f", each for a piece: {cut} pieces to a block or vector"
    chosen = "" if row["chosen"] == row["algorithm"] else f" (chosen by {row['algorithm']})"
    assumed = {"steps": row["bound_assumption"], "time": row["bound_time_assumption"]}
    bounds = [f"{what}: {words}" for what, words in assumed.items() if words is not None]
    electrical = row["wavelengths"] is None
    light = [
        ["wavelengths", f"{row['wavelengths_used']} used of {row['wavelengths']}"],
        ["configurations", f"{row['configurations']} different circuit settings"],
    ]
    slots = "steps, one after the other" if electrical else "time slots really used"
    facts = [
        ["collective", f"{row['collective']} on {plural(row['ranks'], 'rank')}{root}"],
        ["algorithm", row["chosen"] + chosen + note],
        *labelled("fabric", describe_fabric(plan.fabric)),
        ["size", describe_size(row["size_bytes"], row["size_convention"])],
        ["steps", f"{row['steps']} {slots}{pieces}{paper}"],
        ["transfers", str(row["transfers"])],
        *([] if electrical else light),
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
    """What `auto` compared: all that were simulated, and the best of the estimates."""
    shown = candidates[:MOST_CANDIDATES]
    rows = [
        [
            one["name"],
            f"{'' if one['simulated'] else '>= '}{one['steps']}",
            human_time(round(one["time_s"] * PICOSECONDS)),
            "simulated" if one["simulated"] else "estimated",
        ]
        for one in shown
    ]
    table = align(rows, ["candidate", "steps", "time", ""], right={1, 2})
    rest = len(candidates) - len(shown)
    return f"{table}\nand {rest} more, estimated (all of them with --json)" if rest else table


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


def outcome_table(plan: Plan, outcome: Outcome, per: str) -> str:
    """The outcome of a simulation step by step, link by link, rank by rank or over time."""
    if per == "step":
        columns = outcome.slots
        rows = [
            [
                str(slot),
                human_time(int(start)),
                human_time(int(end)),
                human_time(int(wait)),
                str(up),
            ]
            for slot, (start, end, wait, up) in enumerate(
                zip(
                    columns["start_ps"],
                    columns["end_ps"],
                    columns["reconfiguration_ps"],
                    columns["lightpaths"],
                    strict=True,
                )
            )
        ]
        heading = ["slot", "start", "end", "reconfiguration", "lightpaths"]
        if outcome.start is not None:
            heading = ["step", "start", "end", "messages"]
            rows = [[*row[:3], row[4]] for row in rows]
    elif per == "time":
        rows = [
            [
                human_time(row["start_ps"]),
                human_time(row["end_ps"]),
                row["link"],
                f"{row['bytes']:.0f}",
                f"{row['bits_per_second'] / 1e9:.6g}",
            ]
            for row in link_use_rows(plan, outcome)
        ]
        return align(rows, ["from", "to", "link", "bytes", "Gb/s"], right=(0, 1, 3, 4))
    elif per == "link" and outcome.start is not None:
        columns = outcome.links
        rows = [
            [name, human_time(int(busy)), str(sent), f"{share:.1%}"]
            for name, busy, sent, share in zip(
                plan.fabric.link_names,
                columns["busy_ps"],
                columns["bytes"],
                columns["utilisation"],
                strict=True,
            )
        ]
        return align(rows, ["link", "busy", "bytes", "utilisation"], right=(1, 2, 3))
    elif per == "link":
        busy, sent = outcome.links["busy_ps"], outcome.links["bytes"]
        rows = [
            [f"{rank}", name, human_time(int(busy[way, rank])), str(sent[way, rank])]
            for way, name in enumerate(("cw", "ccw"))
            for rank in range(busy.shape[1])
        ]
        heading = ["from rank", "direction", "wavelengths busy", "bytes"]
    else:
        columns = outcome.ranks
        rows = [
            [str(rank), str(sent), str(received), human_time(int(finish))]
            for rank, (sent, received, finish) in enumerate(
                zip(
                    columns["sent_bytes"],
                    columns["received_bytes"],
                    columns["finish_ps"],
                    strict=True,
                )
            )
        ]
        heading = ["rank", "bytes sent", "bytes received", "finished"]
    return align(rows, heading, right=range(len(heading)))


def comparison_table(rows: Sequence[Row]) -> str:
    """A table for each fabric and size, the ratio to its fastest algorithm beside each time."""
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
        if first["wavelengths"] is None:
            title += f" of {first['fabric']}"
            kept = [0, 1, 5, 6, 7]
            cells = [
                [*(cell[index] for index in kept), row["bottleneck"] or "-"]
                for cell, row in zip(cells, group, strict=True)
            ]
            heading = [*(heading[index] for index in kept), "bottleneck"]
            tables.append(f"{title}\n{align(cells, heading, right=range(1, 4))}")
        else:
            title += f", {plural(first['wavelengths'], 'wavelength')}"
            tables.append(f"{title}\n{align(cells, heading, right=range(1, 7))}")
        if first["bound_time_s"] is not None:
            bound = f"lower bound: {human_time(round(first['bound_time_s'] * PICOSECONDS))}"
            tables[-1] += f"\n{bound} ({registry.bound_words(first['bound_time_name'])})"
    first = rows[0]
    under = f"{_rule(first)}, simulator {first['simulator']}, seed {first['seed']}"
    legend = "steps: time slots really used; paper: the number that the paper gives"
    if first["wavelengths"] is None:
        legend = "bottleneck: the link that bounds the critical path for the longest time"
        if first["simulator"] == "packet":
            legend = "bottleneck: the link that was sending for the longest time"
    return "\n\n".join([*tables, f"{under}\n{legend}"])


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
        ["algorithm", plan.algorithm],
        *labelled("fabric", describe_fabric(plan.fabric)),
        ["slots", f"{plan.slots}, by steps of the schedule: {slots}{more}"],
        ["transfers", str(len(plan))],
    ]
    if not plan.fabric.electrical:
        used = f"{plan.wavelengths_used} used of {plan.fabric.wavelengths}"
        facts.append(["wavelengths", used])
    return align(facts)


def outcome_summary(plan: Plan, outcome: Outcome) -> str:
    """Where the time of a simulation goes."""
    if outcome.simulator == "closed_form":
        return "A formula gives the total only; `--simulator circuit` says where the time goes."
    path = outcome.critical_path
    facts = [
        ["reconfigurations", f"{outcome.reconfigurations} of {plural(plan.slots, 'slot')} waited"],
        ["utilisation", f"{outcome.utilisation:.1%} of link-wavelength-slots carry light"],
        ["critical path", plural(len(path), "transfer")],
    ]
    if outcome.start is not None:
        facts = [*_flow_facts(plan, outcome), facts[2]]
    if outcome.packets is not None:
        facts = [*_flow_facts(plan, outcome), *_packet_facts(outcome.packets)]
    if outcome.tuned is not None:
        facts = [*_tuned_facts(outcome, outcome.tuned), facts[2]]
    lines = [align(facts)]
    if path:
        links = outcome.path_bottlenecks
        bounding = dict(zip((transfer for transfer, *_ in path), links, strict=False))
        shown = path if len(path) <= MOST_PATH else [*path[: MOST_PATH - 1], path[-1]]
        rows = [
            [
                f"  transfer {transfer}",
                "{} > {}".format(*plan.ends(transfer)),
                f"from {human_time(start)}",
                f"to {human_time(end)}",
                *([] if outcome.start is None else [_bounded(plan, bounding[transfer])]),
            ]
            for transfer, start, end in shown
        ]
        lines.append(align(rows))
        if len(path) > MOST_PATH:
            lines.append(f"  (the first and the last of {len(path)}; all of them with --json)")
    return "\n".join(lines)


def _tuned_facts(outcome: Outcome, tuned: dict[str, Any]) -> list[list[str]]:
    """What tuning and control cost on a grid of tunable circuits."""
    facts = [
        ["lasers tuned", f"{outcome.reconfigurations} times in all"],
        ["utilisation", f"{outcome.utilisation:.1%} of the time transmitters send"],
        ["slow switches", f"{human_time(tuned['slow_switch_ps'])} once, not part of the time"],
    ]
    messages = tuned["messages"]
    if len(messages):
        spent = ("transmission", "tuning", "control", "latency", "waiting")
        times = [f"{what} {human_time(tuned[f'path_{what}_ps'])}" for what in spent]
        facts += [
            ["control", f"{int(messages.sum())} messages, {int(messages.max())} of a rank at most"],
            ["time goes to", ", ".join(times)],
        ]
    return facts


def _flow_facts(plan: Plan, outcome: Outcome) -> list[list[str]]:
    """What a simulation of flows says in all, and every setting that is not plain."""
    loaded = outcome.most_loaded_link
    facts = [["utilisation", f"{outcome.utilisation:.1%} of the capacity of all links"]]
    if loaded is not None:
        share = outcome.links["utilisation"][loaded]
        facts.append(["most loaded link", f"{plan.fabric.link_name(loaded)}, {share:.1%} in use"])
    settings = [f"{name} {value} (plain: {plain})" for name, value, plain in outcome.settings]
    return [*facts, *labelled("settings", settings or ["plain"])]


def _packet_facts(packets: Packets) -> list[list[str]]:
    """What packets say beyond times of steps, links and ranks."""
    message, chunk, counts = packets.message_latency, packets.chunk_latency, packets.counts
    percentiles = message["percentiles_ps"]
    ways = f"{counts['minimal_chunks']} chunks minimal, {counts['detoured_chunks']} by way of "
    stalls = [f"{name} {human_time(one['stall_ps'])}" for name, one in packets.classes.items()]
    facts = [
        [
            "message latency",
            f"mean {human_time(message['mean_ps'])}, 99 % {human_time(percentiles['99'])}, "
            f"max {human_time(message['max_ps'])}; {message['count']} messages",
        ],
        [
            "chunk latency",
            f"mean {human_time(chunk['mean_ps'])}, max {human_time(chunk['max_ps'])}",
        ],
        ["ways", f"{ways}another group; {packets.mean_hops:.3f} routers a chunk"],
        ["stalls", f"{', '.join(stalls)}, summed over channels"],
    ]
    background = packets.background_latency
    if background["count"]:
        mean = human_time(background["mean_ps"])
        facts.append(["background", f"{background['count']} messages, mean latency {mean}"])
    return facts


def _bounded(plan: Plan, link: int | None) -> str:
    return "" if link is None else f"bounded by {plan.fabric.link_name(link)}"


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
                ("row", "column")[hops["fibre"][index]],
                f"wavelength {hops['wavelength'][index]}",
            ]
            for index in range(min(here, MOST_LIGHTPATHS))
        ]
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


def wrapped(paragraphs: Sequence[str], margin: int) -> list[str]:
    """Paragraphs cut into lines of at most 100 characters that start at a margin."""
    first, later = " " * margin, " " * (margin + 2)
    return [
        line
        for paragraph in paragraphs
        for line in textwrap.wrap(
            paragraph,
            100,
            initial_indent=first,
            subsequent_indent=later,
            break_long_words=False,
            break_on_hyphens=False,
        )
    ]


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
            _cell(finding["paper"]),
            _cell(finding["computed"]),
            finding["unit"],
            finding["verdict"],
        ]
        for finding in findings
    ]
    table = align(rows, ["finding", "paper", "computed", "unit", "verdict"], right={1, 2})
    notes = [f"{finding['id']}: {finding['note']}" for finding in findings if finding["note"]]
    return "\n".join([table, "", *wrapped(notes, 0)]) if notes else table


def _cell(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _ratio(row: Row, best: int | None) -> str:
    """The time in multiples of the best, or `-` where there is no time to trust."""
    if best is None or not row["verified"]:
        return "-"
    return f"{row['time_ps'] / best:.2f}" if best else "1.00" if not row["time_ps"] else "-"


def _under(row: Row) -> str:
    return f" ({_rule(row)}, simulator {row['simulator']}, seed {row['seed']})"


def _groups(rows: Sequence[Row]) -> list[list[Row]]:
    """Rows on the same fabric at the same size, in the order of first appearance."""
    groups: dict[tuple[str, int], list[Row]] = {}
    for row in rows:
        groups.setdefault((row["fabric"], row["size_bytes"]), []).append(row)
    return list(groups.values())


def traffic_summary(row: TrafficRow) -> str:
    """A line that says all, then one fact a line."""

    def time(seconds: float) -> str:
        return human_time(round(seconds * PICOSECONDS))

    head = (
        f"last delivery {time(row['last_delivery_s'])}; mean latency "
        f"{time(row['mean_message_latency_s'])}, 99 % {time(row['p99_message_latency_s'])}, "
        f"max {time(row['max_message_latency_s'])}; {row['mean_hops']:.3f} routers a chunk"
    )
    sent = f"{row['messages']} of {format_size(row['message_bytes'])} from each of "
    detoured, chunks = row["detoured_chunks"], row["minimal_chunks"] + row["detoured_chunks"]
    facts = [
        ["pattern", row["pattern"]],
        ["messages", f"{sent}{row['terminals']} terminals, one every {time(row['period_s'])}"],
        ["fabric", row["fabric"]],
        ["settings", row["settings"] or "plain"],
        [
            "delivered",
            f"{row['messages_delivered']} messages, {format_size(row['bytes_delivered'])}",
        ],
        [
            "message latency",
            f"mean {time(row['mean_message_latency_s'])}, "
            f"50 % {time(row['p50_message_latency_s'])}, "
            f"90 % {time(row['p90_message_latency_s'])}, "
            f"99.9 % {time(row['p999_message_latency_s'])}",
        ],
        [
            "chunk latency",
            f"mean {time(row['mean_chunk_latency_s'])}, max {time(row['max_chunk_latency_s'])}",
        ],
        ["ways", f"{chunks - detoured} chunks minimal, {detoured} by way of another group"],
        ["bottleneck", f"{row['bottleneck']}, sending for {time(row['bottleneck_busy_s'])}"],
        [
            "stalls",
            f"local {time(row['local_stall_s'])}, global {time(row['global_stall_s'])}, "
            f"to terminals {time(row['ejection_stall_s'])}, "
            f"from terminals {time(row['injection_stall_s'])}, summed over channels",
        ],
        ["simulated", f"{row['router_forwards']} forwards by routers, {row['events']} events"],
    ]
    return f"{head}\n\n{align(facts)}"


def traffic_table(rows: Sequence[TrafficRow]) -> str:
    """A line for each case."""

    def time(seconds: float) -> str:
        return human_time(round(seconds * PICOSECONDS))

    cells = [
        [
            row["pattern"],
            format_size(row["message_bytes"]),
            time(row["period_s"]),
            row["routing"],
            time(row["last_delivery_s"]),
            time(row["mean_message_latency_s"]),
            time(row["p99_message_latency_s"]),
            time(row["max_message_latency_s"]),
            f"{row['mean_hops']:.3f}",
            time(row["local_stall_s"] + row["global_stall_s"]),
        ]
        for row in rows
    ]
    heading = [
        "pattern",
        "bytes",
        "period",
        "routing",
        "last delivery",
        "mean latency",
        "99 %",
        "max",
        "hops",
        "stalls",
    ]
    first = rows[0]
    head = f"{first['messages']} messages from each of {first['terminals']} terminals"
    return f"{head} of {first['fabric']}\n{align(cells, heading, right=range(4, len(heading)))}"
