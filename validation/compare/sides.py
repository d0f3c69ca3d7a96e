"""Builds two revisions and runs the same cases on both at the same time.

Everything is kept below `target/compare`, so that a revision is built once:

    REVISION/source    its worktree (the working tree itself is used where it is)
    REVISION/package   its package, unpacked from a wheel
    working-tree/build what Cargo made, for the next build of the working tree
    runs               what the cases of the last comparison wrote
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "target" / "compare"

PROFILE = {
    "CARGO_PROFILE_RELEASE_LTO": "off",
    "CARGO_PROFILE_RELEASE_CODEGEN_UNITS": "16",
}
"""The build profile of both sides: quick to build, and the same whatever `Cargo.toml` says."""

TELL_S = 10.0
"""Seconds between two lines on standard error."""


class CompareError(Exception):
    """Why there is no comparison."""


@dataclass(frozen=True)
class Side:
    """A revision that is built."""

    label: str
    source: Path
    package: Path


@dataclass(frozen=True)
class Measured:
    """Exit status of a case, and the resources that it used."""

    status: int
    cpu_s: float
    memory: int

    def least(self, other: Measured) -> Measured:
        """Returns the lesser values of two runs: noise only adds to them."""
        cpu_s, memory = min(self.cpu_s, other.cpu_s), min(self.memory, other.memory)
        return Measured(other.status, cpu_s, memory)


def tell(line: str) -> None:
    """Writes a line to standard error."""
    print(f"compare: {line}", file=sys.stderr, flush=True)


def git(*words: str) -> str:
    """Returns the output of a git command."""
    done = subprocess.run(["git", "-C", ROOT, *words], capture_output=True, text=True)
    if done.returncode:
        raise CompareError(f"git {' '.join(words)}: {done.stderr.strip()}")
    return done.stdout.strip()


def revision(name: str) -> Side:
    """Builds a revision, unless it has been built."""
    try:
        commit = git("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
    except CompareError:
        raise CompareError(
            f"there is no revision `{name}`; `git log --oneline` lists some"
        ) from None
    place = KEPT / commit[:12]
    side = Side(name, place / "source", place / "package")
    if not side.package.exists():
        if not side.source.exists():
            # --force: git may remember a worktree that `make clean` deleted.
            git("worktree", "add", "--force", "--detach", str(side.source), commit)
        build(side)
    return side


def working_tree() -> Side:
    """Builds the working tree with all its changes."""
    side = Side("working tree", ROOT, KEPT / "working-tree" / "package")
    build(side)
    return side


def build(side: Side) -> None:
    """Builds a wheel with Cargo, and unpacks it."""
    wheels, made = side.package.with_name("wheels"), side.package.with_name("build")
    # Each worktree has a target folder: Cargo takes crates at the same relative path for the same.
    settings = os.environ | PROFILE | {"CARGO_TARGET_DIR": str(made)}
    shutil.rmtree(wheels, ignore_errors=True)
    command = ["maturin", "build", "--release", "--compatibility", "linux", "--out", str(wheels)]
    log = side.package.with_name("build.log")
    log.parent.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    tell(f"building {side.label}; {log.relative_to(ROOT)} shows how far it is")
    with log.open("w") as file:
        building = subprocess.Popen(
            command, cwd=side.source, env=settings, stdout=file, stderr=file
        )
        while True:
            try:
                code = building.wait(TELL_S)
                break
            except subprocess.TimeoutExpired:
                tell(f"building {side.label}; {time.monotonic() - started:.0f} s")
    if code:
        end = "\n".join(log.read_text().splitlines()[-30:])
        raise CompareError(f"{side.label} does not build:\n{end}")
    (wheel,) = wheels.glob("*.whl")
    new = side.package.with_name("new")
    for old in (new, side.package):
        shutil.rmtree(old, ignore_errors=True)
    zipfile.ZipFile(wheel).extractall(new)
    papers = side.source / "papers" / "opticoll_papers"
    if papers.is_dir():
        shutil.copytree(papers, new / papers.name)
    new.rename(side.package)
    shutil.rmtree(wheels)
    if side.source != ROOT:
        shutil.rmtree(made)  # some 500 MB that no other build needs


def run(
    sides: Sequence[Side], lines: Sequence[dict[str, str]], jobs: int, folder: Path
) -> list[dict[str, Measured]]:
    """Runs the command lines of both sides, by name, at once; `folders` are their folders."""
    found: list[dict[str, Measured]] = [{} for _ in sides]
    running = [
        start(side, own, place, max(1, jobs // len(sides)))
        for side, own, place in zip(sides, lines, folders(folder), strict=True)
    ]
    threads = [
        threading.Thread(target=collect, args=(process, into), daemon=True)
        for process, into in zip(running, found, strict=True)
    ]
    for thread in threads:
        thread.start()
    started = time.monotonic()
    while any(thread.is_alive() for thread in threads):
        for thread in threads:
            thread.join(TELL_S / len(threads))
        done, total = sum(map(len, found)), sum(map(len, lines))
        tell(f"{done} of {total} cases have run; {time.monotonic() - started:.0f} s")
    for side, process, own, into in zip(sides, running, lines, found, strict=True):
        if process.wait() or len(into) < len(own):
            raise CompareError(
                f"the cases of {side.label} ended early, with exit code {process.wait()}"
            )
    return found


def folders(folder: Path) -> list[Path]:
    """Returns the folders for the files of the two sides."""
    return [folder / "before", folder / "now"]


def start(side: Side, lines: dict[str, str], folder: Path, jobs: int) -> subprocess.Popen[str]:
    """Starts the process that runs the cases of a side."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    given = {
        "package": str(side.package),
        "source": str(side.source),
        "folder": str(folder),
        "cases": list(lines.items()),
        "jobs": jobs,
    }
    process = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("side.py"))],
        env=os.environ | {"PYTHONPATH": str(side.package), "COLUMNS": "80"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    process.stdin.write(json.dumps(given))
    process.stdin.close()
    return process


def collect(process: subprocess.Popen[str], into: dict[str, Measured]) -> None:
    """Reads the resources of each case as it ends."""
    assert process.stdout is not None
    for line in process.stdout:
        values = json.loads(line)
        name = values.pop("name")
        into[name] = Measured(**values)


def content_of(path: Path) -> Any:
    """Returns the text of a file, the data of a page of `report`, or bytes in hexadecimal."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return path.read_bytes().hex()
    page = re.search(r'<script id="content" type="application/json">(.*?)</script>', text, re.S)
    return json.loads(page[1]) if path.suffix == ".html" and page else text
