"""What the electrical networks must be for the poster's claims to hold.

The time of one all_reduce on one electrical fabric is, but for rounding, a + b / B at the rate B of
its ports: a is latency, b what is sent. So the rate at which WRHT takes a wanted share of it can be
solved for; it is then simulated, and what is said is what the simulation gave. So is the latency at
which a mean is met.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TypedDict

from opticoll import format_time, plot
from opticoll.papers.kit import Finding, Part, Results, finding
from opticoll.papers.wrht.cases import ABSTRACT, MODELS, SIZES, WAVELENGTHS, wrht_claimed_s
from opticoll.papers.wrht.electrical import (
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

CLAIMED = {
    "printed": ABSTRACT["electrical"],
    # The abstract's two numbers are swapped: see the finding headline.order.
    "swapped": ABSTRACT["optical"],
}
GIGA = 10**9


class BreakEven(TypedDict):
    """The rate per port at which an electrical all_reduce takes WRHT's time; None: at no rate."""

    fabric: str
    algorithm: str
    model: str
    ranks: int
    rate_bits_per_second: int | None
    wrht_claimed_s: float
    simulated_s: float | None
    verified: bool


def parts(
    results: Results, rows: Sequence[ElectricalRow], scale: Sequence[int], *, quick: bool
) -> dict[str, Part]:
    """Tables, figures and findings of the electrical side, from `rows` as they are then.

    Each part, by its name, gives its findings; they run in this order. `scale` has the numbers of
    ranks; `quick` draws the figure of the first fabric only: its many panels take seconds.
    """
    even: list[BreakEven] = []
    return {
        "electrical: tables and figures": lambda: _show(results, rows, scale, quick=quick),
        **{
            f"electrical: claimed means on a {label}": partial(_met, rows, fabric, scale)
            for fabric, label in FABRICS.items()
        },
        **{
            f"electrical: break-even with {label} on a {FABRICS[fabric]}": partial(
                _break_even, fabric, algorithm, scale, even
            )
            for fabric in FABRICS
            for algorithm, label in ALGORITHMS.items()
        },
        "electrical: break-even, table": lambda: _show_break_even(results, even),
        "electrical: latency": lambda: _latency(scale),
    }


def _show(
    results: Results, rows: Sequence[ElectricalRow], scale: Sequence[int], *, quick: bool
) -> list[Finding]:
    results.write("electrical", rows)
    _show_means(results, rows)
    for fabric in list(FABRICS)[: 1 if quick else None]:
        _draw(results, fabric, [row for row in rows if row["fabric"] == fabric], scale)
    return _formula(rows)


def _met(rows: Sequence[ElectricalRow], fabric: str, scale: Sequence[int]) -> list[Finding]:
    return _means(fabric, rows) + _headline_rates(fabric, scale)


def _mean(values: Iterable[float]) -> float:
    numbers = list(values)
    return sum(numbers) / len(numbers)


def _reduction(rows: Iterable[ElectricalRow], *columns: str) -> float:
    """Percent of time that WRHT, as claimed, saves on average over rows and columns."""
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
    """The poster's Fig. 2 for each rate: times in multiples of WRHT's."""
    series = {
        "E-Ring": "e_ring_s",
        "E-RD": "e_rd_s",
        "E-HD (not in the poster)": "e_hd_s",
        "O-Ring": "o_ring_formula_s",
        "opticoll on light (not in the poster)": "auto_s",
    }
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
        plot.grouped_bars,
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
            f"claimed on average: {CLAIMED['swapped']}% less": 1 / (1 - CLAIMED["swapped"] / 100),
            f"as printed: {CLAIMED['printed']}% less": 1 / (1 - CLAIMED["printed"] / 100),
        },
    )


def _ratio(row: ElectricalRow, column: str) -> float | None:
    time = row[column]
    return None if time is None else float(time) / row["wrht_claimed_s"]


def _formula(rows: Sequence[ElectricalRow]) -> list[Finding]:
    """Both of WRHT's numbers: what is claimed and what a verified plan takes."""
    apart = max(abs(row["wrht_constructed_s"] / row["wrht_claimed_s"] - 1) for row in rows)
    verified = all(row["verified"] for row in rows)
    same = verified and apart < 1e-6
    return [
        finding(
            "electrical.wrht_constructed",
            "its formula",
            f"apart by {apart:.1e}",
            "time of WRHT",
            same,
            "The largest relative difference between the formula, steps times (d / B + a), and "
            "plans constructed, verified and simulated on the ring of light; so either number may "
            "stand for WRHT in what follows.",
        )
    ]


def _means(fabric: str, rows: Sequence[ElectricalRow]) -> list[Finding]:
    """The claimed mean against that at the study's rates; and against halving and doubling."""
    both = {rate: _reduction(_at(rows, fabric, rate), "e_ring_s", "e_rd_s") for rate in RATES}
    halving = {rate: _reduction(_at(rows, fabric, rate), "e_hd_s") for rate in RATES}
    told = "; ".join(f"{both[rate]:+.1f}% at {rate // GIGA} Gb/s" for rate in RATES)
    met = {
        claimed: max((rate for rate in RATES if both[rate] >= claimed), default=None)
        for claimed in CLAIMED.values()
    }
    held = "; ".join(
        f"{claimed}% holds "
        + ("at none of these rates" if rate is None else f"only up to {rate // GIGA} Gb/s")
        for claimed, rate in met.items()
    )
    best = max(RATES, key=lambda rate: halving[rate])
    return [
        finding(
            f"electrical.{fabric}.mean",
            CLAIMED["swapped"],
            round(max(both.values()), 2),
            "% less time than E-Ring and E-RD",
            "refuted" if met[CLAIMED["swapped"]] is None else "conditional",
            f"Mean over the two, four networks and all N, {FABRICS[fabric]}: {told} per port. "
            f"{held} (see headline.order for which of them is the claim).",
        ),
        finding(
            f"electrical.{fabric}.halving_doubling",
            "not compared",
            round(halving[best], 2),
            "% less time than halving and doubling",
            "conditional" if halving[best] > 0 else "refuted",
            "It sends 2 (N - 1) / N of the vector, the least possible, in 2 log2 N steps; the "
            f"mean is {halving[best]:+.1f}% at {best // GIGA} Gb/s per "
            f"port and {halving[RATES[-1]]:+.0f}% at {RATES[-1] // GIGA}.",
        ),
    ]


def _headline_rates(fabric: str, scale: Sequence[int]) -> list[Finding]:
    """The rate per port at which a claimed mean reduction is met."""
    cases = [(ranks, algorithm, size) for ranks in scale for algorithm in POSTER for size in SIZES]
    lines = [_line(fabric, *case) for case in cases]
    wanted = [wrht_claimed_s(ranks, size) for ranks, _, size in cases]

    def mean(rate: float) -> float:
        return 100 * _mean(
            1 - wrht / (a + b / rate) for wrht, (a, b) in zip(wanted, lines, strict=True)
        )

    findings = []
    for name, claimed in CLAIMED.items():
        # To 1 Mb/s.
        rate = round(_falling(mean, claimed) / 1e6) * 10**6
        simulated = 100 * _mean(
            1 - wrht / time_s(fabric, ranks, algorithm, rate, LATENCY_PS, size)
            for wrht, (ranks, algorithm, size) in zip(wanted, cases, strict=True)
        )
        findings.append(
            finding(
                f"electrical.{fabric}.rate.{name}",
                f"{claimed}% at a rate not given",
                f"{simulated:.2f}% at {rate / GIGA:.3g} Gb/s",
                "less time, per port",
                "conditional",
                f"Holds only if an electrical port has {rate / GIGA:.3g} Gb/s or less: a mean of "
                f"{simulated:.2f}% against E-Ring and E-RD on a {FABRICS[fabric]}, over "
                f"{len(MODELS)} networks and N = {scale[0]} to {scale[-1]}, simulated at that "
                "rate. A wavelength has 40 Gb/s, and a rank on the ring 64 of them each way.",
            )
        )
    return findings


def _line(fabric: str, ranks: int, algorithm: str, size: int) -> tuple[float, float]:
    """a in seconds and b in bits of the time a + b / B, from the slowest and the fastest rate."""
    slow, fast = (
        time_s(fabric, ranks, algorithm, rate, LATENCY_PS, size) for rate in (RATES[0], RATES[-1])
    )
    sent = (slow - fast) / (1 / RATES[0] - 1 / RATES[-1])
    return slow - sent / RATES[0], sent


def _falling(value: Callable[[float], float], wanted: float) -> float:
    """Where a falling function of a positive number comes down to a value, by bisection."""
    low, high = 1e-12, 1e15
    for _ in range(100):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if value(middle) > wanted else (low, middle)
    return low


def _break_even(
    fabric: str, algorithm: str, scale: Sequence[int], even: list[BreakEven]
) -> list[Finding]:
    """The rate per port at which an electrical all_reduce is as fast; appends to `even`."""
    own = [
        _even(fabric, algorithm, model, size, ranks)
        for model, size in zip(MODELS, SIZES, strict=True)
        for ranks in scale
    ]
    even += own
    cases = {(row["model"], row["ranks"]): _gigabits(row) for row in own}
    where = {value: f"{model} at N = {ranks}" for (model, ranks), value in cases.items()}
    first, last = min(where), max(rate for rate in where if rate != NEVER)
    never = [f"{model} at N = {ranks}" for (model, ranks), rate in cases.items() if rate == NEVER]
    beyond = f"; at any rate for {', '.join(never)}: its latencies alone take longer"
    apart = max(
        abs(row["simulated_s"] / row["wrht_claimed_s"] - 1)
        for row in own
        if row["simulated_s"] is not None
    )
    return [
        finding(
            f"electrical.{fabric}.break_even.{algorithm}",
            "WRHT is faster",
            f"below {first:.3g} to {last:.3g} Gb/s" + (", or at any rate" if never else ""),
            f"per port, against {ALGORITHMS[algorithm]}",
            "conditional",
            f"On a {FABRICS[fabric]} WRHT is faster in all cases only if a port has less than "
            f"{first:.3g} Gb/s ({where[first]}) and in none above {last:.3g} Gb/s ({where[last]})"
            f"{beyond if never else ''}. Simulated at these rates, both take the same time to "
            f"{apart:.0e} of it.",
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


def _show_break_even(results: Results, even: Sequence[BreakEven]) -> list[Finding]:
    results.write("break_even", even)
    cells: dict[tuple[str, str, int], list[str]] = {}
    for row in even:
        rate = _gigabits(row)
        told = "none" if rate == NEVER else f"{rate:.3g}"
        cells.setdefault((row["fabric"], row["model"], row["ranks"]), []).append(told)
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
    return []


def _latency(scale: Sequence[int]) -> list[Finding]:
    """The latency of a cable at which the claimed mean is met on a switch, for each rate.

    A step of any of these on a switch waits for two cables, side by side for all messages, so one
    more second per cable is two more per step.
    """
    findings = []
    claimed = CLAIMED["swapped"]
    cases = [(ranks, algorithm, size) for ranks in scale for algorithm in POSTER for size in SIZES]
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
        latency_s = latency_ps / 1e12
        simulated = 100 * _mean(
            1 - wrht / time for wrht, time in zip(wanted, times(latency_ps), strict=True)
        )
        findings.append(
            finding(
                f"electrical.latency.{rate // GIGA}",
                f"{claimed}% at a latency not given",
                f"{simulated:.2f}% at {1e3 * latency_s:.3g} ms per cable",
                "less time than E-Ring and E-RD",
                "conditional",
                f"At {rate // GIGA} Gb/s per port on a single switch it holds only if a cable "
                f"with its switch takes {1e3 * latency_s:.3g} ms or more, "
                f"{latency_ps / LATENCY_PS:,.0f} times the {format_time(LATENCY_PS)} "
                "of this study, simulated at that latency: latency does not explain it.",
            )
        )
    return findings


def _steps(algorithm: str, ranks: int) -> int:
    return 2 * (ranks - 1) if algorithm == "ring" else (ranks - 1).bit_length()
