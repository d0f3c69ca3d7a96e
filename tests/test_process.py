"""The command line as a process of its own: its start, its streams, and the current folder."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from opticoll.cli import progress
from opticoll.formats.atomic import replacing
from support import RING
from test_cli import without_one


def opticoll_process(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "opticoll", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, **options)


def test_help_takes_less_than_half_a_second_of_computing() -> None:
    # CPU seconds, not wall time: other work on the machine must not fail a test.
    assert min(computing_for_help() for _ in range(5)) < 0.5


def computing_for_help() -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert opticoll_process("--help").returncode == 0
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def test_python_loads_the_core_alone() -> None:
    code = (
        "import sys, opticoll; "
        "others = {name for name in sys.modules if name.startswith('opticoll.')}; "
        "light = {'opticoll._core', 'opticoll.errors'}; "
        "others = {name for name in others if not name.startswith('opticoll.interface')}; "
        "heavy = {'numpy', 'cyclopts', 'rich', 'matplotlib'} & set(sys.modules); "
        "print(*(others - light), *heavy)"
    )
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert finished.stdout.strip() == ""


def test_help_loads_no_command() -> None:
    code = (
        "import sys; from opticoll.cli.main import main; main(['--help']); "
        "heavy = {'numpy', 'matplotlib'} & set(sys.modules); "
        "ours = {name for name in sys.modules if name.startswith('opticoll.commands.')}; "
        "print(*heavy, *ours, file=sys.stderr)"
    )
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert finished.stderr.strip() == ""


def test_start_loads_no_heavy_module() -> None:
    code = (
        "import sys; from opticoll.cli.main import main; main(['list']); "
        "heavy = {'numpy', 'matplotlib', 'ruamel', 'zstandard'}; "
        "print(*heavy & set(sys.modules), file=sys.stderr)"
    )
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert finished.stderr.strip() == ""


def test_an_interrupt_while_modules_are_loaded_is_one_line() -> None:
    code = (
        "import sys\n"
        "class Interrupted:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'cyclopts': raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupted())\n"
        "from opticoll.__main__ import run; sys.exit(run())"
    )
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (finished.returncode, finished.stderr) == (130, "opticoll: interrupted\n")


@pytest.mark.parametrize("arguments", [["list", "--json"], ["--help"], ["plan", "--help"]])
def test_lost_output_is_no_success(arguments: list[str]) -> None:
    # The exit code of a process that SIGPIPE ends is 128 + 13.
    assert without_reader(arguments) == (141, "")


def test_a_violated_plan_is_one_whether_or_not_anybody_reads_it(plan_file: Path) -> None:
    assert without_reader(["verify", str(without_one(plan_file))]) == (1, "")


@pytest.mark.parametrize("arguments", [["list"], ["compare", "all_gather", "--fabric", RING]])
def test_closed_standard_output_is_refused_in_one_line(arguments: list[str]) -> None:
    command = f'exec "$0" -m opticoll {" ".join(arguments)} >&-'
    process = subprocess.run(
        ["sh", "-c", command, sys.executable], stderr=subprocess.PIPE, text=True, timeout=60
    )
    assert process.returncode == 2
    (line,) = process.stderr.splitlines()
    assert line == "opticoll: error: cannot print the result: standard output is closed"


def without_reader(arguments: list[str]) -> tuple[int, str]:
    """Returns exit code and standard error of a command whose output nobody reads."""
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "opticoll", *arguments]
    process = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, timeout=60)
    os.close(writer)
    return process.returncode, process.stderr


FIGURE = ("show", "all_gather", "--fabric", RING, "--figure")

ENVIRONMENTS: dict[str, tuple[dict[str, str], tuple[str, ...]]] = {
    "a backend that is none": ({"MPLBACKEND": "bogus"}, (*FIGURE, "f.svg")),
    "a date that is none, svg": ({"SOURCE_DATE_EPOCH": "abc"}, (*FIGURE, "f.svg")),
    "a date that is none, pdf": ({"SOURCE_DATE_EPOCH": "abc"}, (*FIGURE, "f.pdf")),
    "a date beyond all": ({"SOURCE_DATE_EPOCH": "9" * 30}, (*FIGURE, "f.pdf")),
    "seven bits": ({"PYTHONIOENCODING": "ascii"}, ("list",)),
    "seven bits of help": ({"PYTHONIOENCODING": "ascii"}, ("simulate", "--help")),
    "seven bits of JSON": ({"PYTHONIOENCODING": "ascii"}, ("list", "--json")),
}


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_no_variable_of_the_environment_stops_a_command(tmp_path: Path, name: str) -> None:
    variables, arguments = ENVIRONMENTS[name]
    finished = opticoll_process(*arguments, cwd=tmp_path, env={**os.environ, **variables})
    assert (finished.returncode, finished.stdout.isascii() or "show" in arguments) == (0, True)
    if "--json" in arguments:
        assert json.loads(finished.stdout)


@pytest.mark.parametrize("closed", ["2>&-", "0<&- 2>&-"])
def test_closed_standard_error_changes_neither_result_nor_code(tmp_path: Path, closed: str) -> None:
    arguments = ("plan", "all_gather", "--fabric", RING)
    for more in ((), ("--output", "out.plan"), ("--size", "4M"), ("--algorithm", "no:such")):
        heard = opticoll_process(*arguments, *more, cwd=tmp_path)
        command = f'"$@" {closed}'
        words = [sys.executable, "-m", "opticoll", *arguments, *more]
        unheard = subprocess.run(
            ["sh", "-c", command, "sh", *words], capture_output=True, text=True, cwd=tmp_path
        )
        assert (unheard.returncode, unheard.stdout) == (heard.returncode, heard.stdout), more


HALF_WRITTEN = """
import os, signal, sys
from opticoll.formats.atomic import replacing
with replacing(sys.argv[1]) as temporary:
    temporary.write_text("half")
    print("writing", flush=True)
    if sys.argv[2] == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    sys.stdin.read()
"""


def test_what_a_killed_process_left_is_removed_by_the_next_that_writes_there(
    tmp_path: Path,
) -> None:
    command = [sys.executable, "-c", HALF_WRITTEN]
    subprocess.run([*command, str(tmp_path / "a.svg"), "killed"], capture_output=True)
    (left,) = tmp_path.iterdir()
    pipe = subprocess.PIPE
    beside = [*command, str(tmp_path / "b.svg"), "waits"]
    with subprocess.Popen(beside, stdin=pipe, stdout=pipe, text=True) as writer:
        assert writer.stdout is not None
        assert writer.stdin is not None
        assert writer.stdout.readline() == "writing\n"
        assert not left.exists()
        own = [".opticoll-mine", ".opticoll-writing-note"]
        (tmp_path / own[0]).mkdir()
        os.mkfifo(tmp_path / own[1])
        with replacing(tmp_path / "c.svg") as temporary:
            temporary.write_text("whole")
        # A file that somebody still writes is left alone.
        assert len(list(tmp_path.iterdir())) == 4
        writer.stdin.close()
    assert sorted(one.name for one in tmp_path.iterdir()) == [*own, "b.svg", "c.svg"]


def test_own_algorithm_of_the_current_folder_runs(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "import numpy as np\n"
        "import opticoll\n"
        "def shift(collective, fabric, back=False):\n"
        "    schedule = opticoll.Schedule(collective)\n"
        "    ranks = np.arange(fabric.ranks)\n"
        "    way = -1 if back else 1\n"
        "    for step in range(fabric.ranks - 1):\n"
        "        chunk = (ranks - way * step) % fabric.ranks\n"
        "        schedule.step(chunk, ranks, (ranks + way) % fabric.ranks)\n"
        "    schedule.claim(neighbours_only=True)\n"
        "    print('on my way')\n"
        "    return schedule\n"
    )
    arguments = ("--fabric", RING, "--algorithm", "mine:shift,back=true", "--json")
    finished = opticoll_process("plan", "all_gather", *arguments, cwd=tmp_path)
    assert (finished.returncode, finished.stderr) == (0, "on my way\n")
    row = json.loads(finished.stdout)
    assert (row["algorithm"], row["steps"], row["verified"]) == ("mine:shift,back=true", 15, True)


@pytest.mark.parametrize("arguments", [["list"], ["--help"], ["--version"]])
def test_full_standard_output_is_refused_in_one_line(arguments: list[str]) -> None:
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "opticoll", *arguments]
        process = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert process.returncode == 2
    (line,) = process.stderr.splitlines()
    assert line.startswith("opticoll: error: ")
    assert "cannot print the result: No space left" in line


def test_what_a_library_in_c_prints_does_not_reach_standard_output(tmp_path: Path) -> None:
    printing = 'import ctypes\nctypes.CDLL(None).puts(b"Running HiGHS")\nraise ImportError\n'
    (tmp_path / "highspy.py").write_text(printing, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    fabric = "custom:ranks=5,links=0-1+1-2+2-3+3-4+0-2@50Gb/s+1-4@70Gb/s"
    done = opticoll_process("bound", "all_to_all", "--fabric", fabric, "--json", env=environment)
    assert json.loads(done.stdout)["fabric"].startswith(fabric)
    assert "Running HiGHS" in done.stderr


def test_without_a_terminal_a_line_says_every_few_seconds_what_is_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = tempfile.NamedTemporaryFile("w+")  # noqa: SIM115
    monkeypatch.setattr(progress, "LINE_S", 0.001)
    monkeypatch.setattr(sys, "stderr", log)

    def written(count: int) -> list[str]:
        while True:
            lines = Path(log.name).read_text().splitlines()
            if len(lines) >= count:
                return lines

    with progress.Waiting("planning") as shown:
        assert written(1)[0].startswith("opticoll: planning; ")
        shown.update("ring\x1b on 8 ranks", 3, 20)
        known = len(written(0))
        assert written(known + 2)[-1].startswith("opticoll: ring\\u001b on 8 ranks, 3 of 20; ")
    lines = written(0)
    # All output from here on follows the answer.
    shown.update("nothing more", 0, 0)
    assert written(0) == lines
    log.close()
