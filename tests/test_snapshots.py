"""Snapshots of short commands and their text, for a person to read when the text changes.

Each file in `snapshots` begins with its command after `$`. Write all anew, or one that holds only
its command, and read the difference:

    OPTICOLL_WRITE_SNAPSHOTS=1 pytest tests/test_snapshots.py && git diff tests/snapshots
"""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import pytest

from support import Run

ROOT = Path(__file__).parents[1]
SNAPSHOTS = sorted((ROOT / "tests" / "snapshots").glob("*.txt"))
MAX_LINES = 30


@pytest.mark.parametrize("path", SNAPSHOTS, ids=lambda path: path.stem)
def test_command_prints_its_snapshot(path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("COLUMNS", "80")
    kept = path.read_text(encoding="utf-8")
    line = kept.splitlines()[0]
    done = run(*shlex.split(line)[2:])
    code = f"exit code {done.code}\n" if done.code else ""
    printed = f"{line}\n{done.out}{done.err}{code}"
    assert len(printed.splitlines()) <= MAX_LINES
    if os.environ.get("OPTICOLL_WRITE_SNAPSHOTS"):
        path.write_text(printed, encoding="utf-8")
    else:
        assert printed == kept
