"""Runs the study of validation/studies.yaml: whole, killed ten times, and in three shards.

    python validation/studies.py FOLDER

It prints what each run took beside the sum of the times of its points, and whether the results of
all runs are equal to the last byte.
"""

from __future__ import annotations

import random
import resource
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import opticoll
from opticoll.study import document
from opticoll.study.points import points
from opticoll.study.run import groups
from opticoll.study.store import Store
from opticoll.study.worker import Task, solve_all

STUDY = Path(__file__).parent / "studies.yaml"
KILLS = 10
WORKERS = 2


def sweep(store: Path, *words: str) -> subprocess.Popen[str]:
    """Starts a sweep in a process of its own."""
    line = [sys.executable, "-m", "opticoll", "sweep", str(STUDY), "--store", str(store)]
    return subprocess.Popen([*line, *words], text=True, stdout=subprocess.PIPE)


def number(store: Path) -> int:
    """Returns the number of results in a store."""
    try:
        with closing(sqlite3.connect(f"{store.as_uri()}?mode=ro", uri=True)) as connection:
            (found,) = connection.execute("SELECT count(*) FROM results").fetchone()
            return int(found)
    except sqlite3.Error:
        return 0


def table(stores: list[Path]) -> bytes:
    """Returns the results of stores as CSV."""
    path = stores[0].with_suffix(".csv")
    opticoll.write_csv(opticoll.results(stores, tables=True), path)
    return path.read_bytes()


def whole(folder: Path) -> Path:
    """Runs the study at once; prints wall and processor time beside the time of its points."""
    store = folder / "whole.sqlite"
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    process = sweep(store, "--jobs", str(WORKERS))
    print(process.communicate()[0], end="")
    after, seconds = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic() - started
    with Store.read(store) as read:
        there = [point.result for point in read.results() if point.result is not None]
    own = sum(result.seconds for result in there)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(f"{len(there)} points: {seconds:.1f} s on {WORKERS} processes")
    print(f"sum of the points' own times: {own:.1f} s")
    print(f"{WORKERS} x time / sum: {WORKERS * seconds / own:.3f}")
    alone = processor_seconds()
    print(f"seconds of processors: {used:.1f}, of the points alone in one process {alone:.1f}")
    print(f"ratio, which other work on the machine hardly changes: {used / alone:.3f}")
    print(f"most memory of a process: {after.ru_maxrss / 1024:.0f} MiB")
    return store


def processor_seconds() -> float:
    """Returns the processor seconds of all points in this process, one after the other."""
    study = document.read(STUDY)
    tasks = [Task(one.key, one.options) for group in groups(points(study)) for one in group]
    solve_all(study.command, tasks[:1], None)
    started = time.process_time()
    solve_all(study.command, tasks, None)
    return time.process_time() - started


def killed(folder: Path, number_of_points: int) -> Path:
    """Kills the study ten times, at numbers of results and moments drawn at random."""
    store, generator = folder / "killed.sqlite", random.Random(18)
    for goal in sorted(generator.sample(range(1, number_of_points), KILLS)):
        process = sweep(store, "--jobs", str(WORKERS))
        while number(store) < goal and process.poll() is None:
            time.sleep(0.01)
        time.sleep(generator.random())
        process.send_signal(signal.SIGKILL)
        process.communicate()
    there = number(store)
    last = sweep(store, "--jobs", str(WORKERS))
    print(f"killed {KILLS} times, then {there} results; {last.communicate()[0]}")
    with closing(sqlite3.connect(store)) as connection:
        (runs,) = connection.execute("SELECT count(*) FROM runs").fetchone()
    print(f"{runs} runs in the store")
    return store


def main() -> None:
    """Runs the study in all ways, and compares the results."""
    folder = Path(sys.argv[1]).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    first = whole(folder)
    expected = table([first])
    print("killed, equal:", table([killed(folder, number(first))]) == expected)
    shards = [folder / f"shard{part}.sqlite" for part in (1, 2, 3)]
    for part, store in enumerate(shards, 1):
        sweep(store, "--shard", f"{part}/3").communicate()
    merged = folder / "merged.sqlite"
    sweep(merged, *(f"--merge={store}" for store in shards)).communicate()
    print("three shards merged, equal:", table([merged]) == expected)


if __name__ == "__main__":
    main()
