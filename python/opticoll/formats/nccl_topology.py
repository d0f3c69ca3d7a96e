"""NCCL's topology XML: the GPUs, PCI switches, processors, NVLink and NICs of servers.

NCCL writes this file if the environment variable `NCCL_TOPO_DUMP_FILE` names it. GPUs become ranks,
and everything else becomes switches. The rates of xGMI come from RCCL's table (October 2024). All
other rates come from NCCL's own table (`src/graph/topo.h` and `topo.cc` of June 2026). The tables
contain the data rates that these libraries assume, not the raw rates of wires.

A single server is read without its NICs, because NCCL does not use them there. With several
servers, or several copies of one server (`boxes`), the NICs are connected by a switch `network`,
which is never a bottleneck.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

from opticoll._core import Fabric
from opticoll.formats.content import read_text
from opticoll.formats.network_graph import Graph, MisplacedError, bits_per_second, note, texts
from opticoll.formats.xml_tree import MAX_BYTES, MAX_ELEMENTS, Element, parse

PCI_LANE = {"2.5": 1500, "5": 3000, "8": 6000, "16": 12_000, "32": 24_000, "64": 48_000}
"""Rate of a PCI lane in Mb/s, by gigatransfers per second (`kvDictPciGen`)."""

UNKNOWN_PCI, UNKNOWN_LANES, UNKNOWN_NIC = "8", 16, 10_000
"""Values that NCCL assumes if they are missing: GT/s of PCI, number of lanes, and Mb/s of a NIC."""

NVLINK = ((100, 40_100), (90, 20_600), (87, 20_000), (86, 12_000), (70, 20_000), (60, 18_000))
"""Minimum compute capability, and MB/s in each direction of its NVLinks (`ncclTopoNVLinkBw`)."""

XGMI = {"gfx906": 24_000, "gfx908": 24_000, "gfx90a": 36_000, "gfx94": 48_000}
"""MB/s of an xGMI link in each direction, by prefix of the architecture (`ncclTopoXGMISpeed`)."""

OLD_ARCHITECTURES = {"910": "gfx90a"} | {
    name: f"gfx{name}" for name in ("906", "908", "940", "942")
}
"""Architectures of AMD by their names in older files (`convertGcnArchToGcnArchName`)."""

INTEL = ((0xCF, 40_000), (0x8F, 22_000), (0x55, 10_000), (0, 6000))
"""Minimum model in Intel's family 6, and MB/s between its processors (`ncclTopoGetInterCpuBw`)."""

PROCESSORS = {"AuthenticAMD": 16_000, "ppc64": 32_000, "arm64": 6000}
"""MB/s between two processors that are not Intel's, by vendor or architecture."""

ZHAOXIN = ("CentaurHauls", "  Shanghai  ")
"""Vendors of Zhaoxin's processors, which have 6 GB/s, or 9 GB/s (family 7, model 0x5B)."""

WITHIN_DEVICE = 5_000_000
"""MB/s within a device; NCCL uses this value for "unlimited"."""

BETWEEN_PARTITIONS = 2_618_000
"""MB/s between the partitions of a GPU (`MLOPART_LOC_BW`)."""

MAX_BOXES = 1024
MAX_PROCESSORS = 256
"""Maximum number of processors of a server; every two processors have a link."""


def read(
    path: Path, *, boxes: int = 1, latency: object = None, processor_rate: object = None
) -> Fabric:
    """Reads the servers in a file, and returns the custom fabric of `boxes` copies of them.

    `latency` applies to all links, except to a NIC's links if the file states the latency of this
    NIC. `processor_rate` is the rate between processors for which NCCL has no rate.

    Raises
    ------
    ConfigError
        The file is no such topology, or a link lacks data; the message names the line.
    FileError
        The file cannot be read.
    """
    root = parse(read_text(path, "XML file", most=MAX_BYTES))
    if root.tag != "system":
        known = "<system> (NCCL), <topology> (hwloc), <graphml> or <network> (SNDlib)"
        problem = f"it begins with <{root.tag}>; a fabric in XML begins with {known}"
        raise MisplacedError((), problem)
    unlimited: dict[str, None] = {}

    def between(cpu: Element) -> int:
        rate = between_processors(cpu)
        if rate is None:
            unlimited[_text(cpu, "vendor" if _text(cpu, "arch") == "x86_64" else "arch")] = None
        return stated if rate is None else rate

    stated = 8 * WITHIN_DEVICE
    if processor_rate is not None:
        stated = bits_per_second("processor_rate", processor_rate) // 10**6
    fabric = servers_fabric(
        root, path.name, boxes, latency, Rates(_pci_rate, _direct_rate, between)
    )
    if unlimited and processor_rate is None:
        vendors = " and ".join(f"`{vendor}`" for vendor in unlimited)
        problem = f"NCCL sets no limit between processors of {vendors}"
        note(path.name, f"{problem}; {path.name}:processor_rate=16GB/s sets one")
    return fabric


@dataclass(frozen=True)
class Rates:
    """Functions that return the rates of elements in one direction, in Mb/s."""

    pci: Callable[[Element], int]
    """Rate of the link between a PCI device and its parent."""
    direct: Callable[[Element, Element], int]
    """Rate of an element of direct links; the second argument is their GPU."""
    between: Callable[[Element], int]
    """Rate from a processor to another."""


def servers_fabric(root: Element, file: str, boxes: int, latency: object, rates: Rates) -> Fabric:
    """Returns the custom fabric of `boxes` copies of the servers in an element <system> of NCCL.

    Raises
    ------
    MisplacedError
        The number of boxes is invalid, or a link lacks data; the error has the line.
    """
    if type(boxes) is not int or not 1 <= boxes <= MAX_BOXES:
        raise MisplacedError(("boxes",), f"`{boxes}` is not a number from 1 to {MAX_BOXES}")
    elements = list(root.walk())
    if boxes * len(elements) > MAX_ELEMENTS:
        raise MisplacedError(("boxes",), f"{boxes} boxes of {len(elements)} elements are too many")
    hosts: dict[str, list[Element]] = {}
    for cpu in root.named("cpu"):
        hosts.setdefault(cpu.attributes.get("host_hash", "0"), []).append(cpu)
    gpus = {_number(gpu, "rank"): gpu for gpu in elements if _is_rank(gpu)}
    for element in elements:
        if _is_rank(element) and gpus[_number(element, "rank")] is not element:
            raise _wrong(element, f"there are two GPUs of rank {_number(element, 'rank')}")
    if not gpus:
        problem = "there is no GPU with a rank; let NCCL write the file while a job runs"
        raise MisplacedError((), problem)
    joined = any(gpu.tag == "nvlink" and _is_switch(gpu) for gpu in elements)
    numbers = {rank: number for number, rank in enumerate(sorted(gpus))}
    options = {} if latency is None else {"latency": latency}
    servers = _Servers(numbers, rates, networked=boxes > 1 or (len(hosts) > 1 and not joined))
    for box in range(boxes):
        servers.box, of_box = box, f" of box {box}" if boxes > 1 else ""
        servers.nvlink_switch = f"nvswitch{of_box}"
        for host, processors in enumerate(hosts.values()):
            servers.suffix = (f" of host {host}" if len(hosts) > 1 else "") + of_box
            servers.server(processors)
        servers.direct_links()
    return servers.fabric(boxes, file, texts((), options, ("latency",)))


@dataclass
class _Link:
    """Link in one direction, with the line on which it first appears."""

    line: int
    latency_ps: int
    rate_mbps: int = 0


@dataclass
class _Device:
    """PCI device, with the vertex of each of its parts and, for a GPU, the part's first rank."""

    pci: Element
    server: str
    processor: str
    parts: list[tuple[str, Element | None]]


@dataclass
class _Servers:
    """Vertices and links of a file, to which servers are added one by one."""

    numbers: dict[int, int]
    """Index of each GPU, from 0, by its rank in the file."""
    rates: Rates
    networked: bool
    """True if the NICs are connected to a network."""
    box: int = 0
    suffix: str = ""
    """Suffix of vertex names that distinguishes the servers."""
    nvlink_switch: str = ""
    switches: dict[str, None] = field(default_factory=dict)
    at_bus: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    """Names of the vertices at each bus, by server and bus; a GPU with partitions has several."""
    waiting: list[_Device] = field(default_factory=list)
    """Devices whose direct links are added after all devices."""
    links: dict[tuple[str, str, str], _Link] = field(default_factory=dict)
    """Links by both ends and kind of element; NCCL adds up the rates of links with the same key."""

    def fabric(self, boxes: int, file: str, options: dict[str, str]) -> Fabric:
        """Returns the fabric; two opposite links with the same rate become one cable."""
        graph = Graph(file=file, options=options)
        graph.ranks = [f"gpu {rank}" for rank in range(boxes * len(self.numbers))]
        graph.switches = list(self.switches)
        graph.number((), ())
        cables: set[tuple[str, str, str]] = set()
        for (start, end, kind), link in self.links.items():
            back = self.links.get((end, start, kind))
            is_cable = back is not None and back.rate_mbps == link.rate_mbps
            if (end, start, kind) not in cables:
                link_options = [f"{link.rate_mbps}Mb/s"]
                if link.latency_ps or not options:
                    link_options.append(f"{link.latency_ps}ps")
                graph.link(
                    (f"line {link.line}",), start, end, "-" if is_cable else ">", link_options
                )
            if is_cable:
                cables.add((start, end, kind))
        return graph.fabric()

    def switch(self, name: str) -> str:
        """Adds a switch and returns its name."""
        self.switches[name] = None
        return name

    def link(self, at: Element, start: str, end: str, rate_mbps: int, latency_ps: int = 0) -> None:
        """Adds a link in one direction."""
        link = self.links.setdefault((start, end, at.tag), _Link(at.line, latency_ps))
        link.rate_mbps += rate_mbps

    def cable(self, at: Element, start: str, end: str, rate_mbps: int, latency_ps: int = 0) -> None:
        """Adds a link in each direction."""
        self.link(at, start, end, rate_mbps, latency_ps)
        self.link(at, end, start, rate_mbps, latency_ps)

    def server(self, processors: list[Element]) -> None:
        """Adds the processors of a server and the devices below them."""
        if len(processors) > MAX_PROCESSORS:
            problem = f"a server has at most {MAX_PROCESSORS} processors"
            raise _wrong(processors[MAX_PROCESSORS], problem)
        names = [self.switch(f"cpu {_number(cpu, 'numaid')}{self.suffix}") for cpu in processors]
        for number, (cpu, name) in enumerate(zip(processors, names, strict=True)):
            if name in names[:number]:
                raise _wrong(cpu, f"there are two processors {_number(cpu, 'numaid')}")
            for other in names:
                if other != name:
                    self.link(cpu, name, other, self.rates.between(cpu))
            for device in cpu.named("pci"):
                self.device(device, name, name, 0)
            for nic in cpu.named("nic"):
                self.nic(nic, name, f"nic of {name}", 8 * WITHIN_DEVICE)

    def device(self, pci: Element, parent: str, processor: str, generation: int) -> None:
        """Adds a device below the vertex `parent`.

        NCCL sees a Broadcom switch as two levels and merges them (`ncclTopoFlattenBcmSwitches`).
        `generation` is the generation of the Broadcom switch whose upper level is the parent, or 0.
        """
        bus, rate = _text(pci, "busid").lower(), self.rates.pci(pci)
        for nic in pci.named("nic"):
            self.nic(nic, parent, f"nic {bus}{self.suffix}", rate)
        below = list(pci.named("pci"))
        gpus = [child for child in pci.children if _is_rank(child)]
        parts: list[tuple[str, Element | None]]
        head = 0
        if gpus:
            parts = list(self.gpu_parts(bus, gpus))
        elif not below:
            return
        elif generation and _broadcom(pci, 1) == generation:
            parts = [(parent, None)]
        else:
            parts, head = [(self.switch(f"pci {bus}{self.suffix}"), None)], _broadcom(pci, 0)
        if (self.suffix, bus) in self.at_bus:
            raise _wrong(pci, f"there are two devices at bus {bus}")
        self.at_bus[self.suffix, bus] = [vertex for vertex, _ in parts]
        self.waiting.append(_Device(pci, self.suffix, processor, parts))
        for number, (vertex, gpu) in enumerate(parts):
            if vertex != parent:
                self.cable(pci, vertex, parent, rate)
            for other, _ in parts[:number]:
                self.cable(gpu or pci, vertex, other, 8 * BETWEEN_PARTITIONS)
        for device in below:
            self.device(device, parts[0][0], processor, head)

    def gpu_parts(self, bus: str, gpus: list[Element]) -> Iterator[tuple[str, Element]]:
        """Yields the vertex and the first rank of each partition of a GPU.

        If several ranks use a partition, the partition is a switch; its first rank names its links.
        """
        partitions: dict[str | None, list[Element]] = {}
        for gpu in gpus:
            partitions.setdefault(gpu.attributes.get("mlopart"), []).append(gpu)
        for partition, ranks in partitions.items():
            names = [
                f"gpu {self.box * len(self.numbers) + self.numbers[_number(gpu, 'rank')]}"
                for gpu in ranks
            ]
            if len(ranks) == 1:
                yield names[0], ranks[0]
                continue
            part = "" if partition is None else f" part {partition}"
            vertex = self.switch(f"device {bus}{part}{self.suffix}")
            for gpu, name in zip(ranks, names, strict=True):
                self.cable(gpu, name, vertex, 8 * WITHIN_DEVICE)
            yield vertex, ranks[0]

    def nic(self, nic: Element, parent: str, name: str, rate_mbps: int) -> None:
        """Adds a NIC and its cables to the network; a NIC without a connection is left out."""
        nets = [
            element for element in nic.named("net") if element.attributes.get("net", "1") != "0"
        ]
        if not self.networked or not nets:
            return
        self.cable(nic, self.switch(name), parent, rate_mbps)
        for net in nets:
            speed = _number(net, "speed", 0, most=10**9)
            # A message crosses two of these cables, and NCCL's latency is the sum for both.
            half_ps = _microseconds(net, "latency") // 2
            self.cable(net, name, self.switch("network"), max(speed, 0) or UNKNOWN_NIC, half_ps)

    def direct_links(self) -> None:
        """Adds NVLink, xGMI and C2C links of GPUs, and links between PCI switches."""
        for device in self.waiting:
            for vertex, gpu in device.parts:
                if gpu is not None:
                    for link in gpu.named("nvlink", "xgmi"):
                        self.gpu_link(link, vertex, gpu, device)
                    for link in gpu.named("c2c"):
                        self.c2c(link, vertex, device)
                for link in device.pci.named("pcilink"):
                    at = (device.server, _text(link, "target").lower())
                    for target in self.at_bus.get(at, ()):
                        if target != vertex:
                            self.link(link, vertex, target, 8 * WITHIN_DEVICE)
        self.waiting.clear()

    def gpu_link(self, link: Element, vertex: str, gpu: Element, device: _Device) -> None:
        """Adds a link from a GPU to another GPU, to its processor, or to the NVLink switches.

        The partitions of a GPU share its links, at both ends.
        """
        rate = self.rates.direct(link, gpu) // len(device.parts)
        kind = _text(link, "tclass").lower()
        if not rate:
            return
        if _is_switch(link):
            # NCCL models all NVLink switches as one.
            self.cable(link, vertex, self.switch(self.nvlink_switch), rate)
        elif kind.startswith("0x0680"):
            self.cable(link, vertex, device.processor, rate)
        elif kind.startswith(("0x03", "0x12")):
            # A GPU may be missing from the file if no rank of the job uses it.
            targets = self.at_bus.get((device.server, _text(link, "target").lower()), [])
            for target in targets:
                self.link(link, vertex, target, rate // len(targets))
        else:
            hint = "0x03... is a GPU, 0x068000 a switch of NVLink, 0x068001 a processor"
            raise _wrong(link, f"tclass `{kind}` is not known; {hint}")

    def c2c(self, link: Element, vertex: str, device: _Device) -> None:
        """Adds the links from a GPU to its processor; all partitions of the GPU share them."""
        rate = 8 * _number(link, "count", least=0) * _number(link, "bw", least=1)
        if not rate:
            return
        if len(device.parts) == 1:
            self.cable(link, vertex, device.processor, rate)
            return
        name = f"c2c {_text(device.pci, 'busid').lower()}{device.server}"
        if name not in self.switches:
            self.cable(link, self.switch(name), device.processor, rate)
        self.cable(link, vertex, name, rate)


def between_processors(cpu: Element) -> int | None:
    """Returns NCCL's rate from a processor to another of its server, in Mb/s; None if unlimited."""
    arch = _text(cpu, "arch")
    vendor = _text(cpu, "vendor") if arch == "x86_64" else arch
    family = _number(cpu, "familyid") if vendor in ("GenuineIntel", *ZHAOXIN) else 0
    if vendor == "GenuineIntel":
        model = _number(cpu, "modelid") if family == 6 else 0
        return 8 * next(rate for least, rate in INTEL if model >= least)
    if vendor in ZHAOXIN:
        return 8 * (9000 if family == 7 and _number(cpu, "modelid") == 0x5B else 6000)
    return 8 * PROCESSORS[vendor] if vendor in PROCESSORS else None


def _is_rank(element: Element) -> bool:
    """Returns whether an element is a GPU with a rank.

    GPUs without a rank are ignored as in NCCL.
    """
    return element.tag == "gpu" and "rank" in element.attributes


def _is_switch(link: Element) -> bool:
    return link.attributes.get("tclass", "").lower().startswith("0x068000")


def _direct_rate(link: Element, gpu: Element) -> int:
    """Returns the rate of all NVLink or xGMI links of an element, in Mb/s."""
    return 8 * _number(link, "count", least=0) * _rate_of_one(link, gpu)


def _rate_of_one(link: Element, gpu: Element) -> int:
    """Returns the rate of one NVLink or xGMI link of a GPU in each direction, in MB/s."""
    if link.tag == "xgmi":
        name = _text(gpu, "gcn")
        architecture = OLD_ARCHITECTURES.get(name, name)
        for start, rate in XGMI.items():
            if architecture.startswith(start):
                return rate
        raise _wrong(gpu, f"no rate of xGMI links is known for gcn `{name}`", ", ".join(XGMI))
    capability = _number(gpu, "sm")
    for least, rate in NVLINK:
        if capability >= least:
            return rate
    raise _wrong(gpu, f"GPUs of compute capability {capability} have no NVLink")


def _pci_rate(pci: Element) -> int:
    """Returns the rate of the link between a PCI device and its parent, in Mb/s."""
    text = _text(pci, "link_speed")
    speed = re.fullmatch(r"([0-9.]{1,6}) GT/s( PCIe)?", text)
    transfers = speed[1].removesuffix(".0") if speed else UNKNOWN_PCI
    if transfers not in PCI_LANE or (
        speed is None and text not in ("", "Unknown", "Unknown speed")
    ):
        raise _wrong(pci, f"link_speed `{text}` is not known", "16 GT/s and 16.0 GT/s PCIe")
    return PCI_LANE[transfers] * (_number(pci, "link_width", most=64) or UNKNOWN_LANES)


def _broadcom(pci: Element, level: int) -> int:
    """Returns the generation of a Broadcom switch; 0 for other devices (NCCL's `getBcmGen`).

    `level` is the level of the switch that counts: 0 is the upper level, 1 the lower level.
    """
    names = ("vendor", "device", "subsystem_vendor", "subsystem_device")
    texts = [pci.attributes.get(name, "").lower() for name in names]
    if texts[:3] == ["0x1000", "0xc010", "0x1000"] and re.fullmatch("0xa...", texts[3]):
        return 4
    device = re.fullmatch("0x0*([0-9a-f]{1,4})", texts[3])
    if texts[:2] == ["0x1000", "0xc030"] and device and int(device[1], 16) >> 12 == level:
        return 5 if texts[2] == "0x1000" else 0
    return 0


def _microseconds(net: Element, name: str) -> int:
    """Returns a latency in picoseconds, from an attribute in microseconds.

    Without the attribute, returns 0.
    """
    text = net.attributes.get(name, "0")
    if re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,12})?", text) is None:
        raise _wrong(net, f"{name} `{text}` is not a number of microseconds")
    return int(Decimal(text) * 10**6)


def _text(element: Element, name: str) -> str:
    value = element.attributes.get(name)
    if value is None:
        raise _wrong(element, f"<{element.tag}> has no `{name}`")
    return value


def _number(
    element: Element, name: str, otherwise: int | None = None, least: int = -1, most: int = 10**6
) -> int:
    if otherwise is not None and name not in element.attributes:
        return otherwise
    text = _text(element, name)
    if re.fullmatch("-?[0-9]{1,12}", text) is None or not least <= int(text) <= most:
        raise _wrong(element, f"{name} `{text}` is not a number from {least} to {most}")
    return int(text)


def _wrong(element: Element, problem: str, alternatives: str = "") -> MisplacedError:
    return MisplacedError(
        (f"line {element.line}",), problem + (f"; known are {alternatives}" if alternatives else "")
    )
