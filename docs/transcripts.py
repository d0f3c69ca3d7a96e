"""Runs the commands that pages show after `$` and compares, or writes, what they print.

    python docs/transcripts.py            # compare all pages
    python docs/transcripts.py --write    # write what the commands print now

A block of a page is run in a folder of its own, one for the whole page, so that a command may read
what one above it wrote. A `...` on a line of its own stands for lines that the page leaves out.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(?:console)?\n(\$ .*?)^```$", re.DOTALL | re.MULTILINE)
LEFT_OUT = "..."


def transcripts(text: str) -> Iterator[tuple[str, str]]:
    """Each command of a page, as one line, and what the page shows below it."""
    for block in BLOCK.findall(text):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, shown = _parted(part)
            yield command, shown


def printed(command: str, folder: Path) -> str:
    """What a command prints on standard output, and if it fails, its error."""
    done = subprocess.run(command, shell=True, cwd=folder, capture_output=True, text=True)
    errors = done.stderr if done.returncode > 1 else ""
    return "".join(f"{line.rstrip()}\n" for line in f"{done.stdout}{errors}".splitlines())


def matches(shown: str, output: str) -> bool:
    """Whether a page shows an output, but for lines that it leaves out."""
    pieces = [re.escape(piece) for piece in f"\n{shown}".split(f"\n{LEFT_OUT}\n")]
    return re.fullmatch("\n(?:.*\n)*".join(pieces), f"\n{output}") is not None


def stale(page: Path) -> list[str]:
    """Commands of a page that print something else than it shows."""
    text = page.read_text(encoding="utf-8")
    with _folder() as folder:
        return [
            command
            for command, shown in transcripts(text)
            if not matches(shown, printed(command, Path(folder)))
        ]


def rewrite(page: Path) -> None:
    """Write what the commands of a page print now; lines left out stay left out at their places."""
    text = page.read_text(encoding="utf-8")
    with _folder() as folder:

        def block(found: re.Match[str]) -> str:
            whole = found.group(0)
            for part in re.split(r"^\$ ", found.group(1), flags=re.MULTILINE)[1:]:
                command, shown = _parted(part)
                output = printed(command, Path(folder))
                if not matches(shown, output):
                    if LEFT_OUT in shown.splitlines():
                        print(f"{page}: `{command}` has lines left out; mend it by hand")
                    else:
                        whole = whole.replace(part, part[: len(part) - len(shown)] + output)
            return whole

        page.write_text(BLOCK.sub(block, text), encoding="utf-8")


def _parted(part: str) -> tuple[str, str]:
    """A command, its lines joined, and the output below it."""
    lines = part.splitlines(keepends=True)
    last = next(at for at, line in enumerate(lines) if not line.endswith("\\\n"))
    command = re.sub(r"\\\n\s*", "", "".join(lines[: last + 1])).strip()
    return command, "".join(lines[last + 1 :])


class _folder(tempfile.TemporaryDirectory[str]):  # noqa: N801 (used as a function)
    """A folder with the examples, and with the traces by their path in the repository."""

    def __enter__(self) -> str:
        folder = super().__enter__()
        shutil.copytree(ROOT / "examples", folder, dirs_exist_ok=True)
        for name in ("crates", "examples"):
            (Path(folder) / name).symlink_to(ROOT / name)
        return folder


def main() -> None:
    """Compare or write pages."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pages", nargs="*", type=Path, default=PAGES)
    parser.add_argument("--write", action="store_true", help="write what the commands print now")
    asked = parser.parse_args()
    wrong = False
    for page in asked.pages:
        if asked.write:
            rewrite(page)
        else:
            for command in stale(page):
                wrong = True
                print(f"{page}: other output: {command}")
    sys.exit(wrong)


if __name__ == "__main__":
    main()
