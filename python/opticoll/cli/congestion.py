"""The command `congestion`: collectives over light paths that other traffic may refuse."""

from __future__ import annotations

import itertools
import os
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from opticoll import errors
from opticoll.cli import words
from opticoll.cli.arguments import (
    check_root,
    key_values,
    users_print_to_stderr,
)
from opticoll.cli.commands import Answer, app, proof, to_json
from opticoll.cli.files import Files, check_files, kept_on_failure
from opticoll.cli.options import (
    NO_CONGESTION,
    CongestionOption,
    FigureOption,
    JsonOption,
    RootOption,
    SizeOption,
    TableOption,
)
from opticoll.cli.waiting import Waiting

if TYPE_CHECKING:
    from pathlib import Path

    from opticoll.study.congestion import Case, Done

__all__ = ["congestion"]

EXAMPLE = "ladder:columns=5,computers=10,wavelengths=28,rate=10Gb/s"

OWN = ("intensity", "seed", "replications")
"""Settings of bursts with an option of their own."""


def _count(help_: str) -> Parameter:
    return Parameter(
        help=help_, converter=words.whole(least=1, most=2**20), allow_leading_hyphen=True
    )


@app.command
def congestion(
    collective: Annotated[str, Parameter(help="Such as all_reduce.")],
    /,
    *,
    fabric: Annotated[
        str | None, Parameter(help=f"Nodes, computers, wavelengths, such as {EXAMPLE}.")
    ] = None,
    algorithm: Annotated[
        str | None,
        Parameter(
            help="name:key=value,... or your own module:function,key=value; auto if not given, the "
            "fastest without bursts."
        ),
    ] = None,
    size: SizeOption = None,
    root: RootOption = None,
    ranks: Annotated[int | None, _count("One at each computer if not given.")] = None,
    collectives: Annotated[int, _count("So many at once, on computers of their own.")] = 1,
    placement: Annotated[
        str,
        Parameter(
            help="natural, spread, best (least bytes times hops found); several with commas."
        ),
    ] = "natural",
    intensity: Annotated[
        str,
        Parameter(
            help="Load of each computer by bursts beside; 0: none; several with commas.",
            allow_leading_hyphen=True,
        ),
    ] = "0",
    bursts: Annotated[
        str | None,
        Parameter(help="Their settings, as for `traffic`: source=poisson,size=50MB,routing=fixed."),
    ] = None,
    settings: CongestionOption = NO_CONGESTION,
    replications: Annotated[
        int | None, _count("Of each case, with seeds of their own; 20.")
    ] = None,
    seed: Annotated[
        int,
        Parameter(
            help="What all draws depend on.",
            converter=words.whole(least=0, most=words.MOST_SEED),
            allow_leading_hyphen=True,
        ),
    ] = 1,
    jobs: Annotated[int | None, _count("Replications at a time; all processors.")] = None,
    figure: FigureOption = None,
    csv: TableOption = None,
    as_json: JsonOption = False,
) -> Answer:
    """Carry out a collective over light paths that bursts beside it may refuse."""
    from opticoll.report.congestion import congestion_text
    from opticoll.study import congestion as study

    check_files(csv=csv, figure=figure)
    given = {name: text for name, text in vars(settings).items() if text is not None}
    given |= {**_of_bursts(bursts), "seed": str(seed)}
    if replications is not None:
        given["replications"] = str(replications)
    lists = (placement, intensity, given.pop("congestion", None))
    cases = _cases(collective, fabric, algorithm, size, root, ranks, collectives, lists, given)
    target = study.expected(cases)
    rows: list[study.CongestionRow] = []
    with (
        Waiting("simulating") as waiting,
        users_print_to_stderr(),
        kept_on_failure(csv, rows),
    ):
        try:
            done = study.run(
                cases,
                jobs or os.cpu_count() or 1,
                lambda number: waiting.update("replications", number, target),
                rows.append,
            )
        except study.ViolatedPlanError as error:
            return proof(error.plan, error.violations, as_json)
    files = Files().table(csv, rows).write(figure, lambda path: _draw(done, path))
    code = 0 if all(row["verified"] for row in rows) else 1
    return Answer(to_json(rows) if as_json else congestion_text(rows), code, files=files)


def _of_bursts(text: str | None) -> dict[str, str]:
    """The settings of bursts in `key=value,...`."""
    settings = {} if text is None else key_values("--bursts", text, "source=poisson")
    for name in settings:
        if name == "assembly":
            raise errors.UsageError("--bursts: assembly is for `opticoll traffic`; leave it out")
        if name in OWN:
            raise errors.UsageError(f"--bursts: {name} has an option of its own, --{name}")
    return settings


def _cases(
    collective: str,
    fabric: str | None,
    algorithm: str | None,
    size: str | None,
    root: int | None,
    ranks: int | None,
    copies: int,
    lists: tuple[str, str, str | None],
    settings: dict[str, str],
) -> list[Case]:
    """A case of each combination."""
    from opticoll import _core, config, registry
    from opticoll.cli.arguments import DEFAULT_SIZE
    from opticoll.study.congestion import Case

    if fabric is None:
        raise errors.UsageError(f"--fabric is missing; give {EXAMPLE} or the like")
    kind = _core.collective_kind(collective)
    if algorithm is None:
        algorithm = registry.DEFAULT_ALGORITHM
    check_root(kind, root)
    size_bytes = config.to_bytes(DEFAULT_SIZE if size is None else size)

    def listed(option: str, text: str | None) -> list[str]:
        parts = [part.strip() for part in ("" if text is None else text).split(",")]
        if text is not None and not all(parts):
            raise errors.UsageError(f"--{option}: `{text}` has nothing between two commas")
        return parts

    placements, intensities, policies = (
        listed(option, text)
        for option, text in zip(("placement", "intensity", "congestion"), lists, strict=True)
    )
    return [
        Case(
            fabric=fabric,
            collective=kind,
            algorithm=algorithm,
            size_bytes=size_bytes,
            ranks=ranks,
            copies=copies,
            root=0 if root is None else root,
            placement=placement,
            intensity=_number(text),
            settings={**settings, **({"congestion": policy} if policy else {})},
        )
        for policy, placement, text in itertools.product(policies, placements, intensities)
    ]


def _number(text: str) -> float:
    """An intensity: a number that is not negative."""
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < float("inf"):
        raise errors.UsageError(f"--intensity: `{text}` is no number from 0 on, such as 0.6")
    return number


def _draw(done: list[Done], path: Path) -> None:
    from opticoll import plot
    from opticoll._core import format_size

    several = len({one.row["placement"] for one in done}) > 1
    series: dict[str, list[plot.MeanTime]] = {}
    for one in done:
        row = one.row
        name = f"{row['congestion']}, {row['placement']}" if several else row["congestion"]
        low, high = row["time_low_s"], row["time_high_s"]
        point = plot.MeanTime(row["intensity"], row["time_s"], low, high, row["failed"])
        series.setdefault(name, []).append(point)
    first = done[0].row
    title = (
        f"{first['collective']} by {first['chosen']} among {first['ranks']} ranks, "
        f"{format_size(first['size_bytes'])}, ports: {first['ports']}"
    )
    plot.mean_times(series, path, title)
