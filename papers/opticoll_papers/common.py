"""Common parts of papers: findings with a verdict, result files, plans, interrupted studies.

>>> result = construct("all_gather", 16, 2, "optree:radices=4x4", sizes=(4096,))
>>> result.steps, result.verified, result.times_ps[4096]
(12, True, 309830400)
>>> (row,) = own_rows("Table I", "all_gather", 64, 8, "relay_tree", [4096])
>>> row["steps"], row["bound_steps"], row["bound_name"], row["verified"]
(7, 7, 'relay_tree', True)
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import exp, sqrt
from pathlib import Path
from typing import Any

import opticoll
from opticoll import Fabric, format_size
from opticoll.outputs.rows import Row, means, plain
from opticoll.outputs.units import Bytes, Count, Positive, Seconds
from opticoll.study.build_digest import build
from opticoll.study.store import Result, Store
from opticoll_papers.claims import load
from opticoll_papers.judging import Computed, judge_all
from opticoll_papers.judging import Finding as Finding

Progress = Callable[[str, int, int], None]
"""Called with the next part, the number of completed parts, and the number of all parts."""


TableRow = dict[str, Any]
"""Row of a table that is written as CSV: cells by name of the column."""


Part = Callable[[], Mapping[str, Computed]]
"""Part of a study: a function that adds tables and files to the results.

It returns the computed values by names of claims."""


@dataclass(frozen=True)
class Table:
    """Table for people: cells are texts; `right` are the indices of columns with numbers."""

    title: str
    heading: Sequence[str]
    rows: Sequence[Sequence[str]]
    right: frozenset[int]


@dataclass
class Results:
    """Results of a study, which are added while the study runs.

    If `only` is given, it selects one claim by name, or all claims whose names begin with it before
    a dot. A `quick` run omits the largest cases, and the claims that need them. `files` are names
    of files in `folder`, in the order of writing; the folder is created if necessary.

    `computed` are values by name of the claim, and `findings` are the judged claims. `ours` are
    plans of opticoll for comparison with the paper's numbers, which are no findings. `electrical`
    are times on electrical fabrics, which only WRHT has.
    """

    folder: Path
    paper: str = ""
    only: str = ""
    quick: bool = False
    computed: dict[str, Computed] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    ours: Sequence[OwnRow] = ()
    electrical: Sequence[Any] = ()
    tables: list[Table] = field(default_factory=list)
    files: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.claims = tuple(claim for claim in load(self.paper) if self.wants(claim.id))
        self.folder.mkdir(parents=True, exist_ok=True)
        self.unfinished = Unfinished(self.folder)

    def wants(self, id: str) -> bool:
        """Returns whether `only` selects a claim."""
        return not self.only or f"{id}.".startswith(f"{self.only}.")

    def needs(self, part: str) -> bool:
        """Returns whether a selected claim needs a part of the study."""
        return not self.only or any(part == claim.part for claim in self.claims)

    def printed(self, id: str) -> Any:
        """Returns the printed value of a claim, as an input of a computation.

        Another claim must name this claim in `uses`.
        """
        claims = load(self.paper)
        if not any(id in claim.uses for claim in claims):
            raise KeyError(f"no claim of {self.paper} says that it uses `{id}`")
        return next(claim.printed for claim in claims if claim.id == id)

    def compute(
        self, parts: Mapping[str, Part], progress: Progress | None, scale: str = ""
    ) -> Results:
        """Runs the parts in order, judges their values, and writes findings.csv.

        Completed parts are stored in the folder until `unfinished` is dropped, so that an
        interrupted study continues from them. `scale` names the set of cases; runs with another
        `scale` do not share stored parts.

        Raises
        ------
        FileError
            Files cannot be written.
        """
        needed = {name: part for name, part in parts.items() if self.needs(name)}
        for number, (name, part) in enumerate(needed.items()):
            if progress is not None:
                progress(name, number, len(needed))
            self._run({"part": name, "scale": scale}, part)
        return self.conclude()

    def _run(self, case: Mapping[str, object], part: Part) -> None:
        """Runs a part, or restores the part's results from an interrupted run."""
        stored = self.unfinished.find(case)
        if stored is not None and all((self.folder / name).exists() for name in stored["files"]):
            self.computed |= {
                id: Computed(_value(value), note, chance, _value(interval))
                for id, (value, note, chance, interval) in stored["computed"]
            }
            self.tables += [
                Table(title, heading, rows, frozenset(right))
                for title, heading, rows, right in stored["tables"]
            ]
            self.files += stored["files"]
            return
        tables, files, ours = len(self.tables), len(self.files), self.ours
        gave = part()
        self.computed |= gave
        # Rows of opticoll cannot be stored as JSON, so parts with such rows run again; they are
        # short.
        if self.ours is ours:
            self.unfinished.add(
                case,
                {
                    "computed": [
                        [id, [result.value, result.note, result.by_chance, result.interval]]
                        for id, result in gave.items()
                    ],
                    "tables": [
                        [result.title, result.heading, result.rows, sorted(result.right)]
                        for result in self.tables[tables:]
                    ],
                    "files": self.files[files:],
                },
            )

    def conclude(self) -> Results:
        """Judges the computed values, and writes findings.csv."""
        left_out = {claim.id for claim in self.claims if claim.full_only and self.quick}
        computed = {
            id: claim
            for id, claim in self.computed.items()
            if self.wants(id) and id not in left_out
        }
        self.findings += judge_all(self.claims, computed, self.paper)
        self.write("findings", self.findings)
        return self

    def rows(
        self, case: Mapping[str, object], make: Callable[[], list[TableRow]]
    ) -> list[TableRow]:
        """Returns the rows of a case, which `make` computes or an interrupted run has stored.

        The case and the rows must be valid JSON.
        """
        stored = self.unfinished.find(case)
        if stored is None:
            stored = {"rows": make()}
            self.unfinished.add(case, stored)
        return list(stored["rows"])

    def write(self, name: str, rows: Sequence[Mapping[str, object]]) -> None:
        """Writes rows as `name`.csv; raises FileError if this fails."""
        opticoll.write_csv([plain(row) for row in rows], self.folder / f"{name}.csv")
        self.files.append(f"{name}.csv")

    def write_ours(self, rows: Iterable[OwnRow]) -> None:
        """Adds opticoll's own rows to the results, and writes all of them to ours.csv."""
        self.ours = list(rows)
        self.write("ours", self.ours)

    def draw(
        self, name: str, figure: Callable[..., object], *parts: object, **options: object
    ) -> None:
        """Draws a figure of `opticoll.plot` as `name`.svg and `name`.png.

        Raises FileError if a file cannot be written.
        """
        for suffix in ("svg", "png"):
            figure(*parts, path=self.folder / f"{name}.{suffix}", **options)
            self.files.append(f"{name}.{suffix}")

    def show(
        self,
        title: str,
        heading: Sequence[str],
        rows: Iterable[Sequence[object]],
        *,
        left: Iterable[int] = (0,),
    ) -> None:
        """Adds a table for people; `left` are the indices of columns with words."""
        cells = [[_cell(cell) for cell in row] for row in rows]
        right = frozenset(range(len(heading))) - set(left)
        self.tables.append(Table(title, heading, cells, right))


def share(met: int, of: int, note: str = "") -> Computed:
    """Returns a percentage of draws (`met` of `of`), with the interval of Wilson (1927)."""
    part, weight = met / of, NORMAL**2 / of
    middle = (part + weight / 2) / (1 + weight)
    half = NORMAL * sqrt(part * (1 - part) / of + weight / (4 * of)) / (1 + weight)
    return Computed(100 * part, note, interval=(100 * (middle - half), 100 * (middle + half)))


def ratio(parts: tuple[float, float], of: tuple[int, int], note: str = "") -> Computed:
    """Returns the ratio of two shares of draws, with its interval (log method, Katz et al., 1978).

    `parts` are the two shares, and `of` the numbers of draws. The result is `by_chance` if the
    shares may be equal.
    """
    value = parts[0] / parts[1]
    error = sqrt(sum((1 - part) / (part * count) for part, count in zip(parts, of, strict=True)))
    low, high = (value * exp(sign * NORMAL * error) for sign in (-1, 1))
    return Computed(value, note, by_chance=low < 1 < high, interval=(low, high))


NORMAL = 1.96
"""Half width of the interval with 95 % of a normal distribution, in standard deviations."""


def _value(value: Any) -> Any:
    """Restores a value in which JSON turned tuples into lists."""
    return tuple(value) if isinstance(value, list) else value


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "NO"
    return "-" if value is None else str(value)


POLICY = "every_step"
"""Policy of the papers on OpTree and WRHT: each step is charged a reconfiguration."""


def fabric(ranks: int, wavelengths: int) -> Fabric:
    """Returns the papers' ring: a fibre per direction, 40 Gb/s per wavelength, 25 us per change."""
    return Fabric(f"optree_paper:ranks={ranks},wavelengths={wavelengths}")


@dataclass(frozen=True)
class Constructed:
    """A plan that was built, verified and simulated; only numbers that studies need are stored.

    `steps` is the number of time slots of the plan. `times_ps` are simulated times of the circuit
    simulator in picoseconds, by size in bytes.
    """

    steps: int
    step_slots: tuple[int, ...]
    verified: bool
    times_ps: dict[int, int]

    @property
    def proof(self) -> str:
        """Result of the plan's verification in words, for a note."""
        return proof(self.verified)


def proof(verified: bool) -> str:
    """Returns the result of a verification in words, for a note."""
    return "constructed and verified" if verified else "constructed, but fails verification"


Construct = Callable[[int, int, str], Constructed]
"""Function that builds the plan of a study's collective: from ranks, wavelengths, algorithm."""


def construct(
    collective: str,
    ranks: int,
    wavelengths: int,
    algorithm: str,
    *,
    sizes: tuple[int, ...] = (),
) -> Constructed:
    """Builds, verifies and simulates a plan; `sizes` are bytes as the collective defines its size.

    Raises OpticollError if the algorithm does not support the ring.
    """
    plan = opticoll.plan(collective, fabric(ranks, wavelengths), algorithm)
    return Constructed(
        steps=plan.slots,
        step_slots=tuple(plan.step_slots),
        verified=not plan.verify(),
        times_ps={size: plan.simulate(size, policy=POLICY).time_ps for size in sizes},
    )


@lru_cache
def step_time_ps(size_bytes: int) -> int:
    """Returns the picoseconds d/B + a of a step that sends `size_bytes` on one wavelength.

    The time is the simulated time of the smallest plan with one step, in which two ranks exchange a
    block.
    """
    plan = opticoll.plan("all_gather", fabric(2, 1), "ring")
    assert plan.slots == 1
    return int(plan.simulate(size_bytes, policy=POLICY).time_ps)


class OwnRow(Row):
    """A plan of opticoll that is compared with the paper's numbers, and is not in the paper."""

    source: str = means("Source of the row: opticoll, not the paper")
    printed_in: str = means("Table or figure of the paper with which the row is compared")
    collective: str = means("Collective")
    algorithm: str = means("Algorithm as requested")
    chosen: str = means("Algorithm of the plan")
    ranks: Positive = means("Number of ranks of the ring")
    wavelengths: Positive = means("Number of wavelengths of each directed fibre")
    size_bytes: Bytes = means("Size of the collective")
    steps: Count = means("Number of slots of the plan")
    bound_steps: Count | None = means(
        "Lower bound on the number of slots of any plan with one chunk per lightpath; if this "
        "plan has more chunks per lightpath, of any plan",
        absent="no such bound is known",
    )
    bound_name: str | None = means(
        "Name of the bound on the slots", absent="no such bound is known"
    )
    time_s: Seconds = means("Simulated time, policy every_step")
    bound_time_s: Seconds = means("Lower bound on the time of any plan")
    bound_time_name: str = means("Name of the bound on the time")
    paper_algorithm: str = means(
        "Algorithm of the paper with which the row is compared", default=""
    )
    paper_steps: Count | None = means(
        "Number of steps of the paper's algorithm by the paper's formula",
        absent="no algorithm is compared",
        default=None,
    )
    paper_time_s: Seconds | None = means(
        "Time of the paper's algorithm by the paper's formula",
        absent="no algorithm is compared",
        default=None,
    )
    verified: bool = means("Whether the plan has no violations")


def own_rows(
    beside: str,
    collective: str,
    ranks: int,
    wavelengths: int,
    algorithm: str,
    sizes: Iterable[int],
) -> list[OwnRow]:
    """Makes and measures a plan for each size in bytes, under the papers' policy."""
    ring, rows = fabric(ranks, wavelengths), []
    for size in sizes:
        plan = opticoll.plan(collective, ring, algorithm, size=size, policy=POLICY)
        row = opticoll.measure(plan, size, policy=POLICY)
        rows.append(OwnRow.of(row, source="opticoll, not the paper", printed_in=beside))
    return rows


def show_times(
    results: Results, title: str, rows: Iterable[OwnRow], names: Sequence[str] | None = None
) -> None:
    """Adds a table of opticoll's own times in ms; `names` are the labels of the rows."""
    cells: list[list[object]] = [
        [
            row["ranks"],
            row["wavelengths"],
            format_size(row["size_bytes"]),
            row["chosen"],
            row["steps"],
            f"{1e3 * row['time_s']:.4g}",
            f"{1e3 * row['bound_time_s']:.4g}",
            f"{row['time_s'] / row['bound_time_s'] - 1:.1%}",
            None if row["paper_time_s"] is None else f"{1e3 * row['paper_time_s']:.4g}",
            row["verified"],
        ]
        for row in rows
    ]
    heading = ["N", "w", "size", "plan", "steps", "time", "bound", "gap", "paper", "verified"]
    left = [3, 9]
    if names is not None:
        heading = ["network", *heading]
        cells = [[name, *line] for name, line in zip(names, cells, strict=True)]
        left = [0, 4, 10]
    results.show(title, heading, cells, left=left)


class Unfinished:
    """Store of an unfinished study: rows by case, in the file `unfinished.sqlite` of a folder.

    An interrupted study continues from the stored rows. Cases and rows must be valid JSON. Rows of
    another build of opticoll are ignored, since its numbers may differ.

    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> Unfinished(folder).add({"ranks": 8}, {"time_s": 0.5})
    >>> Unfinished(folder).find({"ranks": 8})
    {'time_s': 0.5}
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / "unfinished.sqlite"
        self._lock = threading.Lock()
        self._store = Store.open(self._path) if self._path.exists() else None

    def find(self, case: Mapping[str, object]) -> dict[str, Any] | None:
        """Returns the row of a case, or None if no row is stored."""
        with self._lock:
            result = None if self._store is None else self._store.result(_key(case))
        rows = None if result is None else result.rows
        return None if rows is None else rows[0]

    def add(self, case: Mapping[str, object], row: Mapping[str, object]) -> None:
        """Stores the row of a case; raises FileError if the row cannot be written."""
        with self._lock:
            if self._store is None:
                self._store = Store.open(self._path)
            self._store.keep([Result.of(_key(case), [dict(row)])])

    def drop(self) -> None:
        """Removes the file after the study is complete."""
        with self._lock:
            if self._store is not None:
                self._store.close()
                self._store = None
            for ending in ("", "-wal", "-shm"):
                Path(f"{self._path}{ending}").unlink(missing_ok=True)


def _key(case: Mapping[str, object]) -> str:
    text = json.dumps([build(Path(__file__).parent), case], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
