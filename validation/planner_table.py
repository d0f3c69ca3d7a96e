"""Steps of all_gather on WDM rings: the lower bound, the planner, and what it is compared with.

    python validation/planner_table.py --out docs/planner-table.md
    python validation/planner_table.py --check docs/planner-table.md --quick

Every plan is verified in Rust, and up to 256 ranks by the reference verifier in Python as well.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import opticoll
from opticoll import _core, errors, reference
from opticoll_papers.optree.cases import DEPTHS
from opticoll_papers.optree.formulas import optree_steps

ASKED = (
    (16, 2), (16, 4), (64, 8), (64, 16), (128, 8), (256, 16), (512, 16), (512, 64),
    (1024, 16), (1024, 64), (1024, 128), (2048, 64),
)  # fmt: skip
PRIMES = ((13, 2), (31, 3), (97, 8), (251, 16), (509, 32), (1021, 64))
ODD = ((15, 2), (63, 8), (255, 16), (1023, 64))
FEW_OR_MANY = ((2, 1), (3, 1), (9, 1), (100, 1), (5, 64), (16, 64), (48, 64), (360, 12))
TWO_FIBRES = ((256, 64), (256, 128))  # as TeraRack has
LARGE_RINGS = ((4096, 64), (16_384, 64), (65_536, 64))
QUICK_RANKS = 128
REFERENCE_RANKS = 256
CONSTRUCTED_RANKS = 2048

HEADING = (
    "N", "w", "fibres", "lower bound", "bound by", "relay tree", "gap", "OpTree, formula",
    "OpTree, constructed", "one stage", "neighbour exchange", "ring", "verified",
    "planning time",
)  # fmt: skip

INTRODUCTION = """\
# Steps of all_gather: bound, planner, and other algorithms

Each row is a ring of N ranks with w wavelengths on each directed fibre and `fibres` fibres in each
direction. One lightpath carries one block in a step.

| column | meaning |
|---|---|
| lower bound | least number of steps of any plan |
| bound by | the bound: `relay_tree`, `receive`, `spread` or `growth` ([proofs](relay-trees.md)) |
| relay tree | steps of the relay-tree plan |
| gap | excess of the relay-tree plan over the lower bound |
| OpTree, formula | the paper's Theorem 1 at its best number of stages. The formula rounds the sum of its stages, not each stage, so it can be below the bound. For two fibres it is computed with 2w wavelengths. |
| OpTree, constructed | slots of the best tree that was built |
| one stage, neighbour exchange, ring | slots of the constructed plans; neighbour exchange needs an even N. Neighbour exchange and ring use one or two wavelengths of each fibre, however many there are. Beyond 2,048 ranks these plans are left out. |
| verified | verifiers that proved the relay-tree plan: *Rust*, or *both* (with the reference verifier in Python, N up to 256). The verifier in Rust proved the other plans of the row. |
| planning time | of the relay-tree plan, on one core of the machine that made the table |

`python validation/planner_table.py --out docs/planner-table.md` writes this page. `make validate`
checks it, except the times.
"""  # noqa: E501


@dataclass(frozen=True)
class Case:
    """A ring: ranks, wavelengths of a directed fibre, fibres in a direction."""

    ranks: int
    wavelengths: int
    fibres: int = 1

    @property
    def fabric(self) -> opticoll.Fabric:
        return opticoll.Fabric(
            "wdm_ring", ranks=self.ranks, wavelengths=self.wavelengths, fibres=self.fibres
        )


def cases() -> dict[str, list[Case]]:
    """Returns all rings, by the heading under which they stand."""
    return {
        "Powers of two": [Case(*pair) for pair in ASKED],
        "Prime N": [Case(*pair) for pair in PRIMES],
        "Odd N": [Case(*pair) for pair in ODD],
        "Few ranks, few or many wavelengths": [Case(*pair) for pair in FEW_OR_MANY],
        "Two fibres in each direction": [Case(*pair, fibres=2) for pair in TWO_FIBRES],
        "Large rings": [Case(*pair) for pair in LARGE_RINGS],
    }


def row(case: Case) -> list[str]:
    """Returns the cells of a ring, in the order of the heading."""
    fabric = case.fabric
    begun = time.perf_counter()
    plan = opticoll.plan("all_gather", fabric, "relay_tree")
    seconds = time.perf_counter() - begun
    bound, name, _ = _core.slots_bound("all_gather", fabric)
    assert bound <= plan.slots, f"{case}: a plan below its bound"
    gap = 100 * (plan.slots / bound - 1)
    return [
        str(case.ranks),
        str(case.wavelengths),
        str(case.fibres),
        str(bound),
        name or "",
        f"**{plan.slots}**",
        f"{gap:.1f} %",
        formula(case),
        constructed(case, "optree"),
        constructed(case, "one_stage"),
        constructed(case, "neighbour_exchange"),
        constructed(case, "ring"),
        proof(plan),
        f"{seconds:.2g} s",
    ]


def formula(case: Case) -> str:
    """Returns Theorem 1 of the OpTree paper at the number of stages where it is least."""
    channels = case.wavelengths * case.fibres
    return str(min(optree_steps(case.ranks, channels, depth) for depth in DEPTHS))


def constructed(case: Case, algorithm: str) -> str:
    """Returns the slots of a verified algorithm; `-` if it does not run or N is large."""
    if case.ranks > CONSTRUCTED_RANKS:
        return "-"
    try:
        plan = opticoll.plan("all_gather", case.fabric, algorithm)
    except errors.AlgorithmError:
        return "-"
    assert plan.verify() == [], f"{case}: {algorithm} is violated"
    return str(plan.slots)


def proof(plan: opticoll.Plan) -> str:
    """Returns which verifiers prove the plan, or NO."""
    if plan.verify():
        return "NO"
    if plan.fabric.ranks > REFERENCE_RANKS:
        return "Rust"
    return "both" if reference.verify_text(plan.to_text()) == [] else "NO"


def sections(quick: bool) -> Iterator[tuple[str, list[list[str]]]]:
    """Headings with their rows; `quick` leaves out rings of more than 128 ranks."""
    for heading, rings in cases().items():
        rows = []
        for case in rings:
            if quick and case.ranks > QUICK_RANKS:
                continue
            print(f"N = {case.ranks}, w = {case.wavelengths}", file=sys.stderr)
            rows.append(row(case))
        if rows:
            yield heading, rows


def page(parts: Iterable[tuple[str, list[list[str]]]]) -> str:
    """Returns the page in Markdown."""
    lines = [INTRODUCTION]
    for heading, rows in parts:
        cells = [list(HEADING), ["--:" if cell != "bound by" else "---" for cell in HEADING], *rows]
        lines += [f"## {heading}", "", *(f"| {' | '.join(line)} |" for line in cells), ""]
    return "\n".join(lines)


def comparable(text: str) -> dict[tuple[str, ...], list[str]]:
    """Returns the rows of a page by N, w and fibres, without the time."""
    rows = {}
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == len(HEADING) and cells[0].isdigit():
            rows[tuple(cells[:3])] = cells[3:-1]
    return rows


def differences(committed: str, parts: Iterable[tuple[str, list[list[str]]]]) -> list[str]:
    """Returns the differences between a page and new rows, a sentence for each ring."""
    known, new = comparable(committed), comparable(page(parts))
    return [
        f"N, w, fibres = {', '.join(ring)}: committed {known.get(ring)}, computed {cells}"
        for ring, cells in new.items()
        if known.get(ring) != cells
    ]


def main() -> int:
    """Writes the table, or checks one; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="write the table here")
    parser.add_argument("--check", type=Path, help="compare with the table here, but for times")
    parser.add_argument("--quick", action="store_true", help=f"only N <= {QUICK_RANKS}")
    arguments = parser.parse_args()
    parts = list(sections(arguments.quick))
    if arguments.check is not None:
        wrong = differences(arguments.check.read_text(encoding="utf-8"), parts)
        print("\n".join(wrong) or "the table is what is computed")
        return 1 if wrong else 0
    if arguments.out is not None:
        arguments.out.write_text(page(parts), encoding="utf-8")
    else:
        print(page(parts))
    return 0


if __name__ == "__main__":
    sys.exit(main())
