"""Iterations of training that others measured, and the times and memory that `train` predicts.

    python validation/training_times.py            # prints all rows, `training_page.py` draws them

The tables and their sources are in `validation/training`. Each collective is timed as if its group
were alone on the fabric, with the costs of NCCL that are fitted to other measurements. No constant
was fitted to `a100_multi.csv` or to Korthikanti et al.
"""

from __future__ import annotations

import csv
import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import opticoll

TABLES = Path(__file__).parent / "training"

RING = {
    "all_reduce": "ring:channels=all",
    "reduce_scatter": "ring:channels=all",
    "all_gather": "ring:channels=all",
}
"""Algorithms of NCCL for long messages."""

DEEPSPEED_HOST = "a100:host=66"
"""The A100 with the time in which the host launches a kernel of Megatron-DeepSpeed."""

OUTSIDE = "crossbar/rate=12.5GB/s"
"""Network of vTrain's cluster: 800 Gb/s per server of 8 GPUs."""

# Korthikanti et al., arXiv:2205.05198, Tables 3 and 5: width, blocks, heads, stages, chunks, GPUs,
# batch, samples of a micro-batch; seconds with full recomputation, and with sequence parallelism
# and selective recomputation.
KORTHIKANTI = (
    ("22B", 6144, 48, 64, 1, 1, 8, 4, 4, 1.42, 1.10),
    ("175B", 12_288, 96, 96, 8, 3, 64, 64, 1, 18.13, 13.75),
    ("530B", 20_480, 105, 128, 35, 3, 280, 280, 1, 49.05, 37.83),
    ("1T", 25_600, 128, 160, 64, 1, 512, 512, 1, 94.42, 71.49),
)


@dataclass(frozen=True)
class Row:
    """A measured iteration with its prediction, in seconds; memory in GiB, where it is known."""

    case: str
    measured_s: float
    predicted_s: float
    measured_gib: float | None = None
    predicted_gib: float | None = None

    @property
    def times(self) -> tuple[float, float]:
        """Measured and predicted time."""
        return self.measured_s, self.predicted_s

    @property
    def error(self) -> float:
        """Predicted over measured time, minus 1."""
        return self.predicted_s / self.measured_s - 1


ACTIVATIONS: tuple[dict[str, Any], ...] = (
    {},
    {"recompute": "selective", "sequence_parallel": True},
)
"""Practices of Figure 1 of Korthikanti et al."""


def megatron(name: str, practice: dict[str, Any]) -> Any:
    """Returns a predicted iteration of a model of `KORTHIKANTI` on DGX A100 with Megatron-LM."""
    width, layers, heads, stages, chunks, gpus, batch, samples = next(
        row[1:9] for row in KORTHIKANTI if row[0] == name
    )
    return opticoll.train(
        f"gpt:layers={layers},width={width},heads={heads},vocabulary=51200",
        f"dgx_a100:boxes={gpus // 8}",
        batch=batch,
        device="a100",
        device_memory="4TB",
        tensor_parallel=8,
        pipeline_parallel=stages,
        chunks=chunks,
        micro_batches=batch // samples,
        attention="scores",
        main_gradients="float32",
        contention="none",
        **practice,
    )


def korthikanti() -> Iterator[Row]:
    """Yields the eight iterations on DGX A100 with Megatron-LM."""
    practices = ({"recompute": "full"}, ACTIVATIONS[1])
    for name, *_, full, selective in KORTHIKANTI:
        for practice, seconds in zip(practices, (full, selective), strict=True):
            row = megatron(name, practice)
            yield Row(f"{name} {practice['recompute']}", seconds, row.iteration_s)


def a100(name: str, every: int = 1, device: str = DEEPSPEED_HOST) -> Iterator[Row]:
    """Yields the iterations of a table of vTrain, `single` or `multi`."""
    with (TABLES / f"a100_{name}.csv").open() as file:
        table = list(csv.DictReader(file))[::every]
    for cells in table:
        yield _deepspeed({key: int(float(cell)) for key, cell in cells.items()}, cells, device)


def _deepspeed(row: dict[str, int], cells: dict[str, str], device: str) -> Row:
    tensor, stages = row["tensor_parallel"], row["pipeline_parallel"]
    replicas = row["data_parallel"]
    ranks, batch = tensor * stages * replicas, row["global_batch"] // replicas
    boxes = -(-ranks // 8)
    fabric = f"dgx_a100:boxes={boxes}"
    fabric += f",outside={OUTSIDE}" if boxes > 1 else f",members=0-{ranks - 1}"
    result = opticoll.train(
        f"gpt:layers={row['layers']},width={row['width']},heads={row['heads']},"
        f"vocabulary=51200,context={row['sequence']}",
        fabric,
        batch=batch,
        device=device,
        device_memory="4TB",
        tensor_parallel=tensor,
        pipeline_parallel=stages,
        data_parallel=replicas,
        micro_batches=batch // row["micro_batch"],
        recompute="full",
        attention="scores",
        contention="none",
        gradients="float16",
        buckets="all",
        overlap=False,
        collectives=RING,
    )
    case = (
        f"{cells.get('parameters_billion', cells['width'])} "
        f"T={tensor} D={replicas} P={stages} m={row['micro_batch']}"
    )
    return Row(case, float(cells["iteration_ms"]) / 1e3, result.iteration_s)


LATENT = "heads=128,head=128,latent=512,latent_query=1536,rotary=64"

B200_MODELS = {
    "llama3-70b": "llama:width=8192,heads=64,feed_forward=28672,key_value=1024,vocabulary=128256",
    "llama3-405b": "llama:width=16384,heads=128,feed_forward=53248,key_value=2048,"
    "vocabulary=128256",
    "deepseekv2": f"moe:width=5120,experts=160,top_k=6,shared=2,dense=1,{LATENT},"
    "feed_forward=1536,dense_feed_forward=12288,vocabulary=102400",
    "deepseekv3": f"moe:width=7168,experts=256,top_k=8,shared=1,dense=1,{LATENT},"
    "feed_forward=2048,dense_feed_forward=18432,vocabulary=129280",
}
"""Models of SimuMax's runs, as `run_pretrain_llama3.sh` and `run_pretrain_deepseekv2.sh` there
state them: 405B has 16 heads of keys and values, and DeepSeek-V3 one block without experts."""

B200_PRACTICE: dict[str, Any] = {
    "sharded": 1,
    "main_gradients": "float32",
    "loss": "fused",
    "buckets": "all",
    "overlap": False,
    "contention": "none",
}
"""Options of Megatron-LM in these runs: distributed optimizer, gradients accumulated in 32 bits,
fused loss of Transformer Engine, no overlap of exchanges: the launch scripts set no option
`--overlap-grad-reduce`, and section 3.3 of `b200_real_repro_guide.md` there says so."""


def b200(device: str = "b200") -> Iterator[Row]:
    """Yields the iterations of Llama 3 and DeepSeek on 8 B200."""
    with (TABLES / "b200.csv").open() as file:
        table = list(csv.DictReader(file))
    for row in table:
        tensor, stages = int(row["tensor_parallel"]), int(row["pipeline_parallel"])
        context, experts = int(row["context_parallel"]), int(row["expert_parallel"])
        batch = int(row["micro_batches"])
        result = opticoll.train(
            f"{B200_MODELS[row['model']]},layers={row['layers']},sequence={row['sequence']}",
            "dgx_b200",
            batch=batch,
            device=device,
            tensor_parallel=tensor,
            pipeline_parallel=stages,
            context_parallel=context,
            context_exchange="all_to_all" if context > 1 else None,
            expert_parallel=experts,
            micro_batches=batch,
            sequence_parallel=tensor > 1,
            device_memory="4TB",
            collectives=RING,
            **B200_PRACTICE,
        )
        yield Row(
            f"{row['model']} T={tensor} C={context} P={stages} E={experts} "
            f"s={row['sequence']} M={batch}",
            float(row["iteration_ms"]) / 1e3,
            result.iteration_s,
            float(row["allocated_gib"]),
            result.memory.total_bytes / 2**30,
        )


def summary(rows: list[Row]) -> tuple[float, float]:
    """Returns the mean and the greatest error without their signs."""
    errors = [abs(row.error) for row in rows]
    return statistics.fmean(errors), max(errors)


def rank_correlation(points: list[tuple[float, float]]) -> float:
    """Returns Spearman's correlation of measured and predicted values."""
    ranks = []
    for values in zip(*points, strict=True):
        order = sorted(range(len(values)), key=values.__getitem__)
        of_row = [0] * len(order)
        for rank, row in enumerate(order):
            of_row[row] = rank
        ranks.append(of_row)
    return statistics.correlation(*ranks)


def main() -> None:
    """Prints all rows and the errors of each table."""
    tables = {
        "Korthikanti et al., Table 5": korthikanti(),
        "vTrain, one server (every 9th row)": a100("single", 9),
        "vTrain, several servers": a100("multi"),
        "SimuMax, B200": b200(),
    }
    for name, found in tables.items():
        rows = list(found)
        for row in rows:
            memory = ""
            if row.predicted_gib is not None and row.measured_gib is not None:
                memory = f"  {row.measured_gib:.2f} GiB, predicted {row.predicted_gib:.2f}"
            print(
                f"{row.case:42} {row.measured_s:8.3f} s, predicted {row.predicted_s:8.3f} "
                f"{row.error:+.1%}{memory}"
            )
        mean, worst = summary(rows)
        print(
            f"{name}: {len(rows)} rows, mean error {mean:.1%}, worst {worst:.1%}, rank "
            f"correlation {rank_correlation([row.times for row in rows]):.3f}\n"
        )


if __name__ == "__main__":
    main()
