"""What a simulation found, as plain text: where the time goes, and tables of its parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opticoll.report.layout import align, human_time, labelled, plural
from opticoll.report.link_use import link_use_rows
from opticoll.report.values import ways_out

if TYPE_CHECKING:
    from opticoll._core import Outcome, Plan


__all__ = ["outcome_summary", "outcome_table"]

MOST_PATH = 8
"""Transfers of a critical path printed for people."""


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
            for way, name in enumerate(ways_out(plan.fabric))
            for rank in range(busy.shape[1])
        ]
        what = "direction" if plan.fabric.ring else "by"
        busy_what = "wavelengths busy" if plan.fabric.has_wavelengths else "busy"
        heading = ["from rank", what, busy_what, "bytes"]
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


def outcome_summary(plan: Plan, outcome: Outcome) -> str:
    """Where the time of a simulation goes."""
    if outcome.simulator == "closed_form":
        return "A formula gives the total only; `--simulator circuit` says where the time goes."
    path = outcome.critical_path.rows()
    facts = [
        ["reconfigurations", f"{outcome.reconfigurations} of {plural(plan.slots, 'slot')} waited"],
        ["utilisation", f"{outcome.utilisation:.1%} of link-wavelength-slots carry light"],
        ["critical path", plural(len(path), "transfer")],
    ]
    if plan.fabric.path_times_ps is not None:
        facts = [*_path_facts(plan, outcome), facts[2]]
    if outcome.start is not None:
        facts = [*_flow_facts(plan, outcome), facts[2]]
    if "latencies" in outcome.tables:
        facts = [*_flow_facts(plan, outcome), *_packet_facts(outcome)]
    if "slow_switch_ps" in outcome.totals:
        facts = [*_tuned_facts(outcome), facts[2]]
    lines = [align(facts)]
    if path:
        shown = path if len(path) <= MOST_PATH else [*path[: MOST_PATH - 1], path[-1]]
        rows = [
            [
                f"  transfer {one['transfer']}",
                "{} > {}".format(*plan.ends(one["transfer"])),
                f"from {human_time(one['start_ps'])}",
                f"to {human_time(one['end_ps'])}",
                *([] if outcome.start is None else [_bounded(plan, one["bottleneck"])]),
            ]
            for one in shown
        ]
        lines.append(align(rows))
        if len(path) > MOST_PATH:
            lines.append(f"  (the first and the last of {len(path)}; all of them with --json)")
    return "\n".join(lines)


def _path_facts(plan: Plan, outcome: Outcome) -> list[list[str]]:
    """What setting light paths up and releasing them costs."""
    spent = human_time(int(outcome.slots["reconfiguration_ps"].sum()))
    return [
        ["light paths", f"set up {plural(outcome.reconfigurations, 'time')}; {spent} with release"],
        ["utilisation", f"{outcome.utilisation:.1%} of the time ports send"],
    ]


def _tuned_facts(outcome: Outcome) -> list[list[str]]:
    """What tuning and control cost on a grid of tunable circuits."""
    facts = [
        ["lasers tuned", f"{outcome.reconfigurations} times in all"],
        ["utilisation", f"{outcome.utilisation:.1%} of the time transmitters send"],
        ["slow switches", f"{human_time(outcome.slow_switch_ps)} once, not part of the time"],
    ]
    if len(outcome.flows):
        spent = ("transmission", "tuning", "control", "latency", "waiting")
        times = [f"{what} {human_time(outcome.totals[f'path_{what}_ps'])}" for what in spent]
        facts += [
            [
                "control",
                f"{outcome.control_messages} messages, "
                f"{outcome.control_messages_per_rank} of a rank at most",
            ],
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
    settings = [f"{one['name']} {one['value']} (plain: {one['plain']})" for one in outcome.settings]
    return [*facts, *labelled("settings", settings or ["plain"])]


def _packet_facts(outcome: Outcome) -> list[list[str]]:
    """What packets say beyond times of steps, links and ranks."""
    message, background, chunk = outcome.latencies.rows()
    ways = f"{outcome.minimal_chunks} chunks minimal, {outcome.detoured_chunks} by way of "
    stalls = [f"{one['class']} {human_time(one['stall_ps'])}" for one in outcome.classes]
    facts = [
        [
            "message latency",
            f"mean {human_time(message['mean_ps'])}, 99 % {human_time(message['p99_ps'])}, "
            f"max {human_time(message['max_ps'])}; {message['count']} messages",
        ],
        [
            "chunk latency",
            f"mean {human_time(chunk['mean_ps'])}, max {human_time(chunk['max_ps'])}",
        ],
        ["ways", f"{ways}another group; {outcome.mean_hops:.3f} routers a chunk"],
        ["stalls", f"{', '.join(stalls)}, summed over channels"],
    ]
    if background["count"]:
        mean = human_time(background["mean_ps"])
        facts.append(["background", f"{background['count']} messages, mean latency {mean}"])
    return facts


def _bounded(plan: Plan, link: int | None) -> str:
    return "" if link is None else f"bounded by {plan.fabric.link_name(link)}"
