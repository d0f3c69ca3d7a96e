"""The command `traffic`: messages packet by packet, or bursts; several cases side by side."""

from __future__ import annotations

import itertools
import os
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from opticoll import errors
from opticoll.cli import words
from opticoll.cli.arguments import need_fabric
from opticoll.cli.commands import Answer, app, to_json
from opticoll.cli.files import Files, check_files, kept_on_failure
from opticoll.cli.options import (
    NO_BURSTS,
    NO_PACKETS,
    BurstOption,
    FabricOption,
    FigureOption,
    JsonOption,
    PacketOption,
    TableOption,
)
from opticoll.cli.waiting import Waiting
from opticoll.settings import given

if TYPE_CHECKING:
    from pathlib import Path

    from opticoll._core import Fabric
    from opticoll.settings import Settings
    from opticoll.study.traffic import Case, Done

__all__ = ["traffic"]

MOST_MESSAGES = 2**32 - 1
DEFAULT_PATTERN, DEFAULT_BYTES, DEFAULT_MESSAGES, DEFAULT_PERIOD = "uniform", "2048B", 100, "1us"


@app.command
def traffic(
    *,
    fabric: FabricOption = None,
    simulator: Annotated[
        Literal["packet", "burst"],
        Parameter(
            help="packet: messages; burst: bursts of light, on a fabric such as ladder:columns=5,"
            "computers=10,wavelengths=28,rate=10Gb/s.",
            converter=words.choice,
        ),
    ] = "packet",
    pattern: Annotated[
        str,
        Parameter(
            help="uniform, group_shift, permutation, nearest, hot_spot:rank=0,percent=20 or "
            "shift:by=4; several with commas."
        ),
    ] = DEFAULT_PATTERN,
    message: Annotated[
        str,
        Parameter(
            name="--bytes",
            help="Size of a message; several with commas.",
            allow_leading_hyphen=True,
        ),
    ] = DEFAULT_BYTES,
    messages: Annotated[
        int,
        Parameter(
            help="Messages of each terminal.",
            converter=words.whole(least=1, most=MOST_MESSAGES),
            allow_leading_hyphen=True,
        ),
    ] = DEFAULT_MESSAGES,
    period: Annotated[
        str,
        Parameter(
            help="From one message of a terminal to its next; several with commas.",
            allow_leading_hyphen=True,
        ),
    ] = DEFAULT_PERIOD,
    method: PacketOption = NO_PACKETS,
    burst: BurstOption = NO_BURSTS,
    jobs: Annotated[
        int | None,
        Parameter(
            help="Cases, or replications of bursts, simulated at a time; as many as there are "
            "processors if not given.",
            converter=words.whole(least=1, most=1024),
            allow_leading_hyphen=True,
        ),
    ] = None,
    figure: FigureOption = None,
    csv: TableOption = None,
    as_json: JsonOption = False,
) -> Answer:
    """Send traffic over an electrical fabric, packet by packet: latencies, stalls, loads of links.

    Lists of patterns, sizes, periods and routings make a case of each combination. With
    `--simulator burst`: the losses of a network that switches bursts of light.
    """
    from opticoll.report.traffic import traffic_summary, traffic_table
    from opticoll.study import traffic as study

    check_files(csv=csv, figure=figure)
    if simulator == "burst":
        from opticoll.cli import bursts

        plain = (DEFAULT_PATTERN, DEFAULT_BYTES, DEFAULT_MESSAGES, DEFAULT_PERIOD)
        if (pattern, message, messages, period) != plain:
            raise errors.UsageError(
                "--pattern, --bytes, --messages and --period are for packets; bursts have "
                "--source, --intensity, --size and --bursts"
            )
        asked = {name: text for name, text in vars(burst).items() if text is not None}
        packets = {name: text for name, text in vars(method).items() if text is not None}
        return bursts.answer(
            fabric, asked, packets, jobs or os.cpu_count() or 1, figure, csv, as_json
        )
    for name, value in vars(burst).items():
        if value is not None:
            option = name.replace("_", "-")
            raise errors.UsageError(f"--{option} is for bursts: add --simulator burst")
    cases = _cases(need_fabric(fabric), pattern, message, period, messages, given(vars(method)))
    work = study.expected(cases)
    with Waiting("simulating") as waiting:
        waiting.announce_work(*work)
        ended: list[study.TrafficRow] = []
        with kept_on_failure(csv, ended):
            done = study.run(
                cases,
                min(jobs or os.cpu_count() or 1, len(cases)),
                lambda delivered: waiting.update("messages delivered", delivered, work[0]),
                ended.append,
                timeline=figure is not None and len(cases) == 1,
            )
    rows = [one.row for one in done]
    files = Files().table(csv, rows).write(figure, lambda path: _draw(done, path))
    if as_json:
        return Answer(to_json(rows[0] if len(rows) == 1 else rows), files=files)
    shown = traffic_summary(rows[0]) if len(rows) == 1 else traffic_table(rows)
    return Answer(shown, files=files)


def _cases(
    fabric: Fabric, pattern: str, message: str, period: str, messages: int, settings: Settings
) -> list[Case]:
    """A case of each combination."""
    from opticoll.config import split_algorithms
    from opticoll.study.traffic import Case

    def listed(option: str, text: str) -> list[str]:
        parts = [part.strip() for part in text.split(",")]
        if not all(parts):
            raise errors.UsageError(f"{option}: `{text}` has nothing between two commas")
        return parts

    try:
        patterns = split_algorithms(pattern)
    except errors.UsageError:
        raise errors.UsageError(
            f"--pattern: `{pattern}` is no list of patterns, such as uniform,nearest"
        ) from None
    routings = listed("--routing", settings.get("routing") or "minimal")
    combinations = itertools.product(
        patterns, listed("--bytes", message), listed("--period", period), routings
    )
    cases = []
    for name, size, every, routing in combinations:
        own: Settings = {**settings}
        if settings.get("routing") is not None:
            own["routing"] = routing
        cases.append(Case(fabric, name, size, every, messages, own))
    return cases


def _draw(done: list[Done], path: Path) -> None:
    from opticoll import plot

    if len(done) == 1:
        (one,) = done
        plot.packets(one.packets, one.case.fabric, path, _name(one, done))
        return
    named = {_name(one, done): one.packets for one in done}
    first = done[0].row
    plot.latencies(
        named, path, f"{first['terminals']} terminals, {first['messages']} messages each"
    )


def _name(one: Done, done: list[Done]) -> str:
    """What tells a case from the others."""
    case = one.case
    parts = {
        "pattern": case.pattern,
        "size": case.size,
        "period": f"every {case.period}",
        "routing": one.row["routing"],
    }
    all_parts = [
        (other.case.pattern, other.case.size, f"every {other.case.period}", other.row["routing"])
        for other in done
    ]
    differing = [len({parts[place] for parts in all_parts}) > 1 for place in range(4)]
    if not any(differing):
        differing = [True] * 4
    shown = zip(parts.values(), differing, strict=True)
    return ", ".join(part for part, differs in shown if differs)
