"""Progress reports of a running computation.

>>> said = []
>>> Watch(update=lambda *words: said.append(words)).try_candidate("ring")
>>> said
[('trying ring', 0, 0)]
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType


class Watch:
    """Receiver of progress reports, and the paths of output files by option."""

    def __init__(
        self,
        files: Mapping[str, Path] = MappingProxyType({}),
        update: Callable[[str, int, int], object] | None = None,
        announce: Callable[[int, int, int], object] | None = None,
        say: Callable[[str], object] | None = None,
    ) -> None:
        self.files = files
        """Files that will be written, by their options, such as `figure`."""
        self.notes: list[str] = []
        """Notes for standard error beside the answer."""
        self.failed = False
        """True if a part of the request failed, so that the exit code is 1."""
        self._update, self._announce, self._say = update, announce, say

    def update(self, label: str, done: int, total: int) -> None:
        """Reports the current work: its label, and how many of `total` items are done."""
        if self._update is not None:
            self._update(label, done, total)

    def note(self, text: str) -> None:
        """Reports a note at once if somebody listens, otherwise with the answer."""
        if self._say is None:
            self.notes.append(text)
        else:
            self._say(text)

    def try_candidate(self, name: str) -> None:
        """Reports the candidate that `auto` is planning."""
        self.update(f"trying {name}", 0, 0)

    def announce(self, messages: int, chunks: int, forwards: int) -> None:
        """Announces a packet simulation: its numbers of messages, chunks, and forwards by routers.

        The number of forwards is an estimate.
        """
        if self._announce is not None:
            self._announce(messages, chunks, forwards)
