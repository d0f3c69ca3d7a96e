"""What must hold of the readers in Python, whatever a file holds: it is read, or refused with an
error of opticoll that says something. `python_readers.py` looks for files of which this is not so;
the tests try the seeds and some hundreds of changes of them.
"""

from __future__ import annotations

import io
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path

from opticoll.errors import OpticollError
from opticoll.formats import otf2_archive, parquet_table
from opticoll.formats.content import read_content
from opticoll.inputs import imported, layer_profile, task_list
from opticoll.inputs.fabric_files import read_fabric, read_graph
from opticoll.inputs.scenarios import read_scenario
from opticoll.outputs.terminal_text import escaped

FUZZ = Path(__file__).parent
ARCHIVE = FUZZ.parent / "tests/data/ep.A.16.otf2.tar.zst"

YAML_READERS: tuple[Callable[[Path], object], ...] = (
    read_fabric,
    read_scenario,
    layer_profile.read,
    task_list.read,
)


def check_yaml(content: bytes) -> list[str]:
    """What each reader of YAML says of a file."""
    return _of_file(content, ".yaml", *YAML_READERS)


def check_graph_json(content: bytes) -> list[str]:
    """A graph in node-link form is read or refused."""
    return _of_file(content, ".json", read_graph)


def check_graphml(content: bytes) -> list[str]:
    """A graph in GraphML is read or refused."""
    return _of_file(content, ".graphml", read_graph)


def check_nccl_topology(content: bytes) -> list[str]:
    """A topology of NCCL is read or refused."""
    return _of_file(content, ".xml", read_graph)


def check_layers(content: bytes) -> list[str]:
    """A table of layers is read or refused."""
    return _of_file(content, ".csv", layer_profile.read)


def check_parquet(content: bytes) -> list[str]:
    """A Parquet file is read or refused."""
    return _said(lambda: parquet_table.trace(content))


def check_tar(content: bytes) -> list[str]:
    """A packed archive is read or refused."""

    def read() -> None:
        with otf2_archive.unpacked(Path("changed.tar"), content) as anchor:
            otf2_archive.to_trace(otf2_archive.read(anchor))

    return _said(read)


def check_sends(content: bytes) -> list[str]:
    """A CSV of sends is read, placed and judged, or refused."""
    return _of_file(content, ".csv", lambda path: imported.read_plan(path, "sends"))


def check_te_ccl(content: bytes) -> list[str]:
    """A result of TE-CCL is read, placed and judged, or refused."""
    return _of_file(content, ".json", lambda path: imported.read_plan(path, "te_ccl", ranks=2))


CHECKS: dict[str, Callable[[bytes], list[str]]] = {
    "yaml": check_yaml,
    "graph_json": check_graph_json,
    "graphml": check_graphml,
    "nccl_topology": check_nccl_topology,
    "layers": check_layers,
    "parquet": check_parquet,
    "tar": check_tar,
    "sends": check_sends,
    "te_ccl": check_te_ccl,
}
"""By the name of the target, which is also that of the folder of its seeds."""


def archive_files() -> list[tuple[str, bytes]]:
    """The files of an archive by name."""
    with tarfile.open(fileobj=io.BytesIO(read_content(ARCHIVE))) as packed:
        members = [member for member in packed.getmembers() if member.isfile()]
        files = [(member.name, packed.extractfile(member)) for member in members]
        return [(name, file.read()) for name, file in files if file is not None]


def pack(files: dict[str, bytearray]) -> bytes:
    """A tar file of files by name."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name in sorted(files):
            header = tarfile.TarInfo(name)
            header.size = len(files[name])
            tar.addfile(header, io.BytesIO(files[name]))
    return packed.getvalue()


def _of_file(content: bytes, suffix: str, *readers: Callable[[Path], object]) -> list[str]:
    with tempfile.NamedTemporaryFile(suffix=suffix) as file:
        path = Path(file.name)
        path.write_bytes(content)
        return [said for reader in readers for said in _said(lambda read=reader: read(path))]  # type: ignore[misc]


def _said(read: Callable[[], object]) -> list[str]:
    """What was said where something was refused."""
    try:
        read()
    except (OpticollError, otf2_archive.NotIntactError) as error:
        said = [str(error)]
    else:
        return []
    assert all(said)
    assert escaped(said[0]).isprintable()
    return said
