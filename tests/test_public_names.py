"""Every public name says what it does, what it takes, what it raises, and shows it."""

from __future__ import annotations

import doctest
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import opticoll
from opticoll import errors

NEVER_RAISE = {
    *("Schedule", "Plan", "Outcome", "Table", "Trace", "Violation"),
    *("Program", "Program.verify"),  # made by functions
    *("Plan.to_text", "Plan.verify", "Fabric.option", "Outcome.describe", "Table.describe"),
    *("Table.rows", "interrupt_all"),
}
"""Callables whose arguments cannot be wrong."""

EXAMPLES = doctest.DocTestParser()


def public() -> Iterator[tuple[str, Any]]:
    """Yields public functions and classes with their names, members as `Class.name`."""
    for name in opticoll.__all__:
        value = getattr(opticoll, name)
        if inspect.isclass(value) and not issubclass(value, Exception):
            for member in vars(value):
                if not member.startswith("_"):
                    yield f"{name}.{member}", inspect.getattr_static(value, member)
        if callable(value) and not (inspect.isclass(value) and issubclass(value, Exception)):
            yield name, value


PUBLIC = dict(public())
PROPERTIES = {name for name, value in PUBLIC.items() if inspect.isgetsetdescriptor(value)}
CALLABLES = sorted(PUBLIC.keys() - PROPERTIES)
EXCEPTIONS = sorted(errors.__all__)


def text_of(value: object) -> str:
    if isinstance(value, staticmethod):
        value = value.__func__
    return inspect.getdoc(value) or ""


def section(text: str, title: str) -> str:
    """Returns the lines below a title underlined with hyphens, up to the next title."""
    found = re.search(rf"^{title}\n-+\n(.*?)(?=^\w[\w ]*\n---|\Z)", text, re.M | re.S)
    return found[1] if found else ""


def said(text: str, title: str) -> set[str]:
    """Returns the names that a section explains."""
    heads = re.findall(r"^([^\s>].*)\n {4}\S", section(text, title), re.M) + re.findall(
        r"^(settings|options)$", section(text, title), re.M
    )
    return {name for head in heads for name in head.partition(" : ")[0].split(", ")}


@pytest.mark.parametrize("name", [*sorted(PUBLIC), *(f"errors.{name}" for name in EXCEPTIONS)])
def test_begins_with_one_sentence(name: str) -> None:
    value = PUBLIC.get(name) or getattr(errors, name.removeprefix("errors."))
    first = " ".join(text_of(value).partition("\n\n")[0].split())
    assert re.match(r"[A-Z`]", first), name
    assert first.endswith("."), name
    assert not re.search(r"\.\s", re.sub(r"`[^`]*`", "", first)), name
    assert 15 <= len(first) <= 200


@pytest.mark.parametrize("name", CALLABLES)
def test_explains_its_parameters(name: str) -> None:
    try:
        parameters = set(inspect.signature(PUBLIC[name]).parameters) - {"self"}
    except (TypeError, ValueError):  # a class that only functions make
        parameters = set()
    assert said(text_of(PUBLIC[name]), "Parameters") == parameters


@pytest.mark.parametrize("name", CALLABLES)
def test_says_what_it_raises(name: str) -> None:
    raised = said(text_of(PUBLIC[name]), "Raises")
    assert bool(raised) == (name not in NEVER_RAISE)
    known = {*errors.__all__, "IndexError", "OverflowError", "PlotError"}
    assert raised <= known


@pytest.mark.parametrize("name", CALLABLES)
def test_shows_an_example_that_runs(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    test = EXAMPLES.get_doctest(text_of(PUBLIC[name]), {}, name, name, 0)
    assert test.examples
    problems: list[str] = []
    doctest.DocTestRunner(verbose=False).run(test, out=problems.append)
    assert not problems, "".join(problems)


@pytest.mark.parametrize("name", sorted(PROPERTIES))
def test_an_example_of_the_class_shows_the_property(name: str) -> None:
    kind, _, own = name.partition(".")
    texts = [text_of(value) for other, value in PUBLIC.items() if other.split(".")[0] == kind]
    examples = "".join(one.source for text in texts for one in EXAMPLES.get_examples(text))
    assert re.search(rf"\.{own}\b", examples)
