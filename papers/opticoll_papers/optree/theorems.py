"""Lemmas 1 and 2, Theorems 1 to 3, Eq. 2 and Eq. 3."""

from __future__ import annotations

import math

import opticoll
from opticoll import Fabric
from opticoll.errors import OpticollError
from opticoll_papers.common import Construct, Results, construct, fabric, step_time_ps
from opticoll_papers.judging import Computed
from opticoll_papers.optree import formulas, trees
from opticoll_papers.optree.cases import (
    CLOSE_UP,
    DEPTHS,
    RANKS_FOUR,
    best_depths,
    continuous_steps,
)
from opticoll_papers.optree.overlap import overlapping

WAVELENGTHS = 64
RANKS = (16, 64, 256, *RANKS_FOUR)
EVEN, ODD = (4, 6, 8, 10, 12, 14, 16), (3, 5, 7, 9)
LINES = (3, 4, 5, 8, 9, 16)
LEAVES = ((2, 3), (3, 2), (3, 3), (4, 2))

# Ranks, wavelengths and radices with N = m^k; 4 divides m, and w divides a stage's wavelengths.
EQUAL = (
    (16, 2, "4x4"),
    (64, 8, "4x4x4"),
    (64, 8, "8x8"),
    (256, 64, "4x4x4x4"),
    (256, 64, "16x16"),
    (1024, 64, "4x4x4x4x4"),
)
# A case with N = m^k in which w does not divide the wavelengths of the stages.
UNEVEN = (16, 3, "4x4")
ANY = (64, 8, range(2, 7))
IDENTITY = (16, 1, 3)  # ranks, wavelengths and stages at which the proof's floor is not 0
SIZES = (1, 4096, 4 * 1024**2)


def lemmas(results: Results) -> dict[str, Computed]:
    """Computes wavelengths of one stage, leaves of trees, and conversions; writes lemma1.csv."""
    shapes = [("ring", ranks) for ranks in sorted((*EVEN, *ODD))] + [
        ("line", ranks) for ranks in LINES
    ]
    needed = {shape: least_wavelengths(*shape) for shape in shapes}
    results.write(
        "lemma1",
        [
            {"shape": shape, "ranks": ranks, "wavelengths": count}
            for (shape, ranks), count in needed.items()
        ],
    )
    bounds = {shape: load_bound(*shape) for shape in shapes}
    proved = "A verified plan has one slot with so many. "
    proved += (
        "The loads of the links allow no fewer."
        if needed == bounds
        else "The loads of the links might allow fewer."
    )
    return {
        "lemma1.ring.even": Computed(tuple(needed["ring", ranks] for ranks in EVEN), proved),
        "lemma1.ring.odd": Computed(
            tuple(needed["ring", ranks] for ranks in ODD), f"{proved} It is (N^2 - 1)/8."
        ),
        "lemma1.line": Computed(tuple(needed["line", ranks] for ranks in LINES), proved),
        "lemma1.unrealistic": Computed(
            load_bound("ring", 1024) / WAVELENGTHS,
            f"{load_bound('ring', 1024)} wavelengths.",
        ),
        "lemma2": Computed(tuple(_leaves(radix, depth) for radix, depth in LEAVES)),
        "conversions": Computed(
            tuple(
                _conversions(f"optree:radices={radices}")
                for radices in ("16", "4x4", "4x2x2", "2x2x2x2")
            ),
            "Blocks followed through verified plans.",
        ),
    }


def load_bound(shape: str, ranks: int) -> int:
    """Returns a lower bound on the highest load of an all-to-all's links, in one direction."""
    if shape == "line":
        return (ranks // 2) * (ranks - ranks // 2)
    # Spread the links of all shortest routes evenly over the links in both directions.
    hops = ranks * sum(min(hop, ranks - hop) for hop in range(1, ranks))
    return -(-hops // (2 * ranks))


def least_wavelengths(shape: str, ranks: int) -> int:
    """Returns the minimum number of wavelengths with which one_stage has a plan of one slot."""
    cut = f",broken={ranks - 1}-0" if shape == "line" else ""

    def slots(wavelengths: int) -> int:
        ring = Fabric(f"wdm_ring:ranks={ranks},wavelengths={wavelengths}{cut}")
        plan = opticoll.plan("all_gather", ring, "one_stage")
        assert not plan.verify()
        return int(plan.slots)

    few, enough = 0, 1
    while slots(enough) > 1:
        few, enough = enough, 2 * enough
    while enough - few > 1:
        middle = (few + enough) // 2
        few, enough = (few, middle) if slots(middle) == 1 else (middle, enough)
    return enough


def _leaves(radix: int, depth: int) -> int:
    """Returns the largest ring, up to 40 ranks, that has a tree of `depth` equal radices."""
    algorithm = "optree:radices=" + "x".join([str(radix)] * depth)
    largest = 0
    for ranks in range(2, 41):
        try:
            plan = opticoll.plan("all_gather", fabric(ranks, WAVELENGTHS), algorithm)
        except OpticollError:
            continue
        assert not plan.verify()
        largest = ranks
    return largest


def _conversions(algorithm: str) -> int:
    """Returns how many times a block is converted to electronics on its route among 16 ranks."""
    plan = opticoll.plan("all_gather", fabric(16, WAVELENGTHS), algorithm)
    assert not plan.verify()
    flights = {(rank, rank): 0 for rank in range(16)}
    columns = plan.columns()
    rows = zip(
        *(columns[name].tolist() for name in ("slot", "chunk", "count", "source", "destination")),
        strict=True,
    )
    for _, chunk, count, source, destination in sorted(rows):
        for block in range(chunk, chunk + count):
            flights[block, destination] = flights[block, source] + 1
    return int(max(flights.values())) - 1


def theorems(results: Results, constructed: Construct) -> dict[str, Computed]:
    """Computes steps by depth, the chosen depth, and Eq.

    3; writes theorem1.csv and theorem2.csv.
    """
    results.write(
        "theorem1",
        [
            {
                "ranks": ranks,
                "wavelengths": WAVELENGTHS,
                "k": depth,
                "theorem1_steps": formulas.optree_steps(ranks, WAVELENGTHS, depth),
                "equation3_steps": equation_three_steps(ranks, WAVELENGTHS, depth),
                "fewest": depth in best_depths(ranks, WAVELENGTHS),
            }
            for ranks in RANKS_FOUR
            for depth in DEPTHS
        ],
    )
    results.show(
        f"Theorem 1: steps of OpTree by stages k, w = {WAVELENGTHS} (theorem1.csv)",
        ["N", *(f"k = {depth}" for depth in DEPTHS), "fewest at k ="],
        [
            [
                ranks,
                *(formulas.optree_steps(ranks, WAVELENGTHS, depth) for depth in DEPTHS),
                ", ".join(map(str, best_depths(ranks, WAVELENGTHS))),
            ]
            for ranks in RANKS_FOUR
        ],
        left=(),
    )
    chosen = [_chosen(ranks, 2 if ranks == 16 else WAVELENGTHS) for ranks in RANKS]
    results.write("theorem2", chosen)
    return {
        **_first(constructed),
        **_second(chosen, constructed),
        **brackets(results),
        **_time(),
    }


def equation_three_steps(ranks: int, wavelengths: int, depth: int) -> int:
    """Returns the steps of Eq. 3 and Theorem 3: ceil(N m log_m N / (4w)) with m = N^(1/k)."""
    # In whole numbers: s >= k N^(1 + 1/k) / (4w)  <=>  (4ws)^k >= k^k N^(k + 1)
    target = depth**depth * ranks ** (depth + 1)
    steps = 0
    step = 1 << (ranks * depth).bit_length() * 2
    while step:
        if (4 * wavelengths * (steps + step)) ** depth < target:
            steps += step
        step >>= 1
    return steps + 1


def theorem_one_proof_steps(ranks: int, wavelengths: int, depth: int) -> int:
    """Returns the steps that the proof of Theorem 1 counts, with brackets as printed."""
    children: float = ranks ** (1 / depth)
    subsets = math.ceil(ranks / children)
    first = math.ceil(children**2 / (8 * wavelengths)) * subsets
    return first + (depth - 1) * math.floor(children**2 / (4 * wavelengths)) * subsets


def theorem_three_proof_steps(ranks: int, wavelengths: int, depth: int) -> int:
    """Returns the steps in the proof of Theorem 3: ceil((2k - 1)N / (8w))."""
    return -(-(2 * depth - 1) * ranks // (8 * wavelengths))


def _first(constructed: Construct) -> dict[str, Computed]:
    """Compares Theorem 1 with trees, and with the theorem's own proof."""
    exact = {
        (ranks, wavelengths, radices): (
            constructed(ranks, wavelengths, f"optree:radices={radices}"),
            formulas.optree_steps(ranks, wavelengths, radices.count("x") + 1),
        )
        for ranks, wavelengths, radices in EQUAL
    }
    ranks, wavelengths, depths = ANY
    best_trees = {depth: trees.best_tree(ranks, wavelengths, depth) for depth in depths}
    even = {
        depth: constructed(ranks, wavelengths, trees.algorithm(best_trees[depth]))
        for depth in depths
    }
    nearly = {depth: constructed(ranks, wavelengths, f"optree:k={depth}") for depth in depths}
    steps = {depth: formulas.optree_steps(ranks, wavelengths, depth) for depth in depths}
    apart = constructed(UNEVEN[0], UNEVEN[1], f"optree:radices={UNEVEN[2]}")
    plans = [plan for plan, _ in exact.values()]
    assert all(plan.verified for plan in (*plans, *even.values(), *nearly.values(), apart))
    verified_texts = "; ".join(
        f"{count} nodes, w = {colours}, {radices}: {plan.steps} slots, formula {by_formula}"
        for (count, colours, radices), (plan, by_formula) in exact.items()
    )
    each = "; ".join(
        f"k = {depth}: {even[depth].steps} ({trees.spelled(best_trees[depth])}), "
        f"formula {steps[depth]}, nearly equal radices {nearly[depth].steps}"
        for depth in depths
    )
    overlap = overlapping()
    assert not overlap.verify()
    depth = formulas.optree_depth(1024)
    assert depth is not None
    return {
        "theorem1.equal": Computed(
            max(abs(plan.steps - by_formula) for plan, by_formula in exact.values()),
            f"Verified: {verified_texts}.",
        ),
        "theorem1.stages": Computed(
            apart.steps,
            f"{' + '.join(map(str, apart.step_slots))} slots, stage by stage; {apart.proof}. Where "
            "nodes send blocks of their own to partners of stage 2 on the wavelength that stage 1 "
            f"leaves free in its last slot, a plan has {overlap.slots} slots and {len(overlap)} "
            "lightpaths; constructed and verified.",
        ),
        "theorem1.any": Computed(
            max(abs(even[depth].steps - steps[depth]) for depth in depths), f"Slots at {each}."
        ),
        "theorem1.proof": Computed(theorem_one_proof_steps(1024, WAVELENGTHS, depth)),
        "theorem1.proof.identity": _identity(),
    }


def _identity() -> Computed:
    """Compares both sides of the proof's equation, m^(j - 1) ceil(N/m^j) f and f ceil(N/m).

    The factor f is floor(m^2/(4w)).
    """
    ranks, wavelengths, depth = IDENTITY
    exceptions, sides_texts = [], []
    exact = ranks ** (1 / depth)
    for children in (exact, math.ceil(exact)):
        factor = _factor(children, wavelengths)
        sides = [
            (
                children ** (stage - 1) * math.ceil(round(ranks / children**stage, 9)) * factor,
                factor * math.ceil(ranks / children),
            )
            for stage in range(2, depth + 1)
        ]
        exceptions.append(sum(not math.isclose(*both, rel_tol=1e-9) for both in sides))
        each = ", ".join(
            f"{left:.3g} and {right} at j = {stage}" for stage, (left, right) in enumerate(sides, 2)
        )
        sides_texts.append(f"with m = {children:.3g} the sides are {each}")
    inset = [
        _factor(count ** (1 / height), WAVELENGTHS)
        for count in RANKS_FOUR
        for height in CLOSE_UP
        for _ in range(2, height + 1)
    ]
    shown = "; ".join(sides_texts)
    return Computed(
        min(exceptions),
        f"{shown[0].upper()}{shown[1:]}. With 64 wavelengths and the trees of Fig. 4's inset the "
        f"factor, and with it both sides, is 0 in {inset.count(0)} of {len(inset)} cases.",
    )


def _factor(children: float, wavelengths: int) -> int:
    """Returns the proof's floor(m^2/(4w))."""
    return math.floor(round(children**2 / (4 * wavelengths), 9))


def _second(chosen: list[dict[str, int | str]], constructed: Construct) -> dict[str, Computed]:
    """Compares Eq. 2 in several readings with Theorem 1, and with trees."""
    ceiling = [row for row in chosen if row["steps_ceiling"] != row["steps_fewest"]]
    nearest = [row for row in chosen if row["steps_nearest"] != row["steps_fewest"]]
    depth = formulas.optree_depth(1024)
    assert depth is not None
    radices = trees.best_tree(1024, WAVELENGTHS, depth)
    tree = constructed(1024, WAVELENGTHS, trees.algorithm(radices))
    least = min(trees.least_slots(1024, WAVELENGTHS, count) or tree.steps for count in range(1, 11))
    fewest = constructed(
        1024,
        WAVELENGTHS,
        trees.algorithm(
            trees.best_tree(1024, WAVELENGTHS, trees.best_depths(1024, WAVELENGTHS)[0])
        ),
    )
    assert tree.verified
    assert fewest.verified
    apart = {ranks: abs(_least_stages(ranks) - formulas.equation_two(ranks)) for ranks in RANKS}
    return {
        "theorem2.derivative": Computed(
            max(apart.values()),
            "Least at k = "
            + ", ".join(f"{formulas.equation_two(ranks):.3f} ({ranks})" for ranks in RANKS)
            + ", number of nodes in parentheses.",
        ),
        "theorem2.ceiling": Computed(
            len(ceiling),
            ". ".join(
                f"With {row['ranks']} nodes k = {row['k_ceiling']} takes {row['steps_ceiling']} "
                f"steps, k = {row['k_fewest']} takes {row['steps_fewest']}"
                for row in ceiling
            )
            + ".",
        ),
        "theorem2.nearest": Computed(
            len(nearest),
            ", ".join(f"k = {row['k_nearest']} with {row['ranks']} nodes" for row in chosen) + ".",
        ),
        "theorem2.trees": Computed(
            tree.steps - least,
            f"{trees.spelled(radices)}: {tree.steps} slots in {len(tree.step_slots)} stages, "
            f"{tree.proof}. No tree with equal groups has fewer than {least}. They are reached "
            f"with {_listed(trees.best_depths(1024, WAVELENGTHS))} stages.",
        ),
        "theorem3.trees": Computed(
            max(time / fewest.times_ps[size] for size, time in tree.times_ps.items()),
            f"{tree.steps} slots beside {fewest.steps}, both verified. All slots take as long, so "
            "that the tree with the fewest takes the least time.",
        ),
    }


def brackets(results: Results) -> dict[str, Computed]:
    """Computes the readings of Eq. 2's bracket that give both printed depths."""
    printed = {
        1024: results.printed("table1.optree.depth"),
        2048: results.printed("fig4.best.2048"),
    }
    depths = {
        "Rounded up": {ranks: formulas.optree_depth(ranks, "ceil") for ranks in printed},
        "rounded to the nearest": {
            ranks: formulas.optree_depth(ranks, "round") for ranks in printed
        },
    }
    fewer = {ranks: _fewer(ranks) for ranks in printed}
    return {
        "theorem2.bracket": Computed(
            sum(both == printed for both in depths.values()),
            "; ".join(
                f"{name} it is {both[1024]} at 1024 and {both[2048]} at 2048 nodes"
                for name, both in depths.items()
            )
            + ". Of the two whole numbers beside it, the one with fewer steps, or of a tie the "
            f"greater, is {fewer[1024]} at 1024 and {fewer[2048]} at 2048 nodes.",
        )
    }


def _fewer(ranks: int) -> int:
    """Returns the rounding of k* with fewer steps by Theorem 1; if equal, the greater one."""
    below = math.floor(formulas.equation_two(ranks))
    return min(
        (below + 1, below), key=lambda depth: formulas.optree_steps(ranks, WAVELENGTHS, depth)
    )


def _listed(depths: list[int]) -> str:
    return f"{', '.join(map(str, depths[:-1]))} or {depths[-1]}"


def _least_stages(ranks: int) -> float:
    """Returns the real k > 1 that minimizes Theorem 1, by golden-section search."""
    low, high = 1.0, 30.0
    share = (math.sqrt(5) - 1) / 2
    for _ in range(100):
        left, right = high - share * (high - low), low + share * (high - low)
        if continuous_steps(ranks, left) < continuous_steps(ranks, right):
            high = right
        else:
            low = left
    return (low + high) / 2


def _time() -> dict[str, Computed]:
    """Compares Eq. 3, Theorem 3 and simulated times with steps times d/B + a."""
    depth = formulas.optree_depth(1024)
    assert depth is not None
    off = 0
    for algorithm in ("optree:radices=4x4", "ring", "one_stage"):
        plan = construct("all_gather", 16, 2, algorithm, sizes=SIZES)
        for size, time in plan.times_ps.items():
            off = max(off, abs(time - plan.steps * step_time_ps(size)))
    return {
        "time": Computed(off),
        "equation3": Computed(equation_three_steps(1024, WAVELENGTHS, depth)),
        "theorem3.proof": Computed(theorem_three_proof_steps(1024, WAVELENGTHS, depth)),
    }


def _chosen(ranks: int, wavelengths: int) -> dict[str, int | str]:
    """Computes Eq. 2 in its two readings, and the best number of stages."""
    up = formulas.optree_depth(ranks, "ceil")
    near = formulas.optree_depth(ranks, "round")
    assert up is not None
    assert near is not None
    depths = best_depths(ranks, wavelengths)
    return {
        "ranks": ranks,
        "wavelengths": wavelengths,
        "k_ceiling": up,
        "steps_ceiling": formulas.optree_steps(ranks, wavelengths, up),
        "k_nearest": near,
        "steps_nearest": formulas.optree_steps(ranks, wavelengths, near),
        "k_fewest": " ".join(str(depth) for depth in depths),
        "steps_fewest": formulas.optree_steps(ranks, wavelengths, depths[0]),
    }
