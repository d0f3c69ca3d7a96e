"""Limits that keep the parts apart where the import linter does not reach."""

from __future__ import annotations

import ast
import sys
from importlib.resources import files


def test_reference_verifier_imports_itself_and_the_standard_library_only() -> None:
    modules = set()
    for file in files("opticoll").joinpath("reference").iterdir():
        if not file.name.endswith(".py"):
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                modules |= {name.name for name in node.names}
            if isinstance(node, ast.ImportFrom):
                assert node.level == 0
                modules.add(str(node.module))
    own = {module for module in modules if f"{module}.".startswith("opticoll.reference.")}
    assert own
    assert {module.partition(".")[0] for module in modules - own} <= sys.stdlib_module_names
