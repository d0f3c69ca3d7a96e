"""NCCL's tuner table: the algorithm that NCCL should use for each range of sizes.

The example tuner plug-in of NCCL (`plugins/tuner/example`, June 2026) reads the table as CSV.
Columns: collective, minimum and maximum bytes, algorithm, protocol, channels, nodes, ranks. A value
of -1 leaves the choice to NCCL.

NCCL runs only its own algorithms, so the table contains only plans that equal the plans of these
algorithms. A comment in the table says for which sizes another plan was faster.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import isqrt
from pathlib import Path
from textwrap import wrap
from typing import Any

from opticoll._core import Fabric, OpticollError
from opticoll.errors import UsageError
from opticoll.formats.atomic import write_file
from opticoll.outputs.layout import size_names

ALGORITHMS = {
    ("all_gather", "ring"): ("allgather", "ring"),
    ("reduce_scatter", "ring"): ("reducescatter", "ring"),
    ("all_reduce", "ring"): ("allreduce", "ring"),
    ("all_reduce", "double_binary_tree"): ("allreduce", "tree"),
    ("all_reduce", "nvls"): ("allreduce", "nvls"),
    # NCCL's rings pipeline pieces, from the root or to the root.
    ("broadcast", "chain"): ("broadcast", "ring"),
    ("reduce", "chain"): ("reduce", "ring"),
}
"""NCCL's names of collective and algorithm, by opticoll's names."""

PROTOCOLS = ("ll", "ll128", "simple")
"""Protocols of NCCL. NVLS runs by the last one."""

MAX_LINE_LENGTH = 200
"""Maximum length of a comment; the plug-in reads characters after the 255th as another line."""

AGREEING_COLUMNS = ("fabric", "wavelengths", "policy", "simulator", "start", "settings", "root")
"""Columns in which all rows with the same collective and the same number of ranks must agree."""


@dataclass(frozen=True)
class Choice:
    """Algorithm for a range of sizes; sizes are bytes as NCCL counts them."""

    collective: str
    ranks: int
    nodes: int
    least: int
    most: int
    algorithm: str
    protocol: str


def choices(rows: Iterable[Mapping[str, Any]]) -> tuple[list[Choice], list[str]]:
    """Returns the choices that rows of `compare` support, and sentences on the remaining sizes.

    Each compared size has a range, which ends at the geometric means of this size and the
    neighbouring sizes. Consecutive ranges with the same algorithm and protocol become one choice.
    Sizes below the smallest and above the largest compared size are left to NCCL.

    Raises
    ------
    UsageError
        The rows are no comparison, contradict each other, or have no algorithm of NCCL.
    """
    compared: dict[tuple[str, int], list[Mapping[str, Any]]] = {}
    needed = ("collective", "chosen", "ranks", "size_bytes", "time_ps", "fabric", "verified")
    for row in rows:
        lacking = [name for name in needed if row.get(name) is None]
        if lacking:
            raise UsageError(f"the rows are not of `compare`: they lack {', '.join(lacking)}")
        compared.setdefault((row["collective"], row["ranks"]), []).append(row)
    all_choices: list[Choice] = []
    remarks: list[str] = []
    for (collective, ranks), group in compared.items():
        for name in AGREEING_COLUMNS:
            if len({str(row.get(name)) for row in group}) > 1:
                raise UsageError(
                    f"{collective} on {ranks} ranks: the rows differ in `{name}`, which the table "
                    "cannot say; write a table for each"
                )
        of_sizes: dict[int, list[Mapping[str, Any]]] = {}
        for row in group:
            if row["verified"] is True:
                of_sizes.setdefault(int(row["size_bytes"]), []).append(row)
        fastest_by_size = {size: _best(rows) for size, rows in sorted(of_sizes.items())}
        all_choices += _ranges(collective, ranks, _nodes(group[0]["fabric"]), fastest_by_size)
        remarks += _remarks(f"on {ranks} ranks", collective, of_sizes, fastest_by_size)
    if not all_choices:
        names = ", ".join(sorted({name for _, name in ALGORITHMS}))
        raise UsageError(
            f"no row is of an algorithm as NCCL runs it: {names}, of several servers with as many "
            "channels as network interfaces; compare ring:channels=all and the like"
        )
    return all_choices, remarks


def _best(rows: list[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """Returns the fastest row whose algorithm NCCL has; None if there is no such row."""
    named = [row for row in rows if _nccl_names(row) is not None]
    return min(named, key=lambda row: int(row["time_ps"]), default=None)


def _nccl_names(row: Mapping[str, Any]) -> tuple[str, str] | None:
    """Returns NCCL's names of a row's collective and algorithm; None if NCCL has no such algorithm.

    The number of pieces does not matter. On several servers, only rows with `channels=all` count:
    NCCL has a ring or tree for each network interface, and a single ring would leave the other
    interfaces idle.
    """
    name, _, options = str(row["chosen"]).partition(":")
    others = [part for part in options.split(",") if part and not part.startswith("segments=")]
    alone = not others and (name == "chain" or _nodes(row["fabric"]) < 2)
    same = alone or others == ["channels=all"]
    return ALGORITHMS.get((row["collective"], name)) if same else None


def _ranges(
    collective: str, ranks: int, nodes: int, fastest_by_size: Mapping[int, Mapping[str, Any] | None]
) -> list[Choice]:
    """Returns the choices for one collective and one number of ranks, ordered by size.

    For each size, `fastest_by_size` has the fastest row whose algorithm NCCL has.
    """
    # NCCL's size is the larger of the bytes that a rank sends and the bytes that it receives.
    factor = ranks if collective == "all_gather" else 1
    sizes = [size * factor for size in fastest_by_size]
    ranges: list[Choice] = []
    for place, row in enumerate(fastest_by_size.values()):
        named = None if row is None else _nccl_names(row)
        if named is None:
            continue
        least = most = sizes[place]
        if place > 0:
            least = min(isqrt(sizes[place - 1] * sizes[place]) + 1, least)
        if place + 1 < len(sizes):
            most = max(isqrt(sizes[place] * sizes[place + 1]), most)
        name, algorithm = named
        protocol = _protocol(row or {})
        before = ranges[-1] if ranges else None
        same = before and (before.algorithm, before.protocol) == (algorithm, protocol)
        if before and same and before.most + 1 == least:
            least = ranges.pop().least
        ranges.append(Choice(name, ranks, nodes, least, most, algorithm, protocol))
    return ranges


def _protocol(row: Mapping[str, Any]) -> str:
    """Returns the protocol of a row's time.

    Times at peak rates count only bytes of data, as by the protocol that sends no flags.
    """
    protocol = row.get("protocol")
    return str(protocol) if protocol in PROTOCOLS else PROTOCOLS[-1]


def _remarks(
    where: str,
    collective: str,
    of_sizes: Mapping[int, list[Mapping[str, Any]]],
    fastest_by_size: Mapping[int, Mapping[str, Any] | None],
) -> list[str]:
    """Returns sentences on sizes that are left to NCCL, and on sizes with a faster plan."""
    runs: list[tuple[tuple[str, str], list[tuple[int, float]]]] = []
    for size, best_row in fastest_by_size.items():
        fastest = min(of_sizes[size], key=lambda row: int(row["time_ps"]))
        chosen = "" if best_row is None else str(best_row["chosen"])
        times = 1.0
        if best_row is not None:
            times = int(best_row["time_ps"]) / max(int(fastest["time_ps"]), 1)
        faster = str(fastest["chosen"])
        # Plans of an algorithm that NCCL lacks count as equal, whatever their options.
        if faster.partition(":")[0] != chosen.partition(":")[0]:
            faster = faster.partition(":")[0]
        alike = (faster if times > 1 or best_row is None else "", chosen)
        if not runs or runs[-1][0] != alike:
            runs.append((alike, []))
        runs[-1][1].append((size, times))
    sentences = []
    for (faster, chosen), sizes in runs:
        ends = sorted({sizes[0][0], sizes[-1][0]})
        words = f"{collective} of {' to '.join(size_names(ends).values())} {where}"
        if not chosen:
            sentences.append(f"{words}: no row is of an algorithm that NCCL has")
        elif faster:
            most = max(times for _, times in sizes)
            words += f": {faster} is up to {most:.3g} times as fast as {chosen}"
            sentences.append(f"{words}, but NCCL has no such algorithm")
    return sentences


def _nodes(spec: str) -> int:
    """Returns the number of servers of a fabric; -1 (any number) if the fabric has no servers."""
    try:
        fabric = Fabric(spec)
    except OpticollError:
        return -1
    return int(fabric.option("boxes")) if fabric.family == "gpu_servers" else -1


def write(rows: Iterable[Mapping[str, Any]], path: Path) -> None:
    """Writes the tuner table that rows of `compare` support.

    Raises
    ------
    UsageError
        Any error that the docstring of `choices` lists.
    FileError
        The file cannot be written.
    """
    table_rows, remarks = choices(rows)
    lines = [
        "# collective_type,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks",
        "# Times are simulated, of a ring or two trees for each network interface of a server.",
        "# Sizes not compared are left to NCCL.",
        *(f"# {line}" for sentence in remarks for line in wrap(sentence, MAX_LINE_LENGTH)),
    ]
    for choice in table_rows:
        fields = (choice.collective, choice.least, choice.most, choice.algorithm, choice.protocol)
        lines.append(",".join(map(str, (*fields, -1, choice.nodes, choice.ranks))))
    write_file(path, "\n".join([*lines, ""]))
