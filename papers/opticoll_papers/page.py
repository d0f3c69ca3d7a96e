"""The pages of a paper: its answer on one screen, and a table of all its items behind it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files

from ruamel.yaml import YAML

from opticoll_papers.judging import MEANINGS, Finding, Verdict, claim_verdicts

_RULES: dict[Verdict, str] = {
    "not_done": "Not computed",
    "not_reproducible": "The paper does not state",
}
"""Headings of `criterion` for claims that are not judged."""


@dataclass(frozen=True)
class Answer:
    """Answer of a paper; `{claim}` in its sentences stands for the computed value of a claim.

    `headline` is what the paper prints, `needs` what verified plans give, `figure` the name of a
    figure of the study, `why` the reasons for the verdict, `command` shows it in seconds.
    """

    question: str
    headline: str
    needs: str
    figure: str
    caption: str
    verdict: str
    why: Sequence[str]
    command: str


def answer_of(paper: str) -> Answer:
    """Reads the answer of a paper from its file `answer.yaml`."""
    text = files("opticoll_papers").joinpath(paper, "answer.yaml").read_text(encoding="utf-8")
    return Answer(**YAML(typ="safe").load(text))


def answer_page(
    title: str, answer: Answer, findings: Sequence[Finding], *, figure: str, items: str
) -> str:
    """Returns the answer on one screen, as Markdown; `figure` and `items` are links."""
    values = {one.id: one.computed for one in findings}
    parts = [
        f"# {title}",
        f"**Question.** {answer.question}",
        f"**As printed.** {answer.headline}",
        f"**Verdict.** {filled(answer.verdict, values)}",
        f"**What verified plans need.** {filled(answer.needs, values)}",
        f"![{answer.caption}]({figure})",
        f"*{answer.caption}*",
        "\n".join(f"- {filled(reason, values)}" for reason in answer.why),
        "To see it:",
        f"```\n{answer.command}\n```",
        f"[All items of the paper]({items}), each with its verdict.",
    ]
    return "\n\n".join(parts) + "\n"


_VALUE = re.compile(r"\{([\w.]+)(?:\[(\d)\])?\}")


def filled(text: str, values: Mapping[str, float | str | None]) -> str:
    """Returns a text with the computed values in place of the names of claims.

    Raises
    ------
    KeyError
        There is no such claim.
    """

    def shown(match: re.Match[str]) -> str:
        given = values[match[1]]
        if given is None:
            return "(left out)"
        numbers = [float(one) for one in str(given).split(", ")]
        number = numbers[int(match[2] or 0)]
        # The digits after a ratio's 1 are the information, so a ratio near 1 has more digits.
        is_ratio = not text.startswith(" %", match.end())
        digits = 5 if is_ratio and abs(number - 1) < 0.05 else 3
        return f"{number:,.0f}" if number == round(number) else f"{number:.{digits}g}"

    return _VALUE.sub(shown, text)


def page(title: str, findings: Sequence[Finding]) -> str:
    """Items of a paper with their verdicts, as Markdown."""
    counts = Counter(claim_verdicts(findings).values())
    lines = [
        f"# {title}",
        "",
        "| verdict | claims | meaning |",
        "|---|---|---|",
        *(
            f"| {name} | {counts[name]} | {text} |"
            for name, text in MEANINGS.items()
            if counts[name]
        ),
        "",
        "A claim that the paper leaves open has an item for each reading, and is counted once.",
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
        value(one.paper),
        value(one.computed),
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
    if one.command:
        yield f"Command: `{one.command}`"
        yield ""


def value(given: float | str | None) -> str:
    """Returns a printed or computed value with six digits."""
    if given is None:
        return "-"
    return f"{given:.6g}" if isinstance(given, float) else str(given)


def _anchor(id: str) -> str:
    """Returns the anchor of a heading, as Markdown processors make it: without dots."""
    return id.lower().replace(".", "")
