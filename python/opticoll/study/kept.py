"""Rows of a long study on disk as they end, so that a study that was stopped goes on from there.

>>> import pathlib, tempfile
>>> from opticoll.study.kept import Kept
>>> folder = pathlib.Path(tempfile.mkdtemp())
>>> Kept(folder).add({"ranks": 8}, {"time_s": 0.5})
>>> Kept(folder).find({"ranks": 8})
{'time_s': 0.5}
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from opticoll.errors import FileError

__all__ = ["Kept"]

NAME = "unfinished.jsonl"


class Kept:
    """Rows by case in `unfinished.jsonl` of a folder, a line each, written as they come.

    Cases and rows are mappings of what JSON can say. Rows of another build of opticoll are not
    found: its numbers might be others. A last line that was cut off counts as not written.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / NAME
        self._lock = threading.Lock()
        self._rows: dict[str, dict[str, Any]] = {}
        try:
            lines = self._path.read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            return
        except (OSError, UnicodeDecodeError) as error:
            raise FileError(f"cannot read `{self._path}`: {error}; remove it") from error
        for line in lines:
            try:
                build, case, row = json.loads(line)
            except ValueError:
                continue
            if build == _build():
                self._rows[_key(case)] = row

    def __len__(self) -> int:
        return len(self._rows)

    def find(self, case: Mapping[str, object]) -> dict[str, Any] | None:
        """The row of a case, None where it has not ended yet."""
        return self._rows.get(_key(case))

    def add(self, case: Mapping[str, object], row: Mapping[str, object]) -> None:
        """Keep the row of a case; raises FileError where it cannot be written."""
        line = json.dumps([_build(), case, row])
        with self._lock:
            try:
                with self._path.open("a", encoding="utf-8") as file:
                    # Whatever a stopped run left of a line must not swallow this one.
                    file.write(f"{line}\n" if file.tell() == 0 else f"\n{line}\n")
            except OSError as error:
                reason = error.strerror or error
                raise FileError(f"cannot write `{self._path}`: {reason}") from error
            self._rows[_key(case)] = dict(row)

    def drop(self) -> None:
        """Remove the file: the study has ended."""
        self._path.unlink(missing_ok=True)


def _key(case: Mapping[str, object]) -> str:
    return json.dumps(case, sort_keys=True)


@cache
def _build() -> str:
    """A digest of the package as it is installed, compiled core included."""
    digest = hashlib.sha256()
    package = Path(__file__).parents[1]
    for path in sorted(package.rglob("*")):
        if path.suffix in {".py", ".so", ".pyd"}:
            digest.update(str(path.relative_to(package)).encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()
