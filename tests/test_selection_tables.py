"""Selection tables: what a comparison supports, read as each library reads it."""

from __future__ import annotations

import csv
import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from opticoll.formats import selection_dialects
from opticoll.formats.selection_dialects import DIALECTS, mpich_choices
from support import Run

RINGS, TREES = "ring:channels=all", "double_binary_tree:channels=all"


def compared(**changes: Any) -> dict[str, Any]:
    """Returns a row of `compare` with the fields that a table needs."""
    row = {
        "collective": "all_reduce",
        "chosen": "ring:channels=all",
        "ranks": 16,
        "size_bytes": 1024,
        "time_ps": 1000,
        "fabric": "gpu_servers:model=dgx_a100,boxes=2",
        "verified": True,
    }
    return row | changes


def on_switch(ranks: int = 8, **changes: Any) -> dict[str, Any]:
    """Returns a row of `compare` on a crossbar."""
    return compared(ranks=ranks, fabric=f"crossbar:ranks={ranks}", chosen="ring") | changes


def export(
    run: Run, folder: Path, rows: list[dict[str, Any]], dialect: str = "nccl"
) -> tuple[str, str]:
    """Exports rows; returns the table and the command's output."""
    source, path = folder / "rows.json", folder / "table"
    source.write_text(json.dumps(rows))
    finished = run("export", source, "--format", dialect, "--output", path)
    assert finished.code == 0, finished.err
    return path.read_text(), finished.out


def lines_of(text: str) -> list[str]:
    """Returns the lines of a table without its comments."""
    return [line for line in text.splitlines() if not line.startswith("#")]


def test_a_comparison_becomes_a_table_of_what_nccl_takes(run: Run, tmp_path: Path) -> None:
    times = {
        1024: {TREES: 5, RINGS: 90},
        4096: {f"{TREES},segments=64": 10, TREES: 20, RINGS: 80},
        # NCCL has neither, so the fastest NCCL algorithm is used and a note names the other.
        16384: {TREES: 40, RINGS: 20, "tree_packing:trees=2": 5},
        65536: {"tree_packing:trees=2": 5},
        # NCCL has no ring through only one interface of each server.
        262144: {RINGS: 20, "double_binary_tree": 10},
    }
    rows = [
        compared(size_bytes=size, chosen=chosen, time_ps=time)
        for size, own in times.items()
        for chosen, time in own.items()
    ]
    rows.append(compared(size_bytes=1024, time_ps=1, verified=False))
    text, said = export(run, tmp_path, rows)
    # Choices change halfway, by factors, between the sizes that were compared.
    assert lines_of(text) == [
        "allreduce,0,8192,tree,simple,0,2,16",
        f"allreduce,8193,{2**64 - 1},ring,simple,0,2,16",
    ]
    for words in (said, text):
        assert f"16KiB on 16 ranks: tree_packing is up to 4 times as fast as {RINGS}" in words
        assert "64KiB on 16 ranks: no row is of an algorithm that NCCL has" in words
    assert all(len(line) < 256 for line in text.splitlines())


def test_a_table_names_the_protocol_of_each_time(run: Run, tmp_path: Path) -> None:
    rows = [
        compared(size_bytes=size, chosen=chosen, time_ps=time_ps, protocol=protocol)
        for size, chosen, protocol, time_ps in (
            (1024, TREES, "ll", 5),
            (4096, TREES, "ll128", 6),
            (4096, RINGS, "ll128", 9),
            (16384, RINGS, "ll128", 7),
            (65536, RINGS, "simple", 8),
        )
    ]
    one_server = {"fabric": "gpu_servers:model=dgx_h100", "ranks": 8, "protocol": "nvls"}
    rows.append(compared(chosen="nvls:segments=4", **one_server))
    assert lines_of(export(run, tmp_path, rows)[0]) == [
        "allreduce,0,2048,tree,ll,0,2,16",
        "allreduce,2049,8192,tree,ll128,0,2,16",
        "allreduce,8193,32768,ring,ll128,0,2,16",
        f"allreduce,32769,{2**64 - 1},ring,simple,0,2,16",
        f"allreduce,0,{2**64 - 1},nvls,simple,0,1,8",
    ]


def test_rccl_has_other_channels_and_no_switches_that_add(run: Run, tmp_path: Path) -> None:
    # RCCL ignores 0 channels with a warning; NCCL's plug-in takes one channel for -1.
    assert lines_of(export(run, tmp_path, [compared()], "rccl")[0]) == [
        f"allreduce,0,{2**64 - 1},ring,simple,-1,2,16"
    ]
    one_server = {"fabric": "gpu_servers:model=dgx_h100", "ranks": 8}
    refused(run, tmp_path, [compared(chosen="nvls", **one_server)], "rccl", "no row is")


def test_pat_needs_a_server_for_each_rank(run: Run, tmp_path: Path) -> None:
    row = compared(collective="all_gather", chosen="pat", ranks=16, fabric="fat_tree:ranks=16")
    assert lines_of(export(run, tmp_path, [row])[0]) == [
        f"allgather,0,{2**64 - 1},pat,simple,0,-1,16"
    ]
    together = row | {"fabric": "gpu_servers:model=dgx_a100,boxes=2"}
    refused(run, tmp_path, [together], "nccl", "no row is of an algorithm", "ring:channels=all")


def test_the_ring_of_a_table_for_two_servers_uses_all_interfaces(run: Run, tmp_path: Path) -> None:
    rows, path = tmp_path / "rows.csv", tmp_path / "table.conf"
    fabric = "dgx_a100:boxes=2,latency=2us,library=none"
    options = ["--algorithms", f"{RINGS},{TREES},ring", "--size", "128MiB"]
    assert run("compare", "all_reduce", "--fabric", fabric, *options, "--csv", rows).code == 0
    with rows.open() as file:
        times = {row["algorithm"]: float(row["time_s"]) for row in csv.DictReader(file)}
    # 30 steps of 1 MiB over each of 8 interfaces of 25 GB/s and 4 links of 2 us; or of 8 MiB over
    # one, and over 2 links more, since GPUs 7 and 8 are on two switches.
    assert times[RINGS] == pytest.approx(30 * (2**20 / 25e9 + 8e-6), rel=1e-6)
    assert times["ring"] == pytest.approx(30 * (2**23 / 25e9 + 12e-6), rel=1e-6)
    assert run("export", rows, "--output", path).code == 0
    faster = "ring" if times[RINGS] < times[TREES] else "tree"
    assert path.read_text().splitlines()[-1].split(",")[3] == faster


BYTES = {
    # The larger buffer of a rank, for which an all_gather of 8 ranks counts 8 blocks.
    "nccl": {"allgather": 8192, "reducescatter": 1024, "allreduce": 1024, "broadcast": 1024},
    # The same, divided by the ranks.
    "ncclx": {"allgather": 1024, "reducescatter": 128, "allreduce": 128, "broadcast": 128},
    "open_mpi": {
        "allgather": 8192,
        "reduce_scatter": 1024,
        "reduce_scatter_block": 1024,
        "allreduce": 1024,
        "bcast": 1024,
        "alltoall": 1024,
    },
    # The bytes for one rank of an all_to_all, those of all blocks of the others.
    "mpich": {
        "allgather": 8192,
        "reduce_scatter": 1024,
        "reduce_scatter_block": 1024,
        "allreduce": 1024,
        "bcast": 1024,
        "alltoall": 128,
    },
    "ucc": {"allgather": 8192, "allreduce": 1024, "alltoall": 1024},
    # The bytes of a block of a rank, as the buffers of an all_gather and a reduce_scatter have.
    "oneccl": {
        "ALLGATHER": 1024,
        "ALLGATHERV": 1024,
        "REDUCE_SCATTER": 128,
        "ALLREDUCE": 1024,
        "BCAST": 1024,
        "BROADCAST": 1024,
    },
}
"""Bytes that a library counts where `--size` is 1 KiB, by call."""

TWO = {
    "all_gather": ("ring", "one_stage"),
    "reduce_scatter": ("ring", "pairwise:order=shift"),
    "all_reduce": ("recursive_doubling", "ring"),
    "broadcast": ("direct", "scatter_all_gather"),
    "all_to_all": ("bruck", "pairwise:order=shift"),
}
"""Two algorithms of many libraries, by collective."""


@pytest.mark.parametrize("dialect", BYTES)
def test_sizes_are_those_that_the_library_counts(dialect: str, run: Run, tmp_path: Path) -> None:
    sizes = {call.name: call.size(1024, 8) for call in DIALECTS[dialect].calls}
    assert {name: sizes[name] for name in BYTES[dialect]} == BYTES[dialect]


# Readers that follow the sources of the libraries: the algorithm for a call on a number of ranks.
Reader = Callable[[str, str, int, int], Any]


def nccl(text: str, call: str, ranks: int, size: int) -> Any:
    """Returns the algorithm of the first line that matches, as the example plug-in does."""
    for line in lines_of(text):
        name, least, most, algorithm, _, _, nodes, number = line.split(",")
        fits = int(least) <= size <= int(most) and int(number) == ranks
        if name == call and fits and nodes == "-1":
            return algorithm
    return None


def ncclx(text: str, call: str, ranks: int, size: int) -> Any:
    """Returns the algorithm of the first rule that matches the bytes of a rank."""
    if text.startswith("{"):
        rules = [{**rule["filter"], **rule["config"]} for rule in json.loads(text)["rules"]]
    else:
        names = ("collective", "bytesPerRank", "algorithm", "protocol", "channels", "nNodes")
        columns = re.compile(r"(?:\[[^\])]*[\])]|[^,])+")
        rules = [
            dict(zip((*names, "nLocalRanks"), columns.findall(line), strict=True))
            for line in lines_of(text)
        ]
    for rule in rules:
        found = re.fullmatch(r"\[(\d+),(?:(\d+)\]|\))", rule["bytesPerRank"])
        assert found is not None
        ends = int(found[1]), int(found[2]) if found[2] else size // ranks
        fits = ends[0] <= size // ranks <= ends[1] and rule["collective"] == call
        if fits and int(rule["nNodes"]) * int(rule["nLocalRanks"]) == ranks:
            return rule["algorithm"]
    return None


def open_mpi(text: str, call: str, ranks: int, size: int) -> Any:
    """Returns the algorithm of the first rule that matches, as Open MPI 6 does."""
    for of_ranks in json.loads(text)["collectives"].get(call, []):
        if of_ranks["comm_size_min"] <= ranks <= of_ranks["comm_size_max"]:
            for rule in of_ranks["rules"]:
                if rule["msg_size_min"] <= size <= rule.get("msg_size_max", size):
                    return rule["alg"]
    return None


def open_mpi_rules(text: str, call: str, ranks: int, size: int) -> Any:
    """Returns the algorithm of the last rule up to a number of ranks and a size, as Open MPI 5."""
    names = {"allreduce": 2}
    numbers = {0: None, 3: "recursive_doubling", 4: "ring"}
    words = iter(re.sub(r"#.*", "", text).split())
    found = None
    for _ in range(int(next(words))):
        collective, best = int(next(words)), None
        for place in range(int(next(words))):
            own, chosen = int(next(words)), None
            for rule in range(int(next(words))):
                least, algorithm, _, _ = (int(next(words)) for _ in range(4))
                assert rule > 0 or least == 0
                chosen = algorithm if least <= size else chosen
            best = chosen if own <= ranks or place == 0 else best
        if collective == names[call]:
            found = numbers[best or 0]
    assert next(words, None) is None
    return found


def mpich(text: str, call: str, ranks: int, size: int) -> Any:
    """Returns the algorithm at the end of the first branches that match, as MPICH does."""
    node = json.loads(text)[f"collective={call}"]["comm_type=intra"]
    values = {"comm_size": ranks, "avg_msg_size": size, "total_msg_size": size, "count": size}
    facts = {"is_commutative=yes", "is_op_built_in=yes", "is_sendbuf_inplace=no"}
    while True:
        for key, below in node.items():
            if key.startswith("algorithm="):
                return key.partition("_intra_")[2]
            name, sign, value = re.split("(<=|<|=)", key)
            measured = values.get(name, 0)
            if (
                (key in facts or value == "any")
                or (sign == "<=" and measured <= int(value))
                or (sign == "<" and value != "pow2" and measured < int(value))
                or (key == "comm_size=pow2" and ranks & (ranks - 1) == 0)
            ):
                node = below
                break
        else:
            raise AssertionError(node)


def variables_of(text: str) -> dict[str, str]:
    """Returns the variables that a shell exports from a text."""
    words = shlex.split(text, comments=True)
    return dict(word.split("=", 1) for word in words if word != "export")


def ucc(text: str, call: str, ranks: int, size: int) -> Any:
    """Returns the algorithm of the range; a range ends before the number where the next begins."""
    for token in variables_of(text)["UCC_TL_UCP_TUNE"].split("#"):
        name, sizes, memory, team, score, algorithm = token.split(":")
        least, most = sizes.split("-")
        fits = int(least) <= size and (most == "inf" or size < int(most))
        if name == call and fits and team == f"[{ranks}-{ranks}]":
            assert (memory, score, algorithm[0]) == ("host", "inf", "@")
            return algorithm[1:]
    return None


def oneccl(text: str, call: str, ranks: int, size: int) -> Any:
    """Returns the algorithm of the range that contains a size."""
    for block in variables_of(text)[f"CCL_{call}"].split(";"):
        algorithm, least, most = re.split("[:-]", block)
        if int(least) <= size and (most == "max" or size <= int(most)):
            return algorithm
    return None


READERS: dict[str, tuple[Reader, str, str, str]] = {
    # The reader, the call, and the names of the algorithm for few bytes and of the ring.
    "nccl": (nccl, "allreduce", "double_binary_tree", "tree"),
    "rccl": (nccl, "allreduce", "double_binary_tree", "tree"),
    "ncclx": (ncclx, "allreduce", "double_binary_tree", "tree"),
    "ncclx_json": (ncclx, "allreduce", "double_binary_tree", "tree"),
    "open_mpi": (open_mpi, "allreduce", "recursive_doubling", "recursive_doubling"),
    "open_mpi_rules": (open_mpi_rules, "allreduce", "recursive_doubling", "recursive_doubling"),
    "mpich": (mpich, "allreduce", "recursive_doubling", "recursive_doubling"),
    "ucc": (ucc, "allreduce", "recursive_doubling", "knomial"),
    "oneccl": (oneccl, "ALLREDUCE", "recursive_doubling", "recursive_doubling"),
}


@pytest.mark.parametrize("dialect", READERS)
def test_the_reader_of_a_library_finds_the_choice_of_the_nearest_size(
    dialect: str, run: Run, tmp_path: Path
) -> None:
    read, call, ours, theirs = READERS[dialect]
    winners = {4096: ours, 65536: ours, 262144: "ring", 1048576: ours, 16777216: "ring"}
    # NCCLX divides the bytes by the ranks, UCC's algorithm for few bytes needs a power of two.
    few = {"oneccl": (8,), "ucc": (8, 16), "ncclx": (8, 16), "ncclx_json": (8, 16)}
    numbers = few.get(dialect, (8, 16, 17))
    rows = [
        # On 16 ranks, the ring wins where the other algorithm wins on 8 ranks.
        on_switch(ranks, chosen=chosen, size_bytes=size, time_ps=1 if won != (ranks == 16) else 2)
        for ranks in numbers
        for size, winner in winners.items()
        for chosen, won in ((ours, winner == ours), ("ring", winner == "ring"))
    ]
    text, _ = export(run, tmp_path, rows, dialect)
    for ranks in numbers:
        ends = (131072, 524288, 2**22)
        for size in (0, 1, 4096, 262144, *ends, *(end + ranks for end in ends), 2**40):
            # The nearest size by factors; of two such sizes, the smaller one.
            near = min(winners, key=lambda own: (max(own, size) / max(min(own, size), 1), own))
            ring = (winners[near] == "ring") != (ranks == 16)
            assert read(text, call, ranks, size) == ("ring" if ring else theirs), (ranks, size)
    if dialect not in ("mpich", "oneccl"):
        assert [read(text, call, ranks, 4096) for ranks in (2, 7, 9, 15, 18, 99)] == [None] * 6


def test_a_table_of_mpich_changes_nothing_else(run: Run, tmp_path: Path) -> None:
    rows = [on_switch(), on_switch(chosen="halving_doubling", size_bytes=65536)]
    own = json.loads(export(run, tmp_path, rows, "mpich")[0])
    default = mpich_choices()
    branch = own["collective=allreduce"]["comm_type=intra"]
    before = default["collective=allreduce"]["comm_type=intra"]
    assert branch.pop("comm_size<8") == branch.pop("comm_size=any") == before
    name = "algorithm=MPIR_Allreduce_intra_"
    doubling: dict[str, Any] = {f"{name}recursive_doubling": {}}
    parts = {"count<pow2": doubling, "count=any": {f"{name}reduce_scatter_allgather": {}}}
    assert branch == {
        "comm_size<=8": {
            "avg_msg_size<=8192": {
                "is_commutative=yes": {f"{name}ring": {}},
                "is_commutative=no": doubling,
            },
            "avg_msg_size=any": {"is_op_built_in=yes": parts, "is_op_built_in=no": doubling},
        }
    }
    own["collective=allreduce"]["comm_type=intra"] = before
    assert own == default


def test_a_chain_has_the_bytes_of_its_pieces(run: Run, tmp_path: Path) -> None:
    rows = [
        # Without a number, a chain has 8 pieces.
        on_switch(collective="broadcast", chosen="chain", size_bytes=8000),
        on_switch(collective="broadcast", chosen="chain:segments=3", size_bytes=32000),
    ]
    text, _ = export(run, tmp_path, rows, "open_mpi")
    (of_ranks,) = json.loads(text)["collectives"]["bcast"]
    assert of_ranks["rules"] == [
        {"msg_size_min": 0, "msg_size_max": 16000, "alg": "pipeline", "seg_size": 1000},
        {"msg_size_min": 16001, "alg": "pipeline", "seg_size": 10667},
    ]
    assert (
        "0 3 0 1000 # pipeline\n16001 3 0 10667" in export(run, tmp_path, rows, "open_mpi_rules")[0]
    )
    text, _ = export(run, tmp_path, rows, "mpich")
    assert '"chunk_size=1000"' in text
    assert '"chunk_size=10667"' in text


def refused(run: Run, folder: Path, rows: list[dict[str, Any]], dialect: str, *words: str) -> None:
    """Checks that rows support no table, and that the error has certain words."""
    source, path = folder / "rows.json", folder / "none"
    source.write_text(json.dumps(rows))
    finished = run("export", source, "--format", dialect, "--output", path)
    assert finished.code == 2
    for word in words:
        assert word in finished.err
    assert not path.exists()


LARGE = [
    on_switch(size_bytes=2**30),
    on_switch(size_bytes=2**33, chosen="halving_doubling"),
]


@pytest.mark.parametrize(
    ("dialect", "rows", "words"),
    [
        ("nccl", [compared(chosen="halving_doubling")], ("no row is of an algorithm", "ring")),
        ("nccl", [compared(chosen="ring:stripes=2")], ("no row is of an algorithm",)),
        ("nccl", [compared(chosen="ring")], ("no row is of an algorithm", "ring:channels=all")),
        ("nccl", [compared(chosen="double_binary_tree:segments=4")], ("no row is",)),
        ("nccl", [compared(), compared(fabric="crossbar:ranks=16")], ("differ in `fabric`",)),
        ("nccl", [compared(), compared(start="step")], ("differ in `start`",)),
        ("nccl", [{"step": 3}], ("not of `compare`", "collective")),
        ("nccl", [compared(collective="all_to_all")], ("no table of NCCL selects all_to_all",)),
        # Other ranks than the root do not know the size of a scatter in MPI.
        ("open_mpi", [on_switch(collective="scatter")], ("scatter: only the root knows",)),
        ("open_mpi_rules", [on_switch(collective="gather")], ("gather: only the root knows",)),
        ("open_mpi", [compared(chosen="ring:channels=all")], ("as Open MPI runs it", "ring")),
        # Open MPI folds ranks in differently.
        ("open_mpi", [on_switch(6, chosen="halving_doubling")], ("compare recursive_doubling",)),
        ("mpich", [on_switch(collective="scatter")], ("one algorithm only",)),
        ("mpich", LARGE, ("allreduce", "numbers up to 2147483647", "smaller sizes")),
        ("oneccl", [on_switch(8), on_switch(16)], ("ALLREDUCE on 8 and 16 ranks", "for each")),
        # This ring visits the ranks along the grid.
        (
            "mpich",
            [on_switch(16, fabric="wss_grid:rows=4,columns=4")],
            ("no row is of an algorithm as MPICH runs it",),
        ),
    ],
)
def test_rows_that_support_no_table_are_refused(
    run: Run, tmp_path: Path, dialect: str, rows: list[dict[str, Any]], words: tuple[str, ...]
) -> None:
    refused(run, tmp_path, rows, dialect, *words)


def test_a_ring_in_the_order_of_the_ranks_is_that_of_a_library(run: Run, tmp_path: Path) -> None:
    row = on_switch(16, fabric="wss_grid:rows=4,columns=4", chosen="ring:order=natural")
    assert '"alg": "ring"' in export(run, tmp_path, [row], "open_mpi")[0]


def test_rows_that_compare_wrote_become_a_table(run: Run, tmp_path: Path) -> None:
    rows, path = tmp_path / "rows.csv", tmp_path / "table.conf"
    options = ["--algorithms", "ring,double_binary_tree", "--sizes", "1KiB,16MiB"]
    command = ["compare", "all_reduce", "--fabric", "crossbar:ranks=16,latency=5us"]
    assert run(*command, *options, "--csv", rows).code == 0
    assert run("export", rows, "--output", path).code == 0
    lines = lines_of(path.read_text())
    # Steps decide for small vectors: 30 for the ring, about 2 * 4 for the tree.
    assert lines[0].startswith("allreduce,0,")
    assert lines[0].split(",")[3] == "tree"
    # Bytes decide for large ones: twice the vector on the ring, six times on trees.
    assert lines[-1].split(",")[3] == "ring"
    finished = run("export", rows, "--output", path, "--fabric", "crossbar:ranks=8")
    assert finished.code == 2
    assert "--fabric cannot be given with rows" in finished.err


def test_rows_of_a_sweep_become_a_table(run: Run, tmp_path: Path) -> None:
    study, store = tmp_path / "study.yaml", tmp_path / "study.sqlite"
    rows, path = tmp_path / "rows.csv", tmp_path / "own.rules"
    study.write_text(
        "study: own\ncommand: simulate\n"
        "options: {collective: all_reduce, latency: 5us}\n"
        "grid: {fabric: ['crossbar:ranks=8', 'crossbar:ranks=4'], size: [64B, 16MiB],\n"
        "  algorithm: [ring, recursive_doubling]}\n".replace(", latency: 5us", "")
    )
    assert run("sweep", study, "--store", store).code == 0
    assert run("results", store, "--csv", rows).code == 0
    assert run("export", rows, "--output", path).code == 0
    # 3 steps of a rank's whole vector, or 14 of an eighth: on a crossbar without latency the ring
    # is the faster one at all sizes, since 14/8 is less than 3.
    for ranks in (4, 8):
        assert open_mpi_rules(path.read_text(), "allreduce", ranks, 16 * 2**20) == "ring"


def listed(dialect: str) -> list[str]:
    """Returns the algorithms of a library as lines of a table in the documentation."""
    only: dict[Any, str] = {
        selection_dialects._power_of_two: " (a power of two of ranks)",
        selection_dialects._no_power_of_two: " (no power of two of ranks)",
        selection_dialects._even: " (an even number of ranks)",
        selection_dialects._one_server: " (one server)",
        selection_dialects._no_servers: " (ranks that do not form servers)",
    }
    lines = []
    for call in DIALECTS[dialect].calls:
        pairs = []
        for own in call.algorithms:
            ours = f"{own.ours}:segments=*" if own.cut else own.ours
            pairs.append(f"`{ours}`: `{own.theirs}`{only.get(own.on, '')}")
        lines.append(f"| {call.collective} | `{call.name}` | {'; '.join(pairs)} |")
    return lines


@pytest.mark.parametrize("dialect", ["nccl", "rccl", "open_mpi", "mpich", "ucc", "oneccl"])
def test_the_page_of_a_library_lists_its_algorithms(dialect: str) -> None:
    page = Path(__file__).parents[1] / "docs/runtimes" / f"{dialect.replace('_', '-')}.md"
    assert "\n".join(listed(dialect)) in page.read_text(encoding="utf-8")
