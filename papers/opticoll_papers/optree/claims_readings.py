"""Readings and reasons that several items of the OpTree paper share."""

from __future__ import annotations

THETA = "theta, which the paper does not define, is log_p N rounded up"

GROUP = f"p, which the paper does not define, is 2w + 1 as in the group's WRHT; {THETA}"

PHASES = (
    f"{GROUP}; the steps are the sum of the text's two phases, the second by (theta - 1) "
    "p^(theta - 1)"
)
"""Under which the text gives the 259 of Table I."""

WRHT = "WRHT takes the steps that give 259 in table1.wrht, with p = 2w + 1"

NE = "a step of NE, which carries two blocks, takes as long as a step of one block"

BRACKET = "the bracket of Eq. 2 rounds up, so that OpTree takes 156 steps at 2048 nodes"

EVEN = (
    "trees have equal groups, the only ones whose partners the paper defines; radices may differ "
    "from stage to stage; stages do not overlap"
)

COUNT = "a formula of the number of steps gives none too many and none too few"
BEST = "no other depth may have fewer steps"
ROUNDED_UP = (
    "the bracket of Eq. 2 rounds up, as it is printed; the text below says integer rounding"
)
VISIBLE = "one per cent: less is no difference"
MUCH = "much fewer is at most half as many"
