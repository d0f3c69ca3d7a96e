"""Division of a switch's ports among kinds of groups, for circuits that stay up.

Each kind of group receives a number of the ports of each rank. Kinds with the same groups share
their ports. On its ports, a group has the circuits of one topology of the planner `static`: the one
that is fastest for the collective that sends the most bytes. All collectives of the kind use these
circuits.

Of all divisions of the ports, the one with the smallest sum of count x time over all collectives is
taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import TYPE_CHECKING

from opticoll._core import Fabric
from opticoll.errors import UsageError

if TYPE_CHECKING:
    from opticoll._core import GroupCollectiveRecord, Plan

    Kinds = Mapping[str, tuple[list[list[int]], list[GroupCollectiveRecord]]]
    """Groups and collectives of each kind of group, by the name of the kind."""

    Planned = Callable[[GroupCollectiveRecord, Fabric, str], tuple[Plan, int]]
    """Returns the plan of a collective and its time in picoseconds.

    Parameters are the collective, the group's part of a fabric, and the algorithm.
    """

PREFIX = "static:topology="
"""Specification of the planner of a single configuration, before the name of a topology."""


@dataclass(frozen=True)
class PortShare:
    """Ports that the groups of some kinds hold for a whole iteration.

    `ports` is the number of ports of each rank, and `fabric` is the switch with these ports alone.
    `algorithm` plans the collectives on the circuits of `topology`.
    """

    kinds: tuple[str, ...]
    groups: list[list[int]]
    ports: int
    fabric: Fabric
    topology: str
    time_ps: int
    """Sum of count x time of all collectives, of one group alone."""

    @property
    def algorithm(self) -> str:
        """Returns the specification of the planner."""
        return PREFIX + self.topology


def divide_ports(fabric: Fabric, kinds: Kinds, planned: Planned) -> list[PortShare]:
    """Divides the ports of a circuit switch among kinds of groups.

    Raises a UsageError if there are fewer ports than kinds of different groups.
    """
    alike: dict[tuple[tuple[int, ...], ...], list[str]] = {}
    for kind, (groups, _) in kinds.items():
        alike.setdefault(tuple(map(tuple, groups)), []).append(kind)
    ports, holders = int(fabric.option("ports") or 1), list(alike.values())
    if ports < len(holders):
        names = ", ".join(" and ".join(names) for names in holders)
        raise UsageError(
            f"reconfigure never: a rank needs a port for each kind of group ({names}), and the "
            f"switch has {ports}; take ports={len(holders)} or --reconfigure collective"
        )
    shares = [
        [_share(fabric, kinds, names, count, planned) for count in _counts(ports, len(holders))]
        for names in holders
    ]

    def total_ps(division: tuple[int, ...]) -> int:
        return sum(of[count - 1].time_ps for of, count in zip(shares, division, strict=True))

    best = min(_divisions(ports, len(holders)), key=total_ps)
    return [of[count - 1] for of, count in zip(shares, best, strict=True)]


def _counts(ports: int, holders: int) -> range:
    """Returns the numbers of ports that one of several holders can have."""
    return range(1, ports - holders + 2)


def _divisions(ports: int, holders: int) -> Iterator[tuple[int, ...]]:
    """Returns all divisions of the ports with at least one for each holder."""
    for cuts in combinations(range(1, ports), holders - 1):
        yield tuple(end - start for start, end in pairwise((0, *cuts, ports)))


def _share(
    fabric: Fabric, kinds: Kinds, names: list[str], ports: int, planned: Planned
) -> PortShare:
    """Returns the share of `ports` ports, with the topology and the time of its collectives."""
    groups = kinds[names[0]][0]
    switch = Fabric(fabric.spec, ports=ports, first_configuration="free")
    part = switch.part(groups[0])
    records = [record for name in names for record in kinds[name][1]]
    largest = max(records, key=lambda record: record["count"] * record["size_bytes"])
    plan, _ = planned(largest, part, "static")
    topology = plan.algorithm.removeprefix(PREFIX).partition(",on_links=")[0]
    times = [record["count"] * planned(record, part, PREFIX + topology)[1] for record in records]
    return PortShare(tuple(names), groups, ports, switch, topology, sum(times))
