"""Views: the kinds of figures that show a plan.

They are chosen without matplotlib, so that commands which draw no figure need not load it.
"""

from opticoll._core import Fabric, Plan
from opticoll.outputs.lights import joins_servers

VIEWS = {
    "direction": ("ring", "is a ring of light"),
    "fibre": ("fabric", "is a graph of fibres"),
    "plane": ("grid", "is a grid of tunable circuits"),
    "source_port": ("ports", "has ports with lightpaths"),
}
"""By field of a plan's light: the default view, and the end of a sentence about the fabric."""

OVER_TIME = ("ports", "configurations", "space_time", "trees")
"""Views that show all slots."""

ELECTRICAL = ("fabric", "is an electrical fabric without light")
SLOTS = ("space_time", "has light in slots")

MAX_SLOTS = 9
"""Maximum number of slots in a figure, with a panel per slot."""

USUAL_LIGHTPATHS = 200
"""Maximum number of lightpaths of a slot that are easy to tell apart."""

MAX_MARKED = 300
"""Maximum number of vertices of a figure that shows unused links."""


def has_fibres(machine: Fabric) -> bool:
    """Returns whether a fabric is a graph of fibres, whose lightpaths name their routes."""
    fields = machine.light_fields
    return "fibre" in fields and "direction" not in fields


def is_usual(plan: Plan, slot: int | None = None) -> bool:
    """Returns whether a figure of a slot, or of all slots, is easy to read.

    It then has few panels, few vertices, and few lightpaths in each panel.
    """
    slots = range(plan.slots) if slot is None else range(slot, min(slot + 1, plan.slots))
    is_small = 0 < len(slots) <= MAX_SLOTS and plan.fabric.ranks <= MAX_MARKED
    return (
        is_small
        and all(len(plan.slot_columns(one)["transfer"]) <= USUAL_LIGHTPATHS for one in slots)
        and 0 < len(plan.fabric.drawing["places"]) <= MAX_MARKED
    )


def views_of(plan: Plan, slot: int | None = None) -> tuple[tuple[str, ...], str]:
    """Returns the views of a plan, default first, and the end of a sentence about its fabric.

    On a graph of fibres, the default is the view `fabric` if the lightpaths of `slot`, or of all
    slots, are easy to tell apart.
    """
    fabric = plan.fabric
    if joins_servers(fabric):
        return ("space_time",), "joins servers by light"
    lit = (view for field, view in VIEWS.items() if field in fabric.light_fields)
    usual, about = next(lit, ELECTRICAL if fabric.electrical else SLOTS)
    views = (usual,) if usual in OVER_TIME else (usual, "space_time")
    if usual == "ports":
        views = ("ports", "configurations")
    if has_fibres(fabric) and not is_usual(plan, slot):
        views = views[::-1]
    return (*views, "trees") if fabric.electrical else views, about
