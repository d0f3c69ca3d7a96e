"""The command `calibrate`: readers of measured times, and fits of the costs of a library."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import opticoll
from opticoll.errors import FileError
from opticoll.inputs.fabric_files import to_fabric
from opticoll.inputs.measured_times import Measured, read
from support import Run

SEEDS = Path(__file__).parents[1] / "fuzz/seeds/measured_times"
NCCL_TESTS, OSU = ((SEEDS / name).read_text() for name in ("nccl_tests.txt", "osu.txt"))


def written(tmp_path: Path, name: str, text: str) -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


def test_the_text_of_nccl_tests_states_ranks_sizes_and_times_out_of_place(tmp_path: Path) -> None:
    path = written(tmp_path, "log.txt", NCCL_TESTS)
    assert read(path) == [
        Measured("all_gather", 2, 1024, 5.4),
        Measured("all_gather", 2, 33554432, 93.1),
    ]
    assert read(path)[0].size_bytes == 512


def test_an_old_text_of_nccl_tests_has_empty_columns_and_no_program(tmp_path: Path) -> None:
    rows = [line for line in NCCL_TESTS.splitlines() if "Collective" not in line]
    old = "\n".join(rows).replace("none      -1", "              ")
    assert [row.time_us for row in read(written(tmp_path, "alltoall.txt", old))] == [5.4, 93.1]
    path = written(tmp_path, "log.txt", old)
    assert {row.collective for row in read(path, collective="reduce_scatter")} == {"reduce_scatter"}
    with pytest.raises(FileError, match=r"line 10: .* give --collective all_reduce"):
        read(path)


def test_a_log_may_have_several_programs(tmp_path: Path) -> None:
    other = NCCL_TESTS.replace("all_gather_perf", "alltoall_perf").replace("Rank  1", "Rank  3")
    left_out = NCCL_TESTS.replace("all_gather_perf", "broadcast_perf")
    path = written(tmp_path, "log.txt", NCCL_TESTS + left_out + other)
    assert [row.collective for row in read(path)] == ["all_gather"] * 2 + ["all_to_all"] * 2


def test_the_text_of_osu_needs_the_number_of_ranks(tmp_path: Path) -> None:
    path = written(tmp_path, "osu.txt", OSU)
    # An all_gather of OSU states the bytes of each rank.
    assert read(path, ranks=4) == [
        Measured("all_gather", 4, 4, 8.1),
        Measured("all_gather", 4, 4096, 9.25),
    ]
    whole = written(tmp_path, "osu.txt", OSU.replace("Allgather", "Allreduce"))
    assert read(whole, ranks=4)[1] == Measured("all_reduce", 4, 1024, 9.25)
    with pytest.raises(FileError, match=r"line 5: .*give --ranks 8"):
        read(path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("step,source\n1,2\n", "has no measured times; give a CSV file with the columns"),
        ("collective,ranks,bytes,time_us\n", "has no row of all_gather"),
        ("collective,ranks,bytes,time_us\nall_gather,8,1KiB,3\n", "line 2: bytes is `1KiB`"),
        ("collective,ranks,bytes,time_us\n\nall_gather,8,1,-3\n", "line 3: the time is `-3`"),
        ("collective,ranks,bytes,time_us\nall_gather,8,1,nan\n", "the time is `nan`"),
        (
            "system,collective,ranks,bytes,time_us\na,all_gather,2,1,1\nb,all_gather,2,1,1\n",
            "line 3: .*several systems, `a` and `b`; select one with --system a",
        ),
    ],
)
def test_a_wrong_file_is_refused_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(FileError, match=said):
        read(written(tmp_path, "times.csv", text))


def test_a_system_is_selected(tmp_path: Path) -> None:
    text = "system,collective,ranks,bytes,time_us\na,all_gather,2,1,1\nb,all_gather,2,1,2\n"
    path = written(tmp_path, "times.csv", text)
    assert [row.time_us for row in read(path, system="b")] == [2.0]
    with pytest.raises(FileError, match=r"no rows of the system `c`"):
        read(path, system="c")


COSTS = {
    "launch": "6us",
    "ll_step": "1.2us",
    "ll_rate": "0.3",
    "ll_fan": "2us",
    "simple_setup": "9us",
    "simple_step": "6us",
    "simple_rate": "0.7",
    "overlap": "2",
    "nvls_chunk": "5us",
    "post": "1.5us",
}


def test_a_fit_finds_the_costs_of_which_the_times_are_made(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Times by `simulate` with NCCL's choice of protocols, on 2, 4 and 8 ranks, without NVLS."""
    pytest.importorskip("scipy")
    monkeypatch.chdir(tmp_path)
    values = ",".join(f"{name}={value}" for name, value in COSTS.items())
    lines = ["collective,ranks,bytes,time_us"]
    for ranks in (2, 4, 8):
        members = f",members=0-{ranks - 1}" if ranks < 8 else ""
        fabric = f"gpu_servers:model=dgx_h100,library=h100_sxm,{values}{members}"
        for kind in ("all_gather", "reduce_scatter", "all_to_all"):
            plan = opticoll.plan(kind, fabric, "direct" if kind == "all_to_all" else "ring")
            for exponent in range(9, 30, 2):
                size = 2**exponent // (ranks if kind == "all_gather" else 1)
                outcome = plan.simulate(size, protocol="nccl")
                lines.append(f"{kind},{ranks},{2**exponent},{outcome.time_ps / 1e6}")
    path = written(tmp_path, "times.csv", "\n".join(lines))
    machine = "gpu_servers:model=dgx_h100"
    done = run("calibrate", str(path), "--family", machine, "--json", "--output", "my_box.yaml")
    assert done.code == 0, done.err
    row = json.loads(done.out)
    fitted = {cost["name"]: cost for cost in row["costs"]}
    assert not fitted.pop("nvls_chunk")["determined"]
    for name, cost in fitted.items():
        found, made = (float(text.removesuffix("us")) for text in (cost["value"], COSTS[name]))
        assert found == pytest.approx(made, rel=0.02), name
    assert row["collectives"][-1]["worst"] < 0.005
    assert row["collectives"][-1]["worst_left_out"] < 0.02
    # Every command takes the file.
    preset = to_fabric("my_box.yaml")
    assert preset.spec == row["fabric"]


def test_what_cannot_be_fitted_is_refused_with_a_hint(tmp_path: Path, run: Run) -> None:
    path = written(tmp_path, "times.csv", "collective,ranks,bytes,time_us\nall_gather,16,4096,9\n")
    for words, said in (
        (["calibrate", str(path)], "--family is missing; give the machine that was measured"),
        (["calibrate", str(path), "--family", "crossbar:ranks=4"], "has no library of collectives"),
        (["calibrate", str(path), "--family", "mi250"], "the fabric has no library"),
        (
            ["calibrate", str(path), "--family", "dgx_h100", "--output", "a.txt"],
            "must end in .yaml",
        ),
    ):
        done = run(*words)
        assert done.code == 2
        assert said in done.err
    pytest.importorskip("scipy")
    done = run("calibrate", str(path), "--family", "dgx_h100")
    assert "1 time of 1 size are too few for a fit; give at least 8 times" in done.err
    many = "".join(f"all_gather,16,{2**power},9\n" for power in range(9, 20))
    path.write_text(f"collective,ranks,bytes,time_us\n{many}")
    done = run("calibrate", str(path), "--family", "dgx_h100")
    assert "has 16 ranks, the fabric only 8; give more boxes" in done.err
