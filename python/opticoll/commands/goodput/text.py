"""Text of the results: a table of all cases, or the losses of the only case."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from opticoll._core import format_size
from opticoll.outputs.fabric_names import fabric_labels, fabric_text
from opticoll.outputs.layout import align, duration, human_seconds, labelled, plural, wrapped
from opticoll.outputs.rows import OMITTED, table

if TYPE_CHECKING:
    from opticoll.commands.goodput import GoodputRow, Parameters


def _lines(facts: list[str]) -> list[str]:
    return [line for fact in facts for line in wrapped([fact], 0)]


def _network(row: GoodputRow) -> list[list[str]]:
    """Returns facts on the fabric of a row, and on the new plan; none without a fabric."""
    if row.fabric is OMITTED:
        return []
    rates = ", ".join(row.network) or "none"
    replaced = f"; they replace {', '.join(row.replaced)} of --rates" if row.replaced else ""
    lines = [f"parts with a failure rate: {rates}{replaced}"]
    if row.left_out:
        covered = any(part.part == "network" for part in row.parts)
        stands = "; `network` of --rates stands for them" if covered else "; they do not fail"
        lines.append(f"parts without a failure rate: {', '.join(row.left_out)}{stands}")
    facts = labelled("fabric", [fabric_text(row.fabric), *_lines(lines)])
    if row.replanned is OMITTED:
        return facts
    new = row.replanned
    planning = (
        "stated by --setup"
        if new.planning_s is None
        else f"planning {duration(new.planning_s)}, measured; reconfiguration "
        + (
            "not stated by the fabric"
            if new.reconfiguration_s is None
            else duration(new.reconfiguration_s)
        )
    )
    used = "if no spare is left"
    if row.degraded_speed != new.speed:
        used = f"not used: --degraded-speed is {row.degraded_speed:g}"
    if row.spares is None:
        used = "not used: there is a spare for every failure"
    lines = [
        f"{new.collective} of {format_size(new.size_bytes)} on {new.ranks_left:,} of "
        f"{new.ranks:,} ranks by {new.algorithm}",
        f"{human_seconds(new.before_time_s)} before, {human_seconds(new.time_s)} after: "
        f"{new.slowdown:.4g} times as long",
        f"speed {new.speed:.4g} = 1 / (1 + {new.share:g} ({new.slowdown:.4g} - 1)) x "
        f"{new.ranks_left:,} / {new.ranks:,}, {used}",
        f"setup {duration(row.setup_s)}: {planning}",
    ]
    return facts + labelled("new plan", lines)


def labels(rows: list[GoodputRow]) -> dict[str, str]:
    """Returns short names of the fabrics of rows, without the spares, which each row states."""
    fabrics = (row.fabric for row in rows if row.fabric is not OMITTED)
    return fabric_labels(fabrics, without=["spares"])


def goodput_text(parameters: Parameters, rows: list[GoodputRow]) -> str:
    """Returns a table of all cases, or the losses of the only case."""
    first = rows[0]
    sources = dict.fromkeys(
        source for row in rows if row.fabric is not OMITTED for source in row.network_rates
    )
    lines = [
        f"mean of {first.replications} runs of {duration(first.length_s)}",
        *wrapped([f"failure rates: {first.rates}"], 0),
        *wrapped(list(sources), 0),
        "",
    ]
    if len(rows) > 1:
        names = labels(rows)
        shown = [replace(row, fabric=names.get(row.fabric, row.fabric)) for row in rows]
        firsts: dict[str, GoodputRow] = {}
        for row in rows:
            if row.fabric is not OMITTED:
                firsts.setdefault(names[row.fabric], row)
        for row in firsts.values():
            lines += [align(_network(row)), ""]
        limited = all(row.spares is not None for row in rows)
        holds = all(row.complete_formula is not None for row in rows)
        columns = [
            *(["fabric"] if len(firsts) > 1 else []),
            "devices",
            *(["spares"] if limited else []),
            *("between_failures_s", "interval_s", "goodput"),
            *(["per_installed"] if limited else []),
            "formula",
            *(["complete_formula"] if holds else []),
            *("largest_cause", "largest_part"),
        ]
        return "\n".join([*lines, table(shown, columns)])
    spares = "a spare for every failure" if first.spares is None else plural(first.spares, "spare")
    known = (
        ""
        if first.young_s is None or first.daly_s is None
        else f" (optimum by Young {duration(first.young_s)}, by Daly {duration(first.daly_s)})"
    )
    complete = (
        "" if first.complete_formula is None else f"; complete formula {first.complete_formula:.2%}"
    )
    facts = [
        *_network(first),
        ["devices", f"{first.devices:,} in units of {first.unit:,}, {spares}"],
        ["failures", f"one in {duration(first.between_failures_s)}"],
        [
            "checkpoint",
            f"{parameters.checkpoint} after {duration(first.interval_s)} of work{known}",
        ],
        [
            "goodput",
            f"{first.goodput:.2%} (95 % interval {first.goodput_low:.2%} to "
            f"{first.goodput_high:.2%}); formula {first.formula:.2%}{complete}",
        ],
        ["largest loss", f"{first.largest_cause}; by parts: {first.largest_part}"],
    ]
    causes = [cause for cause in first.causes if cause.share > 0]
    parts = sorted(first.parts, key=lambda part: -part.share)
    lines += [align(facts), ""]
    lines += [table(causes, ("cause", "share", "of_loss"))] if causes else ["nothing was lost"]
    lines += ["", table(parts, ("part", "rate", "failures", "share", "of_loss"))]
    return "\n".join(lines)
