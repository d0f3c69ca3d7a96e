"""Command `simulate`: the time of a plan, in parts, by step, link, rank or time bin."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from opticoll._core import Fabric, Outcome, Plan
from opticoll.cli.arguments import FileSource, obtain, plan_key
from opticoll.cli.option_types import option
from opticoll.cli.options import WavelengthOption
from opticoll.cli.runner import Command, figure_file, on_command_line
from opticoll.errors import UsageError
from opticoll.formats.network_graph import rank_names
from opticoll.inputs.demands import size_of
from opticoll.inputs.plan_cache import verify_once
from opticoll.inputs.settings import Settings
from opticoll.names import canonical, known_names
from opticoll.outputs.layout import align, format_rate, human_time, labelled, plural
from opticoll.outputs.plan_row import PlanRow, measured, plan_summary
from opticoll.outputs.rows import Row, hidden, means, table
from opticoll.outputs.units import Bytes, Count, Number, Picoseconds, Unit, Utilisation
from opticoll.outputs.watch import Watch

MAX_PATH = 8
"""Maximum number of transfers of a critical path in the text output."""


@dataclass(frozen=True, kw_only=True)
class Simulate(FileSource):
    """Parameters of `opticoll simulate`."""

    per: Literal["step", "link", "rank", "time"] | None = option(
        "Table by step, link, rank or time (bytes in each --link-bin) (default: a summary)"
    )
    wavelength: WavelengthOption = None


ON_LINKS = "on optical fabrics"
ON_LIGHT = "on electrical fabrics"
ON_GRIDS = "on fabrics other than grids of tunable circuits"


class PathRow(Row, core="plan.critical_path"):
    """Transfer of the critical path; each of its transfers waits for the transfer before."""

    transfer: Count
    start_ps: Picoseconds
    end_ps: Picoseconds
    bottleneck: str | None = means(
        "Link that limits the message", absent="no link limits the message", omitted=ON_LINKS
    )


class StepRow(Row, core="plan.slots"):
    """A slot of a plan on an optical fabric, or a step of a plan on an electrical fabric."""

    slot: Count = means("Index of the slot")
    start_ps: Picoseconds = means(heading="start")
    end_ps: Picoseconds = means(heading="end")
    reconfiguration_ps: Picoseconds = means(heading="reconfiguration")
    lightpaths: Count


class LinkRow(Row, core="plan.links"):
    """A link; on an optical fabric, all fibres of one direction between two neighbours together."""

    rank: Count | None = means(
        "Rank at which the link starts",
        "from rank",
        absent="the link starts at no single rank, as in a passive star",
        omitted=ON_LIGHT,
    )
    direction: str = means(
        "Direction, plane or port by which the link leaves the rank", omitted=ON_LIGHT
    )
    link: str = means("Link in words", omitted=ON_LINKS)
    busy_ps: Picoseconds = means(heading="busy")
    bytes: Bytes
    utilisation: Utilisation = means("Share of the link's capacity that was used", omitted=ON_LINKS)


class RankRow(Row, core="plan.ranks"):
    """A rank."""

    rank: Count = means("Rank")
    sent_bytes: Count = means(heading="bytes sent")
    received_bytes: Count = means(heading="bytes received")
    finish_ps: Picoseconds = means(heading="finished")


class BinRow(Row):
    """Bytes that a link carried in a bin of time; a link without bytes in a bin has no row."""

    start_ps: Picoseconds = means("Time at which the bin begins", "from")
    end_ps: Picoseconds = means("Time at which the bin ends", "to")
    link: str = means("Link in words")
    bytes: Annotated[float, Unit("B", "{:.0f}".format)] = means("Bytes carried in the bin")
    bits_per_second: Annotated[float, Unit("bit/s", format_rate)] = means(
        "Mean rate in the bin", "rate"
    )


class LatencyRow(Row):
    """A distribution of latencies."""

    count: Count = means("Number of messages or chunks")
    mean_ps: Picoseconds = means("Mean latency")
    max_ps: Picoseconds = means("Longest latency")
    percentiles_ps: dict[str, Picoseconds] = means(
        "Latencies by percentile, rounded up by at most 1/64"
    )


class ClassRow(Row, core="packets.classes"):
    """All links of one class."""

    links: Count
    bytes: Count
    stall_ps: Picoseconds


class PacketRow(Row, core="packets"):
    """Latencies, buffers and stalls of the packet simulator."""

    message_latency: LatencyRow = means(
        "Time from the call that sends a message to the delivery of its last byte"
    )
    background_latency: LatencyRow = means("The same, of background traffic")
    chunk_latency: LatencyRow = means(
        "Time from the creation of a chunk's packet to the arrival of the chunk"
    )
    mean_hops: Number
    classes: dict[str, ClassRow] = means(
        "Counters for each class of links: injection, ejection, local and global, as far as the "
        "fabric has them"
    )
    minimal_chunks: Count
    detoured_chunks: Count
    bytes_sent: Bytes
    bytes_delivered: Bytes
    router_forwards: Count
    events: Count


class SimulateRow(PlanRow, core="tuned"):
    """A simulated plan, with the parts of its time."""

    utilisation: Utilisation = means(
        "Used share: of all wavelengths of all links in all slots, or of the capacity of all "
        "electrical links"
    )
    link_bytes: Bytes = means(
        "Bytes summed over all links; a byte counts on each link of its route"
    )
    critical_path: list[PathRow] = means(
        "Transfers of the critical path; each waits for the previous one"
    )
    most_loaded_link: str | None = means(
        "Link with the highest utilisation", absent="no link is used", omitted=ON_LINKS
    )
    packets: PacketRow | None = means(
        "Latencies, buffers and stalls of packets", absent="the simulator is not `packet`"
    )
    control_messages: Count = means(omitted=ON_GRIDS)
    control_messages_per_rank: Count = means(omitted=ON_GRIDS)
    controller_messages: Count = means(omitted=ON_GRIDS)
    revocations: Count = means(omitted=ON_GRIDS)
    slow_switch_ps: Picoseconds = means(omitted=ON_GRIDS)
    path_transmission_ps: Picoseconds = means(omitted=ON_GRIDS)
    path_tuning_ps: Picoseconds = means(omitted=ON_GRIDS)
    path_control_ps: Picoseconds = means(omitted=ON_GRIDS)
    path_latency_ps: Picoseconds = means(omitted=ON_GRIDS)
    path_waiting_ps: Picoseconds = means(omitted=ON_GRIDS)
    per_step: list[StepRow] = means("Steps", omitted="without --per step")
    per_link: list[LinkRow] = means("Links", omitted="without --per link")
    per_time: list[BinRow] = means("Use of links over time", omitted="without --per time")
    per_rank: list[RankRow] = means("Ranks", omitted="without --per rank")
    outcome: Outcome = hidden(default=None)


def compute(parameters: Simulate, watch: Watch) -> Iterator[SimulateRow]:
    """Simulates a plan, and divides its time into parts.

    Raises
    ------
    OpticollError
        Any reason that `opticoll.plan` lists, or the simulator lacks the requested table.
    """
    settings = parameters.settings
    _check_per(parameters.per, settings)
    plan = obtain(parameters, parameters.wavelength, watch)
    size_bytes = size_of(plan, parameters.size, parameters.demand)
    drawn = "figure" in watch.files
    if drawn:
        settings = _to_be_drawn(plan.fabric, settings)
    violations = verify_once(plan)
    row, outcome = measured(plan, violations, size_bytes, settings, watch, timeline=drawn)
    if violations:
        watch.notes.append(
            "warning: the plan is violated (see `opticoll verify`); its time means little"
        )
    tables: dict[str, Any] = {}
    if parameters.per is not None:
        tables[f"per_{parameters.per}"] = _TABLES[parameters.per](plan, outcome)
    yield SimulateRow.of(row, outcome, outcome=outcome, **_totals(plan, outcome), **tables)


def _check_per(per: str | None, settings: Settings) -> None:
    """Raises an error for a table over time if the length of time bins is not given."""
    if per == "time" and settings.get("link_bin") is None:
        raise UsageError(
            "--per time: give the length of a bin of time too, such as --link-bin 10us"
        )


def _to_be_drawn(fabric: Fabric, settings: Settings) -> Settings:
    """Returns the settings, completed so that the outcome contains the data of the figure.

    Raises an error if no figure shows the outcome of the simulator.
    """
    names = known_names("simulators")
    named = settings.get("simulator")
    simulator = fabric.simulator if named is None else canonical(named, names)
    if simulator in (None, "packet"):
        return settings
    if simulator != "fluid":
        shown, other = f"the simulator {simulator}", "give --simulator fluid, or "
        if not fabric.electrical:
            shown, other = f"light on a {fabric.family}" if named is None else shown, ""
        raise UsageError(
            f"--figure: the figure shows flows or packets over time, not {shown}; "
            f"{other}see `opticoll show --view space_time`"
        )
    if canonical(settings.get("link_bin") or "none", ["none"]) is None:
        return settings
    return {**settings, "link_bin": "fitted"}


def _totals(plan: Plan, outcome: Outcome) -> dict[str, Any]:
    """Returns the fields that concern the whole simulation."""
    flows = outcome.start is not None
    path = [
        PathRow.of(record, **({"bottleneck": _name(plan, record["bottleneck"])} if flows else {}))
        for record in outcome.critical_path
    ]
    loaded = {"most_loaded_link": _name(plan, outcome.most_loaded_link)} if flows else {}
    return {
        **loaded,
        "utilisation": outcome.utilisation,
        "link_bytes": int(outcome.links["bytes"].sum()),
        "critical_path": path,
        "packets": _packets(outcome) if "latencies" in outcome.tables else None,
    }


def _name(plan: Plan, link: int | None) -> str | None:
    return None if link is None else plan.fabric.link_name(link)


def _steps(plan: Plan, outcome: Outcome) -> list[StepRow]:
    return [StepRow.of(row, slot=slot) for slot, row in enumerate(outcome.slots)]


def _links(plan: Plan, outcome: Outcome) -> list[LinkRow]:
    if outcome.start is not None:
        return [
            LinkRow.of(row, link=name)
            for name, row in zip(plan.fabric.link_names, outcome.links, strict=True)
        ]
    rows, (axis, place) = iter(outcome.links), outcome.links.axes
    numbered = [f"{axis} {number}" for number in range(outcome.links.shape[0])]
    return [
        LinkRow.of(next(rows), rank=rank if place == "rank" else None, direction=direction)
        for direction in plan.fabric.light_fields.get(axis) or numbered
        for rank in range(outcome.links.shape[1])
    ]


def _bins(plan: Plan, outcome: Outcome) -> list[BinRow]:
    """Returns time bins in order; within a bin, links are in the order of the fabric."""
    if "link_use" not in outcome.tables:
        return []
    bin_ps, carried = outcome.link_use_bin_ps, outcome.link_use["bytes"]
    names = plan.fabric.link_names
    return [
        BinRow(
            start_ps=int(number) * bin_ps,
            end_ps=(int(number) + 1) * bin_ps,
            link=names[link],
            bytes=float(carried[link, number]),
            bits_per_second=float(carried[link, number]) * 8e12 / bin_ps,
        )
        for number, link in zip(*carried.T.nonzero(), strict=True)
    ]


def _ranks(plan: Plan, outcome: Outcome) -> list[RankRow]:
    return [RankRow.of(row, rank=rank) for rank, row in enumerate(outcome.ranks)]


_TABLES = {"step": _steps, "link": _links, "time": _bins, "rank": _ranks}


def _packets(outcome: Outcome) -> PacketRow:
    message, background, chunk = outcome.latencies.rows()
    return PacketRow.of(
        outcome,
        message_latency=_latency(message),
        background_latency=_latency(background),
        chunk_latency=_latency(chunk),
        classes={row["class"]: ClassRow.of(row) for row in outcome.classes},
    )


def _latency(row: dict[str, Any]) -> LatencyRow:
    """Returns a distribution of latencies, with percentiles by their number, such as `99`."""
    percentiles = (name for name in row if name.startswith("p"))
    return LatencyRow.of(
        row,
        percentiles_ps={
            name[1:].removesuffix("_ps").replace("_", "."): row[name] for name in percentiles
        },
    )


def _text(parameters: Simulate, rows: list[SimulateRow]) -> str:
    (row,) = rows
    parts = [plan_summary(row.plan, row), _summary(row)]
    if parameters.per is not None:
        parts.append(_table(row, parameters.per))
    return "\n\n".join(parts)


TABLE_COLUMNS = {
    "link": ("rank", "direction", "busy_ps", "bytes"),
    "rank": ("rank", "sent_bytes", "received_bytes", "finish_ps"),
    "step": ("slot", "start_ps", "end_ps", "reconfiguration_ps", "lightpaths"),
    "time": ("start_ps", "end_ps", "link", "bytes", "bits_per_second"),
}
"""Columns of each table of `--per`; on electrical fabrics, `FLOW_COLUMNS` has priority."""

FLOW_COLUMNS = {
    "link": ("link", "busy_ps", "bytes", "utilisation"),
    "step": ("slot", "start_ps", "end_ps", "lightpaths"),
}
"""Columns of tables on electrical fabrics, if they differ from `TABLE_COLUMNS`."""

FLOW_HEADINGS = {"slot": "step", "lightpaths": "messages"}


def _table(row: SimulateRow, per: str) -> str:
    """Returns a table by step, link, rank or time bin, as `per` says."""
    rows = row[f"per_{per}"]
    flows = FLOW_COLUMNS if row.start is not None else {}
    names = flows.get(per, TABLE_COLUMNS[per])
    return table(rows, names, headings=FLOW_HEADINGS if flows else {}) if rows else ""


def _summary(row: SimulateRow) -> str:
    """Returns facts on the parts of the simulated time."""
    plan, outcome, path = row.plan, row.outcome, row.critical_path
    facts = [
        ["reconfigurations", f"{row.reconfigurations} of {plural(plan.slots, 'slot')} waited"],
        ["utilisation", f"{row.utilisation:.1%} of link-wavelength-slots carry light"],
        ["critical path", plural(len(path), "transfer")],
    ]
    if "setup" in plan.fabric.options:
        facts = [*_path_facts(outcome), facts[2]]
    if row.start is not None:
        facts = [*_flow_facts(row), facts[2]]
    if row.packets is not None:
        facts = [*_flow_facts(row), *_packet_facts(row.packets)]
    if "slow_switch_ps" in outcome.totals:
        facts = [*_tuned_facts(row, len(outcome.flows)), facts[2]]
    lines = [align(facts)]
    if path:
        shown = path if len(path) <= MAX_PATH else [*path[: MAX_PATH - 1], path[-1]]
        names = rank_names(plan.fabric)
        cells = [
            [
                f"  transfer {transfer.transfer}",
                " > ".join(names[end] for end in plan.ends(transfer.transfer)),
                f"from {human_time(transfer.start_ps)}",
                f"to {human_time(transfer.end_ps)}",
                *(
                    []
                    if row.start is None
                    else [f"bounded by {link}" if (link := transfer.bottleneck) else ""]
                ),
            ]
            for transfer in shown
        ]
        lines.append(align(cells))
        if len(path) > MAX_PATH:
            lines.append(f"  (the first and the last of {len(path)}; all of them with --json)")
    return "\n".join(lines)


def _path_facts(outcome: Outcome) -> list[list[str]]:
    """Returns facts on the time that lightpaths need for setup and teardown."""
    spent = human_time(int(outcome.slots["reconfiguration_ps"].sum()))
    return [
        [
            "lightpaths",
            f"set up {plural(outcome.reconfigurations, 'time')}; setup and teardown {spent}",
        ],
        ["utilisation", f"{outcome.utilisation:.1%} of the time ports send"],
    ]


def _tuned_facts(row: SimulateRow, flows: int) -> list[list[str]]:
    """Returns facts on the time for tuning and control on a grid of tunable circuits."""
    facts = [
        ["lasers tuned", f"{row.reconfigurations} times in all"],
        ["utilisation", f"{row.utilisation:.1%} of the time transmitters send"],
        ["slow switches", f"{human_time(row.slow_switch_ps)} once, not part of the time"],
    ]
    if flows:
        most = row.control_messages_per_rank
        spent = ("transmission", "tuning", "control", "latency", "waiting")
        times = [f"{part} {human_time(row[f'path_{part}_ps'])}" for part in spent]
        central = row.controller_messages
        facts += [
            [
                "control",
                f"{row.control_messages} messages, {most} of a rank at most"
                + (f", {central} of the central controller" if central else ""),
            ],
            ["time goes to", ", ".join(times)],
        ]
    return facts


def _flow_facts(row: SimulateRow) -> list[list[str]]:
    """Returns facts on simulated flows, and the settings that differ from the plain model."""
    facts = [["utilisation", f"{row.utilisation:.1%} of the capacity of all links"]]
    loaded = row.outcome.most_loaded_link
    if loaded is not None:
        share = row.outcome.links["utilisation"][loaded]
        facts.append(["most loaded link", f"{row.most_loaded_link}, {share:.1%} in use"])
    settings = [
        f"{setting.name} {setting.value} (plain: {setting.plain})" for setting in row.settings
    ]
    return [*facts, *labelled("settings", settings or ["plain"])]


def _packet_facts(packets: PacketRow) -> list[list[str]]:
    """Returns facts on latencies, buffers and stalls of packets."""
    message, chunk = packets.message_latency, packets.chunk_latency
    ways = f"{packets.minimal_chunks} chunks minimal, {packets.detoured_chunks} by way of "
    stalls = [f"{name} {human_time(row.stall_ps)}" for name, row in packets.classes.items()]
    facts = [
        [
            "message latency",
            f"mean {human_time(message.mean_ps)}, 99 % {human_time(message.percentiles_ps['99'])}, "
            f"max {human_time(message.max_ps)}; {message.count} messages",
        ],
        ["chunk latency", f"mean {human_time(chunk.mean_ps)}, max {human_time(chunk.max_ps)}"],
        ["ways", f"{ways}another group; {packets.mean_hops:.3f} routers a chunk"],
        ["stalls", f"{', '.join(stalls)}, summed over channels"],
    ]
    background = packets.background_latency
    if background.count:
        mean = human_time(background.mean_ps)
        facts.append(["background", f"{background.count} messages, mean latency {mean}"])
    return facts


def _draw(parameters: Simulate, rows: list[SimulateRow], path: Path) -> None:
    """Draws the outcome of a packet or flow simulation."""
    from opticoll import plot
    from opticoll.plot import style

    (row,) = rows
    fabric = row.plan.fabric
    title = (
        f"{style.heading(row.plan)}, {fabric.family}, {style.size_text(row.size_bytes)}, "
        f"{style.conditions(fabric.spec)}"
    )
    if row.packets is not None:
        plot.packets(row.outcome, row.plan.fabric, path, title)
    else:
        plot.link_use(row.plan, row.outcome, path, title)


COMMAND = Command(
    name="simulate",
    example="opticoll simulate all_gather --fabric optree_paper --per step",
    parameters=Simulate,
    rows=SimulateRow,
    compute=compute,
    text=_text,
    progress_label="simulating",
    shape="row",
    files=(figure_file(_draw),),
    cache_key=lambda parameters: plan_key(parameters.source, parameters, parameters.wavelength),
)
command_line = on_command_line(COMMAND)
