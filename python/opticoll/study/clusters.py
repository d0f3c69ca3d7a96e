"""Dask clusters: one that runs, or one whose workers are jobs of SLURM, PBS or LSF.

A profile is a YAML file with the number of jobs, and what `dask_jobqueue` takes for one job:

    jobs: 8
    cores: 32
    memory: 64GB
    queue: batch
    walltime: "02:00:00"

Each core has a worker process of its own.
"""

from __future__ import annotations

import logging
import queue
from collections.abc import Generator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from opticoll.document import Document, whole
from opticoll.errors import ConfigError, FileError, UsageError
from opticoll.study.engines import TICK_S, Feed
from opticoll.study.worker import Solved, Task, solve_all

Manager = Literal["slurm", "pbs", "lsf"]
"""A manager of jobs."""

_CLASSES = {"slurm": "SLURMCluster", "pbs": "PBSCluster", "lsf": "LSFCluster"}

MOST_JOBS = 10**4


class Dask:
    """The workers of a Dask cluster, by the address of its scheduler or by a profile of jobs.

    Raises
    ------
    UsageError
        The packages are not installed, or there is no such scheduler.
    """

    def __init__(self, scheduler: Any) -> None:
        distributed = _imported("distributed")
        # What matters of it is in the results: workers that come and go, tasks done again.
        logging.getLogger("distributed").setLevel(logging.CRITICAL)
        self._cluster = None if isinstance(scheduler, str) else scheduler
        try:
            self._client: Any = distributed.Client(scheduler, timeout=30)
        except (OSError, ValueError) as error:
            raise UsageError(f"there is no Dask scheduler at `{scheduler}`: {error}") from error
        self.workers = self._threads()

    def _threads(self) -> int:
        known: dict[str, int] = self._client.nthreads()
        return max(1, sum(known.values()))

    def _memory(self) -> int | None:
        """The bytes that each task may need: the least share of the workers that are there."""
        workers = self._client.scheduler_info(n_workers=-1)["workers"].values()
        shares = [one["memory_limit"] // one["nthreads"] for one in workers if one["memory_limit"]]
        return min(shares, default=None)

    def results(self, command: str, feed: Feed) -> Generator[list[Solved], None, None]:
        """The results as they come."""
        from distributed import CancelledError
        from distributed.scheduler import KilledWorker

        events: queue.Queue[Any] = queue.Queue()
        pending: dict[str, Sequence[Task]] = {}
        again: list[Sequence[Task]] = []
        more = True
        try:
            while True:
                waits = False
                self.workers = self._threads()
                memory = self._memory()
                while len(pending) < 2 * self.workers:
                    tasks: Sequence[Task] | None = again.pop() if again else None
                    if tasks is None and more:
                        tasks = feed()
                        more = tasks is not None
                    if not tasks:
                        waits = tasks is not None
                        break
                    future: Any = self._client.submit(solve_all, command, tasks, memory, pure=False)
                    pending[future.key] = tasks
                    future.add_done_callback(events.put)
                if not pending and not waits and not more:
                    return
                results: list[Solved] = []
                for future in _ended(events):
                    tasks = pending.pop(future.key)
                    try:
                        results += future.result()
                    except KilledWorker as error:
                        # One of them kills its workers: each is tried alone.
                        if len(tasks) > 1:
                            again += [[task] for task in tasks]
                        else:
                            told = f"the workers died at it: {error}"
                            results.append(Solved(tasks[0].key, None, told, 0.0))
                    except CancelledError as error:
                        raise UsageError("the Dask scheduler has gone") from error
                yield results
        finally:
            self._client.close()
            if self._cluster is not None:
                self._cluster.close()


def _ended(events: queue.Queue[Any]) -> list[Any]:
    """The futures that have ended by now; waits a little where none has."""
    ended = []
    with suppress(queue.Empty):
        ended.append(events.get(timeout=TICK_S))
        while True:
            ended.append(events.get_nowait())
    return ended


def job_cluster(manager: Manager, profile: Path) -> tuple[Any, int]:
    """A Dask cluster whose workers are jobs, none of them submitted yet, and their number.

    Raises
    ------
    ConfigError
        The profile is wrong; the message names the file.
    """
    document = Document.read(profile)
    fields = dict(document.content)
    try:
        jobs = whole(1, MOST_JOBS)(fields.pop("jobs", 1))
    except ConfigError as error:
        raise document.error(("jobs",), str(error)) from error
    fields.setdefault("processes", fields.get("cores", 1))
    package = _imported("dask_jobqueue")
    try:
        return getattr(package, _CLASSES[manager])(**fields), jobs
    except (TypeError, ValueError, OSError) as error:
        first = " ".join(str(error).partition("\n")[0].split())
        raise ConfigError(f"{profile}: {first}") from error


def job_script(manager: Manager, profile: Path) -> str:
    """The script of one job; nothing is submitted. Raises ConfigError as `job_cluster` does."""
    cluster, _ = job_cluster(manager, profile)
    try:
        return str(cluster.job_script())
    finally:
        cluster.close()


def of_jobs(manager: Manager, profile: Path) -> Dask:
    """The engine of a cluster whose jobs are submitted now.

    Raises
    ------
    FileError
        The jobs cannot be submitted.
    """
    cluster, jobs = job_cluster(manager, profile)
    try:
        cluster.scale(jobs=jobs)
        return Dask(cluster)
    except (OSError, RuntimeError) as error:
        cluster.close()
        raise FileError(f"no job can be submitted to {manager}: {error}") from error


def _imported(package: str) -> Any:
    from importlib import import_module

    try:
        return import_module(package)
    except ImportError as error:
        raise UsageError(
            f"clusters need the package `{package}`, which is not installed; "
            "`pip install opticoll[study]` does it"
        ) from error
