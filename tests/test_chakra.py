"""Chakra traces of a collective: read, proved by both verifiers, written, and timed."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import mutants
import opticoll
from chakra_files import (
    COLLECTIVE,
    COMPUTE,
    RECEIVE,
    SEND,
    finished_ns,
    header,
    messages,
    node,
    sized,
    text,
    unpacked,
    varint,
)
from mutants import CHAKRA, judged
from opticoll import Program
from opticoll._core import make_plan
from opticoll.execution.payload import Payload
from opticoll.reference.chakra import read_chakra
from opticoll.reference.msccl import read_msccl
from opticoll.reference.plan import NotAPlan, TooLarge
from opticoll.reference.program import verify_program
from support import Run

DATA = Path(__file__).parent / "data/programs"
OTHERS = os.environ.get("OPTICOLL_CHAKRA")
"""A folder with Chakra traces of others, which are not part of this repository."""

MIB = 2**20


def wrong(traces: list[bytes], *, in_place: bool = True) -> tuple[set[str], set[str]]:
    """Returns the rules that traces break, by each verifier; `refused` if a reader refuses them."""
    return mutants.wrong(traces, CHAKRA, in_place=in_place)


def sent(rank: int, chunk: int, tag: int = 0, **more: object) -> dict[str, Any]:
    """Returns the attributes of a node that sends to a rank."""
    told: dict[str, Any] = {"comm_dst": rank, "comm_tag": tag, "comm_size": 1024}
    return {**told, "msg_chunk_cnt": 1, "msg_chunk_idx": chunk, "chunk_offset": chunk, **more}


def received(rank: int, chunk: int, tag: int = 0, **more: object) -> dict[str, Any]:
    told = sent(rank, chunk, tag, **more)
    told["comm_src"] = told.pop("comm_dst")
    return told


def pair(first: list[bytes], second: list[bytes], **more: object) -> list[bytes]:
    """Returns the traces of an all_gather of two ranks."""
    head = header({"collective": "allgather", **more})
    return [head + b"".join(nodes) for nodes in (first, second)]


def right(integer: int = 9) -> list[bytes]:
    ranks = [
        [
            node(0, SEND, integer=integer, **sent(1 - rank, rank, total_chunk_cnt=2)),
            node(1, RECEIVE, [0], integer=integer, **received(1 - rank, 1 - rank)),
        ]
        for rank in (0, 1)
    ]
    return pair(*ranks)


@pytest.mark.parametrize("integer", [7, 9, 11, 13, 15, 17, 19, 21, 23, 25])
def test_whole_numbers_may_have_any_type(integer: int) -> None:
    assert wrong(right(integer)) == (set(), set())


def test_what_a_node_waits_for_may_be_missing_and_the_header_may_have_a_version() -> None:
    added: list[dict[str, Any]] = [
        {"control": [77]},
        {"name": "a name"},
        {"micros": 5},
        {"involved": [1, 0]},
    ]
    for more in added:
        traces = right()
        extra = node(9, COMPUTE, [1, 4711], **more)
        assert wrong([one + extra for one in traces]) == (set(), set())
    head = header({"collective": "all_gather"}, version="0.0.4")
    rest = [b"".join(messages(one)[1:]) for one in right()]
    assert wrong([head + one for one in rest]) == (set(), set())


def converted(xml: str) -> list[bytes]:
    """Traces as ASTRA-sim's converter makes them of MSCCL XML, with the XML in the header."""
    head = header({"schema": "1.0.2-chakra.0.0.4", "input_file": xml, "collective": "allreduce"})
    traces = []
    for gpu in re.findall(r"<gpu.*?</gpu>", xml, re.DOTALL):
        nodes: list[bytes] = []
        for block in re.findall(r"<tb.*?</tb>", gpu, re.DOTALL):
            told = dict(re.findall(r'(\w+)="([^"]*)"', block.split(">")[0]))
            last: list[int] = []
            for line in re.findall(r"<step[^>]*>", block):
                one = dict(re.findall(r'(\w+)="([^"]*)"', line))
                where = f"_tb{told['id']}_step{one['s']}"
                size: dict[str, Any] = {
                    "comm_size": 131072 * int(one["cnt"]),
                    "comm_tag": int(told["chan"]),
                }
                if one["type"] == "s":
                    to: dict[str, Any] = {"comm_type": SEND, "comm_dst": int(told["send"])}
                    name = "COMM_SEND_NODE" + where
                    nodes.append(node(len(nodes), SEND, last, name=name, **size, **to))
                else:
                    of: dict[str, Any] = {"comm_type": RECEIVE, "comm_src": int(told["recv"])}
                    name = "COMM_RECV_NODE" + where
                    nodes.append(node(len(nodes), RECEIVE, last, name=name, **size, **of))
                    if one["type"] == "rrc":
                        last = [len(nodes) - 1]
                        name = "COMP_NODE" + where
                        nodes.append(node(len(nodes), COMPUTE, last, name=name, micros=7))
                last = [len(nodes) - 1]
        traces.append(head + b"".join(nodes))
    return traces


def ring_xml(ranks: int) -> str:
    """Returns a ring all_reduce of one channel, unfused, like ASTRA-sim's example."""
    gpus = []
    for rank in range(ranks):
        steps = []
        for turn in range(2 * (ranks - 1)):
            goes, comes = (rank - turn) % ranks, (rank - turn - 1) % ranks
            steps += [("s", goes), ("rrc" if turn < ranks - 1 else "r", comes)]
        lines = "\n".join(
            f'<step s="{at}" type="{kind}" srcbuf="i" srcoff="{chunk}" dstbuf="i" '
            f'dstoff="{chunk}" cnt="1" depid="-1" deps="-1" hasdep="0"/>'
            for at, (kind, chunk) in enumerate(steps)
        )
        peers = f'send="{(rank + 1) % ranks}" recv="{(rank - 1) % ranks}"'
        gpus.append(f'<gpu id="{rank}"><tb id="0" {peers} chan="0">\n{lines}\n</tb></gpu>')
    head = f'name="ring" nchannels="1" nchunksperloop="{ranks}" ngpus="{ranks}" coll="allreduce"'
    return f'<algo {head} inplace="1">\n' + "\n".join(gpus) + "\n</algo>"


def same(traces: list[bytes], xml: str) -> None:
    """Traces and the XML that they were made of are one program, which is proved from both."""
    ours, theirs = Program.from_chakra(traces), Program.from_msccl(xml)
    ranks = range(theirs.collective.ranks)
    assert [ours.thread_blocks_of(rank) for rank in ranks] == [
        theirs.thread_blocks_of(rank) for rank in ranks
    ]
    assert (ours.in_place, ours.out_of_place) == (theirs.in_place, theirs.out_of_place)
    for in_place in [
        mode for mode in (True, False) if (theirs.in_place if mode else theirs.out_of_place)
    ]:
        assert wrong(traces, in_place=in_place) == (set(), set())
        assert verify_program(read_msccl(xml), in_place=in_place) == []
        assert theirs.verify(in_place=in_place).violations == []


def test_a_converted_program_is_the_program_that_it_was_made_of() -> None:
    xml = ring_xml(5)
    same(converted(xml), xml)


@pytest.mark.skipif(not OTHERS, reason="OPTICOLL_CHAKRA names no folder of traces")
def test_the_custom_all_reduce_of_astra_sim_is_proved_and_equals_its_xml(run: Run) -> None:
    folder = Path(OTHERS or "") / "custom_ring_allreduce_8npus_1MB"
    traces = [(folder / f"custom_allreduce.{rank}.et").read_bytes() for rank in range(8)]
    same(traces, (folder / "custom_allreduce.xml").read_text())
    for path in (folder, folder / "custom_allreduce.3.et"):
        finished = run("verify", path)
        assert finished.code == 0
        assert "all_reduce on 8 ranks" in finished.out
    finished = run("run", folder, "--size", "8KiB")
    assert (finished.code, "every byte equals the definition" in finished.out) == (0, True)


KINDS = [one["name"] for one in opticoll.records("collectives") if one["name"] != "barrier"]
FABRICS = ["crossbar:ranks=6,latency=5us", "torus:dims=2x3", "wdm_ring:ranks=6,wavelengths=2"]


def exported(
    kind: str, fabric: str, algorithm: str = "auto", size: int | None = None
) -> list[bytes]:
    plan = opticoll.plan(kind, fabric, algorithm, size="64KiB")
    assert plan.verify() == []
    return Program.from_plan(plan).to_chakra(size or plan.collective.chunks * 24)


@pytest.mark.parametrize("fabric", FABRICS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_plan_comes_back_from_its_traces(kind: str, fabric: str) -> None:
    plan = opticoll.plan(kind, fabric, size="64KiB")
    try:
        program = Program.from_plan(plan)
    except opticoll.errors.ProgramError as error:
        pytest.skip(str(error))
    traces = program.to_chakra(plan.collective.chunks * 24)
    back = Program.from_chakra(traces)
    assert wrong(traces, in_place=back.in_place) == (set(), set())
    ours, theirs = (
        program.schedule(in_place=program.in_place),
        back.schedule(in_place=back.in_place),
    )
    texts = [make_plan(one, plan.fabric, "same").to_text() for one, _ in (ours, theirs)]
    assert texts[0] == texts[1]
    job = Payload(back.collective, 3, "uint32", "sum")
    ranks = range(back.collective.ranks)
    outputs = back.run(
        [job.input(rank).tobytes() for rank in ranks],
        elements=3,
        element_type="uint32",
        in_place=back.in_place,
    )
    assert [job.output(rank).tobytes() for rank in ranks] == outputs


RATE = 50 * 2**30 / 1e9
"""Bytes per nanosecond of ASTRA-sim's 50 GB/s."""


def cable(size: int) -> int:
    return int(500 + size / RATE)


def aware_switch(size: int) -> int:
    return 2 * int(500 + size / RATE)


def unaware_switch(size: int) -> int:
    return int(1000 + size / RATE)


def reduction(size: float) -> int:
    """Returns the time in ns of one write and two reads of local memory at 1600 GB/s."""
    return 3 * int(size / 1600)


HALVING = sum(reduction(MIB >> step) for step in range(2, 7)) + 10 * 13

# Times that ASTRA-sim printed, and the times that it adds to the network's in collectives of its
# own: 10 ns for each event at an end, and the reductions. It adds nothing in custom collectives.
PUBLISHED: dict[str, tuple[str, str, str, Callable[[int], int], int, int]] = {
    "custom ring": ("all_gather", "electrical_ring:ranks=16", "ring", cable, 0, 300_465),
    "custom, both ways": (
        *("all_gather", "electrical_ring:ranks=16", "ring_bidirectional"),
        *(cable, 0, 160_248),
    ),
    "all_gather": ("all_gather", "electrical_ring:ranks=64", "ring", cable, 640, 1_262_593),
    "all_reduce": (
        *("all_reduce", "electrical_ring:ranks=64", "ring", cable),
        *(63 * reduction(MIB // 64) + 10 * 127, 104_590),
    ),
    "reduce_scatter": (
        *("reduce_scatter", "electrical_ring:ranks=64", "ring", cable),
        *(63 * reduction(MIB // 64) + 640, 53_245),
    ),
    "all_to_all": ("all_to_all", "fully_connected:ranks=64", "direct", cable, 20, 825),
    "halving, aware": (
        *("all_reduce", "crossbar:ranks=64", "halving_doubling", aware_switch, HALVING, 89_964),
    ),
    "halving, unaware": (
        *("all_reduce", "crossbar:ranks=64", "halving_doubling", unaware_switch, HALVING, 51_518),
    ),
}


@pytest.mark.parametrize("case", PUBLISHED)
def test_exports_take_the_time_that_astra_sim_printed(case: str) -> None:
    kind, fabric, algorithm, hop_ns, added, printed = PUBLISHED[case]
    traces = exported(kind, fabric, algorithm, MIB)
    assert finished_ns(traces, hop_ns=hop_ns, rate=RATE) + added == printed


def test_a_collective_whose_message_is_removed_is_rejected() -> None:
    """ASTRA-sim ends with status 0, and says of 15 of 16 ranks that they finished."""
    traces = exported("all_gather", "electrical_ring:ranks=16", "ring_bidirectional", MIB)
    for rank in (0, 7):
        parts = messages(traces[rank])
        for place in range(1, len(parts)):
            lacking = [*traces]
            lacking[rank] = b"".join(parts[:place] + parts[place + 1 :])
            first, second = wrong(lacking)
            assert first & {"pairing", "deadlock", "connection"}
            assert second & {"pairing", "stuck", "connection"}


def test_sends_that_wait_for_their_own_receives_are_rejected() -> None:
    """ASTRA-sim ends with status 0, and no rank finished."""
    ranks = 4
    nodes = [
        [
            node(0, SEND, [1], **sent((rank + 1) % ranks, rank)),
            node(1, RECEIVE, **received((rank - 1) % ranks, (rank - 1) % ranks)),
        ]
        for rank in range(ranks)
    ]
    head = header({"collective": "allgather", "pieces": 1})
    first, second = wrong([head + b"".join(one) for one in nodes])
    assert "deadlock" in first
    assert "stuck" in second


def test_an_all_gather_of_1_kib_is_none_of_16_mib() -> None:
    """ASTRA-sim ends with status 0 after 519 ns."""
    chunks = 16 * MIB // 1024
    ranks = [
        [
            node(0, SEND, **sent(1 - rank, rank * chunks)),
            node(1, RECEIVE, **received(1 - rank, (1 - rank) * chunks)),
        ]
        for rank in (0, 1)
    ]
    first, second = wrong(pair(*ranks, pieces=chunks))
    assert first == {"wrong_result"}
    assert second == {"wrong_result"}
    whole = [
        [node(0, SEND, **sent(1 - rank, rank)), node(1, RECEIVE, **received(1 - rank, 1 - rank))]
        for rank in (0, 1)
    ]
    assert wrong(pair(*whole, size=1024)) == (set(), set())
    assert wrong(pair(*whole, size=16 * MIB)) == ({"refused"}, {"refused"})


def test_messages_whose_order_is_open_are_rejected() -> None:
    """Two sends with one tag that no dependency orders may leave in either order."""
    head = header({"collective": "allgather", "pieces": 2})

    def trace(rank: int, *, ordered: bool) -> bytes:
        other = 1 - rank
        nodes = [
            node(0, SEND, **sent(other, 2 * rank)),
            node(1, SEND, [0] if ordered else [], **sent(other, 2 * rank + 1)),
            node(2, RECEIVE, **received(other, 2 * other)),
            node(3, RECEIVE, [2], **received(other, 2 * other + 1)),
        ]
        return head + b"".join(nodes)

    assert wrong([trace(rank, ordered=True) for rank in (0, 1)]) == (set(), set())
    first, second = wrong([trace(rank, ordered=rank == 1) for rank in (0, 1)])
    assert first == second == {"connection"}
    tagged = [
        head
        + b"".join(
            [
                *(node(at, SEND, **sent(1 - rank, 2 * rank + at, at)) for at in (0, 1)),
                *(
                    node(2 + at, RECEIVE, **received(1 - rank, 2 * (1 - rank) + at, at))
                    for at in (0, 1)
                ),
            ]
        )
        for rank in (0, 1)
    ]
    assert wrong(tagged) == (set(), set())


def test_receives_need_no_order_with_the_sends_of_their_thread_block() -> None:
    """The first receive waits for a send, the second one for the first receive alone."""
    head = header({"collective": "allgather", "pieces": 2})

    def trace(rank: int) -> bytes:
        other = 1 - rank
        nodes = [
            node(0, SEND, **sent(other, 2 * rank)),
            node(1, RECEIVE, [0], **received(other, 2 * other)),
            node(2, SEND, [1], **sent(other, 2 * rank + 1)),
            node(3, RECEIVE, [1], **received(other, 2 * other + 1)),
        ]
        return head + b"".join(nodes)

    assert wrong([trace(rank) for rank in (0, 1)]) == (set(), set())


def test_a_race_is_found() -> None:
    """A chunk leaves though nothing orders it behind its receive."""
    ranks = 3
    head = header({"collective": "allgather", "pieces": 1})

    def trace(rank: int, *, waits: bool) -> bytes:
        to, of = (rank + 1) % ranks, (rank - 1) % ranks
        nodes = [
            node(0, SEND, **sent(to, rank)),
            node(1, RECEIVE, **received(of, of)),
            node(2, SEND, [0, 1] if waits else [0], **sent(to, of)),
            node(3, RECEIVE, [1], **received(of, (rank - 2) % ranks)),
        ]
        return head + b"".join(nodes)

    assert wrong([trace(rank, waits=True) for rank in range(ranks)]) == (set(), set())
    first, second = wrong([trace(rank, waits=rank > 0) for rank in range(ranks)])
    assert "race" in first
    assert "race" in second


@pytest.mark.parametrize("kind", ["all_gather", "all_reduce", "all_to_all"])
def test_every_mutant_is_rejected_by_both_verifiers_or_has_the_same_bytes(kind: str) -> None:
    traces = exported(kind, "electrical_ring:ranks=4", "direct" if kind == "all_to_all" else "ring")
    counts = judged(CHAKRA, traces, 12)
    assert counts["drop", "rejected"] == counts["drop", "tried"] == 12
    assert counts["offset", "rejected"]
    assert counts["dependency", "rejected"]


LONG = text(10, text(1, "comm_dst") * 50_000)
HOSTILE: dict[str, bytes] = {
    "empty": b"",
    "a text": b"# all_gather ranks=2\n",
    "a huge number": b"\xff" * 20,
    "a number of 65 bits": sized(varint(1 << 3) + b"\xff" * 9 + b"\x02"),
    "1 GB that is not there": varint(2**30) + b"\x0a",
    "2^63 bytes": varint(2**63),
    "an attribute of 1 GB": sized(varint(2 << 3 | 2) + varint(2**30)),
    "a group": sized(varint(1 << 3 | 3) * 1000),
    "nested": sized(text(2, text(2, text(2, text(2, b"\xff" * 4))) + b"\xff" * 8)),
    "field 0": sized(b"\x00\x00"),
    "no collective": header({"pieces": 1}),
    "an unknown collective": header({"collective": "alltoallv"}),
    "a barrier": header({"collective": "barrier"}),
    "many chunks": header({"collective": "allreduce", "pieces": 2**40}),
    "no chunks": header({"collective": "allreduce", "pieces": 0}),
    "pieces as a text": header({"collective": "allreduce", "pieces": "2"}),
    "a root that is no rank": header({"collective": "reduce", "root": 5}),
    "a root below 0": header({"collective": "reduce", "root": -1}),
    "other ranks": header({"collective": "allreduce", "ranks": 3}),
    "no mode": header({"collective": "allreduce", "inplace": 0, "outofplace": 0}),
    "no chunk attributes": header({"collective": "allreduce"}) + node(0, SEND, comm_dst=0),
    "a whole collective": header({"collective": "allreduce"}) + node(0, COLLECTIVE, comm_type=0),
    "an unknown type": header({"collective": "allreduce"}) + node(0, 99),
    "a number twice": header({"collective": "allreduce"}) + 2 * node(3, COMPUTE),
    "a peer below 0": header({"collective": "allreduce"}) + node(0, SEND, **sent(-1, 0)),
    "a tag below 0": header({"collective": "allreduce"}) + node(0, SEND, **sent(0, 0, -1)),
    "a peer as a text": header({"collective": "allreduce"})
    + node(0, SEND, **sent(0, 0, comm_dst="0")),
    "a buffer": header({"collective": "allreduce"}) + node(0, SEND, **sent(0, 0, srcbuf="x")),
    "a program that is none": header({"collective": "allreduce", "input_file": "<algo"}),
    "entities": header({"input_file": '<!DOCTYPE algo [<!ENTITY a "a">]><algo/>'}),
    "another program": header({"collective": "allgather", "input_file": ring_xml(1)}),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_no_trace_is_refused_by_both_readers(name: str) -> None:
    with pytest.raises(opticoll.OpticollError) as refused:
        Program.from_chakra([HOSTILE[name]])
    assert len(str(refused.value)) < 500
    with pytest.raises((NotAPlan, TooLarge)):
        read_chakra([HOSTILE[name]])


def test_a_trace_that_is_cut_short_is_refused_or_rejected() -> None:
    traces = right()
    for length in range(len(traces[0])):
        first, second = wrong([traces[0][:length], traces[1]])
        assert first
        assert second


def test_a_refusal_names_rank_and_byte() -> None:
    traces = right()
    with pytest.raises(opticoll.errors.ProgramError, match=r"^rank 1: byte \d+: .* cut short"):
        Program.from_chakra([traces[0], traces[1][:-3]])


def test_exports_are_read_by_the_package_of_the_format() -> None:
    schema = pytest.importorskip("chakra.schema.protobuf.et_def_pb2", reason="of mlc-chakra")

    for rank, trace in enumerate(exported("all_reduce", "crossbar:ranks=4", "ring", 4096)):
        first, *rest = messages(trace)
        start = 1 if first[0] < 0x80 else 2
        metadata = schema.GlobalMetadata.FromString(first[start:])
        assert {one.name: one.string_val for one in metadata.attr}["collective"] == "allreduce"
        for message in rest:
            told = schema.Node.FromString(message[1 if message[0] < 0x80 else 2 :])
            assert told.type in (schema.COMM_SEND_NODE, schema.COMM_RECV_NODE)
            given = {one.name: one for one in told.attr}
            assert given["msg_chunk_cnt"].int32_val == given["msg_chunk_idx"].int32_val * 0 + 1
            assert given["total_chunk_cnt"].int32_val == 4
            assert given["comm_size"].int64_val == 1024
            peer = given["comm_dst" if told.type == schema.COMM_SEND_NODE else "comm_src"]
            assert peer.int32_val in ((rank + 1) % 4, (rank - 1) % 4)


def test_numbers_of_chunks_are_multiples_of_the_number_of_ranks() -> None:
    """ASTRA-sim refuses all others; a chunk counts as several, and is read as one."""
    plan = opticoll.plan("all_reduce", "crossbar:ranks=6", "recursive_doubling")
    assert plan.collective.pieces == 1
    program = Program.from_plan(plan)
    traces = program.to_chakra(6000)
    for message in messages(traces[0])[1:]:
        told = unpacked(message)
        assert (told["total_chunk_cnt"], told["msg_chunk_cnt"]) == (6, 6)
        assert told["comm_size"] == 6000
    assert Program.from_chakra(traces).collective.pieces == 1


def test_files_are_one_a_rank(run: Run, tmp_path: Path) -> None:
    ring = ("all_reduce", "--fabric", "wdm_ring:ranks=3,wavelengths=1", "--algorithm", "ring")
    written = run("export", *ring, "--size", "3KiB", "--output", tmp_path / "ring.et")
    assert written.code == 0
    names = sorted(one.name for one in tmp_path.iterdir())
    assert names == ["ring.0.et", "ring.1.et", "ring.2.et", "ring.et.plan"]
    for path in (tmp_path, tmp_path / "ring.1.et"):
        assert run("verify", path).code == 0
    shown = run("show", tmp_path / "ring.0.et", "--fabric", "wdm_ring:ranks=3,wavelengths=1")
    assert "all_reduce on 3 ranks" in shown.out
    assert run("simulate", tmp_path, "--size", "3KiB").code == 0
    assert run("run", tmp_path, "--size", "3KiB").code == 0
    uneven = run("export", *ring, "--size", "1000B", "--output", tmp_path / "uneven.et")
    assert (uneven.code, "equal chunks" in uneven.err) == (2, True)
    (tmp_path / "ring.1.et").rename(tmp_path / "other.1.et")
    for path, said in {tmp_path: "several traces", tmp_path / "ring.0.et": "ring.1.et"}.items():
        refused = run("verify", path)
        assert (refused.code, said in refused.err) == (2, True)
    lone = tmp_path / "lone.et"
    lone.write_bytes(right()[0])
    assert "named by ranks" in run("verify", lone).err


def test_the_content_shows_the_format(tmp_path: Path) -> None:
    from opticoll.inputs import imported

    for rank, trace in enumerate(right()):
        (tmp_path / f"trace.{rank}.et").write_bytes(trace)
    assert imported.format_of(tmp_path / "trace.0.et").name == "chakra"
    for path in [*DATA.glob("*.xml"), Path(__file__)]:
        assert imported.format_of(path).name != "chakra"
