"""Costs of the collectives of groups: with all groups of a kind at once, or with one group alone.

A collective is planned on the part of the fabric that the group of rank 0 occupies. The core unites
the plans of all groups of the kind to one plan on the whole fabric, and verifies it. The united
plan has the time of groups that share fibres, wavelengths and ports.

Experts may receive different numbers of tokens. Their all_to_alls then have a demand. On a circuit
switch, `reconfigure` selects the demand for which the switch's configurations are planned:
| reconfigure | configurations |
|---|---|
| layer | planned for the demand of each exchange |
| iteration | planned once, for the sum of all exchanges; each exchange uses all of these in turn |
| never | one configuration for all exchanges, in which messages may need several circuits |
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import opticoll
from opticoll import _core
from opticoll._core import Fabric, GroupedTraining, Plan
from opticoll.commands.train.energy import Spent, spent_by
from opticoll.commands.train.group_rows import (
    GroupCollectiveRow,
    collective_row,
    demand_of,
)
from opticoll.names import DEFAULT_ALGORITHM, algorithm_spelling
from opticoll.outputs.layout import PICOSECONDS

if TYPE_CHECKING:
    from opticoll._core import CollectiveCost, GroupCollectiveRecord
    from opticoll.inputs.settings import Settings

STATIC_ALGORITHM = "switch_configurations:configurations=one"
"""Planner that uses a single configuration for all steps of a plan."""

NO_COST = {"time_ps": 0, "reconfiguration_ps": 0}
"""Cost of an exchange without bytes."""

MAX_UNITED = 4
"""Number of plans of one group that are united, if the fastest one is slower beside other groups.

An assumption: more plans take more time, and `per_rail` also tries a few plans of a rail.
"""


class GroupPrices:
    """Costs of collectives, which are planned and simulated one after another."""

    def __init__(
        self,
        fabric: Fabric,
        training: GroupedTraining,
        algorithms: Mapping[str, str],
        settings: Settings,
        reconfigure: str | None,
        *,
        united: bool,
    ) -> None:
        # United plans have one sender and one receiver for each message, so switches only forward.
        works = united and any(work != "none" for work in fabric.switch_work)
        self._fabric = Fabric(fabric.spec, in_network="none") if works else fabric
        self._training, self._united = training, united
        self._algorithms, self._settings = algorithms, settings
        self._reconfigure = reconfigure
        self._for_all: Plan | None = None
        self.times_ps: list[int] = []
        self.rows: list[GroupCollectiveRow] = []
        self.violations: list[str] = []
        self.spent: list[Spent] = []
        self.simulator = ""
        self.policy: str | None = None

    def find(self, record: GroupCollectiveRecord) -> None:
        """Plans a collective, verifies the plan, and simulates it."""
        part = self._fabric.part(members_of(self._training, record))
        demand = None
        if record["layer"] is not None:
            demand = travelling(demand_of(self._training, record))
            size = max(map(sum, demand))
            if size == 0:
                self._add(record, None, NO_COST, 0, [])
                return
            plan = self._demanded(demand, part)
            assert plan.collective.demand is not None
            size = plan.collective.demand.largest
        elif record["group"] == "context" and record["collective"] is None:
            size = record["size_bytes"]
            demand = shift(part.ranks, size)
            plan = self._planned(demand, part, DEFAULT_ALGORITHM)
        else:
            plan, size = self._even(record, part), record["size_bytes"]
        wrong = [violation.sentence for violation in plan.verify()]
        cost = _core.collective_cost(plan, size, **self._settings_on(part))
        tensor, _, _, data = self._training.groups
        ranks_of_stage = tensor * self._training.context * data
        # Each rank of a stage sends the messages of its pipeline.
        ranks = 1 if record["group"] == "pipeline" else part.ranks
        together = record["count"] * (ranks_of_stage // ranks)
        self.spent.append(spent_by(part, cost, together))
        self.simulator, self.policy = cost["simulator"], cost["policy"]
        alone_ps = cost["time_ps"]
        if self._united:
            plan, cost, more = self._beside_others(record, part, plan, size, cost, demand)
            wrong += more
        algorithm = plan.algorithm if record["collective"] else None
        self._add(record, algorithm, cost, alone_ps, wrong)

    def _beside_others(
        self,
        record: GroupCollectiveRecord,
        part: Fabric,
        plan: Plan,
        size: int,
        alone: CollectiveCost,
        demand: list[list[int]] | None,
    ) -> tuple[Plan, CollectiveCost, list[str]]:
        """Returns the plan that is fastest if all groups of the kind run it, and its cost.

        The third value lists the violations of the united plan.
        """
        groups = groups_of(self._training, record)
        if len(groups) == 1:
            return plan, alone, []
        best = self._shared(plan, groups, size)
        simulated = [name for name, _, _, left_out in plan.candidates[1:] if not left_out]
        if record["layer"] is not None and self._reconfigure in ("iteration", "never"):
            simulated = []
        for name in simulated[: MAX_UNITED - 1]:
            if best[1]["time_ps"] <= alone["time_ps"]:
                break
            if demand is not None:
                other = self._planned(demand, part, name)
            else:
                kind = record["collective"] or "broadcast"
                other = opticoll.plan(kind, part, name, size=size, **self._settings_on(part))
            tried = self._shared(other, groups, size)
            if not other.verify() and not tried[2] and tried[1]["time_ps"] < best[1]["time_ps"]:
                best = tried
        return best

    def _shared(
        self, plan: Plan, groups: list[list[int]], size: int
    ) -> tuple[Plan, CollectiveCost, list[str]]:
        """Unites the plans of all groups; returns the plan of a group, the cost, and violations."""
        united, whole, wrong = _core.unite(plan, self._fabric, groups, size, **self._settings)
        cost = _core.collective_cost(united, whole, **self._settings)
        return plan, cost, [violation.sentence for violation in wrong]

    def _add(
        self,
        record: GroupCollectiveRecord,
        algorithm: str | None,
        cost: CollectiveCost | Mapping[str, int],
        alone_ps: int,
        wrong: list[str],
    ) -> None:
        """Adds the row of a collective."""
        self.violations += [sentence for sentence in wrong if sentence not in self.violations]
        self.times_ps.append(cost["time_ps"])
        row = collective_row(
            self._training,
            record,
            algorithm,
            time_s=cost["time_ps"] / PICOSECONDS,
            alone_s=alone_ps / PICOSECONDS,
            reconfiguration_s=cost["reconfiguration_ps"] / PICOSECONDS,
            verified=not wrong,
        )
        self.rows.append(row)

    def _even(self, record: GroupCollectiveRecord, part: Fabric) -> Plan:
        # A message is planned as a broadcast to one other rank.
        kind = record["collective"] or "broadcast"
        static = kind == "all_to_all" and self._reconfigure == "never"
        algorithm = STATIC_ALGORITHM if static else self._algorithms[kind]
        return opticoll.plan(
            kind, part, algorithm, size=record["size_bytes"], **self._settings_on(part)
        )

    def _demanded(self, demand: list[list[int]], part: Fabric) -> Plan:
        """Plans an all_to_all; `demand` are the bytes by source and destination."""
        algorithm = self._algorithms["all_to_all"]
        if self._reconfigure not in ("iteration", "never"):
            return self._planned(demand, part, algorithm)
        if self._for_all is None:
            total = self._sum()
            never = self._reconfigure == "never"
            for_all = uniform(total) if never else total
            self._for_all = self._planned(for_all, part, STATIC_ALGORITHM if never else algorithm)
        return Plan.from_text(with_demand(self._for_all.to_text(), demand))

    def _planned(self, demand: list[list[int]], part: Fabric, algorithm: str) -> Plan:
        # The demand is kept even if all blocks are equal, since `with_demand` replaces it.
        core_demand = _core.Demand(demand)
        return _core.plan(
            "all_to_all",
            part,
            algorithm_spelling("all_to_all", algorithm),
            size_bytes=core_demand.largest,
            demand=core_demand,
            **self._settings_on(part),
        )

    def _settings_on(self, part: Fabric) -> Settings:
        """Returns the settings; a server that light joins to others has no policy itself."""
        settings = self._settings
        if part.electrical and not self._fabric.electrical:
            settings = settings.copy()
            settings.pop("policy", None)
        return settings

    def _sum(self) -> list[list[int]]:
        """Returns the sum of all demands of exchanges with unequal blocks, in bytes."""
        ranks = self._training.groups[2]
        total = [[0] * ranks for _ in range(ranks)]
        for record in self._training.made_of():
            if record["layer"] is None:
                continue
            demand = travelling(demand_of(self._training, record))
            for total_row, row in zip(total, demand, strict=True):
                total_row[:] = [
                    before + record["count"] * more
                    for before, more in zip(total_row, row, strict=True)
                ]
        return total


def travelling(demand: list[list[int]]) -> list[list[int]]:
    """Returns a demand without the blocks that a rank keeps for itself."""
    return [
        [0 if source == target else amount for target, amount in enumerate(row)]
        for source, row in enumerate(demand)
    ]


def shift(ranks: int, size_bytes: int) -> list[list[int]]:
    """Returns the demand in which each rank sends `size_bytes` bytes to the next rank of a ring."""
    return [
        [size_bytes if target == (source + 1) % ranks else 0 for target in range(ranks)]
        for source in range(ranks)
    ]


def uniform(demand: list[list[int]]) -> list[list[int]]:
    """Returns a demand with equal blocks between all pairs of ranks, and about the same total."""
    ranks = len(demand)
    block_bytes = max(1, sum(map(sum, demand)) // (ranks * (ranks - 1)))
    return [
        [0 if source == target else block_bytes for target in range(ranks)]
        for source in range(ranks)
    ]


_DEMAND = re.compile(r"^demand (\d+) (.*)$", re.MULTILINE)


def with_demand(plan: str, demand: Sequence[Sequence[int]]) -> str:
    """Replaces the demand in a plan's text, and cuts each new block in the old proportions.

    Each chunk has at least one byte, because plan files cannot express empty chunks.
    """

    def of_source(line: re.Match[str]) -> str:
        source = int(line[1])
        blocks = (of_block(source, block) for block in line[2].split())
        return f"demand {source} {' '.join(blocks)}"

    def of_block(source: int, block: str) -> str:
        target, _, chunks = block.partition("=")
        before = [int(chunk) for chunk in chunks.split("+")]
        whole, wanted = sum(before), demand[source][int(target)]
        edges = [wanted * sum(before[:count]) // whole for count in range(len(before) + 1)]
        sizes = [max(1, end - start) for start, end in pairwise(edges)]
        return f"{target}={'+'.join(map(str, sizes))}"

    return _DEMAND.sub(of_source, plan)


def members_of(training: GroupedTraining, record: GroupCollectiveRecord) -> list[int]:
    """Returns the ranks of the group of rank 0.

    The group of a message consists of the two ranks of neighbouring stages or of a context group.
    """
    return groups_of(training, record)[0]


def groups_of(training: GroupedTraining, record: GroupCollectiveRecord) -> list[list[int]]:
    """Returns the ranks of all groups of a kind, in all stages of the pipeline."""
    tensor, pipeline, expert, data = training.groups
    steps = {
        "tensor": 1,
        "context": tensor,
        "pipeline": tensor * training.context * data,
        "expert": tensor,
        "data": tensor,
        "expert_data": tensor * expert,
    }
    step, size = steps[record["group"]], record["ranks"]
    ranks = range(tensor * training.context * pipeline * data)
    if record["group"] == "pipeline":
        return [[rank, rank + step] for rank in ranks[:-step]]
    if record["collective"] is None:
        # Messages of a ring: each rank of the group sends one to the next.
        size = training.context
    firsts = [rank for rank in ranks if rank // step % size == 0]
    return [[first + step * number for number in range(size)] for first in firsts]
