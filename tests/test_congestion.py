"""Collectives over light paths that may be blocked: command, study, placements, refusals."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

import opticoll
from opticoll import _core
from opticoll.commands.congestion import CongestionRow
from support import Run
from test_cli import run_json

ROW = "wdm_graph:ranks=4,links=0-1+1-2+2-3,hosts=2,wavelengths=2,rate=10Gb/s,latency=0s"
LADDER = "wdm_ladder:rungs=5,hosts=2,wavelengths=6,rate=10Gb/s,latency=0s"
FAST = "size=1MB,warm_up=1000"


def carried_out(**changes: object) -> CongestionRow:
    """Runs an all_reduce by ring among eight ranks in a row."""
    own: dict[str, object] = {
        "fabric": ROW,
        "collective": "all_reduce",
        "algorithm": "ring",
        "size": 8000,
        "settings": {"replications": "2", "ports": "2"},
    }
    return opticoll.congestion(**{**own, **changes})  # type: ignore[arg-type]


def test_executed_transfers_are_a_plan_of_their_own() -> None:
    done = carried_out()
    plan = opticoll.plan("all_reduce", "crossbar:ranks=8,rate=10Gb/s", "ring")
    executed = _core.delivered_plan(done.outcome, plan, 1, 0)
    assert (len(executed), executed.verify()) == (14 * 8, [])
    with pytest.raises(IndexError):
        _core.delivered_plan(done.outcome, plan, 2, 0)


def test_two_collectives_share_the_network_and_both_are_verified() -> None:
    changes = {"copies": 2, "fabric": LADDER, "offered_load": 0.5}
    settings = {"replications": "3", "size": "1MB", "warm_up": "1000", "back_off": "1ms"}
    done = carried_out(**changes, settings=settings)
    assert (done["ranks"], done["copies"], done["verified"]) == (10, 2, True)
    plan = opticoll.plan("all_reduce", "crossbar:ranks=10,rate=10Gb/s", "ring")
    for place, job in enumerate(done.outcome.jobs):
        delivered = _core.delivered_plan(done.outcome, plan, *divmod(place, 2))
        assert (delivered.verify() == []) == (job["step"] is None)
    assert done.outcome.jobs.shape == (3, 2)


def test_plans_with_light_and_places_that_do_not_fit_are_refused() -> None:
    light = opticoll.plan("all_gather", "wdm_ring:ranks=4,wavelengths=1", "ring")
    with pytest.raises(opticoll.errors.ScheduleError, match="light of its own"):
        _core.simulate_collectives(ROW, light, [[0, 1, 2, 3]], 1, {})
    plain = opticoll.plan("all_gather", "crossbar:ranks=4", "ring")
    for places in ([[0, 1, 2]], [[0, 1, 2, 8]], [[0, 1, 2, 2]]):
        with pytest.raises(opticoll.errors.SimulationError) as error:
            _core.simulate_collectives(ROW, plain, places, 1, {})
        assert error.value.setting == "placement"
        with pytest.raises(opticoll.errors.SimulationError):
            _core.place_ranks(ROW, plain, 1, 1, places)


def test_what_progress_raises_ends_the_run() -> None:
    def enough(done: int) -> None:
        raise InterruptedError(f"{done}")

    plan = opticoll.plan("all_gather", "crossbar:ranks=4", "ring")
    with pytest.raises(InterruptedError):
        _core.simulate_collectives(ROW, plan, [[0, 1, 2, 3]], 1, {}, progress=enough)


COMMAND = ["all_reduce", "--fabric", LADDER, "--algorithm", "ring", "--size", "1MB"]
COMMAND += ["--bursts", FAST, "--replications", "4", "--back-off", "1ms", "--ports", "2"]


def test_lists_make_a_case_of_each_combination(run: Run, tmp_path: Path) -> None:
    table, figure = tmp_path / "times.csv", tmp_path / "times.png"
    options: list[str | Path] = ["--offered-load", "0,0.5", "--congestion", "retry,degrade"]
    options += ["--placement", "natural,best", "--figure", figure, "--csv", table]
    rows = run_json(run, "congestion", "congestion", *COMMAND, *options, "--jobs", "1")
    cases = [(row["congestion"], row["placement"], row["offered_load"]) for row in rows]
    assert cases == [
        (policy, placement, offered_load)
        for policy in ("retry", "degrade")
        for placement in ("natural", "best")
        for offered_load in (0.0, 0.5)
    ]
    assert figure.read_bytes().startswith(b"\x89PNG")
    with table.open() as lines:
        assert [row["blocked"] for row in csv.DictReader(lines)] == [
            str(row["blocked"]) for row in rows
        ]
    assert all(row["verified"] for row in rows)
    assert run_json(run, "congestion", "congestion", *COMMAND, *options, "--jobs", "3") == rows


def test_who_gives_up_is_named_in_text_and_json(run: Run) -> None:
    options = ["all_gather", "--fabric", ROW.replace("wavelengths=2", "wavelengths=1")]
    options += ["--algorithm", "recursive_doubling", "--retries", "3", "--placement", "spread"]
    finished = run("congestion", *options, "--replications", "2")
    assert finished.code == 0
    assert "failed (all_or_nothing, spread, offered load 0): step " in finished.out
    assert "was blocked 4 times" in finished.out
    (row,) = run_json(run, "congestion", "congestion", *options, "--replications", "2")
    assert (row["failed"], row["time_s"], row["replications"]) == (2, None, 2)
    (row,) = run_json(run, "congestion", "congestion", *options, "--congestion", "degrade")
    assert (row["failed"], row["failure"], row["verified"]) == (0, "", True)
    assert row["degraded"] > 0


def test_a_violated_plan_is_printed_as_by_verify(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sends_nothing.py").write_text(
        "import opticoll\ndef f(c, m): return opticoll.Schedule(c)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    algorithm = ("--algorithm", "sends_nothing:f")
    finished = run("congestion", "all_gather", "--fabric", ROW, *algorithm)
    fabric = ("--fabric", "crossbar:ranks=8,rate=10Gb/s")
    assert finished == run("verify", "all_gather", *fabric, *algorithm)
    assert finished.code == 1
    assert "missing: at the end rank 0 does not hold chunk" in finished.out
    refused = run("congestion", "all_gather", "--fabric", ROW, *algorithm, "--json")
    proof = json.loads(run("verify", "all_gather", *fabric, *algorithm, "--json").out)
    assert proof.pop("command").startswith("opticoll verify")
    assert (refused.code, json.loads(refused.out)) == (1, proof)


def test_what_is_missing_is_named(run: Run) -> None:
    place = COMMAND.index("--fabric")
    finished = run("congestion", *COMMAND[:place], *COMMAND[place + 2 :])
    assert finished.code == 2
    assert "--fabric is missing" in finished.err


def test_an_algorithm_of_a_family_runs_where_a_rank_is_at_each_node(run: Run) -> None:
    asked = ("congestion", "all_reduce", "--algorithm", "multi_ring", "--size", "1KiB")
    torus = run(*asked, "--fabric", "wdm_torus:dims=2x2,wavelengths=4", "--replications", "1")
    assert torus.code == 0
    assert "on the burst network wdm_torus:dims=2x2" in torus.out
    for fabric, words in (
        ("wdm_torus:dims=2x2,wavelengths=4,hosts=2", "one rank at each: give hosts=1"),
        ("wdm_ladder:rungs=2,wavelengths=4", "needs a torus; got ladder"),
        ("wdm_ladder:rungs=2,terminals=2,wavelengths=4", "write hosts=..."),
    ):
        refused = run(*asked, "--fabric", fabric)
        assert refused.code == 2
        assert words in refused.err
