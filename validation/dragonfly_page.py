"""Fills the tables of docs/dragonfly.md, draws its figures, and writes the page of items.

    opticoll reproduce dragonfly --output reproduced/dragonfly
    python validation/dragonfly_page.py --cases reproduced/dragonfly/cases.csv
    cargo run --release --example dragonfly_peer -- single W1 W2 W4 sweep scatter > peer.txt
    python validation/dragonfly_page.py --peer peer.txt

`--cases` keeps a copy of the cases beside the figures; without it that copy is taken. The page of
items, docs/papers/dragonfly-items.md, is what the command writes as claims.md. The example
runs the workloads whose results CODES gave (a minute).
Whatever lies between `<!-- NAME -->` and `<!-- end -->` in the page is replaced.
"""

from __future__ import annotations

import argparse
import csv
import re
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast, get_type_hints

from opticoll_papers import PAPERS, dragonfly
from opticoll_papers.common import Results, Table
from opticoll_papers.dragonfly.cases import FULL, Case, Cut, all_cases, fabric
from opticoll_papers.dragonfly.runs import Row
from opticoll_papers.judging import MEANINGS, Finding
from opticoll_papers.page import page

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "dragonfly.md"
ITEMS = ROOT / "docs" / "papers" / "dragonfly-items.md"
FIGURES = ROOT / "docs" / "figures"
CASES = FIGURES / "dragonfly_cases.csv"

DRAWN = ("all_gather", "all_gather_background", "scatter", "scatter_buffers", "fluid",
         "loads_bruck", "loads_bruck_shuffled")  # fmt: skip

VERDICTS = {
    "claim_holds": "holds",
    "conditional": "holds under a reading",
    "undecided": "fails under a reading",
    "refuted": "does not hold",
}
"""Verdicts of claims that were judged, in words."""


@dataclass(frozen=True)
class Cell:
    """A value beside CODES's value; `percent` is the difference."""

    case: str
    quantity: str
    ours: str
    peer: str
    percent: float

    @property
    def tolerance(self) -> float:
        """Percent within which the value agrees, by the kind of the workload."""
        if self.case == "single":
            return 1.0
        if self.case.startswith("W1"):
            return 2.0 if "Minimal" in self.case else 3.0
        if self.case.startswith(("W2", "W4")):
            return 1.0
        return 5.0 if "background=true" in self.case else 2.0


REASONS: Sequence[tuple[str, str, str]] = (
    # Pattern of the case, of the quantity, and why they disagree.
    (r"^single$", r"^8 B to [16] ",
     "CODES adds 13 to 20 random delays of at most 0.5 or 1 ns each, together about 1 % of the"
     " time of such a short message. The value of CODES lies in the range of opticoll's values"
     " with random delays, which stands in brackets."),
    (r"^W1 1056 NonMinimal", r"^max ",
     "The value is the longest of 105 600 messages. The one known run of CODES lies outside "
     "the range of opticoll's values over 20 seeds (next section), and the reason is not "
     "known. The means agree."),
    (r"^W1 .*", r"^max ",
     "The value is the longest of up to 105 600 messages, in one run of CODES. The next "
     "section has the range of opticoll's values over 20 seeds. The means agree."),
    (r"^W4 1056 NonMinimal", r".*",
     "The randomly chosen groups determine the most loaded link. The next section has the "
     "range of opticoll's values over 20 seeds. The mean agrees."),
    (r"^W2 .*", r"^max ",
     "The value is the longest of a million messages, with CODES's random delays."),
    (r"^sweep 1056 64 B bruck shuffled", r".*",
     "Chunks of many ranks arrive at routers at the same instant. Without jitter, routers "
     "forward them in the order of the schedule, which is faster. With `--jitter 1` the time "
     "agrees to within 2 % (a test)."),
    (r"^sweep 1056 1024 B bruck shuffled", r".*",
     "Chunks of many ranks arrive at routers at the same instant, and the order in which "
     "routers forward them determines the time. The next section has the range over 20 seeds."),
    (r"^sweep 72 4096 B ring natural", r".*",
     "Two streams of chunks meet on the link that every block passes twice. Either each chunk "
     "is chosen when it arrives (104.5 us in total). Or, once two chunks arrive almost at the "
     "same time, the router chooses by priority whenever the link is free, as long as chunks "
     "wait (111 to 115 us). Without random delays no two chunks arrive so close together. With"
     " random delays most seeds give the second case, as in CODES; see the next section."),
)  # fmt: skip


def peer_cells(printed: str) -> Iterator[Cell]:
    """Yields the values that the example printed, a cell each."""
    case = "single"
    for line in printed.splitlines()[1:]:
        value = re.match(r"    (.+?)\s+([\d.]+)\s+([\d.]+)\s+([-+][\d.]+) %$", line)
        if value is not None:
            quantity, ours, peer, percent = value.groups()
            yield Cell(case, quantity, ours, peer, float(percent))
        else:
            case = line.split(":")[0].strip()


def reason(cell: Cell) -> str | None:
    """Returns why a cell disagrees; None if it agrees.

    Raises ValueError for a disagreement without a reason.
    """
    if abs(cell.percent) <= cell.tolerance:
        return None
    for case, quantity, why in REASONS:
        if re.search(case, cell.case) and re.search(quantity, cell.quantity):
            return why
    raise ValueError(f"{cell} disagrees, and nobody has said why")


def peer_table(cells: Sequence[Cell]) -> str:
    """Returns the cells as a table, with the reasons below."""
    why: list[str] = []
    lines = []
    for cell in cells:
        found = reason(cell)
        mark = ""
        if found is not None:
            why = why if found in why else [*why, found]
            mark = f" ({why.index(found) + 1})"
        lines.append([cell.case, cell.quantity, _short(cell.ours), _short(cell.peer),
                      f"{cell.percent:+.2f} %{mark}"])  # fmt: skip
    within = sum(abs(cell.percent) <= cell.tolerance for cell in cells)
    table = markdown(["workload", "quantity", "opticoll", "CODES", "difference"], lines, {2, 3, 4})
    notes = [f"{number}. {text}" for number, text in enumerate(why, start=1)]
    head = (
        f"{within} of {len(cells)} values agree. For each other value, the number in "
        "parentheses refers to a reason below the table."
    )
    return "\n\n".join([head, table, *notes])


def _short(number: str) -> str:
    return f"{float(number):.6g}"


def read_cases(path: Path) -> dict[Case, Row]:
    """Reads the rows that `reproduce` wrote, by their cases."""
    networks = {fabric(network).ranks: network for network in (2, 4, 6)}
    rows: dict[Case, Row] = {}
    with path.open(encoding="utf-8", newline="") as file:
        for texts in csv.DictReader(file):
            row = _row(texts)
            cut = Cut(row["packet_bytes"], row["chunk_bytes"], row["buffers"])
            case = Case(
                networks[row["terminals"]],
                row["collective"],
                row["algorithm"],
                row["size_bytes"],
                cut,
                cast(Any, row["rule"]),
                bool(row["background"]),
                row["simulator"],
                row["variant"],
            )
            rows[case] = row
    return rows


def _row(texts: Mapping[str, str]) -> Row:
    """Converts text to the types of `Row`; an empty field that is no text becomes None."""
    kinds = get_type_hints(Row)
    values: dict[str, object] = {}
    for name, text in texts.items():
        kind = str(kinds[name])
        if "str" in kind:
            values[name] = text
        elif "bool" in kind:
            values[name] = text == "true"
        elif not text:
            values[name] = None
        else:
            values[name] = float(text) if "float" in kind else int(text)
    return cast(Row, values)


def study_sections(results: Results) -> dict[str, str]:
    """Returns the sections of the page that the study fills."""
    tables = {
        "gathers": "Time of all_gather",
        "scatters": "Time of scatter",
        "buffers": "with other buffers",
        "fluid": "the fluid simulator against packets",
        "predictions": "predictions by flows",
        "energy": "energy on links",
    }
    found = {}
    for name, words in tables.items():
        (table,) = (table for table in results.tables if words in table.title)
        found[name] = table_markdown(table)
    judged = [one for one in results.findings if one.verdict in VERDICTS]
    for name, place in {"all_gather": "AllGather", "scatter": "Scatter", "discussion": "D"}.items():
        own = [one for one in judged if one.where.startswith(place)]
        found[f"findings {name}"] = findings_markdown(own)
    (both,) = (one for one in results.findings if one.id == "settings.together")
    first, second, of = str(both.computed).split(", ")
    found["together"] = (
        f"Of {of} claims that are judged under both rules, {first} hold if routers are pipelines "
        f"and {second} if a router's delay occupies its port."
    )
    counts = Counter(one.verdict for one in results.findings)
    found["counts"] = (
        f"Of {len(results.findings)} items: "
        + ", ".join(f"{counts[name]} `{name}`" for name in MEANINGS if counts[name])
        + "."
    )
    return found


def table_markdown(table: Table) -> str:
    """Returns a table of a study with its title."""
    title = table.title.removeprefix("Not in the poster: ")
    title = re.sub(r" \(\w+\.csv\)", "", title)
    return f"{title[0].upper()}{title[1:]}:\n\n" + markdown(
        table.heading, table.rows, set(table.right)
    )


def findings_markdown(findings: Sequence[Finding]) -> str:
    """Returns the poster's statements beside the computed values, with the verdicts."""
    lines = []
    for one in findings:
        computed = f"{one.computed:.4g}" if isinstance(one.computed, float) else str(one.computed)
        verdict = f"**{VERDICTS[one.verdict]}**"
        criterion = one.criterion.split(":")[0]
        lines.append([f"`{one.id}`", one.claim, f"{computed} {one.unit}", criterion, verdict])
    return markdown(["item", "the poster says", "computed", "criterion", "verdict"], lines, set())


def markdown(heading: Sequence[str], rows: Sequence[Sequence[str]], right: set[int]) -> str:
    """Returns a table in Markdown."""
    rule = ["--:" if index in right else "---" for index in range(len(heading))]
    lines = [heading, rule, *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def fill(page: str, sections: Mapping[str, str]) -> str:
    """Replaces sections of the page; raises ValueError if the page lacks a section."""
    for name, text in sections.items():
        pattern = re.compile(rf"(<!-- {re.escape(name)} -->\n).*?(<!-- end -->)", re.DOTALL)
        if pattern.search(page) is None:
            raise ValueError(f"the page has no section `{name}`")
        page = pattern.sub(lambda found, text=text: f"{found[1]}{text}\n{found[2]}", page, count=1)
    return page


def study(path: Path, folder: Path) -> Results:
    """Computes the study from its cases and draws it into a folder."""
    rows = read_cases(path)
    return dragonfly.conclude(
        Results(folder, "dragonfly"), {case: rows[case] for case in all_cases(FULL)}, FULL
    )


def items(results: Results) -> str:
    """Returns the page of all items, as the command writes it."""
    return page(PAPERS["dragonfly"].title, results.findings)


def main() -> int:
    """Fills the page; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=Path, default=CASES)
    parser.add_argument("--peer", type=Path)
    arguments = parser.parse_args()
    if arguments.peer is not None:
        printed = arguments.peer.read_text(encoding="utf-8")
        sections = {"peer": peer_table(list(peer_cells(printed)))}
    else:
        with tempfile.TemporaryDirectory() as folder:
            results = study(arguments.cases, Path(folder))
            sections = study_sections(results)
            ITEMS.write_text(items(results), encoding="utf-8")
            for name in DRAWN:
                shutil.copy(Path(folder, f"{name}.svg"), FIGURES / f"dragonfly_{name}.svg")
        if arguments.cases != CASES:
            shutil.copy(arguments.cases, CASES)
    PAGE.write_text(fill(PAGE.read_text(encoding="utf-8"), sections), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
