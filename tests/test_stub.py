"""The stub of the compiled core names what the core has, with the same parameters."""

import ast
import inspect
from pathlib import Path

import pytest

import opticoll
from opticoll import _core
from opticoll.inputs.settings import SETTING_NAMES

STUB = ast.parse((Path(opticoll.__file__).parent / "_core.pyi").read_text(encoding="utf-8"))
NOT_IN_THE_CORE = {
    *("Settings", "Record", "OptionEntry", "Drawing", "OptionValue", "FieldRecord"),
    *("CollectiveCost", "FittingGroups", "GroupCollectiveRecord"),
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
