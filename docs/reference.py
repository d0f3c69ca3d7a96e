"""Writes docs/json.md from the row classes of the commands; `make reference` calls it."""

from __future__ import annotations

from pathlib import Path

from opticoll.cli.runner import Command
from opticoll.commands import installed
from opticoll.outputs.rows import reference

PAGE = Path(__file__).parent / "json.md"

HEAD = """# JSON

Every command prints JSON with `--json`: data on standard output, everything else on standard error.
Keys are added later, never renamed. `opticoll list schemas --json` prints the JSON schema of each
command. Columns of `--csv` have the same names. In Python a row is an object: `row.time_s` and
`row["time_s"]` are the same.

| command | prints | example |
|---|---|---|
"""

SHAPES = {
    "row": "an object: {}",
    "rows": "a list of objects: {}",
    "row or rows": "an object, or a list of objects where there are several cases: {}",
}


def page() -> str:
    """Returns the whole page."""
    commands: list[Command] = list(installed().values())
    lines = []
    kinds = []
    for command in commands:
        own = command.rows if isinstance(command.rows, tuple) else (command.rows,)
        names = " or ".join(f"[{kind.__name__}](#{kind.__name__.lower()})" for kind in own)
        lines.append(
            f"| `{command.name} --json` | {SHAPES[command.shape].format(names)} "
            f"| `{command.example.splitlines()[-1]}` |"
        )
        kinds += own
    about = "If a key can be null or absent, its meaning says when, after `null:`."
    return (
        HEAD + "\n".join([*lines, "", "## Rows", "", about, "", *reference(kinds)]).rstrip() + "\n"
    )


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
