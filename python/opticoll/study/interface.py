"""Python functions that run studies and read their results."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from opticoll.cli.runner import run
from opticoll.errors import UsageError
from opticoll.study.results import Results, table_of

if TYPE_CHECKING:
    from opticoll.commands.sweep import SweepRow


def sweep(
    study: str | os.PathLike[str],
    store: str | os.PathLike[str] | None = None,
    *,
    jobs: int | None = None,
    shard: str | None = None,
    retry: bool = False,
    dry_run: bool = False,
) -> SweepRow:
    """Computes the points of a study that the store lacks, in worker processes on this machine.

    Parameters
    ----------
    study
        The name of a study's YAML file (see the page on studies).
    store
        The name of an SQLite file (default: the name of `study` with the ending `.sqlite`).
    jobs
        Number of worker processes (default: one per core).
    shard
        The part of the study to compute: `2/5` is the second of five parts (default: all points).
    retry
        Whether to repeat points whose result is an error.
    dry_run
        Whether to compute only a sample of the points, for a forecast. Nothing is stored.

    Raises
    ------
    OpticollError
        The study is invalid, or the store cannot be written. Earlier results are kept.

    Examples
    --------
    >>> import opticoll, pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "rings.yaml").write_text('''
    ... study: rings
    ... command: simulate
    ... options: {collective: all_gather, fabric: "wdm_ring:ranks=8", algorithm: ring}
    ... grid: {fabric.wavelengths: [1, 2], size: [1KiB, 1MiB]}
    ... ''')
    >>> row = opticoll.sweep(folder / "rings.yaml", jobs=1)
    >>> row.points, row.plans, row.computed, row.errors
    (4, 2, 4, 0)
    """
    if not isinstance(study, str | os.PathLike):
        raise UsageError(f"a study is the name of its YAML file, not a {type(study).__name__}")
    command = import_module("opticoll.commands.sweep").COMMAND
    values = {"jobs": jobs, "shard": shard, "retry": retry, "dry_run": dry_run}
    path = None if store is None else Path(store)
    (row,) = run(command, study=Path(study), store=path, **values)
    sweep_row: SweepRow = row
    return sweep_row


def results(
    stores: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    study: str | None = None,
    where: str | None = None,
    *,
    unfinished: bool = False,
    tables: bool = False,
) -> Results:
    """Reads the results of studies as one table.

    Each row has the axes of a point, and the columns that the study's command printed. If several
    stores have the same point, such as the stores of shards, the result of the first store counts.
    The table is a sequence of rows. `to_pandas()` returns it as a DataFrame, and `to_xarray()` as a
    Dataset over the axes; Arrow reads it as well (`pyarrow.table(results)`).

    Parameters
    ----------
    stores
        The name of a store, or a list of names.
    study
        The name of a study (default: all).
    where
        A condition on columns, such as `time_s < 1ms and ranks >= 64`.
    unfinished
        Whether to include a row for each point that is not computed yet.
    tables
        Whether to include columns that contain tables, such as violations.

    Raises
    ------
    OpticollError
        A store cannot be read, a study is unknown, or `where` is not a condition on columns.

    Examples
    --------
    >>> import opticoll, pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "rings.yaml").write_text('''
    ... study: rings
    ... command: simulate
    ... options: {collective: all_gather, algorithm: ring, size: 1MiB}
    ... grid: {fabric: ["wdm_ring:ranks=8,wavelengths=1", terarack]}
    ... ''')
    >>> _ = opticoll.sweep(folder / "rings.yaml", jobs=1)
    >>> table = opticoll.results(folder / "rings.sqlite", where="ranks < 100")
    >>> [(row["ranks"], row["steps"], row["verified"]) for row in table]
    [(8, 7, True)]
    >>> table.units["time_s"], table.axes
    ('s', ['axis_fabric'])
    """
    return table_of(stores, study, where, unfinished=unfinished, tables=tables)
