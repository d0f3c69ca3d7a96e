"""Replays of traces: options, forms of files, time lines, bad input."""

from __future__ import annotations

import json
import tarfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opticoll
from opticoll import errors
from opticoll.formats import chrome_trace, parquet_table, trace_file
from opticoll.formats.content import read_content
from opticoll.inputs.settings import Settings
from opticoll.plot import rank_timeline
from support import Run
from test_bad_input import cases
from test_bad_input import check as refused
from test_cli import run_json

TABLES = Path(__file__).parents[1] / "crates/tests/data/traces"
DATA = Path(__file__).parent / "data"

# Nanoseconds of EP on a network that costs nothing, by LogGOPSim with L = o = g = G = 0.
EP_NS = 234_096_151

# Algorithms that message-passing libraries use for short messages.
COMMON = {
    **dict.fromkeys(("all_reduce", "all_gather", "barrier"), "recursive_doubling"),
    **dict.fromkeys(("broadcast", "reduce", "scatter", "gather"), "binomial"),
    "reduce_scatter": "recursive_halving",
    "all_to_all": "pairwise",
}

HEADER = "rank,call,peer,send_bytes,recv_bytes,tag,comm,req,compute_ns"


def real(application: str) -> Path:
    return TABLES / f"{application}.A.16.csv.zst"


def table(folder: Path, rows: str, ranks: int = 2) -> Path:
    path = folder / "trace.csv"
    path.write_text(f"# app=test ranks={ranks}\n{HEADER}\n{rows}\n")
    return path


FABRICS = [
    "crossbar:ranks=16,rate=10Gb/s,latency=1us",
    "fat_tree:down=4x4,up=1x2,rate=10Gb/s",
    "dragonfly:terminals_per_router=2,routers_per_group=2,groups=4,global_per_router=2",
    "wdm_ring:ranks=16,wavelengths=4,reconfiguration=25us",
    "lightpath_grid:ranks=16,ports=2",
    "loggp:latency=1us,gap=100ns,rate=10Gb/s",
]
SIMULATED = [(fabric, None) for fabric in FABRICS] + [(fabric, "packet") for fabric in FABRICS[:3]]


@pytest.mark.parametrize(("fabric", "simulator"), SIMULATED)
@pytest.mark.parametrize("application", ["ep", "is", "mg"])
def test_the_same_messages_go_over_every_network(
    application: str, fabric: str, simulator: str | None
) -> None:
    free = opticoll.replay(real(application), collectives=COMMON)
    done = opticoll.replay(
        real(application), fabric, collectives=COMMON, simulator=simulator, timeline=True
    )
    row = done
    assert (row["messages"], row["bytes"]) == (free["messages"], free["bytes"])
    assert row["time_s"] > free["time_s"]
    assert row["compute_s"] == free["compute_s"]
    for rank in row["per_rank"]:
        # A rank works or is in a call, until it ends.
        assert rank["compute_s"] + rank["calls_s"] == pytest.approx(rank["finish_s"], abs=1e-9)
    assert len(done.outcome.timeline["rank"]) == row["trace_events"]


def test_a_chosen_algorithm_sends_what_it_is_known_to_send(run: Run, tmp_path: Path) -> None:
    rows = "\n".join(f"{rank},Allreduce,,1600,1600,,0,,{rank}" for rank in range(16))
    path = table(tmp_path, rows, 16)
    # Per rank: log2 16 whole vectors; a ring's 2 x 15 of 16 parts.
    for algorithm, messages, sent in (
        ("recursive_doubling", 16 * 4, 16 * 4 * 1600),
        ("ring", 16 * 30, 16 * 30 * 100),
    ):
        chosen = ("--collective", f"all_reduce={algorithm}")
        row = run_json(run, "replay", "replay", path, *chosen)
        (used,) = row["collectives"]
        assert used["algorithm"] == used["chosen"] == algorithm
        (call,) = [one for one in row["per_call"] if one["call"] == "all_reduce"]
        assert call["messages"] == messages, algorithm
        assert call["bytes"] == sent, algorithm


def test_a_straggler_holds_up_who_waits_for_it(tmp_path: Path) -> None:
    # Rank 0 sends to rank 1, which works on and sends to rank 2. A message takes 100 + 1000 ns.
    rows = (
        "0,Send,1,1000,0,7,0,,500\n1,Recv,0,0,1000,7,0,,200\n1,Send,2,1000,0,7,0,,300\n"
        "2,Recv,1,0,1000,7,0,,4000"
    )
    path, network = table(tmp_path, rows, 3), "hockney:latency=100ns,rate=8Gb/s"
    cases: tuple[tuple[Any, float, str], ...] = (
        (1, 4000, "1"),
        ("2,2=0.5", 2 * 500 + 1100 + 2 * 300 + 1100, "2,2=1/2"),
        # Rank 1 receives at 1600 ns and works for 2100 ns.
        ("1=7", 500 + 1100 + 7 * 300 + 1100, "1,1=7"),
        # It comes to its receive at 4000 ns.
        ({"1": 20}, 20 * 200 + 20 * 300 + 1100, "1,1=20"),
        ("1-2=1.5,0=0.5", 6000, "1,0=1/2,1-2=3/2"),
        ({"0-1": "1/2", 2: 0}, 250 + 1100 + 150 + 1100, "1,0-1=1/2,2=0"),
    )
    for factor, nanoseconds, spelled in cases:
        row = opticoll.replay(path, network, cpu_factor=factor)
        assert (row.time_ps, row.cpu_factor) == (1000 * nanoseconds, spelled)
        again = opticoll.replay(path, network, cpu_factor=row.cpu_factor)
        assert again.time_ps == row.time_ps
    uniform, each = (opticoll.replay(path, network, cpu_factor=text) for text in ("3", "0-2=3"))
    assert uniform.per_rank == each.per_rank


def test_ends_cost_what_is_asked(tmp_path: Path) -> None:
    # 1000 bytes at 1 ns each and 100 ns of latency; the receiver comes at 3000 ns.
    path = table(tmp_path, "0,Send,1,1000,0,7,0,,500\n1,Recv,0,0,1000,7,0,,3000")
    network = "hockney:latency=100ns,rate=8Gb/s"
    for eager, overhead, nanoseconds in (
        (None, None, 3000),
        ("none", None, 3000 + 1000 + 100),
        ("999B", None, 4100),
        (1000, None, 3000),
        (None, "20ns", 3000 + 20),
    ):
        row = opticoll.replay(path, network, eager=eager, end_overhead=overhead)
        assert row["time_ps"] == 1000 * nanoseconds, (eager, overhead)


def test_predicted_paths_are_set_up_while_a_program_computes() -> None:
    """Two ranks, one port, two messages of 108 us; 5 ms to set up a path, 5 ms to release it."""
    header = "# app=two ranks=2\n# comm 0 = 0 1\n"
    header += "rank,call,peer,send_bytes,recv_bytes,tag,comm,req,compute_ns"
    for compute_ms, released_ms, predicted_ms in (
        # Each message waits for its own path, and the program for each release.
        (20, 2 * 20 + 2 * 10.108, 2 * 20.108),
        # The second path is ready 10 ms after the first message, the program 2 ms after it.
        (2, 2 * 2 + 2 * 10.108, 5.108 + 10.108),
    ):
        calls = [
            f"{rank},{call},0,0,,{compute_ms}000000"
            for rank, call in ((0, "Send,1,1000,0"), (1, "Recv,0,0,1000"))
            for _ in range(2)
        ]
        trace = opticoll.read_trace("\n".join([header, *calls]).encode())
        for paths, milliseconds in (("released", released_ms), ("predicted", predicted_ms)):
            row = opticoll.replay(trace, "lightpath_grid:ports=1", paths=paths)
            assert row["time_s"] == pytest.approx(milliseconds / 1000), (compute_ms, paths)


@pytest.mark.parametrize(("size", "named"), [(4096, "recursive_doubling"), (4 << 20, "ring")])
def test_a_rule_by_size_names_the_algorithm_of_a_call(size: int, named: str) -> None:
    header = "# app=one ranks=4\n# comm 0 = 0 1 2 3\n"
    header += "rank,call,peer,send_bytes,recv_bytes,tag,comm,req,compute_ns"
    calls = [f"{rank},Allreduce,,{size},{size},,0,,0" for rank in range(4)]
    trace = opticoll.read_trace("\n".join([header, *calls]).encode())

    def seconds(algorithm: str) -> float:
        network = "crossbar:ranks=4,rate=100Gb/s,latency=1us"
        chosen = {"all_reduce": algorithm}
        return float(opticoll.replay(trace, network, collectives=chosen)["time_s"])

    assert seconds("recursive_doubling<1MiB,ring") == seconds(named)
    assert seconds("ring") != seconds("recursive_doubling")


def archive(name: str, folder: Path) -> Path:
    """Unpacks an OTF2 archive into a folder."""
    packed = folder / "archive.tar"
    packed.write_bytes(read_content(DATA / f"{name}.A.16.otf2.tar.zst"))
    with tarfile.open(packed) as tar:
        tar.extractall(folder)  # an archive of ours
    return folder / f"{name}.A.16"


@pytest.mark.parametrize("name", ["ep", "ft", "is"])
def test_an_archive_is_the_same_program_as_the_table_of_its_run(name: str, tmp_path: Path) -> None:
    from_table = opticoll.replay(real(name))
    folder = archive(name, tmp_path)
    for path in (DATA / f"{name}.A.16.otf2.tar.zst", folder, folder / "traces.otf2"):
        row = opticoll.replay(path)
        same = ("time_ps", "messages", "trace_events")
        assert [row[key] for key in same] == [from_table[key] for key in same]
        if name != "is":  # an archive has no sizes of an Alltoallv by member
            assert row["bytes"] == from_table["bytes"]


def test_goal_is_the_same_program_as_the_table_of_its_run() -> None:
    row = opticoll.replay(DATA / "ep.A.16.goal.zst")
    assert row["time_ps"] == 1000 * EP_NS
    assert row["messages"] == opticoll.replay(real("ep"))["messages"]


def as_parquet(path: Path, target: Path) -> None:
    """Writes an event table as a Parquet file."""
    import pyarrow
    from pyarrow import parquet

    names = parquet_table.COLUMNS
    columns: dict[str, list[Any]] = {name: [] for name in [*names, "sizes"]}
    metadata = {}
    for line in read_content(path).decode().splitlines():
        if line.startswith("# v "):
            columns["sizes"][-1] = [int(size) for size in line.split()[2:]]
        elif line.startswith("# comm "):
            key, members = line[2:].split(" = ")
            metadata[key] = members
        elif line.startswith("# app="):
            metadata["ranks"] = line.split("ranks=")[1].split()[0]
        elif not line.startswith("#") and not line.startswith("rank,"):
            fields = line.split(",")
            for name, text in zip(names, fields, strict=False):
                value: Any = text if name == "call" else (None if text == "" else int(text))
                columns[name].append(value)
            columns["sizes"].append(None)
    types = {"call": pyarrow.string(), "sizes": pyarrow.list_(pyarrow.int64())}
    arrays = {
        name: pyarrow.array(column, types.get(name, pyarrow.int64()))
        for name, column in columns.items()
    }
    made = pyarrow.table(arrays).replace_schema_metadata(metadata)
    parquet.write_table(made, target)


@pytest.mark.parametrize("name", ["ep", "ft", "is"])
def test_a_parquet_table_is_the_same_program_as_its_text(name: str, tmp_path: Path) -> None:
    path = tmp_path / "trace.parquet"
    as_parquet(real(name), path)
    made, text = opticoll.replay(path), opticoll.replay(real(name))
    file = {"trace": None, "command": None}
    assert {**made, **file} == {**text, **file}


def test_time_independent_traces_count_operations(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "trace.txt"
    path.write_text("0 init\n1 init\n0 compute 5e6\n0 send 1 0 100\n1 recv 0 0 100\n")
    row = run_json(run, "replay", "replay", path, "--operations", "1000000000")
    assert row["time_s"] == 0.005


@pytest.mark.parametrize("policy", ["every_step", "on_change", "per_port", "free"])
@pytest.mark.parametrize(
    ("ring", "graph"),
    [
        ("wavelengths=2,propagation=500ns", "wavelengths=2,latency=500ns"),
        ("wavelengths=4,ports=2", "wavelengths=4,transmitters=2,receivers=2"),
    ],
)
def test_a_ring_given_as_a_graph_replays_in_the_same_time(
    ring: str, graph: str, policy: str
) -> None:
    # Collectives with a named algorithm have the same plans on both.
    fabrics = (f"wdm_ring:ranks=16,rate=10Gb/s,{ring}", f"wdm_torus:dims=16,rate=10Gb/s,{graph}")
    for application in ("cg", "is"):
        rows = [
            opticoll.replay(real(application), fabric, collectives=COMMON, policy=policy)
            for fabric in fabrics
        ]
        assert rows[0].time_s == rows[1].time_s


# Lines of four ranks; the second has other numbers of links, because a cable of the ring is broken.
@pytest.mark.parametrize("line", ["wdm_line:ranks=4", "wdm_torus:dims=4,without=3-0"])
@pytest.mark.parametrize(("groups", "turns"), [(["0 1", "2 3"], 1), (["0 2", "1 3"], 2)])
def test_groups_on_a_graph_take_turns_on_shared_links_only(
    tmp_path: Path, line: str, groups: list[str], turns: int
) -> None:
    members = "".join(f"# comm {1 + index} = {ranks}\n" for index, ranks in enumerate(groups))
    # Blocks of 1 MB take 1 ms at 8 Gb/s.
    calls = [
        f"{rank},Allgather,,1000000,1000000,0,{1 + index},,0"
        for index, ranks in enumerate(groups)
        for rank in ranks.split()
    ]
    path = tmp_path / "groups.csv"
    path.write_text(f"# app=test ranks=4\n{members}{HEADER}\n" + "\n".join(sorted(calls)) + "\n")
    fabric = f"{line},wavelengths=1,rate=8Gb/s,reconfiguration=25us"
    row = opticoll.replay(path, fabric, collectives={"all_gather": "direct"})
    assert row.time_s == pytest.approx(turns * (25e-6 + 1e-3), rel=1e-12)


def test_a_time_line_has_neither_gaps_nor_overlaps(run: Run, tmp_path: Path) -> None:
    path, figure = tmp_path / "is.json", tmp_path / "is.svg"
    fabric = "wdm_ring:ranks=16,wavelengths=4"
    arguments = ("replay", real("is"), "--fabric", fabric, "--timeline", path, "--figure", figure)
    row = run_json(run, "replay", *arguments)
    events = json.loads(path.read_text())["traceEvents"]
    named = [event for event in events if event["name"] == "thread_name"]
    assert [event["args"]["name"] for event in named] == [f"rank {rank}" for rank in range(16)]
    pieces = defaultdict(list)
    inside: dict[str, float] = defaultdict(float)
    for event in events:
        if event["ph"] == "X":
            pieces[event["tid"]].append((event["ts"], event["dur"]))
            if event["cat"] == "call":
                inside[event["name"]] += event["dur"]
    for rank in row["per_rank"]:
        end = 0.0
        for start, duration in pieces[rank["rank"]]:
            assert start == pytest.approx(end, abs=1e-6)
            end = start + duration
        assert end == pytest.approx(1e6 * rank["finish_s"], abs=1e-3)
    for call in row["per_call"]:
        assert inside[call["call"]] == pytest.approx(1e6 * call["total_s"], abs=1e-2)
    assert figure.stat().st_size > 1000


def test_areas_of_a_time_line_are_shares_of_time() -> None:
    shares = np.zeros((2, 4))
    rank = np.array([0, 0, 1])
    start, end = np.array([0.0, 0.6, 0.1]), np.array([0.3, 0.7, 1.0])
    from opticoll.plot.timelines import _spread

    _spread(shares, rank, start, end)
    # Columns of 0.25: 0.25 and 0.05 of the first piece, 0.1 of the second.
    np.testing.assert_allclose(shares[0], [1.0, 0.2, 0.4, 0.0], atol=1e-12)
    np.testing.assert_allclose(shares[1], [0.6, 1.0, 1.0, 1.0], atol=1e-12)


def test_a_time_line_of_too_many_ranks_is_refused(tmp_path: Path) -> None:
    one = np.array([0]), np.array([0]), np.array([0.0]), np.array([1.0])
    with pytest.raises(opticoll.OpticollError, match="too many rows"):
        rank_timeline(*one, 1000, tmp_path / "many.svg")


def test_names_in_a_time_line_are_quoted() -> None:
    slices = [chrome_trace.Slice(0, "compute", 0, 5, None)]
    text = chrome_trace.to_text('a "name"\n', 1, slices)
    assert json.loads(text)["traceEvents"][0]["args"]["name"] == 'a "name"\n'


SEND = "0,Send,1,8,0,5,0,,1"
RECEIVE = "1,Recv,0,0,8,5,0,,1"

# The rows of a table for two ranks, options, and words of the message.
WRONG = f"""
{SEND} => rank 0, event 0 (line 3) | no receive of rank 1
{RECEIVE} => rank 1, event 0 (line 3) | sends no message
0,Wait,,0,0,,0,4,1 => rank 0, event 0 (line 3) | request 4, which is not open
0,Barrier,,0,0,,0,,1 => rank 0, event 0 (line 3) | rank 1 never enters
0,Barrier,,0,0,,7,,1 => rank 0, event 0 (line 3) | communicator 7 is not declared
2,Init,,0,0,,0,,0 => line 3 | there is no rank 2
0,Init,,0,0,,0,,-1 => line 3 | `-1` | nanoseconds
0,Init,,0 => line 3 | ends before column `recv_bytes`
{RECEIVE}; 1,Send,0,8,0,5,0,,1; 0,Recv,1,0,8,5,0,,1; {SEND}
    => deadlock | rank 0, event 0 (line 5) | rank 1, event 0 (line 3)
{SEND}; {RECEIVE} --fabric crossbar:ranks=1 => 2 ranks | the fabric has 1
{SEND} --fabric crosbar:ranks=2 => crossbar
{SEND} --fabric hockney:latency=1us => rate
{SEND}; {RECEIVE} --simulator fluid => zero | leave the simulator out
{SEND}; {RECEIVE} --fabric crossbar:ranks=2 --start step => --start
0,Barrier,,0,0,,0,,1; 1,Barrier,,0,0,,0,,1 --collective barrier=optre => optre
{SEND} --collective all_reducs=ring => all_reduce
{SEND} --collective all_reduce => all_reduce=ring
{SEND} --collective barrier=ring --collective barrier=ring => twice
{SEND} --cpu-factor fast => 0.5
{SEND} --cpu-factor=-1 => -1
{SEND} --cpu-factor=1=-1 => `-1` | 0.5
{SEND}; {RECEIVE} --cpu-factor 1-2=2 => --cpu-factor | no rank 2 | 0 to 1 | leave it out
{SEND} --cpu-factor 1=2,0-1=3 => --cpu-factor | rank 1 has two factors | leave one out
{SEND} --cpu-factor 1,3 => --cpu-factor | write RANK=3
{SEND} --cpu-factor one=3 => `one` | FIRST-LAST=2
{SEND} --cpu-factor 3-1=3 => `3-1` | lower rank first
{SEND}; {RECEIVE} --fabric lightpath_grid --eager 8B => leave the eager limit out
{SEND}; {RECEIVE} --fabric ladder:rungs=2 --bursts none => wavelengths=
{SEND}; {RECEIVE} --fabric wdm_ladder:rungs=2,hosts=2,wavelengths=2 => hosts=1 | --bursts
{SEND}; {RECEIVE} --fabric wdm_ladder:rungs=2,wavelengths=2 --bursts congestion=retry
    => congestion | leave it out
{SEND}; {RECEIVE} --fabric wdm_ladder:rungs=2,wavelengths=2 --bursts ports
    => --bursts | `ports` | offered_load=0.4
{SEND}; {RECEIVE} --fabric wdm_ladder:rungs=2,wavelengths=2 --bursts none --simulator fluid
    => simulator | leave it out
{SEND} --operations 5 => operations
{SEND} --figure figure.doc => .doc
{SEND} --timeline line.txt => .json
"""


@pytest.mark.parametrize(("case", "words"), cases(WRONG))
def test_what_cannot_be_replayed_is_refused(
    run: Run, tmp_path: Path, case: str, words: str
) -> None:
    rows, *options = case.replace("; ", "\n").split(" ")
    path = table(tmp_path, rows)
    refused(run, tmp_path, ["replay", str(path), *options], *words.split(" | "))


FILES: dict[str, tuple[str, bytes, tuple[str, ...]]] = {
    "no file": ("", b"", ("no file",)),
    "an empty file": ("empty.csv", b"", ("the text ends before the first call",)),
    "no text": ("trace.csv", b"rank,\xff\xfe", ("byte 5", "UTF-8")),
    "a compressed file cut short": ("cut.zst", real("ep").read_bytes()[:500], ("cut short",)),
    "GOAL cut short": ("cut.goal", b"num_ranks 2\nrank 0 {\n", ("the text ends within rank 1",)),
    "a Parquet file cut short": ("cut.parquet", b"PAR1" + bytes(20), ("Parquet",)),
    "a tar file without an archive": (
        "archive.tar",
        bytes(257) + b"ustar\x0000" + bytes(1024),
        ("tar",),
    ),
    "an anchor file alone": (
        "traces.otf2",
        b"\x03BOTF2" + bytes(100),
        ("not an intact OTF2 archive",),
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_no_trace_is_refused(run: Run, tmp_path: Path, name: str) -> None:
    file, content, words = FILES[name]
    path = tmp_path / (file or "nothing.csv")
    if file:
        path.write_bytes(content)
    refused(run, tmp_path, ["replay", str(path)], *words)


def test_names_in_a_parquet_file_that_are_no_text_are_refused(run: Run, tmp_path: Path) -> None:
    from pyarrow import parquet

    path = tmp_path / "trace.parquet"
    as_parquet(real("ep"), path)
    table = parquet.read_table(path)
    parquet.write_table(table.replace_schema_metadata({b"r\xe2nks": b"16"}), path)
    refused(run, tmp_path, ["replay", str(path)], "Parquet", "not an event table")
    # The table has no copy of the schema in another encoding.
    parquet.write_table(table, path, store_schema=False)
    path.write_bytes(path.read_bytes().replace(b"compute_ns", b"\xf4ompute_ns"))
    refused(run, tmp_path, ["replay", str(path)], "Parquet", "not an event table")


def test_an_archive_without_a_part_is_refused(run: Run, tmp_path: Path) -> None:
    folder = archive("ep", tmp_path)
    (folder / "traces" / "3.evt").unlink()
    refused(run, tmp_path, ["replay", str(folder)], "OTF2")


@pytest.mark.parametrize(("package", "file"), [("otf2", "ep.A.16.otf2.tar.zst"), ("pyarrow", "")])
def test_a_missing_package_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, package: str, file: str
) -> None:
    import sys

    path = DATA / file
    if not file:
        path = tmp_path / "trace.parquet"
        path.write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(errors.UsageError, match=r"pip install .otf2.* .pyarrow"):
        trace_file.read(path)


def test_tables_are_written_by_call_and_by_rank(run: Run, tmp_path: Path) -> None:
    for per, rows in (("call", 3), ("rank", 16)):
        path = tmp_path / f"{per}.csv"
        finished = run("replay", real("ep"), "--per", per, "--csv", path)
        assert finished.code == 0, finished.err
        assert len(path.read_text().splitlines()) == rows + 1
        assert "execution time 234.1 ms" in finished.out


def test_a_trace_that_was_read_is_replayed_again() -> None:
    trace = trace_file.read(real("ep"))
    assert (trace.ranks, trace.events, trace.messages) == (16, 112, (0, 0))
    first, second = (
        opticoll.replay(trace, fabric, collectives=COMMON) for fabric in ("zero", FABRICS[0])
    )
    assert first["trace"] is None
    assert first["messages"] == second["messages"]


def table_of_times() -> Iterator[tuple[str, Settings, list[float]]]:
    """Yields the rows of the page's table of execution times: fabric, settings, ms of five runs."""
    page = (Path(__file__).parents[1] / "docs" / "replay.md").read_text(encoding="utf-8")
    table = page.partition("| network | EP | FT | MG | IS | CG |")[2].partition("\n\n")[0]
    fabric = ""
    for line in table.splitlines()[2:]:
        network, *times = (cell.strip() for cell in line.strip("|").split("|"))
        spelled, *option = (part.strip(" `") for part in network.split(", `"))
        same = network.startswith("the same")
        fabric = fabric if same else spelled
        settings: Settings = {}
        for name, value in (words.lstrip("-").split() for words in option):
            assert name in ("simulator", "paths")
            settings = {"simulator": value} if name == "simulator" else {"paths": value}
        yield fabric, settings, [float(time) for time in times]


@pytest.mark.parametrize(("fabric", "settings", "times"), list(table_of_times()))
def test_the_page_has_the_times_of_the_real_runs(
    fabric: str, settings: Settings, times: list[float]
) -> None:
    for name, expected in zip(("ep", "ft", "mg", "is", "cg"), times, strict=True):
        # The packet simulator is the one that breaks ties.
        if "simulator" not in settings or name == "ft":
            done = opticoll.replay(real(name), fabric, collectives=COMMON, **settings)
            assert round(done["time_s"] * 1e3, 1) == expected, name


def test_an_index_names_the_traces_of_all_ranks(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "traces"
    folder.mkdir()
    (folder / "0.txt").write_text("0 init\n0 send 1 0 1000\n0 finalize\n\n")
    (folder / "1.txt").write_text("# receives\n1 init\n1 recv 0 0 1000\n1 finalize")
    index = tmp_path / "index.txt"
    index.write_text("traces/0.txt\n\ntraces/1.txt\n")
    on = ("--fabric", "hockney:latency=1us,rate=8Gb/s")
    # 1000 bytes at 1 GB/s, after 1 us.
    assert run_json(run, "replay", "replay", index, *on)["time_s"] == pytest.approx(2e-6)
    assert run_json(run, "replay", "replay", index, *on, "--operations", "1000")["ranks"] == 2
    (folder / "1.txt").write_text("1 init\n1 dance\n")
    finished = run("replay", index, *on)
    assert finished.code == 2
    assert f"{folder / '1.txt'}: line 2: unknown action `dance`" in finished.err
    (folder / "1.txt").unlink()
    finished = run("replay", index, *on)
    assert finished.code == 2
    assert f"there is no file `{folder / '1.txt'}`" in finished.err
