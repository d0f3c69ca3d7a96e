"""Training: context parallelism and exchanges beside computing, from the command's parameters."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

import opticoll
from opticoll.commands.train import TrainingRow

MODEL = (
    "llama:layers=4,width=1024,heads=16,key_value=256,feed_forward=2816,sequence=4096,"
    "vocabulary=32000"
)
EXPERTS = "moe:layers=4,width=1024,heads=16,experts=8,top_k=2,vocabulary=32000,sequence=2048"
FABRIC = "crossbar:ranks=8,rate=400Gb/s"


def parts_sum(row: TrainingRow) -> None:
    """Checks that the parts of each stage sum to the time of the iteration."""
    assert row.groups is not None
    names = ("compute", "tensor", "context", "expert", "sending", "bubble", "replicas")
    for part in row.groups.parts:
        total = sum(part[f"{name}_s"] for name in names)
        assert total == pytest.approx(row.iteration_s, rel=1e-6)


def test_a_ring_and_all_to_alls_have_the_volumes_of_their_papers() -> None:
    volumes = {}
    for exchange in ("ring", "all_to_all"):
        row = opticoll.train(
            MODEL,
            FABRIC,
            batch=1,
            device="h100",
            context_parallel=4,
            context_exchange=exchange,
            contention="none",
        )
        parts_sum(row)
        assert row.groups is not None
        assert (row.groups.context, row.groups.data) == (4, 2)
        volumes[exchange] = sum(
            collective.count * collective.size_bytes
            for collective in row.groups.collectives
            if collective.group == "context"
        )
    # 2 bytes, 4096 / 4 tokens, 4 blocks. Ring: keys and values (256 each) 3 times forward and 3
    # times backward, and their gradients 3 times. All_to_alls: queries and output (1024 each), keys
    # and values, forward and backward.
    tokens = 2 * 1024 * 4
    assert volumes["ring"] == tokens * 9 * 2 * 256
    assert volumes["all_to_all"] == tokens * 2 * (2 * 1024 + 2 * 256)


def test_each_overlap_shortens_the_iteration_and_computes_the_same() -> None:
    tensor: dict[str, Any] = {"tensor_parallel": 4, "sequence_parallel": True}
    cases: tuple[tuple[str, dict[str, Any], dict[str, Any], str], ...] = (
        (MODEL, tensor, {"overlap_tensor": True}, "tensor"),
        (MODEL, {"sharded": 1}, {"prefetch": 1}, "replicas"),
        (MODEL, {"sharded": 3, "prefetch": 0}, {"prefetch": 1}, "replicas"),
        (
            EXPERTS,
            {"expert_parallel": 8, "micro_batches": 4},
            {"overlap_experts": True},
            "expert",
        ),
    )
    for contention, (model, base, overlap, part) in itertools.product(("none", "simulated"), cases):
        given: dict[str, Any] = {"batch": 4, "device": "h100", "contention": contention}
        plain = opticoll.train(model, FABRIC, **given, **base)
        beside = opticoll.train(model, FABRIC, **given, **(base | overlap))
        parts_sum(plain)
        parts_sum(beside)
        assert beside.iteration_s < plain.iteration_s, (contention, overlap)
        assert beside.compute_s == pytest.approx(plain.compute_s, rel=1e-9)
        assert plain.groups is not None
        assert beside.groups is not None
        exposed = (row.parts[-1][f"{part}_s"] for row in (beside.groups, plain.groups))
        assert next(exposed) < next(exposed), (contention, overlap)


def test_passes_beside_each_other_store_more_activations() -> None:
    # Under 1F1B, the last of 2 stages needs the most memory, because of its logits, and stores 1 of
    # 8 micro-batches. Here, the first stage stores 2 (P - 1) + 2 = 4.
    given: dict[str, Any] = {
        "batch": 8,
        "device": "h100",
        "expert_parallel": 4,
        "pipeline_parallel": 2,
        "contention": "none",
    }
    plain = opticoll.train(EXPERTS, FABRIC, **given)
    beside = opticoll.train(EXPERTS, FABRIC, **given, overlap_experts=True)
    assert plain.memory.activations_bytes is not None
    assert beside.memory.activations_bytes == 4 * plain.memory.activations_bytes


def test_passes_beside_each_other_share_the_network_among_replicas_fairly() -> None:
    # Parameters of both passes are gathered, and gradients of the backward pass are reduced, in the
    # order of the units, so that no collective waits for those of the whole other pass.
    given: dict[str, Any] = {
        "batch": 4,
        "micro_batches": 4,
        "device": "h100",
        "expert_parallel": 2,
        "expert_skew": "rotating",
        "sharded": 3,
        "contention": "none",
        "collectives": dict.fromkeys(("all_gather", "reduce_scatter"), "ring"),
    }
    model = "moe:layers=8,width=1024,experts=8,top_k=2,sequence=1024"
    fabric = "crossbar:ranks=4,rate=1600Gb/s,latency=1us"
    plain = opticoll.train(model, fabric, **given)
    beside = opticoll.train(model, fabric, **given, overlap_experts=True)
    assert beside.iteration_s < plain.iteration_s
