"""Fabrics of light beside a circuit switch, a fat tree and a torus, at equal injection bandwidth.

    python validation/side_by_side.py --out docs/side-by-side.md \\
        --figure docs/figures/side_by_side.svg
    python validation/side_by_side.py                        the table in Markdown alone

Every plan is verified. 64 ranks, each of which can inject 800 Gb/s.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import opticoll
from opticoll.outputs.layout import human_seconds
from opticoll.plot import BarPanel
from opticoll_papers import plots

INJECTION = 800 * 10**9

FABRICS = {
    "WDM ring": "wdm_ring:ranks=64,wavelengths=16,rate=25Gb/s,reconfiguration=10us",
    "WSS grid": "wss_grid:rows=8,columns=8,rate=400Gb/s",
    "lightpaths, 5 ms": "lightpath_grid:ranks=64,ports=8,rate=100Gb/s,latency=500ns",
    "lightpaths, 10 us": ("lightpath_grid:ranks=64,ports=8,rate=100Gb/s,latency=500ns,setup=5us"),
    "OCS, 1.2 ms": "circuit_switch:ranks=64,latency=500ns,reconfiguration=1200us",
    "OCS, 10 us": "circuit_switch:ranks=64,latency=500ns,reconfiguration=10us",
    "OCS, static circuits": "circuit_switch:ranks=64,ports=2,rate=400Gb/s,latency=500ns",
    "fat tree": "fat_tree:down=8x8,up=1x8,rate=100GB/s,latency=500ns",
    "torus": "torus:dims=8x8,rate=25GB/s,latency=500ns",
}
"""By the name in the table."""

STATIC = "OCS, static circuits"
"""Fabric whose circuits are set up once, before training."""

WORKLOADS: dict[str, dict[str, Any]] = {
    "ResNet50": {"model": "resnet50", "batch": 32, "device": "a100"},
    "GPT": {
        "model": "gpt3_6_7b", "batch": 8, "device": "a100", "tensor_parallel": 8,
        "sharded": 1, "micro_batches": 4,
    },
    "experts": {
        "model": "moe:layers=16,width=2048,experts=64,top_k=2", "batch": 1, "device": "a100",
        "expert_parallel": 64, "expert_skew": "zipf:exponent=0.5,seed=1", "sharded": 1,
    },
}  # fmt: skip
"""Options of `opticoll.train`, by the name in the table."""

INTRODUCTION = """\
# Fabrics side by side

This page times an iteration of training on the optical fabrics of the papers, on an optical circuit
switch (OCS), on a fat tree and on a torus. Each fabric has 64 ranks, and each rank can inject 800
Gb/s. For each workload the table has three columns: the time of an iteration, the ratio of this
time to the time on the fastest fabric (`of the fastest`), and the share of the iteration in which
devices do not compute (`waiting`). On the WDM ring, the fat tree and the torus, all groups of ranks
are simulated together. On the other fabrics, the groups of one kind share the fabric, and the
collectives of a rank take turns ([contention](training.md#contention-between-groups)).

"""

REMARKS = """\
How to read the table:

- In the rows `OCS, 1.2 ms` and `OCS, 10 us`, circuits are set up for each collective. In the row
  `OCS, static circuits`, they are set up once, before training, and each kind of group has ports
  of its own ([never
  reconfigured](training.md#set-up-circuits-for-each-collective-or-once)).
- In the row `lightpaths, 5 ms`, a setup takes 5 ms and a teardown takes 5 ms, as in [the
  paper](obs-grid.md). In the row `lightpaths, 10 us`, a setup takes 5 us and a teardown takes 5 us.
- The load of the experts is skewed. The devices of popular experts compute longer, and on every
  fabric all other devices wait for these devices.

What follows:

- ResNet50 hardly waits for a network, except for lightpaths that take 5 ms to set up: its gradients
  are sent during the backward pass.
- GPT waits for a third of an iteration or more on every fabric, because nothing hides the
  exchanges of tensor parallelism. An OCS of 10 us is about as fast as the fat tree. An OCS of 1.2
  ms takes 1.11 times as long: its circuits change only where gradients interrupt the exchanges of
  tensor groups. With static circuits, tensor groups have one of the two ports, and an iteration
  takes 1.36 times as long. On the WDM ring, the WSS grid and the torus, groups share links or tune
  lasers often.
- Experts wait for most of an iteration on every fabric, because of the skew of their load.

"""


@dataclass(frozen=True)
class Cell:
    """An iteration of one workload on one fabric."""

    workload: str
    fabric: str
    iteration_s: float
    computing_s: float

    @property
    def waiting(self) -> float:
        """The share of the iteration that is not computing."""
        return 1 - self.computing_s / self.iteration_s


def cell(workload: str, fabric: str) -> Cell:
    """Plans, verifies and times an iteration."""
    machine = opticoll.Fabric(FABRICS[fabric])
    assert machine.injection_bandwidth == INJECTION, fabric
    asked = WORKLOADS[workload] | ({"reconfigure": "never"} if fabric == STATIC else {})
    row = opticoll.train(asked.pop("model"), machine, **asked)
    assert row.verified, f"{workload} on {fabric}"
    return Cell(workload, fabric, row.iteration_s, row.compute_s)


def cells(say: bool) -> list[Cell]:
    """Computes all workloads on all fabrics."""
    made = []
    for workload in WORKLOADS:
        for fabric in FABRICS:
            if say:
                print(f"{workload} on {fabric}", file=sys.stderr)
            made.append(cell(workload, fabric))
    return made


def table(made: Iterable[Cell]) -> str:
    """Returns the table in Markdown: a row for each fabric."""
    made = list(made)
    heads = [f"{name}: iteration | of the fastest | waiting" for name in WORKLOADS]
    lines = [f"| fabric | {' | '.join(heads)} |", "|---|" + "--:|--:|--:|" * len(WORKLOADS)]
    for fabric in FABRICS:
        cells_of = []
        for workload in WORKLOADS:
            of_workload = [one for one in made if one.workload == workload]
            (own,) = [one for one in of_workload if one.fabric == fabric]
            least = min(one.iteration_s for one in of_workload)
            multiple = f"{own.iteration_s / least:.2f}"
            cells_of += [human_seconds(own.iteration_s), multiple, f"{own.waiting:.1%}"]
        lines.append(f"| {fabric} | {' | '.join(cells_of)} |")
    return "\n".join(lines)


def draw(made: Iterable[Cell], path: Path) -> None:
    """Draws iterations in multiples of their computing time: bars for each workload by fabric."""
    made = list(made)
    series: dict[str, list[float | None]] = {
        workload: [one.iteration_s / one.computing_s for one in made if one.workload == workload]
        for workload in WORKLOADS
    }
    # Each word has a line, except a number with its unit.
    names = [re.sub(r"(?<!\d) ", "\n", name.replace("light", "light-\n")) for name in FABRICS]
    plots.grouped_bars(
        [BarPanel("", series)], names, path, x_label="", y_label="Iteration over computing",
        title="64 ranks, 800 Gb/s each", columns=1, log_y=False,
    )  # fmt: skip


def page(made: list[Cell]) -> str:
    """Returns the page: specifications, workloads, table."""
    fabrics = "\n".join(f"| {name} | `{spec}` |" for name, spec in FABRICS.items())
    lines = []
    for name, asked in WORKLOADS.items():
        options = dict(asked)
        model = options.pop("model")
        words = " ".join(f"--{key.replace('_', '-')} {value}" for key, value in options.items())
        lines.append(f"| {name} | `opticoll train --model {model} {words}` |")
    workloads = "\n".join(lines)
    return f"""{INTRODUCTION}{table(made)}

![Iterations on nine fabrics, in multiples of the time that devices compute.](figures/side_by_side.svg)

{REMARKS}| fabric | specification |
|---|---|
{fabrics}

| workload | command, with `--fabric`, and `--reconfigure never` for static circuits |
|---|---|
{workloads}

To compute and write this page:

    python validation/side_by_side.py --out docs/side-by-side.md \\
        --figure docs/figures/side_by_side.svg
"""  # noqa: E501


def main() -> None:
    """Computes and writes the requested outputs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="page to write")
    parser.add_argument("--figure", type=Path, help="figure to write")
    options = parser.parse_args()
    made = cells(say=True)
    if options.figure:
        draw(made, options.figure)
    if options.out:
        options.out.write_text(page(made), encoding="utf-8")
    print(table(made))


if __name__ == "__main__":
    main()
