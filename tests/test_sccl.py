"""Files of SCCL: algorithms in JSON, and MSCCL XML with initial copies."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

import opticoll
from mutants import MSCCL, SCCL, carried_out, judged, wrong
from opticoll import Program
from opticoll.errors import ProgramError
from opticoll.reference.msccl import read_msccl
from opticoll.reference.plan import NotAPlan
from opticoll.reference.sends import read_sccl
from support import Run

OTHERS = os.environ.get("OPTICOLL_SCCL")
"""A folder with algorithms of SCCL, which are not part of this repository."""

Sends = list[list[tuple[int, int, int]]]
"""Sends of each step: address, source and destination."""


def algorithm(
    ranks: int, chunks: list[tuple[int, list[int], list[int]]], steps: Sends, parts: int = 1
) -> str:
    """Returns an algorithm as SCCL writes it; a chunk has an address, `pre` and `post`."""

    def of(kind: str, **fields: Any) -> dict[str, Any]:
        return {"msccl_type": kind, **fields}

    described = [
        of("chunk", pre=before, post=after, addr=address) for address, before, after in chunks
    ]
    return json.dumps(
        of(
            "algorithm",
            name="by hand",
            instance=of("instance", steps=len(steps), extra_rounds=0, chunks=parts),
            steps=[of("step", rounds=1, sends=sends) for sends in steps],
            collective=of("collective", name="c", nodes=ranks, chunks=described, triggers={}),
        )
    )


RANKS = 3
EVERYONE = list(range(RANKS))
OTHER_PAIRS = [(one, other) for one in EVERYONE for other in EVERYONE if one != other]

# SCCL's collectives (`msccl/collectives.py`) with sends from each rank to each other, root 1.
COLLECTIVES = {
    "all_gather": (
        [(rank, [rank], EVERYONE) for rank in EVERYONE],
        [(one, one, other) for one, other in OTHER_PAIRS],
    ),
    "broadcast": ([(0, [1], EVERYONE)], [(0, 1, 0), (0, 1, 2)]),
    "scatter": ([(rank, [1], [rank]) for rank in EVERYONE], [(0, 1, 0), (2, 1, 2)]),
    "gather": ([(rank, [rank], [1]) for rank in EVERYONE], [(0, 0, 1), (2, 2, 1)]),
    "all_to_all": (
        [(RANKS * to + of, [of], [to]) for to in EVERYONE for of in EVERYONE],
        [(RANKS * to + of, of, to) for of, to in OTHER_PAIRS],
    ),
    "reduce": ([(0, [rank], [1]) for rank in EVERYONE], [(0, 0, 1), (0, 2, 1)]),
    "all_reduce": (
        [(0, [rank], EVERYONE) for rank in EVERYONE],
        [(0, one, other) for one, other in OTHER_PAIRS],
    ),
    "reduce_scatter": (
        [(to, [of], [to]) for to in EVERYONE for of in EVERYONE],
        [(to, of, to) for of, to in OTHER_PAIRS],
    ),
}


@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("kind", COLLECTIVES)
def test_algorithms_are_proved_by_both_verifiers(kind: str, parts: int, tmp_path: Path) -> None:
    chunks, sends = COLLECTIVES[kind]
    cut = [
        (address * parts + part, source, destination)
        for part in range(parts)
        for address, source, destination in sends
    ]
    text = algorithm(RANKS, chunks, [cut], parts)
    assert wrong(text, SCCL, in_place=False) == (set(), set())
    (tmp_path / "theirs.json").write_text(text.replace("msccl_type", "sccl_type"))
    plan = opticoll.read_plan(tmp_path / "theirs.json")
    has_root = kind in ("broadcast", "scatter", "gather", "reduce")
    assert (plan.collective.kind, plan.collective.root) == (kind, 1 if has_root else 0)
    assert carried_out(plan, in_place=False)
    counts = judged(SCCL, text, 6)
    assert counts["drop", "rejected"] == counts["drop", "tried"] > 0


def test_sums_replace_their_summands_and_are_added_otherwise() -> None:
    # Ranks 0 and 1, and 2 and 3, exchange; so do 0 and 2, and 1 and 3. Then all have all.
    chunks = [(0, [rank], [0, 1, 2, 3]) for rank in range(4)]
    near, far = ([(0, a, b) for pair in pairs for a, b in (pair, pair[::-1])] for pairs in (
        ((0, 1), (2, 3)), ((0, 2), (1, 3)),
    ))  # fmt: skip
    assert wrong(algorithm(4, chunks, [near, far]), SCCL, in_place=False) == (set(), set())
    # Rank 0 collects all, and returns the sum.
    collected = [[(0, 1, 0)], [(0, 2, 0)], [(0, 3, 0)], [(0, 0, rank) for rank in (1, 2, 3)]]
    assert wrong(algorithm(4, chunks, collected), SCCL, in_place=False) == (set(), set())
    # Rank 1 has the summands of 0 and 1 when those of 0 and 2 arrive.
    twice = algorithm(4, chunks, [[(0, 0, 1), (0, 0, 2)], [(0, 2, 1)]])
    for rules in wrong(twice, SCCL, in_place=False):
        assert "double_reduction" in rules


REFUSED = {
    "is of the type `step`, not `algorithm`": '{"msccl_type": "step"}',
    "is of the type `no object`": "[1]",
    "with the same `post`": algorithm(2, [(0, [0], [0, 1]), (0, [1], [1])], []),
    "describe none of all_gather": algorithm(3, [(0, [0], [1, 2])], []),
    "all_to_all with equal blocks": algorithm(2, [(0, [0], [0, 1]), (1, [0], [1])], []),
    "a rank of the chunk with address 5 does not exist": algorithm(2, [(5, [2], [0])], []),
    "address or rank of [1, 0, 1] does not exist": algorithm(2, [(0, [0], [0, 1])], [[(1, 0, 1)]]),
    "`chunks`: `0` is not from 1 to 1048576": algorithm(2, [(0, [0], [0, 1])], [], parts=0),
}


@pytest.mark.parametrize("sentence", REFUSED)
def test_what_is_no_algorithm_is_refused(sentence: str, run: Run, tmp_path: Path) -> None:
    path = tmp_path / "theirs.json"
    path.write_text(REFUSED[sentence])
    finished = run("verify", path, "--format", "sccl")
    assert finished.code == 2
    assert sentence in " ".join(finished.err.split())
    with pytest.raises(NotAPlan):
        read_sccl(REFUSED[sentence])


@pytest.mark.skipif(OTHERS is None, reason="no algorithms of others")
def test_algorithms_of_others_are_proved() -> None:
    for path in sorted(Path(OTHERS or "").glob("*.json")):
        assert wrong(path.read_text(), SCCL, in_place=False) == (set(), set()), path
        assert judged(SCCL, path.read_text(), 3)["drop", "tried"]


COPIES = """<algo name="copies" proto="Simple" nchannels="1" ngpus="2" inplace="0"
 coll="allgather" nchunksperloop="4">
 <gpu id="0" i_chunks="2" o_chunks="4" s_chunks="0">
  <copy i_off="0" o_off="0"/>
  <copy i_off="1" o_off="1"/>
  <tb id="0" send="1" recv="1" chan="0">
   <step s="0" type="s" srcbuf="o" srcoff="0" cnt="2" depid="-1" deps="-1" hasdep="0"/>
   <step s="1" type="r" dstbuf="o" dstoff="2" cnt="2" depid="-1" deps="-1" hasdep="1"/>
  </tb>
  <tb id="1" send="-1" recv="-1" chan="0">
   <step s="0" type="nop" cnt="0" depid="0" deps="1" hasdep="0"/>
  </tb>
 </gpu>
 <gpu id="1" i_chunks="2" o_chunks="4" s_chunks="0">
  <copy i_off="0" o_off="2"/>
  <copy i_off="1" o_off="3"/>
  <tb id="0" send="0" recv="0" chan="0">
   <step s="0" type="s" srcbuf="o" srcoff="2" cnt="2" depid="-1" deps="-1" hasdep="0"/>
   <step s="1" type="r" dstbuf="o" dstoff="0" cnt="2" depid="-1" deps="-1" hasdep="0"/>
  </tb>
 </gpu>
</algo>
"""


def test_initial_copies_come_before_all_instructions() -> None:
    assert wrong(COPIES, MSCCL, in_place=False) == (set(), set())
    assert carried_out(Program.from_msccl(COPIES), in_place=False)
    counts = judged(MSCCL, COPIES)
    assert counts["offset", "rejected"] == counts["offset", "tried"] > 0
    without = COPIES.replace('<copy i_off="1" o_off="1"/>', "")
    first, second = wrong(without, MSCCL, in_place=False)
    assert "not_written" in first
    assert "not_written" in second or "race" in second


@pytest.mark.parametrize(
    "text",
    [
        COPIES.replace(' o_off="1"', ""),
        COPIES.replace('i_off="1"', 'i_off="-1"'),
        COPIES.replace("<tb id", '<copy i_off="0" o_off="0"><tb id', 1).replace(
            "</tb>", "</tb></copy>", 1
        ),
    ],
)
def test_copies_without_offsets_are_refused(text: str) -> None:
    with pytest.raises(ProgramError):
        Program.from_msccl(text)
    with pytest.raises(NotAPlan):
        read_msccl(text)
