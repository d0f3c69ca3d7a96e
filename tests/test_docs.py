"""Pages of the documentation and their figures."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Iterable, Iterator
from importlib import import_module
from itertools import pairwise
from pathlib import Path

import pytest

from opticoll.cli.main import app
from opticoll.commands import COMMANDS
from support import Run, broad

ROOT = Path(__file__).parents[1]
FIGURES = ROOT / "docs" / "figures"
PAGES = [
    page
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
    if page.parent.name != "reference"  # written from records
]
MIN_SHOWN_COMMANDS = {"README.md": 4}
"""Minimum number of commands whose output a page shows; 1 for all other pages."""


def name_of(page: Path) -> str:
    """Returns a page's path within `docs`, or its name."""
    docs = ROOT / "docs"
    return str(page.relative_to(docs)) if page.is_relative_to(docs) else page.name


def shown() -> Iterator[tuple[Path, Path]]:
    """Yields each page with the file of each of its pictures."""
    for page in PAGES:
        for target in re.findall(r"!\[[^]]*\]\(([^)]+)\)", page.read_text(encoding="utf-8")):
            if "://" not in target:  # badges
                yield page, (page.parent / target).resolve()


def test_every_picture_of_a_page_exists_and_every_picture_kept_is_on_a_page() -> None:
    pictures = {picture for _, picture in shown()}
    assert {picture for picture in pictures if not picture.is_file()} == set()
    assert set(FIGURES.glob("*.svg")) - pictures == set()


@pytest.fixture
def makers(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Returns the commands that draw figures, by figure."""
    monkeypatch.syspath_prepend(FIGURES)
    monkeypatch.delitem(sys.modules, "commands", raising=False)
    commands = __import__("commands")
    return dict(commands.COMMANDS)


def test_pages_print_the_command_that_draws_their_figure(makers: dict[str, str]) -> None:
    for figure, command in makers.items():
        pages = [page for page, picture in shown() if picture.stem == figure]
        texts = [page.read_text(encoding="utf-8") for page in pages]
        plain = [re.sub(r"\s*\\\n\s*|\s+", " ", text) for text in texts]
        assert any(f"opticoll {command} " in text for text in plain), figure


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"(?<!!)\[[^]]*\]\(([^)#]+)(?:#[^)]*)?\)", text):
        # Pages of records are written by `make docs`, which finds their broken links.
        if "://" not in target and "reference/" not in target:
            assert (page.parent / target).exists(), target


def test_nothing_is_said_to_be_on_a_package_index() -> None:
    # With the first release, docs/install.md says `pip install opticoll`, and this test goes.
    sources = [*(ROOT / "python").rglob("*.py"), *(ROOT / "docs").rglob("*.ipynb")]
    for file in [*PAGES, *sources]:
        text = file.read_text(encoding="utf-8")
        assert re.search(r"(install|uvx|pipx run) [\"']?opticoll\b", text) is None, file


@pytest.mark.parametrize(
    "page",
    [*PAGES, ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md"],
    ids=lambda page: page.name,
)
def test_files_of_the_project_that_a_page_names_exist(page: Path) -> None:
    named = re.findall(
        r"(?<![\w/.])(?:crates|python|examples|validation|tests)/[\w/.-]*[\w/]",
        page.read_text(encoding="utf-8"),
    )
    assert {name for name in named if not (ROOT / name).exists()} == set()


def test_the_page_on_json_is_what_the_rows_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "docs")
    reference = __import__("reference")
    assert reference.PAGE.read_text(encoding="utf-8") == reference.page(), "run `make reference`"


def test_every_cell_of_the_table_of_tools_has_a_link() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    rows = [line for line in readme.splitlines() if re.match(r"\| \[", line)]
    assert len(rows) == 7
    for row in rows:
        assert all(re.fullmatch(r" \[.*\]\(.*\) ", cell) for cell in row.split("|")[1:-1]), row
    assert len(readme.splitlines()) <= 150


WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
WITHOUT_MAKE = {
    "wheels.yml": {
        "pip install --constraint constraints.txt maturin",
        "maturin build --release --out dist",
        "python .github/try_wheel.py dist",
    },
    "nightly.yml": {"git diff --exit-code docs/papers"},
}
"""Commands that workflows run besides targets of the Makefile."""


def test_workflows_call_targets_of_the_makefile() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert {file.stem for file in WORKFLOWS} == {"tests", "nightly", "wheels", "docs", "release"}
    for file in WORKFLOWS:
        for run in re.findall(r"run: (.*)", file.read_text(encoding="utf-8")):
            if run not in WITHOUT_MAKE.get(file.name, ()):
                program, *targets = run.split()
                assert program == "make", f"{file.name}: {run}"
                assert all(f"\n{target}:" in makefile for target in targets), f"{file.name}: {run}"


def test_actions_and_hooks_are_pinned() -> None:
    texts = {file.name: file.read_text(encoding="utf-8") for file in WORKFLOWS}
    for name, text in texts.items():
        for action in re.findall(r"uses: (?!\./)(.*)", text):
            pinned = re.fullmatch(r"[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action)
            assert pinned, f"{name}: {action}"
    hooks = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    pins = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    assert set(re.findall(r"\w+==[\d.]+", hooks)) <= set(pins)
    (typos,) = re.findall(r"rev: (.*)", hooks)
    assert f"crate-ci/typos@{typos}\n" in texts["tests.yml"]


@pytest.mark.parametrize("name", COMMANDS)
def test_the_example_of_a_command_has_options_that_it_takes(name: str) -> None:
    command = import_module(f"opticoll.commands.{name}").COMMAND
    lines = [shlex.split(line) for line in command.example.splitlines()]
    assert lines[-1][1] == command.name == name
    for program, *words in lines:
        assert program == "opticoll"
        app.parse_args(words, exit_on_error=False, print_error=False)


FILE = re.compile(
    r"[\w./-]*\w\.(csv|et|goal|graphml|html|json|npy|otf2|parquet|plan|sqlite|xml|ya?ml|zst)"
)
OF_READERS = ("theirs.", "server.", "work.")
"""Prefixes of the names of files that a reader has from other programs."""
WRITES = {"--csv", "--figure", "--figures", "--output", "--store", "--timeline", ">"}
"""Options followed by the name of a file that the command writes."""


def faults(lines: Iterable[str]) -> list[str]:
    """Redirects in command lines, but behind `$`, and files that nothing has: no line before them,
    and neither the project nor its examples."""
    found: list[str] = []
    made: set[str] = set()
    for line in lines:
        lexer = shlex.shlex(line.removeprefix("$ "), posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        words = ["", *lexer]
        made |= {word for before, word in pairwise(words) if before in WRITES}
        if line[0] == "$":
            continue  # `transcripts.py` runs it.
        found += [f"`{word}`: {line}" for word in words if word and not word.strip("<>|&;()")]
        files = [word for word in words if FILE.fullmatch(word) and not word.startswith(OF_READERS)]
        missing = [word for word in files if not (ROOT / "examples" / word).exists()]
        missing = [word for word in missing if word not in made and not (ROOT / word).exists()]
        found += [f"no file {word}: {line}" for word in missing]
    return found


def test_a_redirect_and_a_missing_file_are_faults() -> None:
    good = [
        "opticoll sweep study.yaml --store a.sqlite",
        "opticoll results a.sqlite --where 'a < 1'",
    ]
    assert faults(good) == []
    bad = ["opticoll results a.sqlite --where a < 1ms", "opticoll verify tree.plan"]
    assert [fault.split(": ")[0] for fault in faults(bad)] == [
        *("`<`", "no file a.sqlite", "no file tree.plan")
    ]


@pytest.mark.parametrize("name", COMMANDS)
def test_the_example_in_help_needs_no_file_and_redirects_nothing(name: str, run: Run) -> None:
    shown = run(name, "--help").out.partition("\nExample")[2].partition("\n")[2]
    lines = re.sub(r"\\\n\s*", "", shown).splitlines()
    assert lines
    assert faults(line.strip() for line in lines) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_of_a_page_name_files_that_are_there(page: Path) -> None:
    text = re.sub(r"\\\n\s*", "", page.read_text(encoding="utf-8"))
    code = "\n".join(re.findall(r"^```.*?^```$|^ {4}.*?$", text, re.DOTALL | re.MULTILINE))
    lines = re.findall(r"^ *((?:\$|opticoll) .*?)(?: +#.*)?$", code, re.MULTILINE)
    assert faults(lines) == []


SHOWN_SLOWLY = {"from-question-to-report.md", "obs-grid.md"}
"""Pages whose commands take minutes: `python docs/transcripts.py` compares them."""

READ_FIRST = {"README.md", "install.md", "start.md", "own-topology.md", "plan-format.md"}
"""Pages whose commands each `make test` runs; all others take a minute on two cores."""

PAGES_WITH_COMMANDS = [
    pytest.param(page, marks=[] if page.name in READ_FIRST else [broad])
    for page in PAGES
    if re.search(r"^\$ ", page.read_text(encoding="utf-8"), re.MULTILINE)
    and name_of(page) not in SHOWN_SLOWLY
]


@pytest.mark.parametrize("page", PAGES_WITH_COMMANDS, ids=lambda page: page.name)
def test_pages_show_what_their_commands_print(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "docs")
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    transcripts = __import__("transcripts")
    shown = list(transcripts.transcripts(page.read_text(encoding="utf-8")))
    assert len(shown) >= MIN_SHOWN_COMMANDS.get(name_of(page), 1)
    assert transcripts.mistakes(page) == [], "run `python docs/transcripts.py --write`"


@pytest.mark.parametrize(
    ("said", "code", "mistake"),
    [
        ("verified: NO, 8 ms", 1, []),
        ("verified: NO, 9 ms", 1, ["a number without a source: 8 ms"]),
        ("verified: yes, 8 ms", 1, ["shows no 'NO': "]),
        ("verified: NO, 8 ms", 0, ["exit code 0, not 1: "]),
    ],
)
def test_a_block_that_does_not_bear_out_what_its_page_says_is_not_written(
    said: str, code: int, mistake: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(ROOT / "docs")
    transcripts = __import__("transcripts")
    command = f"echo '{said}'; exit {code}"
    block = f'<!-- exit 1; shows "NO" -->\n```console\n$ {command}\nverified: NO, 8 ms\n```\n'
    page = tmp_path / "page.md"
    page.write_text(f"{block}\nThe proof takes 8 ms.\n", encoding="utf-8")
    found = transcripts.mistakes(page, write=True)
    assert [one.replace(command, "") for one in found] == mistake
    written = said if code and "NO" in said else "verified: NO, 8 ms"
    assert f"\n{written}\n```" in page.read_text(encoding="utf-8")


def test_numbers_of_a_text_are_those_of_its_code_or_of_the_source_that_it_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(ROOT / "docs")
    transcripts = __import__("transcripts")
    page = tmp_path / "page.md"
    lines = [
        "# Title\n\n3 ms, 4 ms.\n\n    opticoll --time 3ms\n",
        "<!-- numbers: $ echo 5 us -->\n5 us, 5 ms.\n",
        "<!-- numbers: measured -->\n6 ms.\n\n7 ms.\n",
        "## Part\n\n<!-- numbers: LICENSE -->\n\n2.0 s, 2004 s, 8.2 s.\n\n### Deeper\n\n8.1 s\n",
        "## Next\n\n- 9 ms\n  <!-- numbers: measured -->\n- 10 ms\n- 11 ms",
    ]
    page.write_text("\n".join(lines), encoding="utf-8")
    wrong = ["4 ms", "5 ms", "7 ms", "8.2 s", "8.1 s", "9 ms", "11 ms"]
    assert [one.split(": ")[1] for one in transcripts.mistakes(page)] == wrong


def commands(page: Path) -> Iterator[str]:
    """Yields every indented command of a page."""
    text = re.sub(r"\\\n\s*", "", page.read_text(encoding="utf-8"))
    for command in re.findall(r"^ {4}(opticoll .*)$", text, re.MULTILINE):
        yield re.sub(r" +#.*", "", command)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_of_a_page_has_the_options_it_is_given(page: Path) -> None:
    for command in commands(page):
        words = shlex.split(command)[1:]
        app.parse_args(words, exit_on_error=False, print_error=False)


def shown_times(page: Path, study: str) -> dict[tuple[str, ...], float]:
    """Times that a page shows of the rows of a study, by the cells of the axes, in seconds."""
    units = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
    transcripts = __import__("transcripts")
    known = {}
    for command, output in transcripts.transcripts(page.read_text(encoding="utf-8")):
        if f"--study {study}" not in command:
            continue
        names, *lines = output.splitlines()[1:]
        at = names.split().index("time_s")
        for line in lines:
            cells = re.split(r" {2,}", line)
            if len(cells) > at:
                number, unit = cells[at].split()
                axes = zip(names.split(), cells[:at], strict=False)
                point = tuple(cell for name, cell in axes if name != "fabric_latency_s")
                known[point] = float(number) * units[unit]
    return known


def test_the_answers_to_the_questions_follow_from_the_tables(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(ROOT / "docs")
    page = ROOT / "docs" / "from-question-to-report.md"
    text = page.read_text(encoding="utf-8")
    answers = [
        " ".join(answer.split()) for answer in re.findall(r"\*\*Answer\.\*\*(.*?)\n\n", text, re.S)
    ]
    assert len(answers) == 3

    def numbers(answer: str, pattern: str) -> list[float]:
        found = re.search(pattern, answer)
        assert found, pattern
        return [float(one) for one in found.groups()]

    def longer(time: float, than: float) -> int:
        return round(100 * (time / than - 1))

    times = shown_times(page, "wavelengths")
    ring = {count: {size: times["wdm_ring", count, size] for _, _, size in times} for count in "8"}
    ring["16"] = {size: times["wdm_ring", "16", size] for _, _, size in times}
    tree = {size: times["fat_tree", "-", size] for _, _, size in times}
    (first,) = numbers(answers[0], r"From (\d+) wavelengths on the ring is faster for 1 MiB and")
    faster = {
        count: all(one[s] < tree[s] for s in tree if s != "64KiB") for count, one in ring.items()
    }
    assert (first, faster) == (16, {"8": False, "16": True})
    assert all(one["64KiB"] > tree["64KiB"] for one in ring.values())
    assert numbers(answers[0], r"(\d+) % longer for 256 MiB and (\d+) % longer for 1 MiB") == [
        longer(ring["8"][size], tree[size]) for size in ("256MiB", "1MiB")
    ]

    times = shown_times(page, "reconfiguration")
    tree = {size: times["fat_tree", "-", size] for _, _, size in times}
    large = [size for size in tree if size not in ("64KiB", "1MiB")]
    more, adds = numbers(
        answers[1], r"takes (\d+) % longer .* at 100 ns; .* of 10 us adds (\d+) % or"
    )
    beyond = [longer(times["wdm_ring", "100ns", size], tree[size]) for size in large]
    assert set(beyond) == {more}
    added = [times["wdm_ring", "10us", s] / times["wdm_ring", "100ns", s] - 1 for s in large]
    assert adds - 1 < 100 * max(added) <= adds
    ends = numbers(answers[1], r"for 64 KiB up to ([\d.]+) us .* for 1 MiB up to ([\d.]+) us")
    tried = re.findall(r"for time in ([\d.]+)us ([\d.]+)us", text)
    taken = re.findall(r"^steps .*; time ([\d.]+) us", text, re.M)
    for end, (low, high), size, before, after in zip(
        ends, tried, ("64KiB", "1MiB"), taken[::2], taken[1::2], strict=True
    ):
        assert end == float(low)
        assert float(high) == pytest.approx(end + 0.1)
        assert float(before) < 1e6 * tree[size] < float(after)

    times = shown_times(page, "failures")
    whole, both, one, wavelength = (
        [times[fabric, kind, "16MiB"] for kind in ("all_reduce", "all_gather")]
        for fabric in (
            "wdm_ring",
            *(f"wdm_ring:{cut}" for cut in ("broken=3-4", "broken=3-4cw", "dead=5")),
        )
    )
    assert "doubles the time of large all_gathers" in answers[2]
    assert "A large all_reduce takes about as long as before" in answers[2]
    assert both == pytest.approx([whole[0], 2 * whole[1]], rel=0.05)
    assert "in one direction costs about as much as a cut in both" in answers[2]
    assert one == pytest.approx(both, rel=0.05)
    assert "A failed wavelength costs an eighth of the bandwidth" in answers[2]
    assert wavelength == pytest.approx([8 / 7 * time for time in whole], rel=0.02)
