"""Schedules of others that state plain steps of sends: CSV and results of TE-CCL."""

from __future__ import annotations

import json
import os
import resource
from pathlib import Path

import pytest
import zstandard

import opticoll
from mutants import SENDS, judged
from mutants import te_ccl as te_ccl_form
from opticoll import reference
from support import Run

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


def te_ccl(ranks: range, more: str = "") -> str:
    """Returns a result in the form of TE-CCL: a direct all_gather among some ranks."""
    pairs = [(one, other) for one in ranks for other in ranks if one != other]
    flows = [f"Chunk 0 from {a} traveled over {a}->{b} in epoch 0{more}" for a, b in pairs]
    paths: dict[str, list[str]] = {
        f"Demand at {b} for chunk 0 from {a} met by epoch 0": [] for a, b in pairs
    }
    return json.dumps({"7-Flows": flows, "8-Chunk paths": paths})


def test_a_result_of_te_ccl_is_proved(run: Run, tmp_path: Path) -> None:
    assert run("verify", written(tmp_path / "whole.json", te_ccl(range(4)))).code == 0


def fractions(*flows: str) -> str:
    """Returns an all_to_all of three ranks, whose chunks from 0 and to 0 are in `flows`."""
    whole = [f"Chunk 0 from {a} traveled over {a}->{b} in epoch 0" for a, b in ((1, 2), (2, 1))]
    whole += [f"Chunk 1 from {a} traveled over {a}->0 in epoch 0" for a in (1, 2)]
    pairs = ((0, 0, 1), (0, 1, 2), (1, 0, 2), (1, 1, 0), (2, 0, 1), (2, 1, 0))
    paths: dict[str, list[str]] = {
        f"Demand at {end} for chunk {chunk} from {start} met by epoch 2": []
        for start, chunk, end in pairs
    }
    return json.dumps({"7-Flows": [*flows, *whole], "8-Chunk paths": paths})


HALVES = (
    # A third of chunk 0 goes from 0 to 1 at once, two thirds by way of 2 in two parts.
    "Chunk 0 from 0 traveled over 0->1 with volume 0.3333333333333333 in epoch 0",
    "Chunk 0 from 0 traveled over 0->2 with volume 0.666666666 in epoch 0",
    "Chunk 0 from 0 traveled over 2->1 with volume 0.5 in epoch 1",
    "Chunk 0 from 0 traveled over 2->1 with volume 0.16666666 in epoch 2",
    "Chunk 1 from 0 traveled over 0->2 with volume 1.0 in epoch 1",
)


def test_fractions_of_te_ccl_are_pieces_that_move(run: Run, tmp_path: Path) -> None:
    path = written(tmp_path / "halves.json", fractions(*HALVES))
    plan = opticoll.read_plan(path)
    assert plan.verify() == []
    # The denominators 3, 2 and 6 have 6 in common.
    assert plan.collective.pieces == 6
    columns = plan.columns()
    pieces = zip(columns["source"], columns["destination"], columns["count"], strict=True)
    moved: dict[tuple[int, int], int] = {}
    for source, destination, count in pieces:
        moved[source, destination] = moved.get((source, destination), 0) + int(count)
    assert moved == {(0, 1): 2, (0, 2): 4 + 6, (2, 1): 3 + 1 + 6, (1, 2): 6, (1, 0): 6, (2, 0): 6}
    assert run("verify", path).code == 0


@pytest.mark.parametrize(
    ("flows", "words"),
    [
        ([*HALVES[:4], HALVES[4].replace("1.0", "0.013")], "no common denominator up to 64"),
        ([*HALVES[:4], HALVES[4].replace("1.0", "1.5")], "at most the volume of a chunk"),
        (
            [HALVES[0], HALVES[1], HALVES[2].replace("epoch 1", "epoch 0"), *HALVES[3:]],
            "in epoch 0 flows take more of chunk 0 from 0 than has come to vertex 2",
        ),
    ],
)
def test_fractions_that_do_not_add_up_are_refused(
    run: Run, tmp_path: Path, flows: list[str], words: str
) -> None:
    finished = run("verify", written(tmp_path / "bad.json", fractions(*flows)))
    assert (finished.code, finished.out) == (2, "")
    assert words in finished.err


def test_fractions_for_several_destinations_leave_parts_open(run: Run, tmp_path: Path) -> None:
    finished = run("verify", written(tmp_path / "a.json", te_ccl(range(3), "")))
    assert finished.code == 0
    text = te_ccl(range(3), "").replace(" in epoch", " with volume 0.5 in epoch")
    finished = run("verify", written(tmp_path / "a.json", text))
    assert (finished.code, finished.out) == (2, "")
    assert "fractions of chunks with several destinations" in finished.err


def test_a_result_of_te_ccl_that_leaves_a_rank_out_is_rejected(run: Run, tmp_path: Path) -> None:
    path = written(tmp_path / "part.json", te_ccl(range(1, 4)))
    finished = run("verify", path)
    assert finished.code == 1
    first, second = finished.out.splitlines()[2:4]
    assert first.startswith("  left_out: rank 0 neither sends nor receives")
    assert second.startswith("  missing: at the end rank ")
    for command in (("simulate", path), ("import", path, "--output", tmp_path / "part.plan")):
        again = run(*command)
        assert (again.code, again.out) == (1, finished.out)


@pytest.mark.parametrize(
    ("ranks", "options", "proved"),
    [
        # Vertex 0 is passed and has no demand. Whole chassis of 8 decide, or the user.
        (range(1, 9), (), True),
        (range(1, 8), (), False),
        (range(1, 8), ("--ranks", "7"), True),
        (range(1, 8), ("--ranks", "8"), False),
        (range(1, 9), ("--ranks", "9"), False),
        (range(1, 4), ("--ranks", "3"), True),
        (range(1, 4), ("--fabric", "fully_connected:ranks=3"), True),
        (range(1, 4), ("--fabric", "fully_connected:ranks=4"), False),
    ],
)
def test_a_vertex_that_flows_pass_is_a_switch_or_a_rank_left_out(
    run: Run, tmp_path: Path, ranks: range, options: tuple[str, ...], proved: bool
) -> None:
    path = written(tmp_path / "passed.json", te_ccl(ranks, " via switches 0"))
    finished = run("verify", path, *options)
    assert finished.code == (0 if proved else 1)
    assert ("rank 0 neither sends" in finished.out) is not proved
    assert ("no flow starts or ends at vertex 0" in finished.err) is (options == ())


@pytest.mark.parametrize("options", [(), ("--ranks", "2")], ids=["unknown", "too few"])
def test_a_number_of_ranks_that_nothing_says_is_asked_for(
    run: Run, tmp_path: Path, options: tuple[str, ...]
) -> None:
    path = written(tmp_path / "passed.json", te_ccl(range(1, 4), " via switches 0"))
    finished = run("verify", path, *options)
    assert (finished.code, finished.out) == (2, "")
    assert "3" in finished.err
    assert "4" in finished.err


def test_flows_over_links_that_a_fabric_does_not_have_are_violations(
    run: Run, tmp_path: Path
) -> None:
    path = written(tmp_path / "whole.json", te_ccl(range(4)))
    finished = run("verify", path, "--fabric", "mesh:dims=2x2")
    assert finished.code == 1
    # Opposite corners of a square have no link.
    lines = [line for line in finished.out.splitlines() if "no_link" in line]
    assert [(line.split()[2], line.split()[6]) for line in lines] == [
        ("0:", "3,"), ("1:", "2,"), ("2:", "1,"), ("3:", "0,"),
    ]  # fmt: skip
    star = "custom:ranks=4,switches=1,links=0-4+1-4+2-4+3-4"
    assert run("verify", path, "--fabric", star).code == 0


def test_every_mutant_is_rejected_by_both_verifiers_or_has_the_same_bytes(tmp_path: Path) -> None:
    plan = opticoll.plan("all_reduce", "electrical_ring:ranks=3", "ring")
    (path,) = plan.export(tmp_path / "ring.csv", "sends")
    for form, text in (
        (SENDS, path.read_text()),
        (te_ccl_form(te_ccl(range(3))), te_ccl(range(3))),
    ):
        counts = judged(form, text)
        for kind in ("drop", "double", "offset"):
            assert counts[kind, "rejected"] == counts[kind, "tried"] > 0, (form.name, kind)
        assert counts["retarget", "rejected"]


def test_a_plan_that_sends_what_is_not_there_becomes_a_program_that_is_rejected(
    tmp_path: Path,
) -> None:
    path = written(tmp_path / "ring.csv", RING.replace("5,0,1,2", "0,0,1,2"))
    plan = opticoll.read_plan(path)
    (first, *_) = opticoll.Program.from_plan(plan).verify(in_place=True).violations
    assert first.kind == "not_written"


LARGE_FILES = {
    "large.xml": b'<algo name="',
    "large.csv": b"# all_gather ranks=2\n",
    "large.json": b'{"7-Flows": ["Chunk 0 from 0 traveled over ',
}


@pytest.mark.parametrize("name", LARGE_FILES)
@pytest.mark.parametrize("compressed", [False, True], ids=["plain", "zst"])
def test_attributes_of_a_gigabyte_are_refused_before_they_are_read(
    run: Run, tmp_path: Path, name: str, compressed: bool
) -> None:
    path = tmp_path / name
    with path.open("wb") as file:
        if compressed:
            compressor = zstandard.ZstdCompressor().compressobj()
            for part in (LARGE_FILES[name], *[b"x" * 2**20] * 1024):
                file.write(compressor.compress(part))
            file.write(compressor.flush())
        else:
            file.write(LARGE_FILES[name])
            file.truncate(2**30)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    finished = run("verify", path)
    assert (finished.code, finished.out) == (2, "")
    assert "too large" in finished.err
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 2**20  # in KiB


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
    assert "left_out: rank 0 " in finished.out.splitlines()[2]


@pytest.mark.skipif(not OTHERS, reason="OPTICOLL_TE_CCL names no folder")
@pytest.mark.parametrize("options", [(), ("--ranks", "32")], ids=["alone", "ranks"])
def test_the_shipped_result_for_four_chassis_is_right(run: Run, options: tuple[str, ...]) -> None:
    (path,) = Path(OTHERS or ".").glob("*4_chassis-AllGather*.json")
    assert run("verify", path, *options).code == 0


def test_a_schedule_is_imported_where_it_is_proved(run: Run, tmp_path: Path) -> None:
    sends, kept = written(tmp_path / "ring.csv", RING), tmp_path / "ring.plan"
    assert "--output is missing" in run("import", sends).err
    finished = run("import", sends, "--fabric", "wdm_ring:ranks=3,wavelengths=1", "--output", kept)
    assert (finished.code, finished.err) == (0, f"opticoll: wrote {kept}\n")
    plan = opticoll.read_plan(kept)
    assert (plan.verify(), reference.verify_text(kept.read_text())) == ([], [])
    # Three blocks go around the ring, one hop in each of two steps.
    assert (len(plan), len(plan.step_slots)) == (6, 2)


@pytest.mark.parametrize("removed", range(2, 8))
def test_a_schedule_that_is_violated_is_not_imported(
    run: Run, tmp_path: Path, removed: int
) -> None:
    lines = RING.splitlines()
    del lines[removed]
    kept = tmp_path / "ring.plan"
    sends = written(tmp_path / "ring.csv", "\n".join(lines))
    finished = run("import", sends, "--output", kept)
    assert finished.code == 1
    assert "verified: NO" in finished.out
    assert not kept.exists()


def test_a_plan_is_exported_and_run_in_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    plan = opticoll.plan("all_reduce", "wdm_ring:ranks=4,wavelengths=1", "ring")
    assert plan.export("ring.xml") == [Path("ring.xml"), Path("ring.xml.plan")]
    assert opticoll.read_plan("ring.xml.plan") == plan
    with pytest.raises(opticoll.errors.UsageError, match="states chunks and no bytes"):
        plan.export("ring.xml", size="1MiB")
    with pytest.raises(opticoll.errors.UsageError, match="must end in"):
        plan.export("ring.doc")
    rows = plan.run("64B,1KiB", type="float32", operator="max")
    assert [(row.size_bytes, row.mode, row.wrong) for row in rows] == [
        (size, mode, 0) for size in (64, 1024) for mode in ("out of place", "in place")
    ]
