"""Content of a plan's page: slots, times of messages, and the reasons why messages wait.

>>> import opticoll
>>> plan = opticoll.plan("all_gather", "wdm_ring:ranks=4,wavelengths=1", "ring")
>>> shown = content(plan, 1024, plan.simulate(1024))
>>> shown["view"], len(shown["slots"]), shown["messages"]["source"][:4]
('ring', 3, [0, 1, 2, 3])
>>> shown["waits"]["for"][0], shown["waits"]["for"][-1], shown["waits"]["brought"][-1]
('slot', 'data', 6)
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opticoll._core import BESIDE, CONVERTED, Outcome, Plan
from opticoll.names import ACTIONS
from opticoll.outputs.layout import PICOSECONDS
from opticoll.outputs.views import has_fibres
from opticoll.plot import style
from opticoll.plot.fibres import Lanes, lit
from opticoll.plot.lightpaths import lightpaths
from opticoll.plot.vertices import idle_noun

MAX_TRANSFERS = 40_000
"""Maximum number of transfers in a page; the page shows only the first slots of larger plans."""

MAX_VERTICES = 600
"""Maximum number of vertices of a drawn graph; larger graphs become ranks on a circle."""

MAX_TRACKED_PAIRS = 4_000_000
"""Maximum number of (rank, chunk) pairs for which the delivering transfer is recorded."""

MAX_SIDES = (620, 420)
"""Maximum width and height in points of a drawn graph of fibres, without its margins."""

MAX_UNIT = 110
"""Maximum length in points of a unit of the positions."""

Columns = dict[str, NDArray[np.int64]]


def content(plan: Plan, size_bytes: int, outcome: Outcome) -> dict[str, Any]:
    """Returns the content of a plan's page; times are in seconds and come from `outcome`."""
    columns, slots_shown = _columns(plan)
    start, end = _times(plan, size_bytes, outcome, columns)
    view = _view(plan)
    page: dict[str, Any] = {
        "view": view,
        "ranks": plan.fabric.ranks,
        "names": plan.fabric.vertex_names if plan.fabric.option("names") else None,
        "idle": plan.fabric.idle_ranks,
        "idle_noun": idle_noun(plan.fabric),
        "slots": _slots(plan, outcome, columns, slots_shown),
        "left_out": plan.slots - slots_shown,
        "messages": {
            name: columns[name].tolist()
            for name in ("source", "destination", "chunk", "count", "action", "slot")
        }
        | {"start": _seconds(start), "end": _seconds(end)},
        "waits": _waits(plan, columns, start, end),
        "light": _light(plan, columns),
    }
    if view == "ring":
        page["ring"] = _ring(plan, columns)
    if view == "grid":
        page["grid"] = {
            "rows": plan.fabric.option("rows"),
            "columns": plan.fabric.option("columns"),
            "nodes": [int(node) for node in plan.fabric.drawing["nodes"]],
        }
    if view == "fibres":
        page["fibres"] = _fibres(plan, slots_shown)
    if plan.fabric.electrical:
        page["graph"] = _graph(plan, columns, drawn=view == "graph")
    return page


def _view(plan: Plan) -> str:
    """Returns the kind of drawing of a plan.

    It is `ring`, `grid`, `graph` (with links), `fibres` (with lightpaths), or `circle` (of ranks).
    """
    if "direction" in plan.fabric.light_fields:
        return "ring"
    if "plane" in plan.fabric.light_fields:
        return "grid"
    ends = plan.fabric.link_ends
    if ends is None:
        return "circle"
    vertices = max(plan.fabric.ranks, *(1 + max(pair) for pair in ends or [(0, 0)]))
    # The layout of a large graph takes long.
    drawn = vertices <= MAX_VERTICES and 0 < len(plan.fabric.drawing["places"]) <= MAX_VERTICES
    if not drawn:
        return "circle"
    return "fibres" if has_fibres(plan.fabric) else "graph"


def _columns(plan: Plan) -> tuple[Columns, int]:
    """Returns the transfers of as many slots as fit the page, and the number of these slots."""
    parts, count, slots_shown = [], 0, 0
    every = plan.columns() if _has_relays(plan) else {}
    for slot in range(plan.slots):
        part = plan.hop_columns(slot) if every else plan.slot_columns(slot)
        for name in ("chunk", "count", "action") if every else ():
            part[name] = every[name][part["transfer"]]
        count += len(part["transfer"])
        if slots_shown and count > MAX_TRANSFERS:
            break
        parts.append(part)
        slots_shown += 1
    if not parts:
        names = (*plan.columns(), "transfer")
        return {name: np.zeros(0, np.int64) for name in names}, 0
    joined = {
        name: np.concatenate([part[name].astype(np.int64) for part in parts]) for name in parts[0]
    }
    slots = [np.full(len(part["transfer"]), slot) for slot, part in enumerate(parts)]
    return {**joined, "slot": np.concatenate(slots)}, slots_shown


def _has_relays(plan: Plan) -> bool:
    """Returns whether a transfer may have several hops, each with its own light and slot."""
    return len(plan.hop_columns()["transfer"]) > 0


def _times(
    plan: Plan, size_bytes: int, outcome: Outcome, columns: Columns
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Returns each transfer's start and end in picoseconds.

    On links, these are the times of the transfer's message. On circuits, a transfer starts after
    the reconfiguration of its slot, and ends with the slot.
    """
    slot = columns["slot"]
    if plan.fabric.electrical and outcome.simulator == "fluid":
        times = plan.message_times(size_bytes, outcome.start or "rendezvous")
        place = {transfer: (begin, finish) for transfer, begin, finish in times}
        # Transfers of a step with the same source and destination are one message, and so are all
        # transfers of a multicast or an aggregation.
        messages: dict[tuple[int, ...], tuple[int, int]] = {}
        names = ("source", "destination", "action", "chunk", "count", "transfer")
        ends = zip(slot.tolist(), *(columns[name].tolist() for name in names), strict=True)
        all_times = []
        for step, source, destination, action, chunk, count, transfer in ends:
            key = {
                "multicast": (step, action, source, chunk, count),
                "aggregate": (step, action, destination, chunk, count),
            }.get(ACTIONS[action], (step, action, source, destination))
            times_of_transfer = place.get(transfer)
            if times_of_transfer is not None:
                messages[key] = times_of_transfer
            all_times.append(times_of_transfer or messages.get(key, (0, 0)))
        pairs = np.array(all_times, np.int64).reshape(-1, 2)
        return pairs[:, 0], pairs[:, 1]
    slots = outcome.tables["slots"].columns
    begin = np.asarray(slots["start_ps"], np.int64) + np.asarray(
        slots["reconfiguration_ps"], np.int64
    )
    return begin[slot], np.asarray(slots["end_ps"], np.int64)[slot]


def _waits(
    plan: Plan, columns: Columns, start: NDArray[np.int64], end: NDArray[np.int64]
) -> dict[str, list[Any]]:
    """Returns for each transfer the reason of its wait (`for`) and two indices of other transfers.

    `data`: the transfer waits until transfer `brought` delivers the data. `sender`, `receiver`: it
    waits until this rank has finished transfer `busy`. `slot`: it waits for earlier slots. None: it
    starts at time 0. The index -1 in `brought` or `busy` means that there is no such transfer.
    """
    ranks, chunks = plan.fabric.ranks, plan.collective.chunks
    is_tracked = ranks * chunks <= MAX_TRACKED_PAIRS
    holder = np.full((ranks, chunks) if is_tracked else (1, 1), -1, np.int64)
    sent, received = [-1] * ranks, [-1] * ranks
    waits: dict[str, list[Any]] = {"for": [], "brought": [], "busy": []}
    source, destination, slots, transfers = (
        columns[name].tolist() for name in ("source", "destination", "slot", "transfer")
    )
    relayed = _has_relays(plan)
    first, last = columns["chunk"], columns["chunk"] + columns["count"]
    edges = np.searchsorted(columns["slot"], np.arange((slots[-1] if slots else -1) + 2)).tolist()
    steps = set(np.cumsum([0, *plan.step_slots]).tolist())
    hops: dict[int, int] = {}  # index of the last hop of each transfer, which feeds the next hop
    step: list[int] = []  # transfers of the current step, which deliver data when the step ends
    for slot, (begin, finish) in enumerate(pairwise(edges)):
        if slot in steps and is_tracked:
            for at in step:
                deliveries = holder[destination[at], first[at] : last[at]]
                deliveries[(deliveries < 0) | (end[deliveries] <= end[at])] = at
            step = []
        for at in range(begin, finish):
            brought = -1
            if is_tracked:
                deliveries = holder[source[at], first[at] : last[at]]
                brought = int(deliveries[np.argmax(np.where(deliveries < 0, -1, end[deliveries]))])
            brought = hops.get(transfers[at], brought)
            candidates = [
                (int(end[index]), kind, index)
                for kind, index in (
                    ("data", brought),
                    ("sender", sent[source[at]]),
                    ("receiver", received[destination[at]]),
                )
                if index >= 0 and end[index] <= start[at]
            ]
            # If several events are the latest, data take precedence over the sender, then the
            # receiver.
            _, kind, index = max(
                candidates, key=lambda candidate: candidate[0], default=(0, None, -1)
            )
            if not plan.fabric.electrical:
                just = brought >= 0 and slots[brought] == slot - 1
                kind, index = "data" if just else "slot", -1
            elif start[at] == 0:
                kind = None
            waits["for"].append(kind)
            waits["brought"].append(brought)
            waits["busy"].append(index if kind in ("sender", "receiver") else -1)
        for at in range(begin, finish):
            sent[source[at]] = received[destination[at]] = at
            if relayed:
                hops[transfers[at]] = at
        step += range(begin, finish)
    return waits


def _slots(
    plan: Plan, outcome: Outcome, columns: Columns, slots_shown: int
) -> list[dict[str, Any]]:
    """Returns for each slot its step, its times, and its number of messages."""
    steps = np.repeat(np.arange(len(plan.step_slots)), plan.step_slots)
    count = np.bincount(columns["slot"], minlength=slots_shown)
    table = outcome.tables["slots"].columns
    return [
        {
            "step": int(steps[slot]),
            "messages": int(count[slot]),
            "start": float(table["start_ps"][slot]) / PICOSECONDS,
            "reconfiguration": float(table["reconfiguration_ps"][slot]) / PICOSECONDS,
            "end": float(table["end_ps"][slot]) / PICOSECONDS,
        }
        for slot in range(slots_shown)
    ]


def _seconds(times_ps: NDArray[np.int64]) -> list[float]:
    return [float(f"{time / PICOSECONDS:.9g}") for time in times_ps.tolist()]


def _light(plan: Plan, columns: Columns) -> dict[str, Any] | None:
    """Returns the part of the light that is drawn in colours, and each transfer's light as text.

    This part is the wavelength or, on other fabrics, the port of the source.
    """
    fields = plan.fabric.light_fields
    if not fields:
        return None
    by = "wavelength" if "wavelength" in fields else "source_port"
    values = columns[by] if by in columns else columns[next(iter(fields))]
    lit = sorted({int(value) for value in values} - {CONVERTED})
    colours = style.channel_colours(len(lit))
    words: list[str] = []
    for row in zip(*(columns[name].tolist() for name in fields), strict=True):
        texts_of_row = []
        for (name, names), value in zip(fields.items(), row, strict=True):
            if name == "fibre" and plan.fabric.option("fibres") == 1:
                continue
            if value < len(names):
                texts_of_row.append(names[value])
            else:
                number = "chosen by converters" if value == CONVERTED else value
                if name.endswith("_port") and value == BESIDE:
                    number = "of packets"
                texts_of_row.append(f"{name.replace('_', ' ')} {number}")
        words.append(", ".join(texts_of_row))
    texts = list(dict.fromkeys(words))
    places = {text: place for place, text in enumerate(texts)}
    return {
        "name": by.replace("_", " "),
        "values": lit,
        "colours": colours,
        "of": [lit.index(int(value)) if int(value) in lit else -1 for value in values]
        if len(lit) < 64
        else np.searchsorted(lit, values).tolist(),
        "texts": texts,
        "places": [places[word] for word in words],
    }


def _ring(plan: Plan, columns: Columns) -> dict[str, Any]:
    """Returns the routes of lightpaths: direction, first rank, number of links, and channel."""
    slots = range(int(columns["slot"].max(initial=-1)) + 1)
    parts = [lightpaths(plan, slot) for slot in slots]
    lanes = np.concatenate([part.lane for part in parts]) if parts else np.zeros(0, np.int64)
    lit, lane = np.unique(lanes, return_inverse=True)
    return {
        "channels": max(1, len(lit)),
        "capacity": plan.fabric.option("wavelengths") * plan.fabric.option("fibres"),
        "way": [direction for part in parts for direction in part.way.tolist()],
        "first": [start_rank for part in parts for start_rank in part.start.tolist()],
        "hops": [hop_count for part in parts for hop_count in part.hops.tolist()],
        "lane": lane.tolist(),
    }


def _fibres(plan: Plan, slots_shown: int) -> dict[str, Any]:
    """Returns the lines of cables and lightpaths, and the lightpath of each transfer.

    Positions are in points: x to the right, y downwards.
    """
    fabric = plan.fabric
    at = fabric.drawing["places"]
    extent = np.maximum(at.max(axis=0) - at.min(axis=0), 1e-9)
    unit = float(min(MAX_SIDES[0] / extent[0], MAX_SIDES[1] / extent[1], MAX_UNIT))
    radius = float(np.clip(MAX_SIDES[0] / 10 / len(at) ** 0.5, 2.5, 9.0))
    slots = [lit(plan, slot) for slot in range(slots_shown)]
    used = np.unique(np.concatenate([np.zeros(0, np.int64), *(one.lane for one in slots)]))
    lanes = Lanes.of(fabric, max(len(used), 1), radius + 0.5, unit)

    def in_points(line: NDArray[np.float64]) -> list[list[float]]:
        placed = (line - at.min(axis=0)) * unit
        return np.column_stack([placed[:, 0], -placed[:, 1]]).round(1).tolist()  # type: ignore[no-any-return]

    routes = [route for one in slots for route in one.routes]
    starts = np.cumsum([0, *map(len, slots)]).tolist()
    return {
        "radius": radius,
        "width": 0.62 * lanes.pitch * unit,
        "places": in_points(at),
        "cables": [in_points(line) for line in lanes.cables()],
        "lines": [
            [in_points(line) for line in lanes.lines(source, route, lane)]
            for one in slots
            for source, route, lane in zip(
                one.sources, one.routes, np.searchsorted(used, one.lane).tolist(), strict=True
            )
        ],
        "routes": routes,
        "of": [start + path for start, one in zip(starts, slots, strict=False) for path in one.of],
        "names": {link: fabric.link_name(link) for link in set().union(*routes)},
        "capacity": fabric.option("wavelengths") * fabric.option("fibres"),
    }


def _graph(plan: Plan, columns: Columns, *, drawn: bool) -> dict[str, Any]:
    """Returns the routes, the names of their links and, if `drawn`, the network to draw.

    The network has positions of vertices, and the ends of each link.
    """
    fabric = plan.fabric
    routes = [tuple(plan.route(transfer)) for transfer in range(len(columns["source"]))]
    number = {route: place for place, route in enumerate(dict.fromkeys(routes))}
    graph: dict[str, Any] = {
        "routes": [list(route) for route in number],
        "of": [number[route] for route in routes],
    }
    used = sorted({link for route in graph["routes"] for link in route})
    graph["names"] = {link: fabric.link_name(link) for link in used}
    if drawn:
        places = fabric.drawing["places"]
        graph["places"] = [[round(float(x), 3), round(float(y), 3)] for x, y in places]
        graph["links"] = fabric.link_ends
        graph["around"] = fabric.drawing["around"].tolist()
    return graph
