"""MPI job of `library_messages`: calls collectives, and records the messages of each call.

Usage: library_job.py FOLDER CALL... with calls such as `allreduce:4096:8`: name, bytes as opticoll
counts them, and ranks. A rank writes its records to FOLDER/RANK.
"""

from __future__ import annotations

import ctypes
import sys
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from mpi4py import MPI


def carry_out(communicator: MPI.Comm, name: str, size: int) -> None:
    """Calls a collective; rank 0 is the root."""
    # Only in a job: the import starts MPI.
    from mpi4py import MPI

    ranks = communicator.size
    given, taken = (np.zeros(max(size, 1) * ranks, np.uint8) for _ in range(2))
    if name == "allgather":
        communicator.Allgather(given[:size], taken)
    elif name == "allreduce":
        communicator.Allreduce(given[:size], taken[:size], MPI.MAX)
    elif name == "alltoall":
        communicator.Alltoall(given[:size], taken[:size])
    elif name == "barrier":
        communicator.Barrier()
    elif name == "bcast":
        communicator.Bcast(given[:size], 0)
    elif name == "reduce":
        communicator.Reduce(given[:size], taken[:size], MPI.MAX, 0)
    elif name == "reduce_scatter":
        parts = [size // ranks] * ranks
        communicator.Reduce_scatter(given[:size], taken[: size // ranks], parts, MPI.MAX)
    elif name == "reduce_scatter_block":
        communicator.Reduce_scatter_block(given[:size], taken[: size // ranks], MPI.MAX)
    else:
        raise ValueError(name)


def main(folder: str, calls: list[str]) -> None:
    """Carries out the calls one after the other."""
    from mpi4py import MPI

    libc = ctypes.CDLL(None)
    libc.fopen.restype = ctypes.c_void_p
    libc.fputs.argtypes = [ctypes.c_char_p, ctypes.c_void_p]
    libc.fclose.argtypes = [ctypes.c_void_p]
    records = ctypes.c_void_p.in_dll(libc, "opticoll_records")
    world = MPI.COMM_WORLD
    file = libc.fopen(f"{folder}/{world.rank}".encode(), b"w")
    for call in calls:
        name, size, ranks = call.split(":")
        member = world.rank < int(ranks)
        communicator = world.Split(0 if member else MPI.UNDEFINED, world.rank)
        if member:
            communicator.Barrier()
            libc.fputs(f"call {call}\n".encode(), file)
            records.value = file
            carry_out(communicator, name, int(size))
            records.value = None
            communicator.Free()
    libc.fclose(file)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
