"""ODDL on 16 to 4096 nodes, against an ideal switch, a tapered fat tree, and WDM rings.

The paper leaves larger systems to later work. `ASSUMPTIONS` lists our assumptions for the output.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypedDict, cast

import opticoll
from opticoll import Fabric, TrainingModel, plot
from opticoll_papers import plots
from opticoll_papers.common import Results
from opticoll_papers.judging import Computed
from opticoll_papers.oddl.collective import ALGORITHM, BOTH_PLANES, sides

MODELS = {"vgg19": "VGG19", "resnet50": "ResNet50"}
NODES = (16, 64, 256, 1024, 4096)
LARGEST_QUICK = 64
BATCH = 32
DEVICE = "ascend_910"
TAPER = 4
RING = "wdm_ring:ranks={nodes},wavelengths=64,rate=40Gb/s,reconfiguration=25us"

ASSUMPTIONS = (
    f"computing: a batch of {BATCH} per device, Ascend 910 at 0.2 of 256 TFLOP/s",
    "gradients: float32, in buckets of 1 MiB and then 25 MiB, sent during the backward pass",
    "ODDL: transceivers of 100 Gb/s, 10.5 ns to tune, 100 ns to lock, 500 ns a control message (a "
    "request and a grant are two), 500 ns a hop; both planes: two transceivers of a node at once",
    "ideal switch: cables of 100 Gb/s (or 200 Gb/s, as both planes have together) and 250 ns",
    f"fat tree: two levels, leaves of sqrt(N) ranks, {TAPER}:1 tapered, cables of 100 Gb/s and 250 "
    "ns, D-mod-k; flows share links max-min fairly",
    "rings: 64 wavelengths of 40 Gb/s and 25 us at every step, as in the papers of OpTree and "
    "WRHT; a rank may send on all of them at once, 2.56 Tb/s in each direction: 25 times ODDL's "
    "transceiver",
)

PARTS = {
    "computing": "compute_s",
    "communication, exposed": "exposed_communication_s",
    "reconfiguration, exposed": "reconfiguration_s",
    "control, exposed": "control_s",
}


@dataclass(frozen=True)
class Network:
    """A network: its fabric, with `{...}` for values that depend on its size, and its limit."""

    label: str
    fabric: str
    algorithm: str
    most: int = NODES[-1]
    closed: Callable[[int, int], int] | None = None
    """Function of bytes and nodes: picoseconds of an all_reduce on more than `most` nodes."""

    def spelled(self, nodes: int) -> str:
        """Returns the specification of the fabric for a number of nodes."""
        rows, columns = sides(nodes)
        up = max(1, columns // TAPER)
        return self.fabric.format(nodes=nodes, rows=rows, columns=columns, up=up)


def ring_on_tree_ps(size_bytes: int, nodes: int) -> int:
    """Returns the picoseconds of a ring all_reduce on the fat tree: 2 (N - 1) equally long steps.

    The slowest messages of a step are between neighbours on different leaves, over four cables of
    250 ns. In each step, one message leaves and one enters each leaf, on separate cables. So each
    sends a part of the vector, an N-th rounded up to bytes, at 100 Gb/s (80 ps per byte). The next
    message between two neighbours waits for the previous one.
    """
    return 2 * (nodes - 1) * (4 * 250_000 + 80 * -(-size_bytes // nodes))


_GRID = (
    "wss_grid:rows={rows},columns={columns},rate=100Gb/s,tuning=10.5ns,lock=100ns,control=500ns,"
    "latency=500ns,plan=xor"
)
_TREE = "fat_tree:down={columns}x{rows},up=1x{up},rate=100Gb/s,latency=250ns"

NETWORKS = {
    "ideal": Network(
        "ideal switch", "crossbar:ranks={nodes},rate=100Gb/s,latency=250ns", ALGORITHM
    ),
    "ideal_200": Network(
        "ideal switch, 200 Gb/s", "crossbar:ranks={nodes},rate=200Gb/s,latency=250ns", ALGORITHM
    ),
    "oddl": Network("ODDL", _GRID, ALGORITHM),
    "oddl_both": Network("ODDL, both planes (ours)", _GRID, BOTH_PLANES),
    "tree_far": Network("fat tree 4:1, far partners first", _TREE, f"{ALGORITHM}:order=far"),
    "tree_near": Network("fat tree 4:1, near first", _TREE, f"{ALGORITHM}:order=near"),
    "tree_ring": Network("fat tree 4:1, ring", _TREE, "ring", most=1024, closed=ring_on_tree_ps),
    "wrht": Network("optical ring, WRHT", RING, "wrht"),
    "optree": Network("optical ring, OpTree twice", RING, "optree+optree"),
    "auto": Network("optical ring, auto (ours)", RING, "auto"),
}
"""Networks by name in scaling.csv."""


class Row(TypedDict):
    """An iteration of a model's training on a network."""

    model: str
    nodes: int
    network: str
    fabric: str
    algorithm: str
    chosen: str
    iteration_s: float
    compute_s: float
    exposed_communication_s: float
    reconfiguration_s: float
    control_s: float
    communication_s: float
    found: str
    """Method: a verified plan that was simulated, or a closed formula."""
    verified: bool


Rows = dict[tuple[str, int, str], Row]


def run(results: Results, *, quick: bool) -> dict[str, Computed]:
    """Computes all models, sizes and networks; writes scaling.csv, iteration.* and scaling.*."""
    rows = compute(results, LARGEST_QUICK if quick else NODES[-1])
    nodes = sorted({count for _, count, _ in rows})
    results.write("scaling", list(rows.values()))
    results.show(
        "Assumptions of the larger systems", ["what"], [[line] for line in ASSUMPTIONS], left=(0,)
    )
    for model in MODELS:
        _show(results, rows, model, nodes)
    draw(results, rows)
    return _scalable(rows, nodes)


def compute(results: Results, largest: int) -> Rows:
    """Computes the iterations of all models on all networks of at most `largest` nodes.

    Each row is stored as soon as it is computed.
    """
    return {
        (model, count, name): _kept(results, model, count, name)
        for count in NODES
        if count <= largest
        for name, network in NETWORKS.items()
        if count <= network.most or network.closed is not None
        for model in MODELS
    }


def _kept(results: Results, model: str, nodes: int, name: str) -> Row:
    """Returns a row, computed now or restored from an interrupted study."""
    case = {"model": model, "nodes": nodes, "network": name}
    (row,) = results.rows(case, lambda: [dict(_row(model, nodes, name))])
    return cast(Row, row)


def _row(model: str, nodes: int, name: str) -> Row:
    network = NETWORKS[name]
    if nodes > network.most and network.closed is not None:
        return _closed(model, nodes, name, network.closed)
    row = opticoll.train(
        model,
        network.spelled(nodes),
        batch=BATCH,
        device=DEVICE,
        algorithm=network.algorithm,
        buckets="ddp",
    )
    largest = max(row["collectives"], key=lambda collective: collective["size_bytes"])
    return Row(
        model=model,
        nodes=nodes,
        network=name,
        fabric=row["fabric"],
        algorithm=row["algorithm"],
        chosen=largest["algorithm"],
        iteration_s=row["iteration_s"],
        compute_s=row["compute_s"],
        exposed_communication_s=row["exposed_communication_s"],
        reconfiguration_s=row["reconfiguration_s"],
        control_s=row["control_s"],
        communication_s=row["communication_s"],
        found="plan",
        verified=row["verified"],
    )


def _closed(model: str, nodes: int, name: str, cost_ps: Callable[[int, int], int]) -> Row:
    """Returns a row in which a formula gives the costs of all_reduces.

    There is no plan to verify.
    """
    network = NETWORKS[name]
    timed = TrainingModel(model).timed(BATCH, DEVICE)
    sizes = timed.buckets("ddp")
    costs = {size: (cost_ps(size, nodes), 0, 0) for size in sizes}
    iteration = timed.iterate("ddp", True, costs)
    return Row(
        model=model,
        nodes=nodes,
        network=name,
        fabric=Fabric(network.spelled(nodes)).spec,
        algorithm=network.algorithm,
        chosen=network.algorithm,
        iteration_s=iteration.time_ps / 1e12,
        compute_s=iteration.compute_ps / 1e12,
        exposed_communication_s=iteration.exposed_ps / 1e12,
        reconfiguration_s=0.0,
        control_s=0.0,
        communication_s=iteration.sending_ps / 1e12,
        found="closed form",
        verified=False,
    )


def _show(results: Results, rows: Rows, model: str, nodes: list[int]) -> None:
    shown: list[list[object]] = []
    for name, network in NETWORKS.items():
        cells: list[object] = [network.label]
        for count in nodes:
            row = rows.get((model, count, name))
            proved = "" if row is None or row["verified"] else " NOT verified"
            if row is not None and row["found"] != "plan":
                proved = " (formula)"
            cells.append(None if row is None else f"{1e3 * row['iteration_s']:.2f}{proved}")
        shown.append(cells)
    results.show(
        f"{MODELS[model]}: time of an iteration in ms (scaling.csv)",
        ["network", *(f"N = {count}" for count in nodes)],
        shown,
    )


def draw(results: Results, rows: Rows) -> None:
    """Draws iteration.* and scaling.*."""
    nodes = sorted({count for _, count, _ in rows})
    largest = max(count for count in nodes if count <= 1024)
    panels = [
        plot.BarPanel(
            MODELS[model],
            {
                part: [_part(rows.get((model, largest, name)), key) for name in NETWORKS]
                for part, key in PARTS.items()
            },
        )
        for model in MODELS
    ]
    labels = [network.label for network in NETWORKS.values()]
    results.draw(
        "iteration",
        plot.stacked_bars,
        panels,
        labels,
        x_label="Time of an iteration",
        title=f"{largest} nodes, a batch of {BATCH} per device",
    )
    left_out = ("ideal_200", "tree_near")
    drawn = [name for name in NETWORKS if name not in left_out]
    families = [
        plots.Panel(
            MODELS[model],
            [
                plots.Curve(
                    NETWORKS[name].label,
                    [
                        (count, _slowdown(rows[model, count, name]))
                        for count in nodes
                        if (model, count, name) in rows
                    ],
                    colour,
                )
                for colour, name in enumerate(drawn)
            ],
        )
        for model in MODELS
    ]
    results.draw(
        "scaling",
        plots.curves,
        families,
        x_label="Nodes",
        y_label="Iteration / computing",
        title=f"Data-parallel training, a batch of {BATCH} per device",
        log_x=True,
        log_y=False,
    )


def _slowdown(row: Row) -> float:
    return row["iteration_s"] / row["compute_s"]


def _part(row: Row | None, key: str) -> float | None:
    return None if row is None else float(row[key])  # type: ignore[literal-required]


def _ratios(rows: Rows, slow: str, fast: str, nodes: list[int]) -> list[float]:
    """Returns the ratios of times on two networks, for all models and sizes."""
    return [
        rows[model, count, slow]["iteration_s"] / rows[model, count, fast]["iteration_s"]
        for model in MODELS
        for count in nodes
    ]


def _scalable(rows: Rows, nodes: list[int]) -> dict[str, Computed]:
    sizes = f"N = {nodes[0]} to {nodes[-1]}."
    both = _ratios(rows, "oddl", "oddl_both", nodes)
    shares = [
        100 * rows[model, count, "oddl"]["control_s"] / rows[model, count, "oddl"]["iteration_s"]
        for model in MODELS
        for count in nodes
    ]
    return {
        "conclusion.scalable": Computed(
            max(_ratios(rows, "oddl", "ideal", nodes)),
            f"{sizes} With both planes at once, an algorithm of opticoll and not of the paper, an "
            f"iteration is {min(both):.3g} to {max(both):.3g} times faster.",
        ),
        "conclusion.overhead": Computed(max(shares), sizes),
    }
