"""Networks of ASTRA-sim, ns-3, htsim and nvidia-smi: links and optima by hand, and bad files."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

import opticoll
from opticoll.errors import ConfigError, ReadingNote
from opticoll.inputs.fabric_files import parse_fabric
from support import Run, answer

SEEDS = Path(__file__).parent.parent / "fuzz/seeds"


def cables(fabric: opticoll.Fabric) -> set[str]:
    """Returns the cables of a custom fabric as in its specification."""
    return set(str(fabric.option("links")).split("+"))


def optimum(run: Run, fabric: str | Path) -> Fraction:
    """Returns the time of an all_gather of 1 GB per rank that no plan can beat, in seconds."""
    return Fraction(answer(run, "bound", "all_gather", "--fabric", fabric)["optimum"])


def with_lines(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n")
    return path


# ASTRA-sim counts 2^30 bytes/s: 50.0 are 429,496,729,600 b/s, 12.5 are 107,374,182,400 b/s.


def test_dimensions_of_astra_sim_are_rings_and_switches() -> None:
    path = SEEDS / "astra_network/ring_of_switches.yml"
    with pytest.warns(ReadingNote, match=r"`bandwidth` counts 2\^30 bytes per second"):
        fabric = parse_fabric(str(path))
    ring, switch = "@429496729600b/s@500ns", "@107374182400b/s@936.25ns"
    expected = opticoll.Fabric(
        "custom:ranks=6,switches=3,links="
        + "+".join(f"{first + k}-{first + (k + 1) % 3}{ring}" for first in (0, 3) for k in range(3))
        + "+"
        + "+".join(f"{npu + 3 * row}-{6 + npu}{switch}" for npu in range(3) for row in range(2))
    )
    assert fabric == expected


@pytest.mark.parametrize(
    ("kind", "seconds"),
    [
        # Every NPU receives 7 GB: over two links of a ring, one of a switch, seven of a clique.
        ("Ring", Fraction(7 * 10**9, 2 * 50 * 2**30)),
        ("Switch", Fraction(7 * 10**9, 50 * 2**30)),
        ("FullyConnected", Fraction(10**9, 50 * 2**30)),
    ],
)
@pytest.mark.parametrize("ending", [".yml", ".json"])
def test_a_dimension_of_astra_sim_has_the_optimum_by_hand(
    run: Run, tmp_path: Path, kind: str, seconds: Fraction, ending: str
) -> None:
    fields = {"topology": f'["{kind}"]', "npus_count": "[8]", "bandwidth": "[50.0]"}
    lines = [f'"{name}": {value},' for name, value in fields.items()]
    path = with_lines(tmp_path / f"one{ending}", "{", *lines, '"latency": [500.0]', "}")
    assert optimum(run, path) == seconds


def test_a_topology_of_simai_has_the_links_of_its_lines() -> None:
    with pytest.warns(ReadingNote, match="the error rates of 1 link"):
        fabric = parse_fabric(str(SEEDS / "ns3_topology/two_servers.topo"))
    inside = "@2.88Tb/s@25ns"
    links = [f"0-4{inside}", f"1-4{inside}", f"2-5{inside}", f"3-5{inside}"]
    links += ["0-6@400Gb/s@500ns", "2-6@400Gb/s@500ns", "3-6@400Gb/s@1us"]
    spec = f"custom:ranks=4,switches=3,links={'+'.join(links)},names=0+1+2+3+4+5+6"
    assert fabric == opticoll.Fabric(spec)


def test_a_topology_of_ns3_needs_no_ending_and_no_order(run: Run, tmp_path: Path) -> None:
    lines = ["4 1 3", "1", "0 1 8Gbps 1us 0", "3 1 8Gbps 1us 0", "1 2 4Gbps 0.5us 0"]
    path = with_lines(tmp_path / "Star", *lines)
    fabric = parse_fabric(str(path))
    assert (fabric.ranks, fabric.vertex_names) == (3, ["0", "2", "3", "1"])
    # Rank 2 receives 2 GB at 0.5 GB/s.
    assert optimum(run, path) == 4


def test_a_fat_tree_of_htsim_has_the_links_of_its_source() -> None:
    fabric = parse_fabric(str(SEEDS / "htsim_topology/three_tiers.topo"))
    # A link to a switch has the latency of the switch, too. Pods have two ToRs and one aggregation
    # switch; each aggregation switch has one bundle of two cables to the only core switch.
    links = []
    for node in range(8):
        tor = 8 + node // 2
        links += [f"{node}>{tor}@400Gb/s@1300ns", f"{tor}>{node}@400Gb/s@1us"]
    for tor in range(4):
        agg = 12 + tor // 2
        links += [f"{8 + tor}>{agg}@200Gb/s@500ns", f"{agg}>{8 + tor}@200Gb/s@800ns"]
    for agg in (12, 13):
        links += 2 * [f"{agg}>14@100Gb/s@2100ns", f"14>{agg}@100Gb/s@2us"]
    names = [*range(8), *(f"tor%20{tor}" for tor in range(4)), "agg%200", "agg%201", "core%200"]
    spec = f"custom:ranks=8,switches=7,links={'+'.join(links)},names={'+'.join(map(str, names))}"
    assert fabric == opticoll.Fabric(spec)


def test_a_leaf_and_spine_of_htsim_has_the_optimum_by_hand(run: Run, tmp_path: Path) -> None:
    head = ["Nodes 6", "Tiers 2", "Podsize 6"]
    leaf = ["Tier 0", "Downlink_speed_Gbps 80", "Radix_Down 3", "Radix_Up 1"]
    spine = ["Tier 1", "Downlink_speed_Gbps 8", "Radix_Down 2", "Downlink_Latency_ns 1000"]
    path = with_lines(tmp_path / "a.topo", *head, *leaf, "Downlink_Latency_ns 1000", *spine)
    # Three blocks cross each link between leaf and spine, at 1 GB/s.
    assert optimum(run, path) == 3


def matrix(*rows: str) -> list[str]:
    """Returns an output of nvidia-smi with the given cells."""
    names = [f"GPU{number}" for number in range(len(rows))]
    head = "\t".join(["", *names, "CPU Affinity", "NUMA Affinity"])
    cells = [
        "\t".join([name, *row.split(), "0-7", "0"]) for name, row in zip(names, rows, strict=True)
    ]
    return [head, *cells, "", "Legend:", "", "  X    = Self"]


def test_nvlinks_of_all_gpus_are_links_or_one_switch(run: Run, tmp_path: Path) -> None:
    four = matrix("X NV6 NV6 NV6", "NV6 X NV6 NV6", "NV6 NV6 X NV6", "NV6 NV6 NV6 X")
    path = with_lines(tmp_path / "four.txt", *four)
    # A GPU has 18 NVLinks, six of them to each other GPU.
    assert cables(parse_fabric(f"{path}:nvlink_rate=25GB/s")) == {
        f"{a}-{b}@1.2Tb/s" for a in range(4) for b in range(a + 1, 4)
    }
    path = with_lines(tmp_path / "switched.txt", *(line.replace("NV6", "NV18") for line in four))
    fabric = parse_fabric(f"{path}:nvlink_rate=25GB/s")
    assert cables(fabric) == {f"{gpu}-4@3.6Tb/s" for gpu in range(4)}
    assert optimum(run, f"{path}:nvlink_rate=25GB/s") == Fraction(3, 450)


def test_gpus_without_nvlinks_are_leaves_of_a_tree(run: Run, tmp_path: Path) -> None:
    rows = ["X PIX NODE SYS", "PIX X NODE SYS", "NODE NODE X SYS", "SYS SYS SYS X"]
    path = with_lines(tmp_path / "pci.txt", *matrix(*rows))
    fabric = parse_fabric(f"{path}:pci_rate=24GB/s,latency=1us")
    assert fabric.vertex_names[4:] == ["PIX 0", "NODE 1", "SYS 2"]
    assert cables(fabric) == {
        f"{ends}@192Gb/s" for ends in ("0-4", "1-4", "4-5", "2-5", "5-6", "3-6")
    }
    assert fabric.option("latency") == 1_000_000
    # Rank 3 receives three blocks over one link.
    assert optimum(run, f"{path}:pci_rate=24GB/s") == Fraction(3, 24)


def test_pairs_of_gpus_with_nvlinks_are_joined_by_pci(run: Run) -> None:
    path = f"{SEEDS / 'nvidia_topo/bridges.txt'}:nvlink_rate=25GB/s,pci_rate=12GB/s"
    assert cables(parse_fabric(path)) == {
        *("0-1@800Gb/s", "2-4@96Gb/s", "3-4@96Gb/s"),
        *("0-5@96Gb/s", "1-5@96Gb/s", "4-5@96Gb/s"),
    }


ASTRA = "topology: [Ring]\nnpus_count: [4]\nbandwidth: [50]\nlatency: [500]\n"
HTSIM = (SEEDS / "htsim_topology/three_tiers.topo").read_text()
NS3 = "3 1 2\n2\n0 2 8Gbps 1us 0\n1 2 8Gbps 1us 0\n"
TWO = "\n".join(matrix("X PIX", "PIX X"))
BAD: dict[str, tuple[str, str, str]] = {
    "unknown dimension": (".yml", ASTRA.replace("Ring", "Mesh"), "line 1, topology.0 | Mesh"),
    "two dimensions": (".yml", ASTRA.replace("[4]", "[4, 2]"), "line 2, npus_count | 2 entries"),
    "one NPU": (".yml", ASTRA.replace("[4]", "[1]"), "line 2, npus_count.0 | 2 or more"),
    "many NPUs": (".yml", ASTRA.replace("[4]", "[99999]"), "npus_count.0 | at most 16384"),
    "no bandwidth": (".yml", ASTRA.replace("[50]", "[0]"), "line 3, bandwidth.0 | above 0"),
    "latency of words": (".yml", ASTRA.replace("500", "low"), "line 4, latency.0 | `low`"),
    "a large clique": (
        *(".yml", ASTRA.replace("Ring", "FullyConnected").replace("[4]", "[16384]")),
        "topology.0 | more than 1048576 links",
    ),
    "an end of ns-3": (".topo", NS3.replace("1 2 8", "1 3 8"), "line 4 | no vertex 3"),
    "a rate of ns-3": (
        ".topo",
        NS3.replace("8Gbps 1us 0\n1", "8bits/s 1us 0\n1"),
        "line 3 | 8bits",
    ),
    "a delay of ns-3": (".topo", NS3.replace("1us 0\n1", "1 0\n1"), "line 3 | not a delay"),
    "a short list": (".topo", NS3.replace("3 1 2", "3 1 3"), "ends before all links"),
    "a long list": (".topo", NS3.replace("3 1 2", "3 1 1"), "line 4 | announces 1 link"),
    "tiers": (".topo", HTSIM.replace("Tiers 3", "Tiers 2"), "Tiers | 3 tiers"),
    "pods": (".topo", HTSIM.replace("Podsize 4", "Podsize 3"), "Podsize | give 6"),
    "core": (".topo", HTSIM.replace("Radix_Down 4", "Radix_Down 8"), "Tier 2 | give 4, and not 8"),
    "a word of htsim": (".topo", HTSIM.replace("Bundle", "Bundles"), "line 19 | mean `bundle`?"),
    "no speed": (
        *(".topo", HTSIM.replace("Downlink_speed_Gbps 200", "Queue_Up 5")),
        "Tier 1 | `downlink_speed_gbps` is missing",
    ),
    "no rate of PCI": (".txt", TWO, "give `pci_rate`"),
    "no rate of NVLink": (".txt", TWO.replace("PIX", "NV4"), "give `nvlink_rate`"),
    "a cell": (".txt", TWO.replace("PIX", "NVX"), "line 2 | `NVX` is not known"),
    "another cell": (".txt", TWO.replace("PIX", "PHB", 1), "line 3 | differs from the row"),
    "a short row": (".txt", TWO.replace("GPU1\tPIX\tX\t0-7\t0", "GPU1"), "no complete row `GPU1`"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_networks_are_refused_with_their_place(tmp_path: Path, name: str) -> None:
    ending, text, words = BAD[name]
    path = tmp_path / f"bad{ending}"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        parse_fabric(str(path))
    assert str(caught.value).count(str(path)) == 1
    for word in words.split(" | "):
        assert word in str(caught.value)
