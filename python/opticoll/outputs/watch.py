"""What a computation says while it goes on.

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
    """What a computation says while it goes on, and the files that are waited for."""

    def __init__(
        self,
        files: Mapping[str, Path] = MappingProxyType({}),
        update: Callable[[str, int, int], object] | None = None,
        announce: Callable[[int, int, int], object] | None = None,
    ) -> None:
        self.files = files
        """The files that will be written, by their options, such as `figure`."""
        self.notes: list[str] = []
        """Sentences for standard error beside the answer."""
        self.failed = False
        """Whether a part of what was asked for could not be done: the exit code is 1."""
        self._update, self._announce = update, announce

    def update(self, label: str, done: int, total: int) -> None:
        """Says what is being done, and how much of it is done, of how much."""
        if self._update is not None:
            self._update(label, done, total)

    def try_candidate(self, name: str) -> None:
        """Says which candidate `auto` plans now."""
        self.update(f"trying {name}", 0, 0)

    def announce(self, messages: int, chunks: int, forwards: int) -> None:
        """Says how much work the packet simulator has before it."""
        if self._announce is not None:
            self._announce(messages, chunks, forwards)
