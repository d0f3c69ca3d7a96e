"""Costs of the collectives of groups: with all groups of a kind at once, or with one group alone.

A collective is planned on the part of the fabric that the group of rank 0 occupies. The core unites
the plans of all groups of the kind to one plan on the whole fabric, and verifies it. The united
plan has the time of groups that share fibres, wavelengths and ports.

On a circuit switch, `reconfigure` selects how often circuits are set up:
| reconfigure | configurations |
|---|---|
| collective | planned for each collective, with all ports |
| iteration | the same, but exchanges of experts share those planned for the sum of all exchanges |
| never | one for the whole iteration: the ports are divided among the kinds of groups |

With the first two values, a collective takes R longer, the time to set up circuits, if the circuits
with which its plan starts are not up. The collectives of a rank that use the same ports run one
after another, on every fabric.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import opticoll
from opticoll import _core
from opticoll._core import Fabric, GroupedTraining, Outcome, Plan
from opticoll.commands.train.energy import Spent, spent_by
from opticoll.commands.train.group_rows import (
    GroupCollectiveRow,
    collective_row,
    demand_of,
)
from opticoll.commands.train.port_shares import PortShare, divide_ports
from opticoll.names import DEFAULT_ALGORITHM, algorithm_spelling
from opticoll.outputs.layout import PICOSECONDS

if TYPE_CHECKING:
    from opticoll._core import CollectiveCost, GroupCollectiveRecord
    from opticoll.inputs.settings import Settings

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
        interleaved: bool,
    ) -> None:
        # United plans have one sender and one receiver for each message, so switches only forward.
        works = united and any(work != "none" for work in fabric.switch_work)
        self._fabric = Fabric(fabric.spec, in_network="none") if works else fabric
        self._training, self._united = training, united
        self._algorithms, self._settings = algorithms, settings
        self._reconfigure, self._interleaved = reconfigure, interleaved
        self._for_all: str | None = None
        self._plans: list[Plan | None] = []
        self._within: set[str] = set()
        self.shares: list[PortShare] = []
        if reconfigure == "never":
            # No circuit is set up, so no policy charges anything.
            self._settings = settings | {"policy": "free"}
            self.shares = divide_ports(fabric, self._kinds(), self._alone)
        self.times_ps: list[int] = []
        self.rows: list[GroupCollectiveRow] = []
        self.violations: list[str] = []
        self.spent: list[Spent] = []
        self.simulator = ""
        self.policy: str | None = None

    def find(self, record: GroupCollectiveRecord) -> None:
        """Plans a collective, verifies the plan, and simulates it."""
        fabric, groups, algorithm = self._fabric, groups_of(self._training, record), None
        share = next((share for share in self.shares if record["group"] in share.kinds), None)
        if share is not None:
            fabric, groups, algorithm = share.fabric, share.groups, share.algorithm
        part = fabric.part(groups[0])
        if are_within_servers(groups, fabric):
            self._within.add(record["group"])
        demand = self._demand(record, part.ranks)
        if demand is not None and not any(map(any, demand)):
            self._add(record, None, NO_COST, 0, [])
            return
        plan = self._plan(record, part, demand, algorithm)
        size = size_of(plan, record)
        wrong = [violation.sentence for violation in plan.verify()]
        cost = _core.collective_cost(plan, size, **self._settings_on(part))
        tensor, _, _, data = self._training.groups
        ranks_of_stage = tensor * self._training.context * data
        # Each rank of a stage sends the messages of its pipeline, and a plan has several of them.
        ranks, messages = part.ranks, 1
        if record["group"] == "pipeline":
            ranks = 1
            messages = sum(amount > 0 for row in demand or [[1]] for amount in row)
        together = record["count"] * (ranks_of_stage // ranks) / messages
        self.spent.append(spent_by(part, cost, together))
        if record["group"] not in self._within or not self.simulator:
            self.simulator, self.policy = cost["simulator"], cost["policy"]
        alone_ps = cost["time_ps"]
        shown = plan.algorithm if record["collective"] else None
        united = plan
        if self._united and len(groups) > 1:
            plan, united, cost, more = self._beside_others(
                record, fabric, groups, plan, cost, demand, fixed=algorithm is not None
            )
            shown = plan.algorithm if record["collective"] else None
            wrong += more
        self._add(record, shown, cost, alone_ps, wrong, united)

    def iterate(self) -> Outcome:
        """Simulates an iteration in which the collectives take the times that were found."""
        if not self._united:
            return self._training.with_times(self.times_ps)
        kinds = [record["group"] for record in self._training.made_of()]
        sets = [self._port_set(kind) for kind in kinds]
        if self.shares or self._reconfigure is None or self.policy is None:
            self.violations += [
                f"the collectives of the {' and '.join(share.kinds)} groups need other circuits"
                for share in self.shares
                if not _core.circuits_agree(
                    [
                        plan
                        for plan, kind in zip(self._plans, kinds, strict=True)
                        if plan is not None and kind in share.kinds
                    ]
                )
            ]
            return self._training.with_times(self.times_ps, sets)
        setup_ps = _core.uncharged_setup_ps(self._fabric, self.policy)
        plans = self._plans if setup_ps else []
        ports = self._fabric.circuit_ports or 1
        return self._training.with_times(self.times_ps, sets, plans, ports, setup_ps)

    def _port_set(self, kind: str) -> int:
        """Returns the index of the set of ports that a kind of group uses.

        Groups within a server use other ports than groups across servers.
        """
        for number, share in enumerate(self.shares):
            if kind in share.kinds:
                return number
        return int(kind in self._within)

    def _kinds(self) -> dict[str, tuple[list[list[int]], list[GroupCollectiveRecord]]]:
        """Returns the groups and the collectives of each kind of group that needs circuits."""
        kinds: dict[str, tuple[list[list[int]], list[GroupCollectiveRecord]]] = {}
        for record in self._training.made_of():
            groups = groups_of(self._training, record)
            if record["group"] == "pipeline":
                groups = pipelines_of(self._training)
            kinds.setdefault(record["group"], (groups, []))[1].append(record)
        return kinds

    def _alone(
        self, record: GroupCollectiveRecord, part: Fabric, algorithm: str
    ) -> tuple[Plan, int]:
        """Returns the plan of a collective on a part of a fabric, and its time in picoseconds."""
        plan = self._plan(record, part, self._demand(record, part.ranks), algorithm)
        cost = _core.collective_cost(plan, size_of(plan, record), **self._settings)
        return plan, cost["time_ps"]

    def _demand(self, record: GroupCollectiveRecord, ranks: int) -> list[list[int]] | None:
        """Returns the bytes by source and destination; None for a collective of equal blocks."""
        if record["layer"] is not None:
            return travelling(demand_of(self._training, record))
        if record["group"] == "context" and record["collective"] is None:
            return ring_messages(ranks, record["size_bytes"], {1})
        if record["group"] == "pipeline" and self._reconfigure == "never":
            demand = ring_messages(ranks, record["size_bytes"], {1, ranks - 1})
            if ranks > 2 and not self._interleaved:
                # Without interleaving, the last stage sends nothing to the first.
                demand[0][-1] = demand[-1][0] = 0
            return demand
        return None

    def _plan(
        self,
        record: GroupCollectiveRecord,
        part: Fabric,
        demand: list[list[int]] | None,
        algorithm: str | None,
    ) -> Plan:
        """Plans a collective by `algorithm`, or by the algorithm that the user chose."""
        # A message is planned as a broadcast to one other rank.
        kind = record["collective"] or "broadcast"
        if demand is None:
            algorithm = algorithm or self._algorithms[kind]
            size = record["size_bytes"]
            return opticoll.plan(kind, part, algorithm, size=size, **self._settings_on(part))
        if record["layer"] is None:
            return self._planned(demand, part, algorithm or DEFAULT_ALGORITHM)
        algorithm = algorithm or self._algorithms["all_to_all"]
        if self._reconfigure != "iteration":
            return self._planned(demand, part, algorithm)
        if self._for_all is None:
            self._for_all = self._plan_of_sum(part, algorithm)
        return Plan.from_text(with_demand(self._for_all, demand))

    def _plan_of_sum(self, part: Fabric, algorithm: str) -> str:
        """Plans the sum of all exchanges of experts; returns the plan's text.

        Each exchange uses all configurations, so a setup counts once for each exchange.
        """
        setup_ps = part.option("reconfiguration")
        records = self._training.made_of()
        exchanges = sum(record["count"] for record in records if record["layer"] is not None)
        planned_on = part
        if isinstance(setup_ps, int):
            planned_on = Fabric(part.spec, reconfiguration=f"{setup_ps * exchanges}ps")
        text = self._planned(self._sum(), planned_on, algorithm).to_text()
        return text.replace(f"fabric {planned_on.spec}\n", f"fabric {part.spec}\n", 1)

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

    def _beside_others(
        self,
        record: GroupCollectiveRecord,
        fabric: Fabric,
        groups: list[list[int]],
        plan: Plan,
        alone: CollectiveCost,
        demand: list[list[int]] | None,
        *,
        fixed: bool,
    ) -> tuple[Plan, Plan, CollectiveCost, list[str]]:
        """Returns the plan that is fastest if all groups of the kind run it.

        The second value is the united plan, the third its cost, and the fourth lists its
        violations. If `fixed`, no other plan is tried.
        """
        size = size_of(plan, record)
        best = self._shared(plan, fabric, groups, size)
        simulated = [name for name, _, _, left_out in plan.candidates[1:] if not left_out]
        if fixed or (record["layer"] is not None and self._reconfigure == "iteration"):
            simulated = []
        part = fabric.part(groups[0])
        for name in simulated[: MAX_UNITED - 1]:
            if best[2]["time_ps"] <= alone["time_ps"]:
                break
            other = self._plan(record, part, demand, name)
            tried = self._shared(other, fabric, groups, size)
            if not other.verify() and not tried[3] and tried[2]["time_ps"] < best[2]["time_ps"]:
                best = tried
        return best

    def _shared(
        self, plan: Plan, fabric: Fabric, groups: list[list[int]], size: int
    ) -> tuple[Plan, Plan, CollectiveCost, list[str]]:
        """Unites the plans of all groups."""
        united, whole, wrong = _core.unite(plan, fabric, groups, size, **self._settings)
        cost = _core.collective_cost(united, whole, **self._settings)
        return plan, united, cost, [violation.sentence for violation in wrong]

    def _add(
        self,
        record: GroupCollectiveRecord,
        algorithm: str | None,
        cost: CollectiveCost | Mapping[str, int],
        alone_ps: int,
        wrong: list[str],
        plan: Plan | None = None,
    ) -> None:
        """Adds the row of a collective; `plan` is None if nothing is sent."""
        self.violations += [sentence for sentence in wrong if sentence not in self.violations]
        self.times_ps.append(cost["time_ps"])
        self._plans.append(plan)
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


def ring_messages(ranks: int, size_bytes: int, places: set[int]) -> list[list[int]]:
    """Returns the demand in which each rank sends `size_bytes` bytes `places` ahead on a ring."""
    return [
        [size_bytes if (target - source) % ranks in places else 0 for target in range(ranks)]
        for source in range(ranks)
    ]


def are_within_servers(groups: list[list[int]], fabric: Fabric) -> bool:
    """Returns whether each group is within one of several servers of GPUs."""
    size = fabric.group_size
    if fabric.family != "gpu_servers" or size is None:
        return False
    return all(len({rank // size for rank in group}) == 1 for group in groups)


def size_of(plan: Plan, record: GroupCollectiveRecord) -> int:
    """Returns the size in bytes with which the plan of a collective is simulated."""
    demand = plan.collective.demand
    return record["size_bytes"] if demand is None else demand.largest


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


def pipelines_of(training: GroupedTraining) -> list[list[int]]:
    """Returns the ranks of all pipelines: one rank of each stage."""
    tensor, pipeline, _, data = training.groups
    step = tensor * training.context * data
    return [[first + step * stage for stage in range(pipeline)] for first in range(step)]


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
