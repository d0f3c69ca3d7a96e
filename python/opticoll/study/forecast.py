"""Forecast of the time and memory of a study, measured on a sample of its points.

>>> forecast = Forecast(
...     missing=100, sampled=4, sample_failed=0, point_s=0.5, min_point_s=0.1, max_point_s=0.9,
...     error_s=0.1, peak_bytes=2**28, sample_complete=True, sample_error=None
... )
>>> forecast.seconds(workers=2), forecast.interval(workers=2)
(25.0, (15.2, 34.8))
"""

from __future__ import annotations

import json
import math
import random
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from statistics import stdev

from opticoll.study.points import Point
from opticoll.study.worker import Solved, Task, message, start

MAX_SAMPLE_POINTS = 24
"""Maximum number of sampled points."""

STANDARD_ERRORS = 1.96
"""Half width of a 95 % confidence interval, in standard errors."""

SAMPLE_S = 10.0
"""Default number of seconds for the sample of a forecast."""


@dataclass(frozen=True)
class Forecast:
    """Measurements of a sample of points; times are seconds per point.

    The sample is incomplete if the time limit ended its computation.
    """

    missing: int
    sampled: int
    sample_failed: int
    point_s: float
    min_point_s: float
    max_point_s: float
    error_s: float
    """Standard error of the mean time of a point."""
    peak_bytes: int | None
    sample_complete: bool
    sample_error: str | None
    """Error of the first sampled point that failed, or None."""

    def seconds(self, workers: int) -> float:
        """Returns the seconds that `workers` workers need for the missing points."""
        return max(self.max_point_s, self.missing * self.point_s / workers)

    def interval(self, workers: int) -> tuple[float, float]:
        """Returns the 95 % confidence interval of `seconds(workers)`, in seconds."""
        middle = self.seconds(workers)
        around = 0.0 if not self.point_s else middle * STANDARD_ERRORS * self.error_s / self.point_s
        return max(0.0, middle - around), middle + around


def sample(missing: Sequence[Point]) -> list[Point]:
    """Draws a sample of up to `MAX_SAMPLE_POINTS` points, in random order.

    The missing points are cut into equal parts, and one random point is drawn from each part.
    Neighbouring points have the same fabric and differ in size, so the sample covers every fabric.
    Since the order is random, a sample that is cut short still represents the whole study.
    """
    generator = random.Random(0)
    count = min(MAX_SAMPLE_POINTS, len(missing))
    edges = [len(missing) * part // count for part in range(count + 1)] if count else []
    chosen = [missing[generator.randrange(*ends)] for ends in pairwise(edges)]
    generator.shuffle(chosen)
    return chosen


def forecast(command: str, missing: Sequence[Point], limit_s: float = SAMPLE_S) -> Forecast:
    """Measures a sample of points in a separate process, for up to `limit_s` seconds."""
    chosen = sample(missing)
    tasks = [Task(point.key, point.options) for point in chosen]
    process = start()
    assert process.stdin is not None
    assert process.stdout is not None
    warm_up = [Task("", {})]
    timer = threading.Timer(limit_s, process.kill)
    started = time.perf_counter()
    solved: list[Solved] = []
    try:
        timer.start()
        with suppress(OSError):
            process.stdin.write(message(command, [*warm_up, *tasks], None))
            process.stdin.flush()
        peak = None
        for line in process.stdout:
            if not line.strip():
                break
            answer = Solved(**json.loads(line))
            if answer.key:
                solved.append(answer)
            peak = _peak_bytes(process.pid) or peak
    finally:
        timer.cancel()
        process.kill()
        process.wait()
    complete = len(solved) == len(tasks)
    seconds = [result.seconds for result in solved]
    if not complete:
        # The interrupted point took at least the remaining time.
        seconds.append(time.perf_counter() - started - sum(seconds))
    return Forecast(
        missing=len(missing),
        sampled=len(solved),
        sample_failed=sum(result.error is not None for result in solved),
        point_s=sum(seconds) / max(1, len(seconds)),
        min_point_s=min(seconds, default=0.0),
        max_point_s=max(seconds, default=0.0),
        error_s=_error(seconds, len(missing)),
        peak_bytes=peak,
        sample_complete=complete,
        sample_error=next((result.error for result in solved if result.error is not None), None),
    )


def _error(seconds: Sequence[float], missing: int) -> float:
    """Returns the standard error of a sample's mean, if the sample is drawn from `missing` points.

    `seconds` are the values of the sample.
    """
    if len(seconds) < 2:
        return 0.0
    return stdev(seconds) * math.sqrt((1 - min(1, len(seconds) / missing)) / len(seconds))


def _peak_bytes(process: int) -> int | None:
    """Returns the peak memory of a process (an id) in bytes; None if the system does not tell."""
    try:
        with open(f"/proc/{process}/status", encoding="ascii") as file:
            (line,) = [line for line in file if line.startswith("VmHWM:")]
        return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        return None
