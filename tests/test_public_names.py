"""Public names and the stub: each name has its meaning, parameters, errors and an example."""

from __future__ import annotations

import ast
import doctest
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import opticoll
from opticoll import _core, errors
from opticoll.inputs.settings import SETTING_NAMES

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


STUB = ast.parse((Path(opticoll.__file__).parent / "_core.pyi").read_text(encoding="utf-8"))
NOT_IN_THE_CORE = {
    *("Settings", "Record", "OptionEntry", "Drawing", "OptionValue", "FieldRecord"),
    *(
        "CollectiveCost",
        "ExpertLayer",
        "FittingGroups",
        "GroupCollectiveRecord",
        "LossBudget",
        "PassedLoss",
    ),
}
"""Typed dictionaries."""

CLASSES_TOLD = [node for node in STUB.body if isinstance(node, ast.ClassDef)]


def test_the_settings_of_the_stub_are_those_of_the_records() -> None:
    (kind,) = (node for node in CLASSES_TOLD if node.name == "Settings")
    named = [ast.unparse(one.target) for one in kind.body if isinstance(one, ast.AnnAssign)]
    assert tuple(named) == SETTING_NAMES


def functions(nodes: list[ast.stmt]) -> dict[str, ast.FunctionDef]:
    return {node.name: node for node in nodes if isinstance(node, ast.FunctionDef)}


def check(function: ast.FunctionDef, compiled: object) -> None:
    if any(isinstance(one, ast.Name) and one.id == "property" for one in function.decorator_list):
        assert inspect.isgetsetdescriptor(compiled), function.name
        return
    assert callable(compiled)
    given = function.args
    named = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.kwarg, given.vararg]
    told = {one.arg for one in named if one is not None} - {"self", "cls"}
    there = set(inspect.signature(compiled).parameters) - {"self"}
    assert told == there, function.name


CLASSES = [node for node in CLASSES_TOLD if node.name not in NOT_IN_THE_CORE]


def test_every_name_of_the_core_is_in_its_stub() -> None:
    named = {node.name for node in CLASSES} | set(functions(STUB.body))
    constants = {
        node.target.id
        for node in STUB.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }
    public = {name for name in vars(_core) if not name.startswith("__")} | {"__version__"}
    assert named | constants == public


@pytest.mark.parametrize("name", sorted(functions(STUB.body)))
def test_a_function_has_its_parameters(name: str) -> None:
    check(functions(STUB.body)[name], getattr(_core, name))


@pytest.mark.parametrize("node", CLASSES, ids=lambda node: node.name)
def test_a_class_has_its_methods(node: ast.ClassDef) -> None:
    compiled = getattr(_core, node.name)
    if issubclass(compiled, Exception):
        assert [base.__name__ for base in compiled.__bases__] == [
            ast.unparse(one) for one in node.bases
        ]
        return
    told = {name: one for name, one in functions(node.body).items() if not name.startswith("_")}
    assert set(told) == {name for name in vars(compiled) if not name.startswith("_")}
    for name, function in told.items():
        check(function, getattr(compiled, name))
