"""The records of everything that has a name: what `opticoll list` prints.

Records are declared in the compiled core, one per algorithm, fabric family, preset, simulator,
policy and wavelength assignment; nothing here repeats them.

>>> from opticoll import registry
>>> registry.default_algorithm("broadcast") in registry.algorithm_names("broadcast")
True
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypedDict

from opticoll import _core
from opticoll.errors import UsageError

if TYPE_CHECKING:
    from opticoll._core import Record

__all__ = [
    "KINDS",
    "ListedRecord",
    "algorithm_names",
    "default_algorithm",
    "nearest",
    "records",
]


class ListedRecord(TypedDict):
    """A record together with what it is a record of."""

    kind: str
    name: str
    label: str
    summary: str
    citation: str
    options: list[dict[str, str]]
    collective: str | None


KINDS: dict[str, Callable[[], list[Record]]] = {
    "algorithms": _core.algorithms,
    "fabrics": _core.fabrics,
    "presets": _core.presets,
    "simulators": _core.simulators,
    "policies": _core.policies,
    "collectives": _core.collectives,
    "wavelengths": _core.wavelength_assignments,
}
"""What can be listed, and where its records come from."""


def records(kind: str) -> list[ListedRecord]:
    """Records of one kind (a key of `KINDS`), in the order of their declaration.

    Raises
    ------
    UsageError
        The kind is none of `KINDS`.
    """
    if kind not in KINDS:
        raise UsageError(f"nothing is listed as `{kind}`{nearest(kind, KINDS)}")
    return [
        ListedRecord(
            kind=kind,
            name=record["name"],
            label=record["label"],
            summary=record["summary"],
            citation=record["citation"],
            options=[{"name": name, "meaning": meaning} for name, meaning in record["options"]],
            collective=record["collective"],
        )
        for record in KINDS[kind]()
    ]


def algorithm_names(collective: str) -> list[str]:
    """Names of the algorithms of a collective, the default first."""
    kind = _core.collective_kind(collective)
    return [record["name"] for record in _core.algorithms() if record["collective"] == kind]


def default_algorithm(collective: str) -> str:
    """The algorithm that is used where none is named: the first record of the collective."""
    return algorithm_names(collective)[0]


def nearest(name: str, known: Iterable[str]) -> str:
    """`; did you mean X?` where a known name is near, otherwise a list of what is known."""
    import difflib

    names = list(known)
    near = difflib.get_close_matches(name, names, n=1)
    return f"; did you mean `{near[0]}`?" if near else f"; known are {', '.join(names)}"
