"""Schedules of others that state plain steps of sends: CSV and results of TE-CCL."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import opticoll
from conftest import Run

OTHERS = os.environ.get("OPTICOLL_TE_CCL")
"""A folder with results of TE-CCL, which are not part of this repository."""

RING = """# all_gather ranks=3
step,source,destination,chunk
0,0,1,0
0,1,2,1
0,2,0,2
5,0,1,2
5,1,2,0
5,2,0,1
"""


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_a_schedule_by_hand_is_proved_and_simulated(run: Run, tmp_path: Path) -> None:
    path = written(tmp_path / "ring.csv", RING)
    finished = run("verify", path)
    assert finished.code == 0
    assert "sends: all_gather on 3 ranks, 2 slots, 6 transfers" in finished.out
    assert run("simulate", path, "--fabric", "wdm_ring:ranks=3,wavelengths=1").code == 0


@pytest.mark.parametrize("removed", range(2, 8))
def test_a_schedule_without_one_of_its_sends_is_rejected(
    run: Run, tmp_path: Path, removed: int
) -> None:
    lines = RING.splitlines()
    del lines[removed]
    finished = run("verify", written(tmp_path / "ring.csv", "\n".join(lines)))
    assert finished.code == 1
    assert "verified: NO" in finished.out


@pytest.mark.parametrize(
    "text",
    [
        RING.replace("step,", "slot,"),
        RING.replace("5,0,1,2", "5,0,1"),
        RING.replace("5,0,1,2", "5,0,x,2"),
        RING.replace("5,0,1,2", "5,0,7,2"),
        RING.replace("ranks=3", "ranks=99999999999"),
        RING.replace("all_gather", "all_together"),
        "# all_gather ranks=3\n",
    ],
    ids=["heading", "cells", "number", "rank", "ranks", "collective", "nothing"],
)
def test_what_is_no_schedule_is_refused(run: Run, tmp_path: Path, text: str) -> None:
    finished = run("verify", written(tmp_path / "bad.csv", text), "--format", "sends")
    assert finished.code in (1, 2)
    assert "Traceback" not in finished.err


@pytest.mark.parametrize("kind", ["all_gather", "all_reduce", "all_to_all", "scatter"])
def test_plans_come_back_from_their_sends(run: Run, tmp_path: Path, kind: str) -> None:
    fabric = "wdm_ring:ranks=6,wavelengths=2"
    plan = opticoll.plan(kind, fabric)
    kept, sends = tmp_path / "kept.plan", tmp_path / "kept.csv"
    opticoll.write_plan(plan, kept)
    finished = run("export", kept, "--format", "sends", "--output", sends)
    assert (finished.code, finished.err) == (0, f"opticoll: wrote {sends}, {sends}.plan\n")
    back = opticoll.read_plan(sends, fabric=fabric)
    assert back.verify() == []
    assert (len(back), len(back.step_slots)) == (len(plan), len(plan.step_slots))
    assert opticoll.read_plan(f"{sends}.plan") == plan


def te_ccl(ranks: range) -> str:
    """A result as TE-CCL writes it: an all_gather among some ranks, directly."""
    pairs = [(one, other) for one in ranks for other in ranks if one != other]
    flows = [f"Chunk 0 from {a} traveled over {a}->{b} in epoch 0" for a, b in pairs]
    paths: dict[str, list[str]] = {
        f"Demand at {b} for chunk 0 from {a} met by epoch 0": [] for a, b in pairs
    }
    return json.dumps({"7-Flows": flows, "8-Chunk paths": paths})


def test_a_result_of_te_ccl_is_proved(run: Run, tmp_path: Path) -> None:
    assert run("verify", written(tmp_path / "whole.json", te_ccl(range(4)))).code == 0


def test_a_result_of_te_ccl_that_leaves_a_rank_out_is_rejected(run: Run, tmp_path: Path) -> None:
    finished = run("verify", written(tmp_path / "part.json", te_ccl(range(1, 4))))
    assert finished.code == 1
    assert "missing: at the end rank 0 does not hold chunk 1" in finished.out


@pytest.mark.parametrize("text", ["{", "[]", '{"7-Flows": [" traveled over "]}', "{" * 100_000])
def test_what_is_no_result_of_te_ccl_is_refused(run: Run, tmp_path: Path, text: str) -> None:
    finished = run("verify", written(tmp_path / "bad.json", text), "--format", "te_ccl")
    assert (finished.code, finished.out) == (2, "")
    assert "Traceback" not in finished.err


@pytest.mark.skipif(not OTHERS, reason="OPTICOLL_TE_CCL names no folder")
@pytest.mark.parametrize("name", ["AllGather", "AlltoAll"])
def test_the_shipped_results_for_two_chassis_leave_rank_0_out(run: Run, name: str) -> None:
    (path,) = Path(OTHERS or ".").glob(f"*2_chassis-{name}*.json")
    finished = run("verify", path)
    assert finished.code == 1
    assert "rank 0 " in finished.out
