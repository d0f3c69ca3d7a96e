"""Writes docs/papers, and the tables of answers in docs/papers.md and README.md, from full runs.

opticoll reproduce --output reproduced
python papers/pages.py reproduced
"""

from __future__ import annotations

import csv
import re
import shutil
import sys
from pathlib import Path

from opticoll_papers import PAPERS
from opticoll_papers.page import answer_of, filled

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "docs" / "papers"
TABLE = re.compile(r"(<!-- answers -->\n).*?(<!-- end -->)", re.DOTALL)


def write(reproduced: Path) -> None:
    """Copies the pages and figures of a run, and fills in the tables of answers."""
    rows = []
    for name, paper in PAPERS.items():
        folder = reproduced / name
        answer = answer_of(name)
        text = (folder / "answer.md").read_text(encoding="utf-8")
        text = text.replace(f"({answer.figure}.svg)", f"({name}.svg)")
        text = text.replace("(claims.md)", f"({name}-items.md)")
        (PAGES / f"{name}.md").write_text(text, encoding="utf-8")
        shutil.copy(folder / "claims.md", PAGES / f"{name}-items.md")
        shutil.copy(folder / f"{answer.figure}.svg", PAGES / f"{name}.svg")
        with (folder / "findings.csv").open(encoding="utf-8", newline="") as file:
            values = {row["id"]: row["computed"] or None for row in csv.DictReader(file)}
        rows.append((paper.title, name, answer.question, filled(answer.verdict, values)))
    tables = {ROOT / "docs" / "papers.md": "papers", ROOT / "README.md": "docs/papers"}
    for page, place in tables.items():
        lines = ["| question | paper | answer |", "|---|---|---|"]
        for title, name, question, verdict in rows:
            lines.append(f"| {question} | [{title}]({place}/{name}.md) | {verdict} |")
        table = "\n".join(lines)
        text = page.read_text(encoding="utf-8")
        page.write_text(TABLE.sub(rf"\g<1>{table}\n\g<2>", text), encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
