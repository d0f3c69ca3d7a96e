"""What each link carried over time: a row for each bin of time and link that carried something."""

from __future__ import annotations

from typing import TypedDict

from opticoll._core import Outcome, Plan

__all__ = ["LinkUseRow", "link_use_rows"]


class LinkUseRow(TypedDict):
    """What a link carried in a bin."""

    start_ps: int
    end_ps: int
    link: str
    bytes: float
    bits_per_second: float
    """The mean rate in the bin."""


def link_use_rows(plan: Plan, outcome: Outcome) -> list[LinkUseRow]:
    """All bins in the order of time, in each the links in the order of the fabric."""
    if "link_use" not in outcome.tables:
        return []
    bin_ps, carried = outcome.link_use_bin_ps, outcome.link_use["bytes"]
    names = plan.fabric.link_names
    rows = []
    for number, link in zip(*carried.T.nonzero(), strict=True):
        amount = float(carried[link, number])
        rows.append(
            LinkUseRow(
                start_ps=int(number) * bin_ps,
                end_ps=(int(number) + 1) * bin_ps,
                link=names[link],
                bytes=amount,
                bits_per_second=amount * 8e12 / bin_ps,
            )
        )
    return rows
