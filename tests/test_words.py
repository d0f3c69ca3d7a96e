"""Words and phrases that pages and lists do not use, and what they use instead."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import opticoll
from opticoll.commands import COMMANDS
from support import Run

ROOT = Path(__file__).parents[1]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "ARCHITECTURE.md",
    *(page for page in sorted((ROOT / "docs").rglob("*.md")) if page.parent.name != "reference"),
]
PLAIN = {
    r"light paths?": "lightpath",
    r"agendas?": "event queue",
    r"intensity": "offered load",
    r"refusals?": "blocked requests",
    r"(?:is|are) spelled": "specification",
    r"goes? around it": "plans around it",
    r"set-ups?": "setup",
    r"what differs? from": "differences from",
    r"when that is so": "the condition, named",
    r"at the ends": "the ends, named",
    r"opens? `crates": "the page of proofs has the proof",
    r"no number in them": "the commands recompute every table",
    r"what this takes for granted": "assumptions",
    r"comes out": "the result, named",
    r"whose way": "the route, named",
    r"on computers of their own": "each on its own hosts",
    r"used last": "most recently used",
    r"nothing says": "is not modelled",
    r"says it in full": "defines",
    r"it takes \d+,": "the number with its noun",
    r"holds? to \d": "agrees to within",
    r"a like machine": "a machine of the same type",
    r"in the order of their asking": "in order of arrival",
    r"fullest": "busiest",
    r"for want of": "the lack, as a reason",
    r"in vain": "the purpose that was missed",
    r"of one's own": "of your own",
    r"under way": "in flight",
    r"on the way": "along the route",
    r"nothing to say": "the reason, named",
    r"it is no (?!longer)\w+": "it is not a",
    r"it is none": "it is not one, with the noun",
}
"""Words to write, by a pattern of the words to avoid."""

QUOTED = re.compile(
    r"```.*?^```|`[^`]*`|\"[^\"]*\"|<!--.*?-->|\]\([^)]*\)", re.DOTALL | re.MULTILINE
)
"""Code, names, quotations and addresses, which may contain other words."""


def found(text: str) -> list[str]:
    """Returns each word of a text that should not be used, with a better word."""
    text = re.sub(r"\s+", " ", text)
    return [
        f"{hit[0]}: write {instead}"
        for pattern, instead in PLAIN.items()
        for hit in re.finditer(rf"(?<![\w-]){pattern}(?![\w-])", text, re.IGNORECASE)
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_use_the_words_of_the_field(page: Path) -> None:
    assert found(QUOTED.sub(" ", page.read_text(encoding="utf-8"))) == []


def test_lists_use_the_words_of_the_field() -> None:
    for kind in ("algorithms", "fabrics", "presets", "simulators", "policies", "start_rules"):
        for record in opticoll.records(kind):
            assert found(str(record)) == [], record.name


def messages(file: Path) -> Iterator[str]:
    """Yields the texts of a Python file, without docstrings, names and quotations of papers."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    bodies = (getattr(node, "body", None) for node in ast.walk(tree))
    firsts = (body[0] for body in bodies if isinstance(body, list) and body)
    docstrings = {id(first.value) for first in firsts if isinstance(first, ast.Expr)}
    for node in ast.walk(tree):
        text = node.value if isinstance(node, ast.Constant) else None
        if isinstance(text, str) and " " in text and id(node) not in docstrings:
            yield QUOTED.sub(" ", text)


def test_messages_and_figures_use_the_words_of_the_field() -> None:
    for file in sorted((ROOT / "python" / "opticoll").rglob("*.py")):
        for text in messages(file):
            assert found(text) == [], f"{file.name}: {text}"


@pytest.mark.parametrize("command", COMMANDS)
def test_help_uses_the_words_of_the_field(run: Run, command: str) -> None:
    shown = run(command, "--help-all")
    assert len(shown.out) > 300
    assert found(shown.out) == []


def test_the_glossary_has_every_name_that_results_print() -> None:
    glossary = (ROOT / "docs/glossary.md").read_text()
    known = set(re.findall(r"^\| `(\w+)` \|", glossary, re.MULTILINE))
    rows = (ROOT / "docs/bounds.md").read_text().split("\n")
    cells = [row.split("|")[1] for row in rows if row.startswith("| `")]
    printed = {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}
    assert {"crossings", "quickest_flow"} <= printed
    for kind in ("policies", "start_rules", "simulators"):
        printed |= {record.name for record in opticoll.records(kind)}
    assert printed <= known, printed - known


def test_the_patterns_find_what_they_are_for() -> None:
    assert found("Light\npaths on demand")
    assert found("When that is so opens the file")
    assert not found("lightpaths and `lightpath_grid`")
