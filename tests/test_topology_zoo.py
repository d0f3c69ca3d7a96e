"""Every file of the Internet Topology Zoo is read, or refused with a sentence that is true.

The folder is named by `OPTICOLL_TOPOLOGY_ZOO`; its files are not part of this repository. NetworkX
counts nodes, edges and connected parts independently.
"""

from __future__ import annotations

import os
import re
import warnings
from pathlib import Path

import networkx
import pytest

from opticoll.errors import OpticollError, ReadingNote
from opticoll.inputs.fabric_files import parse_fabric

ZOO = os.environ.get("OPTICOLL_TOPOLOGY_ZOO")
FILES = sorted(
    path for path in Path(ZOO or "/nowhere").glob("*") if path.suffix in (".graphml", ".gml")
)


def graph_of(path: Path) -> networkx.Graph:
    if path.suffix == ".graphml":
        return networkx.read_graphml(path)
    # Labels are not unique in the Zoo.
    return networkx.read_gml(path, label="id")


@pytest.mark.skipif(not FILES, reason="OPTICOLL_TOPOLOGY_ZOO names no folder with graphs")
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_file_of_the_zoo_is_read_or_refused_truly(path: Path) -> None:
    graph = graph_of(path)
    links = [(start, end) for start, end in graph.edges() if start != end]
    kinds = {node: str(kind).lower() for node, kind in graph.nodes(data="type")}
    ranks = {node for node, kind in kinds.items() if kind not in ("switch", "router")}
    joined = networkx.connected_components(networkx.Graph(graph))
    parts = sorted((part & ranks for part in joined if part & ranks), key=len)
    options = "rate=10Gb/s"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ReadingNote)
        strong = networkx.strongly_connected_components(networkx.DiGraph(graph))
        if not any(ranks <= part for part in strong) and graph.is_directed():
            # yEd, which drew the Zoo, writes all graphs as directed.
            with pytest.raises(OpticollError, match=r":directed=no makes them lead both ways"):
                parse_fabric(f"{path}:{options}")
            options += ",directed=no"
        if len(parts) > 1:
            with pytest.raises(OpticollError, match="parts that no links join") as caught:
                parse_fabric(f"{path}:{options}")
            stated = re.search(r"it has (\d+) parts .*: members=(\S+) picks", str(caught.value))
            assert stated is not None
            assert int(stated[1]) == len(parts)
            assert parse_fabric(f"{path}:{options},members={stated[2]}").ranks == len(parts[-1])
            return
        fabric = parse_fabric(f"{path}:{options}")
        assert (fabric.ranks, len(fabric.vertex_names)) == (len(ranks), len(graph))
        assert fabric.link_count == (1 if graph.is_directed() and "no" not in options else 2) * len(
            links
        )
        if not graph.is_directed():
            fibres = parse_fabric(f"{path}:{options},wavelengths=4")
            assert (fibres.ranks, fibres.family) == (len(ranks), "wdm_graph")
