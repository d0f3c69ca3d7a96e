"""Ranks, switches and cables of a fabric with links, with the numbers that plan files use.

>>> from opticoll import Fabric
>>> sites, cables = network_parts(Fabric("wdm_graph:ranks=2,links=0-1@80km,wavelengths=1"))
>>> sites[1].name, cables[0].length, cables[0].links
('rank 1', '80km', [0, 1])
"""

from __future__ import annotations

from collections import defaultdict
from typing import Literal

from opticoll._core import Fabric
from opticoll.formats.network_graph import edges_of
from opticoll.outputs.layout import align
from opticoll.outputs.rows import Row, means
from opticoll.outputs.units import Count

Role = Literal["rank", "idle", "switch"]


class SiteRow(Row):
    """A rank or switch of a fabric."""

    kind: Literal["sites"] = means("Kind of the record")
    name: str = means("Name of the rank or switch")
    number: Count = means("Number of the vertex; ranks come first")
    role: Role = means(
        "Kind of the vertex: a rank; a rank that failed or takes no part (`idle`); or a switch"
    )


class CableRow(Row):
    """A cable of a fabric, or a link in one direction."""

    kind: Literal["cables"] = means("Kind of the record")
    name: str = means("Names of both ends")
    number: Count = means("Number of the cable, in the order of the fabric")
    length: str | None = means("Length of the fibre", absent="the length is unknown")
    latency: str | None = means("Delay of each link", absent="the delay follows from the length")
    rate: str = means("Rate of each link, or of each of its wavelengths")
    links: list[Count] = means(
        "Numbers of the links: from the first end to the second end, and back if there is a link "
        "back; a half-duplex cable is one link"
    )


def network_parts(fabric: Fabric) -> tuple[list[SiteRow], list[CableRow]]:
    """Returns the ranks, the switches and the cables of a fabric.

    Raises
    ------
    FabricError
        The fabric has no links.
    """
    ranks, switches, edges = edges_of(fabric)
    names = [*ranks, *switches]
    first_switch = len(ranks) + fabric.idle_ranks

    def role(number: int) -> Role:
        return "rank" if number < len(ranks) else "idle" if number < first_switch else "switch"

    sites = [
        SiteRow(kind="sites", name=name, number=number, role=role(number))
        for number, name in enumerate(names)
    ]
    # Cables are listed in the order of links, so equal ends follow each other in the same order.
    numbers: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
    for link, ends in enumerate(fabric.link_ends or ()):
        numbers[ends].append(link)
    vertex = {name: number for number, name in enumerate(names)}
    cables = []
    for number, edge in enumerate(edges):
        ends = (vertex[edge.start], vertex[edge.end])
        directions = [ends, ends[::-1]] if edge.kind == "-" else [ends]
        arrow = {"-": "-", "~": "<->", ">": "->"}[edge.kind]
        cables.append(
            CableRow(
                kind="cables",
                name=f"{edge.start} {arrow} {edge.end}",
                number=number,
                length=edge.options.get("length"),
                latency=edge.options.get("latency"),
                rate=edge.options["rate"],
                links=[numbers[direction].pop(0) for direction in directions],
            )
        )
    return sites, cables


def network_text(rows: list[SiteRow | CableRow]) -> str:
    """Returns tables of sites and of cables."""
    words = {"rank": "rank", "idle": "failed, or takes no part", "switch": "switch"}
    sites = [
        [row.name, str(row.number), words[row.role]] for row in rows if isinstance(row, SiteRow)
    ]
    cables = [
        [
            row.name,
            str(row.number),
            row.length or row.latency or "",
            row.rate,
            " ".join(map(str, row.links)),
        ]
        for row in rows
        if isinstance(row, CableRow)
    ]
    parts = [align(sites, ["site", "number", "kind"], {1})]
    if cables:
        head = ["cable", "number", "length or delay", "rate", "links there and back"]
        parts.append(align(cables, head, {1, 2, 3}))
    return "\n\n".join(parts)
