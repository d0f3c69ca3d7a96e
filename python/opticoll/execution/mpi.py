"""Execution of programs by MPI processes, which this module starts.

The extra `mpi` installs `mpi4py` and MPICH; the `mpiexec` of another MPI works as well.
"""

from __future__ import annotations

import json
import mmap
import os
import pickle
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from opticoll._core import Program
from opticoll.errors import RunError, UsageError, installing
from opticoll.execution import mpi_rank
from opticoll.execution.in_process import Ended
from opticoll.execution.interpreter import StuckError
from opticoll.execution.mpi_rank import died, lives
from opticoll.execution.payload import Payload

LAUNCHERS = ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK")
"""Environment variables that launchers of MPI programs set in each process."""

PERIOD_S = 0.05
"""Seconds between two checks of the processes."""

START_S = 120.0
"""Maximum number of seconds until all processes have started."""


@dataclass(frozen=True)
class Job:
    """Program to execute with a payload, and the number of repetitions."""

    program: Program
    payload: Payload
    in_place: bool
    repetitions: int = 1


def launched() -> bool:
    """Returns whether an MPI launcher started this process."""
    return any(name in os.environ for name in LAUNCHERS)


def check() -> None:
    """Checks that MPI is available.

    Raises
    ------
    UsageError
        A package or `mpiexec` is missing.
    """
    if find_spec("mpi4py") is None:
        raise UsageError(f"--on mpi needs mpi4py and an MPI: {installing('mpi')}")
    if not launched() and _mpiexec() is None:
        raise UsageError(f"--on mpi finds no mpiexec: {installing('mpi')}")


def _mpiexec() -> str | None:
    """Returns the `mpiexec` next to this Python, or else the first one on the search path."""
    beside = Path(sys.executable).with_name("mpiexec")
    return str(beside) if beside.exists() else shutil.which("mpiexec")


def _lasting() -> list[str]:
    """Returns the option of MPICH's `mpiexec` that keeps other ranks alive if one rank dies.

    For the `mpiexec` of another MPI, returns an empty list.

    With this option, this module can find out which rank died before it ends the other ranks.
    """
    version = subprocess.run([str(_mpiexec()), "--version"], capture_output=True, check=False)
    return ["-disable-auto-cleanup"] if b"HYDRA" in version.stdout else []


def _described(job: Job, rank: int, folder: str, time_limit_s: float) -> dict[str, Any]:
    """Returns the description of a job that is written for one rank."""
    collective = job.payload.collective
    kind, ranks, root, pieces = (
        collective.kind,
        collective.ranks,
        collective.root,
        collective.pieces,
    )
    return {
        "collective": (kind, ranks, root, pieces),
        "elements": job.payload.elements,
        "element_type": job.payload.element_type,
        "operator": job.payload.operator,
        "in_place": job.in_place,
        "repetitions": job.repetitions,
        "blocks": job.program.thread_blocks_of(rank),
        "scratch": job.program.scratch(rank),
        "time_limit": time_limit_s,
        "folder": folder,
        "starter": os.getpid(),
    }


def as_rank(jobs: Sequence[Job], time_limit_s: float) -> list[Ended]:
    """Executes jobs as one process of an MPI program; only rank 0 prints.

    If a rank cannot continue, the rank reports the cause and ends the whole program.

    Raises
    ------
    RunError
        The number of processes differs from the number of ranks.
    """
    progress = _continue_in_child()
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    rank, size = comm.Get_rank(), comm.Get_size()
    progress[RANK] = rank
    if rank != 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    ended = []
    for job in jobs:
        ranks = job.payload.collective.ranks
        if size != ranks:
            if rank != 0:
                os._exit(1)
            raise RunError(f"the schedule has {ranks} ranks, and {size} processes were started")
        try:
            described = _described(job, rank, "", time_limit_s)
            outcome = mpi_rank.run(comm, described, job.payload, progress[:RANK])
        except (StuckError, MPI.Exception) as error:
            _, _, block, step, *_ = progress.tolist()
            position = f"thread block {block}, step {step}"
            if not isinstance(error, StuckError):
                problem = f"rank {rank}: {position}: {error}"
                # Give the watching process time to report a dead rank before all ranks are ended.
                time.sleep(mpi_rank.POLL_S)
            elif error.missing:
                silent = " and ".join(f"rank {peer}" for peer in error.missing)
                problem = f"no answer from {silent}; rank {rank} waits at {position}"
            else:
                problem = f"rank {rank}: {error}"
            os.write(2, f"opticoll: error: {problem}\n".encode())
            comm.Abort(1)
            os._exit(1)
        ended.append(Ended(**outcome))
    return ended


RANK = 5
"""Index of the rank in a process's row of the progress array."""


def _continue_in_child() -> np.ndarray:
    """Starts a child process in which the program continues; returns the progress of the child.

    Only the child returns from this function. The parent waits for the child and then ends. If the
    child dies, the parent reports the rank and the step, and ends with code 1. If the program has
    initialized MPI before, there is no child, and this process continues.
    """
    noted = np.frombuffer(mmap.mmap(-1, 8 * (RANK + 1)), np.int64)
    noted[RANK] = -1
    if "mpi4py.MPI" in sys.modules:
        return noted
    watcher, child = os.getpid(), os.fork()
    if child == 0:
        threading.Thread(target=mpi_rank.leave_after, args=(watcher,), daemon=True).start()
        return noted
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code < 0:
        _, _, block, step, _, rank = noted.tolist()
        problem = mpi_rank.died(rank, block, step) if rank >= 0 else "a rank died as it started"
        os.write(2, f"opticoll: error: {problem}\n".encode())
    os._exit(1 if code < 0 else code)


def carry_out(
    jobs: Sequence[Job],
    time_limit_s: float,
    *,
    words: Sequence[str] = (),
    watch: Callable[[np.ndarray], object] = lambda progress: None,
) -> list[Ended]:
    """Starts one process per rank to execute jobs; all processes end before the function returns.

    `words` are further words for `mpiexec`. `watch` is called repeatedly with the progress of the
    ranks.

    Raises
    ------
    RunError
        A process died, or no instruction ended within the time limit.
    """
    ranks = jobs[0].payload.collective.ranks
    with tempfile.TemporaryDirectory(prefix="opticoll-") as folder:
        for rank in range(ranks):
            descriptions = [_described(job, rank, folder, time_limit_s) for job in jobs]
            Path(folder, f"{rank}.job").write_bytes(pickle.dumps(descriptions))
        progress = np.memmap(Path(folder, "progress"), np.int64, "w+", shape=(ranks, 5))
        launcher = [str(_mpiexec()), *_lasting(), *words, "-n", str(ranks)]
        command = [*launcher, sys.executable, "-P", "-m"]
        with open(Path(folder, "output"), "wb") as output:
            process = subprocess.Popen(
                [*command, "opticoll.execution.mpi_rank", folder],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=_environment(),
                start_new_session=True,
            )
        try:
            stopped = _wait(process, progress, time_limit_s, watch)
        finally:
            _end(process, progress)
        words = Path(folder, "output").read_text(errors="replace").strip()
        reason = _reason(Path(folder), words, progress) or stopped
        if reason is not None:
            raise RunError(reason)
        outcome = Path(folder, "outcome")
        if process.returncode != 0 or not outcome.exists():
            raise RunError(f"the processes ended with code {process.returncode}: {words[-2000:]}")
        return [Ended(**load) for load in json.loads(outcome.read_text())]


def _reason(folder: Path, words: str, progress: np.ndarray) -> str | None:
    """Returns the cause of the end: the rank that died, or else the first error of a rank.

    If one rank dies, the other ranks end too, so several ranks are found dead. Two kinds of files
    show which rank died first. The watcher of a rank creates a file `.died` if the rank dies. A
    rank creates a file `.left` if its watcher dies.
    """
    messages = {
        process: (rank, block, step)
        for rank, (identity, _, block, step, watcher) in enumerate(progress.tolist())
        for process in (identity, watcher)
    }
    noted = [
        int(file.stem)
        for suffix in ("died", "left")
        for file in sorted(folder.glob(f"*.{suffix}"), key=lambda file: file.stat().st_mtime_ns)
    ]
    named = [int(digits) for digits in re.findall(r"\bPID (\d+)\b", words)]
    for identity in noted + named:
        if identity in messages and not Path(folder, f"{messages[identity][0]}.error").exists():
            return died(*messages[identity])
    errors = [file.read_text() for file in sorted(folder.glob("*.error"))]
    return min(errors, key=lambda error: "died" not in error, default=None)


def _environment() -> dict[str, str]:
    """Returns the environment of the processes.

    Two variables in this environment keep numerical libraries from starting threads. Two others
    keep freed memory in the process: otherwise, the system gives new pages to each large message,
    and fills the pages with zeros. The threshold of mmap is the largest that glibc accepts.
    """
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    return (
        os.environ
        | threads
        | {"MALLOC_MMAP_THRESHOLD_": str(2**25), "MALLOC_TRIM_THRESHOLD_": str(2**30)}
    )


def _wait(
    process: subprocess.Popen[bytes],
    progress: np.ndarray,
    time_limit_s: float,
    watch: Callable[[np.ndarray], object],
) -> str | None:
    """Waits for the end of all processes; returns the problem if a rank died or does not answer."""
    total, moved = -1, time.monotonic()
    while process.poll() is None:
        time.sleep(PERIOD_S)
        watch(progress)
        for rank, (identity, _, block, step, _) in enumerate(progress.tolist()):
            if identity > 0 and not lives(identity) and process.poll() is None:
                # A rank may have ended since `progress` was read.
                if progress[rank, 0] < 0 or _ends_soon(process):
                    continue
                return died(rank, block, step)
        if total != (now := int(progress[:, :2].sum())):
            total, moved = now, time.monotonic()
        allowed = time_limit_s + (START_S if not progress[:, 0].all() else 5.0)
        if time.monotonic() - moved > allowed:
            rank = int(progress[:, 1].argmin())
            block, step = progress[rank, 2:4].tolist()
            return (
                f"nothing moved for {allowed:g} s; rank {rank} is behind, at thread block "
                f"{block}, step {step}"
            )
    return None


def _ends_soon(process: subprocess.Popen[bytes]) -> bool:
    """Returns whether all processes end within 2 s and without an error."""
    try:
        return process.wait(2.0) == 0
    except subprocess.TimeoutExpired:
        return False


def _is_ours(identity: int, process: subprocess.Popen[bytes]) -> bool:
    """Returns whether a process belongs to this run.

    The command line of each process of the run contains the run's folder.
    """
    folder = str(process.args[-1]).encode()  # type: ignore[index]
    try:
        return folder in Path(f"/proc/{identity}/cmdline").read_bytes()
    except OSError:
        return False


def _end(process: subprocess.Popen[bytes], progress: np.ndarray) -> None:
    """Ends all processes that still run."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(5.0)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    for identity in np.abs(progress[:, 0]).tolist():
        if identity and _is_ours(identity, process):
            try:
                os.kill(identity, signal.SIGKILL)
            except ProcessLookupError:
                continue
