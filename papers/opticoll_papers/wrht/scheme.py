"""WRHT's mechanism, read from verified plans: groups, representatives, wavelengths, stages.

>>> from opticoll_papers.wrht.scheme import middle_share, plan
>>> middle_share(plan(16, 2)), plan(16, 2).slots
(1.0, 3)
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache

import opticoll
from opticoll import Plan
from opticoll_papers.common import construct, fabric, step_time_ps
from opticoll_papers.judging import Computed
from opticoll_papers.wrht.cases import SIZES, WAVELENGTHS, wrht_claimed_s

RANKS = 1024
GROUPS = (3, 5, 9, 33, 129)
WIDTHS = (3, 4, 5, 9, 16, 33, 129)
LARGEST = 2 * WAVELENGTHS + 1

Transfer = tuple[int, int, int, int]
"""Source, destination, direction and wavelength."""


@cache
def plan(ranks: int, wavelengths: int, algorithm: str = "wrht", assignment: str = "auto") -> Plan:
    """Returns a plan of all_reduce, which the verifier has checked."""
    result = opticoll.plan(
        "all_reduce", fabric(ranks, wavelengths), algorithm, wavelength=assignment
    )
    assert not result.verify()
    return result


def transfers(plan: Plan, slot: int) -> list[Transfer]:
    """Returns the transfers of a slot."""
    columns = plan.slot_columns(slot)
    names = ("source", "destination", "direction", "wavelength")
    return list(zip(*(columns[name].tolist() for name in names), strict=True))


def wavelengths(plan: Plan, slot: int = 0) -> int:
    """Returns the number of wavelengths that a slot uses."""
    return len({wavelength for *_, wavelength in transfers(plan, slot)})


def groups(plan: Plan) -> dict[int, list[int]]:
    """Returns the members of each group in step 1, by representative."""
    members: dict[int, list[int]] = {}
    for source, destination, *_ in transfers(plan, 0):
        members.setdefault(destination, [destination]).append(source)
    return {representative: sorted(ranks) for representative, ranks in members.items()}


def middle_share(plan: Plan) -> float:
    """Returns the share of groups whose representative is in the middle of the members.

    If the number of members is even, one side has one more member.
    """
    members = groups(plan)
    middle = [
        ranks.index(representative) in {(len(ranks) - 1) // 2, len(ranks) // 2}
        for representative, ranks in members.items()
    ]
    return sum(middle) / len(middle)


def representatives(plan: Plan, ranks: int) -> Iterator[int]:
    """Yields, after each step of the reduce stage, the number of ranks that have a sum."""
    for slot in range(plan.slots // 2):
        ranks -= len(transfers(plan, slot))
        yield ranks


def exchanging(plan: Plan) -> int:
    """Returns the number of representatives in the all-to-all; 0 if there is no all-to-all.

    The all-to-all is the step in which ranks both send and receive.
    """
    for slot in range(plan.slots):
        sources = {transfer[0] for transfer in transfers(plan, slot)}
        if sources == {transfer[1] for transfer in transfers(plan, slot)}:
            return len(sources)
    return 0


def _collecting(plan: Plan) -> Iterator[tuple[int, int, int, int]]:
    """Yields (slot, source, destination, direction) of the transfers before the all-to-all."""
    for slot in range(plan.slots // 2):
        for source, destination, direction, _ in transfers(plan, slot):
            yield slot, source, destination, direction


def shared_links(plan: Plan, ranks: int) -> int:
    """Counts the links that lightpaths of two groups use in one step of the reduce stage."""
    users: dict[tuple[int, int, int], set[int]] = {}
    for slot, source, destination, direction in _collecting(plan):
        hop = 1 if direction == 0 else -1
        at = source
        while at != destination:
            users.setdefault((slot, at, direction), set()).add(destination)
            at = (at + hop) % ranks
    return sum(len(groups) > 1 for groups in users.values())


def mirrored(plan: Plan) -> float:
    """Returns the share of transfers outside the all-to-all that the mirrored step reverses."""
    back = total = 0
    for slot in range(plan.slots // 2):
        sent = {(source, destination) for source, destination, *_ in transfers(plan, slot)}
        again = transfers(plan, plan.slots - 1 - slot)
        back += len(sent & {(destination, source) for source, destination, *_ in again})
        total += len(sent)
    return back / total


def mechanism() -> dict[str, Computed]:
    """Computes the claims on section 2, and on the ring in section 1."""
    small, large = plan(RANKS, 2), plan(RANKS, WAVELENGTHS)
    ring = fabric(16, WAVELENGTHS)
    rate = ring.options["rate"]["value"]
    around = opticoll.plan("all_gather", ring, "ring_bidirectional").columns()
    bound = large.bound
    assert bound is not None
    return {
        "intro.ring_steps": Computed(
            tuple(plan(ranks, WAVELENGTHS, "ring").slots for ranks in (4, 16, 64, 128))
        ),
        "intro.ring_wavelength": Computed(plan(128, WAVELENGTHS, "ring").wavelengths_used),
        "intro.ring_unsuitable": _striped_ring(),
        "intro.wdm": _one_wavelength(),
        "intro.objective": Computed((large.slots, bound[0])),
        "scheme.ring": Computed(len(set(around["direction"].tolist()))),
        "scheme.parameters": Computed((WAVELENGTHS, rate)),
        "scheme.groups": Computed(tuple(representatives(small, RANKS))),
        "scheme.middle": Computed(middle_share(small)),
        "scheme.group_wavelengths": Computed(
            tuple(
                wavelengths(plan(RANKS, WAVELENGTHS, f"wrht:group_size={group}"))
                for group in WIDTHS
            )
        ),
        "scheme.reduction": Computed(len(small.verify()) + len(large.verify())),
        "scheme.broadcast_wavelengths": Computed(
            tuple(
                wavelengths(grouped_plan, grouped_plan.slots - 1)
                for group in WIDTHS
                for grouped_plan in [plan(RANKS, WAVELENGTHS, f"wrht:group_size={group}")]
            )
        ),
        "scheme.reuse": Computed(
            sum(
                shared_links(plan(ranks, WAVELENGTHS, f"wrht:group_size={group}"), ranks)
                for ranks in (RANKS, 4 * RANKS)
                for group in (3, 5, LARGEST)
            )
        ),
        "scheme.alone": Computed(exchanging(plan(27, 1))),
        "scheme.assignment": Computed(
            tuple(
                wavelengths(plan(RANKS, WAVELENGTHS, "wrht", rule))
                for rule in ("first_fit", "best_fit")
            )
        ),
        "scheme.group_size": Computed(LARGEST),
        "scheme.repeated": _repeated(),
        "scheme.last": Computed(
            tuple(exchanging(plan(ranks, WAVELENGTHS)) for ranks in (512, 1024, 2048))
        ),
        **{
            f"scheme.all_to_all.{name}": Computed(
                tuple(_all_to_all(ranks) for ranks in range(first, 17, 2)),
                "A plan of WRHT for so many ranks is this one step.",
            )
            for name, first in (("even", 2), ("odd", 3))
        },
        "scheme.all_to_all.enough": Computed(
            sum(8 * _all_to_all(ranks) > ranks**2 + 7 for ranks in range(3, 17, 2))
        ),
        "scheme.mirror": Computed(mirrored(small)),
        "steps.groups": Computed(
            tuple(plan(RANKS, WAVELENGTHS, f"wrht:group_size={group}").slots for group in GROUPS),
            "Plans constructed and verified.",
        ),
    }


def _repeated() -> Computed:
    """Computes whether grouping stops as soon as the wavelengths allow an all-to-all."""
    most = math.isqrt(8 * WAVELENGTHS)
    wrong, exchanged = 0, []
    for ranks in (2**power for power in range(4, 13)):
        for group in (3, LARGEST):
            grouped_plan = plan(ranks, WAVELENGTHS, f"wrht:group_size={group}")
            last = exchanging(grouped_plan) or 1
            grouped = [ranks, *representatives(grouped_plan, ranks)]
            before = [count for count in grouped if count > last]
            wrong += last > most or any(count <= most for count in before)
            exchanged.append(last)
    return Computed(
        wrong,
        f"{most} representatives need {-(-(most**2) // 8)} of {WAVELENGTHS} wavelengths. From "
        f"{min(exchanged)} to {max(exchanged)} exchange, where 1 is one that is left alone.",
    )


def _all_to_all(ranks: int) -> int:
    reduce_plan = plan(ranks, WAVELENGTHS)
    assert reduce_plan.slots == 1
    return wavelengths(reduce_plan)


def _one_wavelength() -> Computed:
    """Computes the smallest ratio of WRHT's time with one wavelength to its time with all."""
    times = {
        wavelengths: [
            built.times_ps[size]
            for power in range(4, 13)
            for built in [construct("all_reduce", 2**power, wavelengths, "wrht", sizes=SIZES)]
            for size in SIZES
        ]
        for wavelengths in (1, WAVELENGTHS)
    }
    ratios = [narrow / wide for narrow, wide in zip(times[1], times[WAVELENGTHS], strict=True)]
    return Computed(min(ratios), f"At most {max(ratios):.3g}.")


def _striped_ring() -> Computed:
    """Compares the ring on one wavelength with the ring on all wavelengths, for 128 ranks.

    The note compares the ring on all wavelengths with WRHT.
    """
    wrht, ring, striped = (
        construct("all_reduce", 128, WAVELENGTHS, name, sizes=SIZES)
        for name in ("wrht", "ring", f"ring:stripes={WAVELENGTHS}")
    )
    slower = [ring.times_ps[size] / striped.times_ps[size] for size in SIZES]
    beside = [striped.times_ps[size] / wrht.times_ps[size] for size in SIZES]
    verified = wrht.verified and ring.verified and striped.verified
    return Computed(
        min(slower),
        f"AlexNet, VGG16, ResNet50, GoogLeNet: {_listed(slower)}; "
        f"{'verified' if verified else 'NOT verified'}. Not in the poster: on all wavelengths the "
        f"ring takes {_listed(beside)} of WRHT's time with groups of 2w + 1, and by formulas "
        f"{_listed(_beside(1024))} on 1024 ranks and {_listed(_beside(4096))} on 4096.",
    )


def _beside(ranks: int) -> list[float]:
    """Returns the ratios of the striped ring's times to WRHT's times, by formulas."""
    stripes = {size: -(-size // ranks // WAVELENGTHS) for size in SIZES}
    return [
        2 * (ranks - 1) * step_time_ps(stripes[size]) / 1e12 / wrht_claimed_s(ranks, size)
        for size in SIZES
    ]


def _listed(numbers: list[float]) -> str:
    return ", ".join(f"{number:.2f}" for number in numbers)
