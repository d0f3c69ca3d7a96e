"""The motivation example: 16 ranks, 2 wavelengths, trees of one, two and three stages."""

from __future__ import annotations

from pathlib import Path

from opticoll import _core
from opticoll.formats.table import write_csv
from opticoll.study.constructed import Construct, Constructed
from opticoll.study.findings import Finding, compared, finding

__all__ = ["reproduce"]

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


def reproduce(output: Path, constructed: Construct) -> list[Finding]:
    """The example's schedules constructed and verified; writes example16.csv."""
    built = {name: constructed(RANKS, WAVELENGTHS, name) for name in (*PRINTED, *OTHERS)}
    write_csv([_row(name, built[name]) for name in (*PRINTED, *OTHERS)], output / "example16.csv")
    two = built["optree:radices=4x4"]
    three = built["optree:radices=2x3x3"]
    loads = _stage_loads("optree:radices=2x3x3")
    return [
        compared(
            "example16.one_stage",
            16,
            built["one_stage"].steps,
            "steps",
            f"{_core.one_stage_wavelengths(RANKS)} wavelengths in slots of {WAVELENGTHS}, "
            f"{built['one_stage'].proof}.",
        ),
        compared(
            "example16.two_stages",
            12,
            two.steps,
            "steps",
            f"{_sum(list(two.step_slots))} slots, {two.proof}; Theorem 1 gives "
            f"{_core.optree_steps(RANKS, WAVELENGTHS, 2)}.",
        ),
        compared(
            "example16.three_stages",
            16,
            three.steps,
            "steps",
            f"The paper's own tree (2, 3 and 3 children) needs {_sum(loads)} wavelengths, "
            f"{three.proof}; the paper counts 8 + 12 + 12, giving each pair of the first "
            "stage a wavelength of its own where opposite arcs can share one.",
        ),
        compared(
            "example16.three_stages.theorem1",
            16,
            _core.optree_steps(RANKS, WAVELENGTHS, 3),
            "steps",
            "Theorem 1 at k = 3 contradicts the example's count, and no tree of the example has "
            "this few.",
        ),
        finding(
            "example16.neighbour_exchange",
            None,
            built["neighbour_exchange"].steps,
            "steps",
            "refuted",
            "OpTree is said to need fewer steps than existing algorithms; in the paper's own "
            "example neighbour exchange has fewer than all its trees "
            f"({built['neighbour_exchange'].proof}).",
        ),
        finding(
            "example16.ring_bidirectional",
            None,
            built["ring_bidirectional"].steps,
            "steps",
            "refuted",
            "A ring that uses one wavelength of both directions also has fewer than every tree "
            f"of the example ({built['ring_bidirectional'].proof}).",
        ),
    ]


def _row(name: str, plan: Constructed) -> dict[str, object]:
    wavelengths, steps = PRINTED.get(name, ([], None))
    loads = _stage_loads(name)
    return {
        "schedule": name,
        "paper_wavelengths": _sum(wavelengths),
        "wavelengths": _sum(loads),
        "paper_steps": steps,
        "theorem1_steps": _core.optree_steps(RANKS, WAVELENGTHS, len(loads)) if loads else None,
        "constructed": plan.steps,
        "verified": plan.verified,
    }


def _stage_loads(name: str) -> list[int]:
    """The greatest load of a link in each stage; nothing for what is no tree."""
    if name == "one_stage":
        return [_core.one_stage_wavelengths(RANKS)]
    _, _, radices = name.partition("radices=")
    if not radices:
        return []
    return _core.optree_stage_loads(RANKS, [int(radix) for radix in radices.split("x")])


def _sum(terms: list[int]) -> str:
    return " + ".join(str(term) for term in terms)
