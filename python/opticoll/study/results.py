"""What a study leaves behind: findings, tables to read, and files in one folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from opticoll.formats.table import write_csv
from opticoll.study.findings import Finding

if TYPE_CHECKING:
    from opticoll.study.ours import OwnRow
    from opticoll.study.wrht.electrical import ElectricalRow

__all__ = ["Results", "Table"]


@dataclass(frozen=True)
class Table:
    """A table for people: cells are text, the columns with an index in `right` are numbers."""

    title: str
    heading: Sequence[str]
    rows: Sequence[Sequence[str]]
    right: frozenset[int]


@dataclass
class Results:
    """The results of a study, as they come; `files` are names in `folder`, in order of writing.

    `ours` are plans of opticoll beside the paper's numbers, kept apart from the findings;
    `electrical` are times on electrical fabrics beside those on light, of WRHT only.
    """

    folder: Path
    findings: list[Finding] = field(default_factory=list)
    ours: list[OwnRow] = field(default_factory=list)
    electrical: list[ElectricalRow] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    files: list[str] = field(default_factory=list)

    def write(self, name: str, rows: Sequence[Mapping[str, object]]) -> None:
        """Write rows as `name`.csv; raises FileError where that fails."""
        write_csv(rows, self.folder / f"{name}.csv")
        self.files.append(f"{name}.csv")

    def draw(self, name: str, figure: Callable[[Path], None]) -> None:
        """Draw a figure as `name`.svg and `name`.png; raises FileError where that fails."""
        for suffix in ("svg", "png"):
            figure(self.folder / f"{name}.{suffix}")
            self.files.append(f"{name}.{suffix}")

    def show(
        self,
        title: str,
        heading: Sequence[str],
        rows: Sequence[Sequence[object]],
        *,
        left: Sequence[int] = (0,),
    ) -> None:
        """Add a table for people; columns with an index in `left` are words."""
        self.tables.append(
            Table(
                title,
                heading,
                [[_cell(cell) for cell in row] for row in rows],
                frozenset(range(len(heading))) - set(left),
            )
        )


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "NO"
    return "-" if value is None else str(value)
