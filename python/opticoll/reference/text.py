"""How the text of a plan is read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal, InvalidOperation

from opticoll.reference.grid import read_grid
from opticoll.reference.plan import (
    CONVERTED,
    Budget,
    Collective,
    Fabric,
    Lightpath,
    NotAPlan,
    Plan,
)

KINDS = (
    *("all_gather", "reduce_scatter", "all_reduce", "broadcast"),
    *("reduce", "gather", "scatter", "all_to_all", "barrier"),
)
SHIFTS = ("chunk", "rank", "source", "destination", "fibre", "wavelength")


def read(text: str) -> Plan:
    """Read a plan from its text.

    Raises:
        NotAPlan: whatever is not of the form. What is of the form but wrong is `verify`'s business.
    """
    lines = []
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.split("#")[0].split()
        if words:
            lines.append((number, words))
    number = 1
    try:
        expect(lines[0][1] == ["opticoll", "plan", "1"], "expected `opticoll plan 1`")
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
                plan.lightpaths += read_lightpaths(plan, slot or 0, keyword, words)
            else:
                expect(keyword == "end", "expected slot, copy, reduce or end")
                (word,) = words
                expect(whole(word) == len(plan.lightpaths), "lightpaths are missing")
                expect(number == lines[-1][0], "nothing may follow the end")
        expect(lines[-1][1][0] == "end", "the end is missing")
    except (ValueError, IndexError, InvalidOperation) as error:
        raise NotAPlan(f"line {number}: {error}") from error
    return plan


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
    for keyword, *words in options:
        expect(keyword in ("size", "claim"), "expected size, claim or steps")
        match keyword, *words:
            case "size", _:
                pass
            case "claim", "neighbours_only":
                plan.claims["neighbours_only"] = 1
            case "claim", "paper_step_share", share:
                over, under = share.split("/")
                expect(whole(over) >= 0 and whole(under) > 0, "expected a fraction")
            case "claim", "paper_steps" | "schedule_steps" | "chunks_sent_per_rank" as name, number:
                plan.claims[name] = whole(number)
            case _:
                raise NotAPlan("no such line")
    return plan


def read_collective(words: list[str]) -> Collective:
    kind, *options = words
    expect(kind in KINDS, f"no collective is called {kind}")
    named = [option.split("=") for option in options]
    expect([key for key, _ in named] == ["ranks", "root", "pieces"], "expected ranks, root, pieces")
    ranks, root, pieces = (whole(value) for _, value in named)
    expect(ranks >= 1 and pieces >= 1, "ranks and pieces start at 1")
    expect(root < ranks, "the root is no rank")
    return Collective(kind, ranks, root, pieces)


ELECTRICAL = (
    *("crossbar", "fat_tree", "dragonfly", "torus", "mesh"),
    *("ladder", "electrical_ring", "fully_connected", "custom"),
)


def read_fabric(spec: str, ranks: int) -> Fabric:
    """The fabric of a collective of so many ranks.

    Of an electrical fabric nothing but that is known here: how many ranks its options make, the
    core must say.
    """
    family, _, options = spec.partition(":")
    if family in ELECTRICAL:
        return Fabric(ranks, wavelengths=0, fibres=0, electrical=True)
    if family == "wss_grid":
        grid = read_grid(dict(option.split("=") for option in options.split(",")))
        return Fabric(len(grid.nodes), grid.wavelengths, fibres=2, grid=grid)
    if family == "light_path_grid":
        values = dict(option.split("=") for option in options.split(","))
        count, of_rank = whole(values["ranks"]), whole(values.get("ports", "1"))
        return Fabric(count, wavelengths=0, fibres=0, path_ports=of_rank)
    expect(family == "wdm_ring", "the reference knows no such fabric; spell it in full")
    values = dict(option.split("=") for option in options.split(","))
    ports = values.get("ports", "all")
    ranks = whole(values["ranks"]) if "ranks" in values else 0
    wavelengths = whole(values["wavelengths"]) if "wavelengths" in values else 0
    fibres = whole(values.get("fibres", "1"))
    broken: set[tuple[str, int]] = set()
    for cut in values["broken"].split("+") if "broken" in values else []:
        broken |= read_cut(cut, ranks)
    dead: set[tuple[int, int]] = set()
    for channel in values["dead"].split("+") if "dead" in values else []:
        fibre, _, wavelength = channel.rpartition(".")
        on = [whole(fibre)] if fibre else range(fibres)
        dead |= {(number, whole(wavelength)) for number in on}
    return Fabric(
        ranks=ranks,
        wavelengths=wavelengths,
        fibres=fibres,
        ports=None if ports == "all" else whole(ports),
        converters=values.get("converters", "none") == "full",
        multicast=values.get("multicast", "none") == "drop_and_continue",
        reach=whole(values["reach"]) if "reach" in values else None,
        budget=read_budget(values, wavelengths) if "launch_power" in values else None,
        broken=frozenset(broken),
        dead=frozenset(dead),
    )


def read_cut(cut: str, ranks: int) -> set[tuple[str, int]]:
    """`3-4` is both ways between ranks 3 and 4, `3-4cw` and `3-4ccw` one of them."""
    ends = cut.removesuffix("cw").removesuffix("c")
    lower, upper = (whole(end) for end in ends.split("-"))
    if (lower + 1) % ranks != upper:
        lower, upper = upper, lower
    expect((lower + 1) % ranks == upper, f"`{ends}` are no neighbours")
    links = {("cw", lower), ("ccw", upper)}
    return {link for link in links if cut == ends or cut == ends + link[0]}


def read_budget(values: dict[str, str], wavelengths: int) -> Budget:
    def decibels(key: str, unit: str) -> Decimal:
        return Decimal(values.get(key, f"0{unit}").removesuffix(unit))

    return Budget(
        launch_power=decibels("launch_power", "dBm"),
        sensitivity=decibels("sensitivity", "dBm"),
        through_loss=decibels("through_loss", "dB"),
        drop_loss=decibels("drop_loss", "dB"),
        split_loss=decibels("split_loss", "dB"),
        resonators=whole(values.get("resonators", str(wavelengths))),
    )


def read_lightpaths(plan: Plan, slot: int, action: str, words: list[str]) -> Iterator[Lightpath]:
    """One line: a lightpath, and its repetitions."""
    chunks, ends, *others = words
    relays: tuple[tuple[int, str, int, int], ...] = ()
    if plan.fabric.grid is not None:
        ends, relays, light, repetitions = read_way(ends, others)
    elif plan.fabric.path_ports is not None:
        light, repetitions = ["", others[0]], others[1:]
    else:
        light, repetitions = ([], others) if plan.fabric.electrical else (others[:2], others[2:])
    way, channel = light if light else ("", "0.0")
    directed = not plan.fabric.electrical and plan.fabric.path_ports is None
    chunk, plus, count = chunks.partition("+")
    source, _, destination = ends.partition(">")
    fibre, _, wavelength = channel.partition(".")
    ways = ("row", "column") if plan.fabric.grid else ("cw", "ccw")
    expect(not directed or way in ways, f"expected {ways[0]} or {ways[1]}")
    shifts = SHIFTS if directed else SHIFTS[:4]
    expect(not (relays and repetitions), "what is relayed is not repeated")
    lightpath = Lightpath(
        slot=slot,
        action=action,
        chunk=whole(chunk),
        count=whole(count) if plus else 1,
        source=whole(source),
        destination=whole(destination),
        way=way,
        fibre=whole(fibre),
        wavelength=CONVERTED
        if wavelength == "*" and not plan.fabric.grid
        else channel_of(wavelength),
        relays=relays,
    )
    ranks = range(plan.collective.ranks)
    expect(lightpath.source in ranks and lightpath.destination in ranks, "no such rank")
    expect(lightpath.chunk < plan.collective.chunks, "no such chunk")
    blocks: list[tuple[int, dict[str, int]]] = []
    for word in repetitions:
        if word.startswith("x"):
            expect(whole(word[1:]) >= 1, "a repetition of nothing")
            blocks.append((whole(word[1:]), dict.fromkeys(SHIFTS, 0)))
        else:
            name, _, by = word.partition("+")
            expect(bool(blocks) and name in shifts, "expected a repetition")
            blocks[-1][1][name] = whole(by)
    return repeat(plan, lightpath, blocks)


def read_way(
    ends: str, words: list[str]
) -> tuple[str, tuple[tuple[int, str, int, int], ...], list[str], list[str]]:
    """On a grid `0>4>7 row.3 column.0@2`: ends without relays, relays, light, repetitions."""
    source, *over, destination = ends.split(">")
    first, *others = words
    relays = []
    for rank, word in zip(over, others, strict=False):
        light, _, slot = word.partition("@")
        plane, _, wavelength = light.partition(".")
        expect(plane in ("row", "column"), "expected row or column")
        relays.append((whole(rank), plane, channel_of(wavelength), whole(slot)))
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
        wavelength = lightpath.wavelength
        if wavelength is not CONVERTED:
            wavelength += copy * by["wavelength"]
        shifted = replace(
            lightpath,
            chunk=(lightpath.chunk + copy * by["chunk"]) % chunks,
            source=(lightpath.source + copy * (by["rank"] + by["source"])) % ranks,
            destination=(lightpath.destination + copy * (by["rank"] + by["destination"])) % ranks,
            fibre=lightpath.fibre + copy * by["fibre"],
            wavelength=wavelength,
        )
        yield from repeat(plan, shifted, inner)


def channel_of(word: str) -> int:
    """A wavelength; they are numbered with 16 bits, the last of which stands for a conversion."""
    expect(whole(word) < 2**16 - 1, f"`{word}` is no wavelength")
    return whole(word)


def whole(word: str) -> int:
    expect(word.isascii() and word.isdigit(), f"`{word}` is no whole number")
    return int(word)


def expect(condition: bool, problem: str) -> None:
    if not condition:
        raise NotAPlan(problem)
