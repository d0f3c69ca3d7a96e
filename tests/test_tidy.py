"""What keeps the parts apart, where the import linter cannot see it."""

from __future__ import annotations

import ast
import sys
from importlib.resources import files


def test_reference_verifier_imports_the_standard_library_only() -> None:
    tree = ast.parse(files("opticoll").joinpath("reference.py").read_text(encoding="utf-8"))
    modules = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules |= {name.name.partition(".")[0] for name in node.names}
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0
            modules.add(str(node.module).partition(".")[0])
    assert modules
    assert modules <= sys.stdlib_module_names
