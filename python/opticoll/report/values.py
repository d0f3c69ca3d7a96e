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
    from opticoll._core import Distribution, Fabric, Outcome, Packets, Plan
    from opticoll.study.comparison import Row

__all__ = ["LightpathRow", "SlotRow", "outcome_values", "slot_values", "ways_out"]

DIRECTIONS = ("cw", "ccw")
PLANES = ("row", "column")
ACTIONS = ("copy", "reduce")


class LightpathRow(TypedDict):
    """A lightpath: `chunks` holds the first chunk and how many there are.

    `ports` are those of source and destination, on a grid of light paths.
    """

    transfer: int
    action: str
    chunks: list[int]
    source: int
    destination: int
    direction: str | None
    fibre: int | None
    wavelength: int | None
    ports: list[int] | None


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
    lightpaths: list[LightpathRow]


def ways_out(fabric: Fabric) -> tuple[str, ...]:
    """The ways to leave a rank, as the rows of an outcome's links are called."""
    if fabric.path_ports is not None:
        return tuple(f"port {port}" for port in range(fabric.path_ports))
    return DIRECTIONS if fabric.ring else PLANES


def slot_values(plan: Plan, slot: int) -> SlotRow:
    """The head of a plan and the lightpaths of a slot, in the order of the schedule."""
    columns = plan.slot_columns(slot)
    lit, light_paths = plan.fabric.has_wavelengths, plan.fabric.path_ports is not None
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
            LightpathRow(
                transfer=int(transfer),
                action=ACTIONS[columns["action"][index]],
                chunks=[int(columns["chunk"][index]), int(columns["count"][index])],
                source=int(columns["source"][index]),
                destination=int(columns["destination"][index]),
                direction=DIRECTIONS[columns["direction"][index]] if plan.fabric.ring else None,
                fibre=int(columns["fibre"][index]) if lit else None,
                wavelength=int(columns["wavelength"][index]) if lit else None,
                ports=[int(columns["fibre"][index]), int(columns["wavelength"][index])]
                if light_paths
                else None,
            )
            for index, transfer in enumerate(columns["transfer"])
        ],
    )


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
            {"transfer": transfer, "start_ps": start, "end_ps": end}
            for transfer, start, end in outcome.critical_path
        ],
    }
    if outcome.start is not None:
        values |= flow_values(plan, outcome)
    values["packets"] = None if outcome.packets is None else packet_values(outcome.packets)
    if outcome.tuned is not None:
        values |= tuned_values(outcome.tuned)
    if per == "step":
        columns = outcome.slots
        values["per_step"] = [
            {"slot": slot, **{name: int(column[slot]) for name, column in columns.items()}}
            for slot in range(len(columns["start_ps"]))
        ]
    elif per == "link" and outcome.start is not None:
        columns = outcome.links
        values["per_link"] = [
            {
                "link": name,
                "busy_ps": int(columns["busy_ps"][link]),
                "bytes": int(columns["bytes"][link]),
                "utilisation": float(columns["utilisation"][link]),
            }
            for link, name in enumerate(plan.fabric.link_names)
        ]
    elif per == "link":
        columns = outcome.links
        ways = ways_out(plan.fabric)
        values["per_link"] = [
            {
                "rank": rank,
                "direction": direction,
                **{name: int(column[way, rank]) for name, column in columns.items()},
            }
            for way, direction in enumerate(ways)
            for rank in range(columns["bytes"].shape[1])
        ]
    elif per == "time":
        values["per_time"] = link_use_rows(plan, outcome)
    elif per == "rank":
        columns = outcome.ranks
        values["per_rank"] = [
            {"rank": rank, **{name: int(column[rank]) for name, column in columns.items()}}
            for rank in range(len(columns["finish_ps"]))
        ]
    return values


def tuned_values(tuned: dict[str, Any]) -> dict[str, object]:
    """What tuning and control cost on a grid of tunable circuits, control messages in all."""
    messages = tuned["messages"]
    return {
        "control_messages": int(messages.sum()),
        "control_messages_per_rank": int(messages.max()) if len(messages) else 0,
        **{name: value for name, value in tuned.items() if name != "messages"},
    }


def flow_values(plan: Plan, outcome: Outcome) -> dict[str, object]:
    """What a simulation of flows adds: the critical path with its links."""

    def name(link: int | None) -> str | None:
        return None if link is None else plan.fabric.link_name(link)

    links = outcome.path_bottlenecks
    path = zip(outcome.critical_path, links, strict=not outcome.packets)
    return {
        "reconfigurations": None,
        "critical_path": [
            {"transfer": transfer, "start_ps": start, "end_ps": end, "bottleneck": name(link)}
            for (transfer, start, end), link in path
        ],
        "most_loaded_link": name(outcome.most_loaded_link),
    }


def packet_values(packets: Packets) -> dict[str, object]:
    """What packets say beyond times of steps, links and ranks."""
    return {
        "message_latency": latency_values(packets.message_latency),
        "background_latency": latency_values(packets.background_latency),
        "chunk_latency": latency_values(packets.chunk_latency),
        "mean_hops": packets.mean_hops,
        "classes": packets.classes,
        **packets.counts,
    }


def latency_values(latency: Distribution) -> dict[str, object]:
    """A distribution without its bins."""
    return {
        "count": latency["count"],
        "mean_ps": latency["mean_ps"],
        "max_ps": latency["max_ps"],
        "percentiles_ps": latency["percentiles_ps"],
    }
