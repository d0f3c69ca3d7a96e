"""The paper's example: 16 ranks, 2 wavelengths, and trees of one, two and three stages."""

from __future__ import annotations

import math
from collections import Counter

import opticoll
from opticoll_papers.common import Construct, Results, fabric
from opticoll_papers.judging import Computed
from opticoll_papers.optree import formulas, trees
from opticoll_papers.optree.theorems import least_wavelengths

RANKS, WAVELENGTHS = 16, 2

ONE, TWO, THREE = "one_stage", "optree:radices=4x4", "optree:radices=2x3x3"
# Trees that the paper's example does not have.
OTHERS = (
    "optree:radices=4x2x2",
    "optree:radices=2x2x2x2",
    "neighbour_exchange",
    "ring_bidirectional",
    "ring",
)


def reproduce(results: Results, constructed: Construct) -> dict[str, Computed]:
    """Constructs and verifies the schedules of the example; writes example16.csv."""
    built = {name: constructed(RANKS, WAVELENGTHS, name) for name in (ONE, TWO, THREE, *OTHERS)}
    rows = []
    for name, plan in built.items():
        loads = _stage_loads(name)
        rows.append(
            {
                "schedule": name,
                "wavelengths": _sum(loads),
                "theorem1_steps": formulas.optree_steps(RANKS, WAVELENGTHS, len(loads))
                if loads
                else None,
                "constructed": plan.steps,
                "verified": plan.verified,
            }
        )
    results.write("example16", rows)
    columns = ["schedule", "wavelengths", "theorem1_steps", "constructed", "verified"]
    results.show(
        f"The example: steps of all_gather, N = {RANKS}, w = {WAVELENGTHS} (example16.csv)",
        ["schedule", "wavelengths", "Theorem 1", "constructed", "verified"],
        [[row[name] for name in columns] for row in rows],
        left=(0, 1, 4),
    )
    depth_1, depth_2, depth_3 = built[ONE], built[TWO], built[THREE]
    others = ", ".join(f"{name} {built[name].steps}" for name in OTHERS)
    partners, blocks = _exchanges(TWO)
    best_4x2x2 = built["optree:radices=4x2x2"]
    return {
        "example.nodes": Computed((RANKS, WAVELENGTHS)),
        "example.one_stage.wavelengths": Computed(
            least_wavelengths("ring", RANKS), "See lemma1.ring.even."
        ),
        "example.one_stage": Computed(depth_1.steps, f"One stage, {depth_1.proof}."),
        "example.two_stages.subsets": Computed(partners),
        "example.two_stages.data": Computed(blocks),
        "example.two_stages.wavelengths": Computed(tuple(_stage_loads(TWO))),
        "example.two_stages.slots": Computed(depth_2.step_slots, f"Two stages, {depth_2.proof}."),
        "example.two_stages": Computed(
            depth_2.steps,
            f"The tree is {depth_2.proof}; Theorem 1 gives "
            f"{formulas.optree_steps(RANKS, WAVELENGTHS, 2)}.",
        ),
        "example.three_stages.wavelengths": Computed(tuple(_stage_loads(THREE))),
        "example.three_stages": Computed(
            depth_3.steps,
            f"{_sum(list(depth_3.step_slots))} slots, {depth_3.proof}.",
        ),
        "example.three_stages.theorem": Computed(formulas.optree_steps(RANKS, WAVELENGTHS, 3)),
        "example.fewest": Computed(
            min(depth_1.steps, depth_3.steps) - depth_2.steps,
            f"{depth_1.steps}, {depth_2.steps} and {depth_3.steps} slots.",
        ),
        "example.three_stages.depth": Computed(math.log(RANKS, 3)),
        "example.trade_off": Computed(
            min(depth_1.steps, best_4x2x2.steps) - depth_2.steps,
            f"One stage {depth_1.steps} slots, 4x4 {depth_2.steps}, "
            f"4x2x2 {best_4x2x2.steps}; all verified.",
        ),
        "intro.steps.existing.example": Computed(
            built["neighbour_exchange"].steps / depth_2.steps,
            f"OpTree takes {depth_2.steps} slots; {others}; all verified. On one wavelength NE "
            f"takes {constructed(RANKS, 1, 'neighbour_exchange').steps} slots.",
        ),
    }


def _exchanges(algorithm: str) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Returns the partners of the first rank (counted from 1), and blocks for each, by stage."""
    ring = fabric(RANKS, WAVELENGTHS)
    plan = opticoll.plan("all_gather", ring, algorithm)
    columns = plan.columns()
    # The first slot of a stage follows the last slot of the previous stage.
    ends = [sum(plan.step_slots[: stage + 1]) for stage in range(len(plan.step_slots))]
    stages: list[Counter[int]] = [Counter() for _ in ends]
    for slot, count, source, destination in zip(
        *(columns[name].tolist() for name in ("slot", "count", "source", "destination")),
        strict=True,
    ):
        if source == 0:
            stage = next(place for place, end in enumerate(ends) if slot < end)
            stages[stage][destination + 1] += count
    partners = tuple(" ".join(map(str, sorted(stage))) for stage in stages)
    blocks = tuple(max(stage.values()) for stage in stages)
    return partners, blocks


def _stage_loads(name: str) -> list[int]:
    """Returns the highest load of a link in each stage; an empty list for other schedules."""
    if name == ONE:
        return trees.stage_loads(RANKS, [RANKS])
    _, _, radices = name.partition("radices=")
    if not radices:
        return []
    return trees.stage_loads(RANKS, [int(radix) for radix in radices.split("x")])


def _sum(terms: list[int]) -> str:
    return " + ".join(str(term) for term in terms)
