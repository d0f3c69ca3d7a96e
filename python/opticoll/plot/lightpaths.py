"""Lightpaths of a plan as arrays for drawing."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opticoll._core import CONVERTED, Plan

WAYS = ("cw", "ccw")
WAY_NAMES = ("clockwise", "counter-clockwise")


@dataclass(frozen=True)
class Lightpaths:
    """Lightpaths of a plan as arrays with one entry per lightpath, in the order of the plan.

    In both directions, `start` is the rank from which the lightpath's links go towards higher
    ranks, modulo the number of ranks, and `hops` is the number of these links. `lane` is the number
    of the channel: fibre * (wavelengths per fibre) + wavelength. If converters choose the
    wavelength, `lane` is the lowest lane that is free on all links. Such lanes serve only the
    drawing and may exceed the number of channels.
    """

    ranks: int
    channels: int
    source: NDArray[np.int64]
    destination: NDArray[np.int64]
    way: NDArray[np.int64]
    start: NDArray[np.int64]
    hops: NDArray[np.int64]
    slot: NDArray[np.int64]
    lane: NDArray[np.int64]
    converted: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.slot)


def lightpaths(plan: Plan, slot: int | None = None) -> Lightpaths:
    """Returns the lightpaths of a plan, or of one slot of the plan."""
    ranks, wavelengths = plan.fabric.ranks, plan.fabric.option("wavelengths")
    columns = plan.columns() if slot is None else plan.slot_columns(slot)
    source, destination, way, fibre, wavelength, slots = (
        columns[name].astype(np.int64)
        for name in ("source", "destination", "direction", "fibre", "wavelength", "slot")
    )
    start = np.where(way == 0, source, destination)
    end = np.where(way == 0, destination, source)
    converted = wavelength == CONVERTED
    lane = fibre * wavelengths + np.where(converted, 0, wavelength)
    paths = Lightpaths(
        ranks=ranks,
        channels=plan.fabric.option("fibres") * wavelengths,
        source=source,
        destination=destination,
        way=way,
        start=start,
        hops=(end - start) % ranks,
        slot=slots,
        lane=lane,
        converted=converted,
    )
    if slot is not None and converted.any():
        links = [
            (way_index * ranks + (first + np.arange(count)) % ranks).tolist()
            for way_index, first, count in zip(way, start, paths.hops, strict=True)
        ]
        lay_out(links, lane, converted)
    return paths


def packed(paths: Lightpaths) -> tuple[Lightpaths, NDArray[np.int64]]:
    """Renumbers the lanes in use from 0; returns the lightpaths and the old lane of each new lane.

    A plan may use only a few of many wavelengths, and a drawing has room only for lanes in use.
    """
    lit, lane = np.unique(paths.lane, return_inverse=True)
    return replace(paths, lane=lane.astype(np.int64), channels=max(1, len(lit))), lit


def channel_words(plan: Plan) -> dict[str, Any]:
    """Returns a function that names a channel, and the title of the colour bar or legend."""
    wavelengths, fibres = plan.fabric.option("wavelengths"), plan.fabric.option("fibres")

    def name(lane: int) -> str:
        fibre = f" of fibre {lane // wavelengths}" if fibres > 1 else ""
        return f"wavelength {lane % wavelengths}{fibre}"

    counted = "" if fibres == 1 else ", counted over all fibres"
    return {"name": name, "label": f"Wavelength (number{counted})"}


def occupancy(paths: Lightpaths, slots: int) -> NDArray[np.float64]:
    """Returns the share of channels in use, by direction, slot and link.

    Link i joins ranks i and i + 1.
    """
    ranks = paths.ranks
    row = (paths.way * slots + paths.slot) * (ranks + 1)
    end = paths.start + paths.hops
    wraps = end > ranks
    rises = np.concatenate([row + paths.start, row[wraps]])
    falls = np.concatenate([row + np.minimum(end, ranks), row[wraps] + end[wraps] - ranks])
    size = 2 * slots * (ranks + 1)
    change = np.bincount(rises, minlength=size) - np.bincount(falls, minlength=size)
    lit = change.reshape(2, slots, ranks + 1).cumsum(axis=2)[:, :, :ranks]
    fraction: NDArray[np.float64] = lit / paths.channels
    return fraction


def lay_out(
    routes: Sequence[Sequence[int]], lane: NDArray[np.int64], converted: NDArray[np.bool_]
) -> None:
    """Assigns each converted lightpath the lowest lane that is free on all links of its route."""
    occupied: set[tuple[int, int]] = set()
    order = np.argsort(converted, kind="stable")  # fixed wavelengths first
    for index in order.tolist():
        links = routes[index]
        if converted[index]:
            lanes = itertools.count()
            lane[index] = next(
                free for free in lanes if not any((link, free) in occupied for link in links)
            )
        occupied.update((link, int(lane[index])) for link in links)
