"""Write `python/opticoll/_core.pyi` from the binding: its signatures, types and doc comments.

The head, `stub_head.pyi`, holds what the generator does not see: errors, typed dictionaries and
constants.
"""

import re
import subprocess
import tempfile
from pathlib import Path

from opticoll._core import records

HERE = Path(__file__).parent
STUB = HERE.parents[1] / "python/opticoll/_core.pyi"

# Attributes and special methods, whose types pyo3 derives and does not let be said.
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
    """The classes and functions as people write them."""
    body = generated[generated.index("@final") :]
    # A module that is filled at run time may hold anything, which would hide errors of typing.
    body = body.removesuffix("def __getattr__(name: str) -> Incomplete: ...\n")
    pieces = body.split('"""')
    for place, piece in enumerate(pieces):
        pieces[place] = docstring(piece) if place % 2 else signatures(piece)
    return '"""'.join(pieces)


def docstring(piece: str) -> str:
    """A docstring without blank lines around it."""
    lines = piece.strip().replace("\\", "\\\\")
    indent = piece[piece.rindex("\n") :]
    return lines if "\n" not in lines else lines + indent


def signatures(piece: str) -> str:
    """Code with the types as people write them."""
    for old, new in WORDS:
        piece = piece.replace(old, new)
    for name, kind in TYPES.items():
        derived = rf"(def {name}\(self\)) -> (dict|tuple|Any)[^\[:\n]*:"
        piece = re.sub(derived, rf"\1 -> {kind}:", piece)
    return re.sub(r"(: |-> )\"([^\"\n]+)\"(?=[,)=: ])", r"\1\2", piece)


def settings() -> str:
    """The settings of simulators, by their records in the core that is installed."""
    names = ["simulator", *(record["name"] for record in records("settings"))]
    return (
        "\n    ".join(
            [
                "class Settings(TypedDict, total=False):",
                '"""A simulator and its settings as text; None where a default holds."""\n',
                *(f"{name}: str | None" for name in names),
            ]
        )
        + "\n\n"
    )


def main() -> None:
    """Build the core with its signatures in it, read them, write the stub."""
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
