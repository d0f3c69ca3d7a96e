"""The fastest plan over reconfiguration times, and where one overtakes another."""

import math
from pathlib import Path
from typing import Any

import pytest

import opticoll
from opticoll.errors import OpticollError
from opticoll.inputs.values import split_times
from opticoll.outputs import break_even
from support import Run
from test_cli import run_json

RANKS, SIZE, DELAY_S, BETA_S = 8, 2**20, 100e-9, 8 / 800e9
FABRIC = f"circuit_switch:ranks={RANKS},startup=100ns,latency=100ns"
TWO = ("compare", "all_reduce", "--fabric", FABRIC, "--algorithms", "ring,halving_doubling")


def crossing_s() -> float:
    """Returns the setting time at which halving and doubling takes as long as a ring.

    In the last of s dimensions ranks exchange all that is left, 2 m/n, once in place of m/n twice:
    (2 s - 1) (alpha + delta) + 2 (1 - 1/n) beta m + (2 s - 2) R
    = 2 (n - 1) (alpha + delta + beta m/n)
    """
    steps = int(math.log2(RANKS))
    ring = 2 * (RANKS - 1) * (2 * DELAY_S + BETA_S * SIZE / RANKS)
    doubling = (2 * steps - 1) * 2 * DELAY_S + 2 * (1 - 1 / RANKS) * BETA_S * SIZE
    return (ring - doubling) / (2 * steps - 2)


def test_the_break_even_is_where_the_formulas_cross() -> None:
    names = ["ring", "halving_doubling:halvings=2"]
    times = "10ns..10ms"
    rows = opticoll.compare("all_reduce", FABRIC, names, sizes=SIZE, reconfiguration=times).rows
    rows = [row for row in rows if row.algorithm != "auto"]
    assert all(row.verified for row in rows)
    (ring,) = break_even.break_evens(break_even.leads(rows))
    assert ring.kind == "ring"
    assert crossing_s() <= ring.at / 1e12 <= 1.011 * crossing_s()


def test_ranges_of_times_grow_by_one_two_five() -> None:
    assert split_times("1us..30us") == ["1us", "2us", "5us", "10us", "20us", "30us"]
    assert split_times("3ns..40ns,1ms") == ["3ns", "6ns", "15ns", "30ns", "40ns", "1ms"]


def test_a_zero_time_is_taken() -> None:
    rows = opticoll.compare(
        "all_reduce", FABRIC, ["ring", "halving_doubling"], sizes=SIZE, reconfiguration="0s,1ms"
    ).rows
    kinds = [lead.kind for lead in break_even.leads(rows)]
    assert (kinds[0], kinds[-1]) == ("halving_doubling", "ring")


def test_the_table_says_who_leads_from_where_on(run: Run, tmp_path: Path) -> None:
    figure = tmp_path / "curves.svg"
    finished = run(*TWO, "--size", "1MiB", "--reconfiguration", "100ns,1ms", "--figure", figure)
    assert "fastest: halving_doubling; from " in finished.out
    assert figure.read_text().startswith("<?xml")


def test_three_sizes_are_drawn_as_a_map(run: Run, tmp_path: Path) -> None:
    figure = tmp_path / "map.svg"
    asked = ("--sizes", "64KiB..1MiB", "--reconfiguration", "100ns,1ms", "--figure", figure)
    rows: list[dict[str, Any]] = run_json(run, "compare", *TWO, *asked)
    assert {row["size_bytes"] for row in rows} == {2**16, 2**18, 2**20}
    assert all(row["reconfigurations"] is not None for row in rows)
    times = {row["fabric_reconfiguration_s"] for row in rows}
    assert {1e-7, 1e-3} < times
    assert figure.exists()


def test_parts_of_a_time_count_together() -> None:
    fabric = "circuit_switch:ranks=4,reconfiguration=68us+3us+9us"
    (row,) = opticoll.compare("all_reduce", fabric, "auto", sizes="1KiB").rows
    assert row.fabric_reconfiguration_s == pytest.approx(80e-6)


def test_of_equal_times_the_kind_that_led_goes_on() -> None:
    def at(time_s: float, name: str, took: int) -> dict[str, Any]:
        return {
            "fabric": "circuit_switch:ranks=4", "size_bytes": 8, "verified": True,
            "fabric_reconfiguration_s": time_s, "algorithm": name, "chosen": name, "time_ps": took,
        }  # fmt: skip

    rows = [at(0, "swing:pieces=2", 5), at(1e-6, "swing:pieces=3", 6), at(1e-6, "ring", 6)]
    assert [lead.kind for lead in break_even.leads(rows)] == ["swing", "swing"]


def test_a_time_of_no_fabric_names_the_option() -> None:
    with pytest.raises(OpticollError, match="reconfiguration"):
        opticoll.compare("all_reduce", "crossbar:ranks=4", reconfiguration=["1us"])
