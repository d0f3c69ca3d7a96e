"""What a plan means, in the plainest Python: a second verifier to check the first one by.

The verifier of the compiled core is fast, and hence not easy to believe by reading it. This one
is slow, shares not a line with it, imports nothing of this package, and is meant to be read from
top to bottom: first what a plan is, then how its text is read (see ``docs/plan-format.md``), then
the rules, each a few lines over sets and dictionaries. It takes plans of some thousand transfers.

>>> text = '''opticoll plan 1
... collective broadcast ranks=3 root=0 pieces=1
... fabric wdm_ring:ranks=3,wavelengths=1
... algorithm by hand
... steps 1
... slot 0
... copy 0 0>1 cw 0.0
... copy 0 0>2 cw 0.0
... end 2
... '''
>>> for sentence in verify_text(text):
...     print(sentence)
slot 0: transfers 0 (rank 0 to 1) and 1 (rank 0 to 2) share wavelength 0 on cw fibre 0 from rank 0
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from typing import NamedTuple

__all__ = [
    "Collective",
    "Fabric",
    "Lightpath",
    "NotAPlan",
    "Plan",
    "Problem",
    "read",
    "verify",
    "verify_text",
]

# ------------------------------------------------------------------------------------------------
# What a plan is
# ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Collective:
    """What must be true at the end, chunk by chunk."""

    kind: str
    ranks: int
    root: int
    pieces: int
    """Chunks into which each block (or the vector) is cut."""

    @property
    def blocks(self) -> int:
        """One block per rank, one per pair of ranks, or just the vector."""
        if self.kind in ("all_reduce", "broadcast", "reduce", "barrier"):
            return 1
        return self.ranks**2 if self.kind == "all_to_all" else self.ranks

    @property
    def chunks(self) -> int:
        return self.blocks * self.pieces

    @property
    def combines(self) -> bool:
        """Whether contributions are added up; otherwise chunks are only passed on."""
        return self.kind in ("reduce_scatter", "all_reduce", "reduce", "barrier")

    @property
    def overlaps(self) -> bool:
        """Whether a contribution may arrive twice: hearing twice from a rank does no harm."""
        return self.kind == "barrier"

    def before(self, chunk: int) -> set[int]:
        """The ranks that hold a chunk, or contribute to it, before the collective."""
        block = chunk // self.pieces
        if self.combines:
            return set(range(self.ranks))
        if self.kind in ("broadcast", "scatter"):
            return {self.root}
        return {block // self.ranks if self.kind == "all_to_all" else block}

    def after(self, chunk: int) -> set[int]:
        """The ranks that must hold a chunk, with every contribution, after the collective."""
        block = chunk // self.pieces
        if self.kind in ("all_gather", "all_reduce", "broadcast", "barrier"):
            return set(range(self.ranks))
        if self.kind in ("gather", "reduce"):
            return {self.root}
        return {block % self.ranks if self.kind == "all_to_all" else block}


@dataclass(frozen=True)
class Fabric:
    """A ring: each rank has fibres to both neighbours, and each fibre has wavelengths.

    An electrical fabric has no light, and its links do not matter: any rank may send to any other.
    """

    ranks: int
    wavelengths: int
    fibres: int = 1
    electrical: bool = False
    ports: int | None = None
    """Lightpaths that a rank may send, and receive, at once; None: no limit of its own."""
    converters: bool = False
    multicast: bool = False
    """Whether a rank may take a share of passing light and let the rest go on."""
    reach: int | None = None
    """The most links that a lightpath may span."""
    budget: Budget | None = None
    broken: frozenset[tuple[str, int]] = frozenset()
    """Links that nothing crosses: the way that they go and the rank at which they start."""
    dead: frozenset[tuple[int, int]] = frozenset()
    """Fibres with wavelengths on them that cannot be used, on the whole ring, either way."""


@dataclass(frozen=True)
class Budget:
    """What light loses on its way; see ``docs/model.md``."""

    launch_power: Decimal
    sensitivity: Decimal
    through_loss: Decimal
    drop_loss: Decimal
    split_loss: Decimal
    resonators: int

    def arrives(self, links: int, shares: int) -> Decimal:
        """The power that is received over so many links, of which so many ranks took a share."""
        passed = (links - 1) * self.resonators
        lost = passed * self.through_loss + shares * self.split_loss + self.drop_loss
        return self.launch_power - lost


CONVERTED = None
"""The wavelength of a lightpath that converters may change at every rank."""


@dataclass(frozen=True)
class Lightpath:
    """Chunks sent from one rank to another, and the light that carries them."""

    slot: int
    action: str  # copy or reduce
    chunk: int
    count: int
    source: int
    destination: int
    way: str  # cw: towards higher ranks; ccw: towards lower; nothing without light
    fibre: int
    wavelength: int | None

    def chunks(self) -> range:
        return range(self.chunk, self.chunk + self.count)

    def links(self, ranks: int) -> list[int]:
        """The ranks at which the links of the path start."""
        turn = 1 if self.way == "cw" else -1
        links = []
        here = self.source
        while here != self.destination:
            links.append(here)
            here = (here + turn) % ranks
        return links


@dataclass
class Plan:
    """All lightpaths, in the order of the text, and the slots of each step of the schedule."""

    collective: Collective
    fabric: Fabric
    steps: list[int]
    claims: dict[str, int] = field(default_factory=dict)
    lightpaths: list[Lightpath] = field(default_factory=list)

    def step_of(self, slot: int) -> int:
        """The step to which a slot belongs: steps take their slots one after the other."""
        for step, slots in enumerate(self.steps):
            if slot < slots:
                return step
            slot -= slots
        raise NotAPlan(f"the steps have no slot {slot}")


# ------------------------------------------------------------------------------------------------
# How it is read
# ------------------------------------------------------------------------------------------------

KINDS = (
    *("all_gather", "reduce_scatter", "all_reduce", "broadcast"),
    *("reduce", "gather", "scatter", "all_to_all", "barrier"),
)
SHIFTS = ("chunk", "rank", "source", "destination", "fibre", "wavelength")


class NotAPlan(ValueError):  # noqa: N818 - it is what the text is
    """The text is not of the form of a plan; the message says where."""


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
    light, repetitions = ([], others) if plan.fabric.electrical else (others[:2], others[2:])
    way, channel = light if light else ("", "0.0")
    chunk, plus, count = chunks.partition("+")
    source, _, destination = ends.partition(">")
    fibre, _, wavelength = channel.partition(".")
    expect(plan.fabric.electrical or way in ("cw", "ccw"), "expected cw or ccw")
    shifts = SHIFTS[:4] if plan.fabric.electrical else SHIFTS
    lightpath = Lightpath(
        slot=slot,
        action=action,
        chunk=whole(chunk),
        count=whole(count) if plus else 1,
        source=whole(source),
        destination=whole(destination),
        way=way,
        fibre=whole(fibre),
        wavelength=CONVERTED if wavelength == "*" else whole(wavelength),
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


def whole(word: str) -> int:
    expect(word.isascii() and word.isdigit(), f"`{word}` is no whole number")
    return int(word)


def expect(condition: bool, problem: str) -> None:
    if not condition:
        raise NotAPlan(problem)


# ------------------------------------------------------------------------------------------------
# The rules
# ------------------------------------------------------------------------------------------------


class Problem(NamedTuple):
    """A rule that is broken: the kind, named as the core names it, and a sentence."""

    kind: str
    sentence: str


def verify_text(text: str) -> list[str]:
    """Say what is wrong with the plan that a text describes: a sentence each.

    Raises:
        NotAPlan: the text describes no plan at all.
    """
    return [problem.sentence for problem in verify(read(text))]


def verify(plan: Plan) -> list[Problem]:
    """Say what is wrong with a plan; an empty list means that it is proved."""
    named = dict(enumerate(plan.lightpaths))
    sound = {index: path for index, path in named.items() if not malformed(plan, path)}
    dark = plan.fabric.electrical
    lit = {} if dark else {i: path for i, path in sound.items() if not unlit(plan, path)}
    problems = []
    for step, slots in enumerate(plan.steps):
        if dark and slots != 1:
            sentence = f"step {step} takes {slots} slots, but there is no light to wait for"
            problems.append(Problem("step_order", sentence))
    for index, path in named.items():
        for kind, sentence in malformed(plan, path) + unlit(plan, path) + wrong_action(plan, path):
            problems.append(Problem(kind, f"slot {path.slot}: transfer {index} {sentence}"))
    trees = light_trees(plan, lit)
    for index, path in lit.items():
        for kind, sentence in out_of_order(plan, path):
            problems.append(Problem(kind, f"slot {path.slot}: transfer {index} {sentence}"))
    problems += too_far(plan, trees)
    # A light tree is as long as its longest branch; the others are part of that.
    shining = {index: path for *_, (index, path) in trees}
    riding = lit.keys() - shining.keys()
    problems += collisions(plan, shining)
    problems += overloads(plan, shining)
    problems += crowded_ports(plan, sound, riding)
    problems += combined(plan, sound) if plan.collective.combines else passed_on(plan, sound)
    problems += false_claims(plan, sound)
    return problems


Lightpaths = dict[int, Lightpath]
"""Lightpaths by their number in the plan."""


def malformed(plan: Plan, path: Lightpath) -> list[tuple[str, str]]:
    """What leaves a transfer out of all other rules."""
    found = []
    if path.source == path.destination:
        found.append(("self_transfer", f"ends at rank {path.source}, where it starts"))
    if path.count == 0 or path.chunks()[-1] >= plan.collective.chunks:
        found.append(("chunk_range", "carries no chunks, or chunks that do not exist"))
    return found


def unlit(plan: Plan, path: Lightpath) -> list[tuple[str, str]]:
    """What leaves a lightpath out of the rules for light."""
    found: list[tuple[str, str]] = []
    if plan.fabric.electrical:
        return found
    if path.fibre >= plan.fabric.fibres:
        found.append(("fibre_range", f"is on fibre {path.fibre}, which does not exist"))
    if path.wavelength is CONVERTED:
        if not plan.fabric.converters:
            found.append(("conversion", "changes its wavelength, but there are no converters"))
    elif path.wavelength >= plan.fabric.wavelengths:
        found.append(("wavelength_range", f"is on wavelength {path.wavelength}: no such thing"))
    return found


def wrong_action(plan: Plan, path: Lightpath) -> list[tuple[str, str]]:
    if path.action == "reduce" and not plan.collective.combines:
        return [("wrong_action", "reduces in a collective that combines nothing")]
    return []


def out_of_order(plan: Plan, path: Lightpath) -> list[tuple[str, str]]:
    """Nothing crosses a broken link, and nothing uses a dead wavelength."""
    found = []
    for link in path.links(plan.fabric.ranks):
        if (path.way, link) in plan.fabric.broken:
            found.append(("broken_fibre", f"crosses the broken {path.way} link from rank {link}"))
            break
    if (path.fibre, path.wavelength) in plan.fabric.dead:
        found.append(("dead_wavelength", f"is on dead wavelength {path.fibre}.{path.wavelength}"))
    return found


def light_trees(plan: Plan, lit: Lightpaths) -> list[list[tuple[int, Lightpath]]]:
    """The lightpaths that are one light, the nearest end first.

    Where ranks may take a share of passing light, copies of the same chunks that leave one rank in
    one slot, one way, on one fibre and wavelength, are one. Everything else is alone.
    """
    together: dict[object, list[tuple[int, Lightpath]]] = defaultdict(list)
    for index, path in lit.items():
        light: object = index
        if plan.fabric.multicast and path.action == "copy":
            place = (path.slot, path.way, path.fibre, path.wavelength, path.source)
            light = (*place, path.chunk, path.count)
        together[light].append((index, path))
    ranks = plan.fabric.ranks
    for tree in together.values():
        tree.sort(key=lambda branch: len(branch[1].links(ranks)))
    return list(together.values())


def too_far(plan: Plan, trees: list[list[tuple[int, Lightpath]]]) -> Iterator[Problem]:
    """Light is received only as far as it reaches; each share taken on the way weakens it."""
    reach, budget = plan.fabric.reach, plan.fabric.budget
    for tree in trees:
        lengths = {len(path.links(plan.fabric.ranks)) for _, path in tree}
        for index, path in tree:
            links = len(path.links(plan.fabric.ranks))
            shares = sum(length < links for length in lengths)
            far = reach is not None and links > reach
            if far or (budget and budget.arrives(links, shares) < budget.sensitivity):
                yield Problem(
                    "reach",
                    f"slot {path.slot}: transfer {name(plan, index)} spans {links} links, "
                    f"with {shares} shares taken on the way, and light does not reach so far",
                )


def collisions(plan: Plan, lit: Lightpaths) -> Iterator[Problem]:
    """A wavelength of a fibre carries one lightpath on each link in each slot.

    A link is named by the rank at which it starts and the way that it goes.
    """
    taken: dict[tuple[int, str, int, int, int], int] = {}
    for index, path in lit.items():
        for link in path.links(plan.fabric.ranks):
            if path.wavelength is CONVERTED:
                continue
            place = (path.slot, path.way, path.fibre, path.wavelength, link)
            other = taken.setdefault(place, index)
            if other != index:
                yield Problem(
                    "collision",
                    f"slot {path.slot}: transfers {name(plan, other)} and {name(plan, index)} "
                    f"share wavelength {path.wavelength} on {path.way} fibre {path.fibre} "
                    f"from rank {link}",
                )
                break


def overloads(plan: Plan, lit: Lightpaths) -> Iterator[Problem]:
    """With converters, lightpaths need as many wavelengths on each link, no matter which."""
    load: dict[tuple[int, str, int, int], int] = defaultdict(int)
    converted = set()
    for path in lit.values():
        if path.wavelength is CONVERTED:
            converted.add((path.slot, path.way, path.fibre))
        for link in path.links(plan.fabric.ranks):
            load[path.slot, path.way, path.fibre, link] += 1
    for (slot, way, fibre, link), paths in load.items():
        wavelengths = range(plan.fabric.wavelengths)
        usable = sum((fibre, wavelength) not in plan.fabric.dead for wavelength in wavelengths)
        if (slot, way, fibre) in converted and paths > usable:
            yield Problem(
                "overload",
                f"slot {slot}: {paths} lightpaths on {way} fibre {fibre} from rank {link}, "
                f"but {usable} wavelengths",
            )


def crowded_ports(plan: Plan, sound: Lightpaths, riding: set[int]) -> Iterator[Problem]:
    """A rank sends, and receives, no more lightpaths at once than it has ports.

    What rides on other light needs no transmitter of its own.
    """
    used: dict[tuple[int, int, str], int] = defaultdict(int)
    for index, path in sound.items():
        used[path.slot, path.source, "sends"] += index not in riding
        used[path.slot, path.destination, "receives"] += 1
    for (slot, rank, verb), count in used.items():
        if plan.fabric.ports is not None and count > plan.fabric.ports:
            yield Problem(
                "ports",
                f"slot {slot}: rank {rank} {verb} {count} lightpaths, but has "
                f"{plan.fabric.ports} ports",
            )


def deliveries(plan: Plan, sound: Lightpaths) -> Iterator[list[tuple[int, Lightpath, int]]]:
    """Step by step: transfer by number, lightpath, and each chunk that it carries.

    Data moves by steps, not by slots: a transfer sends what its source held when the step began,
    and what arrives can be used from the next step on, however many slots a step takes.
    """
    steps: list[list[tuple[int, Lightpath, int]]] = [[] for _ in plan.steps]
    for index, path in sound.items():
        steps[plan.step_of(path.slot)] += [(index, path, chunk) for chunk in path.chunks()]
    yield from steps


def passed_on(plan: Plan, sound: Lightpaths) -> Iterator[Problem]:
    """Where nothing combines: send what you hold, to who does not hold it, until all is there."""
    every_chunk = range(plan.collective.chunks)
    held = {(rank, chunk) for chunk in every_chunk for rank in plan.collective.before(chunk)}
    for step in deliveries(plan, sound):
        arriving = {(path.destination, chunk) for _, path, chunk in step}
        arrived: set[tuple[int, int]] = set()
        for index, path, chunk in step:
            transfer = f"slot {path.slot}: transfer {name(plan, index)}"
            if (path.source, chunk) not in held:
                forwards = (path.source, chunk) in arriving
                when = "before the end of the step" if forwards else "by then"
                yield Problem(
                    "same_step_forward" if forwards else "not_held",
                    f"{transfer} sends chunk {chunk}, which its source does not hold {when}",
                )
            if (path.destination, chunk) in held | arrived:
                yield Problem(
                    "duplicate",
                    f"{transfer} brings chunk {chunk} to a rank that has it or gets it anyway",
                )
            # What was sent without being held counts as delivered: one mistake, one sentence.
            arrived.add((path.destination, chunk))
        held |= arrived
    for chunk in every_chunk:
        for rank in sorted(plan.collective.after(chunk)):
            if (rank, chunk) not in held:
                yield Problem("missing", f"at the end rank {rank} does not hold chunk {chunk}")


def combined(plan: Plan, sound: Lightpaths) -> Iterator[Problem]:
    """Where contributions combine: each is counted once, and in the end none is missing.

    Only the signals of a barrier may bring a contribution again, but then with something new; and
    nobody signals twice to the same rank in a step.

    What a rank holds of a chunk is the set of ranks whose contributions are in it: at first its
    own. A reduction adds the set sent to the receiver's. A copy replaces the receiver's by the set
    sent, which must have all that the receiver had, and more.
    """
    ranks, chunks = range(plan.collective.ranks), range(plan.collective.chunks)
    held = {(rank, chunk): frozenset({rank}) for rank in ranks for chunk in chunks}
    for step in deliveries(plan, sound):
        at_start = dict(held)
        arrivals: dict[tuple[int, int], str] = {}
        signals: set[tuple[int, int, int]] = set()
        for index, path, chunk in step:
            transfer = f"slot {path.slot}: transfer {name(plan, index)}"
            place = path.destination, chunk
            sent, had = at_start[path.source, chunk], held[place]
            if plan.collective.overlaps and path.action == "reduce":
                signal = path.source, path.destination, chunk
                if sent <= at_start[place] or signal in signals:
                    yield Problem("duplicate", f"{transfer} tells its receiver nothing new")
                signals.add(signal)
            if place in arrivals and "copy" in (path.action, arrivals[place]):
                yield Problem(
                    "copy_conflict", f"{transfer} is not alone, and one of those is a copy"
                )
                continue  # The first to arrive counts.
            arrivals[place] = path.action
            if path.action == "reduce":
                if sent & had and not plan.collective.overlaps:
                    yield Problem(
                        "double_reduction",
                        f"{transfer} adds to chunk {chunk} what is in it: {sorted(sent & had)}",
                    )
                held[place] = had | sent
            else:
                if had - sent:
                    yield Problem(
                        "lost_contribution",
                        f"{transfer} copies over chunk {chunk} and loses {sorted(had - sent)}",
                    )
                elif had == sent:
                    yield Problem("duplicate", f"{transfer} copies chunk {chunk} over the same")
                held[place] = sent
    for chunk in chunks:
        for rank in sorted(plan.collective.after(chunk)):
            lacking = set(ranks) - held[rank, chunk]
            if lacking:
                yield Problem(
                    "missing", f"at the end rank {rank} holds chunk {chunk} without {lacking}"
                )


def false_claims(plan: Plan, sound: Lightpaths) -> Iterator[Problem]:
    """What is claimed of the schedule is true. (`paper_steps` is for comparison only.)"""
    claims = plan.claims
    if "neighbours_only" in claims:
        for index, path in sound.items():
            if abs(path.source - path.destination) not in (1, plan.fabric.ranks - 1):
                yield Problem("claim", f"transfer {name(plan, index)} goes to no neighbour")
    if claims.get("schedule_steps", len(plan.steps)) != len(plan.steps):
        yield Problem("claim", f"{claims['schedule_steps']} steps claimed, not {len(plan.steps)}")
    sent = [0] * plan.collective.ranks
    for path in sound.values():
        sent[path.source] += path.count
    if claims.get("chunks_sent_per_rank", max(sent)) != max(sent):
        yield Problem(
            "claim", f"{claims['chunks_sent_per_rank']} chunks per rank claimed, not {max(sent)}"
        )


def name(plan: Plan, index: int) -> str:
    path = plan.lightpaths[index]
    return f"{index} (rank {path.source} to {path.destination})"
