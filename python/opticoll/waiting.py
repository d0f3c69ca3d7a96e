"""A progress bar for whoever waits at a terminal."""

from __future__ import annotations

import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType

    from rich.progress import Progress, TaskID

FORWARDS_PER_SECOND = 3_000_000
"""About as fast as a processor of 2024 simulates packets in a network under load."""

ANNOUNCED = FORWARDS_PER_SECOND
"""Fewer forwards are done before anybody has read of them."""


class Waiting:
    """A progress bar on standard error, once a second has passed and only on a terminal."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._done, self._total = 0, 0
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._lock = threading.Lock()
        self._timer = threading.Timer(1.0, self._appear) if sys.stderr.isatty() else None

    def __enter__(self) -> Waiting:
        if self._timer is not None:
            self._timer.daemon = True
            self._timer.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
        with self._lock:
            self._timer = None
            if self._bar is not None:
                self._bar.stop()

    def announce_work(self, messages: int, chunks: int, forwards: int) -> None:
        """Say how much work the packet simulator has before it, if it takes a while."""
        if forwards < ANNOUNCED:
            return
        line = f"{messages} messages in {chunks} chunks, about {forwards:.2g} forwards by routers"
        seconds = forwards / FORWARDS_PER_SECOND
        with suppress(OSError):
            sys.stderr.write(f"opticoll: {line}: some {seconds:.0f} s\n")
            sys.stderr.flush()

    def update(self, label: str, done: int, total: int) -> None:
        """Say what is being done, as number `done` of `total`."""
        with self._lock:
            self._label, self._done, self._total = label, done, total
            if self._bar is not None and self._task is not None:
                self._bar.update(self._task, description=label, completed=done, total=total)

    def _appear(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        with self._lock:
            if self._timer is None:
                return
            columns = (
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                TimeElapsedColumn(),
            )
            self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
            self._task = self._bar.add_task(
                self._label, completed=self._done, total=self._total or None
            )
            self._bar.start()
