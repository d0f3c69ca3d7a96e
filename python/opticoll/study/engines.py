"""What computes the points of a study: processes of this machine (`clusters` has others).

An engine asks for tasks when a worker is free, and hands back results as they come; it knows no
store. The tasks of a worker that dies are done again, one that kills its workers is an error.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from opticoll import memory
from opticoll.study.worker import Solved, Task, message, start

Feed = Callable[[], Sequence[Task] | None]
"""The next tasks for one worker; empty: none just now; None: there are no more."""

TICK_S = 0.05
"""Most seconds between two reports of an engine."""

MOST_DEATHS = 2
"""Workers that a task may take with it before it is an error."""

T = TypeVar("T")


def processors() -> int:
    """Returns the processors that this process may use, which may be fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Engine(Protocol):
    """Computes tasks; `workers` at the same time."""

    workers: int

    def results(self, command: str, feed: Feed) -> Generator[list[Solved], None, None]:
        """Returns the results as they come, some of them or none every `TICK_S` at least."""
        ...


class Supply:
    """Tasks that wait for a worker: those that came back from dead workers, then those fed."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self._again: list[Sequence[Task]] = []
        self._more, self._later = True, False

    def take(self) -> Sequence[Task] | None:
        """Returns the next tasks for one worker, or None if there are none, or none just now."""
        self._later = False
        if self._again:
            return self._again.pop()
        tasks = self._feed() if self._more else None
        self._more = tasks is not None
        self._later = tasks is not None and not tasks
        return tasks or None

    def take_back(self, tasks: Sequence[Task]) -> None:
        """Tasks that are to be done again, by one worker."""
        self._again.append(tasks)

    @property
    def over(self) -> bool:
        """True if no tasks will come."""
        return not (self._again or self._more or self._later)


class Crew(Protocol):
    """Workers that tasks are given to."""

    def has_room(self) -> bool:
        """Returns whether a worker may be given tasks now."""
        ...

    def give(self, tasks: Sequence[Task]) -> None:
        """Gives tasks to a worker."""
        ...

    def is_busy(self) -> bool:
        """Returns whether tasks are with workers."""
        ...

    def hear(self, supply: Supply) -> list[Solved]:
        """What was solved by now, after `TICK_S` at most; lost tasks go back to the supply."""
        ...


def fed(crew: Crew, feed: Feed) -> Generator[list[Solved], None, None]:
    """Keeps the workers of a crew busy until there is nothing left to do."""
    supply = Supply(feed)
    while True:
        while crew.has_room() and (tasks := supply.take()) is not None:
            crew.give(tasks)
        if supply.over and not crew.is_busy():
            return
        yield crew.hear(supply)


def arrived(events: queue.Queue[T]) -> list[T]:
    """What is in a queue by now; waits for `TICK_S` at most where there is nothing."""
    found = []
    with suppress(queue.Empty):
        found.append(events.get(timeout=TICK_S))
        while True:
            found.append(events.get_nowait())
    return found


class Local:
    """Worker processes on this machine.

    Each may need its share of the memory; a task that needs more is computed alone at the end.
    """

    def __init__(self, workers: int) -> None:
        self.workers = workers

    def results(self, command: str, feed: Feed) -> Generator[list[Solved], None, None]:
        """Yields the results as they come."""
        large: list[Task] = []
        deaths: Counter[str] = Counter()
        with _Processes(command, self.workers, deaths, large) as crew:
            yield from fed(crew, feed)
        if large:
            alone = iter([[task] for task in large])
            with _Processes(command, 1, deaths, []) as crew:
                yield from fed(crew, lambda: next(alone, None))


@dataclass
class _Process:
    """A worker process, and the tasks that it has not answered yet."""

    number: int
    process: subprocess.Popen[str]
    tasks: list[Task] = field(default_factory=list)


class _Processes:
    """So many worker processes; of several, tasks beyond a share of the memory become `large`."""

    def __init__(self, command: str, workers: int, deaths: Counter[str], large: list[Task]) -> None:
        self._command, self._workers = command, workers
        self._deaths, self._large = deaths, large
        self._share = memory.share(workers)
        self._running: dict[int, _Process] = {}
        self._started = 0
        self._events: queue.Queue[tuple[int, str | None]] = queue.Queue()

    def __enter__(self) -> _Processes:
        return self

    def __exit__(self, *failure: object) -> None:
        for one in self._running.values():
            one.process.kill()
        for one in self._running.values():
            one.process.wait()

    def has_room(self) -> bool:
        return len(self._running) < self._workers or self._free() is not None

    def _free(self) -> _Process | None:
        return next((one for one in self._running.values() if not one.tasks), None)

    def is_busy(self) -> bool:
        return any(one.tasks for one in self._running.values())

    def give(self, tasks: Sequence[Task]) -> None:
        worker = self._free() or self._start()
        worker.tasks = list(tasks)
        # One that has just died is heard of by its answers.
        with suppress(OSError):
            assert worker.process.stdin is not None
            worker.process.stdin.write(message(self._command, tasks, self._share))
            worker.process.stdin.flush()

    def _start(self) -> _Process:
        process = start()
        self._started += 1
        worker = self._running[self._started] = _Process(self._started, process)

        def listen(number: int = self._started) -> None:
            assert process.stdout is not None
            for line in process.stdout:
                self._events.put((number, line))
            self._events.put((number, None))

        threading.Thread(target=listen, daemon=True).start()
        return worker

    def hear(self, supply: Supply) -> list[Solved]:
        results: list[Solved] = []
        for number, line in arrived(self._events):
            speaker = self._running[number]
            if line is None:
                del self._running[number]
                results += self._dead(speaker, supply)
            elif line.strip():
                solved = Solved(**json.loads(line))
                (task,) = [one for one in speaker.tasks if one.key == solved.key]
                speaker.tasks.remove(task)
                if solved.too_large and self._workers > 1:
                    self._large.append(task)
                else:
                    results.append(solved)
        return results

    def _dead(self, worker: _Process, supply: Supply) -> list[Solved]:
        """Returns the tasks of a dead worker are done again; the one it was at alone, and not for
        ever.
        """
        code = worker.process.wait()
        if not worker.tasks:
            return []
        first, *others = worker.tasks
        if others:
            supply.take_back(others)
        self._deaths[first.key] += 1
        if self._deaths[first.key] < MOST_DEATHS:
            supply.take_back([first])
            return []
        error = f"{MOST_DEATHS} workers died at it, the last with exit code {code}"
        return [Solved(first.key, None, error, 0.0)]
