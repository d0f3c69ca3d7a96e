"""From the words of a command line to a plan or a comparison."""

from __future__ import annotations

import os
import sys
from contextlib import AbstractContextManager, redirect_stdout
from typing import TYPE_CHECKING, Any

from opticoll import _core, errors

if TYPE_CHECKING:
    from opticoll._core import Fabric, Plan
    from opticoll.config import Scenario

__all__ = [
    "DEFAULT_SIZE",
    "build",
    "compose_scenario",
    "obtain",
    "size_of",
    "users_print_to_stderr",
]

DEFAULT_SIZE = "4MiB"


def build(
    collective: str,
    fabric: str | None,
    algorithm: str | None,
    wavelength: str | None,
    root: int | None,
    size_bytes: int | None = None,
) -> tuple[Plan, str]:
    """The plan that the options ask for, and a note on the algorithm where it was not named."""
    import opticoll
    from opticoll import registry

    kind = _core.collective_kind(collective)
    note = ""
    if algorithm is None:
        algorithm = registry.default_algorithm(kind)
        note = f" (not named: the first listed for {kind})"
    machine = need_fabric(fabric)
    with users_print_to_stderr():
        made = opticoll.plan(
            kind,
            machine,
            algorithm,
            size=size_bytes,
            root=0 if root is None else root,
            wavelength="auto" if wavelength is None else wavelength,
        )
    return made, note


def obtain(
    source: str,
    fabric: str | None,
    algorithm: str | None,
    wavelength: str | None,
    root: int | None,
) -> tuple[Plan, str]:
    """The plan in a file, or the one that a collective and options ask for; and a note on it."""
    import opticoll
    from opticoll import config

    if not names_plan_file(source):
        try:
            kind = _core.collective_kind(source)
        except errors.CollectiveError as error:
            raise errors.CollectiveError(f"{error}; nor is there such a plan file") from error
        return build(kind, fabric, algorithm, wavelength, root)
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
    return made, ""


def users_print_to_stderr() -> AbstractContextManager[object]:
    """While a user's own algorithm runs: standard output is for results only."""
    return redirect_stdout(sys.stderr)


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


def size_of(made: Plan, size: str | None) -> int:
    """The size in bytes: as asked for, else as in the plan, else the default."""
    if size is not None:
        return _core.parse_size(size)
    return _core.parse_size(DEFAULT_SIZE) if made.size_bytes is None else made.size_bytes


def compose_scenario(
    source: str,
    fabric: str | None,
    algorithms: str | None,
    size: str | None,
    sizes: str | None,
    ranks: str | None,
    wavelengths: str | None,
    policy: str | None,
    simulator: str | None,
    wavelength: str | None,
    root: int | None,
) -> Scenario:
    """The comparison that a scenario file or a collective asks for; options win over the file."""
    from dataclasses import replace

    from opticoll import config

    if size is not None and sizes is not None:
        raise errors.UsageError("--size and --sizes are both given; give one of them")
    sizes = sizes if size is None else size
    if config.is_yaml(source):
        scenario = config.read_scenario(source)
        if fabric is not None:
            scenario = replace(scenario, fabric=config.parse_fabric(fabric))
    else:
        scenario = config.Scenario(
            collective=_core.collective_kind(source),
            fabric=need_fabric(fabric),
            sizes=[_core.parse_size(DEFAULT_SIZE)],
        )
    given: dict[str, Any] = {
        "algorithms": None if algorithms is None else config.split_algorithms(algorithms),
        "sizes": None if sizes is None else config.split_sizes(sizes),
        "ranks": None if ranks is None else config.split_counts("--ranks", ranks),
        "wavelengths": (
            None if wavelengths is None else config.split_counts("--wavelengths", wavelengths)
        ),
        "policy": policy,
        "simulator": simulator,
        "wavelength": wavelength,
        "root": root,
    }
    return replace(scenario, **{key: value for key, value in given.items() if value is not None})
