"""Results of TE-CCL: JSON files with flows over links in epochs.

An epoch becomes a step. In an all_gather, the chunks of a source are the pieces of its block. In an
all_to_all, the file states the destination of each chunk, and the chunks of a pair of ranks are the
pieces of its block.

The file numbers the vertices of a machine without saying which of them are ranks. A vertex that
only forwards data (`via switches`) is a switch, or a rank that the solver used as a switch. The
number of ranks decides between the two. If the number is not given, it is derived from the machines
with switches that TE-CCL knows (`NDv2`, `DGX2` and `AMD` in its `teccl/topologies`).

The linear program of TE-CCL sends fractions of chunks (`with volume 0.5`). In an all_to_all the
fractions follow from the flows: with the least common denominator d of all volumes, a chunk has d
pieces, and a flow of volume v takes d v of the pieces that came to its start first. If a chunk has
several destinations, flows with fractions leave open which parts each destination gets.

TE-CCL does not name the collective, but files of opticoll do, with the key `0-Collective`. In files
of opticoll all vertices are ranks, and the collective defines the numbers of a source's chunks.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from itertools import groupby
from typing import Any, NamedTuple

from opticoll._core import Collective, Plan, Program, Schedule
from opticoll.errors import ConfigError, FileError
from opticoll.formats import sends_csv
from opticoll.formats.atomic import write_file
from opticoll.formats.content import MAX_TEXT_BYTES, read_text
from opticoll.formats.document import parse_json
from opticoll.formats.sends_csv import Line, schedule_of

FLOW = re.compile(
    r"Chunk (\d{1,9}) from (\d{1,9}) traveled over (\d{1,9})->(\d{1,9})"
    r"(?: with volume (\d{0,2}\.?\d{1,20}(?:e-\d{1,2})?))? in epoch (\d{1,9})"
    r"(?: via switches ([\d, >-]*))?",
    re.ASCII,
)
DEMAND = re.compile(
    r"Demand at (\d{1,9}) for chunk (\d{1,9}) from (\d{1,9}) met by epoch \d+", re.ASCII
)
MAX_RANKS = 2**16
CHASSIS = 8
"""Number of ranks of a chassis; TE-CCL's machines with switches have 8 or 16 per chassis."""


MAX_DENOMINATOR = 64
"""Maximum common denominator of the volumes of flows, hence of pieces of a chunk."""

TOLERANCE = 1e-5
"""Maximum error of a volume; the solver's own tolerance is 1e-6."""

NAME = "0-Collective"


class Flow(NamedTuple):
    """Transfer of a source's chunk between two vertices in an epoch, possibly over switches."""

    chunk: int
    source: int
    ends: tuple[int, int]
    epoch: int
    switches: tuple[int, ...]
    volume: float = 1


def read(path: str | os.PathLike[str], ranks: int | None = None) -> tuple[Schedule, list[str]]:
    """Reads a schedule from a file; returns notes on the vertices that count as ranks.

    Raises
    ------
    FileError
        The file is no result of TE-CCL, a flow is not whole, or the number of ranks is wrong.
    """
    try:
        content = parse_json(read_text(path, "JSON file", most=MAX_TEXT_BYTES))
    except ConfigError as error:
        raise FileError(f"`{path}`: {error}") from error
    if not isinstance(content, dict):
        raise FileError(f"`{path}` is not a result of TE-CCL: it is not a JSON object")
    flows = [_flow(text, path) for text in _entries(content, "flows", list, path)]
    flows = [flow for flow in flows if flow.volume > TOLERANCE]
    paths = _entries(content, "chunk paths", dict, path)
    demands = [tuple(map(int, _matched(DEMAND, text, path))) for text in paths]
    if not flows or not demands:
        raise FileError(f"`{path}` has no flows or no demands")
    parts = _denominator(flows, path)
    if NAME in content and parts == 1:
        return _named(sends_csv.collective_of(str(content[NAME]), path), flows, path), []
    places, notes = _places(flows, demands, ranks, path)
    count = ranks or len(places)
    wanted: dict[tuple[int, int], set[int]] = {}
    for destination, chunk, source in demands:
        wanted.setdefault((places[source], chunk), set()).add(places[destination])
    flows = [
        flow._replace(source=places[flow.source], ends=(places[flow.ends[0]], places[flow.ends[1]]))
        for flow in flows
    ]
    if all(len(destinations) == 1 for destinations in wanted.values()):
        return _all_to_all(flows, wanted, count, parts, path), notes
    if parts > 1:
        problem = "flows carry fractions of chunks with several destinations"
        raise FileError(f"`{path}`: {problem}, and do not say which parts; let TE-CCL send wholes")
    pieces = 1 + max(chunk for _, chunk in wanted)
    transfers = (
        (flow.epoch, *flow.ends, flow.source * pieces + flow.chunk, 1, "copy") for flow in flows
    )
    return schedule_of(Collective("all_gather", count, pieces=pieces), transfers), notes


def _named(collective: Collective, flows: list[Flow], path: str | os.PathLike[str]) -> Schedule:
    """Returns the schedule of a file that names its collective."""
    _check(collective, path)
    firsts = _first_chunks(collective)
    transfers = []
    for flow in flows:
        first, end = firsts.get(flow.source, (0, 0))
        if not first <= first + flow.chunk < end or max(flow.ends) >= collective.ranks:
            raise FileError(
                f"`{path}`: chunk {flow.chunk} from {flow.source} over "
                f"{flow.ends[0]}->{flow.ends[1]} is none of {sends_csv.head_of(collective)}"
            )
        transfers.append((flow.epoch, *flow.ends, first + flow.chunk, 1, "copy"))
    return schedule_of(collective, iter(transfers))


def _check(collective: Collective, path: str | os.PathLike[str]) -> None:
    """Raises FileError for a collective that the format cannot express."""
    if collective.kind in ("barrier", "reduce", "reduce_scatter", "all_reduce"):
        problem = "flows of TE-CCL copy chunks, and cannot reduce or signal"
        raise FileError(f"`{path}`: {problem}, so they are no {collective.kind}")


def _first_chunks(collective: Collective) -> dict[int, tuple[int, int]]:
    """Returns the first chunk of each source, and its last chunk plus 1."""
    if collective.kind in ("broadcast", "scatter"):
        return {collective.root: (0, collective.chunks)}
    share = collective.chunks // collective.ranks
    return {rank: (rank * share, (rank + 1) * share) for rank in range(collective.ranks)}


def _wanted(collective: Collective, chunk: int, source: int) -> list[int]:
    """Returns the ranks that must receive a source's chunk."""
    ranks, block = collective.ranks, chunk // collective.pieces
    if collective.kind == "gather":
        ends = [collective.root]
    elif collective.kind in ("scatter", "all_to_all"):
        ends = [block % ranks]
    else:
        ends = list(range(ranks))
    return [rank for rank in ends if rank != source]


def write(plan: Plan, path: str | os.PathLike[str]) -> None:
    """Writes the schedule of a plan without times, with one epoch per step.

    Raises
    ------
    FileError
        The plan reduces data, sends between ranks without a common link, or does not deliver all
        chunks; or the file cannot be written.
    """
    collective = plan.collective
    _check(collective, path)
    proof = Program.from_plan(plan).verify(in_place=False, fabric=plan.fabric)
    apart = next((violation for violation in proof.violations if violation.kind == "no_link"), None)
    if apart is not None:
        raise FileError(f"`{path}`: flows of TE-CCL go over links; {apart.sentence}")
    firsts = _first_chunks(collective)
    flows = []
    came: dict[tuple[int, int], tuple[int, int]] = {}
    sources = {
        chunk: source for source, (first, end) in firsts.items() for chunk in range(first, end)
    }
    for step, source, destination, first, count, _ in sends_csv.lines_of(plan):
        for chunk in range(first, first + count):
            origin = sources[chunk]
            flows.append(
                f"Chunk {chunk - firsts[origin][0]} from {origin} traveled over "
                f"{source}->{destination} in epoch {step}"
            )
            came.setdefault((chunk, destination), (step, source))
    paths = {}
    for chunk, origin in sources.items():
        for destination in _wanted(collective, chunk, origin):
            hops: list[str] = []
            rank = destination
            while rank != origin:
                if (chunk, rank) not in came or len(hops) == collective.ranks:
                    problem = f"chunk {chunk} of the plan does not come to rank {destination}"
                    raise FileError(f"`{path}`: {problem}")
                step, before = came[chunk, rank]
                hops.append(f"{before}->{rank} in epoch {step}")
                rank = before
            number = chunk - firsts[origin][0]
            met = came[chunk, destination][0]
            demand = f"Demand at {destination} for chunk {number} from {origin} met by epoch {met}"
            paths[demand] = hops[::-1]
    content = {
        NAME: sends_csv.head_of(collective),
        "3-Epochs_Required": len(plan.step_slots),
        "7-Flows": flows,
        "8-Chunk paths": paths,
    }
    write_file(path, json.dumps(content, indent=4) + "\n")


def _places(
    flows: list[Flow],
    demands: list[tuple[int, ...]],
    ranks: int | None,
    path: str | os.PathLike[str],
) -> tuple[dict[int, int], list[str]]:
    """Returns the rank of each vertex that is a rank, and notes on the other vertices."""
    active = {vertex for flow in flows for vertex in (flow.source, *flow.ends)}
    active |= {vertex for end, _, source in demands for vertex in (end, source)}
    passed = {switch for flow in flows for switch in flow.switches}
    idle = sorted(passed - active)
    vertices = 1 + max(active | passed)
    if vertices > MAX_RANKS:
        raise FileError(f"`{path}` has {vertices} vertices; at most {MAX_RANKS} are read")
    every = dict(zip(range(vertices), range(vertices), strict=True))
    if (ranks is None and not idle) or (ranks is not None and ranks >= vertices):
        return every, []
    without = [vertex for vertex in every if vertex not in idle]
    named = f"{'vertex' if len(idle) == 1 else 'vertices'} {', '.join(map(str, idle[:9]))}"
    head = f"`{path}`: no flow starts or ends at {named}"
    if ranks is not None and ranks != len(without):
        raise FileError(f"{head}; so it has {len(without)} or {vertices} ranks, not {ranks}")
    fitting = [count for count in (vertices, len(without)) if count % CHASSIS == 0]
    if ranks is None and len(fitting) != 1:
        raise FileError(
            f"{head}; give --ranks {len(without)} if that is a switch, --ranks {vertices} if not"
        )
    if ranks is None and fitting == [vertices]:
        return every, [f"{head}; with it there are whole chassis, so it is taken for a rank"]
    notes = [f"{head}; without it there are whole chassis, so it is taken for a switch"]
    places = dict(zip(without, range(len(without)), strict=True))
    return places, notes if ranks is None else []


def _denominator(flows: list[Flow], path: str | os.PathLike[str]) -> int:
    """Returns the least common denominator of the volumes of flows."""
    volumes = {flow.volume for flow in flows}
    for parts in range(1, MAX_DENOMINATOR + 1):
        if all(
            abs(volume * parts - round(volume * parts)) <= TOLERANCE * parts for volume in volumes
        ):
            return parts
    raise FileError(
        f"`{path}`: the volumes of flows have no common denominator up to {MAX_DENOMINATOR}"
    )


def _all_to_all(
    flows: list[Flow],
    wanted: dict[tuple[int, int], set[int]],
    ranks: int,
    parts: int,
    path: str | os.PathLike[str],
) -> Schedule:
    """Returns the schedule of an all_to_all, in which each chunk has one destination.

    Several chunks from one source to one destination are pieces of a block, and each chunk has
    `parts` pieces.
    """
    pieces: dict[tuple[int, int], int] = {}
    places: dict[tuple[int, int], tuple[int, int]] = {}
    for (source, chunk), (destination,) in sorted(wanted.items()):
        piece = pieces.setdefault((source, destination), 0)
        pieces[source, destination] += parts
        places[source, chunk] = (source * ranks + destination, piece)
    most = max(pieces.values())

    def transfers() -> Iterator[Line]:
        for flow, moved in _moved(flows, parts, path) if parts > 1 else ((f, [0]) for f in flows):
            if (flow.source, flow.chunk) in places:
                block, piece = places[flow.source, flow.chunk]
                for part in moved:
                    yield flow.epoch, *flow.ends, block * most + piece + part, 1, "copy"

    return schedule_of(Collective("all_to_all", ranks, pieces=most), transfers())


def _moved(
    flows: list[Flow], parts: int, path: str | os.PathLike[str]
) -> Iterator[tuple[Flow, list[int]]]:
    """Yields each flow with the parts of its chunk that it moves.

    Parts stay where no flow moves them. Flows of an epoch move parts that came in epochs before.
    """
    at: dict[tuple[int, int, int], list[int]] = {}
    for flow in flows:
        at[flow.source, flow.chunk, flow.source] = list(range(parts))
    for _, in_epoch in groupby(sorted(flows, key=lambda flow: flow.epoch), lambda flow: flow.epoch):
        coming: list[tuple[tuple[int, int, int], list[int]]] = []
        for flow in in_epoch:
            start, end = flow.ends
            here = at.get((flow.source, flow.chunk, start), [])
            count = round(flow.volume * parts)
            if count > len(here):
                raise FileError(
                    f"`{path}`: in epoch {flow.epoch} flows take more of chunk {flow.chunk} from "
                    f"{flow.source} than has come to vertex {start}"
                )
            moved, here[:count] = here[:count], []
            coming.append(((flow.source, flow.chunk, end), moved))
            yield flow, moved
        for key, moved in coming:
            at.setdefault(key, []).extend(moved)


def _entries(
    content: dict[str, Any],
    name: str,
    kind: type[list[Any]] | type[dict[str, Any]],
    path: str | os.PathLike[str],
) -> list[Any]:
    """Returns the entry whose key is a number, a hyphen and `name`, in upper or lower case."""
    for key, value in content.items():
        if key.partition("-")[2].lower() == name and isinstance(value, kind):
            return [*value]
    raise FileError(f"`{path}` is not a result of TE-CCL: it has no {name}")


def _flow(text: object, path: str | os.PathLike[str]) -> Flow:
    *numbers, volume, epoch, switches = _matched(FLOW, text, path)
    chunk, source, start, end = map(int, numbers)
    passed = tuple(map(int, re.findall(r"\d{1,9}", switches or "")))
    flow = Flow(chunk, source, (start, end), int(epoch), passed, float(volume or 1))
    if flow.volume > 1 + TOLERANCE:
        raise FileError(f"`{path}`: `{str(text)[:80]}`: a flow has at most the volume of a chunk")
    return flow


def _matched(
    pattern: re.Pattern[str], text: object, path: str | os.PathLike[str]
) -> tuple[str, ...]:
    match = pattern.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise FileError(f"`{path}`: `{str(text)[:80]}` is not understood")
    return match.groups()
