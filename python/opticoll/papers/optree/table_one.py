"""Table I: steps of five all_gather algorithms on 1024 ranks with 64 wavelengths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from opticoll import formulas
from opticoll.papers.kit import Construct, Constructed, Finding, Results, compared, finding, judged
from opticoll.papers.optree.cases import paper_steps

RANKS, WAVELENGTHS = 1024, 64
PRINTED = {"ring": 1023, "neighbour_exchange": 512, "wrht": 259, "one_stage": 128, "optree": 70}
PRINTED_DEPTH = 7


def reproduce(results: Results, constructed: Construct) -> list[Finding]:
    """The table with the columns printed, formula, constructed and verified; writes table1.csv."""
    formulas = {name: _formula(name) for name in PRINTED}
    built = {name: constructed(RANKS, WAVELENGTHS, name) for name in PRINTED}
    findings = [
        *_rings(built, constructed(RANKS, 1, "neighbour_exchange")),
        *_wrht(formulas["wrht"], built["wrht"]),
        _one_stage(built["one_stage"]),
        *_optree(
            formulas["optree"],
            built["optree"],
            constructed(RANKS, WAVELENGTHS, "optree:depth=paper"),
        ),
    ]
    rows = [_row(name, formulas[name], built[name], findings) for name in PRINTED]
    results.write("table1", rows)
    columns = ["algorithm", "printed", "formula", "constructed", "verified", "verdict"]
    results.show(
        f"Table I: steps of all_gather, N = {RANKS}, w = {WAVELENGTHS} (table1.csv)",
        columns,
        [[row[column] for column in columns] for row in rows],
        left=(0, 4, 5),
    )
    return findings


def _row(
    name: str, formula: int, plan: Constructed, findings: Sequence[Finding]
) -> dict[str, int | str | bool]:
    """A line of the table; what is printed is judged against the formula and against the plan."""
    own = [
        entry
        for entry in findings
        if entry["id"] in (f"table1.{name}", f"table1.{name}.constructed")
    ]
    of_formula = own[0]["verdict"] if len(own) > 1 else judged(PRINTED[name], formula)
    return {
        "algorithm": name,
        "ranks": RANKS,
        "wavelengths": WAVELENGTHS,
        "printed": PRINTED[name],
        "formula": formula,
        "constructed": plan.steps,
        "verified": plan.verified,
        "verdict": f"formula {of_formula}, constructed {judged(PRINTED[name], plan.steps)}",
        "note": " ".join(entry["note"] for entry in own),
    }


def _rings(built: Mapping[str, Constructed], one_wavelength: Constructed) -> list[Finding]:
    """Ring and neighbour exchange, the latter also on one wavelength."""
    return [
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
    ]


def _wrht(formula: int, built: Constructed) -> list[Finding]:
    return [
        finding(
            "table1.wrht",
            PRINTED["wrht"],
            formula,
            "steps",
            "conditional" if formula == PRINTED["wrht"] else "refuted",
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
            built.steps,
            "steps",
            "Collecting, exchanging and handing out every block by unicast takes "
            f"{' + '.join(map(str, built.step_slots))} slots, {built.proof}; no formula of the "
            "paper counts them.",
        ),
    ]


def _one_stage(built: Constructed) -> Finding:
    return compared(
        "table1.one_stage",
        PRINTED["one_stage"],
        built.steps,
        "steps",
        f"ceil(N^2/(8w)), {built.proof} with an optimal assignment; the printed value is N/8.",
    )


def _optree(formula: int, built: Constructed, paper_tree: Constructed) -> list[Finding]:
    """The number of steps by formula and by trees that exist, and the depth."""
    depth = formulas.optree_depth(RANKS)
    radices = "x".join(str(radix) for radix in formulas.optree_best_radices(RANKS, WAVELENGTHS))
    return [
        compared(
            "table1.optree",
            PRINTED["optree"],
            formula,
            "steps",
            f"Theorem 1 at k = {depth}, rounded up, for a tree with m = N^(1/k) = 2.69 children, "
            "which does not exist.",
        ),
        compared(
            "table1.optree.depth",
            PRINTED_DEPTH,
            depth or 0,
            "stages",
            "By Eq. 2 with its bracket read as a ceiling; rounded to the nearest, as the text "
            f"says, it is {formulas.optree_depth(RANKS, 'round')}, with as many steps.",
        ),
        compared(
            "table1.optree.constructed",
            PRINTED["optree"],
            built.steps,
            "steps",
            f"The best tree that the search finds, {radices}, takes {built.steps} slots, "
            f"{built.proof}.",
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
