"""Writes the reference pages of the site from records: `docs/conf.py` calls it before it builds.

The pages stand in `docs/reference`, which is not kept: whatever has a name is listed by its record.
"""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

import opticoll
from opticoll.cli.main import main
from opticoll.commands import GROUPS
from opticoll.outputs.records import OptionRow, RecordRow

FOLDER = Path(__file__).parent / "reference"
COLUMNS = "80"
"""Width of help texts, in characters."""

KINDS = {
    "fabrics": "A fabric is written `family:option=value,...`, for example "
    "`wdm_ring:ranks=64,wavelengths=16`. [Fabrics](../fabrics.md) describes the families.",
    "presets": "A preset is a fabric whose options are set; write other values behind it, for "
    "example `optree_paper:ranks=512`.",
    "algorithms": "An algorithm is written `name:option=value,...`, for example `optree:depth=3`. "
    "[Steps and volumes](../algorithms.md) are formulas on a page of their own.",
    "simulators": "`--simulator` names a simulator; each fabric has a default.",
    "policies": "`--policy` says when a reconfiguration is charged.",
    "start_rules": "`--start` says when a message of an electrical fabric may start.",
    "settings": "Settings are options of the command line, fields of scenario files and keyword "
    "arguments of Python.",
    "burst_settings": "Settings of optical bursts, for `opticoll traffic --simulator burst`.",
    "congestion_settings": "Settings of collectives whose circuits bursts can block, for "
    "`opticoll congestion`.",
    "congestion_policies": "`--congestion` names the reaction to a blocked request.",
    "collectives": "The size of a collective counts the bytes that stand here.",
    "wavelengths": "`--wavelength` says how wavelengths are assigned.",
    "models": "`opticoll train --model` takes these.",
    "devices": "`opticoll train --device` takes these.",
    "skews": "`--expert-skew` of `opticoll train` and `opticoll experts` takes these rules for the "
    "weights of experts. [Skews](../experts.md#skews) explains them.",
    "components": "A loss of a fabric may name a component, such as `switch_loss=palomar`; see "
    "[Loss of light](../loss.md). [Cost and power](../cost-and-power.md) explains sums of power. "
    "Each line is the value of one source.",
}

TITLES = {
    "fabrics": "Options of fabrics",
    "algorithms": "Options of algorithms",
    "wavelengths": "Wavelength rules",
}
"""Titles that differ from the kind's name, which a page of concepts has already."""


def write() -> None:
    """Writes all pages."""
    FOLDER.mkdir(exist_ok=True)
    for kind, head in KINDS.items():
        _keep(kind, "\n".join(_page(kind, head)))
    _keep("commands", "\n".join(_commands()))


def _keep(name: str, text: str) -> None:
    """Writes a page if it changed, so that Sphinx does not read unchanged pages again."""
    path = FOLDER / f"{name}.md"
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def _page(kind: str, head: str) -> Iterator[str]:
    yield from (f"# {TITLES.get(kind, kind.replace('_', ' ').capitalize())}", "", head, "")
    rows = opticoll.records(kind)
    for collective, own in groupby(rows, key=lambda row: row.collective):
        if collective:
            yield from (f"## {collective}", "")
        for row in own:
            yield from (f"{'###' if collective else '##'} {row.name}", "", _summary(kind, row), "")
            if kind == "components":
                yield from _values(row.options)
            elif row.options:
                yield from _options(row.options, "property" if "settings" in kind else "option")
            if row.citation:
                yield from (f"Source: {row.citation}", "")


def _summary(kind: str, row: RecordRow) -> str:
    """Returns the definition of a name; for a collective, the definition of its size."""
    return f"Size: {row.summary}." if kind == "collectives" else f"{row.summary}."


def _options(options: Sequence[OptionRow], head: str) -> Iterator[str]:
    """Yields a table with a line for each name, without `help`."""
    stated = any(one.range or one.required for one in options)
    heads = [head, "meaning", *(["unit", "values", "default", "source"] if stated else [])]
    yield from (f"| {' | '.join(heads)} |", "|---" * len(heads) + "|")
    shown = [one for one in options if one.name != "help"]
    for name in dict.fromkeys(one.name for one in shown):
        own = [one for one in shown if one.name == name]
        default = "required" if own[0].required else own[0].default
        more = [own[0].unit, own[0].range, default, own[0].source] if stated else []
        cells = [f"`{name}`", ", ".join(one.meaning for one in own), *(text or "" for text in more)]
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
    yield ""


def _values(values: Sequence[OptionRow]) -> Iterator[str]:
    """Yields a table with a line for each value of a component."""
    if not values:
        yield from ("No source for a value was found.", "")
        return
    yield from ("| property | value | unit | condition | source |", "|---|---|---|---|---|")
    for one in values:
        yield f"| {one.name} | {one.range} | {one.unit} | {one.meaning} | {one.source} |"
    yield ""


def _commands() -> Iterator[str]:
    yield from ("# Commands", "", "Every command has `--help`, `--help-all` and `--json`.", "")
    for group, commands in GROUPS.items():
        yield from (f"## {group}", "")
        for name, summary in commands.items():
            yield from (f"### {name}", "", summary, "", "```text", _help(name), "```", "")


def _help(name: str) -> str:
    text = io.StringIO()
    os.environ["COLUMNS"] = COLUMNS
    with contextlib.redirect_stdout(text):
        main([name, "--help-all"])
    return "\n".join(line.rstrip() for line in text.getvalue().strip().splitlines())


if __name__ == "__main__":
    write()
