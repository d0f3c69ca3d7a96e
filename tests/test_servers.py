"""Servers of GPUs joined by other fabrics: both verifiers judge alike, commands agree."""

import random
import re

import pytest

import opticoll
from opticoll import errors
from support import Run, answer, compare_mutants, line_mutation

SERVERS = "gpu_servers:model=dgx_h100,boxes=3,"

CASES = [
    ("all_gather", "per_rail", "outside=circuit_switch/ports=2"),
    ("all_reduce", "per_rail:outside=ring", "outside=wdm_ring/wavelengths=2"),
    ("broadcast", "per_rail", "outside=wdm_line/wavelengths=3"),
    ("all_to_all", "per_rail", "outside=circuit_switch/planes=2/ports=2"),
    ("all_gather", "ring", "outside=wdm_ring/wavelengths=4,layout=flat"),
]


def mutated(line: str, generator: random.Random) -> str:
    """Returns a line of a plan with another rank, light, link or slot; or another fabric."""
    if line.startswith("fabric"):
        others = {
            "layout=flat": "layout=rails",
            "wavelengths=2": "wavelengths=1",
            "wavelengths=3": "wavelengths=2",
            "ports=2": "ports=1",
        }
        for old, new in others.items():
            line = line.replace(old, new)
        return line
    words = line.split()
    place = generator.randrange(1, len(words))
    if place == 2:
        ranks = words[2].split(">")
        ranks[generator.randrange(len(ranks))] = str(generator.randrange(24))
        words[2] = ">".join(ranks)
    elif words[place] == "packet":
        words[place] = generator.choice(["0.0", "0.1", "cw 0.0", "0.0 via 0"])
    elif generator.random() < 0.3:
        words = [*words[:3], "packet"]
    elif words[place - 1] == "via":
        links = words[place].split(".")
        links[generator.randrange(len(links))] = str(generator.randrange(40))
        words[place] = ".".join(links)
    elif re.fullmatch(r"\d+\.\d+", words[place]):
        words[place] = f"{generator.randrange(2)}.{generator.randrange(3)}"
    return " ".join(words)


@pytest.mark.parametrize(("collective", "algorithm", "options"), CASES)
def test_both_verifiers_judge_changed_plans_alike(
    collective: str, algorithm: str, options: str
) -> None:
    plan = opticoll.plan(collective, SERVERS + options, algorithm, size="48KiB")
    found = compare_mutants(plan.to_text(), line_mutation(mutated), [1, 1, 2] * 15)
    assert sum(bool(kinds) for kinds in found) > 5
    assert {"path", "route"} & set().union(*found)


def test_the_group_of_a_rail_has_the_plan_of_the_outside(run: Run) -> None:
    outside = "circuit_switch:ranks=4,ports=2,rate=400Gb/s,reconfiguration=10us"
    servers = f"dgx_h100:boxes=4,outside={re.sub('[:,]', '/', outside)}"
    part = opticoll.Fabric(servers).part([1, 9, 17, 25])
    assert part == opticoll.Fabric(outside)
    model = ("--model", "gpt:layers=2,width=1024", "--batch", "1", "--tensor-parallel", "8")
    row = answer(run, "train", *model, "--device", "h100", "--fabric", servers)
    priced = {one["group"]: one for one in row["groups"]["collectives"]}
    assert (priced["tensor"]["ranks"], priced["data"]["ranks"]) == (8, 4)
    size = f"{priced['data']['size_bytes']}B"
    alone = answer(run, "plan", "all_reduce", "--fabric", outside, "--size", size)
    assert priced["data"]["time_s"] == alone["time_s"]
    server = answer(
        *(run, "plan", "all_reduce", "--fabric", "dgx_h100:in_network=none,library=none"),
        *("--size", f"{priced['tensor']['size_bytes']}B"),
    )
    assert priced["tensor"]["alone_s"] == server["time_s"]
    # Packets of all servers together are rounded anew: by at most 1 ps in each step.
    rounding = round((priced["tensor"]["time_s"] - server["time_s"]) * 1e12)
    assert 0 <= rounding <= server["steps"]


def test_a_ring_among_some_servers_leaves_each_of_them_at_every_rank() -> None:
    def time(ranks: str, boxes: int, algorithm: str) -> int:
        fabric = f"dgx_a100:boxes={boxes},library=none,outside=crossbar/rate=12.5GB/s{ranks}"
        plan = opticoll.plan("all_reduce", fabric, algorithm, size="64MB")
        return int(plan.simulate().time_ps)

    ring = "ring:channels=all"
    for ranks in ("0-15", "8-15+24-31"):
        assert time(f",members={ranks}", 4, ring) == time("", 2, ring)
    # Two ranks of each server: two channels, each with half of the data.
    some = ",members=0-1+8-9+16-17+24-25"
    assert time(some, 4, ring) == time(some, 4, "ring:channels=2") < time(some, 4, "ring")
    with pytest.raises(errors.AlgorithmError, match="at most 2"):
        time(some, 4, "ring:channels=3")
    with pytest.raises(errors.AlgorithmError, match="no groups of ranks"):
        time(",members=0-2+8", 4, "ring:channels=2")
