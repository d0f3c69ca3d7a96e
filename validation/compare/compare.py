"""Compares what two revisions compute on the cases of `cases.txt`: `make compare AGAINST=REV`.

Rows of `--json` are compared field by field, plan files and other files by their content. Each case
is also measured: the time of its plan (`time_ps`), the planner's work and its memory. The exit code
is 1 if data differ, a plan is slower, or work or memory grew, unless `accepted.yaml` says why.

Work is CPU time in user mode: few machines in a cloud count instructions. Other work on the machine
adds to CPU time, so a case that seems to need more is run twice more on both sides at once, and the
least of three values counts.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

import sides
from sides import CompareError, Measured

HERE = Path(__file__).parent

KINDS = ("exit code", "verdict", "slower", "faster", "data", "work", "memory")
"""Kinds of differences, the most important first."""

MAX_SLOWER = 0.005
"""Maximum relative growth of a plan's time that does not count as slower."""

MAX_GROWTH = 0.2
"""Relative growth of work and memory that is allowed."""

MIN_CPU_S = 0.1
"""CPU seconds by which work must grow to count: noise is less."""

MIN_MEMORY_MB = 50
"""Megabytes by which memory must grow to count."""

RERUNS = 2

TIMES = {"time_ps", "iteration_s"}
"""Fields that hold the time of a plan or of an iteration of training."""

ABSENT = "absent"

CLOCKED = {"time_s", "algorithm_bandwidth", "bus_bandwidth"}
"""Fields of `run` that a clock measures."""

NOT_COMPARED = {".sqlite"}
"""Endings of files whose content `results` shows."""


@dataclass(frozen=True)
class Difference:
    """A field of a case that differs; `change` is the relative growth of a measured value."""

    case: str
    kind: str
    field: str
    before: Any
    now: Any
    change: float | None = None
    reason: str | None = None

    @property
    def fails(self) -> bool:
        """True if the difference makes the comparison fail."""
        return self.kind != "faster" and self.reason is None

    def __str__(self) -> str:
        change = "" if self.change is None else f" ({self.change:+.1%})"
        reason = "" if self.reason is None else f"; accepted: {self.reason}"
        values = " -> ".join(shown(self.before, self.now))
        return f"{self.field}: {values}{change}{reason}"


@dataclass(frozen=True)
class Result:
    """Output of a case; `rows` are those of the last command, or its text."""

    codes: Sequence[int]
    rows: Any
    message: str
    files: Mapping[str, Any]


@dataclass(frozen=True)
class Accepted:
    """Differences that are wanted."""

    case: str
    field: str
    reason: str

    def matches(self, one: Difference) -> bool:
        """Returns whether the entry accepts a difference.

        A pattern matches fields only of differences of the kinds `faster` and `data`.
        """
        if not fnmatchcase(one.case, self.case):
            return False
        if one.kind in {"faster", "data"}:
            return fnmatchcase(one.field, self.field)
        return self.field in {one.field, field_name(one.field)}


def cases(text: str) -> list[str]:
    """Returns all cases of a text, with braces filled in."""
    lines = [line.strip() for line in text.splitlines()]
    return [one for line in lines if line and not line.startswith("#") for one in filled(line)]


def filled(line: str) -> Iterator[str]:
    """Expands braces: `a {b|c}` gives `a b` and `a c`."""
    braces = re.search(r"\{([^}]*)\}", line)
    if braces is None:
        yield line
        return
    for choice in braces[1].split("|"):
        yield from filled(line[: braces.start()] + choice + line[braces.end() :])


def shown(*values: Any) -> list[str]:
    """Values in at most 60 characters each; of longer texts the part from where they differ."""
    texts = [value if isinstance(value, str) else json.dumps(value) for value in values]
    if max(map(len, texts)) <= 60:
        return texts
    columns = enumerate(zip(*texts, strict=False))
    start = max(0, next((place for place, column in columns if len({*column}) > 1), 0) - 10)
    cut = [f"...{text[start:]}" if start else text for text in texts]
    return [text if len(text) <= 60 else f"{text[:57]}..." for text in cut]


def differing(before: Any, now: Any, field: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yields the fields that differ, such as `candidates.ring.steps`, with both values."""
    if isinstance(before, dict) and isinstance(now, dict):
        for key in {**before, **now}:
            inner = f"{field}.{key}" if field else str(key)
            yield from differing(before.get(key, ABSENT), now.get(key, ABSENT), inner)
    elif isinstance(before, list) and isinstance(now, list):
        yield from differing(keyed(before, now), keyed(now, before), field)
    elif isinstance(before, float) or isinstance(now, float):
        numbers = isinstance(before, (int, float)) and isinstance(now, (int, float))
        if not (numbers and math.isclose(before, now, rel_tol=1e-9)):
            yield field, before, now
    elif before != now or type(before) is not type(now):
        yield field, before, now


def keyed(values: list[Any], others: list[Any]) -> dict[Any, Any]:
    """Returns the values of a list by name or point of a study, if unique; by place otherwise."""
    for key in ("name", "point"):
        names = [
            {row[key] for row in rows if isinstance(row, dict) and key in row}
            for rows in (values, others)
        ]
        if list(map(len, names)) == [len(values), len(others)]:
            return {row[key]: row for row in values}
    return dict(enumerate(values))


def relative(before: float, now: float) -> float:
    """Returns the growth of a value, relative to its value before."""
    return now / before - 1 if before else math.inf if now else 0.0


def differences(case: str, before: Result, now: Result) -> list[Difference]:
    """Returns the differences between two results of a case.

    Rows of unequal exit codes are not compared.
    """
    if before.codes != now.codes or any(code < 0 for code in now.codes):
        old, new = (
            " ".join([*map(str, result.codes), result.message]).strip() for result in (before, now)
        )
        return [Difference(case, "exit code", "exit code", old, new)]
    found = [*differing(before.rows, now.rows)]
    if case.split(" && ")[-1].startswith("run "):
        found = [one for one in found if field_name(one[0]) not in CLOCKED]
    for name in {**before.files, **now.files}:
        contents = (before.files.get(name, ABSENT), now.files.get(name, ABSENT))
        found += file_differences(f"file {name}", *contents)
    return [classified(case, *one) for one in found]


def file_differences(field: str, before: Any, now: Any) -> list[tuple[str, Any, Any]]:
    """Returns how the contents of a file differ: the first line of a text, the fields of a page."""
    if not (isinstance(before, str) and isinstance(now, str)) or ABSENT in (before, now):
        return list(differing(before, now, field))
    if before == now:
        return []
    lines = (before.splitlines(), now.splitlines())
    pairs = enumerate(zip(*lines, strict=False), start=1)
    first = next(((number, one, other) for number, (one, other) in pairs if one != other), None)
    if first is None:
        return [(field, f"{len(lines[0])} lines", f"{len(lines[1])} lines")]
    return [(field, f"line {first[0]} `{first[1]}`", f"`{first[2]}`")]


def classified(case: str, field: str, before: Any, now: Any) -> Difference:
    """Returns a difference of data with its kind."""
    name = field_name(field)
    if name == "verified" or re.search(r"\bviolations\.\d+(\.kind)?$", field):
        return Difference(case, "verdict", field, before, now)
    if name in TIMES and isinstance(before, (int, float)) and isinstance(now, (int, float)):
        change = relative(before, now)
        kind = "slower" if change > MAX_SLOWER else "faster" if change < 0 else "data"
        return Difference(case, kind, field, before, now, change)
    return Difference(case, "data", field, before, now)


def measured(case: str, before: Measured, now: Measured) -> list[Difference]:
    """Returns the growth of work and memory beyond the allowed growth."""
    found = []
    for kind, old, new, least, unit in (
        ("work", before.cpu_s, now.cpu_s, MIN_CPU_S, "s"),
        ("memory", before.memory / 1e6, now.memory / 1e6, MIN_MEMORY_MB, "MB"),
    ):
        change = relative(old, new)
        if new - old > least and change > MAX_GROWTH:
            was, is_now = (f"{value:.2f} {unit}" for value in (old, new))
            found.append(Difference(case, kind, kind, was, is_now, change))
    return found


def accept(
    found: Iterable[Difference], entries: Sequence[Accepted]
) -> tuple[list[Difference], list[Accepted]]:
    """Returns the differences with their reasons, and the entries that match none."""
    known, used = [], set()
    for one in found:
        matching = [entry for entry in entries if entry.matches(one)]
        used |= set(matching)
        known.append(replace(one, reason=matching[0].reason) if matching else one)
    return known, [entry for entry in entries if entry not in used]


def table(found: Iterable[Difference]) -> str:
    """Returns the differences as text, the most important first, grouped by kind and case."""
    grouped: dict[tuple[str, str], list[Difference]] = {}
    for one in sorted(found, key=lambda one: (KINDS.index(one.kind), -abs(one.change or 0))):
        grouped.setdefault((one.kind, one.case), []).append(one)
    lines = []
    for (kind, case), those in grouped.items():
        lines += [f"{kind:<11}opticoll {case}", f"{'':11}{those[0]}"]
        if len(those) > 1:
            others = Counter(shown(field_name(one.field))[0] for one in those[1:])
            names = [name if count == 1 else f"{name} ({count})" for name, count in others.items()]
            more = f" and {len(names) - 8} others" if len(names) > 8 else ""
            lines.append(f"{'':11}also: {', '.join(names[:8])}{more}")
    return "\n".join(lines)


def field_name(field: str) -> str:
    """Returns the name of a field without its place in lists."""
    return field if field.startswith("file ") else field.rpartition(".")[2]


def summary(count: int, found: Sequence[Difference]) -> str:
    """Returns the counts of cases: equal, different, and accepted."""
    cases_of = {one.case for one in found}
    failing = {one.case for one in found if one.fails}
    accepted = {one.case for one in found if one.reason is not None} - failing
    kinds = Counter(kind for kind, _ in {(one.kind, one.case) for one in found})
    parts = ", ".join(f"{kind} {kinds[kind]}" for kind in KINDS if kinds[kind])
    return (
        f"{count} cases: {count - len(cases_of)} equal, {len(cases_of)} differ"
        f"{f' ({parts})' if parts else ''}, of which {len(accepted)} are accepted"
    )


def result_of(folder: Path, name: str, source: Path, status: int) -> Result:
    """Reads the result of a case from a folder.

    The code of a case that did not end is its exit status as a negative number.
    """
    place = folder / name
    if status:
        error = place.with_name(f"{name}.error")
        message = error.read_text() if error.exists() else f"ended by signal {-status}"
        return Result([-abs(status)], None, message, {})
    printed = json.loads(place.with_name(f"{name}.json").read_text())
    text = printed["out"].replace(str(source), "ROOT").replace(str(folder), "FOLDER")
    try:
        rows = json.loads(text)
    except ValueError:
        rows = text
    files = {
        str(path.relative_to(place)): sides.content_of(path)
        for path in sorted(place.rglob("*"))
        if path.is_file() and not path.is_symlink() and path.suffix not in NOT_COMPARED
    }
    message = next((one for one in printed["err"].splitlines() if " error: " in one), "")
    return Result(printed["codes"], rows, message, files)


def entries_of(path: Path) -> tuple[list[Accepted], list[tuple[str, str]]]:
    """Reads the accepted differences, and the case texts that the other revision has instead."""
    held = YAML(typ="safe").load(path) or {}
    try:
        accepted = [Accepted(**entry) for entry in held.get("accepted") or []]
        renamed = [(entry["now"], entry["before"]) for entry in held.get("renamed") or []]
    except (TypeError, KeyError) as error:
        raise CompareError(
            f"{path}: an entry lacks a field or has an unknown one: {error}"
        ) from None
    return accepted, renamed


def lines_before(lines: Mapping[str, str], renamed: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Returns the cases in the words of the other revision."""
    changed = dict(lines)
    for now, before in renamed:
        changed = {name: line.replace(now, before) for name, line in changed.items()}
    return changed


def compare(
    against: str, only: str, jobs: int
) -> tuple[dict[str, str], list[Difference], list[str], list[dict[str, Measured]]]:
    """Builds, runs and compares; returns cases, differences, notes and resources used."""
    every = cases((HERE / "cases.txt").read_text())
    lines = {f"{place:03}": line for place, line in enumerate(every) if re.search(only, line)}
    if not lines:
        raise CompareError(f"no case in validation/compare/cases.txt matches `{only}`")
    entries, renamed = entries_of(HERE / "accepted.yaml")
    pair = [sides.revision(against), sides.working_tree()]
    both = [lines_before(lines, renamed), lines]
    used = sides.run(pair, both, jobs, sides.KEPT / "runs")
    for _ in range(RERUNS):
        doubtful = [name for name in lines if measured(name, used[0][name], used[1][name])]
        if not doubtful:
            break
        sides.tell(f"{len(doubtful)} cases seem to need more work or memory: once more")
        some = [{name: own[name] for name in doubtful} for own in both]
        again = sides.run(pair, some, jobs, sides.KEPT / "reruns")
        for own, other in zip(used, again, strict=True):
            own |= {name: own[name].least(value) for name, value in other.items()}
    found: list[Difference] = []
    for name, line in lines.items():
        results = [
            result_of(folder, name, side.source, values[name].status)
            for folder, side, values in zip(
                sides.folders(sides.KEPT / "runs"), pair, used, strict=True
            )
        ]
        those = differences(line, *results)
        found += those
        if not any(one.kind == "exit code" for one in those):
            found += measured(line, used[0][name], used[1][name])
    known, unused = accept(found, entries)
    notes = [
        f"accepted.yaml: remove `{one.case}`, field `{one.field}`: no such difference"
        for one in unused
    ] + [
        f"accepted.yaml: remove `now: {now}`: no case has it"
        for now, _ in renamed
        if not any(now in line for line in lines.values())
    ]
    return lines, known, [] if only else notes, used


def main() -> int:
    """Reads the command line; see the module's text."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("against", metavar="REV", help="revision to compare the working tree with")
    parser.add_argument("--only", metavar="PATTERN", default="", help="regular expression of cases")
    parser.add_argument("--jobs", type=int, default=2, help="cases at a time (default: 2)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="file for the table as JSON")
    asked = parser.parse_args()
    started = time.monotonic()
    try:
        lines, found, notes, used = compare(asked.against, asked.only, asked.jobs)
    except CompareError as failure:
        sides.tell(f"error: {failure}")
        return 2
    if found:
        print(table(found))
    for note in notes:
        print(note)
    print(summary(len(lines), found))
    cpu = [sum(one.cpu_s for one in own.values()) for own in used]
    print(f"CPU time of all cases: {cpu[0]:.0f} s before, {cpu[1]:.0f} s now")
    sides.tell(f"{time.monotonic() - started:.0f} s; files of the cases: {sides.KEPT / 'runs'}")
    if asked.json is not None:
        rows = [
            {"name": name, "case": line, "before": asdict(old[name]), "now": asdict(new[name])}
            for name, line in lines.items()
            for old, new in [used]
        ]
        held = {"against": asked.against, "differences": list(map(asdict, found)), "cases": rows}
        asked.json.write_text(json.dumps(held, indent=1))
    return int(any(one.fails for one in found))


if __name__ == "__main__":
    sys.exit(main())
