"""HTML file of a report, which contains the parts with their style, scripts and Vega."""

from __future__ import annotations

import json
import os
import re
import string
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from pathlib import Path

from opticoll import _core
from opticoll.formats.atomic import make_folder, write_file
from opticoll.report import figures, parts
from opticoll.report.parts import Part

SCRIPTS = ("format.js", "table.js", "figures.js", "times.js", "plan.js", "main.js")
"""Scripts of the page; each depends only on scripts before it."""


def html(title: str, shown: Sequence[Part]) -> str:
    """Returns the HTML text of a page with these parts.

    Raises
    ------
    UsageError
        The package that contains Vega is not installed.
    """
    content = {
        "parts": [parts.plain(part) for part in shown],
        "templates": figures.templates(),
        "config": figures.CONFIG,
        "resolve": figures.RESOLVE,
        "caption": figures.CAPTION,
        "dashes": list(figures.DASHES.values()),
        "time_labels": figures.LABELS["s"],
    }
    return string.Template(_file("page.html")).substitute(
        title=escape(title),
        generator=f"opticoll {_core.__version__}",
        made=f"Made by opticoll {_core.__version__}.",
        style=_file("page.css"),
        library=figures.library().javascript_bundle(),
        content=_within_script(json.dumps(content, ensure_ascii=False, separators=(",", ":"))),
        script="\n".join(_file(name) for name in SCRIPTS),
    )


def write(title: str, shown: Sequence[Part], path: str | os.PathLike[str]) -> None:
    """Writes a page with these parts to a file.

    Raises
    ------
    UsageError
        The package that contains Vega is not installed.
    FileError
        The file cannot be written.
    """
    text = html(title, shown)
    write_file(path, text)


def write_figures(shown: Sequence[Part], folder: str | os.PathLike[str]) -> list[Path]:
    """Writes the figures of all parts as SVG files named after the parts; returns their paths.

    Raises
    ------
    UsageError
        The package that draws is not installed.
    FileError
        A file cannot be written.
    """
    target = make_folder(folder)
    written: list[Path] = []
    for number, part in enumerate(shown, 1):
        if part.figure is None:
            continue
        name = re.sub(r"[^\w.-]+", "-", part.title).strip("-.") or "figure"
        path = target / f"{name}.svg"
        if path in written:
            path = target / f"{name}-{number}.svg"
        write_file(path, figures.svg(part.figure))
        written.append(path)
    return written


def _file(name: str) -> str:
    return files("opticoll.report").joinpath("page", name).read_text(encoding="utf-8")


def _within_script(text: str) -> str:
    """Escapes JSON so that no text in it can end the enclosing `<script>` element."""
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
