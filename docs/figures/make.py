"""Makes the figures of the documentation: `make figures`.

Curves over sizes and ranks need many large plans; they are computed with `--anew` and kept in
`times.csv` and `steps.csv`, from which the figures are otherwise drawn. Figures of studies that
`opticoll reproduce` draws are drawn with `--anew` only.

Those of dragonfly.md and validation.md belong to the scripts that fill these pages,
`validation/dragonfly_page.py` and `validation/simgrid.py`.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import commands
import drawings

import opticoll
from opticoll import _core
from opticoll.formats.table import write_csv
from opticoll.names import algorithm_names, known_names
from opticoll_papers.optree.cases import DEPTHS
from opticoll_papers.optree.formulas import optree_steps

HERE = Path(__file__).parent
TIMES = HERE / "times.csv"
STEPS = HERE / "steps.csv"
FABRIC = opticoll.Fabric("optree_paper")  # 1024 ranks, 64 wavelengths, 40 Gb/s, 25 us
SIZES = [1024 * 4**power for power in range(11)]
COLLECTIVES = ("all_gather", "all_reduce")
POLICIES = known_names("policies")

STEP_WAVELENGTHS = 64
STEP_RANKS = (16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048)

TimeRow = dict[str, str | int | float | bool]
StepRow = dict[str, int | None]


def compute_steps(say: Callable[[str], None]) -> list[StepRow]:
    """Returns the lower bound and the slots of verified plans, a row for each number of ranks."""
    return [_steps_of(ranks, say) for ranks in STEP_RANKS]


def _steps_of(ranks: int, say: Callable[[str], None]) -> StepRow:
    say(f"steps on {ranks} ranks")
    fabric = opticoll.Fabric("wdm_ring", ranks=ranks, wavelengths=STEP_WAVELENGTHS)
    row: StepRow = {
        "ranks": ranks,
        "wavelengths": STEP_WAVELENGTHS,
        "bound": _core.slots_bound("all_gather", fabric)[0],
        "optree_formula": min(optree_steps(ranks, STEP_WAVELENGTHS, depth) for depth in DEPTHS),
    }
    for name in ("relay_tree", "optree", "neighbour_exchange", "ring"):
        plan = opticoll.plan("all_gather", fabric, name)
        assert plan.verify() == [], f"{name} on {ranks} ranks is violated"
        row[name] = plan.slots
    return row


def compute_times(say: Callable[[str], None]) -> list[TimeRow]:
    """Returns the times of all algorithms and `auto`, at all sizes and policies.

    All plans are verified.
    """
    return [row for collective in COLLECTIVES for row in _times_of(collective, say)]


def _times_of(collective: str, say: Callable[[str], None]) -> Iterator[TimeRow]:
    for name in algorithm_names(collective):
        if name == "auto":
            continue
        say(f"{collective}: {name}")
        plan = opticoll.plan(collective, FABRIC, name)
        verified = not plan.verify()
        for policy in POLICIES:
            for size in SIZES:
                yield _row(plan, name, policy, size, verified)
    for policy in POLICIES:
        for size in SIZES:
            say(f"{collective}: auto, {policy}, {opticoll.format_size(size)}")
            plan = opticoll.plan(collective, FABRIC, "auto", size=size, policy=policy)
            yield _row(plan, "auto", policy, size, not plan.verify())


def _row(plan: opticoll.Plan, name: str, policy: str, size: int, verified: bool) -> TimeRow:
    collective = plan.collective.kind
    bound_ps, bound_name, _ = _core.time_bound(collective, FABRIC, size, policy)
    # A ring of wavelengths has a bound.
    assert bound_ps is not None
    assert bound_name is not None
    return {
        "collective": collective,
        "policy": policy,
        "algorithm": name,
        "chosen": plan.algorithm,
        "size_bytes": size,
        "steps": plan.slots,
        "time_s": plan.simulate(size, policy=policy).time_ps / 1e12,
        "bound_time_s": bound_ps / 1e12,
        "bound": bound_name,
        "verified": verified,
    }


def main() -> int:
    """Draws all figures; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--anew", action="store_true", help="compute the numbers anew (minutes)")
    parser.add_argument("--suffix", default="svg", choices=("svg", "png"))
    parser.add_argument("--output", type=Path, default=HERE)
    arguments = parser.parse_args()
    if arguments.anew:
        write_csv(compute_steps(say), STEPS)
        write_csv(compute_times(say), TIMES)
    for name, draw in drawings.all_figures(rows_of(TIMES), rows_of(STEPS)).items():
        draw(arguments.output / f"{name}.{arguments.suffix}")
    commands.draw(arguments.output, arguments.suffix, say)
    commands.sweep(arguments.output, arguments.suffix, say)
    if arguments.anew:
        commands.draw(arguments.output, arguments.suffix, say, commands.MAPS)
        commands.reproduce(arguments.output, arguments.suffix, say)
    return 0


def rows_of(path: Path) -> list[dict[str, str]]:
    """Reads the rows of a table as text."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def say(text: str) -> None:
    """Prints the current work to standard error."""
    print(text, file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
