"""Electrical networks with which the poster's claims hold.

Up to rounding, the time of an all_reduce on an electrical fabric is a + b / B. B is the rate of a
port, a is the latency, and b is the number of sent bits. So the rate at which WRHT has a given lead
can be solved for. The solution is then simulated, and the page has the simulated result. The
latency at which a mean is reached is found in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from typing import TypedDict

from opticoll import format_time, plot
from opticoll_papers import plots
from opticoll_papers.common import Part, Results
from opticoll_papers.judging import Computed
from opticoll_papers.wrht.cases import MODELS, SIZES, WAVELENGTHS, striped_s, wrht_claimed_s
from opticoll_papers.wrht.electrical import (
    ALGORITHMS,
    FABRICS,
    LATENCY_PS,
    RATES,
    ElectricalRow,
    is_verified,
    time_s,
)

POSTER = ("ring", "recursive_doubling")
"""The poster's electrical baselines."""

GIGA = 10**9


class BreakEven(TypedDict):
    """Rate per port at which an electrical all_reduce takes WRHT's time; None if there is none."""

    fabric: str
    algorithm: str
    model: str
    ranks: int
    rate_bits_per_second: int | None
    wrht_claimed_s: float
    simulated_s: float | None
    verified: bool


Rows = Callable[[], list[ElectricalRow]]
"""Function that returns the times on electrical fabrics, and computes them at most once."""


def parts(results: Results, rows: Rows, scale: Sequence[int], *, quick: bool) -> dict[str, Part]:
    """Returns the parts of the electrical side by name, in the order in which they must run.

    `scale` are the numbers of ranks. A quick run draws only the figure of the first fabric, since
    its many panels take seconds.
    """
    cases = [(fabric, algorithm) for fabric in FABRICS for algorithm in ALGORITHMS]
    return {
        "electrical: tables and figures": lambda: _show(results, rows(), scale, quick=quick),
        "electrical: means": lambda: _means(results, rows, scale),
        **{
            f"electrical: break-even with {ALGORITHMS[algorithm]} on a {FABRICS[fabric]}": partial(
                _make_evens, results, fabric, algorithm, scale
            )
            for fabric, algorithm in cases
        },
        "electrical: break-even": lambda: _show_break_even(
            results, [row for case in cases for row in _evens(results, *case, scale)]
        ),
        "electrical: rates and latencies": lambda: _solved(results, scale),
    }


def _show(
    results: Results, rows: Sequence[ElectricalRow], scale: Sequence[int], *, quick: bool
) -> dict[str, Computed]:
    results.write("electrical", rows)
    _show_means(results, rows)
    for fabric in list(FABRICS)[: 1 if quick else None]:
        _draw(results, fabric, [row for row in rows if row["fabric"] == fabric], scale)
    return {}


def _mean(values: Iterable[float]) -> float:
    numbers = list(values)
    return sum(numbers) / len(numbers)


def _reduction(rows: Iterable[ElectricalRow], *columns: str) -> float:
    """Returns the mean percentage of time that WRHT (by formula) saves, over rows and columns."""
    return 100 * _mean(
        1 - row["wrht_claimed_s"] / row[column] for row in rows for column in columns
    )


def _at(rows: Iterable[ElectricalRow], fabric: str, rate: int) -> list[ElectricalRow]:
    return [row for row in rows if (row["fabric"], row["rate_bits_per_second"]) == (fabric, rate)]


def _show_means(results: Results, rows: Sequence[ElectricalRow]) -> None:
    ranks = ", ".join(str(count) for count in sorted({row["ranks"] for row in rows}))
    results.show(
        "Time that WRHT by its formula saves against electrical all_reduce, mean over four "
        f"networks and N = {ranks}; {format_time(LATENCY_PS)} per cable (electrical.csv)",
        ["fabric", "Gb/s per port", *ALGORITHMS.values(), "E-Ring and E-RD", "verified"],
        [
            [
                label,
                f"{rate // GIGA}",
                *(
                    f"{_reduction(own, column):+.1f}%"
                    for column in ("e_ring_s", "e_rd_s", "e_hd_s")
                ),
                f"{_reduction(own, 'e_ring_s', 'e_rd_s'):+.1f}%",
                all(row["verified"] for row in own),
            ]
            for fabric, label in FABRICS.items()
            for rate in RATES
            for own in [_at(rows, fabric, rate)]
        ],
        left=(0, 6),
    )


def _draw(
    results: Results, fabric: str, rows: Sequence[ElectricalRow], scale: Sequence[int]
) -> None:
    """Draws the poster's Fig. 2 for each rate, with times as multiples of WRHT's time."""
    series = {
        "E-Ring": "e_ring_s",
        "E-RD": "e_rd_s",
        "E-HD (not in the poster)": "e_hd_s",
        "O-Ring": "o_ring_formula_s",
        "opticoll on light (not in the poster)": "auto_s",
    }
    printed = {name: results.printed(f"headline.{name}") for name in ("optical", "electrical")}
    panels = [
        plot.BarPanel(
            f"{model}, {rate // GIGA} Gb/s per port",
            {label: [_ratio(row, column) for row in own] for label, column in series.items()},
        )
        for model in MODELS
        for rate in RATES
        for own in [[row for row in _at(rows, fabric, rate) if row["model"] == model]]
    ]

    results.draw(
        f"fig2_{fabric}",
        plots.grouped_bars,
        panels,
        [str(ranks) for ranks in scale],
        x_label="Ranks",
        y_label="Time / WRHT's",
        title=(
            f"all_reduce of float32 gradients in multiples of WRHT's time (its formula, w = "
            f"{WAVELENGTHS}, 40 Gb/s, 25 µs); electrical: {FABRICS[fabric]}, "
            f"{format_time(LATENCY_PS)} per cable"
        ),
        columns=len(RATES),
        base=1.0,
        marks={
            "WRHT": 1.0,
            f"as printed: {printed['electrical']}% less": 1 / (1 - printed["electrical"] / 100),
            f"exchanged: {printed['optical']}% less": 1 / (1 - printed["optical"] / 100),
        },
    )


def _ratio(row: ElectricalRow, column: str) -> float | None:
    time = row[column]
    return None if time is None else float(time) / row["wrht_claimed_s"]


def _means(results: Results, rows: Rows, scale: Sequence[int]) -> dict[str, Computed]:
    """Computes the mean percentages saved, at each of the study's rates."""
    own = rows()
    at = {(fabric, rate): _at(own, fabric, rate) for fabric in FABRICS for rate in RATES}
    verified = all(row["verified"] for row in own)
    mean = {case: _reduction(cases, "e_ring_s", "e_rd_s") for case, cases in at.items()}

    on_ranks = f"N = {', '.join(str(count) for count in scale)}"

    def to_sentence(*rates: int) -> str:
        first = at["crossbar", rates[0]]
        others = ", ".join(
            f"{mean[fabric, rate]:+.1f} % on a {FABRICS[fabric]} at {rate // GIGA} Gb/s"
            for fabric in FABRICS
            for rate in rates
            if (fabric, rate) != ("crossbar", rates[0])
        )
        return (
            f"{on_ranks}: E-Ring {_reduction(first, 'e_ring_s'):+.1f} %, E-RD "
            f"{_reduction(first, 'e_rd_s'):+.1f} %; halving and doubling, not in the poster, "
            f"{_reduction(first, 'e_hd_s'):+.1f} %. Other networks, the mean over E-Ring and E-RD: "
            f"{others}. " + ("Verified." if verified else "NOT verified.")
        )

    def least(rate: int) -> float:
        return min(_reduction(at["crossbar", rate], column) for column in ("e_ring_s", "e_rd_s"))

    slow, same, *fast = RATES
    small = {
        rate: {name: _striped(at["crossbar", rate], name) for name in ("e_ring_s", "e_rd_s")}
        for rate in RATES
    }
    striped_sentence = f"{on_ranks}. " + "; ".join(
        f"E-Ring {own['e_ring_s']:+.1f} %, E-RD {own['e_rd_s']:+.1f} % at {rate // GIGA} Gb/s"
        for rate, own in small.items()
    )
    return {
        "headline.electrical.10": Computed(mean["crossbar", slow], to_sentence(slow)),
        "headline.electrical.exchanged": Computed(mean["crossbar", slow], to_sentence(slow)),
        "headline.electrical.40": Computed(mean["crossbar", same], to_sentence(same, *fast)),
        "headline.electrical.exchanged.striped": Computed(
            _mean(small[same].values()), f"{striped_sentence}."
        ),
        "conclusion.electrical.10": Computed(least(slow), to_sentence(slow)),
        "conclusion.electrical.40": Computed(least(same), to_sentence(same, *fast)),
        "conclusion.electrical.striped": Computed(
            min(small[same].values()), f"{striped_sentence}."
        ),
        "setup.algorithms": Computed((*POSTER, "ring")),
    }


def _striped(rows: Iterable[ElectricalRow], column: str) -> float:
    """Returns the mean percentage of time that WRHT with striped groups of 3 saves."""
    return 100 * _mean(1 - striped_s(row["ranks"], row["size_bytes"]) / row[column] for row in rows)


def _rates(results: Results, scale: Sequence[int]) -> Computed:
    """Returns the mean on a switch, at the rate that gives the printed mean.

    The note lists the rates for all fabrics and for all printed means.
    """
    met = [
        (_rate_of(fabric, scale, results.printed(f"headline.{name}")), label)
        for name in ("electrical", "optical")
        for fabric, label in FABRICS.items()
    ]
    means_text = ", ".join(f"{mean.note} on a {label}" for mean, label in met)
    return Computed(met[0][0].value, f"Ports of {means_text}.")


@cache
def _cases(scale: Sequence[int]) -> list[tuple[int, str, int]]:
    return [(ranks, algorithm, size) for ranks in scale for algorithm in POSTER for size in SIZES]


def _rate_of(fabric: str, scale: Sequence[int], claimed: float) -> Computed:
    """Returns the rate per port, rounded to 1 Mb/s, at which the mean reduction is `claimed`."""
    cases = _cases(tuple(scale))
    lines = [_line(fabric, *case) for case in cases]
    wanted = [wrht_claimed_s(ranks, size) for ranks, _, size in cases]

    def mean(rate: float) -> float:
        return 100 * _mean(
            1 - wrht / (a + b / rate) for wrht, (a, b) in zip(wanted, lines, strict=True)
        )

    rate = round(_falling(mean, claimed) / 1e6) * 10**6
    simulated = 100 * _mean(
        1 - wrht / time_s(fabric, ranks, algorithm, rate, LATENCY_PS, size)
        for wrht, (ranks, algorithm, size) in zip(wanted, cases, strict=True)
    )
    return Computed(simulated, f"{rate / GIGA:.3f} Gb/s give {simulated:.2f} %")


def _line(fabric: str, ranks: int, algorithm: str, size: int) -> tuple[float, float]:
    """Returns a (seconds) and b (bits) of the time a + b / B, from two simulated rates B."""
    slow, fast = (
        time_s(fabric, ranks, algorithm, rate, LATENCY_PS, size) for rate in (RATES[0], RATES[-1])
    )
    sent = (slow - fast) / (1 / RATES[0] - 1 / RATES[-1])
    return slow - sent / RATES[0], sent


def _falling(value: Callable[[float], float], wanted: float) -> float:
    """Returns the positive argument at which a decreasing function has the value `wanted`.

    The search is a bisection on a logarithmic scale.
    """
    low, high = 1e-12, 1e15
    for _ in range(100):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if value(middle) > wanted else (low, middle)
    return low


def _make_evens(
    results: Results, fabric: str, algorithm: str, scale: Sequence[int]
) -> dict[str, Computed]:
    _evens(results, fabric, algorithm, scale)
    return {}


def _break_even(even: Sequence[BreakEven], algorithm: str) -> Computed:
    """Computes the rates per port below which WRHT is always faster, on a switch and on a tree."""
    sentences, least = [], {}
    for fabric, label in FABRICS.items():
        cases = {
            f"{row['model']} at N = {row['ranks']}": _gigabits(row)
            for row in even
            if (row["fabric"], row["algorithm"]) == (fabric, algorithm)
        }
        first = min(cases, key=lambda case: cases[case])
        finite = {case: rate for case, rate in cases.items() if rate != NEVER}
        last = max(finite, key=lambda case: finite[case])
        never = [case for case, rate in cases.items() if rate == NEVER]
        least[fabric] = cases[first]
        sentences.append(
            f"On a {label} from {cases[first]:.3g} Gb/s ({first}) to {finite[last]:.3g} Gb/s "
            f"({last})" + (f", and at any rate for {', '.join(never)}" if never else "")
        )
    return Computed(least["crossbar"], f"{'. '.join(sentences)}.")


def _evens(results: Results, fabric: str, algorithm: str, scale: Sequence[int]) -> list[BreakEven]:
    """Returns the rows of each network and number of ranks, stored until the study ends."""
    return [
        BreakEven(**row)  # type: ignore[typeddict-item]
        for ranks in scale
        for row in results.rows(
            {"break-even": fabric, "algorithm": algorithm, "ranks": ranks},
            lambda ranks=ranks: [  # type: ignore[misc]
                dict(_even(fabric, algorithm, model, size, ranks))
                for model, size in zip(MODELS, SIZES, strict=True)
            ],
        )
    ]


NEVER = float("inf")


def _gigabits(row: BreakEven) -> float:
    rate = row["rate_bits_per_second"]
    return NEVER if rate is None else rate / GIGA


def _even(fabric: str, algorithm: str, model: str, size: int, ranks: int) -> BreakEven:
    wrht = wrht_claimed_s(ranks, size)
    latency, sent = _line(fabric, ranks, algorithm, size)
    rate = None if wrht <= latency else round(sent / (wrht - latency))
    return BreakEven(
        fabric=fabric,
        algorithm=algorithm,
        model=model,
        ranks=ranks,
        rate_bits_per_second=rate,
        wrht_claimed_s=wrht,
        simulated_s=None
        if rate is None
        else time_s(fabric, ranks, algorithm, rate, LATENCY_PS, size),
        verified=is_verified(fabric, ranks, algorithm),
    )


def _show_break_even(results: Results, even: Sequence[BreakEven]) -> dict[str, Computed]:
    results.write("break_even", even)
    cells: dict[tuple[str, str, int], list[str]] = {}
    for row in even:
        rate = _gigabits(row)
        rate_text = "none" if rate == NEVER else f"{rate:.3g}"
        cells.setdefault((row["fabric"], row["model"], row["ranks"]), []).append(rate_text)
    results.show(
        "Break-even: Gb/s per electrical port above which each is faster than WRHT "
        "(break_even.csv)",
        ["fabric", "network", "N", *ALGORITHMS.values()],
        [
            [FABRICS[fabric], model, ranks, *rates]
            for (fabric, model, ranks), rates in cells.items()
        ],
        left=(0, 1),
    )
    ring, doubling = (_break_even(even, algorithm) for algorithm in POSTER)
    return {
        "fig2.electrical.ring.10": ring,
        "fig2.electrical.ring.40": ring,
        "fig2.electrical.recursive_doubling.40": doubling,
    }


def _solved(results: Results, scale: Sequence[int]) -> dict[str, Computed]:
    """Computes the port rates, and the cable latencies on a switch, that give the printed mean.

    On a switch, all messages of a step cross two cables at the same time. So one more second per
    cable means two more seconds per step.
    """
    met: list[str] = []
    claimed = results.printed("headline.electrical")
    cases = _cases(tuple(scale))
    wanted = [wrht_claimed_s(ranks, size) for ranks, _, size in cases]
    cables = [2 * _steps(algorithm, ranks) for ranks, algorithm, _ in cases]
    for rate in RATES[1:]:

        def times(latency_ps: int, rate: int = rate) -> list[float]:
            return [
                time_s("crossbar", ranks, algorithm, rate, latency_ps, size)
                for ranks, algorithm, size in cases
            ]

        usual = times(LATENCY_PS)

        def missing(latency_s: float, usual: list[float] = usual) -> float:
            more = latency_s - LATENCY_PS / 1e12
            return 100 * _mean(
                wrht / (time + waits * more)
                for wrht, time, waits in zip(wanted, usual, cables, strict=True)
            )

        latency_ps = round(_falling(missing, 100 - claimed) * 1e12)
        simulated = 100 * _mean(
            1 - wrht / time for wrht, time in zip(wanted, times(latency_ps), strict=True)
        )
        met.append(f"{latency_ps / 1e9:.6g} ms at {rate // GIGA} Gb/s give {simulated:.2f} %")
    rates = _rates(results, scale)
    return {
        "headline.electrical": Computed(
            None,
            f"{rates.note} Latencies of a cable and switch of {', '.join(met)} on a single switch; "
            f"this study has {LATENCY_PS / 1e9:g} ms.",
        )
    }


def _steps(algorithm: str, ranks: int) -> int:
    return 2 * (ranks - 1) if algorithm == "ring" else (ranks - 1).bit_length()
