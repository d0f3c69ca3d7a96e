"""Output of `opticoll compare`: text, figures and files."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import opticoll
from opticoll._core import Fabric, plans_for
from opticoll.commands.compare import table
from opticoll.names import algorithm_names
from support import RING, Run
from test_cli import STEP_PS, TREE, run_json


def test_an_alias_of_an_algorithm_hides_no_planner() -> None:
    # `hierarchical` is a planner of rings, and an alias of `rails`, which needs servers.
    ring, servers = Fabric("wdm_ring:ranks=8,wavelengths=2"), Fabric("dgx_a100:boxes=2")
    assert plans_for("all_reduce", "hierarchical", ring)
    assert plans_for("all_reduce", "rails", servers)
    assert not plans_for("all_reduce", "nvls", servers)


def test_a_range_ends_at_its_end_and_sizes_share_their_units(run: Run) -> None:
    asked = ["compare", "all_gather", "--fabric", "wdm_ring:ranks=4,wavelengths=2"]
    printed = run(*asked, "--algorithms", "ring", "--sizes", "100kB..10MB").out
    sizes = re.findall(r"^all_gather of (\S+) \(", printed, re.MULTILINE)
    assert sizes == ["100kB", "400kB", "1600kB", "6400kB", "10MB"]


def test_compare_takes_every_algorithm_and_names_who_refuses(run: Run) -> None:
    fabric = "wdm_ring:ranks=7,wavelengths=2"
    finished = run("compare", "all_gather", "--fabric", fabric)
    assert finished.code == 0
    odd = {"neighbour_exchange", "swing"}  # Seven is neither even nor a power of two.
    lines = finished.err.splitlines()
    assert len(lines) == len(odd)
    for name in odd:
        left_out = f"opticoll: left out: `{name}` does not run here, on 7 ranks"
        assert [line.startswith(left_out) for line in lines].count(True) == 1
    rows = run_json(run, "compare", "compare", "all_gather", "--fabric", fabric)
    names = {row["algorithm"].partition(":")[0] for row in rows}
    # Made for fabrics of links or fibres, for circuit switches or for grids: no row, and no word.
    others = odd | {
        "tree_packing", "matching", "switch_configurations", "static", "shifts", "faulty_ring",
        "one_hop", "relay_forest", "per_rail",
    }  # fmt: skip
    assert names >= set(algorithm_names("all_gather", "wdm_ring")) - others
    assert not names & others
    assert all(row["verified"] for row in rows)


def test_compare_keeps_options_with_their_algorithm(run: Run) -> None:
    chosen = "ring,wrht:group_size=5,striping=true,binary_tree"
    rows = run_json(
        run, "compare", "compare", "all_reduce", "--fabric", RING, "--algorithms", chosen
    )
    assert [row["algorithm"] for row in rows] == [
        "ring",
        "wrht:group_size=5,striping=true",
        "binary_tree",
        "auto",
    ]


def test_compare_makes_a_row_for_every_case_in_order(run: Run) -> None:
    rows = run_json(
        run, "compare", "compare", "all_gather", "--fabric", RING,
        "--algorithms", "ring,optree", "--sizes", "1KiB..64KiB,1MB",
        "--ranks", "8,12", "--wavelengths", "1,3", "--policy", "on_change",
    )  # fmt: skip
    cases = [
        (row["ranks"], row["wavelengths"], row["algorithm"], row["size_bytes"]) for row in rows
    ]
    sizes = [2**10, 2**12, 2**14, 2**16, 10**6]
    assert cases == [
        (ranks, wavelengths, algorithm, size)
        for ranks in (8, 12)
        for wavelengths in (1, 3)
        for algorithm in ("ring", "optree", "auto")
        for size in sizes
    ]
    assert {row["policy"] for row in rows} == {"on_change"}


def test_compare_prints_the_ratio_to_the_fastest(run: Run) -> None:
    finished = run("compare", "all_gather", "--fabric", RING, "--algorithms", f"ring,{TREE}")
    lines = {line.split()[0]: line.split() for line in finished.out.splitlines() if line}
    best = opticoll.plan("all_gather", RING, size="4MiB").simulate().time_ps
    # 15 steps and 12, each as long.
    assert lines["ring"][-2] == f"{15 * STEP_PS / best:.2f}"
    assert lines[TREE][-2] == f"{12 * STEP_PS / best:.2f}"
    assert re.search(r"^auto .* 1\.00  yes$", finished.out, re.MULTILINE)
    assert re.search(r"^auto chose \S+$", finished.out, re.MULTILINE)


@pytest.mark.parametrize("suffix", ["svg", "png", "pdf"])
def test_compare_draws_and_writes_a_table(run: Run, tmp_path: Path, suffix: str) -> None:
    plot, table = tmp_path / f"out.{suffix}", tmp_path / "out.csv"
    finished = run(
        "compare", "all_gather", "--fabric", RING, "--algorithms", f"ring,{TREE}",
        "--figure", plot, "--csv", table,
    )  # fmt: skip
    assert finished.code == 0
    assert plot.stat().st_size > 1000
    head, *rows = table.read_text().splitlines()
    assert head.startswith("collective,algorithm,")
    assert [row.split(",")[1] for row in rows] == ["ring", TREE, "auto"]
    assert {entry.name for entry in tmp_path.iterdir()} == {plot.name, "out.csv"}


def test_algorithm_named_twice_runs_once(run: Run) -> None:
    given = ("--fabric", RING, "--algorithm", "ring,Ring,optree,ring")
    rows = run_json(run, "compare", "compare", "all_gather", *given)
    assert [row["algorithm"] for row in rows] == ["ring", "optree", "auto"]


def test_violated_plan_wins_no_comparison() -> None:
    def nothing(collective: opticoll.Collective, fabric: opticoll.Fabric) -> opticoll.Schedule:
        schedule = opticoll.Schedule(collective)
        schedule.step(0, 0, 1)
        return schedule

    rows = opticoll.compare("all_gather", RING, [nothing, "ring", TREE]).rows
    # One step against 12 and 15, but without the data.
    assert rows[0]["time_ps"] == STEP_PS
    lines = table.comparison_table(rows).splitlines()[1:6]
    ratios = [re.split(r"\s{2,}", line)[8] for line in lines]
    best = rows[-1]["time_ps"]
    others = [f"{slots * STEP_PS / best:.2f}" for slots in (15, 12)]
    assert ratios == ["ratio", "-", *others, "1.00"]


def test_auto_is_left_out_where_asked(run: Run) -> None:
    asked = ("compare", "all_gather", "--fabric", "wdm_ring:ranks=16,wavelengths=2", "--json")
    done = run(*asked, "--algorithms", "ring,optree", "--no-auto")
    assert [row["algorithm"] for row in json.loads(done.out)] == ["ring", "optree"]
    done = run(*asked, "--algorithms", "auto", "--no-auto")
    assert done.code == 2
    assert "--no-auto removes auto" in done.err
    rows = opticoll.compare("all_gather", "wdm_ring:ranks=4,wavelengths=2", "ring", auto=False).rows
    assert [row.algorithm for row in rows] == ["ring"]
