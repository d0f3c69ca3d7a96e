"""Reproduction of the Dragonfly poster: all_gather and scatter, packet by packet.

Cherièvre and Dorier, Design and Evaluation of Topology-aware Scatter and AllGather Algorithms for
Dragonfly Networks, SC 2016. The figures have no numbers, so only claims in words are judged.
They are judged under both rules by which the poster's simulator may charge the delay of a router.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opticoll_papers.common import Part, Results
from opticoll_papers.dragonfly import discussion, fluid, gathers, scatters, shapes
from opticoll_papers.dragonfly.cases import FULL, QUICK, RULES, Scale, all_cases
from opticoll_papers.dragonfly.runs import OnDemand, Rows, run
from opticoll_papers.judging import Computed, judge_all

if TYPE_CHECKING:
    from opticoll_papers.common import Progress

__all__ = ["conclude", "reproduce"]


def reproduce(results: Results, progress: Progress | None = None, jobs: int = 1) -> Results:
    """Simulates both comparisons; writes findings, cases and figures into the results' folder.

    A quick run gathers on 1056 terminals instead of 5256, and has background traffic on smaller
    networks. `jobs` is the number of simultaneous simulations. Completed simulations stay in the
    folder until all are completed, so an interrupted study continues from them.

    Raises FileError if files cannot be written.
    """
    scale = QUICK if results.quick else FULL
    cases = all_cases(scale, results.needs)
    rows = OnDemand(run(cases, jobs, progress, results.unfinished))
    return conclude(results, rows, scale)


def conclude(results: Results, rows: Rows, scale: Scale) -> Results:
    """Writes findings, tables, CSV files and figures, from the rows of a scale's cases."""
    parts: dict[str, Part] = {
        "algorithms": lambda: shapes.compute(scale),
        "all_gather": lambda: gathers.compute(results, rows, scale),
        "scatter": lambda: scatters.compute(results, rows, scale),
        "discussion": lambda: discussion.compute(results, rows, scale),
    }
    for name, part in parts.items():
        if results.needs(name):
            results.computed |= part()
    if results.only:
        return results.conclude()
    results.write("cases", list(rows.values()))
    results.computed["settings.together"] = together(results)
    fluid.conclude(results, rows, scale)
    gathers.draw(results, rows, scale)
    gathers.draw_loads(results, scale)
    scatters.draw(results, rows, scale)
    fluid.draw(results, rows, scale)
    return results.conclude()


def together(results: Results) -> Computed:
    """Counts the claims that hold under each rule for the delay of a router.

    Only claims that are judged under both rules are counted.
    """
    judged = {
        finding.id: finding.verdict == "conditional"
        for finding in judge_all(results.claims, results.computed, results.paper)
        if finding.id in results.computed
    }
    holds = {
        rule: {
            id.replace(rule, "RULE"): is_met
            for id, is_met in judged.items()
            if rule in id.split(".")
        }
        for rule in RULES
    }
    first, second = (holds[rule] for rule in RULES)
    shared = [id for id in first if id in second]

    def named(ids: list[str]) -> str:
        return ", ".join(ids) or "none"

    large = [id for id in shared if id.endswith(".large_buffers") and second[id]]
    return Computed(
        (sum(first[id] for id in shared), sum(second[id] for id in shared), len(shared)),
        f"Only if routers are pipelines: {named([id for id in shared if first[id] > second[id]])}. "
        f"Only if the delay occupies the port: "
        f"{named([id for id in shared if second[id] > first[id]])}. Under neither: "
        f"{named([id for id in shared if not first[id] and not second[id]])}. Together, with "
        f"buffers of 64 KiB and a delay that occupies the port: {named(large)}.",
    )
