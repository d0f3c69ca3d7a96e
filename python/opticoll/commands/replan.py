"""Command `replan`: a new plan for a damaged fabric, compared with the plan before the failure.

>>> import opticoll
>>> plan = opticoll.plan("all_reduce", "wss_grid:rows=4,columns=4", "halving_doubling", size="1MB")
>>> anew = opticoll.replan(plan, "dead_transceivers=5.row", "auto")
>>> anew.violations, anew.slowdown > 1
([], True)
"""

from collections.abc import Iterator
from dataclasses import MISSING, dataclass

from opticoll._core import Fabric, Plan
from opticoll._core import replan as core_replan
from opticoll.cli.arguments import Source, obtain
from opticoll.cli.option_types import option
from opticoll.cli.runner import Command, on_command_line, plan_file
from opticoll.errors import OpticollError
from opticoll.inputs import failures
from opticoll.inputs.demands import size_of
from opticoll.inputs.fabric_files import need_fabric
from opticoll.inputs.imported import moved
from opticoll.names import algorithm_spelling
from opticoll.outputs.circuit_switches import RematchedRow, change_lines, fibres, rematched
from opticoll.outputs.layout import PICOSECONDS, align, human_seconds, human_time
from opticoll.outputs.plan_row import PlanRow, measured, plan_summary
from opticoll.outputs.records import record_row
from opticoll.outputs.rows import OMITTED, hidden, means
from opticoll.outputs.units import Count, Number, Picoseconds, Seconds
from opticoll.outputs.watch import Watch


@dataclass(frozen=True, kw_only=True)
class Replan(Source):
    """Parameters of `opticoll replan`."""

    failed: list[str] = option(
        "Failure, one option for each: a part such as 'rank 5', 'NIC of rank 3', 0>1 or "
        "0-1@25Gb/s; members=0-11 for the remaining ranks; dead=5 for a wavelength; dead_ports=3.0 "
        "or 3.0@50Gb/s on a circuit_switch; dead_transceivers=5.row, 5.row@25Gb/s, "
        "dead_ports=row3.2 or leaving=5+8-11 on a wss_grid",
        default=MISSING,
    )
    instead: str | None = option(
        "Algorithm after the failures (default: --algorithm, or else auto)"
    )

    def __post_init__(self) -> None:
        """Joins the failures to one text; Python callers may pass a list."""
        super().__post_init__()
        stated = [self.failed] if isinstance(self.failed, str) else self.failed
        object.__setattr__(self, "failed", [failures.joined(stated)])


def _check(failed: str, fabric: Fabric) -> None:
    """Raises an error for parts that the fabric does not have, before any planning.

    Raises
    ------
    FabricError
        There is no such part, or no ranks remain.
    """
    failures.check_form([failed], fabric.family)
    fabric_options = record_row("fabrics", fabric.family).options
    names = {option["name"] for option in fabric_options} & {"without", "degraded"}
    for key in names & (options := failures.options_of([failed])).keys():
        earlier = fabric.option(key)
        fabric.with_options(
            **{key: options[key] if earlier is None else f"{earlier}+{options[key]}"}
        )


NO_SWITCHES = "if no circuit switches join parts of the fabric"


class ReplanRow(PlanRow):
    """New plan after a failure, and the old plan that the new plan replaces."""

    failed: str = means("Failures, as given")
    before_fabric: str = means("Complete specification of the fabric before the failure")
    before_algorithm: str = means("Algorithm of the old plan")
    before_time_s: Seconds = means("Time of the old plan on the intact fabric")
    before_time_ps: Picoseconds = means("Exact value of the time, in picoseconds")
    old_plan_time_s: Seconds | None = means(
        "Time of the old plan on the damaged fabric",
        absent="the old plan is not valid on the damaged fabric",
    )
    slowdown: Number = means(
        "Time of the new plan divided by the time of the old plan; 1 if the old time is 0"
    )
    fibres_rematched: Count = means(
        "Number of fibres that circuit switches reconnect", omitted=NO_SWITCHES
    )
    rematched: list[RematchedRow] = means(
        "Circuit switches whose connections change", omitted=NO_SWITCHES
    )
    before: Plan = hidden(default=None)


def compute(parameters: Replan, watch: Watch) -> Iterator[ReplanRow]:
    """Plans on the damaged fabric, verifies the plan, and compares the times of both plans.

    Raises
    ------
    OpticollError
        The grid has no such place, the root has failed, or light can no longer reach some node.
    """
    settings = parameters.settings
    (failed,) = parameters.failed
    if parameters.fabric is not None:
        _check(failed, need_fabric(parameters.fabric))
    before = obtain(parameters, None, watch)
    if parameters.fabric is None:
        _check(failed, before.fabric)
    size_bytes = size_of(before, parameters.size, parameters.demand)
    instead = parameters.instead or parameters.algorithm or "auto"
    instead = algorithm_spelling(before.collective.kind, instead)
    plan, before_ps, after_ps = core_replan(before, failed, instead, size_bytes, **settings)
    row, _ = measured(plan, plan.verify(), size_bytes, settings)
    old_plan = _kept(before, plan.fabric)
    changes = rematched(before.fabric, plan.fabric)
    has_switches = plan.fabric.switch_ports > 0
    yield ReplanRow.of(
        row,
        failed=failed,
        before_fabric=before.fabric.spec,
        before_algorithm=before.algorithm,
        before_time_s=before_ps / PICOSECONDS,
        before_time_ps=before_ps,
        old_plan_time_s=old_plan.simulate(size_bytes, **settings).time_ps / PICOSECONDS
        if old_plan
        else None,
        before=before,
        slowdown=after_ps / before_ps if before_ps else 1.0,
        fibres_rematched=fibres(changes) if has_switches else OMITTED,
        rematched=changes if has_switches else OMITTED,
    )


def _kept(before: Plan, fabric: Fabric) -> Plan | None:
    """Returns the old plan on the damaged fabric; None if the plan is not valid there."""
    try:
        plan = moved(before, fabric)
    except OpticollError:
        return None
    return None if plan.verify() else plan


def _text(parameters: Replan, rows: list[ReplanRow]) -> str:
    """Returns the new plan as text, with the ratio of its time to the old plan's time."""
    (row,) = rows
    before, after = human_time(row.before_time_ps), human_time(row.time_ps)
    ranks_now, of = row.plan.collective.ranks, row.before.collective.ranks
    among = "" if ranks_now == of else f" among {ranks_now} of {of} ranks"
    facts = [
        ["failed", row.failed],
        ["before", f"{row.before_algorithm}: {before}"],
        [
            "old plan",
            "is not valid any more"
            if row.old_plan_time_s is None
            else f"{human_seconds(row.old_plan_time_s)} on the damaged fabric",
        ],
        ["now", f"{row.chosen}: {after}{among}, {row.slowdown:.4g} times as long"],
    ]
    if row.slowdown < 1 and ranks_now == of:
        facts.append(["", "the old plan was made for other settings, or was not the fastest"])
    parts = [align(facts), plan_summary(row.plan, row)]
    if row.plan.fabric.switch_ports:
        parts.insert(1, change_lines(row.rematched, len(row.plan.fabric.switches)))
    return "\n\n".join(parts)


COMMAND = Command(
    name="replan",
    example="opticoll replan all_reduce --fabric wss_grid:rows=4,columns=4 --failed leaving=5",
    parameters=Replan,
    rows=ReplanRow,
    compute=compute,
    text=_text,
    progress_label="planning",
    shape="row",
    files=(plan_file("File for the plan; the ending .zst compresses it"),),
)
command_line = on_command_line(COMMAND)
