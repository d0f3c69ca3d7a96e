"""The optical side of the poster: steps, times against O-Ring, striping, and opticoll's plans."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypedDict

from opticoll import plot
from opticoll_papers import plots
from opticoll_papers.common import Results, TableRow, show_times
from opticoll_papers.judging import Computed
from opticoll_papers.wrht.cases import (
    MODELS,
    SIZES,
    WAVELENGTHS,
    constructed,
    own_ranks,
    own_times,
    ring_formula_s,
    wrht_all_reduce_steps,
    wrht_claimed_s,
)

STEP_RANKS = (16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
STEP_WAVELENGTHS = (1, 2, 4, 16, 64, 128, 256)

TIME_RANKS = (128, 256, 512, 1024, 2048, 4096)
GROUP_SIZES = (3, 5, 9, 17, 129)
STEP_PS = 25_000_000
"""Reconfiguration of a step on `common.fabric`."""

FULL = {"electrical": (92.42, 91.31), "optical": (80.81, 64.36, 82.12)}
"""Percentages of time saved in the abstract of the full paper (arXiv 2207.10982, version 2)."""

QUICK_RANKS = 128  # a ring all_reduce has 2 N (N - 1) transfers


class Row(TypedDict):
    """Times in seconds of three schemes for the all_reduce of one network's gradients."""

    model: str
    ranks: int
    wavelengths: int
    size_bytes: int
    ring_s: float
    ring_constructed: bool
    wrht_s: float
    wrht_steps: int
    wrht_striped_s: float
    wrht_striped_group: int
    reduction_percent: float
    verified: bool


def ours(results: Results, *, quick: bool) -> dict[str, Computed]:
    """Adds tables of opticoll's plans, and writes ours.csv.

    No claim of the poster depends on it.
    """
    by_ranks = {ranks: own_times(results, ranks) for ranks in own_ranks(TIME_RANKS, quick=quick)}
    rows = [by_ranks[ranks][index] for index in range(len(MODELS)) for ranks in by_ranks]
    show_times(
        results,
        "Not in the poster: opticoll's own plans, time of all_reduce in ms; paper: WRHT by its "
        "formula (ours.csv)",
        rows,
        names=[model for model in MODELS for _ in by_ranks],
    )
    results.write_ours(rows)
    return {}


def steps(results: Results) -> dict[str, Computed]:
    """Compares the poster's number of steps with plans for all N and w; writes steps.csv."""
    rows: list[TableRow] = []
    shown = []
    for ranks in STEP_RANKS:
        cells = []
        for wavelengths in STEP_WAVELENGTHS:
            plan = constructed(ranks, wavelengths, "wrht")
            formula = wrht_all_reduce_steps(ranks, wavelengths)
            rows.append(
                {
                    "ranks": ranks,
                    "wavelengths": wavelengths,
                    "formula": formula,
                    "constructed": plan.steps,
                    "verified": plan.verified,
                    "equal": formula == plan.steps,
                }
            )
            proved = "" if plan.verified else " NOT verified"
            cells.append(f"{formula} / {plan.steps}{proved}")
        shown.append([ranks, *cells])
    results.write("steps", rows)
    results.show(
        "Steps of all_reduce by WRHT: formula / constructed and verified (steps.csv)",
        ["N", *(f"w = {wavelengths}" for wavelengths in STEP_WAVELENGTHS)],
        shown,
        left=(),
    )
    by_case = {(row["ranks"], row["wavelengths"]): row["constructed"] for row in rows}
    fewer = {ranks: by_case[ranks, 1] / by_case[ranks, WAVELENGTHS] for ranks in STEP_RANKS}
    return {
        "steps": Computed(
            tuple(by_case[ranks, WAVELENGTHS] for ranks in STEP_RANKS),
            f"{sum(row['verified'] for row in rows)} of {len(rows)} plans are verified and "
            f"{sum(row['equal'] for row in rows)} take the steps of the formula, w = "
            f"{', '.join(map(str, STEP_WAVELENGTHS))}.",
        ),
        "conclusion.steps": Computed(min(fewer.values())),
    }


def times(results: Results, *, quick: bool) -> dict[str, Computed]:
    """Computes the times of WRHT and O-Ring; writes fig2_optical.csv, .svg and .png."""
    largest_ring = QUICK_RANKS if quick else max(TIME_RANKS)
    rows = [
        _row(model, size, ranks, largest_ring)
        for model, size in zip(MODELS, SIZES, strict=True)
        for ranks in TIME_RANKS
    ]
    results.write("fig2_optical", rows)
    _show_times(results, rows, largest_ring)
    own = {ranks: own_times(results, ranks) for ranks in own_ranks(TIME_RANKS, quick=quick)}
    panels = [
        plot.BarPanel(
            f"{model} ({MODELS[model] / 1e6:.4g} M parameters)",
            {
                "O-Ring": [row["ring_s"] * 1e3 for row in rows if row["model"] == model],
                "WRHT, groups of 2w + 1": [
                    row["wrht_s"] * 1e3 for row in rows if row["model"] == model
                ],
                "WRHT striped, groups of 3": [
                    row["wrht_striped_s"] * 1e3 for row in rows if row["model"] == model
                ],
                "opticoll (not in the poster)": [
                    own[ranks][index]["time_s"] * 1e3 if ranks in own else None
                    for ranks in TIME_RANKS
                ],
            },
        )
        for index, model in enumerate(MODELS)
    ]

    results.draw(
        "fig2_optical",
        plots.grouped_bars,
        panels,
        [str(ranks) for ranks in TIME_RANKS],
        x_label="Ranks",
        y_label="Time (ms)",
        title=f"all_reduce of float32 gradients, w = {WAVELENGTHS}, policy every_step",
    )
    return _saved(results, rows)


def _show_times(results: Results, rows: Iterable[Row], largest_ring: int) -> None:
    """Adds a table with a line per network and N, in which formulas of large rings are marked."""
    formula = f"; * by its formula beyond N = {largest_ring}"
    results.show(
        f"Time of all_reduce in ms, w = {WAVELENGTHS}, policy every_step (fig2_optical.csv); "
        "striped: groups of 3" + (formula if largest_ring < max(TIME_RANKS) else ""),
        ["network", "N", "WRHT", "O-Ring", "striped", "less than O-Ring", "verified"],
        [
            [
                row["model"],
                row["ranks"],
                f"{1e3 * row['wrht_s']:.2f}",
                f"{1e3 * row['ring_s']:.2f}{'' if row['ring_constructed'] else '*'}",
                f"{1e3 * row['wrht_striped_s']:.2f}",
                f"{row['reduction_percent']:+.1f}%",
                row["verified"],
            ]
            for row in rows
        ],
        left=(0, 6),
    )


def _row(model: str, size: int, ranks: int, largest_ring: int) -> Row:
    wrht = constructed(ranks, WAVELENGTHS, "wrht")
    striped = constructed(ranks, WAVELENGTHS, "wrht:group_size=3,striping=true")
    verified = wrht.verified and striped.verified
    if ranks <= largest_ring:
        ring = constructed(ranks, WAVELENGTHS, "ring")
        ring_s = ring.times_ps[size] / 1e12
        verified = verified and ring.verified
    else:
        ring_s = ring_formula_s(ranks, size)
    wrht_s = wrht.times_ps[size] / 1e12
    return Row(
        model=model,
        ranks=ranks,
        wavelengths=WAVELENGTHS,
        size_bytes=size,
        ring_s=ring_s,
        ring_constructed=ranks <= largest_ring,
        wrht_s=wrht_s,
        wrht_steps=wrht.steps,
        wrht_striped_s=striped.times_ps[size] / 1e12,
        wrht_striped_group=3,
        reduction_percent=round(100 * (1 - wrht_s / ring_s), 3),
        verified=verified,
    )


def _saved(results: Results, rows: Sequence[Row]) -> dict[str, Computed]:
    """Computes mean savings of WRHT against the ring, in the main reading and with small groups."""
    return _by_network(rows) | _by_ranks(rows) | _small_groups(rows) | _slower_steps(results)


def _by_network(rows: Sequence[Row]) -> dict[str, Computed]:
    computed = {}
    for model in MODELS:
        own = {row["ranks"]: row["reduction_percent"] for row in rows if row["model"] == model}
        each = ", ".join(f"{saved:+.0f} % at {ranks}" for ranks, saved in own.items())
        computed[f"fig2.optical.{model.lower()}"] = Computed(_mean(own.values()), f"{each}.")
    return computed


def _by_ranks(rows: Sequence[Row]) -> dict[str, Computed]:
    means = {
        ranks: _mean(row["reduction_percent"] for row in rows if row["ranks"] == ranks)
        for ranks in TIME_RANKS
    }
    each = ", ".join(f"{mean:+.0f} % at {ranks}" for ranks, mean in means.items())
    overall = Computed(_mean(means.values()), f"{each}.")
    more = {ranks: 100 * _mean(_shares(ranks)) for ranks in (16384, 65536)}
    order = Computed(tuple(_mean(values) for values in FULL.values()))
    return {
        "headline.optical.assumed": overall,
        "headline.optical.exchanged": overall,
        "headline.optical.65536": Computed(more[65536], f"{more[16384]:+.0f} % at 16384."),
        "conclusion.optical.1024": Computed(
            _mean(mean for ranks, mean in means.items() if ranks <= 1024), f"{each}."
        ),
        "conclusion.optical.4096": overall,
        **{f"full.{name}": Computed(values) for name, values in FULL.items()},
        "headline.order": order,
        "headline.order.exchanged": order,
    }


def _small_groups(rows: Sequence[Row]) -> dict[str, Computed]:
    saved = {
        ranks: [
            100 * (1 - row["wrht_striped_s"] / row["ring_s"])
            for row in rows
            if row["ranks"] == ranks
        ]
        for ranks in TIME_RANKS
    }
    each = ", ".join(f"{_mean(own):+.1f} % at {ranks}" for ranks, own in saved.items())
    overall = Computed(_mean(_mean(own) for own in saved.values()), f"{each}.")
    return {
        "headline.optical.striped": overall,
        "fig2.optical.striped": Computed(min(min(own) for own in saved.values())),
        "conclusion.optical.striped": overall,
    }


def _slower_steps(results: Results) -> dict[str, Computed]:
    """Computes the time of a step with which the means on 1024 ranks equal the printed means."""
    ranks = 1024
    computed = []
    for name in ("optical", "electrical"):
        wanted = results.printed(f"headline.{name}")
        least, most = 0, 10**12
        while most - least > 1:
            middle = (least + most) // 2
            less = 100 * _mean(_shares(ranks, middle)) < wanted
            least, most = (middle, most) if less else (least, middle)
        mean = 100 * _mean(_shares(ranks, most))
        computed.append(f"{most / 1e6:.0f} us a step give {mean:.2f} %")
    return {
        "headline.optical": Computed(
            None, f"{'; '.join(computed)}, the number if the two are exchanged."
        )
    }


def _shares(ranks: int, step_ps: int = STEP_PS) -> list[float]:
    """Returns the share of the ring's time that WRHT saves, by formulas with steps of `step_ps`."""
    more = step_ps - STEP_PS
    steps = wrht_all_reduce_steps(ranks, WAVELENGTHS)
    return [
        1
        - (wrht_claimed_s(ranks, size) * 1e12 + steps * more)
        / (ring_formula_s(ranks, size) * 1e12 + 2 * (ranks - 1) * more)
        for size in SIZES
    ]


def _mean(values: Iterable[float]) -> float:
    numbers = list(values)
    return sum(numbers) / len(numbers)


def striping(results: Results) -> dict[str, Computed]:
    """Computes other group sizes, and vectors striped over free wavelengths.

    Writes striping.csv.
    """
    ranks = 1024
    rows: list[TableRow] = []
    times: dict[str, dict[int, float]] = {model: {} for model in MODELS}
    for group_size in GROUP_SIZES:
        plan = constructed(ranks, WAVELENGTHS, f"wrht:group_size={group_size},striping=true")
        for model, size in zip(MODELS, SIZES, strict=True):
            times[model][group_size] = plan.times_ps[size] / 1e12
            rows.append(
                {
                    "model": model,
                    "ranks": ranks,
                    "wavelengths": WAVELENGTHS,
                    "group_size": group_size,
                    "steps": plan.steps,
                    "time_s": times[model][group_size],
                    "verified": plan.verified,
                }
            )
    results.write("striping", rows)
    best_group = {model: min(own, key=lambda group: own[group]) for model, own in times.items()}
    largest = constructed(ranks, WAVELENGTHS, "wrht")
    best_groups = "; ".join(
        f"{model}: m = {best_group[model]}, {1e3 * times[model][best_group[model]]:.4g} ms in "
        f"place of {largest.times_ps[size] / 1e9:.4g} ms with m = {2 * WAVELENGTHS + 1}"
        for model, size in zip(MODELS, SIZES, strict=True)
    )
    return {
        "scheme.group_size.striped": Computed(
            tuple(1e3 * times[model][best_group[model]] for model in MODELS), f"{best_groups}."
        )
    }
