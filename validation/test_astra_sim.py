"""ASTRA-sim runs collectives that opticoll exports, and takes the time that its formulas state.

`OPTICOLL_ASTRA_SIM` names its program `AstraSim_Analytical_Congestion_Aware`. Without it the tests
are skipped; `tests/test_chakra.py` then checks the same times by the formulas alone.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

import opticoll
from chakra_files import COLLECTIVE, header, node
from opticoll.formats import chakra_traces

ASTRA_SIM = os.environ.get("OPTICOLL_ASTRA_SIM")

NUMBERS = {"all_reduce": 0, "all_gather": 2, "all_to_all": 6, "reduce_scatter": 7}
"""Types of collectives, as workloads have them."""

MIB = 2**20

CASES = {
    "custom ring": ("all_gather", "ring", 16, 300_465),
    "custom, both ways": ("all_gather", "ring_bidirectional", 16, 160_248),
    "all_gather": ("all_gather", "ring", 64, 63 * 20_031),
    "all_reduce": ("all_reduce", "ring", 64, 126 * 805),
    "reduce_scatter": ("reduce_scatter", "ring", 64, 63 * 805),
}
"""Collective, algorithm, ranks, and the time in ns on a ring of 50 GB/s and 500 ns a hop."""


@pytest.mark.skipif(not ASTRA_SIM, reason="OPTICOLL_ASTRA_SIM names no program")
@pytest.mark.parametrize("case", CASES)
def test_astra_sim_takes_the_time_of_its_formula(case: str, tmp_path: Path) -> None:
    kind, algorithm, ranks, expected = CASES[case]
    plan = opticoll.plan(kind, f"electrical_ring:ranks={ranks}", algorithm)
    assert plan.verify() == []
    plan.export(tmp_path / "custom.et", size=f"{MIB}B")
    assert len(chakra_traces.paths_of(tmp_path / "custom.0.et")) == ranks
    (tmp_path / "traces").mkdir()
    for rank in range(ranks):
        told = {"is_cpu_op": False, "comm_type": NUMBERS[kind], "comm_size": MIB}
        content = header({}, "0.0.4") + node(0, COLLECTIVE, **told)
        (tmp_path / f"traces/ours.{rank}.et").write_bytes(content)
    system: dict[str, object] = {
        "scheduling-policy": "LIFO",
        "endpoint-delay": 10,
        "active-chunks-per-dimension": 1,
        "preferred-dataset-splits": 1,
        "collective-optimization": "localBWAware",
        "local-mem-bw": 1600,
        "boost-mode": 0,
    }
    for name in NUMBERS:
        system[f"{name.replace('_', '-')}-implementation"] = ["ring"]
    custom = f"{kind.replace('_', '-')}-implementation"
    system[f"{custom}-custom"] = [str(tmp_path / "custom")]
    del system[custom]
    (tmp_path / "system.json").write_text(json.dumps(system))
    (tmp_path / "memory.json").write_text(json.dumps({"memory-type": "NO_MEMORY_EXPANSION"}))
    (tmp_path / "network.yml").write_text(
        f"topology: [ Ring ]\nnpus_count: [ {ranks} ]\nbandwidth: [ 50.0 ]\nlatency: [ 500.0 ]\n"
    )
    ran = subprocess.run(
        [
            str(ASTRA_SIM),
            f"--workload-configuration={tmp_path}/traces/ours",
            f"--system-configuration={tmp_path}/system.json",
            f"--remote-memory-configuration={tmp_path}/memory.json",
            f"--network-configuration={tmp_path}/network.yml",
        ],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        cwd=tmp_path,
    )
    # The exit code is always 0: only the output of every rank counts.
    ends = re.findall(r"sys\[(\d+)\] finished, (\d+) cycles", ran.stdout + ran.stderr)
    assert {int(rank) for rank, _ in ends} == set(range(ranks)), ran.stdout[-2000:]
    assert max(int(time) for _, time in ends) == expected
