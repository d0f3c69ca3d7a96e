"""Table I: steps of five all_gather algorithms on 1024 ranks with 64 wavelengths."""

from __future__ import annotations

import opticoll
from opticoll import formulas
from opticoll.papers.judging import Computed
from opticoll.papers.kit import Construct, Results, fabric
from opticoll.papers.optree.cases import paper_steps

RANKS, WAVELENGTHS = 1024, 64
ALGORITHMS = ("ring", "neighbour_exchange", "wrht", "one_stage", "optree")
DEPTHS = range(2, 6)


def reproduce(results: Results, constructed: Construct) -> dict[str, Computed]:
    """The table with the columns formula, constructed and verified; writes table1.csv."""
    steps = {name: _formula(name) for name in ALGORITHMS}
    built = {name: constructed(RANKS, WAVELENGTHS, name) for name in ALGORITHMS}
    tree = constructed(RANKS, WAVELENGTHS, "optree:depth=paper")
    narrow = constructed(RANKS, 1, "neighbour_exchange")
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
    radices = "x".join(str(radix) for radix in formulas.optree_best_radices(RANKS, WAVELENGTHS))
    own, wrht = built["optree"].steps, built["wrht"]
    least = min(
        (name for name in ALGORITHMS if name != "optree"), key=lambda name: built[name].steps
    )
    depth = formulas.optree_depth(RANKS)
    assert depth is not None
    return {
        "table1.ring": Computed(built["ring"].steps, f"The ring is {built['ring'].proof}."),
        "table1.neighbour_exchange": Computed(
            built["neighbour_exchange"].steps, f"It is {built['neighbour_exchange'].proof}."
        ),
        "table1.neighbour_exchange.one_wavelength": Computed(
            narrow.steps, f"The two blocks of a step follow one another; {narrow.proof}."
        ),
        "table1.wrht": Computed(steps["wrht"]),
        "table1.wrht.formula": Computed(printed_wrht_formula(RANKS, WAVELENGTHS)),
        "table1.wrht.constructed": Computed(
            wrht.steps,
            f"{' + '.join(map(str, wrht.step_slots))} slots to collect, exchange and hand out "
            f"every block by unicast, {wrht.proof}.",
        ),
        "table1.one_stage": Computed(
            built["one_stage"].steps,
            f"The plan is {built['one_stage'].proof}; the formula gives {steps['one_stage']}.",
        ),
        "table1.optree": Computed(steps["optree"]),
        "table1.optree.depth": Computed(
            depth,
            f"To the nearest it is {formulas.optree_depth(RANKS, 'round')}, with as many steps.",
        ),
        "table1.optree.constructed": Computed(own, f"{radices}, {built['optree'].proof}."),
        "table1.optree.paper_tree": Computed(
            tree.steps, f"{len(tree.step_slots)} stages of at most 3 children, {tree.proof}."
        ),
        "intro.steps.existing": Computed(
            built[least].steps / own,
            f"{least} takes {built[least].steps} slots, OpTree {own}; "
            + ", ".join(f"{name} {plan.steps}" for name, plan in built.items())
            + ".",
        ),
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
        "routing": _routing(constructed),
        "routing.load": Computed(int(_plan("optree").columns()["count"].max())),
    }


def _routing(constructed: Construct) -> Computed:
    plans = [constructed(RANKS, WAVELENGTHS, f"optree:k={depth}") for depth in DEPTHS]
    slots = ", ".join(str(plan.steps) for plan in plans)
    return Computed(sum(not plan.verified for plan in plans), f"{slots} slots.")


def _plan(algorithm: str) -> opticoll.Plan:
    return opticoll.plan("all_gather", fabric(RANKS, WAVELENGTHS), algorithm)


def _blocks(algorithm: str) -> tuple[int, int]:
    """Blocks that each rank sends in the first step, and in the second."""
    columns = _plan(algorithm).columns()
    each = [
        int(columns["count"][(columns["source"] == 0) & (columns["slot"] == slot)].sum())
        for slot in (0, 1)
    ]
    return each[0], each[1]


def printed_wrht_formula(ranks: int, wavelengths: int) -> int:
    """The formula of Table I: ceil((N - p)/(p - 1)) + ceil((t - 1)N/p) + 1, with p = 2w + 1."""
    group = 2 * wavelengths + 1
    levels, reach = 0, 1
    while reach < ranks:
        levels, reach = levels + 1, reach * group
    return -(-(ranks - group) // (group - 1)) + -(-(levels - 1) * ranks // group) + 1


def _formula(name: str) -> int:
    if name == "one_stage":
        return formulas.optree_steps(RANKS, WAVELENGTHS, 1)
    return paper_steps(name, RANKS, WAVELENGTHS)
