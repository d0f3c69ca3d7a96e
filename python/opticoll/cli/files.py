"""The files that a command writes beside its answer.

What can be known of a file is checked before the work. After the work each file is written for
itself: a figure that cannot be drawn leaves the table and the answer as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from opticoll import errors

__all__ = ["Files", "check_files", "kept_on_failure"]

Write = Callable[[Path], "Sequence[Path] | None"]
"""Writes a file; returns the files written where they are others than the one asked for."""

Rows = Sequence[Mapping[str, object]]


@dataclass
class Files:
    """What became of the files asked for."""

    notes: list[str] = field(default_factory=list)
    failure: BaseException | None = None
    """Why the first of those that could not be written could not."""

    def write(self, path: Path | None, write: Write) -> Files:
        """Write a file, if one is asked for."""
        if path is None:
            return self
        try:
            written = write(path)
        except (Exception, KeyboardInterrupt) as failure:
            self.failure = self.failure or failure
        else:
            self.notes.append(f"wrote {', '.join(map(str, written or [path]))}")
        return self

    def table(self, path: Path | None, rows: Rows) -> Files:
        """Write rows as CSV, if asked for."""
        from opticoll.formats.table import write_csv

        return self.write(path, lambda target: write_csv(rows, target))


def check_files(
    *,
    csv: Path | None = None,
    figure: Path | None = None,
    timeline: Path | None = None,
    output: Path | None = None,
) -> None:
    """Refuse files that could not be written, or that other programs would not know."""
    from opticoll.formats.atomic import check_writable, is_device

    for option, path, suffix in (("--csv", csv, ".csv"), ("--timeline", timeline, ".json")):
        if path is None:
            continue
        if path.suffix.lower() != suffix and not is_device(path):
            raise errors.UsageError(f"{option}: `{path}` must end in {suffix}")
        check_writable(path)
    if output is not None:
        check_writable(output)
    if figure is not None:
        from opticoll.plot.output import check_path

        check_path(figure)


@contextmanager
def kept_on_failure(csv: Path | None, rows: Rows) -> Iterator[None]:
    """Write the rows computed so far, if a table is asked for, when the work does not end well."""
    try:
        yield
    except BaseException as failure:
        if csv is not None and rows:
            kept = Files().table(csv, rows)
            failure.add_note(
                f"wrote {csv}, with the {len(rows)} rows computed so far"
                if kept.failure is None
                else f"cannot write {csv} either: {kept.failure}"
            )
        raise
