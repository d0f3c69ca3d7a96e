"""How the text of a plan is read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from opticoll.reference.fabric import expect, plain, read_fabric, size, whole
from opticoll.reference.plan import CONVERTED, Collective, Lightpath, NotAPlan, Plan

KINDS = (
    *("all_gather", "reduce_scatter", "all_reduce", "broadcast"),
    *("reduce", "gather", "scatter", "all_to_all", "barrier"),
)
SHIFTS = ("chunk", "rank", "source", "destination", "wavelength", "fibre")


def read(text: str) -> Plan:
    """Read a plan from its text.

    Raises:
        NotAPlan: whatever is not of the form. What is of the form but wrong is `verify`'s business.
    """
    number = 1
    try:
        lines = list(lines_of(text))
        first = text.split("\n")[lines[0][0] - 1]
        expect(first.split("#")[0].rstrip() == "opticoll plan 1", "expected `opticoll plan 1`")
        expect(lines[-1][1][0] == "end" and len(lines[-1][1]) == 2, "the end is missing")
        declared = whole(lines[-1][1][1], 2**27)
        plan = read_head(lines)
        slot = None
        for number, (keyword, *words) in lines[head_length(lines) :]:
            if keyword == "slot":
                (word,) = words
                expect(slot is None or whole(word) > slot, "slots must increase")
                slot = whole(word)
                expect(slot < sum(plan.steps), "the steps have no such slot")
            elif keyword in ("copy", "reduce"):
                expect(slot is not None, "a lightpath needs a slot")
                room = declared - len(plan.lightpaths)
                plan.lightpaths += read_lightpaths(plan, slot or 0, keyword, words, room)
            else:
                expect(keyword == "end", "expected slot, copy, reduce or end")
                expect(declared == len(plan.lightpaths), "lightpaths are missing")
                expect(number == lines[-1][0], "nothing may follow the end")
    except (ValueError, IndexError, KeyError) as error:
        raise NotAPlan(f"line {number}: {error}") from error
    return plan


def lines_of(text: str) -> Iterator[tuple[int, list[str]]]:
    """The lines that say something, by number: their words, without comments.

    Lines end with a line feed, which may have a carriage return before it, and nowhere else; words
    are parted by blanks and tabs. Other characters that do not print are of no form.
    """
    *lines, last = text.split("\n")
    for number, line in enumerate([*(line.removesuffix("\r") for line in lines), last], start=1):
        said = line.split("#")[0]
        odd = [one for one in said if one not in " \t" and (one.isspace() or is_control(one))]
        if odd:
            raise NotAPlan(f"line {number}: the character {odd[0]!r}")
        words = said.replace("\t", " ").split(" ")
        if any(words):
            yield number, [word for word in words if word]


def is_control(character: str) -> bool:
    return character < " " or "\x7f" <= character < "\xa0"


def head_length(lines: list[tuple[int, list[str]]]) -> int:
    """How many lines there are up to and including `steps`."""
    keywords = [words[0] for _, words in lines]
    return keywords.index("steps") + 1


def read_head(lines: list[tuple[int, list[str]]]) -> Plan:
    collective, fabric, algorithm, *options = (words for _, words in lines[1 : head_length(lines)])
    *options, steps = options
    expect(collective[0] == "collective", "expected collective")
    expect(fabric[0] == "fabric" and len(fabric) == 2, "expected a fabric")
    expect(algorithm[0] == "algorithm", "expected algorithm")
    plan = Plan(
        collective=read_collective(collective[1:]),
        fabric=read_fabric(fabric[1], whole(collective[2].removeprefix("ranks="))),
        steps=[whole(word) for word in steps[1:]],
    )
    expect(plan.fabric.ranks == plan.collective.ranks, "fabric and collective differ in ranks")
    expect(sum(plan.steps) <= 2**24, "a plan has 2^24 slots at most")
    for place, (keyword, *words) in enumerate(options):
        expect(keyword in ("size", "claim"), "expected size, claim or steps")
        match keyword, *words:
            case "size", word:
                expect(place == 0, "one size, before the claims")
                size(word)
            case "claim", name, *_ if name in plan.claims:
                raise NotAPlan("claimed twice")
            case "claim", "neighbours_only":
                plan.claims["neighbours_only"] = 1
            case "claim", "paper_step_share", share:
                over, under = share.split("/")
                expect(whole(over) >= 0 and whole(under) > 0, "expected a fraction")
                plan.claims["paper_step_share"] = 1
            case "claim", "paper_steps" | "schedule_steps" | "chunks_sent_per_rank" as name, number:
                plan.claims[name] = whole(number, 2 ** (32 if name == "schedule_steps" else 64) - 1)
            case _:
                raise NotAPlan("no such line")
    return plan


def read_collective(words: list[str]) -> Collective:
    kind, *options = words
    kinds = {plain(known): known for known in KINDS}
    expect(plain(kind) in kinds, f"no collective is called {kind}")
    named = [option.split("=") for option in options]
    expect([key for key, _ in named] == ["ranks", "root", "pieces"], "expected ranks, root, pieces")
    ranks, root, pieces = (whole(value) for _, value in named)
    expect(ranks >= 1 and pieces >= 1, "ranks and pieces start at 1")
    expect(root < ranks, "the root is no rank")
    collective = Collective(kinds[plain(kind)], ranks, root, pieces)
    expect(collective.chunks < 2**32, "the collective has 2^32 chunks or more")
    return collective


def read_lightpaths(
    plan: Plan, slot: int, action: str, words: list[str], room: int
) -> Iterator[Lightpath]:
    """One line: a lightpath, and its repetitions, which are no more than there is room for."""
    chunks, ends, *others = words
    relays: tuple[tuple[int, str, int, int], ...] = ()
    ports = (0, 0)
    if plan.fabric.grid is not None:
        ends, relays, light, repetitions = read_way(plan, ends, others)
    elif plan.fabric.path_ports is not None:
        source_port, _, destination_port = others[0].partition(".")
        ports = whole(source_port, 2**8 - 1), whole(destination_port, 2**16 - 1)
        light, repetitions = [], others[1:]
    else:
        light, repetitions = ([], others) if plan.fabric.electrical else (others[:2], others[2:])
    way, channel = light if light else ("", "0.0")
    directed = not plan.fabric.electrical and plan.fabric.path_ports is None
    chunk, plus, count = chunks.partition("+")
    source, _, destination = ends.partition(">")
    fibre, _, wavelength = channel.partition(".")
    ways = ("row", "column") if plan.fabric.grid else ("cw", "ccw")
    expect(not directed or way in ways, f"expected {ways[0]} or {ways[1]}")
    shifts = SHIFTS[: 4 if not directed else 5 if plan.fabric.grid else 6]
    expect(not (relays and repetitions), "what is relayed is not repeated")
    lightpath = Lightpath(
        slot=slot,
        action=action,
        chunk=whole(chunk),
        count=whole(count) if plus else 1,
        source=whole(source),
        destination=whole(destination),
        way=way,
        fibre=whole(fibre, 2**8 - 1),
        wavelength=CONVERTED
        if wavelength == "*" and plan.fabric.grid is None
        else channel_of(wavelength, plan),
        ports=ports,
        relays=relays,
    )
    ranks = range(plan.collective.ranks)
    expect(lightpath.source in ranks and lightpath.destination in ranks, "no such rank")
    expect(lightpath.chunk < plan.collective.chunks, "no such chunk")
    blocks: list[tuple[int, dict[str, int]]] = []
    for word in repetitions:
        if word.startswith("x"):
            room //= max(whole(word[1:]), 1)
            expect(whole(word[1:]) >= 1 and room >= 1, "a repetition of nothing, or of too much")
            expect(len(blocks) < 32, "at most 32 repetitions to a lightpath")
            blocks.append((whole(word[1:]), dict.fromkeys(SHIFTS, 0)))
        else:
            name, _, by = word.partition("+")
            expect(bool(blocks) and name in shifts, "expected a repetition")
            blocks[-1][1][name] = whole(by)
    return repeat(plan, lightpath, blocks)


def read_way(
    plan: Plan, ends: str, words: list[str]
) -> tuple[str, tuple[tuple[int, str, int, int], ...], list[str], list[str]]:
    """On a grid `0>4>7 row.3 column.0@2`: ends without relays, relays, light, repetitions."""
    source, *over, destination = ends.split(">")
    first, *others = words
    relays = []
    for rank, word in zip(over, others, strict=False):
        light, _, slot = word.partition("@")
        plane, _, wavelength = light.partition(".")
        expect(plane in ("row", "column"), "expected row or column")
        relays.append((whole(rank), plane, channel_of(wavelength, plan), whole(slot)))
    expect(len(relays) == len(over), "the light of a relay is missing")
    plane, _, wavelength = first.partition(".")
    light_of_first = [plane, f"0.{wavelength}"]
    return f"{source}>{destination}", tuple(relays), light_of_first, others[len(over) :]


def repeat(
    plan: Plan, lightpath: Lightpath, blocks: list[tuple[int, dict[str, int]]]
) -> Iterator[Lightpath]:
    """Repeat a lightpath; the last block is the outermost."""
    if not blocks:
        yield lightpath
        return
    *inner, (count, by) = blocks
    ranks, chunks = plan.collective.ranks, plan.collective.chunks
    for copy in range(count):
        wavelength, fibre = lightpath.wavelength, lightpath.fibre + copy * by["fibre"]
        expect(fibre < 2**8, "no such fibre")
        if by["wavelength"] > 0:
            expect(wavelength is not CONVERTED, "a converted lightpath has no wavelength to shift")
            wavelength = channel_of(str((wavelength or 0) + copy * by["wavelength"]), plan)
        shifted = replace(
            lightpath,
            chunk=(lightpath.chunk + copy * by["chunk"]) % chunks,
            source=(lightpath.source + copy * (by["rank"] + by["source"])) % ranks,
            destination=(lightpath.destination + copy * (by["rank"] + by["destination"])) % ranks,
            fibre=fibre,
            wavelength=wavelength,
        )
        yield from repeat(plan, shifted, inner)


def channel_of(word: str, plan: Plan) -> int:
    """A wavelength of 16 bits; on a ring the last number stands for a conversion."""
    return whole(word, 2**16 - (2 if plan.fabric.grid is None else 1))
