"""What every command prints and writes on some 250 cases, compared with what it printed before.

    python validation/golden/golden.py            compare all cases; exit code 1 if some differ
    python validation/golden/golden.py plan show  only those of these commands
    python validation/golden/golden.py --accept   take what is printed now as expected
    python validation/golden/golden.py --show     print whole differences

It holds behaviour while code is moved: it says that something changed, not what is right. That is
what the tests are for, none of which takes a value from here. A difference that is wanted is
accepted, with its reason in the changelog. Commands before `&&` make what the last one reads.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import io
import json
import multiprocessing
import os
import re
import shlex
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
EXPECTED = HERE / "expected"

FILES = {
    "--csv": ("compare", "traffic", "congestion", "train", "replay", "tasks", "results"),
    "--output": ("plan", "replan"),
}
"""Options that write a file, with the commands that have them."""

SHOWN_LINES = 20


def command_lines() -> list[str]:
    """All cases, each with its braces filled in."""
    lines = (HERE / "cases.txt").read_text().splitlines()
    return [one for line in lines if line and not line.startswith("#") for one in filled(line)]


def filled(line: str) -> Iterator[str]:
    """`a {b|c}` as `a b` and `a c`."""
    braces = re.search(r"\{([^}]*)\}", line)
    if braces is None:
        yield line
        return
    for choice in braces[1].split("|"):
        yield from filled(line[: braces.start()] + choice + line[braces.end() :])


def command_of(line: str) -> str:
    """The last command of a case."""
    return line.split(" && ")[-1].split()[0]


def forms(line: str) -> Iterator[tuple[str, list[str]]]:
    """The ways to run the last command of a case: their names and what is added to the line."""
    command = command_of(line)
    if command != "reproduce":  # which takes long, and writes its tables either way
        yield "text", []
    yield "json", ["--json"]
    for option, commands in FILES.items():
        if command in commands:
            yield option[2:], [option, "file.csv" if option == "--csv" else "file.plan"]


def run(line: str) -> tuple[str, str]:
    """The case and all that its last command prints and writes, after those before it."""
    parts = []
    for name, added in forms(line):
        with tempfile.TemporaryDirectory() as folder:
            *before, last = line.replace("TRACES", str(ROOT / "tests/data")).split(" && ")
            for step in before:
                outputs(words_of(step), Path(folder))
            parts.append(f"#### {name}\n{outputs(words_of(last) + added, Path(folder))}")
    return line, "".join(parts).replace(str(ROOT), "ROOT")


def words_of(step: str) -> list[str]:
    """The words of a command, files of the repository by their path."""
    return [
        str(ROOT / one) if one.startswith(("examples/", "fuzz/")) else one
        for one in shlex.split(step)
    ]


def outputs(words: list[str], folder: Path) -> str:
    """What one command line prints and writes when it runs in a folder."""
    from opticoll import waiting
    from opticoll.main import main

    waiting.LINE_S = threading.TIMEOUT_MAX  # a slow machine adds no lines
    out, err = io.StringIO(), io.StringIO()
    os.chdir(folder)
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(words)
    os.chdir(ROOT)
    text = out.getvalue()
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.suffix in {".csv", ".plan", ".json", ".xml", ".goal", ".tit"}:
            text += f"#### {path.relative_to(folder)}\n{path.read_text()}"
        if path.suffix == ".html":
            text += f"#### {path.relative_to(folder)}\n{content_of(path.read_text())}\n"
    return f"{text}#### exit code {code}\n{err.getvalue()}"


def content_of(page: str) -> str:
    """What a page of `report` holds, without the scripts that show it."""
    found = re.search(r'<script id="content" type="application/json">(.*?)</script>', page, re.S)
    held = json.loads(found[1]) if found else {}
    return "\n".join(
        f"{name}: {json.dumps(value)}" for part in held["parts"] for name, value in part.items()
    )


def place(line: str) -> Path:
    """The file of a case: its words, without what file names cannot hold."""
    command = command_of(line)
    rest = line.partition(" ")[2] if line.split()[0] == command else line
    return EXPECTED / command / (re.sub(r"[^a-z0-9_.=,+-]+", " ", rest.lower()).strip() + ".txt")


def difference(expected: str, found: str, most: int) -> str:
    """The lines that differ, at most so many."""
    lines = difflib.unified_diff(
        expected.splitlines(), found.splitlines(), "expected", "found", n=1
    )
    shown = list(lines)
    more = f"\n  and {len(shown) - most} lines more" if len(shown) > most else ""
    return "\n".join(line[:300] for line in shown[:most]) + more


def main() -> int:
    """Compare, or accept; see the module's text."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("commands", nargs="*", help="compare only the cases of these commands")
    parser.add_argument("--accept", action="store_true", help="write what is found as expected")
    parser.add_argument("--show", action="store_true", help="print whole differences")
    asked = parser.parse_args()
    lines = [
        line for line in command_lines() if not asked.commands or command_of(line) in asked.commands
    ]
    os.environ["COLUMNS"] = "80"
    differing = 0
    with multiprocessing.Pool(os.cpu_count()) as pool:
        for line, found in pool.imap(run, lines, chunksize=4):
            path = place(line)
            expected = path.read_text() if path.exists() else ""
            if found == expected:
                continue
            differing += 1
            print(f"opticoll {line}")
            if asked.accept:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(found)
            else:
                print(difference(expected, found, 10**6 if asked.show else SHOWN_LINES))
    known = {place(line) for line in command_lines()}
    for path in sorted(set(EXPECTED.rglob("*.txt")) - known):
        print(f"{path.relative_to(ROOT)} belongs to no case")
        if asked.accept:
            path.unlink()
    word = "accepted" if asked.accept else "differ"
    print(f"{len(lines)} cases, {differing} {word}", file=sys.stderr)
    return int(differing > 0 and not asked.accept)


if __name__ == "__main__":
    sys.exit(main())
