"""Plans of every collective on every family of fabrics, as MSCCL XML: read back, proved by both
verifiers, and carried out by MPI processes, byte for byte.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import opticoll
from opticoll import Program
from opticoll.execution import mpi
from opticoll.execution.payload import payload_of
from opticoll.names import has_root
from opticoll.reference.msccl import read_msccl
from opticoll.reference.program import verify_program

KINDS = [one["name"] for one in opticoll.records("collectives") if one["name"] != "barrier"]

FABRICS = (
    "wdm_ring:ranks=16,wavelengths=4",
    "wss_grid:rows=3,columns=4,wavelengths=6",
    "lightpath_grid:ranks=12,ports=3",
    "passive_star:ranks=8,wavelengths=8",
    "circuit_switch:ranks=8,ports=2",
    "crossbar:ranks=11",
    "fat_tree:down=4x4,up=1x2",
    "dragonfly:terminals_per_router=2,routers_per_group=2,global_per_router=1",
    "torus:dims=4x4",
    "mesh:dims=3x4",
    "ocs_torus:dims=2x2x2,cube=2",
    "electrical_ring:ranks=8",
    "ladder:rungs=4",
    "line:ranks=8",
    "hypercube:ranks=8",
    "tree:ranks=9",
    "wdm_ladder:rungs=4,wavelengths=4",
    "wdm_line:ranks=8,wavelengths=4",
    "wdm_tree:ranks=9,wavelengths=4",
    "wdm_hypercube:ranks=8,wavelengths=4",
    "wdm_torus:dims=4x2,wavelengths=4",
    "wdm_mesh:dims=4x2,wavelengths=4",
    "wdm_graph:ranks=8,links=0-1+1-2+2-3+3-4+4-5+5-6+6-7+7-0+0-4,wavelengths=4",
    "fully_connected:ranks=9",
    "gpu_servers:model=dgx1",
    "gpu_servers:model=dgx_h100,boxes=2,outside=circuit_switch/ports=2",
    "custom:ranks=8,switches=1,links=0-1+1-2+2-3+3-0+4-5+5-6+6-7+7-4+0-8+2-8+4-8+6-8",
)

SIZE = "64B"
"""Largest size: for larger sizes plans have more than MSCCL's 256 steps in a thread block."""

NOT_PLANNED = {"zero", "hockney", "loggp"}
"""Models of cost without links."""


def test_every_family_is_here() -> None:
    families = {opticoll.Fabric(fabric).family for fabric in FABRICS}
    assert families == {one["name"] for one in opticoll.records("fabrics")} - NOT_PLANNED
    assert all(8 <= opticoll.Fabric(fabric).ranks <= 16 for fabric in FABRICS)


@pytest.mark.skipif(
    not Path(sys.executable).with_name("mpiexec").exists(), reason="needs the extra mpi"
)
@pytest.mark.parametrize("fabric", FABRICS)
def test_plans_of_all_collectives_run_under_mpi(fabric: str) -> None:
    jobs = []
    for kind in KINDS:
        root = 3 if has_root(kind) else 0
        plan = opticoll.plan(kind, fabric, size=SIZE, root=root)
        assert plan.verify() == []
        text = Program.from_plan(plan).to_msccl()
        program, second = Program.from_msccl(text), read_msccl(text)
        assert program.in_place is (kind != "all_to_all")
        for in_place in (False, True) if program.in_place else (False,):
            assert program.verify(in_place=in_place).violations == []
            assert verify_program(second, in_place=in_place) == []
            payload = payload_of(program.collective, 4096, "float32", "sum")
            jobs.append(mpi.Job(program, payload, in_place))
    ended = mpi.carry_out(jobs, 120.0)
    assert [(one.wrong, one.differing) for one in ended] == [(0, 0)] * len(jobs)
