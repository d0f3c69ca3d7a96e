"""Layers with experts: skews, copies, chunks, and the three parts of a layer as one problem."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import opticoll
from opticoll.commands.experts import pipelined
from support import Run

MODEL = "moe:layers=2,width=1024,experts=8,top_k=2,heads=8,sequence=1024,vocabulary=1024"
FABRIC = "crossbar:ranks=4,rate=400Gb/s,latency=0s"
TOKEN = 2 * 1024
"""Bytes of a token: 16 bits for each of its values."""

RULES = (
    "balanced",
    "zipf:exponent=1.2,seed=1",
    "hot_experts:seed=2",
    "hot_rank",
    "spread",
    "ragged",
    "zero_rank",
    "rotating:every=1",
    "burst:period=2",
)


def layer(run: Run, *options: str, model: str = MODEL, fabric: str = FABRIC) -> dict[str, Any]:
    """Returns the row of `opticoll experts`."""
    arguments = ["experts", model, "--device", "h100", "--fabric", fabric, *options]
    row: dict[str, Any] = json.loads(run(*arguments, "--json").out)
    assert row["verified"]
    return row


def received_of(row: dict[str, Any]) -> list[int]:
    """Returns the assignments of each rank."""
    return [rank["received"] for rank in row["experts"]]


def best_order(chunks: int, dispatch: int, experts: int, combine: int) -> int:
    """Returns the shortest time of a layer, by trying all orders of the exchanges."""
    best = None
    for places in itertools.combinations(range(2 * chunks), chunks):
        network, arrived, valid, returned = 0, 0, True, 0
        ends: list[int] = []
        for exchange in range(2 * chunks):
            if exchange in places:
                network += dispatch
                arrived += 1
                begin = max(network, ends[-1] if ends else 0)
                ends.append(begin + experts)
            else:
                valid = valid and returned < arrived
                if not valid:
                    break
                network = max(network, ends[returned]) + combine
                returned += 1
        if valid and (best is None or network < best):
            best = network
    assert best is not None
    return best


@given(chunks=st.integers(1, 5), times=st.tuples(*[st.integers(0, 30)] * 3))
def test_no_order_of_exchanges_is_faster(chunks: int, times: tuple[int, int, int]) -> None:
    assert pipelined(chunks, *times) == best_order(chunks, *times)


@pytest.mark.parametrize("rule", RULES)
def test_a_table_of_a_rule_gives_what_the_rule_gives(run: Run, tmp_path: Path, rule: str) -> None:
    path = tmp_path / "loads.csv"
    at = ["--micro-batch", "1"]
    own = layer(run, "--expert-skew", rule, *at, "--weights", str(path))
    read = layer(run, "--expert-skew", str(path), *at)
    changed = ("command", "expert_skew")
    assert {**own, **dict.fromkeys(changed)} == {**read, **dict.fromkeys(changed)}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("chunks", [1, 4])
def test_all_tokens_are_sent_and_return(run: Run, rule: str, chunks: int) -> None:
    options = ["--expert-skew", rule, "--expert-chunks", str(chunks), "--replicate-experts", "4"]
    row = layer(run, *options, "--micro-batch", "1")
    there = [rank["dispatch_bytes"] for rank in row["experts"]]
    sent = [sum(sizes) for sizes in there]
    # A token in each direction for each assignment.
    received = received_of(row)
    assert [sum(column) for column in zip(*there, strict=True)] == [TOKEN * n for n in received]
    tokens = [1024 // chunks] * 4
    if rule == "ragged":
        # From all tokens down to a half, rounded down to whole millionths and tokens.
        tokens = [
            count * (10**6 - 10**6 // 2 * source // 3) // 10**6
            for source, count in enumerate(tokens)
        ]
    assert sent == [2 * TOKEN * count for count in tokens]
    assert sum(received_of(row)) == 2 * sum(tokens)
    assert max(received_of(row)) >= row["least_received"] >= sum(received_of(row)) / 4
    assert sum(len(rank["experts"]) for rank in row["experts"]) == 8 + 4


def test_a_balanced_layer_takes_what_its_bytes_take(run: Run) -> None:
    row = layer(run, "--expert-skew", "balanced")
    # Each rank sends 3/4 of 1024 x 2 assignments of 2 KiB at 50 GB/s, there and back.
    seconds = 3 / 4 * 2 * 1024 * TOKEN / 50e9
    for exchange in row["exchanges"]:
        assert exchange["time_s"] == pytest.approx(seconds, rel=1e-6)
        assert exchange["bound_s"] == pytest.approx(seconds, rel=1e-6)
    whole = 2 * seconds + row["experts"][0]["experts_s"]
    assert row["time_s"] == pytest.approx(whole, rel=1e-6)
    assert len({rank["experts_s"] for rank in row["experts"]}) == 1
    # Copies of balanced experts leave the demand as it is.
    copied = layer(run, "--expert-skew", "balanced", "--replicate-experts", "4")
    assert copied["exchanges"] == row["exchanges"]
    assert received_of(copied) == received_of(row)


def test_copies_of_hot_experts_make_a_layer_faster(run: Run) -> None:
    skew = ["--expert-skew", "hot_rank"]
    plain = layer(run, *skew)
    # Two of eight experts, both on rank 0, get 13 of 32 parts each; all others one part.
    assert received_of(plain) == [8 * 1024 * 26 // 32, *[8 * 1024 * 2 // 32] * 3]
    assert plain["gain"] == 1
    copied = layer(run, *skew, "--replicate-experts", "4")
    assert copied["gain"] > 1.5
    assert copied["unchanged_s"] == plain["time_s"]
    found = layer(run, *skew, "--replicate-experts", "auto", "--expert-chunks", "auto")
    assert found["time_s"] <= copied["time_s"]
    assert found["tried"] == 4 * 5
    assert found["time_s"] >= found["bound_s"]
    # 16 bytes for each of 3 matrices of 1024 values by the feed-forward width, in both layers.
    parameters = opticoll.TrainingModel(MODEL).parameters
    wider = opticoll.TrainingModel(MODEL.replace("experts=8", "experts=9")).parameters
    router = 2 * 1024
    assert copied["copies_bytes"] == 16 * (wider - parameters - router)


def test_experts_are_placed_by_load(run: Run) -> None:
    skew = ["--expert-skew", "hot_rank"]
    placed = layer(run, *skew, "--expert-placement", "load")
    # The hot experts are on two ranks, each with one other expert.
    assert sorted(received_of(placed)) == [512, 512, 3584, 3584]
    assert placed["time_s"] < layer(run, *skew)["time_s"]


def test_chunks_and_copies_make_an_iteration_faster() -> None:
    options: dict[str, Any] = {
        "device": "h100",
        "batch": 16,
        "micro_batches": 16,
        "expert_parallel": 4,
    }
    options["expert_skew"] = "hot_rank"
    fabric = "crossbar:ranks=4,rate=100Gb/s,latency=0s"
    further: list[dict[str, Any]] = [
        {},
        {"expert_chunks": 4},
        {"replicate_experts": 4},
        {"replicate_experts": 4, "expert_chunks": 4},
    ]
    times = [opticoll.train(MODEL, fabric, **options, **more).iteration_s for more in further]
    assert times[1] < times[0]
    assert times[3] < times[2] < times[0]


def test_an_iteration_takes_its_micro_batches_in_turn() -> None:
    options: dict[str, Any] = {
        "device": "h100",
        "batch": 4,
        "micro_batches": 4,
        "expert_parallel": 4,
    }
    row = opticoll.train(MODEL, FABRIC, **options, expert_skew="burst")
    assert row.groups is not None
    exchanges = [one for one in row.groups.collectives if one.group == "expert"]
    # Three micro-batches are balanced and have one kind of exchange: in both layers, there, back,
    # forward and backward. The burst has one for each layer and direction.
    uneven = {(one.layer, one.micro_batch): one.count for one in exchanges if one.layer is not None}
    assert uneven == {(0, 3): 2, (1, 3): 2}
    assert sum(one.count for one in exchanges if one.layer is None) == 3 * 2 * 4
