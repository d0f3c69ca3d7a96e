"""Table I: steps of five all_gather algorithms on 1024 ranks with 64 wavelengths."""

from __future__ import annotations

import numpy as np

import opticoll
from opticoll_papers.common import (
    Construct,
    Constructed,
    Results,
    construct,
    fabric,
    step_time_ps,
)
from opticoll_papers.judging import Computed
from opticoll_papers.optree import formulas, trees
from opticoll_papers.optree.cases import BLOCK, SIZES, paper_steps

RANKS, WAVELENGTHS = 1024, 64
ALGORITHMS = ("ring", "neighbour_exchange", "wrht", "one_stage", "optree")


def reproduce(results: Results, constructed: Construct) -> dict[str, Computed]:
    """Computes Table I, with the columns formula, constructed and verified; writes table1.csv."""
    steps = {name: _formula(name) for name in ALGORITHMS}
    built = {name: constructed(RANKS, WAVELENGTHS, name) for name in ALGORITHMS}
    rows = [
        {
            "algorithm": name,
            "ranks": RANKS,
            "wavelengths": WAVELENGTHS,
            "formula": steps[name],
            "constructed": plan.steps,
            "verified": plan.verified,
        }
        for name, plan in built.items()
    ]
    results.write("table1", rows)
    columns = ["algorithm", "formula", "constructed", "verified"]
    results.show(
        f"Table I: steps of all_gather, N = {RANKS}, w = {WAVELENGTHS} (table1.csv)",
        columns,
        [[row[column] for column in columns] for row in rows],
        left=(0, 3),
    )
    own, narrow = built["optree"].steps, constructed(RANKS, 1, "neighbour_exchange")
    least = min(("ring", "neighbour_exchange", "one_stage"), key=lambda name: built[name].steps)
    depth = formulas.optree_depth(RANKS)
    assert depth is not None
    return {
        "table1.ring": Computed(built["ring"].steps, f"The ring is {built['ring'].proof}."),
        "table1.neighbour_exchange": Computed(
            built["neighbour_exchange"].steps,
            f"It is {built['neighbour_exchange'].proof}. On one wavelength, like Ring, the two "
            f"blocks of a step follow one another, and it takes {narrow.steps} slots.",
        ),
        "table1.wrht.constructed": Computed(
            built["wrht"].steps,
            f"{' + '.join(map(str, built['wrht'].step_slots))} slots to collect, exchange and hand "
            f"out, {built['wrht'].proof}.",
        ),
        "table1.one_stage": Computed(
            built["one_stage"].steps,
            f"The plan is {built['one_stage'].proof}; the formula gives {steps['one_stage']}.",
        ),
        "table1.optree": Computed(steps["optree"]),
        "table1.optree.depth": Computed(
            depth,
            f"Rounded to the nearest it is {formulas.optree_depth(RANKS, 'round')}, with as many "
            "steps.",
        ),
        "table1.optree.constructed": _trees(constructed, own),
        "intro.steps.existing": Computed(
            built[least].steps / own,
            f"Slots of verified plans: {least} {built[least].steps}, OpTree {own}. By the formulas "
            f"of the paper WRHT is the nearest: {steps['wrht']} steps, "
            f"{steps['wrht'] / steps['optree']:.2f} times OpTree's {steps['optree']}.",
        ),
        **_traditional(built["optree"]),
        "baseline.ring": Computed(
            (constructed(16, 2, "ring").steps, built["ring"].steps, _blocks("ring")[1])
        ),
        "baseline.neighbour_exchange": Computed(
            (
                len(constructed(16, 2, "neighbour_exchange").step_slots),
                len(built["neighbour_exchange"].step_slots),
                *_blocks("neighbour_exchange"),
            )
        ),
    }


def _trees(constructed: Construct, fewest: int) -> Computed:
    """Computes the fewest slots of a tree, among evenly divided trees and among others."""
    even = {
        depth: count
        for depth in range(1, 11)
        if (count := trees.least_slots(RANKS, WAVELENGTHS, depth)) is not None
    }
    least = min(even.values())
    depth = formulas.optree_depth(RANKS)
    assert depth is not None
    small = constructed(RANKS, WAVELENGTHS, "optree:depth=paper")
    assert small.verified
    return Computed(
        min(least, fewest),
        f"{fewest} slots by {trees.spelled(_radices())}, which is verified and the best of all "
        f"trees whose groups differ by one rank at most; {least} is the least with equal groups. "
        f"With {depth} stages: {even[depth]} slots by "
        f"{trees.spelled(trees.best_tree(RANKS, WAVELENGTHS, depth))}, {small.steps} with at most "
        "3 children everywhere.",
    )


def _radices() -> list[int]:
    """Returns the radices of the tree that `optree` chooses.

    At each stage, a rank exchanges data with all siblings of its group. The first rank is in the
    largest group.
    """
    plan = opticoll.plan("all_gather", fabric(RANKS, WAVELENGTHS), "optree")
    columns = plan.columns()
    steps = np.repeat(np.arange(len(plan.step_slots)), plan.step_slots)[columns["slot"]]
    first = columns["source"] == 0
    return [
        1 + len(np.unique(columns["destination"][first & (steps == step)]))
        for step in range(len(plan.step_slots))
    ]


def _traditional(tree: Constructed) -> dict[str, Computed]:
    """Compares rings whose blocks are divided among all wavelengths with OpTree."""
    names = (f"ring:stripes={WAVELENGTHS}", f"ring_bidirectional:stripes={WAVELENGTHS}")
    striped = {
        name: construct("all_gather", RANKS, WAVELENGTHS, name, sizes=(SIZES[0], BLOCK))
        for name in names
    }
    assert all(plan.verified for plan in striped.values())
    own = {size: tree.steps * step_time_ps(size) for size in (SIZES[0], BLOCK)}
    times_text = "; ".join(
        f"{opticoll.format_size(size)} blocks: "
        + ", ".join(f"{name} {plan.times_ps[size] / 1e9:.4g} ms" for name, plan in striped.items())
        + f", OpTree {own[size] / 1e9:.4g} ms"
        for size in own
    )
    return {
        id: Computed(
            min(plan.times_ps[size] for plan in striped.values()) / own[size],
            f"{times_text}; verified.",
        )
        for id, size in (("intro.traditional", BLOCK), ("intro.traditional.small", SIZES[0]))
    }


def _blocks(algorithm: str) -> tuple[int, int]:
    """Returns the numbers of blocks that each rank sends in the first and in the second step."""
    columns = opticoll.plan("all_gather", fabric(64, WAVELENGTHS), algorithm).columns()
    each = [
        int(columns["count"][(columns["source"] == 0) & (columns["slot"] == slot)].sum())
        for slot in (0, 1)
    ]
    return each[0], each[1]


def _formula(name: str) -> int:
    if name == "one_stage":
        return formulas.optree_steps(RANKS, WAVELENGTHS, 1)
    return paper_steps(name, RANKS, WAVELENGTHS)
