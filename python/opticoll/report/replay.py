"""A replay as plain text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from opticoll._core import format_size
from opticoll.report.layout import align, format_rate, labelled, plural
from opticoll.report.text import algorithm_name
from opticoll.report.training import seconds

if TYPE_CHECKING:
    from opticoll.study.replay import CollectiveRow, LightPathRow, ReplayRow

__all__ = ["replay_text"]

MOST_COLLECTIVES = 12
"""Lines of collectives printed for people."""

MOST_RANKS = 64
"""Ranks printed for people."""


def amount(count: int) -> str:
    """Bytes with four significant digits.

    >>> amount(999), amount(207_058_564)
    ('999 B', '207.1 MB')
    """
    for factor, unit in ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if count >= factor:
            return f"{count / factor:.4g} {unit}"
    return f"{count} B"


def replay_text(row: ReplayRow, per: str | None = None) -> str:
    """A line that says all, what was replayed over what, and a table by call or by rank."""
    head = (
        f"execution time {seconds(row['time_s'])}: the busiest rank computes for "
        f"{seconds(row['compute_s'])}; {plural(row['messages'], 'message')}, "
        f"{amount(row['bytes'])}"
    )
    injected = row["injection_bandwidth"]
    settings = "".join(f", {name}={value}" for name, value in row["settings"].items())
    facts = [
        [
            "trace",
            f"{row['trace']}: {plural(row['ranks'], 'rank')}, {row['trace_events']:,} events",
        ],
        ["network", row["fabric"]],
        ["simulator", f"{row['simulator']}{settings}"],
        *([] if injected is None else [["injection", f"{format_rate(injected)} per rank"]]),
        *labelled("collectives", _collectives(row["collectives"]) or ["none"]),
        ["local work", f"times {row['cpu_factor']}"],
        ["at the ends", f"{seconds(row['overhead_s'])} a message; eager: {row['eager']}"],
    ]
    if row["busiest_link"] is not None:
        share = row["busiest_link_utilisation"] or 0.0
        facts.append(["busiest link", f"{row['busiest_link']}, {share:.2%} of its rate used"])
    if row["light_paths"] is not None:
        facts.append(["light paths", _light_paths(row)])
        if row["light_paths"]["refusals"] is not None:
            facts.append(["refused", _refused(row["light_paths"])])
    return "\n\n".join([head, align(facts), _ranks(row) if per == "rank" else _calls(row)])


def _collectives(rows: Sequence[CollectiveRow]) -> list[str]:
    """What each collective ran by, a line for each algorithm."""
    sizes: dict[tuple[str, int, str], list[int]] = {}
    for one in rows:
        name = algorithm_name(one["chosen"], one["algorithm"])
        own = sizes.setdefault((one["collective"], one["ranks"], name), [])
        own += [] if one["size_bytes"] is None else [one["size_bytes"]]
    lines = []
    for (kind, ranks, name), planned in sizes.items():
        least, most = (format_size(size) for size in (min(planned or [0]), max(planned or [0])))
        size = "" if not planned else f" of {least}" if least == most else f" of {least}..{most}"
        lines.append(f"{kind}{size} among {plural(ranks, 'rank')} by {name}")
    rest = len(lines) - MOST_COLLECTIVES
    if rest > 0:
        lines = [*lines[:MOST_COLLECTIVES], f"and {rest} more (all of them with --json)"]
    return lines


def _light_paths(row: ReplayRow) -> str:
    used = row["light_paths"]
    assert used is not None
    words = f"{plural(used['set_ups'], 'set-up')}, {seconds(used['setting_up_s'])} in all"
    if used["waited"] is None or used["waiting_s"] is None:
        longest = max(rank["setting_up_s"] for rank in row["per_rank"])
        return f"{words}; the rank with most spends {seconds(longest)}"
    if used["refusals"] is not None:
        return (
            f"{words}; {used['waited']:,} had to wait for ports or after refusals, "
            f"{seconds(used['waiting_s'])} in all; at most {used['most_at_once']} at once"
        )
    waited = plural(used["waited"], "message")
    return (
        f"{words}; {waited} waited for one, {seconds(used['waiting_s'])} in all; "
        f"at most {used['most_at_once']} at once"
    )


def _refused(used: LightPathRow) -> str:
    refusals, set_ups = used["refusals"] or 0, used["set_ups"]
    share = refusals / max(refusals + set_ups, 1)
    words = f"{plural(refusals, 'request')} refused, {share:.3g} of all"
    if not used["bursts"]:
        return f"{words}; no bursts beside them"
    return f"{words}; {used['bursts']:,} bursts beside them, {used['burst_loss']:.3g} of them lost"


def _calls(row: ReplayRow) -> str:
    lines = [
        [
            one["call"],
            f"{one['calls']:,}",
            f"{one['messages']:,}",
            amount(one["bytes"]),
            seconds(one["total_s"] / row["ranks"]),
            seconds(one["longest_s"]),
        ]
        for one in row["per_call"]
    ]
    heading = ["call", "calls", "messages", "bytes", "time inside, mean rank", "longest rank"]
    return align(lines, heading, right=(1, 2, 3, 4, 5))


def _ranks(row: ReplayRow) -> str:
    lit = row["light_paths"] is not None and any(one["setting_up_s"] for one in row["per_rank"])
    lines = [
        [
            str(one["rank"]),
            seconds(one["finish_s"]),
            seconds(one["compute_s"]),
            seconds(one["calls_s"]),
            *([seconds(one["setting_up_s"])] if lit else []),
            f"{one['messages']:,}",
            amount(one["bytes"]),
        ]
        for one in row["per_rank"][:MOST_RANKS]
    ]
    heading = ["rank", "ends", "local work", "in calls"]
    heading += [*(["of that setting up"] if lit else []), "messages", "bytes"]
    table = align(lines, heading, right=range(len(heading)))
    rest = row["ranks"] - MOST_RANKS
    return f"{table}\nand {plural(rest, 'rank')} more (--json has all)" if rest > 0 else table
