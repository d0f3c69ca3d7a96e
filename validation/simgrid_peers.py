"""Both programs: built where their sources are at hand, and run on a case.

SimGrid is never required: `MissingError` says what is not there.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from simgrid_cases import Case

import opticoll

__all__ = [
    "MissingError",
    "Ran",
    "build_ours",
    "build_simgrid",
    "run_ours",
    "run_simgrid",
    "version",
]

HERE = Path(__file__).parent
ROOT = HERE.parent
INSTALL = "install it, for example with `apt-get install libsimgrid-dev g++`"


class MissingError(Exception):
    """SimGrid or a compiler is not installed."""


@dataclass(frozen=True)
class Ran:
    """Result of a program: ends of flows or of ranks, and of all, in seconds.

    `build_s` and `run_s` are seconds for the platform and for the simulation, `peak_mb` the peak of
    memory of the whole process.
    """

    ends_s: list[float]
    end_s: float
    build_s: float
    run_s: float
    peak_mb: float


def build_simgrid(folder: Path) -> Path:
    """Compiles the program for SimGrid into a folder; raises MissingError."""
    compiler = shutil.which("g++")
    if compiler is None:
        raise MissingError(f"there is no g++ to build the program for SimGrid: {INSTALL}")
    program = folder / "simgrid_peer"
    made = subprocess.run(
        [compiler, "-std=c++17", "-O2", "-o", program, HERE / "simgrid_peer.cpp", "-lsimgrid"],
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode:
        if "simgrid/s4u.hpp" in made.stderr or "-lsimgrid" in made.stderr:
            raise MissingError(f"SimGrid is not installed: {INSTALL}")
        raise RuntimeError(made.stderr)
    return program


def version(program: Path) -> str:
    """Returns the version of SimGrid that the program was built with."""
    told = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    return told.stdout.strip()


def build_ours() -> Path:
    """Compiles the program for opticoll's simulator; raises MissingError if there is no Rust."""
    if shutil.which("cargo") is None:
        raise MissingError("there is no cargo to build the program for opticoll's simulator")
    command = ["cargo", "build", "--quiet", "--release", "--example", "fluid_peer"]
    subprocess.run(command, check=True, cwd=ROOT)
    return Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"), "release/examples/fluid_peer")


def run_simgrid(program: Path, case: Case) -> Ran:
    """Runs a case under SimGrid."""
    with tempfile.TemporaryDirectory() as folder:
        platform, lines = Path(folder, "platform.xml"), Path(folder, "case")
        platform.write_text(case.platform)
        lines.write_text(case.lines)
        return _read([program, platform, lines])


def run_ours(program: Path, case: Case) -> Ran:
    """Runs a case under opticoll: plans as any user would, chains and patterns by the program."""
    if case.plan is not None:
        return _run_plan(case)
    with tempfile.TemporaryDirectory() as folder:
        lines = Path(folder, "case")
        lines.write_text(case.lines)
        return _read([program, case.fabric, lines, *([case.weights] if case.weights else [])])


def _run_plan(case: Case) -> Ran:
    assert case.plan is not None
    collective, algorithm, size = case.plan
    plan = opticoll.plan(collective, case.fabric, algorithm)
    violations = plan.verify()
    if violations:
        raise AssertionError(f"{case.name}: {violations[0].sentence}")
    begun = time.process_time()
    outcome = plan.simulate(size, start="rendezvous", weights=case.weights)
    run_s = time.process_time() - begun
    ends = [int(end) / 1e12 for end in outcome.ranks["finish_ps"]]
    return Ran(ends, outcome.time_ps / 1e12, 0.0, run_s, 0.0)


def _read(command: list[object]) -> Ran:
    told = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, check=False
    )
    if told.returncode:
        raise RuntimeError(f"{' '.join(str(word) for word in command)}: {told.stderr}")
    used, *ends, end = told.stdout.splitlines()
    build_s, run_s, peak_mb = (float(word) for word in used.split()[1:])
    return Ran([float(line) for line in ends], float(end.split()[1]), build_s, run_s, peak_mb)
