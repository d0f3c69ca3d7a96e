"""`opticoll run`: schedules carried out with real bytes, in one process and by MPI processes."""

from __future__ import annotations

import itertools
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import defaultdict, deque
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import opticoll
from opticoll import Program, errors
from opticoll.execution import in_process, mpi
from opticoll.execution.elements import OPERATORS, TYPES
from opticoll.execution.interpreter import Interpreter, buffers
from opticoll.execution.mpi_rank import lives
from opticoll.execution.payload import Payload, differing, payload_of
from opticoll.names import has_root
from support import Run, some_of

DATA = Path(__file__).parent / "data/programs"
KINDS = [one["name"] for one in opticoll.records("collectives") if one["name"] != "barrier"]


def program(
    kind: str, fabric: str, algorithm: str = "auto", root: int = 0, size: str = "4KiB"
) -> Program:
    plan = opticoll.plan(kind, fabric, algorithm, root=root, size=size)
    assert plan.verify() == []
    return Program.from_plan(plan)


def job(one: Program, size: int = 4096, element_type: str = "int32") -> mpi.Job:
    payload = payload_of(one.collective, size, element_type, "sum")
    return mpi.Job(one, payload, in_place=one.in_place)


@pytest.mark.parametrize("element_type", TYPES)
@pytest.mark.parametrize("operator", OPERATORS)
def test_all_types_and_operators_give_the_bytes_of_the_definition(
    element_type: str, operator: str
) -> None:
    one = program("all_reduce", "wdm_ring:ranks=6,wavelengths=2")
    payload = payload_of(one.collective, "1KiB", element_type, operator)
    for in_place in (False, True):
        assert in_process.carry_out(one, payload, in_place=in_place).wrong == 0


@pytest.mark.parametrize("element_type", ["float16", "bfloat16"])
def test_16_bit_numbers_are_rounded_as_ieee_754_demands(element_type: str) -> None:
    """By exact fractions: no other 16-bit number is closer, and ties have an even last bit."""
    kind = TYPES[element_type]
    largest = 0x7C00 if element_type == "float16" else 0x7F80  # infinity
    numbers = kind.numbers(np.arange(largest, dtype=np.uint16).view(kind.dtype))
    assert (np.diff(numbers) > 0).all()
    assert (kind.of(numbers).view(np.uint16) == np.arange(largest)).all()
    middles = (numbers[1:] + numbers[:-1]) / 2  # exact as float64, and as float32
    even = np.arange(1, largest) // 2 * 2
    assert (kind.of(middles).view(np.uint16) == even).all()
    # The numbers of type float32 beside each middle.
    for towards, shift in ((np.inf, 1), (-np.inf, 0)):
        beside = np.nextafter(middles.astype(np.float32), np.float32(towards))[1:]
        assert (kind.of(beside).view(np.uint16) == np.arange(1, largest - 1) + shift).all()


@pytest.mark.parametrize("element_type", TYPES)
@pytest.mark.parametrize("ranks", [2, 7, 100, 300])
def test_sums_of_a_payload_are_exact_and_averages_are_rounded_once(
    element_type: str, ranks: int
) -> None:
    payload = payload_of(opticoll.Collective("all_reduce", ranks), 4096, element_type, "avg")
    kind = TYPES[element_type]
    inputs = [kind.numbers(payload.input(rank)) for rank in range(ranks)]
    sums = [sum(map(int, column)) for column in zip(*inputs, strict=True)]
    assert max(sums) <= 2**kind.exact_bits
    assert all(column.any() for column in inputs)
    wanted = kind.numbers(payload.output(0))
    if not kind.floating:
        assert [int(value) for value in wanted] == [total // ranks for total in sums]
        return
    for value, total in zip(wanted.tolist(), sums, strict=True):
        error = abs(Fraction(value) - Fraction(total, ranks))
        assert error <= Fraction(total, ranks) / 2**kind.exact_bits


def test_parts_of_a_payload_are_the_payload(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in KINDS:
        one = program(kind, "torus:dims=2x3", root=1 if has_root(kind) else 0)
        payload = Payload(one.collective, 8, "int64", "sum")
        assert len(list(payload.parts())) == 1
        inputs, outputs = (
            [of(rank) for rank in range(6)] for of in (payload.input, payload.output)
        )
        with monkeypatch.context() as patch:
            patch.setattr("opticoll.execution.payload.PART_BYTES", 1)
            patch.setattr("opticoll.execution.payload.LEAST_ELEMENTS", 3)
            assert len(list(payload.parts())) == 3
            for rank in range(6):
                for part in payload.parts():
                    assert (part.of(inputs[rank]).ravel() == part.input(rank)).all()
                    assert differing(part.of(outputs[rank]).ravel(), part.output(rank)) == 0
            assert (Payload(one.collective, 8, "int64", "sum").input(2) == inputs[2]).all()
            assert in_process.carry_out(one, payload, in_place=one.in_place).wrong == 0


@pytest.mark.parametrize("kind", KINDS)
def test_the_interpreter_gives_the_bytes_of_the_compiled_core(kind: str) -> None:
    one = program(kind, "wdm_ring:ranks=5,wavelengths=2", root=1 if has_root(kind) else 0)
    payload = Payload(one.collective, 3, "int8", "sum")
    inputs = [payload.input(rank).tobytes() for rank in range(5)]
    outputs = one.run(inputs, elements=3, element_type="int8", in_place=one.in_place)
    assert outputs == [payload.output(rank).tobytes() for rank in range(5)]
    assert in_process.carry_out(one, payload, in_place=one.in_place).wrong == 0


def test_a_chunk_outside_of_its_buffer_is_named() -> None:
    one = program("all_gather", "crossbar:ranks=2")
    blocks = [(1, -1, 0, [("s", 0, 5, 0, 5, 1, -1, -1)])]
    payload = job(one).payload
    memory = buffers(payload, 0, 0, in_place=False)
    with pytest.raises(errors.ProgramError, match="thread block 0, step 0 is outside of its"):
        Interpreter(blocks, payload, memory, in_process._Messages(0, defaultdict(deque))).advance()


def test_a_thousand_ranks_need_one_process() -> None:
    one = program("all_reduce", "crossbar:ranks=1024", "recursive_doubling")
    payload = payload_of(one.collective, 4096, "float32", "sum")
    assert in_process.carry_out(one, payload, in_place=True).wrong == 0


def test_payloads_differ_by_rank_and_by_element() -> None:
    payload = payload_of(opticoll.Collective("all_gather", 8), 64, "uint64", "sum")
    values = np.concatenate([payload.input(rank) for rank in range(8)])
    assert len(set(values.tolist())) == len(values) == 64


def test_a_wrong_program_is_not_carried_out(run: Run, tmp_path: Path) -> None:
    text = (DATA / "ring_all_reduce.xml").read_text()
    path = tmp_path / "wrong.xml"
    path.write_text(text.replace('type="rrcs"', 'type="rcs"', 1))
    finished = run("run", path)
    assert finished.code == 1
    assert "verified in place: NO" in finished.out


def test_a_message_that_never_comes_ends_a_run_in_one_process() -> None:
    text = (
        (DATA / "ring_all_reduce.xml").read_text().replace('send="1" recv="3"', 'send="2" recv="3"')
    )
    one = Program.from_msccl(text)
    with pytest.raises(
        opticoll.errors.ProgramError, match=r"rank \d: thread block 0, step \d waits for a message"
    ):
        in_process.carry_out(one, job(one).payload, in_place=True)


def test_the_command_prints_a_table_and_rows(run: Run) -> None:
    finished = run("run", "all_gather", "--ranks", 4, "--size", "1KiB,4KiB")
    assert finished.code == 0
    assert "every byte equals the definition" in finished.out
    assert "say nothing of a fabric" in finished.out
    rows = json.loads(run("run", "all_gather", "--ranks", 4, "--size", "1KiB", "--json").out)
    assert [(row["mode"], row["size_bytes"], row["wrong"]) for row in rows] == [
        ("out of place", 1024, 0),
        ("in place", 1024, 0),
    ]


mpi4py = pytest.mark.skipif(
    not (Path(sys.executable).with_name("mpiexec").exists()), reason="needs the extra mpi"
)


@mpi4py
@pytest.mark.parametrize(
    "fabric",
    ["wdm_ring:ranks=4,wavelengths=2", "torus:dims=2x3", "lightpath_grid:ranks=5,ports=2"],
)
def test_mpi_processes_give_the_bytes_of_the_definition_and_of_the_library(fabric: str) -> None:
    jobs = []
    for kind in KINDS:
        root = 1 if has_root(kind) else 0
        one = Program.from_msccl(program(kind, fabric, root=root, size="64B").to_msccl())
        payload = payload_of(one.collective, 4096, "float32", "sum")
        modes = (False, True) if one.in_place else (False,)
        jobs += [mpi.Job(one, payload, mode) for mode in modes]
    ended = mpi.carry_out(jobs, 60.0)
    assert [(one.wrong, one.differing) for one in ended] == [(0, 0)] * len(jobs)


@mpi4py
@pytest.mark.parametrize("element_type", TYPES)
def test_mpi_processes_compute_all_types_and_operators(element_type: str) -> None:
    """The MPI library has no 16-bit numbers and no average."""
    jobs = []
    for kind in ("all_reduce", "reduce_scatter", "reduce", "all_gather"):
        one = program(kind, "crossbar:ranks=3")
        for operator in OPERATORS:
            payload = payload_of(one.collective, 600, element_type, operator)
            jobs.append(mpi.Job(one, payload, one.in_place))
    ended = mpi.carry_out(jobs, 60.0)
    assert [(one.wrong, one.differing) for one in ended] == [(0, 0)] * len(jobs)


@mpi4py
def test_words_of_mpi_args_reach_mpiexec(run: Run) -> None:
    words = ("run", "all_gather", "--ranks", 2, "--size", "1KiB", "--on", "mpi", "--mpi-args")
    assert run(*words, "-genv OPTICOLL_WORD 'two words'").code == 0
    refused = run(*words, "-no-such-option")
    assert refused.code == 1
    assert "no-such-option" in refused.err


@mpi4py
def test_a_message_that_never_comes_ends_all_processes_with_rank_and_step() -> None:
    text = (DATA / "ring_all_reduce.xml").read_text()
    lines = text.splitlines()
    gone = max(at for at, line in enumerate(lines) if 'type="rcs"' in line)
    lines[gone] = lines[gone].replace('"rcs"', '"r"')
    one = Program.from_msccl("\n".join(lines))
    start = time.monotonic()
    with pytest.raises(
        errors.RunError, match=r"rank \d: thread block 0, step \d+ waits for a message"
    ):
        mpi.carry_out([job(one)], 2.0)
    assert time.monotonic() - start < 60


def gone(processes: list[int]) -> bool:
    """Returns whether all processes have ended; waits up to 10 s."""
    deadline = time.monotonic() + 10
    while any(map(lives, processes)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not any(map(lives, processes))


@mpi4py
@pytest.mark.parametrize(
    ("rank", "number", "says"),
    [
        *(
            (rank, signal.SIGKILL, rf"^rank {rank} died at thread block \d, step \d")
            for rank in some_of(range(4), 3)
        ),
        (1, signal.SIGTERM, r"^rank 1 died at thread block \d, step \d"),
        (
            2,
            signal.SIGSTOP,
            r"^rank [013]: thread block 0, step \d waits for .*rank \d .*on channel 0$"
            r"|^rank 2 does not answer; it was last seen at thread block 0, step \d",
        ),
    ],
)
def test_a_rank_that_dies_or_hangs_ends_all_processes_with_rank_and_step(
    rank: int, number: signal.Signals, says: str
) -> None:
    one = program("all_gather", "crossbar:ranks=4", "ring")
    started: list[int] = []

    def kill(progress: np.ndarray) -> None:
        if not started and progress[:, 1].min() > 20:
            started.extend(progress[:, 0].tolist())
            os.kill(started[rank], number)

    many = mpi.Job(one, job(one, 2**20).payload, in_place=True, repetitions=10_000)
    start = time.monotonic()
    with pytest.raises(errors.RunError, match=says):
        mpi.carry_out([many], 3.0, watch=kill)
    assert time.monotonic() - start < 60
    assert len(started) == 4
    assert gone(started)


def processes_of(starter: int, module: str) -> dict[int, list[int]]:
    """Returns the processes of a run by rank: the watching process, then the rank."""
    found: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
            environment = (folder / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        variables = dict(word.split(b"=", 1) for word in environment if b"=" in word)
        mine = f"{starter}".encode() == variables.get(b"OPTICOLL_TEST")
        if mine and module.encode() in words and b"PMI_RANK" in variables:
            found.setdefault(int(variables[b"PMI_RANK"]), []).append(int(folder.name))
    return {rank: sorted(processes) for rank, processes in found.items()}


def all_of(starter: int, module: str, ranks: int) -> dict[int, list[int]]:
    """Returns the processes of a run by rank, once all of them have begun."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        found = processes_of(starter, module)
        if len(found) == ranks and all(len(processes) == 2 for processes in found.values()):
            break
        time.sleep(0.05)
    time.sleep(2)
    return found


@mpi4py
@pytest.mark.parametrize("victim", ["a rank", "the command", "the command, at once"])
def test_whoever_dies_no_process_is_left(victim: str) -> None:
    """The command ends with code 1; ranks end with the command."""
    words = ["all_gather", "--ranks", "4", "--size", "1MiB", "--repetitions", "100000"]
    command = subprocess.Popen(
        [sys.executable, "-m", "opticoll", "run", *words, "--on", "mpi"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"OPTICOLL_TEST": str(os.getpid())},
    )
    ranks = all_of(os.getpid(), "opticoll.execution.mpi_rank", 4)
    if victim == "a rank":
        os.kill(ranks[3][-1], signal.SIGKILL)
        out, err = command.communicate(timeout=60)
        assert (command.returncode, out) == (1, "")
        assert err.startswith("opticoll: error: rank 3 died at thread block ")
    else:
        os.kill(command.pid, signal.SIGKILL if "at once" in victim else signal.SIGTERM)
        command.communicate(timeout=60)
    assert gone([*itertools.chain(*ranks.values())])


@mpi4py
def test_processes_that_a_user_starts_are_used() -> None:
    mpiexec = Path(sys.executable).with_name("mpiexec")
    command = [str(mpiexec), "-n", "4", sys.executable, "-m", "opticoll", "run"]
    options = ["all_gather", "--ranks", "4", "--size", "1KiB", "--on", "mpi"]
    finished = subprocess.run([*command, *options], capture_output=True, text=True, timeout=120)
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout.count("every byte equals the definition and the MPI library's own") == 1


@mpi4py
@pytest.mark.parametrize(
    ("number", "says"),
    [
        (signal.SIGKILL, r"^opticoll: error: rank 2 died at thread block \d, step \d"),
        (
            signal.SIGSTOP,
            r"^opticoll: error: rank [013]: thread block \d, step \d waits for .*rank \d"
            r"|^opticoll: error: no answer from .*rank 2.*; rank [013] waits at thread block \d",
        ),
    ],
    ids=["dies", "hangs"],
)
def test_a_rank_that_dies_or_hangs_ends_processes_that_a_user_started(
    number: signal.Signals, says: str
) -> None:
    mpiexec = Path(sys.executable).with_name("mpiexec")
    words = ["all_gather", "--ranks", "4", "--size", "1MiB", "--repetitions", "100000"]
    words += ["--on", "mpi", "--time-limit", "3s"]
    command = subprocess.Popen(
        [str(mpiexec), "-n", "4", sys.executable, "-m", "opticoll", "run", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"OPTICOLL_TEST": str(os.getpid())},
    )
    ranks = all_of(os.getpid(), "run", 4)
    os.kill(ranks[2][-1], number)
    _, err = command.communicate(timeout=60)
    # The launcher adds the signals by which it ends other ranks.
    assert command.returncode != 0
    assert "internal error" not in err
    assert re.search(says, err, re.MULTILINE), err
    assert gone([*itertools.chain(*ranks.values())])
