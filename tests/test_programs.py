"""Programs of ranks: read, proved by both verifiers, carried out, written and raised to plans."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest

import opticoll
from mutants import MSCCL, carried_out, judged, modes, wrong
from opticoll import Program
from opticoll.names import has_root
from opticoll.reference.msccl import read_msccl
from opticoll.reference.plan import NotAPlan, TooLarge
from support import Run, some_of

DATA = Path(__file__).parent / "data/programs"
OTHERS = os.environ.get("OPTICOLL_MSCCL")
"""A folder with MSCCL files of others, which are not part of this repository."""

FILES = [*sorted(DATA.glob("*.xml")), *(sorted(Path(OTHERS).glob("*.xml")) if OTHERS else [])]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_program_is_proved_by_both_verifiers_and_its_bytes_are_right(path: Path) -> None:
    text = path.read_text()
    program = Program.from_msccl(text)
    assert modes(program)
    for in_place in modes(program):
        assert wrong(text, in_place=in_place) == (set(), set())
        assert carried_out(program, in_place=in_place)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_mutant_is_rejected_by_both_verifiers_or_has_the_same_bytes(path: Path) -> None:
    counts = judged(MSCCL, path.read_text(), None if path.parent == DATA else 6)
    assert counts["drop", "rejected"]
    assert counts["offset", "rejected"]


def pair(first: str, second: str, head: str = "", chunks: int = 2) -> str:
    """Returns a program of two ranks with one thread block each."""
    bodies = (first, second)
    gpus = "".join(
        f'<gpu id="{rank}" s_chunks="1"><tb id="0" send="{1 - rank}" recv="{1 - rank}" chan="0">\n'
        f"{body}</tb></gpu>\n"
        for rank, body in enumerate(bodies)
    )
    return (
        f'<algo name="pair" nchunksperloop="{chunks}" ngpus="2" coll="allgather" inplace="1"'
        f"{head}>\n{gpus}</algo>"
    )


def step(number: int, kind: str, offset: int, more: str = "") -> str:
    places = f'srcbuf="o" srcoff="{offset}" dstbuf="o" dstoff="{offset}"'
    return f'<step s="{number}" type="{kind}" {places} {more}/>\n'


RIGHT = (step(0, "s", 0) + step(1, "r", 1), step(0, "s", 1) + step(1, "r", 0))

WRONG = {
    "pairing": (RIGHT[0], step(0, "r", 0)),
    "deadlock": (
        step(0, "r", 1) + step(1, "s", 0),
        step(0, "r", 0) + step(1, "s", 1),
    ),
    "not_written": (RIGHT[0], step(0, "s", 0) + step(1, "r", 0)),
    "wrong_result": (RIGHT[0], step(0, "s", 1) + step(1, "r", 1)),
    "bounds": (RIGHT[0], step(0, "s", 2) + step(1, "r", 0)),
    "dependency": (RIGHT[0], step(0, "s", 1, 'depid="3" deps="0"') + step(1, "r", 0)),
}


def test_the_right_program_is_proved() -> None:
    assert wrong(pair(*RIGHT), in_place=True) == (set(), set())


@pytest.mark.parametrize("kind", WRONG)
def test_a_violation_has_its_name_and_its_place(kind: str) -> None:
    text = pair(*WRONG[kind])
    found = Program.from_msccl(text).verify(in_place=True).violations
    assert kind in {one.kind for one in found}
    assert wrong(text, in_place=True)[1]
    for one in found:
        assert one.sentence.startswith(f"rank {one.rank}")
        if one.line is not None:
            assert "<step" in text.splitlines()[one.line - 1]


def test_a_wait_for_itself_is_a_deadlock() -> None:
    own = step(0, "s", 0, 'depid="0" deps="0" hasdep="1"') + step(1, "r", 1)
    found = Program.from_msccl(pair(own, RIGHT[1])).verify(in_place=True).violations
    assert [(one.kind, one.sentence) for one in found] == [
        ("deadlock", "rank 0, thread block 0, step 0: waits for itself")
    ]


def test_a_gather_that_is_too_short_is_no_all_gather() -> None:
    """Every rank sends once, of many chunks: what ASTRA-sim takes for an all_gather."""
    text = pair(*RIGHT, chunks=64)
    assert wrong(text, in_place=True)[0] == {"wrong_result", "not_written"} or wrong(
        text, in_place=True
    )[0] == {"wrong_result"}
    assert wrong(text, in_place=True)[1]


HOSTILE = {
    "entities": '<!DOCTYPE algo [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]>\n' + pair(*RIGHT),
    "document type": '<!DOCTYPE algo SYSTEM "file:///etc/passwd">\n' + pair(*RIGHT),
    "depth": "<algo>" * 100_000,
    "depth in attributes": '<algo a="/>">' * 100_000,
    "not valid XML": "algo",
    "empty": "",
    "another element": "<system/>",
    "text inside": pair(*RIGHT).replace("<gpu", "words <gpu", 1),
    "a long attribute": pair(*RIGHT, head=f' proto="{"x" * 100_000}"'),
    "a large number": pair(*RIGHT).replace('ngpus="2"', 'ngpus="99999999999"'),
    "many ranks": pair(*RIGHT).replace('ngpus="2"', 'ngpus="1000000"'),
    "a rank twice": pair(*RIGHT).replace('gpu id="1"', 'gpu id="0"'),
    "a gap": pair(*RIGHT).replace('<step s="1"', '<step s="2"'),
    "an unknown operation": pair(*RIGHT).replace('type="s"', 'type="get"'),
    "an unknown collective": pair(*RIGHT).replace("allgather", "alltoallv"),
    "chunks that do not divide": pair(*RIGHT, chunks=3),
    "a NUL": pair(*RIGHT).replace("pair", "pa\0ir"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_no_program_is_refused_by_both_readers(name: str) -> None:
    with pytest.raises(opticoll.OpticollError) as refused:
        Program.from_msccl(HOSTILE[name])
    assert len(str(refused.value)) < 500
    with pytest.raises((NotAPlan, TooLarge)):
        read_msccl(HOSTILE[name])


KINDS = [record["name"] for record in opticoll.records("collectives")]
FABRICS = (
    "wdm_ring:ranks=8,wavelengths=2",
    "torus:dims=3x3",
    "wss_grid:rows=3,columns=3,wavelengths=4",
    "lightpath_grid:ranks=9,ports=2",
    "passive_star:ranks=8,wavelengths=8",
)


def deliveries(plan: opticoll.Plan) -> Counter[tuple[int, ...]]:
    """Counts the deliveries of a plan: step, chunk, source, destination and action."""
    columns = {name: column.tolist() for name, column in plan.columns().items()}
    slots = [step for step, count in enumerate(plan.step_slots) for _ in range(count)]
    names = ("slot", "chunk", "count", "source", "destination", "action")
    return Counter(
        (slots[slot], part, source, destination, action)
        for slot, chunk, count, source, destination, action in zip(
            *(columns[name] for name in names), strict=True
        )
        for part in range(chunk, chunk + count)
    )


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "barrier"])
@pytest.mark.parametrize("fabric", FABRICS)
def test_plans_become_programs_that_are_proved_and_come_back(kind: str, fabric: str) -> None:
    names = {one["name"] for one in opticoll.records("algorithms") if one["collective"] == kind}
    root = 1 if has_root(kind) else 0
    tried = 0
    for algorithm in some_of(sorted(names - {"auto"}), 2):
        try:
            plan = opticoll.plan(kind, fabric, algorithm, root=root)
        except opticoll.OpticollError:
            continue
        try:
            program = Program.from_plan(plan)
            text = program.to_msccl()
        except opticoll.errors.ProgramError:
            continue  # routes of its own, or more steps than runtimes take
        tried += 1
        assert program.in_place is (kind != "all_to_all")
        for in_place in modes(program):
            assert wrong(text, in_place=in_place) == (set(), set()), (algorithm, in_place)
            assert carried_out(program, in_place=in_place), (algorithm, in_place)
            schedule, in_vain = Program.from_msccl(text).schedule(in_place=in_place)
            back = opticoll._core.make_plan(schedule, plan.fabric, plan.algorithm)
            assert in_vain == 0
            assert back.verify() == []
            assert deliveries(back) == deliveries(plan), algorithm
    assert tried


def test_verify_says_what_is_wrong_and_where(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "pair.xml"
    path.write_text(pair(*WRONG["pairing"]))
    finished = run("verify", path)
    assert finished.code == 1
    assert "verified in place: NO" in finished.out
    assert "never sent (line 4)" in finished.out


def test_a_program_is_shown_simulated_and_exported_like_a_plan(run: Run, tmp_path: Path) -> None:
    path = DATA / "ring_all_reduce.xml"
    ring = "wdm_ring:ranks=4,wavelengths=1"
    assert "verified" in run("simulate", path, "--fabric", ring).out
    assert "slots       6" in run("show", path).out
    kept = tmp_path / "kept.plan"
    assert run("import", path, "--fabric", ring, "--output", kept).code == 0
    assert opticoll.read_plan(kept).verify() == []
    again = tmp_path / "again.xml"
    assert run("export", kept, "--output", again).code == 0
    assert run("verify", again).code == 0


def test_links_that_a_fabric_does_not_have_are_violations(run: Run) -> None:
    finished = run("verify", DATA / "all_gather.xml", "--fabric", "mesh:dims=3")
    assert finished.code == 1
    assert (
        "no_link: rank 2, thread block 0, step 0: sends to rank 0,"
        " but no links of mesh join the two ranks" in finished.out
    )
    assert run("verify", DATA / "all_gather.xml", "--fabric", "crossbar:ranks=3").code == 0


def test_a_program_of_others_ranks_is_refused(run: Run) -> None:
    finished = run("verify", DATA / "all_gather.xml", "--fabric", "crossbar:ranks=4")
    assert (finished.code, finished.out) == (2, "")
    assert "4 ranks, the schedule 3" in finished.err
