"""Parameters that describe a plan and its size, shared by several commands."""

import os
import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from opticoll import _core, errors, exports
from opticoll._core import Fabric, Plan
from opticoll.cli.option_types import argument, option
from opticoll.cli.options import (
    FURTHER,
    METHOD,
    ComponentsOption,
    DemandOption,
    FabricOption,
    InputFormatOption,
    InputRanksOption,
    RootOption,
    SizeOption,
    SwitchOption,
)
from opticoll.inputs import imported, message_costs, request
from opticoll.inputs.fabric_files import parse_fabric
from opticoll.inputs.plan_cache import plan_once
from opticoll.inputs.settings import Settings, set_settings
from opticoll.names import DEFAULT_ALGORITHM, algorithm_spelling, plans_by_size
from opticoll.outputs.records import record_rows
from opticoll.outputs.watch import Watch


@dataclass(frozen=True, kw_only=True)
class PartOptions:
    """Options that select a part of each fabric: ranks that take part, and broken parts."""

    without: list[str] | None = option(
        "Broken link, switch, NIC or rank, such as 'rank 0 -> rank 1'; repeat the option for "
        "several (default: none)",
        metavar="PART",
        group=FURTHER,
    )
    members: str | None = option(
        "Ranks that take part, such as 0-7+16; the other ranks only forward data (default: all)",
        metavar="RANKS",
        group=FURTHER,
    )

    cost: str | None = option(
        "Your own module:function of bytes, source, destination and hops that returns the seconds "
        "of a message, in place of the links of the fabric (default: the links)",
        metavar="FUNCTION",
        group=FURTHER,
    )

    def __post_init__(self) -> None:
        """Moves the options into each fabric's specification; commands only read `fabric`."""
        parts = {"without": "+".join(self.without or ()), "members": self.members or ""}
        fabric, source = vars(self)["fabric"], vars(self).get("source")
        if (
            any((*parts.values(), self.cost))
            and fabric is None
            and isinstance(source, str)
            and names_file(source)
        ):
            fabric = imported.read_plan(source, vars(self).get("format"))[0].fabric
        object.__setattr__(self, "fabric", with_parts(fabric, parts, self.cost))
        object.__setattr__(self, "without", None)
        object.__setattr__(self, "members", None)
        object.__setattr__(self, "cost", None)


@dataclass(frozen=True, kw_only=True)
class PlanOptions(PartOptions):
    """Options for the planning and the simulation of a plan."""

    fabric: FabricOption = None
    algorithm: str | None = option(
        "Algorithm name:key=value,..., a rule such as bruck<80KiB,ring, or your own "
        "module:function,key=value (default: auto, the fastest plan found)"
    )
    size: SizeOption = None
    method: Any = METHOD
    root: RootOption = None
    demand: DemandOption = None
    components: ComponentsOption = None
    switch: SwitchOption = None

    @property
    def settings(self) -> Settings:
        """Settings that have a value."""
        return set_settings(vars(self.method))


@dataclass(frozen=True, kw_only=True)
class Source(PlanOptions):
    """Source of a plan: a file, a collective with options, or in Python also a `Plan`."""

    fabric: str | None = option(
        "Fabric: a preset, family:key=value,..., a file, or your own module:function (required for "
        "a collective; with a plan file: another fabric for the plan, such as a degraded one)"
    )
    source: str = argument("Plan file, or a collective such as all_gather")


@dataclass(frozen=True, kw_only=True)
class FileSource(Source):
    """`Source` of a plan, with a file of any known format."""

    source: str = argument("File of a plan or schedule, or a collective such as all_gather")
    format: InputFormatOption = None
    ranks: InputRanksOption = None


def plan_key(collective: str, parameters: PlanOptions, wavelength: str | None) -> Hashable:
    """Returns the key of a plan: all values on which the plan depends.

    The key contains the size and the settings only if the plan depends on them.
    """
    algorithm = parameters.algorithm or DEFAULT_ALGORITHM
    timed: tuple[Hashable, ...] = (parameters.size is None,)
    if plans_by_size(algorithm):
        timed = (parameters.size, *sorted(parameters.settings.items()))
    stated = (parameters.fabric, parameters.root, parameters.demand)
    return (collective, algorithm, wavelength, timed, *stated)


def obtain(
    parameters: Source,
    wavelength: str | None,
    watch: Watch,
    *,
    as_exported: bool = True,
    refuse: Callable[[Plan], str | None] | None = None,
) -> Plan:
    """Reads the plan in a file, or plans a collective with options.

    If a file was exported from a plan, the plan file in the same folder is read instead, unless
    `as_exported` is False. `auto` selects no plan that `refuse` gives a reason to refuse.
    """
    if isinstance(parameters.source, Plan):
        return parameters.source
    if not names_file(parameters.source):
        try:
            kind = _core.collective_kind(parameters.source)
        except errors.CollectiveError as error:
            raise errors.CollectiveError(f"{error}; nor is there such a plan file") from error
        wanted = request.read_options(kind, parameters, wavelength)
        if refuse is not None:
            return wanted.plan(watch.try_candidate, refuse)
        key = partial(plan_key, kind, parameters, wavelength)
        return plan_once(key, partial(wanted.plan, watch.try_candidate))
    stated = {name: getattr(parameters, name) for name in ("algorithm", "root", "demand")}
    problem = "cannot be given with a plan file: it holds its own"
    refuse_given({**stated, "wavelength": wavelength}, problem)
    fabric = None if parameters.fabric is None else parse_fabric(parameters.fabric)
    form, ranks = (
        (parameters.format, parameters.ranks)
        if isinstance(parameters, FileSource)
        else (None, None)
    )
    if as_exported and form is None:
        try:
            beside = exports.plan_beside(parameters.source)
            if beside is not None:
                plan, notes = imported.read_fitting(beside, fabric)
                imported.check_ranks(plan.collective.ranks, None, ranks)
                watch.notes += notes
                return plan
        except errors.OpticollError as error:
            watch.notes.append(f"the plan beside `{parameters.source}` is not used: {error}")
    plan, notes = imported.read_plan(parameters.source, form, fabric, ranks)
    watch.notes += notes
    if not as_exported:
        watch.notes += exports.unused_plan_notes(parameters.source)
    return plan


def refuse_given(options: Mapping[str, object], problem: str) -> None:
    """Raises an error for the first option that has a value.

    The keys of `options` are the options' names in Python.
    """
    for name, value in options.items():
        if value is not None:
            raise errors.UsageError(f"--{name.replace('_', '-')} {problem}")


def check_planned(source: str, size: str | None, settings: Settings) -> None:
    """Raises an error for options that affect only planning, if the plan comes from a file."""
    options = {"--size": size}
    options |= {f"--{name}".replace("_", "-"): str(setting) for name, setting in settings.items()}
    option = next((option for option, value in options.items() if value is not None), None)
    if option is not None and names_file(source):
        raise errors.UsageError(
            f"{option} only steers the choice of a plan and does not apply to a plan file; leave "
            f"{option} out, or time the plan with `opticoll simulate {source} {option} "
            f"{options[option]}`"
        )


def settings_on(fabric: Fabric, fabrics: Sequence[Fabric], settings: Settings) -> Settings:
    """Returns the settings without those that only simulators of other fabrics have.

    >>> ring, switch = Fabric("wdm_ring:ranks=4,wavelengths=1"), Fabric("crossbar:ranks=4")
    >>> settings_on(switch, [ring, switch], {"policy": "free", "start": "step"})
    {'start': 'step'}
    """
    if settings.get("simulator") is not None:
        return settings
    supported = {
        record["name"]: [
            fact["meaning"] for fact in record["options"] if fact["name"] == "simulator"
        ]
        for record in record_rows("settings")
    }
    others = {machine.simulator for machine in fabrics if machine.simulator != fabric.simulator}
    return set_settings(
        {
            name: value
            for name, value in settings.items()
            if fabric.simulator in supported[name] or others.isdisjoint(supported[name])
        }
    )


def names_file(source: str) -> bool:
    """Returns whether a source is a file.

    A source is a file if its name looks like a path, or if a file of this name exists and no
    collective has this name.
    """
    if imported.is_plan_file(source) or os.sep in source:
        return True
    try:
        _core.collective_kind(source)
    except errors.CollectiveError:
        return os.path.exists(source)
    return False


def with_parts(fabric: Any, parts: Mapping[str, str], cost: str | None = None) -> Any:
    """Returns a fabric, or each fabric of a list, with the given options of parts and the cost.

    Without options, the fabric is returned unchanged.

    Raises
    ------
    FabricError
        The fabric does not have these parts.
    UsageError
        No fabric is given.
    """
    stated = {name: value for name, value in parts.items() if value}
    if not stated and cost is None:
        return fabric
    if fabric is None:
        name = next(iter(stated), "cost")
        raise errors.UsageError(f"--{name} goes with --fabric, to which it applies")
    if isinstance(fabric, list):
        return [with_parts(member, stated, cost) for member in fabric]
    if isinstance(fabric, Fabric):
        fabric = fabric.spec
    part = parse_fabric(fabric, **stated)
    return part.spec if cost is None else message_costs.with_costs(part, cost).spec


def key_values(option: str, text: str, example: str) -> dict[str, str]:
    """Parses settings such as `key=value,...`.

    `example` is a valid setting, which the error message shows.
    """
    settings: dict[str, str] = {}
    for part in text.split(","):
        name, equals, value = (word.strip() for word in part.partition("="))
        if not (name and equals and value):
            raise errors.UsageError(f"{option}: `{part}` is not a key=value, such as {example}")
        settings[name] = value
    return settings


def algorithms_by_collective(
    chosen: Sequence[str] | Mapping[str, str] | None,
) -> Mapping[str, str]:
    """Returns the algorithm of each collective, from texts such as `all_reduce=ring`.

    Raises
    ------
    OpticollError
        A text has another form, or a name is unknown.
    """
    stated = chosen.items() if isinstance(chosen, Mapping) else _stated(chosen or ()).items()
    algorithms = {}
    for kind, algorithm in stated:
        collective = _core.collective_kind(kind)
        spelling = algorithms[collective] = algorithm_spelling(collective, algorithm)
        for part in re.split(r"<[^,]*,", spelling):
            _core.check_algorithm(collective, part.partition(":")[0].strip())
    return algorithms


def _stated(texts: Sequence[str]) -> dict[str, str]:
    algorithms: dict[str, str] = {}
    for text in texts:
        kind, equals, algorithm = text.partition("=")
        if not (kind and equals and algorithm):
            raise errors.UsageError(
                f"--collective: `{text}` is not of the form collective=algorithm, "
                "such as all_reduce=ring"
            )
        if kind in algorithms:
            raise errors.UsageError(f"--collective: {kind} is given twice")
        algorithms[kind] = algorithm
    return algorithms


def describe_transport(
    fabric: Fabric, *, collectives: bool = True, messages: bool = True, whole: bool = False
) -> str:
    """Returns a sentence on the transport of a program's collectives and messages.

    `whole` is True if some collective includes all ranks. Collectives of a program are messages
    between two ranks, so switches only forward.

    >>> describe_transport(Fabric("crossbar:ranks=2"))
    'messages over the routes of the fabric; collectives when both ends are ready'
    >>> describe_transport(Fabric("wdm_ring:ranks=2,wavelengths=1"), collectives=False)
    'each message by a lightpath of one wavelength'
    """
    if fabric.electrical:
        ends = "; collectives when both ends are ready" if collectives else ""
        named = ", among all ranks by the routes of their plans" if whole else ""
        work = any(work != "none" for work in fabric.switch_work)
        forwarded = "; switches neither add nor multicast" if work and collectives else ""
        return f"messages over the routes of the fabric{ends}{named}{forwarded}"
    planned = "collectives by the lightpaths, slots and settings of their plans"
    alone = "by a lightpath of one wavelength"
    if not collectives:
        return f"each message {alone}"
    return f"{planned}; each other message {alone}" if messages else planned
