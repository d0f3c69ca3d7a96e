"""Pages of the documentation and their figures."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from conftest import Run
from opticoll.commands import COMMANDS
from opticoll.main import app

ROOT = Path(__file__).parents[1]
FIGURES = ROOT / "docs" / "figures"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def shown() -> Iterator[tuple[Path, Path]]:
    """Each picture of a page: the page and the picture's file."""
    for page in PAGES:
        for target in re.findall(r"!\[[^]]*\]\(([^)]+)\)", page.read_text(encoding="utf-8")):
            yield page, (page.parent / target).resolve()


def test_every_picture_of_a_page_exists_and_every_picture_kept_is_on_a_page() -> None:
    pictures = {picture for _, picture in shown()}
    assert {picture for picture in pictures if not picture.is_file()} == set()
    assert set(FIGURES.glob("*.svg")) - pictures == set()


@pytest.fixture
def makers(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The commands that draw figures, by figure."""
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
        if "://" not in target:
            assert (page.parent / target).exists(), target


def test_the_page_on_json_is_what_the_rows_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "docs")
    reference = __import__("reference")
    assert reference.PAGE.read_text(encoding="utf-8") == reference.page(), "run `make reference`"


@pytest.mark.parametrize("name", COMMANDS)
def test_the_example_of_a_command_has_options_that_it_takes(name: str) -> None:
    command = import_module(f"opticoll.commands.{name}").COMMAND
    program, *words = shlex.split(command.example)
    assert (program, words[0], command.name) == ("opticoll", name, name)
    app.parse_args(words, exit_on_error=False, print_error=False)


def transcripts(page: Path) -> Iterator[tuple[str, str]]:
    """Each command that a page shows after `$`, and what it shows below."""
    text = page.read_text(encoding="utf-8")
    for block in re.findall(r"^```\n(\$ .*?)^```$", text, re.DOTALL | re.MULTILINE):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, shown = re.sub(r"\\\n\s*", "", part).partition("\n")
            yield command, shown


def test_the_readme_shows_what_its_commands_print(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shown = list(transcripts(ROOT / "README.md"))
    assert len(shown) >= 5
    for command, expected in shown:
        program, *arguments = shlex.split(command)
        if program == "opticoll":
            assert run(*arguments).out == expected, command
        else:
            done = subprocess.run([program, *arguments], check=True, capture_output=True, text=True)
            assert done.stdout == expected, command


def commands(page: Path) -> Iterator[str]:
    """Every indented command of a page."""
    text = re.sub(r"\\\n\s*", "", page.read_text(encoding="utf-8"))
    for command in re.findall(r"^ {4}(opticoll .*)$", text, re.MULTILINE):
        yield re.sub(r" +#.*", "", command)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_of_a_page_has_the_options_it_is_given(page: Path) -> None:
    for command in commands(page):
        words = shlex.split(command)[1:]
        app.parse_args(words, exit_on_error=False, print_error=False)
