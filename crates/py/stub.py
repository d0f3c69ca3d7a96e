"""Write `python/opticoll/_core.pyi` from the binding: its signatures, types and doc comments.

`stub_head.pyi` is the first part of the stub: errors, typed dictionaries and constants, which the
generator does not find.
"""

import re
import subprocess
import tempfile
from pathlib import Path

from opticoll._core import records

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


def main() -> None:
    """Builds the core with its signatures, reads them, and writes the stub."""
    with tempfile.TemporaryDirectory() as folder:
        manifest = ("--manifest-path", HERE / "Cargo.toml", "--features", "stub", "--out", folder)
        subprocess.run(["maturin", "generate-stubs", *manifest], check=True)
        generated = (Path(folder) / "opticoll/_core.pyi").read_text(encoding="utf-8")
    head = (HERE / "stub_head.pyi").read_text(encoding="utf-8")
    STUB.write_text(head + settings() + typed(generated), encoding="utf-8")
    for command in (["check", "--quiet", "--fix"], ["format", "--quiet"]):
        subprocess.run(["ruff", *command, STUB], check=True)


if __name__ == "__main__":
    main()
