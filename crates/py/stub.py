"""Write `python/opticoll/_core.pyi` from the binding: its signatures, types and doc comments.

`stub_head.pyi` is the first part of the stub: errors, typed dictionaries and constants, which the
generator does not find. Methods that are written in Python come from `interface/graphs.py`.
"""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import tempfile
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

from opticoll._core import records
from opticoll.interface.graphs import METHODS

HERE = Path(__file__).parent
STUB = HERE.parents[1] / "python/opticoll/_core.pyi"

# Types of attributes and special methods for which pyo3 allows no annotation.
TYPES = {
    "totals": "dict[str, Any]",
    "tables": "dict[str, Table]",
    "columns": "dict[str, Any]",
    "axes": "tuple[str, ...]",
    "shape": "tuple[int, ...]",
    "drawing": "Drawing",
    "light_fields": "dict[str, list[str]]",
    "__iter__": "Iterator[dict[str, Any]]",
}

WORDS = (
    ("SupportsGetItem[int, ", "list["),
    ("SupportsIndex", "int"),
    ("SupportsFloat", "float"),
    ("(self, /, ", "(self, "),
    ("(self, /)", "(self)"),
    ("(cls, /, ", "(cls, "),
    ("dict[str, Incomplete]", "dict[str, OptionValue]"),
)


def typed(generated: str) -> str:
    """Returns the generated classes and functions with readable types and docstrings."""
    body = generated[generated.index("@final") :]
    # With `__getattr__`, type checkers would accept any name in the module.
    body = body.removesuffix("def __getattr__(name: str) -> Incomplete: ...\n")
    pieces = body.split('"""')
    for place, piece in enumerate(pieces):
        pieces[place] = docstring(piece) if place % 2 else signatures(piece)
    return '"""'.join(pieces)


def docstring(piece: str) -> str:
    """Removes blank lines around a docstring."""
    lines = piece.strip().replace("\\", "\\\\")
    indent = piece[piece.rindex("\n") :]
    return lines if "\n" not in lines else lines + indent


def signatures(piece: str) -> str:
    """Replaces generated types in code by readable ones."""
    for old, new in WORDS:
        piece = piece.replace(old, new)
    for name, kind in TYPES.items():
        derived = rf"(def {name}\(self\)) -> (dict|tuple|Any)[^\[:\n]*:"
        piece = re.sub(derived, rf"\1 -> {kind}:", piece)
    return re.sub(r"(: |-> )\"([^\"\n]+)\"(?=[,)=: ])", r"\1\2", piece)


def settings() -> str:
    """Returns the class `Settings`, made from the records of the installed core."""
    names = ["simulator", *(record["name"] for record in records("settings"))]
    return (
        "\n    ".join(
            [
                "class Settings(TypedDict, total=False):",
                '"""A simulator and its settings as text; None selects the default."""\n',
                *(f"{name}: str | None" for name in names),
            ]
        )
        + "\n\n"
    )


def with_methods(stub: str) -> str:
    """Adds the methods that are written in Python to their classes, in alphabetical order."""
    for kind, methods in METHODS.items():
        for method in methods:
            head, start, body = stub.partition(f"class {kind.__name__}:\n")
            end = re.search(r"^\S", body, re.MULTILINE)
            own, rest = (body[: end.start()], body[end.start() :]) if end else (body, "")
            # Properties and static methods have a line with a decorator.
            names = list(re.finditer(r"^(?:    @\w+\n)?    def (\w+)", own, re.MULTILINE))
            after = [found.start() for found in names if found[1] > method.__name__]
            place = min(after, default=len(own.rstrip()) + 1)
            stub = head + start + own[:place] + method_text(method) + own[place:] + rest
    return stub


def method_text(method: Callable[..., Any] | staticmethod[..., Any]) -> str:
    """Returns the signature and the docstring of a method, indented as in a class."""
    is_static = isinstance(method, staticmethod)
    source = inspect.getsource(method.__func__ if is_static else method)
    (function,) = ast.parse(source).body
    assert isinstance(function, ast.FunctionDef)
    for argument in function.args.args[: not is_static]:
        argument.annotation = None
    function.body = function.body[:1]
    decorator = "@staticmethod\n" if is_static else ""
    return textwrap.indent(f"{decorator}{ast.unparse(function)}\n", "    ")


def main() -> None:
    """Builds the core with its signatures, reads them, and writes the stub."""
    with tempfile.TemporaryDirectory() as folder:
        manifest = ("--manifest-path", HERE / "Cargo.toml", "--features", "stub", "--out", folder)
        subprocess.run(["maturin", "generate-stubs", *manifest], check=True)
        generated = (Path(folder) / "opticoll/_core.pyi").read_text(encoding="utf-8")
    head = (HERE / "stub_head.pyi").read_text(encoding="utf-8")
    STUB.write_text(with_methods(head + settings() + typed(generated)), encoding="utf-8")
    for command in (["check", "--quiet", "--fix"], ["format", "--quiet"]):
        subprocess.run(["ruff", *command, STUB], check=True)


if __name__ == "__main__":
    main()
