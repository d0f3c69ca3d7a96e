"""Costs of the collectives of groups, with each group alone on its part of the fabric.

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
from opticoll.names import algorithm_spelling
from opticoll.outputs.layout import PICOSECONDS

if TYPE_CHECKING:
    from opticoll._core import GroupCollectiveRecord
    from opticoll.inputs.settings import Settings

STATIC_ALGORITHM = "switch_configurations:configurations=one"
"""Planner that uses a single configuration for all steps of a plan."""


class GroupPrices:
    """Costs of collectives, which are planned and simulated one after another."""

    def __init__(
        self,
        fabric: Fabric,
        training: GroupedTraining,
        algorithms: Mapping[str, str],
        settings: Settings,
        reconfigure: str | None,
    ) -> None:
        self._fabric, self._training = fabric, training
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
        if record["layer"] is None:
            plan, size = self._even(record, part), record["size_bytes"]
        else:
            demand = travelling(demand_of(self._training, record))
            size = max(map(sum, demand))
            if size == 0:
                self._add(record, None, (0, 0), [])
                return
            plan = self._demanded(demand, part)
            assert plan.collective.demand is not None
            size = plan.collective.demand.largest
        wrong = [violation.sentence for violation in plan.verify()]
        cost = _core.collective_cost(plan, size, **self._settings_on(part))
        tensor, _, _, data = self._training.groups
        ranks_of_stage = tensor * self._training.context * data
        # Each rank of a stage sends the messages of its pipeline and of its context group.
        ranks = record["ranks"] if record["collective"] else 1
        together = record["count"] * (ranks_of_stage // ranks)
        self.spent.append(spent_by(part, cost, together))
        self.simulator, self.policy = cost["simulator"], cost["policy"]
        algorithm = plan.algorithm if record["collective"] else None
        self._add(record, algorithm, (cost["time_ps"], cost["reconfiguration_ps"]), wrong)

    def _add(
        self,
        record: GroupCollectiveRecord,
        algorithm: str | None,
        times_ps: tuple[int, int],
        wrong: list[str],
    ) -> None:
        """Adds the row of a collective.

        `times_ps` are its total time and its reconfiguration time.
        """
        self.violations += [sentence for sentence in wrong if sentence not in self.violations]
        self.times_ps.append(times_ps[0])
        time_s, reconfiguration_s = (time / PICOSECONDS for time in times_ps)
        row = collective_row(
            self._training, record, algorithm, time_s, reconfiguration_s, verified=not wrong
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
    tensor, _, expert, data = training.groups
    steps = {
        "tensor": 1,
        "context": tensor,
        "pipeline": tensor * training.context * data,
        "expert": tensor,
        "data": tensor,
        "expert_data": tensor * expert,
    }
    step = steps[record["group"]]
    return [step * number for number in range(record["ranks"])]
