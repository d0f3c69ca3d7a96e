"""Reader of MSCCL's XML, whose elements are `algo` > `gpu` (a rank) > `tb` (a block) > `step`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn
from xml.parsers import expat

from opticoll.reference.plan import Collective, NotAPlan, TooLarge
from opticoll.reference.program import ACTS, Block, Program, Rank, Step
from opticoll.reference.words import expect

INSIDE = {"algo": "", "gpu": "algo", "copy": "gpu", "tb": "gpu", "step": "tb"}
"""Name of the parent element, by name of the element."""

KINDS = (
    *("all_gather", "reduce_scatter", "all_reduce", "all_to_all"),
    *("broadcast", "reduce", "gather", "scatter"),
)
MAX_CHARACTERS = 64 * 2**20
MAX_ATTRIBUTE_LENGTH = 4096
MAX_NUMBER = 2**20
"""Largest number that an attribute may have."""


class Element:
    """XML element with its attributes, its line and its children."""

    def __init__(self, tag: str, attributes: dict[str, str], line: int) -> None:
        self.tag, self.given, self.line = tag, attributes, line
        self.children: list[Element] = []

    def number(self, name: str, otherwise: int | None = None, least: int = -1) -> int:
        text = self.given.get(name)
        if text is None:
            expect(otherwise is not None, f"line {self.line}: {name} is missing")
            return int(otherwise or 0)
        plain = text.strip()
        expect(plain.lstrip("+-").isdecimal(), f"line {self.line}: {name} is `{text[:50]}`")
        expect(len(plain) < 10, f"line {self.line}: {name} is too long")
        number = int(plain)
        expect(least <= number <= MAX_NUMBER, f"line {self.line}: {name} is {number}")
        return number

    def numbered(self, name: str) -> list[Element]:
        """Returns the children, sorted by the attribute `name`; its values must be 0, 1, 2, ...

        Copies have no numbers.
        """
        own = [child for child in self.children if child.tag != "copy"]
        children = sorted(own, key=lambda child: child.number(name, least=0))
        for place, child in enumerate(children):
            expect(child.number(name) == place, f"line {child.line}: there is no {name} {place}")
        return children


def read_msccl(text: str) -> Program:
    """Reads a program from MSCCL's XML.

    Raises:
        NotAPlan: the text describes no program.
        TooLarge: the text is longer than any program.
    """
    if len(text) > MAX_CHARACTERS:
        raise TooLarge(f"{len(text)} characters are more than {MAX_CHARACTERS} to look at")
    algo = elements(text)
    ranks = algo.number("ngpus", least=1)
    chunks = algo.number("nchunksperloop", least=1)
    names = [kind for kind in KINDS if kind.replace("_", "") == plain(algo.given.get("coll", ""))]
    expect(names != [], f"line {algo.line}: this collective is not known")
    (kind,) = names
    parts = 1 if kind in ("all_reduce", "broadcast", "reduce") else ranks
    expect(chunks % parts == 0, f"line {algo.line}: {chunks} chunks are no {parts} equal blocks")
    root = algo.number("root", 0, least=0)
    expect(root < ranks, f"line {algo.line}: root {root} is not a rank")
    in_place = algo.number("inplace", 0, least=0)
    out_of_place = algo.number("outofplace", 1 - min(in_place, 1), least=0)
    expect(max(in_place, out_of_place) == 1, f"line {algo.line}: neither in place nor out of place")
    gpus = algo.numbered("id")
    expect(len(gpus) == ranks, f"line {algo.line}: {len(gpus)} gpus, not {ranks}")
    return Program(
        Collective(kind, ranks, root, chunks // parts),
        in_place == 1,
        out_of_place == 1,
        [rank_of(gpu, ranks) for gpu in gpus],
    )


def plain(name: str) -> str:
    return name.strip().lower().replace("_", "").replace("-", "")


def rank_of(gpu: Element, ranks: int) -> Rank:
    for stated in ("i_chunks", "o_chunks"):
        gpu.number(stated, 0, least=0)
    blocks = []
    for tb in gpu.numbered("id"):
        peers = [tb.number(name, -1) for name in ("send", "recv")]
        expect(max(peers) < ranks, f"line {tb.line}: rank {max(peers)} does not exist")
        steps = [step_of(step) for step in tb.numbered("s")]
        blocks.append(Block(peers[0], peers[1], tb.number("chan", 0, least=0), steps))
    copies = [copy_of(copy) for copy in gpu.children if copy.tag == "copy"]
    if copies:
        # All blocks begin after the copies, so the numbers of their steps rise by one.
        begin = Step("nop", ("i", 0), ("i", 0), 0, (len(blocks), len(copies) - 1), False, 0)
        for block in blocks:
            later = [
                step._replace(waits=step.waits and (step.waits[0], step.waits[1] + 1))
                for step in block.steps
            ]
            block.steps[:] = [begin, *later]
        blocks.append(Block(-1, -1, 0, copies))
    return Rank(gpu.number("s_chunks", 0, least=0), blocks)


def copy_of(copy: Element) -> Step:
    """Returns an initial copy of a chunk from the input to the output."""
    source, target = (copy.number(name, least=0) for name in ("i_off", "o_off"))
    return Step("cpy", ("i", source), ("o", target), 1, None, True, copy.line)


def step_of(step: Element) -> Step:
    act = step.given.get("type", "")
    expect(act in ACTS, f"line {step.line}: there is no type `{act[:50]}`")
    buffers = [step.given.get(name, "i") for name in ("srcbuf", "dstbuf")]
    expect(set(buffers) <= {"i", "o", "s"}, f"line {step.line}: the buffers are i, o and s")
    block, awaited = step.number("depid", -1), step.number("deps", -1)
    expect(block < 0 or awaited >= 0, f"line {step.line}: depid without deps")
    expect(step.number("hasdep", 0, least=0) <= 1, f"line {step.line}: hasdep is 0 or 1")
    least = 0 if act == "nop" else 1
    return Step(
        act,
        (buffers[0], step.number("srcoff", -1)),
        (buffers[1], step.number("dstoff", -1)),
        step.number("cnt", least, least=least),
        (block, awaited) if block >= 0 else None,
        step.number("hasdep", 0) == 1,
        step.line,
    )


def elements(text: str) -> Element:
    """Returns the root element; refuses document types, which could define entities."""
    parser = expat.ParserCreate()
    open_ones: list[Element] = []
    outermost: list[Element] = []

    def refuse(*_: object) -> NoReturn:
        raise NotAPlan(f"line {parser.CurrentLineNumber}: document types are refused")

    def start(tag: str, attributes: dict[str, str]) -> None:
        line = parser.CurrentLineNumber
        parent = open_ones[-1].tag if open_ones else ""
        expect(INSIDE.get(tag) == parent, f"line {line}: <{tag[:50]}> must not be there")
        longest = max(map(len, attributes.values()), default=0)
        expect(longest <= MAX_ATTRIBUTE_LENGTH, f"line {line}: an attribute is too long")
        element = Element(tag, attributes, line)
        (open_ones[-1].children if open_ones else outermost).append(element)
        open_ones.append(element)

    def text_inside(characters: str) -> None:
        expect(characters.strip() == "", f"line {parser.CurrentLineNumber}: text is refused")

    handlers: dict[str, Callable[..., Any]] = {
        "StartElementHandler": start,
        "EndElementHandler": lambda _: open_ones.pop(),
        "CharacterDataHandler": text_inside,
        "StartDoctypeDeclHandler": refuse,
        "EntityDeclHandler": refuse,
    }
    for name, handler in handlers.items():
        setattr(parser, name, handler)
    try:
        parser.Parse(text, True)
    except (expat.ExpatError, UnicodeEncodeError, ValueError) as error:
        if isinstance(error, NotAPlan):
            raise
        raise NotAPlan(f"no XML: {error}") from error
    return outermost[0]
