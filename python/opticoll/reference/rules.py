"""The rules that a plan keeps, or breaks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from opticoll.reference.grid import grid_problems
from opticoll.reference.plan import CONVERTED, Lightpath, Plan, TooLarge
from opticoll.reference.text import read

MOST_LOOKED_AT = 10_000_000
"""Chunks of all ranks, and of all transfers: some minutes of work and some gigabytes of memory."""


class Problem(NamedTuple):
    """A rule that is broken: the kind, named as the core names it, and a sentence."""

    kind: str
    sentence: str


def verify_text(text: str) -> list[str]:
    """Say what is wrong with the plan that a text describes: a sentence each.

    Raises:
        NotAPlan: the text describes no plan at all.
        TooLarge: the plan would take this verifier minutes.
    """
    return [problem.sentence for problem in verify(read(text))]


def verify(plan: Plan) -> list[Problem]:
    """Say what is wrong with a plan; an empty list means that it is proved.

    Raises:
        TooLarge: the plan would take this verifier minutes.
    """
    chunks, ranks = plan.collective.chunks, plan.collective.ranks
    delivered = sum(path.count for path in plan.lightpaths)
    if chunks * ranks + delivered > MOST_LOOKED_AT:
        raise TooLarge(
            f"{chunks} chunks of {ranks} ranks, and {delivered} chunks delivered, are more than "
            f"{MOST_LOOKED_AT} to look at"
        )
    named = dict(enumerate(plan.lightpaths))
    sound = {index: path for index, path in named.items() if not malformed(plan, path)}
    dark = plan.fabric.electrical
    grid = plan.fabric.grid
    ring = not dark and grid is None and plan.fabric.path_ports is None
    bright = {i: path for i, path in sound.items() if not unlit(plan, path)}
    lit = bright if ring else {}
    problems = []
    for step, slots in enumerate(plan.steps):
        if dark and slots != 1:
            sentence = f"step {step} takes {slots} slots, but there is no light to wait for"
            problems.append(Problem("step_order", sentence))
    for index, path in named.items():
        for kind, sentence in malformed(plan, path) + unlit(plan, path) + wrong_action(plan, path):
            problems.append(Problem(kind, f"slot {path.slot}: transfer {index} {sentence}"))
    if grid is not None:
        ways = {index: path.hops() for index, path in bright.items()}
        steps = {index: plan.slots_of(path.slot) for index, path in bright.items()}
        problems += [Problem(*problem) for problem in grid_problems(grid, steps, ways)]
    problems += crossed_ports(plan, sound)
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
    if plan.fabric.electrical or plan.fabric.path_ports is not None:
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


def crossed_ports(plan: Plan, sound: Lightpaths) -> Iterator[Problem]:
    """On a grid of light paths every rank has so many ports, and in a slot each has one path.

    So a rank holds paths to no more than that many others at once. A path serves both ways.
    """
    if plan.fabric.path_ports is None:
        return
    others: dict[tuple[int, int, int], set[tuple[int, int]]] = defaultdict(set)
    for path in sound.values():
        source, destination = zip((path.source, path.destination), path.ports, strict=True)
        others[path.slot, *source].add(destination)
        others[path.slot, *destination].add(source)
    for (slot, rank, port), ends in sorted(others.items()):
        place = f"slot {slot}: port {port} of rank {rank}"
        if port >= plan.fabric.path_ports:
            yield Problem("ports", f"{place} does not exist: there are {plan.fabric.path_ports}")
        if len(ends) > 1:
            led = ", ".join(f"port {other} of rank {peer}" for peer, other in sorted(ends))
            yield Problem("ports", f"{place} has paths to {led} at once")


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
