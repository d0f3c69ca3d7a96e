"""What computes the points of a study: processes of this machine (`clusters` has others).

An engine asks for tasks when a worker is free, and hands back results as they come; it knows no
store. The tasks of a worker that dies are done again, one that kills its workers is an error.
"""

from __future__ import annotations

import json
import queue
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol

from opticoll import memory
from opticoll.study.worker import Solved, Task, message, start

Feed = Callable[[], Sequence[Task] | None]
"""The next tasks for one worker; empty: none just now; None: there are no more."""

TICK_S = 0.5
"""Most seconds between two reports of an engine."""

MOST_DEATHS = 2
"""Workers that a task may take with it before it is an error."""


class Engine(Protocol):
    """Computes tasks; `workers` at the same time."""

    workers: int

    def results(self, command: str, feed: Feed) -> Generator[list[Solved], None, None]:
        """The results as they come, some of them or none every `TICK_S` at least."""
        ...


@dataclass
class _Process:
    """A worker process, and the tasks that it has not answered yet."""

    number: int
    process: subprocess.Popen[str]
    tasks: list[Task] = field(default_factory=list)


class Local:
    """Worker processes on this machine.

    Each may need its share of the memory; a task that needs more is computed alone at the end.
    """

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._events: queue.Queue[tuple[int, str | None]] = queue.Queue()
        self._started = 0
        self._deaths: Counter[str] = Counter()

    def results(self, command: str, feed: Feed) -> Generator[list[Solved], None, None]:
        """The results as they come."""
        large: list[Task] = []
        yield from self._round(command, feed, self.workers, large)
        if large:
            alone = iter([[task] for task in large])
            yield from self._round(command, lambda: next(alone, None), 1, None)

    def _round(
        self, command: str, feed: Feed, workers: int, large: list[Task] | None
    ) -> Generator[list[Solved], None, None]:
        """Compute all that is fed; tasks that need more than a share of memory become `large`."""
        share = memory.share(workers)
        running: dict[int, _Process] = {}
        again: list[list[Task]] = []
        more = True
        try:
            while True:
                waits = False
                while len(running) < workers or any(not one.tasks for one in running.values()):
                    tasks: Sequence[Task] | None = again.pop() if again else None
                    if tasks is None and more:
                        tasks = feed()
                        more = tasks is not None
                    if not tasks:
                        waits = tasks is not None
                        break
                    free = [one for one in running.values() if not one.tasks]
                    worker = free[0] if free else self._start(running)
                    worker.tasks = list(tasks)
                    # One that has just died is heard of by its answers.
                    with suppress(OSError):
                        assert worker.process.stdin is not None
                        worker.process.stdin.write(message(command, tasks, share))
                        worker.process.stdin.flush()
                left = waits or more or again
                if not left and not any(one.tasks for one in running.values()):
                    return
                results: list[Solved] = []
                for number, line in self._heard():
                    speaker = running.get(number)
                    if speaker is None:  # of a round before
                        continue
                    if line is None:
                        del running[number]
                        results += self._dead(speaker, again)
                    elif line.strip():
                        solved = Solved(**json.loads(line))
                        (task,) = [one for one in speaker.tasks if one.key == solved.key]
                        speaker.tasks.remove(task)
                        if solved.too_large and large is not None and workers > 1:
                            large.append(task)
                        else:
                            results.append(solved)
                yield results
        finally:
            for one in running.values():
                one.process.kill()
            for one in running.values():
                one.process.wait()

    def _start(self, running: dict[int, _Process]) -> _Process:
        process = start()
        self._started += 1
        worker = running[self._started] = _Process(self._started, process)

        def listen(number: int = self._started) -> None:
            assert process.stdout is not None
            for line in process.stdout:
                self._events.put((number, line))
            self._events.put((number, None))

        threading.Thread(target=listen, daemon=True).start()
        return worker

    def _heard(self) -> list[tuple[int, str | None]]:
        """What workers said by now; waits a little where they said nothing."""
        events = []
        with suppress(queue.Empty):
            events.append(self._events.get(timeout=TICK_S))
            while True:
                events.append(self._events.get_nowait())
        return events

    def _dead(self, worker: _Process, again: list[list[Task]]) -> list[Solved]:
        """The tasks of a dead worker are done again; the one it was at alone, and not for ever."""
        code = worker.process.wait()
        if not worker.tasks:
            return []
        first, *others = worker.tasks
        if others:
            again.append(others)
        self._deaths[first.key] += 1
        if self._deaths[first.key] < MOST_DEATHS:
            again.append([first])
            return []
        error = f"{MOST_DEATHS} workers died at it, the last with exit code {code}"
        return [Solved(first.key, None, error, 0.0)]
