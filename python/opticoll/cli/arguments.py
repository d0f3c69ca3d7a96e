"""From the words of a command line to a plan or a comparison."""

from __future__ import annotations

import os
import sys
from contextlib import AbstractContextManager, redirect_stdout
from typing import TYPE_CHECKING, Any

from opticoll import _core, errors

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from opticoll._core import Fabric, Plan
    from opticoll.cli.options import ComparisonOptions
    from opticoll.cli.waiting import Waiting
    from opticoll.config import Scenario
    from opticoll.settings import Settings

__all__ = [
    "DEFAULT_SIZE",
    "build",
    "check_per",
    "check_planned",
    "check_view",
    "compose_scenario",
    "key_values",
    "names_plan_file",
    "need_fabric",
    "need_fabrics",
    "obtain",
    "size_of",
    "to_be_drawn",
    "users_print_to_stderr",
]

DEFAULT_SIZE = "4MiB"


def key_values(option: str, text: str, example: str) -> dict[str, str]:
    """The settings in `key=value,...`."""
    settings: dict[str, str] = {}
    for part in text.split(","):
        name, equals, value = (word.strip() for word in part.partition("="))
        if not (name and equals and value):
            raise errors.UsageError(f"{option}: `{part}` is no key=value, such as {example}")
        settings[name] = value
    return settings


def build(
    collective: str,
    fabric: str | None,
    algorithm: str | None,
    wavelength: str | None,
    root: int | None,
    size: str | None,
    settings: Settings,
    waiting: Waiting,
) -> Plan:
    """The plan that a collective and options ask for, for its size and settings."""
    import opticoll

    kind = _core.collective_kind(collective)
    check_root(kind, root)
    check_rule(wavelength, "wavelengths=2 in --fabric sets how many there are")
    machine = need_fabric(fabric)
    with users_print_to_stderr():
        return opticoll.plan(
            kind,
            machine,
            algorithm,
            size=DEFAULT_SIZE if size is None else size,
            root=0 if root is None else root,
            wavelength="auto" if wavelength is None else wavelength,
            watch=lambda candidate: waiting.update(f"trying {candidate}", 0, 0),
            **settings,
        )


def obtain(
    source: str,
    fabric: str | None,
    algorithm: str | None,
    wavelength: str | None,
    root: int | None,
    size: str | None,
    settings: Settings,
    waiting: Waiting,
) -> Plan:
    """The plan in a file, or the one that a collective and options ask for."""
    import opticoll
    from opticoll import config

    if not names_plan_file(source):
        try:
            kind = _core.collective_kind(source)
        except errors.CollectiveError as error:
            raise errors.CollectiveError(f"{error}; nor is there such a plan file") from error
        return build(kind, fabric, algorithm, wavelength, root, size, settings, waiting)
    given = {"--algorithm": algorithm, "--wavelength": wavelength, "--root": root}
    for option, value in given.items():
        if value is not None:
            raise errors.UsageError(f"{option} cannot be given with a plan file: it holds its own")
    made = opticoll.read_plan(source)
    if fabric is not None and config.parse_fabric(fabric).spec != made.fabric.spec:
        raise errors.UsageError(
            f"`{source}` is a plan for another fabric: it holds for {made.fabric.spec}, "
            f"given was {config.parse_fabric(fabric).spec}"
        )
    return made


def check_root(kind: str, root: int | None) -> None:
    """Refuse a root for a collective that has none."""
    from opticoll import registry

    if root is not None and not registry.has_root(kind):
        rooted = [
            record["name"]
            for record in registry.records("collectives")
            if registry.has_root(record["name"])
        ]
        raise errors.UsageError(f"--root: {kind} has no root; only {', '.join(rooted)} have one")


def check_planned(source: str, size: str | None, settings: Settings) -> None:
    """Refuse what only a choice of a plan depends on where the plan is in a file."""
    given = {
        "--size": size,
        **{f"--{name}".replace("_", "-"): one for name, one in settings.items()},
    }
    option = next((option for option, value in given.items() if value is not None), None)
    if option is not None and names_plan_file(source):
        raise errors.UsageError(
            f"{option} cannot be given with a plan file: it says what a plan is chosen for"
        )


def check_rule(wavelength: str | None, cure: str) -> None:
    """Refuse numbers where the rule by which wavelengths are assigned is asked for."""
    if wavelength is not None and wavelength.replace(",", "").strip().isdigit():
        raise errors.UsageError(
            f"--wavelength {wavelength}: this is the rule by which wavelengths are assigned; {cure}"
        )


def check_per(per: str | None, settings: Settings) -> None:
    """Refuse a table from a simulator that has only a total, or over time without bins."""
    from opticoll import registry

    simulator = settings.get("simulator")
    if per == "time" and settings.get("link_bin") is None:
        raise errors.UsageError(
            "--per time: give the length of a bin of time too, such as --link-bin 10us"
        )
    if per is not None and simulator is not None and registry.canonical(simulator, ["closed_form"]):
        raise errors.UsageError(
            f"--per {per}: a formula gives the total only; use --simulator circuit"
        )


def to_be_drawn(fabric: Fabric, settings: Settings) -> Settings:
    """Settings whose outcome has what the figure shows; refuses a simulator without a figure."""
    from opticoll import registry

    names = [record["name"] for record in registry.records("simulators")]
    named = settings.get("simulator")
    simulator = None if named is None else registry.canonical(named, names)
    if simulator == "packet" or (named is not None and simulator is None):
        return settings
    if simulator not in (None, "fluid") or (simulator is None and not fabric.electrical):
        shown = f"light on a {fabric.family}" if simulator is None else f"the simulator {simulator}"
        raise errors.UsageError(
            f"--figure: the figure shows flows or packets over time, not {shown}; "
            "see `opticoll show --view space_time`"
        )
    if registry.canonical(settings.get("link_bin") or "none", ["none"]) is None:
        return settings
    return {**settings, "link_bin": "fitted"}


def users_print_to_stderr() -> AbstractContextManager[object]:
    """While a user's own algorithm runs: standard output is for results only."""
    return redirect_stdout(sys.stderr)


def check_view(made: Plan, view: str | None, size: str | None) -> str:
    """The view of a plan, by its fabric if none is given; refuses one of the other kind."""
    if made.fabric.path_ports is not None:
        if view not in (None, "ports"):
            raise errors.UsageError(
                f"--view {view}: {made.fabric.family} has ports with light paths; use --view ports"
            )
        return "ports"
    if view == "ports":
        raise errors.UsageError("--view ports: only a light_path_grid has light paths over time")
    electrical = made.fabric.electrical
    if electrical:
        usual, has = "fabric", "an electrical fabric without light"
    elif made.fabric.grid is not None:
        usual, has = "grid", "a grid of tunable circuits"
    else:
        usual, has = "ring", "a ring of light"
    if view not in (None, usual, "space_time"):
        raise errors.UsageError(
            f"--view {view}: {made.fabric.family} is {has}; use --view {usual} or space_time"
        )
    if size is not None and not electrical:
        raise errors.UsageError("--size: lightpaths look the same at any size; leave --size out")
    return usual if view is None else view


def names_plan_file(source: str) -> bool:
    """Whether a source is a file, by its name or because it exists and is no collective."""
    from opticoll.formats.plan_file import SUFFIXES

    if source.endswith(SUFFIXES) or os.sep in source:
        return True
    try:
        _core.collective_kind(source)
    except errors.CollectiveError:
        return os.path.exists(source)
    return False


def need_fabric(fabric: str | None) -> Fabric:
    """The fabric of an option that must be given."""
    from opticoll import config

    if fabric is None:
        raise errors.UsageError(
            "--fabric is missing; give a preset such as optree_paper, "
            "or wdm_ring:ranks=16,wavelengths=2"
        )
    return config.parse_fabric(fabric)


def need_fabrics(fabrics: Sequence[str] | None) -> list[Fabric]:
    """The fabrics of an option that must be given and may be given again."""
    from opticoll import config

    return config.to_fabrics([need_fabric(fabric) for fabric in fabrics or ()] or need_fabric(None))


def size_of(made: Plan, size: str | None) -> int:
    """The size in bytes: as asked for, else as in the plan, else the default."""
    from opticoll import config

    if size is not None:
        return config.to_bytes(size)
    return _core.parse_size(DEFAULT_SIZE) if made.size_bytes is None else made.size_bytes


def compose_scenario(source: str, options: ComparisonOptions) -> Scenario:
    """The comparison that a scenario file or a collective asks for; options win over the file."""
    from dataclasses import replace

    from opticoll import config
    from opticoll.settings import given

    if options.size is not None and options.sizes is not None:
        raise errors.UsageError("--size and --sizes are both given; give one of them")
    check_rule(
        options.wavelength, f"numbers of them are given as --wavelengths {options.wavelength}"
    )
    if config.is_yaml(source):
        scenario = config.read_scenario(source)
        if options.fabric is not None:
            scenario = replace(scenario, fabrics=need_fabrics(options.fabric))
    else:
        ranks = None
        if options.ranks is not None:
            ranks = config.split_counts("--ranks", options.ranks)
        fabrics = options.fabric if ranks and options.fabric else need_fabrics(options.fabric)
        scenario = config.to_scenario(source, fabrics, sizes=DEFAULT_SIZE, ranks=ranks)
    convert: dict[str, Callable[[str], Any]] = {
        "algorithms": config.split_algorithms,
        "sizes": config.split_sizes,
        "ranks": lambda text: config.split_counts("--ranks", text),
        "wavelengths": lambda text: config.split_counts("--wavelengths", text),
    }
    named = {**vars(options), "sizes": options.sizes or options.size}
    fields = {
        key: convert[key](value) if key in convert else value
        for key, value in named.items()
        if value is not None and key not in ("fabric", "size", "method")
    }
    check_root(scenario.collective, options.root)
    settings = given(vars(options.method))
    overridden = frozenset([*fields, *settings])
    together: Settings = {**scenario.settings, **settings}
    return replace(scenario, **fields, settings=together, overridden=overridden)
