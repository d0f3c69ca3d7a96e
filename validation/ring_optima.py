"""The least number of slots of collectives on small rings of wavelengths, by CP-SAT of OR-Tools.

    python -m venv /tmp/solver && /tmp/solver/bin/pip install ortools
    /tmp/solver/bin/python validation/ring_optima.py --write crates/tests/it/bound/optima.tsv

The model follows docs/model.md and shares nothing with opticoll: a lightpath carries one chunk in a
slot, delivers at its end (a light tree at any rank that it passes), takes a channel on every link,
and a rank sends only what it held before the slot. The solver proves that fewer than `least` slots
are impossible and finds a plan of `reached` slots; its time may end before they are the same.
"""

import argparse
import itertools
import sys
from dataclasses import dataclass
from functools import partial

from ortools.sat.python import cp_model

CLOCKWISE, COUNTER = 0, 1


@dataclass(frozen=True)
class Ring:
    """A ring, as its specification has it."""

    text: str
    ranks: int
    channels: int
    ports: int
    cuts: frozenset
    multicast: bool
    reach: int

    def paths(self):
        """Yields every lightpath that light can take."""
        lengths = range(1, min(self.reach, self.ranks - 1) + 1)
        for source, direction, links in itertools.product(range(self.ranks), (0, 1), lengths):
            path = Path(source, direction, links)
            if self.cuts.isdisjoint(path.passes(self)):
                yield path


@dataclass(frozen=True)
class Path:
    """A lightpath: where it starts, its direction, and how many links it spans."""

    source: int
    direction: int
    links: int

    def rank(self, ring, links):
        step = links if self.direction == CLOCKWISE else -links
        return (self.source + step) % ring.ranks

    def passes(self, ring):
        """Yields the links with their direction, each named by the rank at its lower end."""
        for links in range(self.links):
            here, there = self.rank(ring, links), self.rank(ring, links + 1)
            yield (here if self.direction == CLOCKWISE else there), self.direction

    def drops(self, ring):
        """Returns the ranks that may receive what the path carries."""
        first = 1 if ring.multicast else self.links
        return [self.rank(ring, links) for links in range(first, self.links + 1)]


def read(text):
    """Reads the ring of a specification."""
    options = dict(option.split("=") for option in text.split(":", 1)[1].split(","))
    ranks, channels = int(options["ranks"]), int(options["wavelengths"])
    channels *= int(options.get("fibres", 1))
    cuts = set()
    for cut in filter(None, options.get("broken", "").split("+")):
        bare = cut.removesuffix("ccw").removesuffix("cw").split("-")
        ways = {"ccw": [COUNTER], "cw": [CLOCKWISE]}
        named = "ccw" if cut.endswith("ccw") else "cw" if cut.endswith("cw") else ""
        cuts.update((int(bare[0]), way) for way in ways.get(named, [CLOCKWISE, COUNTER]))
    return Ring(
        text,
        ranks,
        channels,
        int(options.get("ports", 2 * channels)),
        frozenset(cuts),
        options.get("multicast") == "drop_and_continue",
        int(options.get("reach", ranks - 1)),
    )


def chunks(ring, kind):
    """Returns for each chunk who holds it first, and who must hold it at the end."""
    ranks = set(range(ring.ranks))
    match kind:
        case "all_gather" | "barrier":
            return [({rank}, ranks) for rank in ranks]
        case "broadcast":
            return [({0}, ranks)]
        case "scatter":
            return [({0}, {rank}) for rank in ranks]
        case "gather":
            return [({rank}, {0}) for rank in ranks]
        case "all_to_all":
            return [({one}, {other}) for one in ranks for other in ranks if one != other]
    raise ValueError(kind)


def light(model, ring, all_paths, slots):
    """Lightpaths on channels: for each slot and path how many are up."""
    up = {}
    for slot in range(slots):
        on = {
            (path, channel): model.new_bool_var("")
            for path in all_paths
            for channel in range(ring.channels)
        }
        crossing = {}
        for (path, channel), is_on in on.items():
            for link in path.passes(ring):
                crossing.setdefault((link, channel), []).append(is_on)
        for lit in crossing.values():
            model.add_at_most_one(lit)
        for path in all_paths:
            up[slot, path] = sum(on[path, channel] for channel in range(ring.channels))
        for rank in range(ring.ranks):
            leaving = [path for path in all_paths if path.source == rank]
            model.add(sum(up[slot, path] for path in leaving) <= ring.ports)
    return up


def is_possible(ring, kind, slots, seconds):
    """Returns whether a collective fits into `slots`; None if the time is too short."""
    model = cp_model.CpModel()
    all_paths = list(ring.paths())
    all_chunks = chunks(ring, kind)
    ranks = range(ring.ranks)
    up = light(model, ring, all_paths, slots)
    held = {
        (chunk, rank): int(rank in first)
        for chunk, (first, _) in enumerate(all_chunks)
        for rank in ranks
    }
    for slot in range(slots):
        carried, received = {}, {}
        for chunk, path in itertools.product(range(len(all_chunks)), all_paths):
            sends = held[chunk, path.source]
            if isinstance(sends, int) and not sends:
                continue
            carries = model.new_bool_var("")
            carried.setdefault(path, []).append(carries)
            model.add(carries <= sends)
            for rank in path.drops(ring):
                drop = model.new_bool_var("")
                model.add_implication(drop, carries)
                received.setdefault((chunk, rank), []).append(drop)
        for path, carries in carried.items():
            if kind == "barrier":
                model.add(up[slot, path] <= ring.channels)
                for one in carries:
                    model.add(one <= up[slot, path])
            else:
                model.add(sum(carries) <= up[slot, path])
        intake = {}
        for (_, rank), drops in received.items():
            intake.setdefault(rank, []).extend(drops)
        for drops in intake.values():
            if kind != "barrier":
                model.add(sum(drops) <= ring.ports)
        if kind == "barrier":
            for rank in ranks:
                ends = [path for path in all_paths if path.drops(ring)[-1] == rank]
                model.add(sum(up[slot, path] for path in ends) <= ring.ports)
        after = {}
        for chunk, rank in itertools.product(range(len(all_chunks)), ranks):
            before = held[chunk, rank]
            drops = received.get((chunk, rank), [])
            if isinstance(before, int) and (before or not drops):
                after[chunk, rank] = before
                continue
            holds = model.new_bool_var("")
            model.add(holds <= before + sum(drops))
            after[chunk, rank] = holds
        held = after
    for chunk, (_, last) in enumerate(all_chunks):
        for rank in last:
            model.add(held[chunk, rank] == 1)
    return solved(model, seconds)


def sums_are_possible(ring, kind, slots, seconds):
    """Returns whether a reduce or reduce_scatter fits into `slots`; None if the time is too short.

    Every other rank sends its sum towards each owner once, after all that it adds has come.
    """
    model = cp_model.CpModel()
    all_paths = list(ring.paths())
    up = light(model, ring, all_paths, slots)
    owners = range(1 if kind == "reduce" else ring.ranks)
    sent, arrived, carried, intake = {}, {}, {}, {}
    for slot, owner, path in itertools.product(range(slots), owners, all_paths):
        if path.source == owner:
            continue
        for rank in path.drops(ring):
            sends = model.new_bool_var("")
            sent.setdefault((owner, path.source), []).append((slot, sends))
            arrived.setdefault((owner, rank), []).append((slot, sends))
            carried.setdefault((slot, path), []).append(sends)
            intake.setdefault((slot, rank), []).append(sends)
    for (slot, path), sends in carried.items():
        model.add(sum(sends) <= up[slot, path])
    for sends in intake.values():
        model.add(sum(sends) <= ring.ports)
    for (owner, rank), sends in sent.items():
        model.add_exactly_one(one for _, one in sends)
        for slot, arrives in arrived.get((owner, rank), []):
            model.add_bool_or(arrives.Not(), *(one for later, one in sends if later > slot))
    return solved(model, seconds)


def all_reduce_is_possible(ring, slots, seconds):
    """Returns whether an all_reduce of one chunk fits into `slots`; None if the time is too short.

    A rank takes in sums that have no contribution in common with its own sum or with each other, or
    a copy of the whole sum, which replaces its own sum.
    """
    model = cp_model.CpModel()
    all_paths = list(ring.paths())
    up = light(model, ring, all_paths, slots)
    ranks = range(ring.ranks)
    held = {(one, rank): int(one == rank) for one in ranks for rank in ranks}
    for slot in range(slots):
        added, copied, intake = ({rank: [] for rank in ranks} for _ in range(3))
        for path in all_paths:
            for rank in path.drops(ring):
                adds, copies = model.new_bool_var(""), model.new_bool_var("")
                for takes in (adds, copies):
                    model.add(takes <= up[slot, path])
                for one in ranks:
                    model.add(copies <= held[one, path.source])
                added[rank].append((adds, path.source))
                copied[rank].append(copies)
                intake[rank] += [adds, copies]
        after = {}
        for rank in ranks:
            model.add(sum(intake[rank]) <= ring.ports)
            is_copied = model.new_bool_var("")
            model.add(sum(copied[rank]) == is_copied)
            for adds, _ in added[rank]:
                model.add_implication(is_copied, adds.Not())
            for one in ranks:
                parts = [held[one, rank]]
                for adds, source in added[rank]:
                    part = model.new_bool_var("")
                    model.add(part <= adds)
                    model.add(part <= held[one, source])
                    model.add(part >= adds + held[one, source] - 1)
                    parts.append(part)
                after[one, rank] = model.new_bool_var("")
                model.add(after[one, rank] == sum(parts)).only_enforce_if(is_copied.Not())
                model.add(after[one, rank] == 1).only_enforce_if(is_copied)
        held = after
    for holds in held.values():
        model.add(holds == 1)
    return solved(model, seconds)


def solved(model, seconds):
    """Returns whether a model has a solution; None if the time is too short."""
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = seconds
    solver.parameters.num_workers = 2
    solver.parameters.random_seed = 1
    status = solver.solve(model)
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return True
    return False if status == cp_model.INFEASIBLE else None


def optimum(ring, kind, seconds):
    """Returns the proved lower bound on slots, and the fewest slots that the solver reached."""
    match kind:
        case "reduce" | "reduce_scatter":
            fits = partial(sums_are_possible, ring, kind)
        case "all_reduce":
            fits = partial(all_reduce_is_possible, ring)
        case _:
            fits = partial(is_possible, ring, kind)
    least = slots = 1
    while not (possible := fits(slots, seconds)):
        slots += 1
        if possible is False and least == slots - 1:
            least = slots
    return least, slots


FABRICS = [
    *(f"ranks={n},wavelengths={w}" for n in range(2, 8) for w in (1, 2, 3)),
    "ranks=8,wavelengths=2",
    "ranks=8,wavelengths=3",
    "ranks=9,wavelengths=2",
    "ranks=7,wavelengths=1,fibres=2",
    "ranks=4,wavelengths=2,ports=3",
    "ranks=5,wavelengths=2,ports=2",
    "ranks=6,wavelengths=2,ports=3",
    "ranks=6,wavelengths=5,ports=5",
    "ranks=5,wavelengths=2,broken=1-2",
    "ranks=6,wavelengths=2,broken=1-2",
    "ranks=6,wavelengths=3,broken=1-2",
    "ranks=8,wavelengths=3,broken=1-2",
    "ranks=5,wavelengths=2,broken=1-2cw",
    "ranks=6,wavelengths=2,broken=1-2ccw",
    "ranks=5,wavelengths=1,multicast=drop_and_continue",
    "ranks=5,wavelengths=2,multicast=drop_and_continue",
    "ranks=6,wavelengths=1,multicast=drop_and_continue",
    "ranks=7,wavelengths=1,multicast=drop_and_continue",
    "ranks=6,wavelengths=2,reach=1",
    "ranks=6,wavelengths=2,reach=2",
    "ranks=7,wavelengths=3,reach=2",
]
KINDS = [
    "all_gather", "broadcast", "scatter", "gather", "all_to_all",
    "reduce", "reduce_scatter", "all_reduce", "barrier",
]  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--write", help="file for the table (default: standard output)")
    parser.add_argument("--seconds", type=float, default=60, help="time a question")
    parser.add_argument("--kinds", default=",".join(KINDS), help="collectives (default: all)")
    given = parser.parse_args()
    rows = []
    for kind in given.kinds.split(","):
        for options in FABRICS:
            ring = read(f"wdm_ring:{options}")
            if kind == "all_to_all" and ring.ranks > 6:
                continue
            least, reached = optimum(ring, kind, given.seconds)
            print(kind, ring.text, least, reached, file=sys.stderr, flush=True)
            rows.append(f"{kind}\t{ring.text}\t{least}\t{reached}\n")
    table = "".join(["collective\tfabric\tleast\treached\n", *rows])
    if given.write:
        with open(given.write, "w", encoding="utf-8") as file:
            file.write(table)
    else:
        print(table, end="")


if __name__ == "__main__":
    main()
