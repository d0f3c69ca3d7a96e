"""Ctrl-C: one line and exit code 130 of a command, KeyboardInterrupt in Python, at once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import opticoll
from opticoll import _core
from opticoll.commands.traffic import packets
from opticoll.outputs.plan_row import PlanRow, plan_row
from opticoll.outputs.watch import Watch
from support import RING, Run

AT_ONCE_S = 5.0
"""A second, and what other work on the machine may take of it. Each case would take much longer."""

DRAGONFLY = "dragonfly:terminals_per_router=4,routers_per_group=8,global_per_router=4"
LADDER = "wdm_ladder:rungs=5,hosts=10,wavelengths=28,rate=10Gb/s"


@pytest.fixture(autouse=True)
def interrupts_are_heard() -> Iterator[None]:
    """Restores SIGINT, which a job that a shell runs in the background ignores from its start."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@contextmanager
def interrupted_after(seconds: float) -> Iterator[None]:
    """Interrupts the code inside, and checks that the code ends soon after."""
    sent: list[float] = []

    def press() -> None:
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(seconds, press)
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            yield
    finally:
        timer.cancel()
    assert time.monotonic() - sent[0] < AT_ONCE_S


def planned(kind: str, fabric: str, algorithm: str) -> opticoll.Plan:
    return opticoll.plan(kind, fabric, algorithm)


def often(work: Callable[[], object]) -> None:
    """Repeats work for a minute, so that an interrupt arrives between two calls or in one."""
    begun = time.monotonic()
    while time.monotonic() - begun < 60.0:
        work()


def verify_many_transfers() -> None:
    plan = planned("all_to_all", "wdm_ring:ranks=1024,wavelengths=64", "direct")
    often(plan.verify)


def simulate_circuits() -> None:
    plan = planned("all_to_all", "wdm_ring:ranks=1024,wavelengths=64", "direct")
    often(lambda: plan.simulate("1MiB", policy="per_port"))


def simulate_flows() -> None:
    plan = planned("all_to_all", "fat_tree:down=32x32,up=1x8", "direct")
    often(lambda: plan.simulate("1MB"))


def simulate_packets_in_parts() -> None:
    plan = planned("all_to_all", DRAGONFLY, "direct")
    plan.simulate("4MiB", simulator="packet", cores="2")


def simulate_bursts_on_threads() -> None:
    settings = {"offered_load": "0.6", "bursts": "1e9"}
    _core.simulate_bursts(LADDER, settings, threads=2)


def collectives_among_bursts() -> None:
    plan = planned("all_reduce", "crossbar:ranks=20", "ring")
    settings = {"offered_load": "0.6", "replications": "1000"}
    places = [list(range(20))]
    often(
        lambda: _core.simulate_collectives(LADDER, plan, places, 10**9, settings, threads=2),
    )


def traffic_on_threads() -> None:
    fabric = opticoll.Fabric(DRAGONFLY)
    case = packets.Case(fabric, "uniform", "64KiB", "1us", 100_000, {})
    list(packets.simulate([case, case], 2, Watch()))


WORK: dict[str, Callable[[], object]] = {
    "planning 60,000 ranks": lambda: planned(
        "all_gather", "wdm_ring:ranks=60000,wavelengths=64", "relay_tree:pieces=2"
    ),
    "choosing": lambda: planned("all_to_all", "torus:dims=32x32", "auto"),
    "assigning wavelengths": lambda: planned(
        "all_to_all", "wdm_ring:ranks=4000,wavelengths=7", "direct"
    ),
    "verifying": verify_many_transfers,
    "circuits": simulate_circuits,
    "flows": simulate_flows,
    "packets on threads": simulate_packets_in_parts,
    "bursts on threads": simulate_bursts_on_threads,
    "collectives among bursts": collectives_among_bursts,
    "traffic on threads": traffic_on_threads,
    "tasks of a user's thread": lambda: often(lambda: planned("all_gather", RING, "auto")),
}


@pytest.mark.parametrize("work", WORK)
def test_an_interrupt_stops_the_core_at_once_and_the_process_goes_on(work: str) -> None:
    with interrupted_after(0.5):
        WORK[work]()
    assert planned("all_gather", RING, "auto").verify() == []


def test_an_interrupt_stops_work_on_other_threads() -> None:
    raised: list[BaseException] = []

    def work() -> None:
        try:
            planned("all_gather", "wdm_ring:ranks=60000,wavelengths=64", "relay_tree:pieces=2")
        except KeyboardInterrupt as interrupt:
            raised.append(interrupt)

    thread = threading.Thread(target=work)
    thread.start()
    time.sleep(0.5)
    _core.interrupt_all()
    thread.join(AT_ONCE_S)
    assert len(raised) == 1


def test_a_handler_of_the_user_is_called_while_the_core_works() -> None:
    class StoppedError(Exception):
        pass

    def stop(*_: object) -> None:
        raise StoppedError

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    try:
        with pytest.raises(StoppedError):
            simulate_bursts_on_threads()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize(
    "arguments",
    [
        ["plan", "all_gather", "--fabric", "wdm_ring:ranks=60000,wavelengths=64",
         "--algorithm", "relay_tree:pieces=2"],
        ["simulate", "all_to_all", "--fabric", DRAGONFLY, "--algorithm", "direct",
         "--simulator", "packet"],
        ["traffic", "--simulator", "burst", "--fabric", LADDER, "--bursts", "1e9"],
    ],
)  # fmt: skip
def test_an_interrupted_command_exits_with_130_and_one_line(
    arguments: list[str], tmp_path: Path
) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "opticoll", *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    time.sleep(2.0)
    sent = time.monotonic()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err.splitlines()[-1]) == (130, "", "opticoll: interrupted")
    assert len([line for line in err.splitlines() if "forwards by routers" not in line]) == 1
    assert time.monotonic() - sent < AT_ONCE_S
    assert not list(tmp_path.iterdir())


def test_an_interrupted_comparison_keeps_the_rows_that_were_computed(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measure = plan_row
    rows: list[PlanRow] = []

    def until_the_third(*arguments: object) -> PlanRow:
        if len(rows) == 2:
            raise KeyboardInterrupt
        rows.append(measure(*arguments))  # type: ignore[arg-type]
        return rows[-1]

    monkeypatch.setattr("opticoll.outputs.plan_row.plan_row", until_the_third)
    table, figure = tmp_path / "rows.csv", tmp_path / "rows.svg"
    finished = run(
        "compare", "all_gather", "--fabric", RING, "--algorithms", "ring,optree",
        "--sizes", "1KiB,4KiB", "--csv", table, "--figure", figure,
    )  # fmt: skip
    assert (finished.code, finished.out) == (130, "")
    (line,) = finished.err.splitlines()
    assert "interrupted" in line
    assert "2 rows" in line
    assert [line.split(",")[1] for line in table.read_text().splitlines()[1:]] == ["ring", "ring"]
    assert not figure.exists()
