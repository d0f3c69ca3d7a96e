"""Figure of `opticoll train`: the timeline of one iteration, or the parts of several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opticoll.commands.train.text import GROUP_PARTS
from opticoll.outputs.fabric_names import fabric_labels

if TYPE_CHECKING:
    from opticoll.commands.train import TrainingRow

PARTS = {
    "computing": "compute_s",
    "communication, exposed": "exposed_communication_s",
    "reconfiguration, exposed": "reconfiguration_s",
    "control, exposed": "control_s",
}
"""Columns with the times of an iteration's parts, by name of the part."""


def draw(parameters: Any, rows: list[TrainingRow], path: Path) -> None:
    """Draws the timeline of an iteration.

    For several fabrics or for groups, draws the parts of the time.
    """
    from opticoll.plot import style
    from opticoll.plot.bars import BarPanel, stacked_bars
    from opticoll.plot.timelines import Bar, iteration_timeline

    row = rows[0]
    title = f"{row.label}, batch {row.batch}"
    if len(rows) > 1:
        labels = fabric_labels(a_row.fabric for a_row in rows)
        names = [f"{labels[a_row.fabric]}\n{style.conditions(a_row.fabric)}" for a_row in rows]
        panel = BarPanel("", _parts([_mean(a_row) for a_row in rows], row.groups is not None))
        stacked_bars([panel], names, path, x_label="Iteration", title=title)
        return
    time = style.time_text(row.iteration_s)
    title = f"{title}, {row.ranks} ranks of {style.named_fabric(row.fabric)}: iteration {time}"
    if row.groups is not None:
        *stages, _ = row.groups.parts
        names = [f"stage {stage.stage}" for stage in stages]
        panel = BarPanel("", _parts(stages, grouped=True))
        stacked_bars([panel], names, path, x_label="Iteration", title=title)
        return
    names = style.size_texts([bucket.bytes for bucket in row.timeline])
    bars = [
        Bar(name, bucket.ready_s, bucket.start_s, bucket.end_s)
        for name, bucket in zip(names, row.timeline, strict=True)
    ]
    iteration_timeline(row.forward_s, row.compute_s, bars, path, title=title)


def _mean(row: TrainingRow) -> Mapping[str, Any]:
    """Returns the row that contains the parts of an iteration's time."""
    return row if row.groups is None else row.groups.parts[-1]


def _parts(rows: Sequence[Mapping[str, Any]], grouped: bool) -> dict[str, list[float | None]]:
    """Returns the times of all parts, except parts that take no time in any row."""
    names = GROUP_PARTS if grouped else PARTS
    parts: dict[str, list[float | None]] = {
        name: [row[key] for row in rows] for name, key in names.items()
    }
    return {name: times for name, times in parts.items() if not grouped or any(times)}
