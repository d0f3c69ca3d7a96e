"""Chakra execution traces replayed: computation, collectives of groups, messages, dependencies."""

from __future__ import annotations

import os
import tarfile
from pathlib import Path
from typing import Any

import pytest

import opticoll
from chakra_files import COLLECTIVE, COMPUTE, METADATA, RECEIVE, SEND, header, node
from opticoll.commands.replay import ReplayRow
from support import Run

OTHERS = os.environ.get("OPTICOLL_CHAKRA")
"""A folder with Chakra traces of others, which are not part of this repository."""

ALL_REDUCE, ALL_GATHER, BROADCAST, BARRIER = 0, 2, 5, 9

LINE = "hockney:latency=1us,rate=8Gb/s"
"""A fabric on which a message of n bytes takes 1000 + n ns, independent of other messages."""

MEGABYTE = 10**6


def replayed(folder: Path, traces: list[bytes], fabric: str = LINE, **asked: Any) -> ReplayRow:
    for rank, trace in enumerate(traces):
        (folder / f"work.{rank}.et").write_bytes(trace)
    asked.setdefault("collectives", {"all_gather": "direct", "all_reduce": "ring"})
    return opticoll.replay(folder / "work.0.et", fabric, **asked)


def trace(*nodes: bytes, version: str = "") -> bytes:
    return header({"schema": "1.0.1"}, version) + b"".join(nodes)


def gather(identity: int, after: list[int], size: int = MEGABYTE, **more: Any) -> bytes:
    told = {"is_cpu_op": False, "comm_type": ALL_GATHER, "comm_size": size, **more}
    return node(identity, COLLECTIVE, after, **told)


def work(identity: int, after: list[int], micros: int, **more: Any) -> bytes:
    return node(identity, COMPUTE, after, micros=micros, **more)


@pytest.mark.parametrize("version", ["", "0.0.4"])
def test_a_collective_begins_when_what_it_waits_for_has_ended(tmp_path: Path, version: str) -> None:
    """Rank 1 sends at 200 us; its message takes 1 us and 1 ms."""
    ranks = [
        trace(work(1, [], 100 * (1 + rank)), gather(2, [1]), version=version) for rank in (0, 1)
    ]
    row = replayed(tmp_path, ranks)
    assert row.time_ps == (200 + 1 + 1000) * 10**6
    assert row.bytes == 2 * MEGABYTE


def test_work_that_does_not_wait_goes_on_beside_a_collective(tmp_path: Path) -> None:
    for beside, expected in ((400, 100 + 1001 + 50), (2000, 100 + 2000 + 50)):
        nodes = [work(1, [], 100), gather(2, [1]), work(3, [1], beside), work(4, [2, 3], 50)]
        row = replayed(tmp_path, [trace(*nodes)] * 2)
        assert row.time_ps == expected * 10**6


def test_a_device_does_one_thing_at_a_time_and_the_cpu_another(tmp_path: Path) -> None:
    both = [work(1, [], 30), work(2, [], 40)]
    assert replayed(tmp_path, [trace(*both)]).time_ps == 70 * 10**6
    apart = [work(1, [], 30, is_cpu_op=True), work(2, [], 40, is_cpu_op=False)]
    assert replayed(tmp_path, [trace(*apart)]).time_ps == 40 * 10**6


def test_local_work_is_scaled(tmp_path: Path) -> None:
    ranks = [trace(work(1, [], 100), gather(2, [1]))] * 2
    row = replayed(tmp_path, ranks, cpu_factor="1/4")
    assert row.time_ps == (25 + 1001) * 10**6


def groups(*members: list[int]) -> bytes:
    """Groups as PyTorch's traces have them: a list within quotes within brackets."""
    each = [
        f'{{\\"pg_name\\": \\"{name}\\", \\"ranks\\": {own}, \\"group_size\\": {len(own)}}}'
        for name, own in enumerate(members)
    ]
    return node(90, METADATA, inputs=f'["[{", ".join(each)}]"]')


def test_groups_communicate_apart(tmp_path: Path) -> None:
    """Ranks 0 and 2 wait for one another's block, as do 1 and 3."""
    ranks = []
    for rank in range(4):
        own = gather(2, [1], pg_name=str(rank % 2 + 1))
        ranks.append(trace(groups([], [0, 2], [1, 3]), work(1, [], 100 * (1 + rank)), own))
    row = replayed(tmp_path, ranks)
    assert [one.finish_s for one in row.per_rank] == pytest.approx(
        [(begun + 1001) * 1e-6 for begun in (300, 400, 100, 200)]
    )
    of_all = trace(groups([], [0, 2], [1, 3]), gather(2, [], pg_name="0"))
    assert replayed(tmp_path, [of_all] * 4).bytes == 12 * MEGABYTE


def test_messages_meet_by_their_tags(tmp_path: Path) -> None:
    first = trace(
        node(1, SEND, comm_dst=1, comm_tag=5, comm_size=1000, integer=7),
        node(2, SEND, comm_dst=1, comm_tag=6, comm_size=2000, integer=11),
    )
    second = trace(
        node(1, RECEIVE, comm_src=0, comm_tag=6, comm_size=2000, integer=13),
        node(2, RECEIVE, [1], comm_src=0, comm_tag=5, comm_size=1000),
        work(3, [2], 10),
    )
    row = replayed(tmp_path, [first, second])
    assert (row.messages, row.time_ps) == (2, (3 + 10) * 10**6)


def test_the_rules_of_captures_hold(tmp_path: Path) -> None:
    """Missing nodes, circles of control, launches on the CPU, lists, and wide fan-in."""
    parts = [work(number, [], 1, is_cpu_op=True) for number in range(10, 40)]
    nodes = [
        *parts,
        work(1, [4711, *range(10, 40)], 100, control=[5]),
        node(2, COLLECTIVE, [1], micros=7, is_cpu_op=True, name="c10d::allgather_"),
        gather(5, [2], control=[1, 99], involved_dim=[1, 1], pg_name=""),
    ]
    row = replayed(tmp_path, [trace(*nodes)] * 2)
    assert row.time_ps == (30 + 100 + 7 + 1001) * 10**6
    assert row.trace_events == 2 * 33


def test_dependencies_of_control_count_where_they_form_no_circle(tmp_path: Path) -> None:
    nodes = [work(1, [], 100), gather(2, [], control=[1])]
    assert replayed(tmp_path, [trace(*nodes)] * 2).time_ps == 1101 * 10**6


def test_collectives_of_a_group_go_in_the_order_of_the_file(tmp_path: Path) -> None:
    nodes = [gather(2, [1]), gather(3, []), work(1, [], 100)]
    assert replayed(tmp_path, [trace(*nodes)] * 2).time_ps == (100 + 2 * 1001) * 10**6


FABRICS = [
    "crossbar:ranks=4",
    "torus:dims=2x2",
    "wdm_ring:ranks=4,wavelengths=2",
    "loggp:gap=1us,rate=10Gb/s",
]


@pytest.mark.parametrize("fabric", FABRICS)
@pytest.mark.parametrize("algorithm", ["ring", "recursive_doubling", "auto"])
def test_any_algorithm_on_any_fabric(tmp_path: Path, fabric: str, algorithm: str) -> None:
    """Ring and recursive doubling send 2 (n - 1) S and n log2(n) S in all."""
    told: dict[str, Any] = {"comm_type": ALL_REDUCE, "comm_size": MEGABYTE}
    nodes = [
        work(1, [], 10),
        node(2, COLLECTIVE, [1], **told),
        node(3, COLLECTIVE, comm_type=BARRIER),
    ]
    row = replayed(tmp_path, [trace(*nodes)] * 4, fabric, collectives={"all_reduce": algorithm})
    if algorithm != "auto":
        assert row.bytes == {"ring": 6, "recursive_doubling": 8}[algorithm] * MEGABYTE
    (one,) = [one for one in row.collectives if one.collective == "all_reduce"]
    assert one.ranks == 4


WRONG = {
    "enters": [trace(gather(1, [])), trace()],
    "10": [trace(node(1, COLLECTIVE, comm_type=10, comm_size=1))] * 2,
    "comm_size": [trace(node(1, COLLECTIVE, comm_type=0))] * 2,
    "without comm_type": [trace(node(1, COLLECTIVE, comm_size=8))] * 2,
    "not defined": [trace(groups([0, 1]), gather(1, [], pg_name="7"))] * 2,
    "not in its group": [trace(groups([0]), gather(1, [], pg_name="0"))] * 2,
    "not one of the 2 ranks": [trace(groups([0, 5]), gather(1, [], pg_name="0"))] * 2,
    "different ranks in another": [trace(groups([0, rank])) for rank in (0, 1)],
    "part of a cycle": [trace(work(1, [2], 1), work(2, [1], 1))],
    "two nodes": [trace(work(1, [], 1), work(1, [], 1))],
    "no comm_dst": [trace(node(1, SEND, comm_size=4))],
    "comm_size is -1": [trace(node(1, COLLECTIVE, comm_type=0, comm_size=-1))] * 2,
    "exceeds 64 bits": [trace(work(1, [], 2**60))],
    "cut short": [trace(work(1, [], 1))[:-1]],
    "no comm_src": [trace(node(1, RECEIVE, comm_size=4))],
}


@pytest.mark.parametrize("said", WRONG)
def test_what_cannot_be_replayed_is_refused_with_its_place(tmp_path: Path, said: str) -> None:
    with pytest.raises(opticoll.errors.TraceError, match=said) as refused:
        replayed(tmp_path, WRONG[said])
    assert "work.0.et" in str(refused.value)
    assert "rank" in str(refused.value)


def test_lightpaths_are_set_up_for_calls_in_order_only(tmp_path: Path) -> None:
    with pytest.raises(opticoll.errors.TraceError, match="no sequence of calls"):
        replayed(tmp_path, [trace(gather(1, []))] * 2, "lightpath_grid:ports=2")


def test_the_command_line_reads_a_file_or_a_folder(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "traces"
    folder.mkdir()
    for rank in range(2):
        (folder / f"work.{rank}.et").write_bytes(trace(work(1, [], 100), gather(2, [1])))
    for path in (folder, folder / "work.1.et"):
        finished = run("replay", path, "--fabric", LINE, "--collective", "all_gather=direct")
        assert (finished.code, finished.err) == (0, "")
        assert "execution time 1.101 ms" in finished.out
    drawn = run(
        "replay", folder, "--timeline", tmp_path / "line.json", "--figure", tmp_path / "a.svg"
    )
    assert drawn.code == 0


@pytest.mark.skipif(not OTHERS, reason="OPTICOLL_CHAKRA names no folder of traces")
def test_a_capture_of_pytorch_is_replayed(tmp_path: Path) -> None:
    """Five all_reduces of 102,228,128 bytes, ResNet-50's gradient, and two broadcasts."""
    with tarfile.open(Path(OTHERS or "") / "pytorch-ddp-rank0.chakra.tar.gz") as archive:
        member = next(one for one in archive.getmembers() if one.name.endswith(".et"))
        held: Any = archive.extractfile(member)
        content = held.read()
    asked: dict[str, Any] = {"collectives": {"all_reduce": "ring", "broadcast": "binomial"}}
    slow = "hockney:latency=1us,rate=800Mb/s"
    alone = replayed(tmp_path, [content], slow, **asked)
    assert (alone.ranks, alone.trace_events, alone.messages) == (1, 3664, 0)
    row = replayed(tmp_path, [content] * 4, slow, **asked)
    by_call = {one.call: one for one in row.per_call}
    # Four ranks send 2 (n - 1) / n of a vector each; three of them get a broadcast.
    assert by_call["all_reduce"].bytes == 6 * 102_228_128
    assert by_call["broadcast"].bytes == 3 * (212_480 + 424)
    # The all_reduces are of one group, so that they follow one another, at 100 MB/s.
    assert row.time_s > 1.5 * 102_228_128 / 100e6 > alone.time_s
    planned = {(one.collective, one.ranks) for one in row.collectives}
    assert planned == {("all_reduce", 4), ("broadcast", 4)}
