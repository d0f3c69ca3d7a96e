"""Division of a switch's ports among kinds of groups, for circuits that stay up.

Kinds with the same groups share their ports. On its ports, a group has the circuits of the topology
of the planner `static` that is fastest for the collective that sends the most bytes. Topologies
that depend on a demand are left out, since all collectives of the kind use these circuits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import combinations, pairwise
from operator import itemgetter
from typing import TYPE_CHECKING

from opticoll._core import AlgorithmError, Fabric
from opticoll.errors import UsageError

if TYPE_CHECKING:
    from opticoll._core import GroupCollectiveRecord, Plan

    Kinds = Mapping[str, tuple[list[list[int]], list[GroupCollectiveRecord]]]
    """Groups and collectives of each kind of group, by the name of the kind."""

    Planned = Callable[[GroupCollectiveRecord, Fabric, str], tuple[Plan, int]]
    """Returns the plan of a collective and its time in picoseconds.

    Parameters are the collective, the group's part of a fabric, and the algorithm.
    """

TOPOLOGIES = ("ring", "shifts", "kautz", "hypercube", "torus")
"""Graphs of circuits that do not depend on a demand."""

PREFIX = "static:topology="
"""Specification of the planner of a single configuration, before the name of a topology."""


@dataclass(frozen=True)
class PortShare:
    """Ports that the groups of some kinds hold for a whole iteration.

    `ports` is the number of ports of each rank, and `fabric` is the switch with these ports alone.
    `algorithm` plans the collectives on its circuits, the option `topology` of `static`.
    """

    kinds: tuple[str, ...]
    groups: list[list[int]]
    ports: int
    fabric: Fabric
    circuits: str
    time_ps: int
    """Sum of count x time of all collectives, of one group alone."""

    @property
    def algorithm(self) -> str:
        """Returns the specification of the planner."""
        return PREFIX + self.circuits


def divide_ports(fabric: Fabric, kinds: Kinds, planned: Planned) -> list[PortShare]:
    """Divides the ports of a circuit switch among kinds of groups.

    Of all divisions, the one with the smallest sum of count x time over all collectives is taken.

    Raises
    ------
    UsageError
        There are fewer ports than kinds of different groups, or ports that differ.
    """
    kinds_by_groups: dict[tuple[tuple[int, ...], ...], list[str]] = {}
    for kind, (groups, _) in kinds.items():
        kinds_by_groups.setdefault(tuple(map(tuple, groups)), []).append(kind)
    if not kinds_by_groups:
        return []
    for option in ("planes", "dead_ports", "degraded"):
        if fabric.option(option) not in (None, "", "1", 1):
            raise UsageError(
                f"reconfigure never: is not supported on a circuit_switch with {option}; "
                "choose collective or iteration"
            )
    ports, kinds_of_share = fabric.circuit_ports or 1, list(kinds_by_groups.values())
    if ports < len(kinds_of_share):
        names = ", ".join(" and ".join(names) for names in kinds_of_share)
        raise UsageError(
            f"reconfigure never: a rank needs a port for each kind of group ({names}), and has "
            f"{ports}; take ports={len(kinds_of_share)} or --reconfigure collective"
        )
    most = ports - len(kinds_of_share) + 1
    shares = [
        [_share(fabric, kinds, names, count, planned) for count in range(1, most + 1)]
        for names in kinds_of_share
    ]

    def total_ps(division: tuple[int, ...]) -> int:
        return sum(own[count - 1].time_ps for own, count in zip(shares, division, strict=True))

    best = min(_divisions(ports, len(kinds_of_share)), key=total_ps)
    return [own[count - 1] for own, count in zip(shares, best, strict=True)]


def _divisions(ports: int, shares: int) -> Iterator[tuple[int, ...]]:
    """Returns all divisions of the ports with at least one for each share."""
    for cuts in combinations(range(1, ports), shares - 1):
        yield tuple(end - start for start, end in pairwise((0, *cuts, ports)))


def _share(
    fabric: Fabric, kinds: Kinds, names: list[str], ports: int, planned: Planned
) -> PortShare:
    """Returns the share of `ports` ports, with its topology and the time of its collectives."""
    groups = kinds[names[0]][0]
    switch = Fabric(fabric.spec, ports=ports, first_configuration="free")
    part = switch.part(groups[0])
    records = [record for name in names for record in kinds[name][1]]
    largest = max(records, key=lambda record: record["count"] * record["size_bytes"])
    plans = []
    for topology in TOPOLOGIES:
        with suppress(AlgorithmError):
            plan, time_ps = planned(largest, part, PREFIX + topology)
            plans.append((time_ps, plan.algorithm))
    _, algorithm = min(plans, key=itemgetter(0))
    circuits = algorithm.removeprefix(PREFIX).partition(",on_links=")[0]
    times = [record["count"] * planned(record, part, PREFIX + circuits)[1] for record in records]
    return PortShare(tuple(names), groups, ports, switch, circuits, sum(times))
