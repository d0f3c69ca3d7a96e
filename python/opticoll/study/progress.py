"""Progress of a sweep: its rate and the remaining time.

>>> print(to_line(500, 1000, 100, 20.0))
500 of 1000 points, 5.0 points/s, 1 min 40 s left
"""

from __future__ import annotations

import time
from collections.abc import Callable


def to_line(finished: int, points: int, computed: int, seconds: float) -> str:
    """Returns a line of text on the progress of a sweep.

    The sweep computed `computed` of the `finished` points in `seconds` seconds. The store already
    had the results of all other finished points.
    """
    line = f"{finished} of {points} points"
    if computed and seconds > 0:
        rate = computed / seconds
        shown = f"{rate:.1f} points/s" if rate >= 0.1 else f"{3600 * rate:.1f} points/h"
        line += f", {shown}, {duration((points - finished) / rate)} left"
    return line


def duration(seconds: float) -> str:
    """Returns a duration in its two largest units, such as `1 min 40 s`."""
    whole = round(seconds)
    if whole < 60:
        return f"{seconds:.2g} s" if seconds < 10 else f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


class Progress:
    """Reports the progress of a sweep to the function `update`.

    Its arguments are a line of text, the number of finished points, and the number of all points.
    """

    def __init__(self, update: Callable[[str, int, int], object]) -> None:
        self._update = update
        self._started = time.monotonic()
        self._before: int | None = None
        self.line = "no point is computed yet"
        """Last reported state."""

    def __call__(self, finished: int, points: int) -> None:
        if self._before is None:
            self._before = finished
        now = time.monotonic()
        self.line = line = to_line(finished, points, finished - self._before, now - self._started)
        self._update(line, finished, points)
