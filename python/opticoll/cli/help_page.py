"""Help pages of commands as plain text, 80 columns wide."""

from __future__ import annotations

import shlex
import textwrap
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cyclopts.help import HelpEntry, HelpPanel
    from rich.console import Console, ConsoleOptions

MAX_WIDTH = 100
"""Maximum width of a page in columns; if the terminal's width is unknown, pages have 80."""

MAX_NAME_WIDTH = 28
"""Maximum width of the column of option names; texts of longer names start on the next line."""

MIN_NAME_WIDTH = 16
"""Minimum width of the column of option names, so that the panels align."""

METAVARS = {"STR": "TEXT", "INT": "N", "PATH": "FILE", "CHOICE": "NAME", "STR...": "TEXT"}
"""Placeholder for an option's value, by cyclopts' name of the value's type."""


class HelpPage:
    """Printer of help pages, which cyclopts calls for the usage, the description and each panel."""

    def render_usage(self, console: Console, options: ConsoleOptions, usage: Any) -> None:
        """Prints the usage line."""
        line = plain(usage).removeprefix("Usage: ")
        for kind, shown in METAVARS.items():
            line = line.replace(f" {kind} ", f" {shown} ")
        _print(console, f"Usage: {line}\n")

    def render_description(
        self, console: Console, options: ConsoleOptions, description: Any
    ) -> None:
        """Prints the summary of the command."""
        _print(console, *textwrap.wrap(plain(description), _width(console)), "")

    def __call__(self, console: Console, options: ConsoleOptions, panel: HelpPanel) -> None:
        """Prints a panel: a title, and then a paragraph per option."""
        if not panel.entries:
            return
        rows = [(label(entry), described(entry)) for entry in panel.entries]
        names = max(len(name) for name, _ in rows if len(name) <= MAX_NAME_WIDTH)
        names = max(names, MIN_NAME_WIDTH)
        _print(console, f"{plain(panel.title)}:", *paragraphs(rows, names, _width(console)), "")


def paragraphs(rows: list[tuple[str, str]], names: int, width: int) -> list[str]:
    """Returns lines of two columns: the names, and the wrapped texts.

    `names` is the width of the first column, in characters, and `width` the width of the lines.
    """
    margin = " " * (names + 4)
    lines = []
    for name, text in rows:
        wrapped = textwrap.wrap(text, width - len(margin), break_on_hyphens=False) or [""]
        if len(name) > names:
            lines.append(f"  {name}")
        else:
            wrapped[0] = f"  {name.ljust(names)}  {wrapped[0]}"
        first, *further = wrapped
        lines.append(first if len(name) <= names else margin + first)
        lines += [margin + line for line in further]
    return lines


def label(entry: HelpEntry) -> str:
    """Returns the names of an option with the placeholder of its value."""
    placeholder = METAVARS.get(entry.metavar or "", entry.metavar)
    return ", ".join(entry.copy(metavar=placeholder).display_labels_with_metavar)


def described(entry: HelpEntry) -> str:
    """Returns the description of an option with its default."""
    text = plain(entry.description)
    if entry.required:
        return f"{text} (required)"
    if entry.default in (None, "False") or "(default: " in text:
        return text
    default = entry.positive_names[0] if entry.default == "True" else entry.default
    return f"{text} (default: {default})"


def example(commands: str, width: int = 80) -> str:
    """Returns command lines for a shell, wrapped to `width` columns at blanks where possible.

    >>> print(example("opticoll plan all_gather --fabric optree_paper", 40))
    Example:
      opticoll plan all_gather \\
        --fabric optree_paper
    """
    lines = ["Example:"]
    if "examples/" in commands:
        lines = ["Example, in the folder of the source:"]
    for command in commands.splitlines():
        parts: list[str] = []
        for word in map(shlex.quote, shlex.split(command)):
            if parts and parts[-1].startswith("-") and " " not in parts[-1] and word[0] != "-":
                parts[-1] += f" {word}"
            else:
                parts.append(word)
        lines.append(" ")
        for part in parts:
            if len(lines[-1]) + len(part) + 3 > width and lines[-1].strip():
                lines[-1] += " \\"
                lines.append("   ")
            lines[-1] += f" {part}"
    return "\n".join(lines)


def plain(text: Any) -> str:
    """Returns the text of an object from cyclopts, without styles."""
    renderable = getattr(text, "primary_renderable", text)
    return str(
        getattr(renderable, "plain", None) or getattr(renderable, "markup", None) or renderable
    ).strip()


def _width(console: Console) -> int:
    return min(console.width, MAX_WIDTH)


def _print(console: Console, *lines: str) -> None:
    console.print("\n".join(lines), markup=False, highlight=False, soft_wrap=True)
