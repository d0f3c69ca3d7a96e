"""Fabrics from hwloc's XML: rates that the file states, optima by hand, and bad files."""

from __future__ import annotations

import os
from fractions import Fraction
from pathlib import Path

import pytest

import opticoll
from opticoll.errors import ConfigError, ReadingNote
from opticoll.inputs.fabric_files import parse_fabric, read_graph
from support import Run, answer

SEED = Path(__file__).parent.parent / "fuzz/seeds/hwloc/server.xml"
"""GPUs of addresses 1A (8 GB/s) and 19 (4 GB/s) behind a PCI switch (16 GB/s) at processor 0,
joined by 50 GB/s of NVLink. At processor 1: a GPU (32 GB/s), and a NIC with one active port."""

SAMPLES = os.environ.get("OPTICOLL_HWLOC_TOPOLOGY")
"""A folder of hwloc's test topologies, `tests/hwloc/xml` of its repository."""


def read(path: object, fields: str) -> opticoll.Fabric:
    return parse_fabric(f"{path}:{fields}")


def rates(fabric: opticoll.Fabric) -> dict[str, Fraction]:
    """Returns the rate of each link in GB/s."""
    in_gigabytes = [Fraction(rate, 8 * 10**9) for rate in fabric.link_rates or []]
    return dict(zip(fabric.link_names, in_gigabytes, strict=True))


def test_a_server_becomes_ranks_and_switches_with_the_rates_of_the_file() -> None:
    # The ports of the PCI switch are no vertices; each link has the rate of its lower end.
    # Ranks are in the order of the addresses 19, 1A, 81.
    names = "gpu%200+gpu%201+gpu%202+cpu%200+cpu%201+pci%200000%3A17%3A00.0"
    links = "3-4@80Gb/s+5-3@128Gb/s+1-5@64Gb/s+0-5@32Gb/s+2-4@256Gb/s+1-0@400Gb/s"
    expected = opticoll.Fabric(f"custom:ranks=3,switches=3,links={links},names={names}")
    assert read(SEED, "processor_rate=10GB/s") == expected


def test_the_rate_between_processors_is_stated_or_nccls_with_a_note() -> None:
    # NCCL's rate between processors of Intel's Skylake (family 6, model 85) is 10 GB/s.
    with pytest.warns(ReadingNote, match=r"NCCL's, 10 GB/s; server\.xml:processor_rate="):
        assert rates(parse_fabric(str(SEED)))["cpu 0 -> cpu 1"] == 10
    assert rates(read(SEED, "processor_rate=20GB/s"))["cpu 1 -> cpu 0"] == 20


def test_the_optimum_is_that_by_hand(run: Run) -> None:
    # The block of GPU 2 enters processor 0, and two blocks leave it, at 5 GB/s. Were this faster,
    # the two blocks of GPUs 0 and 1 would need the 12 GB/s of their PCI links.
    for stated, optimum in (("5GB/s", Fraction(2, 5)), ("100GB/s", Fraction(2, 12))):
        fabric = f"{SEED}:processor_rate={stated}"
        row = answer(run, "bound", "all_gather", "--fabric", fabric, "--size", "1GB")
        assert Fraction(row["optimum"]) == optimum


def test_copies_of_a_server_are_joined_by_their_active_ports() -> None:
    fabric = read(SEED, "boxes=2,nic_rate=100Gb/s,processor_rate=10GB/s")
    assert fabric.ranks == 6
    # The second port of the NIC is not active.
    assert rates(fabric)["nic 0000:82:00.0 of box 1 -> network"] == Fraction(100, 8)


def machine(inside: str, matrix: str = "", info: str = "") -> str:
    package = f'<object type="Package" gp_index="1">{info}{inside}</object>'
    return f'<topology version="3.0">{package}{matrix}</topology>'


def gpu(number: int, speed: str = "16.0", kind: str = "0302") -> str:
    return (
        f'<object type="PCIDev" gp_index="1{number}" pci_busid="0000:0{number}:00.0" '
        f'pci_type="{kind} [10de:20b0] [10de:134f] a1 00" pci_link_speed="{speed}">'
        f'<object type="OSDev" gp_index="2{number}" name="nvml{number}"/></object>'
    )


def bandwidths(objects: str, *rows: str, name: str = "NVLinkBandwidth") -> str:
    return (
        f'<distances2hetero nbobjs="0" kind="25" name="{name}">'
        f"<indexes>{objects}</indexes><u64values>{' '.join(rows)}</u64values></distances2hetero>"
    )


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "server.xml"
    path.write_text(text)
    return path


def test_matrices_join_gpus_to_one_nvswitch_and_to_their_processor(tmp_path: Path) -> None:
    switches = "".join(gpu(number, kind="0680") for number in (3, 4))
    switches = switches.replace(' pci_busid="', ' subtype="NVSwitch" pci_busid="')
    switches = switches.replace("nvml", "none")
    matrix = bandwidths(
        "OSDev:21 OSDev:22 PCIDev:13 PCIDev:14 Package:1",
        "9 0 25000 25000 30000",
        "0 9 25000 50000 0",
        *("25000 25000 9 0 0", "25000 50000 0 9 0", "30000 0 0 0 9"),
    )
    path = written(tmp_path, machine(gpu(1) + gpu(2) + switches, matrix))
    assert rates(parse_fabric(str(path))) == {
        # PCI and NVLink of GPU 0 to its processor are two cables.
        "gpu 0 -> cpu 0 (cable 0)": 16,
        "cpu 0 -> gpu 0 (cable 0)": 16,
        "gpu 1 -> cpu 0": 16,
        "cpu 0 -> gpu 1": 16,
        "gpu 0 -> nvswitch": 50,
        "nvswitch -> gpu 0": 50,
        "gpu 0 -> cpu 0 (cable 1)": 30,
        "cpu 0 -> gpu 0 (cable 1)": 30,
        "gpu 1 -> nvswitch": 75,
        "nvswitch -> gpu 1": 75,
    }


def test_xgmi_is_read_and_other_matrices_are_named(tmp_path: Path) -> None:
    pair, values = "OSDev:21 OSDev:22", ("0 7000", "7000 0")
    xgmi = bandwidths(pair, *values, name="XGMIBandwidth")
    path = written(tmp_path, machine(gpu(1) + gpu(2), xgmi))
    assert rates(parse_fabric(str(path)))["gpu 0 -> gpu 1"] == 7
    written(tmp_path, machine(gpu(1) + gpu(2), xgmi.replace("XGMI", "XeLink")))
    with pytest.warns(ReadingNote, match="XeLinkBandwidth is not read"):
        assert "gpu 0 -> gpu 1" not in parse_fabric(str(path)).link_names


PAIR = gpu(1) + gpu(2)
TWO = machine(gpu(1)).replace("</topology>", "") + machine(gpu(2)).partition(">")[2].replace(
    'gp_index="1"', 'gp_index="2"'
)
BAD = {
    "no GPU": ("", machine(gpu(1, kind="0200").replace("nvml", "eth")), "no PCI device"),
    "unknown speed": ("", machine(gpu(1, "0.000000")), "line 1 | give `pci_rate`"),
    "speed in words": ("", machine(gpu(1, "16 GT/s")), "line 1 | `16 GT/s` is not a number"),
    "unknown processors": ("", TWO, "line 1 | give `processor_rate`"),
    "no rate of NICs": ("boxes=2", machine(PAIR), "boxes | give `nic_rate`"),
    "no NIC": ("boxes=2,nic_rate=1Gb/s", machine(PAIR), "boxes | no NIC"),
    "not a rate": ("pci_rate=12", machine(PAIR), "pci_rate | give the unit"),
    "no place": ("", TWO.replace("</topology>", f"{gpu(3)}</topology>"), "to which processor"),
    "missing values": (
        "",
        machine(PAIR, bandwidths("OSDev:21 OSDev:22", "0 1", "1")),
        "line 1 | 2 x 2 numbers",
    ),
    "missing object": ("", machine(PAIR, bandwidths("OSDev:29", "0")), "no object OSDev"),
    "another processor": (
        "processor_rate=9GB/s",
        TWO.replace("</topology>", bandwidths("OSDev:21 Package:2", "0 1 1 0") + "</topology>"),
        "another processor than its own",
    ),
    "parts of a GPU": (
        "",
        machine(
            gpu(1).replace("><", '><object type="OSDev" gp_index="29"/><', 1),
            bandwidths("OSDev:21 OSDev:29", "0 1 1 0"),
        ),
        "parts of one GPU",
    ),
    "one index twice": ("", machine(gpu(1) + gpu(1)), "two objects PCIDev of gp_index 11"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_a_file_leaves_open_is_refused_with_its_place(tmp_path: Path, name: str) -> None:
    fields, text, words = BAD[name]
    path = written(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        parse_fabric(f"{path}:{fields}" if fields else str(path))
    for word in words.split(" | "):
        assert word in str(caught.value)


@pytest.mark.skipif(SAMPLES is None, reason="OPTICOLL_HWLOC_TOPOLOGY names no folder")
@pytest.mark.filterwarnings("ignore::opticoll.errors.ReadingNote")
def test_topologies_of_hwloc_are_read_if_they_have_gpus() -> None:
    # By hwloc's test files: an NVIDIA DGX-2 has 16 GPUs with 6 NVLinks of 25 GB/s each, and a
    # server of POWER8 has 4 GPUs, in pairs with 2 NVLinks of 20 GB/s, and as many to a processor.
    folder = Path(str(SAMPLES))
    dgx2 = rates(read_graph(folder / "nvidiaDGX2.xml"))
    assert [dgx2[f"gpu {rank} -> nvswitch"] for rank in range(16)] == 16 * [6 * 25]
    power8 = rates(read_graph(folder / "power8gpudistances.xml"))
    assert power8["gpu 0 -> gpu 1"] == power8["gpu 3 -> cpu 1 (cable 1)"] == 2 * 20
    without = []
    for path in folder.glob("*.xml"):
        try:
            read_graph(path, processor_rate="16GB/s", pci_rate="8GB/s")
        except ConfigError as error:
            without.append(str(error))
    assert all("no PCI device that is a GPU" in error for error in without)
    assert len(list(folder.glob("*.xml"))) - len(without) == 5
