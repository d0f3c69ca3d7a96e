"""Packets and traffic on the command line and in Python."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

import opticoll
from opticoll import Fabric, errors
from opticoll._core import expected_traffic, simulate_traffic
from opticoll.commands.traffic.packets import Case, TrafficRow, simulate
from opticoll.outputs.records import record_rows
from opticoll.outputs.rows import columns
from opticoll.outputs.watch import Watch
from support import Run, broad
from test_cli import run_json

SMALL = (
    "dragonfly:terminals_per_router=2,routers_per_group=4,global_per_router=2,"
    "rate=5.25GiB/s,global_rate=40372692582b/s,latency=0ns"
)
TRAFFIC = ["traffic", "--fabric", SMALL]


def traffic(run: Run, *options: str | Path) -> Any:
    return run_json(run, "traffic", *TRAFFIC, *options)


def test_lists_make_a_case_of_each_combination_whatever_the_jobs(run: Run, tmp_path: Path) -> None:
    options = ["--pattern", "uniform,hot_spot:rank=3,percent=20", "--bytes", "1KiB,3000B"]
    options += ["--period", "500ns,2us", "--routing", "minimal,adaptive", "--messages", "10"]
    table = tmp_path / "cases.csv"
    rows = traffic(run, *options, "--jobs", "1", "--csv", table)
    cases = [
        (row["pattern"], row["message_bytes"], row["period_s"], row["routing"]) for row in rows
    ]
    assert cases == [
        (pattern, size, period, routing)
        for pattern in ("uniform", "hot_spot:rank=3,percent=20")
        for size in (1024, 3000)
        for period in (5e-7, 2e-6)
        for routing in ("minimal", "adaptive")
    ]
    assert traffic(run, *options, "--jobs", "3") == rows
    with table.open(newline="") as lines:
        written = list(csv.DictReader(lines))
    assert [row["events"] for row in written] == [str(row["events"]) for row in rows]
    assert list(written[0]) == [column.name for column in columns(TrafficRow)]


def test_every_pattern_is_named_in_the_help_and_runs(run: Run) -> None:
    finished = run("traffic", "--help-all")
    for option in ("--pattern", "--bytes", "--period", "--messages", "--jobs", "--figure", "--csv"):
        assert option in finished.out
    for record in record_rows("settings"):
        known = {one["meaning"] for one in record["options"] if one["name"] == "simulator"}
        of_plans = record["name"] in ("issue", "overhead", "placement", "background")
        expected = "packet" in known and not of_plans
        assert (f"--{record['name'].replace('_', '-')} " in finished.out) == expected, record[
            "name"
        ]
    for pattern in ("uniform", "group_shift", "permutation", "nearest", "hot_spot", "shift:by=9"):
        row = traffic(run, "--pattern", pattern, "--messages", "5")
        assert row["messages_delivered"] == 72 * 5, pattern


@pytest.mark.parametrize(
    "fabric",
    ["fat_tree:down=4x4,up=1x2", "torus:dims=3x3", "crossbar:ranks=8", "electrical_ring:ranks=5"],
)
def test_traffic_runs_on_other_fabrics(run: Run, fabric: str) -> None:
    row = run_json(run, "traffic", "traffic", "--fabric", fabric, "--messages", "20")
    assert row["messages_delivered"] == 20 * row["terminals"]
    assert row["global_bytes"] == 0


def test_a_deadlock_is_an_error_that_names_the_circle(run: Run) -> None:
    crowd = ["--pattern", "group_shift", "--bytes", "8192B", "--period", "100ns"]
    few = ["--routing", "valiant", "--buffers", "1KiB,1KiB,1KiB", "--virtual-channels", "1"]
    finished = run(*TRAFFIC, *crowd, *few)
    assert finished.code == 2
    assert "deadlock" in finished.err
    assert "router" in finished.err
    assert run(*TRAFFIC, *crowd, *few[:-2]).code == 0


def test_plans_run_packet_by_packet(run: Run, tmp_path: Path) -> None:
    options = ["--fabric", SMALL, "--algorithm", "tar", "--size", "1KiB", "--simulator", "packet"]
    options += ["--packet", "512B", "--chunk", "512B", "--overhead", "0s"]
    figure = tmp_path / "packets.png"
    value = run_json(
        run, "simulate", "simulate", "all_gather", *options, "--per", "step", "--figure", figure
    )
    # CODES: 29.39 us; it begins at 1 ns.
    assert value["time_s"] == pytest.approx(29.39e-6, rel=0.02)
    assert value["packets"]["message_latency"]["count"] == 72 * 71
    assert value["packets"]["bytes_delivered"] == 72 * 71 * 1024
    assert len(value["per_step"]) == 71
    assert value["settings"] == [{"name": "packet", "value": "512B", "plain": "2048B"}]
    assert figure.stat().st_size > 10_000


def test_a_scenario_has_the_same_settings(run: Run, tmp_path: Path) -> None:
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text(
        f"collective: scatter\nfabric: '{SMALL}'\nalgorithms: [glf, llf]\nsizes: 1KiB\n"
        "simulator: packet\nrouting: adaptive\nrouter_delay_rule: occupies_port\n"
    )
    rows = run_json(run, "compare", "compare", scenario)
    named = {one["name"]: one["value"] for one in rows[0]["settings"]}
    assert named == {"routing": "adaptive", "router_delay_rule": "occupies_port"}
    scenario.write_text(scenario.read_text().replace("adaptive", "adaptiv"))
    finished = run("compare", scenario)
    assert finished.code == 2
    assert "adaptive" in finished.err


def test_work_expected_is_said_before_a_long_run(run: Run) -> None:
    options = ["--period", "200us", "--messages", "30000", "--bytes", "8B"]
    assert "messages in" not in run(*TRAFFIC).err
    finished = run(*TRAFFIC, *options, "--pattern", "nearest")
    assert "2160000 messages in 2160000 chunks" in finished.err


def test_a_watcher_is_called_and_may_stop_it() -> None:
    fabric = Fabric(SMALL.replace("=2,", "=4,").replace("group=4", "group=8"))
    spec = "uniform:bytes=2KiB,period=1us,messages=100"
    messages, chunks, forwards = expected_traffic(fabric, spec)
    assert (messages, chunks) == (fabric.ranks * 100, fabric.ranks * 400)
    seen: list[tuple[int, int, int]] = []
    packets = simulate_traffic(fabric, spec, watch=lambda *progress: seen.append(progress))
    assert seen
    assert seen == sorted(seen)
    assert packets.router_forwards == pytest.approx(forwards, rel=0.1)

    def stop(*_: int) -> None:
        raise KeyError("enough")

    with pytest.raises(KeyError, match="enough"):
        simulate_traffic(fabric, spec, watch=stop)


def test_a_case_that_fails_stops_the_others() -> None:
    fabric = Fabric(SMALL)
    good = Case(fabric, "uniform", "2KiB", "1us", 10, {})
    bad = Case(fabric, "uniform", "2KiB", "1us", 10, {"chunk": "4KiB"})
    with pytest.raises(errors.SimulationError, match="packet"):
        list(simulate([good, bad, good], 2, Watch()))
    (alone,) = simulate([good], 1, Watch(), timeline=True)
    # Bytes times time in buffers: at least the time on the wire of all chunks on their first link.
    in_buffers = alone.outcome.timeline["mean_bytes"][0]  # by injection links
    held = sum(int(mean) for mean in in_buffers) * alone.outcome.timeline_bin_ps
    wire_ps = 512 * 10**12 / (5.25 * 2**30)
    assert held >= 72 * 10 * 4 * 512 * wire_ps


def test_figures_of_packets_are_the_same_each_time(tmp_path: Path) -> None:
    from opticoll import plot

    fabric = Fabric(SMALL)
    spec = "group_shift:bytes=2KiB,period=1us,messages=20"
    packets = simulate_traffic(fabric, spec, timeline=True)
    paths = [tmp_path / name for name in ("all1.svg", "all2.svg", "cases1.svg", "cases2.svg")]
    for path in paths[:2]:
        plot.packets(packets, fabric, path, "group shift")
    for path in paths[2:]:
        plot.latencies({"one": packets, "two": packets}, path)
    first, second, third, fourth = (path.read_bytes() for path in paths)
    assert first == second != third == fourth


def test_python_takes_the_same_settings() -> None:
    plan = opticoll.plan("scatter", SMALL, "lin", size="1KiB")
    outcome = plan.simulate(simulator="packet", chunk="256B", packet="512B")
    assert "latencies" in outcome.tables
    assert outcome.simulator == "packet"
    settings = [tuple(one.values()) for one in outcome.settings]
    assert settings == [("chunk", "256B", "512B"), ("packet", "512B", "2048B")]
    fluid = plan.simulate()
    assert "latencies" not in fluid.tables
    with pytest.raises(errors.SimulationError, match="routing"):
        plan.simulate(routing="valiant")


@broad
def test_a_comparison_says_how_far_each_packet_simulation_is() -> None:
    from opticoll.commands.compare import compare
    from opticoll.inputs.scenarios import to_scenario

    said: list[tuple[str, int, int]] = []
    scenario = to_scenario(
        "all_gather", SMALL, "ring", sizes="256KiB", settings={"simulator": "packet"}
    )
    list(compare(scenario, [], Watch(update=lambda *what: said.append(what))))
    ranks = scenario.fabrics[0].ranks
    label, delivered, messages = said[-1]
    assert "messages delivered" in label
    assert messages == ranks * (ranks - 1)
    assert 0 < delivered <= messages
