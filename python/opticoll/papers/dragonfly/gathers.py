"""The poster's first comparison: all_gather by RING, BRUCK and TAR over the size of blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import opticoll
from opticoll import format_size, plot
from opticoll.papers.dragonfly.cases import (
    BRUCKS,
    COMPARED,
    RINGS,
    RULES,
    Case,
    Rule,
    Scale,
    fabric,
    flows,
    gather,
)
from opticoll.papers.dragonfly.runs import Rows, settings
from opticoll.papers.kit import Finding, Results, finding

ORDER = (*RINGS, *BRUCKS)
GLOBAL_BYTES_PER_S = 4.7 * 2**30
TIE = 0.02
"""Times nearer to each other than this share are called equal."""

MPICH_BYTES = 80 << 10  # of all blocks; below it MPICH takes BRUCK, says the poster


def less_percent(time: float, reference: float) -> float:
    """By how many percent a time is less than another."""
    return 100 * (1 - time / reference)


def conclude(results: Results, rows: Rows, scale: Scale) -> list[Finding]:
    """The poster's findings on all_gather, with a table of times."""
    times = _Times(rows, scale)
    _show(results, times)
    return [
        *(_tar(times, rule) for rule in RULES),
        _small(times),
        _background(times),
        _slowest_link(times),
        _global_links(rows, scale),
    ]


class _Times:
    """Times in seconds by rule, algorithm and size."""

    def __init__(self, rows: Rows, scale: Scale) -> None:
        self.rows = rows
        self.scale = scale
        self.ranks = fabric(scale.gather).ranks
        self.ranks_beside = fabric(scale.gather_beside).ranks

    def of(self, rule: Rule, algorithm: str, size: int) -> float | None:
        """Packet by packet; None where that is not computed."""
        return self._time(gather(self.scale.gather, algorithm, size, rule=rule))

    def beside(self, rule: Rule, algorithm: str, size: int, *, background: bool) -> float | None:
        """The same on the network on which background traffic runs, with and without it."""
        network = self.scale.gather_beside
        return self._time(gather(network, algorithm, size, rule=rule, background=background))

    def by_flows(self, algorithm: str, size: int) -> float | None:
        """By the fluid simulator."""
        return self._time(flows(gather(self.scale.gather, algorithm, size)))

    def sizes(self, rule: Rule, algorithm: str = "TAR", *, background: bool = False) -> list[int]:
        """Blocks that are computed packet by packet."""
        sizes = self.scale.gather_sizes(rule, background=background)
        return list(sizes.get(algorithm, ()))

    def all(self, rule: Rule, size: int) -> dict[str, float]:
        """The times of all algorithms at one size."""
        return _known({name: self.of(rule, name, size) for name in ORDER})

    def all_beside(self, rule: Rule, size: int, *, background: bool) -> dict[str, float]:
        """The same on the network on which background traffic runs."""
        return _known(
            {name: self.beside(rule, name, size, background=background) for name in ORDER}
        )

    def _time(self, case: Case) -> float | None:
        row = self.rows.get(case)
        return None if row is None else row["time_s"]


def _known(times: Mapping[str, float | None]) -> dict[str, float]:
    return {name: time for name, time in times.items() if time is not None}


def _tar(times: _Times, rule: Rule) -> Finding:
    """Does TAR win, from which block up, and by how much?"""
    sizes = times.sizes(rule)
    gains = {size: _gain(times, rule, size) for size in sizes}
    natural = {
        size: {name: time for name, time in times.all(rule, size).items() if name in COMPARED}
        for size in sizes
    }
    # Where the time of a natural BRUCK is missing, it grows with the block and had lost before.
    won = [size for size in sizes if min(natural[size], key=natural[size].__getitem__) == "TAR"]
    from_size = next((size for size in sizes if set(sizes[sizes.index(size) :]) <= set(won)), None)
    largest = sizes[-1]
    beyond = [
        f"{less_percent(tar, ring):.1f} % at {format_size(size)} by the fluid simulator"
        for size in times.scale.flows
        if rule == "pipelined"
        and size > largest
        and (tar := times.by_flows("TAR", size)) is not None
        and (ring := times.by_flows("RING", size)) is not None
    ]
    each = ", ".join(
        [f"{gain:.1f} % at {format_size(size)}" for size, gain in gains.items()] + beyond
    )
    holds = from_size is not None and gains[largest] > 0
    opening = (
        f"Holds from blocks of {format_size(from_size)} up"
        if holds and from_size is not None
        else "Does not hold"
    )
    return finding(
        f"all_gather.tar.{rule}",
        "TAR wins",
        round(gains[largest], 2),
        f"% less time than RING at {format_size(largest)}",
        holds,
        f"{opening} (RING, TAR and BRUCK with ranks in natural order, {times.ranks} terminals). "
        f"Less time than RING: {each}. The natural ring's one twice used local link is the cause: "
        "in the last group the edge that comes in and the edge that goes out share it.",
    )


def _gain(times: _Times, rule: Rule, size: int) -> float:
    tar, ring = times.of(rule, "TAR", size), times.of(rule, "RING", size)
    assert tar is not None
    assert ring is not None
    return less_percent(tar, ring)


def _small(times: _Times) -> Finding:
    """Up to which block is BRUCK faster than TAR?"""
    rule: Rule = "pipelined"
    won: dict[str, list[int]] = {name: [] for name in BRUCKS}
    notes: dict[str, list[str]] = {name: [] for name in BRUCKS}
    for name in BRUCKS:
        for size in times.sizes(rule, name):
            bruck, tar = times.of(rule, name, size), times.of(rule, "TAR", size)
            assert bruck is not None
            assert tar is not None
            if bruck < tar:
                won[name].append(size)
            notes[name].append(f"{less_percent(bruck, tar):+.0f} % at {format_size(size)}")
    natural, shuffled = (
        f"up to {format_size(max(won[name]))}" if won[name] else "never" for name in BRUCKS
    )
    everywhere = len(won["BRUCK"]) == len(times.sizes(rule, "BRUCK"))
    return finding(
        "all_gather.bruck_small",
        "BRUCK better for small blocks",
        f"{natural}; shuffled {shuffled}",
        "blocks where BRUCK is faster than TAR",
        "reproduced" if everywhere else "conditional" if any(won.values()) else "refuted",
        (
            "Holds. "
            if everywhere
            else f"Holds only for small enough blocks: in natural order {natural}, with shuffled "
            f"ranks {shuffled}. "
        )
        + f"BRUCK takes less time than TAR by {', '.join(notes['BRUCK'])} in natural order and by "
        f"{', '.join(notes['BRUCK shuffled'])} with shuffled ranks. In natural order whole groups "
        "send to one group at a time, over one global link. MPICH's limit of 80 KiB in all, "
        f"below which it takes BRUCK, is a block of {MPICH_BYTES / times.ranks:.1f} B here. No "
        "software overhead per message is counted; each microsecond of it speaks for BRUCK.",
    )


def _background(times: _Times) -> Finding:
    """Is the order of finish with background traffic that without?"""
    same, compared, changed = 0, 0, []
    slower: list[str] = []
    for rule in RULES:
        for size in times.sizes(rule, background=True):
            alone, beside = (
                times.all_beside(rule, size, background=background) for background in (False, True)
            )
            names = [name for name in ORDER if name in alone and name in beside]
            for first, second in combinations(names, 2):
                compared += 1
                if _order(alone[first], alone[second]) * _order(beside[first], beside[second]) < 0:
                    changed.append(f"{first} and {second} at {format_size(size)}, {rule}")
                else:
                    same += 1
            slower += [
                f"{name} {100 * (beside[name] / alone[name] - 1):+.0f} %"
                for name in names
                if rule == "pipelined" and size == times.sizes(rule, background=True)[0]
            ]
    return finding(
        "all_gather.background",
        "does not change the behaviour",
        f"same order in {same} of {compared}",
        "pairs of algorithms",
        "reproduced" if same == compared else "conditional",
        ("Holds. " if same == compared else f"Holds except for {'; '.join(changed)}. ")
        + "Every terminal sends 2 KiB to a random other every 2 us, 18 % of its link; times nearer "
        f"than {100 * TIE:.0f} % count as equal ({times.ranks_beside} terminals). Everybody "
        "becomes slower (blocks of "
        f"{format_size(times.sizes('pipelined', background=True)[0])}, pipelined): "
        f"{', '.join(slower)}.",
    )


def _order(first: float, second: float) -> int:
    """-1, 0 or 1: before, equal or after."""
    if abs(first / second - 1) < TIE:
        return 0
    return -1 if first < second else 1


def _slowest_link(times: _Times) -> Finding:
    """The time of TAR in multiples of what its slowest link alone takes."""
    multiples: dict[int, float] = {}
    for size in times.sizes("pipelined"):
        tar = times.of("pipelined", "TAR", size)
        assert tar is not None
        multiples[size] = tar / ((times.ranks - 1) * size / GLOBAL_BYTES_PER_S)
    beyond = {
        size: time / ((times.ranks - 1) * size / GLOBAL_BYTES_PER_S)
        for size in times.scale.flows
        if size not in multiples and (time := times.by_flows("TAR", size)) is not None
    }
    largest = max(multiples)
    each = ", ".join(f"{m:.2f} at {format_size(size)}" for size, m in multiples.items())
    fluid = "".join(
        f", {m:.2f} at {format_size(size)} by the fluid simulator" for size, m in beyond.items()
    )
    return finding(
        "all_gather.slowest_link",
        1,
        round(multiples[largest], 3),
        f"times what a global link alone takes, TAR at {format_size(largest)}",
        "reproduced" if max(multiples.values()) < 1.1 else "conditional",
        "Holds only for large blocks: below some KiB the latency of a step bounds a ring, not a "
        f"link. TAR in multiples of (N - 1) S / 4.7 GiB/s: {each}{fluid}.",
    )


def _global_links(rows: Rows, scale: Scale) -> Finding:
    """Bytes of TAR on global links beside those of other rings."""
    network = min(scale.gather, 4)
    bytes_of = {}
    for name in (*RINGS, "RING shuffled"):
        crossed = rows[gather(network, name, 64)]["global_bytes"]
        assert crossed is not None
        bytes_of[name] = crossed
    against = {name: bytes_of[name] / bytes_of["TAR"] for name in bytes_of}
    return finding(
        "all_gather.global_links",
        "minimised",
        f"{against['RING shuffled']:.1f} and {against['RING']:.1f}",
        "times TAR's bytes on global links, by a shuffled and by the natural ring",
        "conditional" if against["RING"] <= 1 else "reproduced",
        "Holds only if the ranks are in no natural order: a ring in natural order crosses the "
        f"boundaries of groups as rarely as TAR ({fabric(network).ranks} terminals). What TAR "
        "saves against it are local hops, and the local link that it used twice.",
    )


def _show(results: Results, times: _Times) -> None:
    lines: list[Sequence[object]] = []
    for rule in RULES:
        for size in _all_sizes(times, rule, background=False):
            found = [times.of(rule, name, size) for name in ORDER]
            lines.append([rule, "-", format_size(size), "packet", *map(_micro, found)])
        for size in _all_sizes(times, rule, background=True):
            for background in (False, True):
                if times.ranks_beside == times.ranks and not background:
                    continue
                found = [times.beside(rule, name, size, background=background) for name in ORDER]
                on = f"{'yes' if background else '-'}, {times.ranks_beside}"
                lines.append([rule, on, format_size(size), "packet", *map(_micro, found)])
    lines += [
        ["-", "-", format_size(size), "fluid"]
        + [_micro(times.by_flows(name, size)) for name in ORDER]
        for size in times.scale.flows
    ]
    results.show(
        f"Time of all_gather on {times.ranks} terminals in us (cases.csv)",
        ["router delay", "background", "block", "simulator", *ORDER],
        lines,
        left=(0, 1, 3),
    )


def _all_sizes(times: _Times, rule: Rule, *, background: bool) -> list[int]:
    sizes = (times.sizes(rule, name, background=background) for name in ORDER)
    return sorted({size for own in sizes for size in own})


def _micro(time_s: float | None) -> str:
    return "-" if time_s is None else f"{1e6 * time_s:.1f}"


def draw(results: Results, rows: Rows, scale: Scale) -> None:
    """Times over block sizes under both rules, and those with background traffic beside."""
    times = _Times(rows, scale)
    panels = [plot.Panel(_title(rule), _curves(times, rule)) for rule in RULES]
    on = f"{times.ranks} terminals"

    results.draw(
        "all_gather",
        plot.curves,
        panels,
        x_label="Block of one rank",
        y_label="Time (ms)",
        title=f"all_gather on {on}, packets of 512 B; dashed: fluid simulator",
        x_sizes=True,
        log_x=True,
    )
    size = times.sizes("pipelined", background=True)[0]
    bars = [
        plot.BarPanel(
            _title(rule),
            {
                "alone": _values(times, rule, size, background=False),
                "with uniform background traffic": _values(times, rule, size, background=True),
            },
        )
        for rule in RULES
    ]

    results.draw(
        "all_gather_background",
        plot.grouped_bars,
        bars,
        [name.replace(" ", "\n") for name in ORDER],
        x_label="",
        y_label="Time (µs)",
        title=f"all_gather of {format_size(size)} blocks, {times.ranks_beside} terminals",
        log_y=False,
    )


def draw_loads(results: Results, scale: Scale) -> None:
    """What BRUCK does to the links, with ranks in natural order and shuffled."""
    network = min(scale.gather, 4)
    plan = opticoll.plan("all_gather", fabric(network), "bruck")
    assert not plan.verify()
    for name in BRUCKS:
        case = gather(network, name, 64)
        measured = plan.simulate(case.size_bytes, timeline=True, **settings(case))
        title = f"{name}: all_gather of {format_size(64)} blocks, {plan.fabric.ranks} ranks"

        file = f"loads_{name.lower().replace(' ', '_')}"
        results.draw(file, plot.packets, measured, plan.fabric, title=title)


def _title(rule: Rule) -> str:
    return {
        "pipelined": "Router delay pipelined",
        "occupies_port": "Router delay occupies the port",
    }[rule]


def _curves(times: _Times, rule: Rule) -> Sequence[plot.Curve]:
    found = []
    for colour, name in enumerate(ORDER):
        timed = ((size, times.of(rule, name, size)) for size in times.sizes(rule, name))
        points = [(size, 1e3 * time) for size, time in timed if time is not None]
        if points:
            found.append(plot.Curve(name, points, colour))
    for colour, name in enumerate(ORDER if rule == "pipelined" else ()):
        timed = ((size, times.by_flows(name, size)) for size in times.scale.flows)
        points = [(size, 1e3 * time) for size, time in timed if time is not None]
        if points:
            found.append(plot.Curve(f"{name}, fluid", points, colour, dashed=True))
    return found


def _values(times: _Times, rule: Rule, size: int, *, background: bool) -> list[float | None]:
    timed = (times.beside(rule, name, size, background=background) for name in ORDER)
    return [None if time is None else 1e6 * time for time in timed]
