"""Command `congestion`: collectives over lightpaths that random bursts may block.

>>> import opticoll
>>> row = opticoll.congestion(
...     "all_gather", "wdm_ladder:rungs=5,wavelengths=4,rate=10Gb/s,latency=0s",
...     algorithm="ring", size=10**6, settings={"ports": "2", "replications": "1"},
... )
>>> row.ranks, row.verified, row.time_s
(10, True, 0.0181)
"""

import itertools
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import opticoll
from opticoll._core import (
    Fabric,
    OpticollError,
    Outcome,
    Plan,
    burst_hosts,
    burst_rate,
    collective_kind,
    delivered_plan,
    place_ranks,
    simulate_collectives,
)
from opticoll.cli import option_types
from opticoll.cli.arguments import key_values
from opticoll.cli.option_types import argument, count, option, whole
from opticoll.cli.options import CONGESTION, FURTHER, RootOption, SizeOption
from opticoll.cli.runner import Command, figure_file, on_command_line, rows_file
from opticoll.errors import AlgorithmError, UsageError
from opticoll.inputs.demands import DEFAULT_SIZE
from opticoll.inputs.fabric_files import to_medium
from opticoll.inputs.request import check_root
from opticoll.inputs.values import to_bytes
from opticoll.names import DEFAULT_ALGORITHM, algorithm_names, canonical, defaults, resolve
from opticoll.outputs import verification
from opticoll.outputs.fabric_names import fabric_text
from opticoll.outputs.layout import PICOSECONDS, describe_size, format_rate, plural
from opticoll.outputs.rows import OMITTED, Row, command_field, hidden, means, table
from opticoll.outputs.units import (
    BitsPerSecond,
    Bytes,
    Count,
    Fraction,
    Load,
    Number,
    Positive,
    Seconds,
    SignedSeconds,
)
from opticoll.outputs.watch import Watch

EXAMPLE = "wdm_ladder:rungs=5,hosts=10,wavelengths=28,rate=10Gb/s"

OWN_OPTIONS = ("offered_load", "seed", "replications")
"""Settings of bursts for which the command has separate options."""

PLACEMENTS = {
    "natural": "rank r of the first collective at host r, then those of the second",
    "spread": "one rank after the other at the next node",
    "best": "heavy pairs on short routes: the least bytes times hops found",
}
"""Placements of ranks on hosts, and their meanings."""

DEFAULT_POLICY = "all_or_nothing"
"""Default policy, with which collectives cannot deadlock."""

DEFAULT_REPLICATIONS = 20
"""Default number of replications per case."""


@dataclass(frozen=True, kw_only=True)
class Congestion:
    """Parameters of `opticoll congestion`; policies, placements and offered loads may be lists."""

    collective: str = argument("Collective, such as all_reduce")
    fabric: str | None = option(f"Fabric with hosts and wavelengths, such as {EXAMPLE} (required)")
    algorithm: str | None = option(
        "Algorithm name:key=value,... or your own module:function,key=value "
        "(default: auto, the fastest plan without bursts)"
    )
    size: SizeOption = None
    root: RootOption = None
    ranks: int | None = count("Number of ranks (default: one on each host)", group=FURTHER)
    collectives: int = count(
        "Number of collectives that run at the same time, each on its own hosts",
        default=1,
        group=FURTHER,
    )
    placement: str = option(
        "Placement of ranks: natural, spread or best (smallest known sum of bytes times hops); "
        "several with commas",
        default="natural",
    )
    offered_load: str = option(
        "Offered load of each host by background bursts; several with commas",
        default="0",
        allow_leading_hyphen=True,
    )
    bursts: str | None = option(
        "Settings of the bursts, as for `traffic`, such as "
        "source=poisson,size=50MB (default: the defaults of `traffic`)",
        group=FURTHER,
    )
    settings: Any = CONGESTION
    replications: int | None = count(
        "Number of replications of each case, each with its own seed (default: 20)"
    )
    seed: int | None = option(
        "Seed of all random draws (default: 1)",
        group=FURTHER,
        converter=whole(least=0, most=option_types.MAX_SEED),
        allow_leading_hyphen=True,
    )
    jobs: int | None = count(
        "Number of replications that run at the same time (default: number of processors)",
        group=FURTHER,
    )


class CongestionRow(Row):
    """Simulated case.

    Times are taken only from replications in which no collective failed. Sums are over all
    collectives of a replication.
    """

    fabric: str = means("Complete specification of the burst network, with hosts and wavelengths")
    collective: str = means("Collective")
    algorithm: str = means("Algorithm as requested")
    chosen: str = means(
        "Algorithm of the plan: the requested one, or the choice of `auto`", "algorithm"
    )
    size_bytes: Bytes = means("Size of the collective")
    size_convention: str = means("Meaning of the size")
    ranks: Positive = means("Number of ranks of each collective")
    injection_bandwidth: BitsPerSecond = means(
        "Bandwidth that a host can inject: the rate of a wavelength for each of its ports"
    )
    copies: Positive = means("Number of simultaneous collectives")
    congestion: str = means("Reaction to a blocked lightpath: all_or_nothing, retry or degrade")
    ports: Positive = means("Maximum number of simultaneous lightpaths of a host")
    placement: str = means("Placement of ranks: natural, spread or best")
    offered_load: Load = means(
        "Offered load of each host by background bursts; 0: no bursts", "offered load"
    )
    settings: str = means("Other settings, as name=value with spaces between them")
    replications: Positive = means("Number of independent replications")
    failed: Count = means(
        "Number of replications in which a collective failed; such replications have no time"
    )
    time_s: Seconds | None = means(
        "Mean time until the last collective of a replication ends",
        "time",
        absent="a collective failed in every replication",
    )
    time_low_s: SignedSeconds | None = means(
        "Lower end of the 95 % confidence interval of the mean (Student)",
        "from",
        absent="there are fewer than two times",
    )
    time_high_s: SignedSeconds | None = means(
        "Upper end of the interval", "to", absent="there are fewer than two times"
    )
    longest_s: Seconds | None = means(
        "Longest time of a replication", absent="a collective failed in every replication"
    )
    waited_s: Seconds = means(
        "Mean over replications of the total time that granted requests waited for lightpaths",
        "waited",
    )
    blocked: Number = means("Mean number of blocked requests of a replication")
    phases: Number = means("Mean number of phases executed in a replication")
    degraded: Number = means(
        "Mean number of phases of a replication that were cut because they were blocked", "cut"
    )
    bursts: Count = means("Number of background bursts, summed over all replications")
    burst_loss: Fraction | None = means(
        "Share of the background bursts that were lost", "burst loss", absent="there are no bursts"
    )
    hop_bytes: Bytes = means("Sum over all transfers of bytes times links of the route")
    hop_bytes_bound: Bytes = means("Lower bound on this sum for any placement")
    hop_bytes_optimal: bool = means("Whether the placement is proved to have the smallest sum")
    verified: bool = means(
        "Whether every completed collective delivered all required data in a valid order"
    )
    failure: str = means("Reason why the first collective failed; empty if no collective failed")
    command: str = command_field(default=OMITTED)
    outcome: Outcome = hidden(default=None)


@dataclass(frozen=True)
class _Case:
    """Case: a collective, its placement, and the bursts; settings are texts, as in the core."""

    fabric: str
    collective: str
    algorithm: str
    size_bytes: int
    ranks: int | None
    copies: int
    root: int
    placement: str
    offered_load: float
    settings: Mapping[str, str]

    def value(self, name: str) -> str:
        """Returns the value of a setting, or the default if the user set no value."""
        if name == "replications" and name not in self.settings:
            return str(DEFAULT_REPLICATIONS)
        return self.settings.get(name, defaults("congestion_settings", "burst_settings")[name])


@dataclass(frozen=True)
class _Places:
    """Placement: the hosts of each collective's ranks, and the sum of bytes times hops.

    `hop_bytes_bound` is a lower bound on this sum.
    """

    hosts: list[list[int]]
    hop_bytes: int
    hop_bytes_bound: int
    hop_bytes_optimal: bool


def compute(parameters: Congestion, watch: Watch) -> Iterator[CongestionRow]:
    """Simulates the cases one after another; results do not depend on the number of threads.

    The transfers of every replication are verified again, in the order of their arrival.

    Raises
    ------
    Refuted
        The algorithm's plan violates a rule.
    OpticollError
        A name is unknown, the network has too few hosts for the ranks, or a setting is invalid.
    """
    cases = _cases(parameters)
    threads = parameters.jobs or os.cpu_count() or 1
    target = sum(int(float(case.value("replications"))) for case in cases)
    placed: dict[tuple[object, ...], tuple[Plan, _Places]] = {}
    before = 0
    for case in cases:

        def progress(replications: int, before: int = before) -> None:
            watch.update("replications", before + replications, target)

        # Cases that differ only in bursts and policies share the plan and the placement.
        plan_inputs = (case.fabric, case.collective, case.algorithm, case.size_bytes, case.ranks)
        key: tuple[object, ...] = (*plan_inputs, case.copies, case.root, case.placement)
        chooses = canonical(case.algorithm, [DEFAULT_ALGORITHM]) is not None
        if chooses:
            key = (*key, *sorted(case.settings.items()))
        if key not in placed:
            names = _algorithms(case.collective) if chooses else [case.algorithm]
            placed[key] = _fastest(case, names, threads) if chooses else _place(case, names[0])
        plan, places = placed[key]
        runs = simulate_collectives(
            case.fabric,
            plan,
            places.hosts,
            case.size_bytes,
            {**case.settings, "replications": case.value("replications")}
            | ({"offered_load": repr(case.offered_load)} if case.offered_load > 0 else {}),
            external=case.offered_load > 0,
            threads=threads,
            progress=progress,
        )
        before += len(runs.runs)
        yield _row(case, plan, places, runs)


def _cases(parameters: Congestion) -> list[_Case]:
    """Returns a case for each combination of options."""
    settings = {
        name: str(text) for name, text in vars(parameters.settings).items() if text is not None
    }
    if isinstance(parameters.bursts, Mapping):
        settings |= parameters.bursts
    else:
        seed = 1 if parameters.seed is None else parameters.seed
        settings |= {**_burst_settings(parameters.bursts), "seed": str(seed)}
    if parameters.replications is not None:
        settings["replications"] = str(parameters.replications)
    if parameters.fabric is None:
        raise UsageError(f"--fabric is missing; give {EXAMPLE} or the like")
    kind = collective_kind(parameters.collective)
    check_root(kind, parameters.root)
    size_bytes = to_bytes(DEFAULT_SIZE if parameters.size is None else parameters.size)
    policies = option_types.listed("--congestion", settings.pop("congestion", None))
    placements = option_types.listed("--placement", parameters.placement)
    offered_loads = option_types.listed("--offered-load", str(parameters.offered_load))
    loads = [_number(text) for text in offered_loads]
    if parameters.seed is not None and not _draws(
        parameters.collectives, policies, loads, settings
    ):
        raise UsageError(
            "--seed: nothing is drawn where one collective asks for all paths of a phase at once "
            "and no bursts are beside it; leave it out, or give --offered-load or --collectives"
        )
    return [
        _Case(
            fabric=to_medium(parameters.fabric),
            collective=kind,
            algorithm=parameters.algorithm or DEFAULT_ALGORITHM,
            size_bytes=size_bytes,
            ranks=parameters.ranks,
            copies=parameters.collectives,
            root=parameters.root or 0,
            placement=placement,
            offered_load=load,
            settings={**settings, **({"congestion": policy} if policy else {})},
        )
        for policy, placement, load in itertools.product(policies, placements, loads)
    ]


def _draws(
    collectives: int, policies: list[str], loads: list[float], settings: Mapping[str, str]
) -> bool:
    """Returns whether the simulation draws random numbers: for bursts, waits or wavelengths."""
    alone = collectives == 1 and all(
        canonical(policy or DEFAULT_POLICY, [DEFAULT_POLICY]) for policy in policies
    )
    return (
        not alone or any(loads) or canonical(settings.get("assignment", ""), ["random"]) is not None
    )


def _burst_settings(text: str | None) -> dict[str, str]:
    """Parses the settings of bursts in a text such as `key=value,...`."""
    settings = {} if text is None else key_values("--bursts", text, "source=poisson")
    for name in settings:
        if name == "assembly":
            raise UsageError("--bursts: assembly is for `opticoll traffic`; leave it out")
        if name in OWN_OPTIONS:
            raise UsageError(f"--bursts: {name} has an option of its own, --{name}")
    return settings


def _number(text: str) -> float:
    """Parses an offered load, which must not be negative."""
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < float("inf"):
        raise UsageError(f"--offered-load: `{text}` is not a number from 0 on, such as 0.6")
    return number


def _algorithms(collective: str) -> list[str]:
    """Returns the names of the collective's algorithms, without `auto`."""
    names = algorithm_names(collective)
    return [name for name in names if name != DEFAULT_ALGORITHM]


def _fastest(case: _Case, names: list[str], threads: int) -> tuple[Plan, _Places]:
    """Returns the plan that is the fastest without bursts, and its placement.

    `names` are the algorithms to try; algorithms that do not support the case are skipped.
    """
    settings = {**case.settings, "replications": "1"}
    fastest: tuple[float, Plan, _Places] | None = None
    refused: OpticollError | None = None
    for name in names:
        try:
            plan, places = _place(case, name)
        except AlgorithmError as error:
            refused = error
            continue
        runs = simulate_collectives(
            case.fabric,
            plan,
            places.hosts,
            case.size_bytes,
            settings,
            external=False,
            threads=threads,
        )
        (time_ps,) = runs.runs["time_ps"]
        time = float("inf") if time_ps is None else float(time_ps)
        if fastest is None or time < fastest[0]:
            fastest = (time, plan, places)
    if fastest is None:
        raise refused or UsageError(f"no algorithm of {case.collective} runs here")
    return fastest[1:]


def _planned(case: _Case, algorithm: str, ranks: int) -> Plan:
    """Returns the plan of a case, made for a crossbar, so that the plan contains no routes.

    If an algorithm does not support a crossbar, it is planned on the network's links, with one rank
    at each node.
    """
    crossbar = f"crossbar:ranks={ranks},rate=10Gb/s"
    try:
        return opticoll.plan(case.collective, crossbar, algorithm, root=case.root)
    except AlgorithmError:
        links = Fabric(burst_hosts(case.fabric)[2])
        plan = opticoll.plan(case.collective, links, algorithm, root=case.root)
    if plan.collective.ranks != ranks or case.copies != 1:
        raise AlgorithmError(
            f"{algorithm} goes by the nodes of {case.fabric.partition(':')[0]}, with one rank at "
            "each: give hosts=1, and neither --ranks nor --collectives"
        )
    return plan


def _place(case: _Case, algorithm: str) -> tuple[Plan, _Places]:
    nodes, per_node, _ = burst_hosts(case.fabric)
    copies = case.copies
    ranks = nodes * per_node // copies if case.ranks is None else case.ranks
    if copies < 1 or ranks < 1 or ranks * copies > nodes * per_node:
        raise UsageError(
            f"{copies} collectives of {ranks} ranks do not fit the {nodes * per_node} hosts of "
            f"`{fabric_text(case.fabric)}`; give fewer ranks or collectives, or hosts=... at each "
            "node"
        )
    plan = _planned(case, algorithm, ranks)
    if violations := plan.verify():
        raise verification.refuted(plan, violations)
    natural = list(range(ranks * copies))
    spread = [rank % nodes * per_node + rank // nodes for rank in natural]
    name = resolve(case.placement, PLACEMENTS, "there is no placement")
    starts = [spread] if name == "spread" else [natural, spread]
    sites, cost, bound, least = place_ranks(
        case.fabric, plan, copies, case.size_bytes, starts, search=name == "best"
    )
    hosts = [sites[first : first + ranks] for first in range(0, len(sites), ranks)]
    return plan, _Places(hosts, cost, bound, least)


def _row(case: _Case, plan: Plan, places: _Places, runs: Outcome) -> CongestionRow:
    columns = runs.runs
    ended = [time for time in columns["time_ps"] if time is not None]
    verified, failures = True, []
    for place, job in enumerate(runs.jobs):
        if job["step"] is None:
            verified &= delivered_plan(runs, plan, *divmod(place, case.copies)).verify() == []
            continue
        failures.append(
            f"step {job['step']}: the lightpath between hosts {job['source']} and "
            f"{job['destination']} was blocked {job['tries']} times, the last after "
            f"{job['at_ps'] / PICOSECONDS:.3g} s"
        )
    own_names = ("congestion", "ports", "replications")
    others = {name: text for name, text in case.settings.items() if name not in own_names}
    bursts = int(columns["bursts"].sum())
    return CongestionRow.of(
        case,
        places,
        plan.collective,
        fabric=runs.network,
        chosen=plan.algorithm,
        ranks=len(places.hosts[0]),
        injection_bandwidth=int(case.value("ports")) * burst_rate(case.fabric),
        congestion=case.value("congestion"),
        ports=int(case.value("ports")),
        settings=" ".join(f"{name}={text}" for name, text in others.items()),
        replications=len(columns),
        failed=runs.failed,
        time_s=runs.mean_seconds,
        time_low_s=runs.low_seconds,
        time_high_s=runs.high_seconds,
        longest_s=max(ended) / PICOSECONDS if ended else None,
        waited_s=float(columns["waited_ps"].mean()) / PICOSECONDS,
        blocked=float(columns["blocked"].mean()),
        phases=float(columns["phases"].mean()),
        degraded=float(columns["degraded"].mean()),
        bursts=bursts,
        burst_loss=int(columns["bursts_lost"].sum()) / bursts if bursts else None,
        verified=verified,
        failure=failures[0] if failures else "",
        outcome=runs,
    )


TABLE_COLUMNS = (
    *("congestion", "placement", "offered_load", "time_s", "time_low_s", "time_high_s"),
    *("failed", "blocked", "waited_s", "phases", "degraded", "burst_loss"),
)


def _text(parameters: Congestion, rows: list[CongestionRow]) -> str:
    """Returns a heading, a line per case, and the reasons why collectives gave up."""
    first = rows[0]
    at_once = f"{first.copies} collectives at a time, each of " if first.copies > 1 else ""
    proved = (
        "the delivered data of every finished replication is verified"
        if all(row.verified for row in rows)
        else "VIOLATED: the delivered data is not what the collective demands"
    )
    lines = [
        f"{first.collective} by {first.algorithm}: {at_once}{first.ranks} ranks, "
        f"{describe_size(first.size_bytes, first.size_convention)}, "
        f"{plural(first.ports, 'port')} each, "
        f"{format_rate(first.injection_bandwidth)} per rank, on the burst network "
        f"{fabric_text(first.fabric)}",
        f"mean time of {plural(first.replications, 'replication')}, with intervals of 95 %; "
        f"{proved}",
    ]
    chosen = any(row.chosen != row.algorithm for row in rows)
    if chosen:
        lines.append(
            f"{first.algorithm}: the fastest of all algorithms that run here, each simulated once "
            "without bursts"
        )
    lines.append(table(rows, (*TABLE_COLUMNS, *(("chosen",) if chosen else ()))))
    lines += {row.placement: _placement(row) for row in rows}.values()
    lines += [
        f"failed ({row.congestion}, {row.placement}, offered load {row.offered_load:g}): "
        f"{row.failure}"
        for row in rows
        if row.failure
    ]
    return "\n".join(lines)


def _placement(row: CongestionRow) -> str:
    """Returns a placement's sum of bytes times hops, with the lower bound on the sum."""
    bound = f"lower bound {_megabytes(row.hop_bytes_bound)}"
    least = "the minimum" if row.hop_bytes_optimal else bound
    return f"placement {row.placement}: bytes times hops {_megabytes(row.hop_bytes)}, {least}"


def _megabytes(size_bytes: int) -> str:
    return f"{size_bytes / 1e6:.4g} MB"


def _draw(parameters: Any, rows: list[CongestionRow], path: Path) -> None:
    from opticoll import plot
    from opticoll.plot import style

    several = len({row.placement for row in rows}) > 1
    series: dict[str, list[plot.MeanTime]] = {}
    for row in rows:
        name = f"{row.congestion}, {row.placement}" if several else row.congestion
        point = plot.MeanTime(
            row.offered_load, row.time_s, row.time_low_s, row.time_high_s, row.failed
        )
        series.setdefault(name, []).append(point)
    first = rows[0]
    rate = style.conditions(first.fabric)
    title = (
        f"{first.collective}, {style.algorithm_name(first.chosen, first.collective)}, "
        f"{style.counted(first.ranks, 'rank')}, {style.size_text(first.size_bytes)}, "
        f"{style.counted(first.ports, 'port')} per rank" + (f", {rate}" if rate else "")
    )
    plot.mean_times(series, path, title)


def _alone(parameters: Congestion, row: CongestionRow) -> dict[str, Any]:
    """Returns the options that reproduce the case of a single row."""
    return {
        "congestion": row.congestion,
        "placement": row.placement,
        "offered_load": f"{row.offered_load:g}" if row.offered_load else None,
    }


COMMAND = Command(
    name="congestion",
    example=f"opticoll congestion all_reduce --fabric {EXAMPLE} --offered-load 0,0.4",
    parameters=Congestion,
    rows=CongestionRow,
    compute=compute,
    text=_text,
    progress_label="simulating",
    files=(rows_file(), figure_file(_draw)),
    row_options=_alone,
)
command_line = on_command_line(COMMAND)
