"""Algorithms of SCCL (msccl-tools) in JSON: chunks that are sent in steps.

The file states the collective as a list of chunks. A chunk has an address, a rank that has the
chunk before (`pre`), and ranks that need the chunk (`post`). Chunks with the same address are
summands of one sum. Sends name the address, the source and the destination. If the instance cuts
chunks into parts, the addresses of sends count parts.

A send carries all summands that its source has. They replace the summands of the destination if
they include all of these, and are added otherwise. If an added sum contains a summand that the
destination has, the verifier reports `double_reduction`; SCCL itself accepts such algorithms.

Source: `msccl/serialization.py`, `msccl/algorithm.py` and `msccl/collectives.py` of msccl-tools at
commit 030a750f. SCCL, the earlier name of msccl-tools, writes the key `sccl_type`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

from opticoll._core import Collective, Schedule
from opticoll.errors import ConfigError, FileError
from opticoll.formats.content import MAX_TEXT_BYTES, read_text
from opticoll.formats.document import parse_json
from opticoll.formats.sends_csv import Line, schedule_of

MAX_NUMBER = 2**20
"""Maximum number of ranks, of addresses, and of parts of a chunk."""

NO_COLLECTIVE = (
    "`pre` and `post` of the chunks describe none of all_gather, reduce_scatter, all_reduce, "
    "broadcast, reduce, gather, scatter, and all_to_all with equal blocks"
)


class Ends(NamedTuple):
    """Ranks that have the chunks of an address before, and ranks that need their sum."""

    before: frozenset[int]
    after: frozenset[int]


class Send(NamedTuple):
    """Send of a part of the chunks with one address."""

    step: int
    part: int
    source: int
    destination: int


def read(path: str | os.PathLike[str], ranks: int | None = None) -> tuple[Schedule, list[str]]:
    """Reads a schedule from a file, which states the number of ranks; `ranks` has no effect.

    Raises
    ------
    FileError
        The file is no algorithm of SCCL, or opticoll does not have its collective.
    """
    try:
        return _schedule(parse_json(read_text(path, "JSON file", most=MAX_TEXT_BYTES))), []
    except ConfigError as error:
        raise FileError(f"`{path}`: {error}") from error


def _schedule(content: Any) -> Schedule:
    algorithm = _table(content, "the file", "algorithm")
    stated = _table(algorithm.get("collective"), "`collective`", "collective")
    instance = _table(algorithm.get("instance"), "`instance`", "instance")
    ranks, parts = (
        _number(table.get(name), f"`{name}`", least=1)
        for table, name in ((stated, "nodes"), (instance, "chunks"))
    )
    ends = _ends(_list(stated.get("chunks"), "`chunks`"), ranks)
    kind, root, blocks = _blocks(ends, ranks)
    per_block = len(blocks[0])
    first_parts = {
        address: (number * per_block + place) * parts
        for number, block in enumerate(blocks)
        for place, address in enumerate(block)
    }
    sends = []
    for step, table in enumerate(_list(algorithm.get("steps"), "`steps`")):
        for numbers in _list(_table(table, f"step {step}", "step").get("sends"), "`sends`"):
            if len(_list(numbers, "a send")) != 3:
                raise ConfigError(f"step {step}: a send names an address and two ranks")
            send = Send(step, *(_number(number, "a send") for number in numbers))
            if send.part // parts not in ends or max(send.source, send.destination) >= ranks:
                raise ConfigError(f"step {step}: address or rank of {numbers} does not exist")
            sends.append(send)
    collective = Collective(kind, ranks, root=root, pieces=per_block * parts)
    return schedule_of(collective, _transfers(sends, ends, first_parts, parts))


def _transfers(
    sends: list[Send], ends: dict[int, Ends], first_parts: dict[int, int], parts: int
) -> Iterator[Line]:
    """Yields the transfers. A source sends what it has before the step."""
    held: dict[tuple[int, int], frozenset[int]] = {}

    def summands(rank: int, part: int) -> frozenset[int]:
        return held.get((rank, part), ends[part // parts].before & {rank})

    for step, together in groupby(sends, key=itemgetter(0)):
        arrived: dict[tuple[int, int], frozenset[int]] = {}
        for _, part, source, destination in together:
            place = destination, part
            there = arrived.get(place) or summands(*place)
            sent = summands(source, part)
            arrived[place] = there | sent
            action = "copy" if there <= sent else "reduce"
            chunk = first_parts[part // parts] + part % parts
            yield step, source, destination, chunk, 1, action
        held |= arrived


def _ends(chunks: list[Any], ranks: int) -> dict[int, Ends]:
    """Returns the ends of each address, in ascending order of addresses."""
    found: dict[int, Ends] = {}
    for chunk in chunks:
        table = _table(chunk, "a chunk", "chunk")
        before, after = (
            frozenset(_number(rank, f"`{name}`") for rank in _list(table.get(name), f"`{name}`"))
            for name in ("pre", "post")
        )
        address = _number(table.get("addr"), "`addr`")
        summands, needed = found.get(address, Ends(frozenset(), after))
        if max(before | after, default=0) >= ranks:
            raise ConfigError(f"a rank of the chunk with address {address} does not exist")
        if len(before) != 1 or before <= summands or needed != after:
            raise ConfigError(
                f"the chunks with address {address} are not one of each rank with the same `post`"
            )
        found[address] = Ends(summands | before, after)
    return dict(sorted(found.items()))


def _blocks(ends: dict[int, Ends], ranks: int) -> tuple[str, int, list[list[int]]]:
    """Returns the kind of collective, the root, and the addresses of each block."""
    everyone = frozenset(range(ranks))
    befores, afters = ({one[side] for one in ends.values()} for side in (0, 1))
    adds, to_all = befores == {everyone}, afters == {everyone}
    source, destination = _only(befores), _only(afters)
    if to_all:
        kind = "all_reduce" if adds else "all_gather" if source is None else "broadcast"
    elif adds:
        kind = "reduce_scatter" if destination is None else "reduce"
    elif source is None:
        kind = "all_to_all" if destination is None else "gather"
    else:
        kind = "scatter"
    by_source = kind in ("all_gather", "gather", "all_to_all")
    by_destination = kind in ("reduce_scatter", "scatter", "all_to_all")
    blocks: dict[tuple[int, ...], list[int]] = {}
    for address, (before, after) in ends.items():
        if not (adds or len(before) == 1) or not (to_all or len(after) == 1):
            raise ConfigError(NO_COLLECTIVE)
        key = (*(before if by_source else ()), *(after if by_destination else ()))
        blocks.setdefault(key, []).append(address)
    sizes = {len(block) for block in blocks.values()}
    if len(sizes) != 1 or len(blocks) != ranks ** (by_source + by_destination):
        raise ConfigError(NO_COLLECTIVE)
    roots = {"broadcast": source, "scatter": source, "gather": destination, "reduce": destination}
    return kind, roots.get(kind) or 0, [block for _, block in sorted(blocks.items())]


def _only(sets: set[frozenset[int]]) -> int | None:
    """Returns the rank if there is one set, which has one rank."""
    return min(next(iter(sets))) if [len(one) for one in sets] == [1] else None


def _table(value: Any, what: str, kind: str) -> dict[str, Any]:
    """Returns an object of SCCL, which states its kind."""
    found = (
        value.get("msccl_type", value.get("sccl_type")) if isinstance(value, dict) else "no object"
    )
    if found != kind:
        raise ConfigError(f"{what} is of the type `{str(found)[:50]}`, not `{kind}`")
    table: dict[str, Any] = value
    return table


def _list(value: Any, what: str) -> list[Any]:
    if not isinstance(value, list):
        raise ConfigError(f"{what} is not a list")
    return value


def _number(value: Any, what: str, least: int = 0) -> int:
    if type(value) is not int or not least <= value <= MAX_NUMBER:
        raise ConfigError(f"{what}: `{str(value)[:50]}` is not from {least} to {MAX_NUMBER}")
    return value
