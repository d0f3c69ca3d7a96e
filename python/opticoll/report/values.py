"""Plans and outcomes as plain values, for JSON.

>>> import opticoll
>>> from opticoll.report.values import slot_values
>>> plan = opticoll.plan("all_gather", "wdm_ring:ranks=3,wavelengths=1", "ring")
>>> slot_values(plan, 0)["lightpaths"][0]["action"]
'copy'
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

from opticoll.report.link_use import link_use_rows

if TYPE_CHECKING:
    from opticoll._core import Fabric, Outcome, Plan
    from opticoll.study.comparison import Row

__all__ = ["LightpathRow", "SlotRow", "outcome_values", "slot_values", "ways_out"]

DIRECTIONS = ("cw", "ccw")
PLANES = ("row", "column")
ACTIONS = ("copy", "reduce")
TUNED = (
    *("control_messages", "control_messages_per_rank", "revocations", "slow_switch_ps"),
    *(f"path_{what}_ps" for what in ("transmission", "tuning", "control", "latency", "waiting")),
)
PACKET_COUNTS = (
    *("minimal_chunks", "detoured_chunks", "bytes_sent", "bytes_delivered"),
    *("router_forwards", "events"),
)


class LightpathRow(TypedDict):
    """A transfer: `chunks` holds the first chunk and how many there are.

    Fields of light, as the fabric names them, stand beside these.
    """

    transfer: int
    action: str
    chunks: list[int]
    source: int
    destination: int


class SlotRow(TypedDict):
    """A plan's head and the lightpaths of one of its slots; what `opticoll show --json` prints."""

    collective: str
    algorithm: str
    chosen: str
    fabric: str
    ranks: int
    wavelengths: int | None
    steps: int
    step_slots: list[int]
    transfers: int
    slot: int
    lightpaths: list[dict[str, Any]]


def ways_out(fabric: Fabric) -> tuple[str, ...]:
    """The ways to leave a rank, as the rows of an outcome's links are called."""
    if fabric.path_ports is not None:
        return tuple(f"port {port}" for port in range(fabric.path_ports))
    return DIRECTIONS if fabric.ring else PLANES


def slot_values(plan: Plan, slot: int) -> SlotRow:
    """The head of a plan and the lightpaths of a slot, in the order of the schedule."""
    columns = plan.slot_columns(slot)
    lit = plan.fabric.has_wavelengths
    light = [name for name, _, _ in plan.fabric.light_fields]
    return SlotRow(
        collective=plan.collective.kind,
        algorithm=plan.asked,
        chosen=plan.algorithm,
        fabric=plan.fabric.spec,
        ranks=plan.fabric.ranks,
        wavelengths=plan.fabric.wavelengths if lit else None,
        steps=plan.slots,
        step_slots=plan.step_slots,
        transfers=len(plan),
        slot=slot,
        lightpaths=[
            {
                **LightpathRow(
                    transfer=int(transfer),
                    action=ACTIONS[columns["action"][index]],
                    chunks=[int(columns["chunk"][index]), int(columns["count"][index])],
                    source=int(columns["source"][index]),
                    destination=int(columns["destination"][index]),
                ),
                **light_values(plan.fabric, {name: columns[name][index] for name in light}),
            }
            for index, transfer in enumerate(columns["transfer"])
        ],
    )


def light_values(fabric: Fabric, fields: dict[str, int]) -> dict[str, int | str]:
    """Fields of light in words where their values have names, else as numbers."""
    names = {name: values for name, _, values in fabric.light_fields}
    return {
        name: names[name][value] if value < len(names[name]) else int(value)
        for name, value in fields.items()
    }


def outcome_values(plan: Plan, row: Row, outcome: Outcome, per: str | None) -> dict[str, object]:
    """What `opticoll simulate --json` prints: the row of the plan, and where its time goes.

    A formula gives the total only: the rest is None or empty.

    `per` (step, link, rank or time) adds `per_step`, `per_link`, `per_rank` or `per_time`: a list
    of objects.
    """
    formula = outcome.simulator == "closed_form"
    values: dict[str, object] = {
        **row,
        "reconfigurations": None if formula else outcome.reconfigurations,
        "utilisation": None if formula else outcome.utilisation,
        "critical_path": [
            {name: row[name] for name in ("transfer", "start_ps", "end_ps")}
            for row in outcome.critical_path
        ],
    }
    if outcome.start is not None:
        values |= flow_values(plan, outcome)
    values["packets"] = packet_values(outcome) if "latencies" in outcome.tables else None
    values |= {name: outcome.totals[name] for name in TUNED if name in outcome.totals}
    if per == "step":
        values["per_step"] = [{"slot": slot, **row} for slot, row in enumerate(outcome.slots)]
    elif per == "link" and outcome.start is not None:
        shown = ("busy_ps", "bytes", "utilisation")
        values["per_link"] = [
            {"link": name, **{column: row[column] for column in shown}}
            for name, row in zip(plan.fabric.link_names, outcome.links, strict=True)
        ]
    elif per == "link":
        rows = iter(outcome.links)
        values["per_link"] = [
            {"rank": rank, "direction": direction, **next(rows)}
            for direction in ways_out(plan.fabric)
            for rank in range(outcome.links.shape[-1])
        ]
    elif per == "time":
        values["per_time"] = link_use_rows(plan, outcome)
    elif per == "rank":
        shown = ("sent_bytes", "received_bytes", "finish_ps")
        values["per_rank"] = [
            {"rank": rank, **{column: row[column] for column in shown}}
            for rank, row in enumerate(outcome.ranks)
        ]
    return values


def flow_values(plan: Plan, outcome: Outcome) -> dict[str, object]:
    """What a simulation of flows adds: the critical path with its links."""

    def name(link: int | None) -> str | None:
        return None if link is None else plan.fabric.link_name(link)

    return {
        "reconfigurations": None,
        "critical_path": [
            {**row, "bottleneck": name(row["bottleneck"])} for row in outcome.critical_path
        ],
        "most_loaded_link": name(outcome.most_loaded_link),
    }


def packet_values(outcome: Outcome) -> dict[str, object]:
    """What packets say beyond times of steps, links and ranks."""
    return {
        **{f"{row['of']}_latency": latency_values(row) for row in outcome.latencies},
        "mean_hops": outcome.mean_hops,
        "classes": {row.pop("class"): row for row in outcome.classes},
        **{name: outcome.totals[name] for name in PACKET_COUNTS},
    }


def latency_values(row: dict[str, Any]) -> dict[str, object]:
    """A distribution of times; percentiles by their number."""
    percentiles = (name for name in row if name.startswith("p"))
    return {
        **{name: row[name] for name in ("count", "mean_ps", "max_ps")},
        "percentiles_ps": {
            name[1:].removesuffix("_ps").replace("_", "."): row[name] for name in percentiles
        },
    }
