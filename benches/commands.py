"""Times whole commands, as a user waits for them, and prints each beside its goal.

    python benches/commands.py

Exit code 1 where a goal is missed.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

RING = "wdm_ring:ranks={ranks},wavelengths=64"
CABLES = "rate=12.5GB/s,latency=0s"
TREES = {
    1024: f"fat_tree:down=16x8x8,up=1x8x8,links=1x1x1,{CABLES}",
    4096: f"fat_tree:down=16x16x16,up=1x8x8,links=1x1x1,{CABLES}",
    65536: f"fat_tree:down=32x32x64,up=1x16x16,links=1x1x1,{CABLES}",
}
DRAGONFLY = (
    "dragonfly:terminals_per_router=4,routers_per_group=16,groups=16,arrangement=simgrid,"
    f"{CABLES},global_rate=200Gb/s"
)


def flows(collective: str, algorithm: str, fabric: str, size: str) -> tuple[str, ...]:
    """Returns arguments that plan, prove and simulate a collective on an electrical fabric."""
    return ("simulate", collective, "--fabric", fabric, "--algorithm", algorithm, "--size", size)


PACKETS = (
    "dragonfly:terminals_per_router={0},routers_per_group={1},global_per_router={0},"
    "rate=5.25GiB/s,global_rate=40372692582b/s,latency=0ns"
)


def trees(fabric: str) -> tuple[str, ...]:
    """Returns arguments that plan and prove an all_gather over packed trees."""
    algorithm = "tree_packing:trees=1,chunks=1"
    return ("plan", "all_gather", "--fabric", fabric, "--algorithm", algorithm, "--size", "1MiB")


TRACES = Path(__file__).parents[1] / "crates/tests/data/traces"

# Seconds on two cores, the start of Python included.
GOALS: tuple[tuple[float, tuple[str, ...]], ...] = (
    (0.5, ("--help",)),
    (0.5, ("list",)),
    (0.5, ("plan", "all_gather", "--fabric", "wdm_ring:ranks=16,wavelengths=2")),
    (2.0, ("plan", "all_gather", "--fabric", RING.format(ranks=1024), "--algorithm", "optree")),
    (3.0, ("plan", "all_gather", "--fabric", RING.format(ranks=1024), "--algorithm", "relay_tree")),
    (2.0, ("plan", "all_gather", "--fabric", RING.format(ranks=4096),
           "--algorithm", "relay_tree")),
    (8.0, ("plan", "all_gather", "--fabric", RING.format(ranks=65536), "--algorithm", "auto")),
    (60.0, ("plan", "all_gather", "--fabric", RING.format(ranks=1 << 20), "--algorithm", "auto")),
    (2.0, ("plan", "all_gather", "--fabric", RING.format(ranks=1024), "--algorithm", "auto",
           "--size", "4MiB")),
    (2.0, ("plan", "all_reduce", "--fabric", RING.format(ranks=1024), "--algorithm", "auto",
           "--size", "100MB")),
    # `auto`, with a goal of 2 s, and the proof.
    (3.0, ("plan", "all_reduce", "--fabric", RING.format(ranks=1024), "--algorithm", "auto",
           "--size", "1GiB")),
    (2.0, ("plan", "broadcast", "--fabric", RING.format(ranks=1024), "--algorithm", "auto",
           "--size", "1MiB", "--policy", "per_port")),
    (60.0, ("compare", "all_gather", "--fabric", RING.format(ranks=1024),
            "--algorithms", "auto,optree,wrht,ring", "--sizes", "1KiB..1GiB")),
    # 100 MiB in all; SimGrid's times beside them are in docs/validation.md.
    (0.1, flows("all_gather", "ring", TREES[1024], "100KiB")),
    (2.0, flows("all_gather", "ring", TREES[4096], "25KiB")),
    (3.0, flows("all_gather", "recursive_doubling", TREES[65536], "1600B")),
    (0.5, flows("all_gather", "direct", TREES[1024], "100KiB")),
    (0.5, flows("all_to_all", "pairwise", TREES[1024], "100MiB")),
    (1.0, flows("all_gather", "direct", DRAGONFLY, "100KiB")),
    (1.0, flows("all_to_all", "pairwise", DRAGONFLY, "100MiB")),
    # TACOS takes 70 s for 1024 ranks.
    (5.0, ("plan", "all_gather", "--fabric", "torus:dims=32x32,latency=500ns", "--size", "1MiB",
           "--algorithm", "matching")),
    (60.0, ("plan", "all_gather", "--fabric", "torus:dims=64x64,latency=500ns", "--size", "1MiB",
            "--algorithm", "matching:chunks=1")),
    (5.0, ("plan", "all_gather", "--fabric", "torus:dims=32x32,latency=500ns", "--size", "1MiB",
           "--algorithm", "multi_ring")),
    # Packets: uniform traffic, a ring of 64 KiB on 1056 terminals, one of 1 KiB on 5256.
    (2.5, ("traffic", "--fabric", PACKETS.format(6, 12), "--messages", "100",
           "--period", "1us", "--bytes", "2048B", "--routing", "minimal")),
    (6.0, ("simulate", "all_gather", "--fabric", PACKETS.format(4, 8), "--algorithm", "ring",
           "--size", "64KiB", "--simulator", "packet", "--packet", "4096B", "--chunk", "4096B",
           "--buffers", "64KiB,64KiB,64KiB")),
    (20.0, ("simulate", "all_gather", "--fabric", PACKETS.format(6, 12), "--algorithm", "ring",
            "--size", "1KiB", "--simulator", "packet", "--packet", "1024B", "--chunk", "1024B")),
    # Any graph: the optimum, and plans that reach it; 0.2 s after the start for 128 GPUs.
    (0.7, ("bound", "all_gather", "--fabric", "dgx_h100:boxes=16")),
    (10.0, ("bound", "all_gather", "--fabric", "fat_tree:down=25x20x20,up=1x25x10")),
    (30.0, trees("dgx_h100:boxes=16,library=none")),
    (1.0, trees("torus:dims=8x8")),
    (30.0, trees("torus:dims=16x16")),
    (5.0, trees("torus:dims=32x32")),
    (60.0, trees("torus:dims=64x64")),
    # Replays: 0.2 s and 1 s after the start.
    (0.7, ("replay", f"{TRACES}/mg.A.16.csv.zst")),
    (1.5, ("replay", f"{TRACES}/cg.A.16.csv.zst")),
)  # fmt: skip


def seconds(arguments: tuple[str, ...]) -> float:
    """Returns the run time of `opticoll` with these arguments, in seconds.

    Raises CalledProcessError if the command fails.
    """
    begun = time.perf_counter()
    command = [sys.executable, "-m", "opticoll", *arguments]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - begun


def main() -> int:
    """Times all commands; returns the exit code."""
    missed = 0
    for goal, arguments in GOALS:
        taken = seconds(arguments)
        missed += taken > goal
        verdict = "MISSED" if taken > goal else ""
        print(f"{taken:7.2f} s  goal {goal:4.1f} s  {verdict:6}  opticoll {' '.join(arguments)}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
