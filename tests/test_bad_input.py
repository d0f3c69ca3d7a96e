"""Bad input: one line that says what is wrong, exit code 2, nothing printed, nothing written."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
import zstandard

import opticoll
from opticoll import errors
from opticoll.formats import content
from refused_commands import CONGESTION, REFUSED
from support import RING, Run


def check(run: Run, folder: Path, arguments: list[str], *words: str) -> None:
    """Checks that a command is refused with these words, and that the folder is as before."""
    before = sorted(folder.iterdir())
    finished = run(*arguments)
    assert finished.code == 2
    assert finished.out == ""
    first, *hints = finished.err.splitlines()
    assert first.startswith("opticoll: error: ")
    assert all(hint.startswith("hint: ") for hint in hints)
    assert len(hints) <= 1
    for word in words:
        told = word.removeprefix("hint: ")
        assert told in (first if told == word else hints[0])
    assert "Traceback" not in finished.err
    assert sorted(folder.iterdir()) == before


PLAN = ["plan", "all_gather"]
ON_RING = [*PLAN, "--fabric", RING]


def cases(text: str) -> list[list[str]]:
    """Returns each command with the words of its error, which may continue on the next lines."""
    lines = text.replace("\n    ", " ").splitlines()
    return [line.split(" => ") for line in lines if " => " in line]


@pytest.mark.parametrize(("command", "words"), cases(REFUSED))
def test_bad_input_is_refused_in_one_line(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    check(run, tmp_path, shlex.split(command), *words.split(" | "))


# The answer is printed before the file turns out to be impossible.
UNWRITTEN = """
export all_gather --fabric crossbar:ranks=1 --output plan.csv => no transfers
show all_gather --algorithm bruck --figure x.svg --fabric crossbar:ranks=8192
    => too many for one picture
show all_to_all --algorithm direct --figure x.svg --fabric crossbar:ranks=128 --view space_time
    => draw the fabric instead
simulate all_gather --fabric crossbar:ranks=1 --figure x.svg => no link carried anything
"""


@pytest.mark.parametrize(("command", "why"), cases(UNWRITTEN))
def test_what_no_file_can_show_is_refused_after_the_answer(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, why: str
) -> None:
    monkeypatch.chdir(tmp_path)
    finished = run(*command.split())
    assert finished.code == 2
    assert why in finished.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (f"{CONGESTION} --seed", ["--seed", "too large"]),
        (f"compare all_gather --fabric {RING} --ranks", ["--ranks"]),
    ],
)
def test_numbers_of_thousands_of_digits_are_refused(
    run: Run, tmp_path: Path, command: str, words: list[str]
) -> None:
    check(run, tmp_path, [*command.split(), "9" * 5000], *words)


HEAD = "collective: all_gather; fabric: optree_paper"
CUSTOM = "family: custom; ranks: [a, b]; links:;   - [a, b]"

# The lines of a file, and words of the error beside its name.
FABRIC_FILES = f"""
- 1; - 2 => fields
ranks: 4 => `family: wdm_ring`
family: wdm_ring; preset: terarack => twice
family: wdm_rin => line 1 | family | did you mean `wdm_ring`?
family: wdm_ring; ranks: 4; wavelenghts: 2 => line 3 | wavelenghts | did you mean `wavelengths`?
family: wdm_ring; ; # a comment; ranks: 4; wavelengths: 2.5 => line 5 | wavelengths | whole number
family: wdm_ring; ranks: [4]; wavelengths: 2 => line 2 | ranks | one value
family: wdm_ring; ranks: 4 => needs wavelengths=
family: wdm_ring; ranks: 4; ranks: 5 => line 3 | ranks
family: [wdm_ring; ranks: 4 => line 2 | not valid YAML
family: wdm_ring; 	ranks: 4 => line 2
{CUSTOM};   - [a, c] => line 5 | links.1 | no rank or switch `c`
family: custom; ranks: [a, b]; switches: [leaf]; links:;   - [a, b];   - [a, lef]
    => did you mean `leaf`?
{CUSTOM};   - {{between: [a, b], rate: -5Gb/s}} => line 5 | links.1 | -5Gb/s | is not a rate
{CUSTOM};   - {{between: [a, b], rate: 5}} => line 5 | give the unit
family: custom; ranks: [a, b, c]; links:;   - [a, b] => no links lead from a to c
family: custom; ranks: [a, b, a]; links:;   - [a, b] => line 2 | two ranks or switches `a`
{CUSTOM};   - [b, b] => line 5 | `b` to itself
family: custom; ranks: [a, b]; routers: 3; links:;   - [a, b] => line 3 | routers | no such field
{CUSTOM};   - {{between: [a, b], rat: 1}} => did you mean `rate`?
{CUSTOM};   - [a, b, a] => line 5 | write a link as
family: custom; links: [] => `ranks` is missing
family: custom; ranks: many => line 2 | list of names
family: custom; graph: g.graphml; links: [] => line 2 | graph | there is no file `g.graphml`
family: custom; ranks: [a, b]; rate: '1Gb/s,ties=first'; links:;   - [a, b] => line 3 | not a value
"""

SCENARIOS = f"""
fabric: optree_paper => `collective` is missing
collective: all_gather => `fabric` is missing
fabric: optree_paper; collective: all_gater => line 2 | collective | did you mean `all_gather`?
{HEAD}; algoritms: [ring] => line 3 | did you mean `algorithms`?
collective: all_gather; fabric: 5 => line 2 | fabric
collective: all_gather; fabric: optre_paper => line 2 | fabric | did you mean `optree_paper`?
collective: all_gather; fabric:;   family: wdm_ring;   ranks: 0;   wavelengths: 2
    => line 4 | fabric.ranks | must be
{HEAD}; sizes: [1KiB, 4M] => line 3 | sizes | 4MB or 4MiB
{HEAD}; sizes: 4096 => line 3 | sizes | unit
{HEAD}; sizes: [] => at least one
{HEAD}; ranks: [512, 2.5] => line 3 | ranks | `2.5`
{HEAD}; ranks: many => line 3 | ranks | `many`
{HEAD}; wavelengths: true => line 3 | wavelengths
{HEAD}; policy: never => line 3 | policy | `never`
{HEAD}; simulator: circut => line 3 | did you mean `circuit`?
{HEAD}; root: first => line 3 | root
{HEAD}; algorithms: [7] => line 3 | algorithms.0 | `7` is not text
{HEAD}; algorithms:;   - ring;   - optre => line 5 | algorithms.1 | did you mean `optree`?
{HEAD}; algorithms: [ring,;   optree:k=99] => line 4 | algorithms.1 | k=99
{HEAD}; algorithms:;   - no_such_module:f => line 4 | no_such_module
{HEAD}; algorithms: [] => line 3 | algorithms | at least one
{HEAD}; sizes: => line 3 | sizes | at least one
{HEAD}; ranks: [] => line 3 | ranks | at least one
{HEAD}; algorithms: ring; wavelength: first => line 4 | wavelength | first_fit
collective: broadcast; fabric: optree_paper:ranks=8; root: 99 => line 3 | root 99 is not a rank
collective: broadcast; fabric: optree_paper; root: 1.5 => line 3 | root | `1.5` is not a whole
{HEAD}; root: 0 => line 3 | has no root
{HEAD}; ranks: [8, 99999999999]; algorithms: ring => line 3 | ranks.1 | 99999999999
{HEAD}; simulator: fluid; algorithms: bruck => line 3 | simulator | use circuit
{HEAD}; policy: [free] => line 3 | policy | not text
"""

FILES = [
    *(("plan all_gather --fabric", *case) for case in cases(FABRIC_FILES)),
    *(("compare", *case) for case in cases(SCENARIOS)),
    ("plan all_gather --fabric", "", "fields"),
]


@pytest.mark.parametrize(("command", "lines", "words"), FILES)
def test_a_bad_file_is_refused_with_its_line(
    run: Run, tmp_path: Path, command: str, lines: str, words: str
) -> None:
    path = tmp_path / "f.yaml"
    path.write_text(lines.replace("; ", "\n") + "\n" * bool(lines))
    check(run, tmp_path, [*command.split(), str(path)], "f.yaml", *words.split(" | "))


def test_an_option_at_fault_is_not_blamed_on_the_scenario(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(f"{HEAD}; algorithms: ring\n".replace("; ", "\n"))
    finished = run("compare", path, "--algorithms", "optre")
    assert finished.code == 2
    assert "did you mean `optree`?" in finished.err
    assert "s.yaml" not in finished.err


def test_a_rank_that_a_table_of_sends_does_not_have_is_named_with_its_line(
    run: Run, tmp_path: Path
) -> None:
    path = tmp_path / "sends.csv"
    heading = "# all_gather ranks=4\nstep,source,destination,chunk\n"
    path.write_text(f"{heading}0,0,1,0\n0,1,4,1\n")
    finished = run("verify", path)
    assert finished.code == 2
    assert "sends.csv`, line 4: destination 4: ranks are 0 to 3" in finished.err


def test_too_many_chunks_are_counted_in_the_error(run: Run) -> None:
    finished = run("plan", "all_to_all", "--fabric", "wdm_ring:ranks=1000000,wavelengths=64")
    assert finished.code == 2
    chunks = 1_000_000**2
    assert f"would have {chunks} chunks: the maximum is {2**32 - 1}" in finished.err
    assert "hint: try fewer ranks, or fewer pieces of a block" in finished.err


def test_chunks_are_numbered_with_32_bits() -> None:
    ranks = 2**16
    assert opticoll.Collective("all_to_all", ranks - 1).chunks == (ranks - 1) ** 2
    with pytest.raises(errors.CollectiveError, match=f"would have {ranks**2} chunks"):
        opticoll.Collective("all_to_all", ranks)
    with pytest.raises(errors.CollectiveError, match="1 piece or more, not 0"):
        opticoll.Collective("all_gather", 4, pieces=0)


def test_too_few_transfers_are_hinted_at_and_the_hint_helps(run: Run) -> None:
    least = opticoll.Fabric(RING).ranks - 1
    on_ring = ["plan", "broadcast", "--fabric", RING, "--algorithm"]
    finished = run(*on_ring, f"auto:transfers={least - 1}")
    assert finished.code == 2
    assert f"every plan has more than {least - 1} transfers" in finished.err
    assert "hint: allow more by --algorithm auto:transfers=N, or try fewer ranks" in finished.err
    assert run(*on_ring, f"auto:transfers={100 * least}").code == 0


def test_folder_for_figures_that_is_a_file_is_refused_before_work(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "keep.svg"
    path.write_text("precious")
    check(run, tmp_path, ["reproduce", "wrht", "--quick", "--output", str(path)], "keep.svg")
    assert path.read_text() == "precious"


def test_every_flipped_bit_of_a_compressed_plan_is_noticed_or_harmless(tmp_path: Path) -> None:
    path = tmp_path / "a.plan.zst"
    plan = opticoll.plan("all_gather", RING)
    opticoll.write_plan(plan, path)
    content = path.read_bytes()
    noticed = 0
    for bit in range(8 * len(content)):
        damaged = bytearray(content)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        try:
            read = opticoll.read_plan(path)
        except (opticoll.errors.FileError, opticoll.errors.PlanFileError):
            noticed += 1
        else:
            assert read.to_text() == plan.to_text()
    assert noticed > 7 * len(content)


@pytest.mark.parametrize("tail", [b"x", b"x" * 9000, b"\x28\xb5\x2f\xfd"])
def test_bytes_after_a_compressed_plan_are_refused(run: Run, tmp_path: Path, tail: bytes) -> None:
    path = tmp_path / "a.plan.zst"
    opticoll.write_plan(opticoll.plan("all_gather", RING), path)
    path.write_bytes(path.read_bytes() + tail)
    check(run, tmp_path, ["verify", str(path)], "a.plan.zst", "bytes follow")


def test_compressed_plan_beyond_the_limit_is_refused(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "bomb.plan.zst"
    path.write_bytes(zstandard.ZstdCompressor().compress(bytes(10**7)))
    monkeypatch.setattr(content, "MAX_BYTES", 10**6)
    check(run, tmp_path, ["verify", str(path)], "bomb.plan.zst", "too large")


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.999])
@pytest.mark.parametrize("suffix", [".plan", ".plan.zst"])
def test_plan_file_cut_short_is_refused(
    run: Run, tmp_path: Path, share: float, suffix: str
) -> None:
    path = tmp_path / f"cut{suffix}"
    opticoll.write_plan(opticoll.plan("all_gather", RING), path)
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])
    check(run, tmp_path, ["verify", str(path)], path.name)


@pytest.mark.parametrize(
    ("fabric", "words"),
    [
        ("wdm_ring:ranks=8,wavelengths=2", ["8 ranks", "16"]),
        ("crossbar:ranks=16", ["does not fit crossbar", "wavelengths=2", "line"]),
    ],
)
def test_a_fabric_that_a_plan_does_not_fit_is_refused(
    run: Run, plan_file: Path, fabric: str, words: list[str]
) -> None:
    check(run, plan_file.parent, ["verify", str(plan_file), "--fabric", fabric], *words)


@pytest.mark.parametrize(
    "option", [("--algorithm", "ring"), ("--wavelength", "auto"), ("--root", "0")]
)
def test_plan_file_takes_no_option_that_it_holds(
    run: Run, plan_file: Path, option: tuple[str, str]
) -> None:
    check(run, plan_file.parent, ["simulate", str(plan_file), *option], option[0])


def test_folder_is_no_plan_file(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "folder.plan"
    folder.mkdir()
    check(run, tmp_path, ["verify", str(folder)], "folder.plan")


STEP = "import opticoll\ndef f(c, m):\n    s = opticoll.Schedule(c)\n    s.step({})\n    return s\n"
OTHER = "import opticoll as o\ndef f(c, m): return o.Schedule(o.Collective('all_reduce', 16))\n"
SUNDAYS = (
    "from opticoll import errors\ndef f(c, m): raise errors.AlgorithmError('only on Sundays')\n"
)
USER_CODE: dict[str, tuple[str, str, str]] = {
    "syntax error": ("def f(:\n", "f", "importing `broken` | SyntaxError"),
    "raises on import": ("raise OSError('no licence')\n", "f", "OSError | no licence"),
    "no such function": ("x = 1\n", "f", "`broken` has no `f`"),
    "not callable": ("f = 7\n", "f", "not a function | `int`"),
    "returns nothing": ("def f(c, m): pass\n", "f", "`NoneType` | opticoll.Schedule"),
    "raises": ("def f(c, m):\n    1 // 0\n", "f", "ZeroDivisionError | broken.py, line 2"),
    "exits": ("def f(c, m): raise SystemExit('bye')\n", "f", "SystemExit | bye"),
    "no such option": ("def f(c, m): pass\n", "f,depth=3", "TypeError | depth"),
    "option without a value": ("def f(c, m): pass\n", "f,depth", "`depth` | key=value"),
    "another collective": (OTHER, "f", "another collective | all_reduce"),
    "no such rank": (STEP.format("0, 0, 16"), "f", "destination | 16 | broken.py, line 4"),
    "to itself": (STEP.format("0, 3, 3"), "f", "algorithm `broken:f` | rank 3 to itself"),
    "refuses": (SUNDAYS, "f", "only on Sundays"),
}


@pytest.mark.parametrize("name", USER_CODE)
def test_broken_user_algorithm_is_refused_in_one_line(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    code, spec, words = USER_CODE[name]
    # A module of its own name for each case, as Python keeps what it has imported.
    module = f"broken_{list(USER_CODE).index(name)}"
    (tmp_path / f"{module}.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    arguments = [*ON_RING, "--algorithm", f"{module}:{spec}"]
    check(run, tmp_path, arguments, *words.replace("broken", module).split(" | "))
