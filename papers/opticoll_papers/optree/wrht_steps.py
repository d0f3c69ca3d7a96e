"""The paper's formulas for the steps of WRHT as an all_gather.

The paper defines neither p nor theta. Here theta is log_p N, with or without rounding up, and p is
2w + 1 or any number.

>>> collecting(129, 2), handing_out(129, 2), totals(1024, 129, 2), table_row(1024, 129, 2)
(130, (129, 258), (137, 266), 16)
"""

from __future__ import annotations

import math
from fractions import Fraction

from opticoll_papers.common import Results
from opticoll_papers.judging import Computed

RANKS, WAVELENGTHS = 1024, 64
GROUP = 2 * WAVELENGTHS + 1


def levels(ranks: int, group: int) -> int:
    """Returns the paper's theta, read as ceil(log_p N)."""
    count, reach = 0, 1
    while reach < ranks:
        count, reach = count + 1, reach * group
    return count


def collecting(group: int, theta: int) -> int:
    """Returns the text's number of collecting steps: 1 + ceil(p (p^(theta - 1) - 1)/(p - 1))."""
    reach: int = group ** (theta - 1)
    return 1 + -(-group * (reach - 1) // (group - 1))


def handing_out(group: int, theta: int) -> tuple[int, int]:
    """Returns the text's steps to distribute: (theta - 1) or theta times p^(theta - 1)."""
    reach: int = group ** (theta - 1)
    return (theta - 1) * reach, theta * reach


def totals(ranks: int, group: int, theta: int) -> tuple[int, int]:
    """Returns the text's two totals: 1 + ceil((N - p)/(p - 1)) plus the distributing steps."""
    first = 1 + -(-(ranks - group) // (group - 1))
    without_theta, with_theta = handing_out(group, theta)
    return first + without_theta, first + with_theta


def table_row(ranks: int, group: int, theta: int) -> int:
    """Returns the steps in Table I: ceil((N - p)/(p - 1)) + ceil((theta - 1) N/p) + 1."""
    return -(-(ranks - group) // (group - 1)) + -(-(theta - 1) * ranks // group) + 1


def _adds_up(ranks: int, group: int) -> bool:
    """Returns whether the total equals the sum of both phases, if theta = log_p N.

    Then p^(theta - 1) = N/p, and the total has the same number of distributing steps as the sum.
    """
    collected = -(-group * (Fraction(ranks, group) - 1) // (group - 1))
    return collected == -(-(ranks - group) // (group - 1))


def _unrounded_row(ranks: int, group: int) -> int:
    """Returns the steps in Table I with theta = log_p N, not rounded."""
    handed = round((math.log(ranks, group) - 1) * ranks / group, 9)
    return -(-(ranks - group) // (group - 1)) + math.ceil(handed) + 1


def reproduce(results: Results) -> dict[str, Computed]:
    """Compares the formulas with each other, and with the printed number in Table I."""
    theta = levels(RANKS, GROUP)
    collected, handed = collecting(GROUP, theta), handing_out(GROUP, theta)
    total = totals(RANKS, GROUP, theta)
    cases = [(group, levels(RANKS, group)) for group in range(2, RANKS + 1)]
    agree = [
        group
        for group, depth in cases
        if totals(RANKS, group, depth)[0] == collecting(group, depth) + handing_out(group, depth)[0]
    ]
    printed = results.printed("table1.wrht")
    differing = [
        group
        for group, depth in cases
        if printed in (table_row(RANKS, group, depth), _unrounded_row(RANKS, group))
    ]
    unrounded = [group for group, _ in cases if _adds_up(RANKS, group)]
    by_total = [
        f"p = {group} ({('first', 'second')[branch]} total)"
        for group, depth in cases
        for branch in (0, 1)
        if totals(RANKS, group, depth)[branch] == printed
    ]
    return {
        "baseline.wrht.total": Computed(
            len(cases) - len(agree),
            f"At p = {GROUP} the phases add up to {collected + handed[0]} or "
            f"{collected + handed[1]} steps, the totals are {total[0]} and {total[1]}. They agree "
            f"at p = {', '.join(map(str, agree))} only, where p^theta = N. With theta = log_p N, "
            "not rounded, p^(theta - 1) is N/p, and the totals are, but for a ceiling, the sums at "
            f"{len(unrounded)} of the {len(cases)} p; the first total is then Table I's formula.",
        ),
        "baseline.wrht.total.unrounded": Computed(len(cases) - len(unrounded)),
        "table1.wrht": Computed(
            collected + handed[0],
            f"{collected} steps to collect and {handed[0]} to hand out; with the other branch, "
            f"theta p^(theta - 1), it is {collected + handed[1]}.",
        ),
        "table1.wrht.total.first": Computed(total[0]),
        "table1.wrht.total.second": Computed(total[1]),
        "table1.wrht.formula": Computed(
            len(differing),
            f"p = {GROUP} gives {table_row(RANKS, GROUP, theta)} with theta rounded up, "
            f"{_unrounded_row(RANKS, GROUP)} without. The totals of the text give the "
            f"printed number at {', '.join(by_total) or 'no p'}.",
        ),
    }
