"""The poster's second comparison: scatter of 1 KiB per terminal by LIN, TREE, GLF and LLF."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import opticoll
from opticoll import plot
from opticoll.papers.dragonfly.cases import (
    RULES,
    SCATTER_BYTES,
    SCATTERS,
    Buffers,
    Rule,
    Scale,
    fabric,
    scatter,
)
from opticoll.papers.dragonfly.gathers import less_percent
from opticoll.papers.dragonfly.runs import Row, Rows
from opticoll.papers.kit import Finding, Results, Verdict, finding

OTHERS = SCATTERS[1:]
SIGNIFICANT = 0.10
"""Times that differ by less than this share differ insignificantly; the poster names no limit."""


def conclude(results: Results, rows: Rows, scale: Scale) -> list[Finding]:
    """The poster's findings on scatter, with tables of times."""
    times = _Times(rows, scale)
    _show(results, times)
    return [
        _headline(times),
        *(_twice(times, rule) for rule in RULES),
        *(_alike(times, rule) for rule in RULES),
        *(_background(times, rule) for rule in RULES),
        _buffers_matter(times),
        _trees_fill_buffers(times),
        _lin_saturates_none(times),
        _lin_links(times),
        _llf_global_links(times),
        _glf_first(scale),
    ]


class _Times:
    """Rows and times in seconds by rule, algorithm, background traffic and buffers."""

    def __init__(self, rows: Rows, scale: Scale) -> None:
        self.rows = rows
        self.scale = scale
        self.ranks = fabric(scale.scatter).ranks
        self.ranks_beside = fabric(scale.scatter_beside).ranks
        self.ends = (scale.buffers[0], scale.buffers[-1])

    def row(self, rule: Rule, algorithm: str, buffers: Buffers | None = None) -> Row:
        """A scatter without background traffic."""
        return self.rows[scatter(self.scale.scatter, algorithm, rule, buffers=buffers)]

    def of(self, rule: Rule, algorithm: str, buffers: Buffers | None = None) -> float:
        """Its time."""
        return self.row(rule, algorithm, buffers)["time_s"]

    def beside(self, rule: Rule, algorithm: str, *, background: bool) -> float:
        """The time on the network on which background traffic runs, with and without it."""
        network = self.scale.scatter_beside
        return self.rows[scatter(network, algorithm, rule, background=background)]["time_s"]

    def ratio(self, rule: Rule, buffers: Buffers | None = None) -> float:
        """The mean of TREE, GLF and LLF in multiples of LIN."""
        others = [self.of(rule, name, buffers) for name in OTHERS]
        return sum(others) / len(others) / self.of(rule, "LIN", buffers)


def _is_twice(ratio: float) -> bool:
    """Whether a ratio is two or more, to the one digit that the poster gives."""
    return round(ratio) >= 2


def _headline(times: _Times) -> Finding:
    ratios = {rule: times.ratio(rule) for rule in RULES}
    twice = [rule for rule in RULES if _is_twice(ratios[rule])]
    verdict: Verdict = (
        "reproduced" if len(twice) == len(RULES) else "conditional" if twice else "refuted"
    )
    shuffled = {rule: times.of(rule, "TREE") / times.of(rule, "LIN shuffled") for rule in RULES}
    condition = {
        "reproduced": "Holds under both rules",
        "conditional": f"Holds only if the router delay is {' or '.join(twice)}, as in the "
        "simulator that the poster used until October 2016",
        "refuted": "Does not hold",
    }[verdict]
    return finding(
        "scatter.lin",
        2,
        f"{ratios['occupies_port']:.2f} or {ratios['pipelined']:.2f}",
        "times LIN's time, mean of TREE, GLF and LLF: occupies_port or pipelined",
        verdict,
        f"{condition}: then 256 B leave a router port no faster than every 95 ns, 2.5 GiB/s in "
        "place of 5.25, and what sends most through one port suffers most. With LIN's order "
        f"shuffled TREE takes {shuffled['occupies_port']:.2f} or {shuffled['pipelined']:.2f} "
        "times as long.",
    )


def _twice(times: _Times, rule: Rule) -> Finding:
    ratio = times.ratio(rule)
    lin = times.of(rule, "LIN")
    each = ", ".join(
        f"{less_percent(lin, times.of(rule, name)):.1f} % less than {name}" for name in OTHERS
    )
    return finding(
        f"scatter.lin.{rule}",
        2,
        round(ratio, 3),
        "times LIN's time, mean of TREE, GLF and LLF",
        _is_twice(ratio),
        f"{'Holds' if _is_twice(ratio) else 'Does not hold'}: LIN takes {1e6 * lin:.0f} us, "
        f"{each}; twice as fast is 50 % less. The root's own link needs "
        f"{_injection(times):.0f} us.",
    )


def _injection(times: _Times) -> float:
    """Microseconds that the root's link takes for the blocks of all others."""
    return 1e6 * (times.ranks - 1) * SCATTER_BYTES / (5.25 * 2**30)


def _alike(times: _Times, rule: Rule) -> Finding:
    others = {name: times.of(rule, name) for name in OTHERS}
    spread = max(others.values()) / min(others.values()) - 1
    each = ", ".join(f"{name} {1e6 * time:.0f} us" for name, time in others.items())
    alike = spread < SIGNIFICANT
    return finding(
        f"scatter.others.{rule}",
        "no significant difference",
        round(100 * spread, 2),
        "% between the slowest and the fastest of TREE, GLF and LLF",
        alike,
        f"{'Holds' if alike else 'Does not hold'}: {each}.",
    )


def _background(times: _Times, rule: Rule) -> Finding:
    lin = {
        background: times.beside(rule, "LIN", background=background) for background in (True, False)
    }
    ratios = {
        background: sum(times.beside(rule, name, background=background) for name in OTHERS)
        / len(OTHERS)
        / lin[background]
        for background in (True, False)
    }
    each = ", ".join(
        f"{less_percent(lin[True], times.beside(rule, name, background=True)):.1f} % less than "
        f"{name}"
        for name in OTHERS
    )
    twice = _is_twice(ratios[True])
    return finding(
        f"scatter.background.{rule}",
        2,
        round(ratios[True], 3),
        "times LIN's time, mean of TREE, GLF and LLF, with background traffic",
        twice,
        f"{'Holds' if twice else 'Does not hold'}, as without background traffic "
        f"({ratios[False]:.2f} times, {times.ranks_beside} terminals): LIN takes "
        f"{1e6 * lin[True]:.0f} us in place of {1e6 * lin[False]:.0f}, {each}.",
    )


def _buffers_matter(times: _Times) -> Finding:
    ends = {rule: [times.ratio(rule, kib) for kib in times.ends] for rule in RULES}
    moved = [rule for rule in RULES if abs(ends[rule][1] / ends[rule][0] - 1) > SIGNIFICANT]
    return finding(
        "scatter.buffers",
        "major impact factor",
        ", ".join(f"{ends[rule][0]:.2f} to {ends[rule][1]:.2f} {rule}" for rule in RULES),
        f"times LIN's time, with buffers of {_name(times.ends[0])} to {_name(times.ends[1])}",
        "reproduced" if len(moved) == len(RULES) else "conditional" if moved else "refuted",
        f"Holds only if the router delay is {' or '.join(moved)}."
        if 0 < len(moved) < len(RULES)
        else "Holds under both rules."
        if moved
        else "Does not hold.",
    )


def _name(kib: Buffers) -> str:
    return "/".join(str(size) for size in kib) + " KiB"


def _trees_fill_buffers(times: _Times) -> Finding:
    """What the trees gain from buffers that never fill."""
    gains = {
        (rule, name): less_percent(
            times.of(rule, name, times.ends[1]), times.of(rule, name, times.ends[0])
        )
        for rule in RULES
        for name in OTHERS
    }
    most = max(gains.values())
    stalls = {name: times.row("occupies_port", name)["router_stall_s"] or 0.0 for name in OTHERS}
    each = ", ".join(f"{name} {1e3 * stall:.1f} ms" for name, stall in stalls.items())
    return finding(
        "scatter.buffers.trees",
        "slowed down by full buffers",
        round(most, 2),
        "% at most that 64 times the buffers save TREE, GLF or LLF",
        most > 100 * SIGNIFICANT,
        f"Buffers do fill (stalls of all router channels at 16/32/16 KiB, occupies_port: {each}), "
        "but that is no reason: buffers that hold a whole group's blocks save next to nothing. The "
        "root's stream leaves through its router's port, whose rate bounds it.",
    )


def _lin_saturates_none(times: _Times) -> Finding:
    full = {rule: times.row(rule, "LIN")["full_channels"] or 0 for rule in RULES}
    spans = {rule: [1e6 * times.of(rule, "LIN", kib) for kib in times.ends] for rule in RULES}
    none = [rule for rule in RULES if not full[rule]]
    each = "; ".join(
        f"{spans[rule][0]:.0f} us with {_name(times.ends[0])} and {spans[rule][1]:.0f} us with "
        f"{_name(times.ends[1])} ({rule})"
        for rule in RULES
    )
    return finding(
        "scatter.buffers.lin",
        0,
        " or ".join(f"{full[rule]} {rule}" for rule in RULES),
        "virtual channels of routers that LIN fills at 16/32/16 KiB",
        "reproduced" if len(none) == len(RULES) else "conditional" if none else "refuted",
        (f"Holds only if the router delay is {' or '.join(none)}. " if none else "")
        + f"LIN is the one that buffers help: {each}. Its 72 KiB for one group leave through one "
        "port, which is slower than the root's link where the delay occupies it.",
    )


def _lin_links(times: _Times) -> Finding:
    sums = {}
    for name in SCATTERS:
        row = times.row("pipelined", name)
        sums[name] = sum(
            row[what] or 0 for what in ("injected_bytes", "local_bytes", "global_bytes")
        )
    least = min(sums, key=sums.__getitem__)
    each = ", ".join(f"{name} {sums[name] / 1e6:.1f} MB" for name in SCATTERS)
    injected = {
        name: (times.row("pipelined", name)["injected_bytes"] or 0) / 1e6 for name in SCATTERS
    }
    return finding(
        "scatter.lin.links",
        "LIN",
        least,
        "uses links least",
        least == "LIN",
        f"{'Holds' if least == 'LIN' else 'Does not hold'}: bytes over injection, local and global "
        f"links {each}; injected by all terminals "
        + ", ".join(f"{name} {mega:.2f} MB" for name, mega in injected.items())
        + ".",
    )


def _llf_global_links(times: _Times) -> Finding:
    shape = fabric(times.scale.scatter)
    per_group = 2 * times.scale.scatter**2
    least = (shape.ranks - per_group) * SCATTER_BYTES
    multiples = {
        name: (times.row("pipelined", name)["global_bytes"] or 0) / least for name in SCATTERS
    }
    each = ", ".join(f"{name} {multiple:.2f}" for name, multiple in multiples.items())
    return finding(
        "scatter.llf.global_links",
        1,
        round(multiples["LLF"], 3),
        "times the least bytes on global links",
        "reproduced" if multiples["LLF"] <= 1 else "conditional",
        f"Each block must cross a global link once: {each}. Holds among the trees; LLF with a "
        "binomial tree from each router to its groups, as the poster says, relays between groups "
        "and crosses twice. LIN, or a flat tree in that phase, crosses once.",
    )


def _glf_first(scale: Scale) -> Finding:
    """Whether GLF's nodes cross groups in their first sends only, and how few messages cross."""
    plan = opticoll.plan("scatter", fabric(scale.scatter), "glf")
    assert not plan.verify()
    columns = plan.columns()
    group = 2 * scale.scatter**2
    crosses = columns["source"] // group != columns["destination"] // group
    last = np.full(plan.fabric.ranks, -1)
    first = np.full(plan.fabric.ranks, plan.slots)
    np.maximum.at(last, columns["source"][crosses], columns["slot"][crosses])
    np.minimum.at(first, columns["source"][~crosses], columns["slot"][~crosses])
    later = int((last > first).sum())
    groups = plan.fabric.ranks // group
    return finding(
        "scatter.glf.first_phase",
        0,
        later,
        "terminals that cross groups after a send within their group",
        not later,
        f"{'Holds' if not later else 'Does not hold'}: {int(crosses.sum())} messages cross, one to "
        f"each of the {groups - 1} other groups.",
    )


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
    """Times with and without background traffic under both rules, and over sizes of buffers."""
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
        plot.grouped_bars,
        bars,
        SCATTERS,
        x_label="",
        y_label="Time (µs)",
        title=f"scatter of 1 KiB per terminal, {times.ranks_beside} terminals, chunks of 256 B",
        log_y=False,
    )
    panels = [
        plot.Panel(
            title,
            [
                plot.Curve(
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
        plot.curves,
        panels,
        x_label="Buffer of a local or terminal channel (global: twice)",
        y_label="Time (µs)",
        title=f"scatter of 1 KiB per terminal, {times.ranks} terminals, over the buffers",
        x_sizes=True,
        log_x=True,
        log_y=False,
    )
