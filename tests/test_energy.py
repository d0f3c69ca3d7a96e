"""Energy of plans: sums by hand on five fabrics, and rules of the energy."""

from __future__ import annotations

from pathlib import Path

import pytest

import opticoll
from opticoll.formulas import delivered_bytes
from opticoll.inputs import component_values
from opticoll.outputs import bill
from opticoll.outputs.plan_row import PlanRow
from support import Run, answer

VALUES = """
components:
  - {name: transceiver, energy: 20 pJ/b, source: test}
  - {name: wdm_transceiver, energy: 6 pJ/b, source: test}
  - {name: laser, energy: 2 pJ/b, source: test}
  - {name: nic, energy: 30 pJ/b, source: test}
  - {name: packet_switch, energy: 12 pJ/b, source: test}
  - {name: server_switch, energy: 3 pJ/b, source: test}
  - {name: copper_cable, energy: 1.3 pJ/b, source: test}
  - {name: ocs, power_per_port: 1 W/port, source: test}
"""
"""Values of all parts that the tests need, in numbers that make sums by hand easy."""


@pytest.fixture
def values(tmp_path: Path) -> Path:
    path = tmp_path / "parts.yaml"
    path.write_text(VALUES)
    return path


def measured(
    values: Path, collective: str, fabric: str, algorithm: str, size: str = "1GB"
) -> PlanRow:
    with bill.using(bill.Values(component_values.read(values))):
        row = opticoll.measure(opticoll.plan(collective, fabric, algorithm), size)
    assert row.verified
    return row


# Energies in joules of blocks or vectors of 1 GB = 8e9 bits, by hand.
#
# crossbar: a message crosses 2 cables with 2 modules each. Half of each module: 2 x (20 - 2) pJ/b;
# the NICs of both ends 30 pJ/b, the switch 12 pJ/b; in all 78 pJ/b. 8 lasers of 1.6 W are always
# lit. A step takes 10 ms.
# torus:dims=4: a ring of 4 ranks and 4 cables, without NICs: 18 pJ/b per hop, 8 lasers of 1.6 W.
# The tree sends 0 -> 2 over two hops, then 0 -> 1 and 2 -> 3: 4 hops in all.
# wdm_ring: 6 - 2 = 4 pJ/b per lightpath; a laser takes 0.2 W while its lightpath sends, 80 ms.
# circuit_switch: one module per circuit, half at each end: 18 pJ/b, and 1.6 W for 10 ms.
# dgx_h100:boxes=2: between servers, a message crosses 2 cables with 2 modules each, NICs and a
# switch: 78 pJ/b; within a server, 2 copper cables and a switch: 5.6 pJ/b. 32 lasers of 0.8 W.
STAR = "crossbar:ranks=4,rate=800Gb/s"
TORUS = "torus:dims=4,rate=800Gb/s"
RING = "wdm_ring:ranks=4,wavelengths=1,rate=100Gb/s,reconfiguration=20ms"
SWITCH = "circuit_switch:ranks=4,ports=1,rate=800Gb/s,reconfiguration=0s"
SERVERS = "dgx_h100:boxes=2,library=none,in_network=none"
BITS = 8e9


@pytest.mark.parametrize(
    ("collective", "fabric", "algorithm", "bits", "lasers"),
    [
        ("broadcast", STAR, "binomial", 3 * BITS * 78e-12, 8 * 1.6 * 0.02),
        ("all_gather", STAR, "ring", 12 * BITS * 78e-12, 8 * 1.6 * 0.03),
        ("broadcast", TORUS, "binomial", 4 * BITS * 18e-12, 8 * 1.6 * 0.02),
        ("all_gather", TORUS, "ring", 12 * BITS * 18e-12, 8 * 1.6 * 0.03),
        ("broadcast", RING, "binomial", 3 * BITS * 4e-12, 3 * 0.2 * 0.08),
        ("all_gather", RING, "ring", 12 * BITS * 4e-12, 12 * 0.2 * 0.08),
        ("broadcast", SWITCH, "binomial", 3 * BITS * 18e-12, 3 * 1.6 * 0.01),
        ("all_gather", SWITCH, "ring", 12 * BITS * 18e-12, 12 * 1.6 * 0.01),
    ],
)
def test_energy_by_hand(
    values: Path, collective: str, fabric: str, algorithm: str, bits: float, lasers: float
) -> None:
    row = measured(values, collective, fabric, algorithm)
    assert row.laser_energy_j == pytest.approx(lasers, rel=1e-9)
    assert row.energy_j == pytest.approx(bits + lasers, rel=1e-9)
    assert row.energy_unknown == []
    assert row.static_energy_j == pytest.approx(row.static_power_w * row.time_s)


@pytest.mark.parametrize(
    ("collective", "algorithm", "between", "within"),
    # The ring crosses servers with 2 of the 16 messages of each of its 15 steps, the tree with 1.
    [("all_gather", "ring", 15 * 2, 15 * 14), ("broadcast", "binomial", 1, 14)],
)
def test_energy_within_and_between_servers(
    values: Path, collective: str, algorithm: str, between: int, within: int
) -> None:
    row = measured(values, collective, SERVERS, algorithm)
    bits = BITS * (between * 78e-12 + within * 5.6e-12)
    assert row.energy_j - row.laser_energy_j == pytest.approx(bits, rel=1e-9)
    assert row.laser_energy_j == pytest.approx(32 * 0.8 * row.time_s, rel=1e-9)


def test_energy_of_servers_on_light(values: Path) -> None:
    """Two lightpaths of 40 Gb/s in each of 15 slots; all other messages stay in a server."""
    fabric = "dgx_h100:boxes=2,library=none,outside=wdm_ring/wavelengths=4,layout=flat"
    row = measured(values, "all_gather", fabric, "ring")
    bits = BITS * 15 * (2 * 4e-12 + 14 * 5.6e-12)
    assert row.energy_j - row.laser_energy_j == pytest.approx(bits, rel=1e-9)
    assert row.laser_energy_j == pytest.approx(BITS * 15 * 2 * 2e-12, rel=1e-9)


def test_a_busy_machine_takes_its_static_power(values: Path) -> None:
    """If all links are busy in both directions all the time, both energies are equal."""
    row = measured(values, "all_gather", "torus:dims=2,rate=800Gb/s", "direct")
    assert row.energy_j == pytest.approx(row.static_energy_j, rel=1e-9)


@pytest.mark.parametrize(
    ("collective", "algorithm", "circuits"),
    # Bruck sends blocks in three steps over the packet network; recursive doubling sends vectors.
    [
        ("all_to_all", "switch_configurations:algorithm=bruck,configurations=packet", 0),
        ("all_reduce", "switch_configurations:algorithm=recursive_doubling", None),
    ],
)
def test_lasers_of_circuits_and_of_packets_beside_them(
    values: Path, collective: str, algorithm: str, circuits: int | None
) -> None:
    """The 8 modules of packets are always lit, those of circuits for their bytes."""
    fabric = "circuit_switch:ranks=8,rate=400Gb/s,packet_rate=100Gb/s,reconfiguration=20us"
    row = measured(values, collective, fabric, algorithm, "300kB")
    always = 8 * 100e9 * 2e-12 * row.time_s
    if circuits is None:
        # Every rank sends the vector once in each of 3 steps, in some over circuits.
        per_step = 8 * 8 * 300e3 * 2e-12
        in_steps = (row.laser_energy_j - always) / per_step
        assert in_steps == pytest.approx(round(in_steps), abs=1e-9)
        assert 1 <= round(in_steps) <= 3
    else:
        assert row.laser_energy_j == pytest.approx(always, rel=1e-9)


def test_the_energy_of_very_many_bytes_does_not_overflow(values: Path) -> None:
    fabric = "crossbar:ranks=64,rate=800Gb/s"
    small, large = (
        measured(values, "all_gather", fabric, "ring", size) for size in ("1TB", "10000TB")
    )
    assert large.energy_j == pytest.approx(10_000 * small.energy_j, rel=1e-9)


def test_a_module_without_power_takes_no_energy(values: Path) -> None:
    values.write_text("components: [{name: transceiver, power: 0 W, source: test}]")
    row = measured(values, "all_gather", TORUS, "ring")
    assert row.energy_j == row.static_energy_j == 0


def test_a_switch_with_its_optics_replaces_switch_and_modules(run: Run) -> None:
    """3,950 W of 144 ports; the modules at the ranks (16 W) and the NICs (24.9 W) stay."""
    fabric = "fat_tree:down=64x4,up=1x2,links=1x32,rate=800Gb/s"
    line = ["plan", "all_reduce", "--fabric", fabric, "--algorithm", "ring", "--size", "1GB"]
    before = answer(run, *line)
    after = answer(run, *line, "--switch", "q3450_cpo")
    assert after["static_power_w"] - before["static_power_w"] == pytest.approx(
        6 * 3950 - 768 * 16 - 6 * 128 * 800e9 * 17.83e-12, rel=1e-2
    )
    assert after["laser_energy_j"] < before["laser_energy_j"]


def test_a_reconfiguration_takes_energy_if_it_is_stated(values: Path) -> None:
    fabric = SWITCH.replace("reconfiguration=0s", "reconfiguration=1ms")
    before = measured(values, "all_gather", fabric, "direct")
    values.write_text(f"{VALUES}  - {{name: ocs, reconfiguration_energy: 0.5 J, source: test}}\n")
    after = measured(values, "all_gather", fabric, "direct")
    switches = next(count for name, *_, count in opticoll.Fabric(fabric).bill if name == "ocs")
    assert before.reconfigurations
    taken = before.reconfigurations * switches * 0.5
    assert after.energy_j - before.energy_j == pytest.approx(taken, rel=1e-9)


def test_unknown_parts_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bill, "record_rows", lambda kind: [])
    with bill.using(bill.Values()):
        row = opticoll.measure(opticoll.plan("all_gather", STAR, "ring"), "1MB")
    assert row.energy_unknown == ["transceiver", "fibre_cable", "nic", "packet_switch"]
    assert row.energy_j == row.static_energy_j == 0


@pytest.mark.parametrize("collective", ["all_gather", "all_to_all", "broadcast", "gather"])
def test_delivered_bytes_are_those_that_a_switch_must_move(collective: str) -> None:
    """On one switch, a plan in which each result is sent once moves just the delivered bytes."""
    fabric = "crossbar:ranks=5,rate=1Gb/s"
    plan = opticoll.plan(collective, fabric, "direct")
    sent = plan.simulate("1kB").ranks["sent_bytes"].sum()
    assert sent == delivered_bytes(collective, 5, 1000)


def test_components_of_a_user_change_the_energy_of_a_command(run: Run, values: Path) -> None:
    line = ["plan", "all_gather", "--fabric", TORUS, "--algorithm", "ring", "--size", "1GB"]
    listed = answer(run, *line)["energy_j"]
    own = answer(run, *line, "--components", values)["energy_j"]
    assert listed != own
    assert own == pytest.approx(12 * BITS * 18e-12 + 8 * 1.6 * 0.03, rel=1e-9)


def test_energy_of_a_training(run: Run, values: Path) -> None:
    """Gradients in one bucket of 102.2 MB; the ring sends 2 (N - 1) times the bytes of a vector."""
    line = ["train", "--model", "resnet50", "--batch", "8", "--fabric", STAR, "--buckets", "all"]
    line += ["--algorithm", "ring", "--epochs", "90", "--rank-power", "700W"]
    row = answer(run, *line, "--grid-intensity", "400g/kWh", "--components", values)
    bits = 8 * row["gradient_bytes"] * 2 * 3
    assert row["bits_energy_j"] == pytest.approx(bits * 78e-12, rel=1e-6)
    assert row["laser_energy_j"] == pytest.approx(8 * 1.6 * row["iteration_s"], rel=1e-9)
    # 8 modules of 16 W, 4 NICs of 24 W, a switch of 4 ports with 12 pJ/b, and 4 devices.
    power = 8 * 16 + 4 * 24 + 4 * 800e9 * 12e-12 + 4 * 700
    assert row["iteration_energy_j"] == pytest.approx(power * row["iteration_s"], rel=1e-9)
    assert row["sample_energy_j"] == pytest.approx(row["iteration_energy_j"] / 32, rel=1e-9)
    energy = power * row["training_s"]
    assert row["training_energy_kwh"] == pytest.approx(energy / 3.6e6, rel=1e-9)
    assert row["training_co2_tonnes"] == pytest.approx(energy / 3.6e6 * 400e-6, rel=1e-9)


def test_energy_of_groups_that_are_timed_alone(run: Run, values: Path) -> None:
    """Each of 2 replicas divides its matrices among the 8 GPUs of a server."""
    line = ["train", "--model", "gpt2_medium", "--batch", "1", "--tensor-parallel", "8"]
    line += ["--fabric", SERVERS, "--contention", "none", "--collective", "all_reduce=ring"]
    row = answer(run, *line, "--components", values)
    bits = 0.0
    for member in row["groups"]["collectives"]:
        assert member["collective"] == "all_reduce"
        moved = 2 * (member["ranks"] - 1) * member["size_bytes"] * 8
        # Tensor groups send within servers, and the 8 groups of replicas between servers.
        groups, joules = (2, 5.6e-12) if member["group"] == "tensor" else (8, 78e-12)
        bits += member["count"] * groups * moved * joules
    assert row["bits_energy_j"] == pytest.approx(bits, rel=1e-6)
