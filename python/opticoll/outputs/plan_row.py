"""Row and text of a plan that was verified and simulated.

>>> import opticoll
>>> plan = opticoll.plan("all_gather", "wdm_ring:ranks=16,wavelengths=2", "optree:radices=4x4")
>>> row = opticoll.measure(plan, "4MiB", policy="every_step")
>>> row.steps, row.claimed_steps, row.time_s, row.verified
(12, 12, 0.0103663296, True)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from opticoll._core import Fabric, Outcome, Plan, Violation, format_size, parse_time, time_bound
from opticoll.formulas import bandwidths
from opticoll.names import canonical, has_root
from opticoll.outputs.bill import Dollars, Watts
from opticoll.outputs.energy import plan_energy
from opticoll.outputs.fabric_names import fabric_text
from opticoll.outputs.layout import (
    PICOSECONDS,
    align,
    and_more,
    describe_size,
    format_rate,
    human_energy,
    human_seconds,
    human_time,
    labelled,
    plural,
    wrapped,
)
from opticoll.outputs.optimum import ALL_AT_ONCE, LINEAR, before_and_now, proved_time
from opticoll.outputs.records import record_row
from opticoll.outputs.rows import OMITTED, Row, command_field, means
from opticoll.outputs.units import (
    BitsPerSecond,
    Bytes,
    Count,
    GigabytesPerSecond,
    Joules,
    Picoseconds,
    Seconds,
)
from opticoll.outputs.verification import (
    FORM,
    NOT_PIPELINED,
    ON_WAVELENGTHS,
    PIPELINE_PIECES,
    Form,
    PlanHead,
    ViolationRow,
    algorithm_name,
    head,
    verdict,
    violation_lines,
    violation_rows,
)

if TYPE_CHECKING:
    from opticoll._core import Settings
    from opticoll.outputs.watch import Watch

ROUNDING = 1e-12
"""Maximum relative amount by which the fluid simulator rounds a time down."""

NO_LIBRARY = "the fabric names no library, or another simulator than bulk_synchronous ran"
NO_BANDWIDTH = "no bytes move, no time passes, or the blocks of an all_to_all differ"
INJECTION = "Bandwidth that a rank can inject; if ranks differ, the least value"
FABRIC_LATENCY = (
    "Latency of the fabric: the time that a message without bytes needs from rank 0 to the rank "
    "farthest from rank 0, over links or over one circuit that is up"
)
"""Meanings of fields that several classes of rows have."""

MAX_CANDIDATES = 12
"""Maximum number of candidates of `auto` in the text output."""


class CandidateRow(Row):
    """A candidate of `auto`, which `auto` simulated or left out."""

    name: str = means("Name of the candidate, in the form that --algorithm accepts")
    steps: Count = means("Number of slots; a lower bound if the plan was left out")
    time_s: Seconds = means("Time; a lower bound if the plan was left out")
    simulated: bool = means("Whether the plan was built and simulated to its end")
    left_out: str = means("Reason why the plan was left out; empty if it was simulated")


class SettingRow(Row, core="plan.settings"):
    """A setting whose value differs from its value in the simulator's plain model."""

    name: str
    value: str
    plain: str


class PlanRow(PlanHead):
    """A plan at one size, verified and simulated, with bounds that hold for any plan."""

    injection_bandwidth: BitsPerSecond = means(INJECTION)
    fabric_latency_s: Seconds = means(FABRIC_LATENCY)
    root: Count = means("Root rank; 0 if the collective has none")
    size_bytes: Bytes = means("Size of the collective")
    size_convention: str = means("Meaning of the size")
    policy: str | None = means(
        "Policy, which defines when a reconfiguration is charged",
        absent="electrical fabrics have no policy",
    )
    simulator: str = means("Simulator")
    start: str | None = means(
        "Start rule of messages on electrical fabrics", absent="circuits have no start rule"
    )
    settings: list[SettingRow] = means("Settings that differ from the plain model of the simulator")
    steps: Count = means("Number of slots of the plan")
    claimed_steps: Count | None = means(
        "Number of steps that the paper states", absent="no paper states a number"
    )
    bound_steps: Count | None = means(
        "Lower bound on the slots; the assumption states whether it holds for one chunk per "
        "lightpath or for any number",
        absent="there is no such bound here",
    )
    bound_name: str | None = means(
        "Name of the bound on the slots, such as `relay_tree`",
        absent="there is no bound on the steps",
    )
    bound_assumption: str | None = means(
        "Conditions under which the bound on the slots holds",
        absent="there is no bound on the steps",
    )
    transfers: Count = means("Number of transfers; on a ring each is one lightpath")
    form: Form = means(FORM)
    pipeline_wavelengths: Count | None = means(ON_WAVELENGTHS, absent=NOT_PIPELINED)
    pipeline_pieces: Count | None = means(PIPELINE_PIECES, absent=NOT_PIPELINED)
    wavelengths_used: Count | None = means(
        "Number of different wavelengths in use", absent="the fabric has no wavelengths"
    )
    configurations: Count | None = means(
        "Number of different configurations (sets of circuits)",
        absent="the fabric has no wavelengths",
    )
    time_s: Seconds = means("Time")
    time_ps: Picoseconds = means("Exact value of the time, in picoseconds")
    protocol: str = means(
        "Protocol of the library: `ll`, `ll128`, `simple` or `nvls`", omitted=NO_LIBRARY
    )
    launch_time_ps: Picoseconds = means("Part of the time: launch of the call", omitted=NO_LIBRARY)
    latency_time_ps: Picoseconds = means(
        "Part of the time: steps in which no data are sent", omitted=NO_LIBRARY
    )
    bytes_time_ps: Picoseconds = means(
        "Part of the time: data are sent or copied", omitted=NO_LIBRARY
    )
    algorithm_bandwidth: GigabytesPerSecond | None = means(
        "Bytes of the vector, or of the blocks of all ranks, divided by the time, as the algbw of "
        "nccl-tests",
        "algbw",
        absent=NO_BANDWIDTH,
    )
    bus_bandwidth: GigabytesPerSecond | None = means(
        "`algorithm_bandwidth` times a factor: busbw in nccl-tests. The factor is 2 (N - 1) / N "
        "for an all_reduce, 1 for a broadcast or reduce, and (N - 1) / N for other collectives",
        "busbw",
        absent=NO_BANDWIDTH,
    )
    energy_j: Joules = means(
        "Energy of the bits in the parts that they pass, of lit lasers and of reconfigurations, "
        "without the parts in `energy_unknown`"
    )
    laser_energy_j: Joules = means("Energy of the lasers while they are lit, part of `energy_j`")
    energy_per_bit_j: Joules | None = means(
        "`energy_j` divided by the bits of the results that their ranks did not hold before",
        absent="there are no such bits, or blocks differ",
    )
    static_energy_j: Joules = means("`static_power_w` times the time")
    static_power_w: Watts = means(
        "Power of all parts of the fabric, without those in `power_unknown`"
    )
    price_usd: Dollars | None = means(
        "Price of all parts of the fabric, without those in `price_unknown`",
        absent="no price is known",
    )
    power_unknown: list[str] = means("Components of the fabric whose power is not known")
    price_unknown: list[str] = means("Components of the fabric whose price is not known")
    energy_unknown: list[str] = means(
        "Components that bits pass and whose energy is not known (see `opticoll list components`)"
    )
    fabric_reconfiguration_s: Seconds | None = means(
        "Reconfiguration time of the fabric", absent="the fabric has no such time"
    )
    reconfigurations: Count | None = means(
        "Number of slots to which a reconfiguration was charged; on a grid of tunable circuits, "
        "how often lasers were tuned",
        absent="the fabric is electrical",
    )
    bottleneck: str | None = means(
        "Name of the link that bounds the critical path for the longest time; with the simulator "
        "`packet`, of the link that was sending for the longest time",
        absent="the fabric is optical, or no link bounds the path",
    )
    bound_time_s: Seconds | None = means(
        "Lower bound on the time of any plan of the collective at that size and policy",
        absent="no bound is known; the assumption gives the reason",
    )
    bound_time_name: str | None = means(
        "Name of the bound on the time, such as `bandwidth`", absent="there is no bound"
    )
    bound_time_assumption: str | None = means(
        "Conditions under which the bound on the time holds",
        absent="no bound is known, or the bound has no conditions",
    )
    verified: bool = means("Whether there are no violations")
    violations: list[ViolationRow] = means("All violations of the plan")
    candidates: list[CandidateRow] = means(
        "Candidates of `auto`: the chosen plan, then other simulated plans, then plans that were "
        "not simulated, each group by time; empty for other algorithms"
    )
    reasons: list[str] = means(
        "Reasons for the choice of `auto`, in sentences; empty for other algorithms"
    )
    warnings: list[str] = means("Warnings, such as a fabric that states no latency")
    command: str = command_field(default=OMITTED)


def latency_s(fabric: Fabric) -> float:
    """Returns the latency of a fabric in seconds."""
    return fabric.latency_ps / PICOSECONDS


def latency_warnings(fabric: Fabric, steps: int) -> list[str]:
    """Returns a warning if the fabric has no latency, since additional steps then cost no time.

    `steps` is the number of those steps that are not charged a reconfiguration.
    """
    if steps < 2 or fabric.latency_ps:
        return []
    option_names = {option["name"] for option in record_row("fabrics", fabric.family).options}
    (option,) = option_names & {"latency", "propagation"}
    return [
        f"{fabric.family} states no latency, so many short steps take no longer than one step with "
        f"the same bytes; give one, such as {option}=500ns"
    ]


WITH_LIBRARY = "bulk_synchronous"
"""Simulator whose times contain the costs of a library."""


def library_of(fabric: Fabric) -> str | None:
    """Returns the record of a library whose costs a fabric has; None if there is no record."""
    library = fabric.option("library")
    return None if library in (None, "none") else str(library)


def library_warnings(fabric: Fabric, simulator: str | None) -> list[str]:
    """Returns a warning if the fabric has costs of a library that the simulator does not charge."""
    library = library_of(fabric)
    if library is None or simulator in (None, "", WITH_LIBRARY):
        return []
    return [
        f"times by {simulator} are without the costs of the library {library} (launch, protocols), "
        f"which only {WITH_LIBRARY} charges; library=none leaves the costs out everywhere"
    ]


def plan_row(
    plan: Plan, violations: Sequence[Violation], outcome: Outcome, size_bytes: int
) -> PlanRow:
    """Returns a row made from a plan, the plan's violations, and the outcome of its simulation."""
    steps, name, assumption = plan.bound or (None, None, None)
    kind, root = plan.collective.kind, plan.collective.root
    settings = outcome.settings.rows()
    setting_values = {setting["name"]: setting["value"] for setting in settings}
    least_ps, time_name, time_assumption = _time_bound(
        kind,
        plan.fabric.spec,
        size_bytes,
        outcome.policy,
        root,
        setting_values.get("paths"),
        outcome.simulator,
        setting_values.get("placement"),
        plan.collective.demand,
    )
    fabric = plan.fabric
    lit = "wavelengths" in fabric.options
    link = outcome.totals.get("bottleneck")
    counted = None if fabric.electrical else outcome.totals.get("reconfigurations")
    rates = None
    if plan.collective.demand is None:
        rates = bandwidths(kind, fabric.ranks, size_bytes, outcome.time_ps / PICOSECONDS)
    algorithm, bus = rates or (None, None)
    energy = plan_energy(plan, outcome, size_bytes)
    return PlanRow.of(
        head(plan),
        outcome,
        plan,
        plan.collective,
        fabric,
        fabric_latency_s=latency_s(fabric),
        size_bytes=size_bytes,
        settings=[SettingRow.of(setting) for setting in settings],
        energy_j=energy.total_j,
        laser_energy_j=energy.lasers_j,
        energy_per_bit_j=energy.per_bit_j,
        static_energy_j=energy.static_j,
        static_power_w=energy.power_w,
        price_usd=energy.price_usd,
        power_unknown=energy.power_unknown,
        price_unknown=energy.price_unknown,
        energy_unknown=energy.unknown,
        bound_steps=steps,
        bound_name=name,
        bound_assumption=assumption,
        wavelengths_used=plan.wavelengths_used if lit else None,
        configurations=plan.configurations if lit else None,
        algorithm_bandwidth=algorithm,
        bus_bandwidth=bus,
        fabric_reconfiguration_s=_reconfiguration_s(fabric),
        reconfigurations=counted,
        bottleneck=None if link is None else fabric.link_name(link),
        bound_time_s=None if least_ps is None else least_ps / PICOSECONDS,
        bound_time_name=time_name,
        bound_time_assumption=time_assumption,
        verified=not violations,
        violations=violation_rows(violations),
        candidates=[
            CandidateRow(
                name=name,
                steps=slots,
                time_s=time_ps / PICOSECONDS,
                simulated=not left_out,
                left_out=left_out,
            )
            for name, slots, time_ps, left_out in plan.candidates
        ],
        warnings=[
            *latency_warnings(fabric, plan.slots - (counted or 0)),
            *library_warnings(fabric, outcome.simulator),
        ],
    )


def measured(
    plan: Plan,
    violations: Sequence[Violation],
    size_bytes: int,
    settings: Settings,
    watch: Watch | None = None,
    *,
    timeline: bool = False,
) -> tuple[PlanRow, Outcome]:
    """Simulates a verified plan; the packet simulator reports its progress to `watch`."""
    more: dict[str, Any] = {}
    simulator = settings.get("simulator")
    if watch is not None and simulator is not None and canonical(simulator, ["packet"]):
        messages, chunks, forwards = plan.expected_packets(size_bytes, **settings)
        watch.announce(messages, chunks, forwards)
        label = f"{plan.algorithm}, {format_size(size_bytes)}: messages delivered"
        more["watch"] = lambda _, delivered, __: watch.update(label, delivered, messages)
        more["timeline"] = timeline
    outcome = plan.simulate(size_bytes, **more, **settings)
    return plan_row(plan, violations, outcome, size_bytes), outcome


def _reconfiguration_s(fabric: Fabric) -> float | None:
    """Returns the sum of the option `reconfiguration`, such as `1us+2us`, in seconds.

    Returns None if the fabric has no such option.
    """
    option = fabric.options.get("reconfiguration")
    if option is None:
        return None
    value = option["value"]
    parts = [parse_time(part) for part in value.split("+")] if isinstance(value, str) else [value]
    return sum(parts) / PICOSECONDS


@lru_cache(maxsize=1024)
def _time_bound(
    kind: str, fabric: str, size_bytes: int, *method: Any
) -> tuple[int | None, str | None, str]:
    """Returns the greatest lower bound that `opticoll bound` computes.

    The result is the time in picoseconds, the bound's name, and the bound's assumption. It is
    cached, since the bound holds for all algorithms.
    """
    machine = Fabric(fabric)
    least_ps, name, assumption = time_bound(kind, machine, size_bytes, *method)
    if least_ps is None or method[-1] is not None:
        return least_ps, name, assumption
    proved = proved_time(kind, machine, size_bytes)
    if proved is None or proved.time_ps <= least_ps:
        return least_ps, name, assumption
    return proved.time_ps, LINEAR, ALL_AT_ONCE


def _demand_words(plan: Plan, row: PlanRow) -> str:
    """Returns as text how many pairs have a demand, and the most bytes a rank sends or receives."""
    demand = plan.collective.demand
    assert demand is not None
    ranks = range(demand.ranks)
    amounts = [
        [
            0 if source == destination else demand.amounts[source][destination]
            for destination in ranks
        ]
        for source in ranks
    ]
    pairs = sum(amount > 0 for line in amounts for amount in line)
    sent, received = max(map(sum, amounts)), max(map(sum, zip(*amounts, strict=True)))
    bytes_of = [format_size(row.size_bytes * most // demand.largest) for most in (sent, received)]
    words = f"blocks differ: {plural(pairs, 'pair')}; a rank sends {bytes_of[0]} to others at most"
    return f"{words}, and receives {bytes_of[1]}"


def describe_fabric(fabric: Fabric) -> list[str]:
    """Returns three texts: the summary of the fabric's family, the fabric's size and its title."""
    summary = record_row("fabrics", fabric.family).summary
    # "GPU servers" stays, "Ranks and switches" becomes lower case.
    first = summary[0] if summary[:2].isupper() else summary[0].lower()
    return [f"{first}{summary[1:]}", fabric.words, fabric_text(fabric.spec)]


def _plan_line(row: PlanRow) -> str:
    """Returns a line with a plan's steps, time, lower bounds and verdict."""
    steps = f"steps {row.steps}"
    if row.bound_steps is not None:
        steps += f", lower bound {row.bound_steps} ({row.bound_name})"
        steps += _gap(row.steps, row.bound_steps)
    time = f"time {human_time(row.time_ps)}"
    if row.bound_time_s is not None:
        least_ps = round(row.bound_time_s * PICOSECONDS)
        time += f", bound {human_time(least_ps)}"
        time += f" ({row.bound_time_name})"
        time += _gap(row.time_ps, least_ps)
    proof = "verified" if row.verified else "NOT verified"
    return f"{steps}; {time}; {timing_rule(row)}; {proof}"


def timing_rule(row: PlanRow) -> str:
    """Returns the policy of a row, or its start rule if the fabric has no policies."""
    return f"policy {row.policy}" if row.start is None else f"start {row.start}"


def _gap(value: int, bound: int) -> str:
    """Returns the gap between a value and its lower bound as text; empty if the bound is zero."""
    if bound <= 0:
        return ""
    if value >= 10 * bound:
        return f", {value / bound:.0f} times the bound"
    gap = value / bound - 1
    # The fluid simulator rounds times down. So a plan whose time equals the bound may seem faster.
    return f", gap {100 * gap if abs(gap) > ROUNDING else 0:.3g} %"


def plan_summary(plan: Plan, row: PlanRow) -> str:
    """Returns a plan's summary line, and a line for each further fact."""
    rooted = has_root(plan.collective.kind)
    root = f", root {row.root}" if rooted else ""
    claimed = row.claimed_steps
    paper = "" if claimed is None else f"; the paper says {claimed}"
    cut = plan.collective.pieces
    whole = "block" if "block" in row.size_convention else "vector"
    pieces = "" if cut == 1 else f"; each {whole} is cut into {cut} pieces"
    assumed = {"steps": row.bound_assumption, "time": row.bound_time_assumption}
    bounds = [f"{name}: {words}" for name, words in assumed.items() if words is not None]
    electrical, lit = plan.fabric.electrical, row.wavelengths is not None
    light = [
        ["wavelengths", f"{row.wavelengths_used} used of {row.wavelengths}"],
        ["configurations", f"{row.configurations} different circuit settings"],
    ]
    broken = None
    if plan.fabric.intact != plan.fabric and plan.collective.demand is None:
        broken = before_and_now(row.collective, plan.fabric, row.root)
    used = f"{plural(row.steps, 'time slot')} really used"
    slots = f"{plural(row.steps, 'step')}, one after the other" if electrical else used
    facts = [
        ["collective", f"{row.collective} on {plural(row.ranks, 'rank')}{root}"],
        *([] if plan.collective.demand is None else [["demand", _demand_words(plan, row)]]),
        ["algorithm", algorithm_name(row.chosen, row.algorithm)],
        *labelled("fabric", describe_fabric(plan.fabric)),
        *([] if broken is None else [["optimum", broken]]),
        ["injection", injection_text(plan.fabric)],
        latency_fact(row.fabric_latency_s),
        ["size", describe_size(row.size_bytes, row.size_convention)],
        ["steps", f"{slots}{pieces}{paper}"],
        ["transfers", _transfers(row)],
        *(light if lit else []),
        ["time", f"{human_time(row.time_ps)} ({timing_rule(row)}, simulator {row.simulator})"],
        *_library_parts(row),
        *([] if row.algorithm_bandwidth is None else [["bandwidth", _bandwidths(row)]]),
        *labelled("energy", wrapped([_energy_text(row)], 0)),
        *([] if row.bottleneck is None else [["bottleneck", row.bottleneck]]),
        *labelled("bounds hold for", [line for bound in bounds for line in wrapped([bound], 0)]),
        ["verified", verdict(row.violations, electrical=electrical)],
    ]
    parts = [_plan_line(row), "", align(facts), *violation_lines(row.violations)]
    parts += wrapped([f"warning: {warning}" for warning in row.warnings], 0)
    if row.candidates:
        parts += ["", *wrapped(row.reasons, 0), "", _candidate_table(row.candidates)]
    return "\n".join(parts)


def _library_parts(row: PlanRow) -> list[list[str]]:
    """Returns a fact on the parts of the time of a library's call, if the fabric has a library."""
    if row.protocol is OMITTED:
        return []
    parts = {
        "launch": row.launch_time_ps,
        "latency": row.latency_time_ps,
        "bytes": row.bytes_time_ps,
    }
    words = ", ".join(f"{name} {human_time(part)}" for name, part in parts.items())
    return [["parts", f"{words}; protocol {row.protocol}"]]


def _energy_text(row: PlanRow) -> str:
    """Returns the energy of a plan, and its energy at the static power of the fabric."""
    per_bit = f", {human_energy(row.energy_per_bit_j)} per bit" if row.energy_per_bit_j else ""
    power = f"{row.static_power_w:,.6g} W"
    static = f"{human_energy(row.static_energy_j)} at the static power of {power}"
    unknown = dict.fromkeys([*row.energy_unknown, *row.power_unknown])
    without = f"; not in it, without a listed value: {', '.join(unknown)}" if unknown else ""
    return f"bits and lasers {human_energy(row.energy_j)}{per_bit}; {static}{without}"


def _bandwidths(row: PlanRow) -> str:
    """Returns algorithm bandwidth and bus bandwidth, as nccl-tests names them."""
    return f"algbw {row.algorithm_bandwidth:.4g} GB/s, busbw {row.bus_bandwidth:.4g} GB/s"


def injection_text(fabric: Fabric) -> str:
    """Returns the bandwidth that each rank can inject; on graphs it is the least of all ranks.

    >>> injection_text(Fabric("wdm_graph:ranks=3,links=0-1+1-2,wavelengths=2,rate=1Gb/s"))
    'at least 2 Gb/s per rank'
    """
    least = ""
    if "fibre" in fabric.light_fields and "direction" not in fabric.light_fields:
        links = fabric.as_custom()
        rates: Counter[int] = Counter()
        for (source, _), rate in zip(links.link_ends or (), links.link_rates, strict=True):
            rates[source] += rate
        least = "" if len({rates[rank] for rank in range(fabric.ranks)}) == 1 else "at least "
    return f"{least}{format_rate(fabric.injection_bandwidth)} per rank"


def latency_fact(seconds: float) -> list[str]:
    """Returns a fact for a summary: the word `latency`, and the fabric's latency as text."""
    return ["latency", f"{human_seconds(seconds)} from rank 0 to the farthest rank"]


def _transfers(row: PlanRow) -> str:
    """Returns the number of transfers of a plan, and the number of stored representatives."""
    if row.form == "rotation_symmetric":
        stored = row.transfers // row.ranks
        return f"{row.transfers}, kept as {stored} of rank 0 that rotate to every rank"
    if row.pipeline_wavelengths is not None and row.pipeline_pieces is not None:
        represented = row.pipeline_wavelengths * row.pipeline_pieces
        return (
            f"{row.transfers}, kept as {row.transfers // max(represented, 1)} of the first chunks, "
            f"each for {plural(row.pipeline_pieces, 'piece')} on "
            f"{plural(row.pipeline_wavelengths, 'wavelength')}"
        )
    return str(row.transfers)


def _candidate_table(candidates: Sequence[CandidateRow]) -> str:
    """Returns a table of the candidates of `auto`, simulated ones first, refusals last."""
    shown = sorted(
        candidates, key=lambda candidate: not candidate.simulated and not candidate.time_s
    )
    shown = shown[:MAX_CANDIDATES]
    rows = [
        [
            candidate.name,
            _at_least(str(candidate.steps), candidate, candidate.steps),
            _at_least(human_seconds(candidate.time_s), candidate, candidate.time_s),
            candidate.left_out or "simulated",
        ]
        for candidate in shown
    ]
    table = align(rows, ["candidate", "steps", "time", ""], right={1, 2})
    return "\n".join([table, *and_more(len(candidates), MAX_CANDIDATES)])


def _at_least(text: str, candidate: CandidateRow, number: float) -> str:
    """Returns `text`, the number as text, if the candidate was simulated.

    Otherwise the number is a lower bound: returns `>= text`, or `-` if the number is 0.
    """
    if candidate.simulated:
        return text
    return f">= {text}" if number else "-"


def different_ranks(rows: Sequence[Any]) -> bool:
    """Returns whether rows have different numbers of ranks."""
    return len({row.ranks for row in rows}) > 1


def capacity_lines(rows: Sequence[Any]) -> list[str]:
    """Returns sentences on differences between rows in ranks, latency and bandwidth."""
    lines = []
    if different_ranks(rows):
        ranks = [row.ranks for row in rows]
        lines.append(
            f"These fabrics differ in the number of ranks, from {min(ranks)} to {max(ranks)}: "
            "the times compare machines of different size."
        )
    latencies = {row.fabric_latency_s for row in rows}
    if len(latencies) > 1:
        least, most = (human_seconds(end) for end in (min(latencies), max(latencies)))
        lines.append(
            f"These fabrics differ in latency, from {least} to {most} to the farthest rank: of "
            "short messages the times compare that."
        )
    return [*lines, *bandwidth_lines(rows)]


def bandwidth_lines(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Returns a sentence if rows differ in the injection bandwidth of a rank."""
    rates = [rate for row in rows if (rate := row.get("injection_bandwidth")) is not None]
    if len(set(rates)) < 2:
        return []
    return [
        "These fabrics differ in the bandwidth that a rank can inject, from "
        f"{format_rate(min(rates))} to {format_rate(max(rates))}: the times compare machines of "
        "different capacity."
    ]
