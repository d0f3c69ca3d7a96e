"""Bills of materials: published sums, sums by hand, and values of users."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from opticoll import Fabric
from opticoll.outputs.bill import BillRow, BillTotalRow, bill, in_use
from support import Run, answer


def total(fabric: str, **options: Any) -> BillTotalRow:
    last = bill(Fabric(fabric), in_use().catalogue(), **options)[-1]
    assert isinstance(last, BillTotalRow)
    return last


def rows_of(fabric: str, **options: Any) -> dict[tuple[str, str | None], BillRow]:
    rows = bill(Fabric(fabric), in_use().catalogue(), **options)
    return {(row.component, row.place): row for row in rows if isinstance(row, BillRow)}


def test_147456_modules_take_2_36_megawatts() -> None:
    """achoenix/optical_io, docs/transceiver.md: 73,728 servers, 147,456 x 16 W, 2.36 MW."""
    star = "crossbar:ranks=73728,rate=800Gb/s"
    modules = [row for (name, _), row in rows_of(star).items() if name == "transceiver"]
    assert sum(row.count for row in modules) == 147_456
    assert sum(row.power_w or 0 for row in modules) == 2_359_296


@pytest.mark.parametrize(
    ("fabric", "switches", "saved"),
    [
        # Published: 100 switches with co-packaged optics save 100 x 3.05 kW = 305 kW.
        ("fat_tree:down=108x64,up=1x36,rate=800Gb/s", 100, 305_000),
        # Published: 216 switches, which join 10,368 GPUs, save 658 kW.
        ("fat_tree:down=72x144,up=1x72,rate=800Gb/s", 216, 658_800),
        # 72 rails, each a switch of 144 ports.
        ("nvl72:boxes=144,outside=crossbar/rate=800Gb/s", 72, 219_600),
    ],
)
def test_switches_with_co_packaged_optics_save_3050_watts_each(
    fabric: str, switches: int, saved: int
) -> None:
    """Quantum-X Q3450-LD: 3.95 kW; a switch of its size with pluggable modules: 7.0 kW."""
    rows = bill(Fabric(fabric), in_use().catalogue(), switch="q3450_cpo")
    parts = [row for row in rows if isinstance(row, BillRow)]
    assert sum(row.count for row in parts if row.component == "q3450_cpo") == switches
    pluggable = total(fabric, switch="q3450_pluggable").power_w
    packaged = total(fabric, switch="q3450_cpo").power_w
    assert pluggable - packaged == pytest.approx(saved, rel=1e-12)


@pytest.mark.parametrize(
    ("fabric", "power", "unknown"),
    [
        # 8 modules of 16 W; 4 NICs and 4 ports of 800 Gb/s x 62.25 and 17.83 pJ/b.
        ("crossbar:ranks=4,rate=800Gb/s", 128 + 4 * 49.8 + 4 * 14.264, []),
        # 16 transceivers of 40 Gb/s x 5.625 pJ/b = 0.225 W each.
        ("wdm_ring:ranks=4,wavelengths=2,rate=40Gb/s", 3.6, ["ring_drop"]),
        # 16 modules of 16 W and 2 switches of 8 ports of 0.8 W.
        ("circuit_switch:ranks=8,ports=2,planes=2,rate=800Gb/s", 268.8, []),
        # 192 modules of 16 W, 48 switches of 4 ports of 0.8 W.
        ("ocs_torus:dims=4x4x8,rate=100GB/s", 3225.6, []),
        # 16 GPUs of 700 W; of 400 Gb/s 32 modules of 9 W, 16 NICs of 24.9 W, and 16 ports x 17.83
        # pJ/b; 2 switches in servers with 8 ports of 3.6 Tb/s x 21.53 pJ/b.
        (
            "gpu_servers:model=dgx_h100,boxes=2",
            11_200 + 32 * 9 + 16 * 24.9 + 16 * 7.132 + 16 * 77.508,
            [],
        ),
        # 4 transceivers of 100 Gb/s x 52.5 pJ/b.
        ("passive_star:ranks=4,wavelengths=2,rate=100Gb/s", 4 * 5.25, []),
        # 4 transceivers of 1.7 W and 4 transmitters of 3.5 W.
        ("passive_star:ranks=4,wavelengths=2,transmitters=2,rate=10Gb/s", 6.8 + 14, []),
        # 16 transceivers of 100 Gb/s x 5.625 pJ/b; a card of 30 W for each of two links.
        ("wdm_graph:ranks=3,links=0-1+1-2,wavelengths=4,rate=100Gb/s", 9 + 60, []),
    ],
)
def test_power_is_the_sum_by_hand(fabric: str, power: float, unknown: list[str]) -> None:
    found = total(fabric)
    assert found.power_w == pytest.approx(power, rel=1e-12)
    assert sorted(found.unknown_power) == sorted(unknown)


def test_circuit_switches_take_less_than_3_percent_of_a_pod_like_tpu_v4() -> None:
    """Jouppi et al., ISCA 2023: below 3 % of power. 4,096 chips of 200 W are stated here."""
    rows = rows_of("ocs_torus:dims=16x16x16,rate=50GB/s,ports=136", rank_power=200)
    switches = rows["ocs", None]
    assert (switches.count, switches.ports) == (48, 136)
    # 48 x 136 x 0.8 W of 48 x 136 x 0.8 W + 6,144 x 9 W + 4,096 x 200 W.
    assert switches.power_w == pytest.approx(5222.4)
    assert switches.share == pytest.approx(5222.4 / (5222.4 + 55_296 + 819_200))
    assert switches.share is not None
    assert switches.share < 0.03


def test_failure_rates_and_prices_add_up() -> None:
    """8 modules of 1,481 FIT and about 1000 USD each, 4 NICs of 330 FIT."""
    found = total("crossbar:ranks=4,rate=800Gb/s")
    assert found.failures_fit == 8 * 1481 + 4 * 330
    assert found.unknown_failures == ["fibre_cable", "packet_switch"]
    assert found.price_usd == 8 * 1000
    assert found.unknown_price == ["fibre_cable", "nic", "packet_switch"]


PARTS = """
components:
  - {name: nic, power: 25 W, price: 1000 USD, source: ours}
  - {name: packet_switch, energy: 10 pJ/b, failure_rate: 500 FIT, source: ours}
  - {name: transceiver, energy: 10 pJ/b, source: ours}
  - {name: our_switch, ports: 64 ports, port_rate: 800 Gb/s, source: ours}
  - {name: ocs, reconfiguration_energy: 0.02 J, source: ours}
"""

PARTS_IN_TOML = """
components = [
  {name = "nic", power = "25 W", price = "1000 USD", source = "ours"},
  {name = "packet_switch", energy = "10 pJ/b", failure_rate = "500 FIT", source = "ours"},
  {name = "transceiver", energy = "10 pJ/b", source = "ours"},
  {name = "our_switch", ports = "64 ports", port_rate = "800 Gb/s", source = "ours"},
  {name = "ocs", reconfiguration_energy = "0.02 J", source = "ours"},
]
"""


@pytest.mark.parametrize(("name", "text"), [("p.yaml", PARTS), ("p.toml", PARTS_IN_TOML)])
def test_values_of_a_user_come_first(run: Run, tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    star = "crossbar:ranks=4,rate=800Gb/s"
    *rows, last = answer(run, "list", "bom", star, "--components", str(path))
    # 8 x 8 W, 4 x 25 W, 4 ports x 800 Gb/s x 10 pJ/b.
    assert {row["component"]: row["power_w"] for row in rows} == {
        "transceiver": 32,  # of each of two rows
        "fibre_cable": 0,
        "nic": 100,
        "packet_switch": 32,
    }
    assert (last["power_w"], last["unknown_power"]) == (196, [])
    # The listed modules have a price of 1000 USD and 1,481 FIT, the listed NIC has 330 FIT.
    assert last["price_usd"] == 4 * 1000 + 8 * 1000
    assert last["failures_fit"] == 500 + 8 * 1481 + 4 * 330
    listed = run("list", "components", "--components", str(path)).out
    assert "energy 10 pJ/b; given: ours" in listed
    assert "reconfiguration energy 0.02 J; given: ours" in listed
    assert "our_switch" in listed


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("components: [{name: nic, power: 25, source: a}]", "not a number with the unit W"),
        ("components: [{name: nic, power: 25 kW, source: a}]", "such as 16 W"),
        ("components: [{name: nic, power: 25 W}]", "the field `source` is missing"),
        ("components: [{name: nic, powr: 25 W, source: a}]", "no such field"),
        ("components: [{name: a b, power: 25 W, source: a}]", "is not a name"),
    ],
)
def test_mistakes_in_a_file_are_named(run: Run, tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "parts.yaml"
    path.write_text(text)
    done = run("list", "bom", "crossbar:ranks=4", "--components", str(path))
    assert done.code == 2
    assert problem in done.err
    assert "line 1" in done.err


def test_a_replay_takes_the_static_power_of_its_fabric(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "parts.yaml"
    path.write_text(PARTS)
    star = "crossbar:ranks=4,rate=800Gb/s"
    words = ("replay", "examples/hello.csv", "--fabric", star, "--components", str(path))
    row = answer(run, *words)
    # 196 W, as in `test_values_of_a_user_come_first`.
    assert (row["static_power_w"], row["power_unknown"]) == (196, [])
    assert row["static_energy_j"] == pytest.approx(196 * row["time_s"], rel=1e-12)
    formula = answer(run, "replay", "examples/hello.csv")
    assert formula["static_power_w"] is formula["static_energy_j"] is None


@pytest.mark.parametrize(
    ("component", "problem"),
    [
        (
            "name: transciever, power: 1 W",
            "components.0.name: unknown component `transciever`; did you mean `transceiver`?",
        ),
        ("name: lamp, power: 25 W", "unknown component `lamp`; see `opticoll list components`"),
        (
            "name: lamp, ports: 4 ports",
            "a switch of your own for --switch states ports and port_rate",
        ),
    ],
)
def test_a_component_that_is_not_listed_is_refused(
    run: Run, tmp_path: Path, component: str, problem: str
) -> None:
    path = tmp_path / "parts.yaml"
    path.write_text(f"components: [{{{component}, source: ours}}]")
    done = run("list", "bom", "crossbar:ranks=4", "--components", str(path))
    assert done.code == 2
    assert problem in done.err


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("source = 'ours'\npower = 25", "components.1.power: `25` is not a number with the unit W"),
        ("source = 'ours'\npower = '25 kW'", "components.1.power: `25 kW` is not a number with"),
        ("powr = '25 W'", "components.1.powr: there is no such field; did you mean `power`?"),
        ("source = 2026-05-21", "components.1.source: `2026-05-21` is not text"),
        ("power = '25 W'", "components.1.source: the field `source` is missing"),
        ("power = 25 W", "not valid TOML: Expected newline or end of document after a statement"),
        ("a." * 70 + "a = 1", "nested more than 64 deep"),
        ("power = " + "[" * 5000, "nested more than 64 deep"),
        ('power = "\\u202e"', "holds characters that do not print"),
    ],
)
def test_mistakes_in_a_toml_file_are_named(
    run: Run, tmp_path: Path, text: str, problem: str
) -> None:
    path = tmp_path / "parts.toml"
    first = "[[components]]\nname = 'ocs'\nsource = 'ours'\n"
    path.write_text(f"{first}[[components]]\nname = 'nic'\n{text}\n")
    done = run("list", "bom", "crossbar:ranks=4", "--components", str(path))
    assert done.code == 2
    assert "parts.toml" in done.err
    assert problem in " ".join(done.err.split())


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["bom"], "bom needs a fabric"),
        (["components", "crossbar:ranks=4"], "fabric belongs to"),
        (["components", "--rank-power", "20W"], "rank-power belongs to"),
        (["bom", "crossbar:ranks=200", "--switch", "q3450_cpo"], "has 144 ports of 800 Gb/s"),
        (["bom", "crossbar:ranks=2", "--switch", "nic"], "no number of ports"),
        (["bom", "crossbar:ranks=2", "--switch", "q345_cpo"], "q3450_cpo"),
        (["bom", "dgx_h100", "--rank-power", "700W"], "GPUs are parts of this fabric"),
        (["bom", "crossbar:ranks=2", "--rank-power", "20"], "the unit W"),
    ],
)
def test_options_that_do_not_apply_are_refused(
    run: Run, arguments: list[str], problem: str
) -> None:
    done = run("list", *arguments)
    assert done.code == 2
    assert problem in done.err
