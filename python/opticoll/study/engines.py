"""Engines that compute the points of a study in processes of this machine.

`clusters` has an engine for other machines. An engine requests tasks when a worker is free, and
returns results as they arrive. The engine does not access the store. If a worker dies, its tasks
are repeated. If several workers die at the same task, the task becomes an error.
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
"""Function that returns the next tasks for a worker: empty if none are ready, None at the end."""

TICK_S = 0.05
"""Maximum number of seconds until an engine reports again."""

MAX_DEATHS = 2
"""Number of dead workers after which their common task becomes an error."""

T = TypeVar("T")


def processors() -> int:
    """Returns the number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Engine(Protocol):
    """Engine that computes up to `workers` tasks at the same time."""

    workers: int

    def results(self, command: str, feed: Feed) -> Generator[list[Solved], None, None]:
        """Yields results as they arrive.

        After `TICK_S` seconds without results, it yields an empty list.
        """
        ...


class Supply:
    """Tasks that wait for a worker: first tasks to repeat, then new tasks from `feed`."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self._again: list[Sequence[Task]] = []
        self._more, self._later = True, False

    def take(self) -> Sequence[Task] | None:
        """Returns the next tasks for one worker; None if no tasks are ready."""
        self._later = False
        if self._again:
            return self._again.pop()
        tasks = self._feed() if self._more else None
        self._more = tasks is not None
        self._later = tasks is not None and not tasks
        return tasks or None

    def requeue(self, tasks: Sequence[Task]) -> None:
        """Queues tasks of a dead worker again; one worker computes all of them."""
        self._again.append(tasks)

    @property
    def over(self) -> bool:
        """True if no further tasks will come."""
        return not (self._again or self._more or self._later)


class Crew(Protocol):
    """Group of workers that compute tasks."""

    def has_room(self) -> bool:
        """Returns whether another worker can accept tasks now."""
        ...

    def give(self, tasks: Sequence[Task]) -> None:
        """Sends tasks to a free worker."""
        ...

    def is_busy(self) -> bool:
        """Returns whether some worker has unfinished tasks."""
        ...

    def hear(self, supply: Supply) -> list[Solved]:
        """Returns new results after at most `TICK_S` seconds; requeues tasks of dead workers."""
        ...


def run_crew(crew: Crew, feed: Feed) -> Generator[list[Solved], None, None]:
    """Sends all tasks of `feed` to the workers of `crew`, and yields the results."""
    supply = Supply(feed)
    while True:
        while crew.has_room() and (tasks := supply.take()) is not None:
            crew.give(tasks)
        if supply.over and not crew.is_busy():
            return
        yield crew.hear(supply)


def arrived(events: queue.Queue[T]) -> list[T]:
    """Removes and returns all events; waits for at most `TICK_S` seconds for the first event."""
    content = []
    with suppress(queue.Empty):
        content.append(events.get(timeout=TICK_S))
        while True:
            content.append(events.get_nowait())
    return content


class Local:
    """Engine that runs worker processes on this machine.

    The workers share the memory equally. A task that needs more is computed alone at the end.
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
    """Worker process, and the tasks that it has not finished yet."""

    number: int
    process: subprocess.Popen[str]
    tasks: list[Task] = field(default_factory=list)


class _Processes:
    """Crew of worker processes; tasks that exceed their share of memory are appended to `large`."""

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
        # If the worker has just died, its reader reports the death later.
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
        """Puts the tasks of a dead worker back into the supply.

        The task that the worker was computing is repeated alone. After `MAX_DEATHS` deaths it
        becomes an error.
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
