"""Selection tables: the algorithm that a library should use for each range of sizes.

The rows of a comparison become choices. For each compared size, the choice is the fastest algorithm
among those that the library has. A range ends at the geometric mean of two compared sizes, the
first range begins at 0, and the last range has no end. A dialect writes the choices as a file of
its library.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from math import isqrt
from pathlib import Path
from typing import Any

from opticoll._core import Fabric, OpticollError
from opticoll.errors import UsageError
from opticoll.formats.atomic import write_file
from opticoll.outputs.layout import size_names
from opticoll.outputs.records import record_row

PROTOCOLS = ("ll", "ll128", "simple")
"""Protocols of NCCL. NVLS runs by the last one."""

AGREEING_COLUMNS = ("fabric", "wavelengths", "policy", "simulator", "start", "settings", "root")
"""Columns in which all rows with the same collective and the same number of ranks must agree."""

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Place:
    """Place of a collective: its ranks, the servers of its fabric (-1: none), and the family."""

    ranks: int
    servers: int
    family: str


def everywhere(place: Place) -> bool:
    """Returns true: the algorithm runs at all places."""
    return True


@dataclass(frozen=True)
class Algorithm:
    """Algorithm of a library: opticoll's specification of the same plan, and the library's name.

    An option with the value `*` may have any value. If the algorithm is `cut`, the library sends
    pieces of a number of bytes one after the other, as `segments` does with a number of pieces.
    `on` returns where the library runs the algorithm so. `settings` are the parameters or variables
    of the library with which it does so.
    """

    ours: str
    theirs: str
    on: Callable[[Place], bool] = everywhere
    settings: tuple[tuple[str, str], ...] = ()
    cut: bool = False


@dataclass(frozen=True)
class Call:
    """Call of a library: its collective and name, its algorithms, and what it counts as its size.

    `size` returns the bytes that the library counts, from the size of a row and the number of
    ranks.
    """

    collective: str
    name: str
    size: Callable[[int, int], int]
    algorithms: tuple[Algorithm, ...]


@dataclass(frozen=True)
class Choice:
    """Algorithm for a range of sizes, in bytes as the library counts them; `most` may be no end.

    `piece` is the number of bytes of a piece; 0 if the library does not cut the data.
    """

    call: str
    place: Place
    least: int
    most: int | None
    algorithm: Algorithm
    protocol: str
    piece: int


@dataclass(frozen=True)
class Dialect:
    """Kind of selection table: the library, its calls, and the text of a table.

    `unable` gives the reasons why a table cannot select the algorithm of a collective. `largest` is
    the largest end of a range that the library reads. If the library is `blind`, a table has no
    number of ranks. Only libraries with `protocols` have choices that differ in the protocol.
    """

    library: str
    calls: tuple[Call, ...]
    text: Callable[[Table], str]
    unable: Mapping[str, str] | None = None
    largest: int | None = None
    blind: bool = False
    protocols: bool = False


@dataclass(frozen=True)
class Table:
    """Choices for a library, and sentences on sizes for which another plan was faster."""

    dialect: Dialect
    choices: list[Choice]
    remarks: list[str]

    def by_call(self) -> dict[str, dict[int, list[Choice]]]:
        """Returns the choices by call and by number of ranks, in ascending order of ranks."""
        calls: dict[str, dict[int, list[Choice]]] = {}
        for choice in sorted(self.choices, key=lambda choice: choice.place.ranks):
            calls.setdefault(choice.call, {}).setdefault(choice.place.ranks, []).append(choice)
        return calls


def table(rows: Iterable[Row], dialect: Dialect) -> Table:
    """Returns the selection table that rows of `compare` support.

    Raises
    ------
    UsageError
        The rows are no comparison, contradict each other, have no algorithm of the library, or need
        a table that the library cannot read.
    """
    compared: dict[tuple[str, int], list[Row]] = {}
    needed = ("collective", "chosen", "ranks", "size_bytes", "time_ps", "fabric", "verified")
    for row in rows:
        lacking = [name for name in needed if row.get(name) is None]
        if lacking:
            raise UsageError(f"the rows are not of `compare`: they lack {', '.join(lacking)}")
        compared.setdefault((row["collective"], row["ranks"]), []).append(row)
    made = Table(dialect, [], [])
    looked_for: dict[str, None] = {}
    for (collective, ranks), group in compared.items():
        _check_agreement(collective, ranks, group)
        place = _place(ranks, group[0]["fabric"])
        for call in _calls(dialect, collective):
            _add(made, call, place, [row for row in group if row["verified"] is True])
            own = (algorithm.ours for algorithm in call.algorithms if algorithm.on(place))
            looked_for |= dict.fromkeys(spec.replace("=*", "=K") for spec in own)
    if not made.choices:
        names = ", ".join(looked_for) or "others"
        raise UsageError(f"no row is of an algorithm as {dialect.library} runs it; compare {names}")
    _check_readable(made)
    return made


def write(content: Table, path: Path) -> None:
    """Writes a table in the dialect of its library.

    Raises
    ------
    FileError
        The file cannot be written.
    """
    write_file(path, content.dialect.text(content))


def _check_agreement(collective: str, ranks: int, group: list[Row]) -> None:
    for name in AGREEING_COLUMNS:
        if len({str(row.get(name)) for row in group}) > 1:
            raise UsageError(
                f"{collective} on {ranks} ranks: the rows differ in `{name}`, which the table "
                "cannot say; write a table for each"
            )


def _calls(dialect: Dialect, collective: str) -> list[Call]:
    calls = [call for call in dialect.calls if call.collective == collective]
    reason = (dialect.unable or {}).get(collective)
    if reason is None and not calls:
        known = dict.fromkeys(call.collective for call in dialect.calls)
        reason = f"a table has {', '.join(known)} only"
    if reason is not None:
        raise UsageError(f"no table of {dialect.library} selects {collective}: {reason}")
    return calls


def _add(made: Table, call: Call, place: Place, rows: list[Row]) -> None:
    """Adds the choices of a call at a place to a table, and the remarks on its sizes."""
    of_sizes: dict[int, list[Row]] = {}
    for row in rows:
        of_sizes.setdefault(int(row["size_bytes"]), []).append(row)
    best = {size: _best(call, place, same_size) for size, same_size in sorted(of_sizes.items())}
    made.choices.extend(_ranges(made.dialect, call, place, best))
    where = f"on {place.ranks} ranks"
    made.remarks.extend(_remarks(made.dialect.library, call.name, where, of_sizes, best))


def _best(call: Call, place: Place, rows: list[Row]) -> tuple[Row, Algorithm] | None:
    """Returns the fastest row whose algorithm the library has, and the algorithm."""
    found = [
        (row, algorithm)
        for row in rows
        for algorithm in call.algorithms
        if algorithm.on(place) and _same_plan(row, place, algorithm)
    ]
    return min(found, key=lambda pair: int(pair[0]["time_ps"]), default=None)


def _same_plan(row: Row, place: Place, algorithm: Algorithm) -> bool:
    """Returns whether the plan of a row is the plan that the library makes."""
    name, options = _parts(row["chosen"])
    wanted_name, wanted = _parts(algorithm.ours)
    if name == "ring" and options.get("order") == "natural":
        del options["order"]
    elif name == "ring" and place.family == "wss_grid":
        # There, a ring does not follow the numbers of the ranks, as the library's ring does.
        options.setdefault("order", "neighbours")
    if algorithm.cut:
        options.pop("segments", None)
    for option in [option for option, value in wanted.items() if value == "*"]:
        options.pop(option, None)
        del wanted[option]
    return (name, options) == (wanted_name, wanted)


def _parts(spec: str) -> tuple[str, dict[str, str]]:
    """Returns the name and the options of a specification."""
    name, _, options = spec.partition(":")
    pairs = (option.partition("=") for option in options.split(",") if option)
    return name, {key: value for key, _, value in pairs}


def _ranges(
    dialect: Dialect, call: Call, place: Place, best: Mapping[int, tuple[Row, Algorithm] | None]
) -> list[Choice]:
    """Returns the choices of a call at a place, ordered by size and without gaps."""
    ranges: list[Choice] = []
    before = 0
    for size, found in best.items():
        if found is None:
            continue
        row, algorithm = found
        counted = call.size(size, place.ranks)
        if ranges and counted == before:
            continue
        choice = Choice(
            call.name,
            place,
            least=isqrt(before * counted) + 1 if ranges else 0,
            most=None,
            algorithm=algorithm,
            protocol=_protocol(row) if dialect.protocols else "",
            piece=_piece(row, size) if algorithm.cut else 0,
        )
        before = counted
        if ranges and _content(ranges[-1]) == _content(choice):
            continue
        if ranges:
            ranges[-1] = replace(ranges[-1], most=choice.least - 1)
        ranges.append(choice)
    return ranges


def _content(choice: Choice) -> tuple[Any, ...]:
    return choice.algorithm.theirs, choice.algorithm.settings, choice.protocol, choice.piece


def _protocol(row: Row) -> str:
    """Returns the protocol of a row's time.

    Times at peak rates count only bytes of data, as by the protocol that sends no flags.
    """
    protocol = row.get("protocol")
    return str(protocol) if protocol in PROTOCOLS else PROTOCOLS[-1]


def _piece(row: Row, size: int) -> int:
    """Returns the bytes of a piece of a row's plan."""
    name, options = _parts(row["chosen"])
    default = next(
        option.default
        for option in record_row("algorithms", name).options
        if option.name == "segments"
    )
    return -(-size // int(options.get("segments") or default or 1))


def _remarks(
    library: str,
    call: str,
    where: str,
    of_sizes: Mapping[int, list[Row]],
    best: Mapping[int, tuple[Row, Algorithm] | None],
) -> list[str]:
    """Returns sentences on sizes without an algorithm of the library or with a faster plan."""
    runs: list[tuple[tuple[str, str], list[tuple[int, float]]]] = []
    for size, found in best.items():
        fastest = min(of_sizes[size], key=lambda row: int(row["time_ps"]))
        chosen = "" if found is None else str(found[0]["chosen"])
        times = 1.0
        if found is not None:
            times = int(found[0]["time_ps"]) / max(int(fastest["time_ps"]), 1)
        faster = str(fastest["chosen"])
        # Plans of an algorithm that the library lacks count as equal, whatever their options.
        if faster.partition(":")[0] != chosen.partition(":")[0]:
            faster = faster.partition(":")[0]
        alike = (faster if times > 1 or found is None else "", chosen)
        if not runs or runs[-1][0] != alike:
            runs.append((alike, []))
        runs[-1][1].append((size, times))
    sentences = []
    for (faster, chosen), sizes in runs:
        ends = sorted({sizes[0][0], sizes[-1][0]})
        words = f"{call} of {' to '.join(size_names(ends).values())} {where}"
        if not chosen:
            sentences.append(f"{words}: no row is of an algorithm that {library} has")
        elif faster:
            most = max(times for _, times in sizes)
            words += f": {faster} is up to {most:.3g} times as fast as {chosen}"
            sentences.append(f"{words}, but {library} has no such algorithm")
    return sentences


def _check_readable(made: Table) -> None:
    """Raises an error if the library cannot read the table."""
    dialect = made.dialect
    for call, of_ranks in made.by_call().items():
        if dialect.blind and len(of_ranks) > 1:
            numbers = " and ".join(map(str, of_ranks))
            raise UsageError(
                f"{call} on {numbers} ranks: {dialect.library} has the same choices on all numbers "
                "of ranks; write a table for each"
            )
        end = max(choice.most or 0 for choices in of_ranks.values() for choice in choices)
        if dialect.largest is not None and end > dialect.largest:
            raise UsageError(
                f"{call}: a range ends at {end} B, and {dialect.library} reads numbers up to "
                f"{dialect.largest}; compare smaller sizes"
            )


def _place(ranks: int, spec: str) -> Place:
    """Returns the place of a fabric; a fabric that opticoll cannot read has no servers."""
    try:
        fabric = Fabric(spec)
    except OpticollError:
        return Place(ranks, -1, "")
    boxes = int(fabric.option("boxes")) if fabric.family == "gpu_servers" else -1
    return Place(ranks, boxes, fabric.family)
