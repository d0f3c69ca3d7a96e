"""Circuit switches: settings that are proved, messages beside them, presets and bounds."""

import re
from pathlib import Path

import pytest

import opticoll
from opticoll import _core
from support import Run
from test_cli import run_json

ONE = "circuit_switch:ranks=6,startup=100ns,latency=100ns,reconfiguration=1us"
TWO = "circuit_switch:ranks=6,ports=2,planes=2,latency=100ns"
FEW = "circuit_switch:ranks=6,ports=2,planes=2,switch_ports=3,dead_ports=5.1"
BESIDE = "circuit_switch:ranks=6,latency=100ns,packet_rate=100Gb/s,packet_latency=1us"


def test_settings_are_proved_as_circuits() -> None:
    """A port in two circuits, a port of another switch, a hop before the one before it."""
    plan = opticoll.plan("all_to_all", ONE, "shifts:shifts=1x2", size="6KiB")
    text = plan.to_text()
    assert "@" in text
    crossing = opticoll.plan("all_gather", TWO, "direct", size="6KiB").to_text()
    dead = opticoll.plan("all_gather", f"{TWO},dead_ports=1.0", "direct", size="6KiB").to_text()
    few = opticoll.plan("all_to_all", FEW, "direct", size="6KiB").to_text()
    wrong = {
        "ports": text.replace(" 0.0", " 0.1", 1),
        "path": crossing.replace(" 0.0", " 0.1", 1),
        "dead_port": dead.replace("dead_ports=1.0", "dead_ports=1.0+2.0"),
    }
    for kind, changed in wrong.items():
        found = _core.Plan.from_text(changed).verify()
        assert kind in {one.kind for one in found}, kind
    # Rank 0 is on a switch with ranks 1 and 2, and on one with rank 3.
    relayed = next(line for line in few.splitlines() if re.match(r"copy \d+ 0>1>4", line))
    straight = re.sub(r"0>1>4 (\S+) .*", r"0>4 \1", relayed)
    found = _core.Plan.from_text(few.replace(relayed, straight)).verify()
    assert "joins rank 0 to rank 4 on plane 0, but the ranks are on different switches" in str(
        [one.sentence for one in found]
    )


def test_messages_beside_the_switch_are_shown(run: Run, tmp_path: Path) -> None:
    command = ("show", "all_to_all", "--fabric", BESIDE, "--slot", "0", "--algorithm",
               "switch_configurations:algorithm=direct,configurations=packet")  # fmt: skip
    assert "packet" in run(*command).out
    row = run_json(run, "show", *command)
    assert {one["source_port"] for one in row["lightpaths"]} == {_core.BESIDE}
    drawn = run("show", "all_reduce", "--fabric", BESIDE, "--view", "ports", "--figure",
                tmp_path / "ports.svg")  # fmt: skip
    assert drawn.code == 0, drawn.err


@pytest.mark.parametrize(
    ("preset", "time_s", "ranks"),
    [
        ("palomar", 1.2e-3, 136),
        ("lumentum_r300", 10e-3, 300),
        ("mordia", 80e-6, 24),
        ("infinitehbd:ranks=8", 80e-6, 8),
        ("sirius:ranks=16", 3.84e-9, 16),
        ("prism:ranks=4", 100e-9, 4),
        ("ramp:ranks=4", 1e-9, 4),
    ],
)
def test_a_preset_takes_the_time_of_its_source(preset: str, time_s: float, ranks: int) -> None:
    row = opticoll.measure(opticoll.plan("all_gather", preset, "ring"), "1KiB")
    assert row.fabric_reconfiguration_s == pytest.approx(time_s)
    assert (row.ranks, row.verified) == (ranks, True)


def test_the_view_settings_lists_the_graph_of_each_setting(run: Run, tmp_path: Path) -> None:
    figure = tmp_path / "configurations.svg"
    fabric = "circuit_switch:ranks=8,startup=100ns,latency=100ns,reconfiguration=1us"
    asked = (
        "show", "all_reduce", "--fabric", fabric, "--size", "1MiB", "--view", "configurations",
        "--algorithm", "switch_configurations:algorithm=cyclic_doubling,configurations=each",
        "--figure", figure,
    )  # fmt: skip
    row = run_json(run, "show", *asked)
    settings = row["configurations"]
    # The distances of halving and doubling, each with a circuit of its own: 1, 2, 4, 4, 2, 1.
    distances = [
        {(one["destination"] - one["source"]) % 8 for one in setting["circuits"]}
        for setting in settings
    ]
    assert distances == [{1}, {2}, {4}, {2}, {1}]
    assert [setting["slots"] for setting in settings] == [[0, 0], [1, 1], [2, 3], [4, 4], [5, 5]]
    assert all(len(setting["circuits"]) == 8 for setting in settings)
    # Each change takes 1 us, and begins where the setting before ends.
    ends = [setting["end_s"] for setting in settings]
    assert [setting["start_s"] for setting in settings[1:]] == ends[:-1]
    assert figure.exists()
    assert "configuration  slots" in run(*asked).out


@pytest.mark.parametrize("ranks", [258, 300])
def test_no_bound_of_many_settings_is_above_a_rotor(ranks: int) -> None:
    # Numbers of settings above 256 are bounded several at a time.
    fabric = f"circuit_switch:ranks={ranks},latency=1us,reconfiguration=0s"
    row = opticoll.measure(opticoll.plan("all_to_all", fabric, "shifts:shifts=all"), f"{ranks}MB")
    assert row.verified
    assert row.bound_time_s is not None
    assert 0.99 * row.time_s < row.bound_time_s <= row.time_s


@pytest.mark.parametrize("set_up", ["0s", "1us", "10us"])
@pytest.mark.parametrize("demand", [None, "zipf:exponent=1"])
def test_ports_set_one_by_one_are_no_slower_than_all_together(
    set_up: str, demand: str | None
) -> None:
    fabric = f"circuit_switch:ranks=16,ports=2,reconfiguration={set_up}"
    times = {}
    for policy in ("per_port", "all_stop"):
        plan = opticoll.plan(
            "all_to_all", fabric, "decomposition", size="16MiB", demand=demand, policy=policy
        )
        assert plan.verify() == []
        times[policy] = plan.simulate("16MiB", policy="per_port").time_ps
    assert times["per_port"] <= times["all_stop"]
