"""The poster's second comparison: scatters of 1 KiB per terminal by LIN, TREE, GLF and LLF."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from opticoll import plot
from opticoll_papers import plots
from opticoll_papers.common import Results
from opticoll_papers.dragonfly.cases import (
    RATES,
    RULES,
    SCATTER_BUFFERS,
    SCATTER_BYTES,
    SCATTERS,
    SHAPES,
    WHOLE_CUT,
    Buffers,
    Rule,
    Scale,
    fabric,
    scatter,
)
from opticoll_papers.dragonfly.gathers import less_percent
from opticoll_papers.dragonfly.runs import Row, Rows
from opticoll_papers.dragonfly.shapes import hops
from opticoll_papers.judging import Computed

OTHERS = SCATTERS[1:]


def compute(results: Results, rows: Rows, scale: Scale) -> dict[str, Computed]:
    """Computes the claims on scatter, with tables of times."""
    times = _Times(rows, scale)
    _show(results, times)
    computed = _links(times)
    for rule in RULES:
        computed |= _twice(times, rule) | _factors(times, rule) | _full(times, rule)
        computed |= _impacts(times, rule) | _others(times, rule)
    return computed


class _Times:
    """Simulated scatters: rows and times in seconds by rule, algorithm and buffers."""

    def __init__(self, rows: Rows, scale: Scale) -> None:
        self.rows = rows
        self.scale = scale
        self.ranks = fabric(scale.scatter).ranks
        self.ranks_beside = fabric(scale.scatter_beside).ranks
        self.ends = (scale.buffers[0], scale.buffers[-1])
        self.injection_s = (self.ranks - 1) * SCATTER_BYTES / (5.25 * 2**30)

    def row(self, rule: Rule, algorithm: str, buffers: Buffers | None = None) -> Row:
        """Returns the row of a scatter without background traffic."""
        return self.rows[scatter(self.scale.scatter, algorithm, rule, buffers=buffers)]

    def of(self, rule: Rule, algorithm: str, buffers: Buffers | None = None) -> float:
        """Returns the time of a scatter without background traffic."""
        return self.row(rule, algorithm, buffers)["time_s"]

    def beside(self, rule: Rule, algorithm: str, *, background: bool) -> float:
        """Returns the time on the network for background traffic, with or without traffic."""
        network = self.scale.scatter_beside
        return self.rows[scatter(network, algorithm, rule, background=background)]["time_s"]

    def ratio(self, rule: Rule, buffers: Buffers | None = None) -> float:
        """Returns the ratio of the mean time of TREE, GLF and LLF to LIN's time."""
        return _ratio({name: self.of(rule, name, buffers) for name in SCATTERS})

    def on(self, rule: Rule, variant: str) -> dict[str, float]:
        """Returns the times on a variant of the network, by algorithm."""
        return {
            name: self.rows[scatter(self.scale.scatter, name, rule, variant=variant)]["time_s"]
            for name in SCATTERS
        }

    def whole(self, rule: Rule) -> dict[str, float]:
        """Returns the times if each packet is a single chunk, by algorithm."""
        return {
            name: self.rows[scatter(self.scale.scatter, name, rule, cut=WHOLE_CUT)]["time_s"]
            for name in SCATTERS
        }


def _ratio(times: Mapping[str, float]) -> float:
    return sum(times[name] for name in OTHERS) / len(OTHERS) / times["LIN"]


def _us(time_s: float) -> str:
    return f"{1e6 * time_s:.1f} us"


def _twice(times: _Times, rule: Rule) -> dict[str, Computed]:
    """Computes the ratios of times to LIN's time, with and without background traffic."""
    lin = times.of(rule, "LIN")
    whole = times.whole(rule)
    computed = {
        f"scatter.twice.{rule}.{name}": Computed(
            times.of(rule, name) / lin,
            f"{times.ranks} terminals: LIN {_us(lin)}, {name} {_us(times.of(rule, name))}. The "
            f"root's own link needs {_us(times.injection_s)}. With chunks of 512 B the ratio is "
            f"{whole[name] / whole['LIN']:.2f}.",
        )
        for name in OTHERS
    }
    large = times.ends[1]
    computed[f"scatter.twice.{rule}.large_buffers"] = Computed(
        tuple(times.of(rule, name, large) / times.of(rule, "LIN", large) for name in OTHERS),
        ", ".join(f"{name} {_us(times.of(rule, name, large))}" for name in SCATTERS) + ".",
    )
    alone, beside = (
        {name: times.beside(rule, name, background=background) for name in SCATTERS}
        for background in (False, True)
    )
    computed[f"scatter.background.{rule}"] = Computed(
        tuple(beside[name] / beside["LIN"] for name in OTHERS),
        f"{times.ranks_beside} terminals, in brackets without background traffic: "
        + ", ".join(f"{name} {_us(beside[name])} ({_us(alone[name])})" for name in SCATTERS)
        + ".",
    )
    return computed


def _factors(times: _Times, rule: Rule) -> dict[str, Computed]:
    """Computes how much buffers and other factors change the ratio of the trees' times to LIN's."""
    ratios = {_name(kib): times.ratio(rule, kib) for kib in times.scale.buffers}
    small, large = (times.ratio(rule, kib) for kib in times.ends)
    own = times.ratio(rule)
    buffers, where = _move_per_doubling(times, rule)
    both = [[times.ratio(a_rule, kib) for a_rule in RULES] for kib in (None, *times.scale.buffers)]
    others = {
        "the rule of a router's delay, at the buffers where it moves most": max(
            max(pair) / min(pair) for pair in both
        ),
        "chunks of 512 B": _moves(own, _ratio(times.whole(rule))),
        **{variant: _moves(own, _ratio(times.on(rule, variant))) for variant in RATES},
    }
    each = ", ".join(f"{ratio:.2f} with {name}" for name, ratio in ratios.items())
    return {
        f"scatter.buffers.{rule}": Computed(
            buffers / max(others.values()),
            f"Buffers move it by {buffers:.2f} ({where}); "
            + ", ".join(f"{name} by {factor:.2f}" for name, factor in others.items())
            + f". From {_name(times.ends[0])} to {_name(times.ends[1])} buffers move it by "
            f"{max(ratios.values()) / min(ratios.values()):.2f}.",
        ),
        f"scatter.buffers.cause.{rule}": Computed(
            small / large, f"Mean of TREE, GLF and LLF over LIN: {each}."
        ),
    }


def _move_per_doubling(times: _Times, rule: Rule) -> tuple[float, str]:
    """Returns the largest change of the ratio per doubling of the buffers, and its place."""
    sizes = sorted({*times.scale.buffers, SCATTER_BUFFERS})
    moves = []
    for small, large in pairwise(sizes):
        moved = _moves(times.ratio(rule, small), times.ratio(rule, large))
        doublings = math.log2(large[0] / small[0])
        moves.append((moved ** (1 / doublings), f"from {_name(small)} to {_name(large)}"))
    return max(moves)


def _moves(first: float, second: float) -> float:
    return max(first, second) / min(first, second)


def _full(times: _Times, rule: Rule) -> dict[str, Computed]:
    """Computes whether buffers become full, and the effect on the trees and on LIN."""
    small, large = times.ends
    saved = {
        name: less_percent(times.of(rule, name, large), times.of(rule, name, small))
        for name in SCATTERS
    }
    computed = {
        f"scatter.trees.slowed.{rule}": Computed(
            min(saved[name] for name in OTHERS),
            ", ".join(f"{name} {saved[name]:.1f} %" for name in SCATTERS)
            + ". All data of the trees leaves through ports of the root's router. Their rate, not "
            "the buffers, bounds the trees; LIN is not bound by it and may gain more.",
        )
    }
    filled = {name: times.row(rule, name, large)["full_channels"] or 0 for name in OTHERS}
    computed[f"scatter.trees.fill.{rule}.large_buffers"] = Computed(
        min(filled.values()), ", ".join(f"{name} {full}" for name, full in filled.items()) + "."
    )
    for name in OTHERS:
        row = times.row(rule, name)
        computed[f"scatter.trees.fill.{rule}.{name}"] = Computed(
            row["full_channels"] or 0,
            f"Stalls of routers' ports, all together: {1e3 * (row['router_stall_s'] or 0):.2f} ms.",
        )
    for suffix, kib in (("", None), (".large_buffers", large)):
        row = times.row(rule, "LIN", kib)
        computed |= {
            f"scatter.lin.full.{rule}{suffix}": Computed(
                row["full_channels"] or 0,
                "Its blocks for one group leave through one port, which is slower than the root's "
                "link where the delay occupies it.",
            ),
            f"scatter.lin.slowdown.{rule}{suffix}": Computed(
                row["time_s"] / times.injection_s,
                f"{_us(row['time_s'])} in place of {_us(times.injection_s)}.",
            ),
        }
    return computed


def _impacts(times: _Times, rule: Rule) -> dict[str, Computed]:
    """Computes how much the network's shape, buffers and rates change times."""
    own = {name: times.of(rule, name) for name in SCATTERS}
    shapes = {"the poster's network": own} | {
        variant: times.on(rule, variant) for variant in SHAPES
    }
    parts = {_name(kib): {name: times.of(rule, name, kib) for name in SCATTERS}
             for kib in times.ends}  # fmt: skip
    parts |= {_name(SCATTER_BUFFERS): own} | {variant: times.on(rule, variant) for variant in RATES}
    computed = {}
    for id, ways in (("topology", shapes), ("hardware", parts)):
        gains = {
            name: less_percent(
                min(by[name] for by in ways.values()), max(by[name] for by in ways.values())
            )
            for name in SCATTERS
        }
        computed[f"scatter.{id}.{rule}"] = Computed(
            max(gains.values()),
            ", ".join(f"{name} {gain:.1f} %" for name, gain in gains.items())
            + ". Times in us of "
            + ", ".join(SCATTERS)
            + ": "
            + "; ".join(
                f"{way} {', '.join(f'{1e6 * by[name]:.0f}' for name in SCATTERS)}"
                for way, by in ways.items()
            )
            + ".",
        )
    return computed


def _name(kib: Buffers) -> str:
    return "/".join(str(size) for size in kib) + " KiB"


def _others(times: _Times, rule: Rule) -> dict[str, Computed]:
    """Computes the differences between trees, as multiples of LIN's lead."""
    spreads = []
    for kib in times.scale.buffers:
        own = [times.of(rule, name, kib) for name in OTHERS]
        spreads.append(100 * (max(own) / min(own) - 1))
    alone = _differ({name: times.of(rule, name) for name in SCATTERS})
    beside = _differ({name: times.beside(rule, name, background=True) for name in SCATTERS})
    return {
        f"scatter.others.{rule}": Computed(
            alone.value,
            f"{alone.note} With buffers of {_name(times.ends[0])} to {_name(times.ends[1])} at "
            f"most {max(spreads):.1f} %.",
        ),
        f"scatter.others.background.{rule}": Computed(
            beside.value, f"{times.ranks_beside} terminals: {beside.note}"
        ),
    }


def _differ(times: Mapping[str, float]) -> Computed:
    others = {name: times[name] for name in OTHERS}
    slowest, fastest = max(others.values()), min(others.values())
    lead = sum(others.values()) / len(others) - times["LIN"]
    each = ", ".join(f"{name} {_us(time)}" for name, time in times.items())
    return Computed(
        (slowest - fastest) / lead,
        f"{each}. The slowest of the three takes {100 * (slowest / fastest - 1):.1f} % more than "
        "the fastest.",
    )


def _links(times: _Times) -> dict[str, Computed]:
    """Computes the bytes on links, which depend only on routes."""
    rows = {name: times.row("pipelined", name) for name in SCATTERS}
    crossed = {name: row["global_bytes"] or 0 for name, row in rows.items()}
    # Every injected byte also uses a link to a terminal.
    sums = {
        name: 2 * (row["injected_bytes"] or 0) + (row["local_bytes"] or 0) + crossed[name]
        for name, row in rows.items()
    }
    per_group = 2 * times.scale.scatter**2
    to = np.arange(1, times.ranks)
    within, between = hops(fabric(times.scale.scatter), np.zeros_like(to), to)
    shortest = int((2 + within + between).sum()) * SCATTER_BYTES
    least = (times.ranks - per_group) * SCATTER_BYTES
    flat = times.row("pipelined", "LLF flat")["global_bytes"] or 0

    def each(values: Mapping[str, int]) -> str:
        return ", ".join(f"{name} {value / 1e6:.2f} MB" for name, value in values.items()) + "."

    return {
        "lin.links": Computed(sums["LIN"] / shortest, f"Bytes over all links: {each(sums)}"),
        "llf.global.least": Computed(
            crossed["LLF"] / least,
            f"Bytes on global links: {each(crossed)} LLF's binomial tree from a router to its "
            "groups relays between groups.",
        ),
        "llf.global.least.flat": Computed(
            flat / least,
            f"It takes {_us(times.of('pipelined', 'LLF flat'))}, with the tree "
            f"{_us(times.of('pipelined', 'LLF'))} (routers are pipelines).",
        ),
        "llf.global.trees": Computed(
            crossed["LLF"] / min(crossed["TREE"], crossed["GLF"]),
            f"Bytes on global links: {each(crossed)}",
        ),
    }


def _show(results: Results, times: _Times) -> None:
    lines: list[Sequence[object]] = []
    for rule in RULES:
        lines.append(
            [rule, "-", times.ranks]
            + [f"{1e6 * times.of(rule, name):.1f}" for name in SCATTERS]
            + [f"{times.ratio(rule):.2f}"]
        )
        beside = [times.beside(rule, name, background=True) for name in SCATTERS]
        lines.append(
            [rule, "yes", times.ranks_beside]
            + [f"{1e6 * time:.1f}" for time in beside]
            + [f"{sum(beside[1:]) / len(OTHERS) / beside[0]:.2f}"]
        )
    results.show(
        "Time of scatter, 1 KiB per terminal, in us (cases.csv); others: mean of TREE, GLF, LLF",
        ["router delay", "background", "terminals", *SCATTERS, "others / LIN"],
        lines,
        left=(0, 1),
    )
    results.show(
        f"The same on {times.ranks} terminals with other buffers of local, global and terminal "
        "channels, in us (cases.csv)",
        ["router delay", "buffers", *SCATTERS, "others / LIN"],
        [
            [rule, _name(kib)]
            + [f"{1e6 * times.of(rule, name, kib):.1f}" for name in SCATTERS]
            + [f"{times.ratio(rule, kib):.2f}"]
            for rule in RULES
            for kib in times.scale.buffers
        ],
        left=(0, 1),
    )


def draw(results: Results, rows: Rows, scale: Scale) -> None:
    """Draws times with and without background traffic under both rules, and over buffer sizes."""
    times = _Times(rows, scale)
    titles = ("Router delay pipelined", "Router delay occupies the port")
    bars = [
        plot.BarPanel(
            title,
            {
                label: [1e6 * times.beside(rule, name, background=background) for name in SCATTERS]
                for label, background in (
                    ("alone", False),
                    ("with uniform background traffic", True),
                )
            },
        )
        for rule, title in zip(RULES, titles, strict=True)
    ]

    results.draw(
        "scatter",
        plots.grouped_bars,
        bars,
        SCATTERS,
        x_label="",
        y_label="Time (µs)",
        title=f"scatter of 1 KiB per terminal, {times.ranks_beside} terminals, chunks of 256 B",
        log_y=False,
    )
    panels = [
        plots.Panel(
            title,
            [
                plots.Curve(
                    name,
                    [
                        (kib[0] << 10, 1e6 * times.of(rule, name, kib))
                        for kib in times.scale.buffers
                    ],
                    i,
                )
                for i, name in enumerate(SCATTERS)
            ],
        )
        for rule, title in zip(RULES, titles, strict=True)
    ]

    results.draw(
        "scatter_buffers",
        plots.curves,
        panels,
        x_label="Buffer of a local or terminal channel (global: twice)",
        y_label="Time (µs)",
        title=f"scatter of 1 KiB per terminal, {times.ranks} terminals, over the buffers",
        x_sizes=True,
        log_x=True,
        log_y=False,
    )
