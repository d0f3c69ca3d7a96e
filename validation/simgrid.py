"""opticoll's simulator of flows beside SimGrid: random cases, differences, speed, a report.

    python validation/simgrid.py --out docs [--seed 1] [--each 40] [--speed] [--long]

Needs SimGrid's C++ library and g++ (Debian: `apt-get install libsimgrid-dev g++`), and cargo. Exit
code 1 where an end differs by more than 1e-6, 2 where something is not installed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import simgrid_report
from simgrid_cases import Case, random_cases
from simgrid_peers import MissingError, build_ours, build_simgrid, run_ours, run_simgrid, version
from simgrid_report import CaseRow
from simgrid_speed import measure

__all__ = ["compared"]

TOLERANCE = 1e-6
"""The relative difference that is allowed: opticoll's times are whole picoseconds."""


def compared(simgrid: Path, ours: Path, case: Case) -> CaseRow:
    """Runs one case in both programs."""
    theirs, own = run_simgrid(simgrid, case), run_ours(ours, case)
    # SimGrid's list ends with the last rank that takes part.
    assert len(theirs.ends_s) <= len(own.ends_s), case.name
    pairs = [*zip(theirs.ends_s, own.ends_s, strict=False), (theirs.end_s, own.end_s)]
    return CaseRow(
        name=case.name,
        topology=case.topology,
        weights=case.weights or "",
        flows=case.flows,
        ends=len(pairs),
        ours_s=own.end_s,
        simgrid_s=theirs.end_s,
        difference=max(abs(a - b) / max(a, b) if a != b else 0.0 for a, b in pairs),
        ours_run_s=own.run_s,
        simgrid_run_s=theirs.run_s,
    )


def main() -> int:
    """Compares and writes; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder for the report")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--each", type=int, default=40, help="cases on every topology")
    parser.add_argument("--speed", action="store_true", help="time large cases too")
    parser.add_argument("--long", action="store_true", help="SimGrid's slow rows too, minutes each")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        try:
            simgrid, ours = build_simgrid(Path(folder)), build_ours()
        except MissingError as missing:
            say(str(missing))
            return 2
        say(f"SimGrid {version(simgrid)}, seed {given.seed}, {given.each} cases on every topology")
        rows = [compared(simgrid, ours, case) for case in random_cases(given.seed, given.each)]
        wanted = given.speed or given.long
        speed = measure(simgrid, ours, long=given.long, say=say) if wanted else []
        stated = simgrid_report.versions(version(simgrid))
    simgrid_report.write(given.out, rows, speed, seed=given.seed, versions=stated)
    wrong = [row for row in rows if row.difference > TOLERANCE]
    for row in wrong:
        say(f"{row.name}: differs by {row.difference:.1e}")
    agreeing = f"{len(rows) - len(wrong)} of {len(rows)} cases"
    say(f"{agreeing} agree to {TOLERANCE:g}; wrote to {given.out}")
    return 1 if wrong else 0


def say(text: str) -> None:
    """Prints the current work to standard error."""
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
