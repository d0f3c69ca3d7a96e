"""Comments of the code open with a verb or a noun, in plain words and short lines."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = [
    *sorted(crate / "src" for crate in (ROOT / "crates").iterdir() if (crate / "src").exists()),
    ROOT / "python" / "opticoll",
]

OPENING = re.compile(
    r"(What|So many|Of|Whether|How|By|When|Where|Who|Whose|Which|That|It|Its|Such|Those|These|As"
    r"|In|To|From|With|For|At|On)\b"
)
"""Openings for which a comment has its verb or its noun."""

VERB = re.compile(r"[A-Z][a-z]+(-[a-z]+)?s\b")
"""The third person with which the comment of a function opens, such as "Returns"."""

WORDS = re.compile(
    r"\b(so many|so much|comes? out|takes? for granted|when that is)\b", re.IGNORECASE
)
"""Phrases for which a number has its noun, or a result its name."""

MAX_WIDTH = 100

RUST_NAME = re.compile(
    r"\b(?:fn ((?:of|by|in)_\w+)|const ((?:MOST|WORTH|FAR|LARGE|SMALL)(?:_\w+)?):)"
)
RUST_FUNCTION = re.compile(r"\s*(?:pub(?:\([^)]*\))? )?(?:const |async |unsafe )*fn\b")


@dataclass
class Comment:
    """The first line of a doc comment or docstring."""

    line: int
    opening: str
    is_of_function: bool


def rust_code(text: str) -> list[str]:
    """Returns the lines of a file without its module of tests."""
    return text.split("\n#[cfg(test)]\nmod tests {")[0].split("\n")


def rust_comments(lines: list[str]) -> Iterator[Comment]:
    """Yields the doc comments of a file; getters of Python are attributes, with a noun."""
    start = None
    for number, line in enumerate(lines):
        stripped = line.strip()
        if stripped.startswith(("///", "//!")):
            start = number if start is None else start
        elif start is not None and not stripped.startswith("#["):
            is_getter = "#[getter]" in " ".join(lines[start:number])
            is_function = RUST_FUNCTION.match(line) is not None and not is_getter
            yield Comment(start + 1, lines[start].strip()[3:].strip(), is_function)
            start = None


def python_comments(text: str) -> Iterator[Comment]:
    """Yields the docstrings of a file; properties have a noun."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            docstring = ast.get_docstring(node)
            decorators = getattr(node, "decorator_list", [])
            is_property = any("property" in ast.unparse(decorator) for decorator in decorators)
            is_function = isinstance(node, ast.FunctionDef) and not is_property
            if docstring:
                yield Comment(getattr(node, "lineno", 1), docstring.split("\n")[0], is_function)


def complaints(path: Path) -> Iterator[str]:
    """Yields what is wrong in a file, with the line."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        comments = python_comments(text)
    else:
        lines = rust_code(text)
        comments = rust_comments(lines)
        for number, line in enumerate(lines, 1):
            if len(line) > MAX_WIDTH and not line.strip().startswith("//! |"):
                yield f"{number}: wider than {MAX_WIDTH} columns"
            if name := RUST_NAME.search(line):
                yield f"{number}: name `{name[1] or name[2]}`"
            if line.strip().startswith("//") and (word := WORDS.search(line)):
                yield f"{number}: `{word[0]}`"
    for comment in comments:
        is_verb = VERB.match(comment.opening) is not None
        if OPENING.match(comment.opening) or (comment.is_of_function and not is_verb):
            yield f"{comment.line}: opens with: {comment.opening}"


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: str(folder.relative_to(ROOT)))
def test_comments_are_plain(folder: Path) -> None:
    paths = (path for path in sorted(folder.rglob("*")) if path.name != "tests.rs")
    files = [path for path in paths if path.suffix in (".rs", ".py")]
    assert files
    found = [f"{path.relative_to(ROOT)}:{text}" for path in files for text in complaints(path)]
    assert found == []


def test_the_rules_find_what_they_are_for(tmp_path: Path) -> None:
    file = tmp_path / "bad.rs"
    file.write_text(
        "/// What a slot takes.\nfn of_slots() {}\n/// The time.\nfn time() {}\n"
        "/// Slots.\n#[getter]\nfn slots() {}\n/// Adds so many slots.\nfn add() {}\n"
        f"const MOST_SLOTS: u32 = 1;\n// {'x' * 100}\n"
    )
    found = " ".join(complaints(file))
    for part in ("What a slot", "`of_slots`", "The time", "`so many`", "`MOST_SLOTS`", "11: wider"):
        assert part in found
    assert "opens with: Slots" not in found
    file = tmp_path / "bad.py"
    file.write_text('def f():\n    """The sum."""\n\ndef g():\n    """Returns the sum."""\n')
    assert [*complaints(file)] == ["1: opens with: The sum."]
