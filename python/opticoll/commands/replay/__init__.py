"""Command `replay`: traced MPI programs on networks, with the times of calls and ranks.

>>> import opticoll, pathlib, tempfile
>>> path = pathlib.Path(tempfile.mkdtemp()) / "hello.csv"
>>> _ = path.write_text("# app=hello ranks=2\\n"
...     "rank,call,peer,send_bytes,recv_bytes,tag,comm,req,compute_ns\\n"
...     "0,Send,1,1000,0,7,0,,500\\n1,Recv,0,0,1000,7,0,,40\\n")
>>> row = opticoll.replay(path, "crossbar:ranks=2,rate=8Gb/s,latency=0s")
>>> row.time_s, row.messages
(1.5e-06, 1)
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction as Rational
from itertools import pairwise
from typing import Any, Literal

from opticoll import _core, exports
from opticoll._core import Fabric, Outcome, Trace, format_size, replay_trace
from opticoll.cli.arguments import algorithms_by_collective, describe_transport, key_values
from opticoll.cli.option_types import argument, count, option, text
from opticoll.cli.options import FURTHER, REPLAY, ComponentsOption
from opticoll.cli.runner import Command, figure_file, on_command_line, rows_file, text_file
from opticoll.commands.replay import timeline
from opticoll.errors import TraceError, UsageError
from opticoll.inputs.fabric_files import to_medium
from opticoll.inputs.settings import Settings, set_settings
from opticoll.inputs.values import to_bytes
from opticoll.names import DEFAULT_ALGORITHM, known_names
from opticoll.outputs.bill import Watts
from opticoll.outputs.energy import bill_total
from opticoll.outputs.fabric_names import fabric_text
from opticoll.outputs.layout import (
    PICOSECONDS,
    align,
    and_more,
    duration,
    format_rate,
    human_energy,
    labelled,
    plural,
)
from opticoll.outputs.plan_row import (
    FABRIC_LATENCY,
    INJECTION,
    latency_fact,
    latency_s,
    library_warnings,
)
from opticoll.outputs.rows import OMITTED, Row, command_field, hidden, means, table
from opticoll.outputs.units import (
    BitsPerSecond,
    Bytes,
    Count,
    Fraction,
    Joules,
    Number,
    Picoseconds,
    Positive,
    Seconds,
)
from opticoll.outputs.verification import algorithm_name
from opticoll.outputs.watch import Watch

__all__ = [
    "COMMAND",
    "CallRow",
    "CollectiveRow",
    "Parameters",
    "ReplayRankRow",
    "ReplayRow",
    "compute",
]

MODELS = ("zero", "hockney", "loggp", "lightpath_grid")
"""Networks that consist of a formula for the time of a message; others are fabrics."""

MAX_COLLECTIVES = 12
"""Maximum number of lines on collectives in the text output."""

MAX_RANKS = 64
"""Maximum number of ranks in the text output."""

MAX_TERM = 2**32 - 1

NO_FABRIC = "the fabric is a cost model or a network of bursts"


@dataclass(frozen=True, kw_only=True)
class Parameters:
    """Parameters of `opticoll replay`."""

    trace: Trace | str | os.PathLike[str] = argument(
        "Trace: event table (.csv, .parquet), OTF2 archive, GOAL (text, binary), "
        "time-independent trace or Chakra (.et, one file per rank); also compressed (.zst)",
        converter=text,
    )
    fabric: str = option(
        "Fabric, or cost model: zero, hockney:latency=1us,rate=10Gb/s, "
        "loggp:gap=1us,rate=10Gb/s or lightpath_grid:ports=2",
        default="zero",
    )
    collectives: list[str] | None = option(
        "Algorithm of a collective, such as all_reduce=ring; one option for each "
        "collective (default: auto)",
        name="--collective",
    )
    cpu_factor: str = option(
        "Factor on the time of local work, such as 1/3; ranks may have factors of their own, "
        "such as 1,3=1.5,8-15=2",
        default="1",
    )
    eager: str = option(
        "Eager limit, the largest message that is sent before its receive is posted: all, none or "
        "a size",
        default="all",
        group=FURTHER,
    )
    end_overhead: str | None = option(
        "Time that a rank spends on each message sent or received, such as 500ns (default: 0s)",
        group=FURTHER,
    )
    operations_per_second: int | None = count(
        "Operations per second, for time-independent traces (default: 1000000000)",
        2**63 - 1,
        FURTHER,
        name="--operations",
    )
    method: Any = REPLAY
    bursts: str | None = option(
        "Settings of bursts, such as offered_load=0.4,ports=2; messages then request lightpaths "
        "of a burst-switched network (default: none)"
    )
    components: ComponentsOption = None
    timeline: bool = option(default=False, parse=False)
    per: Literal["call", "rank"] = option("Table by call or rank", default="call")


class CallRow(Row, core="replay.kinds"):
    """A kind of call; `local` is work without communication."""

    call: str
    calls: Count
    messages: Count
    bytes: Bytes
    total_s: Seconds
    longest_s: Seconds


class ReplayRankRow(Row, core="replay.ranks"):
    """End of a rank, and its times of local work, of calls and of the setup of lightpaths."""

    rank: Count = means("Rank")
    finish_s: Seconds = means(heading="ends")
    compute_s: Seconds = means(heading="local work")
    calls_s: Seconds = means(heading="in calls")
    setup_s: Seconds = means(heading="Part of this time that is for setup")
    messages: Count
    bytes: Bytes


class LightpathSetupsRow(Row, core="requests"):
    """Number and time of the setups of lightpaths in a replay."""

    setups: Count
    setup_s: Seconds = means(
        "Time for setup and teardown, summed over ranks; on a ring, over messages"
    )
    waited: Count | None = means(
        "Number of messages and planned collectives that waited for a lightpath",
        absent="waiting is not simulated",
    )
    waiting_s: Seconds | None = means(absent="waiting is not simulated")
    max_simultaneous: Count | None = means(absent="waiting is not simulated")
    blocked: Count | None = means(absent="the fabric is not a burst-switched network")
    bursts: Count | None = means(absent="the fabric is not a burst-switched network")
    burst_loss: Fraction | None = means(
        "Share of `bursts` that was lost", absent="there are no bursts"
    )


class CollectiveRow(Row, core="replay.collectives"):
    """The plan for a collective at one size and number of ranks."""

    collective: str
    ranks: Positive
    size_bytes: Bytes | None = means(
        "Size for which the algorithm was chosen: the size of the collective or, if the program "
        "has more than 64 pairs of collective and size, the next power of two",
        absent="the algorithm does not depend on the size",
    )
    algorithm: str
    chosen: str


class ReplayRow(Row, core="replay"):
    """A replay of a trace."""

    trace: str | None = means("File or folder of the trace", absent="the trace was not a file")
    fabric: str = means(
        "Complete specification of the network: a fabric, or zero, hockney, loggp, lightpath_grid"
        " with options"
    )
    injection_bandwidth: BitsPerSecond | None = means(INJECTION, absent=NO_FABRIC)
    fabric_latency_s: Seconds | None = means(FABRIC_LATENCY, absent=NO_FABRIC)
    simulator: str = means(
        "Simulator of the fabric; if the network is not a fabric, the name of the network"
    )
    settings: dict[str, str] = means("Settings of the simulator, as given")
    warnings: list[str] = means("Warnings, such as times without the costs of a library")
    collectives: list[CollectiveRow] = means(
        "Algorithms of collectives, by number of ranks and size"
    )
    transport: str = means("Transport of collectives and messages over the network")
    cpu_factor: str = means(
        "Factor on the time of local work, as a fraction; then factors of some ranks, such as "
        "1,3=3/2,8-15=2"
    )
    eager: str = means(
        "Largest message that is sent before its receive is posted: all, none or a size"
    )
    overhead_s: Seconds = means("CPU time of a rank for each message that it sends or receives")
    ranks: Positive = means("Number of ranks of the trace")
    trace_events: Count = means(
        "Number of calls of the trace; for GOAL and Chakra, number of nodes"
    )
    time_s: Seconds = means("Execution time: from the start to the end of the last rank")
    time_ps: Picoseconds = means("The same time, exact")
    compute_s: Seconds = means(
        "Local work of the rank with the most local work, multiplied by its factor"
    )
    messages: Count = means("Number of messages sent, including messages of collectives")
    bytes: Bytes = means("Number of bytes of these messages")
    events: Count
    static_power_w: Watts | None = means(
        "Power of all parts of the fabric, without those in `power_unknown`", absent=NO_FABRIC
    )
    static_energy_j: Joules | None = means("`static_power_w` times the time", absent=NO_FABRIC)
    power_unknown: list[str] | None = means(
        "Components of the fabric whose power is not known", absent=NO_FABRIC
    )
    busiest_link: str | None = means(
        "Electrical link with the highest utilisation", absent="no electrical link is used"
    )
    busiest_link_utilisation: Number | None = means(
        "Share of the rate of `busiest_link` that is used, averaged over the whole time",
        absent="there are no electrical links, or none is used",
    )
    lightpath_setups: LightpathSetupsRow | None = means(
        "Number and time of the setups of lightpaths", absent="the program sets up no lightpaths"
    )
    per_call: list[CallRow] = means("Calls by kind")
    per_rank: list[ReplayRankRow] = means("Calls by rank")
    command: str = command_field(default=OMITTED)
    outcome: Outcome = hidden(default=None)
    in_order: bool = hidden(default=None)


def compute(parameters: Parameters, watch: Watch) -> Iterator[ReplayRow]:
    """Replays a trace on one network.

    Raises
    ------
    OpticollError
        The file is no trace, a network or setting is unknown, or the program cannot continue.
    """
    settings = set_settings(vars(parameters.method))
    bursts = (
        parameters.bursts
        if isinstance(parameters.bursts, Mapping)
        else _burst_settings(parameters.bursts)
    )
    network = to_medium(parameters.fabric)
    if bursts is not None:
        _refuse_settings(settings)
    factor, of_ranks = _factors(parameters.cpu_factor)
    eager_bytes, rendezvous = _eager(parameters.eager)
    overhead_ps = (
        0 if parameters.end_overhead is None else _core.parse_time(parameters.end_overhead)
    )
    kinds = known_names("collectives")
    algorithms = dict.fromkeys(kinds, DEFAULT_ALGORITHM)
    algorithms |= algorithms_by_collective(parameters.collectives)
    trace = parameters.trace
    if not isinstance(trace, Trace):
        trace = exports.read_trace(trace, None, parameters.operations_per_second)
    trace, notes = exports.carried_out_on(trace, network)
    watch.notes += notes
    if of_ranks and (last := max(ranks[-1] for ranks in of_ranks)) >= trace.ranks:
        raise UsageError(
            f"--cpu-factor: there is no rank {last}, the ranks of the trace are 0 to "
            f"{trace.ranks - 1}; leave it out"
        )
    try:
        done = replay_trace(
            trace,
            network,
            algorithms,
            compute_factor=factor.as_integer_ratio(),
            rank_factors={
                rank: own.as_integer_ratio() for ranks, own in of_ranks.items() for rank in ranks
            },
            overhead_ps=overhead_ps,
            eager_bytes=eager_bytes,
            rendezvous=rendezvous,
            timeline=bool(watch.files.keys() & {"timeline", "figure"}) or parameters.timeline,
            bursts=bursts,
            **settings,
        )
    except TraceError as error:
        if isinstance(parameters.trace, Trace):
            raise
        raise TraceError(f"{os.fspath(parameters.trace)}: {error}") from error
    measured = done.simulator not in (*MODELS, "burst")
    light = done.network.startswith("lightpath_grid")
    shown = {name: str(value) for name, value in settings.items() if name != "simulator"}
    warnings = library_warnings(Fabric(done.network), done.simulator) if measured else []
    watch.notes += [f"warning: {warning}" for warning in warnings]
    parts = bill_total(Fabric(done.network)) if measured else None
    ranks = [ReplayRankRow.of(rank_row, rank=rank) for rank, rank_row in enumerate(done.ranks)]
    yield ReplayRow.of(
        done,
        fabric=done.network,
        collectives=[CollectiveRow.of(collective) for collective in done.collectives],
        ranks=trace.ranks,
        trace_events=trace.events,
        compute_s=max(rank.compute_s for rank in ranks),
        lightpath_setups=_lightpath_setups(done.totals),
        per_call=[CallRow.of(kind) for kind in done.kinds],
        per_rank=ranks,
        trace=None if isinstance(parameters.trace, Trace) else os.fspath(parameters.trace),
        settings=shown | (bursts or {}),
        warnings=warnings,
        injection_bandwidth=Fabric(done.network).injection_bandwidth if measured else None,
        transport=_transport(trace, done, measured=measured),
        fabric_latency_s=latency_s(Fabric(done.network)) if measured else None,
        static_power_w=None if parts is None else parts.power_w,
        static_energy_j=None if parts is None else parts.power_w * done.time_ps / PICOSECONDS,
        power_unknown=None if parts is None else parts.unknown_power,
        cpu_factor=_spell_factors(factor, of_ranks),
        eager=_spell_eager(eager_bytes, none=rendezvous or light),
        overhead_s=overhead_ps / PICOSECONDS,
        outcome=done,
        in_order=trace.has_calls,
    )


def _transport(trace: Trace, done: Outcome, *, measured: bool) -> str:
    if trace.plan is not None and trace.plan.fabric.spec == done.network:
        return "the collective by the plan that was exported as this trace"
    if not measured:
        return "message by message"
    collectives, (messages, _) = bool(done.collectives), trace.messages
    fabric = Fabric(done.network)
    whole = any(row["ranks"] == fabric.ranks for row in done.collectives.rows())
    return describe_transport(fabric, collectives=collectives, messages=messages > 0, whole=whole)


def _burst_settings(text: str | None) -> dict[str, str] | None:
    """Parses settings such as `key=value,...`.

    The result is empty for the text `none`, and None for None.
    """
    if text is None:
        return None
    return {} if text == "none" else key_values("--bursts", text, "offered_load=0.4")


def _refuse_settings(settings: Settings) -> None:
    """Raises an error for simulator settings, which do not apply to a burst network."""
    if settings:
        raise UsageError(
            f"over a network of bursts there is no {next(iter(settings))}; leave it out"
        )


def _factors(
    factors: str | float | Mapping[Any, str | float],
) -> tuple[Rational, dict[range, Rational]]:
    """Returns the factor of local work for most ranks, and other factors by ranges of ranks.

    The ranges are in ascending order.

    >>> _factors("8-9=2,0.5,3=1.5")
    (Fraction(1, 2), {range(3, 4): Fraction(3, 2), range(8, 10): Fraction(2, 1)})
    """
    if isinstance(factors, Mapping):
        factors = ",".join(f"{ranks}={factor}" for ranks, factor in factors.items())
    parts = [part.rpartition("=") for part in str(factors).split(",")]
    others = [factor for _, equals, factor in parts if not equals]
    if len(others) > 1:
        raise UsageError(
            f"--cpu-factor: `{factors}` has more than one factor of all other ranks; write "
            f"RANK={others[-1]}"
        )
    ranges = [(_ranks_of(ranks), _factor(factor)) for ranks, equals, factor in parts if equals]
    ranges.sort(key=lambda item: item[0][0])
    for (before, _), (after, _) in pairwise(ranges):
        if before[-1] >= after[0]:
            raise UsageError(f"--cpu-factor: rank {after[0]} has two factors; leave one out")
    return _factor(others[0] if others else 1), dict(ranges)


def _ranks_of(text: str) -> range:
    """Parses `RANK` or `FIRST-LAST`."""
    first, dash, last = text.strip().partition("-")
    bounds = (first, last if dash else first)
    if not all(bound.isdecimal() and len(bound) < 10 for bound in bounds):
        raise UsageError(f"--cpu-factor: `{text}` is not a rank; write RANK=2 or FIRST-LAST=2")
    ranks = range(int(bounds[0]), int(bounds[1]) + 1)
    if not ranks:
        raise UsageError(f"--cpu-factor: `{text}` has no rank; write the lower rank first")
    return ranks


def _spell_factors(factor: Rational, of_ranks: Mapping[range, Rational]) -> str:
    """Returns factors in the form that `--cpu-factor` accepts."""
    ends = ((f"{ranks[0]}-{ranks[-1]}" if len(ranks) > 1 else f"{ranks[0]}") for ranks in of_ranks)
    own = (f"{ranks}={own}" for ranks, own in zip(ends, of_ranks.values(), strict=True))
    return ",".join([str(factor), *own])


def _factor(factor: str | float) -> Rational:
    """Converts a factor to a fraction of 32-bit numbers."""
    problem = f"the factor of local work is a number such as 0.5 or 1/3, not `{factor}`"
    try:
        exact = Rational(str(factor))
    except (ValueError, ZeroDivisionError):
        raise UsageError(problem) from None
    if exact < 0 or exact.numerator > MAX_TERM or exact.denominator > MAX_TERM:
        raise UsageError(f"{problem}: from 0 to {MAX_TERM}, with a denominator of at most that")
    return exact


def _eager(eager: str | int | None) -> tuple[int | None, bool]:
    """Returns the eager limit in bytes (None: unlimited), and True if no message is eager."""
    if eager is None or eager == "all":
        return None, False
    if eager == "none":
        return None, True
    return to_bytes(eager), False


def _spell_eager(limit: int | None, *, none: bool) -> str:
    if none:
        return "none"
    return "all" if limit is None else _core.format_size(limit)


def _lightpath_setups(used: dict[str, Any]) -> LightpathSetupsRow | None:
    if "setups" not in used:
        return None
    loss = used["bursts_lost"] / used["bursts"] if used.get("bursts") else None
    return LightpathSetupsRow.of(used, burst_loss=loss)


def _amount(count: int) -> str:
    """Returns a number of bytes as text with four significant digits.

    >>> _amount(999), _amount(207_058_564)
    ('999 B', '207.1 MB')
    """
    for factor, unit in ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if count >= factor:
            return f"{count / factor:.4g} {unit}"
    return f"{count} B"


EAGER = {"all": "all messages", "none": "no messages"}
"""Texts for eager limits that are no sizes."""


def _text(parameters: Parameters, rows: list[ReplayRow]) -> str:
    """Returns a summary line, facts on trace and network, and a table by call or by rank."""
    (row,) = rows
    head = (
        f"execution time {duration(row.time_s)}: the busiest rank computes for "
        f"{duration(row.compute_s)}; {plural(row.messages, 'message')}, "
        f"{_amount(row.bytes)}"
    )
    injected, on_bursts = row.injection_bandwidth, row.simulator == "burst"
    settings = "".join(f", {name}={value}" for name, value in row.settings.items())
    policy = Fabric(row.fabric).policy if injected is not None else None
    if policy is not None and "policy" not in row.settings:
        settings = f", policy {policy}{settings}"
    facts = [
        ["trace", f"{row.trace}: {plural(row.ranks, 'rank')}, {row.trace_events:,} events"],
        ["burst network" if on_bursts else "network", fabric_text(row.fabric)],
        ["simulator", f"{row.simulator}{settings}"],
        *([] if injected is None else [["injection", f"{format_rate(injected)} per rank"]]),
        *([] if row.fabric_latency_s is None else [latency_fact(row.fabric_latency_s)]),
        *labelled("collectives", _collectives(row.collectives) or ["none"]),
        ["transport", row.transport],
        ["compute scale", row.cpu_factor],
        ["overhead", f"{duration(row.overhead_s)} per message sent or received"],
        ["eager", EAGER.get(row.eager, f"messages of up to {row.eager}")],
    ]
    if row.static_power_w and row.static_energy_j is not None:
        without = f", without {', '.join(row.power_unknown)}" if row.power_unknown else ""
        power = f"the static power of {row.static_power_w:,.6g} W{without}"
        facts.append(["energy", f"{human_energy(row.static_energy_j)} at {power}"])
    if row.busiest_link is not None:
        share = row.busiest_link_utilisation or 0.0
        facts.append(["busiest link", f"{row.busiest_link}, {share:.2%} of its rate used"])
    if row.lightpath_setups is not None:
        facts.append(["lightpaths", _light(row)])
        if row.lightpath_setups.blocked is not None:
            facts.append(["blocked", _blocked(row.lightpath_setups)])
    return "\n\n".join(
        [head, align(facts), _ranks(row) if parameters.per == "rank" else _calls(row)]
    )


def _collectives(rows: Sequence[CollectiveRow]) -> list[str]:
    """Returns a line per algorithm, with the collectives that use it."""
    sizes: dict[tuple[str, int, str], list[int]] = {}
    for row in rows:
        name = algorithm_name(row.chosen, row.algorithm)
        sizes_bytes = sizes.setdefault((row.collective, row.ranks, name), [])
        sizes_bytes += [] if row.size_bytes is None else [row.size_bytes]
    lines = []
    for (kind, ranks, name), planned in sizes.items():
        least, most = (format_size(size) for size in (min(planned or [0]), max(planned or [0])))
        size = "" if not planned else f" of {least}" if least == most else f" of {least}..{most}"
        lines.append(f"{kind}{size} among {plural(ranks, 'rank')} by {name}")
    return [*lines[:MAX_COLLECTIVES], *and_more(len(lines), MAX_COLLECTIVES)]


def _light(row: ReplayRow) -> str:
    used = row.lightpath_setups
    assert used is not None
    words = f"{plural(used.setups, 'setup')}, {duration(used.setup_s)} in total"
    if used.waited is None or used.waiting_s is None:
        longest = max(rank.setup_s for rank in row.per_rank)
        return f"{words}; at most {duration(longest)} at one rank"
    if used.blocked is not None:
        return (
            f"{words}; {used.waited:,} of them waited for ports or after blocking, "
            f"{duration(used.waiting_s)} in total; at most {used.max_simultaneous} at a time"
        )
    waited = plural(used.waited, "request")
    return (
        f"{words}; {waited} waited for lightpaths, {duration(used.waiting_s)} in total; "
        f"at most {used.max_simultaneous} at a time"
    )


def _blocked(used: LightpathSetupsRow) -> str:
    blocked, setups = used.blocked or 0, used.setups
    share = blocked / max(blocked + setups, 1)
    words = f"{plural(blocked, 'request')}, blocking probability {share:.3g}"
    if not used.bursts:
        return f"{words}; no bursts"
    return f"{words}; {used.bursts:,} bursts, burst loss ratio {used.burst_loss:.3g}"


def _calls(row: ReplayRow) -> str:
    lines = [
        [
            call.call,
            f"{call.calls:,}",
            f"{call.messages:,}",
            _amount(call.bytes),
            duration(call.total_s / row.ranks),
            duration(call.longest_s),
        ]
        for call in row.per_call
    ]
    heading = ["call", "calls", "messages", "bytes", "time inside, mean rank", "longest rank"]
    return align(lines, heading, right=(1, 2, 3, 4, 5))


def _ranks(row: ReplayRow) -> str:
    lit = row.lightpath_setups is not None and any(rank_row.setup_s for rank_row in row.per_rank)
    names = ["rank", "finish_s", "compute_s", "calls_s", "setup_s", "messages", "bytes"]
    shown = [name for name in names if lit or name != "setup_s"]
    lines = table(row.per_rank[:MAX_RANKS], shown)
    return "\n".join([lines, *and_more(row.ranks, MAX_RANKS, " ranks")])


def _rows(parameters: Parameters, rows: list[ReplayRow]) -> Sequence[Row]:
    return rows[0].per_rank if parameters.per == "rank" else rows[0].per_call


COMMAND: Command[Parameters, ReplayRow] = Command(
    name="replay",
    example="opticoll export all_reduce --fabric torus:dims=4x4 --size 1MiB --output ours.goal\n"
    "opticoll replay ours.goal --fabric optree_paper:ranks=16",
    parameters=Parameters,
    rows=ReplayRow,
    compute=compute,
    text=_text,
    progress_label="replaying",
    shape="row",
    files=(
        rows_file(_rows),
        text_file(
            "timeline",
            "Timeline of the calls of all ranks for Perfetto: .json",
            "timeline",
            timeline.write,
        ),
        figure_file(timeline.draw),
    ),
)
command_line = on_command_line(COMMAND)
