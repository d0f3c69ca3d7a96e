"""Cost of the loss of a unit: a plan made anew, its time, and the time until it can start."""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from typing import Annotated

from opticoll._core import Fabric, FabricError, parse_time, replan
from opticoll.commands.goodput.network import has_spares, unit_of
from opticoll.errors import OpticollError, UsageError
from opticoll.inputs import failures, request
from opticoll.inputs.demands import size_of
from opticoll.names import algorithm_spelling
from opticoll.outputs.fabric_names import defaults
from opticoll.outputs.layout import PICOSECONDS, duration
from opticoll.outputs.rows import Row, means
from opticoll.outputs.units import Bytes, Number, Positive, Seconds, Share, Unit
from opticoll.outputs.watch import Watch

Duration = Annotated[float, Unit("s", duration)]

RECONFIGURATION = ("reconfiguration", "slow_switch")
"""Options of fabrics that state the time to set the network for a new plan; the first applies."""


class ReplannedRow(Row):
    """Plan of a collective after the loss of a unit, and the speed of the run with this plan."""

    collective: str = means("Collective")
    size_bytes: Bytes = means("Size of the collective")
    failed: str = means("Failures, as options of the fabric")
    before_algorithm: str = means("Algorithm of the plan before the failure")
    before_time_s: Seconds = means("Time of the plan before the failure")
    algorithm: str = means("Algorithm of the new plan")
    time_s: Seconds = means("Time of the new plan on the damaged fabric")
    slowdown: Number = means("Time of the new plan divided by the time of the plan before")
    ranks: Positive = means("Number of ranks of the plan before the failure")
    ranks_left: Positive = means("Number of ranks of the new plan")
    share: Share = means("Share of an iteration in which devices wait for the network")
    speed: Share = means(
        "Speed of the run with the new plan: 1 / (1 + share (slowdown - 1)), times the share of "
        "ranks that are left; 1 at most"
    )
    reconfiguration_s: Duration | None = means(
        "Time to reconfigure the network", absent="the fabric states none"
    )
    planning_s: Duration | None = means(
        "Measured time to make the new plan, on this machine", absent="--setup states the time"
    )

    @property
    def setup_s(self) -> float:
        """Time to set up the network anew, with a new plan."""
        return (self.reconfiguration_s or 0.0) + (self.planning_s or 0.0)


def reconfiguration_s(fabric: Fabric) -> float | None:
    """Returns the time in which the fabric is reconfigured, or None if it states none.

    >>> reconfiguration_s(Fabric("circuit_switch:ranks=8,reconfiguration=1us+2us+3us"))
    6e-06
    """
    for name in RECONFIGURATION:
        value = fabric.option(name)
        if value is not None:
            parts = value.split("+") if isinstance(value, str) else [f"{value}ps"]
            return sum(map(parse_time, parts)) / PICOSECONDS
    return None


def unit_ranks(fabric: Fabric, unit: int) -> list[int]:
    """Returns the ranks of the first unit: those of cube 0, or the first ones.

    >>> unit_ranks(Fabric("ocs_torus:dims=4x4x8,cube=2"), 8)
    [0, 1, 4, 5, 16, 17, 20, 21]
    """
    if not has_spares(fabric) or unit != unit_of(fabric):
        return list(range(unit))
    cube = int(fabric.option("cube"))
    x, y, z = (int(side) for side in str(fabric.option("dims")).split("x"))
    box = itertools.product(*(range(min(cube, side)) for side in (z, y, x)))
    return [(above * y + behind) * x + beside for above, behind, beside in box]


def _loss(fabric: Fabric, unit: int) -> str:
    """Returns the loss of a unit as an option of the fabric."""
    if unit >= fabric.ranks:
        raise UsageError(
            f"--replan: no unit is left: {fabric.spec} has {fabric.ranks} ranks, and a unit has "
            f"{unit} devices; give --unit or --failed"
        )
    options = defaults(fabric.family)
    if "without" not in options and "dead_transceivers" not in options:
        known = failures.ways(fabric.family)
        advice = f"state a failure with --failed {known}" if known else "leave --replan out"
        raise UsageError(f"--replan: the ranks of a {fabric.family} cannot fail; {advice}")
    key = "without" if "without" in options else "leaving"
    return f"{key}={'+'.join(map(str, unit_ranks(fabric, unit)))}"


def replanned(
    fabric: Fabric,
    unit: int,
    wanted: str,
    *,
    size: str | None,
    failed: Sequence[str],
    share: float,
    measure: bool,
    watch: Watch,
) -> ReplannedRow:
    """Plans a collective, and plans it anew without a unit or with other failures.

    `wanted` is a collective or `collective=algorithm`. A spare unit restores the fabric, so the
    failure is that of a fabric without spares. The planning time is measured only on demand,
    because it differs from run to run.

    Raises
    ------
    OpticollError
        A name or a failure is invalid, or the ranks of the fabric cannot leave.
    """
    if has_spares(fabric):
        fabric = fabric.with_options(spares=0)
    kind, equals, algorithm = wanted.partition("=")
    before = request.read(kind, fabric, algorithm if equals else None, size=size).plan(
        watch.try_candidate
    )
    size_bytes = size_of(before, size, None)
    failures.check_form(failed, fabric.family)
    loss = failures.joined(failed) if failed else _loss(fabric, unit)
    name = algorithm_spelling(before.collective.kind, algorithm or "auto")
    began = time.perf_counter()
    try:
        after, before_ps, after_ps = replan(before, loss, name, size_bytes)
    except FabricError as error:
        if failed:
            raise
        raise UsageError(
            f"--replan: {fabric.family} cannot lose the ranks of a unit ({error}); state a failure "
            "with --failed"
        ) from error
    # Microseconds, so that the row's command can state the time exactly.
    planning_s = round(time.perf_counter() - began, 6)
    violations = after.verify()
    if violations:
        raise OpticollError(f"--replan: the new plan is not valid: {violations[0]}")
    slowdown = after_ps / before_ps if before_ps else 1.0
    ranks, left = before.collective.ranks, after.collective.ranks
    return ReplannedRow(
        collective=before.collective.kind,
        size_bytes=size_bytes,
        failed=loss,
        before_algorithm=before.algorithm,
        before_time_s=before_ps / PICOSECONDS,
        algorithm=after.algorithm,
        time_s=after_ps / PICOSECONDS,
        slowdown=slowdown,
        ranks=ranks,
        ranks_left=left,
        share=share,
        speed=min(1.0, left / ranks / (1 + share * (slowdown - 1))),
        reconfiguration_s=reconfiguration_s(fabric),
        planning_s=planning_s if measure else None,
    )
