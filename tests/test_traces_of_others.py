"""Traces of other programs that become events of the core: SimAI, liballprof, Chakra as JSON.

Expected times are computed by hand. On `LINE`, a message of n bytes takes n ns.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import opticoll
from chakra_files import (
    COMPUTE,
    RECEIVE,
    SEND,
    fields,
    header,
    messages,
    node,
    read_varint,
    unpacked,
)
from opticoll.errors import OpticollError
from opticoll.formats import trace_file
from opticoll.formats.chakra_nodes import binary_of
from support import Run

LINE = "hockney:latency=0s,rate=8Gb/s"

HEAD = "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: {tp} ep: {ep} pp: 1 all_gpus: {n}"


def time_ns(path: Path, **options: Any) -> float:
    algorithms = {"all_reduce": "ring", "all_gather": "direct", "reduce_scatter": "direct"}
    chosen = {"all_to_all": "direct"} | algorithms
    return opticoll.replay(path, LINE, collectives=chosen, **options).time_ps / 1000


def workload(folder: Path, *layers: str, tp: int = 2, ep: int = 1, n: int = 4) -> Path:
    path = folder / "workload.txt"
    head = HEAD.format(tp=tp, ep=ep, n=n)
    path.write_text("\n".join([head, str(len(layers)), *layers]) + "\n")
    return path


class TestSimAI:
    def test_a_layer_computes_and_communicates_one_after_the_other(self, tmp_path: Path) -> None:
        # An all_reduce of n bytes on two ranks by `ring`: two messages of n / 2 bytes.
        layer = "a -1 1000 ALLREDUCE 4096 2000 NONE 0 3000 ALLREDUCE 8192 100"
        assert time_ns(workload(tmp_path, layer)) == 1000 + 4096 + 2000 + 3000 + 8192 + 100

    def test_collectives_of_weights_run_beside_the_backward_pass(self, tmp_path: Path) -> None:
        first = "a\t-1\t10\tNONE\t0\t20000\tNONE\t0\t40\tNONE\t0\t0"
        last = "b -1 10 NONE 0 20 NONE 0 40 ALLREDUCE 8192 0"
        assert time_ns(workload(tmp_path, first, last)) == 10 + 10 + 20 + 40 + 20000 + 40
        first = "a -1 10 NONE 0 20 NONE 0 40 NONE 0 0"
        assert time_ns(workload(tmp_path, first, last)) == 10 + 10 + 20 + 40 + 8192

    @pytest.mark.parametrize(
        ("kind", "messages", "size"),
        [
            # Eight ranks in pairs: each rank sends half of its vector to the other rank.
            ("ALLGATHER", 8, 1024),
            ("ALLGATHER_EP", 8, 1024),
            ("ALLGATHER_DP_EP", 8, 1024),
            ("ALLTOALL_EP", 8, 1024),
            ("REDUCESCATTER", 8, 1024),
        ],
    )
    def test_sizes_are_those_of_whole_vectors(
        self, tmp_path: Path, kind: str, messages: int, size: int
    ) -> None:
        layer = f"a -1 0 {kind} 2048 0 NONE 0 0 NONE 0 0"
        path = workload(tmp_path, layer, tp=2, ep=2, n=8)
        row = opticoll.replay(
            path,
            LINE,
            collectives=dict.fromkeys(("all_gather", "all_to_all", "reduce_scatter"), "direct"),
        )
        assert (row.messages, row.bytes, row.time_ps) == (messages, messages * size, size * 1000)

    def test_a_data_group_has_a_rank_of_each_tensor_group(self, tmp_path: Path) -> None:
        layer = "a -1 0 NONE 0 0 NONE 0 0 REDUCESCATTER 4096 0"
        row = opticoll.replay(
            workload(tmp_path, layer, n=8), LINE, collectives={"reduce_scatter": "direct"}
        )
        # Two groups of four ranks; each rank sends a quarter of its vector to the three others.
        assert (row.messages, row.bytes) == (2 * 4 * 3, 2 * 4 * 3 * 1024)

    @pytest.mark.parametrize(
        ("old", "new", "words"),
        [
            ("all_gpus: 4", "", "line 1: `all_gpus: N` is missing"),
            ("all_gpus: 4", "all_gpus: 5", "`all_gpus: 5` is not a multiple of 2"),
            ("pp: 1", "pp: 2", "does not state the messages between stages"),
            ("HYBRID_TRANSFORMER_FWD_IN_BCKWD", "DATA", "line 1: the loop `DATA` is not read"),
            ("ALLREDUCE", "BROADCAST", "line 3: the collective `BROADCAST` is not read"),
            ("\n1\n", "\n2\n", "line 2: there are 1 layers, not `2`"),
            (" 0 100", " 100", "line 3: there are 11 fields"),
            (" 1000 ", " x ", "line 3: `x` is not a whole number"),
        ],
    )
    def test_what_is_not_read_is_named(
        self, tmp_path: Path, old: str, new: str, words: str
    ) -> None:
        path = workload(tmp_path, "a -1 1000 ALLREDUCE 4096 2 NONE 0 3 NONE 0 100")
        path.write_text(path.read_text().replace(old, new, 1))
        with pytest.raises(OpticollError, match=r"workload\.txt") as caught:
            trace_file.read(path)
        assert words in str(caught.value)


def allprof(folder: Path, *lines: str, ranks: int = 2) -> Path:
    """Writes a trace with the same lines on all ranks; {me} and {other} are two ranks."""
    for rank in range(ranks):
        told = [line.format(me=f"0,{rank},{ranks}", other=(rank + 1) % ranks) for line in lines]
        text = "\n".join(["# tracer", "MPI_Init:-:0:0:100.5", *told]) + "\n"
        (folder / f"pmpi-trace-rank-{rank}.txt").write_text(text)
    return folder / "pmpi-trace-rank-0.txt"


RECEIVED = "MPI_Irecv:110.5:5:1000:11,8,8:{other}:7:{me}:1000:111.5"
SENT = "MPI_Isend:121.5:5:1000:11,8,8:{other}:7:{me}:1008:123.5"
END = "MPI_Finalize:400:-"


class TestLiballprof:
    def test_messages_take_their_bytes_and_work_fills_the_gaps(self, tmp_path: Path) -> None:
        path = allprof(tmp_path, RECEIVED, SENT, "MPI_Waitall:125.5:2:1000:0:390", END)
        # 10 us, 10 us, 2 us and 10 us of work; 8,000 bytes end 8 us after they are sent.
        assert time_ns(path) == 20_000 + 8000 + 10_000
        assert time_ns(tmp_path) == time_ns(path)

    def test_calls_that_exchange_nothing_count_as_work(self, tmp_path: Path) -> None:
        asked = "MPI_Comm_rank:102:5:{me}:104"
        path = allprof(tmp_path, asked, "MPI_Barrier:120.5:{me}:130", "MPI_Finalize:131:-")
        assert time_ns(path) == 21_000 + 0

    @pytest.mark.parametrize(("step", "requests"), [(8, 1000), (4, 1004)])
    def test_the_bytes_of_a_request_follow_from_addresses(
        self, tmp_path: Path, step: int, requests: int
    ) -> None:
        first = RECEIVED.replace(":1000:111.5", f":{requests}:111.5")
        second = SENT.replace("1008", str(requests + step))
        path = allprof(tmp_path, first, second, f"MPI_Waitall:125.5:2:{requests}:0:390", END)
        assert time_ns(path) == 20_000 + 8000 + 10_000

    @pytest.mark.parametrize(
        ("call", "messages", "size"),
        [
            ("MPI_Sendrecv:200:5:4:1,4,4:{other}:0:6:4:1,4,4:{other}:0:{me}:0:220", 2, 16),
            ("MPI_Allreduce:200:5:6:16:2,4,4:3:{me}:220", 4, 32),
            ("MPI_Alltoall:200:5:4:2,8,8:6:4:2,8,8:{me}:220", 2, 32),
            ("MPI_Bcast:200:5:3:21,1,1:1:{me}:220", 1, 3),
            ("MPI_Reduce:200:5:6:3:21,1,1:3:1:{me}:220", 1, 3),
            ("MPI_Gather:200:5:3:21,1,1:6:3:21,1,1:0:{me}:220", 1, 3),
            ("MPI_Scatter:200:5:3:21,1,1:6:3:21,1,1:0:{me}:220", 1, 3),
            ("MPI_Allgather:200:5:3:21,1,1:6:3:21,1,1:{me}:220", 2, 3),
        ],
    )
    def test_calls_become_messages_of_their_bytes(
        self, tmp_path: Path, call: str, messages: int, size: int
    ) -> None:
        path = allprof(tmp_path, call, END)
        kinds = ("all_reduce", "all_to_all", "broadcast", "reduce", "gather", "scatter")
        algorithms = dict.fromkeys((*kinds, "all_gather"), "direct")
        algorithms |= {"all_reduce": "ring", "broadcast": "binomial", "reduce": "binomial"}
        row = opticoll.replay(path, LINE, collectives=algorithms)
        assert (row.messages, row.bytes) == (messages, messages * size)

    @pytest.mark.parametrize(
        ("call", "words"),
        [
            ("MPI_Barrier:200:0,0,3:220", "line 3: a communicator of 3 of the 2 ranks"),
            ("MPI_Recv:200:5:1:1,4,4:-1:0:{me}:0:220", "line 3: MPI_Recv has the rank -1"),
            ("MPI_Alltoallv:200:5:220", "line 3: MPI_Alltoallv is not read; Send, Recv"),
            ("MPI_Bcast:200:5:x:21,1,1:1:{me}:220", "line 3: the argument 2 of MPI_Bcast"),
            ("MPI_Barrier:90:{me}:220", "line 3: the call starts before"),
            ("MPI_Barrier:soon:{me}:220", "line 3: `soon` is not a time"),
            ("nothing", "line 3: `nothing` is not a call"),
        ],
    )
    def test_what_is_not_read_is_named(self, tmp_path: Path, call: str, words: str) -> None:
        path = allprof(tmp_path, call, END)
        with pytest.raises(OpticollError) as caught:
            trace_file.read(path)
        assert words in str(caught.value)

    def test_a_missing_rank_is_named(self, tmp_path: Path) -> None:
        path = allprof(tmp_path, END, ranks=3)
        (tmp_path / "pmpi-trace-rank-1.txt").unlink()
        with pytest.raises(OpticollError, match=r"no `pmpi-trace-rank-1\.txt`"):
            trace_file.read(path)


JSON = """{
  "version": "0.0.4",
  "attr": [{"name": "schema", "stringVal": "1.0.2"}]
}{
  "name": "work",
  "type": "COMP_NODE",
  "durationMicros": "12"
}{
  "id": "1",
  "name": "sum",
  "type": "COMM_COLL_NODE",
  "ctrlDeps": ["0"],
  "dataDeps": ["0"],
  "attr": [
    {"name": "is_cpu_op", "boolVal": false},
    {"name": "comm_type", "int64Val": "0"},
    {"name": "comm_size", "uint64Val": "4096"},
    {"name": "involved_dim", "boolList": {"values": [true]}}
  ]
}
"""

ASTRA = """{"workload_graph": [
  {"Id": 0, "Name": "work", "NodeType": 4, "ctrlDeps": [], "data_deps": [], "runtime": 12},
  {"Id": 1, "Name": "sum", "NodeType": 7, "data_deps": [0], "is_cpu_op": false,
   "comm_type": 0, "comm_size": 4096}
], "workload_name": "x"}
"""


def printed(trace: bytes) -> str:
    """Returns a trace as `chakra_jsonizer` prints it."""
    first, *nodes = messages(trace)
    _, start = read_varint(first, 0)
    inside = [dict(fields(value)) for number, value in fields(first[start:]) if number == 2]
    told: list[dict[str, Any]] = [
        {"version": "0.0.4", "attr": [valued(one.pop(1).decode(), *one.values()) for one in inside]}
    ]
    kinds = {COMPUTE: "COMP_NODE", SEND: "COMM_SEND_NODE", RECEIVE: "COMM_RECV_NODE"}
    for one in map(unpacked, nodes):
        told.append(
            {
                "id": str(one.pop("id")),
                "name": one.pop("name", b"").decode(),
                "type": kinds[one.pop("type")],
                "dataDeps": [str(other) for other in one.pop("after")],
                "durationMicros": str(one.pop("micros", 0)),
                "attr": [valued(key, value) for key, value in one.items()],
            }
        )
    return "".join(json.dumps(one, indent=2) for one in told)


def valued(name: str, value: int | bytes) -> dict[str, str]:
    field = "int64Val" if isinstance(value, int) else "stringVal"
    return {"name": name, field: str(value) if isinstance(value, int) else value.decode()}


class TestChakraAsJson:
    def test_the_binary_form_is_that_of_the_nodes(self) -> None:
        text = '{"Id": 3, "Name": "a", "NodeType": 4, "runtime": 12, "data_deps": [1, 300]}'
        assert binary_of(text.encode()) == header({}) + node(
            3, COMPUTE, [1, 300], name="a", micros=12
        )

    @pytest.mark.parametrize("text", [JSON, ASTRA, f"[{JSON.replace('}{', '},{')}]"])
    def test_a_replay_has_the_times_of_the_nodes(self, tmp_path: Path, text: str) -> None:
        for rank in (0, 1):
            (tmp_path / f"work.{rank}.json").write_text(text)
        for source in (tmp_path / "work.1.json", tmp_path):
            assert time_ns(source) == 12_000 + 4096

    @pytest.mark.parametrize(
        ("old", "new", "words"),
        [
            ('"12"', '"soon"', "node 0: the duration: `soon` is not a whole number"),
            ('"comm_size"', '"size"', "node 1: it has no comm_size"),
            ('["0"]', "[0.5]", "node 1: the control dependencies: `0.5` is not a whole number"),
            ("COMP_NODE", "NODE", "node 0: the type: `NODE` is not a whole number"),
            ("}{", "} 5 {", "object 2 is not a node"),
            ("}{", "}[", "this is not valid JSON: Expecting"),
        ],
    )
    def test_a_malformed_node_is_named(
        self, tmp_path: Path, old: str, new: str, words: str
    ) -> None:
        path = tmp_path / "work.0.json"
        path.write_text(JSON.replace(old, new, 1))
        with pytest.raises(OpticollError) as caught:
            trace_file.read(path)
        assert words in str(caught.value)
        assert "byte" not in str(caught.value)

    def test_a_collective_as_json_is_proved_like_its_binary_form(
        self, run: Run, tmp_path: Path
    ) -> None:
        plan = opticoll.plan("all_reduce", "torus:dims=2x2", "ring")
        plan.export(tmp_path / "ours.et", size=1024)
        for rank in range(4):
            content = (tmp_path / f"ours.{rank}.et").read_bytes()
            (tmp_path / f"theirs.{rank}.json").write_text(printed(content))
        shown = run("verify", tmp_path / "theirs.0.json")
        assert (shown.code, "all_reduce on 4 ranks" in shown.out) == (0, True)
        path = tmp_path / "theirs.2.json"
        path.write_text(path.read_text().replace('"COMM_RECV_NODE"', '"COMP_NODE"', 1))
        assert run("verify", tmp_path / "theirs.0.json").code == 1

    def test_replay_of_the_command_line_recognizes_the_form(self, run: Run, tmp_path: Path) -> None:
        path = tmp_path / "alone.json"
        path.write_text(ASTRA)
        assert "12.00 us" in run("replay", path).out
