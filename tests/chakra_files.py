"""Chakra traces written by hand, byte by byte, and ASTRA-sim's arithmetic of them.

Nothing here uses a reader or a writer of the package.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

METADATA, COMPUTE, SEND, RECEIVE, COLLECTIVE = 1, 4, 5, 6, 7

INTEGERS = {7: 64, 9: 64, 11: 64, 13: 64, 15: 0, 17: 0}
"""Fields of whole numbers as varints; 0 for those whose sign is the last bit."""


def varint(number: int) -> bytes:
    groups = [number >> shift & 0x7F for shift in range(0, max(number.bit_length(), 1), 7)]
    return bytes([group | 0x80 for group in groups[:-1]] + groups[-1:])


def sized(content: bytes) -> bytes:
    return varint(len(content)) + content


def text(number: int, content: str | bytes) -> bytes:
    raw = content.encode() if isinstance(content, str) else content
    return varint(number << 3 | 2) + sized(raw)


def attribute(name: str, value: object, integer: int = 9) -> bytes:
    """Encodes an attribute; the field `integer` gives the type of a whole number."""
    match value:
        case bool():
            held = varint(27 << 3) + varint(value)
        case int() if integer in (19, 21, 23, 25):
            wire, size = (5, 4) if integer in (19, 23) else (1, 8)
            held = varint(integer << 3 | wire) + value.to_bytes(size, "little", signed=value < 0)
        case int() if INTEGERS[integer] == 0:
            held = varint(integer << 3) + varint(value * 2 if value >= 0 else -value * 2 - 1)
        case int():
            held = varint(integer << 3) + varint(value % 2**64)
        case str():
            held = text(29, value)
        case list():
            held = text(28, text(1, bytes(value)))
        case _:
            raise TypeError(value)
    return text(1, name) + held


def header(attributes: Mapping[str, object], version: str = "") -> bytes:
    inside = b"".join(text(2, attribute(name, one)) for name, one in attributes.items())
    return sized((text(1, version) if version else b"") + inside)


def node(
    identity: int,
    kind: int,
    after: Iterable[int] = (),
    *,
    integer: int = 9,
    name: str = "",
    control: Iterable[int] = (),
    micros: int = 0,
    inputs: str = "",
    **attributes: object,
) -> bytes:
    inside = varint(1 << 3) + varint(identity) if identity else b""
    inside += text(2, name) if name else b""
    inside += varint(3 << 3) + varint(kind)
    for number, many in ((4, control), (5, after)):
        packed = b"".join(varint(one) for one in many)
        inside += text(number, packed) if packed else b""
    inside += varint(7 << 3) + varint(micros) if micros else b""
    inside += text(8, text(1, inputs)) if inputs else b""
    for name, value in attributes.items():
        inside += text(10, attribute(name, value, integer))
    return sized(inside)


def messages(content: bytes) -> list[bytes]:
    """Splits a trace into its messages, each with its length."""
    found, at = [], 0
    while at < len(content):
        length, start = read_varint(content, at)
        found.append(content[at : start + length])
        at = start + length
    return found


def read_varint(content: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = content[at]
        number |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return number, at


def fields(content: bytes) -> Iterator[tuple[int, Any]]:
    at = 0
    while at < len(content):
        key, at = read_varint(content, at)
        if key & 7 == 0:
            value: Any
            value, at = read_varint(content, at)
        else:
            length, at = read_varint(content, at)
            value, at = content[at : at + length], at + length
        yield key >> 3, value


def unpacked(message: bytes) -> dict[str, Any]:
    """Decodes a node into a dictionary: id, type, after, its attributes, name and micros if any."""
    _, start = read_varint(message, 0)
    found: dict[str, Any] = {"id": 0, "after": []}
    for number, value in fields(message[start:]):
        match number:
            case 1:
                found["id"] = value
            case 2:
                found["name"] = value
            case 3:
                found["type"] = value
            case 5:
                at = 0
                while at < len(value):
                    one, at = read_varint(value, at)
                    found["after"].append(one)
            case 7:
                found["micros"] = value
            case 10:
                inside = dict(fields(value))
                name = inside.pop(1).decode()
                found[name] = next(iter(inside.values()))
    return found


def finished_ns(traces: list[bytes], *, hop_ns: Any, rate: float) -> int:
    """Returns when ASTRA-sim has completed a custom collective, in whole nanoseconds.

    A node begins when all nodes that it waits for are complete. A message occupies its link (source
    and destination) for its bytes, one message after another, and arrives `hop_ns` of its bytes
    later. Then its send is complete, and its receive if the receive has begun. A node that computes
    takes 1 ns.
    """
    nodes = {
        (rank, one["id"]): one
        for rank, trace in enumerate(traces)
        for one in map(unpacked, messages(trace)[1:])
    }
    waits = {key: len(one["after"]) for key, one in nodes.items()}
    dependents = defaultdict(list)
    for (rank, number), one in nodes.items():
        for earlier in one["after"]:
            dependents[rank, earlier].append((rank, number))
    free: defaultdict[tuple[int, int], float] = defaultdict(float)
    arrived: defaultdict[tuple[int, int, int], list[int]] = defaultdict(list)
    waiting: defaultdict[tuple[int, int, int], list[tuple[Any, int]]] = defaultdict(list)
    ends: dict[Any, int] = {}
    ready = [(0, key) for key, number in waits.items() if number == 0]
    while ready:
        ready.sort(reverse=True)
        now, key = ready.pop()
        one, rank = nodes[key], key[0]
        complete = []
        if one["type"] == COMPUTE:
            complete = [(now + 1, key)]
        elif one["type"] == SEND:
            pair = (rank, one["comm_dst"])
            begin = max(now, free[pair])
            free[pair] = begin + one["comm_size"] / rate
            end = int(begin) + hop_ns(one["comm_size"])
            complete = [(end, key)]
            arrived[(*pair, one["comm_tag"])].append(end)
        else:
            waiting[one["comm_src"], rank, one["comm_tag"]].append((key, now))
        for side, receives in waiting.items():
            while receives and arrived[side]:
                other, at = receives.pop(0)
                complete.append((max(at, arrived[side].pop(0)), other))
        for end, done in complete:
            ends[done] = end
            for dependent in dependents[done]:
                waits[dependent] -= 1
                if waits[dependent] == 0:
                    rank = dependent[0]
                    earlier = (ends[rank, number] for number in nodes[dependent]["after"])
                    ready.append((max(earlier), dependent))
    assert len(ends) == len(nodes), "some nodes never end"
    return max(ends.values())
