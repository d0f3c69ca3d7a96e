"""Command `show`: the lightpaths or messages of a slot as text, or a figure of the plan."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from opticoll._core import BESIDE, CONVERTED, Plan, take_memory
from opticoll.cli.arguments import FileSource, check_planned, obtain
from opticoll.cli.option_types import option, whole
from opticoll.cli.options import FURTHER, WavelengthOption
from opticoll.cli.runner import Command, figure_file, on_command_line
from opticoll.errors import UsageError
from opticoll.formats.network_graph import rank_names
from opticoll.inputs.demands import size_of
from opticoll.inputs.plan_cache import verify_once
from opticoll.names import ACTIONS, Action, has_root
from opticoll.outputs.circuit_configurations import configurations
from opticoll.outputs.circuit_switches import SwitchRow, switch_lines, switches
from opticoll.outputs.layout import (
    PICOSECONDS,
    align,
    and_more,
    human_seconds,
    labelled,
    plural,
    wrapped,
)
from opticoll.outputs.lights import Lights, counted, is_packet, lights_of
from opticoll.outputs.plan_row import describe_fabric
from opticoll.outputs.rows import OMITTED, Length, Row, command_field, hidden, means
from opticoll.outputs.trees import trees
from opticoll.outputs.units import Count, DecibelMilliwatts, Decibels, Seconds
from opticoll.outputs.verification import (
    PlanHead,
    ViolationRow,
    algorithm_name,
    head,
    verdict,
    violation_lines,
    violation_rows,
)
from opticoll.outputs.views import OVER_TIME, views_of
from opticoll.outputs.watch import Watch

MAX_LIGHTPATHS = 40
"""Maximum number of lightpaths of a slot in the text output."""

BYTES_PER_LIGHTPATH = 1000
"""Estimated bytes of memory for a lightpath's row."""

LIT = ("transfer", "margin", "osnr")
"""Columns of `Plan.margins`."""

MAX_RECEIVERS = 8
"""Maximum number of ranks that the text lists as receivers of the same light."""

MAX_LINKS = 24
"""Maximum number of links in the text output, which lists the busiest links first."""

MAX_TREES = 8
"""Maximum number of trees in the text output."""

MAX_STEPS = 24
"""Maximum number of steps, or of configurations, that the text lists."""

MAX_CIRCUITS = 8
"""Maximum number of circuits of a configuration in the text output."""


@dataclass(frozen=True, kw_only=True)
class Show(FileSource):
    """Parameters of `opticoll show`."""

    view: (
        Literal["ring", "grid", "fabric", "trees", "space_time", "ports", "configurations"] | None
    ) = option(
        "View: ring or grid (one slot), fabric (load of electrical links, or lightpaths on "
        "fibres), trees (routes of chunks), ports (circuits over time), configurations (their "
        "circuits) or space_time (all transfers over time) (default: by the fabric)"
    )
    slot: int | None = option(
        "Slot, counted from 0 (default: 0; all slots in the view fabric)",
        converter=whole(),
        allow_leading_hyphen=True,
    )
    of_rank: int | None = option(
        "Rank whose trees the view trees shows (default: the root, or rank 0)",
        converter=whole(),
        allow_leading_hyphen=True,
        group=FURTHER,
    )
    of_chunk: int | None = option(
        "Chunk whose trees the view trees shows (default: all chunks of --of-rank)",
        converter=whole(),
        allow_leading_hyphen=True,
        group=FURTHER,
    )
    wavelength: WavelengthOption = None


Pair = Annotated[list[Count], Length(2)]


class LightpathRow(Row):
    """A lightpath; on an electrical fabric, a message."""

    transfer: Count = means("Index into the plan")
    action: Action = means(
        "Action of the destination on the data: copy or reduce; multicast or aggregate if switches "
        "send the copies or add the data of several ranks"
    )
    chunks: Pair = means("First chunk, and number of chunks")
    source: Count = means("Sending rank")
    destination: Count = means("Receiving rank")
    light: dict[str, int | str] = means(
        "Field of light as the fabric names it: on a ring `direction`, `fibre` and `wavelength` "
        f"({CONVERTED} where converters choose), on a grid of tunable circuits `plane` and "
        "`wavelength`, on a lightpath grid and a circuit switch `source_port` and "
        f"`destination_port` ({BESIDE} for packets)",
        spread=True,
    )
    margin_db: Decibels | None = means(
        "Power that arrives at the receiver, above the least power that it detects",
        absent="the message has no light",
        omitted="if the fabric has no loss budget",
    )
    osnr_db: Decibels = means(
        "Ratio of signal to noise in a band of 0.1 nm",
        omitted="if the fabric states no noise, or the message has no light",
    )


class LossRow(Row):
    """A part of the loss of light."""

    what: str = means("What the light passes")
    count: Count = means("Number of times that the light passes it")
    loss_db: Decibels = means("Loss each time")


class BudgetRow(Row):
    """Loss budget of the weakest light of a plan."""

    transfer: Count = means("Index into the plan of the transfer with the least margin")
    launch_power_dbm: DecibelMilliwatts = means("Power of the light at its source")
    losses: list[LossRow] = means("Losses of the light")
    sensitivity_dbm: DecibelMilliwatts = means("Least power that a receiver detects")
    margin_db: Decibels = means("Launch power, less all losses and the sensitivity")
    osnr_db: Decibels | None = means(
        "Ratio of signal to noise in a band of 0.1 nm", absent="the fabric states no noise"
    )


class EdgeRow(Row):
    """A transfer of a tree."""

    slot: Count = means("Slot of the transfer; on electrical fabrics its step")
    source: Count = means("Sending rank")
    destination: Count = means("Receiving rank")
    transfer: Count = means("Index into the plan")


class TreeRow(Row):
    """Tree of transfers: copies of chunks from a root to other ranks, or reductions into a root."""

    root: Count = means(
        "Rank from which the chunks are copied to the other ranks, or into which they are reduced"
    )
    action: Literal["copy", "reduce"] = means(
        "Action of the destinations on the data: copy or reduce"
    )
    chunks: list[Count] = means("Chunks that use this tree, among the first 512 chunks of the rank")
    depth: Count = means("Number of transfers from the root to the farthest rank")
    edges: list[EdgeRow] = means("Transfers of the tree, in the order of their slots")


class PortCircuitRow(Row):
    """A circuit of a configuration."""

    source: Count = means("Rank that sends")
    port: Count = means("Port out of the rank")
    destination: Count = means("Rank that receives")


class ConfigurationRow(Row):
    """Circuits that are up together, from a first to a last slot."""

    slots: Pair = means("First slot, and last slot")
    start_s: Seconds = means(
        "Start of the first slot, including the reconfiguration before the slot"
    )
    end_s: Seconds = means("End of the last slot")
    circuits: list[PortCircuitRow] = means("Circuits of the configuration, by rank and port")


class SlotRow(PlanHead):
    """A plan's head and the lightpaths of one of its slots."""

    steps: Count = means("Number of slots of the plan")
    step_slots: list[Count] = means("Number of time slots of each step of the schedule")
    transfers: Count = means("Number of transfers; on a ring each is one lightpath")
    slot: Count = means("Slot shown")
    lightpaths: list[LightpathRow] = means("Lightpaths of the slot")
    loss_budget: BudgetRow = means(
        "Loss budget of the transfer with the least margin",
        omitted="if the fabric has no loss budget",
    )
    trees: list[TreeRow] | None = means(
        "Trees of the rank or chunk", absent="the view is not `trees`"
    )
    configurations: list[ConfigurationRow] = means(
        "Configurations of the plan, in order of time",
        omitted="if the view is not `configurations`",
    )
    switches: list[SwitchRow] = means(
        "Circuit switches of the fabric, which are set before the plan runs",
        omitted="if no circuit switches join parts of the fabric",
    )
    verified: bool = means("Whether there are no violations")
    violations: list[ViolationRow] = means("All violations of the plan")
    command: str = command_field(default=OMITTED)
    view: str = hidden(default=None)
    loaded: bool | None = hidden(default=None)


def compute(parameters: Show, watch: Watch) -> Iterator[SlotRow]:
    """Yields the head of a plan, with the lightpaths of a slot in the schedule's order.

    Raises
    ------
    OpticollError
        Any reason that `opticoll.plan` lists, or the plan lacks the requested view or slot.
    """
    view, slot = parameters.view, parameters.slot
    if view == "space_time" and "figure" not in watch.files:
        raise UsageError("the view space_time is a picture; give --figure picture.svg")
    if parameters.settings:
        check_planned(parameters.source, None, parameters.settings)
    plan = obtain(parameters, parameters.wavelength, watch)
    shape = _checked_view(plan, parameters, drawn="figure" in watch.files)
    if slot is not None and not 0 <= slot < plan.slots:
        raise UsageError(
            f"there is no slot {slot}: the plan has {plural(plan.slots, 'slot')}, from 0"
        )
    violations = violation_rows(verify_once(plan))
    yield SlotRow.of(
        head(plan),
        plan,
        verified=not violations,
        violations=violations,
        slot=slot or 0,
        lightpaths=_lightpaths(plan, slot or 0),
        loss_budget=_loss_budget(plan) or OMITTED,
        trees=None if shape != "trees" else _trees(plan, parameters),
        configurations=_configurations(plan, parameters) if view == "configurations" else OMITTED,
        view=shape,
        switches=switches(plan.fabric) or OMITTED,
        loaded=plan.fabric.electrical
        and shape == "fabric"
        and slot is None
        and ("figure" in watch.files or view is not None),
    )


def _trees(plan: Plan, parameters: Show) -> list[TreeRow]:
    return [
        TreeRow.of(tree, edges=[EdgeRow.of(edge) for edge in tree.edges])
        for tree in trees(plan, parameters.of_rank, parameters.of_chunk)
    ]


def _configurations(plan: Plan, parameters: Show) -> list[ConfigurationRow]:
    slots = plan.simulate(size_of(plan, parameters.size, parameters.demand)).slots
    return [
        ConfigurationRow(
            slots=[configuration.first, configuration.last],
            start_s=int(slots["start_ps"][configuration.first]) / PICOSECONDS,
            end_s=int(slots["end_ps"][configuration.last]) / PICOSECONDS,
            circuits=[
                PortCircuitRow(source=rank, port=port, destination=peer)
                for (rank, port), peer in sorted(configuration.peers.items())
            ],
        )
        for configuration in configurations(plan)
    ]


def _configuration_lines(listed: list[ConfigurationRow]) -> str:
    """Returns a table of the configurations, with their times and their first circuits."""
    cells = []
    for number, item in enumerate(listed[:MAX_STEPS]):
        pairs = [
            f"{circuit.source} > {circuit.destination}" for circuit in item.circuits[:MAX_CIRCUITS]
        ]
        if len(item.circuits) > MAX_CIRCUITS:
            pairs.append(f"and {len(item.circuits) - MAX_CIRCUITS} more")
        first, last = item.slots
        times = [human_seconds(item.start_s), human_seconds(item.end_s)]
        cells.append([str(number), f"{first}-{last}", *times, "  ".join(pairs)])
    table = align(cells, ["configuration", "slots", "from", "to", "circuits"], right=(0, 1, 2, 3))
    return "\n".join([table, *and_more(len(listed), MAX_STEPS, " configurations")])


def _lightpaths(plan: Plan, slot: int) -> list[LightpathRow]:
    columns = plan.slot_columns(slot)
    rows = len(columns["transfer"])
    take_memory(f"a row for each transfer of slot {slot}", rows * BYTES_PER_LIGHTPATH)
    fields = plan.fabric.light_fields
    margins, ratios = {}, {}
    if "launch_power" in plan.fabric.options:
        margins = dict.fromkeys(map(int, columns["transfer"]))
        lit = plan.margins(slot)
        for transfer, margin, osnr in zip(*(lit[name].tolist() for name in LIT), strict=True):
            margins[transfer] = margin
            if not math.isnan(osnr):
                ratios[transfer] = osnr
    return [
        LightpathRow(
            transfer=int(transfer),
            action=ACTIONS[columns["action"][index]],
            chunks=[int(columns["chunk"][index]), int(columns["count"][index])],
            source=int(columns["source"][index]),
            destination=int(columns["destination"][index]),
            light={
                name: words[value] if (value := int(columns[name][index])) < len(words) else value
                for name, words in fields.items()
            },
            margin_db=margins.get(int(transfer), OMITTED),
            osnr_db=ratios.get(int(transfer), OMITTED),
        )
        for index, transfer in enumerate(columns["transfer"])
    ]


def _loss_budget(plan: Plan) -> BudgetRow | None:
    """Returns the loss budget of the weakest light; None if the fabric has no budget."""
    weakest = plan.least_margin()
    if weakest is None:
        return None
    return BudgetRow.of(weakest, losses=[LossRow.of(part) for part in weakest["losses"]])


def _budget_text(row: SlotRow) -> list[str]:
    """Returns the losses of the weakest light of the plan, as a paragraph."""
    budget = row.loss_budget
    if budget is OMITTED:
        return []
    lossy = [part for part in budget.losses if part.count * part.loss_db > 0]
    times = [f"{part.count} x " if part.count > 1 else "" for part in lossy]
    parts = [
        f"{count}{part.what} {part.loss_db:g} dB" for count, part in zip(times, lossy, strict=True)
    ]
    paragraph = (
        f"least margin {budget.margin_db:g} dB, of transfer {budget.transfer}: "
        f"{budget.launch_power_dbm:g} dBm launched, losses {', '.join(parts) or 'none'}, "
        f"sensitivity {budget.sensitivity_dbm:g} dBm"
    )
    if budget.osnr_db is not None:
        paragraph += f"; OSNR {budget.osnr_db:.2f} dB"
    return ["\n".join(wrapped([paragraph], 0))]


def _checked_view(plan: Plan, parameters: Show, *, drawn: bool) -> str:
    """Returns the requested view, or the fabric's default view.

    Raises an error if the fabric has no such view.
    """
    view = parameters.view
    views, about = views_of(plan, parameters.slot)
    if view not in (None, *views):
        use = " or ".join(views)
        raise UsageError(f"--view {view}: {plan.fabric.family} {about}; use --view {use}")
    shape = view or views[0]
    for name, value in {"--of-rank": parameters.of_rank, "--of-chunk": parameters.of_chunk}.items():
        if value is not None and shape != "trees":
            raise UsageError(f"{name}: only the view trees takes it; add --view trees")
    if parameters.of_rank is not None and parameters.of_chunk is not None:
        raise UsageError("--of-rank and --of-chunk are both given; give one of them")
    if parameters.slot is not None and shape in OVER_TIME and (view or drawn):
        raise UsageError(f"--slot: the view {shape} shows all slots; leave --slot out")
    sized = parameters.size is not None and plan.asked == plan.algorithm
    if sized and views[0] in ("ring", "grid"):
        raise UsageError("--size: lightpaths look the same at any size; leave --size out")
    return shape


def _text(parameters: Show, rows: list[SlotRow]) -> str:
    (row,) = rows
    head = _head(row)
    if parameters.view == "space_time":
        return head
    if parameters.view == "configurations":
        return f"{head}\n\n{_configuration_lines(row.configurations)}"
    if row.trees is not None:
        return "\n\n".join([head, _tree_lines(row.trees), *_other_trees(parameters, row)])
    parts = [head, *_budget_text(row), _slot_lines(row)]
    if row.plan.fabric.switch_ports:
        parts.insert(1, switch_lines(row.plan.fabric))
    if row.loaded:
        parts.append(_loads(row.plan, size_of(row.plan, parameters.size, parameters.demand)))
    return "\n\n".join(parts)


def _tree_lines(tree_rows: list[TreeRow]) -> str:
    """Returns the trees as text, ordered by step."""
    lines = []
    for tree in tree_rows[:MAX_TREES]:
        chunks = ", ".join(map(str, tree.chunks[:MAX_RECEIVERS]))
        if len(tree.chunks) > MAX_RECEIVERS:
            chunks += f" and {len(tree.chunks) - MAX_RECEIVERS} more"
        where = "from" if tree.action == "copy" else "to"
        lines.append(
            f"{tree.action} {where} rank {tree.root}, {tree.depth} hops deep: chunks {chunks}"
        )
        steps: dict[int, list[str]] = {}
        for edge in tree.edges:
            steps.setdefault(edge.slot, []).append(f"{edge.source} > {edge.destination}")
        cells = [[f"  step {slot}", "  ".join(moves)] for slot, moves in steps.items()]
        lines.append(align(cells[:MAX_STEPS]))
    return "\n".join([*lines, *and_more(len(tree_rows), MAX_TREES, " trees")])


def _other_trees(parameters: Show, row: SlotRow) -> list[str]:
    """Returns a sentence on the number of trees that are not shown."""
    if parameters.of_chunk is not None:
        return []
    collective = row.plan.collective
    roots = {row.plan.collective.root if parameters.of_rank is None else parameters.of_rank}
    if not row.trees:
        ranks = sorted({tree.root for tree in trees(row.plan)})
        return [
            f"no tree has its root at rank {parameters.of_rank}; --of-rank {ranks[0]} shows some"
        ]
    rooted = has_root(collective.kind)
    if rooted or parameters.of_rank is not None or {tree.root for tree in row.trees} - roots:
        return []
    return [f"these are the trees of rank {collective.root}; --of-rank shows those of another"]


def _loads(plan: Plan, size: int | None) -> str:
    """Returns the bytes and the utilisation of links over the whole plan."""
    links = plan.simulate(size).links
    names = plan.fabric.link_names
    order = sorted(range(len(names)), key=lambda link: -float(links["utilisation"][link]))
    cells = [
        [names[link], str(links["bytes"][link]), f"{float(links['utilisation'][link]):.1%}"]
        for link in order[:MAX_LINKS]
    ]
    title = "loads of links over the whole plan, the busiest first"
    lines = [title, align(cells, ["link", "bytes", "utilisation"], right=(1, 2))]
    if len(names) > MAX_LINKS:
        hidden = len(names) - MAX_LINKS
        lines.append(f"and {hidden} more (all of them with opticoll simulate --per link)")
    return "\n".join(lines)


def _head(row: SlotRow) -> str:
    """Returns the facts of a plan that need no simulation, and its violations."""
    plan = row.plan
    slots = " ".join(str(count) for count in plan.step_slots[:MAX_STEPS])
    more = " ..." if len(plan.step_slots) > MAX_STEPS else ""
    facts = [
        ["collective", f"{plan.collective.kind} on {plural(plan.collective.ranks, 'rank')}"],
        ["algorithm", algorithm_name(plan.algorithm, plan.asked)],
        *labelled("fabric", describe_fabric(plan.fabric)),
        ["slots", f"{plan.slots}, by steps of the schedule: {slots}{more}"],
        ["transfers", str(len(plan))],
    ]
    if "wavelengths" in plan.fabric.options:
        used = f"{plan.wavelengths_used} used of {plan.fabric.option('wavelengths')}"
        facts.append(["wavelengths", used])
    if row.violations:
        facts.append(["verified", verdict(row.violations)])
    return "\n".join([align(facts), *violation_lines(row.violations)])


def _slot_lines(row: SlotRow) -> str:
    """Returns the first lightpaths of a slot as text."""
    plan = row.plan
    if not plan.slots:
        return "no slots: nothing needs to be sent"
    lights = lights_of(plan, row.slot)
    listed = _lights(row, lights)
    count, rows = len(lights), len(listed)
    names = rank_names(plan.fabric)
    cells = [
        [*_words(light, names), *(["light tree" if light.is_tree else ""] if lights.trees else [])]
        for light in listed[:MAX_LIGHTPATHS]
    ]
    if "plane" in plan.fabric.light_fields:
        hops = plan.hop_columns(row.slot)
        count = rows = len(hops["transfer"])
        cells = [
            [
                f"transfer {hops['transfer'][index]}",
                f"{hops['source'][index]} > {hops['destination'][index]}",
                ("row", "column")[hops["plane"][index]],
                f"wavelength {hops['wavelength'][index]}",
            ]
            for index in range(min(count, MAX_LIGHTPATHS))
        ]
    noun = "transfer" if plan.fabric.electrical else "lightpath"
    packets = sum(is_packet(light.first.light) for light in listed)
    count -= packets
    beside = f" and {plural(packets, 'packet')}" if packets else ""
    carried = "" if len(lights) == len(row.lightpaths) else f" of {len(row.lightpaths)} transfers"
    lines = [f"slot {row.slot}: {counted(count, len(lights.trees), noun)}{beside}{carried}"]
    if cells:
        lines.append(align(cells))
    return "\n".join([*lines, *and_more(rows, MAX_LIGHTPATHS)])


@dataclass
class _Light:
    """Transfers of the same chunks on one light: one, or those of a light tree."""

    first: LightpathRow
    receivers: list[int]
    is_tree: bool
    margins: list[float]
    ratios: list[float]


def _lights(row: SlotRow, lights: Lights) -> list[_Light]:
    """Returns the transfers of a slot, with those of a light tree in one."""
    joined: dict[object, _Light] = {}
    for number, lightpath in zip(lights.of, row.lightpaths, strict=True):
        is_tree = number in lights.trees
        light = joined.setdefault(
            (number, *lightpath.chunks), _Light(lightpath, [], is_tree, [], [])
        )
        light.receivers.append(lightpath.destination)
        if lightpath.margin_db not in (None, OMITTED):
            light.margins.append(lightpath.margin_db)
        if lightpath.osnr_db is not OMITTED:
            light.ratios.append(lightpath.osnr_db)
    return list(joined.values())


def _words(shown: _Light, names: list[str]) -> list[str]:
    """Returns the cells of a light: a light tree has the least margin of its receivers."""
    lightpath, heard = shown.first, shown.receivers
    chunk, count = lightpath.chunks
    cells = [
        lightpath.action,
        f"chunk {chunk}" if count == 1 else f"chunks {chunk}..{chunk + count - 1}",
        f"{names[lightpath.source]} > {' '.join(names[rank] for rank in heard[:MAX_RECEIVERS])}"
        + (f" and {len(heard) - MAX_RECEIVERS} more" if len(heard) > MAX_RECEIVERS else ""),
    ]
    light = dict(lightpath.light)
    if is_packet(light):
        light = {}
        cells.append("packet")
    if light.get("wavelength") == CONVERTED:
        # As in plan files, `*` means that converters choose the wavelength on each link.
        light["wavelength"] = "*"
    if "direction" in light:
        words = [str(light.pop("direction"))]
        cells += [*words, *(f"{name} {value}" for name, value in light.items())]
    elif "source_port" in light:
        cells.append(f"port {light['source_port']} > port {light['destination_port']}")
    else:
        cells += [f"{name.replace('_', ' ')} {value}" for name, value in light.items()]
    if shown.margins:
        cells.append(f"margin {min(shown.margins):g} dB")
    if shown.ratios:
        cells.append(f"OSNR {min(shown.ratios):.2f} dB")
    return cells


def _draw(parameters: Show, rows: list[SlotRow], path: Path) -> None:
    """Draws a plan in its view; some views also depend on the size."""
    from opticoll import plot

    (row,) = rows
    plot.plan(
        row.plan,
        path,
        row.view,
        slot=parameters.slot,
        size=size_of(row.plan, parameters.size, parameters.demand),
        rank=parameters.of_rank,
        chunk=parameters.of_chunk,
    )


COMMAND = Command(
    name="show",
    example="opticoll show all_gather --fabric optree_paper:ranks=16,wavelengths=2 --slot 1",
    parameters=Show,
    rows=SlotRow,
    compute=compute,
    text=_text,
    progress_label="drawing",
    shape="row",
    files=(figure_file(_draw),),
)
command_line = on_command_line(COMMAND)
