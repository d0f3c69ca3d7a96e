"""Names of algorithms, fabrics and so on, and the lookup of names as users write them.

The compiled core declares a record for each name: for each algorithm, fabric family, preset,
simulator, policy and so on.

>>> DEFAULT_ALGORITHM in algorithm_names("broadcast")
True
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, Literal

from opticoll import _core
from opticoll.errors import AlgorithmError, UsageError

Action = Literal["copy", "reduce", "multicast", "aggregate"]
"""Action of a transfer."""

ACTIONS: tuple[Action, ...] = ("copy", "reduce", "multicast", "aggregate")
"""Actions of transfers, in the order of their numbers in the columns of a plan."""

ADDS = (False, True, False, True)
"""Whether the destination adds the data to its own, for each action."""

DEFAULT_ALGORITHM = "auto"
"""Default algorithm: the fastest plan found for the size and the settings."""


def known_names(kind: str) -> list[str]:
    """Returns the names of all records of a kind, such as `collectives`.

    >>> known_names("policies")[0]
    'every_step'
    """
    return [record["name"] for record in _core.records(kind)]


def algorithm_names(collective: str, family: str | None = None) -> list[str]:
    """Returns the names of all algorithms of a collective.

    If `family` is a family of fabrics, the result omits algorithms that support only other
    families.
    """
    kind = _core.collective_kind(collective)
    of_kind = [record for record in _core.records("algorithms") if record["collective"] == kind]
    if family:
        of_kind = [
            record for record in of_kind if family in (record["family"] or family).split(", ")
        ]
    return [record["name"] for record in of_kind]


def plans_by_size(algorithm: str) -> bool:
    """Returns whether an algorithm makes different plans for different sizes or policies."""
    return (
        "<" in algorithm or canonical(algorithm.partition(":")[0], _planned_by_size()) is not None
    )


def takes_all_stripes(algorithm: str) -> bool:
    """Returns whether an algorithm has the option `stripes=all`; planners do not have it.

    >>> takes_all_stripes("ring"), takes_all_stripes("hierarchical")
    (True, False)
    """
    options = (
        option
        for record in _core.records("algorithms")
        if record["name"] == algorithm
        for option in record["options"]
    )
    return any(
        option["name"] == "stripes" and "all" in (option["range"] or "").split(", ")
        for option in options
    )


@cache
def _planned_by_size() -> tuple[str, ...]:
    """Returns the names of the algorithms whose plans depend on size and policy."""
    records = _core.records("algorithms")
    return tuple(record["name"] for record in records if record["depends_on_size"])


def has_root(collective: str) -> bool:
    """Returns whether a collective has a root."""

    def demands(root: int) -> list[tuple[int | None, int | None]]:
        demanded = _core.Collective(collective, 2, root=root)
        chunks = range(demanded.chunks)
        return [(demanded.before(chunk), demanded.after(chunk)) for chunk in chunks]

    return demands(0) != demands(1)


def canonical(name: str, names: Iterable[str]) -> str | None:
    """Returns the name in `names` that equals `name` up to case, hyphens and underscores, or None.

    >>> canonical("WDM-Ring", ["wdm_ring"])
    'wdm_ring'
    """
    wanted = _letters(name)
    return next((known_name for known_name in names if _letters(known_name) == wanted), None)


def resolve(name: str, candidates: Iterable[str], problem: str = "there is no") -> str:
    """Returns the name in `candidates` that equals `name` up to case, hyphens and underscores.

    Raises
    ------
    UsageError
        `candidates` has no such name; the message begins with `problem`.
    """
    names = list(candidates)
    match = canonical(name, names)
    if match is None:
        raise UsageError(f"{problem} `{name}`{nearest(name, names)}")
    return match


def algorithm_spelling(collective: str, spec: str) -> str:
    """Returns `spec` with the algorithm's name as its record spells it.

    A name without a record stays as it is.

    >>> algorithm_spelling("all_gather", "Bruck<80KiB, Ring")
    'bruck<80KiB,ring'

    Raises
    ------
    AlgorithmError
        The numbers of an option are separated by commas, but commas separate options.
    """
    small, less, larger = spec.partition("<")
    size, comma, large = larger.partition(",")
    if comma:
        parts = [algorithm_spelling(collective, part) for part in (small, large)]
        return f"{parts[0]}{less}{size.strip()},{parts[1]}"
    numbers = re.search(r"=([0-9]+(?:,[0-9]+)+)", spec)
    if numbers is not None:
        fixed = numbers[1].replace(",", "x")
        raise AlgorithmError(f"`{spec}`: a comma starts another option; write {fixed}")
    name, colon, options = spec.strip().partition(":")
    return f"{canonical(name, algorithm_names(collective)) or name}{colon}{options}"


def nearest(name: str, candidates: Iterable[str], otherwise: str | None = None) -> str:
    """Returns `; did you mean X?` if some candidate is similar.

    Otherwise returns the text `otherwise`, by default a list of the candidates.
    """
    import difflib

    names = list(candidates)
    near = difflib.get_close_matches(name.lower(), names, n=1)
    if near:
        return f"; did you mean `{near[0]}`?"
    return f"; known are {', '.join(names)}" if otherwise is None else otherwise


def _letters(name: str) -> str:
    return name.replace("-", "").replace("_", "").lower()


def defaults(*kinds: str) -> dict[str, str]:
    """Returns the defaults of all records of `kinds` that have a default, by the record's name."""
    return {
        record["name"]: fact["meaning"]
        for kind in kinds
        for record in _core.records(kind)
        for fact in record["options"]
        if fact["name"] == "default"
    }


def without_defaults(kind: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the settings of a kind that differ from their defaults.

    >>> without_defaults("settings", {"routing": "minimal", "packet": "4KiB"})
    {'packet': '4KiB'}
    """
    usual = defaults(kind)
    return {name: value for name, value in settings.items() if str(value) != usual.get(name)}
