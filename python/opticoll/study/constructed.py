"""Plans built for a study, reduced to what the study needs of them.

>>> from opticoll.study.constructed import construct
>>> result = construct("all_gather", 16, 2, "optree:radices=4x4", sizes=(4096,))
>>> result.steps, result.verified, result.times_ps[4096]
(12, True, 309830400)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from opticoll import _core
from opticoll._core import Fabric

__all__ = ["POLICY", "Construct", "Constructed", "construct", "fabric", "step_time_ps"]

POLICY = "every_step"
"""Both papers charge the reconfiguration at every step."""


@dataclass(frozen=True)
class Constructed:
    """A plan that was built, verified and simulated.

    `steps` are the time slots really needed, `claimed_steps` the paper's formula; `times_ps` are
    those of the circuit simulator in picoseconds, by size in bytes.
    """

    steps: int
    claimed_steps: int | None
    step_slots: tuple[int, ...]
    wavelengths_used: int
    verified: bool
    times_ps: dict[int, int]

    @property
    def proof(self) -> str:
        """How far the plan is to be trusted, for a note."""
        return (
            "constructed and verified" if self.verified else "constructed, but fails verification"
        )


Construct = Callable[[int, int, str], Constructed]
"""A plan of a study's collective and sizes: from ranks, wavelengths and algorithm."""


def fabric(ranks: int, wavelengths: int) -> Fabric:
    """The papers' ring: one fibre per direction, 40 Gb/s per wavelength, 25 us reconfiguration."""
    return Fabric(f"optree_paper:ranks={ranks},wavelengths={wavelengths}")


def construct(
    collective: str,
    ranks: int,
    wavelengths: int,
    algorithm: str,
    *,
    sizes: tuple[int, ...] = (),
) -> Constructed:
    """Build, verify and simulate one plan; sizes in bytes, by the collective's convention.

    Raises OpticollError where the algorithm does not run there.
    """
    plan = _core.plan(collective, fabric(ranks, wavelengths), algorithm)
    return Constructed(
        steps=plan.slots,
        claimed_steps=plan.claimed_steps,
        step_slots=tuple(plan.step_slots),
        wavelengths_used=plan.wavelengths_used,
        verified=not plan.verify(),
        times_ps={size: plan.simulate(size, policy=POLICY).time_ps for size in sizes},
    )


@lru_cache
def step_time_ps(size_bytes: int) -> int:
    """The time of one step that carries `size_bytes` on one wavelength, d/B + a, in picoseconds.

    It is the simulated time of the smallest plan that has one step: two ranks exchange a block.
    """
    plan = _core.plan("all_gather", fabric(2, 1), "ring")
    assert plan.slots == 1
    return plan.simulate(size_bytes, policy=POLICY).time_ps
