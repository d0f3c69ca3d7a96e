"""Selection tables in libraries.

Open MPI and MPICH send the messages of opticoll's plans. NCCL's plug-in marks the algorithms.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import library_messages
import opticoll
from library_messages import LIBRARIES, Messages, difference
from opticoll.formats.selection_dialects import DIALECTS
from opticoll.formats.selection_table import Place
from support import Run

SIZES = [480 * 4**place for place in range(5)]
"""Bytes that 6 and 8 ranks, 4 pieces and halves divide."""

SENDS_MORE = ("scatter_all_gather", "scatter_all_gather:all_gather=recursive_doubling")
"""Plans without messages to ranks that have the data already, which the libraries send."""

Case = tuple[str, str, int, str]
"""A call, the specification of its plan, the size, and the collective."""


def cases(dialect: str, ranks: int) -> list[Case]:
    """Returns a size for each algorithm of a library, so that a table selects all of them.

    A barrier has no size, hence one algorithm: another one for each number of ranks.
    """
    found = []
    for call in DIALECTS[dialect].calls:
        on = [own for own in call.algorithms if own.on(Place(ranks, -1, "crossbar"))]
        if call.collective == "barrier":
            found.append((call.name, on[ranks % 8 % len(on)].ours, 0, call.collective))
            continue
        for size, own in zip(SIZES, on, strict=False):
            spec = f"{own.ours}:segments=4" if own.cut else own.ours
            found.append((call.name, spec, size, call.collective))
    return found


def write_table(run: Run, folder: Path, dialect: str, made: list[Case], ranks: int) -> Path:
    """Writes a table of a comparison in which each algorithm is the fastest one for its size."""
    rows: list[dict[str, Any]] = [
        {
            "collective": collective,
            "chosen": spec,
            "ranks": ranks,
            "size_bytes": size,
            "time_ps": 1,
            "fabric": f"crossbar:ranks={ranks}",
            "verified": True,
        }
        for _, spec, size, collective in made
    ]
    source, path = folder / "rows.json", folder / f"{dialect}.table"
    source.write_text(json.dumps(rows))
    finished = run("export", source, "--format", dialect, "--output", path)
    assert finished.code == 0, finished.err
    return path


def plan_of(case: Case, ranks: int) -> opticoll.Plan:
    """Returns the plan of a case."""
    _, spec, size, collective = case
    size_text = "1B" if collective == "barrier" else f"{size}B"
    return opticoll.plan(collective, f"crossbar:ranks={ranks}", spec, size=size_text)


def mirrored(found: Messages) -> Messages:
    """Returns the messages of a ring as those of the ring in the other direction."""
    ranks = len(found.sent)
    return Messages(
        {-rank % ranks: [-source % ranks for source in own] for rank, own in found.sources.items()},
        {-rank % ranks: own for rank, own in found.sent.items()},
    )


def compare(case: Case, ranks: int, found: dict[str, Messages]) -> str:
    """Returns how the messages of a library differ from those of the plan of a case."""
    call, spec, size, collective = case
    messages = found[f"{call}:{size}:{ranks}"]
    if (collective, spec) == ("reduce_scatter", "ring"):
        messages = mirrored(messages)
    return difference(plan_of(case, ranks), size, messages, more=spec in SENDS_MORE)


@pytest.mark.parametrize("ranks", [8, 6])
@pytest.mark.parametrize("name", LIBRARIES)
def test_a_library_runs_the_plans_that_its_table_names(
    name: str, ranks: int, run: Run, tmp_path: Path
) -> None:
    library = LIBRARIES[name]
    if not library.present:
        pytest.skip(f"needs the wheel of {name}")
    made = cases(library.dialect, ranks)
    calls = [f"{call}:{size}:{ranks}" for call, _, size, _ in made]
    # The table is for `ranks` ranks: fewer ranks have the library's own choices.
    fewer = [f"{call}:{size}:5" for call, _, size, _ in made]
    path = write_table(run, tmp_path, library.dialect, made, ranks)
    asked = dict.fromkeys([*calls, *fewer])
    with_table = library_messages.of_library(library, tmp_path, ranks, asked, path)
    wrong = {case[:3]: compare(case, ranks, with_table) for case in made}
    assert {case: text for case, text in wrong.items() if text} == {}
    without = library_messages.of_library(library, tmp_path, ranks, asked, None)
    assert {call: with_table[call] for call in fewer} == {call: without[call] for call in fewer}
    # Without the table, no call has all these choices.
    for call in {call for call, spec, _, _ in made if spec == "ring"}:
        assert any(compare(case, ranks, without) for case in made if case[0] == call)


@pytest.mark.parametrize("name", LIBRARIES)
def test_a_range_ends_where_the_table_says(name: str, run: Run, tmp_path: Path) -> None:
    library = LIBRARIES[name]
    if not library.present:
        pytest.skip(f"needs the wheel of {name}")
    made: list[Case] = [
        ("allreduce", "recursive_doubling", 1024, "all_reduce"),
        ("allreduce", "ring", 4096, "all_reduce"),
    ]
    path = write_table(run, tmp_path, library.dialect, made, 4)
    # The geometric mean of 1024 and 4096 is 2048; sizes below and above have the nearest choice.
    sizes = {1: 0, 2048: 0, 2049: 1, 100000: 1}
    asked = [f"allreduce:{size}:4" for size in sizes]
    found = library_messages.of_library(library, tmp_path, 4, asked, path)
    for size, place in sizes.items():
        messages = found[f"allreduce:{size}:4"]
        texts = [difference(plan_of(case, 4), size, messages, more=True) for case in made]
        assert (texts[place], bool(texts[1 - place])) == ("", True)


PLUGIN = os.environ.get("OPTICOLL_NCCL_TUNER")
"""Folder of NCCL's sources `plugins/tuner/example`."""


class Tuner(ctypes.Structure):
    """NCCL's `ncclTuner_v5_t`."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("init", ctypes.CFUNCTYPE(*[ctypes.c_int, *[ctypes.c_void_p] * 7])),
        (
            "info",
            ctypes.CFUNCTYPE(
                *(ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t, ctypes.c_int),
                *(ctypes.c_void_p, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_void_p),
            ),
        ),
    )


@pytest.mark.skipif(not PLUGIN, reason="OPTICOLL_NCCL_TUNER names no folder of NCCL's plug-in")
def test_the_plug_in_of_nccl_marks_the_algorithm_and_leaves_the_channels(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Case] = [
        ("allreduce", "double_binary_tree", 1024, "all_reduce"),
        ("allreduce", "ring", 4096, "all_reduce"),
        ("allgather", "nvls", 4096, "all_gather"),
        ("broadcast", "chain:segments=4", 4096, "broadcast"),
    ]
    path = write_table(run, tmp_path, "nccl", made, 8)
    monkeypatch.setenv("NCCL_TUNER_CONFIG_FILE", str(path))
    library = tmp_path / "plugin.so"
    folder = Path(PLUGIN or "")
    options = ["-shared", "-fPIC", f"-I{folder}", f"-I{folder / 'nccl'}"]
    subprocess.run(["cc", *options, "-o", library, folder / "plugin.c"], check=True)
    tuner = Tuner.in_dll(ctypes.CDLL(str(library)), "ncclTunerPlugin_v5")
    context = ctypes.c_void_p()
    assert tuner.init(ctypes.addressof(context), 0, 8, 1, None, None, None) == 0
    # NCCL's numbers of the calls, the algorithms and the protocol `simple`, as in its tuner.h.
    broadcast, all_gather, all_reduce = 0, 2, 4
    tree, ring, nvls = 0, 1, 4
    for call, size, chosen in (
        *((all_reduce, size, tree) for size in (0, 1024, 2048)),
        *((all_reduce, size, ring) for size in (2049, 4096, 2**40)),
        (all_gather, 1, nvls),
        (broadcast, 2**40, ring),
    ):
        row = ctypes.c_float * 3
        costs = (row * 7)(*(row(1.0, 1.0, 1.0) for _ in range(7)))
        channels = ctypes.c_int(-1)
        asked = (context, call, size, 1, ctypes.addressof(costs), 7, 3, 0)
        assert tuner.info(*asked, ctypes.addressof(channels)) == 0
        marked = [(own, at) for own in range(7) for at in range(3) if costs[own][at] == 0]
        # NCCL takes its own number of channels if a plug-in returns 0.
        assert (marked, channels.value) == ([(chosen, 2)], 0)


ONECCL = os.environ.get("OPTICOLL_ONECCL")
"""Folder of the wheels `oneccl-cpu` and `oneccl-cpu-devel`, with `include` and `lib`."""


@pytest.mark.skipif(not ONECCL, reason="OPTICOLL_ONECCL names no folder of oneCCL's wheels")
def test_oneccl_selects_what_its_variables_name(run: Run, tmp_path: Path) -> None:
    made: list[Case] = [
        ("ALLREDUCE", "recursive_doubling", 1024, "all_reduce"),
        ("ALLREDUCE", "ring", 4096, "all_reduce"),
        ("ALLGATHERV", "direct:order=at_once", 1024, "all_gather"),
        ("ALLGATHERV", "ring", 4096, "all_gather"),
    ]
    table = write_table(run, tmp_path, "oneccl", made, 4)
    words = shlex.split(table.read_text(), comments=True)
    variables = dict(word.split("=", 1) for word in words if word != "export")
    root, job = Path(ONECCL or ""), tmp_path / "job"
    source = Path(__file__).parent / "data/oneccl_job.cpp"
    options = ["-std=c++17", f"-I{root / 'include'}", f"-L{root / 'lib'}"]
    unresolved = "-Wl,--unresolved-symbols=ignore-in-shared-libs"
    subprocess.run(
        ["c++", *options, source, "-o", job, "-lccl", unresolved], check=True, timeout=300
    )
    # MPICH's wheel has the library libfabric, by which oneCCL sends messages.
    libraries = f"{root / 'lib'}{os.pathsep}{Path(sys.prefix) / 'lib/mpich'}"
    settings = {"CCL_ATL_TRANSPORT": "ofi", "FI_PROVIDER": "tcp", "CCL_LOG_LEVEL": "debug"}
    mpiexec = Path(sys.executable).with_name("mpiexec")
    finished = subprocess.run(
        [mpiexec, "-n", "4", job, tmp_path / "kvs", "1024", "2048", "2052", "4096"],
        env={**os.environ, **variables, **settings, "LD_LIBRARY_PATH": libraries},
        timeout=300,
        capture_output=True,
        text=True,
        check=False,
    )
    said = finished.stdout + finished.stderr
    assert finished.returncode == 0, said[-2000:]
    chosen = set(re.findall(r"selected algo: coll (\w+), count ([1-9]\d*), algo (\w+)", said))
    # Elements of 4 bytes. Ranges end at 2048 B, the geometric mean of the sizes.
    small, large = ("256", "512"), ("513", "1024")
    assert chosen == {
        *(("allreduce", count, "recursive_doubling") for count in small),
        *(("allreduce", count, "ring") for count in large),
        *(("allgatherv", count, "naive") for count in small),
        *(("allgatherv", count, "ring") for count in large),
    }
