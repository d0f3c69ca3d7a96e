"""The optical side of the poster: steps, times against O-Ring, striping, and opticoll's plans."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypedDict

from opticoll import formulas, plot
from opticoll.papers.kit import Finding, Results, TableRow, finding, show_times
from opticoll.papers.wrht.cases import (
    ABSTRACT,
    FULL_PAPER,
    MODELS,
    SIZES,
    WAVELENGTHS,
    constructed,
    own_ranks,
    own_times,
    ring_formula_s,
)

STEP_RANKS = (16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
STEP_WAVELENGTHS = (1, 2, 4, 16, 64, 128, 256)

TIME_RANKS = (128, 256, 512, 1024, 2048, 4096)
GROUP_SIZES = (3, 5, 9, 17, 129)
QUICK_RANKS = 128  # a ring all_reduce has 2 N (N - 1) transfers


class Row(TypedDict):
    """The three ways to all-reduce one network's gradient, in seconds."""

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


def ours(results: Results, *, quick: bool) -> list[Finding]:
    """A table of opticoll's plans and ours.csv; no findings, since the poster claims none of it."""
    by_ranks = {ranks: own_times(ranks) for ranks in own_ranks(TIME_RANKS, quick=quick)}
    rows = [by_ranks[ranks][index] for index in range(len(MODELS)) for ranks in by_ranks]
    show_times(
        results,
        "Not in the poster: opticoll's own plans, time of all_reduce in ms; paper: WRHT by its "
        "formula (ours.csv)",
        rows,
        names=[model for model in MODELS for _ in by_ranks],
    )
    results.write_ours(rows)
    return []


def steps(results: Results) -> list[Finding]:
    """The poster's number of steps against plans, for every N and w; writes steps.csv."""
    rows = []
    shown = []
    for ranks in STEP_RANKS:
        cells = []
        for wavelengths in STEP_WAVELENGTHS:
            plan = constructed(ranks, wavelengths, "wrht")
            formula = formulas.wrht_all_reduce_steps(ranks, wavelengths)
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
    verified = sum(bool(row["verified"]) for row in rows)
    equal = sum(bool(row["equal"] and row["verified"]) for row in rows)
    return [
        finding(
            "steps",
            "2L or 2L - 1",
            f"equal in {equal} of {len(rows)}",
            "cases",
            equal == len(rows),
            f"L = ceil(log_m N) with m = 2w + 1, for N from {STEP_RANKS[0]} to {STEP_RANKS[-1]} "
            f"and w from {STEP_WAVELENGTHS[0]} to {STEP_WAVELENGTHS[-1]}; {verified} of the "
            f"{len(rows)} plans constructed and verified.",
        )
    ]


def times(results: Results, *, quick: bool) -> list[Finding]:
    """Times of WRHT and O-Ring; writes fig2_optical.csv, .svg, .png."""
    largest_ring = QUICK_RANKS if quick else max(TIME_RANKS)
    rows = [
        _row(model, size, ranks, largest_ring)
        for model, size in zip(MODELS, SIZES, strict=True)
        for ranks in TIME_RANKS
    ]
    results.write("fig2_optical", rows)
    _show_times(results, rows, largest_ring)
    planned = own_ranks(TIME_RANKS, quick=quick)
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
                    own_times(ranks)[index]["time_s"] * 1e3 if ranks in planned else None
                    for ranks in TIME_RANKS
                ],
            },
        )
        for index, model in enumerate(MODELS)
    ]

    results.draw(
        "fig2_optical",
        plot.grouped_bars,
        panels,
        [str(ranks) for ranks in TIME_RANKS],
        x_label="Ranks",
        y_label="Time (ms)",
        title=f"all_reduce of float32 gradients, w = {WAVELENGTHS}, policy every_step",
    )
    return [*_slower(rows), *_headline(rows)]


def _show_times(results: Results, rows: Iterable[Row], largest_ring: int) -> None:
    """A line for each network and N; a ring that was not constructed is marked."""
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


def _slower(rows: Iterable[Row]) -> list[Finding]:
    """Each network: where WRHT as described is slower than the ring."""
    findings = []
    for model in MODELS:
        own = [row for row in rows if row["model"] == model]
        slower = [str(row["ranks"]) for row in own if row["reduction_percent"] < 0]
        each = ", ".join(f"{row['reduction_percent']:+.0f}% at {row['ranks']}" for row in own)
        findings.append(
            finding(
                f"times.{model.lower()}",
                "faster",
                f"slower at {len(slower)} of {len(own)} N",
                "time against O-Ring",
                "refuted" if slower else "conditional",
                f"Reduction of time by WRHT: {each}; every step of WRHT moves the whole gradient "
                "on one wavelength, every step of the ring 1/N of it.",
            )
        )
    return findings


def _headline(rows: list[Row]) -> list[Finding]:
    """The two numbers of the abstract."""
    by_ranks = {
        ranks: [row["reduction_percent"] for row in rows if row["ranks"] == ranks]
        for ranks in TIME_RANKS
    }
    means = {ranks: sum(values) / len(values) for ranks, values in by_ranks.items()}
    largest = max(means, key=lambda ranks: means[ranks])
    overall = sum(means.values()) / len(means)
    optical = sum(FULL_PAPER["optical"]) / len(FULL_PAPER["optical"])
    electrical = sum(FULL_PAPER["electrical"]) / len(FULL_PAPER["electrical"])
    return [
        finding(
            "headline.order",
            f"{ABSTRACT['electrical']} and {ABSTRACT['optical']}",
            f"{electrical:.3f} and {optical:.3f}",
            "%, electrical and optical",
            "refuted",
            "The abstract's numbers are swapped: the full paper's averages over its baselines are "
            f"mean{FULL_PAPER['optical']} = {optical:.3f} optical and "
            f"mean{FULL_PAPER['electrical']} = {electrical:.3f} electrical; two of the three "
            "optical baselines are not in the poster.",
        ),
        finding(
            "headline.optical",
            ABSTRACT["optical"],
            round(overall, 2),
            "% less time than O-Ring",
            "not_reproducible",
            f"Mean over four networks and N = {TIME_RANKS[0]} to {TIME_RANKS[-1]} at w = "
            f"{WAVELENGTHS}, 40 Gb/s and 25 us; the poster gives neither N nor w nor delays. The "
            f"{ABSTRACT['electrical']} that belongs here (headline.order) is as far away.",
        ),
        finding(
            "headline.optical.largest",
            ABSTRACT["optical"],
            round(means[largest], 2),
            "% less time than O-Ring",
            "not_reproducible",
            f"The largest mean over the four networks, at N = {largest}: the mean over any choice "
            "of these N is at most this, hence below both numbers of the abstract.",
        ),
    ]


def striping(results: Results) -> list[Finding]:
    """Other group sizes, the vector cut over the wavelengths they leave; writes striping.csv."""
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
    findings = []
    for model, size in zip(MODELS, SIZES, strict=True):
        own = times[model]
        poster = constructed(ranks, WAVELENGTHS, "wrht").times_ps[size] / 1e12
        best = min(own, key=lambda group_size: own[group_size])
        findings.append(
            finding(
                f"striping.{model.lower()}",
                "groups of 2w + 1",
                round(own[best] * 1e3, 3),
                "ms",
                "refuted" if own[best] < poster else "conditional",
                f"The poster takes groups as large as the wavelengths allow; groups of {best}, the "
                f"vector striped over the wavelengths they leave, take {own[best] * 1e3:.4g} ms at "
                f"N = {ranks} in place of {poster * 1e3:.4g} ms.",
            )
        )
    return findings
