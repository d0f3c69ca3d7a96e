"""An iteration of training as plain text.

>>> from opticoll.report.training import seconds
>>> seconds(0.0122673)
'12.27 ms'
>>> seconds(7200)
'2.000 h'
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from opticoll import registry
from opticoll._core import format_size
from opticoll.report.layout import align, format_rate, human_time, plural
from opticoll.report.text import injection_lines

if TYPE_CHECKING:
    from opticoll.study.training import TrainingRow

__all__ = ["PARTS", "seconds", "training_text"]

MOST_SIZES = 12
"""Sizes of all_reduces printed for people."""

PICOSECONDS = 10**12


def seconds(time_s: float) -> str:
    """A time with four significant digits, also where it is long."""
    for factor, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if time_s >= 2 * factor or (time_s >= factor and unit != "min"):
            return (
                f"{time_s / factor:.4g} {unit}"
                if time_s >= 1e4 * factor
                else (f"{time_s / factor:#.4g} {unit}")
            )
    return human_time(round(time_s * PICOSECONDS))


PARTS = {
    "computing": "compute_s",
    "communication, exposed": "exposed_communication_s",
    "reconfiguration, exposed": "reconfiguration_s",
    "control, exposed": "control_s",
}
"""What an iteration consists of, and the keys of its times."""


def training_text(rows: Sequence[TrainingRow]) -> str:
    """An iteration on each fabric, and, of several, a table of them."""
    blocks = [_iteration(row) for row in rows]
    if len(rows) > 1:
        blocks.append("\n".join([_fabrics(rows), *injection_lines(rows)]))
    return "\n\n".join(blocks)


def _fabrics(rows: Sequence[TrainingRow]) -> str:
    """A line for each fabric, the ratio to the shortest iteration beside each."""
    labels = registry.fabric_labels(row["fabric"] for row in rows)
    least = min(row["iteration_s"] for row in rows)
    lines = [
        [
            labels[row["fabric"]],
            format_rate(row["injection_bandwidth"]),
            seconds(row["iteration_s"]),
            f"{row['iteration_s'] / least:.2f}" if least else "-",
            f"{row['efficiency']:.1%}",
        ]
        for row in rows
    ]
    heading = ["fabric", "per rank", "iteration", "ratio", "computing"]
    return align(lines, heading, right=(1, 2, 3, 4))


def _memory(row: TrainingRow) -> str:
    """What the model takes on a device, and whether it fits."""
    memory = row["memory"]
    gigabytes = f"{memory['total_bytes'] / 1e9:,.1f} GB"
    states = f"weights {memory['weights_bytes'] / 1e9:,.1f}"
    states += f", gradients {memory['gradients_bytes'] / 1e9:,.1f}"
    states += f", optimizer {memory['optimizer_bytes'] / 1e9:,.1f}"
    activations = memory["activations_bytes"]
    known = "" if activations is None else f", activations {activations / 1e9:,.1f}"
    least = "at least " if activations is None else ""
    if memory["device_bytes"] is None:
        return f"{least}{gigabytes}: {states}{known}"
    fits = "fits" if memory["fits"] else "does NOT fit"
    return f"{least}{gigabytes}: {states}{known}; {fits} {memory['device_bytes'] / 1e9:,.1f} GB"


def _iteration(row: TrainingRow) -> str:
    """A line that says all, where an iteration spends its time, and what all_reduces cost."""
    whole = row["iteration_s"]
    rule = row["policy"] or row["start"] or ""
    head = (
        f"iteration {seconds(whole)}: {row['efficiency']:.1%} computing; "
        f"{row['samples_per_s']:.6g} samples/s; "
        f"{'verified' if row['verified'] else 'NOT verified'}"
    )
    facts = [
        ["model", f"{row['label']}: {row['parameters']:,} parameters in {row['tensors']} tensors"],
        ["gradients", f"{row['gradients']}, {row['gradient_bytes'] / 1e6:,.1f} MB"],
        ["fabric", f"{plural(row['ranks'], 'rank')}: {row['fabric']}"],
        ["injection", f"{format_rate(row['injection_bandwidth'])} per rank"],
        ["algorithm", f"all_reduce by {row['algorithm']}"],
        ["computing", f"a batch of {row['batch']} per device, {row['compute']}"],
        ["memory", _memory(row)],
        ["buckets", f"{row['buckets']}: {plural(len(row['timeline']), 'all_reduce')}"],
        ["overlap", "sent during the backward pass" if row["overlap"] else "none"],
        ["simulator", f"{row['simulator'] or 'none'}{', ' if rule else ''}{rule}"],
        ["verified", "yes" if row["verified"] else f"NO: {row['violations'][0]}"],
    ]
    parts = [
        ("computing", row["compute_s"]),
        ("communication, exposed", row["exposed_communication_s"]),
        ("reconfiguration, exposed", row["reconfiguration_s"]),
        ("control, exposed", row["control_s"]),
        ("iteration", whole),
    ]
    shares = [
        [name, seconds(time_s), f"{time_s / whole:.1%}" if whole else "-"] for name, time_s in parts
    ]
    hidden = row["communication_s"] - (whole - row["compute_s"])
    shares.append(["communication, hidden", seconds(max(hidden, 0.0)), ""])
    blocks = [head, align(facts), align(shares, ["part", "time", "share"], right=(1, 2))]
    if row["collectives"]:
        blocks.append(_sizes(row))
    if row["training_s"] is not None:
        blocks.append(
            f"training: {plural(row['epochs'] or 0, 'epoch')} of {row['samples']:,} samples are "
            f"{row['iterations']:,} iterations: {seconds(row['training_s'])}"
        )
    return "\n\n".join(blocks)


def _sizes(row: TrainingRow) -> str:
    """What all_reduces cost: those that take longest in all."""
    ordered = sorted(row["collectives"], key=lambda one: -one["count"] * one["time_s"])
    lines = [
        [
            format_size(one["size_bytes"]),
            str(one["count"]),
            one["algorithm"],
            str(one["steps"]),
            seconds(one["time_s"]),
            seconds(one["reconfiguration_s"]),
            seconds(one["control_s"]),
        ]
        for one in ordered[:MOST_SIZES]
    ]
    heading = ["all_reduce of", "times", "algorithm", "steps", "each", "reconfiguration", "control"]
    table = align(lines, heading, right=(1, 3, 4, 5, 6))
    rest = len(ordered) - MOST_SIZES
    return f"{table}\nand {rest} sizes more (all of them with --json)" if rest > 0 else table
