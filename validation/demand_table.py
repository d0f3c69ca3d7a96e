"""The gaps of `decomposition` to the bound `direct`, as a table of `docs/circuit-switches.md`.

python validation/demand_table.py
"""

from __future__ import annotations

import opticoll
from opticoll import _core

RANKS = 128
SIZE = 1 << 30
RATE = 800 * 10**9
DEMANDS = {
    "random": "random:seed=0",
    "Zipf, exponent 1.2": "zipf:exponent=1.2,seed=0",
    "one-hot": "one_hot:seed=0",
}
PLANES = (1, 2, 4)
POLICIES = ("all_stop", "planes", "per_port")
SHARES = (0.001, 0.01, 0.1)
"""The reconfiguration time as a share of the mean time that a rank sends."""


def gap(demand: str, planes: int, policy: str, share: float) -> float:
    """Returns how much longer the plan takes than the bound, as a share of the bound."""
    wanted = _core.generated_demand(demand, RANKS)
    mean = sum(map(sum, wanted.amounts)) / RANKS / wanted.largest
    change = round(mean * SIZE * 8 / RATE * share * 1e9)
    fabric = opticoll.Fabric(
        f"circuit_switch:ranks={RANKS},ports={planes},planes={planes},"
        f"rate=800Gb/s,reconfiguration={change}ns"
    )
    plan = opticoll.plan(
        "all_to_all", fabric, "decomposition", size=SIZE, demand=demand, policy=policy
    )
    violations = plan.verify()
    assert not violations, violations[0]
    time_ps = plan.simulate(SIZE, policy=policy).time_ps
    _, bounds = _core.time_bounds("all_to_all", fabric, SIZE, policy=policy, demand=wanted)
    (least,) = (time for time, name, *_ in bounds if name == "direct")
    return time_ps / least - 1


def main() -> None:
    """Prints the table."""
    columns = [(policy, planes) for policy in POLICIES for planes in PLANES]
    heads = [f"`{policy}`, {planes}" for policy, planes in columns]
    print("| demand | R | " + " | ".join(heads) + " |")
    print("|---|--:|" + "--:|" * len(columns))
    for name, demand in DEMANDS.items():
        for share in SHARES:
            gaps = [100 * gap(demand, planes, policy, share) for policy, planes in columns]
            cells = " | ".join(f"{one:.1f}" for one in gaps)
            print(f"| {name} | {100 * share:g} % | {cells} |", flush=True)


if __name__ == "__main__":
    main()
