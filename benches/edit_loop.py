"""Edit loops, from a changed line to a passed test: seconds of each, with its goal beside it.

    python benches/edit_loop.py            each loop three times, on an idle machine
    python benches/edit_loop.py --times 1

A loop changes one line in a module of a planner, builds, and runs one test. The module is put
back as it was. Everything is built once before, so that only the edit counts.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
EDITED = ROOT / "crates/planner/src/combined/shifts.rs"


class Loop(NamedTuple):
    """Name, goal in seconds and command of an edit loop."""

    name: str
    goal_s: float
    command: list[str]


LOOPS = [
    Loop("one Rust test", 30, ["make", "test-core", "TEST=units::"]),
    Loop("one Python test", 45, ["make", "test-python", "TEST=tests/test_break_even.py"]),
]


@contextmanager
def edited(number: int) -> Iterator[None]:
    """Appends a function, named by the number, to the module, and removes it at the end."""
    before = EDITED.read_text(encoding="utf-8")
    more = f"\n/// Changed by a bench.\npub fn edit_{number}() -> u32 {{\n    {number}\n}}\n"
    try:
        EDITED.write_text(before + more, encoding="utf-8")
        yield
    finally:
        EDITED.write_text(before, encoding="utf-8")


def seconds(loop: Loop) -> float:
    """Returns the run time of a loop's command, in seconds.

    Raises
    ------
    SystemExit
        The build or the test failed.
    """
    begun = time.perf_counter()
    done = subprocess.run(loop.command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(loop.command)} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return time.perf_counter() - begun


def main() -> None:
    """Times all loops and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--times", type=int, default=3, help="edits of each loop (default: 3)")
    times = parser.parse_args().times
    print(f"{'from an edit to':<18}{'goal, s':>8}{'least, s':>10}{'most, s':>10}")
    for loop in LOOPS:
        seconds(loop)
        taken = []
        for number in range(times):
            with edited(number):
                taken.append(seconds(loop))
        least, most = min(taken), max(taken)
        print(f"{loop.name:<18}{loop.goal_s:>8.0f}{least:>10.1f}{most:>10.1f}")


if __name__ == "__main__":
    main()
