"""The least time of the bytes of a broadcast on a line of fibres in a few slots, by HiGHS of SciPy.

    python -m venv /tmp/solver && /tmp/solver/bin/pip install scipy
    /tmp/solver/bin/python validation/broadcast_lp.py 16 8 0 2

The arguments are ranks, channels of a link in each direction, root, and slots. The program spreads
bytes over trees of lightpaths in any fractions: for each rank, one unit of flow goes from the root
to the rank over slots; the flows of all ranks share lightpaths; the lightpaths of slot s load each
link by at most the channels times the time of the slot. The output is the sum of these times for a
vector that one channel carries in the time 1. No plan with so few slots takes less.
"""

import sys

from scipy.optimize import linprog
from scipy.sparse import coo_matrix


class Rows:
    """Sparse rows of a linear program."""

    def __init__(self):
        self.entries = []
        self.right = []

    def add(self, entries, right=0.0):
        self.entries += [(len(self.right), column, value) for column, value in entries]
        self.right.append(right)

    def matrix(self, columns):
        rows, places, values = zip(*self.entries, strict=True)
        return coo_matrix((values, (rows, places)), shape=(len(self.right), columns)).tocsr()


def least_time(ranks, channels, root, slots):
    """Returns the least time of all slots together."""
    # A move keeps the bytes at a rank, or is a lightpath. In slot 1 only the root has bytes.
    every = [(a, b, s) for s in range(slots) for a in range(ranks) for b in range(ranks)]
    moves = [(a, b, s) for a, b, s in every if s > 0 or a in (root, b)]
    lightpaths = [(a, b, s) for a, b, s in moves if a != b]
    others = [rank for rank in range(ranks) if rank != root]
    shared = {move: len(others) * len(moves) + k for k, move in enumerate(lightpaths)}
    times = len(others) * len(moves) + len(lightpaths)
    columns = times + slots
    equal, below = Rows(), Rows()
    for number, rank in enumerate(others):
        at = {(v, s): [] for v in range(ranks) for s in range(slots + 1)}
        for k, (a, b, s) in enumerate(moves):
            column = number * len(moves) + k
            at[a, s].append((column, 1.0))
            at[b, s + 1].append((column, -1.0))
            if a != b:
                below.add([(column, 1.0), (shared[a, b, s], -1.0)])
        for place, entries in at.items():
            equal.add(entries, {(root, 0): 1.0, (rank, slots): -1.0}.get(place, 0.0))
    for s in range(slots):
        for link in range(ranks - 1):
            up = [(a, b, t) for a, b, t in lightpaths if t == s and a <= link < b]
            down = [(a, b, t) for a, b, t in lightpaths if t == s and b <= link < a]
            for crossing in (up, down):
                load = [(shared[move], 1.0) for move in crossing]
                below.add([*load, (times + s, -channels)])
    cost = [0.0] * times + [1.0] * slots
    solved = linprog(
        cost,
        A_ub=below.matrix(columns),
        b_ub=below.right,
        A_eq=equal.matrix(columns),
        b_eq=equal.right,
        method="highs",
    )
    return solved.fun


if __name__ == "__main__":
    print(f"{least_time(*map(int, sys.argv[1:])):.8f}")
