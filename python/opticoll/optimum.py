"""The throughput optimum of a collective on a fabric of links, as an exact fraction.

>>> from opticoll import Fabric
>>> torus = Fabric("torus:dims=4x4,rate=8Gb/s")
>>> seconds(*optimum("all_gather", torus))
'15/4 s'
>>> before_and_now("all_gather", Fabric(torus.spec, without="0>1"))
'5 s for a block of 1 GB; 15/4 s with nothing broken'
"""

from __future__ import annotations

from fractions import Fraction

from opticoll import _core, linear_program
from opticoll._core import Fabric


def optimum(kind: str, fabric: Fabric, root: int = 0) -> tuple[Fraction | None, Fraction | None]:
    """Seconds that a block of 10^9 bytes takes at least, and with the best plan at most.

    Of broadcast, reduce and all_reduce a vector in place of a block. None where no number is known.
    Of an all_to_all the linear program says what the core leaves open (extra `lp`).
    """
    known = _core.throughput_optimum(kind, fabric, root)
    if known is None:
        return None, None
    # A rank's whole input holds a block for each rank.
    blocks = fabric.ranks if kind in ("reduce_scatter", "all_to_all") else 1
    least, most = (None if one is None else Fraction(*one) * blocks for one in known)
    if kind == "all_to_all" and least is not None and least != most:
        proved = linear_program.optimum(fabric, kind, root)
        if proved is not None and proved.bound >= least:
            return proved.bound, proved.bound if proved.is_optimum else most
    return least, most


def seconds(least: Fraction | None, most: Fraction | None) -> str | None:
    """The optimum in words; None where nothing is known of it."""
    if least is None:
        return None
    if least == most:
        return f"{least} s"
    return f"at least {least} s" + ("" if most is None else f", at most {most} s")


def unit(kind: str) -> str:
    """What the optimum of a collective is for."""
    whole = "vector" if kind in ("all_reduce", "broadcast", "reduce") else "block"
    return f"for a {whole} of 1 GB"


def before_and_now(kind: str, fabric: Fabric, root: int = 0) -> str | None:
    """The optimum of a fabric of which something is broken, and that with nothing broken."""
    now = seconds(*optimum(kind, fabric, root))
    if now is None:
        return None
    before = seconds(*optimum(kind, fabric.intact, root))
    return f"{now} {unit(kind)}; {before} with nothing broken"
