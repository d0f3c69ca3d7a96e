"""The poster's first comparison: all_gathers by RING, BRUCK and TAR over the block size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import opticoll
from opticoll import format_size, plot
from opticoll_papers import plots
from opticoll_papers.common import Results
from opticoll_papers.dragonfly.cases import (
    BRUCKS,
    COMPARED,
    MPICH_BYTES,
    RINGS,
    RULES,
    Case,
    Rule,
    Scale,
    fabric,
    flows,
    gather,
)
from opticoll_papers.dragonfly.runs import Rows, settings
from opticoll_papers.judging import Computed

ORDER = (*RINGS, *BRUCKS)

AGREEMENT = 2.0
"""Percentage up to which times of all_gather differ from CODES, which draws small delays."""
CHANCE = (
    f" The simulation agrees with CODES, which draws small delays, to within {AGREEMENT:g} %: a "
    "smaller gain is chance. A referee asked for this limit when the results were known."
)


def less_percent(time: float, reference: float) -> float:
    """Returns the percentage by which a time is below a reference time."""
    return 100 * (1 - time / reference)


def compute(results: Results, rows: Rows, scale: Scale) -> dict[str, Computed]:
    """Computes the claims on all_gather, with a table of times."""
    times = Times(rows, scale)
    _show(results, times)
    return {
        **_tar(times),
        **_tar_placed(rows, scale),
        **_small(times),
        **background(times),
        **_global_links(rows, scale),
    }


class Times:
    """Simulated times of all_gathers in seconds, by rule, algorithm and block size."""

    def __init__(self, rows: Rows, scale: Scale) -> None:
        self.rows = rows
        self.scale = scale
        self.ranks = fabric(scale.gather).ranks

    def of(self, rule: Rule, algorithm: str, size: int) -> float | None:
        """Returns the time packet by packet, or None if the case is not simulated."""
        return self._time(gather(self.scale.gather, algorithm, size, rule=rule))

    def beside(self, rule: Rule, algorithm: str, size: int, *, background: bool) -> float | None:
        """Returns the time on the network for background traffic, with or without traffic."""
        network = self.scale.gather_beside[size]
        return self._time(gather(network, algorithm, size, rule=rule, background=background))

    def fluid(self, algorithm: str, size: int) -> float | None:
        """Returns the time by the fluid simulator."""
        return self._time(flows(gather(self.scale.gather, algorithm, size)))

    def sizes(self, rule: Rule, algorithm: str = "TAR", *, background: bool = False) -> list[int]:
        """Returns the block sizes that are simulated packet by packet."""
        sizes = self.scale.gather_sizes(rule, background=background)
        return list(sizes.get(algorithm, ()))

    def all(self, rule: Rule, size: int) -> dict[str, float]:
        """Returns the times for one block size, by algorithm."""
        return _known({name: self.of(rule, name, size) for name in ORDER})

    def all_beside(self, rule: Rule, size: int, *, background: bool) -> dict[str, float]:
        """Returns the times on the network for background traffic, by algorithm."""
        return _known(
            {name: self.beside(rule, name, size, background=background) for name in ORDER}
        )

    def _time(self, case: Case) -> float | None:
        row = self.rows.get(case)
        return None if row is None else row["time_s"]


def _known(times: Mapping[str, float | None]) -> dict[str, float]:
    return {name: time for name, time in times.items() if time is not None}


def _tar(times: Times) -> dict[str, Computed]:
    """Computes the percentage by which TAR beats the faster of RING and BRUCK, in natural order."""
    computed = {}
    for rule in RULES:
        by = {
            size: _known({name: times.of(rule, name, size) for name in COMPARED})
            for size in times.sizes(rule)
            if size * times.ranks >= MPICH_BYTES
        }
        computed[f"all_gather.tar.{rule}"] = gain(times.ranks, by)
    size = max(times.scale.flows)
    by = {size: _known({name: times.fluid(name, size) for name in COMPARED})}
    return computed | {"all_gather.tar.flows": gain(times.ranks, by)}


def _tar_placed(rows: Rows, scale: Scale) -> dict[str, Computed]:
    """Computes TAR's gain if the ranks of RING and BRUCK are in random order."""
    network = scale.placed_on
    ranks = fabric(network).ranks
    names = ("TAR", "RING shuffled", "BRUCK shuffled")
    by = {
        size: {name: rows[gather(network, name, size)]["time_s"] for name in names}
        for size in scale.placed
        if size * ranks >= MPICH_BYTES
    }
    smallest_gain = gain(ranks, by)
    # On the largest network, only BRUCK is simulated in random order.
    times = Times(rows, scale)
    for size in times.sizes("pipelined", "BRUCK shuffled"):
        if network == scale.gather or size * times.ranks < MPICH_BYTES:
            continue
        own = _known({name: times.of("pipelined", name, size) for name in ("TAR", names[2])})
        other = gain(times.ranks, {size: own})
        smallest_gain = Computed(
            min(_percent(smallest_gain), _percent(other)),
            f"{smallest_gain.note} {other.note} There RING was not simulated in random order.",
            by_chance=smallest_gain.by_chance or other.by_chance,
        )
    return {"all_gather.tar.shuffled": smallest_gain}


def _percent(computed: Computed) -> float:
    assert isinstance(computed.value, float)
    return computed.value


def gain(ranks: int, by: Mapping[int, Mapping[str, float]]) -> Computed:
    """Returns TAR's smallest gain over the faster competitor; `by` has times by block size."""
    gains = {
        size: less_percent(times["TAR"], min(time for name, time in times.items() if name != "TAR"))
        for size, times in by.items()
    }
    each = "; ".join(
        f"{format_size(size)} {gains[size]:.2f} % ("
        + ", ".join(f"{name} {1e6 * time:.1f} us" for name, time in times.items())
        + ")"
        for size, times in by.items()
    )
    left_out = ""
    if len({tuple(times) for times in by.values()}) > 1:
        left_out = (
            " BRUCK was not simulated at the larger blocks: at the smaller ones it already takes "
            "several times as long."
        )
    least = min(gains.values())
    return Computed(
        least,
        f"{ranks} terminals, by blocks: {each}.{left_out}"
        + (CHANCE if abs(least) < AGREEMENT else ""),
        by_chance=abs(least) < AGREEMENT,
    )


def _small(times: Times) -> dict[str, Computed]:
    """Computes the percentage by which BRUCK beats TAR, and the range of MPICH's limit."""
    computed = {}
    for rule in RULES:
        for name, order in zip(BRUCKS, ("natural", "shuffled"), strict=True):
            gains = {}
            for size in times.sizes(rule, name):
                by = _known(
                    {algorithm: times.of(rule, algorithm, size) for algorithm in (name, "TAR")}
                )
                gains[size] = less_percent(by[name], by["TAR"])
            small = max(size for size in gains if size * times.ranks < MPICH_BYTES)
            computed[f"all_gather.bruck.{order}.{rule}"] = Computed(
                gains[small],
                f"{times.ranks} terminals, by blocks: "
                + ", ".join(f"{format_size(size)} {gain:+.0f} %" for size, gain in gains.items())
                + f"; {format_size(small)} is judged. {_elsewhere(times, rule, name)}No time of "
                "software is counted; each microsecond of it speaks for BRUCK.",
            )
    won: list[int] = []
    lost: list[int] = []
    for size in times.sizes("pipelined", "BRUCK"):
        by = _known(
            {algorithm: times.of("pipelined", algorithm, size) for algorithm in ("BRUCK", "RING")}
        )
        (won if by["BRUCK"] < by["RING"] else lost).append(size)
    crossing = ""
    if won and lost:
        below, above = (size * times.ranks / 1024 for size in (max(won), min(lost)))
        crossing = (
            f"Simulated on {times.ranks} terminals, with ranks in natural order and routers that "
            f"are pipelines, BRUCK is faster than RING at {below:.0f} KiB and slower at "
            f"{above:.0f} KiB."
        )
    return computed | {f"{name}.mpich": Computed(None, crossing) for name in ("ring", "bruck")}


def _elsewhere(times: Times, rule: Rule, name: str) -> str:
    """Returns in words BRUCK's gains for small transfers on smaller networks, if simulated."""
    words = []
    for network in (2, 4):
        ranks = fabric(network).ranks
        for size in (64, 256, 1024):
            by = [
                times.rows.get(gather(network, algorithm, size, rule=rule))
                for algorithm in (name, "TAR")
            ]
            if ranks == times.ranks or size * ranks >= MPICH_BYTES or None in by:
                continue
            bruck, tar = (row["time_s"] for row in by if row is not None)
            words.append(
                f"{format_size(size)} on {ranks} terminals {less_percent(bruck, tar):+.0f} %"
            )
    return f"Other small transfers: {', '.join(words)}. " if words else ""


SLIGHT = 1.0
"""Minimum percentage by which an algorithm counts as faster than another."""


def background(times: Times) -> dict[str, Computed]:
    """Counts the pairs of algorithms whose order changes with background traffic."""
    computed = {}
    for rule in RULES:
        reversed_, notes = 0, []
        for size in times.sizes(rule, background=True):
            alone, beside = (
                times.all_beside(rule, size, background=background) for background in (False, True)
            )
            orders = {}
            for names in (COMPARED, (*RINGS, "BRUCK shuffled")):
                orders[names[-1]] = [
                    f"{first} and {second} ({less_percent(alone[first], alone[second]):+.1f} % "
                    f"becomes {less_percent(beside[first], beside[second]):+.1f} %)"
                    for first, second in combinations(names, 2)
                    if set(names) <= set(alone) & set(beside)
                    and _order(alone[first], alone[second]) * _order(beside[first], beside[second])
                    < 0
                ]
            reversed_ += len(orders["BRUCK"])
            ranks = fabric(times.scale.gather_beside[size]).ranks
            slower = ", ".join(
                f"{name} {100 * (beside[name] / alone[name] - 1):+.0f} %" for name in beside
            )
            changed = "; ".join(orders["BRUCK"]) or "no pair is reversed"
            if orders["BRUCK shuffled"]:
                changed += f", with BRUCK in random order {'; '.join(orders['BRUCK shuffled'])}"
            notes.append(f"{format_size(size)} on {ranks} terminals: {changed}. Times: {slower}.")
        computed[f"all_gather.background.{rule}"] = Computed(
            reversed_,
            " ".join(notes)
            + (
                " In brackets: by how much less time the first takes than the second."
                if any("becomes" in sentence for sentence in notes)
                else ""
            ),
        )
    return computed


def _order(first: float, second: float) -> int:
    """Returns 1 if the first time is shorter, -1 if it is longer, and 0 if the times are close."""
    if less_percent(min(first, second), max(first, second)) < SLIGHT:
        return 0
    return 1 if first < second else -1


def _global_links(rows: Rows, scale: Scale) -> dict[str, Computed]:
    """Computes TAR's bytes on global links, their minimum, and the network's effect."""
    own = rows[gather(scale.gather, "TAR", 64)]
    size, ranks = own["size_bytes"], own["terminals"]
    groups = fabric(scale.gather).option("groups")
    crossed = own["global_bytes"] or 0
    # Each block must reach every other group. In a ring, all blocks but one leave each group.
    least, ring = (groups - 1) * ranks * size, groups * (ranks - 1) * size
    network = scale.placed_on
    by = {name: rows[gather(network, name, 64)] for name in (*COMPARED, "RING shuffled")}
    on = {name: (row["global_bytes"] or 0) / (by["TAR"]["global_bytes"] or 1)
          for name, row in by.items()}  # fmt: skip
    smaller = f"{fabric(network).ranks} terminals, blocks of 64 B"
    return {
        "tar.global.least": Computed(
            crossed / least,
            f"{ranks} terminals. A ring through all groups cannot have less than "
            f"{ring / least:.4f} times the least.",
        ),
        "tar.global.rings": Computed(
            crossed / ring,
            f"{ranks} terminals. Of TAR's bytes on global links RING has {on['RING']:.2f} times in "
            f"natural order and {on['RING shuffled']:.1f} times in random order, BRUCK "
            f"{on['BRUCK']:.1f} times ({smaller}). In natural order TAR saves "
            "only local hops; it avoids the one local link over which RING sends each block twice.",
        ),
        "all_gather.awareness": Computed(
            less_percent(by["TAR"]["time_s"], by["RING shuffled"]["time_s"]),
            f"{smaller}; against RING in natural order "
            f"{less_percent(by['TAR']['time_s'], by['RING']['time_s']):.1f} %.",
        ),
    }


def _show(results: Results, times: Times) -> None:
    lines: list[Sequence[object]] = []
    for rule in RULES:
        for size in _all_sizes(times, rule, background=False):
            times_s = [times.of(rule, name, size) for name in ORDER]
            lines.append([rule, "-", format_size(size), "packet", *map(_micro, times_s)])
        for size in _all_sizes(times, rule, background=True):
            for background in (False, True):
                ranks = fabric(times.scale.gather_beside[size]).ranks
                if ranks == times.ranks and not background:
                    continue
                times_s = [times.beside(rule, name, size, background=background) for name in ORDER]
                on = f"{'yes' if background else '-'}, {ranks}"
                lines.append([rule, on, format_size(size), "packet", *map(_micro, times_s)])
    lines += [
        ["-", "-", format_size(size), "fluid"] + [_micro(times.fluid(name, size)) for name in ORDER]
        for size in times.scale.flows
    ]
    results.show(
        f"Time of all_gather on {times.ranks} terminals in us (cases.csv)",
        ["router delay", "background", "block", "simulator", *ORDER],
        lines,
        left=(0, 1, 3),
    )


def _all_sizes(times: Times, rule: Rule, *, background: bool) -> list[int]:
    sizes = (times.sizes(rule, name, background=background) for name in ORDER)
    return sorted({size for own in sizes for size in own})


def _micro(time_s: float | None) -> str:
    return "-" if time_s is None else f"{1e6 * time_s:.1f}"


def draw(results: Results, rows: Rows, scale: Scale) -> None:
    """Draws times over block sizes under both rules, and times with background traffic."""
    times = Times(rows, scale)
    panels = [plots.Panel(_title(rule), _curves(times, rule)) for rule in RULES]
    on = f"{times.ranks} terminals"

    results.draw(
        "all_gather",
        plots.curves,
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
        plots.grouped_bars,
        bars,
        [name.replace(" ", "\n") for name in ORDER],
        x_label="",
        y_label="Time (µs)",
        title=f"all_gather of {format_size(size)} blocks, "
        f"{fabric(scale.gather_beside[size]).ranks} terminals",
        log_y=False,
    )


def draw_loads(results: Results, scale: Scale) -> None:
    """Draws the loads of links by BRUCK, with ranks in natural order and in random order."""
    network = max(2, scale.gather - 2)
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


def _curves(times: Times, rule: Rule) -> Sequence[plots.Curve]:
    curves = []
    for colour, name in enumerate(ORDER):
        timed = ((size, times.of(rule, name, size)) for size in times.sizes(rule, name))
        points = [(size, 1e3 * time) for size, time in timed if time is not None]
        if points:
            curves.append(plots.Curve(name, points, colour))
    for colour, name in enumerate(ORDER if rule == "pipelined" else ()):
        timed = ((size, times.fluid(name, size)) for size in times.scale.flows)
        points = [(size, 1e3 * time) for size, time in timed if time is not None]
        if points:
            curves.append(plots.Curve(f"{name}, fluid", points, colour, dashed=True))
    return curves


def _values(times: Times, rule: Rule, size: int, *, background: bool) -> list[float | None]:
    timed = (times.beside(rule, name, size, background=background) for name in ORDER)
    return [None if time is None else 1e6 * time for time in timed]
