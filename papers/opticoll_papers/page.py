"""The page of a paper: a table with a row for each of its items, then how each was computed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from opticoll_papers.judging import MEANINGS, Finding, Verdict

_RULES: dict[Verdict, str] = {
    "not_done": "Not computed",
    "not_reproducible": "The paper does not state",
}
"""What `criterion` holds where nothing is judged."""


def page(title: str, findings: Sequence[Finding]) -> str:
    """Items of a paper with their verdicts, as Markdown."""
    counts = Counter(one.verdict for one in findings)
    lines = [
        f"# {title}",
        "",
        "| verdict | items | meaning |",
        "|---|---|---|",
        *(
            f"| {name} | {counts[name]} | {text} |"
            for name, text in MEANINGS.items()
            if counts[name]
        ),
        "",
        "`printed` is a value of the paper, or one that a formula or words of the paper give: the",
        "item then says which. A command prints the computed value, or writes its table.",
        "",
        "## Items",
        "",
        "| place | the paper says | printed | computed | unit | verdict | margin | item |",
        "|---|---|---|---|---|---|---|---|",
        *(_line(one) for one in findings),
        "",
        "## How each was computed and judged",
        "",
        *(line for one in findings for line in _how(one)),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _line(one: Finding) -> str:
    cells = (
        one.where,
        one.claim,
        _value(one.paper),
        _value(one.computed),
        one.unit,
        one.verdict,
        one.margin,
        f"[{one.id}](#{_anchor(one.id)})",
    )
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _how(one: Finding) -> Iterator[str]:
    yield f"### {one.id}"
    yield ""
    yield f"{_RULES.get(one.verdict, 'Criterion')}: {one.criterion}."
    yield ""
    if one.note:
        yield one.note
        yield ""
    if one.verdict not in ("not_done", "not_reproducible"):
        yield f"Command: `{one.command}`"
        yield ""


def _value(value: float | str | None) -> str:
    if value is None:
        return "-"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _anchor(id: str) -> str:
    """The anchor of a heading, as Markdown processors make it: without dots."""
    return id.lower().replace(".", "")
