"""Table I: steps of five all_gather algorithms on 1024 ranks with 64 wavelengths."""

from __future__ import annotations

from pathlib import Path

from opticoll import _core
from opticoll.formats.table import write_csv
from opticoll.study.constructed import Construct
from opticoll.study.findings import Finding, compared, finding
from opticoll.study.optree.cases import paper_steps

__all__ = ["printed_wrht_formula", "reproduce"]

RANKS, WAVELENGTHS = 1024, 64
PRINTED = {"ring": 1023, "neighbour_exchange": 512, "wrht": 259, "one_stage": 128, "optree": 70}
PRINTED_DEPTH = 7


def reproduce(output: Path, constructed: Construct) -> list[Finding]:
    """The table with the columns printed, formula, constructed and verified; writes table1.csv."""
    formulas = {name: _formula(name) for name in PRINTED}
    built = {name: constructed(RANKS, WAVELENGTHS, name) for name in PRINTED}
    paper_tree = constructed(RANKS, WAVELENGTHS, "optree:depth=paper")
    one_wavelength = constructed(RANKS, 1, "neighbour_exchange")
    radices = "x".join(str(radix) for radix in _core.optree_best_radices(RANKS, WAVELENGTHS))
    findings = [
        compared(
            "table1.ring",
            PRINTED["ring"],
            built["ring"].steps,
            "steps",
            f"N - 1 steps, {built['ring'].proof}.",
        ),
        compared(
            "table1.neighbour_exchange",
            PRINTED["neighbour_exchange"],
            built["neighbour_exchange"].steps,
            "steps",
            f"N/2 steps, {built['neighbour_exchange'].proof}; all but the first carry two blocks, "
            "for which the paper charges the time of one, so they need two wavelengths.",
        ),
        compared(
            "table1.neighbour_exchange.one_wavelength",
            PRINTED["neighbour_exchange"],
            one_wavelength.steps,
            "steps",
            "On one wavelength the two blocks of a step follow one another, "
            f"{one_wavelength.proof}: as many slots as the ring.",
        ),
        finding(
            "table1.wrht",
            PRINTED["wrht"],
            formulas["wrht"],
            "steps",
            "conditional",
            "1 + p(p^(t-1) - 1)/(p - 1) + (t - 1)p^(t-1) with p = 2w + 1 and t = ceil(log_p N) "
            "gives it; p is defined nowhere in the paper.",
        ),
        compared(
            "table1.wrht.printed_formula",
            PRINTED["wrht"],
            printed_wrht_formula(RANKS, WAVELENGTHS),
            "steps",
            "The formula printed in the table's own row does not give the number beside it.",
        ),
        compared(
            "table1.wrht.constructed",
            PRINTED["wrht"],
            built["wrht"].steps,
            "steps",
            f"Collecting, exchanging and handing out every block by unicast takes "
            f"{' + '.join(map(str, built['wrht'].step_slots))} slots, {built['wrht'].proof}; no "
            "formula of the paper counts them.",
        ),
        compared(
            "table1.one_stage",
            PRINTED["one_stage"],
            built["one_stage"].steps,
            "steps",
            f"ceil(N^2/(8w)), {built['one_stage'].proof} with an optimal assignment; the printed "
            "value is N/8.",
        ),
        compared(
            "table1.optree",
            PRINTED["optree"],
            formulas["optree"],
            "steps",
            f"Theorem 1 at k = {_core.optree_depth(RANKS)}, rounded up, for a tree with "
            "m = N^(1/k) = 2.69 children, which does not exist.",
        ),
        compared(
            "table1.optree.depth",
            PRINTED_DEPTH,
            _core.optree_depth(RANKS) or 0,
            "stages",
            "By Eq. 2 with its bracket read as a ceiling; rounded to the nearest, as the text "
            f"says, it is {_core.optree_depth(RANKS, 'round')}, with as many steps.",
        ),
        compared(
            "table1.optree.constructed",
            PRINTED["optree"],
            built["optree"].steps,
            "steps",
            f"The best tree that the search finds, {radices}, {built['optree'].proof}.",
        ),
        compared(
            "table1.optree.paper_tree",
            PRINTED["optree"],
            paper_tree.steps,
            "steps",
            f"A real tree of {len(paper_tree.step_slots)} stages with at most 3 children, "
            f"{paper_tree.proof}.",
        ),
    ]
    verdicts = {entry["id"].removeprefix("table1."): entry for entry in findings}
    write_csv(
        [
            {
                "algorithm": name,
                "ranks": RANKS,
                "wavelengths": WAVELENGTHS,
                "printed": printed,
                "formula": formulas[name],
                "constructed": built[name].steps,
                "verified": built[name].verified,
                "verdict": verdicts[name]["verdict"],
                "note": verdicts[name]["note"],
            }
            for name, printed in PRINTED.items()
        ],
        output / "table1.csv",
    )
    return findings


def printed_wrht_formula(ranks: int, wavelengths: int) -> int:
    """The formula of Table I: ceil((N - p)/(p - 1)) + ceil((t - 1)N/p) + 1, with p = 2w + 1."""
    group = 2 * wavelengths + 1
    levels, reach = 0, 1
    while reach < ranks:
        levels, reach = levels + 1, reach * group
    return -(-(ranks - group) // (group - 1)) + -(-(levels - 1) * ranks // group) + 1


def _formula(name: str) -> int:
    if name == "one_stage":
        return _core.optree_steps(RANKS, WAVELENGTHS, 1)
    return paper_steps(name, RANKS, WAVELENGTHS)
