"""Time over bound of every collective on the fabrics of light, as a page.

    python validation/gap_table.py --store gaps.sqlite --out docs/gap-table.md

The study `gaps.yaml` plans each entry with `auto`, verifies and times it; the store keeps what is
computed, so that the command may be stopped and called again. Gaps above 15 % need a sentence in
`gap_reasons.yaml`.
"""

from __future__ import annotations

import argparse
import csv
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

from opticoll import layout

HERE = Path(__file__).parent
STUDY = HERE / "gaps.yaml"
REASONS = HERE / "gap_reasons.yaml"
MOST = 15.0

HEADING = ("collective", "size", "policy", "slots", "time", "bound", "gap", "plan", "note")

INTRODUCTION = """\
# How far plans are from their bounds

Each row is a collective of a size on a fabric under a policy, planned by `auto:effort=full`. No plan is faster than the
bound under the assumption that `opticoll bound` prints, and the gap is (time - bound) / bound. Every plan was verified. A gap above 15 % has a note, and the note says what is missing.

`python validation/gap_table.py --store gaps.sqlite --out docs/gap-table.md` computes the study
`validation/gaps.yaml` and writes this page.
"""  # noqa: E501


@dataclass(frozen=True)
class Entry:
    """A collective of a size on a fabric under a policy: the plan of `auto` and its bound."""

    fabric: str
    collective: str
    size: str
    policy: str
    slots: int
    seconds: float
    bound: float
    chosen: str

    @property
    def gap(self) -> float:
        """What the plan takes beyond its bound, in percent of it."""
        return 100 * (self.seconds / self.bound - 1) if self.bound else 0.0


@dataclass(frozen=True)
class Reason:
    """Which entries a sentence is about; an empty list stands for all."""

    sentence: str
    fabrics: tuple[str, ...]
    collectives: tuple[str, ...]
    policies: tuple[str, ...]
    sizes: tuple[str, ...]

    def is_about(self, entry: Entry) -> bool:
        """Whether the sentence is about an entry."""
        return (
            (not self.fabrics or any(entry.fabric.startswith(name) for name in self.fabrics))
            and (not self.collectives or entry.collective in self.collectives)
            and (not self.policies or entry.policy in self.policies)
            and (not self.sizes or entry.size in self.sizes)
        )


def reasons() -> list[Reason]:
    """The sentences, in the order of their notes."""
    rows = yaml.safe_load(REASONS.read_text(encoding="utf-8"))
    keys = ("fabrics", "collectives", "policies", "sizes")
    return [Reason(row["sentence"], *(tuple(row.get(key, ())) for key in keys)) for row in rows]


def computed(store: Path) -> list[Entry]:
    """The entries of the study, those computed that the store does not have."""
    command = [sys.executable, "-m", "opticoll"]
    subprocess.run([*command, "sweep", str(STUDY), "--store", str(store)], check=True)
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "gaps.csv"
        subprocess.run([*command, "results", str(store), "--csv", str(table)], check=True)
        with table.open(encoding="utf-8", newline="") as lines:
            return [entry(row) for row in csv.DictReader(lines)]


def entry(row: dict[str, str]) -> Entry:
    """The entry of a row of results."""
    assert row["verified"] == "true", f"{row['collective']} on {row['fabric']}: not verified"
    return Entry(
        fabric=row["axis_fabric"],
        collective=row["axis_collective"],
        size=row["size"],
        policy=row["axis_policy"],
        slots=int(row["steps"]),
        seconds=float(row["time_s"]),
        bound=float(row["bound_time_s"] or 0),
        chosen=row["chosen"],
    )


def page(entries: list[Entry], sentences: list[Reason]) -> str:
    """The page in Markdown.

    Raises:
        ValueError: An entry above 15 % without a sentence.
    """
    used = sorted({note(one, sentences) for one in entries} - {0})
    numbers = {place: number for number, place in enumerate(used, 1)}
    lines = [INTRODUCTION, *summary(entries), "## What is missing", ""]
    lines += [f"{numbers[place]}. {sentences[place - 1].sentence}" for place in used]
    for fabric in dict.fromkeys(one.fabric for one in entries):
        lines += ["", f"## {fabric}", "", *table(fabric, entries, sentences, numbers)]
    return "\n".join(lines) + "\n"


def note(one: Entry, sentences: list[Reason]) -> int:
    """The place of an entry's sentence, from 1 on; 0 where it needs none."""
    if one.gap <= MOST:
        return 0
    for place, reason in enumerate(sentences, 1):
        if reason.is_about(one):
            return place
    raise ValueError(
        f"{one.collective} of {one.size} on {one.fabric} under {one.policy} is {one.gap:.0f} % "
        f"above its bound: {REASONS.name} has no sentence for it"
    )


def summary(entries: list[Entry]) -> Iterator[str]:
    """How many entries of each fabric and policy are within 15 %."""
    yield from ("| fabric | policy | rows | within 15 % | greatest gap |", "|---|---|--:|--:|--:|")
    for fabric, policy in dict.fromkeys((one.fabric, one.policy) for one in entries):
        own = [one for one in entries if (one.fabric, one.policy) == (fabric, policy)]
        near = sum(one.gap <= MOST for one in own)
        greatest = max(one.gap for one in own)
        yield f"| `{fabric}` | `{policy}` | {len(own)} | {near} | {greatest:.0f} % |"
    yield ""


def table(
    fabric: str, entries: list[Entry], sentences: list[Reason], numbers: dict[int, int]
) -> Iterator[str]:
    """The rows of a fabric."""
    yield f"| {' | '.join(HEADING)} |"
    yield "|---|--:|---|--:|--:|--:|--:|---|---|"
    collectives = list(dict.fromkeys(one.collective for one in entries))
    sizes = list(dict.fromkeys(one.size for one in entries))
    own = [one for one in entries if one.fabric == fabric]
    # Policies side by side.
    own.sort(key=lambda one: (collectives.index(one.collective), sizes.index(one.size)))
    for one in own:
        place = note(one, sentences)
        cells = (
            one.collective,
            "-" if one.collective == "barrier" else one.size,
            f"`{one.policy}`",
            str(one.slots),
            layout.human_seconds(one.seconds),
            layout.human_seconds(one.bound),
            f"{one.gap:.1f} %",
            f"`{one.chosen}`",
            f"{numbers[place]}" if place else "",
        )
        yield f"| {' | '.join(cells)} |"


def main() -> int:
    """Write the page; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", type=Path, required=True, help="the store of the study")
    parser.add_argument("--out", type=Path, help="write the page here")
    arguments = parser.parse_args()
    entries = computed(arguments.store)
    text = page(entries, reasons())
    if arguments.out is not None:
        arguments.out.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
