"""Engines on Dask clusters: a running cluster, or jobs of SLURM, PBS or LSF.

A profile is a YAML file with the number of jobs, and the options of `dask_jobqueue` for one job:

    jobs: 8
    cores: 32
    memory: 64GB
    queue: batch
    walltime: "02:00:00"

By default, each core of a job runs one worker process.
"""

from __future__ import annotations

import inspect
import logging
import queue
import re
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any, Literal

from opticoll.errors import ConfigError, FileError, UsageError, needed
from opticoll.formats.document import Document, whole
from opticoll.names import nearest
from opticoll.study.build_digest import build
from opticoll.study.engines import Feed, Supply, arrived, run_crew
from opticoll.study.worker import Solved, Task, solve_all

Manager = Literal["slurm", "pbs", "lsf"]
"""Job manager that submits the jobs of a cluster."""

_CLASSES = {"slurm": "SLURMCluster", "pbs": "PBSCluster", "lsf": "LSFCluster"}

CLUSTERS = "clusters need"

MAX_JOBS = 10**4
MAX_PROCESSES = 4096
"""Maximum number of worker processes of a job."""


class Dask:
    """Engine on a Dask cluster, given as a scheduler's address or as an object of `job_cluster`.

    Raises
    ------
    UsageError
        The packages are not installed, or no scheduler answers at this address.
    """

    def __init__(self, scheduler: Any) -> None:
        distributed = needed("distributed", CLUSTERS, "study")
        # Lost workers and repeated tasks show in the results, so warnings of Dask are not printed.
        logging.getLogger("distributed").setLevel(logging.CRITICAL)
        self._cluster = None if isinstance(scheduler, str) else scheduler
        try:
            self._client: Any = distributed.Client(scheduler, timeout=30)
        except (OSError, ValueError) as error:
            raise UsageError(f"there is no Dask scheduler at `{scheduler}`: {error}") from error
        self.workers = 1
        self._memory: int | None = None
        self._look()
        self._command = ""
        self._events: queue.Queue[Any] = queue.Queue()
        self._pending: dict[str, Sequence[Task]] = {}

    def _look(self) -> None:
        """Updates the number of workers, and the memory limit of a task in bytes."""
        workers = self._client.scheduler_info(n_workers=-1)["workers"].values()
        self.workers = max(1, sum(worker["nthreads"] for worker in workers))
        shares = [
            worker["memory_limit"] // worker["nthreads"]
            for worker in workers
            if worker["memory_limit"]
        ]
        self._memory = min(shares, default=None)

    def results(self, command: str, feed: Feed) -> Generator[list[Solved], None, None]:
        """Yields results as they arrive."""
        self._command = command
        try:
            yield from run_crew(self, feed)
        finally:
            self.close()

    def close(self) -> None:
        """Disconnects from the cluster; also ends the cluster if it was started for this study."""
        self._client.close()
        if self._cluster is not None:
            self._cluster.close()

    def has_room(self) -> bool:
        """Returns whether fewer than two tasks per worker are pending."""
        return len(self._pending) < 2 * self.workers

    def is_busy(self) -> bool:
        """Returns whether tasks are pending."""
        return bool(self._pending)

    def give(self, tasks: Sequence[Task]) -> None:
        """Submits tasks to the cluster."""
        request = (self._command, tasks, self._memory, build())
        future: Any = self._client.submit(solve_all, *request, pure=False)
        self._pending[future.key] = tasks
        future.add_done_callback(self._events.put)

    def hear(self, supply: Supply) -> list[Solved]:
        """Returns the results that have arrived; requeues the tasks of a dead worker one by one."""
        from distributed import CancelledError
        from distributed.scheduler import KilledWorker

        results: list[Solved] = []
        for future in arrived(self._events):
            tasks = self._pending.pop(future.key)
            try:
                results += future.result()
            except KilledWorker as error:
                for task in tasks if len(tasks) > 1 else ():
                    supply.requeue([task])
                if len(tasks) == 1:
                    problem = f"the workers died at it: {error}"
                    results.append(Solved(tasks[0].key, None, problem, 0.0))
            except CancelledError as error:
                raise UsageError("the Dask scheduler has gone") from error
        self._look()
        return results


def job_cluster(manager: Manager, profile: Path) -> tuple[Any, int]:
    """Returns a Dask cluster, and the number of its jobs; does not submit the jobs to `manager`.

    Raises
    ------
    ConfigError
        The profile is wrong; the message names the file.
    """
    fields, jobs = _fields(profile)
    package = needed("dask_jobqueue", CLUSTERS, "study")
    try:
        return getattr(package, _CLASSES[manager])(**fields), jobs
    except (TypeError, ValueError, OSError) as error:
        first = " ".join(str(error).partition("\n")[0].split())
        if unknown := re.match(r"Got unexpected keyword argument '(\w+)'", first):
            near = nearest(unknown[1], _known(getattr(package, _CLASSES[manager]).job_cls))
            first = f"jobs of {manager} have no field `{unknown[1]}`{near}"
        raise ConfigError(f"{profile}: {first}") from error


def _known(job: type) -> list[str]:
    """Returns the names of the fields that `dask_jobqueue` accepts for a job of class `job`."""
    kinds = [base for base in job.__mro__ if base is not object and "__init__" in vars(base)]
    every = (name for kind in kinds for name in inspect.signature(kind).parameters)
    return [name for name in dict.fromkeys(every) if name not in ("args", "kwargs")]


def workers_of(profile: Path) -> int:
    """Returns the total number of workers in all jobs of a profile."""
    fields, jobs = _fields(profile)
    return jobs * int(fields["processes"])


def _fields(profile: Path) -> tuple[dict[str, Any], int]:
    """Returns the fields of one job (default: one process per core), and the number of jobs."""
    document = Document.read(profile)
    fields = {"jobs": 1, "cores": 1, **document.content}
    fields.setdefault("processes", fields["cores"])
    for name, most in (("jobs", MAX_JOBS), ("processes", MAX_PROCESSES)):
        try:
            fields[name] = whole(1, most)(fields[name])
        except ConfigError as error:
            raise document.error((name,), str(error)) from error
    if "cores" not in document.content:
        del fields["cores"]
    return fields, fields.pop("jobs")


def job_script(manager: Manager, profile: Path) -> str:
    """Returns the script of one job, but does not submit the job.

    Raises
    ------
    ConfigError
        The profile is wrong; the message names the file.
    """
    cluster, _ = job_cluster(manager, profile)
    try:
        return str(cluster.job_script())
    finally:
        cluster.close()


def job_engine(manager: Manager, profile: Path) -> Dask:
    """Submits the jobs of a profile, and returns the engine that uses them.

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
