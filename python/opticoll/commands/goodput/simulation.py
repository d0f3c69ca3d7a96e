"""Event-driven simulation of runs with failures, checkpoints, spare units and repairs.

All replications advance together, each to its own next event, as arrays of NumPy. Between events
everything is determined: the run works, writes checkpoints, restarts or waits. All units that are
not in repair, spares included, fail independently; failures and repairs are exponential, so the
next event needs no memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opticoll.inputs.failure_rates import Part

CAUSES = ("checkpoints", "lost work", "detection", "restart", "setup", "waiting", "degraded speed")
CHECKPOINTS, LOST, DETECTION, RESTART, SET_UP, WAITING, SLOW = range(len(CAUSES))

Array = NDArray[Any]


@dataclass(frozen=True)
class Run:
    """A run: `units` units of `unit` devices with `spares` spare units, and its times in seconds.

    `spares` is None if there is a spare for every failure. A missing unit takes the share
    1 - `degraded_speed` of the speed; at speed 0 the run waits for a repair.
    """

    units: int
    unit: int
    spares: int | None
    parts: tuple[Part, ...]
    checkpoint_s: float
    interval_s: float
    detection_s: float
    restart_s: float
    setup_s: float
    repair_s: float
    degraded_speed: float
    length_s: float

    def speed(self, missing: Array) -> Array:
        """Returns the speed without some units, as a share of the full speed."""
        return np.maximum(0.0, 1 - missing * (1 - self.degraded_speed))


@dataclass(frozen=True)
class Totals:
    """Results of the replications: arrays with a row for each replication, times in seconds."""

    useful_s: Array
    lost_s: Array
    """Lost time by cause."""
    parts_s: Array
    """Lost time by kind of part: all causes but checkpoints."""
    failures: Array
    """Number of interruptions by kind of part."""


def simulate(run: Run, replications: int, seed: int, progress: Callable[[float], object]) -> Totals:
    """Simulates the replications; `progress` receives the simulated share of the time."""
    state = _State(run, replications)
    random = np.random.default_rng(seed)
    steps = 0
    while state.advance(random):
        steps += 1
        if steps % 256 == 0:
            progress(float(state.time.mean()) / run.length_s)
    return state.totals()


class _State:
    """State of all replications."""

    def __init__(self, run: Run, replications: int) -> None:
        self.run = run
        self.cycle = run.interval_s + run.checkpoint_s
        self.rows = np.arange(replications)
        self.rates = np.array([part.rate * run.unit for part in run.parts])
        self.repaired = np.array([part.repair for part in run.parts])
        self.keeps = np.array([part.keeps_state for part in run.parts])
        self.hard = np.cumsum(self.rates * self.repaired)
        self.soft = np.cumsum(self.rates * ~self.repaired)
        shape = (replications, len(run.parts))
        self.time = np.zeros(replications)
        self.down = np.zeros(replications, dtype=np.int64)
        """Units in repair."""
        self.missing = np.zeros(replications, dtype=np.int64)
        """Units that the run lacks."""
        self.place = np.zeros(replications)
        """Time since the end of the last checkpoint."""
        self.unsaved = np.zeros((replications, 3))
        """Since the last checkpoint: useful time, time lost by speed, time of a checkpoint."""
        self.stop = np.zeros((replications, 3))
        """Stop: times of detection, restart and setup."""
        self.stopped = np.zeros(replications)
        """Elapsed time of the stop."""
        self.busy = np.zeros(replications, dtype=bool)
        """Whether the run stops."""
        self.cause = np.zeros(replications, dtype=np.int64)
        """Part that caused the present or last stop."""
        self.slow_cause = np.zeros(replications, dtype=np.int64)
        """Part whose failure left the run without a unit."""
        self.useful = np.zeros(replications)
        self.lost = np.zeros((replications, len(CAUSES)))
        self.parts = np.zeros(shape)
        self.failures = np.zeros(shape, dtype=np.int64)

    def totals(self) -> Totals:
        """Returns what the replications took, with what is not yet in a checkpoint."""
        lost, parts = self.lost.copy(), self.parts.copy()
        lost[:, CHECKPOINTS] += self.unsaved[:, 2]
        lost[:, SLOW] += self.unsaved[:, 1]
        parts[self.rows, self.slow_cause] += self.unsaved[:, 1]
        return Totals(self.useful + self.unsaved[:, 0], lost, parts, self.failures)

    def _short(self) -> Array:
        """Returns the number of units that the run lacks if it takes all units that work."""
        if self.run.spares is None:
            return np.zeros_like(self.down)
        return np.maximum(0, self.down - self.run.spares)

    def advance(self, random: np.random.Generator) -> bool:
        """Advances each replication to its next event; returns whether one has time left."""
        run = self.run
        left = run.length_s - self.time
        if not (left > 0).any():
            return False
        speed = run.speed(self.missing)
        waits = self.busy & (speed == 0)
        used = run.units - self.missing
        hard = used * self.hard[-1]
        soft = used * self.soft[-1] * ~waits
        if run.spares is None:
            spare = repair = np.zeros_like(hard)
        else:
            spare = (run.spares - self.down + self.missing) * self.hard[-1]
            repair = self.down / run.repair_s
        ends = np.cumsum([hard, soft, spare, repair], axis=0)
        draws, choice = random.exponential(size=len(left)), random.random(len(left)) * ends[-1]
        with np.errstate(divide="ignore"):
            until = draws / ends[-1]
        # A repaired unit joins a slow run at the end of a checkpoint, after the setup.
        rest = np.where(self.busy, self.stop.sum(axis=1) - self.stopped, 0.0)
        joins = ~waits & (self.missing > self._short())
        boundary = np.where(joins, rest + self.cycle - self.place, np.inf)
        step = np.minimum(np.minimum(until, left), boundary)
        at_boundary = joins & (boundary <= step)
        event = (until < left) & (until <= step) & ~at_boundary
        self._spend(step, rest, waits, speed, at_boundary)
        self.time = np.where(step == left, run.length_s, self.time + step)
        for kind, rates, first in ((0, self.hard, None), (1, self.soft, ends[0])):
            hit = event & (choice < ends[kind]) & (True if first is None else choice >= first)
            if hit.any():
                offset = choice[hit] - (0.0 if first is None else first[hit])
                part = np.searchsorted(rates, offset / used[hit], side="right")
                self._interrupt(self.rows[hit], np.minimum(part, len(rates) - 1), kind == 0)
        self.down += event & (choice >= ends[1]) & (choice < ends[2])
        repaired = event & (choice >= ends[2])
        self.down -= repaired
        self.missing = np.where(repaired & self.busy, self._short(), self.missing)
        if at_boundary.any():
            self._stop(self.rows[at_boundary], 0.0, 0.0)
            self.cause[at_boundary] = self.slow_cause[at_boundary]
        return True

    def _spend(
        self, step: Array, rest: Array, waits: Array, speed: Array, at_boundary: Array
    ) -> None:
        """Adds the time of a step to what the run did in it."""
        run = self.run
        waited = np.where(waits, step, 0.0)
        stop = np.where(waits, 0.0, np.minimum(step, rest))
        self.lost[:, WAITING] += waited
        starts = np.cumsum(self.stop, axis=1) - self.stop
        for cause, start, length in zip(
            (DETECTION, RESTART, SET_UP), starts.T, self.stop.T, strict=True
        ):
            before = np.clip(self.stopped - start, 0, length)
            self.lost[:, cause] += np.clip(self.stopped + stop - start, 0, length) - before
        self.parts[self.rows, self.cause] += waited + stop
        self.stopped += stop
        self.busy &= waits | (step < rest)
        if not (step > stop + waited).any():
            return
        ran = np.where(waits, 0.0, step - stop)
        end = np.where(at_boundary, self.cycle, self.place + ran)
        cycles = np.floor(end / self.cycle)
        place = np.where(at_boundary, 0.0, end - cycles * self.cycle)
        before, after = (np.minimum(at, run.interval_s) for at in (self.place, place))
        # The first cycle may have begun at another speed.
        done = cycles > 0
        saved = run.interval_s * cycles - before
        slow = np.where(done, self.unsaved[:, 1] + (1 - speed) * saved, 0.0)
        self.useful += np.where(done, self.unsaved[:, 0] + speed * saved, 0.0)
        self.lost[:, SLOW] += slow
        self.parts[self.rows, self.slow_cause] += slow
        self.lost[:, CHECKPOINTS] += np.where(done, run.checkpoint_s * cycles, 0.0)
        work = after - np.where(done, 0.0, before)
        self.unsaved[done] = 0.0
        self.unsaved[:, 0] += speed * work
        self.unsaved[:, 1] += (1 - speed) * work
        self.unsaved[:, 2] = place - after
        self.place = place

    def _interrupt(self, rows: Array, part: Array, hard: bool) -> None:
        """Interrupts some replications: a part of the kind `part` fails in each."""
        run = self.run
        if hard and run.spares is not None:
            self.down[rows] += 1
        self.failures[rows, part] += 1
        self.cause[rows] = part
        loses = ~self.keeps[part]
        gone = rows[loses]
        lost = self.unsaved[gone].sum(axis=1)
        self.lost[gone, LOST] += lost
        self.parts[gone, part[loses]] += lost
        self.unsaved[gone] = 0.0
        self.place[gone] = 0.0
        read = self.stop[rows, 0] + self.stop[rows, 1]
        unread = self.busy[rows] & (self.stop[rows, 1] > 0) & (self.stopped[rows] < read)
        if hard:
            self.slow_cause[rows] = part
        self._stop(rows, run.detection_s, np.where(loses | unread, run.restart_s, 0.0))

    def _stop(self, rows: Array, detection_s: float, restart_s: float | Array) -> None:
        """Begins a stop, after which the run takes all units that work."""
        self.missing[rows] = self._short()[rows]
        self.stop[rows, 0] = detection_s
        self.stop[rows, 1] = restart_s
        self.stop[rows, 2] = self.run.setup_s
        self.stopped[rows] = 0.0
        self.busy[rows] = True
