"""Bursts on the command line: cases, answer and figure of `traffic --simulator burst`."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING

from opticoll import errors
from opticoll.cli.commands import Answer, to_json
from opticoll.cli.files import Files, kept_on_failure
from opticoll.cli.waiting import Waiting

if TYPE_CHECKING:
    from opticoll.study.bursts import Case, Done

__all__ = ["answer"]


def answer(
    fabric: str | None,
    settings: dict[str, str],
    of_packets: dict[str, str],
    threads: int,
    figure: Path | None,
    csv: Path | None,
    as_json: bool,
) -> Answer:
    """Simulate the cases of lists of settings."""
    from opticoll.report.bursts import burst_summary, burst_table
    from opticoll.study import bursts as study

    cases = _cases(fabric, settings, of_packets)
    target = study.expected(cases)
    with Waiting("simulating") as waiting:
        rows: list[study.BurstRow] = []
        with kept_on_failure(csv, rows):
            done = study.run(
                cases,
                threads,
                lambda bursts: waiting.update("bursts measured", bursts, target),
                rows.append,
            )
        files = Files().table(csv, rows).write(figure, lambda path: _draw(done, path))
    if as_json:
        full = [{**one.row, **study.details(one.outcome)} for one in done]
        shown = to_json(full[0] if len(full) == 1 else full)
    elif len(done) == 1:
        shown = burst_summary(rows[0], study.details(done[0].outcome))
    else:
        shown = burst_table(rows)
    return Answer(shown, files=files)


def _cases(fabric: str | None, settings: dict[str, str], of_packets: dict[str, str]) -> list[Case]:
    """A case of each combination of values with commas between them."""
    from opticoll.study.bursts import NAMED, Case

    if fabric is None:
        raise errors.UsageError(
            "--fabric is missing; give ladder:columns=5,computers=10,wavelengths=28,rate=10Gb/s "
            "or the like"
        )
    if "routing" in of_packets:
        settings = {**settings, "routing": of_packets["routing"]}
    for name in of_packets:
        if name != "routing":
            raise errors.UsageError(f"--{name.replace('_', '-')} is for packets; leave it out")
    values = []
    for name in NAMED:
        parts = [part.strip() for part in settings.get(name, "").split(",")]
        if name in settings and not all(parts):
            raise errors.UsageError(f"--{name}: `{settings[name]}` has nothing between two commas")
        values.append(parts)
    cases = []
    for combination in itertools.product(*values):
        own = dict(zip(NAMED, combination, strict=True))
        cases.append(Case(fabric, {**settings, **{name: own[name] for name in own if own[name]}}))
    return cases


def _draw(done: list[Done], path: Path) -> None:
    from opticoll import plot
    from opticoll.study.bursts import NAMED

    first = done[0].row
    if len(done) == 1:
        title = f"{first['source']}, {first['signalling']}, {first['assignment']}"
        plot.one_loss(done[0].outcome, path, f"{title}, {first['intensity']:g} Erlang")
        return
    names = [name for name in NAMED if name != "intensity"]
    differing = [name for name in names if len({one.case.value(name) for one in done}) > 1]
    series: dict[str, list[plot.Loss]] = {}
    for one in done:
        row = one.row
        label = ", ".join(one.case.value(name) for name in differing or ["assignment"])
        point = plot.Loss(row["intensity"], row["loss"], row["loss_low"], row["loss_high"])
        series.setdefault(label, []).append(point)
    plot.losses(series, path, first["fabric"])
