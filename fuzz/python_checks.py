"""Properties that hold for every input of the Python readers: a reader accepts the file, or refuses
it with an error of opticoll that gives a reason. `python_readers.py` searches for files that
violate these properties; the tests try the seeds and some hundreds of mutations of them.
"""

from __future__ import annotations

import io
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path

from opticoll._core import read_chakra
from opticoll.errors import OpticollError
from opticoll.formats import (
    FORMATS,
    chakra_nodes,
    liballprof,
    otf2_archive,
    parquet_table,
    simai_workload,
)
from opticoll.formats.content import read_content
from opticoll.inputs import (
    component_values,
    failure_rates,
    imported,
    layer_profile,
    measured_times,
    task_list,
)
from opticoll.inputs.fabric_files import read_fabric, read_graph
from opticoll.inputs.scenarios import read_scenario
from opticoll.outputs.terminal_text import escaped

FUZZ = Path(__file__).parent
ARCHIVE = FUZZ.parent / "tests/data/ep.A.16.otf2.tar.zst"

YAML_READERS: tuple[Callable[[Path], object], ...] = (
    read_fabric,
    read_scenario,
    component_values.read,
    layer_profile.read,
    task_list.read,
    failure_rates.read,
)


def check_yaml(content: bytes) -> list[str]:
    """Returns the refusals of a file by the readers of YAML."""
    return _refusals_of_file(content, ".yaml", *YAML_READERS)


def check_toml(content: bytes) -> list[str]:
    """Checks the readers of failure rates and of values of components with a file in TOML."""
    return _refusals_of_file(content, ".toml", failure_rates.read, component_values.read)


def check_graph_json(content: bytes) -> list[str]:
    """Checks the reader of graphs with a file in node-link form."""
    return _refusals_of_file(content, ".json", read_graph)


def check_graphml(content: bytes) -> list[str]:
    """Checks the reader of graphs with a file in GraphML."""
    return _refusals_of_file(content, ".graphml", read_graph)


def check_nccl_topology(content: bytes) -> list[str]:
    """Checks the reader of graphs with a topology of NCCL."""
    return _refusals_of_file(content, ".xml", read_graph)


def check_hwloc(content: bytes) -> list[str]:
    """Checks the reader of topologies of hwloc."""
    rates = {"boxes": 2, "nic_rate": "100Gb/s", "pci_rate": "12GB/s", "processor_rate": "9GB/s"}
    return _refusals_of_file(content, ".xml", lambda path: _as("hwloc", path, **rates))


def _read_fibres(path: Path) -> object:
    return read_graph(path, wavelengths=2)


def check_gml(content: bytes) -> list[str]:
    """Checks the reader of graphs of fibres with a file in GML."""
    return _refusals_of_file(content, ".gml", _read_fibres)


def check_edge_list(content: bytes) -> list[str]:
    """Checks the reader of graphs of fibres with an edge list."""
    return _refusals_of_file(content, ".edges", _read_fibres)


def check_sndlib(content: bytes) -> list[str]:
    """Checks the reader of graphs of fibres with a network of SNDlib."""
    return _refusals_of_file(content, ".xml", _read_fibres)


def check_astra_network(content: bytes) -> list[str]:
    """Checks the reader of ASTRA-sim's networks."""
    return _refusals_of_file(content, ".yml", lambda path: _as("astra_network", path))


def check_ns3_topology(content: bytes) -> list[str]:
    """Checks the reader of topologies of ns-3."""
    return _refusals_of_file(content, ".topo", lambda path: _as("ns3_topology", path))


def check_htsim_topology(content: bytes) -> list[str]:
    """Checks the reader of topologies of htsim."""
    return _refusals_of_file(content, ".topo", lambda path: _as("htsim_topology", path))


def check_nvidia_topo(content: bytes) -> list[str]:
    """Checks the reader of the output of `nvidia-smi topo -m`."""
    rates = {"nvlink_rate": "25GB/s", "pci_rate": "12GB/s"}
    return _refusals_of_file(content, ".txt", lambda path: _as("nvidia_topo", path, **rates))


def _as(name: str, path: Path, **fields: object) -> object:
    """Reads a fabric in a format, whatever the signature of the content."""
    return next(form for form in FORMATS if form.name == name).read(path, **fields)


def check_layers(content: bytes) -> list[str]:
    """Checks the reader of layer tables."""
    return _refusals_of_file(content, ".csv", layer_profile.read)


def check_measured_times(content: bytes) -> list[str]:
    """Checks the reader of measured times: CSV, nccl-tests and OSU's benchmarks."""
    return _refusals_of_file(
        content, ".txt", lambda path: measured_times.read(path, ranks=4, collective="all_reduce")
    )


def check_parquet(content: bytes) -> list[str]:
    """Checks the reader of Parquet files."""
    return _refusals(lambda: parquet_table.trace(content))


def check_tar(content: bytes) -> list[str]:
    """Checks the reader of packed archives."""

    def read() -> None:
        with otf2_archive.unpacked(Path("changed.tar"), content) as anchor:
            otf2_archive.to_trace(otf2_archive.read(anchor))

    return _refusals(read)


def check_simai_workload(content: bytes) -> list[str]:
    """Checks the reader of SimAI's workloads."""
    return _refusals(lambda: simai_workload.read_trace("changed", content, 1))


def check_liballprof(content: bytes) -> list[str]:
    """Checks the reader of liballprof's traces, with the trace of the only rank."""
    return _refusals(lambda: liballprof.read_trace("changed", content, 1))


def check_chakra_json(content: bytes) -> list[str]:
    """Checks the conversion of Chakra's JSON, and the reader of what it becomes."""
    return _refusals(lambda: read_chakra([chakra_nodes.binary_of(content)]))


def check_sends(content: bytes) -> list[str]:
    """Checks that a CSV of sends is read, placed and verified, or refused."""
    return _refusals_of_file(content, ".csv", lambda path: imported.read_plan(path, "sends"))


def check_te_ccl(content: bytes) -> list[str]:
    """Checks that a result of TE-CCL is read, placed and verified, or refused."""
    return _refusals_of_file(
        content, ".json", lambda path: imported.read_plan(path, "te_ccl", ranks=2)
    )


def check_sccl(content: bytes) -> list[str]:
    """Checks that an algorithm of SCCL is read, placed and verified, or refused."""
    return _refusals_of_file(content, ".json", lambda path: imported.read_plan(path, "sccl"))


CHECKS: dict[str, Callable[[bytes], list[str]]] = {
    "yaml": check_yaml,
    "toml": check_toml,
    "graph_json": check_graph_json,
    "graphml": check_graphml,
    "nccl_topology": check_nccl_topology,
    "hwloc": check_hwloc,
    "gml": check_gml,
    "edge_list": check_edge_list,
    "sndlib": check_sndlib,
    "astra_network": check_astra_network,
    "ns3_topology": check_ns3_topology,
    "htsim_topology": check_htsim_topology,
    "nvidia_topo": check_nvidia_topo,
    "layers": check_layers,
    "measured_times": check_measured_times,
    "parquet": check_parquet,
    "tar": check_tar,
    "simai_workload": check_simai_workload,
    "liballprof": check_liballprof,
    "chakra_json": check_chakra_json,
    "sends": check_sends,
    "te_ccl": check_te_ccl,
    "sccl": check_sccl,
}
"""The check of each target; the folder of its seeds has the same name."""


def archive_files() -> list[tuple[str, bytes]]:
    """Returns the names and contents of the files of the archive."""
    with tarfile.open(fileobj=io.BytesIO(read_content(ARCHIVE))) as packed:
        members = [member for member in packed.getmembers() if member.isfile()]
        files = [(member.name, packed.extractfile(member)) for member in members]
        return [(name, file.read()) for name, file in files if file is not None]


def pack(files: dict[str, bytearray]) -> bytes:
    """Returns a tar file that holds these files."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name in sorted(files):
            header = tarfile.TarInfo(name)
            header.size = len(files[name])
            tar.addfile(header, io.BytesIO(files[name]))
    return packed.getvalue()


def _refusals_of_file(content: bytes, suffix: str, *readers: Callable[[Path], object]) -> list[str]:
    with tempfile.NamedTemporaryFile(suffix=suffix) as file:
        path = Path(file.name)
        path.write_bytes(content)
        return [said for reader in readers for said in _refusals(lambda read=reader: read(path))]  # type: ignore[misc]


def _refusals(read: Callable[[], object]) -> list[str]:
    """Returns the message of the refusal, or nothing if the input was read."""
    try:
        read()
    except (OpticollError, otf2_archive.NotIntactError) as error:
        said = [str(error)]
    else:
        return []
    assert all(said)
    assert escaped(said[0]).isprintable()
    return said
