"""Progress of a command on standard error: a bar on a terminal, or lines in a log."""

from __future__ import annotations

import sys
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from opticoll.outputs.layout import duration
from opticoll.outputs.terminal_text import escaped

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

FORWARDS_PER_SECOND = 3_000_000
"""Chunks that the packet simulator forwards per second on a processor of 2024 (roughly)."""

LINE_S = 10.0
"""Seconds between two lines of a log."""

MIN_ANNOUNCED_FORWARDS = FORWARDS_PER_SECOND
"""Minimum number of forwarded chunks that is announced; fewer take less than a second."""


class Waiting:
    """Reporter that writes the label and the progress of the work to standard error.

    On a terminal, a progress bar appears after one second. Otherwise a line is printed every 10 s.
    """

    def __init__(self, label: str) -> None:
        self._label = label
        self._done, self._total = 0, 0
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._stream = sys.stderr
        self._started = time.monotonic()

    def __enter__(self) -> Waiting:
        threading.Thread(target=self._tell, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._ended.set()
            if self._bar is not None:
                self._bar.stop()

    def announce_work(self, messages: int, chunks: int, forwards: int) -> None:
        """Prints the packet simulator's amount of work, if the work takes more than a second."""
        if forwards < MIN_ANNOUNCED_FORWARDS:
            return
        line = f"{messages} messages in {chunks} chunks, about {forwards:.2g} forwards by routers"
        self.say(f"{line}: some {forwards / FORWARDS_PER_SECOND:.0f} s")

    def update(self, label: str, done: int, total: int) -> None:
        """Updates the label, and the number of items that are done, out of `total`."""
        with self._lock:
            self._label, self._done, self._total = label, done, total
            if self._bar is not None and self._task is not None:
                self._bar.update(self._task, description=label, completed=done, total=total)

    def _tell(self) -> None:
        if self._stream.isatty():
            if not self._ended.wait(1.0):
                self._appear()
            return
        while not self._ended.wait(LINE_S):
            with self._lock:
                line = f"{self._label}, {self._done} of {self._total}"
                # The labels of sweeps already contain the number of items.
                line = line if self._total and str(self._total) not in self._label else self._label
                if not self._ended.is_set():
                    self.say(f"{line}; {duration(time.monotonic() - self._started)}")

    def say(self, line: str) -> None:
        """Prints a line at once."""
        with suppress(OSError, ValueError):
            self._stream.write(f"opticoll: {escaped(line)}\n")
            self._stream.flush()

    def _appear(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        with self._lock:
            if self._ended.is_set():
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
