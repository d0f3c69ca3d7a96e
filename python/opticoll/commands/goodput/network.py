"""Fabric of a run: its devices, units and spares, and the failure rates of its parts.

>>> from opticoll import Fabric
>>> slice_of_cubes = Fabric("ocs_torus:dims=8x8x8,spares=2")
>>> unit_of(slice_of_cubes), spares_of(slice_of_cubes)
(64, 2)
>>> unit_of(Fabric("torus:dims=8x8x8")), spares_of(Fabric("torus:dims=8x8x8"))
(8, 0)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from opticoll._core import Fabric
from opticoll.errors import UsageError
from opticoll.inputs.failure_rates import HOURS_OF_FIT, FailureRates, Part, given, replaced_kinds
from opticoll.outputs.bill import BillRow, Catalogue, bill
from opticoll.outputs.fabric_names import defaults

UNIT = 8
"""Devices of a unit if no fabric states its servers or cubes: GPUs of a server of the table."""


@dataclass(frozen=True)
class Network:
    """Failure rates of a run on a fabric, and the parts that they come from."""

    fabric: Fabric
    rates: FailureRates
    parts: list[str]
    """Parts of the fabric that have a failure rate."""
    replaced: list[str]
    """Kinds of the table of rates that `parts` replace."""
    left_out: list[str]
    """Parts of the fabric that have no failure rate."""
    sources: list[str]


def unit_of(fabric: Fabric) -> int:
    """Returns the number of devices of a server or of a cube; otherwise `UNIT`."""
    boxes, cube = fabric.option("boxes"), fabric.option("cube")
    if boxes is not None:
        return fabric.intact.ranks // int(boxes)
    # A slice may be smaller than a cube.
    return UNIT if cube is None else min(int(cube) ** 3, fabric.intact.ranks)


def has_spares(fabric: Fabric) -> bool:
    """Returns whether spare units are an option of the fabric."""
    return "spares" in defaults(fabric.family)


def spares_of(fabric: Fabric) -> int | None:
    """Returns the number of spare units; None if there is one for every failure.

    Switches between the units may join any spare unit. Without such switches, no unit can take the
    place of another.
    """
    if has_spares(fabric):
        return int(fabric.option("spares") or 0)
    between = (name for name, _, _, ports, _ in fabric.bill if ports and name != "server_switch")
    return None if any(between) else 0


def with_spares(fabric: Fabric, spares: int | None, unit: int) -> Fabric:
    """Returns the fabric with as many spare units as the run has, if they are an option.

    Raises
    ------
    OpticollError
        The spare units of the fabric have another size, or do not fit on its switches.
    """
    if not has_spares(fabric) or spares is None:
        return fabric
    if spares and unit != unit_of(fabric):
        raise UsageError(
            f"--unit: {unit} differs from {unit_of(fabric)}, the size of the spare cubes of "
            f"{fabric.spec}; leave out --unit, or give --spares 0"
        )
    return fabric.with_options(spares=spares)


def network(
    fabric: Fabric,
    unit: int,
    values: Catalogue,
    table: str,
    rates: Sequence[str],
    switch: str | None = None,
) -> Network:
    """Returns the failure rates of the parts of a fabric, added to those of a table.

    The failures of all parts are divided equally among the devices, including those of spare units.
    A GPU is a device, and its rate is that of the table. `switch` replaces all packet switches, as
    in `list bom`.

    Raises
    ------
    OpticollError
        There is no such table, the file is invalid, or a rate is invalid.
    """
    whole = fabric.intact
    devices = whole.ranks + whole.idle_ranks + unit * int(whole.option("spares") or 0)
    parts = [
        row
        for row in bill(fabric, values, switch=switch)
        if isinstance(row, BillRow) and not row.component.startswith("gpu")
    ]
    per_device: dict[str, float] = {}
    for row in parts:
        if row.failures_fit is not None:
            rate = row.failures_fit / (devices * HOURS_OF_FIT * 3600)
            per_device[row.component] = per_device.get(row.component, 0.0) + rate
    found = given([], table)
    combined = given(rates, table, [Part(name, rate) for name, rate in per_device.items()])
    stated = {part.part for part in combined.parts}
    unknown = (row.component for row in parts if row.failures_fit is None)
    used = (
        f"{row.component}: {source}"
        for row in parts
        for source in row.sources
        if source.startswith("failure rate ")
    )
    return Network(
        fabric,
        combined,
        list(per_device),
        replaced_kinds(found, per_device),
        [name for name in dict.fromkeys(unknown) if name in per_device or name not in stated],
        list(dict.fromkeys(used)),
    )
