"""Section III.D.1: the sources and destinations of blocks, read from verified plans."""

from __future__ import annotations

from collections import Counter

import numpy as np

import opticoll
from opticoll import Plan
from opticoll_papers.common import fabric
from opticoll_papers.judging import Computed
from opticoll_papers.optree.cases import CLOSE_UP, RANKS_FOUR

EQUAL = (64, 8, "4x4x4")
PLANS = ((64, 8, "8x8"), EQUAL, (256, 64, "4x4x4x4"), (1024, 64, "4x4x4x4x4"))


def reproduce() -> dict[str, Computed]:
    """Computes the groups and loads of trees with equal groups, from plans."""
    plans = {case: _plan(*case) for case in PLANS}
    children, blocks = _stages(plans[EQUAL])
    whole = [
        f"k = {depth} at {ranks} nodes"
        for ranks in RANKS_FOUR
        for depth in CLOSE_UP
        if round(ranks ** (1 / depth)) ** depth == ranks
    ]
    largest = plans[PLANS[-1]]
    return {
        "intro.circuits": Computed(
            len(largest.verify()), f"{len(largest)} lightpaths in {largest.slots} slots."
        ),
        "routing": Computed(
            sum(len(plan.verify()) for plan in plans.values()),
            "; ".join(
                f"{ranks} nodes, {radices}: {plan.slots} slots"
                for (ranks, _, radices), plan in plans.items()
            )
            + ".",
        ),
        "routing.children": Computed(children),
        "routing.whole": Computed(
            len(whole), f"They are {', '.join(whole)}, of 5 depths at 4 numbers of nodes."
        ),
        "routing.data": Computed(blocks),
        "routing.load": Computed(int(largest.columns()["count"].max())),
    }


def _plan(ranks: int, wavelengths: int, radices: str) -> Plan:
    return opticoll.plan("all_gather", fabric(ranks, wavelengths), f"optree:radices={radices}")


def _stages(plan: Plan) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Returns the nodes of a child group, and the blocks for each partner, stage by stage.

    Partners have the same position in adjacent groups, so the nearest partner is one group away.
    """
    columns = plan.columns()
    ends = np.cumsum(plan.step_slots)
    stages = np.searchsorted(ends, columns["slot"], side="right")
    groups, blocks = [], []
    for stage in range(len(ends)):
        chosen = (stages == stage) & (columns["source"] == 0)
        sent: Counter[int] = Counter()
        for partner, count in zip(
            columns["destination"][chosen].tolist(), columns["count"][chosen].tolist(), strict=True
        ):
            sent[partner] += count
        groups.append(min(sent))
        blocks.append(max(sent.values()))
    return tuple(groups), tuple(blocks)
