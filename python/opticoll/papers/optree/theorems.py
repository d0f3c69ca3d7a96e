"""Lemma 1, Theorems 1 to 3, Eq. 2 and Eq. 3."""

from __future__ import annotations

from opticoll import formulas
from opticoll.papers.kit import Construct, Finding, Results, compared, finding
from opticoll.papers.optree.cases import DEPTHS, best_depths

WAVELENGTHS = 64
FIGURE_FOUR_RANKS = (512, 1024, 2048, 4096)
RANKS = (16, 64, 256, *FIGURE_FOUR_RANKS)
LEMMA_RANKS = range(2, 33)


def lemma_one(results: Results, constructed: Construct) -> list[Finding]:
    """Wavelengths of a one-stage all-to-all on a ring; writes lemma1.csv."""
    rows = []
    for ranks in LEMMA_RANKS:
        exact = formulas.one_stage_wavelengths(ranks)
        plan = constructed(ranks, exact, "one_stage")
        rows.append(
            {
                "ranks": ranks,
                "paper": formulas.one_stage_wavelengths(ranks, paper=True),
                "exact": exact,
                "constructed_slots": plan.steps,
                "verified": plan.verified,
            }
        )
    results.write("lemma1", rows)
    odd = [row for row in rows if row["ranks"] % 2 == 1]
    too_large = [row for row in odd if row["paper"] > row["exact"]]
    shown = [row for row in too_large if row["constructed_slots"] == 1 and row["verified"]]
    even_agrees = all(row["paper"] == row["exact"] for row in rows if row["ranks"] % 2 == 0)
    return [
        finding(
            "lemma1.even",
            "ceil(N^2/8)",
            "ceil(floor(N^2/4)/2)",
            "wavelengths",
            even_agrees,
            f"Equal for every even N from {LEMMA_RANKS[0]} to {LEMMA_RANKS[-1]}.",
        ),
        finding(
            "lemma1.odd",
            "ceil(N^2/8)",
            "ceil(floor(N^2/4)/2)",
            "wavelengths",
            "refuted" if too_large else "reproduced",
            f"One too large for {len(too_large)} of the {len(odd)} odd N from {odd[0]['ranks']} to "
            f"{odd[-1]['ranks']}; for {len(shown)} of them, such as N = {shown[0]['ranks']} with "
            f"{shown[0]['exact']} in place of {shown[0]['paper']}, the exact number was confirmed "
            "by a verified plan of one slot.",
        ),
    ]


def theorems(results: Results) -> list[Finding]:
    """Steps by depth, the depth chosen, and Eq. 3; writes theorem1.csv and theorem2.csv."""
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
            for ranks in FIGURE_FOUR_RANKS
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
            for ranks in FIGURE_FOUR_RANKS
        ],
        left=(),
    )
    chosen = [_chosen(ranks, 2 if ranks == 16 else WAVELENGTHS) for ranks in RANKS]
    results.write("theorem2", chosen)
    return [*_best_depth_findings(), *_rounding_findings(chosen), *_formula_findings()]


def equation_three_steps(ranks: int, wavelengths: int, depth: int) -> int:
    """Steps in Eq. 3 and Theorem 3: ceil(N m log_m N / (4w)) with m = N^(1/k), in whole numbers."""
    # s >= k N^(1 + 1/k) / (4w)  <=>  (4ws)^k >= k^k N^(k + 1)
    target = depth**depth * ranks ** (depth + 1)
    steps = 0
    step = 1 << (ranks * depth).bit_length() * 2
    while step:
        if (4 * wavelengths * (steps + step)) ** depth < target:
            steps += step
        step >>= 1
    return steps + 1


def theorem_three_proof_steps(ranks: int, wavelengths: int, depth: int) -> int:
    """Steps in the proof of Theorem 3: ceil((2k - 1)N / (8w))."""
    return -(-(2 * depth - 1) * ranks // (8 * wavelengths))


def _chosen(ranks: int, wavelengths: int) -> dict[str, int | str]:
    """Eq. 2 under its two readings, and what is best."""
    up = formulas.optree_depth(ranks, "ceil")
    near = formulas.optree_depth(ranks, "round")
    assert up is not None
    assert near is not None
    best = best_depths(ranks, wavelengths)
    return {
        "ranks": ranks,
        "wavelengths": wavelengths,
        "k_ceiling": up,
        "steps_ceiling": formulas.optree_steps(ranks, wavelengths, up),
        "k_nearest": near,
        "steps_nearest": formulas.optree_steps(ranks, wavelengths, near),
        "k_fewest": " ".join(str(depth) for depth in best),
        "steps_fewest": formulas.optree_steps(ranks, wavelengths, best[0]),
    }


def _best_depth_findings() -> list[Finding]:
    """Theorem 1 for k = 5..9 against what the paper says of its Fig. 4."""

    def steps(ranks: int) -> list[int]:
        return [formulas.optree_steps(ranks, WAVELENGTHS, depth) for depth in range(5, 10)]

    def best(ranks: int) -> str:
        return " and ".join(str(depth) for depth in best_depths(ranks, WAVELENGTHS))

    findings = []
    for ranks, printed in ((1024, 7), (2048, 7), (4096, 8)):
        depths = best_depths(ranks, WAVELENGTHS)
        tie = " as well as the printed one" if len(depths) > 1 else ""
        findings.append(
            finding(
                f"fig4.best_depth.{ranks}",
                printed,
                depths[0] if len(depths) == 1 else best(ranks),
                "stages",
                printed in depths,
                f"Theorem 1 at k = 5..9 gives {', '.join(map(str, steps(ranks)))} steps; the "
                f"fewest at k = {best(ranks)}{tie}.",
            )
        )
    flat = steps(512)
    shape = flat[0] == flat[1] and flat == sorted(flat) and flat[-2] < flat[-1]
    falls = steps(1024)
    valley = falls[0] > falls[1] == falls[2] < falls[3] < falls[4]
    for ranks, holds, words, values in (
        (512, shape, "flat, then rising", flat),
        (1024, valley, "falling, flat, then rising", falls),
    ):
        findings.append(
            finding(
                f"fig4.shape.{ranks}",
                words,
                ", ".join(map(str, values)),
                "steps at k = 5..9",
                holds,
                "The figure is Theorem 1 plotted; no simulation is needed to get its shape.",
            )
        )
    return findings


def _rounding_findings(chosen: list[dict[str, int | str]]) -> list[Finding]:
    by_ranks = {row["ranks"]: row for row in chosen}
    missed = [str(row["ranks"]) for row in chosen if row["steps_ceiling"] != row["steps_fewest"]]
    off = [str(row["ranks"]) for row in chosen if row["steps_nearest"] != row["steps_fewest"]]
    two_thousand = by_ranks[2048]
    return [
        finding(
            "theorem2.ceiling",
            "optimal",
            f"not at N = {', '.join(missed)}" if missed else "optimal",
            "depth",
            "refuted" if missed else "reproduced",
            "Eq. 2 prints a ceiling, which Table I and all averages use; at 2048 it takes "
            f"k = {two_thousand['k_ceiling']} with {two_thousand['steps_ceiling']} steps where "
            f"k = {two_thousand['k_fewest']} has {two_thousand['steps_fewest']}.",
        ),
        finding(
            "theorem2.nearest",
            "optimal",
            f"not at N = {', '.join(off)}" if off else "optimal",
            "depth",
            "refuted" if off else "conditional",
            "The text calls the bracket integer rounding; read so, Eq. 2 is optimal at all N tried "
            f"and gives Fig. 4's k = {two_thousand['k_nearest']} at 2048, but not Table I's k = 7 "
            f"at 1024 (it gives {by_ranks[1024]['k_nearest']}, with as many steps).",
        ),
    ]


def _formula_findings() -> list[Finding]:
    depth = formulas.optree_depth(1024)
    assert depth is not None
    return [
        compared(
            "equation3.1024",
            70,
            equation_three_steps(1024, WAVELENGTHS, depth),
            "steps",
            "Eq. 3 and Theorem 3 have 2k where Theorem 1 has 2k - 1, so they miss the table's own "
            "number.",
        ),
        compared(
            "theorem3.proof.1024",
            70,
            theorem_three_proof_steps(1024, WAVELENGTHS, depth),
            "steps",
            "The proof of Theorem 3 lost the factor N^(1/k): a third value for one quantity.",
        ),
    ]
