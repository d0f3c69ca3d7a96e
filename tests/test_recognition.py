"""Files of other programs: recognized by content, and refused with what they are."""

from __future__ import annotations

from pathlib import Path

import pytest

import opticoll
from opticoll.formats import FORMATS
from opticoll.formats.recognition import CONTENTS, recognize
from support import Run

XML = '<?xml version="1.0"?>\n'

SAMPLES: dict[str, str | bytes] = {
    "parquet": b"PAR1\x15\x04",
    "otf2": b"\x03BOTF2",
    "numpy": b"\x93NUMPY\x01\x00",
    "sqlite": b"SQLite format 3\x00\x10\x00",
    "xz": b"\xfd7zXZ\x00\x00\x04",
    "gzip": b"\x1f\x8b\x08\x00",
    "bzip2": b"BZh91AY",
    "zip": b"PK\x03\x04\x14",
    "hdf5": b"\x89HDF\r\n\x1a\n",
    "pickle": b"\x80\x04\x95",
    "utf_16": "graph [ ]".encode("utf-16"),
    "picture": b"\x89PNG\r\n\x1a\n",
    "elf": b"\x7fELF\x02\x01\x01",
    "git_lfs": "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n",
    "html": "<!DOCTYPE html><html><body>404</body></html>",
    "goal_binary": (4223).to_bytes(8, "little") + bytes(6),
    "plan": "opticoll plan 1\n",
    "sends": "# all_gather ranks=2\nstep,source,destination,chunk\n",
    "time_independent": "# of two ranks\n0 init\n0 allToAllV 1 1 2\n",
    "table": "# app=x ranks=2\nrank,call,peer\n",
    "time_independent_index": "traces/rank-0.txt\ntraces/rank-1.txt\n",
    "goal": "/* of two */\nnum_ranks 2\nrank 0 {\n}\n",
    "gml": 'Creator "me"\nVersion 1\ngraph\n[ node [ id 0 ] ]',
    "dot": "strict graph net {\n  a -- b [label=x]\n}\n",
    "pajek": '*Vertices 2\n1 "a"\n',
    "sndlib_native": "?SNDlib native format; type: network; version: 1.0\n",
    "htsim_topology": "# tiny\nNodes 8\nTiers 2\nPodsize 8\n",
    "htsim_messages": "Nodes 8\nConnections 1\n0->1 id 1 start 0 size 10\n",
    "simai_workload": "HYBRID_TRANSFORMER model_parallel_NPU_group: 2\n1\nfirst -1 5 ALLREDUCE 8\n",
    "tuner": "# a table\nallreduce,0,65536,tree,ll,-1,2,16\n",
    "msccl": XML + '<!-- of two --><algo name="x">',
    "nccl_topology": '<system version="1"><cpu numaid="0"/></system>',
    "graphml": XML + '<graphml xmlns="x">',
    "sndlib": XML + '<network xmlns="x"><networkStructure>',
    "nccl_graphs": '<graphs version="1"><graph id="0"/></graphs>',
    "hwloc": XML + '<topology version="2.0"><object type="Machine"/></topology>',
    "simgrid_platform": XML + '<platform version="4.1">',
    "gexf": XML + '<gexf version="1.3">',
    "mscclpp": '{"name": "x", "gpus": [{"id": 0, "threadblocks": []}]}',
    "te_ccl": '{"7-Flows": ["Chunk 0 from 1 traveled over 0->1 in epoch 2"]}',
    "sccl": '{"msccl_type": "topology", "nodes": 2, "links": []}',
    "kineto": '{"schemaVersion": 1, "traceEvents": []}',
    "pytorch_trace": '{"schema": "1.1.1", "pid": 5, "nodes": [{"ctrl_deps": 1}]}',
    "chakra_json": '[{"id": "1", "name": "x", "ctrlDeps": ["0"]}]',
    "astra_system": '{"scheduling-policy": "LIFO"}',
    "astra_dimensions": '{"logical-dims": ["8", "2"]}',
    "astra_memory": '{"memory-type": "NO_MEMORY_EXPANSION"}',
    "astra_network_1": '{"topology-name": "x", "topologies-per-dim": ["Ring"]}',
    "node_link": '{"directed": false, "nodes": [{"id": 0}]}',
    "astra_network": "topology: [ Ring ]  # one\nnpus_count: [ 8 ]\n",
    "infragraph": "name: x\ndevices:\n- name: y\ninstances:\n- name: z\n",
    "fabric": "family: custom\nranks: 2\n",
    "study": "study: tiny\ncommand: plan\n",
    "nvidia_topo": "\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV18\t0-7\n",
    "ns3_topology": "3 1 2\n2\n0 2 100Gbps 1us 0\n1 2 100Gbps 1us 0\n",
    "liballprof": "# tracer\nMPI_Init:12.5:-\n",
    "nccl_tests": "# nThread 1 nGpus 8\n",
    "hostfile": "# two hosts\nnode1 slots=8\nnode2 slots=8\n",
    "slurm": "# cluster\nSwitchName=s0 Nodes=n[0-3]\n",
    "ibnetdiscover": 'vendid=0x2c9\nSwitch\t36 "S-0002c9"\n',
    "chakra": b"\x07\x0a\x050.0.4\x04\x08\x01\x18\x04",
}
"""The beginning of a file of each kind."""


@pytest.mark.parametrize("name", SAMPLES)
def test_each_kind_of_file_is_recognized_by_its_beginning(name: str) -> None:
    sample = SAMPLES[name]
    kind = recognize(sample.encode() if isinstance(sample, str) else sample)
    assert kind is not None
    assert kind.name == name


def test_every_kind_has_a_sample_and_every_format_that_is_read_a_kind() -> None:
    names = {kind.name for kind in CONTENTS}
    assert names == SAMPLES.keys()
    # The lines of edge lists have no signature.
    assert {form.name for form in FORMATS if form.reads} - {"edge_list"} <= names


@pytest.mark.parametrize(
    "text", ["", "a b 80\nb c 20\n", "3\n2\n0 1\n1 2\n", "ranks: [8, 16]\n", "a,b\n1,2\n"]
)
def test_texts_without_a_signature_are_of_no_kind(text: str) -> None:
    assert recognize(text.encode()) is None


@pytest.mark.parametrize(
    ("command", "name", "words"),
    [
        (
            "bound all_gather --fabric",
            "study",
            "a study of opticoll, not a fabric; `opticoll sweep",
        ),
        ("bound all_gather --fabric", "numpy", "an array of NumPy, not a fabric"),
        ("congestion all_gather --fabric", "astra_system", "a system of ASTRA-sim, not a fabric"),
        ("verify", "graphml", "GraphML, not a plan or schedule; give it as `--fabric FILE`"),
        ("import", "simai_workload", "a workload of SimAI or ASTRA-sim 1, not a plan or schedule"),
        ("replay", "plan", "a plan of opticoll, not a trace; `opticoll simulate FILE` times it"),
        ("replay", "xz", "compressed with xz, not a trace; decompress the file first: xz -dk FILE"),
    ],
)
@pytest.mark.parametrize("ending", ["", ".yaml", ".json", ".txt"])
def test_a_reader_says_what_a_file_of_another_kind_is(
    run: Run, tmp_path: Path, command: str, name: str, words: str, ending: str
) -> None:
    path = tmp_path / f"theirs{ending}"
    sample = SAMPLES[name]
    path.write_bytes(sample.encode() if isinstance(sample, str) else sample)
    more = ["--output", tmp_path / "theirs.plan"] if command == "import" else []
    finished = run(*command.split(), path, *more)
    assert (finished.code, finished.out) == (2, "")
    assert f"{path}` is " in finished.err
    assert words in finished.err


def test_a_file_of_a_fabric_needs_no_ending(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "network"
    path.write_text("graph [ node [ id 0 ] node [ id 1 ] edge [ source 0 target 1 ] ]")
    finished = run("bound", "all_gather", "--fabric", f"{path}:rate=8Gb/s", "--json")
    assert finished.code == 0
    assert '"optimum":"1"' in finished.out.replace(" ", "")
    path.write_text("nothing of this")
    finished = run("bound", "all_gather", "--fabric", path)
    assert finished.code == 2
    assert "no fabric that opticoll recognizes; `opticoll list formats`" in finished.err


@pytest.mark.parametrize("ending", ["gml", "yaml", "json"])
def test_a_byte_order_mark_and_ends_of_lines_change_nothing(tmp_path: Path, ending: str) -> None:
    texts = {
        "gml": 'graph [\nnode [ id 0 label "a" ]\nnode [ id 1 ]\nedge [ source 0 target 1 ]\n]\n',
        "yaml": "family: custom\nranks: [a, b]\nlinks: [[a, b]]\n",
        "json": '{"nodes": [{"id": "a"}, {"id": "b"}],\n"links": [{"source": "a", "target": "b"}]}',
    }
    plain, marked = tmp_path / f"plain.{ending}", tmp_path / f"marked.{ending}"
    plain.write_text(texts[ending])
    marked.write_bytes(b"\xef\xbb\xbf" + texts[ending].replace("\n", "\r\n").encode())
    assert opticoll.read_fabric(marked) == opticoll.read_fabric(plain)


def test_a_demand_says_what_another_file_is(run: Run, tmp_path: Path) -> None:
    for name, words in (("numpy", "an array of NumPy"), ("utf_16", "a text in UTF-16")):
        path = tmp_path / f"{name}.csv"
        path.write_bytes(bytes(SAMPLES[name]))  # type: ignore[arg-type]
        shown = run("bound", "all_to_all", "--fabric", "crossbar:ranks=2", "--demand", path)
        assert f"is {words}, not a CSV file" in shown.err


def test_a_text_of_no_kind_is_no_trace(run: Run, tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_text("one\ntwo\n")
    assert "no trace that opticoll recognizes" in run("replay", tmp_path / "list.txt").err
