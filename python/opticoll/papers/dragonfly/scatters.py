"""The poster's second comparison: scatter of 1 KiB per terminal by LIN, TREE, GLF and LLF."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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
from opticoll.papers.judging import Computed
from opticoll.papers.kit import Results

OTHERS = SCATTERS[1:]


def compute(results: Results, rows: Rows, scale: Scale) -> dict[str, Computed]:
    """What the poster's items on scatter come to, with tables of times."""
    times = _Times(rows, scale)
    _show(results, times)
    found = _links(times)
    for rule in RULES:
        found |= _twice(times, rule) | _buffers(times, rule) | _others(times, rule)
    trees = {rule: times.of(rule, "TREE") for rule in RULES}
    found["scatter.hardware"] = Computed(
        less_percent(min(trees.values()), max(trees.values())),
        ", ".join(f"{_us(time)} {rule}" for rule, time in trees.items()) + ".",
    )
    return found


class _Times:
    """Rows and times in seconds by rule, algorithm, background traffic and buffers."""

    def __init__(self, rows: Rows, scale: Scale) -> None:
        self.rows = rows
        self.scale = scale
        self.ranks = fabric(scale.scatter).ranks
        self.ranks_beside = fabric(scale.scatter_beside).ranks
        self.ends = (scale.buffers[0], scale.buffers[-1])
        self.injection_s = (self.ranks - 1) * SCATTER_BYTES / (5.25 * 2**30)

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


def _us(time_s: float) -> str:
    return f"{1e6 * time_s:.1f} us"


def _twice(times: _Times, rule: Rule) -> dict[str, Computed]:
    """The times of the others in multiples of LIN's, alone and with background traffic."""
    lin = times.of(rule, "LIN")
    found = {
        f"scatter.twice.{rule}.{name}": Computed(
            times.of(rule, name) / lin,
            f"{times.ranks} terminals: LIN {_us(lin)}, {name} {_us(times.of(rule, name))}. The "
            f"root's own link needs {_us(times.injection_s)}.",
        )
        for name in OTHERS
    }
    large = times.ends[1]
    found[f"scatter.twice.{rule}.large_buffers"] = Computed(
        tuple(times.of(rule, name, large) / times.of(rule, "LIN", large) for name in OTHERS),
        ", ".join(f"{name} {_us(times.of(rule, name, large))}" for name in SCATTERS) + ".",
    )
    alone, beside = (
        {name: times.beside(rule, name, background=background) for name in SCATTERS}
        for background in (False, True)
    )
    found[f"scatter.background.{rule}"] = Computed(
        min(beside[name] for name in OTHERS) / beside["LIN"],
        f"{times.ranks_beside} terminals, in brackets without background traffic: "
        + ", ".join(f"{name} {_us(beside[name])} ({_us(alone[name])})" for name in SCATTERS)
        + ".",
    )
    return found


def _buffers(times: _Times, rule: Rule) -> dict[str, Computed]:
    """What buffers do to the trees and to LIN."""
    ratios = {_name(kib): times.ratio(rule, kib) for kib in times.scale.buffers}
    small, large = times.ends
    saved = {
        name: less_percent(times.of(rule, name, large), times.of(rule, name, small))
        for name in SCATTERS
    }
    full = {name: times.row(rule, name)["full_channels"] or 0 for name in SCATTERS}
    stalls = ", ".join(
        f"{name} {1e3 * (times.row(rule, name)['router_stall_s'] or 0):.2f} ms" for name in SCATTERS
    )
    lin = times.of(rule, "LIN")
    return {
        f"scatter.buffers.{rule}": Computed(
            max(ratios.values()) / min(ratios.values()),
            "Mean of TREE, GLF and LLF over LIN: "
            + ", ".join(f"{ratio:.2f} with {name}" for name, ratio in ratios.items())
            + ".",
        ),
        f"scatter.trees.fill.{rule}": Computed(
            min(full[name] for name in OTHERS),
            ", ".join(f"{name} {full[name]}" for name in OTHERS)
            + f". Stalls of routers' ports, all together: {stalls}.",
        ),
        f"scatter.trees.slowed.{rule}": Computed(
            max(saved[name] for name in OTHERS),
            ", ".join(f"{name} {saved[name]:.1f} %" for name in SCATTERS)
            + ". The root's stream leaves through its router's port, whose rate bounds the trees; "
            "of the four LIN alone may gain much.",
        ),
        f"scatter.lin.full.{rule}": Computed(
            full["LIN"],
            "Its blocks for one group leave through one port, which is slower than the root's "
            "link where the delay occupies it.",
        ),
        f"scatter.lin.slowdown.{rule}": Computed(
            lin / times.injection_s, f"{_us(lin)} in place of {_us(times.injection_s)}."
        ),
    }


def _name(kib: Buffers) -> str:
    return "/".join(str(size) for size in kib) + " KiB"


def _others(times: _Times, rule: Rule) -> dict[str, Computed]:
    """How far the trees differ, and LIN with its terminals in another order."""
    others = {name: times.of(rule, name) for name in OTHERS}
    spreads = []
    for kib in times.scale.buffers:
        own = [times.of(rule, name, kib) for name in OTHERS]
        spreads.append(100 * (max(own) / min(own) - 1))
    orders = [times.of(rule, name) for name in ("LIN", "LIN shuffled")]
    return {
        f"scatter.others.{rule}": Computed(
            100 * (max(others.values()) / min(others.values()) - 1),
            ", ".join(f"{name} {_us(time)}" for name, time in others.items())
            + f". With buffers of {_name(times.ends[0])} to {_name(times.ends[1])} at most "
            f"{max(spreads):.1f} %.",
        ),
        f"scatter.topology.{rule}": Computed(
            less_percent(min(orders), max(orders)),
            f"{_us(orders[0])} in order, {_us(orders[1])} in random order, seed 1.",
        ),
    }


def _links(times: _Times) -> dict[str, Computed]:
    """Bytes on links, which depend on routes alone."""
    rows = {name: times.row("pipelined", name) for name in SCATTERS}
    crossed = {name: row["global_bytes"] or 0 for name, row in rows.items()}
    injected = {name: row["injected_bytes"] or 0 for name, row in rows.items()}
    # Whatever is injected goes to a terminal, too.
    sums = {
        name: 2 * injected[name] + (row["local_bytes"] or 0) + crossed[name]
        for name, row in rows.items()
    }
    per_group = 2 * times.scale.scatter**2
    least = (times.ranks - per_group) * SCATTER_BYTES

    def each(values: Mapping[str, int]) -> str:
        return ", ".join(f"{name} {value / 1e6:.2f} MB" for name, value in values.items()) + "."

    return {
        "lin.links": Computed(
            sums["LIN"] / min(sums[name] for name in OTHERS),
            f"Bytes over all links: {each(sums)}",
        ),
        "llf.global.least": Computed(
            crossed["LLF"] / least,
            f"Bytes on global links: {each(crossed)} LLF's binomial tree from a router to its "
            "groups relays between groups.",
        ),
        "llf.global.flat": Computed(
            (times.row("pipelined", "LLF flat")["global_bytes"] or 0) / least,
            f"It takes {_us(times.of('pipelined', 'LLF flat'))}, the tree "
            f"{_us(times.of('pipelined', 'LLF'))} (pipelined).",
        ),
        "llf.global.trees": Computed(
            crossed["LLF"] / min(crossed["TREE"], crossed["GLF"]),
            f"Bytes on global links: {each(crossed)}",
        ),
        "scatter.trees.data": Computed(
            min(injected[name] for name in OTHERS) / injected["LIN"],
            f"Injected by all terminals: {each(injected)}",
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
