"""Both verifiers give the same verdict on changed plans of every family of fabrics."""

from __future__ import annotations

import pytest

import opticoll
from plan_mutants import mutated
from support import compare_mutants, core_kinds, reference_kinds
from test_reference import CASES, UNREADABLE

STAR = "passive_star:ranks=6,wavelengths=3,transmitters=2,receivers=2"
SERVERS = "gpu_servers:model=dgx_h100,boxes=3,"
ONE = "circuit_switch:ranks=6,startup=100ns,latency=100ns,reconfiguration=1us"
TWO = "circuit_switch:ranks=6,ports=2,planes=2,latency=100ns"
FEW = "circuit_switch:ranks=6,ports=2,planes=2,switch_ports=3,dead_ports=5.1"
CUT = "circuit_switch:ranks=6,latency=100ns,reconfiguration=1ms,forwarding=cut_through"
BESIDE = "circuit_switch:ranks=6,latency=100ns,packet_rate=100Gb/s,packet_latency=1us"
EACH = "switch_configurations:algorithm=cyclic_doubling"

# Collective, algorithm, fabric.
PLANS = [
    *((kind, "binomial", "crossbar:ranks=64") for kind in ("scatter", "gather")),
    ("all_gather", "recursive_doubling", "crossbar:ranks=32"),
    ("all_gather", "bruck", "crossbar:ranks=37"),
    ("broadcast", "scatter_all_gather", "crossbar:ranks=32"),
    *(("all_gather", name, "crossbar:ranks=17") for name in ("ring:order=shuffled", "direct")),
    *((kind, "direct", STAR) for kind in ("all_to_all", "all_reduce")),
    ("all_gather", "direct:order=at_once", STAR),
    *((kind, "binomial", STAR) for kind in ("reduce", "scatter")),
    ("all_gather", "per_rail", f"{SERVERS}outside=circuit_switch/ports=2"),
    ("all_reduce", "per_rail:outside=ring", f"{SERVERS}outside=wdm_ring/wavelengths=2"),
    ("broadcast", "per_rail", f"{SERVERS}outside=wdm_line/wavelengths=3"),
    ("all_to_all", "per_rail", f"{SERVERS}outside=circuit_switch/planes=2/ports=2"),
    ("all_gather", "ring", f"{SERVERS}outside=wdm_ring/wavelengths=4,layout=flat"),
    ("all_gather", "ring", "lightpath_grid:ranks=5,ports=1"),
    ("all_gather", "recursive_doubling", "lightpath_grid:ranks=8,ports=3"),
    ("all_reduce", "recursive_doubling", "lightpath_grid:ranks=6,ports=2"),
    ("broadcast", "linear", "lightpath_grid:ranks=7,ports=2"),
    ("all_to_all", "direct", "lightpath_grid:ranks=4,ports=2"),
    ("barrier", "recursive_doubling", "lightpath_grid:ranks=8,ports=2"),
    ("all_reduce", EACH, BESIDE),
    ("all_to_all", "switch_configurations:algorithm=direct,configurations=packet", BESIDE),
    *(("all_to_all", "shifts:shifts=1x2", fabric) for fabric in (ONE, CUT)),
    *(("all_reduce", f"{EACH},configurations=one", fabric) for fabric in (ONE, CUT)),
    *(("all_to_all", "direct", fabric) for fabric in (TWO, FEW, f"{TWO},dead_ports=1.0+4.1")),
    ("all_to_all", "direct", f"{FEW},forwarding=cut_through"),
    ("all_reduce", "ring", FEW),
    ("all_gather", "direct:order=at_once", TWO),
    ("all_to_all", "shifts:shifts=all,relays=all", "circuit_switch:ranks=4,latency=100ns"),
    *((kind, "static:topology=kautz", "circuit_switch:ranks=6,ports=2")
      for kind in ("all_gather", "all_to_all")),
    ("all_reduce", "halving_doubling", "wss_grid:rows=2,columns=4,plan=xor"),
    ("all_reduce", "dual_plane_halving_doubling", "wss_grid:rows=2,columns=2,wavelengths=2"),
    ("all_reduce", "halving_doubling", "wss_grid:rows=3,columns=3"),
    ("all_gather", "ring", "wss_grid:rows=2,columns=3,plan=cyclic"),
    ("all_to_all", "direct", "wss_grid:rows=2,columns=3"),
    ("broadcast", "binomial", "wss_grid:rows=2,columns=4,dead_transceivers=1.row"),
    ("all_gather", "direct", "wss_grid:rows=2,columns=3,nodes=0-1+3-5"),
    ("all_reduce", "ring", "wss_grid:rows=2,columns=3,dead_ports=row0.1+column2.1"),
]  # fmt: skip


@pytest.mark.parametrize(("collective", "algorithm", "fabric"), PLANS)
def test_mutants_of_plans_are_judged_alike(collective: str, algorithm: str, fabric: str) -> None:
    plan = opticoll.plan(collective, fabric, algorithm, size="6KiB")
    found = compare_mutants(plan.to_text(), mutated, [1, 1, 2, 3] * 30)
    assert len(found) > 40
    assert sum(map(bool, found)) > 20


def test_mutants_of_plans_by_hand_are_judged_alike() -> None:
    kinds: set[str] = set()
    for claim in CASES.keys() - UNREADABLE:
        text, _ = CASES[claim]
        kinds |= set().union(*compare_mutants(text, mutated, [1, 1, 2, 3] * 3, sound=False))
    assert len(kinds) > 20, kinds


@pytest.mark.parametrize(
    ("way", "sound"),
    [
        # On a row of four, wavelength d leads d + 1 ports up, modulo 4, and not back.
        ("1>2 row.0", True),
        ("2>1 row.0", False),
        ("3>0 row.0", True),
        ("0>3 row.0", False),
        ("2>1 row.2", True),
        ("1>2 row.2", False),
        ("1>3 row.1", True),
    ],
)
def test_cyclic_wavelengths_lead_up(way: str, sound: bool) -> None:
    source, destination = way.split()[0].split(">")
    text = (
        "opticoll plan 1\ncollective all_to_all ranks=4 root=0 pieces=1\n"
        "fabric wss_grid:rows=1,columns=4,plan=cyclic\nalgorithm by hand\nsteps 1\nslot 0\n"
        f"copy {4 * int(source) + int(destination)} {way}\nend 1\n"
    )
    for kinds in (core_kinds(text), reference_kinds(text)):
        assert ("path" in kinds) is not sound
