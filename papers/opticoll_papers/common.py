"""Parts that papers share: findings with a verdict, results in a folder, plans, unfinished studies.

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
from opticoll.outputs.rows import Bytes, Count, Positive, Row, Seconds, means, plain
from opticoll.study.build_digest import build
from opticoll.study.store import Result, Store
from opticoll_papers.claims import load
from opticoll_papers.judging import Computed, judge_all
from opticoll_papers.judging import Finding as Finding

Progress = Callable[[str, int, int], None]
"""Called with the next part, the number of parts that have ended, and the number of all."""


TableRow = dict[str, Any]
"""A row of a table that is written as CSV: its cells by column."""


Part = Callable[[], Mapping[str, Computed]]
"""A part of a study: it computes, adds tables and files to the results, and gives what it computed
by the names of the claims."""


@dataclass(frozen=True)
class Table:
    """A table for people: cells are text, the columns with an index in `right` are numbers."""

    title: str
    heading: Sequence[str]
    rows: Sequence[Sequence[str]]
    right: frozenset[int]


@dataclass
class Results:
    """The results of a study, as they come; `files` are names in `folder`, in order of writing.

    Where `only` names a claim, or the beginning of names before a dot, the others are left out. A
    `quick` run leaves out the largest cases, and the claims that need them.
    `computed` are values by the names of the paper's claims, `findings` the claims judged. `ours`
    are plans of opticoll beside the paper's numbers, kept apart from the findings; `electrical` are
    times on electrical fabrics beside those on light, of WRHT only. The folder is created where it
    does not exist.
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
        self.claims = tuple(one for one in load(self.paper) if self.wants(one.id))
        self.folder.mkdir(parents=True, exist_ok=True)
        self.unfinished = Unfinished(self.folder)

    def wants(self, id: str) -> bool:
        """Returns whether `only` selects a claim."""
        return not self.only or f"{id}.".startswith(f"{self.only}.")

    def needs(self, part: str) -> bool:
        """Returns whether a part of the study computes a selected claim."""
        return not self.only or any(part == one.part for one in self.claims)

    def printed(self, id: str) -> Any:
        """Returns the printed value of a claim, for a computation from printed values.

        Some claim must name this claim among those that it `uses`.
        """
        claims = load(self.paper)
        if not any(id in claim.uses for claim in claims):
            raise KeyError(f"no claim of {self.paper} says that it uses `{id}`")
        return next(claim.printed for claim in claims if claim.id == id)

    def compute(
        self, parts: Mapping[str, Part], progress: Progress | None, scale: str = ""
    ) -> Results:
        """Runs the parts in order, judges their values, and writes findings.csv.

        Parts that have ended are kept in the folder until `unfinished` is dropped: a study that was
        stopped goes on after them. `scale` tells runs apart that compute other cases.

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
        """Runs a part, or takes the result from before the study was stopped."""
        kept = self.unfinished.find(case)
        if kept is not None and all((self.folder / name).exists() for name in kept["files"]):
            self.computed |= {
                id: Computed(_value(value), note, chance, _value(interval))
                for id, (value, note, chance, interval) in kept["computed"]
            }
            self.tables += [
                Table(title, heading, rows, frozenset(right))
                for title, heading, rows, right in kept["tables"]
            ]
            self.files += kept["files"]
            return
        tables, files, ours = len(self.tables), len(self.files), self.ours
        gave = part()
        self.computed |= gave
        # opticoll's own rows are not JSON: their part is short and runs again.
        if self.ours is ours:
            self.unfinished.add(
                case,
                {
                    "computed": [
                        [id, [one.value, one.note, one.by_chance, one.interval]]
                        for id, one in gave.items()
                    ],
                    "tables": [
                        [one.title, one.heading, one.rows, sorted(one.right)]
                        for one in self.tables[tables:]
                    ],
                    "files": self.files[files:],
                },
            )

    def conclude(self) -> Results:
        """Judges the computed values, and writes findings.csv."""
        left_out = {one.id for one in self.claims if one.full_only and self.quick}
        computed = {
            id: one for id, one in self.computed.items() if self.wants(id) and id not in left_out
        }
        self.findings += judge_all(self.claims, computed, self.paper)
        self.write("findings", self.findings)
        return self

    def rows(
        self, case: Mapping[str, object], make: Callable[[], list[TableRow]]
    ) -> list[TableRow]:
        """Returns rows of a case, made now or kept from before the study was stopped.

        JSON must be able to hold the case and the rows.
        """
        kept = self.unfinished.find(case)
        if kept is None:
            kept = {"rows": make()}
            self.unfinished.add(case, kept)
        return list(kept["rows"])

    def write(self, name: str, rows: Sequence[Mapping[str, object]]) -> None:
        """Writes rows as `name`.csv; raises FileError if this fails."""
        opticoll.write_csv([plain(row) for row in rows], self.folder / f"{name}.csv")
        self.files.append(f"{name}.csv")

    def write_ours(self, rows: Iterable[OwnRow]) -> None:
        """Keeps opticoll's own rows for machines, and writes them to ours.csv."""
        self.ours = list(rows)
        self.write("ours", self.ours)

    def draw(
        self, name: str, figure: Callable[..., object], *parts: object, **options: object
    ) -> None:
        """Draws a figure of `opticoll.plot` as `name`.svg and `name`.png.

        Raises FileError where that fails.
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
        """Adds a table for people; columns with an index in `left` are words."""
        cells = [[_cell(cell) for cell in row] for row in rows]
        right = frozenset(range(len(heading))) - set(left)
        self.tables.append(Table(title, heading, cells, right))


def share(met: int, of: int, note: str = "") -> Computed:
    """Returns the percentage of draws, with the interval of Wilson (1927)."""
    part, weight = met / of, NORMAL**2 / of
    middle = (part + weight / 2) / (1 + weight)
    half = NORMAL * sqrt(part * (1 - part) / of + weight / (4 * of)) / (1 + weight)
    return Computed(100 * part, note, interval=(100 * (middle - half), 100 * (middle + half)))


def ratio(parts: tuple[float, float], of: tuple[int, int], note: str = "") -> Computed:
    """Returns the ratio of two shares of draws, with its interval (log method, Katz et al., 1978).

    `by_chance` where the shares may be the same.
    """
    value = parts[0] / parts[1]
    error = sqrt(sum((1 - part) / (part * count) for part, count in zip(parts, of, strict=True)))
    low, high = (value * exp(sign * NORMAL * error) for sign in (-1, 1))
    return Computed(value, note, by_chance=low < 1 < high, interval=(low, high))


NORMAL = 1.96
"""Standard deviations on either side of the mean that 95 % of a normal distribution are in."""


def _value(value: Any) -> Any:
    """Returns a value as it was before JSON turned tuples into lists."""
    return tuple(value) if isinstance(value, list) else value


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "NO"
    return "-" if value is None else str(value)


POLICY = "every_step"
"""The papers of OpTree and WRHT charge the reconfiguration at every step."""


def fabric(ranks: int, wavelengths: int) -> Fabric:
    """Returns the papers' ring: a fibre per direction, 40 Gb/s per wavelength, 25 us to change."""
    return Fabric(f"optree_paper:ranks={ranks},wavelengths={wavelengths}")


@dataclass(frozen=True)
class Constructed:
    """A plan that was built, verified and simulated, reduced to what a study needs of it.

    `steps` is the number of time slots really needed; `times_ps` are the times of the circuit
    simulator in picoseconds, by size in bytes.
    """

    steps: int
    step_slots: tuple[int, ...]
    verified: bool
    times_ps: dict[int, int]

    @property
    def proof(self) -> str:
        """The plan's verification in words, for a note."""
        return proof(self.verified)


def proof(verified: bool) -> str:
    """Returns the result of a plan's verification in words, for a note."""
    return "constructed and verified" if verified else "constructed, but fails verification"


Construct = Callable[[int, int, str], Constructed]
"""A plan of a study's collective and sizes: from ranks, wavelengths and algorithm."""


def construct(
    collective: str,
    ranks: int,
    wavelengths: int,
    algorithm: str,
    *,
    sizes: tuple[int, ...] = (),
) -> Constructed:
    """Builds, verifies and simulates a plan; sizes in bytes, by the collective's convention.

    Raises OpticollError where the algorithm does not run there.
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
    """Returns the time of a step that carries `size_bytes` on one wavelength, d/B + a, in ps.

    It is the simulated time of the smallest plan that has one step: two ranks exchange a block.
    """
    plan = opticoll.plan("all_gather", fabric(2, 1), "ring")
    assert plan.slots == 1
    return int(plan.simulate(size_bytes, policy=POLICY).time_ps)


class OwnRow(Row):
    """A plan of opticoll that is compared with the paper's numbers, and is not in the paper."""

    source: str = means("Source of the row: opticoll, not the paper")
    printed_in: str = means("Table or figure of the paper that the row stands beside")
    collective: str = means("Collective")
    algorithm: str = means("Algorithm as requested")
    chosen: str = means("Algorithm of the plan")
    ranks: Positive = means("Number of ranks of the ring")
    wavelengths: Positive = means("Number of wavelengths of each directed fibre")
    size_bytes: Bytes = means("Size of the collective")
    steps: Count = means("Number of slots of the plan")
    bound_steps: Count | None = means(
        "Lower bound on the slots: for plans with one chunk per lightpath; if the plan has more, "
        "for any number of chunks",
        absent="there is no such bound",
    )
    bound_name: str | None = means(
        "Name of the bound on the slots", absent="there is no such bound"
    )
    time_s: Seconds = means("Simulated time, policy every_step")
    bound_time_s: Seconds = means("Lower bound on the time of any plan")
    bound_time_name: str = means("Name of the bound on the time")
    paper_algorithm: str = means("Algorithm of the paper that the row is compared with", default="")
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
    """Plans for each size in bytes and measures the plans under the papers' policy."""
    ring, rows = fabric(ranks, wavelengths), []
    for size in sizes:
        plan = opticoll.plan(collective, ring, algorithm, size=size, policy=POLICY)
        row = opticoll.measure(plan, size, policy=POLICY)
        rows.append(OwnRow.of(row, source="opticoll, not the paper", printed_in=beside))
    return rows


def show_times(
    results: Results, title: str, rows: Iterable[OwnRow], names: Sequence[str] | None = None
) -> None:
    """Adds a table of times in ms, apart from the paper's; `names` stand before the rows."""
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
    """Rows by case in the store `unfinished.sqlite` of a folder, kept as they come.

    A long study that was stopped goes on from there. Cases and rows are mappings of what JSON can
    say. Rows of another build of opticoll are not found: its numbers might be others.

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
        """Returns the row of a case, or None if the case has not ended."""
        with self._lock:
            result = None if self._store is None else self._store.result(_key(case))
        rows = None if result is None else result.rows
        return None if rows is None else rows[0]

    def add(self, case: Mapping[str, object], row: Mapping[str, object]) -> None:
        """Keeps the row of a case; raises FileError if it cannot be written."""
        with self._lock:
            if self._store is None:
                self._store = Store.open(self._path)
            self._store.keep([Result.of(_key(case), [dict(row)])])

    def drop(self) -> None:
        """Removes the file: the study has ended."""
        with self._lock:
            if self._store is not None:
                self._store.close()
                self._store = None
            for ending in ("", "-wal", "-shm"):
                Path(f"{self._path}{ending}").unlink(missing_ok=True)


def _key(case: Mapping[str, object]) -> str:
    text = json.dumps([build(Path(__file__).parent), case], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
