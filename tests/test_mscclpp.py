"""Execution plans of MSCCL++: read, proved by both verifiers, carried out and written."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

import opticoll
from mutants import MSCCLPP, carried_out, judged, modes, wrong
from opticoll import Program
from opticoll.errors import ProgramError
from opticoll.names import has_root
from opticoll.reference.mscclpp import read_mscclpp
from opticoll.reference.plan import NotAPlan
from support import Run, some_of

DATA = Path(__file__).parent / "data/mscclpp"
OTHERS = os.environ.get("OPTICOLL_MSCCLPP")
"""A folder with plans of others, which are not part of this repository."""

FILES = [*sorted(DATA.glob("*.json")), *(sorted(Path(OTHERS).glob("*.json")) if OTHERS else [])]
KINDS = [each["name"] for each in opticoll.records("collectives") if each["name"] != "barrier"]

SERVERS = (
    *("dgx_a100", "dgx_h100:in_network=none"),
    *("dgx_a100:boxes=2", "dgx_h100:boxes=2,in_network=none"),
)
"""Fabrics of 8 and 16 GPUs: memory channels, and port channels between servers."""


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_plan_is_proved_by_both_verifiers_and_its_bytes_are_right(path: Path) -> None:
    text = path.read_text()
    program = Program.from_mscclpp(text)
    (in_place,) = modes(program)
    assert wrong(text, MSCCLPP, in_place=in_place) == (set(), set())
    assert carried_out(program, in_place=in_place)
    schedule, _ = program.schedule(in_place=in_place)
    fabric = opticoll.Fabric(f"fully_connected:ranks={program.collective.ranks}")
    assert opticoll._core.make_plan(schedule, fabric, "read").verify() == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_mutant_is_rejected_by_both_verifiers_or_has_the_same_bytes(path: Path) -> None:
    counts = judged(MSCCLPP, path.read_text(), None if path.parent == DATA else 6)
    assert counts["drop", "rejected"]
    assert counts["offset", "rejected"]


def plan(*operations: list[dict[str, Any]], **head: Any) -> str:
    """Returns an all_gather of two ranks with a thread block each, which put into the output."""
    gpus = [
        {
            "id": rank,
            "input_chunks": 1,
            "output_chunks": 2,
            "scratch_chunks": 2,
            "channels": [{"channel_type": "memory", "connected_to": [1 - rank]}],
            "remote_buffers": [
                {"rank": 1 - rank, "type": kind, "access_channel_types": ["memory"]}
                for kind in "os"
            ],
            "semaphores": [{"init_value": 0}],
            "threadblocks": [
                {
                    "id": 0,
                    "channels": [{"channel_type": "memory", "channel_ids": [0]}],
                    "remote_buffer_refs": [
                        {"access_channel_type": "memory", "remote_buffer_ids": [0, 1]}
                    ],
                    "ops": own,
                }
            ],
        }
        for rank, own in enumerate(operations)
    ]
    kind = {"name": "test", "collective": "allgather", "protocol": "Simple", "inplace": False}
    return json.dumps({**kind, **head, "gpus": gpus}, indent=1)


NOP = {"name": "nop"}
SIGNAL, WAIT = (
    {"name": each, "channel_type": "memory", "channel_ids": [0]} for each in ("signal", "wait")
)


def moved(name: str, rank: int, index: int, buffer: int | str = 0) -> dict[str, Any]:
    """Returns an operation that moves the rank's input to a chunk of a buffer."""
    to = {"type": buffer} if isinstance(buffer, str) else {"buffer_id": buffer}
    return {
        "name": name,
        "channel_type": "memory",
        "src_buff": [{"type": "i", "index": 0, "size": 1}],
        "dst_buff": [{**to, "index": index, "size": 1}],
    }


def right(rank: int) -> list[dict[str, Any]]:
    own = moved("copy", rank, rank, "o")
    return [own, NOP, SIGNAL, WAIT, NOP, moved("put", rank, rank), NOP, SIGNAL, WAIT]


def without(rank: int, *places: int) -> list[dict[str, Any]]:
    return [each for place, each in enumerate(right(rank)) if place not in places]


WRONG = {
    # No rank knows that the other has begun its call.
    "outside_call": (plan(without(0, 2, 3, 4), without(1, 2, 3, 4)), "nothing tells before"),
    # Rank 1 ends its call without waiting for the data of rank 0.
    "outside_call, at the end": (plan(without(0, 7), without(1, 8)), "may end its call"),
    "bounds": (plan([*right(0)[:5], moved("put", 0, 2), *right(0)[6:]], right(1)), "chunk 2 of"),
    "wrong_result": (plan(without(0, 0, 1), right(1)), "holds nothing"),
    "deadlock": (plan([WAIT, NOP, *without(0, 3)], [WAIT, NOP, *without(1, 3)]), "in a cycle"),
    "race": (
        # Rank 1 copies its own chunk after it has told rank 0 that it has begun.
        plan(
            [*right(0)[:5], moved("put", 0, 1), *right(0)[6:]],
            [SIGNAL, moved("copy", 1, 1, "o"), *without(1, 0, 1, 2)],
        ),
        "nothing orders the two",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_both_verifiers_find_what_is_wrong(name: str) -> None:
    assert wrong(plan(right(0), right(1)), MSCCLPP, in_place=False) == (set(), set())
    text, sentence = WRONG[name]
    kind = name.split(",")[0]
    first, second = wrong(text, MSCCLPP, in_place=False)
    assert kind in first
    assert {"deadlock": "stuck"}.get(kind, kind) in second
    sentences = [
        each.sentence for each in Program.from_mscclpp(text).verify(in_place=False).violations
    ]
    assert any(sentence in each for each in sentences), sentences


PACKET = moved("ppkt", 0, 0, 1)
UNPACK = {
    "name": "upkt",
    "src_buff": [{"type": "s", "index": 0, "size": 1}],
    "dst_buff": [{"type": "o", "index": 0, "size": 1}],
}
REFUSED = {
    "`nop` is missing": plan(without(0, 6), right(1)),
    "some threads may not be past line": plan(without(0, 4), right(1)),
    "which rank 0 never gives": plan(without(0, 7), right(1)),
    "does not wait for it": plan(right(0), without(1, 8)),
    "packets need protocol LL": plan([PACKET], [UNPACK]),
    "that no operation writes": plan([], [UNPACK], protocol="LL"),
    "where another operation writes": plan([PACKET, PACKET], [UNPACK], protocol="LL"),
    "protocol `LL128` is not Simple or LL": plan(right(0), right(1), protocol="LL128"),
    "room for 64 operations of a thread block, not for 65": plan([NOP] * 65, []),
    "semaphore 1 does not exist": plan([{"name": "sem_release", "semaphore_ids": [1]}], []),
    "is never acquired": plan([{"name": "sem_release", "semaphore_ids": [0]}], []),
    "operation `glre` is not one of MSCCL++": plan([moved("glre", 0, 0)], []),
    "waits for 3": plan([{"name": "barrier", "barrier_id": 0, "num_threadblocks": 3}], []),
    "unknown collective `sendrecv`": plan(right(0), right(1), collective="sendrecv"),
    "`inplace` is missing": plan(right(0), right(1)).replace('"inplace"', '"in_place"'),
    "only adds, whatever `reduce_op` says": plan(
        [{**moved("re", 0, 0, "o"), "reduce_op": "max"}], []
    ),
    "more than 1048576 instructions": plan(
        [
            {
                "name": "pipeline",
                "iter_context": {"unit_size": 16, "num_chunks": 2**20},
                "ops": [{"name": "sem_acquire", "semaphore_ids": [0]}],
            }
        ],
        [],
    ),
    "no `gpus`": "{}",
    "not JSON": "{",
    "no such memory channel": plan([{**SIGNAL, "channel_ids": [1]}], []),
    "room for 8 channels of an operation, not for 9": plan(
        [{**SIGNAL, "channel_ids": [0] * 9}], []
    ),
    "room for 10 buffers of an operation, not for 11": plan(
        [{**moved("re", 0, 0, "o"), "src_buff": [{"type": "i", "index": 0, "size": 1}] * 11}], []
    ),
    "room for 16 barriers of a GPU, not for 17": plan(
        [{"name": "barrier", "barrier_id": 16, "num_threadblocks": 1}], []
    ),
    "room for 16 semaphores of an operation, not for 17": plan(
        [{"name": "sem_release", "semaphore_ids": [0] * 17}], []
    ),
    "room for 16 channels of a thread block, not for 17": plan([], []).replace(
        '"channel_ids": [\n        0\n', '"channel_ids": [\n        0' + ", 0" * 16 + "\n", 1
    ),
    "room for 16 remote buffers of a thread block, not for 17": plan([], []).replace(
        '"remote_buffer_ids": [\n        0,', '"remote_buffer_ids": [\n        ' + "0, " * 16, 1
    ),
    "switch channel with 2 ranks have different such channels": plan([], []).replace(
        '"channels": [\n',
        '"channels": [\n{"channel_type": "switch", "buffer_type": "i", "rank_groups": '
        '[{"size": 2, "ranks": [0, 1]}]},\n',
        1,
    ),
}


@pytest.mark.parametrize("sentence", REFUSED)
def test_what_mscclpp_cannot_execute_is_refused_by_both_readers(sentence: str) -> None:
    with pytest.raises(ProgramError) as refused:
        Program.from_mscclpp(REFUSED[sentence])
    assert sentence in str(refused.value)
    assert re.match(r"line \d+: ", str(refused.value))
    with pytest.raises(NotAPlan):
        read_mscclpp(REFUSED[sentence])


def test_parts_of_different_chunks_race() -> None:
    """Each part is copied by another thread block than the one that waits for the signal."""
    halves = {"tb_id": 0, "tbg_size": 2}
    text = plan(right(0), right(1))
    data = json.loads(text)
    for gpu in data["gpus"]:
        gpu["threadblocks"].append(json.loads(json.dumps(gpu["threadblocks"][0])))
        gpu["channels"][0]["connected_to"] *= 2
        for number, block in enumerate(gpu["threadblocks"]):
            block["id"] = number
            block["channels"][0]["channel_ids"] = [number]
            for each in block["ops"]:
                if "src_buff" in each:
                    each["tbg_info"] = {**halves, "tb_id": number}
    assert wrong(json.dumps(data), MSCCLPP, in_place=False) == (set(), set())
    # One thread block puts the half of the other, into which the other has put nothing.
    data["gpus"][0]["threadblocks"][0]["ops"][5]["tbg_info"]["tb_id"] = 1
    first, second = wrong(json.dumps(data), MSCCLPP, in_place=False)
    assert "race" in first
    assert "race" in second


def by_two_blocks(reads: str) -> str:
    """Returns a sum of two ranks: one thread block adds, and both thread blocks read the packets.

    Each rank puts its input as packets into scratch 0 of the other. Thread block 0 adds them to the
    chunk and stores packets of the sum in scratch 1. Each thread block writes a half of the chunk
    from the packets of `reads`.
    """
    half = {"src_buff": [{"type": "s", "index": int(reads), "size": 1}], "name": "upkt"}
    half["dst_buff"] = [{"type": "i", "index": 0, "size": 1}]
    added = {
        "name": "recpkt",
        "src_buff": [{"type": kind, "index": 0, "size": 1} for kind in "is"],
        "dst_buff": [{"type": "i", "index": 0, "size": 1}, {"type": "s", "index": 1, "size": 1}],
    }
    head = {"protocol": "LL", "collective": "allreduce", "inplace": True}
    data = json.loads(plan([], [], **head, use_double_scratch_buffer=True))
    for gpu in data["gpus"]:
        gpu["output_chunks"] = 1
        (first,) = gpu["threadblocks"]
        sent = {**moved("ppkt", 0, 0, 1), "channel_type": "memory"}
        first["ops"] = [sent, NOP, added, {**half, "tbg_info": {"tb_id": 1, "tbg_size": 2}}]
        other = {"id": 1, "channels": [], "remote_buffer_refs": []}
        other["ops"] = [{**half, "tbg_info": {"tb_id": 0, "tbg_size": 2}}]
        gpu["threadblocks"].append(other)
    return json.dumps(data, indent=1)


def test_who_has_a_packet_is_past_what_its_writer_did_before() -> None:
    """The threads of the second half are others than those that added this half."""
    text = by_two_blocks("1")
    assert wrong(text, MSCCLPP, in_place=True) == (set(), set())
    assert carried_out(Program.from_mscclpp(text), in_place=True)
    # Packets of the other rank say nothing of the threads that add.
    text = by_two_blocks("0")
    assert wrong(text, MSCCLPP, in_place=True) == ({"refused"}, {"refused"})
    with pytest.raises(ProgramError, match="a `nop` is missing"):
        Program.from_mscclpp(text)


def fitting(collective: opticoll.Plan, size: int) -> str:
    """Returns the plan as text for a size, or for the next size that fits."""
    program = Program.from_plan(collective)
    try:
        return program.to_mscclpp(size)
    except ProgramError as error:
        refused = str(error)
    found = re.search(r"the next size that fits is (\d+)(KiB|MiB|B)$", refused)
    assert found, refused
    unit = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20}[found[2]]
    assert size < int(found[1]) * unit < 2 * size
    return program.to_mscclpp(int(found[1]) * unit)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fabric", some_of(SERVERS, 2))
@pytest.mark.parametrize("size", [32 << 10, 48 << 20], ids=["32KiB", "48MiB"])
def test_plans_are_written_proved_and_carried_out(kind: str, fabric: str, size: int) -> None:
    root = 1 if has_root(kind) else 0
    ours = opticoll.plan(kind, fabric, size=size, root=root)
    text = fitting(ours, size)
    program = Program.from_mscclpp(text)
    assert program.collective.root == root
    usual = kind in ("all_reduce", "reduce", "broadcast")
    assert (program.in_place, program.out_of_place) == (usual, not usual)
    assert wrong(text, MSCCLPP, in_place=usual) == (set(), set())
    assert carried_out(program, in_place=usual)
    data = json.loads(text)
    for gpu in data["gpus"]:
        assert gpu["input_chunks"] * gpu["output_chunks"] > 0
        assert len(gpu["threadblocks"]) <= 108
        peers = {
            peer
            for channel in gpu["channels"]
            if channel["channel_type"] == "memory"
            for peer in channel["connected_to"]
        }
        if "boxes=2" in fabric:
            assert all(peer // 8 == gpu["id"] // 8 for peer in peers)
    names = {
        each["name"]
        for gpu in data["gpus"]
        for block in gpu["threadblocks"]
        for each in block["ops"]
    }
    # Suspected faults of the runtime are in these operations.
    assert not names & {"get", "flush"}


def test_small_sizes_move_packets_and_large_ones_are_shared_by_thread_blocks() -> None:
    ours = Program.from_plan(opticoll.plan("all_to_all", "crossbar:ranks=8", "direct"))
    small, large = (json.loads(ours.to_mscclpp(size)) for size in (8 << 10, 8 << 20))
    assert (small["protocol"], small["use_double_scratch_buffer"]) == ("LL", True)
    assert (large["protocol"], large["use_double_scratch_buffer"]) == ("Simple", False)
    assert len(large["gpus"][0]["threadblocks"]) == 8
    # A chunk has 2^20 bytes for a call with 2^23 bytes, and offsets have 32 bits.
    assert 8 * 2**28 < large["max_message_size"] < 2**32


def test_one_root_cannot_hear_its_receivers_by_packets() -> None:
    """Packets need an answer of each receiver, which a broadcast does not give."""
    ours = Program.from_plan(opticoll.plan("broadcast", "crossbar:ranks=4", "binomial"))
    assert json.loads(ours.to_mscclpp(1024))["protocol"] == "Simple"


@pytest.mark.parametrize(
    ("kind", "size", "sentence"),
    [
        ("all_gather", 100, "the next size that fits is 112B"),
        ("all_gather", 1 << 30, "offsets beyond the 32 bits of MSCCL++"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(kind: str, size: int, sentence: str) -> None:
    ours = Program.from_plan(opticoll.plan(kind, "crossbar:ranks=8", "ring"))
    with pytest.raises(ProgramError, match=re.escape(sentence)):
        ours.to_mscclpp(size)


SWITCHES = ("dgx_h100", "crossbar:ranks=5,in_network=reduce+multicast")


@pytest.mark.parametrize("fabric", SWITCHES)
@pytest.mark.parametrize("kind", ["all_reduce", "all_gather", "broadcast"])
@pytest.mark.parametrize("size", [80 << 10, 40 << 20], ids=["80KiB", "40MiB"])
def test_switches_add_and_multicast_in_written_plans(kind: str, fabric: str, size: int) -> None:
    root = 1 if has_root(kind) else 0
    ours = opticoll.plan(kind, fabric, "nvls", size=size, root=root)
    text = fitting(ours, size)
    program = Program.from_mscclpp(text)
    (in_place,) = modes(program)
    assert wrong(text, MSCCLPP, in_place=in_place) == (set(), set())
    assert carried_out(program, in_place=in_place)
    by_switches = "glres" if kind == "all_reduce" else "gstore"
    ranks, moved_chunks = program.collective.ranks, 0
    for gpu in json.loads(text)["gpus"]:
        switch = [one for one in gpu["channels"] if one["channel_type"] == "switch"]
        assert [one["rank_groups"] for one in switch] == [
            [{"size": ranks, "ranks": list(range(ranks))}]
        ]
        for block in gpu["threadblocks"]:
            assert {each["name"] for each in block["ops"]} <= {
                *("signal", "wait", "nop", by_switches)
            }
        first = gpu["threadblocks"][0]["ops"]
        moved_chunks += sum(each["src_buff"][0]["size"] for each in first if "src_buff" in each)
    # Switches handle every chunk of the result once.
    assert moved_chunks == json.loads(text)["gpus"][0]["output_chunks"]
    counts = judged(MSCCLPP, text, 2)
    assert counts["retarget", "rejected"] == counts["retarget", "tried"]


@pytest.mark.parametrize(
    ("kind", "fabric", "algorithm"),
    [
        # One rank receives the sum.
        *(("reduce", "dgx_h100", "nvls"), ("reduce_scatter", "dgx_h100", "nvls")),
        # Ranks of other servers add to the sum before it is multicast.
        ("all_reduce", "dgx_h100:boxes=2", "nvls_rails"),
    ],
)
def test_what_switches_of_mscclpp_cannot_do_is_refused(
    kind: str, fabric: str, algorithm: str
) -> None:
    ours = Program.from_plan(opticoll.plan(kind, fabric, algorithm, size="1MiB"))
    with pytest.raises(ProgramError, match=r"add only what they multicast.*in_network=none"):
        ours.to_mscclpp(1 << 20)


def test_the_protocol_can_be_demanded() -> None:
    ours = Program.from_plan(opticoll.plan("all_to_all", "crossbar:ranks=8", "direct"))
    for size, protocol in ((8 << 10, "Simple"), (8 << 20, "LL"), (8 << 20, "ll")):
        text = ours.to_mscclpp(size, protocol)
        assert json.loads(text)["protocol"].lower() == protocol.lower()
        assert wrong(text, MSCCLPP, in_place=False) == (set(), set())
    with pytest.raises(ProgramError, match="unknown protocol `LL128`"):
        ours.to_mscclpp(8 << 10, "LL128")


@pytest.mark.parametrize(
    ("kind", "fabric", "algorithm", "reason"),
    [
        ("broadcast", "crossbar:ranks=4", "binomial", "does not hear from its receivers"),
        ("all_reduce", "dgx_a100:boxes=2", "ring", "ranks are in several servers"),
        ("all_gather", "dgx_h100", "nvls", "do not pass through switches"),
    ],
)
def test_packets_that_do_not_fit_are_refused(
    kind: str, fabric: str, algorithm: str, reason: str
) -> None:
    ours = Program.from_plan(opticoll.plan(kind, fabric, algorithm, size="16KiB"))
    with pytest.raises(ProgramError, match=f"LL does not fit.*{reason}.*use protocol Simple"):
        ours.to_mscclpp(16 << 10, "LL")


def test_plans_with_too_many_thread_blocks_are_refused() -> None:
    fabric = "wdm_ring:ranks=8,wavelengths=128"
    ours = Program.from_plan(opticoll.plan("all_reduce", fabric, "ring:stripes=128"))
    with pytest.raises(ProgramError, match=r"108 run at the same time.*plan with fewer pieces"):
        ours.to_mscclpp(16 << 20)


def test_commands_write_verify_simulate_and_import(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "ours.mscclpp.json"
    fabric = ("--fabric", "dgx_a100", "--size", "1MiB")
    assert run("export", "all_reduce", *fabric, "--output", path).code == 0
    assert {each.name for each in tmp_path.iterdir()} >= {path.name, "ours.mscclpp.py"}
    finished = run("verify", path)
    assert finished.code == 0
    assert "verified in place: yes" in finished.out.replace("YES", "yes")
    assert run("simulate", path, "--fabric", "dgx_a100", "--size", "1MiB").code == 0
    assert run("run", path, "--size", "1MiB").code == 0
    assert json.loads(path.read_text())["protocol"] == "Simple"
    forced = ("--output", tmp_path / "forced.mscclpp.json", "--protocol", "ll")
    assert run("export", "all_gather", *fabric, *forced).code == 0
    assert json.loads((tmp_path / "forced.mscclpp.json").read_text())["protocol"] == "LL"
    assert run("import", path, "--output", tmp_path / "back.plan").code == 0
    loader = path.with_suffix(".py").read_text()
    compile(loader, "loader", "exec")
    assert '"ours.mscclpp.json"' in loader
    assert "world_size=8, n_ranks_per_node=8" in loader
    assert max(map(len, loader.splitlines())) <= 100
    path.write_text(WRONG["race"][0])
    finished = run("verify", path)
    assert finished.code == 1
    assert "(line " in finished.out
