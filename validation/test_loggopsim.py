"""LogGOPSim takes as long for plans that opticoll exports as GOAL as opticoll says.

`OPTICOLL_LOGGOPSIM` names the folder of its programs `LogGOPSim` and `txt2bin`. Without it the
tests are skipped. LogGOPSim charges n - 1 bytes for n, so each message on the chain that takes
longest is one ns shorter at 1 ns a byte. Where a rank has several messages at once, both serve its
ports in another order; those plans are left out.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

import opticoll

FOLDER = os.environ.get("OPTICOLL_LOGGOPSIM")

CASES = {
    ("all_gather", "ring"): 7,
    ("all_gather", "recursive_doubling"): 3,
    ("all_gather", "bruck"): 3,
    ("reduce_scatter", "recursive_halving"): 3,
    ("all_reduce", "halving_doubling"): 6,
    ("all_to_all", "pairwise"): 7,
    ("broadcast", "binomial"): 3,
    ("reduce", "binomial"): 3,
    ("gather", "binomial"): 3,
    ("scatter", "binomial"): 3,
}
"""Collective and algorithm on eight ranks, and the messages of the longest chain."""


@pytest.mark.skipif(not FOLDER, reason="OPTICOLL_LOGGOPSIM names no folder")
@pytest.mark.parametrize("case", CASES)
def test_loggopsim_takes_as_long(case: tuple[str, str], tmp_path: Path) -> None:
    kind, algorithm = case
    plan = opticoll.plan(kind, "crossbar:ranks=8", algorithm)
    text, binary = tmp_path / "ours.goal", tmp_path / "ours.bin"
    plan.export(text, size="64KiB")
    programs = Path(FOLDER or ".")
    subprocess.run([programs / "txt2bin", "-i", text, "-o", binary], check=True)
    settings = ("-L", "1000", "-o", "0", "-g", "0", "-G", "1", "-S", "1000000000", "-b")
    ended = subprocess.run(
        [programs / "LogGOPSim", "-f", binary, *settings],
        check=True,
        capture_output=True,
        text=True,
    )
    found = re.search(r"finishing time at host \d+: (\d+)", ended.stdout)
    ours = opticoll.replay(text, "loggp:latency=1us,rate=8Gb/s").outcome.time_ps
    assert found is not None
    assert int(found[1]) * 1000 == ours - 1000 * CASES[case]
