"""Fabrics from NCCL's topology XML: rates by NCCL's table, optima by hand, and bad files.

The expected rates are those of NCCL's and RCCL's `src/graph/topo.h`: a lane of PCI at 8 GT/s
carries 0.75 GB/s, an NVLink of an A100 20 GB/s, an xGMI link of an MI100 24 GB/s, of an MI200
36 GB/s, and processors of Intel's Skylake exchange 10 GB/s.
"""

from __future__ import annotations

import os
from fractions import Fraction
from pathlib import Path

import pytest

import opticoll
from opticoll.errors import ConfigError, ReadingNote
from opticoll.inputs.fabric_files import parse_fabric, read_graph
from support import Run, answer, proved

SEED = Path(__file__).parent.parent / "fuzz/seeds/nccl_topology/server.xml"
OTHERS = os.environ.get("OPTICOLL_NCCL_TOPOLOGY")
"""A folder of RCCL's test topologies."""

INTEL = 'arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="85"'
AMD = 'arch="x86_64" vendor="AuthenticAMD" familyid="143" modelid="49"'
GEN4 = 'link_speed="16.0 GT/s PCIe" link_width="16"'


def gpu(rank: int, inside: str, kind: str = 'sm="80"') -> str:
    return (
        f'<pci busid="0000:{rank:02x}:00.0" {GEN4}>'
        f'<gpu dev="{rank}" rank="{rank}" {kind}>{inside}</gpu></pci>'
    )


def server(inside: str, more: str = "") -> str:
    """Returns a server of one processor with a PCI switch."""
    switch = f'<pci busid="0000:f0:00.0" class="0x060400" {GEN4}>{inside}</pci>'
    return f'<system version="1"><cpu numaid="0" {AMD}>{switch}</cpu>{more}</system>'


NVLINK = '<nvlink target="ffff:ff:ff.f" count="12" tclass="0x068000"/>'
NIC = (
    f'<pci busid="0000:{{}}:00.0" {GEN4}><nic><net dev="0" speed="200000" latency="3"/></nic></pci>'
)
NVSWITCHED = server("".join(gpu(rank, NVLINK) for rank in range(4)) + NIC.format("e0"))
"""Four GPUs with 12 NVLinks each to a switch, and one NIC of 25 GB/s behind 24 GB/s of PCI."""


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "server.xml"
    path.write_text(text)
    return path


def optimum(run: Run, fabric: Path) -> Fraction:
    return Fraction(
        answer(run, "bound", "all_gather", "--fabric", fabric, "--size", "1GB")["optimum"]
    )


def test_a_server_becomes_ranks_and_switches_with_the_rates_of_nccl() -> None:
    # GPU 0 is behind a PCI switch, GPU 1 directly at the second processor; two NVLinks join them.
    # The link of GPU 1 has neither speed nor width, hence those of 16 lanes of 8 GT/s.
    names = "gpu%200+gpu%201+cpu%200+cpu%201+pci%200000%3A17%3A00.0"
    links = "2-3@80Gb/s+4-2@96Gb/s+0-4@96Gb/s+1-3@96Gb/s+0-1@320Gb/s"
    expected = opticoll.Fabric(f"custom:ranks=2,switches=3,links={links},names={names}")
    assert parse_fabric(str(SEED)) == expected


def test_optima_are_those_by_hand(run: Run, tmp_path: Path) -> None:
    # A block reaches the other GPU over two NVLinks, 40 GB/s, and over PCI, where the processors'
    # 10 GB/s are the least.
    assert optimum(run, SEED) == Fraction(1, 40 + 10)
    # Each of 4 GPUs takes 3 blocks over 12 NVLinks of 20 GB/s and over PCI at 16 x 1.5 GB/s.
    assert optimum(run, written(tmp_path, NVSWITCHED)) == Fraction(3, 12 * 20 + 24)


def test_copies_of_a_server_are_joined_by_their_nics(run: Run, tmp_path: Path) -> None:
    written(tmp_path, NVSWITCHED)
    boxes = tmp_path / "boxes.yaml"
    boxes.write_text("family: custom\ngraph: server.xml\nboxes: 3\n")
    fabric = parse_fabric(str(boxes))
    assert fabric.ranks == 12
    # The blocks of 8 GPUs come in over one NIC: 25 GB/s, behind 24 GB/s of PCI.
    assert optimum(run, boxes) == Fraction(8, 24)
    cable = fabric.link_names.index("nic 0000:e0:00.0 of box 2 -> network")
    assert (fabric.link_rates or [])[cable] == 200 * 10**9
    # Two cables lead from NIC to NIC, each with half of the 3 us.
    assert "@1.5us" in fabric.spec


def test_servers_of_one_file_share_the_switches_of_nvlink_or_else_the_network(
    tmp_path: Path,
) -> None:
    def two(inside: str) -> str:
        one = server(gpu(0, inside) + NIC.format("e0")).replace("<cpu", '<cpu host_hash="0x1"')
        other = one.replace("0x1", "0x2").replace('rank="0"', 'rank="1"')
        return one.replace("</system>", other.removeprefix('<system version="1">'))

    joined = parse_fabric(str(written(tmp_path, two(NVLINK))))
    assert "gpu 1 -> nvswitch" in joined.link_names
    assert not any("network" in name for name in joined.link_names)
    apart = parse_fabric(str(written(tmp_path, two(""))))
    assert "nic 0000:e0:00.0 of host 1 -> network" in apart.link_names


def test_a_switch_of_broadcom_that_shows_two_levels_is_one(tmp_path: Path) -> None:
    device = 'vendor="0x1000" device="0xc010" subsystem_vendor="0x1000" subsystem_device="0xa096"'
    inner = f'<pci busid="0000:f1:00.0" class="0x060400" {device} {GEN4}>{gpu(1, "")}</pci>'
    text = server(gpu(0, "") + inner)
    two_levels = parse_fabric(str(written(tmp_path, text)))
    assert "pci 0000:f1:00.0 -> pci 0000:f0:00.0" in two_levels.link_names
    same = text.replace('f0:00.0" class', f'f0:00.0" {device} class')
    one_level = parse_fabric(str(written(tmp_path, same)))
    assert "gpu 1 -> pci 0000:f0:00.0" in one_level.link_names
    assert not any("f1:00.0" in name for name in one_level.link_names)


@pytest.mark.parametrize(
    ("kind", "rate"),
    [
        ('sm="60"', 18),
        ('sm="70"', 20),
        ('sm="86"', 12),
        ('sm="89"', 20),
        ('sm="90"', Fraction("20.6")),
        ('sm="100"', Fraction("40.1")),
        ('gcn="906"', 24),
        ('gcn="gfx908"', 24),
        ('gcn="910"', 36),
        ('gcn="gfx90a"', 36),
        ('gcn="gfx942"', 48),
    ],
)
def test_links_between_gpus_have_the_rate_of_their_generation(
    tmp_path: Path, kind: str, rate: Fraction
) -> None:
    tag = "xgmi" if "gcn" in kind else "nvlink"

    def to(rank: int) -> str:
        return f'<{tag} target="0000:{rank:02x}:00.0" count="3" tclass="0x030200"/>'

    text = server(gpu(0, to(1), kind) + gpu(1, to(0), kind))
    fabric = parse_fabric(str(written(tmp_path, text)))
    link = fabric.link_names.index("gpu 0 -> gpu 1")
    assert (fabric.link_rates or [])[link] == 3 * rate * 8 * 10**9


@pytest.mark.parametrize(
    ("cpu", "rate"),
    [
        (AMD, 16),
        (INTEL, 10),
        (INTEL.replace("85", "79"), 6),
        (INTEL.replace("85", "143"), 22),
        (INTEL.replace("85", "207"), 40),
        ('arch="ppc64"', 32),
        ('arch="arm64"', 6),
        ('arch="x86_64" vendor="CentaurHauls" familyid="7" modelid="91"', 9),
        ('arch="x86_64" vendor="  Shanghai  " familyid="7" modelid="59"', 6),
    ],
)
def test_processors_have_the_rate_of_their_model(tmp_path: Path, cpu: str, rate: int) -> None:
    text = "".join(f'<cpu numaid="{n}" {cpu}>{gpu(n, "")}</cpu>' for n in (0, 1))
    fabric = parse_fabric(str(written(tmp_path, f"<system>{text}</system>")))
    link = fabric.link_names.index("cpu 0 -> cpu 1")
    assert (fabric.link_rates or [])[link] == rate * 8 * 10**9


PAIR = server(gpu(0, "") + gpu(1, ""))


def rates(fabric: opticoll.Fabric) -> dict[str, Fraction]:
    """Returns the rate of each link in GB/s."""
    in_gigabytes = [Fraction(rate, 8 * 10**9) for rate in fabric.link_rates or []]
    return dict(zip(fabric.link_names, in_gigabytes, strict=True))


def test_processors_of_an_unknown_maker_have_the_rate_that_is_stated(tmp_path: Path) -> None:
    maker = 'arch="x86_64" vendor="HygonGenuine"'
    text = "".join(f'<cpu numaid="{n}" {maker}>{gpu(n, "")}</cpu>' for n in (0, 1))
    path = written(tmp_path, f"<system>{text}</system>")
    # NCCL's value for "unlimited" (LOC_BW).
    with pytest.warns(ReadingNote, match=r"`HygonGenuine`; server\.xml:processor_rate="):
        assert rates(parse_fabric(str(path)))["cpu 0 -> cpu 1"] == 5000
    assert rates(parse_fabric(f"{path}:processor_rate=16GB/s"))["cpu 1 -> cpu 0"] == 16
    with pytest.raises(ConfigError, match="processor_rate"):
        parse_fabric(f"{path}:processor_rate=16")


def test_a_gpu_without_nvlinks_among_others_uses_pci(tmp_path: Path) -> None:
    text = server(gpu(0, NVLINK.replace("12", "0")) + gpu(1, NVLINK) + gpu(2, NVLINK))
    found = rates(parse_fabric(str(written(tmp_path, text))))
    at_switch = {name for name in found if "nvswitch" in name}
    assert at_switch == {
        f"{a} -> {b}"
        for gpu in ("gpu 1", "gpu 2")
        for a, b in ((gpu, "nvswitch"), ("nvswitch", gpu))
    }
    assert found["gpu 0 -> pci 0000:f0:00.0"] == 24


def test_partitions_of_a_gpu_share_its_links(tmp_path: Path) -> None:
    """NCCL's `ncclTopoAddGpuSub`, `ncclTopoAddNvLinks` and `ncclTopoAddC2c` of June 2026."""
    c2c = '<c2c bw="50000" count="4"/>'
    link = '<nvlink target="ffff:ff:ff.f" count="10" tclass="0x068000"/>'

    def part(rank: int, number: int) -> str:
        return f'<gpu dev="0" rank="{rank}" sm="100" mlopart="{number}">{link}{c2c}</gpu>'

    whole = f'<pci busid="0000:00:00.0" {GEN4}>{part(0, 0)}{part(1, 1)}</pci>'
    text = server(whole + gpu(2, link + c2c, 'sm="100"'))
    found = rates(parse_fabric(str(written(tmp_path, text))))
    assert found["gpu 0 -> nvswitch"] == found["gpu 1 -> nvswitch"] == 10 * Fraction("40.1") / 2
    assert found["gpu 2 -> nvswitch"] == 10 * Fraction("40.1")
    assert found["gpu 0 -> gpu 1"] == found["gpu 1 -> gpu 0"] == 2618
    assert found["gpu 0 -> pci 0000:f0:00.0"] == 24
    # One bridge has the rate of the GPU's C2C links, so the partitions share them.
    bridge = "c2c 0000:00:00.0"
    assert found[f"gpu 0 -> {bridge}"] == found[f"gpu 1 -> {bridge}"] == 200
    assert found[f"{bridge} -> cpu 0"] == found["gpu 2 -> cpu 0"] == 200


def test_several_ranks_on_a_gpu_share_its_device(run: Run, tmp_path: Path) -> None:
    two = gpu(0, NVLINK).replace("</gpu>", '</gpu><gpu dev="0" rank="1" sm="80"/>')
    path = written(tmp_path, server(two + gpu(2, NVLINK)))
    found = rates(parse_fabric(str(path)))
    assert found["device 0000:00:00.0 -> nvswitch"] == 12 * 20
    assert found["gpu 0 -> device 0000:00:00.0"] == found["gpu 1 -> device 0000:00:00.0"] == 5000
    # Two blocks leave the shared GPU, over 240 GB/s of NVLink and 24 GB/s of PCI.
    assert optimum(run, path) == 2 / Fraction(264)


BAD: dict[str, tuple[str, str]] = {
    "not valid XML": ("<system>", "not valid XML"),
    "another XML": ("<algo/>", "MSCCL XML, not a fabric | opticoll verify"),
    "no ranks": (PAIR.replace("rank=", "device="), "no GPU with a rank"),
    "one rank twice": (PAIR.replace('rank="1"', 'rank="0"'), "line 1 | two GPUs of rank 0"),
    "one bus twice": (PAIR.replace('"0000:01', '"0000:00'), "line 1 | two devices at bus"),
    "no link speed": (PAIR.replace("link_speed", "speed"), "line 1 | no `link_speed`"),
    "unknown link speed": (PAIR.replace("16.0 GT", "17 GT"), "`17 GT/s PCIe` | 16.0 GT/s"),
    "no link width": (PAIR.replace('link_width="16"', 'link_width="x"'), "link_width `x`"),
    "no processor": ("<system/>", "no GPU with a rank"),
    "NVLink before Pascal": (server(gpu(0, NVLINK, 'sm="52"')), "capability 52"),
    "NVLink without a generation": (server(gpu(0, NVLINK, "")), "<gpu> has no `sm`"),
    "unknown architecture": (
        server(gpu(0, NVLINK.replace("nvlink", "xgmi"), 'gcn="gfx999"')),
        "`gfx999` | gfx90a",
    ),
    "unknown target": (server(gpu(0, NVLINK.replace("0x06", "0x07"))), "tclass `0x078000`"),
    "many processors": (
        PAIR.replace("</system>", 300 * f'<cpu numaid="1" {AMD}/>' + "</system>"),
        "line 1 | at most 256 processors",
    ),
    "one processor twice": (
        PAIR.replace("</system>", f'<cpu numaid="0" {AMD}/></system>'),
        "line 1 | two processors 0",
    ),
    "document type": ("<!DOCTYPE system [<!ELEMENT a ANY>]>" + PAIR, "document type"),
    "entity bomb": (
        '<!DOCTYPE x [<!ENTITY a "aa"><!ENTITY b "&a;&a;">]><system>&b;</system>',
        "document type",
    ),
    "external entity": (
        '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><system>&a;</system>',
        "document type",
    ),
    "deep nesting": ("<system>" * 10**5, "line 1 | more than 64 deep"),
    "long attribute": (f'<system version="{"1" * 5000}"/>', "longer than 4096"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_a_file_leaves_open_is_refused_with_its_place(tmp_path: Path, name: str) -> None:
    text, words = BAD[name]
    path = written(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        read_graph(path)
    for word in (str(path), *words.split(" | ")):
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ("boxes: 0\n", ("line 3", "boxes", "from 1 to 1024")),
        ("boxes: many\n", ("line 3", "`many`")),
        ("servers: 2\n", ("line 3", "no such option", "known are boxes")),
    ],
)
def test_wrong_fields_beside_a_graph_are_refused(
    run: Run, tmp_path: Path, fields: str, words: tuple[str, ...]
) -> None:
    written(tmp_path, PAIR)
    path = tmp_path / "boxes.yaml"
    path.write_text(f"family: custom\ngraph: server.xml\n{fields}")
    finished = run("plan", "all_gather", "--fabric", path)
    assert finished.code == 2
    for word in ("boxes.yaml", *words):
        assert word in finished.err


BY_HAND = {
    # Two xGMI links of 24 GB/s and 16 lanes of PCI at 8 GT/s lead into a GPU.
    "topo_4p1h.xml": Fraction(3, 2 * 24 + 12),
    # Three xGMI links and PCI at 16 GT/s; six; two.
    "topo_4p3l_2h.xml": Fraction(7, 3 * 24 + 24),
    "topo_8p6l_4nic.xml": Fraction(7, 6 * 24 + 24),
    "topo_8p_rome_n4.xml": Fraction(7, 2 * 24 + 24),
    # PCI alone, at 8 GT/s.
    "topo_8p_pcie.xml": Fraction(7, 12),
    # GPU 3: xGMI 4 + 1 + 1 links of 36 GB/s, and 8 lanes of PCI at 16 GT/s.
    "topo_8p1h.xml": Fraction(7, 6 * 36 + 12),
    # GPUs 0 and 1 need 14 blocks: six xGMI links lead to them from others, and PCI of both.
    "topo_16p1h.xml": Fraction(14, 6 * 36 + 2 * 12),
    # Four GPUs behind two processors need 4 blocks over their two PCI switches.
    "topo_collnet_n4.xml": Fraction(4, 2 * 24),
}


@pytest.mark.skipif(OTHERS is None, reason="OPTICOLL_NCCL_TOPOLOGY names no folder")
@pytest.mark.parametrize("name", BY_HAND)
def test_topologies_of_rccl_have_the_optima_by_hand(run: Run, tmp_path: Path, name: str) -> None:
    path = Path(OTHERS or "") / name
    assert optimum(run, path) == BY_HAND[name]
    for collective in ("all_gather", "all_reduce", "all_to_all"):
        plan = opticoll.plan(collective, parse_fabric(str(path)), size="1MiB")
        proved(plan)
        assert plan.simulate("1MiB").time_ps > 0
        file = tmp_path / "server.plan"
        file.write_text(plan.to_text())
        for command in ("verify", "simulate", "show"):
            assert run(command, file).code == 0
