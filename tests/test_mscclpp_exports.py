"""Plans that `export` chooses for MSCCL++: it writes the fastest plan that MSCCL++ executes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import opticoll
from opticoll import Program
from opticoll.execution.elements import TYPES
from opticoll.names import known_names
from support import ALL_CASES, Run

FABRICS = ("dgx_h100", "dgx_a100", "dgx_h100:boxes=2", "crossbar:ranks=16,rate=400Gb/s")
COLLECTIVES = [name for name in known_names("collectives") if name != "barrier"]
CASES = [
    (collective, fabric, size)
    for fabric in FABRICS
    for collective in COLLECTIVES
    for size in ("64KiB", "4MiB")
]
TESTED = (
    # Switches that add for two servers; three chunks of 64 KiB; switches that multicast; packets.
    ("all_reduce", "dgx_h100:boxes=2", "64KiB"),
    ("scatter", "dgx_h100:boxes=2", "64KiB"),
    ("all_gather", "dgx_h100", "4MiB"),
    ("all_gather", "dgx_a100", "64KiB"),
)
"""Cases that always run; `make validate` runs all 64 cases, in about 45 s on one core."""


@pytest.mark.parametrize(("collective", "fabric", "size"), CASES if ALL_CASES else TESTED)
def test_plans_of_auto_are_exported_proved_and_run(
    run: Run, tmp_path: Path, collective: str, fabric: str, size: str
) -> None:
    path = tmp_path / "auto.mscclpp.json"
    asked = (collective, "--fabric", fabric, "--size", size)
    finished = run("export", *asked, "--output", path)
    assert finished.code == 0, finished.err
    assert run("verify", path).code == 0
    assert run("run", path).code == 0


def test_the_fastest_plan_that_fits_is_exported(run: Run, tmp_path: Path) -> None:
    collective, fabric, size = TESTED[0]
    path = tmp_path / "auto.mscclpp.json"
    asked = (collective, "--fabric", fabric, "--size", size)
    finished = run("export", *asked, "--output", path, "--json")
    chosen = json.loads(finished.out)["chosen"]
    # By default the file has the protocol Simple.
    fastest = opticoll.plan(collective, fabric, size=size, protocol="simple")
    assert re.search(rf"{chosen} takes .*; {fastest.algorithm} takes .* does not fit", finished.err)

    def time_of(name: str) -> int | None:
        """Returns the time of a plan; None if MSCCL++ does not execute it."""
        try:
            plan = opticoll.plan(collective, fabric, name, size=size, protocol="simple")
            Program.from_plan(plan).to_mscclpp(64 << 10)
            return int(plan.simulate(size, protocol="simple").time_ps)
        except opticoll.OpticollError:
            return None

    times = {name: time_of(name) for name, *_ in fastest.candidates}
    fitting = [time for time in times.values() if time is not None]
    assert len(fitting) > 2
    assert time_of(chosen) == min(fitting)


@pytest.mark.parametrize("element_type", TYPES)
def test_plans_run_with_every_type(run: Run, tmp_path: Path, element_type: str) -> None:
    path = tmp_path / "ring.mscclpp.json"
    asked = ("all_reduce", "--fabric", "crossbar:ranks=4", "--size", "4KiB", "--algorithm", "ring")
    finished = run("export", *asked, "--output", path)
    assert "4 ranks are written as GPUs of one server" in finished.err
    for operator in ("sum", "avg", "max"):
        done = run("run", path, "--size", "4KiB", "--type", element_type, "--op", operator)
        assert done.code == 0, done.err
        assert "every byte equals the definition" in done.out


def test_servers_of_different_sizes_are_refused(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "uneven.mscclpp.json"
    asked = ("all_reduce", "--fabric", "dgx_h100:boxes=2,members=0-11", "--size", "1MiB")
    finished = run("export", *asked, "--output", path)
    assert finished.code == 2
    assert "servers with equal numbers of GPUs" in finished.err
    assert not path.exists()


def test_what_is_named_is_not_replaced(run: Run, tmp_path: Path) -> None:
    collective, fabric, size = TESTED[0]
    asked = (collective, "--fabric", fabric, "--size", size, "--algorithm", "nvls_rails")
    output = ("--output", tmp_path / "named.mscclpp.json")
    refused = "in MSCCL++, switches multicast from a rank to all ranks"
    finished = run("export", *asked, *output)
    assert finished.code != 0
    assert refused in finished.err
    plan = tmp_path / "named.plan"
    assert run("plan", *asked, "--output", plan).code == 0
    finished = run("export", plan, *output)
    assert finished.code != 0
    assert refused in finished.err


@pytest.mark.parametrize("protocol", ["ll128", "nccl"])
def test_protocols_of_nccl_are_refused(run: Run, tmp_path: Path, protocol: str) -> None:
    asked = ("all_reduce", "--fabric", "dgx_a100", "--protocol", protocol)
    finished = run("export", *asked, "--output", tmp_path / "plan.mscclpp.json")
    assert finished.code != 0
    assert f"plans of MSCCL++ have ll or simple, not {protocol}" in finished.err


def test_errors_name_the_formats_that_an_ending_leaves_open(run: Run, tmp_path: Path) -> None:
    finished = run(
        *("export", "all_reduce", "--fabric", "dgx_a100", "--output", tmp_path / "ours.json")
    )
    assert "the ending .json stands for te_ccl; --format names another" in finished.err
    assert "such as mscclpp" in finished.err
    unknown = tmp_path / "theirs.json"
    unknown.write_text('{"gpus": []}')
    finished = run("verify", unknown)
    assert "content of no format that ends in .json (mscclpp, te_ccl, sccl)" in finished.err


def test_the_name_of_a_trace_leads_to_the_file_of_its_first_rank(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "ours.et"
    fabric = ("--fabric", "crossbar:ranks=2")
    assert run("export", "all_gather", *fabric, "--output", path).code == 0
    finished = run("verify", path)
    assert f"there is no file `{path}`; the file of its first rank is" in finished.err
    assert run("verify", tmp_path / "ours.0.et").code == 0
