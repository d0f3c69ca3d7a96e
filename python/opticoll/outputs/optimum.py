"""Throughput optimum of a collective on an electrical fabric, as an exact fraction.

>>> from opticoll import Fabric
>>> torus = Fabric("torus:dims=4x4,rate=8Gb/s")
>>> seconds(*optimum("all_gather", torus))
'15/4 s (3.750 s)'
>>> before_and_now("all_gather", Fabric(torus.spec, without="0>1"))
'5 s for a block of 1 GB; 15/4 s (3.750 s) with nothing broken'
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

from opticoll import _core
from opticoll._core import Fabric
from opticoll.outputs import linear_program
from opticoll.outputs.layout import PICOSECONDS, human_seconds

GIGABYTE = 10**9


def optimum(kind: str, fabric: Fabric, root: int = 0) -> tuple[Fraction | None, Fraction | None]:
    """Returns the lower bound and the shortest known time, in seconds for a block of 10^9 bytes.

    For broadcast, reduce and all_reduce, the vector has 10^9 bytes. A time that is not known is
    None. For an all_to_all, the core's two times may differ; then the linear program (extra `lp`)
    may bring them closer together.
    """
    bounds = _core.throughput_optimum(kind, fabric, root)
    if bounds is None:
        return None, None
    # The input of a rank contains a block for each rank.
    blocks = fabric.ranks if kind in ("reduce_scatter", "all_to_all") else 1
    least, most = (None if bound is None else Fraction(*bound) * blocks for bound in bounds)
    if kind == "all_to_all" and least is not None and least != most:
        proved = linear_program.optimum(fabric, kind, root)
        if proved is not None and proved.bound >= least:
            return proved.bound, proved.bound if proved.is_optimum else most
    return least, most


class ProvedTime(NamedTuple):
    """Lower bound on an all_to_all's time in picoseconds, and the multipliers that prove it."""

    time_ps: int
    multipliers: list[int]


LINEAR = "linear_program"
ALL_AT_ONCE = "the links carry all messages at once, whatever ways these take"


def proved_time(kind: str, fabric: Fabric, size_bytes: int) -> ProvedTime | None:
    """Returns a lower bound on the time of any plan, from the linear program.

    Returns None if the extra `lp` is not installed, if the program is too large, or if the core
    knows the optimum.
    """
    if kind != "all_to_all" or not linear_program.is_small(fabric):
        return None
    bounds = _core.throughput_optimum(kind, fabric) or (None, None)
    least, most = (None if bound is None else Fraction(*bound) for bound in bounds)
    if least is None or least == most:
        return None
    proved = linear_program.optimum(fabric, kind, 0)
    if proved is None or proved.bound <= least * fabric.ranks:
        return None
    time = proved.bound * (size_bytes // fabric.ranks) / GIGABYTE
    return ProvedTime(int(time * PICOSECONDS), proved.multipliers)


def seconds(least: Fraction | None, most: Fraction | None) -> str | None:
    """Returns the optimum as text, or a range if `least` and `most` differ.

    Returns None if the optimum is unknown.
    """
    if least is None:
        return None
    if least == most:
        return exact(least)
    return f"at least {exact(least)}" + ("" if most is None else f", at most {exact(most)}")


def exact(time_s: Fraction) -> str:
    """Returns seconds as a fraction, with a decimal number if the fraction is not whole.

    >>> exact(Fraction(35, 8376)), exact(Fraction(5))
    ('35/8376 s (4.179 ms)', '5 s')
    """
    return f"{time_s} s" + ("" if time_s.denominator == 1 else f" ({human_seconds(float(time_s))})")


def unit(kind: str) -> str:
    """Returns the amount of data to which a collective's optimum refers, as text."""
    whole = "vector" if kind in ("all_reduce", "broadcast", "reduce") else "block"
    return f"for a {whole} of 1 GB"


def before_and_now(kind: str, fabric: Fabric, root: int = 0) -> str | None:
    """Returns the optimum of a damaged fabric and the optimum of the intact fabric, as text."""
    now = seconds(*optimum(kind, fabric, root))
    if now is None:
        return None
    before = seconds(*optimum(kind, fabric.intact, root))
    return f"{now} {unit(kind)}; {before} with nothing broken"
