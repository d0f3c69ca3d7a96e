"""Large training runs whose time or throughput was published, and the times that `train` predicts.

    python validation/published_runs.py            # prints all rows

No constant was fitted to these rows. Publications state only a part of a run, so each row has
assumptions: those of `ASSUMED`, and its own. Each collective is timed as if its group were alone on
the fabric, with the costs of NCCL that are fitted to other measurements. A row takes seconds:
groups of ranks that do the same at the same time have one representative.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import training_times

import opticoll

ASSUMED = (
    "schedule 1F1B; one sample in a micro-batch; gradients between replicas in 16 bits; other "
    "groups do not slow a group down; no failures, checkpoints or loading of input"
)
"""Assumptions of all rows."""


@dataclass(frozen=True)
class Run(training_times.Row):
    """A published run with its prediction."""

    assumed: str = ""
    """Assumptions of this row beyond `ASSUMED`."""
    computing_s: float = 0.0
    """Computing as predicted, idle time and waiting left out."""
    took_s: float = 0.0
    """Computing time of the prediction."""


FAST = "crossbar/rate=50GB/s/latency=2.7us"
"""Network of 400 Gb/s for each GPU, with few switches, as a fabric of many servers needs."""

COLLECTIVES = {**training_times.RING, "broadcast": "direct"}
"""Algorithms of NCCL for long messages; a message between stages is one send."""


def _run(case: str, measured_s: float, assumed: str, model: str, fabric: str, **given: Any) -> Run:
    """Predicts a run; `given` are arguments of `train`."""
    start = time.process_time()
    row = opticoll.train(
        model,
        fabric,
        device_memory="4TB",
        contention="none",
        collectives=COLLECTIVES,
        **given,
    )
    took = time.process_time() - start
    return Run(case, measured_s, row.iteration_s, None, None, assumed, row.compute_s, took)


def operations(width: int, layers: int, vocabulary: int, tokens: int) -> float:
    """Returns the operations of an iteration of GPT on 2,048 tokens a sample, recomputed in full.

    Narayanan et al., arXiv:2104.04473, equation 3.
    """
    shape = 1 + 2048 / (6 * width) + vocabulary / (16 * layers * width)
    return 96 * tokens * layers * width**2 * shape


# Narayanan et al., arXiv:2104.04473, Table 1: billions of parameters, heads, width, blocks, tensor-
# and pipeline-parallel ranks, GPUs, batch, TFLOP/s of a GPU. The rows come from a secondary source:
# they are not confirmed.
MEGATRON = (
    (1.7, 24, 2304, 24, 1, 1, 32, 512, 137),
    (3.6, 32, 3072, 30, 2, 1, 64, 512, 138),
    (7.5, 32, 4096, 36, 4, 1, 128, 512, 142),
    (18.4, 48, 6144, 40, 8, 1, 256, 1024, 135),
    (39.1, 64, 8192, 48, 8, 2, 512, 1536, 138),
    (76.1, 80, 10_240, 60, 8, 4, 1024, 1792, 140),
    (145.6, 96, 12_288, 80, 8, 8, 1536, 2304, 148),
    (310.1, 128, 16_384, 96, 8, 16, 1920, 2160, 155),
    (529.6, 128, 20_480, 105, 8, 35, 2520, 2520, 163),
    (1008.0, 160, 25_600, 128, 8, 64, 3072, 3072, 163),
)


def megatron() -> Iterator[Run]:
    """Yields the iterations of GPT on 32 to 3,072 A100."""
    for billions, heads, width, layers, tensor, stages, gpus, batch, rate in MEGATRON:
        replicas = gpus // tensor // stages
        work = operations(width, layers, 51_200, batch * 2048)
        yield _run(
            f"Megatron-LM 2021, {billions}B on {gpus} A100",
            work / (rate * 1e12 * gpus),
            "full recomputation, stored scores, one chunk of each stage",
            f"gpt:layers={layers},width={width},heads={heads},vocabulary=51200",
            f"dgx_a100:boxes={gpus // 8}",
            batch=batch // replicas,
            device="a100",
            tensor_parallel=tensor,
            pipeline_parallel=stages,
            micro_batches=batch // replicas,
            recompute="full",
            attention="scores",
            gradients="float16",
            buckets="all",
            overlap=False,
        )


# Llama Team, arXiv:2407.21783, Table 4: GPUs, context-parallel ranks, replicas, tokens of a sample,
# samples of a replica, TFLOP/s of a GPU. The table prints 4 replicas for the last row, whose GPUs
# are those of 8.
LLAMA = (
    (8192, 1, 64, 8192, 32, 430),
    (16_384, 1, 128, 8192, 16, 400),
    (16_384, 16, 8, 131_072, 16, 380),
)


def llama() -> Iterator[Run]:
    """Yields the iterations of Llama 3 405B.

    The operations that the rates count are 6 for each parameter and token, and those of attention
    under a causal mask. The paper does not say so; without those of attention, the last row would
    need 64 % of the peak rate.
    """
    for gpus, context, replicas, sequence, samples, rate in LLAMA:
        operations = 6 * 405e9 + 6 * 126 * 16_384 * sequence
        yield _run(
            f"Llama 3 405B, {sequence} tokens, {gpus} H100",
            operations * replicas * samples * sequence / (rate * 1e12 * gpus),
            "stages of 8 chunks with a block each (section 3.3.2 says which chunks have none); "
            "sequence parallelism; a ring in place of all_gathers of keys and values; no "
            "recomputation; 32-bit gradients in one reduce_scatter of each bucket; parameters "
            "gathered after the step of the optimizer",
            f"llama3_405b:sequence={sequence}",
            f"dgx_h100:boxes={gpus // 8},outside={FAST}",
            batch=samples,
            device="h100",
            tensor_parallel=8,
            context_parallel=context,
            pipeline_parallel=16,
            chunks=8,
            micro_batches=samples,
            sharded=1,
            sequence_parallel=True,
            main_gradients="float32",
        )


def eos() -> Iterator[Run]:
    """Yields the iteration of GPT-3 175B on Eos (MLPerf Training 3.1)."""
    yield _run(
        "GPT-3 175B on 10752 H100 (Eos)",
        1.068,
        "8-bit products; stages of 12 chunks with a block each, which idle least; sequence "
        "parallelism; replicas divide the optimizer; unconfirmed: the log of MLPerf",
        "gpt:layers=96,width=12288,heads=96,vocabulary=51200",
        f"dgx_h100:boxes=1344,outside={FAST}",
        batch=8,
        device="h100:precision=fp8",
        tensor_parallel=4,
        pipeline_parallel=8,
        chunks=12,
        micro_batches=8,
        sharded=1,
        sequence_parallel=True,
        gradients="bfloat16",
    )


def megascale() -> Iterator[Run]:
    """Yields the iteration of a GPT with 175 billion parameters of MegaScale."""
    yield _run(
        "MegaScale, 175B on 12288 A100",
        6.34,
        "stages of 12 chunks with a block each, which idle least; sequence parallelism; replicas "
        "divide the optimizer; attention and feed-forward part one after the other, but in "
        "parallel in the run; unconfirmed: the time of an iteration",
        "gpt:layers=96,width=12288,heads=96,vocabulary=51200",
        "dgx_a100:boxes=1536,outside=crossbar/rate=25GB/s/latency=2.7us",
        batch=32,
        device="a100",
        tensor_parallel=8,
        pipeline_parallel=8,
        chunks=12,
        micro_batches=32,
        sharded=1,
        sequence_parallel=True,
        gradients="bfloat16",
    )


COMPUTING = (132 - 20) / 132
"""Share of an H800's multiprocessors that compute: 20 of 132 carry out exchanges (arXiv:2412.19437,
section 3.2.2)."""

RECOMPUTED = ("norm1", "norm2", "query_norm", "key_value_norm", "query_up", "key_value_up")
"""Layers that DeepSeek-V3 computes again in the backward pass (section 3.2.3)."""


def deepseek() -> Iterator[Run]:
    """Yields the iteration of DeepSeek-V3.

    `train` has no DualPipe. The time is that of the device with most work, and of the bubble of
    Table 2 of the paper: (P / 2 - 1) (F&B + B - 3 W) for P stages, where a forward pass takes F, a
    backward pass B = 2 F, its gradients of weights W = F, and both passes beside each other F&B =
    F + B. With M micro-batches of F + B, this is a share of (P / 2 - 1) 2 / (3 M). A device has one
    of the first and one of the last stages, each for half of the micro-batches.
    """
    start = time.process_time()
    stages, samples = 16, 15_360 // 128
    device = (
        f"h800:precision=fp8,products={0.728 * COMPUTING:.4f},"
        f"fp8_products={0.708 * COMPUTING:.4f},attention={0.826 * COMPUTING:.4f}"
    )
    row = opticoll.train(
        "deepseek_v3",
        "dgx_h100:boxes=256",
        batch=samples,
        device=device,
        device_memory="4TB",
        pipeline_parallel=stages,
        expert_parallel=64,
        micro_batches=samples,
        sharded=1,
        main_gradients="float32",
        dispatch="fp8",
        contention="none",
        collectives={**COLLECTIVES, "all_to_all": "direct"},
    )
    assert row.groups is not None
    works = [part.compute_s for part in row.groups.parts if part.stage is not None]
    # Stages 0, 14 and 15 have 3 blocks, the others 4.
    block_s = works[1] / 4
    # The head for several tokens has a block and an output of its own.
    works[-1] += block_s + (works[-1] - 3 * block_s)
    blocks = [3, *[4] * 13, 3, 4]
    operators = opticoll.TrainingModel("deepseek_v3").operators(1, device)
    layers = {f"block10.{name}" for name in RECOMPUTED}
    again_s = samples * sum(times[0] for layer, *_, times in operators if layer in layers)
    works = [work + again_s * count for work, count in zip(works, blocks, strict=True)]
    longest = max(map(sum, zip(works, reversed(works), strict=True))) / 2
    predicted = longest * (1 + (stages / 2 - 1) * 2 / (3 * samples))
    yield Run(
        "DeepSeek-V3 on 2048 H800",
        180e3 * 3600 / 2048 / (1e12 / (15_360 * 4096)),
        predicted,
        None,
        None,
        "DualPipe hides all exchanges; 20 of 132 multiprocessors carry them out; 8-bit products; "
        "32-bit gradients (section 3.3.3); "
        "even experts; the head for several tokens belongs to the last stage",
        longest,
        time.process_time() - start,
    )


def runs() -> Iterator[Run]:
    """Yields all runs."""
    yield from llama()
    yield from deepseek()
    yield from eos()
    yield from megascale()
    yield from megatron()


def main() -> None:
    """Prints all rows, and the errors."""
    print(f"assumed: {ASSUMED}\n")
    found = []
    for run in runs():
        found.append(run)
        print(
            f"{run.case:44} {run.measured_s:8.3f} s, predicted {run.predicted_s:8.3f} "
            f"{run.error:+.1%}; computing {run.computing_s / run.predicted_s:.0%}; "
            f"took {run.took_s:.1f} s\n    {run.assumed}",
            flush=True,
        )
    mean, worst = training_times.summary(list(found))
    print(f"{len(found)} rows, mean error {mean:.1%}, worst {worst:.1%}")


if __name__ == "__main__":
    main()
