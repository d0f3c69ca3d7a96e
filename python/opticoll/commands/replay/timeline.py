"""Timeline of a replay: every call of every rank, as a file for Perfetto and as a figure."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opticoll import _core
from opticoll.outputs.fabric_names import fabric_text
from opticoll.outputs.layout import PICOSECONDS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from opticoll.commands.replay import ReplayRow


def slices(row: ReplayRow) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Returns intervals as four arrays: rank, start and end in picoseconds, index of the call.

    The index is -1 for local work between calls. Intervals are ordered by rank and start. If the
    calls of a rank overlap, as GOAL operations do, local work is left out.
    """
    import numpy as np

    columns = row.outcome.timeline
    order = np.lexsort((columns["event"], columns["rank"]))
    rank, call = columns["rank"][order], order.astype(np.int64)
    start, end = columns["start_ps"][order], columns["end_ps"][order]
    # Local work lasts from the end of a rank's previous call to the start of the next call.
    before = np.zeros_like(end)
    before[1:] = np.where(rank[1:] == rank[:-1], end[:-1], 0)
    works = (start > before) & row.in_order
    ranks = np.concatenate([rank, rank[works]])
    starts = np.concatenate([start, before[works]])
    ends = np.concatenate([end, start[works]])
    calls = np.concatenate([call, np.full(int(works.sum()), -1)])
    sequence = np.lexsort((starts, ranks))
    return ranks[sequence], starts[sequence], ends[sequence], calls[sequence]


def write(parameters: object, rows: list[ReplayRow], path: Path) -> None:
    """Writes a timeline for Perfetto."""
    from opticoll import formats
    from opticoll.formats.chrome_trace import Slice

    (row,) = rows
    names, columns = _core.call_names(), row.outcome.timeline
    slots = zip(*(column.tolist() for column in slices(row)), strict=True)
    pieces = (
        Slice(rank, "compute", start, end, None)
        if call < 0
        else Slice(rank, names[columns["call"][call]], start, end, int(columns["event"][call]))
        for rank, start, end, call in slots
    )
    name = f"{row.trace} over {row.fabric}"
    formats.named_format("timeline", str(path)).write(name, row.ranks, pieces, path)


def draw(parameters: object, rows: list[ReplayRow], path: Path) -> None:
    """Draws the timeline of the ranks."""
    import numpy as np

    from opticoll import plot

    (row,) = rows
    names = _core.call_names()
    # Kind of each call, by the call's index: 0 is local work, 1 a message or wait, 2 a collective.
    first = names.index("barrier")
    kinds = np.array([0 if name == "local" else 1 + (at >= first) for at, name in enumerate(names)])
    rank, start, end, call = slices(row)
    called = row.outcome.timeline["call"]
    kind = np.where(call < 0, 0, kinds[called[np.maximum(call, 0)]]) if len(called) else call
    name = "" if row.trace is None else f"{os.path.basename(row.trace)}, "
    title = f"{name}{fabric_text(row.fabric)}"
    plot.rank_timeline(
        rank, kind, start / PICOSECONDS, end / PICOSECONDS, row.ranks, path, title=title
    )
