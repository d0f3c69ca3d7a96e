"""Circuit switches that connect parts of a fabric, and changes of their connections.

>>> from opticoll import Fabric
>>> whole = Fabric("ocs_torus:dims=4x4x8,spares=1")
>>> failed = Fabric("ocs_torus:dims=4x4x8,spares=1,without=cube 0")
>>> changes = rematched(whole, failed)
>>> len(changes), changes[0].now, fibres(changes)
(48, [CircuitRow(ports=['cube 2 +x', 'cube 2 -x'])], 96)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Annotated, Any, TypeVar

from opticoll._core import Fabric
from opticoll.outputs.layout import align, and_more, plural
from opticoll.outputs.rows import Length, Row, means

Of = TypeVar("Of")

MAX_SETS = 12
"""Maximum number of groups of equal switches in the text output."""

MAX_CIRCUITS = 4
"""Maximum number of circuits of a switch in the text output."""


class CircuitRow(Row):
    """A circuit: two ports that a switch joins, for light in both directions."""

    ports: Annotated[list[str], Length(2)] = means(
        "Ports, each named by the fibre that leads to it"
    )


class SwitchRow(Row):
    """A circuit switch, and the ports that it joins."""

    name: str = means("Name of the switch: its axis, and the place of its fibres on a face")
    circuits: list[CircuitRow] = means("Circuits of the switch")


class RematchedRow(Row):
    """A circuit switch whose connections change."""

    name: str = means("Name of the switch: its axis, and the place of its fibres on a face")
    before: list[CircuitRow] = means("Circuits that the switch no longer has")
    now: list[CircuitRow] = means("Circuits that replace them")


def switches(fabric: Fabric) -> list[SwitchRow]:
    """Returns all circuit switches of a fabric, ordered by number."""
    return [
        SwitchRow(name=name, circuits=[_circuit(pair) for pair in joined])
        for name, joined in fabric.switches
    ]


def rematched(before: Fabric, now: Fabric) -> list[RematchedRow]:
    """Returns the switches whose connections differ between two fabrics with the same switches."""
    changes = []
    for (name, earlier), (_, later) in zip(before.switches, now.switches, strict=True):
        gone = [_circuit(pair) for pair in earlier if pair not in later]
        new = [_circuit(pair) for pair in later if pair not in earlier]
        if gone or new:
            changes.append(RematchedRow(name=name, before=gone, now=new))
    return changes


def fibres(changes: list[RematchedRow]) -> int:
    """Returns the number of fibres that the changes reconnect."""
    used = [
        {port for circuit in circuits for port in circuit.ports}
        for change in changes
        for circuits in (change.now, change.before)
    ]
    return sum(len(now - before) for now, before in zip(used[::2], used[1::2], strict=True))


def switch_lines(fabric: Fabric) -> str:
    """Returns the switches of a fabric as text; switches with equal connections share a line."""
    rows = switches(fabric)
    ports = plural(fabric.switch_ports, "port")
    cells = [
        [_names([row.name for row in same]), _words(circuits)]
        for circuits, same in _alike(rows, lambda row: row.circuits)
    ]
    head = f"{len(rows)} circuit switches, {ports} of each in use"
    return "\n".join([head, _table(cells, ["switches", "joined ports"])])


def change_lines(changes: list[RematchedRow], count: int) -> str:
    """Returns changed switches as text; switches with equal changes share a line.

    `count` is the total number of switches.
    """
    if not changes:
        return f"none of {count} circuit switches changes"
    cells = [
        [_names([row.name for row in same]), _words(before), _words(now)]
        for (before, now), same in _alike(changes, lambda row: (row.before, row.now))
    ]
    moved = plural(fibres(changes), "fibre")
    head = f"{len(changes)} of {count} circuit switches change and reconnect {moved}"
    return "\n".join([head, _table(cells, ["switches", "joined before", "joined now"])])


def _alike(rows: Sequence[Of], key: Callable[[Of], Any]) -> list[tuple[Any, list[Of]]]:
    """Groups consecutive rows that have the same key."""
    return [(same_key, list(same)) for same_key, same in groupby(rows, key)]


def _circuit(ports: tuple[str, str]) -> CircuitRow:
    return CircuitRow(ports=list(ports))


def _names(names: list[str]) -> str:
    if len(names) == 1:
        return names[0]
    return f"{names[0]} to {names[-1].removeprefix('switch ')} ({len(names)})"


def _words(circuits: list[CircuitRow]) -> str:
    words = "; ".join(" - ".join(circuit.ports) for circuit in circuits[:MAX_CIRCUITS])
    more = len(circuits) - MAX_CIRCUITS
    return f"{words}; {more} more" if more > 0 else words or "nothing"


def _table(cells: list[list[str]], heads: list[str]) -> str:
    table = align(cells[:MAX_SETS], heads)
    return "\n".join([table, *and_more(len(cells), MAX_SETS)])
