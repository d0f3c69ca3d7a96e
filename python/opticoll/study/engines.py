"""Engines that compute the points of a study by processes of this machine (`clusters`: other ones).

An engine asks for tasks when a worker is free, and returns results as they arrive; it does not
know the store. Tasks of a dead worker are repeated; a task that kills its workers is an error.
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
"""Returns the next tasks for one worker; an empty sequence if none are ready, None at the end."""

TICK_S = 0.05
"""Maximum number of seconds between two reports of an engine."""

MAX_DEATHS = 2
"""Number of workers that a task may kill before it counts as an error."""

T = TypeVar("T")


def processors() -> int:
    """Returns the number of processors of this process, which may be fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Engine(Protocol):
    """Engine that computes tasks, `workers` at the same time."""

    workers: int

    def results(self, command: str, feed: Feed) -> Generator[list[Solved], None, None]:
        """Yields results as they arrive; some, or none, at least every `TICK_S`."""
        ...


class Supply:
    """Tasks that wait for a worker: those of dead workers first, then those fed."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self._again: list[Sequence[Task]] = []
        self._more, self._later = True, False

    def take(self) -> Sequence[Task] | None:
        """Returns the next tasks for one worker, or None if none are ready."""
        self._later = False
        if self._again:
            return self._again.pop()
        tasks = self._feed() if self._more else None
        self._more = tasks is not None
        self._later = tasks is not None and not tasks
        return tasks or None

    def requeue(self, tasks: Sequence[Task]) -> None:
        """Accepts tasks that one worker is to repeat."""
        self._again.append(tasks)

    @property
    def over(self) -> bool:
        """True if no more tasks will come."""
        return not (self._again or self._more or self._later)


class Crew(Protocol):
    """Workers to which tasks are given."""

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
        """Returns tasks solved by now, after at most `TICK_S`; lost tasks return to the supply."""
        ...


def run_crew(crew: Crew, feed: Feed) -> Generator[list[Solved], None, None]:
    """Keeps the workers of a crew busy until no tasks remain, and yields their results."""
    supply = Supply(feed)
    while True:
        while crew.has_room() and (tasks := supply.take()) is not None:
            crew.give(tasks)
        if supply.over and not crew.is_busy():
            return
        yield crew.hear(supply)


def arrived(events: queue.Queue[T]) -> list[T]:
    """Returns the content of a queue; waits for at most `TICK_S` if the queue is empty."""
    found = []
    with suppress(queue.Empty):
        found.append(events.get(timeout=TICK_S))
        while True:
            found.append(events.get_nowait())
    return found


class Local:
    """Engine of worker processes on this machine.

    Each worker may use a share of the memory; a task that needs more is computed alone at the end.
    """

    def __init__(self, workers: int) -> None:
        self.workers = workers

    def results(self, command: str, feed: Feed) -> Generator[list[Solved], None, None]:
        """Yields results as they arrive."""
        large: list[Task] = []
        deaths: Counter[str] = Counter()
        with _Processes(command, self.workers, deaths, large) as crew:
            yield from run_crew(crew, feed)
        if large:
            alone = iter([[task] for task in large])
            with _Processes(command, 1, deaths, []) as crew:
                yield from run_crew(crew, lambda: next(alone, None))


@dataclass
class _Process:
    """Worker process, and the tasks that it has not answered yet."""

    number: int
    process: subprocess.Popen[str]
    tasks: list[Task] = field(default_factory=list)


class _Processes:
    """Crew of worker processes; tasks beyond a share of the memory are put into `large`."""

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
        for value in self._running.values():
            value.process.kill()
        for worker in self._running.values():
            worker.process.wait()

    def has_room(self) -> bool:
        return len(self._running) < self._workers or self._free() is not None

    def _free(self) -> _Process | None:
        return next((value for value in self._running.values() if not value.tasks), None)

    def is_busy(self) -> bool:
        return any(value.tasks for value in self._running.values())

    def give(self, tasks: Sequence[Task]) -> None:
        worker = self._free() or self._start()
        worker.tasks = list(tasks)
        # The death of a worker that has just died is noticed when its answers end.
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
                (task,) = [pending for pending in speaker.tasks if pending.key == solved.key]
                speaker.tasks.remove(task)
                if solved.too_large and self._workers > 1:
                    self._large.append(task)
                else:
                    results.append(solved)
        return results

    def _dead(self, worker: _Process, supply: Supply) -> list[Solved]:
        """Returns the tasks of a dead worker to the supply.

        The task that the worker computed is repeated alone; after `MAX_DEATHS` deaths it is an
        error.
        """
        code = worker.process.wait()
        if not worker.tasks:
            return []
        first, *others = worker.tasks
        if others:
            supply.requeue(others)
        self._deaths[first.key] += 1
        if self._deaths[first.key] < MAX_DEATHS:
            supply.requeue([first])
            return []
        error = f"{MAX_DEATHS} workers died at it, the last with exit code {code}"
        return [Solved(first.key, None, error, 0.0)]
