"""Drawn plans on graphs of fibres and their mutants: both verifiers give the same verdict.

    python validation/fibre_mutants.py                     100,000 plans and mutants
    python validation/fibre_mutants.py --first 5 --last 9  those of five numbers of the generator

Each number gives a plan and four mutants of this plan (`tests/fibre_plans.py`). The program prints
how many are sound, broken and refused, and each kind of problem with its number. It fails where the
verifiers name different kinds of problems, and prints such a plan with as few transfers as it can.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from fibre_plans import cases, judged


def shrunk(text: str) -> str:
    """Returns a plan without the transfers that the disagreement of the verifiers does not need."""
    lines = text.splitlines()
    at = len(lines)
    while at > 0:
        at -= 1
        if lines[at].startswith(("copy", "reduce")):
            end = f"end {int(lines[-1].split()[1]) - 1}"
            fewer = [*lines[:at], *lines[at + 1 : -1], end]
            if disagree("\n".join(fewer)):
                lines = fewer
    return "\n".join(lines)


def disagree(text: str) -> bool:
    core, reference = judged(text)
    return core != reference


def compared(first: int, last: int) -> Iterator[str]:
    """Compares verdicts; yields the differences, then the counts of fates and of problems."""
    fates: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    differences: Counter[str] = Counter()
    for number in range(first, last + 1):
        for text in cases(number):
            core, reference = judged(text)
            fates["refused" if core is None else "broken" if core else "sound"] += 1
            kinds.update(core or ())
            if core != reference:
                difference = "one reader refuses the plan"
                if core is not None and reference is not None:
                    only = sorted(core - reference), sorted(reference - core)
                    difference = f"only the core says {only[0]}, only the reference {only[1]}"
                differences[difference] += 1
                if differences[difference] == 1:
                    yield f"{number}: {difference}\n{shrunk(text)}\n"
    yield f"{fates.total()} plans and mutants: {dict(fates)}"
    yield f"problems: {dict(kinds.most_common())}"
    yield f"{differences.total()} different verdicts"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--first", type=int, default=0, help="first number (default: 0)")
    parser.add_argument("--last", type=int, default=19_999, help="last number (default: 19999)")
    given = parser.parse_args()
    line = ""
    for line in compared(given.first, given.last):
        print(line, flush=True)
    return 0 if line.startswith("0 ") else 1


if __name__ == "__main__":
    sys.exit(main())
