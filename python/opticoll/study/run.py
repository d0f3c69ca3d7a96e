"""Sweep: computes the points of a study that a store lacks, and stores results as they arrive.

>>> import pathlib, tempfile
>>> from opticoll.study import document, engines
>>> folder = pathlib.Path(tempfile.mkdtemp())
>>> _ = (folder / "study.yaml").write_text('''
... study: rings
... command: simulate
... options: {collective: all_gather, fabric: "wdm_ring:wavelengths=2", algorithm: ring}
... grid: {fabric.ranks: [4, 8]}
... ''')
>>> study = document.read(folder / "study.yaml")
>>> with Store.open(folder / "studies.sqlite") as store:
...     done = sweep(study, store, engines.Local(1))
...     done, [point.result.rows[0]["steps"] for point in store.results("rings")]
(Done(points=2, plans=2, computed=2, before=0, errors=0, refuted=0), [3, 7])
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from opticoll.cli.command_line import as_text
from opticoll.errors import UsageError
from opticoll.study.document import Study
from opticoll.study.engines import Engine
from opticoll.study.expression import Expression
from opticoll.study.points import Point, Scope, command_line, finished, points
from opticoll.study.results import units_of, with_unit
from opticoll.study.search import Candidate, Found, rounds, verified_row
from opticoll.study.store import Result, Store, StudyRecord
from opticoll.study.worker import Task

BATCH_S = 0.5
"""Seconds of work that a worker receives at a time, so that requests cost little time."""

MAX_TASKS = 256
"""Maximum number of tasks that a worker receives at a time."""

KEEP_S = 0.05
"""Minimum number of seconds between two transactions, since each transaction takes time."""

OTHERS_S = 0.5
"""Seconds between two checks of the claims of other sweeps."""

HEARTBEAT_S = 10.0
"""Seconds between two signs of life that a sweep writes to the store."""

Progress = Callable[[int, int], object]
"""Function called with the number of points that have a result, and the number of all points."""


@dataclass(frozen=True)
class Shard:
    """Part of a study that one sweep computes; `number` is the part's index, from 1 to `parts`."""

    number: int
    parts: int

    @staticmethod
    def read(text: str) -> Shard:
        """Reads a text such as `2/5` (part two of five); raises UsageError if it is invalid."""
        number, slash, parts = text.partition("/")
        whole = number.strip().isdecimal() and parts.strip().isdecimal()
        if not slash or not whole or not 1 <= int(number) <= int(parts):
            raise UsageError(f"--shard: `{text}` is not a part such as 2/5, the second of five")
        return Shard(int(number), int(parts))

    def of(self, points: Iterable[Point]) -> list[list[Point]]:
        """Returns the groups of points that this part computes."""
        return groups(points)[self.number - 1 :: self.parts]


WHOLE = Shard(1, 1)


@dataclass(frozen=True)
class Done:
    """Outcome of a sweep, as numbers of points, results and errors.

    `plans` counts groups of points that share a plan. `computed` counts new results, and `before`
    counts results of earlier sweeps. `refuted` counts rows whose plan violates a rule.
    """

    points: int
    plans: int
    computed: int
    before: int
    errors: int
    refuted: int


def groups(all_points: Iterable[Point]) -> list[list[Point]]:
    """Groups points that share a plan; keeps equal tasks once.

    The groups are in the order of their first points.
    """
    shared: dict[str, list[Point]] = {}
    for point in {group_point.key: group_point for group_point in all_points}.values():
        shared.setdefault(point.shares or point.key, []).append(point)
    return list(shared.values())


def define(study: Study, store: Store, listed: Sequence[Point], text: str) -> None:
    """Writes the points of a study, and the `text` of its file, to the store."""
    command = study.command
    store.define(
        StudyRecord(study.study, command, study.axes, study.replications is not None, text),
        (
            (
                item.number,
                item.key,
                item.replication,
                item.axes,
                command_line(command, item.options),
            )
            for item in listed
        ),
    )


def sweep(
    study: Study,
    store: Store,
    engine: Engine,
    *,
    shard: Shard = WHOLE,
    retry: bool = False,
    progress: Progress | None = None,
    command: str = "",
    text: str = "",
) -> Done:
    """Computes the points that the store lacks; `retry` also repeats tasks that failed.

    The store records the `command` line of the sweep and the `text` of the study's file.

    Raises
    ------
    OpticollError
        The study is invalid, or the store cannot be written. Earlier results are kept.
    """
    if shard.parts > 1 and study.optimise is not None:
        raise UsageError("a study with `optimise` has no shards: each point depends on others")
    store.begin(command, study.study)
    listed: list[Point] = []
    computed = before = 0
    seen: set[str] = set()
    for proposed in _rounds(study, store):
        listed += proposed
        define(study, store, listed, text)
        every = [point for group in shard.of(proposed) for point in group]
        missing = set(store.missing((point.key for point in every), retry=retry))
        finished = len(listed) - len(proposed) + len(every) - len(missing)
        before += sum(point.key not in missing and point.key not in seen for point in every)
        seen |= {point.key for point in every}
        whole = len(listed) if shard == WHOLE else len(every)
        if progress is not None:
            progress(finished, whole)
        work = _Work([point for point in every if point.key in missing], store, retry)
        if missing:
            try:
                with closing(engine.results(study.command, work.feed)) as coming:
                    for results in coming:
                        work.received(results)
                        if progress is not None:
                            progress(finished + work.there, whole)
            finally:
                work.keep()
        computed += work.computed
    mine = shard.of(listed)
    keys = {point.key for group in mine for point in group}
    counted = [point.key for point in listed if point.key in keys]
    errors, refuted = store.tally(counted)
    return Done(len(counted), len(mine), computed, before, errors, refuted)


def _rounds(study: Study, store: Store) -> Iterator[list[Point]]:
    """Yields the points to compute in each round of a search, and stores the findings.

    A study without a search has a single round.
    """
    listed = points(study)
    if study.optimise is None:
        yield listed
        return
    candidates = [Candidate(item.given, Scope(item.given, set())) for item in listed]
    search = rounds(study.optimise, candidates)
    units = units_of(study.command)
    proposed: list[Point] = []
    candidates_points: list[Point | None] = []

    def value_of(expression: Expression, place: int) -> Any:
        point = candidates_points[place]
        row = None if point is None else verified_row(store.result(point.key))
        if point is None or row is None:
            return None
        if any(row.get(name, 0) is None for name in expression.names):
            return None
        scope = Scope(point.given, set())

        def value(name: str) -> Any:
            return with_unit(row[name], units.get(name, "")) if name in row else scope(name)

        try:
            return expression.value(value)
        except KeyError as error:
            raise UsageError(f"`{expression.text}`: no point has a {error}") from error

    try:
        wanted = next(search)
        while True:
            new: list[Point] = []
            for options in wanted:
                number = len(proposed) + len(new)
                point = finished(study, dict(options), number, 0, set())
                candidates_points.append(point)
                new += [] if point is None else [point]
            proposed += new
            yield new
            wanted = search.send(value_of)
    except StopIteration as end:
        marks = [(candidates_points[finding.place], finding) for finding in end.value]
        store.mark(
            study.study,
            [(point.number, _finding_text(point, finding)) for point, finding in marks if point],
        )


def _finding_text(point: Point, finding: Found) -> str:
    """Returns a finding of a search as text, with the point's axes that the finding omits."""
    axes = {name: as_text(value) for name, value in point.axes.items() if name not in finding.names}
    facts = [*finding.told, *(f"{name} = {value}" for name, value in axes.items())]
    return f"{finding.what}: {', '.join(facts)}" if facts else finding.what


class _Work:
    """Tasks that remain to be computed, and the measured seconds per task."""

    def __init__(self, remaining: list[Point], store: Store, retry: bool) -> None:
        self._left = remaining[::-1]
        self._store, self._retry = store, retry
        self._elsewhere: list[Point] = []
        self._seconds, self._measured = 0.0, 0
        self._alive = time.monotonic()
        self._fresh: list[Result] = []
        self._kept = self._asked = -math.inf
        self.computed = self.there = 0

    def feed(self) -> Sequence[Task] | None:
        """Returns tasks that share a plan and take about `BATCH_S` seconds; None if none remain."""
        while self._left:
            first = self._left[-1]
            tasks: list[Point] = []
            while self._left and len(tasks) < self._most():
                if first.shares and self._left[-1].shares != first.shares:
                    break
                tasks.append(self._left.pop())
            mine = set(self._store.claim([task.key for task in tasks], retry=self._retry))
            self._elsewhere += [task for task in tasks if task.key not in mine]
            if mine:
                return [Task(task.key, task.options) for task in tasks if task.key in mine]
        return self._taken_over()

    def _taken_over(self) -> Sequence[Task] | None:
        """Returns tasks that were claimed by another sweep, if that sweep has died.

        The list is empty while another sweep computes its tasks; None means that no task remains.
        """
        now = time.monotonic()
        if self._elsewhere and now - self._asked < OTHERS_S:
            return []
        self._asked = now
        keys = [point.key for point in self._elsewhere]
        free = set(self._store.claim(keys, retry=self._retry)) if keys else set()
        waiting = set(self._store.missing_of(keys, retry=self._retry))
        claimed = [point for point in self._elsewhere if point.key in free]
        self.there += sum(point.key not in waiting for point in self._elsewhere)
        self._elsewhere = [
            point for point in self._elsewhere if point.key in waiting and point.key not in free
        ]
        if claimed:
            return [Task(point.key, point.options) for point in claimed]
        return [] if self._elsewhere else None

    def _most(self) -> int:
        """Returns the maximum number of tasks that `feed` returns; 1 until a task is timed."""
        if not self._measured:
            return 1
        return min(MAX_TASKS, 1 + int(BATCH_S * self._measured / max(1e-4, self._seconds)))

    def received(self, results: Sequence[Result]) -> None:
        """Collects results and stores them every `KEEP_S` seconds; also renews the sign of life."""
        now = time.monotonic()
        self._fresh += results
        self.computed += len(results)
        self.there += len(results)
        self._seconds += sum(result.seconds for result in results)
        self._measured += len(results)
        if now - self._kept >= KEEP_S:
            self.keep()
            self._kept = now
        if now - self._alive > HEARTBEAT_S:
            self._alive = now
            self._store.seen()

    def keep(self) -> None:
        """Writes the collected results to the store."""
        if self._fresh:
            self._store.keep(self._fresh)
            self._fresh = []
