"""Limits and options that every command has: memory, help in full, rates that are rounded."""

from __future__ import annotations

from pathlib import Path

import pytest
import zstandard

import opticoll
from support import RING, Run
from test_cli import run_json

MILLION = "wdm_ring:ranks=1000000,wavelengths=64"
LARGE_RING = "wdm_ring:ranks=50000,wavelengths=64"
HALVES = "relay_tree:pieces=2"


@pytest.fixture(autouse=True)
def _no_limit_of_another_test() -> None:
    opticoll.set_memory_limit(None)


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        # 2 (10^6 - 1) / 128 steps and as many ranks, 4 bytes each, and 8 MB for the lengths.
        (("plan", "all_gather", "--fabric", MILLION, "--algorithm", HALVES), "62.51 GB"),
        (("plan", "all_reduce", "--fabric", MILLION, "--algorithm", HALVES), "62.51 GB"),
        (
            ("plan", "all_to_all", "--fabric", "crossbar:ranks=8000", "--algorithm", "direct"),
            "2.82 GB",
        ),
        (
            ("simulate", "all_to_all", "--fabric", "crossbar:ranks=1800", "--algorithm", "direct"),
            "1.55 GB",
        ),
    ],
)
def test_memory_is_refused_with_forecast_and_limit(
    run: Run, arguments: tuple[str, ...], what: str
) -> None:
    finished = run(*arguments, "--memory-limit", "1GB")
    assert (finished.code, finished.out) == (2, "")
    error, hint = finished.err.splitlines()
    assert what in error
    assert "the limit is 1.00 GB" in error
    assert "--memory-limit" in hint


PLAN = """opticoll plan 1
collective broadcast ranks=2 root=0 pieces=1
fabric wdm_ring:ranks=2,wavelengths=1
algorithm x
steps {steps}
slot 0
copy 0 0>1 cw 0.0 x{copies} {shift}
end {copies}
"""


def test_copies_in_a_plan_file_are_counted_before_they_are_made(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "copies.plan"
    path.write_text(PLAN.format(steps=2**20, copies=2**20, shift="slot+1"))
    finished = run("verify", path, "--memory-limit", "16MB")
    assert (finished.code, finished.out) == (2, "")
    assert "reading this plan needs" in finished.err


def test_copies_of_one_lightpath_are_refused_before_they_are_made(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "copies.plan"
    path.write_text(PLAN.format(steps=1, copies=2**20, shift=""))
    finished = run("verify", path, "--memory-limit", "16MB")
    assert (finished.code, finished.out) == (2, "")
    assert "stand for 1048576 lightpaths, of which at most 1 differ" in finished.err


MEGABYTES = b"0,1\n" * 2**20
FILES = {
    "p.plan.zst": zstandard.compress(MEGABYTES),
    "p.plan": MEGABYTES,
    "p.csv": b"# all_gather ranks=2\n" + MEGABYTES,
    "p.json": b'{" traveled over ": [' + MEGABYTES.replace(b"\n", b",") + b"1]}",
    "p.xml": b"<algo>" + MEGABYTES,
}


@pytest.mark.parametrize("name", FILES)
def test_what_files_hold_is_counted_before_it_is_read(run: Run, tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(FILES[name])
    assert run("verify", path).code == 2
    assert "reading" in run("verify", path, "--memory-limit", "8MB").err


@pytest.mark.parametrize("name", ["trace.tit", "trace.csv", "trace.goal"])
def test_events_of_traces_are_counted_before_they_are_read(
    run: Run, tmp_path: Path, name: str
) -> None:
    path = tmp_path / name
    path.write_bytes(b"num_ranks 1\n" * (name == "trace.goal") + b"0 compute 1\n" * 2**16)
    finished = run("replay", path, "--fabric", RING, "--memory-limit", "8MB")
    assert (finished.code, finished.out) == (2, "")
    assert "reading" in finished.err
    assert "the limit is 8.00 MB" in finished.err


@pytest.mark.parametrize("name", ["g.graphml", "g.json"])
def test_fabrics_in_files_are_counted_before_they_are_read(
    run: Run, tmp_path: Path, name: str
) -> None:
    path = tmp_path / name
    path.write_bytes(b"<graph/>" + MEGABYTES)
    finished = run("plan", "all_gather", "--fabric", path, "--memory-limit", "8MB")
    assert (finished.code, finished.out) == (2, "")
    assert "reading" in finished.err
    assert "the limit is 8.00 MB" in finished.err


def test_whole_blocks_of_many_ranks_need_no_table(run: Run) -> None:
    asked = ("plan", "all_gather", "--fabric", LARGE_RING, "--algorithm", "relay_tree")
    finished = run(*asked, "--memory-limit", "100MB")
    assert finished.code == 0
    assert "verified         yes" in finished.out


def test_a_limit_holds_for_one_command(run: Run) -> None:
    asked = ("plan", "all_gather", "--fabric", RING, "--algorithm", "ring")
    assert run(*asked, "--memory-limit=1kB").code == 2
    assert run(*asked).code == 0


def test_the_limit_holds_for_the_library() -> None:
    opticoll.set_memory_limit("1kB")
    with pytest.raises(opticoll.errors.MemoryLimitError, match="the limit is"):
        opticoll.plan("all_gather", RING, "ring")


@pytest.mark.parametrize("command", ["plan", "simulate", "compare", "train", "replay"])
def test_help_in_full_shows_the_settings_of_packets(
    run: Run, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    short, full = run(command, "--help").out, run(command, "--help-all").out
    for option in ("--router-delay", "--buffers", "--credit-delay"):
        assert option in full
        assert option not in short
    options, _, all_of_them = short.partition("All options: ")
    assert set(options.split()) <= set(full.split())
    assert all_of_them.startswith(f"opticoll {command} --help-all")


def test_a_rounded_rate_is_said_and_printed(run: Run) -> None:
    # 4.7 * 2^33 = 40372692582.4
    finished = run("plan", "all_gather", "--fabric", f"{RING},rate=4.7GiB/s")
    assert finished.code == 0
    assert finished.err == "opticoll: the rate 4.7GiB/s is rounded to 40.372692582Gb/s\n"
    row = run_json(run, "plan", "plan", "all_gather", "--fabric", f"{RING},rate=4.7GiB/s")
    assert "rate=40.372692582Gb/s" in row["fabric"]


def test_numbers_of_ranks_need_none_in_the_fabric(run: Run) -> None:
    asked = ("compare", "compare", "all_gather", "--algorithms", "ring", "--ranks", "8,16")
    rows = run_json(run, *asked, "--fabric", "wdm_ring:wavelengths=2")
    assert rows == run_json(run, *asked, "--fabric", "wdm_ring:ranks=4,wavelengths=2")
    assert [row["ranks"] for row in rows if row["algorithm"] == "ring"] == [8, 16]
    refused = run(*asked[1:-2], "--fabric", "wdm_ring:wavelengths=2")
    assert refused.code == 2
    assert "needs ranks=" in refused.err
