"""All_to_alls whose blocks differ: files of demands, both verifiers, commands that take one."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opticoll
from opticoll import errors
from opticoll.inputs import demands
from plan_mutants import mutated
from support import Run, compare_mutants, proved
from test_cli import run_json

SWITCH = "circuit_switch:ranks=4,reconfiguration=1us"
TWO = "circuit_switch:ranks=4,ports=2,planes=2,latency=100ns"
MATRIX = [[0, 3000, 0, 100], [0, 0, 4096, 0], [500, 500, 500, 500], [0, 0, 0, 0]]


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "text",
    [
        "0,3000,0,100\n0,0,4KiB,0\n500,500,500,500\n0,0,0,0\n",
        "# bytes\n0, 3kB, 0, 100 # hot\n\n0,0,4096B,0\n500,500,500,500\n0,0,0,0",
        "source,destination,bytes\n0,1,3000\n0,3,100\n1,2,4KiB\n"
        "2,0,500\n2,1,500\n2,2,500\n2,3,500\n3,3,0\n",
        "\ufeffSource, Destination, Bytes\n2,3,500\n2,2,500\n2,1,500\n2,0,500\n"
        "1,2,4096\n0,3,100\n0,1,3000\n",
    ],
)
def test_both_forms_of_a_file_are_the_same_demand(tmp_path: Path, text: str) -> None:
    demand, size = demands.to_demand(written(tmp_path / "matrix.csv", text), 4)
    assert demand.amounts == MATRIX
    assert demand == opticoll.Demand(MATRIX)
    assert size == demand.largest == 4096


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("0,1\n1,0\n", "has 2 rows, and the fabric 4 ranks"),
        ("0,1,2,3\n0,1,2,3\n0,1,2\n0,1,2,3\n", "line 3: 3 amounts"),
        ("0,1,2,3\n0,1,x,3\n0,1,2,3\n0,1,2,3\n", "line 2, column 3: `x` is not a number of bytes"),
        ("0,1,2,3\n0,-1,2,3\n0,1,2,3\n0,1,2,3\n", "line 2, column 2: `-1`"),
        ("0,1,2,3\n0,1.5,2,3\n0,1,2,3\n0,1,2,3\n", "line 2, column 2: `1.5`"),
        ("source,destination,bytes\n0,4,1\n", "line 2, column 2: `4` is not a rank"),
        ("source,destination,bytes\n0,1,1\n0,1,2\n", "line 3: line 2 has rank 0 to rank 1"),
        ("source,destination,bytes\n0,1\n", "line 2: 2 values"),
        ("0,0,0,0\n" * 4, "zero for every pair"),
        ("18446744073709551615,1,0,0\n" + "0,0,0,0\n" * 3, "2^64"),
        ("", "has 0 rows"),
    ],
)
def test_what_is_wrong_in_a_file_is_named_with_its_place(
    run: Run, tmp_path: Path, text: str, problem: str
) -> None:
    path = written(tmp_path / "matrix.csv", text)
    finished = run("plan", "all_to_all", "--fabric", SWITCH, "--demand", path)
    assert finished.code == 2
    assert problem in " ".join(finished.err.split()), finished.err


def test_matrices_of_numpy_lists_and_files_make_the_same_plan(tmp_path: Path) -> None:
    path = written(tmp_path / "m.csv", "\n".join(",".join(map(str, row)) for row in MATRIX))
    made = [
        opticoll.plan("all_to_all", SWITCH, "decomposition", demand=demand)
        for demand in (MATRIX, np.array(MATRIX), np.array(MATRIX, dtype=np.uint64), path, str(path))
    ]
    assert len({plan.to_text() for plan in made}) == 1
    plan = made[0]
    assert plan.size_bytes == 4096
    assert plan.collective.demand == opticoll.Demand(MATRIX)
    proved(plan)


@pytest.mark.parametrize(
    "wrong",
    [[[0, 1], [1]], [[0, -1], [1, 0]], [[0, 0.5], [1, 0]], [1, 2], np.zeros((4, 4)), 7, [[0, 1]]],
)
def test_what_is_no_matrix_is_refused(wrong: object) -> None:
    with pytest.raises(errors.CollectiveError):
        opticoll.plan("all_to_all", SWITCH, "direct", demand=wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("demand", ["uniform", "random:seed=2", "zipf:exponent=1.5", "one_hot"])
@pytest.mark.parametrize(
    "fabric", [SWITCH, TWO, "crossbar:ranks=4", "wdm_ring:ranks=4,wavelengths=2"]
)
def test_both_verifiers_prove_demands(fabric: str, demand: str) -> None:
    for algorithm in ("auto", "direct", "bruck"):
        plan = opticoll.plan("all_to_all", fabric, algorithm, size="64KiB", demand=demand)
        proved(plan)
        again = opticoll.Plan.from_text(plan.to_text())
        assert again.collective == plan.collective
        assert again.simulate(1 << 16).time_ps == plan.simulate(1 << 16).time_ps


@pytest.mark.parametrize("algorithm", ["decomposition", "decomposition:max_chunk=1KiB", "direct"])
def test_both_verifiers_judge_changed_demands_alike(algorithm: str) -> None:
    text = opticoll.plan("all_to_all", TWO, algorithm, demand=MATRIX).to_text()
    assert text.count("demand ") == 3
    found = compare_mutants(text, mutated, [1, 2, 3] * 40)
    assert {"missing", "not_held"} & set().union(*found)


def test_every_command_takes_a_demand(run: Run, tmp_path: Path) -> None:
    path = written(tmp_path / "m.csv", "\n".join(",".join(map(str, row)) for row in MATRIX))
    plan = tmp_path / "demand.plan"
    options = ("--fabric", SWITCH, "--demand", path)
    row = run_json(run, "plan", "plan", "all_to_all", *options, "--output", plan)
    assert row["size_bytes"] == 4096
    assert row["verified"]
    assert run("verify", plan).code == 0
    simulated = run_json(run, "simulate", "simulate", plan)
    assert simulated["time_ps"] == row["time_ps"]
    assert (
        run_json(run, "simulate", "simulate", "all_to_all", *options)["time_ps"] == row["time_ps"]
    )
    assert run("show", plan).code == 0
    compared = run_json(
        run, "compare", "compare", "all_to_all", *options, "--algorithms", "direct,bruck"
    )
    assert {one["size_bytes"] for one in compared} == {4096}
    assert min(one["time_s"] for one in compared) == row["time_s"]
    bounds = run_json(run, "bound", "bound", "all_to_all", *options)
    assert {one["name"] for one in bounds["bounds"]} == {"configurations", "direct"}
    least = {one["name"]: one["time_s"] for one in bounds["bounds"]}
    assert least["configurations"] <= row["time_s"]
    # `auto` relays, where a change takes as long as 100 kB: no plan without relays is as fast.
    alone = run_json(run, "plan", "plan", "all_to_all", *options, "--algorithm", "decomposition")
    assert row["time_s"] < least["direct"] <= alone["time_s"]
    refused = run("verify", plan, "--demand", "random")
    assert refused.code == 2


def test_a_scenario_takes_a_demand_beside_it(run: Run, tmp_path: Path) -> None:
    written(tmp_path / "m.csv", "\n".join(",".join(map(str, row)) for row in MATRIX))
    lines = ["collective: all_to_all", f"fabric: {SWITCH!r}", "algorithms: [direct]"]
    path = written(tmp_path / "moe.yaml", "\n".join([*lines, "demand: m.csv"]))
    rows = run_json(run, "compare", "compare", path)
    direct = opticoll.plan("all_to_all", SWITCH, "direct", demand=MATRIX)
    assert {row["size_bytes"] for row in rows} == {4096}
    assert rows[0]["time_ps"] == direct.simulate(4096).time_ps
    wrong = written(tmp_path / "wrong.yaml", "\n".join([*lines, "demand: none.csv"]))
    refused = run("compare", wrong)
    assert refused.code == 2
    assert "wrong.yaml" in refused.err
    assert "demand" in refused.err


def test_what_is_printed_says_that_blocks_differ(run: Run, tmp_path: Path) -> None:
    matrix = written(tmp_path / "hot.csv", "9000,1000,0\n0,0,2000\n0,2000,0\n")
    asked = ("all_to_all", "--fabric", "crossbar:ranks=3", "--demand", matrix)
    # Rank 0 keeps 9 kB, and rank 1 receives 3 kB.
    words = "blocks differ: 3 pairs; a rank sends 2kB to others at most, and receives 3kB"
    assert words in " ".join(run("plan", *asked).out.split())
    assert f"blocks as demanded: {matrix}" in run("compare", *asked).out


EIGHT = "circuit_switch:ranks=8,ports=2,rate=400Gb/s,latency=500ns,reconfiguration="


@pytest.mark.parametrize("fabric", [f"{EIGHT}10ms", f"{EIGHT}10ns", "torus:dims=4x2"])
@pytest.mark.parametrize("command", ["plan", "simulate", "compare", "bound"])
@pytest.mark.parametrize("own", [0, 2, 5])
def test_a_uniform_demand_is_no_demand(
    run: Run, tmp_path: Path, fabric: str, command: str, own: int
) -> None:
    # 2 MiB per pair of 8 ranks; the MiB that a rank keeps count towards its largest total.
    rows = [
        ",".join("2MiB" if one != rank else f"{own}MiB" for one in range(8)) for rank in range(8)
    ]
    matrix = written(tmp_path / "uniform.csv", "\n".join(rows))
    given: list[tuple[str | Path, ...]] = [
        ("--size", "16MiB"),
        ("--size", "16MiB", "--demand", "uniform"),
        ("--demand", matrix),
        ("--demand", matrix, "--size", f"{14 + own}MiB"),
    ]
    answers = []
    for options in given:
        asked = (command, "all_to_all", "--fabric", fabric, *options)
        answers.append(without_command(run_json(run, command, *asked)))
    assert all(one == answers[0] for one in answers)


def without_command(rows: Any) -> list[dict[str, Any]]:
    """Rows without the command line that computes each."""
    listed = rows if isinstance(rows, list) else [rows]
    return [{key: row[key] for key in row if key != "command"} for row in listed]


def test_equal_blocks_are_cut_where_ports_would_idle() -> None:
    # 7 blocks of 2 MiB on 2 ports leave one idle; 14 halves do not: 7 slots of 1 MiB at 400 Gb/s,
    # each with a latency and a change.
    plan = opticoll.plan("all_to_all", f"{EIGHT}10ns", size="16MiB")
    assert (plan.algorithm, plan.slots) == ("decomposition", 7)
    slot_ps = (1 << 20) * 20 + 500_000 + 10_000
    assert plan.simulate("16MiB").time_ps == pytest.approx(7 * slot_ps, abs=10_000)
    proved(plan)


def test_in_python_the_size_of_a_demand_is_that_of_its_bytes() -> None:
    matrix = [[0, 600, 400], [0, 0, 0], [0, 100, 0]]
    rows = opticoll.compare("all_to_all", "crossbar:ranks=3", "direct", demand=matrix).rows
    assert {row.size_bytes for row in rows} == {1000}


def test_bounds_count_the_ports_of_a_rank_that_work(run: Run, tmp_path: Path) -> None:
    # Rank 0 sends 2 MB over the one port that works: 20 us, and a change of 1 us without relays.
    matrix = written(tmp_path / "two.csv", "0,1000000,1000000\n0,0,0\n0,0,0\n")
    fabric = "circuit_switch:ranks=3,ports=2,dead_ports=0.1,reconfiguration=1us"
    row = run_json(run, "bound", "bound", "all_to_all", "--fabric", fabric, "--demand", matrix)
    bounds = {one["name"]: one["time_s"] for one in row["bounds"]}
    assert bounds == {"configurations": pytest.approx(20e-6), "direct": pytest.approx(21e-6)}


def test_a_light_tree_brings_blocks_to_any_number_of_ranks_in_a_slot(tmp_path: Path) -> None:
    path = written(
        tmp_path / "tree.plan",
        "opticoll plan 1\ncollective all_to_all ranks=8 root=0 pieces=1\n"
        "demand 0 1=1000 2=1000 3=1000 4=1000 5=1000 6=1000 7=1000\n"
        "fabric wdm_ring:ranks=8,wavelengths=1,multicast=drop_and_continue\n"
        "algorithm by hand\nsize 7000B\nsteps 1\nslot 0\n"
        + "".join(f"copy 0+4 0>{rank} cw 0.0\n" for rank in range(1, 5))
        + "".join(f"copy 4+3 0>{rank} ccw 0.0\n" for rank in range(5, 8))
        + "end 7\n",
    )
    plan = opticoll.read_plan(path)
    proved(plan)
    for policy in ("every_step", "on_change", "free"):
        row = opticoll.measure(plan, 7000, policy=policy)
        assert row.bound_time_s is not None
        assert row.bound_time_s <= row.time_s


def test_direct_bounds_nothing_where_no_switch_joins_a_pair(run: Run, tmp_path: Path) -> None:
    matrix = written(tmp_path / "one.csv", "0,0,0,1000\n0,0,0,0\n0,0,0,0\n0,0,0,0\n")
    fabric = "circuit_switch:ranks=4,ports=2,planes=2,switch_ports=2"
    row = run_json(run, "bound", "bound", "all_to_all", "--fabric", fabric, "--demand", matrix)
    assert [one["name"] for one in row["bounds"]] == ["configurations"]


def test_ranks_at_other_places_have_no_bound(run: Run, tmp_path: Path) -> None:
    # Rank 0 sends 1 MB: 8 ms over its own cable of 1 Gb/s; rank 1 has it where they change places.
    matrix = written(tmp_path / "hot.csv", "0,500000,500000\n0,0,0\n0,0,0\n")
    fabric = "custom:ranks=3,switches=1,links=0-3@1Gb/s+1-3+2-3,rate=8Gb/s"
    asked = ("plan", "all_to_all", "--fabric", fabric, "--demand", matrix, "--algorithm", "direct")
    here = run_json(run, "plan", *asked, "--simulator", "packet")
    moved = run_json(run, "plan", *asked, "--simulator", "packet", "--placement", "1-0-2")
    assert here["bound_time_s"] == pytest.approx(8e-3)
    assert here["time_s"] > here["bound_time_s"] > moved["time_s"]
    assert moved["bound_time_s"] is None


def test_the_hottest_row_bounds_links(run: Run) -> None:
    """1,000 bytes from rank 0 and 700 to rank 1 at 8 Gb/s: a nanosecond for each byte."""
    matrix = [[0, 600, 400], [0, 0, 0], [0, 100, 0]]
    plan = opticoll.plan("all_to_all", "crossbar:ranks=3,rate=8Gb/s", "direct", demand=matrix)
    row = opticoll.measure(plan, 1000)
    assert row.bound_time_s == pytest.approx(1e-6)
    assert row.time_s == pytest.approx(1e-6)


@pytest.mark.parametrize("name", ["sends", "msccl", "goal", "chakra", "te_ccl"])
def test_formats_without_words_for_demands_refuse_them(tmp_path: Path, name: str) -> None:
    plan = opticoll.plan("all_to_all", "crossbar:ranks=4", "direct", demand=MATRIX)
    with pytest.raises(errors.OpticollError, match=r"differ|words"):
        plan.export(tmp_path / "written", name)
    assert not list(tmp_path.iterdir())
    with pytest.raises(errors.OpticollError, match="differ"):
        plan.run(4096)
