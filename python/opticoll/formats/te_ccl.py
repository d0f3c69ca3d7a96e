"""Results of TE-CCL: flows over links in epochs, as JSON.

An epoch becomes a step. Vertices are ranks; switches are named apart (`via switches`). Chunks of an
all_gather are numbered by source; those of an all_to_all by the order of destinations, which the
file tells with each demand.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from typing import Any

from opticoll._core import Collective, Schedule
from opticoll.errors import FileError
from opticoll.formats.content import read_content
from opticoll.formats.sends_csv import Line, schedule_of

FLOW = re.compile(
    r"Chunk (\d{1,9}) from (\d{1,9}) traveled over (\d{1,9})->(\d{1,9})"
    r"(?: with volume 1(?:\.0)?)? in epoch (\d{1,9})(?: via switches [\d, >-]*)?",
    re.ASCII,
)
DEMAND = re.compile(
    r"Demand at (\d{1,9}) for chunk (\d{1,9}) from (\d{1,9}) met by epoch \d+", re.ASCII
)
MOST_RANKS = 2**16


def read(path: str | os.PathLike[str]) -> Schedule:
    """The schedule in a file.

    Raises
    ------
    FileError
        The file is no result of TE-CCL, or a flow is not whole.
    """
    try:
        content = json.loads(read_content(path))
    except (ValueError, RecursionError) as error:
        raise FileError(f"`{path}` is no JSON: {error}") from error
    if not isinstance(content, dict):
        raise FileError(f"`{path}` is no result of TE-CCL: it is not a JSON object")
    flows = [_matched(FLOW, text, path) for text in _entries(content, "flows", list, path)]
    paths = _entries(content, "chunk paths", dict, path)
    demands = [_matched(DEMAND, text, path) for text in paths]
    if not flows or not demands:
        raise FileError(f"`{path}` has no flows or no demands")
    ranks = 1 + max(
        *(max(source, one, other) for _, source, one, other, _ in flows),
        *(max(one, source) for one, _, source in demands),
    )
    if ranks > MOST_RANKS:
        raise FileError(f"`{path}` has {ranks} ranks; at most {MOST_RANKS} are read")
    wanted: dict[tuple[int, int], set[int]] = {}
    for destination, chunk, source in demands:
        wanted.setdefault((source, chunk), set()).add(destination)
    if all(len(destinations) == 1 for destinations in wanted.values()):
        return _all_to_all(flows, wanted, ranks)
    pieces = 1 + max(chunk for _, chunk in wanted)
    collective = Collective("all_gather", ranks, pieces=pieces)
    return schedule_of(
        collective,
        (
            (epoch, one, other, source * pieces + chunk, 1, "copy")
            for chunk, source, one, other, epoch in flows
        ),
    )


def _all_to_all(
    flows: list[tuple[int, ...]], wanted: dict[tuple[int, int], set[int]], ranks: int
) -> Schedule:
    """Each chunk of a source is for one destination; several for one are pieces."""
    pieces: dict[tuple[int, int], int] = {}
    places: dict[tuple[int, int], tuple[int, int]] = {}
    for (source, chunk), (destination,) in sorted(wanted.items()):
        piece = pieces.setdefault((source, destination), 0)
        pieces[source, destination] += 1
        places[source, chunk] = (source * ranks + destination, piece)
    most = max(pieces.values())

    def transfers() -> Iterator[Line]:
        for chunk, source, one, other, epoch in flows:
            if (source, chunk) in places:
                block, piece = places[source, chunk]
                yield epoch, one, other, block * most + piece, 1, "copy"

    return schedule_of(Collective("all_to_all", ranks, pieces=most), transfers())


def _entries(
    content: dict[str, Any],
    name: str,
    kind: type[list[Any]] | type[dict[str, Any]],
    path: str | os.PathLike[str],
) -> list[Any]:
    """The entry whose key ends in a name, whatever its number and case."""
    for key, value in content.items():
        if key.partition("-")[2].lower() == name and isinstance(value, kind):
            return [*value]
    raise FileError(f"`{path}` is no result of TE-CCL: it has no {name}")


def _matched(
    pattern: re.Pattern[str], text: object, path: str | os.PathLike[str]
) -> tuple[int, ...]:
    found = pattern.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        raise FileError(f"`{path}`: `{str(text)[:80]}` is not understood")
    return tuple(map(int, found.groups()))
