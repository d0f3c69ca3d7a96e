"""hwloc's XML of a server, which `lstopo server.xml` writes, read as a topology of NCCL.

GPUs become ranks in the order of their PCI addresses, which is the order of NVML. The file states
the rates of PCI links (`pci_link_speed`, in GB/s) and of NVLink and xGMI (matrices of bandwidths,
in MB/s). These are the rates of wires, in one direction. The file does not state the rate between
processors, which comes from NCCL's table, nor the rates of NICs.

The elements of hwloc are translated to those of NCCL, so a server of both files has the same
vertices. Three conventions come from hwloc's source (version 3, August 2026): the numbers of
bridges from the root are odd for ports that lead down, and even for PCI switches; a NIC of
InfiniBand or RoCE has a `NodeGUID`; a port in state 4 is active.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

from opticoll import memory
from opticoll._core import Fabric
from opticoll.formats.content import read_text
from opticoll.formats.nccl_topology import Rates, between_processors, servers_fabric
from opticoll.formats.network_graph import MisplacedError, bits_per_second, note
from opticoll.formats.xml_tree import MAX_BYTES, Element, parse

MATRICES = {"NVLinkBandwidth": "nvlink", "XGMIBandwidth": "xgmi"}
"""Names of hwloc's matrices of direct links, and NCCL's elements for such links."""

GPU_CLASSES = ("0302", "0380", "12")
"""Beginnings of the PCI classes of devices that compute: 3D and display controllers without a
screen, and accelerators. A screen (0300) is a GPU only if a library can compute on it."""

COMPUTES = re.compile("(cuda|nvml|rsmi|ze|opencl)[0-9]+")
"""Beginnings of the names that hwloc gives to GPUs on which a library can compute."""

ARCHITECTURES = {"aarch64": "arm64", "ppc64le": "ppc64"}
"""Architectures with another name in NCCL."""


def read(
    path: Path,
    *,
    boxes: int = 1,
    latency: object = None,
    processor_rate: object = None,
    pci_rate: object = None,
    nic_rate: object = None,
) -> Fabric:
    """Reads the server in a file, and returns the custom fabric of `boxes` copies of it.

    `latency` applies to all links. `processor_rate` is the rate between processors, `pci_rate` the
    rate of PCI links whose speed the file does not know, and `nic_rate` the rate of a port of a
    NIC.

    Raises
    ------
    ConfigError
        The file is no such topology, or a rate is missing; the message names the line.
    FileError
        The file cannot be read.
    """
    root = parse(read_text(path, "XML file", most=MAX_BYTES))
    if root.tag != "topology":
        raise MisplacedError(
            (), f"it begins with <{root.tag}>, a topology of hwloc with <topology>"
        )
    names = ("processor_rate", "pci_rate", "nic_rate")
    values = zip(names, (processor_rate, pci_rate, nic_rate), strict=True)
    stated = {
        name: bits_per_second(name, value) // 10**6 for name, value in values if value is not None
    }
    if boxes != 1 and nic_rate is None:
        problem = "the file states no rates of NICs; give `nic_rate`, such as 400Gb/s"
        raise MisplacedError(("boxes",), problem)
    server = _Server(stated.get("nic_rate") if boxes != 1 else None)
    server.add(root)
    if not server.gpus:
        raise MisplacedError((), "there is no PCI device that is a GPU")
    if boxes != 1 and not server.nics:
        raise MisplacedError(
            ("boxes",), "there is no NIC of InfiniBand or RoCE with an active port"
        )
    taken: dict[int, None] = {}

    def pci(device: Element) -> int:
        rate = device.attributes.get("mbps") or stated.get("pci_rate")
        if rate is None:
            problem = "the speed of this PCI link is unknown; give `pci_rate`, such as 24GB/s"
            raise _wrong(device, problem)
        return int(rate)

    def between(cpu: Element) -> int:
        rate = stated.get("processor_rate")
        if rate is None:
            rate = between_processors(cpu)
            if rate is None:
                problem = "no rate between these processors is known; give `processor_rate`"
                raise _wrong(cpu, f"{problem}, such as 16GB/s")
            taken[rate] = None
        return rate

    rates = Rates(pci, lambda link, _gpu: int(link.attributes["mbps"]), between)
    for name in sorted(server.unread):
        note(path.name, f"the matrix {name} is not read; read are {', '.join(MATRICES)}")
    fabric = servers_fabric(server.translated(), path.name, boxes, latency, rates)
    if taken:
        values_of_nccl = " and ".join(f"{Decimal(rate) / 8000:g} GB/s" for rate in taken)
        problem = f"the rate between processors is NCCL's, {values_of_nccl}"
        note(path.name, f"{problem}; {path.name}:processor_rate=16GB/s sets another")
    return fabric


@dataclass
class _Place:
    """Object of hwloc, with the processor and the PCI device to which it belongs."""

    at: Element
    cpu: Element | None
    pci: Element | None = None


@dataclass
class _Server:
    """Elements of NCCL that are made from those of hwloc."""

    nic_mbps: int | None
    """Rate of a port of a NIC; None if the NICs are left out."""
    places: dict[tuple[str, str], _Place] = field(default_factory=dict)
    """Objects by their type and `gp_index`."""
    cpus: dict[int, Element] = field(default_factory=dict)
    """Processors by the identity of their object."""
    gpus: dict[int, Element] = field(default_factory=dict)
    """GPUs by the identity of their PCI device."""
    nics: int = 0
    """Number of NICs with an active port."""
    unread: set[str] = field(default_factory=set)
    """Names of bandwidths between GPUs that are not read."""

    def add(self, root: Element) -> None:
        """Adds the objects below an element <topology>, and the matrices of direct links."""
        packages = [
            element for element in root.walk() if element.attributes.get("type") in _PACKAGES
        ]
        architecture = next(
            (text for one in root.walk() if (text := _info(one, "Architecture"))), ""
        )
        # Devices that belong to no processor are those of the only processor.
        for number, package in enumerate(packages or [root]):
            self.cpus[id(package)] = _cpu(package, number, architecture)
        only = next(iter(self.cpus.values())) if len(self.cpus) == 1 else None
        self.objects(root, only, only, 0)
        by_address = sorted(self.gpus.values(), key=lambda gpu: (len(_bus(gpu)), _bus(gpu)))
        for rank, gpu in enumerate(by_address):
            gpu.attributes["rank"] = str(rank)
        for matrix in root.named("distances2", "distances2hetero"):
            name = matrix.attributes.get("name", "")
            if name in MATRICES:
                self.matrix(matrix, MATRICES[name])
            elif name.endswith("Bandwidth"):
                self.unread.add(name)

    def objects(
        self, parent: Element, cpu: Element | None, above: Element | None, bridges: int
    ) -> None:
        """Adds the objects below `parent`; `above` is the element to which PCI devices are added.

        `bridges` is the number of bridges from the root of PCI.
        """
        for child in parent.named("object"):
            kind = child.attributes.get("type", "")
            key, place = (kind, child.attributes.get("gp_index", "")), _Place(child, cpu)
            if kind in _PACKAGES:
                place.cpu = self.cpus[id(child)]
                self.objects(child, place.cpu, place.cpu, 0)
            elif kind == "PCIDev":
                place.pci = _pci(child)
                self.device(child, place, above)
            elif kind == "Bridge" and child.attributes.get("bridge_type", "").startswith("1"):
                self.bridge(child, cpu, above, bridges + 1)
            else:
                self.objects(child, cpu, above, bridges)
            if self.places.setdefault(key, place) is not place and key[1]:
                raise _wrong(child, f"there are two objects {kind} of gp_index {key[1]}")

    def bridge(
        self, bridge: Element, cpu: Element | None, above: Element | None, bridges: int
    ) -> None:
        """Adds a bridge of PCI that leads to GPUs or NICs."""
        if bridges % 2:
            self.objects(bridge, cpu, above, bridges)
            return
        pci = _pci(bridge)
        self.objects(bridge, cpu, pci, bridges)
        if pci.children:
            _under(bridge, above).children.append(pci)

    def device(self, device: Element, place: _Place, above: Element | None) -> None:
        """Adds a PCI device that is a GPU, or a NIC with an active port."""
        pci = place.pci
        assert pci is not None
        systems = list(device.named("object"))
        for system in systems:
            key = ("OSDev", system.attributes.get("gp_index", ""))
            self.places[key] = _Place(system, place.cpu, pci)
        names = [system.attributes.get("name", "") for system in systems]
        ports = [port for system in systems if _info(system, "NodeGUID") for port in _ports(system)]
        if pci.attributes["class"].startswith(GPU_CLASSES) or any(map(COMPUTES.match, names)):
            self.gpus[id(pci)] = Element("gpu", {"busid": pci.attributes["busid"]}, device.line)
            pci.children.append(self.gpus[id(pci)])
        elif ports and self.nic_mbps is not None:
            attributes = {"speed": str(self.nic_mbps)}
            nets = [Element("net", attributes, port.line) for port in ports]
            self.nics += 1
            pci.children.append(Element("nic", {}, device.line, children=nets))
        if pci.children:
            _under(device, above).children.append(pci)

    def matrix(self, matrix: Element, tag: str) -> None:
        """Adds the direct links of a matrix of bandwidths in MB/s to the GPUs of its rows."""
        words = " ".join(part.text for part in matrix.named("indexes")).split()
        text = " ".join(part.text for part in matrix.named("u64values"))
        memory.take_values("reading this matrix", text, " ")
        values = text.split()
        if len(values) != len(words) ** 2 or not all(map(_WHOLE.fullmatch, values)):
            raise _wrong(matrix, f"the matrix does not hold {len(words)} x {len(words)} numbers")
        places = []
        for word in words:
            kind, _, index = word.rpartition(":")
            key = (kind or matrix.attributes.get("type", ""), index)
            if key not in self.places:
                raise _wrong(matrix, f"there is no object {key[0]} of gp_index {index}")
            places.append(self.places[key])
        gpus = [self.gpus.get(id(place.pci)) for place in places]
        if len({id(gpu) for gpu in gpus if gpu}) < len(gpus) - gpus.count(None):
            raise _wrong(matrix, "two objects of the matrix are parts of one GPU")
        for row, (place, gpu) in enumerate(zip(places, gpus, strict=True)):
            for column, other in enumerate(places if gpu else ()):
                value = int(values[row * len(words) + column])
                if gpu and value and column != row:
                    attributes = _target(matrix, place, other) | {"mbps": str(8 * value)}
                    gpu.children.append(Element(tag, attributes, matrix.line))

    def translated(self) -> Element:
        """Returns the element <system> with the processors that have GPUs or NICs."""
        cpus = [cpu for cpu in self.cpus.values() if cpu.children]
        return Element("system", {}, 1, children=cpus)


_PACKAGES = ("Package", "Socket")
"""Types of processors; hwloc 1 says Socket."""

_WHOLE = re.compile("[0-9]{1,12}")


def _cpu(package: Element, number: int, architecture: str) -> Element:
    """Returns NCCL's element of a processor."""
    names = ("CPUVendor", "CPUFamilyNumber", "CPUModelNumber")
    vendor, family, model = (_info(package, name) for name in names)
    attributes = {"numaid": str(number), "arch": ARCHITECTURES.get(architecture, architecture)}
    attributes["vendor"] = vendor if family and model else ""
    return Element("cpu", attributes | {"familyid": family, "modelid": model}, package.line)


def _pci(device: Element) -> Element:
    """Returns NCCL's element of a PCI device; `mbps` is the rate of its link, if it is known."""
    words = ("busid", "class", "vendor", "device", "subsystem_vendor", "subsystem_device")
    bus = device.attributes.get("pci_busid", "").lower()
    kind = re.match(_PCI_TYPE, device.attributes.get("pci_type", ""))
    if kind is None or not bus:
        raise _wrong(device, "the PCI device has no `pci_busid`, or no `pci_type` that is valid")
    ids = [kind[1].lower(), *(f"0x{number.lower()}" for number in kind.groups()[1:])]
    attributes = dict(zip(words, (bus, *ids), strict=True))
    speed = device.attributes.get("pci_link_speed", "0")
    if re.fullmatch(r"[0-9]{1,6}(\.[0-9]{1,9})?", speed) is None:
        raise _wrong(device, f"pci_link_speed `{speed}` is not a number of GB/s")
    if mbps := round(Decimal(speed) * 8000):
        attributes["mbps"] = str(mbps)
    return Element("pci", attributes, device.line)


_PCI_TYPE = r"([0-9A-Fa-f]{4}) \[(\w{4}):(\w{4})\](?: \[(\w{4}):(\w{4})\])"


def _bus(gpu: Element) -> str:
    return gpu.attributes["busid"]


def _under(device: Element, above: Element | None) -> Element:
    """Returns the element of NCCL to which a device is added."""
    if above is None:
        raise _wrong(device, "the file does not say to which processor this PCI device belongs")
    return above


def _info(element: Element, name: str) -> str:
    """Returns the value of an element <info>; empty if there is none."""
    values = (
        info.attributes.get("value", "")
        for info in element.named("info")
        if info.attributes.get("name") == name
    )
    return next(values, "")


def _ports(nic: Element) -> list[Element]:
    """Returns the active ports of a NIC of InfiniBand or RoCE."""
    return [
        info
        for info in nic.named("info")
        if re.fullmatch("Port[0-9]{1,3}State", info.attributes.get("name", ""))
        and info.attributes.get("value", "").startswith("4")
    ]


def _target(matrix: Element, place: _Place, other: _Place) -> dict[str, str]:
    """Returns NCCL's attributes of the direct link from a GPU to another object."""
    if other.at.attributes.get("subtype") == "NVSwitch":
        return {"tclass": "0x068000"}
    if other.pci is not None:
        return {"tclass": "0x030200", "target": other.pci.attributes["busid"]}
    if other.cpu is None or other.cpu is not place.cpu:
        raise _wrong(matrix, "a GPU has a direct link to another processor than its own")
    return {"tclass": "0x068001"}


def _wrong(element: Element, problem: str) -> MisplacedError:
    return MisplacedError((f"line {element.line}",), problem)
