"""The command `replay`."""

# Not `from __future__ import annotations`: cyclopts reads the types of a parameter at run time.

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from opticoll import errors
from opticoll.cli import words
from opticoll.cli.arguments import key_values
from opticoll.cli.commands import Answer, app, to_json
from opticoll.cli.files import Files, check_files
from opticoll.cli.options import (
    NO_REPLAY,
    FigureOption,
    JsonOption,
    ReplayOption,
    TableOption,
)
from opticoll.cli.waiting import Waiting
from opticoll.settings import given

__all__ = ["replay"]


@app.command
def replay(
    trace: Annotated[
        str,
        Parameter(
            help="Event table (.csv, .parquet), OTF2 archive, GOAL (text, binary) or "
            "time-independent trace; .zst too."
        ),
    ],
    /,
    *,
    fabric: Annotated[
        str,
        Parameter(
            help="A fabric, or zero, hockney:latency=1us,rate=10Gb/s, loggp:gap=1us,rate=10Gb/s, "
            "light_path_grid:ports=2."
        ),
    ] = "zero",
    collective: Annotated[
        list[str] | None,
        Parameter(help="Such as all_reduce=ring; may be given again.", negative=()),
    ] = None,
    cpu_factor: Annotated[
        str, Parameter(help="Local work is multiplied by this, such as 0.5 or 1/3.")
    ] = "1",
    eager: Annotated[
        str,
        Parameter(help="Largest message that leaves before its receive begins: all, none, a size."),
    ] = "all",
    end_overhead: Annotated[
        str | None,
        Parameter(help="Of each message sent and received, such as 500ns."),
    ] = None,
    operations: Annotated[
        int | None,
        Parameter(
            help="A second, for time-independent traces; 10^9 if none.",
            converter=words.whole(least=1, most=2**63 - 1),
            allow_leading_hyphen=True,
        ),
    ] = None,
    method: ReplayOption = NO_REPLAY,
    bursts: Annotated[
        str | None,
        Parameter(
            help="Messages ask for light paths among bursts, such as intensity=0.4,ports=2 (see "
            "`congestion`), or none."
        ),
    ] = None,
    per: Annotated[
        Literal["call", "rank"],
        Parameter(help="The table printed: by call or by rank.", converter=words.choice),
    ] = "call",
    timeline: Annotated[
        Path | None,
        Parameter(help="Write the calls of all ranks for Perfetto: .json.", converter=words.path),
    ] = None,
    figure: FigureOption = None,
    csv: TableOption = None,
    as_json: JsonOption = False,
) -> Answer:
    """Replay the trace of an MPI program: how long it takes over a network."""
    from opticoll.report.replay import replay_text
    from opticoll.study import replay as study

    check_files(csv=csv, timeline=timeline, figure=figure)
    job = study.Job(
        trace=trace,
        fabric=fabric,
        collectives=_chosen(collective or []),
        cpu_factor=cpu_factor,
        eager=eager,
        end_overhead=end_overhead,
        operations_per_second=operations,
        timeline=timeline is not None or figure is not None,
        settings=given(vars(method)),
        bursts=None if bursts is None else _of_bursts(bursts),
    )
    with Waiting("replaying"):
        done = study.replay(job)
    files = Files().table(csv, done.row["per_rank"] if per == "rank" else done.row["per_call"])
    files.write(timeline, lambda path: study.write_timeline(done, path))
    files.write(figure, lambda path: study.draw(done, path))
    text = to_json(done.row) if as_json else replay_text(done.row, per)
    return Answer(text, files=files)


def _of_bursts(text: str) -> dict[str, str]:
    """The settings of light paths and bursts in `key=value,...`, or `none`."""
    if text == "none":
        return {}
    return key_values("--bursts", text, "intensity=0.4")


def _chosen(texts: list[str]) -> dict[str, str]:
    """Algorithms by collective, from texts such as `all_reduce=ring`."""
    chosen: dict[str, str] = {}
    for text in texts:
        kind, equals, algorithm = text.partition("=")
        if not (kind and equals and algorithm):
            raise errors.UsageError(
                f"--collective: `{text}` is no algorithm of a collective, such as all_reduce=ring"
            )
        if kind in chosen:
            raise errors.UsageError(f"--collective: {kind} is given twice")
        chosen[kind] = algorithm
    return chosen
