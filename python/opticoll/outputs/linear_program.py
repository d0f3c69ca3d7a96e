"""Linear program of a maximum concurrent flow, solved by HiGHS (extra `lp`).

All sources send their blocks to all destinations at the same time; the shortest possible time is
the optimum. The result of HiGHS, a multiplier for each link, is not trusted. This module rounds the
multipliers to whole numbers. From these numbers, the core computes an exact lower bound on the time
of any plan.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from functools import cache
from math import lcm
from typing import Any, NamedTuple

from opticoll import _core

MAX_VARIABLES = 20_000
"""Maximum number of variables; solving takes 1 s for 20,000, 7 s for 25,600, 90 s for 60,000."""

MAX_RELATIVE_DIFFERENCE = 1e-9
"""Relative difference up to which a time of HiGHS and an exact time count as equal."""

DENOMINATORS = (1, 12, 60, 840, 27720, 10**6)
"""Maximum denominators of fractions that approximate multipliers, tried in this order."""


class Proved(NamedTuple):
    """Greatest proved lower bound, in seconds for a block of 10^9 bytes, and the bound's proof."""

    bound: Fraction
    multipliers: list[int]
    """Multiplier of each link, as a whole multiple of a common unit."""
    is_optimum: bool
    """True if some routes reach the bound, up to the rounding of HiGHS."""


def is_small(fabric: _core.Fabric) -> bool:
    """Returns whether the linear program of an all_to_all has few enough variables.

    The number of variables is about the number of ranks times the number of arcs.
    """
    return fabric.electrical and fabric.ranks * fabric.link_count <= MAX_VARIABLES


def optimum(fabric: _core.Fabric, kind: str, root: int) -> Proved | None:
    """Returns the proved bound; None if HiGHS is not installed or the program is too large."""
    return _solved(fabric.spec, kind, root)


@cache
def _solved(spec: str, kind: str, root: int) -> Proved | None:
    fabric = _core.Fabric(spec)
    program = Program(fabric, kind, root)
    if program.variables > MAX_VARIABLES:
        return None
    with _redirected_to_standard_error():
        try:
            import highspy
        except ImportError:
            return None
        solved = program.solve(highspy)
    if solved is None:
        return None
    time, multipliers = solved
    best_bound: tuple[Fraction, list[int]] | None = None
    for lengths in whole(multipliers):
        ratio = _core.concurrent_flow_bound(kind, fabric, lengths, root)
        # The input of a rank contains a block for each rank.
        blocks = fabric.ranks if kind == "all_to_all" else 1
        if ratio is not None and (best_bound is None or Fraction(*ratio) * blocks > best_bound[0]):
            best_bound = Fraction(*ratio) * blocks, lengths
    if best_bound is None:
        return None
    return Proved(*best_bound, float(best_bound[0]) >= time * (1 - MAX_RELATIVE_DIFFERENCE))


@contextmanager
def _redirected_to_standard_error() -> Iterator[None]:
    """Redirects a C library's output to standard error, because standard output has the results."""
    try:
        saved = os.dup(1)
        os.dup2(2, 1)
    except OSError:  # standard output or standard error is closed
        yield
        return
    try:
        yield
    finally:
        ctypes.CDLL(None).fflush(None)
        os.dup2(saved, 1)
        os.close(saved)


def whole(multipliers: list[float]) -> Iterator[list[int]]:
    """Yields lists of whole numbers whose ratios approximate the multipliers, coarsest first."""
    most = max(multipliers)
    if most <= 0:
        return
    for denominator in DENOMINATORS:
        parts = [Fraction(max(multiplier, 0.0) / most) for multiplier in multipliers]
        rounded = [part.limit_denominator(denominator) for part in parts]
        unit = lcm(*(fraction.denominator for fraction in rounded))
        if unit <= 2**40 and any(rounded):
            yield [int(fraction * unit) for fraction in rounded]


class Program:
    """Linear program: its variables are each source's flow over each arc, and the time.

    A half-duplex link is represented by two arcs that share its rate.
    """

    def __init__(self, fabric: _core.Fabric, kind: str, root: int) -> None:
        self.demands = demands(kind, fabric.ranks, root)
        self.rates = [rate / 8e9 for rate in fabric.link_rates]
        both_ways = ["<->" in name for name in fabric.link_names]
        self.arcs: list[tuple[int, int, int]] = []
        for link, (start, end) in enumerate(fabric.link_ends or []):
            self.arcs.append((start, end, link))
            if both_ways[link]:
                self.arcs.append((end, start, link))
        self.vertices = 1 + max(max(start, end) for start, end, _ in self.arcs)
        self.variables = len(self.demands) * len(self.arcs)

    def solve(self, highspy: Any) -> tuple[float, list[float]] | None:
        """Returns the time in seconds for a block of 10^9 bytes, and one multiplier per link."""
        model = highspy.Highs()
        model.setOptionValue("output_flag", False)
        model.setOptionValue("threads", 1)
        infinity = highspy.kHighsInf
        # First the rows of flow conservation. For a source and a vertex, the row is the amount of
        # the source's data that stays at the vertex. Then a row per link: the link's load minus
        # rate times time.
        for source, wanted in self.demands.items():
            for vertex in range(self.vertices):
                if vertex != source:
                    amount = float(vertex in wanted)
                    model.addRow(amount, amount, 0, [], [])
        first_link = len(self.demands) * (self.vertices - 1)
        for _ in self.rates:
            model.addRow(-infinity, 0.0, 0, [], [])
        for place, source in enumerate(self.demands):
            # No row describes a source's own flow at the source.
            first = place * (self.vertices - 1)
            for start, end, link in self.arcs:
                rows, values = [first_link + link], [1.0]
                for vertex, value in ((end, 1.0), (start, -1.0)):
                    if vertex != source:
                        rows.append(first + vertex - (vertex > source))
                        values.append(value)
                model.addCol(0.0, 0.0, infinity, len(rows), rows, values)
        rows = [first_link + link for link in range(len(self.rates))]
        model.addCol(1.0, 0.0, infinity, len(rows), rows, [-rate for rate in self.rates])
        model.run()
        if model.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            return None
        duals = model.getSolution().row_dual[first_link:]
        return model.getInfo().objective_function_value, [abs(dual) for dual in duals]


def demands(kind: str, ranks: int, root: int) -> dict[int, set[int]]:
    """Returns, for each source, the set of ranks to which it sends blocks."""
    everyone = set(range(ranks))
    if kind == "all_to_all":
        return {source: everyone - {source} for source in everyone}
    if kind == "scatter":
        return {root: everyone - {root}}
    return {source: {root} for source in sorted(everyone - {root})}
