"""Command `traffic`: messages packet by packet, or bursts of light, in several cases.

>>> import opticoll
>>> fabric = "dragonfly:terminals_per_router=2,routers_per_group=4,global_per_router=2"
>>> row = opticoll.traffic(fabric, "uniform", size="2KiB", period="1us", messages=10)
>>> row.messages_delivered, row.bytes_delivered
(720, 1474560)
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from opticoll.cli.option_types import count, option
from opticoll.cli.options import BURST_OPTIONS, FURTHER, PACKETS, FabricOption
from opticoll.cli.runner import Command, figure_file, on_command_line, rows_file
from opticoll.commands.traffic import bursts, packets
from opticoll.commands.traffic.bursts import BurstRow
from opticoll.commands.traffic.packets import TrafficRow
from opticoll.errors import UsageError
from opticoll.formats.network_graph import has_fibre_links
from opticoll.inputs.fabric_files import need_fabric
from opticoll.inputs.settings import set_settings
from opticoll.outputs.fabric_names import short_name
from opticoll.outputs.rows import plain
from opticoll.outputs.watch import Watch

__all__ = ["COMMAND", "BurstRow", "Traffic", "TrafficRow", "compute"]

MAX_MESSAGES = 2**32 - 1
PACKET_DEFAULTS = {"pattern": "uniform", "bytes": "2048B", "messages": 100, "period": "1us"}
"""Default values of the options for packet traffic."""


@dataclass(frozen=True, kw_only=True)
class Traffic:
    """Parameters of `opticoll traffic`."""

    fabric: FabricOption = None
    simulator: Literal["packet", "burst"] = option(
        "Simulator: packet (messages) or burst (optical bursts, on a fabric such as "
        "wdm_ladder:rungs=5,hosts=10,wavelengths=28)",
        default="packet",
    )
    pattern: str = option(
        "Pattern of messages: uniform, group_shift, permutation, nearest, "
        "hot_spot:rank=0,percent=20 or shift:by=4; several with commas",
        default=str(PACKET_DEFAULTS["pattern"]),
    )
    bytes: str = option(
        "Size of a message; several with commas",
        default=str(PACKET_DEFAULTS["bytes"]),
        metavar="SIZE",
        allow_leading_hyphen=True,
    )
    messages: int = count("Number of messages of each terminal", MAX_MESSAGES, default=100)
    period: str = option(
        "Time between two messages of a terminal; several with commas",
        default=str(PACKET_DEFAULTS["period"]),
        metavar="TIME",
        allow_leading_hyphen=True,
    )
    method: Any = PACKETS
    burst: Any = BURST_OPTIONS
    jobs: int | None = count(
        "Number of simultaneous cases, or replications of bursts (default: number of processors)",
        1024,
        FURTHER,
    )
    timeline: bool = option(default=False, parse=False)


def compute(parameters: Traffic, watch: Watch) -> Iterator[TrafficRow | BurstRow]:
    """Simulates the cases; results do not depend on the number of parallel jobs.

    Raises
    ------
    OpticollError
        A network, pattern or setting is invalid, a setting belongs to the other simulator, or
        packets reach a deadlock.
    """
    jobs = parameters.jobs or os.cpu_count() or 1
    of_bursts = {
        name: str(text) for name, text in vars(parameters.burst).items() if text is not None
    }
    of_packets = {
        name: str(text) for name, text in vars(parameters.method).items() if text is not None
    }
    if parameters.simulator == "burst":
        if {name: getattr(parameters, name) for name in PACKET_DEFAULTS} != PACKET_DEFAULTS:
            raise UsageError(
                "--pattern, --bytes, --messages and --period are for packets; bursts have "
                "--source, --offered-load, --size and --bursts"
            )
        cases = bursts.cases(parameters.fabric, of_bursts, of_packets)
        yield from bursts.simulate(cases, jobs, watch)
        return
    for name in of_bursts:
        raise UsageError(f"--{name.replace('_', '-')} is for bursts: add --simulator burst")
    fabric = need_fabric(parameters.fabric)
    if has_fibre_links(fabric):
        raise UsageError(
            f"packets need an electrical fabric; {short_name(fabric.spec)} has fibres with "
            "wavelengths: add --simulator burst"
        )
    yield from packets.simulate(
        packets.cases(
            fabric,
            parameters.pattern,
            parameters.bytes,
            parameters.period,
            parameters.messages,
            set_settings(vars(parameters.method)),
        ),
        jobs,
        watch,
        timeline=parameters.timeline,
    )


def _text(parameters: Traffic, rows: list[TrafficRow | BurstRow]) -> str:
    if parameters.simulator == "burst":
        return bursts.text([row for row in rows if isinstance(row, BurstRow)])
    return packets.text([row for row in rows if isinstance(row, TrafficRow)])


def _draw(parameters: Traffic, rows: list[TrafficRow | BurstRow], path: Path) -> None:
    if parameters.simulator == "burst":
        bursts.draw([row for row in rows if isinstance(row, BurstRow)], path)
    else:
        packets.draw([row for row in rows if isinstance(row, TrafficRow)], path)


def _without_details(
    parameters: Traffic, rows: list[TrafficRow | BurstRow]
) -> list[dict[str, object]]:
    """Returns rows for CSV, without nested tables."""
    return [
        {name: value for name, value in plain(row).items() if name not in bursts.DETAILS}
        for row in rows
    ]


def _alone(parameters: Traffic, row: TrafficRow | BurstRow) -> dict[str, str | None]:
    """Returns the options that reproduce the case of a single row."""
    if isinstance(row, BurstRow):
        return {name: row.case.settings.get(name) for name in bursts.NAMED}
    case = row.case
    routing = case.settings.get("routing")
    return {"pattern": case.pattern, "bytes": case.size, "period": case.period, "routing": routing}


COMMAND = Command(
    name="traffic",
    example="opticoll traffic --fabric torus:dims=4x4 --pattern nearest,uniform",
    parameters=Traffic,
    rows=(TrafficRow, BurstRow),
    compute=compute,
    text=_text,
    progress_label="simulating",
    shape="row or rows",
    files=(rows_file(_without_details), figure_file(_draw)),
    row_options=_alone,
)
command_line = on_command_line(COMMAND)
