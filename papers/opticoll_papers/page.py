"""Pages of a paper: the answer on one screen, and a table of all claims."""

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
"""Headings of the column `criterion` for claims that are not judged, by verdict."""


@dataclass(frozen=True)
class Answer:
    """Answer of a paper; `{claim}` in a sentence is replaced by the computed value of this claim.

    `headline` is the paper's printed statement, and `needs` is the result of verified plans.
    `figure` is the name of a figure of the study. `why` are the reasons for the verdict. `command`
    shows the answer within seconds.
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
    """Reads the answer of a paper from the file `answer.yaml`."""
    text = files("opticoll_papers").joinpath(paper, "answer.yaml").read_text(encoding="utf-8")
    return Answer(**YAML(typ="safe").load(text))


def answer_page(
    title: str, answer: Answer, findings: Sequence[Finding], *, figure: str, items: str
) -> str:
    """Returns a page of one screen with the answer, as Markdown; `figure` and `items` are links."""
    values = {finding.id: finding.computed for finding in findings}
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
    """Replaces the names of claims in a text by the computed values.

    Raises
    ------
    KeyError
        The text names an unknown claim.
    """

    def shown(match: re.Match[str]) -> str:
        value_text = values[match[1]]
        if value_text is None:
            return "(left out)"
        numbers = [float(part) for part in str(value_text).split(", ")]
        number = numbers[int(match[2] or 0)]
        # A ratio near 1 gets more digits, since only the digits after 1 are informative.
        is_ratio = not text.startswith(" %", match.end())
        digits = 5 if is_ratio and abs(number - 1) < 0.05 else 3
        return f"{number:,.0f}" if number == round(number) else f"{number:.{digits}g}"

    return _VALUE.sub(shown, text)


def page(title: str, findings: Sequence[Finding]) -> str:
    """Returns a page of all claims with their verdicts, as Markdown."""
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
        "If a claim can be read in several ways, it has an item for each reading, and is counted",
        "once. `printed` is a value that the paper prints, or a value that follows from a formula",
        "or from words of the paper; the item then names them. The command of an item prints the",
        "computed value, or writes the table that contains it.",
        "",
        "## Items",
        "",
        "| place | the paper says | printed | computed | unit | verdict | margin | item |",
        "|---|---|---|---|---|---|---|---|",
        *(_line(finding) for finding in findings),
        "",
        "## How each was computed and judged",
        "",
        *(line for finding in findings for line in _how(finding)),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _line(finding: Finding) -> str:
    cells = (
        finding.where,
        finding.claim,
        value(finding.paper),
        value(finding.computed),
        finding.unit,
        finding.verdict,
        finding.margin,
        f"[{finding.id}](#{_anchor(finding.id)})",
    )
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _how(finding: Finding) -> Iterator[str]:
    yield f"### {finding.id}"
    yield ""
    yield f"{_RULES.get(finding.verdict, 'Criterion')}: {finding.criterion}."
    yield ""
    if finding.note:
        yield finding.note
        yield ""
    if finding.command:
        yield f"Command: `{finding.command}`"
        yield ""


def value(number: float | str | None) -> str:
    """Returns a printed or computed value as text with six digits."""
    if number is None:
        return "-"
    return f"{number:.6g}" if isinstance(number, float) else str(number)


def _anchor(id: str) -> str:
    """Returns the anchor of a heading as Markdown processors form it, without dots."""
    return id.lower().replace(".", "")
