"""Figure of `opticoll train`: the timeline of an iteration, or the parts of iterations."""

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
"""Parts of an iteration, and the columns of their times."""


def draw(parameters: Any, rows: list[TrainingRow], path: Path) -> None:
    """Draws the timeline of an iteration; for several fabrics or groups, parts of iterations."""
    from opticoll.plot import style
    from opticoll.plot.bars import BarPanel, stacked_bars
    from opticoll.plot.timelines import Bar, iteration_timeline

    row = rows[0]
    title = f"{row.label}, batch {row.batch}"
    if len(rows) > 1:
        labels = fabric_labels(each.fabric for each in rows)
        names = [f"{labels[each.fabric]}\n{style.conditions(each.fabric)}" for each in rows]
        panel = BarPanel("", _parts([_mean(each) for each in rows], row.groups is not None))
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
    """Returns the row with the parts of an iteration."""
    return row if row.groups is None else row.groups.parts[-1]


def _parts(rows: Sequence[Mapping[str, Any]], grouped: bool) -> dict[str, list[float | None]]:
    """Returns the times of the parts; parts that take no time anywhere are left out."""
    names = GROUP_PARTS if grouped else PARTS
    parts: dict[str, list[float | None]] = {
        name: [row[key] for row in rows] for name, key in names.items()
    }
    return {name: times for name, times in parts.items() if not grouped or any(times)}
