"""Grids of light paths on the command line and in Python, by theory."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import opticoll
from opticoll.outputs.circuit_configurations import configurations
from support import Run, answer

EIGHT = "lightpath_grid:ranks=8,ports=2"
# The paper's 100 us, 1 Gb/s and 10 ms, in picoseconds.
LATENCY, BYTE, SET_UP = 100_000_000, 8_000, 10_000_000_000


def test_settings_say_when_paths_go(run: Run) -> None:
    arguments = ("simulate", "all_gather", "--fabric", EIGHT, "--size", "1000B")
    ring = (*arguments, "--algorithm", "ring")
    sending = 7 * (LATENCY + 1000 * BYTE)
    for kept, waiting in (
        ((), SET_UP),
        (("--paths", "kept"), SET_UP // 2),
        (("--paths", "warm"), 0),
        (("--policy", "free"), 0),
        (("--policy", "every_step"), 7 * SET_UP),
        (("--paths", "predicted"), 0),
        (("--policy", "per_port"), SET_UP // 2),
    ):
        assert answer(run, *ring, *kept)["time_ps"] == sending + waiting, kept


@pytest.mark.parametrize("size", [1000, 100_000, 3_000_000])
def test_a_port_sets_its_next_path_up_beside_the_messages_of_the_other(size: int) -> None:
    """Recursive doubling, 16 ranks: partners 1 and 3 over port 0 of a rank, 2 and 4 over port 1."""
    plan = opticoll.plan("all_gather", "lightpath_grid:ranks=16,ports=2", "recursive_doubling")
    first, second, third, fourth = (LATENCY + 2**step * size * BYTE for step in range(4))
    released = SET_UP // 2 + first
    second_done = released + second
    third_done = max(second_done, released + SET_UP) + third
    done = max(third_done, second_done + SET_UP) + fourth
    assert plan.simulate(size, policy="per_port").time_ps == done
    # With one port every message waits until the path before it is replaced.
    plan = opticoll.plan("all_gather", "lightpath_grid:ranks=16,ports=1", "recursive_doubling")
    one_by_one = first + second + third + fourth + SET_UP // 2 + 3 * SET_UP
    assert plan.simulate(size, policy="per_port").time_ps == one_by_one


def test_the_picture_shows_every_group_of_slots(run: Run, tmp_path: Path) -> None:
    plan = opticoll.plan("all_gather", EIGHT, "recursive_doubling", size=1000)
    found = configurations(plan)
    assert [(group.first, group.last) for group in found] == [(0, 1), (2, 2)]
    # Rank 5 has its partners at distance 1 and 2, then the one at distance 4.
    assert {peer for (rank, _), peer in found[0].peers.items() if rank == 5} == {4, 7}
    assert [peer for (rank, _), peer in found[1].peers.items() if rank == 5] == [1]
    picture = tmp_path / "ports.svg"
    arguments = ("show", "all_gather", "--fabric", EIGHT, "--algorithm", "recursive_doubling")
    drawn = run(*arguments, "--size", "100KB", "--figure", picture)
    assert drawn.code == 0, drawn.err
    assert "setup and teardown" in picture.read_text()


@pytest.mark.parametrize("ports", [1, 3, 15])
@pytest.mark.parametrize("paths", ["released", "kept", "warm", "predicted"])
@pytest.mark.parametrize("algorithm", ["direct", "recursive_doubling"])
def test_no_plan_beats_the_bound_of_the_paths_it_finds(
    run: Run, ports: int, paths: str, algorithm: str
) -> None:
    """Warm paths need no setup: with 15 ports the bound is one slot without a setup."""
    fabric = f"lightpath_grid:ranks=16,ports={ports},latency=100us,rate=1Gb/s"
    words = ["all_gather", "--fabric", fabric, "--algorithm", algorithm, "--size", "1kB"]
    row = json.loads(run("simulate", *words, "--paths", paths, "--json").out)
    assert row["time_s"] >= row["bound_time_s"]
    shown = {one["name"]: one["value"] for one in row["settings"]}
    assert shown.get("paths", "released") == paths
    if (ports, paths) == (15, "warm"):
        # One slot of latency, and 15 blocks of 8 us through 15 ports.
        assert row["bound_time_s"] == pytest.approx(108e-6)
