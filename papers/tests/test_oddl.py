"""The reproduction of the ODDL paper, against its own numbers and against closed formulas."""

from __future__ import annotations

import csv
import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import opticoll
from opticoll import plot
from opticoll.plot import PlotError
from opticoll_papers import oddl, plots
from opticoll_papers.command import study_text
from opticoll_papers.common import Results
from opticoll_papers.oddl import four_nodes, scaling
from support import ALL_CASES, BROAD

RESNET50_BITS = 25_557_032 * 32
VGG19_BITS = 143_667_240 * 32
TENSORS = 161
RATE = 100e9
CIRCUITS = 3  # circuits per rank in an all_reduce on four nodes: 2 log2 N - 1
BEHIND, ON_ODDL = 97.3, 97.8  # minutes, Table 1


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Computes the study without its largest cases."""
    if not ALL_CASES:
        pytest.skip(BROAD)
    return oddl.reproduce(Results(tmp_path_factory.mktemp("oddl"), "oddl", quick=True))


@pytest.mark.parametrize("nodes", [16, 64])
def test_the_closed_form_of_a_ring_on_the_tree_is_what_a_simulation_says(nodes: int) -> None:
    # The vector has one part per node. The simulator computes rates in floating point.
    fabric = scaling.NETWORKS["tree_ring"].spelled(nodes)
    for part in (1, 1000, 300_001):
        plan = opticoll.plan("all_reduce", fabric, "ring", size=part * nodes)
        assert plan.verify() == []
        expected = scaling.ring_on_tree_ps(part * nodes, nodes)
        assert plan.simulate().time_ps == pytest.approx(expected, rel=1e-9)


def rows(results: Results, name: str) -> list[dict[str, str]]:
    with (results.folder / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def value(results: Results, id: str) -> Any:
    return results.computed[id].value


def test_only_large_systems_are_left_out(results: Results) -> None:
    left_out = {one.id for one in results.findings if one.verdict == "left_out"}
    assert left_out == {"hd.steps_large"}
    text = study_text(results)
    # Every assumption is printed.
    for line in scaling.ASSUMPTIONS:
        assert line in text


def test_exchanges_far_apart_share_the_uplinks_of_a_tapered_tree(results: Results) -> None:
    # With an uplink for four nodes, the nodes share it. With an uplink per node, they do not.
    assert value(results, "fat_tree.contention") == pytest.approx(4, rel=1e-2)
    assert "an uplink for each node: 1.004 times" in results.computed["fat_tree.contention"].note


def test_a_ring_of_many_waits_for_its_messages(results: Results) -> None:
    ratios = []
    for nodes in (16, 64, 256, 1024):
        data_s = 2 * (nodes - 1) / nodes * 25 * 2**20 * 8 / RATE
        halving = data_s + 2 * math.log2(nodes) * 500e-9
        ratios.append((data_s + 2 * (nodes - 1) * 500e-9) / halving)
    grows = min(after / before for before, after in pairwise(ratios))
    assert value(results, "ring.efficiency") == pytest.approx(grows, rel=1e-5)
    # The smallest system has 6 steps of the ring, and 4 of halving and doubling.
    assert value(results, "hd.efficient") == 1.5
    assert value(results, "hd.efficient.time") == pytest.approx(min(ratios), rel=1e-5)


def test_any_two_nodes_of_a_grid_need_not_share_a_switch(results: Results) -> None:
    # Of the 255 other nodes in a grid of 16 x 16, 15 are in the same row and 15 in the same column.
    assert value(results, "one_hop") == 1
    assert value(results, "one_hop.all") == pytest.approx(30 / 255)


def test_one_dimension_after_the_other_is_as_fast_as_one(results: Results) -> None:
    assert value(results, "grid.performance") == 1
    data_s = 2 * 15 / 16 * 25 * 2**20 * 8 / RATE
    waiting_s = 8 * 500e-9 + 7 * (2 * 500e-9 + 10.5e-9 + 100e-9)
    faster = (data_s + waiting_s) / (data_s / 2 + waiting_s)
    assert f"it is {faster:.3g} times as fast" in results.computed["grid.performance"].note


def test_node_one_of_eight_meets_whom_the_figure_says(results: Results) -> None:
    assert value(results, "fig2.partners") == tuple(1 + (0 ^ bit) for bit in (4, 2, 1, 2, 4))
    assert value(results, "fig2.wavelengths") == (1, 2, 3, 2, 1)
    assert value(results, "stages.flow") == CIRCUITS


def test_control_grows_with_the_circuits(results: Results) -> None:
    # A node sends a request, a grant and a release for each of its 2 log2 N - 1 circuits.
    assert value(results, "control.ends") == 3
    node = math.log(15 / 7) / math.log(16)
    assert value(results, "control.growth") == pytest.approx(node)
    # Each circuit on the critical path needs a request and a grant of 500 ns each.
    assert "spends 7 to 15 us" in results.computed["control.growth"].note
    assert value(results, "control.growth.all") == pytest.approx(1 + node)
    exchanges = {
        nodes: (2 * math.log2(nodes) * 500 + (2 * math.log2(nodes) - 1) * 1110.5)
        / (2 * math.log2(nodes))
        for nodes in (16, 256)
    }
    constant = exchanges[256] / exchanges[16]
    assert value(results, "latency.constant") == pytest.approx(constant, rel=1e-6)


def test_tuning_adds_nothing_that_four_nodes_would_see(results: Results) -> None:
    tuning_s = 25_040 * TENSORS * CIRCUITS * 10.5e-9
    assert value(results, "table1.difference") == pytest.approx(tuning_s, rel=1e-3)
    # The circuits add the largest share to the shortest iteration.
    worst = 1 + TENSORS * CIRCUITS * 10.5e-9 / (BEHIND * 60 / 200_200)
    assert value(results, "table1.equivalent") == pytest.approx(worst, rel=1e-6)
    # With requests of 2 us per circuit, the difference exceeds one percent.
    slow = worst + TENSORS * CIRCUITS * 2e-6 / (BEHIND * 60 / 200_200)
    assert value(results, "table1.equivalent.2us") > 1.01
    assert value(results, "table1.equivalent.2us") == pytest.approx(slow, rel=1e-2)


def test_latency_is_paid_where_nothing_hides_it(results: Results) -> None:
    each, hidden = value(results, "latency.cause")
    # Each tensor has four exchanges, which take 4.5 us longer. An iteration computes for 220 ms and
    # sends gradients for 12.3 ms.
    added_s = TENSORS * 4 * 4.5e-6
    iteration_s = 0.22 + 1.5 * RESNET50_BITS / RATE + TENSORS * 4 * 500e-9
    assert each == pytest.approx(100 * added_s / iteration_s, rel=0.01)
    assert hidden < 0.1 * each


def test_all_files_are_written(results: Results) -> None:
    tables = ("switches", "timeline", "four_nodes", "scaling", "findings")
    figures = ("timeline", "four_nodes", "iteration", "scaling")
    expected = {f"{name}.csv" for name in tables}
    expected |= {f"{name}.{suffix}" for name in figures for suffix in ("svg", "png")}
    assert set(results.files) == expected
    assert all((results.folder / name).stat().st_size > 0 for name in expected)


# By N: grid, switches, ports, steps, retunes, wavelengths for halving and doubling, for any pair.
SWITCHES = {
    4: ((2, 2), 4, 2, 4, 3, 1, 1),
    16: ((4, 4), 8, 4, 8, 7, 2, 3),
    64: ((8, 8), 16, 8, 12, 11, 3, 7),
    256: ((16, 16), 32, 16, 16, 15, 4, 15),
    1024: ((32, 32), 64, 32, 20, 19, 5, 31),
    4096: ((64, 64), 128, 64, 24, 23, 6, 63),
}


def test_switches_are_counted(results: Results) -> None:
    table = {int(row["nodes"]): row for row in rows(results, "switches")}
    for nodes, (grid, switches, ports, steps, retunes, wavelengths, any_pair) in SWITCHES.items():
        row = table[nodes]
        assert (int(row["rows"]), int(row["columns"])) == grid
        assert (int(row["switches"]), int(row["ports"])) == (switches, ports)
        assert int(row["any_pair_wavelengths"]) == any_pair
        if nodes <= 256:
            planned = (int(row["steps"]), int(row["retunes"]), int(row["wavelengths"]))
            assert planned == (steps, retunes, wavelengths)
        else:
            assert row["steps"] == ""


@pytest.mark.parametrize(
    ("batch", "iterations", "electrical_ms", "difference_us"),
    # Iterations include an incomplete last batch in each epoch.
    [
        (32, 200_200, 29.16, 150),
        (64, 100_100, 58.32, 300),
        (128, 50_060, 116.62, 599),
        (256, 25_040, 233.15, 1198),
    ],
)
def test_the_printed_times_are_so_much_per_iteration(
    batch: int, iterations: int, electrical_ms: float, difference_us: float
) -> None:
    assert four_nodes.iterations(batch) == iterations
    assert 60 * BEHIND / iterations * 1e3 == pytest.approx(electrical_ms, abs=0.01)
    difference = 60 * (ON_ODDL - BEHIND) / iterations
    assert difference * 1e6 == pytest.approx(difference_us, abs=1)


def test_requests_of_four_nodes_add_what_theory_says(results: Results) -> None:
    table = rows(results, "four_nodes")
    sending_ms = 1.5 * RESNET50_BITS / RATE * 1e3
    checked = 0
    for row in table:
        batch, request_s = int(row["batch"]), float(row["request_us"]) * 1e-6
        assert row["verified"] == "true"
        assert float(row["electrical_min"]) == pytest.approx(97.3, abs=1e-4)
        buckets = {"tensor": TENSORS, "all": 1}.get(row["buckets"])
        if row["overlap"] == "true" or buckets is None:
            continue
        # Nothing is hidden: every circuit is requested, and its lasers are tuned.
        added_s = buckets * CIRCUITS * (request_s + 10.5e-9)
        minutes = 97.3 + four_nodes.iterations(batch) * added_s / 60
        assert float(row["oddl_min"]) == pytest.approx(minutes, abs=2e-4)
        assert float(row["communication_ms"]) == pytest.approx(sending_ms + 1e3 * added_s, abs=1e-3)
        checked += 1
    assert checked == 4 * 2 * len(four_nodes.QUICK_REQUESTS_US)


def test_a_request_that_explains_the_difference_is_found(results: Results) -> None:
    table = rows(results, "four_nodes")
    for batch in four_nodes.BATCHES:
        own: list[dict[str, object]] = [
            row | {name: float(row[name]) for name in ("request_us", "oddl_min")}
            for row in table
            if (row["batch"], row["buckets"], row["overlap"]) == (str(batch), "tensor", "false")
        ]
        needed = four_nodes.needed_request_us(own, ON_ODDL)
        theory = 30 / four_nodes.iterations(batch) / (TENSORS * CIRCUITS) - 10.5e-9
        assert needed == pytest.approx(theory * 1e6, abs=0.01)


def test_larger_systems_send_as_long_as_theory_says(results: Results) -> None:
    for row in rows(results, "scaling"):
        nodes, network = int(row["nodes"]), row["network"]
        assert row["verified"] == "true"
        if network not in ("ideal", "ideal_200", "oddl", "oddl_both"):
            continue
        bits = {"vgg19": VGG19_BITS, "resnet50": RESNET50_BITS}[row["model"]]
        buckets = {"vgg19": 6, "resnet50": 5}[row["model"]]
        exchanges = 2 * math.log2(nodes)
        planes = 2 if network in ("ideal_200", "oddl_both") else 1
        data_s = 2 * (nodes - 1) / nodes * bits / (planes * RATE)
        waiting_s = exchanges * 500e-9
        if network.startswith("oddl"):
            # Each circuit needs a request and a grant, tuning, and locking.
            waiting_s += (exchanges - 1) * (2 * 500e-9 + 10.5e-9 + 100e-9)
        theory = data_s + buckets * waiting_s
        # Chunks are whole bytes, so an exchange may send slightly more.
        assert float(row["communication_s"]) == pytest.approx(theory, rel=1e-4)
        parts = ("compute_s", "exposed_communication_s", "reconfiguration_s", "control_s")
        total = sum(float(row[part]) for part in parts)
        assert total == pytest.approx(float(row["iteration_s"]), abs=1e-12)


def test_the_timeline_shows_no_port_busy_twice(results: Results) -> None:
    flows: dict[tuple[str, str, str], list[tuple[float, float]]] = {}
    for row in rows(results, "timeline"):
        port = (row["algorithm"], row["source"], row["plane"])
        flows.setdefault(port, []).append((float(row["start_s"]), float(row["sent_s"])))
    # 16 ranks with two ports each, in plans of two algorithms.
    assert len(flows) == 2 * 16 * 2
    for own in flows.values():
        own.sort()
        assert all(end <= start for (_, end), (start, _) in pairwise(own))


def test_empty_figures_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "figure.svg"
    bar = plot.BarPanel("one", {"part": [1.0]})
    with pytest.raises(PlotError):
        plot.stacked_bars([], ["a"], path, x_label="Time")
    with pytest.raises(PlotError):
        plot.stacked_bars([bar], ["a", "b"], path, x_label="Time")
    with pytest.raises(PlotError):
        plots.port_timeline([plots.PortPanel("none", 4, [])], path)
    flow = plots.Flow(0, 0, 0, 0.0, 0.0, 1.0)
    with pytest.raises(PlotError):
        plots.port_timeline([plots.PortPanel("many", 1000, [flow])], path)
    with pytest.raises(PlotError):
        plot.iteration_timeline(0.0, 0.0, [], path)
    assert not path.exists()
