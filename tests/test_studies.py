"""Studies: what is swept is what was asked for, and what was computed is never lost or repeated."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import random
import re
import resource
import shlex
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import opticoll
from opticoll import _core
from opticoll.errors import FileError, UsageError
from opticoll.study import document, forecast, progress
from opticoll.study.points import points
from opticoll.study.results import table_of
from opticoll.study.store import Result, Store, StudyRecord
from support import Run, written_study

RINGS = """
study: rings
command: simulate
options: {collective: all_gather, fabric: wdm_ring}
grid:
  fabric.ranks: [4, 6, 8]
  fabric.wavelengths: [1, 2]
  algorithm: [ring, neighbour_exchange, auto]
  size: [1KiB, 64KiB]
"""
"""36 points of some milliseconds each."""

SLOW = """
study: slow
command: simulate
options: {collective: all_reduce, fabric: "wdm_ring:wavelengths=8"}
grid:
  fabric.ranks: [14, 16, 18, 20, 22, 24]
  policy: [free, on_change]
  size: [1KiB, 16KiB, 256KiB, 4MiB]
"""
"""48 points, each of which plans anew: some 50 ms each."""

OWN = '''
"""An algorithm that fails as the files beside it say."""
import os, pathlib, time
import numpy as np
from opticoll import Schedule
HERE = pathlib.Path(__file__).parent

def fails(collective, fabric):
    if not (HERE / "cured").exists():
        raise ValueError("not yet")
    return whole(collective)

def kills_once(collective, fabric):
    if not (HERE / "killed").exists():
        (HERE / "killed").write_text("")
        os._exit(9)
    return whole(collective)

def kills(collective, fabric):
    os._exit(9)

def sleeps(collective, fabric):
    time.sleep(0.06)
    return whole(collective)

def whole(collective):
    schedule = Schedule(collective)
    ranks = np.arange(collective.ranks)
    for step in range(collective.ranks - 1):
        schedule.step((ranks - step) % collective.ranks, ranks, (ranks + 1) % collective.ranks)
    return schedule
'''


def study_of(folder: Path, options: str, grid: str) -> Path:
    text = f"study: s\ncommand: simulate\noptions: {{{options}}}\ngrid: {{{grid}}}\n"
    return written_study(folder, text)


def table(store: Path, run: Run, *more: str | Path) -> bytes:
    """Returns the results as CSV, which leaves out the computing times."""
    path = store.with_suffix(".csv")
    finished = run("results", store, "--csv", path, *more)
    assert finished.code == 0, finished.err
    return path.read_bytes()


def hears_interrupts() -> None:
    """Restores SIGINT, which a job that a shell runs in the background ignores from its start."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def swept(
    *words: str | Path, before: Callable[[], None] = hears_interrupts
) -> subprocess.Popen[str]:
    """Starts a sweep in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "opticoll", "sweep", *map(str, words)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=before,
    )  # fmt: skip


def finished_points(store: Path) -> int:
    try:
        with Store.read(store) as there:
            return sum(point.result is not None for one in there.studies()
                       for point in there.results(one.name))  # fmt: skip
    except FileError:
        return 0


def wait_for(condition: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_sweep_computes_what_the_command_prints(run: Run, tmp_path: Path) -> None:
    study = written_study(tmp_path, RINGS)
    assert run("sweep", study, "--jobs", "2").code == 0
    with Store.read(tmp_path / "study.sqlite") as store:
        found = list(store.results("rings"))
    assert len(found) == 36
    point: Any
    for point in found[::7]:
        printed = json.loads(run(*shlex.split(point.command)[1:], "--json").out)
        del printed["command"]  # which the point has
        assert point.result.rows == [printed]


def test_a_second_sweep_computes_nothing_and_a_larger_study_the_rest(
    run: Run, tmp_path: Path
) -> None:
    study = written_study(tmp_path, RINGS)
    assert opticoll.sweep(study, jobs=1).computed == 36
    assert opticoll.sweep(study, jobs=1).computed == 0
    written_study(tmp_path, RINGS.replace("[4, 6, 8]", "[4, 6, 8, 10]"))
    row = opticoll.sweep(study, jobs=1)
    assert (row.points, row.before, row.computed) == (48, 36, 12)


def test_a_plan_is_made_once_for_points_that_differ_in_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from opticoll.study.worker import Task, solve_all

    made: list[str] = []
    plan = _core.plan

    def counted(*words: Any, **more: Any) -> opticoll.Plan:
        made.append(words[1].spec)
        return plan(*words, **more)

    monkeypatch.setattr(_core, "plan", counted)
    study = document.read(written_study(tmp_path, RINGS))
    tasks = [Task(one.key, one.options) for one in points(study)]
    solved = solve_all("simulate", tasks, None)
    assert all(one.error is None for one in solved)
    assert len(made) == 6 * 2 + 12  # auto looks at the size
    monkeypatch.undo()
    alone = [solve_all("simulate", [task], None)[0] for task in tasks]
    assert [one.text for one in alone] == [one.text for one in solved]


@pytest.fixture(scope="module")
def slow_table(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Returns the results of an uninterrupted sweep as CSV."""
    folder = tmp_path_factory.mktemp("whole")
    opticoll.sweep(written_study(folder, SLOW))
    opticoll.write_csv(opticoll.results(folder / "study.sqlite"), folder / "study.csv")
    return (folder / "study.csv").read_bytes()


def test_a_killed_sweep_loses_nothing_and_repeats_nothing(
    run: Run, tmp_path: Path, slow_table: bytes
) -> None:
    generator = random.Random(18)
    study, store = written_study(tmp_path, SLOW), tmp_path / "study.sqlite"
    killed = 0
    while killed < 4:
        before = finished_points(store)
        sweep = swept(study, "--jobs", "2")
        goal = min(47, before + generator.randint(1, 12))
        while finished_points(store) < goal and sweep.poll() is None:
            time.sleep(0.02)
        if sweep.poll() is not None:
            break
        time.sleep(generator.random() / 5)
        sweep.send_signal(signal.SIGKILL)
        sweep.communicate(timeout=60)
        # The sweep may have ended in the meantime.
        if sweep.returncode == 0:
            break
        assert sweep.returncode == -signal.SIGKILL
        killed += 1
    assert killed >= 2
    there = finished_points(store)
    row = opticoll.sweep(study)
    assert row.before == there
    assert row.before + (row.computed or 0) == 48
    assert table(store, run) == slow_table


def test_workers_end_with_their_sweep(tmp_path: Path) -> None:
    study, store = written_study(tmp_path, SLOW), tmp_path / "study.sqlite"
    sweep = swept(study, "--jobs", "2")
    wait_for(lambda: finished_points(store) >= 1)
    listing = Path(f"/proc/{sweep.pid}/task/{sweep.pid}/children").read_text().split()
    children = [Path(f"/proc/{child}/stat") for child in listing]
    assert len(children) == 2
    sweep.kill()
    sweep.communicate()

    def gone(stat: Path) -> bool:
        try:
            return stat.read_text().split()[2] == "Z"
        except OSError:
            return True

    wait_for(lambda: all(map(gone, children)))


def test_an_interrupted_sweep_keeps_what_is_finished(tmp_path: Path) -> None:
    study, store = written_study(tmp_path, SLOW), tmp_path / "study.sqlite"
    sweep = swept(study, "--jobs", "2")
    wait_for(lambda: finished_points(store) >= 3)
    sweep.send_signal(signal.SIGINT)
    out, err = sweep.communicate(timeout=60)
    assert (sweep.returncode, out) == (130, "")
    (line,) = err.splitlines()
    assert "interrupted" in line
    assert "of 48 points" in line
    kept = finished_points(store)
    assert 3 <= kept < 48
    assert opticoll.sweep(study).before == kept


def test_two_sweeps_of_one_store_share_the_work(
    run: Run, tmp_path: Path, slow_table: bytes
) -> None:
    study, store = written_study(tmp_path, SLOW), tmp_path / "study.sqlite"
    both = [swept(study, "--jobs", "1", "--json") for _ in range(2)]
    rows = []
    for sweep in both:
        out, err = sweep.communicate(timeout=300)
        assert sweep.returncode == 0, err
        rows.append(json.loads(out))
    assert sum(row["computed"] for row in rows) == 48
    assert all(row["computed"] > 0 for row in rows)
    assert table(store, run) == slow_table


def test_shards_merged_are_one_run(run: Run, tmp_path: Path) -> None:
    study = written_study(tmp_path, RINGS)
    opticoll.sweep(study, tmp_path / "whole.sqlite")
    parts = [tmp_path / f"part{number}.sqlite" for number in (1, 2, 3)]
    for number, part in enumerate(parts, 1):
        assert 0 < opticoll.sweep(study, part, shard=f"{number}/3").points < 36
    merges = [word for part in parts for word in ("--merge", str(part))]
    finished = run("sweep", study, "--store", tmp_path / "merged.sqlite", *merges, "--json")
    assert '"computed": 0' in finished.out
    whole = table(tmp_path / "whole.sqlite", run)
    assert table(tmp_path / "merged.sqlite", run) == whole
    assert table(parts[0], run, "--also", parts[1], "--also", parts[2]) == whole


def test_the_table_of_results_has_the_order_of_the_study_whatever_was_computed_first(
    tmp_path: Path,
) -> None:
    rows: dict[int, dict[str, Any]] = {
        0: {"bottleneck": "a link", "transfers": 12, "time_s": 0.5},
        1: {"transfers": 24, "reconfigurations": 3, "time_s": 0.25},
        2: {"steps": 4, "transfers": 48, "time_s": 0.125},
    }
    axes = ["size", "fabric", "algorithm"]
    listed = [
        (number, f"key {number}", 0, dict.fromkeys(axes, str(number)), "opticoll simulate")
        for number in rows
    ]
    stores = [tmp_path / f"{number}.sqlite" for number in rows]
    for number, path in enumerate(stores):
        with Store.open(path) as store:
            store.define(StudyRecord("rings", "simulate", axes, replicated=False), listed)
            store.keep([Result.of(f"key {number}", [rows[number]])])
    order = [*axes, "steps", "transfers", "time_s", "reconfigurations", "bottleneck"]
    for several in itertools.permutations(stores):
        for count in range(1, 4):
            table = table_of(several[:count])
            points = [row.point for row in table]
            assert points == sorted(points)
            assert len(points) == count
            columns = [name for name in table[0] if name in order]
            assert columns == [name for name in order if name in columns]
            assert len(columns) == len(axes) + len({key for point in points for key in rows[point]})


CROSSBAR = """
study: own
command: simulate
options: {collective: all_gather, fabric: "crossbar:ranks=4"}
"""


def test_an_error_is_a_row_and_is_retried_when_asked(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    written_study(tmp_path, OWN, "own_algorithm.py")
    study = written_study(tmp_path, CROSSBAR + "grid: {algorithm: [ring, 'own_algorithm:fails']}\n")
    finished = run("sweep", study)
    assert finished.code == 1
    assert "1 point failed: `opticoll results" in finished.err
    failed = run("results", "study.sqlite", "--failed")
    assert "not yet" in failed.out
    assert "1 row" in failed.out
    assert opticoll.sweep(study).computed == 0
    assert opticoll.sweep(study, retry=True).computed == 1
    (tmp_path / "cured").write_text("")
    row = opticoll.sweep(study, retry=True)
    assert (row.computed, row.errors) == (1, 0)


def test_points_of_a_worker_that_dies_are_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    written_study(tmp_path, OWN, "own_algorithm.py")
    study = written_study(
        tmp_path,
        CROSSBAR + "grid: {algorithm: ['own_algorithm:kills_once', ring, 'own_algorithm:kills',"
        " auto], size: [1KiB, 2KiB]}\n",
    )
    row = opticoll.sweep(study, jobs=2)
    assert (row.points, row.computed, row.errors) == (8, 8, 2)
    with Store.read(tmp_path / "study.sqlite") as store:
        errors = {
            (point.axes["algorithm"], point.result.error)
            for point in store.results()
            if point.result and point.result.error
        }
    assert errors == {("own_algorithm:kills", "2 workers died at it, the last with exit code 9")}


def test_work_beyond_the_memory_limit_is_an_error_that_names_it(run: Run, tmp_path: Path) -> None:
    fabrics = "fabric: ['crossbar:ranks=2', 'crossbar:ranks=2000']"
    study = study_of(tmp_path, "collective: all_to_all, algorithm: pairwise", fabrics)
    finished = run("sweep", study, "--memory-limit", "20MB", "--jobs", "2")
    assert "1 point failed" in finished.err
    assert "the limit is 20.00 MB" in run("results", tmp_path / "study.sqlite", "--failed").out


def test_a_store_of_a_newer_opticoll_is_refused(run: Run, tmp_path: Path) -> None:
    study, store = written_study(tmp_path, RINGS), tmp_path / "study.sqlite"
    Store.open(store).__exit__(None, None, None)
    with sqlite3.connect(store) as connection:
        connection.execute("PRAGMA user_version = 99")
    for words in (["sweep", study], ["results", store], ["sweep", study, "--dry-run"]):
        finished = run(*words)
        assert finished.code == 2
        assert "was written by a newer opticoll (layout 99" in finished.err


@pytest.mark.parametrize("content", [b"", b"not a store", b"SQLite format 3\0" + bytes(2000)])
def test_what_is_no_store_is_refused_and_left_alone(
    run: Run, tmp_path: Path, content: bytes
) -> None:
    study, store = written_study(tmp_path, RINGS), tmp_path / "study.sqlite"
    store.write_bytes(content)
    finished = run("results", store)
    assert finished.code == 2
    assert "store" in finished.err
    if content:
        assert run("sweep", study).code == 2
        assert store.read_bytes() == content


DAMAGE = {
    "a text that is no UTF-8": "UPDATE results SET rows = CAST(x'5bff' AS TEXT)",
    "compressed rows cut short": "UPDATE results SET rows = x'28b52ffd04'",
    "rows that are not valid JSON": "UPDATE results SET rows = '[{'",
    "axes that are no set": "UPDATE points SET axes = '[1]'",
    "a column that is missing": "ALTER TABLE runs RENAME COLUMN machine TO mashine",
}


@pytest.mark.parametrize("damage", [*DAMAGE, "pages overwritten"])
def test_a_damaged_store_is_refused_by_every_command(run: Run, tmp_path: Path, damage: str) -> None:
    study, store = written_study(tmp_path, RINGS), tmp_path / "study.sqlite"
    opticoll.sweep(study, store, shard="1/9")
    with contextlib.closing(sqlite3.connect(store)) as connection, connection:
        connection.execute(DAMAGE.get(damage, "VACUUM"))
        (size,) = connection.execute("PRAGMA page_size").fetchone()
        connection.execute("PRAGMA journal_mode = DELETE")
    if damage not in DAMAGE:
        content = store.read_bytes()
        store.write_bytes(content[:size] + b"\xa5" * (len(content) - size))
    said = []
    for words in (
        ("results", store),
        ("report", store, "--output", tmp_path / "page.html"),
        ("sweep", study, "--shard", "1/9", "--jobs", "1"),
        ("sweep", study, "--store", tmp_path / "new.sqlite", "--merge", store, "--shard", "1/99"),
    ):
        finished = run(*words)
        assert "internal" not in finished.err
        assert finished.code in (0, 2)
        said += [finished.err] * (finished.code == 2)
    assert any("damaged" in one for one in said)


def test_another_sqlite_file_is_no_store(run: Run, tmp_path: Path) -> None:
    study, store = written_study(tmp_path, RINGS), tmp_path / "study.sqlite"
    with sqlite3.connect(store) as connection:
        connection.execute("CREATE TABLE mine (x)")
    before = store.read_bytes()
    assert "is not a store of opticoll" in run("sweep", study).err
    assert store.read_bytes() == before


def test_a_store_that_may_only_be_read_is_read_and_not_swept(tmp_path: Path) -> None:
    folder = Path(tempfile.mkdtemp())  # where others may come, too
    store = folder / "study.sqlite"
    opticoll.sweep(written_study(tmp_path, RINGS), store)
    store.chmod(0o444)
    folder.chmod(0o555)
    try:
        shown = subprocess.run(
            [sys.executable, "-c", READ_ONLY, str(store)],
            capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        assert shown.stdout.splitlines() == ["36", "permission denied"], shown
    finally:
        folder.chmod(0o755)


READ_ONLY = """
import os, sys
import opticoll
from opticoll.study.results import table_of
from opticoll.study.store import Store
import opticoll.commands.simulate
if os.getuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
print(len(table_of(sys.argv[1])))
try:
    Store.open(sys.argv[1])
except opticoll.OpticollError as error:
    print(str(error).rpartition(": ")[2])
"""


def test_a_full_disk_is_said_and_what_is_kept_can_be_read(tmp_path: Path) -> None:
    study, store = written_study(tmp_path, SLOW), tmp_path / "study.sqlite"

    def little() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, 150_000))

    sweep = swept(study, "--jobs", "2", before=little)
    out, err = sweep.communicate(timeout=300)
    assert (sweep.returncode, out) == (2, "")
    assert "cannot read or write the store" in err
    assert err.count("\n") <= 3
    kept = finished_points(store)
    assert kept < 48
    row = opticoll.sweep(study)
    assert (row.before, row.errors) == (kept, 0)


def test_an_error_never_replaces_rows(tmp_path: Path) -> None:
    with Store.open(tmp_path / "s.sqlite") as store:
        store.keep([Result("k", None, "first", 0.1)])
        store.keep([Result.of("k", [{"time_s": 1.5}])])
        store.keep([Result("k", None, "second", 0.1)])
        assert store.missing(["k"], retry=True) == []


def test_results_are_filtered_and_written_in_every_format(run: Run, tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    study, store = written_study(tmp_path, RINGS), tmp_path / "study.sqlite"
    opticoll.sweep(study)
    few = opticoll.results(store, where="ranks == 8 and size <= 1KiB and time_s > 1ns")
    assert {(row["ranks"], row["size"]) for row in few} == {(8, "1KiB")}
    assert few.units["time_s"] == "s"
    assert few.axes == ["fabric.ranks", "fabric.wavelengths", "axis_algorithm", "size"]
    assert few != opticoll.results(store) == opticoll.results(store)
    none = opticoll.results(store, where="ranks > 1e6").to_pandas()
    assert none.columns.tolist() == opticoll.results(store).to_pandas().columns.tolist()
    with pytest.raises(UsageError, match="YAML file, not a dict"):
        opticoll.sweep({"command": "plan"})  # type: ignore[arg-type]
    frame = opticoll.results(store).to_pandas()
    assert len(frame) == 36
    assert frame["time_ps"].dtype == "int64"
    for ending in ("csv", "parquet"):
        assert run("results", store, "--csv", tmp_path / f"rows.{ending}").code == 0
    assert list(pandas.read_parquet(tmp_path / "rows.parquet")["steps"]) == list(frame["steps"])
    opticoll.results(store).plot(tmp_path / "rows.svg")
    assert (tmp_path / "rows.svg").read_text(encoding="utf-8").count("<path") > 36
    assert few._repr_html_().count("<tr>") == 1 + len(few)
    assert run("results", store, "--where", "nothing > 3").code == 2
    unquoted = run("results", store, "--where", "policy == on_change").err
    assert "a text stands in quotation marks: 'on_change'" in unquoted
    assert run("results", store, "--where", "ranks > 1000").code == 2
    assert run("results", store, "--study", "other").code == 2


def test_the_table_of_results_always_has_the_time(run: Run, tmp_path: Path) -> None:
    long = "broken=" + "+".join(f"{rank}-{rank + 1}ccw" for rank in range(9))
    ring = "wdm_ring:ranks=12,wavelengths=4"
    grid = f"fabric: ['{ring}', '{ring},{long}', 'crossbar:ranks=12'], size: [1KiB, '1MiB']"
    study = study_of(tmp_path, "collective: all_gather, algorithm: ring", grid)
    opticoll.sweep(study, jobs=1)
    printed = run("results", tmp_path / "study.sqlite").out
    head, *lines = printed.splitlines()
    assert {"axis_fabric", "size", "time_s", "injection_bandwidth"} <= set(head.split())
    assert "crossbar" in lines[4]
    assert "differ in the bandwidth that a rank can inject" in printed
    unquoted = run("results", tmp_path / "study.sqlite", "--where", "axis_fabric == '4MiB x'").err
    assert "there are no such results" in unquoted


def test_provenance_is_kept(tmp_path: Path) -> None:
    study = written_study(tmp_path, RINGS)
    opticoll.sweep(study)
    with Store.read(tmp_path / "study.sqlite") as store:
        (one,) = store.runs()
    assert one["version"] == opticoll.__version__
    assert one["started"] <= one["ended"]
    assert len(one["build"]) == 64
    assert one["cores"] == os.cpu_count()


def test_a_terminal_has_a_bar_with_rate_and_time_left(tmp_path: Path) -> None:
    import pty

    written_study(tmp_path, OWN, "own_algorithm.py")
    options = "collective: all_gather, fabric: crossbar, algorithm: 'own_algorithm:sleeps'"
    # 48 points of at least 60 ms: a bar appears after a second.
    study = study_of(tmp_path, options, f"fabric.ranks: {list(range(2, 50))}")
    ours, theirs = pty.openpty()
    sweep = subprocess.Popen(
        [sys.executable, "-m", "opticoll", "sweep", str(study), "--jobs", "1"],
        stdout=subprocess.DEVNULL, stderr=theirs, cwd=tmp_path,
        env={**os.environ, "COLUMNS": "100", "TERM": "xterm"},
    )  # fmt: skip
    os.close(theirs)
    said = b""
    with contextlib.suppress(OSError):  # the terminal ends with the sweep
        while more := os.read(ours, 4096):
            said += more
    os.close(ours)
    assert sweep.wait(timeout=60) == 0
    assert re.search(rb"[1-9]\d* of 48 points, [\d.]+ points/s, [\d.]+ s left", said)
    assert "━".encode() in said
    assert said.count(b"opticoll: ") == 0


def test_a_sweep_says_its_rate_and_the_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("opticoll.study.progress.time.monotonic", lambda: now[0])
    told: list[str] = []
    shown = progress.Progress(lambda line, there, points: told.append(line))
    for second in range(0, 301, 20):
        now[0] = float(second)
        shown(second, 600)
    assert told[3] == "60 of 600 points, 1.0 points/s, 9 min 0 s left"


def test_a_sample_is_from_all_parts_of_a_study(tmp_path: Path) -> None:
    fabrics = "[terarack, optree_paper, 'crossbar:ranks=4', 'torus:dims=4x4']"
    grid = f"fabric: {fabrics}, size: {{from: 1, to: 120, plus: 1}}"
    study = document.read(study_of(tmp_path, "collective: all_gather", grid))
    chosen = forecast.sample(points(study))
    assert len(chosen) == forecast.MAX_SAMPLE_POINTS
    by_fabric = Counter(one.options["fabric"] for one in chosen)
    assert set(by_fabric.values()) == {forecast.MAX_SAMPLE_POINTS // 4}


def test_a_dry_run_forecasts_and_keeps_nothing(tmp_path: Path) -> None:
    study = written_study(tmp_path, RINGS)
    row: Any = opticoll.sweep(study, dry_run=True)
    assert (row.points, row.plans, row.before, row.computed) == (36, 24, 0, None)
    assert row.sampled == 24
    assert 0 < row.forecast_s < 60
    assert row.forecast_low_s <= row.forecast_s <= row.forecast_high_s
    assert row.peak_bytes > 10e6
    assert list(tmp_path.iterdir()) == [study]


def test_what_fails_in_the_sample_of_a_dry_run_is_said(run: Run, tmp_path: Path) -> None:
    grid = "grid: {policy: [on_change], size: [1KiB, 1MiB]}\n"
    study = written_study(tmp_path, CROSSBAR.replace("size: 1MiB", "root: 0") + grid)
    shown = run("sweep", study, "--dry-run")
    assert shown.code == 0
    assert "2 of 2 points of the sample; the first: " in shown.out
    row = opticoll.sweep(study, dry_run=True)
    assert (row.sampled, row.sample_failed) == (2, 2)
    assert "policy" in (row.sample_error or "")


def test_a_condition_that_leaves_out_failed_points_says_so(run: Run, tmp_path: Path) -> None:
    options = "collective: all_gather, algorithm: ring, fabric: wdm_ring, size: 1KiB"
    study = study_of(tmp_path, options, "fabric.ranks: [4, 8], fabric.wavelengths: [1, 0]")
    assert run("sweep", study).code == 1
    store = tmp_path / "study.sqlite"
    shown = run("results", store, "--where", "time_s < 1s")
    assert "2 rows" in shown.out
    assert "--where leaves out 2 points that failed" in shown.err
    # Of the two that failed, a condition on axes leaves out one for another reason.
    shown = run("results", store, "--where", "fabric.ranks == 4 and time_s < 1s")
    assert "--where leaves out 1 point that failed" in shown.err
    assert "leaves out" not in run("results", store, "--where", "fabric.ranks == 4").err
    assert "in axis_fabric" in run("results", store, "--where", "fabric.ranks == 5").err


def test_all_rows_are_in_the_table_when_asked(run: Run, tmp_path: Path) -> None:
    options = 'collective: all_gather, algorithm: ring, fabric: "wdm_ring:ranks=4"'
    study = study_of(tmp_path, options, "size: {from: 1KiB, to: 45KiB, plus: 1KiB}")
    opticoll.sweep(study, jobs=1)
    shown = run("results", tmp_path / "study.sqlite")
    assert "the first 40 of 45 rows; all with --all" in shown.out
    shown = run("results", tmp_path / "study.sqlite", "--all")
    assert len(shown.out.splitlines()) == 1 + 45 + 2


def test_no_file_of_the_current_folder_stands_in_for_a_module(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("queue", "statistics", "zstandard", "ruamel"):
        (tmp_path / f"{module}.py").write_text("open('imported', 'w')\nraise SystemExit(99)\n")
    (tmp_path / "mine_too").mkdir()
    (tmp_path / "mine_too/__init__.py").write_text("open('imported', 'w')\n")
    (tmp_path / "mine_too/rings.py").write_text("1\n")
    study = written_study(tmp_path, RINGS)
    monkeypatch.chdir(tmp_path)
    assert run("sweep", study, "--dry-run").code == 0
    assert run("sweep", study, "--shard", "1/9", "--jobs", "1").code == 0
    # The dependencies of a task's result are found without an import.
    text = RINGS.replace("[ring, neighbour_exchange, auto]", "['mine_too.rings:f']")
    own = document.read(written_study(tmp_path, text))
    before = [one.key for one in points(own)]
    (tmp_path / "mine_too/rings.py").write_text("2\n")
    assert not {one.key for one in points(own)} & set(before)
    assert not (tmp_path / "imported").exists()


def test_the_table_of_results_tells_all_points_apart(run: Run, tmp_path: Path) -> None:
    text = """
study: tiny
command: simulate
options: {collective: all_reduce, size: 1MiB}
points:
  - {fabric: wdm_ring, fabric.ranks: [4, 8], fabric.wavelengths: [2, 4], fabric.rate: 25Gb/s,
     fabric.reconfiguration: [1us, 25us], algorithm: [auto, ring], policy: [on_change]}
  - {fabric: "fat_tree:down=4x4,up=1x4", algorithm: [auto, ring]}
"""
    study = written_study(tmp_path, text)
    assert run("sweep", study).code == 0
    finished = run("results", tmp_path / "study.sqlite")
    heading, *lines = finished.out.splitlines()[: 1 + 2 * 2 * 2 * 2 + 2]
    axes = heading.partition("time_s")[0]
    assert "axis_algorithm" in axes
    points = [line[: len(axes)].split() for line in lines]
    assert len({tuple(point[:5]) for point in points}) == len(lines)
