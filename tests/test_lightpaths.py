"""Grids of light paths on the command line, in Python and in the reference verifier, by theory."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import opticoll
from opticoll.outputs.circuit_configurations import configurations
from support import Run, answer, compare_mutants, with_another_number

EIGHT = "lightpath_grid:ranks=8,ports=2"
# The paper's 100 us, 1 Gb/s and 10 ms, in picoseconds.
LATENCY, BYTE, SET_UP = 100_000_000, 8_000, 10_000_000_000

PLANS = [
    ("all_gather", "ranks=5,ports=1", "ring"),
    ("all_gather", "ranks=8,ports=3", "recursive_doubling"),
    ("all_reduce", "ranks=6,ports=2", "recursive_doubling"),
    ("broadcast", "ranks=7,ports=2", "linear"),
    ("broadcast", "ranks=8,ports=1", "binomial"),
    ("all_to_all", "ranks=4,ports=2", "direct"),
    ("barrier", "ranks=8,ports=2", "recursive_doubling"),
]


@pytest.mark.parametrize("ports", [1, 2, 3, 4])
def test_times_on_the_command_line_are_those_of_the_paper(run: Run, ports: int) -> None:
    fabric = f"lightpath_grid:ranks=64,ports={ports}"
    arguments = ("--fabric", fabric, "--size", "1000B", "--algorithm")
    message = LATENCY + 1000 * BYTE
    tree = answer(run, "simulate", "broadcast", *arguments, "binomial")
    assert tree["time_ps"] == 6 * message + -(-6 // ports) * SET_UP
    assert tree["reconfigurations"] == -(-6 // ports)
    line = answer(run, "simulate", "broadcast", *arguments, "linear")
    assert line["time_ps"] == 63 * message + -(-63 // ports) * SET_UP
    ring = answer(run, "simulate", "all_gather", *arguments, "ring")
    assert ring["time_ps"] == (63 * message + SET_UP if ports > 1 else 126 * (message + SET_UP))
    assert (ring["simulator"], ring["policy"]) == ("circuit", "setup_teardown")
    assert ring["wavelengths"] is None


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


@pytest.mark.parametrize("per", ["step", "link", "rank"])
def test_tables_have_a_row_for_each(run: Run, per: str) -> None:
    arguments = ("simulate", "all_gather", "--fabric", EIGHT, "--algorithm", "ring", "--per", per)
    rows = answer(run, *arguments)[f"per_{per}"]
    assert len(rows) == {"step": 7, "link": 16, "rank": 8}[per]
    printed = run(*arguments)
    assert printed.code == 0
    if per == "link":
        assert "port 1" in printed.out
        # Each rank sends to the next by one port only.
        assert sum(row["bytes"] == 7 * 4 * 2**20 for row in rows) == 8


def test_every_command_knows_the_fabric(run: Run, tmp_path: Path) -> None:
    fabric = ("--fabric", EIGHT, "--size", "1KB")
    rows = answer(run, "compare", "all_gather", *fabric)
    assert all(row["verified"] for row in rows)
    times = {row["algorithm"]: row["time_ps"] for row in rows}
    # `auto` is the fastest of them.
    planned = answer(run, "plan", "all_gather", *fabric, "--algorithm", "auto")
    assert planned["time_ps"] == min(times.values())
    file = tmp_path / "ring.plan"
    made = run("plan", "all_gather", *fabric, "--algorithm", "ring", "--output", file)
    assert made.code == 0
    assert "8 ranks, 2 ports each" in made.out
    assert answer(run, "verify", str(file))["verified"]
    shown = answer(run, "show", str(file), "--slot", "6")
    ports = {(path["source_port"], path["destination_port"]) for path in shown["lightpaths"]}
    assert ports == {(0, 0), (1, 1), (1, 0)}
    text = run("show", str(file))
    assert "port 0 > port 0" in text.out
    file.write_text(file.read_text().replace(" 1.1", " 0.1"))
    broken = run("verify", str(file))
    assert broken.code == 1
    assert "for two paths" in broken.out


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


def written(collective: str, options: str, algorithm: str) -> str:
    plan = opticoll.plan(collective, f"lightpath_grid:{options}", algorithm, size=1000)
    return plan.to_text()


@pytest.mark.parametrize(("collective", "options", "algorithm"), PLANS)
def test_both_verifiers_find_the_same_in_mutants(
    collective: str, options: str, algorithm: str
) -> None:
    found = compare_mutants(written(collective, options, algorithm), with_another_number, [1] * 150)
    assert len(found) > 50
    assert sum(map(bool, found)) > 20
    assert "ports" in set().union(*found)


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
