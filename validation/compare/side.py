"""Runs cases on one revision of opticoll, each in a child forked from one warm process.

`sides.py` starts it with the revision's package on the path. Standard input is one JSON object:

    package   folder that `opticoll` must be imported from
    source    source tree of the revision; each case sees its `examples`, `fuzz` and `tests`
    folder    folder for the files of the cases
    cases     pairs of a case's name and its command line
    jobs      number of children at a time

For each case that ends, a line of JSON goes to standard output: its name, exit status, CPU seconds
in user mode and bytes by which its memory exceeded that of an idle child. The child leaves the
files that its commands wrote in the folder `NAME`, and in `NAME.json` what they printed.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import pkgutil
import shlex
import signal
import sys
from importlib import import_module
from pathlib import Path

WRITTEN = {"plan": "case.plan", "replan": "case.plan"}
"""Commands that also write their plan, and into which file."""

LIMIT_S = 120
"""Seconds after which a child is ended."""


def warm_up(package: Path) -> None:
    """Imports the package, so that no case is charged for it."""
    import opticoll

    if Path(opticoll.__file__).parent != package / "opticoll":
        sys.exit(f"opticoll was imported from {opticoll.__file__}, not from {package}")
    for module in pkgutil.walk_packages(opticoll.__path__, "opticoll."):
        if not module.name.endswith(("__main__", "conftest", "mpi_rank")):
            with contextlib.suppress(ImportError):
                import_module(module.name)


def run(line: str, place: Path, source: Path) -> None:
    """Runs the commands of a case in a new folder, and writes their output beside the folder."""
    from opticoll.__main__ import run as run_command_line

    place.mkdir(parents=True)
    os.chdir(place)
    for name in ("examples", "fuzz", "tests"):
        Path(name).symlink_to(source / name)
    codes = []
    out = err = io.StringIO()
    steps = [shlex.split(step) for step in line.split(" && ")]
    for words in steps:
        if words is steps[-1]:
            if words[0] in WRITTEN and "--output" not in words:
                words += ["--output", WRITTEN[words[0]]]
            words.append("--json")
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            sys.argv = ["opticoll", *words]
            codes.append(run_command_line())
    printed = {"codes": codes, "out": out.getvalue(), "err": err.getvalue()}
    place.with_name(f"{place.name}.json").write_text(json.dumps(printed))


def fork(line: str | None, place: Path, source: Path) -> int:
    """Starts a case in a child, or an idle child; returns its process id."""
    child = os.fork()
    if child:
        return child
    code = 0
    try:
        signal.alarm(LIMIT_S)
        if line is not None:
            run(line, place, source)
    except BaseException as error:
        place.with_name(f"{place.name}.error").write_text(f"{type(error).__name__}: {error}")
        code = 1
    os._exit(code)


def main() -> None:
    """Runs the cases that standard input names; see the module's text."""
    given = json.load(sys.stdin)
    folder, source = Path(given["folder"]), Path(given["source"])
    warm_up(Path(given["package"]))
    fork(None, folder, source)
    idle = os.wait4(-1, 0)[2].ru_maxrss
    waiting = list(reversed(given["cases"]))
    running: dict[int, str] = {}
    while waiting or running:
        while waiting and len(running) < given["jobs"]:
            name, line = waiting.pop()
            running[fork(line, folder / name, source)] = name
        child, status, used = os.wait4(-1, 0)
        done = {
            "name": running.pop(child),
            "status": os.waitstatus_to_exitcode(status),
            "cpu_s": used.ru_utime,
            "memory": max(0, used.ru_maxrss - idle) * 1024,
        }
        print(json.dumps(done), flush=True)


if __name__ == "__main__":
    main()
