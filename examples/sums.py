"""Shows by which algorithm an MPI library computes an all_reduce.

    mpirun -n 8 python sums.py 1KiB 1MiB

The arguments are the sizes of the vectors. The operator of the all_reduce records the bytes that
each of its calls adds on rank 0. On n ranks, recursive doubling adds whole vectors, log2(n) times.
Halving and doubling adds a half, a quarter and so on. A ring adds n - 1 times the nth part.
"""

import sys

import numpy as np
from mpi4py import MPI

UNITS = {"KiB": 2**10, "MiB": 2**20}
added: list[int] = []


def add(given: MPI.buffer, taken: MPI.buffer, datatype: MPI.Datatype) -> None:
    """Adds the elements of the first buffer to those of the second buffer."""
    added.append(len(given))
    total = np.frombuffer(taken, np.int32)
    total += np.frombuffer(given, np.int32)


def main(sizes: list[str]) -> None:
    """Calls an all_reduce of each size, checks its result, and prints what rank 0 added."""
    ranks = MPI.COMM_WORLD.size
    operator = MPI.Op.Create(add, commute=True)
    for size in sizes:
        elements = int(size[:-3]) * UNITS[size[-3:]] // 4
        given = np.full(elements, MPI.COMM_WORLD.rank + 1, np.int32)
        taken = np.empty_like(given)
        added.clear()
        MPI.COMM_WORLD.Allreduce(given, taken, operator)
        assert (taken == ranks * (ranks + 1) // 2).all()
        if MPI.COMM_WORLD.rank == 0:
            print(f"{size}: rank 0 adds {', '.join(map(str, added))} B")


if __name__ == "__main__":
    main(sys.argv[1:])
