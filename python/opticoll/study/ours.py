"""opticoll's own plans beside a paper's numbers: no part of the paper, and marked as such.

>>> from opticoll.study.ours import own_rows
>>> (row,) = own_rows("Table I", "all_gather", 64, 8, "relay_tree", [4096])
>>> row["steps"], row["bound_steps"], row["bound_name"], row["verified"]
(7, 7, 'relay_tree', True)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypedDict, cast

from opticoll import _core
from opticoll.registry import plans_by_size
from opticoll.study.comparison import measure
from opticoll.study.constructed import POLICY, fabric
from opticoll.study.results import Results

__all__ = ["OwnRow", "own_rows", "show_times", "write_rows"]


class OwnRow(TypedDict):
    """A plan of opticoll on one of the paper's rings, the bounds, and the paper's own number.

    `beside` says what of the paper it stands beside. `bound_steps` holds for one chunk per
    lightpath of this plan's number of pieces (or, where it has more, for any number);
    `paper_steps` and `paper_time_s` are those of `paper_algorithm` by the paper's formula, None
    where nothing is compared.
    """

    source: str
    beside: str
    collective: str
    algorithm: str
    chosen: str
    ranks: int
    wavelengths: int
    size_bytes: int
    steps: int
    bound_steps: int | None
    bound_name: str | None
    time_s: float
    bound_time_s: float
    bound_time_name: str
    paper_algorithm: str
    paper_steps: int | None
    paper_time_s: float | None
    verified: bool


def own_rows(
    beside: str,
    collective: str,
    ranks: int,
    wavelengths: int,
    algorithm: str,
    sizes: Sequence[int],
) -> list[OwnRow]:
    """A plan for each size in bytes under the papers' policy; `auto` plans for each anew."""
    rows = []
    for together in [[size] for size in sizes] if plans_by_size(algorithm) else [list(sizes)]:
        plan = _core.plan(
            collective,
            fabric(ranks, wavelengths),
            algorithm,
            size_bytes=together[0],
            policy=POLICY,
        )
        violations = plan.verify()
        for size in together:
            row = measure(plan, violations, plan.simulate(size, policy=POLICY), size)
            rows.append(
                OwnRow(
                    source="opticoll, not the paper",
                    beside=beside,
                    collective=collective,
                    algorithm=algorithm,
                    chosen=row["chosen"],
                    ranks=ranks,
                    wavelengths=wavelengths,
                    size_bytes=size,
                    steps=row["steps"],
                    bound_steps=row["bound_steps"],
                    bound_name=row["bound_name"],
                    time_s=row["time_s"],
                    # A ring of wavelengths has a bound.
                    bound_time_s=cast(float, row["bound_time_s"]),
                    bound_time_name=cast(str, row["bound_time_name"]),
                    paper_algorithm="",
                    paper_steps=None,
                    paper_time_s=None,
                    verified=row["verified"],
                )
            )
    return rows


def write_rows(results: Results, rows: Iterable[OwnRow]) -> None:
    """Keep rows for machines, and write them to ours.csv."""
    results.ours = list(rows)
    results.write("ours", results.ours)


def show_times(
    results: Results, title: str, rows: Iterable[OwnRow], names: Sequence[str] | None = None
) -> None:
    """A table of times in ms, apart from the paper's; `names` stand before the rows."""
    rows = list(rows)
    heading = ["N", "w", "size", "plan", "steps", "time", "bound", "gap", "paper", "verified"]
    cells: list[list[object]] = [
        [
            row["ranks"],
            row["wavelengths"],
            _core.format_size(row["size_bytes"]),
            row["chosen"],
            row["steps"],
            f"{1e3 * row['time_s']:.4g}",
            f"{1e3 * row['bound_time_s']:.4g}",
            f"{row['time_s'] / row['bound_time_s'] - 1:.1%}",
            "-" if row["paper_time_s"] is None else f"{1e3 * row['paper_time_s']:.4g}",
            row["verified"],
        ]
        for row in rows
    ]
    if names is not None:
        heading = ["network", *heading]
        cells = [[name, *line] for name, line in zip(names, cells, strict=True)]
    offset = 0 if names is None else 1
    left = [*range(offset), 3 + offset, 9 + offset]
    results.show(title, heading, cells, left=left)
