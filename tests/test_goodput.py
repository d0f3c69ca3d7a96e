"""The command `goodput`: failure rates, the simulation against theory, and its output."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opticoll
from opticoll.cli.runner import run as run_command
from opticoll.commands.goodput import COMMAND
from opticoll.commands.goodput.simulation import CHECKPOINTS, Run, simulate
from opticoll.errors import OpticollError
from opticoll.inputs.failure_rates import LLAMA_3, Part, given, read, to_rate
from opticoll.outputs import bill
from support import Run as RunCommand

HOUR = 3600.0

ONE_AN_HOUR: dict[str, Any] = {
    "devices": "1",
    "unit": 1,
    "rates": "none",
    "rate": ["x=1/1/1h"],
    "length": "100d",
}
"""A run that fails each hour on average."""


def rows(**values: Any) -> list[Any]:
    return run_command(COMMAND, **values)


def half_width(row: Any) -> float:
    return float(row.goodput_high - row.goodput_low) / 2


def agrees(row: Any, expected: float, beside: float = 0.0) -> bool:
    """Returns whether a goodput is expected to within four standard errors and a known bias."""
    return bool(abs(row.goodput - expected) <= 2 * half_width(row) + beside)


def test_counts_of_llama_3_give_one_failure_in_three_hours() -> None:
    # The paper states 419 unexpected interruptions of 16,384 GPUs in 54 days.
    rate = sum(part.rate for part in LLAMA_3.parts)
    assert rate * 16384 * 54 * 24 * HOUR == pytest.approx(419)
    (row,) = rows(devices="16384", replications=10)
    assert row.between_failures_s / HOUR == pytest.approx(54 * 24 / 419)
    assert row.between_failures_s / HOUR == pytest.approx(3.093, abs=5e-4)


def test_goodput_of_llama_3_is_the_stated_one_within_three_points() -> None:
    # Stated: effective training time above 90 %. C and R are not stated; these are the defaults.
    checkpoint, restart, between = 30, 240, 54 * 86400 / 419
    (row,) = rows(checkpoint="30s", detection="1min", restart="3min", setup="0s")
    assert 0.90 < row.goodput < 0.93
    by_hand = 1 - math.sqrt(2 * checkpoint / between) - restart / between
    assert row.formula == pytest.approx(by_hand, rel=1e-12)
    assert agrees(row, by_hand, beside=0.005)


@pytest.mark.parametrize(
    ("checkpoint", "interval", "restart"), [(60, 900, 600), (300, 1800, 1200), (900, 7200, 0)]
)
def test_simulation_agrees_with_the_exact_renewal_at_any_size(
    checkpoint: int, interval: int, restart: int
) -> None:
    # A cycle of tau + C without failure takes M (exp((tau + C) / M) - 1) on average if a failure
    # costs no time, and each restart of length R takes M (exp(R / M) - 1).
    (row,) = rows(
        **ONE_AN_HOUR,
        checkpoint=f"{checkpoint}s",
        interval=f"{interval}s",
        detection="0s",
        restart=f"{restart}s",
    )
    tries = math.exp((interval + checkpoint) / HOUR) - 1
    cycle = HOUR * tries + tries * HOUR * (math.exp(restart / HOUR) - 1)
    assert row.complete_formula == pytest.approx(interval / cycle, rel=1e-12)
    assert agrees(row, interval / cycle)


def test_simulation_agrees_with_the_first_order_where_failures_are_rare() -> None:
    (row,) = rows(
        **(ONE_AN_HOUR | {"rate": ["x=1/1/100h"], "length": "7300d"}),
        checkpoint="1s",
        detection="0s",
        restart="10s",
    )
    # sqrt(2 C M) = 848.5 s; lost are sqrt(2 C / M) and R / M. Terms of second order are 1e-5.
    between = 100 * HOUR
    expected = 1 - math.sqrt(2 / between) - 10 / between
    assert row.interval_s == pytest.approx(math.sqrt(2 * between))
    assert row.formula == pytest.approx(expected, rel=1e-12)
    assert agrees(row, expected, beside=1e-5)
    assert half_width(row) < 1e-4


def best_interval(checkpoint_s: float, between_s: float) -> float:
    """Returns the interval at which tau / (exp((tau + C) / M) - 1) is greatest, by bisection.

    The derivative is 0 where exp((tau + C) / M) (1 - tau / M) = 1.
    """
    low, high = 0.0, between_s
    for _ in range(200):
        middle = (low + high) / 2
        slope = math.exp((middle + checkpoint_s) / between_s) * (1 - middle / between_s) - 1
        low, high = (middle, high) if slope > 0 else (low, middle)
    return low


def test_the_simulated_best_interval_is_youngs_within_one_percent() -> None:
    # The loss is flat at its minimum, so the best of a few intervals says little. Losses a / tau +
    # b tau are fitted to five intervals with the same failures; sqrt(a / b) is the best interval.
    # For C = 1 s, Young's optimum is 0.45 % above the exact one.
    between = 54 * 86400 / 419
    young = math.sqrt(2 * between)
    intervals = [young * 2 ** (power / 2) for power in range(-2, 3)]
    losses = [
        1 - row.goodput
        for row in rows(
            checkpoint="1s",
            interval=",".join(f"{interval:.6f}s" for interval in intervals),
            detection="0s",
            restart="0s",
            length="540d",
        )
    ]
    basis = np.array([[1 / interval, interval] for interval in intervals])
    (per_checkpoint, per_time), *_ = np.linalg.lstsq(basis, np.array(losses), rcond=None)
    best = math.sqrt(per_checkpoint / per_time)
    assert best == pytest.approx(young, rel=0.01)
    assert best == pytest.approx(best_interval(1, between), rel=0.01)


def test_no_interval_beats_youngs_by_one_percent_of_the_goodput() -> None:
    young = math.sqrt(2 * 60 * 54 * 86400 / 419)
    intervals = [f"{young * 2 ** (power / 2):.3f}s" for power in range(-4, 5)]
    goodputs = [
        row.goodput for row in rows(checkpoint="60s", interval=",".join(["young", *intervals]))
    ]
    assert goodputs[0] >= 0.99 * max(goodputs)


def test_dalys_interval_is_the_exact_optimum_within_one_per_mille() -> None:
    short = ONE_AN_HOUR | {"length": "1d", "replications": 10, "interval": "daly"}
    for checkpoint in (1, 60, 300):
        (row,) = rows(**short, checkpoint=f"{checkpoint}s")
        assert row.interval_s == row.daly_s
        assert row.daly_s == pytest.approx(best_interval(checkpoint, HOUR), rel=1e-3)
    (row,) = rows(**short, checkpoint="3h")
    assert row.daly_s == HOUR  # C >= 2 M


def missing(units: int, fails_s: float, repair_s: float) -> list[float]:
    """Returns the probabilities that 0, 1, ... of independent units are in repair."""
    down = repair_s / (fails_s + repair_s)
    return [
        math.comb(units, count) * down**count * (1 - down) ** (units - count)
        for count in range(units + 1)
    ]


EIGHT: dict[str, Any] = {
    "devices": "8",
    "unit": 1,
    "rates": "none",
    "rate": ["x=1/1/10h"],
    "repair": "2h",
    "checkpoint": "0s",
    "interval": "1s",
    "detection": "0s",
    "restart": "0s",
    "length": "200d",
}
"""Eight units with failures in 10 h, repairs of 2 h, and stops that take no time.

At most a second of work is lost by each of 0.8 failures an hour: a bias of 2.3e-4 at most.
"""


@pytest.mark.parametrize("spares", [0, 1, 3])
def test_a_run_waits_as_often_as_too_many_units_are_in_repair(spares: int) -> None:
    (row,) = rows(**EIGHT, spares=str(spares))
    expected = sum(missing(8 + spares, 10, 2)[: spares + 1])
    assert row.available == pytest.approx(expected, rel=1e-9)
    assert agrees(row, expected, beside=2.3e-4)
    assert row.largest_cause == "waiting"
    assert row.per_installed == pytest.approx(row.goodput * 8 / (8 + spares))


@pytest.mark.parametrize("speed", [0.5, 0.9])
def test_a_run_without_units_has_the_stated_speed(speed: float) -> None:
    (row,) = rows(**EIGHT, spares="1", degraded_speed=speed)
    expected = sum(
        chance * max(0.0, 1 - max(0, count - 1) * (1 - speed))
        for count, chance in enumerate(missing(9, 10, 2))
    )
    assert row.available == pytest.approx(expected, rel=1e-9)
    # A repaired unit joins up to a second late.
    assert agrees(row, expected, beside=4.6e-4)


def test_failures_that_keep_the_state_lose_no_work() -> None:
    # Up for M on average, then a stop of M (exp(R / M) - 1); cycles of tau + C go on unharmed.
    (row,) = rows(
        **(ONE_AN_HOUR | {"rate": ["x=1/1/1h,no_repair,keeps_state"]}),
        checkpoint="5min",
        interval="20min",
        detection="3min",
        setup="7min",
        restart="1h",
    )
    assert agrees(row, 20 / 25 * math.exp(-10 / 60), beside=1e-4)
    causes = {cause.cause: cause.share for cause in row.causes}
    assert causes["lost work"] == causes["restart"] == 0
    assert row.young_s is None
    assert row.complete_formula is None


def test_all_time_is_either_useful_or_lost_by_a_cause() -> None:
    parts = (
        Part("hard", to_rate("1/1/40h")),
        Part("soft", to_rate("1/1/50h"), repair=False),
        Part("link", to_rate("1/1/60h"), keeps_state=True),
    )
    for spares, speed in ((None, 0.0), (0, 0.0), (2, 0.0), (1, 0.7), (0, 0.95)):
        run = Run(
            units=6,
            unit=2,
            spares=spares,
            parts=parts,
            checkpoint_s=70,
            interval_s=900,
            detection_s=30,
            restart_s=200,
            setup_s=15,
            repair_s=4 * HOUR,
            degraded_speed=speed,
            length_s=10 * 86400,
        )
        totals = simulate(run, 40, 7, lambda _: None)
        assert totals.lost_s.min() >= -1e-6
        sums = totals.useful_s + totals.lost_s.sum(axis=1)
        assert sums == pytest.approx(run.length_s)
        by_part = totals.lost_s.sum(axis=1) - totals.lost_s[:, CHECKPOINTS]
        assert totals.parts_s.sum(axis=1) == pytest.approx(by_part)
        assert (totals.failures.sum(axis=0) > 0).all()


def test_the_same_seed_gives_the_same_rows() -> None:
    few: dict[str, Any] = {"spares": "2", "replications": 10, "length": "5d"}
    assert rows(**few, seed=3)[0].goodput == rows(**few, seed=3)[0].goodput
    assert rows(**few, seed=3)[0].goodput != rows(**few, seed=4)[0].goodput


def test_rates_have_two_forms() -> None:
    assert to_rate("148/16384/54d") == pytest.approx(148 / 16384 / (54 * 86400))
    assert to_rate("2*300FIT") == pytest.approx(600e-9 / 3600)
    assert to_rate(0) == to_rate("0.5*0") == 0


def test_options_replace_and_add_kinds_of_a_table() -> None:
    rates = given(["gpu=0", "optics=2*300FIT,keeps_state"], "llama3")
    names = [part.part for part in rates.parts]
    assert "gpu" not in names
    assert names[-1] == "optics"
    assert len(names) == len(LLAMA_3.parts)
    assert rates.source.endswith("; --rate: gpu, optics")


def test_a_file_lists_kinds_of_parts(tmp_path: Path) -> None:
    path = tmp_path / "rates.yaml"
    path.write_text("source: logs\nparts:\n  - {part: link, rate: 9/8/1h, keeps_state: true}\n")
    assert read(path).parts == [Part("link", 9 / 8 / HOUR, keeps_state=True)]
    assert given([], str(path)).source == "logs"
    path.write_text("parts:\n  - {part: link, rate: 9/8/1h}\n  - {part: nic, rate: 5}\n")
    with pytest.raises(OpticollError, match=r"line 3, parts.1.rate: `5` is not a failure rate"):
        read(path)


def test_a_toml_file_lists_the_kinds_of_a_yaml_file(tmp_path: Path) -> None:
    in_yaml, in_toml = tmp_path / "rates.yaml", tmp_path / "rates.toml"
    in_yaml.write_text(
        "source: logs\n"
        "parts: [{part: gpu, rate: 148/16384/54d}, {part: os, rate: 5FIT, repair: false}]\n"
    )
    in_toml.write_text(
        'source = "logs"\n[[parts]]\npart = "gpu"\nrate = "148/16384/54d"\n'
        '[[parts]]\npart = "os"\nrate = "5FIT"\nrepair = false\n'
    )
    assert read(in_toml) == read(in_yaml)
    assert given([], str(in_toml)) == given([], str(in_yaml))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("parts = [{part = 'nic', rate = 5}]", "parts.0.rate: `5` is not a failure rate"),
        ("parts = [{part = 'nic'}]", "parts.0.rate: the field `rate` is missing"),
        ("sources = 'logs'", "sources: there is no such field; did you mean `source`?"),
        ("parts = [", "this is not valid TOML"),
        ("parts = " + 5000 * "[", "nested more than 64 deep"),
    ],
)
def test_errors_in_a_toml_file_name_the_field(tmp_path: Path, content: str, words: str) -> None:
    path = tmp_path / "rates.toml"
    path.write_text(content)
    with pytest.raises(OpticollError) as error:
        read(path)
    assert str(path) in str(error.value)
    assert words in str(error.value)


PARTS = """components:
  - {name: transceiver, failure_rate: 200 FIT, source: test}
  - {name: nic, failure_rate: 300 FIT, source: test}
"""

SHORT: dict[str, Any] = {"replications": 10, "length": "5d"}


@pytest.fixture
def parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns a file with the failure rates of all parts that fail; listed rates do not count."""
    monkeypatch.setattr(bill, "record_rows", lambda kind: [])
    path = tmp_path / "parts.yaml"
    path.write_text(PARTS)
    return path


def fit(row: Any) -> dict[str, float]:
    return {part.part: part.rate for part in row.parts}


def test_parts_of_a_fabric_fail_at_their_rates(parts: Path) -> None:
    # Each of 32 GPUs has a NIC, and a cable to a switch with a transceiver at both ends.
    (row,) = rows(fabric=["dgx_h100:boxes=4"], components=parts, **SHORT)
    assert (row.devices, row.unit, row.spares) == (32, 8, None)
    assert row.network == ["transceiver", "nic"]
    assert row.replaced == ["network", "nic"]
    assert row.left_out == ["copper_cable", "fibre_cable", "server_switch", "packet_switch"]
    rates = fit(row)
    assert rates["transceiver"] == pytest.approx(2 * 200)
    assert rates["nic"] == pytest.approx(300)
    assert "network" not in rates
    # 419 counts of the table, without 35 of `network` and 7 of `nic`.
    of_table = (419 - 35 - 7) / (16384 * 54 * 24 * HOUR)
    of_parts = (2 * 200 + 300) * 1e-9 / HOUR
    assert 1 / row.between_failures_s == pytest.approx(32 * (of_table + of_parts))


def test_rates_of_parts_replace_only_the_kind_that_contains_them(parts: Path) -> None:
    parts.write_text("components: [{name: nic, failure_rate: 300 FIT, source: test}]")
    (row,) = rows(fabric=["crossbar:ranks=16"], components=parts, **SHORT)
    assert row.replaced == ["nic"]
    assert fit(row)["nic"] == pytest.approx(300)
    assert fit(row)["network"] == pytest.approx(35e9 / (16384 * 54 * 24))


def test_options_replace_rates_of_parts(parts: Path) -> None:
    rate = ["nic=0", "packet_switch=7FIT", "network=9FIT"]
    (row,) = rows(fabric=["crossbar:ranks=16"], components=parts, rates="none", rate=rate, **SHORT)
    assert fit(row) == pytest.approx({"transceiver": 400, "packet_switch": 7, "network": 9})
    assert row.left_out == ["fibre_cable"]


def test_spare_cubes_of_a_fabric_are_spares_and_have_parts(parts: Path) -> None:
    # A cube of 64 chips has 96 fibres, each with a transceiver at the chip; 48 switches join them.
    parts.write_text(PARTS + "  - {name: ocs, failure_rate: 1000 FIT, source: test}\n")
    fabrics = ["ocs_torus:dims=8x8x8,spares=2", "torus:dims=8x8x8"]
    slice_of_cubes, torus = rows(fabric=fabrics, components=parts, rates="none", **SHORT)
    assert (slice_of_cubes.devices, slice_of_cubes.unit, slice_of_cubes.spares) == (512, 64, 2)
    rates = fit(slice_of_cubes)
    assert rates["transceiver"] == pytest.approx(96 / 64 * 200)
    assert rates["ocs"] == pytest.approx(48 * 1000 / (10 * 64))
    # A chip of the fixed torus has 6 links, and no other chip can take its place.
    assert (torus.devices, torus.unit, torus.spares) == (512, 8, 0)
    assert fit(torus)["transceiver"] == pytest.approx(6 * 200)


def test_stated_spares_change_the_fabric(parts: Path) -> None:
    parts.write_text("components: [{name: ocs, failure_rate: 1000 FIT, source: test}]")
    found = rows(
        fabric=["ocs_torus:dims=8x8x8"], spares="0,4", components=parts, rates="none", **SHORT
    )
    assert [fit(row)["ocs"] for row in found] == pytest.approx([48e3 / 512, 48e3 / (12 * 64)])
    with pytest.raises(OpticollError, match="8 cubes and 1 spare need 18 ports"):
        rows(fabric=["ocs_torus:dims=8x8x8,ports=16"], spares="1", **SHORT)


@pytest.mark.parametrize(
    ("fabric", "loss"),
    [
        ("dgx_h100:boxes=2", "+".join(f"rank {rank}" for rank in range(8))),
        ("torus:dims=4x4", "+".join(f"rank {rank}" for rank in range(8))),
        # The eight chips of cube 0, which no spare replaces.
        ("ocs_torus:dims=4x4x4,cube=2,spares=1", "rank 0+rank 1+rank 4+rank 5+rank 16+rank 17"
         "+rank 20+rank 21"),
    ],
)  # fmt: skip
def test_speed_without_a_unit_follows_from_the_times_of_two_plans(fabric: str, loss: str) -> None:
    options = {"replan": "all_reduce", "size": "10MB", "share": 0.25, "spares": "0"}
    (row,) = rows(fabric=[fabric], **options, **SHORT)
    whole = opticoll.Fabric(fabric)
    before = opticoll.plan("all_reduce", whole, size="10MB")
    after = opticoll.plan("all_reduce", whole.with_options(without=loss), size="10MB")
    slow = after.simulate("10MB").time_ps / before.simulate("10MB").time_ps
    assert row.replanned.slowdown == pytest.approx(slow)
    left = (whole.ranks - 8) / whole.ranks
    assert row.degraded_speed == pytest.approx(left / (1 + 0.25 * (slow - 1)))
    assert row.available == pytest.approx(
        sum(
            chance * max(0.0, 1 - count * (1 - row.degraded_speed))
            for count, chance in enumerate(
                missing(whole.ranks // 8, row.between_failures_s * whole.ranks / 8, 86400)
            )
        ),
        rel=1e-3,
    )


def test_a_stated_failure_leaves_its_ranks_in_the_run() -> None:
    options = {"replan": "all_gather=ring", "size": "1MB", "share": 0.5, "failed": ["0@50Gb/s"]}
    (row,) = rows(fabric=["crossbar:ranks=8"], spares="0", **options, **SHORT)
    assert row.replanned.ranks_left == 8
    # All blocks pass the cable of rank 0 at half the rate, so a ring takes twice as long.
    assert row.replanned.slowdown == pytest.approx(2)
    assert row.degraded_speed == pytest.approx(1 / (1 + 0.5 * (2 - 1)))


def test_setup_takes_the_reconfiguration_and_the_planning() -> None:
    fabric = ["wdm_ring:ranks=16,wavelengths=4,reconfiguration=2ms"]
    options = {"fabric": fabric, "replan": "all_reduce=ring", "size": "1MB", "share": 0.1}
    (row,) = rows(**options, **SHORT)
    assert row.replanned.reconfiguration_s == 2e-3
    assert 0 < row.replanned.planning_s < 60
    assert row.setup_s == row.replanned.reconfiguration_s + row.replanned.planning_s
    (stated,) = rows(**options, setup="7s", **SHORT)
    assert stated.setup_s == 7
    assert stated.replanned.planning_s is None


def test_a_row_of_a_fabric_states_the_measured_time_in_its_command(run: RunCommand) -> None:
    arguments = ("--fabric", "torus:dims=4x4", "--spares", "0,1", "--replan", "all_reduce=ring")
    options = ("--share", "0.1", "--replications", "10", "--length", "5d", "--json")
    found = json.loads(run("goodput", *arguments, *options).out)
    (alone,) = json.loads(run(*found[1]["command"].split()[1:], "--json").out)
    found[1]["replanned"]["planning_s"] = None
    assert alone == found[1]


def test_text_names_the_parts_of_each_fabric(run: RunCommand, parts: Path) -> None:
    fabrics = ("--fabric", "ocs_torus:dims=4x4x4,spares=1", "--fabric", "torus:dims=4x4x4")
    out = run("goodput", *fabrics, "--components", str(parts), "--unit", "64").out
    assert "parts with a failure rate: transceiver; they replace network of --rates" in out
    assert "parts without a failure rate: fibre_cable; they do not fail" in out
    assert "transceiver: failure rate 200 FIT; given: test" in out
    parts.write_text("components: [{name: nic, power: 1 W, source: test}]")
    out = run("goodput", "--fabric", "crossbar:ranks=16", "--components", str(parts)).out
    assert "`network` of --rates stands for them" in " ".join(out.split())


def test_a_row_states_the_command_of_its_case_alone(run: RunCommand) -> None:
    arguments = ("--devices", "256,512", "--spares", "1,2", "--replications", "10", "--json")
    found = json.loads(run("goodput", *arguments).out)
    assert [(row["devices"], row["spares"]) for row in found] == [
        (256, 1), (256, 2), (512, 1), (512, 2),
    ]  # fmt: skip
    alone = run(*found[2]["command"].split()[1:], "--json")
    assert json.loads(alone.out) == [found[2]]


def test_figure_shows_formula_and_simulation(run: RunCommand, tmp_path: Path) -> None:
    path = tmp_path / "goodput.svg"
    arguments = ("--devices", "256,512", "--interval", "young,1h", "--replications", "10")
    assert run("goodput", *arguments, "--figure", str(path)).code == 0
    text = path.read_text()
    for words in ("256 devices", "512 devices", "Young's optimum", "Goodput"):
        assert words in text


def test_figure_has_a_curve_for_each_fabric(run: RunCommand, tmp_path: Path) -> None:
    path = tmp_path / "goodput.svg"
    fabrics = ("--fabric", "torus:dims=4x4", "--fabric", "mesh:dims=4x4", "--spares", "0")
    assert run("goodput", *fabrics, "--replications", "10", "--figure", str(path)).code == 0
    text = path.read_text()
    assert "16 devices of torus" in text
    assert "16 devices of mesh" in text


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("--devices 100", "100 is no multiple of 8"),
        ("--devices 0", "`0` is not a whole number above 0"),
        ("--rates llama", "there is no table `llama`; did you mean `llama3`?"),
        ("--rates none", "no part fails; give a rate"),
        ("--rate gpu", "`gpu` has not the form KIND=RATE"),
        ("--rate gpu=1/8/1h,repaired", "has not the form KIND=RATE"),
        ("--rate gpu=1/0/1h", "--rate gpu: `1/0/1h` is not a failure rate"),
        ("--rate gpu=nanFIT", "is not a failure rate of at least 0"),
        ("--rate gpu=1/8/1y", "`1y` is not a time; write a number and a unit"),
        ("--repair 0s", "--repair: `0s` is out of range"),
        ("--interval yong", "--interval: `yong` is not a time"),
        ("--checkpoint 0s", "there is no optimum"),
        ("--degraded-speed 0.9", "give --spares 0 or more"),
        ("--degraded-speed 1 --spares 0", "below 1"),
        ("--replications 9", "must be at least 10"),
        ("--spares -1", "--spares: -1 is out of range"),
        ("--devices 16777224", "16777224 is out of range"),
        ("--length 36500d", "too many to simulate; give "),
        ("--components examples/parts.yaml", "--components needs --fabric"),
        ("--replan all_reduce", "--replan needs --fabric"),
        ("--share 0.1", "--share needs --replan"),
        ("--fabric crossbar:ranks=9", "9 is no multiple of 8"),
        ("--fabric crossbar:ranks=8 --devices 8", "--fabric states the devices"),
        ("--fabric crossbar:ranks=16 --replan all_reduce", "give --share, such as 0.3"),
        ("--fabric crossbar:ranks=16 --replan all_reduce --share 2", "at most 1"),
        ("--fabric crossbar:ranks=8 --replan all_reduce --share 0", "no unit is left"),
        ("--fabric ocs_torus:dims=4x4x8 --unit 8 --spares 1", "the size of the spare cubes"),
        (
            "--fabric circuit_switch:ranks=16 --replan all_reduce --share 0",
            "the ranks of a circuit_switch cannot fail; state a failure with --failed dead_ports=",
        ),
        (
            "--fabric circuit_switch:ranks=16 --replan all_reduce --share 0 --failed 5",
            "`5` is not a part of a circuit_switch that can fail; give dead_ports=3.0 or degraded=",
        ),
        (
            "--fabric passive_star:ranks=16,wavelengths=4 --replan all_reduce --share 0 --failed 5",
            "the failures of a passive_star are not modelled",
        ),
    ],
)
def test_invalid_options_are_refused(run: RunCommand, arguments: str, words: str) -> None:
    finished = run("goodput", *arguments.split())
    assert finished.code == 2
    assert words in finished.err
