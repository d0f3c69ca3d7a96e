"""Programs that are changed in one place: both verifiers reject them, or their bytes are right."""

from __future__ import annotations

import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from functools import partial

import pytest

import opticoll
from opticoll import Program
from opticoll.execution.payload import Payload
from opticoll.reference.msccl import read_msccl
from opticoll.reference.plan import NotAPlan
from opticoll.reference.program import verify_program

KINDS = {
    "drop": "an instruction is left out",
    "double": "an instruction is there twice",
    "swap": "two neighbouring instructions change places",
    "retarget": "a thread block sends to, or receives from, another rank",
    "channel": "a thread block uses another channel",
    "resize": "an instruction moves one chunk more",
    "buffer": "an instruction reads or writes another buffer",
    "offset": "an instruction reads or writes one chunk further",
    "dependency": "a dependency is left out, moved, or no longer signalled",
}
"""What is changed."""


def modes(program: Program) -> list[bool]:
    """The modes that a program is for: True is in place."""
    both = {True: program.in_place, False: program.out_of_place}
    return [in_place for in_place, used in both.items() if used]


def wrong(text: str, *, in_place: bool) -> tuple[set[str], set[str]]:
    """The rules that a program breaks, as each of the verifiers has it."""
    first = {one.kind for one in Program.from_msccl(text).verify(in_place=in_place).violations}
    second = {one.kind for one in verify_program(read_msccl(text), in_place=in_place)}
    return first, second


def carried_out(program: Program, *, in_place: bool, threads: int = 2) -> bool:
    """Whether its real bytes are those of the definition."""
    for operator in ("sum", "max"):
        job = Payload(program.collective, 3, "uint32", operator)
        ranks = range(program.collective.ranks)
        outputs = program.run(
            [job.input(rank).tobytes() for rank in ranks],
            elements=3,
            element_type="uint32",
            operator=operator,
            in_place=in_place,
            threads=threads,
        )
        if any(job.output(rank).tobytes() != outputs[rank] for rank in ranks):
            return False
    return True


def field(line: str, name: str) -> str:
    """An attribute of an element; empty where it is missing."""
    found = re.search(rf' {name}="(-?\w+)"', line)
    return found[1] if found else ""


Change = Callable[[], str]
"""Makes the text of a mutant."""


def mutants(text: str) -> Iterator[tuple[str, Change]]:
    """All changes in one place: their kind, and what makes them."""
    lines = text.splitlines()
    steps = {at for at, line in enumerate(lines) if "<step" in line}
    ranks = next(int(field(line, "ngpus")) for line in lines if "<algo" in line)

    def with_field(at: int, name: str, value: int | str) -> str:
        changed = [*lines]
        changed[at] = re.sub(rf' {name}="[^"]*"', f' {name}="{value}"', changed[at], count=1)
        return "\n".join(changed)

    def moved(first: int, *between: int, last: int) -> str:
        """The lines up to one, some, and those from one on, with steps numbered anew."""
        number, changed = 0, [*lines[:first], *(lines[one] for one in between), *lines[last:]]
        for at, line in enumerate(changed):
            number = 0 if "<tb" in line else number
            if "<step" in line:
                changed[at] = re.sub(r' s="\d+"', f' s="{number}"', line, count=1)
                number += 1
        return "\n".join(changed)

    for at, line in enumerate(lines):
        if at in steps:
            yield "drop", partial(moved, at, last=at + 1)
            yield "double", partial(moved, at, at, last=at)
            if at + 1 in steps:
                yield "swap", partial(moved, at, at + 1, at, last=at + 2)
            changes: list[tuple[str, str, int | str]] = [
                ("offset", name, int(field(line, name) or 0) + 1) for name in ("srcoff", "dstoff")
            ]
            changes += [("resize", "cnt", int(field(line, "cnt") or 0) + 1)]
            others = {"i": "s", "o": "i", "s": "o"}
            changes += [
                ("buffer", name, others[field(line, name) or "i"]) for name in ("srcbuf", "dstbuf")
            ]
            if int(field(line, "depid") or -1) >= 0:
                changes += [("dependency", "depid", -1)]
                changes += [("dependency", "deps", int(field(line, "deps")) - 1)]
            if field(line, "hasdep") == "1":
                changes += [("dependency", "hasdep", 0)]
        elif "<tb" in line:
            changes = [
                ("retarget", name, (peer + 1) % ranks)
                for name in ("send", "recv")
                if (peer := int(field(line, name) or -1)) >= 0
            ]
            changes += [("channel", "chan", int(field(line, "chan") or 0) + 1)]
        else:
            continue
        for kind, name, value in changes:
            if field(line, name):
                yield kind, partial(with_field, at, name, value)


def sampled(text: str, most: int | None, seed: int) -> Iterator[tuple[str, str]]:
    """Mutants, at most so many of each kind, chosen by a seed."""
    by_kind: defaultdict[str, list[Change]] = defaultdict(list)
    for kind, change in mutants(text):
        by_kind[kind].append(change)
    for kind, changes in by_kind.items():
        few = most is None or len(changes) <= most
        chosen = changes if few else random.Random(seed).sample(changes, most or 0)
        yield from ((kind, change()) for change in chosen)


def judged(text: str, most: int | None = None, seed: int = 20) -> Counter[tuple[str, str]]:
    """What becomes of mutants, by kind: refused by both readers, rejected by both verifiers, or
    equivalent: with the right bytes in every mode.
    """
    counts: Counter[tuple[str, str]] = Counter()
    for kind, changed in sampled(text, most, seed):
        counts[kind, "tried"] += 1
        try:
            read_msccl(changed)
        except NotAPlan:
            with pytest.raises(opticoll.OpticollError):
                Program.from_msccl(changed)
            counts[kind, "refused"] += 1
            continue
        program = Program.from_msccl(changed)
        rules: set[str] = set()
        for in_place in modes(program):
            first, second = wrong(changed, in_place=in_place)
            assert bool(first) == bool(second), (kind, first, second, changed)
            rules |= first
            for threads in () if first else (1, 2):
                assert carried_out(program, in_place=in_place, threads=threads), (kind, changed)
        counts[kind, "rejected" if rules else "equivalent"] += 1
        counts[kind, "only by a race"] += rules == {"race"}
    return counts
