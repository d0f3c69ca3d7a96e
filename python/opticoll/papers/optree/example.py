"""The motivation example: 16 ranks, 2 wavelengths, trees of one, two and three stages."""

from __future__ import annotations

from collections.abc import Mapping

from opticoll import formulas
from opticoll.papers.kit import (
    Construct,
    Constructed,
    Finding,
    Results,
    TableRow,
    compared,
    finding,
)

RANKS, WAVELENGTHS = 16, 2

# What the paper prints: wavelengths per stage, and steps.
PRINTED = {
    "one_stage": ([32], 16),
    "optree:radices=4x4": ([8, 16], 12),
    "optree:radices=2x3x3": ([8, 12, 12], 16),
}
# Not compared in the paper's example.
OTHERS = (
    "optree:radices=4x2x2",
    "optree:radices=2x2x2x2",
    "neighbour_exchange",
    "ring_bidirectional",
    "ring",
)


def reproduce(results: Results, constructed: Construct) -> list[Finding]:
    """The example's schedules constructed and verified; writes example16.csv."""
    built = {name: constructed(RANKS, WAVELENGTHS, name) for name in (*PRINTED, *OTHERS)}
    rows = [_row(name, built[name]) for name in (*PRINTED, *OTHERS)]
    results.write("example16", rows)
    results.show(
        f"The example: steps of all_gather, N = {RANKS}, w = {WAVELENGTHS} (example16.csv)",
        ["schedule", "printed", "Theorem 1", "constructed", "verified"],
        [
            [row[name] for name in ("schedule", "paper_steps", "theorem1_steps", "constructed")]
            + [row["verified"]]
            for row in rows
        ],
        left=(0, 4),
    )
    return [
        *_trees(built["one_stage"], built["optree:radices=4x4"], built["optree:radices=2x3x3"]),
        *_rings(built),
    ]


def _trees(one: Constructed, two: Constructed, three: Constructed) -> list[Finding]:
    """The trees of one, two and three stages that the paper counts."""
    return [
        compared(
            "example16.one_stage",
            16,
            one.steps,
            "steps",
            f"{formulas.one_stage_wavelengths(RANKS)} wavelengths in slots of {WAVELENGTHS}, "
            f"{one.proof}.",
        ),
        compared(
            "example16.two_stages",
            12,
            two.steps,
            "steps",
            f"{_sum(list(two.step_slots))} slots, {two.proof}; Theorem 1 gives "
            f"{formulas.optree_steps(RANKS, WAVELENGTHS, 2)}.",
        ),
        compared(
            "example16.three_stages",
            16,
            three.steps,
            "steps",
            "The paper's own tree (2, 3 and 3 children) needs "
            f"{_sum(_stage_loads('optree:radices=2x3x3'))} wavelengths, "
            f"{three.proof}; the paper counts 8 + 12 + 12, giving each pair of the first "
            "stage a wavelength of its own where opposite arcs can share one.",
        ),
        compared(
            "example16.three_stages.theorem1",
            16,
            formulas.optree_steps(RANKS, WAVELENGTHS, 3),
            "steps",
            "Theorem 1 at k = 3 contradicts the example's count, and no tree of the example has "
            "this few.",
        ),
    ]


def _rings(built: Mapping[str, Constructed]) -> list[Finding]:
    """Algorithms without a tree against the fewest steps that the example has for one."""
    fewest = min(steps for _, steps in PRINTED.values())
    notes = {
        "neighbour_exchange": "OpTree is said to need fewer steps than existing algorithms; in the "
        "paper's own example neighbour exchange has fewer than all its trees",
        "ring_bidirectional": "A ring that uses one wavelength of both directions also has fewer "
        "than every tree of the example",
    }
    return [
        finding(
            f"example16.{name}",
            f"more than OpTree's {fewest}",
            built[name].steps,
            "steps",
            built[name].steps > fewest,
            f"{note} ({built[name].proof}).",
        )
        for name, note in notes.items()
    ]


def _row(name: str, plan: Constructed) -> TableRow:
    wavelengths, steps = PRINTED.get(name, ([], None))
    loads = _stage_loads(name)
    return {
        "schedule": name,
        "paper_wavelengths": _sum(wavelengths),
        "wavelengths": _sum(loads),
        "paper_steps": steps,
        "theorem1_steps": formulas.optree_steps(RANKS, WAVELENGTHS, len(loads)) if loads else None,
        "constructed": plan.steps,
        "verified": plan.verified,
    }


def _stage_loads(name: str) -> list[int]:
    """The greatest load of a link in each stage; nothing for what is no tree."""
    if name == "one_stage":
        return [formulas.one_stage_wavelengths(RANKS)]
    _, _, radices = name.partition("radices=")
    if not radices:
        return []
    return formulas.optree_stage_loads(RANKS, [int(radix) for radix in radices.split("x")])


def _sum(terms: list[int]) -> str:
    return " + ".join(str(term) for term in terms)
