"""The poster's first comparison: all_gather by RING, BRUCK and TAR over the size of blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import opticoll
from opticoll import format_size, plot
from opticoll.papers.dragonfly.cases import (
    BRUCKS,
    COMPARED,
    JUDGED_BYTES,
    RINGS,
    RULES,
    SIGNIFICANT,
    Case,
    Rule,
    Scale,
    fabric,
    flows,
    gather,
)
from opticoll.papers.dragonfly.runs import Rows, settings
from opticoll.papers.judging import Computed
from opticoll.papers.kit import Results

ORDER = (*RINGS, *BRUCKS)


def less_percent(time: float, reference: float) -> float:
    """By how many percent a time is less than another."""
    return 100 * (1 - time / reference)


def compute(results: Results, rows: Rows, scale: Scale) -> dict[str, Computed]:
    """What the poster's items on all_gather come to, with a table of times."""
    times = Times(rows, scale)
    _show(results, times)
    return {
        **_tar(times),
        **_small(times),
        **background(times),
        **_global_links(rows, scale),
    }


class Times:
    """Times in seconds by rule, algorithm and size."""

    def __init__(self, rows: Rows, scale: Scale) -> None:
        self.rows = rows
        self.scale = scale
        self.ranks = fabric(scale.gather).ranks

    def of(self, rule: Rule, algorithm: str, size: int) -> float | None:
        """Packet by packet; None where that is not computed."""
        return self._time(gather(self.scale.gather, algorithm, size, rule=rule))

    def beside(self, rule: Rule, algorithm: str, size: int, *, background: bool) -> float | None:
        """The same on the network on which background traffic runs, with and without it."""
        network = self.scale.gather_beside[size]
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


def _tar(times: Times) -> dict[str, Computed]:
    """How much less time TAR takes than the faster of RING and BRUCK, in natural order."""
    found = {}
    for rule in RULES:
        for size in JUDGED_BYTES:
            by = {name: times.of(rule, name, size) for name in COMPARED}
            if by["TAR"] is None and rule == "pipelined":
                by = {name: times.by_flows(name, size) for name in COMPARED}
            if by["TAR"] is not None:
                found[f"all_gather.tar.{rule}.{format_size(size)}"] = _gain(times, _known(by))
    return found


def _gain(times: Times, by: Mapping[str, float]) -> Computed:
    first = min((name for name in by if name != "TAR"), key=by.__getitem__)
    each = ", ".join(f"{name} {1e6 * time:.1f} us" for name, time in by.items())
    # Larger blocks of BRUCK are left out where smaller ones had lost.
    return Computed(
        less_percent(by["TAR"], by[first]),
        f"{times.ranks} terminals: {each}; {first} is the faster of the others.",
    )


def _small(times: Times) -> dict[str, Computed]:
    """How much less time BRUCK takes than TAR, and where MPICH's limit would lie."""
    rule: Rule = "pipelined"
    found = {}
    for name, order in zip(BRUCKS, ("natural", "shuffled"), strict=True):
        for size in times.sizes(rule, name):
            by = _known({one: times.of(rule, one, size) for one in (name, "TAR")})
            found[f"all_gather.bruck.{order}.{format_size(size)}"] = Computed(
                less_percent(by[name], by["TAR"]),
                f"{times.ranks} terminals: BRUCK {1e6 * by[name]:.1f} us, TAR "
                f"{1e6 * by['TAR']:.1f} us. No software overhead of messages is counted; each "
                "microsecond of it speaks for BRUCK.",
            )
    won: list[int] = []
    lost: list[int] = []
    for size in times.sizes(rule, "BRUCK"):
        by = _known({one: times.of(rule, one, size) for one in ("BRUCK", "RING")})
        (won if by["BRUCK"] < by["RING"] else lost).append(size)
    if won and lost:
        all_kib = tuple(size * times.ranks / 1024 for size in (max(won), min(lost)))
        found["ring.mpich"] = Computed(
            all_kib, f"{times.ranks} terminals, blocks of {max(won)} and {min(lost)} B."
        )
    return found


def background(times: Times) -> dict[str, Computed]:
    """How many pairs of algorithms differ otherwise with background traffic."""
    found = {}
    for rule in RULES:
        for size in times.sizes(rule, background=True):
            alone, beside = (
                times.all_beside(rule, size, background=background) for background in (False, True)
            )
            names = [name for name in ORDER if name in alone and name in beside]
            changed = [
                f"{first} and {second} ({less_percent(alone[first], alone[second]):+.0f} % "
                f"becomes {less_percent(beside[first], beside[second]):+.0f} %)"
                for first, second in combinations(names, 2)
                if _order(alone[first], alone[second]) != _order(beside[first], beside[second])
            ]
            slower = [f"{name} {100 * (beside[name] / alone[name] - 1):+.0f} %" for name in names]
            found[f"all_gather.background.{rule}.{format_size(size)}"] = Computed(
                len(changed),
                f"{fabric(times.scale.gather_beside[size]).ranks} terminals; of "
                f"{len(names) * (len(names) - 1) // 2} pairs. "
                + (
                    f"Less time of the first than of the second: {'; '.join(changed)}. "
                    if changed
                    else ""
                )
                + f"Everybody becomes slower: {', '.join(slower)}.",
            )
    return found


def _order(first: float, second: float) -> int:
    """1 where the first takes significantly less time than the second, -1 where more, 0 else."""
    if less_percent(min(first, second), max(first, second)) < SIGNIFICANT:
        return 0
    return 1 if first < second else -1


def _global_links(rows: Rows, scale: Scale) -> dict[str, Computed]:
    """Bytes of TAR on global links beside those of other rings, and what knowing them saves."""
    network, size = min(scale.gather, 4), 64
    by = {name: rows[gather(network, name, size)] for name in (*RINGS, "RING shuffled")}
    on = {name: row["global_bytes"] or 0 for name, row in by.items()}
    ranks = fabric(network).ranks
    # A ring through all groups crosses each boundary, with every block but the last rank's.
    least = ranks // (2 * network**2) * (ranks - 1) * size
    note = f"{ranks} terminals, blocks of {format_size(size)}."
    return {
        "tar.global.least": Computed(on["TAR"] / least, note),
        "tar.global.natural": Computed(
            less_percent(on["TAR"], on["RING"]),
            f"{note} A ring in natural order crosses the boundaries of groups as rarely as TAR; "
            "what TAR saves against it are local hops, and the local link that it uses twice.",
        ),
        "tar.global.shuffled": Computed(less_percent(on["TAR"], on["RING shuffled"]), note),
        "all_gather.awareness": Computed(
            less_percent(by["TAR"]["time_s"], by["RING shuffled"]["time_s"]), note
        ),
    }


def _show(results: Results, times: Times) -> None:
    lines: list[Sequence[object]] = []
    for rule in RULES:
        for size in _all_sizes(times, rule, background=False):
            found = [times.of(rule, name, size) for name in ORDER]
            lines.append([rule, "-", format_size(size), "packet", *map(_micro, found)])
        for size in _all_sizes(times, rule, background=True):
            for background in (False, True):
                ranks = fabric(times.scale.gather_beside[size]).ranks
                if ranks == times.ranks and not background:
                    continue
                found = [times.beside(rule, name, size, background=background) for name in ORDER]
                on = f"{'yes' if background else '-'}, {ranks}"
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


def _all_sizes(times: Times, rule: Rule, *, background: bool) -> list[int]:
    sizes = (times.sizes(rule, name, background=background) for name in ORDER)
    return sorted({size for own in sizes for size in own})


def _micro(time_s: float | None) -> str:
    return "-" if time_s is None else f"{1e6 * time_s:.1f}"


def draw(results: Results, rows: Rows, scale: Scale) -> None:
    """Times over block sizes under both rules, and those with background traffic beside."""
    times = Times(rows, scale)
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
        title=f"all_gather of {format_size(size)} blocks, "
        f"{fabric(scale.gather_beside[size]).ranks} terminals",
        log_y=False,
    )


def draw_loads(results: Results, scale: Scale) -> None:
    """What BRUCK does to the links, with ranks in natural order and shuffled."""
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


def _curves(times: Times, rule: Rule) -> Sequence[plot.Curve]:
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


def _values(times: Times, rule: Rule, size: int, *, background: bool) -> list[float | None]:
    timed = (times.beside(rule, name, size, background=background) for name in ORDER)
    return [None if time is None else 1e6 * time for time in timed]
