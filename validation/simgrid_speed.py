"""Large cases timed side by side: SimGrid, opticoll's engine, the whole opticoll command."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from simgrid_cases import Case, closed_loop, platform
from simgrid_peers import Ran, run_ours, run_simgrid

__all__ = ["WORK", "SpeedRow", "Work", "measure"]

GIGABITS = 100
CABLES = f"rate={GIGABITS}Gb/s,latency=0s"


@dataclass(frozen=True)
class Work:
    """A row of the table: what is run, on what, and the goal of the whole command.

    `idle_s`: what SimGrid 4.1 took once on an idle machine, a lower mark to be measured by.
    `slow`: SimGrid takes a minute or more. `command`: collective, algorithm and size.
    """

    name: str
    topology: str
    parameters: str
    ranks: int
    lines: str
    flows: int
    idle_s: float
    goal_s: float
    goal_mb: float | None
    slow: bool = False
    command: tuple[str, str, str] | None = None

    @property
    def fabric(self) -> str:
        """The fabric as opticoll spells it."""
        if self.topology == "fat tree":
            down, up, links = (part.replace(",", "x") for part in self.parameters.split(";")[1:])
            return f"fat_tree:down={down},up={up},links={links},{CABLES}"
        groups, _, routers, hosts = (part.split(",")[0] for part in self.parameters.split(";"))
        blue = int(self.parameters.split(";")[0].split(",")[1])
        return (
            f"dragonfly:terminals_per_router={hosts},routers_per_group={routers},groups={groups},"
            f"arrangement=simgrid,{CABLES},global_rate={blue * GIGABITS}Gb/s"
        )


@dataclass(frozen=True)
class SpeedRow:
    """Seconds and MB of one row; None for what was not run. Times are of the same machine."""

    work: Work
    simgrid: Ran | None
    engine: Ran
    command_s: float | None
    command_mb: float | None


TREE = "3;16,8,8;1,8,8;1,1,1"
TREE_4096 = "3;16,16,16;1,8,8;1,1,1"
TREE_65536 = "3;32,32,64;1,16,16;1,1,1"
DRAGONFLY = "16,2;1,1;16,1;4"


def _pattern(name: str, ranks: int) -> str:
    """Returns a pattern of 100 MiB in all, as in the measurements behind the goals."""
    return f"pattern {name} {ranks} {100 * 2**20 // ranks}\n"


WORK = (
    Work("all_gather ring, 1024 ranks, fat tree", "fat tree", TREE, 1024,
         _pattern("ring", 1024), 1024 * 1023, 2.65, 0.1, 60, False,
         ("all_gather", "ring", "100KiB")),
    Work("all_gather ring, 4096 ranks, fat tree", "fat tree", TREE_4096, 4096,
         _pattern("ring", 4096), 4096 * 4095, 119, 2, 200, True, ("all_gather", "ring", "25KiB")),
    Work("all_gather recursive_doubling, 65,536 ranks, fat tree", "fat tree", TREE_65536, 65536,
         _pattern("doubling", 65536), 65536 * 16, 51.5, 3, 1000, True,
         ("all_gather", "recursive_doubling", "1600B")),
    Work("all_gather direct, 1024 ranks, fat tree", "fat tree", TREE, 1024,
         _pattern("shift", 1024), 1024 * 1023, 8.4, 0.5, 200, False,
         ("all_gather", "direct", "100KiB")),
    Work("all_to_all pairwise, 1024 ranks, fat tree", "fat tree", TREE, 1024,
         _pattern("pairwise", 1024), 1024 * 1023, 8.0, 0.5, 200, False,
         ("all_to_all", "pairwise", "100MiB")),
    Work("all_gather direct, 1024 ranks, dragonfly", "dragonfly", DRAGONFLY, 1024,
         _pattern("shift", 1024), 1024 * 1023, 20, 1, None, False,
         ("all_gather", "direct", "100KiB")),
    Work("all_to_all pairwise, 1024 ranks, dragonfly", "dragonfly", DRAGONFLY, 1024,
         _pattern("pairwise", 1024), 1024 * 1023, 8.3, 1, None, False,
         ("all_to_all", "pairwise", "100MiB")),
    Work("closed loop, 8192 random flows at a time, fat tree", "fat tree", TREE, 1024,
         closed_loop(1024, 8, 4, 1), 32768, 180.6, 2, None, True),
    Work("closed loop, 1024 random flows at a time, dragonfly", "dragonfly", DRAGONFLY, 1024,
         closed_loop(1024, 1, 16, 1), 16384, 8.7, 0.3, None),
)  # fmt: skip
"""Rows of the table, with the goals for opticoll in seconds and MB."""


def measure(simgrid: Path, ours: Path, *, long: bool, say: Callable[[str], None]) -> list[SpeedRow]:
    """Times every row; SimGrid's slow rows only if `long`."""
    rows = []
    for work in WORK:
        say(work.name)
        case = Case(
            name=work.name,
            topology=work.topology,
            fabric=work.fabric,
            platform=platform(work.topology, work.ranks, work.parameters, GIGABITS, 0),
            lines=work.lines,
            flows=work.flows,
        )
        theirs = None if work.slow and not long else run_simgrid(simgrid, case)
        command_s, command_mb = (None, None) if work.command is None else _command(work)
        rows.append(SpeedRow(work, theirs, run_ours(ours, case), command_s, command_mb))
    return rows


def _command(work: Work) -> tuple[float, float]:
    """Seconds of the processor and peak of memory in MB of `opticoll simulate`."""
    assert work.command is not None
    collective, algorithm, size = work.command
    arguments = ["simulate", collective, "--fabric", work.fabric, "--algorithm", algorithm]
    child = subprocess.Popen(
        [sys.executable, "-m", "opticoll", *arguments, "--size", size],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise RuntimeError(f"opticoll {' '.join(arguments)} failed")
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024
